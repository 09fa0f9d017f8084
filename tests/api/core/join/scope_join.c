/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins and scopes: a join of the parent returns after all that lives below it
 * is accounted for (N3), whatever kind it is and however it ended; joins of a
 * scope; members that join.  Deadlines stand in scope_grace.c.
 */
#include "../../../support/scope_util.h"

/* ---- N3: a join of the parent waits for what lives below ---- */

struct tree {
	evc_coord *c, *mid, *s; /* s below mid below c */
};

static struct tree
tree_make(struct ev_loop *loop)
{
	struct tree t;

	t.c = new_coord(loop);
	t.mid = ready_scope(t.c, "mid", NULL);
	t.s = ready_scope(t.mid, "leaf", NULL);
	return t;
}

static void
tree_free(struct tree *t)
{
	OK(evc_free(t->s));
	OK(evc_free(t->mid));
	OK(evc_free(t->c));
}

START_TEST(N3_threads_and_registered_threads)
{
	struct tree t = tree_make(NULL);
	struct guest a = { 0 }, b = { 0 };
	struct joiner j;
	pthread_t th;

	OK(evc_thread_start(t.s, "started", stay, &a, NULL, NULL));
	OK(pthread_create(&th, NULL, stay_thread, &b));
	OK(evc_register_thread(t.s, "registered", th, NULL, NULL));
	OK(evc_request_stop(t.c, 0, NULL));
	join_begin(&j, t.c, INFINITY, 0);
	atomic_store(&a.open, 1);
	NOT_YET(atomic_load(&j.returned));
	atomic_store(&b.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_stragglers, 0);
	tree_free(&t);
}
END_TEST

START_TEST(N3_holds_and_holds_of_scopes_between)
{
	struct tree t = tree_make(NULL);
	evc_id a = hold(t.s, "a"), b = hold(t.mid, "b");
	struct joiner j;

	join_begin(&j, t.c, 0, 0); /* no stop: it waits all the same */
	OK(evc_hold_end(t.s, a));
	NOT_YET(atomic_load(&j.returned));
	a = hold(t.s, "a again");
	OK(evc_hold_end(t.mid, b));
	NOT_YET(atomic_load(&j.returned));
	OK(evc_hold_end(t.s, a));
	OK(join_end(&j));
	ck_assert(!evc_should_stop(t.c));
	tree_free(&t);
}
END_TEST

START_TEST(N3_tasks)
{
	static const evc_task_class cls = { .name = "conn" };
	struct ev_loop *loop = ev_loop_new(0);
	struct tree t = tree_make(loop);
	evc_task a = { 0 }, b = { 0 };
	struct joiner j;

	OK(evc_task_begin(evc_home(t.s), &a, &cls));
	OK(evc_task_begin(evc_home(t.mid), &b, &cls));
	OK(evc_request_stop(t.c, 0, NULL));
	join_begin(&j, t.c, INFINITY, 0);
	evc_task_end(&b);
	NOT_YET(atomic_load(&j.returned));
	evc_task_end(&a);
	OK(join_end(&j)); /* and nobody ran the loop */
	tree_free(&t);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(N3_stop_hooks)
{
	struct tree t = tree_make(NULL);
	struct guest g = { 0 };
	struct joiner j;

	OK(evc_on_stop(t.s, "hook", stay, &g, NULL, NULL));
	OK(evc_join(t.c, NULL, NULL)); /* before a stop it keeps nobody */
	OK(evc_clear_stop(t.c));
	OK(evc_request_stop(t.c, 0, NULL));
	UNTIL(atomic_load(&g.in));
	join_begin(&j, t.c, INFINITY, 0);
	NOT_YET(atomic_load(&j.returned));
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	tree_free(&t);
}
END_TEST

START_TEST(N3_but_not_a_hook_of_a_scopes_loop_that_the_join_holds_up)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct tree t = tree_make(NULL);
	evc_member_opts opts = { 0 };
	atomic_int n_calls = 0;

	OK(evc_reactor_attach(t.s, "loop", loop, &opts.reactor));
	OK(evc_on_stop(t.s, "hook", count_hook, &n_calls, &opts, NULL));
	OK(evc_request_stop(t.c, 0, NULL));
	OK(evc_join(t.c, NULL, NULL)); /* it blocks: t.c has no loop */
	ck_assert_int_eq(n_calls, 0);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_calls, 1);
	tree_free(&t);
	ev_loop_destroy(loop);
}
END_TEST

