/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks up the name of a host.  A look-up may take long and cannot be
 * interrupted, so a thread does it and posts the result; the client may be gone
 * by then.  The result has two owners, the client and the thread or its
 * message, and the last owner frees it.
 * Called by: client.c and sentinel.c.
 * Locks: none; `held` is atomic; `cl` and `found` are for the loop thread only.
 */
#include <netdb.h>
#include <netinet/in.h>

#include "redis/client/client.h"

struct lookup {
	_Atomic uint32_t held; /* atomic: number of owners */
	struct redis_client *cl; /* loop thread only; NULL: the result is not
				    wanted */
	evc_loop_ref *loop;
	evc_message message;
	found_fn *found; /* loop thread only */
	struct numbers numbers;
	char why[REDIS_WHY_SIZE];
	char host[];
};

static void
release_lookup(struct lookup *lk)
{
	if (sync_sub(&lk->held, 1) > 1)
		return;
	evc_loop_release(lk->loop);
	sync_free(lk);
}

/* ---- any thread ---- */

static void
take_numbers(const struct addrinfo *ai, struct numbers *ret)
{
	for (; ai != NULL && ret->n < NUMBERS_MOST; ai = ai->ai_next)
		if (getnameinfo(ai->ai_addr, ai->ai_addrlen, ret->text[ret->n],
				NUMBER_SIZE, NULL, 0, NI_NUMERICHOST) == 0)
			ret->n++;
}

/* 0, or an error for gai_strerror. */
static int
resolve_name(const char *host, int flags, struct numbers *ret)
{
	struct addrinfo want = { .ai_socktype = SOCK_STREAM,
				 .ai_flags = flags },
			*ai;
	int e = getaddrinfo(host, NULL, &want, &ai);

	ret->n = 0;
	if (e != 0)
		return e;
	take_numbers(ai, ret);
	freeaddrinfo(ai);
	return ret->n > 0 ? 0 : EAI_NONAME;
}

static evc_status
lookup_main(evc_coord *c, void *arg)
{
	struct lookup *lk = arg;
	struct text t = evc__text_in(lk->why, sizeof lk->why);
	int e = resolve_name(lk->host, 0, &lk->numbers);

	(void)c;
	if (e != 0)
		evc__text_fmt(&t, "its name is not known: %s", gai_strerror(e));
	/* The loop is gone, and so is the client. */
	if (evc_post_message(lk->loop, &lk->message) < 0)
		release_lookup(lk);
	return 0;
}

/* ---- the loop ---- */

static void
tell_client(struct redis_client *cl, const struct numbers *at, const char *why,
	    found_fn *found)
{
	if (at->n == 0)
		evc__client_lost(cl, "%s", why);
	else
		found(cl, at->text[cl->tries++ % at->n]);
}

static void
on_found(evc_message *m, evc_status why)
{
	struct lookup *lk =
		(struct lookup *)((char *)m - offsetof(struct lookup, message));
	struct redis_client *cl = why == 0 ? lk->cl : NULL;

	if (cl != NULL) {
		cl->lookup = NULL;
		release_lookup(lk);
		tell_client(cl, &lk->numbers, lk->why, lk->found);
	}
	release_lookup(lk);
}

static struct lookup *
new_lookup(struct redis_client *cl, const char *host, found_fn *found)
{
	size_t n = strlen(host) + 1;
	struct lookup *lk = sync_alloc(1, sizeof *lk + n);

	if (lk == NULL)
		return NULL;
	memcpy(lk->host, host, n);
	sync_store(&lk->held, 2);
	lk->cl = cl;
	lk->found = found;
	lk->loop = evc_loop_of(cl->env.reactor);
	lk->message.fn = on_found;
	lk->message.flags = EVC_AFTER_STOP;
	return lk;
}

static void
start_lookup_thread(struct redis_client *cl, const char *host, found_fn *found)
{
	const evc_member_opts opts = { .flags = EVC_AFTER_STOP |
						EVC_BACKGROUND };
	struct lookup *lk = new_lookup(cl, host, found);

	if (lk == NULL) {
		evc__client_lost(cl, "no memory");
		return;
	}
	if (evc_thread_start(cl->env.scope, "redis lookup", lookup_main, lk,
			     &opts, NULL) < 0) {
		release_lookup(lk);
		release_lookup(lk);
		evc__client_lost(cl, "its name cannot be looked up: %s",
				 evc_last_error());
		return;
	}
	cl->lookup = lk;
}

void
evc__lookup_begin(struct redis_client *cl, const char *host, unsigned port,
		  found_fn *found)
{
	struct numbers numbers;

	cl->lookup_port = port;
	redis_timer_in(cl->ev, &cl->limit, cl->env.patience);
	if (resolve_name(host, AI_NUMERICHOST, &numbers) == 0)
		tell_client(cl, &numbers, "", found);
	else
		start_lookup_thread(cl, host, found);
}

void
evc__lookup_drop(struct redis_client *cl)
{
	struct lookup *lk = cl->lookup;

	if (lk == NULL)
		return;
	cl->lookup = NULL;
	lk->cl = NULL;
	release_lookup(lk);
}
