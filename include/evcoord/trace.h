/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline: when each member began, was told, was late, ended.
 */
#ifndef EVCOORD_TRACE_H
#define EVCOORD_TRACE_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/* Formats of evc_trace_write. */
enum {
	EVC_TRACE_JSON = 1 /* Chrome's trace format: trace viewers read it, and
			      evc-trace(1) draws it */
};

/*
 * Begin a timeline of c and all scopes below it: every begin, request, wake,
 * step, phase, kick, verdict and end, with nanoseconds.  The timeline keeps the
 * n_events latest events (0: 4096); to record an event takes no lock and no
 * memory.  A timeline that is off costs one predicted branch.
 *
 * Thread:    any.
 * Ownership: the memory, 128 bytes for each event, is c's until evc_free.
 * Returns:   0; -EVC_ALREADY_EXISTS when the timeline is on;
 *            -EVC_FAILED_PRECONDITION for a scope; -EVC_INVALID_ARGUMENT (more
 *            than 2^24 events), -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_trace_start(evc_coord *c, size_t n_events);

/*
 * End the timeline.  The recorded events can still be written, until the next
 * start.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND when the timeline is not on, and for a scope;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_trace_stop(evc_coord *c);

/*
 * Write the recorded events of the whole tree, also when c is a scope; the
 * timeline may be on or off.
 *
 * Thread:    any; not a signal handler.
 * Ownership: fd is the caller's and stays open.
 * Returns:   0; -EVC_NOT_FOUND when nothing was ever recorded;
 *            -EVC_UNAVAILABLE when fd cannot be written, or takes nothing
 *            for a second;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_trace_write(const evc_coord *c, int fd, unsigned format);

EVC_END_DECLS_

#endif
