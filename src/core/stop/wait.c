/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait for the stop: on the futex in the word's low half, or on
 * the stop descriptor.
 *
 * Called by: evc_wait_for_stop, the waits of src/wake, requests, clears and
 * evc_free.
 * Locks: none; atomics: the word, n_waiters, fd with its refgate fd_gate.
 */

/*
 * No lost wake-up: a waiter counts itself, then looks at the word; a requester
 * sets the word, then looks at the count; all four sequentially consistent, so
 * at least one sees the other.  A waiter is released by the flag, or by the
 * number of stops having moved since the waiter came: then a stop has been and
 * gone.
 */
#include <math.h>

#include "base/deadline.h"
#include "base/probe.h"
#include "core/core.h"
#include "core/status/trace.h"

static const volatile void *
low_half(const evc_coord *c)
{
	const char *p = (const char *)&c->word;

	return p + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);
}

void
evc__wake_waiters(evc_coord *c)
{
	if (sync_load_sc(&c->stop.n_waiters) > 0)
		sync_futex_wake(low_half(c));
	evc__settle(c);
}

/* Wait for the stop until a time of c's clock.  The calling thread is counted
   in n_waiters.  true: there is, or was, a stop. */
static bool
wait_until(evc_coord *c, uint64_t until)
{
	uint64_t w = sync_load_sc(&c->word), now;
	uint32_t stops = WORD_STOPS(w);

	for (;;) {
		if ((w & WORD_FLAG) || WORD_STOPS(w) != stops)
			return true;
		now = until == SYNC_FOREVER ? 0 : evc__now(c);
		if (now >= until || evc__refgate_is_shut(&c->life.gate))
			return false;
		sync_futex_wait(low_half(c), (uint32_t)w,
				until == SYNC_FOREVER ?
					until :
					evc__real_ns(c, until - now));
		w = sync_load_sc(&c->word);
	}
}

bool
evc__wait_for_stop(evc_coord *c, double timeout)
{
	uint64_t ns, now;
	bool stopped;

	if (evc_should_stop(c) || !(timeout > 0) || !evc__same_process(c))
		return evc_should_stop(c);
	if (!evc__refgate_enter(&c->life.gate))
		return evc_should_stop(c);
	ns = evc__ns(timeout);
	now = ns == SYNC_FOREVER ? 0 : evc__now(c);
	sync_add(&c->stop.n_waiters, 1);
	stopped = wait_until(c, now + ns >= ns ? now + ns : SYNC_FOREVER);
	if (stopped) {
		evc__trace_awake(c);
		PROBE4(told, &c->name[0], "", EVC_THREAD, 0);
	}
	sync_sub(&c->stop.n_waiters, 1);
	evc__refgate_leave(&c->life.gate);
	return stopped;
}

/*
 * Make the descriptor readable if the flag is set, else not readable.  When c
 * is being freed, the descriptor is always readable, so that threads that sleep
 * on the descriptor inside c's refgate wake up.  Each change of the flag or of
 * the refgate, and the creation of the descriptor, is followed by a call of
 * this function.  A thread may be delayed between its load of the word and its
 * access to the descriptor; so after the access each thread loads the word
 * again.  The last thread leaves the descriptor in the right state.
 */
void
evc__settle(evc_coord *c)
{
	int fd;
	uint64_t seen, now;
	bool shut;

	if (sync_load_sc(&c->stop.fd) < 0 ||
	    !evc__refgate_enter(&c->stop.fd_gate))
		return;
	fd = sync_load(&c->stop.fd);
	now = sync_load_sc(&c->word);
	do {
		seen = now;
		shut = evc__refgate_is_shut(&c->life.gate);
		if ((seen & WORD_FLAG) || shut)
			sync_fd_write(fd);
		else
			sync_fd_drain(fd);
		now = sync_load_sc(&c->word);
	} while ((now & WORD_FLAG) != (seen & WORD_FLAG) ||
		 WORD_STOPS(now) != WORD_STOPS(seen) ||
		 evc__refgate_is_shut(&c->life.gate) != shut);
	evc__refgate_leave(&c->stop.fd_gate);
}

int
evc_stop_fd(evc_coord *c)
{
	evc_status st = evc__check(c, __func__);
	int fd, none = -1;

	if (st < 0)
		return st;
	fd = sync_load(&c->stop.fd);
	if (fd >= 0) {
		/* The thread that made the descriptor may not have called
		   evc__settle yet. */
		if (evc_should_stop(c))
			evc__settle(c);
		return fd;
	}
	fd = sync_eventfd();
	if (fd < 0)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_stop_fd: no descriptor: %s",
				   strerror(errno));
	if (!sync_cas(&c->stop.fd, &none, fd)) {
		sync_fd_close(fd);
		fd = none;
	}
	/* The stop may have come before the descriptor existed. */
	evc__settle(c);
	return fd;
}

void
evc__stop_fd_close(evc_coord *c)
{
	/* Wait until no thread is in evc__settle: a later write would reach a
	   new file with this number. */
	evc__refgate_close(&c->stop.fd_gate);
	if (sync_load(&c->stop.fd) >= 0)
		sync_fd_close(sync_load(&c->stop.fd));
}
