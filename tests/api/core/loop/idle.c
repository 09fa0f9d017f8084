/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Idle costs nothing: while nothing happens nobody wakes up.  Wake-ups are
 * counted by the kernel (voluntary context switches of every thread of this
 * process) over a while of real waiting; no time is measured.
 */
#include "../../../support/wait_util.h"

#include <dirent.h>
#include <ev.h>

#define WHILE 1.0

/* How often all threads but the caller have gone to sleep so far; -1 while one
   of them has not: on a machine with much else to do it may wait for a cpu. */
static long
sleeps_of_others(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	bool asleep = true;
	long sum = 0;
	int tid;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL) {
		tid = atoi(e->d_name);
		if (tid > 0 && tid != own_tid()) {
			asleep = asleep && sleeps_on(tid, 0);
			sum += task_sleeps(tid);
		}
	}
	closedir(d);
	return asleep ? sum : -1;
}

/* Wake-ups of all other threads, once everything has come to rest. */
static long
wakeups_in_a_while(void)
{
	double until = t_now() + T_LIMIT;
	long before;

	do {
		before = sleeps_of_others();
		t_sleep(0.1);
	} while ((before < 0 || before != sleeps_of_others()) &&
		 t_now() < until);
	before = sleeps_of_others();
	t_sleep(WHILE);
	return sleeps_of_others() - before;
}

START_TEST(a_join_of_started_threads_wakes_nobody)
{
	evc_coord *c;
	struct joiner j;
	int i;

	if (t_under_tsan())
		T_SKIP("the sanitizer's own thread wakes up");
	c = new_coord(NULL);
	for (i = 0; i < 8; i++)
		OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	join_begin(&j, c, 0, 0);
	ck_assert_int_eq(wakeups_in_a_while(), 0);
	OK(evc_request_stop(c, 0, NULL));
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 8);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_join_of_registered_threads_wakes_nobody)
{
	evc_coord *c;
	struct joiner j;
	pthread_t t;
	int i;

	if (t_under_tsan())
		T_SKIP("the sanitizer's own thread wakes up");
	if (!has_thread_pidfd())
		T_SKIP("this kernel has no pidfd for threads");
	c = new_coord(NULL);
	for (i = 0; i < 4; i++) {
		OK(pthread_create(&t, NULL, obey_thread, c));
		OK(evc_register_thread(c, "waits", t, NULL, NULL));
	}
	join_begin(&j, c, 0, 0);
	ck_assert_int_eq(wakeups_in_a_while(), 0);
	OK(evc_request_stop(c, 0, NULL));
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 4);
	OK(evc_free(c));
}
END_TEST

struct runner {
	evc_coord *c;
	atomic_int ready;
	evc_status status;
	bool evented;
	atomic_int asked;
};

static void
take_verdict(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	((struct runner *)arg)->status = v->code;
}

static void *
runner_main(void *arg)
{
	struct runner *r = arg;
	struct ev_loop *loop = ev_loop_new(0);
	evc_status st = evc_new(loop, NULL, &r->c);
	int i;

	for (i = 0; i < 4 && st == 0; i++)
		st = evc_thread_start(r->c, "obeys", obey, NULL, NULL, NULL);
	if (st == 0)
		st = evc_on_stop(r->c, "hook", return_at_once, NULL, NULL,
				 NULL);
	if (st == 0 && r->evented)
		st = evc_join_start(r->c, take_verdict, r, NULL);
	r->status = st;
	atomic_store(&r->ready, 1);
	if (st == 0 && r->evented)
		ev_run(loop, 0); /* the join keeps it running */
	else if (st == 0)
		r->status = evc_run(r->c, NULL, NULL);
	UNTIL(atomic_load(&r->asked)); /* no free beside a request */
	if (r->status == 0)
		r->status = evc_free(r->c);
	ev_loop_destroy(loop);
	return NULL;
}

/* A loop that has nothing to do but to be stopped does not turn. */
static void
idle_loop(bool evented)
{
	struct runner r = { .evented = evented };
	pthread_t t;

	OK(pthread_create(&t, NULL, runner_main, &r));
	UNTIL(atomic_load(&r.ready));
	OK(r.status);
	ck_assert_int_eq(wakeups_in_a_while(), 0);
	OK(evc_request_stop(r.c, 0, NULL));
	atomic_store(&r.asked, 1);
	pthread_join(t, NULL);
	OK(r.status);
}

START_TEST(a_run_wakes_nobody)
{
	if (t_under_tsan())
		T_SKIP("the sanitizer's own thread wakes up");
	idle_loop(false);
}
END_TEST

START_TEST(an_evented_join_wakes_nobody)
{
	if (t_under_tsan())
		T_SKIP("the sanitizer's own thread wakes up");
	idle_loop(true);
}
END_TEST

/* ---- the stop-aware waits ---- */

static int
blocks_in_read(void *arg)
{
	char byte;

	return (int)read(*(int *)arg, &byte, 1);
}

static evc_status
waits_for_a_call(evc_coord *c, void *arg)
{
	int n = 0;

	return evc_call_detached(c, "blocks", blocks_in_read, arg, NULL,
				 INFINITY, &n);
}

START_TEST(waits_wake_nobody)
{
	struct wait w[BY_CALL];
	evc_coord *c;
	int way, fd[2];

	if (t_under_qemu())
		T_SKIP("the emulator has a thread of its own");
	if (t_under_tsan())
		T_SKIP("the sanitizer's own thread wakes up");
	c = new_coord(NULL);
	OK(pipe(fd));
	for (way = 0; way < BY_CALL; way++)
		wait_begin(&w[way], way, c, INFINITY);
	OK(evc_thread_start(c, "calls", waits_for_a_call, &fd[0], NULL, NULL));
	ck_assert_int_eq(wakeups_in_a_while(), 0);
	OK(evc_request_stop(c, 0, NULL));
	for (way = 0; way < BY_CALL; way++)
		STOPPED(wait_end(&w[way]));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	/* Nobody is left in fd when it goes. */
	close(fd[1]);
	ck_assert_int_eq(t_settle_threads(1), 1);
	close(fd[0]);
}
END_TEST

API_MAIN("idle", a_join_of_started_threads_wakes_nobody,
	 a_join_of_registered_threads_wakes_nobody, a_run_wakes_nobody,
	 an_evented_join_wakes_nobody, waits_wake_nobody)
