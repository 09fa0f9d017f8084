/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client and Sentinels: three of them watch a master with one replica; when
 * the master is killed the client comes up on the other server.
 */
#include "../support/redis_client_util.h"
#include "../support/redis_sentinel_util.h"

START_TEST(a_failover)
{
	struct world w = { .patience = 2 };
	char uri[256];

	rs_start(&w.s);
	sentinels_start(&w.s);
	world_open(&w);
	/* The first of them is none at all. */
	snprintf(uri, sizeof(uri),
		 "redis://127.0.0.1:%d/ns?master=mine&also=127.0.0.1:%d"
		 "&also=localhost:%d&also=127.0.0.1:%d",
		 rs_free_port(), watchers[0].port, watchers[1].port,
		 watchers[2].port);
	begin(&w, uri);
	TURN(&w, w.ups == 1);
	ck_assert_int_eq(w.downs, 0);
	ck_assert(say(&w, REDIS_SAY, on_answer, "SET", "a", "b", NULL));
	TURN(&w, w.answers == 1);
	ck_assert_int_eq(rs_number(&w.s, "EXISTS a"), 1);
	UNTIL(rs_number(&replica, "EXISTS a") == 1);
	rs_kill(&w.s);
	TURN(&w, w.downs > 0);
	/* And one of those who know it is gone, too. */
	rs_kill(&watchers[0]);
	sentinels_await_failover();
	TURN(&w, w.ups == 2);
	ck_assert(!w.same);
	ck_assert(say(&w, REDIS_SAY, on_answer, "SET", "c", "d", NULL));
	TURN(&w, w.answers == 2);
	ck_assert_int_eq(rs_number(&replica, "EXISTS c"), 1);
	end(&w);
	sentinels_end();
}
END_TEST

START_TEST(a_master_nobody_knows)
{
	struct world w = { .cl = NULL };
	char uri[256];

	rs_start(&w.s);
	watchers[0].sentinel = true;
	rs_start(&watchers[0]);
	world_open(&w);
	snprintf(uri, sizeof(uri), "redis://127.0.0.1:%d/ns?master=mine",
		 watchers[0].port);
	begin(&w, uri);
	TURN(&w, w.downs == 1);
	HAS(w.why, "knows no master");
	/* What is asked is no Sentinel. */
	evc__redis_client_free(w.cl);
	evc__redis_address_free(&w.at);
	snprintf(uri, sizeof(uri), "redis://127.0.0.1:%d/ns?master=mine",
		 w.s.port);
	w.downs = 0;
	begin(&w, uri);
	TURN(&w, w.downs == 1);
	HAS(w.why, "this is no Sentinel, and the address has master=");
	rs_free(&watchers[0]);
	end(&w);
}
END_TEST

RS_MAIN("redis/sentinel", a_failover, a_master_nobody_knows)
