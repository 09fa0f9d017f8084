/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stop-aware waits, stepped: a stop, a clear, a free, a signal of a
 * condition or the end of a call, while the one who waits stands between its
 * look and its sleep.
 */
#include "steps.h"

#include "../support/wait_util.h"

static evc_status
do_wait_now(evc_coord *c, void *arg)
{
	(void)c;
	return wait_now(arg);
}

#define FREED(st) ck_assert_int_eq((st), -EVC_FAILED_PRECONDITION)

/* ---- stops ---- */

/* Fails when a wait looks at the stop before it is counted, or before it has
   read the word that it sleeps on. */
START_TEST(a_stop_while_it_stands_anywhere)
{
	struct stepped s;
	struct wait w;
	int way, step, steps = 0;
	bool stands;

	for (way = 0; way < N_WAITS; way++) {
		for (step = 1, stands = true; stands; step++) {
			evc_coord *c = new_coord(NULL);

			wait_make(&w, way, c, INFINITY);
			stands = step_begin(&s, step, do_wait_now, c, &w);
			OK(evc_request_stop(c, 0, "stop"));
			STOPPED(step_end(&s));
			wait_drop(&w);
			OK(evc_free(c));
			steps += way == BY_CALL;
		}
		STEPS(step);
	}
	seam_reset();
	hangs_end(steps);
}
END_TEST

/* Where a wait has looked once, and does not sleep yet.  counted: a clear waits
   for it there. */
static const struct window {
	int way;
	struct place at;
	bool counted;
} windows[] = {
	{ BY_SLEEP, { "futex_wait", "wait_until", 1 }, false },
	{ BY_WAIT_FD, { "load", "evc__stop_came", 1 }, false },
	{ BY_WAIT_FD, { "add", "evc__readers_enter", 1 }, false },
	{ BY_WAIT_FD, { "load", "evc__stop_came", 2 }, true },
	{ BY_WAIT_FD, { "ppoll", "poll_once", 1 }, true },
	{ BY_POLL, { "add", "evc__readers_enter", 1 }, false },
	{ BY_POLL, { "ppoll", "poll_once", 1 }, true },
	{ BY_UNTIL, { "load", "wait_true", 2 }, false },
	{ BY_UNTIL, { "load", "evc__stop_came", 1 }, false },
	{ BY_UNTIL, { "unlock", "wait_true", 1 }, false },
	{ BY_UNTIL, { "load", "evc__alarm_sleep", 1 }, false },
	{ BY_UNTIL, { "futex_wait", "evc__alarm_sleep", 1 }, false },
	{ BY_CALL, { "lock", "enlist_caller", 1 }, false },
	{ BY_CALL, { "thread_create", "create_thread", 1 }, false },
	{ BY_CALL, { "load", "wait_finished", 1 }, false },
	{ BY_CALL, { "futex_wait", "evc__alarm_sleep", 1 }, false },
};

/* Fails when only the flag ends a wait, when the number of stops is first read
   after it is counted, and when a clear does not wait for who sleeps on the
   descriptor that it is about to drain. */
START_TEST(a_stop_that_has_been_and_gone_while_it_stands_there)
{
	struct actor a, k;
	struct wait w;
	size_t i;
	int h;

	for (i = 0; i < N_OF(windows); i++) {
		evc_coord *c = new_coord(NULL);

		wait_make(&w, windows[i].way, c, INFINITY);
		h = hold_at(&windows[i].at);
		actor_begin(&a, do_wait_now, c, &w);
		HELD(h);
		OK(evc_request_stop(c, 0, "stop"));
		actor_begin(&k, do_clear, c, NULL);
		if (windows[i].counted)
			actor_sleeps(&k);
		else
			OK(actor_end(&k));
		seam_release(h);
		STOPPED(actor_end(&a));
		if (windows[i].counted)
			OK(actor_end(&k));
		ck_assert(!evc_should_stop(c));
		wait_drop(&w);
		OK(evc_free(c));
		seam_reset();
	}
	/* Two of the calls have begun nothing. */
	hangs_end(4);
}
END_TEST

