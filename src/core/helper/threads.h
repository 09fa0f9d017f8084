/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper from the inside: what its threads (helper_serve.c) and those who
 * give it work (helper.c) share.
 */
#ifndef EVC_CORE_THREADS_H
#define EVC_CORE_THREADS_H

#include "core/core.h"

/* Threads of one helper, those included that hang in a function of the
   user's. */
#define HELPER_THREADS 8

/* A coordinator that is served. */
struct evc__client {
	struct evc__listener listener; /* first: tell() gets it */
	evc_coord *c;                  /* set at creation */
	struct evc__helper *h;
	/* tree's lock */
	struct notify_place at;
	struct list waiting;  /* in h->waiting while due is some time */
	uint64_t due;         /* monotonic nanoseconds */
	bool keeping;         /* a thread is at its keeper */
};

struct evc__helper_thread {
	struct evc__helper *h; /* set at creation */
	/* tree's lock */
	pthread_t thread;
	uint32_t number;       /* it serves while this leads */
	/* atomic: who makes it (lock), the thread itself -> who joins it:
	   FREE -> RUNS -> ENDED, to be joined */
	_Atomic int state;
};
enum { HELPER_FREE, HELPER_RUNS, HELPER_ENDED };

struct evc__helper {
	struct evc__tree *tree; /* set at creation */
	/* tree's lock */
	struct evc__helper_thread thread[HELPER_THREADS];
	struct notify_set clients;
	struct notify_set watched;  /* members with a pidfd */
	struct list waiting;
	/* atomic: a thread of it, perhaps one that was relieved -> the one that
	   leads: it ends with this coordinator */
	_Atomic(evc_coord *) last;
	/* atomic: who makes the descriptors (lock) -> the thread; -1: none */
	_Atomic int epoll, event;
	/* atomic: who rings -> the thread */
	_Atomic uint32_t seq;
	_Atomic bool quit;
	/* atomic: who makes a thread (lock) -> the threads */
	_Atomic uint32_t leader;
};

/* Any thread, signal-safe: end its sleep. */
void evc__helper_wake(struct evc__helper *h);

/* ---- helper_serve.c ---- */

/* In a fork child: the calling thread is none of a helper's.  It ends when it
   has come back from the function that it has forked in. */
void evc__helper_inherited(void);

/* Tree's lock held: have a thread that leads from now on; false: none is to be
   had, and who led does so still. */
bool evc__helper_lead(struct evc__helper *h);
/* No lock: all threads but the calling one have ended. */
void evc__helper_join(struct evc__helper *h);

#endif
