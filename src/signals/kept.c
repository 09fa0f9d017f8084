/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals that came before the first join, with EVC_SIGNALS_AT_JOIN: a handler
 * keeps them, and the join requests the stop, so that the join drives the
 * phases.
 * Called by: signals.c, in its handler and at the begin of a join.
 * Locks: none; atomics: kept[], stop.n_driving.
 */
#include "core/core.h"
#include "signals/signals.h"

/* atomic: handlers -> the join; evc__sender of the first signal and of the
   second, 0: none */
static _Atomic uint64_t kept[2];

bool
evc__signal_keep(evc_coord *c, uint64_t sender)
{
	uint64_t none = 0;

	if ((sync_load_sc(&c->word) & WORD_FLAG) ||
	    sync_load_sc(&c->stop.n_driving) > 0)
		return false;
	if (!sync_cas(&kept[0], &none, sender)) {
		none = 0;
		(void)sync_cas(&kept[1], &none, sender);
	}
	/* A join raises n_driving, then looks for signals; so the join or this
	   handler finds the signal. */
	if (sync_load_sc(&c->stop.n_driving) > 0)
		evc__signals_kept_request(c);
	return true;
}

void
evc__signals_kept_request(evc_coord *c)
{
	uint64_t first = sync_xchg(&kept[0], 0);
	uint64_t second = sync_xchg(&kept[1], 0);

	if (first != 0)
		evc__signal_request(c, first, false, 0);
	if (second != 0)
		evc__signal_request(c, second, true, 0);
}

int
evc__signals_kept(void)
{
	return evc__sender_signo(sync_load_sc(&kept[0]));
}

void
evc__signals_kept_forget(void)
{
	sync_store(&kept[0], 0);
	sync_store(&kept[1], 0);
}
