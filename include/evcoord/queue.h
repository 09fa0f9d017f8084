/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue that knows the stop: bounded, of pointers, for any number of
 * producers and consumers, threads and loops.
 *
 * Three events end pushes and pops; when several have happened, the first in
 * this list counts:
 *   - a stop of the queue's coordinator: pushes and pops return -EVC_CANCELLED
 *     at once; with EVC_QUEUE_DRAIN pops first hand out the items in the queue;
 *   - evc_queue_cancel, of this queue alone: pushes and pops return
 *     -EVC_CANCELLED at once, and the items stay;
 *   - evc_queue_close, the end of input: pushes are refused with
 *     -EVC_OUT_OF_RANGE; pops hand out the items in the queue, then return
 *     -EVC_OUT_OF_RANGE, too.  That is a clean code: a worker may return the
 *     result of a pop.
 * The queue never drops items: before a queue is freed, the program pops the
 * items that are left.
 *
 * Items of one thread come out in the order of its pushes.  While no thread has
 * to wait, a push and a pop take no lock and make no system call.  No call of
 * this header may be made in a signal handler.
 */
#ifndef EVCOORD_QUEUE_H
#define EVCOORD_QUEUE_H

#include <evcoord/post.h>
#include <evcoord/types.h>

EVC_BEGIN_DECLS_

typedef struct evc_queue evc_queue;

enum {
	/* evc_queue_opts.flags.  After a stop, pops hand out the items in the
	   queue before they return -EVC_CANCELLED. */
	EVC_QUEUE_DRAIN = 1 << 21
};

typedef struct evc_queue_opts {
	unsigned flags; /* EVC_QUEUE_DRAIN */
	uint64_t reserved_[8];
} evc_queue_opts;

/* A queue in numbers.  Each number is read by itself. */
typedef struct evc_queue_info {
	size_t capacity, n;          /* n items are in it, or being pushed */
	uint64_t n_pushed, n_popped; /* since evc_queue_new */
	unsigned n_pushing, n_popping; /* threads that wait to push, to pop */
	bool closed, cancelled;
	uint64_t reserved_[8];
} evc_queue_info;

/*
 * Make a queue for exactly capacity items; any number, not only a power of two.
 *
 * Thread:    any.
 * Ownership: the caller owns *ret_queue and gives it back by evc_queue_free
 *            before c is freed, or leaves it to evc_finish of c.  name (NULL:
 *            "queue") and opts are copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT (capacity 0 or above 2^30);
 *            -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_FAILED_PRECONDITION in a fork child, as all calls here.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_queue_new(evc_coord *c, const char *name, size_t capacity,
	      const evc_queue_opts *opts, evc_queue **ret_queue);

/*
 * Free a queue that is empty and not in use.
 *
 * Thread:    any.
 * Ownership: queue is gone after 0; NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION while the queue has items
 *            (evc_queue_try_pop takes them out), while threads wait, feeders
 *            run or a loop watches the queue.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_free(evc_queue *queue);

/*
 * Put an item in, waiting for room timeout seconds at most (<= 0: do not wait;
 * INFINITY: for ever).  A push without a wait may find the queue full while
 * another thread is in the middle of a pop; likewise a pop without a wait may
 * find it empty while another thread is in the middle of a push.
 *
 * Thread:    any; with a timeout > 0 not inside ev_run of a loop of the queue's
 *            coordinator, where the call is refused even if it need not wait.
 * Ownership: item is the queue's after 0, else still the caller's.
 * Returns:   0; -EVC_CANCELLED; -EVC_OUT_OF_RANGE when the queue is closed;
 *            -EVC_DEADLINE_EXCEEDED when it is full; -EVC_INVALID_ARGUMENT
 *            (NULL, NaN), -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_queue_push(evc_queue *queue, void *item, double timeout);

/*
 * Take the oldest item out, waiting for an item timeout seconds at most.
 *
 * Thread:    as evc_queue_push.
 * Ownership: *ret_item is the caller's after 0, else untouched.
 * Returns:   0; -EVC_CANCELLED; -EVC_OUT_OF_RANGE when the queue is closed and
 *            empty: no push of this round can follow;
 *            -EVC_DEADLINE_EXCEEDED when it is empty; -EVC_INVALID_ARGUMENT,
 *            -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_queue_pop(evc_queue *queue, void **ret_item, double timeout);

/*
 * Take the oldest item out whatever the state: to empty a queue after a stop.
 *
 * Thread:    any.
 * Ownership: *ret_item is the caller's after 0.
 * Returns:   0; -EVC_NOT_FOUND when the queue is empty; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_try_pop(evc_queue *queue, void **ret_item);

/*
 * The end of input.  A push that has not returned yet either succeeds or is
 * refused; if it succeeds, no pop returns -EVC_OUT_OF_RANGE before its item was
 * handed out.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0, also the second time; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_close(evc_queue *queue);

/*
 * Cancel the queue: calls that wait, and all later ones, return -EVC_CANCELLED.
 * The items stay, for evc_queue_try_pop.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0, also the second time; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_cancel(evc_queue *queue);

/*
 * Open a closed or cancelled queue for another round.  A call that waited at
 * the close or cancel still returns its code, and gets no item of the new
 * round.
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
 * Wait until the queue is empty: until all its items, those pushed meanwhile
 * included, have been popped.
 *
 * Thread:    as evc_queue_push.
 * Ownership: nothing changes hands.
 * Returns:   0, also after a stop when the queue is empty; -EVC_CANCELLED at a
 *            stop or cancel; -EVC_DEADLINE_EXCEEDED;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_drain(evc_queue *queue, double timeout);

/*
 * The numbers of a queue.
 *
 * Thread:    any.
 * Ownership: *ret_info is the caller's.
 * Returns:   0; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_get(const evc_queue *queue, evc_queue_info *ret_info);

/* Called with an item and why 0; or, as the last call, with item NULL and the
   reason why no more items come: EVC_OUT_OF_RANGE, EVC_CANCELLED. */
