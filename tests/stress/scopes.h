/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scopes of the stress test that are used round after round by who made them;
 * loops on threads of their own; and whole trees in phases, with a loop.
 */
#ifndef TESTS_STRESS_SCOPES_H
#define TESTS_STRESS_SCOPES_H

#include "loops.h"

static inline void
ended_counts(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct part *p = arg;

	MUST(v->round > 0 && evc_scope_parent(c) != NULL);
	atomic_fetch_add(&p->told, 1);
	count(ENDED);
}

/* Who asks for the stop of a scope, if anybody does. */
static inline void
stop_part(const struct part *p, const struct spot *above, uint64_t *dice)
{
	evc_coord *c = p->at.c;

	switch (roll(dice, 7)) {
	case 0:
		MUST(evc_request_stop(c, 0, "its own") >= 0);
		break;
	case 1:
		(void)evc_fail(c, EVC_UNAVAILABLE, 0, "its own error");
		break;
	case 2:
		if (!above->slot->counted || chance(dice, 20))
			MUST(evc_request_stop(above->c, 0, "above") >= 0);
		break;
	case 3:
		drain(c, (double)roll(dice, 4) / 1e3, "its own");
		break;
	case 4:
		MUST(raise(SIGUSR1) == 0); /* at_hand is asked */
		break;
	case 5:
		(void)evc_wait_for_stop(c, 1e-3);
		break;
	default:
		break;
	}
}

/* A scope that is used some rounds, and freed: the one who counts each. */
static inline void
use_part(const struct spot *above, uint64_t *dice)
{
	evc_scope_opts o = { .ended = chance(dice, 50) ? ended_counts : NULL };
	struct part *p = make_part(above, &o, dice);
	evc_coord *c = p->at.c;
	unsigned rounds = 1 + (unsigned)roll(dice, 3), i, k;
	evc_verdict v;

	at_hand = c;
	for (i = 0; i < rounds; i++) {
		for (k = (unsigned)roll(dice, 4); k > 0; k--)
			add_some(&p->at, dice);
		if (i == 0) {
			MUST(evc_scope_ready(c) == 0);
			MUST(evc_scope_ready(c) == -EVC_FAILED_PRECONDITION);
		}
		if (chance(dice, 15))
			use_loop(&p->at, dice);
		stop_part(p, above, dice);
		/* Its own stop now: nobody clears that one but we. */
		join_all(c, &v);
		MUST(evc_all_stopped(c));
		p->ended += v.n_ended;
		count_part(p, above->slot->counted);
		MUST(evc_clear_stop(c) == 0);
		count(ROUNDS);
	}
	at_hand = above->c;
	/* Its end may be about to be told on a loop. */
	while (evc_free(c) != 0) {
		MUST(strstr(evc_last_error(), "another thread's loop"));
		t_sleep(0.0005);
	}
	free(p);
}

/* A scope that is made and given up before it was ready. */
static inline void
give_up_part(const struct spot *above, uint64_t *dice)
{
	evc_scope_opts o = { .phase = 0 };
	struct part *p = make_part(above, &o, dice);

	MUST(evc_free(p->at.c) == 0);
	free(p);
}

/* ---- a loop on a thread of its own, with what lives there ---- */

struct placed {
	struct spot at;
	uint64_t dice;
};

static inline evc_status
place(evc_reactor *r, void *arg)
{
	struct placed *l = arg;

	MUST(evc_reactor_coord(r) == l->at.c && evc_reactor_loop(r) != NULL);
	if (chance(&l->dice, 60))
		(void)begin_looper(&l->at, r, false, &l->dice);
	if (chance(&l->dice, 40))
		add_runner(&l->at, r, &l->dice);
	if (chance(&l->dice, 40))
		leave_alone(&l->at, r, false, &l->dice);
	return 0;
}

static inline void
start_loop_thread(const struct spot *p, uint64_t *dice)
{
	struct placed l = { *p, roll(dice, UINT32_MAX) | 1 };
	evc_reactor *r = NULL;

	(void)taken(p, evc_reactor_start(p->c, "loop thread", place, &l, NULL,
					 chance(dice, 50) ? &r : NULL),
		    LOOP_THREADS);
}

/* ---- a whole tree in phases, with a loop, of one thread ---- */

static inline void
whole_tree(uint64_t *dice)
{
	evc_config k = { .grace = INFINITY };
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct slot own = { .counted = true };
	struct spot root = { NULL, &own, NULL }, *above = &root;
	struct part *part[3];
	struct turn turn;
	evc_verdict v;
	int i;

	MUST(loop != NULL && evc_new(loop, &k, &own.c) == 0);
	root.c = at_hand = own.c;
	turn_begin(&turn, own.c, dice, loop, evc_home(own.c));
	for (i = 0; i < 3; i++) {
		evc_scope_opts o = { .ended = ended_counts };

		part[i] = make_part(above, &o, dice);
		add_some(&part[i]->at, dice);
		if (chance(dice, 70))
			leave_alone(&part[i]->at, NULL, false, dice);
		MUST(evc_scope_ready(part[i]->at.c) == 0);
		above = chance(dice, 50) ? &part[i]->at : &root;
	}
	add_some(&root, dice);
	if (chance(dice, 30))
		drain(own.c, 2e-3, "a tree");
	do
		MUST(evc_run(own.c, NULL, &v) >= 0);
	while (v.n_stragglers > 0);
	turn_end(&turn, loop);
	free_left(&own);
	MUST(v.n_ended == own.begun);
	at_hand = NULL;
	for (i = 2; i >= 0; i--) {
		MUST(atomic_load(&part[i]->told) > 0);
		MUST(evc_free(part[i]->at.c) == 0);
		free(part[i]);
	}
	MUST(evc_free(own.c) == 0);
	settle_debts(&own);
	ev_loop_destroy(loop);
	count(TREES);
}

#endif
