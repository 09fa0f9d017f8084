/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a worker that has failed begins again.  Pure: no clock, no thread.
 */
#ifndef EVC_GROUP_RESTART_H
#define EVC_GROUP_RESTART_H

#include <evcoord.h>

/* evc__restart_next: too many of them; the group is to stop. */
#define EVC__RESTART_GIVE_UP UINT64_MAX

/* Of a group: when the latest restarts were decided, in a ring.  Zeroed before
   its first use; the memory is what evc__restart_drop gives back. */
struct evc__restart_state {
	uint64_t *at;
	unsigned room, first, used;
};

/* Of a worker.  Zeroed before its first use. */
struct evc__restart_own {
	unsigned doubled; /* how often its pause was */
	uint64_t since;   /* when it last began again */
};

/* 0, or -EVC_INVALID_ARGUMENT, noted for evc_last_error. */
evc_status evc__restart_check(const evc_restart *cfg);

/*
 * The worker has failed at now (ns): how many nanoseconds it is to wait, or
 * EVC__RESTART_GIVE_UP.  random: any number, the jitter is made of it, see
 * evc__restart_random.  Who calls it holds the lock over the group's restarts.
 */
uint64_t evc__restart_next(const evc_restart *cfg,
			   struct evc__restart_state *group,
			   struct evc__restart_own *worker, uint64_t now,
			   uint64_t random);

/* The pause is over and the worker begins again. */
void evc__restart_began(struct evc__restart_own *worker, uint64_t now);

/* A new start of the group: nothing of the one before counts.  (A worker is
   zeroed for the same.) */
void evc__restart_forget(struct evc__restart_state *group);
/* Give back its memory. */
void evc__restart_drop(struct evc__restart_state *group);

/* A number that looks random, made of one that differs each time, such as the
   time of the error mixed with the worker's id. */
uint64_t evc__restart_random(uint64_t seed);

#endif
