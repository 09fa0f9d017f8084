/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that keep something on their worker, and those that use it.
 */
#ifndef TESTS_CONFORMANCE_KEPT_H
#define TESTS_CONFORMANCE_KEPT_H

#include "functions.h"

/* A range [from, from + n): the dataset of a function. */
struct range {
	int64_t from, n;
	bool endless;
};

struct walk {
	const struct range *range;
	int64_t at;
};

/* Of this process. */
static atomic_int live_ranges, live_walks;

static evc_status
range_iterate(evc_exec *x, void *state, void **ret)
{
	struct walk *w = calloc(1, sizeof(*w));

	(void)x;
	if (w == NULL)
		return EVC_RESOURCE_EXHAUSTED;
	w->range = state;
	atomic_fetch_add(&live_walks, 1);
	*ret = w;
	return 0;
}

static evc_status
range_next(evc_exec *x, void *iterator)
{
	struct walk *w = iterator;

	if (w->at == w->range->n) {
		if (!w->range->endless)
			return EVC_OUT_OF_RANGE;
		w->at = 0;
	}
	return evc_exec_return(x, "I", w->range->from + w->at++);
}

static void
range_free_iterator(void *iterator)
{
	free(iterator);
	atomic_fetch_sub(&live_walks, 1);
}

static void
range_free(void *state)
{
	free(state);
	atomic_fetch_sub(&live_ranges, 1);
}

static const evc_keep_ops range_ops = {
	.iterate = range_iterate,
	.next = range_next,
	.free_iterator = range_free_iterator,
	.free = range_free,
};

/* [from, n, endless] */
static MAYBE_UNUSED evc_status
fn_range(evc_exec *x, void *arg)
{
	struct range *r = calloc(1, sizeof(*r));
	int endless;

	(void)arg;
	if (r == NULL)
		return EVC_RESOURCE_EXHAUSTED;
	evc_exec_variable_add(x, "ranges built", 1, NULL);
	if (evc_exec_unpack(x, "[IIb]", &r->from, &r->n, &endless) < 0 ||
	    evc_exec_keep(x, &range_ops, r) < 0) {
		free(r);
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	}
	r->endless = endless;
	atomic_fetch_add(&live_ranges, 1);
	return 0;
}

/* [element] -> its double */
static MAYBE_UNUSED evc_status
fn_twice(evc_exec *x, void *arg)
{
	int64_t n;

	(void)arg;
	evc_exec_variable_add(x, "twice called", 1, NULL);
	if (evc_exec_unpack(x, "[I]", &n) < 0)
		return EVC_INVALID_ARGUMENT;
	return evc_exec_return(x, "I", 2 * n);
}

/* [iterator] -> the next element, added to a variable, too */
static MAYBE_UNUSED evc_status
fn_next(evc_exec *x, void *arg)
{
	evc_local *it;
	evc_value v;
	int64_t n;
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &it) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	st = evc_exec_next(x, it, &v);
	if (st < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	if (st > 0)
		return st;
	if (evc_unpack(&v, "I", &n) < 0)
		return EVC_INTERNAL;
	evc_exec_variable_add(x, "sum", (double)n, NULL);
	return evc_exec_return(x, "I", n);
}

/* [iterator, iterator] -> the sum of the next element of each */
static MAYBE_UNUSED evc_status
fn_next_of_two(evc_exec *x, void *arg)
{
	evc_local *it[2];
	int64_t n[2];
	evc_value v;
	int i;

	(void)arg;
	if (evc_exec_unpack(x, "[{a:[w] b:{c:w}}]", &it[0], &it[1]) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	for (i = 0; i < 2; i++) {
		if (evc_exec_next(x, it[i], &v) != 0)
			return EVC_OUT_OF_RANGE;
		if (evc_unpack(&v, "I", &n[i]) < 0)
			return EVC_INTERNAL;
	}
	return evc_exec_return(x, "I", n[0] + n[1]);
}

/* [iterator] -> all that is left of it, as a number of 15 hexadecimal digits */
static MAYBE_UNUSED evc_status
fn_drain(evc_exec *x, void *arg)
{
	int64_t n, all = 0, count = 0;
	evc_local *it;
	evc_status st;
	evc_value v;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &it) < 0)
		return EVC_INVALID_ARGUMENT;
	while ((st = evc_exec_next(x, it, &v)) == 0) {
		if (evc_unpack(&v, "I", &n) < 0 || n < 0 || n >= 16)
			return EVC_INTERNAL;
		all = all * 16 + n;
		count++;
	}
	if (st != EVC_OUT_OF_RANGE || count != 15)
		return evc_exec_fail(x, EVC_INTERNAL, "%d elements, then %d",
				     (int)count, st);
	return evc_exec_return(x, "I", all);
}

/* [] a number of its own, 0 */
static MAYBE_UNUSED evc_status
fn_counter(evc_exec *x, void *arg)
{
	static const evc_keep_ops ops = { .free = range_free };
	int64_t *n = calloc(1, sizeof(*n));

	(void)arg;
	if (n == NULL)
		return EVC_RESOURCE_EXHAUSTED;
	if (evc_exec_keep(x, &ops, n) < 0) {
		free(n);
		return EVC_INTERNAL;
	}
	atomic_fetch_add(&live_ranges, 1);
	return 0;
}

/* [counter, by] -> what it is then */
static MAYBE_UNUSED evc_status
fn_bump(evc_exec *x, void *arg)
{
	evc_local *l;
	int64_t *n;
	int by;

	(void)arg;
	if (evc_exec_unpack(x, "[wi]", &l, &by) < 0)
		return EVC_INVALID_ARGUMENT;
	n = evc_local_state(l);
	if (n == NULL)
		return EVC_INTERNAL;
	*n += by;
	return evc_exec_return(x, "I", *n);
}

/* [] -> [ranges and counters, walks] of this process */
static MAYBE_UNUSED evc_status
fn_live(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "[ii]", atomic_load(&live_ranges),
			       atomic_load(&live_walks));
}

#endif
