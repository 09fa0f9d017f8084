/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hears the frames of an entry.  Frames are not trusted.  A node that sends a
 * wrong frame is fenced, with the reason in the log; its earlier frames, and
 * later ones before the mark that can be read, count.
 * Called by: events.c.
 * Locks: none; loop thread only.
 */
#include "engine/death.h"
#include "redis/engine/engine.h"

static void
fence_for_garbage(struct node_session *s, const char *what)
{
	char text[REDIS_WHY_SIZE];

	evc__copy(text, sizeof text, what);
	evc__redis_tell(s->e);
	evc__redis_garbage(s->e, s->name, text);
	evc__session_fence(s, "it sent garbage: %s", text);
}

/* The worker of the last FRAME_SLOT.  NULL with *ret_fine: that start of the
   worker is over; NULL without: garbage. up: the worker has to be up. */
static struct remote_worker *
worker_of(struct node_session *s, bool up, bool *ret_fine)
{
	struct redis_engine *e = s->e;
	struct remote_worker *w = NULL;

	*ret_fine = false;
	if (!e->reader.whole_node && e->reader.worker_at < s->n_workers)
		w = s->workers[e->reader.worker_at];
	if (w == NULL) {
		fence_for_garbage(s, "a frame about a worker that it does "
				     "not have");
		return NULL;
	}
	if (e->reader.worker_start > w->start && up) {
		fence_for_garbage(s, "a frame about a worker that is not up");
		return NULL;
	}
	*ret_fine = true;
	return e->reader.worker_start < w->start ||
			       (e->reader.worker_start == w->start && !w->up)
		       ? NULL
		       : w;
}

/* ---- results ---- */

/* Take a result: call i of the worker has ended. */
static void
settle_call(struct remote_worker *w, unsigned i,
	    const struct frame_result *said)
{
	struct redis_engine *e = w->session->e;
	struct results *b = &e->reader.results;

	if (said->kept)
		evc__redis_keep(w->session, worker_call(w, i)->id,
				said->r.value.size);
	evc__remote_worker_ended_one(w, i, said->r.took);
	if (b->n > 0 && b->of != w)
		evc__redis_tell(e);
	b->of = w;
	b->r[b->n++] = said->r;
	if (b->n == RESULTS)
		evc__redis_tell(e);
}

static void
hear_result(struct node_session *s, const struct frame *f)
{
	struct frame_result said;
	struct remote_worker *w;
	unsigned i;
	bool fine;

	if (evc__frame_get_result(f, &said) < 0) {
		fence_for_garbage(s, evc_last_error());
		return;
	}
	sync_free((void *)said.r.updates);
	w = worker_of(s, true, &fine);
	if (w == NULL)
		return;
	if (said.r.n_updates > 0)
		fence_for_garbage(
			s, "a result with updates that the node has to make");
	else if (evc__remote_worker_find(w, said.r.n, &i) == NULL)
		fence_for_garbage(s, "the result of a function that it does "
				     "not have");
	else
		settle_call(w, i, &said);
}

/* ---- workers ---- */

static void
hear_up(struct node_session *s, const struct frame *f)
{
	struct frame_note note;
	bool fine;
	struct remote_worker *w = worker_of(s, false, &fine);

	if (!fine)
		return;
	if (evc__frame_get_note(f, &note) < 0)
		fence_for_garbage(s, evc_last_error());
	else if (!evc__reply_is_plain(note.text, strlen(note.text), true))
		fence_for_garbage(s, "a place that cannot be printed");
	else if (w != NULL && w->up)
		fence_for_garbage(s, "a worker that is up already");
	else if (w != NULL)
		evc__remote_worker_up(w, s->e->reader.worker_start, &note);
}

/* The node says that the worker has begun none of its calls. */
static void
give_back_calls(struct remote_worker *w)
{
	unsigned i;

	for (i = w->n; i-- > 0;) {
		const struct frame_result said = {
			.r = flow_given_back(worker_call(w, i)->n),
		};

		settle_call(w, i, &said);
	}
	evc__redis_tell(w->session->e);
}

/* Hear FRAME_FENCED and FRAME_GONE. */
static void
hear_end(struct node_session *s, const struct frame *f)
{
	char why[DEATH_SIZE];
	struct text t = evc__text_in(why, sizeof why);
	struct frame_note note;
	bool fine;
	struct remote_worker *w;

	if (evc__frame_get_note(f, &note) < 0) {
		fence_for_garbage(s, evc_last_error());
		return;
	}
	w = worker_of(s, false, &fine);
	if (w == NULL || (!w->up && f->type != FRAME_GONE))
		return;
	evc__text_fmt(&t, "%s%s", s->host, s->host[0] != '\0' ? ": " : "");
	evc__text_ends(&t, note.text);
	if (f->type == FRAME_FENCED)
		evc__remote_worker_fenced(w, why);
	else if (evc__session_end_is_doubted(s))
		return;
	else if (!w->up) {
		w->start = s->e->reader.worker_start;
		s->e->sink->gone(s->e->core, w->index, why, EVC_ENGINE_DIED);
	} else {
		if (note.number & GONE_IDLE)
			give_back_calls(w);
		evc__remote_worker_gone(
			w, why,
			note.number & GONE_RAN    ? EVC_ENGINE_DIED_RUNNING
			: note.number & GONE_LEFT ? EVC_ENGINE_LEFT
						  : EVC_ENGINE_DIED);
	}
}

