/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first bytes of a MessagePack value: what it is, and how many bytes or
 * elements follow.  And from there to its end.  And the other way: the same bytes
 * for what is to be written (head_put.c).
 *
 * PURE: bytes in, numbers out.
 */
#ifndef EVC_CLUSTER_HEAD_H
#define EVC_CLUSTER_HEAD_H

#include <evcoord/value.h>

#include "wire/walk.h"

/* head.type beside EVC_VALUE_...: an extension that is none of ours. */
#define HEAD_FOREIGN 11

struct head {
	unsigned type;
	unsigned size;     /* of the head, with the type of an extension */
	uint64_t n;        /* elements, entries, or the bytes behind it */
	bool negative;     /* an integer below 0: it stands in i, else in u */
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
	HEAD_CUT,  /* the bytes end inside it */
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

/* And such bytes of a number. */
static inline void
head_put_number(unsigned char *p, unsigned n, uint64_t v)
{
	while (n-- > 0) {
		p[n] = (unsigned char)v;
		v >>= 8;
	}
}

enum head_end evc__head(const unsigned char *p, size_t n, struct head *ret);

/* "a string", also for 0. */
const char *evc__type_text(unsigned type);

/* What stands for a nil of no bytes. */
extern const unsigned char evc__nil;

/* The bytes of a value, its nil included. */
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

/* As evc__value_walk, without a text: is it one whole value, that may stand
   inside so many arrays and maps? */
bool evc__walk_is_value(const evc_value *value, unsigned outside);

/* The size of the value that p begins with, of n bytes at most; 0: there is
   none. */
size_t evc__walk_size(const unsigned char *p, size_t n);

/* ---- writing: how many bytes were put ---- */

#define HEAD_MOST 9 /* bytes of a number, or before the bytes of a string */

size_t evc__put_nil(unsigned char to[static HEAD_MOST]);
size_t evc__put_bool(unsigned char to[static HEAD_MOST], bool b);
size_t evc__put_signed(unsigned char to[static HEAD_MOST], int64_t v);
size_t evc__put_unsigned(unsigned char to[static HEAD_MOST], uint64_t v);
size_t evc__put_double(unsigned char to[static HEAD_MOST], double d);
/* What stands before n bytes of a string or of binary data, n elements of an
   array, n entries of a map. */
size_t evc__put_length(unsigned char to[static HEAD_MOST], unsigned type,
		       uint32_t n);

/* What the letter of a format that takes a number, a boolean or nothing stands
   for; 0: another letter, and nothing was put or taken.  (pack.c) */
size_t evc__put_letter(unsigned char to[static HEAD_MOST], char letter,
		       va_list *ap);

/* What an extension of ours says, whose head this is. */
void evc__walk_ref(const unsigned char *p, const struct head *h, size_t at,
		   struct walk_ref *ret);

#endif
