/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline: on and off, what it keeps, and a stop in its order.
 */
#include "../../support/trace_util.h"
#include "../../support/scope_util.h"

/* ---- on and off ---- */

START_TEST(what_is_off_records_nothing)
{
	evc_coord *c = new_coord(NULL);
	evc_id id = hold(c, "one");

	REFUSED(EVC_NOT_FOUND, evc_trace_stop(c));
	REFUSED(EVC_NOT_FOUND, evc_trace_write(c, 1, EVC_TRACE_JSON));
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

START_TEST(wrong_calls_are_refused)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "scope", NULL);

	REFUSED(EVC_INVALID_ARGUMENT, evc_trace_start(NULL, 0));
	REFUSED(EVC_INVALID_ARGUMENT, evc_trace_stop(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_trace_write(NULL, 1, EVC_TRACE_JSON));
	REFUSED(EVC_FAILED_PRECONDITION, evc_trace_start(s, 0));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_trace_start(c, ((size_t)1 << 24) + 1));
	REFUSED(EVC_INVALID_ARGUMENT, evc_trace_start(c, SIZE_MAX));
	OK(evc_trace_start(c, 0));
	REFUSED(EVC_ALREADY_EXISTS, evc_trace_start(c, 0));
	REFUSED(EVC_ALREADY_EXISTS, evc_trace_start(c, 16));
	REFUSED(EVC_NOT_FOUND, evc_trace_stop(s));
	REFUSED(EVC_INVALID_ARGUMENT, evc_trace_write(c, 1, 0));
	REFUSED(EVC_INVALID_ARGUMENT, evc_trace_write(c, 1, 2));
	HAS(evc_last_error(), "unknown format 2");
	OK(evc_trace_stop(c));
	REFUSED(EVC_NOT_FOUND, evc_trace_stop(c));
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

static bool
shows(const evc_coord *c, const char *lane)
{
	char *text = traced(c, EVC_TRACE_JSON);
	bool yes = lane_of(text, lane) != 0;

	free(text);
	return yes;
}

static void
pass(evc_coord *c, const char *name)
{
	evc_id id = hold(c, name);

	OK(evc_hold_end(c, id));
}

START_TEST(start_and_stop_and_start_again)
{
	evc_coord *c = new_coord(NULL);
	size_t size;

	pass(c, "before");
	OK(evc_trace_start(c, 64));
	pass(c, "first");
	OK(evc_trace_stop(c));
	pass(c, "between");
	/* It stays until the next start. */
	ck_assert(shows(c, "first (hold, coord)"));
	ck_assert(!shows(c, "before (hold, coord)"));
	ck_assert(!shows(c, "between (hold, coord)"));
	/* The same size again, and another one. */
	for (size = 64; size <= 128; size += 64) {
		OK(evc_trace_start(c, size));
		ck_assert(!shows(c, "first (hold, coord)"));
		pass(c, "second");
		ck_assert(shows(c, "second (hold, coord)"));
		OK(evc_trace_stop(c));
	}
	ck_assert(!shows(c, "first (hold, coord)"));
	OK(evc_free(c));
}
END_TEST

START_TEST(the_latest_are_kept_and_the_others_counted)
{
	evc_coord *c = new_coord(NULL);
	char name[32], lane[48], *text;
	const char *other;
	int i;

	OK(evc_trace_start(c, 10));
	/* Two events each. */
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "hold-%d", i);
		pass(c, name);
	}
	text = traced(c, EVC_TRACE_JSON);
	other = strstr(text, "\"otherData\"");
	ck_assert_ptr_nonnull(other);
	ck_assert_uint_eq(number_of(other, "lost"), 30);
	for (i = 0; i < 20; i++) {
		snprintf(lane, sizeof(lane), "hold-%d (hold, coord)", i);
		ck_assert_msg((lane_of(text, lane) != 0) == (i >= 15), "%s",
			      lane);
	}
	free(text);
	text = drawn(c, __func__);
	if (text != NULL) {
		HAS(text, "data-lost=\"30\"");
		HAS(text, "30 older events were lost");
	}
	free(text);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_ring_of_one_event_is_a_ring)
{
	evc_coord *c = new_coord(NULL);
	char *text;

	OK(evc_trace_start(c, 1));
	pass(c, "one");
	pass(c, "two");
	text = traced(c, EVC_TRACE_JSON);
	ck_assert(lane_of(text, "two (hold, coord)") != 0);
	ck_assert(lane_of(text, "one (hold, coord)") == 0);
	ck_assert_uint_eq(number_of(strstr(text, "\"otherData\""), "lost"), 3);
	free(text);
	OK(evc_free(c));
}
END_TEST

