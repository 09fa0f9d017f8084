/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a cluster is to be opened with: checks, defaults, and who serves its
 * address.
 */
#include "cluster/life.h"

#include <math.h>

#include "cluster/retry.h"
#include "cluster/worker.h"

#define MAX_QUEUED 262144
#define WORKER_WAIT 60.0
#define GRACE 10.0
#define LEASE 5.0
#define DEATHS 3
#define MAX_FRAME ((size_t)64 << 20)
#define CHECKPOINT_EVERY 30.0

/* ---- the config ---- */

static bool
is_time(double seconds)
{
	return seconds >= 0; /* and no NaN */
}

static evc_status
refuse(const char *what)
{
	return evc_refuse(-EVC_INVALID_ARGUMENT, "evc_cluster_open: %s", what);
}

static evc_status
check_engines(const evc_cluster_config *k)
{
	unsigned i;

	if (k->n_engines > 0 && k->engines == NULL)
		return refuse("engines is NULL, n_engines is not 0");
	for (i = 0; i < k->n_engines; i++) {
		const evc_engine_ops *ops = k->engines[i];

		if (ops == NULL || ops->abi != EVC_ENGINE_ABI)
			return evc_refuse(-EVC_INVALID_ARGUMENT,
					  "engine %u is NULL or of another"
					  " release: abi %u, not %u",
					  i, ops != NULL ? ops->abi : 0,
					  EVC_ENGINE_ABI);
		if (ops->scheme == NULL || ops->usage == NULL ||
		    ops->open == NULL || ops->close == NULL ||
		    ops->wake == NULL || ops->cancel == NULL ||
		    ops->cancel_one == NULL || ops->leave == NULL ||
		    ((ops->caps & EVC_ENGINE_KILLS) && ops->kill == NULL) ||
		    !ROOM_IS_ZERO(ops->reserved_))
			return evc_refuse(-EVC_INVALID_ARGUMENT,
					  "engine %u lacks an operation, a"
					  " scheme or a usage, or its reserved"
					  " room is not zero",
					  i);
	}
	return 0;
}

static evc_status
check(const evc_cluster_config *k)
{
	evc_status st;

	if (k->name != NULL && strlen(k->name) >= NAME_ROOM)
		return refuse("a name has 47 bytes at most");
	if (!is_time(k->worker_wait) || !is_time(k->lease) ||
	    !is_time(k->checkpoint_every))
		return refuse("worker_wait, lease and checkpoint_every are"
			      " seconds, >= 0");
	if (!is_time(k->grace) && k->grace != EVC_NO_GRACE)
		return refuse("grace is seconds, >= 0, or EVC_NO_GRACE");
	if (k->flags != 0 || !ROOM_IS_ZERO(k->reserved_))
		return refuse("flags or reserved room is not zero");
	st = evc__retry_check(&k->retry);
	if (st == 0)
		st = evc__functions_check(k->functions, k->n_functions);
	return st == 0 ? check_engines(k) : st;
}

evc_status
evc__config_fill(const evc_cluster_config *config, evc_cluster_config *ret)
{
	static const evc_cluster_config none;
	evc_status st;

	if (config == NULL)
		config = &none;
	st = check(config);
	if (st < 0)
		return st;
	*ret = *config;
	if (ret->name != NULL && ret->name[0] == '\0')
		ret->name = NULL;
	if (ret->checkpoint != NULL && ret->checkpoint[0] == '\0')
		ret->checkpoint = NULL;
	if (ret->max_queued == 0)
		ret->max_queued = MAX_QUEUED;
	if (ret->worker_wait == 0)
		ret->worker_wait = WORKER_WAIT;
	if (ret->grace == 0)
		ret->grace = GRACE;
	if (ret->lease == 0)
		ret->lease = LEASE;
	if (ret->deaths == 0)
		ret->deaths = DEATHS;
	if (ret->max_frame == 0)
		ret->max_frame = MAX_FRAME;
	if (ret->checkpoint_every == 0)
		ret->checkpoint_every = CHECKPOINT_EVERY;
	return 0;
}

/* ---- the engine ---- */

static const evc_engine_ops *const ours[] = {
	&evc__engine_threads,
	&evc__engine_processes,
};

#define N_OURS (sizeof ours / sizeof ours[0])

/* The program's come first: they may stand in place of one of ours. */
static const evc_engine_ops *
engine_at(const evc_cluster_config *k, size_t i)
{
	if (i < k->n_engines)
		return k->engines[i];
	i -= k->n_engines;
	return i < N_OURS ? ours[i] : NULL;
}

static evc_status
refuse_scheme(const evc_cluster_config *k, const char *uri)
{
	const evc_engine_ops *ops;
	char known[120];
	struct text t = evc__text_in(known, sizeof known);
	size_t i;

	for (i = 0; (ops = engine_at(k, i)) != NULL; i++) {
		evc__text_add(&t, i > 0 ? ", " : "");
		evc__text_add(&t, ops->usage);
	}
	return evc_refuse(-EVC_INVALID_ARGUMENT,
			  "nobody serves \"%.24s\": there are %s", uri, known);
}

static bool
knows(const evc_engine_ops *ops, const char *option, size_t n)
{
	size_t i;

	for (i = 0; ops->options != NULL && ops->options[i] != NULL; i++)
		if (strlen(ops->options[i]) == n &&
		    memcmp(ops->options[i], option, n) == 0)
			return true;
	return false;
}

/* Does uri begin with this and "://"? */
static bool
is_scheme(const char *scheme, const char *uri)
{
	size_t n = strlen(scheme);

	return strncmp(uri, scheme, n) == 0 && strncmp(uri + n, "://", 3) == 0;
}

evc_status
evc__engine_find(const evc_cluster_config *config, const char *uri,
		 const evc_engine_ops **ret)
{
	size_t i;

	for (i = 0; (*ret = engine_at(config, i)) != NULL; i++)
		if (is_scheme((*ret)->scheme, uri))
			return 0;
	return refuse_scheme(config, uri);
}

evc_status
evc__engine_knows(const evc_engine_ops *ops, const struct cluster_uri *u)
{
	size_t i;

	for (i = 0; u->options[i] != NULL; i++) {
		size_t n = strcspn(u->options[i], "=");

		if (!knows(ops, u->options[i], n))
			return evc_refuse(-EVC_INVALID_ARGUMENT,
					  "%s has no option \"%.*s\": it is %s",
					  ops->scheme, n < 40 ? (int)n : 40,
					  u->options[i], ops->usage);
	}
	return 0;
}
