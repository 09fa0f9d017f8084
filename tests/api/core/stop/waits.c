/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all stop-aware waits have in common: each ends at a stop wherever it
 * comes from, at once while one stands, when its time is over, and not at a
 * signal; each keeps its coordinator; and none is lost when the stop is cleared
 * at once.
 */
#include "../../../support/wait_util.h"

#include <signal.h>
#include <sys/wait.h>

#define EACH(way) for ((way) = 0; (way) < N_WAITS; (way)++)

START_TEST(a_wait_ends_when_its_time_is_over)
{
	static const double times[] = { 0.02, 0, -1, -INFINITY, 1e-12 };
	evc_coord *c = new_coord(NULL);
	double start;
	int way;
	size_t i;

	EACH(way)
		for (i = 0; i < 5; i++) {
			start = t_now();
			ck_assert_int_eq(wait_here(way, c, times[i]),
					 way == BY_SLEEP ?
						 0 :
						 -EVC_DEADLINE_EXCEEDED);
			ck_assert(t_now() - start >= times[i]);
		}
	hangs_end(5);
	OK(evc_free(c));
}
END_TEST

START_TEST(NULL_and_NaN_are_refused)
{
	evc_coord *c = new_coord(NULL);
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	struct pollfd p = { .fd = -1 };
	unsigned got = 77;
	int way, result = 77;

	EACH(way)
		REFUSED(EVC_INVALID_ARGUMENT, wait_here(way, c, NAN));
	REFUSED(EVC_INVALID_ARGUMENT, evc_sleep(NULL, 0));
	REFUSED(EVC_INVALID_ARGUMENT, evc_wait_fd(NULL, 0, EVC_READ, 0, &got));
	REFUSED(EVC_INVALID_ARGUMENT, evc_poll(NULL, &p, 1, 0, &got));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cond_wait(NULL, &m, NULL, NULL, 0));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_call_detached(NULL, "x", hang, NULL, hang_release, 0,
				  &result));
	ck_assert_uint_eq(got, 77);
	ck_assert_int_eq(result, 77);
	ck_assert_int_eq(atomic_load(&hang_begun), 0);
	ck_assert_int_eq(atomic_load(&hang_released), 0);
	ck_assert(!evc_should_stop(c));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_wait_ends_at_once_while_a_stop_stands)
{
	static const double times[] = { INFINITY, 1e9, 0, -1 };
	evc_coord *c = new_coord(NULL);
	int way;
	size_t i;

	OK(evc_request_stop(c, 0, NULL));
	EACH(way)
		for (i = 0; i < 4; i++)
			REFUSED(EVC_CANCELLED, wait_here(way, c, times[i]));
	/* What is not called has been released. */
	ck_assert_int_eq(atomic_load(&hang_begun), 0);
	ck_assert_int_eq(atomic_load(&hang_released), 4);
	OK(evc_clear_stop(c));
	ck_assert_int_eq(wait_here(BY_WAIT_FD, c, 0), -EVC_DEADLINE_EXCEEDED);
	OK(evc_free(c));
}
END_TEST

static evc_coord *of_handler;

static void
stop_handler(int sig)
{
	(void)sig;
	evc_request_stop(of_handler, 0, "by a signal");
}

START_TEST(a_stop_by_another_thread_or_a_signal_handler_ends_it)
{
	struct sigaction sa = { .sa_handler = stop_handler };
	struct wait w;
	int way, by_signal;

	sigaction(SIGUSR1, &sa, NULL);
	EACH(way)
		for (by_signal = 0; by_signal < 2; by_signal++) {
			of_handler = new_coord(NULL);
			wait_begin(&w, way, of_handler, INFINITY);
			if (by_signal)
				raise(SIGUSR1);
			else
				OK(evc_request_stop(of_handler, 0, NULL));
			STOPPED(wait_end(&w));
			OK(evc_free(of_handler));
		}
	hangs_end(2);
}
END_TEST

/* What of a scope's is its own, and what of its parent's goes down. */
START_TEST(stops_go_down_into_a_scope_and_not_up)
{
	struct wait below, above;
	evc_coord *c, *s;
	int way, own;

	EACH(way)
		for (own = 0; own < 2; own++) {
			c = new_coord(NULL);
			OK(evc_scope_new(c, "scope", NULL, &s));
			OK(evc_scope_ready(s));
			wait_begin(&below, way, s, INFINITY);
			wait_begin(&above, way, c, 1e9);
			OK(evc_request_stop(own ? s : c, 0, NULL));
			STOPPED(wait_end(&below));
			if (own) {
				t_sleep(0.02);
				ck_assert(!atomic_load(&above.done));
				OK(evc_request_stop(c, 0, NULL));
			}
			STOPPED(wait_end(&above));
			FREE_ALL(s, c);
		}
	hangs_end(4);
}
END_TEST

