/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking, stepped: functions and kicks of the helper thread against the end of
 * those that they wake, and the leave of an owner against that of the last
 * straggler.
 */
#include "schedules.h"

/* What wakes somebody: it stays inside until it is let go. */
struct waking {
	atomic_int in, open, out;
};

static void
wake(void *arg)
{
	struct waking *w = arg;

	atomic_fetch_add(&w->in, 1);
	while (!atomic_load(&w->open))
		t_sleep(0.001);
	atomic_fetch_add(&w->out, 1);
}

/* ---- pop ---- */

struct pushing {
	struct waking w;
	atomic_int pushed, pop, out_at_pop;
	evc_id id;
};

static evc_status
push_and_pop(evc_coord *c, void *arg)
{
	struct pushing *p = arg;

	OK(evc_cancel_push(c, wake, &p->w, 0, &p->id));
	atomic_store(&p->pushed, 1);
	while (!atomic_load(&p->pop))
		t_sleep(0.001);
	OK(evc_cancel_pop(c, p->id));
	atomic_store(&p->out_at_pop, atomic_load(&p->w.out));
	return 0;
}

/* Fails when the pop does not wait, and when the return does not ring. */
START_TEST(wakers_that_run_are_waited_for_by_pop)
{
	struct pushing p = {.pushed = 0};
	evc_coord *c = new_coord(NULL);
	struct actor a;

	actor_begin(&a, push_and_pop, c, &p);
	UNTIL(atomic_load(&p.pushed));
	OK(evc_request_stop(c, 0, "stop"));
	UNTIL(atomic_load(&p.w.in) == 1);
	atomic_store(&p.pop, 1);
	actor_waits(&a);
	atomic_store(&p.w.open, 1);
	OK(actor_end(&a));
	ck_assert_int_eq(atomic_load(&p.out_at_pop), 1);
	OK(evc_free(c));
}
END_TEST

/* The helper has found it due, and is about to take the lock again - or has not
   looked yet.  Fails when what was popped is called all the same. */
START_TEST(wakers_that_were_popped_are_not_called)
{
	struct pushing p = {.pop = 1, .w = {.open = 1}};
	evc_coord *c = new_coord(NULL);
	struct actor a;
	int h;

	atomic_store(&p.pop, 0);
	actor_begin(&a, push_and_pop, c, &p);
	UNTIL(atomic_load(&p.pushed));
	h = seam_hold("lock", "evc__wake_blocked", 1);
	OK(evc_request_stop(c, 0, "stop"));
	HELD(h);
	atomic_store(&p.pop, 1);
	OK(actor_end(&a));
	seam_release(h);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	/* A look that had begun before may have seen the stop and called it:
	   then the pop has waited for that. */
	ck_assert_int_eq(atomic_load(&p.w.in), atomic_load(&p.out_at_pop));
}
END_TEST

/* ---- members ---- */

struct runner_arg {
	struct waking w;
	atomic_int runs;
};

static bool
is_running(void *arg)
{
	return atomic_load(&((struct runner_arg *)arg)->runs);
}

static void
wake_runner(void *arg)
{
	wake(&((struct runner_arg *)arg)->w);
}

/* A runner ends while its unblock runs.  Fails when the join that reaps it does
   not wait, and when the return of unblock does not ring. */
START_TEST(wakers_of_a_runner_that_has_ended_keep_a_join_waiting)
{
	static const evc_runner_ops ops = {.is_running = is_running};
	evc_member_opts o = {.unblock = wake_runner};
	struct runner_arg r = {.runs = 1};
	evc_coord *c = new_coord(NULL);
	char text[4096];
	struct actor j;
	evc_verdict v;
	evc_id id;

	OK(evc_runner_add(c, "runner", &ops, &r, &o, &id));
	OK(evc_request_stop(c, 0, "stop"));
	UNTIL(atomic_load(&r.w.in) == 1);
	actor_begin(&j, do_join, c, &v);
	OK(evc_runner_done(c, id, 0));
	atomic_store(&r.runs, 0);
	actor_waits(&j);
	/* It is gone as a member, and what is left of it is named. */
	REFUSED(EVC_NOT_FOUND, evc_member_get(c, id, NULL));
	evc_explain(c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "unblock of a member"));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	atomic_store(&r.w.open, 1);
	OK(actor_end(&j));
	ck_assert_int_eq(atomic_load(&r.w.out), 1);
	OK(evc_free(c));
}
END_TEST

