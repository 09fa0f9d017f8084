/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a group: evc_workers_init makes its scope, stopped from the
 * first moment, with the hook that shuts the group down; what frees it again.
 */
#include "group/group.h"

#include "base/kick.h"
#include "base/text.h"
#include "group/loggers.h"
#include "group/metrics.h"

#include <math.h>

#define NAME_DEFAULT "train"
#define THREADS_DEFAULT 2
/* Reasons that its scope keeps in a round: errors of several workers, and the
   requests that come with them. */
#define REASONS 64
/* How long a thread may take from the end of its function to its own. */
#define TAIL 1.0

/* ---- its workers ---- */

static struct evc__worker *
worker_new(evc_workers *g)
{
	struct evc__worker *w = sync_alloc(1, sizeof *w);

	if (w == NULL)
		return NULL;
	w->group = g;
	/* Tallies go with the metrics. */
	w->tally = evc__tally_new(g->metrics);
	if (w->tally != NULL)
		return w;
	sync_free(w);
	return NULL;
}

static void
worker_number(struct evc__worker *w, unsigned id)
{
	struct text t = evc__text_in(w->name, sizeof w->name);

	w->id = id;
	evc__text_add(&t, w->group->name);
	evc__text_add(&t, "/");
	evc__text_int(&t, id);
}

static bool
make_room(evc_workers *g, unsigned n)
{
	struct evc__worker **more;

	if (n <= g->room)
		return true;
	more = sync_alloc(n, sizeof(struct evc__worker *));
	if (more == NULL)
		return false;
	if (g->n_workers > 0)
		memcpy(more, g->worker, g->n_workers * sizeof *more);
	sync_free(g->worker);
	g->worker = more;
	g->room = n;
	return true;
}

bool
evc__workers_make(evc_workers *g, unsigned n)
{
	unsigned i, id;

	if (n <= g->n_workers)
		return true;
	if (!make_room(g, n))
		return false;
	for (i = g->n_workers; i < n; i++) {
		g->worker[i] = worker_new(g);
		if (g->worker[i] != NULL)
			continue;
		while (i > g->n_workers)
			sync_free(g->worker[--i]);
		return false;
	}
	/* Ids only for those that there are: none is lost. */
	id = sync_add(&g->reg->next_id, n - g->n_workers);
	for (i = g->n_workers; i < n; i++)
		worker_number(g->worker[i], id++);
	g->n_workers = n;
	return true;
}

/* ---- its beginning ---- */

static evc_status
no_memory(const char *func)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory", func);
}

static evc_status
check(const char *name, evc_worker_fn *fn, const evc_workers_opts *o,
      const char *func)
{
	if (fn == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "%s: no function",
				  func);
	if (strlen(name) >= sizeof((evc_workers *)0)->name)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: the name %.40s... is too long", func,
				  name);
	return evc__workers_check_opts(o, func);
}

/* What was given, copied. */
static void
copy_opts(evc_workers *g, const char *name, const evc_workers_opts *o)
{
	evc__copy(g->name, sizeof g->name, name);
	g->opts = *o;
	g->n_threads = o->n_threads != 0 ? o->n_threads : THREADS_DEFAULT;
	/* Its own list, also by default: what the coordinator above takes as
	   clean says nothing of its workers. */
	if (o->n_clean > 0)
		memcpy(g->clean, o->clean, o->n_clean * sizeof *o->clean);
	else
		g->clean[0] = EVC_OUT_OF_RANGE;
	g->n_clean = o->n_clean > 0 ? o->n_clean : 1;
	g->opts.clean = g->clean;
	g->opts.n_clean = g->n_clean;
	g->opts.loggers = NULL;
}

static evc_status
make_parts(evc_workers *g, const evc_workers_opts *o, const char *func)
{
	sync_lock_init(&g->lock);
	list_init(&g->node);
	g->state = EVC_WORKERS_NEW;
	g->fork_generation = sync_load(&evc__fork_generation);
	g->metrics = evc__metrics_new();
	if (g->metrics == NULL)
		return no_memory(func);
	return evc__loggers_new(o->loggers, o->n_loggers, &g->loggers);
}

/* The scope: held until all is there, stopped with a request of our own, which
   evc_clear_stop of what is above leaves alone. */
