/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of tests/schedules share.  They step the protocols of the core
 * one operation at a time: a thread is held before an operation of the library
 * (support/seam.h), the test does what must not go wrong meanwhile, and lets it
 * go on.
 *
 * A name of a function and of an operation in a hold is a place in src/: who
 * changes the order of operations there finds the test here that watches it.
 * A place that is never reached fails the test, so no hold is silently void.
 */
#ifndef TESTS_SCHEDULES_SCHEDULES_H
#define TESTS_SCHEDULES_SCHEDULES_H

#include "../support/api_util.h"
#include "../support/seam.h"

#include <ev.h>

/* Somebody has come to the place of a hold, and stands there. */
#define HELD(h) \
	ck_assert_msg(seam_await(h), "nobody came to the place: %s", #h)

/* The main of a program of schedules; no hold outlives its test. */
#define SCHEDULES_MAIN(name, ...) \
	int main(void) \
	{ \
		const TTest *const tests_[] = {__VA_ARGS__}; \
		Suite *suite_ = suite_create(name); \
		TCase *tcase_ = tcase_create(name); \
		size_t i_; \
		tcase_add_checked_fixture(tcase_, NULL, seam_reset); \
		for (i_ = 0; i_ < sizeof(tests_) / sizeof(tests_[0]); i_++) \
			tcase_add_test(tcase_, tests_[i_]); \
		suite_add_tcase(suite_, tcase_); \
		return run_suite(suite_); \
	}

/* One call of the library on a thread of its own, which is no member. */
struct actor {
	pthread_t thread;
	evc_fn *fn;
	evc_coord *c;
	void *arg;
	evc_status status;
	atomic_int tid, done;
};

static MAYBE_UNUSED void *
actor_main(void *arg)
{
	struct actor *a = arg;

	atomic_store(&a->tid, own_tid());
	a->status = a->fn(a->c, a->arg);
	atomic_store(&a->done, 1);
	return NULL;
}

static MAYBE_UNUSED void
actor_begin(struct actor *a, evc_fn *fn, evc_coord *c, void *arg)
{
	memset(a, 0, sizeof(*a));
	a->fn = fn;
	a->c = c;
	a->arg = arg;
	ck_assert_int_eq(pthread_create(&a->thread, NULL, actor_main, a), 0);
}

/* It is under way, and sleeps in the library or in the test's own call. */
static MAYBE_UNUSED void
actor_sleeps(struct actor *a)
{
	UNTIL(atomic_load(&a->tid) != 0);
	until_asleep(atomic_load(&a->tid));
	ck_assert_msg(!atomic_load(&a->done), "it did not wait");
}

/* Wait for it, but not for ever: what its call returned. */
static MAYBE_UNUSED evc_status
actor_end(struct actor *a)
{
	UNTIL(atomic_load(&a->done));
	ck_assert_int_eq(pthread_join(a->thread, NULL), 0);
	return a->status;
}

/* ---- calls for actors ---- */

/* A request with a code and a text. */
struct ask {
	evc_status code;
	const char *text;
};

static MAYBE_UNUSED evc_status
do_request(evc_coord *c, void *arg)
{
	const struct ask *a = arg;

	return evc_request_stop(c, a->code, a->text);
}

static MAYBE_UNUSED evc_status
do_clear(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_clear_stop(c);
}

static MAYBE_UNUSED evc_status
do_free(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_free(c);
}

static MAYBE_UNUSED evc_status
do_raise(evc_coord *c, void *arg)
{
	(void)c;
	return raise(*(int *)arg);
}

static MAYBE_UNUSED evc_status
do_stop_fd(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_stop_fd(c);
}

/* ---- what a round holds ---- */

static MAYBE_UNUSED unsigned
count_reasons(evc_coord *c)
{
	unsigned n = 0;

	while (evc_reason_get(c, n, NULL) == 0)
		n++;
	return n;
}

/* Is a reason with that text kept? */
static MAYBE_UNUSED bool
is_kept(evc_coord *c, const char *text)
{
	evc_reason r;
	unsigned i;

	for (i = 0; evc_reason_get(c, i, &r) == 0; i++)
		if (strcmp(r.text, text) == 0)
			return true;
	return false;
}

#endif
