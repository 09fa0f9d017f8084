/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of a coordinator's parts.  A part is memory of its object, and leaves
 * the list together with its scope, if the part has one.  What reports call for
 * a part, its describer, has memory of its own: the refgate of a describer is
 * entered for one call, so evc_part_remove waits for a function that runs, and
 * for nothing else.
 *
 * Called by: evc_part_add and evc_part_remove, for pools, queues and groups;
 * scope.c drops the part of a scope; observe/described.c calls describers.
 * Locks: the coordinator's.  refs and the refgate are atomic.
 */
#include "base/reserved.h"
#include "base/text.h"
#include "core/core.h"
#include "core/life/part.h"
#include "core/life/scope.h"

static __thread struct evc__inside_describer *innermost;

/* ---- describers ---- */

void
evc__describer_drop(struct evc__describer *d)
{
	if (sync_sub(&d->refs, 1) == 1)
		sync_free(d);
}

bool
evc__describer_enter(struct evc__inside_describer *in, evc_coord *c,
		     struct evc__describer *d)
{
	_Atomic bool *mark = d != NULL ? &d->in_describe
				       : &c->life.in_describe;

	in->c = c;
	in->d = d;
	in->mark = NULL;
	in->up = innermost;
	innermost = in;
	if (!evc__helper_is_self(c))
		return true;
	/* One thread of the helper works at a time: a second one comes only when
	   the first one hangs. */
	if (sync_xchg(mark, true))
		return false;
	in->mark = mark;
	evc__helper_describes(c, true);
	return true;
}

void
evc__describer_leave(struct evc__inside_describer *in)
{
	innermost = in->up;
	if (in->mark != NULL) {
		sync_store(in->mark, false);
		evc__helper_describes(in->c, false);
	}
	if (in->d != NULL)
		evc__refgate_leave(&in->d->gate);
}

static bool
is_inside(const struct evc__describer *d)
{
	const struct evc__inside_describer *in = innermost;

	while (in != NULL && in->d != d)
		in = in->up;
	return in != NULL;
}

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

/* The describer of p, which no list has yet; NULL: no memory. */
static struct evc__describer *
new_describer(const evc_part *p)
{
	struct evc__describer *d = sync_alloc(1, sizeof *d);

	if (d == NULL)
		return NULL;
	evc__copy(d->kind, sizeof d->kind, p->kind);
	evc__copy_dots(d->name, sizeof d->name,
		       p->name != NULL ? p->name : p->kind);
	d->fn = p->describe;
	d->arg = p->arg;
	sync_store_relaxed(&d->refs, 1);
	return d;
}

void
evc__describers_free(evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->life.describers)
		evc__describer_drop(LIST_OF(n, struct evc__describer, node));
}

/* ---- the list ---- */

void
evc__part_drop(evc_part *p)
{
	struct evc__describer *d;

	if (p == NULL || p->coord_ == NULL)
		return;
	*p->at_ = p->next_;
	if (p->next_ != NULL)
		p->next_->at_ = p->at_;
	if (p->scope != NULL)
		p->scope->life.part = NULL;
	d = p->describer_;
	if (d != NULL)
		list_remove(&d->node);
	p->next_ = NULL;
	p->coord_ = NULL;
}

static evc_status
check_part(const evc_coord *c, const evc_part *p)
{
	const char *wrong = NULL;

	if (p == NULL || p->may_free == NULL || p->free_object == NULL)
		wrong = "no part, or no function";
	else if (p->coord_ != NULL || !RESERVED_IS_ZERO(p->reserved_))
		wrong = "it was added, or not zeroed";
	else if (p->scope != NULL && p->scope->parent != c)
		wrong = "the scope is none of this coordinator";
	else if (p->scope != NULL && p->scope->life.part != NULL)
		wrong = "the scope has a part";
	else if (p->scope != NULL && p->describe != NULL)
		wrong = "a scope describes itself by evc_scope_opts";
	else if (p->describe != NULL)
		wrong = why_not_kind(p->kind);
	return wrong == NULL ? 0 : evc__refuse(-EVC_INVALID_ARGUMENT,
					       "evc_part_add: %s", wrong);
}

/* Lock held. */
static void
list_part(evc_coord *c, evc_part *p, struct evc__describer *d)
{
	p->coord_ = c;
	p->at_ = &c->life.parts;
	p->next_ = c->life.parts;
	if (p->next_ != NULL)
		p->next_->at_ = &p->next_;
	c->life.parts = p;
	if (p->scope != NULL)
		p->scope->life.part = p;
	p->describer_ = d;
	if (d != NULL)
		list_append(&c->life.describers, &d->node);
}

static evc_status
add_part(evc_coord *c, evc_part *p)
{
	struct evc__describer *d = NULL;
	evc_status st;

	sync_lock(&c->lock);
	st = check_part(c, p);
	if (st == 0 && c->life.dying)
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_part_add: it is being freed");
	if (st == 0 && p->describe != NULL) {
		d = new_describer(p);
		if (d == NULL)
			st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
					 "evc_part_add: no memory");
	}
	if (st == 0)
		list_part(c, p, d);
	sync_unlock(&c->lock);
	return st;
}

evc_status
evc_part_add(evc_coord *c, evc_part *p)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = evc__enter(c, -EVC_FAILED_PRECONDITION, __func__);
	if (st < 0)
		return st;
	st = add_part(c, p);
	evc__refgate_leave(&c->life.gate);
	return st;
}

evc_status
evc_part_remove(evc_part *p)
{
	evc_coord *c = p != NULL ? p->coord_ : NULL;
	struct evc__describer *d;

	if (c == NULL)
		return 0;
	if (!evc__same_process(c))
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_part_remove: in a fork child");
	d = p->describer_;
	if (d != NULL && is_inside(d))
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_part_remove: inside its describe");
	sync_lock(&c->lock);
	evc__part_drop(p);
	sync_unlock(&c->lock);
	if (d != NULL) {
		p->describer_ = NULL;
		evc__refgate_close(&d->gate);
		evc__describer_drop(d);
	}
	return 0;
}
