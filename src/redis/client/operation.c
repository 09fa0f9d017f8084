/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An operation on a variable, asked by a program or by a function: the
 * arguments of the script, and the answer.
 * Called by: engine/variables.c and node/variables.c.
 * Locks: none.
 */
#include "redis/client/redis.h"

#include <inttypes.h>
#include <math.h>

#include "base/json_write.h"
#include "wire/vector.h"
#include "wire/walk.h"

static bool
operation_has_patch(const evc_engine_update *u)
{
	return u->op == EVC_VARIABLE_VECTOR_ADD ||
	       u->op == EVC_VARIABLE_VECTOR_GET ||
	       u->op == EVC_VARIABLE_VECTOR_READ;
}

/* Microseconds of the server, rather too many: for each element, and for each chunk
   of a value. */
#define PLACE_US   1.5
#define RANGE_US   0.4
#define GET_US     0.1
#define WHOLE_US   6.0
#define HASH_US    8.0
#define SET_US     8.0
#define COMPARE_US 12.5

static double
value_us(const evc_engine_update *u)
{
	size_t size = u->value.size;
	double each = SET_US;

	if (u->op == EVC_VARIABLE_READ_HASHED)
		return u->by / CHUNK_BYTES * HASH_US;
	if (u->op == EVC_VARIABLE_COMPARE_SET) {
		size += u->expected.size;
		each = COMPARE_US;
	}
	return (double)size / CHUNK_BYTES * each;
}

static double
patch_us(const struct patch *p, bool adds)
{
	return p->n * (p->kind == PATCH_PLACES ? PLACE_US :
		       adds		       ? RANGE_US :
						 GET_US);
}

evc_status
evc__server_time(double us, uint64_t lease_ns, const char *of, const char *name)
{
	double most = server_most_us(lease_ns);

	if (us <= most)
		return 0;
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
			  "%s%.60s would hold the server for about %.1f s, and "
			  "a quarter of the lease, %.2g s, is the most",
			  of, name, us / 1e6, most / 1e6);
}

/* How many updates a patch is as much work as, at least one. */
static unsigned
patch_cost(const struct patch *p)
{
	return 1 + p->n / (p->kind == PATCH_PLACES ? PLACES_COST : RANGE_COST);
}

evc_status
evc__operation_check(const evc_engine_update *u, uint64_t lease_ns,
		     struct operation_cost *ret_cost)
{
	bool adds = u->op == EVC_VARIABLE_VECTOR_ADD;
	struct patch p;
	evc_status st;

	if (u->name == NULL || u->name[0] == '\0')
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a variable has to have a name");
	if (u->op == EVC_VARIABLE_ADD && !isfinite(u->by))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s: %g is nothing to add", u->name,
				  u->by);
	ret_cost->updates = 1 + (unsigned)(u->value.size / CHUNK_BYTES);
	if (operation_has_patch(u)) {
		st = evc__patch_read(&u->value, adds, &p);
		if (st < 0)
			return st;
		ret_cost->updates = patch_cost(&p);
		ret_cost->us = patch_us(&p, adds);
	} else
		ret_cost->us = value_us(u);
	return evc__server_time(ret_cost->us, lease_ns,
				"one call for variable ", u->name);
}

evc_value
evc__operation_patch(const evc_engine_update *u)
{
	evc_value patch = { NULL, 0 };

	/* The value was checked: it is binary data. */
	(void)evc_unpack(&u->value, "B", &patch.data, &patch.size);
	return patch;
}

/* With a point in every locale. */
static void
put_number(struct redis_args *a, double d)
{
	char number[40];
	struct text t = evc__text_in(number, sizeof number);

	evc__text_double(&t, d);
	evc__args_fmt(a, "%s", number);
}

void
evc__operation_add(struct redis_args *a, uint64_t seq,
		   const evc_engine_update *u, uint64_t lease_ns)
{
	bool compares = u->op == EVC_VARIABLE_COMPARE_SET;
	const evc_value *first = compares ? &u->expected : &u->value;
	evc_value patch;

	evc__args_fmt(a, "%" PRIu64, seq);
	evc__args_fmt(a, "%u", u->op);
	evc__args_text(a, u->name);
	if (operation_has_patch(u)) {
		patch = evc__operation_patch(u);
		first = &patch;
	}
	if (u->op == EVC_VARIABLE_ADD)
		put_number(a, u->by);
	else if (u->op == EVC_VARIABLE_GET)
		evc__args_fmt(a, "%.0f",
			      server_most_us(lease_ns) / WHOLE_US *
				      CHUNK_BYTES);
	else
		evc__args_add(a, first->data, first->size);
	evc__args_add(a, u->value.data, compares ? u->value.size : 0);
}

const redisReply *
evc__operation_answer(const redisReply *r, size_t i)
{
	return evc__reply_is(r, "ok") && 1 + i < r->elements &&
			       evc__reply_word(r->element[1 + i]) != NULL ?
		       r->element[1 + i] :
		       NULL;
}

