/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lives of workers, as engines tell them, and the functions that a worker
 * takes with it.
 * Called by: engines, by evc__sink; sink.c and timeouts.c; turn.c for deaths.
 * Locks: the cluster's lock, taken by the engines' calls, held by the others.
 */
#include "cluster/core/cluster.h"

static void
drop_events(struct cluster_worker *w, unsigned i, unsigned n)
{
	w->n_events -= n;
	memmove(&w->events[i], &w->events[i + n],
		(w->n_events - i) * sizeof w->events[0]);
}

/* There is no room: the latest state within a life that another one has
   followed goes, or else the latest life as a whole.  So each end that is told
   still has its begin.  The first event stays: what was told before is not
   known. */
static void
thin_events(struct cluster_worker *w)
{
	unsigned i = w->n_events - 1;

	while (i > 0 && (w->events[i] == EVC_WORKER_GONE) !=
				(w->events[i - 1] == EVC_WORKER_GONE))
		i--;
	if (i > 0)
		drop_events(w, i, 1);
	else
		drop_events(w, w->n_events - 2, 2);
}

void
evc__worker_event(evc_cluster *cl, struct cluster_worker *w, unsigned state)
{
	if (cl->config.worker == NULL)
		return;
	if (w->n_events == 0)
		list_append(&cl->workers.news, &w->news);
	if (w->n_events == WORKER_EVENTS)
		thin_events(w);
	if (w->n_due > w->n_events)
		w->n_due = w->n_events;
	w->events[w->n_events++] = state;
	evc__turn_ask(cl);
}

static void
set_state(evc_cluster *cl, struct cluster_worker *w, unsigned state)
{
	bool is_up = state == EVC_WORKER_UP && !w->leaves;
	/* A worker that is down may fail to come up, or leave. */
	bool is_known = state == EVC_WORKER_GONE && w->state == state;

	if (w->state == EVC_WORKER_UP) {
		cl->workers.n_up -= !w->leaves;
		w->down_ns = sync_mono();
	}
	if (w->state == EVC_WORKER_FENCED)
		cl->q.n_unsettled--;
	w->state = state;
	w->since_ns = sync_mono();
	if (is_up) {
		cl->workers.n_up++;
		cl->workers.alone_ns = 0;
		/* An engine that is down stays down, even if a worker comes up
		   late. */
		cl->workers.unavailable = cl->engine.down[0] != '\0';
	}
	if (state == EVC_WORKER_FENCED)
		cl->q.n_unsettled++;
	/* Functions for this worker alone have a limited time. */
	if (state != EVC_WORKER_UP && cl->q.fits != NULL)
		evc__turn_ask(cl);
	if (state != EVC_WORKER_UP &&
	    evc__closures_own(&cl->q, w->index) != NULL)
		evc__turn_ask(cl);
	if (state == EVC_WORKER_UP && w->leaves)
		state = EVC_WORKER_LEAVING;
	if (!is_known)
		evc__worker_event(cl, w, state);
}

void
evc__worker_hangs(evc_cluster *cl, struct cluster_worker *w)
{
	set_state(cl, w, EVC_WORKER_HUNG);
}

void
evc__worker_back(evc_cluster *cl, struct cluster_worker *w)
{
	set_state(cl, w, EVC_WORKER_UP);
}

/* ---- they come ---- */

static bool
is_unknown(const evc_remote *r)
{
	return r->function != NULL && !r->function->known;
}

static void
refuse_remote(evc_remote *r)
{
	struct outcome o = { .code = EVC_INVALID_ARGUMENT,
			     .kind = EVC_FAILED_FUNCTION,
			     .text = "no worker has a function of this name",
			     .raise = true };

	evc__waiting_fails(r, &o);
}

/* No function in a line waits for another one in it, so an end takes no other
   one out. */
static void
refuse_in_line(struct closure_line *line)
{
	struct list *n, *tmp;
	evc_remote *r;
	unsigned i;

	for (i = 0; i < PRIORITIES; i++)
		LIST_EACH(n, tmp, &line->at[i]) {
			r = LIST_OF(n, evc_remote, closure.link);
			if (is_unknown(r))
				refuse_remote(r);
		}
}

/* Held functions may wait for each other, so each look is new. */
static evc_remote *
unknown_held(const evc_cluster *cl)
{
	const struct list *n;
	evc_remote *r;

	for (n = cl->q.held.next; n != &cl->q.held; n = n->next) {
		r = LIST_OF(n, evc_remote, closure.link);
		if (is_unknown(r))
			return r;
	}
	return NULL;
}

/* The first worker has told its names: functions with other names end.  The
   error cancels all queued functions. */
static void
refuse_unknown(evc_cluster *cl)
{
	evc_remote *r;
	unsigned i;

	refuse_in_line(&cl->q.common);
	for (i = 0; i < cl->q.n_own; i++)
		refuse_in_line(cl->q.own[i]);
	while ((r = unknown_held(cl)) != NULL)
		refuse_remote(r);
	if (!cl->q.failed)
		return;
	evc__end_all(cl);
}

