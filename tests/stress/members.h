/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of the stress test: threads that the coordinator starts, threads that
 * are registered with it, holds.  Each lives for some milliseconds at most and
 * may do on its way whatever a member may do.
 */
#ifndef TESTS_STRESS_MEMBERS_H
#define TESTS_STRESS_MEMBERS_H

#include "stress.h"

struct life {
	struct spot at;
	uint64_t dice;
	/* threads of our own */
	struct group *group;
	atomic_int go; /* it is registered */
	bool by_itself;
};

/* Three that are made together, and who makes them: the last one frees. */
struct group {
	struct life l[3];
	atomic_int users;
};

static inline struct life *
new_life(const struct spot *p, uint64_t *dice)
{
	struct life *l = calloc(1, sizeof *l);

	MUST(l != NULL);
	l->at = *p;
	l->dice = roll(dice, UINT32_MAX) | 1;
	return l;
}

static inline void
hold_for_a_while(const struct spot *p, uint64_t *dice)
{
	evc_coord *c = p->c;
	evc_member_opts o = { .flags = (unsigned)roll(dice, 8) };
	evc_id id = 0;

	if (!taken(p, evc_hold_begin(c, "hold", &o, &id), HOLDS))
		return;
	MUST(evc_member_get(c, id, NULL) == 0);
	nap(dice, 2000);
	MUST(evc_hold_end(c, id) == 0);
	MUST(evc_hold_end(c, id) == -EVC_NOT_FOUND);
}

static inline evc_status
guarded(evc_coord *c, void *arg)
{
	static const evc_status result[] = { 0, 0, EVC_OUT_OF_RANGE,
					     EVC_CANCELLED, EVC_INTERNAL };

	(void)c;
	return result[roll(arg, 5)];
}

/* What a member does; its result. */
static inline evc_status
live(struct life *l)
{
	evc_join_opts now = { .grace = 1e-3, .flags = EVC_JOIN_STOP_FIRST };
	evc_coord *c = l->at.c;

	switch (roll(&l->dice, 11)) {
	case 10:
		drain(c, 1e-3, "a member");
		return 0;
	case 0:
		return 0;
	case 1:
		return evc_fail(c, EVC_UNAVAILABLE, EIO, "member %u",
				(unsigned)roll(&l->dice, 100));
	case 2:
		MUST(evc_request_stop(c, 0, "a member") >= 0);
		return EVC_CANCELLED;
	case 3:
		MUST(evc_join(c, &now, NULL) >= 0);
		count(JOINS);
		return 0;
	case 4:
		hold_for_a_while(&l->at, &l->dice);
		return 0;
	case 5:
		MUST(evc_guard(c, "guard", guarded, &l->dice, NULL) >= 0);
		count(GUARDS);
		return 0;
	case 6:
		while (!evc_should_stop(c) && !chance(&l->dice, 10))
			nap(&l->dice, 1000);
		return EVC_OUT_OF_RANGE;
	default:
		(void)evc_wait_for_stop(c, (double)roll(&l->dice, 10) / 1e3);
		return evc_should_stop(c) ? EVC_CANCELLED : 0;
	}
}

static inline evc_status
started(evc_coord *c, void *arg)
{
	struct life *l = arg;
	evc_status st = live(l);
	bool leave = chance(&l->dice, 5);

	(void)c;
	free(l);
	if (leave)
		pthread_exit(NULL); /* without a result */
	return st;
}

static inline void
start_thread(const struct spot *p, uint64_t *dice)
{
	struct life *l = new_life(p, dice);
	/* BACKGROUND, END_STOPS, LATE, WATCHED */
	evc_member_opts o = { .flags = (unsigned)roll(dice, 16) };
	evc_id id = 0;

	if (taken(p, evc_thread_start(p->c, "started", started, l, &o, &id),
		  STARTS))
		MUST(id != 0);
	else
		free(l);
}

static inline void
leave_group(struct group *g)
{
	if (atomic_fetch_sub(&g->users, 1) == 1)
		free(g);
}

static inline void *
own_thread(void *arg)
{
	struct life *l = arg;

	if (l->by_itself) {
		MUST(taken(&l->at,
			   evc_register_thread(l->at.c, "itself",
					       pthread_self(), NULL, NULL),
			   REGISTERED));
		atomic_store(&l->go, 1);
	}
	while (atomic_load(&l->go) == 0)
		t_sleep(0.0001);
	(void)live(l);
	leave_group(l->group);
	return NULL;
}

static inline void
register_one(struct life *l, pthread_t t, unsigned flags)
{
	evc_member_opts o = { .flags = flags };
	evc_id first = 0, again = 0;

	if (l->by_itself) {
		while (!atomic_load(&l->go))
			t_sleep(0.0001);
		return;
	}
	MUST(taken(&l->at,
		   evc_register_thread(l->at.c, NULL, t, &o, &first),
		   REGISTERED));
	MUST(evc_register_thread(l->at.c, "again", t, NULL, &again) == 0);
	MUST(first != 0 && first == again);
	atomic_store(&l->go, 1);
}

/* Some of our own: registered by us, twice, by themselves, or in the list of a
   join.  The coordinator joins them all. */
static inline void
register_threads(const struct spot *p, uint64_t *dice)
{
	struct group *g = calloc(1, sizeof *g);
	bool list = chance(dice, 30);
	pthread_t t[3];
	evc_join_opts o = { .grace = 1e-10 + (double)roll(dice, 10) / 1e3,
			    .threads = t,
			    .n_threads = 3,
			    .flags = EVC_JOIN_STOP_FIRST };
	int i;

	MUST(g != NULL);
	atomic_store(&g->users, 4);
	for (i = 0; i < 3; i++) {
		struct life *l = &g->l[i];

		l->at = *p;
		l->group = g;
		l->dice = roll(dice, UINT32_MAX) | 1;
		l->by_itself = !list && chance(dice, 30);
		/* Those of a list may end before the join looks at them. */
		atomic_store(&l->go, list);
		MUST(pthread_create(&t[i], NULL, own_thread, l) == 0);
	}
	for (i = 0; i < 3; i++)
		if (list)
			(void)taken(p, 0, REGISTERED);
		else
			register_one(&g->l[i], t[i],
				     (unsigned)roll(dice, 2));
	if (list) {
		MUST(evc_join(p->c, &o, NULL) >= 0);
		count(JOINS);
	}
	leave_group(g);
}

#endif
