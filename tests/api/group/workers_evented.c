/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups that a loop runs instead of threads.
 */
#include "../../support/workers_util.h"

#include <ev.h>

/* ---- a loop with a group on it, and a timer that looks on ---- */

struct stage {
	struct ev_loop *loop;
	evc_coord *c;
	evc_registry *reg;
	ev_timer look;
	int looks;
	bool (*over)(struct stage *s);
	double limit;
	struct crew *k;
	void *more;
};

static void
stage_look(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct stage *s = t->data;

	(void)revents;
	s->looks++;
	if (s->over != NULL && (s->over(s) || t_now() > s->limit))
		ev_break(loop, EVBREAK_ONE);
}

static void
stage_make(struct stage *s, struct crew *k, unsigned n,
	   const evc_workers_opts *more)
{
	evc_workers_opts o = { 0 };

	memset(s, 0, sizeof(*s));
	if (more != NULL)
		o = *more;
	s->k = k;
	s->loop = ev_loop_new(0);
	s->c = new_coord(s->loop);
	s->reg = new_registry(0);
	o.coord = s->c;
	o.reactor = evc_home(s->c);
	crew_add(s->reg, "train", k, n, &o);
	ev_timer_init(&s->look, stage_look, 0.001, 0.001);
	s->look.data = s;
	ev_timer_start(s->loop, &s->look);
}

/* Turn the loop until it is so. */
static void
stage_until(struct stage *s, bool (*over)(struct stage *s))
{
	s->over = over;
	s->limit = t_now() + T_LIMIT;
	ev_run(s->loop, 0);
	ck_assert_msg(over(s), "it did not come about");
}

static void
stage_end(struct stage *s)
{
	end_registry(s->reg);
	OK(evc_free(s->c));
	ev_loop_destroy(s->loop);
}

static evc_status
count_run(evc_workers *group, unsigned id, void *arg)
{
	crew_enter(group, id, arg);
	return crew_leave(arg, 0);
}

static bool
all_have_run(struct stage *s)
{
	int i;

	for (i = 0; i < 3; i++)
		if (atomic_load(&s->k->by_id[i]) < 5)
			return false;
	return s->looks > 3;
}

static bool
is_stopped(struct stage *s)
{
	return info_of(s->k->group).state == EVC_WORKERS_STOPPED &&
	       atomic_load(&s->k->n_cleanup) > 0;
}

/* ---- runs ---- */

START_TEST(the_runs_of_all_workers_are_on_the_loop)
{
	struct crew k = { .run = count_run };
	int threads, i, runs;
	struct stage s;

	stage_make(&s, &k, 3, NULL);
	threads = t_count_threads();
	OK(evc_registry_start(s.reg));
	ck_assert(evc_workers_is_active(k.group));
	STATE(k.group, EVC_WORKERS_RUNNING);
	ck_assert_uint_eq(info_of(k.group).n_live, 3);
	ck_assert_int_eq(k.runs, 0); /* the loop does not turn yet */
	stage_until(&s, all_have_run);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(k.tid[i], own_tid());
	ids_are(k.group, 0, 3);
	/* No threads for them: one, the helper's, may have come. */
	ck_assert_int_le(t_count_threads(), threads + 1);
	ck_assert_uint_eq(info_of(k.group).n_runs, k.runs);
	ck_assert(evc_workers_metric(k.group, "worker_time_count") == k.runs);
	/* On the loop's own thread: nobody else could end them. */
	OK(evc_registry_stop(s.reg, NULL));
	runs = k.runs;
	CALLED(&k, 1, 1, 1, 1, 1);
	STATE(k.group, EVC_WORKERS_STOPPED);
	s.looks = 0;
	for (i = 0; i < 5; i++)
		ev_run(s.loop, EVRUN_NOWAIT);
	ck_assert_int_eq(k.runs, runs);
	/* And again. */
	OK(evc_registry_start(s.reg));
	for (i = 0; i < 3; i++)
		k.by_id[i] = 0;
	stage_until(&s, all_have_run);
	stage_end(&s);
	CALLED(&k, 2, 2, 2, 2, 2);
}
END_TEST

static bool
has_looked_50_times(struct stage *s)
{
	return s->looks > 50 && s->k->runs > 10;
}

/* Fewer: between two of them are hundreds of runs. */
static bool
has_looked_10_times(struct stage *s)
{
	return s->looks > 10 && s->k->runs > 10;
}

