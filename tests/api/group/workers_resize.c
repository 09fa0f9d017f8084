/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups that grow, shrink, pause and go on.
 */
#include "../../support/workers_util.h"

/* How many of the first n entries live, and how many are retired. */
static unsigned
n_live(const evc_group *group, unsigned *ret_retired)
{
	evc_worker_info w;
	unsigned i, live = 0;

	*ret_retired = 0;
	for (i = 0; evc_group_worker_get(group, i, &w) == 0; i++) {
		live += w.live;
		*ret_retired += w.retired;
	}
	return live;
}

START_TEST(a_group_that_runs_grows_at_once)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 }, other = { 0 };
	unsigned ids[8], retired = 0, i;

	crew_add(reg, "train", &k, 2, NULL);
	crew_add(reg, "other", &other, 2, NULL);
	OK(evc_registry_start(reg));
	OK(evc_group_resize(k.group, 2)); /* as it is */
	OK(evc_group_resize(k.group, 5));
	UNTIL(atomic_load(&k.by_id[4]) > 0 && atomic_load(&k.by_id[5]) > 0 &&
	      atomic_load(&k.by_id[6]) > 0);
	UNTIL(atomic_load(&k.by_id[0]) > 0 && atomic_load(&k.by_id[1]) > 0);
	ck_assert_uint_eq(evc_group_ids(k.group, ids, 8), 5);
	for (i = 0; i < 5; i++)
		ck_assert_uint_eq(ids[i], i < 2 ? i : i + 2);
	ck_assert_uint_eq(info_of(k.group).n_threads, 5);
	ck_assert_uint_eq(info_of(k.group).n_live, 5);
	ck_assert_uint_eq(n_live(k.group, &retired), 5);
	ck_assert_uint_eq(retired, 0);
	ck_assert_uint_eq(worker_of(k.group, 4).id, 6);
	ck_assert_uint_eq(evc_registry_ids(reg, NULL, 0), 7);
	/* init was called for the group, not for a thread. */
	CALLED(&k, 1, 1, 0, 0, 0);
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
	for (i = 0; i < N_IDS; i++)
		ck_assert((i < 2 || (i > 3 && i < 7)) == (k.by_id[i] > 0));
}
END_TEST

START_TEST(it_shrinks_when_runs_are_over_and_keeps_the_ids)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_stay };
	unsigned retired = 0, i;
	int runs[4];

	crew_add(reg, "train", &k, 4, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 4);
	/* Does not wait for the runs, and ends none of them. */
	OK(evc_group_resize(k.group, 1));
	NOT_YET(info_of(k.group).n_live != 4);
	ck_assert_int_eq(k.in, 4);
	ck_assert_uint_eq(info_of(k.group).n_threads, 1);
	ck_assert(evc_group_is_active(k.group));
	ck_assert(!evc_should_stop(evc_group_scope(k.group)));
	atomic_store(&k.open, 1);
	UNTIL(info_of(k.group).n_live == 1);
	ck_assert_uint_eq(n_live(k.group, &retired), 1);
	ck_assert_uint_eq(retired, 3);
	for (i = 0; i < 4; i++)
		runs[i] = atomic_load(&k.by_id[i]);
	/* The first stays; the others have run to their end and no more. */
	UNTIL(atomic_load(&k.by_id[0]) > runs[0] + 10);
	for (i = 1; i < 4; i++)
		ck_assert_int_eq(atomic_load(&k.by_id[i]), runs[i]);
	ids_are(k.group, 0, 1);
	/* It grows again: these, and then new ones. */
	OK(evc_group_resize(k.group, 5));
	UNTIL(atomic_load(&k.by_id[1]) > runs[1] &&
	      atomic_load(&k.by_id[2]) > runs[2] &&
	      atomic_load(&k.by_id[3]) > runs[3] &&
	      atomic_load(&k.by_id[4]) > 0);
	ids_are(k.group, 0, 5);
	ck_assert_uint_eq(n_live(k.group, &retired), 5);
	ck_assert_uint_eq(retired, 0);
	ck_assert_uint_eq(info_of(k.group).n_errors, 0);
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
}
END_TEST

