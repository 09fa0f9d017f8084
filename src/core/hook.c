/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stop hooks: functions that are called once for each stop.
 *
 * Each hook remembers the number of the last stop it was called for; it is due
 * while that differs from the number of stops there have been.  So a stop that
 * came before the hook was added is not missed, nor one that was cleared before
 * the loop turned.
 */
#include "core/join.h"

#include "base/self.h"

bool
evc__hook_pending(const struct evc__hook *h, uint64_t w)
{
	return h->running != 0 ||
	       (!h->removed && h->told != WORD_STOP_NUMBER(w));
}

/* Lock held. */
static struct evc__hook *
next_due(evc_coord *c, const evc_reactor *r)
{
	uint32_t stop = WORD_STOP_NUMBER(sync_load(&c->word));
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->hooks) {
		struct evc__hook *h = HOOK_OF(n);

		if (h->reactor == r && h->running == 0 && !h->removed &&
		    h->told != stop)
			return h;
	}
	return NULL;
}

bool
evc__hooks_due(evc_coord *c, const evc_reactor *r)
{
	struct list *n, *tmp;
	uint64_t w = sync_load(&c->word);

	LIST_EACH(n, tmp, &c->hooks) {
		struct evc__hook *h = HOOK_OF(n);

		if (h->reactor == r && evc__hook_pending(h, w))
			return true;
	}
	return false;
}

/* Lock held.  One that runs stays until it has returned: joins wait for it. */
static void
forget(struct evc__hook *h)
{
	evc_coord *c = h->m.c;

	h->removed = true;
	if (h->running != 0)
		return;
	sync_sub(&c->n_hooks, 1);
	evc__member_unlink(&h->m);
	sync_free(h);
	evc__ring(c);
}

void
evc__hooks_run(evc_coord *c, evc_reactor *r)
{
	struct evc__self *self = evc__self();
	struct evc__hook *h;
	evc_status st;
	uint64_t w;

	if (sync_load_sc(&c->n_hooks) == 0)
		return;
	sync_lock(&c->lock);
	while ((h = next_due(c, r)) != NULL) {
		h->told = (h->told + 1) & WORD_STOPS_MASK;
		h->running = evc__tid();
		sync_unlock(&c->lock);
		self->reported_to = NULL;
		st = h->fn(c, h->arg);
		w = sync_load(&c->word);
		/* A stop that was cleared is over: what its hook says must not
		   stop the new round. */
		if ((w & WORD_FLAG) && WORD_STOP_NUMBER(w) == h->told)
			evc__member_result(c, h->m.id, h->m.name, 0, st,
					   false);
		else
			evc__log_hook(c, h->m.name, st);
		sync_lock(&c->lock);
		h->running = 0;
		/* Joins wait for it, and so may who removes it. */
		if (h->removed)
			forget(h);
		else
			evc__ring(c);
	}
	sync_unlock(&c->lock);
}

void
evc__hooks_drop(evc_coord *c, const evc_reactor *r)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->hooks) {
		struct evc__hook *h = HOOK_OF(n);

		if (h->reactor == r)
			forget(h);
	}
}

/* Lock held. */
static evc_status
place(evc_coord *c, struct evc__hook *h)
{
	evc_status st = h->reactor != NULL ?
				evc__reactor_usable(h->reactor, "evc_on_stop") :
				0;

	if (st < 0)
		return st;
	/* The helper is made now, not at the stop: then there may be no
	   memory for it. */
	if (h->reactor == NULL && !evc__helper_need(c, false))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_on_stop: no helper thread");
	h->told = WORD_STOPS(sync_load(&c->word));
	st = evc__member_add(c, &h->m);
	if (st < 0)
		return st;
	/* Count, then look: a stop from here on tells the loop or the helper;
	   one before is seen here. */
	sync_add(&c->n_hooks, 1);
	if (sync_load_sc(&c->word) & WORD_FLAG) {
		if (h->reactor != NULL)
			evc__reactor_poke(h->reactor);
		else
			evc__helper_ring(c);
		evc__reopen(c);
		evc__ring(c);
	}
	return 0;
}

static evc_status
on_stop(evc_coord *c, const char *name, evc_fn *fn, void *arg,
	const evc_member_opts *o, evc_id *ret_id)
{
	struct evc__hook *h;
	evc_status st;
	evc_id id;

	if (fn == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_on_stop: no function");
	st = evc__check_name(name, "evc_on_stop");
	if (st == 0)
		st = evc__check_opts(o, "evc_on_stop");
	if (st < 0)
		return st;
	if (o != NULL && o->reactor != NULL && o->reactor->c != c)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_on_stop: another coordinator's "
				   "reactor");
	h = (struct evc__hook *)evc__member_new(
		c, sizeof *h, EVC_HOOK, name != NULL ? name : "stop hook", o);
	if (h == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_on_stop: no memory");
	h->fn = fn;
	h->arg = arg;
	h->reactor = o != NULL && o->reactor != NULL ? o->reactor : c->home;
	h->m.flags |= EVC_BACKGROUND;
	sync_lock(&c->lock);
	st = place(c, h);
	id = h->m.id;
	if (st == 0 && ret_id != NULL)
		*ret_id = id;
	sync_unlock(&c->lock);
	if (st < 0)
		sync_free(h);
	return st;
}

evc_status
evc_on_stop(evc_coord *c, const char *name, evc_fn *fn, void *arg,
	    const evc_member_opts *opts, evc_id *ret_id)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = on_stop(c, name, fn, arg, opts, ret_id);
	return evc__refuse_setup(c, __func__, st);
}

/* Lock held.  0: done; 1: it runs on another thread; < 0: refused. */
static evc_status
try_remove(evc_coord *c, evc_id id)
{
	struct evc__member *m = evc__member_find(c, id);
	struct evc__hook *h;

	h = m != NULL && m->kind == EVC_HOOK ? LIST_OF(m, struct evc__hook, m) :
					       NULL;
	if (m == NULL || (h != NULL && h->removed))
		return evc__refuse(-EVC_NOT_FOUND,
				   "evc_member_remove: no member %llu",
				   (unsigned long long)id);
	if (h == NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_member_remove: %s is not removed, it "
				   "ends",
				   m->name);
	if (h->running != 0 && h->running != evc__tid())
		return 1;
	forget(h);
	return 0;
}

evc_status
evc_member_remove(evc_coord *c, evc_id id)
{
	evc_status st = evc__check(c, __func__);
	uint32_t seq;

	if (st < 0)
		return st;
	if (!evc__gate_enter(&c->gate))
		return evc__refuse(-EVC_NOT_FOUND, "evc_member_remove: freed");
	sync_add(&c->n_sleepers, 1);
	sync_lock(&c->lock);
	for (;;) {
		seq = sync_load_sc(&c->join_seq);
		st = try_remove(c, id);
		if (st <= 0)
			break;
		/* Its return rings. */
		sync_unlock(&c->lock);
		sync_futex_wait(&c->join_seq, seq, SYNC_FOREVER);
		sync_lock(&c->lock);
	}
	sync_unlock(&c->lock);
	sync_sub(&c->n_sleepers, 1);
	evc__gate_leave(&c->gate);
	return st;
}
