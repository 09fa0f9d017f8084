/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of results that a worker process keeps, by the ids of their
 * remotes.
 * Called by: cluster/worker, cluster/processes and redis.
 * Locks: none; each table belongs to one thread, but *n_all is atomic.
 */
#include "engine/kept.h"

struct kept_value {
	union {
		uint64_t id;
		struct table_node node;
	};
	struct list age;
	evc_value value;
};

bool
evc__kept_add(struct kept *k, uint64_t id, evc_value value)
{
	struct kept_value *v;

	if (k->by_id.n_buckets == 0)
		list_init(&k->age);
	if (!evc__table_reserve(&k->by_id, 1) ||
	    evc__table_find(&k->by_id, id) != NULL)
		return false;
	v = sync_alloc(1, sizeof *v);
	if (v == NULL)
		return false;
	v->id = id;
	v->value = value;
	evc__table_add(&k->by_id, &v->node);
	list_append(&k->age, &v->age);
	k->bytes += value.size;
	if (k->n_all != NULL)
		sync_add(k->n_all, 1);
	return true;
}

const evc_value *
evc__kept_find(const struct kept *k, uint64_t id)
{
	const struct kept_value *v = evc__table_find(&k->by_id, id);

	return v != NULL ? &v->value : NULL;
}

bool
evc__kept_take(struct kept *k, uint64_t id, evc_value *ret)
{
	struct kept_value *v = evc__table_find(&k->by_id, id);

	if (v == NULL)
		return false;
	evc__table_remove(&k->by_id, &v->node);
	list_remove(&v->age);
	k->bytes -= v->value.size;
	if (k->n_all != NULL)
		sync_sub(k->n_all, 1);
	*ret = v->value;
	sync_free(v);
	return true;
}

bool
evc__kept_drop(struct kept *k, uint64_t id)
{
	evc_value value;

	if (!evc__kept_take(k, id, &value))
		return false;
	evc_value_free(&value);
	return true;
}

uint64_t
evc__kept_oldest(const struct kept *k)
{
	return LIST_OF(k->age.next, struct kept_value, age)->id;
}

void
evc__kept_clear(struct kept *k)
{
	while (k->by_id.n > 0)
		evc__kept_drop(k, evc__kept_oldest(k));
	evc__table_free(&k->by_id);
}
