/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When loopers run: at their boundaries, what they do about those that they
 * missed, jitter, and intervals of every size.
 */
#include "../../support/looper_util.h"

#include <float.h>

START_TEST(p1_runs_come_at_the_boundaries_and_not_between)
{
	struct looper l = { 0 };
	struct rig r;
	int k;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, INTERVAL, NULL);
	UNTIL_RUNS(&r, &l, 1);
	RUNS_STAY(&r, &l, 1);
	for (k = 1; k <= 4; k++) {
		clock_to(k - 0.01);
		RUNS_STAY(&r, &l, k);
		clock_to(k);
		UNTIL_RUNS(&r, &l, k + 1);
		RUNS_STAY(&r, &l, k + 1); /* never twice for one boundary */
	}
	OK(rig_stop(&r, NULL));
	looper_was(&l, "(rrrrr)");
	for (k = 0; k <= 4; k++)
		run_saw(&l, k + 1, 0, 0);
	rig_end(&r);
}
END_TEST

START_TEST(p1_late_runs_do_not_move_the_grid)
{
	enum { STEPS = 60 };
	struct looper l = { 0 };
	uint64_t missed = 0;
	struct rig r;
	double at;
	int i;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, INTERVAL, NULL);
	UNTIL_RUNS(&r, &l, 1);
	for (i = 1; i <= STEPS; i++) {
		at = i * 1.375;
		clock_to(at);
		UNTIL_RUNS(&r, &l, i + 1);
		missed += l.seen[i].missed;
		/* as many boundaries as the clock has passed */
		ck_assert_uint_eq(i + missed, (unsigned)at);
		run_saw(&l, i + 1, l.seen[i].missed, at - floor(at));
	}
	rig_end(&r);
}
END_TEST

/* The real clock is only good for "never earlier". */
static evc_status
hold_up(evc_coord *c, struct looper *l, int n)
{
	(void)c;
	(void)l;
	if (n % 10 == 0)
		t_sleep(0.025);
	return n == 60 ? EVC_OUT_OF_RANGE : 0;
}

START_TEST(p1_never_early_on_the_real_clock)
{
	static const unsigned policies[] = { 0, EVC_MISSED_BURST, 4 };
	const double interval = 0.004;
	struct rig r;
	size_t p;
	int i;

	for (p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
		evc_member_opts opts = { .missed = policies[p] };
		struct looper l = { .body = hold_up };
		double begun = t_now();
		uint64_t missed = 0;

		rig_begin(&r, _i, NULL);
		looper_begin(&r, &l, interval, &opts);
		OK(evc_join(r.c, NULL, NULL));
		for (i = 0; i < 60; i++) {
			missed += l.seen[i].missed;
			ck_assert_double_ge(
				l.seen[i].real,
				begun + interval * (double)(i + missed) - 1e-6);
		}
		if (policies[p] == EVC_MISSED_BURST)
			ck_assert_uint_eq(missed, 0);
		else
			ck_assert_uint_gt(missed, 0);
		ck_assert_int_eq(l.wrong, 0);
		rig_end(&r);
	}
}
END_TEST

/*
 * What comes after the second run, at boundary 1, when the clock then stands
 * at 6.5: boundaries 2 to 6 have passed.
 */
static const struct policy {
	unsigned missed;
	int runs;       /* at 6.5 */
	uint64_t lost;  /* what the first of them saw */
	double late[5]; /* what each of them saw */
	double next;    /* boundary */
} policies[] = {
	{ 0, 1, 4, { 0.5 }, 7 },
	{ EVC_MISSED_SKIP, 1, 4, { 0.5 }, 7 },
	{ EVC_MISSED_BURST, 5, 0, { 4.5, 3.5, 2.5, 1.5, 0.5 }, 7 },
	{ EVC_MISSED_DELAY, 1, 4, { 0.5 }, 7.5 },
	{ EVC_MISSED_AT_MOST(1), 1, 4, { 0.5 }, 7 },
	{ EVC_MISSED_AT_MOST(2), 2, 3, { 1.5, 0.5 }, 7 },
	{ 4, 4, 1, { 3.5, 2.5, 1.5, 0.5 }, 7 },
	{ EVC_MISSED_AT_MOST(5), 5, 0, { 4.5, 3.5, 2.5, 1.5, 0.5 }, 7 },
	{ EVC_MISSED_AT_MOST(65535), 5, 0, { 4.5, 3.5, 2.5, 1.5, 0.5 }, 7 }
};
#define N_POLICIES ((int)(sizeof(policies) / sizeof(policies[0])))

