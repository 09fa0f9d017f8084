/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stop and loopers: no run after it, no sleep through it, nothing that can
 * be asked of a looper after it; and wrong use.
 */
#include "../../support/looper_util.h"

#include <limits.h>

/* Much is due, and the looper itself asks for the stop. */
static evc_status
stop_in_third(evc_coord *c, struct looper *l, int n)
{
	if (n == 1)
		clock_to(20);
	if (n == 3 && (evc_looper_trigger(c, l->id) != 0 ||
		       evc_request_stop(c, 0, NULL) != 0))
		atomic_fetch_add(&l->wrong, 1);
	return 0;
}

START_TEST(p1_no_run_begins_after_the_stop_of_its_own)
{
	static const double intervals[] = { INTERVAL, 0 };
	evc_member_opts opts = { .missed = EVC_MISSED_BURST };
	struct rig r;
	int i;

	for (i = 0; i < 2; i++) {
		struct looper l = { .body = stop_in_third };

		rig_scripted(&r, _i);
		looper_begin(&r, &l, intervals[i], &opts);
		OK(evc_join(r.c, NULL, NULL));
		looper_was(&l, "(rrr)");
		rig_end(&r);
	}
}
END_TEST

/* Much is due when the stop comes from elsewhere, and the loop, or the thread,
   hears of it only later. */
static evc_status
stay_in_second(evc_coord *c, struct looper *l, int n)
{
	if (n == 1)
		clock_to(20);
	return n == 2 ? stay(c, l->more) : 0;
}

START_TEST(p1_no_run_begins_after_a_stop_that_came_during_one)
{
	evc_member_opts opts = { .missed = EVC_MISSED_BURST };
	struct guest g = { 0 };
	struct looper l = { .body = stay_in_second, .more = &g };
	struct rig r;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, INTERVAL, &opts);
	UNTIL(atomic_load(&g.in));
	OK(evc_looper_trigger(r.c, l.id));
	OK(evc_request_stop(r.c, 0, NULL));
	atomic_store(&g.open, 1);
	OK(rig_stop(&r, NULL));
	looper_was(&l, "(rr)");
	rig_end(&r);
}
END_TEST

START_TEST(p1_no_run_begins_on_a_loop_that_turns_after_the_stop)
{
	static const double intervals[] = { INTERVAL, 0, INFINITY };
	evc_member_opts flush = { .flags = EVC_FLUSH };
	struct looper l[3] = { { 0 }, { 0 }, { 0 } }, fresh = { 0 };
	struct rig r;
	int i, runs[3];

	rig_scripted(&r, _i);
	for (i = 0; i < 3; i++) {
		looper_begin(&r, &l[i], intervals[i], NULL);
		UNTIL_RUNS(&r, &l[i], 1);
	}
	/* It gets its last run, which is its first one. */
	looper_begin(&r, &fresh, INTERVAL, &flush);
	clock_to(10);
	for (i = 0; i < 3; i++) {
		OK(evc_looper_trigger(r.c, l[i].id));
		runs[i] = l[i].runs;
	}
	OK(evc_request_stop(r.c, 0, NULL));
	rig_moment(&r);
	OK(rig_stop(&r, NULL));
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(l[i].runs, runs[i]);
		ck_assert_int_eq(l[i].stops, 1);
		ck_assert_int_eq(l[i].wrong, 0);
	}
	looper_was(&fresh, "(r)");
	rig_end(&r);
}
END_TEST

/* The first one stops all, once it is told to. */
static bool armed;
static int n_after;

static evc_status
first_stops_all(evc_coord *c, struct looper *l, int n)
{
	(void)n;
	if (!armed)
		return 0;
	n_after++;
	if (evc_request_stop(c, 0, NULL) != 0)
		atomic_fetch_add(&l->wrong, 1);
	return 0;
}

/* All are due in one turn of the loop: for the first time, or again. */
static void
all_in_one_turn(bool again)
{
	enum { MANY = 50 };
	struct looper *l = calloc(MANY, sizeof(*l));
	struct rig r;
	int i;

	ck_assert_ptr_nonnull(l);
	rig_begin(&r, AT_HOME, NULL);
	n_after = 0;
	armed = !again;
	for (i = 0; i < MANY; i++) {
		l[i].body = first_stops_all;
		looper_begin(&r, &l[i], i % 2 ? 0 : INFINITY, NULL);
	}
	for (i = 0; again && i < MANY; i++) {
		UNTIL_RUNS(&r, &l[i], 1);
		OK(evc_looper_trigger(r.c, l[i].id));
	}
	armed = true;
	OK(evc_join(r.c, NULL, NULL));
	ck_assert_int_eq(n_after, 1);
	for (i = 0; i < MANY; i++) {
		ck_assert_int_eq(l[i].starts, l[i].stops);
		ck_assert_int_eq(l[i].wrong, 0);
	}
	rig_end(&r);
	free(l);
}

