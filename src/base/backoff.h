/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits between attempts, in nanoseconds: the first wait, then each twice as
 * long as the wait before, up to the longest.  Pure: no clock, no lock.
 */
#ifndef EVC_BASE_BACKOFF_H
#define EVC_BASE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

/* The wait after the wait `last`; 0: there was none. */
uint64_t evc__backoff_next(uint64_t last, uint64_t first, uint64_t most);

/* The same for a user's evc_backoff, in seconds: 0 is 0.1 for `first`, and for
   `most` 30, or `first` if longer.  Infinite times are longer than any clock
   runs.  A random part, 0..jitter, of a wait is added to the wait. */

/* false: a negative time, a jitter outside of 0..1, or NaN. */
bool evc__backoff_is_valid(double first, double most, double jitter);
/* The longest wait, without its random part. */
uint64_t evc__backoff_most(double first, double most);
/* The wait after n waits; random is any number. */
uint64_t evc__backoff_wait(double first, double most, double jitter, unsigned n,
			   uint64_t random);
/* A random-looking number, made of a seed that differs each time, such as the
   time of the failure mixed with an id. */
uint64_t evc__backoff_random(uint64_t seed);

#endif
