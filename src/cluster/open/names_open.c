/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clusters of this process with a name: the same coordinator and address give
 * the same object, with one more handle.
 * A name is taken before its cluster is open, so a second thread waits for the
 * first.  Handles of all clusters are counted under this lock: a cluster in the
 * list has a handle still, and so a scope.
 * In a fork child the lock may be held by a thread of the parent: the list
 * begins anew, and the parent's clusters are refused by number.
 * Called by: open.c.
 * Locks: a lock of its own, above the clusters' own; `opened` is atomic.
 */
#include "cluster/open/open.h"

#include "base/fork.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list names = { &names, &names };
/* atomic: moves under the lock when an opening ends; slept on */
static _Atomic uint32_t opened;

/* ---- forks ---- */

static void
fork_reset(void)
{
	sync_lock_init(&lock);
	list_init(&names);
	evc__names_forked();
}

bool
evc__names_fork_watch(void)
{
	evc__fork_also(fork_reset);
	return evc__fork_watch();
}

/* ---- names ---- */

static evc_cluster *
find_same(const evc_cluster *like)
{
	struct list *n, *tmp;
	evc_cluster *cl;

	LIST_EACH(n, tmp, &names) {
		cl = LIST_OF(n, evc_cluster, life.by_name);
		if (cl->life.parent == like->life.parent &&
		    strcmp(cl->name, like->name) == 0)
			return cl;
	}
	return NULL;
}

/* The cluster's stop was seen, or is about to be, or the cluster was given up: the
   name finds the cluster no more. */
static bool
is_over(evc_cluster *cl)
{
	bool yes = evc_should_stop(cl->scope);

	sync_lock(&cl->q.lock);
	/* The cluster stays closed after its scope's stop was taken back. */
	yes |= cl->stop.begun || cl->engine.closed ||
	       cl->engine.down[0] != '\0';
	sync_unlock(&cl->q.lock);
	return yes;
}

/* Lock held, given up during waits. */
static evc_status
enter_name(evc_cluster *cl, evc_cluster **ret_there)
{
	evc_cluster *there;

	for (;;) {
		there = find_same(cl);
		if (there == NULL) {
			list_append(&names, &cl->life.by_name);
			cl->life.is_opening = true;
			return 0;
		}
		if (there->life.is_opening) {
			evc__await_change(&lock, &opened, SYNC_FOREVER);
			continue;
		}
		if (is_over(there)) {
			list_remove(&there->life.by_name);
			continue;
		}
		if (strcmp(there->uri, cl->uri) != 0)
			return evc_refuse(-EVC_ALREADY_EXISTS,
					  "\"%s\" is open as %.70s", cl->name,
					  there->uri);
		sync_add(&there->handles, 1);
		*ret_there = there;
		return 0;
	}
}

evc_status
evc__names_enter(evc_cluster *cl, evc_cluster **ret_there)
{
	evc_status st;

	*ret_there = NULL;
	sync_lock(&lock);
	st = enter_name(cl, ret_there);
	sync_unlock(&lock);
	return st;
}

void
evc__names_opened(evc_cluster *cl, bool open)
{
	sync_lock(&lock);
	if (!open)
		list_remove(&cl->life.by_name);
	if (cl->life.is_opening) {
		cl->life.is_opening = false;
		sync_add(&opened, 1);
		sync_futex_wake(&opened);
	}
	sync_unlock(&lock);
}

bool
evc__names_leave(evc_cluster *cl)
{
	bool last;

	sync_lock(&lock);
	last = sync_sub(&cl->handles, 1) == 1;
	if (last)
		list_remove(&cl->life.by_name);
	sync_unlock(&lock);
	return last;
}
