/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a failed worker begins again.  The ring has the restarts of the last
 * `within` seconds and nothing older, so the ring grows with actual restarts,
 * not with the allowed number.
 * Called by: error.c, run.c, start.c, init.c and group.c.
 * Locks: none; the caller holds the group's lock.
 */
#include "group/restart.h"

#include "base/sync.h"

#define FIRST 0.1
#define MOST 30.
#define N 5u
#define WITHIN 60.
#define ROOM 8u
/* Longer than any clock runs; the double still fits. */
#define AGES (UINT64_MAX / 4)

/* 0 is the default.  Any other time is at least 1 ns, as 0 could not double. */
static uint64_t
nanoseconds(double s, double otherwise)
{
	double ns = (s == 0 ? otherwise : s) * 1e9;

	if (!(ns < (double)AGES))
		return AGES;
	return ns < 1 ? 1 : (uint64_t)ns;
}

/* Clocks are read before locks are taken, so another thread's time may be a
   little ahead. */
static uint64_t
since(uint64_t then, uint64_t now)
{
	return now > then ? now - then : 0;
}

static bool
is_time(double s)
{
	return s >= 0; /* false for NaN */
}

evc_status
evc__restart_check(const evc_restart *cfg)
{
	if (is_time(cfg->first) && is_time(cfg->most) &&
	    is_time(cfg->within) && cfg->jitter >= 0 && cfg->jitter <= 1)
		return 0;
	return evc_refuse(-EVC_INVALID_ARGUMENT,
			  "restart: first, most and within are seconds >= 0, "
			  "jitter is 0..1");
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
may_restart(struct evc__restart_state *g, const evc_restart *cfg, uint64_t now)
{
	uint64_t within = nanoseconds(cfg->within, WITHIN);

	forget_old(g, now, within);
	if (g->used >= (cfg->n > 0 ? cfg->n : N))
		return false;
	if (g->used == g->room && !grow(g))
		return false;
	g->used++;
	*slot(g, g->used - 1) = now;
	return true;
}

/* ---- how long ---- */

static uint64_t
backed_off(uint64_t first, uint64_t most, unsigned doubled)
{
	while (doubled-- > 0 && first < most)
		first *= 2;
	return first < most ? first : most;
}

/* 53 bits of the random number make a number from 0 up to, not including, 1. */
static uint64_t
part_of(uint64_t pause, double jitter, uint64_t random)
{
	double part = (double)(random >> 11) / (double)(UINT64_C(1) << 53);

	return (uint64_t)((double)pause * jitter * part);
}

uint64_t
evc__restart_next(const evc_restart *cfg, struct evc__restart_state *group,
		  struct evc__restart_own *worker, uint64_t now,
		  uint64_t random)
{
	uint64_t first = nanoseconds(cfg->first, FIRST);
	uint64_t most = nanoseconds(cfg->most, MOST);
	uint64_t pause;

	/* A user that sets only the first pause does not want a shorter
	   pause. */
	if (cfg->most == 0 && most < first)
		most = first;
	if (!may_restart(group, cfg, now))
		return EVC__RESTART_GIVE_UP;
	if (worker->doubled > 0 && since(worker->since, now) >= most)
		worker->doubled = 0;
	pause = backed_off(first, most, worker->doubled);
	if (worker->doubled < UINT_MAX)
		worker->doubled++;
	return pause + part_of(pause, cfg->jitter, random);
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

uint64_t
evc__restart_random(uint64_t seed)
{
	/* Multiply and shift, three times: each bit of the seed reaches each
	   bit of the number. */
	seed += UINT64_C(0x9e3779b97f4a7c15);
	seed = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	seed = (seed ^ seed >> 27) * UINT64_C(0x94d049bb133111eb);
	return seed ^ seed >> 31;
}
