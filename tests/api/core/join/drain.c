/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drain: take nothing new, finish what you have.  What it tells and what
 * not, its limit, and how it becomes a stop.  Hooks stand in drain_hooks.c,
 * scopes and phases in drain_scopes.c.
 */
#include "../../../support/scope_util.h"

static bool
draining(evc_coord *c)
{
	return evc_should_drain(c) && !evc_should_stop(c);
}

START_TEST(it_is_no_stop_and_a_stop_is_a_drain_too)
{
	bool (*volatile exported)(const evc_coord *) = evc_should_drain;
	evc_coord *c = new_coord(NULL);
	evc_id id = hold(c, "works on");

	ck_assert(!evc_should_drain(c) && !exported(c));
	OK(evc_request_drain(c, INFINITY, "leave"));
	ck_assert(draining(c) && exported(c));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(evc_should_stop(c) && evc_should_drain(c) && exported(c));
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	ck_assert(evc_should_drain(c));
	OK(evc_clear_stop(c));
	ck_assert(!evc_should_drain(c) && !exported(c));
	OK(evc_request_stop(c, 0, NULL)); /* without a drain before */
	ck_assert(evc_should_drain(c) && exported(c));
	OK(evc_free(c));
}
END_TEST

START_TEST(nobody_who_waits_for_the_stop_is_released)
{
	evc_coord *c = new_coord(NULL);
	struct waiter w;
	evc_id id = hold(c, "works on");
	int fd = evc_stop_fd(c);

	waiter_begin(&w, c, INFINITY);
	UNTIL(atomic_load(&w.tid) != 0);
	until_asleep(w.tid);
	OK(evc_request_drain(c, INFINITY, NULL));
	NOT_YET(atomic_load(&w.released));
	ck_assert(!readable(fd));
	ck_assert(!evc_wait_for_stop(c, 0.01));
	OK(evc_request_stop(c, 0, NULL));
	OK(pthread_join(w.thread, NULL));
	ck_assert(w.answer);
	ck_assert(readable(fd));
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

static int n_told;

static void
end_and_count(evc_task *t, void *arg)
{
	(void)arg;
	n_told++;
	evc_task_end(t);
}

START_TEST(no_task_is_told_and_all_may_begin)
{
	static const evc_task_class cls = {
		.name = "conn",
		.on_stop = end_and_count,
	};
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_task a = { 0 }, b = { 0 };

	n_told = 0;
	OK(evc_task_begin(evc_home(c), &a, &cls));
	OK(evc_request_drain(c, INFINITY, NULL));
	turn(loop);
	ck_assert_int_eq(n_told, 0);
	/* what is under way may need them */
	OK(evc_task_begin(evc_home(c), &b, &cls));
	OK(evc_hold_end(c, hold(c, "brief")));
	OK(evc_thread_start(c, "brief", return_at_once, NULL, NULL, NULL));
	turn(loop);
	ck_assert_int_eq(n_told, 0);
	OK(evc_request_stop(c, 0, NULL));
	turn(loop);
	ck_assert_int_eq(n_told, 2);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- how it becomes a stop ---- */

/* It was the drain's: clean, with its text. */
static void
stopped_by_the_drain(evc_coord *c, const char *text)
{
	evc_reason r = reason_of(c, 0);

	ck_assert(evc_should_stop(c));
	HAS(r.text, text);
	OK(evc_raise_requested(c, NULL));
}

START_TEST(a_stop_when_only_background_members_are_left_while_joined)
{
	evc_member_opts background = { .flags = EVC_BACKGROUND };
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < BY_JOIN_FIRST; how++) {
		evc_coord *c = driver_make(&d, how);
		struct guest g = { 0 };
		evc_id id = hold(c, "hold");

		OK(evc_thread_start(c, "service", obey, NULL, &background,
				    NULL));
		OK(evc_thread_start(c, "works on", stay, &g, NULL, NULL));
		driver_go(&d);
		OK(evc_request_drain(c, INFINITY, "new version"));
		OK(evc_hold_end(c, id));
		NOT_YET(!draining(c));
		atomic_store(&g.open, 1);
		UNTIL(evc_should_stop(c));
		OK(driver_wait(&d));
		stopped_by_the_drain(c, "new version");
		HAS(d.v.stop.text, "new version");
		driver_end(&d);
	}
}
END_TEST

/* Nobody joins, and no loop turns. */
START_TEST(a_stop_when_only_background_members_are_left_and_nobody_joins)
{
	evc_member_opts background = { .flags = EVC_BACKGROUND };
	int i;

	for (i = 0; i < 4; i++) {
		evc_coord *c = new_coord(NULL);
		struct guest g = { 0 };
		evc_id id = 0;
		pthread_t th;

		OK(evc_thread_start(c, "service", obey, NULL, &background,
				    NULL));
		if (i == 1) {
			id = hold(c, "hold");
		} else if (i == 2) {
			OK(evc_thread_start(c, "t", stay, &g, NULL, NULL));
		} else if (i == 3) {
			OK(pthread_create(&th, NULL, stay_thread, &g));
			OK(evc_register_thread(c, "r", th, NULL, NULL));
		}
		OK(evc_request_drain(c, INFINITY, "to the end"));
		if (i > 0)
			NOT_YET(!draining(c));
		if (i == 1)
			OK(evc_hold_end(c, id));
		atomic_store(&g.open, 1);
		UNTIL(evc_should_stop(c));
		stopped_by_the_drain(c, "to the end");
		OK(evc_join(c, NULL, NULL));
		OK(evc_free(c));
	}
}
END_TEST

static void
end_task(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	evc_task_end(w->data);
}

START_TEST(a_stop_when_the_last_task_of_a_running_loop_has_ended)
{
	static const evc_task_class cls = { .name = "conn" };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_task t = { 0 };
	ev_timer timer;

	OK(evc_task_begin(evc_home(c), &t, &cls));
	OK(evc_request_drain(c, INFINITY, "to the end"));
	turn(loop);
	ck_assert(draining(c));
	ev_timer_init(&timer, end_task, MOMENT, 0);
	timer.data = &t;
	ev_timer_start(loop, &timer);
	OK(evc_reactor_run(evc_home(c))); /* returns after a stop only */
	stopped_by_the_drain(c, "to the end");
	OK(evc_run(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_stop_when_the_limit_is_over)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how <= BY_JOIN_FIRST; how++) { /* last: no join */
		evc_coord *c = how < BY_JOIN_FIRST ? driver_make(&d, how)
						   : new_coord(NULL);
		evc_id id = hold(c, "works on");
		double start;

		if (how < BY_JOIN_FIRST)
			driver_go(&d);
		start = t_now();
		OK(evc_request_drain(c, 0.1, "closing time"));
		UNTIL(evc_should_stop(c));
		ck_assert_double_ge(t_now() - start, 0.1);
		stopped_by_the_drain(c, "closing time");
		OK(evc_hold_end(c, id));
		if (how < BY_JOIN_FIRST) {
			OK(driver_wait(&d));
			driver_end(&d);
		} else {
			OK(evc_join(c, NULL, NULL));
			OK(evc_free(c));
		}
	}
}
END_TEST

static evc_status
break_loop(evc_coord *c, void *arg)
{
	(void)c;
	ev_break(arg, EVBREAK_ALL);
	return 0;
}

static void
never(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	*(bool *)w->data = true;
}

/* A loop that the application runs, asleep, and no join. */
START_TEST(a_stop_in_a_loop_that_sleeps)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_id id;
	int i;

	for (i = 0; i < 2; i++) {
		evc_coord *c = new_coord(loop);
		bool slept_on = false;
		double start;
		ev_timer t;

		OK(evc_on_stop(c, "break", break_loop, loop, NULL, NULL));
		ev_timer_init(&t, never, T_LIMIT, 0);
		t.data = &slept_on;
		id = hold(c, "works on");
		OK(evc_request_drain(c, i ? 1000 : 0.1, NULL));
		if (i) {
			turn(loop);
			OK(evc_request_drain(c, 0.1, NULL));
		}
		start = t_now();
		ev_now_update(loop);
		ev_timer_start(loop, &t);
		ev_run(loop, 0);
		ck_assert(!slept_on);
		ck_assert_double_ge(t_now() - start, 0.05);
		ck_assert(evc_should_stop(c));
		ev_timer_stop(loop, &t);
		OK(evc_hold_end(c, id));
		OK(evc_join(c, NULL, NULL));
		OK(evc_free(c));
	}
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_limit_of_0_or_less_is_a_stop_at_once)
{
	static const double limits[] = { 0, -0.0, -1, -INFINITY };
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		evc_coord *c = new_coord(NULL);
		evc_id id = hold(c, "works on");

		OK(evc_request_drain(c, limits[i], "now"));
		ck_assert(evc_should_stop(c));
		stopped_by_the_drain(c, "now");
		OK(evc_hold_end(c, id));
		OK(evc_join(c, NULL, NULL));
		OK(evc_free(c));
	}
}
END_TEST

API_MAIN("drain", it_is_no_stop_and_a_stop_is_a_drain_too,
	 nobody_who_waits_for_the_stop_is_released,
	 no_task_is_told_and_all_may_begin,
	 a_stop_when_only_background_members_are_left_while_joined,
	 a_stop_when_only_background_members_are_left_and_nobody_joins,
	 a_stop_when_the_last_task_of_a_running_loop_has_ended,
	 a_stop_when_the_limit_is_over, a_stop_in_a_loop_that_sleeps,
	 a_limit_of_0_or_less_is_a_stop_at_once)
