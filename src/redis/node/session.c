/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all files say and ask for a life of the node, and its end at once.
 */
#include "redis/node/node.h"

void
evc__node_say(struct node *n, int level, const char *fmt, ...)
{
	char said[REDIS_WHY_ROOM];
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

/* ---- to send ---- */

void
evc__node_life_key(const struct life *l, struct redis_args *a, const char *what)
{
	evc__args_key(a, &l->node->address, "%s:%s", l->gen, what);
}

void
evc__node_life_inc(const struct life *l, struct redis_args *a)
{
	evc__args_fmt(a, "%llu", (unsigned long long)l->inc);
}

bool
evc__node_life_send(struct life *l, enum redis_which which, redis_reply_fn *fn,
		    void *arg, struct redis_args *a)
{
	bool sent = evc__redis_send(l->node->client, which, fn, arg, a);

	if (sent && fn != NULL)
		l->pending++;
	return sent;
}

bool
evc__node_life_script(struct life *l, enum redis_script script, unsigned n_keys,
		      redis_reply_fn *fn, void *arg, struct redis_args *a)
{
	bool sent =
		evc__redis_script(l->node->client, script, n_keys, fn, arg, a);

	if (sent && fn != NULL)
		l->pending++;
	return sent;
}

/* ---- its end, at once ---- */

void
evc__node_life_stop(struct life *l)
{
	struct ev_loop *ev = l->node->ev;

	l->linked = false;
	ev_timer_stop(ev, &l->renew);
	ev_timer_stop(ev, &l->deadline);
	ev_timer_stop(ev, &l->again);
	ev_timer_stop(ev, &l->back);
}

void
evc__node_life_end(struct life *l, const char *fmt, ...)
{
	struct node *n = l->node;
	char why[REDIS_WHY_ROOM];
	struct text t = evc__text_in(why, sizeof why);
	va_list ap;
	unsigned i;

	if (!life_says(l))
		return;
	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	evc__node_say(n, EVC_LOG_WARNING, "%s%s", why,
		      l->engine != NULL ? ": its workers are killed" : "");
	l->state = LIFE_ENDING;
	evc__node_life_stop(l);
	if (l->engine == NULL) {
		l->state = LIFE_OVER;
		return;
	}
	for (i = 0; i < n->n_workers; i++)
		n->ops->kill(l->engine, i);
	n->ops->leave(l->engine);
}

void
evc__node_life_no_memory(struct life *l)
{
	evc__node_life_end(l, "has no memory");
}
