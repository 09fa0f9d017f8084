/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runners: who calls their operations and how often, what their results mean,
 * what is shown of them, and that they can be taken out again.
 */
#include "../../support/runner_util.h"

START_TEST(its_operations_are_called_where_the_header_says)
{
	struct setting s;
	struct machine m;
	struct joiner j;
	int d, where;

	for (d = 0; d < N_DRIVES; d++) {
		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		atomic_store(&m.runs, 1);
		machine_add(s.c, "machine", &m, s.far, 0);
		/* joined by a thread that is not the loop's */
		join_begin(&j, s.c, 0, 0);
		TURN_UNTIL(&s, atomic_load(&m.asked) > 2);
		ck_assert_int_eq(m.stops + m.joins, 0);
		OK(evc_request_stop(s.c, 0, NULL));
		TURN_UNTIL(&s, atomic_load(&m.stops) > 0);
		ck_assert_int_eq(m.joins, 0);
		where = d == BY_JOINER     ? atomic_load(&j.tid)
			: d == BY_FAR_LOOP ? atomic_load(&s.far_tid)
					   : own_tid();
		ck_assert_int_eq(m.asked_tid, where);
		ck_assert_int_eq(m.stop_tid, where);
		atomic_store(&m.runs, 0);
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		if (s.far == NULL) { /* none named: a thread of its own */
			ck_assert_int_ne(m.join_tid, where);
			ck_assert_int_ne(m.join_tid, own_tid());
		} else
			ck_assert_int_eq(m.join_tid, where);
		machine_was_joined(&m, 1);
		ck_assert_uint_eq(j.v.n_ended, 1 + own_members(&s));
		end_setting(&s);
	}
}
END_TEST

START_TEST(stop_is_called_once_however_often_it_is_asked_for)
{
	evc_join_opts brief = { .grace = 0.05 };
	struct setting s;
	struct machine m;
	evc_verdict v;
	int d, i;

	for (d = 0; d < N_DRIVES; d++) {
		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		atomic_store(&m.runs, 1);
		machine_add(s.c, "stays", &m, s.far, 0);
		for (i = 0; i < 3; i++) {
			OK(evc_request_stop(s.c, 0, "again"));
			ck_assert_int_eq(evc_join(s.c, &brief, &v),
					 EVC_DEADLINE_EXCEEDED);
			ck_assert_uint_ge(v.n_stragglers, 1);
			HAS(v.error.text, "stays");
			TURN_UNTIL(&s, atomic_load(&m.stops) > 0);
			ck_assert_int_eq(m.stops, 1);
			ck_assert_int_eq(m.joins, 0);
		}
		atomic_store(&m.runs, 0);
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.n_stragglers, 0);
		OK(evc_join(s.c, NULL, &v));
		machine_was_joined(&m, 1);
		end_setting(&s);
	}
}
END_TEST

START_TEST(one_that_ends_before_the_stop_is_joined_and_never_told)
{
	struct setting s;
	struct machine m;
	struct joiner j;
	evc_id hold = 0;
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		atomic_store(&m.runs, 1);
		OK(evc_hold_begin(s.c, "hold", NULL, &hold));
		machine_add(s.c, "machine", &m, s.far, 0);
		join_begin(&j, s.c, 0, 0);
		atomic_store(&m.runs, 0);
		TURN_UNTIL(&s, is_gone(s.c, m.id));
		machine_was_joined(&m, 0);
		ck_assert(!evc_should_stop(s.c)); /* it ended alone */
		ck_assert(!atomic_load(&j.returned));
		OK(evc_hold_end(s.c, hold));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		end_setting(&s);
	}
}
END_TEST

START_TEST(is_running_is_all_that_is_needed)
{
	struct setting s;
	struct machine m;
	char text[4096];
	evc_verdict v;
	evc_id id;
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		evc_member_opts opts = { 0 };

		begin_setting(&s, d, NULL);
		opts.reactor = s.far;
		memset(&m, 0, sizeof(m));
		id = 0;
		atomic_store(&m.runs, 1);
		OK(evc_runner_add(s.c, "bare", &bare_ops, &m, &opts, &id));
		OK(evc_request_stop(s.c, 0, NULL));
		evc_report(s.c, EVC_REPORT_TEXT, text, sizeof(text));
		HAS(text, "bare");
		ck_assert_int_eq(
			evc_join(s.c, &(evc_join_opts){ .grace = 0.05 }, &v),
			EVC_DEADLINE_EXCEEDED);
		HAS(v.error.text, "bare");
		atomic_store(&m.runs, 0);
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.n_ended, 1 + own_members(&s));
		ck_assert(is_gone(s.c, id));
		end_setting(&s);
	}
}
END_TEST

