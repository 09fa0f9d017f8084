/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two ways to know that nobody is inside any more, stepped: the threads
 * stand where the test wants them.
 */

#include "../support/api_util.h"
#include "../support/seam.h"

#include "base/refgate.h"

/* ---- gate ---- */

static struct refgate door;
static atomic_int shut, refused;

static void *
shut_it(void *arg)
{
	(void)arg;
	evc__refgate_close(&door);
	atomic_store(&shut, 1);
	return NULL;
}

static void *
come_late(void *arg)
{
	(void)arg;
	atomic_store(&refused, evc__refgate_enter(&door) ? -1 : 1);
	return NULL;
}

/* Each test begins anew, also where all run in one process. */
static void
anew(void)
{
	seam_reset();
	memset(&door, 0, sizeof door);
	atomic_store(&shut, 0);
	atomic_store(&refused, 0);
}

static pthread_t
spawn(void *(*fn)(void *))
{
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, fn, NULL), 0);
	return t;
}

START_TEST(gate_closes_at_once_when_nobody_is_inside)
{
	anew();
	ck_assert(evc__refgate_enter(&door));
	evc__refgate_leave(&door);
	evc__refgate_close(&door);
	ck_assert(!evc__refgate_enter(&door));
	ck_assert(!evc__refgate_enter(&door));
	ck_assert_uint_eq(atomic_load(&door.n), 1);
}
END_TEST

START_TEST(gate_waits_for_all_inside_and_refuses_who_comes_late)
{
	pthread_t t, late;
	int asleep;

	anew();
	asleep = seam_hold("futex_wait", "evc__refgate_close", 1);
	ck_assert(evc__refgate_enter(&door));
	ck_assert(evc__refgate_enter(&door));
	t = spawn(shut_it);
	ck_assert(seam_await(asleep));
	late = spawn(come_late);
	ck_assert_int_eq(pthread_join(late, NULL), 0);
	ck_assert_int_eq(atomic_load(&refused), 1);
	evc__refgate_leave(&door);
	seam_release(asleep);
	t_sleep(0.05);
	ck_assert_int_eq(atomic_load(&shut), 0); /* one is left */
	evc__refgate_leave(&door);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_int_eq(atomic_load(&shut), 1);
}
END_TEST

/* The last one leaves between the closer's look and its sleep. */
START_TEST(gate_loses_no_wake_up)
{
	pthread_t t;
	int asleep;

	anew();
	asleep = seam_hold("futex_wait", "evc__refgate_close", 1);
	ck_assert(evc__refgate_enter(&door));
	t = spawn(shut_it);
	ck_assert(seam_await(asleep));
	evc__refgate_leave(&door);
	ck_assert_int_eq(atomic_load(&shut), 0);
	seam_release(asleep);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
}
END_TEST

/* Somebody who is refused stands inside for a moment; the closer waits for
   that moment too, because the word is in memory that it will free. */
START_TEST(gate_waits_for_who_is_just_being_refused)
{
	pthread_t late, t;
	int leaving;

	anew();
	leaving = seam_hold("sub", "evc__refgate_leave", 1);
	atomic_store(&door.n, 1 | 2); /* closing, one is inside */
	late = spawn(come_late);
	ck_assert(seam_await(leaving));
	atomic_fetch_sub(&door.n, 2);
	t = spawn(shut_it);
	t_sleep(0.05);
	ck_assert_int_eq(atomic_load(&shut), 0);
	seam_release(leaving);
	ck_assert_int_eq(pthread_join(late, NULL), 0);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_int_eq(atomic_load(&refused), 1);
}
END_TEST

/* ---- walkers ---- */

static struct readers path;
static atomic_int quiet;

static void
walk_anew(void)
{
	seam_reset();
	memset(&path, 0, sizeof path);
	atomic_store(&quiet, 0);
}

