/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Child processes and the stop: SIGTERM first, SIGCONT for those that are
 * stopped, SIGKILL when the grace is over, and what each end then means.
 */
#include "../../support/child_util.h"

START_TEST(SIGTERM_and_obedience_are_clean)
{
	/* the default, 128 + SIGTERM as shells say it, and a clean exit */
	static const int term[] = { TERM_DEFAULT, 143, 0 };
	struct setting s;
	struct kid k[3];
	evc_verdict v;
	int d, i;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		for (i = 0; i < 3; i++) {
			k[i] = kid_born(term[i], 0, 0);
			kid_add(&s, "child", &k[i], 0, 0);
		}
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.n_ended, 3 + own_members(&s));
		ck_assert_uint_eq(v.n_errors, 0);
		ck_assert_uint_eq(v.n_stragglers, 0);
		for (i = 0; i < 3; i++)
			kid_was_reaped(&k[i]);
		end_setting(&s);
	}
}
END_TEST

START_TEST(SIGTERM_comes_with_the_stop_and_not_before)
{
	struct setting s;
	struct joiner j;
	struct kid k;
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		k = kid_born(TERM_DEFAULT, 0, 0);
		kid_add(&s, "child", &k, 0, 0);
		join_begin(&j, s.c, 0, 0);
		if (s.loop != NULL)
			ev_run(s.loop, EVRUN_NOWAIT);
		ck_assert(!kid_has_ended(&k));
		ck_assert(!atomic_load(&j.returned));
		OK(evc_request_stop(s.c, 0, NULL));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		kid_was_reaped(&k);
		end_setting(&s);
	}
}
END_TEST

START_TEST(SIGTERM_needs_no_join_where_there_is_a_loop)
{
	struct setting s;
	struct kid k;
	int d, by_signal;

	for (d = BY_HOME; d <= BY_FAR_LOOP; d++)
		for (by_signal = 0; by_signal < 2; by_signal++) {
			begin_setting(&s, d, NULL);
			k = kid_born(TERM_DEFAULT, 0, 0);
			kid_freeze(&k);
			kid_add(&s, "child", &k, 0, 0);
			if (by_signal) {
				OK(evc_signals_start(s.c, NULL));
				OK(kill(getpid(), SIGTERM));
				UNTIL(evc_should_stop(s.c));
			} else
				OK(evc_request_stop(s.c, 0, NULL));
			TURN_UNTIL(&s, kid_has_ended(&k));
			OK(evc_join(s.c, NULL, NULL));
			kid_was_reaped(&k);
			end_setting(&s);
		}
}
END_TEST

START_TEST(another_exit_status_after_the_stop_is_an_error)
{
	static const int status[] = { 5, 128 + SIGABRT };
	struct setting s;
	evc_verdict v;
	struct kid k;
	int d, i;

	for (d = 0; d <= BY_FAR_LOOP; d++)
		for (i = 0; i < 2; i++) {
			begin_setting(&s, d, NULL);
			k = kid_born(status[i], 0, 0);
			kid_add(&s, "not-saved", &k, 0, 0);
			OK(evc_request_stop(s.c, 0, "enough"));
			ck_assert_int_eq(evc_join(s.c, NULL, &v), EVC_ABORTED);
			ck_assert_str_eq(v.error.who, "not-saved");
			HAS_NUMBER(v.error.text, status[i]);
			ck_assert_str_eq(v.stop.text, "enough");
			ck_assert_uint_eq(v.n_stragglers, 0);
			kid_was_reaped(&k);
			end_setting(&s);
		}
}
END_TEST

/* What a terminal sends to all, or a shell says so. */
START_TEST(SIGINT_after_the_stop_is_obedience)
{
	struct setting s;
	struct kid k, shell;
	evc_verdict v;
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		k = kid_born(TERM_IGNORED, 0, SIGINT);
		shell = kid_born(130, 0, 0);
		kid_add(&s, "child", &k, 0, 0);
		kid_add(&s, "shell", &shell, 0, 0);
		OK(evc_request_stop(s.c, 0, NULL));
		kid_let_go(&k);
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.n_errors, 0);
		kid_was_reaped(&k);
		kid_was_reaped(&shell);
		end_setting(&s);
	}
}
END_TEST

