/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks for a coordinator: one that has the lock, a generation, and options
 * with the length of leases.  The time between two looks grows.
 * Called by: node.c; the client.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

#include "base/backoff.h"

#define BACKOFF_FIRST_NS UINT64_C(50000000)
#define BACKOFF_MOST_NS UINT64_C(1000000000)
#define LEASES_ALONE 4
#define LEASE_LEAST 20 /* ms */
#define LEASE_MOST 86400000

void
evc__node_look_later(struct node *n)
{
	n->search.wait_ns = evc__backoff_next(
		n->search.wait_ns, BACKOFF_FIRST_NS, BACKOFF_MOST_NS);
	redis_timer_in(n->ev, &n->search.look, (double)n->search.wait_ns / 1e9);
}

/* ---- the options of its generation ---- */

/* Read the options: "LEASE_MS MAX_FRAME". */
static bool
read_opts(const redisReply *r, long *ret_lease_ms, size_t *ret_max_frame)
{
	unsigned long long lease, frame;
	char *end;

	if (r->type != REDIS_REPLY_STRING || r->len > 40 || r->str[0] < '0' ||
	    r->str[0] > '9')
		return false;
	errno = 0;
	lease = strtoull(r->str, &end, 10);
	if (errno != 0 || *end != ' ' || end[1] < '0' || end[1] > '9')
		return false;
	frame = strtoull(end + 1, &end, 10);
	if (errno != 0 || *end != '\0' || lease < LEASE_LEAST ||
	    lease > LEASE_MOST || frame == 0 || frame > UINT32_MAX)
		return false;
	*ret_lease_ms = (long)lease;
	*ret_max_frame = (size_t)frame;
	return true;
}

static void
on_opts(const redisReply *r, void *arg)
{
	struct node *n = arg;
	size_t max_frame;
	long lease_ms;

	n->search.asked = false;
	if (n->over || r == NULL)
		return;
	if (read_opts(r, &lease_ms, &max_frame)) {
		if (!evc__node_session_begin(n, lease_ms, max_frame) &&
		    !n->over)
			evc__node_look_later(n);
		return;
	}
	/* A new coordinator writes its options soon. */
	if (r->type != REDIS_REPLY_NIL) {
		evc__node_say(n, EVC_LOG_ERROR,
			      "cannot read the options of generation %s: %s",
			      n->search.gen,
			      r->type == REDIS_REPLY_ERROR ? evc__reply_why(r)
							   : "garbage");
	}
	evc__node_look_later(n);
}

static void
ask_opts(struct node *n)
{
	struct redis_args a = { 0 };

	evc__args_text(&a, "GET");
	evc__args_key(&a, &n->address, "%s:opts", n->search.gen);
	n->search.asked = evc__redis_send(n->client, REDIS_SAY, on_opts, n, &a);
	if (!n->search.asked)
		evc__node_look_later(n);
}

/* ---- the search ---- */

static bool
is_number(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n && s[i] >= '0' && s[i] <= '9'; i++)
		;
	return n > 0 && n < sizeof((struct coord_search *)NULL)->gen && i == n;
}

