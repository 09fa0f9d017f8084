/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common part of the waits in this room: alarms, deadlines and refusals.
 */
#ifndef EVC_WAKE_ALARM_H
#define EVC_WAKE_ALARM_H

#include "core/join/join.h"

/*
 * An alarm: a futex word on which waiters sleep.  No wake-up is lost: a waiter
 * counts itself, reads the word, checks the stop and its own condition, and
 * sleeps only while the word is unchanged.  A ringer changes the condition,
 * reads the count, moves the word, and wakes if a waiter was counted.  All
 * steps are sequentially consistent: so either the check finds the change, or
 * the ringer finds the waiter counted, and the waiter has not read the moved
 * word.
 */
struct evc__alarm {
	struct evc__listener listener; /* first: the argument of tell() */
	/* atomic: ringers -> waiters, which sleep on word; moved by
	   ALARM_STEP, the bits below are the owner's */
	_Atomic uint32_t word;
	/* atomic: waiters -> ringers */
	_Atomic uint32_t n_waiting;
};

#define ALARM_STEP 8u

/* Lock held: have a stop of c ring the alarm, until evc__unlisten.  false: no
   memory. */
bool evc__alarm_set(evc_coord *c, struct evc__alarm *a);
/* Signal-safe: wake n sleepers.  A woken sleeper may free the alarm, which is
   not touched after the word has moved. */
void evc__alarm_ring(struct evc__alarm *a, int n);
/* Sleep until the word is not `seen`.  false: `until` has passed on c's
   clock. */
bool evc__alarm_sleep(const evc_coord *c, struct evc__alarm *a, uint32_t seen,
		      uint64_t until);

/* ---- for all waits ---- */

/* 0, or why a wait of so many seconds may not begin. */
evc_status evc__check_wait(const evc_coord *c, double seconds,
			   const char *func);
/* The end of such a wait on c's clock; SYNC_FOREVER: never. */
uint64_t evc__wait_end(const evc_coord *c, double seconds);
/* Has the end passed? */
bool evc__wait_is_over(const evc_coord *c, uint64_t until);

/* Is there a stop, or has the number of stops changed since `stops`? */
static inline bool
evc__stop_came(const evc_coord *c, uint32_t stops)
{
	uint64_t w = sync_load_sc(&c->word);

	return (w & WORD_FLAG) || WORD_STOPS(w) != stops;
}

/* The refusals of a wait: -code. */
evc_status evc__end_by_stop(const char *func);
evc_status evc__end_by_time(const char *func);
evc_status evc__end_by_free(const char *func);

#endif
