/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue that knows the stop: bounded, of pointers, for any number of
 * producers and consumers, threads and loops.
 *
 * In the order of their meaning for those who wait:
 *   - a stop of its coordinator: pushes and pops return -EVC_CANCELLED at once;
 *     with EVC_QUEUE_DRAIN pops first hand out what is in it;
 *   - evc_queue_cancel, of this queue alone: pushes and pops return
 *     -EVC_CANCELLED at once, and what is in it stays;
 *   - evc_queue_close, the end of input: pushes are refused with
 *     -EVC_OUT_OF_RANGE, and pops hand out what is in it, then say the same.
 *     OUT_OF_RANGE is a clean code: a worker may return what a pop returned.
 * Items are never dropped by the queue: what nobody has popped is popped by who
 * frees it.
 *
 * What one thread has pushed comes out in that order.  While nobody has to wait
 * a push and a pop take no lock and make no system call.  Nothing here may be
 * called in a signal handler.
 */
#ifndef EVCOORD_QUEUE_H
#define EVCOORD_QUEUE_H

#include <evcoord/post.h>
#include <evcoord/types.h>

EVC_BEGIN_DECLS_

typedef struct evc_queue evc_queue;

enum {
	/* evc_queue_opts.flags.  After a stop pops hand out what is in it
	   before they say -EVC_CANCELLED. */
	EVC_QUEUE_DRAIN = 1 << 21
};

typedef struct evc_queue_opts {
	unsigned flags; /* EVC_QUEUE_DRAIN */
	uint64_t reserved_[8];
} evc_queue_opts;

/* Numbers of a moment, each by itself. */
typedef struct evc_queue_info {
	size_t capacity, n;          /* n items are in it, or on their way in */
	uint64_t n_pushed, n_popped; /* since evc_queue_new */
	unsigned n_pushing, n_popping; /* threads that wait */
	bool closed, cancelled;
	uint64_t reserved_[8];
} evc_queue_info;

/*
 * Make a queue for capacity items: exactly so many, whatever number that is.
 *
 * Thread:    any.
 * Ownership: the caller owns *ret_queue and gives it back by evc_queue_free
 *            before c is freed.  name (NULL: "queue") and opts are copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT (capacity 0 or above 2^30, a name of more
 *            than 47 bytes); -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_FAILED_PRECONDITION in a fork child, as all calls here.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_queue_new(evc_coord *c, const char *name, size_t capacity,
	      const evc_queue_opts *opts, evc_queue **ret_queue);

/*
 * Free a queue that is empty and that nobody uses any more.
 *
 * Thread:    any.
 * Ownership: queue is gone after 0; NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION with items in it (evc_queue_try_pop
 *            gets them), while threads wait, feeders run or a loop watches it.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_free(evc_queue *queue);

/*
 * Put an item in, waiting for room timeout seconds at most (<= 0: do not wait;
 * INFINITY: for ever).  Without a wait, "full" may also say that another thread
 * is in the middle of the pop that makes the room, and "empty" of a pop, that
 * one is in the middle of its push.
 *
 * Thread:    any; with a timeout > 0 not inside ev_run of a loop of the queue's
 *            coordinator, where it is refused whether it would wait or not.
 * Ownership: item is the queue's after 0, else still the caller's.
 * Returns:   0; -EVC_CANCELLED; -EVC_OUT_OF_RANGE when it is closed;
 *            -EVC_DEADLINE_EXCEEDED when it is full; -EVC_INVALID_ARGUMENT
 *            (NULL, NaN), -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_queue_push(evc_queue *queue, void *item, double timeout);

/*
 * Take the oldest item out, waiting for one timeout seconds at most.
 *
 * Thread:    as evc_queue_push.
 * Ownership: *ret_item is the caller's after 0, else untouched.
 * Returns:   0; -EVC_CANCELLED; -EVC_OUT_OF_RANGE when it is closed and empty:
 *            no push of this round comes behind it;
 *            -EVC_DEADLINE_EXCEEDED when it is empty; -EVC_INVALID_ARGUMENT,
 *            -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_queue_pop(evc_queue *queue, void **ret_item, double timeout);

/*
 * Take the oldest item out whatever the state: for who tidies up after a stop.
 *
 * Thread:    any.
 * Ownership: *ret_item is the caller's after 0.
 * Returns:   0; -EVC_NOT_FOUND when it is empty; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_try_pop(evc_queue *queue, void **ret_item);

/*
 * The end of input.  A push that has not returned yet is in time, or is
 * refused: no pop says that it is over before it has handed that item out.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0, also the second time; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_close(evc_queue *queue);

/*
 * Whoever waits, and comes from now on, gets -EVC_CANCELLED; items stay, for
 * evc_queue_try_pop.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0, also the second time; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_cancel(evc_queue *queue);

/*
 * Open a closed or cancelled queue for another round.  Whoever waited when it
 * was ended hears of that all the same, and gets nothing of the new round.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_FAILED_PRECONDITION while feeders run;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_reopen(evc_queue *queue);

/*
 * Wait until it is empty: until everything that was in it, and all that was
 * pushed meanwhile, has been popped.
 *
 * Thread:    as evc_queue_push.
 * Ownership: nothing changes hands.
 * Returns:   0, also after a stop when it is empty; -EVC_CANCELLED at a stop or
 *            cancel; -EVC_DEADLINE_EXCEEDED;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_drain(evc_queue *queue, double timeout);

/*
 * What it holds.
 *
 * Thread:    any.
 * Ownership: *ret_info is the caller's.
 * Returns:   0; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_get(const evc_queue *queue, evc_queue_info *ret_info);

/* An item, and why 0; or NULL, and why no more come: EVC_OUT_OF_RANGE,
   EVC_CANCELLED. */
