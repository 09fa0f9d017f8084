/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registries: the process's and one's own; what starts and stops all groups,
 * those of a name, in one budget; walks; what may be freed when.
 */
#include "../../support/workers_util.h"

T_LIVES_ON;

START_TEST(stop_by_name_stops_all_of_that_name)
{
	evc_registry *reg = new_registry(0);
	struct crew a = { 0 }, b = { 0 }, c = { 0 };

	crew_add(reg, "train", &a, 2, NULL);
	crew_add(reg, "test", &b, 2, NULL);
	crew_add(reg, "train", &c, 2, NULL);
	REFUSED(EVC_NOT_FOUND, evc_registry_stop_name(reg, "trai", NULL));
	REFUSED(EVC_NOT_FOUND, evc_registry_stop_name(reg, "trains", NULL));
	REFUSED(EVC_NOT_FOUND, evc_registry_stop_name(reg, "", NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_registry_stop_name(reg, NULL, NULL));
	/* Known, and not running. */
	OK(evc_registry_stop_name(reg, "train", NULL));
	OK(evc_registry_start(reg));
	REFUSED(EVC_NOT_FOUND, evc_registry_stop_name(reg, "none", NULL));
	OK(evc_registry_stop_name(reg, "train", NULL));
	CALLED(&a, 1, 1, 1, 1, 1);
	CALLED(&c, 1, 1, 1, 1, 1);
	CALLED(&b, 1, 1, 0, 0, 0);
	ck_assert(evc_group_is_active(b.group));
	ck_assert(!evc_group_is_active(a.group));
	/* They stay: so the name is known, and start starts them again. */
	OK(evc_registry_stop_name(reg, "train", NULL));
	OK(evc_registry_start(reg));
	CALLED(&a, 2, 2, 1, 1, 1);
	CALLED(&c, 2, 2, 1, 1, 1);
	CALLED(&b, 1, 1, 0, 0, 0);
	ck_assert_uint_eq(info_of(b.group).n_starts, 1);
	end_registry(reg);
}
END_TEST

START_TEST(with_nothing_running_a_stop_is_done)
{
	evc_join_opts none = { .grace = EVC_NO_GRACE };
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };

	OK(evc_registry_stop(reg, NULL));
	OK(evc_registry_start(reg)); /* nothing to start */
	OK(evc_registry_stop(reg, &none));
	OK(evc_registry_stop(NULL, NULL)); /* the process's has no group */
	ck_assert_uint_eq(evc_registry_ids(reg, NULL, 0), 0);
	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_registry_stop(reg, &none));
	CALLED(&k, 0, 0, 0, 0, 0);
	end_registry(reg);
}
END_TEST

START_TEST(start_starts_only_what_does_not_run)
{
	evc_registry *reg = new_registry(0);
	struct crew k[4] = { { 0 } };
	int i;

	for (i = 0; i < 4; i++) {
		crew_add(reg, "train", &k[i], 1, NULL);
		OK(evc_registry_start(reg));
		ck_assert_uint_eq(info_of(k[i].group).n_starts, 1);
	}
	OK(evc_group_stop(k[2].group, NULL));
	OK(evc_registry_start(reg));
	for (i = 0; i < 4; i++) {
		CALLED(&k[i], 1 + (i == 2), 1 + (i == 2), i == 2, i == 2,
		       i == 2);
		ck_assert(evc_group_is_active(k[i].group));
	}
	end_registry(reg);
}
END_TEST

