/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a queue: a ring that needs no lock while nobody waits, and a
 * lock for threads that wait.
 *
 * No lost wake-up: a thread about to sleep counts itself in `wanted`, then
 * looks at the ring once more; a thread that has changed the ring looks at
 * `wanted` afterwards.  The counts, the looks and the changes are sequentially
 * consistent, so one of the two sees the other.  The thread that sends for a
 * sleeper takes the count back, not the sleeper when it gets up: until the
 * sleeper is up, later changes need not send for it again.  A thread that was
 * sent for and leaves sends for the next sleeper while the ring has something
 * for it; see queue_wake.c.
 *
 * No lost end: each waiter has an ear in the queue; a close writes the position
 * where the input ends into the ear.  Items before this position may still be
 * on their way in, so waiters that sleep again leave a note, next_end.  The
 * next thread that has the lock and finds this position reached wakes all
 * waiters.  Such a thread comes: the push that was on its way sends for a
 * waiter.
 */
#ifndef EVC_QUEUE_QUEUE_H
#define EVC_QUEUE_QUEUE_H

#include <evcoord.h>

#include "base/fork.h"
#include "base/list.h"
#include "base/sync.h"

/* The sides of a queue: threads wait for items, or for room. */
enum { ITEMS, ROOM, SIDES };

/* In wanted[ROOM], beside the pushes: a drain that waits for an empty ring. */
#define DRAINER (1u << 20)

/* What a waiter hears of the ends of the queue since it came, also when the
   queue is opened again at once. */
struct evc__ear {
	struct list node; /* lock: in the queue's ears */
	/* atomic: close and cancel, lock held -> waiter: its input ends before
	   this position; EAR_OPEN: no end yet */
	_Atomic uint64_t end;
	/* atomic: cancel, lock held -> waiter; set before end */
	_Atomic bool cancelled;
};
#define EAR_OPEN UINT64_MAX

struct evc__place {
	/* atomic: push <-> pop; see queue_ring.h */
	_Atomic uint64_t turn;
	void *item; /* owned by the side that has the turn */
};

/* Threads that wait on one side; lock. */
struct evc__side {
	evc_cond *cond; /* set at creation; hears the stop */
	unsigned n_in;  /* threads here, asleep or about to leave */
	unsigned n_idle; /* threads of n_in that nobody has sent for */
	/* threads sent for and not yet up; any of them takes from it */
	unsigned n_sent;
};

struct evc_queue {
	/* set at creation */
	evc_coord *c;
	struct evc__place *place;
	uint64_t capacity, mask;
	unsigned shift; /* bits of an index */
	unsigned flags;
	unsigned fork_generation;
	char name[48];
	evc_part part; /* of c */

	/* atomic: waiters -> pushes, pops.  On a cache line apart from head and
	   tail. */
	_Alignas(128) _Atomic uint32_t wanted[SIDES];
	/* atomic: pushes, close, cancel -> each other, pops */
	_Alignas(128) _Atomic uint64_t tail;
	/* atomic: pops, cancel -> each other */
	_Alignas(128) _Atomic uint64_t head;

	_Alignas(128) pthread_mutex_t lock;
	struct evc__side side[SIDES]; /* lock */
	evc_cond *drained;            /* set at creation */
	unsigned n_draining;          /* lock */
	struct list ears;             /* lock */
	/* atomic: threads that sleep before an end to come, lock held ->
	   watches: the first such position */
	_Atomic uint64_t next_end;
	/* lock; see queue_watch.c */
	struct list watches;
	struct list armed; /* lock: watches that wait for an item */
	unsigned n_armed, fair;
	evc_id last_watch;
	/* lock; see queue_feed.c */
	unsigned n_feeders;
	bool at_end, cut_off; /* a feeder has ended at the end; otherwise */
};

