/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening a cluster: first all refusals, then the scope, the checkpoint and the
 * engine, each undone when the next one fails.  And closing a cluster.
 * Called by: the program (evc_cluster_open, _close, _scope).
 * Locks: the cluster's lock, for the report at the close; last_serial is
 * atomic.
 */
#include "cluster/open/open.h"

#include "base/proc.h"
#include "cluster/core/cluster.h"

/* atomic: counts the clusters of the process; no other data depends on it */
static _Atomic uint32_t last_serial;

/* ---- the memory ---- */

static char *
copy_string(const char *s)
{
	size_t n = strlen(s) + 1;
	char *to = sync_alloc(1, n);

	if (to != NULL)
		memcpy(to, s, n);
	return to;
}

/* A second step, because both objects need a destroy. */
static bool
init_cluster(evc_cluster *cl)
{
	if (!evc__closures_init(&cl->q, cl->config.max_queued,
				evc__closure_cancelled))
		return false;
	if (evc__variables_init(&cl->vars))
		return true;
	evc__closures_destroy(&cl->q);
	return false;
}

static void
free_strings(evc_cluster *cl)
{
	sync_free(cl->uri);
	sync_free((char *)cl->config.checkpoint);
	sync_free((char *)cl->config.watchdog_file);
	sync_free(cl);
}

static void
destroy_cluster(evc_cluster *cl)
{
	unsigned i;

	evc__per_workers_destroy(cl);
	evc__table_free(&cl->remotes.named);
	evc__first_forget(cl);
	for (i = 0; i < cl->workers.n_made; i++) {
		sync_free(cl->workers.all[i]->stack);
		sync_free(cl->workers.all[i]->stuck);
		sync_free(cl->workers.all[i]->text);
		sync_free(cl->workers.all[i]);
	}
	sync_free(cl->workers.all);
	evc__names_destroy(cl);
	evc__variables_destroy(&cl->vars);
	evc__closures_destroy(&cl->q);
	evc_loop_release(cl->loop.ref);
	free_strings(cl);
}

/* The strings of the config are copied. */
static evc_cluster *
make_cluster(evc_coord *c, const char *uri, const evc_cluster_config *config)
{
	evc_cluster *cl = sync_alloc(1, sizeof *cl);
	bool fine;

	if (cl == NULL)
		return NULL;
	cl->config = *config;
	evc__copy(cl->name, sizeof cl->name,
		  config->name != NULL ? config->name : "cluster");
	cl->config.name = cl->name;
	cl->uri = copy_string(uri);
	fine = cl->uri != NULL;
	if (config->checkpoint != NULL) {
		cl->config.checkpoint = evc__proc_path(config->checkpoint);
		fine = fine && cl->config.checkpoint != NULL;
	}
	if (config->watchdog_file != NULL) {
		cl->config.watchdog_file = evc__proc_path(config->watchdog_file);
		fine = fine && cl->config.watchdog_file != NULL;
	}
	if (!fine || !evc__names_fork_watch() || !init_cluster(cl)) {
		free_strings(cl);
		return NULL;
	}
	cl->destroy = destroy_cluster;
	cl->life.parent = c;
	cl->serial = sync_add(&last_serial, 1) + 1;
	cl->born_ns = sync_mono();
	list_init(&cl->life.by_name);
	list_init(&cl->workers.defs);
	list_init(&cl->workers.news);
	list_init(&cl->turn.joins);
	list_init(&cl->turn.fetches);
	evc__turn_init(cl);
	sync_store_relaxed(&cl->handles, 1);
	sync_store_relaxed(&cl->refs, 1);
	return cl;
}

/* ---- opening ---- */

static evc_status
open_engine(evc_cluster *cl, const struct cluster_uri *u)
{
	const evc_cluster_config *k = &cl->config;
	evc_engine_env env = {
		.scope = cl->scope,
		.reactor = cl->loop.reactor,
		.loop = cl->loop.ref,
		.uri = cl->uri,
		.place = u->place,
		.options = (const char *const *)u->options,
		.functions = k->functions,
		.n_functions = k->n_functions,
		.lease = k->lease,
		.grace = k->grace,
		.max_frame = k->max_frame,
		.sink = &evc__sink,
		.core = cl,
	};
	evc_engine *engine = NULL;
	evc_status st = (*cl->engine.ops->open)(&env, &engine);

	if (st == 0)
		evc__scope_opened(cl, engine);
	return st > 0 ? -st : st;
}

