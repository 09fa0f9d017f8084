/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc__walk_splice: a copy of a value with other values in the places of its
 * remotes.
 * Called by: cluster/core for results that are fetched, cluster/worker for
 * arguments.
 * Locks: none.
 */
#include "wire/walk.h"

#include <evcoord.h>

#include "wire/grow.h"
#include "wire/head.h"

struct splice {
	const unsigned char *from;
	size_t done; /* bytes of `from` that were copied or left out */
	bool (*resolve)(const struct walk_ref *r, evc_value *ret, void *arg);
	void *arg;
	struct grow to;
};

static bool
replace_ref(const struct walk_ref *r, void *arg)
{
	struct splice *s = arg;
	evc_value v = { NULL, 0 };

	if (r->per_worker || !s->resolve(r, &v, s->arg))
		return true;
	grow_add(&s->to, s->from + s->done, r->at - s->done);
	grow_add(&s->to, value_begin(&v), value_size(&v));
	s->done = r->at + r->size;
	return !s->to.failed;
}

evc_status
evc__walk_splice(const evc_value *value,
		 bool (*resolve)(const struct walk_ref *r, evc_value *ret,
				 void *arg),
		 void *arg, evc_value *ret_value)
{
	struct splice s = { .from = value->data,
			    .resolve = resolve,
			    .arg = arg };
	evc_value result;
	evc_status st;

	grow_init(&s.to);
	st = evc__value_walk(value->data, value->size, replace_ref, &s);
	if (st == 0 && value->size > 0)
		grow_add(&s.to, s.from + s.done, value->size - s.done);
	if (st == 0 && !grow_take(&s.to, &result))
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "no memory for arguments and results in "
				  "their places");
	/* The result of a remote may be too deep inside this value. */
	if (st == 0 && !evc__walk_is_value(&result, 0)) {
		evc_value_free(&result);
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "with the results of remotes in their places "
				  "the value is more than %d deep",
				  EVC_VALUE_DEPTH);
	}
	if (st != 0)
		grow_drop(&s.to);
	else
		*ret_value = result;
	return st;
}
