/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All watchers of a cluster or an engine on a loop, as one thing that a fork
 * child can drop.
 *
 * A child that keeps its parent's loop, or destroys it, must serve none of the
 * parent's watchers.  So each callback asks first whether its owner was
 * inherited.  The first callback that finds so takes all watchers of the owner
 * off the loop, and takes no lock.  An ev_fork, which libev calls first of all
 * in a child, asks for owners that would keep the loop waiting.
 */
#ifndef EVC_CLUSTER_ON_LOOP_H
#define EVC_CLUSTER_ON_LOOP_H

#include <ev.h>

#include "base/fork.h"

struct on_loop {
	unsigned fork_generation; /* creation: the process of the owner */
	/* ---- loop thread only ---- */
	struct ev_loop *loop;     /* NULL: the owner has no watcher there */
	struct ev_fork forked;
	/* Stop all other watchers of the owner, and give back its
	   references. */
	void (*leave)(struct on_loop *on, struct ev_loop *loop);
};

/* With the owner, after evc__fork_watch. */
static inline void
on_loop_init(struct on_loop *on,
	     void (*leave)(struct on_loop *on, struct ev_loop *loop))
{
	on->fork_generation = sync_load_relaxed(&evc__fork_generation);
	on->loop = NULL;
	on->leave = leave;
}

/* Is this a fork child of the owner's process?  Any thread. */
static inline bool
on_loop_is_foreign(const struct on_loop *on)
{
	return evc__forked_since(on->fork_generation);
}

/* The owner has no watcher on the loop any more, or never had any. */
static inline void
on_loop_end(struct on_loop *on)
{
	if (on->loop == NULL)
		return;
	ev_ref(on->loop);
	ev_fork_stop(on->loop, &on->forked);
	on->loop = NULL;
}

/* The same question on the loop: after true no watcher of the owner is
   there. */
static inline bool
on_loop_inherited(struct on_loop *on)
{
	struct ev_loop *loop = on->loop;

	if (!on_loop_is_foreign(on))
		return false;
	if (loop != NULL) {
		on_loop_end(on);
		on->leave(on, loop);
	}
	return true;
}

static inline void
on_loop_forked(struct ev_loop *loop, struct ev_fork *w, int events)
{
	(void)loop;
	(void)events;
	(void)on_loop_inherited(w->data);
}

/* Before the owner's first watcher. */
static inline void
on_loop_begin(struct on_loop *on, struct ev_loop *loop)
{
	on->loop = loop;
	ev_fork_init(&on->forked, on_loop_forked);
	on->forked.data = on;
	ev_fork_start(loop, &on->forked);
	ev_unref(loop);
}

#endif
