/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stop hooks: functions that are called once for each stop.  Each hook keeps
 * the number of the last stop that called the hook; the hook is due while this
 * number differs from the number of stops so far.  So a stop before the hook
 * was added is not missed, nor a stop that was cleared before the loop turned.
 *
 * Called by: evc_on_stop; turns of loops and the helper run hooks; joins ask
 * for due hooks.
 * Locks: the coordinator's, given up while a hook runs; `running` marks the
 * hook meanwhile.
 */
#include "core/core.h"
#include "core/status/trace.h"

#include "base/probe.h"
#include "base/self.h"
#include "base/unwind.h"

/* The value of `told` after a call of h for the present stop.  For a hook with
   EVC_ON_DRAIN, a drain counts as the stop that the drain becomes. */
static uint32_t
stop_number(const struct evc__hook *h, uint64_t w)
{
	if ((h->m.e.flags & EVC_ON_DRAIN) && (w & WORD_DRAIN))
		w |= WORD_FLAG;
	return WORD_STOP_NUMBER(w);
}

bool
evc__hook_pending(const struct evc__hook *h, uint64_t w)
{
	return h->running != 0 || (!h->removed && h->told != stop_number(h, w));
}

bool
evc__hook_called(const struct evc__hook *h, uint64_t w)
{
	bool asked = (w & WORD_FLAG) || ((h->m.e.flags & EVC_ON_DRAIN) &&
					 (w & WORD_DRAIN));

	return asked && !evc__hook_pending(h, w);
}

/* Lock held: does a hook of r (NULL: of the helper) run now?  The hooks of the
   helper run one after the other, also when a thread of the helper hangs in a
   hook and another thread leads. */
static bool
hook_runs(const evc_coord *c, const evc_reactor *r)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.hooks)
		if (HOOK_OF(n)->reactor == r && HOOK_OF(n)->running != 0)
			return true;
	return false;
}

/* Lock held: the first hook from *at on that is due on r, or NULL.  *at moves
   to this hook. */
static struct evc__hook *
next_due(evc_coord *c, const evc_reactor *r, uint64_t w, struct list **at)
{
	for (; *at != &c->loop.hooks; *at = (*at)->next) {
		struct evc__hook *h = HOOK_OF(*at);

		if (h->reactor == r && h->running == 0 && !h->removed &&
		    h->told != stop_number(h, w))
			return h;
	}
	return NULL;
}

void
evc__drained_hooks_forget(evc_coord *c, uint32_t stops)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.hooks) {
		struct evc__hook *h = HOOK_OF(n);

		if (h->told == ((stops + 1) & WORD_STOPS_MASK))
			h->told = stops;
	}
}

bool
evc__hooks_due(evc_coord *c, const evc_reactor *r)
{
	struct list *n, *tmp;
	uint64_t w = sync_load(&c->word);

	LIST_EACH(n, tmp, &c->loop.hooks) {
		struct evc__hook *h = HOOK_OF(n);

		if (h->reactor == r && evc__hook_pending(h, w))
			return true;
	}
	return false;
}

void
evc__hooks_count_above(evc_coord *c, uint32_t change)
{
	while ((c = c->parent) != NULL)
		sync_add(&c->loop.n_hooks_below, change);
}

/* Lock held. */
static void
hooks_count(evc_coord *c, uint32_t change)
{
	sync_add(&c->loop.n_hooks, change);
	evc__hooks_count_above(c, change);
}

/* Lock held: free h.  A hook that runs is freed after its return, because joins
   wait for the return. */
static void
remove_hook(struct evc__hook *h)
{
	evc_coord *c = h->m.c;

	h->removed = true;
	if (h->running != 0)
		return;
	hooks_count(c, (uint32_t)-1);
	evc__member_unlink(&h->m);
	sync_free(h);
	evc__ring(c);
}

/* No lock, but h is marked as running: call h once. */
static void
call_hook(evc_coord *c, evc_reactor *r, struct evc__hook *h)
{
	struct evc__busy busy;
	evc_status st;
	uint64_t w;

	evc__reported_forget();
	/* The stop may have come after the begin of the turn. */
	if (r != NULL)
		evc__reactor_heard(r);
	evc__trace_member(TRACE_CALL, &h->m);
	PROBE4(told, &c->name[0], &h->m.name[0], EVC_HOOK, h->m.e.id);
	evc__busy_begin(r, c, BUSY_HOOK, h->m.name, &busy);
	st = evc__fn_shut(h->fn, c, h->arg);
	evc__busy_end(&busy);
	if (!evc__same_process(c))
		return;
	evc__trace_member(TRACE_RETURN, &h->m);
	w = sync_load(&c->word);
	/* If the stop was cleared while h ran, the result of h must not stop
	   the new round. */
	if ((w & (WORD_FLAG | WORD_DRAIN)) && stop_number(h, w) == h->told)
		evc__member_result(c, h->m.e.id, h->m.name, 0, st, false);
	else
		evc__log_hook(c, h->m.name, st);
}