bool
evc__operation_is_late(const redisReply *r, size_t i)
{
	const redisReply *mine = evc__operation_answer(r, i);

	return mine != NULL && evc__reply_is(mine, "later");
}

evc_status
evc__operation_check_value(const char *name, const evc_value *v)
{
	char why[128] = "no bytes";

	if (v->size > 0 && evc__value_walk(v->data, v->size, NULL, NULL) == 0)
		return 0;
	if (v->size > 0)
		evc__copy(why, sizeof why, evc_last_error());
	return evc_refuse(-EVC_DATA_LOSS,
			  "variable %.100s holds no valid value: %s", name,
			  why);
}

static evc_status
read_number(const char *name, const evc_value *v, double *ret)
{
	int64_t whole;

	if (evc_unpack(v, "I", &whole) == 0)
		*ret = (double)whole;
	else if (evc_unpack(v, "d", ret) < 0)
		return evc_refuse(-EVC_DATA_LOSS,
				  "variable %.100s is no number now", name);
	return 0;
}

/* The bytes behind the word of an answer.  *ret_memory (NULL: none) is for
   sync_free after them. */
static evc_status
join_parts(const redisReply *r, evc_value *ret, void **ret_memory)
{
	size_t i, n = 0, size;
	const char *part;
	char *to;

	ret->data = evc__reply_bytes(r, 1, &ret->size);
	if (r->elements <= 2)
		return 0;
	for (i = 1; i < r->elements; i++) {
		if (evc__reply_bytes(r, i, &size) == NULL)
			return evc_refuse(-EVC_INTERNAL,
					  "redis: an unexpected answer");
		n += size;
	}
	to = sync_alloc_bytes(n + 1);
	if (to == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "no memory for an answer of %zu bytes", n);
	*ret = (evc_value){ to, n };
	*ret_memory = to;
	for (i = 1; i < r->elements; i++) {
		part = evc__reply_bytes(r, i, &size);
		memcpy(to, part, size);
		to += size;
	}
	return 0;
}

evc_status
evc__operation_read(const evc_engine_update *u, const redisReply *r,
		    evc_engine_answer *ret, void **ret_memory)
{
	evc_value v = { NULL, 0 };
	const char *before;
	int64_t place, n;
	size_t size;
	evc_status st;

	*ret_memory = NULL;

	if (evc__reply_is(r, "none") && u->op == EVC_VARIABLE_VECTOR_ADD)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s " VARIABLE_NOT_SET, u->name);
	if (evc__reply_is(r, "none"))
		return evc_refuse(-EVC_NOT_FOUND, "there is no variable %s",
				  u->name);
	if (evc__reply_is(r, "other"))
		return evc_refuse(-EVC_ABORTED,
				  "variable %s is not what was expected",
				  u->name);
	if (evc__reply_is(r, "number") || evc__reply_is(r, "vector"))
		return evc_refuse(-EVC_INVALID_ARGUMENT, "variable %s is no %s",
				  u->name, evc__reply_word(r));
	if (evc__reply_is(r, "sum") && u->op == EVC_VARIABLE_ADD) {
		before = evc__reply_bytes(r, 1, &size);
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s: the sum of %s and %g is no "
				  "finite number",
				  u->name, before != NULL ? before : "?",
				  u->by);
	}
	if (evc__reply_is(r, "sum") && evc__reply_number(r, 1, &place))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s: the sum at element %" PRId64
				  " is no finite number",
				  u->name, place);
	if (evc__reply_is(r, "place") && evc__reply_number(r, 1, &place) &&
	    evc__reply_number(r, 2, &n))
		return evc_refuse(u->op == EVC_VARIABLE_VECTOR_GET ?
					  -EVC_OUT_OF_RANGE :
					  -EVC_INVALID_ARGUMENT,
				  "variable %s: there is no element %" PRId64
				  " in a vector of %" PRId64,
				  u->name, place, n);
	if (evc__reply_is(r, "large") && evc__reply_number(r, 1, &n))
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "variable %.60s has %" PRId64
				  " bytes: to read all of them at once would "
				  "hold the server for more than a quarter of "
				  "the lease",
				  u->name, n);
	if (evc__reply_is(r, "broken"))
		return evc_refuse(-EVC_DATA_LOSS,
				  "variable %s is damaged: a part of the vector "
				  "is missing",
				  u->name);
	if (!evc__reply_is(r, "ok"))
		return evc_refuse(-EVC_INTERNAL,
				  "redis: an unexpected answer: a change may "
				  "have been made or not");
	if (u->op != EVC_VARIABLE_ADD && u->op != EVC_VARIABLE_GET &&
	    u->op != EVC_VARIABLE_VECTOR_GET)
		return 0;
	st = join_parts(r, &v, ret_memory);
	if (st == 0)
		st = evc__operation_check_value(u->name, &v);
	if (st < 0)
		return st;
	if (u->op == EVC_VARIABLE_ADD)
		return read_number(u->name, &v, &ret->now);
	ret->value = v;
	return 0;
}