static void *
wait_for_quiet(void *arg)
{
	(void)arg;
	evc__readers_quiet(&path);
	atomic_store(&quiet, 1);
	return NULL;
}

START_TEST(walkers_are_quiet_at_once_when_nobody_walks)
{
	walk_anew();
	evc__readers_quiet(&path);
	evc__readers_enter(&path);
	evc__readers_leave(&path);
	evc__readers_quiet(&path);
	ck_assert_uint_eq(atomic_load(&path.n), 0);
}
END_TEST

START_TEST(walkers_are_waited_for_and_never_shut_out)
{
	pthread_t t;
	int asleep;

	walk_anew();
	asleep = seam_hold("futex_wait", "evc__readers_quiet", 1);
	evc__readers_enter(&path);
	t = spawn(wait_for_quiet);
	ck_assert(seam_await(asleep));
	evc__readers_enter(&path); /* another one, while somebody waits */
	evc__readers_leave(&path);
	seam_release(asleep);
	t_sleep(0.05);
	ck_assert_int_eq(atomic_load(&quiet), 0); /* there was no moment */
	evc__readers_leave(&path);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_uint_eq(atomic_load(&path.n), 0);
}
END_TEST

/* There was a moment without walkers, but when the waiter looks there is
   another one: the moment counts. */
START_TEST(walkers_that_keep_entering_do_not_hold_up_who_waits)
{
	pthread_t t;
	int asleep;

	walk_anew();
	asleep = seam_hold("futex_wait", "evc__readers_quiet", 1);
	evc__readers_enter(&path);
	t = spawn(wait_for_quiet);
	ck_assert(seam_await(asleep));
	evc__readers_leave(&path);
	evc__readers_enter(&path);
	seam_release(asleep);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_int_eq(atomic_load(&quiet), 1);
	ck_assert_uint_eq(atomic_load(&path.n), 2);
	evc__readers_leave(&path);
	ck_assert_uint_eq(atomic_load(&path.n), 0);
}
END_TEST

/* The waiter has found nobody and is about to take its mark away. */
START_TEST(walkers_and_the_mark_of_a_wait_that_was_none)
{
	pthread_t t;
	int unmark;

	walk_anew();
	unmark = seam_hold("and", "evc__readers_quiet", 1);
	t = spawn(wait_for_quiet);
	ck_assert(seam_await(unmark));
	evc__readers_enter(&path);
	evc__readers_enter(&path);
	evc__readers_leave(&path);
	seam_release(unmark);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_uint_eq(atomic_load(&path.n), 2);
	evc__readers_leave(&path);
	ck_assert_uint_eq(atomic_load(&path.n), 0);
}
END_TEST

static atomic_bool enough;

static void *
walk_on(void *arg)
{
	(void)arg;
	while (!atomic_load(&enough)) {
		evc__readers_enter(&path);
		evc__readers_leave(&path);
	}
	return NULL;
}

START_TEST(walkers_at_random_never_hang_nor_lose_count)
{
	pthread_t t[2];
	int i;

	walk_anew();
	for (i = 0; i < 2; i++)
		t[i] = spawn(walk_on);
	for (i = 0; i < 2000; i++)
		evc__readers_quiet(&path);
	atomic_store(&enough, true);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(t[i], NULL), 0);
	ck_assert_uint_eq(atomic_load(&path.n), 0);
}
END_TEST

API_MAIN("gate", gate_closes_at_once_when_nobody_is_inside,
	 gate_waits_for_all_inside_and_refuses_who_comes_late,
	 gate_loses_no_wake_up, gate_waits_for_who_is_just_being_refused,
	 walkers_are_quiet_at_once_when_nobody_walks,
	 walkers_are_waited_for_and_never_shut_out,
	 walkers_that_keep_entering_do_not_hold_up_who_waits,
	 walkers_and_the_mark_of_a_wait_that_was_none,
	 walkers_at_random_never_hang_nor_lose_count)
