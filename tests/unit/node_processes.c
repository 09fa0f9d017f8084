/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "processes" in the hands of a node, which is the core of it: a
 * question for a variable whose answer comes later, and the time when workers
 * end by themselves, whatever becomes of the node and of them.
 */
#include "../support/cluster_util.h"
#include "../support/seam.h"

#include <evcoord/unstable/engine.h>
#include <evcoord/post.h>
#include <evcoord/worker.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/sync.h"
#include "cluster/processes/processes.h"
#include "wire/frames.h"

#define VALUE(s) ((evc_value){ (s), sizeof(s) - 1 })
#define MS UINT64_C(1000000)

/* ---- the workers: this program, too ---- */

static evc_status
w_count(evc_exec *x, void *arg)
{
	double now = 0;
	evc_status st = evc_exec_variable_add(x, "n", 1, &now);

	(void)arg;
	if (st < 0)
		return evc_exec_fail(x, -st, "%s", evc_last_error());
	return evc_exec_return(x, "d", now);
}

static evc_status
w_get(evc_exec *x, void *arg)
{
	evc_value v = { 0 };
	evc_status st = evc_exec_variable_get(x, "best", &v);

	(void)arg;
	if (st < 0)
		return evc_exec_fail(x, -st, "%s", evc_last_error());
	st = evc_exec_return(x, "v", &v);
	evc_value_free(&v);
	return st;
}

/* For ever, and nothing gets through to it. */
static evc_status
w_spin(evc_exec *x, void *arg)
{
	double now;
	sigset_t all;

	(void)arg;
	(void)evc_exec_variable_add(x, "spins", 1, &now);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (;;)
		pause();
	return 0;
}

static const evc_function functions[] = {
	{ .name = "count", .fn = w_count },
	{ .name = "get", .fn = w_get },
	{ .name = "spin", .fn = w_spin },
};

/* A worker that asks so many times at once, and reads no answer. */
static int
be_impatient(int times)
{
	const evc_engine_update u = { .op = EVC_VARIABLE_ADD, .name = "n" };
	struct bytes b = { 0 };
	ssize_t n;

	if (evc__frame_put_hello(&b, FRAME_HEAD + 512, functions, 3) < 0)
		return 1;
	for (; times > 0; times--)
		if (evc__frame_put_variable(&b, 512, &u) < 0)
			return 1;
	for (; b.n > 0; bytes_take(&b, (size_t)n)) {
		n = write(3, bytes_at(&b), b.n);
		if (n <= 0)
			return 1;
	}
	bytes_free(&b);
	pause();
	return 0;
}

/* The control thread stands for a while before it sets the time of the end. */
static void *
let_go_later(void *arg)
{
	int *hold = arg;

	if (seam_await(*hold))
		t_sleep(0.3);
	seam_release(*hold);
	return NULL;
}

static void
hear_late(void)
{
	static int hold;
	pthread_t t;

	hold = seam_hold("end_timer", NULL, 1);
	if (pthread_create(&t, NULL, let_go_later, &hold) == 0)
		pthread_detach(t);
}

static bool
is_asked(const char *how)
{
	return getenv("TEST_WORKER") != NULL &&
	       strcmp(getenv("TEST_WORKER"), how) == 0;
}

static int
be_worker(void)
{
	int result;

	if (is_asked("impatient"))
		return be_impatient(10000);
	if (is_asked("curious"))
		return be_impatient(3);
	if (is_asked("slow"))
		t_sleep(1);
	if (is_asked("poor"))
		seam_fail("end_timer", NULL, 1, EAGAIN);
	if (is_asked("late"))
		hear_late();
	result = evc_worker_main(functions, 3, NULL) != 0;
	/* Nothing of the cluster's runs any more. */
	if (is_asked("lingering"))
		t_sleep(1.5);
	return result;
}

/* ---- the node, which may be a process that is no test ---- */