/* What the result of a join means; before: it ends before the stop. */
static void
result_means(enum drive d, bool before, unsigned flags, evc_status result,
	     evc_status verdict, bool stops)
{
	struct setting s;
	struct machine m = { .result = result };
	struct joiner j;
	evc_id hold = 0;

	begin_setting(&s, d, NULL);
	atomic_store(&m.runs, 1);
	OK(evc_hold_begin(s.c, "hold", NULL, &hold));
	machine_add(s.c, "machine", &m, s.far, flags);
	join_begin(&j, s.c, 0, 0);
	if (!before)
		OK(evc_request_stop(s.c, 0, "first"));
	atomic_store(&m.runs, 0);
	TURN_UNTIL(&s, is_gone(s.c, m.id));
	if (before)
		ck_assert_int_eq(evc_should_stop(s.c), stops);
	OK(evc_hold_end(s.c, hold));
	TURN_UNTIL(&s, atomic_load(&j.returned));
	ck_assert_int_eq(join_end(&j), verdict);
	ck_assert_uint_eq(j.v.n_errors, verdict != 0);
	if (verdict != 0) {
		ck_assert_str_eq(j.v.error.who, "machine");
		ck_assert_uint_eq(j.v.error.by, m.id);
		ck_assert_uint_eq(j.v.error.kind, EVC_BY_MEMBER_END);
	}
	if (result == 1000)
		HAS(j.v.error.text, "1000");
	if (before && stops) {
		ck_assert_uint_eq(j.v.stop.kind, EVC_BY_MEMBER_END);
		ck_assert_str_eq(j.v.stop.who, "machine");
	}
	machine_was_joined(&m, before ? 0 : m.stops);
	end_setting(&s);
}

START_TEST(what_its_join_returns_means_what_a_threads_result_means)
{
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		result_means(d, true, 0, EVC_OUT_OF_RANGE, 0, false);
		result_means(d, true, 0, EVC_DATA_LOSS, EVC_DATA_LOSS, true);
		result_means(d, true, 0, 200, 200, true);
		result_means(d, true, 0, -EVC_INTERNAL, EVC_INTERNAL, true);
		result_means(d, true, 0, 1000, EVC_UNKNOWN, true);
		result_means(d, true, 0, EVC_CANCELLED, EVC_CANCELLED, true);
		result_means(d, true, EVC_END_STOPS, 0, 0, true);
		result_means(d, true, EVC_END_STOPS, EVC_OUT_OF_RANGE, 0, true);
		result_means(d, false, 0, EVC_CANCELLED, 0, true);
		result_means(d, false, 0, EVC_OUT_OF_RANGE, 0, true);
		result_means(d, false, 0, EVC_ABORTED, EVC_ABORTED, true);
	}
}
END_TEST

START_TEST(one_in_the_BACKGROUND_keeps_no_join_waiting)
{
	struct setting s;
	struct machine m;
	evc_verdict v;
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		m.ends_at_stop = true;
		atomic_store(&m.runs, 1);
		machine_add(s.c, "behind", &m, s.far, EVC_BACKGROUND);
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.stop.kind, EVC_BY_EMPTY);
		ck_assert_uint_eq(v.n_ended, 1 + own_members(&s));
		machine_was_joined(&m, 1);
		end_setting(&s);
	}
}
END_TEST

START_TEST(two_joiners_at_once_still_join_it_once)
{
	struct setting s;
	struct machine m[4];
	struct joiner j[3];
	int d, i;

	for (d = 0; d < N_DRIVES; d++) {
		begin_setting(&s, d, NULL);
		memset(m, 0, sizeof(m));
		for (i = 0; i < 4; i++) {
			m[i].ends_at_stop = i % 2;
			atomic_store(&m[i].runs, 1);
			machine_add(s.c, "machine", &m[i], s.far, 0);
		}
		for (i = 0; i < 3; i++)
			join_begin(&j[i], s.c, 0, 0);
		OK(evc_request_stop(s.c, 0, NULL));
		for (i = 0; i < 4; i++)
			TURN_UNTIL(&s, atomic_load(&m[i].stops) > 0);
		atomic_store(&m[0].runs, 0);
		atomic_store(&m[2].runs, 0);
		for (i = 0; i < 3; i++) {
			TURN_UNTIL(&s, atomic_load(&j[i].returned));
			OK(join_end(&j[i]));
			ck_assert_uint_eq(j[i].v.n_ended, 4 + own_members(&s));
		}
		for (i = 0; i < 4; i++)
			machine_was_joined(&m[i], 1);
		end_setting(&s);
	}
}
END_TEST

