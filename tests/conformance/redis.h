/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the engine "redis" needs around it: one server for the whole program, which
 * the runner's process starts, and for each address of a test a namespace of its
 * own with a node or more, which the fixture ends.  A row that has to harm the server has
 * one of its own.
 */
#ifndef TESTS_CONFORMANCE_REDIS_H
#define TESTS_CONFORMANCE_REDIS_H

#include "../support/redis_node_util.h"

#ifdef TESTS_HAVE_REDIS

#define REDIS_LACKS "no server on this machine"

#include <evcoord/redis.h>

#include "../support/redis_util.h"

enum { ADDRESSES = 16 };

static struct redis_server shared_server;

/* Of the test that runs. */
static struct {
	struct redis_server *server, own;
	bool may_expire; /* a coordinator has left it to the server to delete
			    its keys */
	int serial;
	struct {
		char uri[200];
		pid_t node; /* 0: it has none, or not any more */
	} at[ADDRESSES];
	int n;
} redis;

/* On this machine? */
static inline bool
redis_is_there(void)
{
	return rs_program() != NULL;
}

/* Once, in the runner's process. */
static inline void
redis_begin(void)
{
	/* Static libraries: this call links the engine, for opens and nodes. */
	ck_assert_ptr_nonnull(evc_redis_engine("redis"));
	if (redis_is_there())
		rs_start(&shared_server);
}

static inline void
redis_end(void)
{
	if (shared_server.pid != 0)
		rs_free(&shared_server);
}

/* A server of this test alone, before its first address. */
static MAYBE_UNUSED struct redis_server *
redis_own_server(void)
{
	redis.server = &redis.own;
	return redis.server;
}

/* A namespace that nobody has had. */
static inline void
redis_another(const char *options, char *buf, size_t n)
{
	char ns[48];

	if (redis.server == NULL)
		redis.server = &shared_server;
	if (redis.server->pid == 0)
		rs_start(redis.server);
	snprintf(ns, sizeof(ns), "t%d-%d", (int)getpid(), redis.serial++);
	rs_uri(redis.server, ns, options, buf, n);
}

/* In a fork child: the addresses so far are those of the parent. */
static MAYBE_UNUSED void
redis_forget(void)
{
	redis.n = 0;
}

/* The node of the first address that is not forgotten. */
static MAYBE_UNUSED void
redis_end_first(void)
{
	node_end(redis.at[0].node);
}

/* Nobody is to be started there, or somebody was. */
static inline void
redis_note(const char *uri, pid_t node)
{
	ck_assert_int_lt(redis.n, ADDRESSES);
	snprintf(redis.at[redis.n].uri, sizeof(redis.at[0].uri), "%s", uri);
	redis.at[redis.n++].node = node;
}

/* Nodes for this address, if it is the first time that it is asked for: each has
   a worker at least. */
static inline bool
redis_needs_nodes(const char *uri, unsigned n, unsigned n_workers)
{
	unsigned i, mine;

	for (i = 0; i < (unsigned)redis.n; i++)
		if (strcmp(redis.at[i].uri, uri) == 0)
			return false;
	for (i = 0; i < n && n_workers > 0; i++) {
		mine = i + 1 < n ? n_workers / (n - i) : n_workers;
		if (mine > 0)
			redis_note(uri, node_start(uri, mine));
		n_workers -= mine;
	}
	return true;
}

/* A coordinator of this test leaves what it has to the server. */
static MAYBE_UNUSED void
redis_leaves_keys(void)
{
	redis.may_expire = true;
}

/* One whose children the workers are? */
static MAYBE_UNUSED bool
redis_is_node(pid_t pid)
{
	int i;

	for (i = 0; i < redis.n; i++)
		if (redis.at[i].node == pid)
			return true;
	return false;
}

/* What may stay of the namespaces of this test, and no more. */
static inline void
redis_nothing_is_left(struct redis_server *s)
{
	static const char *const stay[] = { ":ver", ":gen", ":var", ":count" };
	redisReply *r = rs_ask(s, "KEYS {t%d-*}*", (int)getpid());
	size_t i, k;

	ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
	for (i = 0; i < r->elements; i++) {
		const char *tail = strchr(r->element[i]->str, '}');

		for (k = 0; k < 4 && tail != NULL; k++)
			if (strcmp(tail + 1, stay[k]) == 0)
				break;
		if (k == 4 && redis.may_expire)
			/* -2: it has ended since KEYS was answered. */
			ck_assert_msg(rs_number(s, "PTTL %s",
						r->element[i]->str) != -1,
				      "%s stays", r->element[i]->str);
		else
			ck_assert_msg(k < 4, "%s is left",
				      r->element[i]->str);
	}
	freeReplyObject(r);
	rs_unlink(s);
}

static inline void
redis_test_ends(void)
{
	int i;

	for (i = 0; i < redis.n; i++)
		if (redis.at[i].node != 0)
			node_end(redis.at[i].node);
	redis.n = 0;
	if (redis.server == &shared_server)
		redis_nothing_is_left(&shared_server);
	if (redis.server == &redis.own)
		rs_free(&redis.own);
	redis.server = NULL;
}

/* The children that the runner's process has anyway, when it runs the tests
   itself. */
static inline int
redis_children(void)
{
	return shared_server.pid != 0 ? 2 : 0;
}

#else /* no hiredis: no engine "redis" */

#define REDIS_LACKS "it is not built without hiredis"

static inline bool
redis_is_there(void)
{
	return false;
}

static inline void
redis_begin(void)
{
}

static inline void
redis_end(void)
{
}

static inline void
redis_another(const char *options, char *buf, size_t n)
{
	(void)options;
	snprintf(buf, n, "redis://");
}

static MAYBE_UNUSED void
redis_forget(void)
{
}

static MAYBE_UNUSED void
redis_end_first(void)
{
}

static inline void
redis_note(const char *uri, pid_t node)
{
	(void)uri;
	(void)node;
}

static inline bool
redis_needs_nodes(const char *uri, unsigned n, unsigned n_workers)
{
	(void)uri;
	(void)n;
	(void)n_workers;
	return false;
}

static MAYBE_UNUSED void
redis_leaves_keys(void)
{
}

static MAYBE_UNUSED bool
redis_is_node(pid_t pid)
{
	(void)pid;
	return false;
}

static inline void
redis_test_ends(void)
{
}

static inline int
redis_children(void)
{
	return 0;
}

#endif
#endif
