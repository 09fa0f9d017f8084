/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fields of a coordinator for its joins; join.h has the joins themselves.
 */
#ifndef EVC_CORE_JOINS_H
#define EVC_CORE_JOINS_H

#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"

#define BACKOFF_FIRST_NS UINT64_C(1000000)
#define BACKOFF_MOST_NS UINT64_C(25000000)
#define BACKOFF_RARE_NS (10 * BACKOFF_MOST_NS)

struct evc__drain;
struct evc__scope_join;
struct evc__step;

/* This part of a coordinator. */
struct evc__coord_join {
	double grace;        /* set at creation: 0 = none configured */
	int phase;           /* set at creation: of a scope */
	bool no_join;        /* set at creation: its threads may not join it */
	/* lock */
	struct list all;     /* the joins in progress; see join.h */
	unsigned n_phased;   /* scopes with a phase */
	uint32_t phases_done; /* stop number of which all scopes were told */
	struct evc__drain *drain; /* see drain.c */
	struct evc__step *step;   /* see step.c */
	uint64_t spent_ns;   /* when a join of this stop gave up; 0: none */
	uint64_t decided_ns; /* when a join was answered last; the answer may
				not have returned to the program yet */
	uint32_t decided;    /* the number of that stop */
	uint64_t broken_ns;  /* start of a join that an exception has ended in
				a stop: the next one goes on; 0: none */
	uint32_t broken;     /* the number of that stop */
	uint64_t put_off_ns; /* the end was put off to this time; 0: never */
	uint64_t put_off_at; /* when the end was put off */
	uint64_t seen_ns;    /* when a join first saw a stop with no slot for
				its reason */
	_Atomic(struct evc__scope_join *) scope_join; /* see scope_join.c */
	/* atomic: requesters -> joins: when a drain becomes a stop; 0: no drain
	   was asked for here */
	_Atomic uint64_t drain_end;
	/* atomic: stop number + 1 of the round that a join returned from */
	_Atomic uint32_t returned;
	/* lock; last, because it is large and read once a stop */
	evc_verdict verdict; /* verdict of the closed round */
};

#endif
