/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TensorFlow's LooperThread: the rows P16 to P18 that its own tests have, each
 * by the name it has there, and what falls short in its own code with what is
 * true here instead.  Each runs on a loop (_i == 1), where evc_join runs that
 * loop meanwhile, and on a thread of its own without any loop (_i == 0).
 */
#define _GNU_SOURCE 1
#include "seeds.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static evc_id
start(evc_coord *c, int on_loop, double interval, evc_fn *fn, void *arg)
{
	evc_member_opts o = { .flags = on_loop ? 0 : EVC_OWN_THREAD };
	evc_id id = 0;

	ck_assert_int_eq(evc_looper_start(c, "looper", interval, fn, arg, &o,
					  &id), 0);
	return id;
}

/* There each of these counts n down by one and asks for the stop at 0. */
static evc_status
count_down(evc_coord *c, int *n)
{
	if (--*n == 0 && evc_request_stop(c, 0, "counted down") != 0)
		return EVC_INTERNAL;
	return 0;
}

static void
check_counted_down(evc_coord *c, const int *n)
{
	evc_verdict v;

	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_str_eq(v.stop.text, "counted down");
	ck_assert_str_eq(v.stop.who, "looper");
	ck_assert_int_eq(*n, 0);
}

/* The argument is the number. */
static evc_status
count_by_pointer(evc_coord *c, void *arg)
{
	return count_down(c, arg);
}

START_TEST(P16_testTargetArgs)
{
	evc_coord *c = begin(_i, NULL);
	int n = 3;

	start(c, _i, 0, count_by_pointer, &n);
	check_counted_down(c, &n);
}
END_TEST

/* By name, as keywords are: a struct of user data. */
struct named {
	const char *greeting;
	int n;
};

static evc_status
count_by_name(evc_coord *c, void *arg)
{
	struct named *a = arg;

	return count_down(c, &a->n);
}

START_TEST(P17_testTargetKwargs)
{
	evc_coord *c = begin(_i, NULL);
	struct named a = { .n = 3, .greeting = "hello" };

	start(c, _i, 0, count_by_name, &a);
	check_counted_down(c, &a.n);
}
END_TEST

/* Some by place and some by name: a struct that points to a value. */
struct mixed {
	int *n;
	struct named rest;
};

static evc_status
count_by_both(evc_coord *c, void *arg)
{
	struct mixed *a = arg;

	a->rest.n++;
	return count_down(c, a->n);
}

START_TEST(P18_testTargetMixedArgs)
{
	evc_coord *c = begin(_i, NULL);
	int n = 3;
	struct mixed a = { .n = &n };

	start(c, _i, 0, count_by_both, &a);
	check_counted_down(c, &n);
	ck_assert_int_eq(a.rest.n, 3);
}
END_TEST

/* ---- cures ---- */

#define INTERVAL 0.01
#define HELD_UP (10 * INTERVAL)

struct beats {
	double begun;      /* before it was started */
	int n, held_up_at; /* runs so far, and which of them takes long */
	uint64_t missed;   /* so far */
	uint64_t after;    /* missed, as the run after that one is told */
	atomic_int seen;   /* n, for others */
	bool early, untold;
};

/* No run comes before its boundary: those that ran or were missed before it
   count how many boundaries had passed. */
static evc_status
beat(evc_coord *c, void *arg)
{
	struct beats *b = arg;
	double now = t_now(), late = -1;
	uint64_t missed = 0;

	b->untold |= evc_looper_tick(c, NULL, &missed, &late) != 0 || late < 0;
	b->missed += missed;
	b->early |= now < b->begun + INTERVAL * (double)(b->n + b->missed) -
				  1e-6;
	if (b->n == b->held_up_at + 1)
		b->after = missed;
	if (b->n == b->held_up_at)
		t_sleep(HELD_UP);
	atomic_store(&b->seen, ++b->n);
	return b->held_up_at >= 0 && b->n == b->held_up_at + 5
		       ? EVC_OUT_OF_RANGE : 0;
}

/*
 * There: a looper of 100 ms that one run held up for 1 s then fires 9 times
 * with no gap.  Here once, and it is told how many it missed.
 */
START_TEST(after_a_long_run_it_does_not_fire_again_and_again)
{
	evc_coord *c = begin(_i, NULL);
	struct beats b = { .begun = t_now(), .held_up_at = 3 };
	evc_verdict v;

	start(c, _i, INTERVAL, beat, &b);
	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_int_eq(b.n, 8);
	ck_assert(!b.untold);
	ck_assert(!b.early);
	/* Ten boundaries passed, one was run; more where it is crowded. */
	ck_assert_uint_ge(b.after, 9);
}
END_TEST

static _Atomic uint64_t scripted_ns;

