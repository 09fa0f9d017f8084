/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors of a scope: what they mean for the parent (on_error), and how they go
 * up several levels.  Texts that show the tree stand in scope_texts.c.
 */
#include "../../../support/scope_util.h"

static evc_coord *
scope_on(evc_coord *parent, const char *name, unsigned on_error)
{
	evc_scope_opts opts = { .on_error = on_error };

	return ready_scope(parent, name, &opts);
}

START_TEST(STOP_is_the_parents_error_too_and_stops_it)
{
	evc_coord *c = new_coord(NULL), *s, *sibling;
	evc_verdict v;
	evc_reason r;

	s = scope_on(c, "s", EVC_ON_ERROR_STOP);
	sibling = ready_scope(c, "sibling", NULL);
	OK(evc_thread_start(sibling, "obeys", obey, NULL, NULL, NULL));
	evc_fail_at(s, EVC_DATA_LOSS, ENOSPC, "shard.c", 42, "flush",
		    "shard %d", 3);
	/* nobody has to look first */
	ck_assert(evc_should_stop(s));
	ck_assert(evc_should_stop(c));
	BY_PARENT(sibling);
	ck_assert_int_eq(evc_raise_requested(c, &r), EVC_DATA_LOSS);
	ck_assert_str_eq(r.text, "shard 3");
	ck_assert_int_eq(r.err, ENOSPC);
	ck_assert_str_eq(r.file, "shard.c");
	ck_assert_int_eq(r.line, 42);
	ck_assert_str_eq(r.func, "flush");
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert_str_eq(v.error.text, "shard 3");
	ck_assert_int_eq(v.stop.code, EVC_DATA_LOSS);
	ck_assert_int_eq(evc_join(s, NULL, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert_str_eq(v.stop.text, "shard 3");
	FREE_ALL(s, sibling, c);
}
END_TEST

START_TEST(REPORT_stands_in_the_verdict_and_stops_nothing_there)
{
	evc_coord *c = new_coord(NULL), *s, *sibling;
	struct joiner j;
	evc_verdict v;
	evc_id id;

	s = scope_on(c, "s", EVC_ON_ERROR_REPORT);
	sibling = ready_scope(c, "sibling", NULL);
	id = hold(sibling, "works on");
	join_begin(&j, c, 0, 0);
	evc_fail(s, EVC_DATA_LOSS, 0, "of the scope");
	ck_assert(evc_should_stop(s));
	ck_assert(!evc_should_stop(c));
	ck_assert(!evc_should_stop(sibling));
	ck_assert_int_eq(evc_raise_requested(c, NULL), EVC_DATA_LOSS);
	ck_assert_int_eq(evc_join(s, NULL, &v), EVC_DATA_LOSS);
	NOT_YET(atomic_load(&j.returned) || evc_should_stop(c));
	OK(evc_hold_end(sibling, id));
	ck_assert_int_eq(join_end(&j), EVC_DATA_LOSS);
	ck_assert_str_eq(j.v.error.text, "of the scope");
	ck_assert_uint_eq(j.v.n_errors, 1);
	ck_assert_uint_eq(j.v.stop.kind, 0);
	ck_assert(!evc_should_stop(c));
	FREE_ALL(s, sibling, c);
}
END_TEST

/* "Errors and reasons of the old round are forgotten", by a clear. */
START_TEST(a_clear_forgets_what_was_only_reported)
{
	evc_coord *c = new_coord(NULL), *s;
	evc_verdict v;
	int i;

	s = scope_on(c, "s", EVC_ON_ERROR_REPORT);
	for (i = 0; i < 3; i++) {
		evc_fail(s, EVC_DATA_LOSS, 0, "of the scope");
		if (i == 1)
			ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
		if (i == 2)
			OK(evc_request_stop(c, 0, NULL));
		OK(evc_clear_stop(s));
		OK(evc_clear_stop(c));
		OK(evc_raise_requested(c, NULL));
		OK(evc_raise_requested(s, NULL));
		OK(evc_join(c, NULL, &v));
		ck_assert_uint_eq(v.n_errors, 0);
		ck_assert_int_eq(v.error.code, 0);
		OK(evc_clear_stop(c));
	}
	/* and the parent's own errors count again */
	evc_fail(c, EVC_ABORTED, 0, "its own");
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_ABORTED);
	FREE_ALL(s, c);
}
END_TEST

START_TEST(a_reported_error_stays_the_first_when_a_stop_comes_later)
{
	evc_coord *c = new_coord(NULL), *s;
	evc_verdict v;

	s = scope_on(c, "s", EVC_ON_ERROR_REPORT);
	evc_fail(s, EVC_DATA_LOSS, 0, "first");
	evc_fail(c, EVC_INTERNAL, 0, "second");
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_str_eq(v.error.text, "first");
	ck_assert_str_eq(v.stop.text, "second");
	ck_assert_uint_eq(v.n_errors, 2);
	FREE_ALL(s, c);
}
END_TEST

START_TEST(IGNORE_is_not_heard_of_above)
{
	evc_coord *c = new_coord(NULL), *s;
	evc_verdict v;
	evc_reason r;

	s = scope_on(c, "s", EVC_ON_ERROR_IGNORE);
	evc_fail(s, EVC_DATA_LOSS, 0, "of the scope");
	ck_assert(evc_should_stop(s));
	ck_assert(!evc_should_stop(c));
	OK(evc_raise_requested(c, NULL));
	REFUSED(EVC_NOT_FOUND, evc_reason_get(c, 0, &r));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_int_eq(evc_join(s, NULL, &v), EVC_DATA_LOSS);
	FREE_ALL(s, c);
}
END_TEST

/* What each of three levels says: root, middle, leaf. */
START_TEST(errors_go_up_as_far_as_each_level_lets_them)
{
	static const struct {
		unsigned middle, leaf; /* on_error */
		bool stops_middle, stops_root;
		evc_status of_middle, of_root;
	} row[] = {
		{ EVC_ON_ERROR_STOP, EVC_ON_ERROR_STOP, true, true, 20, 20 },
		{ EVC_ON_ERROR_REPORT, EVC_ON_ERROR_STOP, true, false, 20, 20 },
		{ EVC_ON_ERROR_IGNORE, EVC_ON_ERROR_STOP, true, false, 20, 0 },
		/* what stops nothing stops nothing further up either */
		{ EVC_ON_ERROR_STOP, EVC_ON_ERROR_REPORT, false, false, 20,
		  20 },
		{ EVC_ON_ERROR_REPORT, EVC_ON_ERROR_REPORT, false, false, 20,
		  20 },
		{ EVC_ON_ERROR_IGNORE, EVC_ON_ERROR_REPORT, false, false, 20,
		  0 },
		{ EVC_ON_ERROR_STOP, EVC_ON_ERROR_IGNORE, false, false, 0, 0 },
		{ EVC_ON_ERROR_REPORT, EVC_ON_ERROR_IGNORE, false, false, 0,
		  0 },
		{ EVC_ON_ERROR_IGNORE, EVC_ON_ERROR_IGNORE, false, false, 0,
		  0 },
	};
	size_t i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		evc_coord *c = new_coord(NULL), *m, *s;

		m = scope_on(c, "middle", row[i].middle);
		s = scope_on(m, "leaf", row[i].leaf);
		evc_fail(s, 20, 0, "of the leaf");
		ck_assert(evc_should_stop(s));
		ck_assert_msg(evc_should_stop(m) == row[i].stops_middle,
			      "row %zu", i);
		ck_assert_msg(evc_should_stop(c) == row[i].stops_root,
			      "row %zu", i);
		ck_assert_int_eq(evc_raise_requested(m, NULL),
				 row[i].of_middle);
		ck_assert_int_eq(evc_raise_requested(c, NULL), row[i].of_root);
		ck_assert_int_eq(evc_join(s, NULL, NULL), 20);
		ck_assert_int_eq(evc_join(m, NULL, NULL), row[i].of_middle);
		ck_assert_int_eq(evc_join(c, NULL, NULL), row[i].of_root);
		FREE_ALL(s, m, c);
	}
}
END_TEST

