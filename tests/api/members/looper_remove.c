/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loopers taken out by evc_member_remove: from wherever, whatever they do just
 * then, no callback comes after it has returned, and the stop hook has come
 * exactly once.
 */
#include "../../support/looper_util.h"

/* A removal by a thread of its own. */
struct removal {
	pthread_t thread;
	evc_coord *c;
	evc_id id;
	evc_status status;
	int stops; /* of l, when it had returned */
	struct looper *l;
	atomic_int tid, done;
};

static void *
remove_main(void *arg)
{
	struct removal *x = arg;

	atomic_store(&x->tid, own_tid());
	x->status = evc_member_remove(x->c, x->id);
	x->stops = atomic_load(&x->l->stops);
	atomic_store(&x->done, 1);
	return NULL;
}

static void
removal_begin(struct removal *x, struct rig *r, struct looper *l)
{
	memset(x, 0, sizeof(*x));
	x->c = r->c;
	x->id = l->id;
	x->l = l;
	OK(pthread_create(&x->thread, NULL, remove_main, x));
	UNTIL(atomic_load(&x->tid));
}

static evc_status
removal_end(struct removal *x, struct rig *r)
{
	RIG_UNTIL(r, atomic_load(&x->done));
	OK(pthread_join(x->thread, NULL));
	return x->status;
}

/* It has gone, and nobody else has. */
static void
is_over(struct rig *r, struct looper *l, unsigned ended)
{
	evc_verdict v;

	REFUSED(EVC_NOT_FOUND, evc_looper_trigger(r->c, l->id));
	REFUSED(EVC_NOT_FOUND, evc_looper_set_interval(r->c, l->id, 1));
	REFUSED(EVC_NOT_FOUND, evc_member_pause(r->c, l->id));
	REFUSED(EVC_NOT_FOUND, evc_member_resume(r->c, l->id));
	ck_assert(!evc_should_stop(r->c));
	OK(evc_join(r->c, NULL, &v)); /* nobody is left */
	ck_assert_uint_eq(v.stop.kind, 0);
	ck_assert_uint_eq(v.n_ended, ended);
	ck_assert_uint_eq(v.n_errors, 0);
	REFUSED(EVC_NOT_FOUND, evc_member_remove(r->c, l->id));
	ck_assert(is_gone(r->c, l->id));
}

/* EVC_FLUSH is for the stop. */
START_TEST(between_its_runs_it_is_gone_at_once)
{
	evc_member_opts opts = { .flags = EVC_FLUSH };
	struct looper l = { 0 };
	struct rig r;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, INTERVAL, &opts);
	UNTIL_RUNS(&r, &l, 1);
	RUNS_STAY(&r, &l, 1);
	OK(evc_member_remove(r.c, l.id));
	looper_was(&l, "(r)");
	clock_to(10);
	RUNS_STAY(&r, &l, 1);
	looper_was(&l, "(r)");
	is_over(&r, &l, 1);
	rig_end(&r);
	looper_was(&l, "(r)");
}
END_TEST

START_TEST(paused_it_is_gone_at_once)
{
	evc_member_opts opts = { .flags = EVC_PAUSED };
	struct looper l = { 0 }, never = { 0 };
	struct rig r;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &never, 0, &opts);
	looper_begin(&r, &l, 3600, NULL);
	UNTIL_RUNS(&r, &l, 1);
	OK(evc_member_pause(r.c, l.id));
	RUNS_STAY(&r, &l, 1);
	OK(evc_member_remove(r.c, l.id));
	looper_was(&l, "(r)");
	OK(evc_member_remove(r.c, never.id));
	REFUSED(EVC_NOT_FOUND, evc_member_resume(r.c, never.id));
	RUNS_STAY(&r, &never, 0);
	looper_was(&never, "");
	ck_assert(is_gone(r.c, never.id));
	rig_end(&r);
}
END_TEST

/* What its own run, which frees it, has seen. */
static struct {
	atomic_int freed;
	evc_id id;
	evc_status status, again;
	char calls[N_SEEN];
	int wrong;
} last_words;

static evc_status
remove_and_free(evc_coord *c, struct looper *l, int n)
{
	if (n < 3)
		return 0;
	/* what is due is forgotten with it */
	if (evc_looper_trigger(c, l->id) != 0)
		atomic_fetch_add(&l->wrong, 1);
	last_words.id = l->id;
	last_words.status = evc_member_remove(c, l->id);
	last_words.again = evc_member_remove(c, l->id);
	l->calls[l->n_calls] = '\0';
	memcpy(last_words.calls, l->calls, N_SEEN);
	last_words.wrong = l->wrong;
	memset(l, 0x5a, sizeof(*l));
	free(l);
	atomic_store(&last_words.freed, 1);
	return 0;
}

