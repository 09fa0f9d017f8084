/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cases of the adapters' tests, C99 and C++11, for each host the same.  A
 * program names a case, or lists them without an argument.  The file that
 * includes this one defines HOST, the name of the adapter, and
 *
 *	host_new, host_free	make and free the host's loop
 *	host_attach, host_detach, host_run	the adapter's calls
 *	host_later(fn)		the host calls fn(), 5 ms from now
 *	host_quit		how a program ends the host's loop
 *	host_own_run		how a program runs it
 *	host_adapter		the common part of the attach
 *	host_inner(done)	turns the loop in a callback until *done
 *	HOST_NESTS		may the host do that?
 *	HOST_KNOWS		does the host say that it runs?
 *	HOST_GOES_ON		can the host run again after host_quit?
 *	HOST_CASES		cases of its own
 */
#include <evcoord.h>

static unsigned n_turns;

static inline evc_status
counted_turn(evc_reactor *r)
{
	__atomic_add_fetch(&n_turns, 1, __ATOMIC_RELAXED);
	return evc_reactor_turn(r);
}

#define evc_reactor_turn counted_turn
#include <evcoord/adapter.h>
#undef evc_reactor_turn

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x)                                                          \
	((x) ? (void)0 :                                                  \
	       (fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #x, \
			evc_last_error()),                                \
		_exit(1)))
#define OK(x)          CHECK((x) == 0)
#define HAS(text, has) CHECK(strstr((text), (has)) != NULL)

static evc_coord *coord;
static evc_verdict v;
static evc_task task;
static evc_task_class plain, told;
static int called;

/* What each host defines. */
static void host_new(void);
static void host_free(void);
static evc_status host_attach(evc_coord *c, const char *name);
static evc_status host_detach(void);
static evc_status host_run(const evc_join_opts *opts, evc_verdict *ret);
static void host_later(void (*fn)(void));
static void host_quit(void);
static void host_own_run(void);
static struct evc_adapter *host_adapter(void);
static void host_inner(const int *done);

static evc_reactor *
host_reactor(void)
{
	return host_adapter()->reactor;
}

static void
begin(void)
{
	evc_config cfg;

	memset(&cfg, 0, sizeof(cfg));
	cfg.grace = 20;
	plain.name = "plain";
	told.name = "told";
	host_new();
	OK(evc_new(NULL, &cfg, &coord));
	OK(host_attach(coord, "main"));
	CHECK(host_reactor() == evc_home(coord));
}

static void
end(void)
{
	OK(host_detach());
	OK(evc_free(coord));
	host_free();
}

static void
ask(void)
{
	called++;
	evc_request_stop(coord, 0, "asked");
}

static void
end_task(void)
{
	called++;
	evc_task_end(&task);
}

static void
set_called(evc_reactor *r, evc_status why, void *arg)
{
	(void)r;
	(void)arg;
	called += why == 0;
}

static void
post(evc_post_fn *fn)
{
	evc_loop_ref *loop = evc_loop_of(host_reactor());
	evc_status st = evc_post(loop, fn, NULL);

	OK(st);
	evc_loop_release(loop);
}

static evc_status
count_run(evc_coord *c, void *arg)
{
	(void)c;
	++*EVC_CAST_(int *, arg);
	return EVC_OK;
}

static evc_status
obey(evc_coord *c, void *arg)
{
	(void)arg;
	evc_wait_for_stop(c, 100);
	return EVC_OK;
}

/* The run waits for a stop while there are no members, and an idle host is not
   woken. */
static void
waits_for_the_stop(void)
{
	host_later(ask);
	OK(host_run(NULL, &v));
	CHECK(called == 1);
	CHECK(strcmp(v.stop.text, "asked") == 0);
	CHECK(n_turns < 20);
}

static void
stop_before_the_run(void)
{
	ask();
	OK(host_run(NULL, &v));
	CHECK(strcmp(v.stop.text, "asked") == 0);
}

/* A closed round answers again at once; the next round waits again. */
static void
runs_twice(void)
{
	ask();
	OK(host_run(NULL, &v));
	memset(&v, 0, sizeof(v));
	OK(host_run(NULL, &v));
	CHECK(strcmp(v.stop.text, "asked") == 0);
	OK(evc_clear_stop(coord));
	host_later(ask);
	OK(host_run(NULL, NULL));
	CHECK(called == 2);
}

/* All that a reactor is for; and a signal that was kept for the run. */
static void
members(void)
{
	static int hooks, runs;
	evc_signals_opts o;
	evc_status st;

	memset(&o, 0, sizeof(o));
	o.flags = EVC_SIGNALS_AT_JOIN;
	OK(evc_signals_start(coord, &o));
	OK(evc_thread_start(coord, "thread", obey, NULL, NULL, NULL));
	OK(evc_looper_start(coord, "looper", 0.001, count_run, &runs, NULL,
			    NULL));
	OK(evc_on_stop(coord, "hook", count_run, &hooks, NULL, NULL));
	st = evc_task_begin(host_reactor(), &task, &plain);
	OK(st);
	post(set_called);
	raise(SIGTERM);
	CHECK(!evc_should_stop(coord));
	host_later(end_task);
	OK(host_run(NULL, &v));
	CHECK(called == 2 && hooks == 1);
	CHECK(v.stop.signo == SIGTERM);
	CHECK(v.n_ended >= 2);
}