static evc_status
stall(evc_coord *c, struct looper *l, int n)
{
	(void)c;
	(void)l;
	if (n == 2)
		clock_to(6.5);
	return 0;
}

/* The time goes by in a run, or while it sleeps. */
static void
stalled(int place, const struct policy *p, bool in_run)
{
	evc_member_opts opts = { .missed = p->missed };
	struct looper l = { .body = in_run ? stall : NULL };
	evc_member_info info;
	struct rig r;
	int i, n = 2 + p->runs;

	rig_scripted(&r, place);
	looper_begin(&r, &l, INTERVAL, &opts);
	UNTIL_RUNS(&r, &l, 1);
	clock_to(1);
	UNTIL_RUNS(&r, &l, 2);
	if (!in_run) {
		rig_moment(&r); /* so that it sleeps again */
		clock_to(6.5);
	}
	UNTIL_RUNS(&r, &l, n);
	RUNS_STAY(&r, &l, n);
	run_saw(&l, 1, 0, 0);
	run_saw(&l, 2, 0, 0);
	for (i = 0; i < p->runs; i++)
		run_saw(&l, 3 + i, i == 0 ? p->lost : 0, p->late[i]);
	clock_to(p->next - 0.01);
	RUNS_STAY(&r, &l, n);
	clock_to(p->next);
	UNTIL_RUNS(&r, &l, n + 1);
	run_saw(&l, n + 1, 0, 0);
	RIG_UNTIL(&r, evc_member_get(r.c, l.id, &info) == 0 &&
			      info.ticks == (unsigned)n + 1);
	ck_assert_uint_eq(info.missed, p->lost);
	ck_assert_int_eq(l.wrong, 0);
	rig_end(&r);
}

START_TEST(p1_missed_boundaries_follow_the_policy_and_are_counted)
{
	int i;

	for (i = 0; i < N_POLICIES; i++) {
		stalled(_i, &policies[i], true);
		stalled(_i, &policies[i], false);
	}
}
END_TEST

START_TEST(p1_a_jump_of_a_year_is_counted_to_the_last_boundary)
{
	static const unsigned missed[] = { 0, EVC_MISSED_AT_MOST(3) };
	const double year = 365 * 86400 / INTERVAL; /* in intervals */
	struct rig r;
	int i;

	for (i = 0; i < 2; i++) {
		evc_member_opts opts = { .missed = missed[i] };
		struct looper l = { 0 };
		int runs = i == 0 ? 1 : 3;

		rig_scripted(&r, _i);
		looper_begin(&r, &l, INTERVAL, &opts);
		UNTIL_RUNS(&r, &l, 1);
		clock_to(year + 0.25);
		UNTIL_RUNS(&r, &l, 1 + runs);
		RUNS_STAY(&r, &l, 1 + runs);
		run_saw(&l, 2, (uint64_t)year - (unsigned)runs,
			runs - 1 + 0.25);
		clock_to(year + 1);
		UNTIL_RUNS(&r, &l, 2 + runs);
		run_saw(&l, 2 + runs, 0, 0);
		rig_end(&r);
	}
}
END_TEST

/*
 * With a jitter of a half, a run comes between its boundary and the middle
 * after it.  Of twenty, some come before the quarter and some after it; and
 * two loopers do not do so alike.
 */
