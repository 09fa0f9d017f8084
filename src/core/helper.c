/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread, one for a whole tree of coordinators: watches pidfds, runs
 * stop hooks that have no loop, keeps the keepers that have none.
 *
 * Made at the first need and never at a stop, when there may be nothing to make
 * it of.  With descriptors it sleeps in epoll_wait, on the pidfds and an eventfd
 * of its own; without, on a futex.  The coordinators that it serves are its
 * clients: each stands in its own table of listeners, whose tell() lights the
 * client on the helper's board.
 */
#include "core/keeper.h"

#include <signal.h>

#include "base/self.h"
#include "base/tls.h"

#define HELPER_STACK (256u << 10)

/* A coordinator that is served. */
struct evc__client {
	struct evc__listener listener; /* first: tell() gets it */
	evc_coord *c;                  /* set at creation */
	struct evc__helper *h;
	/* tree's lock */
	struct board_place at;
	struct list waiting;  /* in h->waiting while due is some time */
	uint64_t due;         /* monotonic nanoseconds */
	/* helper thread only: in a call for c; set when c was freed there */
	bool *gone;
};

struct evc__helper {
	struct evc__tree *tree; /* set at creation */
	pthread_t thread;
	/* tree's lock */
	struct board clients;
	struct board watched;  /* members with a pidfd */
	struct list waiting;
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
	struct evc__client *k = (struct evc__client *)l;

	evc__board_light(&k->at);
	ring(k->h);
}

/* ---- the thread ---- */

/* Tree's lock held, given up meanwhile, and c kept by its gate. */
static void
serve(struct evc__helper *h, struct evc__client *k)
{
	evc_coord *c = k->c;
	uint64_t wait;
	bool gone = false;

	sync_unlock(&h->tree->lock);
	k->gone = &gone;
	evc__hooks_run(c, NULL);
	if (evc__keeper_serve(c, &gone, &wait)) {
		k->gone = NULL;
		sync_lock(&h->tree->lock);
		list_remove(&k->waiting);
		if (wait != SYNC_FOREVER) {
			k->due = sync_mono() + wait;
			list_append(&h->waiting, &k->waiting);
		}
		sync_unlock(&h->tree->lock);
		evc__gate_leave(&c->gate);
	}
	sync_lock(&h->tree->lock);
}

/* Serve all that are lit or due; how long to sleep then. */
static uint64_t
serve_all(struct evc__helper *h)
{
	struct board_cursor at = { NULL, 0 };
	uint64_t wait = SYNC_FOREVER, now;
	struct list *n, *tmp;
	struct evc__client *k;

	sync_lock(&h->tree->lock);
	now = list_empty(&h->waiting) ? 0 : sync_mono();
	LIST_EACH(n, tmp, &h->waiting) {
		k = LIST_OF(n, struct evc__client, waiting);
		if (k->due <= now)
			evc__board_light(&k->at);
	}
	while ((k = evc__board_next(&h->clients, &at)) != NULL)
		if (evc__gate_enter(&k->c->gate))
			serve(h, k);
	now = list_empty(&h->waiting) ? 0 : sync_mono();
	LIST_EACH(n, tmp, &h->waiting) {
		k = LIST_OF(n, struct evc__client, waiting);
		wait = k->due <= now	   ? 0 :
		       k->due - now < wait ? k->due - now :
					     wait;
	}
	sync_unlock(&h->tree->lock);
	return wait;
}

/* A pidfd is readable: its thread or process has ended.  The event may be an
   old one, of somebody who is gone: then the place is empty, or another's whose
   pidfd says that it runs. */
static void
vanished(struct evc__helper *h, uint64_t place)
{
	struct board_chunk *k =
		(struct board_chunk *)(uintptr_t)(place << 8 >> 8);
	unsigned i = (unsigned)(place >> 56);
	struct evc__member *m;
	evc_coord *c;
	bool same;

	sync_lock(&h->tree->lock);
	m = sync_load(&k->slot[i]);
	c = m != NULL ? m->c : NULL;
	if (c != NULL && !evc__gate_enter(&c->gate))
		c = NULL;
	sync_unlock(&h->tree->lock);
	if (c == NULL)
		return;
	/* Who is watched stops being so under its coordinator's lock alone. */
	sync_lock(&c->lock);
	sync_lock(&h->tree->lock);
	same = sync_load(&k->slot[i]) == m && m->c == c;
	sync_unlock(&h->tree->lock);
	if (same && sync_fd_readable(m->pidfd))
		m->ops->vanished(m);
	sync_unlock(&c->lock);
	evc__gate_leave(&c->gate);
}

static void
sleep_once(struct evc__helper *h, uint32_t seq, uint64_t ns)
{
	struct epoll_event ev[16];
	int epoll = sync_load_sc(&h->epoll), n, i;

	if (epoll < 0) {
		sync_futex_wait(&h->seq, seq, ns);
		return;
	}
	n = sync_epoll_wait(epoll, ev, 16, ns);
	for (i = 0; i < n; i++)
		if (ev[i].data.u64 == 0)
			sync_fd_drain(sync_load(&h->event));
		else
			vanished(h, ev[i].data.u64);
}

static void *
helper_main(void *arg)
{
	struct evc__helper *h = arg;
	uint32_t seq;

	evc__thread_rename("evcoord");
	sync_store_sc(&h->tid, evc__tid());
	for (;;) {
		/* The number first: a ring while we serve ends the sleep. */
		seq = sync_load_sc(&h->seq);
		if (sync_load_sc(&h->quit))
			return NULL;
		sleep_once(h, seq, serve_all(h));
	}
}

