/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that a running function makes: arguments, result, failure, stop,
 * and information about the attempt.
 * Called by: the program's functions; local.c, dataset.c and worker.c.
 * Locks: none; bell and sleepers of the worker are atomic.
 */
#include "cluster/worker/exec.h"

#include <evcoord/wake.h>
#include <math.h>
#include <stdarg.h>

#include "base/text.h"
#include "base/deadline.h"
#include "wire/head.h"

/* The longest sleep of a function where the stop cannot wake it. */
#define SLICE_NS UINT64_C(25000000)

static const unsigned char no_args = 0x90, no_kwargs = 0x80;

/* ---- the call ---- */

void
evc__exec_begin(struct evc_exec *x, struct worker *w,
		const struct evc_exec *outer, const char *function)
{
	x->w = w;
	x->function = function;
	x->n = outer != NULL ? outer->n : N_BUILDS;
	x->attempt = outer != NULL ? outer->attempt : 1;
	x->transactional = outer != NULL && outer->transactional;
	x->args = x->kwargs = x->value = (evc_value){ 0 };
	x->owned = false;
	x->fail_code = 0;
	x->long_text = NULL;
	x->is_long = false;
	x->builds = NULL;
}

static void
drop_value(struct evc_exec *x)
{
	if (x->owned)
		evc_value_free(&x->value);
	x->value = (evc_value){ 0 };
	x->owned = false;
}

void
evc__exec_end(struct evc_exec *x)
{
	drop_value(x);
}

evc_status
evc__exec_code(evc_status returned)
{
	if (returned < 0 && returned >= -255)
		return -returned;
	return returned < 0 || returned > 255 ? EVC_UNKNOWN : returned;
}

evc_status
evc__exec_call(struct evc_exec *x, evc_exec_fn *fn, void *arg)
{
	return evc__exec_code(fn(x, arg));
}

const char *
evc__exec_text(const struct evc_exec *x, evc_status code)
{
	if (x->fail_code != code)
		return "";
	return x->is_long ? x->long_text : x->text;
}

/* Without memory the text is short. */
static void
set_text(struct evc_exec *x, const char *text)
{
	x->is_long = strlen(text) >= sizeof x->text;
	if (x->is_long && x->long_text == NULL)
		x->long_text = arena_take(&x->w->arena, ERROR_SIZE);
	x->is_long = x->is_long && x->long_text != NULL;
	if (x->is_long)
		evc__copy_ends(x->long_text, ERROR_SIZE, text);
	evc__copy_ends(x->text, sizeof x->text, text);
}

void
evc__exec_inherit(struct evc_exec *x, const struct evc_exec *inner,
		  evc_status code)
{
	x->fail_code = code;
	set_text(x, evc__exec_text(inner, code));
}

bool
evc__exec_take(struct evc_exec *x, evc_value *to, unsigned char *small)
{
	bool owned = x->owned;

	*to = x->value;
	if (!owned && to->size > 0)
		to->data = memcpy(small, x->small, to->size);
	x->value = (evc_value){ 0 };
	x->owned = false;
	return owned;
}

/* ---- arguments ---- */

const evc_value *
evc_exec_args(const evc_exec *x)
{
	static const evc_value none = { &no_args, 1 };

	return x != NULL && x->args.size > 0 ? &x->args : &none;
}

/* For evc__unpack; arg is the worker. */
static bool
local_of_ref(const struct walk_ref *r, evc_local **ret, void *arg)
{
	struct evc_local *l = local_find(arg, r->id);

	if (l == NULL || l->code != 0)
		return false;
	*ret = l;
	return true;
}

static evc_status
unpack_args(evc_exec *x, const evc_value *v, const char *format, va_list ap)
{
	struct unpack_env env = { local_of_ref, x->w };

	return evc__unpack(v, &env, format, ap);
}

