/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One call of the library, made again and again by a thread of its own; each
 * time that thread stands before another one of its operations, while the test
 * does what must not go wrong meanwhile.  So no window is forgotten, and none
 * hangs on a name in src/.
 */
#ifndef TESTS_SCHEDULES_STEPS_H
#define TESTS_SCHEDULES_STEPS_H

#include "schedules.h"

#include "../support/scope_util.h"

struct stepped {
	struct actor a;
	evc_fn *fn;
	void *arg;
	int step;
	atomic_int hold;
};

static MAYBE_UNUSED evc_status
stepped_fn(evc_coord *c, void *arg)
{
	struct stepped *s = arg;

	atomic_store(&s->hold, seam_hold_mine(NULL, NULL, s->step));
	return s->fn(c, s->arg);
}

/* Does a thread sleep, and not in a hold? */
static MAYBE_UNUSED bool
sleeps(struct actor *a, double while_)
{
	char state[128];
	long before;

	before = task_sleeps(atomic_load(&a->tid));
	t_sleep(while_);
	task_line(atomic_load(&a->tid), "State:", state, sizeof(state));
	return before == task_sleeps(atomic_load(&a->tid)) &&
	       strchr(state, 'S') != NULL;
}

/* Begin the call, beside other holds.  true: it stands before its step-th
   operation; false: it has fewer, and has returned, or sleeps in the library. */
static MAYBE_UNUSED bool
step_beside(struct stepped *s, int step, evc_fn *fn, evc_coord *c, void *arg)
{
	s->fn = fn;
	s->arg = arg;
	s->step = step;
	atomic_store(&s->hold, -1);
	actor_begin(&s->a, stepped_fn, c, s);
	UNTIL(atomic_load(&s->hold) >= 0);
	UNTIL(seam_is_held(atomic_load(&s->hold)) ||
	      atomic_load(&s->a.done) ||
	      (sleeps(&s->a, 0.02) && !seam_is_held(atomic_load(&s->hold))));
	return seam_is_held(atomic_load(&s->hold));
}

/* The same; holds of the step before are forgotten. */
static MAYBE_UNUSED bool
step_begin(struct stepped *s, int step, evc_fn *fn, evc_coord *c, void *arg)
{
	seam_reset();
	return step_beside(s, step, fn, c, arg);
}

/* Let it go on, and wait for it: what its call returned. */
static MAYBE_UNUSED evc_status
step_end(struct stepped *s)
{
	seam_release(atomic_load(&s->hold));
	return actor_end(&s->a);
}

/* The other side, which may have to wait for who stands there: has it
   returned?  Else it sleeps. */
static MAYBE_UNUSED bool
has_ended(struct actor *b)
{
	UNTIL(atomic_load(&b->tid) != 0);
	UNTIL(atomic_load(&b->done) || sleeps(b, 0.003));
	return atomic_load(&b->done);
}

/* All operations of a call were stood before, and there were some. */
#define STEPS(step) ck_assert_int_gt((step), 8)

/* ---- a small tree ---- */

enum { ROOT, LEFT, LEAF, RIGHT, N_NODES };

/* LEFT and RIGHT are scopes of ROOT, LEAF is one of LEFT. */
struct tree {
	struct ev_loop *loop; /* the home of all; NULL: none */
	evc_coord *node[N_NODES];
	int fd[N_NODES];
	atomic_int told[N_NODES]; /* their stop hooks */
};

static MAYBE_UNUSED void
tree_make(struct tree *t, bool with_loop)
{
	int i;

	memset(t, 0, sizeof(*t));
	t->loop = with_loop ? ev_loop_new(0) : NULL;
	t->node[ROOT] = new_coord(t->loop);
	t->node[LEFT] = ready_scope(t->node[ROOT], "left", NULL);
	t->node[LEAF] = ready_scope(t->node[LEFT], "leaf", NULL);
	t->node[RIGHT] = ready_scope(t->node[ROOT], "right", NULL);
	for (i = 0; i < N_NODES; i++) {
		t->fd[i] = evc_stop_fd(t->node[i]);
		ck_assert_int_ge(t->fd[i], 0);
	}
}

/* Hooks for all: they show who was told. */
static MAYBE_UNUSED void
tree_hook(struct tree *t)
{
	int i;

	for (i = 0; i < N_NODES; i++)
		OK(evc_on_stop(t->node[i], "hook", count_hook, &t->told[i],
			       NULL, NULL));
	turn(t->loop);
}

static MAYBE_UNUSED void
tree_free(struct tree *t)
{
	int i;

	for (i = N_NODES - 1; i >= 0; i--)
		OK(evc_free(t->node[i]));
	if (t->loop != NULL)
		ev_loop_destroy(t->loop);
}

/* It is stopped, and so is all below it; what shows that is settled. */
static MAYBE_UNUSED void
stopped_below(struct tree *t, int top)
{
	static const bool below[N_NODES][N_NODES] = {
		[ROOT] = {true, true, true, true},
		[LEFT] = {[LEFT] = true, [LEAF] = true},
		[LEAF] = {[LEAF] = true},
		[RIGHT] = {[RIGHT] = true},
	};
	int i;

	for (i = 0; i < N_NODES; i++)
		if (below[top][i]) {
			ck_assert_msg(evc_should_stop(t->node[i]),
				      "node %d was not stopped", i);
			ck_assert_msg(readable(t->fd[i]),
				      "node %d: its descriptor was not told",
				      i);
		}
}

static MAYBE_UNUSED void
stopped_nowhere(struct tree *t)
{
	int i;

	for (i = 0; i < N_NODES; i++) {
		ck_assert_msg(!evc_should_stop(t->node[i]),
			      "node %d is stopped", i);
		ck_assert(!readable(t->fd[i]));
	}
}

#endif
