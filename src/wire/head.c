/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Heads of MessagePack values, read: the type, and the number of bytes or
 * elements that follow.
 * Called by: all readers of values in this room, and cluster/variables.
 * Locks: none.
 */
#include "wire/head.h"

#include <string.h>

const unsigned char evc__nil = 0xc0;

const char *
evc__type_text(unsigned type)
{
	static const char *const texts[] = {
		[EVC_VALUE_NIL] = "nil",
		[EVC_VALUE_BOOL] = "a boolean",
		[EVC_VALUE_INTEGER] = "an integer",
		[EVC_VALUE_DOUBLE] = "a double",
		[EVC_VALUE_STRING] = "a string",
		[EVC_VALUE_BINARY] = "binary data",
		[EVC_VALUE_ARRAY] = "an array",
		[EVC_VALUE_MAP] = "a map",
		[EVC_VALUE_REMOTE] = "a remote",
		[EVC_VALUE_PER_WORKER] = "a per-worker value",
		[EVC_VALUE_VECTOR] = "a vector",
		[HEAD_FOREIGN] = "an extension",
	};

	return type > 0 && type < sizeof(texts) / sizeof(texts[0]) ?
		       texts[type] : "no value";
}

static void
set_integer(struct head *h, int64_t v)
{
	h->type = EVC_VALUE_INTEGER;
	h->negative = v < 0;
	if (v < 0)
		h->i = v;
	else
		h->u = (uint64_t)v;
}

static void
set_floating(struct head *h, uint64_t bits, bool is_double)
{
	uint32_t half = (uint32_t)bits;
	float f;

	h->type = EVC_VALUE_DOUBLE;
	if (is_double) {
		memcpy(&h->d, &bits, sizeof(h->d));
	} else {
		memcpy(&f, &half, sizeof(f));
		h->d = (double)f;
	}
}

static void
set_extension(struct head *h, unsigned char type, uint64_t n)
{
	h->ext = type < 0x80 ? type : (int)type - 0x100;
	h->n = n;
	h->type = HEAD_FOREIGN;
	if (n == EXT_SIZE && (type == EXT_REMOTE || type == EXT_PER_WORKER))
		h->type = type == EXT_REMOTE ? EVC_VALUE_REMOTE :
					       EVC_VALUE_PER_WORKER;
	else if ((type == EXT_DOUBLES && n % sizeof(double) == 0) ||
		 (type == EXT_FLOATS && n % sizeof(float) == 0))
		h->type = EVC_VALUE_VECTOR;
}

/* The first byte says all but the contents. */
static bool
one_byte(unsigned char c, struct head *h)
{
	if (c < 0x80 || c >= 0xe0) {
		set_integer(h, c < 0x80 ? c : (int)c - 0x100);
	} else if (c < 0xc0) {
		h->type = c < 0x90 ? EVC_VALUE_MAP :
			  c < 0xa0 ? EVC_VALUE_ARRAY : EVC_VALUE_STRING;
		h->n = c & (c < 0xa0 ? 0x0f : 0x1f);
	} else if (c == 0xc0) {
		h->type = EVC_VALUE_NIL;
	} else if (c == 0xc2 || c == 0xc3) {
		h->type = EVC_VALUE_BOOL;
		h->b = c == 0xc3;
	} else {
		return false;
	}
	return true;
}

/* The width of the number or length behind each of the bytes 0xc4 ... 0xdf. */
static const unsigned char behind[] = {
	1, 2, 4,                /* binary data */
	1, 2, 4,                /* extensions, with a type */
	4, 8,                   /* floating */
	1, 2, 4, 8, 1, 2, 4, 8, /* unsigned, signed */
	0, 0, 0, 0, 0,          /* extensions of 1 ... 16 bytes, with a type */
	1, 2, 4,                /* strings */
	2, 4, 2, 4              /* arrays, maps */
};

enum head_end
evc__head(const unsigned char *p, size_t n, struct head *ret)
{
	unsigned width;
	uint64_t v;
	bool ext;

	memset(ret, 0, sizeof(*ret));
	if (n == 0)
		return HEAD_CUT;
	ret->size = 1;
	if (one_byte(p[0], ret))
		return HEAD_FINE;
	if (p[0] == 0xc1)
		return HEAD_NONE;
	width = behind[p[0] - 0xc4];
	ext = (p[0] >= 0xc7 && p[0] <= 0xc9) || (p[0] >= 0xd4 && p[0] <= 0xd8);
	ret->size = 1 + width + (ext ? 1 : 0);
	if (n < ret->size)
		return HEAD_CUT;
	v = head_number(p + 1, width);
	if (ext) {
		set_extension(ret, p[1 + width],
			      width > 0 ? v : UINT64_C(1) << (p[0] - 0xd4));
	} else if (p[0] <= 0xc6) {
		ret->type = EVC_VALUE_BINARY;
		ret->n = v;
	} else if (p[0] <= 0xcb) {
		set_floating(ret, v, width == 8);
	} else if (p[0] <= 0xcf) {
		ret->type = EVC_VALUE_INTEGER;
		ret->u = v;
	} else if (p[0] <= 0xd3) {
		/* A shift to the top and back extends the sign. */
		v <<= 64 - 8 * width;
		set_integer(ret, (int64_t)v >> (64 - 8 * width));
	} else {
		ret->type = p[0] <= 0xdb ? EVC_VALUE_STRING :
			    p[0] <= 0xdd ? EVC_VALUE_ARRAY : EVC_VALUE_MAP;
		ret->n = v;
	}
	return HEAD_FINE;
}
