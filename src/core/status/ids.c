/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of ids: members by number, with the loopers on a loop.  Numbers
 * count up and are never used twice, so their low bits spread well.
 *
 * Called by: the register of members, loopers, reports.
 * Locks: the coordinator's lock is held around each function.
 */
#include "core/core.h"

bool
evc__id_reserve(evc_coord *c, unsigned more)
{
	return evc__table_reserve(&c->member.ids.table, more);
}

void
evc__id_add(evc_coord *c, struct evc__entry *e)
{
	if (e->id == 0) /* else the caller has numbered the entry */
		e->id = c->member.ids.last + 1;
	c->member.ids.last = e->id;
	e->round = WORD_ROUND(sync_load(&c->word));
	evc__table_add(&c->member.ids.table, &e->node);
}

void
evc__id_remove(evc_coord *c, struct evc__entry *e)
{
	evc__table_remove(&c->member.ids.table, &e->node);
}

struct evc__entry *
evc__id_find(const evc_coord *c, evc_id id)
{
	return evc__table_find(&c->member.ids.table, id);
}

struct evc__member *
evc__member_find(const evc_coord *c, evc_id id)
{
	struct evc__entry *e = evc__id_find(c, id);

	return e != NULL && !e->on_loop ? LIST_OF(e, struct evc__member, e) :
					NULL;
}
