/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The policy of retries: is there one more, and after how long?
 * Called by: outcome.c; cluster/open and cluster/calls for the check.
 * Locks: none.
 */
#include "cluster/core/retry.h"

#include <evcoord.h>

#include "base/backoff.h"
#include "base/reserved.h"

evc_status
evc__retry_check(const evc_backoff *r)
{
	if (!evc__backoff_is_valid(r->first, r->most, r->jitter))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "retry: first and most are seconds >= 0, "
				  "jitter is 0..1");
	/* Also where `within` is NaN. */
	if (!(r->within == 0) || !RESERVED_IS_ZERO(r->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "retry: retries have no window: within and "
				  "reserved room must be 0");
	return 0;
}

static bool
is_worth_it(const evc_backoff *r, evc_status code)
{
	unsigned i;

	if (r->codes[0] == 0)
		return code != EVC_CANCELLED && code != EVC_INVALID_ARGUMENT &&
		       code != EVC_OUT_OF_RANGE && code != EVC_UNIMPLEMENTED;
	for (i = 0; i < sizeof r->codes && r->codes[i] != 0; i++)
		if (r->codes[i] == code)
			return true;
	return false;
}

bool
evc__retry_next(const evc_backoff *r, unsigned made, evc_status code,
		uint64_t random, uint64_t *ret_ns)
{
	if (made >= r->times || !is_worth_it(r, code))
		return false;
	*ret_ns = evc__backoff_wait(r->first, r->most, r->jitter, made, random);
	return true;
}
