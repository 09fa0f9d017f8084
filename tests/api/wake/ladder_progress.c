/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress: a member that says where it is gets a step more from then on, up to
 * the hard end; one that says nothing gets nothing; a second signal ends it.
 *
 * Most of these tests use the system's clock: with steps so long that no machine
 * is too slow for them, and budgets so short that they are over soon.
 */
#include "../../support/ladder_util.h"

/* A budget in which a thread of a busy machine still says a word. */
#define SOON 0.8

static evc_coord *
with_ladder(double budget, double step, double hard_end)
{
	evc_escalation_opts o = { .budget = budget,
				  .step = step,
				  .hard_end = hard_end };
	evc_config cfg = { .grace = 1000 };
	evc_coord *c = new_coord_with(NULL, &cfg);

	OK(evc_escalation_set(c, &o));
	return c;
}

/* Says where it is, again and again, until it is let go. */
static evc_status
makes_progress(evc_coord *c, void *arg)
{
	struct guest *g = arg;

	(void)c;
	atomic_store(&g->in, own_tid());
	while (!atomic_load(&g->open)) {
		evc_progress("flushing index");
		t_sleep(0.002);
	}
	return 0;
}

struct self {
	evc_coord *c;
	struct guest g;
	evc_status status;
};

static void *
registers_itself(void *arg)
{
	struct self *s = arg;

	s->status = evc_register_thread(s->c, "slow", pthread_self(), NULL,
					NULL);
	makes_progress(s->c, &s->g);
	return NULL;
}

/* All who can: a thread, one that registers itself, a looper on a thread of
   its own, one on the loop of another thread. */
static void
begin_progress(struct self *s, evc_coord *c, int what)
{
	evc_member_opts own = { .flags = EVC_OWN_THREAD }, far = { 0 };
	pthread_t t;

	memset(s, 0, sizeof(*s));
	s->c = c;
	switch (what) {
	case 0:
		OK(evc_thread_start(c, "slow", makes_progress, &s->g, NULL,
				    NULL));
		break;
	case 1:
		OK(pthread_create(&t, NULL, registers_itself, s));
		break;
	case 2:
		OK(evc_looper_start(c, "slow", INFINITY, makes_progress, &s->g,
				    &own, NULL));
		break;
	default:
		OK(evc_reactor_start(c, "loop", NULL, NULL, NULL,
				     &far.reactor));
		OK(evc_looper_start(c, "slow", INFINITY, makes_progress, &s->g,
				    &far, NULL));
		break;
	}
	UNTIL(atomic_load(&s->g.in));
}

/* The join waits longer than its budget, for as long as s makes progress. */
static void
outlasts(struct self *s, struct joiner *j)
{
	t_sleep(2 * SOON);
	ck_assert(!atomic_load(&j->returned));
	atomic_store(&s->g.open, 1);
	OK(join_end(j));
}

START_TEST(progress_extends_the_stop)
{
	evc_coord *c = with_ladder(SOON, 50, 1000);
	struct joiner j;
	struct self s;

	begin_progress(&s, c, _i);
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, 0, 0);
	outlasts(&s, &j);
	OK(s.status);
	ck_assert_double_ge(j.v.took, 1.9 * SOON);
	OK(evc_free(c));
}
END_TEST

/* What it has done may be what others wait for. */
START_TEST(a_step_outlasts_the_member)
{
	evc_coord *c = with_ladder(SOON, 50, 1000);
	struct joiner j;
	struct self s;
	evc_id id;

	OK(evc_hold_begin(c, "waits for it", NULL, &id));
	begin_progress(&s, c, _i);
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, 0, 0);
	t_sleep(1.5 * SOON);
	atomic_store(&s.g.open, 1);
	t_sleep(0.5 * SOON);
	ck_assert(!atomic_load(&j.returned));
	OK(evc_hold_end(c, id));
	OK(join_end(&j));
	OK(s.status);
	OK(evc_free(c));
}
END_TEST

START_TEST(up_to_the_hard_end)
{
	evc_coord *c = with_ladder(SOON, 50, 2 * SOON);
	struct self s;
	evc_verdict v;

	begin_progress(&s, c, _i);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, "slow");
	ck_assert_double_ge(v.took, 1.99 * SOON);
	ck_assert_double_lt(v.took, T_LIMIT);
	atomic_store(&s.g.open, 1);
	ends_at_last(c);
	OK(evc_free(c));
}
END_TEST

/* One word, at a time of the test's choice, and then none. */
struct once {
	atomic_int say, said, open, in;
};

static evc_status
says_once(evc_coord *c, void *arg)
{
	struct once *o = arg;

	(void)c;
	atomic_store(&o->in, 1);
	while (!atomic_load(&o->open)) {
		if (atomic_load(&o->say) && !atomic_load(&o->said)) {
			evc_progress("once");
			atomic_store(&o->said, 1);
		}
		t_sleep(0.001);
	}
	return 0;
}

START_TEST(one_word_is_one_step)
{
	evc_coord *c = with_ladder(SOON, 1, 1000);
	struct once o = { .say = 0 };
	evc_verdict v;

	OK(evc_thread_start(c, "says", says_once, &o, NULL, NULL));
	UNTIL(atomic_load(&o.in));
	OK(evc_request_stop(c, 0, NULL));
	t_sleep(0.02); /* the clock of progress is coarse */
	atomic_store(&o.say, 1);
	UNTIL(atomic_load(&o.said));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(v.took, 0.95);
	ck_assert_double_lt(v.took, T_LIMIT);
	atomic_store(&o.open, 1);
	ends_at_last(c);
	OK(evc_free(c));
}
END_TEST

