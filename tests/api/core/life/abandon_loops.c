/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_abandon with loops and scopes: the caller's loops are let go and may be
 * destroyed at once, loops of other threads end as they would, members of
 * scopes keep all that is above them.
 */
#include "../../../support/abandon_util.h"
#include "../../../support/runner_util.h"

START_TEST(a_thread_in_a_scope)
{
	static struct late l;
	struct left left;
	evc_coord *low = NULL, *lower = NULL;

	left_begin(&left, NULL, NULL);
	OK(evc_scope_new(left.c, "scope", NULL, &low));
	OK(evc_scope_ready(low));
	OK(evc_scope_new(low, "deeper", NULL, &lower));
	OK(evc_scope_ready(lower));
	OK(evc_thread_start(lower, "late", come_back_late, &l, NULL, NULL));
	UNTIL(atomic_load(&l.in));
	left_behind(&left, "late");
	late_end(&l, &left, 1);
}
END_TEST

START_TEST(one_in_a_scope_and_one_above_it)
{
	static struct late below, above;
	struct left left;
	evc_coord *low = NULL;

	left_begin(&left, NULL, NULL);
	OK(evc_scope_new(left.c, "scope", NULL, &low));
	OK(evc_scope_ready(low));
	OK(evc_thread_start(low, "below", come_back_late, &below, NULL, NULL));
	OK(evc_thread_start(left.c, "above", come_back_late, &above, NULL,
			    NULL));
	UNTIL(atomic_load(&below.in) && atomic_load(&above.in));
	left_behind(&left, "above");
	atomic_store(_i ? &below.open : &above.open, 1);
	UNTIL(atomic_load(_i ? &below.done : &above.done));
	t_sleep(0.05);
	ck_assert(!is_freed(&left));
	late_end(_i ? &above : &below, &left, 1);
	ck_assert_ptr_null(atomic_load(&below.wrong));
	ck_assert_ptr_null(atomic_load(&above.wrong));
}
END_TEST

START_TEST(scopes_with_nobody_in_them_go_too)
{
	struct left left;
	evc_coord *low = NULL;
	int i;

	left_begin(&left, NULL, NULL);
	for (i = 0; i < 5; i++) {
		OK(evc_scope_new(left.c, "scope", NULL, &low));
		OK(evc_scope_ready(low));
	}
	OK(evc_request_stop(left.c, 0, NULL));
	OK(evc_abandon(left.c));
	left_end(&left);
}
END_TEST

/* ---- the caller's loops ---- */

static atomic_int told, stops, ended;

static void
on_stop(evc_task *t, void *arg)
{
	(void)t;
	(void)arg;
	atomic_fetch_add(&told, 1);
}

static const evc_task_class task_class = { .name = "task", .on_stop = on_stop };

static evc_status
looper_stops(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	atomic_fetch_add(&stops, 1);
	return 0;
}

static void
has_ended(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	(void)arg;
	atomic_fetch_add(&ended, 1);
}

START_TEST(a_home_loop_is_let_go)
{
	static struct late l = { .homeless = true };
	static evc_task task[3];
	evc_scope_opts scope_opts = { .ended = has_ended };
	struct ev_loop *loop = ev_loop_new(0), *second = ev_loop_new(0);
	evc_member_opts on_loop = { .stop = looper_stops };
	evc_coord *low = NULL;
	evc_reactor *r = NULL;
	struct left left;
	int i;

	left_begin(&left, loop, NULL);
	OK(evc_reactor_attach(left.c, "second", second, &r));
	for (i = 0; i < 3; i++)
		OK(evc_task_begin(i < 2 ? evc_home(left.c) : r, &task[i],
				  &task_class));
	OK(evc_looper_start(left.c, "looper", INFINITY, return_at_once, NULL,
			    &on_loop, NULL));
	OK(evc_scope_new(left.c, "scope", &scope_opts, &low));
	OK(evc_scope_ready(low));
	OK(evc_thread_start(low, "late", come_back_late, &l, NULL, NULL));
	UNTIL(atomic_load(&l.in));
	left_behind(&left, "late");
	ev_loop_destroy(second);
	ev_loop_destroy(loop);
	ck_assert_int_ge(atomic_load(&told), 2);
	/* They have ended without a call: to end them again does nothing. */
	for (i = 0; i < 3; i++)
		evc_task_end(&task[i]);
	memset(task, 0xff, sizeof(task));
	atomic_store(&l.open, 1);
	UNTIL(is_freed(&left));
	ck_assert_int_eq(t_settle_threads(left.threads), left.threads);
	ck_assert_int_eq(atomic_load(&l.done), 1);
	ck_assert_msg(atomic_load(&l.wrong) == NULL, "not so: %s",
		      atomic_load(&l.wrong));
}
END_TEST

/* It may be given up with its loop, or be waited for: all goes in the end. */
START_TEST(a_runner_of_a_home_loop)
{
	static struct machine m;
	struct ev_loop *loop = ev_loop_new(0);
	struct left left;

	left_begin(&left, loop, NULL);
	atomic_store(&m.runs, 1);
	machine_add(left.c, "machine", &m, evc_home(left.c), 0);
	left_behind(&left, "machine");
	ev_loop_destroy(loop);
	let_come();
	atomic_store(&m.runs, 0);
	UNTIL(is_freed(&left));
	ck_assert_int_eq(t_settle_threads(left.threads), left.threads);
	ck_assert_int_eq(atomic_load(&m.wrong), 0);
	ck_assert_int_le(atomic_load(&m.joins), 1);
	atomic_store(&m.over, 1);
}
END_TEST

