/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "threads": workers are threads of this process, each with a seat of
 * its own.
 *
 * A thread takes a few functions at a time when they are short, so that the
 * cluster's lock is not what it does most.  What it has taken and not begun, or
 * finished and not told, is in nobody's way: a thread of its own, the keeper,
 * looks while there is such a thing, and when the worker does not come to it
 * gives the one back and tells the other.  So a function may wait for what
 * another one does, or for what whoever has the result of another one does, as
 * if each had been taken alone.
 */
#ifndef EVC_CLUSTER_ENGINE_THREADS_H
#define EVC_CLUSTER_ENGINE_THREADS_H

#include <evcoord.h>
#include <evcoord/unstable/engine.h>

#include "base/fork.h"
#include "base/list.h"
#include "base/sync.h"
#include "cluster/worker/worker.h"

#define THREADS_MOST 1024
#define BATCH_MOST 64

/* threads.go */
enum { GO_WAIT, GO_SERVE, GO_HOME };

struct seat {
	/* set at open */
	struct threads *e;
	unsigned index;
	struct worker *w;     /* freed by the thread, at its end; then NULL */

	/* ---- the thread's ---- */
	unsigned window;      /* how many it takes at a time */
	bool down;            /* it has lain down, and not got up */
	bool called;          /* it was woken for all, and relied on */
	bool ahead;           /* it has taken all there was, just now */
	uint32_t seen;        /* bell, when it lay down */

	/* ---- the batch: under lock, which is held while the sink is told of
	   it; without keeper only when holds is 0 ---- */
	pthread_mutex_t lock;
	uint64_t batch;       /* its number */
	unsigned next, end;   /* tasks from next to end are not begun */
	unsigned sent, done;  /* results from sent to done are not told */
	bool hurried;         /* the keeper had to help */
	/* the thread -> the keeper, which looks at the batch then */
	_Atomic uint32_t holds;
	uint64_t seen_batch;  /* the keeper's: what it saw last */
	unsigned seen_next;

	/* ---- sleep: under threads.lock ---- */
	struct list link;     /* threads.lying, when it is lying */
	bool lying, picked;   /* picked: it was taken off to be woken for all */
	_Atomic uint32_t bell; /* moved under the lock, slept on */

	evc_engine_task tasks[BATCH_MOST];
	evc_engine_result results[BATCH_MOST];
};

struct threads {
	/* set at open */
	evc_coord *scope;
	const evc_engine_sink *sink;
	void *core;
	uint64_t generation;      /* of the fencing token: grows from one run of
				     a program to the next */
	unsigned n;
	struct seat **seats;
	unsigned fork_generation; /* whose process it is */

	_Atomic uint32_t go;      /* GO_...: open -> threads, slept on */
	_Atomic uint32_t n_live;  /* threads that may touch this; open sleeps
				     on it when it has to give up */
	_Atomic uint32_t leaving; /* leave -> threads, slept on */

	/* Who sleeps; crowd.c says how no work is missed. */
	pthread_mutex_t lock;     /* below the cluster's */
	struct list lying;        /* the latest last: its cpu is warm */
	_Atomic uint32_t n_lying;
	_Atomic uint32_t waking;  /* one was woken for all, and is not there
				     yet */

	_Atomic uint32_t keeper_sleeps, keeper_bell;
};

extern const evc_engine_ops evc__engine_threads;

static inline struct threads *
threads_of(evc_engine *engine)
{
	return (struct threads *)(void *)engine;
}

/* Has a function of the program's that has just returned come back in a fork child?
   There locks may be held for ever, and the thread has nothing more to do. */
static inline bool
threads_inherited(const struct threads *e)
{
	return evc__forked_since(e->fork_generation);
}

/* ---- crowd.c ---- */

/* There may be work for this worker, or for any.  Any thread. */
void evc__threads_wake(struct threads *e, int worker);
void evc__threads_wake_all(struct threads *e);
/* It finds no work, and will look once more before it sleeps. */
void evc__seat_lie_down(struct seat *s);
/* It has lain down: it works again, or has been woken. */
void evc__seat_get_up(struct seat *s);
/* Sleep until it was woken. */
void evc__seat_sleep(struct seat *s);
/* This seat holds something now: the keeper looks at it. */
void evc__keeper_watch(struct seat *s);
void evc__keeper_ring(struct threads *e);

/* ---- serve.c: members ---- */

evc_status evc__threads_worker(evc_coord *c, void *seat);
/* Lock held: tell what is done. */
void evc__seat_flush(struct seat *s);
/* Lock held: what is not begun goes back to the queue. */
void evc__seat_give_back(struct seat *s);
/* Before anything else: false: it was not opened after all. */
bool evc__threads_may_go(struct threads *e);
/* The last of all: nothing here is touched any more. */
void evc__threads_leave(struct threads *e);

/* ---- keeper.c ---- */

evc_status evc__threads_keeper(evc_coord *c, void *threads);

#endif
