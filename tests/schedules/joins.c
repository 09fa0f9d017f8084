/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins, stepped: several at once, each with a grace of its own, and what
 * happens between a look and the sleep after it.
 */
#include "schedules.h"

/* ---- three joins ---- */

struct three {
	evc_verdict member, evented;
	evc_status member_status, free_status;
	atomic_int member_done, evented_done;
	struct ev_loop *loop;
};

/* A member whose own join ends early. */
static evc_status
joins_for_a_moment(evc_coord *c, void *arg)
{
	evc_join_opts o = {.grace = 0.05};
	struct three *t = arg;

	evc_wait_for_stop(c, INFINITY);
	t->member_status = evc_join(c, &o, &t->member);
	atomic_store(&t->member_done, 1);
	return 0;
}

/* Frees as soon as it has its answer. */
static void
free_at_once(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct three *t = arg;

	t->evented = *v;
	t->free_status = evc_free(c);
	atomic_store(&t->evented_done, 1);
}

static evc_status
join_a_second(evc_coord *c, void *arg)
{
	evc_join_opts o = {.grace = 1};

	return evc_join(c, &o, arg);
}

static void
turn_until(struct ev_loop *loop, atomic_int *done)
{
	double until = t_now() + T_LIMIT;

	while (!atomic_load(done)) {
		ck_assert_msg(t_now() < until, "the loop was never told");
		ev_run(loop, EVRUN_NOWAIT);
		t_sleep(0.001);
	}
}

/* What lets the frozen one go while the test's own thread is in evc_free. */
struct release {
	int handle;
	atomic_int freed_under_it;
	struct three *t;
};

static evc_status
release_later(evc_coord *c, void *arg)
{
	struct release *r = arg;

	(void)c;
	t_sleep(0.1);
	atomic_store(&r->freed_under_it, atomic_load(&r->t->evented_done));
	seam_release(r->handle);
	return 0;
}

/*
 * One with 0.05 s, a member's; one with 1 s, frozen before it leaves; one that
 * waits for ever in a loop, and frees at once.  Fails when a late join closes
 * the round, when a member's join counts itself, and when evc_free does not
 * wait for a join that has its answer.
 */
START_TEST(joins_of_a_member_a_thread_and_a_loop_that_frees_at_once)
{
	evc_join_opts forever = {.grace = INFINITY};
	struct three t = {.loop = ev_loop_new(0)};
	evc_coord *c = new_coord(t.loop);
	struct actor a, k;
	struct release r = {.t = &t};
	evc_verdict v;
	evc_id id = 0;

	OK(evc_hold_begin(c, "hold", NULL, &id));
	OK(evc_thread_start(c, "member", joins_for_a_moment, &t, NULL, NULL));
	OK(evc_join_start(c, free_at_once, &t, &forever));
	OK(evc_request_stop(c, 0, "stop"));
	turn_until(t.loop, &t.member_done);
	ck_assert_int_eq(t.member_status, EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(t.member.n_stragglers, 1);
	HAS(t.member.error.text, "hold");
	ck_assert(!atomic_load(&t.evented_done));
	/* It is late after a second, and stands before its last touch. */
	r.handle = seam_hold_others("sub", "evc__refgate_leave", 1);
	actor_begin(&a, join_a_second, c, &v);
	while (!seam_is_held(r.handle) && !atomic_load(&a.done)) {
		ev_run(t.loop, EVRUN_NOWAIT);
		t_sleep(0.001);
	}
	ck_assert(!atomic_load(&t.evented_done));
	ck_assert_uint_eq(v.n_stragglers, 1);
	OK(evc_hold_end(c, id));
	actor_begin(&k, release_later, c, &r);
	turn_until(t.loop, &t.evented_done);
	OK(actor_end(&k));
	ck_assert_int_eq(actor_end(&a), EVC_DEADLINE_EXCEEDED);
	OK(t.free_status);
	OK(t.evented.code);
	ck_assert_uint_eq(t.evented.n_ended, 2);
	ck_assert(!atomic_load(&r.freed_under_it));
	ev_loop_destroy(t.loop);
}
END_TEST

/* The closer answers one that sleeps, and the coordinator is freed before that
   one has seen it.  Fails when the closer answers itself alone, and when
   evc_free does not wait. */
START_TEST(joins_that_were_answered_are_waited_for_by_free)
{
	static const struct place places[] = {
		{"futex_wait", "sleep_through", 1},
		{"sub", "sleep_through", 1},
	};
	struct actor a, f;
	evc_verdict v;
	evc_id id;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);

		OK(evc_hold_begin(c, "hold", NULL, &id));
		h = hold_at(&places[i]);
		memset(&v, 0xff, sizeof(v));
		actor_begin(&a, do_join, c, &v);
		if (i == 0)
			HELD(h);
		else
			actor_sleeps(&a);
		OK(evc_hold_end(c, id));
		if (i == 1)
			HELD(h);
		OK(evc_join(c, NULL, NULL));
		actor_begin(&f, do_free, c, NULL);
		actor_sleeps(&f);
		seam_release(h);
		OK(actor_end(&a));
		ck_assert_uint_eq(v.n_ended, 1);
		OK(actor_end(&f));
	}
}
END_TEST

