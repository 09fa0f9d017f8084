/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loopers of a loop: a heap by due time, and an ev_timer for the first.
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

/* The size is two cache lines, because a loop may have a hundred thousand
   loopers. */
struct evc__looper {
	_Alignas(64) struct evc__entry e; /* first: the id table leads to this
					     entry */
	/* set at creation */
	struct evc__looper_name *name; /* leads to the reactor, too */
	uint64_t since_ns;
	struct evc__body body;
	/* lock */
	struct evc__looper *again; /* chain of evc__loopers.again */
};
_Static_assert(sizeof(struct evc__looper) == 128,
	       "160 bytes with its places in heap and id table");

struct evc__heap {
	uint64_t *due;    /* due time of each place, from HEAP_FIRST on */
	uint32_t *number; /* looper number of each place, from HEAP_FIRST on */
	uint32_t *place;  /* place of each looper number */
	struct evc__looper **chunk;
	struct evc__looper *free;
	uint32_t n, room;
	uint32_t made; /* numbers given out, used and free */
};
/* The index of the heap's root: with 3, the four children of a node share a
   cache line. */
#define HEAP_FIRST 3

struct evc__loopers {
	struct evc__leftover leftover; /* first; used after the detach */
	/* set at creation */
	evc_coord *c;
	struct ev_loop *loop;
	/* around the timer's callback; shut by another thread that detaches
	   the reactor */
	struct refgate gate;
	/* loop thread only, under the lock while there is a reactor */
	struct evc__timer timer; /* set and ev_unref'd, or not set */
	bool has_ref;   /* foreground loopers have their ev_ref */
	struct evc__stand stand; /* while the timer or the ev_ref exists */
	bool fired;     /* the timer has fired, and libev has re-armed the
			   timer, since timer_set */
	uint64_t armed; /* the due time for which the timer is set */
	uint64_t now, coarse; /* time of the batch, precise and coarse */

	/* lock */
	evc_reactor *reactor;
	struct evc__heap heap; /* all loopers, the paused ones, too */
	/* Loopers due again within a batch, for the next batch. */
	struct evc__looper *again;
	uint64_t horizon; /* the time of the batch */
	unsigned depth;   /* batches in progress: runs may nest */
	struct evc__looper_name *last_name;
	unsigned n_dormant;
	bool lost;        /* the loop was destroyed */
};

/* ---- looper_heap.c ---- */

/* Make room for another looper.  false: no memory. */
bool evc__heap_room(struct evc__heap *h);
/* Add a looper, zeroed and never due; there is room. */
struct evc__looper *evc__heap_new(struct evc__heap *h);
void evc__heap_delete(struct evc__heap *h, struct evc__looper *l);
void evc__heap_set(struct evc__heap *h, struct evc__looper *l, uint64_t due);
/* i 0: the looper that is due first; the others in any order. */
struct evc__looper *evc__heap_at(const struct evc__heap *h, uint32_t i);
uint64_t evc__heap_first_due(const struct evc__heap *h);
/* Prefetch the second looper. */
void evc__heap_fetch_second(const struct evc__heap *h);
void evc__heap_free(struct evc__heap *h);

/* ---- looper_loop.c; lock held ---- */

static inline evc_reactor *
evc__looper_reactor(const struct evc__looper *l)
{
	return l->name->reactor;
}

struct evc__looper_who evc__loop_looper_who(const struct evc__looper *l);
/* Move the looper in the heap: its due time has changed. */
void evc__loop_looper_place(struct evc__looper *l);
/* Remove a looper after its last function. */
void evc__loop_looper_end(struct evc__looper *l);
/* A looper with all bits of `with` and none of `without`; or NULL. */
struct evc__looper *evc__loop_looper_next(const struct evc__loopers *t,
					  uint32_t with, uint32_t without);
/* Remove a dormant looper. */
void evc__loop_looper_vanish(struct evc__looper *l);

/* ---- looper_timer.c ---- */

/* Lock held: the loopers of r, with the timer stopped; NULL: no memory. */
struct evc__loopers *evc__loopers_new(evc_reactor *r);
/* Loop thread, lock held: set the timer for the first due looper. */
void evc__loopers_arm(struct evc__loopers *t);

#endif
