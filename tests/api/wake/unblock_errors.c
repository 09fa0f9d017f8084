/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an error means that a member reports because it was kicked or unblocked:
 * it is kept as a reason and is no error; any other is one.
 */
#include "../../support/rouse_util.h"

/* A member that comes back with an error after the stop; its verdict. */
static evc_status
comes_back_with(int kind, int err, evc_member_opts *o, const char *reason)
{
	struct sleeper s = { .call = call_nanosleep,
			     .result = EVC_INTERNAL,
			     .result_err = err };
	evc_coord *c = new_coord(NULL);
	evc_status st;
	evc_verdict v;
	evc_reason r;
	unsigned i;
	bool kept = false;

	sleeper_begin(&s, c, (enum kind)kind, o);
	OK(evc_request_stop(c, 0, "the stop"));
	if (kind == A_GUARD)
		UNTIL(atomic_load(&s.ended));
	st = evc_join(c, &generous, &v);
	ck_assert_uint_eq(v.n_stragglers, 0);
	for (i = 0; evc_reason_get(c, i, &r) == 0; i++)
		if (r.code == EVC_INTERNAL && strcmp(r.text, reason) == 0)
			kept = true;
	ck_assert(kept);
	ck_assert_int_eq(evc_raise_requested(c, NULL), st);
	ck_assert_str_eq(v.stop.text, "the stop");
	sleeper_end(&s);
	OK(evc_free(c));
	return st;
}

static const char said[] = "what the call said";

START_TEST(an_error_of_being_kicked_is_clean)
{
	static const int clean[] = { -1, EINTR, ECANCELED, ESHUTDOWN };
	evc_member_opts kick = { .flags = EVC_KICK };
	size_t i;

	for (i = 0; i < 4; i++)
		OK(comes_back_with(_i, clean[i], &kick, said));
}
END_TEST

START_TEST(another_error_of_one_that_was_kicked_is_an_error)
{
	static const int wrong[] = { EIO, EPIPE, EAGAIN };
	evc_member_opts kick = { .flags = EVC_KICK };
	size_t i;

	for (i = 0; i < 3; i++)
		ck_assert_int_eq(comes_back_with(_i, wrong[i], &kick, said),
				 EVC_INTERNAL);
}
END_TEST

static int
call_until_nudged(struct sleeper *s)
{
	while (!atomic_load(&s->open))
		t_sleep(0.001);
	errno = ESHUTDOWN;
	return -1;
}

static void
nudge_sleeper(void *arg)
{
	atomic_store(&((struct sleeper *)arg)->open, 1);
}

static evc_status
ends_with_shutdown(bool unblocked, bool before)
{
	struct sleeper s = { .call = call_until_nudged,
			     .result = EVC_UNAVAILABLE,
			     .result_err = -1 };
	evc_member_opts o = { .unblock = unblocked ? nudge_sleeper : NULL };
	evc_coord *c = new_coord(NULL);
	evc_status st;

	OK(evc_thread_start(c, "sleeper", sleeper_live, &s, &o, NULL));
	if (!before)
		OK(evc_request_stop(c, 0, NULL));
	if (!unblocked || before)
		atomic_store(&s.open, 1);
	st = evc_join(c, &generous, NULL);
	OK(evc_free(c));
	return st;
}

START_TEST(an_error_of_being_unblocked_is_clean_and_of_nobody_else)
{
	OK(ends_with_shutdown(true, false));
	ck_assert_int_eq(ends_with_shutdown(false, false), EVC_UNAVAILABLE);
	ck_assert_int_eq(ends_with_shutdown(true, true), EVC_UNAVAILABLE);
}
END_TEST

T_MAIN("unblock_errors", NULL, NULL,
       T_TIMES(an_error_of_being_kicked_is_clean, N_KINDS),
       T_TIMES(another_error_of_one_that_was_kicked_is_an_error, N_KINDS),
       T_ONCE(an_error_of_being_unblocked_is_clean_and_of_nobody_else))
