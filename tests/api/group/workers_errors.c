/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The errors of workers: what they stop, how they are read back, and what is
 * said of them.
 */
#include "../../support/workers_util.h"

START_TEST(an_error_stops_its_group_and_no_other)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_fail }, other = { 0 };
	evc_group_info info;
	evc_worker_error e;
	unsigned run;

	crew_add(reg, "other", &other, 2, NULL);
	crew_add(reg, "train", &k, 3, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.by_id[2]) > 4);
	atomic_store(&k.open, 1);
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	UNTIL(atomic_load(&k.n_cleanup) == 1);
	CALLED(&k, 1, 1, 1, 1, 1);
	run = (unsigned)atomic_load(&k.by_id[2]);
	ck_assert_int_eq(evc_group_error_get(k.group, 1, &e), -EVC_NOT_FOUND);
	e = error_of(k.group, 0);
	ck_assert_uint_eq(e.id, 2);
	ck_assert_uint_eq(e.start, 1);
	ck_assert_uint_eq(e.run, run);
	ck_assert_int_eq(e.reason.code, EVC_DATA_LOSS);
	ck_assert_int_eq(e.reason.err, EIO);
	ck_assert_str_eq(e.reason.text, "shard 7");
	HAS(e.reason.file, "workers_util.h");
	ck_assert_str_eq(e.reason.func, "crew_fail");
	ck_assert_int_ne(e.reason.line, 0);
	ck_assert_int_eq(e.reason.tid, k.tid[2]);
	ck_assert_str_eq(e.reason.who, "train/2");
	info = info_of(k.group);
	ck_assert_uint_eq(info.n_errors, 1);
	ck_assert_int_eq(info.stop.code, EVC_DATA_LOSS);
	ck_assert_str_eq(info.stop.who, "train/2");
	ck_assert_uint_eq(worker_of(k.group, 0).n_errors, 1);
	ck_assert_uint_eq(worker_of(k.group, 1).n_errors, 0);
	ck_assert(evc_group_is_active(other.group));
	ck_assert(!evc_should_stop(evc_registry_coord(reg)));
	/* The others were told and have obeyed: no error of theirs.  The call
	   answers the error until that group is started again. */
	OK(evc_group_stop(other.group, NULL));
	ck_assert_int_eq(evc_registry_stop(reg, NULL), EVC_DATA_LOSS);
	ck_assert_str_eq(evc_last_error(),
			 "evc_registry_stop: train/2: shard 7");
	ck_assert_int_eq(evc_group_stop(k.group, NULL), EVC_DATA_LOSS);
	ck_assert_uint_eq(info_of(other.group).n_errors, 0);
	end_registry(reg);
}
END_TEST

