/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "Why is should_stop() returning true?": the three cases of an article that
 * asked this and could not find out, and its remark about errors before a
 * thread is started.  For each, what the program can ask (reasons, verdict)
 * and what a person can read (evc_explain) name who it was, why, and where.
 *
 * Two of the article's own answers are wrong, and tested the other way round
 * here: closing what the members use stops nothing, and neither does leaving
 * a guarded block normally.
 */
#define _GNU_SOURCE 1
#include "seeds.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MISSING "/nonexistent/input.txt"

static char text[4096];

static const char *
explain(evc_coord *c)
{
	size_t n = evc_explain(c, text, sizeof(text));

	ck_assert_uint_lt(n, sizeof(text));
	ck_assert_uint_eq(n, strlen(text));
	ck_assert_uint_gt(n, 0);
	return text;
}

#define HAS(part) \
	ck_assert_msg(strstr(text, (part)), "no \"%s\" in \"%s\"", (part), text)
#define HAS_NOT(part) \
	ck_assert_msg(!strstr(text, (part)), "\"%s\" in \"%s\"", (part), text)

/* The explanation of a stop names all that its first reason holds. */
static void
check_explained(evc_coord *c, const evc_reason *r)
{
	time_t when = (time_t)(r->real_ns / 1000000000u);
	char part[256];
	struct tm tm;

	explain(c);
	ck_assert_ptr_nonnull(gmtime_r(&when, &tm));
	ck_assert_uint_gt(strftime(part, sizeof(part), "%H:%M:%S", &tm), 0);
	HAS(part);
	HAS(r->who);
	snprintf(part, sizeof(part), "%d", r->tid);
	HAS(part);
	if (r->text[0])
		HAS(r->text);
	if (r->file[0]) {
		snprintf(part, sizeof(part), "%s:%d", r->file, r->line);
		HAS(part);
	}
	if (r->func[0])
		HAS(r->func);
	if (r->code)
		HAS(evc_status_name(r->code));
}

/* Nobody asked, and the explanation does not pretend that somebody did. */
static void
check_nobody_asked(evc_coord *c)
{
	evc_reason r;

	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(evc_reason_get(c, 0, &r), -EVC_NOT_FOUND);
	ck_assert_int_eq(evc_raise_requested(c, &r), 0);
	explain(c);
	HAS_NOT("why.c");
}

static bool
ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

/* Case 1: workers open a file that is not there. */
struct worker {
	struct t_gate *go;
	int line;
};

static evc_status
read_input(evc_coord *c, void *arg)
{
	struct worker *w = arg;
	int fd;

	gate_await(w->go, 1);
	fd = open(MISSING, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		w->line = __LINE__ + 1;
		return evc_fail(c, EVC_NOT_FOUND, errno, "open %s", MISSING);
	}
	close(fd);
	return 0;
}

START_TEST(case_1_an_error_in_a_thread)
{
	static const char *const names[] = { "worker-0", "worker-1",
					     "worker-2" };
	struct t_gate go = GATE_INIT;
	struct worker w[3] = { { &go, 0 }, { &go, 0 }, { &go, 0 } };
	evc_coord *c = begin(_i, NULL);
	bool seen[3] = { false, false, false };
	double t0 = t_now();
	evc_reason first, r;
	evc_verdict v;
	evc_id id[3];
	unsigned i, k;

	for (i = 0; i < 3; i++)
		ck_assert_int_eq(evc_thread_start(c, names[i], read_input,
						  &w[i], NULL, &id[i]), 0);
	check_nobody_asked(c);
	gate_step(&go);
	ck_assert(evc_wait_for_stop(c, T_LIMIT));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_NOT_FOUND);
	ck_assert_uint_eq(v.n_ended, 3);
	ck_assert_uint_eq(v.n_errors, 3);
	/* All three are kept, each with its own place and thread. */
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(evc_reason_get(c, i, &r), 0);
		ck_assert_int_eq(r.code, EVC_NOT_FOUND);
		ck_assert_int_eq(r.err, ENOENT);
		ck_assert_uint_eq(r.kind, EVC_BY_ERROR);
		ck_assert_str_eq(r.text, "open " MISSING);
		ck_assert_str_eq(r.func, "read_input");
		ck_assert_double_ge((double)r.mono_ns * 1e-9, t0);
		ck_assert_double_le((double)r.mono_ns * 1e-9, t_now());
		ck_assert(ends_with(r.file, "why.c"));
		for (k = 0; k < 3; k++) {
			if (r.by != id[k])
				continue;
			ck_assert_str_eq(r.who, names[k]);
			ck_assert_int_eq(r.line, w[k].line);
			ck_assert(!seen[k]);
			seen[k] = true;
		}
	}
	ck_assert(seen[0] && seen[1] && seen[2]);
	ck_assert_int_eq(evc_reason_get(c, 3, &r), -EVC_NOT_FOUND);
	/* The first of them is the reason of the stop and the verdict. */
	ck_assert_int_eq(evc_reason_get(c, 0, &first), 0);
	ck_assert_uint_eq(first.by, v.stop.by);
	ck_assert_uint_eq(first.by, v.error.by);
	check_explained(c, &first);
}
END_TEST

/* Case 2: what the workers use is closed. */
struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool closed;
};

static evc_status
use_queue(evc_coord *c, void *arg)
{
	struct queue *q = arg;

	pthread_mutex_lock(&q->lock);
	while (!q->closed)
		pthread_cond_wait(&q->changed, &q->lock);
	pthread_mutex_unlock(&q->lock);
	return evc_fail(c, EVC_UNAVAILABLE, 0, "the queue is closed");
}

