/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames from workers.  Nothing is believed: a worker that sends an impossible
 * frame is fenced, with the frame's name in the text.  Earlier frames count.
 * Called by: link.c, by processes.hear and .on_io; processes.c for answers.
 * Locks: none here; the sink takes the cluster's.  The loop's thread.
 */
#include "cluster/processes/processes.h"

#define BATCH 64
/* Bytes of questions behind a question without an answer. */
#define QUESTIONS_MOST ((size_t)64 << 10)

/* Results that were read and are not told yet.  They point into the bytes
   read. */
struct batch {
	evc_engine_result r[BATCH];
	unsigned n;
};

static void
finish_batch(struct process *w, struct batch *b)
{
	if (b->n > 0)
		w->p->sink->finished(w->p->core, w->index, b->r, b->n);
	b->n = 0;
}

static void
fence_for_garbage(struct process *w, const char *what)
{
	evc__process_fence(w, "sent garbage: %s", what);
}

/* ---- it comes ---- */

static void
hear_hello(struct process *w, const struct frame *f)
{
	struct processes *p = w->p;
	const char **names;
	char where[32];
	struct text t = evc__text_in(where, sizeof where);
	unsigned n;

	if (evc__frame_get_hello(f, &names, &n) < 0) {
		fence_for_garbage(w, evc_last_error());
		return;
	}
	if (w->state != PROCESS_STARTING) {
		sync_free(names);
		fence_for_garbage(w, "a second hello");
		return;
	}
	w->state = PROCESS_UP;
	w->was_up = w->talks = true;
	w->flow = (struct flow){ .window = 1 };
	evc__text_fmt(&t, "pid %d", (int)w->pid);
	p->sink->names(p->core, names, n);
	sync_free(names);
	p->sink->up(p->core, w->index, NULL, where);
}

/* The process is going to end by itself. */
static void
hear_failed(struct process *w, const struct frame *f)
{
	struct frame_failed said;
	struct text t = evc__text_in(w->why, sizeof w->why);

	if (evc__frame_get_failed(f, &said) < 0) {
		fence_for_garbage(w, evc_last_error());
		return;
	}
	evc__text_fmt(&t, "could not be a worker (%s): ",
		      evc_status_name(said.code));
	evc__text_ends(&t, said.text[0] != '\0' ? said.text :
						  "no reason given");
}

/* ---- functions ---- */

static void
hear_begun(struct process *w, const struct frame *f)
{
	const struct taken *t = process_taken(w, 0);
	uint64_t n;

	if (evc__frame_get_number(f, &n) < 0)
		fence_for_garbage(w, evc_last_error());
	else if (w->n_taken == 0 || t->n != n || t->deadline <= 0 ||
		 w->begun || !process_has_sent(w, t))
		fence_for_garbage(
			w, "the begin of a function that it does not have");
	else
		evc__process_begun(w);
}

/* Note a kept result.  Too many bytes: the oldest results are forgotten. */
static void
note_kept(struct process *w, uint64_t id, size_t size)
{
	/* Without memory the worker forgets the result at once. */
	if (!evc__kept_add(&w->kept, id, (evc_value){ NULL, size })) {
		evc__frame_put_number(&w->data.out.own, FRAME_FORGET, id);
		return;
	}
	while (w->kept.bytes > KEEP_MOST) {
		id = evc__kept_oldest(&w->kept);
		evc__kept_drop(&w->kept, id);
		evc__frame_put_number(&w->data.out.own, FRAME_FORGET, id);
	}
}

#define GIVE_LEAST ((size_t)32 << 10) /* bytes of a value in its own memory */

/* The link's memory becomes the result's, if there is little else in it. */
static void
give_memory(struct link *l, const struct frame *f, evc_engine_result *r)
{
	struct bytes *in = &l->in;

	if (r->value.size < GIVE_LEAST || f->body != in->p + FRAME_HEAD ||
	    f->whole != in->n || in->room - r->value.size > in->room / 4)
		return;
	r->memory = in->p;
	*in = (struct bytes){ 0 };
}

static void
hear_result(struct process *w, const struct frame *f, struct batch *b)
{
	const struct taken *t = process_taken(w, 0);
	struct frame_result said;

	if (evc__frame_get_result(f, &said) < 0) {
		finish_batch(w, b);
		fence_for_garbage(w, evc_last_error());
		return;
	}
	if (w->n_taken == 0 || t->n != said.r.n || !process_has_sent(w, t)) {
		finish_batch(w, b);
		fence_for_garbage(
			w, "the result of a function that it does not have");
	} else if (said.r.took < 0 && !t->asked &&
		   t->n > w->p->cancelled_upto) {
		/* The function would come again, and be given back again. */
		finish_batch(w, b);
		fence_for_garbage(w, "a function back that it was to run");
	} else {
		if (said.kept)
			note_kept(w, t->id, said.r.value.size);
		w->of_use |= said.r.took >= 0;
		evc__process_ended_one(w, said.r.took);
		give_memory(&w->data, f, &said.r);
		b->r[b->n++] = said.r;
		/* Updates stay valid until they are told. */
		if (b->n == BATCH || said.r.n_updates > 0 ||
		    said.r.memory != NULL)
			finish_batch(w, b);
	}
	sync_free((void *)said.r.updates);
}

static void
hear_built(struct process *w, const struct frame *f)
{
	struct frame_built said;

	if (evc__frame_get_built(f, &said) < 0)
		fence_for_garbage(w, evc_last_error());
	else {
		w->n_building -= w->n_building > 0;
		w->p->sink->built(w->p->core, w->index, said.id, said.code,
				  said.seconds);
	}
}

