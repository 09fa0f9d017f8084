/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker: its life, and one task after the other.  A short function costs a
 * look at the clock and a look-up of its name, and no memory.
 * Called by: the engines "threads" and "processes", cluster/open/main.c.
 * Locks: none; the thread of the functions.
 */
#include "cluster/worker/worker.h"

#include "base/fork.h"
#include "base/text.h"
#include "cluster/worker/exec.h"

__thread const void *evc__exec_of
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* ---- life ---- */

evc_status
evc__worker_new(const struct worker_env *env, struct worker **ret)
{
	struct worker *w = sync_alloc_aligned(64, sizeof *w);
	struct text t;
	evc_status st;

	if (w == NULL || !evc__fork_watch()) {
		sync_free(w);
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "no memory for a worker");
	}
	w->env = *env;
	t = evc__text_in(w->name, sizeof w->name);
	if (env->name != NULL)
		evc__text_add(&t, env->name);
	else
		evc__text_fmt(&t, "worker %u", env->index);
	w->env.name = w->name;
	st = evc__functions_init(&w->functions, env->functions,
				 env->n_functions);
	if (st < 0) {
		sync_free(w);
		return st;
	}
	list_init(&w->locals);
	sync_lock_init(&w->lock);
	w->fork_generation = sync_load_relaxed(&evc__fork_generation);
	*ret = w;
	return 0;
}

static void
drop_spliced(struct worker *w)
{
	if (w->spliced) {
		evc_value_free(&w->exec.args);
		evc_value_free(&w->exec.kwargs);
	}
	w->spliced = false;
}

/* A function, or a build, has ended its thread and not come to its end. */
static void
abandon_function(struct worker *w)
{
	drop_spliced(w);
	evc__exec_end(&w->exec);
	if (w->building != NULL)
		evc__local_abandon(w->building);
}

void
evc__worker_free(struct worker *w)
{
	if (w == NULL)
		return;
	abandon_function(w);
	evc__locals_destroy(w);
	evc__transaction_destroy(w);
	arena_empty(&w->arena, 0);
	spare_drop(&w->spare);
	evc__functions_destroy(&w->functions);
	sync_lock_destroy(&w->lock);
	sync_free(w->ones);
	sync_free(w);
}

void
evc__worker_done(struct worker *w)
{
	arena_empty(&w->arena, ARENA_KEPT);
	w->ended = 0;
}

bool
evc__worker_give(struct worker *w, const evc_value *value)
{
	return arena_give(&w->arena, value);
}

void
evc__worker_spare(struct worker *w, evc_value *value)
{
	spare_put(&w->spare, (void *)value->data, value->size);
	*value = (evc_value){ 0 };
}

void
evc__worker_spare_drop(struct worker *w)
{
	spare_drop(&w->spare);
}

void
evc__worker_rests(struct worker *w)
{
	w->ended = 0;
}

unsigned
evc__worker_n_kept(const struct worker *w)
{
	return w->n_kept;
}

/* ---- run ---- */

static void
fail_result(struct worker *w, evc_engine_result *ret, evc_status code,
	    unsigned kind, const char *text)
{
	ret->code = code;
	ret->kind = kind;
	ret->value = (evc_value){ 0 };
	ret->text = *text != '\0' ?
			    arena_copy(&w->arena, text, strlen(text) + 1) :
			    NULL;
	if (ret->text == NULL && *text != '\0')
		ret->text = "no memory, not even for the text of an error";
}

static void
no_memory(struct worker *w, evc_engine_result *ret, const char *what)
{
	char text[TEXT_SIZE];
	struct text t = evc__text_in(text, sizeof text);

	evc__text_fmt(&t, "%s: no memory for %s", w->name, what);
	fail_result(w, ret, EVC_RESOURCE_EXHAUSTED, EVC_FAILED_FUNCTION, text);
}

struct input_lookup {
	struct worker *w;
	const evc_engine_task *task;
	const evc_engine_input **by_id; /* NULL: few inputs */
	uint64_t missing;               /* id of a missing input; 0: none */
};

#define FEW 8

static int
compare_ids(const void *a, const void *b)
{
	uint64_t x = (*(const evc_engine_input *const *)a)->id;
	uint64_t y = (*(const evc_engine_input *const *)b)->id;

	return (x > y) - (x < y);
}

static const evc_engine_input *
find_input(const struct input_lookup *s, uint64_t id)
{
	unsigned i, low = 0, high = s->task->n_inputs;

	if (s->by_id == NULL) {
		for (i = 0; i < high; i++)
			if (s->task->inputs[i].id == id)
				return &s->task->inputs[i];
		return NULL;
	}
	while (low < high) {
		i = low + (high - low) / 2;
		if (s->by_id[i]->id == id)
			return s->by_id[i];
		if (s->by_id[i]->id < id)
			low = i + 1;
		else
			high = i;
	}
	return NULL;
}

static bool
resolve_input(const struct walk_ref *r, evc_value *ret, void *arg)
{
	struct input_lookup *s = arg;
	const struct worker_env *env = &s->w->env;
	const evc_engine_input *in;

	if (r->per_worker)
		return false;
	in = find_input(s, r->id);
	/* Where nothing is kept, no bytes are nil. */
	if (in != NULL && (in->value.size > 0 || env->kept == NULL)) {
		*ret = in->value;
		return true;
	}
	if (in != NULL && env->kept != NULL &&
	    env->kept(env->arg, r->id, ret))
		return true;
	s->missing = r->id;
	return false;
}

/* The arguments with the results of remotes in their places, both of the heap.
   0; else the result is filled. */
