/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datasets and their iterators, over the state that a function has kept or over
 * the elements of an array.
 * An iterator walks through its dataset `repeat` times.  Each walk is a new
 * iterator of the function, or the elements in a new order.  A walk without an
 * element is the last, for an end to be sure.
 * Called by: local.c; the program's functions (evc_exec_next).
 * Locks: none; the thread of the functions.
 */
#include "base/text.h"
#include "cluster/worker/exec.h"

/* ---- random orders ---- */

static uint64_t
mix_bits(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t
next_random(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return mix_bits(*state);
}

/* The begin of a random row that no two workers and no two walks share; with a
   seed, all workers share the row of a walk. */
static uint64_t
seed_of(const struct evc_local *it)
{
	const struct worker_env *env = &it->w->env;
	uint64_t z = it->dataset->seed;

	if (z == 0) {
		z = mix_bits(sync_real() + env->index);
		z = mix_bits(z ^ sync_mono() ^ (uintptr_t)it ^ env->generation);
		z ^= it->id << 32;
	}
	return mix_bits(z) + it->walk;
}

static void
shuffle_order(struct evc_local *it)
{
	uint64_t random = seed_of(it);
	uint32_t *order = it->order, i, j, kept;

	for (i = 0; i < it->dataset->n_elements; i++)
		order[i] = i;
	while (i > 1) {
		/* 0..i-1, from the upper half of a random number. */
		j = (uint32_t)((next_random(&random) >> 32) * i >> 32);
		kept = order[--i];
		order[i] = order[j];
		order[j] = kept;
	}
}

/* ---- build ---- */

static evc_status
index_elements(struct evc_local *l)
{
	size_t n, i = 0, at = 0;

	if (evc_value_type(&l->value) != EVC_VALUE_ARRAY) {
		evc__copy(l->text, sizeof l->text, "its elements are no array");
		return EVC_INVALID_ARGUMENT;
	}
	n = evc_value_count(&l->value);
	l->elements = sync_alloc(n > 0 ? n : 1, sizeof *l->elements);
	if (l->elements == NULL) {
		evc__copy(l->text, sizeof l->text, "no memory for it");
		return EVC_RESOURCE_EXHAUSTED;
	}
	while (i < n &&
	       evc_value_next(&l->value, &at, NULL, &l->elements[i]))
		i++;
	l->n_elements = i;
	return 0;
}

evc_status
evc__dataset_build(struct evc_local *l, const evc_engine_def *def)
{
	struct text t = evc__text_in(l->text, sizeof l->text);
	evc_status st;

	l->walks = def->repeat > 0 ? def->repeat : 1;
	l->seed = def->seed;
	l->shuffle = def->shuffle;
	if (def->map != NULL) {
		l->map = evc__functions_find(&l->w->functions, def->map);
		if (l->map == NULL) {
			evc__text_fmt(&t, "there is no map function \"%s\"",
				      def->map);
			return EVC_INVALID_ARGUMENT;
		}
	}
	if (def->kind != EVC_DEF_ELEMENTS)
		return 0;
	st = evc_value_copy(&l->value, &def->args);
	if (st < 0) {
		evc__text_add(&t, evc_last_error());
		return -st;
	}
	return index_elements(l);
}

/* ---- walks ---- */

static void
end_walk(struct evc_local *it)
{
	const evc_keep_ops *ops = &it->dataset->ops;

	if (it->walking && it->dataset->kept && ops->free_iterator != NULL)
		ops->free_iterator(it->iterator);
	it->iterator = NULL;
	it->walking = false;
}

/* Begin a walk; on a failure x gets the text. */
static evc_status
begin_walk(struct evc_local *it, struct evc_exec *x)
{
	const struct evc_local *of = it->dataset;
	struct evc_exec in;
	evc_status code = 0;

	it->at = 0;
	it->in_walk = 0;
	if (of->kind == EVC_DEF_DATASET) {
		evc__exec_begin(&in, it->w, x, of->name);
		code = evc__exec_code(of->ops.iterate(&in, of->state,
						      &it->iterator));
		if (code != 0)
			evc__exec_inherit(x, &in, code);
		evc__exec_end(&in);
	} else if (it->order != NULL) {
		shuffle_order(it);
	}
	it->walking = code == 0;
	return code;
}

evc_status
evc__iterator_build(struct evc_local *l, struct evc_exec *x,
		    struct evc_local *dataset)
{
	evc_status code;

	l->dataset = dataset;
	dataset->refs++;
	if (dataset->shuffle && dataset->n_elements > 0) {
		l->order = sync_alloc(dataset->n_elements, sizeof *l->order);
		if (l->order == NULL) {
			evc__copy(l->text, sizeof l->text, "no memory for it");
			return EVC_RESOURCE_EXHAUSTED;
		}
	}
	code = begin_walk(l, x);
	if (code != 0)
		evc__copy_ends(l->text, sizeof l->text,
			       evc__exec_text(x, code));
	return code;
}

static void
drop_current(struct evc_local *it)
{
	if (it->current_owned)
		evc_value_free(&it->current);
	it->current = (evc_value){ 0 };
	it->current_owned = false;
}

void
evc__iterator_destroy(struct evc_local *l)
{
	if (l->dataset == NULL)
		return;
	end_walk(l);
	drop_current(l);
	sync_free(l->order);
	sync_free(l->map_args);
	l->order = NULL;
	l->map_args = NULL;
}

/* ---- the next element ---- */

static evc_status
next_of_array(struct evc_local *it)
{
	const struct evc_local *of = it->dataset;
	size_t i = it->at;

	if (i >= of->n_elements)
		return EVC_OUT_OF_RANGE;
	it->at++;
	it->current = of->elements[it->order != NULL ? it->order[i] : i];
	return 0;
}

/* The end of a call inside x: take its value, or give its failure to x. */
static evc_status
take_current(struct evc_local *it, struct evc_exec *x, struct evc_exec *in,
	     evc_status code)
{
	if (code == 0)
		it->current_owned = evc__exec_take(in, &it->current,
						   it->small);
	else
		evc__exec_inherit(x, in, code);
	evc__exec_end(in);
	return code;
}

static evc_status
next_of_kept(struct evc_local *it, struct evc_exec *x)
{
	const struct evc_local *of = it->dataset;
	struct evc_exec in;

	evc__exec_begin(&in, it->w, x, of->name);
	return take_current(it, x, &in,
			    evc__exec_code(of->ops.next(&in, it->iterator)));
}

/* The next element of this walk, or of the next walk. */
static evc_status
next_raw(struct evc_local *it, struct evc_exec *x)
{
	const struct evc_local *of = it->dataset;
	evc_status code;

	for (;;) {
		/* Not walking: the last begin of a walk has failed. */
		code = it->walking ? 0 : begin_walk(it, x);
		if (code != 0)
			return code;
		code = of->kind == EVC_DEF_DATASET ? next_of_kept(it, x) :
						     next_of_array(it);
		if (code == 0)
			it->in_walk++;
		if (code != EVC_OUT_OF_RANGE)
			return code;
		if (it->in_walk == 0 ||
		    (of->walks != UINT64_MAX && it->walk + 1 >= of->walks))
			return code;
		it->walk++;
		end_walk(it);
	}
}

/* Replace the current element by the map function's result. */
static evc_status
map_current(struct evc_local *it, struct evc_exec *x)
{
	const evc_function *f = it->dataset->map;
	size_t size = it->current.size > 0 ? it->current.size : 1;
	struct evc_exec in;

	if (it->map_room < 1 + size) {
		sync_free(it->map_args);
		it->map_room = 2 * size + 1;
		it->map_args = sync_alloc(1, it->map_room);
		if (it->map_args == NULL) {
			it->map_room = 0;
			return evc_exec_fail(x, EVC_RESOURCE_EXHAUSTED,
					     "no memory for an element of %s",
					     it->dataset->name);
		}
	}
	it->map_args[0] = 0x91; /* an array of one */
	it->map_args[1] = 0xc0; /* nil */
	if (it->current.size > 0)
		memcpy(it->map_args + 1, it->current.data, size);
	drop_current(it);
	evc__exec_begin(&in, it->w, x, f->name);
	in.args = (evc_value){ it->map_args, 1 + size };
	return take_current(it, x, &in, evc__exec_call(&in, f->fn, f->arg));
}

static evc_status
next_element(struct evc_local *it, struct evc_exec *x)
{
	evc_status code = EVC_OUT_OF_RANGE;

	drop_current(it);
	if (!it->over)
		code = next_raw(it, x);
	if (code == EVC_OUT_OF_RANGE) {
		it->over = true;
		return evc_exec_fail(x, code, "%s is at its end", it->name);
	}
	if (code == 0 && it->dataset->map != NULL)
		code = map_current(it, x);
	return code;
}

evc_status
evc_exec_next(evc_exec *x, evc_local *iterator, evc_value *ret_value)
{
	evc_status code;

	if (x == NULL || iterator == NULL || ret_value == NULL ||
	    iterator->kind != EVC_DEF_ITERATOR || iterator->w != x->w)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_next: %s",
				  x == NULL	    ? "no call" :
				  ret_value == NULL ? "no place for the value" :
						      "this is no iterator");
	if (iterator->inside)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_next: called by the dataset of this "
				  "iterator");
	iterator->inside = true;
	code = next_element(iterator, x);
	iterator->inside = false;
	if (code == 0)
		*ret_value = iterator->current;
	return code;
}