START_TEST(p1_no_other_run_begins_in_the_turn_of_the_stop)
{
	all_in_one_turn(false);
	all_in_one_turn(true);
}
END_TEST

/* At any moment: one run may have begun before the request had returned. */
START_TEST(p1_one_run_at_most_is_under_way_when_the_stop_comes)
{
	struct rig r;
	int i, runs;

	for (i = 0; i < 100; i++) {
		struct looper l = { 0 };

		rig_begin(&r, _i, NULL);
		looper_begin(&r, &l, 0, NULL);
		UNTIL_RUNS(&r, &l, 1);
		OK(evc_request_stop(r.c, 0, NULL));
		runs = atomic_load(&l.runs);
		OK(rig_stop(&r, NULL));
		ck_assert_int_le(l.runs, runs + 1);
		ck_assert_int_eq(l.stops, 1);
		ck_assert_int_eq(l.wrong, 0);
		rig_end(&r);
	}
}
END_TEST

static void *
ask_later(void *arg)
{
	t_sleep(0.05);
	return evc_request_stop((evc_coord *)arg, 0, NULL) == 0 ? NULL : arg;
}

/* Asleep for an hour, or without limit, or with a frozen clock. */
START_TEST(asleep_it_wakes_for_the_stop)
{
	static const double intervals[] = { 3600, INFINITY, 1e-3 };
	evc_join_opts opts = { .grace = T_LIMIT };
	struct rig r;
	evc_verdict v;
	int i;

	for (i = 0; i < 3; i++) {
		struct looper l = { 0 };
		pthread_t asker;
		void *failed;

		rig_begin(&r, _i, i < 2 ? NULL : &scripted_config);
		looper_begin(&r, &l, intervals[i], NULL);
		UNTIL_RUNS(&r, &l, 1);
		if (_i != AT_HOME && i < 2)
			until_asleep(l.tid);
		OK(pthread_create(&asker, NULL, ask_later, r.c));
		OK(evc_join(r.c, &opts, &v));
		OK(pthread_join(asker, &failed));
		ck_assert_ptr_null(failed);
		ck_assert_uint_eq(v.n_stragglers, 0);
		looper_was(&l, "(r)");
		rig_end(&r);
	}
}
END_TEST

static evc_status
ask_after_stop(evc_coord *c, struct looper *l, int n)
{
	evc_id paused = *(evc_id *)l->more;

	(void)n;
	if (evc_request_stop(c, 0, NULL) != 0 ||
	    evc_looper_trigger(c, l->id) != -EVC_CANCELLED ||
	    evc_looper_set_interval(c, l->id, 1) != -EVC_CANCELLED ||
	    evc_member_pause(c, l->id) != -EVC_CANCELLED ||
	    evc_member_resume(c, l->id) != -EVC_CANCELLED ||
	    evc_member_resume(c, paused) >= 0)
		atomic_fetch_add(&l->wrong, 1);
	return 0;
}

START_TEST(after_the_stop_nothing_can_be_asked_of_it)
{
	evc_member_opts opts = { .flags = EVC_PAUSED };
	struct looper paused = { 0 };
	struct looper l = { .body = ask_after_stop, .more = &paused.id };
	struct rig r;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &paused, 1, &opts);
	looper_begin(&r, &l, 0, NULL);
	OK(evc_join(r.c, NULL, NULL));
	looper_was(&l, "(r)");
	looper_was(&paused, "");
	REFUSED(EVC_NOT_FOUND, evc_looper_trigger(r.c, l.id));
	rig_end(&r);
}
END_TEST

/* Refused, and as if it had not been asked for. */
static void
not_started(struct rig *r, evc_status code, const char *name, double interval,
	    evc_fn *fn, const evc_member_opts *o)
{
	evc_id id = 77;

	REFUSED(code, evc_looper_start(r->c, name, interval, fn, NULL, o, &id));
	ck_assert_uint_eq(id, 77);
}

