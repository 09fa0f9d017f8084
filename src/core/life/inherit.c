/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fork children: what the thread that forked was to its parent's coordinators.
 *
 * A child has one thread, and inherits with it what stands in thread-local data
 * and on the stack: that it is a member, that it is in a callback of a loop, or
 * the helper.  None of that is so in the child.  So it is forgotten at the fork,
 * before any signal; and the callbacks that it is in find, when they return,
 * that their reactors are gone, as after evc_free in one of them, and locks that
 * nobody has.  Nothing else of the parent's is looked at: other threads may have
 * stood in the middle of it.
 */
#include "core/core.h"
#include "core/helper/job.h"
#include "core/helper/threads.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
inherited(void)
{
	evc__busy_inherited();
	evc__helper_jobs_inherited();
	evc__helper_inherited();
	evc__self_inherited();
}

static void
watch(void)
{
	evc__fork_also(inherited);
}

void
evc__inherit_watch(void)
{
	pthread_once(&once, watch);
}
