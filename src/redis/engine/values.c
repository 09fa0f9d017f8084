/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of large values: an input or a result of VALUE_LEAST bytes or more has a
 * key of its own, once, for all functions that need the value.
 *
 * e->values.set knows which keys there are and when they were set: a key ends
 * by itself, so a key that is half as old is set anew. s->kept knows which
 * values a node may have, under keys or in its workers: the node is told to
 * forget them.
 * Called by: feed.c, hear.c, worker.c, nodes.c, restart.c, turn.c, engine.c.
 * Locks: none; loop thread only, but n_kept in the notes is atomic.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

#define KEPT_LEAST KEEP_LEAST

/* ---- the keys that were set ---- */

static void
drop_kept(struct redis_engine *e, struct kept *k, uint64_t id)
{
	if (evc__kept_drop(k, id))
		sync_sub(&e->notes.n_kept, 1);
}

unsigned
evc__redis_last_keys(struct redis_engine *e, struct redis_args *a)
{
	static const char *const names[] = { "opts", "ev", "seqs", "state",
					     "runs" };
	unsigned n;

	for (n = 0; n < sizeof names / sizeof names[0]; n++)
		evc__redis_own_key(e, a, names[n]);
	for (; e->values.set.n > 0; n++) {
		uint64_t id = evc__kept_oldest(&e->values.set);

		evc__redis_value_key(e, a, id);
		drop_kept(e, &e->values.set, id);
	}
	return n;
}

/* Note a key that was set `age` ns ago.  false: no memory. */
static bool
note_key(struct redis_engine *e, uint64_t id, uint64_t age)
{
	uint64_t *since = sync_alloc(1, sizeof *since);

	if (since == NULL)
		return false;
	*since = sync_mono() - age;
	drop_kept(e, &e->values.set, id);
	/* -> forget(): before the result is told */
	sync_add(&e->notes.n_kept, 1);
	if (evc__kept_add(&e->values.set, id,
			  (evc_value){ since, sizeof *since }))
		return true;
	sync_sub(&e->notes.n_kept, 1);
	sync_free(since);
	return false;
}

/* The key may be there or not: its next use sets the key anew, and in the end
   the key is deleted. */
static void
doubt_key(struct redis_engine *e, uint64_t id)
{
	(void)note_key(e, id, VALUE_PX * UINT64_C(1000000));
}

static bool
key_is_there(const struct redis_engine *e, uint64_t id)
{
	const evc_value *v = evc__kept_find(&e->values.set, id);
	uint64_t since;

	if (v == NULL)
		return false;
	memcpy(&since, v->data, sizeof since);
	return sync_mono() - since < VALUE_PX * UINT64_C(1000000) / 2;
}

void
evc__redis_keep(struct node_session *s, uint64_t id, size_t size, bool by_key)
{
	struct redis_engine *e = s->e;

	if (by_key && !key_is_there(e, id))
		note_key(e, id, 0);
	if (size < KEPT_LEAST || evc__kept_find(&s->kept, id) != NULL ||
	    !evc__kept_add(&s->kept, id, (evc_value){ NULL, size }))
		return;
	sync_add(&e->notes.n_kept, 1);
	/* The node limits its values in the same way. */
	while (s->kept.bytes > KEEP_MOST * (s->n_workers + 1))
		drop_kept(e, &s->kept, evc__kept_oldest(&s->kept));
}

void
evc__redis_value_missing(struct redis_engine *e, uint64_t id)
{
	drop_kept(e, &e->values.set, id);
}

/* ---- inputs ---- */

struct set {
	struct redis_engine *e;
	uint64_t id;
};

static void
on_set(const redisReply *r, void *arg)
{
	struct set *s = arg;

	if (r == NULL || r->type == REDIS_REPLY_ERROR)
		doubt_key(s->e, s->id);
	sync_free(s);
}

