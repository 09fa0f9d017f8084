/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects that a worker keeps - per-worker values, datasets, iterators -
 * from their definition until they are dropped.  An object that could not be
 * built stays with its error, for the functions that use it.
 * Called by: the engines (evc__worker_define), worker.c; the program's
 * functions.
 * Locks: none; the thread of the functions.
 */
#include "base/reserved.h"
#include "base/text.h"
#include "base/deadline.h"
#include "cluster/worker/exec.h"

/* ---- what failed ---- */

struct failed_lookup {
	struct worker *w;
	uint64_t id;
	const struct evc_local *l; /* NULL: the object is unknown */
	bool found;
};

static bool
look_for_failed(const struct walk_ref *r, void *arg)
{
	struct failed_lookup *s = arg;
	const struct evc_local *l;

	if (!r->per_worker)
		return true;
	l = local_find(s->w, r->id);
	if (l != NULL ? l->code == 0 : !s->w->forgot)
		return true;
	s->found = true;
	s->id = r->id;
	s->l = l;
	return false;
}

evc_status
evc__local_failed_input(struct worker *w, const evc_value *args,
			const evc_value *kwargs, const char **ret_text)
{
	struct failed_lookup s = { .w = w };
	char text[TEXT_SIZE];
	struct text t = evc__text_in(text, sizeof text);

	(void)evc__value_walk(args->data, args->size, look_for_failed, &s);
	if (!s.found)
		(void)evc__value_walk(kwargs->data, kwargs->size, look_for_failed,
				&s);
	if (!s.found)
		return 0;
	if (s.l != NULL) {
		evc__text_fmt(&t, "input %s on %s: ", s.l->name, w->name);
		evc__text_ends(&t, s.l->text);
	} else
		evc__text_fmt(&t, "input %llu on %s: no memory to build it",
			      (unsigned long long)s.id, w->name);
	*ret_text = arena_copy(&w->arena, text, strlen(text) + 1);
	return s.l != NULL ? s.l->code : EVC_RESOURCE_EXHAUSTED;
}

/* ---- build ---- */

evc_status
evc_exec_keep(evc_exec *x, const evc_keep_ops *ops, void *state)
{
	if (x == NULL || ops == NULL || !RESERVED_IS_ZERO(ops->reserved_) ||
	    (ops->iterate != NULL) != (ops->next != NULL))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_exec_keep: %s",
				  x == NULL   ? "no call" :
				  ops == NULL ? "no ops" :
						"ops->iterate and ->next go "
						"together, reserved_ is 0");
	if (x->builds == NULL)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_exec_keep: \"%s\" was not called to "
				  "build something",
				  x->function);
	if (x->builds->kept)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_exec_keep: \"%s\" has kept something",
				  x->function);
	x->builds->kept = true;
	x->builds->ops = *ops;
	x->builds->state = state;
	return 0;
}

static evc_status
note_error(struct evc_local *l, evc_status code, const char *text)
{
	evc__copy_ends(l->text, sizeof l->text, text);
	return code;
}

static evc_status
build_by_function(struct evc_local *l, const evc_engine_def *def)
{
	struct worker *w = l->w;
	struct evc_exec *x = &w->exec;
	const evc_function *f = evc__functions_find(&w->functions,
						    def->function);
	struct text t = evc__text_in(l->text, sizeof l->text);
	evc_status code;

	if (f == NULL) {
		evc__text_fmt(&t, "there is no function \"%s\"", def->function);
		return EVC_INVALID_ARGUMENT;
	}
	evc__exec_begin(x, w, NULL, f->name);
	x->args = def->args;
	x->builds = l;
	code = evc__exec_call(x, f->fn, f->arg);
	if (code != 0) {
		/* The function owns its state again. */
		l->kept = false;
		(void)note_error(l, code, evc__exec_text(x, code));
	} else if (!l->kept) {
		(void)evc__exec_take(x, &l->value, l->small);
	}
	evc__exec_end(x);
	if (code == 0 && def->kind == EVC_DEF_DATASET &&
	    (!l->kept || l->ops.iterate == NULL)) {
		evc__text_fmt(&t, "\"%s\" has kept no dataset", f->name);
		return EVC_FAILED_PRECONDITION;
	}
	return code;
}

static evc_status
build_iterator(struct evc_local *l, const evc_engine_def *def)
{
	struct evc_local *dataset = local_find(l->w, def->of);

	if (dataset == NULL)
		return note_error(l, EVC_INTERNAL,
				  "its dataset was never built");
	if (dataset->code != 0)
		return note_error(l, dataset->code, dataset->text);
	evc__exec_begin(&l->w->exec, l->w, NULL, dataset->name);
	return evc__iterator_build(l, &l->w->exec, dataset);
}

