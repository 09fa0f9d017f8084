/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_escalation_set.
 * Called by: the program.
 * Locks: the coordinator's; c->wake.escalation is atomic.
 */
#include "core/core.h"
#include "wake/ending.h"

static evc_status
check_escalation(const evc_coord *c, const evc_escalation_opts *o)
{
	const double time[] = { o->budget, o->step, o->hard_end };
	unsigned i;

	if (evc__check_reserved(o->reserved_, "evc_escalation_set") < 0)
		return -EVC_INVALID_ARGUMENT;
	if (!(o->hooks >= 0 && o->hooks <= 1 && o->kicks >= 0 && o->kicks <= 1))
		return evc__refuse(
			-EVC_INVALID_ARGUMENT,
			"evc_escalation_set: a fraction is not in 0..1");
	for (i = 0; i < 3; i++)
		if (!(time[i] >= 0))
			return evc__refuse(
				-EVC_INVALID_ARGUMENT,
				"evc_escalation_set: budget, step or "
				"hard_end is not a time");
	if (o->at_end > EVC_AT_END_ABORT)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_escalation_set: unknown at_end %u",
				   o->at_end);
	if (o->at_end != 0 && c->parent != NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_escalation_set: at_end, and %s is a "
				   "scope",
				   c->name);
	if (o->hard_end > 0 && o->hard_end < o->budget)
		return evc__refuse(
			-EVC_INVALID_ARGUMENT,
			"evc_escalation_set: the hard end comes before "
			"the budget is over");
	return 0;
}

/* Lock held: l becomes the escalation of c, or is freed. */
static evc_status
set_escalation(evc_coord *c, struct evc__escalation *l)
{
	if (evc_should_stop(c)) {
		sync_free(l);
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_escalation_set: a stop was requested");
	}
	if (!evc__ending_need(c, l->o.at_end != 0)) {
		sync_free(l);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_escalation_set: no memory or no helper "
				   "thread");
	}
	/* Joins and the helper read the escalation without the lock, so the old
	   escalation stays as long as c. */
	l->before = sync_load(&c->wake.escalation);
	sync_store(&c->wake.escalation, l);
	evc__ring(c);
	return 0;
}

evc_status
evc_escalation_set(evc_coord *c, const evc_escalation_opts *opts)
{
	static const evc_escalation_opts none;
	evc_status st = evc__check(c, __func__);
	struct evc__escalation *l;

	opts = opts != NULL ? opts : &none;
	if (st == 0)
		st = check_escalation(c, opts);
	if (st < 0)
		return evc__refuse_setup(c, __func__, st);
	l = sync_alloc(1, sizeof *l);
	if (l == NULL)
		return evc__refuse_setup(
			c, __func__,
			evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				    "evc_escalation_set: no memory"));
	l->o = *opts;
	sync_lock(&c->lock);
	st = set_escalation(c, l);
	sync_unlock(&c->lock);
	return evc__refuse_setup(c, __func__, st);
}
