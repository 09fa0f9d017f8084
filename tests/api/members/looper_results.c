/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A looper's start, run and stop: what their results mean, and what they may
 * do - the same on a loop and on a thread.
 */
#include "../../support/looper_util.h"

/* What a looper may return, and what is recorded. */
static const struct outcome {
	evc_status result, recorded;
} errors[] = { { EVC_DATA_LOSS, EVC_DATA_LOSS },
	       { EVC_CANCELLED, EVC_CANCELLED },
	       { 200, 200 },
	       { -EVC_INTERNAL, EVC_INTERNAL },
	       { 1000, EVC_UNKNOWN } };

/* Returned by its start, its second run, or its stop. */
static void
ends_on_error(int place, int who, const struct outcome *o)
{
	static const char *const calls[] = { "(", "(rr)", "(rr)" };
	struct looper other = { 0 };
	struct looper l = { .last = 2, .result = EVC_OUT_OF_RANGE };
	struct rig r;
	evc_verdict v;

	*(who == 0   ? &l.start_result
	  : who == 1 ? &l.result
		     : &l.stop_result) = o->result;
	rig_begin(&r, place, NULL);
	looper_begin(&r, &other, 0.001, NULL);
	looper_begin(&r, &l, 0.001, NULL);
	ck_assert_int_eq(evc_join(r.c, NULL, &v), o->recorded);
	ck_assert_uint_eq(v.stop.kind, EVC_BY_MEMBER_END);
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert_uint_eq(v.n_ended, 2);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_str_eq(v.error.who, "ticker");
	ck_assert_uint_eq(v.error.by, l.id);
	if (o->result == 1000)
		HAS(v.error.text, "1000");
	looper_was(&l, calls[who]);
	ck_assert_int_eq(other.stops, other.starts);
	ck_assert_int_eq(other.wrong, 0);
	rig_end(&r);
}

START_TEST(any_other_result_is_an_error_and_stops)
{
	size_t i;
	int who;

	for (who = 0; who < 3; who++)
		for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
			ends_on_error(_i, who, &errors[i]);
}
END_TEST

START_TEST(a_start_that_ends_cleanly_ends_it_before_any_run)
{
	struct looper l = { .start_result = EVC_OUT_OF_RANGE };
	struct rig r;
	evc_verdict v;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, 0, NULL);
	OK(evc_join(r.c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, 0);
	ck_assert_uint_eq(v.n_ended, 1);
	looper_was(&l, "(");
	rig_end(&r);
}
END_TEST

static evc_status
stop_at_start(evc_coord *c, struct looper *l)
{
	(void)l;
	return evc_request_stop(c, 0, NULL);
}

static evc_status
pause_at_start(evc_coord *c, struct looper *l)
{
	return evc_member_pause(c, l->id);
}

START_TEST(a_start_may_ask_for_the_stop_or_pause_its_looper)
{
	evc_member_opts opts = { .flags = EVC_FLUSH };
	struct looper stops = { .at_start = stop_at_start };
	struct looper pauses = { .at_start = pause_at_start };
	struct rig r;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &pauses, 0, NULL);
	RIG_UNTIL(&r, atomic_load(&pauses.starts));
	RUNS_STAY(&r, &pauses, 0);
	OK(evc_member_resume(r.c, pauses.id));
	UNTIL_RUNS(&r, &pauses, 3);
	looper_begin(&r, &stops, 0, NULL);
	OK(evc_join(r.c, NULL, NULL));
	looper_was(&stops, "()");
	ck_assert_int_eq(pauses.stops, 1);
	ck_assert_int_eq(pauses.wrong, 0);
	rig_end(&r);

	memset(&stops, 0, sizeof(stops));
	stops.at_start = stop_at_start;
	rig_begin(&r, _i, NULL);
	looper_begin(&r, &stops, 0, &opts);
	OK(evc_join(r.c, NULL, NULL));
	looper_was(&stops, "(r)"); /* the last one is the only one */
	ck_assert(stops.seen[0].stopped);
	rig_end(&r);
}
END_TEST

START_TEST(an_error_of_its_stop_comes_after_that_of_its_run)
{
	struct looper l = { .last = 1,
			    .result = EVC_DATA_LOSS,
			    .stop_result = EVC_INTERNAL };
	struct rig r;
	evc_verdict v;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, 1, NULL);
	ck_assert_int_eq(evc_join(r.c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_errors, 2);
	ck_assert_uint_eq(v.n_ended, 1);
	looper_was(&l, "(r)");
	rig_end(&r);
}
END_TEST

static evc_status
stop_in_run(evc_coord *c, struct looper *l, int n)
{
	if (n < 3)
		return 0;
	if (evc_request_stop(c, 0, "enough") != 0)
		atomic_fetch_add(&l->wrong, 1);
	return *(evc_status *)l->more;
}

