/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of records by number or by name: chains in buckets, and twice as many
 * buckets when the chains get long.  Numbers count up, so their low bits spread
 * evenly; a name is found by its hash.
 * Called by: core/status (members by id); engine, cluster and redis.
 * Locks: none; the owner of the table has one if need be.
 */
#include "base/table.h"

#include "base/sync.h"

#define BUCKETS_FIRST 8

static struct table_node **
bucket_of(const struct table *t, uint64_t key)
{
	return &t->buckets[key & (t->n_buckets - 1)];
}

static uint64_t
hash_of(const char *name)
{
	uint32_t h = 2166136261u;

	while (*name != '\0')
		h = (h ^ (unsigned char)*name++) * 16777619u;
	return h ^ h >> 15;
}

bool
evc__table_reserve(struct table *t, size_t more)
{
	size_t n = t->n_buckets > 0 ? t->n_buckets : BUCKETS_FIRST, i;
	struct table_node **to, *e, *next;

	/* Two records in a bucket are found as fast, and halve the table. */
	while (n * 2 < t->n + more)
		n *= 2;
	if (n == t->n_buckets)
		return true;
	to = sync_alloc(n, sizeof *to);
	if (to == NULL)
		return t->n_buckets > 0; /* longer chains do as well */
	for (i = 0; i < t->n_buckets; i++)
		for (e = t->buckets[i]; e != NULL; e = next) {
			next = e->next;
			e->next = to[e->key & (n - 1)];
			to[e->key & (n - 1)] = e;
		}
	sync_free(t->buckets);
	t->buckets = to;
	t->n_buckets = n;
	return true;
}

void
evc__table_free(struct table *t)
{
	sync_free(t->buckets);
	*t = (struct table){ .n = 0 };
}

void
evc__table_add(struct table *t, struct table_node *e)
{
	struct table_node **at = bucket_of(t, e->key);

	e->next = *at;
	*at = e;
	t->n++;
}

void
evc__table_add_name(struct table *t, struct table_name *e)
{
	e->node.key = hash_of(e->text);
	evc__table_add(t, &e->node);
}

void
evc__table_remove(struct table *t, struct table_node *e)
{
	struct table_node **at = bucket_of(t, e->key);

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	t->n--;
}

static void *
with_key(struct table_node *e, uint64_t key)
{
	while (e != NULL && e->key != key)
		e = e->next;
	return e;
}

void *
evc__table_find(const struct table *t, uint64_t key)
{
	return t->n > 0 ? with_key(*bucket_of(t, key), key) : NULL;
}

void *
evc__table_find_name(const struct table *t, const char *name)
{
	uint64_t key = hash_of(name);
	struct table_name *e = evc__table_find(t, key);

	while (e != NULL && strcmp(e->text, name) != 0)
		e = with_key(e->node.next, key);
	return e;
}

void *
evc__table_next(const struct table *t, const void *e)
{
	const struct table_node *at = e;
	struct table_node *next = at != NULL ? at->next : NULL;
	size_t i = at != NULL ? (at->key & (t->n_buckets - 1)) + 1 : 0;

	for (; next == NULL && i < t->n_buckets; i++)
		next = t->buckets[i];
	return next;
}
