/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosted loops: the descriptor that the host watches, and one iteration of the
 * inner loop.
 *
 * Called by: hosted.c, timer.c; loop_waker.c rings, loop_waker_watch.c feeds.
 * Locks: none; but for rings all is the loop's thread alone.  Atomics: rung.
 */

/*
 * A ring sets the flag `rung`, and the ring that finds the flag clear writes to
 * the eventfd.  A turn clears the flag before it looks for work.  The eventfd
 * is read only at the end of the turn, and written once more if the flag was
 * set meanwhile, so no ring is lost.  Until then the descriptor stays readable:
 * if a function that the turn calls runs the host, the host makes a turn at
 * once, which does what is left of the turn outside.
 *
 * A host that watches for edges needs a new edge for each turn to come.  So a
 * turn that leaves work behind writes to the eventfd, even where the descriptor
 * has stayed readable.
 *
 * In a fork child the descriptors are the parent's, too: the child writes
 * nothing to them, and changes nothing in them.
 */
#include "core/loop/timer.h"

#include "base/fork.h"

/* The hosts of this thread by their reactors.  A thread has a table of its own,
   so a turn takes no lock, and a fork child needs none. */
static __thread struct table hosts;

/* ---- the life of a host ---- */

static bool
open_descriptors(struct evc__host *h)
{
	struct epoll_event ev = { .events = EPOLLIN };

	h->wake = sync_eventfd();
	h->clock = h->wake < 0 ? -1 : sync_timerfd();
	h->fd = h->clock < 0 ? -1 : sync_epoll();
	return h->fd >= 0 && sync_epoll_add(h->fd, h->wake, &ev) == 0 &&
	       sync_epoll_add(h->fd, h->clock, &ev) == 0;
}

static void
close_descriptors(const struct evc__host *h)
{
	const int fd[] = { h->fd, h->clock, h->wake };
	unsigned i;

	for (i = 0; i < 3; i++)
		if (fd[i] >= 0)
			sync_fd_close(fd[i]);
}

static void
free_host(struct evc__host *h)
{
	if (h->loop != NULL)
		ev_loop_destroy(h->loop);
	sync_free(h);
}

struct evc__host *
evc__host_new(void)
{
	struct evc__host *h = sync_alloc(1, sizeof *h);

	if (h == NULL)
		return NULL;
	h->fork_generation = sync_load_relaxed(&evc__fork_generation);
	sync_store_relaxed(&h->armed, SYNC_FOREVER);
	/* These back ends need no descriptor. */
	if (open_descriptors(h) && evc__table_reserve(&hosts, 1))
		h->loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_POLL |
				      EVBACKEND_SELECT);
	if (h->loop == NULL) {
		evc__host_end(h);
		return NULL;
	}
	return h;
}

void
evc__host_add(struct evc__host *h, const evc_reactor *r)
{
	h->node.key = (uint64_t)(uintptr_t)r;
	evc__table_add(&hosts, &h->node);
}

struct evc__host *
evc__host_of(const evc_reactor *r)
{
	return evc__table_find(&hosts, (uint64_t)(uintptr_t)r);
}

void
evc__host_end(struct evc__host *h)
{
	if (evc__table_find(&hosts, h->node.key) == h)
		evc__table_remove(&hosts, &h->node);
	if (hosts.n == 0)
		evc__table_free(&hosts);
	close_descriptors(h);
	h->ended = true;
	if (sync_load_relaxed(&h->turns) == 0)
		free_host(h);
}

/* ---- rings ---- */

void
evc__host_ring(struct evc__host *h)
{
	/* The time first: a report never sees the flag with the time of an
	   earlier ring. */
	if (!sync_load_relaxed(&h->rung))
		sync_store_relaxed(&h->rung_ns, sync_mono_coarse());
	if (!sync_xchg(&h->rung, true))
		sync_fd_write(h->wake);
}

/* ---- turns ---- */

double
evc__host_now(void)
{
	return (double)sync_real() / 1e9;
}

void
evc__host_feed(struct evc__host *h, ev_async *rung)
{
	if (sync_load_relaxed(&h->rung) && sync_xchg(&h->rung, false))
		ev_feed_event(h->loop, rung, EV_ASYNC);
	evc__host_timers_feed(h);
}

/* The end of a turn: the descriptor is readable only if there is work. */
static void
settle(struct evc__host *h)
{
	sync_fd_drain(h->wake);
	if (sync_load_sc(&h->rung) || evc__host_timer_due(h))
		sync_fd_write(h->wake);
	else
		evc__host_arm(h);
}

static void
change_turns(struct evc__host *h, uint32_t change)
{
	/* Only the loop's thread writes. */
	sync_store_relaxed(&h->turns, sync_load_relaxed(&h->turns) + change);
}

bool
evc__host_run(struct evc__host *h)
{
	change_turns(h, 1);
	ev_run(h->loop, EVRUN_NOWAIT);
	change_turns(h, (uint32_t)-1);
	if (evc__forked_since(h->fork_generation))
		return false;
	if (!h->ended) {
		settle(h);
		return true;
	}
	if (sync_load_relaxed(&h->turns) == 0)
		free_host(h);
	return false;
}
