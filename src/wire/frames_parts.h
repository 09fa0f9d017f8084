/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of frames: numbers, texts, values.  Included by frames*.c.
 */
#ifndef EVC_CLUSTER_FRAMES_PARTS_H
#define EVC_CLUSTER_FRAMES_PARTS_H

#include "wire/frames.h"
#include "wire/head.h"
#include "wire/walk.h"

#define TEXT_MOST 65534

/* The name of a type: "task". */
const char *evc__frame_name(unsigned type);

/* ---- writing: into room that is there ---- */

struct parts_out {
	unsigned char *at;
	struct outgoing *lends; /* NULL: all values are copied */
};

/* Values that are lent. */
struct lends {
	size_t n;
	uint64_t bytes;
};

static inline void
lends_count(struct lends *l, const evc_value *v)
{
	if (v->size < LEND_LEAST)
		return;
	l->n++;
	l->bytes += v->size;
}

/* Begin a frame with a body of `size` bytes. what: for the text of a
   refusal. */
evc_status evc__parts_begin_lending(struct parts_out *o, struct outgoing *to,
				    const struct lends *l, size_t max_frame,
				    enum frame_type type, uint64_t size,
				    const char *what);
evc_status evc__parts_begin(struct parts_out *o, struct bytes *b,
			    size_t max_frame, enum frame_type type,
			    uint64_t size, const char *what);

/* Bytes of a text in a frame; a long text is cut. */
static inline size_t
text_length(const char *s)
{
	return s != NULL ? strnlen(s, TEXT_MOST) : 0;
}

static inline uint64_t
text_size(const char *s)
{
	return 3 + (uint64_t)text_length(s);
}

static inline uint64_t
value_length(const evc_value *v)
{
	return 4 + (uint64_t)v->size;
}

static inline void
out_number(struct parts_out *o, unsigned n, uint64_t v)
{
	head_put_number(o->at, n, v);
	o->at += n;
}

static inline void
out_double(struct parts_out *o, double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof bits);
	out_number(o, 8, bits);
}

static inline void
out_bytes(struct parts_out *o, const void *p, size_t n)
{
	if (n > 0)
		memcpy(o->at, p, n);
	o->at += n;
}

static inline void
out_text(struct parts_out *o, const char *s)
{
	size_t n = text_length(s);

	out_number(o, 2, n);
	out_bytes(o, s, n);
	*o->at++ = 0;
}

/* There is room, by evc__parts_begin_lending. */
static inline void
out_lent(struct outgoing *to, const unsigned char *at, const evc_value *v)
{
	to->lent[to->n_lent++] = (struct lent){
		.at = to->taken + (size_t)(at - bytes_at(&to->own)),
		.p = v->data,
		.n = v->size,
	};
	to->n_lent_bytes += v->size;
}

static inline void
out_value(struct parts_out *o, const evc_value *v)
{
	out_number(o, 4, v->size);
	if (o->lends != NULL && v->size >= LEND_LEAST)
		out_lent(o->lends, o->at, v);
	else
		out_bytes(o, v->data, v->size);
}

/* ---- reading ---- */

struct parts_in {
	const unsigned char *at;
	size_t left;
	unsigned type;
	const char *wrong; /* the first mistake; all later reads give 0 */
};

static inline struct parts_in
parts_in_of(const struct frame *f)
{
	return (struct parts_in){ .at = f->body,
				  .left = f->size,
				  .type = f->type };
}

uint64_t in_number(struct parts_in *in, unsigned n);
double in_double(struct parts_in *in);
/* "" after a mistake. */
const char *in_text(struct parts_in *in, size_t most);
/* A value of no bytes is { NULL, 0 }. */
evc_value in_value(struct parts_in *in);
/* 0; refused: there was a mistake, or bytes are left. */
evc_status evc__parts_end(const struct parts_in *in);

#endif
