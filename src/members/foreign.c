/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another library's loop, server or pool as a member: a thread of the
 * coordinator waits for the stop, calls the library's stop function, then its
 * wait function.
 * Called by: the program.
 * Locks: none; evc__thread_start takes the coordinator's lock.
 */
#include <math.h>

#include "core/core.h"
#include "members/thread.h"

struct foreign {
	void (*stop)(void *arg);
	evc_status (*wait)(void *arg);
	void *arg;
};

static evc_status
foreign_main(evc_coord *c, void *arg)
{
	struct foreign f = *(struct foreign *)arg;

	/* Freed first, because the functions below may call pthread_exit. */
	sync_free(arg);
	evc_wait_for_stop(c, INFINITY);
	f.stop(f.arg);
	/* A fork child, made in stop, has nothing to wait for. */
	return evc__same_process(c) ? f.wait(f.arg) : 0;
}

static evc_status
foreign_add(evc_coord *c, const char *name, const struct foreign *what,
	    const evc_member_opts *opts, evc_id *ret_id)
{
	static const char func[] = "evc_foreign_add";
	evc_member_opts o = { 0 };
	struct foreign *f;
	evc_status st;

	if (what->stop == NULL || what->wait == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: no stop, or no wait", func);
	/* As for a runner: no kicks, for the thread runs another library. */
	st = evc__check_opts(opts, EVC_RUNNER, func);
	if (st < 0)
		return st;
	f = sync_alloc(1, sizeof *f);
	if (f == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   func);
	*f = *what;
	if (opts != NULL)
		o = *opts;
	o.flags |= EVC_BACKGROUND;
	if (name == NULL || name[0] == '\0')
		name = "foreign";
	st = evc__thread_start(c, name, foreign_main, f, what->arg, &o, ret_id,
			       func);
	if (st < 0)
		sync_free(f);
	return st;
}

evc_status
evc_foreign_add(evc_coord *c, const char *name, void (*stop)(void *arg),
		evc_status (*wait)(void *arg), void *arg,
		const evc_member_opts *opts, evc_id *ret_id)
{
	struct foreign f = { stop, wait, arg };
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = foreign_add(c, name, &f, opts, ret_id);
	return evc__refuse_member(c, __func__, opts, st);
}
