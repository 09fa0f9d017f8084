/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper from the inside: data that its threads (serve.c) share with the
 * functions that give work to the helper (helper.c).
 */
#ifndef EVC_CORE_THREADS_H
#define EVC_CORE_THREADS_H

#include "core/core.h"

/* Threads of one helper, including threads that hang in a function of the
   user's. */
#define HELPER_THREADS 8

/* A coordinator that the helper serves. */
struct evc__client {
	struct evc__listener listener; /* first: tell() casts it to a client */
	evc_coord *c;                  /* set at creation */
	struct evc__helper *h;
	/* tree's lock */
	struct notify_place at;
	struct list waiting;  /* in h->waiting while `due` has a time */
	uint64_t due;         /* when the leader serves c; monotonic
				 nanoseconds */
	bool joining;         /* a thread drives the scope join of c */
};

struct evc__helper_thread {
	struct evc__helper *h; /* set at creation */
	/* tree's lock */
	pthread_t thread;
	uint32_t number;       /* the thread serves while leader == number */
	/* atomic: the making thread (lock), the thread itself -> the joining
	   thread: FREE -> RUNS -> ENDED, to be joined */
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
	/* atomic: a thread of the helper, perhaps a relieved one -> the leader:
	   an abandoned root, which ends together with the leader; or NULL */
	_Atomic(evc_coord *) abandoned;
	/* atomic: the thread that makes the descriptors (lock) -> the leader;
	   -1: none */
	_Atomic int epoll, event;
	/* atomic: a ringing thread -> the leader */
	_Atomic uint32_t seq;
	/* atomic: the leader -> a ringing thread: no thread has woken the
	   leader, which sleeps, or is about to compare seq and to sleep */
	_Atomic bool sleeps;
	_Atomic bool quit;
	/* atomic: the thread that makes a leader (lock) -> the threads */
	_Atomic uint32_t leader;
};

/* Any thread, signal-safe: the tree's watch thread, if there is one, looks. */
void evc__watch_wake(struct evc__tree *tree);
/* Any thread, signal-safe: end the helper's sleep. */
void evc__helper_wake(struct evc__helper *h);

/* ---- serve.c ---- */

/* A thread of the helper; arg: its struct evc__helper_thread. */
void *evc__helper_main(void *arg);
/* In a fork child: the calling thread belongs to no helper, and ends when it
   returns from the function that forked. */
void evc__helper_inherited(void);

/* ---- threads.c ---- */

/* Tree's lock held: make a thread that leads from now on; false: no thread to
   be had, and the old leader leads on. */
bool evc__helper_lead(struct evc__helper *h);
/* No lock: all threads but the calling one have ended. */
void evc__helper_join(struct evc__helper *h);

#endif
