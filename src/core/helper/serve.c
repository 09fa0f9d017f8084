/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads of the helper.  A single thread leads: the leader serves the
 * clients that a ring has marked, or that are due, and then sleeps.
 *
 * Called by: threads.c, as a thread's function.
 * Locks: the tree's lock, given up around all calls.  Atomics: leader,
 * serving_ns, n_ended, state, abandoned.
 */

/*
 * A function of the user's may hang (a hook without a loop, unblock, a cancel
 * hook), and the helper must still wake other members.  So a join that finds
 * the leader inside the same client for too long makes another thread.  The new
 * thread leads from then on, and serves all clients once.  The old thread, now
 * relieved, finishes its call when the function returns, and ends.  Hooks of a
 * coordinator still run one after the other.
 */
#include "core/core.h"
#include "core/helper/job.h"
#include "core/helper/threads.h"

#include "base/deadline.h"
#include "base/self.h"

#define AGAIN_NS UINT64_C(1000000) /* pause before the next look at a member */

/* The helper that the calling thread belongs to; NULL: none. */
static __thread struct evc__helper *self_helper;
/* The coordinator with the scope join that this thread drives now, or NULL; and
   a flag to set when this coordinator is freed meanwhile. */
static __thread const evc_coord *joining;
static __thread bool *joining_gone;
/* The coordinator that this thread serves now, or NULL. */
static __thread const evc_coord *serving;

/* Tree's lock held, because the leader changes under this lock.  Store when the
   leader began to serve its present client (0: no client); a join that reads an
   old time relieves the leader. */
static void
set_serving(struct evc__helper *h, uint32_t number, uint64_t since)
{
	if (sync_load_sc(&h->leader) == number)
		sync_store_sc(&h->tree->serving_ns, since);
	/* A thread before has hung: the watch thread looks at this one. */
	if (since != 0 && number > 1)
		evc__watch_wake(h->tree);
}

void
evc__helper_inherited(void)
{
	self_helper = NULL;
	if (joining != NULL)
		*joining_gone = true;
	joining = NULL;
	serving = NULL;
}

/* No lock: evc_free waits for this thread.  false: c is being freed. */
static bool
enter_coord(evc_coord *c)
{
	if (!evc__refgate_enter(&c->life.gate))
		return false;
	sync_add(&c->helper.n_inside, 1);
	serving = c;
	return true;
}

static void
leave_coord(evc_coord *c)
{
	serving = NULL;
	sync_sub(&c->helper.n_inside, 1);
	evc__refgate_leave(&c->life.gate);
}

/* To be called after each function of the user's.  If the function has forked,
   the thread in the child belongs to no helper, and ends here. */
static void
end_in_child(const struct evc__helper *h)
{
	if (self_helper != h)
		pthread_exit(NULL);
}

/* Drive the scope join of the client's coordinator.  false: the coordinator is
   gone. */
static bool
drive_scope_join(struct evc__client *client, uint64_t *ret_wait)
{
	struct evc__helper *h = client->h;
	evc_coord *c = client->c;
	bool busy, gone = false;

	*ret_wait = SYNC_FOREVER;
	sync_lock(&c->tree->lock);
	busy = client->joining;
	client->joining = true;
	sync_unlock(&c->tree->lock);
	if (busy)
		return true; /* another thread hangs in this scope join */
	joining = c;
	joining_gone = &gone;
	(void)h->tree->upper->serve(c, &gone, ret_wait);
	end_in_child(h);
	joining = NULL;
	if (gone)
		return false;
	sync_lock(&c->tree->lock);
	client->joining = false;
	sync_unlock(&c->tree->lock);
	return true;
}

/* Tree's lock held, given up meanwhile.  The caller has entered the client's
   coordinator, which this function leaves while log hooks are called, because a
   hook that hangs must not keep a coordinator below the hook's own.  false: the
   client has gone meanwhile. */
