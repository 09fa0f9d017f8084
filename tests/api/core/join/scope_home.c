/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a scope lives: a home of its own on a loop that it shares, at no
 * descriptor; on another loop of its parent; without a loop; and freed from
 * any thread.
 */
#include "../../../support/scope_util.h"

static int n_told;

static void
end_and_count(evc_task *t, void *arg)
{
	(void)arg;
	n_told++;
	evc_task_end(t);
}

static const evc_task_class conn = { .name = "conn", .on_stop = end_and_count };
static const evc_task_class plain = { .name = "plain" };

START_TEST(its_home_is_a_reactor_of_its_own_on_the_same_loop)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *s, *t, *lone = new_coord(NULL), *u;

	s = ready_scope(c, "s", NULL);
	t = ready_scope(s, "t", NULL);
	ck_assert_ptr_nonnull(evc_home(s));
	ck_assert_ptr_ne(evc_home(s), evc_home(c));
	ck_assert_ptr_ne(evc_home(t), evc_home(s));
	ck_assert_ptr_ne(evc_home(t), evc_home(c));
	ck_assert_ptr_eq(evc_reactor_coord(evc_home(s)), s);
	ck_assert_ptr_eq(evc_reactor_coord(evc_home(t)), t);
	ck_assert_ptr_eq(evc_reactor_coord(evc_home(c)), c);
	ck_assert_ptr_eq(evc_reactor_loop(evc_home(s)), loop);
	ck_assert_ptr_eq(evc_reactor_loop(evc_home(t)), loop);
	u = ready_scope(lone, "u", NULL);
	ck_assert_ptr_null(evc_home(u));
	REFUSED(EVC_FAILED_PRECONDITION, evc_run(u, NULL, NULL));
	FREE_ALL(t, s, c, u, lone);
	ev_loop_destroy(loop);
}
END_TEST

#define MANY 1000

/* Each with a task and a hook, so that each would need to be woken. */
START_TEST(a_scope_costs_no_descriptor_and_no_thread)
{
	static evc_coord *s[MANY];
	static evc_task task[MANY];
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	int fds = t_count_fds(), threads = t_count_threads(), i;
	atomic_int calls = 0;

	memset(task, 0, sizeof(task));
	n_told = 0;
	for (i = 0; i < MANY; i++) {
		s[i] = ready_scope(c, "s", NULL);
		OK(evc_task_begin(evc_home(s[i]), &task[i], &conn));
		OK(evc_on_stop(s[i], "h", count_hook, &calls, NULL, NULL));
	}
	ck_assert_int_eq(t_count_fds(), fds);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_run(c, NULL, NULL));
	ck_assert_int_eq(n_told, MANY);
	ck_assert_int_eq(calls, MANY);
	ck_assert_int_eq(t_count_fds(), fds);
	ck_assert_int_eq(t_count_threads(), threads);
	for (i = 0; i < MANY; i++)
		OK(evc_free(s[i]));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(its_tasks_are_told_of_its_stop_and_no_others)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *s, *t;
	evc_task in_c = { 0 }, in_s = { 0 }, in_t = { 0 };

	n_told = 0;
	s = ready_scope(c, "s", NULL);
	t = ready_scope(c, "t", NULL);
	OK(evc_task_begin(evc_home(c), &in_c, &conn));
	OK(evc_task_begin(evc_home(s), &in_s, &conn));
	OK(evc_task_begin(evc_home(t), &in_t, &conn));
	OK(evc_request_stop(s, 0, NULL));
	turn(loop);
	ck_assert_int_eq(n_told, 1);
	OK(evc_join(s, NULL, NULL)); /* it has ended; the others have not */
	REFUSED(EVC_CANCELLED, evc_task_begin(evc_home(s), &in_s, &conn));
	OK(evc_clear_stop(s));

	OK(evc_task_begin(evc_home(s), &in_s, &conn)); /* used again */
	OK(evc_request_stop(c, 0, NULL));
	turn(loop);
	ck_assert_int_eq(n_told, 4);
	OK(evc_join(c, NULL, NULL));
	FREE_ALL(s, t, c);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_sleeping_loop_is_woken_when_another_thread_stops_the_scope)
{
	struct driver d = { 0 };
	evc_coord *c = driver_make(&d, BY_RUN), *s;
	struct guest g = { 0 };
	atomic_int calls = 0;

	s = ready_scope(c, "s", NULL);
	OK(evc_on_stop(s, "h", count_hook, &calls, NULL, NULL));
	driver_go(&d); /* the loop sleeps */
	OK(evc_request_stop(s, 0, NULL));
	UNTIL(atomic_load(&calls) == 1);
	OK(evc_join(s, NULL, NULL));
	OK(evc_clear_stop(s));
	OK(evc_on_stop(s, "stays", stay, &g, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&g.in));
	ck_assert(!driver_returned(&d));
	atomic_store(&g.open, 1);
	OK(driver_wait(&d));
	ck_assert_int_eq(calls, 2);
	OK(evc_free(s));
	driver_end(&d);
}
END_TEST

