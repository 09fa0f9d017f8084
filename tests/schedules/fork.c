/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fork while another thread stands in the middle of something: the child is
 * refused everything, and waits for nothing that will never come.
 *
 * A child says on stderr what was not as it should be, and leaves with 1; an
 * alarm ends one that hangs.
 */
#include "schedules.h"

#include <ev.h>
#include <signal.h>
#include <sys/wait.h>

/* Every call that could wait for who stands there. */
static void
child(evc_coord *c, bool stopped)
{
	evc_verdict v;
	evc_reason r;
	evc_id id = 0;

	/* The test program has a handler for it. */
	signal(SIGALRM, SIG_DFL);
	alarm(20);
	CHILD(evc_should_stop(c) == stopped);
	CHILD(evc_wait_for_stop(c, INFINITY) == stopped);
	CHILD_REFUSED(evc_request_stop(c, EVC_INTERNAL, "child"));
	CHILD_REFUSED(evc_stop_fd(c));
	CHILD_REFUSED(evc_hold_begin(c, "hold", NULL, &id));
	CHILD_REFUSED(evc_hold_end(c, 1));
	CHILD_REFUSED(evc_raise_requested(c, &r));
	CHILD_REFUSED(evc_reason_get(c, 0, &r));
	CHILD_REFUSED(evc_member_remove(c, 1));
	CHILD_REFUSED(evc_join(c, NULL, &v));
	CHILD_REFUSED(evc_clear_stop(c));
	CHILD_REFUSED(evc_free(c));
	CHILD(evc_should_stop(c) == stopped);
	_exit(0);
}

/* Fails when a call in the child does not look first whose coordinator it
   is. */
START_TEST(fork_while_another_thread_stands_anywhere)
{
	static const struct {
		struct place at;
		evc_fn *fn;
		bool stopped; /* in the child */
	} table[] = {
		{ { "cas", "record_request", 1 }, do_request, false },
		{ { "fd_write", "evc__settle", 1 }, do_request, true },
		{ { "cas", "close_round", 2 }, do_join, false }, /* the lock */
		{ { "store", "clear_stop", 2 }, do_clear, false }, /* lock */
		{ { "fd_drain", "evc__settle", 1 }, do_clear, false },
		{ { "add", "evc__wait_for_stop", 1 }, do_wait, false },
		{ { "or", "evc__refgate_shut", 1 }, do_free, false },
	};
	struct ask ask = {0, "ask"};
	struct actor a;
	int h, status;
	size_t i;
	pid_t pid;

	for (i = 0; i < N_OF(table); i++) {
		evc_coord *c = new_coord(NULL);

		ck_assert_int_ge(evc_stop_fd(c), 0);
		if (table[i].fn == do_clear)
			OK(evc_request_stop(c, 0, "stop"));
		h = hold_at(&table[i].at);
		actor_begin(&a, table[i].fn, c,
			    table[i].fn == do_request ? &ask : NULL);
		HELD(h);
		pid = fork();
		if (pid == 0)
			child(c, table[i].stopped);
		ck_assert_int_gt(pid, 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
			      "%s: the child ended with %#x", table[i].at.func,
			      (unsigned)status);
		/* The parent goes on as if nothing had been. */
		seam_release(h);
		if (table[i].fn == do_wait)
			OK(evc_request_stop(c, 0, "stop"));
		actor_end(&a);
		if (table[i].fn != do_free)
			OK(evc_free(c));
	}
}
END_TEST

/* A child may make a coordinator of its own, and give it the signals, whoever
   had the lock at the fork.  Fails when the child does not get a fresh one. */
