/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lives of nodes and of their workers.
 *
 * A worker of the cluster is a place: it is taken by a worker of a node, and
 * free again for another one when the life of that node is over.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/* ---- a life ends ---- */

void
evc__lives_tell_to_leave(struct life *l)
{
	l->left_told = true;
	if (evc__frame_put_bare(&l->control.bytes, FRAME_LEAVE) < 0)
		evc__lives_fence(l, "it could not be told to leave");
}

static void
free_workers(struct life *l)
{
	unsigned i;

	for (i = 0; i < l->n_workers; i++)
		if (l->workers[i] != NULL) {
			l->e->workers[l->workers[i]->index] = NULL;
			evc__watched_stop(&l->workers[i]->process);
			sync_free(l->workers[i]);
		}
	sync_free(l->workers);
}

/* A member of the scope for each node, so that one that stays is named. */
static void
hold(struct life *l)
{
	const evc_member_opts late = { .flags = EVC_LATE | EVC_BACKGROUND };
	char name[NODE_NAME_ROOM + 8];
	struct text t = evc__text_in(name, sizeof name);

	evc__text_fmt(&t, "node %s", l->name);
	/* Without memory for it it is not named. */
	(void)evc_hold_begin(l->e->scope, name, &late, &l->hold);
}

static void
let_go(struct life *l)
{
	if (l->hold != 0)
		evc_hold_end(l->e->scope, l->hold);
	l->hold = 0;
}

void
evc__lives_let_go(struct redis_engine *e)
{
	struct list *n;

	for (n = e->lives.next; n != &e->lives; n = n->next)
		let_go(LIST_OF(n, struct life, link));
}

static void
destroy(struct life *l)
{
	let_go(l);
	evc__lives_chunks_drop(l);
	evc__lives_values_drop(l);
	evc__watched_stop(&l->process);
	free_workers(l);
	bytes_free(&l->data.bytes);
	bytes_free(&l->control.bytes);
	list_remove(&l->link);
	sync_free(l);
}

/* Its stream, and what it was answered last: what it may still ask for is
   refused, without its lease. */
static void
drop_keys(struct life *l)
{
	struct redis_engine *e = l->e;
	struct redis_args a = { 0 }, seqs = { 0 };
	unsigned i;

	if (l->g != e->g)
		return; /* the restart has done that */
	evc__args_text(&a, "UNLINK");
	evc__redis_to_key(l, &a);
	evc__redis_beat_key(l, &a);
	evc__redis_unlink(e, &a);
	evc__args_text(&seqs, "HDEL");
	evc__redis_own_key(e, &seqs, "seqs");
	evc__args_fmt(&seqs, "%s.%" PRIu64, l->name, l->inc);
	for (i = 0; i < l->n_workers; i++)
		evc__args_fmt(&seqs, "%s.%" PRIu64 ".%u", l->name, l->inc, i);
	evc__redis_send(e->client, REDIS_SAY, NULL, NULL, &seqs);
}

void
evc__lives_over(struct life *l, const char *why, unsigned how)
{
	struct redis_engine *e = l->e;
	char text[REDIS_WHY_ROOM + NODE_NAME_ROOM];
	struct text t = evc__text_in(text, sizeof text);
	unsigned i;

	evc__redis_tell(e);
	evc__text_fmt(&t, "node %s: %s", l->name, why);
	evc_log(e->scope, EVC_LOG_INFO, NULL, "redis: life %" PRIu64
		" is over of %s", l->inc, text);
	for (i = 0; i < l->n_workers; i++) {
		struct remote_worker *w = l->workers[i];

		if (w == NULL)
			continue;
		if (w->up)
			evc__remote_worker_gone(
				w, text,
				l->blames && w->n > 0 ? EVC_ENGINE_DIED_RUNNING
						      : how);
		else if (w->start < 0)
			e->sink->gone(e->core, w->index, text, how);
	}
	drop_keys(l);
	evc__lives_remember(l);
	if (e->hearing == l)
		e->hearing = NULL;
	if (e->waits != NULL && e->waits->life == l)
		e->waits->life = NULL;
	if (l->fence != NULL)
		l->fence->life = NULL;
	destroy(l);
	redis_look_soon(e);
}

void
evc__lives_free(struct redis_engine *e)
{
	while (!list_empty(&e->lives))
		destroy(LIST_OF(e->lives.next, struct life, link));
}

/* ---- a life begins ---- */

