/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A signal during the set-up is kept for the first join, which requests the
 * stop: so phases go in their order.
 */
#include "../../support/api_util.h"

#include <ev.h>
#include <signal.h>
#include <sys/wait.h>

static evc_coord *
keeping(struct ev_loop *loop, const evc_signals_opts *more)
{
	evc_signals_opts o = more != NULL ? *more : (evc_signals_opts){ 0 };
	evc_coord *c = new_coord(loop);

	o.flags |= EVC_SIGNALS_AT_JOIN;
	OK(evc_signals_start(c, &o));
	return c;
}

/* ---- phases ---- */

struct phased {
	evc_coord *first, *second;
	bool early; /* the second phase was told while the first one lived */
};

static evc_status
look_at_second(evc_coord *c, void *arg)
{
	struct phased *p = arg;

	evc_wait_for_stop(c, INFINITY);
	let_come();
	p->early = evc_should_stop(p->second);
	return 0;
}

static void
set_up_phases(struct phased *p, evc_coord *c)
{
	evc_scope_opts one = { .phase = 1 }, two = { .phase = 2 };

	OK(evc_scope_new(c, "first", &one, &p->first));
	OK(evc_scope_new(c, "second", &two, &p->second));
	OK(evc_thread_start(p->first, "looks", look_at_second, p, NULL, NULL));
	OK(evc_thread_start(p->second, "obeys", obey, NULL, NULL, NULL));
	OK(evc_scope_ready(p->first));
	OK(evc_scope_ready(p->second));
}

/* A join of each kind. */
static evc_status
join_as(int kind, evc_coord *c, struct ev_loop *loop, evc_verdict *v)
{
	evc_status st;
	double wait;

	switch (kind) {
	case 0:
		return evc_run(c, NULL, v);
	case 1:
		return evc_join(c, NULL, v);
	case 2:
		st = evc_join_start(c, take_code, &v->code, NULL);
		v->code = EVC_PENDING;
		while (st == 0 && v->code == EVC_PENDING)
			ev_run(loop, EVRUN_ONCE);
		OK(evc_reason_get(c, 0, &v->stop));
		return st;
	default:
		while ((st = evc_join_step(c, NULL, &wait, v)) == EVC_PENDING)
			t_sleep(0.001);
		return st;
	}
}

START_TEST(the_first_join_requests_the_stop_and_phases_keep_their_order)
{
	struct ev_loop *loop = _i == 3 ? NULL : ev_loop_new(0);
	evc_coord *c = keeping(loop, NULL);
	struct phased p = { 0 };
	evc_verdict v = { 0 };

	ck_assert_int_eq(evc_signals_pending(c), 0);
	raise(SIGTERM);
	ck_assert_int_eq(evc_signals_pending(c), SIGTERM);
	ck_assert(!evc_should_stop(c));
	set_up_phases(&p, c);
	NOT_YET(evc_should_stop(c) || evc_should_stop(p.first));
	OK(join_as(_i, c, loop, &v));
	ck_assert(!p.early);
	ck_assert_uint_eq(v.stop.kind, EVC_BY_SIGNAL);
	ck_assert_int_eq(v.stop.signo, SIGTERM);
	HAS(v.stop.text, "SIGTERM from pid");
	ck_assert_int_eq(evc_signals_pending(c), 0);
	FREE_ALL(p.second, p.first, c);
	if (loop != NULL)
		ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_signal_during_the_join_is_not_kept)
{
	evc_coord *c = keeping(NULL, NULL);
	struct joiner j;
	evc_id hold = 0;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	join_begin(&j, c, INFINITY, 0);
	raise(SIGINT);
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(evc_signals_pending(c), 0);
	OK(evc_hold_end(c, hold));
	OK(join_end(&j));
	OK(evc_free(c));
}
END_TEST

