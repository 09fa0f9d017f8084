/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on variables.  An operation replaces a content and holds the old
 * content until all operations of its group are sure.  So several operations
 * are made, or none, and an undo takes no memory.
 * Called by: cluster/core (sink.c, variable_ask.c), cluster/calls.
 * Locks: variables.lock, taken.
 */
#include <evcoord.h>
#include <math.h>

#include "cluster/variables/table.h"
#include "wire/walk.h"

#define HELD_FEW 8

/* The content of a variable before an operation. */
struct held {
	struct variable *of;
	struct content was;
};

/* ---- what is refused ---- */

static evc_status
check_name(const char *name)
{
	if (name == NULL || name[0] == '\0')
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a variable has to have a name");
	if (strnlen(name, VARIABLE_NAME_MOST + 1) > VARIABLE_NAME_MOST)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "the name of a variable has %d bytes at most",
				  VARIABLE_NAME_MOST);
	return 0;
}

static evc_status
check_by(const char *name, double by)
{
	return isfinite(by) ? 0 :
			      evc_refuse(-EVC_INVALID_ARGUMENT,
					 "variable %s: %g is nothing to add",
					 name, by);
}

evc_status
evc__variable_check(const evc_engine_update *u)
{
	evc_status st = check_name(u->name);

	if (st == 0 && u->op == EVC_VARIABLE_ADD)
		st = check_by(u->name, u->by);
	if (st == 0 && u->op == EVC_VARIABLE_COMPARE_SET)
		st = evc__value_walk(u->expected.data, u->expected.size, NULL,
				     NULL);
	if (st == 0 &&
	    (u->op == EVC_VARIABLE_SET || u->op == EVC_VARIABLE_COMPARE_SET))
		st = evc__content_check(u->name, &u->value);
	return st;
}

evc_status
evc__variable_is_other(const char *name)
{
	return evc_refuse(-EVC_ABORTED, "variable %s is not what was expected",
			  name);
}

/* ---- lock held ---- */

static evc_status
replace_content(struct variables *v, const char *name, struct content *by,
		struct held *ret)
{
	struct variable *x = evc__variable_make(v, name);

	if (x == NULL) {
		sync_free(by->big);
		return evc__variable_no_memory();
	}
	*ret = (struct held){ x, x->is };
	x->is = *by;
	x->n_held++;
	return 0;
}

static evc_status
add_number(struct variables *v, const char *name, double by, struct held *ret)
{
	struct variable *x = evc__variable_find(v, name);
	struct content sum;
	evc_status st = check_by(name, by);

	if (st < 0)
		return st;
	if (x != NULL && x->is.size > 0 && !x->is.is_number)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s is no number", name);
	evc__content_of_number(
		x != NULL && x->is.size > 0 ? x->is.number + by : by, &sum);
	return replace_content(v, name, &sum, ret);
}

static evc_status
set_value(struct variables *v, const char *name, const evc_value *value,
	  struct held *ret)
{
	struct content c;
	evc_status st = evc__content_make(name, value, &c);

	return st < 0 ? st : replace_content(v, name, &c, ret);
}

static evc_status
compare_set(struct variables *v, const evc_engine_update *u, struct held *ret)
{
	struct variable *x = evc__variable_find(v, u->name);
	evc_value is =
		x != NULL ? content_value(&x->is) : (evc_value){ NULL, 0 };
	evc_status st =
		evc__value_walk(u->expected.data, u->expected.size, NULL, NULL);

	if (st < 0)
		return st;
	if (!evc__value_is_equal(&is, &u->expected))
		return evc__variable_is_other(u->name);
	return set_value(v, u->name, &u->value, ret);
}

static void
forget_held(struct variables *v, struct held *h)
{
	sync_free(h->was.big);
	h->of->n_held--;
	evc__variable_remove_if_gone(v, h->of);
}

static void
undo_held(struct variables *v, struct held *h)
{
	sync_free(h->of->is.big);
	h->of->is = h->was;
	h->of->n_held--;
	evc__variable_remove_if_gone(v, h->of);
}

