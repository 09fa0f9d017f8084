/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread: watches pidfds, and runs stop hooks that have no loop.
 *
 * Made at the first need and never at a stop, when there may be nothing to make
 * it of.  With descriptors it sleeps in epoll_wait, on the pidfds and an eventfd
 * of its own; without, on a futex, and then it serves hooks alone.
 */
#include "core/core.h"

#include <signal.h>

#include "base/self.h"
#include "base/tls.h"

#define HELPER_STACK (256u << 10)

struct evc__helper {
	struct evc__listener listener; /* first: tell() gets it */
	/* set at creation */
	evc_coord *c;
	pthread_t thread;
	/* atomic: who makes the descriptors (lock) -> the thread; -1: none */
	_Atomic int epoll, event;
	/* atomic: who rings -> the thread */
	_Atomic uint32_t seq;
	_Atomic bool quit;
	_Atomic int tid;
};

/* Any thread, signal-safe. */
static void
ring(struct evc__helper *h)
{
	int event;

	sync_add(&h->seq, 1);
	/* Both, because it may just be changing from one sleep to the
	   other. */
	sync_futex_wake(&h->seq);
	event = sync_load_sc(&h->event);
	if (event >= 0)
		sync_fd_write(event);
}

static void
tell(struct evc__listener *l)
{
	ring((struct evc__helper *)l);
}

/* A pidfd is readable: its thread has ended. */
static void
vanished(evc_coord *c, evc_id id)
{
	struct evc__member *m;

	sync_lock(&c->lock);
	m = evc__member_find(c, id);
	if (m != NULL && m->watched) {
		evc__helper_unwatch(c, m);
		m->ops->vanished(m);
	}
	sync_unlock(&c->lock);
}

static void
sleep_once(struct evc__helper *h, uint32_t seq)
{
	struct epoll_event ev[16];
	int epoll = sync_load_sc(&h->epoll), n, i;

	if (epoll < 0) {
		sync_futex_wait(&h->seq, seq, SYNC_FOREVER);
		return;
	}
	n = sync_epoll_wait(epoll, ev, 16);
	for (i = 0; i < n; i++)
		if (ev[i].data.u64 == 0)
			sync_fd_drain(sync_load(&h->event));
		else
			vanished(h->c, ev[i].data.u64);
}

static void *
helper_main(void *arg)
{
	struct evc__helper *h = arg;
	uint32_t seq;

	evc__thread_rename("evcoord");
	sync_store_sc(&h->tid, evc__tid());
	for (;;) {
		seq = sync_load_sc(&h->seq);
		if (sync_load_sc(&h->quit))
			return NULL;
		evc__hooks_run(h->c, NULL);
		sleep_once(h, seq);
	}
}

/* Lock held. */
static bool
start(evc_coord *c)
{
	struct evc__helper *h = sync_alloc(1, sizeof *h);
	pthread_attr_t attr;
	sigset_t old;
	int e;

	if (h == NULL)
		return false;
	h->listener.tell = tell;
	h->c = c;
	sync_store(&h->epoll, -1);
	sync_store(&h->event, -1);
	if (!evc__listen(c, &h->listener)) {
		sync_free(h);
		return false;
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, evc__stack_with_tls(HELPER_STACK));
	evc__block_signals(&old);
	e = sync_thread_create(&h->thread, &attr, helper_main, h);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (e != 0) {
		evc__unlisten(c, &h->listener);
		sync_free(h);
		return false;
	}
	c->helper = h;
	return true;
}

/* Lock held. */
static bool
make_descriptors(struct evc__helper *h)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int epoll = sync_epoll(), event;

	if (epoll < 0)
		return false;
	event = sync_eventfd();
	if (event < 0 || sync_epoll_add(epoll, event, &ev) < 0) {
		if (event >= 0)
			sync_fd_close(event);
		sync_fd_close(epoll);
		return false;
	}
	sync_store_sc(&h->event, event);
	sync_store_sc(&h->epoll, epoll);
	ring(h);
	return true;
}

bool
evc__helper_need(evc_coord *c, bool fds)
{
	if (c->helper == NULL && !start(c))
		return false;
	return !fds || sync_load(&c->helper->epoll) >= 0 ||
	       make_descriptors(c->helper);
}

bool
evc__helper_watch(evc_coord *c, struct evc__member *m)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = m->id };

	if (!evc__helper_need(c, true) ||
	    sync_epoll_add(sync_load(&c->helper->epoll), m->pidfd, &ev) < 0)
		return false;
	m->watched = true;
	return true;
}

void
evc__helper_unwatch(evc_coord *c, struct evc__member *m)
{
	if (m->watched)
		sync_epoll_del(sync_load(&c->helper->epoll), m->pidfd);
	m->watched = false;
	if (m->pidfd >= 0)
		sync_fd_close(m->pidfd);
	m->pidfd = -1;
}

void
evc__helper_ring(evc_coord *c)
{
	if (c->helper != NULL)
		ring(c->helper);
}

bool
evc__helper_is_self(const evc_coord *c)
{
	return c->helper != NULL &&
	       sync_load_sc(&c->helper->tid) == evc__tid();
}

void
evc__helper_end(evc_coord *c)
{
	struct evc__helper *h = c->helper;

	if (h == NULL)
		return;
	sync_lock(&c->lock);
	evc__unlisten(c, &h->listener);
	sync_unlock(&c->lock);
	sync_store_sc(&h->quit, true);
	ring(h);
	sync_thread_join(h->thread, NULL, SYNC_FOREVER);
	if (sync_load(&h->epoll) >= 0) {
		sync_fd_close(sync_load(&h->epoll));
		sync_fd_close(sync_load(&h->event));
	}
	sync_free(h);
	c->helper = NULL;
}
