/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * EVC_GROUP_RESTART: workers that fail begin again, with pauses, until that
 * happens too often.
 */
#include "../../support/workers_util.h"

/* Fails in its first runs: as many as end_says.  By its result alone: evc_fail
   asks for the stop, as everywhere. */
static evc_status
fail_first(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	int nth;

	crew_enter(group, id, k);
	nth = atomic_load(&k->by_id[id]);
	if (id == 0 && nth <= k->end_says)
		return crew_leave(k, EVC_UNAVAILABLE);
	evc_sleep(evc_group_scope(group), 0.001);
	return crew_leave(k, 0);
}

static evc_group_opts
restart(double first, double most, unsigned n, double within)
{
	evc_group_opts o = { .on_error = EVC_GROUP_RESTART,
			     .restart = { .first = first,
					  .most = most,
					  .times = n,
					  .within = within } };

	return o;
}

START_TEST(a_worker_that_fails_begins_again_with_its_id)
{
	evc_group_opts o = restart(0.001, 0.01, 10, 100);
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = fail_first, .end_says = 3 };
	evc_group_info info;
	unsigned i;

	crew_add(reg, "train", &k, 2, &o);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.by_id[0]) > 6);
	ck_assert(evc_group_is_active(k.group));
	/* Nobody else was stopped, or started anew. */
	ck_assert(!evc_should_stop(evc_group_scope(k.group)));
	CALLED(&k, 1, 1, 0, 0, 0);
	info = info_of(k.group);
	ck_assert_uint_eq(info.n_errors, 3);
	ck_assert_uint_eq(info.n_restarts, 3);
	ck_assert_uint_eq(info.n_live, 2);
	ck_assert_uint_eq(worker_of(k.group, 0).n_restarts, 3);
	ck_assert_uint_eq(worker_of(k.group, 0).n_errors, 3);
	ck_assert_uint_eq(worker_of(k.group, 1).n_restarts, 0);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(error_of(k.group, i).reason.code,
				 EVC_UNAVAILABLE);
		ck_assert_uint_eq(error_of(k.group, i).id, 0);
		ck_assert_uint_eq(error_of(k.group, i).run, i + 1);
		ck_assert_str_eq(error_of(k.group, i).reason.who, "train/0");
	}
	ids_are(k.group, 0, 2);
	SAYS("train/0", "run 1", "UNAVAILABLE");
	SAYS("train/0", "run 3", "UNAVAILABLE");
	OK(evc_registry_stop(reg, NULL));
	/* They were dealt with: the stop is no error. */
	OK(evc_raise_requested(evc_group_scope(k.group), NULL));
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
}
END_TEST

START_TEST(too_often_and_it_gives_up)
{
	evc_group_opts o = restart(0.001, 0.001, 3, 1000);
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = fail_first, .end_says = 1000 };
	evc_group_info info;
	char text[4096];

	crew_add(reg, "train", &k, 2, &o);
	OK(evc_registry_start(reg));
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	info = info_of(k.group);
	ck_assert_uint_eq(info.n_errors, 4);
	ck_assert_uint_eq(info.n_restarts, 3);
	ck_assert_int_eq(k.by_id[0], 4);
	ck_assert_int_eq(info.stop.code, EVC_UNAVAILABLE);
	UNTIL(atomic_load(&k.n_cleanup) == 1);
	CALLED(&k, 1, 1, 1, 1, 1);
	ck_assert_uint_eq(error_of(k.group, 3).run, 4);
	evc_explain(evc_group_scope(k.group), text, sizeof(text));
	HAS(text, "train/0");
	HAS(text, "run 4");
	HAS(text, "UNAVAILABLE");
	SAYS("train/0", "run 4", "UNAVAILABLE");
	/* Another start counts anew. */
	OK(evc_registry_start(reg));
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	ck_assert_int_eq(k.by_id[0], 8);
	end_registry(reg);
}
END_TEST

static evc_status
report_first(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	if (id == 0)
		return crew_leave(k, evc_fail(evc_group_scope(group),
					      EVC_UNAVAILABLE, 0, "no way"));
	evc_sleep(evc_group_scope(group), 0.001);
	return crew_leave(k, 0);
}

