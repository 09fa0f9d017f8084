/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callbacks of the user's that run the loop on which they are called.
 *
 * A function that has taken several things off the loop, and calls the user for
 * each, says so around the calls.  During these calls an iteration of the loop
 * is part of a run inside them, and the rest of the things is handed over to
 * that run.
 */
#ifndef EVC_QUEUE_NESTED_H
#define EVC_QUEUE_NESTED_H

#include <ev.h>
#include <evcoord/unstable/inner_loop.h>
#include <stdbool.h>

#include "base/fork.h"

struct nested {
	ev_prepare prepare;
	struct ev_loop *loop; /* NULL: not begun, or ended */
	bool (*hand_over)(void *arg); /* false: nobody can take the rest */
	void *arg;
	unsigned fork_generation;
	bool handed; /* the run inside has the rest */
};

static inline void
nested_end(struct nested *n)
{
	if (n->loop == NULL)
		return;
	ev_ref(n->loop);
	ev_prepare_stop(n->loop, &n->prepare);
	n->loop = NULL;
}

static inline void
nested_on_prepare(struct ev_loop *loop, ev_prepare *w, int revents)
{
	struct nested *n = w->data;

	(void)loop;
	(void)revents;
	nested_end(n);
	/* In a fork child the rest is nobody's. */
	n->handed = evc__forked_since(n->fork_generation) ||
		    n->hand_over(n->arg);
}

/* Loop thread.  *n does not move before nested_end. */
static inline void
nested_begin(struct nested *n, struct ev_loop *loop,
	     bool (*hand_over)(void *arg), void *arg)
{
	n->loop = loop;
	n->hand_over = hand_over;
	n->arg = arg;
	n->handed = false;
	n->fork_generation = sync_load_relaxed(&evc__fork_generation);
	ev_prepare_init(&n->prepare, nested_on_prepare);
	n->prepare.data = n;
	ev_prepare_start(loop, &n->prepare);
	ev_unref(loop);
}

#endif
