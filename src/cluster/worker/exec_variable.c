/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster's variables from inside a function.  A plain function's operation
 * is done at once.  A transactional function's reads and changes are noted, a
 * note for each name; the function sees the changes as if they were done, and
 * all goes out with the result.
 * Called by: the program's functions; worker.c for the notes.
 * Locks: none; the thread of the functions.
 */
#include <math.h>

#include "cluster/worker/exec.h"

/* ---- notes ---- */

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
	w->tx.n_reads = 0;
}

void
evc__transaction_destroy(struct worker *w)
{
	evc__transaction_drop(w);
	evc__table_free(&w->tx.by_name);
}

/* NULL: the function has neither read nor changed this variable. */
static struct pending *
find_pending(const struct transaction *tx, const char *name)
{
	return evc__table_find_name(&tx->by_name, name);
}

static evc_status
no_variable(const char *name)
{
	return evc_refuse(-EVC_NOT_FOUND, "there is no variable %s", name);
}

static evc_status
no_memory(void)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
			  "no memory for what a function does to a variable");
}

/* The note for this name, made if need be; NULL: no memory. */
static struct pending *
pending_of(struct worker *w, const char *name)
{
	struct transaction *tx = &w->tx;
	struct pending *p = find_pending(tx, name);
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

bool
evc__transaction_take(struct worker *w, evc_engine_result *ret)
{
	struct transaction *tx = &w->tx;
	evc_engine_update *all, *u;
	const struct read_note *r;
	const struct pending *p;
	evc_value v;

	if (tx->first == NULL)
		return true;
	all = arena_take(&w->arena,
			 (tx->n_reads + tx->by_name.n) * sizeof *all);
	if (all == NULL)
		return false;
	u = all;
	for (r = tx->first_read; r != NULL; r = r->next)
		*u++ = (evc_engine_update){ .op = r->op,
					    .name = r->name,
					    .expected = r->is };
	for (p = tx->first; p != NULL && ret->code == 0; p = p->next) {
		if (!p->set && !p->added)
			continue;
		*u = (evc_engine_update){
			.op = p->set ? EVC_VARIABLE_SET : EVC_VARIABLE_ADD,
			.name = p->at.text,
			.by = p->by,
		};
		v = content_value(&p->is);
		if (v.size > 0) {
			u->value.size = v.size;
			u->value.data = arena_copy(&w->arena, v.data, v.size);
			if (u->value.data == NULL)
				return false;
		}
		u++;
	}
	ret->updates = all;
	ret->n_updates = (unsigned)(u - all);
	return true;
}

/* ---- at once ---- */

static evc_status
check_update(const evc_exec *x, const evc_engine_update *u)
{
	if (x == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a variable has to have a function that asks "
				  "for it");
	return evc__variable_check(u);
}

static evc_status
do_now(const evc_exec *x, const evc_engine_update *u, double *ret_now,
       evc_value *ret_value)
{
	const struct worker_env *env = &x->w->env;
	evc_status st = evc__worker_check(x->w);

	if (st < 0)
		return st;
	if (env->variable == NULL)
		return evc_refuse(-EVC_UNAVAILABLE,
				  "%s knows no variables", x->w->name);
	return env->variable(env->arg, u, ret_now, ret_value);
}

static evc_status
get_now(const evc_exec *x, const char *name, evc_value *ret)
{
	evc_engine_update u = { .op = EVC_VARIABLE_GET, .name = name };

	*ret = (evc_value){ 0 };
	return do_now(x, &u, NULL, ret);
}

/* ---- reads of a transaction ---- */

/* What others may change before the function ends.  Two reads with different
   contents are two notes, one of which cannot hold in the end. */
static bool
note_read(struct worker *w, struct pending *p, const evc_value *v)
{
	struct transaction *tx = &w->tx;
	char hash[CONTENT_HASH_SIZE];
	struct read_note *r;
	evc_value is = *v;
	unsigned op = EVC_VARIABLE_READ;

	if (v->size > EVC_ENGINE_READ_MOST) {
		evc__content_hash(v, hash);
		is = (evc_value){ hash, sizeof hash };
		op = EVC_VARIABLE_READ_HASHED;
	}
	if (p->read != NULL && p->read->op == op &&
	    bytes_are_equal(&p->read->is, &is))
		return true;
	r = arena_take(&w->arena, sizeof *r);
	if (r == NULL)
		return false;
	*r = (struct read_note){ .name = p->at.text, .op = op };
	if (is.size > 0) {
		r->is.size = is.size;
		r->is.data = arena_copy(&w->arena, is.data, is.size);
		if (r->is.data == NULL)
			return false;
	}
	*(tx->first_read == NULL ? &tx->first_read : &tx->last_read->next) = r;
	tx->last_read = r;
	tx->n_reads++;
	p->read = r;
	return true;
}

/* Read a variable, and note what it was.  It is read each time, so a function
   that waits for a change sees it. */
static evc_status
read_noted(const evc_exec *x, const char *name, evc_value *ret)
{
	evc_status st = get_now(x, name, ret);
	struct pending *p;

	if (st < 0 && st != -EVC_NOT_FOUND)
		return st;
	p = pending_of(x->w, name);
	if (p != NULL && note_read(x->w, p, ret))
		return st;
	evc_value_free(ret);
	return no_memory();
}

/* How a function reads: read_noted, or get_now. */
typedef evc_status read_fn(const evc_exec *x, const char *name, evc_value *ret);

/* A missing variable is 0. */
static evc_status
read_number(const evc_exec *x, const char *name, read_fn *read, double *ret)
{
	evc_value v;
	evc_status st = read(x, name, &v);

	if (st < 0 && st != -EVC_NOT_FOUND)
		return st;
	st = evc__content_number(name, &v, ret);
	evc_value_free(&v);
	return st;
}

/* The sum of a variable's present value and `by`. */
static evc_status
sum_now(const evc_exec *x, const char *name, double by, read_fn *read,
	struct content *ret)
{
	double number;
	evc_status st = read_number(x, name, read, &number);

	if (st == 0)
		evc__content_of_number(number + by, ret);
	return st;
}

/* ---- noted ---- */

static evc_status
add_noted(evc_exec *x, const char *name, double by, double *ret_now)
{
	struct pending *p = find_pending(&x->w->tx, name);
	double before = p != NULL ? p->by : 0;
	struct content sum;
	evc_status st;

	if (p != NULL && p->set) {
		if (p->is.size > 0 && !p->is.is_number)
			return evc_refuse(-EVC_INVALID_ARGUMENT,
					  "variable %s is no number", name);
		evc__content_of_number(p->is.size > 0 ? p->is.number + by : by,
				       &sum);
		sync_free(p->is.big);
		p->is = sum;
		if (ret_now != NULL)
			*ret_now = sum.number;
		return 0;
	}
	/* All additions become one in the end. */
	if (!isfinite(before + by))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s: %g and %g are too much to add",
				  name, before, by);
	if (ret_now != NULL) {
		st = sum_now(x, name, before + by, read_noted, &sum);
		if (st < 0)
			return st;
	}
	p = pending_of(x->w, name);
	if (p == NULL)
		return no_memory();
	p->added = true;
	p->by = before + by;
	if (ret_now != NULL)
		*ret_now = sum.number;
	return 0;
}

