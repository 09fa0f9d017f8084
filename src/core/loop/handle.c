/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reactor behind a handle, for threads other than the loop's.  Inside the
 * refgate of the inbox the reactor stays, because the thread that takes the
 * reactor down closes that refgate first and waits until no thread is inside.
 *
 * Called by: pool and queue, with an evc_loop_ref.
 * Locks: none; the refgate of the inbox is entered.
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
