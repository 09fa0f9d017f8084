/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coord - base.c with a coordinator in place of the flag and the joins.
 *
 *	coord [NAP [RUN]]
 *
 * The threads are still the program's own: main makes them, and gives the
 * list of them to the join.  Any of them might ask for the stop as well, and
 * a thread that does not end makes the join say so after its grace period
 * (two minutes by default) instead of waiting for ever.
 *
 * evcoord-port(7) goes the same way with larger programs.
 */
#include <evcoord.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_THREADS 4

static double nap = 2, run = 5;

static void
sleep_for(double seconds)
{
	struct timespec ts;

	ts.tv_sec = (time_t)seconds;
	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

static void *
sleep_politely(void *arg)
{
	evc_coord *c = arg;

	while (!evc_should_stop(c))
		sleep_for(nap);
	return NULL;
}

/* A number of seconds, or the end of the program. */
static double
seconds(const char *text)
{
	char *end;
	double d = strtod(text, &end);
	bool help = strcmp(text, "--help") == 0;

	if (end == text || *end || !(d >= 0 && d <= 86400)) {
		fputs("usage: coord [NAP [RUN]]\n", help ? stdout : stderr);
		exit(help ? 0 : 2);
	}
	return d;
}

int
main(int argc, char **argv)
{
	pthread_t threads[N_THREADS];
	evc_join_opts opts = { .threads = threads };
	evc_verdict v;
	evc_coord *c;
	evc_status st;
	int err = 0, status;

	if (argc > 1)
		nap = seconds(argv[1]);
	if (argc > 2)
		run = seconds(argv[2]);

	if (evc_new(NULL, NULL, &c) < 0) {
		fprintf(stderr, "coord: %s\n", evc_last_error());
		return EXIT_FAILURE;
	}
	while (opts.n_threads < N_THREADS) {
		err = pthread_create(&threads[opts.n_threads], NULL,
				     sleep_politely, c);
		if (err)
			break;
		opts.n_threads++;
	}
	if (err)
		evc_fail(c, EVC_RESOURCE_EXHAUSTED, err, "thread %u: %s",
			 opts.n_threads, strerror(err));
	else
		evc_wait_for_stop(c, run); /* sleeps, unless somebody asks */

	printf("%u threads are told to stop\n", opts.n_threads);
	evc_request_stop(c, 0, "main has slept enough");
	st = evc_join(c, &opts, &v);
	if (st > 0)
		fprintf(stderr, "coord: %s\n", v.error.text);
	if (st < 0) {
		/* Refused: nobody was waited for, so they still run. */
		fprintf(stderr, "coord: %s\n", evc_last_error());
		_exit(EXIT_FAILURE);
	}
	printf("%u threads have ended\n", v.n_ended);

	status = evc_finish(c, st);
	if (v.n_stragglers) {
		/* Somebody still runs: no return from main under it. */
		fflush(stdout);
		_exit(status);
	}
	return status;
}