/* Told to go, and back before it has gone. */
START_TEST(it_grows_again_while_those_that_are_too_many_run)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_stay };
	unsigned retired = 0;

	crew_add(reg, "train", &k, 3, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 3);
	OK(evc_group_resize(k.group, 1));
	OK(evc_group_resize(k.group, 3));
	atomic_store(&k.open, 1);
	UNTIL(atomic_load(&k.by_id[0]) > 5 && atomic_load(&k.by_id[1]) > 5 &&
	      atomic_load(&k.by_id[2]) > 5);
	ck_assert_uint_eq(n_live(k.group, &retired), 3);
	ck_assert_uint_eq(retired, 0);
	ck_assert_uint_eq(info_of(k.group).n_live, 3);
	ids_are(k.group, 0, 3);
	end_registry(reg);
}
END_TEST

START_TEST(a_group_that_does_not_run_has_its_size_for_the_next_start)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };

	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_group_resize(k.group, 4));
	STATE(k.group, EVC_GROUP_NEW);
	ck_assert_int_eq(k.runs, 0);
	ids_are(k.group, 0, 4);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.by_id[3]) > 0);
	ck_assert_uint_eq(info_of(k.group).n_live, 4);
	OK(evc_registry_stop(reg, NULL));
	OK(evc_group_resize(k.group, 1));
	ck_assert_uint_eq(info_of(k.group).n_threads, 1);
	OK(evc_registry_start(reg));
	ck_assert_uint_eq(info_of(k.group).n_live, 1);
	OK(evc_registry_stop(reg, NULL));
	OK(evc_group_resize(k.group, 3));
	OK(evc_registry_start(reg));
	ck_assert_uint_eq(info_of(k.group).n_live, 3);
	ids_are(k.group, 0, 3);
	end_registry(reg);
}
END_TEST

START_TEST(wrong_sizes_and_wrong_times_are_refused)
{
	evc_join_opts none = { .grace = EVC_NO_GRACE };
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_stay };

	crew_add(reg, "train", &k, 2, NULL);
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_resize(NULL, 2));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_resize(k.group, 0));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_resize(k.group, 4097));
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 2);
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_resize(k.group, 0));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_resize(k.group, 4097));
	ck_assert_uint_eq(info_of(k.group).n_threads, 2);
	LATE(evc_registry_stop(reg, &none));
	REFUSED(EVC_FAILED_PRECONDITION, evc_group_resize(k.group, 3));
	atomic_store(&k.open, 1);
	end_registry(reg);
}
END_TEST

static evc_status
first_ends(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	if (id == 0)
		return crew_leave(k, EVC_OUT_OF_RANGE);
	evc_sleep(evc_group_scope(group), 0.001);
	return crew_leave(k, 0);
}

START_TEST(who_has_ended_by_itself_stays_ended)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = first_ends };

	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_registry_start(reg));
	UNTIL(info_of(k.group).n_live == 1);
	OK(evc_group_resize(k.group, 3));
	UNTIL(atomic_load(&k.by_id[2]) > 0);
	OK(evc_group_resize(k.group, 2));
	OK(evc_group_resize(k.group, 4));
	UNTIL(atomic_load(&k.by_id[3]) > 0);
	NOT_YET(atomic_load(&k.by_id[0]) > 1);
	/* Until the next start. */
	OK(evc_registry_stop(reg, NULL));
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.by_id[0]) == 2);
	end_registry(reg);
}
END_TEST

START_TEST(up_and_down_many_times)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };
	unsigned retired = 0;
	int i;

	crew_add(reg, "train", &k, 1, NULL);
	OK(evc_registry_start(reg));
	for (i = 0; i < 100; i++)
		OK(evc_group_resize(k.group, 1 + (unsigned)(i * 7) % 12));
	OK(evc_group_resize(k.group, 6));
	UNTIL(info_of(k.group).n_live == 6);
	ck_assert_uint_eq(n_live(k.group, &retired), 6);
	ids_are(k.group, 0, 6);
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
	ck_assert_int_eq(k.by_id[12], 0);
}
END_TEST

