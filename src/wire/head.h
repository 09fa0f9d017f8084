/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first bytes of a MessagePack value: its type, and the number of bytes or
 * elements that follow; from there to the value's end; and the same bytes,
 * written (head_put.c).
 *
 * PURE: bytes in, numbers out.
 */
#ifndef EVC_CLUSTER_HEAD_H
#define EVC_CLUSTER_HEAD_H

#include <evcoord/value.h>

#include "wire/walk.h"

/* head.type beside EVC_VALUE_...: a foreign extension. */
#define HEAD_FOREIGN 12

struct head {
	unsigned type;
	unsigned size;     /* bytes of the head, with an extension's type */
	uint64_t n;        /* elements, entries, or bytes behind the head */
	bool negative;     /* an integer below 0: the number is i, else u */
	union {
		bool b;
		uint64_t u;
		int64_t i;
		double d;
		int ext;
	};
};

enum head_end {
	HEAD_FINE = 0,
	HEAD_CUT,  /* the bytes end inside the head */
	HEAD_NONE  /* 0xc1 begins nothing */
};

/* n bytes in network order. */
static inline uint64_t
head_number(const unsigned char *p, unsigned n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

/* Write a number as n bytes in network order. */
static inline void
head_put_number(unsigned char *p, unsigned n, uint64_t v)
{
	while (n-- > 0) {
		p[n] = (unsigned char)v;
		v >>= 8;
	}
}

enum head_end evc__head(const unsigned char *p, size_t n, struct head *ret);

/* "a string"; a text also for 0. */
const char *evc__type_text(unsigned type);

/* The byte for a nil of no bytes. */
extern const unsigned char evc__nil;

/* The bytes of a value; a nil of no bytes has its byte. */
static inline const unsigned char *
value_begin(const evc_value *v)
{
	return v->size > 0 ? v->data : &evc__nil;
}

static inline size_t
value_size(const evc_value *v)
{
	return v->size > 0 ? v->size : 1;
}

/* Is this one whole value, inside `outside` arrays and maps?  As
   evc__value_walk, without a text. */
bool evc__walk_is_value(const evc_value *value, unsigned outside);

/* The size of the value at p, of n bytes at most; 0: no value. */
size_t evc__walk_size(const unsigned char *p, size_t n);

/* ---- writing: how many bytes were put ---- */

#define HEAD_MOST 9 /* bytes of a number, or before the bytes of a string */

size_t evc__put_nil(unsigned char to[static HEAD_MOST]);
size_t evc__put_bool(unsigned char to[static HEAD_MOST], bool b);
size_t evc__put_signed(unsigned char to[static HEAD_MOST], int64_t v);
size_t evc__put_unsigned(unsigned char to[static HEAD_MOST], uint64_t v);
size_t evc__put_double(unsigned char to[static HEAD_MOST], double d);
/* The head of a string or binary data of n bytes, of an array of n elements, of
   a map of n entries. */
size_t evc__put_length(unsigned char to[static HEAD_MOST], unsigned type,
		       uint32_t n);
static inline bool
evc__is_length(uint64_t n)
{
	return n <= UINT32_MAX;
}

/* The value of a format's letter for a number, a boolean or nil; 0: another
   letter, and no argument was taken.  (pack.c) */
size_t evc__put_letter(unsigned char to[static HEAD_MOST], char letter,
		       va_list *ap);

/* The reference in an extension with this head. */
void evc__walk_ref(const unsigned char *p, const struct head *h, size_t at,
		   struct walk_ref *ret);

#endif