START_TEST(inside_its_own_run_it_may_free_what_it_has)
{
	static const double intervals[] = { 0, 0.001 };
	struct looper *l, gone = { 0 };
	struct rig r;
	int i;

	for (i = 0; i < 2; i++) {
		memset(&last_words, 0, sizeof(last_words));
		l = calloc(1, sizeof(*l));
		ck_assert_ptr_nonnull(l);
		l->body = remove_and_free;
		rig_begin(&r, _i, NULL);
		/* It may be gone before this returns. */
		OK(looper_try(&r, l, intervals[i], NULL));
		RIG_UNTIL(&r, atomic_load(&last_words.freed));
		rig_moment(&r);
		gone.id = last_words.id;
		OK(last_words.status);
		ck_assert_int_eq(last_words.again, -EVC_NOT_FOUND);
		ck_assert_str_eq(last_words.calls, "(rrr)");
		ck_assert_int_eq(last_words.wrong, 0);
		is_over(&r, &gone, 1);
		rig_end(&r);
	}
}
END_TEST

static evc_status
remove_in_run(evc_coord *c, struct looper *l, int n)
{
	(void)n;
	return -evc_member_remove(c, l->id);
}

static evc_status
stay_in_second(evc_coord *c, struct looper *l, int n)
{
	return n == 2 ? stay(c, l->more) : 0;
}

/* Before the stop (0), after it (1), and by two at once (2). */
START_TEST(from_another_thread_it_waits_for_the_run)
{
	struct removal x, y;
	struct rig r;
	int i;

	for (i = 0; i < 3; i++) {
		struct guest g = { 0 };
		struct looper l = { .body = stay_in_second, .more = &g };
		evc_member_opts opts = { .flags = i == 1 ? 0 : EVC_FLUSH };

		rig_begin(&r, _i, NULL);
		looper_begin(&r, &l, 0, &opts);
		UNTIL(atomic_load(&g.in));
		if (i == 1)
			OK(evc_request_stop(r.c, 0, NULL));
		removal_begin(&x, &r, &l);
		until_asleep(x.tid);
		ck_assert(!atomic_load(&x.done));
		if (i == 2) {
			removal_begin(&y, &r, &l);
			until_asleep(y.tid);
		}
		atomic_store(&g.open, 1);
		OK(removal_end(&x, &r));
		ck_assert_int_eq(x.stops, 1);
		if (i == 2)
			OK(removal_end(&y, &r));
		looper_was(&l, "(rr)");
		if (i != 1)
			is_over(&r, &l, 1);
		rig_end(&r);
	}
}
END_TEST

START_TEST(with_END_STOPS_it_is_an_end_like_any_other)
{
	evc_member_opts opts = { .flags = EVC_END_STOPS };
	struct rig r;
	evc_verdict v;
	int i;

	for (i = 0; i < 2; i++) {
		struct looper l = { .body = i ? remove_in_run : NULL };

		rig_begin(&r, _i, NULL);
		looper_begin(&r, &l, INFINITY, &opts);
		UNTIL_RUNS(&r, &l, 1);
		if (i == 0)
			OK(evc_member_remove(r.c, l.id));
		OK(evc_join(r.c, NULL, &v));
		ck_assert_uint_eq(v.stop.kind, EVC_BY_MEMBER_END);
		ck_assert_uint_eq(v.stop.by, l.id);
		ck_assert_uint_eq(v.n_ended, 1);
		looper_was(&l, "(r)");
		rig_end(&r);
	}
}
END_TEST

/* The loop's thread is busy elsewhere: the stop hook has to wait for it. */
START_TEST(from_another_thread_it_waits_for_the_loops_turn)
{
	evc_member_opts opts = { .flags = EVC_PAUSED };
	struct looper l = { 0 }, never = { 0 };
	struct removal x;
	struct rig r;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &never, 0, &opts);
	looper_begin(&r, &l, 0, NULL);
	UNTIL_RUNS(&r, &l, 1);
	removal_begin(&x, &r, &l);
	until_asleep(x.tid);
	ck_assert(!atomic_load(&x.done));
	ck_assert_int_eq(l.stops, 0);
	OK(removal_end(&x, &r));
	ck_assert_int_eq(x.stops, 1);
	ck_assert_int_eq(l.wrong, 0); /* called on the loop's thread */
	is_over(&r, &l, 1);
	/* one that never started has nothing to wait for */
	removal_begin(&x, &r, &never);
	UNTIL(atomic_load(&x.done));
	OK(removal_end(&x, &r));
	looper_was(&never, "");
	rig_end(&r);
}
END_TEST

static evc_status
remove_others(evc_coord *c, struct looper *l, int n)
{
	struct looper *all = l->more;
	int i;

	for (i = 0; n == 1 && i < 20; i++)
		if (&all[i] != l && evc_member_remove(c, all[i].id) != 0)
			atomic_fetch_add(&l->wrong, 1);
	return 0;
}

static int
how_many_ran(struct looper *l)
{
	int i, n = 0;

	for (i = 0; i < 20; i++)
		n += atomic_load(&l[i].runs) > 0;
	return n;
}