START_TEST(a_coordinator_above_is_not_stopped_by_it)
{
	evc_coord *c = new_coord(NULL);
	evc_group_opts o = { .coord = c };
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_fail, .open = 1 };
	evc_id hold = 0;
	evc_verdict v;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	crew_add(reg, "train", &k, 2, &o);
	OK(evc_registry_start(reg));
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	NOT_YET(evc_should_stop(c));
	OK(evc_hold_end(c, hold));
	end_registry(reg);
	ck_assert_int_ge(evc_join(c, NULL, &v), 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(STOP_ALL_stops_every_group_of_its_registry)
{
	evc_group_opts all = { .on_error = EVC_GROUP_STOP_ALL };
	evc_registry *reg = new_registry(0), *far = new_registry(0);
	struct crew k = { .run = crew_fail }, a = { 0 }, b = { 0 }, c = { 0 },
		    never = { 0 };
	evc_reason r;

	crew_add(reg, "a", &a, 2, NULL);
	crew_add(reg, "train", &k, 2, &all);
	crew_add(reg, "b", &b, 2, NULL);
	crew_add(far, "c", &c, 2, NULL);
	OK(evc_registry_start(reg));
	OK(evc_registry_start(far));
	crew_add(reg, "never", &never, 2, NULL);
	/* That of another group stops that one alone still. */
	OK(evc_request_stop(evc_group_scope(b.group), 0, NULL));
	STATE_COMES(b.group, EVC_GROUP_STOPPED);
	ck_assert(evc_group_is_active(a.group));
	atomic_store(&k.open, 1);
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	STATE_COMES(a.group, EVC_GROUP_STOPPED);
	UNTIL(atomic_load(&a.n_cleanup) == 1 && atomic_load(&k.n_cleanup) == 1);
	ck_assert(evc_group_is_active(c.group));
	CALLED(&a, 1, 1, 1, 1, 1);
	CALLED(&b, 1, 1, 1, 1, 1);
	CALLED(&k, 1, 1, 1, 1, 1);
	CALLED(&never, 0, 0, 0, 0, 0);
	/* The other group's stop says whose error it was. */
	r = info_of(a.group).stop;
	ck_assert_str_eq(r.who, "train/2");
	HAS(r.text, "worker train/2 has failed");
	/* Nobody's line of source. */
	ck_assert_int_eq(r.line, 0);
	ck_assert_str_eq(r.file, "");
	/* All can be started again. */
	atomic_store(&k.open, 0);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_is_active(a.group));
	ck_assert(evc_group_is_active(k.group));
	end_registry(reg);
	end_registry(far);
}
END_TEST

/* ---- what counts as an error, and as what ---- */

START_TEST(a_code_that_is_returned_is_kept_with_a_text)
{
	static const struct {
		evc_status result, kept;
	} cases[] = { { EVC_INTERNAL, EVC_INTERNAL },
		      { -EVC_INTERNAL, EVC_INTERNAL },
		      { 200, 200 },
		      { 1000, EVC_UNKNOWN },
		      { EVC_CANCELLED, EVC_CANCELLED } };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		evc_registry *reg = new_registry(0);
		struct crew k = { .run = crew_end,
				  .end_says = cases[i].result };
		evc_worker_error e;

		crew_add(reg, "train", &k, 1, NULL);
		OK(evc_registry_start(reg));
		STATE_COMES(k.group, EVC_GROUP_STOPPED);
		ck_assert_uint_eq(info_of(k.group).n_errors, 1);
		e = error_of(k.group, 0);
		ck_assert_int_eq(e.reason.code, cases[i].kept);
		ck_assert_uint_eq(e.run, 1);
		if (cases[i].result == 1000)
			HAS(e.reason.text, "1000");
		end_registry(reg);
	}
}
END_TEST

static evc_status
fail_together(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	while (atomic_load(&k->in) < 4 && !atomic_load(&k->open))
		t_sleep(0.001);
	atomic_store(&k->open, 1);
	return crew_leave(k, evc_fail(evc_group_scope(group), EVC_UNAVAILABLE,
				      0, "of worker %u", id));
}

START_TEST(all_errors_are_kept_also_those_after_the_stop)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = fail_together };
	unsigned i, seen[4] = { 0 };
	char text[32];
	evc_worker_error e;

	crew_add(reg, "train", &k, 4, NULL);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	ck_assert_uint_eq(info_of(k.group).n_errors, 4);
	for (i = 0; i < 4; i++) {
		e = error_of(k.group, i);
		ck_assert_uint_lt(e.id, 4);
		seen[e.id]++;
		snprintf(text, sizeof(text), "of worker %u", e.id);
		ck_assert_str_eq(e.reason.text, text);
		snprintf(text, sizeof(text), "train/%u", e.id);
		ck_assert_str_eq(e.reason.who, text);
		ck_assert_int_eq(e.reason.code, EVC_UNAVAILABLE);
	}
	for (i = 0; i < 4; i++)
		ck_assert_uint_eq(seen[i], 1);
	ck_assert_int_eq(evc_group_error_get(k.group, 4, &e), -EVC_NOT_FOUND);
	end_registry(reg);
}
END_TEST