START_TEST(it_is_shown_with_what_it_says_of_itself)
{
	struct setting s;
	struct machine m;
	evc_member_info info;
	char text[4096], longer[512];
	int d;

	memset(longer, 'w', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	for (d = 0; d < N_DRIVES; d++) {
		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		m.word = "at 3 of 7";
		m.ends_at_stop = true;
		atomic_store(&m.runs, 1);
		machine_add(s.c, "machine", &m, s.far, EVC_END_STOPS);
		OK(evc_member_get(s.c, m.id, &info));
		ck_assert_uint_eq(info.id, m.id);
		ck_assert_uint_eq(info.kind, EVC_RUNNER);
		ck_assert_uint_eq(info.state, EVC_LIVE);
		ck_assert_uint_eq(info.flags, EVC_END_STOPS);
		ck_assert_str_eq(info.name, "machine");
		HAS(info.where, "at 3 of 7");
		evc_report(s.c, EVC_REPORT_TEXT, text, sizeof(text));
		HAS(text, "runner \"machine\"");
		HAS(text, "at 3 of 7");
		m.word = longer; /* cut, and nothing is written behind it */
		OK(evc_member_get(s.c, m.id, &info));
		HAS(info.where, "wwwwwwww");
		ck_assert_uint_lt(strlen(info.where), sizeof(info.where));
		ck_assert_int_ge(m.told, 3);
		REFUSED(EVC_FAILED_PRECONDITION, evc_free(s.c));
		HAS(evc_last_error(), "machine");
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_join(s.c, NULL, NULL));
		ck_assert(is_gone(s.c, m.id));
		machine_was_joined(&m, 1);
		evc_report(s.c, EVC_REPORT_TEXT, text, sizeof(text));
		ck_assert_ptr_null(strstr(text, "runner \"machine\""));
		end_setting(&s);
	}
}
END_TEST

/* Calls back into the coordinator from each operation: none is under a lock. */
struct caller {
	struct machine m;
	evc_coord *c;
	atomic_int failed, asked;
};

static void
call_in(struct caller *k)
{
	char text[2048];
	evc_member_info info;
	evc_id hold = 0;
	evc_member_opts late = { .flags = EVC_AFTER_STOP };

	if (evc_hold_begin(k->c, "inside", &late, &hold) != 0 ||
	    evc_hold_end(k->c, hold) != 0 ||
	    evc_member_get(k->c, k->m.id, &info) != 0 ||
	    evc_explain(k->c, text, sizeof(text)) == 0 ||
	    evc_free(k->c) != -EVC_FAILED_PRECONDITION)
		atomic_fetch_add(&k->failed, 1);
}

static bool
calling_runs(void *arg)
{
	struct caller *k = arg;

	/* Not always: what begins and ends makes each join look again. */
	if (atomic_fetch_add(&k->asked, 1) < 3)
		call_in(k);
	return machine_runs(&k->m);
}

static void
calling_stop(void *arg)
{
	struct caller *k = arg;

	call_in(k);
	machine_stop(&k->m);
}

static evc_status
calling_join(void *arg)
{
	struct caller *k = arg;

	call_in(k);
	return machine_join(&k->m);
}

static void
calling_says(char *buf, size_t n, void *arg)
{
	struct caller *k = arg;
	evc_id hold = 0;
	evc_member_opts late = { .flags = EVC_AFTER_STOP };

	if (evc_hold_begin(k->c, "inside", &late, &hold) != 0 ||
	    evc_hold_end(k->c, hold) != 0)
		atomic_fetch_add(&k->failed, 1);
	machine_says(buf, n, &k->m);
}

START_TEST(each_operation_may_call_anything)
{
	static const evc_runner_ops ops = { calling_runs, calling_stop,
					    calling_join, calling_says };
	struct setting s;
	struct caller k;
	struct joiner j;
	char text[4096];
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		evc_member_opts opts = { 0 };

		begin_setting(&s, d, NULL);
		opts.reactor = s.far;
		memset(&k, 0, sizeof(k));
		k.c = s.c;
		k.m.ends_at_stop = true;
		atomic_store(&k.m.runs, 1);
		OK(evc_runner_add(s.c, "calls", &ops, &k, &opts, &k.m.id));
		join_begin(&j, s.c, 0, 0);
		TURN_UNTIL(&s, atomic_load(&k.m.asked) > 3);
		evc_report(s.c, EVC_REPORT_TEXT, text, sizeof(text));
		OK(evc_request_stop(s.c, 0, NULL));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		ck_assert_int_gt(k.m.told, 0);
		ck_assert_int_eq(k.failed, 0);
		machine_was_joined(&k.m, 1);
		end_setting(&s);
	}
}
END_TEST

API_MAIN("runner", its_operations_are_called_where_the_header_says,
	 stop_is_called_once_however_often_it_is_asked_for,
	 one_that_ends_before_the_stop_is_joined_and_never_told,
	 is_running_is_all_that_is_needed,
	 what_its_join_returns_means_what_a_threads_result_means,
	 one_in_the_BACKGROUND_keeps_no_join_waiting,
	 two_joiners_at_once_still_join_it_once,
	 it_is_shown_with_what_it_says_of_itself,
	 each_operation_may_call_anything)
