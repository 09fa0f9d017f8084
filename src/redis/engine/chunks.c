/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chunks: entries on their way into the stream of a node.  A chunk is kept until
 * Redis has answered that the entry is there.  If Redis refuses the entry (no
 * memory, no right), its functions fail with that text.  Its cancels and kills,
 * and all of it when Redis is busy, are sent again until the entry is there.
 * Called by: turn.c, feed.c, nodes.c, lock.c, restart.c.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/*
 * After a lost connection a chunk is sent again with its old number.  Redis
 * refuses the number if the entry is there, but also if a later entry is there
 * while this entry was refused for want of memory.  So the chunk is sent once
 * more, with a new number and the number of its first try, and the node knows
 * whether the first one came.  A chunk that may be there never fails.
 *
 * So a function may come behind the order that cancels it.  An order for many
 * functions counts for later functions, too; an order for one is sent again.
 */

/* ---- failures ---- */

static void
fail_task(struct remote_worker *w, const struct frame *f, const char *why)
{
	struct redis_engine *e = w->session->e;
	evc_engine_result r = { .code = EVC_RESOURCE_EXHAUSTED,
				.kind = EVC_FAILED_FUNCTION,
				.text = why };
	evc_engine_task t;
	unsigned i;

	if (evc__frame_get_task(f, &t) < 0)
		return;
	sync_free((void *)t.inputs);
	r.n = t.n;
	if (evc__remote_worker_find(w, t.n, &i) == NULL)
		return;
	evc__remote_worker_ended_one(w, i, 0);
	e->sink->finished(e->core, w->index, &r, 1);
}

static void
fail_def(struct remote_worker *w, const struct frame *f)
{
	struct redis_engine *e = w->session->e;
	evc_engine_def d;

	if (evc__frame_get_def(f, &d) < 0 || d.kind == EVC_DEF_DROP)
		return;
	evc__remote_worker_built(w);
	e->sink->built(e->core, w->index, d.id, EVC_RESOURCE_EXHAUSTED, 0);
}

/* The frames of a chunk were not sent: their functions fail. */
static void
fail_frames(struct node_session *s, const struct bytes *b, const char *why)
{
	struct redis_engine *e = s->e;
	struct remote_worker *w = NULL;
	uint64_t number;
	struct frame f;
	size_t at;

	evc__redis_tell(e);
	for (at = 0; at < b->n; at += f.whole) {
		if (evc__frame_next(bytes_behind(b, at), b->n - at,
				    e->max_frame, &f) <= 0)
			return;
		if (f.type == FRAME_SLOT &&
		    evc__frame_get_number(&f, &number) == 0)
			w = number >> 32 < s->n_workers
				    ? s->workers[number >> 32]
				    : NULL;
		else if (w == NULL || !w->up || w->start != (uint32_t)number)
			continue;
		else if (f.type == FRAME_TASK)
			fail_task(w, &f, why);
		else if (f.type == FRAME_DEF)
			fail_def(w, &f);
	}
	redis_feed_soon(e);
}

/* ---- chunks ---- */

static void
free_chunk(struct chunk *c)
{
	if (c->session != NULL)
		list_remove(&c->link);
	bytes_free(&c->bytes);
	sync_free(c);
}

/* true: the entry with this number, or a later one, is in the stream. */
static bool
number_is_passed(const redisReply *r)
{
	return strstr(r->str, "equal or smaller") != NULL;
}

static void send_failed_chunks(struct node_session *s, bool all);

static void
on_chunk(const redisReply *r, void *arg)
{
	struct chunk *c = arg;
	struct node_session *s = c->session;
	char why[REDIS_WHY_SIZE];
	struct text t = evc__text_in(why, sizeof why);
	bool late, held;

	if (s == NULL) {
		free_chunk(c);
		return;
	}
	if (r == NULL) {
		c->waits = c->again = true;
		s->e->sessions.any_waits = true;
		return;
	}
	s->e->sessions.trip += ((double)(sync_mono() - c->sent_ns) / 1e9 -
				s->e->sessions.trip) / 8;
	if (r->type != REDIS_REPLY_ERROR) {
		evc__trouble_over(&s->e->trouble.told, TROUBLE_ORDERS);
		s->has_stream = true;
		s->untold = s->untold && !c->control && !c->late;
		late = c->late && !c->control;
		held = c->holds;
		free_chunk(c);
		if (late)
			evc__session_cancel_again(s);
		if (held)
			send_failed_chunks(s, true);
		return;
	}
	if (c->again && number_is_passed(r)) {
		c->waits = c->failed = true;
		s->e->sessions.any_waits = true;
		c->again = false;
		c->first = c->first != 0 ? c->first : c->seq;
		return;
	}
	evc__text_add(&t, "redis: ");
	evc__text_add(&t, evc__reply_why(r));
	if (evc__reply_is_error(r, "WRONGTYPE") || number_is_passed(r)) {
		/* Nothing goes to this session any more; the node's next
		   session has a stream of its own. */
		free_chunk(c);
		evc__session_fence(s, "another program has written into its "
				      "stream");
		return;
	}
	/* A worker without a build would lack the value for its life. */
	if (c->control || c->builds || c->again || c->first != 0 ||
	    reply_is_refused_for_now(r)) {
		c->waits = true;
		c->failed = !c->again;
		s->untold = true;
		s->e->sessions.any_waits = s->e->sessions.any_untold = true;
		evc__redis_trouble(s->e, TROUBLE_ORDERS,
				   "orders for node %s are refused: %s",
				   s->name, why + strlen("redis: "));
		/* The cluster waits for the end of that worker.  A fence ends
		   the whole node with its lease, and needs no memory. */
		if (c->kill_ns != 0 &&
		    sync_mono() - c->kill_ns >= s->e->lease_ns)
			evc__session_fence(s,
					   "the order to kill a worker was "
					   "refused for %.1f s: %s",
					   (double)(sync_mono() - c->kill_ns) /
						   1e9,
					   why + strlen("redis: "));
		return;
	}
	s->untold = s->untold && !c->late;
	fail_frames(s, &c->bytes, why);
	free_chunk(c);
}