START_TEST(after_the_stop_CANCELLED_is_obedience_and_errors_are_errors)
{
	static const struct outcome cases[] = { { 0, 0 },
						{ EVC_OUT_OF_RANGE, 0 },
						{ EVC_CANCELLED, 0 },
						{ EVC_DATA_LOSS,
						  EVC_DATA_LOSS } };
	struct rig r;
	evc_verdict v;
	size_t i;

	for (i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const struct outcome *o = &cases[i / 2];
		evc_status run = i % 2 ? 0 : o->result;
		struct looper l = { .body = stop_in_run,
				    .more = &run,
				    .stop_result = i % 2 ? o->result : 0 };

		rig_begin(&r, _i, NULL);
		looper_begin(&r, &l, 0, NULL);
		ck_assert_int_eq(evc_join(r.c, NULL, &v), o->recorded);
		ck_assert_uint_eq(v.stop.kind, EVC_BY_REQUEST);
		ck_assert_str_eq(v.stop.text, "enough");
		ck_assert_str_eq(v.stop.who, "ticker");
		ck_assert_uint_eq(v.stop.by, l.id);
		ck_assert_uint_eq(v.n_errors, o->recorded != 0);
		looper_was(&l, "(rrr)");
		rig_end(&r);
	}
}
END_TEST

static evc_status
fail_in_run(evc_coord *c, struct looper *l, int n)
{
	(void)l;
	return n < 2 ? 0 : evc_fail(c, EVC_DATA_LOSS, EIO, "shard %d", n);
}

START_TEST(a_failure_reported_inside_is_counted_once)
{
	struct looper l = { .body = fail_in_run };
	struct rig r;
	evc_verdict v;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, 0.001, NULL);
	ck_assert_int_eq(evc_join(r.c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert_str_eq(v.error.text, "shard 2");
	ck_assert_str_eq(v.error.func, "fail_in_run");
	ck_assert_str_eq(v.error.who, "ticker");
	ck_assert_uint_eq(v.error.by, l.id);
	ck_assert_int_eq(v.error.err, EIO);
	looper_was(&l, "(rr)");
	rig_end(&r);
}
END_TEST

/* What one has reported itself does not speak for the others of its thread. */
START_TEST(each_error_is_counted_whose_ever_it_is)
{
	struct looper fails = { .body = fail_in_run };
	struct looper l[2] = { { .stop_result = EVC_DATA_LOSS },
			       { .stop_result = EVC_DATA_LOSS } };
	struct rig r;
	evc_verdict v;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l[0], INFINITY, NULL);
	UNTIL_RUNS(&r, &l[0], 1);
	looper_begin(&r, &l[1], INFINITY, NULL);
	UNTIL_RUNS(&r, &l[1], 1);
	looper_begin(&r, &fails, 0.001, NULL);
	ck_assert_int_eq(evc_join(r.c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_str_eq(v.error.text, "shard 2");
	ck_assert_uint_eq(v.n_errors, 3);
	ck_assert_uint_eq(v.n_ended, 3);
	rig_end(&r);
}
END_TEST

START_TEST(with_END_STOPS_every_end_is_a_stop)
{
	static const struct outcome cases[] = {
		{ EVC_OUT_OF_RANGE, 0 }, { EVC_INTERNAL, EVC_INTERNAL }
	};
	evc_member_opts opts = { .flags = EVC_END_STOPS };
	struct rig r;
	evc_verdict v;
	int i;

	for (i = 0; i < 4; i++) {
		const struct outcome *o = &cases[i / 2];
		struct looper other = { 0 };
		struct looper l = { .last = 2,
				    .result = o->result,
				    .start_result = i % 2 ? o->result : 0 };

		rig_begin(&r, _i, NULL);
		looper_begin(&r, &other, 0.001, NULL);
		looper_begin(&r, &l, 0.001, &opts);
		ck_assert_int_eq(evc_join(r.c, NULL, &v), o->recorded);
		ck_assert_uint_eq(v.stop.kind, EVC_BY_MEMBER_END);
		ck_assert_str_eq(v.stop.who, "ticker");
		ck_assert_uint_eq(v.stop.by, l.id);
		ck_assert_uint_eq(v.n_ended, 2);
		looper_was(&l, i % 2 ? "(" : "(rr)");
		rig_end(&r);
	}
}
END_TEST

START_TEST(the_clean_codes_are_the_coordinators)
{
	static const evc_status clean[] = { 20 };
	const evc_config configs[] = { { .clean = clean, .n_clean = 1 },
				       { .flags = EVC_NO_CLEAN_CODES } };
	static const evc_status results[] = { 20, EVC_OUT_OF_RANGE };
	static const evc_status verdicts[] = { 0, EVC_OUT_OF_RANGE, 20,
					       EVC_OUT_OF_RANGE };
	struct rig r;
	int i;

	for (i = 0; i < 4; i++) {
		struct looper l = { .last = 1, .result = results[i % 2] };

		rig_begin(&r, _i, &configs[i / 2]);
		looper_begin(&r, &l, 1, NULL);
		ck_assert_int_eq(evc_join(r.c, NULL, NULL), verdicts[i]);
		ck_assert(evc_should_stop(r.c) == (verdicts[i] != 0));
		looper_was(&l, "(r)");
		rig_end(&r);
	}
}
END_TEST

/* Asked outside of a run, or about another coordinator's. */
static evc_status
ask_others(evc_coord *c, struct looper *l, int n)
{
	evc_coord *other = l->more;

	(void)n;
	if (evc_looper_tick(other, NULL, NULL, NULL) !=
		    -EVC_FAILED_PRECONDITION ||
	    evc_looper_tick(NULL, NULL, NULL, NULL) != -EVC_INVALID_ARGUMENT ||
	    evc_looper_tick(c, NULL, NULL, NULL) != 0)
		atomic_fetch_add(&l->wrong, 1);
	return EVC_OUT_OF_RANGE;
}

static evc_status
ask_in_hook(evc_coord *c, struct looper *l)
{
	if (evc_looper_tick(c, NULL, NULL, NULL) != -EVC_FAILED_PRECONDITION)
		atomic_fetch_add(&l->wrong, 1);
	return 0;
}

START_TEST(only_inside_a_run_is_there_a_tick)
{
	struct looper l = { .body = ask_others,
			    .at_start = ask_in_hook,
			    .at_stop = ask_in_hook };
	uint64_t missed = 77;
	double late = 77;
	evc_id id = 77;
	struct rig r;

	rig_begin(&r, _i, NULL);
	l.more = new_coord(NULL);
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_looper_tick(r.c, &id, &missed, &late));
	looper_begin(&r, &l, 0, NULL);
	OK(evc_join(r.c, NULL, NULL));
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_looper_tick(r.c, &id, &missed, &late));
	ck_assert_uint_eq(id, 77);
	ck_assert_uint_eq(missed, 77);
	ck_assert_double_eq(late, 77);
	looper_was(&l, "(r)");
	OK(evc_free(l.more));
	rig_end(&r);
}
END_TEST