static evc_status
make_worker(struct life *l, unsigned at)
{
	struct redis_engine *e = l->e;
	struct remote_worker *w;
	unsigned i;

	for (i = 0; i < e->n_workers && e->workers[i] != NULL; i++)
		;
	if (i == WORKERS_MOST)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "there are %d workers already, and more are "
				  "too many",
				  WORKERS_MOST);
	w = sync_alloc(1, sizeof *w);
	if (w == NULL ||
	    (i == e->n_workers && !e->sink->workers(e->core, i + 1))) {
		sync_free(w);
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "there is no memory for its workers");
	}
	w->life = l;
	w->at = at;
	w->index = i;
	w->start = -1;
	w->process.pidfd = -1;
	e->workers[i] = l->workers[at] = w;
	if (i == e->n_workers)
		e->n_workers++;
	return 0;
}

static evc_status
make_workers(struct life *l, uint64_t n)
{
	evc_status st = 0;
	unsigned i;

	if (n == 0 || n > WORKERS_MOST)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%" PRIu64 " workers, and 1 to %d can be", n,
				  WORKERS_MOST);
	l->workers = sync_alloc((size_t)n, sizeof(struct remote_worker *));
	if (l->workers == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "there is no memory for its workers");
	l->n_workers = (unsigned)n;
	for (i = 0; i < l->n_workers && st == 0; i++)
		st = make_worker(l, i);
	return st;
}

/* FRAME_NODE and FRAME_HELLO, and nothing else. */
static evc_status
read_registration(struct life *l, const unsigned char *p, size_t n)
{
	struct redis_engine *e = l->e;
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
				  "a registration that is none");
	st = evc__frame_get_note(&node, &note);
	if (st == 0 && !evc__reply_is_plain(note.text, strlen(note.text), true))
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"a place that cannot be printed");
	if (st == 0)
		st = evc__frame_get_hello(&hello, &names, &n_names);
	if (st < 0)
		return st;
	evc__lives_read_note(l, note.text);
	st = make_workers(l, note.number);
	for (i = 0; st == 0 && i < l->n_workers; i++)
		e->sink->worker_names(e->core, l->workers[i]->index, names,
				      n_names);
	sync_free(names);
	return st;
}

/* Its workers are not started before they know which of the cluster's they are. */
static void
tell_ranks(struct life *l)
{
	evc_status st = 0;
	unsigned i;

	for (i = 0; i < l->n_workers && st == 0; i++)
		st = evc__frame_put_number(&l->control.bytes, FRAME_RANK,
					   (uint64_t)i << 32 |
						   l->workers[i]->index);
	if (st < 0)
		evc__lives_fence(l, "its workers could not be told who they "
				    "are");
	redis_feed_soon(l->e);
}

static struct life *
make(struct redis_engine *e, const char *name, uint64_t inc)
{
	struct life *l = sync_alloc(1, sizeof *l);

	if (l == NULL)
		return NULL;
	l->e = e;
	evc__copy(l->name, sizeof l->name, name);
	l->inc = inc;
	l->g = e->g;
	l->serial = ++e->n_lives;
	l->process.pidfd = -1;
	l->beat_ns = sync_mono();
	list_init(&l->chunks);
	list_append(&e->lives, &l->link);
	hold(l);
	return l;
}

/* So that it ends, and registers anew. */
static void
drop_lease(struct redis_engine *e, const char *name)
{
	struct redis_args a = { 0 };

	evc__args_text(&a, "DEL");
	evc__args_key(&a, &e->address, "lease:%s", name);
	evc__redis_send(e->client, REDIS_SAY, NULL, NULL, &a);
}

void
evc__lives_begin(struct redis_engine *e, const char *name, uint64_t inc,
		const unsigned char *frames, size_t n)
{
	struct life *l = evc__lives_find(e, name);

	if ((l != NULL && l->inc >= inc) || evc__lives_is_former(e, name, inc))
		return;
	if (l != NULL)
		evc__lives_over(l, l->ending ? l->why : "it registered anew",
				EVC_ENGINE_DIED);
	/* It is fenced with the generation, and all that are fenced are known. */
	if (e->phase != PHASE_LIVE && e->phase != PHASE_AWAY)
		return;
	l = make(e, name, inc);
	e->refresh_soon = 6;
	if (l == NULL) {
		evc__redis_garbage(e, name, "no memory for it");
		drop_lease(e, name);
		return;
	}
	if (read_registration(l, frames, n) < 0) {
		evc__redis_garbage(e, name, evc_last_error());
		evc__lives_fence(l, "it sent garbage: %s", evc_last_error());
		return;
	}
	evc_log(e->scope, EVC_LOG_INFO, NULL,
		"redis: node %s is there, with %u workers", name, l->n_workers);
	evc__redis_look_alone(e);
	tell_ranks(l);
	if (e->left)
		evc__lives_tell_to_leave(l);
}
