/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Feeders: threads that call a function again and again and push what the
 * function gives.  They are threads of the coordinator, so their results are
 * judged as every thread's.  The queue hears first: the last feeder that ends
 * well closes the queue, an error cancels the queue; otherwise a pop could take
 * a failed feeder's end for the end of input.  The error is reported before the
 * cancel, so the status that a pop returns then is not the first error.
 * Called by: the program (evc_queue_feed).
 * Locks: q->lock, taken; feed.state and feed.refs are atomic.
 */
#include <math.h>

#include "base/self.h"
#include "base/reserved.h"
#include "base/text.h"
#include "queue/queue_ring.h"

#define MOST_FEEDERS 65536u

enum { WAIT, GO, BACK };

struct feed;
struct feeder {
	struct feed *f;
	unsigned number;
};

struct feed {
	evc_queue *q;
	evc_feed_fn *fn;
	void *arg;
	void (*dropped)(void *item, void *arg);
	void (*unblock)(void *arg);
	/* atomic: evc_queue_feed -> feeders, which sleep on it */
	_Atomic uint32_t state;
	/* atomic: evc_queue_feed, feeders -> the last frees the feed */
	_Atomic uint32_t refs;
	struct feeder feeder[];
};

static void
drop_feed(struct feed *f, uint32_t n)
{
	if (sync_sub(&f->refs, n) == n)
		sync_free(f);
}

/* ---- how they end ---- */

/* n feeders less.  The lock covers the count and the close, so no reopen comes
   between them. */
static void
remove_feeders(evc_queue *q, unsigned n, bool at_end, bool cut)
{
	sync_lock(&q->lock);
	q->at_end |= at_end;
	q->cut_off |= cut;
	q->n_feeders -= n;
	if (q->n_feeders == 0 && q->at_end && !q->cut_off)
		evc__queue_close(q);
	sync_unlock(&q->lock);
}

static void
report_failure(evc_queue *q, evc_status st, const char *text)
{
	/* If the error was not yet reported, report it now: the thread's
	   result, the same error, then adds nothing. */
	if (!evc__just_reported(q->c, st))
		(void)(evc_request_stop)(q->c, st, text);
	(void)evc_queue_cancel(q);
}

static void
end_feeder(struct feed *f, evc_status st)
{
	evc_queue *q = f->q;
	bool obeys = st == EVC_CANCELLED && evc_should_stop(q->c);
	bool clean = st != 0 && !obeys && evc_is_clean(q->c, st);

	if (st != 0 && !clean && !obeys) {
		char text[64];
		struct text t = evc__text_in(text, sizeof text);

		evc__text_fmt(&t, "ended with %s", evc_status_name(st));
		if (st > EVC_UNAUTHENTICATED)
			evc__text_fmt(&t, " %d", st);
		report_failure(q, st, text);
	}
	remove_feeders(q, 1, clean, !clean);
	drop_feed(f, 1);
}

/* pthread_exit or a cancellation inside fn: an error. */
static void
cut_off(void *arg)
{
	struct feed *f = arg;

	sync_unwound();
	if (evc__queue_inherited(f->q))
		return;
	if (evc_should_stop(f->q->c))
		(void)evc_queue_cancel(f->q);
	else
		report_failure(f->q, EVC_ABORTED, "ended without a result");
	remove_feeders(f->q, 1, false, true);
	drop_feed(f, 1);
}

/* ---- what they do ---- */

static bool
is_over(evc_queue *q)
{
	return evc_should_stop(q->c) ||
	       (sync_load(&q->tail) & (RING_CLOSED | RING_CANCELLED));
}

/* The status of fn; 0: the input was cut off. */
static evc_status
feed_queue(const struct feeder *e)
{
	const struct feed *f = e->f;
	evc_status st = 0;
	void *item;

	while (st == 0 && !is_over(f->q)) {
		item = NULL;
		st = f->fn(f->q, e->number, &item, f->arg);
		if (evc__queue_inherited(f->q))
			return 0;
		if (item != NULL &&
		    evc_queue_push(f->q, item, INFINITY) < 0 &&
		    f->dropped != NULL)
			f->dropped(item, f->arg);
	}
	/* INT_MIN has no positive. */
	if (st < -255 || st > 255)
		return EVC_UNKNOWN;
	return st < 0 ? -st : st;
}

