/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers of the library on a loop: an ev_timer, or, on a hosted loop, a time in
 * the heap of the host.  For the loop's thread.
 */
#ifndef EVC_CORE_TIMER_H
#define EVC_CORE_TIMER_H

#include "core/loop/host.h"
#include "core/loop/loop_waker.h"

struct evc__timer {
	ev_timer ev; /* of a hosted loop only its callback, its priority and its
			repeat are used */
	/* of a hosted loop */
	uint64_t due; /* 0: not set */
	/* the heap: the first child, the next sibling, and the sibling before,
	   or the parent of the first child */
	struct evc__timer *child, *next, *before;
};

void evc__host_timer_set(struct evc__host *h, struct evc__timer *t,
			 double wait);
void evc__host_timer_stop(struct evc__host *h, struct evc__timer *t);

static inline bool
evc__timer_is_set(const struct evc__timer *t)
{
	return ev_is_active(&t->ev) || t->due != 0;
}

/* t, which is not set, fires once, in so many seconds. */
static inline void
evc__timer_start(struct evc__loop_waker *lw, struct evc__timer *t, double wait)
{
	if (lw->host != NULL) {
		t->ev.repeat = 0;
		evc__host_timer_set(lw->host, t, wait);
		return;
	}
	ev_timer_set(&t->ev, wait, 0.);
	ev_timer_start(lw->loop, &t->ev);
}

/* t, set or not, fires in so many seconds, and then each `repeat` seconds; when
   it fires it is set again before its callback. */
static inline void
evc__timer_again(struct evc__loop_waker *lw, struct evc__timer *t, double wait,
		 double repeat)
{
	if (lw->host != NULL) {
		evc__host_timer_set(lw->host, t, wait);
	} else {
		t->ev.repeat = wait;
		ev_timer_again(lw->loop, &t->ev);
	}
	t->ev.repeat = repeat;
}

/* t, set or not, does not fire.  loop: that of lw, which may have lost it. */
static inline void
evc__timer_stop(struct evc__loop_waker *lw, struct ev_loop *loop,
		struct evc__timer *t)
{
	if (lw->host != NULL)
		evc__host_timer_stop(lw->host, t);
	else
		ev_timer_stop(loop, &t->ev);
}

#endif
