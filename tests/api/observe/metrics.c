/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics of evc_report: text that Prometheus takes, with the right numbers.
 */
#include "../../support/report_util.h"
#include "../../support/metrics_util.h"

static void
read_all(const evc_coord *c)
{
	read_metrics(whole(report_metrics, c));
}

#define IS(name, labels, expected) \
	ck_assert_msg(value((name), (labels)) == (expected), "%s is %g", \
		      (name), value((name), (labels)))

/* ---- what stands in it ---- */

START_TEST(members_by_kind_and_state)
{
	struct zoo z;

	zoo_make(&z, "zoo");
	read_all(z.c);
#define KIND(kind) "coordinator=\"zoo\",kind=\"" kind "\",state=\"live\""
	IS("evcoord_members", KIND("thread"), 1);
	IS("evcoord_members", KIND("registered thread"), 1);
	IS("evcoord_members", KIND("looper"), 2);
	IS("evcoord_members", KIND("runner"), 1);
	IS("evcoord_members", KIND("hold"), 1);
	IS("evcoord_members", KIND("hook"), 1);
	IS("evcoord_members", KIND("task"), 1);
	IS("evcoord_members", KIND("scope"), 1);
	IS("evcoord_members",
	   "coordinator=\"zoo\",scope=\"a-scope\",kind=\"hold\",state=\"live\"",
	   1);
	IS("evcoord_members",
	   "coordinator=\"zoo\",scope=\"a-scope\",kind=\"thread\","
	   "state=\"live\"",
	   0);
	zoo_end(&z);
}
END_TEST

START_TEST(a_member_that_has_ended_is_another_sample)
{
	evc_config cfg = { .name = "c" };
	evc_coord *c = new_coord_with(NULL, &cfg);

	OK(evc_thread_start(c, "t", return_at_once, NULL, NULL, NULL));
	UNTIL((read_all(c),
	       find_sample("evcoord_members",
			   "coordinator=\"c\",kind=\"thread\","
			   "state=\"ended\"") != NULL));
	IS("evcoord_members",
	   "coordinator=\"c\",kind=\"thread\",state=\"ended\"", 1);
	IS("evcoord_members",
	   "coordinator=\"c\",kind=\"thread\",state=\"live\"", 0);
	OK(evc_join(c, NULL, NULL));
	read_all(c);
	ck_assert_ptr_null(find_sample("evcoord_members",
				"coordinator=\"c\",kind=\"thread\","
				"state=\"ended\""));
	OK(evc_free(c));
}
END_TEST

