/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a worker group: made, started, stopped, started again; its ids,
 * its names, its threads, and what the end of a worker means.
 */
#include "../../support/workers_util.h"


START_TEST(before_its_start_a_group_does_nothing)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };
	evc_group_info info;
	evc_reason r;

	ck_assert_ptr_null(evc_registry_coord(reg));
	crew_add(reg, "train", &k, 3, NULL);
	ck_assert(!evc_group_is_active(k.group));
	ck_assert(!evc_group_is_active(NULL));
	info = info_of(k.group);
	ck_assert_str_eq(info.name, "train");
	ck_assert_uint_eq(info.state, EVC_GROUP_NEW);
	ck_assert_uint_eq(info.n_threads, 3);
	ck_assert_uint_eq(info.n_live, 0);
	ck_assert_uint_eq(info.n_starts, 0);
	ck_assert_uint_eq(info.n_runs, 0);
	ck_assert_uint_eq(info.stop.kind, 0);
	ids_are(k.group, 0, 3);
	/* Its scope stands stopped. */
	ck_assert(evc_should_stop(evc_group_scope(k.group)));
	OK(evc_reason_get(evc_group_scope(k.group), 0, &r));
	HAS(r.text, "not started");
	ck_assert_ptr_eq(evc_scope_parent(evc_group_scope(k.group)),
			 evc_registry_coord(reg));
	/* A group that was never started has nobody to wait for. */
	ck_assert(evc_group_wait_finish(k.group, 0));
	CALLED(&k, 0, 0, 0, 0, 0);
	end_registry(reg);
	CALLED(&k, 0, 0, 0, 0, 0);
	ck_assert_int_eq(k.runs, 0);
}
END_TEST

START_TEST(without_a_word_it_is_two_threads_called_train)
{
	evc_registry *reg = NULL, *got = NULL;
	struct crew k = { 0 };

	OK(evc_registry_new(NULL, &reg));
	OK(evc_group_init(reg, NULL, crew_beat, &k, NULL, &k.group, &got));
	ck_assert_ptr_eq(got, reg);
	ck_assert_ptr_eq(evc_group_registry(k.group), reg);
	ck_assert_ptr_null(evc_group_registry(NULL));
	ck_assert_ptr_null(evc_group_scope(NULL));
	ck_assert_str_eq(info_of(k.group).name, "train");
	ck_assert_uint_eq(info_of(k.group).n_threads, 2);
	/* Results that nobody wants. */
	OK(evc_group_init(reg, "test", crew_beat, &k, NULL, NULL, NULL));
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.by_id[0]) > 1 && atomic_load(&k.by_id[1]) > 1);
	UNTIL(atomic_load(&k.by_id[2]) > 1 && atomic_load(&k.by_id[3]) > 1);
	end_registry(reg);
}
END_TEST

START_TEST(start_runs_it_and_stop_ends_it)
{
	int threads = t_count_threads(), fds = t_count_fds(), runs;
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };
	evc_group_info info;

	crew_add(reg, "train", &k, 3, NULL);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_is_active(k.group));
	ck_assert(!evc_should_stop(evc_group_scope(k.group)));
	UNTIL(atomic_load(&k.by_id[0]) > 2 && atomic_load(&k.by_id[1]) > 2 &&
	      atomic_load(&k.by_id[2]) > 2);
	info = info_of(k.group);
	ck_assert_uint_eq(info.state, EVC_GROUP_RUNNING);
	ck_assert_uint_eq(info.n_live, 3);
	ck_assert_uint_eq(info.n_starts, 1);
	ck_assert_uint_ge(info.n_runs, 6);
	ck_assert_uint_eq(info.stop.kind, 0);
	CALLED(&k, 1, 1, 0, 0, 0);
	OK(evc_registry_stop(reg, NULL));
	runs = atomic_load(&k.runs);
	ck_assert(!evc_group_is_active(k.group));
	ck_assert(evc_should_stop(evc_group_scope(k.group)));
	info = info_of(k.group);
	ck_assert_uint_eq(info.state, EVC_GROUP_STOPPED);
	ck_assert_uint_eq(info.n_live, 0);
	ck_assert_uint_eq(info.n_runs, runs);
	ck_assert_uint_eq(info.n_errors, 0);
	ck_assert_uint_ne(info.stop.kind, 0);
	CALLED(&k, 1, 1, 1, 1, 1);
	NOT_YET(atomic_load(&k.runs) != runs);
	/* It stays until it is freed. */
	ids_are(k.group, 0, 3);
	OK(evc_registry_free(reg));
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

