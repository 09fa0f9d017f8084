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
#define FRUITLESS 8 /* see groups.c */
#define BATCH_BYTES_MOST ((size_t)1 << 20)
#define BACKLOG_MOST ((size_t)32 << 20)

/* ---- windows ---- */

static unsigned
free_window(const struct remote_worker *w)
{
	const struct redis_engine *e = w->session->e;

	if (!remote_worker_is_fed(w) || w->n >= w->flow.window ||
	    w->session->bytes >= NODE_BYTES_MOST ||
	    evc__redis_client_backlog(e->client, REDIS_SAY) > BACKLOG_MOST)
		return 0;
	if (w->in_build ||
	    (w->rest_ns != 0 && evc__deadline_left_ns(w->rest_ns) > 0))
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
		bool builds = d.kind != EVC_DEF_DROP;

		if ((evc__frame_batch_about(&s->data, w) < 0 ||
		     evc__frame_put_def(&s->data.bytes, e->max_frame, &d) <
			     0) &&
		    builds) {
			e->sink->built(e->core, w->index, d.id,
				       EVC_RESOURCE_EXHAUSTED, 0);
			continue;
		}
		s->data.builds |= builds;
		w->n_building += builds;
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

	most = evc__remote_worker_room(w, most < TAKE_MOST ? most : TAKE_MOST);
	n = most > 0 ? e->sink->take(e->core, w->index, tasks, most) : 0;
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
		call->changes = (tasks[i].flags & EVC_TRANSACTIONAL) != 0;
		call->size = s->data.bytes.n - before;
		s->bytes += call->size;
		if (s->data.bytes.n >= BATCH_BYTES_MOST)
			evc__session_flush(s);
	}
	return n > 0;
}

/* ---- a feed ---- */

/* Take up to `most` functions at once, and more until the window is full; once:
   no more.  false: the worker could have had one more, and there was none. */
static bool
feed_worker(struct remote_worker *w, bool once)
{
	struct feeding *f = &w->session->e->sessions.feeding;
	unsigned most = free_window(w);

	while (most > 0) {
		if (!take_tasks(w, once ? 1 : most)) {
			w->tried = f->serial;
			return false;
		}
		most = once ? 0 : free_window(w);
	}
	return true;
}

/* Feed the workers of a list, which were taken from it: those that are still
   free come to its end. */
static void
feed_list(struct list *of, bool once)
{
	unsigned fruitless = 0;
	struct list still;

	list_init(&still);
	while (!list_empty(of) && fruitless < FRUITLESS) {
		struct remote_worker *w =
			LIST_OF(of->next, struct remote_worker, spare);

		list_remove(&w->spare);
		if (!remote_worker_is_fed(w))
			continue;
		if (free_window(w) == 0 || !feed_worker(w, once)) {
			fruitless += free_window(w) > 0;
			if (w->n < w->flow.window)
				list_append(&still, &w->spare);
			continue;
		}
		fruitless = 0;
		evc__feed_note(w);
	}
	while (!list_empty(&still)) {
		struct list *n = still.next;

		list_remove(n);
		list_append(of, n);
	}
}

/* Workers with a definition or a function of their own, perhaps. */
static void
feed_looks(struct redis_engine *e, bool definitions)
{
	struct feeding *f = &e->sessions.feeding;
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &f->looks) {
		struct remote_worker *w =
			LIST_OF(n, struct remote_worker, look);

		if (!remote_worker_is_fed(w)) {
			list_remove(n);
			continue;
		}
		if (definitions) {
			send_definitions(w);
			continue;
		}
		/* A worker that rests is looked at again. */
		if (w->n < w->flow.window && free_window(w) == 0)
			continue;
		list_remove(n);
		if (w->tried != f->serial) {
			(void)feed_worker(w, false);
			evc__feed_note(w);
		}
	}
}

void
evc__redis_feed(struct redis_engine *e)
{
	struct feeding *f = &e->sessions.feeding;
	struct list *n, *tmp;

	if (e->lock.phase != PHASE_LIVE || e->turn.left || e->turn.ended ||
	    evc__redis_client_backlog(e->client, REDIS_SAY) > BACKLOG_MOST)
		return;
	f->serial++;
	feed_looks(e, true);
	/* One function for each idle worker first, then full windows: a few
	   long functions should not all go to the same worker. */
	LIST_EACH(n, tmp, &f->groups)
		feed_list(&LIST_OF(n, struct feed_group, link)->idle, true);
	LIST_EACH(n, tmp, &f->groups)
		feed_list(&LIST_OF(n, struct feed_group, link)->some, false);
	feed_looks(e, false);
}
