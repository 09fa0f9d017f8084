/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the stress test is made of: dice, workers that say where they are, and
 * slots for trees of coordinators that all workers share.
 *
 * Whoever uses a coordinator of a slot reads the slot's lock; who frees some
 * of it or counts it writes it.  Members need no lock: they keep their
 * coordinator.
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

#include "enough.h"

#define N_WORKERS 6
#define N_SLOTS 4
#define N_NODES 5

struct worker {
	pthread_t thread;
	uint64_t dice;
	_Atomic(const char *) where; /* for the watchdog */
	_Atomic uint64_t steps;
};

/* What must be so of a member when it has ended; looked at by who counts. */
struct debt {
	struct debt *next;
	void (*settle)(struct debt *d); /* looks, and frees */
};

struct part; /* a scope of somebody's own: scopes.h */

struct slot {
	pthread_rwlock_t lock;
	atomic_bool wanted;   /* somebody is about to write the lock */
	evc_coord *c;         /* the root */
	evc_coord *node[N_NODES];
	struct ev_loop *home; /* the main thread's, or NULL */
	bool counted; /* rounds change under the written lock alone */
	/* Members that were taken in, and how many of them the joins say have
	   ended; of counted slots. */
	_Atomic uint64_t begun;
	uint64_t ended;
	_Atomic(struct debt *) debts;
	_Atomic(struct part *) left; /* scopes that nobody has freed */
};

/* A coordinator somewhere in the tree of a slot. */
struct spot {
	evc_coord *c;
	struct slot *slot;
	/* Members that were taken in there, if somebody counts them. */
	_Atomic uint64_t *begun;
};

/* The watchdog looks at the main thread as well. */
#define N_WATCHED (N_WORKERS + 1)
static struct worker workers[N_WATCHED];
static struct worker *const main_thread = &workers[N_WORKERS];
static struct slot slots[N_SLOTS];
static atomic_bool over;

/* What happened, for the summary: and all of it must have happened. */
enum tally {
	REQUESTS, DRAINS, CLEARS, REFUSED_CLEARS, WAITS, STARTS, REGISTERED,
	HOLDS, JOINS, STEPPED, LATE, LOOPS, LOOP_THREADS, TASKS, TOLD, EVENTED,
	HOOKS, HOOK_CALLS, GUARDS, LOOPERS, RUNS, RUNNERS, CHILDREN, FOREIGN,
	SCOPES, ROUNDS, ENDED, FREED_IN_ENDED, USED_AGAIN, REMADE, LOOKS,
	STRETCHES, HOOKED, WOKEN, KICKED, UNBLOCKS, SIGNALS, LIVES,
	TREES, FREES, N_TALLY
};
static const char *const tally_name[N_TALLY] = {
	"requests", "drains", "clears", "refused clears", "waits", "starts",
	"registered", "holds", "joins", "stepped joins", "late", "loops",
	"loop threads", "tasks", "told", "evented joins", "hooks",
	"hook calls", "guards", "loopers", "runs", "runners", "children",
	"foreign", "scopes", "rounds", "ended", "freed in ended",
	"used again in ended", "nodes made anew", "looks", "stretches",
	"hooks called", "woken", "kicked", "unblocked", "signals", "lives",
	"trees", "frees",
};
static _Atomic uint64_t tally[N_TALLY];

static inline void
count(enum tally what)
{
	atomic_fetch_add_explicit(&tally[what], 1, memory_order_relaxed);
}

/* How many kinds have never happened. */
static inline int
n_missing(void)
{
	int i, n = 0;

	for (i = 0; i < N_TALLY; i++)
		n += atomic_load(&tally[i]) == 0;
	return n;
}

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

/* Some coordinator of the slot: the root, or one below. */
static inline struct spot
take_slot(struct slot *s, uint64_t *dice)
{
	unsigned i = (unsigned)roll(dice, N_NODES + 2);

	while (atomic_load(&s->wanted))
		t_sleep(0.0002);
	MUST(pthread_rwlock_rdlock(&s->lock) == 0);
	at_hand = i < N_NODES ? s->node[i] : s->c;
	return (struct spot){ at_hand, s, NULL };
}

static inline void
leave_slot(struct slot *s)
{
	at_hand = NULL;
	MUST(pthread_rwlock_unlock(&s->lock) == 0);
}

/* Without its home, when that was destroyed, nobody would keep the limit. */
static inline void
drain(evc_coord *c, double limit, const char *why)
{
	evc_status st = evc_request_drain(c, limit, why);

	MUST(st == 0 || (st == -EVC_RESOURCE_EXHAUSTED &&
			 evc_home(c) != NULL &&
			 evc_reactor_loop(evc_home(c)) == NULL));
	count(DRAINS);
}

static inline void
now_one_more(const struct spot *p)
{
	atomic_fetch_add(&p->slot->begun, 1);
	if (p->begun != NULL)
		atomic_fetch_add(p->begun, 1);
}

/* A member was taken in, or was not. */
static inline bool
taken(const struct spot *p, evc_status st, enum tally what)
{
	if (st == 0) {
		now_one_more(p);
		count(what);
		return true;
	}
	MUST(st == -EVC_CANCELLED);
	return false;
}

static inline void
owe(struct slot *s, struct debt *d)
{
	d->next = atomic_load(&s->debts);
	while (!atomic_compare_exchange_weak(&s->debts, &d->next, d))
		;
}

/* All members have ended. */
static inline void
settle_debts(struct slot *s)
{
	struct debt *d = atomic_exchange(&s->debts, NULL), *next;

	for (; d != NULL; d = next) {
		next = d->next;
		d->settle(d);
	}
}

#endif
