/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether and when a function that failed is run again.
 *
 * PURE: no clock, no lock.
 */
#ifndef EVC_CLUSTER_RETRY_H
#define EVC_CLUSTER_RETRY_H

#include <evcoord/cluster.h>
#include <stdbool.h>
#include <stdint.h>

/* 0, or -EVC_INVALID_ARGUMENT with a text. */
evc_status evc__retry_check(const evc_retry *r);
/* After so many retries it has failed with this code: is there one more?
   *ret_ns: how long it waits. */
bool evc__retry_next(const evc_retry *r, unsigned made, evc_status code,
		     uint64_t *ret_ns);

#endif