/* All are due in one turn; the first takes the others out. */
START_TEST(a_run_may_take_out_others_of_its_loop)
{
	struct looper l[20];
	int i, alive = 0;
	struct rig r;

	memset(l, 0, sizeof(l));
	rig_begin(&r, _i, NULL);
	for (i = 0; i < 20; i++) {
		l[i].body = remove_others;
		l[i].more = l;
		looper_begin(&r, &l[i], i % 2 ? 0 : INFINITY, NULL);
	}
	RIG_UNTIL(&r, how_many_ran(l) > 0);
	rig_moment(&r);
	for (i = 0; i < 20; i++) {
		alive += !is_gone(r.c, l[i].id);
		ck_assert_int_eq(l[i].wrong, 0);
		if (l[i].runs == 0)
			ck_assert_int_eq(l[i].starts, l[i].stops);
	}
	ck_assert_int_eq(how_many_ran(l), 1);
	ck_assert_int_eq(alive, 1);
	rig_end(&r);
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(l[i].starts, l[i].stops);
}
END_TEST

static evc_status
remove_at_start(evc_coord *c, struct looper *l)
{
	return -evc_member_remove(c, l->id);
}

static evc_status
remove_at_stop(evc_coord *c, struct looper *l)
{
	evc_status st = evc_member_remove(c, l->id);

	if (st != 0 && st != -EVC_NOT_FOUND)
		atomic_fetch_add(&l->wrong, 1);
	return 0;
}

START_TEST(inside_its_hooks_there_is_no_call_after_that_one)
{
	struct looper a = { .at_start = remove_at_start };
	struct looper b = { .at_stop = remove_at_stop };
	struct looper d = { .at_stop = remove_at_stop,
			    .last = 2,
			    .result = EVC_OUT_OF_RANGE };
	struct rig r;
	evc_verdict v;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &a, 0, NULL);
	RIG_UNTIL(&r, atomic_load(&a.starts));
	RUNS_STAY(&r, &a, 0);
	looper_begin(&r, &b, 0.001, NULL);
	looper_begin(&r, &d, 0.001, NULL);
	UNTIL_RUNS(&r, &b, 1);
	UNTIL_RUNS(&r, &d, 2);
	OK(rig_stop(&r, &v));
	ck_assert_uint_eq(v.n_ended, 3);
	ck_assert_int_eq(a.wrong + b.wrong + d.wrong, 0);
	looper_was(&a, "(");
	ck_assert_int_eq(b.stops, 1);
	looper_was(&d, "(rr)");
	rig_end(&r);
}
END_TEST

/* The stop was requested, and the loop has not turned since. */
START_TEST(after_the_stop_it_is_stopped_once)
{
	struct looper l = { 0 };
	struct rig r;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, 0, NULL);
	UNTIL_RUNS(&r, &l, 1);
	OK(evc_request_stop(r.c, 0, NULL));
	OK(evc_member_remove(r.c, l.id));
	ck_assert_int_eq(l.stops, 1);
	OK(rig_stop(&r, NULL));
	looper_was(&l, "(r)");
	rig_end(&r);
}
END_TEST

/* At any moment, beside a looper that runs all the time or ends by itself. */
START_TEST(at_any_moment_it_is_stopped_once)
{
	struct removal x;
	struct rig r;
	int i;

	for (i = 0; i < 60; i++) {
		struct looper l = { .last = i % 3 ? 0 : 3,
				    .result = EVC_OUT_OF_RANGE };

		rig_begin(&r, _i, NULL);
		looper_begin(&r, &l, i % 2 ? 0 : 1e-5, NULL);
		removal_begin(&x, &r, &l);
		if (i % 4 == 0)
			OK(evc_request_stop(r.c, 0, NULL));
		removal_end(&x, &r);
		ck_assert(x.status == 0 || x.status == -EVC_NOT_FOUND);
		if (x.status == 0)
			ck_assert_int_eq(x.stops, l.starts);
		OK(rig_stop(&r, NULL));
		ck_assert_int_eq(l.starts, l.stops);
		ck_assert_int_eq(l.wrong, 0);
		rig_end(&r);
	}
}
END_TEST

PLACES_MAIN("looper_remove", EACH_PLACE(between_its_runs_it_is_gone_at_once),
	    EACH_PLACE(paused_it_is_gone_at_once),
	    EACH_PLACE(inside_its_own_run_it_may_free_what_it_has),
	    ELSEWHERE(from_another_thread_it_waits_for_the_run),
	    EACH_PLACE(with_END_STOPS_it_is_an_end_like_any_other),
	    AT_PLACE(from_another_thread_it_waits_for_the_loops_turn, AT_HOME),
	    AT_PLACE(a_run_may_take_out_others_of_its_loop, AT_HOME),
	    EACH_PLACE(inside_its_hooks_there_is_no_call_after_that_one),
	    AT_PLACE(after_the_stop_it_is_stopped_once, AT_HOME),
	    EACH_PLACE(at_any_moment_it_is_stopped_once))
