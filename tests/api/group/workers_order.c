/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In which order the functions of worker groups are called at a start and at a
 * stop, how often, and on which thread.
 */
#include "../../support/workers_util.h"

static evc_status
first_run(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	if (atomic_load(&k->by_id[id]) == 1)
		note(k->diary, "run", k->name);
	if (!evc_group_is_active(group) &&
	    !evc_should_stop(evc_group_scope(group)))
		atomic_fetch_add(&k->wrong, 1);
	evc_sleep(evc_group_scope(group), 0.001);
	return crew_leave(k, 0);
}

START_TEST(a_start_is_all_inits_then_each_state_start_before_its_threads)
{
	evc_registry *reg = new_registry(0);
	struct diary d = DIARY_INIT;
	struct crew a = { .run = first_run, .diary = &d },
		    b = { .run = first_run, .diary = &d };
	int i, at[4] = { -1, -1, -1, -1 };

	crew_add(reg, "a", &a, 1, NULL);
	crew_add(reg, "b", &b, 1, NULL);
	OK(evc_registry_start(reg));
	UNTIL(tid_of(&d, "run:a") != 0 && tid_of(&d, "run:b") != 0);
	for (i = 0; i < d.n; i++) {
		if (strcmp(d.what[i], "start:a") == 0)
			at[0] = i;
		if (strcmp(d.what[i], "run:a") == 0)
			at[1] = i;
		if (strcmp(d.what[i], "start:b") == 0)
			at[2] = i;
		if (strcmp(d.what[i], "run:b") == 0)
			at[3] = i;
	}
	ck_assert_str_eq(d.what[0], "init:a");
	ck_assert_str_eq(d.what[1], "init:b");
	ck_assert_int_eq(at[0], 2);
	ck_assert_int_gt(at[1], at[0]);
	ck_assert_int_gt(at[2], at[0]);
	ck_assert_int_gt(at[3], at[2]);
	ck_assert_int_eq(d.n, 6);
	for (i = 0; i < d.n; i++)
		if (d.what[i][0] == 'r')
			ck_assert_int_ne(d.tid[i], own_tid());
		else
			ck_assert_int_eq(d.tid[i], own_tid());
	end_registry(reg);
}
END_TEST

START_TEST(a_stop_is_shutdown_and_state_stop_of_each_then_the_wait)
{
	evc_registry *reg = new_registry(0);
	struct diary d = DIARY_INIT;
	struct crew a = { .diary = &d }, b = { .diary = &d },
		    never = { .diary = &d };
	int i;

	crew_add(reg, "a", &a, 2, NULL);
	crew_add(reg, "b", &b, 2, NULL);
	OK(evc_registry_start(reg));
	crew_add(reg, "never", &never, 2, NULL);
	diary_clear(&d);
	OK(evc_registry_stop(reg, NULL));
	DIARY(&d, "shutdown:a stop:a shutdown:b stop:b cleanup:a cleanup:b");
	for (i = 0; i < d.n; i++)
		ck_assert_int_eq(d.tid[i], own_tid());
	/* Once: now there is nothing to stop. */
	OK(evc_registry_stop(reg, NULL));
	OK(evc_group_stop(a.group, NULL));
	OK(evc_registry_stop_name(reg, "b", NULL));
	ck_assert_int_eq(d.n, 6);
	CALLED(&a, 1, 1, 1, 1, 1);
	CALLED(&never, 0, 0, 0, 0, 0);
	end_registry(reg);
	ck_assert_int_eq(d.n, 6);
}
END_TEST

/* The shutdown function is what lets workers go, as the seed's users have it:
   it must not wait for them. */
static void
open_it(evc_group *group, void *arg)
{
	struct crew *k = arg;

	crew_shutdown(group, arg);
	if (atomic_load(&k->in) != 2)
		atomic_fetch_add(&k->wrong, 1);
	atomic_store(&k->open, 1);
}

START_TEST(shutdown_comes_before_the_wait)
{
	evc_group_opts o = { .shutdown = open_it };
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_stay };

	crew_add(reg, "train", &k, 2, &o);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 2);
	OK(evc_registry_stop(reg, NULL));
	CALLED(&k, 1, 1, 1, 1, 1);
	end_registry(reg);
}
END_TEST

