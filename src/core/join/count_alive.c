/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The members that keep a join waiting: how many, how long they may take, their
 * names.  Loops write the numbers of tasks without the lock; after each change
 * that can change an answer the loop rings, and the join counts again.
 *
 * Called by: list.c, verdict.c; free, clear and reports, for the names.
 * Locks: the coordinator's is held, the scopes' are taken below.
 */
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "core/core.h"
#include "core/join/scope_join.h"
#include "core/loop/post.h"
#include "core/join/join.h"

/* Does m keep a join of c waiting?  self has begun this join, and does not
   count; nor do members that join c. */
static bool
keeps_waiting(const evc_coord *c, const struct evc__member *m,
	      const struct evc__member *self)
{
	struct list *n, *tmp;

	if (self == NULL || m == self)
		return self == NULL;
	if (m->c == c)
		return m->n_joining == 0;
	LIST_EACH(n, tmp, &c->join.all)
	if (LIST_OF(n, struct evc__join, node)->self == m)
		return false;
	return true;
}

/* Does h keep a join of c waiting?  not_of: see evc__count_alive. */
static bool
hook_keeps_waiting(const evc_coord *c, const struct evc__hook *h, int not_of)
{
	if (not_of != 0 && h->running == abs(not_of))
		return false;
	if (not_of > 0 && (h->reactor != NULL ? h->reactor->tid == not_of
					      : evc__helper_is_self(c)))
		return false;
	return evc__hook_pending(h, sync_load(&c->word));
}

/* The parameters of a count, and of a list of names. */
struct look {
	const evc_coord *top; /* the joined coordinator */
	const struct evc__member *self;
	bool hooks;
	int not_of;
};

/* Add members to the count.  grace: seconds after which these members are late;
   0: the grace of the join. */
static void
add_to(struct evc__alive_count *count, unsigned many, bool background,
       double grace)
{
	double g = grace == 0 ? INFINITY : grace;

	if (many == 0)
		return;
	count->alive += many;
	count->foreground += background ? 0 : many;
	count->longest = g > count->longest ? g : count->longest;
}

static void
count_looper(const struct evc__looper_view *v, void *arg)
{
	if (v->alive)
		add_to(arg, 1, v->e->flags & EVC_BACKGROUND, v->grace);
}

static void
count_reactor(struct evc__alive_count *count, const evc_reactor *r)
{
	add_to(count, sync_load(&r->n_tasks), false, 0);
	add_to(count, sync_load_sc(&r->inbox->n), false, 0);
	if (r->n_loopers_own_grace > 0) {
		r->looper_ops->each(r, count_looper, count);
		return;
	}
	add_to(count, r->n_loopers_background, true, 0);
	add_to(count, r->n_loopers - r->n_loopers_background, false, 0);
}

static void
count_hooks(struct evc__alive_count *count, const struct look *l,
	    const evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.hooks)
	if (hook_keeps_waiting(c, HOOK_OF(n), l->not_of))
		add_to(count, 1, false, HOOK_OF(n)->m.grace);
}

/* Count the members of c itself, without the scopes below. */
static void
count_own(struct evc__alive_count *count, const struct look *l,
	  const evc_coord *c)
{
	struct list *n, *tmp;

	if (l->self == NULL && c->member.n_own_grace == 0) {
		add_to(count, c->member.n_background, true, 0);
		add_to(count, c->member.n - c->member.n_background, false, 0);
	} else
		LIST_EACH(n, tmp, &c->member.all)
		{
			const struct evc__member *m =
				LIST_OF(n, struct evc__member, node);

			if (keeps_waiting(l->top, m, l->self))
				add_to(count, 1, m->e.flags & EVC_BACKGROUND,
				       m->grace);
		}
	add_to(count, c->life.held, false, 0);
	add_to(count, c->wake.n_echoes, false, 0);
	LIST_EACH(n, tmp, &c->loop.reactors)
	count_reactor(count, LIST_OF(n, evc_reactor, node));
	if (l->hooks)
		count_hooks(count, l, c);
}

