/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first half of the tests that TensorFlow's Coordinator has to pass
 * itself: the stop and the joins.  Each keeps the name it has there.  Each
 * runs twice: without a loop (_i == 0), and with a home loop on the thread
 * that joins (_i == 1), where evc_join runs that loop meanwhile.
 */
#define _GNU_SOURCE 1
#include "seeds.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/*
 * A thread that may register itself, then lives until a gate has opened or a
 * time is over, and says that it is leaving.
 */
struct sleeper {
	evc_coord *c;        /* registers itself there, if set */
	struct t_gate *is_in;  /* stepped after that */
	struct t_gate *leave;  /* leaves when this was stepped ... */
	double nap;          /* ... or, without a gate, after this long */
	evc_status got;
	int tid;
	bool left;           /* its last store: read it after the join only */
};

static void *
sleep_a_bit(void *arg)
{
	struct sleeper *s = arg;

	s->tid = gettid();
	if (s->c)
		s->got = evc_register_thread(s->c, NULL, pthread_self(), NULL,
					     NULL);
	if (s->is_in)
		gate_step(s->is_in);
	if (s->leave)
		gate_await(s->leave, 1);
	else
		t_sleep(s->nap);
	s->left = true;
	return NULL;
}

START_TEST(P01_testStopAPI)
{
	evc_coord *c = begin(_i, NULL);
	double t0 = t_now();

	ck_assert(!evc_should_stop(c));
	ck_assert(!evc_wait_for_stop(c, 0.01));
	ck_assert(t_now() - t0 >= 0.01);
	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	ck_assert(evc_should_stop(c));
	ck_assert(evc_wait_for_stop(c, 0.01));
	/* It does not wait: this would be longer than the test may take. */
	ck_assert(evc_wait_for_stop(c, 3600.0));
}
END_TEST

struct stopper {
	evc_coord *c;
	struct t_gate *go, *asked;
	evc_status got;
};

static void *
stop_on_event(void *arg)
{
	struct stopper *s = arg;

	gate_await(s->go, 1);
	s->got = evc_request_stop(s->c, 0, "the event has come");
	gate_step(s->asked);
	return NULL;
}

START_TEST(P02_testStopAsync)
{
	struct t_gate go = GATE_INIT, asked = GATE_INIT;
	evc_coord *c = begin(_i, NULL);
	struct stopper s = { c, &go, &asked, -1 };
	pthread_t t = spawn("stopper", stop_on_event, &s);

	ck_assert(!evc_should_stop(c));
	ck_assert(!evc_wait_for_stop(c, 0.01));
	gate_step(&go);
	/* 50 ms there; a loaded machine may need longer. */
	ck_assert(evc_wait_for_stop(c, T_LIMIT));
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_int_eq(s.got, 0);
}
END_TEST

/* After a join that nobody had to ask for. */
static void
check_all_left(const evc_verdict *v, const struct sleeper *s, unsigned n)
{
	unsigned i;

	ck_assert_int_eq(v->code, 0);
	ck_assert_uint_eq(v->n_ended, n);
	ck_assert_uint_eq(v->n_stragglers, 0);
	ck_assert_uint_eq(v->n_errors, 0);
	ck_assert_uint_eq(v->stop.kind, 0);
	for (i = 0; i < n; i++) {
		ck_assert(s[i].left);
		ck_assert(t_settle_gone(s[i].tid));
		ck_assert_int_eq(s[i].got, 0);
	}
}

START_TEST(P03_testJoin)
{
	struct sleeper s[3] = { { .nap = 0.01 }, { .nap = 0.02 },
				{ .nap = 0.01 } };
	evc_coord *c = begin(_i, NULL);
	pthread_t t[3];
	evc_join_opts o = { .threads = t, .n_threads = 3 };
	evc_verdict v;
	int i;

	for (i = 0; i < 3; i++)
		t[i] = spawn(NULL, sleep_a_bit, &s[i]);
	ck_assert_int_eq(evc_join(c, &o, &v), 0);
	check_all_left(&v, s, 3);
	ck_assert(!evc_should_stop(c));
}
END_TEST

START_TEST(P04_testJoinAllRegistered)
{
	struct t_gate in = GATE_INIT;
	evc_coord *c = begin(_i, NULL);
	struct sleeper s[3] = { { .c = c, .is_in = &in, .nap = 0.01 },
				{ .c = c, .is_in = &in, .nap = 0.02 },
				{ .c = c, .is_in = &in, .nap = 0.01 } };
	evc_verdict v;
	int i;

	for (i = 0; i < 3; i++)
		spawn(NULL, sleep_a_bit, &s[i]);
	/* A join finds nobody to wait for before the first has registered:
	   there this is left to luck. */
	ck_assert(gate_await(&in, 3));
	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	check_all_left(&v, s, 3);
	ck_assert(!evc_should_stop(c));
}
END_TEST

