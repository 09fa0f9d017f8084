/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers of normal life in a report: loops, posts, queues, pools, groups,
 * and the version.
 */
#include <ev.h>

#include "../../support/workers_util.h"
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

static evc_coord *
new_named(struct ev_loop *loop, const char *name)
{
	evc_config cfg = { .name = name };

	return new_coord_with(loop, &cfg);
}

/* ---- loops ---- */

static void
turn_for(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)revents;
	t_sleep(*(double *)w->data);
	ev_break(loop, EVBREAK_ALL);
}

/* One run of the loop, with a callback that takes so long after a wait for
   events that takes so long. */
static void
one_turn(struct ev_loop *loop, double wait, double takes)
{
	ev_timer w;

	ev_timer_init(&w, turn_for, wait, 0);
	w.data = &takes;
	ev_timer_start(loop, &w);
	ev_run(loop, 0);
	/* The next run begins at once, and measures this one. */
	ev_run(loop, EVRUN_NOWAIT);
}

#define TURNS "evcoord_loop_turns_total"
#define LONGEST "evcoord_loop_longest_turn_seconds"

START_TEST(turns_of_a_loop)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_named(loop, "c");
	double before, n;

	read_all(c);
	IS(TURNS, "coordinator=\"c\",loop=\"home\"", 0);
	IS(LONGEST, "coordinator=\"c\",loop=\"home\"", 0);
	one_turn(loop, 0.2, 0);
	read_all(c);
	n = value(TURNS, "coordinator=\"c\",loop=\"home\"");
	ck_assert_double_ge(n, 2);
	/* The wait for events is no part of a turn. */
	before = value(LONGEST, "coordinator=\"c\",loop=\"home\"");
	one_turn(loop, 0, 0.1 + 2 * before);
	read_all(c);
	ck_assert_double_gt(value(TURNS, "coordinator=\"c\",loop=\"home\""),
			    n);
	ck_assert_double_ge(value(LONGEST,
				  "coordinator=\"c\",loop=\"home\""),
			    0.099 + 2 * before);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static void
run_inside(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)w;
	(void)revents;
	one_turn(loop, 0.2, 0);
	ev_break(loop, EVBREAK_ALL);
}

/* A wait of 0.2 s is not counted, unless this machine was slow each time; nor
   is one in a run of the loop inside a callback. */
START_TEST(a_wait_is_no_turn)
{
	double longest = 1;
	ev_timer w;
	int tries;

	for (tries = 0; longest >= 0.15; tries++) {
		struct ev_loop *loop = ev_loop_new(0);
		evc_coord *c = new_named(loop, "c");

		ck_assert_int_lt(tries, 100);
		one_turn(loop, 0.2, 0);
		ev_timer_init(&w, run_inside, 0, 0);
		ev_timer_start(loop, &w);
		ev_run(loop, 0);
		ev_run(loop, EVRUN_NOWAIT);
		read_all(c);
		longest = value(LONGEST, "coordinator=\"c\",loop=\"home\"");
		OK(evc_free(c));
		ev_loop_destroy(loop);
	}
}
END_TEST

START_TEST(loops_of_one_name)
{
	struct ev_loop *loop[4];
	evc_coord *c = NULL, *s = NULL;
	evc_reactor *r;
	int i;

	for (i = 0; i < 4; i++)
		loop[i] = ev_loop_new(0);
	c = new_named(loop[0], "c");
	OK(evc_reactor_attach(c, "a\"b", loop[1], &r));
	OK(evc_reactor_attach(c, "a\"b", loop[2], &r));
	OK(evc_reactor_attach(c, "a\"b#2", loop[3], &r));
	OK(evc_scope_new(c, "s", NULL, &s));
	ev_run(loop[2], EVRUN_NOWAIT);
	read_all(c);
	IS(TURNS, "coordinator=\"c\",loop=\"a\\\"b\"", 0);
	IS(TURNS, "coordinator=\"c\",loop=\"a\\\"b#2\"", 1);
	IS(TURNS, "coordinator=\"c\",loop=\"a\\\"b#2#1\"", 0);
	/* The home of a scope is a loop that is counted already. */
	ck_assert_ptr_null(find_sample(TURNS, "coordinator=\"c\",scope=\"s\","
					      "loop=\"home\""));
	IS("evcoord_loop_posts",
	   "coordinator=\"c\",scope=\"s\",loop=\"home\"", 0);
	OK(evc_free(s));
	OK(evc_free(c));
	for (i = 0; i < 4; i++)
		ev_loop_destroy(loop[i]);
}
END_TEST