/* As evc_member_opts.unblock, with the caller's arg. */
static evc_status
feed_unblocked(evc_coord *c, const struct feeder *e)
{
	const struct feed *f = e->f;
	evc_status st = 0;
	evc_id id;

	if (f->unblock == NULL)
		return feed_queue(e);
	st = evc_cancel_push(c, f->unblock, f->arg, EVC_CANCEL_REPEAT, &id);
	if (st < 0)
		return -st;
	st = feed_queue(e);
	(void)evc_cancel_pop(c, id);
	return st;
}

static evc_status
run_feeder(evc_coord *c, void *arg)
{
	const struct feeder *e = arg;
	struct feed *f = e->f;
	evc_status st;

	while (sync_load(&f->state) == WAIT)
		sync_futex_wait(&f->state, WAIT, SYNC_FOREVER);
	if (sync_load(&f->state) == BACK) {
		drop_feed(f, 1);
		return 0;
	}
	pthread_cleanup_push(cut_off, f);
	st = feed_unblocked(c, e);
	pthread_cleanup_pop(0);
	if (!evc__queue_inherited(f->q))
		end_feeder(f, st);
	return st;
}

/* ---- how they begin ---- */

/* How many feeders were started; *ret: why no more. */
static unsigned
start_feeders(struct feed *f, const char *name, unsigned n,
	      const evc_member_opts *o, evc_status *ret)
{
	/* With room for the number. */
	char text[64], base[42];
	unsigned i;

	evc__copy_dots(base, sizeof base, name != NULL ? name : f->q->name);
	for (i = 0; i < n; i++) {
		struct text t = evc__text_in(text, sizeof text);

		f->feeder[i].f = f;
		f->feeder[i].number = i;
		evc__text_fmt(&t, "%s/%u", base, i);
		*ret = evc_thread_start(f->q->c, text, run_feeder,
					&f->feeder[i], o, NULL);
		if (*ret < 0)
			break;
	}
	return i;
}

/* The feeders to come count from now on. */
static evc_status
announce_feeders(evc_queue *q, unsigned n)
{
	evc_status st = 0;
	uint64_t tail;

	sync_lock(&q->lock);
	tail = sync_load(&q->tail);
	if (evc_should_stop(q->c) || (tail & RING_CANCELLED))
		st = -EVC_CANCELLED;
	else if (tail & RING_CLOSED)
		st = -EVC_OUT_OF_RANGE;
	else {
		if (q->n_feeders == 0)
			q->at_end = q->cut_off = false;
		q->n_feeders += n;
	}
	sync_unlock(&q->lock);
	return st < 0 ? evc__queue_refuse(q, st, "evc_queue_feed") : 0;
}

static evc_status
begin_feed(evc_queue *q, const char *name, unsigned n, evc_feed_fn *fn,
	   void *arg, const evc_feed_opts *opts)
{
	evc_member_opts o = { .flags = 0 };
	unsigned started = 0;
	struct feed *f;
	evc_status st;

	f = sync_alloc(1, sizeof *f + n * sizeof f->feeder[0]);
	if (f == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "evc_queue_feed: no memory");
	f->q = q;
	f->fn = fn;
	f->arg = arg;
	if (opts != NULL) {
		o = opts->member;
		f->dropped = opts->dropped;
		f->unblock = o.unblock;
		o.unblock = NULL;
	}
	sync_store_relaxed(&f->refs, n + 1);
	st = announce_feeders(q, n);
	if (st == 0) {
		/* All feeders, or none. */
		started = start_feeders(f, name, n, &o, &st);
		if (st < 0)
			remove_feeders(q, n, false, false);
		sync_store(&f->state, st < 0 ? BACK : GO);
		sync_futex_wake(&f->state);
	}
	drop_feed(f, n + 1 - started);
	return st;
}

evc_status
evc_queue_feed(evc_queue *queue, const char *name, unsigned n_threads,
	       evc_feed_fn *fn, void *arg, const evc_feed_opts *opts)
{
	evc_status st = evc__queue_check(queue, __func__);
	const char *why = NULL;

	if (st < 0)
		return st;
	if (n_threads == 0)
		why = "0 threads";
	else if (n_threads > MOST_FEEDERS)
		why = "too many threads";
	else if (fn == NULL)
		why = "no function";
	else if (opts != NULL && !RESERVED_IS_ZERO(opts->reserved_))
		why = "reserved room is not zero";
	st = why == NULL ? begin_feed(queue, name, n_threads, fn, arg, opts)
			 : evc_refuse(-EVC_INVALID_ARGUMENT,
				      "evc_queue_feed: queue %s: %s",
				      queue->name, why);
	return opts != NULL && (opts->member.flags & EVC_MAY_BE_REFUSED) ?
		       st :
		       evc_refuse_setup(queue->c, __func__, st);
}
