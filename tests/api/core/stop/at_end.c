/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stop that is not over in its time: the log says which loop hangs, and
 * at_end ends the process, whatever hangs; an answer of a join, a clear and a
 * free turn it off.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <signal.h>
#include <sys/wait.h>

#include "../../../support/host.h"

struct end {
	int status;      /* as of waitpid */
	char said[65536]; /* on standard error, and by the log hook */
};

static void
write_line(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)r;
	dprintf(2, "%s%d: %s\n", (const char *)arg, level, line);
}

/* Run fn in a child; what the child says, and how it ends. */
static struct end
child(void (*fn)(void))
{
	static struct end e;
	size_t len = 0;
	ssize_t n;
	pid_t pid;
	int fd[2];

	OK(pipe(fd));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		dup2(fd[1], 2);
		close(fd[0]);
		close(fd[1]);
		fn();
		_exit(7);
	}
	close(fd[1]);
	while ((n = read(fd[0], e.said + len, sizeof(e.said) - 1 - len)) > 0)
		len += (size_t)n;
	e.said[len] = '\0';
	close(fd[0]);
	ck_assert_int_eq(waitpid(pid, &e.status, 0), pid);
	return e;
}

#define EXITED(e, code) \
	ck_assert_msg(WIFEXITED((e).status) && \
			      WEXITSTATUS((e).status) == (code), \
		      "status %#x: %s", (e).status, (e).said)

#define IN_CHILD(call) \
	do { \
		if ((call) < 0) { \
			dprintf(2, "%s: %s\n", #call, evc_last_error()); \
			_exit(98); \
		} \
	} while (0)

static evc_coord *
front(struct ev_loop *loop, bool log, unsigned at_end, double budget)
{
	evc_config cfg = { .name = "front", .arg = (void *)"L" };
	evc_escalation_opts o = { .budget = budget, .at_end = at_end };
	evc_coord *c;

	cfg.log = log ? write_line : NULL;
	IN_CHILD(evc_new(loop, &cfg, &c));
	IN_CHILD(evc_escalation_set(c, &o));
	return c;
}

static evc_coord *stopped;

static void
hang(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)loop;
	(void)t;
	(void)revents;
	evc_request_stop(stopped, 0, "from the callback that hangs");
	for (;;)
		pause();
}

/* Run c; the loop calls fn in its first turn. */
static void
run_with(evc_coord *c, struct ev_loop *loop,
	 void (*fn)(struct ev_loop *, ev_timer *, int))
{
	ev_timer t;

	stopped = c;
	ev_timer_init(&t, fn, 0., 0.);
	ev_timer_start(loop, &t);
	(void)!evc_run(c, NULL, NULL);
}

static void
hung_loop(void)
{
	struct ev_loop *loop = ev_loop_new(0);

	run_with(front(loop, true, EVC_AT_END_EXIT, 0.2), loop, hang);
}

START_TEST(a_hung_loop_is_named_and_the_process_ends)
{
	struct end e = child(hung_loop);

	if (t_under_qemu())
		T_SKIP("/proc shows the calls of the emulator");
	EXITED(e, 124);
	HAS(e.said, "L6: stop of front requested: OK (0): from the callback");
	HAS(e.said, "L4: stop of front is about to end; loop home has not "
		    "turned: in a callback of the application\n");
	HAS(e.said, "L3: front: the time of the stop is over after 0.");
	HAS(e.said, "; loop home has not turned: in a callback of the "
		    "application\n");
	HAS(e.said, "L3: front: loop \"home\" (tid ");
	HAS(e.said, "kernel: S in pause");
	HAS(e.said, "evcoord: stop of front is not over in its time: leaving "
		    "with status 124\n");
}
END_TEST

static void
hung_loop_without_log(void)
{
	struct ev_loop *loop = ev_loop_new(0);

	run_with(front(loop, false, EVC_AT_END_EXIT, 0.2), loop, hang);
}

START_TEST(without_a_log_hook_the_report_goes_to_standard_error)
{
	struct end e = child(hung_loop_without_log);

	EXITED(e, 124);
	HAS(e.said, "coordinator \"front\", round 1: stopping");
	HAS(e.said, "loop \"home\" (tid ");
	HAS(e.said, "leaving with status 124");
}
END_TEST

static evc_status
hang_thread(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	for (;;)
		pause();
	return 0;
}

