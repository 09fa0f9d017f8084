/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A crowd of threads that wait for a stop, ours or a bare futex word.  The same
 * threads serve both sides: before each turn all of them are seen to sleep
 * where they wait, then the caller starts the clock; each one looks at the
 * clock as soon as it is back.
 */
#ifndef BENCH_CROWD_H
#define BENCH_CROWD_H

#include "bench.h"

struct waiter {
	evc_coord *c;   /* what it waits for */
	uint32_t *bare; /* the word of the bare side: until it is 1 */
	struct crowd *crowd;
	pthread_t thread;
	int tid;
	uint64_t awake; /* waiter -> main, by crowd.left */
	/* A line for each, so that nobody waits for another's clock. */
	char pad[64];
};

struct crowd {
	unsigned n;
	int cpu, or_cpu; /* where the waiters are */
	bool ours, quit; /* main -> waiters, by turn */
	uint32_t turn;   /* main -> waiters: wait once more */
	uint32_t here;   /* waiters -> main: how many are about to wait */
	uint32_t left;   /* waiters -> main: how many are not back */
	struct waiter *w;
};

/* Room for n waiters; the caller says what each of them waits for. */
void
crowd_make(struct crowd *k, unsigned n, int cpu, int or_cpu);
/* Start the threads. */
void
crowd_start(struct crowd *k);
/* Send all to sleep on one of the sides; the bare words are 0. */
void
crowd_send(struct crowd *k, bool ours);
/* Wait for all; microseconds from t0 until the last one was awake. */
double
crowd_awake(struct crowd *k, uint64_t t0);
/* Turns of ours: stop c, which all wait for or stand below. */
double
crowd_stop(struct crowd *k, evc_coord *c);
/* End the threads, give back the room. */
void
crowd_end(struct crowd *k);

#endif
