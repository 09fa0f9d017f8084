/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of the variables, and the numbers beside it.
 * Called by: this room, and cluster/core for the numbers.
 * Locks: variables.lock: taken by the functions without a table's entry, needed
 * by the others.
 */
#include "cluster/variables/table.h"

#define BUCKETS_FIRST 64

bool
evc__variables_init(struct variables *v)
{
	*v = (struct variables){ .n_buckets = BUCKETS_FIRST };
	v->buckets = sync_alloc(v->n_buckets, sizeof *v->buckets);
	if (v->buckets == NULL)
		return false;
	sync_lock_init(&v->lock);
	sync_lock_init(&v->saving);
	return true;
}

void
evc__variables_destroy(struct variables *v)
{
	struct variable *x, *next;
	size_t i;

	for (i = 0; i < v->n_buckets; i++)
		for (x = v->buckets[i]; x != NULL; x = next) {
			next = x->next;
			sync_free(x->is.big);
			sync_free(x);
		}
	sync_free(v->buckets);
	sync_lock_destroy(&v->lock);
	sync_lock_destroy(&v->saving);
}

/* ---- lock held ---- */

static struct variable **
place_of(struct variables *v, const char *name, uint32_t hash)
{
	struct variable **p = &v->buckets[hash & (v->n_buckets - 1)];

	while (*p != NULL &&
	       ((*p)->hash != hash || strcmp((*p)->name, name) != 0))
		p = &(*p)->next;
	return p;
}

/* Without memory the table stays as it is, and is slower. */
static void
grow(struct variables *v)
{
	size_t n = v->n_buckets * 2, i;
	struct variable **to = sync_alloc(n, sizeof *to), *x, *next;

	if (to == NULL)
		return;
	for (i = 0; i < v->n_buckets; i++)
		for (x = v->buckets[i]; x != NULL; x = next) {
			next = x->next;
			x->next = to[x->hash & (n - 1)];
			to[x->hash & (n - 1)] = x;
		}
	sync_free(v->buckets);
	v->buckets = to;
	v->n_buckets = n;
}

struct variable *
evc__variable_find(struct variables *v, const char *name)
{
	return *place_of(v, name, name_hash(name));
}

struct variable *
evc__variable_make(struct variables *v, const char *name)
{
	uint32_t hash = name_hash(name);
	struct variable **at = place_of(v, name, hash), *x = *at;
	size_t len;

	if (x != NULL)
		return x;
	len = strlen(name) + 1;
	x = sync_alloc(1, sizeof *x + len);
	if (x == NULL)
		return NULL;
	x->hash = hash;
	memcpy(x->name, name, len);
	*at = x;
	if (++v->n > v->n_buckets)
		grow(v);
	return x;
}

void
evc__variable_remove_if_gone(struct variables *v, struct variable *x)
{
	if (x->is.size > 0 || x->n_held > 0)
		return;
	*place_of(v, x->name, x->hash) = x->next;
	v->n--;
	sync_free(x);
}

/* ---- lock not held ---- */

void
evc__variables_replace(struct variables *v, struct variables *by)
{
	struct variable **buckets;
	size_t n_buckets, n;

	sync_lock(&v->lock);
	buckets = v->buckets;
	n_buckets = v->n_buckets;
	n = v->n;
	v->buckets = by->buckets;
	v->n_buckets = by->n_buckets;
	v->n = by->n;
	v->finished = by->finished;
	v->changes++;
	sync_unlock(&v->lock);
	by->buckets = buckets;
	by->n_buckets = n_buckets;
	by->n = n;
}

void
evc__variables_finished(struct variables *v, uint64_t n)
{
	sync_lock(&v->lock);
	v->finished += n;
	v->changes += n;
	sync_unlock(&v->lock);
}

static uint64_t
look(struct variables *v, const uint64_t *at)
{
	uint64_t n;

	sync_lock(&v->lock);
	n = *at;
	sync_unlock(&v->lock);
	return n;
}

uint64_t
evc__variables_n_finished(struct variables *v)
{
	return look(v, &v->finished);
}

uint64_t
evc__variables_n_changes(struct variables *v)
{
	return look(v, &v->changes);
}
