/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A second signal cuts the grace of all joins of its stop.
 */
#include "core/core.h"

/* One word, so that no handler that was held up can mix its time with another's:
   microseconds, and the low bits of the number of the stop they belong to. */
#define HURRY_BITS 12
#define HURRY_STOP(stop) ((uint64_t)(stop) & ((1u << HURRY_BITS) - 1))

void
evc__hurry(evc_coord *c, uint32_t stop)
{
	uint64_t now = (evc__now(c) + 999) / 1000 << HURRY_BITS |
		       HURRY_STOP(stop);
	uint64_t old = sync_load(&c->wake.hurry), newer;

	do {
		newer = HURRY_STOP(HURRY_STOP(old) - stop);
		/* The first one of a stop counts, and a later stop's. */
		if (old != 0 && newer < 1u << (HURRY_BITS - 1))
			return;
	} while (!sync_cas(&c->wake.hurry, &old, now));
	evc__ring(c);
	evc__ring_below(c);
}

void
evc__hurry_forget(evc_coord *c, uint32_t stop)
{
	uint64_t h = sync_load(&c->wake.hurry);

	/* That one's, or an older one's that came late. */
	if (h != 0 && HURRY_STOP(stop - HURRY_STOP(h)) < 1u << (HURRY_BITS - 1))
		(void)sync_cas(&c->wake.hurry, &h, 0);
}

uint64_t
evc__hurried(const evc_coord *c, uint32_t stop)
{
	uint64_t h = sync_load_sc(&c->wake.hurry);

	if (h == 0 || HURRY_STOP(h) != HURRY_STOP(stop))
		return 0;
	h = (h >> HURRY_BITS) * 1000;
	return h != 0 ? h : 1;
}
