/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Child processes before the stop: what the ways in which they end mean, what
 * is shown of them, which pids are taken, and how they leave the register.
 * What the stop does to them stands in child_stop.c.
 */
#include "../../support/child_util.h"

#include <sys/resource.h>

/* One that ends by itself while a join waits and a hold stays. */
static void
ends_by_itself(enum drive d, unsigned flags, int status, int sig,
	       evc_status verdict)
{
	struct setting s;
	struct joiner j;
	evc_id hold = 0;
	struct kid k;

	begin_setting(&s, d, NULL);
	k = kid_born(TERM_DEFAULT, status, sig);
	OK(evc_hold_begin(s.c, "hold", NULL, &hold));
	kid_add(&s, "the-child", &k, 0, flags);
	join_begin(&j, s.c, 0, 0);
	ck_assert(!is_gone(s.c, k.id));
	kid_let_go(&k);
	TURN_UNTIL(&s, is_gone(s.c, k.id));
	kid_was_reaped(&k);
	ck_assert_int_eq(evc_should_stop(s.c), verdict != 0 || flags != 0);
	OK(evc_hold_end(s.c, hold));
	TURN_UNTIL(&s, atomic_load(&j.returned));
	ck_assert_int_eq(join_end(&j), verdict);
	ck_assert_uint_eq(j.v.n_errors, verdict != 0);
	ck_assert_uint_eq(j.v.n_ended, 2 + own_members(&s));
	if (verdict != 0 || flags != 0) {
		ck_assert_uint_eq(j.v.stop.kind, EVC_BY_MEMBER_END);
		ck_assert_str_eq(j.v.stop.who, "the-child");
		ck_assert_uint_eq(j.v.stop.by, k.id);
	}
	if (verdict != 0) {
		ck_assert_str_eq(j.v.error.who, "the-child");
		if (sig != 0)
			HAS_SIGNAL(j.v.error.text, sig);
		else
			HAS_NUMBER(j.v.error.text, status);
	}
	end_setting(&s);
}

START_TEST(exit_status_0_ends_it_alone)
{
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++)
		ends_by_itself(d, 0, 0, 0, 0);
}
END_TEST

START_TEST(any_other_exit_status_is_an_error_that_names_it)
{
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		ends_by_itself(d, 0, 3, 0, EVC_ABORTED);
		ends_by_itself(d, 0, 255, 0, EVC_ABORTED);
		/* these mean something after the stop alone */
		ends_by_itself(d, 0, 143, 0, EVC_ABORTED);
		ends_by_itself(d, 0, 130, 0, EVC_ABORTED);
	}
}
END_TEST

START_TEST(a_signal_is_an_error_that_names_it)
{
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		ends_by_itself(d, 0, 0, SIGKILL, EVC_ABORTED);
		ends_by_itself(d, 0, 0, SIGTERM, EVC_ABORTED);
		ends_by_itself(d, 0, 0, SIGINT, EVC_ABORTED);
		ends_by_itself(d, 0, 0, SIGUSR1, EVC_ABORTED);
	}
}
END_TEST

START_TEST(with_END_STOPS_exit_status_0_is_a_stop)
{
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++)
		ends_by_itself(d, EVC_END_STOPS, 0, 0, 0);
}
END_TEST

static void
stop_run(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	evc_request_stop(w->data, 0, "too late");
}

/* A run probes nothing before the stop: its end has to ring. */
START_TEST(in_a_run_its_end_is_noticed)
{
	struct setting s;
	evc_verdict v;
	ev_timer t;
	struct kid k;

	if (!has_pidfd())
		T_SKIP("without pidfds a run hears of it only at its stop");
	begin_setting(&s, BY_HOME, NULL);
	k = kid_born(TERM_DEFAULT, 3, 0);
	kid_add(&s, "the-child", &k, 0, 0);
	ev_timer_init(&t, stop_run, T_LIMIT, 0);
	t.data = s.c;
	ev_timer_start(s.loop, &t);
	kid_let_go(&k);
	ck_assert_int_eq(evc_run(s.c, NULL, &v), EVC_ABORTED);
	ev_timer_stop(s.loop, &t);
	ck_assert_str_eq(v.stop.who, "the-child");
	ck_assert_uint_eq(v.n_errors, 1);
	kid_was_reaped(&k);
	end_setting(&s);
}
END_TEST

