/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_new: makes a coordinator, and for its log hook the threads that hand out
 * the lines and watch over the stop.
 * Called by: the program; rooms that have a coordinator of their own.
 * Locks: the new coordinator's, for the helper.
 */
#include "core/core.h"
#include "core/join/watch.h"
#include "core/life/scope.h"
#include "wake/ending.h"

static evc_status
make_logger(evc_coord *c)
{
	bool made;
	int error;

	if (c->log.fn == NULL)
		return 0;
	sync_lock(&c->lock);
	errno = ENOMEM;
	made = evc__ending_need(c, false);
	error = errno;
	sync_unlock(&c->lock);
	if (made)
		return 0;
	return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
			   "evc_new: no memory or no thread for the log hook: "
			   "%s", strerror(error));
}

evc_status
evc_new(struct ev_loop *home, const evc_config *cfg, evc_coord **ret_c)
{
	static const evc_config none;
	evc_status st;
	evc_reactor *r = NULL;
	evc_coord *c;

	if (ret_c == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_new: no place for the coordinator");
	st = evc__coord_make(cfg != NULL ? cfg : &none, __func__, NULL, &c);
	if (st < 0)
		return st;
	st = make_logger(c);
	if (st == 0 && home != NULL)
		st = evc__reactor_attach(c, "home", home, NULL, &r);
	sync_store(&c->loop.home, r);
	if (st == 0)
		*ret_c = c;
	else
		evc__coord_take_down(c);
	return st;
}
