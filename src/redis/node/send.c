/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends the batches of the outbox, in their order.  A batch grows until it is
 * sent: one turn of the loop is one command, and under load one round trip is.
 * Plain batches are sent without waiting for answers, a few at most.  A batch
 * with updates is alone on its way, because its answer decides the next.  A
 * batch that the server refuses is sent again after a while.  If the server has
 * taken a later batch by then, the order is lost, and the session ends.
 * Called by: node.c, lease.c, link.c, begin.c, end.c.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

#define BACKLOG_MOST ((size_t)1 << 20)
#define UNDER_WAY 4
#define AGAIN 0.1

_Static_assert(UNDER_WAY <= UNANSWERED, "the coordinator remembers so many");

/* ---- answers ---- */

void
evc__node_batch_free(struct event_batch *batch)
{
	evc__node_deals_free(batch);
	bytes_free(&batch->frames);
	sync_free(batch);
}

static void
remove_first_batch(struct session *s)
{
	struct event_batch *batch = s->outbox.first;

	s->outbox.first = batch->next;
	if (s->outbox.first == NULL)
		s->outbox.last = NULL;
	if (s->outbox.next == batch)
		s->outbox.next = batch->next;
	evc__node_batch_free(batch);
}

static void
note_refusal(struct event_batch *batch, const redisReply *r)
{
	struct session *s = batch->session;

	evc__node_trouble(s->node, TROUBLE_RESULTS, "cannot send results", r);
	s->outbox.refused = true;
	/* A later try would fail, too. */
	if (batch->deals != NULL && evc__reply_status(r) == -EVC_DATA_LOSS)
		evc__node_deals_fail(batch, r);
}

/* 1: taken; 0: refused; -1: the session is over. */
static int
judge_answer(struct event_batch *batch, const redisReply *r)
{
	/* The coordinator begins another stream. */
	if (evc__reply_has_no_id(r)) {
		evc__node_end(batch->session,
			      "cannot send results: the stream of events has "
			      "no id left");
		return -1;
	}
	if (r->type == REDIS_REPLY_ERROR)
		return 0;
	/* The stream is gone, with all entries that were in it. */
	if (r->type == REDIS_REPLY_NIL) {
		evc__node_end(batch->session,
			      "cannot send results: the stream of events is "
			      "gone");
		return -1;
	}
	if (batch->deals == NULL)
		return 1;
	evc__node_end_if_over(batch->session, r);
	if (session_says(batch->session) &&
	    (!evc__reply_is(r, "ok") || !evc__node_deals_done(batch, r)))
		evc__node_end(batch->session, "was answered with garbage");
	return session_says(batch->session) ? 1 : -1;
}

static void
on_sent(const redisReply *r, void *arg)
{
	struct event_batch *batch = arg;
	struct session *s = batch->session;
	bool deals = batch->deals != NULL;
	int was;

	s->pending--;
	batch->sent = false;
	if (r == NULL || !session_says(s))
		return;
	s->outbox.under_way--;
	was = judge_answer(batch, r);
	if (was == 0)
		note_refusal(batch, r);
	else if (was > 0 && batch != s->outbox.first)
		evc__node_end(s, "has lost the order of its results");
	else if (was > 0) {
		evc__trouble_over(&s->node->told, TROUBLE_RESULTS);
		remove_first_batch(s);
	}
	/* Questions wait for these updates. */
	if (deals && session_says(s))
		evc__node_ask_resume(s);
	if (s->outbox.refused && session_says(s) && s->outbox.under_way == 0)
		ev_timer_again(s->node->ev, &s->outbox.again);
}

/* ---- to send ---- */

static bool
send_plain(struct event_batch *batch)
{
	struct session *s = batch->session;
	struct redis_args a = { 0 };

	evc__args_text(&a, "XADD");
	evc__node_key(s, &a, "ev");
	evc__args_text(&a, "NOMKSTREAM");
	evc__args_text(&a, "*");
	evc__args_text(&a, "w");
	evc__args_text(&a, s->node->name);
	evc__args_text(&a, "i");
	evc__node_add_inc(s, &a);
	evc__args_text(&a, "s");
	evc__args_fmt(&a, "%llu", (unsigned long long)batch->seq);
	evc__args_text(&a, "d");
	evc__args_add(&a, bytes_at(&batch->frames), batch->frames.n);
	return evc__node_command(s, REDIS_SAY, on_sent, batch, &a);
}

static bool
send_batch(struct event_batch *batch)
{
	if (batch->seq == 0)
		batch->seq = ++batch->session->outbox.seq;
	return batch->deals != NULL ? evc__node_deals_send(batch, on_sent)
				    : send_plain(batch);
}

static bool
may_send(const struct session *s, const struct event_batch *batch)
{
	if (evc__redis_client_backlog(s->node->client, REDIS_SAY) >=
	    BACKLOG_MOST)
		return false;
	return s->outbox.under_way == 0 ||
	       (batch->deals == NULL && s->outbox.first->deals == NULL &&
		s->outbox.under_way < UNDER_WAY);
}

void
evc__node_send(struct session *s)
{
	struct event_batch *batch;

	while (s->linked && !s->outbox.refused &&
	       (batch = s->outbox.next) != NULL && may_send(s, batch)) {
		/* No memory; or the connection is lost, and `down` follows. */
		if (!send_batch(batch)) {
			if (evc__redis_client_is_up(s->node->client))
				evc__node_no_memory(s);
			return;
		}
		batch->sent = true;
		s->outbox.under_way++;
		s->outbox.next = batch->next;
	}
}

void
evc__node_send_lost(struct session *s)
{
	s->outbox.under_way = 0;
	s->outbox.next = s->outbox.first;
	s->outbox.leave_sent = false;
	/* Missing answers will not come any more. */
	s->outbox.refused = false;
	ev_timer_stop(s->node->ev, &s->outbox.again);
}

static void
on_again(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct session *s = timer->data;

	(void)events;
	ev_timer_stop(ev, timer);
	if (s->outbox.refused && s->outbox.under_way == 0) {
		s->outbox.refused = false;
		s->outbox.next = s->outbox.first;
	}
	evc__node_send(s);
	if (!session_says(s))
		return;
	evc__node_values_resume(s);
	evc__node_ask_resume(s);
}

void
evc__node_send_init(struct session *s)
{
	ev_init(&s->outbox.again, on_again);
	s->outbox.again.repeat = AGAIN;
	s->outbox.again.data = s;
}
