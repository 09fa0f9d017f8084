/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program's calls for values: free, check, copy, type, elements.
 * Called by: the program, and all rooms of the cluster.
 * Locks: none.
 */
#include <evcoord/value.h>

#include <evcoord.h>

#include "base/sync.h"
#include "wire/head.h"
#include "wire/vector.h"

void
evc_value_free(evc_value *value)
{
	if (value == NULL)
		return;
	sync_free((void *)value->data);
	value->data = NULL;
	value->size = 0;
}

evc_status
evc_value_check(const evc_value *value)
{
	if (value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "there is no value");
	return evc__value_walk(value->data, value->size, NULL, NULL);
}

evc_status
evc_value_copy(evc_value *ret_value, const evc_value *value)
{
	evc_value copy = { NULL, 0 };
	evc_status st = evc_value_check(value);
	void *p;

	if (st != 0)
		return st;
	if (ret_value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no place for the copy");
	if (value->size > 0) {
		p = sync_alloc_bytes(value->size);
		if (p == NULL)
			return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
					  "no memory for a value of %zu bytes",
					  value->size);
		memcpy(p, value->data, value->size);
		copy = (evc_value){ p, value->size };
	}
	*ret_value = copy;
	return 0;
}

/* The head of a value that is whole and sound. */
static bool
head_of(const evc_value *value, struct head *ret)
{
	return value != NULL && evc__walk_is_value(value, 0) &&
	       evc__head(value_begin(value), value_size(value), ret) ==
		       HEAD_FINE;
}

static bool
has_elements(const struct head *h)
{
	return h->type == EVC_VALUE_ARRAY || h->type == EVC_VALUE_MAP;
}

unsigned
evc_value_type(const evc_value *value)
{
	struct head h;

	return head_of(value, &h) ? h.type : 0;
}

size_t
evc_value_count(const evc_value *value)
{
	struct head h;
	struct vector v;

	if (!head_of(value, &h))
		return 0;
	if (h.type == EVC_VALUE_VECTOR && evc__vector_look(value, &v))
		return v.n;
	return has_elements(&h) ? (size_t)h.n : 0;
}

/* Cut off the value at *at, and move *at behind it. */
static bool
take_value(const evc_value *value, size_t *at, evc_value *ret)
{
	const unsigned char *p = value->data;
	size_t n;

	if (*at >= value->size)
		return false;
	n = evc__walk_size(p + *at, value->size - *at);
	if (ret != NULL)
		*ret = (evc_value){ p + *at, n };
	*at += n;
	return n > 0;
}

bool
evc_value_next(const evc_value *value, size_t *at, evc_value *ret_key,
	       evc_value *ret_element)
{
	evc_value key = { NULL, 0 }, element;
	struct head h;
	size_t to;

	if (value == NULL || at == NULL || value->data == NULL)
		return false;
	/* The first call checks the whole value.  Later *at is inside, so the
	   end of the value is the end of its last element. */
	if (*at == 0 ? !head_of(value, &h) :
		       evc__head(value->data, value->size, &h) != HEAD_FINE)
		return false;
	if (!has_elements(&h))
		return false;
	to = *at == 0 ? h.size : *at;
	if ((h.type == EVC_VALUE_MAP && !take_value(value, &to, &key)) ||
	    !take_value(value, &to, &element))
		return false;
	if (ret_key != NULL)
		*ret_key = key;
	if (ret_element != NULL)
		*ret_element = element;
	*at = to;
	return true;
}

evc_status
evc_value_at(const evc_value *value, size_t index, evc_value *ret_element)
{
	evc_value element = { NULL, 0 };
	evc_status st = evc_value_check(value);
	size_t at, i;
	struct head h;

	if (st != 0)
		return st;
	(void)evc__head(value_begin(value), value_size(value), &h);
	if (h.type == EVC_VALUE_VECTOR)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "elements of a vector are read by "
				  "evc_value_elements");
	if (!has_elements(&h))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s has no elements", evc__type_text(h.type));
	if (index >= h.n)
		return evc_refuse(-EVC_OUT_OF_RANGE,
				  "there is no element %zu in %s of %llu",
				  index, evc__type_text(h.type),
				  (unsigned long long)h.n);
	for (at = h.size, i = 0; i <= index; i++) {
		if (h.type == EVC_VALUE_MAP)
			(void)take_value(value, &at, NULL);
		(void)take_value(value, &at, &element);
	}
	if (ret_element != NULL)
		*ret_element = element;
	return 0;
}

evc_status
evc_value_elements(const evc_value *vector, const evc_elements *to)
{
	evc_status st = evc_value_check(vector);
	evc_value places = { NULL, 0 }, some = { NULL, 0 };
	struct vector from;
	struct patch p;

	if (st == 0)
		st = evc__elements_check(to, false);
	if (st < 0)
		return st;
	if (!evc__vector_look(vector, &from))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s is no vector",
				  evc__type_text(evc_value_type(vector)));
	st = evc__patch_make(to, false, &places);
	if (st == 0)
		st = evc__patch_read(&places, false, &p);
	if (st == 0)
		st = evc__patch_get(&p, &from, NULL, &some);
	if (st == 0)
		st = evc__elements_fill(to, &some);
	evc_value_free(&places);
	evc_value_free(&some);
	return st;
}
