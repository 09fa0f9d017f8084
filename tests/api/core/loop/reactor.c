/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reactors: attach, run and detach of one loop and of several on their own
 * threads, what is refused, and loops that are destroyed under us.
 */
#include "../../../support/far_util.h"

static const evc_task_class plain = { .name = "plain" };

static evc_reactor *
attach(evc_coord *c, const char *name, struct ev_loop *loop)
{
	evc_reactor *r = NULL;

	OK(evc_reactor_attach(c, name, loop, &r));
	ck_assert_ptr_nonnull(r);
	return r;
}

static evc_id
hook_on(evc_coord *c, evc_reactor *r, atomic_int *count)
{
	evc_member_opts opts = { .reactor = r };
	evc_id id = 0;

	OK(evc_on_stop(c, "hook", count_hook, count, &opts, &id));
	return id;
}

START_TEST(a_reactor_knows_its_loop_and_its_coordinator)
{
	struct ev_loop *a = ev_loop_new(0), *b = ev_loop_new(0);
	evc_coord *c = new_coord(a), *homeless = new_coord(NULL);
	evc_reactor *r = attach(c, "b", b);

	ck_assert_ptr_eq(evc_reactor_loop(evc_home(c)), a);
	ck_assert_ptr_eq(evc_reactor_coord(evc_home(c)), c);
	ck_assert_ptr_eq(evc_reactor_loop(r), b);
	ck_assert_ptr_eq(evc_reactor_coord(r), c);
	ck_assert_ptr_null(evc_home(homeless));
	ck_assert_ptr_null(evc_reactor_loop(NULL));
	ck_assert_ptr_null(evc_reactor_coord(NULL));
	OK(evc_reactor_detach(r));
	FREE_ALL(c, homeless);
	ev_loop_destroy(a);
	ev_loop_destroy(b);
}
END_TEST

START_TEST(one_loop_is_attached_once_to_one_coordinator)
{
	struct ev_loop *a = ev_loop_new(0), *b = ev_loop_new(0);
	evc_coord *c = new_coord(a), *d = new_coord(b);
	evc_reactor *r = attach(c, "b", b), *s = NULL;
	atomic_int told_c = 0, told_d = 0;

	REFUSED(EVC_ALREADY_EXISTS, evc_reactor_attach(c, "again", a, &s));
	REFUSED(EVC_ALREADY_EXISTS, evc_reactor_attach(c, "again", b, &s));
	ck_assert_ptr_null(s);

	/* another coordinator may share the loop; each stop is its own */
	hook_on(c, r, &told_c);
	hook_on(d, evc_home(d), &told_d);
	OK(evc_request_stop(c, 0, NULL));
	ev_run(b, EVRUN_NOWAIT);
	ck_assert_int_eq(told_c, 1);
	ck_assert_int_eq(told_d, 0);
	OK(evc_request_stop(d, 0, NULL));
	ev_run(b, EVRUN_NOWAIT);
	ck_assert_int_eq(told_d, 1);

	/* after a detach it may come back */
	OK(evc_reactor_detach(r));
	r = attach(c, "back", b);
	OK(evc_reactor_detach(r));
	FREE_ALL(d, c);
	ev_loop_destroy(a);
	ev_loop_destroy(b);
}
END_TEST

