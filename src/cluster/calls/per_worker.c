/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program's calls for per-worker values, datasets and iterators.
 * Called by: the program.
 * Locks: the cluster's lock, taken.
 */
#include "cluster/core/cluster.h"

#include "wire/walk.h"

/* The largest message about a definition, without the definition's data. */
#define BESIDE 64

/* ---- what is asked for, checked without the lock ---- */

struct ref_seen {
	bool any, per_worker;
};

static bool
note_ref(const struct walk_ref *r, void *arg)
{
	struct ref_seen *s = arg;

	s->any = true;
	s->per_worker = r->per_worker;
	return false;
}

/* 0, or refused: no array, and not nil either if may_be_nil. */
static evc_status
check_value(const evc_value *v, const char *what, bool may_be_nil)
{
	struct ref_seen seen = { false, false };
	evc_status st = evc__value_walk(v->data, v->size, note_ref, &seen);
	unsigned type;

	if (st < 0)
		return st;
	if (seen.any)
		return evc_refuse(
			-EVC_INVALID_ARGUMENT,
			"%s hold a %s: each worker builds its own, "
			"at any time, from plain values alone",
			what, seen.per_worker ? "per-worker value" : "remote");
	type = evc_value_type(v);
	if (type != EVC_VALUE_ARRAY && !(may_be_nil && type == EVC_VALUE_NIL))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s have to be an array", what);
	return 0;
}

static evc_status
check_name(const char *name, const char *what)
{
	if (name == NULL || name[0] == '\0' ||
	    strnlen(name, NAME_SIZE) == NAME_SIZE)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s has a name of 1 to %d bytes", what,
				  NAME_SIZE - 1);
	return 0;
}

static evc_status
check_dataset_opts(const evc_dataset_opts *o, bool of_elements)
{
	if (!RESERVED_IS_ZERO(o->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "reserved room is not zero");
	if (o->shuffle && !of_elements)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "only a dataset of elements can be "
				  "shuffled");
	return o->map != NULL ? check_name(o->map, "a function") : 0;
}

static size_t
text_size(const char *s)
{
	return s != NULL ? strlen(s) + 1 : 0;
}

/* Bytes of all data of a definition. */
static size_t
tail_size(const evc_engine_def *d)
{
	return text_size(d->name) + text_size(d->function) +
	       text_size(d->map) + d->args.size;
}

static evc_status
check_def(const evc_cluster *cl, const evc_engine_def *d)
{
	bool of_elements = d->kind == EVC_DEF_ELEMENTS;
	const char *what = of_elements ? "elements" : "args";
	evc_status st = check_name(d->name, "a per-worker value");

	if (st == 0 && !of_elements)
		st = check_name(d->function, "a function");
	if (st == 0)
		st = check_value(&d->args, what, !of_elements);
	/* Later there is nobody to tell: a worker knows nothing of a definition
	   that could not be sent. */
	if (st == 0 && tail_size(d) + BESIDE > cl->config.max_frame)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"%s are larger than max_frame, with what a "
				"message has beside them", what);
	return st;
}

/* ---- one piece of memory for all of it ---- */

static const void *
copy_to_tail(char **to, const void *bytes, size_t n)
{
	char *at = *to;

	if (bytes == NULL || n == 0)
		return NULL;
	memcpy(at, bytes, n);
	*to += n;
	return at;
}

static evc_per_worker *
make_per_worker(const evc_engine_def *d)
{
	evc_per_worker *p = sync_alloc(1, sizeof *p + tail_size(d));
	char *to;

	if (p == NULL)
		return NULL;
	to = p->tail;
	p->def = *d;
	p->def.name = copy_to_tail(&to, d->name, text_size(d->name));
	p->def.function =
		copy_to_tail(&to, d->function, text_size(d->function));
	p->def.map = copy_to_tail(&to, d->map, text_size(d->map));
	p->def.args.data = copy_to_tail(&to, d->args.data, d->args.size);
	return p;
}

/* ---- into the cluster: lock held ---- */

static evc_status
check_function(evc_cluster *cl, const char *function,
	       const struct cluster_name **ret)
{
	return function != NULL ? evc__name_checked(cl, function, ret) : 0;
}

static evc_status
add_per_worker(evc_cluster *cl, evc_per_worker *p, evc_per_worker *dataset)
{
	evc_status st = 0;

	if (cl->stop.begun)
		st = evc_refuse(-EVC_CANCELLED, "the cluster was stopped");
	if (st == 0)
		st = check_function(cl, p->def.function, &p->function);
	if (st == 0)
		st = check_function(cl, p->def.map, &p->map);
	if (st < 0)
		return st;
	if (dataset != NULL) {
		evc__per_worker_ref(dataset);
		p->dataset = dataset;
		p->def.of = dataset->def.id;
	}
	evc__per_worker_add(cl, p);
	return 0;
}