START_TEST(one_group_is_started_and_stopped_alone)
{
	evc_registry *reg = new_registry(0);
	struct crew a = { 0 }, b = { 0 };

	crew_add(reg, "a", &a, 2, NULL);
	crew_add(reg, "b", &b, 2, NULL);
	OK(evc_group_start(a.group));
	OK(evc_group_start(a.group)); /* it runs already */
	UNTIL(atomic_load(&a.runs) > 2);
	ck_assert(!evc_group_is_active(b.group));
	CALLED(&a, 1, 1, 0, 0, 0);
	CALLED(&b, 0, 0, 0, 0, 0);
	OK(evc_group_stop(b.group, NULL)); /* never started */
	OK(evc_group_stop(a.group, NULL));
	OK(evc_group_stop(a.group, NULL)); /* stopped already */
	CALLED(&a, 1, 1, 1, 1, 1);
	CALLED(&b, 0, 0, 0, 0, 0);
	STATE(b.group, EVC_GROUP_NEW);
	ck_assert_int_eq(b.runs, 0);
	end_registry(reg);
}
END_TEST

START_TEST(it_is_started_again_and_keeps_what_it_has)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };
	int round, first, second;
	uint64_t runs = 0;

	crew_add(reg, "train", &k, 2, NULL);
	for (round = 1; round <= 5; round++) {
		first = atomic_load(&k.by_id[0]);
		second = atomic_load(&k.by_id[1]);
		OK(round % 2 ? evc_group_start(k.group)
			     : evc_registry_start(reg));
		STATE(k.group, EVC_GROUP_RUNNING);
		ck_assert(!evc_should_stop(evc_group_scope(k.group)));
		UNTIL(atomic_load(&k.by_id[0]) > first &&
		      atomic_load(&k.by_id[1]) > second);
		OK(evc_group_stop(k.group, NULL));
		CALLED(&k, round, round, round, round, round);
		ids_are(k.group, 0, 2);
		ck_assert_uint_eq(info_of(k.group).n_starts, round);
		ck_assert_uint_gt(info_of(k.group).n_runs, runs);
		runs = info_of(k.group).n_runs;
		ck_assert_uint_eq(runs, atomic_load(&k.runs));
		ck_assert_uint_eq(worker_of(k.group, 0).n_runs,
				  atomic_load(&k.by_id[0]));
	}
	end_registry(reg);
}
END_TEST

