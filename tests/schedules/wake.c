/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking and walking, stepped: threads that wait for the stop, the stop
 * descriptor, and the table of who is told.
 */
#include "schedules.h"

#include "core/loop/reactor.h"

/* ---- waking ---- */

static void
until_it_waits(struct waiter *w)
{
	UNTIL(atomic_load(&w->tid) != 0);
	until_asleep(atomic_load(&w->tid));
}

static bool
waiter_end(struct waiter *w)
{
	UNTIL(atomic_load(&w->released));
	OK(pthread_join(w->thread, NULL));
	return w->answer;
}

/* Fails when the waiter looks only before it counts itself, and when it sleeps
   on another word than the one it has looked at. */
START_TEST(waking_of_a_waiter_that_does_not_sleep_yet)
{
	static const struct place places[] = {
		{"add", "evc__wait_for_stop", 1},
		{"load", "wait_until", 1},
		{"futex_wait", "wait_until", 1},
	};
	struct waiter w;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);

		h = hold_at(&places[i]);
		waiter_begin(&w, c, INFINITY);
		HELD(h);
		OK(evc_request_stop(c, 0, "stop"));
		seam_release(h);
		ck_assert(waiter_end(&w));
		OK(evc_free(c));
	}
}
END_TEST

/* Fails when only the flag releases a waiter. */
START_TEST(waking_by_a_stop_that_has_been_and_gone)
{
	evc_coord *c = new_coord(NULL);
	struct waiter w;
	int h;

	h = seam_hold("futex_wait", "wait_until", 1);
	waiter_begin(&w, c, INFINITY);
	HELD(h);
	OK(evc_request_stop(c, 0, "stop"));
	OK(evc_clear_stop(c));
	seam_release(h);
	ck_assert(waiter_end(&w));
	OK(evc_free(c));
}
END_TEST

/* evc_free has not seen the waiter, and waits for it.  Fails when a waiter does
   not look whether it is still wanted. */
START_TEST(waking_by_free_of_a_waiter_that_is_not_counted_yet)
{
	evc_coord *c = new_coord(NULL);
	struct waiter w;
	struct actor f;
	int h;

	h = seam_hold("add", "evc__wait_for_stop", 1);
	waiter_begin(&w, c, INFINITY);
	HELD(h);
	actor_begin(&f, do_free, c, NULL);
	actor_sleeps(&f);
	seam_release(h);
	ck_assert(!waiter_end(&w));
	OK(actor_end(&f));
}
END_TEST

/* The waiter goes on between evc_free's checks and its shutting of the gate:
   into its sleep, or to right before it.  Fails when evc_free wakes nobody, and
   when it does not change the word. */
START_TEST(waking_by_free_of_a_waiter_that_falls_asleep_meanwhile)
{
	struct waiter w;
	struct actor f;
	int counts, shuts, sleeps, before;

	for (before = 0; before < 2; before++) {
		evc_coord *c = new_coord(NULL);

		counts = seam_hold("add", "evc__wait_for_stop", 1);
		shuts = seam_hold("or", "evc__refgate_shut", 1);
		waiter_begin(&w, c, INFINITY);
		HELD(counts);
		actor_begin(&f, do_free, c, NULL);
		HELD(shuts);
		sleeps = seam_hold("futex_wait", "wait_until", before ? 1 : 9);
		seam_release(counts);
		if (before)
			HELD(sleeps);
		else
			until_it_waits(&w);
		seam_release(shuts);
		if (before) {
			actor_sleeps(&f);
			seam_release(sleeps);
		}
		ck_assert(!waiter_end(&w));
		OK(actor_end(&f));
	}
}
END_TEST

/* ---- the stop descriptor ---- */

/* Fails when who has written does not look again. */
START_TEST(settle_after_a_write_that_was_held_across_the_clear)
{
	evc_coord *c = new_coord(NULL);
	struct ask stop = {0, "stop"};
	int fd = evc_stop_fd(c), h;
	struct actor a;

	h = seam_hold("fd_write", "evc__settle", 1);
	actor_begin(&a, do_request, c, &stop);
	HELD(h);
	OK(evc_clear_stop(c));
	ck_assert(!readable(fd));
	seam_release(h);
	OK(actor_end(&a));
	ck_assert(!readable(fd));
	OK(evc_request_stop(c, 0, "next"));
	ck_assert(readable(fd));
	OK(evc_free(c));
}
END_TEST

