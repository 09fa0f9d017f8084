/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The heads of frames, frames of one number, and the reading of single parts.
 * A frame is written in two steps: first the length of its body is known, then
 * the bytes go into room of this length.
 * Called by: cluster/processes, cluster/worker and redis for whole frames;
 * frames_get.c and frames_put.c for parts.
 * Locks: none.
 */
#include "wire/frames.h"

#include <evcoord.h>

#include "wire/frames_parts.h"

#define MAGIC_0 0xe5
#define MAGIC_1 0xc1

/* ---- heads ---- */

int
evc__frame_next(const void *bytes, size_t n, size_t max_frame,
		struct frame *ret)
{
	const unsigned char *p = bytes;
	uint64_t size;

	*ret = (struct frame){ .whole = FRAME_HEAD };
	if ((n > 0 && p[0] != MAGIC_0) || (n > 1 && p[1] != MAGIC_1))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "bytes that begin no frame");
	if (n > 2 && p[2] != FRAME_VERSION)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a frame of version %u, and only version %u "
				  "is known here",
				  p[2], FRAME_VERSION);
	if (n > 3 && (p[3] == 0 || p[3] >= FRAME_TYPES))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a frame of type %u, which is none", p[3]);
	if (n < FRAME_HEAD)
		return 0;
	size = head_number(p + 4, 4);
	if (size > max_frame)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a frame of %llu bytes, and %llu are the "
				  "most",
				  (unsigned long long)size,
				  (unsigned long long)max_frame);
	ret->type = p[3];
	ret->size = (size_t)size;
	ret->whole = FRAME_HEAD + ret->size;
	ret->body = p + FRAME_HEAD;
	return n >= ret->whole;
}

static evc_status
refuse_memory(const char *what, uint64_t size)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
			  "no memory for %s, a frame of %llu bytes", what,
			  (unsigned long long)size);
}

/* lent: bytes of the body that are not put. */
static evc_status
begin_parts(struct parts_out *o, struct bytes *b, uint64_t lent,
	    size_t max_frame, enum frame_type type, uint64_t size,
	    const char *what)
{
	unsigned char *p = NULL;
	uint64_t own = size - lent;

	if (size > max_frame || size > UINT32_MAX)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "%s would be a frame of %llu bytes, and "
				  "max_frame is %llu",
				  what, (unsigned long long)size,
				  (unsigned long long)max_frame);
	if (own <= SIZE_MAX - FRAME_HEAD)
		p = bytes_room(b, FRAME_HEAD + (size_t)own);
	if (p == NULL)
		return refuse_memory(what, size);
	b->n += FRAME_HEAD + (size_t)own;
	p[0] = MAGIC_0;
	p[1] = MAGIC_1;
	p[2] = FRAME_VERSION;
	p[3] = (unsigned char)type;
	head_put_number(p + 4, 4, size);
	*o = (struct parts_out){ .at = p + FRAME_HEAD };
	return 0;
}

evc_status
evc__parts_begin(struct parts_out *o, struct bytes *b, size_t max_frame,
		 enum frame_type type, uint64_t size, const char *what)
{
	return begin_parts(o, b, 0, max_frame, type, size, what);
}

evc_status
evc__parts_begin_lending(struct parts_out *o, struct outgoing *to,
			 const struct lends *l, size_t max_frame,
			 enum frame_type type, uint64_t size, const char *what)
{
	evc_status st;

	if (l->n > 0 && !evc__outgoing_reserve(to, l->n))
		return refuse_memory(what, size);
	st = begin_parts(o, &to->own, l->bytes, max_frame, type, size, what);
	o->lends = to;
	return st;
}

/* ---- frames of a number, or of nothing ---- */

evc_status
evc__frame_put_number(struct bytes *b, enum frame_type type, uint64_t number)
{
	struct parts_out o;
	evc_status st = evc__parts_begin(&o, b, 8, type, 8, "a number");

	if (st == 0)
		out_number(&o, 8, number);
	return st;
}

evc_status
evc__frame_get_number(const struct frame *f, uint64_t *ret)
{
	struct parts_in in = parts_in_of(f);

	*ret = in_number(&in, 8);
	return evc__parts_end(&in);
}

evc_status
evc__frame_put_bare(struct bytes *b, enum frame_type type)
{
	struct parts_out o;

	return evc__parts_begin(&o, b, 0, type, 0, "a word");
}

evc_status
evc__frame_get_bare(const struct frame *f)
{
	struct parts_in in = parts_in_of(f);

	return evc__parts_end(&in);
}

/* ---- reading ---- */

uint64_t
in_number(struct parts_in *in, unsigned n)
{
	uint64_t v;

	if (in->left < n || in->wrong != NULL) {
		in->wrong = in->wrong != NULL ? in->wrong : "cut";
		return 0;
	}
	v = head_number(in->at, n);
	in->at += n;
	in->left -= n;
	return v;
}

double
in_double(struct parts_in *in)
{
	uint64_t bits = in_number(in, 8);
	double d;

	memcpy(&d, &bits, sizeof d);
	return d;
}

const char *
in_text(struct parts_in *in, size_t most)
{
	size_t n = (size_t)in_number(in, 2);
	const char *s = (const char *)in->at;

	if (in->wrong == NULL && (n > most || in->left < n + 1))
		in->wrong = n > most ? "with a text that is too long" : "cut";
	if (in->wrong == NULL && memchr(s, 0, n + 1) != s + n)
		in->wrong = "with a text that does not end where it should";
	if (in->wrong != NULL)
		return "";
	in->at += n + 1;
	in->left -= n + 1;
	return s;
}

evc_value
in_value(struct parts_in *in)
{
	uint64_t n = in_number(in, 4);
	evc_value v = { 0 };

	if (in->wrong == NULL && n > in->left)
		in->wrong = "cut";
	if (in->wrong != NULL || n == 0)
		return v;
	if (evc__value_walk(in->at, (size_t)n, NULL, NULL) < 0) {
		in->wrong = "with bytes that are no value";
		return v;
	}
	v.data = in->at;
	v.size = (size_t)n;
	in->at += n;
	in->left -= (size_t)n;
	return v;
}

evc_status
evc__parts_end(const struct parts_in *in)
{
	const char *wrong = in->wrong;

	if (wrong == NULL && in->left > 0)
		wrong = "with something behind it";
	if (wrong == NULL)
		return 0;
	return evc_refuse(-EVC_INVALID_ARGUMENT, "a %s %s",
			  evc__frame_name(in->type), wrong);
}

const char *
evc__frame_name(unsigned type)
{
	static const char *const name[FRAME_TYPES] = {
		"frame",	  "welcome",	"task",	 "definition",
		"forget",	  "reply",	"leave", "hello",
		"failed",	  "begun",	"result", "built",
		"variable",	  "ping",	"cancel", "cancel-one",
		"pong",		  "back",	"backed", "until",
		"slot",		  "kill",	"node",	 "up",
		"rank",		  "overdue",	"fenced", "gone",
		"left",		  "look",	"stack",
	};

	return name[type < FRAME_TYPES ? type : 0];
}
