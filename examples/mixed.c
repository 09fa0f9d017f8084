/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mixed - every kind of member in one program, and one stop for all.
 *
 *	mixed [RUN]
 *
 * After RUN seconds (or at a SIGTERM) these stop together:
 *
 *   mixed            the coordinator; main runs its loop
 *     heartbeat      a looper on that loop
 *     loops          a scope
 *       loop-2       a second loop, on a thread of its own
 *       pulse        a looper on that one
 *     threads        a scope
 *       sleeper      a thread that sleeps until it is told
 *       reader       a thread that blocks in poll(), beside the stop descriptor
 *       veteran      a thread that the program made itself, and registered
 *     processes      a scope
 *       child        another program
 *
 * Scopes cost next to nothing and need not have phases: here they only say
 * what belongs together.  Before the stop and after it the report shows the
 * tree of what is alive.
 */
#include <evcoord.h>

#include <errno.h>
#include <ev.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static void
report(const evc_coord *c)
{
	char text[8192];

	evc_report(c, EVC_REPORT_TEXT, text, sizeof(text));
	fputs(text, stdout);
	fflush(stdout);
}

/* ---- loopers ---- */

static evc_status
beat(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	return 0; /* again at the next boundary */
}

static evc_status
set_up_loop(evc_reactor *r, void *arg)
{
	evc_member_opts here = { .reactor = r };

	(void)arg;
	return evc_looper_start(evc_reactor_coord(r), "pulse", 0.02, beat, NULL,
				&here, NULL);
}

/* ---- threads ---- */

static evc_status
sleep_until_told(evc_coord *c, void *arg)
{
	(void)arg;
	evc_wait_for_stop(c, INFINITY);
	return 0;
}

/* What blocks in a system call takes one descriptor more. */
static evc_status
read_until_told(evc_coord *c, void *arg)
{
	int in = *(int *)arg;
	struct pollfd p[2] = { { .fd = in, .events = POLLIN },
			       { .fd = evc_stop_fd(c), .events = POLLIN } };

	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	return p[1].revents ? 0 : EVC_INTERNAL; /* nobody writes to it */
}

/* As old as the program, and it has never heard of a coordinator: it has a
   flag of its own, which a hook sets. */
struct veteran {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool quit;
};

static void *
veteran_thread(void *arg)
{
	struct veteran *v = arg;

	pthread_mutex_lock(&v->lock);
	while (!v->quit)
		pthread_cond_wait(&v->changed, &v->lock);
	pthread_mutex_unlock(&v->lock);
	return NULL;
}

static evc_status
tell_veteran(evc_coord *c, void *arg)
{
	struct veteran *v = arg;

	(void)c;
	pthread_mutex_lock(&v->lock);
	v->quit = true;
	pthread_cond_signal(&v->changed);
	pthread_mutex_unlock(&v->lock);
	return 0;
}

static void
start_threads(evc_coord *c)
{
	/* The hook's memory: freed when nobody will call it any more. */
	const evc_member_opts own = { .release = free };
	struct veteran *v = calloc(1, sizeof(*v));
	static int in[2]; /* stays open as long as the program */
	pthread_t t;
	int err;

	evc_thread_start(c, "sleeper", sleep_until_told, NULL, NULL, NULL);
	if (pipe(in) < 0)
		evc_fail(c, EVC_RESOURCE_EXHAUSTED, errno, "no pipe");
	else
		evc_thread_start(c, "reader", read_until_told, &in[0], NULL,
				 NULL);
	err = v == NULL ? ENOMEM : 0;
	if (v != NULL) {
		pthread_mutex_init(&v->lock, NULL);
		pthread_cond_init(&v->changed, NULL);
		err = pthread_create(&t, NULL, veteran_thread, v);
	}
	if (err) {
		evc_fail(c, EVC_RESOURCE_EXHAUSTED, err, "no thread");
		free(v);
		return;
	}
	evc_register_thread(c, "veteran", t, NULL, NULL);
	evc_on_stop(c, "tell veteran", tell_veteran, v, &own, NULL);
}