START_TEST(fork_while_the_lock_of_the_signals_is_held)
{
	evc_signals_opts o = { .stop = { SIGUSR1 } };
	evc_coord *c = new_coord(NULL), *own = NULL;
	struct actor a;
	int h, status;
	pid_t pid;

	OK(evc_signals_start(c, &o));
	h = seam_hold("store", "disarm_signals", 1);
	actor_begin(&a, do_signals_stop, c, NULL);
	HELD(h);
	pid = fork();
	if (pid == 0) {
		signal(SIGALRM, SIG_DFL);
		alarm(20);
		CHILD(evc_new(NULL, NULL, &own) == 0);
		CHILD(evc_signals_start(own, &o) == 0);
		CHILD(evc_free(own) == 0);
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	seam_release(h);
	OK(actor_end(&a));
	OK(evc_free(c));
	ck_assert_int_eq(status, 0);
}
END_TEST

static evc_status
do_kick_signal(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	return evc_kick_signal(SIGUSR2);
}

/* Fails when the child does not get a fresh one. */
START_TEST(fork_while_the_lock_of_the_kick_signal_is_held)
{
	evc_coord *c = new_coord(NULL);
	struct actor a;
	int h, status;
	pid_t pid;

	h = seam_hold("store", "evc__kick_install", 1);
	actor_begin(&a, do_kick_signal, c, NULL);
	HELD(h);
	pid = fork();
	if (pid == 0) {
		signal(SIGALRM, SIG_DFL);
		alarm(20);
		/* The handler is there, and nobody has said so. */
		CHILD(evc_kick_signal(SIGUSR2) == -EVC_ALREADY_EXISTS);
		CHILD(evc_kick_signal(SIGRTMIN + 8) == 0);
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	seam_release(h);
	OK(actor_end(&a));
	OK(evc_free(c));
	ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- the lock of the coordinator is held ---- */

static evc_status
hold_and_end(evc_coord *c, void *arg)
{
	evc_id id;
	evc_status st = evc_hold_begin(c, "hold", NULL, &id);

	(void)arg;
	return st < 0 ? st : evc_hold_end(c, id);
}

static void
child_begins(void)
{
	signal(SIGALRM, SIG_DFL);
	alarm(20);
}

static void
own_coordinator(struct ev_loop *loop)
{
	evc_coord *own = NULL;

	CHILD(evc_new(loop, NULL, &own) == 0);
	CHILD(evc_request_stop(own, 0, NULL) == 0);
	CHILD((loop != NULL ? evc_run(own, NULL, NULL) :
			      evc_join(own, NULL, NULL)) == 0);
	CHILD(evc_free(own) == 0);
}

static void
right(void)
{
	_exit(0);
}

struct forker {
	struct t_gate there, go, done;
	bool returns; /* the child comes back to the library */
	int status;
};

static evc_status
forks(evc_coord *c, void *arg)
{
	struct forker *f = arg;
	pid_t pid;

	(void)c;
	gate_step(&f->there);
	(void)gate_await(&f->go, 1);
	pid = fork();
	if (pid == 0) {
		child_begins();
		if (f->returns) {
			/* What the end of the last thread is. */
			atexit(right);
			return 0;
		}
		own_coordinator(NULL);
		right();
	}
	if (pid > 0)
		(void)waitpid(pid, &f->status, 0);
	gate_step(&f->done);
	return 0;
}

/* Fails when the child is a member still, or tells its parent's coordinator of
   its end. */
static void
fork_of_a_member(bool returns)
{
	static const struct place at = { "cas", "evc__alive_add", 1 };
	struct forker f = { GATE_INIT, GATE_INIT, GATE_INIT, returns, -1 };
	evc_coord *c = new_coord(NULL);
	struct actor a;
	int h;

	OK(evc_thread_start(c, "forks", forks, &f, NULL, NULL));
	/* It has had the lock itself. */
	ck_assert(gate_await(&f.there, 1));
	h = hold_at(&at);
	actor_begin(&a, hold_and_end, c, NULL);
	HELD(h);
	gate_step(&f.go);
	ck_assert(gate_await(&f.done, 1));
	seam_release(h);
	OK(actor_end(&a));
	ck_assert_msg(f.status == 0, "the child ended with %#x",
		      (unsigned)f.status);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}

START_TEST(fork_of_a_member_while_the_lock_is_held)
{
	fork_of_a_member(false);
}
END_TEST

START_TEST(fork_of_a_member_that_returns_while_the_lock_is_held)
{
	fork_of_a_member(true);
}
END_TEST

static void
never(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	if (getpid() != *(pid_t *)arg)
		_exit(2);
}

static evc_status
never_run(evc_coord *c, void *arg)
{
	never(c, NULL, arg);
	return 0;
}

static void
keep_loop(struct ev_loop *loop, bool destroy)
{
	child_begins();
	if (destroy)
		ev_loop_destroy(loop);
	else {
		ev_loop_fork(loop);
		CHILD(ev_run(loop, 0) == 0);
		own_coordinator(loop);
		ev_loop_destroy(loop);
	}
	right();
}

/* Its loop is turned by the child, or destroyed.  Fails when anything of the
   parent's on it takes the lock, or holds ev_run. */
static void
fork_with_a_loop(bool destroy)
{
	static const struct place at = { "cas", "evc__alive_add", 1 };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	pid_t me = getpid(), pid;
	struct actor a;
	int h, status = -1;
	evc_id looper;

	OK(evc_looper_start(c, "looper", 0.001, never_run, &me, NULL,
			    &looper));
	OK(evc_on_stop(c, "hook", never_run, &me, NULL, NULL));
	OK(evc_join_start(c, never, &me, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	h = hold_at(&at);
	actor_begin(&a, hold_and_end, c, NULL);
	HELD(h);
	pid = fork();
	if (pid == 0)
		keep_loop(loop, destroy);
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	seam_release(h);
	OK(actor_end(&a));
	ck_assert_msg(status == 0, "the child ended with %#x",
		      (unsigned)status);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_run(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}

START_TEST(fork_with_a_loop_that_is_turned_while_the_lock_is_held)
{
	fork_with_a_loop(false);
}
END_TEST

START_TEST(fork_with_a_loop_that_is_destroyed_while_the_lock_is_held)
{
	fork_with_a_loop(true);
}
END_TEST

SCHEDULES_MAIN("fork", fork_while_another_thread_stands_anywhere,
	       fork_while_the_lock_of_the_signals_is_held,
	       fork_while_the_lock_of_the_kick_signal_is_held,
	       fork_of_a_member_while_the_lock_is_held,
	       fork_of_a_member_that_returns_while_the_lock_is_held,
	       fork_with_a_loop_that_is_turned_while_the_lock_is_held,
	       fork_with_a_loop_that_is_destroyed_while_the_lock_is_held)
