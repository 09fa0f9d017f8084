/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to the service manager, by the protocol of sd_notify(3) and without
 * systemd's library: datagrams to the socket that NOTIFY_SOCKET names.
 */
#ifndef EVCOORD_SYSTEMD_H
#define EVCOORD_SYSTEMD_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Options of evc_systemd_start.
 */
typedef struct evc_systemd_opts {
	const char *socket;   /* a path, or "@name" for an abstract socket; NULL
				 = $NOTIFY_SOCKET */
	double status_every;  /* seconds between two STATUS= during a stop; 0 =
				 0.25 */
	double extend;        /* seconds that EXTEND_TIMEOUT_USEC= asks for when
				 members have made progress or ended; 0 = 5,
				 < 0 = never */
	double watchdog;      /* seconds between two WATCHDOG=1; 0 = half of
				 $WATCHDOG_USEC, none when that is not set or
				 not for this process; < 0 = none */
	evc_reactor *reactor; /* where the looper for WATCHDOG=1 runs; NULL =
				 home, without a home a thread of its own */
	uint64_t reserved_[8];
} evc_systemd_opts;

/*
 * Begin messages about this coordinator to the service manager: STOPPING=1 as
 * soon as a stop is requested, STATUS= with the members still running during
 * the stop, EXTEND_TIMEOUT_USEC= while there is progress.  A looper named
 * "watchdog", in the background, rings every attached loop that has run, of c
 * and of all scopes below, and WATCHDOG=1 is sent when all of them have
 * answered.  A manager that does not listen is no error, and slows no stop.
 *
 * Thread:    any.
 * Ownership: opts is copied.
 * Returns:   0; -EVC_NOT_FOUND without a socket: the program was not started by
 *            a service manager, and no message is sent; -EVC_ALREADY_EXISTS;
 *            -EVC_FAILED_PRECONDITION for a scope; -EVC_INVALID_ARGUMENT,
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_systemd_start(evc_coord *c, const evc_systemd_opts *opts);

/*
 * Send READY=1, which says that the set-up is done, with a STATUS= unless
 * status is NULL.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND before evc_systemd_start; -EVC_UNAVAILABLE when
 *            the manager did not take the message; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_systemd_ready(evc_coord *c, const char *status);

/*
 * Send RELOADING=1 with the time, MONOTONIC_USEC=, that units of the type
 * notify-reload need, and STATUS= unless status is NULL.  evc_systemd_ready
 * says that the reload is done.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   as evc_systemd_ready.
 * Since:     0.2
 */
EVC_API evc_status
evc_systemd_reloading(evc_coord *c, const char *status);

/*
 * Send other lines of sd_notify(3), such as "MAINPID=123".
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   as evc_systemd_ready.
 * Since:     0.1
 */
EVC_API evc_status
evc_systemd_notify(evc_coord *c, const char *lines);

/*
 * End the messages: the watchdog's looper ends, the socket is closed.  evc_free
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