/* ---- its making ---- */

/* Tree's lock held. */
static struct evc__helper *
start(struct evc__tree *tree)
{
	struct evc__helper *h = sync_alloc(1, sizeof *h);
	pthread_attr_t attr;
	sigset_t old;
	int e;

	if (h == NULL)
		return NULL;
	h->tree = tree;
	list_init(&h->waiting);
	sync_store(&h->epoll, -1);
	sync_store(&h->event, -1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, evc__stack_with_tls(HELPER_STACK));
	evc__block_signals(&old);
	e = sync_thread_create(&h->thread, &attr, helper_main, h);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (e != 0) {
		sync_free(h);
		return NULL;
	}
	return tree->helper = h;
}

/* Tree's lock held. */
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

/* Lock of c held. */
static bool
become_client(evc_coord *c, struct evc__helper *h)
{
	struct evc__client *k = sync_alloc(1, sizeof *k);
	bool in;

	if (k == NULL)
		return false;
	k->c = c;
	k->h = h;
	k->listener.tell = tell;
	list_init(&k->waiting);
	sync_lock(&c->tree->lock);
	in = evc__board_add(&h->clients, k, &k->at);
	sync_unlock(&c->tree->lock);
	if (in && evc__listen(c, &k->listener)) {
		c->client = k;
		return true;
	}
	sync_lock(&c->tree->lock);
	if (in)
		evc__board_remove(&h->clients, &k->at);
	sync_unlock(&c->tree->lock);
	sync_free(k);
	return false;
}

bool
evc__helper_need(evc_coord *c, bool fds)
{
	struct evc__helper *h;
	bool had;

	sync_lock(&c->tree->lock);
	h = c->tree->helper != NULL ? c->tree->helper : start(c->tree);
	had = h != NULL && (!fds || sync_load(&h->epoll) >= 0 ||
			    make_descriptors(h));
	sync_unlock(&c->tree->lock);
	return had && (c->client != NULL || become_client(c, h));
}

/* ---- what it watches; lock of c held ---- */

bool
evc__helper_watch(evc_coord *c, struct evc__member *m)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct evc__helper *h;
	bool in;

	if (!evc__helper_need(c, true))
		return false;
	sync_lock(&c->tree->lock);
	h = c->tree->helper;
	in = evc__board_add(&h->watched, m, &m->watch);
	if (in) {
		ev.data.u64 = (uint64_t)(uintptr_t)m->watch.k |
			      (uint64_t)m->watch.i << 56;
		in = sync_epoll_add(sync_load(&h->epoll), m->pidfd, &ev) == 0;
		if (!in)
			evc__board_remove(&h->watched, &m->watch);
	}
	sync_unlock(&c->tree->lock);
	m->watched = in;
	return in;
}

void
evc__helper_unwatch(evc_coord *c, struct evc__member *m)
{
	struct evc__helper *h;

	if (m->watched) {
		sync_lock(&c->tree->lock);
		h = c->tree->helper;
		sync_epoll_del(sync_load(&h->epoll), m->pidfd);
		evc__board_remove(&h->watched, &m->watch);
		sync_unlock(&c->tree->lock);
	}
	m->watched = false;
	if (m->pidfd >= 0)
		sync_fd_close(m->pidfd);
	m->pidfd = -1;
}

/* ---- for others ---- */

void
evc__helper_ring(evc_coord *c)
{
	if (c->client != NULL)
		tell(&c->client->listener);
}

void
evc__helper_hear(evc_coord *c, bool yes)
{
	uint32_t d = yes ? 1 : (uint32_t)-1;

	sync_add(&c->client->listener.n_joins, d);
	sync_add(&c->n_loop_joins, d);
	if (yes)
		tell(&c->client->listener);
}

bool
evc__helper_is_self(const evc_coord *c)
{
	struct evc__helper *h;

	sync_lock(&c->tree->lock);
	h = c->tree->helper;
	sync_unlock(&c->tree->lock);
	return h != NULL && sync_load_sc(&h->tid) == evc__tid();
}

bool
evc__helper_let_go(evc_coord *c)
{
	/* What the client notes of its call is the helper's own. */
	if (c->client == NULL || !evc__helper_is_self(c) ||
	    c->client->gone == NULL)
		return false;
	*c->client->gone = true;
	return true;
}

void
evc__helper_end(evc_coord *c)
{
	struct evc__client *k = c->client;
	struct evc__helper *h;

	sync_lock(&c->tree->lock);
	h = c->tree->helper;
	sync_unlock(&c->tree->lock);
	if (k != NULL) {
		sync_lock(&c->lock);
		evc__unlisten(c, &k->listener);
		c->client = NULL;
		sync_unlock(&c->lock);
		sync_lock(&c->tree->lock);
		evc__board_remove(&h->clients, &k->at);
		list_remove(&k->waiting);
		sync_unlock(&c->tree->lock);
		sync_free(k);
	}
	if (c->parent != NULL || h == NULL)
		return;
	sync_store_sc(&h->quit, true);
	ring(h);
	sync_thread_join(h->thread, NULL, SYNC_FOREVER);
	if (sync_load(&h->epoll) >= 0) {
		sync_fd_close(sync_load(&h->epoll));
		sync_fd_close(sync_load(&h->event));
	}
	evc__board_free(&h->clients);
	evc__board_free(&h->watched);
	sync_free(h);
	c->tree->helper = NULL;
}
