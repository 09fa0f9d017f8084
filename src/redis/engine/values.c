/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of large values: an input of VALUE_LEAST bytes or more has a key of its
 * own, once, for all functions that need the value.
 *
 * e->values.set knows which keys were set, and s->kept which values a node may
 * have: inputs that had keys, and results that were made there, which need no
 * keys.  The node is told to forget them.
 * Called by: feed.c, hear.c, restart.c, turn.c.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

unsigned
evc__redis_last_keys(struct redis_engine *e, struct redis_args *a)
{
	static const char *const names[] = { "opts", "ev", "seqs", "state",
					     "runs" };
	unsigned n;

	for (n = 0; n < sizeof names / sizeof names[0]; n++)
		evc__redis_own_key(e, a, names[n]);
	for (; e->values.set.by_id.n > 0; n++) {
		uint64_t id = evc__kept_oldest(&e->values.set);

		evc__redis_value_key(e, a, id);
		evc__kept_drop(&e->values.set, id);
	}
	return n;
}

/* ---- inputs ---- */

/* The key may be gone when a node reads it: its time is over, or the command
   was lost.  Then the function comes back, and the key is set anew. */
static bool
set_key(struct redis_engine *e, const evc_engine_input *in)
{
	struct redis_args a = { 0 };

	if (!evc__kept_add(&e->values.set, in->id, (evc_value){ NULL, 0 }))
		return false;
	evc__args_text(&a, "SET");
	evc__redis_value_key(e, &a, in->id);
	evc__args_add(&a, in->value.data, in->value.size);
	evc__args_text(&a, "PX");
	evc__args_fmt(&a, "%d", VALUE_PX);
	if (evc__redis_send(e->client, REDIS_SAY, NULL, NULL, &a))
		return true;
	evc__kept_drop(&e->values.set, in->id);
	return false;
}

bool
evc__redis_put_input(struct node_session *s, const evc_engine_input *in)
{
	if (in->value.size < VALUE_LEAST)
		return false;
	if (evc__kept_find(&s->kept, in->id) != NULL)
		return true;
	if (evc__kept_find(&s->e->values.set, in->id) == NULL &&
	    !set_key(s->e, in))
		return false;
	evc__redis_keep(s, in->id, in->value.size);
	return true;
}

void
evc__redis_keep(struct node_session *s, uint64_t id, size_t size)
{
	if (!evc__kept_add(&s->kept, id, (evc_value){ NULL, size }))
		return;
	if (list_empty(&s->keeps))
		list_append(&s->e->sessions.keepers, &s->keeps);
	/* The node limits its values in the same way. */
	while (s->kept.bytes > KEEP_MOST)
		evc__kept_drop(&s->kept, evc__kept_oldest(&s->kept));
}

void
evc__redis_value_missing(struct node_session *s, uint64_t id)
{
	evc__kept_drop(&s->kept, id);
	evc__kept_drop(&s->e->values.set, id);
}

/* ---- forgotten ---- */

static void
forget_value(struct node_session *s, uint64_t id)
{
	/* Without memory the node keeps the value until others need its
	   room. */
	if (evc__kept_drop(&s->kept, id)) {
		(void)evc__frame_put_number(&s->control.bytes, FRAME_FORGET,
					    id);
		evc__session_dirty(s);
	}
	if (s->kept.by_id.n == 0)
		list_remove(&s->keeps);
}

void
evc__redis_forgets(struct redis_engine *e, const uint64_t *ids, size_t n)
{
	struct redis_args a = { 0 };
	struct list *at, *tmp;
	size_t i;

	evc__args_text(&a, "UNLINK");
	for (i = 0; i < n; i++) {
		if (evc__kept_drop(&e->values.set, ids[i]))
			evc__redis_value_key(e, &a, ids[i]);
		LIST_EACH(at, tmp, &e->sessions.keepers)
			forget_value(LIST_OF(at, struct node_session, keeps),
				     ids[i]);
	}
	evc__redis_unlink(e, &a);
}