/* ---- a look and the sleep after it ---- */

/* Fails when a ring does not move what the sleeper looks at, and when a join
   counts itself after its look. */
START_TEST(joins_lose_no_ring_before_they_sleep)
{
	static const struct place places[] = {
		{"add", "sleep_through", 1},
		{"load", "sleep_through", 1},
		{"futex_wait", "sleep_through", 1},
	};
	struct actor a;
	evc_verdict v;
	evc_id id;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);

		OK(evc_hold_begin(c, "hold", NULL, &id));
		h = hold_at(&places[i]);
		actor_begin(&a, do_join, c, &v);
		HELD(h);
		OK(evc_hold_end(c, id));
		seam_release(h);
		OK(actor_end(&a));
		OK(evc_free(c));
	}
}
END_TEST

/* As join_begin, of one that will be held and so does not sleep. */
static void
join_to_hold(struct joiner *j, evc_coord *c, double grace)
{
	memset(j, 0, sizeof(*j));
	j->c = c;
	j->opts.grace = grace;
	OK(pthread_create(&j->thread, NULL, joiner_main, j));
}

/* The stop makes a join look: only then does its grace begin.  Fails when a
   request rings no joins. */
START_TEST(joins_hear_of_a_stop_before_they_sleep)
{
	static const struct place places[] = {
		{"load", "sleep_through", 1},
		{"futex_wait", "sleep_through", 1},
	};
	struct joiner j;
	evc_id id;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);

		OK(evc_hold_begin(c, "hold", NULL, &id));
		h = hold_at(&places[i]);
		join_to_hold(&j, c, 0.05);
		HELD(h);
		OK(evc_request_stop(c, 0, "stop"));
		seam_release(h);
		UNTIL(atomic_load(&j.returned));
		ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
		OK(evc_hold_end(c, id));
		OK(evc_free(c));
	}
}
END_TEST

/* Who ends stands in the walk of its ring.  Fails when rings do not know of
   joins that run in loops. */
START_TEST(joins_in_a_loop_hear_a_ring)
{
	struct three t = {.loop = ev_loop_new(0)};
	evc_coord *c = new_coord(t.loop);
	struct actor a;
	evc_id id;
	int h;

	OK(evc_hold_begin(c, "hold", NULL, &id));
	OK(evc_join_start(c, free_at_once, &t, NULL));
	ev_run(t.loop, EVRUN_NOWAIT); /* it has looked, and waits */
	h = seam_hold("load", "next_of_kind", 1);
	actor_begin(&a, do_hold_end, c, &id);
	HELD(h);
	seam_release(h);
	OK(actor_end(&a));
	turn_until(t.loop, &t.evented_done);
	OK(t.free_status);
	ck_assert_uint_eq(t.evented.n_ended, 1);
	ev_loop_destroy(t.loop);
}
END_TEST

/* ---- members that join ---- */