evc_status
evc_exec_unpack(evc_exec *x, const char *format, ...)
{
	evc_status st;
	va_list ap;

	if (x == NULL || format == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_unpack: no call, or no format");
	va_start(ap, format);
	st = unpack_args(x, evc_exec_args(x), format, ap);
	va_end(ap);
	return st;
}

evc_status
evc_exec_unpack_named(evc_exec *x, const char *format, ...)
{
	const evc_value none = { &no_kwargs, 1 };
	evc_status st;
	va_list ap;

	if (x == NULL || format == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_unpack_named: no call, or no "
				  "format");
	va_start(ap, format);
	st = unpack_args(x,
			 evc_value_type(&x->kwargs) == EVC_VALUE_NIL ?
				 &none :
				 &x->kwargs,
			 format, ap);
	va_end(ap);
	return st;
}

/* ---- the result ---- */

_Static_assert(SMALL_SIZE >= HEAD_MOST, "a number has room");

static evc_status
return_large(struct evc_exec *x, const char *format, va_list ap)
{
	evc_value v = { 0 };
	evc_status st = evc__pack(&v, NULL, &x->w->spare, format, ap);

	if (st < 0)
		return evc_exec_fail(x, -st, "%s", evc_last_error());
	x->value = v;
	x->owned = v.size > 0;
	return 0;
}

evc_status
evc_exec_return(evc_exec *x, const char *format, ...)
{
	evc_status st = 0;
	evc_value old;
	size_t n = 0;
	bool owned;
	va_list ap;

	if (x == NULL)
		return EVC_INVALID_ARGUMENT;
	if (format == NULL)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT,
				     "evc_exec_return: no format");
	/* A format may name the value that is replaced. */
	old = x->value;
	owned = x->owned;
	x->value = (evc_value){ 0 };
	x->owned = false;
	va_start(ap, format);
	/* A number needs no memory. */
	if (format[0] != '\0' && format[1] == '\0')
		n = evc__put_letter(x->small, format[0], &ap);
	if (n > 0)
		x->value = (evc_value){ x->small, n };
	else
		st = return_large(x, format, ap);
	va_end(ap);
	if (owned)
		evc_value_free(&old);
	return st;
}

/* The text of a failure that does not fit into x->text: `n` bytes. */
__attribute__((format(printf, 3, 0))) static void
format_long(struct evc_exec *x, size_t n, const char *fmt, va_list ap)
{
	char *all = sync_alloc(1, n + 1);
	struct text t;

	if (all == NULL)
		return;
	t = evc__text_in(all, n + 1);
	evc__text_vfmt(&t, fmt, ap);
	set_text(x, all);
	sync_free(all);
}

evc_status
evc_exec_fail(evc_exec *x, evc_status code, const char *fmt, ...)
{
	char text[TEXT_SIZE];
	struct text t = evc__text_in(text, sizeof text);
	va_list ap;

	if (code < 1 || code > 255)
		code = EVC_UNKNOWN;
	if (x == NULL)
		return code;
	x->fail_code = code;
	if (fmt != NULL) {
		va_start(ap, fmt);
		evc__text_vfmt(&t, fmt, ap);
		va_end(ap);
	}
	if (t.len < sizeof text) {
		set_text(x, text);
		return code;
	}
	va_start(ap, fmt);
	/* For want of memory. */
	set_text(x, text);
	format_long(x, t.len, fmt, ap);
	va_end(ap);
	return code;
}

/* ---- the stop ---- */

bool
evc_exec_should_stop(const evc_exec *x)
{
	return x == NULL || evc__worker_is_cancelled(x->w, x->n) ||
	       evc_should_stop(x->w->env.coord);
}

/* Sleep on the bell.  Every cancel moves the bell; rings: the stop does, too. */
static bool
wait_for_bell(evc_exec *x, uint64_t until, bool rings)
{
	struct worker *w = x->w;
	uint64_t left;
	uint32_t seen;

	for (;;) {
		/* Before the look: a later change moves the bell. */
		seen = sync_load_sc(&w->bell);
		if (evc_exec_should_stop(x))
			return true;
		left = evc__deadline_left_ns(until);
		if (left == 0)
			return false;
		if (!rings && left > SLICE_NS)
			left = SLICE_NS;
		sync_futex_wait(&w->bell, seen, left);
	}
}

bool
evc_exec_wait_for_stop(evc_exec *x, double timeout)
{
	bool stop, rings;
	struct worker *w;
	evc_id id = 0;

	/* No thread rings in a fork child. */
	if (evc_exec_should_stop(x) || !(timeout > 0) ||
	    evc__worker_inherited(x->w))
		return evc_exec_should_stop(x);
	w = x->w;
	/* Refused after a stop, which the next look sees. */
	rings = evc_cancel_push(w->env.coord, evc__worker_ring, w, 0, &id) == 0;
	sync_add(&w->sleepers, 1);
	stop = wait_for_bell(x, evc__deadline_in(timeout), rings);
	sync_sub(&w->sleepers, 1);
	if (rings)
		(void)evc_cancel_pop(w->env.coord, id);
	return stop;
}

evc_coord *
evc_exec_coord(const evc_exec *x)
{
	return x != NULL ? x->w->env.coord : NULL;
}

/* ---- the attempt ---- */

evc_status
evc_exec_get(const evc_exec *x, evc_exec_info *ret_info)
{
	if (x == NULL || ret_info == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_get: no call, or no place for the "
				  "answer");
	*ret_info = (evc_exec_info){
		.function = x->function,
		.worker = x->w->name,
		.worker_index = x->w->env.index,
		.attempt = x->attempt,
		.generation = x->w->env.generation,
		.n = x->n == N_BUILDS ? 0 : x->n,
	};
	return 0;
}
