/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the threads back to the loop: completions, and what keeps the loop's run
 * and all joins waiting for them.
 */
#include "workers/pool.h"

#include "base/self.h"

static void on_stop(evc_task *t, void *arg);

static const evc_task_class jobs_class = {
	.name = "jobs of a pool",
	.on_stop = on_stop,
	.flags = EVC_LATE,
};

#define PORT_AT(x, field) \
	((struct pool_port *)(void *)((char *)(x) - \
				      offsetof(struct pool_port, field)))

/* ---- what is over ---- */

static void
over(evc_job *job, evc_status result)
{
	uint32_t s = sync_load_relaxed(JOB_STATE(job));

	job->result_ = result;
	sync_store(JOB_STATE(job), JOB_OVER | (s & JOB_FOREIGN));
}

static void
push(struct pool_port *p, evc_job *first, evc_job *last)
{
	evc_job *next = sync_load_relaxed(&p->chain);

	do
		last->next_ = next;
	while (!sync_cas(&p->chain, &next, first));
}

/* The thread's own box; NULL: it goes without. */
static struct pool_box *
box_of(struct pool_port *p, const struct pool_seat *s)
{
	struct pool_box *b;
	uint32_t n;

	if (s == NULL || s->index >= POOL_BOXES)
		return NULL;
	b = sync_load_relaxed(&p->box[s->index]);
	if (b != NULL)
		return b;
	b = sync_alloc_aligned(POOL_LINE, sizeof *b);
	if (b == NULL)
		return NULL;
	/* Before the look whether the loop was rung, as its tail. */
	sync_store_sc(&p->box[s->index], b);
	n = sync_load(&p->n_boxes);
	while (n <= s->index && !sync_cas(&p->n_boxes, &n, s->index + 1))
		;
	return b;
}

void
evc__port_finish(struct pool_port *p, struct pool_seat *seat, evc_job *job,
		 evc_status result)
{
	struct pool_box *b = box_of(p, seat);

	over(job, result);
	/* The job is the loop's from here on. */
	if (b == NULL || !box_put(b, job))
		push(p, job, job);
	evc__port_ring(p);
}

void
evc__port_sweep(struct pool_port *p)
{
	struct pool_ring *rings[2] = { &p->own, &p->foreign };
	evc_job *first, *last, *job;
	uint64_t n;
	int i;

	for (i = 0; i < 2; i++) {
		first = evc__ring_sweep(rings[i], &n);
		if (first == NULL)
			continue;
		for (job = last = first; job != NULL; job = job->next_) {
			over(job, EVC_CANCELLED);
			last = job;
		}
		sync_add(&p->n_cancelled, n);
		push(p, first, last);
	}
}

/* ---- what keeps others waiting ---- */

static void
lost_loop(struct pool_port *p)
{
	sync_or(&p->ending, PORT_GONE);
	evc__port_sweep(p);
}

static void
stopped(struct pool_port *p)
{
	/* Then the sweep: who submits puts the job into its ring and then looks
	   here. */
	sync_or(&p->ending, PORT_STOPPED);
	if (!p->finish) {
		evc__port_sweep(p);
		evc__port_ring(p);
	}
	evc__ring_room(&p->foreign);
}

static void
on_stop(evc_task *t, void *arg)
{
	(void)arg;
	stopped(PORT_AT(t, task));
}

/* Loop thread. */
static evc_status
begin_task(struct pool_port *p)
{
	evc_status st = evc_task_begin(p->r, &p->task, &jobs_class);

	if (st < 0)
		return st;
	sync_store_relaxed(&p->tid, evc__tid());
	sync_add(&p->refs, 1);
	sync_store(&p->active, evc__tid());
	return 0;
}

static evc_status
take_hold(struct pool_port *p)
{
	evc_member_opts late = { .flags = EVC_LATE };
	evc_status st = 0;

	sync_lock(&p->lock);
	if (p->hold == 0)
		st = evc_hold_begin(p->pool->scope, "jobs", &late, &p->hold);
	sync_unlock(&p->lock);
	return st;
}

