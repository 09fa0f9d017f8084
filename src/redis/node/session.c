/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all files need of a session: lines of the log, keys, commands, and the
 * end of the session at once.
 * Called by: all files of the node.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

void
evc__node_say(struct node *n, int level, const char *fmt, ...)
{
	char said[REDIS_WHY_SIZE];
	struct text t = evc__text_in(said, sizeof said);
	va_list ap;

	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	if (strcmp(said, n->said) == 0)
		return;
	evc__copy(n->said, sizeof n->said, said);
	evc_log(n->scope, level, NULL, "redis: node %s %s", n->name, said);
}

void
evc__node_trouble(struct node *n, enum trouble_of of, const char *what,
		  const redisReply *r)
{
	char why[REDIS_WHY_SIZE];
	struct text t = evc__text_in(why, sizeof why);

	evc__text_fmt(&t, "%s: %s", what, evc__reply_why(r));
	if (!evc__trouble_is_told(&n->told, of, why))
		evc__node_say(n, EVC_LOG_ERROR, "%s", why);
}

/* ---- to send ---- */

void
evc__node_key(const struct session *s, struct redis_args *a, const char *what)
{
	evc__args_key(a, &s->node->address, "%s:%s", s->gen, what);
}

void
evc__node_add_inc(const struct session *s, struct redis_args *a)
{
	evc__args_fmt(a, "%llu", (unsigned long long)s->inc);
}

bool
evc__node_command(struct session *s, enum redis_which which, redis_reply_fn *fn,
		  void *arg, struct redis_args *a)
{
	bool sent = evc__redis_send(s->node->client, which, fn, arg, a);

	if (sent && fn != NULL)
		s->pending++;
	return sent;
}

bool
evc__node_script(struct session *s, enum redis_script script, unsigned n_keys,
		 redis_reply_fn *fn, void *arg, struct redis_args *a)
{
	bool sent =
		evc__redis_script(s->node->client, script, n_keys, fn, arg, a);

	if (sent && fn != NULL)
		s->pending++;
	return sent;
}

/* ---- the end, at once ---- */

void
evc__node_stop_timers(struct session *s)
{
	struct ev_loop *ev = s->node->ev;

	s->linked = false;
	ev_timer_stop(ev, &s->lease.renew);
	ev_timer_stop(ev, &s->lease.deadline);
	ev_timer_stop(ev, &s->outbox.again);
	ev_timer_stop(ev, &s->back);
}

void
evc__node_end(struct session *s, const char *fmt, ...)
{
	struct node *n = s->node;
	char why[REDIS_WHY_SIZE];
	struct text t = evc__text_in(why, sizeof why);
	va_list ap;
	unsigned i;

	if (!session_says(s))
		return;
	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	evc__node_say(n, EVC_LOG_WARNING, "%s%s", why,
		      s->engine != NULL ? ": its workers are killed" : "");
	s->state = SESSION_ENDING;
	evc__node_stop_timers(s);
	if (s->engine == NULL) {
		s->state = SESSION_OVER;
		return;
	}
	for (i = 0; i < n->n_workers; i++)
		n->ops->kill(s->engine, i);
	n->ops->leave(s->engine);
}

void
evc__node_end_if_over(struct session *s, const redisReply *r)
{
	if (evc__reply_is(r, "fenced"))
		evc__node_end(s, "was fenced: its lease is over, or the "
				 "generation");
	else if (evc__reply_is(r, "gone"))
		evc__node_end(s, "was refused: the server has lost variables");
}

bool
evc__node_is_unknown(const struct session *s)
{
	/* Registrations of very many nodes take their time. */
	double most = 6 * (double)s->lease_ns / 1e9;

	return s->inbox.heard == 0 &&
	       ev_now(s->node->ev) - s->begun > (most < 10 ? 10 : most);
}

void
evc__node_no_memory(struct session *s)
{
	s->node->no_memory = true;
	evc__node_end(s, "has no memory");
}
