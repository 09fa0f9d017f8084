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

#include "base/deadline.h"

#define PASSED_BY 256

/* ---- lines ---- */

static void
line_init(struct closure_line *line)
{
	int i;

	for (i = 0; i < PRIORITIES; i++)
		list_init(&line->at[i]);
	line->some = 0;
}

static unsigned
place_of(const struct closure *cl)
{
	/* The greatest priority comes first. */
	return (unsigned)(PRIORITIES / 2 - 1 - cl->priority);
}

static struct closure_line *
line_of(struct closures *q, const struct closure *cl)
{
	return cl->tag == TAG_ANY ? &q->common : q->own[cl->tag];
}

static void
line_put(struct closures *q, struct closure *cl, bool first)
{
	struct closure_line *line = line_of(q, cl);
	unsigned i = place_of(cl);

	/* Behind the list's head is in front of all. */
	list_append(first ? line->at[i].next : &line->at[i], &cl->link);
	line->some |= 1u << i;
	cl->where = CLOSURE_QUEUED;
	q->n_queued++;
}

static void
line_take_off(struct closures *q, struct closure *cl)
{
	struct closure_line *line = line_of(q, cl);
	unsigned i = place_of(cl);

	list_remove(&cl->link);
	if (list_empty(&line->at[i]))
		line->some &= ~(1u << i);
	q->n_queued--;
}

static struct closure *
line_first(const struct closure_line *line)
{
	const struct list *head;

	if (line->some == 0)
		return NULL;
	head = &line->at[__builtin_ctz(line->some)];
	return LIST_OF(head->next, struct closure, link);
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
	line_init(&q->common);
	list_init(&q->held);
	q->most = most;
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
	struct closure_line **own;

	if (n <= q->n_own)
		return true;
	own = sync_alloc(n, sizeof *own);
	if (own == NULL)
		return false;
	if (q->n_own > 0)
		memcpy(own, q->own, q->n_own * sizeof *own);
	sync_free(q->own);
	q->own = own;
	while (q->n_own < n) {
		own[q->n_own] = sync_alloc(1, sizeof **own);
		if (own[q->n_own] == NULL)
			return false;
		line_init(own[q->n_own++]);
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

/* ---- the error ---- */

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
	while ((cl = line_first(&q->common)) != NULL)
		cancel(q, cl);
	for (i = 0; i < q->n_own; i++)
		while ((cl = line_first(q->own[i])) != NULL)
			cancel(q, cl);
}

/* The first error closes the queue. */
void
evc__closures_note(struct closures *q, const evc_reason *r)
{
	if (q->n_errors < ERRORS_KEPT)
		q->errors[q->n_errors++] = *r;
	if (q->failed)
		return;
	q->failed = true;
	if (q->cancel_upto < q->last_n)
		q->cancel_upto = q->last_n;
}

/* Nothing runs: the error goes to the caller, and the queue is open again. */
static evc_status
raise_error(struct closures *q)
{
	evc_reason *errors = q->raised;

	q->raised = q->errors;
	q->n_raised = q->n_errors;
	q->errors = errors;
	q->n_errors = 0;
	q->failed = false;
	evc__closures_ring(q);
	return q->raised[0].code;
}

static bool
may_raise(const struct closures *q)
{
	return q->failed && q->n_taken == 0 && q->n_unsettled == 0;
}

/* ---- in ---- */

evc_status
evc__closures_may_put(struct closures *q, unsigned n)
{
	if (may_raise(q))
		return raise_error(q);
	if (q->failed)
		return EVC_PENDING;
	return q->n_held + q->n_queued + n > q->most ? EVC_PENDING : 0;
}

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
	return tag < q->n_own ? line_first(q->own[tag]) : NULL;
}

/* The first closure for the worker, of the first PASSED_BY. */
static struct closure *
first_that_fits(const struct closures *q, const struct closure_line *line,
		uint32_t tag)
{
	unsigned some = line->some, passed = 0, i;
	const struct list *n;

	if (q->fits == NULL)
		return line_first(line);
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
	struct closure *any = first_that_fits(q, &q->common, tag);
	struct closure *own =
		tag < q->n_own ? first_that_fits(q, q->own[tag], tag) : NULL;

	if (own == NULL || (any != NULL && any->priority > own->priority))
		return any;
	return own;
}

unsigned
evc__closures_take(struct closures *q, uint32_t tag, struct closure **ret,
		   unsigned most)
{
	struct closure *cl;
	unsigned n;

	for (n = 0; n < most; n++) {
		cl = first_for(q, tag);
		if (cl == NULL)
			break;
		line_take_off(q, cl);
		cl->where = CLOSURE_TAKEN;
		cl->n = ++q->last_n;
		q->n_taken++;
		ret[n] = cl;
	}
	if (n > 0)
		ring_roomy(q);
	return n;
}

bool
evc__closures_has(const struct closures *q, uint32_t tag)
{
	return q->common.some != 0 || evc__closures_own(q, tag) != NULL;
}

void
evc__closures_out(struct closures *q, struct closure *cl)
{
	if (cl->where == CLOSURE_HELD) {
		list_remove(&cl->link);
		q->n_held--;
	} else {
		line_take_off(q, cl);
	}
	cl->where = CLOSURE_OUT;
	one_less_waiting(q);
}

void
evc__closures_back(struct closures *q, struct closure *cl, bool held)
{
	if (q->failed || q->stopped) {
		cl->where = CLOSURE_OUT;
		q->cancelled(q, cl);
	} else if (held) {
		evc__closures_put(q, cl, true);
	} else {
		line_put(q, cl, true);
	}
	/* Last, so that the queue is never empty in between. */
	one_less_taken(q);
}

void
evc__closures_finish(struct closures *q, struct closure *cl)
{
	cl->where = CLOSURE_OUT;
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

/* ---- the end ---- */

evc_status
evc__closures_done(struct closures *q)
{
	if (may_raise(q))
		return raise_error(q);
	return q->failed || !closures_is_idle(q) ? EVC_PENDING : 0;
}
