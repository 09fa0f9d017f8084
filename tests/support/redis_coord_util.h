/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A coordinator of the engine "redis" in this process, with a server of the test's
 * own, for nodes that the test plays (redis_hand_node.h).
 */
#ifndef TESTS_SUPPORT_REDIS_COORD_UTIL_H
#define TESTS_SUPPORT_REDIS_COORD_UTIL_H

#include "redis/client/redis.h"

#include <evcoord/redis.h>

#include "support/cluster_util.h"
#include "support/proxy_util.h"
#include "support/redis_hand_node.h"
#include "support/workers_util.h"

#define LEASE 1.0
#define LEASE_MS 1000
#define LONG_MS 60000

static struct {
	struct redis_server s;
	struct census before;
	evc_coord *c;
	evc_cluster *cl;
	char uri[128];
	double lease;
} on;

/* ---- a server, a coordinator, a cluster ---- */

/* EVC_TEST_SAY=1: also for whoever watches. */
static void
keep_and_say(int level, const char *line, const evc_reason *r, void *arg)
{
	keep_said(level, line, r, arg);
	if (getenv("EVC_TEST_SAY") != NULL)
		fprintf(stderr, "%s\n", line);
}

static MAYBE_UNUSED void
open_at(const char *options)
{
	static const evc_engine_ops *engines[3];
	evc_cluster_config k = { .lease = on.lease > 0 ? on.lease : LEASE,
				 .grace = 1,
				 .worker_wait = 60,
				 .engines = engines,
				 .n_engines = 3 };
	const evc_config config = { .log = keep_and_say };

	engines[0] = evc_redis_engine("redis");
	engines[1] = evc_redis_engine("rediss");
	engines[2] = evc_redis_engine("unix");
	on.before = census_begin();
	OK(evc_new(NULL, &config, &on.c));
	on.cl = open_with(on.c, rs_uri(&on.s, "t", options, on.uri,
				       sizeof(on.uri)),
			  &k);
}

static MAYBE_UNUSED void
begin(void)
{
	rs_start(&on.s);
	open_at("");
}

/* A server that keeps its data. */
static MAYBE_UNUSED void
begin_durable(void)
{
	rs_option(&on.s, "appendonly yes");
	rs_option(&on.s, "appendfsync always");
	on.lease = 5;
	begin();
}

/* The verdict of the coordinator is st. */
static MAYBE_UNUSED void
end_cluster_says(evc_status st)
{
	end_coord_says(on.c, st);
	rs_unlink(&on.s);
	census_end(&on.before);
}

static MAYBE_UNUSED void
end_cluster(void)
{
	end_cluster_says(0);
}

/* The cluster was given up, or never had a server: its keys stay. */
static MAYBE_UNUSED void
end_lost(void)
{
	evc_cluster_close(on.cl);
	end_cluster();
	rs_free(&on.s);
}

/* Nothing is left but what is said to stay. */
static MAYBE_UNUSED void
end_says(evc_status st)
{
	bool fine;

	end_cluster_says(st);
	fine = rs_keys(&on.s, "*", false) ==
	       rs_keys(&on.s, "{t}:[vgc][eao][rnu]*", false);
	ck_assert_msg(fine, "a key is left: %zu; it was said:\n%s",
		      rs_keys(&on.s, "*", true), all_said());
	ck_assert_uint_eq(rs_keys(&on.s, "{t}:coord", true), 0);
	rs_free(&on.s);
}

static MAYBE_UNUSED void
end(void)
{
	end_says(0);
}

/* All nodes go, as they do when they are told to. */
static MAYBE_UNUSED void
end_with(struct hand_node *h)
{
	evc_cluster_close(on.cl);
	UNTIL((hn_read(h, 10), h->n_leaves > 0));
	ck_assert(hn_leave(h));
	hn_free(h);
	end();
}

/* By a proxy that takes so many ms each way. */
static MAYBE_UNUSED struct proxy
open_by_proxy(int delay)
{
	int port = on.s.port;
	struct proxy p = proxy_start((unsigned)port);

	atomic_store(&p.shared->delay, delay);
	on.s.port = (int)p.port;
	open_at("");
	on.s.port = port;
	return p;
}

/* The same with a server, and nobody is impatient. */
static MAYBE_UNUSED struct proxy
begin_with_proxy(int delay)
{
	rs_start(&on.s);
	if (on.lease == 0)
		on.lease = 20;
	return open_by_proxy(delay);
}

static MAYBE_UNUSED void
end_with_proxy(struct hand_node *h, struct proxy *p)
{
	end_with(h);
	proxy_end(p);
	on.lease = 0;
}

static MAYBE_UNUSED int64_t
sum_of(evc_remote *r)
{
	evc_value v;
	int64_t n = -1;
	evc_status st = evc_remote_fetch(r, T_LIMIT, &v);

	ck_assert_msg(st == 0, "%d, %s\n%s", st, evc_last_error(), all_said());
	OK(evc_unpack(&v, "I", &n));
	evc_remote_free(r);
	return n;
}

/* 1 + 2, which was lost with another node or life. */
static MAYBE_UNUSED void
runs_again_on(struct hand_node *h, evc_remote *r)
{
	ck_assert_uint_eq(hn_task(h)->attempt, 2);
	h->first = 0;
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
}

static MAYBE_UNUSED unsigned
n_up(void)
{
	evc_cluster_info info;

	OK(evc_cluster_get(on.cl, &info));
	return info.n_up;
}

#endif
