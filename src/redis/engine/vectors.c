/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vectors in Redis are several fields each (protocol.h): for a snapshot they are
 * put together, for a load they are cut up.
 * Called by: snapshot.c, load.c.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include "wire/head.h"
#include "wire/vector.h"

#define FIELD_SIZE 8  /* bytes of the size of a vector */
#define DIGITS 7      /* of the number of a chunk */

/* A chunk as it was read. */
struct chunk_read {
	struct chunk_read *next;
	uint32_t i;
	unsigned size;
	unsigned char bytes[];
};

struct vector_read {
	struct table_name at;
	unsigned width;  /* 0: no size was read, or the variable is no vector */
	uint32_t n;
	struct chunk_read *chunks; /* the latest first */
	char name[];
};

static size_t
chunks_of(size_t n_bytes)
{
	return (n_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
}

static evc_status
no_memory_for_parts(void)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
			  "no memory for the variables");
}

/* ---- a snapshot ---- */

static struct vector_read *
find_vector(const struct vectors *v, const char *name)
{
	return v->by_name.n > 0 ? evc__table_find_name(&v->by_name, name) :
				  NULL;
}

static struct vector_read *
make_vector(struct vectors *v, const char *name)
{
	struct vector_read *x = find_vector(v, name);
	size_t size = strlen(name) + 1;

	if (x != NULL)
		return x;
	x = sync_alloc(1, sizeof *x + size);
	if (x == NULL || !evc__table_reserve(&v->by_name, 1)) {
		sync_free(x);
		return NULL;
	}
	x->at.text = memcpy(x->name, name, size);
	evc__table_add_name(&v->by_name, &x->at);
	return x;
}

static int
take_chunk(struct vectors *v, const char *field, const evc_value *bytes)
{
	char digits[DIGITS + 1], *end;
	struct chunk_read *c;
	struct vector_read *x;

	/* The vector had fewer chunks then, as its size says. */
	if (bytes->size == 0)
		return 1;
	evc__copy(digits, sizeof digits, field + 1);
	if (strspn(digits, "0123456789abcdef") != DIGITS ||
	    field[1 + DIGITS] == '\0' || bytes->size > CHUNK_BYTES)
		return evc_refuse(-EVC_DATA_LOSS,
				  "redis: a wrong chunk of a vector");
	x = make_vector(v, field + 1 + DIGITS);
	c = x != NULL ? sync_alloc_bytes(sizeof *c + bytes->size) : NULL;
	if (c == NULL)
		return no_memory_for_parts();
	c->i = (uint32_t)strtoul(digits, &end, 16);
	c->size = (unsigned)bytes->size;
	memcpy(c->bytes, bytes->data, bytes->size);
	c->next = x->chunks;
	x->chunks = c;
	return 1;
}

/* true: the bytes are the size of a vector. */
static bool
read_size(const evc_value *bytes, unsigned *ret_width, uint32_t *ret_n)
{
	const unsigned char *p = bytes->data;

	if (bytes->size != FIELD_SIZE || p[0] != 0xc7 || p[1] != 5 ||
	    p[2] != EXT_STORED || (p[3] != 4 && p[3] != 8))
		return false;
	*ret_width = p[3];
	*ret_n = (uint32_t)head_number(p + 4, 4);
	return *ret_n <= UINT32_MAX / *ret_width;
}

int
evc__vectors_take(struct vectors *v, const char *field, const evc_value *bytes)
{
	struct vector_read *x;
	unsigned width;
	uint32_t n;

	if (field[0] == '\1')
		return take_chunk(v, field, bytes);
	if (!read_size(bytes, &width, &n)) {
		x = find_vector(v, field);
		if (x != NULL)
			x->width = 0;
		return 0;
	}
	x = make_vector(v, field);
	if (x == NULL)
		return no_memory_for_parts();
	x->width = width;
	x->n = n;
	return 1;
}

static evc_status
damaged(const char *name)
{
	return evc_refuse(-EVC_DATA_LOSS,
			  "variable %.100s is damaged: a part of the vector is "
			  "missing",
			  name);
}