/* Fails when who has drained does not look again. */
START_TEST(settle_after_a_drain_that_was_held_across_the_next_stop)
{
	static const struct place places[] = {
		{"load", "evc__settle", 1},
		{"load", "evc__settle", 2},
		{"load", "evc__settle", 3},
		{"fd_drain", "evc__settle", 1},
		{"load", "evc__settle", 4},
	};
	struct actor a;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);
		int fd = evc_stop_fd(c);

		OK(evc_request_stop(c, 0, "stop"));
		h = hold_at(&places[i]);
		actor_begin(&a, do_clear, c, NULL);
		HELD(h);
		OK(evc_request_stop(c, 0, "next"));
		seam_release(h);
		OK(actor_end(&a));
		ck_assert(readable(fd));
		OK(evc_clear_stop(c));
		ck_assert(!readable(fd));
		OK(evc_free(c));
	}
}
END_TEST

/* Fails when the descriptor's maker does not look for a stop that came before,
   and when it does not look again after its write. */
START_TEST(settle_of_the_maker_against_a_request_and_a_clear)
{
	static const struct place making[] = {
		{"cas", "evc_stop_fd", 1},
		{"load", "evc__settle", 1},
		{"load", "evc__settle", 2},
		{"load", "evc__settle", 3},
	};
	struct actor a;
	size_t i;
	int h;

	for (i = 0; i < N_OF(making); i++) {
		evc_coord *c = new_coord(NULL);

		h = hold_at(&making[i]);
		actor_begin(&a, do_stop_fd, c, NULL);
		HELD(h);
		OK(evc_request_stop(c, 0, "stop"));
		seam_release(h);
		ck_assert_int_ge(actor_end(&a), 0);
		ck_assert(readable(a.status));
		OK(evc_free(c));
		c = new_coord(NULL);
		OK(evc_request_stop(c, 0, "stop"));
		h = seam_hold("fd_write", "evc__settle", 1);
		actor_begin(&a, do_stop_fd, c, NULL);
		HELD(h);
		OK(evc_clear_stop(c));
		seam_release(h);
		ck_assert_int_ge(actor_end(&a), 0);
		ck_assert(!readable(a.status));
		OK(evc_free(c));
	}
}
END_TEST

/* Fails when the second asker trusts the first to have written. */
START_TEST(settle_of_a_second_asker_while_the_maker_is_frozen)
{
	static const struct place places[] = {
		{"cas", "evc_stop_fd", 1},
		{"load", "evc__settle", 1},
		{"fd_write", "evc__settle", 1},
	};
	struct actor a;
	size_t i;
	int h, fd, fds;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);

		fds = t_count_fds();
		OK(evc_request_stop(c, 0, NULL));
		h = hold_at(&places[i]);
		actor_begin(&a, do_stop_fd, c, NULL);
		HELD(h);
		fd = evc_stop_fd(c);
		ck_assert(readable(fd));
		seam_release(h);
		ck_assert_int_eq(actor_end(&a), fd);
		ck_assert(readable(fd));
		/* The one that came second has closed its own. */
		ck_assert_int_eq(t_settle_fds(fds + 1), fds + 1);
		OK(evc_free(c));
		ck_assert_int_eq(t_settle_fds(fds), fds);
	}
}
END_TEST

/* The descriptor's number may mean something else once it is closed.  Fails
   when evc_free closes it while somebody stands before the write. */
START_TEST(settle_is_waited_for_by_free)
{
	evc_coord *c = new_coord(NULL);
	struct actor a, f;
	int h;

	OK(evc_request_stop(c, 0, NULL));
	h = seam_hold("fd_write", "evc__settle", 1);
	actor_begin(&a, do_stop_fd, c, NULL);
	HELD(h);
	actor_begin(&f, do_free, c, NULL);
	actor_sleeps(&f);
	seam_release(h);
	ck_assert_int_ge(actor_end(&a), 0);
	OK(actor_end(&f));
}
END_TEST

/* ---- walk ---- */

/* A thread with a loop of its own, which leaves the coordinator when told. */
struct own_loop {
	struct t_gate attached, leave;
	bool destroys; /* the loop, without a detach */
	int pending;   /* had its loop been told when it was attached? */
};

static evc_status
attach_and_leave(evc_coord *c, void *arg)
{
	struct own_loop *o = arg;
	struct ev_loop *loop = ev_loop_new(0);
	evc_reactor *r = NULL;
	evc_status st = evc_reactor_attach(c, "own", loop, &r);

	o->pending = st == 0 && ev_async_pending(&r->waker->async);
	gate_step(&o->attached);
	gate_await(&o->leave, 1);
	if (st == 0 && !o->destroys)
		st = evc_reactor_detach(r);
	ev_loop_destroy(loop);
	return st;
}