static void
hear_stack(struct node_session *s, const struct frame *f)
{
	struct frame_note said;
	bool fine;
	struct remote_worker *w = worker_of(s, true, &fine);

	if (w == NULL)
		return;
	if (!w->stack_asked)
		fence_for_garbage(s, "a stack that nobody has asked for");
	else if (evc__frame_get_note(f, &said) < 0)
		fence_for_garbage(s, evc_last_error());
	else {
		w->stack_asked = false;
		s->e->sink->stack(s->e->core, w->index,
				  said.text[0] != '\0' ? said.text : NULL);
	}
}

static void
hear_built(struct node_session *s, const struct frame *f)
{
	struct frame_built said;
	bool fine;
	struct remote_worker *w;

	if (evc__frame_get_built(f, &said) < 0) {
		fence_for_garbage(s, evc_last_error());
		return;
	}
	w = worker_of(s, true, &fine);
	if (w == NULL)
		return;
	evc__remote_worker_built(w);
	s->e->sink->built(s->e->core, w->index, said.id, said.code,
			  said.seconds);
}

static void
hear_overdue(struct node_session *s, uint64_t n)
{
	bool fine;
	struct remote_worker *w = worker_of(s, true, &fine);

	if (w == NULL)
		return;
	if (evc__remote_worker_find(w, n, NULL) == NULL)
		fence_for_garbage(s, "a deadline of a function that it does "
				     "not have");
	else
		s->e->sink->overdue(s->e->core, w->index, n);
}

/* ---- entries ---- */

static void
hear_worker(struct redis_engine *e, uint64_t number)
{
	e->reader.whole_node = false;
	e->reader.worker_at = (unsigned)(number >> 32);
	e->reader.worker_start = (uint32_t)number;
}

/* Hear a frame that holds a number alone. */
static void
hear_number(struct node_session *s, const struct frame *f)
{
	struct redis_engine *e = s->e;
	uint64_t number;

	if (evc__frame_get_number(f, &number) < 0) {
		fence_for_garbage(s, evc_last_error());
		return;
	}
	if (f->type == FRAME_SLOT)
		hear_worker(e, number);
	else if (f->type == FRAME_OVERDUE)
		hear_overdue(s, number);
	else
		evc__redis_value_missing(s, number);
}

static void
hear_one(struct node_session *s, const struct frame *f)
{
	struct redis_engine *e = s->e;

	if (f->type == FRAME_RESULT) {
		hear_result(s, f);
		return;
	}
	/* The cluster is told all in the order of the frames. */
	if (f->type != FRAME_SLOT)
		evc__redis_tell(e);
	switch (f->type) {
	case FRAME_SLOT:
	case FRAME_OVERDUE:
	case FRAME_FORGET:
		hear_number(s, f);
		break;
	case FRAME_UP:
		hear_up(s, f);
		break;
	case FRAME_FENCED:
	case FRAME_GONE:
		hear_end(s, f);
		break;
	case FRAME_BUILT:
		hear_built(s, f);
		break;
	case FRAME_STACK:
		hear_stack(s, f);
		break;
	case FRAME_VARIABLE:
		/* From now on a loss counts: how many changes are there? */
		redis_doubt_lock(e);
		e->lock.variables_used = true;
		break;
	case FRAME_LEFT:
		if (evc__frame_get_bare(f) < 0)
			fence_for_garbage(s, evc_last_error());
		else if (!evc__session_end_is_doubted(s))
			evc__session_over(s, "it has left", EVC_ENGINE_LEFT);
		break;
	default:
		fence_for_garbage(s, "a frame for nodes");
	}
}

void
evc__redis_hear(struct node_session *s, const unsigned char *p, size_t n)
{
	struct redis_engine *e = s->e;
	bool was_ending = s->ending;
	struct frame f;
	size_t at = 0;
	int got;

	e->reader.hearing = s;
	e->reader.whole_node = true;
	while (at < n) {
		got = evc__frame_next(p + at, n - at, e->max_frame, &f);
		if (got <= 0) {
			fence_for_garbage(s, got < 0 ? evc_last_error()
						     : "an incomplete frame");
			break;
		}
		at += f.whole;
		hear_one(s, &f);
		if (e->reader.hearing != s || (s->ending && !was_ending))
			break;
	}
	e->reader.hearing = NULL;
}
