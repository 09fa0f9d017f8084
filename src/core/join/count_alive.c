/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The members that keep a join waiting: how many, and how long they may take.
 * Loops write the numbers of tasks without the lock; after each change that can
 * change an answer the loop rings, and the join counts again.
 *
 * Called by: list.c, verdict.c, names.c.
 * Locks: the coordinator's is held, the scopes' are taken below.
 */
#include <math.h>
#include <stdlib.h>

#include "core/core.h"
#include "core/join/scope_join.h"
#include "core/loop/post.h"
#include "core/join/join.h"

bool
evc__keeps_waiting(const evc_coord *c, const struct evc__member *m,
		   const struct evc__member *self)
{
	struct list *n, *tmp;

	if (self == NULL || m == self)
		return self == NULL;
	if (m->c == c)
		return m->n_joining == 0;
	LIST_EACH(n, tmp, &c->join.all)
	if (LIST_OF(n, struct evc__join, node)->self == m)
		return false;
	return true;
}

bool
evc__hook_keeps_waiting(const evc_coord *c, const struct evc__hook *h,
			int not_of)
{
	if (not_of != 0 && h->running == abs(not_of))
		return false;
	if (not_of > 0 && (h->reactor != NULL ? h->reactor->tid == not_of
					      : evc__helper_is_self(c)))
		return false;
	return evc__hook_pending(h, sync_load(&c->word));
}

/* Add members to the count.  grace: seconds after which these members are late;
   0: the grace of the join. */
static void
add_to(struct evc__alive_count *count, unsigned many, bool background,
       double grace)
{
	double g = grace == 0 ? INFINITY : grace;

	if (many == 0)
		return;
	count->alive += many;
	count->foreground += background ? 0 : many;
	count->longest = g > count->longest ? g : count->longest;
}

static void
count_looper(const struct evc__looper_view *v, void *arg)
{
	if (v->alive)
		add_to(arg, 1, v->e->flags & EVC_BACKGROUND, v->grace);
}

static void
count_reactor(struct evc__alive_count *count, const evc_reactor *r)
{
	add_to(count, sync_load(&r->n_tasks), false, 0);
	add_to(count, sync_load_sc(&r->inbox->n), false, 0);
	if (r->n_loopers_own_grace > 0) {
		r->looper_ops->each(r, count_looper, count);
		return;
	}
	add_to(count, r->n_loopers_background, true, 0);
	add_to(count, r->n_loopers - r->n_loopers_background, false, 0);
}

static void
count_hooks(struct evc__alive_count *count, const struct evc__look *l,
	    const evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.hooks)
	if (evc__hook_keeps_waiting(c, HOOK_OF(n), l->not_of))
		add_to(count, 1, false, HOOK_OF(n)->m.grace);
}

/* Count the members of c itself, without the scopes below. */
static void
count_own(struct evc__alive_count *count, const struct evc__look *l,
	  const evc_coord *c)
{
	struct list *n, *tmp;

	if (l->self == NULL && c->member.n_own_grace == 0) {
		add_to(count, c->member.n_background, true, 0);
		add_to(count, c->member.n - c->member.n_background, false, 0);
	} else
		LIST_EACH(n, tmp, &c->member.all)
		{
			const struct evc__member *m =
				LIST_OF(n, struct evc__member, node);

			if (evc__keeps_waiting(l->top, m, l->self))
				add_to(count, 1, m->e.flags & EVC_BACKGROUND,
				       m->grace);
		}
	add_to(count, c->life.held, false, 0);
	add_to(count, c->wake.n_echoes, false, 0);
	add_to(count, c->member.n_awaited, false, 0);
	LIST_EACH(n, tmp, &c->loop.reactors)
	count_reactor(count, LIST_OF(n, evc_reactor, node));
	if (l->hooks)
		count_hooks(count, l, c);
}

bool
evc__nothing_to_call(evc_coord *s)
{
	return sync_load_sc(&s->loop.n_hooks) == 0 &&
	       sync_load_sc(&s->loop.n_hooks_below) == 0 &&
	       sync_load(&s->join.scope_join) == NULL;
}

/* Lock of c held: count the members of the scopes below c.  until_foreground:
   the first member in the foreground ends the count.  true: ended early. */
static bool
count_below(struct evc__alive_count *count, const struct evc__look *l, evc_coord *c,
	    bool until_foreground)
{
	struct list *n, *tmp;
	bool enough = false;

	LIST_EACH(n, tmp, &c->scopes)
	{
		evc_coord *s = SCOPE_OF(n);

		if (sync_load_sc(&s->stop.alive) == 0 &&
		    (!l->hooks || evc__nothing_to_call(s)))
			continue;
		sync_lock(&s->lock);
		count_own(count, l, s);
		if (l->hooks && evc__scope_join_due(s, abs(l->not_of)))
			add_to(count, 1, false, 0);
		enough = (until_foreground && count->foreground > 0) ||
			 count_below(count, l, s, until_foreground);
		sync_unlock(&s->lock);
		if (enough)
			break;
	}
	return enough;
}

struct evc__alive_count
evc__count_alive(evc_coord *c, const struct evc__member *self, bool hooks,
		 int hooks_not_of)
{
	struct evc__look l = { c, self, hooks, hooks_not_of, false };
	struct evc__alive_count count = { 0, 0, 0 }, below = { 0, 0, 0 };
	unsigned n_live;

	/* A loop stores its number of tasks before the loop changes `alive`, so
	   after this load the number is up to date. */
	(void)sync_load_sc(&c->stop.alive);
	count_own(&count, &l, c);
	if (list_empty(&c->scopes))
		return count;
	/* c counts each scope with a living member as 1.  The scopes are walked
	   only when the answer needs more: the longest grace, members to leave
	   out, due hooks, or, when c has no other member in the foreground,
	   whether a member below is in the foreground. */
	if (self != NULL || sync_load_sc(&c->tree->own_grace) ||
	    (hooks && sync_load_sc(&c->loop.n_hooks_below) > 0)) {
		count_below(&count, &l, c, false);
		return count;
	}
	n_live = sync_load_sc(&c->stop.n_live_scopes);
	add_to(&count, n_live, true, 0);
	if (count.foreground == 0 && n_live > 0) {
		count_below(&below, &l, c, true);
		/* When no member is found, the last member is leaving just now,
		   and will ring. */
		count.foreground = below.alive > 0 ? below.foreground : 1;
	}
	return count;
}