static void
must(bool yes)
{
	if (!yes)
		abort();
}

static struct {
	struct ev_loop *ev;
	evc_coord *c;
	evc_loop_ref *loop;
	evc_engine *engine;
	const char *next;  /* to be taken */
	uint64_t n_taken;
	pid_t pid;         /* 0: none is up */
	unsigned lives, n_asked, n_gone, n_finished, n_closed;
	evc_engine_update asked;
	char name[32];     /* of the variable */
	evc_engine_answer within; /* answered within the question */
	bool answers_within;
	evc_status code;   /* of what has finished last */
	double value;
	char text[300];    /* its, or why one is gone */
	bool ran;
} node;

static const evc_engine_ops *const ops = &evc__engine_processes;

static bool
s_workers(void *core, unsigned n)
{
	(void)core;
	return n == 1;
}

static void
s_names(void *core, const char *const *names, unsigned n)
{
	(void)core;
	(void)names;
	(void)n;
}

static void
s_up(void *core, unsigned worker, const char *name, const char *where)
{
	(void)core;
	(void)worker;
	(void)name;
	node.pid = (pid_t)atoi(where + 4);
	node.lives++;
}

static bool
s_defs(void *core, unsigned worker, evc_engine_def *ret)
{
	(void)core;
	(void)worker;
	(void)ret;
	return false;
}

static unsigned
s_take(void *core, unsigned worker, evc_engine_task *tasks, unsigned most)
{
	(void)core;
	(void)worker;
	if (node.next == NULL || most == 0)
		return 0;
	node.n_taken++;
	tasks[0] = (evc_engine_task){ .n = node.n_taken,
				      .id = node.n_taken,
				      .function = node.next,
				      .args = VALUE("\x90"),
				      .kwargs = VALUE("\x80"),
				      .attempt = 1 };
	node.next = NULL;
	return 1;
}

static void
s_finished(void *core, unsigned worker, const evc_engine_result *r, unsigned n)
{
	(void)core;
	(void)worker;
	must(n == 1);
	node.n_finished++;
	node.code = r->code;
	node.value = 0;
	if (r->code == 0)
		must(evc_unpack(&r->value, "d", &node.value) == 0);
	snprintf(node.text, sizeof(node.text), "%s",
		 r->text != NULL ? r->text : "");
}

static void
s_fenced(void *core, unsigned worker, const char *why)
{
	(void)core;
	(void)worker;
	(void)why;
}

static void
s_gone(void *core, unsigned worker, const char *why, unsigned how)
{
	(void)core;
	(void)worker;
	node.pid = 0;
	node.n_gone++;
	node.ran = how == EVC_ENGINE_DIED_RUNNING;
	snprintf(node.text, sizeof(node.text), "%s", why);
}

static evc_status
s_variable(void *core, unsigned worker, const evc_engine_update *u,
	   double *ret_now, evc_value *ret_value)
{
	(void)core;
	must((u->op == EVC_VARIABLE_GET) == (ret_value != NULL));
	must((u->op == EVC_VARIABLE_ADD) == (ret_now != NULL));
	must(worker == 0);
	snprintf(node.name, sizeof(node.name), "%s", u->name);
	node.asked = *u;
	node.n_asked++;
	if (strcmp(u->name, "spins") == 0) {
		*ret_now = 1;
		return 0;
	}
	if (node.answers_within)
		ops->answer(node.engine, worker, &node.within);
	return EVC_ENGINE_LATER;
}

static void
s_closed(void *core)
{
	(void)core;
	node.n_closed++;
}

static void
s_down(void *core, const char *why)
{
	(void)core;
	(void)why;
}

static const evc_engine_sink sink = {
	.abi = EVC_ENGINE_ABI,
	.workers = s_workers,
	.names = s_names,
	.up = s_up,
	.defs = s_defs,
	.take = s_take,
	.finished = s_finished,
	.fenced = s_fenced,
	.gone = s_gone,
	.variable = s_variable,
	.down = s_down,
	.closed = s_closed,
};

