/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The closure queue: closures that were scheduled and have no outcome yet, and
 * the error that is to be raised.
 *
 *     put --> [held] --> queued --> taken --> finish
 *                          ^          |
 *                          +- back ---+
 *
 * The queue knows nothing of remotes, workers or engines, so tests can run it
 * alone.  Its owner embeds a struct closure in each object, and is told of
 * closures that an error cancels.
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
	CLOSURE_OUT,    /* in no list: not put yet, or over */
	CLOSURE_HELD,   /* accepted; waits for inputs, or for a retry */
	CLOSURE_QUEUED,
	CLOSURE_TAKEN
};

struct closure {
	struct list link; /* held: closures.held; queued: a line; taken: the
			     owner's list */
	uint64_t n;       /* number of the attempt: set by take, greater than
			     all before */
	uint32_t tag;     /* the only worker, or TAG_ANY */
	int8_t priority;  /* EVC_PRIORITY_LEAST .. _MOST */
	uint8_t where;
};

/* Closures in the order of the takes. */
struct closure_line {
	struct list at[PRIORITIES];
	uint32_t some; /* bit i: at[i] has closures */
};

struct closures {
	/* Guards the queue, and all data that the owner keeps beside it. */
	pthread_mutex_t lock;
	/* atomic: moved under the lock, slept on: a wait, or a put, may have
	   its answer */
	_Atomic uint32_t quiet, roomy;
	unsigned n_quiet, n_roomy; /* lock: threads asleep */

	/* creation: held and queued closures, at most */
	uint64_t most;
	/* lock: may this worker take the closure?  NULL: every worker may. */
	bool (*fits)(const struct closures *q, const struct closure *cl,
		     uint32_t tag);
	/* creation: an error or a stop has cancelled a closure, which is
	   OUT. */
	void (*cancelled)(struct closures *q, struct closure *cl);

	struct closure_line common;
	struct closure_line **own; /* lines of tags below n_own */
	unsigned n_own;
	struct list held;
	uint64_t n_held, n_queued, n_taken;
	uint64_t last_n;      /* number of the last attempt, from 1 on */
	uint64_t cancel_upto; /* attempts up to here are asked to stop */
	unsigned n_unsettled; /* of the owner: workers that may still run
				 something; no error is raised meanwhile */
	bool stopped;         /* puts are over */

	/* The errors to be raised; the first is the one. */
	bool failed;
	unsigned n_errors;
	evc_reason *errors;   /* ERRORS_KEPT places */
	/* The errors of the last raise. */
	unsigned n_raised;
	evc_reason *raised;
};

/* false: no memory. */
bool evc__closures_init(struct closures *q, uint64_t most,
			void (*cancelled)(struct closures *, struct closure *));
void evc__closures_destroy(struct closures *q);

/* Lock held in all functions below. */

/* Make lines for tags below n. false: no memory. */
bool evc__closures_tags(struct closures *q, unsigned n);

/* May n closures be put? 0; > 0: the error is raised, and the queue open again;
   EVC_PENDING: wait, by evc__closures_await_room. */
evc_status evc__closures_may_put(struct closures *q, unsigned n);
/* Give up the lock until the answer may have changed; false: the time `until`
   has come. */
bool evc__closures_await_room(struct closures *q, uint64_t until);
/* Accept a closure. held: it waits for evc__closures_release. */
void evc__closures_put(struct closures *q, struct closure *cl, bool held);
void evc__closures_release(struct closures *q, struct closure *cl);

/* Take up to `most` closures for a worker: the greatest priority first, of one
   priority those with the worker's tag, then the oldest. */
unsigned evc__closures_take(struct closures *q, uint32_t tag,
			    struct closure **ret, unsigned most);
bool evc__closures_has(const struct closures *q, uint32_t tag);
/* The first closure with this tag; NULL: none. */
struct closure *evc__closures_own(const struct closures *q, uint32_t tag);
/* A taken closure is queued again in front of its priority; held: it waits for
   a release.  While an error is pending, or after the stop, the closure is
   cancelled instead. */
void evc__closures_back(struct closures *q, struct closure *cl, bool held);
/* Note an error; the first one closes the queue.  The next finish or cancel
   cancels the queued closures, so the owner can first settle those that depend
   on the failed one. */
void evc__closures_note(struct closures *q, const evc_reason *r);
/* A taken closure is over. */
void evc__closures_finish(struct closures *q, struct closure *cl);
/* A held or queued closure is over. */
void evc__closures_out(struct closures *q, struct closure *cl);
/* After the error of a closure that was not taken: cancel all held and queued
   ones. */
void evc__closures_cancel(struct closures *q);
/* Cancel all held and queued closures; puts are over. */
void evc__closures_stop(struct closures *q);

/* Is all over? 0; > 0: the error is raised; EVC_PENDING: wait, by
   evc__closures_await_quiet. */
evc_status evc__closures_done(struct closures *q);
/* As evc__closures_await_room. */
bool evc__closures_await_quiet(struct closures *q, uint64_t until);
/* n_unsettled has changed: waits may have an answer. */
void evc__closures_ring(struct closures *q);

static inline bool
closures_is_idle(const struct closures *q)
{
	return q->n_held + q->n_queued + q->n_taken == 0 &&
	       q->n_unsettled == 0;
}

#endif
