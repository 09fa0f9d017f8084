/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a report that are written by others: a scope's own part, and the
 * parts of describers, which evc_describe_begin adds to a coordinator.  The
 * refgate of a describer is entered for one call, so evc_describe_end waits for
 * a function that runs, and for nothing else.
 * Called by: the program (evc_describe_begin, _end), queue; facts.c.
 * Locks: the coordinator's, taken; none during a call of a describer.  refs and
 * the refgate are atomic.
 */
#include "observe/facts.h"

#include <string.h>

#include "base/prometheus.h"
#include "base/text.h"
#include "base/unwind.h"
#include "core/core.h"

/* Bytes of memory for a part at first, and attempts to have more. */
#define DESCRIBED_FEW 2048
#define DESCRIBED_TRIES 8

struct evc__describer {
	struct evc__listed_describer at; /* first; lock: in the list of c */
	/* set at creation */
	char kind[16], name[48];
	evc_describe_fn *fn;
	void *arg;
	struct refgate gate; /* around calls of fn */
	/* atomic: the list, each report -> the last frees the describer */
	_Atomic uint32_t refs;
};

/* A call in progress on the calling thread; a local variable of the caller. */
struct inside {
	struct evc__describer *d; /* NULL: a scope's own function */
	struct inside *up;
};
static __thread struct inside *innermost;

static void
drop_describer(struct evc__describer *d)
{
	if (sync_sub(&d->refs, 1) == 1)
		sync_free(d);
}

/* ---- the calls ---- */

/* The kind becomes the name of a label. */
static const char *
why_not_kind(const char *kind)
{
	size_t n = kind != NULL ? strspn(kind, "abcdefghijklmnopqrstuvwxyz_")
				: 0;

	if (n == 0 || kind[n] != '\0')
		return "a kind is a word of a-z and _";
	if (n >= sizeof ((struct evc__describer *)0)->kind)
		return "a kind of more than 15 letters";
	if (strcmp(kind, "coordinator") == 0 || strcmp(kind, "scope") == 0)
		return "coordinator and scope are kinds of the library's";
	return NULL;
}

static evc_status
add_describer(evc_coord *c, const char *kind, const char *name,
	      evc_describe_fn *fn, void *arg, evc_id *ret_id)
{
	const char *why = why_not_kind(kind);
	struct evc__describer *d;
	evc_status st = 0;

	if (fn == NULL || ret_id == NULL)
		why = "no function, or no place for the id";
	if (why != NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_describe_begin: %s", why);
	d = sync_alloc(1, sizeof *d);
	if (d == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_describe_begin: no memory");
	evc__copy(d->kind, sizeof d->kind, kind);
	evc__copy_dots(d->name, sizeof d->name, name != NULL ? name : kind);
	d->fn = fn;
	d->arg = arg;
	sync_store_relaxed(&d->refs, 1);
	sync_lock(&c->lock);
	if (c->life.dying)
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_describe_begin: it is being freed");
	else {
		*ret_id = d->at.id = ++c->life.last_describer;
		list_append(&c->life.describers, &d->at.node);
	}
	sync_unlock(&c->lock);
	if (st < 0)
		drop_describer(d);
	return st;
}

evc_status
evc_describe_begin(evc_coord *c, const char *kind, const char *name,
		   evc_describe_fn *describe, void *arg, evc_id *ret_id)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = evc__enter(c, -EVC_FAILED_PRECONDITION, __func__);
	if (st == 0) {
		st = add_describer(c, kind, name, describe, arg, ret_id);
		evc__refgate_leave(&c->life.gate);
	}
	return evc__refuse_setup(c, __func__, st);
}

/* Lock held: the describer; NULL: none. */
static struct evc__describer *
find_describer(evc_coord *c, evc_id id)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->life.describers)
		if (LIST_OF(n, struct evc__listed_describer, node)->id == id)
			return (struct evc__describer *)(void *)n;
	return NULL;
}

static bool
is_inside(const struct evc__describer *d)
{
	const struct inside *in = innermost;

	while (in != NULL && in->d != d)
		in = in->up;
	return in != NULL;
}

evc_status
evc_describe_end(evc_coord *c, evc_id id)
{
	evc_status st = evc__check(c, __func__);
	struct evc__describer *d;

	if (st < 0)
		return st;
	sync_lock(&c->lock);
	d = find_describer(c, id);
	if (d == NULL)
		st = evc__refuse(-EVC_NOT_FOUND,
				 "evc_describe_end: no describer %llu",
				 (unsigned long long)id);
	else if (is_inside(d))
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_describe_end: inside its function");
	else
		list_remove(&d->at.node);
	sync_unlock(&c->lock);
	if (st < 0)
		return st;
	evc__refgate_close(&d->gate);
	drop_describer(d);
	return 0;
}

/* ---- the parts of a report ---- */

WALLED(size_t, call_describe,
       (evc_describe_fn * fn, unsigned form, char *buf, size_t n, void *arg),
       fn(form, buf, n, arg))

/* The thread has left the function, also by its own end. */
static void
leave_describer(struct inside *in)
{
	innermost = in->up;
	if (in->d != NULL)
		evc__refgate_leave(&in->d->gate);
}

