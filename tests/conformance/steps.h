/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that make a variable one more, each in its own way, and return what
 * it is then: so all results of one variable are different, whatever the order
 * in which the functions are run.
 */
#ifndef TESTS_CONFORMANCE_STEPS_H
#define TESTS_CONFORMANCE_STEPS_H

#include "functions.h"

static MAYBE_UNUSED evc_status
refused(evc_exec *x)
{
	return evc_exec_fail(x, EVC_INTERNAL, "%s", evc_last_error());
}

/* A number; one that is not there is 0. */
static MAYBE_UNUSED evc_status
read_number(evc_exec *x, const char *name, int64_t *ret)
{
	evc_value v = { NULL, 0 };
	evc_status st = evc_exec_variable_get(x, name, &v);

	*ret = 0;
	if (st == 0)
		st = evc_unpack(&v, "I", ret);
	evc_value_free(&v);
	return st == -EVC_NOT_FOUND ? 0 : st;
}

static MAYBE_UNUSED evc_status
set_number(evc_exec *x, const char *name, int64_t to)
{
	evc_value v = { NULL, 0 };
	evc_status st = evc_pack(&v, "I", to);

	if (st == 0)
		st = evc_exec_variable_set(x, name, &v);
	evc_value_free(&v);
	return st;
}

/* [name]: x = x + 1, by get and set; -> x */
static MAYBE_UNUSED evc_status
fn_step(evc_exec *x, void *arg)
{
	char name[64];
	int64_t n;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0 ||
	    read_number(x, name, &n) < 0 || set_number(x, name, n + 1) < 0)
		return refused(x);
	return evc_exec_return(x, "I", n + 1);
}

/* [name]: the same, by comparison, which has to succeed at once */
static MAYBE_UNUSED evc_status
fn_compare(evc_exec *x, void *arg)
{
	evc_value was = { NULL, 0 }, is = { NULL, 0 };
	char name[64];
	int64_t n;
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0 ||
	    read_number(x, name, &n) < 0 || evc_pack(&was, "I", n) < 0 ||
	    evc_pack(&is, "I", n + 1) < 0)
		return refused(x);
	st = evc_exec_variable_compare_set(x, name, n > 0 ? &was : NULL, &is);
	evc_value_free(&was);
	evc_value_free(&is);
	return st < 0 ? refused(x) : evc_exec_return(x, "I", n + 1);
}

#define STEP_FUNCTIONS \
	{ .name = "step", .fn = fn_step }, \
	{ .name = "compare", .fn = fn_compare }

#endif
