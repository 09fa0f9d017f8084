/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends functions to workers, as many as the worker's window (engine/flow.h)
 * allows.  The window grows until it covers the time of a round trip.  Functions
 * that wait behind a slow one come back, and the window is 1 again until the
 * slow one has ended.
 * Called by: turn.c, before the loop sleeps.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#define TAKE_MOST        32
#define BATCH_BYTES_MOST ((size_t)1 << 20)
#define BACKLOG_MOST ((size_t)32 << 20)

/* ---- windows ---- */

static bool
may_be_fed(const struct remote_worker *w)
{
	return w->up && !w->fenced && !w->session->ending &&
	       !w->session->left_told;
}

static unsigned
free_window(const struct remote_worker *w)
{
	const struct redis_engine *e = w->session->e;

	if (!may_be_fed(w) || w->n >= w->flow.window ||
	    w->session->bytes >= NODE_BYTES_MOST ||
	    evc__redis_client_backlog(e->client, REDIS_SAY) > BACKLOG_MOST)
		return 0;
	if (w->rest_ns != 0 && evc__deadline_left_ns(w->rest_ns) > 0)
		return 0;
	return w->flow.window - w->n;
}

/* ---- to build ---- */

static void
send_definitions(struct remote_worker *w)
{
	struct node_session *s = w->session;
	struct redis_engine *e = s->e;
	evc_engine_def d;

	while (e->sink->defs(e->core, w->index, &d)) {
		if ((evc__frame_batch_about(&s->data, w) < 0 ||
		     evc__frame_put_def(&s->data.bytes, e->max_frame, &d) <
			     0) &&
		    d.kind != EVC_DEF_DROP)
			e->sink->built(e->core, w->index, d.id,
				       EVC_RESOURCE_EXHAUSTED, 0);
		if (s->data.bytes.n >= BATCH_BYTES_MOST)
			evc__session_flush(s);
	}
}

/* ---- to run ---- */

static evc_status
put_task(struct remote_worker *w, const evc_engine_task *t)
{
	struct node_session *s = w->session;
	bool few[16], *by_key = NULL;
	evc_status st = evc__frame_batch_about(&s->data, w);
	unsigned i;

	if (t->n_inputs > 0) {
		by_key = t->n_inputs <= sizeof few ?
				 few :
				 sync_alloc(t->n_inputs, sizeof *by_key);
		/* Without memory for by_key all values travel in the frame. */
		for (i = 0; by_key != NULL && i < t->n_inputs; i++)
			by_key[i] = evc__redis_put_input(s, &t->inputs[i]);
	}
	if (st == 0)
		st = evc__frame_put_task(&s->data.bytes, s->e->max_frame, t,
					 by_key);
	if (by_key != few)
		sync_free(by_key);
	return st;
}

/* Take functions for a worker, and send them.  false: there is none. */
static bool
take_tasks(struct remote_worker *w, unsigned most)
{
	struct node_session *s = w->session;
	struct redis_engine *e = s->e;
	evc_engine_task tasks[TAKE_MOST];
	unsigned i, n;

	n = e->sink->take(e->core, w->index, tasks,
			  most < TAKE_MOST ? most : TAKE_MOST);
	for (i = 0; i < n; i++) {
		size_t before = s->data.bytes.n;
		evc_engine_result r;
		struct sent_call *call;

		if (put_task(w, &tasks[i]) < 0) {
			r = flow_refused(tasks[i].n);
			e->sink->finished(e->core, w->index, &r, 1);
			continue;
		}
		e->lock.variables_used |=
			(tasks[i].flags & EVC_TRANSACTIONAL) != 0;
		call = worker_call(w, w->n++);
		call->n = tasks[i].n;
		call->id = tasks[i].id;
		call->asked = false;
		call->size = s->data.bytes.n - before;
		s->bytes += call->size;
		if (s->data.bytes.n >= BATCH_BYTES_MOST)
			evc__session_flush(s);
	}
	return n > 0;
}

void
evc__redis_feed(struct redis_engine *e)
{
	unsigned i;

	if (e->lock.phase != PHASE_LIVE || e->turn.left || e->turn.ended ||
	    evc__redis_client_backlog(e->client, REDIS_SAY) > BACKLOG_MOST)
		return;
	/* One function for each idle worker first, then full windows: a few
	   long functions should not all go to the same worker. */
	for (i = 0; i < e->sessions.n_workers; i++) {
		struct remote_worker *w =
			e->sessions.workers[(e->sessions.next_fed + i) %
					    e->sessions.n_workers];

		if (w == NULL || !may_be_fed(w))
			continue;
		send_definitions(w);
		if (w->n == 0 && w->flow.window > 1 && free_window(w) > 0)
			take_tasks(w, 1);
	}
	for (i = 0; i < e->sessions.n_workers; i++) {
		struct remote_worker *w =
			e->sessions.workers[(e->sessions.next_fed + i) %
					    e->sessions.n_workers];

		while (w != NULL && free_window(w) > 0 &&
		       take_tasks(w, free_window(w)))
			;
	}
	if (e->sessions.n_workers > 0)
		e->sessions.next_fed =
			(e->sessions.next_fed + 1) % e->sessions.n_workers;
}
