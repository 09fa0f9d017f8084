/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many loopers beside each other: all are served, each at its own boundaries,
 * by its own options, whatever comes and goes among them.
 */
#include "../../support/looper_util.h"

enum { MANY = 300, THREADS = 20 };

START_TEST(many_live_side_by_side)
{
	static struct looper l[MANY];
	int n = _i == ON_THREAD ? THREADS : MANY, i;
	struct rig r;
	evc_verdict v;

	memset(l, 0, sizeof(l));
	rig_begin(&r, _i, NULL);
	for (i = 0; i < n; i++)
		looper_begin(&r, &l[i], 0.001 * (i % 20), NULL);
	for (i = 0; i < n; i++)
		UNTIL_RUNS(&r, &l[i], 3);
	OK(rig_stop(&r, &v));
	ck_assert_uint_eq(v.n_ended, n);
	for (i = 0; i < n; i++) {
		ck_assert_int_eq(l[i].starts, 1);
		ck_assert_int_eq(l[i].stops, 1);
		ck_assert_int_eq(l[i].wrong, 0);
	}
	rig_end(&r);
}
END_TEST

/* A looper among many: it begins at some time, in whole intervals, and has run
   since then as often as its own interval went into the time. */
struct one {
	atomic_int runs;
	int every, begun, before; /* before: runs of former intervals */
	bool alive;
	evc_id id;
};

static evc_status
run_one(evc_coord *c, void *arg)
{
	struct one *o = arg;

	(void)c;
	atomic_fetch_add(&o->runs, 1);
	return 0;
}

static int
expected(const struct one *o, int now)
{
	return o->before + (now - o->begun) / o->every;
}

static void
one_begin(struct rig *r, struct one *o, int every, int now)
{
	evc_member_opts opts = rig_opts(r, NULL);

	opts.start = opts.stop = NULL;
	atomic_store(&o->runs, 0);
	o->every = every;
	o->begun = now;
	o->before = 1; /* at once */
	o->alive = true;
	OK(evc_looper_start(r->c, "one", every * INTERVAL, run_one, o, &opts,
			    &o->id));
}

static void
clock_at(int now)
{
	atomic_store(&scripted_ns, grid_ns + (uint64_t)now * INTERVAL_NS);
}

/* Each has run as often as it should, no less and no more. */
static void
all_have_run(struct rig *r, struct one *one, int now)
{
	int i;

	for (i = 0; i < MANY; i++)
		if (one[i].alive)
			RIG_UNTIL(r, atomic_load(&one[i].runs) >=
					     expected(&one[i], now));
	for (i = 0; i < MANY; i++)
		if (one[i].alive)
			ck_assert_int_eq(one[i].runs, expected(&one[i], now));
}

START_TEST(p1_among_many_each_keeps_its_own_boundaries)
{
	static struct one one[MANY];
	unsigned dice = 1;
	struct rig r;
	int i, now, n;

	rig_scripted(&r, _i);
	memset(one, 0, sizeof(one));
	grid_ns = atomic_load(&scripted_ns);
	for (i = 0; i < MANY; i++)
		one_begin(&r, &one[i], 1 + (i * 7) % 41, 0);
	all_have_run(&r, one, 0);
	for (now = 1; now < 80; now++) {
		clock_at(now);
		all_have_run(&r, one, now);
		for (n = 0; n < 20; n++) {
			struct one *o;

			dice = dice * 1103515245 + 12345;
			o = &one[dice / 65536 % MANY];
			i = 1 + (int)(dice / 4096 % 13);
			/* A change at once would forget its first run. */
			if (o->alive && o->begun == now)
				continue;
			if (!o->alive) {
				one_begin(&r, o, i, now);
			} else if (n % 3 == 0) {
				OK(evc_member_remove(r.c, o->id));
				o->alive = false;
			} else {
				o->before = expected(o, now);
				o->begun = now;
				o->every = i;
				OK(evc_looper_set_interval(r.c, o->id,
							   i * INTERVAL));
			}
		}
		all_have_run(&r, one, now);
	}
	/* In no order at all they go. */
	for (i = 0; i < MANY; i++) {
		struct one *o = &one[i * 37 % MANY];

		if (!o->alive)
			continue;
		OK(evc_member_remove(r.c, o->id));
		o->alive = false;
		if (i % 50 == 0) {
			clock_at(now);
			all_have_run(&r, one, now++);
		}
	}
	OK(evc_join(r.c, NULL, NULL));
	ck_assert(!evc_should_stop(r.c));
	rig_end(&r);
}
END_TEST

