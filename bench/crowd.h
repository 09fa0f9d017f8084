/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A crowd of threads that wait.  Before each turn all of them are seen to sleep
 * where they wait, then the caller starts the clock; each one looks at the
 * clock as soon as it is back.
 *
 * Most groups let the crowd keep its threads, and the same ones serve all
 * sides: they wait for a stop, ours or a bare futex word.  Where the end of the
 * threads belongs to what is measured, the caller makes threads of its own for
 * each turn and has them call crowd_turn.
 */
#ifndef BENCH_CROWD_H
#define BENCH_CROWD_H

#include "bench.h"

struct waiter {
	evc_coord *c;   /* what it waits for */
	uint32_t *bare; /* the word of the bare side: until it is 1 */
	int fd;         /* recv: where it waits */
	struct crowd *crowd;
	pthread_t thread;
	int tid;        /* waiter -> main, by crowd.here */
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

/* The same with threads of the caller's: crowd_make; then for each turn
   crowd_expect, the threads, crowd_gather, and what wakes them. */

/* Before the threads of a turn: nobody is there yet. */
void
crowd_expect(struct crowd *k);
/* A thread of it: go where the crowd is, wait by the call of that function,
   which is the next thing that can sleep, and look at the clock. */
void
crowd_turn(struct waiter *w, void (*wait)(struct waiter *w));
/* All of them sleep. */
void
crowd_gather(struct crowd *k);
/* Give back the room: the caller has ended the threads. */
void
crowd_leave(struct crowd *k);

#endif
