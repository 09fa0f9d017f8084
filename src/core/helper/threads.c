/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads of the helper begin, and are joined; a thread that hangs is
 * relieved by another one (serve.c).
 *
 * Called by: helper.c, serve.c; joins, to relieve a helper that hangs.
 * Locks: the tree's lock; evc__helper_relieve may be called under a
 * coordinator's lock.  Atomics: leader, serving_ns, n_ended, state.
 */
#include "core/core.h"
#include "core/helper/threads.h"

#include "base/spawn.h"

/* Tree's lock held: an element of h->thread for a new thread; NULL: all threads
   hang. */
static struct evc__helper_thread *
free_element(struct evc__helper *h)
{
	unsigned i;

	for (i = 0; i < HELPER_THREADS; i++)
		if (sync_load(&h->thread[i].state) == HELPER_FREE)
			return &h->thread[i];
	return NULL;
}

/* Tree's lock held: join the threads that were relieved and have ended. */
static void
join_relieved(struct evc__helper *h)
{
	unsigned i;

	for (i = 0; i < HELPER_THREADS; i++) {
		struct evc__helper_thread *t = &h->thread[i];

		/* If destructors of the user's still run in the thread, a later
		   call joins the thread. */
		if (sync_load(&t->state) == HELPER_ENDED &&
		    sync_thread_join(t->thread, NULL, 0) == 0) {
			sync_store(&t->state, HELPER_FREE);
			sync_add(&h->tree->n_ended, (uint32_t)-1);
		}
	}
}

/* Tree's lock held: mark all clients, because the old leader may have left work
   of any client undone. */
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
	struct evc__helper_thread *t = free_element(h);
	struct evc__spawn s;
	int e;

	if (t == NULL)
		return false;
	t->h = h;
	t->number = sync_load(&h->leader) + 1;
	evc__spawn_begin(&s, 0, false);
	e = sync_thread_create(&t->thread, &s.attr, evc__helper_main, t);
	evc__spawn_end(&s);
	if (e != 0) {
		errno = e;
		return false;
	}
	sync_store(&t->state, HELPER_RUNS);
	mark_all(h);
	/* The leader changes last, because the old leader goes on when no
	   thread can be made. */
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

/* Has the leader been inside the same client for too long? */
static bool
leader_overdue(const struct evc__tree *tree)
{
	uint64_t since = sync_load_sc(&tree->serving_ns);

	return since != 0 && sync_mono() > since + BACKOFF_MOST_NS;
}

static void
relieve(struct evc__tree *tree)
{
	if (!leader_overdue(tree) && sync_load(&tree->n_ended) == 0)
		return;
	sync_lock(&tree->lock);
	join_relieved(tree->helper);
	if (leader_overdue(tree) && evc__helper_lead(tree->helper))
		sync_store_sc(&tree->serving_ns, 0);
	sync_unlock(&tree->lock);
}

void
evc__helper_relieve(evc_coord *c)
{
	if (!evc__helper_is_self(c))
		relieve(c->tree);
}

uint64_t
evc__helper_watch_over(struct evc__tree *tree)
{
	relieve(tree);
	return sync_load_sc(&tree->serving_ns) != 0 ||
			       sync_load(&tree->n_ended) != 0 ?
		       BACKOFF_MOST_NS :
		       SYNC_FOREVER;
}
