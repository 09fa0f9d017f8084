/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public calls of hosted reactors: reactors on a loop that is not libev's.
 *
 * Called by: programs, on the thread of their loop; pool and queue ask for the
 * inner loop.
 * Locks: the coordinator's, for its home.
 */
#include <evcoord/unstable/inner_loop.h>

#include "core/core.h"
#include "core/loop/host.h"

/* Loop thread: a coordinator without a home gets r as home.  The helper may
   have done the work of a home up to now; this work is left to the helper until
   its end, and begins on r afterwards. */
static void
settle_home(evc_coord *c, evc_reactor *r)
{
	sync_lock(&c->lock);
	if (evc__home(c) == NULL && !c->loop.no_home)
		sync_store(&c->loop.home, r);
	sync_unlock(&c->lock);
	evc__reactor_poke(r);
}

static evc_status
attach_host(evc_coord *c, const char *name, int *ret_fd, evc_reactor **ret)
{
	struct evc__host *h = evc__host_new();
	evc_status st;

	if (h == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_reactor_foreign: no memory, or no "
				   "descriptors");
	st = evc__reactor_attach(c, name, h->loop, h, ret);
	if (st < 0) {
		evc__host_end(h);
		return st;
	}
	evc__host_add(h, *ret);
	*ret_fd = h->fd;
	settle_home(c, *ret);
	return 0;
}

evc_status
evc_reactor_foreign(evc_coord *c, const char *name, int *ret_fd,
		    evc_reactor **ret_reactor)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0 && (ret_fd == NULL || ret_reactor == NULL))
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_reactor_foreign: no place for the "
				 "descriptor, or for the reactor");
	if (st == 0)
		st = attach_host(c, name != NULL ? name : "loop", ret_fd,
				 ret_reactor);
	return evc__refuse_setup(c, __func__, st);
}

/* ---- turns ---- */

static evc_status
refuse(const char *func, evc_status st, const char *why)
{
	return evc__refuse(st, "%s: %s", func, why);
}

static evc_status
refuse_in_child(const char *func)
{
	return refuse(func, -EVC_FAILED_PRECONDITION,
		      "this is a fork child, the loop is its parent's");
}

/* r may be gone. */
static evc_status
find_host(const char *func, const evc_reactor *r, struct evc__host **ret)
{
	if (r == NULL)
		return refuse(func, -EVC_INVALID_ARGUMENT, "no reactor");
	*ret = evc__host_of(r);
	if (*ret == NULL)
		return refuse(func, -EVC_FAILED_PRECONDITION,
			      "no hosted reactor of this thread: another "
			      "thread's, one of libev, or gone");
	return 0;
}

evc_status
evc_reactor_turn(evc_reactor *r)
{
	struct evc__host *h = NULL;
	unsigned generation;
	evc_status st = find_host(__func__, r, &h);

	if (st < 0)
		return st;
	/* h may be gone after the run, but not in a child. */
	generation = h->fork_generation;
	if (!evc__forked_since(generation) && evc__host_run(h))
		evc__loop_waker_measure(h->waker);
	if (!evc__forked_since(generation))
		return 0;
	if (!h->ended)
		(void)evc__loop_waker_inherited(h->waker);
	return refuse_in_child(__func__);
}

/* ---- runs of the host ---- */

evc_status
evc_reactor_host_runs(evc_reactor *r, bool runs)
{
	struct evc__host *h = NULL;
	evc_status st = find_host(__func__, r, &h);

	if (st == 0 && evc__forked_since(h->fork_generation))
		st = refuse_in_child(__func__);
	if (st == 0)
		evc__reactor_host_runs(r, runs);
	return st;
}

struct ev_loop *
evc_reactor_inner_loop(const evc_reactor *r)
{
	return r != NULL ? r->loop : NULL;
}
