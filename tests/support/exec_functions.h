/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of workers that several tables have.
 */
#ifndef TESTS_SUPPORT_EXEC_FUNCTIONS_H
#define TESTS_SUPPORT_EXEC_FUNCTIONS_H

#include "api_util.h"

#include <evcoord/cluster.h>

/* [] -> its process */
static MAYBE_UNUSED evc_status
fn_pid(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "i", (int)getpid());
}

/* [size, byte]: so many bytes */
static MAYBE_UNUSED evc_status
fn_big(evc_exec *x, void *arg)
{
	evc_status st;
	int size, byte;
	void *p;

	(void)arg;
	if (evc_exec_unpack(x, "[ii]", &size, &byte) < 0)
		return EVC_INVALID_ARGUMENT;
	p = malloc((size_t)size);
	if (p == NULL)
		return EVC_RESOURCE_EXHAUSTED;
	memset(p, byte, (size_t)size);
	st = evc_exec_return(x, "B", p, (size_t)size);
	free(p);
	return st;
}

/* []: until it is asked to stop */
static MAYBE_UNUSED evc_status
fn_waits(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_wait_for_stop(x, INFINITY) ? EVC_CANCELLED : 0;
}

/* []: hangs, whatever it is asked */
static MAYBE_UNUSED evc_status
fn_hang(evc_exec *x, void *arg)
{
	(void)arg;
	while (evc_exec_coord(x) != NULL)
		t_sleep(1);
	return 0;
}

#endif