static void
node_open(const char *how, double lease)
{
	const char *const none[] = { NULL };
	evc_engine_env env = { .uri = "processes://1",
			       .place = "1",
			       .options = none,
			       .functions = functions,
			       .n_functions = 3,
			       .lease = lease,
			       .grace = T_LIMIT,
			       .max_frame = 1 << 16,
			       .sink = &sink };

	memset(&node, 0, sizeof(node));
	if (how != NULL)
		setenv("TEST_WORKER", how, 1);
	node.ev = ev_loop_new(EVFLAG_AUTO);
	must(evc_new(node.ev, NULL, &node.c) == 0);
	node.loop = evc_loop_of(evc_home(node.c));
	env.scope = node.c;
	env.reactor = evc_home(node.c);
	env.loop = node.loop;
	must(ops->open(&env, &node.engine) == 0);
}

/* The node's loop turns until that is so. */
#define TURN_UNTIL(cond) UNTIL((ev_run(node.ev, EVRUN_NOWAIT), (cond)))

static void
turn(double seconds)
{
	double end = t_now() + seconds;

	while (t_now() < end) {
		ev_run(node.ev, EVRUN_NOWAIT);
		t_sleep(0.001);
	}
}

static void
node_close(void)
{
	ops->leave(node.engine);
	TURN_UNTIL(node.n_closed == 1);
	ops->close(node.engine);
	evc_loop_release(node.loop);
	ev_run(node.ev, EVRUN_NOWAIT);
	end_coord(node.c);
	ev_loop_destroy(node.ev);
}

static void
give(const char *function)
{
	node.next = function;
	ops->wake(node.engine, EVC_ENGINE_ANY);
}

static void
kill_worker(void)
{
	unsigned gone = node.n_gone;

	OK(kill(node.pid, SIGKILL));
	TURN_UNTIL(node.n_gone == gone + 1);
}

/* ---- answers ---- */

static void
answer_now(double now)
{
	const evc_engine_answer a = { .now = now };

	ops->answer(node.engine, 0, &a);
}

START_TEST(an_answer_that_comes_later)
{
	node_open(NULL, T_LIMIT);
	give("count");
	TURN_UNTIL(node.n_asked == 1);
	ck_assert_uint_eq(node.asked.op, EVC_VARIABLE_ADD);
	ck_assert_str_eq(node.name, "n");
	turn(0.05);
	ck_assert_uint_eq(node.n_finished, 0);
	answer_now(42);
	TURN_UNTIL(node.n_finished == 1);
	OK(node.code);
	ck_assert(node.value == 42);
	node_close();
}
END_TEST

/* A second one, and one that nobody has asked for, are dropped: the next
   question does not get them. */
START_TEST(what_nobody_waits_for_is_dropped)
{
	node_open(NULL, T_LIMIT);
	answer_now(1);
	TURN_UNTIL(node.pid != 0);
	answer_now(2);
	give("count");
	TURN_UNTIL(node.n_asked == 1);
	answer_now(3);
	answer_now(4);
	TURN_UNTIL(node.n_finished == 1);
	ck_assert(node.value == 3);
	answer_now(5);
	/* no such worker */
	ops->answer(node.engine, 1, &(evc_engine_answer){ .now = 6 });
	give("count");
	TURN_UNTIL(node.n_taken == 2);
	/* on its way there, and behind the function it would be taken for the
	   answer */
	if (node.n_asked == 1)
		answer_now(6.5);
	TURN_UNTIL(node.n_asked == 2);
	turn(0.05);
	ck_assert_uint_eq(node.n_finished, 1);
	answer_now(7);
	TURN_UNTIL(node.n_finished == 2);
	ck_assert(node.value == 7);
	node_close();
}
END_TEST