static evc_status
define_per_worker(evc_cluster *cl, const evc_engine_def *d,
		  evc_per_worker *dataset, evc_per_worker **ret)
{
	evc_per_worker *p = make_per_worker(d);
	evc_status st;

	if (p == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
	/* The handle keeps the cluster's memory. */
	evc__cluster_ref(cl);
	sync_lock(&cl->q.lock);
	st = add_per_worker(cl, p, dataset);
	evc__cluster_unlock(cl);
	if (st < 0) {
		sync_free(p);
		evc__cluster_unref(cl);
		return st;
	}
	*ret = p;
	return 0;
}

static evc_status
check_ret(evc_per_worker **ret)
{
	if (ret == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no place for the per-worker value");
	return 0;
}

static evc_status
define_with_opts(evc_cluster *cl, evc_engine_def *d, const evc_value *args,
		 const evc_dataset_opts *opts, evc_per_worker **ret)
{
	evc_status st = evc__cluster_check(cl);

	if (st == 0)
		st = check_ret(ret);
	if (st == 0 && opts != NULL) {
		st = check_dataset_opts(opts, d->kind == EVC_DEF_ELEMENTS);
		d->map = opts->map;
		d->repeat = opts->repeat;
		d->shuffle = opts->shuffle;
		d->seed = opts->seed;
	}
	if (d->kind != EVC_DEF_VALUE && d->repeat == 0)
		d->repeat = 1;
	if (args != NULL)
		d->args = *args;
	if (st == 0)
		st = check_def(cl, d);
	return st < 0 ? st : define_per_worker(cl, d, NULL, ret);
}

/* ---- the calls ---- */

evc_status
evc_per_worker_value(evc_cluster *cluster, const char *name,
		     const char *function, const evc_value *args,
		     evc_per_worker **ret_value)
{
	evc_engine_def d = { .kind = EVC_DEF_VALUE,
			     .name = name,
			     .function = function };

	return define_with_opts(cluster, &d, args, NULL, ret_value);
}

evc_status
evc_per_worker_dataset(evc_cluster *cluster, const char *name,
		       const char *function, const evc_value *args,
		       const evc_dataset_opts *opts,
		       evc_per_worker **ret_dataset)
{
	evc_engine_def d = { .kind = EVC_DEF_DATASET,
			     .name = name,
			     .function = function };

	return define_with_opts(cluster, &d, args, opts, ret_dataset);
}

evc_status
evc_per_worker_dataset_of(evc_cluster *cluster, const char *name,
			  const evc_value *elements,
			  const evc_dataset_opts *opts,
			  evc_per_worker **ret_dataset)
{
	evc_engine_def d = { .kind = EVC_DEF_ELEMENTS, .name = name };

	return define_with_opts(cluster, &d, elements, opts, ret_dataset);
}

evc_status
evc_per_worker_iterator(evc_per_worker *dataset, evc_per_worker **ret_iterator)
{
	evc_engine_def d = { .kind = EVC_DEF_ITERATOR };
	evc_status st = check_ret(ret_iterator);

	if (st < 0)
		return st;
	if (dataset == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "there is no dataset");
	st = evc__cluster_check(dataset->cl);
	if (st < 0)
		return st;
	if (dataset->def.kind != EVC_DEF_DATASET &&
	    dataset->def.kind != EVC_DEF_ELEMENTS)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "%s is no dataset",
				  dataset->def.name);
	d.name = dataset->def.name;
	return define_per_worker(dataset->cl, &d, dataset, ret_iterator);
}

evc_status
evc_per_worker_next(evc_per_worker *iterator, evc_value *ret_value)
{
	(void)ret_value;
	return evc_refuse(-EVC_UNIMPLEMENTED,
			  "%s is on the workers alone: pass it to "
			  "evc_schedule, and call evc_exec_next in the "
			  "function",
			  iterator != NULL ? iterator->def.name
					   : "an iterator");
}

void
evc_per_worker_free(evc_per_worker *value)
{
	evc_cluster *cl;

	/* In a fork child the memory is a copy, which nobody needs back. */
	if (value == NULL || cluster_inherited(value->cl))
		return;
	cl = value->cl;
	sync_lock(&cl->q.lock);
	value->named = false;
	evc__per_worker_unref(value);
	evc__cluster_unlock(cl);
	evc__cluster_unref(cl);
}