START_TEST(one_that_has_ended_already_is_taken_and_reaped)
{
	struct setting s;
	evc_verdict v;
	struct kid k;
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		k = kid_born(TERM_DEFAULT, 4, 0);
		kid_let_go(&k);
		UNTIL(kid_has_ended(&k));
		kid_add(&s, "ended", &k, 0, 0);
		ck_assert_int_eq(evc_join(s.c, NULL, &v), EVC_ABORTED);
		HAS_NUMBER(v.error.text, 4);
		kid_was_reaped(&k);
		end_setting(&s);
	}
}
END_TEST

START_TEST(one_that_became_another_program_is_the_same_child)
{
	char *argv[] = { "sh", "-c", "exit 6", NULL };
	struct setting s;
	evc_verdict v;
	pid_t pid;
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		evc_member_opts opts = { 0 };

		begin_setting(&s, d, NULL);
		opts.reactor = s.far;
		pid = fork();
		if (pid == 0) {
			execv("/bin/sh", argv);
			_exit(99);
		}
		OK(evc_child_add(s.c, "sh", pid, &opts, NULL));
		ck_assert_int_eq(evc_join(s.c, NULL, &v), EVC_ABORTED);
		HAS_NUMBER(v.error.text, 6);
		ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), -1);
		end_setting(&s);
	}
}
END_TEST

START_TEST(it_is_shown_as_a_runner_with_its_pid)
{
	struct setting s;
	evc_member_info info;
	char text[4096];
	struct kid k;
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		k = kid_born(TERM_DEFAULT, 0, 0);
		kid_add(&s, "the-child", &k, 0, 0);
		OK(evc_member_get(s.c, k.id, &info));
		ck_assert_uint_eq(info.kind, EVC_RUNNER);
		ck_assert_uint_eq(info.state, EVC_LIVE);
		ck_assert_str_eq(info.name, "the-child");
		HAS_NUMBER(info.where, (int)k.pid);
		evc_report(s.c, EVC_REPORT_TEXT, text, sizeof(text));
		HAS(text, "the-child");
		HAS_NUMBER(text, (int)k.pid);
		ck_assert(!evc_all_stopped(s.c));
		REFUSED(EVC_FAILED_PRECONDITION, evc_free(s.c));
		HAS(evc_last_error(), "the-child");
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_join(s.c, NULL, NULL));
		kid_was_reaped(&k);
		end_setting(&s);
	}
}
END_TEST

/* A removed one is given up: neither signalled nor reaped. */
START_TEST(a_removed_one_is_the_programs_own_again)
{
	struct setting s;
	struct kid k;
	int d, status;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		k = kid_born(21, 20, 0);
		kid_add(&s, "the-child", &k, 0, 0);
		OK(evc_member_remove(s.c, k.id));
		REFUSED(EVC_NOT_FOUND, evc_member_remove(s.c, k.id));
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_join(s.c, NULL, NULL));
		ck_assert(!kid_has_ended(&k));
		kid_let_go(&k);
		ck_assert_int_eq(waitpid(k.pid, &status, 0), k.pid);
		ck_assert(WIFEXITED(status));
		ck_assert_int_eq(WEXITSTATUS(status), 20);
		close(k.go);
		end_setting(&s);
	}
}
END_TEST

static void
no_child(struct setting *s, pid_t pid, bool is_a_pid)
{
	evc_member_opts opts = { .reactor = s->far };
	evc_id id = 77;
	evc_status st = evc_child_add(s->c, "none", pid, &opts, &id);

	ck_assert_msg(st == (is_a_pid ? -EVC_NOT_FOUND : -EVC_INVALID_ARGUMENT),
		      "pid %d: %d", (int)pid, st);
	ck_assert_str_ne(evc_last_error(), "");
	ck_assert_uint_eq(id, 77);
}

