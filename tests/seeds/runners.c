/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tests that TensorFlow's C++ Coordinator and its runners have to pass
 * themselves.  Each keeps the name it has there.  Each runs three times:
 * without a loop (_i == 0), with a home loop on the thread that joins
 * (_i == 1), and with evc_run on that loop (_i == 2).
 */
#define _GNU_SOURCE 1
#include "seeds.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/*
 * The runner of those tests: it may count on a thread of its own, says whether
 * it runs, and notes how often it is joined.
 */
struct counter {
	pthread_mutex_t lock;
	int value, limit;
};

struct runner {
	evc_coord *c;
	struct counter *counter; /* counts there, if set */
	bool stops_at_limit;     /* asks for the stop when it is reached */
	pthread_t thread;
	atomic_int running, joins, stops;
	atomic_int joined_while_running;
	evc_status status; /* what its join returns */
	evc_id id;
};

static bool
is_running(void *arg)
{
	struct runner *r = arg;

	return atomic_load(&r->running);
}

static void
note_stop(void *arg)
{
	struct runner *r = arg;

	atomic_fetch_add(&r->stops, 1);
}

static evc_status
join_runner(void *arg)
{
	struct runner *r = arg;

	if (atomic_load(&r->running))
		atomic_fetch_add(&r->joined_while_running, 1);
	if (atomic_fetch_add(&r->joins, 1) == 0 && r->counter)
		pthread_join(r->thread, NULL);
	return r->status;
}

static const evc_runner_ops runner_ops = { is_running, note_stop, join_runner,
					   NULL };

static void
add(evc_coord *c, struct runner *r)
{
	r->c = c;
	ck_assert_int_eq(
		evc_runner_add(c, "runner", &runner_ops, r, NULL, &r->id), 0);
	ck_assert_uint_ne(r->id, 0);
}

/*
 * Count every 10 ms, up to the limit.  There the flag is asked for first and
 * the number added to afterwards, with time between; here both happen under
 * the counter's lock, so that the number says when it stopped.
 */
static void *
count(void *arg)
{
	struct runner *r = arg;
	struct counter *k = r->counter;
	bool more = true, reached = false;

	while (more) {
		pthread_mutex_lock(&k->lock);
		more = !evc_should_stop(r->c) && k->value < k->limit;
		if (more)
			reached = ++k->value == k->limit;
		pthread_mutex_unlock(&k->lock);
		if (reached && r->stops_at_limit)
			evc_request_stop(r->c, 0, "counted to the end");
		if (more)
			t_sleep(0.01);
	}
	atomic_store(&r->running, 0);
	return NULL;
}

static void
begin_counting(struct runner *r, struct counter *k)
{
	r->counter = k;
	r->thread = spawn(NULL, count, r);
}

static int
value_of(struct counter *k)
{
	int v;

	pthread_mutex_lock(&k->lock);
	v = k->value;
	pthread_mutex_unlock(&k->lock);
	return v;
}

/* Once a stop was requested: by evc_join, or by evc_run. */
static evc_status
join(evc_coord *c, int way, evc_verdict *v)
{
	return way == 2 ? evc_run(c, NULL, v) : evc_join(c, NULL, v);
}

static void
was_joined_once(struct runner *r)
{
	ck_assert_int_eq(r->joins, 1);
	ck_assert_int_eq(r->joined_while_running, 0);
	ck_assert_int_le(r->stops, 1);
}

struct waiting {
	evc_coord *c;
	struct t_gate in;
	atomic_int released;
	bool flag;
};

static evc_status
wait_for_stop(evc_coord *c, void *arg)
{
	struct waiting *w = arg;

	gate_step(&w->in);
	w->flag = evc_wait_for_stop(c, INFINITY) && evc_should_stop(c);
	atomic_store(&w->released, 1);
	return 0;
}

struct timed_stop {
	ev_timer timer;
	struct waiting *w;
	int released_before;
};

static void
stop_on_time(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct timed_stop *s = (struct timed_stop *)t;

	(void)loop;
	(void)revents;
	s->released_before = atomic_load(&s->w->released);
	evc_request_stop(s->w->c, 0, NULL);
}