static void
late_join_without_log(void)
{
	evc_coord *c = front(NULL, false, EVC_AT_END_EXIT, 0.2);

	IN_CHILD(evc_thread_start(c, "stuck", hang_thread, NULL, NULL, NULL));
	IN_CHILD(evc_request_stop(c, 0, ""));
	_exit(evc_join(c, NULL, NULL) == EVC_DEADLINE_EXCEEDED ? 3 : 4);
}

/* The program may end at once, as README's does. */
START_TEST(the_report_of_a_late_join_is_out_when_the_join_returns)
{
	struct end e = child(late_join_without_log);

	EXITED(e, 3);
	HAS(e.said, "coordinator \"front\", round 1: stopping");
	HAS(e.said, "thread \"stuck\"");
}
END_TEST

static evc_status
hang_looper(evc_coord *c, void *arg)
{
	(void)arg;
	evc_fail(c, EVC_DATA_LOSS, 0, "an error, and then nothing");
	for (;;)
		pause();
	return 0;
}

static void
hung_looper(void)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = front(loop, true, EVC_AT_END_EXIT, 0.2);

	IN_CHILD(evc_looper_start(c, "tick", 0.001, hang_looper, NULL, NULL,
				  NULL));
	(void)!evc_run(c, NULL, NULL);
}

START_TEST(after_an_error_the_status_is_1)
{
	struct end e = child(hung_looper);

	EXITED(e, 1);
	HAS(e.said, "L3: front: error DATA_LOSS (15): an error, and then");
	HAS(e.said, "loop home has not turned: in looper tick\n");
}
END_TEST

static void
never(int signo)
{
	(void)signo;
	_exit(97);
}

static void
abort_me(void)
{
	struct ev_loop *loop = ev_loop_new(0);

	signal(SIGABRT, never);
	run_with(front(loop, true, EVC_AT_END_ABORT, 0.2), loop, hang);
}

START_TEST(an_abort_calls_no_handler)
{
	struct end e = child(abort_me);

	ck_assert(WIFSIGNALED(e.status));
	ck_assert_int_eq(WTERMSIG(e.status), SIGABRT);
	HAS(e.said, "not over in its time: aborting\n");
}
END_TEST

static void
no_join(void)
{
	evc_coord *c = front(NULL, true, EVC_AT_END_EXIT, 0.2);

	evc_request_stop(c, 0, "main never joins");
	for (;;)
		pause();
}

START_TEST(a_program_that_never_joins_ends_too)
{
	struct end e = child(no_join);

	EXITED(e, 124);
	HAS(e.said, "the time of the stop is over");
}
END_TEST

static void
hang_in_log(int level, const char *line, const evc_reason *r, void *arg)
{
	write_line(level, line, r, arg);
	for (;;)
		pause();
}

static void
hung_log(void)
{
	evc_config cfg = { .name = "front", .log = hang_in_log,
			   .arg = (void *)"L" };
	evc_escalation_opts o = { .budget = 0.2, .at_end = EVC_AT_END_EXIT };
	evc_coord *c;

	IN_CHILD(evc_new(NULL, &cfg, &c));
	IN_CHILD(evc_escalation_set(c, &o));
	evc_request_stop(c, 0, NULL);
	for (;;)
		pause();
}

START_TEST(a_log_hook_that_hangs_delays_nothing)
{
	struct end e = child(hung_log);

	EXITED(e, 124);
	HAS(e.said, "leaving with status 124");
}
END_TEST

/* ---- who is late is named, whatever hangs ---- */

static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held;

static evc_status
hang_with_the_lock(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	pthread_mutex_lock(&taken);
	atomic_store(&held, 1);
	for (;;)
		pause();
	return 0;
}

/* A stop that a thread with the lock survives. */
static void
hold_the_lock(evc_coord *c)
{
	IN_CHILD(evc_thread_start(c, "holder", hang_with_the_lock, NULL, NULL,
				  NULL));
	while (!atomic_load(&held))
		t_sleep(0.001);
	evc_request_stop(c, 0, NULL);
}

static void
lock_to_log(int level, const char *line, const evc_reason *r, void *arg)
{
	pthread_mutex_lock(&taken);
	write_line(level, line, r, arg);
	pthread_mutex_unlock(&taken);
}

static evc_status
until_the_stop(evc_coord *c, void *arg)
{
	evc_wait_for_stop(c, INFINITY);
	atomic_store((atomic_int *)arg, 1);
	return 0;
}

