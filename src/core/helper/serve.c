/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads of the helper: the leading thread serves the clients that are
 * marked or due, and sleeps.
 *
 * Called by: helper.c; joins, to relieve a helper that hangs.
 * Locks: the tree's lock, given up around all calls; evc__helper_relieve may be
 * called under a coordinator's lock.  Atomics: leader, serving_ns, n_ended,
 * state, last.
 */

/*
 * A function of the user's - a hook without a loop, unblock, a cancel hook -
 * may hang, and other members must be woken all the same.  So a join that finds
 * the helper at one client for too long makes another thread, which leads from
 * then on and goes through all clients anew.  The thread that hung finishes its
 * call when the function returns, and ends.  Hooks of one coordinator still run
 * one after the other.
 */
#include "core/core.h"
#include "core/helper/job.h"
#include "core/helper/threads.h"

#include "base/self.h"
#include "base/spawn.h"

/* The helper that the calling thread belongs to, and its present call. */
static __thread struct evc__helper *self_helper;
static __thread const evc_coord *keeping; /* the coordinator of the scope join
					     being served */
static __thread bool *gone_with_it;       /* set when that coordinator is freed
					     meanwhile */

/* Tree's lock held, under which the leader changes: note since when this thread
   is at one client, for joins that would relieve the thread. */
static void
serving(struct evc__helper *h, uint32_t me, uint64_t since)
{
	if (sync_load_sc(&h->leader) == me)
		sync_store_sc(&h->tree->serving_ns, since);
}

void
evc__helper_inherited(void)
{
	self_helper = NULL;
	if (keeping != NULL)
		*gone_with_it = true;
	keeping = NULL;
}

/* A function has returned: in a fork child the rest of the work belongs to the
   parent. */
static void
end_in_child(const struct evc__helper *h)
{
	if (self_helper != h)
		pthread_exit(NULL);
}

/* false: the client's coordinator is gone. */
static bool
keep(struct evc__client *k, uint64_t *ret_wait)
{
	struct evc__helper *h = k->h;
	evc_coord *c = k->c;
	bool busy, gone = false;

	*ret_wait = SYNC_FOREVER;
	sync_lock(&c->tree->lock);
	busy = k->keeping;
	k->keeping = true;
	sync_unlock(&c->tree->lock);
	if (busy)
		return true; /* another thread hangs there */
	keeping = c;
	gone_with_it = &gone;
	(void)h->tree->upper->serve(c, &gone, ret_wait);
	end_in_child(h);
	keeping = NULL;
	if (gone)
		return false;
	sync_lock(&c->tree->lock);
	k->keeping = false;
	sync_unlock(&c->tree->lock);
	return true;
}

/* Tree's lock held, given up meanwhile, and c kept by its refgate. */
static void
serve_client(struct evc__helper *h, struct evc__client *k, uint32_t me)
{
	evc_coord *c = k->c;
	uint64_t wait, jobs;

	serving(h, me, sync_mono() | 1);
	sync_unlock(&h->tree->lock);
	h->tree->upper->run_hooks(c, NULL);
	end_in_child(h);
	jobs = evc__helper_jobs_run(c);
	if (keep(k, &wait)) {
		wait = jobs < wait ? jobs : wait;
		sync_lock(&h->tree->lock);
		if (sync_load_sc(&h->leader) != me) {
			/* Another thread leads: `wait` may be out of date, and
			   that thread has left out the job or scope join in
			   which this thread hung.  So the leader looks at the
			   client again. */
			evc__notify_mark(&k->at);
			evc__helper_wake(h);
		} else {
			list_remove(&k->waiting);
			if (wait != SYNC_FOREVER) {
				k->due = sync_mono() + wait;
				list_append(&h->waiting, &k->waiting);
			}
		}
		sync_unlock(&h->tree->lock);
		evc__refgate_leave(&c->life.gate);
	}
	sync_lock(&h->tree->lock);
	serving(h, me, 0);
}