typedef void evc_queue_fn(evc_queue *queue, void *item, evc_status why,
			  void *arg);

/*
 * Pop on a loop: fn is called there, again and again while there are items, at
 * most 64 in a turn, with each; and once more with item NULL when no more come,
 * at a stop, a cancel, the end of input, or when the loop is destroyed: that
 * ends the watch, and the queue may be freed in it.  Until then it keeps the
 * loop's run and joins waiting, unless it is flagged EVC_BACKGROUND, and the
 * loop cannot be detached.  In reports it is a looper with the queue's name.
 * Several watches and threads may pop from one queue: each item goes to one of
 * them.  r must stay until this returns: who does not know that calls
 * evc_queue_watch_on.
 *
 * Thread:    any; fn on the loop of r, a reactor of the queue's coordinator.
 * Ownership: arg must live until the last call.
 * Returns:   0 and *ret_id (which may be NULL), set before fn is called;
 *            -EVC_CANCELLED after the stop; -EVC_NOT_FOUND when the loop is
 *            gone; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_queue_watch(evc_queue *queue, evc_reactor *r, evc_queue_fn *fn, void *arg,
		unsigned flags, evc_id *ret_id);

/*
 * The same by a handle, which outlives the loop.
 *
 * Thread:    any.
 * Ownership: as evc_queue_watch; loop stays the caller's.
 * Returns:   as evc_queue_watch; -EVC_NOT_FOUND when the loop was detached or
 *            destroyed.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_queue_watch_on(evc_queue *queue, evc_loop_ref *loop, evc_queue_fn *fn,
		   void *arg, unsigned flags, evc_id *ret_id);

/*
 * End a watch, without a last call: after this returned fn is not called.
 *
 * Thread:    the loop's, also in fn.
 * Ownership: arg is the caller's again.
 * Returns:   0; -EVC_NOT_FOUND when it has ended; -EVC_FAILED_PRECONDITION on
 *            another thread; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_unwatch(evc_queue *queue, evc_id id);

/* Set *ret_item, which is NULL, or leave it; 0: call me again. */
typedef evc_status evc_feed_fn(evc_queue *queue, unsigned number,
			       void **ret_item, void *arg);

typedef struct evc_feed_opts {
	/* Gets an item that could not be pushed, on the feeder that had it. */
	void (*dropped)(void *item, void *arg);
	evc_member_opts member; /* of each thread */
	uint64_t reserved_[8];
} evc_feed_opts;

/*
 * Feed it: n_threads threads call fn again and again and push what it sets
 * *ret_item to, whatever it returns with it (NULL: nothing this time).  A clean
 * code of the coordinator ends that feeder, and the last one that ends closes
 * the queue, when all have ended so; any other code is an error: it cancels the
 * queue and stops the coordinator.  Each error is kept (evc_reason_get), once
 * when fn has said by evc_fail why it returns that code.  When the queue is
 * cancelled or closed by somebody else the feeders end, and stop nobody.  At a
 * stop a feeder that is blocked in its push ends, and what it could not push is
 * handed to dropped (NULL: to nobody).
 *
 * Thread:    any; fn on the feeders, threads named NAME/0, NAME/1 ...
 * Ownership: arg must live until they have ended; name (NULL: the queue's) and
 *            opts are copied.
 * Returns:   0; -EVC_CANCELLED after the stop or cancel, -EVC_OUT_OF_RANGE when
 *            it is closed; -EVC_INVALID_ARGUMENT (0 threads or more than 65536,
 *            no fn, wrong opts), -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_FAILED_PRECONDITION: fn is not called.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_feed(evc_queue *queue, const char *name, unsigned n_threads,
	       evc_feed_fn *fn, void *arg, const evc_feed_opts *opts);

EVC_END_DECLS_

#endif
