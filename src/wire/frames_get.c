/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Readers of frames.  The size of each allocation follows from the bytes that
 * are there, never from a number in the frame alone.
 * Called by: cluster/processes, cluster/worker and redis.
 * Locks: none.
 */
#include <evcoord.h>
#include <math.h>

#include "wire/frames_parts.h"

#define NAME_MOST 47      /* bytes of a function's or a worker's name */
#define VARIABLE_MOST 255

static evc_status
refuse_frame(const struct frame *f, const char *what)
{
	return evc_refuse(-EVC_INVALID_ARGUMENT, "a %s with %s",
			  evc__frame_name(f->type), what);
}

static evc_status
no_memory(const struct frame *f)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory to read a %s",
			  evc__frame_name(f->type));
}

static const char *
or_null(const char *text)
{
	return text[0] != '\0' ? text : NULL;
}

/* ---- to the worker ---- */

evc_status
evc__frame_get_welcome(const struct frame *f, struct frame_welcome *ret)
{
	struct parts_in in = parts_in_of(f);

	ret->index = (unsigned)in_number(&in, 4);
	ret->generation = in_number(&in, 8);
	ret->max_frame = in_number(&in, 8);
	ret->name = in_text(&in, NAME_MOST);
	return evc__parts_end(&in);
}

#define INPUT_LEAST (8 + 4)
#define KEPT UINT32_MAX

static evc_engine_input
in_input(struct parts_in *in)
{
	evc_engine_input i = { .id = in_number(in, 8) };

	if (in->left >= 4 && head_number(in->at, 4) == KEPT)
		(void)in_number(in, 4);
	else {
		i.value = in_value(in);
		if (in->wrong == NULL && i.value.size == 0)
			in->wrong = "with an input of no bytes";
	}
	return i;
}

evc_status
evc__frame_get_task(const struct frame *f, evc_engine_task *ret)
{
	struct parts_in in = parts_in_of(f);
	evc_engine_input *inputs = NULL;
	evc_status st;
	unsigned i, n;

	*ret = (evc_engine_task){ .n = in_number(&in, 8) };
	ret->id = in_number(&in, 8);
	ret->deadline = in_double(&in);
	ret->attempt = (unsigned)in_number(&in, 4);
	ret->flags = (unsigned)in_number(&in, 4);
	n = (unsigned)in_number(&in, 4);
	ret->function = in_text(&in, NAME_MOST);
	ret->args = in_value(&in);
	ret->kwargs = in_value(&in);
	if (in.wrong == NULL && n > in.left / INPUT_LEAST)
		in.wrong = "with fewer inputs than it says";
	if (in.wrong == NULL && n > 0) {
		inputs = sync_alloc(n, sizeof *inputs);
		if (inputs == NULL)
			return no_memory(f);
		for (i = 0; i < n; i++)
			inputs[i] = in_input(&in);
	}
	st = evc__parts_end(&in);
	if (st == 0 && !(ret->deadline >= 0))
		st = refuse_frame(f, "a deadline that is none");
	if (st < 0) {
		sync_free(inputs);
		return st;
	}
	ret->inputs = inputs;
	ret->n_inputs = n;
	return 0;
}

evc_status
evc__frame_get_def(const struct frame *f, evc_engine_def *ret)
{
	struct parts_in in = parts_in_of(f);
	evc_status st;

	*ret = (evc_engine_def){ .id = in_number(&in, 8) };
	ret->of = in_number(&in, 8);
	ret->repeat = in_number(&in, 8);
	ret->seed = in_number(&in, 8);
	ret->kind = (unsigned)in_number(&in, 1);
	ret->shuffle = in_number(&in, 1) != 0;
	ret->name = in_text(&in, NAME_MOST);
	ret->function = or_null(in_text(&in, NAME_MOST));
	ret->map = or_null(in_text(&in, NAME_MOST));
	ret->args = in_value(&in);
	st = evc__parts_end(&in);
	if (st == 0 &&
	    (ret->kind < EVC_DEF_VALUE || ret->kind > EVC_DEF_GIVEN_UP))
		st = refuse_frame(f, "an unknown kind");
	return st;
}

evc_status
evc__frame_get_reply(const struct frame *f, struct frame_reply *ret)
{
	struct parts_in in = parts_in_of(f);
	uint64_t code = in_number(&in, 4);
	evc_status st;

	ret->now = in_double(&in);
	ret->text = in_text(&in, TEXT_MOST);
	ret->value = in_value(&in);
	st = evc__parts_end(&in);
	if (st == 0 && code > 255)
		st = refuse_frame(f, "a code that is none");
	ret->status = st == 0 ? -(evc_status)code : 0;
	return st;
}

/* ---- to the coordinator ---- */

#define NAME_LEAST 4 /* a name of one letter */

evc_status
evc__frame_get_hello(const struct frame *f, const char ***ret_names,
		     unsigned *ret_n)
{
	struct parts_in in = parts_in_of(f);
	uint64_t n = in_number(&in, 4), i;
	const char **names;
	evc_status st;

	if (in.wrong == NULL && n > in.left / NAME_LEAST)
		in.wrong = "with fewer names than it says";
	if (in.wrong == NULL && n > FRAME_NAMES_MOST)
		in.wrong = "with too many names";
	if (in.wrong != NULL)
		return evc__parts_end(&in);
	names = sync_alloc((size_t)n + 1, sizeof *names);
	if (names == NULL)
		return no_memory(f);
	for (i = 0; i < n; i++) {
		names[i] = in_text(&in, NAME_MOST);
		if (in.wrong == NULL && names[i][0] == '\0')
			in.wrong = "with an empty name";
	}
	st = evc__parts_end(&in);
	if (st < 0) {
		sync_free(names);
		return st;
	}
	*ret_names = names;
	*ret_n = (unsigned)n;
	return 0;
}