/* ---- variables ---- */

/* Answer the worker's question for a variable. */
static void
reply_to(struct process *w, struct frame_reply *reply)
{
	struct bytes *out = &w->data.out.own;
	size_t most = w->p->max_frame;

	if (reply->status > 0)
		reply->status = -reply->status;
	if (w->data.unheard)
		; /* The worker reads nothing more. */
	else if (evc__frame_put_reply(out, most, reply) < 0) {
		struct frame_reply no = { .status = -EVC_RESOURCE_EXHAUSTED,
					  .text = evc_last_error() };

		if (evc__frame_put_reply(out, most, &no) < 0)
			evc__process_fence(w, "could not be answered: %s",
					   evc_last_error());
	}
	w->asks = false;
	w->answered = w->data.sent + outgoing_size(&w->data.out);
}

static void
hear_variable(struct process *w, const struct frame *f)
{
	struct processes *p = w->p;
	struct frame_reply reply = { 0 };
	evc_engine_update u;

	if (evc__frame_get_variable(f, &u) < 0) {
		fence_for_garbage(w, evc_last_error());
		return;
	}
	w->asks = true;
	reply.status = p->sink->variable(
		p->core, w->index, &u,
		u.op == EVC_VARIABLE_ADD ? &reply.now : NULL,
		u.op == EVC_VARIABLE_GET || u.op == EVC_VARIABLE_VECTOR_GET ?
			&reply.value :
			NULL);
	if (reply.status == EVC_ENGINE_LATER)
		return;
	reply.text = reply.status != 0 ? evc_last_error() : NULL;
	reply_to(w, &reply);
	evc_value_free(&reply.value);
}

void
evc__process_answer(struct process *w, const evc_engine_answer *a)
{
	struct frame_reply reply = { .status = a->status,
				     .now = a->now,
				     .value = a->value,
				     .text = a->text };

	/* The worker's life is over, or the question has its answer. */
	if (!w->asks || w->state != PROCESS_UP)
		return;
	reply_to(w, &reply);
	evc__link_flush(&w->data);
	evc__link_hear_rest(&w->data);
}

/* ---- all of it ---- */

static void
hear_control(struct process *w, const struct frame *f)
{
	struct frame_backed backed;
	bool fine = false;

	w->talks = true;
	if (f->type == FRAME_PONG)
		fine = evc__frame_get_bare(f) == 0;
	else if (f->type == FRAME_BACKED && w->state == PROCESS_UP)
		fine = evc__frame_get_backed(f, &backed) == 0 &&
		       evc__process_gave_back(w, &backed);
	else if (f->type == FRAME_STACK)
		fine = evc__process_hear_stack(w, f);
	if (!fine)
		fence_for_garbage(w, "what is no answer");
}

static void
hear_one(struct link *l, const struct frame *f, struct batch *b)
{
	struct process *w = l->w;
	bool control = l == &w->control;

	if (control) {
		hear_control(w, f);
		return;
	}
	if (f->type == FRAME_RESULT) {
		hear_result(w, f, b);
		return;
	}
	/* Frames are told in the order in which they came. */
	finish_batch(w, b);
	if (f->type == FRAME_HELLO)
		hear_hello(w, f);
	else if (f->type == FRAME_FAILED && w->state == PROCESS_STARTING)
		hear_failed(w, f);
	else if (w->state != PROCESS_UP)
		fence_for_garbage(w, "something before its hello");
	else if (f->type == FRAME_BEGUN)
		hear_begun(w, f);
	else if (f->type == FRAME_BUILT)
		hear_built(w, f);
	else if (f->type == FRAME_VARIABLE)
		hear_variable(w, f);
	else
		fence_for_garbage(w, "a frame that is for workers alone");
}

/* One question at a time: unread answers would fill our memory.  true: this
   question waits. */
static bool
has_to_wait(struct process *w, const struct frame *f, struct batch *b)
{
	if (f->type != FRAME_VARIABLE || w->state != PROCESS_UP)
		return false;
	if (!w->asks && process_owes_answer(w)) {
		finish_batch(w, b);
		evc__link_flush(&w->data);
	}
	return w->asks || process_owes_answer(w);
}

size_t
evc__process_hear(struct link *l, const unsigned char *p, size_t n)
{
	struct process *w = l->w;
	struct batch b = { .n = 0 };
	struct frame f;
	size_t at = 0;
	int got = 1;

	w->hears = true;
	while (got > 0 && w->state != PROCESS_FENCED) {
		got = evc__frame_next(p + at, n - at, w->p->max_frame, &f);
		if (got > 0 && has_to_wait(w, &f, &b)) {
			if (n - at > QUESTIONS_MOST)
				fence_for_garbage(w, "questions, and does not "
						     "read the answers");
			break;
		}
		if (got > 0) {
			hear_one(l, &f, &b);
			at += f.whole;
		}
	}
	/* Before a fence, which would drop results. */
	finish_batch(w, &b);
	w->hears = false;
	if (got < 0)
		fence_for_garbage(w, evc_last_error());
	return w->state == PROCESS_FENCED ? n : at;
}

void
evc__process_on_io(struct ev_loop *ev, struct ev_io *io, int events)
{
	struct link *l = io->data;
	struct process *w = l->w;

	(void)ev;
	if (on_loop_inherited(&w->p->on))
		return;
	if (events & EV_WRITE) {
		evc__link_flush(l);
		evc__link_hear_rest(l);
	}
	if (events & EV_READ)
		evc__link_read(l, false);
	evc__process_feed(w);
}
