/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a life of the node ends: at once, or so that what runs may end and is
 * told.
 *
 *     JOINING, LIVE --leave--> LEAVING --closed--> SAYING --told--> OVER
 *          \                      |                  |              ^
 *           `------- end ---------+-> ENDING --closed+--------------'
 */
#include "redis/node/node.h"

void
evc__node_life_leave(struct life *l)
{
	unsigned i;

	/* One that registers leaves when that was answered. */
	if (l->state != LIFE_LIVE)
		return;
	evc__node_say(l->node, EVC_LOG_INFO, "leaves generation %s", l->gen);
	l->state = LIFE_LEAVING;
	for (i = 0; i < l->node->n_workers; i++)
		evc__node_slot_back(&l->slots[i], UINT64_MAX);
	/* Those that run something end when that has; what waits there behind
	   it comes back. */
	l->node->ops->leave(l->engine);
}

void
evc__node_over(struct node *n, evc_status status)
{
	n->over = true;
	if (n->status == 0)
		n->status = status;
	if (n->life != NULL)
		evc__node_life_leave(n->life);
}

void
evc__node_life_free(struct life *l)
{
	struct parcel *p;
	unsigned i;

	evc__node_life_stop(l);
	for (i = 0; i < l->node->n_workers; i++) {
		evc__node_ask_drop(&l->slots[i]);
		evc__node_slot_clear(&l->slots[i]);
	}
	while ((p = l->first) != NULL) {
		l->first = p->next;
		evc__node_parcel_free(p);
	}
	evc__node_values_clear(l);
	evc__node_runs_lost(l);
	sync_free(l->slots);
	sync_free(l);
}

void
evc__node_life_closed(struct life *l)
{
	struct node *n = l->node;

	n->ops->close(l->engine);
	l->engine = NULL;
	if (l->state == LIFE_LEAVING) {
		l->state = LIFE_SAYING;
		l->say_by_ns = evc__until_ns(l->lease_ns);
		return;
	}
	if (l->state != LIFE_ENDING)
		evc__node_life_stop(l);
	l->state = LIFE_OVER;
	/* Nobody would look at it any more. */
	if (n->lost && n->client == NULL) {
		evc__node_life_free(l);
		n->life = NULL;
	}
}

/* ---- the last word ---- */

static void
on_left(struct redis_client *cl, const redisReply *r, void *arg)
{
	struct life *l = arg;
	char why[REDIS_WHY_ROOM];
	struct text t = evc__text_in(why, sizeof why);

	(void)cl;
	l->pending--;
	l->leave_sent = false;
	if (l->state != LIFE_SAYING || r == NULL)
		return;
	/* Fenced: it is not awaited any more. */
	if (evc__reply_word(r) != NULL) {
		evc__node_say(l->node, EVC_LOG_INFO, "has left generation %s",
			      l->gen);
		evc__node_life_stop(l);
		l->state = LIFE_OVER;
		return;
	}
	evc__reply_why(r, &t);
	evc__node_say(l->node, EVC_LOG_WARNING, "cannot leave: %s", why);
	l->refused = true;
	ev_timer_again(l->node->ev, &l->again);
}

void
evc__node_life_last_word(struct life *l)
{
	struct node *n = l->node;
	struct bytes left = { 0 };
	struct redis_args a = { 0 }, runs = { 0 };

	/* As if the server were away; but the lease is renewed. */
	if (l->refused && evc__left_ns(l->say_by_ns) == 0) {
		evc__node_life_end(l, "could not say what it has done");
		return;
	}
	if (!l->linked || l->first != NULL || l->refused || l->leave_sent)
		return;
	if (evc__frame_put_bare(&left, FRAME_LEFT) < 0) {
		evc__node_life_no_memory(l);
		return;
	}
	evc__args_text(&runs, "HDEL");
	evc__node_life_key(l, &runs, "runs");
	evc__args_text(&runs, n->name);
	evc__redis_send(n->client, REDIS_SAY, NULL, NULL, &runs);
	evc__args_key(&a, &n->address, "lease:%s", n->name);
	evc__node_life_key(l, &a, "ev");
	evc__args_text(&a, l->stamp);
	evc__args_text(&a, n->name);
	evc__node_life_inc(l, &a);
	/* If it is sent again it is the same one. */
	evc__args_fmt(&a, "%llu", (unsigned long long)l->seq + 1);
	evc__args_add(&a, bytes_at(&left), left.n);
	l->leave_sent =
		evc__node_life_script(l, SCRIPT_LEAVE, 2, on_left, l, &a);
	bytes_free(&left);
}