START_TEST(C01_TestStopAndWaitOnStop)
{
	evc_coord *c = begin(_i > 0, NULL);
	struct waiting w = { .c = c };
	struct timed_stop s = { .w = &w, .released_before = -1 };
	evc_verdict v;

	gate_init(&w.in);
	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(
		evc_thread_start(c, "waits", wait_for_stop, &w, NULL, NULL), 0);
	ck_assert(gate_await(&w.in, 1));
	if (_i == 2) { /* a second there */
		ev_timer_init(&s.timer, stop_on_time, 0.2, 0);
		ev_timer_start(test.loop, &s.timer);
	} else {
		t_sleep(0.2);
		s.released_before = atomic_load(&w.released);
		ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	}
	ck_assert_int_eq(join(c, _i, &v), 0);
	ck_assert_int_eq(s.released_before, 0);
	ck_assert_int_eq(w.released, 1);
	ck_assert(w.flag);
	ck_assert(evc_should_stop(c));
	ck_assert_uint_eq(v.n_ended, 1);
}
END_TEST

START_TEST(C02_TestRealStop)
{
	struct counter k = { PTHREAD_MUTEX_INITIALIZER, 0, 100 };
	evc_coord *c = begin(_i > 0, NULL);
	struct runner r[2];
	double until;
	evc_verdict v;
	int i, frozen;

	memset(r, 0, sizeof(r));
	for (i = 0; i < 2; i++) {
		atomic_store(&r[i].running, 1);
		add(c, &r[i]);
		begin_counting(&r[i], &k);
	}
	for (until = t_now() + T_LIMIT; value_of(&k) == 0;) {
		ck_assert(t_now() < until);
		t_sleep(0.001);
	}
	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	frozen = value_of(&k);
	t_sleep(0.2); /* a second there */
	ck_assert_int_eq(value_of(&k), frozen);
	ck_assert_int_lt(frozen, 100);
	ck_assert_int_eq(join(c, _i, &v), 0);
	ck_assert_int_eq(value_of(&k), frozen);
	ck_assert_uint_eq(v.n_ended, 2);
	was_joined_once(&r[0]);
	was_joined_once(&r[1]);
}
END_TEST

START_TEST(C03_TestRequestStop)
{
	struct counter k = { PTHREAD_MUTEX_INITIALIZER, 0, 10 };
	evc_coord *c = begin(_i > 0, NULL);
	struct runner r[10];
	evc_verdict v;
	int i;

	memset(r, 0, sizeof(r));
	for (i = 0; i < 10; i++) {
		r[i].stops_at_limit = true;
		atomic_store(&r[i].running, 1);
		add(c, &r[i]);
		begin_counting(&r[i], &k);
	}
	if (_i < 2)
		ck_assert(evc_wait_for_stop(c, T_LIMIT));
	ck_assert_int_eq(join(c, _i, &v), 0);
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(value_of(&k), 10);
	ck_assert_uint_eq(v.n_ended, 10);
	ck_assert_str_eq(v.stop.text, "counted to the end");
	for (i = 0; i < 10; i++)
		was_joined_once(&r[i]);
}
END_TEST

START_TEST(C04_TestJoin)
{
	evc_coord *c = begin(_i > 0, NULL);
	struct runner r[2];
	evc_verdict v;

	memset(r, 0, sizeof(r)); /* idle: they never run */
	add(c, &r[0]);
	add(c, &r[1]);
	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	ck_assert_int_eq(join(c, _i, &v), 0);
	ck_assert_uint_eq(v.n_ended, 2);
	was_joined_once(&r[0]);
	was_joined_once(&r[1]);
	/* and not again */
	ck_assert_int_eq(join(c, _i, &v), 0);
	ck_assert_int_eq(evc_clear_stop(c), 0);
	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	was_joined_once(&r[0]);
	was_joined_once(&r[1]);
}
END_TEST

static const evc_status clean_codes[] = { EVC_CANCELLED, EVC_OUT_OF_RANGE };
static const evc_status ends[] = { EVC_CANCELLED, EVC_INVALID_ARGUMENT,
				   EVC_OUT_OF_RANGE };