static bool
log_client(struct evc__helper *h, struct evc__client *client, uint32_t number)
{
	struct notify_place at = client->at;
	evc_coord *c = client->c;

	set_serving(h, number, sync_mono() | 1);
	sync_unlock(&h->tree->lock);
	h->tree->upper->log_news(c);
	end_in_child(h);
	if (sync_load_sc(&h->tree->log.n) == 0) {
		sync_lock(&h->tree->lock);
		return true;
	}
	leave_coord(c);
	h->tree->upper->drain_log(h->tree);
	sync_lock(&h->tree->lock);
	return sync_load(&at.k->slot[at.i]) == client &&
	       enter_coord(client->c);
}

/* Tree's lock held, given up meanwhile.  The caller has entered the client's
   coordinator; this function leaves the coordinator. */
static void
serve_client(struct evc__helper *h, struct evc__client *client, uint32_t number)
{
	evc_coord *c;
	uint64_t wait, jobs;

	/* Lines come first, because a hook may take long. */
	if (!log_client(h, client, number)) {
		set_serving(h, number, 0);
		return;
	}
	c = client->c;
	sync_unlock(&h->tree->lock);
	h->tree->upper->run_hooks(c, NULL);
	end_in_child(h);
	jobs = evc__helper_jobs_run(c);
	if (drive_scope_join(client, &wait)) {
		wait = jobs < wait ? jobs : wait;
		sync_lock(&h->tree->lock);
		if (sync_load_sc(&h->leader) != number) {
			/* Another thread leads now.  `wait` may be out of date,
			   and the leader has left out the job or scope join in
			   which this thread hung.  So the leader serves the
			   client again. */
			evc__notify_mark(&client->at);
			evc__helper_wake(h);
		} else {
			list_remove(&client->waiting);
			if (wait != SYNC_FOREVER) {
				client->due = sync_mono() + wait;
				list_append(&h->waiting, &client->waiting);
			}
		}
		sync_unlock(&h->tree->lock);
		leave_coord(c);
	}
	serving = NULL;
	sync_lock(&h->tree->lock);
	set_serving(h, number, 0);
}

/* Serve all clients that are marked or due; returns how long to sleep then. */
static uint64_t
serve_all(struct evc__helper *h, uint32_t number)
{
	struct notify_cursor at = { NULL, 0 };
	uint64_t wait = SYNC_FOREVER, now;
	struct list *n, *tmp;
	struct evc__client *client;

	sync_lock(&h->tree->lock);
	now = list_empty(&h->waiting) ? 0 : sync_mono();
	LIST_EACH(n, tmp, &h->waiting) {
		client = LIST_OF(n, struct evc__client, waiting);
		if (client->due <= now)
			evc__notify_mark(&client->at);
	}
	while ((client = evc__notify_set_next(&h->clients, &at)) != NULL)
		if (enter_coord(client->c))
			serve_client(h, client, number);
	now = list_empty(&h->waiting) ? 0 : sync_mono();
	LIST_EACH(n, tmp, &h->waiting) {
		client = LIST_OF(n, struct evc__client, waiting);
		wait = client->due <= now	? 0 :
		       client->due - now < wait ? client->due - now :
						  wait;
	}
	sync_unlock(&h->tree->lock);
	return wait;
}

/* A pidfd is readable: its thread or process has ended.  The event may be out
   of date, when the member has left the set meanwhile.  Then the place is
   empty, or has a new member, with a pidfd that is not readable while its
   thread or process runs.  true: the member is looked at again after a moment. */
static bool
serve_pidfd(struct evc__helper *h, _Atomic(void *) *place)
{
	struct evc__member *m;
	evc_coord *c;
	bool still_watched, again = false;

	sync_lock(&h->tree->lock);
	m = sync_load(place);
	c = m != NULL ? m->c : NULL;
	if (c != NULL && !enter_coord(c))
		c = NULL;
	sync_unlock(&h->tree->lock);
	if (c == NULL)
		return false;
	/* A watch can end only under the lock of its coordinator. */
	sync_lock(&c->lock);
	sync_lock(&h->tree->lock);
	still_watched = sync_load(place) == m && m->c == c;
	sync_unlock(&h->tree->lock);
	if (still_watched && sync_fd_readable(m->pidfd)) {
		m->ops->vanished(m);
		again = sync_load(place) == m;
	}
	sync_unlock(&c->lock);
	c->tree->upper->run_later(c);
	end_in_child(h);
	leave_coord(c);
	return again;
}

