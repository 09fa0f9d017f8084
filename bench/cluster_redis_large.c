/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large values over Redis: functions with arguments or a result of 4 MiB on one
 * worker of a node, one after the other.
 *
 *	redis-large-args    a value that is ready goes to the function
 *	redis-large-result  a value comes back from it
 *
 * Beside both one client's SET of as many bytes, and another client's GET of
 * them.
 */
#include <errno.h>
#include <stdlib.h>

#include "cluster_redis.h"

#define EACH 4 /* values in a sample */
#define ROUNDS 11

struct bare {
	redisContext *set, *get;
	char *bytes;
};

static void
check(redisContext *c, redisReply *r, int type)
{
	if (!r)
		bench_must_sys(EIO, c->errstr);
	if (r->type != type)
		bench_must_sys(EPROTO, r->str);
	if (type == REDIS_REPLY_STRING)
		(void)bench_large_look(r->str, r->len);
	freeReplyObject(r);
}

static double
sample_bare(void *arg)
{
	struct bare *b = arg;
	uint64_t t0 = bench_now();
	unsigned i;

	for (i = 0; i < EACH; i++) {
		check(b->set, redisCommand(b->set, "SET bare %b", b->bytes,
					   (size_t)BENCH_LARGE),
		      REDIS_REPLY_STATUS);
		check(b->get, redisCommand(b->get, "GET bare"),
		      REDIS_REPLY_STRING);
	}
	return BENCH_LARGE / 1e6 * EACH / ((double)(bench_now() - t0) / 1e9);
}

void
bench_redis_large(void)
{
	struct bench_server server;
	struct bench_large ours;
	struct bare bare;
	const struct bench_side other = { "raw/set-and-get", sample_bare, &bare,
					  0.4 };
	pid_t node;
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[1]);
	if (!bench_server_start(&server, "redis-large"))
		return;
	bare = (struct bare){ .set = bench_server_connect(&server),
			      .get = bench_server_connect(&server),
			      .bytes = bench_array(1, BENCH_LARGE) };
	node = bench_node_start(&server, "large", 1);
	bench_server_open(&server, "large", &ours.cluster, NULL);
	bench_large_compare(&ours, "redis-large-args", "redis-large-result",
			    &other, ROUNDS);
	bench_node_end(node);
	redisFree(bare.set);
	redisFree(bare.get);
	free(bare.bytes);
	bench_server_end(&server);
}
