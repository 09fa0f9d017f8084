/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of reports share: whole texts, lines of them, and a
 * coordinator with one member of each kind.
 */
#ifndef TESTS_SUPPORT_REPORT_UTIL_H
#define TESTS_SUPPORT_REPORT_UTIL_H

#include "api_util.h"

#include <ev.h>

typedef size_t tell_fn(const evc_coord *c, char *buf, size_t n);

/* A text, whole; each overwrites the one before. */
static MAYBE_UNUSED const char *
whole(tell_fn *tell, const evc_coord *c)
{
	static char text[1 << 20];
	size_t n = tell(c, text, sizeof(text));

	ck_assert_uint_lt(n, sizeof(text));
	ck_assert_uint_eq(n, strlen(text));
	return text;
}

static MAYBE_UNUSED void *
report_stacks(void *arg)
{
	static char text[1 << 16];

	ck_assert_uint_lt(evc_report(arg, EVC_REPORT_TEXT | EVC_REPORT_STACKS,
				     text, sizeof(text)),
			  sizeof(text));
	return text;
}

static MAYBE_UNUSED void *
report_plain(void *arg)
{
	return (void *)whole(report_text, arg);
}

/* The report that another thread takes. */
static MAYBE_UNUSED const char *
elsewhere(void *(*report)(void *c), evc_coord *c)
{
	pthread_t t;
	void *text;

	OK(pthread_create(&t, NULL, report, c));
	OK(pthread_join(t, &text));
	return text;
}

static MAYBE_UNUSED const char *
report(const evc_coord *c)
{
	return whole(report_text, c);
}

/* The first line from text on that holds part; *ret_next, if not NULL, is what
   comes after it. */
static MAYBE_UNUSED const char *
line_with(const char *text, const char *part, const char **ret_next)
{
	static char line[2048];
	const char *at = strstr(text, part), *from = at, *to;

	ck_assert_msg(at != NULL, "no \"%s\" in \"%s\"", part, text);
	while (from > text && from[-1] != '\n')
		from--;
	to = strchr(at, '\n');
	ck_assert_ptr_nonnull(to);
	snprintf(line, sizeof(line), "%.*s", (int)(to - from), from);
	if (ret_next != NULL)
		*ret_next = to + 1;
	return line;
}

static MAYBE_UNUSED bool
says(const evc_coord *c, const char *part)
{
	return strstr(report(c), part) != NULL;
}

static MAYBE_UNUSED unsigned
times_in(const char *text, const char *part)
{
	unsigned n = 0;

	for (; (text = strstr(text, part)) != NULL; text += strlen(part))
		n++;
	return n;
}

/* ---- one of each kind ---- */

struct zoo {
	struct ev_loop *loop;
	evc_coord *c, *scope;
	struct guest guest; /* the two threads */
	pthread_t outside;
	evc_task task;
	evc_id thread, registered, looper, own, runner, hold, hook, below;
	atomic_int running, runs;
};

static MAYBE_UNUSED evc_status
zoo_beat(evc_coord *c, void *arg)
{
	struct zoo *z = arg;

	(void)c;
	atomic_fetch_add(&z->runs, 1);
	return 0;
}

static MAYBE_UNUSED bool
zoo_running(void *arg)
{
	return atomic_load(&((struct zoo *)arg)->running);
}

static MAYBE_UNUSED void
zoo_describe(char *buf, size_t n, void *arg)
{
	(void)arg;
	snprintf(buf, n, "behind the counter");
}

static MAYBE_UNUSED void
zoo_make(struct zoo *z, const char *name)
{
	static const evc_task_class upload = { .name = "upload" };
	static const evc_runner_ops ops = { .is_running = zoo_running,
					    .describe = zoo_describe };
	evc_member_opts own = { .flags = EVC_OWN_THREAD };
	evc_config cfg = { .name = name };

	memset(z, 0, sizeof(*z));
	atomic_store(&z->running, 1);
	z->loop = ev_loop_new(0);
	z->c = new_coord_with(z->loop, &cfg);
	OK(evc_thread_start(z->c, "a-thread", stay, &z->guest, NULL,
			    &z->thread));
	OK(pthread_create(&z->outside, NULL, stay_thread, &z->guest));
	OK(evc_register_thread(z->c, "a-registered", z->outside, NULL,
			       &z->registered));
	OK(evc_looper_start(z->c, "a-looper", 0.01, zoo_beat, z, NULL,
			    &z->looper));
	OK(evc_looper_start(z->c, "an-own-looper", 0.01, zoo_beat, z, &own,
			    &z->own));
	OK(evc_runner_add(z->c, "a-runner", &ops, z, NULL, &z->runner));
	OK(evc_hold_begin(z->c, "a-hold", NULL, &z->hold));
	OK(evc_on_stop(z->c, "a-hook", return_at_once, NULL, NULL, &z->hook));
	OK(evc_task_begin(evc_home(z->c), &z->task, &upload));
	OK(evc_scope_new(z->c, "a-scope", NULL, &z->scope));
	OK(evc_scope_ready(z->scope));
	OK(evc_hold_begin(z->scope, "below", NULL, &z->below));
	UNTIL(atomic_load(&z->guest.in) == 2);
}

/* All of them may end: also after a stop, which then is there. */
static MAYBE_UNUSED void
zoo_end(struct zoo *z)
{
	atomic_store(&z->guest.open, 1);
	atomic_store(&z->running, 0);
	evc_task_end(&z->task);
	OK(evc_hold_end(z->c, z->hold));
	OK(evc_hold_end(z->scope, z->below));
	if (!evc_should_stop(z->c))
		OK(evc_request_stop(z->c, 0, "the end"));
	ck_assert_int_ge(evc_run(z->c, NULL, NULL), 0);
	OK(evc_free(z->scope));
	OK(evc_free(z->c));
	ev_loop_destroy(z->loop);
}

/* A thread that reports in all formats until it is to leave. */
struct reporting {
	evc_coord *c;
	atomic_int leave, turns;
};

static MAYBE_UNUSED void *
report_again_and_again(void *arg)
{
	static __thread char buf[1 << 15];
	struct reporting *k = arg;
	unsigned format;

	for (; !atomic_load(&k->leave); atomic_fetch_add(&k->turns, 1))
		for (format = EVC_REPORT_TEXT; format <= EVC_REPORT_METRICS;
		     format++)
			evc_report(k->c, format, buf, sizeof(buf));
	return NULL;
}

#endif
