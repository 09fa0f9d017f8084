/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exit(3) while groups of the process's registry run: the thread that exits
 * stops the groups, in the registry's budget.  This may be any thread: a worker
 * in a run, a thread in a function of a group, a thread that starts or stops
 * groups.  The stop waits neither for this thread nor for its unfinished calls.
 * Called by: exit(3); init.c registers; the program (evc_registry_atexit).
 * Locks: none of its own; off, over and registered are atomic.
 */
#include "group/group.h"

/* atomic: evc_registry_atexit -> the thread that exits */
static _Atomic bool off;
/* atomic: between threads that exit: the stop has begun */
static _Atomic bool over;
/* atomic: between makers of groups; after a failure the next group tries
   again */
static _Atomic bool registered;

static void
at_exit(void)
{
	evc_registry *reg = NULL;
	struct evc__held h;

	/* In a fork child the groups belong to the parent. */
	if (sync_load(&off) || sync_xchg(&over, true) ||
	    evc__registry_check(&reg, "exit") < 0)
		return;
	evc__inside_forget();
	if (evc__groups_hold(reg, NULL, &h, "exit") < 0)
		return;
	(void)evc__groups_stop(&h, "exit",
			       evc__deadline_in(evc__registry_grace(reg)), true,
			       "exit");
	evc__groups_release(&h);
}

void
evc__atexit_register(void)
{
	if (!sync_xchg(&registered, true) && atexit(at_exit) != 0)
		sync_store(&registered, false);
}

evc_status
evc_registry_atexit(bool on)
{
	sync_store(&off, !on);
	return 0;
}
