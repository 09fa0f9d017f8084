/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common part of the waits in this room: an alarm, a futex word that a stop
 * moves; deadlines; the refusals of a wait.  See alarm.h.
 * Called by: the other files of this room; a requester of a stop (tell).
 * Locks: the coordinator's lock to set an alarm; word and n_waiting are atomic.
 */
#include "core/core.h"
#include "wake/alarm.h"

#include <math.h>

void
evc__alarm_ring(struct evc__alarm *a, int n)
{
	/* The count is read first.  A waiter that counts itself later finds
	   the change.  A waiter counted before is woken here, or reads the
	   moved word, or finds the word moved when it is about to sleep. */
	bool wake = sync_load_sc(&a->n_waiting) > 0;

	sync_add(&a->word, ALARM_STEP);
	/* The alarm may be freed by now.  Then the wake can only reach another
	   thread that sleeps on this address, and this thread reads its own
	   word again. */
	if (wake)
		sync_futex_wake_n(&a->word, n);
}

/* Any thread, signal-safe. */
static void
ring_all(struct evc__listener *l)
{
	evc__alarm_ring((struct evc__alarm *)l, INT_MAX);
}

bool
evc__alarm_set(evc_coord *c, struct evc__alarm *a)
{
	a->listener.tell = ring_all;
	return evc__listen(c, &a->listener);
}

bool
evc__alarm_sleep(const evc_coord *c, struct evc__alarm *a, uint32_t seen,
		 uint64_t until)
{
	uint64_t now;

	while (sync_load_sc(&a->word) == seen) {
		now = until == SYNC_FOREVER ? 0 : evc__now(c);
		if (now >= until)
			return false;
		sync_futex_wait(&a->word, seen,
				until == SYNC_FOREVER ?
					until :
					evc__real_ns(c, until - now));
	}
	return true;
}

evc_status
evc__check_wait(const evc_coord *c, double seconds, const char *func)
{
	evc_status st = evc__check(c, func);

	if (st == 0 && isnan(seconds))
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "%s: NaN is not a time", func);
	return st;
}

uint64_t
evc__wait_end(const evc_coord *c, double seconds)
{
	uint64_t ns = evc__ns(seconds);

	return ns == SYNC_FOREVER ? ns : evc__after(evc__now(c), ns);
}

bool
evc__wait_is_over(const evc_coord *c, uint64_t until)
{
	return until != SYNC_FOREVER && evc__now(c) >= until;
}

evc_status
evc__end_by_stop(const char *func)
{
	return evc__refuse(-EVC_CANCELLED, "%s: a stop was requested", func);
}

evc_status
evc__end_by_time(const char *func)
{
	return evc__refuse(-EVC_DEADLINE_EXCEEDED, "%s: the time is over",
			   func);
}

evc_status
evc__end_by_free(const char *func)
{
	return evc__refuse(-EVC_FAILED_PRECONDITION,
			   "%s: the coordinator is being freed", func);
}
