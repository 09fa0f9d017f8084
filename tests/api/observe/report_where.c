/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What evc_report says of where somebody is stuck: what the kernel knows of the
 * thread, its stack or why there is none, and of a loop which callback it is
 * in.
 */
#include "../../support/report_util.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* ---- threads ---- */

/* A member that is blocked in read(2) until somebody writes. */
struct receiver {
	int fd[2];
	bool blocks_all; /* signals */
	atomic_int tid;
};

static evc_status
receive(evc_coord *c, void *arg)
{
	struct receiver *r = arg;
	sigset_t all;
	char byte;

	(void)c;
	sigfillset(&all);
	if (r->blocks_all)
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	atomic_store(&r->tid, own_tid());
	while (read(r->fd[0], &byte, 1) != 1)
		;
	return 0;
}

static void
receiver_begin(struct receiver *r, evc_coord *c)
{
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, r->fd));
	OK(evc_thread_start(c, "receiver", receive, r, NULL, NULL));
	UNTIL(atomic_load(&r->tid) != 0);
	until_asleep(atomic_load(&r->tid));
}

static void
receiver_end(struct receiver *r, evc_coord *c)
{
	ck_assert_int_eq(send(r->fd[1], "x", 1, 0), 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	close(r->fd[0]);
	close(r->fd[1]);
}

START_TEST(state_and_system_call_are_the_kernels)
{
	struct receiver r = { .blocks_all = false };
	evc_coord *c = new_coord(NULL);

	if (t_under_qemu())
		T_SKIP("/proc shows the calls of the emulator");
	receiver_begin(&r, c);
	/* before a stop nobody asks the kernel */
	ck_assert_ptr_null(strstr(report(c), "kernel: "));
	OK(evc_request_stop(c, 0, NULL));
	HAS(line_with(report(c), "kernel: ", NULL), "kernel: S in read");
	receiver_end(&r, c);
}
END_TEST

START_TEST(the_wait_channel_is_the_kernels)
{
	struct receiver r = { .blocks_all = false };
	evc_coord *c = new_coord(NULL);
	char path[64], wchan[64] = "", expected[96];
	FILE *f;

	receiver_begin(&r, c);
	snprintf(path, sizeof(path), "/proc/self/task/%d/wchan",
		 atomic_load(&r.tid));
	f = fopen(path, "r");
	if (f != NULL) {
		if (fgets(wchan, sizeof(wchan), f) == NULL)
			wchan[0] = '\0';
		fclose(f);
	}
	OK(evc_request_stop(c, 0, NULL));
	if (wchan[0] == '\0' || strcmp(wchan, "0") == 0) {
		ck_assert_ptr_null(strstr(report(c), "(wchan "));
		receiver_end(&r, c);
		T_SKIP("this kernel does not tell wait channels");
	}
	snprintf(expected, sizeof(expected), "(wchan %s)", wchan);
	HAS(line_with(report(c), "kernel: ", NULL), expected);
	receiver_end(&r, c);
}
END_TEST

START_TEST(the_stack_is_that_of_the_thread)
{
	struct receiver r = { .blocks_all = false };
	evc_coord *c;
	const char *at, *name;
	Dl_info library;

	if (t_under_qemu())
		T_SKIP("a signal's frame is the emulator's");
	if (t_under_tsan())
		T_SKIP("to it, a handler runs when a call returns");
	STACKS_BY(0);
	c = new_coord(NULL);
	receiver_begin(&r, c);
	OK(evc_request_stop(c, 0, NULL));
	at = strstr(report(c), "kernel: ");
	ck_assert_ptr_nonnull(at);
	HAS(at, "     stack: ");
	/* in a system call of the C library, called by this program, and that
	   by the library's thread, which may be linked into the program */
	HAS(at, "libc.so");
	HAS(at, "report_where+0x");
	ck_assert_int_ne(dladdr((void *)evc_new, &library), 0);
	name = strrchr(library.dli_fname, '/');
	HAS(at, name != NULL ? name + 1 : library.dli_fname);
	ck_assert_ptr_null(strstr(at, "not available"));
	ck_assert_ptr_null(strstr(at, "no stacks"));
	receiver_end(&r, c);
}
END_TEST

START_TEST(without_a_stack_signal_that_is_said_once)
{
	struct receiver r = { .blocks_all = false };
	struct guest g = { 0 };
	evc_coord *c = new_coord(NULL);

	OK(evc_thread_start(c, "second", stay, &g, NULL, NULL));
	receiver_begin(&r, c);
	ck_assert_ptr_null(strstr(report(c), "no stacks"));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_uint_eq(times_in(report(c), "no stacks"), 1);
	HAS(report(c), "(no stacks: evc_stack_signal was not called)\n");
	ck_assert_ptr_null(strstr(report(c), "stack: "));
	atomic_store(&g.open, 1);
	receiver_end(&r, c);
}
END_TEST

START_TEST(a_thread_that_blocks_the_signal_is_named_as_such)
{
	struct receiver r = { .blocks_all = true };
	evc_coord *c;

	STACKS_BY(0);
	c = new_coord(NULL);
	receiver_begin(&r, c);
	OK(evc_request_stop(c, 0, NULL));
	HAS(report(c), "     stack: not available: it blocks the signal\n");
	receiver_end(&r, c);
}
END_TEST

/* In D state: a parent waits for the child of a vfork without a way out. */
struct sleeper {
	int fd[2];
	atomic_int tid;
};

static int
hold_parent(void *arg)
{
	struct sleeper *s = arg;
	char byte;

	return read(s->fd[0], &byte, 1) != 1;
}

static evc_status
sleep_in_D(evc_coord *c, void *arg)
{
	struct sleeper *s = arg;
	static char stack[64 << 10];
	int pid, status;

	(void)c;
	atomic_store(&s->tid, own_tid());
	/* memory of its own, so that it may do what it likes */
	pid = clone(hold_parent, stack + sizeof(stack), CLONE_VFORK | SIGCHLD,
		    s);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ?
		       0 :
		       EVC_INTERNAL;
}

START_TEST(a_thread_in_D_state_is_not_asked)
{
	struct sleeper s = { .tid = 0 };
	evc_coord *c;
	char state[128] = "";

	if (t_under_qemu())
		T_SKIP("to it, vfork is a fork: nobody waits for the disk");
	if (t_under_valgrind())
		T_SKIP("its clone takes no such flags");
	STACKS_BY(0);
	c = new_coord(NULL);
	OK(pipe(s.fd));
	OK(evc_thread_start(c, "sleeper", sleep_in_D, &s, NULL, NULL));
	UNTIL(atomic_load(&s.tid) != 0);
	UNTIL((task_line(atomic_load(&s.tid), "State:", state, sizeof(state)),
	       strchr(state, 'D') != NULL));
	OK(evc_request_stop(c, 0, NULL));
	HAS(report(c), "     kernel: D");
	HAS(report(c), "     stack: not available: it is in disk sleep");
	ck_assert_int_eq(write(s.fd[1], "x", 1), 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	close(s.fd[0]);
	close(s.fd[1]);
}
END_TEST

START_TEST(so_many_stacks_and_no_more)
{
	enum { MOST = 64, N = MOST + 6 };
	struct guest g = { 0 };
	evc_coord *c;
	int i;

	STACKS_BY(0);
	c = new_coord(NULL);
	for (i = 0; i < N; i++)
		OK(evc_thread_start(c, "one-of-many", stay, &g, NULL, NULL));
	UNTIL(atomic_load(&g.in) == N);
	OK(evc_request_stop(c, 0, NULL));
	/* fewer, where they take their time */
	HAS(report(c), " more stacks not taken)\n");
	ck_assert_uint_le(times_in(report(c), "     stack: "), MOST);
	ck_assert_uint_ge(times_in(report(c), "     stack: "), 1);
	ck_assert_uint_eq(times_in(report(c), "     kernel: "), N);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(without_proc_there_is_less)
{
	struct receiver r = { .blocks_all = false };
	evc_coord *c;
	int status = -1;
	pid_t pid;

	NEEDS_BACKTRACE();
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount("none", "/", "none", MS_REC | MS_PRIVATE, "") < 0 ||
		    mount("none", "/proc", "tmpfs", 0, "") < 0)
			_exit(77);
		OK(evc_stack_signal(0));
		c = new_coord(NULL);
		OK(socketpair(AF_UNIX, SOCK_STREAM, 0, r.fd));
		OK(evc_thread_start(c, "receiver", receive, &r, NULL, NULL));
		UNTIL(atomic_load(&r.tid) != 0);
		OK(evc_request_stop(c, 0, NULL));
		CHILD(strstr(report(c), "thread \"receiver\"") != NULL);
		CHILD(strstr(report(c), "kernel: not known") != NULL);
		/* stacks need no /proc */
		CHILD(strstr(report(c), "     stack: ") != NULL);
		CHILD(send(r.fd[1], "x", 1, 0) == 1);
		CHILD(evc_join(c, NULL, NULL) == 0);
		CHILD(evc_free(c) == 0);
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		T_SKIP("no mount namespace to be had");
	ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- loops ---- */

/* A loop on a thread of its own, and something on it that does not return
   until it is let go. */
struct place {
	evc_task task; /* first: the task is the place */
	evc_coord *c, *scope;
	evc_reactor *_Atomic r;
	struct guest g;
	ev_timer timer;
	evc_status begun;
	/* on the loop's thread; NULL: the set-up does not return itself */
	void (*begin)(struct place *p, evc_reactor *r);
};

static evc_status
block(evc_coord *c, void *arg)
{
	return stay(c, &((struct place *)arg)->g);
}

static void
block_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	stay(NULL, &((struct place *)w->data)->g);
}

static void
begin_application(struct place *p, evc_reactor *r)
{
	ev_timer_init(&p->timer, block_timer, 0, 0);
	p->timer.data = p;
	ev_timer_start(evc_reactor_loop(r), &p->timer);
}

static void
begin_looper(struct place *p, evc_reactor *r)
{
	evc_member_opts opts = { .reactor = r };

	p->begun = evc_looper_start(p->c, "slow-looper", 0.001, block, p, &opts,
				    NULL);
}

static void
begin_hook(struct place *p, evc_reactor *r)
{
	evc_member_opts opts = { .reactor = r };

	p->begun = evc_on_stop(p->c, "slow-hook", block, p, &opts, NULL);
}

static void
told(evc_task *t, void *arg)
{
	struct place *p = (struct place *)t;

	(void)arg;
	stay(NULL, &p->g);
	evc_task_end(t);
}

static const evc_task_class slow_task = {
	.name = "slow-task",
	.on_stop = told,
};

static void
begin_task(struct place *p, evc_reactor *r)
{
	p->begun = evc_task_begin(r, &p->task, &slow_task);
}

static bool
runner_runs(void *arg)
{
	return !atomic_load(&((struct place *)arg)->g.open);
}

static void
runner_stop(void *arg)
{
	stay(NULL, &((struct place *)arg)->g);
}

static const evc_runner_ops slow_runner = { .is_running = runner_runs,
					    .stop = runner_stop };

static void
begin_runner(struct place *p, evc_reactor *r)
{
	evc_member_opts opts = { .reactor = r };

	p->begun = evc_runner_add(p->c, "slow-runner", &slow_runner, p, &opts,
				  NULL);
}

static void
joined(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)v;
	stay(c, &((struct place *)arg)->g);
}

/* A join of the scope on its home, which is this loop. */
static void
begin_join(struct place *p, evc_reactor *r)
{
	evc_scope_opts opts = { .home = r };

	p->begun = evc_scope_new(p->c, "joined-scope", &opts, &p->scope);
	if (p->begun == 0)
		p->begun = evc_scope_ready(p->scope);
	if (p->begun == 0)
		p->begun = evc_join_start(p->scope, joined, p, NULL);
}

static void
begin_ended(struct place *p, evc_reactor *r)
{
	evc_scope_opts opts = { .home = r, .ended = joined, .arg = p };

	p->begun = evc_scope_new(p->c, "ending-scope", &opts, &p->scope);
	if (p->begun == 0)
		p->begun = evc_scope_ready(p->scope);
}

static evc_status
set_up(evc_reactor *r, void *arg)
{
	struct place *p = arg;

	atomic_store(&p->r, r);
	if (p->begin != NULL)
		p->begin(p, r);
	else /* the set-up itself */
		stay(p->c, &p->g);
	return p->begun;
}

/* evc_reactor_start returns when the set-up does. */
static void *
start_main(void *arg)
{
	struct place *p = arg;

	evc_reactor_start(p->c, "the-loop", set_up, p, NULL, NULL);
	return NULL;
}

/* The loop gets stuck in what begin begins, before the stop or by it; then its
   line says so.  scope: what the same loop's line below says, or NULL. */
static void
stuck_below(void (*begin)(struct place *p, evc_reactor *r), bool before,
	    const char *what, const char *scope)
{
	struct place p = { .begin = begin };
	char silent[160], busy[160];
	pthread_t starter;
	const char *line;

	p.c = new_coord(NULL);
	OK(pthread_create(&starter, NULL, start_main, &p));
	UNTIL(atomic_load(&p.r) != NULL);
	if (begin != NULL) {
		OK(pthread_join(starter, NULL));
		OK(p.begun);
	}
	if (before)
		UNTIL(atomic_load(&p.g.in) == 1);
	OK(evc_request_stop(p.c, 0, NULL));
	UNTIL(atomic_load(&p.g.in) == 1);
	snprintf(silent, sizeof(silent),
		 " has not turned since the stop: in %s", what);
	snprintf(busy, sizeof(busy), " is in %s", what);
	line = line_with(report(p.c), "loop \"the-loop\" (tid ", NULL);
	/* what keeps it from turning, or what its turn has come to: one that
	   had begun when the stop came is none since the stop */
	HAS(line, before || strstr(line, silent) != NULL ? silent : busy);
	HAS(line, begin != NULL ? ", for 0." : ", or nobody has run it yet");
	if (scope != NULL)
		HAS(strstr(report(p.c), "\n  scope \""), scope);
	/* and its thread's place is known, with the member that it is */
	HAS(strstr(report(p.c), "loop \"the-loop\""), "its thread is #");
	atomic_store(&p.g.open, 1);
	if (begin == NULL)
		OK(pthread_join(starter, NULL));
	OK(evc_join(p.c, NULL, NULL));
	if (p.scope != NULL)
		OK(evc_free(p.scope));
	OK(evc_free(p.c));
}

static void
stuck_in(void (*begin)(struct place *p, evc_reactor *r), bool before,
	 const char *what)
{
	stuck_below(begin, before, what, NULL);
}

START_TEST(a_loop_in_a_callback_of_the_application)
{
	stuck_in(begin_application, true, "a callback of the application");
}
END_TEST

START_TEST(a_loop_in_a_looper)
{
	stuck_in(begin_looper, true, "looper \"slow-looper\"");
}
END_TEST

START_TEST(a_loop_in_a_stop_hook)
{
	stuck_in(begin_hook, false, "stop hook \"slow-hook\"");
}
END_TEST

START_TEST(a_loop_in_an_on_stop_of_tasks)
{
	stuck_in(begin_task, false, "on_stop of task class \"slow-task\"");
}
END_TEST

START_TEST(a_loop_in_a_runner)
{
	stuck_in(begin_runner, false, "an operation of runner \"slow-runner\"");
}
END_TEST

START_TEST(a_loop_in_the_callback_of_a_join)
{
	stuck_below(begin_join, true, "a callback for another coordinator",
		 " in the callback of a join of \"joined-scope\"");
}
END_TEST

START_TEST(a_loop_in_ended_of_a_scope)
{
	stuck_below(begin_ended, false, "a callback for another coordinator",
		 " in `ended` of \"ending-scope\"");
}
END_TEST

static void
receive_in_ended(evc_coord *s, const evc_verdict *v, void *arg)
{
	(void)v;
	(void)receive(s, arg);
}

START_TEST(the_helper_in_ended_of_a_scope)
{
	struct receiver r = { .blocks_all = false };
	evc_coord *c = new_coord(NULL), *s = NULL;
	evc_scope_opts o = { .ended = receive_in_ended, .arg = &r };

	if (t_under_qemu())
		T_SKIP("/proc shows the calls of the emulator");
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, r.fd));
	OK(evc_scope_new(c, "db", &o, &s));
	OK(evc_scope_ready(s));
	ck_assert_ptr_null(strstr(report(c), "hook \"ended\""));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&r.tid) != 0);
	until_asleep(atomic_load(&r.tid));
	HAS(report(c), "hook \"ended\" on helper thread, live\n");
	HAS(line_with(strstr(report(c), "hook \"ended\""), "kernel: ", NULL),
	    "kernel: S in read");
	ck_assert_int_eq(send(r.fd[1], "x", 1, 0), 1);
	OK(evc_join(c, NULL, NULL));
	ck_assert_ptr_null(strstr(report(c), "hook \"ended\""));
	FREE_ALL(s, c);
	close(r.fd[0]);
	close(r.fd[1]);
}
END_TEST

