/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking in the stress test: threads that are kicked or unblocked out of what
 * they sleep in, and stretches with cancel hooks, whose memory goes the moment
 * they are popped.
 */
#ifndef TESTS_STRESS_WOKEN_H
#define TESTS_STRESS_WOKEN_H

#include <semaphore.h>
#include <time.h>

#include "members.h"

struct woken {
	struct debt debt; /* what unblock is called with lives until then */
	uint64_t dice;
	sem_t sem;
	atomic_int in, hooked;
	long naps; /* how long each, in ns */
};

/* ---- stretches ---- */

struct stretch {
	atomic_int in, over;
};

static inline void
stretch_wake(void *arg)
{
	struct stretch *s = arg;

	MUST(atomic_fetch_add(&s->in, 1) == 0 && !atomic_load(&s->over));
	atomic_fetch_sub(&s->in, 1);
	count(HOOKED);
}

/* Begin one inside it, perhaps, and leave that to the outer pop. */
static inline void
stretch_for_a_while(evc_coord *c, uint64_t *dice, int depth)
{
	struct stretch *s = calloc(1, sizeof *s);
	evc_status st;
	evc_id id = 0;

	MUST(s != NULL);
	st = evc_cancel_push(c, stretch_wake, s,
			     chance(dice, 50) ? EVC_CANCEL_REPEAT : 0, &id);
	if (st == -EVC_CANCELLED) {
		free(s);
		return;
	}
	MUST(st == 0 && id != 0);
	count(STRETCHES);
	if (depth < 3 && chance(dice, 40))
		stretch_for_a_while(c, dice, depth + 1);
	if (chance(dice, 60))
		nap(dice, 1000);
	MUST(evc_cancel_pop(c, id) == 0);
	MUST(atomic_load(&s->in) == 0);
	atomic_store(&s->over, 1);
	memset(s, 0xff, sizeof *s);
	free(s);
}

/* ---- threads ---- */

static inline void
woken_unblock(void *arg)
{
	struct woken *w = arg;

	MUST(atomic_fetch_add(&w->in, 1) == 0);
	MUST(sem_post(&w->sem) == 0);
	atomic_fetch_sub(&w->in, 1);
	count(UNBLOCKS);
}

/* It is called for nobody who has ended: its argument lives on, though. */
static inline void
woken_hook(void *arg)
{
	atomic_fetch_add(&((struct woken *)arg)->hooked, 1);
	count(HOOKED);
}

static inline evc_status
woken_live(evc_coord *c, void *arg)
{
	struct woken *w = arg;
	struct timespec ts = { .tv_nsec = w->naps };
	evc_status st;
	evc_id id = 0;
	int i;

	if (chance(&w->dice, 30)) { /* and never popped */
		st = evc_cancel_push(c, woken_hook, w, EVC_CANCEL_REPEAT, &id);
		MUST(st == 0 || st == -EVC_CANCELLED);
	}
	if (chance(&w->dice, 30))
		stretch_for_a_while(c, &w->dice, 0);
	for (i = (int)roll(&w->dice, 4); i > 0 && !evc_should_stop(c); i--) {
		/* After a word it is left in peace for a while. */
		if (chance(&w->dice, 20))
			evc_progress("asleep");
		/* No other signal is open in it. */
		if (nanosleep(&ts, NULL) != 0) {
			MUST(errno == EINTR && evc_should_stop(c));
			count(KICKED);
			if (chance(&w->dice, 50))
				return evc_fail(c, EVC_UNAVAILABLE, EINTR,
						"woken");
		}
		while (sem_trywait(&w->sem) == 0)
			MUST(evc_should_stop(c));
	}
	if (chance(&w->dice, 20))
		(void)evc_extend_stop(c, 0, 1e-3, "not yet", NULL);
	evc_progress(chance(&w->dice, 50) ? "at the end" : NULL);
	return 0;
}

static inline void
woken_settle(struct debt *d)
{
	struct woken *w = (struct woken *)d;

	MUST(atomic_load(&w->in) == 0);
	MUST(sem_destroy(&w->sem) == 0);
	free(w);
}

static inline void
start_woken(const struct spot *p, uint64_t *dice)
{
	struct woken *w = calloc(1, sizeof *w);
	/* BACKGROUND, END_STOPS, LATE, WATCHED */
	evc_member_opts o = { .flags = (unsigned)roll(dice, 16) };
	evc_id id = 0;

	MUST(w != NULL && sem_init(&w->sem, 0, 0) == 0);
	w->debt.settle = woken_settle;
	w->dice = roll(dice, UINT32_MAX) | 1;
	o.flags |= chance(dice, 70) ? EVC_KICK : 0;
	/* Long for who may be kicked, or few of them would be met asleep. */
	w->naps = o.flags & EVC_KICK ? 20000000 : 5000000;
	o.unblock = chance(dice, 50) ? woken_unblock : NULL;
	if (taken(p, evc_thread_start(p->c, "woken", woken_live, w, &o, &id),
		  WOKEN))
		owe(p->slot, &w->debt);
	else
		woken_settle(&w->debt);
}

/* ---- the escalation of a tree ---- */

static inline void
set_ladder(evc_coord *c, uint64_t *dice)
{
	static const double when[] = { 0, 0, 0.01, 0.1 };
	evc_escalation_opts o = { .budget = chance(dice, 30) ? 0.08 : 0,
			      .hooks = when[roll(dice, 4)],
			      .kicks = when[roll(dice, 4)],
			      .step = 1e-3,
			      .hard_end = 0.2 };
	evc_status st = evc_escalation_set(c, &o);

	MUST(st == 0 || st == -EVC_FAILED_PRECONDITION);
}

#endif
