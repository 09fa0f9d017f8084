/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the seed tests share: one coordinator for each test, with or without a
 * home loop, and an account of threads and descriptors around it.  Functions
 * stand here and not in a file of their own, so that every .c file of this
 * folder is a program.
 */
#ifndef TESTS_SEEDS_H
#define TESTS_SEEDS_H

#include <ev.h>
#include <evcoord.h>

#include "../support/support.h"

static struct {
	evc_coord *c;
	struct ev_loop *loop;
	int threads, fds;
} test;

/* Fixture: count threads and descriptors before the test ... */
static inline void
count_before(void)
{
	test.c = NULL;
	test.loop = NULL;
	test.threads = t_count_threads();
	test.fds = t_count_fds();
}

/*
 * ... and after it: free the coordinator of begin(), which has to be allowed,
 * and find as many threads and descriptors as there were.
 */
static inline void
end_and_count(void)
{
	ck_assert_msg(evc_free(test.c) == 0, "evc_free: %s", evc_last_error());
	if (test.loop)
		ev_loop_destroy(test.loop);
	ck_assert_int_eq(t_settle_threads(test.threads), test.threads);
	ck_assert_int_eq(t_settle_fds(test.fds), test.fds);
}

/* How many threads there were before the test. */
static inline int
threads_before(void)
{
	return test.threads;
}

/* Make the coordinator of this test; with_loop: with a home on this thread. */
static inline evc_coord *
begin(int with_loop, const evc_config *cfg)
{
	if (with_loop) {
		test.loop = ev_loop_new(EVFLAG_AUTO);
		ck_assert_ptr_nonnull(test.loop);
	}
	ck_assert_int_eq(evc_new(test.loop, cfg, &test.c), 0);
	return test.c;
}

/* Start a plain thread; with a name, unless that is NULL. */
static inline pthread_t
spawn(const char *name, void *(*fn)(void *arg), void *arg)
{
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, fn, arg), 0);
	if (name)
		ck_assert_int_eq(pthread_setname_np(t, name), 0);
	return t;
}

static inline void *
await_gate(void *arg)
{
	gate_await(arg, 1);
	return NULL;
}

#endif