START_TEST(ids_count_from_0_in_each_registry_and_are_never_used_twice)
{
	evc_registry *reg = new_registry(0), *other = new_registry(0);
	struct crew a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
	unsigned ids[16], i;

	crew_add(reg, "a", &a, 2, NULL);
	crew_add(reg, "b", &b, 3, NULL);
	crew_add(other, "d", &d, 2, NULL);
	ids_are(a.group, 0, 2);
	ids_are(b.group, 2, 3);
	ids_are(d.group, 0, 2);
	ck_assert_uint_eq(evc_registry_ids(reg, NULL, 0), 5);
	OK(evc_group_free(a.group));
	crew_add(reg, "c", &c, 1, NULL);
	ids_are(c.group, 5, 1);
	ck_assert_uint_eq(evc_registry_ids(reg, ids, 16), 4);
	for (i = 0; i < 4; i++)
		ck_assert_uint_eq(ids[i], i + 2);
	/* No more are stored than there is room for. */
	ids[1] = ids[2] = 77;
	ck_assert_uint_eq(evc_registry_ids(reg, ids, 1), 4);
	ck_assert_uint_eq(evc_group_ids(b.group, ids + 1, 1), 3);
	ck_assert_uint_eq(ids[1], 2);
	ck_assert_uint_eq(ids[2], 77);
	OK(evc_registry_start(reg));
	for (i = 2; i < 6; i++)
		UNTIL(atomic_load(&b.by_id[i]) + atomic_load(&c.by_id[i]) > 0);
	end_registry(reg);
	end_registry(other);
	/* and nobody ran with an id that is not his */
	for (i = 0; i < N_IDS; i++) {
		ck_assert(i >= 2 && i <= 4 ? b.by_id[i] > 0 :
					     b.by_id[i] == 0);
		ck_assert(i == 5 ? c.by_id[i] > 0 : c.by_id[i] == 0);
	}
}
END_TEST

struct names {
	char of[4][16];
};

static evc_status
tell_name(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	struct names *names = k->more;

	crew_enter(group, id, k);
	t_own_name(names->of[id]);
	return crew_leave(k, EVC_OUT_OF_RANGE);
}

static bool
count_names(const evc_member_info *m, void *arg)
{
	unsigned *n = arg;

	if (m->kind == EVC_THREAD && strncmp(m->name, "train/", 6) == 0)
		++*n;
	return true;
}

START_TEST(threads_are_named_GROUP_slash_ID)
{
	evc_registry *reg = new_registry(0);
	struct names names = { 0 };
	struct crew k = { .run = tell_name, .more = &names };
	struct crew t = { .run = crew_obey };
	struct crew l = { .run = tell_name, .more = &names };
	unsigned n = 0;
	int i;

	crew_add(reg, "test", &k, 2, NULL);
	crew_add(reg, "a-name-of-more-than-15-bytes31", &l, 1, NULL);
	crew_add(reg, "train", &t, 3, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&t.in) == 3);
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	ck_assert(evc_group_wait_finish(l.group, T_LIMIT));
	OK(evc_member_each(evc_group_scope(t.group), count_names, &n));
	ck_assert_uint_eq(n, 3);
	for (i = 0; i < 3; i++)
		ck_assert_int_ne(t.tid[3 + i], own_tid());
	ck_assert_int_ne(t.tid[3], t.tid[4]);
	end_registry(reg);
	ck_assert_str_eq(names.of[0], "test/0");
	ck_assert_str_eq(names.of[1], "test/1");
	/* The kernel has 15 bytes: of it what there is room for. */
	ck_assert_uint_eq(strlen(names.of[2]), 15);
	ck_assert(strncmp(names.of[2], "a-name-of", 9) == 0);
}
END_TEST

/* ---- how workers end ---- */

static evc_status
first_ends(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	if (id == 0)
		return crew_leave(k, k->end_says);
	while (!atomic_load(&k->open) &&
	       !evc_should_stop(evc_group_scope(group)))
		t_sleep(0.001);
	return crew_leave(k, k->end_says);
}