START_TEST(values_and_refusals)
{
	static char big[1 << 17] = "\xc6\0\1\xff\xf0";
	evc_engine_answer a = { .value = VALUE("\xcb\x40\x08\0\0\0\0\0\0") };

	node_open(NULL, T_LIMIT);
	give("get");
	TURN_UNTIL(node.n_asked == 1);
	ck_assert_uint_eq(node.asked.op, EVC_VARIABLE_GET);
	ops->answer(node.engine, 0, &a);
	TURN_UNTIL(node.n_finished == 1);
	OK(node.code);
	ck_assert(node.value == 3);

	give("count");
	TURN_UNTIL(node.n_asked == 2);
	a = (evc_engine_answer){ .status = -EVC_UNAVAILABLE,
				 .text = "the server is not there" };
	ops->answer(node.engine, 0, &a);
	TURN_UNTIL(node.n_finished == 2);
	ck_assert_int_eq(node.code, EVC_UNAVAILABLE);
	HAS(node.text, "the server is not there");

	/* longer than a frame may be */
	give("get");
	TURN_UNTIL(node.n_asked == 3);
	a = (evc_engine_answer){ .value = { big, sizeof(big) } };
	ops->answer(node.engine, 0, &a);
	TURN_UNTIL(node.n_finished == 3);
	ck_assert_int_eq(node.code, EVC_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(node.n_gone, 0);
	node_close();
}
END_TEST

START_TEST(an_answer_within_the_question)
{
	node_open(NULL, T_LIMIT);
	node.answers_within = true;
	node.within.now = 9;
	give("count");
	TURN_UNTIL(node.n_finished == 1);
	ck_assert(node.value == 9);
	give("count");
	TURN_UNTIL(node.n_finished == 2);
	ck_assert_uint_eq(node.n_asked, 2);
	node_close();
}
END_TEST

START_TEST(a_life_that_is_over_has_no_question)
{
	node_open(NULL, T_LIMIT);
	give("count");
	TURN_UNTIL(node.n_asked == 1);
	kill_worker();
	ck_assert(node.ran);
	answer_now(1);
	TURN_UNTIL(node.pid != 0);
	answer_now(2);
	give("count");
	TURN_UNTIL(node.n_asked == 2);
	answer_now(3);
	TURN_UNTIL(node.n_finished == 1);
	ck_assert(node.value == 3);
	/* asked, and the end of all while nobody answers */
	give("count");
	TURN_UNTIL(node.n_asked == 3);
	ops->kill(node.engine, 0);
	TURN_UNTIL(node.n_gone == 2);
	node_close();
}
END_TEST

START_TEST(questions_at_once_are_answered_in_turns)
{
	node_open("curious", T_LIMIT);
	TURN_UNTIL(node.n_asked == 1);
	turn(0.05);
	ck_assert_uint_eq(node.n_asked, 1);
	answer_now(1);
	TURN_UNTIL(node.n_asked == 2);
	/* Within the question, and the next one comes by itself. */
	node.answers_within = true;
	answer_now(2);
	TURN_UNTIL(node.n_asked == 3);
	ck_assert_uint_eq(node.n_gone, 0);
	ops->kill(node.engine, 0);
	TURN_UNTIL(node.n_gone == 1);
	node_close();
}
END_TEST

START_TEST(very_many_questions_at_once_are_garbage)
{
	node_open("impatient", T_LIMIT);
	TURN_UNTIL(node.n_gone == 1);
	ck_assert_uint_eq(node.n_asked, 1);
	HAS(node.text, "questions, and does not read the answers");
	node_close();
}
END_TEST

/* ---- until ---- */

static uint64_t
until_in(uint64_t ms)
{
	uint64_t until = sync_mono() + ms * MS;

	ops->until(node.engine, until);
	return until;
}

static void
start_spin(void)
{
	give("spin");
	TURN_UNTIL(node.n_asked == 1);
}

static void
stop(pid_t pid)
{
	siginfo_t info;

	OK(kill(pid, SIGSTOP));
	OK(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT));
}