static void
send_chunk(struct chunk *c)
{
	struct node_session *s = c->session;
	struct redis_engine *e = s->e;
	struct redis_args a = { 0 };

	c->waits = true;
	if (!e->up ||
	    (e->lock.phase != PHASE_LIVE && e->lock.phase != PHASE_RESTART)) {
		e->sessions.any_waits = true;
		return;
	}
	evc__args_text(&a, "XADD");
	evc__redis_to_key(s, &a);
	evc__args_fmt(&a, "%" PRIu64 "-1", c->seq);
	evc__args_text(&a, "d");
	evc__args_add(&a, bytes_at(&c->bytes), c->bytes.n);
	if (c->first != 0) {
		evc__args_text(&a, "o");
		evc__args_fmt(&a, "%" PRIu64, c->first);
	}
	c->sent_ns = sync_mono();
	c->waits = !evc__redis_send(e->client, REDIS_SAY, on_chunk, c, &a);
	e->sessions.any_waits |= c->waits;
	/* The command may have created the stream. */
	if (!s->has_stream)
		evc__redis_to_ends(s);
}

/* Builds come before the functions that use their values, so later data is held
   back until the server has taken a build, or data that was refused.  sent: by
   data on its way. */
static bool
data_is_held(const struct node_session *s, bool sent)
{
	const struct list *n;
	const struct chunk *c;

	for (n = s->chunks.next; n != &s->chunks; n = n->next) {
		c = LIST_OF(n, const struct chunk, link);
		if (!c->control && (c->waits ? !sent : c->holds))
			return true;
	}
	return false;
}

static void
flush_batch(struct node_session *s, struct frame_batch *batch, bool control)
{
	struct redis_engine *e = s->e;
	struct chunk *c;

	if (batch->bytes.n == 0)
		return;
	/* The frames are of no use to the session, and its stream is to be
	   deleted. */
	if (s->marked) {
		bytes_free(&batch->bytes);
		batch->has_worker = batch->builds = false;
		return;
	}
	c = sync_alloc(1, sizeof *c);
	if (c == NULL && control)
		return; /* sent with the next flush */
	if (c == NULL) {
		fail_frames(s, &batch->bytes, "there is no memory to send it");
		bytes_free(&batch->bytes);
		batch->has_worker = batch->builds = false;
		return;
	}
	c->session = s;
	c->seq = ++s->seq;
	c->control = control;
	if (control) {
		c->kill_ns = s->kill_ns;
		s->kill_ns = 0;
	}
	c->bytes = batch->bytes;
	c->builds = c->holds = batch->builds;
	*batch = (struct frame_batch){ .has_worker = false };
	c->waits = c->failed = !control && data_is_held(s, false);
	list_append(&s->chunks, &c->link);
	e->sessions.any_waits |= c->waits;
	if (!c->waits)
		send_chunk(c);
}

void
evc__session_flush(struct node_session *s)
{
	flush_batch(s, &s->data, false);
	flush_batch(s, &s->control, true);
}

void
evc__redis_flush(struct redis_engine *e)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &e->sessions.dirty) {
		struct node_session *s = LIST_OF(n, struct node_session, dirty);

		evc__session_flush(s);
		/* Without memory the orders stay. */
		if (s->control.bytes.n == 0)
			list_remove(n);
	}
}

/* true: later data waits for the answer. */
static bool
send_failed_chunk(struct chunk *c, bool all)
{
	c->holds = !c->control && (!all || c->builds);
	c->seq = ++c->session->seq;
	c->failed = false;
	c->late = true;
	send_chunk(c);
	return c->holds;
}

/* Failed chunks get the greatest numbers.  all: the server takes data again;
   otherwise a single chunk of data is tried, because the server may refuse the
   first of two and take the second. */
static void
send_failed_chunks(struct node_session *s, bool all)
{
	struct list *n, *tmp, *last = s->chunks.prev;
	bool tried = data_is_held(s, true);

	LIST_EACH(n, tmp, &s->chunks) {
		struct chunk *c = LIST_OF(n, struct chunk, link);

		if (c->waits && c->failed) {
			list_remove(&c->link);
			list_append(&s->chunks, &c->link);
			if (!tried || c->control)
				tried |= send_failed_chunk(c, all);
			else
				s->e->sessions.any_waits = true;
		}
		if (n == last)
			break;
	}
}

static void
send_chunks_again(struct node_session *s)
{
	struct list *n, *tmp;
	struct chunk *c;

	LIST_EACH(n, tmp, &s->chunks) {
		c = LIST_OF(n, struct chunk, link);
		if (c->waits && !c->failed) {
			c->late = true;
			c->holds = !c->control;
			send_chunk(c);
		}
	}
	send_failed_chunks(s, false);
}

void
evc__redis_chunks_again(struct redis_engine *e)
{
	struct node_session *s, *tmp;

	if (!e->sessions.any_waits)
		return;
	e->sessions.any_waits = false;
	EACH_SESSION(s, tmp, e) {
		if (!list_empty(&s->chunks))
			send_chunks_again(s);
	}
}

void
evc__session_chunks_drop(struct node_session *s)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &s->chunks) {
		struct chunk *c = LIST_OF(n, struct chunk, link);

		if (c->waits) {
			free_chunk(c);
			continue;
		}
		/* The answer will free the chunk. */
		list_remove(&c->link);
		c->session = NULL;
	}
}
