/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The board: what is marked is found by whoever takes afterwards, places are used
 * again, and readers never meet memory that went away.
 */

#include "../support/api_util.h"
#include "../support/seam.h"

#include "base/notify_set.h"

enum { MANY = 300 }; /* several chunks */

struct item {
	struct notify_place at;
	int taken;
	bool in, marked;
};

static struct notify_set board;
static struct item item[MANY];

/* Each test begins anew, also where all run in one process. */
static void
anew(void)
{
	seam_reset();
	memset(&board, 0, sizeof board);
	memset(item, 0, sizeof item);
}

static void
add(int i)
{
	ck_assert(evc__notify_set_add(&board, &item[i], &item[i].at));
	ck_assert_ptr_eq(item[i].at.k->slot[item[i].at.i], &item[i]);
}

static void
add_all(int n)
{
	int i;

	for (i = 0; i < n; i++)
		add(i);
}

/* One pass: how many were found. */
static int
take_all(void)
{
	struct notify_cursor at = { NULL, 0 };
	struct item *it;
	int n = 0;

	while ((it = evc__notify_set_next(&board, &at)) != NULL) {
		it->taken++;
		n++;
	}
	return n;
}

static void
all_lit(void)
{
	int i;

	anew();
	add_all(MANY);
	for (i = 0; i < MANY; i++)
		evc__notify_mark(&item[i].at);
}

/* ---- one thread ---- */

START_TEST(an_empty_board_has_nothing_lit)
{
	anew();
	ck_assert_int_eq(take_all(), 0);
	ck_assert(evc__notify_set_reserve(&board));
	ck_assert_int_eq(take_all(), 0);
	evc__notify_set_free(&board);
}
END_TEST

START_TEST(what_is_lit_is_taken_once)
{
	int i;

	anew();
	add_all(MANY);
	ck_assert_int_eq(take_all(), 0); /* nobody is marked by coming in */
	for (i = 0; i < MANY; i += 7) {
		evc__notify_mark(&item[i].at);
		evc__notify_mark(&item[i].at); /* once more means nothing */
	}
	ck_assert_int_eq(take_all(), (MANY + 6) / 7);
	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(item[i].taken, i % 7 == 0);
	ck_assert_int_eq(take_all(), 0);
	for (i = 0; i < MANY; i++)
		evc__notify_mark(&item[i].at);
	ck_assert_int_eq(take_all(), MANY);
	evc__notify_set_free(&board);
}
END_TEST

START_TEST(places_are_all_different)
{
	int i, j, same = 0;

	anew();
	add_all(MANY);
	for (i = 0; i < MANY; i++)
		for (j = 0; j < i; j++)
			same += item[i].at.k == item[j].at.k &&
				item[i].at.i == item[j].at.i;
	ck_assert_int_eq(same, 0);
	evc__notify_set_free(&board);
}
END_TEST

/* Fails when who leaves takes its light along to the next one there. */
START_TEST(a_place_is_dark_for_the_next_one)
{
	struct notify_place old;

	anew();
	add(0);
	old = item[0].at;
	evc__notify_mark(&item[0].at);
	evc__notify_set_remove(&board, &item[0].at);
	ck_assert_ptr_null(item[0].at.k);
	add(1);
	ck_assert_ptr_eq(item[1].at.k, old.k);
	ck_assert_uint_eq(item[1].at.i, old.i);
	ck_assert_int_eq(take_all(), 0);
	evc__notify_set_free(&board);
}
END_TEST

/* Fails when free places before the chunk that is open are forgotten. */
START_TEST(places_are_used_again_without_memory)
{
	int i, h, round;

	anew();
	add_all(MANY);
	for (round = 1; round < 12; round++) {
		for (i = 0; i < MANY; i++)
			if ((i * 31 + round) % round == 0)
				evc__notify_set_remove(&board, &item[i].at);
		h = seam_fail_all("alloc", NULL, 1, ENOMEM);
		for (i = MANY - 1; i >= 0; i--)
			if ((i * 31 + round) % round == 0)
				add(i);
		ck_assert_int_eq(seam_arrivals(h), 0);
		seam_reset();
		for (i = 0; i < MANY; i++)
			evc__notify_mark(&item[i].at);
		ck_assert_int_eq(take_all(), MANY);
	}
	evc__notify_set_free(&board);
}
END_TEST

