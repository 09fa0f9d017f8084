/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "threads": workers are threads of this process, each with a seat.
 *
 * A thread takes several functions at a time while they are short, to spare the
 * cluster's lock.  Functions taken and not begun, and results not told, must
 * not wait behind a long function: another thread, the batch watch, gives such
 * functions back and tells such results.  So a function may wait for another
 * function, or for a thread that waits for another result, as if each function
 * had been taken alone.
 *
 * No work is missed:
 *   - A thread that queues a function does so under the cluster's lock, and
 *     then looks for sleepers.  A worker that goes to sleep counts itself as
 *     lying, and then looks for work under the cluster's lock.  If this look
 *     came before the function was queued, the lock has carried the count to
 *     the other thread; else the look finds the function.
 *   - While a woken worker is on its way (`waking`), no other worker is woken.
 *     The woken worker clears the mark, and then looks for work.  If this look
 *     came before the function was queued, the lock has carried the cleared
 *     mark.
 *   - A worker that was woken like this wakes the next one when its batch is
 *     full, when a build comes first, or when the worker had found work before
 *     the wake-up: others have relied on the wake-up.
 * So a burst of functions costs one system call, and none when no worker
 * sleeps.
 *
 * A seat beyond the number of workers is left by its thread, and stays for the
 * next one.  The batch watch starts threads for empty seats: an operation of the
 * engine may not.
 *
 * In comments `seat` is seat.lock, `lock` is threads.lock, `thread` the seat's
 * thread alone.
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

/* values of threads.go */
enum { GO_WAIT, GO_SERVE, GO_HOME };

/* values of seat.bed */
enum {
	BED_UP,
	BED_LYING, /* asleep, or about to sleep */
	BED_WOKEN, /* woken, and not up yet */
	BED_CALLED, /* woken for any function, and not up yet */
	BED_LOST /* a function has ended the thread, which waits to leave */
};

/* values of seat.lost */
enum {
	SEAT_SOUND,
	SEAT_LOST, /* a function has ended the thread */
	SEAT_RENEWED /* a resize came since, so another thread may come */
};

struct seat {
	/* creation */
	struct threads *e;
	unsigned index;
	struct worker *w;     /* threads.lock for writes: freed by the thread at
				 its end, then NULL; read by the thread, and by
				 others under the lock */
	_Atomic uint32_t taken; /* atomic: batch watch -> thread, which clears
				   the word: the seat has a thread */
	_Atomic int tid;      /* atomic: the thread -> reports; 0: there is
				 none */
	_Atomic uint32_t lost; /* atomic: SEAT_...: the thread, resize -> the
				  thread */

	/* ---- the thread's ---- */
	unsigned window;      /* thread: functions to take at a time */
	bool called;          /* thread: woken for any function, and relied
				 on */
	bool ahead;           /* thread: the last take has emptied the queue */

	/* ---- the batch: under lock, which is held while the sink is told of
	   it; without batch watch only when holds is 0 ---- */
	pthread_mutex_t lock;
	uint64_t batch;       /* seat: number of the batch */
	unsigned next, end;   /* seat: tasks[next..end) are not begun */
	unsigned sent, done;  /* seat: results[sent..done) are not told */
	_Atomic uint32_t unmade; /* atomic: an untold result has
				 updates: moved under the lock */
	bool hurried;         /* seat: the batch watch had to give functions back */
	/* atomic: thread -> batch watch: the batch is to be looked at */
	_Atomic uint32_t holds;
	uint64_t seen_batch;  /* batch watch: the batch at its last look */
	unsigned seen_next;

	/* ---- sleep: under threads.lock ---- */
	struct list link;     /* lock: threads.lying, while the seat is LYING */
	_Atomic uint32_t bed; /* atomic: UP ...: moved under the lock, slept
				 on */

	evc_engine_task tasks[BATCH_MOST];
	evc_engine_result results[BATCH_MOST];
};