/* A terminal's ^C reaches it at once, and its coordinator later. */
START_TEST(SIGINT_before_its_phase_is_obedience)
{
	evc_scope_opts opts = { .phase = 1 };
	evc_coord *scope = NULL;
	evc_id hold = 0;
	struct setting s;
	struct joiner j;
	struct kid k;
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		OK(evc_hold_begin(s.c, "hold", NULL, &hold));
		OK(evc_scope_new(s.c, "later", &opts, &scope));
		k = kid_born(TERM_IGNORED, 0, SIGINT);
		OK(evc_child_add(scope, "child", k.pid, NULL, &k.id));
		OK(evc_scope_ready(scope));
		join_begin(&j, s.c, 0, 0);
		OK(evc_request_stop(s.c, 0, NULL));
		kid_let_go(&k);
		TURN_UNTIL(&s, is_gone(scope, k.id));
		ck_assert(!evc_should_stop(scope));
		OK(evc_hold_end(s.c, hold));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		ck_assert_uint_eq(j.v.n_errors, 0);
		kid_was_reaped(&k);
		OK(evc_free(scope));
		end_setting(&s);
	}
}
END_TEST

START_TEST(a_signal_that_is_not_ours_after_the_stop_is_an_error)
{
	static const int sig[] = { SIGKILL, SIGUSR1 };
	struct setting s;
	struct joiner j;
	struct kid k;
	int i, d;

	for (i = 0; i < 2 * N_DRIVES; i++) {
		d = i / 2;
		begin_setting(&s, d, NULL);
		k = kid_born(TERM_IGNORED, 0, 0);
		kid_add(&s, "shot", &k, 0, 0);
		join_begin(&j, s.c, 0, 0);
		OK(evc_request_stop(s.c, 0, NULL));
		if (s.loop != NULL)
			ev_run(s.loop, EVRUN_NOWAIT);
		ck_assert(!kid_has_ended(&k));
		OK(kill(k.pid, sig[i % 2]));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		ck_assert_int_eq(join_end(&j), EVC_ABORTED);
		HAS_SIGNAL(j.v.error.text, sig[i % 2]);
		kid_was_reaped(&k);
		end_setting(&s);
	}
}
END_TEST

/*
 * One that does not hear SIGTERM, or is stopped and does not hear it: it lives
 * to the end of the grace, not longer, and is in the verdict by its name.
 */
