/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The outbox: batches of all that the coordinator is told, in their order,
 * until send.c has sent them.  A batch may hold results with
 * updates.  The server makes all updates of such a result and adds its event,
 * or does nothing; a result whose updates fail is told again, as the failure of
 * its function; a result with reads that do not hold is given back.
 * Called by: sink.c, send.c, variables.c, worker.c.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

#include "base/json_write.h"

#define BATCH_MOST ((size_t)1 << 20) /* bytes, roughly */
/* The results that have come while a batch was under way go together; so the
   rate does not depend on the way to the server.  These limits keep the server
   busy for a few milliseconds at most. */
#define DEALS_MOST 512
#define DEALS_BYTES ((size_t)1 << 20)
#define DEALS_US 8192 /* of all; a deal with more is alone */

/* ---- batches ---- */

/* Append an empty batch.  NULL: no memory, and the session ends. */
static struct event_batch *
add_batch(struct session *s)
{
	struct event_batch *batch = sync_alloc(1, sizeof *batch);

	if (batch == NULL) {
		evc__node_no_memory(s);
		return NULL;
	}
	batch->session = s;
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

/* Add a FRAME_SLOT: the frames that follow are about this start of a worker.
   false: no memory. */
static bool
put_about(struct bytes *b, unsigned worker, uint32_t number)
{
	return evc__frame_put_number(b, FRAME_SLOT,
				     (uint64_t)worker << 32 | number) == 0;
}

struct bytes *
evc__node_tell(struct session *s, const struct local_worker *w)
{
	struct event_batch *batch = s->outbox.last;
	uint64_t at;

	if (batch == NULL || batch->deals != NULL || batch->seq != 0 ||
	    batch->frames.n >= BATCH_MOST)
		batch = add_batch(s);
	if (batch == NULL || w == NULL)
		return batch != NULL ? &batch->frames : NULL;
	at = (uint64_t)w->index << 32 | w->number;
	if (batch->at != at &&
	    !put_about(&batch->frames, w->index, w->number)) {
		evc__node_no_memory(s);
		return NULL;
	}
	batch->at = at;
	return &batch->frames;
}

/* ---- a deal ---- */

static void
free_deal(struct deal *d)
{
	bytes_free(&d->frame);
	bytes_free(&d->updates);
	bytes_free(&d->lengths);
	sync_free(d);
}

void
evc__node_deals_free(struct event_batch *batch)
{
	struct deal *d;

	while ((d = batch->deals) != NULL) {
		batch->deals = d->next;
		batch->session->workers[d->worker].n_deals--;
		free_deal(d);
	}
	batch->last_deal = NULL;
	batch->n_deals = 0;
	batch->us = 0;
	batch->n_bytes = 0;
}

static bool
put_word(struct deal *d, const void *bytes, size_t n)
{
	return bytes_put(&d->updates, bytes, n) &&
	       bytes_put(&d->lengths, &n, sizeof n);
}

static bool
put_update(struct deal *d, const evc_engine_update *u)
{
	char op[64], by[40];
	struct text t = evc__text_in(by, sizeof by);
	struct text o = evc__text_in(op, sizeof op);
	evc_value word = u->op == EVC_VARIABLE_SET ? u->value : u->expected;
	const char *hash = "";
	size_t n = 0;

	evc__text_fmt(&o, "%u", u->op);
	if (u->op == EVC_VARIABLE_READ_HASHED ||
	    u->op == EVC_VARIABLE_VECTOR_READ) {
		if (evc_unpack(&u->expected, "S", &hash, &n) < 0)
			return false;
		word = (evc_value){ hash, n };
	}
	if (u->op == EVC_VARIABLE_ADD) {
		evc__text_double(&t, u->by);
		word = (evc_value){ by, strlen(by) };
	} else if (u->op == EVC_VARIABLE_VECTOR_READ) {
		evc__text_fmt(&o, " %.*s", (int)n, hash);
		word = evc__operation_patch(u);
	} else if (u->op == EVC_VARIABLE_VECTOR_ADD)
		word = evc__operation_patch(u);
	return put_word(d, op, strlen(op)) &&
	       put_word(d, u->name, strlen(u->name)) &&
	       put_word(d, word.data, word.size);
}

/* The frame of the result has a FRAME_SLOT of its own. */
static struct deal *
new_deal(const struct local_worker *w, const struct frame_result *f)
{
	struct deal *d = sync_alloc(1, sizeof *d);
	struct frame_result bare = *f;
	bool fine;
	unsigned i;

	if (d == NULL)
		return NULL;
	d->worker = w->index;
	d->number = w->number;
	d->n = f->r.n;
	d->took = f->r.took;
	d->succeeded = f->r.code == 0;
	bare.r.n_updates = 0;
	fine = put_about(&d->frame, d->worker, d->number) &&
	       evc__frame_put_result(&d->frame, UINT32_MAX, &bare) == 0;
	for (i = 0; fine && i < f->r.n_updates; i++)
		fine = put_update(d, &f->r.updates[i]);
	d->n_updates = f->r.n_updates;
	if (fine)
		return d;
	free_deal(d);
	return NULL;
}

/* ---- the deals of a batch ---- */

static bool
has_room_for_deal(const struct event_batch *batch, const struct deal *more)
{
	return batch->seq == 0 && batch->n_deals < DEALS_MOST &&
	       batch->frames.n + batch->n_bytes < DEALS_BYTES &&
	       (batch->deals == NULL ||
		batch->us + more->us <= DEALS_US);
}

void
evc__node_tell_deal(struct local_worker *w, const struct frame_result *f,
		    bool plain, double us)
{
	struct session *s = w->session;
	struct deal *d = new_deal(w, f);
	struct event_batch *batch = s->outbox.last;

	if (d == NULL) {
		evc__node_no_memory(s);
		return;
	}
	d->plain = plain;
	d->us = us;
	/* A batch of plain frames that was not sent takes the result up. */
	if (batch == NULL || !has_room_for_deal(batch, d))
		batch = add_batch(s);
	if (batch == NULL) {
		free_deal(d);
		return;
	}
	if (batch->last_deal != NULL)
		batch->last_deal->next = d;
	else
		batch->deals = d;
	batch->last_deal = d;
	batch->n_deals++;
	batch->us += d->us;
	batch->n_bytes += d->frame.n + d->updates.n;
	w->n_deals++;
}

bool
evc__node_deals_wait(const struct session *s)
{
	const struct event_batch *batch = s->outbox.last;

	return batch != NULL && batch->deals != NULL && batch->seq == 0;
}

static void
add_deal(struct redis_args *a, const struct deal *d)
{
	const size_t *length =
		(const size_t *)(const void *)bytes_at(&d->lengths);
	const unsigned char *at = bytes_at(&d->updates);
	unsigned i;

	evc__args_add(a, bytes_at(&d->frame), d->frame.n);
	evc__args_text(a, !d->succeeded ? "0" : d->plain ? "2" : "1");
	evc__args_fmt(a, "%u", d->n_updates);
	for (i = 0; i < d->n_updates * 3; i++) {
		evc__args_add(a, at, length[i]);
		at += length[i];
	}
}

bool
evc__node_deals_send(struct event_batch *batch, redis_reply_fn *fn)
{
	struct session *s = batch->session;
	struct node *n = s->node;
	struct redis_args a = { 0 };
	const struct deal *d;

	evc__args_key(&a, &n->address, "gen");
	evc__args_key(&a, &n->address, "lease:%s", n->name);
	evc__node_key(s, &a, "ev");
	evc__args_key(&a, &n->address, "var");
	evc__args_key(&a, &n->address, "count");
	evc__node_key(s, &a, "seqs");
	evc__args_key(&a, &n->address, "pre");
	evc__args_text(&a, s->gen);
	evc__args_text(&a, s->stamp);
	evc__args_text(&a, n->name);
	evc__node_add_inc(s, &a);
	evc__args_fmt(&a, "%llu", (unsigned long long)batch->seq);
	evc__args_add(&a, bytes_at(&batch->frames), batch->frames.n);
	evc__args_fmt(&a, "%u", batch->n_deals);
	for (d = batch->deals; d != NULL; d = d->next)
		add_deal(&a, d);
	return evc__node_script(s, SCRIPT_SEND, 7, fn, batch, &a);
}

/* ---- answers ---- */

/* Add the result as a failure. */
static bool
put_failed(struct bytes *b, const struct deal *d, evc_status code,
	   const char *why)
{
	const struct frame_result f = {
		.r = { .n = d->n,
		       .code = code,
		       .kind = EVC_FAILED_FUNCTION,
		       .text = why,
		       .took = d->took },
	};

	return evc__frame_put_result(b, UINT32_MAX, &f) == 0;
}

/* Add a result that needs no update as it is, and any other as a failure. */
static bool
put_without_update(struct bytes *b, const struct deal *d, evc_status code,
		   const char *why)
{
	if (d->plain && d->n_updates == 0)
		return bytes_put(b, bytes_at(&d->frame), d->frame.n);
	return put_about(b, d->worker, d->number) &&
	       put_failed(b, d, code, why);
}

/* Add the result as one after which the function has to run again. */
static bool
put_conflict(struct bytes *b, const struct deal *d)
{
	const struct frame_result f = {
		.r = { .n = d->n, .code = EVC_ABORTED, .took = -1 },
	};

	return evc__frame_put_result(b, UINT32_MAX, &f) == 0;
}

/* why: ""; a read does not hold. */
static void
fail_one(struct event_batch *batch, const struct deal *d, const char *why)
{
	struct session *s = batch->session;
	const struct local_worker then = { .index = d->worker,
					   .number = d->number };
	struct bytes *b = evc__node_tell(s, &then);
	evc_status code = why[0] == '!' ? EVC_DATA_LOSS : EVC_INVALID_ARGUMENT;

	/* Names of variables may have any bytes, and the text is one line. */
	(void)evc_refuse(-code, "%s", why[0] == '!' ? why + 1 : why);
	if (b != NULL && !(why[0] == '\0' ?
				   put_conflict(b, d) :
				   put_failed(b, d, code, evc_last_error())))
		evc__node_no_memory(s);
}

bool
evc__node_deals_done(struct event_batch *batch, const redisReply *r)
{
	const struct deal *d = batch->deals;
	int64_t at, before = 0, last = -1;
	unsigned n_failed = 0;
	size_t i, n;

	/* The numbers grow. */
	for (i = 1; i < r->elements; i += 2) {
		const char *why = evc__reply_bytes(r, i + 1, &n);

		if (why == NULL || !evc__reply_number(r, i, &at) ||
		    at <= last || at >= (int64_t)batch->n_deals)
			return false;
		last = at;
		for (; before < at; before++)
			d = d->next;
		fail_one(batch, d, why);
		n_failed++;
	}
	/* Without an event the number of the batch was not used. */
	if (n_failed == batch->n_deals && batch->frames.n == 0)
		batch->session->outbox.seq--;
	return true;
}

void
evc__node_deals_fail(struct event_batch *batch, const redisReply *r)
{
	struct session *s = batch->session;
	char why[REDIS_WHY_SIZE];
	const struct deal *d;

	evc__copy(why, sizeof why, evc__reply_why(r));
	for (d = batch->deals; d != NULL; d = d->next)
		if (!put_without_update(&batch->frames, d,
					-evc__reply_status(r), why)) {
			evc__node_no_memory(s);
			return;
		}
	evc__node_deals_free(batch);
	/* The number of the batch was not used. */
	batch->at = NOWHERE;
}