START_TEST(a_loop_in_its_set_up)
{
	stuck_in(NULL, true, "the setup of \"the-loop\"");
}
END_TEST

START_TEST(a_loop_that_nobody_runs)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);

	ck_assert_ptr_null(strstr(report(c), "loop \"home\""));
	OK(evc_request_stop(c, 0, NULL));
	HAS(line_with(report(c), "loop \"home\" (tid ", NULL),
	    "has not turned since the stop");
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_ptr_null(strstr(report(c), "loop \"home\""));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static void
ignore_message(evc_message *m, evc_status why)
{
	(void)m;
	(void)why;
}

/* A turn of r is due: a host knows of no other silence. */
static void
post_to(evc_reactor *r)
{
	static evc_message m;
	evc_loop_ref *ref = evc_loop_of(r);

	m = (evc_message){ .fn = ignore_message, .flags = EVC_AFTER_STOP };
	ck_assert_ptr_nonnull(ref);
	OK(evc_post_message(ref, &m));
	evc_loop_release(ref);
}

static void
begin_nothing(struct place *p, evc_reactor *r)
{
	(void)p;
	(void)r;
}

START_TEST(a_loop_that_waits_for_events_turns)
{
	struct place p = { .begin = begin_nothing };

	p.c = new_coord(NULL);
	start_main(&p);
	OK(p.begun);
	UNTIL(strstr(report_stacks(p.c), ") turns\n") != NULL);
	t_sleep(0.15);
	HAS(report_stacks(p.c), ") turns\n");
	OK(evc_request_stop(p.c, 0, NULL));
	OK(evc_join(p.c, NULL, NULL));
	OK(evc_free(p.c));
}
END_TEST

