/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reactor behind a handle, for a thread that is not the loop's: inside the
 * gate of the inbox it stays, because who takes it down closes that gate
 * first and waits until nobody is inside.
 */
#include "core/core.h"
#include "core/loop/post.h"

evc_reactor *
evc_loop_enter(evc_loop_ref *loop)
{
	if (loop == NULL) {
		evc__refuse_plain(-EVC_INVALID_ARGUMENT, __func__, "no loop");
		return NULL;
	}
	if (!evc__refgate_enter(&loop->gate)) {
		evc__refuse_plain(-EVC_NOT_FOUND, __func__,
				  "the loop is gone");
		return NULL;
	}
	if (evc__same_process(loop->r->c))
		return loop->r;
	evc__refgate_leave(&loop->gate);
	evc__refuse_plain(-EVC_FAILED_PRECONDITION, __func__,
			  "this is a fork child, the loop is its parent's");
	return NULL;
}

void
evc_loop_leave(evc_loop_ref *loop)
{
	if (loop != NULL)
		evc__refgate_leave(&loop->gate);
}