START_TEST(cleanup_comes_only_when_all_have_ended)
{
	evc_join_opts none = { .grace = EVC_NO_GRACE },
		      some = { .grace = 0.05 };
	evc_registry *reg = new_registry(0);
	struct diary d = DIARY_INIT;
	struct crew k = { .run = crew_stay, .diary = &d };

	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 2);
	/* Nobody has asked it to stop: then there is nothing to clean up. */
	ck_assert(!evc_group_wait_finish(k.group, 0.05));
	LATE(evc_registry_stop(reg, &none));
	LATE(evc_registry_stop(reg, &some));
	LATE(evc_group_stop(k.group, &some));
	ck_assert(!evc_group_wait_finish(k.group, 0.05));
	STATE(k.group, EVC_GROUP_STOPPING);
	ck_assert_uint_eq(info_of(k.group).n_live, 2);
	CALLED(&k, 1, 1, 1, 1, 0);
	atomic_store(&k.open, 1);
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	STATE(k.group, EVC_GROUP_STOPPED);
	CALLED(&k, 1, 1, 1, 1, 1);
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	OK(evc_registry_stop(reg, NULL));
	CALLED(&k, 1, 1, 1, 1, 1);
	DIARY(&d, "init:train start:train shutdown:train stop:train "
		  "cleanup:train");
	end_registry(reg);
}
END_TEST

START_TEST(a_later_stop_that_finds_them_ended_cleans_up)
{
	evc_join_opts none = { .grace = EVC_NO_GRACE };
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_stay };

	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 2);
	LATE(evc_registry_stop(reg, &none));
	atomic_store(&k.open, 1);
	OK(evc_registry_stop(reg, NULL));
	CALLED(&k, 1, 1, 1, 1, 1);
	end_registry(reg);
}
END_TEST

/* wait_finish asks for nothing. */
START_TEST(wait_finish_waits_for_what_ends_by_itself)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_end, .end_says = EVC_OUT_OF_RANGE };
	struct crew on = { 0 };

	crew_add(reg, "ends", &k, 3, NULL);
	crew_add(reg, "goes-on", &on, 1, NULL);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	ck_assert(!evc_group_wait_finish(on.group, 0));
	ck_assert(!evc_group_wait_finish(on.group, 0.05));
	ck_assert(!evc_group_wait_finish(NULL, 0));
	ck_assert(evc_group_is_active(on.group));
	UNTIL(atomic_load(&k.n_cleanup) == 1);
	CALLED(&k, 1, 1, 1, 1, 1);
	end_registry(reg);
	CALLED(&on, 1, 1, 1, 1, 1);
}
END_TEST

/* ---- on which thread ---- */

/* That it was no thread of the group's, nor ours. */
static void
was_the_helper(struct diary *d, const char *entry, struct crew *k)
{
	int i, tid;

	UNTIL(tid_of(d, entry) != 0);
	tid = tid_of(d, entry);
	ck_assert_int_ne(tid, own_tid());
	for (i = 0; i < N_IDS; i++)
		ck_assert_int_ne(tid, atomic_load(&k->tid[i]));
}

START_TEST(an_error_and_a_stop_from_above_run_them_on_the_helper)
{
	evc_registry *reg = new_registry(0);
	struct diary d = DIARY_INIT;
	struct crew a = { .run = crew_fail, .diary = &d },
		    b = { .diary = &d },
		    c = { .run = crew_end, .end_says = EVC_OUT_OF_RANGE,
			  .diary = &d };

	crew_add(reg, "a", &a, 2, NULL);
	crew_add(reg, "b", &b, 2, NULL);
	crew_add(reg, "c", &c, 2, NULL);
	OK(evc_registry_start(reg));
	was_the_helper(&d, "shutdown:c", &c);
	was_the_helper(&d, "stop:c", &c);
	was_the_helper(&d, "cleanup:c", &c);
	atomic_store(&a.open, 1);
	was_the_helper(&d, "shutdown:a", &a);
	was_the_helper(&d, "stop:a", &a);
	was_the_helper(&d, "cleanup:a", &a);
	OK(evc_request_stop(evc_registry_coord(reg), 0, NULL));
	was_the_helper(&d, "shutdown:b", &b);
	was_the_helper(&d, "stop:b", &b);
	was_the_helper(&d, "cleanup:b", &b);
	end_registry(reg);
	CALLED(&a, 1, 1, 1, 1, 1);
	CALLED(&b, 1, 1, 1, 1, 1);
	CALLED(&c, 1, 1, 1, 1, 1);
}
END_TEST

