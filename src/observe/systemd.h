/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words to the service manager, from the inside.
 *
 * Three threads tell: the thread that asks for the stop, by a listener in this
 * very call; the helper thread, by a job, while a stop stands; the looper,
 * while no stop stands.
 */
#ifndef EVC_OBSERVE_SYSTEMD_H
#define EVC_OBSERVE_SYSTEMD_H

#include <sys/un.h>

#include "core/core.h"
#include "core/helper/job.h"

#include "base/text.h"

/* ---- systemd_socket.c ---- */

/* The manager's address.  The socket is not connected: tomorrow another manager
   may listen at the same address. */
struct evc__manager {
	int fd;
	struct sockaddr_un to;
	socklen_t to_len;
};

/* A path, or "@name": into m->to.  false: neither, or too long. */
bool evc__manager_address(struct evc__manager *m, const char *name);
/* Send a datagram; signal-safe but for errno.  false: no process took the
   datagram. */
bool evc__manager_send(const struct evc__manager *m, const char *lines,
		       size_t n);

/* ---- systemd_stop.c ---- */

/* Measures of progress. */
struct evc__progress {
	uint64_t ended; /* members that have ended in this round */
	uint64_t mark;  /* the newest progress */
	/* seconds granted to members that asked for more time */
	double granted;
	unsigned left;
};

#define STATUS_SIZE 512

struct evc__systemd {
	/* set at creation */
	struct evc__listener listener;
	struct evc__helper_job job;
	evc_coord *c;
	struct evc__manager manager;
	uint64_t status_ns;
	double extend;        /* < 0: never extend */
	double watchdog;      /* seconds between signs of life; 0: none */
	evc_reactor *reactor; /* NULL: the watchdog has a thread of its own */

	/* atomic, numbers of stops, 0: none yet: the thread that tells of a
	   stop -> other such threads, the job */
	_Atomic uint32_t stopping; /* a thread tells of this stop */
	_Atomic uint32_t said;     /* all is said of this stop, or was tried */
	/* the manager did not take the words on this stop */
	_Atomic uint32_t unheard;
	/* helper only: the thread that asked for this stop has had a moment to
	   tell */
	uint32_t awaited;
	/* a thread tells of the drain before the stop of this number */
	_Atomic uint32_t draining;

	/* lock */
	evc_id looper;
	bool asking;   /* the watchdog has asked the loops, and not all have
			  answered */

	/* helper thread only; afterwards the thread that has removed the job */
	uint32_t closed;     /* the last stop known to be over */
	bool no_looper;      /* there was no memory for the looper */
	uint32_t stop;       /* the stop of the fields below */
	uint64_t status_due, watchdog_due; /* real monotonic nanoseconds */
	struct evc__progress before;
	char status[STATUS_SIZE];
};

/* Say at once that a stop or a drain has begun, unless this was said; any
   thread, signal-safe but for errno. */
void evc__systemd_tell(struct evc__listener *l);
/* The helper's job. */
uint64_t evc__systemd_run(evc_coord *c, struct evc__helper_job *k);
/* All members have ended; the job is removed. */
void evc__systemd_last_word(struct evc__systemd *sd);

/* ---- systemd_watchdog.c ---- */

/* No lock held: begin to send WATCHDOG=1. */
evc_status evc__systemd_watch(struct evc__systemd *sd);
/* Helper thread: send WATCHDOG=1 if all loops have answered.  Returns how long
   the helper may sleep. */
uint64_t evc__systemd_answers(struct evc__systemd *sd);

#endif