static evc_status
make_scope(evc_workers *g, evc_coord *parent)
{
	evc_scope_opts s = { .on_error = EVC_ON_ERROR_REPORT,
			     .ended = evc__group_on_ended,
			     .arg = g };
	char hook[48];
	struct text t = evc__text_in(hook, sizeof hook);
	evc_status st;

	/* Without an end of its own, so that `ended`, which cleans up, comes
	   when the last worker has ended, however late. */
	s.config.grace = INFINITY;
	s.config.flags = EVC_NO_HOME;
	s.config.clean = g->clean;
	s.config.n_clean = g->n_clean;
	s.config.max_reasons = REASONS;
	st = evc_scope_new(parent, g->name, &s, &g->scope);
	if (st < 0)
		return st;
	(void)evc_request_stop_at(g->scope, 0, "not started", NULL, 0, NULL);
	evc__text_add(&t, g->name);
	evc__text_add(&t, "/shutdown");
	return evc_on_stop(g->scope, hook, evc__group_on_stop, g, NULL,
			   &g->hook);
}

static evc_status
make(evc_workers *g, evc_coord *parent, const evc_workers_opts *o,
     const char *func)
{
	bool calls = o->shutdown != NULL || o->state.stop != NULL ||
		     o->state.cleanup != NULL;
	evc_status st = make_parts(g, o, func);

	if (st == 0)
		st = make_scope(g, parent);
	/* For functions that hang at a stop.  Without a free signal they are
	   not kicked. */
	if (st == 0 && calls && !(o->flags & EVC_WORKERS_ASIDE))
		(void)evc__kick_install(0);
	if (st == 0 && !evc__workers_make(g, g->n_threads))
		st = no_memory(func);
	return st;
}

/* What make has made, the scope aside; some of it may not be there. */
static void
drop(evc_workers *g)
{
	unsigned i;

	for (i = 0; i < g->n_workers; i++)
		sync_free(g->worker[i]);
	sync_free(g->worker);
	sync_free(g->error);
	evc__restart_drop(&g->restarts);
	evc__loggers_free(g->loggers);
	evc__metrics_free(g->metrics);
	sync_lock_destroy(&g->lock);
	sync_free(g);
}

/* What is refused is an error of the coordinator that the group would have
   stood below. */
static evc_status
refuse_init(evc_registry *reg, evc_coord *parent, evc_status st)
{
	return evc_refuse_setup(parent != NULL ? parent :
						 evc_registry_coord(reg),
				"evc_workers_init", st);
}

evc_status
evc_workers_init(evc_registry *reg, const char *name, evc_worker_fn *fn,
		 void *arg, const evc_workers_opts *opts,
		 evc_workers **ret_group, evc_registry **ret_registry)
{
	static const evc_workers_opts none;
	const evc_workers_opts *o = opts != NULL ? opts : &none;
	evc_coord *parent = o->coord;
	evc_workers *g;
	evc_status st;

	if (name == NULL || name[0] == '\0')
		name = NAME_DEFAULT;
	st = check(name, fn, o, __func__);
	if (st == 0)
		st = evc__registry_use(&reg, __func__);
	if (st == 0 && parent == NULL)
		st = evc__registry_coord(reg, &parent);
	if (st < 0)
		return refuse_init(reg, parent, st);
	g = sync_alloc(1, sizeof *g);
	if (g == NULL)
		return refuse_init(reg, parent, no_memory(__func__));
	g->reg = reg;
	g->fn = fn;
	g->arg = arg;
	copy_opts(g, name, o);
	st = make(g, parent, o, __func__);
	if (st < 0) {
		refuse_init(reg, parent, st);
		evc_free(g->scope);
		drop(g);
		return st;
	}
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

/* ---- its end ---- */

evc_status
evc__group_tails(evc_workers *g)
{
	evc_join_opts j = { .grace = TAIL, .flags = EVC_JOIN_STRICT };
	evc_verdict v;

	return evc_join(g->scope, &j, &v);
}

evc_status
evc__group_destroy(evc_workers *g)
{
	evc_status st;

	/* Its last threads may be on their way out. */
	(void)evc__group_tails(g);
	evc_cond_free(g->cond);
	g->cond = NULL;
	/* Refused when somebody else has members in it, or waits on it; the
	   next start makes a new condition. */
	st = evc_free(g->scope);
	if (st == 0)
		drop(g);
	return st;
}
