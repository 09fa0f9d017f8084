/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trees that all share: made, counted, freed in parts or wholly by the main
 * thread, whose loop is the home of half of them.
 */
#ifndef TESTS_STRESS_SLOTS_H
#define TESTS_STRESS_SLOTS_H

#include "scopes.h"

/* Below which node each stands; -1: the root. */
static const int node_above[N_NODES] = { -1, -1, 0, 2, -1 };
static const int node_phase[N_NODES] = { 0, 1, 0, 1, 2 };

static _Atomic uint64_t log_lines;

static inline void
log_line(int level, const char *line, const evc_reason *r, void *arg)
{
	MUST((level == EVC_LOG_ERROR || level == EVC_LOG_WARNING ||
	      level == EVC_LOG_INFO) &&
	     line[0]);
	MUST(r == NULL || r->code >= 0);
	atomic_fetch_add((_Atomic uint64_t *)arg, 1);
}

/* Where anybody may clear it is cleared at once, sometimes. */
static inline void
node_ended(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct slot *s = arg;
	evc_status st;

	MUST(v->round > 0);
	count(ENDED);
	if (s->counted || v->round % 3 != 0)
		return;
	st = evc_clear_stop(c);
	MUST(st == 0 || st == -EVC_FAILED_PRECONDITION);
	if (st == 0)
		count(USED_AGAIN);
}

static inline void
make_node(struct slot *s, int i, uint64_t *dice)
{
	evc_coord *above = node_above[i] < 0 ? s->c : s->node[node_above[i]];
	char name[] = "node 0";
	evc_scope_opts o = { .phase = node_phase[i],
			     .on_error = (unsigned)roll(dice, 3),
			     .ended = chance(dice, 50) ? node_ended : NULL,
			     .arg = s };

	name[5] = (char)('0' + i);
	o.config.grace = i == 4 ? 0.01 : 0;
	MUST(evc_scope_new(above, name, &o, &s->node[i]) == 0);
	MUST(evc_scope_ready(s->node[i]) == 0);
	count(SCOPES);
}

static inline void
make(struct slot *s, uint64_t *dice)
{
	long n = s - slots;
	evc_config k = { .grace = 0.05,
			 .name = s->counted ? "counted" : "wild",
			 .max_reasons = n == 1 ? 3 : 0,
			 .log = n == 1 ? log_line : NULL,
			 .arg = &log_lines };
	int i;

	MUST(evc_new(s->home, &k, &s->c) == 0);
	set_ladder(s->c, dice);
	atomic_store(&s->begun, 0);
	s->ended = 0;
	for (i = 0; i < N_NODES; i++)
		make_node(s, i, dice);
}

/* ---- the main thread's loop ---- */

static int own_joins;

/* Let it turn a little. */
static inline void
turn_home(struct ev_loop *loop, double seconds)
{
	double end = t_now() + seconds;

	do
		ev_run(loop, EVRUN_ONCE);
	while (t_now() < end);
}

static inline void
own_joined(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)arg;
	MUST(c != NULL && v->round > 0);
	own_joins--;
	count(EVENTED);
}

/* Joins of some coordinators on its own loop; they wait there for the next
   count, which stops all. */
static inline void
join_at_home(uint64_t *dice)
{
	evc_join_opts o = { .grace = (double)roll(dice, 20) / 1e3 + 1e-9,
			    .flags = chance(dice, 30) ? EVC_JOIN_STOP_FIRST :
							0 };
	struct slot *s = &slots[roll(dice, N_SLOTS)];
	unsigned i = (unsigned)roll(dice, N_NODES + 1);

	if (s->home == NULL)
		return;
	MUST(evc_join_start(i < N_NODES ? s->node[i] : s->c, own_joined, NULL,
			    &o) == 0);
	own_joins++;
}

/* ---- counting; nobody but members uses it meanwhile ---- */

static inline void
lock_slot(struct slot *s, struct ev_loop *loop)
{
	int e;

	/* Who uses it may be waiting for something on our loop. */
	atomic_store(&s->wanted, true);
	while ((e = pthread_rwlock_trywrlock(&s->lock)) == EBUSY)
		turn_home(loop, 0);
	MUST(e == 0);
}

static inline void
unlock_slot(struct slot *s)
{
	MUST(pthread_rwlock_unlock(&s->lock) == 0);
	atomic_store(&s->wanted, false);
}

static inline bool
none(const evc_member_info *m, void *arg)
{
	char why[8000];

	/* Hooks stay, scopes in which nothing lives, and in those loopers that
	   never were resumed; nobody else. */
	if (m->kind == EVC_HOOK || (m->kind == EVC_SCOPE && m->ticks == 0) ||
	    (m->kind == EVC_LOOPER && m->ticks == 0))
		return true;
	fprintf(stderr, "lives still: %s, kind %u, state %u, %llu\n", m->name,
		m->kind, m->state, (unsigned long long)m->ticks);
	evc_report(arg, EVC_REPORT_TEXT, why, sizeof why);
	fprintf(stderr, "%s\n", why);
	abort();
}

