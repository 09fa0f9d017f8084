/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the node tells: parcels, which go to the coordinator's stream in their
 * order.
 *
 * A parcel grows as long as it cannot be sent: what happens in one turn of the
 * loop is one command, and under load what happens in one round trip.  Plain
 * ones follow each other without waiting for answers, a few at most; one with
 * updates, and a value, is alone on its way: its answer decides what comes.
 *
 * What the server refuses stays, and is tried again after a while.  If it has
 * taken what stood behind that, the order is lost, and with it this life.
 */
#include "redis/node/node.h"

#define BACKLOG_MOST ((size_t)1 << 20)
#define UNDER_WAY 4
#define AGAIN 0.1

_Static_assert(UNDER_WAY <= UNANSWERED, "the coordinator remembers so many");

/* ---- answers ---- */

void
evc__node_parcel_free(struct parcel *p)
{
	evc__node_deals_free(p);
	bytes_free(&p->frames);
	evc_value_free(&p->value);
	sync_free(p);
}

static void
remove_first(struct life *l)
{
	struct parcel *p = l->first;

	l->first = p->next;
	if (l->first == NULL)
		l->last = NULL;
	if (l->next == p)
		l->next = p->next;
	evc__node_parcel_free(p);
}

static void
refused(struct parcel *p, const redisReply *r)
{
	struct life *l = p->l;
	char why[REDIS_WHY_ROOM];
	struct text t = evc__text_in(why, sizeof why);

	evc__reply_why(r, &t);
	evc__node_say(l->node, EVC_LOG_ERROR,
		      "cannot tell what its functions have done: %s", why);
	l->refused = true;
	/* Nothing that comes later will make them possible. */
	if (p->kind == PARCEL_DEALS && (evc__reply_is_error(r, "GARBAGE") ||
					evc__reply_is_error(r, "WRONGTYPE")))
		evc__node_deals_fail(p, r);
}

/* 1: it was taken; 0: refused; -1: the life is over. */
static int
judge(struct parcel *p, const redisReply *r)
{
	const char *word;

	if (r->type == REDIS_REPLY_ERROR)
		return 0;
	/* Nobody would ever read it, nor what was there. */
	if (r->type == REDIS_REPLY_NIL) {
		evc__node_life_end(p->l, "has nobody to tell anything: the "
					 "stream of its events is gone");
		return -1;
	}
	if (p->kind == PARCEL_PLAIN)
		return 1;
	word = evc__reply_word(r);
	if (word != NULL && strcmp(word, "fenced") == 0)
		evc__node_life_end(p->l, "was fenced: its lease is over");
	else if (word != NULL && strcmp(word, "gone") == 0)
		evc__node_life_end(p->l, "was refused: the server has lost"
					 " variables");
	else if (word == NULL || strcmp(word, "ok") != 0 ||
		 (p->kind == PARCEL_DEALS && !evc__node_deals_done(p, r)))
		evc__node_life_end(p->l, "was answered with garbage");
	return life_says(p->l) ? 1 : -1;
}

static void
on_sent(struct redis_client *cl, const redisReply *r, void *arg)
{
	struct parcel *p = arg;
	struct life *l = p->l;
	bool deals = p->kind == PARCEL_DEALS;
	int was;

	(void)cl;
	l->pending--;
	p->sent = false;
	if (r == NULL || !life_says(l))
		return;
	l->under_way--;
	was = judge(p, r);
	if (was == 0)
		refused(p, r);
	else if (was > 0 && p != l->first)
		evc__node_life_end(l, "has lost the order of what it tells");
	else if (was > 0)
		remove_first(l);
	/* Questions have waited for these updates. */
	if (deals && life_says(l))
		evc__node_ask_resume(l);
	if (l->refused && life_says(l) && l->under_way == 0)
		ev_timer_again(l->node->ev, &l->again);
}

/* ---- to send ---- */

static bool
send_plain(struct parcel *p)
{
	struct life *l = p->l;
	struct redis_args a = { 0 };

	evc__args_text(&a, "XADD");
	evc__node_life_key(l, &a, "ev");
	evc__args_text(&a, "NOMKSTREAM");
	evc__args_text(&a, "*");
	evc__args_text(&a, "w");
	evc__args_text(&a, l->node->name);
	evc__args_text(&a, "i");
	evc__node_life_inc(l, &a);
	evc__args_text(&a, "s");
	evc__args_fmt(&a, "%llu", (unsigned long long)p->seq);
	evc__args_text(&a, "d");
	evc__args_add(&a, bytes_at(&p->frames), p->frames.n);
	return evc__node_life_send(l, REDIS_SAY, on_sent, p, &a);
}

static bool
send_value(struct parcel *p)
{
	struct life *l = p->l;
	struct redis_args a = { 0 };

	evc__args_key(&a, &l->node->address, "gen");
	evc__args_key(&a, &l->node->address, "lease:%s", l->node->name);
	evc__args_key(&a, &l->node->address, "%s:v:%llu", l->gen,
		      (unsigned long long)p->id);
	evc__args_text(&a, l->gen);
	evc__args_text(&a, l->stamp);
	evc__args_fmt(&a, "%d", VALUE_PX);
	evc__args_add(&a, p->value.data, p->value.size);
	return evc__node_life_script(l, SCRIPT_KEEP, 3, on_sent, p, &a);
}

static bool
send_one(struct parcel *p)
{
	if (p->kind == PARCEL_VALUE)
		return send_value(p);
	if (p->seq == 0)
		p->seq = ++p->l->seq;
	return p->kind == PARCEL_DEALS ? evc__node_deals_send(p, on_sent)
				       : send_plain(p);
}

static bool
may_send(const struct life *l, const struct parcel *p)
{
	if (evc__redis_client_backlog(l->node->client, REDIS_SAY) >=
	    BACKLOG_MOST)
		return false;
	return l->under_way == 0 ||
	       (p->kind == PARCEL_PLAIN && l->first->kind == PARCEL_PLAIN &&
		l->under_way < UNDER_WAY);
}

void
evc__node_send(struct life *l)
{
	struct parcel *p;

	while (l->linked && !l->refused && (p = l->next) != NULL &&
	       may_send(l, p)) {
		/* Without memory, or with the connection just gone: then
		   `down` follows. */
		if (!send_one(p)) {
			if (evc__redis_client_is_up(l->node->client))
				evc__node_life_no_memory(l);
			return;
		}
		p->sent = true;
		l->under_way++;
		l->next = p->next;
	}
}

void
evc__node_send_lost(struct life *l)
{
	l->under_way = 0;
	l->next = l->first;
	l->leave_sent = false;
	/* Nobody waits for the answers that were missing any more. */
	l->refused = false;
	ev_timer_stop(l->node->ev, &l->again);
}

static void
on_again(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct life *l = timer->data;

	(void)events;
	ev_timer_stop(ev, timer);
	l->refused = false;
	l->next = l->first;
	evc__node_send(l);
}

void
evc__node_send_init(struct life *l)
{
	ev_init(&l->again, on_again);
	l->again.repeat = AGAIN;
	l->again.data = l;
}