/* What is a request for the stop stays one. */
START_TEST(evc_fail_stops_it_all_the_same)
{
	evc_group_opts o = restart(0.001, 0.01, 10, 100);
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = report_first };

	crew_add(reg, "train", &k, 2, &o);
	OK(evc_registry_start(reg));
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	ck_assert_uint_eq(info_of(k.group).n_restarts, 0);
	ck_assert_uint_eq(info_of(k.group).n_errors, 1);
	ck_assert_str_eq(error_of(k.group, 0).reason.text, "no way");
	end_registry(reg);
}
END_TEST

/* Intensity is the group's: n of all of its workers together. */
static evc_status
fail_always(evc_group *group, unsigned id, void *arg)
{
	crew_enter(group, id, arg);
	return crew_leave(arg, EVC_ABORTED);
}

START_TEST(the_restarts_of_all_workers_count_together)
{
	evc_group_opts o = restart(0.001, 0.001, 6, 1000);
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = fail_always };

	crew_add(reg, "train", &k, 3, &o);
	OK(evc_registry_start(reg));
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	ck_assert_uint_le(info_of(k.group).n_restarts, 6);
	ck_assert_uint_ge(info_of(k.group).n_errors, 7);
	ck_assert_uint_le(info_of(k.group).n_errors, 9);
	end_registry(reg);
}
END_TEST

START_TEST(without_numbers_it_is_5_in_60_seconds)
{
	evc_group_opts o = restart(0.001, 0.001, 0, 0);
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = fail_first, .end_says = 1000 };

	crew_add(reg, "train", &k, 1, &o);
	OK(evc_registry_start(reg));
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	ck_assert_uint_eq(info_of(k.group).n_restarts, 5);
	ck_assert_uint_eq(info_of(k.group).n_errors, 6);
	end_registry(reg);
}
END_TEST

/* Restarts that are old count no more. */
START_TEST(only_the_last_seconds_count)
{
	evc_group_opts o = restart(0.02, 0.02, 2, 0.03);
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = fail_first, .end_says = 10 };

	crew_add(reg, "train", &k, 1, &o);
	OK(evc_registry_start(reg));
	/* Two lie 0.02 s apart at least, so never three within 0.03. */
	UNTIL(atomic_load(&k.by_id[0]) > 12);
	ck_assert_uint_eq(info_of(k.group).n_restarts, 10);
	end_registry(reg);
}
END_TEST

struct times {
	double at[32];
};

static evc_status
note_time(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	struct times *t = k->more;
	int n;

	crew_enter(group, id, k);
	n = atomic_load(&k->by_id[id]);
	if (n <= 32)
		t->at[n - 1] = t_now();
	return crew_leave(k, n < k->end_says ? EVC_ABORTED : EVC_OUT_OF_RANGE);
}

START_TEST(the_pause_doubles_up_to_most)
{
	evc_group_opts o = restart(0.02, 0.08, 100, 1000);
	static const double least[] = { 0.02, 0.04, 0.08, 0.08, 0.08 };
	evc_registry *reg = new_registry(0);
	struct times t = { { 0 } };
	struct crew k = { .run = note_time, .more = &t, .end_says = 6 };
	struct times t2 = { { 0 } };
	struct crew many = { .run = note_time, .more = &t2, .end_says = 30 };
	int i;

	crew_add(reg, "train", &k, 1, &o);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	for (i = 0; i < 5; i++)
		ck_assert_msg(t.at[i + 1] - t.at[i] >= least[i] * 0.99,
			      "pause %d: %g", i, t.at[i + 1] - t.at[i]);
	/* Without a limit the last of these would take 2^29 ms. */
	o = restart(0.001, 0.004, 100, 1000);
	crew_add(reg, "many", &many, 1, &o);
	OK(evc_group_start(many.group));
	ck_assert(evc_group_wait_finish(many.group, T_LIMIT));
	ck_assert_int_eq(many.by_id[0] + many.by_id[1], 30);
	end_registry(reg);
}
END_TEST

