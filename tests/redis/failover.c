/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Servers that are several: a failover by three Sentinels under a whole cluster,
 * which is a restart to coordinator and nodes; and servers of a Redis Cluster, of
 * which one has all keys of a namespace.
 */
#include "rows.h"

#include "../support/redis_sentinel_util.h"

enum { MANY = 200 };

/* ---- Sentinels ---- */

/* Coordinator and nodes know the Sentinels alone. */
static void
begin_with_sentinels(int i, const char *options)
{
	/* Longer than a failover takes: sentinels_await_failover(). */
	evc_cluster_config config = { .lease = 30 };
	int n;

	/* Both keep what they have. */
	rig(i, &(struct rig_opts){ .own = true, .append = true });
	sentinels_start(rg.server);
	n = snprintf(rg.uri, sizeof(rg.uri),
		     "redis://127.0.0.1:%d/%s?master=mine&also=127.0.0.1:%d"
		     "&also=127.0.0.1:%d%s",
		     watchers[0].port, rg.ns, watchers[1].port,
		     watchers[2].port, options);
	ck_assert_int_lt(n, (int)sizeof(rg.uri));
	snprintf(rg.node_uri, sizeof(rg.node_uri), "%s", rg.uri);
	rig_node(2);
	rig_open(&config);
}

/* What was told to be done is on both. */
static void
await_replica(void)
{
	UNTIL(rs_info(&replica, "slave_repl_offset") ==
	      rs_info(rg.server, "master_repl_offset"));
}

static void
end_with_sentinels(void)
{
	/* While there is a server. */
	rig_close();
	rig_node_ends(0, SIGTERM);
	sentinels_end();
}

START_TEST(functions_go_on)
{
	evc_remote *r[MANY];
	int i;

	begin_with_sentinels(_i, "");
	for (i = 0; i < MANY; i++) {
		if (i == MANY / 2)
			rs_kill(rg.server);
		r[i] = SCHEDULE("add", "[ii]", i, 1);
	}
	sentinels_await_failover();
	for (i = 0; i < MANY; i++)
		IS(take_number(r[i]), i + 1);
	OK(join());
	ck_assert_int_eq(rs_info(&replica, "connected_slaves"), 0);
	end_with_sentinels();
}
END_TEST

START_TEST(variables_may_be_lost)
{
	evc_reason e;
	evc_status st;
	double until;

	begin_with_sentinels(_i, "");
	DO("step", "[sd]", "n", 0.0);
	OK(join());
	rs_kill(rg.server);
	sentinels_await_failover();
	until = t_now() + T_LIMIT;
	do {
		st = evc_schedule_pack(on.cl, "add", NULL, NULL, "[ii]", 1, 2);
		t_sleep(0.01);
	} while (st == 0 && t_now() < until);
	IS(st, EVC_UNAVAILABLE);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	HAS(e.text, "variables");
	end_with_sentinels();
}
END_TEST

/* Whoever says that nothing was lost has it as it was. */
START_TEST(variables_that_are_trusted_stay)
{
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL, .deaths = 255 };
	int i;

	begin_with_sentinels(_i, "&trust-aof=1");
	for (i = 0; i < 2 * MANY; i++) {
		if (i == MANY) {
			OK(join());
			await_replica();
			rs_kill(rg.server);
			sentinels_await_failover();
		}
		OK(evc_schedule_pack(on.cl, "step", &txn, NULL, "[sd]", "n",
				     0.0));
	}
	OK(join());
	ck_assert_msg(variable("n") == 2 * MANY, "%g", variable("n"));
	end_with_sentinels();
}
END_TEST

/* ---- a Redis Cluster ---- */

static struct redis_server second;

static void
start_in_cluster(struct redis_server *s)
{
	rs_option(s, "cluster-enabled yes");
	rs_option(s, "cluster-port %d", rs_free_port());
	rs_start(s);
}

static bool
cluster_is_fine(struct redis_server *s)
{
	char text[2000];

	rs_text(s, text, sizeof(text), "CLUSTER INFO");
	return strstr(text, "cluster_state:ok") != NULL &&
	       strstr(text, "cluster_slots_ok:16384") != NULL;
}

static void
begin_with_cluster(int i)
{
	rig(i, &(struct rig_opts){ .own = true });
	rs_kill(rg.server);
	start_in_cluster(rg.server);
}

START_TEST(all_keys_have_one_slot)
{
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL, .deaths = 255 };
	int i;

	begin_with_cluster(_i);
	rs_do(rg.server, "CLUSTER ADDSLOTSRANGE 0 16383");
	UNTIL(cluster_is_fine(rg.server));
	rig_node(2);
	rig_open(NULL);
	for (i = 0; i < MANY; i++)
		OK(evc_schedule_pack(on.cl, "step", &txn, NULL, "[sd]", "n",
				     0.0));
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
	ck_assert_msg(variable("n") == MANY, "%g", variable("n"));
}
END_TEST

START_TEST(another_server_has_the_slot)
{
	evc_cluster_config config = { .worker_wait = 0.5 };

	begin_with_cluster(_i);
	start_in_cluster(&second);
	rs_do(&second, "CLUSTER ADDSLOTSRANGE 0 16383");
	rs_do(rg.server, "CLUSTER MEET 127.0.0.1 %d %s", second.port,
	      second.options[1] + strlen("cluster-port "));
	UNTIL(cluster_is_fine(rg.server));
	rig_open_in_vain(&config, "has not the keys of that namespace: MOVED");
	rig_close();
	rs_free(&second);
}
END_TEST

static const evc_function functions[] = { ROW_FUNCTIONS };

REDIS_ROWS("redis: failover", functions, ROW(functions_go_on),
	   ROW(variables_may_be_lost), ROW(variables_that_are_trusted_stay),
	   ROW(all_keys_have_one_slot), ROW(another_server_has_the_slot))
