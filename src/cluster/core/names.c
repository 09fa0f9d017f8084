/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions' names, and workers with different functions: a worker is given
 * functions of its table alone, with per-worker values that it can build.  A
 * function that no worker can run waits for a worker.
 * A worker passes by functions that it cannot run, up to a limit: those in
 * front are taken by others or end, so others come nearer.
 * Called by: cluster/calls for names; outcome.c, timeouts.c, workers.c, the
 * engine (worker_names), closures.c by `fits`.
 * Locks: the cluster's lock, held.
 */
#include "base/array.h"
#include "cluster/core/cluster.h"

#include <math.h>

/* ---- texts for ever ---- */

/* A worker of threads:// names its function by evc_progress, and a report may
   have that text when the cluster is gone.  So names are kept for ever, each once:
   a program has some functions, not any number. */
struct said_name {
	struct table_name at;
	char name[NAME_SIZE];
};

static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static struct table said; /* said_lock */

/* NULL: no memory. */
static const char *
static_name(const char *name)
{
	struct said_name *s;

	sync_lock(&said_lock);
	s = evc__table_find_name(&said, name);
	if (s == NULL && evc__table_reserve(&said, 1)) {
		s = sync_alloc(1, sizeof *s);
		if (s != NULL) {
			evc__copy(s->name, sizeof s->name, name);
			s->at.text = s->name;
			evc__table_add_name(&said, &s->at);
		}
	}
	sync_unlock(&said_lock);
	return s != NULL ? s->name : NULL;
}

void
evc__names_forked(void)
{
	sync_lock_init(&said_lock);
	said = (struct table){ .n = 0 };
}

/* ---- the table ---- */

struct cluster_name *
evc__name(evc_cluster *cl, const char *name)
{
	struct cluster_name *n = evc__table_find_name(&cl->names.all, name);

	if (n != NULL || !evc__table_reserve(&cl->names.all, 1))
		return n;
	n = sync_alloc(1, sizeof *n);
	if (n == NULL)
		return NULL;
	n->at.text = static_name(name);
	if (n->at.text == NULL) {
		sync_free(n);
		return NULL;
	}
	evc__table_add_name(&cl->names.all, &n->at);
	return n;
}

evc_status
evc__name_checked(evc_cluster *cl, const char *name,
		  const struct cluster_name **ret)
{
	/* A refused name leaves nothing behind. */
	const struct cluster_name *n =
		cl->names.known ? evc__table_find_name(&cl->names.all, name) :
				  evc__name(cl, name);

	if (cl->names.known && (n == NULL || !n->known))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "no worker has a function called \"%s\"",
				  name);
	if (n == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
	*ret = n;
	return 0;
}

void
evc__names_destroy(evc_cluster *cl)
{
	struct cluster_name *n, *next;

	TABLE_EACH(n, next, &cl->names.all) {
		sync_free(n->has);
		sync_free(n);
	}
	evc__table_free(&cl->names.all);
}

/* ---- which worker has what ---- */

typedef bool name_fn(const struct cluster_name *name, void *arg);

/* Call fn for each name that a worker must have for r: the function's, and
   those that build its per-worker values. false ends the row. */
static void
each_name(const evc_remote *r, name_fn *fn, void *arg)
{
	const evc_per_worker *p;
	unsigned i;

	if (r->function != NULL && !fn(r->function, arg))
		return;
	for (i = 0; r->more != NULL && i < r->more->n_uses; i++)
		for (p = r->more->uses[i]; p != NULL; p = p->dataset)
			if ((p->function != NULL && !fn(p->function, arg)) ||
			    (p->map != NULL && !fn(p->map, arg)))
				return;
}

struct lack {
	uint32_t worker;
	const struct cluster_name *name;
};

static bool
name_has(const struct cluster_name *name, uint32_t worker)
{
	return worker / 64 < name->n_has &&
	       (name->has[worker / 64] >> worker % 64 & 1);
}

