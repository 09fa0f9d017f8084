/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Retries of a failed function: whether, and when.
 *
 * PURE: no clock, no lock.
 */
#ifndef EVC_CLUSTER_RETRY_H
#define EVC_CLUSTER_RETRY_H

#include <evcoord/cluster.h>
#include <stdbool.h>
#include <stdint.h>

/* 0, or -EVC_INVALID_ARGUMENT with a text. */
evc_status evc__retry_check(const evc_backoff *r);
/* Is there another retry after `made` of them and this failure? *ret_ns: the
   pause before; random: any number, for the jitter. */
bool evc__retry_next(const evc_backoff *r, unsigned made, evc_status code,
		     uint64_t random, uint64_t *ret_ns);

#endif
