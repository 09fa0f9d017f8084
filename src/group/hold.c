/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds on groups, and the free of groups and registries.  Walks, starts and
 * stops hold their groups; they have no lock while they call the user's
 * functions, and such a function may free a group.  Then the group leaves the
 * registry at once, and the last holder frees the memory.
 * Called by: the program (evc_group_free, evc_registry_each,
 * evc_registry_free); start.c, stop_api.c and error.c.
 * Locks: the registry's, then the group's; registry.changed is atomic.
 */
#include "group/group.h"

#include "base/text.h"
#include "base/unwind.h"

/* How long a free waits for holders.  A free inside a walk does not wait at
   all: the holder may be this walk, and two walks that free each other's groups
   would wait for each other. */
#define FREE_WAIT 1.0

/* walks of registries on the calling thread */
static __thread unsigned walks;

void
evc__walks_forget(void)
{
	walks = 0;
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
		evc_group *g = GROUP_OF(l);

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
evc__group_hold(evc_group *g, struct evc__held *ret)
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

/* Free a group that has left the list; if the scope cannot be freed, the group
   goes back into the list. */
static evc_status
destroy_unlisted(evc_group *g)
{
	evc_registry *reg = g->reg;
	evc_status st = evc__group_destroy(g);

	if (st == 0)
		return 0;
	sync_lock(&reg->lock);
	sync_lock(&g->lock);
	g->doomed = false;
	sync_unlock(&g->lock);
	list_append(&reg->groups, &g->node);
	sync_unlock(&reg->lock);
	return st;
}

static void
unhold_group(struct evc__held *h, unsigned i)
{
	evc_registry *reg = h->reg;
	evc_group *g = h->group[i].g;

	if (g == NULL)
		return;
	h->group[i].g = NULL;
	sync_lock(&reg->lock);
	if (--g->users == 0 && g->doomed) {
		sync_unlock(&reg->lock);
		(void)destroy_unlisted(g);
		sync_lock(&reg->lock);
	}
	/* Only now is the registry not needed any more. */
	reg->n_held--;
	sync_add(&reg->changed, 1);
	sync_unlock(&reg->lock);
	sync_futex_wake(&reg->changed);
}

void
evc__groups_release(struct evc__held *h)
{
	unsigned i;

	for (i = 0; i < h->n; i++)
		unhold_group(h, i);
	if (h->group != h->few)
		sync_free(h->group);
	h->n = 0;
}

double
evc__held_left(const struct evc__held *h)
{
	double most = 0, left;
	unsigned i;

	for (i = 0; i < h->n; i++) {
		left = evc__group_left(h->group[i].g);
		most = left > most ? left : most;
	}
	return most;
}

static bool
is_doomed(evc_group *g)
{
	bool doomed;

	sync_lock(&g->reg->lock);
	doomed = g->doomed;
	sync_unlock(&g->reg->lock);
	return doomed;
}

static evc_status
group_may_go(evc_group *g, const char *func)
{
	uint64_t until = evc__registry_until(g->reg);
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
	/* Another thread may just clean up. */
	if (evc__group_settle(g, until))
		return 0;
	return evc_refuse(-EVC_FAILED_PRECONDITION, "%s: %s runs, or is being "
						    "started or stopped",
			  func, g->name);
}

/* Registry's lock held: from now on no thread starts the group, unless the
   group runs. */
static bool
doom_group(evc_group *g)
{
	sync_lock(&g->lock);
	g->doomed = evc__group_rests(g);
	sync_unlock(&g->lock);
	return g->doomed;
}

/* Registry's lock held, given up meanwhile: wait for *count to be 0; *count
   changes under the lock. */
static bool
nobody_holds(evc_registry *reg, const unsigned *count)
{
	uint64_t until = evc__deadline_in(FREE_WAIT);

	while (*count > 0 && walks == 0 &&
	       evc__await_change(&reg->lock, &reg->changed, until))
		continue;
	return *count == 0;
}

static evc_status
registry_may_go(evc_registry *reg, const char *func)
{
	bool free_now;

	sync_lock(&reg->lock);
	free_now = nobody_holds(reg, &reg->n_held);
	sync_unlock(&reg->lock);
	return free_now ? 0 :
			  evc_refuse(-EVC_FAILED_PRECONDITION,
				     "%s: a walk goes through it", func);
}

/* Takes the group off the list.  *ret_free: no holder, the caller frees; else
   the last holder frees. */
static evc_status
take_out(evc_group *g, bool *ret_free, const char *func)
{
	evc_registry *reg = g->reg;
	bool doomed;

	sync_lock(&reg->lock);
	*ret_free = nobody_holds(reg, &g->users);
	doomed = doom_group(g);
	if (doomed)
		list_remove(&g->node);
	sync_unlock(&reg->lock);
	return doomed ? 0 :
			evc_refuse(-EVC_FAILED_PRECONDITION,
				   "%s: %s was started meanwhile", func,
				   g->name);
}

evc_status
evc_group_free(evc_group *group)
{
	evc_status st;
	bool free_now = false;

	if (group == NULL)
		return 0;
	st = evc__group_check(group, __func__);
	if (st == 0)
		st = evc__not_inside(__func__);
	if (st == 0)
		st = group_may_go(group, __func__);
	if (st == 0)
		st = take_out(group, &free_now, __func__);
	return st < 0 || !free_now ? st : destroy_unlisted(group);
}

/* The end of main.  The group rests, so no thread uses its condition. */
static evc_status
may_free(evc_part *p)
{
	evc_group *g = LIST_OF(p, evc_group, part);
	evc_status st = evc__not_inside("evc_finish");

	if (st == 0)
		st = group_may_go(g, "evc_finish");
	if (st == 0)
		(void)evc__group_tails(g);
	sync_lock(&g->lock);
	p->n_conds = g->cond != NULL;
	sync_unlock(&g->lock);
	return st;
}

static evc_status
free_part(evc_part *p)
{
	return evc_group_free(LIST_OF(p, evc_group, part));
}

void
evc__group_part(evc_group *g)
{
	g->part.may_free = may_free;
	g->part.free_object = free_part;
	g->part.scope = g->scope;
	(void)evc_part_add(evc_scope_parent(g->scope), &g->part);
}

/* ---- registries ---- */

WALLED(bool, see, (evc_group_each_fn * fn, evc_group *g, void *arg), fn(g, arg))

evc_status
evc_registry_each(evc_registry *reg, evc_group_each_fn *fn, void *arg)
{
	evc_status st = evc__registry_check(&reg, __func__);
	struct evc__held h;
	bool more = true;
	unsigned i;

	if (st == 0 && fn == NULL)
		st = evc_refuse(-EVC_INVALID_ARGUMENT, "%s: no function",
				__func__);
	if (st == 0)
		st = evc__groups_hold(reg, NULL, &h, __func__);
	if (st < 0)
		return st;
	/* A group that was freed during the walk is still held, but not
	   shown. */
	walks++;
	for (i = 0; i < h.n && more; i++)
		if (!is_doomed(h.group[i].g))
			more = see(fn, h.group[i].g, arg);
	walks--;
	evc__groups_release(&h);
	return 0;
}

static evc_status
free_groups(evc_registry *reg, const char *func)
{
	struct evc__held h;
	evc_status st = evc__groups_hold(reg, NULL, &h, func);
	unsigned i, n;

	if (st < 0)
		return st;
	/* All or none: look at each group first. */
	for (i = 0; st == 0 && i < h.n; i++)
		st = group_may_go(h.group[i].g, func);
	n = h.n;
	for (i = 0; st == 0 && i < n; i++) {
		evc_group *g = h.group[i].g;

		unhold_group(&h, i);
		st = evc_group_free(g);
	}
	evc__groups_release(&h);
	return st;
}

evc_status
evc_registry_free(evc_registry *reg)
{
	evc_status st;

	if (reg == NULL)
		return 0;
	st = evc__registry_check(&reg, __func__);
	if (st == 0)
		st = evc__not_inside(__func__);
	if (st == 0 && reg == evc_registry_default())
		st = evc_refuse(-EVC_FAILED_PRECONDITION,
				"%s: it is the process's", __func__);
	if (st == 0)
		st = free_groups(reg, __func__);
	if (st == 0)
		st = registry_may_go(reg, __func__);
	if (st == 0)
		st = evc_free(reg->coord);
	if (st < 0)
		return st;
	evc__registry_drop(reg);
	return 0;
}
