/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model that the stress test of worker groups compares with: what of a
 * group may be called when, which ids are whose, how much has run, failed and
 * been counted.  Functions of a group and its workers look at it from inside.
 */
#ifndef TESTS_STRESS_TEAMS_H
#define TESTS_STRESS_TEAMS_H

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>

#include "enough.h"

#define N_TEAMS   20
#define N_THREADS 8
#define N_IDS     (1u << 20)
#define MOST      6 /* workers of a group */

/* How far the functions of a group are. */
enum phase {
	IDLE,     /* nothing was called, or everything */
	INITED,
	STARTED,
	NO_START, /* state.start has failed */
	SHUT,
	STOPPED
};

struct team {
	pthread_rwlock_t lock; /* of group: to use it, to exchange it */
	evc_group *group;
	const char *name;
	unsigned number;       /* of this group: never used twice; 0 none */
	evc_coord *coord;
	unsigned on_error;
	atomic_int phase, inside;
	bool was_started;      /* of phase's calls, which are one at a time */
	atomic_int live;       /* runs that are under way */
	atomic_ulong runs, errors, puts;
};

static struct team teams[N_TEAMS];
static evc_registry *reg;

/* Whose id it is: the number of a group. */
static _Atomic uint32_t owner[N_IDS];
/* Who is in a run with it. */
static atomic_bool busy[N_IDS];

/* Nobody fails, ends or meddles: somebody is counting. */
static atomic_bool calm;

static struct {
	atomic_ulong starts, stops, resizes, failures, ends, by_workers, frees,
		audits, failed_starts, restarts;
} counts;

/* ---- dice ---- */

static inline unsigned
roll(uint64_t *dice, unsigned sides)
{
	*dice ^= *dice << 13;
	*dice ^= *dice >> 7;
	*dice ^= *dice << 17;
	return (unsigned)(*dice >> 33) % sides;
}

/* Each thread has its own; nobody owns those of the library's threads. */
static inline unsigned
roll_any(unsigned sides)
{
	static _Atomic uint64_t n = 1;
	uint64_t dice = (atomic_fetch_add(&n, 1) + 88) *
			UINT64_C(0x9e3779b97f4a7c15);

	return roll(&dice, sides);
}

/* ---- the functions of a group ---- */

/* One at a time, from one of these phases, into that one. */
static inline void
enter_phase(struct team *t, unsigned from, enum phase to)
{
	int was = atomic_load(&t->phase);

	MUST(atomic_fetch_add(&t->inside, 1) == 0);
	if (!(from & 1u << was))
		fprintf(stderr, "%s %u: phase %d to %d\n", t->name, t->number,
			was, (int)to);
	MUST(from & 1u << was);
	atomic_store(&t->phase, to);
}

static inline void
leave_phase(struct team *t)
{
	MUST(atomic_fetch_sub(&t->inside, 1) == 1);
}

#define AT(p) (1u << (p))

static evc_status
team_init(evc_group *group, evc_registry *r, void *arg)
{
	struct team *t = arg;
	bool fails = !atomic_load(&calm) && roll_any(50) == 0;

	(void)group;
	MUST(r == reg);
	enter_phase(t, AT(IDLE), fails ? IDLE : INITED);
	MUST(atomic_load(&t->live) == 0);
	t->was_started = false;
	leave_phase(t);
	return fails ? 201 : 0;
}

static evc_status
team_start(void *arg)
{
	struct team *t = arg;
	bool fails = !atomic_load(&calm) && roll_any(50) == 0;

	enter_phase(t, AT(INITED), fails ? NO_START : STARTED);
	MUST(atomic_load(&t->live) == 0);
	t->was_started = !fails;
	leave_phase(t);
	return fails ? 202 : 0;
}

static void
team_shutdown(evc_group *group, void *arg)
{
	struct team *t = arg;

	MUST(!evc_group_is_active(group));
	enter_phase(t, AT(INITED) | AT(STARTED) | AT(NO_START),
		    t->was_started ? SHUT : IDLE);
	leave_phase(t);
}

static void
team_stop(void *arg)
{
	enter_phase(arg, AT(SHUT), STOPPED);
	leave_phase(arg);
}

static void
team_cleanup(void *arg)
{
	struct team *t = arg;

	enter_phase(t, AT(STOPPED), IDLE);
	MUST(atomic_load(&t->live) == 0);
	leave_phase(t);
}