START_TEST(L1_nothing_is_called_after_detach)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	evc_reactor *r = attach(c, "loop", loop);
	atomic_int before = 0, after = 0;

	hook_on(c, r, &before);
	OK(evc_request_stop(c, 0, NULL)); /* rung, but not yet heard */
	OK(evc_reactor_detach(r));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(before, 0);
	OK(evc_clear_stop(c));

	r = attach(c, "loop", loop);
	hook_on(c, r, &after);
	OK(evc_reactor_detach(r));
	OK(evc_request_stop(c, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(after, 0);
	OK(evc_join(c, NULL, NULL)); /* dropped hooks keep nobody waiting */
	OK(evc_free(c));
	ev_run(loop, EVRUN_NOWAIT);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(L1_nothing_is_called_after_free)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	atomic_int count = 0;

	hook_on(c, NULL, &count);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_free(c)); /* without a join, due hooks are dropped */
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(count, 0);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(detach_is_refused_with_tasks_joins_and_for_the_home)
{
	struct ev_loop *a = ev_loop_new(0), *b = ev_loop_new(0);
	evc_coord *c = new_coord(a);
	evc_reactor *r = attach(c, "b", b);
	evc_join_opts opts = { .reactor = r };
	evc_status code = 77;
	evc_task t = { 0 };
	evc_id hold = 0;

	REFUSED(EVC_FAILED_PRECONDITION, evc_reactor_detach(evc_home(c)));
	OK(evc_task_begin(r, &t, &plain));
	REFUSED(EVC_FAILED_PRECONDITION, evc_reactor_detach(r));
	evc_task_end(&t);
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_join_start(c, take_code, &code, &opts));
	REFUSED(EVC_FAILED_PRECONDITION, evc_reactor_detach(r));
	OK(evc_hold_end(c, hold));
	ev_run(b, 0);
	ck_assert_int_eq(code, 0);
	OK(evc_reactor_detach(r));
	OK(evc_free(c));
	ev_loop_destroy(a);
	ev_loop_destroy(b);
}
END_TEST

struct detaching {
	evc_reactor *r;
	evc_status detach, run;
};

static evc_status
detach_inside(evc_coord *c, void *arg)
{
	struct detaching *d = arg;

	(void)c;
	d->detach = evc_reactor_detach(d->r);
	d->run = evc_reactor_run(d->r);
	return 0;
}

static void *
detach_elsewhere(void *arg)
{
	detach_inside(NULL, arg);
	return NULL;
}

START_TEST(detach_and_run_are_refused_inside_and_elsewhere)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	evc_reactor *r = attach(c, "loop", loop);
	struct detaching inside = { r, 77, 77 }, elsewhere = { r, 77, 77 };
	evc_member_opts opts = { .reactor = r };
	pthread_t t;

	OK(pthread_create(&t, NULL, detach_elsewhere, &elsewhere));
	pthread_join(t, NULL);
	ck_assert_int_eq(elsewhere.detach, -EVC_FAILED_PRECONDITION);
	ck_assert_int_eq(elsewhere.run, -EVC_FAILED_PRECONDITION);
	OK(evc_on_stop(c, "hook", detach_inside, &inside, &opts, NULL));
	OK(evc_request_stop(c, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(inside.detach, -EVC_FAILED_PRECONDITION);
	ck_assert_int_eq(inside.run, -EVC_FAILED_PRECONDITION);
	OK(evc_reactor_detach(r));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

struct shard {
	struct far far;
	atomic_int hooked;
	evc_task task;
	int told;
};

static void
end_shard_task(evc_task *t, void *arg)
{
	struct shard *s = (void *)((char *)t - offsetof(struct shard, task));

	(void)arg;
	s->told++;
	evc_task_end(t);
}

static evc_status
furnish(evc_reactor *r, void *arg)
{
	static const evc_task_class cls = {
		.name = "conn",
		.on_stop = end_shard_task,
	};
	struct shard *s = arg;
	evc_member_opts opts = { .reactor = r };
	evc_status st = evc_on_stop(s->far.c, "h", count_hook, &s->hooked,
				    &opts, NULL);

	return st == 0 ? evc_task_begin(r, &s->task, &cls) : st;
}

START_TEST(four_loops_on_four_threads_stop_together)
{
	evc_coord *c = new_coord(NULL);
	struct shard s[4];
	evc_verdict v;
	int i;

	memset(s, 0, sizeof(s));
	for (i = 0; i < 4; i++) {
		s[i].far.c = c;
		s[i].far.begin = furnish;
		s[i].far.arg = &s[i];
		far_begin_member(&s[i].far);
	}
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 4);
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(s[i].far.status, 0);
		ck_assert_int_eq(s[i].hooked, 1);
		ck_assert_int_eq(s[i].told, 1);
	}
	OK(evc_free(c));
}
END_TEST

struct lodger {
	evc_coord *c;
	struct guest guest;
	evc_status status;
};