START_TEST(a_worker_ends_when_its_time_is_over)
{
	uint64_t until;

	node_open(NULL, T_LIMIT);
	start_spin();
	until = until_in(300);
	TURN_UNTIL(node.n_gone == 1);
	ck_assert_uint_ge(sync_mono(), until);
	HAS(node.text, "was killed by signal 9 (SIGKILL): the lease was over");
	/* no doing of the function's */
	ck_assert(!node.ran);
	node_close();
}
END_TEST

START_TEST(a_worker_that_is_told_again_lives)
{
	double end;

	node_open(NULL, T_LIMIT);
	start_spin();
	for (end = t_now() + 2.5; t_now() < end; turn(0.02))
		until_in(1000);
	ck_assert_uint_eq(node.n_gone, 0);
	/* an earlier one does not count */
	until_in(10);
	turn(0.3);
	ck_assert_uint_eq(node.n_gone, 0);
	TURN_UNTIL(node.n_gone == 1);
	node_close();
}
END_TEST

/* It hears of its end, though late, before its function begins. */
static void
stop_in_its_function(const char *how)
{
	node_open(how, T_LIMIT);
	until_in(2000);
	start_spin();
	stop(node.pid);
	/* Told once more: it does not hear that. */
	until_in(T_LIMIT * 1000);
	TURN_UNTIL(node.n_gone == 1);
	HAS(node.text, "was killed by signal 9 (SIGKILL)");
	ck_assert(node.ran);
	node_close();
}

START_TEST(a_worker_that_is_stopped_ends_likewise)
{
	stop_in_its_function(NULL);
	stop_in_its_function("late");
}
END_TEST

/* What was told before it was there is what it hears first. */
START_TEST(a_new_worker_is_told)
{
	uint64_t until;

	node_open(NULL, T_LIMIT);
	until = until_in(700);
	TURN_UNTIL(node.n_gone == 1);
	ck_assert_uint_ge(sync_mono(), until);
	/* and so do the next ones, whose time is over when they begin */
	TURN_UNTIL(node.n_gone == 3);
	HAS(node.text, "the lease was over");
	until_in(T_LIMIT * 1000);
	TURN_UNTIL(node.pid != 0);
	start_spin();
	turn(0.2);
	ck_assert_int_ne(node.pid, 0);
	kill_worker();
	node_close();
}
END_TEST

/* One that takes longer to start than the lease lasts finds many in the stream,
   and the last one counts. */
START_TEST(a_slow_start_is_no_end)
{
	node_open("slow", T_LIMIT);
	while (node.pid == 0 && node.n_gone == 0) {
		until_in(500);
		turn(0.005);
	}
	ck_assert_uint_eq(node.n_gone, 0);
	give("spin");
	while (node.n_asked == 0) {
		until_in(500);
		turn(0.005);
	}
	ck_assert_uint_eq(node.n_gone, 0);
	TURN_UNTIL(node.n_gone == 1);
	node_close();
}
END_TEST

START_TEST(a_worker_that_has_left_may_take_its_time)
{
	node_open("lingering", T_LIMIT);
	TURN_UNTIL(node.pid != 0);
	until_in(1000);
	/* time to hear it; without, this would show less */
	turn(0.2);
	ops->leave(node.engine);
	TURN_UNTIL(node.n_gone == 1);
	HAS(node.text, "ended with exit status 0");
	node_close();
}
END_TEST

START_TEST(without_a_timer_it_ends_at_once)
{
	node_open("poor", T_LIMIT);
	TURN_UNTIL(node.pid != 0);
	until_in(T_LIMIT * 1000);
	TURN_UNTIL(node.n_gone == 1);
	HAS(node.text, "signal 9");
	HAS(node.text, "no timer for the end of this worker");
	node_close();
}
END_TEST

/* ---- a node that is stopped ---- */

