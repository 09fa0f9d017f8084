/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a function hangs after a request to stop: the worker is asked for its
 * stack shortly before the kill, and the log gets the answer.  A report at the
 * end of the stop would come too late, because the worker is gone then.
 * Called by: timeouts.c; engines, by evc__sink, with an answer; turn.c, for the
 * log.
 * Locks: the cluster's: held, but taken in evc__sink_stack and evc__stuck_tell.
 */
#include "cluster/core/cluster.h"

/* Workers that are asked within a second, at most: ten thousand may hang. */
#define STUCK_MOST 8
#define SECOND_NS UINT64_C(1000000000)

static const evc_remote *
oldest_run(const struct cluster_worker *w)
{
	return LIST_OF(w->running.next, evc_remote, closure.link);
}

static bool
is_allowed(struct stacks *s, uint64_t now)
{
	if (now - s->second_ns >= SECOND_NS) {
		s->second_ns = now;
		s->n_second = 0;
	}
	return s->n_second++ < STUCK_MOST;
}

uint64_t
evc__stuck_ask(evc_cluster *cl, struct cluster_worker *w, uint64_t since,
	       uint64_t due, uint64_t now)
{
	const evc_engine_ops *ops = cl->engine.ops;
	uint64_t ahead = evc__grace_last(due - since);

	if (ops->stack == NULL || w->stuck_run == oldest_run(w)->closure.n)
		return due;
	if (now < due - ahead)
		return due - ahead;
	w->stuck_run = oldest_run(w)->closure.n;
	w->stuck_ns = now;
	if (is_allowed(&cl->stacks, now)) {
		if (!w->stack_asked)
			w->stack_asked =
				ops->stack(cl->engine.at, w->index) == 0;
		w->stuck_asked = w->stack_asked;
	}
	return due;
}

/* ---- the answer ---- */

/* lines: not trusted; NULL: w cannot be asked. */
static void
hear_answer(evc_cluster *cl, struct cluster_worker *w, const char *lines)
{
	struct text t;

	if (!w->stuck_asked)
		return;
	w->stuck_asked = false;
	/* The function may have returned. */
	if (list_empty(&w->running) || w->stuck != NULL ||
	    oldest_run(w)->closure.n != w->stuck_run)
		return;
	w->stuck = sync_alloc(1, STACK_SIZE);
	if (w->stuck == NULL)
		return;
	t = evc__text_in(w->stuck, STACK_SIZE);
	evc__text_fmt(&t, "%s was asked to stop, and has not returned:\n%s%s",
		      remote_name(oldest_run(w)), cl->engine.trouble,
		      cl->engine.trouble[0] != '\0' ? "\n" : "");
	evc__text_add(&t, lines != NULL ? lines :
					  "the worker cannot be asked");
	cl->stacks.n_stuck++;
	(void)evc__turn_ask(cl);
}

void
evc__sink_stack(void *core, unsigned worker, const char *lines)
{
	evc_cluster *cl = core;
	struct cluster_worker *w;

	sync_lock(&cl->q.lock);
	w = cluster_worker_at(&cl->workers, worker);
	if (w != NULL && w->stack_asked) {
		hear_answer(cl, w, lines);
		evc__stack_answer(cl, w, lines);
	}
	evc__cluster_unlock(cl);
}

void
evc__stuck_silent(evc_cluster *cl, struct cluster_worker *w, uint64_t now)
{
	char why[TEXT_SIZE];

	if (!w->stuck_asked)
		return;
	evc__stack_silent(w, now - w->stuck_ns, why, sizeof why);
	hear_answer(cl, w, why);
}

/* ---- the log ---- */

static char *
take_stuck(evc_cluster *cl, char *ret_name)
{
	struct cluster_worker *w;
	char *lines = NULL;
	unsigned i;

	sync_lock(&cl->q.lock);
	for (i = 0; i < cl->workers.n_made && cl->stacks.n_stuck > 0; i++) {
		w = cl->workers.all[i];
		if (w->stuck == NULL)
			continue;
		evc__copy(ret_name, NAME_SIZE, w->name);
		lines = w->stuck;
		w->stuck = NULL;
		cl->stacks.n_stuck--;
		break;
	}
	sync_unlock(&cl->q.lock);
	return lines;
}

void
evc__stuck_tell(evc_cluster *cl)
{
	char name[NAME_SIZE], *lines, *at, *line;

	while ((lines = take_stuck(cl, name)) != NULL) {
		at = lines;
		while ((line = evc__stack_line(&at)) != NULL)
			evc_log(cl->scope, EVC_LOG_WARNING, NULL, "%s: %s",
				name, line);
		sync_free(lines);
	}
}