static evc_status
run_5_ms(evc_workers *group, unsigned id, void *arg)
{
	crew_enter(group, id, arg);
	t_sleep(0.005);
	return crew_leave(arg, 0);
}

/* Whatever else the loop has to do comes first, and in between. */
START_TEST(other_events_come_between_the_slices)
{
	evc_workers_opts o = { .slice = 0.002 };
	struct crew k = { .run = run_5_ms }, many = { .run = count_run };
	struct stage s;

	stage_make(&s, &k, 2, &o);
	OK(evc_registry_start(s.reg));
	stage_until(&s, has_looked_50_times);
	/* A run is longer than a slice, so one in each turn at most. */
	ck_assert_int_ge(s.looks + 5, k.runs);
	stage_end(&s);
	/* Short ones fill their slice. */
	stage_make(&s, &many, 2, &o);
	OK(evc_registry_start(s.reg));
	stage_until(&s, has_looked_10_times);
	stage_end(&s);
}
END_TEST

/* ---- ends and errors ---- */

static evc_status
run_5_times(evc_workers *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	return crew_leave(k, atomic_load(&k->by_id[id]) < 5 ? 0 :
							      k->end_says);
}

START_TEST(the_end_of_all_and_an_error_stop_it)
{
	struct crew k = { .run = run_5_times, .end_says = EVC_OUT_OF_RANGE };
	struct crew e = { .run = run_5_times, .end_says = EVC_ABORTED };
	struct stage s;

	stage_make(&s, &k, 3, NULL);
	OK(evc_registry_start(s.reg));
	stage_until(&s, is_stopped);
	ck_assert_int_eq(k.runs, 15);
	ck_assert_uint_eq(info_of(k.group).n_errors, 0);
	CALLED(&k, 1, 1, 1, 1, 1);
	stage_end(&s);

	stage_make(&s, &e, 3, NULL);
	OK(evc_registry_start(s.reg));
	stage_until(&s, is_stopped);
	CALLED(&e, 1, 1, 1, 1, 1);
	ck_assert_uint_ge(info_of(e.group).n_errors, 1);
	ck_assert_uint_eq(error_of(e.group, 0).run, 5);
	ck_assert_int_eq(error_of(e.group, 0).reason.code, EVC_ABORTED);
	ck_assert(!evc_should_stop(s.c));
	stage_end(&s);
}
END_TEST

static bool
runs_on(struct stage *s)
{
	return s->k->by_id[0] > 8;
}

static evc_status
fail_3_times(evc_workers *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	return crew_leave(k, id == 0 && atomic_load(&k->by_id[0]) <= 3 ?
				     EVC_ABORTED :
				     0);
}

START_TEST(a_worker_on_a_loop_is_restarted)
{
	evc_workers_opts o = { .on_error = EVC_WORKERS_RESTART,
			       .restart = { .first = 0.001, .most = 0.01,
					    .n = 10, .within = 100 } };
	struct crew k = { .run = fail_3_times };
	struct stage s;

	stage_make(&s, &k, 2, &o);
	OK(evc_registry_start(s.reg));
	stage_until(&s, runs_on);
	ck_assert_uint_eq(info_of(k.group).n_restarts, 3);
	ck_assert_uint_eq(info_of(k.group).n_errors, 3);
	stage_end(&s);
	CALLED(&k, 1, 1, 1, 1, 1);
}
END_TEST

/* ---- stops ---- */

static void *
stop_by_name(void *arg)
{
	evc_join_opts o = { .grace = T_LIMIT };

	return (void *)(intptr_t)evc_registry_stop_name(arg, "train", &o);
}

START_TEST(another_thread_stops_it_while_the_loop_turns)
{
	struct crew k = { .run = count_run };
	struct stage s;
	pthread_t t;
	void *result;

	stage_make(&s, &k, 3, NULL);
	OK(evc_registry_start(s.reg));
	stage_until(&s, all_have_run);
	OK(pthread_create(&t, NULL, stop_by_name, s.reg));
	stage_until(&s, is_stopped);
	OK(pthread_join(t, &result));
	ck_assert_ptr_null(result);
	CALLED(&k, 1, 1, 1, 1, 1);
	stage_end(&s);
}
END_TEST

