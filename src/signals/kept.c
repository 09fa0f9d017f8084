/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals that came before the first join, with EVC_SIGNALS_AT_JOIN: a handler
 * keeps them, and the join requests the stop, so that the join drives the
 * phases.  The helper thread writes a line about each.
 * Called by: signals.c, in its handler, in its job and at the begin of a join.
 * Locks: telling, then the coordinator's, for the lines.  Atomics: kept[],
 * untold[], stop.n_driving.
 */
#include "core/core.h"
#include "core/join/join.h"
#include "signals/signals.h"

/* atomic: handlers -> the join; evc__sender of the first signal and of the
   second, 0: none */
static _Atomic uint64_t kept[2];
/* atomic: handlers -> the helper: when the first was kept */
static _Atomic uint64_t kept_ns;
/* atomic: handlers -> the helper, or the join: the same, until it has a line */
static _Atomic uint64_t untold[2];
/* The lines come in order, and before the request of the join. */
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;

bool
evc__signal_keep(evc_coord *c, uint64_t sender)
{
	uint64_t none = 0, second = 0;
	int i;

	if ((sync_load_sc(&c->word) & WORD_FLAG) ||
	    sync_load_sc(&c->stop.n_driving) > 0)
		return false;
	if (sync_load_sc(&kept[0]) == 0)
		sync_store_sc(&kept_ns, evc__now(c));
	i = sync_cas(&kept[0], &none, sender)	? 0 :
	    sync_cas(&kept[1], &second, sender) ? 1 :
						  -1;
	/* A join raises n_driving, then looks for signals; so the join or this
	   handler finds the signal. */
	if (sync_load_sc(&c->stop.n_driving) > 0)
		evc__signals_kept_request(c);
	else if (i >= 0) {
		sync_store_sc(&untold[i], sender);
		evc__helper_ring(c);
		/* A set-up that runs a loop can look. */
		evc__ring_all(c);
	}
	return true;
}

void
evc__signals_kept_log(evc_coord *c)
{
	uint64_t sender;
	char buf[96];
	int i;

	sync_lock(&telling);
	for (i = 0; i < 2; i++) {
		struct text t = evc__text_in(buf, sizeof buf);

		sender = sync_xchg(&untold[i], 0);
		if (sender == 0)
			continue;
		evc__text_sender(&t, sender);
		sync_lock(&c->lock);
		evc__log_held(c, EVC_LOG_INFO,
			      "%s is kept until a join begins, %.1f s at most",
			      buf, (double)evc__kept_time(c) / 1e9);
		sync_unlock(&c->lock);
	}
	sync_unlock(&telling);
}

void
evc__signals_kept_inherited(void)
{
	sync_lock_init(&telling);
}

void
evc__signals_kept_request(evc_coord *c)
{
	uint64_t first = sync_xchg(&kept[0], 0);
	uint64_t second = sync_xchg(&kept[1], 0);

	if (first != 0)
		evc__signal_request(c, first, false, 0);
	if (second != 0) {
		evc__signal_request(c, second, true, 0);
		/* For the line in the log. */
		evc__helper_ring(c);
	}
}

uint64_t
evc__signals_kept_due(evc_coord *c)
{
	uint64_t end, now;

	if (sync_load_sc(&kept[0]) == 0)
		return SYNC_FOREVER;
	now = evc__now(c);
	end = evc__after(sync_load_sc(&kept_ns), evc__kept_time(c));
	if (now < end)
		return evc__real_ns(c, end - now);
	evc__signals_kept_request(c);
	return SYNC_FOREVER;
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
	sync_store(&untold[0], 0);
	sync_store(&untold[1], 0);
}
