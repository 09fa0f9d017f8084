/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The register of sessions, and what other files note about one: its end, and
 * the time at which the loop has to look at it.
 * Called by: all files of the engine.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#define MARGIN_NS UINT64_C(50000000) /* clocks do not go equally fast */

/* ---- the register ---- */

struct node_session *
evc__session_find(struct redis_engine *e, const char *name)
{
	struct node_session *s, *tmp;

	EACH_SESSION(s, tmp, e) {
		if (strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
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
	return evc__after(since_ns, lease_ns + MARGIN_NS);
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
evc__session_fence(struct node_session *s, const char *fmt, ...)
{
	struct text t;
	va_list ap;

	if (s->ending)
		return;
	s->ending = true;
	t = evc__text_in(s->why, sizeof s->why);
	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	redis_look_soon(s->e);
}
