/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_ladder_set, and the last chance: a helper job that logs and reports,
 * shortly before the end of a stop, the live members of a coordinator and of
 * its scopes without a ladder.
 * Called by: the program; the helper thread (run).
 * Locks: the coordinator's lock, not held around on_last_chance; c->ladder is
 * atomic.
 */
#include "core/core.h"
#include "core/helper/chore.h"
#include "core/join/join.h"
#include "core/life/scope.h"

#include "base/text.h"

/* A second signal, a veto or progress may move the end meanwhile. */
#define LOOK_NS (100 * UINT64_C(1000000))

struct last_chance {
	struct evc__chore chore; /* first: the argument of run() */
	uint32_t told;           /* helper only: number of the last stop */
};

/* ---- the report ---- */

struct telling {
	const evc_ladder_opts *o;
	evc_coord *c;
	unsigned n;
	struct text names;
	char buf[160];
};

/* Not hooks, and not scopes, which report their members. */
static bool
is_told_of(const evc_member_info *m)
{
	return m->state == EVC_LIVE && m->kind != EVC_HOOK &&
	       m->kind != EVC_SCOPE;
}

static bool
name(const evc_member_info *m, void *arg)
{
	struct telling *t = arg;

	if (!is_told_of(m))
		return true;
	evc__text_add(&t->names, t->n++ > 0 ? ", " : "");
	evc__text_add(&t->names, m->name);
	return true;
}

static bool
call(const evc_member_info *m, void *arg)
{
	struct telling *t = arg;

	/* The member may have ended during the calls for others. */
	if (is_told_of(m) &&
	    (m->id == 0 || evc_member_get(t->c, m->id, NULL) == 0))
		t->o->on_last_chance(t->c, m, t->o->arg);
	return true;
}

/* No lock, inside c's gate: report for c's stop with this number. */
static void
tell_all(evc_coord *c, const evc_ladder_opts *o, uint32_t stop)
{
	struct telling t = { .o = o, .c = c };
	unsigned n, i;
	uint64_t w;
	bool now;
	evc_coord **s;

	t.names = evc__text_in(t.buf, sizeof t.buf);
	evc_member_each(c, name, &t);
	sync_lock(&c->lock);
	w = sync_load_sc(&c->word);
	now = t.n > 0 && (w & WORD_FLAG) && WORD_STOP_NUMBER(w) == stop &&
	      evc__rung_reached(c, RUNG_LAST_CHANCE);
	sync_unlock(&c->lock);
	if (now)
		evc__log_rung(c, RUNG_LAST_CHANCE, t.buf);
	if (o->on_last_chance != NULL)
		evc_member_each(c, call, &t);
	s = evc__scopes_keep(c, &n);
	for (i = 0; s != NULL && i < n; i++)
		if (sync_load(&s[i]->wake.ladder) == NULL &&
		    sync_load_sc(&s[i]->stop.alive) > 0)
			tell_all(s[i], o,
				 WORD_STOP_NUMBER(sync_load(&s[i]->word)));
	evc__scopes_give_back(s, n);
}

static uint64_t
run(evc_coord *c, struct evc__chore *k)
{
	struct last_chance *l = (struct last_chance *)k;
	uint64_t cap = evc__budget_end(c), w, stop, end, due, now;

	sync_lock(&c->lock);
	w = sync_load_sc(&c->word);
	stop = evc__stop_time(c, w);
	end = evc__own_end(c);
	end = cap < end ? cap : end;
	due = evc__rung_due(c, RUNG_LAST_CHANCE, stop, end);
	now = evc__now(c);
	sync_unlock(&c->lock);
	if (stop == 0 || (w & WORD_JOINED) ||
	    l->told == WORD_STOP_NUMBER(w))
		return SYNC_FOREVER;
	if (now < due)
		return evc__real_ns(c, due - now < LOOK_NS ? due - now :
							     LOOK_NS);
	l->told = WORD_STOP_NUMBER(w);
	tell_all(c, evc__ladder(c), l->told);
	return SYNC_FOREVER;
}

/* ---- the setting ---- */

static evc_status
check(const evc_ladder_opts *o)
{
	const double part[] = { o->hooks, o->kicks, o->last_chance };
	const double time[] = { o->budget, o->step, o->hard_end };
	unsigned i;

	if (evc__check_room(o->reserved_, "evc_ladder_set") < 0)
		return -EVC_INVALID_ARGUMENT;
	for (i = 0; i < 3; i++) {
		if (!(part[i] >= 0 && part[i] <= 1))
			return evc__refuse(-EVC_INVALID_ARGUMENT,
					   "evc_ladder_set: a fraction is not "
					   "in 0..1");
		if (!(time[i] >= 0))
			return evc__refuse(-EVC_INVALID_ARGUMENT,
					   "evc_ladder_set: budget, step or "
					   "hard_end is not a time");
	}
	if (o->hard_end > 0 && o->hard_end < o->budget)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_ladder_set: the hard end comes before "
				   "the budget is over");
	return 0;
}

/* Lock held; l is used or freed. */
static evc_status
set(evc_coord *c, struct evc__ladder *l)
{
	struct last_chance *last;

	if (evc_should_stop(c)) {
		sync_free(l);
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_ladder_set: a stop was asked for");
	}
	if (c->wake.last_chance == NULL) {
		last = sync_alloc(1, sizeof *last);
		if (last != NULL) {
			last->chore.run = run;
			list_init(&last->chore.node);
		}
		if (last == NULL || !evc__chore_add(c, &last->chore)) {
			sync_free(last);
			sync_free(l);
			return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
					   "evc_ladder_set: no memory or no "
					   "helper thread");
		}
		c->wake.last_chance = &last->chore;
	}
	/* Joins and the helper read c->ladder without the lock, so the former
	   ladder stays as long as c. */
	l->before = sync_load(&c->wake.ladder);
	sync_store(&c->wake.ladder, l);
	evc__ring(c);
	return 0;
}

evc_status
evc_ladder_set(evc_coord *c, const evc_ladder_opts *opts)
{
	static const evc_ladder_opts none;
	evc_status st = evc__check(c, __func__);
	struct evc__ladder *l;

	opts = opts != NULL ? opts : &none;
	if (st == 0)
		st = check(opts);
	if (st < 0)
		return evc__refuse_setup(c, __func__, st);
	l = sync_alloc(1, sizeof *l);
	if (l == NULL)
		return evc__refuse_setup(
			c, __func__,
			evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				    "evc_ladder_set: no memory"));
	l->o = *opts;
	sync_lock(&c->lock);
	st = set(c, l);
	sync_unlock(&c->lock);
	return evc__refuse_setup(c, __func__, st);
}