/* false: no memory. */
static bool
add_worker(struct cluster_name *name, uint32_t worker)
{
	size_t n = worker / 64;

	/* New words are 0, as all memory of sync_alloc is. */
	if (n >= name->n_has &&
	    !evc__array_grow(&name->has, sizeof *name->has, name->n_has,
			     n + 1 - name->n_has, &name->n_has))
		return false;
	name->has[n] |= UINT64_C(1) << worker % 64;
	return true;
}

static bool
note_lack(const struct cluster_name *name, void *arg)
{
	struct lack *l = arg;

	if (name_has(name, l->worker))
		return true;
	l->name = name;
	return false;
}

/* The first name that the worker lacks for r; NULL: none. */
static const struct cluster_name *
missing_for(const evc_cluster *cl, const evc_remote *r, uint32_t worker)
{
	struct lack l = { .worker = worker };

	if (worker < cl->workers.n && cl->workers.all[worker]->tells)
		each_name(r, note_lack, &l);
	return l.name;
}

static bool
has_names(const evc_cluster *cl, const evc_remote *r, uint32_t worker)
{
	return missing_for(cl, r, worker) == NULL;
}

static bool
worker_fits(const struct closures *q, const struct closure *c, uint32_t worker)
{
	return has_names(LIST_OF(q, evc_cluster, q), REMOTE_OF(c), worker);
}

/* Names of the worker's former life do not count. */
static void
forget_worker(evc_cluster *cl, unsigned worker)
{
	uint64_t now = sync_mono();
	struct cluster_name *n, *next;

	TABLE_EACH(n, next, &cl->names.all)
		if (name_has(n, worker)) {
			n->has[worker / 64] &= ~(UINT64_C(1) << worker % 64);
			n->lost_ns = now;
		}
}

void
evc__sink_worker_names(void *core, unsigned worker,
		       const char *const *functions, unsigned n)
{
	evc_cluster *cl = core;
	struct cluster_worker *w;
	struct cluster_name *name;
	bool all = true;
	unsigned i;

	sync_lock(&cl->q.lock);
	w = cluster_worker_at(&cl->workers, worker);
	if (w != NULL) {
		forget_worker(cl, worker);
		for (i = 0; i < n; i++) {
			if (strlen(functions[i]) >= NAME_SIZE)
				continue;
			name = evc__name(cl, functions[i]);
			all &= name != NULL && add_worker(name, worker);
		}
		/* A name was lost for lack of memory: the worker is given all
		   functions, and refuses those unknown. */
		w->tells = all;
		cl->q.fits = worker_fits;
		evc__turn_ask(cl);
	}
	evc__cluster_unlock(cl);
}

/* ---- one that no worker can run ---- */

/* Can a worker that is up run r? */
static bool
somebody_has(evc_cluster *cl, const evc_remote *r)
{
	uint32_t tag = r->closure.tag;
	unsigned i, k, n = cl->workers.n_wanted;

	if (tag != TAG_ANY)
		return has_names(cl, r, tag);
	/* The worker of the last look comes first: mostly this one is
	   enough. */
	for (k = 0; k < n; k++) {
		i = (cl->names.last + k) % n;
		if (cl->workers.all[i]->state == EVC_WORKER_UP &&
		    has_names(cl, r, i)) {
			cl->names.last = i;
			return true;
		}
	}
	return false;
}

/* A function without a worker is for the log after this time: nodes come one
   after the other. */
#define TELL_NS UINT64_C(2000000000)

static evc_remote *
missing_in(evc_cluster *cl, const struct closure_line *line)
{
	const struct list *n;
	unsigned i, looks = 0;

	for (i = 0; i < PRIORITIES; i++)
		for (n = line->at[i].next; n != &line->at[i]; n = n->next) {
			evc_remote *r = LIST_OF(n, evc_remote, closure.link);

			if (!somebody_has(cl, r))
				return r;
			if (++looks == MISSING_LOOKS)
				return NULL;
		}
	return NULL;
}