static void
count_answer(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	++*(int *)arg;
}

/* The loop has heard of the stop, and is not run any more: a task, or a join,
   waits for its turns. */
static void
not_run_any_more(bool join)
{
	static const evc_task_class waits = { .name = "waits",
					      .flags = EVC_AFTER_STOP };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_task t = { 0 };
	int answers = 0;

	OK(evc_request_stop(c, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	/* Nothing is missed. */
	t_sleep(0.15);
	ck_assert_ptr_null(strstr(elsewhere(report_plain, c), "loop \""));
	if (join)
		OK(evc_join_start(c, count_answer, &answers, NULL));
	else
		OK(evc_task_begin(evc_home(c), &t, &waits));
	if (t_on_epoll())
		post_to(evc_home(c));
	UNTIL(strstr(elsewhere(report_plain, c), "loop \"home\"") != NULL);
	HAS(line_with(elsewhere(report_plain, c), "loop \"", NULL),
	    " has not turned for ");
	if (!join)
		evc_task_end(&t);
	OK(evc_run(c, NULL, NULL));
	ck_assert_int_eq(answers, join);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}

START_TEST(a_loop_that_does_not_go_on_after_the_stop)
{
	not_run_any_more(false);
	not_run_any_more(true);
}
END_TEST

START_TEST(a_loop_that_was_destroyed)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);

	ev_loop_destroy(loop);
	HAS(line_with(report(c), "loop \"home\" (tid ", NULL),
	    ") was destroyed");
	OK(evc_free(c));
}
END_TEST