static evc_status
stop_all(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	while (!atomic_load(&k->open))
		t_sleep(0.001);
	if (evc_registry_stop(evc_group_registry(group), NULL) != 0)
		atomic_fetch_add(&k->wrong, 1);
	return crew_leave(k, 0);
}

START_TEST(a_stop_by_a_worker_runs_them_there)
{
	evc_registry *reg = new_registry(0);
	struct diary d = DIARY_INIT;
	struct crew a = { .run = stop_all, .diary = &d }, b = { .diary = &d };

	crew_add(reg, "a", &a, 1, NULL);
	crew_add(reg, "b", &b, 2, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&a.in) == 1);
	atomic_store(&a.open, 1);
	UNTIL(atomic_load(&b.n_cleanup) == 1);
	ck_assert_int_eq(tid_of(&d, "shutdown:a"), atomic_load(&a.tid[0]));
	ck_assert_int_eq(tid_of(&d, "stop:a"), atomic_load(&a.tid[0]));
	ck_assert_int_eq(tid_of(&d, "shutdown:b"), atomic_load(&a.tid[0]));
	ck_assert_int_eq(tid_of(&d, "cleanup:b"), atomic_load(&a.tid[0]));
	ck_assert(evc_group_wait_finish(a.group, T_LIMIT));
	end_registry(reg);
	CALLED(&a, 1, 1, 1, 1, 1);
	CALLED(&b, 1, 1, 1, 1, 1);
}
END_TEST

START_TEST(ASIDE_gives_them_a_thread_of_their_own)
{
	evc_group_opts o = { .flags = EVC_GROUP_ASIDE };
	evc_registry *reg = new_registry(0);
	struct diary d = DIARY_INIT;
	struct crew k = { .diary = &d };

	crew_add(reg, "train", &k, 2, &o);
	OK(evc_registry_start(reg));
	ck_assert_int_eq(tid_of(&d, "init:train"), own_tid());
	ck_assert_int_eq(tid_of(&d, "start:train"), own_tid());
	UNTIL(atomic_load(&k.runs) > 3);
	OK(evc_registry_stop(reg, NULL));
	was_the_helper(&d, "shutdown:train", &k);
	was_the_helper(&d, "stop:train", &k);
	was_the_helper(&d, "cleanup:train", &k);
	DIARY(&d, "init:train start:train shutdown:train stop:train "
		  "cleanup:train");
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
}
END_TEST

/* ---- starts that fail ---- */

START_TEST(an_init_that_fails_starts_nothing_and_is_undone_in_reverse)
{
	evc_registry *reg = new_registry(0);
	struct diary d = DIARY_INIT;
	struct crew a = { .diary = &d }, b = { .diary = &d },
		    c = { .diary = &d, .init_says = EVC_UNAVAILABLE },
		    e = { .diary = &d };
	struct crew runs = { .run = crew_obey };

	crew_add(reg, "runs", &runs, 1, NULL);
	OK(evc_registry_start(reg));
	crew_add(reg, "a", &a, 2, NULL);
	crew_add(reg, "b", &b, 2, NULL);
	crew_add(reg, "c", &c, 2, NULL);
	crew_add(reg, "e", &e, 2, NULL);
	ck_assert_int_eq(evc_registry_start(reg), EVC_UNAVAILABLE);
	DIARY(&d, "init:a init:b init:c shutdown:b shutdown:a");
	ck_assert(!evc_group_is_active(a.group));
	ck_assert(!evc_group_is_active(c.group));
	ck_assert(evc_group_is_active(runs.group));
	ck_assert_uint_eq(info_of(a.group).n_live, 0);
	ck_assert_int_eq(a.runs + b.runs + c.runs + e.runs, 0);
	/* Another time it goes well, and begins with init again. */
	c.init_says = 0;
	diary_clear(&d);
	OK(evc_registry_start(reg));
	ck_assert(strncmp(diary_text(&d),
			  "init:a init:b init:c init:e start:a", 35) == 0);
	CALLED(&runs, 1, 1, 0, 0, 0);
	end_registry(reg);
	CALLED(&a, 2, 1, 2, 1, 1);
	CALLED(&c, 2, 1, 1, 1, 1);
	CALLED(&e, 1, 1, 1, 1, 1);
}
END_TEST