static evc_status
set_noted(evc_exec *x, const char *name, const evc_value *value)
{
	struct pending *p;
	struct content is;
	evc_status st = evc__content_make(name, value, &is);

	if (st < 0)
		return st;
	p = pending_of(x->w, name);
	if (p == NULL) {
		sync_free(is.big);
		return no_memory();
	}
	sync_free(p->is.big);
	p->set = true;
	p->added = false;
	p->by = 0;
	p->is = is;
	return 0;
}

/* With the changes of the function itself. */
static evc_status
get_changed(const evc_exec *x, const char *name, read_fn *read, evc_value *ret)
{
	const struct pending *p = find_pending(&x->w->tx, name);
	struct content sum;
	evc_value v;
	evc_status st;

	if (p == NULL || (!p->set && !p->added))
		return read(x, name, ret);
	if (p->added) {
		st = sum_now(x, name, p->by, read, &sum);
		if (st < 0)
			return st;
		v = content_value(&sum);
		return evc_value_copy(ret, &v);
	}
	v = content_value(&p->is);
	return v.size > 0 ? evc_value_copy(ret, &v) : no_variable(name);
}

/* With its own changes, and noted. */
static evc_status
read_changed(const evc_exec *x, const char *name, evc_value *ret)
{
	*ret = (evc_value){ 0 };
	return get_changed(x, name, read_noted, ret);
}

