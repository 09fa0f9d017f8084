/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of the variables, and the numbers beside it.
 * Called by: this room, and cluster/core for the numbers.
 * Locks: variables.lock: taken by the functions without a table's entry, needed
 * by the others.
 */
#include "cluster/variables/table.h"

#include <evcoord.h>

bool
evc__variables_init(struct variables *v)
{
	*v = (struct variables){ .saved = 0 };
	if (!evc__table_reserve(&v->by_name, 1))
		return false;
	sync_lock_init(&v->lock);
	sync_lock_init(&v->saving);
	return true;
}

void
evc__variables_clear(struct variables *v)
{
	struct variable *x, *next;
	struct table all;

	sync_lock(&v->lock);
	all = v->by_name;
	v->by_name = (struct table){ 0 };
	sync_unlock(&v->lock);
	TABLE_EACH(x, next, &all) {
		sync_free(x->is.big);
		sync_free(x);
	}
	evc__table_free(&all);
}

void
evc__variables_destroy(struct variables *v)
{
	evc__variables_clear(v);
	sync_lock_destroy(&v->lock);
	sync_lock_destroy(&v->saving);
}

/* ---- lock held ---- */

struct variable *
evc__variable_find(struct variables *v, const char *name)
{
	return evc__table_find_name(&v->by_name, name);
}

struct variable *
evc__variable_make(struct variables *v, const char *name)
{
	struct variable *x = evc__variable_find(v, name);
	size_t len;

	if (x != NULL)
		return x;
	len = strlen(name) + 1;
	x = sync_alloc(1, sizeof *x + len);
	if (x == NULL)
		return NULL;
	x->at.text = memcpy(x->name, name, len);
	evc__table_reserve(&v->by_name, 1); /* has room in any case */
	evc__table_add_name(&v->by_name, &x->at);
	return x;
}

void
evc__variable_remove_if_gone(struct variables *v, struct variable *x)
{
	if (x->is.size > 0 || x->n_held > 0)
		return;
	evc__table_remove(&v->by_name, &x->at.node);
	sync_free(x);
}

/* ---- lock not held ---- */

void
evc__variables_seal(struct variables *v)
{
	sync_lock(&v->lock);
	v->sealed = true;
	sync_unlock(&v->lock);
}

evc_status
evc__variables_refuse_sealed(void)
{
	return evc_refuse(-EVC_CANCELLED,
			  "the cluster was stopped, and its variables are "
			  "saved for the last time");
}

evc_status
evc__variables_replace(struct variables *v, struct variables *by)
{
	struct table before = by->by_name;
	bool sealed;

	sync_lock(&v->lock);
	sealed = v->sealed;
	if (!sealed) {
		by->by_name = v->by_name;
		v->by_name = before;
		v->finished = by->finished;
		v->changes++;
	}
	sync_unlock(&v->lock);
	return sealed ? evc__variables_refuse_sealed() : 0;
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
read_locked(struct variables *v, const uint64_t *at)
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
	return read_locked(v, &v->finished);
}

uint64_t
evc__variables_n_changes(struct variables *v)
{
	return read_locked(v, &v->changes);
}
