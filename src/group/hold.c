/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who holds a group, and who frees it.
 *
 * Walks, starts and stops work on groups that they hold; they take no lock while
 * they call functions of the user's, and one of those may free a group.  Then it
 * leaves the registry at once, and its memory goes when the last one lets go of
 * it.
 */
#include "group/group.h"

#include "base/text.h"

/* How long a free waits for others to let go.  One inside a walk does not wait
   at all: it may be its own, and two that free what the other one walks through
   would wait for each other. */
#define FREE_WAIT 1.0

/* How many walks of registries the calling thread is in. */
static __thread unsigned walks;

void
evc__walks_forget(void)
{
	walks = 0;
}

void
evc__walk(int d)
{
	walks += (unsigned)d;
}

evc_status
evc__groups_hold(evc_registry *reg, const char *name, struct evc__held *ret,
		 const char *func)
{
	struct list *l, *tmp;
	unsigned n = 0;

	memset(ret, 0, sizeof *ret);
	ret->reg = reg;
	ret->group = ret->few;
	if (!evc__registry_used(reg))
		return 0;
	sync_lock(&reg->lock);
	LIST_EACH(l, tmp, &reg->groups)
		n++;
	if (n > EVC__HELD_FEW)
		ret->group = sync_alloc(n, sizeof *ret->group);
	if (ret->group == NULL) {
		sync_unlock(&reg->lock);
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				  func);
	}
	LIST_EACH(l, tmp, &reg->groups) {
		evc_workers *g = GROUP_OF(l);

		if (name != NULL && strcmp(name, g->name) != 0)
			continue;
		g->users++;
		reg->n_held++;
		ret->group[ret->n++].g = g;
	}
	sync_unlock(&reg->lock);
	return 0;
}

void
evc__group_hold(evc_workers *g, struct evc__held *ret)
{
	sync_lock(&g->reg->lock);
	g->users++;
	g->reg->n_held++;
	sync_unlock(&g->reg->lock);
	memset(ret, 0, sizeof *ret);
	ret->reg = g->reg;
	ret->group = ret->few;
	ret->few[0].g = g;
	ret->n = 1;
}

/* Back into the list it has left: its scope cannot be freed. */
static void
put_back(evc_workers *g)
{
	sync_lock(&g->reg->lock);
	sync_lock(&g->lock);
	g->doomed = false;
	sync_unlock(&g->lock);
	list_append(&g->reg->groups, &g->node);
	sync_unlock(&g->reg->lock);
}

/* Registry's lock held. */
static void
let_go(evc_registry *reg)
{
	reg->n_held--;
	sync_add(&reg->changed, 1);
}

void
evc__group_unhold(struct evc__held *h, unsigned i)
{
	evc_registry *reg = h->reg;
	evc_workers *g = h->group[i].g;
	bool last;

	if (g == NULL)
		return;
	h->group[i].g = NULL;
	sync_lock(&reg->lock);
	last = --g->users == 0 && g->doomed;
	if (!last)
		let_go(reg);
	sync_unlock(&reg->lock);
	if (last) {
		if (evc__group_destroy(g) < 0)
			put_back(g);
		/* Only now is the registry not needed any more. */
		sync_lock(&reg->lock);
		let_go(reg);
		sync_unlock(&reg->lock);
	}
	sync_futex_wake(&reg->changed);
}

void
evc__groups_release(struct evc__held *h)
{
	unsigned i;

	for (i = 0; i < h->n; i++)
		evc__group_unhold(h, i);
	if (h->group != h->few)
		sync_free(h->group);
	h->n = 0;
}

bool
evc__group_doomed(evc_workers *g)
{
	bool doomed;

	sync_lock(&g->reg->lock);
	doomed = g->doomed;
	sync_unlock(&g->reg->lock);
	return doomed;
}

evc_status
evc__group_may_go(evc_workers *g, const char *func)
{
	uint64_t until = evc__until(evc__registry_grace(g->reg));
	char names[160];
	struct text t = evc__text_in(names, sizeof names);
	bool live;

	sync_lock(&g->lock);
	live = g->n_live > 0;
	(void)evc__group_names(g, &t, EVC__EVERYBODY);
	sync_unlock(&g->lock);
	if (live)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "%s: workers of %s live: %s", func, g->name,
				  names);
	/* Somebody may just be cleaning up. */
	if (evc__group_settle(g, until))
		return 0;
	return evc_refuse(-EVC_FAILED_PRECONDITION, "%s: %s runs, or is being "
						    "started or stopped",
			  func, g->name);
}

/* Lock of the registry held: nobody starts it from now on, unless it runs. */
static bool
doom(evc_workers *g)
{
	sync_lock(&g->lock);
	g->doomed = evc__group_rests(g);
	sync_unlock(&g->lock);
	return g->doomed;
}

/* Registry's lock held, given up meanwhile: wait until nobody holds what that
   counts, which changes under it. */
static bool
nobody_holds(evc_registry *reg, const unsigned *count)
{
	uint64_t until = evc__until(FREE_WAIT);

	while (*count > 0 && walks == 0 &&
	       evc__await_change(&reg->lock, &reg->changed, until))
		continue;
	return *count == 0;
}

evc_status
evc__registry_may_go(evc_registry *reg, const char *func)
{
	bool free_now;

	sync_lock(&reg->lock);
	free_now = nobody_holds(reg, &reg->n_held);
	sync_unlock(&reg->lock);
	return free_now ? 0 :
			  evc_refuse(-EVC_FAILED_PRECONDITION,
				     "%s: a walk goes through it", func);
}

/* Off the list.  *ret_free: nobody holds it; else the last one who does frees
   it. */
static evc_status
take_out(evc_workers *g, bool *ret_free, const char *func)
{
	evc_registry *reg = g->reg;
	bool doomed;

	sync_lock(&reg->lock);
	*ret_free = nobody_holds(reg, &g->users);
	doomed = doom(g);
	if (doomed)
		list_remove(&g->node);
	sync_unlock(&reg->lock);
	return doomed ? 0 :
			evc_refuse(-EVC_FAILED_PRECONDITION,
				   "%s: %s was started meanwhile", func,
				   g->name);
}

evc_status
evc_workers_free(evc_workers *group)
{
	evc_status st;
	bool free_now = false;

	if (group == NULL)
		return 0;
	st = evc__group_check(group, __func__);
	if (st == 0)
		st = evc__not_inside(__func__);
	if (st == 0)
		st = evc__group_may_go(group, __func__);
	if (st == 0)
		st = take_out(group, &free_now, __func__);
	if (st < 0 || !free_now)
		return st;
	st = evc__group_destroy(group);
	if (st < 0)
		put_back(group);
	return st;
}
