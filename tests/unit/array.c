/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The growing array: elements stay when the array moves, and an array without
 * memory for more stays as it is.
 */

#include "../support/api_util.h"
#include "../support/seam.h"

#include "base/array.h"
#include "base/sync.h"

static uint64_t *at;
static size_t n, room;

static void
anew(void)
{
	seam_reset();
	sync_free(at);
	at = NULL;
	n = room = 0;
}

static void
add_upto(size_t end)
{
	while (n < end) {
		ck_assert(ARRAY_RESERVE(at, n, room, 1));
		at[n] = n * 3;
		n++;
	}
}

static void
check_all(void)
{
	size_t i;

	for (i = 0; i < n; i++)
		ck_assert_uint_eq(at[i], i * 3);
}

START_TEST(elements_stay_when_the_array_moves)
{
	anew();
	add_upto(10000);
	check_all();
	ck_assert_uint_ge(room, n);
	ck_assert_uint_le(room, 2 * n);
	anew();
}
END_TEST

START_TEST(room_for_many_is_made_at_once)
{
	anew();
	add_upto(3);
	ck_assert(ARRAY_RESERVE(at, n, room, 1000));
	ck_assert_uint_ge(room, 1003);
	seam_fail_all("alloc", "evc__array_grow", 1, ENOMEM);
	add_upto(1003);
	check_all();
	anew();
}
END_TEST

START_TEST(an_array_without_memory_for_more_stays_as_it_is)
{
	uint64_t *before;
	size_t had;

	anew();
	seam_fail("alloc", "evc__array_grow", 1, ENOMEM);
	ck_assert(!ARRAY_RESERVE(at, n, room, 1));
	ck_assert_ptr_null(at);
	ck_assert_uint_eq(room, 0);
	add_upto(1);
	add_upto(room);
	before = at;
	had = room;
	seam_fail("alloc", "evc__array_grow", 1, ENOMEM);
	ck_assert(!ARRAY_RESERVE(at, n, room, 1));
	ck_assert_ptr_eq(at, before);
	ck_assert_uint_eq(room, had);
	check_all();
	add_upto(had + 1);
	check_all();
	anew();
}
END_TEST

START_TEST(sizes_that_no_memory_has_are_refused)
{
	static const size_t many[] = { SIZE_MAX, SIZE_MAX - 4, SIZE_MAX / 8 + 1,
				       SIZE_MAX / 8 - 4, SIZE_MAX / 16 };
	uint64_t *before;
	size_t i, had;

	anew();
	add_upto(5);
	before = at;
	had = room;
	for (i = 0; i < sizeof many / sizeof *many; i++) {
		ck_assert(!ARRAY_RESERVE(at, n, room, many[i]));
		ck_assert_ptr_eq(at, before);
		ck_assert_uint_eq(room, had);
	}
	check_all();
	anew();
}
END_TEST

/* Elements of any size: of a byte, and larger than the first memory. */
START_TEST(bytes_and_large_elements_grow_alike)
{
	struct large {
		char c[1000];
	} *l = NULL;
	char *bytes = NULL;
	size_t i, l_room = 0, bytes_room = 0;

	for (i = 0; i < 100; i++) {
		ck_assert(ARRAY_RESERVE(l, i, l_room, 1));
		memset(&l[i], (int)i, sizeof l[i]);
		ck_assert(ARRAY_RESERVE(bytes, i * 10, bytes_room, 10));
		memset(bytes + i * 10, (int)i, 10);
	}
	for (i = 0; i < 100; i++) {
		ck_assert_int_eq(l[i].c[0], (int)i);
		ck_assert_int_eq(l[i].c[999], (int)i);
		ck_assert_int_eq(bytes[i * 10], (int)i);
		ck_assert_int_eq(bytes[i * 10 + 9], (int)i);
	}
	sync_free(l);
	sync_free(bytes);
}
END_TEST

API_MAIN("array", elements_stay_when_the_array_moves,
	 room_for_many_is_made_at_once,
	 an_array_without_memory_for_more_stays_as_it_is,
	 sizes_that_no_memory_has_are_refused,
	 bytes_and_large_elements_grow_alike)
