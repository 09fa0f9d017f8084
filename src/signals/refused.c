/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals that the program's `allow` has refused: handlers keep them, and the
 * helper thread writes a line about each.
 * Called by: signals.c, from its handler and from its job.
 * Locks: none; the slots and the counts are atomic.
 */
#include "core/core.h"
#include "signals/signals.h"

#define N_REFUSED 16

/* atomic: handlers -> the helper; evc__sender of a refused signal, 0: free */
static _Atomic uint64_t refused[N_REFUSED];
/* atomic: handlers -> the helper: all refused signals; refused signals that
   found no free slot */
static _Atomic uint32_t n_refused, n_lost;

void
evc__signal_refused(evc_coord *c, uint64_t sender)
{
	uint32_t first = sync_add(&n_refused, 1), i;
	uint64_t none;

	for (i = 0; i < N_REFUSED; i++) {
		none = 0;
		if (sync_cas(&refused[(first + i) % N_REFUSED], &none, sender))
			break;
	}
	if (i == N_REFUSED)
		sync_add(&n_lost, 1);
	evc__helper_ring(c);
}

void
evc__signals_refused_log(evc_coord *c)
{
	char buf[96];
	uint32_t all = sync_load(&n_refused), i, lost;
	uint64_t sender;

	/* The slot that would be filled next is the oldest. */
	for (i = 0; i < N_REFUSED; i++) {
		struct text t = evc__text_in(buf, sizeof buf);

		sender = sync_xchg(&refused[(all + i) % N_REFUSED], 0);
		if (sender == 0)
			continue;
		evc__text_sender(&t, sender);
		evc_log(c, EVC_LOG_WARNING, NULL,
			"%s was refused; refused so far: %u", buf,
			sync_load(&n_refused));
	}
	lost = sync_xchg(&n_lost, 0);
	if (lost > 0)
		evc_log(c, EVC_LOG_WARNING, NULL,
			"%u more signals were refused; refused so far: %u",
			lost, sync_load(&n_refused));
}

void
evc__signals_refused_forget(void)
{
	unsigned i;

	for (i = 0; i < N_REFUSED; i++)
		sync_store(&refused[i], 0);
	sync_store(&n_refused, 0);
	sync_store(&n_lost, 0);
}
