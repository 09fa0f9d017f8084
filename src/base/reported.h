/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last error code that a thread has reported, and its coordinator.  A
 * member's function that returns this code says nothing new: the report has the
 * text and the place already.  No other file decides this.
 *
 * The flag heard_stop says that a queue has told the thread of the stop of the
 * queue's coordinator.  A worker of a group may then return EVC_CANCELLED
 * without an error, also when the group has another coordinator.
 */
#ifndef EVC_BASE_REPORTED_H
#define EVC_BASE_REPORTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evc__reported {
	const void *to; /* the coordinator; NULL: nothing was reported */
	uint32_t stops; /* stops of the coordinator before the report */
	int code;
	bool handed_back; /* the report came after the round was closed */
	bool heard_stop;  /* see above; a worker clears it before each run */
};

extern __thread struct evc__reported evc__reported
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Called before a member's function, for which reports of earlier functions on
   this thread do not count. */
static inline void
evc__reported_forget(void)
{
	evc__reported.to = NULL;
}

/* Has the calling thread just reported this code to that coordinator?  Called
   while a member of the round is alive, so that the round lasts. */
static inline bool
evc__just_reported(const void *to, int code)
{
	return code != 0 && evc__reported.to == to &&
	       evc__reported.code == code;
}

#endif
