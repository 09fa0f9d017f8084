/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callbacks that do not return, ours and the application's: the loop is silent,
 * joins elsewhere end on time, name who is late, and the report says which
 * callback it is.
 */
#include "../../../support/rouse_util.h"

#include <ev.h>

enum { IN_TASK, IN_LOOPER, IN_HOOK, IN_TIMER, N_PLACES };

struct stuck {
	int place;
	struct guest g;
	evc_coord *c;
	evc_task task, other;
	ev_timer timer;
	atomic_int told;
};

static evc_status
sit_in_callback(evc_coord *c, void *arg)
{
	struct stuck *s = arg;

	(void)c;
	return stay(NULL, &s->g);
}

static void
sit_in_on_stop(evc_task *t, void *arg)
{
	struct stuck *s = arg;

	stay(NULL, &s->g);
	evc_task_end(t);
}

static void
sit_in_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	sit_in_callback(NULL, w->data);
}

static void
end_when_told(evc_task *t, void *arg)
{
	struct stuck *s = arg;

	atomic_fetch_add(&s->told, 1);
	evc_task_end(t);
}

static struct stuck stuck;
static const evc_task_class sits = {
	.name = "connection",
	.on_stop = sit_in_on_stop,
	.arg = &stuck,
};
static const evc_task_class obeys = {
	.name = "other",
	.on_stop = end_when_told,
	.arg = &stuck,
};

static evc_status
set_up(evc_reactor *r, void *arg)
{
	evc_member_opts here = { .reactor = r };
	struct stuck *s = arg;
	evc_coord *c = evc_reactor_coord(r);

	s->c = c;
	switch (s->place) {
	case IN_TASK:
		if (evc_task_begin(r, &s->task, &sits) != 0)
			return EVC_INTERNAL;
		break;
	case IN_LOOPER:
		if (evc_looper_start(c, "ticker", INFINITY, sit_in_callback, s,
				     &here, NULL) != 0)
			return EVC_INTERNAL;
		break;
	case IN_HOOK:
		if (evc_on_stop(c, "cleaner", sit_in_callback, s, &here,
				NULL) != 0)
			return EVC_INTERNAL;
		break;
	default:
		ev_timer_init(&s->timer, sit_in_timer, 0, 0);
		s->timer.data = s;
		ev_timer_start(evc_reactor_loop(r), &s->timer);
		break;
	}
	return evc_task_begin(r, &s->other, &obeys);
}

/* What the report says of the callback. */
static const char *const named[N_PLACES] = { "connection", "ticker", "cleaner",
					     "a callback of the application" };

START_TEST(a_callback_that_does_not_return)
{
	evc_join_opts brief = { .grace = 0.3 };
	evc_coord *c = new_coord(NULL);
	double start = t_now();
	evc_verdict v;

	memset(&stuck, 0, sizeof(stuck));
	stuck.place = _i;
	OK(evc_reactor_start(c, "silent-loop", set_up, &stuck, NULL, NULL));
	if (_i == IN_LOOPER || _i == IN_TIMER)
		UNTIL(atomic_load(&stuck.g.in));
	OK(evc_request_stop(c, 0, "the stop"));
	UNTIL(atomic_load(&stuck.g.in));
	ck_assert_int_eq(evc_join(c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_lt(t_now() - start, T_LIMIT / 2);
	ck_assert_uint_ge(v.n_stragglers, 1);
	HAS(v.error.text, "silent-loop");
	HAS(report_of(c), "silent-loop");
	HAS(report_of(c), named[_i]);
	if (_i != IN_TIMER)
		LACKS(report_of(c), named[IN_TIMER]);
	/* What comes after it on the loop has not been called. */
	if (_i != IN_TASK)
		ck_assert_int_eq(atomic_load(&stuck.told), 0);
	atomic_store(&stuck.g.open, 1);
	OK(evc_join(c, &generous, &v));
	ck_assert_int_eq(atomic_load(&stuck.told), 1);
	ck_assert_uint_eq(v.n_stragglers, 0);
	OK(evc_free(c));
}
END_TEST

/* Nobody need wait for a loop that turns: only what is silent is called so. */
START_TEST(a_loop_that_turns_is_not_called_silent)
{
	evc_join_opts brief = { .grace = 0.3 };
	evc_coord *c = new_coord(NULL);
	evc_reactor *r = NULL;
	evc_id id = 0;

	OK(evc_reactor_start(c, "turning-loop", NULL, NULL, NULL, &r));
	OK(evc_hold_begin(c, "held", NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &brief, NULL), EVC_DEADLINE_EXCEEDED);
	LACKS(report_of(c), named[IN_TIMER]);
	OK(evc_hold_end(c, id));
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}
END_TEST

/* A hook of nobody's loop sits on the helper thread: kicks and cancel hooks
   wait behind it, joins do not. */
START_TEST(a_hook_on_the_helper_thread_that_does_not_return)
{
	evc_join_opts brief = { .grace = 0.3 };
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	evc_verdict v;

	OK(evc_on_stop(c, "cleaner", stay, &g, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, "cleaner");
	HAS(report_of(c), "cleaner");
	atomic_store(&g.open, 1);
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}
END_TEST

/* The thread that joins runs the loop itself: a task that does not end. */
START_TEST(a_task_that_does_not_end_on_the_joiners_loop)
{
	static const evc_task_class stays = { .name = "lazy-task" };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_escalation_opts o = { .budget = 0.3 };
	evc_task t = { 0 };
	evc_verdict v;

	OK(evc_escalation_set(c, &o));
	OK(evc_task_begin(evc_home(c), &t, &stays));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_run(c, NULL, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, "lazy-task");
	HAS(report_of(c), "lazy-task");
	evc_task_end(&t);
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

T_MAIN("misbehave_loops", NULL, NULL,
       T_TIMES(a_callback_that_does_not_return, N_PLACES),
       T_ONCE(a_loop_that_turns_is_not_called_silent),
       T_ONCE(a_hook_on_the_helper_thread_that_does_not_return),
       T_ONCE(a_task_that_does_not_end_on_the_joiners_loop))
