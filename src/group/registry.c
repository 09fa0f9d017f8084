/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registries: lists of groups, one for the process and others made by name.
 *
 * That of the process is a static object.  It belongs to the process that first
 * configures it or adds a group; in a fork child of that one every call is
 * refused before the lock is touched, which some thread may have held.
 */
#include "group/group.h"

#include "base/room.h"
#include "base/text.h"
#include "base/unwind.h"
#include "group/metrics.h"

#define GRACE_DEFAULT 5.0
#define CLEAN_MOST 256

static evc_registry the_process = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.groups = { &the_process.groups, &the_process.groups },
};

evc_registry *
evc_registry_default(void)
{
	return &the_process;
}

/* ---- whose it is ---- */

static unsigned
here(void)
{
	return sync_load(&evc__fork_generation) + 1;
}

bool
evc__registry_used(const evc_registry *reg)
{
	return sync_load(&reg->fork_generation) != 0;
}

static evc_status
refuse_child(const char *func)
{
	return evc_refuse(-EVC_FAILED_PRECONDITION,
			  "%s: the registry is another process's, a fork ago",
			  func);
}

evc_status
evc__registry_check(evc_registry **reg, const char *func)
{
	unsigned owner;

	if (*reg == NULL)
		*reg = &the_process;
	owner = sync_load(&(*reg)->fork_generation);
	return owner == 0 || owner == here() ? 0 : refuse_child(func);
}

/* In a fork child: the calling thread is no worker's, and in no function of a
   group. */
static void
inherited(void)
{
	evc__worker_set_self(NULL);
	evc__inside_forget();
	evc__walks_forget();
	(void)evc__tally_enter(NULL);
}

evc_status
evc__registry_use(evc_registry **reg, const char *func)
{
	unsigned owner = 0;

	if (*reg == NULL)
		*reg = &the_process;
	if (!evc__fork_watch())
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				  func);
	evc__fork_also(inherited);
	if (sync_cas(&(*reg)->fork_generation, &owner, here()) ||
	    owner == here())
		return 0;
	return refuse_child(func);
}

/* ---- how it is ---- */

double
evc__registry_grace(const evc_registry *reg)
{
	return reg->opts.grace == 0 ? GRACE_DEFAULT : reg->opts.grace;
}

evc_status
evc__grace_check(double grace, const char *func)
{
	if (evc__is_grace(grace))
		return 0;
	return evc_refuse(-EVC_INVALID_ARGUMENT, "%s: a grace of %g seconds",
			  func, grace);
}

/* What evc_new would say, asked now: it is made later. */
static evc_status
try_config(const evc_config *k, const char *func)
{
	evc_coord *c;
	evc_status st;

	if (k->n_clean > CLEAN_MOST)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: more clean codes than there are codes",
				  func);
	st = evc_new(NULL, k, &c);
	if (st == 0)
		evc_free(c);
	return st;
}

