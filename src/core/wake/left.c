/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that were left behind: see left.h.
 * Called by: src/wake/call.c; log.c at the end of a stop; the end of a tree.
 * Locks: the tree's, a leaf.  Atomics: refs.
 */
#include "core/core.h"
#include "core/wake/left.h"

#define LEFT_OF(n) LIST_OF(n, struct evc__left, node)

void
evc__left_drop(struct evc__left *k)
{
	if (sync_sub(&k->refs, 1) == 1)
		sync_free(k);
}

/* The tree alone holds k: the call has ended. */
static bool
has_ended(struct evc__left *k)
{
	return sync_load_sc(&k->refs) == 1;
}

/* Tree's lock held: give two calls back if they have ended, and have the next
   two at the front.  So ended calls do not pile up, and each add is short. */
static void
drop_ended(struct evc__tree *tree)
{
	struct list *n;
	int i;

	for (i = 0; i < 2 && !list_empty(&tree->left); i++) {
		n = tree->left.next;
		list_remove(n);
		if (has_ended(LEFT_OF(n)))
			evc__left_drop(LEFT_OF(n));
		else
			list_append(&tree->left, n);
	}
}

void
evc__left_add(evc_coord *c, struct evc__left *k)
{
	sync_lock(&c->tree->lock);
	drop_ended(c->tree);
	k->number = c->number;
	list_append(&c->tree->left, &k->node);
	sync_unlock(&c->tree->lock);
}

bool
evc__left_names(evc_coord *c, struct text *t)
{
	unsigned n = 0, more = 0;
	struct list *l, *tmp;

	sync_lock(&c->tree->lock);
	LIST_EACH(l, tmp, &c->tree->left) {
		struct evc__left *k = LEFT_OF(l);

		if (has_ended(k) ||
		    (c->parent != NULL && k->number != c->number))
			continue;
		if (t->len + sizeof k->name + sizeof ", and 4294967295 more" >
		    t->room)
			more++;
		else
			evc__text_fmt(t, n++ == 0 ? "%s" : ", %s", k->name);
	}
	sync_unlock(&c->tree->lock);
	if (more > 0)
		evc__text_fmt(t, " and %u more", more);
	return n > 0;
}

void
evc__left_forget(struct evc__tree *tree)
{
	struct list *n;

	while (!list_empty(&tree->left)) {
		n = tree->left.next;
		list_remove(n);
		evc__left_drop(LEFT_OF(n));
	}
}
