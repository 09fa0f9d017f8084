/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The closure queue: what was scheduled and has no outcome yet, and the error
 * that is to be raised.
 *
 *     put --> [held] --> queued --> taken --> finish
 *                          ^          |
 *                          +- back ---+
 *
 * It knows nothing of remotes, workers or engines, so that it can be tried
 * alone.  Its owner embeds a struct closure in what it queues, and is told of
 * those that an error cancels.
 */
#ifndef EVC_CLUSTER_CLOSURES_H
#define EVC_CLUSTER_CLOSURES_H

#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"

#define PRIORITIES 16 /* EVC_PRIORITY_MOST comes first */
#define TAG_ANY UINT32_MAX
#define ERRORS_KEPT 32

/* struct closure.where */
enum {
	CLOSURE_OUT,    /* in none: not put yet, or over */
	CLOSURE_HELD,   /* accepted; waits for inputs, or to be tried again */
	CLOSURE_QUEUED,
	CLOSURE_TAKEN
};

struct closure {
	struct list link; /* held: of closures.held; queued: of its line;
			     taken: the owner's */
	uint64_t n;       /* of this attempt: set by take, greater than all
			     before */
	uint32_t tag;     /* for this worker alone, or TAG_ANY */
	int8_t priority;  /* EVC_PRIORITY_LEAST .. _MOST */
	uint8_t where;
};

/* Closures in the order they are taken. */
struct closure_line {
	struct list at[PRIORITIES];
	uint32_t some; /* bit i: at[i] is not empty */
};

struct closures {
	/* Of everything here, and of all that the owner keeps beside it. */
	pthread_mutex_t lock;
	/* Change under the lock, and are slept on: an answer for waits may have
	   come; for puts. */
	_Atomic uint32_t quiet, roomy;
	unsigned n_quiet, n_roomy; /* threads that sleep there */

	/* set at creation */
	uint64_t most; /* held and queued, at most */
	/* May this one be taken for that worker?  NULL: any may. */
	bool (*fits)(const struct closures *q, const struct closure *cl,
		     uint32_t tag);
	/* This one was cancelled by an error or a stop; it is OUT already. */
	void (*cancelled)(struct closures *q, struct closure *cl);

	struct closure_line common;
	struct closure_line **own; /* of the tags below n_own; NULL: none */
	unsigned n_own;
	struct list held;
	uint64_t n_held, n_queued, n_taken;
	uint64_t last_n;      /* attempts are counted from 1 */
	uint64_t cancel_upto; /* the cancel token: attempts up to here are asked
				 to stop */
	unsigned n_unsettled; /* the owner's: workers of which nobody knows
				 whether they run still; nothing is raised
				 meanwhile */
	bool stopped;         /* nothing is put any more */

	/* What is to be raised: the first is it. */
	bool failed;
	unsigned n_errors;
	evc_reason *errors;   /* ERRORS_KEPT of them */
	/* What was raised last. */
	unsigned n_raised;
	evc_reason *raised;
};

/* false: no memory. */
bool evc__closures_init(struct closures *q, uint64_t most,
			void (*cancelled)(struct closures *, struct closure *));
void evc__closures_destroy(struct closures *q);

/* All below: lock held. */

/* Room for closures with tags below n.  false: no memory. */
bool evc__closures_tags(struct closures *q, unsigned n);

/* May something be put now?  0; > 0: the error is raised, and the queue open
   again; EVC_PENDING: wait, by evc__closures_await_room. */
evc_status evc__closures_may_put(struct closures *q, unsigned n);
/* Waits, the lock given up meanwhile, until that may have changed; false: it was
   not before `until`. */
bool evc__closures_await_room(struct closures *q, uint64_t until);
/* Accepted.  held: it waits for evc__closures_release. */
void evc__closures_put(struct closures *q, struct closure *cl, bool held);
void evc__closures_release(struct closures *q, struct closure *cl);

/* Up to `most` for this worker: the greatest priority first, of one priority
   those with its tag, and those in their order. */
unsigned evc__closures_take(struct closures *q, uint32_t tag,
			    struct closure **ret, unsigned most);
bool evc__closures_has(const struct closures *q, uint32_t tag);
/* The first of those with this tag; NULL: there is none. */
struct closure *evc__closures_own(const struct closures *q, uint32_t tag);
/* One that was taken is queued again, before all others of its priority; held:
   it waits for a release.  While an error is pending, or after the stop, it is
   cancelled instead. */
void evc__closures_back(struct closures *q, struct closure *cl, bool held);
/* An error, which closes the queue if it is the first; what stands in it is
   cancelled by the next finish or cancel, so that the owner can first settle
   what depends on the one that failed. */
void evc__closures_note(struct closures *q, const evc_reason *r);
/* One that was taken is over. */
void evc__closures_finish(struct closures *q, struct closure *cl);
/* One that was not taken is over. */
void evc__closures_out(struct closures *q, struct closure *cl);
/* After an error of what was not taken: all that stands in it is cancelled. */
void evc__closures_cancel(struct closures *q);
/* Cancel all that is held or queued; nothing is put any more. */
void evc__closures_stop(struct closures *q);

/* Is all over?  0; > 0: the error is raised; EVC_PENDING: wait, by
   evc__closures_await_quiet. */
evc_status evc__closures_done(struct closures *q);
/* As evc__closures_await_room. */
bool evc__closures_await_quiet(struct closures *q, uint64_t until);
/* Something of the owner's has changed that these look at (n_unsettled). */
void evc__closures_ring(struct closures *q);

static inline bool
closures_is_idle(const struct closures *q)
{
	return q->n_held + q->n_queued + q->n_taken == 0 &&
	       q->n_unsettled == 0;
}

#endif
