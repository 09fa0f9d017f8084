/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A join in progress: its begin, its looks, its end.  A look reaps ended
 * members, counts the living, and decides.  A driver repeats the look after
 * each ring, until the join has its answer, the verdict.  A join that finds no
 * living member closes the round and answers all joins in progress.  At the end
 * of its grace a join answers only itself, and so does the join of a member.
 *
 * Called by: the drivers block.c, loop.c, step.c, scope_join_run.c.
 * Locks: the coordinator's, given up while threads are reaped.  Atomics: the
 * word (CLOSING, JOINED), n_driving, alive.
 */
#include "core/core.h"
#include "core/join/scope_join.h"
#include "core/join/join.h"
#include "core/join/watch.h"
#include "core/status/trace.h"

#include <math.h>

#include "base/probe.h"
#include "base/self.h"
#include "base/text.h"

#define ALL_JOIN_FLAGS \
	(EVC_JOIN_STOP_FIRST | EVC_JOIN_IGNORE_LIVE | EVC_JOIN_STRICT | \
	 EVC_JOIN_UNTIL_STOP)

evc_status
evc__join_check(evc_coord *c, const evc_join_opts *o, const char *func)
{
	if (o == NULL)
		return 0;
	if (evc__check_reserved(o->reserved_, func) < 0 ||
	    evc__check_grace(o->grace, func) < 0)
		return -EVC_INVALID_ARGUMENT;
	if (o->flags & ~(unsigned)ALL_JOIN_FLAGS)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: unknown flags %#x", func,
				   o->flags & ~(unsigned)ALL_JOIN_FLAGS);
	if (o->n_threads > 0 && o->threads == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: n_threads without threads", func);
	if (o->reactor != NULL && o->reactor->c != c)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: another coordinator's reactor", func);
	if ((o->flags & EVC_JOIN_STRICT) && !evc_should_stop(c) &&
	    !(o->flags & EVC_JOIN_STOP_FIRST))
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "%s: no stop was requested", func);
	return 0;
}

void
evc__join_begin(struct evc__join *j, evc_coord *c, const evc_join_opts *o)
{
	struct evc__request q = { .text = "a join that stops first",
				  .func = "EVC_JOIN_STOP_FIRST" };
	void (*begins)(evc_coord *c);
	uint64_t w;

	j->c = c;
	if (o != NULL)
		j->opts = *o;
	j->until_stop |= (j->opts.flags & EVC_JOIN_UNTIL_STOP) != 0;
	j->tid = evc__tid();
	j->start_ns = evc__now(c);
	list_init(&j->here);
	sync_lock(&c->lock);
	j->self = j->internal ? NULL : evc__member_self_below(c);
	j->self_here = j->self != NULL && j->self->c == c;
	if (j->self_here)
		j->self->n_joining++;
	list_append(&c->join.all, &j->node);
	/* n_driving is raised before this join asks for a stop or looks at the
	   word: a later request then leaves the phases above 0 to this join. */
	if (!j->internal) {
		sync_add(&c->stop.n_driving, 1);
		evc__trace(c, TRACE_JOIN, (uint64_t)j->tid, TRACE_JOINER,
			   "join", 0);
		PROBE3(join_begin, &c->name[0], j, j->opts.flags);
	}
	/* In a closed round an error goes back to its caller and stops nothing.
	   During evc_run an error must ask for the stop: open the round
	   again. */
	w = sync_load_sc(&c->word);
	while (j->until_stop && (w & WORD_JOINED) && !(w & WORD_FLAG))
		if (sync_cas(&c->word, &w, w & ~WORD_JOINED))
			break;
	if ((w & WORD_FLAG) && !j->internal && c->join.broken_ns != 0 &&
	    c->join.broken == WORD_STOP_NUMBER(w))
		j->start_ns = c->join.broken_ns;
	/* Joins of scopes below end when this join ends: wake them for the new
	   time limit. */
	if ((w & WORD_FLAG) && !list_empty(&c->scopes))
		evc__ring_below(c);
	sync_unlock(&c->lock);
	/* Loaded after n_driving was raised: see evc__signal_keep. */
	begins = sync_load_sc(&c->life.join_begins);
	if (begins != NULL && !j->internal)
		begins(c);
	if (j->opts.flags & EVC_JOIN_STOP_FIRST)
		evc__request(c, &q);
}

