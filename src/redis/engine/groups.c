/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which workers are free, and which have to be looked at: for feed.c.
 * Called by: turn.c, nodes.c, feed.c, worker.c, session.c.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

/*
 * There may be 100,000 workers, so a feed looks at those alone that are free,
 * and at few of them when there is nothing to take.  Whether a worker may take a
 * function depends on its names, and nodes with the same names are a group:
 * after FRUITLESS workers of a group in a row that were given nothing, the
 * others are not asked.  Whatever is for one worker alone comes with a wake of
 * that worker, or with the end of a call of that worker, which is looked at in
 * any case then.
 */
#define GROUPS_MOST 64
#define AROUND 1000 /* workers that a tick looks at in any case */

static void
init_group(struct feed_group *g)
{
	list_init(&g->link);
	list_init(&g->idle);
	list_init(&g->some);
}

void
evc__feed_init(struct redis_engine *e)
{
	struct feeding *f = &e->sessions.feeding;

	list_init(&f->groups);
	list_init(&f->looks);
	init_group(&f->others);
	list_append(&f->groups, &f->others.link);
}

static struct feed_group *
group_of(struct feeding *f, uint64_t names)
{
	struct feed_group *g;
	struct list *n;

	for (n = f->groups.next; n != &f->groups; n = n->next) {
		g = LIST_OF(n, struct feed_group, link);
		if (g->names == names)
			return g;
	}
	g = f->n_groups < GROUPS_MOST ? sync_alloc(1, sizeof *g) : NULL;
	if (g == NULL)
		return &f->others;
	init_group(g);
	g->names = names;
	list_append(&f->groups, &g->link);
	f->n_groups++;
	return g;
}

void
evc__feed_join(struct node_session *s, uint64_t names)
{
	s->group = group_of(&s->e->sessions.feeding, names);
	s->group->n++;
}

void
evc__feed_part(struct node_session *s)
{
	struct feeding *f = &s->e->sessions.feeding;
	struct feed_group *g = s->group;

	s->group = NULL;
	if (g == NULL || --g->n > 0 || g == &f->others)
		return;
	list_remove(&g->link);
	f->n_groups--;
	sync_free(g);
}

void
evc__feed_note(struct remote_worker *w)
{
	struct feed_group *g = w->session->group;

	list_remove(&w->spare);
	if (remote_worker_is_fed(w) && w->n < w->flow.window)
		list_append(w->n == 0 ? &g->idle : &g->some, &w->spare);
}

void
evc__feed_look(struct remote_worker *w)
{
	if (list_empty(&w->look))
		list_append(&w->session->e->sessions.feeding.looks, &w->look);
}

void
evc__feed_woken(struct redis_engine *e, const struct noted_workers *wakes,
		bool all)
{
	struct sessions *of = &e->sessions;
	size_t i, n = all ? of->n_workers : wakes->n;

	for (i = 0; i < n; i++) {
		size_t at = all ? i : wakes->at[i];

		if (at < of->n_workers && of->workers[at] != NULL)
			evc__feed_look(of->workers[at]);
	}
}

void
evc__feed_around(struct redis_engine *e)
{
	struct sessions *of = &e->sessions;
	unsigned i, n = of->n_workers < AROUND ? of->n_workers : AROUND;

	for (i = 0; i < n; i++) {
		if (of->feeding.next >= of->n_workers)
			of->feeding.next = 0;
		if (of->workers[of->feeding.next] != NULL)
			evc__feed_look(of->workers[of->feeding.next]);
		of->feeding.next++;
	}
}
