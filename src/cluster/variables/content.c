/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contents of variables: values without references; which of them are numbers,
 * and which are equal.
 * Called by: this room, and cluster/worker for transactions.
 * Locks: none.
 */
#include <evcoord.h>
#include <math.h>
#include <sha1.h>

#include "base/text.h"
#include "wire/head.h"
#include "cluster/variables/table.h"

#define WHOLE_MOST 9007199254740992.0 /* 2^53 */
#define TWO_63     9223372036854775808.0

/* ---- numbers ---- */

/* A number as it was written: a double cannot hold all of them. */
struct number {
	enum { WHOLE, VAST, BROKEN } kind;
	int64_t i;  /* WHOLE */
	uint64_t u; /* VAST: above all of int64_t */
	double d;   /* BROKEN: no whole number, or beyond both; WHOLE: the sign
		       of 0 */
};

static bool
number_read(const evc_value *v, struct number *ret)
{
	switch (evc_value_type(v)) {
	case EVC_VALUE_INTEGER:
		ret->kind = WHOLE;
		ret->d = 0;
		if (evc_unpack(v, "I", &ret->i) == 0)
			return true;
		ret->kind = VAST;
		return evc_unpack(v, "U", &ret->u) == 0;
	case EVC_VALUE_DOUBLE:
		if (evc_unpack(v, "d", &ret->d) < 0)
			return false;
		ret->kind = BROKEN;
		if (ret->d != trunc(ret->d))
			return true;
		if (ret->d >= -TWO_63 && ret->d < TWO_63) {
			ret->kind = WHOLE;
			ret->i = (int64_t)ret->d;
		} else if (ret->d >= TWO_63 && ret->d < 2 * TWO_63) {
			ret->kind = VAST;
			ret->u = (uint64_t)ret->d;
		}
		return true;
	default:
		return false;
	}
}

static bool
number_is_equal(const struct number *a, const struct number *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind == WHOLE  ? a->i == b->i
	       : a->kind == VAST ? a->u == b->u
				 : a->d == b->d;
}

bool
evc__value_is_equal(const evc_value *a, const evc_value *b)
{
	struct number x, y;

	if (bytes_are_equal(a, b))
		return true;
	/* nil has two spellings. */
	if (evc_value_type(a) == EVC_VALUE_NIL)
		return evc_value_type(b) == EVC_VALUE_NIL;
	return number_read(a, &x) && number_read(b, &y) &&
	       number_is_equal(&x, &y);
}

/* ---- contents ---- */

evc_status
evc__variable_no_memory(void)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory for a variable");
}

static bool
no_ref(const struct walk_ref *r, void *arg)
{
	(void)r;
	*(bool *)arg = true;
	return false;
}

evc_status
evc__content_check(const char *name, const evc_value *v)
{
	bool has_ref = false;
	evc_status st = evc__value_walk(v->data, v->size, no_ref, &has_ref);

	if (st < 0)
		return st;
	/* A checkpoint has 32 bits for the length. */
	if (!evc__is_length(v->size))
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "variable %s: a value of 4 GiB or more",
				  name);
	if (has_ref)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s: a remote or a per-worker value "
				  "cannot be kept in a variable",
				  name);
	return 0;
}

static double
number_double(const struct number *n)
{
	return n->kind == WHOLE ? (n->i == 0 ? n->d : (double)n->i) :
	       n->kind == VAST	? (double)n->u :
				  n->d;
}

struct said
evc__said_before(void)
{
	struct said s;

	evc__copy(s.text, sizeof s.text, evc_last_error());
	return s;
}

evc_status
evc__missing_is_zero(evc_status st, const struct said *before)
{
	return st == -EVC_NOT_FOUND ? evc_refuse(0, "%s", before->text) : st;
}

evc_status
evc__content_number(const char *name, const evc_value *v, double *ret)
{
	struct number n;

	*ret = 0;
	if (evc_value_type(v) == EVC_VALUE_NIL)
		return 0;
	if (!number_read(v, &n))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s is no number", name);
	*ret = number_double(&n);
	return 0;
}

evc_status
evc__content_make(const evc_value *v, struct content *ret)
{
	struct number n;

	*ret = (struct content){ .size = 0 };
	if (evc_value_type(v) == EVC_VALUE_NIL)
		return 0;
	if (v->size > CONTENT_SMALL) {
		ret->big = sync_alloc(1, v->size);
		if (ret->big == NULL)
			return evc__variable_no_memory();
		memcpy(ret->big, v->data, v->size);
	} else
		memcpy(ret->small, v->data, v->size);
	ret->size = v->size;
	if (number_read(v, &n)) {
		ret->is_number = true;
		ret->number = number_double(&n);
	}
	return 0;
}

_Static_assert(CONTENT_SMALL >= HEAD_MOST, "a number has room");

void
evc__content_of_number(double x, struct content *ret)
{
	/* As bytes the zeros are one. */
	*ret = (struct content){ .is_number = true, .number = x + 0.0 };
	if (fabs(x) < WHOLE_MOST && x == trunc(x))
		ret->size = evc__put_signed(ret->small, (int64_t)x);
	else
		ret->size = evc__put_double(ret->small, x);
}

_Static_assert(CONTENT_HASH_SIZE == 2 + SHA1_DIGEST_STRING_LENGTH - 1,
	       "the digits have no end");

void
evc__content_hash(const evc_value *v, char ret[CONTENT_HASH_SIZE])
{
	char digits[SHA1_DIGEST_STRING_LENGTH];

	ret[0] = (char)0xd9; /* a string of at most 255 bytes */
	ret[1] = CONTENT_HASH_SIZE - 2;
	memcpy(ret + 2, SHA1Data(v->data, v->size, digits),
	       CONTENT_HASH_SIZE - 2);
}
