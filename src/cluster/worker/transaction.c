/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a transactional function has read and changed: a note for each name, and
 * in it the changes; a note for each read.  All goes out with the result.
 * Called by: exec_variable.c and exec_vector.c; worker.c at the end.
 * Locks: none; the thread of the functions.
 */
#include "cluster/worker/exec.h"

#include "base/text.h"

void
evc__transaction_drop(struct worker *w)
{
	struct pending *p;

	for (p = w->tx.first; p != NULL; p = p->next) {
		evc__table_remove(&w->tx.by_name, &p->at.node);
		sync_free(p->is.big);
	}
	w->tx.first = NULL;
	w->tx.first_read = NULL;
	w->tx.n_reads = w->tx.n_adds = 0;
	w->tx.unread = 0;
}

void
evc__transaction_destroy(struct worker *w)
{
	evc__transaction_drop(w);
	evc__table_free(&w->tx.by_name);
}

struct pending *
evc__transaction_find(const struct transaction *tx, const char *name)
{
	return evc__table_find_name(&tx->by_name, name);
}

evc_status
evc__transaction_no_memory(void)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
			  "no memory for what a function does to a variable");
}

struct pending *
evc__transaction_note(struct worker *w, const char *name)
{
	struct transaction *tx = &w->tx;
	struct pending *p = evc__transaction_find(tx, name);
	const char *copy;

	if (p != NULL)
		return p;
	p = arena_take(&w->arena, sizeof *p);
	copy = arena_copy(&w->arena, name, strlen(name) + 1);
	if (p == NULL || copy == NULL || !evc__table_reserve(&tx->by_name, 1))
		return NULL;
	*p = (struct pending){ .at.text = copy };
	evc__table_add_name(&tx->by_name, &p->at);
	*(tx->first == NULL ? &tx->first : &tx->last->next) = p;
	tx->last = p;
	return p;
}

/* The changes of one variable, behind u.  NULL: no memory. */
static evc_engine_update *
take_changes(struct worker *w, const struct pending *p, evc_engine_update *u)
{
	const struct vector_note *a;
	evc_value v = content_value(&p->is);

	if (p->set || p->added) {
		*u = (evc_engine_update){
			.op = p->set ? EVC_VARIABLE_SET : EVC_VARIABLE_ADD,
			.name = p->at.text,
			.by = p->by,
		};
		if (v.size > 0) {
			u->value.size = v.size;
			u->value.data = arena_copy(&w->arena, v.data, v.size);
			if (u->value.data == NULL)
				return NULL;
		}
		u++;
	}
	for (a = p->adds; a != NULL; a = a->next)
		*u++ = (evc_engine_update){ .op = EVC_VARIABLE_VECTOR_ADD,
					    .name = p->at.text,
					    .value = a->patch };
	return u;
}

bool
evc__transaction_take(struct worker *w, evc_engine_result *ret)
{
	struct transaction *tx = &w->tx;
	evc_engine_update *all, *u;
	const struct read_note *r;
	const struct pending *p;

	if (tx->first == NULL)
		return true;
	all = arena_take(&w->arena,
			 (tx->n_reads + tx->n_adds + tx->by_name.n) *
				 sizeof *all);
	if (all == NULL)
		return false;
	u = all;
	for (r = tx->first_read; r != NULL; r = r->next)
		*u++ = (evc_engine_update){ .op = r->op,
					    .name = r->name,
					    .by = (double)r->n_bytes,
					    .value = r->places,
					    .expected = r->is };
	for (p = tx->first; p != NULL && ret->code == 0; p = p->next) {
		u = take_changes(w, p, u);
		if (u == NULL)
			return false;
	}
	ret->updates = all;
	ret->n_updates = (unsigned)(u - all);
	return true;
}

/* ---- reads ---- */

static bool
copy_value(struct worker *w, const evc_value *v, evc_value *ret)
{
	*ret = (evc_value){ NULL, v->size };
	if (v->size > 0)
		ret->data = arena_copy(&w->arena, v->data, v->size);
	return v->size == 0 || ret->data != NULL;
}

bool
evc__transaction_read(struct worker *w, struct pending *p,
		      const evc_value *places, const evc_value *v)
{
	struct transaction *tx = &w->tx;
	unsigned op = places != NULL ? EVC_VARIABLE_VECTOR_READ :
		      v->size > EVC_ENGINE_READ_MOST ?
				       EVC_VARIABLE_READ_HASHED :
				       EVC_VARIABLE_READ;
	const evc_value nowhere = { NULL, 0 };
	char hash[CONTENT_HASH_SIZE];
	struct read_note *r;
	evc_value is = *v;

	if (places == NULL)
		places = &nowhere;
	if (op != EVC_VARIABLE_READ) {
		evc__content_hash(v, hash);
		is = (evc_value){ hash, sizeof hash };
	}
	if (p->read != NULL && p->read->op == op &&
	    bytes_are_equal(&p->read->is, &is) &&
	    bytes_are_equal(&p->read->places, places))
		return true;
	r = arena_take(&w->arena, sizeof *r);
	if (r == NULL)
		return false;
	*r = (struct read_note){ .name = p->at.text,
				 .op = op,
				 .n_bytes = v->size };
	if (!copy_value(w, &is, &r->is) || !copy_value(w, places, &r->places))
		return false;
	*(tx->first_read == NULL ? &tx->first_read : &tx->last_read->next) = r;
	tx->last_read = r;
	tx->n_reads++;
	p->read = r;
	return true;
}

evc_status
evc__transaction_unread(struct worker *w, evc_status st)
{
	if (w->tx.unread == 0) {
		w->tx.unread = st;
		evc__copy(w->tx.why_unread, sizeof w->tx.why_unread,
			  evc_last_error());
	}
	return st;
}

/* ---- additions to a vector ---- */

bool
evc__transaction_add(struct worker *w, struct pending *p,
		     const evc_value *patch)
{
	struct vector_note *a = arena_take(&w->arena, sizeof *a);

	if (a == NULL)
		return false;
	*a = (struct vector_note){ .next = NULL };
	if (!copy_value(w, patch, &a->patch))
		return false;
	*(p->adds == NULL ? &p->adds : &p->last_add->next) = a;
	p->last_add = a;
	w->tx.n_adds++;
	return true;
}