static evc_status
build_local(struct evc_local *l, const evc_engine_def *def)
{
	evc_status code = 0;

	switch (def->kind) {
	case EVC_DEF_VALUE:
		return build_by_function(l, def);
	case EVC_DEF_DATASET:
		code = build_by_function(l, def);
		return code != 0 ? code : evc__dataset_build(l, def);
	case EVC_DEF_ELEMENTS:
		return evc__dataset_build(l, def);
	case EVC_DEF_ITERATOR:
		return build_iterator(l, def);
	case EVC_DEF_GIVEN_UP:
		return note_error(l, EVC_ABORTED,
				  "to build it has ended too many workers");
	default:
		return note_error(l, EVC_UNIMPLEMENTED,
				  "nobody knows how to build it");
	}
}

/* ---- drop ---- */

static void unref_local(struct evc_local *l);

/* Free all but the name and the error. */
static void
clear_local(struct evc_local *l)
{
	void (*free_state)(void *state) = l->ops.free;

	if (l->kind == EVC_DEF_ITERATOR)
		evc__iterator_destroy(l);
	if (l->dataset != NULL)
		unref_local(l->dataset);
	l->dataset = NULL;
	if (l->kept && free_state != NULL)
		free_state(l->state);
	l->kept = false;
	if (l->value.data != l->small)
		evc_value_free(&l->value);
	l->value = (evc_value){ 0 };
	sync_free(l->elements);
	l->elements = NULL;
}

static void
unref_local(struct evc_local *l)
{
	struct worker *w = l->w;

	if (--l->refs > 0)
		return;
	list_remove(&l->link);
	clear_local(l);
	if (l->code == 0)
		w->n_kept--;
	else
		w->n_failed--;
	sync_free(l);
}

static void
drop_local(struct worker *w, uint64_t id)
{
	struct evc_local *l = local_find(w, id);

	if (l == NULL)
		return;
	/* Iterators may need the object; functions find it no more. */
	evc__table_remove(&w->by_id, &l->node);
	unref_local(l);
}

void
evc__local_abandon(struct evc_local *l)
{
	/* The function owns its state again. */
	l->kept = false;
	clear_local(l);
	sync_free(l);
}

/* The youngest object, or iterator; NULL: none. */
static struct evc_local *
latest_local(const struct worker *w, bool iterator)
{
	struct list *at;

	for (at = w->locals.prev; at != &w->locals; at = at->prev)
		if (!iterator || LIST_OF(at, struct evc_local, link)->kind ==
					 EVC_DEF_ITERATOR)
			return LIST_OF(at, struct evc_local, link);
	return NULL;
}

void
evc__locals_destroy(struct worker *w)
{
	struct evc_local *l;

	/* A dropped dataset that stayed for its iterators has gone with the
	   last of them. */
	while ((l = latest_local(w, true)) != NULL)
		drop_local(w, l->id);
	while ((l = latest_local(w, false)) != NULL)
		drop_local(w, l->id);
	evc__table_free(&w->by_id);
}

/* ---- define ---- */

static struct evc_local *
make_local(struct worker *w, const evc_engine_def *def)
{
	struct evc_local *l = evc__table_reserve(&w->by_id, 1) ?
				      sync_alloc(1, sizeof *l) : NULL;
	struct text t;

	if (l == NULL)
		return NULL;
	l->w = w;
	l->id = def->id;
	l->kind = def->kind;
	l->refs = 1;
	t = evc__text_in(l->name, sizeof l->name);
	if (def->name != NULL && *def->name != '\0')
		evc__text_add(&t, def->name);
	else
		evc__text_fmt(&t, "%llu", (unsigned long long)def->id);
	return l;
}

static evc_status
define_local(struct worker *w, const evc_engine_def *def)
{
	struct evc_local *l = local_find(w, def->id);

	w->text[0] = '\0';
	if (def->kind == EVC_DEF_DROP) {
		drop_local(w, def->id);
		return 0;
	}
	if (l == NULL) {
		l = make_local(w, def);
		if (l == NULL) {
			w->forgot = true;
			evc__copy(w->text, sizeof w->text, "no memory");
			return EVC_RESOURCE_EXHAUSTED;
		}
		w->building = l;
		l->code = build_local(l, def);
		w->building = NULL;
		evc__table_add(&w->by_id, &l->node);
		list_append(&w->locals, &l->link);
		if (l->code == 0) {
			w->n_kept++;
		} else {
			clear_local(l);
			w->n_failed++;
		}
	}
	evc__copy(w->text, sizeof w->text, l->text);
	return l->code;
}

evc_status
evc__worker_define(struct worker *w, const evc_engine_def *def,
		   const char **ret_text, double *ret_seconds)
{
	uint64_t begin = sync_mono();
	evc_status code = define_local(w, def);

	if (ret_text != NULL)
		*ret_text = w->text;
	if (ret_seconds != NULL)
		*ret_seconds = (double)(sync_mono() - begin) / 1e9;
	return code;
}

/* ---- for functions ---- */

void *
evc_local_state(const evc_local *local)
{
	if (local == NULL)
		return NULL;
	return local->kind == EVC_DEF_ITERATOR ? local->iterator :
	       local->kept			? local->state :
						  NULL;
}

const evc_value *
evc_local_value(const evc_local *local)
{
	static const evc_value nil;

	return local != NULL && local->kind == EVC_DEF_VALUE ? &local->value :
							       &nil;
}