static evc_status
check_opts(const evc_registry_opts *o, const char *func)
{
	evc_status st;

	if (!ROOM_IS_ZERO(o->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: reserved room is not 0", func);
	st = evc__grace_check(o->grace, func);
	return st == 0 ? try_config(&o->config, func) : st;
}

/* Copy o with what it points to; nobody else looks at reg. */
static evc_status
configure(evc_registry *reg, const evc_registry_opts *o, const char *func)
{
	evc_config *k = &reg->opts.config;
	unsigned n = o->config.n_clean;
	evc_status *clean = NULL;

	if (n > 0) {
		clean = sync_alloc(n, sizeof *clean);
		if (clean == NULL)
			return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
					  "%s: no memory", func);
		memcpy(clean, o->config.clean, n * sizeof *clean);
	}
	sync_free(reg->clean);
	reg->clean = clean;
	reg->opts = *o;
	k->clean = clean;
	evc__copy(reg->coord_name, sizeof reg->coord_name,
		  k->name != NULL && k->name[0] != '\0' ? k->name : "workers");
	k->name = reg->coord_name;
	return 0;
}

evc_status
evc_registry_new(const evc_registry_opts *opts, evc_registry **ret_registry)
{
	static const evc_registry_opts none;
	const evc_registry_opts *o = opts != NULL ? opts : &none;
	evc_status st = 0;
	evc_registry *reg;

	if (ret_registry == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: no place for the registry", __func__);
	st = check_opts(o, __func__);
	if (st < 0)
		return st;
	reg = sync_alloc(1, sizeof *reg);
	if (reg == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				  __func__);
	sync_lock_init(&reg->lock);
	list_init(&reg->groups);
	st = configure(reg, o, __func__);
	if (st == 0)
		st = evc__registry_use(&reg, __func__);
	if (st == 0) {
		*ret_registry = reg;
		return 0;
	}
	sync_free(reg->clean);
	sync_lock_destroy(&reg->lock);
	sync_free(reg);
	return st;
}

evc_status
evc_registry_configure(const evc_registry_opts *opts)
{
	static const evc_registry_opts none;
	const evc_registry_opts *o = opts != NULL ? opts : &none;
	evc_registry *reg = NULL;
	evc_status st = check_opts(o, __func__);

	if (st == 0)
		st = evc__registry_use(&reg, __func__);
	if (st < 0)
		return st;
	sync_lock(&reg->lock);
	if (!list_empty(&reg->groups) || reg->coord != NULL)
		st = evc_refuse(-EVC_FAILED_PRECONDITION,
				"%s: it has groups, or had", __func__);
	else
		st = configure(reg, o, __func__);
	sync_unlock(&reg->lock);
	return st;
}

/* ---- its coordinator ---- */

evc_coord *
evc_registry_coord(evc_registry *reg)
{
	evc_coord *c;

	if (evc__registry_check(&reg, __func__) < 0 || !evc__registry_used(reg))
		return NULL;
	sync_lock(&reg->lock);
	c = reg->coord;
	sync_unlock(&reg->lock);
	return c;
}

evc_status
evc__registry_coord(evc_registry *reg, evc_coord **ret_c)
{
	static const char name[] = "workers";
	evc_config k;
	evc_coord *made = NULL;
	evc_status st;

	*ret_c = evc_registry_coord(reg);
	if (*ret_c != NULL)
		return 0;
	/* It asks is_clean, a function of the user's: so not under the lock. */
	k = reg->opts.config;
	if (k.name == NULL)
		k.name = name;
	st = evc_new(NULL, &k, &made);
	if (st < 0)
		return st;
	sync_lock(&reg->lock);
	if (reg->coord == NULL) {
		reg->coord = made;
		made = NULL;
	}
	*ret_c = reg->coord;
	sync_unlock(&reg->lock);
	evc_free(made);
	return 0;
}

/* ---- all groups ---- */

size_t
evc_registry_ids(const evc_registry *const_reg, unsigned *ids, size_t n)
{
	evc_registry *reg = (evc_registry *)const_reg;
	struct list *l, *tmp;
	size_t all = 0, here_is, room;

	if (evc__registry_check(&reg, __func__) < 0 || !evc__registry_used(reg))
		return 0;
	sync_lock(&reg->lock);
	LIST_EACH(l, tmp, &reg->groups) {
		room = ids != NULL && n > all ? n - all : 0;
		here_is = evc_workers_ids(GROUP_OF(l),
					  room > 0 ? ids + all : NULL, room);
		all += here_is;
	}
	sync_unlock(&reg->lock);
	return all;
}

WALLED(bool, see, (evc_workers_each_fn *fn, evc_workers *g, void *arg),
       fn(g, arg))

evc_status
evc_registry_each(evc_registry *reg, evc_workers_each_fn *fn, void *arg)
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
	/* One that was freed in the walk is there still, but not to be seen. */
	evc__walk(1);
	for (i = 0; i < h.n && more; i++)
		if (!evc__group_doomed(h.group[i].g))
			more = see(fn, h.group[i].g, arg);
	evc__walk(-1);
	evc__groups_release(&h);
	return 0;
}

/* ---- its end ---- */

static evc_status
free_groups(evc_registry *reg, const char *func)
{
	struct evc__held h;
	evc_status st = evc__groups_hold(reg, NULL, &h, func);
	unsigned i, n;

	if (st < 0)
		return st;
	/* All or none: look at each first. */
	for (i = 0; st == 0 && i < h.n; i++)
		st = evc__group_may_go(h.group[i].g, func);
	n = h.n;
	for (i = 0; st == 0 && i < n; i++) {
		evc_workers *g = h.group[i].g;

		evc__group_unhold(&h, i);
		st = evc_workers_free(g);
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
	if (st == 0 && reg == &the_process)
		st = evc_refuse(-EVC_FAILED_PRECONDITION,
				"%s: it is the process's", __func__);
	if (st == 0)
		st = free_groups(reg, __func__);
	if (st == 0)
		st = evc__registry_may_go(reg, __func__);
	if (st == 0)
		st = evc_free(reg->coord);
	if (st < 0)
		return st;
	sync_free(reg->clean);
	sync_lock_destroy(&reg->lock);
	sync_free(reg);
	return 0;
}
