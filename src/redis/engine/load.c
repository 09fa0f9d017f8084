/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts given variables in place of all: pieces go into the hash new, and a
 * script puts the hash in place.  Until then the variables are as they were.
 * After a lost connection the same piece is sent again.
 * Called by: variables.c.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/* The server needs about a millisecond for a piece of these limits. */
#define COUNT_MOST 500
#define PIECE_BYTES ((size_t)256 << 10)

void
evc__load_anew(struct redis_engine *e)
{
	e->load.at = e->load.part = e->load.filled = 0;
	e->load.begun = e->load.placing = false;
}

void
evc__load_begin(struct redis_engine *e)
{
	e->load.tries = 0;
	evc__load_anew(e);
}

static void
add_head(struct redis_engine *e, struct redis_args *a)
{
	evc__args_text(a, e->lock.g_text);
	evc__args_text(a, e->id);
	evc__args_fmt(a, "%" PRIu64, e->questions.seq);
}

/* Add fields from e->load.at on, as many as fit. */
static void
add_entries(struct redis_engine *e, struct redis_args *a,
	    const evc_engine_question *q)
{
	struct load *l = &e->load;
	size_t i = l->at, part = l->part, bytes = 0;

	l->n_filled = 0;
	while (i < q->n_entries && i - l->at < COUNT_MOST &&
	       bytes < PIECE_BYTES) {
		const evc_engine_entry *x = &q->entries[i];

		if (evc_value_type(&x->value) == EVC_VALUE_NIL) {
			i++;
			continue;
		}
		bytes += evc__vector_add_field(a, x, part++);
		l->n_filled++;
		if (part == evc__vector_n_fields(&x->value)) {
			part = 0;
			i++;
		}
	}
	l->next_at = i;
	l->next_part = part;
}

static bool
send_fill(struct redis_engine *e, const char *what, redis_reply_fn *fn)
{
	struct redis_args a = { 0 };

	evc__args_key(&a, &e->address, "gen");
	evc__args_key(&a, &e->address, "coord");
	evc__args_key(&a, &e->address, "new");
	evc__redis_own_key(e, &a, "seqs");
	add_head(e, &a);
	evc__args_text(&a, what);
	if (fn != NULL)
		add_entries(e, &a, e->questions.current);
	return evc__redis_script(e->client, SCRIPT_FILL, 4, fn, e, &a);
}

static bool
send_place(struct redis_engine *e, redis_reply_fn *fn)
{
	const evc_engine_question *q = e->questions.current;
	struct redis_args a = { 0 };

	evc__args_key(&a, &e->address, "gen");
	evc__args_key(&a, &e->address, "coord");
	evc__args_key(&a, &e->address, "var");
	evc__args_key(&a, &e->address, "count");
	evc__redis_own_key(e, &a, "seqs");
	evc__args_key(&a, &e->address, "pre");
	evc__args_key(&a, &e->address, "new");
	add_head(e, &a);
	evc__args_fmt(&a, "%" PRIu64, q->finished);
	evc__args_fmt(&a, "%zu", e->load.filled);
	e->load.placing =
		evc__redis_script(e->client, SCRIPT_REPLACE, 7, fn, e, &a);
	return e->load.placing;
}

bool
evc__load_send(struct redis_engine *e, redis_reply_fn *fn)
{
	evc__pace_asked(&e->load.pace);
	if (!e->load.begun)
		return send_fill(e, "first", fn);
	return e->load.at < e->questions.current->n_entries ?
		       send_fill(e, "more", fn) :
		       send_place(e, fn);
}

void
evc__load_drop(struct redis_engine *e)
{
	if (e->up && e->client != NULL)
		(void)send_fill(e, "drop", NULL);
}

enum piece
evc__load_answered(struct redis_engine *e, const redisReply *r)
{
	struct load *l = &e->load;

	if (evc__reply_is_doubt(r))
		return PIECE_DOUBT;
	if (evc__pace_refused(e, &l->pace, r))
		return PIECE_MORE;
	if (evc__reply_is(r, "none") && ++l->tries < PIECES_TRIES) {
		evc__load_anew(e);
		return PIECE_MORE;
	}
	if (!evc__reply_is(r, "ok") || l->placing)
		return PIECE_OVER;
	l->begun = true;
	l->at = l->next_at;
	l->part = l->next_part;
	l->filled += l->n_filled;
	evc__pace_rest(e, &l->pace);
	return PIECE_MORE;
}
