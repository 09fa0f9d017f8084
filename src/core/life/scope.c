/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a scope, a coordinator that is a member of another.  A scope
 * enters the register and the table of listeners of its parent; stop/scopes.c
 * has the way of stops, drains and errors between the two.
 *
 * Called by: evc_scope_new, evc_scope_ready, evc_scope_parent; coord.c frees
 * scopes.
 * Locks: the parent's, then the scope's.  Atomics: alive, the refgates.
 */
#include "base/reserved.h"
#include "core/core.h"
#include "core/join/join.h"
#include "core/life/part.h"
#include "core/life/scope.h"

#include "base/text.h"
#include "core/join/scope_join.h"
#include "core/status/trace.h"

/* ---- life ---- */

/* Enter the parent's register.  The scope counts as alive, because it is held.
   A stop or drain of the parent reaches the scope at once. */
static evc_status
enrol_scope(evc_coord *s)
{
	evc_coord *p = s->parent;
	uint64_t w;

	/* Before other threads find the scope. */
	s->life.held = true;
	sync_lock(&p->lock);
	if (!evc__listen(p, &s->stop.up)) {
		sync_unlock(&p->lock);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_scope_new: no memory");
	}
	list_append(&p->scopes, &s->sibling);
	p->join.n_phased += s->join.phase > 0;
	/* Joins above wait for `ended` of the scope as they wait for hooks. */
	if (evc__scope_join_tells(s))
		evc__hooks_count_above(s, 1);
	if (s->join.phase > 0)
		sync_store_sc(&s->tree->phased, true);
	evc__trace(s, TRACE_BEGIN, 0, EVC_SCOPE, s->name, p->number);
	evc__alive_add(s);
	/* The scope is in the table before this look at the word: the walk of a
	   later stop finds the scope. */
	w = sync_load_sc(&p->word);
	if (w & WORD_DRAIN)
		sync_or(&s->word, WORD_DRAIN);
	if (w & WORD_FLAG) {
		p->join.phases_done = 0;
		if (s->join.phase == 0 || !evc__driven(p))
			evc__scope_tell(s);
		else
			evc__phases_drive(p);
	}
	evc__ring(s);
	sync_unlock(&p->lock);
	return 0;
}

void
evc__scope_leave(evc_coord *s)
{
	evc_coord *p = s->parent;
	/* When s is off the list, only the refgate of p keeps p for this
	   thread.  That refgate is open as long as s is on the list. */
	bool kept = evc__refgate_enter(&p->life.gate);

	evc__trace(s, TRACE_END, 0, EVC_SCOPE, s->name, p->number);
	sync_lock(&p->lock);
	evc__unlisten(p, &s->stop.up);
	evc__part_drop(s->life.part);
	list_remove(&s->sibling);
	p->join.n_phased -= s->join.phase > 0;
	if (evc__scope_join_tells(s))
		evc__hooks_count_above(s, (uint32_t)-1);
	sync_unlock(&p->lock);
	/* A phase that has waited for s may have its turn. */
	evc__ring(p);
	if (kept)
		evc__refgate_leave(&p->life.gate);
}

static evc_status
check_scope_opts(const evc_coord *parent, const evc_scope_opts *o)
{
	const evc_coord *a;

	if (!RESERVED_IS_ZERO(o->reserved_))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_scope_new: reserved room is not zero");
	if (o->phase < 0)
		return evc__refuse(
			-EVC_INVALID_ARGUMENT,
			"evc_scope_new: phase %d is before the first",
			o->phase);
	if (o->on_error > EVC_ON_ERROR_IGNORE)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_scope_new: unknown on_error %u",
				   o->on_error);
	if (o->config.clock != NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_scope_new: the clock is the parent's");
	if (o->home != NULL && (o->config.flags & EVC_NO_HOME))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_scope_new: a home, and EVC_NO_HOME");
	for (a = parent; o->home != NULL && a != o->home->c; a = a->parent)
		if (a == NULL)
			return evc__refuse(-EVC_INVALID_ARGUMENT,
					   "evc_scope_new: the reactor is "
					   "neither the parent's nor of one "
					   "above");
	if (parent->depth + 1 > EVC__DEPTH_MOST)
		return evc__refuse(-EVC_OUT_OF_RANGE,
				   "evc_scope_new: more than %d deep",
				   EVC__DEPTH_MOST);
	return 0;
}

/* Give a new scope its home and its scope join for `ended`, and put the scope
   into the register of the parent. */
