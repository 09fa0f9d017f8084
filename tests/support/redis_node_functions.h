/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that the tests of nodes have run; each is called with a number.
 */
#ifndef TESTS_SUPPORT_REDIS_NODE_FUNCTIONS_H
#define TESTS_SUPPORT_REDIS_NODE_FUNCTIONS_H

#include "exec_functions.h"

#include <evcoord/worker.h>

static inline int
nf_number(evc_exec *x)
{
	int a = 0;

	return evc_exec_unpack(x, "[i]", &a) < 0 ? -1 : a;
}

static evc_status
nf_twice(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "i", 2 * nf_number(x));
}

/* With that code. */
static evc_status
nf_fails(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_fail(x, nf_number(x), "as it was told to");
}

/* So many milliseconds, and nothing ends it. */
static evc_status
nf_naps(evc_exec *x, void *arg)
{
	(void)arg;
	t_sleep(nf_number(x) / 1000.0);
	return evc_exec_return(x, "I", (int64_t)getpid());
}

/* The same; the variable "begunPID" says that it has begun. */
static evc_status
nf_begins(evc_exec *x, void *arg)
{
	char name[32];

	snprintf(name, sizeof(name), "begun%d", (int)getpid());
	if (evc_exec_variable_add(x, name, 1, NULL) < 0)
		return evc_exec_fail(x, EVC_UNKNOWN, "%s", evc_last_error());
	return nf_naps(x, arg);
}

/* So many bytes. */
static evc_status
nf_big(evc_exec *x, void *arg)
{
	size_t n = (size_t)nf_number(x);
	char *p = calloc(1, n);
	evc_status st;

	(void)arg;
	if (p == NULL)
		return EVC_RESOURCE_EXHAUSTED;
	st = evc_exec_return(x, "B", p, n);
	free(p);
	return st;
}

/* Of bytes: how many? */
static evc_status
nf_size(evc_exec *x, void *arg)
{
	const void *p;
	size_t n;

	(void)arg;
	if (evc_exec_unpack(x, "[B]", &p, &n) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	return evc_exec_return(x, "I", (int64_t)n);
}

/* The variable "sum" is so much more, and what it is then. */
static evc_status
nf_count(evc_exec *x, void *arg)
{
	double now = 0;

	(void)arg;
	if (evc_exec_variable_add(x, "sum", nf_number(x), &now) < 0)
		return evc_exec_fail(x, EVC_UNKNOWN, "%s", evc_last_error());
	return evc_exec_return(x, "I", (int64_t)now);
}

/* The same as an update; its argument. */
static evc_status
nf_adds(evc_exec *x, void *arg)
{
	(void)arg;
	if (evc_exec_variable_add(x, "sum", nf_number(x), NULL) < 0)
		return evc_exec_fail(x, EVC_UNKNOWN, "%s", evc_last_error());
	return evc_exec_return(x, "i", nf_number(x));
}

static evc_status
nf_sets(evc_exec *x, void *arg)
{
	evc_value v = { 0 };
	evc_status st = evc_pack(&v, "i", nf_number(x));

	(void)arg;
	if (st == 0)
		st = evc_exec_variable_set(x, "other", &v);
	evc_value_free(&v);
	return st;
}

/* All that can be done to one, and what is wrong: 0, nothing; else a line. */
static evc_status
nf_variables(evc_exec *x, void *arg)
{
	evc_value a = { 0 }, b = { 0 }, is = { 0 };
	int wrong = 0, line = 0, seen = 0;
	double now;

	(void)arg;
#define NF_IS(call, want) \
	do { \
		if ((call) != (want) && wrong == 0) { \
			wrong = __LINE__; \
			line++; \
		} \
	} while (0)
	NF_IS(evc_pack(&a, "s", "text"), 0);
	NF_IS(evc_pack(&b, "i", 17), 0);
	NF_IS(evc_exec_variable_get(x, "none", &is), -EVC_NOT_FOUND);
	NF_IS(evc_exec_variable_set(x, "t", &a), 0);
	NF_IS(evc_exec_variable_add(x, "t", 1, &now), -EVC_INVALID_ARGUMENT);
	NF_IS(evc_exec_variable_compare_set(x, "t", &b, &b), -EVC_ABORTED);
	NF_IS(evc_exec_variable_compare_set(x, "t", &a, &b), 0);
	NF_IS(evc_exec_variable_compare_set(x, "t", NULL, &b), -EVC_ABORTED);
	NF_IS(evc_exec_variable_get(x, "t", &is), 0);
	NF_IS(evc_unpack(&is, "i", &seen), 0);
	NF_IS(seen, 17);
	evc_value_free(&is);
	NF_IS(evc_exec_variable_compare_set(x, "u", NULL, &b), 0);
	evc_value_free(&a);
	evc_value_free(&b);
#undef NF_IS
	return evc_exec_return(x, "i", wrong);
}

static const evc_function node_functions[] = {
	{ .name = "twice", .fn = nf_twice },
	{ .name = "fails", .fn = nf_fails },
	{ .name = "naps", .fn = nf_naps },
	{ .name = "begins", .fn = nf_begins },
	{ .name = "waits", .fn = fn_waits },
	{ .name = "big", .fn = nf_big },
	{ .name = "size", .fn = nf_size },
	{ .name = "count", .fn = nf_count },
	{ .name = "adds", .fn = nf_adds },
	{ .name = "sets", .fn = nf_sets },
	{ .name = "variables", .fn = nf_variables },
};
#define N_NODE_FUNCTIONS \
	((unsigned)(sizeof(node_functions) / sizeof(node_functions[0])))

#endif
