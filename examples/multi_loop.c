/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * multi_loop - loops on several threads, and one join for all.
 *
 *	multi_loop [COUNT]
 *
 * Four loops count to COUNT, each on a thread of its own; the one that is last
 * asks for the stop.  That reaches each loop through a watcher of its own, and
 * whatever lives on a loop is told there, on the loop's thread.  main has no
 * loop: it sleeps in a blocking join.
 *
 * Three of the loops are made by evc_reactor_start, which is a thread and a
 * loop in one call, with a set-up and a teardown.  The fourth shows what that
 * does, for a program that makes its loops itself: attach, and evc_reactor_run
 * in place of ev_run.
 */
#include <evcoord.h>

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_LOOPS 4

struct counter {
	char name[24];
	pthread_t thread;
	ev_timer timer;
	unsigned n;
	ev_tstamp began;
	double lasted;  /* seconds, from the set-up to the teardown */
	bool told_here; /* the stop came to it, on its own thread */
};

static unsigned count = 100;
static atomic_uint counting = N_LOOPS;

/* An ordinary watcher of an ordinary loop. */
static void
on_timer(struct ev_loop *loop, ev_timer *t, int events)
{
	struct counter *k = t->data;

	(void)events;
	if (++k->n < count)
		return;
	ev_timer_stop(loop, t); /* the loop runs on, with nothing to do */
	if (atomic_fetch_sub(&counting, 1) == 1)
		evc_request_stop(ev_userdata(loop), 0, "all have counted");
}

static evc_status
on_stop(evc_coord *c, void *arg)
{
	struct counter *k = arg;

	(void)c;
	k->told_here = pthread_equal(k->thread, pthread_self());
	return 0;
}

/* Put a counter on its loop; called on the loop's thread. */
static evc_status
set_up(evc_reactor *r, void *arg)
{
	const evc_member_opts here = { .reactor = r };
	struct ev_loop *loop = evc_reactor_loop(r);
	evc_coord *c = evc_reactor_coord(r);
	struct counter *k = arg;

	k->thread = pthread_self();
	k->began = ev_time();
	ev_set_userdata(loop, c);
	ev_timer_init(&k->timer, on_timer, 0.001, 0.001);
	k->timer.data = k;
	ev_timer_start(loop, &k->timer);
	evc_on_stop(c, k->name, on_stop, k, &here, NULL);
	return 0;
}

/* Nothing is left on its loop; called on the loop's thread, too. */
static evc_status
tear_down(evc_coord *c, void *arg)
{
	struct counter *k = arg;

	(void)c;
	k->lasted = ev_time() - k->began;
	return 0;
}

/* The long way. */
static evc_status
run_loop(evc_coord *c, void *arg)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct counter *k = arg;
	evc_reactor *r;
	evc_status st;

	if (loop == NULL)
		return evc_fail(c, EVC_RESOURCE_EXHAUSTED, 0, "no event loop");
	st = evc_reactor_attach(c, k->name, loop, &r);
	if (st == 0)
		set_up(r, k);
	if (st == 0)
		st = evc_reactor_run(r); /* until the stop; detaches */
	if (st == 0)
		st = tear_down(c, k);
	ev_loop_destroy(loop);
	return st;
}

static unsigned
number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);
	bool help = strcmp(text, "--help") == 0;

	if (*text < '0' || *text > '9' || *end || n < 1 || n > 1000000) {
		fputs("usage: multi_loop [COUNT]\n", help ? stdout : stderr);
		exit(help ? 0 : 2);
	}
	return (unsigned)n;
}

int
main(int argc, char **argv)
{
	/* Not on the stack: a late loop may use it after main has left. */
	static struct counter counters[N_LOOPS];
	/* Strict: a refused start stops it, and is the verdict. */
	evc_config cfg = { .flags = EVC_STRICT_SETUP };
	const evc_member_opts opts = { .stop = tear_down };
	evc_verdict v;
	evc_coord *c;
	evc_status st;
	int i, status;

	if (argc > 1)
		count = number(argv[1]);
	if (evc_new(NULL, &cfg, &c) < 0) {
		fprintf(stderr, "multi_loop: %s\n", evc_last_error());
		return EXIT_FAILURE;
	}
	evc_signals_start(c, NULL);
	for (i = 0; i < N_LOOPS; i++) {
		struct counter *k = &counters[i];

		snprintf(k->name, sizeof(k->name), "loop-%d", i + 1);
		if (i < N_LOOPS - 1)
			evc_reactor_start(c, k->name, set_up, k, &opts, NULL);
		else
			evc_thread_start(c, k->name, run_loop, k, NULL, NULL);
	}
	st = evc_join(c, NULL, &v);

	for (i = 0; i < N_LOOPS; i++)
		printf("%s counted to %u, and was told on %s, after %.3f s\n",
		       counters[i].name, counters[i].n,
		       counters[i].told_here ? "its own thread" : "no thread",
		       counters[i].lasted);
	printf("%u loops have ended, %u are late: %s\n", v.n_ended,
	       v.n_stragglers, v.code ? v.error.text : v.stop.text);
	status = evc_finish(c, st);
	if (v.n_stragglers) {
		fflush(stdout);
		_exit(status);
	}
	return status;
}