static evc_status
settle_in(evc_coord *s, const evc_scope_opts *o)
{
	evc_reactor *with = o->home != NULL ? o->home : evc__home(s->parent);
	evc_status st = 0;

	if (with != NULL && !(o->config.flags & EVC_NO_HOME))
		st = evc__reactor_share(s, with, &s->loop.home);
	if (st == 0 && o->ended != NULL)
		st = evc__scope_join_for(s, o->ended, o->arg);
	/* The helper writes lines although no loop of the scope turns. */
	sync_lock(&s->lock);
	if (st == 0 && s->log.fn != NULL && !evc__helper_need(s, false))
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "evc_scope_new: no memory or no thread for the "
				 "log hook");
	sync_unlock(&s->lock);
	if (st == 0)
		st = enrol_scope(s);
	return st;
}

evc_status
evc__scope_make(evc_coord *parent, const char *name, const evc_scope_opts *o,
		evc_coord **ret_scope)
{
	evc_status st = check_scope_opts(parent, o);
	evc_config k = o->config;
	evc_coord *s;

	if (name != NULL && name[0] != '\0')
		k.name = name;
	if (st == 0)
		st = evc__coord_make(&k, "evc_scope_new", parent, &s);
	if (st < 0)
		return st;
	if (o->no_log)
		s->log.fn = NULL;
	s->life.describe = o->describe;
	s->life.describe_arg = o->arg;
	s->life.describe_stacks = o->describe_stacks;
	s->join.phase = o->phase;
	s->join.no_join = o->no_join;
	s->stop.on_error = o->on_error;
	s->loop.no_home = (o->config.flags & EVC_NO_HOME) != 0;
	s->stop.up.scope = s;
	st = settle_in(s, o);
	if (st < 0) {
		/* The helper may be serving s: wait until the helper has
		   left. */
		evc__refgate_close(&s->life.gate);
		evc__scope_join_drop(s);
		evc__helper_end(s);
		if (evc__home(s) != NULL)
			evc__reactor_release(evc__home(s));
		evc__coord_destroy(s);
		return st;
	}
	*ret_scope = s;
	return 0;
}

evc_status
evc_scope_new(evc_coord *parent, const char *name, const evc_scope_opts *opts,
	      evc_coord **ret_scope)
{
	static const evc_scope_opts none;
	evc_status st = evc__check(parent, __func__);

	if (st < 0)
		return st;
	if (ret_scope == NULL)
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_scope_new: no place for the scope");
	else
		st = evc__scope_make(parent, name, opts != NULL ? opts : &none,
				     ret_scope);
	return evc__refuse_setup(parent, __func__, st);
}

/* Lock held: a stop of the set-up, such as that of a group that was not started
   yet, gets no line in the log. */
static void
skip_line(evc_coord *s)
{
	uint64_t w = sync_load(&s->word);

	if (!(w & WORD_FLAG))
		return;
	sync_store(&s->log.begun, WORD_STOP_NUMBER(w));
	sync_store(&s->log.over, WORD_STOP_NUMBER(w));
}

evc_status
evc_scope_ready(evc_coord *scope)
{
	evc_status st = evc__check(scope, __func__);

	if (st < 0)
		return st;
	if (!evc__refgate_enter(&scope->life.gate))
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_scope_ready: it is being freed");
	sync_lock(&scope->lock);
	if (!scope->life.held)
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_scope_ready: %s is %s", scope->name,
				 scope->parent != NULL ? "ready" : "no scope");
	else {
		scope->life.held = false;
		skip_line(scope);
		evc__alive_sub(scope);
		evc__ring(scope);
	}
	sync_unlock(&scope->lock);
	evc__refgate_leave(&scope->life.gate);
	return st;
}

evc_coord *
evc_scope_parent(const evc_coord *scope)
{
	return scope != NULL ? scope->parent : NULL;
}

evc_coord **
evc__scopes_keep(evc_coord *c, unsigned *ret_n)
{
	evc_coord **s = NULL;
	unsigned n = 0, i = 0;
	struct list *l, *tmp;

	sync_lock(&c->lock);
	LIST_EACH(l, tmp, &c->scopes)
		n++;
	if (n > 0)
		s = sync_alloc(n, sizeof *s);
	LIST_EACH(l, tmp, &c->scopes)
	if (s != NULL && evc__refgate_enter(&SCOPE_OF(l)->life.gate))
		s[i++] = SCOPE_OF(l);
	sync_unlock(&c->lock);
	*ret_n = s != NULL ? i : n;
	return s;
}

void
evc__scopes_give_back(evc_coord **s, unsigned n)
{
	while (s != NULL && n > 0)
		evc__refgate_leave(&s[--n]->life.gate);
	sync_free(s);
}