/* ---- a process ---- */

static void
start_child(evc_coord *c)
{
	/* The others can do without it: its death is no error. */
	const evc_member_opts opts = { .flags = EVC_MAY_FAIL };
	static char *argv[] = { "sleep", "1000", NULL };
	pid_t pid;
	int err = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);

	if (err)
		evc_fail(c, EVC_NOT_FOUND, err, "cannot run %s", argv[0]);
	else
		evc_child_add(c, "child", pid, &opts, NULL);
}

/* ---- all of it ---- */

enum { LOOPS, THREADS, PROCESSES, N_SCOPES };

static bool
start(evc_coord *c, evc_coord *scope[])
{
	static const char *const names[] = { "loops", "threads", "processes" };
	/* Strict: a refused start is an error of its scope, and stops all. */
	evc_scope_opts opts = { .config.flags = EVC_STRICT_SETUP };
	int i;

	for (i = 0; i < N_SCOPES; i++)
		if (evc_scope_new(c, names[i], &opts, &scope[i]) < 0)
			return false;
	evc_looper_start(c, "heartbeat", 0.02, beat, NULL, NULL, NULL);
	evc_reactor_start(scope[LOOPS], "loop-2", set_up_loop, NULL, NULL,
			  NULL);
	start_threads(scope[THREADS]);
	for (i = 0; i < N_SCOPES; i++)
		evc_scope_ready(scope[i]);
	return true;
}

static void
on_timer(struct ev_loop *loop, ev_timer *t, int events)
{
	(void)loop;
	(void)events;
	report(t->data);
	evc_request_stop(t->data, 0, "it has run long enough");
}

int
main(int argc, char **argv)
{
	evc_config cfg = { .name = "mixed", .flags = EVC_STRICT_SETUP };
	/* A signal in the set-up waits for evc_run. */
	evc_signals_opts signals = { .flags = EVC_SIGNALS_AT_JOIN };
	struct ev_loop *loop;
	evc_coord *c, *scope[N_SCOPES] = { NULL };
	evc_verdict v;
	evc_status st;
	ev_timer timer;
	double run = 2;
	bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
	char *end = "";
	int status;

	if (argc > 1)
		run = strtod(argv[1], &end);
	if (argc > 2 || *end || !(run >= 0 && run <= 86400)) {
		fputs("usage: mixed [RUN]\n", help ? stdout : stderr);
		return help ? 0 : 2;
	}
	/* Not the default loop: that one reaps all children of the process,
	   and their exit status with them. */
	loop = ev_loop_new(EVFLAG_AUTO);
	if (loop == NULL || evc_new(loop, &cfg, &c) < 0 ||
	    evc_signals_start(c, &signals) < 0 || !start(c, scope)) {
		fprintf(stderr, "mixed: %s\n", evc_last_error());
		fflush(stdout);
		_exit(EXIT_FAILURE); /* threads may run */
	}
	/* A process outlives a signal that ends this one: so it is started when
	   signals are stops, and not for a stop that is to come. */
	if (evc_signals_pending(c) == 0)
		start_child(scope[PROCESSES]);
	ev_timer_init(&timer, on_timer, run, 0.);
	timer.data = c;
	ev_timer_start(loop, &timer);
	st = evc_run(c, NULL, &v);

	report(c);
	printf("%u members have ended, %u are late: %s\n", v.n_ended,
	       v.n_stragglers, st ? v.error.text : v.stop.text);
	for (int i = 0; i < N_SCOPES; i++)
		evc_free(scope[i]);
	status = evc_finish(c, st);
	if (v.n_stragglers) {
		/* Somebody still runs: no return from main under it. */
		fflush(stdout);
		_exit(status);
	}
	ev_loop_destroy(loop);
	return status;
}