/* ---- a run ---- */

/* What a worker does to its own group, or to all. */
static inline void
meddle(evc_group *group)
{
	evc_join_opts some = { .grace = 0.02 };
	evc_status st;

	atomic_fetch_add(&counts.by_workers, 1);
	switch (roll_any(5)) {
	case 0:
		st = evc_group_stop(group, &some);
		MUST(st >= 0);
		break;
	case 1:
		st = evc_group_resize(group, 1 + roll_any(MOST));
		MUST(st == 0 || st == -EVC_FAILED_PRECONDITION);
		break;
	case 2:
		st = evc_registry_stop_name(reg, roll_any(2) ? "a" : "b",
					    &some);
		MUST(st >= 0 || st == -EVC_NOT_FOUND);
		break;
	case 3:
		st = evc_registry_start(reg);
		MUST(st == 0 || st == 201 || st == 202 ||
		     st == -EVC_CANCELLED || st == -EVC_FAILED_PRECONDITION);
		break;
	default:
		MUST(evc_group_free(group) == -EVC_FAILED_PRECONDITION);
		break;
	}
}

static evc_status
team_run(evc_group *group, unsigned id, void *arg)
{
	struct team *t = arg;
	evc_status result = 0;
	uint32_t none = 0;
	int phase;

	MUST(id < N_IDS);
	MUST(!atomic_exchange(&busy[id], true));
	if (!atomic_compare_exchange_strong(&owner[id], &none, t->number))
		MUST(none == t->number);
	atomic_fetch_add(&t->live, 1);
	phase = atomic_load(&t->phase);
	MUST(phase == STARTED || phase == SHUT || phase == STOPPED);
	atomic_fetch_add(&t->runs, 1);
	MUST(evc_group_put(group, "ones", 1, true) == 0);
	atomic_fetch_add(&t->puts, 1);
	evc_sleep(evc_group_scope(group), roll_any(400) / 1e6);
	if (!atomic_load(&calm)) {
		unsigned n = roll_any(1000);

		if (n < 4) {
			result = EVC_DATA_LOSS;
			atomic_fetch_add(&t->errors, 1);
			atomic_fetch_add(&counts.failures, 1);
		} else if (n < 8) {
			result = EVC_OUT_OF_RANGE;
			atomic_fetch_add(&counts.ends, 1);
		} else if (n < 11) {
			meddle(group);
		}
	}
	phase = atomic_load(&t->phase);
	MUST(phase == STARTED || phase == SHUT || phase == STOPPED);
	atomic_fetch_sub(&t->live, 1);
	atomic_store(&busy[id], false);
	return result;
}

/* A logger that fails now and then. */
static evc_status
team_log(evc_group *group, const evc_metric *m, unsigned n, void *arg)
{
	unsigned i;

	(void)group;
	(void)arg;
	for (i = 0; i < n; i++)
		MUST(m[i].value >= 0);
	return roll_any(100) == 0 ? EVC_UNAVAILABLE : 0;
}

/* ---- making one ---- */

static void
team_make(struct team *t, uint64_t *dice)
{
	evc_logger logger = { .fn = team_log, .arg = t, .every = 0.01 };
	evc_group_opts o = { .coord = t->coord,
			       .n_threads = 1 + roll(dice, MOST),
			       .on_error = t->on_error,
			       .restart = { .first = 0.0005, .most = 0.002,
					    .jitter = 0.5, .times = 5,
					    .within = 0.5 },
			       .init = team_init,
			       .shutdown = team_shutdown,
			       .state = { team_start, team_stop, team_cleanup,
					  t } };
	static atomic_uint number;

	if (roll(dice, 2)) {
		o.loggers = &logger;
		o.n_loggers = 1;
	}
	if (roll(dice, 2))
		o.member.flags = EVC_KICK;
	if (roll(dice, 4) == 0)
		o.flags = EVC_GROUP_ASIDE;
	t->number = atomic_fetch_add(&number, 1) + 1;
	atomic_store(&t->phase, IDLE);
	atomic_store(&t->runs, 0);
	atomic_store(&t->errors, 0);
	atomic_store(&t->puts, 0);
	MUST(evc_group_init(reg, t->name, team_run, t, &o, &t->group,
			      NULL) == 0);
}

#endif
