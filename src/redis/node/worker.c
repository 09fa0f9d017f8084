/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queues of the workers: jobs that the engine has not taken, and jobs that
 * the engine has taken and not ended.  Functions that wait here behind a slow
 * one are given back: another worker may run them sooner, and the slow one may
 * even wait for their results.
 * Called by: hear.c, sink.c, begin.c, end.c.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

#include "engine/flow.h"

#define EVERY    0.01 /* seconds between two looks */
#define PATIENCE 0.02

/* ---- queues ---- */

void
evc__node_queue_add(struct queue *q, struct job *job)
{
	job->next = NULL;
	if (q->last != NULL)
		q->last->next = job;
	else
		q->first = job;
	q->last = job;
	q->n++;
}

struct job *
evc__node_queue_first(struct queue *q)
{
	struct job *job = q->first;

	if (job == NULL)
		return NULL;
	q->first = job->next;
	if (q->first == NULL)
		q->last = NULL;
	q->n--;
	return job;
}

static bool
is_job(const struct job *job, bool is_def, uint64_t n)
{
	return job->is_def == is_def &&
	       (is_def ? job->def.id : job->task.n) == n;
}

struct job *
evc__node_queue_take(struct queue *q, bool is_def, uint64_t n)
{
	struct job *job = q->first, *before = NULL;

	while (job != NULL && !is_job(job, is_def, n)) {
		before = job;
		job = job->next;
	}
	if (job == NULL)
		return NULL;
	if (before == NULL)
		return evc__node_queue_first(q);
	before->next = job->next;
	if (q->last == job)
		q->last = before;
	q->n--;
	return job;
}

const struct job *
evc__node_worker_job(const struct local_worker *w)
{
	const struct job *f = w->has.first, *def = w->builds.first;

	return f == NULL || (def != NULL && def->taken < f->taken) ? def : f;
}

void
evc__node_worker_take(struct local_worker *w, struct queue *q, struct job *job)
{
	if (evc__node_worker_job(w) == NULL)
		w->moved = w->since = ev_now(w->session->node->ev);
	job->taken = w->n_taken++;
	evc__node_queue_add(q, job);
}

void
evc__node_worker_add(struct local_worker *w, struct job *job)
{
	evc__node_queue_add(&w->waits, job);
	if (w->waits.n > 1 || evc__node_worker_job(w) != NULL)
		evc__node_give_back_watch(w->session);
}

void
evc__node_job_free(struct job *job)
{
	unsigned i;

	if (job == NULL)
		return;
	if (!job->is_def) {
		for (i = 0; job->values != NULL && i < job->task.n_inputs; i++)
			evc__node_value_drop(job->values[i]);
		sync_free(job->values);
		sync_free((void *)job->task.inputs);
	}
	if (--job->entry->refs == 0)
		sync_free(job->entry);
	sync_free(job);
}

static void
clear_queue(struct queue *q)
{
	struct job *job;

	while ((job = evc__node_queue_first(q)) != NULL)
		evc__node_job_free(job);
}

void
evc__node_worker_clear(struct local_worker *w)
{
	clear_queue(&w->waits);
	clear_queue(&w->has);
	clear_queue(&w->builds);
	evc__node_job_free(w->drop);
	w->drop = NULL;
}

/* ---- given back ---- */

static void
tell_given_back(struct local_worker *w, const struct job *job)
{
	const struct frame_result f = {
		.r = flow_given_back(job->task.n),
	};
	struct bytes *b =
		session_says(w->session) ? evc__node_tell(w->session, w) : NULL;

	if (b != NULL &&
	    evc__frame_put_result(b, w->session->max_frame, &f) < 0)
		evc__node_no_memory(w->session);
}

void
evc__node_give_back(struct local_worker *w, uint64_t upto)
{
	struct job *job, *back = NULL;
	struct queue stay = { 0 };

	while ((job = evc__node_queue_first(&w->waits)) != NULL) {
		if (job->is_def || job->task.n > upto) {
			evc__node_queue_add(&stay, job);
			continue;
		}
		job->next = back;
		back = job;
	}
	w->waits = stay;
	while ((job = back) != NULL) {
		back = job->next;
		tell_given_back(w, job);
		evc__node_job_free(job);
	}
}

void
evc__node_give_back_one(struct local_worker *w, uint64_t n)
{
	struct job *job = evc__node_queue_take(&w->waits, false, n);

	if (job == NULL)
		return;
	tell_given_back(w, job);
	evc__node_job_free(job);
}

static bool
has_waited(const struct local_worker *w, double now)
{
	return w->state == WORKER_UP && w->waits.n > 0 &&
	       evc__node_worker_job(w) != NULL &&
	       flow_is_stuck(w->moved, now, PATIENCE);
}

static void
on_give_back(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct session *s = timer->data;
	double now = ev_now(ev);
	bool any = false;
	unsigned i;

	(void)events;
	for (i = 0; i < s->node->n_workers && session_says(s); i++) {
		struct local_worker *w = &s->workers[i];

		if (has_waited(w, now))
			evc__node_give_back(w, UINT64_MAX);
		any |= w->waits.n > 0;
	}
	if (!any)
		ev_timer_stop(ev, timer);
}

void
evc__node_give_back_init(struct session *s)
{
	ev_timer_init(&s->back, on_give_back, EVERY, EVERY);
	s->back.data = s;
}

void
evc__node_give_back_watch(struct session *s)
{
	if (!ev_is_active(&s->back) && session_says(s))
		ev_timer_again(s->node->ev, &s->back);
}