static void
log_behind_a_lock(void)
{
	evc_config cfg = { .name = "front", .log = lock_to_log,
			   .arg = (void *)"L" };
	evc_escalation_opts o = { .budget = 0.2, .at_end = EVC_AT_END_EXIT };
	static atomic_int gone;
	evc_coord *c;

	IN_CHILD(evc_new(NULL, &cfg, &c));
	IN_CHILD(evc_escalation_set(c, &o));
	IN_CHILD(evc_thread_start(c, "gone", until_the_stop, &gone, NULL,
				  NULL));
	hold_the_lock(c);
	for (;;)
		pause();
}

START_TEST(the_last_line_names_who_is_late)
{
	struct end e = child(log_behind_a_lock);

	EXITED(e, 124);
	ck_assert_str_eq(e.said, "evcoord: stop of front is not over in its "
				 "time: leaving with status 124; still "
				 "running: holder; no join waits\n");
}
END_TEST

static bool
runs(void *arg)
{
	(void)arg;
	return true;
}

static void
describe_behind_the_lock(char *buf, size_t n, void *arg)
{
	(void)arg;
	pthread_mutex_lock(&taken);
	snprintf(buf, n, "3 connections");
	pthread_mutex_unlock(&taken);
}

static size_t
scope_behind_the_lock(unsigned form, char *buf, size_t n, void *arg)
{
	(void)form;
	pthread_mutex_lock(&taken);
	pthread_mutex_unlock(&taken);
	(void)arg;
	return (size_t)snprintf(buf, n, "3 connections");
}

static bool joins;

static void
descriptions_behind_a_lock(void)
{
	evc_runner_ops ops = { .is_running = runs,
			       .describe = describe_behind_the_lock };
	evc_scope_opts so = { .describe = scope_behind_the_lock };
	evc_coord *c = front(NULL, true, EVC_AT_END_EXIT, 0.3), *s;

	IN_CHILD(evc_runner_add(c, "smtp", &ops, NULL, NULL, NULL));
	IN_CHILD(evc_scope_new(c, "mail", &so, &s));
	IN_CHILD(evc_hold_begin(s, "letter", NULL, NULL));
	IN_CHILD(evc_scope_ready(s));
	hold_the_lock(c);
	if (joins && evc_join(c, NULL, NULL) == EVC_DEADLINE_EXCEEDED)
		_exit(7);
	for (;;)
		pause();
}

static void
check_descriptions(bool join)
{
	struct end e;

	joins = join;
	e = child(descriptions_behind_a_lock);
	EXITED(e, joins ? 7 : 124);
	/* The names come before any describe is called. */
	HAS(e.said, "L4: stop of front is about to end; still running: smtp, "
		    "holder\n");
	HAS(e.said, "L4: stop of mail is about to end; still running: "
		    "letter\n");
	HAS(e.said, "L3: front: the time of the stop is over after 0.3");
	HAS(e.said, "; still running: smtp, holder, mail/letter");
	HAS(e.said, "runner \"smtp\" in its describe");
	HAS(e.said, "thread \"holder\"");
	HAS(e.said, "scope \"mail\"");
	HAS(e.said, "L3: front:     in its describe\n");
	HAS(e.said, "hold \"letter\"");
}

START_TEST(a_describe_that_hangs_costs_what_it_says)
{
	check_descriptions(false);
}
END_TEST

START_TEST(a_describe_that_hangs_costs_a_join_nothing)
{
	check_descriptions(true);
}
END_TEST

static void
answered(void)
{
	evc_coord *c = front(NULL, true, EVC_AT_END_EXIT, 0.1);
	evc_verdict v;
	evc_id id;

	IN_CHILD(evc_hold_begin(c, "late", NULL, &id));
	evc_request_stop(c, 0, NULL);
	if (evc_join(c, NULL, &v) != EVC_DEADLINE_EXCEEDED)
		_exit(96);
	t_sleep(0.5); /* a second thread would have ended the process */
	_exit(7);
}

START_TEST(the_answer_of_a_join_turns_it_off)
{
	struct end e = child(answered);

	EXITED(e, 7);
	HAS(e.said, "the time of the stop is over after 0.1");
	HAS(e.said, "hold \"late\"");
	HAS(e.said, "L3: stop of front ended after 0.1");
}
END_TEST

static void
cleared(void)
{
	evc_coord *c = front(NULL, false, EVC_AT_END_EXIT, 1);

	evc_request_stop(c, 0, NULL);
	IN_CHILD(evc_clear_stop(c));
	t_sleep(1.5);
	evc_request_stop(c, 0, NULL);
	IN_CHILD(evc_free(c));
	t_sleep(1.5);
	_exit(7);
}

