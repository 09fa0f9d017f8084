/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One function after the other: scheduled by the callback that the result of
 * the one before it comes to.
 */
#include "cluster.h"

#define GUARD 30. /* seconds after which a function must be lost */

static void
go(struct bench_trip *t);

static void
came_back(evc_cluster *cluster, evc_status result, const evc_value *value,
	  void *arg)
{
	struct bench_trip *t = arg;

	(void)cluster;
	(void)value;
	bench_must(result > 0 ? -result : result, "evc_fetch_start");
	t->each[t->ended++] = (double)(bench_now() - t->t0) / 1e3;
	if (t->ended == t->n)
		ev_break(t->loop, EVBREAK_ALL);
	else
		go(t);
}

static void
go(struct bench_trip *t)
{
	evc_remote *remote;
	evc_value v;
	evc_status st;

	t->t0 = bench_now();
	st = evc_schedule(t->cluster.cluster, NOTHING, NULL, NULL, NULL,
			  &remote);
	bench_must(st > 0 ? -st : st, "evc_schedule");
	bench_must(evc_pack(&v, "r", remote), "evc_pack");
	bench_must(evc_fetch_start(t->cluster.cluster, &v, came_back, t),
		   "evc_fetch_start");
	evc_value_free(&v);
	evc_remote_free(remote);
}

static void
begin(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	go(w->data);
}

static void
guard(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
	bench_must(-EVC_INTERNAL, "a function was lost");
}

void
bench_trips(struct bench_trip *t, double *each, unsigned n)
{
	t->each = each;
	t->n = n;
	t->ended = 0;
	ev_now_update(t->loop);
	ev_timer_init(&t->guard, guard, GUARD, 0);
	ev_timer_start(t->loop, &t->guard);
	ev_timer_init(&t->begin, begin, 0, 0);
	t->begin.data = t;
	ev_timer_start(t->loop, &t->begin);
	ev_run(t->loop, 0);
	ev_timer_stop(t->loop, &t->guard);
}
