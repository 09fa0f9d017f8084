/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_sleep: a sleep of a given length, which a stop ends early.
 * Called by: the program, on any thread.
 * Locks: none; inside the refgate, the calling thread keeps the coordinator
 * during the sleep.
 */
#include "core/core.h"
#include "wake/alarm.h"

evc_status
evc_sleep(evc_coord *c, double seconds)
{
	evc_status st = evc__check_wait(c, seconds, __func__);

	if (st == 0)
		st = evc__enter(c, -EVC_FAILED_PRECONDITION, __func__);
	if (st < 0)
		return st;
	/* This function enters the refgate, too, because it reads c after
	   evc__wait_for_stop has left the refgate. */
	if (evc__wait_for_stop(c, seconds))
		st = evc__end_by_stop(__func__);
	else if (evc__refgate_is_shut(&c->life.gate))
		st = evc__end_by_free(__func__);
	evc__refgate_leave(&c->life.gate);
	return st;
}