void
evc__join_end(struct evc__join *j)
{
	evc_coord *c = j->c;

	if (list_empty(&j->node))
		return;
	list_remove(&j->node);
	if (j->self_here)
		j->self->n_joining--;
	if (j->internal)
		return;
	/* n_driving is lowered before evc__phases_tell_all looks at the flag; a
	   request sets the flag before the request looks at n_driving.  So this
	   thread or the request tells the other phases. */
	sync_sub(&c->stop.n_driving, 1);
	evc__phases_tell_all(c);
}

evc_status
evc__join_result(const struct evc__join *j, evc_verdict *ret_verdict)
{
	evc__log_errors(j->c);
	if (!j->internal) {
		evc__log_late(j->c, &j->verdict,
			      j->opts.flags & EVC_JOIN_IGNORE_LIVE);
		/* The lines are out when the join returns, unless the hook
		   hangs; so is the report, which with at_end goes to standard
		   error when there is no hook. */
		if ((j->c->log.fn != NULL ||
		     evc__escalation(j->c)->at_end != 0) &&
		    j->verdict.n_stragglers > 0 && j->stop_number != 0)
			evc__await_report(j->c, j->stop_number, LOG_FLUSH_NS);
		else if (j->c->log.fn != NULL)
			evc__log_settle(j->c, LOG_FLUSH_NS);
	}
	evc__stop_returned(j->c, j->stop_number);
	if (ret_verdict != NULL)
		*ret_verdict = j->verdict;
	return j->result;
}

/* ---- lock held ---- */

/* Give j its verdict. */
static void
answer_join(struct evc__join *j, const evc_verdict *v)
{
	evc_coord *c = j->c;
	uint64_t w;

	j->verdict = *v;
	j->result = v->code;
	j->answered = true;
	if (j->internal)
		return;
	PROBE4(join_answer, &c->name[0], j, v->code, v->n_stragglers);
	evc__trace(c, TRACE_VERDICT, (uint64_t)j->tid, (unsigned)v->code,
		   "join", v->n_stragglers);
	w = sync_load(&c->word);
	sync_store(&c->join.returned, WORD_STOPS(w) + 1);
	if (c->parent != NULL || !(w & WORD_FLAG))
		return;
	j->stop_number = WORD_STOP_NUMBER(w);
	c->join.decided = j->stop_number;
	c->join.decided_ns = evc__now(c);
	if (j->opts.flags & EVC_JOIN_IGNORE_LIVE)
		sync_store_sc(&c->tree->reported, WORD_STOP_NUMBER(w));
}

/* Does an evc_run still wait for a stop of the round of w?  Then the round
   stays open. */
static bool
held_open(evc_coord *c, uint64_t w)
{
	struct list *n, *tmp;

	if (w & WORD_FLAG)
		return false;
	LIST_EACH(n, tmp, &c->join.all)
		if (LIST_OF(n, struct evc__join, node)->until_stop &&
		    !LIST_OF(n, struct evc__join, node)->internal)
			return true;
	return false;
}

/* Does j answer only itself, and leave the round open?  A scope join does.  Any
   join does so when its count leaves out a member (the calling thread, or a
   hook that runs on the calling thread), and while an evc_run waits for a
   stop. */
static bool
answers_alone(struct evc__join *j, uint64_t w)
{
	return j->self != NULL || j->internal || held_open(j->c, w) ||
	       evc__count_alive(j->c, NULL, (w & WORD_FLAG) != 0, 0).alive > 0;
}

/*
 * Close the round, unless a member or a request has come in since the count was
 * 0.  Set CLOSING, load the count again, then change the word by a second CAS.
 * A new member raises the count first and removes CLOSING afterwards; an error
 * or a request changes the word.  In each case the second CAS fails.
 */
