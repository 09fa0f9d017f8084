/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a queue: a ring that needs no lock while nobody waits, and a
 * lock for those who do.
 *
 * No lost wake-up: who is about to sleep counts itself in `wanted`, then looks
 * at the ring once more; who has changed the ring looks at `wanted` afterwards.
 * The counts, the looks and the changes are sequentially consistent, so one of
 * the two sees the other.  A count is taken back by who sends for a sleeper,
 * not by the sleeper when it gets up: until it has, the next ones need not send
 * for it again.  Whoever was sent for and leaves sends for the next one while
 * there is something to be had; see queue_wake.c.
 *
 * No lost end: whoever waits has an ear in the queue, into which a close writes
 * the position where the input ends.  What lies before it may still be on its
 * way in, so those who sleep again then leave a note, next_end; whoever comes by
 * with the lock and finds that position reached wakes all of them.  Somebody
 * does come by: the push that was on its way sends for one who waits.
 */
#ifndef EVC_QUEUE_QUEUE_H
#define EVC_QUEUE_QUEUE_H

#include <evcoord.h>

#include "base/fork.h"
#include "base/list.h"
#include "base/sync.h"

/* What sides wait for. */
enum { ITEMS, ROOM, SIDES };

/* In wanted[ROOM], beside the pushes: one who waits until it is empty. */
#define DRAINER (1u << 20)

/* What one who waits is to hear of the ends of the queue since it came, however
   soon that is opened again. */
struct evc__ear {
	struct list node; /* lock: in the queue's */
	/* atomic: close and cancel, lock held -> who waits: its input ends
	   before this position; EAR_OPEN: nowhere yet */
	_Atomic uint64_t end;
	_Atomic bool cancelled; /* likewise, set before end */
};
#define EAR_OPEN UINT64_MAX

struct evc__place {
	/* atomic: who puts in <-> who takes out; see queue_ring.h */
	_Atomic uint64_t turn;
	void *item; /* whose turn it is */
};

/* Threads that wait on one side; lock. */
struct evc__side {
	evc_cond *cond; /* set at creation; hears the stop */
	unsigned n_in;  /* are there, asleep or about to leave */
	unsigned n_idle; /* of these: nobody has sent for them */
	unsigned n_sent; /* sent for, and not yet up; any of them may take it */
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

	/* atomic: who waits -> who pushes, who pops.  Away from what they
	   move. */
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
	/* atomic: those who sleep before an end that has not come, lock held
	   -> watches: the first one's position */
	_Atomic uint64_t next_end;
	/* lock; see queue_watch.c */
	struct list watches;
	struct list armed; /* of these: those that wait for an item */
	unsigned n_armed, fair;
	evc_id last_watch;
	/* lock; see queue_feed.c */
	unsigned n_feeders;
	bool at_end, cut_off; /* one of them has ended so, or otherwise */
};

/* A loop that pops; see queue_watch.c. */
struct evc__watch {
	evc_message mail; /* first */
	/* atomic: the maker, the watch itself, its mail while that is posted
	   -> the last of them frees it */
	_Atomic uint32_t refs;
	pthread_mutex_t making; /* the first turn waits for the maker */
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
	struct list armed; /* in the queue's armed, while is_armed */
	bool is_armed;     /* the watch waits for an item */
	/* atomic: the thread of its turns -> who wants to end it; 0: it had
	   none yet */
	_Atomic int tid;
	/* loop thread */
	bool over;  /* fn is not called any more */
	bool owed;  /* the looper has run, and its opts.stop will be called */
	bool alone; /* the stop has come, or the loop goes: no looper left */
	bool stop_drops; /* the watch was lost: opts.stop still comes */
};

/* ---- queue_wake.c ---- */

/* Is it one, and this process its own?  0, or refused. */
evc_status evc__queue_check(const evc_queue *q, const char *func);
/* Is this a fork child of who made it?  Asked when a function of the program has
   returned. */
static inline bool
evc__queue_inherited(const evc_queue *q)
{
	return evc__forked_since(q->fork_generation);
}
/* The text that belongs to a status; returns it. */
evc_status evc__queue_refuse(const evc_queue *q, evc_status st,
			     const char *func);

/* ring_push has found a flag or a stop: why nothing goes in; 0: look again,
   from *pos. */
evc_status evc__queue_barred(evc_queue *q, uint64_t *pos);
/* One look: 0 and *ret_item, RING_EMPTY, RING_BUSY, or why no more come; ear:
   of who waits, or NULL. */
int evc__queue_pop_once(evc_queue *q, void **ret_item,
			const struct evc__ear *ear);

/* Lock held: it listens from now on. */
void evc__ear_open(evc_queue *q, struct evc__ear *ear);
/* Lock held: before the look after which it may sleep for an item. */
void evc__ear_waits(evc_queue *q, struct evc__ear *ear);
/* Lock held: it sleeps for one. */
void evc__ear_sleeps(evc_queue *q, const struct evc__ear *ear);
/* Has an end come that somebody sleeps before? */
bool evc__ear_is_due(evc_queue *q);
/* Lock held: if so, wake all of them. */
void evc__ears_tell(evc_queue *q);

/* Lock held: the input ends before that position, or a cancel has come.  All
   waits hear of it and are woken; the first end that a wait misses is its own, a
   cancel comes before it. */
void evc__queue_end(evc_queue *q, uint64_t end, bool cancelled);

/* Something was pushed or popped, and somebody wants it. */
void evc__queue_pushed(evc_queue *q);
void evc__queue_popped(evc_queue *q);
/* Lock held, by who waited there and leaves: send for the next one if there is
   something to be had. */
void evc__queue_pass_on(evc_queue *q, unsigned side);

/* Any thread: let the watch have a turn. */
evc_status evc__watch_post(struct evc__watch *w);
/* Lock held: the watch waits for no item. */
void evc__watch_disarm(struct evc__watch *w);
/* One reference less. */
void evc__watch_drop(struct evc__watch *w);

/* ---- queue.c ---- */

/* Lock held. */
void evc__queue_close(evc_queue *q);

#endif
