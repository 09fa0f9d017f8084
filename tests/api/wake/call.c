/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_call_detached; what it has in common with the other waits stands in waits.c.
 *
 * arg is always allocated: a leak checker sees what nobody has released, and an
 * address sanitizer what was released twice.
 */
#include "../../support/wait_util.h"

#include <ev.h>
#include <signal.h>

/* What was called, and where. */
struct seen {
	atomic_int calls, over, released, tid, released_by;
	char name[128];
	bool blocked; /* are the program's signals? */
};

struct job {
	struct seen *seen;
	int result;
	atomic_int *open; /* NULL: it does not hang */
	bool exits;
};

static struct job *
new_job(struct seen *seen, int result)
{
	struct job *j = calloc(1, sizeof(*j));

	ck_assert_ptr_nonnull(j);
	j->seen = seen;
	j->result = result;
	return j;
}

static int
work(void *arg)
{
	struct job *j = arg;
	struct seen *s = j->seen;
	int result = j->result;
	bool exits = j->exits;
	sigset_t set;

	task_line(own_tid(), "Name:\t", s->name, sizeof(s->name));
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	s->blocked = sigismember(&set, SIGTERM) == 1 &&
		     sigismember(&set, SIGSEGV) == 0;
	atomic_store(&s->tid, own_tid());
	atomic_fetch_add(&s->calls, 1);
	while (j->open != NULL && !atomic_load(j->open))
		t_sleep(0.001);
	atomic_store(&s->over, 1); /* with arg, too */
	if (exits)
		pthread_exit(NULL);
	return result;
}

static void
release(void *arg)
{
	struct seen *s = ((struct job *)arg)->seen;

	free(arg);
	atomic_store(&s->released_by, own_tid());
	atomic_fetch_add(&s->released, 1);
}

START_TEST(the_result_is_handed_back)
{
	static const char *const names[] = { "worker", NULL,
					     "a name of more than 15 bytes" };
	static const char *const want[] = { "worker\n", "call\n",
					    "a name of more \n" };
	static const int results[] = { 0, -1, 1 << 30 };
	int threads = t_count_threads(), result, i;
	evc_coord *c = new_coord(NULL);
	struct seen seen;
	struct job *j;

	for (i = 0; i < 3; i++) {
		memset(&seen, 0, sizeof(seen));
		j = new_job(&seen, results[i]);
		result = 77;
		OK(evc_call_detached(c, names[i], work, j, release,
				     i ? INFINITY : 1e6, &result));
		ck_assert_int_eq(result, results[i]);
		ck_assert_int_eq(atomic_load(&seen.calls), 1);
		ck_assert_int_eq(atomic_load(&seen.released), 0);
		ck_assert_int_ne(atomic_load(&seen.tid), own_tid());
		ck_assert_str_eq(seen.name, want[i]);
		ck_assert(seen.blocked);
		free(j); /* ours again */
	}
	memset(&seen, 0, sizeof(seen));
	j = new_job(&seen, 5);
	OK(evc_call_detached(c, "", work, j, NULL, INFINITY, NULL));
	free(j);
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(threads), threads);
}
END_TEST

START_TEST(wrong_use_is_refused_and_calls_nothing)
{
	evc_coord *c = new_coord(NULL);
	struct seen seen = { 0 };
	struct job *j = new_job(&seen, 1);
	int result = 77;

	REFUSED(EVC_INVALID_ARGUMENT,
		evc_call_detached(c, "x", NULL, j, release, 1, &result));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_call_detached(c, "x", work, j, release, NAN, &result));
	ck_assert_int_eq(result, 77);
	ck_assert_int_eq(atomic_load(&seen.calls), 0);
	ck_assert_int_eq(atomic_load(&seen.released), 0);
	free(j);
	OK(evc_free(c));
}
END_TEST

/* ---- on the thread of a loop ---- */

static evc_coord *on_loop;
static evc_status called;