static atomic_int heard;

static void
count_handler(int sig)
{
	(void)sig;
	atomic_fetch_add(&heard, 1);
}

START_TEST(a_signal_ends_no_wait)
{
	struct sigaction sa = { .sa_handler = count_handler };
	struct wait w;
	evc_coord *c;
	int way, i;

	sigaction(SIGUSR2, &sa, NULL);
	EACH(way) {
		c = new_coord(NULL);
		wait_begin(&w, way, c, INFINITY);
		for (i = 0; i < 5; i++) {
			pthread_kill(w.thread, SIGUSR2);
			until_asleep(atomic_load(&w.tid));
		}
		ck_assert(!atomic_load(&w.done));
		OK(evc_request_stop(c, 0, NULL));
		STOPPED(wait_end(&w));
		OK(evc_free(c));
	}
	ck_assert_int_gt(atomic_load(&heard), 0);
	hangs_end(1);
}
END_TEST

/* A time is a time by the coordinator's clock. */
START_TEST(the_clock_is_the_one_that_was_configured)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct wait w;
	int way;

	EACH(way) {
		/* It looks at that clock now and then, so it is not asleep. */
		wait_make(&w, way, c, 5);
		OK(pthread_create(&w.thread, NULL, wait_main, &w));
		UNTIL(atomic_load(&w.tid) != 0);
		if (way == BY_CALL)
			UNTIL(atomic_load(&hang_begun) > 0);
		t_sleep(0.06);
		scripted_advance(4.9);
		t_sleep(0.06);
		ck_assert(!atomic_load(&w.done));
		/* Should it have begun after the first step, it takes more. */
		UNTIL(atomic_load(&w.done) || (scripted_advance(0.2), false));
		ck_assert_int_eq(wait_end(&w), way == BY_SLEEP ?
						       0 :
						       -EVC_DEADLINE_EXCEEDED);
	}
	hangs_end(1);
	OK(evc_free(c));
}
END_TEST

/* ---- stops that have been and gone ---- */

#define CROWD 10

static struct rounds {
	struct wait w[CROWD];
	atomic_int out, round, quit;
} all;

static void *
wait_each_round(void *arg)
{
	struct wait *w = arg;
	int n = 0;

	atomic_store(&w->tid, own_tid());
	for (;;) {
		while (atomic_load(&all.round) == n)
			t_sleep(0.0001);
		n++;
		if (atomic_load(&all.quit))
			return NULL;
		w->status = wait_now(w);
		if (w->status != -EVC_CANCELLED)
			atomic_store(&w->done, 1);
		atomic_fetch_add(&all.out, 1);
	}
}

static bool
all_asleep(void)
{
	int i, tid;

	for (i = 0; i < CROWD; i++) {
		tid = atomic_load(&all.w[i].tid);
		if (all.w[i].way == BY_WAIT_FD || all.w[i].way == BY_POLL) {
			if (!is_in_poll(tid))
				return false;
		} else if (!sleeps_on(tid, 0.003))
			return false;
	}
	return true;
}

/* The one who clears is no member, so nobody has to have ended. */
static void
stop_and_clear(int rounds, const int *ways, int n_ways)
{
	struct t_crowd crowd;
	evc_coord *c = new_coord(NULL);
	int i, r, fd = evc_stop_fd(c), calls = 0;

	memset(&all, 0, sizeof(all));
	for (i = 0; i < CROWD; i++) {
		wait_make(&all.w[i], ways[i % n_ways], c, INFINITY);
		calls += all.w[i].way == BY_CALL;
	}
	crowd_begin(&crowd, CROWD, wait_each_round, all.w, sizeof(all.w[0]));
	for (i = 0; i < CROWD; i++)
		UNTIL(atomic_load(&all.w[i].tid) != 0);
	for (r = 1; r <= rounds; r++) {
		atomic_store(&all.round, r);
		UNTIL(atomic_load(&hang_begun) == calls * r);
		UNTIL(all_asleep());
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_clear_stop(c));
		UNTIL(atomic_load(&all.out) == CROWD * r);
		ck_assert(!readable(fd));
	}
	atomic_store(&all.quit, 1);
	atomic_fetch_add(&all.round, 1);
	crowd_end(&crowd);
	for (i = 0; i < CROWD; i++) {
		ck_assert(!atomic_load(&all.w[i].done));
		wait_drop(&all.w[i]);
	}
	hangs_end(calls * rounds);
	OK(evc_free(c));
}

START_TEST(a_stop_that_is_cleared_at_once_ends_every_wait_on_descriptors)
{
	static const int ways[] = { BY_WAIT_FD, BY_POLL };

	if (t_under_qemu())
		T_SKIP("/proc shows the calls of the emulator");
	stop_and_clear(200, ways, 2);
}
END_TEST