static bool
set_key(struct redis_engine *e, const evc_engine_input *in)
{
	struct redis_args a = { 0 };
	struct set *s = sync_alloc(1, sizeof *s);

	if (s == NULL || !note_key(e, in->id, 0)) {
		sync_free(s);
		return false;
	}
	s->e = e;
	s->id = in->id;
	evc__args_text(&a, "SET");
	evc__redis_value_key(e, &a, in->id);
	evc__args_add(&a, in->value.data, in->value.size);
	evc__args_text(&a, "PX");
	evc__args_fmt(&a, "%d", VALUE_PX);
	if (evc__redis_send(e->client, REDIS_SAY, on_set, s, &a))
		return true;
	drop_kept(e, &e->values.set, in->id);
	sync_free(s);
	return false;
}

bool
evc__redis_put_input(struct node_session *s, const evc_engine_input *in)
{
	if (in->value.size < VALUE_LEAST ||
	    (!key_is_there(s->e, in->id) && !set_key(s->e, in)))
		return false;
	evc__redis_keep(s, in->id, in->value.size, false);
	return true;
}

/* ---- forgotten ---- */

void
evc__redis_forgets(struct redis_engine *e, const uint64_t *ids, size_t n)
{
	struct redis_args a = { 0 };
	struct node_session *s, *tmp;
	size_t i;

	evc__args_text(&a, "UNLINK");
	for (i = 0; i < n; i++) {
		if (evc__kept_find(&e->values.set, ids[i]) != NULL) {
			evc__redis_value_key(e, &a, ids[i]);
			drop_kept(e, &e->values.set, ids[i]);
		}
		EACH_SESSION(s, tmp, e) {
			if (evc__kept_find(&s->kept, ids[i]) == NULL)
				continue;
			drop_kept(e, &s->kept, ids[i]);
			/* Without memory the node keeps the value until others
			   need its room. */
			(void)evc__frame_put_number(&s->control.bytes,
						    FRAME_FORGET, ids[i]);
		}
	}
	evc__redis_unlink(e, &a);
}

/* ---- values of results that are not wanted ---- */

void
evc__remote_worker_last_keys(struct remote_worker *w, struct redis_args *a)
{
	unsigned i;

	for (i = 0; i < w->n; i++)
		evc__redis_value_key(w->session->e, a, worker_call(w, i)->id);
}

struct dropped {
	struct redis_engine *e;
	unsigned n;
	uint64_t ids[];
};

static void
on_dropped(const redisReply *r, void *arg)
{
	struct dropped *d = arg;
	unsigned i;

	for (i = 0; i < d->n && r == NULL; i++)
		doubt_key(d->e, d->ids[i]);
	sync_free(d);
}

/* Delete the values of results that will not come, once: the functions run
   elsewhere, and then their values have the same keys. */
void
evc__remote_worker_values_drop(struct remote_worker *w)
{
	struct redis_engine *e = w->session->e;
	struct redis_args a = { 0 };
	struct dropped *d;

	if (w->n == 0 || w->session->g != e->lock.g)
		return; /* The restart has deleted the keys. */
	d = sync_alloc(1, sizeof *d + w->n * sizeof d->ids[0]);
	if (d == NULL)
		return; /* The keys end by themselves. */
	d->e = e;
	for (d->n = 0; d->n < w->n; d->n++)
		d->ids[d->n] = worker_call(w, d->n)->id;
	evc__args_text(&a, "UNLINK");
	evc__remote_worker_last_keys(w, &a);
	if (!evc__redis_send(e->client, REDIS_SAY, on_dropped, d, &a))
		on_dropped(NULL, d);
}

void
evc__session_values_drop(struct node_session *s)
{
	sync_sub(&s->e->notes.n_kept, (uint32_t)s->kept.n);
	evc__kept_clear(&s->kept);
}

void
evc__values_free(struct redis_engine *e)
{
	evc__kept_clear(&e->values.set);
}