static void *
attach_and_stay(void *arg)
{
	struct lodger *l = arg;
	struct ev_loop *loop = ev_loop_new(0);
	evc_reactor *r = NULL;

	l->status = evc_reactor_attach(l->c, "far-loop", loop, &r);
	stay(NULL, &l->guest);
	if (l->status == 0)
		l->status = evc_reactor_detach(r);
	ev_loop_destroy(loop);
	return NULL;
}

START_TEST(free_is_refused_while_a_loop_of_another_thread_is_attached)
{
	struct lodger l = { .c = new_coord(NULL) };
	pthread_t t;

	OK(pthread_create(&t, NULL, attach_and_stay, &l));
	UNTIL(atomic_load(&l.guest.in));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(l.c));
	HAS(evc_last_error(), "far-loop");
	atomic_store(&l.guest.open, 1);
	pthread_join(t, NULL);
	ck_assert_int_eq(l.status, 0);
	OK(evc_free(l.c));
}
END_TEST

START_TEST(attach_after_the_stop_is_told_of_it)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	atomic_int count = 0;
	evc_reactor *r;

	OK(evc_request_stop(c, 0, NULL));
	r = attach(c, "late", loop);
	hook_on(c, r, &count);
	OK(evc_reactor_run(r));
	ck_assert_int_eq(count, 1);
	r = attach(c, "again", loop); /* it was detached */
	OK(evc_reactor_detach(r));
	ev_loop_destroy(loop);
	OK(evc_free(c));
}
END_TEST

static evc_task slow_task;

static void
end_slow(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
	evc_task_end(&slow_task);
}

START_TEST(reactor_run_takes_ev_break_as_a_request_and_waits_for_tasks)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	evc_reactor *r = attach(c, "loop", loop);
	ev_timer t, u;
	evc_reason why;

	OK(evc_task_begin(r, &slow_task, &plain));
	ev_timer_init(&t, break_all, 0.02, 0);
	ev_timer_start(loop, &t);
	ev_timer_init(&u, end_slow, 0.1, 0);
	ev_timer_start(loop, &u);
	OK(evc_reactor_run(r));
	ck_assert_int_eq(ev_is_active(&u), 0);
	OK(evc_reason_get(c, 0, &why));
	ck_assert_uint_eq(why.kind, EVC_BY_LOOP_BROKEN);
	ck_assert_int_eq(why.code, 0);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(reactor_run_of_the_home_leaves_it_attached)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_reactor *home = evc_home(c);

	OK(evc_request_stop(c, 0, NULL));
	OK(evc_reactor_run(home));
	ck_assert_ptr_eq(evc_home(c), home);
	ck_assert_ptr_eq(evc_reactor_loop(home), loop);
	OK(evc_run(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_loop_destroyed_under_us_ends_its_tasks_and_joins)
{
	static const evc_task_class cls = {
		.name = "cut",
		.on_stop = end_told_task,
	};
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	evc_reactor *r = attach(c, "doomed", loop);
	evc_join_opts opts = { .reactor = r };
	evc_status code = 77;
	evc_task task = { 0 };
	evc_verdict v;

	OK(evc_task_begin(r, &task, &cls));
	OK(evc_join_start(c, take_code, &code, &opts));
	ev_loop_destroy(loop);
	ck_assert_int_eq(code, EVC_CANCELLED);
	ck_assert_ptr_null(evc_reactor_loop(r));
	REFUSED(EVC_FAILED_PRECONDITION, evc_task_begin(r, &task, &cls));
	evc_task_end(&task); /* it has ended: nothing */
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	OK(evc_free(c));
}
END_TEST

API_MAIN("reactor", a_reactor_knows_its_loop_and_its_coordinator,
	 one_loop_is_attached_once_to_one_coordinator,
	 L1_nothing_is_called_after_detach, L1_nothing_is_called_after_free,
	 detach_is_refused_with_tasks_joins_and_for_the_home,
	 detach_and_run_are_refused_inside_and_elsewhere,
	 four_loops_on_four_threads_stop_together,
	 free_is_refused_while_a_loop_of_another_thread_is_attached,
	 attach_after_the_stop_is_told_of_it,
	 reactor_run_takes_ev_break_as_a_request_and_waits_for_tasks,
	 reactor_run_of_the_home_leaves_it_attached,
	 a_loop_destroyed_under_us_ends_its_tasks_and_joins)