static void
end_task_later(evc_task *t, void *arg)
{
	(void)arg;
	if (HOST_GOES_ON)
		host_later(end_task);
	else
		evc_task_end(t);
}

/* The end of the host's loop is a request, and the join goes on. */
static void
quit_by_the_program(void)
{
	evc_status st;

	told.on_stop = end_task_later;
	st = evc_task_begin(host_reactor(), &task, &told);
	OK(st);
	host_later(host_quit);
	OK(host_run(NULL, &v));
	HAS(v.stop.text, "by the application");
	CHECK(called == HOST_GOES_ON);
	CHECK(v.n_stragglers == 0);
}

static void
late_member(void)
{
	evc_join_opts o;
	evc_id hold;

	memset(&o, 0, sizeof(o));
	o.grace = 0.02;
	OK(evc_hold_begin(coord, "deaf", NULL, &hold));
	host_later(ask);
	CHECK(host_run(&o, &v) == EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, "deaf");
	CHECK(v.n_stragglers == 1);
	OK(evc_hold_end(coord, hold));
}

static void
run_refused(void)
{
	called++;
	CHECK(host_run(NULL, NULL) == -EVC_FAILED_PRECONDITION);
	HAS(evc_last_error(), "inside a callback");
}

static void
run_refused_there(evc_reactor *r, evc_status why, void *arg)
{
	(void)r;
	(void)why;
	(void)arg;
	run_refused();
	CHECK(host_detach() == -EVC_FAILED_PRECONDITION);
	host_later(ask);
}

static void
run_inside_the_run(void)
{
	host_later(run_refused);
	post(run_refused_there);
	OK(host_run(NULL, NULL));
	CHECK(called == 3);
}

/* A detach that is refused changes nothing: the host still listens. */
static void
detach_with_a_task(void)
{
	evc_status st = evc_task_begin(host_reactor(), &task, &plain);

	OK(st);
	CHECK(host_detach() == -EVC_FAILED_PRECONDITION);
	host_later(ask);
	host_later(end_task);
	OK(host_run(NULL, &v));
	CHECK(called == 2);
}

static void
refused_inside(void)
{
	called++;
	CHECK(host_detach() == -EVC_FAILED_PRECONDITION);
	HAS(evc_last_error(), "inside its run");
	ask();
}

static void
detach_inside_the_run(void)
{
	host_later(refused_inside);
	OK(host_run(NULL, &v));
	CHECK(called == 2);
}

static evc_status
refused_there(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	usleep(20000);
	CHECK(host_detach() == -EVC_FAILED_PRECONDITION);
	HAS(evc_last_error(), "another thread");
	ask();
	return EVC_OK;
}

/* The host sleeps then, and has the descriptor in its set. */
static void
detach_on_another_thread(void)
{
	OK(evc_thread_start(coord, "wrong", refused_there, NULL, NULL, NULL));
	OK(host_run(NULL, &v));
	CHECK(called == 1);
}

/* A program that keeps its own run begins the join, and quits in its result. */
static void
quit_at_the_verdict(evc_coord *c, const evc_verdict *verdict, void *arg)
{
	(void)c;
	(void)arg;
	v = *verdict;
	host_quit();
}

static void
own_run(void)
{
	evc_join_opts o;

	memset(&o, 0, sizeof(o));
	o.flags = EVC_JOIN_UNTIL_STOP;
	OK(evc_join_start(coord, quit_at_the_verdict, NULL, &o));
	if (HOST_KNOWS)
		host_later(run_refused);
	post(run_refused_there); /* and asks */
	host_own_run();
	CHECK(strcmp(v.stop.text, "asked") == 0);
	CHECK(called == 2 + HOST_KNOWS);
}

/* The host runs without the adapter. */
static void
after_the_detach(void)
{
	unsigned before;

	ask();
	OK(host_run(NULL, NULL));
	OK(host_detach());
	before = n_turns;
	host_later(host_quit);
	host_own_run();
	CHECK(n_turns == before);
	host_free();
	host_new();
	OK(host_attach(coord, "again"));
}

static void
turn_inside(evc_reactor *r, evc_status why, void *arg)
{
	int before = called;

	(void)r;
	(void)why;
	(void)arg;
	post(set_called);
	while (called == before)
		host_inner(&called);
	ask();
}

/* In a function of the library the host may turn, and the library does, too. */
static void
turns_inside_a_turn(void)
{
	if (HOST_NESTS) {
		post(turn_inside);
		OK(host_run(NULL, &v));
		CHECK(called == 2);
	}
}

static void
dialog(void)
{
	ask();
	while (!host_adapter()->answered)
		host_inner(&called);
	CHECK(host_detach() == -EVC_FAILED_PRECONDITION);
	called++;
}