static bool
note_loss(const struct cluster_name *name, void *arg)
{
	uint64_t *since = arg;

	if (name->lost_ns > *since)
		*since = name->lost_ns;
	return true;
}

uint64_t
evc__missing_since(const evc_cluster *cl, const evc_remote *r)
{
	uint64_t since = r->queued_ns;
	unsigned i;

	each_name(r, note_loss, &since);
	for (i = 0; i < cl->workers.n; i++)
		if (cl->workers.all[i]->state != EVC_WORKER_UP &&
		    has_names(cl, r, i) &&
		    cl->workers.all[i]->down_ns > since &&
		    cl->workers.all[i]->lives > 0)
			since = cl->workers.all[i]->down_ns;
	return since;
}

/* The name that all workers lack; NULL: they lack different names. */
static const struct cluster_name *
missing_name(const evc_cluster *cl, const evc_remote *r)
{
	const struct cluster_name *name = NULL, *other;
	unsigned i;

	if (r->closure.tag != TAG_ANY)
		return missing_for(cl, r, r->closure.tag);
	for (i = 0; i < cl->workers.n_wanted; i++) {
		if (cl->workers.all[i]->state != EVC_WORKER_UP)
			continue;
		other = missing_for(cl, r, i);
		if (name != NULL && other != name)
			return NULL;
		name = other;
	}
	return name != NULL ? name : r->function;
}

void
evc__missing_describe(const evc_cluster *cl, const evc_remote *r,
		      struct text *t)
{
	const struct cluster_name *name = missing_name(cl, r);
	uint32_t tag = r->closure.tag;

	evc__text_fmt(t, "%s%s ",
		      tag == TAG_ANY ? "no worker" : cl->workers.all[tag]->name,
		      tag == TAG_ANY ? " has had" : " has not had");
	if (name != NULL)
		evc__text_fmt(t, "a function called \"%s\"", name->at.text);
	else
		evc__text_add(t, "both a function and what builds its values");
	if (name != NULL && name != r->function)
		evc__text_add(t, ", which builds a value among its arguments,");
}

uint64_t
evc__missing_note(evc_cluster *cl, const evc_remote *r, uint64_t now)
{
	struct text t = evc__text_in(cl->names.line, sizeof cl->names.line);
	uint64_t since = evc__missing_since(cl, r);
	struct cluster_name *name =
		r->function != NULL ?
			evc__table_find_name(&cl->names.all,
					     r->function->at.text) : NULL;

	if (name == NULL || since <= name->told_ns)
		return SYNC_FOREVER;
	if (now < since + TELL_NS)
		return since + TELL_NS;
	name->told_ns = now;
	evc__missing_describe(cl, r, &t);
	evc__text_fmt(&t, " for %.1f s", (double)(now - since) / 1e9);
	if (!isinf(cl->config.worker_wait))
		evc__text_fmt(&t, "; functions that wait for one fail after"
				  " %g s",
			      cl->config.worker_wait);
	return SYNC_FOREVER;
}

void
evc__missing_tell(evc_cluster *cl)
{
	char line[TEXT_SIZE];

	sync_lock(&cl->q.lock);
	evc__copy(line, sizeof line, cl->names.line);
	cl->names.line[0] = '\0';
	sync_unlock(&cl->q.lock);
	if (line[0] != '\0')
		evc_log(cl->scope, EVC_LOG_WARNING, NULL, "%s", line);
}

evc_remote *
evc__missing_find(evc_cluster *cl)
{
	evc_remote *r = missing_in(cl, &cl->q.common);
	unsigned i;

	for (i = 0; i < cl->workers.n && cl->q.n_tagged > 0 && r == NULL; i++)
		if (cl->workers.all[i]->state == EVC_WORKER_UP)
			r = missing_in(cl, cl->q.own[i]);
	return r;
}

void
evc__names_note(evc_cluster *cl, const evc_remote *r)
{
	if (cl->q.fits != NULL && !somebody_has(cl, r))
		evc__turn_ask(cl);
}
