/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The beginning of a group: evc_group_init checks its arguments, then makes the
 * group, the scope, which is stopped from the first moment, and the hook that
 * shuts the group down.
 * Called by: the program (evc_group_init).
 * Locks: the group's, taken for its workers; the registry's, taken to add the
 * group.
 */
#include "group/group.h"

#include <math.h>

#include "base/kick.h"
#include "base/reserved.h"
#include "base/text.h"
#include "group/metrics.h"

#define NAME_DEFAULT "train"
#define THREADS_DEFAULT 2
/* Reasons kept in the scope in a round: errors of several workers, and requests
   beside them. */
#define REASONS 64

/* ---- what was given ---- */

static evc_status
refuse_arg(const char *func, const char *what)
{
	return evc_refuse(-EVC_INVALID_ARGUMENT, "%s: %s", func, what);
}

static evc_status
check_clean(const evc_group_opts *o, const char *func)
{
	unsigned i;

	if (o->n_clean > EVC__CLEAN_MOST)
		return refuse_arg(func,
				  "more clean codes than there are codes");
	if (o->n_clean > 0 && o->clean == NULL)
		return refuse_arg(func, "n_clean without clean");
	for (i = 0; i < o->n_clean; i++)
		if (o->clean[i] < 0 || o->clean[i] > 255)
			return refuse_arg(func, "a clean code outside 0..255");
	return 0;
}

/* Options for other kinds of members mean nothing for a worker. */
static evc_status
check_member(const evc_member_opts *m, const char *func)
{
	if (!RESERVED_IS_ZERO(m->reserved_))
		return refuse_arg(func, "reserved room of member is not 0");
	if (m->flags & ~(unsigned)(EVC_KICK | EVC_WATCHED))
		return refuse_arg(func, "member.flags: only EVC_KICK and "
					"EVC_WATCHED");
	if (m->reactor != NULL || m->missed != 0 || m->start != NULL ||
	    m->stop != NULL || m->jitter != 0 || m->release != NULL)
		return refuse_arg(func,
				  "member: what stands for loopers and hooks");
	if (!evc__is_grace(m->grace))
		return refuse_arg(func, "member.grace is no time");
	return 0;
}

static evc_status
check_group(evc_worker_fn *fn, const evc_group_opts *o, const char *func)
{
	evc_status st;

	if (fn == NULL)
		return refuse_arg(func, "no function");
	if (!RESERVED_IS_ZERO(o->reserved_))
		return refuse_arg(func, "reserved room is not 0");
	if (o->n_threads > EVC__WORKERS_MOST)
		return refuse_arg(func, "more than 4096 threads");
	if (o->flags & ~(unsigned)EVC_GROUP_ASIDE)
		return refuse_arg(func, "unknown flags");
	if (o->on_error > EVC_GROUP_RESTART)
		return refuse_arg(func, "unknown on_error");
	st = evc__restart_check(&o->restart);
	if (st == 0)
		st = check_clean(o, func);
	if (st == 0)
		st = check_member(&o->member, func);
	return st;
}

/* ---- the group ---- */

static evc_status
no_memory(const char *func)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory", func);
}

/* A copy of the user's options. */
static void
copy_opts(evc_group *g, const char *name, const evc_group_opts *o)
{
	evc__copy_dots(g->name, sizeof g->name, name);
	g->opts = *o;
	g->n_threads = o->n_threads != 0 ? o->n_threads : THREADS_DEFAULT;
	/* The group's own list, also by default: clean codes of the coordinator
	   above say nothing of the workers. */
	if (o->n_clean > 0)
		memcpy(g->clean, o->clean, o->n_clean * sizeof *o->clean);
	else
		g->clean[0] = EVC_OUT_OF_RANGE;
	g->opts.clean = g->clean;
	g->opts.n_clean = o->n_clean > 0 ? o->n_clean : 1;
	g->opts.loggers = NULL;
}

static evc_status
make_parts(evc_group *g, const evc_group_opts *o, const char *func)
{
	sync_lock_init(&g->lock);
	list_init(&g->node);
	g->state = EVC_GROUP_NEW;
	g->fork_generation = sync_load(&evc__fork_generation);
	g->metrics = evc__metrics_new();
	if (g->metrics == NULL)
		return no_memory(func);
	return evc__loggers_new(o->loggers, o->n_loggers, &g->loggers);
}

