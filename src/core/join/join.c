/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The next step of a join.  Pure: all input comes by the arguments, so a test
 * drives the decision with a scripted clock.
 *
 * Called by: list.c, end.c, budget.c and tests.
 * Locks: none.
 */

/*
 * The grace counts from the later of the stop and the start of the join.  A
 * second signal cuts the grace, which then counts from the later of that signal
 * and the start.  A budget of the whole stop counts from the request alone;
 * progress and evc_extend_stop may move the end, up to the hard end; a second
 * signal overrules both.  Members with a grace of their own are late when that
 * grace is over, never later than the join's end; while a member is alive that
 * is not late, the join goes on.
 */
#include "base/backoff.h"
#include "core/core.h"
#include "core/join/join.h"

static uint64_t
later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t
sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t
evc__deadline(const struct evc__view *v)
{
	uint64_t grace = sooner(evc__ns(v->grace), evc__ns(v->longest));
	uint64_t end;

	if (v->stop == 0)
		return SYNC_FOREVER;
	end = evc__after(later(v->stop, v->start), grace);
	if (v->more.budget != 0)
		end = sooner(end, v->more.budget);
	if (v->more.hard != 0)
		end = later(end, sooner(v->more.hard,
					later(evc__after(end, v->more.asked),
					      v->more.progress)));
	if (v->grace_cut != 0)
		end = sooner(end, evc__after(later(v->grace_cut, v->start),
					     v->cut_grace));
	if (v->cap != 0)
		end = sooner(end, v->cap);
	return later(end, v->put_off);
}

/* A drain becomes a stop when no member is left that finishes work. */
static bool
drain_over(const struct evc__view *v)
{
	return v->drain != 0 && v->stop == 0 &&
	       (v->foreground == 0 || v->now >= v->drain);
}

struct evc__decision
evc__decide(const struct evc__view *v, struct evc__backoff *b)
{
	struct evc__decision d = { EVC__WAIT, SYNC_FOREVER };
	uint64_t end = evc__deadline(v);
	uint64_t most = v->rarely ? BACKOFF_RARE_NS : BACKOFF_MOST_NS;
	/* If held, nothing is decided; but threads that have rung are
	   joined. */
	bool held = v->until_stop && v->stop == 0;

	if (drain_over(v)) {
		d.next = EVC__ASK;
		return d;
	}
	if (!held && v->alive == 0) {
		d.next = EVC__EMPTY;
		return d;
	}
	if (v->now >= end) {
		d.next = EVC__LATE;
		return d;
	}
	if (!held && v->stop == 0 && v->foreground == 0) {
		d.next = EVC__ASK;
		return d;
	}
	if (v->drain != 0 && v->stop == 0)
		end = sooner(end, v->drain);
	if (end != SYNC_FOREVER)
		d.wait_ns = end - v->now;
	if (!v->probes) {
		b->step = 0;
		return d;
	}
	/* A member came in that has to be asked: begin anew. */
	if (b->step > most)
		b->step = 0;
	if (b->step == 0 || v->now >= b->due) {
		/* Look at once, then after 1, 2, 4 ... 25, 25 ms; rarely: up to
		   250, 250 ms. */
		b->step = evc__backoff_next(b->step, BACKOFF_FIRST_NS, most);
		b->due = evc__after(v->now, b->step);
		d.next = EVC__PROBE;
	} else
		d.wait_ns = sooner(d.wait_ns, b->due - v->now);
	return d;
}