/* Fails when room is not what add uses. */
START_TEST(room_is_kept_for_one_more)
{
	bool had;
	int i, refused = 0;

	anew();
	for (i = 0; i < MANY; i++) {
		seam_fail_all("alloc", NULL, 1, ENOMEM);
		had = evc__notify_set_reserve(&board);
		ck_assert(evc__notify_set_add(&board, &item[i], &item[i].at) ==
			  had);
		seam_reset();
		if (had)
			continue;
		refused++;
		ck_assert(evc__notify_set_reserve(&board));
		seam_fail_all("alloc", NULL, 1, ENOMEM);
		add(i);
		seam_reset();
	}
	ck_assert_int_gt(refused, 2);
	for (i = 0; i < MANY; i++)
		evc__notify_mark(&item[i].at);
	ck_assert_int_eq(take_all(), MANY);
	evc__notify_set_free(&board);
}
END_TEST

/* The owner's lock is given up between two steps of a pass. */
START_TEST(who_leaves_during_a_pass_is_not_taken)
{
	struct notify_cursor at = { NULL, 0 };
	int i;

	all_lit();
	for (i = 0; i < MANY; i += 2) {
		ck_assert_ptr_eq(evc__notify_set_next(&board, &at), &item[i]);
		if (i + 1 < MANY)
			evc__notify_set_remove(&board, &item[i + 1].at);
	}
	ck_assert_ptr_null(evc__notify_set_next(&board, &at));
	ck_assert_int_eq(take_all(), 0);
	evc__notify_set_free(&board);
}
END_TEST

/* Who is called for one item may look at the board himself. */
START_TEST(a_pass_inside_a_pass_finds_what_is_left)
{
	struct notify_cursor at = { NULL, 0 };

	all_lit();
	ck_assert_ptr_eq(evc__notify_set_next(&board, &at), &item[0]);
	ck_assert_int_eq(take_all(), MANY - 1);
	ck_assert_ptr_null(evc__notify_set_next(&board, &at));
	evc__notify_set_free(&board);
}
END_TEST

/* Lit during a pass that has gone by: the next one has it. */
START_TEST(what_is_lit_behind_a_pass_waits_for_the_next)
{
	struct notify_cursor at = { NULL, 0 };

	anew();
	add_all(MANY);
	evc__notify_mark(&item[0].at);
	evc__notify_mark(&item[MANY - 1].at);
	ck_assert_ptr_eq(evc__notify_set_next(&board, &at), &item[0]);
	evc__notify_mark(&item[0].at);
	evc__notify_mark(&item[1].at); /* ahead: this pass has them */
	evc__notify_mark(&item[MANY - 2].at);
	ck_assert_ptr_eq(evc__notify_set_next(&board, &at), &item[1]);
	ck_assert_ptr_eq(evc__notify_set_next(&board, &at), &item[MANY - 2]);
	ck_assert_ptr_eq(evc__notify_set_next(&board, &at), &item[MANY - 1]);
	ck_assert_ptr_null(evc__notify_set_next(&board, &at));
	ck_assert_int_eq(take_all(), 1);
	ck_assert_int_eq(item[0].taken, 1);
	evc__notify_set_free(&board);
}
END_TEST

static void
come_or_leave(struct item *it)
{
	if (it->in)
		evc__notify_set_remove(&board, &it->at);
	else
		add((int)(it - item));
	it->in = !it->in;
	it->marked = false;
}

static void
light(struct item *it)
{
	if (!it->in)
		return;
	evc__notify_mark(&it->at);
	it->marked = true;
}

/* Exactly those are taken that were marked, and are in. */
static void
compare_a_pass(void)
{
	int i, wrong = 0;

	take_all();
	for (i = 0; i < MANY; i++) {
		wrong += item[i].taken != item[i].marked;
		item[i].taken = item[i].marked = 0;
	}
	ck_assert_int_eq(wrong, 0);
}