/* A loop that pops; see queue_watch.c. */
struct evc__watch {
	evc_message message; /* must be first */
	/* atomic: the maker, the watch itself, a posted message -> the last of
	   these frees the watch */
	_Atomic uint32_t refs;
	/* held by the maker; the first turn waits for it */
	pthread_mutex_t making;
	/* set at creation */
	evc_queue *q;   /* valid until the watch is over */
	evc_coord *c;
	evc_reactor *r; /* valid until the watch is over */
	evc_loop_ref *loop;
	evc_queue_fn *fn;
	void *arg;
	evc_id id, looper;
	/* the queue's lock */
	struct evc__ear ear;
	struct list node;  /* in the queue's watches */
	struct list armed; /* in the queue's armed if is_armed */
	bool is_armed;     /* the watch waits for an item */
	/* atomic: the thread of the watch's turns -> the thread that ends the
	   watch; 0: no turn yet */
	_Atomic int tid;
	/* loop thread */
	bool over;  /* fn is not called any more */
	bool owed;  /* the looper has run, and its opts.stop is still to come */
	bool alone; /* no looper is left: the stop has come, or the loop goes */
	/* the watch was lost; opts.stop still comes, and drops the watch */
	bool stop_drops;
};

/* ---- queue_wake.c ---- */

/* Is q a queue of this process?  0, or refused. */
evc_status evc__queue_check(const evc_queue *q, const char *func);
/* Is this process a fork child of the queue's?  Asked after each function of
   the program. */
static inline bool
evc__queue_inherited(const evc_queue *q)
{
	return evc__forked_since(q->fork_generation);
}
/* Sets the error text for st; returns st. */
evc_status evc__queue_refuse(const evc_queue *q, evc_status st,
			     const char *func);

/* For ring_push, which has found a flag or a stop: why nothing goes in; 0: look
   again, from *pos. */
evc_status evc__queue_barred(evc_queue *q, uint64_t *pos);
/* One look: 0 and *ret_item, RING_EMPTY, RING_BUSY, or why no more items come;
   ear: the waiter's, or NULL. */
int evc__queue_pop_once(evc_queue *q, void **ret_item,
			const struct evc__ear *ear);

/* Lock held: the ear hears ends from now on. */
void evc__ear_open(evc_queue *q, struct evc__ear *ear);
/* Lock held: the waiter is about to look, and may then sleep for an item. */
void evc__ear_waits(evc_queue *q, struct evc__ear *ear);
/* Lock held: the waiter sleeps for an item. */
void evc__ear_sleeps(evc_queue *q, const struct evc__ear *ear);
/* Has the queue reached an end for which a waiter sleeps? */
bool evc__ear_is_due(evc_queue *q);
/* Lock held: if such an end is reached, wake all waiters. */
void evc__ears_tell(evc_queue *q);

/* Lock held: the input ends before this position, or a cancel has come.  All
   waiters hear of the end and wake up.  The first end that a waiter misses is
   its own; a cancel comes before any end. */
void evc__queue_end(evc_queue *q, uint64_t end, bool cancelled);

/* The ring has changed, and a thread on this side waits for the change. */
void evc__queue_send(evc_queue *q, unsigned side);
/* A pop has made room, and threads wait for room or for an empty ring. */
void evc__queue_popped(evc_queue *q);
/* Lock held, by a waiter that leaves this side: send for the next waiter if the
   ring has something for it. */
void evc__queue_pass_on(evc_queue *q, unsigned side);

/* Any thread: let the watch have a turn. */
evc_status evc__watch_post(struct evc__watch *w);
/* Lock held: the watch waits for no item. */
void evc__watch_disarm(struct evc__watch *w);
/* One reference less. */
void evc__watch_drop(struct evc__watch *w);

/* ---- describe.c ---- */

/* The function of a queue's describer. */
size_t evc__queue_report(unsigned format, char *buf, size_t n, void *queue);

/* ---- queue.c ---- */

/* Lock held. */
void evc__queue_close(evc_queue *q);

#endif
