/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The errors of the closure queue: the first error closes the queue; when nothing
 * runs any more, a caller gets the errors, and the queue is open again.
 * Called by: all files of core and calls that schedule, settle or join.
 * Locks: closures.lock, held.
 */
#include "cluster/core/closures.h"

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

evc_status
evc__closures_may_put(struct closures *q, unsigned n)
{
	if (may_raise(q))
		return raise_error(q);
	if (q->failed)
		return EVC_PENDING;
	return q->n_held + q->n_queued + n > q->most ? EVC_PENDING : 0;
}

evc_status
evc__closures_done(struct closures *q)
{
	if (may_raise(q))
		return raise_error(q);
	return q->failed || !closures_is_idle(q) ? EVC_PENDING : 0;
}