static uint64_t
scripted_clock(void *arg)
{
	(void)arg;
	return atomic_load(&scripted_ns);
}

struct exact {
	int n;
	uint64_t missed[16];
	double late[16];
};

/* The third run takes ten intervals and a half. */
static evc_status
note_exactly(evc_coord *c, void *arg)
{
	struct exact *x = arg;
	int i = x->n++;

	if (evc_looper_tick(c, NULL, &x->missed[i], &x->late[i]) != 0)
		return EVC_INTERNAL;
	if (x->n == 3)
		atomic_fetch_add(&scripted_ns, 105000000u);
	else if (x->n < 8)
		atomic_fetch_add(&scripted_ns, 10000000u);
	return x->n == 8 ? EVC_OUT_OF_RANGE : 0;
}

/* The same to the nanosecond: the grid stands where it was. */
START_TEST(after_a_long_run_the_count_is_exact)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = begin(_i, &cfg);
	struct exact x = { 0 };
	int i;

	atomic_store(&scripted_ns, 5000000000u);
	start(c, _i, INTERVAL, note_exactly, &x);
	ck_assert_int_eq(evc_join(c, NULL, NULL), 0);
	ck_assert_int_eq(x.n, 8);
	for (i = 0; i < 8; i++) {
		ck_assert_uint_eq(x.missed[i], i == 3 ? 9 : 0);
		ck_assert_double_eq_tol(x.late[i], i < 3 ? 0 : INTERVAL / 2,
					1e-8);
	}
}
END_TEST

/*
 * There the wall clock says when: set back by an hour it makes a looper silent
 * for an hour, and set forward it fires 72,010 times in half a second.  These
 * three stand before those of the C library, for the whole program: what time
 * it is on the wall is what the test says.
 */
static _Atomic long wall_shift; /* seconds */

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int got = (int)syscall(SYS_clock_gettime, id, ts);

	if (got == 0 && id == CLOCK_REALTIME)
		ts->tv_sec += atomic_load(&wall_shift);
	return got;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *ret)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (ret)
		*ret = ts.tv_sec;
	return ts.tv_sec;
}

static bool
has_run(struct beats *b, int n)
{
	double limit = t_now() + T_LIMIT;

	while (atomic_load(&b->seen) < n && t_now() < limit) {
		if (test.loop)
			ev_run(test.loop, EVRUN_NOWAIT);
		t_sleep(0.001);
	}
	return atomic_load(&b->seen) >= n;
}

START_TEST(the_wall_clock_does_not_matter)
{
	static const long shifts[] = { -3600, 3600, 0, 86400, -86400 };
	evc_coord *c = begin(_i, NULL);
	struct beats b = { .begun = t_now(), .held_up_at = -2 };
	size_t i;

	start(c, _i, INTERVAL, beat, &b);
	ck_assert(has_run(&b, 3));
	for (i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		atomic_store(&wall_shift, shifts[i]);
		/* not silent ... */
		ck_assert(has_run(&b, atomic_load(&b.seen) + 10));
	}
	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	ck_assert_int_eq(evc_join(c, NULL, NULL), 0);
	ck_assert(!b.early); /* ... and not in a hurry */
	ck_assert(!b.untold);
	atomic_store(&wall_shift, 0);
}
END_TEST

/* The class there is created first, and started later or never. */
START_TEST(created_and_never_started_it_holds_up_nobody)
{
	evc_coord *c = begin(_i, NULL);
	evc_member_opts o = { .flags = EVC_PAUSED |
				       (_i ? 0 : EVC_OWN_THREAD) };
	int n = 3, never = 3;
	evc_id id = 0;
	evc_verdict v;

	ck_assert_int_eq(evc_looper_start(c, "never", 0, count_by_pointer,
					  &never, &o, NULL), 0);
	ck_assert_int_eq(evc_looper_start(c, "looper", 0, count_by_pointer,
					  &n, &o, &id), 0);
	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	ck_assert_uint_eq(v.stop.kind, 0);
	ck_assert_int_eq(evc_member_resume(c, id), 0);
	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_str_eq(v.stop.who, "looper");
	ck_assert_int_eq(n, 0);
	ck_assert_int_eq(never, 3);
}
END_TEST

T_MAIN("seed 001: LooperThread", count_before, end_and_count,
       T_TIMES(P16_testTargetArgs, 2),
       T_TIMES(P17_testTargetKwargs, 2),
       T_TIMES(P18_testTargetMixedArgs, 2),
       T_TIMES(after_a_long_run_it_does_not_fire_again_and_again, 2),
       T_TIMES(after_a_long_run_the_count_is_exact, 2),
       T_TIMES(the_wall_clock_does_not_matter, 2),
       T_TIMES(created_and_never_started_it_holds_up_nobody, 2))