static evc_status
do_remove(evc_coord *c, void *arg)
{
	return evc_member_remove(c, *(evc_id *)arg);
}

/* Fails when who removes it does not wait. */
START_TEST(wakers_that_run_are_waited_for_by_remove)
{
	static const evc_runner_ops ops = {.is_running = is_running};
	evc_member_opts o = {.unblock = wake_runner};
	struct runner_arg r = {.runs = 1};
	evc_coord *c = new_coord(NULL);
	struct actor a;
	evc_id id;

	OK(evc_runner_add(c, "runner", &ops, &r, &o, &id));
	OK(evc_request_stop(c, 0, "stop"));
	UNTIL(atomic_load(&r.w.in) == 1);
	actor_begin(&a, do_remove, c, &id);
	actor_waits(&a);
	atomic_store(&r.w.open, 1);
	OK(actor_end(&a));
	ck_assert_int_eq(atomic_load(&r.w.out), 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

/* ---- kicks ---- */

static evc_status
leave_when_told(evc_coord *c, void *arg)
{
	(void)c;
	while (!atomic_load((atomic_int *)arg))
		t_sleep(0.001);
	return 0;
}

/* The helper stands before pthread_kill; the thread ends.  Fails when a kick is
   sent without the lock: the thread may have been joined by then. */
START_TEST(kicks_hold_up_the_join_of_their_thread)
{
	evc_member_opts o = {.flags = EVC_KICK};
	evc_coord *c = new_coord(NULL);
	atomic_int leave = 0;
	struct actor j;
	evc_verdict v;
	int h;

	OK(evc_thread_start(c, "kicked", leave_when_told, &leave, &o, NULL));
	h = seam_hold("thread_signal", "send_kick", 1);
	OK(evc_request_stop(c, 0, "stop"));
	HELD(h);
	atomic_store(&leave, 1);
	actor_begin(&j, do_join, c, &v);
	actor_waits(&j);
	seam_release(h);
	OK(actor_end(&j));
	OK(evc_free(c));
}
END_TEST

/* The thread has rung and was not joined; the helper comes.  Fails when who has
   ended is kicked. */
START_TEST(kicks_go_to_the_living_alone)
{
	evc_member_opts o = {.flags = EVC_KICK};
	evc_coord *c = new_coord(NULL);
	atomic_int leave = 0;
	evc_member_info i;
	int h, sent;
	evc_id id;

	OK(evc_thread_start(c, "kicked", leave_when_told, &leave, &o, &id));
	h = seam_hold("lock", "evc__wake_blocked", 1);
	sent = seam_hold("thread_signal", "send_kick", 1);
	OK(evc_request_stop(c, 0, "stop"));
	HELD(h);
	atomic_store(&leave, 1);
	do {
		OK(evc_member_get(c, id, &i));
	} while (i.state == EVC_LIVE);
	seam_release(h);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(seam_arrivals(sent), 0);
}
END_TEST

/* A member comes when the helper has been through, and sleeps.  Fails when it is
   not told of it. */
START_TEST(wakers_that_come_after_the_stop_are_served)
{
	static const evc_runner_ops ops = {.is_running = is_running};
	evc_member_opts o = {.unblock = wake_runner};
	struct runner_arg early = {.runs = 1, .w = {.open = 1}};
	struct runner_arg late = {.runs = 1, .w = {.open = 1}};
	evc_coord *c = new_coord(NULL);
	evc_id id;

	OK(evc_runner_add(c, "early", &ops, &early, &o, &id));
	OK(evc_request_stop(c, 0, "stop"));
	UNTIL(atomic_load(&early.w.out) > 0);
	OK(evc_member_remove(c, id));
	let_come();
	OK(evc_runner_add(c, "late", &ops, &late, &o, NULL));
	UNTIL(atomic_load(&late.w.out) > 0);
	atomic_store(&late.runs, 0);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

/* ---- the helper ---- */

static evc_status
hang(evc_coord *c, void *arg)
{
	struct waking *w = arg;

	(void)c;
	wake(w);
	return 0;
}

/* What wakes the first one hangs, and so does a hook that has no loop.  Fails
   when whoever stands behind them waits for them. */
START_TEST(helper_that_hangs_is_relieved_by_a_join)
{
	static const evc_runner_ops ops = {.is_running = is_running};
	evc_member_opts o = {.unblock = wake_runner};
	struct runner_arg first = {.runs = 1}, second = {.runs = 1};
	struct waking hook = {.in = 0}, next = {.open = 1};
	evc_coord *c = new_coord(NULL);
	struct actor j;
	evc_verdict v;

	OK(evc_on_stop(c, "hangs", hang, &hook, NULL, NULL));
	OK(evc_on_stop(c, "next", hang, &next, NULL, NULL));
	OK(evc_runner_add(c, "first", &ops, &first, &o, NULL));
	OK(evc_runner_add(c, "second", &ops, &second, &o, NULL));
	atomic_store(&second.w.open, 1);
	actor_begin(&j, do_join, c, &v);
	actor_sleeps(&j);
	OK(evc_request_stop(c, 0, "stop"));
	UNTIL(atomic_load(&hook.in) == 1);
	UNTIL(atomic_load(&first.w.in) == 1);
	UNTIL(atomic_load(&second.w.out) > 0);
	/* Hooks come one after the other all the same. */
	ck_assert_int_eq(atomic_load(&next.in), 0);
	atomic_store(&second.runs, 0);
	atomic_store(&hook.open, 1);
	UNTIL(atomic_load(&next.out) == 1);
	atomic_store(&first.w.open, 1);
	UNTIL(atomic_load(&first.w.out) > 1);
	atomic_store(&first.runs, 0);
	OK(actor_end(&j));
	ck_assert_int_eq(atomic_load(&hook.in), 1);
	OK(evc_free(c));
}
END_TEST

/* Fails when nobody serves when there is no thread to be had. */
START_TEST(helper_that_cannot_be_relieved_goes_on)
{
	static const evc_runner_ops ops = {.is_running = is_running};
	evc_member_opts o = {.unblock = wake_runner};
	struct runner_arg first = {.runs = 1}, second = {.runs = 1};
	evc_coord *c = new_coord(NULL);
	struct actor j;
	evc_verdict v;
	int h;

	OK(evc_runner_add(c, "first", &ops, &first, &o, NULL));
	OK(evc_runner_add(c, "second", &ops, &second, &o, NULL));
	atomic_store(&second.w.open, 1);
	h = seam_fail_all("thread_create", "evc__helper_lead", 1, EAGAIN);
	actor_begin(&j, do_join, c, &v);
	OK(evc_request_stop(c, 0, "stop"));
	UNTIL(seam_arrivals(h) > 1);
	ck_assert_int_eq(atomic_load(&second.w.in), 0);
	atomic_store(&first.w.open, 1);
	UNTIL(atomic_load(&second.w.out) > 0);
	atomic_store(&first.runs, 0);
	atomic_store(&second.runs, 0);
	OK(actor_end(&j));
	OK(evc_free(c));
}
END_TEST

/* ---- the leave of the owner ---- */

static evc_status
do_abandon(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_abandon(c);
}

/* The last straggler ends while the owner leaves.  Fails when the helper is not
   asked to look once by itself. */
START_TEST(abandon_meets_the_end_of_the_last_straggler)
{
	static const struct place places[] = {
		{"lock", "leave_loops", 1},
		{"lock", "evc_abandon", 2},
	};
	size_t i;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);
		struct actor a;
		int h, gone;
		evc_id id;

		OK(evc_hold_begin(c, "hold", NULL, &id));
		OK(evc_request_stop(c, 0, "stop"));
		gone = seam_hold("load", "evc__coord_destroy", 1);
		h = hold_at(&places[i]);
		actor_begin(&a, do_abandon, c, NULL);
		HELD(h);
		OK(evc_hold_end(c, id));
		seam_release(h);
		OK(actor_end(&a));
		HELD(gone);
		seam_release(gone);
	}
}
END_TEST

struct straggler {
	atomic_int open, ended;
	evc_id hold;
};

static evc_status
joins_in_vain(evc_coord *c, void *arg)
{
	evc_join_opts brief = {.grace = 0.3};
	struct straggler *s = arg;

	while (!atomic_load(&s->open))
		t_sleep(0.001);
	ck_assert_int_eq(evc_join(c, &brief, NULL), EVC_DEADLINE_EXCEEDED);
	atomic_store(&s->ended, evc_hold_end(c, s->hold) == 0);
	return 0;
}

/* A straggler's join relieves the thread of the helper that then finds nobody
   alive, when the one that leads has gone to sleep.  Fails when the relieved one
   does not wake it. */
START_TEST(abandon_is_ended_by_the_thread_that_leads)
{
	struct straggler s = {.open = 0};
	evc_coord *c = new_coord(NULL);
	int looks, says, gone;

	OK(evc_hold_begin(c, "hold", NULL, &s.hold));
	OK(evc_thread_start(c, "straggler", joins_in_vain, &s, NULL, NULL));
	OK(evc_request_stop(c, 0, "stop"));
	looks = seam_hold("lock", "run_abandoned", 1);
	says = seam_hold("lock", "evc__helper_farewell", 1);
	gone = seam_hold("load", "evc__coord_destroy", 1);
	OK(evc_abandon(c));
	HELD(looks);
	atomic_store(&s.open, 1);
	UNTIL(atomic_load(&s.ended));
	t_sleep(0.05); /* for its exit */
	seam_release(looks);
	HELD(says);
	t_sleep(0.05); /* for the one that leads, to sleep */
	seam_release(says);
	HELD(gone);
	seam_release(gone);
}
END_TEST

/* ---- rings ---- */

static void
count_line(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)level;
	(void)line;
	(void)r;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static evc_status
request(evc_coord *c, void *arg)
{
	return evc_request_stop(c, 0, arg);
}

/* A ring takes the mark that the helper sleeps, when the helper has looked and
   does not sleep yet.  Fails when the ring does not move seq after that: the
   helper sleeps without the mark, and the next ring does not wake it. */
START_TEST(rings_between_the_look_and_the_sleep_end_the_sleep)
{
	atomic_int lines = 0;
	evc_config cfg = {.log = count_line, .arg = &lines};
	evc_coord *c = new_coord_with(NULL, &cfg), *s;
	struct actor a;
	int rings, sleeps;

	/* A stop of a scope, because that of a root gives the helper a time
	   to wake up by itself. */
	OK(evc_scope_new(c, "scope", NULL, &s));
	OK(evc_scope_ready(s));
	let_come(); /* the helper sleeps */
	rings = seam_hold("xchg", "evc__helper_wake", 1);
	sleeps = seam_hold("futex_wait", "sleep_once", 1);
	actor_begin(&a, request, s, "first");
	HELD(rings);
	evc_log(c, EVC_LOG_INFO, NULL, "second");
	HELD(sleeps);
	ck_assert_int_eq(atomic_load(&lines), 2);
	seam_release(rings);
	OK(actor_end(&a));
	seam_release(sleeps);
	let_come();
	evc_log(c, EVC_LOG_INFO, NULL, "third");
	UNTIL(atomic_load(&lines) == 3);
	FREE_ALL(s, c);
}
END_TEST

SCHEDULES_MAIN("wakers", wakers_that_run_are_waited_for_by_pop,
	       wakers_that_were_popped_are_not_called,
	       wakers_of_a_runner_that_has_ended_keep_a_join_waiting,
	       wakers_that_run_are_waited_for_by_remove,
	       kicks_hold_up_the_join_of_their_thread,
	       kicks_go_to_the_living_alone,
	       wakers_that_come_after_the_stop_are_served,
	       helper_that_hangs_is_relieved_by_a_join,
	       helper_that_cannot_be_relieved_goes_on,
	       abandon_meets_the_end_of_the_last_straggler,
	       abandon_is_ended_by_the_thread_that_leads,
	       rings_between_the_look_and_the_sleep_end_the_sleep)
