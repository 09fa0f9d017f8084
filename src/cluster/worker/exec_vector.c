/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vectors among the cluster's variables, from inside a function: as
 * exec_variable.c, for some elements of a vector.
 * Called by: the program's functions.
 * Locks: none; the thread of the functions.
 */
#include "cluster/worker/exec.h"

#include "wire/vector.h"

/* What the function itself has done to this variable; NULL: nothing, or it is not
   transactional. */
static const struct pending *
own_note(const evc_exec *x, const char *name)
{
	return x->transactional ? evc__transaction_find(&x->w->tx, name) : NULL;
}

/* The vector set by the function itself. false: none. */
static bool
look_at_set(const struct pending *p, struct vector *ret)
{
	evc_value is = content_value(&p->is);

	return evc__vector_look(&is, ret);
}

/* ---- reads ---- */

static evc_status
note_places(const evc_exec *x, const evc_engine_update *u, evc_value *v)
{
	struct pending *p = evc__transaction_note(x->w, u->name);

	if (p != NULL && evc__transaction_read(x->w, p, &u->value, v))
		return 0;
	evc_value_free(v);
	return evc__transaction_no_memory();
}

/* The vector was too short: note its size.  *ret_stands: it is too short for u
   still. */
static evc_status
note_size(const evc_exec *x, const evc_engine_update *u, bool *ret_stands)
{
	const evc_engine_update size = { .op = EVC_VARIABLE_VECTOR_GET,
					 .name = u->name,
					 .value = evc__patch_of_size() };
	evc_value v = { NULL, 0 };
	struct patch places;
	size_t place;
	uint64_t n;
	evc_status st = evc__exec_ask(x, &size, NULL, &v);

	*ret_stands = false;
	if (st < 0)
		return st == -EVC_NOT_FOUND || st == -EVC_INVALID_ARGUMENT ?
			       0 :
			       evc__transaction_unread(x->w, st);
	st = evc_unpack(&v, "U", &n);
	if (st == 0)
		st = evc__patch_read(&u->value, false, &places);
	if (st == 0) {
		*ret_stands = patch_is_beyond(&places, (size_t)n, &place);
		st = note_places(x, &size, &v);
	}
	evc_value_free(&v);
	return st;
}

/* A read has failed as `was` says, and the function may depend on the cause: note
   it.  *ret_stands: the cause is the same still; else others have changed the
   variable since. */
static evc_status
note_cause(const evc_exec *x, const evc_engine_update *u, evc_status was,
	   bool *ret_stands)
{
	evc_value v = { NULL, 0 };
	struct vector of;
	evc_status st;

	if (was == -EVC_OUT_OF_RANGE)
		return note_size(x, u, ret_stands);
	st = evc__exec_read(x, u->name, &v);
	if (st < 0 && st != -EVC_NOT_FOUND)
		return st;
	*ret_stands = st < 0 ? was == st :
			       was == -EVC_INVALID_ARGUMENT &&
				       !evc__vector_look(&v, &of);
	evc_value_free(&v);
	return 0;
}

/* Read the places, and note what was read, or why nothing was. */
static evc_status
read_noted(const evc_exec *x, const evc_engine_update *u, evc_value *ret)
{
	bool stands = false;
	struct said said;
	evc_status st, noted;

	for (;;) {
		*ret = (evc_value){ NULL, 0 };
		st = evc__exec_ask(x, u, NULL, ret);
		if (st == 0)
			return note_places(x, u, ret);
		if (st != -EVC_NOT_FOUND && st != -EVC_OUT_OF_RANGE &&
		    st != -EVC_INVALID_ARGUMENT)
			return evc__transaction_unread(x->w, st);
		said = evc__said_before();
		noted = note_cause(x, u, st, &stands);
		if (noted < 0)
			return noted;
		if (stands)
			return evc_refuse(st, "%s", said.text);
	}
}

/* The answer for the places in u, without the function's own additions. */
static evc_status
read_places(const evc_exec *x, const evc_engine_update *u, bool loose,
	    evc_value *ret)
{
	const struct pending *p = own_note(x, u->name);
	struct vector of;
	struct patch places;
	evc_status st;

	*ret = (evc_value){ NULL, 0 };
	if (p != NULL && p->set) {
		if (p->is.size == 0)
			return evc__variable_missing(u->name);
		if (!look_at_set(p, &of))
			return evc__variable_wrong(u->name, VARIABLE_NO_VECTOR);
		st = evc__patch_read(&u->value, false, &places);
		return st < 0 ? st :
				evc__patch_get(&places, &of, u->name, ret);
	}
	if (p != NULL && p->added)
		return evc__variable_wrong(u->name, VARIABLE_NO_VECTOR);
	return x->transactional && !loose ? read_noted(x, u, ret) :
					    evc__exec_ask(x, u, NULL, ret);
}

