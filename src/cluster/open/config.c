/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The config of a cluster: checks and defaults.
 * Called by: open.c.
 * Locks: none.
 */
#include "cluster/open/open.h"

#include <math.h>

#include "cluster/core/retry.h"
#include "cluster/worker/worker.h"

#define MAX_QUEUED 262144
#define WORKER_WAIT 60.0
#define GRACE 10.0
#define LEASE 5.0
#define LEASE_LEAST 0.1
#define WATCHDOG_LEAST 0.01
#define CHECKPOINT_EVERY_LEAST 0.001
#define DEATHS 3
#define MAX_FRAME ((size_t)64 << 20)
#define MAX_FRAME_LEAST ((size_t)4 << 10)
/* Frames have lengths of 32 bits. */
#define MAX_FRAME_MOST ((size_t)UINT32_MAX - 1)
#define CHECKPOINT_EVERY 30.0

/* ---- the config ---- */

static bool
is_duration(double seconds)
{
	return seconds >= 0; /* and no NaN */
}

static evc_status
refuse_config(const char *what)
{
	return evc_refuse(-EVC_INVALID_ARGUMENT, "evc_cluster_open: %s", what);
}

static evc_status
check_engines(const evc_cluster_config *k)
{
	char which[24];
	struct text t;
	evc_status st = 0;
	unsigned i;

	if (k->n_engines > 0 && k->engines == NULL)
		return refuse_config("engines is NULL, n_engines is not 0");
	for (i = 0; st == 0 && i < k->n_engines; i++) {
		t = evc__text_in(which, sizeof which);
		evc__text_fmt(&t, "engine %u", i);
		st = evc__engine_check(k->engines[i], which);
	}
	return st;
}

static evc_status
check_config(const evc_cluster_config *k)
{
	evc_status st;

	if (k->name != NULL && strlen(k->name) >= NAME_SIZE)
		return refuse_config("a name has 47 bytes at most");
	if (!is_duration(k->worker_wait) || !is_duration(k->lease) ||
	    !is_duration(k->checkpoint_every) || !is_duration(k->watchdog))
		return refuse_config(
			"worker_wait, lease, checkpoint_every and watchdog are"
			" seconds, >= 0");
	if (k->lease > 0 && k->lease < LEASE_LEAST)
		return refuse_config("a lease has 0.1 s at least");
	if (k->watchdog > 0 && k->watchdog < WATCHDOG_LEAST)
		return refuse_config("a watchdog has 0.01 s at least");
	if (k->checkpoint_every > 0 &&
	    k->checkpoint_every < CHECKPOINT_EVERY_LEAST)
		return refuse_config("checkpoint_every has 0.001 s at least");
	if (k->max_frame > 0 && k->max_frame < MAX_FRAME_LEAST)
		return refuse_config("max_frame is 4,096 bytes at least");
	if (!is_duration(k->grace) && k->grace != EVC_NO_GRACE)
		return refuse_config("grace is seconds, >= 0, or EVC_NO_GRACE");
	if (k->watchdog_file != NULL && k->watchdog_file[0] != '\0' &&
	    (k->watchdog == 0 || isinf(k->watchdog)))
		return refuse_config("watchdog_file without a watchdog");
	if (k->flags != 0 || !RESERVED_IS_ZERO(k->reserved_))
		return refuse_config("flags or reserved room is not zero");
	if (evc__is_hosted(k->reactor))
		return refuse_config("a hosted reactor; a cluster needs a loop "
				     "of libev");
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
	st = check_config(config);
	if (st < 0)
		return st;
	*ret = *config;
	if (ret->name != NULL && ret->name[0] == '\0')
		ret->name = NULL;
	if (ret->checkpoint != NULL && ret->checkpoint[0] == '\0')
		ret->checkpoint = NULL;
	if (ret->watchdog_file != NULL && ret->watchdog_file[0] == '\0')
		ret->watchdog_file = NULL;
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
	if (ret->max_frame > MAX_FRAME_MOST)
		ret->max_frame = MAX_FRAME_MOST;
	if (ret->checkpoint_every == 0)
		ret->checkpoint_every = CHECKPOINT_EVERY;
	return 0;
}
