/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of ids: members by number, with the loopers on a loop.  Numbers
 * count up and are never used twice, so their low bits spread well.
 *
 * Called by: the register of members, loopers, reports.
 * Locks: the coordinator's lock is held around each function.
 */
#include "core/core.h"

static struct evc__entry **
bucket(const evc_coord *c, evc_id id)
{
	return &c->member.ids.table[id & (c->member.ids.n_buckets - 1)];
}

bool
evc__id_room(evc_coord *c, unsigned more)
{
	unsigned n = c->member.ids.n_buckets != 0 ? c->member.ids.n_buckets : 8,
		 i;
	struct evc__entry **table, *e, *next;

	/* With two entries for each bucket a search is as fast, and the table
	   has half the size. */
	while (n * 2 < c->member.ids.n_entries + more)
		n *= 2;
	if (n == c->member.ids.n_buckets)
		return true;
	table = sync_alloc(n, sizeof *table);
	if (table == NULL)
		return c->member.ids.n_buckets !=
		       0; /* longer chains do as well */
	for (i = 0; i < c->member.ids.n_buckets; i++)
		for (e = c->member.ids.table[i]; e != NULL; e = next) {
			next = e->by_id;
			e->by_id = table[e->id & (n - 1)];
			table[e->id & (n - 1)] = e;
		}
	sync_free(c->member.ids.table);
	c->member.ids.table = table;
	c->member.ids.n_buckets = n;
	return true;
}

void
evc__id_add(evc_coord *c, struct evc__entry *e)
{
	struct evc__entry **b;

	if (e->id == 0) /* else the caller has numbered the entry */
		e->id = c->member.ids.last + 1;
	c->member.ids.last = e->id;
	e->round = WORD_ROUND(sync_load(&c->word));
	b = bucket(c, e->id);
	e->by_id = *b;
	*b = e;
	c->member.ids.n_entries++;
}

void
evc__id_remove(evc_coord *c, struct evc__entry *e)
{
	struct evc__entry **p = bucket(c, e->id);

	while (*p != e)
		p = &(*p)->by_id;
	*p = e->by_id;
	c->member.ids.n_entries--;
}

struct evc__entry *
evc__id_find(const evc_coord *c, evc_id id)
{
	struct evc__entry *e = NULL;

	if (id != 0 && c->member.ids.n_buckets != 0)
		e = *bucket(c, id);
	while (e != NULL && e->id != id)
		e = e->by_id;
	return e;
}

struct evc__member *
evc__member_find(const evc_coord *c, evc_id id)
{
	struct evc__entry *e = evc__id_find(c, id);

	return e != NULL && !e->on_loop ? LIST_OF(e, struct evc__member, e) :
					NULL;
}