START_TEST(p1_jitter_shifts_a_run_and_never_its_boundary)
{
	enum { RUNS = 20 };
	evc_member_opts opts = { .jitter = 0.5 };
	struct looper l[2] = { { 0 }, { 0 } };
	int i, k, at_once = 0, early[2] = { 0 };
	struct rig r;

	rig_scripted(&r, _i);
	looper_begin(&r, &l[0], INTERVAL, &opts);
	looper_begin(&r, &l[1], INTERVAL, &opts);
	for (k = 0; k < RUNS; k++) {
		if (k > 0) {
			clock_to(k - 0.01);
			rig_moment(&r);
			ck_assert_int_eq(l[0].runs, k);
			ck_assert_int_eq(l[1].runs, k);
			clock_to(k);
		}
		rig_moment(&r);
		at_once += l[0].runs + l[1].runs - 2 * k;
		clock_to(k + 0.25);
		rig_moment(&r);
		for (i = 0; i < 2; i++)
			early[i] |= (l[i].runs - k) << k;
		clock_to(k + 0.5);
		UNTIL_RUNS(&r, &l[0], k + 1);
		UNTIL_RUNS(&r, &l[1], k + 1);
	}
	rig_moment(&r);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(l[i].runs, RUNS);
		ck_assert_int_ne(early[i], 0);
		ck_assert_int_ne(early[i], (1 << RUNS) - 1);
		for (k = 1; k <= RUNS; k++)
			ck_assert_uint_eq(l[i].seen[k - 1].missed, 0);
		ck_assert_int_eq(l[i].wrong, 0);
	}
	ck_assert_int_ne(early[0], early[1]);
	ck_assert_int_lt(at_once, RUNS);
	rig_end(&r);
}
END_TEST

START_TEST(back_to_back_nothing_is_missed_and_nothing_late)
{
	struct looper l = { .last = 100, .result = EVC_OUT_OF_RANGE };
	struct rig r;
	int i;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, 0, NULL);
	OK(evc_join(r.c, NULL, NULL));
	ck_assert_int_eq(l.runs, 100);
	for (i = 1; i <= 100; i++)
		run_saw(&l, i, 0, 0);
	rig_end(&r);
}
END_TEST

struct turns {
	ev_io io;
	int n, before; /* turns so far, and when the looper ran last */
};

static void
on_turn(struct ev_loop *loop, ev_io *w, int revents)
{
	(void)loop;
	(void)revents;
	((struct turns *)w->data)->n++;
}

static evc_status
see_turns(evc_coord *c, struct looper *l, int n)
{
	struct turns *t = l->more;

	(void)c;
	if (n > 1 && t->n == t->before)
		atomic_fetch_add(&l->wrong, 1); /* nobody was between */
	t->before = t->n;
	return n == 1000 ? EVC_OUT_OF_RANGE : 0;
}

/* Of the lowest priority, always ready; and other loopers. */
START_TEST(back_to_back_on_a_loop_others_are_served_between)
{
	struct turns t = { .n = 0 };
	struct looper a = { .body = see_turns, .more = &t };
	struct looper b = { .last = 1000, .result = EVC_OUT_OF_RANGE };
	struct looper timed = { 0 };
	struct rig r;
	int fd[2];

	rig_begin(&r, _i, NULL);
	OK(pipe(fd));
	ck_assert_int_eq(write(fd[1], "x", 1), 1);
	ev_io_init(&t.io, on_turn, fd[0], EV_READ);
	ev_set_priority(&t.io, EV_MINPRI);
	t.io.data = &t;
	ev_io_start(r.home, &t.io);
	looper_begin(&r, &a, 0, NULL);
	looper_begin(&r, &b, 0, NULL);
	OK(evc_join(r.c, NULL, NULL));
	ck_assert_int_eq(a.runs, 1000);
	ck_assert_int_eq(b.runs, 1000);
	ck_assert_int_eq(a.wrong + b.wrong, 0);
	/* One in each turn: none was left out, either. */
	ck_assert_int_lt(t.n, 1100);

	memset(&a, 0, sizeof(a));
	looper_begin(&r, &a, 0, NULL);
	looper_begin(&r, &timed, 0.001, NULL);
	RIG_UNTIL(&r, atomic_load(&timed.runs) >= 5);
	ev_io_stop(r.home, &t.io);
	close(fd[0]);
	close(fd[1]);
	rig_end(&r);
}
END_TEST

