/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks Sentinels for the master.  The client asks them in turn, each by a short
 * connection, until one answers.  The server itself has to confirm that it is
 * the master (login.c).
 * Called by: client.c, and the connection's replies.
 * Locks: none; loop thread only.
 */
#include "redis/client/client.h"

#define ASK_LIMIT 1.0 /* seconds for a Sentinel */

static void
on_master(const redisReply *r, void *arg)
{
	struct redis_client *cl = arg;
	size_t n_host;
	const char *host = evc__reply_bytes(r, 0, &n_host);
	int64_t port;

	if (r == NULL)
		return;
	if (r->type == REDIS_REPLY_NIL) {
		evc__client_lost(cl, "this Sentinel knows no master \"%s\"",
				 cl->env.address->master);
		return;
	}
	if (evc__reply_is_error(r, "ERR unknown command")) {
		evc__client_lost(cl, "this is no Sentinel, and the address has"
				     " master=");
		return;
	}
	if (host == NULL || n_host == 0 || memchr(host, '\0', n_host) != NULL ||
	    !evc__reply_number(r, 1, &port) || port < 1 || port > 65535) {
		evc__client_lost(cl, "%s", evc__reply_why(r));
		return;
	}
	sync_free(cl->master);
	cl->master = sync_alloc(1, n_host + 1);
	if (cl->master == NULL) {
		evc__client_lost(cl, "no memory");
		return;
	}
	memcpy(cl->master, host, n_host);
	cl->master_port = (unsigned)port;
	cl->asked = 0;
	/* The connection cannot be closed within its own reply. */
	cl->state = CLIENT_FOUND;
	redis_timer_in(cl->ev, &cl->again, 0);
}

void
evc__sentinel_end(struct redis_client *cl)
{
	evc__client_link_close(&cl->ask);
	evc__link_answer_none(&cl->ask);
}

static void
ask_sentinel(struct redis_client *cl, const char *number)
{
	struct redis_args a = { .n = 0 };

	redis_timer_in(cl->ev, &cl->limit, ASK_LIMIT);
	if (!evc__link_connect(&cl->ask, number, cl->lookup_port))
		return;
	evc__args_text(&a, "SENTINEL");
	evc__args_text(&a, "get-master-addr-by-name");
	evc__args_text(&a, cl->env.address->master);
	if (!evc__link_say(&cl->ask, on_master, cl, &a))
		evc__client_lost(cl, "no memory");
}

void
evc__sentinel_begin(struct redis_client *cl)
{
	const struct redis_address *at = cl->env.address;
	const struct redis_place *one =
		&at->sentinels[cl->sentinel++ % at->n_sentinels];

	cl->state = CLIENT_ASKS;
	evc__client_place(cl, one->host, one->port);
	evc__lookup_begin(cl, one->host, one->port, ask_sentinel);
}
