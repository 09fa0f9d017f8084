/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The main of workers that somebody starts by hand on a machine: the process is
 * a node of an address, and starts its workers itself, which run the same
 * program.  A node is a coordinator with a loop, the signals that end it, and
 * the address's engine.
 * Called by: main.c.
 * Locks: none; the main thread.
 */
#include <ev.h>
#include <math.h>

#include "base/cpus.h"
#include "cluster/open/open.h"
#include "cluster/processes/processes.h"
#include "cluster/worker/worker.h"
#include "engine/notes.h"

#define GRACE 10.0
/* seconds for kills and a last word after the grace of functions */
#define BEYOND 5.0

struct node {
	const evc_function *functions;
	unsigned n_functions;
	unsigned n_workers;
	double grace;
	const char *uri;
	struct cluster_uri parts;
	const evc_engine_ops *ops;
	struct ev_loop *ev;
	evc_coord *coord;
	evc_loop_ref *loop;
	evc_engine_node *engine;
};

static evc_status
refuse_node(const char *what)
{
	return evc_refuse(-EVC_INVALID_ARGUMENT, "evc_worker_main: %s", what);
}

/* ---- what is wanted ---- */

static evc_status
read_opts(struct node *n, const evc_worker_opts *o)
{
	evc_status st = evc__functions_check(n->functions, n->n_functions);

	if (st < 0)
		return st;
	if (o->n_workers > WORKERS_MOST)
		return refuse_node("a node has 1024 workers at most");
	if (!(o->grace >= 0) && o->grace != EVC_NO_GRACE)
		return refuse_node("grace is seconds, >= 0, or EVC_NO_GRACE");
	n->uri = o->uri;
	n->n_workers = o->n_workers > 0 ? o->n_workers :
					  evc__cpus(WORKERS_MOST);
	n->grace = o->grace != 0 ? o->grace : GRACE;
	return 0;
}

/* After 0 n->parts are the caller's to free. */
static evc_status
read_uri(struct node *n)
{
	const evc_cluster_config none = { .n_engines = 0 };
	evc_status st = evc__engine_find(&none, n->uri, &n->ops);

	if (st < 0)
		return st;
	if (n->ops->serve == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_worker_main: %s:// has no nodes: its "
				  "cluster starts its workers itself",
				  n->ops->scheme);
	st = evc__uri_parse(n->uri, &n->parts);
	if (st < 0)
		return st;
	st = evc__engine_knows(n->ops, &n->parts);
	if (st < 0)
		evc__uri_free(&n->parts);
	return st;
}

/* ---- the coordinator ---- */

static evc_status
make_node(struct node *n)
{
	const evc_config config = {
		.name = "node",
		.log = evc_log_stderr,
		.grace = (n->grace > 0 ? n->grace : 0) + BEYOND,
	};
	evc_status st;

	n->ev = ev_loop_new(EVFLAG_AUTO);
	if (n->ev == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "evc_worker_main: no loop: no memory, no "
				  "descriptor, or libev has no backend of "
				  "LIBEV_FLAGS");
	st = evc_new(n->ev, &config, &n->coord);
	if (st < 0)
		return st;
	n->loop = evc_loop_of(evc_home(n->coord));
	/* A program with signals elsewhere asks for the stop itself. */
	st = evc_signals_start(n->coord, NULL);
	return st == -EVC_ALREADY_EXISTS ? 0 : st;
}

static evc_status
start_node(struct node *n)
{
	const evc_engine_node_env env = {
		.scope = n->coord,
		.reactor = evc_home(n->coord),
		.loop = n->loop,
		.uri = n->uri,
		.place = n->parts.place,
		.options = (const char *const *)n->parts.options,
		.functions = n->functions,
		.n_functions = n->n_functions,
		.n_workers = n->n_workers,
		.grace = n->grace,
		.workers = &evc__engine_processes,
	};
	evc_status st = n->ops->serve(&env, &n->engine);

	/* A stop before the begin is a normal end. */
	if (st == -EVC_CANCELLED && evc_should_stop(n->coord)) {
		n->engine = NULL;
		return 0;
	}
	return st > 0 ? -st : st;
}

/* Run until the end.  Returns the status of the end. */
static evc_status
run_node(struct node *n)
{
	evc_verdict v;
	evc_status st = evc_reactor_run(evc_home(n->coord)), late;

	/* After an error of the loop nothing goes on. */
	(void)(evc_request_stop)(n->coord, 0, "the node ends");
	late = evc_join(n->coord, NULL, &v);
	(void)late;
	if (st < 0 || n->engine == NULL)
		return st;
	return n->ops->served(n->engine);
}

/* A refusal keeps its text. */
static void
end_node(struct node *n)
{
	char why[TEXT_SIZE];

	evc__copy(why, sizeof why, evc_last_error());
	/* A hanging thread uses both, and ends with the process. */
	evc_loop_release(n->loop);
	if ((n->coord == NULL || evc_free(n->coord) == 0) && n->ev != NULL)
		ev_loop_destroy(n->ev);
	evc__uri_free(&n->parts);
	(void)evc_refuse(0, "%s", why);
}

evc_status
evc__worker_node(const evc_function *functions, unsigned n_functions,
		 const evc_worker_opts *opts)
{
	struct node n = { .functions = functions, .n_functions = n_functions };
	evc_status st = read_opts(&n, opts);

	if (st < 0)
		return st;
	/* Early, because from then on a signal is heard. */
	st = make_node(&n);
	if (st == 0)
		st = read_uri(&n);
	if (st == 0)
		st = start_node(&n);
	if (st == 0)
		st = run_node(&n);
	end_node(&n);
	return st;
}