/* What it waits for is there as well.  Fails when it looks at the stop only
   before it sleeps. */
START_TEST(a_stop_wins_over_data_that_comes_beside_it)
{
	evc_coord *c = new_coord(NULL);
	struct actor a;
	struct wait w;
	int way, h;

	for (way = BY_WAIT_FD; way <= BY_POLL; way++) {
		wait_make(&w, way, c, INFINITY);
		h = seam_hold("ppoll", "poll_once", 1);
		actor_begin(&a, do_wait_now, c, &w);
		HELD(h);
		OK(eventfd_write(w.fd, 1));
		OK(evc_request_stop(c, 0, "stop"));
		seam_release(h);
		STOPPED(actor_end(&a));
		OK(evc_clear_stop(c));
		wait_drop(&w);
		seam_reset();
	}
	OK(evc_free(c));
}
END_TEST

/* ---- free ---- */

/* evc_free has not seen it, and waits for it.  Fails when a wait does not look
   whether it is still wanted. */
START_TEST(a_free_of_one_that_is_not_counted_yet)
{
	static const struct window uncounted[] = {
		{ BY_SLEEP, { "add", "evc__wait_for_stop", 1 }, false },
		{ BY_WAIT_FD, { "add", "wait_counted", 1 }, false },
		{ BY_POLL, { "add", "wait_counted", 1 }, false },
		{ BY_CALL, { "lock", "enlist_caller", 1 }, false },
	};
	struct actor a, f;
	struct wait w;
	size_t i;
	int h;

	for (i = 0; i < N_OF(uncounted); i++) {
		evc_coord *c = new_coord(NULL);

		wait_make(&w, uncounted[i].way, c, INFINITY);
		h = hold_at(&uncounted[i].at);
		actor_begin(&a, do_wait_now, c, &w);
		HELD(h);
		actor_begin(&f, do_free, c, NULL);
		actor_sleeps(&f);
		seam_release(h);
		FREED(actor_end(&a));
		OK(actor_end(&f));
		wait_drop(&w);
		seam_reset();
	}
	ck_assert_int_eq(atomic_load(&hang_begun), 0);
	ck_assert_int_eq(atomic_load(&hang_released), 0);
}
END_TEST

/* It goes on between evc_free's checks and its shutting of the gate: into its
   sleep, or to right before it.  Fails when the descriptor does not say that
   the gate is shut. */
START_TEST(a_free_of_one_that_falls_asleep_meanwhile)
{
	struct actor a, f;
	struct wait w;
	int counts, shuts, sleeps_at, before;

	if (t_under_qemu())
		T_SKIP("/proc shows the calls of the emulator");
	for (before = 0; before < 2; before++) {
		evc_coord *c = new_coord(NULL);

		wait_make(&w, BY_WAIT_FD, c, INFINITY);
		counts = seam_hold("add", "wait_counted", 1);
		shuts = seam_hold("or", "evc__refgate_shut", 1);
		actor_begin(&a, do_wait_now, c, &w);
		HELD(counts);
		actor_begin(&f, do_free, c, NULL);
		HELD(shuts);
		sleeps_at = seam_hold("ppoll", "poll_once", before ? 1 : 99);
		seam_release(counts);
		if (before)
			HELD(sleeps_at);
		else
			UNTIL(is_in_poll(atomic_load(&a.tid)));
		seam_release(shuts);
		if (before) {
			actor_sleeps(&f);
			seam_release(sleeps_at);
		}
		FREED(actor_end(&a));
		OK(actor_end(&f));
		wait_drop(&w);
		seam_reset();
	}
}
END_TEST

/* One who makes the descriptor has not drained it yet when evc_free makes it
   readable.  Fails when who has drained does not look at the gate again. */
