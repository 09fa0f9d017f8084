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
#include "wire/vector.h"
#include "wire/walk.h"

#define HELD_FEW 8

/* The content of a variable before an operation. */
struct held {
	struct variable *of;
	struct content was;
	/* In place of `was`: elements of a vector; NULL: none. */
	unsigned char *elements;
	struct patch patch; /* their places */
};

/* ---- what is refused ---- */

static evc_status
check_name(const char *name)
{
	if (name == NULL || name[0] == '\0')
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a variable has to have a name");
	if (name[0] == VARIABLE_NAME_NOT)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "the name of a variable cannot begin with "
				  "the byte 0x%02x",
				  VARIABLE_NAME_NOT);
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

	struct patch p;

	if (st == 0 && u->op == EVC_VARIABLE_ADD)
		st = check_by(u->name, u->by);
	if (st == 0 && (u->op == EVC_VARIABLE_VECTOR_ADD ||
			u->op == EVC_VARIABLE_VECTOR_GET))
		st = evc__patch_read(&u->value,
				     u->op == EVC_VARIABLE_VECTOR_ADD, &p);
	if (st == 0 && u->op == EVC_VARIABLE_COMPARE_SET)
		st = evc__value_walk(u->expected.data, u->expected.size, NULL,
				     NULL);
	if (st == 0 &&
	    (u->op == EVC_VARIABLE_SET || u->op == EVC_VARIABLE_COMPARE_SET))
		st = evc__content_check(u->name, &u->value);
	return st;
}

evc_status
evc__variable_no_place(void)
{
	return evc_refuse(-EVC_INVALID_ARGUMENT,
			  "there is no place for the value");
}

evc_status
evc__variable_missing(const char *name)
{
	return evc_refuse(-EVC_NOT_FOUND, "there is no variable %s", name);
}

evc_status
evc__variable_wrong(const char *name, const char *is)
{
	return evc_refuse(-EVC_INVALID_ARGUMENT, "variable %s %s", name, is);
}

evc_status
evc__variable_sum(const char *name, double a, double b, double *ret)
{
	*ret = a + b + 0.0; /* no zero below 0 */
	if (isfinite(*ret))
		return 0;
	return evc_refuse(-EVC_INVALID_ARGUMENT,
			  "variable %s: the sum of %g and %g is no finite "
			  "number",
			  name, a, b);
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
	*ret = (struct held){ .of = x, .was = x->is };
	x->is = *by;
	x->n_held++;
	return 0;
}

static evc_status
add_number(struct variables *v, const char *name, double by, struct held *ret)
{
	struct variable *x = evc__variable_find(v, name);
	bool is_there = x != NULL && x->is.size > 0;
	struct content sum;
	double d;
	evc_status st = check_by(name, by);

	if (st < 0)
		return st;
	if (is_there && !x->is.is_number)
		return evc__variable_wrong(name, VARIABLE_NO_NUMBER);
	st = evc__variable_sum(name, is_there ? x->is.number : 0, by, &d);
	if (st < 0)
		return st;
	evc__content_of_number(d, &sum);
	return replace_content(v, name, &sum, ret);
}

/* The value was checked. */
static evc_status
put_value(struct variables *v, const char *name, const evc_value *value,
	  struct held *ret)
{
	struct content c;
	evc_status st = evc__content_make(value, &c);

	return st < 0 ? st : replace_content(v, name, &c, ret);
}

static evc_status
set_value(struct variables *v, const char *name, const evc_value *value,
	  struct held *ret)
{
	evc_status st = evc__content_check(name, value);

	return st < 0 ? st : put_value(v, name, value, ret);
}

static evc_status
compare_set(struct variables *v, const evc_engine_update *u, struct held *ret)
{
	struct variable *x = evc__variable_find(v, u->name);
	evc_value is =
		x != NULL ? content_value(&x->is) : (evc_value){ NULL, 0 };
	evc_status st = evc__variable_check(u);

	if (st < 0)
		return st;
	if (!evc__value_is_equal(&is, &u->expected))
		return evc__variable_is_other(u->name);
	return put_value(v, u->name, &u->value, ret);
}

/* false: there is no such vector. */
static bool
find_vector(struct variables *v, const char *name, struct variable **ret,
	    struct vector *ret_vector)
{
	evc_value is;

