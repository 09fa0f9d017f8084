/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runners, child processes, other libraries' pools and loop threads used
 * wrongly: each call refuses it with a code and a text, changes nothing, calls
 * nothing, and leaves the coordinator usable.
 */
#include "../../support/runner_util.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static evc_coord *c;
static struct machine m;
static pid_t child; /* one that could be added */
static atomic_int foreign_calls;

static void
foreign_stop(void *arg)
{
	(void)arg;
	atomic_fetch_add(&foreign_calls, 1);
}

static evc_status
foreign_wait(void *arg)
{
	(void)arg;
	atomic_fetch_add(&foreign_calls, 1);
	return 0;
}

static evc_status
loop_set_up(evc_reactor *r, void *arg)
{
	(void)r;
	(void)arg;
	atomic_fetch_add(&foreign_calls, 1);
	return 0;
}

static void
setup(const evc_config *cfg)
{
	c = new_coord_with(NULL, cfg);
	memset(&m, 0, sizeof(m));
	atomic_store(&m.runs, 1);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	ck_assert_int_gt(child, 0);
}

/* Nothing lives, nothing was called, and the child is still ours. */
static void
teardown(void)
{
	evc_verdict v;
	int status = 0;

	ck_assert(evc_all_stopped(c));
	ck_assert_int_eq(m.asked + m.stops + m.joins + m.told, 0);
	ck_assert_int_eq(foreign_calls, 0);
	ck_assert_int_eq(waitpid(child, &status, WNOHANG), 0);
	machine_add(c, "fine", &m, NULL, 0);
	m.ends_at_stop = true;
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_ge(v.n_ended, 1);
	machine_was_joined(&m, 1);
	OK(evc_free(c));
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
}

static const evc_runner_ops no_question = { NULL, machine_stop, machine_join,
					    machine_says };

START_TEST(what_is_missing_is_refused)
{
	evc_id id = 77;

	setup(NULL);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_runner_add(NULL, "r", &machine_ops, &m, NULL, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_runner_add(c, "r", NULL, &m, NULL, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_runner_add(c, "r", &no_question, &m, NULL, &id));
	REFUSED(EVC_INVALID_ARGUMENT, evc_runner_done(NULL, 1, 0));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_child_add(NULL, "c", child, NULL, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_foreign_add(NULL, "f", foreign_stop, foreign_wait, NULL,
				NULL, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_foreign_add(c, "f", foreign_stop, NULL, NULL, NULL, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_foreign_add(c, "f", NULL, foreign_wait, NULL, NULL, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_reactor_start(NULL, "l", loop_set_up, NULL, NULL, NULL));
	ck_assert(!evc_all_stopped(NULL));
	ck_assert_uint_eq(id, 77);
	teardown();
}
END_TEST

START_TEST(an_id_of_another_kind_or_of_nobody_is_NOT_FOUND)
{
	evc_id hold = 0, thread = 0, hook = 0;

	setup(NULL);
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_thread_start(c, "thread", obey, NULL, NULL, &thread));
	OK(evc_on_stop(c, "hook", return_at_once, NULL, NULL, &hook));
	REFUSED(EVC_NOT_FOUND, evc_runner_done(c, hold, EVC_INTERNAL));
	REFUSED(EVC_NOT_FOUND, evc_runner_done(c, thread, EVC_INTERNAL));
	REFUSED(EVC_NOT_FOUND, evc_runner_done(c, hook, EVC_INTERNAL));
	REFUSED(EVC_NOT_FOUND, evc_runner_done(c, 0, EVC_INTERNAL));
	REFUSED(EVC_NOT_FOUND,
		evc_runner_done(c, hold + thread + hook, EVC_INTERNAL));
	OK(evc_raise_requested(c, NULL));
	OK(evc_member_remove(c, hook));
	OK(evc_hold_end(c, hold));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_clear_stop(c));
	teardown();
}
END_TEST

static void
nothing(void *arg)
{
	(void)arg;
}

/* Every way to bring in what this file is about. */
static evc_status
bring_in(int way, const char *name, const evc_member_opts *o, evc_id *id)
{
	switch (way) {
	case 0:
		return evc_runner_add(c, name, &machine_ops, &m, o, id);
	case 1:
		return evc_child_add(c, name, child, o, id);
	case 2:
		return evc_foreign_add(c, name, foreign_stop, foreign_wait,
				       NULL, o, id);
	default:
		return evc_reactor_start(c, name, loop_set_up, NULL, o, NULL);
	}
}

START_TEST(options_that_make_no_sense_are_refused)
{
	const evc_member_opts wrong[] = {
		{ .grace = NAN },
		{ .grace = -2 },
		{ .grace = -INFINITY },
		{ .flags = 1u << 31 },
		{ .reserved_ = { 1 } },
		{ .reserved_ = { 0, 0, 0, 0, 0, 0, 0, 1 } },
		/* for loopers and hooks alone */
		{ .flags = EVC_OWN_THREAD },
		{ .flags = EVC_PAUSED },
		{ .flags = EVC_FLUSH },
		{ .flags = EVC_ON_DRAIN },
		{ .missed = EVC_MISSED_BURST },
		{ .start = obey },
		{ .jitter = 0.5 },
		/* beside what is right */
		{ .unblock = nothing, .flags = 1u << 31 }
	};
	const evc_member_opts kick = { .flags = EVC_KICK };
	const evc_member_opts stop = { .stop = obey };

	setup(NULL);
	wrong_options_are_refused(bring_in, 4, wrong,
				  sizeof(wrong) / sizeof(wrong[0]));
	/* A loop's thread may be kicked, the others have none of ours. */
	every_way_refuses(bring_in, 3, EVC_INVALID_ARGUMENT, "EVC_KICK", "x",
			  &kick);
	/* The last way takes a teardown. */
	every_way_refuses(bring_in, 3, EVC_INVALID_ARGUMENT, "stop", "x",
			  &stop);
	teardown();
}
END_TEST

START_TEST(another_coordinators_reactor_is_refused)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *other = new_coord(loop);
	evc_member_opts opts = { .reactor = evc_home(other) };
	evc_id id = 77;
	int way;

	setup(NULL);
	for (way = 0; way < 2; way++) {
		evc_status st = bring_in(way, "name", &opts, &id);

		ck_assert_int_eq(st, -EVC_INVALID_ARGUMENT);
		ck_assert_uint_eq(id, 77);
	}
	ck_assert(evc_all_stopped(other));
	teardown();
	OK(evc_free(other));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_loop_that_was_destroyed_is_refused)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_member_opts opts = { 0 };
	evc_id id = 77;

	setup(NULL);
	OK(evc_reactor_attach(c, "gone", loop, &opts.reactor));
	ev_loop_destroy(loop);
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_runner_add(c, "r", &machine_ops, &m, &opts, &id));
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_child_add(c, "c", child, &opts, &id));
	ck_assert_uint_eq(id, 77);
	teardown();
}
END_TEST