START_TEST(nor_is_one_while_a_stop_stands)
{
	evc_coord *c = keeping(NULL, NULL);
	evc_reason r;

	OK(evc_request_stop(c, 0, NULL));
	raise(SIGINT);
	ck_assert_int_eq(evc_signals_pending(c), 0);
	OK(evc_reason_get(c, 1, &r));
	ck_assert_int_eq(r.signo, SIGINT);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_join_that_stops_first_has_the_signal_as_its_reason)
{
	evc_join_opts o = { .flags = EVC_JOIN_STOP_FIRST };
	evc_coord *c = keeping(NULL, NULL);
	evc_verdict v;

	raise(SIGTERM);
	OK(evc_join(c, &o, &v));
	ck_assert_int_eq(v.stop.signo, SIGTERM);
	OK(evc_free(c));
}
END_TEST

/* ---- the log ---- */

static struct {
	pthread_mutex_t lock;
	char line[32][160];
	int n;
} said = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
keep_line(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)level;
	(void)r;
	(void)arg;
	pthread_mutex_lock(&said.lock);
	ck_assert_int_lt(said.n, 32);
	snprintf(said.line[said.n++], sizeof(said.line[0]), "%s", line);
	pthread_mutex_unlock(&said.lock);
}

static int
n_said(void)
{
	int n;

	pthread_mutex_lock(&said.lock);
	n = said.n;
	pthread_mutex_unlock(&said.lock);
	return n;
}

static evc_coord *
logging(const evc_signals_opts *o)
{
	evc_config cfg = { .name = "web", .log = keep_line };
	evc_coord *c = new_coord_with(NULL, &cfg);

	OK(evc_signals_start(c, o));
	return c;
}

START_TEST(each_signal_that_is_kept_has_a_line)
{
	evc_signals_opts o = { .flags = EVC_SIGNALS_AT_JOIN };
	evc_coord *c = logging(&o);
	char line[160];
	int i;

	raise(SIGTERM);
	/* The helper writes the line, or the join that comes at once. */
	if (_i == 0)
		UNTIL(n_said() == 1);
	raise(SIGINT);
	if (_i == 0)
		UNTIL(n_said() == 2);
	raise(SIGTERM); /* not kept */
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(n_said(), 5);
	for (i = 0; i < 2; i++) {
		snprintf(line, sizeof(line),
			 "web: %s from pid %d, uid %d is kept until a join "
			 "begins, 4.0 s at most",
			 i ? "SIGINT" : "SIGTERM", (int)getpid(),
			 (int)getuid());
		ck_assert_str_eq(said.line[i], line);
	}
	HAS(said.line[2], "stop of web requested: OK (0): SIGTERM from pid");
	HAS(said.line[3], "web: second SIGINT from pid");
	HAS(said.line[3], ": the grace is cut to 1.000 s");
	HAS(said.line[4], "stop of web ended after");
	OK(evc_free(c));
}
END_TEST