/* The join is answered in a run inside the run, which ends then, too. */
static void
answered_inside(void)
{
	if (HOST_NESTS) {
		host_later(dialog);
		OK(host_run(NULL, &v));
		CHECK(called == 2);
	}
}

/* The child of fork ends with this status. */
static void
left_with(pid_t pid, int code)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
}

static void
dialog_for_ever(void)
{
	dialog();
	for (;;)
		pause();
}

static void
live_on(void)
{
	evc_escalation_opts o;

	alarm(60);
	memset(&o, 0, sizeof(o));
	o.budget = 0.05;
	o.at_end = EVC_AT_END_EXIT;
	begin();
	OK(evc_escalation_set(coord, &o));
	host_later(dialog_for_ever);
	host_run(NULL, &v);
	_exit(7);
}

/* A host that lives on inside its run after the answer is ended. */
static void
at_end_inside(void)
{
	pid_t pid;

	if (!HOST_NESTS)
		return;
	end(); /* before the child, which begins anew */
	pid = fork();
	if (pid == 0)
		live_on();
	left_with(pid, 124);
	begin();
}

/* A child of fork has no reactor, and watches no descriptor of its parent, which
   goes on. */
static void
fork_here(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		alarm(10);
		evc_adapter_turn(host_adapter());
		_exit(host_adapter()->watched ? 1 : 7);
	}
	left_with(pid, 7);
	ask();
}

static void
fork_in_the_run(void)
{
	host_later(fork_here);
	OK(host_run(NULL, &v));
	CHECK(called == 1);
}

/* A child detaches: its parent, whose loop has run, still hears. */
static void
detach_in_a_child(void)
{
	pid_t pid;

	ask();
	OK(host_run(NULL, &v));
	OK(evc_clear_stop(coord));
	pid = fork();
	if (pid == 0) {
		alarm(10);
		OK(host_detach());
		_exit(7);
	}
	left_with(pid, 7);
	post(set_called);
	host_later(ask);
	OK(host_run(NULL, &v));
	CHECK(called == 3);
}

static int
lowest_descriptor(void)
{
	int fd = dup(2);

	close(fd);
	return fd;
}

/* An attach that fails half-way leaves nothing. */
static void
no_descriptors(void)
{
	struct rlimit limit, few;
	int i, lowest, refused = 0;
	evc_config cfg;
	evc_coord *strict;
	evc_status st;

	memset(&cfg, 0, sizeof(cfg));
	cfg.flags = EVC_STRICT_SETUP;
	OK(host_detach());
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	few = limit;
	lowest = lowest_descriptor();
	for (i = 0; i < 6; i++) {
		few.rlim_cur = EVC_CAST_(rlim_t, lowest + i);
		OK(evc_new(NULL, &cfg, &strict));
		CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
		st = host_attach(strict, "few");
		CHECK(st == 0 || st == -EVC_RESOURCE_EXHAUSTED);
		CHECK(evc_should_stop(strict) == (st < 0));
		refused += st < 0;
		if (st == 0)
			OK(host_detach());
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		OK(evc_free(strict));
		CHECK(lowest_descriptor() == lowest);
	}
	CHECK(refused > 0 && refused < 6);
	OK(host_attach(coord, "again"));
}

static const struct {
	const char *name;
	void (*fn)(void);
} cases[] = {
	{ "waits_for_the_stop", waits_for_the_stop },
	{ "stop_before_the_run", stop_before_the_run },
	{ "runs_twice", runs_twice },
	{ "members", members },
	{ "quit_by_the_program", quit_by_the_program },
	{ "late_member", late_member },
	{ "run_inside_the_run", run_inside_the_run },
	{ "detach_with_a_task", detach_with_a_task },
	{ "detach_inside_the_run", detach_inside_the_run },
	{ "detach_on_another_thread", detach_on_another_thread },
	{ "own_run", own_run },
	{ "after_the_detach", after_the_detach },
	{ "turns_inside_a_turn", turns_inside_a_turn },
	{ "answered_inside", answered_inside },
	{ "at_end_inside", at_end_inside },
	{ "fork_in_the_run", fork_in_the_run },
	{ "detach_in_a_child", detach_in_a_child },
	{ "no_descriptors", no_descriptors },
	HOST_CASES
};

#define N_CASES (sizeof(cases) / sizeof(cases[0]))

/* All of them in one process, one after the other, or one by its name. */
int
main(int argc, char **argv)
{
	size_t i, n = 0;

	alarm(60);
	CHECK(host_run(NULL, NULL) == -EVC_INVALID_ARGUMENT);
	OK(host_detach()); /* of nothing */
	for (i = 0; i < N_CASES; i++) {
		if (argc > 1 && strcmp(argv[1], cases[i].name) != 0)
			continue;
		fprintf(stderr, "%s\n", cases[i].name);
		called = 0;
		n_turns = 0;
		memset(&v, 0, sizeof(v));
		memset(&task, 0, sizeof(task));
		begin();
		cases[i].fn();
		end();
		n++;
	}
	return n == 0;
}