START_TEST(a_free_while_another_drains_the_descriptor)
{
	evc_coord *c = new_coord(NULL);
	int makes, waits, shuts, drains, sleeps_at;
	struct actor maker, sleeper, f;
	struct wait w[2];

	wait_make(&w[0], BY_WAIT_FD, c, INFINITY);
	wait_make(&w[1], BY_WAIT_FD, c, INFINITY);
	makes = seam_hold("add", "wait_counted", 1);
	shuts = seam_hold("or", "evc__refgate_shut", 1);
	drains = seam_hold("fd_drain", "evc__settle", 1);
	actor_begin(&maker, do_wait_now, c, &w[0]);
	HELD(makes);
	waits = seam_hold("add", "wait_counted", 1);
	actor_begin(&sleeper, do_wait_now, c, &w[1]);
	HELD(waits);
	actor_begin(&f, do_free, c, NULL);
	HELD(shuts);
	seam_release(makes);
	HELD(drains);
	sleeps_at = seam_hold("ppoll", "poll_once", 1);
	seam_release(waits);
	HELD(sleeps_at);
	seam_release(shuts);
	actor_sleeps(&f);
	seam_release(drains);
	FREED(actor_end(&maker));
	seam_release(sleeps_at);
	FREED(actor_end(&sleeper));
	OK(actor_end(&f));
	wait_drop(&w[0]);
	wait_drop(&w[1]);
}
END_TEST

/* ---- conditions ---- */

struct box {
	evc_cond *cond;
	pthread_mutex_t mutex;
	bool full; /* mutex */
};

static struct box *
new_box(evc_coord *c)
{
	struct box *b = calloc(1, sizeof(*b));

	ck_assert_ptr_nonnull(b);
	pthread_mutex_init(&b->mutex, NULL);
	OK(evc_cond_new(c, &b->cond));
	return b;
}

static void
box_free(struct box *b)
{
	OK(evc_cond_free(b->cond));
	pthread_mutex_destroy(&b->mutex);
	free(b);
}

static bool
is_full(void *arg)
{
	return ((struct box *)arg)->full;
}

static evc_status
do_take(evc_coord *c, void *arg)
{
	struct box *b = arg;
	evc_status st;

	(void)c;
	pthread_mutex_lock(&b->mutex);
	st = evc_cond_wait(b->cond, &b->mutex, is_full, b, INFINITY);
	pthread_mutex_unlock(&b->mutex);
	return st;
}

#define RING_STEPS 3 /* operations of a signal */

static evc_status
do_put(evc_coord *c, void *arg)
{
	struct box *b = arg;

	(void)c;
	pthread_mutex_lock(&b->mutex);
	b->full = true;
	pthread_mutex_unlock(&b->mutex);
	evc_cond_signal(b->cond);
	return 0;
}

/* One signals while the other stands before any of its operations, goes on to
   its sleep while the signaller stands before any of its own, and is woken.
   Fails when the word is read after what the mutex guards was looked at, and
   when who waits is counted after it has given the mutex up. */
START_TEST(a_signal_while_the_waiter_stands_anywhere)
{
	struct stepped take, put;
	bool stands = true;
	int step, put_step;

	for (step = 1; stands; step++)
		for (put_step = 1; put_step <= RING_STEPS + 1; put_step++) {
			evc_coord *c = new_coord(NULL);
			struct box *b = new_box(c);

			stands = step_begin(&take, step, do_take, c, b);
			/* It may have to wait for the mutex first. */
			step_beside(&put, put_step, do_put, c, b);
			seam_release(atomic_load(&take.hold));
			has_ended(&take.a);
			OK(step_end(&put));
			OK(actor_end(&take.a));
			box_free(b);
			OK(evc_free(c));
		}
	STEPS(step);
}
END_TEST