START_TEST(jitter_only_adds)
{
	evc_group_opts o = restart(0.01, 0.01, 100, 1000);
	evc_registry *reg = new_registry(0);
	struct times t = { { 0 } };
	struct crew k = { .run = note_time, .more = &t, .end_says = 20 };
	int i;

	o.restart.jitter = 1;
	crew_add(reg, "train", &k, 1, &o);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	for (i = 0; i < 19; i++)
		ck_assert_msg(t.at[i + 1] - t.at[i] >= 0.0099, "pause %d: %g",
			      i, t.at[i + 1] - t.at[i]);
	end_registry(reg);
}
END_TEST

/* ---- during a pause ---- */

START_TEST(a_stop_ends_the_pause)
{
	evc_group_opts o = restart(1000, 1000, 10, 1000);
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = fail_first, .end_says = 1 };
	int round;

	crew_add(reg, "train", &k, 2, &o);
	for (round = 1; round <= 3; round++) {
		k.end_says = round == 1 ? 1 : 1000;
		OK(evc_registry_start(reg));
		UNTIL(info_of(k.group).n_errors == (uint64_t)round);
		ck_assert(evc_group_is_active(k.group));
		NOT_YET(atomic_load(&k.by_id[0]) > round);
		/* The others go on meanwhile. */
		UNTIL(atomic_load(&k.by_id[1]) > round * 3);
		OK(evc_registry_stop(reg, NULL));
		ck_assert_int_eq(k.by_id[0], round);
		CALLED(&k, round, round, round, round, round);
		/* It was to begin again, and did not. */
		ck_assert_uint_eq(info_of(k.group).n_restarts, 0);
	}
	end_registry(reg);
}
END_TEST

START_TEST(resize_and_pause_go_on_beside_it)
{
	evc_group_opts o = restart(1000, 1000, 10, 1000);
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = fail_first, .end_says = 1000 };

	crew_add(reg, "train", &k, 2, &o);
	OK(evc_registry_start(reg));
	UNTIL(info_of(k.group).n_errors == 1);
	OK(evc_group_resize(k.group, 4));
	UNTIL(atomic_load(&k.by_id[2]) > 0 && atomic_load(&k.by_id[3]) > 0);
	OK(evc_group_pause(k.group));
	OK(evc_group_resume(k.group));
	OK(evc_group_resize(k.group, 1));
	UNTIL(atomic_load(&k.in) == 0);
	ck_assert(evc_group_is_active(k.group));
	OK(evc_registry_stop(reg, NULL));
	ck_assert_int_eq(k.by_id[0], 1);
	end_registry(reg);
}
END_TEST

static evc_status
stay_and_fail(evc_group *group, unsigned id, void *arg)
{
	crew_stay(group, id, arg);
	return EVC_ABORTED;
}

START_TEST(an_error_after_the_stop_restarts_nobody)
{
	evc_group_opts o = restart(0.001, 0.001, 10, 1000);
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = stay_and_fail };

	crew_add(reg, "train", &k, 1, &o);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 1);
	OK(evc_request_stop(evc_group_scope(k.group), 0, NULL));
	UNTIL(!evc_group_is_active(k.group));
	atomic_store(&k.open, 1);
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	NOT_YET(atomic_load(&k.runs) > 1);
	ck_assert_uint_eq(info_of(k.group).n_errors, 1);
	ck_assert_int_eq(error_of(k.group, 0).reason.code, EVC_ABORTED);
	ck_assert_uint_eq(info_of(k.group).n_restarts, 0);
	end_registry(reg);
}
END_TEST

API_MAIN("workers_restart", a_worker_that_fails_begins_again_with_its_id,
	 too_often_and_it_gives_up, evc_fail_stops_it_all_the_same,
	 the_restarts_of_all_workers_count_together,
	 without_numbers_it_is_5_in_60_seconds, only_the_last_seconds_count,
	 the_pause_doubles_up_to_most, jitter_only_adds, a_stop_ends_the_pause,
	 resize_and_pause_go_on_beside_it,
	 an_error_after_the_stop_restarts_nobody)
