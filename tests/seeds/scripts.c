/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The three scripts that show what a coordinator is for: four threads that
 * sleep politely, stopped after a moment and joined.  First with plain
 * threads, then with a coordinator, then with everything that may go wrong:
 * an error in the main thread, one in a thread, and the signals, which the
 * scripts leave to the reader.
 */
#define _GNU_SOURCE 1
#include "seeds.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define N_THREADS 4
#define NAP 0.002
#define RUN 0.02

/* Script 1: a flag of one's own. */
static atomic_bool must_stop;

static void *
sleep_by_flag(void *arg)
{
	while (!atomic_load(&must_stop))
		t_sleep(NAP);
	return arg;
}

START_TEST(script_1_plain_threads)
{
	pthread_t t[N_THREADS];
	int i;

	(void)begin(_i, NULL); /* for the account only: it is not asked */
	atomic_store(&must_stop, false);
	for (i = 0; i < N_THREADS; i++)
		t[i] = spawn(NULL, sleep_by_flag, NULL);
	t_sleep(RUN);
	ck_assert_int_eq(t_count_threads(), threads_before() + N_THREADS);
	atomic_store(&must_stop, true);
	for (i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_join(t[i], NULL), 0);
}
END_TEST

/* Script 2: the same with a coordinator; the threads are still the program's
   own, and the join gets the list of them. */
struct polite {
	evc_coord *c;
	int tid;
};

static void *
sleep_by_coord(void *arg)
{
	struct polite *p = arg;

	p->tid = gettid();
	while (!evc_should_stop(p->c))
		t_sleep(NAP);
	return NULL;
}

START_TEST(script_2_coordinator)
{
	evc_coord *c = begin(_i, NULL);
	struct polite p[N_THREADS];
	pthread_t t[N_THREADS];
	evc_join_opts o = { .threads = t, .n_threads = N_THREADS };
	evc_verdict v;
	int i;

	for (i = 0; i < N_THREADS; i++) {
		p[i].c = c;
		t[i] = spawn(NULL, sleep_by_coord, &p[i]);
	}
	ck_assert(!evc_wait_for_stop(c, RUN));
	ck_assert_int_eq(t_count_threads(), threads_before() + N_THREADS);
	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	ck_assert_int_eq(evc_join(c, &o, &v), 0);
	ck_assert_uint_eq(v.n_ended, N_THREADS);
	for (i = 0; i < N_THREADS; i++)
		ck_assert(t_settle_gone(p[i].tid));
}
END_TEST

/* Script 3: the threads are the coordinator's; one of them may fail. */
struct sleeper {
	struct t_gate *ready; /* they are all running */
	bool fails;
};

static evc_status
sleep_politely(evc_coord *c, void *arg)
{
	struct sleeper *s = arg;

	gate_step(s->ready);
	while (!evc_wait_for_stop(c, NAP))
		if (s->fails && gate_steps(s->ready) == N_THREADS)
			return evc_fail(c, EVC_DATA_LOSS, 0, "bad dream");
	return 0;
}

struct script {
	struct sleeper s[N_THREADS];
	struct t_gate ready;
	int fail_before; /* main fails instead of starting this one, if not 0 */
	int signo;       /* main sends this to itself when all run, if not 0 */
	unsigned started;
};

/* What stands between "try" and "except". */
static evc_status
run_script(evc_coord *c, void *arg)
{
	struct script *s = arg;
	int i;

	for (i = 0; i < N_THREADS; i++) {
		evc_status st;

		if (i && i == s->fail_before)
			return evc_fail(c, EVC_INTERNAL, 0, "main failed");
		s->s[i].ready = &s->ready;
		st = evc_thread_start(c, "sleeper", sleep_politely, &s->s[i],
				      NULL, NULL);
		if (st < 0)
			return evc_fail(c, -st, 0, "%s", evc_last_error());
		s->started++;
	}
	if (!gate_await(&s->ready, N_THREADS))
		return evc_fail(c, EVC_DEADLINE_EXCEEDED, 0, "not running");
	if (s->signo && kill(getpid(), s->signo))
		return evc_fail(c, EVC_INTERNAL, 0, "kill");
	/* Woken early by whatever goes wrong meanwhile. */
	evc_wait_for_stop(c, s->signo || s->s[1].fails ? T_LIMIT : RUN);
	return 0;
}

