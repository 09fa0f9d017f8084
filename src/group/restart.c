/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a failed worker begins again.  The ring has the restarts of the last
 * `within` seconds and nothing older, so the ring grows with actual restarts,
 * not with the allowed number.
 * Called by: error.c, run.c, start.c, init.c and group.c.
 * Locks: none; the caller holds the group's lock.
 */
#include "group/restart.h"

#include "base/backoff.h"
#include "base/deadline.h"
#include "base/reserved.h"

#define TIMES 5u
#define WITHIN 60.
#define ROOM 8u

/* Clocks are read before locks are taken, so another thread's time may be a
   little ahead. */
static uint64_t
since(uint64_t then, uint64_t now)
{
	return now > then ? now - then : 0;
}

evc_status
evc__restart_check(const evc_backoff *cfg)
{
	/* A comparison with NaN is false. */
	if (!(cfg->within >= 0) ||
	    !evc__backoff_is_valid(cfg->first, cfg->most, cfg->jitter))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "restart: first, most and within are seconds "
				  ">= 0, jitter is 0..1");
	if (cfg->codes[0] != 0 || !ROOM_IS_ZERO(cfg->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "restart: a worker begins again after any "
				  "code: codes and reserved room must be 0");
	return 0;
}

/* ---- how many ---- */

static uint64_t *
slot(const struct evc__restart_state *g, unsigned i)
{
	return &g->at[(g->first + i) % g->room];
}

/* A restart exactly as old as the window is outside. */
static void
forget_old(struct evc__restart_state *g, uint64_t now, uint64_t within)
{
	while (g->used > 0 && since(*slot(g, 0), now) >= within) {
		g->first = (g->first + 1) % g->room;
		g->used--;
	}
}

static bool
grow(struct evc__restart_state *g)
{
	unsigned i, room = g->room > 0 ? g->room * 2 : ROOM;
	uint64_t *at = sync_alloc(room, sizeof *at);

	if (at == NULL)
		return false;
	for (i = 0; i < g->used; i++)
		at[i] = *slot(g, i);
	sync_free(g->at);
	g->at = at;
	g->first = 0;
	g->room = room;
	return true;
}

/* Count one more restart, unless there are too many; without memory there
   are. */
static bool
may_restart(struct evc__restart_state *g, const evc_backoff *cfg, uint64_t now)
{
	forget_old(g, now, evc__ns(cfg->within > 0 ? cfg->within : WITHIN));
	if (g->used >= (cfg->times > 0 ? cfg->times : TIMES))
		return false;
	if (g->used == g->room && !grow(g))
		return false;
	g->used++;
	*slot(g, g->used - 1) = now;
	return true;
}

/* ---- how long ---- */

uint64_t
evc__restart_next(const evc_backoff *cfg, struct evc__restart_state *group,
		  struct evc__restart_own *worker, uint64_t now,
		  uint64_t random)
{
	uint64_t pause;

	if (!may_restart(group, cfg, now))
		return EVC__RESTART_GIVE_UP;
	if (since(worker->since, now) >=
	    evc__backoff_most(cfg->first, cfg->most))
		worker->doubled = 0;
	pause = evc__backoff_wait(cfg->first, cfg->most, cfg->jitter,
				  worker->doubled, random);
	if (worker->doubled < UINT_MAX)
		worker->doubled++;
	return pause;
}

void
evc__restart_began(struct evc__restart_own *worker, uint64_t now)
{
	worker->since = now;
}

void
evc__restart_forget(struct evc__restart_state *group)
{
	group->first = group->used = 0;
}

void
evc__restart_drop(struct evc__restart_state *group)
{
	sync_free(group->at);
	*group = (struct evc__restart_state){ NULL, 0, 0, 0 };
}