/* The scope is held until all is made, and stopped by a request of our own,
   which evc_clear_stop of a scope above leaves alone. */
static evc_status
make_scope(evc_group *g, evc_coord *parent)
{
	evc_scope_opts s = { .on_error = EVC_ON_ERROR_REPORT,
			     .ended = evc__group_on_ended,
			     .describe = evc__group_describe,
			     .arg = g };
	char hook[48];
	struct text t = evc__text_in(hook, sizeof hook);
	evc_status st;

	/* Without an end of its own, so `ended`, which cleans up, comes when
	   the last worker has ended, however late. */
	s.config.grace = INFINITY;
	s.config.flags = EVC_NO_HOME;
	s.config.clean = g->clean;
	s.config.n_clean = g->opts.n_clean;
	s.config.max_reasons = REASONS;
	st = evc_scope_new(parent, g->name, &s, &g->scope);
	if (st < 0)
		return st;
	(void)evc_request_stop_at(g->scope, 0, "not started", NULL, 0, NULL);
	evc__text_fmt(&t, "%s/shutdown", g->name);
	return evc_on_stop(g->scope, hook, evc__group_on_stop, g, NULL, NULL);
}

static evc_status
make_group(evc_group *g, evc_coord *parent, const evc_group_opts *o,
	   const char *func)
{
	bool calls = o->shutdown != NULL || o->state.stop != NULL ||
		     o->state.cleanup != NULL;
	evc_status st = make_parts(g, o, func);

	if (st == 0)
		st = make_scope(g, parent);
	/* For functions that hang at a stop.  Without a free signal there are
	   no kicks. */
	if (st == 0 && calls && !(o->flags & EVC_GROUP_ASIDE))
		(void)evc__kick_install(0);
	if (st < 0)
		return st;
	/* Reports have the scope, and so the group, already. */
	sync_lock(&g->lock);
	if (!evc__group_make(g, g->n_threads))
		st = no_memory(func);
	sync_unlock(&g->lock);
	return st;
}

/* A refusal is an error of the coordinator above the group. */
static evc_status
refuse_init(evc_registry *reg, evc_coord *parent, evc_status st)
{
	return evc_refuse_setup(parent != NULL ? parent
					       : evc_registry_coord(reg),
				"evc_group_init", st);
}

/* In a fork child: the calling thread is no worker, and in no function of a
   group. */
static void
forget_parent(void)
{
	evc__worker_set_self(NULL);
	evc__inside_forget();
	evc__walks_forget();
	(void)evc__tally_enter(NULL);
}

evc_status
evc_group_init(evc_registry *reg, const char *name, evc_worker_fn *fn,
	       void *arg, const evc_group_opts *opts, evc_group **ret_group,
	       evc_registry **ret_registry)
{
	static const evc_group_opts none;
	const evc_group_opts *o = opts != NULL ? opts : &none;
	evc_coord *parent = o->coord;
	evc_group *g;
	evc_status st;

	if (name == NULL || name[0] == '\0')
		name = NAME_DEFAULT;
	st = check_group(fn, o, __func__);
	if (st == 0)
		st = evc__registry_use(&reg, __func__);
	if (st == 0 && parent == NULL)
		st = evc__registry_coord(reg, &parent);
	if (st < 0)
		return refuse_init(reg, parent, st);
	g = sync_alloc(1, sizeof *g);
	if (g == NULL)
		return refuse_init(reg, parent, no_memory(__func__));
	evc__fork_also(forget_parent);
	g->reg = reg;
	g->fn = fn;
	g->arg = arg;
	copy_opts(g, name, o);
	st = make_group(g, parent, o, __func__);
	if (st < 0) {
		refuse_init(reg, parent, st);
		evc_free(g->scope);
		evc__group_drop(g);
		return st;
	}
	evc__group_part(g);
	sync_lock(&reg->lock);
	list_append(&reg->groups, &g->node);
	sync_unlock(&reg->lock);
	if (ret_group != NULL)
		*ret_group = g;
	if (ret_registry != NULL)
		*ret_registry = reg;
	if (reg == evc_registry_default())
		evc__atexit_register();
	evc_scope_ready(g->scope);
	return 0;
}