/* Call fn until its text fits; the text may grow from call to call.  d: the
   describer, inside its refgate, or NULL. */
static bool
describe(struct evc__describer *d, evc_describe_fn *fn, void *arg,
	 unsigned form, struct evc__facts_part *p)
{
	struct inside in LEAVING(leave_describer) = { d, innermost };
	size_t room = DESCRIBED_FEW;
	unsigned tries;
	char *s;

	innermost = &in;
	for (tries = 0; tries < DESCRIBED_TRIES; tries++) {
		p->text = sync_alloc(room, 1);
		if (p->text == NULL)
			break;
		p->n = call_describe(fn, form, p->text, room, arg);
		if (p->n < room)
			break;
		sync_free(p->text);
		p->text = NULL;
		room = p->n + p->n / 4 + 1;
	}
	s = form != EVC_REPORT_JSON ? p->text : NULL;
	while (s != NULL && (s = strchr(s, '\n')) != NULL)
		*s++ = '\0';
	return p->text != NULL;
}

/* A new part behind *end; NULL: no memory. */
static struct evc__facts_part *
add_part(struct evc__facts *f, struct evc__facts_part ***end)
{
	struct evc__facts_part *p = sync_alloc(1, sizeof *p);

	if (p == NULL) {
		f->lost_described = true;
		return NULL;
	}
	p->twin.name = p->name;
	p->twin.kind = p->kind;
	**end = p;
	*end = &p->next;
	return p;
}

/* Lock held: a part for each describer, with a reference. */
static unsigned
list_describers(evc_coord *c, struct evc__facts *f,
		struct evc__facts_part **end)
{
	struct evc__facts_part *p;
	struct list *n, *tmp;
	unsigned many = 0;

	LIST_EACH(n, tmp, &c->life.describers) {
		struct evc__describer *d = (struct evc__describer *)(void *)n;

		p = add_part(f, &end);
		if (p == NULL)
			break;
		memcpy(p->kind, d->kind, sizeof p->kind);
		memcpy(p->name, d->name, sizeof p->name);
		sync_add(&d->refs, 1);
		p->of = d;
		many++;
	}
	return many;
}

static int
by_name(const void *a, const void *b)
{
	const struct evc__twin *x = *(struct evc__twin *const *)a;
	const struct evc__twin *y = *(struct evc__twin *const *)b;
	int d = strcmp(x->kind, y->kind);

	d = d != 0 ? d : strcmp(x->name, y->name);
	return d != 0 ? d : (x->nth > y->nth) - (x->nth < y->nth);
}

void
evc__number_twins(struct evc__twin **all, unsigned n)
{
	unsigned i, nth = 0;

	for (i = 0; i < n; i++)
		all[i]->nth = i;
	if (n > 1)
		qsort(all, n, sizeof(struct evc__twin *), by_name);
	for (i = 0; i < n; i++) {
		nth = i > 0 && strcmp(all[i]->kind, all[i - 1]->kind) == 0 &&
				      strcmp(all[i]->name,
					     all[i - 1]->name) == 0 ?
			      nth + 1 :
			      0;
		all[i]->nth = nth;
	}
}

void
evc__twin_add(struct text *t, const struct evc__twin *twin)
{
	if (twin->nth > 0 || evc__is_numbered(twin->name))
		evc__text_fmt(t, "#%u", twin->nth + 1);
}

/* Parts of the same kind and name need different labels.  false: no memory. */
static bool
number_parts(struct evc__facts_part *first, unsigned n)
{
	struct evc__twin **all = n > 1 ? sync_alloc(n, sizeof *all) : NULL;
	struct evc__facts_part *p;
	unsigned i = 0;

	if (all == NULL)
		return n <= 1;
	for (p = first; p != NULL; p = p->next)
		all[i++] = &p->twin;
	evc__number_twins(all, n);
	sync_free(all);
	return true;
}

static void
describe_part(struct evc__facts_part *p, unsigned form, struct evc__facts *f)
{
	struct evc__describer *d = p->of;

	/* Not inside: the describer has ended meanwhile, and has no text. */
	if (evc__refgate_enter(&d->gate) &&
	    !describe(d, d->fn, d->arg, form, p))
		f->lost_described = true;
	p->of = NULL;
	drop_describer(d);
}

void
evc__described_take(evc_coord *c, unsigned form, struct evc__facts *f)
{
	struct evc__facts_part **end = &f->parts, *p;
	unsigned n;

	if (c->life.describe != NULL && (p = add_part(f, &end)) != NULL &&
	    !describe(NULL, c->life.describe, c->life.describe_arg, form, p))
		f->lost_described = true;
	sync_lock(&c->lock);
	n = list_describers(c, f, end);
	sync_unlock(&c->lock);
	if (!number_parts(*end, n)) {
		f->lost_described = true;
		form = 0;
	}
	for (p = *end; p != NULL; p = p->next)
		if (form != 0)
			describe_part(p, form, f);
		else
			drop_describer(p->of);
}

void
evc__described_free(struct evc__facts *f)
{
	struct evc__facts_part *p, *next;

	for (p = f->parts; p != NULL; p = next) {
		next = p->next;
		sync_free(p->text);
		sync_free(p);
	}
}