static evc_status
stop_inside(evc_workers *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	if (atomic_load(&k->by_id[id]) == 5 && id == 1)
		k->end_says = evc_registry_stop(evc_workers_registry(group),
						NULL);
	return crew_leave(k, 0);
}

START_TEST(a_run_on_the_loop_may_stop_it)
{
	struct crew k = { .run = stop_inside, .end_says = 77 };
	struct stage s;

	stage_make(&s, &k, 3, NULL);
	OK(evc_registry_start(s.reg));
	stage_until(&s, is_stopped);
	OK(k.end_says);
	CALLED(&k, 1, 1, 1, 1, 1);
	stage_end(&s);
}
END_TEST

static evc_status
ask_for_the_stop(evc_workers *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	if (atomic_load(&k->by_id[id]) == 5)
		evc_request_stop(k->more, 0, "by a run");
	return crew_leave(k, 0);
}

START_TEST(evc_run_joins_it_with_the_rest)
{
	struct crew k = { .run = ask_for_the_stop };
	struct stage s;
	evc_verdict v;

	stage_make(&s, &k, 3, NULL);
	k.more = s.c;
	OK(evc_registry_start(s.reg));
	OK(evc_run(s.c, NULL, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_str_eq(v.stop.text, "by a run");
	UNTIL(info_of(k.group).state == EVC_WORKERS_STOPPED);
	UNTIL(atomic_load(&k.n_cleanup) == 1);
	CALLED(&k, 1, 1, 1, 1, 1);
	REFUSED(EVC_CANCELLED, evc_registry_start(s.reg));
	stage_end(&s);
}
END_TEST

/* ---- resize, pause ---- */

static bool
five_run(struct stage *s)
{
	return s->k->by_id[4] > 3;
}

static bool
looked_20(struct stage *s)
{
	return s->looks >= 20;
}

START_TEST(it_is_resized_and_paused)
{
	struct crew k = { .run = count_run };
	struct stage s;
	int runs, of_4;

	stage_make(&s, &k, 3, NULL);
	OK(evc_registry_start(s.reg));
	stage_until(&s, all_have_run);
	OK(evc_workers_resize(k.group, 5));
	stage_until(&s, five_run);
	OK(evc_workers_resize(k.group, 2));
	s.looks = 0;
	stage_until(&s, looked_20);
	ck_assert_uint_eq(info_of(k.group).n_live, 2);
	of_4 = k.by_id[4];
	OK(evc_workers_pause(k.group));
	runs = k.runs;
	s.looks = 0;
	stage_until(&s, looked_20);
	ck_assert_int_eq(k.runs, runs);
	ck_assert_int_eq(k.by_id[4], of_4);
	OK(evc_workers_resume(k.group));
	OK(evc_workers_resize(k.group, 3));
	k.by_id[0] = k.by_id[1] = k.by_id[2] = 0;
	s.looks = 0;
	stage_until(&s, all_have_run);
	stage_end(&s);
}
END_TEST

START_TEST(a_reactor_of_somebody_else_is_refused)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *far = new_coord(loop), *c = new_coord(NULL);
	evc_workers_opts o = { .coord = c, .reactor = evc_home(far) };
	evc_registry *reg = new_registry(0);
	evc_workers *group = NULL;

	REFUSED(EVC_INVALID_ARGUMENT,
		evc_workers_init(reg, "x", count_run, NULL, &o, &group, NULL));
	o.coord = NULL;
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_workers_init(reg, "x", count_run, NULL, &o, &group, NULL));
	o.coord = far;
	o.slice = -1;
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_workers_init(reg, "x", count_run, NULL, &o, &group, NULL));
	o.slice = NAN;
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_workers_init(reg, "x", count_run, NULL, &o, &group, NULL));
	ck_assert_ptr_null(group);
	ck_assert_uint_eq(evc_registry_ids(reg, NULL, 0), 0);
	OK(evc_registry_free(reg));
	OK(evc_free(far));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("workers_evented", the_runs_of_all_workers_are_on_the_loop,
	 other_events_come_between_the_slices,
	 the_end_of_all_and_an_error_stop_it, a_worker_on_a_loop_is_restarted,
	 another_thread_stops_it_while_the_loop_turns,
	 a_run_on_the_loop_may_stop_it, evc_run_joins_it_with_the_rest,
	 it_is_resized_and_paused, a_reactor_of_somebody_else_is_refused)
