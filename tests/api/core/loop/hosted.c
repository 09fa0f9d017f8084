/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosted reactors: what works on a libev loop works on a bare epoll loop, when
 * the loop watches the descriptor of a reactor and calls evc_reactor_turn.
 */
#include "../../../support/api_util.h"
#include "../../../support/hosted_util.h"

#include <fcntl.h>

/* ---- a join ---- */

struct answer {
	bool came;
	evc_status code;
};

static void
on_answer(evc_coord *of, const evc_verdict *v, void *arg)
{
	struct answer *a = arg;

	(void)of;
	a->came = true;
	a->code = v->code;
}

static void
stop_and_join(void)
{
	struct answer a = { .came = false };

	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join_start(c, on_answer, &a, NULL));
	HOST_UNTIL(&h, a.came);
	ck_assert_int_eq(a.code, 0);
	host_settle(&h);
}

/* ---- what a hosted reactor is ---- */

START_TEST(the_first_hosted_reactor_is_the_home_and_has_no_loop)
{
	int fd;
	evc_reactor *r;

	ck_assert_ptr_eq(evc_home(c), t.r);
	ck_assert_ptr_null(evc_reactor_loop(t.r));
	ck_assert_ptr_eq(evc_reactor_coord(t.r), c);
	ck_assert(evc_reactor_is_here(t.r));
	ck_assert_int_ne(fcntl(t.fd, F_GETFD) & FD_CLOEXEC, 0);
	OK(evc_reactor_foreign(c, NULL, &fd, &r));
	ck_assert_ptr_eq(evc_home(c), t.r);
	OK(evc_reactor_detach(r));
}
END_TEST

START_TEST(a_descriptor_without_work_is_not_readable)
{
	int i;

	host_settle(&h);
	ck_assert(!host_readable(t.fd));
	/* A turn without need changes nothing. */
	for (i = 0; i < 100; i++)
		OK(evc_reactor_turn(t.r));
	ck_assert(!host_readable(t.fd));
}
END_TEST

/* ---- tasks, hooks, posts ---- */

static int n_stops, n_hooks, n_late, n_posts, n_ticks;

static void
on_task_stop(evc_task *task, void *arg)
{
	(void)arg;
	n_stops++;
	evc_task_end(task);
}

static evc_status
on_hook(evc_coord *of, void *arg)
{
	(void)of;
	(void)arg;
	n_hooks++;
	return 0;
}

START_TEST(a_stop_makes_the_descriptor_readable_and_a_turn_tells_everything)
{
	evc_task_class cls = { .on_stop = on_task_stop };
	evc_task task[3] = { 0 };
	int i;

	OK(evc_on_stop(c, NULL, on_hook, NULL, NULL, NULL));
	for (i = 0; i < 3; i++)
		OK(evc_task_begin(evc_home(c), &task[i], &cls));
	host_settle(&h);
	ck_assert(!host_readable(t.fd));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(host_readable(t.fd));
	OK(evc_reactor_turn(t.r));
	ck_assert_int_eq(n_hooks, 1);
	ck_assert_int_eq(n_stops, 3);
	host_settle(&h);
	ck_assert(!host_readable(t.fd));
	stop_and_join();
}
END_TEST

static void
on_task_late(evc_task *task, void *arg)
{
	(void)arg;
	n_late++;
	evc_task_end(task);
}

static void
on_nothing(evc_task *task, void *arg)
{
	(void)task;
	(void)arg;
}

START_TEST(late_tasks_are_told_by_the_timer_of_the_reactor)
{
	evc_task_class cls = { .on_stop = on_nothing, .on_late = on_task_late,
			       .grace = 0.05 };
	evc_task task = { 0 };

	OK(evc_task_begin(t.r, &task, &cls));
	OK(evc_request_stop(c, 0, NULL));
	HOST_UNTIL(&h, n_late == 1);
	stop_and_join();
}
END_TEST

static void
on_post(evc_reactor *r, evc_status why, void *arg)
{
	(void)arg;
	ck_assert_ptr_eq(r, t.r);
	ck_assert_int_eq(why, 0);
	n_posts++;
}

static void *
post_many(void *arg)
{
	int i;

	for (i = 0; i < 1000; i++)
		if (evc_post(arg, on_post, NULL) < 0)
			return arg;
	return NULL;
}

START_TEST(posts_of_other_threads_come)
{
	evc_loop_ref *loop = evc_loop_of(t.r);
	struct t_crowd k;

	crowd_begin(&k, 4, post_many, loop, 0);
	HOST_UNTIL(&h, n_posts == 4000);
	ck_assert_uint_eq(crowd_end(&k), 0);
	evc_loop_release(loop);
	stop_and_join();
}
END_TEST

/* ---- loopers ---- */

static evc_status
on_tick(evc_coord *of, void *arg)
{
	(void)of;
	(void)arg;
	n_ticks++;
	return 0;
}

START_TEST(loopers_tick_in_time_and_back_to_back)
{
	double begun = t_now();
	evc_id id, other;

	OK(evc_looper_start(c, "slow", 0.01, on_tick, NULL, NULL, &id));
	HOST_UNTIL(&h, n_ticks == 6);
	ck_assert_double_ge(t_now() - begun, 0.05);
	OK(evc_member_remove(c, id));
	n_ticks = 0;
	OK(evc_looper_start(c, "at once", 0, on_tick, NULL, NULL, &other));
	HOST_UNTIL(&h, n_ticks >= 1000);
	OK(evc_member_remove(c, other));
	host_settle(&h);
	ck_assert(!host_readable(t.fd));
}
END_TEST

