/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_escalation_set, and the line in the log that names the members alive
 * shortly before the end of a stop.  A job of the coordinator that has the
 * escalation writes the line, also for the scopes below that have no escalation
 * of their own.
 * Called by: the program; the helper thread, for the job.
 * Locks: the coordinator's; c->wake.escalation is atomic.
 */
#include "core/core.h"
#include "core/helper/job.h"
#include "core/join/join.h"
#include "core/life/scope.h"

#include "base/text.h"

/* The job looks at the end again so often: a second signal, more time or
   progress may have moved the end. */
#define LOOK_NS (100 * UINT64_C(1000000))

struct ending {
	struct evc__helper_job job; /* first: write_when_due() gets it */
	uint32_t written; /* helper only: number of the latest stop that
				    has its line */
};

/* Add the name of a living member to the line, but not of a hook, nor of a
   scope: the members of a scope have a line of their own. */
static bool
add_member_name(const evc_member_info *m, void *names)
{
	if (m->state == EVC_LIVE && m->kind != EVC_HOOK &&
	    m->kind != EVC_SCOPE) {
		evc__text_add(names, ", ");
		evc__text_add(names, m->name);
	}
	return true;
}

/* No lock, inside the refgate of c: write the line for the stop of c with this
   number. */
static void
write_names(evc_coord *c, uint32_t stop)
{
	char buf[162];
	struct text names = evc__text_in(buf, sizeof buf);
	unsigned n, i;
	uint64_t w;
	bool now;
	evc_coord **s;

	evc_member_each(c, add_member_name, &names);
	sync_lock(&c->lock);
	w = sync_load_sc(&c->word);
	now = names.len > 0 && (w & WORD_FLAG) && WORD_STOP_NUMBER(w) == stop &&
	      evc__step_reached(c, STEP_ENDING);
	sync_unlock(&c->lock);
	if (now)
		evc__log_ending(c, buf + strlen(", "));
	s = evc__scopes_keep(c, &n);
	for (i = 0; s != NULL && i < n; i++)
		if (sync_load(&s[i]->wake.escalation) == NULL &&
		    sync_load_sc(&s[i]->stop.alive) > 0)
			write_names(s[i],
				    WORD_STOP_NUMBER(sync_load(&s[i]->word)));
	evc__scopes_give_back(s, n);
}

static uint64_t
write_when_due(evc_coord *c, struct evc__helper_job *k)
{
	struct ending *e = (struct ending *)k;
	uint64_t cap = evc__budget_end(c), w, stop, end, due, now;

	sync_lock(&c->lock);
	w = sync_load_sc(&c->word);
	stop = evc__stop_time(c, w);
	end = evc__own_end(c);
	end = cap < end ? cap : end;
	due = evc__step_due(c, STEP_ENDING, stop, end);
	now = evc__now(c);
	sync_unlock(&c->lock);
	if (stop == 0 || (w & WORD_JOINED) || e->written == WORD_STOP_NUMBER(w))
		return SYNC_FOREVER;
	if (now < due)
		return evc__real_ns(c,
				    due - now < LOOK_NS ? due - now : LOOK_NS);
	e->written = WORD_STOP_NUMBER(w);
	write_names(c, e->written);
	return SYNC_FOREVER;
}

/* ---- the setting ---- */

static evc_status
check_escalation(const evc_escalation_opts *o)
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
	struct ending *e;

	if (evc_should_stop(c)) {
		sync_free(l);
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_escalation_set: a stop was requested");
	}
	if (c->wake.ending == NULL) {
		e = sync_alloc(1, sizeof *e);
		if (e != NULL) {
			e->job.run = write_when_due;
			list_init(&e->job.node);
		}
		if (e == NULL || !evc__helper_job_add(c, &e->job)) {
			sync_free(e);
			sync_free(l);
			return evc__refuse(
				-EVC_RESOURCE_EXHAUSTED,
				"evc_escalation_set: no memory or no "
				"helper thread");
		}
		c->wake.ending = &e->job;
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
		st = check_escalation(opts);
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