static evc_status
refuse_stopped(void)
{
	return evc_refuse(-EVC_CANCELLED,
			  "evc_cluster_open: a stop was requested");
}

/* After a refusal the scope is gone, or goes. */
static evc_status
begin_cluster(evc_cluster *cl, const struct cluster_uri *u)
{
	evc_status st;

	evc__watchdog_prepare(cl);
	st = evc__scope_begin(cl);
	if (st < 0)
		return st;
	st = evc__checkpoint_open(cl);
	if (st == 0)
		st = evc__watchdog_begin(cl);
	if (st == 0)
		st = open_engine(cl, u);
	if (st == 0)
		evc__first_ask(cl);
	if (st < 0)
		evc__scope_undo(cl);
	/* Whichever of the steps has met it. */
	return st == -EVC_CANCELLED ? refuse_stopped() : st;
}

/* named: another thread may have opened a cluster of this name first. */
static evc_status
open_or_find(evc_cluster *cl, bool named, const struct cluster_uri *u,
	     evc_cluster **ret)
{
	evc_cluster *there = NULL;
	evc_status st = named ? evc__names_enter(cl, &there) : 0;

	if (st == 0 && there == NULL) {
		st = begin_cluster(cl, u);
		evc__names_opened(cl, st == 0);
		if (st == 0) {
			*ret = cl;
			return 0;
		}
	}
	if (st == 0)
		*ret = there;
	evc__cluster_unref(cl);
	return st;
}

static evc_status
open_parsed(evc_coord *c, const char *uri, const struct cluster_uri *u,
	    const evc_engine_ops *ops, const evc_cluster_config *k,
	    evc_cluster **ret)
{
	evc_status st = evc__engine_knows(ops, u);
	evc_cluster *cl;

	if (st < 0)
		return st;
	if (evc_should_stop(c))
		return refuse_stopped();
	cl = make_cluster(c, uri, k);
	if (cl == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
	cl->engine.ops = ops;
	return open_or_find(cl, k->name != NULL, u, ret);
}

static evc_status
open_cluster(evc_coord *c, const char *uri, const evc_cluster_config *config,
	     evc_cluster **ret_cluster)
{
	const evc_engine_ops *ops;
	evc_cluster_config k;
	struct cluster_uri u;
	evc_status st;

	if (c == NULL || uri == NULL || ret_cluster == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_cluster_open: no coordinator, no address"
				  " or no place for the cluster");
	st = evc__config_fill(config, &k);
	if (st == 0)
		st = evc__engine_find(&k, uri, &ops);
	if (st == 0)
		st = evc__uri_parse(uri, &u);
	if (st < 0)
		return st;
	st = open_parsed(c, uri, &u, ops, &k, ret_cluster);
	evc__uri_free(&u);
	return st;
}

evc_status
evc_cluster_open(evc_coord *c, const char *uri,
		 const evc_cluster_config *config, evc_cluster **ret_cluster)
{
	return evc_refuse_setup(c, __func__,
				open_cluster(c, uri, config, ret_cluster));
}

/* ---- closing ---- */

/* Errors that the program has not heard of: no checkpoint, or a function's. */
static evc_status
untold_error(evc_cluster *cl)
{
	char buf[TEXT_SIZE + 64] = "";
	struct text t = evc__text_in(buf, sizeof buf);
	const evc_reason *r;
	evc_status st = 0;

	sync_lock(&cl->q.lock);
	if (cl->checkpoint.n_failed > 0) {
		st = cl->checkpoint.code;
		evc__checkpoint_describe(cl, sync_mono(), &t);
	} else if (cl->q.n_errors > 0) {
		r = &cl->q.errors[0];
		st = r->code;
		evc__text_fmt(&t, "%s%s%s", r->func,
			      r->func[0] != '\0' ? ": " : "", r->text);
	}
	cl->life.n_told = cl->q.n_errors;
	sync_unlock(&cl->q.lock);
	return st == 0 ? 0 : evc_refuse(st, "%s", buf);
}

evc_status
evc_cluster_close(evc_cluster *cl)
{
	evc_status st = cl != NULL ? evc__cluster_check(cl) : 0;

	if (cl == NULL || st < 0)
		return st;
	st = untold_error(cl);
	if (!evc__names_leave(cl))
		return st;
	evc__scope_let_go(cl);
	/* The reference of all handles. */
	evc__cluster_unref(cl);
	return st;
}

evc_coord *
evc_cluster_scope(const evc_cluster *cl)
{
	return cl != NULL ? cl->scope : NULL;
}
