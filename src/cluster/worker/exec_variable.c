/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster's variables from inside a function.  A plain function's operation
 * is done at once.  A transactional function's reads and changes are noted
 * (transaction.c), and the function sees the changes as if they were done.
 * Called by: the program's functions; exec_vector.c.
 * Locks: none; the thread of the functions.
 */
#include "cluster/worker/exec.h"

#include "wire/vector.h"

/* ---- at once ---- */

evc_status
evc__exec_check_update(const evc_exec *x, const evc_engine_update *u)
{
	evc_status st;

	if (x == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a variable has to have a function that asks "
				  "for it");
	st = evc__variable_check(u);
	return st == 0 ? evc__worker_check(x->w) : st;
}

evc_status
evc__exec_ask(const evc_exec *x, const evc_engine_update *u, double *ret_now,
	      evc_value *ret_value)
{
	const struct worker_env *env = &x->w->env;

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
	return evc__exec_ask(x, &u, NULL, ret);
}

/* Read a variable, and note what it was.  It is read each time, so a function
   that waits for a change sees it. */
evc_status
evc__exec_read(const evc_exec *x, const char *name, evc_value *ret)
{
	evc_status st = get_now(x, name, ret);
	struct pending *p;

	if (st < 0 && st != -EVC_NOT_FOUND)
		return evc__transaction_unread(x->w, st);
	p = evc__transaction_note(x->w, name);
	if (p != NULL && evc__transaction_read(x->w, p, NULL, ret))
		return st;
	evc_value_free(ret);
	return evc__transaction_no_memory();
}

/* A missing variable is 0. */
static evc_status
read_number(const evc_exec *x, const char *name, read_fn *read, double *ret)
{
	const struct said before = evc__said_before();
	evc_value v;
	evc_status st = evc__missing_is_zero(read(x, name, &v), &before);

	if (st < 0)
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
		st = evc__variable_sum(name, number, by, &number);
	if (st == 0)
		evc__content_of_number(number, ret);
	return st;
}

/* ---- noted ---- */

static evc_status
add_noted(evc_exec *x, const char *name, double by, double *ret_now)
{
	struct pending *p = evc__transaction_find(&x->w->tx, name);
	double before = p != NULL ? p->by : 0;
	struct content sum;
	evc_status st;
	double d;

	if (p != NULL && ((p->set && p->is.size > 0 && !p->is.is_number) ||
			  p->adds != NULL))
		return evc__variable_wrong(name, VARIABLE_NO_NUMBER);
	if (p != NULL && p->set) {
		st = evc__variable_sum(name, p->is.size > 0 ? p->is.number : 0,
				       by, &d);
		if (st < 0)
			return st;
		evc__content_of_number(d, &sum);
		sync_free(p->is.big);
		p->is = sum;
		if (ret_now != NULL)
			*ret_now = sum.number;
		return 0;
	}
	/* All additions become one in the end. */
	st = evc__variable_sum(name, before, by, &d);
	if (st < 0)
		return st;
	if (ret_now != NULL) {
		st = sum_now(x, name, d, evc__exec_read, &sum);
		if (st < 0)
			return st;
	}
	p = evc__transaction_note(x->w, name);
	if (p == NULL)
		return evc__transaction_no_memory();
	p->added = true;
	p->by = d;
	if (ret_now != NULL)
		*ret_now = sum.number;
	return 0;
}

/* The value was checked. */
static evc_status
set_noted(evc_exec *x, const char *name, const evc_value *value)
{
	struct pending *p;
	struct content is;
	evc_status st = evc__content_make(value, &is);

	if (st < 0)
		return st;
	p = evc__transaction_note(x->w, name);
	if (p == NULL) {
		sync_free(is.big);
		return evc__transaction_no_memory();
	}
	sync_free(p->is.big);
	p->set = true;
	p->added = false;
	p->adds = NULL;
	p->by = 0;
	p->is = is;
	return 0;
}

/* A whole vector, with the additions noted in p. */
static evc_status
read_added(const evc_exec *x, const struct pending *p,
	   read_fn *read, evc_value *ret)
{
	const struct vector_note *a;
	struct vector of;
	struct patch patch;
	evc_status st = read(x, p->at.text, ret);

	if (st < 0)
		return st;
	if (!evc__vector_look(ret, &of))
		st = evc__variable_wrong(p->at.text, VARIABLE_NO_VECTOR);
	for (a = p->adds; a != NULL && st == 0; a = a->next) {
		st = evc__patch_read(&a->patch, true, &patch);
		if (st == 0)
			st = evc__patch_add(&patch, &of, p->at.text, NULL);
	}
	if (st < 0)
		evc_value_free(ret);
	return st;
}

/* With the changes of the function itself. */
static evc_status
get_changed(const evc_exec *x, const char *name, read_fn *read, evc_value *ret)
{
	const struct pending *p = evc__transaction_find(&x->w->tx, name);
	struct content sum;
	evc_value v;
	evc_status st;

	if (p != NULL && p->adds != NULL && !p->set)
		return read_added(x, p, read, ret);
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
	return v.size > 0 ? evc_value_copy(ret, &v) : evc__variable_missing(name);
}

/* With its own changes, and noted. */
static evc_status
read_changed(const evc_exec *x, const char *name, evc_value *ret)
{
	*ret = (evc_value){ 0 };
	return get_changed(x, name, evc__exec_read, ret);
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
	evc_status st = evc__exec_check_update(x, &u);

	if (st < 0)
		return st;
	if (x->transactional)
		return add_noted(x, name, by, ret_now);
	return ret_now == NULL ? evc__exec_add_loosely(x, &u) :
				 evc__exec_ask(x, &u, ret_now, NULL);
}

evc_status
evc_exec_variable_set(evc_exec *x, const char *name, const evc_value *value)
{
	evc_engine_update u = { .op = EVC_VARIABLE_SET, .name = name };
	evc_status st;

	if (value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_variable_set: there is no value "
				  "(nil is one of no bytes)");
	u.value = *value;
	st = evc__exec_check_update(x, &u);
	if (st < 0)
		return st;
	return x->transactional ? set_noted(x, name, value) :
				  evc__exec_ask(x, &u, NULL, NULL);
}

static evc_status
get(const evc_exec *x, const char *call, const char *name, read_fn *read,
    evc_value *ret_value)
{
	const evc_engine_update u = { .op = EVC_VARIABLE_GET, .name = name };
	evc_status st = evc__exec_check_update(x, &u);
	evc_value v = { NULL, 0 };

	if (st < 0)
		return st;
	if (ret_value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: there is no place for the value", call);
	st = x->transactional ? get_changed(x, name, read, &v) :
				get_now(x, name, &v);
	if (st == 0 || st == -EVC_NOT_FOUND)
		*ret_value = v;
	return st;
}

evc_status
evc_exec_variable_get(evc_exec *x, const char *name, evc_value *ret_value)
{
	return get(x, "evc_exec_variable_get", name, evc__exec_read, ret_value);
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
	evc_status st = evc__exec_check_update(x, &u);

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
	evc_status st;

	if (value == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_variable_compare_set: there is no "
				  "value (nil is one of no bytes)");
	u.value = *value;
	if (expected != NULL)
		u.expected = *expected;
	st = evc__exec_check_update(x, &u);
	if (st < 0)
		return st;
	return x->transactional ? compare_set_noted(x, &u) :
				  evc__exec_ask(x, &u, NULL, NULL);
}
