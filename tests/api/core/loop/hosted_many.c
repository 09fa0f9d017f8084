/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosted reactors in numbers: edge-triggered hosts, several coordinators on one
 * host, thousands of reactors, and thousands of timers on one of them.
 */
#include "../../../support/api_util.h"
#include "../../../support/host.h"

#include <sys/resource.h>

static void
on_answer(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	++*(int *)arg;
}

static evc_status
count(evc_coord *c, void *arg)
{
	(void)c;
	++*(int *)arg;
	return 0;
}

static void
end_hosted(struct hosted *t)
{
	evc_coord *c = evc_reactor_coord(t->r);

	host_del(t->h, t->fd);
	OK(evc_free(c));
}

/* ---- hosts that watch for edges ---- */

/* Each needs a turn after the turn: an edge that does not come is a hang. */
START_TEST(an_edge_triggered_host_misses_nothing)
{
	struct host h;
	struct hosted t;
	evc_coord *c = new_coord(NULL);
	evc_task_class cls = { .on_stop = end_told_task };
	evc_task *task = calloc(10000, sizeof(*task));
	int i, ticks = 0, slow = 0, answers = 0;
	evc_id id, other;

	host_init(&h);
	h.edge = true;
	hosted_init(&t, &h, c, "edge");
	OK(evc_looper_start(c, "at once", 0, count, &ticks, NULL, &id));
	HOST_UNTIL(&h, ticks >= 1000);
	OK(evc_member_remove(c, id));
	host_settle(&h);
	OK(evc_looper_start(c, "slow", 0.002, count, &slow, NULL, &other));
	HOST_UNTIL(&h, slow >= 20);
	/* More tasks than a turn tells. */
	for (i = 0; i < 10000; i++)
		OK(evc_task_begin(t.r, &task[i], &cls));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join_start(c, on_answer, &answers, NULL));
	HOST_UNTIL(&h, answers == 1);
	end_hosted(&t);
	host_end(&h);
	free(task);
}
END_TEST

struct flood {
	evc_loop_ref *to;
	atomic_int came;
};

static void
on_flood(evc_reactor *r, evc_status why, void *arg)
{
	(void)r;
	(void)why;
	atomic_fetch_add(&((struct flood *)arg)->came, 1);
}

static void *
flood(void *arg)
{
	struct flood *f = arg;
	int i;

	for (i = 0; i < 5000; i++)
		if (evc_post(f->to, on_flood, f) < 0)
			return f;
	return NULL;
}

/* A ring may come at any moment of a turn. */
START_TEST(no_ring_is_lost_beside_turns)
{
	struct flood f = { .came = 0 };
	struct host h;
	struct hosted t;
	evc_coord *c = new_coord(NULL);
	struct t_crowd k;

	host_init(&h);
	h.edge = _i != 0;
	hosted_init(&t, &h, c, "flooded");
	f.to = evc_loop_of(t.r);
	crowd_begin(&k, 3, flood, &f, 0);
	HOST_UNTIL(&h, atomic_load(&f.came) == 15000);
	ck_assert_uint_eq(crowd_end(&k), 0);
	evc_loop_release(f.to);
	host_settle(&h);
	end_hosted(&t);
	host_end(&h);
}
END_TEST

/* ---- two and many ---- */

START_TEST(two_coordinators_live_on_one_host_and_one_may_have_two_reactors)
{
	struct host h;
	struct hosted t[3];
	evc_coord *a = new_coord(NULL), *b = new_coord(NULL);
	int ticks[2] = { 0, 0 }, answers = 0;

	host_init(&h);
	hosted_init(&t[0], &h, a, "a");
	hosted_init(&t[1], &h, b, "b");
	hosted_init(&t[2], &h, b, "b 2");
	OK(evc_looper_start(a, "a", 0.001, count, &ticks[0], NULL, NULL));
	OK(evc_looper_start(b, "b", 0.001, count, &ticks[1], NULL, NULL));
	HOST_UNTIL(&h, ticks[0] > 5 && ticks[1] > 5);
	OK(evc_request_stop(a, 0, NULL));
	OK(evc_join_start(a, on_answer, &answers, NULL));
	HOST_UNTIL(&h, answers == 1);
	end_hosted(&t[0]);
	ticks[1] = 0;
	HOST_UNTIL(&h, ticks[1] > 5);
	OK(evc_request_stop(b, 0, NULL));
	OK(evc_join_start(b, on_answer, &answers, NULL));
	HOST_UNTIL(&h, answers == 2);
	host_del(&h, t[2].fd);
	end_hosted(&t[1]);
	host_end(&h);
}
END_TEST

