/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a failed worker begins again.  Pure: no clock, no thread.
 */
#ifndef EVC_GROUP_RESTART_H
#define EVC_GROUP_RESTART_H

#include <evcoord.h>

/* evc__restart_next: too many restarts; the group is to stop. */
#define EVC__RESTART_GIVE_UP UINT64_MAX

/* Of a group: times of the latest restarts, the oldest first.  Zeroed before
   the first use; evc__restart_drop frees the memory. */
struct evc__restart_state {
	uint64_t *at;
	size_t n, room;
};

/* Of a worker.  Zeroed before the first use. */
struct evc__restart_own {
	unsigned doubled; /* how often the pause was doubled */
	uint64_t since;   /* when the worker last began again */
};

/* 0, or -EVC_INVALID_ARGUMENT, noted for evc_last_error. */
evc_status evc__restart_check(const evc_backoff *cfg);

/*
 * The worker has failed at now (ns): its pause in nanoseconds, or
 * EVC__RESTART_GIVE_UP.  random: any number, for the jitter.
 * The caller holds the lock over the group's restarts.
 */
uint64_t evc__restart_next(const evc_backoff *cfg,
			   struct evc__restart_state *group,
			   struct evc__restart_own *worker, uint64_t now,
			   uint64_t random);

/* The pause is over and the worker begins again. */
void evc__restart_began(struct evc__restart_own *worker, uint64_t now);

/* A new start of the group: earlier restarts do not count.  (The worker's part
   is zeroed.) */
void evc__restart_forget(struct evc__restart_state *group);
/* Free the memory. */
void evc__restart_drop(struct evc__restart_state *group);

#endif
