/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a failed worker begins again.  The array has the restarts of the last
 * `within` seconds and nothing older, so the array grows with actual restarts,
 * not with the allowed number.
 * Called by: error.c, run.c, start.c, init.c and group.c.
 * Locks: none; the caller holds the group's lock.
 */
#include "group/restart.h"

#include "base/array.h"
#include "base/backoff.h"
#include "base/deadline.h"
#include "base/reserved.h"
#include "base/sync.h"

#define TIMES 5u
#define WITHIN 60.

/* Clocks are read before locks are taken, so another thread's time may be a
   little ahead. */
static uint64_t
time_since(uint64_t then, uint64_t now)
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
	if (cfg->codes[0] != 0 || !RESERVED_IS_ZERO(cfg->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "restart: a worker begins again after any "
				  "code: codes and reserved room must be 0");
	return 0;
}

/* ---- how many ---- */

/* A restart exactly as old as the window is outside. */
static void
forget_old(struct evc__restart_state *g, uint64_t now, uint64_t within)
{
	size_t old = 0;

	while (old < g->n && time_since(g->at[old], now) >= within)
		old++;
	if (old > 0)
		memmove(g->at, g->at + old, (g->n -= old) * sizeof *g->at);
}

/* Count one more restart, unless there are too many; without memory there
   are. */
static bool
may_restart(struct evc__restart_state *g, const evc_backoff *cfg, uint64_t now)
{
	forget_old(g, now, evc__ns(cfg->within > 0 ? cfg->within : WITHIN));
	if (g->n >= (cfg->times > 0 ? cfg->times : TIMES) ||
	    !ARRAY_RESERVE(g->at, g->n, g->room, 1))
		return false;
	g->at[g->n++] = now;
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
	if (time_since(worker->since, now) >=
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
	group->n = 0;
}

void
evc__restart_drop(struct evc__restart_state *group)
{
	sync_free(group->at);
	*group = (struct evc__restart_state){ NULL, 0, 0 };
}