typedef void evc_queue_fn(evc_queue *queue, void *item, evc_status why,
			  void *arg);

/*
 * Pop on a loop: the loop calls fn with each item, at most 64 items in a turn.
 * When no more items come (at a stop, a cancel, the end of input, or when the
 * loop is destroyed) fn is called once more, with item NULL.  This last call
 * ends the watch, and may free the queue.  Until then the watch keeps the
 * loop's run and joins waiting, unless it has the flag EVC_BACKGROUND, and the
 * loop cannot be detached.  In reports the watch is a looper with the queue's
 * name.  Several watches and threads may pop from one queue: each item goes to
 * one of them.  r must exist until the call returns; a thread that cannot be
 * sure of that calls evc_queue_watch_on.
 *
 * Thread:    any; fn on the loop of r, a reactor of the queue's coordinator.
 * Ownership: arg must live until the last call.
 * Returns:   0 and *ret_id (which may be NULL), set before fn is called;
 *            -EVC_CANCELLED after the stop; -EVC_NOT_FOUND when the loop is
 *            gone; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_queue_watch(evc_queue *queue, evc_reactor *r, evc_queue_fn *fn, void *arg,
		unsigned flags, evc_id *ret_id);

/*
 * evc_queue_watch for a loop named by a handle, which outlives the loop.
 *
 * Thread:    any.
 * Ownership: as evc_queue_watch; loop stays the caller's.
 * Returns:   as evc_queue_watch; -EVC_NOT_FOUND when the loop was detached or
 *            destroyed.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_queue_watch_on(evc_queue *queue, evc_loop_ref *loop, evc_queue_fn *fn,
		   void *arg, unsigned flags, evc_id *ret_id);

/*
 * End a watch, without a last call: after evc_queue_unwatch has returned, fn is
 * not called.
 *
 * Thread:    the loop's, also in fn.
 * Ownership: arg is the caller's again.
 * Returns:   0; -EVC_NOT_FOUND when the watch has ended;
 *            -EVC_FAILED_PRECONDITION on another thread;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_unwatch(evc_queue *queue, evc_id id);

/* Called with *ret_item NULL: set it to an item, or leave it.  0: call me
   again. */
typedef evc_status evc_feed_fn(evc_queue *queue, unsigned number,
			       void **ret_item, void *arg);

typedef struct evc_feed_opts {
	/* Called on the feeder's thread with an item that it could not push. */
	void (*dropped)(void *item, void *arg);
	evc_member_opts member; /* of each thread */
	uint64_t reserved_[8];
} evc_feed_opts;

/*
 * Feed a queue: n_threads threads, the feeders, call fn again and again and
 * push the item that fn has set, whatever fn returns with it (NULL: no item
 * this time).  A clean code of the coordinator ends the feeder; when all
 * feeders have ended so, the last one closes the queue.  Any other code is an
 * error: it cancels the queue and stops the coordinator.  Each error is kept
 * (evc_reason_get), and only once when fn has reported it by evc_fail.  When
 * another thread cancels or closes the queue the feeders end, and stop nothing.
 * At a stop a feeder that is blocked in a push ends, and the item that it could
 * not push is given to dropped (unless that is NULL).
 *
 * Thread:    any; fn on the feeders, threads named NAME/0, NAME/1 ...
 * Ownership: arg must live until the feeders have ended; name (NULL: the
 *            queue's) and opts are copied.
 * Returns:   0; -EVC_CANCELLED after the stop or cancel, -EVC_OUT_OF_RANGE when
 *            the queue is closed; -EVC_INVALID_ARGUMENT (0 threads or more than
 *            65536, no fn, wrong opts), -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_FAILED_PRECONDITION.  After a refusal fn is not called.
 * Since:     0.1
 */
EVC_API evc_status
evc_queue_feed(evc_queue *queue, const char *name, unsigned n_threads,
	       evc_feed_fn *fn, void *arg, const evc_feed_opts *opts);

EVC_END_DECLS_

#endif