START_TEST(a_pid_that_is_no_child_is_NOT_FOUND)
{
	struct setting s;
	int d, told[2];
	struct kid k;
	pid_t grandchild;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		no_child(&s, getpid(), true);
		no_child(&s, getppid(), true);
		no_child(&s, 1, true);
		no_child(&s, 0x3fffffff, true); /* above any pid */
		no_child(&s, 0, false);
		no_child(&s, -1, false);
		no_child(&s, -getpid(), false);
		k = kid_born(TERM_DEFAULT, 0, 0);
		kid_put_down(&k);
		no_child(&s, k.pid, true); /* reaped already */

		/* a child's child; its own pid is told by a pipe */
		OK(pipe(told));
		k.pid = fork();
		if (k.pid == 0) {
			grandchild = fork();
			if (grandchild == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				pause();
				_exit(0);
			}
			if (write(told[1], &grandchild, sizeof(grandchild)) < 0)
				_exit(1);
			waitpid(grandchild, NULL, 0);
			_exit(0);
		}
		ck_assert_int_eq(read(told[0], &grandchild, sizeof(grandchild)),
				 (int)sizeof(grandchild));
		no_child(&s, grandchild, true);
		kill(grandchild, SIGKILL);
		ck_assert_int_eq(waitpid(k.pid, NULL, 0), k.pid);
		close(told[0]);
		close(told[1]);
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_join(s.c, NULL, NULL));
		end_setting(&s);
	}
}
END_TEST

START_TEST(without_a_descriptor_it_works)
{
	struct setting s;
	struct rlimit old, none;
	evc_verdict v;
	evc_status st;
	struct kid k;
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		evc_member_opts opts = { 0 };

		begin_setting(&s, d, NULL);
		opts.reactor = s.far;
		k = kid_born(TERM_DEFAULT, 0, 0);
		getrlimit(RLIMIT_NOFILE, &old);
		none = old;
		none.rlim_cur = 0;
		setrlimit(RLIMIT_NOFILE, &none);
		st = evc_child_add(s.c, "no-fd", k.pid, &opts, &k.id);
		setrlimit(RLIMIT_NOFILE, &old);
		OK(st);
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_join(s.c, NULL, &v));
		kid_was_reaped(&k);
		end_setting(&s);
	}
}
END_TEST

/* A hundred come and go; nothing is left of them. */
START_TEST(L3_no_descriptor_no_thread_and_no_zombie_is_left)
{
	enum { N = 25 };
	struct setting s;
	struct kid k[N];
	evc_verdict v;
	int d, i;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		begin_setting(&s, d, NULL);
		for (i = 0; i < N; i++) {
			k[i] = kid_born(TERM_DEFAULT, 0, 0);
			kid_add(&s, "child", &k[i], 0, 0);
			if (i % 5 == 0)
				kid_let_go(&k[i]);
		}
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.n_ended, N + own_members(&s));
		ck_assert_uint_eq(v.n_errors, 0);
		for (i = 0; i < N; i++)
			kid_was_reaped(&k[i]);
		ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
		ck_assert_int_eq(errno, ECHILD);
		end_setting(&s);
	}
}
END_TEST

static bool
never_runs(void *arg)
{
	(void)arg;
	return false;
}

static atomic_int n_lines;

static void
hear_of_death(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)arg;
	if (level == EVC_LOG_WARNING && r == NULL &&
	    strstr(line, ": child the-child (pid ") != NULL &&
	    strstr(line, ") was killed by SIGUSR1") != NULL)
		atomic_fetch_add(&n_lines, 1);
}

