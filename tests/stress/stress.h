/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the stress test is made of: dice, workers that say where they are, and
 * slots for coordinators that all workers share.
 *
 * Whoever uses the coordinator of a slot reads the slot's lock; who frees it or
 * counts it writes it.  Members need no lock: they keep their coordinator.
 */
#ifndef TESTS_STRESS_STRESS_H
#define TESTS_STRESS_STRESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <ev.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <evcoord.h>

#include "../support/support.h"

#define N_WORKERS 6
#define N_SLOTS 3

struct worker {
	pthread_t thread;
	uint64_t dice;
	_Atomic(const char *) where; /* for the watchdog */
	_Atomic uint64_t steps;
};

struct slot {
	pthread_rwlock_t lock;
	evc_coord *c;
	bool counted; /* rounds change under the written lock alone */
	/* Members that were taken in, and how many of them the joins say have
	   ended; of counted slots. */
	_Atomic uint64_t begun;
	uint64_t ended;
};

static struct worker workers[N_WORKERS];
static struct slot slots[N_SLOTS];
static atomic_bool over;

/* What happened, for the summary: and all of it must have happened. */
enum tally {
	REQUESTS, CLEARS, REFUSED_CLEARS, WAITS, STARTS, REGISTERED, HOLDS,
	JOINS, LATE, LOOPS, TASKS, TOLD, EVENTED, HOOKS, HOOK_CALLS, GUARDS,
	LOOKS, SIGNALS, LIVES, FREES, N_TALLY
};
static const char *const tally_name[N_TALLY] = {
	"requests", "clears", "refused clears", "waits", "starts",
	"registered", "holds", "joins", "late", "loops", "tasks", "told",
	"evented joins", "hooks", "hook calls", "guards", "looks", "signals",
	"lives", "frees",
};
static _Atomic uint64_t tally[N_TALLY];

static inline void
count(enum tally what)
{
	atomic_fetch_add_explicit(&tally[what], 1, memory_order_relaxed);
}

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

/* xorshift64*: each worker has dice of its own. */
static inline uint64_t
roll(uint64_t *dice, uint64_t n)
{
	*dice ^= *dice >> 12;
	*dice ^= *dice << 25;
	*dice ^= *dice >> 27;
	return (*dice * UINT64_C(2685821657736338717) >> 16) % n;
}

static inline bool
chance(uint64_t *dice, unsigned percent)
{
	return roll(dice, 100) < percent;
}

static inline void
nap(uint64_t *dice, unsigned most_us)
{
	t_sleep((double)roll(dice, most_us) / 1e6);
}

/* The coordinator that a signal handler on this thread may ask; only set
   while nobody can free it. */
static __thread evc_coord *volatile at_hand;

static inline void
take_slot(struct slot *s)
{
	MUST(pthread_rwlock_rdlock(&s->lock) == 0);
	at_hand = s->c;
}

static inline void
leave_slot(struct slot *s)
{
	at_hand = NULL;
	MUST(pthread_rwlock_unlock(&s->lock) == 0);
}

/* A member was taken in, or was not. */
static inline bool
taken(struct slot *s, evc_status st, enum tally what)
{
	if (st == 0) {
		if (s != NULL)
			atomic_fetch_add(&s->begun, 1);
		count(what);
		return true;
	}
	MUST(st == -EVC_CANCELLED);
	return false;
}

#endif
