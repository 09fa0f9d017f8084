/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How deep a loop's thread is in ev_run of that loop.  libev counts, too, but an
 * exception that leaves an ev_run leaves its count behind.
 *
 * Levels that were lost in an ev_run of ours are known at once; of the others
 * the stack knows, which is read only where libev's count says more than
 * expected.  Whether ev_run shows there, a loop of our own tells before the first
 * one is attached: that one may have been left by an exception already.
 */
#include "core/core.h"
#include "core/join/join.h"

#include "base/unwind.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool shows; /* a call that does not would never count */

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
evc__depth(struct evc__loop_waker *b, const struct evc__driver *d)
{
	unsigned depth = ev_depth(b->loop) - b->n_lost;
	int n;

	if (depth <= (d != NULL) || !shows)
		return depth;
	n = calls_of_run(d != NULL ? d->frame : NULL);
	if (n >= 0 && (unsigned)n < depth) {
		b->n_lost += depth - (unsigned)n;
		depth = (unsigned)n;
	}
	return depth;
}

void
evc__depth_is_none(struct evc__loop_waker *b)
{
	b->n_lost = ev_depth(b->loop);
}