START_TEST(a_clear_and_a_free_turn_it_off)
{
	struct end e = child(cleared);

	EXITED(e, 7);
	ck_assert_str_eq(e.said, "");
}
END_TEST

static void
extended(void)
{
	evc_config cfg = { .name = "front", .clock = scripted_clock };
	evc_escalation_opts o = { .budget = 10, .hard_end = 30,
				  .at_end = EVC_AT_END_EXIT };
	double granted;
	evc_coord *c;
	evc_id id;

	IN_CHILD(evc_new(NULL, &cfg, &c));
	IN_CHILD(evc_escalation_set(c, &o));
	IN_CHILD(evc_hold_begin(c, "late", NULL, &id));
	evc_request_stop(c, 0, NULL);
	IN_CHILD(evc_extend_stop(c, id, 5, "still writing", &granted));
	scripted_advance(12);
	t_sleep(0.4); /* three looks of the second thread */
	dprintf(2, "still here\n");
	scripted_advance(4);
	for (;;)
		pause();
}

START_TEST(an_extension_moves_the_end)
{
	struct end e = child(extended);

	EXITED(e, 124);
	HAS(e.said, "still here\n");
}
END_TEST

static void
second_signal(void)
{
	evc_coord *c = front(NULL, true, EVC_AT_END_EXIT, 3600);
	evc_signals_opts s = { .short_grace = 0.1 };

	IN_CHILD(evc_signals_start(c, &s));
	raise(SIGTERM);
	raise(SIGTERM);
	for (;;)
		pause();
}

START_TEST(a_second_signal_shortens_the_time)
{
	struct end e = child(second_signal);

	EXITED(e, 124);
}
END_TEST

START_TEST(scopes_and_unknown_values_are_refused)
{
	evc_escalation_opts o = { .budget = 1, .at_end = 3 };
	evc_coord *c = new_coord(NULL), *s;

	REFUSED(EVC_INVALID_ARGUMENT, evc_escalation_set(c, &o));
	OK(evc_scope_new(c, "scope", NULL, &s));
	o.at_end = EVC_AT_END_EXIT;
	REFUSED(EVC_INVALID_ARGUMENT, evc_escalation_set(s, &o));
	OK(evc_escalation_set(c, &o));
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

/* ---- answered, and not returned ---- */

static void
run_inside(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)t;
	(void)revents;
	evc_request_stop(stopped, 0, "the callback runs its loop");
	ev_run(loop, 0); /* other watchers keep it */
	for (;;)
		ev_run(loop, EVRUN_ONCE);
}

static void
nothing(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)loop;
	(void)t;
	(void)revents;
}

static void
nested_run(void)
{
	struct ev_loop *loop = ev_loop_new(0);
	ev_timer other;

	ev_timer_init(&other, nothing, 0.05, 0.05);
	ev_timer_start(loop, &other);
	run_with(front(loop, true, EVC_AT_END_EXIT, 0.2), loop, run_inside);
}

START_TEST(an_answer_inside_a_nested_run_does_not_turn_it_off)
{
	struct end e = child(nested_run);

	EXITED(e, 124);
	HAS(e.said, "stop of front ended after");
	HAS(e.said, "; a join is answered, and has not returned: a run of the "
		    "loop inside another one");
	HAS(e.said, "leaving with status 124");
}
END_TEST

static void *
join_too(void *c)
{
	if (evc_join(c, NULL, NULL) == 0)
		dprintf(2, "the second join has returned\n");
	return NULL;
}

static void
hang_beside_a_join(struct ev_loop *loop, ev_timer *t, int revents)
{
	pthread_t joins_too;

	(void)loop;
	(void)t;
	(void)revents;
	evc_request_stop(stopped, 0, "from the callback that hangs");
	if (pthread_create(&joins_too, NULL, join_too, stopped) != 0 ||
	    pthread_detach(joins_too) != 0)
		_exit(97);
	for (;;)
		pause();
}

static void
second_join(void)
{
	struct ev_loop *loop = ev_loop_new(0);

	run_with(front(loop, true, EVC_AT_END_EXIT, 0.2), loop,
		 hang_beside_a_join);
}

static void
on_answer(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	*(bool *)arg = true;
}