/* ---- members ---- */

START_TEST(a_thread_from_its_beginning_to_its_verdict)
{
	evc_coord *c = new_coord(NULL);
	evc_verdict v;
	struct life l;
	uint64_t before = mono_ns(), asked, answered;
	const char *stop, *verdict;
	char *text;

	OK(evc_trace_start(c, 0));
	OK(evc_thread_start(c, "worker", obey, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, "enough"));
	OK(evc_join(c, NULL, &v));
	text = traced(c, EVC_TRACE_JSON);
	l = life_of(text, "worker (thread, coord)", "worker");
	ck_assert_uint_ne(l.end, 0);
	string_is(l.at, "kind", "thread");
	string_is(l.at, "scope", "coord");
	ck_assert_uint_ne(number_of(value_of(l.at, "args"), "tid"), 0);
	stop = event_of(text, "coord (coordinator, coord)", "stop");
	asked = number_of(stop, "ns");
	string_is(stop, "text", "enough");
	string_is(stop, "by", "request");
	string_is(stop, "status", "OK");
	ck_assert_int_eq((int)number_of(stop, "asked_by_tid"), own_tid());
	HAS(stop, "\"s\":\"g\"");
	/* The reason was noted after it. */
	IN_ORDER(asked, v.stop.mono_ns);
	verdict = event_of(text, "join (join, coord)", "verdict");
	answered = number_of(verdict, "ns");
	string_is(verdict, "code", "OK");
	ck_assert_uint_eq(number_of(verdict, "stragglers"), 0);
	IN_ORDER(before, l.begin, asked, l.end, answered, mono_ns());
	/* What it did after the stop, and until it was joined. */
	IN_ORDER(asked,
		 number_of(event_of(text, "worker (thread, coord)",
				    "after the stop"), "ns"),
		 l.end);
	free(text);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_thread_leaves_its_wait)
{
	evc_coord *c = new_coord(NULL);
	struct waiter w;
	uint64_t asked;
	char *text;

	OK(evc_trace_start(c, 0));
	OK(evc_thread_start(c, "worker", obey, NULL, NULL, NULL));
	/* Its thread inherits the name. */
	OK(pthread_setname_np(pthread_self(), "waits"));
	waiter_begin(&w, c, INFINITY);
	UNTIL(atomic_load(&w.tid) != 0);
	until_asleep(atomic_load(&w.tid));
	OK(evc_request_stop(c, 0, NULL));
	OK(pthread_join(w.thread, NULL));
	OK(evc_join(c, NULL, NULL));
	text = traced(c, EVC_TRACE_JSON);
	asked = number_of(event_of(text, "coord (coordinator, coord)", "stop"),
			  "ns");
	/* A thread that is no member has a lane of its own. */
	IN_ORDER(asked,
		 number_of(event_of(text, "waits (waiting thread, coord)",
				    "awake"), "ns"));
	free(text);
	OK(evc_free(c));
}
END_TEST