/* A run inside a callback meets the stop, so the outer run ends before it waits
   for events. */
static void
run_inside(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)revents;
	OK(evc_request_stop(w->data, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(loop, EVRUN_NOWAIT);
}

START_TEST(a_loop_with_a_run_that_has_ended)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	ev_timer t;

	ev_timer_init(&t, run_inside, 0, 0);
	t.data = c;
	ev_timer_start(loop, &t);
	OK(evc_run(c, NULL, NULL));
	if (t_on_epoll())
		post_to(evc_home(c));
	UNTIL(strstr(elsewhere(report_stacks, c), ") has not turned for ") !=
	      NULL);
	if (t_on_epoll())
		ev_run(loop, EVRUN_NOWAIT);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* The thread of a loop that is no member: its own lines below the loop's. */
static void *
run_bare(void *arg)
{
	struct place *p = arg;
	struct ev_loop *loop = ev_loop_new(0);
	evc_reactor *r = NULL;

	p->begun = evc_reactor_attach(p->c, "bare", loop, &r);
	begin_application(p, r);
	atomic_store(&p->r, r);
	ev_run(loop, 0);
	p->begun = evc_reactor_detach(r);
	ev_loop_destroy(loop);
	return NULL;
}

/* The loop hangs with no stop, for a tenth of a second or more. */
static void
held_in(void *(*run)(void *place), const char *where, bool least)
{
	struct place p = { .begin = begin_looper };
	pthread_t runner;
	const char *line;
	double age = -1;

	p.c = new_coord(NULL);
	OK(pthread_create(&runner, NULL, run, &p));
	UNTIL(atomic_load(&p.g.in) == 1);
	post_to(atomic_load(&p.r));
	ck_assert_ptr_null(strstr(report(p.c), "loop \""));
	UNTIL(strstr(report_stacks(p.c), ") has not turned for ") != NULL);
	line = line_with(report_stacks(p.c), "loop \"", NULL);
	line = strstr(line, ") has not turned for ");
	ck_assert_ptr_nonnull(line);
	ck_assert_int_eq(sscanf(line + strcspn(line, "0123456789"), "%lf",
				&age), 1);
	ck_assert_double_ge(age, 0.1);
	HAS(line, where);
	/* A host does not say when it has called the application. */
	ck_assert_int_eq(strstr(line, "at least") != NULL, least);
	atomic_store(&p.g.open, 1);
	OK(pthread_join(runner, NULL));
	OK(evc_request_stop(p.c, 0, NULL));
	OK(evc_join(p.c, NULL, NULL));
	OK(p.begun);
	OK(evc_free(p.c));
}

START_TEST(a_loop_that_hangs_before_a_stop_does_not_turn)
{
	held_in(start_main, " s: in looper \"slow-looper\"", false);
	held_in(run_bare, " s: in a callback of the application, or not run "
			  "any more", t_on_epoll());
}
END_TEST

START_TEST(the_stack_of_a_silent_loop_stands_with_it)
{
	struct place p = { .begun = 0 };
	const char *at;
	pthread_t t;

	if (t_under_qemu())
		T_SKIP("a signal's frame is the emulator's");
	if (t_under_tsan())
		T_SKIP("its stacks end where a system call begins");
	STACKS_BY(0);
	p.c = new_coord(NULL);
	OK(pthread_create(&t, NULL, run_bare, &p));
	UNTIL(atomic_load(&p.g.in) == 1);
	OK(evc_request_stop(p.c, 0, NULL));
	at = strstr(report(p.c), "loop \"bare\" (tid ");
	ck_assert_ptr_nonnull(at);
	HAS(at, "in a callback of the application, for ");
	HAS(at, "\n     kernel: ");
	HAS(at, "\n     stack: ");
	HAS(at, "ev_run");
	atomic_store(&p.g.open, 1);
	OK(pthread_join(t, NULL));
	OK(p.begun);
	OK(evc_free(p.c));
}
END_TEST

API_MAIN("report_where", state_and_system_call_are_the_kernels,
	 the_wait_channel_is_the_kernels, the_stack_is_that_of_the_thread,
	 without_a_stack_signal_that_is_said_once,
	 a_thread_that_blocks_the_signal_is_named_as_such,
	 a_thread_in_D_state_is_not_asked, so_many_stacks_and_no_more,
	 without_proc_there_is_less, a_loop_in_a_callback_of_the_application,
	 a_loop_in_a_looper, a_loop_in_a_stop_hook,
	 a_loop_in_an_on_stop_of_tasks, a_loop_in_a_runner,
	 a_loop_in_the_callback_of_a_join, a_loop_in_ended_of_a_scope,
	 the_helper_in_ended_of_a_scope, a_loop_in_its_set_up,
	 a_loop_that_nobody_runs,
	 a_loop_that_hangs_before_a_stop_does_not_turn,
	 a_loop_that_waits_for_events_turns,
	 a_loop_that_does_not_go_on_after_the_stop,
	 a_loop_with_a_run_that_has_ended,
	 a_loop_that_was_destroyed, the_stack_of_a_silent_loop_stands_with_it)
