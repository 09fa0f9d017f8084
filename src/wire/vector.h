/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vectors: values made of numbers side by side, and patches: places in
 * a vector, perhaps with numbers to be added there.
 *
 * A vector is an extension, EXT_DOUBLES or EXT_FLOATS.  A patch is binary data:
 *
 *     kind    1 byte: PATCH_RANGE, PATCH_PLACES or PATCH_SIZE
 *     width   1 byte: of a number; 0: the patch has no numbers
 *     0       2 bytes
 *     n       4 bytes: how many elements
 *     from    4 bytes: of a range; else 0
 *     places  4 bytes each, of PATCH_PLACES
 *     numbers width bytes each
 *
 * All these numbers have their lowest byte first.
 *
 * PURE: bytes in, bytes out.
 */
#ifndef EVC_CLUSTER_VECTOR_H
#define EVC_CLUSTER_VECTOR_H

#include <endian.h>
#include <evcoord/value.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct vector {
	unsigned width; /* 8: doubles, 4: floats */
	size_t n;
	const unsigned char *at;
};

/* Behind "variable NAME": nothing can be added to its elements. */
#define VARIABLE_NOT_SET \
	"is missing; a vector has to be set before elements are added"

enum {
	PATCH_RANGE = 0,  /* n elements, from `from` on */
	PATCH_PLACES = 1, /* n elements, each at a place of its own */
	PATCH_SIZE = 2    /* the number of elements, and none of them */
};

#define PATCH_HEAD 12

struct patch {
	unsigned kind, width;
	uint32_t n, from;
	const unsigned char *places;  /* of PATCH_PLACES */
	const unsigned char *numbers; /* NULL: none */
	/* the patch without the head of the binary data */
	const unsigned char *bytes;
	size_t size;
};

static inline uint32_t
le32_at(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return le32toh(v);
}

static inline void
put_le32(unsigned char *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof v);
}

static inline double
vector_number(const unsigned char *at, unsigned width, size_t i)
{
	uint32_t half;
	uint64_t bits;
	double d;
	float f;

	if (width == sizeof f) {
		half = le32_at(at + i * width);
		memcpy(&f, &half, sizeof f);
		return (double)f;
	}
	memcpy(&bits, at + i * width, sizeof bits);
	bits = le64toh(bits);
	memcpy(&d, &bits, sizeof d);
	return d;
}

static inline void
vector_put(unsigned char *at, unsigned width, size_t i, double d)
{
	float f = (float)d;
	uint32_t half;
	uint64_t bits;

	if (width == sizeof f) {
		memcpy(&half, &f, sizeof half);
		put_le32(at + i * width, half);
		return;
	}
	memcpy(&bits, &d, sizeof bits);
	bits = htole64(bits);
	memcpy(at + i * width, &bits, sizeof bits);
}

static inline size_t
patch_place(const struct patch *p, size_t i)
{
	return p->places != NULL ? le32_at(p->places + i * 4) : p->from + i;
}

/* Is one of the places beyond a vector of n elements?  Then *ret_place is the
   first such place, or the last of a range. */
static inline bool
patch_is_beyond(const struct patch *p, size_t n, size_t *ret_place)
{
	size_t i = p->kind == PATCH_RANGE && p->n > 0 ? p->n - 1 : 0;

	for (; i < p->n; i++) {
		*ret_place = patch_place(p, i);
		if (*ret_place >= n)
			return true;
	}
	return false;
}

/* ---- vectors ---- */

/* true: the value, which is a sound one, is a vector. */
bool evc__vector_look(const evc_value *v, struct vector *ret);
/* An empty vector's room: a value with a head, and room for the numbers. */
evc_status evc__vector_room(unsigned width, size_t n, evc_value *ret,
			    unsigned char **ret_at);

/* ---- elements of a program ---- */

static inline double
elements_number(const evc_elements *e, size_t i)
{
	return e->doubles != NULL ? e->doubles[i] : (double)e->floats[i];
}

/* 0, or refused: these are no elements.  whole: they are to be a vector. */
evc_status evc__elements_check(const evc_elements *e, bool whole);
/* A vector of these elements. */
evc_status evc__elements_vector(const evc_elements *e, evc_value *ret);
/* Fill elements from a vector of as many. */
evc_status evc__elements_fill(const evc_elements *e, const evc_value *v);

/* ---- patches ---- */

/* The places of checked elements; with their numbers, if `adds`: then the
   places grow, and each of them comes once.  Refused: a number is not
   finite. */
evc_status evc__patch_make(const evc_elements *e, bool adds, evc_value *ret);
/* The patch to ask for the size. */
evc_value evc__patch_of_size(void);
/* Read a patch of any origin.  adds: it has to have numbers, finite ones, at
   places that grow; else it has none. */
evc_status evc__patch_read(const evc_value *v, bool adds, struct patch *ret);

/* Add a patch to a vector in place, wholly or not at all; `before` (may be NULL)
   has room for the n elements before. name: of the variable, for a text. */
evc_status evc__patch_add(const struct patch *p, const struct vector *to,
			  const char *name, unsigned char *before);
/* Put the elements back. */
void evc__patch_undo(const struct patch *p, const struct vector *to,
		     const unsigned char *before);
/* The elements at the places of a patch, as a vector of as many, or an integer
   for the size. -EVC_OUT_OF_RANGE */
evc_status evc__patch_get(const struct patch *p, const struct vector *of,
			  const char *name, evc_value *ret);
/* Add a patch to elements which were read at these places; width: of the
   vector's numbers. */
void evc__patch_overlay(const struct patch *p, const evc_elements *e,
			unsigned width);

#endif