static evc_status
get_value(struct variables *v, const char *name, evc_value *ret)
{
	struct variable *x = evc__variable_find(v, name);
	void *copy;

	if (ret == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no place for the value");
	*ret = (evc_value){ NULL, 0 };
	if (x == NULL || x->is.size == 0)
		return evc_refuse(-EVC_NOT_FOUND, "there is no variable %s",
				  name);
	copy = sync_alloc(1, x->is.size);
	if (copy == NULL)
		return evc__variable_no_memory();
	memcpy(copy, content_value(&x->is).data, x->is.size);
	*ret = (evc_value){ copy, x->is.size };
	return 0;
}

/* ---- lock not held ---- */

evc_status
evc__variable_do(struct variables *v, const evc_engine_update *u,
		 double *ret_now, evc_value *ret_value)
{
	struct held h = { .of = NULL };
	evc_status st = check_name(u->name);

	if (st < 0)
		return st;
	sync_lock(&v->lock);
	switch (u->op) {
	case EVC_VARIABLE_ADD:
		st = add_number(v, u->name, u->by, &h);
		if (st == 0 && ret_now != NULL)
			*ret_now = h.of->is.number;
		break;
	case EVC_VARIABLE_SET:
		st = set_value(v, u->name, &u->value, &h);
		break;
	case EVC_VARIABLE_GET:
		st = get_value(v, u->name, ret_value);
		break;
	case EVC_VARIABLE_COMPARE_SET:
		st = compare_set(v, u, &h);
		break;
	default:
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"%u is nothing that is done to a variable",
				u->op);
	}
	if (h.of != NULL) {
		forget_held(v, &h);
		v->changes++;
	}
	sync_unlock(&v->lock);
	return st;
}

static bool
is_read(const evc_engine_update *u)
{
	return u->op == EVC_VARIABLE_READ || u->op == EVC_VARIABLE_READ_HASHED;
}

static bool
read_holds(struct variables *v, const evc_engine_update *u)
{
	struct variable *x = evc__variable_find(v, u->name);
	evc_value is = x != NULL ? content_value(&x->is) : (evc_value){ 0 };
	char hash[CONTENT_HASH_SIZE];

	if (u->op == EVC_VARIABLE_READ_HASHED &&
	    is.size > EVC_ENGINE_READ_MOST) {
		evc__content_hash(&is, hash);
		is = (evc_value){ hash, sizeof hash };
	}
	return bytes_are_equal(&is, &u->expected);
}

/* ret->of stays NULL for a read. */
static evc_status
apply_update(struct variables *v, const evc_engine_update *u, struct held *ret)
{
	evc_status st = check_name(u->name);

	ret->of = NULL;
	if (st < 0)
		return st;
	if (is_read(u))
		return read_holds(v, u) ? 0 : EVC_ABORTED;
	if (u->op == EVC_VARIABLE_ADD)
		return add_number(v, u->name, u->by, ret);
	if (u->op == EVC_VARIABLE_SET)
		return set_value(v, u->name, &u->value, ret);
	return evc_refuse(-EVC_INVALID_ARGUMENT,
			  "variable %s: %u is no update of a transaction",
			  u->name, u->op);
}

evc_status
evc__variables_commit(struct variables *v, evc_status code,
		      const evc_engine_update *updates, unsigned n)
{
	struct held few[HELD_FEW], *held = few;
	evc_status st = 0;
	unsigned i;

	if (n > HELD_FEW) {
		held = sync_alloc(n, sizeof *held);
		if (held == NULL)
			return evc__variable_no_memory();
	}
	sync_lock(&v->lock);
	/* The reads come first, so they see no update of this function. */
	for (i = 0; i < n && st == 0 && (code == 0 || is_read(&updates[i]));
	     i++)
		st = apply_update(v, &updates[i], &held[i]);
	/* Later contents were made from earlier ones. */
	while (i-- > 0)
		if (held[i].of == NULL)
			continue;
		else if (st == 0)
			forget_held(v, &held[i]);
		else
			undo_held(v, &held[i]);
	if (st == 0 && code == 0) {
		v->finished++;
		v->changes++;
	}
	sync_unlock(&v->lock);
	if (held != few)
		sync_free(held);
	return st;
}