START_TEST(tasks_of_another_loop_count_each)
{
	static const evc_task_class cls = { .name = "request" };
	struct ev_loop *loop = ev_loop_new(0);
	evc_config cfg = { .name = "c" };
	evc_coord *c = new_coord_with(loop, &cfg);
	evc_task t[7] = { 0 };
	int i;

	for (i = 0; i < 7; i++)
		OK(evc_task_begin(evc_home(c), &t[i], &cls));
	read_all(c);
	IS("evcoord_members",
	   "coordinator=\"c\",kind=\"task\",state=\"live\"", 7);
	for (i = 0; i < 7; i++)
		evc_task_end(&t[i]);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(stopping_draining_and_errors)
{
	evc_config cfg = { .name = "c" };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_id id = 0;

	/* or the drain would be a stop at once */
	OK(evc_hold_begin(c, "h", NULL, &id));
	read_all(c);
	IS("evcoord_stopping", "coordinator=\"c\"", 0);
	IS("evcoord_draining", "coordinator=\"c\"", 0);
	IS("evcoord_errors", "coordinator=\"c\"", 0);
	OK(evc_request_drain(c, 60, NULL));
	read_all(c);
	IS("evcoord_draining", "coordinator=\"c\"", 1);
	evc_fail(c, EVC_INTERNAL, 0, "one");
	evc_fail(c, EVC_INTERNAL, 0, "two");
	read_all(c);
	IS("evcoord_stopping", "coordinator=\"c\"", 1);
	IS("evcoord_draining", "coordinator=\"c\"", 0);
	IS("evcoord_errors", "coordinator=\"c\"", 2);
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

START_TEST(stops_and_how_long_they_took)
{
	evc_config cfg = { .name = "c" };
	evc_coord *c = new_coord_with(NULL, &cfg);
	int i;

	read_all(c);
	IS("evcoord_stops_total", "coordinator=\"c\"", 0);
	IS("evcoord_stop_duration_seconds_count", "coordinator=\"c\"", 0);
	for (i = 1; i <= 3; i++) {
		OK(evc_request_stop(c, 0, NULL));
		t_sleep(0.002);
		OK(evc_join(c, NULL, NULL));
		OK(evc_clear_stop(c));
		read_all(c);
		IS("evcoord_stops_total", "coordinator=\"c\"", i);
		IS("evcoord_stop_duration_seconds_count", "coordinator=\"c\"",
		   i);
		IS("evcoord_stop_duration_seconds_bucket",
		   "coordinator=\"c\",le=\"+Inf\"", i);
	}
	ck_assert_double_ge(value("evcoord_stop_duration_seconds_sum",
				  "coordinator=\"c\""),
			    3 * 0.002);
	/* none was quicker than the sleep */
	IS("evcoord_stop_duration_seconds_bucket",
	   "coordinator=\"c\",le=\"0.001\"", 0);
	OK(evc_free(c));
}
END_TEST

static atomic_int unblocked;

static void
count_unblock(void *arg)
{
	(void)arg;
	atomic_fetch_add(&unblocked, 1);
}

START_TEST(kicks_unblocks_and_stragglers)
{
	evc_member_opts opts = { .unblock = count_unblock,
				 .flags = EVC_KICK };
	evc_config cfg = { .name = "c" };
	evc_join_opts brief = { .grace = 0.01 };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct guest g = { 0 };
	double kicks, calls;

	OK(evc_thread_start(c, "deaf", stay, &g, &opts, NULL));
	UNTIL(atomic_load(&g.in) == 1);
	read_all(c);
	IS("evcoord_kicks_total", "coordinator=\"c\"", 0);
	IS("evcoord_unblocks_total", "coordinator=\"c\"", 0);
	IS("evcoord_stragglers_total", "coordinator=\"c\"", 0);
	OK(evc_request_stop(c, 0, NULL));
	UNTIL((read_all(c),
	       value("evcoord_kicks_total", "coordinator=\"c\"") > 2 &&
		       value("evcoord_unblocks_total", "coordinator=\"c\"") >
			       2));
	ck_assert_int_eq(evc_join(c, &brief, NULL), EVC_DEADLINE_EXCEEDED);
	read_all(c);
	IS("evcoord_stragglers_total", "coordinator=\"c\"", 1);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_clear_stop(c));
	/* counters stay when the stop is over */
	read_all(c);
	kicks = value("evcoord_kicks_total", "coordinator=\"c\"");
	calls = value("evcoord_unblocks_total", "coordinator=\"c\"");
	ck_assert_double_ge(kicks, 3);
	ck_assert_double_ge(calls, 3);
	ck_assert(calls == atomic_load(&unblocked));
	OK(evc_free(c));
}
END_TEST

struct slow {
	atomic_int runs;
};

static evc_status
miss_some(evc_coord *c, void *arg)
{
	struct slow *s = arg;

	(void)c;
	if (atomic_fetch_add(&s->runs, 1) == 0)
		t_sleep(0.05);
	return 0;
}

START_TEST(missed_runs_count_also_when_the_looper_has_ended)
{
	evc_member_opts own = { .flags = EVC_OWN_THREAD };
	evc_config cfg = { .name = "c" };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct slow s = { 0 };
	double live;

	OK(evc_looper_start(c, "slow", 0.005, miss_some, &s, &own, NULL));
	UNTIL((read_all(c), value("evcoord_looper_missed_runs_total",
				  "coordinator=\"c\"") > 2));
	live = value("evcoord_looper_missed_runs_total", "coordinator=\"c\"");
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	read_all(c);
	ck_assert_double_ge(value("evcoord_looper_missed_runs_total",
				  "coordinator=\"c\""),
			    live);
	OK(evc_free(c));
}
END_TEST

START_TEST(names_are_escaped)
{
	evc_config cfg = { .name = "a\"b\\c\nd" };
	evc_coord *c = new_coord_with(NULL, &cfg);

	read_all(c);
	IS("evcoord_stopping", "coordinator=\"a\\\"b\\\\c\\nd\"", 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(scopes_of_the_same_name_are_told_apart)
{
	evc_config cfg = { .name = "c" };
	evc_coord *c = new_coord_with(NULL, &cfg), *s[3], *below = NULL;
	int i;

	for (i = 0; i < 3; i++) {
		OK(evc_scope_new(c, i == 1 ? "other" : "db", NULL, &s[i]));
		OK(evc_scope_ready(s[i]));
	}
	OK(evc_scope_new(s[2], "pool", NULL, &below));
	OK(evc_request_stop(below, 0, NULL));
	read_all(c);
	IS("evcoord_stopping", "coordinator=\"c\"", 0);
	IS("evcoord_stopping", "coordinator=\"c\",scope=\"db\"", 0);
	IS("evcoord_stopping", "coordinator=\"c\",scope=\"other\"", 0);
	IS("evcoord_stopping", "coordinator=\"c\",scope=\"db#2\"", 0);
	IS("evcoord_stopping", "coordinator=\"c\",scope=\"db#2/pool\"", 1);
	/* asked of a scope, it is the same scope of the same root */
	read_all(below);
	ck_assert_ptr_null(find_sample("evcoord_stopping", "coordinator=\"c\""));
	IS("evcoord_stopping", "coordinator=\"c\",scope=\"db/pool\"", 1);
	OK(evc_free(below));
	for (i = 0; i < 3; i++)
		OK(evc_free(s[i]));
	OK(evc_free(c));
}
END_TEST

API_MAIN("metrics", members_by_kind_and_state,
	 a_member_that_has_ended_is_another_sample,
	 tasks_of_another_loop_count_each, stopping_draining_and_errors,
	 stops_and_how_long_they_took, kicks_unblocks_and_stragglers,
	 missed_runs_count_also_when_the_looper_has_ended, names_are_escaped,
	 scopes_of_the_same_name_are_told_apart)