START_TEST(a_stop_that_is_cleared_at_once_ends_every_wait)
{
	static const int ways[] = { BY_SLEEP, BY_WAIT_FD, BY_POLL, BY_UNTIL,
				    BY_CALL };

	if (t_under_qemu())
		T_SKIP("/proc shows the calls of the emulator");
	stop_and_clear(20, ways, 5);
}
END_TEST

/* ---- what a wait keeps ---- */

START_TEST(evc_free_is_refused_while_a_thread_waits_for_nothing)
{
	struct wait w;
	evc_coord *c;
	int way;

	EACH(way) {
		c = new_coord(NULL);
		wait_begin(&w, way, c, INFINITY);
		REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
		OK(evc_request_stop(c, 0, NULL));
		/* The others are just returning: that is waited for. */
		if (way != BY_UNTIL)
			OK(evc_free(c));
		STOPPED(wait_end(&w));
		if (way == BY_UNTIL)
			OK(evc_free(c));
	}
	hangs_end(1);
}
END_TEST

static void *
cancelled_main(void *arg)
{
	int i;

	wait_main(arg);
	/* Here at the latest. */
	for (i = 0; i < (int)(T_LIMIT * 1000); i++) {
		pthread_testcancel();
		t_sleep(0.001);
	}
	return NULL;
}

START_TEST(a_cancelled_thread_leaves_nothing_behind)
{
	evc_coord *c = new_coord(NULL);
	struct wait w;
	void *ret;
	int way;

	EACH(way) {
		wait_make(&w, way, c, INFINITY);
		OK(pthread_create(&w.thread, NULL, cancelled_main, &w));
		UNTIL(atomic_load(&w.tid) != 0);
		until_asleep(atomic_load(&w.tid));
		OK(pthread_cancel(w.thread));
		t_sleep(0.01);
		OK(evc_request_stop(c, 0, NULL));
		OK(pthread_join(w.thread, &ret));
		ck_assert_ptr_eq(ret, PTHREAD_CANCELED);
		wait_drop(&w);
		OK(evc_clear_stop(c));
	}
	hangs_end(1);
	OK(evc_free(c));
}
END_TEST

START_TEST(in_a_fork_child_all_are_refused)
{
	evc_coord *volatile c = new_coord(NULL);
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	struct pollfd p = { .fd = 0, .events = POLLIN };
	evc_cond *cond = NULL, *other = NULL;
	struct wait w[N_WAITS];
	unsigned got = 77;
	int status = 0, way, result = 77;
	pid_t pid;

	OK(evc_cond_new(c, &cond));
	EACH(way)
		wait_begin(&w[way], way, c, INFINITY);
	pid = fork();
	if (pid == 0) {
		alarm((unsigned)T_LIMIT); /* a wait would end here */
		pthread_mutex_lock(&m);
		CHILD_REFUSED(evc_sleep(c, INFINITY));
		CHILD_REFUSED(evc_sleep(c, 0));
		CHILD_REFUSED(evc_wait_fd(c, 0, EVC_READ, INFINITY, &got));
		CHILD_REFUSED(evc_poll(c, &p, 1, INFINITY, &got));
		CHILD_REFUSED(evc_cond_wait(cond, &m, NULL, NULL, INFINITY));
		CHILD_REFUSED(evc_call_detached(
			c, "x", hang, NULL, hang_release, INFINITY, &result));
		CHILD_REFUSED(evc_cond_new(c, &other));
		CHILD_REFUSED(evc_cond_free(cond));
		evc_cond_signal(cond);
		evc_cond_broadcast(cond);
		CHILD(got == 77 && result == 77 && other == NULL);
		CHILD(atomic_load(&hang_released) == 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	/* Nobody here has noticed. */
	EACH(way)
		ck_assert(!atomic_load(&w[way].done));
	OK(evc_request_stop(c, 0, NULL));
	EACH(way)
		STOPPED(wait_end(&w[way]));
	hangs_end(1);
	OK(evc_cond_free(cond));
	OK(evc_free(c));
}
END_TEST

API_MAIN("waits", a_wait_ends_when_its_time_is_over, NULL_and_NaN_are_refused,
	 a_wait_ends_at_once_while_a_stop_stands,
	 a_stop_by_another_thread_or_a_signal_handler_ends_it,
	 stops_go_down_into_a_scope_and_not_up, a_signal_ends_no_wait,
	 the_clock_is_the_one_that_was_configured,
	 a_stop_that_is_cleared_at_once_ends_every_wait_on_descriptors,
	 a_stop_that_is_cleared_at_once_ends_every_wait,
	 evc_free_is_refused_while_a_thread_waits_for_nothing,
	 a_cancelled_thread_leaves_nothing_behind,
	 in_a_fork_child_all_are_refused)
