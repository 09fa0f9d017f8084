/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scopes of the stress test that belong to one who made them: counted in each
 * round, or left alone, to be freed or used again when they are told that they
 * have ended.
 */
#ifndef TESTS_STRESS_PARTS_H
#define TESTS_STRESS_PARTS_H

#include "others.h"

struct part {
	struct spot at;
	struct part *next;
	uint64_t dice;         /* in ended: once a round */
	_Atomic uint64_t begun;
	uint64_t ended;        /* in rounds that are over */
	int more;              /* rounds that ended begins itself */
	_Atomic uint64_t told; /* how often ended was called */
	atomic_bool left;      /* to who counts */
	atomic_bool made;      /* before that its maker uses it */
};

/* At most what begun says; all of it where nobody clears from above. */
static inline void
count_part(const struct part *p, bool all)
{
	uint64_t begun = atomic_load(&p->begun);

	if (all ? p->ended == begun : p->ended <= begun)
		return;
	fprintf(stderr, "in a scope: %llu were taken in, %llu have ended\n",
		(unsigned long long)begun, (unsigned long long)p->ended);
	abort();
}

static inline struct part *
make_part(const struct spot *above, evc_scope_opts *o, uint64_t *dice)
{
	static const double grace[] = { 0, 0, EVC_NO_GRACE, 1e-3, 0.02 };
	struct part *p = calloc(1, sizeof *p);

	MUST(p != NULL);
	o->config.grace = grace[roll(dice, 5)];
	o->phase = (int)roll(dice, 3);
	o->on_error = (unsigned)roll(dice, 3);
	o->arg = p;
	p->dice = roll(dice, UINT32_MAX) | 1;
	p->at.slot = above->slot;
	p->at.begun = &p->begun;
	MUST(evc_scope_new(above->c, "part", o, &p->at.c) == 0);
	MUST(evc_scope_parent(p->at.c) == above->c);
	atomic_store(&p->made, true);
	count(SCOPES);
	return p;
}

/* Without end; but a second signal cuts every grace, and the time of what is
   above holds here too. */
static inline void
join_all(evc_coord *c, evc_verdict *v)
{
	evc_join_opts o = { .grace = INFINITY, .flags = EVC_JOIN_STOP_FIRST };
	double limit = t_now() + T_LIMIT;
	char why[4000];

	for (;;) {
		MUST(evc_join(c, &o, v) >= 0);
		if (v->n_stragglers == 0)
			break;
		if (t_now() > limit) {
			evc_report(c, EVC_REPORT_TEXT, why, sizeof why);
			fprintf(stderr, "never ends: %s\n%s\n", v->error.text,
				why);
			abort();
		}
		t_sleep(0.0005);
	}
	count(JOINS);
}

/* ---- left alone ---- */

static inline void
leave_part(struct part *p)
{
	struct slot *s = p->at.slot;

	atomic_store(&p->left, true);
	p->next = atomic_load(&s->left);
	while (!atomic_compare_exchange_weak(&s->left, &p->next, p))
		;
}

/* Free it, or use it again, or, when something lives still, leave it to who
   counts. */
static inline void
ended_frees(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct part *p = arg;
	bool counted = p->at.slot->counted;

	/* Its time may be over before its making. */
	while (!atomic_load(&p->made))
		t_sleep(0.0001);
	MUST(p->at.c == c && v->round > 0);
	count(ENDED);
	/* In an earlier round. */
	if (atomic_load(&p->left))
		return;
	if (v->n_stragglers > 0) {
		leave_part(p);
		return;
	}
	if (p->more > 0 && evc_clear_stop(c) == 0) {
		p->ended += v->n_ended;
		p->more--;
		count(USED_AGAIN);
		start_thread(&p->at, &p->dice);
		if (chance(&p->dice, 30))
			MUST(evc_request_stop(c, 0, "in ended") >= 0);
		return;
	}
	if (evc_free(c) < 0) {
		leave_part(p);
		return;
	}
	p->ended += v->n_ended;
	count_part(p, counted);
	free(p);
	count(FREED_IN_ENDED);
}

static inline void
leave_alone(const struct spot *above, evc_reactor *home, bool dies,
	    uint64_t *dice)
{
	evc_scope_opts o = { .ended = ended_frees, .home = home };
	struct part *p = make_part(above, &o, dice);
	struct spot at = p->at;
	unsigned k;

	/* A loop that is not the tree's may be gone at the next stop, and one
	   that is destroyed before a stop tells no end. */
	p->more = home == NULL ? (int)roll(dice, 3) : 0;
	if (dies)
		leave_part(p);
	for (k = (unsigned)roll(dice, 3); k > 0; k--)
		start_thread(&at, dice);
	if (chance(dice, 30))
		MUST(evc_request_stop(at.c, 0, "left alone") >= 0);
	/* Nothing lives there, perhaps, and it is gone. */
	MUST(evc_scope_ready(at.c) == 0);
}

/* Written lock, and everything has ended: free what nobody has freed. */
static inline void
free_left(struct slot *s)
{
	struct part *p = atomic_exchange(&s->left, NULL), *next;
	evc_verdict v;

	for (; p != NULL; p = next) {
		next = p->next;
		join_all(p->at.c, &v);
		while (evc_free(p->at.c) != 0) {
			MUST(strstr(evc_last_error(),
				    "another thread's loop"));
			t_sleep(0.0005);
		}
		free(p);
	}
}

#endif