/* The line comes by itself, without a join and before a stop. */
START_TEST(with_MAY_FAIL_the_line_comes_at_once_and_nothing_stops)
{
	static const evc_runner_ops ops = { .is_running = never_runs };
	evc_member_opts opts = { .flags = EVC_MAY_FAIL };
	evc_config cfg = { .log = hear_of_death };
	struct setting s;
	struct joiner j;
	evc_id hold = 0;
	struct kid k;
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		atomic_store(&n_lines, 0);
		begin_setting(&s, d, &cfg);
		OK(evc_hold_begin(s.c, "hold", NULL, &hold));
		k = kid_born(TERM_DEFAULT, 0, SIGUSR1);
		kid_add(&s, "the-child", &k, 0, EVC_MAY_FAIL);
		join_begin(&j, s.c, 0, 0);
		kid_let_go(&k);
		TURN_UNTIL(&s, atomic_load(&n_lines) == 1);
		kid_was_reaped(&k);
		ck_assert(!evc_should_stop(s.c));
		/* For children alone. */
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_runner_add(s.c, "r", &ops, NULL, &opts, NULL));
		OK(evc_hold_end(s.c, hold));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		ck_assert_int_eq(join_end(&j), 0);
		ck_assert_uint_eq(j.v.n_errors, 0);
		ck_assert_int_eq(atomic_load(&n_lines), 1);
		end_setting(&s);
	}
}
END_TEST

/* The log has news just then: the error. */
START_TEST(with_MAY_FAIL_the_line_comes_beside_an_error)
{
	evc_config cfg = { .log = hear_of_death };
	struct setting s;
	struct joiner j;
	struct kid k;
	int d;

	for (d = 0; d <= BY_FAR_LOOP; d++) {
		atomic_store(&n_lines, 0);
		begin_setting(&s, d, &cfg);
		k = kid_born(TERM_IGNORED, 0, SIGUSR1);
		kid_add(&s, "the-child", &k, 0, EVC_MAY_FAIL);
		(void)evc_fail(s.c, EVC_INTERNAL, 0, "an error");
		join_begin(&j, s.c, 0, 0);
		kid_let_go(&k);
		TURN_UNTIL(&s, atomic_load(&j.returned));
		ck_assert_int_eq(join_end(&j), EVC_INTERNAL);
		kid_was_reaped(&k);
		ck_assert_int_eq(atomic_load(&n_lines), 1);
		end_setting(&s);
	}
}
END_TEST

/* A stop of its own is none of failure. */
START_TEST(with_MAY_FAIL_and_END_STOPS_its_death_is_a_clean_stop)
{
	struct setting s;
	evc_verdict v;
	struct kid k;

	begin_setting(&s, BY_JOINER, NULL);
	k = kid_born(TERM_DEFAULT, 3, 0);
	kid_add(&s, "the-child", &k, 0, EVC_MAY_FAIL | EVC_END_STOPS);
	kid_let_go(&k);
	OK(evc_join(s.c, NULL, &v));
	kid_was_reaped(&k);
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_int_eq(v.stop.code, 0);
	ck_assert_str_eq(v.stop.text, "ended with exit status 3");
	end_setting(&s);
}
END_TEST

KERNELS_MAIN("child", with_MAY_FAIL_the_line_comes_at_once_and_nothing_stops,
	     with_MAY_FAIL_the_line_comes_beside_an_error,
	     with_MAY_FAIL_and_END_STOPS_its_death_is_a_clean_stop,
	     exit_status_0_ends_it_alone,
	     any_other_exit_status_is_an_error_that_names_it,
	     a_signal_is_an_error_that_names_it,
	     with_END_STOPS_exit_status_0_is_a_stop,
	     in_a_run_its_end_is_noticed,
	     one_that_has_ended_already_is_taken_and_reaped,
	     one_that_became_another_program_is_the_same_child,
	     it_is_shown_as_a_runner_with_its_pid,
	     a_removed_one_is_the_programs_own_again,
	     a_pid_that_is_no_child_is_NOT_FOUND,
	     without_a_descriptor_it_works,
	     L3_no_descriptor_no_thread_and_no_zombie_is_left)
