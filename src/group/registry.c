/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registries: lists of groups, one for the process and others that the program
 * makes; their configuration, and their coordinators.  The process's registry
 * is a static object.  It belongs to the first process that configures it or
 * adds a group; in a fork child of this process every call is refused before
 * the lock, which a lost thread may hold.
 * Called by: the program (evc_registry_new, _default, _configure, _coord,
 * _ids); all files that take a registry.
 * Locks: the registry's, taken; fork_generation is atomic.
 */
#include "group/group.h"

#include "base/reserved.h"
#include "base/text.h"

#define GRACE_DEFAULT 5.0

static evc_registry the_process = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.groups = { &the_process.groups, &the_process.groups },
};

evc_registry *
evc_registry_default(void)
{
	return &the_process;
}

/* ---- the process of a registry ---- */

static unsigned
this_process(void)
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
	return owner == 0 || owner == this_process() ? 0 : refuse_child(func);
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
	if (sync_cas(&(*reg)->fork_generation, &owner, this_process()) ||
	    owner == this_process())
		return 0;
	return refuse_child(func);
}

/* ---- how it is ---- */

uint64_t
evc__registry_until(const evc_registry *reg)
{
	return evc__deadline_in(reg->opts.grace == 0 ? GRACE_DEFAULT :
						       reg->opts.grace);
}

evc_status
evc__grace_check(double grace, const char *func)
{
	if (evc__is_grace(grace))
		return 0;
	return evc_refuse(-EVC_INVALID_ARGUMENT, "%s: a grace of %g seconds",
			  func, grace);
}

/* Ask now what evc_new would refuse: the coordinator is made later. */
static evc_status
try_config(const evc_config *k, const char *func)
{
	evc_coord *c;
	evc_status st;

	if (k->n_clean > EVC__CLEAN_MOST)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: more clean codes than there are codes",
				  func);
	st = evc_new(NULL, k, &c);
	if (st == 0)
		evc_free(c);
	return st;
}

static evc_status
check_registry_opts(const evc_registry_opts *o, const char *func)
{
	evc_status st;

	if (!RESERVED_IS_ZERO(o->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: reserved room is not 0", func);
	st = evc__grace_check(o->grace, func);
	return st == 0 ? try_config(&o->config, func) : st;
}

/* Copy o and the values behind its pointers; no other thread has reg. */
static evc_status
configure_registry(evc_registry *reg, const evc_registry_opts *o,
		   const char *func)
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

void
evc__registry_drop(evc_registry *reg)
{
	sync_free(reg->clean);
	sync_lock_destroy(&reg->lock);
	sync_free(reg);
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
	st = check_registry_opts(o, __func__);
	if (st < 0)
		return st;
	reg = sync_alloc(1, sizeof *reg);
	if (reg == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				  __func__);
	sync_lock_init(&reg->lock);
	list_init(&reg->groups);
	st = configure_registry(reg, o, __func__);
	if (st == 0)
		st = evc__registry_use(&reg, __func__);
	if (st == 0) {
		*ret_registry = reg;
		return 0;
	}
	evc__registry_drop(reg);
	return st;
}

evc_status
evc_registry_configure(const evc_registry_opts *opts)
{
	static const evc_registry_opts none;
	const evc_registry_opts *o = opts != NULL ? opts : &none;
	evc_registry *reg = NULL;
	evc_status st = check_registry_opts(o, __func__);

	if (st == 0)
		st = evc__registry_use(&reg, __func__);
	if (st < 0)
		return st;
	sync_lock(&reg->lock);
	if (!list_empty(&reg->groups) || reg->coord != NULL)
		st = evc_refuse(-EVC_FAILED_PRECONDITION,
				"%s: it has groups, or had", __func__);
	else
		st = configure_registry(reg, o, __func__);
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
	/* The check calls is_clean, a function of the user's, so not under the
	   lock. */
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
		here_is = evc_group_ids(GROUP_OF(l),
					room > 0 ? ids + all : NULL, room);
		all += here_is;
	}
	sync_unlock(&reg->lock);
	return all;
}