START_TEST(the_second_signal_has_a_line_before_the_end)
{
	evc_signals_opts o = { .short_grace = _i ? EVC_NO_GRACE : 0.05 };
	evc_join_opts patient = { .grace = INFINITY };
	evc_coord *c = logging(&o);
	char line[160];
	struct joiner j;
	evc_id hold = 0;

	OK(evc_hold_begin(c, "stuck", NULL, &hold));
	join_begin(&j, c, patient.grace, 0);
	raise(SIGINT);
	UNTIL(n_said() == 1);
	raise(SIGTERM);
	raise(SIGTERM);
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	HAS(said.line[0], "stop of web requested: OK (0): SIGINT from pid");
	snprintf(line, sizeof(line),
		 "web: second SIGTERM from pid %d, uid %d: the grace is cut to "
		 "%.3f s",
		 (int)getpid(), (int)getuid(), _i ? 0 : 0.05);
	ck_assert_str_eq(said.line[1], line);
	OK(evc_hold_end(c, hold));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

/* The place of a line with this text; n_said(): there is none. */
static int
line_with(const char *text)
{
	int i, n = n_said();

	for (i = 0; i < n && strstr(said.line[i], text) == NULL; i++)
		;
	return i;
}

/* No join answers: the program hangs, and a second signal comes too late. */
START_TEST(after_the_end_of_the_time_the_second_signal_says_who_is_late)
{
	evc_escalation_opts escalation = { .budget = 0.05 };
	evc_coord *c = logging(NULL);
	evc_id hold = 0;
	int n;

	OK(evc_escalation_set(c, &escalation));
	OK(evc_hold_begin(c, "stuck", NULL, &hold));
	raise(SIGTERM);
	UNTIL(line_with("hold \"stuck\"") < n_said());
	(void)evc_log_flush(c, INFINITY);
	n = n_said();
	raise(SIGTERM);
	UNTIL(n_said() == n + 2);
	HAS(said.line[n], "web: second SIGTERM from pid ");
	HAS(said.line[n], ": the time of the stop is over already");
	HAS(said.line[n + 1], "web: the time of the stop is over after 0.");
	HAS(said.line[n + 1], "; still running: stuck; no join was called");
	/* Each once, and the report is not repeated. */
	raise(SIGTERM);
	let_come();
	ck_assert_int_eq(n_said(), n + 2);
	OK(evc_hold_end(c, hold));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

/* A second signal while the report of the end is made. */
static size_t
ask_again(unsigned format, char *buf, size_t n, void *arg)
{
	(void)format;
	(void)buf;
	(void)n;
	if (!atomic_exchange((atomic_bool *)arg, true)) {
		/* Not raise: this may be the helper, which blocks signals. */
		kill(getpid(), SIGTERM);
		UNTIL(line_with("second SIGTERM") + 1 < n_said());
	}
	return 0;
}

START_TEST(a_second_signal_during_the_report_of_the_end_is_answered)
{
	evc_escalation_opts escalation = { .budget = 0.05 };
	atomic_bool asked = false;
	evc_scope_opts o = { .describe = ask_again, .arg = &asked };
	evc_coord *c = logging(NULL), *scope = NULL;
	evc_id hold = 0;
	int n;

	OK(evc_escalation_set(c, &escalation));
	OK(evc_scope_new(c, "queue", &o, &scope));
	OK(evc_scope_ready(scope));
	OK(evc_hold_begin(c, "stuck", NULL, &hold));
	raise(SIGTERM);
	UNTIL(line_with("second SIGTERM") + 1 < n_said());
	n = line_with("second SIGTERM");
	HAS(said.line[n], ": the time of the stop is over already");
	HAS(said.line[n + 1], "web: the time of the stop is over after 0.");
	OK(evc_hold_end(c, hold));
	OK(evc_join(c, NULL, NULL));
	FREE_ALL(scope, c);
}
END_TEST

/* ---- a set-up that takes long ---- */

/* Half of the budget, else of the grace, else of 8 seconds. */
START_TEST(it_is_kept_for_half_of_the_time_of_a_stop)
{
	static const struct {
		double grace, budget, kept;
	} v[] = { { 0, 0, 4 }, { 0, 6, 3 }, { 60, 0, 30 }, { 60, 20, 10 } };
	evc_escalation_opts escalation = { .budget = v[_i].budget };
	evc_signals_opts o = { .flags = EVC_SIGNALS_AT_JOIN };
	evc_config cfg = { .grace = v[_i].grace, .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_reason r;

	OK(evc_escalation_set(c, &escalation));
	OK(evc_signals_start(c, &o));
	raise(SIGTERM);
	scripted_advance(v[_i].kept - 0.1);
	NOT_YET(evc_should_stop(c));
	ck_assert_int_eq(evc_signals_pending(c), SIGTERM);
	scripted_advance(0.2);
	raise(SIGTERM); /* the helper looks */
	UNTIL(evc_should_stop(c));
	OK(evc_reason_get(c, 0, &r));
	ck_assert_int_eq(r.signo, SIGTERM);
	ck_assert_int_eq(evc_signals_pending(c), 0);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

static void *
signal_later(void *unused)
{
	t_sleep(MOMENT);
	kill(getpid(), SIGTERM);
	return unused;
}

/* No watcher but those of the library, and no timer. */
START_TEST(it_turns_the_loop_of_the_set_up)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = keeping(loop, NULL);
	pthread_t t;

	ev_ref(loop);
	OK(pthread_create(&t, NULL, signal_later, NULL));
	while (evc_signals_pending(c) == 0)
		ev_run(loop, EVRUN_ONCE);
	OK(pthread_join(t, NULL));
	ev_unref(loop);
	OK(evc_run(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- a second and a third ---- */

START_TEST(the_second_is_kept_too_and_cuts_the_grace)
{
	evc_signals_opts o = { .short_grace = 0.05 };
	evc_join_opts patient = { .grace = INFINITY };
	evc_coord *c = keeping(NULL, &o);
	evc_reason r;
	evc_id hold = 0;

	OK(evc_hold_begin(c, "stuck", NULL, &hold));
	raise(SIGINT);
	raise(SIGTERM);
	raise(SIGTERM); /* not kept */
	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(evc_signals_pending(c), SIGINT);
	ck_assert_int_eq(evc_join(c, &patient, NULL), EVC_DEADLINE_EXCEEDED);
	OK(evc_reason_get(c, 0, &r));
	ck_assert_int_eq(r.signo, SIGINT);
	OK(evc_reason_get(c, 1, &r));
	ck_assert_int_eq(r.signo, SIGTERM);
	HAS(r.text, "which cuts the grace");
	REFUSED(EVC_NOT_FOUND, evc_reason_get(c, 2, &r));
	OK(evc_hold_end(c, hold));
	OK(evc_clear_stop(c));

	/* The next round has its whole grace. */
	OK(evc_hold_begin(c, "slow", NULL, &hold));
	raise(SIGTERM);
	{
		struct joiner j;

		join_begin(&j, c, INFINITY, 0);
		UNTIL(evc_should_stop(c));
		NOT_YET(atomic_load(&j.returned));
		OK(evc_hold_end(c, hold));
		OK(join_end(&j));
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(the_third_exits_during_the_set_up)
{
	evc_signals_opts o = { .flags = EVC_SIGNALS_THIRD_EXITS |
					EVC_SIGNALS_AT_JOIN };
	int status = 0, fd[2];
	char line[128] = "";
	pid_t pid;

	OK(pipe(fd));
	o.exit_fd = fd[1];
	pid = fork();
	if (pid == 0) {
		evc_coord *c = NULL;

		CHILD(evc_new(NULL, NULL, &c) == 0);
		CHILD(evc_signals_start(c, &o) == 0);
		raise(SIGTERM);
		raise(SIGTERM);
		CHILD(!evc_should_stop(c));
		raise(SIGTERM);
		_exit(7);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 128 + SIGTERM);
	ck_assert_int_gt(read(fd[0], line, sizeof(line) - 1), 0);
	HAS(line, "third SIGTERM");
	close(fd[0]);
	close(fd[1]);
}
END_TEST

/* ---- no join ---- */

START_TEST(a_set_up_that_ends_without_a_join_is_told)
{
	evc_coord *c = keeping(NULL, NULL);
	struct sigaction now;

	signal(SIGINT, SIG_DFL);
	raise(SIGTERM);
	ck_assert_int_eq(evc_signals_pending(c), SIGTERM);
	ck_assert_int_eq(evc_signals_pending(NULL), 0);
	ck_assert_int_eq(evc_finish(c, -EVC_UNAVAILABLE), 1);
	sigaction(SIGINT, NULL, &now);
	ck_assert(!(now.sa_flags & SA_SIGINFO));
	/* The next coordinator begins with no signal. */
	c = keeping(NULL, NULL);
	ck_assert_int_eq(evc_signals_pending(c), 0);
	OK(evc_join(c, NULL, NULL));
	ck_assert(!evc_should_stop(c));
	OK(evc_free(c));
}
END_TEST

START_TEST(giving_the_signals_back_requests_the_stop)
{
	evc_coord *c = keeping(NULL, NULL);
	evc_reason r;

	raise(SIGTERM);
	ck_assert(!evc_should_stop(c));
	OK(evc_signals_stop(c));
	ck_assert(evc_should_stop(c));
	OK(evc_reason_get(c, 0, &r));
	ck_assert_int_eq(r.signo, SIGTERM);
	ck_assert_int_eq(evc_signals_pending(c), 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(neither_a_scope_nor_another_coordinator_takes_it)
{
	evc_coord *c = keeping(NULL, NULL), *d = new_coord(NULL), *s = NULL;
	evc_verdict v;

	raise(SIGTERM);
	ck_assert_int_eq(evc_signals_pending(d), 0);
	OK(evc_join(d, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, 0);
	OK(evc_scope_new(c, "scope", NULL, &s));
	OK(evc_scope_ready(s));
	OK(evc_join(s, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, 0);
	ck_assert_int_eq(evc_signals_pending(s), 0);
	ck_assert_int_eq(evc_signals_pending(c), SIGTERM);
	OK(evc_join(c, NULL, &v));
	ck_assert_int_eq(v.stop.signo, SIGTERM);
	FREE_ALL(s, c, d);
}
END_TEST

START_TEST(a_clear_does_not_lose_it)
{
	evc_coord *c = keeping(NULL, NULL);
	evc_verdict v;

	raise(SIGTERM);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_clear_stop(c));
	ck_assert_int_eq(evc_signals_pending(c), SIGTERM);
	raise(SIGINT);
	ck_assert_int_eq(evc_signals_pending(c), SIGTERM);
	OK(evc_join(c, NULL, &v));
	ck_assert_int_eq(v.stop.signo, SIGTERM);
	OK(evc_free(c));
}
END_TEST

static bool
refuse(int signo, void *arg)
{
	(void)signo;
	(void)arg;
	return false;
}

START_TEST(a_refused_one_is_not_kept)
{
	evc_signals_opts o = { .allow = refuse };
	evc_coord *c = keeping(NULL, &o);
	evc_verdict v;

	raise(SIGTERM);
	ck_assert_int_eq(evc_signals_pending(c), 0);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_child_has_none)
{
	evc_coord *c = keeping(NULL, NULL);
	int status = 0;
	pid_t pid;

	raise(SIGTERM);
	pid = fork();
	if (pid == 0) {
		CHILD(evc_signals_pending(c) == 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(evc_signals_pending(c), SIGTERM);
	OK(evc_free(c));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("kept");
	TCase *tcase = tcase_create("kept");

	tcase_add_loop_test(
		tcase,
		the_first_join_requests_the_stop_and_phases_keep_their_order, 0,
		4);
	tcase_add_test(tcase, a_signal_during_the_join_is_not_kept);
	tcase_add_test(tcase, nor_is_one_while_a_stop_stands);
	tcase_add_test(tcase,
		       a_join_that_stops_first_has_the_signal_as_its_reason);
	tcase_add_loop_test(tcase, each_signal_that_is_kept_has_a_line, 0, 2);
	tcase_add_loop_test(tcase, the_second_signal_has_a_line_before_the_end,
			    0, 2);
	tcase_add_loop_test(tcase, it_is_kept_for_half_of_the_time_of_a_stop, 0,
			    4);
	tcase_add_test(tcase, it_turns_the_loop_of_the_set_up);
	tcase_add_test(
		tcase,
		after_the_end_of_the_time_the_second_signal_says_who_is_late);
	tcase_add_test(
		tcase, a_second_signal_during_the_report_of_the_end_is_answered);
	tcase_add_test(tcase, the_second_is_kept_too_and_cuts_the_grace);
	tcase_add_test(tcase, the_third_exits_during_the_set_up);
	tcase_add_test(tcase, a_set_up_that_ends_without_a_join_is_told);
	tcase_add_test(tcase, giving_the_signals_back_requests_the_stop);
	tcase_add_test(tcase, neither_a_scope_nor_another_coordinator_takes_it);
	tcase_add_test(tcase, a_clear_does_not_lose_it);
	tcase_add_test(tcase, a_refused_one_is_not_kept);
	tcase_add_test(tcase, a_child_has_none);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