/* ---- pause ---- */

START_TEST(in_a_pause_no_run_begins)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_stay };
	int runs;

	crew_add(reg, "train", &k, 3, NULL);
	REFUSED(EVC_FAILED_PRECONDITION, evc_group_pause(k.group));
	REFUSED(EVC_FAILED_PRECONDITION, evc_group_resume(k.group));
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 3);
	OK(evc_group_resume(k.group)); /* it has not paused */
	OK(evc_group_pause(k.group));
	OK(evc_group_pause(k.group));
	STATE(k.group, EVC_GROUP_PAUSED);
	ck_assert(evc_group_is_active(k.group));
	/* Runs that are under way go on to their end. */
	NOT_YET(atomic_load(&k.in) != 3);
	atomic_store(&k.open, 1);
	UNTIL(atomic_load(&k.in) == 0);
	runs = atomic_load(&k.runs);
	ck_assert_int_eq(runs, 3);
	NOT_YET(atomic_load(&k.runs) != runs);
	ck_assert_uint_eq(info_of(k.group).n_live, 3);
	OK(evc_group_resume(k.group));
	STATE(k.group, EVC_GROUP_RUNNING);
	UNTIL(atomic_load(&k.by_id[0]) > 2 && atomic_load(&k.by_id[1]) > 2 &&
	      atomic_load(&k.by_id[2]) > 2);
	OK(evc_registry_stop(reg, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_group_pause(k.group));
	REFUSED(EVC_FAILED_PRECONDITION, evc_group_resume(k.group));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_pause(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_resume(NULL));
	end_registry(reg);
}
END_TEST

START_TEST(a_stop_is_heard_in_a_pause)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };
	int round, runs;

	crew_add(reg, "train", &k, 3, NULL);
	for (round = 1; round <= 3; round++) {
		OK(evc_registry_start(reg));
		OK(evc_registry_start(reg));
		runs = atomic_load(&k.runs);
		UNTIL(atomic_load(&k.runs) > runs + 5);
		OK(evc_group_pause(k.group));
		UNTIL(atomic_load(&k.in) == 0);
		if (round == 2) /* from above */
			OK(evc_request_stop(evc_group_scope(k.group), 0, NULL));
		OK(evc_registry_stop(reg, NULL));
		STATE(k.group, EVC_GROUP_STOPPED);
		CALLED(&k, round, round, round, round, round);
		/* The next start begins without a pause. */
	}
	end_registry(reg);
}
END_TEST

START_TEST(it_is_resized_in_a_pause)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };

	crew_add(reg, "train", &k, 3, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.runs) > 5);
	OK(evc_group_pause(k.group));
	OK(evc_group_resize(k.group, 5));
	STATE(k.group, EVC_GROUP_PAUSED);
	NOT_YET(atomic_load(&k.by_id[4]) > 0);
	OK(evc_group_resize(k.group, 2));
	/* No run of theirs is to be waited for. */
	UNTIL(info_of(k.group).n_live == 2);
	OK(evc_group_resume(k.group));
	UNTIL(atomic_load(&k.by_id[1]) > 2);
	end_registry(reg);
	ck_assert_int_eq(k.by_id[3] + k.by_id[4], 0);
}
END_TEST

API_MAIN("workers_resize", a_group_that_runs_grows_at_once,
	 it_shrinks_when_runs_are_over_and_keeps_the_ids,
	 it_grows_again_while_those_that_are_too_many_run,
	 a_group_that_does_not_run_has_its_size_for_the_next_start,
	 wrong_sizes_and_wrong_times_are_refused,
	 who_has_ended_by_itself_stays_ended, up_and_down_many_times,
	 in_a_pause_no_run_begins, a_stop_is_heard_in_a_pause,
	 it_is_resized_in_a_pause)