/* Serve all clients that are marked or due; returns how long to sleep then. */
static uint64_t
serve_all(struct evc__helper *h, uint32_t me)
{
	struct notify_cursor at = { NULL, 0 };
	uint64_t wait = SYNC_FOREVER, now;
	struct list *n, *tmp;
	struct evc__client *k;

	sync_lock(&h->tree->lock);
	now = list_empty(&h->waiting) ? 0 : sync_mono();
	LIST_EACH(n, tmp, &h->waiting) {
		k = LIST_OF(n, struct evc__client, waiting);
		if (k->due <= now)
			evc__notify_mark(&k->at);
	}
	while ((k = evc__notify_set_next(&h->clients, &at)) != NULL)
		if (evc__refgate_enter(&k->c->life.gate))
			serve_client(h, k, me);
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

/* A pidfd is readable: its thread or process has ended.  The event may be old,
   of a member that is gone: then the place is empty, or holds another member,
   and the pidfd of that member is not readable while its thread or process
   runs. */
static void
vanished(struct evc__helper *h, _Atomic(void *) *place)
{
	struct evc__member *m;
	evc_coord *c;
	bool same;

	sync_lock(&h->tree->lock);
	m = sync_load(place);
	c = m != NULL ? m->c : NULL;
	if (c != NULL && !evc__refgate_enter(&c->life.gate))
		c = NULL;
	sync_unlock(&h->tree->lock);
	if (c == NULL)
		return;
	/* A watch ends under its coordinator's lock alone. */
	sync_lock(&c->lock);
	sync_lock(&h->tree->lock);
	same = sync_load(place) == m && m->c == c;
	sync_unlock(&h->tree->lock);
	if (same && sync_fd_readable(m->pidfd))
		m->ops->vanished(m);
	sync_unlock(&c->lock);
	evc__refgate_leave(&c->life.gate);
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
		if (ev[i].data.ptr == NULL)
			sync_fd_drain(sync_load(&h->event));
		else
			vanished(h, ev[i].data.ptr);
}

static void *
helper_main(void *arg)
{
	struct evc__helper_thread *t = arg;
	struct evc__helper *h = t->h;
	evc_coord *last;
	uint64_t wait;
	uint32_t seq, me;

	evc__thread_rename("evcoord");
	self_helper = h;
	/* The making thread holds the lock until `number` is valid. */
	sync_lock(&h->tree->lock);
	me = t->number;
	sync_unlock(&h->tree->lock);
	for (;;) {
		/* The number first: a ring during the service ends the
		   sleep. */
		seq = sync_load_sc(&h->seq);
		if (sync_load_sc(&h->quit))
			return NULL;
		wait = serve_all(h, me);
		if (sync_load_sc(&h->leader) != me)
			break;
		/* Set by a call of this thread, or by a relieved thread, which
		   has woken this thread when it left. */
		last = sync_load(&h->last);
		if (last != NULL) {
			pthread_detach(pthread_self());
			h->tree->upper->end_abandoned(last);
			sync_free(h);
			return NULL;
		}
		sleep_once(h, seq, wait);
	}
	/* This thread has hung in a function, and was relieved. */
	sync_add(&h->tree->n_ended, 1);
	sync_store_sc(&t->state, HELPER_ENDED);
	return NULL;
}

/* ---- the threads ---- */

/* Tree's lock held: a free place for a thread; NULL: all threads hang. */
static struct evc__helper_thread *
room(struct evc__helper *h)
{
	unsigned i;

	for (i = 0; i < HELPER_THREADS; i++)
		if (sync_load(&h->thread[i].state) == HELPER_FREE)
			return &h->thread[i];
	return NULL;
}

/* Tree's lock held: join threads that were relieved and have ended. */
static void
reap(struct evc__helper *h)
{
	unsigned i;

	for (i = 0; i < HELPER_THREADS; i++) {
		struct evc__helper_thread *t = &h->thread[i];

		/* Destructors of the user's may still run in that thread. */
		if (sync_load(&t->state) == HELPER_ENDED &&
		    sync_thread_join(t->thread, NULL, 0) == 0) {
			sync_store(&t->state, HELPER_FREE);
			sync_add(&h->tree->n_ended, (uint32_t)-1);
		}
	}
}

/* Tree's lock held: mark all clients, for the leader before may have left
   any. */
static void
mark_all(struct evc__helper *h)
{
	struct notify_chunk *k;
	unsigned i;

	for (k = sync_load(&h->clients.first); k != NULL;
	     k = sync_load(&k->next))
		for (i = 0; i < k->n; i++)
			if (sync_load(&k->slot[i]) != NULL)
				evc__notify_mark(
					&(struct notify_place){ k, i });
}

bool
evc__helper_lead(struct evc__helper *h)
{
	struct evc__helper_thread *t = room(h);
	struct evc__spawn s;
	int e;

	if (t == NULL)
		return false;
	t->h = h;
	t->number = sync_load(&h->leader) + 1;
	evc__spawn_begin(&s, 0, false);
	e = sync_thread_create(&t->thread, &s.attr, helper_main, t);
	evc__spawn_end(&s);
	if (e != 0)
		return false;
	sync_store(&t->state, HELPER_RUNS);
	mark_all(h);
	/* At the end: the old leader goes on when no thread can be made. */
	sync_store_sc(&h->leader, t->number);
	return true;
}

void
evc__helper_join(struct evc__helper *h)
{
	unsigned i;

	for (i = 0; i < HELPER_THREADS; i++) {
		struct evc__helper_thread *t = &h->thread[i];

		if (sync_load(&t->state) != HELPER_FREE &&
		    !pthread_equal(t->thread, pthread_self()))
			sync_thread_join(t->thread, NULL, SYNC_FOREVER);
	}
}

static bool
overdue(const struct evc__tree *tree)
{
	uint64_t since = sync_load_sc(&tree->serving_ns);

	return since != 0 && sync_mono() > since + BACKOFF_MOST_NS;
}

void
evc__helper_relieve(evc_coord *c)
{
	struct evc__tree *tree = c->tree;

	if ((!overdue(tree) && sync_load(&tree->n_ended) == 0) ||
	    evc__helper_is_self(c))
		return;
	sync_lock(&tree->lock);
	reap(tree->helper);
	if (overdue(tree) && evc__helper_lead(tree->helper))
		sync_store_sc(&tree->serving_ns, 0);
	sync_unlock(&tree->lock);
}

bool
evc__helper_is_self(const evc_coord *c)
{
	return self_helper != NULL && self_helper->tree == c->tree;
}

bool
evc__helper_let_go(evc_coord *c)
{
	if (keeping != c)
		return false;
	*gone_with_it = true;
	return true;
}