static evc_status
in_code(struct parts_in *in)
{
	uint64_t code = in_number(in, 4);

	if (in->wrong == NULL && code > 255)
		in->wrong = "with a code that is none";
	return (evc_status)code;
}

evc_status
evc__frame_get_failed(const struct frame *f, struct frame_failed *ret)
{
	struct parts_in in = parts_in_of(f);
	evc_status st;

	ret->code = in_code(&in);
	ret->text = in_text(&in, TEXT_MOST);
	st = evc__parts_end(&in);
	return st == 0 && ret->code == 0 ? refuse_frame(f, "no error") : st;
}

evc_status
evc__frame_get_note(const struct frame *f, struct frame_note *ret)
{
	struct parts_in in = parts_in_of(f);

	ret->number = in_number(&in, 8);
	ret->text = in_text(&in, TEXT_MOST);
	return evc__parts_end(&in);
}

#define UPDATE_LEAST (1 + 8 + 3 + 4 + 4)

static evc_engine_update
in_update(struct parts_in *in)
{
	evc_engine_update u = { .op = (unsigned)in_number(in, 1) };

	u.by = in_double(in);
	u.name = in_text(in, VARIABLE_MOST);
	u.value = in_value(in);
	u.expected = in_value(in);
	return u;
}

static bool
is_of_result(unsigned op)
{
	return op == EVC_VARIABLE_ADD || op == EVC_VARIABLE_SET ||
	       op == EVC_VARIABLE_READ || op == EVC_VARIABLE_READ_HASHED ||
	       op == EVC_VARIABLE_VECTOR_ADD || op == EVC_VARIABLE_VECTOR_READ;
}

/* Read the updates of a result, and the end of the frame. */
static evc_status
get_updates(const struct frame *f, struct parts_in *in, uint64_t n,
	    evc_engine_update **ret)
{
	evc_engine_update *u = NULL;
	evc_status st;
	uint64_t i;

	if (in->wrong == NULL && n > in->left / UPDATE_LEAST)
		in->wrong = "with fewer updates than it says";
	if (in->wrong == NULL && n > 0) {
		u = sync_alloc((size_t)n, sizeof *u);
		if (u == NULL)
			return no_memory(f);
		for (i = 0; i < n; i++) {
			u[i] = in_update(in);
			if (in->wrong == NULL && !is_of_result(u[i].op))
				in->wrong = "with an update that is none";
		}
	}
	st = evc__parts_end(in);
	if (st < 0)
		sync_free(u);
	else
		*ret = u;
	return st;
}

evc_status
evc__frame_get_result(const struct frame *f, struct frame_result *ret)
{
	struct parts_in in = parts_in_of(f);
	evc_engine_result *r = &ret->r;
	evc_engine_update *updates = NULL;
	evc_status st;
	uint64_t n;

	*ret = (struct frame_result){ .r.n = in_number(&in, 8) };
	r->took = in_double(&in);
	r->code = in_code(&in);
	r->kind = (unsigned)in_number(&in, 1);
	ret->kept = in_number(&in, 1) != 0;
	n = in_number(&in, 4);
	r->text = or_null(in_text(&in, TEXT_MOST));
	r->value = in_value(&in);
	st = get_updates(f, &in, n, &updates);
	if (st < 0)
		return st;
	r->updates = updates;
	r->n_updates = (unsigned)n;
	if (!isfinite(r->took))
		st = refuse_frame(f, "a time that is none");
	else if (r->kind > EVC_FAILED_INPUT || (r->code == 0 && r->kind != 0) ||
		 (r->code != 0 && r->kind == 0 && r->took >= 0))
		st = refuse_frame(f, "an error that is none");
	if (st < 0)
		sync_free(updates);
	return st;
}

evc_status
evc__frame_get_built(const struct frame *f, struct frame_built *ret)
{
	struct parts_in in = parts_in_of(f);
	evc_status st;

	ret->id = in_number(&in, 8);
	ret->code = in_code(&in);
	ret->seconds = in_double(&in);
	st = evc__parts_end(&in);
	return st == 0 && !isfinite(ret->seconds)
		       ? refuse_frame(f, "a time that is none")
		       : st;
}

evc_status
evc__frame_get_backed(const struct frame *f, struct frame_backed *ret)
{
	struct parts_in in = parts_in_of(f);

	ret->begun = in_number(&in, 8);
	ret->upto = in_number(&in, 8);
	return evc__parts_end(&in);
}

evc_status
evc__frame_get_variable(const struct frame *f, evc_engine_update *ret)
{
	struct parts_in in = parts_in_of(f);

	*ret = in_update(&in);
	if (in.wrong == NULL && (ret->op < EVC_VARIABLE_ADD ||
				 ret->op > EVC_VARIABLE_COMPARE_SET) &&
	    ret->op != EVC_VARIABLE_VECTOR_ADD &&
	    ret->op != EVC_VARIABLE_VECTOR_GET)
		in.wrong = "with an unknown operation";
	return evc__parts_end(&in);
}