static bool
nothing_to_call(evc_coord *s)
{
	return sync_load_sc(&s->loop.n_hooks) == 0 &&
	       sync_load_sc(&s->loop.n_hooks_below) == 0 &&
	       sync_load(&s->join.scope_join) == NULL;
}

/* Lock of c held: count the members of the scopes below c.  until_foreground:
   the first member in the foreground ends the count.  true: ended early. */
static bool
count_below(struct evc__alive_count *count, const struct look *l, evc_coord *c,
	    bool until_foreground)
{
	struct list *n, *tmp;
	bool enough = false;

	LIST_EACH(n, tmp, &c->scopes)
	{
		evc_coord *s = SCOPE_OF(n);

		if (sync_load_sc(&s->stop.alive) == 0 &&
		    (!l->hooks || nothing_to_call(s)))
			continue;
		sync_lock(&s->lock);
		count_own(count, l, s);
		if (l->hooks && evc__scope_join_due(s, abs(l->not_of)))
			add_to(count, 1, false, 0);
		enough = (until_foreground && count->foreground > 0) ||
			 count_below(count, l, s, until_foreground);
		sync_unlock(&s->lock);
		if (enough)
			break;
	}
	return enough;
}

struct evc__alive_count
evc__count_alive(evc_coord *c, const struct evc__member *self, bool hooks,
		 int hooks_not_of)
{
	struct look l = { c, self, hooks, hooks_not_of };
	struct evc__alive_count count = { 0, 0, 0 }, below = { 0, 0, 0 };
	unsigned n_live;

	/* A loop stores its number of tasks before the loop changes `alive`, so
	   after this load the number is up to date. */
	(void)sync_load_sc(&c->stop.alive);
	count_own(&count, &l, c);
	if (list_empty(&c->scopes))
		return count;
	/* c counts each scope with a living member as 1.  The scopes are walked
	   only when the answer needs more: the longest grace, members to leave
	   out, due hooks, or, when c has no other member in the foreground,
	   whether a member below is in the foreground. */
	if (self != NULL || sync_load_sc(&c->tree->own_grace) ||
	    (hooks && sync_load_sc(&c->loop.n_hooks_below) > 0)) {
		count_below(&count, &l, c, false);
		return count;
	}
	n_live = sync_load_sc(&c->stop.n_live_scopes);
	add_to(&count, n_live, true, 0);
	if (count.foreground == 0 && n_live > 0) {
		count_below(&below, &l, c, true);
		/* When no member is found, the last member is leaving just now,
		   and will ring. */
		count.foreground = below.alive > 0 ? below.foreground : 1;
	}
	return count;
}

/* ---- names ---- */

struct names {
	struct text t;
	size_t room;
	unsigned n, cut;
	const struct look *l;
	char path[96]; /* "scope/" of the scopes around */
	uint64_t word;
};

static void
add_alive(struct names *a, const char *prefix, const char *name,
	  const char *suffix, unsigned many)
{
	char one_name[224];
	struct text o = evc__lines_in(one_name, sizeof one_name);

	evc__text_add(&o, a->n > 0 ? ", " : "");
	evc__text_add(&o, a->path);
	evc__text_add(&o, prefix);
	evc__text_add(&o, name);
	evc__text_add(&o, suffix);
	a->n += many;
	/* Keep space for the note of how many were cut. */
	if (a->cut > 0 ||
	    a->t.len + o.len + sizeof " (+4294967295 more)" > a->room)
		a->cut += many;
	else
		evc__text_add(&a->t, one_name);
}

/* A note for members of a loop that has not turned since the stop: the loop is
   the reason for their lateness. */
static const char *
silent_note(const struct names *a, const evc_reactor *r)
{
	return (a->word & WORD_FLAG) &&
			       sync_load(&r->heard) != WORD_STOP_NUMBER(a->word)
		       ? " (loop silent)"
		       : "";
}

static void
add_posts(struct names *a, const evc_reactor *r)
{
	uint32_t n = sync_load_sc(&r->inbox->n);
	char what[64];
	struct text t = evc__text_in(what, sizeof what);

	if (n == 0)
		return;
	evc__text_int(&t, n);
	evc__text_add(&t, n == 1 ? " post on " : " posts on ");
	add_alive(a, what, r->name, silent_note(a, r), n);
}

