/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A frame, read and written again: what comes out is the same, or it was refused.
 */
#ifndef TESTS_SUPPORT_FRAMES_UTIL_H
#define TESTS_SUPPORT_FRAMES_UTIL_H

#include "wire/frames.h"

#define FRAMES_MOST ((size_t)1 << 20)

/* Texts that were read have one 0 byte, at their end, inside the frame. */
static inline bool
text_is_inside(const struct frame *f, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	return text == NULL || text[0] == '\0' ||
	       (at >= f->body && at < f->body + f->size &&
		strlen(text) < f->size - (size_t)(at - f->body));
}

static inline bool
value_is_inside(const struct frame *f, const evc_value *v)
{
	const unsigned char *at = v->data;

	return v->size == 0 ||
	       (at >= f->body && at <= f->body + f->size &&
		v->size <= f->size - (size_t)(at - f->body));
}

static inline evc_status
task_again(const struct frame *f, struct bytes *to, bool *ret_inside)
{
	evc_engine_task t;
	bool kept[FRAMES_MOST / 12] = { false };
	evc_status st = evc__frame_get_task(f, &t);
	unsigned i;

	if (st < 0)
		return st;
	*ret_inside = text_is_inside(f, t.function) &&
		      value_is_inside(f, &t.args) &&
		      value_is_inside(f, &t.kwargs);
	for (i = 0; i < t.n_inputs; i++) {
		kept[i] = t.inputs[i].value.size == 0;
		*ret_inside &= value_is_inside(f, &t.inputs[i].value);
	}
	st = evc__frame_put_task(to, FRAMES_MOST, &t, kept);
	sync_free((void *)t.inputs);
	return st;
}

static inline evc_status
result_again(const struct frame *f, struct bytes *to, bool *ret_inside)
{
	struct frame_result r;
	evc_status st = evc__frame_get_result(f, &r);
	unsigned i;

	if (st < 0)
		return st;
	*ret_inside = text_is_inside(f, r.r.text) &&
		      value_is_inside(f, &r.r.value);
	for (i = 0; i < r.r.n_updates; i++)
		*ret_inside &= text_is_inside(f, r.r.updates[i].name) &&
			       value_is_inside(f, &r.r.updates[i].value) &&
			       value_is_inside(f, &r.r.updates[i].expected);
	st = evc__frame_put_result(to, FRAMES_MOST, &r);
	sync_free((void *)r.r.updates);
	return st;
}

static inline evc_status
hello_again(const struct frame *f, struct bytes *to, bool *ret_inside)
{
	evc_function *table;
	const char **names;
	unsigned i, n;
	evc_status st = evc__frame_get_hello(f, &names, &n);

	if (st < 0)
		return st;
	table = sync_alloc(n + 1, sizeof *table);
	for (i = 0; i < n; i++) {
		*ret_inside &= text_is_inside(f, names[i]);
		table[i].name = names[i];
	}
	st = evc__frame_put_hello(to, FRAMES_MOST, table, n);
	sync_free(table);
	sync_free(names);
	return st;
}

static inline evc_status
def_again(const struct frame *f, struct bytes *to, bool *ret_inside)
{
	evc_engine_def d;
	evc_status st = evc__frame_get_def(f, &d);

	if (st < 0)
		return st;
	*ret_inside = text_is_inside(f, d.name) &&
		      text_is_inside(f, d.function) &&
		      text_is_inside(f, d.map) && value_is_inside(f, &d.args);
	return evc__frame_put_def(to, FRAMES_MOST, &d);
}

static inline evc_status
small_again(const struct frame *f, struct bytes *to, bool *ret_inside)
{
	struct frame_welcome welcome;
	struct frame_failed failed;
	struct frame_backed backed;
	struct frame_built built;
	struct frame_reply reply;
	struct frame_note note;
	evc_engine_update update;
	uint64_t number;
	evc_status st;

	switch (f->type) {
	case FRAME_WELCOME:
		st = evc__frame_get_welcome(f, &welcome);
		*ret_inside &= st < 0 || text_is_inside(f, welcome.name);
		return st < 0 ? st : evc__frame_put_welcome(to, FRAMES_MOST,
							    &welcome);
	case FRAME_FAILED:
		st = evc__frame_get_failed(f, &failed);
		*ret_inside &= st < 0 || text_is_inside(f, failed.text);
		return st < 0 ? st : evc__frame_put_failed(to, FRAMES_MOST,
							   &failed);
	case FRAME_BUILT:
		st = evc__frame_get_built(f, &built);
		return st < 0 ? st : evc__frame_put_built(to, &built);
	case FRAME_REPLY:
		st = evc__frame_get_reply(f, &reply);
		*ret_inside &= st < 0 || (text_is_inside(f, reply.text) &&
					  value_is_inside(f, &reply.value));
		return st < 0 ? st : evc__frame_put_reply(to, FRAMES_MOST,
							  &reply);
	case FRAME_VARIABLE:
		st = evc__frame_get_variable(f, &update);
		*ret_inside &= st < 0 ||
			       (text_is_inside(f, update.name) &&
				value_is_inside(f, &update.value) &&
				value_is_inside(f, &update.expected));
		return st < 0 ? st : evc__frame_put_variable(to, FRAMES_MOST,
							     &update);
	case FRAME_BACKED:
		st = evc__frame_get_backed(f, &backed);
		return st < 0 ? st : evc__frame_put_backed(to, &backed);
	case FRAME_NODE:
	case FRAME_UP:
	case FRAME_FENCED:
	case FRAME_GONE:
	case FRAME_STACK:
		st = evc__frame_get_note(f, &note);
		*ret_inside &= st < 0 || text_is_inside(f, note.text);
		return st < 0 ? st : evc__frame_put_note(to, f->type, &note);
	case FRAME_LEAVE:
	case FRAME_PING:
	case FRAME_PONG:
	case FRAME_KILL:
	case FRAME_LEFT:
	case FRAME_LOOK:
		st = evc__frame_get_bare(f);
		return st < 0 ? st : evc__frame_put_bare(to, f->type);
	default:
		st = evc__frame_get_number(f, &number);
		return st < 0 ? st : evc__frame_put_number(to, f->type, number);
	}
}

/* 0 and the same frame behind what is there; or refused, and nothing is put.
   *ret_inside: all that was read stood in the frame. */
static inline evc_status
frame_again(const struct frame *f, struct bytes *to, bool *ret_inside)
{
	*ret_inside = true;
	switch (f->type) {
	case FRAME_TASK:
		return task_again(f, to, ret_inside);
	case FRAME_RESULT:
		return result_again(f, to, ret_inside);
	case FRAME_HELLO:
		return hello_again(f, to, ret_inside);
	case FRAME_DEF:
		return def_again(f, to, ret_inside);
	default:
		return small_again(f, to, ret_inside);
	}
}

#endif