START_TEST(random_histories_agree_with_a_model)
{
	unsigned seed, step, r;

	for (seed = 1; seed <= 20; seed++) {
		anew();
		r = seed * 2654435761u;
		for (step = 0; step < 3000; step++) {
			struct item *it;

			r = r * 1664525 + 1013904223;
			it = &item[(r >> 16) % (seed % 2 ? 20 : MANY)];
			if (r >> 12 & 1)
				light(it);
			else if (r >> 13 & 1)
				come_or_leave(it);
			else
				compare_a_pass();
		}
		evc__notify_set_free(&board);
	}
}
END_TEST

/* ---- two threads ---- */

static void *
take_once(void *arg)
{
	(void)arg;
	take_all();
	return NULL;
}

/* Who takes stands between any two of its steps while the item is marked: it is
   taken by that pass, or by the next.  Fails when lights are put out after the
   items were looked at, or without being looked at. */
START_TEST(no_light_is_lost_though_who_takes_stands_anywhere)
{
	static const struct {
		const char *op;
		int nth;
	} step[] = {
		{ "load", 1 }, /* the first chunk */
		{ "load", 2 }, /* what is marked */
		{ "and", 1 },
		{ "load", 3 }, /* who stands there */
		{ "load", 4 }, /* what else is marked */
		{ "load", 5 }, /* the next chunk */
	};
	pthread_t t;
	size_t i;
	int h;

	for (i = 0; i < sizeof step / sizeof step[0]; i++) {
		anew();
		add_all(2);
		evc__notify_mark(&item[0].at);
		h = seam_hold_others(step[i].op, "evc__notify_set_next",
				     step[i].nth);
		OK(pthread_create(&t, NULL, take_once, NULL));
		ck_assert(seam_await(h));
		evc__notify_mark(&item[0].at);
		evc__notify_mark(&item[1].at);
		seam_release(h);
		OK(pthread_join(t, NULL));
		take_all();
		ck_assert_int_ge(item[0].taken, 1);
		ck_assert_int_eq(item[1].taken, 1);
		ck_assert_int_eq(take_all(), 0);
		evc__notify_set_free(&board);
	}
}
END_TEST

enum { LIGHTERS = 3, LIGHTS = 20000 };

static _Atomic uint32_t work[LIGHTERS];

static void *
light_often(void *arg)
{
	ptrdiff_t own = (_Atomic uint32_t *)arg - work;
	int i;

	for (i = 0; i < LIGHTS; i++) {
		sync_add(&work[own], 1);
		evc__notify_mark(&item[own].at);
	}
	return NULL;
}

/* One pass; true: all of it has been taken. */
static bool
take_work(uint32_t *got)
{
	struct notify_cursor at = { NULL, 0 };
	struct item *it;
	int i, n;

	while ((it = evc__notify_set_next(&board, &at)) != NULL)
		got[it - item] += sync_xchg(&work[it - item], 0);
	for (i = n = 0; i < LIGHTERS; i++)
		n += got[i] == LIGHTS;
	return n == LIGHTERS;
}

/* All that was done before a light is seen by who takes it. */
START_TEST(lights_of_many_threads_are_all_taken)
{
	uint32_t got[LIGHTERS] = { 0 };
	struct t_crowd k;
	int i;

	anew();
	add_all(LIGHTERS);
	for (i = 0; i < LIGHTERS; i++)
		sync_store(&work[i], 0);
	crowd_begin(&k, LIGHTERS, light_often, work, sizeof(work[0]));
	UNTIL(take_work(got));
	crowd_end(&k);
	evc__notify_set_free(&board);
}
END_TEST

API_MAIN("board", an_empty_board_has_nothing_lit, what_is_lit_is_taken_once,
	 places_are_all_different, a_place_is_dark_for_the_next_one,
	 places_are_used_again_without_memory, room_is_kept_for_one_more,
	 who_leaves_during_a_pass_is_not_taken,
	 what_is_lit_behind_a_pass_waits_for_the_next,
	 a_pass_inside_a_pass_finds_what_is_left,
	 random_histories_agree_with_a_model,
	 no_light_is_lost_though_who_takes_stands_anywhere,
	 lights_of_many_threads_are_all_taken)