/* Read ver, gen and coord.  false: no coordinator for this node. */
static bool
read_found(struct node *n, const redisReply *r)
{
	size_t n_ver, n_gen, n_coord;
	const char *ver = evc__reply_bytes(r, 0, &n_ver);
	const char *gen = evc__reply_bytes(r, 1, &n_gen);
	const char *coord = evc__reply_bytes(r, 2, &n_coord);

	if (r->type != REDIS_REPLY_ARRAY || r->elements != 3) {
		evc__node_say(n, EVC_LOG_ERROR,
			      "cannot look for a coordinator: %s",
			      evc__reply_why(r));
		return false;
	}
	if (ver != NULL && (n_ver != strlen(PROTOCOL_VERSION) ||
			    memcmp(ver, PROTOCOL_VERSION, n_ver) != 0)) {
		evc__node_say(n, EVC_LOG_ERROR,
			      "waits: the namespace %s is of version \"%.40s\" "
			      "of the protocol, and only version %s is known "
			      "here",
			      n->address.ns, ver, PROTOCOL_VERSION);
		return false;
	}
	if (gen != NULL && !is_number(gen, n_gen)) {
		evc__node_say(n, EVC_LOG_ERROR,
			      "waits: the generation of the namespace %s is "
			      "garbage",
			      n->address.ns);
		return false;
	}
	if (gen == NULL || coord == NULL ||
	    (strlen(n->search.left) == n_gen &&
	     memcmp(gen, n->search.left, n_gen) == 0)) {
		evc__node_say(n, EVC_LOG_INFO, "waits for a coordinator");
		return false;
	}
	memcpy(n->search.gen, gen, n_gen);
	n->search.gen[n_gen] = '\0';
	evc__copy(n->search.id, sizeof n->search.id, coord);
	return true;
}

/* Has the only cluster of a node ended without telling the node?  Another
   coordinator is there, or none for longer than a coordinator waits for its
   server. */
static bool
served_is_over(struct node *n, bool found)
{
	struct coord_search *f = &n->search;

	if (!n->address.once || f->served[0] == '\0')
		return false;
	if (found) {
		f->alone_ns = 0;
		return strcmp(f->id, f->served) != 0;
	}
	if (f->alone_ns == 0)
		f->alone_ns = sync_mono();
	return sync_mono() - f->alone_ns > LEASES_ALONE * f->served_lease_ns;
}

static void
on_found(const redisReply *r, void *arg)
{
	struct node *n = arg;
	bool found;

	n->search.asked = false;
	if (n->over || r == NULL)
		return;
	found = read_found(n, r);
	if (served_is_over(n, found)) {
		evc__node_say(n, EVC_LOG_WARNING,
			      "ends: the coordinator that it worked for has "
			      "gone");
		evc__node_over(n, EVC_UNAVAILABLE);
	} else if (found) {
		ask_opts(n);
	} else {
		evc__node_look_later(n);
	}
}

static void
on_look(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct node *n = timer->data;
	struct redis_args a = { 0 };

	(void)ev;
	(void)events;
	/* The next `up` looks again. */
	if (n->over || n->session != NULL || n->search.asked ||
	    !evc__redis_client_is_up(n->client))
		return;
	evc__args_text(&a, "MGET");
	evc__args_key(&a, &n->address, "ver");
	evc__args_key(&a, &n->address, "gen");
	evc__args_key(&a, &n->address, "coord");
	n->search.asked =
		evc__redis_send(n->client, REDIS_SAY, on_found, n, &a);
	if (!n->search.asked)
		evc__node_look_later(n);
}

void
evc__node_look_init(struct node *n)
{
	ev_init(&n->search.look, on_look);
	n->search.look.data = n;
}

/* ---- the connections ---- */

void
evc__node_up(struct redis_client *cl, bool same, void *arg)
{
	struct node *n = arg;

	(void)cl;
	(void)same;
	if (n->session == NULL) {
		if (!ev_is_active(&n->search.look) && !n->search.asked) {
			n->search.wait_ns = 0;
			redis_timer_in(n->ev, &n->search.look, 0);
		}
	} else if (session_says(n->session)) {
		/* The renewal finds out whether this server has the lease. */
		evc__node_lease_renew(n->session);
	}
}

void
evc__node_down(struct redis_client *cl, const char *why, void *arg)
{
	struct node *n = arg;
	struct session *s = n->session;

	(void)why; /* the log has the text */
	if (s == NULL || s->state == SESSION_OVER)
		return;
	s->linked = false;
	evc__node_send_lost(s);
	/* The same message would come again and again. */
	if (evc__redis_client_no_memory(cl))
		evc__node_no_memory(s);
	else if (s->state == SESSION_JOINING)
		evc__node_end(s, "was not registered before its connection "
				 "was lost");
}
