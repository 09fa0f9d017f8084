/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exit(3) with groups of the process's registry running: they are stopped, in
 * the registry's budget, by the thread that exits.
 *
 * That may be any thread, anywhere: a worker in a run, a function of a group's,
 * one that starts or stops groups.  It is left out of the wait, and nothing that
 * it is in the middle of is waited for.
 */
#include "group/group.h"

/* atomic: evc_registry_atexit -> the thread that exits */
static _Atomic bool off;
/* atomic: it has run, or begun to */
static _Atomic bool over;
/* atomic: who registers it; a failed one tries again with the next group */
static _Atomic bool registered;

static void
at_exit(void)
{
	evc_registry *reg = NULL;
	struct evc__held h;

	/* In a fork child the groups are its parent's. */
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