/* ---- on another loop ---- */

START_TEST(its_home_may_be_another_loop_of_the_parent_or_above)
{
	struct far f = { .c = new_coord(NULL) };
	evc_scope_opts opts = { 0 };
	atomic_int tid[3] = { 0, 0, 0 };
	evc_coord *a, *b, *below;

	far_begin_member(&f);
	a = ready_scope(f.c, "homeless", NULL);
	opts.home = f.r;
	b = ready_scope(a, "of the one above", &opts);
	below = ready_scope(b, "below", NULL); /* on its parent's home */
	ck_assert_ptr_null(evc_home(a));
	ck_assert_ptr_ne(evc_home(b), f.r);
	ck_assert_ptr_eq(evc_reactor_loop(evc_home(b)), evc_reactor_loop(f.r));
	ck_assert_ptr_eq(evc_reactor_loop(evc_home(below)),
			 evc_reactor_loop(f.r));
	OK(evc_on_stop(a, "a", note_tid, &tid[0], NULL, NULL));
	OK(evc_on_stop(b, "b", note_tid, &tid[1], NULL, NULL));
	OK(evc_on_stop(below, "below", note_tid, &tid[2], NULL, NULL));
	OK(evc_request_stop(f.c, 0, NULL));
	OK(evc_join(f.c, NULL, NULL));
	OK(f.status);
	ck_assert_int_ne(tid[0], 0);
	ck_assert_int_ne(tid[0], f.tid); /* on the helper thread */
	ck_assert_int_eq(tid[1], f.tid);
	ck_assert_int_eq(tid[2], f.tid);
	FREE_ALL(below, b, a, f.c);
}
END_TEST

START_TEST(a_scope_attaches_loops_of_its_own)
{
	struct ev_loop *loop = ev_loop_new(0), *own = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *s = ready_scope(c, "s", NULL);
	evc_reactor *r = NULL;
	evc_task t = { 0 };

	n_told = 0;
	OK(evc_reactor_attach(s, "own", own, &r));
	ck_assert_ptr_eq(evc_reactor_coord(r), s);
	OK(evc_task_begin(r, &t, &conn));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_reactor_run(r));
	ck_assert_int_eq(n_told, 1);
	OK(evc_run(c, NULL, NULL));
	FREE_ALL(s, c);
	ev_loop_destroy(loop);
	ev_loop_destroy(own);
}
END_TEST

START_TEST(a_loop_destroyed_under_a_scope_ends_its_tasks)
{
	struct ev_loop *loop = ev_loop_new(0), *home = ev_loop_new(0);
	evc_coord *c = new_coord(home), *s, *no = NULL;
	evc_scope_opts opts = { 0 };
	evc_task t = { 0 };
	evc_verdict v;

	OK(evc_reactor_attach(c, "doomed", loop, &opts.home));
	s = ready_scope(c, "s", &opts);
	OK(evc_task_begin(evc_home(s), &t, &conn));
	ev_loop_destroy(loop);
	ck_assert_ptr_null(evc_reactor_loop(evc_home(s)));
	REFUSED(EVC_FAILED_PRECONDITION, evc_scope_new(c, "no", &opts, &no));
	REFUSED(EVC_FAILED_PRECONDITION, evc_scope_new(s, "no", NULL, &no));
	ck_assert_ptr_null(no);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_run(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	FREE_ALL(s, c);
	ev_loop_destroy(home);
}
END_TEST

/* ---- whose c it is that callbacks get ---- */

struct seen {
	_Atomic(evc_coord *) c;
};

static evc_status
see(evc_coord *c, void *arg)
{
	atomic_store(&((struct seen *)arg)->c, c);
	return 0;
}

static void
see_join(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)v;
	see(c, arg);
}

