/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that the workers of all programs of this folder have.  What they
 * tell the test, they tell by results and by the cluster's variables: a worker
 * may be a process.
 */
#ifndef TESTS_CONFORMANCE_FUNCTIONS_H
#define TESTS_CONFORMANCE_FUNCTIONS_H

#include "../support/exec_functions.h"
#include "calls.h"

/* [a, b] -> their sum */
static MAYBE_UNUSED evc_status
fn_add(evc_exec *x, void *arg)
{
	int64_t a, b;

	(void)arg;
	if (evc_exec_unpack(x, "[II]", &a, &b) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	return evc_exec_return(x, "I", a + b);
}

/* [value] -> the same */
static MAYBE_UNUSED evc_status
fn_echo(evc_exec *x, void *arg)
{
	evc_value v;

	(void)arg;
	if (evc_exec_unpack(x, "[v]", &v) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	return evc_exec_return(x, "v", &v);
}

/* [code, text]: fails so */
static MAYBE_UNUSED evc_status
fn_fail(evc_exec *x, void *arg)
{
	char text[100];
	int code;

	(void)arg;
	if (evc_exec_unpack(x, "[is]", &code, text, sizeof(text)) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	return evc_exec_fail(x, code, "%s", text);
}

/* [name, by]: adds to a variable; -> what it is then */
static MAYBE_UNUSED evc_status
fn_count(evc_exec *x, void *arg)
{
	char name[64];
	double by, now = 0;

	(void)arg;
	if (evc_exec_unpack(x, "[sd]", name, sizeof(name), &by) < 0 ||
	    evc_exec_variable_add(x, name, by, &now) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	return evc_exec_return(x, "I", (int64_t)now);
}

/* [seconds]: a sleep that ends at a stop, as CANCELLED */
static MAYBE_UNUSED evc_status
fn_nap(evc_exec *x, void *arg)
{
	double seconds;

	(void)arg;
	if (evc_exec_unpack(x, "[d]", &seconds) < 0)
		return EVC_INVALID_ARGUMENT;
	return evc_exec_wait_for_stop(x, seconds) ? EVC_CANCELLED : 0;
}

/* NAME.in + 1, then until NAME.open is more than 0; true: a stop was first. */
static MAYBE_UNUSED evc_status
pass_gate(evc_exec *x, const char *name, bool heeds, bool *ret_stopped)
{
	char in[80], open[80];
	double now = 0;

	snprintf(in, sizeof(in), "%s.in", name);
	snprintf(open, sizeof(open), "%s.open", name);
	*ret_stopped = false;
	if (evc_exec_variable_add(x, in, 1, NULL) < 0)
		return EVC_INTERNAL;
	for (;;) {
		/* + 0 is a look that never says NOT_FOUND. */
		if (evc_exec_variable_add(x, open, 0, &now) < 0)
			return EVC_INTERNAL;
		if (now > 0)
			return 0;
		if (heeds && evc_exec_should_stop(x)) {
			*ret_stopped = true;
			return 0;
		}
		if (heeds)
			evc_exec_wait_for_stop(x, 0.002);
		else
			t_sleep(0.002);
	}
}

/* [name]: until it is let go, then 1; a stop ends it as CANCELLED */
static MAYBE_UNUSED evc_status
fn_hold(evc_exec *x, void *arg)
{
	char name[64];
	bool stopped;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0)
		return EVC_INVALID_ARGUMENT;
	if (pass_gate(x, name, true, &stopped) != 0)
		return EVC_INTERNAL;
	return stopped ? EVC_CANCELLED : evc_exec_return(x, "i", 1);
}

/* [name, code]: until it is let go, whatever stop there is; then the code */
static MAYBE_UNUSED evc_status
fn_insist(evc_exec *x, void *arg)
{
	char name[64];
	bool stopped;
	int code;

	(void)arg;
	if (evc_exec_unpack(x, "[si]", name, sizeof(name), &code) < 0)
		return EVC_INVALID_ARGUMENT;
	if (pass_gate(x, name, false, &stopped) != 0)
		return EVC_INTERNAL;
	return code != 0 ? evc_exec_fail(x, code, "insisted on %d", code) :
			   evc_exec_return(x, "i", 2);
}

/* For evc_keep_ops.free. */
static MAYBE_UNUSED void
hang_for_ever(void *state)
{
	(void)state;
	for (;;)
		t_sleep(1);
}

/* [] -> [worker's name, its index, attempt] */
static MAYBE_UNUSED evc_status
fn_who(evc_exec *x, void *arg)
{
	evc_exec_info i;

	(void)arg;
	if (evc_exec_get(x, &i) < 0)
		return EVC_INTERNAL;
	return evc_exec_return(x, "[suu]", i.worker, i.worker_index,
			       i.attempt);
}

#define COMMON_FUNCTIONS \
	{ .name = "add", .fn = fn_add }, { .name = "echo", .fn = fn_echo }, \
	{ .name = "fail", .fn = fn_fail }, \
	{ .name = "count", .fn = fn_count }, \
	{ .name = "nap", .fn = fn_nap }, { .name = "hold", .fn = fn_hold }, \
	{ .name = "insist", .fn = fn_insist }, \
	{ .name = "who", .fn = fn_who }

#endif