/* By which call does it say so? */
static evc_status
fail_with_EINTR(evc_group *group, unsigned id, void *arg)
{
	(void)id;
	return arg != NULL
		       ? evc_group_fail(group, EVC_UNAVAILABLE, EINTR, "read")
		       : evc_fail(evc_group_scope(group), EVC_UNAVAILABLE,
				  EINTR, "read");
}

/* No stop has woken it. */
START_TEST(an_EINTR_before_any_stop_is_an_error)
{
	evc_group_opts o = { .n_threads = 1 };
	evc_registry *reg = new_registry(0);
	evc_worker_error e;
	evc_group *g;
	int way;

	for (way = 0; way < 2; way++) {
		OK(evc_group_init(reg, "g", fail_with_EINTR,
				  way > 0 ? &way : NULL, &o, &g, NULL));
		OK(evc_group_start(g));
		ck_assert(evc_group_wait_finish(g, T_LIMIT));
		OK(evc_group_error_get(g, 0, &e));
		ck_assert_int_eq(e.reason.code, EVC_UNAVAILABLE);
		ck_assert_int_eq(e.reason.err, EINTR);
	}
	OK(evc_registry_free(reg));
}
END_TEST

START_TEST(errors_stay_over_starts)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_end, .end_says = EVC_ABORTED };
	unsigned i;

	crew_add(reg, "train", &k, 1, NULL);
	for (i = 1; i <= 4; i++) {
		OK(evc_registry_start(reg));
		ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
		STATE_COMES(k.group, EVC_GROUP_STOPPED);
	}
	for (i = 0; i < 4; i++) {
		ck_assert_uint_eq(error_of(k.group, i).start, i + 1);
		ck_assert_uint_eq(error_of(k.group, i).run, i + 1);
	}
	ck_assert_uint_eq(info_of(k.group).n_errors, 4);
	end_registry(reg);
}
END_TEST

static evc_status
fail_300_times(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	if (atomic_load(&k->runs) > 300)
		return crew_leave(k, EVC_OUT_OF_RANGE);
	return crew_leave(k, EVC_ABORTED);
}

START_TEST(the_latest_256_are_kept_the_oldest_first)
{
	evc_group_opts o = { .on_error = EVC_GROUP_RESTART,
			     .restart = { .first = 1e-6,
					  .most = 1e-6,
					  .times = 1000,
					  .within = 1000 } };
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = fail_300_times };
	evc_worker_error e;
	unsigned i;

	crew_add(reg, "train", &k, 1, &o);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	ck_assert_uint_eq(info_of(k.group).n_errors, 300);
	ck_assert_uint_eq(info_of(k.group).n_restarts, 300);
	ck_assert_uint_eq(info_of(k.group).n_runs, 301);
	for (i = 0; i < 256; i++)
		ck_assert_uint_eq(error_of(k.group, i).run, 45 + i);
	ck_assert_int_eq(evc_group_error_get(k.group, 256, &e), -EVC_NOT_FOUND);
	end_registry(reg);
}
END_TEST

/* ---- what is said ---- */

START_TEST(the_cores_explanation_names_worker_run_and_error)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_end, .end_says = EVC_UNAVAILABLE };
	struct crew t = { .run = crew_fail, .open = 1 };
	char text[4096];

	crew_add(reg, "plain", &k, 1, NULL);
	crew_add(reg, "texts", &t, 1, NULL);
	OK(evc_registry_start(reg));
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	STATE_COMES(t.group, EVC_GROUP_STOPPED);
	evc_explain(evc_group_scope(k.group), text, sizeof(text));
	HAS(text, "plain/0");
	HAS(text, "run 1");
	HAS(text, "UNAVAILABLE");
	evc_explain(evc_group_scope(t.group), text, sizeof(text));
	HAS(text, "texts/1");
	HAS(text, "shard 7");
	HAS(text, "DATA_LOSS");
	HAS(text, "run 1");
	end_registry(reg);
}
END_TEST