static void
is_killed(enum drive d, double own_grace, double grace, bool frozen)
{
	evc_join_opts opts = { .grace = grace };
	double least = own_grace != 0 && own_grace < grace ? own_grace
		       : grace != EVC_NO_GRACE             ? grace
							   : 0;
	struct setting s;
	evc_verdict v;
	struct kid k;

	begin_setting(&s, d, NULL);
	k = kid_born(TERM_IGNORED, 0, 0);
	if (frozen)
		kid_freeze(&k);
	kid_add(&s, "deaf-child", &k, own_grace, 0);
	OK(evc_request_stop(s.c, 0, NULL));
	ck_assert_int_eq(evc_join(s.c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	/* Its end comes at once, but perhaps after the verdict; and a loop that
	   only it has kept may be late. */
	HAS(v.n_stragglers > 0 ? v.error.text : v.error.who, "deaf-child");
	ck_assert_double_ge(v.took, least * 0.999);
	ck_assert_double_lt(v.took, T_LIMIT);
	UNTIL(kid_has_ended(&k));
	ck_assert_int_eq(evc_join(s.c, NULL, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert_str_eq(v.error.who, "deaf-child");
	ck_assert_str_ne(v.error.text, "");
	ck_assert_uint_eq(v.error.by, k.id);
	/* not before the grace was over */
	ck_assert_double_ge((double)(v.error.mono_ns - v.stop.mono_ns) / 1e9,
			    least * 0.999);
	kid_was_reaped(&k);
	end_setting(&s);
}

START_TEST(at_the_end_of_the_joins_grace_SIGKILL)
{
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		is_killed(d, 0, 0.1, false);
		is_killed(d, 1000, 0.1, false);
		is_killed(d, 0, 1e-10, false);
		is_killed(d, 0, EVC_NO_GRACE, false);
	}
}
END_TEST

START_TEST(at_the_end_of_its_own_grace_SIGKILL)
{
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++)
		is_killed(d, 0.1, 100, false);
}
END_TEST

START_TEST(a_stopped_one_that_is_deaf_is_killed_as_well)
{
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++)
		is_killed(d, 0, 0.1, true);
}
END_TEST

START_TEST(a_stopped_one_is_continued_and_obeys)
{
	static const int term[] = { TERM_DEFAULT, 143, 0 };
	struct setting s;
	evc_verdict v;
	struct kid k;
	int d, i;

	for (d = 0; d <= BY_FAR_LOOP; d++)
		for (i = 0; i < 3; i++) {
			begin_setting(&s, d, NULL);
			k = kid_born(term[i], 0, 0);
			kid_freeze(&k);
			kid_add(&s, "stopped", &k, 0, 0);
			OK(evc_request_stop(s.c, 0, NULL));
			OK(evc_join(s.c, NULL, &v));
			ck_assert_uint_eq(v.n_errors, 0);
			ck_assert_double_lt(v.took, T_LIMIT);
			kid_was_reaped(&k);
			end_setting(&s);
		}
}
END_TEST

/* While the join goes on for others that have longer. */
START_TEST(its_own_grace_does_not_wait_for_the_join)
{
	struct setting s;
	struct joiner j;
	evc_id hold;
	struct kid k;
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		hold = 0;
		k = kid_born(TERM_IGNORED, 0, 0);
		OK(evc_hold_begin(s.c, "hold", NULL, &hold));
		kid_add(&s, "deaf-child", &k, 0.1, 0);
		join_begin(&j, s.c, INFINITY, 0);
		OK(evc_request_stop(s.c, 0, NULL));
		TURN_UNTIL(&s, is_gone(s.c, k.id));
		ck_assert(!atomic_load(&j.returned));
		kid_was_reaped(&k);
		ck_assert_int_eq(evc_raise_requested(s.c, NULL),
				 EVC_DEADLINE_EXCEEDED);
		OK(evc_hold_end(s.c, hold));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
		ck_assert_uint_eq(j.v.n_stragglers, 0);
		end_setting(&s);
	}
}
END_TEST

/* A member that is late, and no child of the join that gives up on it. */
START_TEST(a_join_that_goes_on_spares_the_child)
{
	evc_join_opts brief = { .grace = 0.05 };
	struct setting s;
	struct joiner j;
	evc_verdict v;
	struct kid k, l;

	begin_setting(&s, BY_JOINER, NULL);
	k = kid_born(TERM_IGNORED, 0, 0);
	l = kid_born(TERM_DEFAULT, 0, 0);
	kid_add(&s, "deaf-child", &k, 0, 0);
	kid_add(&s, "good-child", &l, 0, 0);
	join_begin(&j, s.c, INFINITY, 0);
	OK(evc_request_stop(s.c, 0, NULL));
	UNTIL(is_gone(s.c, l.id)); /* it obeyed; nobody's grace is over */
	kid_was_reaped(&l);
	let_come();
	ck_assert(!kid_has_ended(&k));
	ck_assert(!atomic_load(&j.returned));
	/* the first join whose grace is over decides */
	ck_assert_int_eq(evc_join(s.c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(j.v.n_stragglers, 0);
	kid_was_reaped(&k);
	end_setting(&s);
}
END_TEST

START_TEST(added_after_the_stop_it_is_told_and_waited_for)
{
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	struct setting s;
	evc_verdict v;
	evc_id hold = 0;
	struct kid k;
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		k = kid_born(TERM_DEFAULT, 0, 0);
		/* a runner of the far loop keeps it there after the stop */
		struct machine m = { .ends_at_stop = false };

		atomic_store(&m.runs, 1);
		machine_add(s.c, "machine", &m, s.far, 0);
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_hold_begin(s.c, "hold", &late, &hold));
		kid_add(&s, "late", &k, 0, 0);
		if (d != BY_JOINER) /* no join is needed */
			TURN_UNTIL(&s, kid_has_ended(&k));
		atomic_store(&m.runs, 0);
		OK(evc_hold_end(s.c, hold));
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.n_ended, 3 + own_members(&s));
		ck_assert_uint_eq(v.n_errors, 0);
		kid_was_reaped(&k);
		end_setting(&s);
	}
}
END_TEST

