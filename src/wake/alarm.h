/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the waits of this room share: how long they may take, what they look at,
 * and the alarm, a futex word that a stop rings.
 */
#ifndef EVC_WAKE_ALARM_H
#define EVC_WAKE_ALARM_H

#include "core/join/join.h"

/*
 * An alarm.  No lost wake-up: who waits counts itself, reads the word, then
 * looks at the stop and at what else it waits for, and sleeps only while the
 * word is what it read.  Who rings has changed that before; it looks at the
 * count, then moves the word, and wakes when somebody was counted.  All are
 * sequentially consistent: so either the look finds the change, or the ring
 * finds the one who waits, who has not read the moved word.
 */
struct evc__alarm {
	struct evc__listener listener; /* first: tell() gets it */
	/* atomic: who rings -> who waits, who sleeps on it; moved by
	   ALARM_STEP, the bits below are the owner's */
	_Atomic uint32_t word;
	/* atomic: who waits -> who rings */
	_Atomic uint32_t n_waiting;
};

#define ALARM_STEP 8u

/* Lock held: from now on a stop of c rings it, until evc__unlisten; false: no
   memory. */
bool evc__alarm_set(evc_coord *c, struct evc__alarm *a);
/* Signal-safe: wake n of those who sleep.  Whom it wakes may free it: moving
   the word is the last touch. */
void evc__alarm_ring(struct evc__alarm *a, int n);
/* Sleep until the word is not what was seen; false: that time of c's clock is
   over. */
bool evc__alarm_sleep(const evc_coord *c, struct evc__alarm *a, uint32_t seen,
		      uint64_t until);

/* ---- for all waits ---- */

/* 0, or why a wait of so many seconds for c may not begin. */
evc_status evc__check_wait(const evc_coord *c, double seconds,
			   const char *func);
/* When it is over by c's clock: SYNC_FOREVER, never. */
uint64_t evc__wait_end(const evc_coord *c, double seconds);
/* Is it over? */
bool evc__wait_is_over(const evc_coord *c, uint64_t until);

/* Is there a stop, or has one been and gone since there had been so many? */
static inline bool
evc__stop_came(const evc_coord *c, uint32_t stops)
{
	uint64_t w = sync_load_sc(&c->word);

	return (w & WORD_FLAG) || WORD_STOPS(w) != stops;
}

/* How a wait ends that did not get what it waited for: -code. */
evc_status evc__end_by_stop(const char *func);
evc_status evc__end_by_time(const char *func);
evc_status evc__end_by_free(const char *func);

#endif
