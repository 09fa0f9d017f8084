/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The closure queue.  Two words change with what threads wait for: `quiet` when
 * a wait may have its answer, `roomy` when a put may.  A sleeper has counted
 * itself under the lock, so the thread that changes the queue knows whether to
 * wake.
 * Called by: all files of core that queue, take, settle or join.
 * Locks: closures.lock, held; quiet and roomy are atomic.
 */
#include "cluster/core/closures.h"

#include "base/array.h"
#include "base/deadline.h"

#define PASSED_BY 256

/* ---- lines ---- */

static struct closure_line *
line_of(struct closures *q, const struct closure *cl)
{
	return cl->tag == TAG_ANY ? &q->common : q->own[cl->tag];
}

static void
line_put(struct closures *q, struct closure *cl, bool first)
{
	closure_line_put(line_of(q, cl), cl, first);
	cl->where = CLOSURE_QUEUED;
	q->n_queued++;
	q->n_tagged += cl->tag != TAG_ANY;
}

static void
line_take_off(struct closures *q, struct closure *cl)
{
	closure_line_remove(line_of(q, cl), cl);
	q->n_queued--;
	q->n_tagged -= cl->tag != TAG_ANY;
}

static void
alone_take_off(struct closures *q, struct closure *cl)
{
	list_remove(&cl->link);
	q->n_queued--;
	q->alone_news = true;
}

/* ---- life ---- */

bool
evc__closures_init(struct closures *q, uint64_t most,
		   void (*cancelled)(struct closures *, struct closure *))
{
	memset(q, 0, sizeof *q);
	q->errors = sync_alloc(ERRORS_KEPT, sizeof *q->errors);
	q->raised = sync_alloc(ERRORS_KEPT, sizeof *q->raised);
	if (q->errors == NULL || q->raised == NULL) {
		sync_free(q->errors);
		sync_free(q->raised);
		return false;
	}
	sync_lock_init(&q->lock);
	closure_line_init(&q->common);
	list_init(&q->held);
	list_init(&q->alone);
	q->most = most;
	q->leaving = UINT64_MAX;
	q->cancelled = cancelled;
	return true;
}

void
evc__closures_destroy(struct closures *q)
{
	unsigned i;

	for (i = 0; i < q->n_own; i++)
		sync_free(q->own[i]);
	sync_free(q->own);
	sync_free(q->errors);
	sync_free(q->raised);
	sync_lock_destroy(&q->lock);
}

bool
evc__closures_tags(struct closures *q, unsigned n)
{
	struct closure_line *line;

	if (n <= q->n_own)
		return true;
	if (!ARRAY_RESERVE(q->own, q->n_own, q->own_room, n - q->n_own))
		return false;
	while (q->n_own < n) {
		line = sync_alloc(1, sizeof *line);
		if (line == NULL)
			return false;
		closure_line_init(line);
		q->own[q->n_own++] = line;
	}
	return true;
}

/* ---- waits ---- */

static void
ring_quiet(struct closures *q)
{
	if (q->n_quiet == 0)
		return;
	sync_add(&q->quiet, 1);
	sync_futex_wake(&q->quiet);
}

static void
ring_roomy(struct closures *q)
{
	if (q->n_roomy == 0)
		return;
	sync_add(&q->roomy, 1);
	sync_futex_wake(&q->roomy);
}

void
evc__closures_ring(struct closures *q)
{
	ring_quiet(q);
	ring_roomy(q);
}

static bool
await(struct closures *q, _Atomic uint32_t *word, unsigned *sleepers,
      uint64_t until)
{
	bool came;

	++*sleepers;
	came = evc__await_change(&q->lock, word, until);
	--*sleepers;
	return came;
}

bool
evc__closures_await_room(struct closures *q, uint64_t until)
{
	return await(q, &q->roomy, &q->n_roomy, until);
}

bool
evc__closures_await_quiet(struct closures *q, uint64_t until)
{
	return await(q, &q->quiet, &q->n_quiet, until);
}

/* One closure less is taken. */
static void
one_less_taken(struct closures *q)
{
	q->n_taken--;
	if (q->n_taken == 0 && !list_empty(&q->alone))
		q->alone_news = true;
	if (q->n_taken == 0 && (q->failed || q->n_held + q->n_queued == 0))
		evc__closures_ring(q);
}

/* One closure less is held or queued. */
static void
one_less_waiting(struct closures *q)
{
	ring_roomy(q);
	if (closures_is_idle(q))
		ring_quiet(q);
}

/* ---- all ---- */

static void
cancel(struct closures *q, struct closure *cl)
{
	evc__closures_out(q, cl);
	q->cancelled(q, cl);
}

/* A call of cancelled() may cancel others, so each look is new. */
static void
cancel_all(struct closures *q)
{
	struct closure *cl;
	unsigned i;

	while (!list_empty(&q->held))
		cancel(q, LIST_OF(q->held.next, struct closure, link));
	while (!list_empty(&q->alone))
		cancel(q, LIST_OF(q->alone.next, struct closure, link));
	while ((cl = closure_line_first(&q->common)) != NULL)
		cancel(q, cl);
	for (i = 0; i < q->n_own && q->n_tagged > 0; i++)
		while ((cl = closure_line_first(q->own[i])) != NULL)
			cancel(q, cl);
}

/* ---- in ---- */

void
evc__closures_put(struct closures *q, struct closure *cl, bool held)
{
	if (held) {
		list_append(&q->held, &cl->link);
		cl->where = CLOSURE_HELD;
		q->n_held++;
	} else {
		line_put(q, cl, false);
	}
}

