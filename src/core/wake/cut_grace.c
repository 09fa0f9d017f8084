/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A second signal cuts the grace of all joins of its stop.
 *
 * Called by: signal handlers of src/signals; joins, for the end of their grace;
 * clears.
 * Locks: none; grace_cut is atomic, changed by CAS alone.
 */
#include "core/core.h"

/* A single word has the time of the cut, in microseconds, and the low bits of
   the number of its stop: so a handler that was delayed cannot mix its time
   with the stop of another handler. */
#define CUT_BITS       12
#define CUT_STOP(stop) ((uint64_t)(stop) & ((1u << CUT_BITS) - 1))

void
evc__cut_grace(evc_coord *c, uint32_t stop)
{
	uint64_t now = (evc__now(c) + 999) / 1000 << CUT_BITS | CUT_STOP(stop);
	uint64_t old = sync_load(&c->wake.grace_cut), newer;

	do {
		newer = CUT_STOP(CUT_STOP(old) - stop);
		/* The first cut of a stop counts, and the cut of a later
		   stop. */
		if (old != 0 && newer < 1u << (CUT_BITS - 1))
			return;
	} while (!sync_cas(&c->wake.grace_cut, &old, now));
	evc__ring(c);
	/* Tasks are late now, also where no join runs the loop. */
	evc__ring_all(c);
	/* For the line in the log. */
	evc__helper_ring(c);
}

void
evc__cut_grace_forget(evc_coord *c, uint32_t stop)
{
	uint64_t h = sync_load(&c->wake.grace_cut);

	/* Forget the cut of this stop, or of an older stop, stored late. */
	if (h != 0 && CUT_STOP(stop - CUT_STOP(h)) < 1u << (CUT_BITS - 1))
		(void)sync_cas(&c->wake.grace_cut, &h, 0);
}

uint64_t
evc__grace_cut_at(const evc_coord *c, uint32_t stop)
{
	uint64_t h = sync_load_sc(&c->wake.grace_cut);

	if (h == 0 || CUT_STOP(h) != CUT_STOP(stop))
		return 0;
	h = (h >> CUT_BITS) * 1000;
	return h != 0 ? h : 1;
}