START_TEST(P05_testJoinSomeRegistered)
{
	struct t_gate in = GATE_INIT;
	evc_coord *c = begin(_i, NULL);
	struct sleeper s[3] = { { .c = c, .is_in = &in, .nap = 0.01 },
				{ .nap = 0.02 },
				{ .c = c, .is_in = &in, .nap = 0.01 } };
	pthread_t t[3];
	evc_join_opts o = { .threads = &t[1], .n_threads = 1 };
	evc_verdict v;
	int i;

	for (i = 0; i < 3; i++)
		t[i] = spawn(NULL, sleep_a_bit, &s[i]);
	ck_assert(gate_await(&in, 2));
	ck_assert_int_eq(evc_join(c, &o, &v), 0);
	check_all_left(&v, s, 3);
}
END_TEST

/*
 * One thread asks for the stop, the other one ("sleeper") does not hear it.
 * The join has to answer after its grace: the sleeper leaves only when leave
 * is stepped, or after T_LIMIT when a join that hangs is to be told apart from
 * one that works.
 */
struct late {
	struct t_gate go, asked, leave;
	struct stopper asker;
	struct sleeper sleeper;
	pthread_t t[2];
};

static void
begin_late(struct late *l, evc_coord *c)
{
	memset(l, 0, sizeof(*l));
	gate_init(&l->go);
	gate_init(&l->asked);
	gate_init(&l->leave);
	l->asker = (struct stopper){ c, &l->go, &l->asked, -1 };
	l->sleeper.leave = &l->leave;
	l->t[0] = spawn("asker", stop_on_event, &l->asker);
	l->t[1] = spawn("sleeper", sleep_a_bit, &l->sleeper);
	gate_step(&l->go);
	ck_assert(gate_await(&l->asked, 1));
}

/*
 * There the registered threads are forgotten after a join that was given up
 * on.  Here they stay known: a later join waits for them again.
 */
static void
end_late(struct late *l, evc_coord *c)
{
	evc_verdict v;

	gate_step(&l->leave);
	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_uint_eq(v.n_ended, 2);
	ck_assert_int_eq(l->asker.got, 0);
	ck_assert(l->sleeper.left);
}

static void
join_late(evc_coord *c, double grace, unsigned flags, evc_status want)
{
	struct late l;
	evc_join_opts o = { .grace = grace, .threads = l.t, .n_threads = 2,
			    .flags = flags };
	evc_verdict v;
	double took;

	begin_late(&l, c);
	took = -t_now();
	ck_assert_int_eq(evc_join(c, &o, &v), want);
	took += t_now();
	ck_assert_int_eq(v.code, want);
	/* Never earlier; and not only when the sleeper has left. */
	ck_assert_double_ge(took, grace - 1e-6);
	ck_assert_double_lt(took, grace + T_LIMIT / 2);
	ck_assert_uint_eq(gate_steps(&l.leave), 0);
	/* The asker may still be on its way out. */
	ck_assert_uint_ge(v.n_stragglers, 1);
	ck_assert_uint_le(v.n_stragglers, 2);
	if (want) {
		ck_assert_ptr_nonnull(strstr(v.error.text, "sleeper"));
		ck_assert_ptr_nonnull(strstr(v.error.text, "still running"));
	}
	/* That one was late is no error of the round. */
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_int_eq(evc_raise_requested(c, NULL), 0);
	ck_assert(evc_joined(c));
	end_late(&l, c);
}

START_TEST(P06_testJoinGraceExpires)
{
	/* The last three stand for the smallest of them: a number that can
	   hardly be told from 0, where 0 means "the default". */
	static const double graces[] = { 1e-10, 0.002, 1.0, 1e-300, 5e-324,
					 EVC_NO_GRACE };
	evc_coord *c = begin(_i / 6, NULL);

	join_late(c, graces[_i % 6], 0, EVC_DEADLINE_EXCEEDED);
}
END_TEST

START_TEST(P07_testJoinWithoutGraceExpires)
{
	join_late(begin(_i, NULL), 1.0, EVC_JOIN_IGNORE_LIVE, 0);
}
END_TEST

T_MAIN("seed 001: stop and join", count_before, end_and_count,
       T_TIMES(P01_testStopAPI, 2),
       T_TIMES(P02_testStopAsync, 2),
       T_TIMES(P03_testJoin, 2),
       T_TIMES(P04_testJoinAllRegistered, 2),
       T_TIMES(P05_testJoinSomeRegistered, 2),
       T_TIMES(P06_testJoinGraceExpires, 12),
       T_TIMES(P07_testJoinWithoutGraceExpires, 2))