START_TEST(one_that_began_before_it_has_its_beginning)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	uint64_t before = mono_ns(), after;
	evc_id id = hold(c, "early");
	struct life l;
	char *text;

	OK(evc_thread_start(c, "guest", stay, &g, NULL, NULL));
	UNTIL(atomic_load(&g.in) == 1);
	after = mono_ns();
	OK(evc_trace_start(c, 0));
	OK(evc_hold_end(c, id));
	text = traced(c, EVC_TRACE_JSON);
	l = life_of(text, "early (hold, coord)", "early");
	IN_ORDER(before, l.begin, after, l.end, mono_ns());
	/* One that did nothing since stands in the register. */
	l = life_of(text, "guest (thread, coord)", "guest");
	IN_ORDER(before, l.begin, after);
	ck_assert_uint_eq(l.end, 0);
	string_is(l.at, "state", "alive");
	free(text);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

/* ---- scopes ---- */

START_TEST(a_scope_that_is_gone_has_its_name)
{
	evc_coord *c = new_coord(NULL), *s, *below;
	uint64_t before = mono_ns();
	struct life l;
	char *text;

	OK(evc_trace_start(c, 0));
	s = ready_scope(c, "database", NULL);
	below = ready_scope(s, "pool", NULL);
	pass(below, "query");
	OK(evc_free(below));
	OK(evc_free(s));
	text = traced(c, EVC_TRACE_JSON);
	ck_assert(lane_of(text, "database (scope, coord / database)") != 0);
	l = life_of(text, "query (hold, coord / database / pool)", "query");
	IN_ORDER(before, l.begin, l.end, mono_ns());
	free(text);
	text = drawn(c, __func__);
	if (text != NULL)
		HAS(text, ">coord / database / pool<");
	free(text);
	OK(evc_free(c));
}
END_TEST

START_TEST(phases_are_told_one_after_the_other)
{
	evc_coord *c = new_coord(NULL), *one, *two;
	evc_join_opts first = { .flags = EVC_JOIN_STOP_FIRST };
	uint64_t asked, told_one, told_two;
	const char *stop;
	char *text;

	OK(evc_trace_start(c, 0));
	one = phase_scope(c, "one", 1, 0);
	two = phase_scope(c, "two", 2, 0);
	OK(evc_thread_start(one, "in-one", obey, NULL, NULL, NULL));
	OK(evc_thread_start(two, "in-two", obey, NULL, NULL, NULL));
	OK(evc_join(c, &first, NULL));
	/* Written by a scope: it is that of all. */
	text = traced(two, EVC_TRACE_JSON);
	asked = number_of(event_of(text, "coord (coordinator, coord)", "stop"),
			  "ns");
	stop = event_of(text, "one (scope, coord / one)", "stop");
	string_is(stop, "by", "parent");
	string_is(stop, "who", "coord");
	told_one = number_of(stop, "ns");
	told_two = number_of(event_of(text, "two (scope, coord / two)", "stop"),
			     "ns");
	IN_ORDER(asked, told_one,
		 life_of(text, "in-one (thread, coord / one)", "in-one").end,
		 told_two,
		 life_of(text, "in-two (thread, coord / two)", "in-two").end);
	ck_assert(has_event(text, "coord (coordinator, coord)", "phase 1"));
	ck_assert(has_event(text, "coord (coordinator, coord)", "phase 2"));
	free(text);
	OK(evc_free(two));
	OK(evc_free(one));
	OK(evc_free(c));
}
END_TEST

/* ---- a stop ---- */

