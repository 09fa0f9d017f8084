/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of the engine "redis" for programs: those of a coordinator and
 * of a node, by the scheme of an address.
 * Called by: the program, and libevcoord-cluster by the table.
 * Locks: none; constants.
 */
#include <evcoord/redis.h>

#include "redis/engine/engine.h"
#include "redis/node/node.h"

#define OPS(scheme_, usage_) \
	{ \
		.abi = EVC_ENGINE_ABI, \
		.caps = EVC_ENGINE_DEADLINES | EVC_ENGINE_KILLS | \
			EVC_ENGINE_VARIABLES | EVC_ENGINE_BEGINS, \
		.scheme = (scheme_), .usage = (usage_), \
		.options = evc__redis_options, .open = evc__redis_open, \
		.wake = evc__notes_wake, .cancel = evc__notes_cancel, \
		.cancel_one = evc__notes_cancel_one, .kill = evc__notes_kill, \
		.forget = evc__notes_forget, .leave = evc__notes_leave, \
		.close = evc__redis_close, \
		.stack = evc__notes_stack, .ask = evc__redis_ask, .serve = evc__redis_serve, \
		.served = evc__redis_served, \
	}

static const evc_engine_ops engines[] = {
	OPS("redis", "redis://HOST:PORT/NAMESPACE"),
	OPS("rediss", "rediss://HOST:PORT/NAMESPACE"),
	OPS("unix", "unix:///PATH/TO/SOCKET/NAMESPACE"),
};

const evc_engine_ops *
evc_redis_engine(const char *scheme)
{
	size_t i;

	if (scheme == NULL)
		return NULL;
	for (i = 0; i < sizeof engines / sizeof engines[0]; i++)
		if (strcmp(engines[i].scheme, scheme) == 0)
			return &engines[i];
	return NULL;
}