static void
call_in_loop(struct ev_loop *loop, ev_timer *t, int events)
{
	struct seen seen = { 0 };
	struct job *j = new_job(&seen, 1);

	(void)loop;
	(void)t;
	(void)events;
	called = evc_call_detached(on_loop, "x", work, j, release, INFINITY,
				   NULL);
	free(j);
	evc_request_stop(on_loop, 0, NULL);
}

START_TEST(inside_ev_run_of_a_loop_it_is_refused)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct seen seen = { 0 };
	struct job *j = new_job(&seen, 3);
	int result = 77;
	ev_timer t;

	on_loop = new_coord(loop);
	called = 77;
	/* Outside of it that thread may. */
	OK(evc_call_detached(on_loop, "x", work, j, release, INFINITY,
			     &result));
	ck_assert_int_eq(result, 3);
	ev_timer_init(&t, call_in_loop, 0., 0.);
	ev_timer_start(loop, &t);
	OK(evc_run(on_loop, NULL, NULL));
	ck_assert_int_eq(called, -EVC_FAILED_PRECONDITION);
	free(j);
	OK(evc_free(on_loop));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- left behind ---- */

/* It is no member, holds up no join and no evc_free, and releases arg when it
   ends, wherever the coordinator is by then. */
START_TEST(what_is_left_behind_goes_on_and_releases)
{
	int threads = t_count_threads(), with_release, by_stop, result = 77;
	atomic_int open;
	struct seen seen;
	struct job *j, *kept;
	evc_coord *c;
	evc_verdict v;

	for (with_release = 0; with_release < 2; with_release++)
		for (by_stop = 0; by_stop < 2; by_stop++) {
			memset(&seen, 0, sizeof(seen));
			atomic_store(&open, 0);
			c = new_coord(NULL);
			j = kept = new_job(&seen, 1);
			j->open = &open;
			ck_assert_int_eq(
				evc_call_detached(c, "hangs", work, j,
						  with_release ? release : NULL,
						  by_stop ? 0 : 0.02, &result),
				-EVC_DEADLINE_EXCEEDED);
			UNTIL(atomic_load(&seen.calls) == 1);
			OK(evc_request_stop(c, 0, NULL));
			OK(evc_join(c, NULL, &v));
			ck_assert_uint_eq(v.n_ended, 0);
			ck_assert_uint_eq(v.n_stragglers, 0);
			OK(evc_free(c));
			ck_assert_int_eq(atomic_load(&seen.released), 0);
			atomic_store(&open, 1);
			ck_assert(t_settle_gone(atomic_load(&seen.tid)));
			ck_assert_int_eq(atomic_load(&seen.released),
					 with_release);
			if (with_release)
				ck_assert_int_eq(
					atomic_load(&seen.released_by),
					atomic_load(&seen.tid));
			UNTIL(atomic_load(&seen.over));
			if (!with_release)
				free(kept);
		}
	ck_assert_int_eq(result, 77);
	ck_assert_int_eq(t_settle_threads(threads), threads);
}
END_TEST

/* A look-up that nobody answers: a read of what nobody writes. */
struct look_up {
	int fd;
	atomic_int *begun, *released;
};

static int
look_up(void *arg)
{
	struct look_up *l = arg;
	char byte;

	atomic_store(l->begun, 1);
	return (int)read(l->fd, &byte, 1);
}

static void
look_up_release(void *arg)
{
	struct look_up *l = arg;
	atomic_int *released = l->released;

	close(l->fd);
	free(l);
	atomic_store(released, 1);
}

static evc_status
looks_up(evc_coord *c, void *arg)
{
	int n = 77;
	evc_status st;

	st = evc_call_detached(c, "look-up", look_up, arg, look_up_release,
			       INFINITY, &n);
	return n == 77 ? st : EVC_INTERNAL;
}

START_TEST(a_member_in_a_call_without_a_way_out_ends_at_the_stop)
{
	evc_coord *c = new_coord(NULL);
	struct look_up *l = calloc(1, sizeof(*l));
	static atomic_int begun, released;
	evc_verdict v;
	int fd[2];

	OK(pipe(fd));
	l->fd = fd[0];
	l->begun = &begun;
	l->released = &released;
	OK(evc_thread_start(c, "looks up", looks_up, l, NULL, NULL));
	UNTIL(atomic_load(&begun));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
	ck_assert_int_eq(atomic_load(&released), 0);
	close(fd[1]);
	UNTIL(atomic_load(&released));
}
END_TEST