/* Call the log hooks for lines that other threads have put into the queue. */
static void
drain_log(struct evc__helper *h, uint32_t number)
{
	if (sync_load_sc(&h->tree->log.n) == 0)
		return;
	sync_lock(&h->tree->lock);
	set_serving(h, number, sync_mono() | 1);
	sync_unlock(&h->tree->lock);
	h->tree->upper->drain_log(h->tree);
	sync_lock(&h->tree->lock);
	set_serving(h, number, 0);
	sync_unlock(&h->tree->lock);
}

static void
sleep_once(struct evc__helper *h, uint32_t seq, uint64_t ns)
{
	struct epoll_event ev[16];
	int epoll = sync_load_sc(&h->epoll), n, i;
	bool again = false;

	if (epoll < 0) {
		sync_futex_wait(&h->seq, seq, ns);
		return;
	}
	n = sync_epoll_wait(epoll, ev, 16, ns);
	for (i = 0; i < n; i++)
		if (ev[i].data.ptr == NULL)
			sync_fd_drain(sync_load(&h->event));
		else
			again |= serve_pidfd(h, ev[i].data.ptr);
	if (again)
		evc__nap(AGAIN_NS);
}

void *
evc__helper_main(void *arg)
{
	struct evc__helper_thread *t = arg;
	struct evc__helper *h = t->h;
	evc_coord *abandoned;
	uint64_t wait, next;
	uint32_t seq, number;

	evc__thread_rename("evcoord");
	self_helper = h;
	/* The thread that made this thread holds the lock until `number` is
	   valid. */
	sync_lock(&h->tree->lock);
	number = t->number;
	sync_unlock(&h->tree->lock);
	for (;;) {
		/* seq is read before the service, so a ring during the service
		   ends the sleep. */
		seq = sync_load_sc(&h->seq);
		drain_log(h, number);
		if (sync_load_sc(&h->quit))
			return NULL;
		if (sync_load_sc(&h->leader) != number)
			break;
		wait = serve_all(h, number);
		if (sync_load_sc(&h->leader) != number)
			break;
		/* A call of this thread may have set `abandoned`, or a call of
		   a relieved thread, which has then woken this thread. */
		abandoned = sync_load(&h->abandoned);
		if (abandoned != NULL) {
			pthread_detach(pthread_self());
			h->tree->upper->end_abandoned(abandoned);
			sync_free(h);
			return NULL;
		}
		next = evc__helper_watch_over(h->tree);
		wait = next < wait ? next : wait;
		/* Ringing threads raise seq, and then look at `sleeps`. */
		sync_store_sc(&h->sleeps, true);
		if (sync_load_sc(&h->seq) == seq)
			sleep_once(h, seq, wait);
		sync_store_sc(&h->sleeps, false);
	}
	/* A join, or the watch thread, has relieved this thread while the
	   thread hung in a function. */
	sync_add(&h->tree->n_ended, 1);
	sync_store_sc(&t->state, HELPER_ENDED);
	/* The leader joins this thread, or the watch thread when the leader
	   hangs. */
	evc__helper_wake(h);
	evc__watch_wake(h->tree);
	return NULL;
}

bool
evc__helper_inside(const evc_coord *c)
{
	return sync_load_sc(&c->helper.n_inside) > (serving == c ? 1 : 0);
}

bool
evc__helper_is_self(const evc_coord *c)
{
	return self_helper != NULL && self_helper->tree == c->tree;
}

bool
evc__helper_let_go(evc_coord *c)
{
	if (joining != c)
		return false;
	*joining_gone = true;
	return true;
}