/* Whatever the loop does afterwards, nothing of ours is left on it. */
START_TEST(a_home_loop_may_run_on)
{
	static struct guest g;
	struct ev_loop *loop = ev_loop_new(0);
	static evc_task task;
	struct left left;
	int i;

	left_begin(&left, loop, NULL);
	OK(evc_task_begin(evc_home(left.c), &task, &task_class));
	OK(evc_thread_start(left.c, "late", stay, &g, NULL, NULL));
	UNTIL(atomic_load(&g.in));
	left_behind(&left, "late");
	/* No reference of ours keeps it. */
	ev_run(loop, 0);
	for (i = 0; i < 5; i++)
		ev_run(loop, EVRUN_NOWAIT);
	ck_assert_uint_eq(ev_pending_count(loop), 0);
	atomic_store(&g.open, 1);
	UNTIL(is_freed(&left));
	ev_run(loop, 0);
	ev_loop_destroy(loop);
	ck_assert_int_eq(t_settle_threads(left.threads), left.threads);
}
END_TEST

/* ---- loops of other threads ---- */

struct stuck {
	struct late l;
	ev_timer timer;
	evc_coord *c;
};

static void
sit_in_callback(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct stuck *s = w->data;

	(void)loop;
	(void)revents;
	come_back_late(s->c, &s->l);
}

static evc_status
set_up(evc_reactor *r, void *arg)
{
	struct stuck *s = arg;

	s->c = evc_reactor_coord(r);
	s->timer.data = s;
	ev_timer_init(&s->timer, sit_in_callback, 0, 0);
	ev_timer_start(evc_reactor_loop(r), &s->timer);
	return 0;
}

START_TEST(a_loop_thread_that_sits_in_a_callback)
{
	static struct stuck s;
	static atomic_int hooked;
	evc_member_opts far = { 0 };
	struct left left;

	left_begin(&left, NULL, NULL);
	OK(evc_reactor_start(left.c, "loop", set_up, &s, NULL, &far.reactor));
	OK(evc_on_stop(left.c, "hook", count_hook, &hooked, &far, NULL));
	OK(evc_looper_start(left.c, "looper", INFINITY, return_at_once, NULL,
			    &far, NULL));
	UNTIL(atomic_load(&s.l.in));
	left_behind(&left, "loop");
	ck_assert_int_eq(atomic_load(&hooked), 0);
	late_end(&s.l, &left, 1);
	/* Its loop went on, and ended as it does after a stop. */
	ck_assert_int_eq(atomic_load(&hooked), 1);
}
END_TEST

static evc_status
sit_in_looper(evc_coord *c, void *arg)
{
	return come_back_late(c, arg);
}

START_TEST(a_looper_on_the_loop_of_another_thread)
{
	static struct late l;
	evc_member_opts far = { .stop = looper_stops };
	struct left left;

	left_begin(&left, NULL, NULL);
	OK(evc_reactor_start(left.c, "loop", NULL, NULL, NULL, &far.reactor));
	OK(evc_looper_start(left.c, "looper", INFINITY, sit_in_looper, &l,
			    &far, NULL));
	UNTIL(atomic_load(&l.in));
	left_behind(&left, "loop");
	late_end(&l, &left, 1);
	ck_assert_int_eq(atomic_load(&stops), 1);
}
END_TEST

/* ---- where it is refused ---- */

struct inside {
	evc_coord *c;
	evc_status in_loop, elsewhere;
	int calls;
};

static void
abandon_in_loop(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct inside *n = w->data;

	(void)revents;
	n->in_loop = evc_abandon(n->c);
	n->calls++;
	ev_break(loop, EVBREAK_ALL);
}

static void *
abandon_elsewhere(void *arg)
{
	struct inside *n = arg;

	n->elsewhere = evc_abandon(n->c);
	return NULL;
}

START_TEST(in_its_loop_and_on_another_thread_it_is_refused)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct inside n = { .c = new_coord(loop) };
	struct guest g = { 0 };
	ev_timer timer;
	pthread_t t;

	OK(evc_thread_start(n.c, "late", stay, &g, NULL, NULL));
	OK(evc_request_stop(n.c, 0, NULL));
	ev_timer_init(&timer, abandon_in_loop, 0, 0);
	timer.data = &n;
	ev_timer_start(loop, &timer);
	ev_run(loop, 0);
	ck_assert_int_eq(n.calls, 1);
	ck_assert_int_eq(n.in_loop, -EVC_FAILED_PRECONDITION);
	OK(pthread_create(&t, NULL, abandon_elsewhere, &n));
	OK(pthread_join(t, NULL));
	ck_assert_int_eq(n.elsewhere, -EVC_FAILED_PRECONDITION);
	atomic_store(&g.open, 1);
	OK(evc_join(n.c, NULL, NULL));
	OK(evc_free(n.c));
	ev_loop_destroy(loop);
}
END_TEST

T_MAIN("abandon_loops", NULL, NULL,
       T_ONCE(a_thread_in_a_scope),
       T_TIMES(one_in_a_scope_and_one_above_it, 2),
       T_ONCE(scopes_with_nobody_in_them_go_too),
       T_ONCE(a_home_loop_is_let_go),
       T_ONCE(a_runner_of_a_home_loop),
       T_ONCE(a_home_loop_may_run_on),
       T_ONCE(a_loop_thread_that_sits_in_a_callback),
       T_ONCE(a_looper_on_the_loop_of_another_thread),
       T_ONCE(in_its_loop_and_on_another_thread_it_is_refused))
