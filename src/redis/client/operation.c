/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An operation on a variable, asked by a program or by a function: the
 * arguments of the script, and the answer.
 * Called by: engine/variables.c and node/variables.c.
 * Locks: none.
 */
#include "redis/client/redis.h"

#include <inttypes.h>

#include "wire/walk.h"

void
evc__operation_add(struct redis_args *a, uint64_t seq,
		   const evc_engine_update *u)
{
	bool compares = u->op == EVC_VARIABLE_COMPARE_SET;
	const evc_value *first = compares ? &u->expected : &u->value;

	evc__args_fmt(a, "%" PRIu64, seq);
	evc__args_fmt(a, "%u", u->op);
	evc__args_text(a, u->name);
	if (u->op == EVC_VARIABLE_ADD)
		evc__args_fmt(a, "%.17g", u->by);
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

evc_status
evc__operation_read(const evc_engine_update *u, const redisReply *r,
		    evc_engine_answer *ret)
{
	evc_value v = { NULL, 0 };
	evc_status st;

	if (evc__reply_is(r, "none"))
		return evc_refuse(-EVC_NOT_FOUND, "there is no variable %s",
				  u->name);
	if (evc__reply_is(r, "other"))
		return evc_refuse(-EVC_ABORTED,
				  "variable %s is not what was expected",
				  u->name);
	if (evc__reply_is(r, "number"))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s is no number", u->name);
	if (!evc__reply_is(r, "ok"))
		return evc_refuse(-EVC_INTERNAL, "redis: an unexpected answer");
	if (u->op != EVC_VARIABLE_ADD && u->op != EVC_VARIABLE_GET)
		return 0;
	v.data = evc__reply_bytes(r, 1, &v.size);
	st = evc__operation_check_value(u->name, &v);
	if (st < 0)
		return st;
	if (u->op == EVC_VARIABLE_ADD)
		return read_number(u->name, &v, &ret->now);
	ret->value = v;
	return 0;
}
