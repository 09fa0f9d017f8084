/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker of a node: what it was given, and what the cluster is told of it.
 */
#include "redis/engine/engine.h"

#define AHEAD 0.005 /* seconds of work that are under way at most */
#define REST_NS UINT64_C(20000000)

/* ---- what it was given ---- */

struct given *
evc__place_find(struct slot *s, uint64_t n, unsigned *ret_i)
{
	unsigned i;

	/* Mostly it is the first: workers run what they take in order. */
	for (i = 0; i < s->n; i++) {
		struct given *g = slot_given(s, i);

		if (g->n != n)
			continue;
		if (ret_i != NULL)
			*ret_i = i;
		return g;
	}
	return NULL;
}

static void
measure(struct slot *s, double took)
{
	double most;

	s->average += (took - s->average) / 8;
	most = s->average > AHEAD / WINDOW_MOST ? 1 + AHEAD / s->average :
						  WINDOW_MOST;
	if (s->window < WINDOW_MOST)
		s->window *= 2;
	if (s->window > most)
		s->window = (unsigned)most;
}

static void
came_back(struct slot *s, uint64_t n)
{
	struct redis_engine *e = s->life->e;

	if (n <= e->cancelled_upto)
		return;
	s->window = 1;
	/* It has none and takes none: it is perhaps at its end, or builds. */
	if (s->n > 0)
		return;
	s->rest_ns = evc__until_ns(REST_NS);
	evc__redis_due(e, s->rest_ns);
}

void
evc__place_ended_one(struct slot *s, unsigned i, double took)
{
	uint64_t n = slot_given(s, i)->n;

	s->life->bytes -= slot_given(s, i)->size;
	if (i == 0) {
		s->first = (s->first + 1) % WINDOW_MOST;
	} else {
		for (; i + 1 < s->n; i++)
			*slot_given(s, i) = *slot_given(s, i + 1);
	}
	s->n--;
	if (took >= 0)
		measure(s, took);
	else
		came_back(s, n);
}

/* ---- what the cluster is told ---- */

void
evc__redis_tell(struct redis_engine *e)
{
	struct results *b = &e->results;
	unsigned n = b->n;

	b->n = 0;
	if (n > 0)
		e->sink->finished(e->core, b->of->index, b->r, n);
}

void
evc__place_up(struct slot *s, uint32_t life, const struct frame_note *note)
{
	struct redis_engine *e = s->life->e;
	char where[WHERE_ROOM];

	s->up = true;
	s->fenced = false;
	s->lives = life;
	s->first = s->n = 0;
	s->window = 1;
	s->average = 0;
	s->rest_ns = 0;
	evc__place_watch(s, note->number < INT_MAX ? (pid_t)note->number : 0);
	evc__copy(where, sizeof where, note->text);
	e->sink->up(e->core, s->index, NULL, where);
	redis_feed_soon(e);
}

void
evc__place_fenced(struct slot *s, const char *why)
{
	struct redis_engine *e = s->life->e;

	if (!s->up || s->fenced)
		return;
	s->fenced = true;
	e->sink->fenced(e->core, s->index, why);
}

void
evc__place_gone(struct slot *s, const char *why, unsigned how)
{
	struct redis_engine *e = s->life->e;
	unsigned i;

	if (!s->up)
		return;
	evc__place_values_drop(s);
	for (i = 0; i < s->n; i++)
		s->life->bytes -= slot_given(s, i)->size;
	s->up = false;
	s->n = 0;
	evc__watched_stop(&s->process);
	e->sink->gone(e->core, s->index, why, how);
	redis_feed_soon(e);
}