/* Fails when the word is moved before what it tells of is so. */
START_TEST(a_waiter_that_comes_while_the_signaller_stands_anywhere)
{
	struct stepped s;
	struct actor take[2];
	bool stands = true;
	int step;

	for (step = 1; stands; step++) {
		evc_coord *c = new_coord(NULL);
		struct box *b = new_box(c);

		/* One waits for it already. */
		actor_begin(&take[0], do_take, c, b);
		actor_sleeps(&take[0]);
		stands = step_begin(&s, step, do_put, c, b);
		actor_begin(&take[1], do_take, c, b);
		OK(actor_end(&take[1]));
		OK(step_end(&s));
		OK(actor_end(&take[0]));
		box_free(b);
		OK(evc_free(c));
	}
	ck_assert_int_ge(step, RING_STEPS + 1);
}
END_TEST

static evc_status
do_ring(evc_coord *c, void *arg)
{
	(void)c;
	evc_cond_signal(arg);
	return 0;
}

static evc_status
do_wait_any(evc_coord *c, void *arg)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	evc_status st;

	(void)c;
	pthread_mutex_lock(&mutex);
	st = evc_cond_wait(arg, &mutex, NULL, NULL, INFINITY);
	pthread_mutex_unlock(&mutex);
	return st;
}

/* Whom it has woken frees the condition.  Fails, with a sanitizer, when who
   signals touches it once it has moved the word. */
START_TEST(a_signaller_that_stands_anywhere_while_the_condition_is_freed)
{
	struct actor wait;
	struct stepped s;
	bool stands = true, woken;
	int step, sleeps_at, n_woken = 0;

	if (t_under_valgrind())
		T_SKIP("the wake names an address that is gone");
	for (step = 1; stands; step++) {
		evc_coord *c = new_coord(NULL);
		evc_cond *cond = NULL;

		seam_reset();
		OK(evc_cond_new(c, &cond));
		sleeps_at = seam_hold("futex_wait", "evc__alarm_sleep", 1);
		actor_begin(&wait, do_wait_any, c, cond);
		HELD(sleeps_at);
		stands = step_beside(&s, step, do_ring, c, cond);
		seam_release(sleeps_at);
		woken = has_ended(&wait);
		if (!woken)
			OK(step_end(&s));
		OK(actor_end(&wait));
		OK(evc_cond_free(cond));
		OK(evc_free(c));
		if (woken)
			OK(step_end(&s));
		n_woken += woken && stands;
	}
	ck_assert_int_ge(n_woken, 1);
}
END_TEST

/* ---- calls: their threads are nobody's to join, so no place that one of them
   may look at is used again ---- */

struct called {
	double timeout;
	atomic_int released;
	int result;
};

static int
seven(void *arg)
{
	(void)arg;
	return 7;
}

static void
count_release(void *arg)
{
	atomic_fetch_add(&((struct called *)arg)->released, 1);
}

static evc_status
do_call(evc_coord *c, void *arg)
{
	struct called *k = arg;

	return evc_call_detached(c, "x", seven, k, count_release, k->timeout,
				 &k->result);
}

/* Fails when the caller does not leave a mark, and when the thread looks for it
   before it sets its own. */
START_TEST(a_call_whose_function_has_ended_and_did_not_say_so)
{
	struct called k = {.timeout = INFINITY, .result = 77};
	int threads = t_count_threads(), h;
	evc_coord *c = new_coord(NULL);
	struct actor a;

	h = seam_hold("or", "finish_call", 1);
	actor_begin(&a, do_call, c, &k);
	HELD(h);
	OK(evc_request_stop(c, 0, "stop"));
	STOPPED(actor_end(&a));
	ck_assert_int_eq(k.result, 77);
	OK(evc_free(c));
	ck_assert_int_eq(atomic_load(&k.released), 0);
	seam_release(h);
	UNTIL(atomic_load(&k.released) == 1);
	ck_assert_int_eq(t_settle_threads(threads), threads);
}
END_TEST

/* Its time is over, or a stop is there, but the end of the function is first.
   Fails when the caller does not look at what it finds beside its mark. */