static evc_status
joins_as_member(evc_coord *c, void *arg)
{
	atomic_int *n = arg;
	evc_status st = evc_join(c, NULL, NULL);

	atomic_fetch_add(n, 1);
	return st;
}

/* Two members join, one frozen before it is known to.  Fails when members that
   wait in a join are not left out. */
START_TEST(joins_of_two_members_do_not_wait_for_each_other)
{
	evc_coord *c = new_coord(NULL);
	atomic_int n = 0;
	evc_verdict v;
	evc_id hold;
	int h;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	h = seam_hold_others("lock", "evc__join_begin", 1);
	OK(evc_thread_start(c, "one", joins_as_member, &n, NULL, NULL));
	HELD(h);
	OK(evc_thread_start(c, "two", joins_as_member, &n, NULL, NULL));
	t_sleep(0.05);
	seam_release(h);
	t_sleep(0.05);
	ck_assert_int_eq(atomic_load(&n), 0);
	OK(evc_hold_end(c, hold));
	UNTIL(atomic_load(&n) == 2);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 3);
	OK(evc_free(c));
}
END_TEST

/* ---- grace ---- */

/* The join is frozen before it notes its start, so it starts after the stop.
   Fails when the grace counts from the stop alone. */
START_TEST(grace_counts_from_the_later_of_the_stop_and_the_start)
{
	evc_config cfg = {.clock = scripted_clock};
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct joiner j;
	evc_id id;
	int h;

	OK(evc_hold_begin(c, "hold", NULL, &id));
	OK(evc_request_stop(c, 0, "stop"));
	h = seam_hold("lock", "run_join", 1); /* before the start is noted */
	join_to_hold(&j, c, 100);
	HELD(h);
	scripted_advance(1000);
	seam_release(h);
	until_asleep(atomic_load(&j.tid));
	scripted_advance(99);
	ck_assert(still_waits(&j));
	scripted_advance(2);
	RETURNS(&j);
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

/* ---- a run, and another join on its loop ---- */

struct run_beside {
	struct named last;
	atomic_int go;
};

static void
count_join(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	*(int *)arg += v->code == 0;
}

static evc_status
run_beside_a_join(evc_coord *unused, void *arg)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct run_beside *b = arg;
	int delivered = 0;

	(void)unused;
	OK(evc_thread_start(c, "last", stay_named, &b->last, NULL, NULL));
	UNTIL(atomic_load(&b->go));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join_start(c, count_join, &delivered, NULL));
	OK(evc_run(c, NULL, NULL));
	ck_assert_int_eq(delivered, 1);
	OK(evc_free(c));
	ev_loop_destroy(loop);
	return 0;
}

/* The last thread ends before each of the first looks of either join: between
   the other's look and the run's, too.  Fails when the run returns before a
   join that it has answered is delivered. */
START_TEST(joins_that_end_with_a_run_are_delivered_by_it)
{
	struct actor a;
	struct run_beside b;
	int h, look;

	for (look = 1; look <= 8; look++) {
		memset(&b, 0, sizeof(b));
		actor_begin(&a, run_beside_a_join, NULL, &b);
		UNTIL(atomic_load(&b.last.tid) != 0);
		h = seam_hold("load", "evc__members_reap", look);
		atomic_store(&b.go, 1);
		HELD(h);
		atomic_store(&b.last.g.open, 1);
		UNTIL(syscall(SYS_tgkill, getpid(), atomic_load(&b.last.tid),
			      0) < 0);
		OK(actor_go(&a, h));
	}
}
END_TEST

SCHEDULES_MAIN("joins",
	       joins_of_a_member_a_thread_and_a_loop_that_frees_at_once,
	       joins_that_were_answered_are_waited_for_by_free,
	       joins_lose_no_ring_before_they_sleep,
	       joins_hear_of_a_stop_before_they_sleep,
	       joins_in_a_loop_hear_a_ring,
	       joins_of_two_members_do_not_wait_for_each_other,
	       grace_counts_from_the_later_of_the_stop_and_the_start,
	       joins_that_end_with_a_run_are_delivered_by_it)