/* Nobody joins the scope: the parent's join is the one that has to. */
START_TEST(N3_threads_that_ended_and_were_joined_by_nobody)
{
	struct tree t = tree_make(NULL);
	evc_member_info info;
	evc_verdict v;
	evc_id id = 0;
	pthread_t th;
	int i;

	for (i = 0; i < 8; i++) {
		OK(evc_thread_start(i % 2 ? t.s : t.mid, "ended",
				    return_at_once, NULL, NULL, &id));
		UNTIL(evc_member_get(i % 2 ? t.s : t.mid, id, &info) < 0 ||
		      info.state != EVC_LIVE);
		OK(pthread_create(&th, NULL, end_at_once, NULL));
		OK(evc_register_thread(t.s, "ended too", th, NULL, NULL));
	}
	OK(evc_request_stop(t.c, 0, NULL));
	OK(evc_join(t.c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 16);
	ck_assert_uint_eq(v.n_stragglers, 0);
	REFUSED(EVC_NOT_FOUND, evc_member_get(t.s, id, &info));
	tree_free(&t);
}
END_TEST

START_TEST(N3_the_end_of_a_scope_wakes_the_join_that_runs_a_loop)
{
	struct driver d = { .config.grace = INFINITY };
	struct guest g = { 0 };
	int how;

	for (how = BY_RUN; how <= BY_START; how++) {
		evc_coord *c = driver_make(&d, how), *s, *t;
		evc_id id;

		s = ready_scope(c, "s", NULL);
		t = ready_scope(s, "t", NULL);
		id = hold(t, "hold");
		atomic_store(&g.open, 0);
		OK(evc_thread_start(t, "stays", stay, &g, NULL, NULL));
		driver_go(&d);
		OK(evc_request_stop(c, 0, NULL));
		atomic_store(&g.open, 1);
		NOT_YET(driver_returned(&d));
		OK(evc_hold_end(t, id));
		OK(driver_wait(&d));
		FREE_ALL(t, s);
		driver_end(&d);
	}
}
END_TEST

/* The request tells one after the other; a join that is awake before the last
   of them has nothing to count there yet. */
START_TEST(N3_a_run_does_not_end_before_the_scopes_were_told)
{
	struct driver d = { .config.grace = INFINITY };
	int i, k;

	for (i = 0; i < 50; i++) {
		evc_coord *c = driver_make(&d, BY_RUN), *s[8];
		atomic_int calls = 0;

		for (k = 0; k < 8; k++) {
			s[k] = ready_scope(c, "s", NULL);
			OK(evc_on_stop(s[k], "hook", count_hook, &calls, NULL,
				       NULL));
		}
		driver_go(&d);
		OK(evc_request_stop(c, 0, NULL));
		OK(driver_wait(&d));
		ck_assert_int_eq(calls, 8);
		for (k = 0; k < 8; k++)
			OK(evc_free(s[k]));
		driver_end(&d);
	}
}
END_TEST

START_TEST(all_have_stopped_when_nothing_lives_below)
{
	struct tree t = tree_make(NULL);
	evc_id id = hold(t.s, "held");

	ck_assert(!evc_all_stopped(t.c));
	ck_assert(!evc_all_stopped(t.mid));
	ck_assert(!evc_all_stopped(t.s));
	OK(evc_request_stop(t.c, 0, NULL));
	ck_assert(!evc_all_stopped(t.c));
	OK(evc_hold_end(t.s, id));
	ck_assert(evc_all_stopped(t.s));
	ck_assert(evc_all_stopped(t.c));
	tree_free(&t);
}
END_TEST

START_TEST(background_below_keeps_no_join_waiting)
{
	evc_member_opts opts = { .flags = EVC_BACKGROUND };
	struct tree t = tree_make(NULL);
	evc_verdict v;

	OK(evc_thread_start(t.s, "service", obey, NULL, &opts, NULL));
	OK(evc_join(t.c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, EVC_BY_EMPTY);
	ck_assert(evc_should_stop(t.c));
	BY_PARENT(t.s);
	tree_free(&t);
}
END_TEST

/* ---- joins of a scope ---- */

/* Nothing lives below: only what is the coordinator's own counts. */
START_TEST(background_beside_an_empty_scope_keeps_no_join_waiting)
{
	evc_member_opts opts = { .flags = EVC_BACKGROUND };
	struct tree t = tree_make(NULL);
	evc_verdict v;

	OK(evc_thread_start(t.c, "service", obey, NULL, &opts, NULL));
	OK(evc_join(t.c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, EVC_BY_EMPTY);
	tree_free(&t);
}
END_TEST

START_TEST(a_join_of_a_scope_waits_for_it_alone)
{
	struct tree t = tree_make(NULL);
	evc_id above = hold(t.c, "above"), own = hold(t.mid, "own"),
	       below = hold(t.s, "below");
	struct joiner j;

	OK(evc_request_stop(t.mid, 0, "the middle"));
	join_begin(&j, t.mid, INFINITY, 0);
	OK(evc_hold_end(t.mid, own));
	NOT_YET(atomic_load(&j.returned));
	OK(evc_hold_end(t.s, below));
	OK(join_end(&j));
	ck_assert_str_eq(j.v.stop.text, "the middle");
	OK(evc_hold_end(t.c, above));
	tree_free(&t);
}
END_TEST

struct answer {
	evc_coord *c;
	evc_verdict v;
	int called;
	bool frees;
	evc_status freed;
};

static void
take(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct answer *a = arg;

	a->c = c;
	a->v = *v;
	a->called++;
	if (a->frees)
		a->freed = evc_free(c);
}

static void
stop_it(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	evc_request_stop((evc_coord *)w->data, 0, "by the timer");
}

START_TEST(run_join_and_join_start_on_a_scope)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct tree t = tree_make(loop);
	struct answer a = { 0 };
	evc_verdict v;
	ev_timer timer;
	int i;

	for (i = 0; i < 3; i++) {
		OK(evc_thread_start(t.s, "obeys", obey, NULL, NULL, NULL));
		ev_timer_init(&timer, stop_it, 0.02, 0);
		timer.data = t.s;
		ev_timer_start(loop, &timer);
		memset(&v, 0, sizeof(v));
		if (i == 0) {
			OK(evc_run(t.s, NULL, &v));
		} else if (i == 1) {
			OK(evc_join(t.s, NULL, &v));
		} else {
			OK(evc_join_start(t.s, take, &a, NULL));
			ev_run(loop, 0);
			ck_assert_int_eq(a.called, 1);
			ck_assert_ptr_eq(a.c, t.s);
			v = a.v;
		}
		ck_assert_uint_eq(v.n_ended, 1);
		ck_assert_str_eq(v.stop.text, "by the timer");
		ck_assert(!evc_should_stop(t.mid));
		OK(evc_clear_stop(t.s));
	}
	tree_free(&t);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(the_callback_of_an_evented_join_may_free_the_scope)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct tree t = tree_make(loop);
	struct answer a = { .frees = true, .freed = 77 };

	OK(evc_thread_start(t.s, "obeys", obey, NULL, NULL, NULL));
	OK(evc_join_start(t.s, take, &a, NULL));
	OK(evc_request_stop(t.c, 0, NULL));
	OK(evc_run(t.c, NULL, NULL));
	UNTIL((ev_run(loop, EVRUN_NOWAIT), a.called));
	OK(a.freed);
	FREE_ALL(t.mid, t.c);
	ev_loop_destroy(loop);
}
END_TEST

/* ---- members that join ---- */

struct member_join {
	evc_coord *what; /* NULL: its own */
	evc_verdict v;
	evc_status status;
};

static evc_status
join_as_member(evc_coord *c, void *arg)
{
	struct member_join *m = arg;
	evc_join_opts opts = { .grace = INFINITY };

	m->status = evc_join(m->what != NULL ? m->what : c, &opts, &m->v);
	return 0;
}

START_TEST(J5_a_member_of_a_scope_that_joins_above_leaves_itself_out)
{
	struct tree t = tree_make(NULL);
	struct member_join top = { .what = t.c, .status = 77 },
			   mid = { .what = t.mid, .status = 77 },
			   own = { .status = 77 };

	/* one that joins the scope between waits for none of the others */
	OK(evc_thread_start(t.s, "own", join_as_member, &own, NULL, NULL));
	OK(evc_join(t.c, NULL, NULL));
	OK(own.status);
	OK(evc_clear_stop(t.c));
	OK(evc_clear_stop(t.s));

	OK(evc_thread_start(t.s, "top", join_as_member, &top, NULL, NULL));
	OK(evc_join(t.c, NULL, NULL));
	OK(top.status);
	ck_assert_uint_eq(top.v.n_stragglers, 0);
	OK(evc_clear_stop(t.c));

	OK(evc_thread_start(t.s, "mid", join_as_member, &mid, NULL, NULL));
	OK(evc_join(t.c, NULL, NULL));
	OK(mid.status);
	tree_free(&t);
}
END_TEST

API_MAIN("scope_join", N3_threads_and_registered_threads,
	 N3_holds_and_holds_of_scopes_between, N3_tasks, N3_stop_hooks,
	 N3_but_not_a_hook_of_a_scopes_loop_that_the_join_holds_up,
	 N3_threads_that_ended_and_were_joined_by_nobody,
	 N3_the_end_of_a_scope_wakes_the_join_that_runs_a_loop,
	 N3_a_run_does_not_end_before_the_scopes_were_told,
	 all_have_stopped_when_nothing_lives_below,
	 background_below_keeps_no_join_waiting,
	 background_beside_an_empty_scope_keeps_no_join_waiting,
	 a_join_of_a_scope_waits_for_it_alone,
	 run_join_and_join_start_on_a_scope,
	 the_callback_of_an_evented_join_may_free_the_scope,
	 J5_a_member_of_a_scope_that_joins_above_leaves_itself_out)