static evc_status
report_and_end(evc_coord *c, void *arg)
{
	evc_fail(c, *(evc_status *)arg, 0, "reported");
	return 0;
}

/* However it is reported, by whoever. */
START_TEST(results_of_members_hooks_and_guards_go_up)
{
	evc_status code = EVC_DATA_LOSS;
	int i;

	for (i = 0; i < 4; i++) {
		evc_coord *c = new_coord(NULL), *s;
		evc_verdict v;

		s = ready_scope(c, "s", NULL);
		if (i == 0 || i == 3) {
			OK(evc_thread_start(s, "the-one-of-a-longer-name",
					    i ? report_and_end : return_at_once,
					    &code, NULL, NULL));
		} else if (i == 1) {
			OK(evc_guard(s, "the-one-of-a-longer-name",
				     return_at_once, &code, NULL));
		} else {
			OK(evc_on_stop(s, "the-one-of-a-longer-name",
				       return_at_once, &code, NULL, NULL));
			OK(evc_request_stop(c, 0, NULL));
		}
		ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
		ck_assert_str_eq(v.error.who, "the-one-of-a-longer-name");
		ck_assert_uint_eq(v.n_errors, 1);
		ck_assert(evc_should_stop(c));
		FREE_ALL(s, c);
	}
}
END_TEST

