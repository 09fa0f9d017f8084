/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a node says when it registers, FRAME_NODE and FRAME_HELLO, and the places
 * that its workers get.
 * Called by: nodes.c.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/* ---- places ---- */

/* The first free place, or the one behind all.  Places before first_free are not
   free, so no place is looked at twice before one there comes free. */
static unsigned
free_place(struct sessions *all)
{
	unsigned i = all->first_free;

	if (all->n_used == all->n_workers)
		i = all->n_workers;
	while (i < all->n_workers && all->workers[i] != NULL)
		i++;
	all->first_free = i;
	return i;
}

/* Make the place known to the cluster, if it is new.  false: no memory. */
static bool
is_place(struct redis_engine *e, unsigned i)
{
	struct sessions *all = &e->sessions;

	return i < all->n_workers ||
	       (ARRAY_RESERVE(all->workers, all->n_workers, all->room, 1) &&
		e->sink->workers(e->core, i + 1));
}

static evc_status
make_worker(struct node_session *s, unsigned at)
{
	struct redis_engine *e = s->e;
	unsigned i = free_place(&e->sessions);
	struct remote_worker *w = sync_alloc(1, sizeof *w);

	if (w == NULL || !is_place(e, i)) {
		sync_free(w);
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "there is no memory for its workers");
	}
	w->session = s;
	w->at = at;
	w->index = i;
	w->start = -1;
	w->process.pidfd = -1;
	w->calls = w->few;
	w->room = sizeof w->few / sizeof w->few[0];
	list_init(&w->spare);
	list_init(&w->look);
	e->sessions.workers[i] = s->workers[at] = w;
	e->sessions.n_used++;
	if (i == e->sessions.n_workers)
		e->sessions.n_workers++;
	return 0;
}

static evc_status
make_workers(struct node_session *s, uint64_t n)
{
	evc_status st = 0;
	unsigned i;

	if (n == 0 || n > WORKERS_MOST)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%" PRIu64 " workers: a node has 1 to %d", n,
				  WORKERS_MOST);
	if (n > PLACES_MOST - s->e->sessions.n_used)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "a cluster has %d workers at most, and this "
				  "one has %u without its %" PRIu64,
				  PLACES_MOST, s->e->sessions.n_used, n);
	s->workers = sync_alloc((size_t)n, sizeof(struct remote_worker *));
	if (s->workers == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "there is no memory for its workers");
	s->n_workers = (unsigned)n;
	for (i = 0; i < s->n_workers && st == 0; i++)
		st = make_worker(s, i);
	return st;
}

/* ---- the frames ---- */

/* FNV-1a.  Two tables of names with the same hash do no harm. */
static uint64_t
hash_bytes(const unsigned char *p, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	size_t i;

	for (i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h | 1;
}

evc_status
evc__registration_read(struct node_session *s, const unsigned char *p, size_t n)
{
	struct redis_engine *e = s->e;
	struct frame node, hello;
	struct frame_note note;
	const char **names;
	unsigned n_names, i;
	evc_status st;

	if (evc__frame_next(p, n, e->max_frame, &node) <= 0 ||
	    node.type != FRAME_NODE ||
	    evc__frame_next(p + node.whole, n - node.whole, e->max_frame,
			    &hello) <= 0 ||
	    hello.type != FRAME_HELLO || node.whole + hello.whole != n)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a wrong registration");
	st = evc__frame_get_note(&node, &note);
	if (st == 0 && !evc__reply_is_plain(note.text, strlen(note.text), true))
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"a place that cannot be printed");
	if (st == 0)
		st = evc__frame_get_hello(&hello, &names, &n_names);
	if (st < 0)
		return st;
	evc__session_read_note(s, note.text);
	evc__feed_join(s, hash_bytes(p + node.whole, hello.whole));
	st = make_workers(s, note.number & ~NODE_NO_MEMORY);
	for (i = 0; st == 0 && i < s->n_workers; i++)
		e->sink->worker_names(e->core, s->workers[i]->index, names,
				      n_names);
	sync_free(names);
	return st;
}

bool
evc__registration_had_no_memory(const unsigned char *p, size_t n)
{
	struct frame node;
	struct frame_note note;

	return evc__frame_next(p, n, UINT32_MAX, &node) > 0 &&
	       node.type == FRAME_NODE &&
	       evc__frame_get_note(&node, &note) == 0 &&
	       (note.number & NODE_NO_MEMORY) != 0;
}