START_TEST(a_clean_code_ends_that_worker_alone_the_last_one_its_group)
{
	static const evc_status own[] = { 200, EVC_ABORTED };
	evc_group_opts o = { .clean = own, .n_clean = 2 };
	static const evc_status codes[] = { EVC_OUT_OF_RANGE, 200, EVC_ABORTED,
					    -EVC_OUT_OF_RANGE };
	size_t i;

	for (i = 0; i < 4; i++) {
		evc_registry *reg = new_registry(0);
		struct crew k = { .run = first_ends, .end_says = codes[i] };
		struct crew other = { 0 };
		evc_worker_info w;

		crew_add(reg, "train", &k, 3,
			 i == 1 || i == 2 ? &o : NULL);
		crew_add(reg, "other", &other, 1, NULL);
		OK(evc_registry_start(reg));
		UNTIL(info_of(k.group).n_live == 2);
		w = worker_of(k.group, 0);
		ck_assert_uint_eq(w.id, 0);
		ck_assert(!w.live && !w.running && !w.retired);
		ck_assert_uint_eq(w.n_runs, 1);
		NOT_YET(!evc_group_is_active(k.group));
		ck_assert_int_eq(k.by_id[0], 1);
		atomic_store(&k.open, 1);
		ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
		STATE_COMES(k.group, EVC_GROUP_STOPPED);
		UNTIL(atomic_load(&k.n_cleanup) == 1);
		ck_assert(!evc_group_is_active(k.group));
		CALLED(&k, 1, 1, 1, 1, 1);
		ck_assert_uint_eq(info_of(k.group).n_errors, 0);
		ck_assert_int_eq(
			evc_raise_requested(evc_group_scope(k.group), NULL), 0);
		/* Its end is its own. */
		ck_assert(evc_group_is_active(other.group));
		/* And not its last. */
		OK(evc_registry_start(reg));
		UNTIL(atomic_load(&k.by_id[0]) == 2);
		end_registry(reg);
		CALLED(&k, 2, 2, 2, 2, 2);
		CALLED(&other, 1, 1, 1, 1, 1);
	}
}
END_TEST

START_TEST(a_list_of_clean_codes_replaces_the_usual_one)
{
	static const evc_status own[] = { 200 };
	evc_group_opts o = { .clean = own, .n_clean = 1 };
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_end, .end_says = EVC_OUT_OF_RANGE };

	crew_add(reg, "train", &k, 1, &o);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	ck_assert_uint_eq(info_of(k.group).n_errors, 1);
	ck_assert_int_eq(error_of(k.group, 0).reason.code, EVC_OUT_OF_RANGE);
	end_registry(reg);
}
END_TEST

START_TEST(CANCELLED_after_a_stop_is_obedience_and_before_it_an_error)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_obey };
	struct crew e = { .run = crew_end, .end_says = EVC_CANCELLED };

	crew_add(reg, "obeys", &k, 4, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 4);
	OK(evc_registry_stop(reg, NULL));
	ck_assert_uint_eq(info_of(k.group).n_errors, 0);
	ck_assert_uint_eq(info_of(k.group).n_runs, 4);
	crew_add(reg, "early", &e, 1, NULL);
	OK(evc_group_start(e.group));
	ck_assert(evc_group_wait_finish(e.group, T_LIMIT));
	ck_assert_uint_eq(info_of(e.group).n_errors, 1);
	end_registry(reg);
}
END_TEST

/* Neither of these is a return, and both are the end of a worker. */
static evc_status
leave_by_exit(evc_group *group, unsigned id, void *arg)
{
	crew_leave(arg, (crew_enter(group, id, arg), 0));
	pthread_exit(NULL);
}

START_TEST(a_worker_that_leaves_by_pthread_exit_stops_its_group)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = leave_by_exit };

	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_registry_start(reg));
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	ck_assert_int_eq(evc_raise_requested(evc_group_scope(k.group), NULL),
			 EVC_ABORTED);
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
}
END_TEST

API_MAIN("workers", before_its_start_a_group_does_nothing,
	 without_a_word_it_is_two_threads_called_train,
	 start_runs_it_and_stop_ends_it, one_group_is_started_and_stopped_alone,
	 it_is_started_again_and_keeps_what_it_has,
	 ids_count_from_0_in_each_registry_and_are_never_used_twice,
	 threads_are_named_GROUP_slash_ID,
	 a_clean_code_ends_that_worker_alone_the_last_one_its_group,
	 a_list_of_clean_codes_replaces_the_usual_one,
	 CANCELLED_after_a_stop_is_obedience_and_before_it_an_error,
	 a_worker_that_leaves_by_pthread_exit_stops_its_group)