START_TEST(the_process_has_one_registry)
{
	evc_registry *reg = evc_registry_default(), *got = NULL;
	evc_registry_opts o = { .grace = 3,
				.config = { .name = "mine",
					    .log = keep_said } };
	struct crew k = { 0 };
	char text[4096];

	ck_assert_ptr_nonnull(reg);
	ck_assert_ptr_eq(evc_registry_default(), reg);
	ck_assert_ptr_null(evc_registry_coord(NULL));
	OK(evc_registry_configure(&o));
	OK(evc_registry_configure(NULL));
	OK(evc_registry_configure(&o)); /* the last one counts */
	crew_add(NULL, "train", &k, 2, NULL);
	OK(evc_group_init(reg, "train", crew_beat, &k, NULL, NULL, &got));
	ck_assert_ptr_eq(got, reg);
	ck_assert_ptr_eq(evc_registry_coord(NULL), evc_registry_coord(reg));
	REFUSED(EVC_FAILED_PRECONDITION, evc_registry_configure(&o));
	REFUSED(EVC_FAILED_PRECONDITION, evc_registry_free(reg));
	OK(evc_registry_start(NULL));
	UNTIL(atomic_load(&k.by_id[0]) > 0 && atomic_load(&k.by_id[3]) > 0);
	ck_assert_uint_eq(evc_registry_ids(NULL, NULL, 0), 4);
	OK(evc_registry_stop(NULL, NULL));
	report_text(evc_registry_coord(NULL), text, sizeof(text));
	HAS(text, "mine");
}
END_TEST

START_TEST(the_coordinator_of_a_registry_is_configured)
{
	evc_registry_opts o = { .config = { .log = keep_said } };
	evc_registry *reg = NULL;
	struct crew k = { .run = crew_fail, .open = 1 };
	char text[4096];

	forget_said();
	OK(evc_registry_new(&o, &reg));
	crew_add(reg, "train", &k, 1, NULL);
	report_text(evc_registry_coord(reg), text, sizeof(text));
	HAS(text, "workers");
	OK(evc_registry_start(reg));
	SAYS("train/0", NULL, NULL);
	end_registry(reg);
}
END_TEST

/* ---- budgets ---- */

START_TEST(all_groups_share_one_budget)
{
	evc_join_opts two = { .grace = 2 }, none = { .grace = EVC_NO_GRACE };
	evc_registry *reg = new_registry(T_LIMIT);
	struct crew k[4] = { { .run = crew_stay }, { .run = crew_stay },
			     { .run = crew_stay }, { .run = crew_stay } };
	double took;
	int i;

	for (i = 0; i < 4; i++)
		crew_add(reg, i < 2 ? "a" : "b", &k[i], 2, NULL);
	OK(evc_registry_start(reg));
	for (i = 0; i < 4; i++)
		UNTIL(atomic_load(&k[i].in) == 2);
	/* For each worker it would be sixteen, for each group eight. */
	took = t_now();
	LATE(evc_registry_stop(reg, &two));
	took = t_now() - took;
	ck_assert_msg(took > 1.98 && took < 8, "%g", took);
	HAS(evc_last_error(), "/0");
	took = t_now();
	LATE(evc_registry_stop(reg, &none));
	LATE(evc_registry_stop_name(reg, "b", &none));
	/* Not the registry's own. */
	ck_assert(t_now() - took < T_LIMIT);
	for (i = 0; i < 4; i++)
		atomic_store(&k[i].open, 1);
	end_registry(reg);
	for (i = 0; i < 4; i++)
		CALLED(&k[i], 1, 1, 1, 1, 1);
}
END_TEST

START_TEST(a_registry_has_a_budget_of_its_own)
{
	evc_join_opts zero = { 0 };
	evc_registry *reg = new_registry(0.3);
	struct crew k = { .run = crew_stay };
	double took;

	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 2);
	took = t_now();
	LATE(evc_registry_stop(reg, NULL));
	LATE(evc_registry_stop(reg, &zero));
	took = t_now() - took;
	/* Two of them, and neither is the library's five seconds. */
	ck_assert_msg(took > 0.59 && took < 5, "%g", took);
	atomic_store(&k.open, 1);
	end_registry(reg);
}
END_TEST

START_TEST(a_stop_that_is_late_is_told_again)
{
	evc_join_opts none = { .grace = EVC_NO_GRACE };
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_stay };

	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 2);
	LATE(evc_group_stop(k.group, &none));
	HAS(evc_last_error(), "train/0");
	HAS(evc_last_error(), "train/1");
	/* No start while they are there. */
	REFUSED(EVC_FAILED_PRECONDITION, evc_group_start(k.group));
	HAS(evc_last_error(), "train");
	ck_assert_int_eq(evc_registry_start(reg), -EVC_FAILED_PRECONDITION);
	ck_assert_int_eq(k.n_init, 1);
	REFUSED(EVC_FAILED_PRECONDITION, evc_group_free(k.group));
	REFUSED(EVC_FAILED_PRECONDITION, evc_registry_free(reg));
	atomic_store(&k.open, 1);
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	OK(evc_group_start(k.group));
	end_registry(reg);
	CALLED(&k, 2, 2, 2, 2, 2);
}
END_TEST