/* Fails when who attaches does not look for a stop that came before it stood
   in the table. */
START_TEST(walk_of_a_request_while_a_loop_is_being_attached)
{
	static const struct place places[] = {
		{ "load", "find_free", 2 }, /* is there room? */
		{ "add", "evc__listen", 1 },
		{ "load", "find_free", 3 },
		{ "store", "evc__notify_set_add",
		  2 }, /* the first: on its bell */
		{ "load", "enlist_reactor", 1 },
	};
	struct actor a;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		struct own_loop o = {.attached = GATE_INIT, .leave = GATE_INIT};
		evc_coord *c = new_coord(NULL);

		h = hold_at(&places[i]);
		actor_begin(&a, attach_and_leave, c, &o);
		HELD(h);
		OK(evc_request_stop(c, 0, "stop"));
		seam_release(h);
		gate_step(&o.leave);
		OK(actor_end(&a));
		ck_assert(o.pending);
		OK(evc_free(c));
	}
}
END_TEST

/* Fails when the clear does not wait for walkers. */
START_TEST(walk_of_the_old_stop_is_over_before_the_new_round)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct ask stop = {0, "stop"};
	atomic_int told = 0;
	struct actor a, k;
	int h;

	OK(evc_on_stop(c, "hook", count_hook, &told, NULL, NULL));
	h = seam_hold("load", "next_of_kind", 1);
	actor_begin(&a, do_request, c, &stop);
	HELD(h);
	actor_begin(&k, do_clear, c, NULL);
	actor_sleeps(&k);
	seam_release(h);
	OK(actor_end(&k));
	OK(actor_end(&a));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(atomic_load(&told), 1);
	OK(evc_request_stop(c, 0, "next"));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(atomic_load(&told), 2);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* Fails when who leaves the table does not wait for walkers, and when a loop
   that is destroyed does not leave it. */
START_TEST(walk_before_a_loop_that_is_being_detached_or_destroyed)
{
	struct ask stop = {0, "stop"};
	struct actor a, d;
	int h, destroys;

	for (destroys = 0; destroys < 2; destroys++) {
		struct own_loop o = {GATE_INIT, GATE_INIT, destroys, 0};
		evc_coord *c = new_coord(NULL);

		actor_begin(&d, attach_and_leave, c, &o);
		ck_assert(gate_await(&o.attached, 1));
		h = seam_hold("load", "next_of_kind", 1);
		actor_begin(&a, do_request, c, &stop);
		HELD(h);
		gate_step(&o.leave);
		actor_sleeps(&d);
		seam_release(h);
		OK(actor_end(&a));
		OK(actor_end(&d));
		OK(evc_free(c));
	}
}
END_TEST

/* The walker has the loop in its hand already, and will ask it whether joins
   run there: a ring, by a thread that ends.  Fails as the one before. */
START_TEST(walk_that_holds_a_loop_that_is_being_detached)
{
	struct own_loop o = {.attached = GATE_INIT, .leave = GATE_INIT};
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct actor d;
	int h;

	/* Rings walk only while a join runs on some loop: on the first. */
	OK(evc_join_start(c, ignore_verdict, NULL, NULL));
	actor_begin(&d, attach_and_leave, c, &o);
	ck_assert(gate_await(&o.attached, 1));
	h = seam_hold_others("load", "ring_loops", 2);
	OK(evc_thread_start(c, "ends", return_at_once, NULL, NULL, NULL));
	HELD(h);
	gate_step(&o.leave);
	actor_sleeps(&d);
	seam_release(h);
	OK(actor_end(&d));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

SCHEDULES_MAIN("wake", waking_of_a_waiter_that_does_not_sleep_yet,
	       waking_by_a_stop_that_has_been_and_gone,
	       waking_by_free_of_a_waiter_that_is_not_counted_yet,
	       waking_by_free_of_a_waiter_that_falls_asleep_meanwhile,
	       settle_after_a_write_that_was_held_across_the_clear,
	       settle_after_a_drain_that_was_held_across_the_next_stop,
	       settle_of_the_maker_against_a_request_and_a_clear,
	       settle_of_a_second_asker_while_the_maker_is_frozen,
	       settle_is_waited_for_by_free,
	       walk_of_a_request_while_a_loop_is_being_attached,
	       walk_of_the_old_stop_is_over_before_the_new_round,
	       walk_before_a_loop_that_is_being_detached_or_destroyed,
	       walk_that_holds_a_loop_that_is_being_detached)