static evc_status
compare_set_noted(evc_exec *x, const evc_engine_update *u)
{
	evc_value is;
	bool equal;
	evc_status st = read_changed(x, u->name, &is);

	if (st < 0 && st != -EVC_NOT_FOUND)
		return st;
	equal = evc__value_is_equal(&is, &u->expected);
	evc_value_free(&is);
	return equal ? set_noted(x, u->name, &u->value) :
		       evc__variable_is_other(u->name);
}

/* ---- the calls ---- */

evc_status
evc_exec_variable_add(evc_exec *x, const char *name, double by, double *ret_now)
{
	evc_engine_update u = { .op = EVC_VARIABLE_ADD, .name = name,
				.by = by };
	evc_status st = check_update(x, &u);

	if (st < 0)
		return st;
	return x->transactional ? add_noted(x, name, by, ret_now) :
				  do_now(x, &u, ret_now, NULL);
}

evc_status
evc_exec_variable_set(evc_exec *x, const char *name, const evc_value *value)
{
	evc_engine_update u = { .op = EVC_VARIABLE_SET, .name = name };
	evc_status st = check_update(x, &u);

	if (st < 0)
		return st;
	if (value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_variable_set: there is no value "
				  "(nil is one of no bytes)");
	u.value = *value;
	return x->transactional ? set_noted(x, name, value) :
				  do_now(x, &u, NULL, NULL);
}

static evc_status
get(const evc_exec *x, const char *call, const char *name, read_fn *read,
    evc_value *ret_value)
{
	const evc_engine_update u = { .op = EVC_VARIABLE_GET, .name = name };
	evc_status st = check_update(x, &u);

	if (st < 0)
		return st;
	if (ret_value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: there is no place for the value", call);
	*ret_value = (evc_value){ 0 };
	return x->transactional ? get_changed(x, name, read, ret_value) :
				  get_now(x, name, ret_value);
}

evc_status
evc_exec_variable_get(evc_exec *x, const char *name, evc_value *ret_value)
{
	return get(x, "evc_exec_variable_get", name, read_noted, ret_value);
}

evc_status
evc_exec_variable_get_loose(evc_exec *x, const char *name,
			    evc_value *ret_value)
{
	return get(x, "evc_exec_variable_get_loose", name, get_now, ret_value);
}

evc_status
evc_exec_variable_number(evc_exec *x, const char *name, double *ret_number)
{
	const evc_engine_update u = { .op = EVC_VARIABLE_GET, .name = name };
	evc_status st = check_update(x, &u);

	if (st < 0)
		return st;
	if (ret_number == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_variable_number: there is no place "
				  "for the number");
	return read_number(x, name, x->transactional ? read_changed : get_now,
			   ret_number);
}

evc_status
evc_exec_variable_compare_set(evc_exec *x, const char *name,
			      const evc_value *expected,
			      const evc_value *value)
{
	evc_engine_update u = { .op = EVC_VARIABLE_COMPARE_SET,
				.name = name };
	evc_status st = check_update(x, &u);

	if (st < 0)
		return st;
	if (value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_variable_compare_set: there is no "
				  "value (nil is one of no bytes)");
	u.value = *value;
	if (expected != NULL)
		u.expected = *expected;
	return x->transactional ? compare_set_noted(x, &u) :
				  do_now(x, &u, NULL, NULL);
}