START_TEST(who_is_late_is_shown_late)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	evc_join_opts opts = { .grace = 1, .flags = EVC_JOIN_STOP_FIRST };
	const char *lane = "straggler (thread, coord)", *verdict;
	uint64_t gave_up;
	struct life l;
	char *text;

	OK(evc_trace_start(c, 0));
	OK(evc_thread_start(c, "good", obey, NULL, NULL, NULL));
	OK(evc_thread_start(c, "straggler", stay, &g, NULL, NULL));
	ck_assert_int_eq(evc_join(c, &opts, NULL), EVC_DEADLINE_EXCEEDED);
	text = traced(c, EVC_TRACE_JSON);
	verdict = event_of(text, "join (join, coord)", "verdict");
	string_is(verdict, "code", "DEADLINE_EXCEEDED");
	ck_assert_uint_eq(number_of(verdict, "stragglers"), 1);
	gave_up = number_of(verdict, "ns");
	ck_assert(has_event(text, lane, "late"));
	ck_assert(!has_event(text, "good (thread, coord)", "late"));
	string_is(life_of(text, lane, "straggler").at, "state", "alive");
	free(text);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	text = traced(c, EVC_TRACE_JSON);
	l = life_of(text, lane, "straggler");
	/* Its budget was over, then the join said so. */
	IN_ORDER(number_of(event_of(text, lane, "late"), "ns"), gave_up,
		 l.end);
	free(text);
	OK(evc_free(c));
}
END_TEST

START_TEST(each_request_is_there_and_a_clear_and_a_drain)
{
	evc_coord *c = new_coord(NULL);
	const char *at, *coord = "coord (coordinator, coord)";
	uint64_t drained, first, second, cleared, again;
	char *text;
	evc_id id;

	OK(evc_trace_start(c, 0));
	/* Or the drain had nothing to wait for. */
	id = hold(c, "last");
	OK(evc_request_drain(c, 60, "no new ones"));
	drained = mono_ns();
	OK(evc_request_stop(c, 0, "first"));
	ck_assert_int_eq(evc_fail(c, EVC_INTERNAL, 0, "second %d", 2),
			 EVC_INTERNAL);
	OK(evc_hold_end(c, id));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_INTERNAL);
	OK(evc_clear_stop(c));
	OK(evc_request_stop(c, 0, "again"));
	text = traced(c, EVC_TRACE_JSON);
	at = event_of(text, coord, "drain");
	string_is(at, "text", "no new ones");
	IN_ORDER(number_of(at, "ns"), drained);
	at = event_of(text, coord, "stop");
	string_is(at, "text", "first");
	first = number_of(at, "ns");
	at = next_event(at, lane_of(text, coord), "request");
	ck_assert_ptr_nonnull(at);
	string_is(at, "text", "second 2");
	string_is(at, "status", "INTERNAL");
	string_is(at, "by", "error");
	second = number_of(at, "ns");
	cleared = number_of(event_of(text, coord, "clear"), "ns");
	at = next_event(at, lane_of(text, coord), "stop");
	ck_assert_ptr_nonnull(at);
	string_is(at, "text", "again");
	again = number_of(at, "ns");
	IN_ORDER(drained, first, second, cleared, again);
	free(text);
	OK(evc_free(c));
}
END_TEST

START_TEST(the_users_clock_changes_nothing)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_id early = hold(c, "early"), id;
	uint64_t before = mono_ns();
	struct life l;
	char *text;

	OK(evc_trace_start(c, 0));
	id = hold(c, "late");
	OK(evc_hold_end(c, early));
	OK(evc_hold_end(c, id));
	text = traced(c, EVC_TRACE_JSON);
	l = life_of(text, "late (hold, coord)", "late");
	IN_ORDER(before, l.begin, l.end, mono_ns());
	/* When it began nobody can say. */
	l = life_of(text, "early (hold, coord)", "early");
	IN_ORDER(before, l.begin, l.end, mono_ns());
	free(text);
	OK(evc_free(c));
}
END_TEST

API_MAIN("trace", what_is_off_records_nothing, wrong_calls_are_refused,
	 start_and_stop_and_start_again,
	 the_latest_are_kept_and_the_others_counted,
	 a_ring_of_one_event_is_a_ring,
	 a_thread_from_its_beginning_to_its_verdict, a_thread_leaves_its_wait,
	 one_that_began_before_it_has_its_beginning,
	 a_scope_that_is_gone_has_its_name,
	 phases_are_told_one_after_the_other, who_is_late_is_shown_late,
	 each_request_is_there_and_a_clear_and_a_drain,
	 the_users_clock_changes_nothing)