/* A host runs until its join is answered; the run then returns, or not. */
static void
run_host(bool returns)
{
	evc_join_opts until = { .flags = EVC_JOIN_UNTIL_STOP };
	evc_coord *c = front(NULL, true, EVC_AT_END_EXIT, 0.2);
	bool answered = false;
	struct hosted t;
	struct host h;

	host_init(&h);
	hosted_init(&t, &h, c, "ui");
	IN_CHILD(evc_reactor_host_runs(t.r, true));
	IN_CHILD(evc_join_start(c, on_answer, &answered, &until));
	evc_request_stop(c, 0, NULL);
	while (!answered)
		host_once(&h, 100);
	if (returns)
		IN_CHILD(evc_reactor_host_runs(t.r, false));
	t_sleep(returns ? 2.5 : T_LIMIT);
	_exit(7);
}

static void
host_lives_on(void)
{
	run_host(false);
}

static void
host_returns(void)
{
	run_host(true);
}

START_TEST(the_run_of_a_host_turns_it_off_when_it_returns)
{
	struct end e = child(host_lives_on);

	EXITED(e, 124);
	HAS(e.said, "; a join is answered, and has not returned");
	ck_assert_ptr_null(strstr(e.said, "no join waits"));
	e = child(host_returns);
	EXITED(e, 7);
}
END_TEST

START_TEST(the_answer_of_another_thread_does_not_turn_it_off)
{
	struct end e = child(second_join);

	EXITED(e, 124);
	HAS(e.said, "the second join has returned\n");
	HAS(e.said, "; loop home has not turned: in a callback of the "
		    "application");
}
END_TEST

static evc_status
wait_for_nothing(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	return 0;
}

/* On the thread of the run; the helper may come first, and then it returns. */
static void
release_hangs(void *runner)
{
	while (pthread_equal(pthread_self(), *(pthread_t *)runner))
		pause();
}

static void
hung_release(void)
{
	evc_member_opts o = { .release = release_hangs };
	struct ev_loop *loop = ev_loop_new(0);
	pthread_t self = pthread_self();
	evc_coord *c;

	for (;;) {
		c = front(loop, true, EVC_AT_END_EXIT, 0.2);
		IN_CHILD(evc_looper_start(c, "tick", 0.01, wait_for_nothing,
					  &self, &o, NULL));
		IN_CHILD(evc_request_stop(c, 0, NULL));
		(void)!evc_run(c, NULL, NULL);
		IN_CHILD(evc_free(c));
	}
}

START_TEST(a_release_that_hangs_does_not_turn_it_off)
{
	struct end e = child(hung_release);

	EXITED(e, 124);
	HAS(e.said, "leaving with status 124");
}
END_TEST

/* A grace is for joins; the budget is that of the stop. */
static void
short_grace(void)
{
	evc_config cfg = { .name = "front", .log = write_line,
			   .arg = (void *)"L", .grace = 0.1,
			   .clock = scripted_clock };
	evc_escalation_opts o = { .budget = 5, .at_end = EVC_AT_END_EXIT };
	evc_coord *c;

	IN_CHILD(evc_new(NULL, &cfg, &c));
	IN_CHILD(evc_escalation_set(c, &o));
	IN_CHILD(evc_request_stop(c, 0, NULL));
	scripted_advance(4.5);
	t_sleep(0.4); /* three looks of the second thread */
	dprintf(2, "%.1f s are left\n", evc_stop_left(c));
	scripted_advance(1);
	for (;;)
		pause();
}

START_TEST(without_a_join_the_stop_has_the_budget)
{
	struct end e = child(short_grace);

	EXITED(e, 124);
	HAS(e.said, "0.5 s are left\n");
	HAS(e.said, "the time of the stop is over after 5.500 s; no join was "
		    "called\n");
}
END_TEST

API_MAIN("at_end", a_hung_loop_is_named_and_the_process_ends,
	 without_a_log_hook_the_report_goes_to_standard_error,
	 the_report_of_a_late_join_is_out_when_the_join_returns,
	 after_an_error_the_status_is_1, an_abort_calls_no_handler,
	 a_program_that_never_joins_ends_too,
	 a_log_hook_that_hangs_delays_nothing,
	 the_last_line_names_who_is_late,
	 a_describe_that_hangs_costs_what_it_says,
	 a_describe_that_hangs_costs_a_join_nothing,
	 the_answer_of_a_join_turns_it_off, a_clear_and_a_free_turn_it_off,
	 an_extension_moves_the_end, a_second_signal_shortens_the_time,
	 an_answer_inside_a_nested_run_does_not_turn_it_off,
	 the_run_of_a_host_turns_it_off_when_it_returns,
	 the_answer_of_another_thread_does_not_turn_it_off,
	 a_release_that_hangs_does_not_turn_it_off,
	 without_a_join_the_stop_has_the_budget, scopes_and_unknown_values_are_refused)
