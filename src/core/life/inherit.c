/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fork children: the child forgets the state of the forking thread.  In the
 * parent this thread may be a member, in a callback of a loop, or the helper;
 * in the child it is none of these.  The child forgets all this at the fork,
 * before any signal.  Callbacks on the stack find, when they return, that their
 * reactors are gone, as after evc_free inside a callback, and that locks are
 * free.  The child reads no other state of the parent, because other threads
 * may have been changing this state.
 *
 * Called by: the child's handler of base/fork.c.
 * Locks: none; locks that this thread's stack needs are made anew.
 */
#include "core/core.h"
#include "core/helper/job.h"
#include "core/helper/threads.h"
#include "core/loop/reaped.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
forget_parent(void)
{
	evc__busy_inherited();
	evc__helper_jobs_inherited();
	evc__helper_inherited();
	evc__log_inherited();
	evc__self_inherited();
	evc__reaped_inherited();
}

static void
watch_forks(void)
{
	evc__fork_also(forget_parent);
}

void
evc__inherit_watch(void)
{
	pthread_once(&once, watch_forks);
}
