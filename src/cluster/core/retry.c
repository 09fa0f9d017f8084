/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The policy of retries: is there one more, and after how long?
 * Called by: sink.c; cluster/open and cluster/calls for the check.
 * Locks: none.
 */
#include "cluster/core/retry.h"

#include <evcoord.h>

#include "base/reserved.h"
#include "base/deadline.h"

#define FIRST 0.1
#define MOST 30.0

evc_status
evc__retry_check(const evc_retry *r)
{
	if (!(r->first >= 0) || !(r->most >= 0))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "retry: first and most are seconds, >= 0");
	if (!ROOM_IS_ZERO(r->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "retry: reserved room is not zero");
	return 0;
}

static bool
is_worth_it(const evc_retry *r, evc_status code)
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
evc__retry_next(const evc_retry *r, unsigned made, evc_status code,
		uint64_t *ret_ns)
{
	double wait = r->first > 0 ? r->first : FIRST;
	double most = r->most > 0 ? r->most : MOST;

	if (made >= r->times || !is_worth_it(r, code))
		return false;
	while (made-- > 0 && wait < most)
		wait *= 2;
	*ret_ns = evc__ns(wait < most ? wait : most);
	return true;
}