/* TEST_NODE: a process of its own, whose worker has so many milliseconds at a
   time; 0: all the time.  It says the worker's pid. */
static void
be_node(void)
{
	uint64_t ms = (uint64_t)atoi(getenv("TEST_NODE"));
	bool said = false;

	node_open(NULL, T_LIMIT);
	give("spin");
	for (;;) {
		if (ms > 0)
			until_in(ms);
		turn(0.02);
		if (!said && node.n_asked > 0) {
			printf("%d\n", (int)node.pid);
			fflush(stdout);
			said = true;
		}
	}
}

struct other {
	pid_t node, worker;
	int out, pidfd; /* what it says; of the worker */
};

static struct other
start_node(const char *ms)
{
	struct other o;
	int fds[2];
	char line[32], self[4096] = "";
	ssize_t n;

	/* By its name: the link itself would be valgrind's program. */
	ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
	OK(pipe(fds));
	o.node = fork();
	if (o.node == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("TEST_NODE", ms, 1);
		dup2(fds[1], 1);
		close(fds[0]);
		close(fds[1]);
		execl(self, "node_processes", (char *)NULL);
		_exit(1);
	}
	ck_assert_int_gt(o.node, 0);
	close(fds[1]);
	o.out = fds[0];
	n = read(o.out, line, sizeof(line) - 1);
	ck_assert_int_gt(n, 0);
	line[n] = '\0';
	o.worker = (pid_t)atoi(line);
	o.pidfd = sync_pidfd_process(o.worker);
	return o;
}

/* Within that time. */
static bool
has_ended(const struct other *o, double seconds)
{
	struct pollfd p = { .fd = o->pidfd, .events = POLLIN };

	return poll(&p, 1, (int)(seconds * 1000)) == 1;
}

static void
end_node(struct other *o)
{
	OK(kill(o->node, SIGKILL));
	ck_assert_int_eq(waitpid(o->node, NULL, 0), o->node);
	/* The kernel sees to that. */
	ck_assert(o->pidfd < 0 || has_ended(o, T_LIMIT));
	if (o->pidfd >= 0)
		close(o->pidfd);
	close(o->out);
}

START_TEST(a_stopped_node_keeps_no_worker)
{
	struct other o = start_node("1000");
	siginfo_t info = { 0 };

	if (o.pidfd >= 0) {
		ck_assert(!has_ended(&o, 1.5));
		stop(o.node);
		ck_assert(has_ended(&o, T_LIMIT));
		/* It stands still. */
		OK(waitid(P_PID, (id_t)o.node, &info,
			  WSTOPPED | WCONTINUED | WEXITED | WNOWAIT));
		ck_assert_int_eq(info.si_code, CLD_STOPPED);
	}
	end_node(&o);
}
END_TEST

START_TEST(without_a_time_it_does)
{
	struct other o = start_node("0");

	if (o.pidfd >= 0) {
		stop(o.node);
		ck_assert(!has_ended(&o, 1.5));
	}
	end_node(&o);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		an_answer_that_comes_later,
		what_nobody_waits_for_is_dropped,
		values_and_refusals,
		an_answer_within_the_question,
		a_life_that_is_over_has_no_question,
		questions_at_once_are_answered_in_turns,
		very_many_questions_at_once_are_garbage,
		a_worker_ends_when_its_time_is_over,
		a_worker_that_is_told_again_lives,
		a_worker_that_is_stopped_ends_likewise,
		a_new_worker_is_told,
		a_slow_start_is_no_end,
		a_worker_that_has_left_may_take_its_time,
		without_a_timer_it_ends_at_once,
		a_stopped_node_keeps_no_worker,
		without_a_time_it_does,
	};

	if (evc_worker_is())
		return be_worker();
	if (getenv("TEST_NODE") != NULL)
		be_node();
	return api_run("node_processes", NULL, NULL, tests,
		       sizeof(tests) / sizeof(tests[0]));
}