static void
add_tasks(struct names *a, const evc_reactor *r)
{
	const char *wrong = evc__tasks_wrong(r);
	char what[64];
	unsigned i;

	for (i = 0; i <= TASK_CLASSES; i++) {
		const evc_task_class *k = sync_load(&r->count[i].cls);
		uint32_t n = sync_load(&r->count[i].n);
		struct text t = evc__text_in(what, sizeof what);

		if (n == 0)
			continue;
		evc__text_int(&t, n);
		evc__text_add(&t, n == 1 ? " task " : " tasks ");
		evc__text_add(&t, k != NULL && k->name != NULL ? k->name
							       : "of others");
		evc__text_add(&t, " on ");
		add_alive(a, what, r->name,
			  wrong[0] != '\0' ? wrong : silent_note(a, r), n);
	}
}

struct looper_names {
	struct names *a;
	const evc_reactor *r;
};

static void
add_alive_looper(const struct evc__looper_view *v, void *arg)
{
	struct looper_names *n = arg;

	if (v->alive)
		add_alive(n->a, "", v->name, silent_note(n->a, n->r), 1);
}

static void
add_own(struct names *a, evc_coord *c)
{
	struct list *n, *tmp;

	a->word = sync_load_sc(&c->word);
	LIST_EACH(n, tmp, &c->member.all)
	{
		struct evc__member *m = LIST_OF(n, struct evc__member, node);

		if (keeps_waiting(a->l->top, m, a->l->self))
			add_alive(a, "", m->name, "", 1);
	}
	if (c->life.held)
		add_alive(a, "", "set-up not finished", "", 1);
	if (c->wake.n_echoes > 0)
		add_alive(a, "", "unblock of a member that has ended", "",
			  c->wake.n_echoes);
	LIST_EACH(n, tmp, &c->loop.reactors)
	{
		evc_reactor *r = LIST_OF(n, evc_reactor, node);
		struct looper_names l = { a, r };

		add_tasks(a, r);
		add_posts(a, r);
		if (r->n_loopers > 0)
			r->looper_ops->each(r, add_alive_looper, &l);
	}
	if (a->l->hooks)
		LIST_EACH(n, tmp, &c->loop.hooks)
		{
			const struct evc__hook *h = HOOK_OF(n);

			if (hook_keeps_waiting(c, h, a->l->not_of))
				add_alive(a, "hook ", h->m.name,
					  h->reactor != NULL
						  ? silent_note(a, h->reactor)
						  : "",
					  1);
		}
}

static void
add_below(struct names *a, evc_coord *c)
{
	size_t len = strlen(a->path);
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->scopes)
	{
		evc_coord *s = SCOPE_OF(n);
		struct text t;

		if (sync_load_sc(&s->stop.alive) == 0 && nothing_to_call(s))
			continue;
		sync_lock(&s->lock);
		t = evc__text_in(a->path + len, sizeof a->path - len);
		evc__text_add(&t, s->name);
		if (c->join.n_phased > 0) {
			evc__text_add(&t, " (phase ");
			evc__text_int(&t, s->join.phase);
			evc__text_add(&t, ")");
		}
		evc__text_add(&t, "/");
		add_own(a, s);
		if (a->l->hooks && evc__scope_join_due(s, abs(a->l->not_of)))
			add_alive(a, "", "ended", "", 1);
		add_below(a, s);
		a->path[len] = '\0';
		sync_unlock(&s->lock);
	}
}

unsigned
evc__names(evc_coord *c, const struct evc__member *self, bool hooks,
	   int hooks_not_of, char *buf, size_t room)
{
	struct look l = { c, self, hooks, hooks_not_of };
	struct names a = { .t = evc__text_in(buf, room),
			   .room = room,
			   .l = &l };

	add_own(&a, c);
	add_below(&a, c);
	if (a.cut > 0) {
		evc__text_add(&a.t, " (+");
		evc__text_int(&a.t, a.cut);
		evc__text_add(&a.t, " more)");
	}
	return a.n;
}
