/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread, one for a whole tree of coordinators: watches pidfds, runs
 * stop hooks that have no loop, runs jobs, drives scope joins that have no
 * loop.
 *
 * Called by: members, hooks, wakers, joins and evc_free.
 * Locks: the tree's lock guards the helper; callers hold the coordinator's lock
 * where a function needs a client.  Atomics: seq, event, epoll, quit,
 * abandoned.
 */

/*
 * The helper is made at the first need and never at a stop, when memory or
 * threads may be short.  With descriptors the thread sleeps in epoll_wait, on
 * the pidfds and an eventfd of its own; without, on a futex.  The coordinators
 * that the helper serves are its clients.  Each client is a listener of its own
 * coordinator, and tell() marks the client in the helper's notify_set.
 */
#include "core/core.h"
#include "core/helper/threads.h"

void
evc__watch_wake(struct evc__tree *tree)
{
	sync_add(&tree->watch_seq, 1);
	sync_futex_wake(&tree->watch_seq);
}

/* Any thread, signal-safe. */
void
evc__helper_wake(struct evc__helper *h)
{
	int event;

	sync_add(&h->seq, 1);
	/* The helper may hang in a function of the user's: the watch thread
	   looks. */
	if (sync_load_sc(&h->tree->serving_ns) != 0)
		evc__watch_wake(h->tree);
	/* The helper has not begun to sleep, or another thread wakes the
	   helper. */
	if (!sync_xchg(&h->sleeps, false))
		return;
	/* The helper may have read seq already, and be about to sleep: its sleep
	   must end at once, because `sleeps` is false from now on. */
	sync_add(&h->seq, 1);
	/* Both, because the thread may be changing from one sleep to the
	   other. */
	sync_futex_wake(&h->seq);
	event = sync_load_sc(&h->event);
	if (event >= 0)
		sync_fd_write(event);
}

/* tell() of a client: mark the client, and wake the helper. */
static void
tell_helper(struct evc__listener *l)
{
	struct evc__client *client = (struct evc__client *)l;

	evc__notify_mark(&client->at);
	evc__helper_wake(client->h);
}

/* ---- making the helper ---- */

/* Tree's lock held. */
static struct evc__helper *
start_helper(struct evc__tree *tree)
{
	struct evc__helper *h = sync_alloc(1, sizeof *h);

	if (h == NULL)
		return NULL;
	h->tree = tree;
	list_init(&h->waiting);
	sync_store(&h->epoll, -1);
	sync_store(&h->event, -1);
	if (!evc__helper_lead(h)) {
		sync_free(h);
		return NULL;
	}
	sync_store(&tree->has_helper, true);
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
	evc__helper_wake(h);
	return true;
}

/* Lock of c held. */
static bool
become_client(evc_coord *c, struct evc__helper *h)
{
	struct evc__client *client = sync_alloc(1, sizeof *client);
	bool in;

	if (client == NULL)
		return false;
	client->c = c;
	client->h = h;
	client->listener.tell = tell_helper;
	client->listener.joins = true;
	list_init(&client->waiting);
	sync_lock(&c->tree->lock);
	in = evc__notify_set_add(&h->clients, client, &client->at);
	sync_unlock(&c->tree->lock);
	if (in && evc__listen(c, &client->listener)) {
		c->helper.client = client;
		return true;
	}
	sync_lock(&c->tree->lock);
	if (in)
		evc__notify_set_remove(&h->clients, &client->at);
	sync_unlock(&c->tree->lock);
	sync_free(client);
	return false;
}

bool
evc__helper_need(evc_coord *c, bool fds)
{
	struct evc__helper *h;
	bool had;

	sync_lock(&c->tree->lock);
	h = c->tree->helper != NULL ? c->tree->helper : start_helper(c->tree);
	had = h != NULL && (!fds || sync_load(&h->epoll) >= 0 ||
			    make_descriptors(h));
	sync_unlock(&c->tree->lock);
	return had && (c->helper.client != NULL || become_client(c, h));
}

/* ---- watched pidfds; lock of c held ---- */

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
	in = evc__notify_set_add(&h->watched, m, &m->watch);
	if (in) {
		ev.data.ptr = &m->watch.k->slot[m->watch.i];
		in = sync_epoll_add(sync_load(&h->epoll), m->pidfd, &ev) == 0;
		if (!in)
			evc__notify_set_remove(&h->watched, &m->watch);
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
		evc__notify_set_remove(&h->watched, &m->watch);
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
	if (c->helper.client != NULL)
		tell_helper(&c->helper.client->listener);
}

void
evc__helper_describes(const evc_coord *c, bool begin)
{
	if (evc__helper_is_self(c))
		sync_add(&c->tree->n_describing, begin ? 1 : (uint32_t)-1);
}

void
evc__helper_takes(const evc_coord *c, uint64_t ns)
{
	if (evc__helper_is_self(c) && sync_load_sc(&c->tree->serving_ns) != 0)
		sync_store_sc(&c->tree->serving_ns, sync_mono() + ns);
}

bool
evc__helper_may_take(const evc_coord *c)
{
	return sync_mono() < sync_load_sc(&c->tree->serving_ns);
}

void
evc__helper_hear(evc_coord *c, bool yes)
{
	uint32_t d = yes ? 1 : (uint32_t)-1;

	sync_add(&c->helper.client->listener.n_joins, d);
	sync_add(&c->stop.n_loop_joins, d);
	if (yes)
		tell_helper(&c->helper.client->listener);
}

void
evc__helper_farewell(evc_coord *c)
{
	sync_lock(&c->tree->lock);
	sync_store(&c->tree->helper->abandoned, c);
	sync_unlock(&c->tree->lock);
}

void
evc__helper_end(evc_coord *c)
{
	struct evc__client *client = c->helper.client;
	struct evc__helper *h;

	sync_lock(&c->tree->lock);
	h = c->tree->helper;
	sync_unlock(&c->tree->lock);
	if (client != NULL) {
		sync_lock(&c->lock);
		evc__unlisten(c, &client->listener);
		c->helper.client = NULL;
		sync_unlock(&c->lock);
		sync_lock(&c->tree->lock);
		evc__notify_set_remove(&h->clients, &client->at);
		list_remove(&client->waiting);
		sync_unlock(&c->tree->lock);
		sync_free(client);
	}
	if (c->parent != NULL || h == NULL)
		return;
	sync_store_sc(&h->quit, true);
	evc__helper_wake(h);
	evc__helper_join(h);
	if (sync_load(&h->epoll) >= 0) {
		sync_fd_close(sync_load(&h->epoll));
		sync_fd_close(sync_load(&h->event));
	}
	evc__notify_set_free(&h->clients);
	evc__notify_set_free(&h->watched);
	c->tree->helper = NULL;
	/* When `abandoned` is set, the helper frees itself after c. */
	if (sync_load(&h->abandoned) == NULL)
		sync_free(h);
}