START_TEST(options_that_make_no_sense_are_refused)
{
	static const double intervals[] = { -1, -1e-300, -INFINITY, NAN };
	const evc_member_opts wrong[] = {
		{ .missed = EVC_MISSED_AT_MOST(0) },
		{ .missed = EVC_MISSED_AT_MOST(65536) },
		{ .missed = UINT_MAX },
		{ .jitter = -0.1 },
		{ .jitter = 1.1 },
		{ .jitter = NAN },
		{ .grace = NAN },
		{ .flags = EVC_ON_DRAIN },
		{ .flags = 1u << 9 },
		{ .flags = 1u << 31 },
		{ .reserved_ = { 0, 0, 0, 0, 0, 0, 0, 1 } }
	};
	evc_member_opts o;
	struct rig r;
	evc_id id = 77;
	size_t i;

	rig_begin(&r, _i, NULL);
	o = rig_opts(&r, NULL);
	for (i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++)
		not_started(&r, EVC_INVALID_ARGUMENT, "x", intervals[i],
			    looper_run, &o);
	not_started(&r, EVC_INVALID_ARGUMENT, "x", 1, NULL, &o);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_looper_start(NULL, "x", 1, looper_run, NULL, &o, &id));
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		o = rig_opts(&r, &wrong[i]);
		not_started(&r, EVC_INVALID_ARGUMENT, "x", 1, looper_run, &o);
	}
	ck_assert(!evc_should_stop(r.c));
	OK(evc_join(r.c, NULL, NULL)); /* nobody is there */
	rig_end(&r);
}
END_TEST

START_TEST(it_needs_a_loop_of_its_coordinator_or_a_thread)
{
	struct ev_loop *loop = ev_loop_new(0), *gone;
	evc_coord *other = new_coord(loop);
	evc_member_opts opts = { .reactor = evc_home(other) };
	evc_reactor *dead = NULL;
	struct rig r;

	rig_begin(&r, _i, NULL);
	if (_i != AT_HOME)
		not_started(&r, EVC_FAILED_PRECONDITION, "x", 1, looper_run,
			    NULL);
	not_started(&r, EVC_INVALID_ARGUMENT, "x", 1, looper_run, &opts);
	gone = ev_loop_new(0);
	OK(evc_reactor_attach(r.c, "dead", gone, &dead));
	ev_loop_destroy(gone);
	opts.reactor = dead;
	not_started(&r, EVC_FAILED_PRECONDITION, "x", 1, looper_run, &opts);
	rig_end(&r);
	OK(evc_free(other));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(what_is_for_loopers_is_refused_elsewhere)
{
	const evc_member_opts wrong[] = { { .flags = EVC_OWN_THREAD },
					  { .flags = EVC_PAUSED },
					  { .flags = EVC_FLUSH },
					  { .missed = EVC_MISSED_SKIP },
					  { .missed = 17 },
					  { .start = obey },
					  { .stop = obey },
					  { .jitter = 0.5 } };
	struct rig r;
	evc_id id = 77;
	size_t i;

	rig_begin(&r, AT_HOME, NULL);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const evc_member_opts *o = &wrong[i];

		REFUSED(EVC_INVALID_ARGUMENT,
			evc_thread_start(r.c, "x", obey, NULL, o, &id));
		REFUSED(EVC_INVALID_ARGUMENT, evc_hold_begin(r.c, "x", o, &id));
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_on_stop(r.c, "x", obey, NULL, o, &id));
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_register_thread(r.c, "x", pthread_self(), o, &id));
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_guard(r.c, "x", return_at_once, NULL, o));
		ck_assert_uint_eq(id, 77);
	}
	rig_end(&r);
}
END_TEST