void
evc__sink_names(void *core, const char *const *functions, unsigned n)
{
	evc_cluster *cl = core;
	struct cluster_name *name;
	bool all = true;
	unsigned i;

	sync_lock(&cl->q.lock);
	for (i = 0; i < n; i++) {
		if (strlen(functions[i]) >= NAME_SIZE)
			continue;
		name = evc__name(cl, functions[i]);
		if (name != NULL)
			name->known = true;
		all &= name != NULL;
	}
	/* After a lost name nobody is refused here: workers refuse unknown
	   functions. */
	if (all && !cl->names.known) {
		cl->names.known = true;
		refuse_unknown(cl);
	}
	evc__tell(cl);
	evc__cluster_unlock(cl);
}

void
evc__sink_up(void *core, unsigned worker, const char *name, const char *where)
{
	evc_cluster *cl = core;
	struct cluster_worker *w;

	sync_lock(&cl->q.lock);
	w = cluster_worker_at(&cl->workers, worker);
	if (w != NULL && (w->state == EVC_WORKER_STARTING ||
			  w->state == EVC_WORKER_GONE)) {
		if (name != NULL)
			evc__copy(w->name, sizeof w->name, name);
		evc__copy(w->where, sizeof w->where, where);
		w->lives++;
		cl->asking.any = true;
		w->told_kill = false;
		evc__building_forget(w);
		evc__stack_forget(cl, w);
		set_state(cl, w, EVC_WORKER_UP);
		evc__per_worker_life(cl, w, true);
	}
	evc__tell(cl);
	evc__cluster_unlock(cl);
}

/* ---- and they go ---- */

/* A life counts once: at its fence, or else at its end. */
static void
count_failure(evc_cluster *cl, struct cluster_worker *w)
{
	w->n_failures++;
	cl->count.worker_failures++;
}

void
evc__worker_fence(evc_cluster *cl, struct cluster_worker *w, const char *why)
{
	evc__worker_says(w, why);
	if (w->state != EVC_WORKER_UP && w->state != EVC_WORKER_HUNG)
		return;
	count_failure(cl, w);
	set_state(cl, w, EVC_WORKER_FENCED);
	evc__per_worker_life(cl, w, false);
}

void
evc__sink_fenced(void *core, unsigned worker, const char *why)
{
	evc_cluster *cl = core;
	struct cluster_worker *w;

	sync_lock(&cl->q.lock);
	w = cluster_worker_at(&cl->workers, worker);
	if (w != NULL)
		evc__worker_fence(cl, w, why);
	evc__tell(cl);
	evc__cluster_unlock(cl);
}

static void
fail_for_deaths(evc_remote *r, const char *why)
{
	struct outcome o = { .code = EVC_ABORTED,
			     .kind = EVC_FAILED_WORKER,
			     .raise = !(r->flags & REMOTE_ASKED) };
	char text[DEATH_SIZE];
	struct text t = evc__text_in(text, sizeof text);

	/* Few words: a text that is cut has to say how the worker ended. */
	evc__text_fmt(&t, "%u death%s; the last: ", r->deaths,
		      r->deaths == 1 ? "" : "s");
	evc__text_ends(&t, why);
	o.text = text;
	evc__taken_fails(r, &o);
}

/* The stop has ended the worker because nobody has heard that this function has
   returned: its result is lost. */
static void
fail_for_stop(const evc_cluster *cl, evc_remote *r)
{
	struct outcome o = { .code = EVC_UNAVAILABLE,
			     .kind = EVC_FAILED_WORKER,
			     .raise = true };
	char text[TEXT_SIZE];
	struct text t = evc__text_in(text, sizeof text);

	evc__text_fmt(&t, "it did not return when it was asked to stop, on %s",
		      cl->workers.all[r->worker]->name);
	cluster_add_trouble(cl, &t);
	o.text = text;
	evc__taken_fails(r, &o);
}

/* The worker may have completed the function, and its updates are made then. */
static void
fail_for_doubt(const evc_cluster *cl, evc_remote *r, const char *why)
{
	/* Without a stop the loss of the cluster is raised, with its reason. */
	struct outcome o = { .code = EVC_UNAVAILABLE,
			     .kind = EVC_FAILED_LOST,
			     .raise = cl->stop.begun };
	char text[DEATH_SIZE];
	struct text t = evc__text_in(text, sizeof text);

	evc__text_add(&t, "its updates may have been made: ");
	evc__text_ends(&t, why);
	o.text = text;
	evc__taken_fails(r, &o);
}