/* The stop comes while the looper runs, which then runs the host. */
static evc_status
run_the_host(evc_coord *of, void *arg)
{
	unsigned n = 0;

	OK(evc_request_stop(of, 0, NULL));
	while (host_readable(t.fd) && n++ < 100)
		(void)evc_reactor_turn(t.r);
	*(bool *)arg = !host_readable(t.fd);
	return 0;
}

START_TEST(a_looper_that_runs_the_host_during_a_stop_finds_it_quiet)
{
	evc_join_opts opts = { .flags = EVC_JOIN_UNTIL_STOP };
	struct answer a = { .came = false };
	bool quiet = false;

	OK(evc_looper_start(c, "modal", 0.001, run_the_host, &quiet, NULL,
			    NULL));
	OK(evc_join_start(c, on_answer, &a, &opts));
	HOST_UNTIL(&h, a.came);
	ck_assert(quiet);
}
END_TEST

/* ---- in place of evc_run ---- */

START_TEST(a_join_UNTIL_STOP_has_no_answer_before_the_stop)
{
	evc_join_opts opts = { .flags = EVC_JOIN_UNTIL_STOP };
	struct answer a = { .came = false };

	OK(evc_join_start(c, on_answer, &a, &opts));
	host_settle(&h);
	ck_assert(!a.came); /* though no member is alive */
	OK(evc_request_stop(c, 0, NULL));
	HOST_UNTIL(&h, a.came);
	ck_assert_int_eq(a.code, 0);
}
END_TEST

START_TEST(a_host_that_runs_on_after_the_answer_turns_again)
{
	evc_join_opts opts = { .flags = EVC_JOIN_UNTIL_STOP };
	struct answer a = { .came = false };
	unsigned before;

	OK(evc_reactor_host_runs(t.r, true));
	OK(evc_reactor_host_runs(t.r, true));
	OK(evc_join_start(c, on_answer, &a, &opts));
	ck_assert_uint_eq(host_once(&h, 100), 1);
	ck_assert_uint_eq(host_once(&h, 100), 0);
	OK(evc_request_stop(c, 0, NULL));
	HOST_UNTIL(&h, a.came);
	before = t.turns;
	HOST_UNTIL(&h, t.turns == before + 5);
	OK(evc_reactor_host_runs(t.r, false));
	OK(evc_reactor_host_runs(t.r, false));
	host_settle(&h);
	ck_assert_uint_eq(host_once(&h, 300), 0);
	/* A new round needs no end of the run. */
	OK(evc_reactor_host_runs(t.r, true));
	OK(evc_join_start(c, on_answer, &a, &opts));
	a.came = false;
	HOST_UNTIL(&h, a.came);
	OK(evc_clear_stop(c));
	HOST_UNTIL(&h, host_once(&h, 300) == 0);
}
END_TEST

static evc_status
outlast(evc_coord *of, void *arg)
{
	(void)of;
	UNTIL(atomic_load((atomic_bool *)arg));
	return 0;
}

/* The thread announces its end, so the join hardly has to ask. */
START_TEST(a_stop_that_waits_for_a_thread_turns_a_host_seldom)
{
	struct answer a = { .came = false };
	atomic_bool over = false;
	unsigned before;
	double until;

	OK(evc_thread_start(c, "outlasts", outlast, &over, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join_start(c, on_answer, &a, NULL));
	host_settle(&h);
	before = t.turns;
	for (until = t_now() + 1; t_now() < until;)
		host_once(&h, 100);
	/* Every 25 ms would be 40. */
	ck_assert_uint_lt(t.turns - before, 20);
	atomic_store(&over, true);
	HOST_UNTIL(&h, a.came);
	ck_assert_int_eq(a.code, 0);
}
END_TEST

/* ---- what reports say ---- */

START_TEST(the_loop_of_a_scope_has_its_name_in_reports)
{
	static char text[1 << 16];
	evc_coord *scope;

	OK(evc_scope_new(c, "inside", NULL, &scope));
	OK(evc_on_stop(scope, "of the scope", on_hook, NULL, NULL, NULL));
	ck_assert_uint_lt(report_text(c, text, sizeof(text)), sizeof(text));
	HAS(text, "hook \"of the scope\" on ui, live");
	OK(evc_free(scope));
}
END_TEST

API_MAIN_WITH("hosted", set_up, tear_down,
	      the_first_hosted_reactor_is_the_home_and_has_no_loop,
	      a_descriptor_without_work_is_not_readable,
	      a_stop_makes_the_descriptor_readable_and_a_turn_tells_everything,
	      late_tasks_are_told_by_the_timer_of_the_reactor,
	      posts_of_other_threads_come,
	      loopers_tick_in_time_and_back_to_back,
	      a_looper_that_runs_the_host_during_a_stop_finds_it_quiet,
	      a_join_UNTIL_STOP_has_no_answer_before_the_stop,
	      a_host_that_runs_on_after_the_answer_turns_again,
	      a_stop_that_waits_for_a_thread_turns_a_host_seldom,
	      the_loop_of_a_scope_has_its_name_in_reports)