START_TEST(errors_after_the_inherited_stop_count_and_obedience_does_not)
{
	static const evc_status verdict[] = { EVC_DATA_LOSS, EVC_DATA_LOSS, 0 };
	evc_status fails = EVC_DATA_LOSS, obeys = EVC_CANCELLED;
	unsigned i;

	for (i = 0; i < 3; i++) {
		evc_coord *c = new_coord(NULL), *s;
		evc_verdict v;

		s = scope_on(c, "s", i);
		OK(evc_thread_start(s, "obeys", obey_with, &obeys, NULL,
				    NULL));
		OK(evc_thread_start(s, "fails", obey_with, &fails, NULL,
				    NULL));
		OK(evc_request_stop(c, 0, "clean"));
		ck_assert_int_eq(evc_join(c, NULL, &v), verdict[i]);
		ck_assert_str_eq(v.stop.text, "clean");
		ck_assert_uint_eq(v.n_errors, verdict[i] != 0);
		ck_assert_int_eq(evc_join(s, NULL, &v), EVC_DATA_LOSS);
		ck_assert_uint_eq(v.n_errors, 1);
		FREE_ALL(s, c);
	}
}
END_TEST

/* A clean end of a part is the part's own affair. */
START_TEST(clean_stops_and_obedience_of_a_scope_do_not_go_up)
{
	evc_status end = EVC_OUT_OF_RANGE, obeys = EVC_CANCELLED;
	evc_member_opts opts = { .flags = EVC_END_STOPS };
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "s", NULL);
	evc_reason r;

	OK(evc_thread_start(s, "obeys", obey_with, &obeys, NULL, NULL));
	OK(evc_thread_start(s, "ends", return_at_once, &end, &opts, NULL));
	OK(evc_join(s, NULL, NULL));
	OK(evc_request_stop(s, EVC_OUT_OF_RANGE, NULL));
	ck_assert(evc_should_stop(s));
	ck_assert(!evc_should_stop(c));
	REFUSED(EVC_NOT_FOUND, evc_reason_get(c, 0, &r));
	OK(evc_join(c, NULL, NULL));
	FREE_ALL(s, c);
}
END_TEST

START_TEST(an_error_when_the_parents_round_is_closed_is_the_scopes_alone)
{
	unsigned on_error;

	for (on_error = 0; on_error < 3; on_error++) {
		evc_coord *c = new_coord(NULL), *s;
		evc_verdict v;

		s = scope_on(c, "s", on_error);
		OK(evc_join(c, NULL, NULL));
		/* the scope's own round is open: it is recorded there */
		OK(evc_request_stop(s, EVC_DATA_LOSS, "too late for c"));
		ck_assert(evc_should_stop(s));
		ck_assert(!evc_should_stop(c));
		OK(evc_join(c, NULL, &v));
		ck_assert_uint_eq(v.n_errors, 0);
		ck_assert_int_eq(evc_join(s, NULL, &v), EVC_DATA_LOSS);
		/* and once that is closed, it goes back to its caller */
		ck_assert_int_eq(evc_request_stop(s, EVC_INTERNAL, "late"),
				 EVC_INTERNAL);
		OK(evc_join(c, NULL, &v));
		OK(evc_clear_stop(c));
		OK(evc_clear_stop(s));
		OK(evc_join(c, NULL, &v));
		FREE_ALL(s, c);
	}
}
END_TEST

START_TEST(an_error_outlives_the_scope_that_it_came_from)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "brief", NULL);
	evc_status code = EVC_DATA_LOSS;
	evc_verdict v;

	OK(evc_thread_start(s, "the-one-of-a-longer-name", return_at_once,
			    &code, NULL, NULL));
	UNTIL(evc_should_stop(c));
	ck_assert_int_eq(evc_join(s, NULL, NULL), EVC_DATA_LOSS);
	OK(evc_free(s));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_str_eq(v.error.who, "the-one-of-a-longer-name");
	OK(evc_free(c));
}
END_TEST

API_MAIN("scope_errors", STOP_is_the_parents_error_too_and_stops_it,
	 REPORT_stands_in_the_verdict_and_stops_nothing_there,
	 a_clear_forgets_what_was_only_reported,
	 a_reported_error_stays_the_first_when_a_stop_comes_later,
	 IGNORE_is_not_heard_of_above,
	 errors_go_up_as_far_as_each_level_lets_them,
	 results_of_members_hooks_and_guards_go_up,
	 errors_after_the_inherited_stop_count_and_obedience_does_not,
	 clean_stops_and_obedience_of_a_scope_do_not_go_up,
	 an_error_when_the_parents_round_is_closed_is_the_scopes_alone,
	 an_error_outlives_the_scope_that_it_came_from)
