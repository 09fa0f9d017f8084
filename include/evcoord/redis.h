/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Redis: the engine of clusters beyond one machine, for addresses
 *
 *	redis://HOST:PORT/NAMESPACE
 *	rediss://HOST:PORT/NAMESPACE
 *	unix:///PATH/TO/SOCKET/NAMESPACE
 *
 * A cluster finds the engine by itself when libevcoord-redis is linked, or is
 * installed among the system's libraries; evcoord-redis(7) says how it is used.
 * Programs need this header only to name the engine in
 * evc_cluster_config.engines.
 */
#ifndef EVCOORD_REDIS_H
#define EVCOORD_REDIS_H

#include <evcoord/cluster.h>

EVC_BEGIN_DECLS_

/*
 * The engine for a scheme: "redis", "rediss" or "unix".
 *
 * Thread:    any.
 * Ownership: static.
 * Returns:   the engine; NULL for NULL and for a scheme that is not served.
 *            Where hiredis has no TLS, the open of a "rediss" address says so.
 * Since:     0.1
 */
EVC_API const evc_engine_ops *
evc_redis_engine(const char *scheme);

EVC_END_DECLS_

#endif