/* Evented joins of ours would hold up a free. */
static inline void
finish_own_joins(struct ev_loop *loop)
{
	int i;

	for (i = 0; own_joins > 0 && i < N_SLOTS; i++)
		if (slots[i].home != NULL) {
			int k;

			MUST(evc_request_stop(slots[i].c, 0, "ours") >= 0);
			for (k = 0; k < N_NODES; k++)
				MUST(evc_request_stop(slots[i].node[k], 0,
						      "ours") >= 0);
		}
	while (own_joins > 0)
		turn_home(loop, 0);
}

static inline void *
free_it(void *c)
{
	double limit = t_now() + T_LIMIT;
	char why[4000];

	/* One of its scopes may just be freeing itself in ended. */
	do {
		if (evc_free(c) == 0)
			return NULL;
		t_sleep(0.0005);
	} while (strstr(evc_last_error(), "it has scopes") != NULL &&
		 t_now() < limit);
	fprintf(stderr, "%s\n", evc_last_error());
	evc_report(c, EVC_REPORT_TEXT, why, sizeof why);
	fprintf(stderr, "%s\n", why);
	abort();
}

/* By another thread, sometimes. */
static inline void
free_scope(struct slot *s, evc_coord *c, uint64_t *dice)
{
	pthread_t t;

	if (s->home != NULL || chance(dice, 50)) {
		(void)free_it(c);
		return;
	}
	MUST(pthread_create(&t, NULL, free_it, c) == 0);
	MUST(pthread_join(t, NULL) == 0);
}

/* One leaf of the tree alone: stopped, joined, cleared or made anew. */
static inline void
remake_leaf(struct slot *s, struct ev_loop *loop, uint64_t *dice)
{
	static const int leaf[] = { 1, 3, 4 };
	int i = leaf[roll(dice, 3)];
	evc_verdict v;

	lock_slot(s, loop);
	if (s->home != NULL)
		finish_own_joins(loop);
	join_all(s->node[i], &v);
	free_left(s);
	if (chance(dice, 50)) {
		free_scope(s, s->node[i], dice);
		make_node(s, i, dice);
		count(REMADE);
	} else
		MUST(evc_clear_stop(s->node[i]) == 0);
	unlock_slot(s);
}

static inline void
clear_all(struct slot *s, bool root_first)
{
	char why[8000];
	int i;

	if (root_first)
		MUST(evc_clear_stop(s->c) == 0);
	for (i = 0; i < N_NODES; i++)
		MUST(evc_clear_stop(s->node[i]) == 0);
	if (!root_first) {
		/* Elsewhere node_ended may just be clearing it. */
		MUST(evc_should_stop(s->node[0]) || !s->counted);
		MUST(evc_clear_stop(s->c) == 0);
	}
	for (i = 0; i < N_NODES; i++)
		if (evc_should_stop(s->node[i])) {
			evc_report(s->c, EVC_REPORT_TEXT, why, sizeof why);
			fprintf(stderr, "node %d was cleared:\n%s\n", i, why);
			abort();
		}
}

static inline void
free_all(struct slot *s, uint64_t *dice)
{
	int i;

	MUST(evc_free(s->c) == -EVC_FAILED_PRECONDITION);
	for (i = N_NODES - 1; i >= 0; i--) {
		free_scope(s, s->node[i], dice);
		s->node[i] = NULL;
	}
	free_scope(s, s->c, dice);
	s->c = NULL;
	count(FREES);
}

/* Stop them, join them, count them. */
static inline void
audit(struct slot *s, struct ev_loop *loop, uint64_t *dice, bool last)
{
	/* Without end: an end that nobody hears of would hang here. */
	evc_join_opts o = { .grace = INFINITY };
	evc_verdict v;
	int i;

	lock_slot(s, loop);
	/* A join without a stop may have closed the round, and its verdict is
	   everybody's until a clear. */
	if (!evc_should_stop(s->c))
		(void)evc_clear_stop(s->c);
	MUST(evc_request_stop(s->c, 0, "audit") >= 0);
	do {
		if (s->home != NULL && chance(dice, 50))
			MUST(evc_run(s->c, &o, &v) >= 0);
		else
			MUST(evc_join(s->c, &o, &v) >= 0);
	} while (v.n_stragglers > 0); /* a second signal cuts every grace */
	MUST(evc_joined(s->c) && evc_member_each(s->c, none, s->c) == 0);
	MUST(evc_all_stopped(s->c));
	for (i = 0; i < N_NODES; i++)
		MUST(evc_should_stop(s->node[i]) &&
		     evc_member_each(s->node[i], none, s->c) == 0);
	s->ended += v.n_ended;
	if (s->counted && s->ended != atomic_load(&s->begun)) {
		fprintf(stderr, "%llu were taken in, %llu have ended\n",
			(unsigned long long)s->begun,
			(unsigned long long)s->ended);
		abort();
	}
	if (s->home != NULL)
		finish_own_joins(loop);
	free_left(s);
	settle_debts(s);
	if (last || chance(dice, 40)) {
		free_all(s, dice);
		if (!last)
			make(s, dice);
	} else
		clear_all(s, chance(dice, 50));
	unlock_slot(s);
}

#endif
