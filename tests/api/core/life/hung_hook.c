/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function of the program's that hangs on the helper thread: evc_free and
 * evc_finish wait for a second, and are refused then, with the name of the
 * hook; evc_abandon leaves the function behind.
 */
#include "../../../support/abandon_util.h"

static struct guest hung;

/* A stop whose join has given up on a hook that hangs. */
static void
hang_in_a_hook(evc_coord *c, const char *name)
{
	evc_join_opts brief = { .grace = 0.05 };
	evc_verdict v;

	memset(&hung, 0, sizeof(hung));
	OK(evc_on_stop(c, name, stay, &hung, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&hung.in));
	ck_assert_int_eq(evc_join(c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, name);
}

static void
let_go(void)
{
	atomic_store(&hung.open, 1);
}

START_TEST(a_free_is_refused_after_a_second)
{
	evc_coord *c = new_coord(NULL);
	double begin;

	hang_in_a_hook(c, "close-db");
	begin = t_now();
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	HAS(evc_last_error(), "evc_free: stop hook close-db has not returned");
	ck_assert_double_ge(t_now() - begin, 0.9);
	ck_assert_int_eq(evc_finish(c, EVC_DEADLINE_EXCEEDED), 124);
	ck_assert_int_eq(evc_finish(c, 0), 1);
	HAS(evc_last_error(), "close-db");
	/* All is usable, and a later call frees it. */
	let_go();
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(evc_finish(c, 0), 0);
}
END_TEST

START_TEST(a_finish_with_parts_names_the_hook)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q;

	OK(evc_queue_new(c, "q", 1, NULL, &q));
	hang_in_a_hook(c, "close-db");
	ck_assert_int_eq(evc_finish(c, 0), 1);
	HAS(evc_last_error(), "stop hook close-db has not returned");
	let_go();
	ck_assert_int_eq(evc_finish(c, 0), 0);
}
END_TEST

/* The hook's end is waited for, as long as it does not hang. */
static evc_status
takes_a_moment(evc_coord *c, void *arg)
{
	(void)c;
	atomic_store((atomic_int *)arg, 1);
	t_sleep(0.05);
	atomic_store((atomic_int *)arg, 2);
	return 0;
}

START_TEST(a_free_waits_for_a_hook_that_returns)
{
	evc_coord *c = new_coord(NULL);
	static atomic_int at;

	atomic_store(&at, 0);
	OK(evc_on_stop(c, "slow", takes_a_moment, &at, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&at) > 0);
	OK(evc_free(c));
	ck_assert_int_eq(atomic_load(&at), 2);
}
END_TEST

START_TEST(an_abandon_leaves_it_behind)
{
	struct left left;
	double begin;

	left_begin(&left, NULL, NULL);
	hang_in_a_hook(left.c, "close-db");
	begin = t_now();
	OK(evc_abandon(left.c));
	/* evc_free would wait for a second. */
	ck_assert_double_lt(t_now() - begin, 0.9);
	ck_assert(!is_freed(&left));
	let_go();
	left_end(&left);
}
END_TEST

API_MAIN("hung_hook", a_free_is_refused_after_a_second,
	 a_finish_with_parts_names_the_hook,
	 a_free_waits_for_a_hook_that_returns, an_abandon_leaves_it_behind)