struct threads {
	/* creation */
	evc_coord *scope;
	const evc_engine_sink *sink;
	void *core;
	uint64_t generation;      /* of the fencing token: grows from one run of
				     a program to the next */
	const evc_function *functions;
	unsigned n_functions;
	struct seat **seats;      /* THREADS_MOST places */
	/* atomic: resize -> all: seats, never less than before */
	_Atomic uint32_t n;
	/* atomic: resize -> all: seats for workers; others become empty */
	_Atomic uint32_t n_wanted;
	unsigned fork_generation; /* creation: the process of the engine */

	_Atomic uint32_t go;      /* atomic: GO_...: open -> threads, slept
				     on */
	_Atomic uint32_t n_live;  /* atomic: threads that may touch the engine;
				     a failed open sleeps on it */
	_Atomic uint32_t leaving; /* atomic: leave -> threads, slept on */

	pthread_mutex_t lock;     /* below the cluster's lock */
	struct list lying;        /* lock: sleeping seats; the latest is last,
				     its cpu is warm */
	_Atomic uint32_t n_lying;
	_Atomic uint32_t waking;  /* atomic: a worker was woken for any function
				     and is on its way */

	_Atomic uint32_t watch_sleeps, watch_bell;

	_Atomic uint32_t n_unmade; /* atomic: seats that are `unmade` */
	/* atomic: any -> batch watch: a seat may need a thread */
	_Atomic uint32_t to_start;
	uint64_t start_ns;        /* batch watch: no start before; 0: any time */
};

extern const evc_engine_ops evc__engine_threads;

static inline struct threads *
threads_of(evc_engine *engine)
{
	return (struct threads *)(void *)engine;
}

/* After a function of the program's: is this a fork child?  Locks may be held
   there for ever, and the thread has nothing more to do. */
static inline bool
threads_inherited(const struct threads *e)
{
	return evc__forked_since(e->fork_generation);
}

/* ---- crowd.c ---- */

/* This worker, or any, may find work.  Any thread. */
void evc__threads_wake(struct threads *e, int worker);
/* The seats from this number on look whether they are to leave. */
void evc__threads_wake_from(struct threads *e, unsigned first);
/* The seat has found no work, and looks once more before its sleep. */
void evc__seat_lie_down(struct seat *s);
/* If the seat has lain down: the seat works again, or was woken. */
void evc__seat_get_up(struct seat *s);
/* Sleep until the seat is woken. */
void evc__seat_sleep(struct seat *s);
/* The seat's thread can run nothing more, and looks whether to leave the seat,
   before evc__seat_sleep. */
void evc__seat_lie_lost(struct seat *s);
/* The seat holds a batch: the batch watch looks at it from now on. */
void evc__batch_watch_mark(struct seat *s);
void evc__batch_watch_ring(struct threads *e);
/* The last touch of the seat by its thread. */
void evc__seat_empty(struct seat *s);

/* ---- serve.c: members ---- */

evc_status evc__threads_worker(evc_coord *c, void *seat);
/* Seat's lock held: tell the untold results, if there are any. */
void evc__seat_flush(struct seat *s);
/* Seat's lock held: functions not begun go back to the queue. */
void evc__seat_give_back(struct seat *s);
/* The first call of a thread. false: the engine was not opened. */
bool evc__threads_may_go(struct threads *e);
/* The last call of a thread, which touches the engine no more. */
void evc__threads_leave(struct threads *e);

/* ---- start.c ---- */

/* A seat beyond the number of workers. */
static inline bool
seat_is_extra(const struct seat *s)
{
	return s->index >= sync_load_sc(&s->e->n_wanted);
}

/* The next seat, without a thread; false: no memory. */
bool evc__threads_add_seat(struct threads *e);
/* A thread for the seat. */
evc_status evc__seat_start(struct seat *s);
/* Batch watch: threads for empty seats. */
void evc__threads_start_missing(struct threads *e);

/* ---- batch_watch.c ---- */

evc_status evc__threads_batch_watch(evc_coord *c, void *threads);

#endif
