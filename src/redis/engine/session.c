/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The register of sessions, and what other files note about one: its end, and
 * the time at which the loop has to look at it.
 * Called by: all files of the engine.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

/* The kernel kills a node's workers at the end of the lease; their files and locks
   are free a little later, and clocks do not go equally fast. */
#define MARGIN_NS(lease_ns) ((lease_ns) / 10 + UINT64_C(50000000))

/* ---- the register ---- */

struct node_session *
evc__session_find(struct redis_engine *e, const char *name)
{
	return evc__table_find_name(&e->sessions.by_name, name);
}

void
evc__sessions_init(struct redis_engine *e)
{
	list_init(&e->sessions.all);
	list_init(&e->sessions.ending);
	list_init(&e->sessions.dirty);
	list_init(&e->sessions.keepers);
	e->sessions.looked = e->sessions.refreshed = &e->sessions.all;
	evc__feed_init(e);
}

struct node_session *
evc__session_next(struct redis_engine *e, struct list **at)
{
	if (list_empty(&e->sessions.all))
		return NULL;
	*at = (*at)->next;
	if (*at == &e->sessions.all)
		*at = (*at)->next;
	return LIST_OF(*at, struct node_session, link);
}

void
evc__session_dirty(struct node_session *s)
{
	if (list_empty(&s->dirty))
		list_append(&s->e->sessions.dirty, &s->dirty);
}

void
evc__session_forget(struct node_session *s)
{
	struct sessions *all = &s->e->sessions;

	if (all->looked == &s->link)
		all->looked = s->link.prev;
	if (all->refreshed == &s->link)
		all->refreshed = s->link.prev;
	if (s->look != NULL)
		*s->look = NULL;
	evc__table_remove(&all->by_name, &s->at.node);
	list_remove(&s->dirty);
	list_remove(&s->keeps);
	list_remove(&s->end);
	list_remove(&s->link);
}

bool
evc__session_is_former(const struct redis_engine *e, const char *name,
		       uint64_t inc)
{
	const unsigned most =
		sizeof e->sessions.former / sizeof e->sessions.former[0];
	unsigned i;

	for (i = 0; i < most && i < e->sessions.n_former; i++)
		if (e->sessions.former[i].inc >= inc &&
		    strcmp(e->sessions.former[i].name, name) == 0)
			return true;
	return false;
}

void
evc__session_remember(const struct node_session *s)
{
	struct redis_engine *e = s->e;
	const unsigned most =
		sizeof e->sessions.former / sizeof e->sessions.former[0];
	unsigned i;

	for (i = 0; i < most && i < e->sessions.n_former; i++)
		if (strcmp(e->sessions.former[i].name, s->name) == 0) {
			e->sessions.former[i].inc = s->inc;
			return;
		}
	i = e->sessions.n_former++ % most;
	evc__copy(e->sessions.former[i].name, sizeof e->sessions.former[i].name,
		  s->name);
	e->sessions.former[i].inc = s->inc;
}

/* ---- ends of sessions ---- */

uint64_t
evc__redis_over_ns(uint64_t since_ns, uint64_t lease_ns)
{
	return evc__after(since_ns, lease_ns + MARGIN_NS(lease_ns));
}

void
evc__redis_due(struct redis_engine *e, uint64_t mono_ns)
{
	uint64_t left = evc__deadline_left_ns(mono_ns);
	double after = (double)left / 1e9 + 0.0005;

	if (mono_ns == SYNC_FOREVER || !e->turn.running)
		return;
	if (ev_is_active(&e->turn.due) &&
	    ev_timer_remaining(e->ev, &e->turn.due) <= after)
		return;
	redis_timer_in(e->ev, &e->turn.due, after);
}

void
evc__session_ends(struct node_session *s)
{
	if (!s->ending)
		list_append(&s->e->sessions.ending, &s->end);
	s->ending = true;
}

void
evc__session_fence(struct node_session *s, const char *fmt, ...)
{
	struct text t;
	va_list ap;

	if (s->ending)
		return;
	evc__session_ends(s);
	t = evc__text_in(s->why, sizeof s->why);
	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	redis_look_soon(s->e);
}
