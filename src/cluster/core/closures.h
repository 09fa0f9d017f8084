/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The closure queue: closures that were scheduled and have no outcome yet, and
 * the error that is to be raised.
 *
 *     put --> [held] --> queued --> taken --> finish
 *                          ^          |
 *                          +- back ---+
 *
 * A closure to run alone is queued apart.  Until its end no other closure is
 * taken, and its take waits until no other is taken; neither holds when the
 * owner is impatient.
 *
 * The queue knows nothing of remotes, workers or engines, so tests can run it
 * alone.  Its owner embeds a struct closure in each object, and is told of
 * closures that an error cancels.
 */
#ifndef EVC_CLUSTER_CLOSURES_H
#define EVC_CLUSTER_CLOSURES_H

#include <evcoord.h>

#include "base/sync.h"
#include "cluster/core/closure_line.h"

#define ERRORS_KEPT 32

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
	size_t own_room;
	uint64_t n_tagged; /* closures in these lines */
	uint64_t leaving; /* of the owner: workers with this tag and greater ones
			     take closures with their tag alone */
	struct list held;
	struct list alone;
	struct closure *alone_taken; /* from `alone`; NULL: none */
	bool impatient;       /* of the owner: taken closures take too long, so
				 nothing waits for the sake of `alone` */
	bool alone_news;      /* for the owner: closures that have waited for the
				 sake of `alone`, or one of it, may have to be
				 taken */
	bool alone_beside;    /* others ran beside alone_taken at some time */
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
/* The closure that runs alone, or is next to do so; NULL: none. */
static inline struct closure *
closures_first_alone(const struct closures *q)
{
	if (q->alone_taken != NULL || list_empty(&q->alone))
		return q->alone_taken;
	return LIST_OF(q->alone.next, struct closure, link);
}

/* A closure of `alone` is there or taken. */
static inline bool
closures_any_alone(const struct closures *q)
{
	return closures_first_alone(q) != NULL;
}

/* Others wait for its sake. */
static inline bool
closures_hold_back(const struct closures *q)
{
	return closures_any_alone(q) && !q->impatient;
}

/* A taken closure goes back: CLOSURE_QUEUED, in front of its priority;
   CLOSURE_ALONE, to run alone; CLOSURE_HELD, for a release.  While an error is
   pending, or after the stop, the closure is cancelled instead. */
void evc__closures_back(struct closures *q, struct closure *cl, int where);
/* No worker may be left for closures to run alone: they are queued as
   others are. */
void evc__closures_mix(struct closures *q);
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
