/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The macros of base/sync.h with the seam open: each does its operation once,
 * on the object that it was given, and evaluates each argument once, as a plain
 * build does.  A test that steps a protocol would else step another one.
 */

#include "../support/api_util.h"

#include "base/sync.h"

/* Objects that are reached by an argument with a side effect. */
enum { N = 3 };

/* The argument moved on by one, and the middle object alone was touched. */
#define ONCE(call) \
	do { \
		i = 1; \
		call; \
		ck_assert_msg(i == 2, "evaluated %d times: %s", i - 1, #call); \
	} while (0)

#define LEFT(a, b, c) \
	do { \
		ck_assert_uint_eq(sync_load(&word[0]), (a)); \
		ck_assert_uint_eq(sync_load(&word[1]), (b)); \
		ck_assert_uint_eq(sync_load(&word[2]), (c)); \
	} while (0)

START_TEST(atomics_evaluate_their_object_once)
{
	_Atomic uint32_t word[N];
	uint32_t seen = 0, old;
	int i;

	for (i = 0; i < N; i++)
		sync_store(&word[i], 7);
	ONCE(seen = sync_load(&word[i++]));
	ck_assert_uint_eq(seen, 7);
	ONCE(seen = sync_load_sc(&word[i++]));
	ONCE(seen = sync_load_relaxed(&word[i++]));
	ONCE(sync_store(&word[i++], 1));
	LEFT(7, 1, 7);
	ONCE(sync_store_sc(&word[i++], 2));
	LEFT(7, 2, 7);
	ONCE(sync_store_relaxed(&word[i++], 3));
	LEFT(7, 3, 7);
	ONCE(seen = sync_add(&word[i++], 5));
	ck_assert_uint_eq(seen, 3);
	LEFT(7, 8, 7);
	ONCE(seen = sync_sub(&word[i++], 2));
	ck_assert_uint_eq(seen, 8);
	LEFT(7, 6, 7);
	ONCE(seen = sync_or(&word[i++], 1));
	ck_assert_uint_eq(seen, 6);
	LEFT(7, 7, 7);
	ONCE(seen = sync_and(&word[i++], 3));
	ck_assert_uint_eq(seen, 7);
	LEFT(7, 3, 7);
	ONCE(seen = sync_xchg(&word[i++], 9));
	ck_assert_uint_eq(seen, 3);
	LEFT(7, 9, 7);
	old = 8;
	ONCE(ck_assert(!sync_cas(&word[i++], &old, 10)));
	ck_assert_uint_eq(old, 9);
	ONCE(ck_assert(sync_cas(&word[i++], &old, 10)));
	LEFT(7, 10, 7);
}
END_TEST

/* Values as well, and those that an argument itself loads. */
START_TEST(atomics_evaluate_their_value_once)
{
	_Atomic uint32_t word = 1, other = 5;
	int i;

	ONCE(sync_store(&word, (uint32_t)i++));
	ck_assert_uint_eq(sync_load(&word), 1);
	ONCE(sync_add(&word, (uint32_t)i++));
	ck_assert_uint_eq(sync_load(&word), 2);
	ONCE(sync_xchg(&word, (uint32_t)i++));
	ck_assert_uint_eq(sync_load(&word), 1);
	sync_store(&word, sync_load(&word) + sync_add(&other, 1));
	ck_assert_uint_eq(sync_load(&word), 6);
	ck_assert_uint_eq(sync_load(&other), 6);
}
END_TEST

START_TEST(locks_and_futexes_evaluate_their_arguments_once)
{
	_Atomic uint32_t word[N];
	pthread_mutex_t m[N];
	struct epoll_event ev;
	uint64_t ns[N] = { 0, 0, SYNC_FOREVER };
	int i, fd;

	for (i = 0; i < N; i++) {
		sync_store(&word[i], 0);
		sync_lock_init(&m[i]);
	}
	ONCE(sync_lock(&m[i++]));
	ck_assert_int_eq(pthread_mutex_trylock(&m[1]), EBUSY);
	ONCE(sync_unlock(&m[i++]));
	OK(pthread_mutex_trylock(&m[1]));
	sync_unlock(&m[1]);
	ONCE(sync_futex_wake(&word[i++]));
	/* It is another value: no sleep. */
	ONCE(sync_futex_wait(&word[i++], 1, SYNC_FOREVER));
	ONCE(sync_futex_wait(&word[1], 0, ns[i++]));
	fd = sync_epoll();
	ck_assert_int_ge(fd, 0);
	ONCE(ck_assert_int_eq(sync_epoll_wait(fd, &ev, 1, ns[i++]), 0));
	sync_fd_close(fd);
	for (i = 0; i < N; i++)
		sync_lock_destroy(&m[i]);
}
END_TEST

API_MAIN("sync", atomics_evaluate_their_object_once,
	 atomics_evaluate_their_value_once,
	 locks_and_futexes_evaluate_their_arguments_once)