START_TEST(INFINITY_runs_once_and_then_when_triggered)
{
	static const double endless[] = { INFINITY, 1e10, 1e300, DBL_MAX };
	struct rig r;
	size_t i;

	for (i = 0; i < sizeof(endless) / sizeof(endless[0]); i++) {
		struct looper l = { 0 };

		rig_scripted(&r, _i);
		looper_begin(&r, &l, endless[i], NULL);
		UNTIL_RUNS(&r, &l, 1);
		clock_to(1000);
		RUNS_STAY(&r, &l, 1);
		OK(evc_looper_trigger(r.c, l.id));
		UNTIL_RUNS(&r, &l, 2);
		RUNS_STAY(&r, &l, 2);
		run_saw(&l, 1, 0, 0);
		run_saw(&l, 2, 0, 0);
		OK(rig_stop(&r, NULL));
		looper_was(&l, "(rr)");
		rig_end(&r);
	}
}
END_TEST

/* Shorter than any clock can tell. */
START_TEST(the_shortest_intervals_run_and_stop)
{
	static const double shortest[] = { 1e-9, 1e-12, DBL_MIN, 5e-324 };
	static const unsigned missed[] = { 0, EVC_MISSED_BURST,
					   EVC_MISSED_DELAY,
					   EVC_MISSED_AT_MOST(2) };
	struct rig r;
	int i;

	for (i = 0; i < 16; i++) {
		evc_member_opts opts = { .missed = missed[i % 4], .jitter = 1 };
		struct looper l = { 0 };

		rig_begin(&r, _i, NULL);
		looper_begin(&r, &l, shortest[i / 4], &opts);
		UNTIL_RUNS(&r, &l, 50);
		OK(rig_stop(&r, NULL));
		ck_assert_int_eq(l.stops, 1);
		ck_assert_int_eq(l.wrong, 0);
		rig_end(&r);
	}
}
END_TEST

/* Nothing wakes while nothing is due. */
START_TEST(idle_its_thread_sleeps)
{
	struct looper l = { 0 };
	struct rig r;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, INFINITY, NULL);
	UNTIL_RUNS(&r, &l, 1);
	ck_assert(stays_asleep(l.tid, A_WHILE));
	OK(evc_looper_trigger(r.c, l.id));
	UNTIL_RUNS(&r, &l, 2);
	ck_assert(stays_asleep(l.tid, A_WHILE));
	OK(evc_looper_set_interval(r.c, l.id, 0));
	UNTIL_RUNS(&r, &l, 10);
	OK(evc_member_pause(r.c, l.id));
	ck_assert(stays_asleep(l.tid, A_WHILE));
	OK(evc_looper_set_interval(r.c, l.id, 3600));
	OK(evc_member_resume(r.c, l.id));
	ck_assert(stays_asleep(l.tid, A_WHILE));
	rig_end(&r);

	/* Also after it woke too early, for its clock stands still: it looks
	   again every 25 ms. */
	memset(&l, 0, sizeof(l));
	rig_scripted(&r, _i);
	looper_begin(&r, &l, 0.2, NULL);
	UNTIL_RUNS(&r, &l, 1);
	t_sleep(0.25);
	ck_assert(stays_asleep(l.tid, 0.005));
	ck_assert_int_eq(l.runs, 1);
	rig_end(&r);
}
END_TEST

PLACES_MAIN("looper_time",
	    EACH_PLACE(p1_runs_come_at_the_boundaries_and_not_between),
	    EACH_PLACE(p1_late_runs_do_not_move_the_grid),
	    EACH_PLACE(p1_never_early_on_the_real_clock),
	    EACH_PLACE(p1_missed_boundaries_follow_the_policy_and_are_counted),
	    EACH_PLACE(p1_a_jump_of_a_year_is_counted_to_the_last_boundary),
	    EACH_PLACE(p1_jitter_shifts_a_run_and_never_its_boundary),
	    EACH_PLACE(back_to_back_nothing_is_missed_and_nothing_late),
	    AT_PLACE(back_to_back_on_a_loop_others_are_served_between, AT_HOME),
	    EACH_PLACE(INFINITY_runs_once_and_then_when_triggered),
	    ELSEWHERE(idle_its_thread_sleeps),
	    EACH_PLACE(the_shortest_intervals_run_and_stop))
