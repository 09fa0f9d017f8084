/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last code that a thread has reported, and to which coordinator.  A
 * function of any member that returns this very code says nothing new: the
 * report has a text and a place, and the result adds nothing to it.  This is
 * the one place where that rule stands.
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
	uint32_t stops; /* how many stops that had had */
	int code;
	bool handed_back; /* the report came after the round was closed */
	bool heard_stop;  /* see above; a worker clears it before each run */
};

extern __thread struct evc__reported evc__reported
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Before a function of a member's is called: what it reports itself counts, and
   not what others have reported on this thread. */
static inline void
evc__reported_forget(void)
{
	evc__reported.to = NULL;
}

/* Has the calling thread just reported that code there?  In a round that
   lasts: while a member of it lives. */
static inline bool
evc__just_reported(const void *to, int code)
{
	return code != 0 && evc__reported.to == to &&
	       evc__reported.code == code;
}

#endif
