/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completions on the loop, in turns, by the holder of `called`; or on the calling
 * thread, when the loop is gone.
 * Called by: pool_done.c, pool_job.c, pool_thread.c and pool.c ring; the loop
 * (on_message).
 * Locks: none; `called` is the right to take jobs out of boxes and chain.
 */
#include "pool/pool.h"

#include "base/list.h"
#include "queue/nested.h"

static bool
is_gone(struct pool_port *p)
{
	return sync_load(&p->ending) & PORT_GONE;
}

static void
complete_job(struct pool_port *p, evc_job *job)
{
	void (*done)(evc_job *, evc_status) = job->done;
	evc_status result = is_gone(p) ? EVC_CANCELLED : job->result_;

	/* The count goes down before the call: done may free the pool. */
	if (sync_load_relaxed(JOB_STATE(job)) & JOB_FOREIGN)
		sync_sub(&p->n_foreign, 1);
	else
		sync_store(&p->n_own, sync_load_relaxed(&p->n_own) - 1);
	sync_store_relaxed(JOB_STATE(job), 0);
	if (done != NULL)
		done(job, result);
}

/* The completions of one turn. */
struct turn {
	struct nested nested;
	struct pool_port *p;
	unsigned left;      /* completions left in this turn */
	/* the box of the job that is being completed; NULL: none */
	struct pool_box *b;
	uint64_t head;      /* the head of b */
};

/* A turn inside has the rest; a fork child made in a done has nothing to do
   with the rest. */
static bool
turn_handed(const struct turn *k)
{
	return k->nested.handed || evc__port_inherited(k->p);
}

static void
empty_box(struct turn *k, struct pool_box *b)
{
	uint64_t h = sync_load_relaxed(&b->head), t = sync_load_sc(&b->tail);

	k->b = b;
	for (; h != t && k->left > 0; k->left--) {
		evc_job *job = b->slot[h % POOL_BOX];

		if (h + 4 < t)
			__builtin_prefetch(b->slot[(h + 4) % POOL_BOX], 1);
		k->head = ++h;
		if (h % 32 == 0)
			sync_store(&b->head, h);
		complete_job(k->p, job);
		if (turn_handed(k))
			return;
	}
	k->b = NULL;
	sync_store(&b->head, h);
}

static void
empty_chain(struct turn *k)
{
	struct pool_port *p = k->p;
	evc_job *job, *next, *chain;

	if (sync_load_sc(&p->chain) != NULL && p->todo == NULL) {
		chain = sync_xchg(&p->chain, NULL);
		for (job = chain; job != NULL; job = next) {
			next = job->next_;
			job->next_ = p->todo;
			p->todo = job;
		}
	}
	for (; p->todo != NULL && k->left > 0 && !turn_handed(k); k->left--) {
		job = p->todo;
		p->todo = job->next_;
		complete_job(p, job);
	}
}

/* Are there finished jobs? */
static bool
any_finished(struct pool_port *p)
{
	uint32_t i, n = sync_load_sc(&p->n_boxes);

	for (i = 0; i < n; i++) {
		struct pool_box *b = sync_load_sc(&p->box[i]);

		if (b != NULL &&
		    sync_load_relaxed(&b->head) != sync_load_sc(&b->tail))
			return true;
	}
	return sync_load_sc(&p->chain) != NULL;
}

static void
empty_boxes(struct turn *k)
{
	struct pool_port *p = k->p;
	uint32_t i;

	for (i = 0;
	     i < sync_load(&p->n_boxes) && k->left > 0 && !turn_handed(k);
	     i++) {
		struct pool_box *b = sync_load(&p->box[i]);

		if (b != NULL)
			empty_box(k, b);
	}
}

static void on_message(evc_message *m, evc_status why);

/* For the holder of `called`: hand the right to the loop.  The message has a
   reference; if there is no loop, the reference is the caller's. */
static bool
post_turn(struct pool_port *p)
{
	sync_add(&p->refs, 1);
	p->message.fn = on_message;
	return evc_post_message(p->loop, &p->message) == 0;
}

/* For the holder of `called`: true: there is no job, and the right is given
   back. */
static bool
give_back(struct pool_port *p)
{
	if (any_finished(p))
		return false;
	/* The right first, then the look: a thread that comes in between takes
	   the right, or we take it again. */
	sync_xchg(&p->called, 0);
	return !any_finished(p) || sync_xchg(&p->called, 1) != 0;
}

/* A done runs the loop: the right goes to a message inside that run, with all
   jobs that are left. */
static bool
hand_turn_over(void *arg)
{
	struct turn *k = arg;

	if (!post_turn(k->p)) {
		sync_sub(&k->p->refs, 1);
		return false;
	}
	if (k->b != NULL)
		sync_store(&k->b->head, k->head);
	return true;
}

/* For the holder of `called`: complete finished jobs, at most a slice, and give
   the right back or hand it on to the loop's next turn. */
static void
serve_finished(struct turn *k)
{
	struct pool_port *p = k->p;

	for (;;) {
		empty_boxes(k);
		empty_chain(k);
		if (turn_handed(k))
			return;
		if (k->left == 0) {
			if (!is_gone(p)) {
				if (post_turn(p))
					return;
				sync_sub(&p->refs, 1);
				evc__port_lost(p);
			}
			k->left = POOL_SLICE;
		} else if (give_back(p)) {
			return;
		}
	}
}

void
evc__port_ring(struct pool_port *p)
{
	struct turn k = { .p = p, .left = POOL_SLICE };
	int old;

	if (sync_load_sc(&p->called) != 0 || sync_xchg(&p->called, 1) != 0)
		return;
	/* A thread that comes when the loop has completed all jobs posts no
	   message: the message could arrive when the pool and its last job are
	   long gone. */
	if (give_back(p) || post_turn(p))
		return;
	evc__port_lost(p);
	/* A cancellation in a done would end the thread while it has the right
	   to ring, and all other finished jobs would stay. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	serve_finished(&k);
	pthread_setcancelstate(old, NULL);
	evc__port_release_hold(p);
	evc__port_drop(p);
}

static void
on_message(evc_message *m, evc_status why)
{
	struct pool_port *p = LIST_OF(m, struct pool_port, message);
	struct turn k = { .p = p, .left = POOL_SLICE };

	if (why != 0)
		evc__port_lost(p);
	else
		nested_begin(&k.nested, evc_reactor_inner_loop(p->r),
			     hand_turn_over, &k);
	serve_finished(&k);
	nested_end(&k.nested);
	if (evc__port_inherited(p))
		return;
	evc__port_settle(p);
	evc__port_drop(p);
}

void
evc__ports_ring(evc_pool *pool)
{
	struct pool_port *p;

	for (p = sync_load(&pool->ports); p != NULL; p = sync_load(&p->next))
		if (sync_load_sc(&p->chain) != NULL)
			evc__port_ring(p);
}
