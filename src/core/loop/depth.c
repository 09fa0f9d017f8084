/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How deep a loop's thread is in ev_run of that loop.  libev counts too, but an
 * exception that leaves an ev_run leaves its count behind.  The library knows
 * of levels lost in its own ev_run at once.  For other levels the stack is
 * read, only where libev's count says more than expected.  A trial loop tells
 * beforehand whether ev_run shows on the stack, for an exception may have left
 * the first loop before its attach.
 *
 * Called by: stay.c, run.c, abandon.c, loop_waker_watch.c, on the loop's
 * thread.
 * Locks: none; n_lost belongs to the loop's thread.
 */
#include "core/core.h"

#include "base/unwind.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool shows; /* otherwise the stack shows no level at all */

static int
calls_of_run(const void *outer)
{
	return evc__calls_of((void (*)(void))ev_run, outer);
}

static void
on_probe(struct ev_loop *loop, ev_prepare *p, int revents)
{
	(void)loop;
	(void)revents;
	shows = calls_of_run(p->data) == 1;
}

static void
probe(void)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_SELECT |
					   EVBACKEND_POLL);
	ev_prepare p;

	if (loop == NULL)
		return;
	ev_prepare_init(&p, on_probe);
	p.data = __builtin_frame_address(0);
	ev_prepare_start(loop, &p);
	ev_run(loop, EVRUN_NOWAIT);
	ev_prepare_stop(loop, &p);
	ev_loop_destroy(loop);
}

void
evc__depth_watch(void)
{
	pthread_once(&once, probe);
}

unsigned
evc__depth(struct evc__loop_waker *lw, const struct evc__driver *d)
{
	unsigned depth = ev_depth(lw->loop) - lw->n_lost;
	int n;

	if (depth <= (d != NULL) || !shows)
		return depth;
	n = calls_of_run(d != NULL ? d->frame : NULL);
	if (n >= 0 && (unsigned)n < depth) {
		lw->n_lost += depth - (unsigned)n;
		depth = (unsigned)n;
	}
	return depth;
}

void
evc__depth_is_none(struct evc__loop_waker *lw)
{
	lw->n_lost = ev_depth(lw->loop);
}