START_TEST(other_options_of_a_join_are_refused)
{
	pthread_t self = pthread_self();
	evc_join_opts wrong[] = { { .flags = EVC_JOIN_STOP_FIRST },
				  { .flags = 1u << 30 },
				  { .threads = &self, .n_threads = 1 },
				  { .n_threads = 1 },
				  { .grace = NAN },
				  { .grace = -2 },
				  { .reserved_ = { 1 } },
				  { .reserved_ = { 0, 0, 0, 0, 0, 0, 0, 1 } } };
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };
	size_t i;

	crew_add(reg, "train", &k, 1, NULL);
	OK(evc_registry_start(reg));
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_registry_stop(reg, &wrong[i]));
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_registry_stop_name(reg, "train", &wrong[i]));
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_group_stop(k.group, &wrong[i]));
	}
	ck_assert(evc_group_is_active(k.group));
	CALLED(&k, 1, 1, 0, 0, 0);
	end_registry(reg);
}
END_TEST

/* ---- freeing ---- */

START_TEST(a_group_that_runs_is_not_freed)
{
	int threads = t_count_threads(), fds = t_count_fds();
	evc_registry *reg = new_registry(0);
	struct crew a = { 0 }, b = { 0 };

	OK(evc_group_free(NULL));
	OK(evc_registry_free(NULL));
	crew_add(reg, "a", &a, 2, NULL);
	crew_add(reg, "b", &b, 2, NULL);
	OK(evc_registry_start(reg));
	REFUSED(EVC_FAILED_PRECONDITION, evc_group_free(a.group));
	REFUSED(EVC_FAILED_PRECONDITION, evc_registry_free(reg));
	ck_assert(evc_group_is_active(a.group));
	OK(evc_group_stop(a.group, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_registry_free(reg));
	OK(evc_group_free(a.group));
	ids_are(b.group, 2, 2);
	ck_assert_uint_eq(evc_registry_ids(reg, NULL, 0), 2);
	REFUSED(EVC_NOT_FOUND, evc_registry_stop_name(reg, "a", NULL));
	OK(evc_registry_start(reg));
	OK(evc_registry_stop(reg, NULL));
	CALLED(&a, 1, 1, 1, 1, 1);
	CALLED(&b, 1, 1, 1, 1, 1);
	OK(evc_registry_free(reg));
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

START_TEST(a_coordinator_is_not_freed_before_its_groups)
{
	evc_coord *c = new_coord(NULL);
	evc_group_opts o = { .coord = c };
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };

	crew_add(reg, "train", &k, 2, &o);
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	HAS(evc_last_error(), "train");
	OK(evc_group_free(k.group));
	OK(evc_free(c));
	OK(evc_registry_free(reg));
}
END_TEST

/* ---- walks ---- */

struct walk {
	evc_group *seen[8];
	int n, most;
	bool free_them, stop_and_start, add;
	struct crew *more;
};

static bool
step(evc_group *group, void *arg)
{
	struct walk *w = arg;
	evc_registry *reg = evc_group_registry(group);

	if (w->n < 8)
		w->seen[w->n] = group;
	w->n++;
	if (w->stop_and_start) {
		OK(evc_group_stop(group, NULL));
		OK(evc_group_start(group));
		OK(evc_registry_stop_name(reg, "b", NULL));
		OK(evc_registry_start(reg));
	}
	if (w->add && w->n == 1)
		crew_add(reg, "later", w->more, 1, NULL);
	if (w->free_them) {
		OK(evc_group_stop(group, NULL));
		OK(evc_group_free(group));
		/* Out of the registry, and still there for this walk. */
	}
	return w->n < w->most;
}

START_TEST(a_walk_sees_all_in_order_and_may_do_anything)
{
	struct walk all = { .most = 100 }, two = { .most = 2 },
		    busy = { .most = 100, .stop_and_start = true },
		    frees = { .most = 100, .free_them = true };
	evc_registry *reg = new_registry(0);
	struct crew k[4] = { { 0 } }, later = { 0 };
	static const char *const names[] = { "a", "b", "a", "b" };
	int i;

	for (i = 0; i < 4; i++)
		crew_add(reg, names[i], &k[i], 1, NULL);
	OK(evc_registry_start(reg));
	OK(evc_registry_each(reg, step, &all));
	ck_assert_int_eq(all.n, 4);
	for (i = 0; i < 4; i++)
		ck_assert_ptr_eq(all.seen[i], k[i].group);
	OK(evc_registry_each(reg, step, &two));
	ck_assert_int_eq(two.n, 2);
	OK(evc_registry_each(reg, step, &busy));
	ck_assert_int_eq(busy.n, 4);
	for (i = 0; i < 4; i++)
		ck_assert(evc_group_is_active(k[i].group));
	REFUSED(EVC_INVALID_ARGUMENT, evc_registry_each(reg, NULL, NULL));
	frees.add = true;
	frees.more = &later;
	OK(evc_registry_each(reg, step, &frees));
	ck_assert_int_ge(frees.n, 4);
	ck_assert_int_le(frees.n, 5);
	ck_assert_uint_eq(evc_registry_ids(reg, NULL, 0), frees.n == 4);
	end_registry(reg);
}
END_TEST

struct other_walk {
	evc_registry *reg;
	atomic_int in, go, n;
};

static bool
walk_slowly(evc_group *group, void *arg)
{
	struct other_walk *w = arg;

	atomic_fetch_add(&w->n, 1);
	atomic_store(&w->in, 1);
	while (!atomic_load(&w->go))
		t_sleep(0.001);
	/* It is still there. */
	(void)info_of(group);
	return true;
}

static void *
walk_main(void *arg)
{
	struct other_walk *w = arg;

	evc_registry_each(w->reg, walk_slowly, w);
	return NULL;
}

START_TEST(what_a_walk_looks_at_is_freed_when_it_has_left_it)
{
	struct other_walk w = { .reg = new_registry(0) };
	struct crew a = { 0 }, b = { 0 };
	pthread_t t;

	crew_add(w.reg, "a", &a, 1, NULL);
	crew_add(w.reg, "b", &b, 1, NULL);
	OK(pthread_create(&t, NULL, walk_main, &w));
	UNTIL(atomic_load(&w.in));
	OK(evc_group_free(a.group));
	OK(evc_group_free(b.group));
	ck_assert_uint_eq(evc_registry_ids(w.reg, NULL, 0), 0);
	atomic_store(&w.go, 1);
	OK(pthread_join(t, NULL));
	ck_assert_int_ge(w.n, 1);
	OK(evc_registry_free(w.reg));
}
END_TEST

/* Its scope is stopped until the start, which is no event. */
START_TEST(a_group_that_is_made_logs_nothing)
{
	evc_config cfg = { .log = keep_said };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_group_opts o = { .coord = c };
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };

	crew_add(reg, "quiet", &k, 2, &o);
	/* A look at the log. */
	OK(evc_join(evc_group_scope(k.group), NULL, NULL));
	ck_assert_msg(n_said("quiet", NULL, NULL) == 0, "%s", all_said());
	OK(evc_registry_start(reg));
	ck_assert_msg(n_said("quiet", NULL, NULL) == 0, "%s", all_said());
	end_registry(reg);
	OK(evc_free(c));
}
END_TEST

API_MAIN("workers_registry", a_group_that_is_made_logs_nothing,
	 stop_by_name_stops_all_of_that_name,
	 with_nothing_running_a_stop_is_done,
	 start_starts_only_what_does_not_run, the_process_has_one_registry,
	 the_coordinator_of_a_registry_is_configured,
	 all_groups_share_one_budget, a_registry_has_a_budget_of_its_own,
	 a_stop_that_is_late_is_told_again, other_options_of_a_join_are_refused,
	 a_group_that_runs_is_not_freed,
	 a_coordinator_is_not_freed_before_its_groups,
	 a_walk_sees_all_in_order_and_may_do_anything,
	 what_a_walk_looks_at_is_freed_when_it_has_left_it)