/* The youngest function of a lost worker; how: EVC_ENGINE_... */
static void
lose_youngest(evc_cluster *cl, struct cluster_worker *w, unsigned how,
	      const char *why)
{
	evc_remote *r = LIST_OF(w->running.prev, evc_remote, closure.link);
	bool oldest = w->running.next == w->running.prev;
	/* The function may have ended the worker, or is why the worker was
	   ended; but behind a build none had begun. */
	bool ran = oldest && !evc__building_is_it(w);
	bool guilty = how == EVC_ENGINE_DIED_RUNNING && ran;
	bool hung = w->told_kill && ran;
	struct outcome o = { .code = EVC_CANCELLED,
			     .kind = EVC_FAILED_CANCEL,
			     .text = "it was cancelled" };

	list_remove(&r->closure.link);
	cl->count.lost++;
	if (guilty && r->deaths < UINT16_MAX)
		r->deaths++;
	if (how == EVC_ENGINE_LOST && (r->flags & REMOTE_TRANSACTIONAL))
		fail_for_doubt(cl, r, why);
	else if (r->flags & REMOTE_ASKED)
		evc__taken_fails(r, &o);
	else if (cl->stop.begun &&
		 (hung || (how == EVC_ENGINE_LOST && !cl->loop.gone)))
		fail_for_stop(cl, r);
	else if (guilty && r->deaths >= r->deaths_most &&
		 r->deaths_most < UINT8_MAX)
		fail_for_deaths(r, why);
	else
		evc__closures_back(&cl->q, &r->closure, CLOSURE_QUEUED);
}

static const char *
oldest_name(const struct cluster_worker *w)
{
	return list_empty(&w->running) ?
		       NULL : remote_name(LIST_OF(w->running.next, evc_remote,
						  closure.link));
}

void
evc__sink_gone(void *core, unsigned worker, const char *why, unsigned how)
{
	evc_cluster *cl = core;
	struct cluster_worker *w;
	evc_remote *r;
	bool ran = how == EVC_ENGINE_DIED_RUNNING;

	sync_lock(&cl->q.lock);
	w = cluster_worker_at(&cl->workers, worker);
	if (w != NULL && !w->left) {
		if (why != NULL)
			evc__worker_says(w, why);
		else
			why = w->text != NULL ? w->text : "";
		if (how != EVC_ENGINE_LEFT && w->state != EVC_WORKER_FENCED)
			count_failure(cl, w);
		if (how != EVC_ENGINE_LEFT && why[0] != '\0')
			evc__death_note(cl, why,
					ran && !evc__building_is_it(w) ?
						oldest_name(w) : NULL);
		if (ran && !w->told_kill && !w->dismissed && !cl->stop.begun &&
		    evc__building_is_it(w))
			evc__building_blame(cl, w);
		/* The youngest first: each goes in front of the queue, so the
		   oldest is taken next. */
		while (!list_empty(&w->running))
			lose_youngest(cl, w, how, why);
		evc__building_forget(w);
		w->n_running = 0;
		while (!list_empty(&w->given_up)) {
			r = LIST_OF(w->given_up.next, evc_remote, closure.link);
			list_remove(&r->closure.link);
			evc__remote_let_go(r);
			evc__remote_drop(r);
		}
		w->n_given_up = 0;
		if (w->state == EVC_WORKER_UP || w->state == EVC_WORKER_HUNG)
			evc__per_worker_life(cl, w, false);
		set_state(cl, w, EVC_WORKER_GONE);
		evc__stack_forget(cl, w);
		w->left = w->leaves && w->dismissed;
		w->dismissed = false;
		workers_forget_left(&cl->workers);
		/* Waits for this worker's end have an answer only now. */
		evc__closures_ring(&cl->q);
		evc__closures_mix(&cl->q);
		evc__wake(cl, EVC_ENGINE_ANY);
	}
	evc__tell(cl);
	evc__cluster_unlock(cl);
}

/* ---- the engine as a whole ---- */

void
evc__sink_trouble(void *core, const char *why)
{
	evc_cluster *cl = core;

	sync_lock(&cl->q.lock);
	evc__copy(cl->engine.trouble, sizeof cl->engine.trouble, why);
	sync_unlock(&cl->q.lock);
}

void
evc__sink_away(void *core, uint64_t since_ns)
{
	evc_cluster *cl = core;

	sync_lock(&cl->q.lock);
	cl->engine.away_ns = since_ns;
	sync_unlock(&cl->q.lock);
}

void
evc__sink_down(void *core, const char *why)
{
	evc_cluster *cl = core;

	sync_lock(&cl->q.lock);
	evc__copy(cl->engine.down, sizeof cl->engine.down,
		  why != NULL && why[0] != '\0' ? why : "the engine is down");
	cl->workers.unavailable = true;
	evc__note_unavailable(cl);
	evc__tell(cl);
	evc__cluster_unlock(cl);
}

void
evc__sink_closed(void *core)
{
	evc_cluster *cl = core;

	sync_lock(&cl->q.lock);
	cl->engine.closed = true;
	evc__turn_ask(cl);
	evc__cluster_unlock(cl);
}
