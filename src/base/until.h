/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Until when: seconds that a caller gives become a point of time, and that
 * becomes what is left for a sleep.
 *
 * All in nanoseconds, of the monotonic clock unless another one is passed in.
 * SYNC_FOREVER is never as a point of time, and for ever as a length of one, as
 * sync_futex_wait takes it: so a wait without an end needs no case of its own.
 */
#ifndef EVC_BASE_UNTIL_H
#define EVC_BASE_UNTIL_H

#include "base/sync.h"

/* Seconds to nanoseconds: negative is 0, too much is SYNC_FOREVER. */
uint64_t evc__ns(double seconds);
/* t + ns, SYNC_FOREVER when that is too much. */
uint64_t evc__after(uint64_t t, uint64_t ns);

/* So long from now: when is that? */
uint64_t evc__until_ns(uint64_t ns);
uint64_t evc__until(double seconds);
/* What is left until then; 0: it is over. */
uint64_t evc__left_ns(uint64_t until);
double evc__left(uint64_t until);

/* Lock held, given up meanwhile: sleep until *word, which changes under that
   lock alone, has changed, or until then.  false: the time is over, and nobody
   has slept. */
bool evc__await_change(pthread_mutex_t *lock, _Atomic uint32_t *word,
		       uint64_t until);

#endif