/* Refused under STRICT_SETUP: an error with the name of the function. */
static void
recorded(evc_status code, const char *func)
{
	evc_reason r;

	ck_assert_int_eq(evc_raise_requested(c, &r), code);
	ck_assert_str_eq(r.func, func);
	ck_assert_int_eq(evc_join(c, NULL, NULL), code);
	OK(evc_clear_stop(c));
}

START_TEST(STRICT_SETUP_reports_what_is_refused)
{
	evc_config cfg = { .flags = EVC_STRICT_SETUP };
	evc_member_opts wrong = { .unblock = nothing, .jitter = 0.5 };

	setup(&cfg);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_runner_add(c, "r", NULL, NULL, NULL, NULL));
	recorded(EVC_INVALID_ARGUMENT, "evc_runner_add");
	REFUSED(EVC_NOT_FOUND, evc_child_add(c, "c", getppid(), NULL, NULL));
	recorded(EVC_NOT_FOUND, "evc_child_add");
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_foreign_add(c, "f", foreign_stop, NULL, NULL, NULL, NULL));
	recorded(EVC_INVALID_ARGUMENT, "evc_foreign_add");
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_reactor_start(c, "l", loop_set_up, NULL, &wrong, NULL));
	recorded(EVC_INVALID_ARGUMENT, "evc_reactor_start");
	/* what is refused only because of the stop is no error */
	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_CANCELLED, evc_foreign_add(c, "f", foreign_stop,
					       foreign_wait, NULL, NULL, NULL));
	REFUSED(EVC_CANCELLED,
		evc_reactor_start(c, "l", loop_set_up, NULL, NULL, NULL));
	OK(evc_raise_requested(c, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_clear_stop(c));
	teardown();
}
END_TEST

START_TEST(L5_a_fork_child_is_refused)
{
	evc_coord *volatile inherited;
	evc_id id = 0;
	int status = 0;
	pid_t pid;

	setup(NULL);
	inherited = c;
	machine_add(c, "runs", &m, NULL, 0);
	pid = fork();
	if (pid == 0) {
		CHILD_REFUSED(evc_runner_add(inherited, "r", &machine_ops, &m,
					     NULL, &id));
		CHILD_REFUSED(evc_runner_done(inherited, m.id, 0));
		CHILD_REFUSED(evc_child_add(inherited, "c", child, NULL, &id));
		CHILD_REFUSED(evc_foreign_add(inherited, "f", foreign_stop,
					      foreign_wait, NULL, NULL, &id));
		CHILD_REFUSED(evc_reactor_start(inherited, "l", loop_set_up,
						NULL, NULL, NULL));
		CHILD_REFUSED(evc_member_remove(inherited, m.id));
		CHILD(id == 0);
		CHILD(m.asked + m.stops + m.joins == 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		      "the child ended with %#x", (unsigned)status);
	/* the parent knows nothing of it */
	OK(evc_member_remove(c, m.id));
	memset(&m, 0, sizeof(m));
	atomic_store(&m.runs, 1);
	teardown();
}
END_TEST

API_MAIN("runner_wrong", what_is_missing_is_refused,
	 an_id_of_another_kind_or_of_nobody_is_NOT_FOUND,
	 options_that_make_no_sense_are_refused,
	 another_coordinators_reactor_is_refused,
	 a_loop_that_was_destroyed_is_refused,
	 STRICT_SETUP_reports_what_is_refused, L5_a_fork_child_is_refused)
