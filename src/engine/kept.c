/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of results that a worker process keeps, by the ids of their
 * remotes.
 * Called by: cluster/worker, cluster/processes and redis.
 * Locks: none; each table belongs to one thread, but *n_all is atomic.
 */
#include "engine/kept.h"

#define BUCKETS 1024 /* KEEP_MOST / KEEP_LEAST is 16 times as many */

struct kept_value {
	struct kept_value *next;
	struct list age;
	uint64_t id;
	evc_value value;
};

static struct kept_value **
place_of(const struct kept *k, uint64_t id)
{
	struct kept_value **at = &k->buckets[id % BUCKETS];

	while (*at != NULL && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

bool
evc__kept_add(struct kept *k, uint64_t id, evc_value value)
{
	struct kept_value *v;

	if (k->buckets == NULL) {
		k->buckets = sync_alloc(BUCKETS, sizeof *k->buckets);
		if (k->buckets == NULL)
			return false;
		list_init(&k->age);
	}
	if (*place_of(k, id) != NULL)
		return false;
	v = sync_alloc(1, sizeof *v);
	if (v == NULL)
		return false;
	v->id = id;
	v->value = value;
	*place_of(k, id) = v;
	list_append(&k->age, &v->age);
	k->n++;
	k->bytes += value.size;
	if (k->n_all != NULL)
		sync_add(k->n_all, 1);
	return true;
}

const evc_value *
evc__kept_find(const struct kept *k, uint64_t id)
{
	const struct kept_value *v =
		k->n > 0 ? *place_of(k, id) : NULL;

	return v != NULL ? &v->value : NULL;
}

bool
evc__kept_drop(struct kept *k, uint64_t id)
{
	struct kept_value **at = k->n > 0 ? place_of(k, id) : NULL, *v;

	if (at == NULL || *at == NULL)
		return false;
	v = *at;
	*at = v->next;
	list_remove(&v->age);
	k->n--;
	k->bytes -= v->value.size;
	if (k->n_all != NULL)
		sync_sub(k->n_all, 1);
	evc_value_free(&v->value);
	sync_free(v);
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
	while (k->n > 0)
		evc__kept_drop(k, evc__kept_oldest(k));
	sync_free(k->buckets);
	k->buckets = NULL;
}
