/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A coordinator by hand, for tests of nodes: it puts its keys there, reads what
 * nodes tell, frame by frame, and feeds one of them.  Commands that block, and no
 * word of the library's but the frames.
 */
#ifndef TESTS_SUPPORT_REDIS_HAND_COORD_H
#define TESTS_SUPPORT_REDIS_HAND_COORD_H

#include "redis_node_util.h"
#include "redis_util.h"

#include "wire/frames.h"
#include "redis/client/protocol.h"

#include <evcoord/redis.h>

#define HAND_NS "hand"
#define HAND_SLOTS 16
#define HAND_FRAME ((size_t)16 << 20)
#define HAND_RANK 20 /* of the first worker of a node */

/* A function that was put. */
struct put {
	uint64_t n;
	unsigned slot, flags;
	char function[16];
	int a;
};

/* A frame that came. */
struct heard {
	unsigned type;
	unsigned slot;
	uint32_t life;
	uint64_t inc;
	uint64_t seq;     /* of its entry */
	bool used;
	unsigned char *bytes;
	struct frame f;   /* into bytes */
};

struct hand {
	struct redis_server s;
	unsigned gen;
	char last[40];          /* of ev */
	char node[NODE_NAME_SIZE];
	uint64_t inc, to;       /* its life, the last entry to it */
	uint32_t lives[HAND_SLOTS];
	long pids[HAND_SLOTS];
	struct heard *heard;
	size_t n_heard;
	struct put *puts;       /* by hand_put */
	size_t n_puts;
	struct bytes out;
	pid_t pid;              /* the node */
};

/* ---- its keys ---- */

/* The next generation. */
static MAYBE_UNUSED void
hand_take(struct hand *h, long lease_ms)
{
	char opts[64];

	h->gen++;
	strcpy(h->last, "0-0");
	rs_do(&h->s, "SET {" HAND_NS "}:ver " PROTOCOL_VERSION);
	snprintf(opts, sizeof(opts), "%ld %zu", lease_ms, HAND_FRAME);
	rs_do(&h->s, "SET {" HAND_NS "}:%u:opts %s", h->gen, opts);
	rs_do(&h->s, "HSET {" HAND_NS "}:count whole ''");
	rs_do(&h->s, "SET {" HAND_NS "}:gen %u", h->gen);
	rs_do(&h->s, "SET {" HAND_NS "}:coord hand");
}

/* A node with so many workers. */
static MAYBE_UNUSED void
hand_node(struct hand *h, const char *options, unsigned n_workers)
{
	char uri[200];

	/* Static libraries: this call links the engine, for the node. */
	ck_assert_ptr_nonnull(evc_redis_engine("redis"));
	h->pid = node_start(rs_uri(&h->s, HAND_NS, options, uri, sizeof(uri)),
			    n_workers);
}

/* The same, with a server and a generation. */
static MAYBE_UNUSED void
hand_start(struct hand *h, long lease_ms, unsigned n_workers)
{
	*h = (struct hand){ .gen = 0 };
	rs_start(&h->s);
	hand_take(h, lease_ms);
	hand_node(h, "", n_workers);
}

static MAYBE_UNUSED void
hand_free(struct hand *h)
{
	size_t i;

	for (i = 0; i < h->n_heard; i++)
		free(h->heard[i].bytes);
	free(h->heard);
	free(h->puts);
	bytes_free(&h->out);
	rs_free(&h->s);
}

/* The node ends as it should, and so does everything else. */
static MAYBE_UNUSED void
hand_end(struct hand *h)
{
	node_end(h->pid);
	hand_free(h);
}

/* ---- what is told ---- */

static MAYBE_UNUSED const char *
hand_field(const redisReply *fields, const char *name, size_t *ret_n)
{
	size_t i;

	for (i = 0; i + 1 < fields->elements; i += 2)
		if (strcmp(fields->element[i]->str, name) == 0) {
			*ret_n = fields->element[i + 1]->len;
			return fields->element[i + 1]->str;
		}
	ck_abort_msg("an entry without %s", name);
	return NULL;
}

static MAYBE_UNUSED void
hand_note(struct hand *h, struct heard *x)
{
	struct frame_note note;

	if (x->type == FRAME_UP) {
		ck_assert_int_eq(evc__frame_get_note(&x->f, &note), 0);
		ck_assert_uint_lt(x->slot, HAND_SLOTS);
		h->lives[x->slot] = x->life;
		h->pids[x->slot] = (long)note.number;
	}
}