START_TEST(only_a_living_looper_can_be_told)
{
	struct looper l = { 0 },
		      ended = { .last = 1, .result = EVC_OUT_OF_RANGE };
	evc_id hold = 0, stale[4];
	struct rig r;
	int i;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &ended, 1, NULL);
	RIG_UNTIL(&r, atomic_load(&ended.stops));
	OK(evc_join(r.c, NULL, NULL));
	looper_begin(&r, &l, 1, NULL);
	OK(evc_hold_begin(r.c, "hold", NULL, &hold));
	stale[0] = 0;
	stale[1] = hold + 1;
	stale[2] = UINT64_MAX;
	stale[3] = ended.id;
	for (i = 0; i < 4; i++) {
		REFUSED(EVC_NOT_FOUND, evc_looper_trigger(r.c, stale[i]));
		REFUSED(EVC_NOT_FOUND,
			evc_looper_set_interval(r.c, stale[i], 1));
		REFUSED(EVC_NOT_FOUND, evc_member_pause(r.c, stale[i]));
		REFUSED(EVC_NOT_FOUND, evc_member_resume(r.c, stale[i]));
		REFUSED(EVC_NOT_FOUND, evc_member_remove(r.c, stale[i]));
	}
	REFUSED(EVC_NOT_FOUND, evc_looper_trigger(r.c, hold));
	REFUSED(EVC_NOT_FOUND, evc_looper_set_interval(r.c, hold, 1));
	REFUSED(EVC_FAILED_PRECONDITION, evc_member_pause(r.c, hold));
	REFUSED(EVC_FAILED_PRECONDITION, evc_member_resume(r.c, hold));
	REFUSED(EVC_INVALID_ARGUMENT, evc_looper_trigger(NULL, l.id));
	REFUSED(EVC_INVALID_ARGUMENT, evc_looper_set_interval(NULL, l.id, 1));
	REFUSED(EVC_INVALID_ARGUMENT, evc_member_pause(NULL, l.id));
	REFUSED(EVC_INVALID_ARGUMENT, evc_member_resume(NULL, l.id));
	REFUSED(EVC_INVALID_ARGUMENT, evc_looper_set_interval(r.c, l.id, -1));
	REFUSED(EVC_INVALID_ARGUMENT, evc_looper_set_interval(r.c, l.id, NAN));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_looper_set_interval(r.c, l.id, -INFINITY));
	OK(evc_hold_end(r.c, hold));
	ck_assert(!evc_should_stop(r.c));
	ck_assert_int_eq(l.wrong, 0);
	rig_end(&r);
}
END_TEST

START_TEST(STRICT_SETUP_reports_what_is_refused)
{
	evc_config cfg = { .flags = EVC_STRICT_SETUP };
	evc_member_opts o;
	evc_reason why;
	struct rig r;

	rig_begin(&r, _i, &cfg);
	o = rig_opts(&r, NULL);
	not_started(&r, EVC_INVALID_ARGUMENT, "x", -1, looper_run, &o);
	ck_assert(evc_should_stop(r.c));
	ck_assert_int_eq(evc_raise_requested(r.c, &why), EVC_INVALID_ARGUMENT);
	ck_assert_str_eq(why.func, "evc_looper_start");
	ck_assert_int_eq(evc_join(r.c, NULL, NULL), EVC_INVALID_ARGUMENT);
	rig_end(&r);
}
END_TEST

/* The loop has not turned, the thread may not have begun. */
START_TEST(a_stop_that_comes_first_costs_it_no_last_run)
{
	evc_member_opts opts = { .flags = EVC_FLUSH };
	struct looper l = { 0 };
	struct rig r;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, INFINITY, &opts);
	OK(evc_request_stop(r.c, 0, NULL));
	OK(rig_stop(&r, NULL));
	ck_assert_int_ge(l.n_calls, 3);
	ck_assert_int_eq(l.calls[0], '(');
	ck_assert_int_eq(l.calls[1], 'r');
	ck_assert_int_eq(l.calls[l.n_calls - 1], ')');
	rig_end(&r);
}
END_TEST

PLACES_MAIN("looper_end",
	    EACH_PLACE(a_stop_that_comes_first_costs_it_no_last_run),
	    EACH_PLACE(p1_no_run_begins_after_the_stop_of_its_own),
	    ELSEWHERE(p1_no_run_begins_after_a_stop_that_came_during_one),
	    AT_PLACE(p1_no_run_begins_on_a_loop_that_turns_after_the_stop,
		     AT_HOME),
	    AT_PLACE(p1_no_other_run_begins_in_the_turn_of_the_stop, AT_HOME),
	    EACH_PLACE(p1_one_run_at_most_is_under_way_when_the_stop_comes),
	    EACH_PLACE(asleep_it_wakes_for_the_stop),
	    EACH_PLACE(after_the_stop_nothing_can_be_asked_of_it),
	    EACH_PLACE(options_that_make_no_sense_are_refused),
	    EACH_PLACE(it_needs_a_loop_of_its_coordinator_or_a_thread),
	    AT_PLACE(what_is_for_loopers_is_refused_elsewhere, AT_HOME),
	    EACH_PLACE(only_a_living_looper_can_be_told),
	    EACH_PLACE(STRICT_SETUP_reports_what_is_refused))
