/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the stress tests share: a condition that ends the process when it is
 * not so, and how long to go on.
 *
 * A stress test that is given a time says at its end that each thing it is
 * there for has happened.  How much happens in a second is the machine's
 * affair: under valgrind, on one loaded cpu, it is little.  So it goes on until
 * both are there, the seconds and the things.
 */
#ifndef TESTS_STRESS_ENOUGH_H
#define TESTS_STRESS_ENOUGH_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <evcoord.h>

#include "../support/support.h"

/* The program is broken, or the library is. */
#define MUST(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond); \
			fprintf(stderr, "last error: %s\n", \
				evc_last_error()); \
			abort(); \
		} \
	} while (0)

/* Seconds that it waits for what has never happened yet.  What has not come
   by then never comes; and tests/run, which ends a test after ten minutes,
   could not say what was missing. */
#define PATIENCE 300.0

/* After its first argument, else after the environment, else ten seconds. */
static inline double
stress_seconds(int argc, char **argv)
{
	const char *env = getenv("EVC_STRESS_SECONDS");

	return argc > 1 ? atof(argv[1]) : env != NULL ? atof(env) : 10;
}

/* Whether to go on: since is when it began, missing how many kinds of things
   have never happened. */
static inline bool
go_on(double since, double seconds, int missing)
{
	double gone = t_now() - since;

	return gone < seconds || (missing > 0 && gone < seconds + PATIENCE);
}

#endif
