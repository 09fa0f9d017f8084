/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loopers of one loop: a heap of when they are due, and one ev_timer for
 * the first of them.
 */
#ifndef EVC_MEMBERS_LOOPER_LOOP_H
#define EVC_MEMBERS_LOOPER_LOOP_H

#include "members/looper.h"

/* A name that loopers share. */
struct evc__looper_name {
	evc_reactor *reactor; /* set at creation */
	unsigned users;       /* lock */
	char text[];
};

/* There may be a hundred thousand: each field is looked at twice.  Two cache
   lines. */
struct evc__looper {
	_Alignas(64) struct evc__entry e; /* first: the id table leads to it */
	/* set at creation */
	struct evc__looper_name *name; /* and its reactor */
	uint64_t since_ns;
	struct evc__body body;
	/* lock */
	struct evc__looper *again; /* chain of evc__loopers.again */
};
_Static_assert(sizeof(struct evc__looper) == 128,
	       "160 bytes with its places in heap and id table");

struct evc__heap {
	uint64_t *due;   /* from HEAP_FIRST on, as who */
	uint32_t *who;   /* the number of the looper that stands there */
	uint32_t *place; /* where each number stands */
	struct evc__looper **chunk;
	struct evc__looper *free;
	uint32_t n, room;
	uint32_t made; /* numbers that there are, free or not */
};
/* So far in that siblings share a cache line. */
#define HEAP_FIRST 3

struct evc__loopers {
	struct evc__leftover leftover; /* first: when its reactor is gone */
	/* set at creation */
	evc_coord *c;
	struct ev_loop *loop;
	/* around the timer's callback; shut by another thread that takes the
	   reactor away */
	struct gate gate;
	/* loop thread only, under the lock while there is a reactor */
	ev_timer timer; /* active and ev_unref'd, or neither */
	bool referred;  /* we hold an ev_ref */
	struct evc__stand stand; /* while there is something of these */
	bool fired;     /* the timer is not where we set it any more */
	uint64_t armed; /* for when it is set */
	uint64_t now, coarse; /* in a batch: the time, and when it was asked */

	/* lock */
	evc_reactor *reactor;
	struct evc__heap heap; /* all of them, also those that sleep */
	/* What is due again within a batch has its turn in the next one. */
	struct evc__looper *again;
	uint64_t horizon; /* the time of the batch */
	unsigned depth;   /* batches in progress: runs may nest */
	struct evc__looper_name *last_name;
	unsigned n_dormant;
	bool lost;        /* the loop was destroyed */
};

/* ---- looper_heap.c ---- */

/* Room for one more; false: no memory. */
bool evc__heap_room(struct evc__heap *h);
/* One more, zeroed, which is never due; there is room. */
struct evc__looper *evc__heap_new(struct evc__heap *h);
void evc__heap_delete(struct evc__heap *h, struct evc__looper *l);
void evc__heap_set(struct evc__heap *h, struct evc__looper *l, uint64_t due);
/* The first is the one that is due first; the others in any order. */
struct evc__looper *evc__heap_at(const struct evc__heap *h, uint32_t i);
uint64_t evc__heap_first_due(const struct evc__heap *h);
/* Have the second come from memory meanwhile. */
void evc__heap_fetch_second(const struct evc__heap *h);
void evc__heap_free(struct evc__heap *h);

/* ---- looper_loop.c; lock held ---- */

static inline evc_reactor *
evc__looper_reactor(const struct evc__looper *l)
{
	return l->name->reactor;
}

struct evc__looper_who evc__loop_looper_who(const struct evc__looper *l);
/* Put it where it belongs: it is due at another time. */
void evc__loop_looper_place(struct evc__looper *l);
/* It may be gone: it has called what it had to. */
void evc__loop_looper_end(struct evc__looper *l);
/* One of which all of some bits are set, and none of others; NULL: none. */
struct evc__looper *evc__loop_looper_next(const struct evc__loopers *t,
					  uint32_t with, uint32_t without);
/* It never was alive. */
void evc__loop_looper_vanish(struct evc__looper *l);

/* ---- looper_timer.c ---- */

/* Lock held: new, with the timer stopped; NULL: no memory. */
struct evc__loopers *evc__loopers_new(evc_reactor *r);
/* Loop thread, lock held: set the timer to the first. */
void evc__loopers_arm(struct evc__loopers *t);

#endif