void
evc__port_release_hold(struct pool_port *p)
{
	if (!p->apart)
		return;
	sync_lock(&p->lock);
	if (p->hold != 0 && sync_load_sc(&p->n_foreign) == 0 &&
	    sync_load_relaxed(&p->n_own) == 0) {
		evc_hold_end(p->pool->scope, p->hold);
		p->hold = 0;
	}
	sync_unlock(&p->lock);
}

evc_status
evc__port_activate(struct pool_port *p)
{
	int active = sync_load_relaxed(&p->active);
	evc_status st;

	/* The loop may have begun it since the caller has looked at tid. */
	if (active != 0)
		return active == evc__tid() ? 0 : -EVC_FAILED_PRECONDITION;
	st = begin_task(p);
	if (st < 0)
		return st;
	if (p->apart)
		st = take_hold(p);
	if (st < 0) {
		evc__port_settle(p);
		return st;
	}
	if (sync_load_sc(&p->n_foreign) == 0)
		sync_and(&p->ending, ~(uint32_t)PORT_STOPPED);
	/* A late task is not told: what is about to be put in is refused; of
	   what others have put in the wake hears. */
	if (evc_should_stop(p->c))
		sync_or(&p->ending, PORT_STOPPED);
	return st;
}

/* Let the loop look at n_foreign: it moves first. */
static evc_status
wake(struct pool_port *p)
{
	evc_status st;

	if (sync_xchg(&p->waking, 1) != 0)
		return 0;
	sync_add(&p->refs, 1);
	st = evc_post_mail(p->loop, &p->wake);
	if (st < 0) {
		sync_store(&p->waking, 0);
		sync_sub(&p->refs, 1);
	}
	return st;
}

evc_status
evc__port_expect(struct pool_port *p)
{
	evc_status st = 0;

	if (sync_load_sc(&p->n_foreign) == 0 && sync_load_sc(&p->active) == 0)
		sync_and(&p->ending, ~(uint32_t)PORT_STOPPED);
	/* While it is not 0 the task does not end. */
	if (sync_add(&p->n_foreign, 1) == 0)
		st = wake(p);
	if (st == 0 && p->apart)
		st = take_hold(p);
	if (st < 0)
		sync_sub(&p->n_foreign, 1);
	return st;
}

void
evc__port_unexpect(struct pool_port *p)
{
	/* The loop may have begun the task for it. */
	if (sync_sub(&p->n_foreign, 1) == 1)
		(void)wake(p);
}

void
evc__port_settle(struct pool_port *p)
{
	if (sync_load_relaxed(&p->n_own) != 0 ||
	    sync_load_sc(&p->n_foreign) != 0)
		return;
	evc__port_release_hold(p);
	if (sync_load_relaxed(&p->active) != evc__tid())
		return;
	evc_task_end(&p->task);
	evc__port_inactive(p);
}

void
evc__port_inactive(struct pool_port *p)
{
	/* Not the last reference: the caller has one. */
	if (sync_xchg(&p->active, 0) != 0)
		sync_sub(&p->refs, 1);
}

/* ---- on the loop ---- */

static bool
is_gone(struct pool_port *p)
{
	return sync_load(&p->ending) & PORT_GONE;
}

static void
complete(struct pool_port *p, evc_job *job)
{
	void (*done)(evc_job *, evc_status) = job->done;
	evc_status result = is_gone(p) ? EVC_CANCELLED : job->result_;

	/* Counted out before: done may free the pool. */
	if (sync_load_relaxed(JOB_STATE(job)) & JOB_FOREIGN)
		sync_sub(&p->n_foreign, 1);
	else
		sync_store(&p->n_own, sync_load_relaxed(&p->n_own) - 1);
	sync_store_relaxed(JOB_STATE(job), 0);
	if (done != NULL)
		done(job, result);
}

