/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three Sentinels that watch a server of the test's, and a replica of it which
 * they make the master when it dies.  Their name for it is "mine".
 */
#ifndef TESTS_SUPPORT_REDIS_SENTINEL_UTIL_H
#define TESTS_SUPPORT_REDIS_SENTINEL_UTIL_H

#include "redis_util.h"

static struct redis_server replica, watchers[3];

/* Do all know each other, and the replica? */
static inline bool
sentinels_are_ready(void)
{
	struct redis_server *x;
	redisReply *r;
	bool ready = true;

	for (x = watchers; x < watchers + 3; x++) {
		r = rs_ask(x, "INFO sentinel");
		ready &= r->str != NULL &&
			 strstr(r->str, "slaves=1,sentinels=3") != NULL;
		freeReplyObject(r);
	}
	return ready;
}

/* The master runs. */
static MAYBE_UNUSED void
sentinels_start(struct redis_server *master)
{
	struct redis_server *x;

	/* It writes to nobody when it is alone. */
	rs_do(master, "CONFIG SET repl-diskless-sync-delay 0");
	replica.append = master->append;
	rs_option(&replica, "replicaof 127.0.0.1 %d", master->port);
	rs_option(&replica, "repl-diskless-sync-delay 0");
	rs_start(&replica);
	UNTIL(rs_info(master, "connected_slaves") == 1 &&
	      rs_info(&replica, "master_link_status") == 0);
	for (x = watchers; x < watchers + 3; x++) {
		x->sentinel = true;
		rs_option(x, "sentinel monitor mine 127.0.0.1 %d 2",
			  master->port);
		rs_option(x, "sentinel down-after-milliseconds mine 500");
		rs_option(x, "sentinel failover-timeout mine 3000");
		rs_start(x);
	}
	UNTIL(sentinels_are_ready());
}

static inline bool
replica_is_master(void)
{
	redisReply *r = rs_ask(&replica, "ROLE");
	bool yes = r->elements > 0 && strcmp(r->element[0]->str, "master") == 0;

	freeReplyObject(r);
	return yes;
}

/* The master is dead.  A Sentinel that got no cpu for 2 seconds does nothing for
   30 ("tilt"). */
static MAYBE_UNUSED void
sentinels_await_failover(void)
{
	double until = t_now() + 3 * T_LIMIT;

	while (!replica_is_master() && t_now() < until)
		t_sleep(0.01);
	ck_assert_msg(replica_is_master(), "no failover by the Sentinels");
}

static MAYBE_UNUSED void
sentinels_end(void)
{
	struct redis_server *x;

	for (x = watchers; x < watchers + 3; x++)
		rs_free(x);
	rs_free(&replica);
}

#endif
