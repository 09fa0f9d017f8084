/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys in Redis: their names, their deletion, and those of large values.
 */
#ifndef EVC_REDIS_ENGINE_VALUES_H
#define EVC_REDIS_ENGINE_VALUES_H

#include "redis/engine/session.h"

/* Loop thread only. */
struct value_keys {
	struct kept set;       /* ids whose keys were set */
	struct list unlinking; /* deletions without an answer */
};

/* ---- keys.c ---- */

/* Write an empty entry into ev: the first, which creates the stream, or an entry
   behind all others.  fn (NULL: nobody) gets the id, with e.  false: there is no
   connection. */
bool evc__redis_begun(struct redis_engine *e, redis_reply_fn *fn);

/* Keys of this generation: a key of the engine, the stream to a node, a value,
   the number of a node's last renewal. */
void evc__redis_own_key(struct redis_engine *e, struct redis_args *a,
			const char *name);
void evc__redis_to_key(const struct node_session *s, struct redis_args *a);
void evc__redis_value_key(struct redis_engine *e, struct redis_args *a,
			  uint64_t id);
void evc__redis_beat_key(const struct node_session *s, struct redis_args *a);
/* Have the stream to a node end by itself. */
void evc__redis_to_ends(struct node_session *s);
/* Delete `keys`, now or when there is a connection: "UNLINK" and its keys,
   which are taken over, and of which none is pointed to. */
void evc__redis_unlink(struct redis_engine *e, struct redis_args *keys);
/* Send the deletions again, as the first commands on new connections. */
void evc__redis_unlink_again(struct redis_engine *e);
void evc__unlinks_free(struct redis_engine *e);

/* ---- values.c ---- */

/* Add all keys of this generation but those of sessions, for a deletion, and
   forget the values.  Returns the number of keys. */
unsigned evc__redis_last_keys(struct redis_engine *e, struct redis_args *a);
/* Set the key of an input that the node does not have.  false: the input
   travels in the frame. */
bool evc__redis_put_input(struct node_session *s, const evc_engine_input *in);
/* Note that the node may have a value. */
void evc__redis_keep(struct node_session *s, uint64_t id, size_t size);
/* Note that a node has neither the value nor found its key. */
void evc__redis_value_missing(struct node_session *s, uint64_t id);
void evc__redis_forgets(struct redis_engine *e, const uint64_t *ids, size_t n);

#endif