static void
empty_box(struct pool_port *p, struct pool_box *b, unsigned *left)
{
	uint64_t h = sync_load_relaxed(&b->head), t = sync_load_sc(&b->tail);

	for (; h != t && *left > 0; --*left) {
		evc_job *job = b->slot[h % POOL_BOX];

		if (h + 4 < t)
			__builtin_prefetch(b->slot[(h + 4) % POOL_BOX], 1);
		if (++h % 32 == 0)
			sync_store(&b->head, h);
		complete(p, job);
	}
	sync_store(&b->head, h);
}

static void
empty_chain(struct pool_port *p, unsigned *left)
{
	evc_job *job, *next, *chain;

	if (sync_load_sc(&p->chain) != NULL && p->todo == NULL) {
		chain = sync_xchg(&p->chain, NULL);
		for (job = chain; job != NULL; job = next) {
			next = job->next_;
			job->next_ = p->todo;
			p->todo = job;
		}
	}
	for (; p->todo != NULL && *left > 0; --*left) {
		job = p->todo;
		p->todo = job->next_;
		complete(p, job);
	}
}

/* Has anything come? */
static bool
any(struct pool_port *p)
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
empty_boxes(struct pool_port *p, unsigned *left)
{
	uint32_t i;

	for (i = 0; i < sync_load(&p->n_boxes) && *left > 0; i++) {
		struct pool_box *b = sync_load(&p->box[i]);

		if (b != NULL)
			empty_box(p, b, left);
	}
}

/* For who has rung: hand that to the loop.  The mail has a reference; if there
   is no loop it is the caller's. */
static bool
post(struct pool_port *p)
{
	sync_add(&p->refs, 1);
	return evc_post_mail(p->loop, &p->mail) == 0;
}

/* For who has rung: is there nothing, and is the right given back? */
static bool
give_back(struct pool_port *p)
{
	if (any(p))
		return false;
	/* First the right, then the look: who comes in between takes it, or we
	   take it again. */
	sync_xchg(&p->rung, 0);
	return !any(p) || sync_xchg(&p->rung, 1) != 0;
}

/* For who has rung: complete what is over, a slice of it at most, and give the
   right back, or hand it on to the loop's next turn. */
static void
serve(struct pool_port *p)
{
	unsigned left = POOL_SLICE;

	for (;;) {
		empty_boxes(p, &left);
		empty_chain(p, &left);
		if (left == 0) {
			if (!is_gone(p)) {
				if (post(p))
					return;
				sync_sub(&p->refs, 1);
				lost_loop(p);
			}
			left = POOL_SLICE;
		} else if (give_back(p)) {
			return;
		}
	}
}

void
evc__port_ring(struct pool_port *p)
{
	int old;

	if (sync_load_sc(&p->rung) != 0 || sync_xchg(&p->rung, 1) != 0)
		return;
	/* Who comes late, when the loop has completed it all, posts no mail: it
	   could come when the pool and its last job are long gone. */
	if (give_back(p) || post(p))
		return;
	lost_loop(p);
	/* A cancellation in a done would end the thread with the right to ring,
	   and what else is over would stay. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	serve(p);
	pthread_setcancelstate(old, NULL);
	evc__port_release_hold(p);
	evc__port_drop(p);
}

void
evc__port_on_mail(evc_mail *m, evc_status why)
{
	struct pool_port *p = PORT_AT(m, mail);

	if (why != 0)
		lost_loop(p);
	serve(p);
	evc__port_settle(p);
	evc__port_drop(p);
}

void
evc__port_on_wake(evc_mail *m, evc_status why)
{
	struct pool_port *p = PORT_AT(m, wake);

	/* Then the look at n_foreign: who finds this set has moved it first. */
	sync_xchg(&p->waking, 0);
	sync_store_relaxed(&p->tid, evc__tid());
	if (why == 0 && sync_load_sc(&p->n_foreign) != 0) {
		if (sync_load_relaxed(&p->active) == 0 && begin_task(p) < 0)
			why = EVC_CANCELLED;
		else if (evc_should_stop(p->c))
			/* A late task is not told, whoever has begun it. */
			stopped(p);
	}
	if (why != 0) {
		lost_loop(p);
		evc__port_ring(p);
	}
	evc__port_settle(p);
	evc__port_drop(p);
}
