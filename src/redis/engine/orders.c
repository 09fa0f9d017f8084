/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames for a worker, and orders for running functions and their workers:
 * cancels, kills, and questions for stacks.  Orders go out as chunks of their own,
 * before functions.
 * Called by: turn.c, feed.c; chunks.c when an order may have come too early.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

evc_status
evc__frame_batch_about(struct frame_batch *batch, const struct remote_worker *w)
{
	uint64_t number = (uint64_t)w->at << 32 | (uint32_t)w->start;
	evc_status st;

	evc__session_dirty(w->session);
	if (batch->has_worker && batch->worker == number)
		return 0;
	st = evc__frame_put_number(&batch->bytes, FRAME_SLOT, number);
	batch->has_worker = st == 0;
	batch->worker = number;
	return st;
}

/* ---- orders ---- */

static void
send_cancel_one(struct remote_worker *w, struct sent_call *call)
{
	struct frame_batch *batch = &w->session->control;

	call->asked = true;
	if (evc__frame_batch_about(batch, w) == 0)
		(void)evc__frame_put_number(&batch->bytes, FRAME_CANCEL_ONE,
					    call->n);
	redis_feed_soon(w->session->e);
}

static struct remote_worker *
worker_by_index(struct redis_engine *e, uint64_t index)
{
	return index < e->sessions.n_workers ? e->sessions.workers[index]
					     : NULL;
}

void
evc__redis_cancel(struct redis_engine *e, uint64_t upto)
{
	struct node_session *s, *tmp;

	if (upto <= e->sessions.cancelled_upto)
		return;
	e->sessions.cancelled_upto = upto;
	EACH_SESSION(s, tmp, e) {
		/* Without memory the functions run to their end: none is
		   lost. */
		if (s->bytes > 0 && !s->ending) {
			(void)evc__frame_put_number(&s->control.bytes,
						    FRAME_CANCEL, upto);
			evc__session_dirty(s);
		}
	}
}

void
evc__redis_cancel_ones(struct redis_engine *e, const uint64_t *ones, size_t n)
{
	size_t i;

	for (i = 0; i + 1 < n; i += 2) {
		struct remote_worker *w = worker_by_index(e, ones[i]);
		struct sent_call *call =
			w != NULL
				? evc__remote_worker_find(w, ones[i + 1], NULL)
				: NULL;

		if (call != NULL)
			send_cancel_one(w, call);
	}
}

void
evc__redis_kill(struct redis_engine *e, const struct noted_workers *kills)
{
	size_t i;

	for (i = 0; i < kills->n; i++) {
		struct remote_worker *w = worker_by_index(e, kills->at[i]);

		if (w == NULL || !w->up)
			continue;
		w->session->kill_ns = sync_mono();
		if (evc__frame_batch_about(&w->session->control, w) < 0 ||
		    evc__frame_put_bare(&w->session->control.bytes,
					FRAME_KILL) < 0)
			evc__session_fence(w->session,
					   "there is no memory to order a "
					   "kill");
	}
}

void
evc__redis_ask_stacks(struct redis_engine *e,
		      const struct noted_workers *stacks)
{
	size_t i;

	for (i = 0; i < stacks->n && e->sink->stack != NULL; i++) {
		struct remote_worker *w = worker_by_index(e, stacks->at[i]);
		struct frame_batch *batch;

		batch = w != NULL && w->up ? &w->session->control : NULL;
		if (batch == NULL || evc__frame_batch_about(batch, w) < 0 ||
		    evc__frame_put_bare(&batch->bytes, FRAME_LOOK) < 0)
			e->sink->stack(e->core, stacks->at[i], NULL);
		else
			w->stack_asked = true;
	}
}

void
evc__session_cancel_again(struct node_session *s)
{
	unsigned i, k;

	for (i = 0; i < s->n_workers; i++) {
		struct remote_worker *w = s->workers[i];

		for (k = 0; w != NULL && w->up && k < w->n; k++)
			if (worker_call(w, k)->asked)
				send_cancel_one(w, worker_call(w, k));
	}
}