START_TEST(a_stop_before_the_first_turn_is_told)
{
	struct host h;
	struct hosted t;
	evc_coord *c = new_coord(NULL);
	int stops = 0;

	OK(evc_request_stop(c, 0, NULL));
	host_init(&h);
	hosted_init(&t, &h, c, "late");
	ck_assert(host_readable(t.fd));
	OK(evc_on_stop(c, NULL, count, &stops, NULL, NULL));
	HOST_UNTIL(&h, stops == 1);
	host_settle(&h);
	end_hosted(&t);
	host_end(&h);
}
END_TEST

/* Ten thousand, where the machine gives so many descriptors. */
START_TEST(thousands_of_reactors_are_told_of_a_stop)
{
	struct rlimit files;
	struct hosted *t;
	struct host h;
	evc_coord *c = new_coord(NULL);
	int i, n = 10000;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < 30200)
		n = (int)(files.rlim_cur - 200) / 3;
	t = calloc((size_t)n, sizeof(*t));
	host_init(&h);
	for (i = 0; i < n; i++)
		hosted_init(&t[i], &h, c, "one of many");
	host_settle(&h);
	OK(evc_request_stop(c, 0, NULL));
	host_settle(&h);
	for (i = 0; i < n; i++) {
		ck_assert_uint_gt(t[i].turns, 0);
		host_del(&h, t[i].fd);
	}
	OK(evc_free(c));
	host_end(&h);
	free(t);
}
END_TEST

/* ---- timers ---- */

enum { TIMERS = 1000 };

struct alarm {
	evc_coord *scope;
	double due, came;
};


static evc_status
on_alarm(evc_coord *c, void *arg)
{
	struct alarm *a = arg;

	(void)c;
	if (a->came == 0 && t_now() >= a->due)
		a->came = t_now();
	return a->came == 0 ? 0 : EVC_OUT_OF_RANGE;
}

/* The timer of each scope is one of the reactor's. */
START_TEST(each_of_a_thousand_timers_fires_in_its_time)
{
	struct alarm *a = calloc(TIMERS, sizeof(*a));
	evc_coord *c = new_coord(NULL);
	struct host h;
	struct hosted t;
	int i, left = TIMERS, answers = 0;

	host_init(&h);
	hosted_init(&t, &h, c, "timers");
	for (i = 0; i < TIMERS; i++) {
		double wait = 0.01 + 0.0003 * ((i * 7919) % TIMERS);

		OK(evc_scope_new(c, NULL, NULL, &a[i].scope));
		OK(evc_scope_ready(a[i].scope));
		a[i].due = t_now() + wait;
		OK(evc_looper_start(a[i].scope, "alarm", wait, on_alarm, &a[i],
				    NULL, NULL));
	}
	while (left > 0) {
		host_once(&h, 100);
		for (i = left = 0; i < TIMERS; i++)
			left += a[i].came == 0;
		ck_assert_double_lt(t_now(), a[0].due + T_LIMIT);
	}
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join_start(c, on_answer, &answers, NULL));
	HOST_UNTIL(&h, answers == 1);
	host_settle(&h);
	ck_assert(!host_readable(t.fd));
	for (i = 0; i < TIMERS; i++)
		OK(evc_free(a[i].scope));
	end_hosted(&t);
	host_end(&h);
	free(a);
}
END_TEST

T_MAIN("hosted_many", NULL, NULL, T_ONCE(an_edge_triggered_host_misses_nothing),
       T_TIMES(no_ring_is_lost_beside_turns, 2),
       T_ONCE(two_coordinators_live_on_one_host_and_one_may_have_two_reactors),
       T_ONCE(a_stop_before_the_first_turn_is_told),
       T_ONCE(thousands_of_reactors_are_told_of_a_stop),
       T_ONCE(each_of_a_thousand_timers_fires_in_its_time))