START_TEST(callbacks_get_their_own_scope)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *s;
	struct seen seen[5];
	evc_scope_opts opts = { .ended = see_join, .arg = &seen[0] };
	int i;

	memset(seen, 0, sizeof(seen));
	s = ready_scope(c, "s", &opts);
	OK(evc_thread_start(s, "thread", see, &seen[1], NULL, NULL));
	OK(evc_on_stop(s, "hook", see, &seen[2], NULL, NULL));
	OK(evc_join_start(s, see_join, &seen[3], NULL));
	OK(evc_guard(s, "guard", see, &seen[4], NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_run(c, NULL, NULL));
	for (i = 0; i < 5; i++) {
		UNTIL((ev_run(loop, EVRUN_NOWAIT), atomic_load(&seen[i].c)));
		ck_assert_ptr_eq(atomic_load(&seen[i].c), s);
	}
	FREE_ALL(s, c);
	ev_loop_destroy(loop);
}
END_TEST

/* ---- free, from any thread ---- */

/* The loop runs meanwhile, rung a moment before. */
START_TEST(freed_by_another_thread_than_the_loops)
{
	struct driver d = { 0 };
	evc_coord *c = driver_make(&d, BY_RUN), *s;
	atomic_int calls = 0;
	int i, before;

	driver_go(&d);
	for (i = 0; i < 200; i++) {
		s = ready_scope(c, "s", NULL);
		OK(evc_on_stop(s, "h", count_hook, &calls, NULL, NULL));
		OK(evc_request_stop(s, 0, NULL));
		if (i % 2)
			OK(evc_join(s, NULL, NULL));
		OK(evc_free(s));
		before = atomic_load(&calls);
		if (i % 20 == 0) { /* L1: nothing is called afterwards */
			t_sleep(0.01);
			ck_assert_int_eq(atomic_load(&calls), before);
		}
	}
	ck_assert_int_ge(calls, 100);
	driver_stop(&d);
	OK(driver_wait(&d));
	driver_end(&d);
}
END_TEST

START_TEST(free_with_a_task_of_the_loop_is_refused)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *s = ready_scope(c, "s", NULL);
	evc_task t = { 0 };

	OK(evc_task_begin(evc_home(s), &t, &plain));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(s));
	HAS(evc_last_error(), "plain");
	evc_task_end(&t);
	OK(evc_free(s));
	turn(loop);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(L3_scopes_do_not_keep_a_loop_running)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *s;
	atomic_int calls = 0;

	s = ready_scope(c, "s", NULL);
	ev_run(loop, 0);
	OK(evc_on_stop(s, "h", count_hook, &calls, NULL, NULL));
	ev_run(loop, 0);
	OK(evc_request_stop(s, 0, NULL));
	ev_run(loop, 0);
	OK(evc_free(s));
	ev_run(loop, 0);
	OK(evc_free(c));
	ev_run(loop, 0);
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("scope_home", its_home_is_a_reactor_of_its_own_on_the_same_loop,
	 a_scope_costs_no_descriptor_and_no_thread,
	 its_tasks_are_told_of_its_stop_and_no_others,
	 a_sleeping_loop_is_woken_when_another_thread_stops_the_scope,
	 its_home_may_be_another_loop_of_the_parent_or_above,
	 a_scope_attaches_loops_of_its_own,
	 a_loop_destroyed_under_a_scope_ends_its_tasks,
	 callbacks_get_their_own_scope, freed_by_another_thread_than_the_loops,
	 free_with_a_task_of_the_loop_is_refused,
	 L3_scopes_do_not_keep_a_loop_running)