/* Put the latest chunks in their places; the vector has n_bytes. */
static evc_status
place_chunks(const struct vector_read *x, unsigned char *to, size_t n_bytes)
{
	size_t n = chunks_of(n_bytes), n_seen = 0, size;
	const struct chunk_read *c;
	unsigned char *seen;

	seen = sync_alloc(1, n + 1);
	if (seen == NULL)
		return no_memory_for_parts();
	for (c = x->chunks; c != NULL; c = c->next) {
		if (c->i >= n || seen[c->i])
			continue;
		size = n_bytes - (size_t)c->i * CHUNK_BYTES;
		if (c->size != (size < CHUNK_BYTES ? size : CHUNK_BYTES))
			break;
		memcpy(to + (size_t)c->i * CHUNK_BYTES, c->bytes, c->size);
		seen[c->i] = 1;
		n_seen++;
	}
	sync_free(seen);
	return n_seen == n ? 0 : damaged(x->name);
}

static evc_status
give_vector(const struct vector_read *x, evc_engine_question *q,
	    const evc_engine_answer *like)
{
	evc_engine_answer a = *like;
	evc_engine_entry entry = { .name = x->name };
	size_t n_bytes = (size_t)x->n * x->width, n_chunks = 0;
	const struct chunk_read *c;
	unsigned char *at;
	evc_status st;

	for (c = x->chunks; c != NULL; c = c->next)
		n_chunks++;
	/* A size alone takes no memory. */
	if (n_chunks < chunks_of(n_bytes))
		return damaged(x->name);
	st = evc__vector_room(x->width, x->n, &entry.value, &at);
	if (st < 0)
		return st;
	st = place_chunks(x, at, n_bytes);
	a.entries = &entry;
	a.n_entries = 1;
	a.anew = false;
	if (st == 0 && !q->part(q, &a))
		st = evc_refuse(-EVC_CANCELLED, "a part was refused");
	evc_value_free(&entry.value);
	return st;
}

static void
free_vector(struct vectors *v, struct vector_read *x)
{
	struct chunk_read *c;

	while ((c = x->chunks) != NULL) {
		x->chunks = c->next;
		sync_free(c);
	}
	evc__table_remove(&v->by_name, &x->at.node);
	sync_free(x);
}

evc_status
evc__vectors_give(struct vectors *v, evc_engine_question *q,
		  const evc_engine_answer *like)
{
	struct vector_read *x, *next;
	evc_status st = 0;

	TABLE_EACH(x, next, &v->by_name) {
		if (st == 0 && x->width != 0)
			st = give_vector(x, q, like);
		free_vector(v, x);
	}
	return st;
}

void
evc__vectors_free(struct vectors *v)
{
	struct vector_read *x, *next;

	TABLE_EACH(x, next, &v->by_name)
		free_vector(v, x);
	evc__table_free(&v->by_name);
	*v = (struct vectors){ 0 };
}

/* ---- a load ---- */

size_t
evc__vector_n_fields(const evc_value *v)
{
	struct vector x;

	if (!evc__vector_look(v, &x))
		return 1;
	return 1 + chunks_of(x.n * x.width);
}

size_t
evc__vector_add_field(struct redis_args *a, const evc_engine_entry *x, size_t i)
{
	evc_value bytes = x->value;
	struct vector v;
	size_t from;

	if (!evc__vector_look(&x->value, &v)) {
		evc__args_text(a, x->name);
	} else if (i == 0) {
		evc__args_text(a, x->name);
		evc__args_fmt(a, "%c%c%c%c%c%c%c%c", 0xc7, 5, EXT_STORED,
			      (int)v.width, (int)(v.n >> 24 & 0xff),
			      (int)(v.n >> 16 & 0xff), (int)(v.n >> 8 & 0xff),
			      (int)(v.n & 0xff));
		return FIELD_SIZE;
	} else {
		evc__args_fmt(a, "\1%0*x%s", DIGITS, (unsigned)(i - 1),
			      x->name);
		from = (i - 1) * CHUNK_BYTES;
		bytes.data = v.at + from;
		bytes.size = v.n * v.width - from;
		if (bytes.size > CHUNK_BYTES)
			bytes.size = CHUNK_BYTES;
	}
	evc__args_add(a, bytes.data, bytes.size);
	return strlen(x->name) + bytes.size;
}
