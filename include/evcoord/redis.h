/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Redis: the engine of clusters beyond one machine, for addresses
 *
 *	redis://HOST:PORT/NAMESPACE
 *	rediss://HOST:PORT/NAMESPACE
 *	unix:///PATH/TO/SOCKET/NAMESPACE
 *
 * It is found by itself when libevcoord-redis is linked, or is where the
 * system's libraries are; evcoord-redis(7) says how it is used.  Programs need
 * this header to name it in evc_cluster_config.engines.
 */
#ifndef EVCOORD_REDIS_H
#define EVCOORD_REDIS_H

#include <evcoord/cluster.h>

EVC_BEGIN_DECLS_

/*
 * An engine for that scheme.
 *
 * Thread:    any.
 * Ownership: static.
 * Returns:   the engine; NULL when it serves no such scheme (as "rediss" where
 *            hiredis has no TLS: then opening such an address says so), and for
 *            NULL.
 * Since:     0.1
 */
EVC_API const evc_engine_ops *
evc_redis_engine(const char *scheme);

EVC_END_DECLS_

#endif