/* The whole of it, and its one join. */
static evc_status
script_3(evc_coord *c, struct script *s, evc_verdict *v)
{
	evc_status st;

	gate_init(&s->ready);
	ck_assert_int_eq(evc_signals_start(c, NULL), 0);
	ck_assert_int_eq(evc_guard(c, "main", run_script, s, NULL), 0);
	ck_assert_int_eq(evc_request_stop(c, 0, "main is done"), 0);
	st = evc_join(c, NULL, v);
	ck_assert_int_eq(st, v->code);
	ck_assert_uint_eq(v->n_stragglers, 0);
	ck_assert_uint_eq(v->n_ended, s->started);
	ck_assert_int_eq(t_settle_threads(threads_before()), threads_before());
	return st;
}

START_TEST(script_3_nothing_fails)
{
	evc_coord *c = begin(_i, NULL);
	struct script s = { 0 };
	evc_verdict v;

	ck_assert_int_eq(script_3(c, &s, &v), 0);
	ck_assert_uint_eq(s.started, N_THREADS);
	ck_assert_str_eq(v.stop.text, "main is done");
	ck_assert_uint_eq(v.n_errors, 0);
}
END_TEST

/* There: "the threads won't get stopped, and the program will hang". */
START_TEST(script_3_main_fails)
{
	evc_coord *c = begin(_i, NULL);
	struct script s = { .fail_before = 2 };
	evc_verdict v;

	ck_assert_int_eq(script_3(c, &s, &v), EVC_INTERNAL);
	ck_assert_uint_eq(s.started, 2);
	ck_assert_str_eq(v.error.text, "main failed");
	ck_assert_str_eq(v.error.func, "run_script");
	ck_assert_uint_eq(v.n_errors, 1);
}
END_TEST

/* There: "everything else will carry on, whether it should or not". */
START_TEST(script_3_a_thread_fails)
{
	evc_coord *c = begin(_i, NULL);
	struct script s = { .s[1].fails = true };
	evc_verdict v;

	ck_assert_int_eq(script_3(c, &s, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(s.started, N_THREADS);
	ck_assert_str_eq(v.error.text, "bad dream");
	ck_assert_str_eq(v.error.who, "sleeper");
	ck_assert_uint_ne(v.error.by, 0);
	ck_assert_uint_eq(v.n_errors, 1);
}
END_TEST

/* The additional step: signals end it the same way, and are no error. */
static void
script_3_with_signal(int with_loop, int signo, const char *name)
{
	struct sigaction before, after;
	evc_coord *c = begin(with_loop, NULL);
	struct script s = { .signo = signo };
	evc_verdict v;

	ck_assert_int_eq(sigaction(signo, NULL, &before), 0);
	ck_assert_int_eq(script_3(c, &s, &v), 0);
	ck_assert_uint_eq(s.started, N_THREADS);
	ck_assert_uint_eq(v.stop.kind, EVC_BY_SIGNAL);
	ck_assert_int_eq(v.stop.code, 0);
	ck_assert_ptr_nonnull(strstr(v.stop.text, name));
	ck_assert_int_eq(evc_signals_stop(c), 0);
	ck_assert_int_eq(sigaction(signo, NULL, &after), 0);
	ck_assert(before.sa_handler == after.sa_handler);
}

START_TEST(script_3_sigterm)
{
	script_3_with_signal(_i, SIGTERM, "SIGTERM");
}
END_TEST

START_TEST(script_3_sigint)
{
	script_3_with_signal(_i, SIGINT, "SIGINT");
}
END_TEST

T_MAIN("seed 000: three scripts", count_before, end_and_count,
       T_TIMES(script_1_plain_threads, 2),
       T_TIMES(script_2_coordinator, 2),
       T_TIMES(script_3_nothing_fails, 2),
       T_TIMES(script_3_main_fails, 2),
       T_TIMES(script_3_a_thread_fails, 2),
       T_TIMES(script_3_sigterm, 2),
       T_TIMES(script_3_sigint, 2))
