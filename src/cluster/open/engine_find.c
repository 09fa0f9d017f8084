/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine for an address: an engine of the program's, an engine of this
 * library, or the engine of libevcoord-redis.  That library is separate,
 * because not every program wants its dependencies.  It is found when the
 * program is linked with it or the system has it, so no program is built anew
 * for it.
 * Called by: open.c, config.c and node.c.
 * Locks: none.
 */
#include <dlfcn.h>
#include <limits.h>

#include "cluster/open/open.h"
#include "cluster/processes/processes.h"
#include "cluster/threads/threads.h"

#define OWN_LIBRARY "libevcoord-cluster.so"
#define REDIS_LIBRARY "libevcoord-redis.so.1"
#define REDIS_USAGE   "redis[s]://HOST:PORT/NS, unix:///SOCKET/NS"
#define ALL_CAPS \
	(EVC_ENGINE_CALLS | EVC_ENGINE_DEADLINES | EVC_ENGINE_KILLS | \
	 EVC_ENGINE_VARIABLES | EVC_ENGINE_BEGINS)

/* evc_redis_engine of evcoord/redis.h. */
typedef const evc_engine_ops *engine_fn(const char *scheme);

/* NULL: no library with it was linked; only this shows a static library. */
extern engine_fn evc_redis_engine __attribute__((weak));

evc_status
evc__engine_check(const evc_engine_ops *ops, const char *who)
{
	if (ops == NULL || ops->abi != EVC_ENGINE_ABI)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s is NULL or of another release: abi %u, "
				  "not %u",
				  who, ops != NULL ? ops->abi : 0,
				  EVC_ENGINE_ABI);
	if (ops->scheme == NULL || ops->usage == NULL || ops->open == NULL ||
	    ops->close == NULL || ops->wake == NULL || ops->cancel == NULL ||
	    ops->cancel_one == NULL || ops->leave == NULL ||
	    ((ops->caps & EVC_ENGINE_KILLS) && ops->kill == NULL) ||
	    ((ops->caps & EVC_ENGINE_VARIABLES) && ops->ask == NULL) ||
	    (ops->serve == NULL) != (ops->served == NULL) ||
	    (ops->caps & ~(unsigned)ALL_CAPS) != 0 ||
	    !RESERVED_IS_ZERO(ops->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s lacks an operation, a scheme or a usage, "
				  "has unknown caps, or its reserved room is "
				  "not zero",
				  who);
	return 0;
}

/* ---- those that are here ---- */

static const evc_engine_ops *const ours[] = {
	&evc__engine_threads,
	&evc__engine_processes,
};

#define N_OURS (sizeof ours / sizeof ours[0])

/* The program's engines come first: they may replace ours. */
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

	for (i = 0; (ops = engine_at(k, i)) != NULL; i++)
		evc__text_fmt(&t, "%s, ", ops->usage);
	evc__text_add(&t, REDIS_USAGE);
	return evc_refuse(-EVC_INVALID_ARGUMENT,
			  "no engine serves \"%.24s\": there are %s", uri, known);
}

/* Does uri begin with the scheme and "://"? */
static bool
is_scheme(const char *scheme, const char *uri)
{
	size_t n = strlen(scheme);

	return strncmp(uri, scheme, n) == 0 && strncmp(uri + n, "://", 3) == 0;
}

/* ---- the one that may be elsewhere ---- */

/* Load the library from the folder of this one: a program may name that folder
   (DT_RUNPATH) for its own needs alone, not for ours. */
static void *
load_from_own_folder(void)
{
	char path[PATH_MAX];
	struct text t = evc__text_in(path, sizeof path);
	const char *name;
	Dl_info own;

	if (dladdr(ours, &own) == 0 || own.dli_fname == NULL)
		return NULL;
	name = strrchr(own.dli_fname, '/');
	/* A program with static libraries has a folder of its own. */
	if (name == NULL ||
	    strncmp(name, "/" OWN_LIBRARY, strlen("/" OWN_LIBRARY)) != 0)
		return NULL;
	evc__text_fmt(&t, "%.*s/" REDIS_LIBRARY, (int)(name - own.dli_fname),
		      own.dli_fname);
	return t.len < sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* The library stays once loaded, because its objects may be anywhere. */
static engine_fn *
redis_fn(void)
{
	void *library, *fn;

	if (evc_redis_engine != NULL)
		return evc_redis_engine;
	fn = dlsym(RTLD_DEFAULT, "evc_redis_engine");
	if (fn != NULL)
		return (engine_fn *)(uintptr_t)fn;
	library = dlopen(REDIS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		library = load_from_own_folder();
	if (library != NULL)
		fn = dlsym(library, "evc_redis_engine");
	return (engine_fn *)(uintptr_t)fn;
}

static evc_status
find_redis(const char *scheme, const evc_engine_ops **ret)
{
	engine_fn *find = redis_fn();

	*ret = NULL;
	if (find == NULL)
		return evc_refuse(-EVC_UNIMPLEMENTED,
				  "%s:// is served by " REDIS_LIBRARY
				  ", which is not installed and not linked",
				  scheme);
	*ret = find(scheme);
	if (*ret == NULL)
		return evc_refuse(-EVC_UNIMPLEMENTED,
				  REDIS_LIBRARY " was built without %s://",
				  scheme);
	return evc__engine_check(*ret, REDIS_LIBRARY);
}

/* ---- the search ---- */

evc_status
evc__engine_find(const evc_cluster_config *config, const char *uri,
		 const evc_engine_ops **ret)
{
	static const char *const of_redis[] = { "redis", "rediss", "unix" };
	size_t i;

	for (i = 0; (*ret = engine_at(config, i)) != NULL; i++)
		if (is_scheme((*ret)->scheme, uri))
			return 0;
	for (i = 0; i < sizeof of_redis / sizeof of_redis[0]; i++)
		if (is_scheme(of_redis[i], uri))
			return find_redis(of_redis[i], ret);
	return refuse_scheme(config, uri);
}

/* ---- options ---- */

static bool
has_option(const evc_engine_ops *ops, const char *option, size_t n)
{
	size_t i;

	for (i = 0; ops->options != NULL && ops->options[i] != NULL; i++)
		if (strlen(ops->options[i]) == n &&
		    memcmp(ops->options[i], option, n) == 0)
			return true;
	return false;
}

evc_status
evc__engine_knows(const evc_engine_ops *ops, const struct cluster_uri *u)
{
	size_t i;

	for (i = 0; u->options[i] != NULL; i++) {
		size_t n = strcspn(u->options[i], "=");

		if (!has_option(ops, u->options[i], n))
			return evc_refuse(-EVC_INVALID_ARGUMENT,
					  "%s has no option \"%.*s\": it is %s",
					  ops->scheme, n < 40 ? (int)n : 40,
					  u->options[i], ops->usage);
	}
	return 0;
}
