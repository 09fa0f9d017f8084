/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telling the service manager, by the protocol of sd_notify(3), without its
 * library: datagrams to the socket that NOTIFY_SOCKET names.
 */
#ifndef EVCOORD_SYSTEMD_H
#define EVCOORD_SYSTEMD_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * What is told.
 */
typedef struct evc_systemd_opts {
	const char *socket;   /* a path, or "@name" for an abstract one; NULL =
				 $NOTIFY_SOCKET */
	double status_every;  /* seconds between two STATUS= while stopping; 0 =
				 0.25 */
	double extend;        /* seconds that EXTEND_TIMEOUT_USEC= asks for when
				 members have made progress or ended; 0 = 5,
				 < 0 = never */
	double watchdog;      /* seconds between two WATCHDOG=1; 0 = half of
				 $WATCHDOG_USEC, none when that is not set or
				 not for this process; < 0 = none */
	evc_reactor *reactor; /* whose loop WATCHDOG=1 shows to be alive; NULL =
				 home, without one a thread of its own */
	uint64_t reserved_[8];
} evc_systemd_opts;

/*
 * Tell the service manager of this coordinator: STOPPING=1 the moment a stop
 * is asked for, STATUS= with who is left while it goes on,
 * EXTEND_TIMEOUT_USEC= while there is progress, WATCHDOG=1 by a looper named
 * "watchdog" in the background.  A manager that does not listen is no error: a
 * stop is as fast.
 *
 * Thread:    any.
 * Ownership: opts is copied.
 * Returns:   0; -EVC_NOT_FOUND without a socket: the program was not started by
 *            a service manager, and nothing is told; -EVC_ALREADY_EXISTS;
 *            -EVC_FAILED_PRECONDITION for a scope; -EVC_INVALID_ARGUMENT,
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_systemd_start(evc_coord *c, const evc_systemd_opts *opts);

/*
 * READY=1: the set-up is done; with a STATUS= unless status is NULL.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND before evc_systemd_start; -EVC_UNAVAILABLE when
 *            it was not taken; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_systemd_ready(evc_coord *c, const char *status);

/*
 * Say something else: lines of sd_notify(3), such as "RELOADING=1" or
 * "MAINPID=123".
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   as evc_systemd_ready.
 * Since:     0.1
 */
EVC_API evc_status
evc_systemd_notify(evc_coord *c, const char *lines);

/*
 * Tell no more: the watchdog's looper ends, the socket is closed.  evc_free
 * does the same.
 *
 * Thread:    any; not a callback of the library.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_systemd_stop(evc_coord *c);

EVC_END_DECLS_

#endif
