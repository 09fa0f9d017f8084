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

/* A handler or the helper has taken the slot; no evc__sender. */
#define TAKEN UINT64_C(1)

/* atomic: handlers -> the helper */
static struct {
	_Atomic uint64_t sender; /* evc__sender of a refused signal, 0: free */
	_Atomic uint32_t number; /* the first refused signal is 1; read and
				    written while the slot is taken */
} refused[N_REFUSED];
/* atomic: handlers -> the helper: all refused signals; refused signals that
   found no free slot */
static _Atomic uint32_t n_refused, n_lost;

void
evc__signal_refused(evc_coord *c, uint64_t sender)
{
	uint32_t first = sync_add(&n_refused, 1), i, at = 0;
	uint64_t none;

	for (i = 0; i < N_REFUSED; i++) {
		at = (first + i) % N_REFUSED;
		none = 0;
		if (sync_cas(&refused[at].sender, &none, TAKEN))
			break;
	}
	if (i < N_REFUSED) {
		sync_store(&refused[at].number, first + 1);
		sync_store_sc(&refused[at].sender, sender);
	} else
		sync_add(&n_lost, 1);
	evc__helper_ring(c);
}

/* Take the oldest signal out of its slot; 0: all slots are free. */
static uint64_t
take_oldest(uint32_t *ret_number)
{
	uint64_t sender, oldest = 0;
	uint32_t number, i, at = 0;

	*ret_number = 0;
	for (i = 0; i < N_REFUSED; i++) {
		sender = sync_load_sc(&refused[i].sender);
		number = sync_load(&refused[i].number);
		if (sender > TAKEN && (oldest == 0 || number < *ret_number)) {
			oldest = sender;
			*ret_number = number;
			at = i;
		}
	}
	if (oldest == 0 || !sync_cas(&refused[at].sender, &oldest, TAKEN))
		return 0;
	*ret_number = sync_load(&refused[at].number);
	sync_store_sc(&refused[at].sender, 0);
	return oldest;
}

void
evc__signals_refused_log(evc_coord *c)
{
	char buf[96];
	uint32_t number, lost, i;
	uint64_t sender;

	/* The handler has rung for those that come meanwhile. */
	for (i = 0; i < N_REFUSED; i++) {
		struct text t = evc__text_in(buf, sizeof buf);

		sender = take_oldest(&number);
		if (sender == 0)
			break;
		evc__text_sender(&t, sender);
		evc_log(c, EVC_LOG_WARNING, NULL,
			"%s was refused; refused so far: %u", buf, number);
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
		sync_store(&refused[i].sender, 0);
	sync_store(&n_refused, 0);
	sync_store(&n_lost, 0);
}
