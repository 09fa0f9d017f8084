/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What others say in a report: a scope of itself, and the describers of parts
 * (core/life/part.c).
 * Called by: facts.c.
 * Locks: the coordinator's, taken; none during a call.
 */
#include "observe/facts.h"

#include <string.h>

#include "base/prometheus.h"
#include "base/text.h"
#include "base/unwind.h"
#include "core/core.h"
#include "core/life/part.h"
#include "core/life/scope.h"

/* Bytes of memory for a part at first, and attempts to have more. */
#define DESCRIBED_FEW 2048
#define DESCRIBED_TRIES 8
/* The same for a part with stacks, which are not to be taken twice; memory that
   is not written costs nothing. */
#define DESCRIBED_STACKS ((size_t)512 << 10)

/* Time for the stacks of another process, and a moment more. */
#define STACKS_NS UINT64_C(400000000)

WALLED(size_t, call_describe,
       (evc_describe_fn * fn, unsigned form, char *buf, size_t n, void *arg),
       fn(form, buf, n, arg))

/* The function hangs on another thread: lines say so; JSON and metrics have no
   place for it. */
static bool
describe_hung(unsigned form, struct evc__facts_part *p)
{
	static const char in[] = "in its describe";

	if (form != EVC_REPORT_TEXT)
		return true;
	p->text = sync_alloc(1, sizeof in);
	if (p->text != NULL)
		memcpy(p->text, in, p->n = sizeof in - 1);
	return p->text != NULL;
}

/* Call fn until its text fits; the text may grow from call to call.  d: the
   describer, inside its refgate, or NULL. */
static bool
describe(evc_coord *c, struct evc__describer *d, evc_describe_fn *fn, void *arg,
	 unsigned form, struct evc__facts_part *p)
{
	struct evc__inside_describer in LEAVING(evc__describer_leave);
	size_t room = form != REPORT_FORM(form) ? DESCRIBED_STACKS :
						  DESCRIBED_FEW;
	unsigned tries;
	char *s;

	if (!evc__describer_enter(&in, c, d))
		return describe_hung(REPORT_FORM(form), p);
	if (form != REPORT_FORM(form))
		evc__helper_takes(c, STACKS_NS);
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
	s = REPORT_FORM(form) != EVC_REPORT_JSON ? p->text : NULL;
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
		struct evc__describer *d =
			LIST_OF(n, struct evc__describer, node);

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
describe_part(evc_coord *c, struct evc__facts_part *p, unsigned form,
	      struct evc__facts *f)
{
	struct evc__describer *d = p->of;

	/* Not inside: the describer has ended meanwhile, and has no text. */
	if (evc__refgate_enter(&d->gate) &&
	    !describe(c, d, d->fn, d->arg, form, p))
		f->lost_described = true;
	p->of = NULL;
	evc__describer_drop(d);
}

/* The format for a scope's own function. */
static unsigned
own_format(const evc_coord *c, unsigned format, const struct evc__facts *f)
{
	unsigned form = REPORT_FORM(format);

	/* As look.c takes stacks of threads. */
	if (c->life.describe_stacks && form != EVC_REPORT_METRICS &&
	    (form != format || (f->word & WORD_FLAG)))
		return form | EVC_REPORT_STACKS;
	return form;
}

/* The first facts of the report whose functions the calling thread calls. */
static __thread const struct evc__facts *describing;

struct evc__facts_thread *
evc__described_thread(int tid)
{
	struct evc__facts_thread *t =
		describing != NULL ? describing->threads : NULL;

	while (t != NULL && t->tid != tid)
		t = t->next;
	return t;
}

static void
describe_runners(evc_coord *c, struct evc__facts *f)
{
	unsigned i;

	for (i = 0; i < f->n_members; i++)
		evc__describe_runner(c, &f->members[i].info);
}

static void
describe_one(evc_coord *c, unsigned format, struct evc__facts *f)
{
	struct evc__facts_part **end = &f->parts, *p;
	unsigned n, form = REPORT_FORM(format);

	if (c->life.describe != NULL && (p = add_part(f, &end)) != NULL &&
	    !describe(c, NULL, c->life.describe, c->life.describe_arg,
		      own_format(c, format, f), p))
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
			describe_part(c, p, form, f);
		else
			evc__describer_drop(p->of);
}

static void
describe_all(evc_coord *c, unsigned format, struct evc__facts *f)
{
	struct evc__facts *s = f->below;
	unsigned n, i;
	evc_coord **below;

	describe_runners(c, f);
	describe_one(c, format, f);
	below = evc__scopes_keep(c, &n);
	f->lost_described |= below == NULL && n > 0;
	/* Scopes and their facts are in one order; a scope may have gone or come
	   meanwhile. */
	for (i = 0; below != NULL && i < n; i++) {
		while (s != NULL && s->number < below[i]->number)
			s = s->next;
		if (s != NULL && s->number == below[i]->number)
			describe_all(below[i], format, s);
		evc__refgate_leave(&below[i]->life.gate);
	}
	sync_free(below);
}

void
evc__described_take(evc_coord *c, unsigned format, struct evc__facts *f)
{
	const struct evc__facts *outer = describing;

	describing = f;
	describe_all(c, format, f);
	describing = outer;
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