START_TEST(a_state_start_that_fails_stops_those_started_before)
{
	evc_registry *reg = new_registry(0);
	struct diary d = DIARY_INIT;
	struct crew a = { .diary = &d }, b = { .diary = &d },
		    c = { .diary = &d, .start_says = 200 };

	crew_add(reg, "a", &a, 2, NULL);
	crew_add(reg, "b", &b, 2, NULL);
	crew_add(reg, "c", &c, 2, NULL);
	ck_assert_int_eq(evc_registry_start(reg), 200);
	ck_assert(!evc_group_is_active(a.group));
	ck_assert(!evc_group_is_active(b.group));
	ck_assert(!evc_group_is_active(c.group));
	ck_assert_uint_eq(info_of(a.group).n_live, 0);
	/* What was begun is undone, the last one first. */
	ck_assert(strncmp(diary_text(&d),
			  "init:a init:b init:c start:a start:b start:c "
			  "shutdown:",
			  54) == 0);
	ck_assert_ptr_nonnull(strstr(diary_text(&d), "shutdown:b stop:b"));
	ck_assert_ptr_nonnull(strstr(diary_text(&d), "shutdown:a stop:a"));
	ck_assert(strstr(diary_text(&d), "shutdown:b") <
		  strstr(diary_text(&d), "shutdown:a"));
	ck_assert_int_eq(c.n_stop, 0);
	ck_assert_int_eq(c.runs, 0);
	c.start_says = 0;
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&a.runs) > 0 && atomic_load(&c.runs) > 0);
	end_registry(reg);
}
END_TEST

START_TEST(a_group_that_fails_alone_is_not_started)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .init_says = -EVC_UNAVAILABLE };

	crew_add(reg, "train", &k, 2, NULL);
	ck_assert_int_ne(evc_group_start(k.group), 0);
	ck_assert(!evc_group_is_active(k.group));
	CALLED(&k, 1, 0, 0, 0, 0);
	k.init_says = 0;
	k.start_says = 77;
	ck_assert_int_eq(evc_group_start(k.group), 77);
	ck_assert(!evc_group_is_active(k.group));
	ck_assert_int_eq(k.runs, 0);
	CALLED(&k, 2, 1, 1, 0, 0);
	k.start_says = 0;
	OK(evc_group_start(k.group));
	UNTIL(atomic_load(&k.runs) > 0);
	end_registry(reg);
	CALLED(&k, 3, 2, 2, 1, 1);
}
END_TEST

API_MAIN("workers_order",
	 a_start_is_all_inits_then_each_state_start_before_its_threads,
	 a_stop_is_shutdown_and_state_stop_of_each_then_the_wait,
	 shutdown_comes_before_the_wait, cleanup_comes_only_when_all_have_ended,
	 a_later_stop_that_finds_them_ended_cleans_up,
	 wait_finish_waits_for_what_ends_by_itself,
	 an_error_and_a_stop_from_above_run_them_on_the_helper,
	 a_stop_by_a_worker_runs_them_there,
	 ASIDE_gives_them_a_thread_of_their_own,
	 an_init_that_fails_starts_nothing_and_is_undone_in_reverse,
	 a_state_start_that_fails_stops_those_started_before,
	 a_group_that_fails_alone_is_not_started)
