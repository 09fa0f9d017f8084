/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More members of the stress test: loopers, runners, child processes, loops of
 * another library, loops on threads of their own.
 *
 * What their functions are called with lives until all have ended and somebody
 * has counted them; then it is also looked at whether each was called as often
 * as it should be, and none after its removal.
 */
#ifndef TESTS_STRESS_OTHERS_H
#define TESTS_STRESS_OTHERS_H

#include <spawn.h>

#include "woken.h"

/* ---- loopers ---- */

struct looped {
	struct debt debt;
	uint64_t dice; /* of its runs: one at a time */
	evc_id id;
	bool dies; /* with its loop, perhaps, and then without a call */
	atomic_int in, started, stopped, removed;
};

static inline evc_status
looped_start(evc_coord *c, void *arg)
{
	struct looped *l = arg;

	(void)c;
	MUST(!atomic_load(&l->removed) && !atomic_load(&l->started));
	if (chance(&l->dice, 5))
		return EVC_OUT_OF_RANGE;
	atomic_store(&l->started, 1);
	return 0;
}

static inline evc_status
looped_stop(evc_coord *c, void *arg)
{
	struct looped *l = arg;

	(void)c;
	MUST(atomic_load(&l->started) == 1);
	MUST(atomic_fetch_add(&l->stopped, 1) == 0);
	return 0;
}

static inline evc_status
looped_run(evc_coord *c, void *arg)
{
	struct looped *l = arg;
	evc_status st = 0;
	uint64_t missed;
	double late;
	evc_id id = 0;

	MUST(atomic_fetch_add(&l->in, 1) == 0);
	MUST(atomic_load(&l->started) == 1 && atomic_load(&l->stopped) == 0);
	MUST(!atomic_load(&l->removed));
	MUST(evc_looper_tick(c, &id, &missed, &late) == 0);
	MUST(id != 0 && late >= 0);
	count(RUNS);
	if (chance(&l->dice, 20))
		nap(&l->dice, 300);
	switch (roll(&l->dice, 100)) {
	case 0:
		st = EVC_INTERNAL;
		break;
	case 1: case 2:
		st = EVC_OUT_OF_RANGE;
		break;
	case 3:
		/* Somebody else may be at it, too. */
		if (evc_member_remove(c, id) == 0)
			atomic_store(&l->removed, 1);
		break;
	default:
		break;
	}
	atomic_fetch_sub(&l->in, 1);
	return st;
}

static inline void
looped_settle(struct debt *d)
{
	struct looped *l = (struct looped *)d;

	MUST(atomic_load(&l->in) == 0);
	MUST(atomic_load(&l->stopped) == atomic_load(&l->started) ||
	     (l->dies && atomic_load(&l->stopped) == 0));
	free(l);
}

static inline struct looped *
begin_looper(const struct spot *p, evc_reactor *r, bool paused, uint64_t *dice)
{
	static const double every[] = { 0, 1e-4, 1e-3, 5e-3, INFINITY };
	static const unsigned missed[] = { 0, EVC_MISSED_SKIP,
					   EVC_MISSED_BURST, EVC_MISSED_DELAY,
					   EVC_MISSED_AT_MOST(3) };
	struct looped *l = calloc(1, sizeof *l);
	/* BACKGROUND, END_STOPS, LATE */
	evc_member_opts o = { .reactor = r,
			      .flags = (unsigned)roll(dice, 8),
			      .missed = missed[roll(dice, 5)],
			      .jitter = chance(dice, 30) ? 0.5 : 0,
			      .start = looped_start,
			      .stop = looped_stop };
	evc_status st;

	MUST(l != NULL);
	l->debt.settle = looped_settle;
	l->dice = roll(dice, UINT32_MAX) | 1;
	if (r == NULL && (evc_home(p->c) == NULL || chance(dice, 50)))
		o.flags |= EVC_OWN_THREAD;
	o.flags |= paused ? EVC_PAUSED : 0;
	o.flags |= chance(dice, 20) ? EVC_FLUSH : 0;
	l->dies = !(o.flags & EVC_OWN_THREAD);
	st = evc_looper_start(p->c, "looper", every[roll(dice, 5)],
			      looped_run, l, &o, &l->id);
	if (taken(p, st, LOOPERS)) {
		MUST(l->id != 0);
		owe(p->slot, &l->debt);
		return l;
	}
	free(l);
	return NULL;
}

