/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lease: what the coordinator waits for before it gives away again what
 * this node has.
 *
 * It is over so long after the renewal was SENT: the server counts from when it
 * came there.  The workers know that time, too, and end by themselves then,
 * whatever has become of the node.
 */
#include "redis/node/node.h"

void
evc__node_life_resume(struct life *l)
{
	evc__node_values_resume(l);
	evc__node_ask_resume(l);
	evc__node_hear(l);
	evc__node_send(l);
}

static void
on_renewed(struct redis_client *cl, const redisReply *r, void *arg)
{
	struct life *l = arg;
	uint64_t sent = l->sent_ns;
	const char *word, *why;
	char text[REDIS_WHY_ROOM];
	struct text t = evc__text_in(text, sizeof text);
	bool fine, was = l->linked;
	size_t n;

	(void)cl;
	l->pending--;
	l->sent_ns = 0;
	word = evc__reply_word(r);
	fine = word != NULL && strcmp(word, "ok") == 0;
	if (!fine)
		evc__node_runs_lost(l);
	if (r == NULL || !life_says(l))
		return;
	if (word != NULL && strcmp(word, "fenced") == 0) {
		why = evc__reply_bytes(r, 1, &n);
		evc__node_life_end(l, "was fenced: %s",
				   why != NULL ? why : "its lease is over");
		return;
	}
	if (fine) {
		evc__node_lease_until(l, sent);
		if (l->alone)
			evc__node_say(l->node, EVC_LOG_INFO,
				      "works for generation %s of %s again",
				      l->gen, l->node->address.ns);
		l->alone = false;
	} else if (word != NULL && strcmp(word, "alone") == 0) {
		evc__node_say(l->node, EVC_LOG_WARNING,
			      "has lost the coordinator of generation %s",
			      l->gen);
		l->alone = true;
	} else {
		evc__reply_why(r, &t);
		evc__node_say(l->node, EVC_LOG_ERROR,
			      "cannot renew its lease: %s", text);
	}
	if (word != NULL && !was) {
		l->linked = true;
		evc__node_life_resume(l);
	}
	/* It may have been refused before. */
	evc__node_hear(l);
	evc__node_hear_trim(l);
}

void
evc__node_lease_renew(struct life *l)
{
	struct node *n = l->node;
	struct redis_args a = { 0 };

	/* One at a time: its time has to be known. */
	if (l->sent_ns != 0 || !evc__redis_client_is_up(n->client))
		return;
	evc__args_key(&a, &n->address, "coord");
	evc__args_key(&a, &n->address, "gen");
	evc__args_key(&a, &n->address, "lease:%s", n->name);
	evc__args_key(&a, &n->address, "%s:beat:%s.%llu", l->gen, n->name,
		      (unsigned long long)l->inc);
	evc__node_life_key(l, &a, "runs");
	evc__args_text(&a, l->gen);
	evc__args_text(&a, l->stamp);
	evc__args_fmt(&a, "%ld", l->lease_ms);
	evc__args_fmt(&a, "%llu", (unsigned long long)++l->beat);
	evc__args_fmt(&a, "%ld", (long)KEYS_PX(l->lease_ms));
	evc__args_text(&a, n->name);
	evc__args_text(&a, evc__node_runs_new(l));
	l->sent_ns = sync_mono();
	if (!evc__node_life_script(l, SCRIPT_RENEW, 5, on_renewed, l, &a)) {
		l->sent_ns = 0;
		evc__node_runs_lost(l);
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
evc__node_lease_is_over(const struct life *l)
{
	return l->deadline_ns != 0 && sync_mono() >= l->deadline_ns;
}

static void
on_deadline(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	(void)ev;
	(void)events;
	evc__node_life_end(timer->data, "has lost its lease");
}

void
evc__node_lease_until(struct life *l, uint64_t sent_ns)
{
	struct node *n = l->node;

	l->deadline_ns = sent_ns + l->lease_ns;
	if (n->ops->until != NULL && l->engine != NULL)
		n->ops->until(l->engine, l->deadline_ns);
	if (!ev_is_active(&l->renew))
		ev_timer_again(n->ev, &l->renew);
	redis_timer_in(n->ev, &l->deadline, evc__left(l->deadline_ns));
}

void
evc__node_lease_init(struct life *l)
{
	ev_init(&l->renew, on_renew);
	l->renew.repeat = (double)l->lease_ms / 4000;
	ev_init(&l->deadline, on_deadline);
	l->renew.data = l->deadline.data = l;
}
