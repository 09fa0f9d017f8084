/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writers of frames.
 * Called by: cluster/processes, cluster/worker and redis.
 * Locks: none.
 */
#include <evcoord.h>

#include "wire/frames_parts.h"

/* ---- to the worker ---- */

evc_status
evc__frame_put_welcome(struct bytes *b, size_t max_frame,
		       const struct frame_welcome *w)
{
	uint64_t size = 4 + 8 + 8 + text_size(w->name);
	struct parts_out o;
	evc_status st = evc__parts_begin(&o, b, max_frame, FRAME_WELCOME, size,
					 "the welcome");

	if (st < 0)
		return st;
	out_number(&o, 4, w->index);
	out_number(&o, 8, w->generation);
	out_number(&o, 8, w->max_frame);
	out_text(&o, w->name);
	return 0;
}

/* An input without its value has a length that no value has. */
#define KEPT UINT32_MAX

static evc_value
input_value(const evc_engine_input *in)
{
	/* A size of 0 would mean a kept value. */
	return in->value.size > 0 ? in->value : (evc_value){ &evc__nil, 1 };
}

static uint64_t
inputs_size(const evc_engine_task *t, const bool *is_kept)
{
	uint64_t size = 0;
	unsigned i;

	for (i = 0; i < t->n_inputs; i++) {
		evc_value v = input_value(&t->inputs[i]);

		size += 8 + 4;
		if (is_kept == NULL || !is_kept[i])
			size += v.size;
	}
	return size;
}

static void
out_inputs(struct parts_out *o, const evc_engine_task *t, const bool *is_kept)
{
	unsigned i;

	for (i = 0; i < t->n_inputs; i++) {
		evc_value v = input_value(&t->inputs[i]);

		out_number(o, 8, t->inputs[i].id);
		if (is_kept != NULL && is_kept[i])
			out_number(o, 4, KEPT);
		else
			out_value(o, &v);
	}
}

static uint64_t
task_size(const evc_engine_task *t, const bool *is_kept)
{
	return 8 + 8 + 8 + 4 + 4 + 4 + text_size(t->function) +
	       value_length(&t->args) + value_length(&t->kwargs) +
	       inputs_size(t, is_kept);
}

static struct lends
task_lends(const evc_engine_task *t, const bool *is_kept)
{
	struct lends l = { 0 };
	unsigned i;

	lends_count(&l, &t->args);
	lends_count(&l, &t->kwargs);
	for (i = 0; i < t->n_inputs; i++)
		if (is_kept == NULL || !is_kept[i])
			lends_count(&l, &t->inputs[i].value);
	return l;
}

static void
out_task(struct parts_out *o, const evc_engine_task *t, const bool *is_kept)
{
	out_number(o, 8, t->n);
	out_number(o, 8, t->id);
	out_double(o, t->deadline);
	out_number(o, 4, t->attempt);
	out_number(o, 4, t->flags);
	out_number(o, 4, t->n_inputs);
	out_text(o, t->function);
	out_value(o, &t->args);
	out_value(o, &t->kwargs);
	out_inputs(o, t, is_kept);
}

static const char task_what[] = "the function with its arguments";

evc_status
evc__frame_put_task(struct bytes *b, size_t max_frame, const evc_engine_task *t,
		    const bool *value_is_kept)
{
	struct parts_out o;
	evc_status st = evc__parts_begin(&o, b, max_frame, FRAME_TASK,
					 task_size(t, value_is_kept),
					 task_what);

	if (st == 0)
		out_task(&o, t, value_is_kept);
	return st;
}

evc_status
evc__frame_lend_task(struct outgoing *to, size_t max_frame,
		     const evc_engine_task *t, const bool *value_is_kept)
{
	struct lends l = task_lends(t, value_is_kept);
	struct parts_out o;
	evc_status st = evc__parts_begin_lending(&o, to, &l, max_frame,
						 FRAME_TASK,
						 task_size(t, value_is_kept),
						 task_what);

	if (st == 0)
		out_task(&o, t, value_is_kept);
	return st;
}

evc_status
evc__frame_put_def(struct bytes *b, size_t max_frame, const evc_engine_def *d)
{
	uint64_t size = 8 + 8 + 8 + 8 + 1 + 1 + text_size(d->name) +
			text_size(d->function) + text_size(d->map) +
			value_length(&d->args);
	struct parts_out o;
	evc_status st = evc__parts_begin(&o, b, max_frame, FRAME_DEF, size,
					 "the per-worker value");

	if (st < 0)
		return st;
	out_number(&o, 8, d->id);
	out_number(&o, 8, d->of);
	out_number(&o, 8, d->repeat);
	out_number(&o, 8, d->seed);
	out_number(&o, 1, d->kind);
	out_number(&o, 1, d->shuffle);
	out_text(&o, d->name);
	out_text(&o, d->function);
	out_text(&o, d->map);
	out_value(&o, &d->args);
	return 0;
}

evc_status
evc__frame_put_reply(struct bytes *b, size_t max_frame,
		     const struct frame_reply *r)
{
	uint64_t size = 4 + 8 + text_size(r->text) + value_length(&r->value);
	struct parts_out o;
	evc_status st = evc__parts_begin(&o, b, max_frame, FRAME_REPLY, size,
					 "the variable");

	if (st < 0)
		return st;
	out_number(&o, 4, (uint64_t)-(int64_t)r->status);
	out_double(&o, r->now);
	out_text(&o, r->text);
	out_value(&o, &r->value);
	return 0;
}