/* Begin one, and meddle with it. */
static inline void
meddle(const struct spot *p, uint64_t *dice)
{
	/* Whether one that is never resumed counts among those that have ended
	   depends on what comes first, a stop or its removal. */
	bool paused = !p->slot->counted && chance(dice, 40);
	struct looped *l = begin_looper(p, NULL, paused, dice);
	evc_status st = 0;
	int i;

	if (l == NULL)
		return;
	for (i = (int)roll(dice, 7); i > 0; i--) {
		switch (roll(dice, 5)) {
		case 0:
			st = evc_looper_trigger(p->c, l->id);
			MUST(st == 0 || st == -EVC_NOT_FOUND ||
			     st == -EVC_CANCELLED ||
			     st == -EVC_FAILED_PRECONDITION);
			break;
		case 1:
			st = evc_looper_set_interval(p->c, l->id, 1e-3);
			break;
		case 2:
			st = evc_member_pause(p->c, l->id);
			break;
		case 3:
			st = evc_member_resume(p->c, l->id);
			break;
		default:
			nap(dice, 1500);
			break;
		}
		MUST(st == 0 || st == -EVC_NOT_FOUND || st == -EVC_CANCELLED ||
		     st == -EVC_FAILED_PRECONDITION);
	}
	if (chance(dice, 60))
		return;
	st = evc_member_remove(p->c, l->id);
	MUST(st == 0 || st == -EVC_NOT_FOUND);
	if (st == 0) {
		atomic_store(&l->removed, 1);
		MUST(atomic_load(&l->in) == 0);
		MUST(atomic_load(&l->stopped) == atomic_load(&l->started));
	}
}

/* ---- runners ---- */

struct runs {
	struct debt debt;
	uint64_t dice;
	int polls; /* is_running says yes as often */
	atomic_int in, told, joined, removed;
};

static inline bool
runs_still(void *arg)
{
	struct runs *r = arg;
	bool yes;

	MUST(atomic_fetch_add(&r->in, 1) == 0 && !atomic_load(&r->removed));
	yes = r->polls-- > 0;
	atomic_fetch_sub(&r->in, 1);
	return yes;
}

static inline void
runs_stop(void *arg)
{
	struct runs *r = arg;

	MUST(atomic_fetch_add(&r->in, 1) == 0 && !atomic_load(&r->removed));
	MUST(atomic_fetch_add(&r->told, 1) == 0);
	r->polls = r->polls > 2 ? 2 : r->polls;
	atomic_fetch_sub(&r->in, 1);
}

static inline evc_status
runs_join(void *arg)
{
	struct runs *r = arg;

	MUST(atomic_fetch_add(&r->in, 1) == 0 && !atomic_load(&r->removed));
	MUST(atomic_fetch_add(&r->joined, 1) == 0);
	nap(&r->dice, 500);
	atomic_fetch_sub(&r->in, 1);
	return chance(&r->dice, 10) ? EVC_INTERNAL : 0;
}

static inline void
runs_where(char *buf, size_t n, void *arg)
{
	MUST(!atomic_load(&((struct runs *)arg)->removed));
	snprintf(buf, n, "%s", "somewhere");
}

static inline void
runs_settle(struct debt *d)
{
	struct runs *r = (struct runs *)d;

	MUST(atomic_load(&r->in) == 0);
	MUST(atomic_load(&r->joined) == 1 || atomic_load(&r->removed));
	free(r);
}