START_TEST(case_2_what_they_use_is_closed)
{
	struct queue q = { PTHREAD_MUTEX_INITIALIZER,
			   PTHREAD_COND_INITIALIZER, false };
	evc_coord *c = begin(_i, NULL);
	evc_verdict v;

	ck_assert_int_eq(evc_thread_start(c, "consumer", use_queue, &q, NULL,
					  NULL), 0);
	/* While we hold the lock nobody has noticed: so what is seen here is
	   what closing does by itself. */
	pthread_mutex_lock(&q.lock);
	q.closed = true;
	pthread_cond_broadcast(&q.changed);
	check_nobody_asked(c);
	HAS("consumer"); /* it keeps the join waiting */
	pthread_mutex_unlock(&q.lock);

	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_UNAVAILABLE);
	ck_assert_str_eq(v.stop.who, "consumer");
	ck_assert_str_eq(v.stop.func, "use_queue");
	ck_assert_str_eq(v.stop.text, "the queue is closed");
	check_explained(c, &v.stop);
}
END_TEST

/*
 * Case 3: a guarded block that starts threads and is left normally.  The
 * article's own program never registers them, so both ways are shown.
 */
struct block {
	struct t_gate *leave;   /* the threads stay until it was stepped */
	pthread_t *t;         /* plain threads, not registered, if set */
	bool left[3];
};

static evc_status
live(evc_coord *c, void *arg)
{
	(void)arg;
	evc_wait_for_stop(c, INFINITY);
	return 0;
}

static evc_status
limited_scope(evc_coord *c, void *arg)
{
	struct block *b = arg;
	evc_status st;
	int i;

	for (i = 0; i < 3; i++) {
		if (b->t) {
			b->t[i] = spawn(NULL, await_gate, b->leave);
			continue;
		}
		st = evc_thread_start(c, "worker", live, NULL, NULL, NULL);
		if (st < 0)
			return evc_fail(c, -st, 0, "%s", evc_last_error());
	}
	return 0;
}

static evc_status
nothing(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	return 0;
}

static void
check_stopped_by_block(evc_coord *c, const evc_verdict *v)
{
	ck_assert_uint_eq(v->stop.kind, EVC_BY_MEMBER_END);
	ck_assert_int_eq(v->stop.code, 0);
	ck_assert_str_eq(v->stop.who, "limited scope");
	ck_assert_uint_eq(v->n_errors, 0);
	check_explained(c, &v->stop);
}

START_TEST(case_3_a_block_is_left)
{
	evc_member_opts stops = { .flags = EVC_END_STOPS };
	evc_coord *c = begin(_i, NULL);
	struct block b = { 0 };
	evc_verdict v;

	ck_assert_int_eq(evc_guard(c, "limited scope", limited_scope, &b,
				   NULL), 0);
	check_nobody_asked(c);
	HAS("worker");
	ck_assert_int_eq(evc_guard(c, "limited scope", nothing, NULL, &stops),
			 0);
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	ck_assert_uint_eq(v.n_ended, 3);
	ck_assert_uint_eq(v.n_stragglers, 0);
	check_stopped_by_block(c, &v);
}
END_TEST

START_TEST(case_3_threads_that_nobody_registered)
{
	evc_member_opts stops = { .flags = EVC_END_STOPS };
	struct t_gate leave = GATE_INIT;
	evc_coord *c = begin(_i, NULL);
	pthread_t t[3];
	struct block b = { .t = t, .leave = &leave };
	evc_join_opts o = { .threads = t, .n_threads = 3 };
	evc_verdict v;

	ck_assert_int_eq(evc_guard(c, "limited scope", limited_scope, &b,
				   &stops), 0);
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	check_stopped_by_block(c, &v);
	/* The trap: a join that went well, and three threads that run. */
	ck_assert_uint_eq(v.n_ended, 0);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_int_eq(t_count_threads(), threads_before() + 3);
	/* Out of it: a list given to a join that came too late registers them
	   still. */
	gate_step(&leave);
	ck_assert_int_eq(evc_join(c, &o, &v), 0);
	ck_assert_uint_eq(v.n_ended, 3);
}
END_TEST

/* The remark: an error in the set-up, before its thread is started. */
START_TEST(set_up_fails_before_the_thread_is_started)
{
	evc_coord *c = begin(_i, NULL);
	char me[16];
	evc_verdict v;
	int fd, line;

	t_own_name(me);
	ck_assert_int_eq(evc_thread_start(c, "worker", live, NULL, NULL,
					  NULL), 0);
	fd = open(MISSING, O_RDONLY | O_CLOEXEC);
	ck_assert_int_lt(fd, 0);
	line = __LINE__ + 1;
	evc_fail(c, EVC_NOT_FOUND, errno, "open %s", MISSING);
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_NOT_FOUND);
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_str_eq(v.error.who, me);
	ck_assert_int_eq(v.error.tid, getpid());
	ck_assert_uint_eq(v.error.by, 0);
	ck_assert_int_eq(v.error.line, line);
	ck_assert(ends_with(v.error.file, "why.c"));
	ck_assert_int_eq(v.error.err, ENOENT);
	check_explained(c, &v.stop);
}
END_TEST

T_MAIN("seed 002: why did it stop", count_before, end_and_count,
       T_TIMES(case_1_an_error_in_a_thread, 2),
       T_TIMES(case_2_what_they_use_is_closed, 2),
       T_TIMES(case_3_a_block_is_left, 2),
       T_TIMES(case_3_threads_that_nobody_registered, 2),
       T_TIMES(set_up_fails_before_the_thread_is_started, 2))
