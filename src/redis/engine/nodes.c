/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Begins and ends sessions of nodes, and the workers in them.  A worker of the
 * cluster is a place: a worker of a node takes the place, and leaves it at the
 * end of the session.
 * Called by: events.c and hear.c; fence.c; turn.c and engine.c at the end.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

#include "base/array.h"

/* ---- a life ends ---- */

void
evc__session_tell_to_leave(struct node_session *s)
{
	s->left_told = true;
	evc__session_dirty(s);
	if (evc__frame_put_bare(&s->control.bytes, FRAME_LEAVE) < 0)
		evc__session_fence(s, "there is no memory to order it to "
				      "leave");
}

static void
free_worker(struct remote_worker *w)
{
	struct sessions *all = &w->session->e->sessions;

	all->workers[w->index] = NULL;
	all->n_used--;
	all->n_up -= w->up;
	if (w->index < all->first_free)
		all->first_free = w->index;
	list_remove(&w->spare);
	list_remove(&w->look);
	evc__watched_stop(&w->process);
	if (w->calls != w->few)
		sync_free(w->calls);
	sync_free(w);
}

static void
free_workers(struct node_session *s)
{
	unsigned i;

	for (i = 0; i < s->n_workers; i++)
		if (s->workers[i] != NULL)
			free_worker(s->workers[i]);
	sync_free(s->workers);
	evc__feed_part(s);
}

/* The node is a member of the scope, which names a member that stays. */
static void
hold_session(struct node_session *s)
{
	const evc_member_opts late = { .flags = EVC_AFTER_STOP |
						EVC_BACKGROUND };
	char name[NODE_NAME_SIZE + 8];
	struct text t = evc__text_in(name, sizeof name);

	/* Without memory, and behind many others, the node has no name
	   there. */
	if (s->e->sessions.n_held == NODES_HELD)
		return;
	evc__text_fmt(&t, "node %s", s->name);
	(void)evc_hold_begin(s->e->scope, name, &late, &s->hold);
	s->e->sessions.n_held += s->hold != 0;
}

static void
let_go_session(struct node_session *s)
{
	if (s->hold == 0)
		return;
	evc_hold_end(s->e->scope, s->hold);
	s->hold = 0;
	s->e->sessions.n_held--;
}

void
evc__sessions_let_go(struct redis_engine *e)
{
	struct node_session *s, *tmp;

	EACH_SESSION(s, tmp, e)
		let_go_session(s);
}

static void
free_session(struct node_session *s)
{
	let_go_session(s);
	evc__session_chunks_drop(s);
	evc__kept_clear(&s->kept);
	evc__watched_stop(&s->process);
	free_workers(s);
	bytes_free(&s->data.bytes);
	bytes_free(&s->control.bytes);
	evc__session_forget(s);
	sync_free(s);
}

/* Delete the stream to the node and its last answers.  Without its lease the
   node's next questions are refused. */
static void
delete_session_keys(struct node_session *s)
{
	struct redis_engine *e = s->e;
	struct redis_args a = { 0 }, seqs = { 0 }, runs = { 0 };
	unsigned i;

	if (s->g != e->lock.g)
		return; /* The restart has deleted the keys. */
	evc__args_text(&a, "UNLINK");
	evc__redis_to_key(s, &a);
	evc__redis_beat_key(s, &a);
	evc__redis_unlink(e, &a);
	evc__args_text(&seqs, "HDEL");
	evc__redis_own_key(e, &seqs, "seqs");
	evc__args_fmt(&seqs, "%s.%" PRIu64, s->name, s->inc);
	for (i = 0; i < s->n_workers; i++)
		evc__args_fmt(&seqs, "%s.%" PRIu64 ".%u", s->name, s->inc, i);
	evc__redis_send(e->client, REDIS_SAY, NULL, NULL, &seqs);
	/* A node that was fenced, and lives, writes these lines anew. */
	evc__args_text(&runs, "HDEL");
	evc__redis_own_key(e, &runs, "runs");
	evc__args_text(&runs, s->name);
	evc__redis_send(e->client, REDIS_SAY, NULL, NULL, &runs);
}

void
evc__session_over(struct node_session *s, const char *why, unsigned how)
{
	struct redis_engine *e = s->e;
	char text[REDIS_WHY_SIZE + NODE_NAME_SIZE];
	struct text t = evc__text_in(text, sizeof text);
	unsigned i, ran;

	evc__redis_tell(e);
	/* Results may be on the server, and nobody reads them any more. */
	if (e->lock.phase == PHASE_LOST || e->lock.phase == PHASE_DOWN) {
		how = EVC_ENGINE_LOST;
		if (e->lock.why_down[0] != '\0')
			why = e->lock.why_down;
		ran = how;
	} else
		ran = s->blames ? EVC_ENGINE_DIED_RUNNING : how;
	/* Before the last functions end: a join that has waited for them finds
	   no cluster. */
	if (e->lock.phase == PHASE_LOST &&
	    e->sessions.all.next == e->sessions.all.prev)
		redis_go_down(e);
	evc__text_fmt(&t, "node %s: %s", s->name, why);
	evc_log(e->scope, EVC_LOG_INFO, NULL,
		"redis: session %" PRIu64 " of node %s has ended: %s", s->inc,
		s->name, why);
	for (i = 0; i < s->n_workers; i++) {
		struct remote_worker *w = s->workers[i];

		if (w == NULL)
			continue;
		if (w->up)
			evc__remote_worker_gone(w, text,
						w->n > 0 ? ran : how);
		else if (w->start < 0)
			e->sink->gone(e->core, w->index, text, how);
	}
	delete_session_keys(s);
	evc__session_remember(s);
	if (e->reader.hearing == s)
		e->reader.hearing = NULL;
	if (s->fence != NULL)
		s->fence->session = NULL;
	free_session(s);
	redis_look_soon(e);
}