START_TEST(the_log_hook_hears_of_an_error_and_what_it_stopped)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_fail }, r = { .run = crew_end,
						    .end_says = 200 };

	forget_said();
	crew_add(reg, "train", &k, 1, NULL);
	OK(evc_registry_start(reg));
	atomic_store(&k.open, 1);
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	SAYS("train/0", "shard 7", "run ");
	/* The group stopped, and why. */
	SAYS("train", "stop", "shard 7");
	/* Each error once, whoever else tells of it. */
	let_come();
	ck_assert_int_eq(n_said("run ", "shard 7", "train/0"), 1);
	ck_assert_int_eq(level_said("shard 7", "run "), EVC_LOG_ERROR);
	/* One without a text. */
	crew_add(reg, "plain", &r, 1, NULL);
	OK(evc_group_start(r.group));
	SAYS("plain/1", "200", "run 1");
	end_registry(reg);
}
END_TEST

/* false: the budget was so short that even those who obey were late. */
static bool
good_ones_are_in_time(double grace)
{
	evc_join_opts some = { .grace = grace };
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_stay }, good = { 0 };
	bool in_time;

	forget_said();
	crew_add(reg, "good", &good, 2, NULL);
	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 2);
	LATE(evc_registry_stop(reg, &some));
	/* "Wait for workers to die: NAME", "Worker N failed to close while
	   waiting", "All workers terminated: B" there. */
	SAYS("waiting for", "train", NULL);
	SAYS("train/2", NULL, NULL);
	SAYS("train/3", NULL, NULL);
	ck_assert(evc_log_flush(evc_registry_coord(reg), T_LIMIT));
	in_time = n_said("good/0", NULL, NULL) == 0 &&
		  n_said("good/1", NULL, NULL) == 0;
	if (in_time)
		ck_assert_int_eq(n_said("all", "ended", "not"), 1);
	HAS(evc_last_error(), "train/2");
	HAS(evc_last_error(), "train/3");
	atomic_store(&k.open, 1);
	UNTIL(info_of(k.group).n_live == 0);
	forget_said();
	OK(evc_registry_stop(reg, NULL));
	ck_assert_int_eq(n_said("train/2", NULL, NULL), 0);
	end_registry(reg);
	return in_time;
}

START_TEST(the_log_hook_hears_of_the_wait_the_late_and_the_end)
{
	double grace = 0.05;

	/* On a loaded machine they need more. */
	while (!good_ones_are_in_time(grace)) {
		grace *= 4;
		ck_assert_double_lt(grace, T_LIMIT);
	}
}
END_TEST

START_TEST(a_group_below_a_coordinator_speaks_by_its_hook)
{
	evc_config cfg = { .name = "above", .log = keep_said };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_group_opts o = { .coord = c };
	evc_registry *reg = NULL;
	struct crew k = { .run = crew_fail, .open = 1 };

	forget_said();
	OK(evc_registry_new(NULL, &reg));
	crew_add(reg, "train", &k, 1, &o);
	OK(evc_registry_start(reg));
	SAYS("train/0", "shard 7", "run 1");
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	end_registry(reg);
	ck_assert_int_ge(evc_join(c, NULL, NULL), 0);
	OK(evc_free(c));
}
END_TEST

API_MAIN("workers_errors", an_error_stops_its_group_and_no_other,
	 a_coordinator_above_is_not_stopped_by_it,
	 STOP_ALL_stops_every_group_of_its_registry,
	 a_code_that_is_returned_is_kept_with_a_text,
	 all_errors_are_kept_also_those_after_the_stop,
	 an_EINTR_before_any_stop_is_an_error, errors_stay_over_starts,
	 the_latest_256_are_kept_the_oldest_first,
	 the_cores_explanation_names_worker_run_and_error,
	 the_log_hook_hears_of_an_error_and_what_it_stopped,
	 the_log_hook_hears_of_the_wait_the_late_and_the_end,
	 a_group_below_a_coordinator_speaks_by_its_hook)