static evc_status
put_inputs(struct worker *w, struct evc_exec *x, const evc_engine_task *task,
       evc_engine_result *ret)
{
	struct input_lookup s = { .w = w, .task = task };
	char text[TEXT_SIZE];
	struct text t = evc__text_in(text, sizeof text);
	unsigned i, n = task->n_inputs;
	evc_status st = 0;

	x->args = x->kwargs = (evc_value){ 0 };
	if (n > FEW) {
		s.by_id = sync_alloc(n, sizeof(*s.by_id));
		if (s.by_id == NULL) {
			no_memory(w, ret, "inputs");
			return ret->code;
		}
		for (i = 0; i < n; i++)
			s.by_id[i] = &task->inputs[i];
		qsort(s.by_id, n, sizeof(*s.by_id), compare_ids);
	}
	if (task->args.size > 0)
		st = evc__walk_splice(&task->args, resolve_input, &s, &x->args);
	if (st == 0 && task->kwargs.size > 0)
		st = evc__walk_splice(&task->kwargs, resolve_input, &s,
				      &x->kwargs);
	sync_free(s.by_id);
	if (st == 0 && s.missing == 0)
		return 0;
	evc_value_free(&x->args);
	evc_value_free(&x->kwargs);
	if (st < 0)
		evc__text_fmt(&t, "%s", evc_last_error());
	else
		evc__text_fmt(&t, "%s has no result of remote %llu", w->name,
			      (unsigned long long)s.missing);
	fail_result(w, ret, st < 0 ? -st : EVC_INTERNAL, EVC_FAILED_FUNCTION,
		    text);
	return ret->code;
}

/* The function's value, in memory that stays. */
static void
take_result(struct worker *w, struct evc_exec *x, evc_engine_result *ret)
{
	if (x->value.size == 0)
		return;
	ret->value = x->value;
	if (x->owned) {
		if (arena_own(&w->arena, &x->value)) {
			x->owned = false;
			return;
		}
	} else {
		ret->value.data = arena_copy(&w->arena, x->value.data,
					     x->value.size);
		if (ret->value.data != NULL)
			return;
	}
	no_memory(w, ret, "a result");
}

static void
call_function(struct worker *w, struct evc_exec *x, const evc_engine_task *task,
	      evc_exec_fn *fn, void *arg, evc_engine_result *ret)
{
	const char *text = NULL;
	evc_status code;

	if (task->n_inputs > 0) {
		if (put_inputs(w, x, task, ret) != 0)
			return;
		w->spliced = true;
	}
	if (w->n_failed > 0 || w->forgot) {
		code = evc__local_failed_input(w, &x->args, &x->kwargs, &text);
		if (code > 0) {
			ret->code = code;
			ret->kind = EVC_FAILED_INPUT;
			ret->text = text;
			goto out;
		}
	}
	code = evc__exec_call(x, fn, arg);
	if (code == 0)
		take_result(w, x, ret);
	else
		fail_result(w, ret, code, EVC_FAILED_FUNCTION,
			    evc__exec_text(x, code));
	if (x->transactional) {
		/* Nothing would show that the read still holds. */
		if (ret->code == 0 && w->tx.unread < 0)
			fail_result(w, ret, -w->tx.unread, EVC_FAILED_FUNCTION,
				    w->tx.why_unread);
		if (!evc__transaction_take(w, ret))
			no_memory(w, ret, "the updates of a function");
		evc__transaction_drop(w);
	} else if (!evc__forked_since(w->fork_generation)) {
		text = evc__exec_settle_additions(w, ret);
		if (text != NULL)
			fail_result(w, ret, ret->code, EVC_FAILED_FUNCTION,
				    text);
	}
	evc__exec_end(x);
out:
	drop_spliced(w);
}

static evc_exec_fn *
look_up_function(struct worker *w, const evc_engine_task *task, void **ret_arg,
		 evc_engine_result *ret)
{
	char text[TEXT_SIZE];
	struct text t = evc__text_in(text, sizeof text);
	const evc_function *f;

	if (task->call != NULL) {
		*ret_arg = task->call_arg;
		return task->call;
	}
	f = evc__functions_find(&w->functions, task->function);
	if (f != NULL) {
		*ret_arg = f->arg;
		return f->fn;
	}
	evc__text_fmt(&t, "%s has no function \"%s\"", w->name, task->function);
	fail_result(w, ret, EVC_INVALID_ARGUMENT, EVC_FAILED_FUNCTION, text);
	return NULL;
}

void
evc__worker_run(struct worker *w, const evc_engine_task *task,
		evc_engine_result *ret)
{
	struct evc_exec *x = &w->exec;
	uint64_t begin;
	evc_exec_fn *fn;
	void *arg;

	*ret = (evc_engine_result){ .n = task->n };
	if (task->n <= sync_load(&w->cancel_upto) ||
	    (sync_load(&w->n_ones) > 0 &&
	     evc__worker_is_one(w, task->n, true))) {
		ret->code = EVC_CANCELLED;
		ret->kind = EVC_FAILED_FUNCTION;
		ret->took = -1;
		return;
	}
	begin = w->ended != 0 ? w->ended : sync_mono();
	fn = look_up_function(w, task, &arg, ret);
	if (fn != NULL) {
		evc__exec_begin(x, w, NULL,
				task->call != NULL ? "call" : task->function);
		x->n = task->n;
		x->attempt = task->attempt;
		x->transactional = (task->flags & EVC_TRANSACTIONAL) != 0;
		x->args = task->args;
		x->kwargs = task->kwargs;
		call_function(w, x, task, fn, arg, ret);
	}
	w->ended = sync_mono();
	ret->took = (double)(w->ended - begin) / 1e9;
}
