/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many ev_runs of its loop a thread is in (the depth).  libev counts, too,
 * but does not lower its count when an exception leaves an ev_run.  For its own
 * ev_run the library corrects the count at once.  For an ev_run of the
 * application the library counts the frames of ev_run on the stack, but only
 * when libev's count is higher than expected.  A trial with a loop of its own
 * ev_run_shows beforehand whether ev_run can be seen on the stack at all.
 *
 * Called by: stay.c, run.c, abandon.c, loop_waker_watch.c, on the loop's
 * thread.
 * Locks: none; n_lost belongs to the loop's thread.
 */
#include "core/core.h"

#include "base/unwind.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ev_run_shows; /* ev_run can be seen on the stack */

/* The number of ev_run frames on the stack, inside the frame `outer` (NULL:
   all); < 0: unknown. */
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
	ev_run_shows = calls_of_run(p->data) == 1;
}

static void
probe_ev_run(void)
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
	pthread_once(&once, probe_ev_run);
}

unsigned
evc__depth(struct evc__loop_waker *lw, const struct evc__driver *d)
{
	unsigned depth = ev_depth(lw->loop) - lw->n_lost;
	int n;

	if (depth <= (d != NULL) || !ev_run_shows)
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