static MAYBE_UNUSED void
hand_frames(struct hand *h, const char *d, size_t n, uint64_t inc, uint64_t seq)
{
	unsigned slot = UINT_MAX;
	uint32_t life = 0;
	struct frame f;
	uint64_t at;

	while (n > 0) {
		struct heard *x;

		ck_assert_msg(evc__frame_next(d, n, HAND_FRAME, &f) == 1,
			      "no frame: %s", evc_last_error());
		if (f.type == FRAME_SLOT) {
			OK(evc__frame_get_number(&f, &at));
			slot = (unsigned)(at >> 32);
			life = (uint32_t)at;
		} else {
			h->heard = realloc(h->heard, (h->n_heard + 1) *
							     sizeof(*h->heard));
			ck_assert_ptr_nonnull(h->heard);
			x = &h->heard[h->n_heard++];
			*x = (struct heard){ .type = f.type, .slot = slot,
					     .life = life, .inc = inc,
					     .seq = seq };
			x->bytes = malloc(f.whole);
			ck_assert_ptr_nonnull(x->bytes);
			memcpy(x->bytes, d, f.whole);
			ck_assert_int_eq(evc__frame_next(x->bytes, f.whole,
							 HAND_FRAME, &x->f),
					 1);
			hand_note(h, x);
		}
		d += f.whole;
		n -= f.whole;
	}
}

/* As one entry. */
static MAYBE_UNUSED void
hand_put_entry(struct hand *h, struct bytes *b)
{
	rs_do(&h->s, "XADD {" HAND_NS "}:%u:to:%s.%llu %llu-1 d %b", h->gen,
	      h->node, (unsigned long long)h->inc,
	      (unsigned long long)++h->to, bytes_at(b), b->n);
	bytes_take(b, b->n);
}

/* It has registered: its workers are to begin. */
static MAYBE_UNUSED void
hand_ranks(struct hand *h)
{
	const struct heard *x = NULL;
	struct bytes b = { 0 };
	struct frame_note note;
	size_t i;

	for (i = 0; i < h->n_heard; i++)
		if (h->heard[i].type == FRAME_NODE)
			x = &h->heard[i];
	ck_assert_ptr_nonnull(x);
	OK(evc__frame_get_note(&x->f, &note));
	for (i = 0; i < note.number; i++)
		OK(evc__frame_put_number(&b, FRAME_RANK,
					 i << 32 | (HAND_RANK + i)));
	hand_put_entry(h, &b);
	bytes_free(&b);
}

static MAYBE_UNUSED void
hand_entry(struct hand *h, const redisReply *e)
{
	const redisReply *fields = e->element[1];
	const char *w, *i, *s, *d;
	size_t n_w, n, n_d;

	snprintf(h->last, sizeof(h->last), "%s", e->element[0]->str);
	w = hand_field(fields, "w", &n_w);
	i = hand_field(fields, "i", &n);
	s = hand_field(fields, "s", &n);
	d = hand_field(fields, "d", &n_d);
	if (strcmp(s, "0") == 0) {
		snprintf(h->node, sizeof(h->node), "%s", w);
		ck_assert_uint_gt(strtoull(i, NULL, 10), h->inc);
		h->inc = strtoull(i, NULL, 10);
		h->to = 0;
		memset(h->lives, 0, sizeof(h->lives));
	}
	hand_frames(h, d, n_d, strtoull(i, NULL, 10), strtoull(s, NULL, 10));
	if (strcmp(s, "0") == 0)
		hand_ranks(h);
}

/* What has come within a few milliseconds. */
static MAYBE_UNUSED void
hand_read(struct hand *h)
{
	redisReply *r = rs_ask(&h->s,
			       "XREAD COUNT 100 BLOCK 5 STREAMS "
			       "{" HAND_NS "}:%u:ev %s",
			       h->gen, h->last);
	const redisReply *entries;
	size_t i;

	if (r->type == REDIS_REPLY_ARRAY) {
		entries = r->element[0]->element[1];
		for (i = 0; i < entries->elements; i++)
			hand_entry(h, entries->element[i]);
	}
	freeReplyObject(r);
}

/* The oldest of that type that nobody has asked for; NULL: there is none. */
static MAYBE_UNUSED struct heard *
hand_find(struct hand *h, unsigned type)
{
	size_t i;

	for (i = 0; i < h->n_heard; i++)
		if (h->heard[i].type == type && !h->heard[i].used) {
			h->heard[i].used = true;
			return &h->heard[i];
		}
	return NULL;
}

static MAYBE_UNUSED struct heard *
hand_await(struct hand *h, unsigned type)
{
	double until = t_now() + T_LIMIT;
	struct heard *x;

	while ((x = hand_find(h, type)) == NULL) {
		ck_assert_msg(t_now() < until, "no frame of type %u came",
			      type);
		hand_read(h);
	}
	return x;
}

/* It has registered, anew, and so many workers are up. */
static MAYBE_UNUSED void
hand_await_node(struct hand *h, unsigned n_workers)
{
	struct frame_note note;
	struct heard *x = hand_await(h, FRAME_NODE);
	uint64_t inc = x->inc;
	unsigned n;

	OK(evc__frame_get_note(&x->f, &note));
	ck_assert_uint_eq(note.number, n_workers);
	hand_await(h, FRAME_HELLO);
	for (n = 0; n < n_workers;)
		n += hand_await(h, FRAME_UP)->inc == inc;
}

