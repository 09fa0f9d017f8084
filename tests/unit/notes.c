/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to an engine of many workers: those noted come out once, whatever the
 * number of the worker, and take memory for those that are noted.
 */

#include "../support/api_util.h"
#include "../support/seam.h"

#include "engine/notes.h"

static struct notes notes;

static evc_engine *
engine(void)
{
	return (evc_engine *)(void *)&notes;
}

/* A message is on its way, so none is posted to a loop. */
static void
anew(bool by_worker)
{
	memset(&notes, 0, sizeof(notes));
	evc__notes_init(&notes, NULL, NULL);
	notes.by_worker = by_worker;
	notes.posted = true;
}

static void
are(const struct noted_workers *w, const uint32_t *want, size_t n)
{
	ck_assert_uint_eq(w->n, n);
	ck_assert_mem_eq(w->at, want, n * sizeof(*want));
}

START_TEST(workers_behind_the_first_thousand)
{
	static const uint32_t kills[] = { 99999, 0, 1024 };
	static const uint32_t stacks[] = { 70000, 1023 };
	struct asked a;

	anew(false);
	evc__notes_kill(engine(), 99999);
	evc__notes_kill(engine(), 0);
	evc__notes_kill(engine(), 1024);
	evc__notes_kill(engine(), 1024);
	OK(evc__notes_stack(engine(), 70000));
	OK(evc__notes_stack(engine(), 1023));
	evc__notes_cancel_one(engine(), 88888, 7);
	a = evc__notes_asked(&notes);
	are(&a.kills, kills, 3);
	are(&a.stacks, stacks, 2);
	ck_assert_uint_eq(a.n_ones, 2);
	ck_assert_uint_eq(a.ones[0], 88888);
	ck_assert_uint_eq(a.ones[1], 7);
	/* Few are noted, whatever their numbers. */
	ck_assert_uint_lt(a.kills.room, 1024);
	evc__asked_free(&a);
	notes.posted = true;
	a = evc__notes_asked(&notes);
	ck_assert_uint_eq(a.kills.n + a.stacks.n + a.n_ones, 0);
	evc__asked_free(&a);
	evc__notes_destroy(&notes);
}
END_TEST

START_TEST(a_wake_names_its_worker_to_those_who_ask)
{
	static const uint32_t woken[] = { 5, 99999, 5 };
	struct asked a;

	anew(true);
	evc__notes_wake(engine(), 5);
	evc__notes_wake(engine(), 5);
	evc__notes_wake(engine(), 99999);
	evc__notes_wake(engine(), 5);
	evc__notes_wake(engine(), EVC_ENGINE_ANY);
	a = evc__notes_asked(&notes);
	are(&a.wakes, woken, 3);
	ck_assert(!a.wake_all);
	evc__asked_free(&a);
	evc__notes_destroy(&notes);
	anew(false);
	evc__notes_wake(engine(), 5);
	a = evc__notes_asked(&notes);
	ck_assert_uint_eq(a.wakes.n, 0);
	evc__asked_free(&a);
	evc__notes_destroy(&notes);
}
END_TEST

START_TEST(a_wake_without_memory_is_one_of_all)
{
	struct asked a;

	anew(true);
	seam_fail("alloc", "evc__array_grow", 1, ENOMEM);
	evc__notes_wake(engine(), 5);
	seam_reset();
	a = evc__notes_asked(&notes);
	ck_assert_uint_eq(a.wakes.n, 0);
	ck_assert(a.wake_all);
	evc__asked_free(&a);
	evc__notes_destroy(&notes);
}
END_TEST

API_MAIN("notes", workers_behind_the_first_thousand,
	 a_wake_names_its_worker_to_those_who_ask,
	 a_wake_without_memory_is_one_of_all)
