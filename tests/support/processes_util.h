/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of worker processes share: the functions that those run, and a
 * main that is the program of the workers, too.
 */
#ifndef TESTS_SUPPORT_PROCESSES_UTIL_H
#define TESTS_SUPPORT_PROCESSES_UTIL_H

#include "cluster_util.h"
#include "exec_functions.h"
#include "workers_util.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* ---- functions ---- */

/* [TEXT, SIGNAL] */
static evc_status
p_die(evc_exec *x, void *arg)
{
	char text[256];
	int sig;

	(void)arg;
	if (evc_exec_unpack(x, "[si]", text, sizeof(text), &sig) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "die: %s",
				     evc_last_error());
	printf("%s", text);
	fflush(stdout);
	/* A sanitizer would take it and say more. */
	signal(sig, SIG_DFL);
	raise(sig);
	return 0;
}

/* [TEXT]: out and err, a line each */
static evc_status
p_say(evc_exec *x, void *arg)
{
	char text[256];

	(void)arg;
	if (evc_exec_unpack(x, "[s]", text, sizeof(text)) < 0)
		return EVC_INVALID_ARGUMENT;
	printf("out %s\n", text);
	fflush(stdout);
	fprintf(stderr, "err %s\n", text);
	return 0;
}

/* For so many milliseconds, whoever asks. */
static evc_status
p_deaf(evc_exec *x, void *arg)
{
	int ms = 0;

	(void)arg;
	if (evc_exec_unpack(x, "[i]", &ms) < 0)
		return EVC_INVALID_ARGUMENT;
	/* It has begun. */
	(void)evc_exec_variable_add(x, "deaf", 1, NULL);
	t_sleep(ms / 1000.0);
	return evc_exec_return(x, "i", (int)getpid());
}

/* [BYTES]: how many, times 256, and what stands last */
static evc_status
p_look(evc_exec *x, void *arg)
{
	const unsigned char *p;
	size_t n;

	(void)arg;
	if (evc_exec_unpack(x, "[B]", &p, &n) < 0 || n == 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "look: %s",
				     evc_last_error());
	return evc_exec_return(x, "I", (int64_t)n * 256 + p[n - 1]);
}

/* The variable "n" is one more; [WANTED]: its new value is asked for. */
static evc_status
p_count(evc_exec *x, void *arg)
{
	double now = 0;
	int wanted = 0;

	(void)arg;
	(void)evc_exec_unpack(x, "[i]", &wanted);
	if (evc_exec_variable_add(x, "n", 1, wanted ? &now : NULL) < 0)
		return evc_exec_fail(x, EVC_INTERNAL, "%s", evc_last_error());
	return evc_exec_return(x, "d", now);
}

#define P_FUNCTIONS \
	{ .name = "add", .fn = f_add }, { .name = "echo", .fn = f_echo }, \
	{ .name = "fail", .fn = f_fail }, { .name = "pid", .fn = fn_pid }, \
	{ .name = "die", .fn = p_die }, { .name = "say", .fn = p_say }, \
	{ .name = "deaf", .fn = p_deaf }, { .name = "wait", .fn = fn_waits }, \
	{ .name = "big", .fn = fn_big }, { .name = "look", .fn = p_look }, \
	{ .name = "count", .fn = p_count }

/* ---- clusters ---- */

/* What there is before a test, and has to be after it. */
struct before {
	struct census n;
};

static MAYBE_UNUSED struct before
begin_test(void)
{
	struct before b;

	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
	b.n = census_begin();
	forget_said();
	return b;
}

/* Nothing is left: no member, no thread, no descriptor, no process. */
static MAYBE_UNUSED void
end_test_says(const struct before *b, evc_coord *c, evc_status st)
{
	end_coord_says(c, st);
	census_end(&b->n);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}

static MAYBE_UNUSED void
end_test(const struct before *b, evc_coord *c)
{
	end_test_says(b, c, 0);
}

/* With a log that is kept. */
static MAYBE_UNUSED evc_coord *
coord_of(struct ev_loop *loop)
{
	const evc_config config = { .log = keep_said };
	evc_coord *c = NULL;

	OK(evc_new(loop, &config, &c));
	return c;
}

static MAYBE_UNUSED evc_cluster_worker_info
worker_info(const evc_cluster *cl, unsigned i)
{
	evc_cluster_worker_info info;

	OK(evc_cluster_worker_get(cl, i, &info));
	return info;
}

static MAYBE_UNUSED pid_t
pid_of(const evc_cluster *cl, unsigned i)
{
	evc_cluster_worker_info info = worker_info(cl, i);

	return info.state == EVC_WORKER_UP ? (pid_t)atoi(info.where + 4) : -1;
}

#define IS_UP(cl, i) (worker_info((cl), (i)).state == EVC_WORKER_UP)

/* A worker's text says this in the end. */
#define TEXT_SAYS(cl, i, part) \
	do { \
		double says_ = t_now() + T_LIMIT; \
		while (strstr(worker_info((cl), (i)).text, (part)) == NULL) { \
			ck_assert_msg(t_now() < says_, "no \"%s\" in \"%s\"", \
				      (part), worker_info((cl), (i)).text); \
			t_sleep(0.001); \
		} \
	} while (0)

static MAYBE_UNUSED int64_t
number_of(evc_remote *r)
{
	evc_value v;
	int64_t n = -1;
	evc_status st = evc_remote_fetch(r, T_LIMIT, &v);
	evc_remote_info info;

	OK(evc_remote_get(r, &info));
	ck_assert_msg(st == 0, "%s: %d, %s, %s", info.function, st, info.text,
		      evc_last_error());
	OK(evc_unpack(&v, "I", &n));
	evc_remote_free(r);
	return n;
}

/* It is gone, whoever has reaped it. */
static MAYBE_UNUSED bool
no_process(pid_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

#endif