void
evc__closures_release(struct closures *q, struct closure *cl)
{
	list_remove(&cl->link);
	q->n_held--;
	line_put(q, cl, false);
}

/* ---- out ---- */

struct closure *
evc__closures_own(const struct closures *q, uint32_t tag)
{
	return tag < q->n_own ? closure_line_first(q->own[tag]) : NULL;
}

/* The first closure for the worker, of the first PASSED_BY. */
static struct closure *
first_that_fits(const struct closures *q, const struct closure_line *line,
		uint32_t tag)
{
	unsigned some = line->some, passed = 0, i;
	const struct list *n;

	if (q->fits == NULL)
		return closure_line_first(line);
	for (; some != 0; some &= some - 1) {
		i = (unsigned)__builtin_ctz(some);
		for (n = line->at[i].next; n != &line->at[i]; n = n->next) {
			struct closure *cl = LIST_OF(n, struct closure, link);

			if (q->fits(q, cl, tag))
				return cl;
			if (++passed == PASSED_BY)
				return NULL;
		}
	}
	return NULL;
}

/* The greatest priority; of one priority those with this tag first. */
static struct closure *
first_for(const struct closures *q, uint32_t tag)
{
	struct closure *any = tag < q->leaving ?
				      first_that_fits(q, &q->common, tag) :
				      NULL;
	struct closure *own =
		tag < q->n_own ? first_that_fits(q, q->own[tag], tag) : NULL;

	if (own == NULL || (any != NULL && any->priority > own->priority))
		return any;
	return own;
}

/* The next closure to run alone, if this worker may take the closure. */
static struct closure *
first_alone(const struct closures *q, uint32_t tag)
{
	const struct list *n;

	if (q->alone_taken != NULL || (q->n_taken > 0 && !q->impatient))
		return NULL;
	for (n = q->alone.next; n != &q->alone; n = n->next) {
		struct closure *cl = LIST_OF(n, struct closure, link);

		if ((cl->tag == tag ||
		     (cl->tag == TAG_ANY && tag < q->leaving)) &&
		    (q->fits == NULL || q->fits(q, cl, tag)))
			return cl;
	}
	return NULL;
}

static void
take(struct closures *q, struct closure *cl)
{
	cl->where = CLOSURE_TAKEN;
	q->alone_beside |= q->alone_taken != NULL;
	cl->n = ++q->last_n;
	q->n_taken++;
}

unsigned
evc__closures_take(struct closures *q, uint32_t tag, struct closure **ret,
		   unsigned most)
{
	struct closure *cl;
	unsigned n = 0;

	cl = first_alone(q, tag);
	if (cl != NULL) {
		alone_take_off(q, cl);
		q->alone_beside = q->n_taken > 0;
		take(q, cl);
		q->alone_taken = cl;
		ret[n++] = cl;
	} else if (!closures_hold_back(q)) {
		for (; n < most && (cl = first_for(q, tag)) != NULL; n++) {
			line_take_off(q, cl);
			take(q, cl);
			ret[n] = cl;
		}
	}
	if (n > 0)
		ring_roomy(q);
	return n;
}

bool
evc__closures_has(const struct closures *q, uint32_t tag)
{
	return (q->common.some != 0 && tag < q->leaving) ||
	       !list_empty(&q->alone) ||
	       evc__closures_own(q, tag) != NULL;
}

void
evc__closures_out(struct closures *q, struct closure *cl)
{
	if (cl->where == CLOSURE_HELD) {
		list_remove(&cl->link);
		q->n_held--;
	} else if (cl->where == CLOSURE_ALONE) {
		alone_take_off(q, cl);
	} else {
		line_take_off(q, cl);
	}
	cl->where = CLOSURE_OUT;
	one_less_waiting(q);
}

/* This closure is taken no more; afterwards it may be gone. */
static void
ends(struct closures *q, struct closure *cl)
{
	if (q->alone_taken == cl) {
		q->alone_taken = NULL;
		q->alone_news = true;
	}
	cl->where = CLOSURE_OUT;
}

static void
alone_put(struct closures *q, struct closure *cl)
{
	list_append(&q->alone, &cl->link);
	cl->where = CLOSURE_ALONE;
	q->n_queued++;
	q->alone_news = true;
}

void
evc__closures_back(struct closures *q, struct closure *cl, int where)
{
	ends(q, cl);
	if (q->failed || q->stopped)
		q->cancelled(q, cl);
	else if (where == CLOSURE_HELD)
		evc__closures_put(q, cl, true);
	else if (where == CLOSURE_ALONE)
		alone_put(q, cl);
	else
		line_put(q, cl, true);
	/* Last, so that the queue is never empty in between. */
	one_less_taken(q);
}

void
evc__closures_mix(struct closures *q)
{
	struct closure *cl;

	while (!list_empty(&q->alone)) {
		cl = LIST_OF(q->alone.prev, struct closure, link);
		alone_take_off(q, cl);
		line_put(q, cl, true);
	}
}

void
evc__closures_finish(struct closures *q, struct closure *cl)
{
	ends(q, cl);
	if (q->failed)
		cancel_all(q);
	one_less_taken(q);
}

void
evc__closures_cancel(struct closures *q)
{
	cancel_all(q);
	if (q->n_taken == 0)
		evc__closures_ring(q);
}

void
evc__closures_stop(struct closures *q)
{
	q->stopped = true;
	q->cancel_upto = UINT64_MAX;
	cancel_all(q);
	evc__closures_ring(q);
}