static bool
close_round(struct evc__join *j, uint64_t w)
{
	evc_coord *c = j->c;
	struct list *n, *tmp;
	uint64_t closed;

	if (!sync_cas(&c->word, &w, w | WORD_CLOSING))
		return false;
	w |= WORD_CLOSING;
	if (sync_load_sc(&c->stop.alive) != 0) {
		sync_and(&c->word, ~WORD_CLOSING);
		return false;
	}
	closed = (w & ~WORD_CLOSING) | WORD_JOINED;
	if (!sync_cas(&c->word, &w, closed))
		return false;
	if (closed & WORD_FLAG)
		evc__dormant_drop(c);
	evc__verdict_fill(j, closed, &c->join.verdict, 0);
	if ((closed & WORD_FLAG) && c->wake.step_ns[STEP_ABANDONED] == 0)
		evc__took(c, c->join.verdict.took);
	LIST_EACH(n, tmp, &c->join.all) {
		struct evc__join *other = LIST_OF(n, struct evc__join, node);

		if (!other->answered && !other->internal)
			answer_join(other, &c->join.verdict);
	}
	evc__ring(c);
	return true;
}

/* Collect the input of evc__decide. */
static struct evc__view
view_of(struct evc__join *j, uint64_t w)
{
	evc_coord *c = j->c;
	uint64_t stop = evc__stop_time(c, w);
	uint64_t start = evc__join_start_ns(j, w);
	struct evc__alive_count k = evc__count_alive(
		c, j->self, (w & (WORD_FLAG | WORD_DRAIN)) != 0,
		evc__hooks_not_of(j));
	struct evc__view v = {
		.now = evc__now(c),
		.start = start,
		.cap = j->cap_ns != SYNC_FOREVER ? j->cap_ns : 0,
		.drain = w & WORD_DRAIN ? sync_load(&c->join.drain_end) : 0,
		.stop = stop,
		.grace = evc__grace(c, j->opts.grace, w),
		.longest = k.longest,
		.alive = k.alive,
		.foreground = k.foreground,
		.until_stop = j->until_stop,
	};
	bool asked = c->member.n_probed > 0 ||
		     sync_load(&c->member.n_probed_below) > 0;
	bool lingers = c->member.n_lingering > 0 ||
		       sync_load(&c->member.n_lingering_below) > 0;

	if (stop != 0) {
		v.grace_cut = evc__grace_cut_at(c, WORD_STOP_NUMBER(w));
		v.cut_grace = sync_load(&c->wake.cut_grace_ns);
		v.more = evc__more_time(c, stop);
		v.put_off = evc__put_off(c, v.grace_cut);
		v.probes = c->member.n_threads > 0 || c->member.n_runners > 0 ||
			   sync_load(&c->stop.n_live_scopes) > 0 ||
			   (!j->internal && sync_load(&c->tree->has_helper));
		v.rarely = !asked && !lingers;
	} else if (j->until_stop && v.drain == 0)
		/* Before a stop, evc_run does not probe members that cannot
		   ring.  But evc_run does probe threads that have rung and
		   could not be joined at once. */
		v.probes = lingers;
	else
		v.probes = asked;
	return v;
}

/* Ask for a stop: a drain is over, or only background members are left. */
static void
ask_for_stop(struct evc__join *j, const struct evc__view *v)
{
	struct evc__request q = { .kind = EVC_BY_EMPTY,
				  .text = "only background members are left" };

	if (v->drain != 0)
		evc__drain_ask(j->c);
	else
		evc__request(j->c, &q);
}

/* Count the stragglers, and the duration of the stop. */
static void
count_stragglers(struct evc__join *j, const evc_verdict *v)
{
	evc_coord *c = j->c;

	if (j->internal)
		return;
	PROBE3(straggler, &c->name[0], v->n_stragglers, &v->error.text[0]);
	c->wake.stats.stragglers += v->n_stragglers;
	if (v->stop.kind != 0 && evc__step_reached(c, STEP_ABANDONED))
		evc__took(c, v->took);
}

/* Look once at the members, and decide.  true: the caller looks again, because
   the state may have changed.  false: j waits for *ret_wait_ns. */
