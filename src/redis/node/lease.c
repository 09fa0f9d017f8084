/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lease of the node: when it is over, the coordinator gives the node's
 * functions to others.  The lease counts from the time at which a renewal was
 * SENT; the server counts from a later time.  The workers know the end of the
 * lease, too, and end by themselves then, in any state of the node.
 * Called by: begin.c, link.c, node.c; the connection's replies.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

void
evc__node_resume(struct session *s)
{
	evc__node_values_resume(s);
	evc__node_ask_resume(s);
	evc__node_hear(s);
	evc__node_send(s);
}

static void
on_renewed(const redisReply *r, void *arg)
{
	struct session *s = arg;
	uint64_t sent = s->lease.sent_ns;
	const char *why;
	bool fine = evc__reply_is(r, "ok"), was = s->linked;
	size_t n;

	s->pending--;
	s->lease.sent_ns = 0;
	if (!fine)
		evc__node_runs_lost(s);
	if (r == NULL || !session_says(s))
		return;
	if (evc__reply_is(r, "fenced")) {
		why = evc__reply_bytes(r, 1, &n);
		evc__node_end(s, "was fenced: %s",
			      why != NULL ? why : "its lease is over");
		return;
	}
	if (fine) {
		evc__trouble_over(&s->node->told, TROUBLE_LEASE);
		evc__node_lease_until(s, sent);
		if (s->lease.alone)
			evc__node_say(s->node, EVC_LOG_INFO,
				      "works for generation %s of %s again",
				      s->gen, s->node->address.ns);
		s->lease.alone = false;
	} else if (evc__reply_is(r, "alone")) {
		evc__node_say(s->node, EVC_LOG_WARNING,
			      "has lost the coordinator of generation %s",
			      s->gen);
		s->lease.alone = true;
	} else {
		evc__node_trouble(s->node, TROUBLE_LEASE,
				  "cannot renew its lease", r);
	}
	if (evc__reply_word(r) != NULL && !was) {
		s->linked = true;
		evc__node_resume(s);
	}
	/* An earlier XREAD or XTRIM may have been refused. */
	evc__node_hear(s);
	evc__node_hear_trim(s);
}

void
evc__node_lease_renew(struct session *s)
{
	struct node *n = s->node;
	struct redis_args a = { 0 };

	/* One renewal at a time, because its time has to be known. */
	if (s->lease.sent_ns != 0 || !evc__redis_client_is_up(n->client))
		return;
	evc__args_key(&a, &n->address, "coord");
	evc__args_key(&a, &n->address, "gen");
	evc__args_key(&a, &n->address, "lease:%s", n->name);
	evc__args_key(&a, &n->address, "%s:beat:%s.%llu", s->gen, n->name,
		      (unsigned long long)s->inc);
	evc__node_key(s, &a, "runs");
	evc__args_text(&a, s->gen);
	evc__args_text(&a, s->stamp);
	evc__args_fmt(&a, "%ld", s->lease_ms);
	evc__args_fmt(&a, "%llu %llu", (unsigned long long)++s->lease.beat,
		      (unsigned long long)evc__outbox_answered(&s->outbox));
	evc__args_fmt(&a, "%ld", (long)KEYS_PX(s->lease_ms));
	evc__args_text(&a, n->name);
	evc__args_text(&a, evc__node_runs_new(s));
	s->lease.sent_ns = sync_mono();
	if (!evc__node_script(s, SCRIPT_RENEW, 5, on_renewed, s, &a)) {
		s->lease.sent_ns = 0;
		evc__node_runs_lost(s);
	}
}

static void
on_renew(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	(void)ev;
	(void)events;
	evc__node_lease_renew(timer->data);
}

bool
evc__node_lease_is_over(const struct session *s)
{
	return s->lease.deadline_ns != 0 && sync_mono() >= s->lease.deadline_ns;
}

static void
on_deadline(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct session *s = timer->data;

	(void)ev;
	(void)events;
	evc__node_end(s, evc__node_lease_is_over(s)
				 ? "has lost its lease"
				 : "cannot tell the server that it leaves");
}

void
evc__node_lease_until(struct session *s, uint64_t sent_ns)
{
	struct node *n = s->node;

	s->lease.deadline_ns = sent_ns + s->lease_ns;
	if (n->ops->until != NULL && s->engine != NULL)
		n->ops->until(s->engine, s->lease.deadline_ns);
	if (!ev_is_active(&s->lease.renew))
		ev_timer_again(n->ev, &s->lease.renew);
	redis_timer_in(n->ev, &s->lease.deadline,
		       evc__deadline_left(s->lease.deadline_ns));
}

void
evc__node_lease_init(struct session *s)
{
	ev_init(&s->lease.renew, on_renew);
	s->lease.renew.repeat = (double)RENEW_AFTER(s->lease_ms) / 1e3;
	ev_init(&s->lease.deadline, on_deadline);
	s->lease.renew.data = s->lease.deadline.data = s;
}