static void
count_post(evc_reactor *r, evc_status why, void *arg)
{
	(void)r;
	(void)why;
	++*(int *)arg;
}

START_TEST(posts_that_wait)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_named(loop, "c");
	evc_loop_ref *l = evc_loop_of(evc_home(c));
	int n = 0, i;

	for (i = 0; i < 3; i++)
		OK(evc_post(l, count_post, &n));
	read_all(c);
	IS("evcoord_loop_posts", "coordinator=\"c\",loop=\"home\"", 3);
	HAS(whole(report_json, c), "\"posts\":3");
	while (n < 3)
		ev_run(loop, EVRUN_ONCE);
	read_all(c);
	IS("evcoord_loop_posts", "coordinator=\"c\",loop=\"home\"", 0);
	evc_loop_release(l);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static void
ask_for_report(evc_reactor *r, evc_status why, void *arg)
{
	(void)why;
	*(size_t *)arg = evc_report(evc_reactor_coord(r), EVC_REPORT_METRICS,
				    NULL, 0);
}

START_TEST(a_report_inside_a_turn)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_named(loop, "c");
	evc_loop_ref *l = evc_loop_of(evc_home(c));
	size_t n = 0;

	OK(evc_post(l, ask_for_report, &n));
	while (n == 0)
		ev_run(loop, EVRUN_ONCE);
	evc_loop_release(l);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- queues ---- */

