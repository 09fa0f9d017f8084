/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends a session: at once (session.c), or so that functions that run may end
 * and their results are told.
 *
 *     JOINING, LIVE --leave--> LEAVING --closed--> SAYING --told--> OVER
 *          \                      |                  |              ^
 *           `------- end ---------+-> ENDING --closed+--------------'
 * Called by: node.c, hear.c, sink.c, begin.c.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

void
evc__node_leave(struct session *s)
{
	unsigned i;

	/* A session that joins leaves after the answer to its registration. */
	if (s->state != SESSION_LIVE)
		return;
	evc__node_say(s->node, EVC_LOG_INFO, "leaves generation %s", s->gen);
	s->state = SESSION_LEAVING;
	for (i = 0; i < s->node->n_workers; i++)
		evc__node_give_back(&s->workers[i], UINT64_MAX);
	/* Workers that run a function end afterwards; functions that wait
	   behind it come back. */
	s->node->ops->leave(s->engine);
}

void
evc__node_over(struct node *n, evc_status status)
{
	n->over = true;
	if (n->status == 0)
		n->status = status;
	if (n->session != NULL)
		evc__node_leave(n->session);
}

void
evc__node_session_free(struct session *s)
{
	struct event_batch *batch;
	unsigned i;

	evc__node_stop_timers(s);
	for (i = 0; i < s->node->n_workers; i++) {
		evc__node_ask_drop(&s->workers[i]);
		evc__node_worker_clear(&s->workers[i]);
	}
	while ((batch = s->outbox.first) != NULL) {
		s->outbox.first = batch->next;
		evc__node_batch_free(batch);
	}
	evc__node_values_clear(s);
	evc__node_runs_lost(s);
	sync_free(s->workers);
	sync_free(s);
}

void
evc__node_closed(struct session *s)
{
	struct node *n = s->node;

	n->ops->close(s->engine);
	s->engine = NULL;
	if (s->state == SESSION_LEAVING) {
		s->state = SESSION_SAYING;
		s->outbox.say_by_ns = evc__deadline_in_ns(s->lease_ns);
		return;
	}
	if (s->state != SESSION_ENDING)
		evc__node_stop_timers(s);
	s->state = SESSION_OVER;
	/* No turn of the loop would free the session. */
	if (n->lost && n->client == NULL) {
		evc__node_session_free(s);
		n->session = NULL;
	}
}

/* ---- the last word ---- */

static void
on_left(const redisReply *r, void *arg)
{
	struct session *s = arg;

	s->pending--;
	s->outbox.leave_sent = false;
	if (s->state != SESSION_SAYING || r == NULL)
		return;
	/* Either the node has left, or it was fenced and is not awaited. */
	if (evc__reply_word(r) != NULL) {
		evc__node_say(s->node, EVC_LOG_INFO, "has left generation %s",
			      s->gen);
		evc__node_stop_timers(s);
		s->state = SESSION_OVER;
		return;
	}
	evc__node_say(s->node, EVC_LOG_WARNING, "cannot leave: %s",
		      evc__reply_why(r));
	s->outbox.refused = true;
	ev_timer_again(s->node->ev, &s->outbox.again);
}

/* The node's own stop: a server that does not answer may not outlast it. */
static void
limit_last_word(struct session *s)
{
	double left = evc_stop_left(s->node->scope) * 0.9;

	if (left >= evc__deadline_left(s->outbox.say_by_ns))
		return;
	s->outbox.say_by_ns = evc__deadline_in(left);
	/* Until the next renewal: then the server answers. */
	if (left < evc__deadline_left(s->lease.deadline_ns))
		redis_timer_in(s->node->ev, &s->lease.deadline, left);
}

void
evc__node_last_word(struct session *s)
{
	struct node *n = s->node;
	struct bytes left = { 0 };
	struct redis_args a = { 0 }, runs = { 0 };

	limit_last_word(s);
	/* The server refuses, as if it were away, but renews the lease. */
	if (s->outbox.refused &&
	    evc__deadline_left_ns(s->outbox.say_by_ns) == 0) {
		evc__node_end(s, "could not send its last results");
		return;
	}
	if (!s->linked || s->outbox.first != NULL || s->outbox.refused ||
	    s->outbox.leave_sent)
		return;
	if (evc__frame_put_bare(&left, FRAME_LEFT) < 0) {
		evc__node_no_memory(s);
		return;
	}
	evc__args_text(&runs, "HDEL");
	evc__node_key(s, &runs, "runs");
	evc__args_text(&runs, n->name);
	evc__redis_send(n->client, REDIS_SAY, NULL, NULL, &runs);
	evc__args_key(&a, &n->address, "lease:%s", n->name);
	evc__node_key(s, &a, "ev");
	evc__args_text(&a, s->stamp);
	evc__args_text(&a, n->name);
	evc__node_add_inc(s, &a);
	/* The number is the same if LEAVE is sent again. */
	evc__args_fmt(&a, "%llu", (unsigned long long)s->outbox.seq + 1);
	evc__args_add(&a, bytes_at(&left), left.n);
	s->outbox.leave_sent =
		evc__node_script(s, SCRIPT_LEAVE, 2, on_left, s, &a);
	bytes_free(&left);
}