START_TEST(one_in_the_BACKGROUND_keeps_no_join_waiting)
{
	struct setting s;
	evc_verdict v;
	struct kid k;
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		k = kid_born(TERM_DEFAULT, 0, 0);
		kid_add(&s, "daemon", &k, 0, EVC_BACKGROUND);
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.stop.kind, EVC_BY_EMPTY);
		kid_was_reaped(&k);
		end_setting(&s);
	}
}
END_TEST

static void
stop_now(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	evc_request_stop(w->data, 0, "by timer");
}

START_TEST(in_a_run_all_of_it_at_once)
{
	evc_join_opts opts = { .grace = 0.3 };
	struct setting s;
	struct kid good, stopped, deaf;
	evc_verdict v;
	ev_timer t;

	begin_setting(&s, BY_HOME, NULL);
	good = kid_born(TERM_DEFAULT, 0, 0);
	stopped = kid_born(0, 0, 0);
	deaf = kid_born(TERM_IGNORED, 0, 0);
	kid_freeze(&stopped);
	kid_add(&s, "good-child", &good, 0, 0);
	kid_add(&s, "stopped-child", &stopped, 0, 0);
	kid_add(&s, "deaf-child", &deaf, 0.1, 0);
	ev_timer_init(&t, stop_now, 0.02, 0);
	t.data = s.c;
	ev_timer_start(s.loop, &t);
	ck_assert_int_eq(evc_run(s.c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_str_eq(v.stop.text, "by timer");
	UNTIL(kid_has_ended(&deaf));
	ck_assert_int_eq(evc_join(s.c, NULL, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_ended, 3);
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert_str_eq(v.error.who, "deaf-child");
	kid_was_reaped(&good);
	kid_was_reaped(&stopped);
	kid_was_reaped(&deaf);
	end_setting(&s);
}
END_TEST

KERNELS_MAIN("child_stop", SIGTERM_and_obedience_are_clean,
	     SIGTERM_comes_with_the_stop_and_not_before,
	     SIGTERM_needs_no_join_where_there_is_a_loop,
	     another_exit_status_after_the_stop_is_an_error,
	     SIGINT_after_the_stop_is_obedience,
	     SIGINT_before_its_phase_is_obedience,
	     a_signal_that_is_not_ours_after_the_stop_is_an_error,
	     at_the_end_of_the_joins_grace_SIGKILL,
	     at_the_end_of_its_own_grace_SIGKILL,
	     a_stopped_one_that_is_deaf_is_killed_as_well,
	     a_stopped_one_is_continued_and_obeys,
	     its_own_grace_does_not_wait_for_the_join,
	     a_join_that_goes_on_spares_the_child,
	     added_after_the_stop_it_is_told_and_waited_for,
	     one_in_the_BACKGROUND_keeps_no_join_waiting,
	     in_a_run_all_of_it_at_once)
