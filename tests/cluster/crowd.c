/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cluster of 100,000 workers: functions find the worker they are for, whatever
 * its number, and what is told of all names a hundred.
 */
#include "../support/hand_engine.h"

#define MANY 100000
#define LAST (MANY - 1)

static evc_coord *c;
static evc_cluster *cl;
static atomic_int killed = -1;

static void
kill_of(evc_engine *e, unsigned worker)
{
	(void)e;
	atomic_store(&killed, (int)worker);
}

static void
begin(bool kills)
{
	static evc_engine_ops ops;
	static const evc_engine_ops *const engines[] = { &ops };
	evc_cluster_config k = { .engines = engines,
				 .n_engines = 1,
				 .grace = 0.05 };

	ops = hand_ops;
	ops.caps = kills ? EVC_ENGINE_KILLS : 0;
	ops.kill = kill_of;
	c = new_coord(NULL);
	cl = open_with(c, "hand://100000", &k);
}

static evc_remote *
for_worker(const char *name, const char *function)
{
	evc_schedule_opts o = { .worker = name };
	evc_remote *r = NULL;

	OK(evc_schedule(cl, function, NULL, NULL, &o, &r));
	return r;
}

START_TEST(each_worker_has_its_functions)
{
	evc_engine_task t;
	evc_remote *r;

	begin(false);
	hand_up(LAST);
	hand_up(70000);
	r = for_worker("worker 99999", "f");
	ck_assert_uint_eq(hand_take(70000, &t, 1), 0);
	ck_assert_uint_eq(hand_take(LAST, &t, 1), 1);
	hand_finish(LAST, &t, 0, NULL);
	OK(evc_remote_fetch(r, T_LIMIT, NULL));
	evc_remote_free(r);
	/* One that is cancelled while it runs. */
	r = for_worker("worker 70000", "f");
	ck_assert_uint_eq(hand_take(70000, &t, 1), 1);
	OK(evc_remote_cancel(r));
	UNTIL(atomic_load(&hand.cancelled_one) == t.n);
	hand_finish(70000, &t, EVC_CANCELLED, NULL);
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_CANCELLED);
	evc_remote_free(r);
	ck_assert_int_eq(evc_schedule(cl, "f", NULL, NULL,
				      &(evc_schedule_opts){
					      .worker = "worker 100000" },
				      NULL),
			 -EVC_INVALID_ARGUMENT);
	hand_end_cluster(cl, c);
}
END_TEST

START_TEST(names_of_workers_behind_the_first_thousand_count)
{
	static const char *const f[] = { "f" }, *const g[] = { "g" };
	evc_engine_task t;
	evc_remote *r;

	begin(false);
	hand.sink->worker_names(hand.core, 3, f, 1);
	hand.sink->worker_names(hand.core, LAST, g, 1);
	hand_up(3);
	hand_up(LAST);
	r = schedule(cl, "f");
	ck_assert_uint_eq(hand_take(LAST, &t, 1), 0);
	ck_assert_uint_eq(hand_take(3, &t, 1), 1);
	hand_finish(3, &t, 0, NULL);
	evc_remote_free(r);
	r = schedule(cl, "g");
	ck_assert_uint_eq(hand_take(3, &t, 1), 0);
	ck_assert_uint_eq(hand_take(LAST, &t, 1), 1);
	hand_finish(LAST, &t, 0, NULL);
	evc_remote_free(r);
	hand_end_cluster(cl, c);
}
END_TEST

START_TEST(the_last_worker_is_killed)
{
	evc_engine_task t;
	evc_remote *r;

	begin(true);
	hand_up(LAST);
	r = schedule(cl, "f");
	ck_assert_uint_eq(hand_take(LAST, &t, 1), 1);
	OK(evc_remote_cancel(r));
	UNTIL(atomic_load(&killed) == LAST);
	hand.sink->gone(hand.core, LAST, "it was killed",
			EVC_ENGINE_DIED_RUNNING);
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_CANCELLED);
	evc_remote_free(r);
	hand_end_cluster(cl, c);
}
END_TEST

static unsigned
lines_with(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

START_TEST(reports_name_a_hundred)
{
	static char text[1 << 20];
	evc_engine_task t;
	evc_remote *r[120];
	unsigned i;

	begin(false);
	own_report(evc_cluster_scope(cl), text, sizeof(text));
	ck_assert_uint_eq(lines_with(text, " is starting"), 100);
	HAS(text, "99900 more workers are not up\n");
	for (i = 0; i < 120; i++) {
		hand_up(LAST - i);
		r[i] = schedule(cl, "f");
		ck_assert_uint_eq(hand_take(LAST - i, &t, 1), 1);
	}
	own_report(evc_cluster_scope(cl), text, sizeof(text));
	ck_assert_uint_eq(lines_with(text, "f on worker 99"), 100);
	HAS(text, "20 more workers are busy\n");
	HAS(text, "99880 more workers are not up\n");
	evc_report(c, EVC_REPORT_JSON, text, sizeof(text));
	HAS(text, "\"workers_more\":99900");
	ck_assert_uint_eq(lines_with(text, "\"lives\":1"), 100);
	evc_report(c, EVC_REPORT_METRICS, text, sizeof(text));
	HAS(text, "state=\"up\"} 120\n");
	for (i = 0; i < 120; i++) {
		hand.sink->gone(hand.core, LAST - i, "", EVC_ENGINE_LEFT);
		hand_up(LAST - i);
		ck_assert_uint_eq(hand_take(LAST - i, &t, 1), 1);
		hand_finish(LAST - i, &t, 0, NULL);
		evc_remote_free(r[i]);
	}
	OK(evc_cluster_join(cl, T_LIMIT));
	hand_end_cluster(cl, c);
}
END_TEST

API_MAIN("crowd", each_worker_has_its_functions,
	 names_of_workers_behind_the_first_thousand_count,
	 the_last_worker_is_killed, reports_name_a_hundred)
