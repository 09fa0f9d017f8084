/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coord_full - whatever goes wrong, one join ends it.
 *
 *	coord_full [--fail=main|thread|signal|interrupt] [NAP [RUN]]
 *
 * As coord.c, with what a real program needs besides:
 *
 *   --fail=main       main fails between two starts: those that run are
 *                     stopped and joined
 *   --fail=thread     a thread fails: the others are stopped, main is woken,
 *                     and the join gives back the thread's error
 *   --fail=signal     a SIGTERM comes (--fail=interrupt: a SIGINT): stopped
 *                     in the same way, and no error
 *
 * There is one way out for all of them: the end of main below.
 */
#include <evcoord.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_THREADS 4

static const char *to_fail = "";
static double nap = 2, run = 5;

static bool
fails(const char *what)
{
	return strcmp(to_fail, what) == 0;
}

/*
 * A thread.  It naps in evc_wait_for_stop, which ends when the stop comes:
 * nobody waits for the rest of a nap.  What it returns is its result; an error
 * stops all the others.
 */
static evc_status
sleep_politely(evc_coord *c, void *arg)
{
	const int *number = arg;

	while (!evc_wait_for_stop(c, nap))
		if (fails("thread") && *number == N_THREADS)
			return evc_fail(c, EVC_DATA_LOSS, 0,
					"number %d had a bad dream", *number);
	return 0;
}

/* What main does until the stop; it may leave at any point by an error. */
static evc_status
work(evc_coord *c, void *arg)
{
	static int numbers[N_THREADS];
	int i;

	(void)arg;
	for (i = 0; i < N_THREADS; i++) {
		evc_status st;
		char name[24];

		if (i == 2 && fails("main"))
			return evc_fail(c, EVC_INTERNAL, 0,
					"main failed after %d of %d starts",
					i, N_THREADS);
		numbers[i] = i + 1;
		snprintf(name, sizeof(name), "sleeper-%d", i + 1);
		st = evc_thread_start(c, name, sleep_politely, &numbers[i],
				      NULL, NULL);
		if (st == -EVC_CANCELLED)
			return 0; /* somebody was quicker: we are stopping */
		if (st < 0)
			return evc_fail(c, -st, 0, "%s: %s", name,
					evc_last_error());
	}
	if (fails("signal") && kill(getpid(), SIGTERM) < 0)
		return evc_fail(c, EVC_INTERNAL, errno, "cannot send SIGTERM");
	if (fails("interrupt") && kill(getpid(), SIGINT) < 0)
		return evc_fail(c, EVC_INTERNAL, errno, "cannot send SIGINT");
	evc_wait_for_stop(c, run); /* woken by an error or a signal */
	return 0;
}

static void
usage(int status)
{
	fputs("usage: coord_full [--fail=main|thread|signal|interrupt] "
	      "[NAP [RUN]]\n", status == 0 ? stdout : stderr);
	exit(status);
}

static double
seconds(const char *text)
{
	char *end;
	double d = strtod(text, &end);

	if (end == text || *end || !(d >= 0 && d <= 86400))
		usage(2);
	return d;
}

static void
parse(int argc, char **argv)
{
	int i = 1;

	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		usage(0);
	if (i < argc && strncmp(argv[i], "--fail=", 7) == 0) {
		to_fail = argv[i++] + 7;
		if (!fails("main") && !fails("thread") && !fails("signal") &&
		    !fails("interrupt"))
			usage(2);
	}
	if (i < argc)
		nap = seconds(argv[i++]);
	if (i < argc)
		run = seconds(argv[i++]);
	if (i < argc)
		usage(2);
}

int
main(int argc, char **argv)
{
	char why[1024];
	evc_verdict v;
	evc_coord *c;
	evc_status st;
	int status;

	parse(argc, argv);
	if (evc_new(NULL, NULL, &c) < 0 || evc_signals_start(c, NULL) < 0) {
		fprintf(stderr, "coord_full: %s\n", evc_last_error());
		return EXIT_FAILURE;
	}

	/* The guard reports what work returns: "try" and "except" ... */
	if (evc_guard(c, "work", work, NULL, NULL) < 0)
		evc_fail(c, EVC_INTERNAL, 0, "%s", evc_last_error());
	/* ... and this is "finally". */
	evc_request_stop(c, 0, "main has slept enough");
	st = evc_join(c, NULL, &v);
	if (st < 0) {
		fprintf(stderr, "coord_full: %s\n", evc_last_error());
		_exit(EXIT_FAILURE);
	}

	evc_explain(c, why, sizeof(why));
	printf("%u threads have ended, %u are late\n%s\n", v.n_ended,
	       v.n_stragglers, why);
	status = evc_finish(c, st);
	if (v.n_stragglers) {
		/* Somebody still runs: no return from main under it. */
		fflush(stdout);
		_exit(status);
	}
	return status;
}