START_TEST(progress_in_a_scope_extends_the_stop_above)
{
	evc_coord *c = with_ladder(SOON, 50, 1000), *low = NULL;
	struct joiner j;
	struct self s;

	OK(evc_scope_new(c, "scope", NULL, &low));
	OK(evc_scope_ready(low));
	begin_progress(&s, low, 0);
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, _i ? low : c, 0, 0);
	outlasts(&s, &j);
	FREE_ALL(low, c);
}
END_TEST

static void
is_not_extended(double step, double hard_end, bool before)
{
	evc_coord *c = with_ladder(0.2, step, hard_end);
	struct once o = { .say = before };
	evc_verdict v;

	OK(evc_thread_start(c, "says", says_once, &o, NULL, NULL));
	if (before) {
		UNTIL(atomic_load(&o.said));
		t_sleep(0.05); /* beyond the grain of that clock */
	}
	OK(evc_request_stop(c, 0, NULL));
	if (!before && step == 0) {
		atomic_store(&o.say, 1);
		UNTIL(atomic_load(&o.said));
	}
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, "says");
	ck_assert_double_ge(v.took, 0.19);
	ck_assert_double_lt(v.took, T_LIMIT);
	atomic_store(&o.open, 1);
	ends_at_last(c);
	OK(evc_free(c));
}

START_TEST(without_progress_nothing_is_extended)
{
	is_not_extended(500, 1000, false);
}
END_TEST

START_TEST(a_word_before_the_stop_is_no_progress)
{
	is_not_extended(500, 1000, true);
}
END_TEST

START_TEST(without_a_step_progress_extends_nothing)
{
	is_not_extended(0, 1000, false);
}
END_TEST

START_TEST(without_a_hard_end_progress_extends_nothing)
{
	evc_coord *c = with_ladder(0.2, 500, 0);
	struct self s;
	evc_verdict v;

	begin_progress(&s, c, 0);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_lt(v.took, T_LIMIT);
	atomic_store(&s.g.open, 1);
	ends_at_last(c);
	OK(evc_free(c));
}
END_TEST

static evc_status
winds_up(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	t_sleep(2 * SOON); /* and says nothing */
	return 0;
}

/* The step is the member's, not the callback's: its last word was said in a run
   that has returned. */
START_TEST(a_step_outlasts_the_callback)
{
	evc_member_opts o = { .stop = winds_up, .flags = EVC_OWN_THREAD };
	evc_coord *c = with_ladder(SOON, 50, 1000);
	struct guest g = { 0 };
	evc_verdict v;

	if (_i) {
		o.flags = 0;
		OK(evc_reactor_start(c, "loop", NULL, NULL, NULL, &o.reactor));
	}
	OK(evc_looper_start(c, "slow", INFINITY, makes_progress, &g, &o,
			    NULL));
	UNTIL(atomic_load(&g.in));
	OK(evc_request_stop(c, 0, NULL));
	t_sleep(0.05);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, &v));
	ck_assert_double_ge(v.took, 2 * SOON);
	OK(evc_free(c));
}
END_TEST

/* It extends the grace, too, where that is what ends the stop. */
START_TEST(progress_extends_the_grace)
{
	evc_escalation_opts o = { .step = 500, .hard_end = 1000 };
	evc_config cfg = { .grace = SOON };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct joiner j;
	struct self s;

	OK(evc_escalation_set(c, &o));
	begin_progress(&s, c, 0);
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, 0, 0);
	outlasts(&s, &j);
	OK(evc_free(c));
}
END_TEST

static void
a_second_signal(bool extended)
{
	evc_signals_opts so = { .stop = { SIGUSR1 },
				.short_grace = EVC_NO_GRACE };
	evc_coord *c = with_ladder(extended ? 300 : SOON, 500, 1000);
	double granted = 0;
	evc_id hold = 0;
	struct joiner j;
	struct self s;

	OK(evc_signals_start(c, &so));
	begin_progress(&s, c, 0);
	OK(evc_hold_begin(c, "held", NULL, &hold));
	OK(raise(SIGUSR1));
	join_begin(&j, c, 0, 0);
	if (extended)
		OK(evc_extend_stop(c, hold, 500, "not yet", &granted));
	t_sleep(1.5 * SOON);
	ck_assert(!atomic_load(&j.returned));
	OK(raise(SIGUSR1));
	UNTIL(atomic_load(&j.returned));
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	HAS(j.v.error.text, "slow");
	OK(evc_signals_stop(c));
	OK(evc_hold_end(c, hold));
	atomic_store(&s.g.open, 1);
	ends_at_last(c);
	OK(evc_free(c));
}

START_TEST(a_second_signal_ends_what_progress_extended)
{
	a_second_signal(false);
}
END_TEST

START_TEST(a_second_signal_overrules_a_veto)
{
	a_second_signal(true);
}
END_TEST

T_MAIN("ladder_progress", NULL, NULL,
       T_TIMES(progress_extends_the_stop, 4),
       T_TIMES(a_step_outlasts_the_member, 4),
       T_TIMES(up_to_the_hard_end, 4),
       T_TIMES(a_step_outlasts_the_callback, 2),
       T_TIMES(progress_in_a_scope_extends_the_stop_above, 2),
       T_ONCE(one_word_is_one_step),
       T_ONCE(without_progress_nothing_is_extended),
       T_ONCE(a_word_before_the_stop_is_no_progress),
       T_ONCE(without_a_step_progress_extends_nothing),
       T_ONCE(without_a_hard_end_progress_extends_nothing),
       T_ONCE(progress_extends_the_grace),
       T_ONCE(a_second_signal_ends_what_progress_extended),
       T_ONCE(a_second_signal_overrules_a_veto))