/* ---- to the coordinator ---- */

evc_status
evc__frame_put_hello(struct bytes *b, size_t max_frame,
		     const evc_function *functions, unsigned n)
{
	struct parts_out o;
	uint64_t size = 4;
	evc_status st;
	unsigned i;

	if (n > FRAME_NAMES_MOST)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "%u functions, and %u are the most", n,
				  FRAME_NAMES_MOST);
	for (i = 0; i < n; i++)
		size += text_size(functions[i].name);
	st = evc__parts_begin(&o, b, max_frame, FRAME_HELLO, size,
			      "the table of functions");
	if (st < 0)
		return st;
	out_number(&o, 4, n);
	for (i = 0; i < n; i++)
		out_text(&o, functions[i].name);
	return 0;
}

evc_status
evc__frame_put_failed(struct bytes *b, size_t max_frame,
		      const struct frame_failed *f)
{
	uint64_t size = 4 + text_size(f->text);
	struct parts_out o;
	evc_status st = evc__parts_begin(&o, b, max_frame, FRAME_FAILED, size,
					 "the error");

	if (st < 0)
		return st;
	out_number(&o, 4, (uint64_t)f->code);
	out_text(&o, f->text);
	return 0;
}

evc_status
evc__frame_put_note(struct bytes *b, enum frame_type type,
		    const struct frame_note *note)
{
	uint64_t size = 8 + text_size(note->text);
	struct parts_out o;
	evc_status st = evc__parts_begin(&o, b, size, type, size, "a note");

	if (st < 0)
		return st;
	out_number(&o, 8, note->number);
	out_text(&o, note->text);
	return 0;
}

static uint64_t
update_size(const evc_engine_update *u)
{
	return 1 + 8 + text_size(u->name) + value_length(&u->value) +
	       value_length(&u->expected);
}

static void
out_update(struct parts_out *o, const evc_engine_update *u)
{
	out_number(o, 1, u->op);
	out_double(o, u->by);
	out_text(o, u->name);
	out_value(o, &u->value);
	out_value(o, &u->expected);
}

static uint64_t
result_size(const evc_engine_result *r)
{
	uint64_t size = 8 + 8 + 4 + 1 + 1 + 4 + text_size(r->text) +
			value_length(&r->value);
	unsigned i;

	for (i = 0; i < r->n_updates; i++)
		size += update_size(&r->updates[i]);
	return size;
}

static struct lends
result_lends(const evc_engine_result *r)
{
	struct lends l = { 0 };
	unsigned i;

	lends_count(&l, &r->value);
	for (i = 0; i < r->n_updates; i++) {
		lends_count(&l, &r->updates[i].value);
		lends_count(&l, &r->updates[i].expected);
	}
	return l;
}

static void
out_result(struct parts_out *o, const struct frame_result *f)
{
	const evc_engine_result *r = &f->r;
	unsigned i;

	out_number(o, 8, r->n);
	out_double(o, r->took);
	out_number(o, 4, (uint64_t)r->code);
	out_number(o, 1, r->kind);
	out_number(o, 1, f->kept);
	out_number(o, 4, r->n_updates);
	out_text(o, r->text);
	out_value(o, &r->value);
	for (i = 0; i < r->n_updates; i++)
		out_update(o, &r->updates[i]);
}

static const char *
result_name(const evc_engine_result *r)
{
	return r->n_updates > 0 ? "the result with its reads and updates" :
				  "the result";
}

evc_status
evc__frame_put_result(struct bytes *b, size_t max_frame,
		      const struct frame_result *f)
{
	struct parts_out o;
	evc_status st = evc__parts_begin(&o, b, max_frame, FRAME_RESULT,
					 result_size(&f->r),
					 result_name(&f->r));

	if (st == 0)
		out_result(&o, f);
	return st;
}

evc_status
evc__frame_lend_result(struct outgoing *to, size_t max_frame,
		       const struct frame_result *f)
{
	struct lends l = result_lends(&f->r);
	struct parts_out o;
	evc_status st = evc__parts_begin_lending(&o, to, &l, max_frame,
						 FRAME_RESULT,
						 result_size(&f->r),
						 result_name(&f->r));

	if (st == 0)
		out_result(&o, f);
	return st;
}

evc_status
evc__frame_put_built(struct bytes *b, const struct frame_built *f)
{
	struct parts_out o;
	evc_status st = evc__parts_begin(&o, b, 8 + 4 + 8, FRAME_BUILT,
					 8 + 4 + 8, "a word");

	if (st < 0)
		return st;
	out_number(&o, 8, f->id);
	out_number(&o, 4, (uint64_t)f->code);
	out_double(&o, f->seconds);
	return 0;
}

evc_status
evc__frame_put_backed(struct bytes *b, const struct frame_backed *f)
{
	struct parts_out o;
	evc_status st = evc__parts_begin(&o, b, 8 + 8, FRAME_BACKED, 8 + 8,
					 "a word");

	if (st < 0)
		return st;
	out_number(&o, 8, f->begun);
	out_number(&o, 8, f->upto);
	return 0;
}

evc_status
evc__frame_put_variable(struct bytes *b, size_t max_frame,
			const evc_engine_update *u)
{
	struct parts_out o;
	evc_status st = evc__parts_begin(&o, b, max_frame, FRAME_VARIABLE,
					 update_size(u), "the variable");

	if (st == 0)
		out_update(&o, u);
	return st;
}
