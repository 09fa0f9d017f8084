/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who keeps a join waiting: how many, how long they may take, their names.
 *
 * All under the lock.  The numbers of tasks are written by their loops without
 * it; a change that matters is followed by a ring, and then they are read anew.
 */
#include <math.h>

#include "base/text.h"
#include "core/core.h"

static bool
counts(const struct evc__member *m, const struct evc__member *self)
{
	return self == NULL || (m != self && m->n_joining == 0);
}

static double
own_grace(const struct evc__member *m)
{
	return m->grace == 0 ? INFINITY : m->grace;
}

static bool
hook_counts(const evc_coord *c, const struct evc__hook *h, int not_of)
{
	if (not_of != 0 && (h->running == not_of ||
			    (h->reactor != NULL ?
				     h->reactor->tid == not_of :
				     evc__helper_is_self(c))))
		return false;
	return evc__hook_pending(h, sync_load(&c->word));
}

struct evc__census
evc__census(evc_coord *c, const struct evc__member *self, bool hooks,
	    int hooks_not_of)
{
	struct evc__census k = { 0, 0, 0 };
	struct list *n, *tmp;

	/* A loop shows its number of tasks before it moves this. */
	(void)sync_load_sc(&c->alive);
	if (self == NULL && c->n_own_grace == 0) {
		k.alive = c->n_members;
		k.foreground = c->n_members - c->n_background;
		k.longest = k.alive > 0 ? INFINITY : 0;
	} else
		LIST_EACH(n, tmp, &c->members) {
			const struct evc__member *m =
				LIST_OF(n, struct evc__member, node);
			double g = own_grace(m);

			if (!counts(m, self))
				continue;
			k.alive++;
			k.foreground += !(m->flags & EVC_BACKGROUND);
			k.longest = g > k.longest ? g : k.longest;
		}
	LIST_EACH(n, tmp, &c->reactors) {
		evc_reactor *r = LIST_OF(n, evc_reactor, node);
		uint32_t tasks = sync_load(&r->n_tasks);

		k.alive += tasks;
		k.foreground += tasks;
		k.longest = tasks > 0 ? INFINITY : k.longest;
	}
	if (hooks)
		LIST_EACH(n, tmp, &c->hooks) {
			const struct evc__hook *h = HOOK_OF(n);
			double g = own_grace(&h->m);

			if (!hook_counts(c, h, hooks_not_of))
				continue;
			k.alive++;
			k.foreground++;
			k.longest = g > k.longest ? g : k.longest;
		}
	return k;
}

struct names {
	struct text t;
	size_t room;
	unsigned n, cut;
};

static void
add_name(struct names *a, const char *prefix, const char *name, unsigned many)
{
	char one[128];
	struct text o = evc__text_in(one, sizeof one);

	evc__text_add(&o, a->n > 0 ? ", " : "");
	evc__text_add(&o, prefix);
	evc__text_add(&o, name);
	a->n += many;
	/* Keep room for the note of how many were cut. */
	if (a->cut > 0 || a->t.len + o.len + sizeof " (+4294967295 more)" >
				  a->room)
		a->cut += many;
	else
		evc__text_add(&a->t, one);
}

static void
add_tasks(struct names *a, const evc_reactor *r)
{
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
		evc__text_add(&t, k != NULL && k->name != NULL ? k->name :
								 "of others");
		evc__text_add(&t, " on ");
		add_name(a, what, r->name, n);
	}
}

unsigned
evc__names(evc_coord *c, const struct evc__member *self, bool hooks,
	   int hooks_not_of, char *buf, size_t room)
{
	struct names a = { evc__text_in(buf, room), room, 0, 0 };
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->members) {
		struct evc__member *m = LIST_OF(n, struct evc__member, node);

		if (counts(m, self))
			add_name(&a, "", m->name, 1);
	}
	LIST_EACH(n, tmp, &c->reactors)
		add_tasks(&a, LIST_OF(n, evc_reactor, node));
	if (hooks)
		LIST_EACH(n, tmp, &c->hooks) {
			struct evc__member *m =
				LIST_OF(n, struct evc__member, node);

			if (hook_counts(c, LIST_OF(m, struct evc__hook, m),
					hooks_not_of))
				add_name(&a, "hook ", m->name, 1);
		}
	if (a.cut > 0) {
		evc__text_add(&a.t, " (+");
		evc__text_int(&a.t, a.cut);
		evc__text_add(&a.t, " more)");
	}
	return a.n;
}
