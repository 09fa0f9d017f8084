/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster's variables from inside a function.  A plain function's operation
 * is done at once.  A transactional function's changes are noted, a note for
 * each name; the function sees them as if they were done, and they go out with
 * the result.
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
}

void
evc__transaction_destroy(struct worker *w)
{
	evc__transaction_drop(w);
	evc__table_free(&w->tx.by_name);
}

/* NULL: the function has not changed this variable. */
static struct pending *
find_pending(const struct transaction *tx, const char *name)
{
	return evc__table_find_name(&tx->by_name, name);
}

static evc_status
no_memory(void)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
			  "no memory for what a function does to a variable");
}

/* A new note for this name, with an addition of nothing; NULL: no memory. */
static struct pending *
add_pending(struct worker *w, const char *name)
{
	struct transaction *tx = &w->tx;
	struct pending *p = arena_take(&w->arena, sizeof *p);
	const char *copy = arena_copy(&w->arena, name, strlen(name) + 1);

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
	const struct pending *p;
	evc_value v;

	if (tx->first == NULL)
		return true;
	all = arena_take(&w->arena, tx->by_name.n * sizeof *all);
	if (all == NULL)
		return false;
	for (p = tx->first, u = all; p != NULL; p = p->next, u++) {
		*u = (evc_engine_update){
			.op = p->set ? EVC_VARIABLE_SET : EVC_VARIABLE_ADD,
			.name = p->at.text,
			.by = p->by,
		};
		v = content_value(&p->is);
		if (v.size == 0)
			continue;
		u->value.size = v.size;
		u->value.data = arena_copy(&w->arena, v.data, v.size);
		if (u->value.data == NULL)
			return false;
	}
	ret->updates = all;
	ret->n_updates = (unsigned)tx->by_name.n;
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

/* The sum of a variable's present value and `by`. */
static evc_status
sum_now(const evc_exec *x, const char *name, double by, struct content *ret)
{
	struct content is = { .size = 0 };
	evc_value v;
	evc_status st = get_now(x, name, &v);

	if (st == 0)
		st = evc__content_make(name, &v, &is);
	else if (st == -EVC_NOT_FOUND)
		st = 0;
	evc_value_free(&v);
	if (st < 0)
		return st;
	sync_free(is.big);
	if (is.size > 0 && !is.is_number)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s is no number", name);
	evc__content_of_number(is.size > 0 ? is.number + by : by, ret);
	return 0;
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
		st = sum_now(x, name, before + by, &sum);
		if (st < 0)
			return st;
	}
	if (p == NULL)
		p = add_pending(x->w, name);
	if (p == NULL)
		return no_memory();
	p->by = before + by;
	if (ret_now != NULL)
		*ret_now = sum.number;
	return 0;
}

static evc_status
set_noted(evc_exec *x, const char *name, const evc_value *value)
{
	struct pending *p = find_pending(&x->w->tx, name);
	struct content is;
	evc_status st = evc__content_make(name, value, &is);

	if (st < 0)
		return st;
	if (p == NULL)
		p = add_pending(x->w, name);
	if (p == NULL) {
		sync_free(is.big);
		return no_memory();
	}
	sync_free(p->is.big);
	p->set = true;
	p->by = 0;
	p->is = is;
	return 0;
}

static evc_status
get_noted(evc_exec *x, const char *name, evc_value *ret)
{
	const struct pending *p = find_pending(&x->w->tx, name);
	struct content sum;
	evc_value v;
	evc_status st;

	if (p == NULL)
		return get_now(x, name, ret);
	if (!p->set) {
		st = sum_now(x, name, p->by, &sum);
		if (st < 0)
			return st;
		v = content_value(&sum);
		return evc_value_copy(ret, &v);
	}
	v = content_value(&p->is);
	if (v.size == 0)
		return evc_refuse(-EVC_NOT_FOUND, "there is no variable %s",
				  name);
	return evc_value_copy(ret, &v);
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

evc_status
evc_exec_variable_get(evc_exec *x, const char *name, evc_value *ret_value)
{
	const evc_engine_update u = { .op = EVC_VARIABLE_GET, .name = name };
	evc_status st = check_update(x, &u);

	if (st < 0)
		return st;
	if (ret_value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_variable_get: there is no place for "
				  "the value");
	*ret_value = (evc_value){ 0 };
	return x->transactional ? get_noted(x, name, ret_value) :
				  get_now(x, name, ret_value);
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
	if (x->transactional)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_exec_variable_compare_set: not in a "
				  "transactional function, whose updates are "
				  "made later");
	if (value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_variable_compare_set: there is no "
				  "value (nil is one of no bytes)");
	u.value = *value;
	if (expected != NULL)
		u.expected = *expected;
	return do_now(x, &u, NULL, NULL);
}
