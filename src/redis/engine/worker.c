/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker of a node: its calls and its window, and what the cluster is told
 * about the worker.
 * Called by: chunks.c, hear.c, events.c, nodes.c, fence.c.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <math.h>

/* Seconds of work under way, at most, beside what is done in three trips to the
   server and back: a function's way out, the one of its result, and a wait for
   the node's last batch take about so long. */
#define AHEAD 0.005
#define TRIPS 3
#define TRIP_MOST 0.01 /* seconds; a longer trip counts as this one */
#define TRIP_NEAR 0.001
#define REST_NS UINT64_C(20000000)

/* ---- calls ---- */

struct sent_call *
evc__remote_worker_find(struct remote_worker *w, uint64_t n, unsigned *ret_i)
{
	unsigned i;

	/* Workers run their calls in order, so most searches end at the
	   first. */
	for (i = 0; i < w->n; i++) {
		struct sent_call *call = worker_call(w, i);

		if (call->n != n)
			continue;
		if (ret_i != NULL)
			*ret_i = i;
		return call;
	}
	return NULL;
}

unsigned
evc__remote_worker_room(struct remote_worker *w, unsigned most)
{
	unsigned room = w->room, i;
	struct sent_call *calls;

	while (room < w->n + most)
		room *= 2;
	if (room == w->room)
		return most;
	calls = sync_alloc(room, sizeof *calls);
	if (calls == NULL)
		return w->room - w->n;
	for (i = 0; i < w->n; i++)
		calls[i] = *worker_call(w, i);
	if (w->calls != w->few)
		sync_free(w->calls);
	w->calls = calls;
	w->room = room;
	w->first = 0;
	return most;
}

static void
note_came_back(struct remote_worker *w, uint64_t n)
{
	struct redis_engine *e = w->session->e;

	if (n <= e->sessions.cancelled_upto)
		return;
	w->flow.window = 1;
	w->in_build = w->n_building > 0;
	/* The worker has no call and takes none: the worker is at its end, or
	   builds. */
	if (w->n > 0)
		return;
	w->rest_ns = evc__deadline_in_ns(REST_NS);
	evc__redis_due(e, w->rest_ns);
}

void
evc__remote_worker_built(struct remote_worker *w)
{
	w->n_building -= w->n_building > 0;
	if (w->n_building > 0 || !w->in_build)
		return;
	w->in_build = false;
	w->rest_ns = 0;
	evc__feed_note(w);
	evc__feed_look(w);
	redis_feed_soon(w->session->e);
}

static void
note_ended(struct remote_worker *w, double took)
{
	double trip = w->session->e->sessions.trip;
	unsigned limit = NEAR_MOST;

	if (trip > TRIP_MOST)
		trip = TRIP_MOST;
	if (trip > TRIP_NEAR)
		limit = trip * NEAR_MOST / TRIP_NEAR < FAR_MOST
				? (unsigned)(trip * NEAR_MOST / TRIP_NEAR)
				: FAR_MOST;
	flow_ended(&w->flow, took, INFINITY, AHEAD + TRIPS * trip, 1, limit);
}

void
evc__remote_worker_ended_one(struct remote_worker *w, unsigned i, double took)
{
	uint64_t n = worker_call(w, i)->n;

	w->session->bytes -= worker_call(w, i)->size;
	if (i == 0) {
		w->first = (w->first + 1) % w->room;
	} else {
		for (; i + 1 < w->n; i++)
			*worker_call(w, i) = *worker_call(w, i + 1);
	}
	w->n--;
	if (took >= 0)
		note_ended(w, took);
	else
		note_came_back(w, n);
	evc__feed_note(w);
	evc__feed_look(w);
}

/* ---- news for the cluster ---- */

void
evc__redis_tell(struct redis_engine *e)
{
	struct results *b = &e->reader.results;
	unsigned n = b->n;

	b->n = 0;
	if (n > 0)
		e->sink->finished(e->core, b->of->index, b->r, n);
}

void
evc__remote_worker_up(struct remote_worker *w, uint32_t start,
		      const struct frame_note *note)
{
	struct redis_engine *e = w->session->e;
	char where[WHERE_SIZE];

	e->sessions.n_up += !w->up;
	w->up = true;
	w->fenced = w->stack_asked = false;
	w->start = start;
	w->first = w->n = 0;
	w->flow = (struct flow){ .window = 1 };
	w->rest_ns = 0;
	w->n_building = 0;
	w->in_build = false;
	evc__remote_worker_watch(w, note->number < INT_MAX ? (pid_t)note->number
							   : 0);
	evc__copy(where, sizeof where, note->text);
	e->sink->up(e->core, w->index, NULL, where);
	evc__feed_note(w);
	evc__feed_look(w);
	redis_feed_soon(e);
}

void
evc__remote_worker_fenced(struct remote_worker *w, const char *why)
{
	struct redis_engine *e = w->session->e;

	if (!w->up || w->fenced)
		return;
	w->fenced = true;
	e->sink->fenced(e->core, w->index, why);
}

void
evc__remote_worker_gone(struct remote_worker *w, const char *why, unsigned how)
{
	struct redis_engine *e = w->session->e;
	unsigned i;

	if (!w->up)
		return;
	for (i = 0; i < w->n; i++)
		w->session->bytes -= worker_call(w, i)->size;
	w->up = false;
	e->sessions.n_up--;
	w->n = 0;
	list_remove(&w->spare);
	list_remove(&w->look);
	evc__watched_stop(&w->process);
	e->sink->gone(e->core, w->index, why, how);
	redis_feed_soon(e);
}