/* rings: they say how they ended by evc_runner_done, not by their join. */
static void
report(int way, bool rings)
{
	evc_config cfg = { .clean = clean_codes, .n_clean = 2 };
	evc_coord *c = begin(way > 0, &cfg);
	struct runner r[3];
	evc_verdict v;
	int i;

	memset(r, 0, sizeof(r));
	for (i = 0; i < 3; i++) {
		r[i].status = rings ? 0 : ends[i];
		add(c, &r[i]);
	}
	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	for (i = 0; rings && i < 3; i++)
		ck_assert_int_eq(evc_runner_done(c, r[i].id, ends[i]), 0);
	ck_assert_int_eq(join(c, way, &v), EVC_INVALID_ARGUMENT);
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert_uint_eq(v.n_ended, 3);
	ck_assert_uint_eq(v.error.by, r[1].id);
	for (i = 0; i < 3; i++)
		was_joined_once(&r[i]);
}

START_TEST(C05_StatusReporting)
{
	report(_i, false);
}
END_TEST

START_TEST(C05_StatusReporting_by_evc_runner_done)
{
	report(_i, true);
}
END_TEST

/* Not asked for there: the clean ones stop nobody. */
START_TEST(C05_StatusReporting_before_the_stop)
{
	evc_config cfg = { .clean = clean_codes, .n_clean = 2 };
	evc_coord *c = begin(_i > 0, &cfg);
	struct runner r[3];
	evc_id hold = 0;
	evc_verdict v;
	int i;

	memset(r, 0, sizeof(r));
	ck_assert_int_eq(evc_hold_begin(c, "hold", NULL, &hold), 0);
	for (i = 0; i < 3; i++) {
		r[i].status = ends[i];
		add(c, &r[i]);
		ck_assert_int_eq(evc_runner_done(c, r[i].id, 0), 0);
	}
	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(evc_hold_end(c, hold), 0);
	ck_assert_int_eq(join(c, _i, &v), EVC_INVALID_ARGUMENT);
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert_uint_eq(v.stop.kind, EVC_BY_MEMBER_END);
	ck_assert_uint_eq(v.stop.by, r[1].id);
	for (i = 0; i < 3; i++)
		was_joined_once(&r[i]);
}
END_TEST

START_TEST(C06_JoinWithoutStop)
{
	evc_join_opts strict = { .flags = EVC_JOIN_STRICT };
	evc_coord *c = begin(_i > 0, NULL);
	struct runner r = { .status = 0 };
	evc_verdict v = { .code = 77 };

	atomic_store(&r.running, 1);
	add(c, &r);
	/* here a mode; without it a join waits, and asks for nothing (P03) */
	ck_assert_int_eq(_i == 2 ? evc_run(c, &strict, &v)
				 : evc_join(c, &strict, &v),
			 -EVC_FAILED_PRECONDITION);
	ck_assert_int_eq(v.code, 77);
	ck_assert(!evc_joined(c));
	ck_assert_int_eq(r.joins, 0);
	atomic_store(&r.running, 0);
	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	ck_assert_int_eq(_i == 2 ? evc_run(c, &strict, &v)
				 : evc_join(c, &strict, &v),
			 0);
	was_joined_once(&r);
}
END_TEST

START_TEST(C07_AllRunnersStopped)
{
	evc_coord *c = begin(_i > 0, NULL);
	struct runner r = { .status = 0 };
	evc_verdict v;

	atomic_store(&r.running, 1);
	add(c, &r);
	ck_assert(!evc_all_stopped(c));
	atomic_store(&r.running, 0);
	ck_assert(evc_all_stopped(c));
	ck_assert_int_eq(r.joins, 0); /* a question joins nobody */
	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	ck_assert_int_eq(join(c, _i, &v), 0);
	was_joined_once(&r);
	ck_assert(evc_all_stopped(c));
}
END_TEST

T_MAIN("the C++ coordinator: runners", count_before, end_and_count,
       T_TIMES(C01_TestStopAndWaitOnStop, 3),
       T_TIMES(C02_TestRealStop, 3),
       T_TIMES(C03_TestRequestStop, 3),
       T_TIMES(C04_TestJoin, 3),
       T_TIMES(C05_StatusReporting, 3),
       T_TIMES(C05_StatusReporting_by_evc_runner_done, 3),
       T_TIMES(C05_StatusReporting_before_the_stop, 3),
       T_TIMES(C06_JoinWithoutStop, 3),
       T_TIMES(C07_AllRunnersStopped, 3))