static bool
look_at_members(struct evc__join *j, bool *last_probe, uint64_t *ret_wait_ns)
{
	evc_coord *c = j->c;
	uint64_t w = sync_load_sc(&c->word), phase_ns = SYNC_FOREVER;
	struct evc__view v;
	struct evc__decision d;
	evc_verdict verdict;

	/* Before all scopes are told of the stop, the count lacks the work that
	   the stop gives to scopes.  Another thread may be in the middle of the
	   walk: this thread completes the walk. */
	if ((w & WORD_FLAG) &&
	    sync_load_sc(&c->stop.walked) != WORD_STOP_NUMBER(w))
		evc__tell_all(c);
	/* Phases come before the count: a scope that is told here may raise the
	   count. */
	if (!j->internal)
		phase_ns = evc__phases_drive(c);
	v = view_of(j, w);
	if (v.stop != 0 && !j->internal)
		evc__helper_relieve(c);
	if (v.stop != 0 && !j->stop_seen) {
		j->stop_seen = true;
		j->backoff.step = 0;
	}
	/* Without `ended` the scope join exists only for a drain.  The drain is
	   a stop now, so the scope join ends. */
	if (j->internal && v.stop != 0 && !evc__scope_join_tells(c)) {
		evc__verdict_fill(j, w, &verdict, 0);
		answer_join(j, &verdict);
		return true;
	}
	if (v.stop != 0 && evc__join_tell_in_time(j, &v, &phase_ns))
		return true;
	if (v.stop != 0)
		evc__join_ask_loops(j, &v, &phase_ns);
	d = evc__decide(&v, &j->backoff);
	if (phase_ns < d.wait_ns)
		d.wait_ns = phase_ns;
	*ret_wait_ns = evc__real_ns(c, d.wait_ns);
	/* The last look before such a decision probes all members, because a
	   member that cannot ring may have ended unnoticed. */
	if ((d.next == EVC__ASK || d.next == EVC__LATE) && !*last_probe) {
		*last_probe = true;
		evc__probe_all(c);
		return true;
	}
	switch (d.next) {
	case EVC__WAIT:
		j->looked_ns = v.now;
		return false;
	case EVC__PROBE:
		evc__probe_all(c);
		return true;
	case EVC__ASK:
		ask_for_stop(j, &v);
		return true;
	case EVC__EMPTY:
		/* What held a phase up has ended just now, and the phase may
		   have members or hooks. */
		if (evc__phases_wait(c)) {
			*ret_wait_ns = BACKOFF_FIRST_NS;
			return false;
		}
		if (!answers_alone(j, w)) {
			/* If the round is still open, a member came in just
			   now, or an ended member is still in the count. */
			*ret_wait_ns = BACKOFF_FIRST_NS;
			return close_round(j, w) ||
			       sync_load_sc(&c->word) != w;
		}
		/* A member may have come in since the first count. */
		if (view_of(j, w).alive > 0)
			return true;
		evc__verdict_fill(j, w, &verdict, 0);
		answer_join(j, &verdict);
		return true;
	case EVC__LATE:
		if (evc__join_put_off(j, &v))
			return true;
		if (evc__join_force(j, ret_wait_ns))
			return false;
		if (!j->internal)
			c->join.spent_ns = v.now;
		evc__verdict_fill(j, w, &verdict, v.alive);
		count_stragglers(j, &verdict);
		answer_join(j, &verdict);
		return true;
	}
	return false;
}

bool
evc__join_look(struct evc__join *j, uint64_t *ret_wait_ns)
{
	evc_coord *c = j->c;
	bool last_probe = false;
	uint64_t w;

	if (c->parent != NULL) {
		/* evc__budget_end takes locks of the coordinators above; a
		   thread with the lock of c must not do so. */
		sync_unlock(&c->lock);
		j->cap_ns = evc__budget_end(c);
		sync_lock(&c->lock);
	}
	for (;;) {
		if (j->answered)
			return true;
		if (evc__members_reap(c, j->reap_ns) ||
		    evc__children_attend(c, j->reap_ns))
			continue;
		w = sync_load_sc(&c->word);
		if ((w & WORD_JOINED) && (!j->until_stop || (w & WORD_FLAG)) &&
		    !j->internal) {
			/* Another join has closed the round. */
			if (w & WORD_FLAG)
				evc__dormant_drop(c);
			answer_join(j, &c->join.verdict);
		} else if (!look_at_members(j, &last_probe, ret_wait_ns))
			return false;
	}
}

bool
evc_joined(const evc_coord *c)
{
	return c != NULL && sync_load(&c->join.returned) ==
				    WORD_STOPS(sync_load(&c->word)) + 1;
}
