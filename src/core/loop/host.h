/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosted loops: how a loop that is not libev's (the host) is told that there is
 * work, and when.
 *
 * A hosted loop has a libev loop of its own, the inner loop, which the host
 * never sees: evc_reactor_turn runs one iteration of it.  So hooks, joins and
 * loopers do the same on a hosted loop as on one of the program's.  The inner
 * loop watches no descriptor and has no timer.  What it is woken by is all in
 * one epoll descriptor, which the host watches: an eventfd for rings, and a
 * timerfd for the timer that is due first.
 */
#ifndef EVC_CORE_HOST_H
#define EVC_CORE_HOST_H

#include <ev.h>
#include <evcoord.h>

#include "base/sync.h"
#include "base/table.h"

struct evc__loop_waker;
struct evc__timer;

struct evc__host {
	struct table_node node;  /* first; the key is the reactor's address */
	/* set at creation */
	struct ev_loop *loop;    /* the inner loop */
	int fd, wake, clock;     /* epoll, eventfd, timerfd */
	unsigned fork_generation;
	struct evc__loop_waker *waker;
	/* atomic: ringing threads -> the loop's thread: there was a ring, and
	   no turn has begun since */
	_Atomic bool rung;
	/* atomic, relaxed: ringing threads -> reports: time of that ring, by
	   the coarse clock */
	_Atomic uint64_t rung_ns;
	/* atomic, relaxed: the loop's thread -> reports */
	_Atomic uint64_t armed;  /* the timerfd is set for this time; or
				    SYNC_FOREVER */
	_Atomic uint32_t turns;  /* turns in progress: turns may nest */
	/* loop thread only */
	struct evc__timer *first; /* the root of a heap of all timers */
	bool ended;              /* the reactor is gone; the outermost turn
				    frees the host */
};

/* Loop thread: make a host; NULL: no descriptor, no memory. */
struct evc__host *evc__host_new(void);
/* Loop thread: evc__host_of finds h by r from now on. */
void evc__host_add(struct evc__host *h, const evc_reactor *r);
/* The host of the calling thread with this reactor, which may be gone; or
   NULL. */
struct evc__host *evc__host_of(const evc_reactor *r);
/* Loop thread, nothing lives on h: close the descriptors, free h. */
void evc__host_end(struct evc__host *h);

/* Any thread, also in a signal handler, while h cannot go: a turn is to
   follow. */
void evc__host_ring(struct evc__host *h);
/* The wall clock in seconds, as ev_now has it. */
double evc__host_now(void) __attribute__((cold));
/* Loop thread, in each iteration of the inner loop, before all callbacks: feed
   the inner loop with the ring and the due timers. */
void evc__host_feed(struct evc__host *h, ev_async *rung);
/* Loop thread: one iteration of the inner loop; then the descriptor is readable
   only when another turn has something to do.  false: h is gone, or this is a
   fork child. */
bool evc__host_run(struct evc__host *h);
/* Any thread, while h cannot go, outside a turn: for so many nanoseconds a turn
   is due that did not begin; 0: none is. */
static inline uint64_t
evc__host_waits(const struct evc__host *h)
{
	uint64_t now = sync_mono_coarse();
	uint64_t since = sync_load_relaxed(&h->armed), rung;

	if (sync_load(&h->rung)) {
		rung = sync_load_relaxed(&h->rung_ns);
		since = rung < since ? rung : since;
	}
	return since < now ? now - since : 0;
}

/* ---- timer.c; loop thread ---- */

/* Feed the inner loop with the due timers. */
void evc__host_timers_feed(struct evc__host *h);
/* Is a timer due? */
bool evc__host_timer_due(const struct evc__host *h);
/* Set the timerfd for the timer that is due first. */
void evc__host_arm(struct evc__host *h);

#endif
