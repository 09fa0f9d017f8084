/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base - four threads, stopped and joined by hand.
 *
 *	base [NAP [RUN]]
 *
 * Four threads sleep NAP seconds at a time until a flag tells them to stop;
 * after RUN seconds main sets it and joins them.  This is the whole of it with
 * plain POSIX threads, to be read beside coord.c and coord_full.c, which do
 * the same with a coordinator.
 *
 * What is not here: a thread that fails tells nobody, main cannot be woken
 * early, a thread that hangs makes main hang, and a signal ends the program
 * on the spot.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_THREADS 4

static atomic_bool must_stop;
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
	while (!atomic_load(&must_stop))
		sleep_for(nap);
	return arg;
}

/* A number of seconds, or the end of the program. */
static double
seconds(const char *text)
{
	char *end;
	double d = strtod(text, &end);
	bool help = strcmp(text, "--help") == 0;

	if (end == text || *end || !(d >= 0 && d <= 86400)) {
		fputs("usage: base [NAP [RUN]]\n", help ? stdout : stderr);
		exit(help ? 0 : 2);
	}
	return d;
}

int
main(int argc, char **argv)
{
	pthread_t threads[N_THREADS];
	int i, n, err = 0;

	if (argc > 1)
		nap = seconds(argv[1]);
	if (argc > 2)
		run = seconds(argv[2]);

	for (n = 0; n < N_THREADS; n++) {
		err = pthread_create(&threads[n], NULL, sleep_politely, NULL);
		if (err)
			break;
	}
	if (err)
		fprintf(stderr, "base: thread %d: %s\n", n, strerror(err));
	else
		sleep_for(run);

	/* Also after an error: those that run are stopped and joined. */
	printf("%d threads are told to stop\n", n);
	atomic_store(&must_stop, true);
	for (i = 0; i < n; i++) {
		int e = pthread_join(threads[i], NULL);

		if (e) {
			fprintf(stderr, "base: join: %s\n", strerror(e));
			return EXIT_FAILURE;
		}
	}
	printf("%d threads have ended\n", n);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