static evc_status
turn_in_run(evc_coord *c, struct looper *l, int n)
{
	double end = t_now() + T_LIMIT;
	struct looper *other = l->more;
	int before = atomic_load(&other->runs);
	struct ev_loop *loop = l->rig->home;
	evc_id id = 0;

	if (loop == NULL)
		loop = evc_reactor_loop(atomic_load(&l->rig->far.r));
	if (n == 5) { /* the stop reaches the others in here, this one after */
		if (evc_request_stop(c, 0, NULL) != 0)
			atomic_fetch_add(&l->wrong, 1);
		while (!atomic_load(&other->stops) && t_now() < end)
			ev_run(loop, EVRUN_NOWAIT);
		if (!atomic_load(&other->stops) || atomic_load(&l->stops))
			atomic_fetch_add(&l->wrong, 1);
	}
	if (n != 2)
		return 0;
	while (atomic_load(&other->runs) < before + 3 && t_now() < end)
		ev_run(loop, EVRUN_NOWAIT);
	if (atomic_load(&other->runs) < before + 3 ||
	    atomic_load(&l->runs) != 2 ||
	    evc_looper_tick(c, &id, NULL, NULL) != 0 || id != l->id)
		atomic_fetch_add(&l->wrong, 1);
	return 0;
}

START_TEST(a_run_that_turns_its_loop_serves_the_others_and_not_itself)
{
	struct rig r;
	int i;

	for (i = 0; i < 2; i++) {
		struct looper other = { 0 };
		struct looper l = { .body = turn_in_run, .more = &other };

		rig_begin(&r, _i, NULL);
		looper_begin(&r, &other, i ? 0 : 0.001, NULL);
		looper_begin(&r, &l, i ? 0 : 0.001, NULL);
		OK(evc_join(r.c, NULL, NULL));
		ck_assert_int_eq(other.wrong, 0);
		ck_assert_int_eq(other.stops, 1);
		looper_was(&l, "(rrrrr)");
		rig_end(&r);
	}
}
END_TEST

PLACES_MAIN(
	"looper_results", EACH_PLACE(any_other_result_is_an_error_and_stops),
	EACH_PLACE(a_start_that_ends_cleanly_ends_it_before_any_run),
	EACH_PLACE(a_start_may_ask_for_the_stop_or_pause_its_looper),
	EACH_PLACE(an_error_of_its_stop_comes_after_that_of_its_run),
	EACH_PLACE(after_the_stop_CANCELLED_is_obedience_and_errors_are_errors),
	EACH_PLACE(a_failure_reported_inside_is_counted_once),
	EACH_PLACE(each_error_is_counted_whose_ever_it_is),
	EACH_PLACE(with_END_STOPS_every_end_is_a_stop),
	EACH_PLACE(the_clean_codes_are_the_coordinators),
	EACH_PLACE(only_inside_a_run_is_there_a_tick),
	AT_PLACE(a_run_that_turns_its_loop_serves_the_others_and_not_itself,
		 AT_HOME),
	AT_PLACE(a_run_that_turns_its_loop_serves_the_others_and_not_itself,
		 FAR_AWAY))