void
evc__hooks_run(evc_coord *c, evc_reactor *r)
{
	struct list *at = &c->loop.hooks;
	uint64_t w, seen = 0;
	struct evc__hook *h;

	if (sync_load_sc(&c->loop.n_hooks) == 0)
		return;
	sync_lock(&c->lock);
	if (r == NULL && hook_runs(c, r)) {
		sync_unlock(&c->lock);
		return;
	}
	for (;;) {
		/* In the same stop, hooks before the last called hook are not
		   due again.  So the walk goes on at *at, and passes ten
		   thousand hooks only once. */
		w = sync_load(&c->word) & ~(WORD_CLOSING | WORD_JOINED);
		if (at == &c->loop.hooks || w != seen)
			at = c->loop.hooks.next;
		seen = w;
		h = next_due(c, r, w, &at);
		/* evc_free does not wait for a hook that has not begun. */
		if (h == NULL || c->life.dying)
			break;
		h->told = (h->told + 1) & WORD_STOPS_MASK;
		h->running = evc__tid();
		sync_unlock(&c->lock);
		call_hook(c, r, h);
		if (!evc__same_process(c))
			return; /* h has forked, this is the child */
		sync_lock(&c->lock);
		h->running = 0;
		/* Joins wait for the return of h, and so may a thread that
		   removes h. */
		if (h->removed) {
			at = at->next;
			remove_hook(h);
		} else
			evc__ring(c);
	}
	sync_unlock(&c->lock);
}

void
evc__hooks_drop(evc_coord *c, const evc_reactor *r)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.hooks) {
		struct evc__hook *h = HOOK_OF(n);

		if (h->reactor == r)
			remove_hook(h);
	}
}

/* Lock held. */
static int
hook_remove(struct evc__member *m)
{
	struct evc__hook *h = LIST_OF(m, struct evc__hook, m);

	if (h->removed)
		return evc__refuse_removal(m->e.id);
	/* The return of the hook rings. */
	if (h->running != 0 && h->running != evc__tid())
		return 1;
	remove_hook(h);
	return 0;
}

static const struct evc__member_ops hook_ops = { .remove = hook_remove };

/* Lock held. */
static evc_status
add_hook(evc_coord *c, struct evc__hook *h, const evc_member_opts *o)
{
	evc_status st = h->reactor != NULL ?
				evc__reactor_usable(h->reactor, "evc_on_stop") :
				0;

	if (st < 0)
		return st;
	/* The helper is made now and not at the stop, when there may be no
	   memory. */
	if (h->reactor == NULL && !evc__helper_need(c, false))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_on_stop: no helper thread");
	h->told = WORD_STOPS(sync_load(&c->word));
	st = evc__wakers_add(&h->m, o, h->arg, "evc_on_stop");
	if (st == 0)
		st = evc__member_add(c, &h->m);
	if (st < 0) {
		evc__wakers_drop(&h->m);
		return st;
	}
	/* The hook is counted before this look at the word: a later stop tells
	   the loop or the helper; this thread sees an earlier stop. */
	hooks_count(c, 1);
	if (sync_load_sc(&c->word) & (WORD_FLAG | WORD_DRAIN)) {
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
add_stop_hook(evc_coord *c, const char *name, evc_fn *fn, void *arg,
	      const evc_member_opts *o, evc_id *ret_id)
{
	struct evc__hook *h;
	evc_status st;
	evc_id id;

	if (fn == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_on_stop: no function");
	st = evc__check_opts(o, EVC_HOOK, "evc_on_stop");
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
	if (!evc__release_new(o, arg, &h->m.release)) {
		evc__member_discard(&h->m);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_on_stop: no memory");
	}
	h->m.ops = &hook_ops;
	h->fn = fn;
	h->arg = arg;
	h->reactor =
		o != NULL && o->reactor != NULL ? o->reactor : evc__home(c);
	h->m.e.flags |= EVC_BACKGROUND;
	sync_lock(&c->lock);
	st = add_hook(c, h, o);
	id = h->m.e.id;
	if (st == 0 && ret_id != NULL)
		*ret_id = id;
	sync_unlock(&c->lock);
	if (st < 0)
		evc__member_discard(&h->m);
	return st;
}

evc_status
evc_on_stop(evc_coord *c, const char *name, evc_fn *fn, void *arg,
	    const evc_member_opts *opts, evc_id *ret_id)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = add_stop_hook(c, name, fn, arg, opts, ret_id);
	return evc__refuse_member(c, __func__, opts, st);
}