/* Back to back each runs once in a turn, and who has gone does not. */
START_TEST(p1_back_to_back_they_come_and_go)
{
	enum { N = 12 };
	struct one one[N];
	int i, turn, before[N];
	unsigned dice = 1;
	struct rig r;

	memset(one, 0, sizeof(one));
	rig_begin(&r, _i, NULL);
	for (turn = 0; turn < 500; turn++) {
		dice = dice * 1103515245 + 12345;
		for (i = 0; i < N; i++) {
			if ((dice >> (i + 8)) % 2 == 0)
				continue;
			if (one[i].alive)
				OK(evc_member_remove(r.c, one[i].id));
			if (one[i].alive)
				one[i].alive = false;
			else
				one_begin(&r, &one[i], 0, 0);
		}
		for (i = 0; i < N; i++)
			before[i] = atomic_load(&one[i].runs);
		for (i = 0; i < N; i++)
			if (one[i].alive)
				RIG_UNTIL(&r, atomic_load(&one[i].runs) >=
						      before[i] + 2);
		for (i = 0; i < N; i++)
			if (!one[i].alive)
				ck_assert_int_eq(one[i].runs, before[i]);
	}
	rig_end(&r);
}
END_TEST

/* Asleep for an hour, until something earlier comes up. */
START_TEST(a_sleep_is_cut_short_by_what_is_due_earlier)
{
	struct looper l = { 0 }, other = { 0 };
	struct rig r;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, 3600, NULL);
	UNTIL_RUNS(&r, &l, 1);
	RUNS_STAY(&r, &l, 1);
	OK(evc_looper_trigger(r.c, l.id));
	UNTIL_RUNS(&r, &l, 2);
	RUNS_STAY(&r, &l, 2);
	OK(evc_looper_set_interval(r.c, l.id, 0.001));
	UNTIL_RUNS(&r, &l, 5);
	OK(evc_looper_set_interval(r.c, l.id, 3600));
	rig_moment(&r);
	looper_begin(&r, &other, 0.001, NULL);
	UNTIL_RUNS(&r, &other, 5);
	rig_end(&r);
	ck_assert_int_eq(l.wrong + other.wrong, 0);
}
END_TEST

/* An option counts also when it is the only one. */
START_TEST(each_option_stands_for_itself)
{
	evc_member_opts opts;
	atomic_int runs = 0;
	struct rig r;
	int k;

	rig_scripted(&r, _i);
	opts = rig_opts(&r, NULL);
	opts.start = opts.stop = NULL;
	opts.missed = EVC_MISSED_BURST;
	grid_ns = atomic_load(&scripted_ns);
	OK(evc_looper_start(r.c, "bursts", INTERVAL, count_hook, &runs, &opts,
			    NULL));
	RIG_UNTIL(&r, atomic_load(&runs) == 1);
	clock_to(6.5);
	RIG_UNTIL(&r, atomic_load(&runs) == 7);
	rig_end(&r);

	rig_scripted(&r, _i);
	opts = rig_opts(&r, NULL);
	opts.start = opts.stop = NULL;
	opts.jitter = 1;
	atomic_store(&runs, 0);
	grid_ns = atomic_load(&scripted_ns);
	OK(evc_looper_start(r.c, "shifted", INTERVAL, count_hook, &runs, &opts,
			    NULL));
	for (k = 0; k < 8 && atomic_load(&runs) == k; k++) {
		clock_to(k);
		rig_moment(&r);
	}
	ck_assert_int_lt(runs, 8); /* not all at their boundaries */
	rig_end(&r);
}
END_TEST

PLACES_MAIN("looper_many", EACH_PLACE(many_live_side_by_side),
	    EACH_PLACE(a_sleep_is_cut_short_by_what_is_due_earlier),
	    EACH_PLACE(each_option_stands_for_itself),
	    AT_PLACE(p1_back_to_back_they_come_and_go, AT_HOME),
	    AT_PLACE(p1_back_to_back_they_come_and_go, FAR_AWAY),
	    AT_PLACE(p1_among_many_each_keeps_its_own_boundaries, AT_HOME),
	    AT_PLACE(p1_among_many_each_keeps_its_own_boundaries, FAR_AWAY))