static inline void
add_runner(const struct spot *p, evc_reactor *reactor, uint64_t *dice)
{
	static const evc_runner_ops ops = { runs_still, runs_stop, runs_join,
					    runs_where };
	evc_member_opts o = { .reactor = reactor,
			      .flags = (unsigned)roll(dice, 4) };
	struct runs *r = calloc(1, sizeof *r);
	evc_status st;
	evc_id id = 0;

	MUST(r != NULL);
	r->debt.settle = runs_settle;
	r->dice = roll(dice, UINT32_MAX) | 1;
	r->polls = (int)roll(dice, 50);
	MUST(taken(p, evc_runner_add(p->c, "runner", &ops, r, &o, &id),
		   RUNNERS));
	owe(p->slot, &r->debt);
	if (chance(dice, 40))
		nap(dice, 1000);
	if (chance(dice, 30)) {
		st = evc_runner_done(p->c, id, (evc_status)roll(dice, 2) * 13);
		MUST(st == 0 || st == EVC_INTERNAL || st == -EVC_NOT_FOUND);
	}
	if (chance(dice, 20)) {
		st = evc_member_remove(p->c, id);
		MUST(st == 0 || st == -EVC_NOT_FOUND);
		if (st == 0) {
			MUST(atomic_load(&r->in) == 0);
			atomic_store(&r->removed, 1);
		}
	}
}

/* ---- child processes ---- */

extern char **environ;

static inline void
add_child(const struct spot *p, uint64_t *dice)
{
	static char sleeps[] = "sleep", no_time[] = "0", some[] = "0.01",
		    long_time[] = "100";
	char *const how_long[] = { no_time, some, long_time };
	char *argv[] = { sleeps, how_long[roll(dice, 3)], NULL };
	evc_member_opts o = { .flags = (unsigned)roll(dice, 2) };
	evc_id id = 0;
	pid_t pid;

	MUST(posix_spawnp(&pid, sleeps, NULL, NULL, argv, environ) == 0);
	MUST(taken(p, evc_child_add(p->c, "child", pid, &o, &id), CHILDREN));
	MUST(id != 0);
}

/* ---- what has a stop call of its own ---- */

struct foreign {
	struct debt debt;
	atomic_int stopped, waited;
};

static inline void
foreign_stop(void *arg)
{
	MUST(atomic_fetch_add(&((struct foreign *)arg)->stopped, 1) == 0);
}

static inline evc_status
foreign_wait(void *arg)
{
	struct foreign *f = arg;

	MUST(atomic_load(&f->stopped) == 1);
	MUST(atomic_fetch_add(&f->waited, 1) == 0);
	return 0;
}

static inline void
foreign_settle(struct debt *d)
{
	MUST(atomic_load(&((struct foreign *)d)->waited) == 1);
	free(d);
}

static inline void
add_foreign(const struct spot *p)
{
	struct foreign *f = calloc(1, sizeof *f);

	MUST(f != NULL);
	f->debt.settle = foreign_settle;
	if (taken(p, evc_foreign_add(p->c, "foreign", foreign_stop,
				     foreign_wait, f, NULL, NULL), FOREIGN))
		owe(p->slot, &f->debt);
	else
		free(f);
}

/* One of any kind that needs no loop. */
static inline void
add_some(const struct spot *p, uint64_t *dice)
{
	switch (roll(dice, 16)) {
	case 0: case 1:
		meddle(p, dice);
		break;
	case 2: case 3:
		add_runner(p, NULL, dice);
		break;
	case 4:
		if (chance(dice, 30))
			add_child(p, dice);
		break;
	case 5:
		add_foreign(p);
		break;
	case 6:
		register_threads(p, dice);
		break;
	case 7:
		hold_for_a_while(p, dice);
		break;
	case 8: case 9: case 10: case 11:
		start_woken(p, dice);
		break;
	default:
		start_thread(p, dice);
		break;
	}
}

#endif