START_TEST(queues_of_a_coordinator)
{
	evc_coord *c = new_named(NULL, "c"), *s = NULL;
	evc_queue *q[3];
	void *item;
	int i;

	OK(evc_scope_new(c, "s", NULL, &s));
	OK(evc_queue_new(c, "jobs", 5, NULL, &q[0]));
	OK(evc_queue_new(c, "jobs", 7, NULL, &q[1]));
	OK(evc_queue_new(s, "jobs", 9, NULL, &q[2]));
	OK(evc_queue_push(q[0], &i, 0));
	OK(evc_queue_push(q[1], &i, 0));
	OK(evc_queue_push(q[1], &i, 0));
	OK(evc_queue_pop(q[0], &item, 0));
	read_all(c);
#define QUEUE(n) "coordinator=\"c\",queue=\"jobs" n "\""
	IS("evcoord_queue_capacity", QUEUE(""), 5);
	IS("evcoord_queue_capacity", QUEUE("#2"), 7);
	IS("evcoord_queue_capacity",
	   "coordinator=\"c\",scope=\"s\",queue=\"jobs\"", 9);
	IS("evcoord_queue_items", QUEUE(""), 0);
	IS("evcoord_queue_items", QUEUE("#2"), 2);
	IS("evcoord_queue_pushed_total", QUEUE(""), 1);
	IS("evcoord_queue_popped_total", QUEUE(""), 1);
	IS("evcoord_queue_pops_waiting", QUEUE(""), 0);
	HAS(report(c), "\n  queue \"jobs\": 2 of 7 items, 2 pushed, 0 popped\n");
	HAS(whole(report_json, c),
	    "\"parts\":[{\"kind\":\"queue\",\"name\":\"jobs\","
	    "\"described\":{\"capacity\":5,\"items\":0,\"pushed\":1,"
	    "\"popped\":1,\"pushing\":0,\"popping\":0,\"closed\":false,"
	    "\"cancelled\":false}},");
	OK(evc_queue_try_pop(q[1], &item));
	OK(evc_queue_try_pop(q[1], &item));
	for (i = 0; i < 3; i++)
		OK(evc_queue_free(q[i]));
	read_all(c);
	ck_assert_ptr_null(find_sample("evcoord_queue_capacity", QUEUE("")));
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

enum { MANY = 10000 };

START_TEST(ten_thousand_queues)
{
	evc_coord *c = new_named(NULL, "c");
	evc_queue **q = calloc(MANY, sizeof(*q));
	size_t n = 1 << 25, len;
	char *text = malloc(n);
	int i;

	for (i = 0; i < MANY; i++)
		OK(evc_queue_new(c, "q", 1, NULL, &q[i]));
	len = evc_report(c, EVC_REPORT_METRICS, text, n);
	ck_assert_uint_lt(len, n);
	HAS(strstr(text, "evcoord_queue_capacity"), "queue=\"q#10000\"} 1\n");
	ck_assert_uint_eq(times_in(text, "# HELP evcoord_queue_capacity "), 1);
	for (i = 0; i < MANY; i++)
		OK(evc_queue_free(q[i]));
	OK(evc_free(c));
	free(text);
	free(q);
}
END_TEST

/* ---- pools ---- */

struct stay {
	evc_job job; /* first */
	atomic_int begun, open, done;
};

static evc_status
work_until_open(evc_job *job)
{
	struct stay *t = (struct stay *)job;

	atomic_store(&t->begun, 1);
	while (!atomic_load(&t->open))
		t_sleep(0.0005);
	return 0;
}

static void
note_done(evc_job *job, evc_status result)
{
	(void)result;
	atomic_store(&((struct stay *)job)->done, 1);
}

START_TEST(jobs_of_a_pool)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_named(loop, "c");
	evc_pool_opts o = { .n_threads = 1 };
	struct stay t[3] = { { .job = { 0 } } };
	evc_pool *pool;
	int i;

	OK(evc_pool_new(c, "sums", &o, &pool));
	for (i = 0; i < 3; i++) {
		t[i].job.work = work_until_open;
		t[i].job.done = note_done;
	}
	OK(evc_pool_submit(pool, evc_home(c), &t[0].job));
	UNTIL(atomic_load(&t[0].begun) == 1);
	OK(evc_pool_submit(pool, evc_home(c), &t[1].job));
	OK(evc_pool_submit(pool, evc_home(c), &t[2].job));
	read_all(c);
#define POOL "coordinator=\"c\",scope=\"sums\""
	IS("evcoord_pool_threads", POOL, 1);
	IS("evcoord_pool_threads_live", POOL, 1);
	IS("evcoord_pool_threads_idle", POOL, 0);
	IS("evcoord_pool_running", POOL, 1);
	IS("evcoord_pool_queued", POOL, 2);
	IS("evcoord_pool_submitted_total", POOL, 3);
	IS("evcoord_pool_done_total", POOL, 0);
	HAS(report(c), "\n    pool: 1 of 1 threads, 0 idle; jobs: 2 queued, "
		       "1 running, 3 submitted, 0 done, 0 cancelled\n");
	HAS(whole(report_json, c),
	    "\"described\":{\"pool\":{\"threads\":1,\"live\":1,\"idle\":0,"
	    "\"queued\":2,\"running\":1,\"submitted\":3,\"done\":0,"
	    "\"cancelled\":0}}");
	for (i = 0; i < 3; i++)
		atomic_store(&t[i].open, 1);
	while (atomic_load(&t[0].done) + atomic_load(&t[1].done) +
		       atomic_load(&t[2].done) < 3)
		ev_run(loop, EVRUN_ONCE);
	read_all(c);
	IS("evcoord_pool_running", POOL, 0);
	IS("evcoord_pool_queued", POOL, 0);
	IS("evcoord_pool_done_total", POOL, 3);
	OK(evc_pool_free(pool));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- all of it ---- */

START_TEST(promtool_has_nothing_to_say)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_named(loop, "c\"\\\n\xff");
	evc_registry *reg = new_registry(0);
	evc_group_opts o = { .coord = c };
	struct crew k[2] = { { 0 } };
	evc_queue *q[2];
	evc_pool *pool;
	const char *text;
	char line[64];
	int i;

	crew_add(reg, "train", &k[0], 2, &o);
	crew_add(reg, "train", &k[1], 2, &o);
	OK(evc_group_put(k[0].group, "a name", 1, true));
	for (i = 0; i < 2; i++)
		OK(evc_queue_new(c, "q\"\n\\", 2, NULL, &q[i]));
	HAS(report(c), "\n  queue \"q\"\\n\\\": 0 of 2 items");
	OK(evc_pool_new(c, "p", NULL, &pool));
	ev_run(loop, EVRUN_NOWAIT);
	text = whole(report_metrics, c);
	read_metrics(text);
	snprintf(line, sizeof(line), "version=\"%s\"", evc_version());
	IS("evcoord_build_info", line, 1);
	ask_promtool(text);
	OK(evc_pool_free(pool));
	for (i = 0; i < 2; i++)
		OK(evc_queue_free(q[i]));
	end_registry(reg);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("numbers", turns_of_a_loop, a_wait_is_no_turn, loops_of_one_name,
	 posts_that_wait, a_report_inside_a_turn, queues_of_a_coordinator,
	 ten_thousand_queues, jobs_of_a_pool, promtool_has_nothing_to_say)