/* The result of that attempt; its value is valid as long as h. */
static MAYBE_UNUSED struct frame_result
hand_result(struct hand *h, uint64_t n)
{
	double until = t_now() + T_LIMIT;
	struct frame_result r;
	size_t i;

	for (;;) {
		for (i = 0; i < h->n_heard; i++) {
			struct heard *x = &h->heard[i];

			if (x->type != FRAME_RESULT || x->used)
				continue;
			OK(evc__frame_get_result(&x->f, &r));
			ck_assert_uint_eq(r.r.n_updates, 0);
			if (r.r.n == n) {
				x->used = true;
				return r;
			}
		}
		ck_assert_msg(t_now() < until, "no result of %llu came",
			      (unsigned long long)n);
		hand_read(h);
	}
}

/* ---- what it is given ---- */

static MAYBE_UNUSED void
hand_slot(struct hand *h, unsigned slot)
{
	OK(evc__frame_put_number(&h->out, FRAME_SLOT,
				 (uint64_t)slot << 32 | h->lives[slot]));
}

/* What stands in h->out, as one entry. */
static MAYBE_UNUSED void
hand_feed(struct hand *h)
{
	hand_put_entry(h, &h->out);
}

static MAYBE_UNUSED void
hand_put_task(struct hand *h, unsigned slot, const evc_engine_task *t)
{
	bool kept[8] = { false };
	unsigned i;

	for (i = 0; i < t->n_inputs; i++)
		kept[i] = t->inputs[i].value.size == 0;
	hand_slot(h, slot);
	OK(evc__frame_put_task(&h->out, HAND_FRAME, t, kept));
}

/* One function with arguments by a format of evc_pack. */
static MAYBE_UNUSED void
hand_put(struct hand *h, unsigned slot, uint64_t n, const char *function,
	 unsigned flags, int a)
{
	evc_engine_task t = { .n = n, .id = n + 1000, .function = function,
			      .attempt = 1, .flags = flags };
	struct put *p;

	OK(evc_pack(&t.args, "[i]", a));
	hand_put_task(h, slot, &t);
	evc_value_free(&t.args);
	h->puts = realloc(h->puts, (h->n_puts + 1) * sizeof(*h->puts));
	ck_assert_ptr_nonnull(h->puts);
	p = &h->puts[h->n_puts++];
	*p = (struct put){ .n = n, .slot = slot, .flags = flags, .a = a };
	snprintf(p->function, sizeof(p->function), "%s", function);
}

static MAYBE_UNUSED void
hand_run(struct hand *h, unsigned slot, uint64_t n, const char *function, int a)
{
	hand_put(h, slot, n, function, 0, a);
	hand_feed(h);
}

static MAYBE_UNUSED void
hand_say(struct hand *h, enum frame_type type)
{
	OK(evc__frame_put_bare(&h->out, type));
	hand_feed(h);
}

static MAYBE_UNUSED void
hand_say_number(struct hand *h, enum frame_type type, uint64_t number)
{
	OK(evc__frame_put_number(&h->out, type, number));
	hand_feed(h);
}

static MAYBE_UNUSED int64_t
hand_number_in(const struct frame_result *r)
{
	int64_t is = 0;

	ck_assert_msg(r->r.code == 0, "%llu has failed: %d, %s",
		      (unsigned long long)r->r.n, r->r.code, r->r.text);
	OK(evc_unpack(&r->r.value, "I", &is));
	return is;
}

/* That function once more, behind all others; its new number. */
static MAYBE_UNUSED uint64_t
hand_put_again(struct hand *h, uint64_t n)
{
	const struct put *found = NULL;
	uint64_t newest = 0;
	struct put p;
	size_t i;

	for (i = 0; i < h->n_puts; i++) {
		if (h->puts[i].n == n)
			found = &h->puts[i];
		if (h->puts[i].n > newest)
			newest = h->puts[i].n;
	}
	ck_assert_msg(found != NULL, "%llu has come back",
		      (unsigned long long)n);
	p = *found; /* they may move */
	hand_put(h, p.slot, newest + 1, p.function, p.flags, p.a);
	hand_feed(h);
	return newest + 1;
}

/* A result that is a number.  A node gives back what has waited for 20 ms behind
   another function, as on a busy machine; it is put again, as a new attempt. */
static MAYBE_UNUSED int64_t
hand_number(struct hand *h, uint64_t n)
{
	struct frame_result r;

	while ((r = hand_result(h, n)).r.took < 0)
		n = hand_put_again(h, n);
	return hand_number_in(&r);
}

#endif