START_TEST(while_a_stop_stands_it_releases_and_calls_nothing)
{
	evc_coord *c = new_coord(NULL);
	struct seen seen = { 0 };
	int result = 77;

	OK(evc_request_stop(c, 0, NULL));
	STOPPED(evc_call_detached(c, "x", work, new_job(&seen, 1), release,
				  INFINITY, &result));
	ck_assert_int_eq(result, 77);
	ck_assert_int_eq(atomic_load(&seen.calls), 0);
	ck_assert_int_eq(atomic_load(&seen.released), 1);
	ck_assert_int_eq(atomic_load(&seen.released_by), own_tid());
	STOPPED(evc_call_detached(c, "x", work, NULL, NULL, INFINITY, NULL));
	OK(evc_free(c));
}
END_TEST

/* fn that does not return: nothing is its result. */
START_TEST(a_function_that_ends_its_thread)
{
	evc_coord *c = new_coord(NULL);
	struct seen seen = { 0 };
	struct job *j = new_job(&seen, 1);
	atomic_int open = 0;
	int result = 77;

	j->exits = true;
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_call_detached(c, "x", work, j, release, INFINITY, &result));
	ck_assert_int_eq(result, 77);
	ck_assert_int_eq(atomic_load(&seen.released), 0);
	/* Left behind, it releases all the same. */
	j->open = &open;
	ck_assert_int_eq(
		evc_call_detached(c, "x", work, j, release, 0, &result),
		-EVC_DEADLINE_EXCEEDED);
	atomic_store(&open, 1);
	UNTIL(atomic_load(&seen.released) == 1);
	OK(evc_free(c));
}
END_TEST

/* The end of fn and the stop at the same time: arg is released, or handed back
   with the result, and never both. */
struct stopper {
	evc_coord *c;
	atomic_int go, done, quit;
};

static void *
stopper_main(void *arg)
{
	struct stopper *s = arg;
	int n = 0, i;

	for (;;) {
		while (atomic_load(&s->go) == n)
			if (atomic_load(&s->quit))
				return NULL;
		n++;
		for (i = 0; i < n % 50 * 100; i++)
			atomic_load(&s->quit);
		evc_request_stop(s->c, 0, NULL);
		atomic_store(&s->done, n);
	}
}

START_TEST(an_end_beside_a_stop)
{
	struct stopper s = { .c = new_coord(NULL) };
	struct seen seen = { 0 };
	int i, result, released = 0;
	struct job *j;
	evc_status st;
	pthread_t t;

	OK(pthread_create(&t, NULL, stopper_main, &s));
	for (i = 1; i <= 500; i++) {
		j = new_job(&seen, i);
		result = 77;
		atomic_store(&s.go, i);
		st = evc_call_detached(s.c, "x", work, j, release, INFINITY,
				       &result);
		if (st == 0) {
			ck_assert_int_eq(result, i);
			free(j);
		} else {
			STOPPED(st);
			ck_assert_int_eq(result, 77);
			released++;
		}
		UNTIL(atomic_load(&s.done) == i);
		UNTIL(atomic_load(&seen.released) == released);
		OK(evc_clear_stop(s.c));
	}
	atomic_store(&s.quit, 1);
	OK(pthread_join(t, NULL));
	OK(evc_free(s.c));
}
END_TEST

API_MAIN("call", the_result_is_handed_back,
	 wrong_use_is_refused_and_calls_nothing,
	 inside_ev_run_of_a_loop_it_is_refused,
	 what_is_left_behind_goes_on_and_releases,
	 a_member_in_a_call_without_a_way_out_ends_at_the_stop,
	 while_a_stop_stands_it_releases_and_calls_nothing,
	 a_function_that_ends_its_thread, an_end_beside_a_stop)