START_TEST(a_call_whose_function_ends_while_the_caller_is_leaving)
{
	int threads = t_count_threads(), ends, leaves, by_stop;
	struct actor a;

	for (by_stop = 0; by_stop < 2; by_stop++) {
		struct called k = {.timeout = by_stop ? INFINITY : 0.001,
				   .result = 77};
		evc_coord *c = new_coord(NULL);

		ends = seam_hold("or", "finish_call", 1);
		leaves = seam_hold("or", "run_call", 1);
		actor_begin(&a, do_call, c, &k);
		HELD(ends);
		if (by_stop)
			OK(evc_request_stop(c, 0, "stop"));
		HELD(leaves);
		seam_release(ends);
		ck_assert_int_eq(t_settle_threads(threads + 1), threads + 1);
		ck_assert(!atomic_load(&a.done));
		seam_release(leaves);
		OK(actor_end(&a));
		ck_assert_int_eq(k.result, 7);
		ck_assert_int_eq(atomic_load(&k.released), 0);
		OK(evc_free(c));
	}
}
END_TEST

/* Fails when the end of the function does not move the word that the caller
   sleeps on. */
START_TEST(a_call_whose_function_ends_before_the_caller_sleeps)
{
	static const struct place places[] = {
		{"load", "wait_finished", 1},
		{"load", "evc__stop_came", 2},
		{"load", "evc__alarm_sleep", 1},
		{"futex_wait", "evc__alarm_sleep", 1},
	};
	int threads = t_count_threads(), h, ends;
	struct actor a;
	size_t i;

	for (i = 0; i < N_OF(places); i++) {
		struct called k = {.timeout = INFINITY, .result = 77};
		evc_coord *c = new_coord(NULL);

		/* Else it might be too fast for the caller to come there. */
		ends = seam_hold("or", "finish_call", 1);
		h = hold_at(&places[i]);
		actor_begin(&a, do_call, c, &k);
		HELD(h);
		HELD(ends);
		seam_release(ends);
		ck_assert_int_eq(t_settle_threads(threads + 1), threads + 1);
		seam_release(h);
		OK(actor_end(&a));
		ck_assert_int_eq(k.result, 7);
		OK(evc_free(c));
	}
}
END_TEST

/* The caller has seen the end, and gone.  Fails, with a sanitizer, when the
   thread touches the block after its mark. */
START_TEST(a_call_whose_thread_stands_before_its_wake)
{
	struct called k = {.timeout = INFINITY, .result = 77};
	evc_coord *c = new_coord(NULL);
	struct actor a;
	int h;

	h = seam_hold("futex_wake", "finish_call", 1);
	actor_begin(&a, do_call, c, &k);
	HELD(h);
	/* It ends the sleep of the caller, and comes too late for more. */
	OK(evc_request_stop(c, 0, "stop"));
	OK(actor_end(&a));
	ck_assert_int_eq(k.result, 7);
	ck_assert_int_eq(atomic_load(&k.released), 0);
	OK(evc_free(c));
	seam_release(h);
}
END_TEST

SCHEDULES_MAIN("waits", a_stop_while_it_stands_anywhere,
	       a_stop_that_has_been_and_gone_while_it_stands_there,
	       a_stop_wins_over_data_that_comes_beside_it,
	       a_free_of_one_that_is_not_counted_yet,
	       a_free_of_one_that_falls_asleep_meanwhile,
	       a_free_while_another_drains_the_descriptor,
	       a_signal_while_the_waiter_stands_anywhere,
	       a_waiter_that_comes_while_the_signaller_stands_anywhere,
	       a_signaller_that_stands_anywhere_while_the_condition_is_freed,
	       a_call_whose_function_has_ended_and_did_not_say_so,
	       a_call_whose_function_ends_while_the_caller_is_leaving,
	       a_call_whose_function_ends_before_the_caller_sleeps,
	       a_call_whose_thread_stands_before_its_wake)
