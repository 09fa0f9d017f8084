/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Batches of the outbox: what the coordinator is told, in its order, until
 * send.c has sent the batch.
 * Called by: deals.c, sink.c, variables.c, worker.c.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

#define BATCH_MOST ((size_t)1 << 20) /* bytes, roughly */

struct event_batch *
evc__node_batch_add(struct session *s, enum batch_kind kind)
{
	struct event_batch *batch = sync_alloc(1, sizeof *batch);

	if (batch == NULL) {
		evc__node_no_memory(s);
		return NULL;
	}
	batch->session = s;
	batch->kind = kind;
	batch->at = NOWHERE;
	if (s->outbox.last != NULL)
		s->outbox.last->next = batch;
	else
		s->outbox.first = batch;
	s->outbox.last = batch;
	if (s->outbox.next == NULL)
		s->outbox.next = batch;
	return batch;
}

bool
evc__node_tell_about(struct bytes *b, unsigned worker, uint32_t number)
{
	return evc__frame_put_number(b, FRAME_SLOT,
				     (uint64_t)worker << 32 | number) == 0;
}

struct bytes *
evc__node_tell(struct session *s, const struct local_worker *w)
{
	struct event_batch *batch = s->outbox.last;
	uint64_t at;

	if (batch == NULL || batch->kind != BATCH_PLAIN || batch->seq != 0 ||
	    batch->frames.n >= BATCH_MOST)
		batch = evc__node_batch_add(s, BATCH_PLAIN);
	if (batch == NULL || w == NULL)
		return batch != NULL ? &batch->frames : NULL;
	at = (uint64_t)w->index << 32 | w->number;
	if (batch->at != at &&
	    !evc__node_tell_about(&batch->frames, w->index, w->number)) {
		evc__node_no_memory(s);
		return NULL;
	}
	batch->at = at;
	return &batch->frames;
}

void
evc__node_tell_value(struct session *s, uint64_t id, const evc_value *value)
{
	struct event_batch *batch = evc__node_batch_add(s, BATCH_VALUE);

	if (batch == NULL)
		return;
	batch->id = id;
	if (evc_value_copy(&batch->value, value) < 0) {
		evc__node_no_memory(s);
		return;
	}
	evc__node_value_keep(s, id, value);
}