void
evc__sessions_free(struct redis_engine *e)
{
	while (!list_empty(&e->sessions.all))
		free_session(LIST_OF(e->sessions.all.next, struct node_session,
				     link));
}

/* ---- a life begins ---- */

/* Tell the node the places of its workers; the node starts them afterwards. */
static void
tell_ranks(struct node_session *s)
{
	evc_status st = 0;
	unsigned i;

	for (i = 0; i < s->n_workers && st == 0; i++)
		st = evc__frame_put_number(&s->control.bytes, FRAME_RANK,
					   (uint64_t)i << 32 |
						   s->workers[i]->index);
	evc__session_dirty(s);
	if (st < 0)
		evc__session_fence(s, "there is no memory for its workers' "
				      "ranks");
	redis_feed_soon(s->e);
}

static struct node_session *
new_session(struct redis_engine *e, const char *name, uint64_t inc)
{
	struct node_session *s = sync_alloc(1, sizeof *s);

	if (s == NULL || !evc__table_reserve(&e->sessions.by_name, 1)) {
		sync_free(s);
		return NULL;
	}
	s->e = e;
	evc__copy(s->name, sizeof s->name, name);
	s->inc = inc;
	s->g = e->lock.g;
	s->serial = ++e->sessions.n_begun;
	s->kept.n_all = &e->notes.n_kept;
	s->process.pidfd = -1;
	s->beat_ns = sync_mono();
	list_init(&s->chunks);
	list_init(&s->dirty);
	list_init(&s->keeps);
	list_init(&s->end);
	list_append(&e->sessions.all, &s->link);
	s->at.text = s->name;
	evc__table_add_name(&e->sessions.by_name, &s->at);
	hold_session(s);
	return s;
}

/* Without its lease the node ends this life, and registers anew.  A lease of
   another life, or another coordinator, stays. */
static void
delete_lease(struct redis_engine *e, const char *name, uint64_t g, uint64_t inc)
{
	struct redis_args a = { 0 };

	evc__args_key(&a, &e->address, "lease:%s", name);
	evc__args_fmt(&a, "%" PRIu64 " %" PRIu64, g, inc);
	(void)evc__redis_script(e->client, SCRIPT_RELEASE, 1, NULL, NULL, &a);
}

void
evc__redis_end_leases(struct redis_engine *e)
{
	struct node_session *s, *tmp;

	EACH_SESSION(s, tmp, e)
		delete_lease(e, s->name, s->g, s->inc);
}

/* The node has registered anew, as life inc.  false: the node has to come
   again. */
static bool
end_former(struct node_session *s, uint64_t inc, bool no_memory)
{
	const char *why = "it registered anew";

	if (!s->ending && no_memory) {
		/* Functions may be why, also others. */
		s->blames = true;
		why = "it had no memory for a message, and registered anew; "
		      "its log says more";
	} else if (!s->ending &&
		   sync_mono() < evc__after(s->beat_ns, s->e->lease_ns))
		why = "it registered anew before the end of its lease; its "
		      "log says why";
	/* Entries may be lost, and the fence finds out. */
	if (!s->marked && evc__session_may_have_changed(s)) {
		evc__session_fence(s, "%s", why);
		delete_lease(s->e, s->name, s->e->lock.g, inc);
		return false;
	}
	evc__session_over(s, s->ending ? s->why : why, EVC_ENGINE_DIED);
	return true;
}

void
evc__session_begin(struct redis_engine *e, const char *name, uint64_t inc,
		   const unsigned char *frames, size_t n)
{
	struct node_session *s = evc__session_find(e, name);
	evc_status st;

	if ((s != NULL && s->inc >= inc) ||
	    evc__session_is_former(e, name, inc))
		return;
	if (s != NULL &&
	    !end_former(s, inc, evc__registration_had_no_memory(frames, n)))
		return;
	/* The generation is over, and no session begins in it. */
	if (e->lock.phase != PHASE_LIVE && e->lock.phase != PHASE_AWAY)
		return;
	s = new_session(e, name, inc);
	e->lock.refresh_soon = 6;
	if (s == NULL) {
		evc__redis_garbage(e, name, "no memory for the node");
		delete_lease(e, name, e->lock.g, inc);
		return;
	}
	st = evc__registration_read(s, frames, n);
	if (st < 0) {
		evc__redis_garbage(e, name, evc_last_error());
		evc__session_fence(s,
				   st == -EVC_RESOURCE_EXHAUSTED ?
					   "it cannot be taken in: %s" :
					   "it sent garbage: %s",
				   evc_last_error());
		return;
	}
	evc_log(e->scope, EVC_LOG_INFO, NULL,
		"redis: node %s has registered, with %u workers", name,
		s->n_workers);
	evc__redis_look_alone(e);
	tell_ranks(s);
	if (e->turn.left)
		evc__session_tell_to_leave(s);
}