/* Add the function's own additions so far. */
static evc_status
overlay_own(const evc_exec *x, const char *name, const evc_elements *e,
	    unsigned width)
{
	const struct pending *p = own_note(x, name);
	const struct vector_note *a = p != NULL ? p->adds : NULL;
	struct patch patch;
	evc_status st = 0;

	for (; a != NULL && st == 0; a = a->next) {
		st = evc__patch_read(&a->patch, true, &patch);
		if (st == 0)
			evc__patch_overlay(&patch, e, width);
	}
	return st;
}

/* The elements of v, and the function's own additions to them.  Those are added
   before doubles become floats. */
static evc_status
fill_with_own(const evc_exec *x, const char *name, const evc_elements *e,
	      const evc_value *v)
{
	evc_elements whole = *e;
	struct vector of;
	evc_status st;
	size_t i;

	if (own_note(x, name) == NULL || !evc__vector_look(v, &of))
		return evc__elements_fill(e, v);
	if (e->floats != NULL && e->n > 0 && of.width == 8) {
		whole.floats = NULL;
		whole.doubles = sync_alloc(e->n, sizeof *whole.doubles);
		if (whole.doubles == NULL)
			return evc__variable_no_memory();
	}
	st = evc__elements_fill(&whole, v);
	if (st == 0)
		st = overlay_own(x, name, &whole, of.width);
	for (i = 0; whole.floats != e->floats && i < e->n && st == 0; i++)
		e->floats[i] = (float)whole.doubles[i];
	if (whole.doubles != e->doubles)
		sync_free(whole.doubles);
	return st;
}

static evc_status
get_elements(const evc_exec *x, const char *name, const evc_elements *e,
	     bool loose)
{
	evc_engine_update u = { .op = EVC_VARIABLE_VECTOR_GET, .name = name };
	evc_value places, v = { NULL, 0 };
	evc_status st = evc__elements_check(e, false);

	if (st == 0)
		st = evc__patch_make(e, false, &places);
	if (st < 0)
		return st;
	u.value = places;
	st = evc__exec_check_update(x, &u);
	if (st == 0)
		st = read_places(x, &u, loose, &v);
	if (st == 0)
		st = fill_with_own(x, name, e, &v);
	evc_value_free(&v);
	evc_value_free(&places);
	return st;
}

/* ---- additions ---- */

static evc_status
add_elements_noted(evc_exec *x, const char *name, const evc_value *patch)
{
	struct pending *p = evc__transaction_find(&x->w->tx, name);
	struct vector to;
	struct patch by;
	evc_status st;

	if (p != NULL && p->set && p->is.size == 0)
		return evc__variable_wrong(name, VARIABLE_NOT_SET);
	if (p != NULL && (p->added || (p->set && !look_at_set(p, &to))))
		return evc__variable_wrong(name, VARIABLE_NO_VECTOR);
	if (p != NULL && p->set) {
		st = evc__patch_read(patch, true, &by);
		return st < 0 ? st : evc__patch_add(&by, &to, name, NULL);
	}
	p = evc__transaction_note(x->w, name);
	return p != NULL && evc__transaction_add(x->w, p, patch) ?
		       0 :
		       evc__transaction_no_memory();
}

/* ---- the calls ---- */

evc_status
evc_exec_vector_set(evc_exec *x, const char *name, const evc_elements *elements)
{
	evc_value v;
	evc_status st = evc__elements_check(elements, true);

	if (st == 0)
		st = evc__elements_vector(elements, &v);
	if (st < 0)
		return st;
	st = evc_exec_variable_set(x, name, &v);
	evc_value_free(&v);
	return st;
}

evc_status
evc_exec_vector_add(evc_exec *x, const char *name, const evc_elements *elements)
{
	evc_engine_update u = { .op = EVC_VARIABLE_VECTOR_ADD, .name = name };
	evc_value patch;
	evc_status st = evc__elements_check(elements, false);

	if (st == 0)
		st = evc__patch_make(elements, true, &patch);
	if (st < 0)
		return st;
	u.value = patch;
	st = evc__exec_check_update(x, &u);
	if (st == 0)
		st = x->transactional ? add_elements_noted(x, name, &patch) :
					evc__exec_ask(x, &u, NULL, NULL);
	evc_value_free(&patch);
	return st;
}

evc_status
evc_exec_vector_get(evc_exec *x, const char *name, const evc_elements *to)
{
	return get_elements(x, name, to, false);
}

evc_status
evc_exec_vector_get_loose(evc_exec *x, const char *name, const evc_elements *to)
{
	return get_elements(x, name, to, true);
}

evc_status
evc_exec_vector_size(evc_exec *x, const char *name, size_t *ret_n)
{
	evc_engine_update u = { .op = EVC_VARIABLE_VECTOR_GET,
				.name = name,
				.value = evc__patch_of_size() };
	evc_value v = { NULL, 0 };
	uint64_t n;
	evc_status st = evc__exec_check_update(x, &u);

	if (st == 0 && ret_n == NULL)
		st = evc__variable_no_place();
	if (st == 0)
		st = read_places(x, &u, false, &v);
	if (st == 0)
		st = evc_unpack(&v, "U", &n);
	if (st == 0)
		*ret_n = (size_t)n;
	evc_value_free(&v);
	return st;
}
