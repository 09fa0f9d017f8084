/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vectors, and the elements of programs that become vectors or come from them.
 * Called by: pack.c, print.c and value.c; cluster/worker, cluster/calls and
 * cluster/variables.
 * Locks: none.
 */
#include "wire/vector.h"

#include <evcoord.h>

#include "base/reserved.h"
#include "base/sync.h"
#include "wire/head.h"

#define VECTOR_HEAD_MOST 6 /* bytes before the numbers */

/* ---- vectors ---- */

bool
evc__vector_look(const evc_value *v, struct vector *ret)
{
	struct head h;

	if (v->size == 0 || evc__head(v->data, v->size, &h) != HEAD_FINE ||
	    h.type != EVC_VALUE_VECTOR)
		return false;
	ret->width = h.ext == EXT_FLOATS ? 4 : 8;
	ret->n = (size_t)h.n / ret->width;
	ret->at = (const unsigned char *)v->data + h.size;
	return true;
}

/* Write the head of a vector. Returns its bytes. */
static size_t
put_vector_head(unsigned char to[static VECTOR_HEAD_MOST], unsigned width,
		size_t n)
{
	uint64_t size = (uint64_t)n * width;
	unsigned wide = size <= UINT8_MAX ? 1 : size <= UINT16_MAX ? 2 : 4;

	to[0] = wide == 1 ? 0xc7 : wide == 2 ? 0xc8 : 0xc9;
	head_put_number(to + 1, wide, size);
	to[1 + wide] = width == 4 ? EXT_FLOATS : EXT_DOUBLES;
	return 2 + wide;
}

evc_status
evc__vector_room(unsigned width, size_t n, evc_value *ret,
		 unsigned char **ret_at)
{
	unsigned char head[VECTOR_HEAD_MOST], *p;
	size_t size;

	*ret = (evc_value){ NULL, 0 };
	if (n > UINT32_MAX / width)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "a vector of 4 GiB or more");
	size = put_vector_head(head, width, n);
	p = sync_alloc_bytes(size + n * width);
	if (p == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "no memory for a vector of %zu elements", n);
	memcpy(p, head, size);
	*ret = (evc_value){ p, size + n * width };
	*ret_at = p + size;
	return 0;
}

/* ---- elements of a program ---- */

evc_status
evc__elements_check(const evc_elements *e, bool whole)
{
	if (e == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there are no elements");
	if (!RESERVED_IS_ZERO(e->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "elements: reserved_ must be 0");
	if (e->doubles != NULL ? e->floats != NULL :
				 e->floats == NULL && e->n > 0)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "elements are doubles or floats: one of the "
				  "two is NULL");
	if (e->at != NULL && e->from != 0)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "elements stand at `at` or begin at `from`: "
				  "not both");
	if (whole && (e->at != NULL || e->from != 0))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a whole vector has neither `at` nor `from`");
	if (whole && e->n > UINT32_MAX)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "a vector of 4 GiB or more");
	if (e->n > 0 && (e->n > UINT32_MAX || e->from > UINT32_MAX - e->n))
		return evc_refuse(-EVC_OUT_OF_RANGE,
				  "no vector has %zu elements from %zu on",
				  e->n, e->from);
	return 0;
}

/* Numbers of the machine as they stand in a vector. */
static void
put_numbers(unsigned char *to, unsigned width, const evc_elements *e)
{
	size_t i;

	for (i = 0; i < e->n; i++)
		vector_put(to, width, i, elements_number(e, i));
}

evc_status
evc__elements_vector(const evc_elements *e, evc_value *ret)
{
	unsigned width = e->floats != NULL ? 4 : 8;
	unsigned char *at;
	evc_status st = evc__vector_room(width, e->n, ret, &at);

	if (st == 0)
		put_numbers(at, width, e);
	return st;
}

evc_status
evc__elements_fill(const evc_elements *e, const evc_value *v)
{
	struct vector from;
	size_t i;

	if (!evc__vector_look(v, &from) || from.n != e->n)
		return evc_refuse(-EVC_INTERNAL,
				  "the answer is no vector of %zu elements",
				  e->n);
	for (i = 0; i < e->n; i++)
		if (e->doubles != NULL)
			e->doubles[i] = vector_number(from.at, from.width, i);
		else
			e->floats[i] =
				(float)vector_number(from.at, from.width, i);
	return 0;
}