	*ret = evc__variable_find(v, name);
	if (*ret == NULL)
		return false;
	is = content_value(&(*ret)->is);
	return evc__vector_look(&is, ret_vector);
}

static evc_status
add_vector(struct variables *v, const evc_engine_update *u, struct held *ret)
{
	struct held h = { .of = NULL };
	struct vector to;
	evc_status st = evc__patch_read(&u->value, true, &h.patch);

	if (st < 0)
		return st;
	if (!find_vector(v, u->name, &h.of, &to))
		return evc__variable_wrong(
			u->name, h.of == NULL || h.of->is.size == 0 ?
					 VARIABLE_NOT_SET :
					 VARIABLE_NO_VECTOR);
	h.elements = sync_alloc_bytes((size_t)h.patch.n * to.width + 1);
	if (h.elements == NULL)
		return evc__variable_no_memory();
	st = evc__patch_add(&h.patch, &to, u->name, h.elements);
	if (st < 0) {
		sync_free(h.elements);
		return st;
	}
	h.of->n_held++;
	*ret = h;
	return 0;
}

static evc_status
get_vector(struct variables *v, const evc_engine_update *u, evc_value *ret)
{
	struct variable *x;
	struct vector of;
	struct patch p;
	evc_status st = evc__patch_read(&u->value, false, &p);

	*ret = (evc_value){ NULL, 0 };
	if (st < 0)
		return st;
	if (find_vector(v, u->name, &x, &of))
		return evc__patch_get(&p, &of, u->name, ret);
	if (x == NULL || x->is.size == 0)
		return evc__variable_missing(u->name);
	return evc__variable_wrong(u->name, VARIABLE_NO_VECTOR);
}

static void
forget_held(struct variables *v, struct held *h)
{
	sync_free(h->was.big);
	sync_free(h->elements);
	h->of->n_held--;
	evc__variable_remove_if_gone(v, h->of);
}

static void
undo_held(struct variables *v, struct held *h)
{
	evc_value is = content_value(&h->of->is);
	struct vector to;

	if (h->elements == NULL) {
		sync_free(h->of->is.big);
		h->of->is = h->was;
	} else {
		if (evc__vector_look(&is, &to))
			evc__patch_undo(&h->patch, &to, h->elements);
		sync_free(h->elements);
	}
	h->of->n_held--;
	evc__variable_remove_if_gone(v, h->of);
}

static evc_status
get_value(struct variables *v, const char *name, evc_value *ret)
{
	struct variable *x = evc__variable_find(v, name);
	void *copy;

	if (ret == NULL)
		return evc__variable_no_place();
	*ret = (evc_value){ NULL, 0 };
	if (x == NULL || x->is.size == 0)
		return evc__variable_missing(name);
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
	if (v->sealed && u->op != EVC_VARIABLE_GET &&
	    u->op != EVC_VARIABLE_VECTOR_GET) {
		sync_unlock(&v->lock);
		return evc__variables_refuse_sealed();
	}
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
	case EVC_VARIABLE_VECTOR_ADD:
		st = add_vector(v, u, &h);
		break;
	case EVC_VARIABLE_VECTOR_GET:
		st = ret_value != NULL ? get_vector(v, u, ret_value) :
					 evc__variable_no_place();
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
	return u->op == EVC_VARIABLE_READ ||
	       u->op == EVC_VARIABLE_READ_HASHED ||
	       u->op == EVC_VARIABLE_VECTOR_READ;
}

static bool
vector_read_holds(struct variables *v, const evc_engine_update *u)
{
	char hash[CONTENT_HASH_SIZE];
	evc_value is;
	evc_status st = get_vector(v, u, &is);

	if (st < 0)
		return false;
	evc__content_hash(&is, hash);
	evc_value_free(&is);
	is = (evc_value){ hash, sizeof hash };
	return bytes_are_equal(&is, &u->expected);
}

static bool
read_holds(struct variables *v, const evc_engine_update *u)
{
	struct variable *x = evc__variable_find(v, u->name);
	evc_value is = x != NULL ? content_value(&x->is) : (evc_value){ 0 };
	char hash[CONTENT_HASH_SIZE];

	if (u->op == EVC_VARIABLE_VECTOR_READ)
		return vector_read_holds(v, u);
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
	if (u->op == EVC_VARIABLE_VECTOR_ADD)
		return add_vector(v, u, ret);
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
