/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A join in steps: what each step answers, how long it says to sleep, options,
 * grace, rounds, and what is refused.  For steps in a poll() loop: join_poll.c.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <sys/wait.h>

/* The longest sleep without the descriptor. */
#define LONGEST 0.025

/* One step that must not decide yet; returns what it says to sleep. */
static double
pending(evc_coord *c, const evc_join_opts *opts)
{
	evc_verdict v = { .code = 77 };
	double wait = NAN;

	ck_assert_int_eq(evc_join_step(c, opts, &wait, &v), EVC_PENDING);
	ck_assert(!isnan(wait));
	ck_assert_double_ge(wait, 0);
	ck_assert_int_eq(v.code, 77); /* untouched */
	return wait;
}

/* Step until it decides; the steps alone must do. */
static evc_status
step_through(evc_coord *c, const evc_join_opts *opts, evc_verdict *v)
{
	double until = t_now() + T_LIMIT, wait;
	evc_status st;

	while ((st = evc_join_step(c, opts, &wait, v)) == EVC_PENDING) {
		ck_assert(t_now() < until);
		t_sleep(0.001);
	}
	return st;
}

START_TEST(nothing_alive_is_answered_by_the_first_step)
{
	evc_coord *c = new_coord(NULL);
	double wait = 77;
	evc_verdict v;

	ck_assert(!evc_joined(c));
	OK(evc_join_step(c, NULL, &wait, &v));
	ck_assert_double_eq(wait, 77);
	ck_assert_int_eq(v.code, 0);
	ck_assert_uint_eq(v.round, 1);
	ck_assert_uint_eq(v.stop.kind, 0);
	ck_assert(evc_joined(c));
	ck_assert(!evc_should_stop(c)); /* it asks for nothing */
	OK(evc_join_step(c, NULL, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(it_is_PENDING_until_the_last_member_has_ended)
{
	evc_coord *c = new_coord(NULL);
	evc_id hold = 0;
	evc_verdict v;
	int i;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	for (i = 0; i < 5; i++)
		pending(c, NULL);
	ck_assert(!evc_joined(c));
	ck_assert_int_eq(evc_join_step(c, NULL, NULL, NULL), EVC_PENDING);
	OK(evc_request_stop(c, 0, "now"));
	pending(c, NULL);
	OK(evc_hold_end(c, hold));
	OK(evc_join_step(c, NULL, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_str_eq(v.stop.text, "now");
	ck_assert(evc_joined(c));
	OK(evc_free(c));
}
END_TEST

START_TEST(without_the_descriptor_no_sleep_is_longer_than_25_ms)
{
	evc_join_opts for_ever = { .grace = INFINITY };
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	evc_id hold = 0;
	int i;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_thread_start(c, "stays", stay, &g, NULL, NULL));
	for (i = 0; i < 20; i++) {
		ck_assert_double_le(pending(c, &for_ever), LONGEST);
		t_sleep(0.001);
	}
	OK(evc_request_stop(c, 0, NULL));
	for (i = 0; i < 20; i++) {
		ck_assert_double_le(pending(c, &for_ever), LONGEST);
		t_sleep(0.001);
	}
	atomic_store(&g.open, 1);
	OK(evc_hold_end(c, hold));
	OK(step_through(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(with_the_descriptor_INFINITY_when_it_alone_counts)
{
	evc_join_opts for_ever = { .grace = INFINITY };
	evc_coord *c = new_coord(NULL);
	evc_id hold = 0;
	int fd = evc_join_fd(c);

	ck_assert_int_ge(fd, 0);
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	ck_assert(isinf(pending(c, &for_ever)));
	ck_assert(!readable(fd));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(readable(fd)); /* there is something to decide */
	ck_assert(isinf(pending(c, &for_ever)));
	ck_assert(!readable(fd)); /* the step has seen to it */
	OK(evc_hold_end(c, hold));
	ck_assert(readable(fd));
	OK(evc_join_step(c, NULL, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(with_a_grace_the_sleep_ends_with_it)
{
	evc_join_opts opts = { .grace = 1000 };
	evc_coord *c = new_coord(NULL);
	evc_id hold = 0;
	double wait;

	ck_assert_int_ge(evc_join_fd(c), 0);
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	ck_assert(isinf(pending(c, &opts))); /* no stop: no grace */
	OK(evc_request_stop(c, 0, NULL));
	wait = pending(c, &opts);
	ck_assert_double_le(wait, 1000);
	ck_assert_double_gt(wait, 0);
	OK(evc_hold_end(c, hold));
	OK(evc_join_step(c, NULL, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(the_descriptor_may_be_made_at_any_time)
{
	evc_coord *c = new_coord(NULL);
	evc_join_opts for_ever = { .grace = INFINITY };
	evc_id hold[2] = { 0 };
	int fd, fds = t_count_fds();

	OK(evc_hold_begin(c, "a", NULL, &hold[0]));
	OK(evc_hold_begin(c, "b", NULL, &hold[1]));
	ck_assert_double_le(pending(c, &for_ever), LONGEST);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_hold_end(c, hold[0]));
	/* in the middle of a join: what came before is not missed */
	fd = evc_join_fd(c);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(evc_join_fd(c), fd);
	ck_assert_int_eq(t_count_fds(), fds + 1);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	ck_assert(readable(fd));
	ck_assert(isinf(pending(c, NULL)));
	ck_assert(!readable(fd));
	OK(evc_hold_end(c, hold[1]));
	ck_assert(readable(fd));
	OK(evc_join_step(c, NULL, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(t_count_fds(), fds);

	/* made before anything, and after everything */
	c = new_coord(NULL);
	ck_assert_int_ge(fd = evc_join_fd(c), 0);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(readable(fd));
	OK(evc_join_step(c, NULL, NULL, NULL));
	OK(evc_free(c));
	c = new_coord(NULL);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(readable(evc_join_fd(c)));
	OK(evc_join_step(c, NULL, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(t_count_fds(), fds);
}
END_TEST

START_TEST(J1_the_grace_counts_from_the_stop)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_join_opts opts = { .grace = 10 };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_id hold = 0;
	evc_verdict v;
	int with_fd;

	for (with_fd = 0; with_fd < 2; with_fd++) {
		if (with_fd)
			ck_assert_int_ge(evc_join_fd(c), 0);
		OK(evc_hold_begin(c, "hold", NULL, &hold));
		pending(c, &opts);
		scripted_advance(10000); /* before a stop no time counts */
		pending(c, &opts);
		OK(evc_request_stop(c, 0, NULL));
		scripted_advance(9.5);
		ck_assert_double_le(pending(c, &opts), 0.51);
		scripted_advance(1);
		ck_assert_int_eq(evc_join_step(c, &opts, NULL, &v),
				 EVC_DEADLINE_EXCEEDED);
		ck_assert_uint_eq(v.n_stragglers, 1);
		HAS(v.error.text, "hold");
		ck_assert_double_eq_tol(v.took, 10.5, 0.001);
		/* also for a join that begins only now: nothing is left ... */
		ck_assert_int_eq(evc_join_step(c, &opts, NULL, &v),
				 EVC_DEADLINE_EXCEEDED);
		/* ... of ten, but of twenty */
		opts.grace = 20;
		pending(c, &opts);
		scripted_advance(9);
		pending(c, &opts);
		scripted_advance(1);
		ck_assert_int_eq(evc_join_step(c, &opts, NULL, &v),
				 EVC_DEADLINE_EXCEEDED);
		opts.grace = 10;
		OK(evc_hold_end(c, hold));
		OK(evc_join_step(c, NULL, NULL, &v));
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(later_steps_take_their_options_from_the_first)
{
	evc_join_opts none = { .grace = EVC_NO_GRACE };
	evc_join_opts for_ever = { .grace = INFINITY };
	evc_coord *c = new_coord(NULL);
	evc_id hold = 0;
	evc_verdict v;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_request_stop(c, 0, NULL));
	pending(c, &for_ever);
	pending(c, &none);
	OK(evc_hold_end(c, hold));
	OK(evc_join_step(c, NULL, NULL, &v));
	OK(evc_clear_stop(c));

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	pending(c, &none);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join_step(c, &for_ever, NULL, &v),
			 EVC_DEADLINE_EXCEEDED);
	/* it is over: the next step begins another one, with its own */
	pending(c, &for_ever);
	OK(evc_hold_end(c, hold));
	OK(evc_join_step(c, NULL, NULL, &v));
	OK(evc_free(c));
}
END_TEST

START_TEST(STOP_FIRST_STRICT_and_IGNORE_LIVE)
{
	evc_join_opts first = { .flags = EVC_JOIN_STOP_FIRST };
	evc_join_opts strict = { .flags = EVC_JOIN_STRICT };
	evc_join_opts ignore = { .flags = EVC_JOIN_IGNORE_LIVE,
				 .grace = EVC_NO_GRACE };
	evc_coord *c = new_coord(NULL);
	double wait = 77;
	evc_verdict v = { .code = 77 };
	evc_id hold = 0;

	REFUSED(EVC_FAILED_PRECONDITION, evc_join_step(c, &strict, &wait, &v));
	ck_assert_int_eq(v.code, 77);
	ck_assert_double_eq(wait, 77);
	ck_assert(!evc_joined(c));
	OK(evc_clear_stop(c)); /* no join was begun */
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	pending(c, &first);
	ck_assert(evc_should_stop(c));
	OK(evc_hold_end(c, hold));
	OK(evc_join_step(c, NULL, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, EVC_BY_REQUEST);
	ck_assert_int_eq(v.stop.tid, own_tid());
	OK(evc_clear_stop(c));

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join_step(c, &ignore, NULL, &v));
	ck_assert_uint_eq(v.n_stragglers, 1);
	OK(evc_hold_end(c, hold));
	OK(evc_join_step(c, &strict, NULL, &v));
	OK(evc_free(c));
}
END_TEST

START_TEST(only_BACKGROUND_members_left_ends_in_a_stop)
{
	evc_member_opts back = { .flags = EVC_BACKGROUND };
	evc_coord *c = new_coord(NULL);
	evc_id front = 0;
	evc_verdict v;

	OK(evc_hold_begin(c, "front", NULL, &front));
	OK(evc_thread_start(c, "back", obey, NULL, &back, NULL));
	pending(c, NULL);
	ck_assert(!evc_should_stop(c));
	OK(evc_hold_end(c, front));
	OK(step_through(c, NULL, &v));
	ck_assert(evc_should_stop(c));
	ck_assert_uint_eq(v.stop.kind, EVC_BY_EMPTY);
	ck_assert_uint_eq(v.n_ended, 2);
	OK(evc_free(c));
}
END_TEST

START_TEST(an_error_is_the_verdict_and_stays_it)
{
	evc_coord *c = new_coord(NULL);
	evc_status result = EVC_DATA_LOSS;
	evc_verdict v, w;

	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	OK(evc_thread_start(c, "fails", return_at_once, &result, NULL, NULL));
	ck_assert_int_eq(step_through(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_str_eq(v.error.who, "fails");
	ck_assert_uint_eq(v.n_ended, 2);
	ck_assert_int_eq(evc_join_step(c, NULL, NULL, &w), EVC_DATA_LOSS);
	ck_assert_int_eq(evc_join(c, NULL, &w), EVC_DATA_LOSS);
	ck_assert_double_eq(w.took, v.took);
	OK(evc_free(c));
}
END_TEST

START_TEST(the_second_round_has_a_join_of_its_own)
{
	evc_coord *c = new_coord(NULL);
	evc_id hold = 0;
	evc_verdict v;
	int fd = evc_join_fd(c), i;

	for (i = 1; i <= 5; i++) {
		OK(evc_hold_begin(c, "hold", NULL, &hold));
		pending(c, NULL);
		ck_assert(!readable(fd));
		OK(evc_request_stop(c, 0, NULL));
		ck_assert(readable(fd));
		pending(c, NULL);
		/* a join in steps is one that waits */
		REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
		OK(evc_hold_end(c, hold));
		REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
		REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
		ck_assert(readable(fd));
		OK(evc_join_step(c, NULL, NULL, &v));
		ck_assert_uint_eq(v.round, (unsigned)i);
		ck_assert_uint_eq(v.n_ended, 1);
		OK(evc_clear_stop(c));
		ck_assert(!evc_joined(c));
		ck_assert_int_eq(evc_join_fd(c), fd);
	}
	OK(evc_free(c));
}
END_TEST

/* ---- stop hooks ---- */

/* Where a hook's loop belongs to the thread that steps. */
enum place { AT_HOME, BESIDE, IN_A_SCOPE, PLACES };

static evc_coord *
place_hook(struct ev_loop *loop, enum place place, atomic_int *n_calls,
	   evc_coord **ret_scope)
{
	evc_coord *c = new_coord(place == AT_HOME ? loop : NULL), *owner = c;
	evc_member_opts opts = { 0 };

	*ret_scope = NULL;
	if (place == IN_A_SCOPE) {
		OK(evc_scope_new(c, "scope", NULL, ret_scope));
		owner = *ret_scope;
	}
	if (place != AT_HOME)
		OK(evc_reactor_attach(owner, "loop", loop, &opts.reactor));
	OK(evc_on_stop(owner, "the-hook", count_hook, n_calls, &opts, NULL));
	if (*ret_scope != NULL)
		OK(evc_scope_ready(*ret_scope));
	return c;
}

START_TEST(a_hook_on_a_loop_of_this_thread_is_waited_for)
{
	evc_join_opts for_ever = { .grace = INFINITY };
	struct ev_loop *loop;
	evc_coord *c, *scope;
	atomic_int n_calls;
	int place, i, fd;

	for (place = 0; place < PLACES; place++) {
		n_calls = 0;
		loop = ev_loop_new(0);
		c = place_hook(loop, (enum place)place, &n_calls, &scope);
		fd = evc_join_fd(c);
		OK(evc_request_stop(c, 0, NULL));
		/* Nobody else can turn the loop: it is not called meanwhile. */
		for (i = 0; i < 5; i++)
			ck_assert(isinf(pending(c, &for_ever)));
		ck_assert_int_eq(n_calls, 0);
		ck_assert(!evc_joined(c));
		ev_run(loop, EVRUN_NOWAIT);
		ck_assert_int_eq(n_calls, 1);
		ck_assert(readable(fd));
		OK(evc_join_step(c, NULL, NULL, NULL));
		if (scope != NULL)
			OK(evc_free(scope));
		OK(evc_free(c));
		ev_loop_destroy(loop);
	}
}
END_TEST

START_TEST(a_hook_whose_loop_does_not_turn_is_late_by_name)
{
	evc_join_opts opts = { .grace = 0.05 };
	struct ev_loop *loop;
	evc_coord *c, *scope;
	atomic_int n_calls;
	int place;
	evc_verdict v;

	for (place = 0; place < PLACES; place++) {
		n_calls = 0;
		loop = ev_loop_new(0);
		c = place_hook(loop, (enum place)place, &n_calls, &scope);
		OK(evc_request_stop(c, 0, NULL));
		ck_assert_int_eq(step_through(c, &opts, &v),
				 EVC_DEADLINE_EXCEEDED);
		ck_assert_uint_eq(v.n_stragglers, 1);
		HAS(v.error.text, "hook the-hook (loop silent)");
		ck_assert_int_eq(n_calls, 0);
		if (scope != NULL)
			OK(evc_free(scope));
		OK(evc_free(c));
		ev_loop_destroy(loop);
	}
}
END_TEST

START_TEST(without_a_loop_a_hook_is_waited_for)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };

	OK(evc_on_stop(c, "the-hook", stay, &g, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&g.in));
	pending(c, NULL);
	atomic_store(&g.open, 1);
	OK(step_through(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

static evc_status
step_inside(evc_coord *c, void *arg)
{
	*(evc_status *)arg = evc_join_step(c, NULL, NULL, NULL);
	return 0;
}

START_TEST(a_hook_that_steps_leaves_out_itself_and_no_other)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_status first = 77, second = 77;
	evc_coord *c = new_coord(loop);

	OK(evc_on_stop(c, "first", step_inside, &first, NULL, NULL));
	OK(evc_on_stop(c, "second", step_inside, &second, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	pending(c, NULL);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(first, EVC_PENDING); /* the second is still due */
	OK(second);
	OK(evc_join_step(c, NULL, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(wrong_use_is_refused)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL), *other = new_coord(loop);
	pthread_t none = { 0 };
	const evc_join_opts wrong[] = { { .grace = NAN },
					{ .grace = -2 },
					{ .grace = -INFINITY },
					{ .flags = 1u << 3 },
					{ .flags = 1u << 31 },
					{ .n_threads = 1 },
					{ .threads = &none, .n_threads = 1 },
					{ .reactor = evc_home(other) },
					{ .reserved_ = { 1 } },
					{ .reserved_ = { 0, 0, 0, 0, 0, 0, 0,
							 1 } } };
	double wait = 77;
	evc_verdict v = { .code = 77 };
	size_t i;

	REFUSED(EVC_INVALID_ARGUMENT, evc_join_step(NULL, NULL, &wait, &v));
	REFUSED(EVC_INVALID_ARGUMENT, evc_join_fd(NULL));
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_join_step(c, &wrong[i], &wait, &v));
	ck_assert_int_eq(v.code, 77);
	ck_assert_double_eq(wait, 77);
	ck_assert(!evc_joined(c));
	FREE_ALL(c, other);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(L5_a_fork_child_is_refused)
{
	evc_coord *volatile c = new_coord(NULL), *volatile d = new_coord(NULL);
	int fd = evc_join_fd(c), status = 0;
	evc_id hold = 0;
	pid_t pid;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	pending(c, NULL);
	pid = fork();
	if (pid == 0) {
		CHILD_REFUSED(evc_join_step(c, NULL, NULL, NULL));
		CHILD_REFUSED(evc_join_step(d, NULL, NULL, NULL));
		CHILD_REFUSED(evc_join_fd(c));
		CHILD_REFUSED(evc_join_fd(d));
		CHILD(!evc_joined(c));
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		      "the child ended with %#x", (unsigned)status);
	pending(c, NULL);
	OK(evc_hold_end(c, hold));
	ck_assert(readable(fd));
	OK(evc_join_step(c, NULL, NULL, NULL));
	FREE_ALL(c, d);
}
END_TEST

API_MAIN("join_step", nothing_alive_is_answered_by_the_first_step,
	 it_is_PENDING_until_the_last_member_has_ended,
	 without_the_descriptor_no_sleep_is_longer_than_25_ms,
	 with_the_descriptor_INFINITY_when_it_alone_counts,
	 with_a_grace_the_sleep_ends_with_it,
	 the_descriptor_may_be_made_at_any_time,
	 J1_the_grace_counts_from_the_stop,
	 later_steps_take_their_options_from_the_first,
	 STOP_FIRST_STRICT_and_IGNORE_LIVE,
	 only_BACKGROUND_members_left_ends_in_a_stop,
	 an_error_is_the_verdict_and_stays_it,
	 the_second_round_has_a_join_of_its_own,
	 a_hook_on_a_loop_of_this_thread_is_waited_for,
	 a_hook_whose_loop_does_not_turn_is_late_by_name,
	 without_a_loop_a_hook_is_waited_for,
	 a_hook_that_steps_leaves_out_itself_and_no_other, wrong_use_is_refused,
	 L5_a_fork_child_is_refused)
