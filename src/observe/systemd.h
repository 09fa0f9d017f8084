/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is told to the service manager, from the inside.
 *
 * Three tell: whoever asks for the stop, by a listener, in that very call; the
 * helper thread, by a job, while a stop stands; a looper, while none does.
 */
#ifndef EVC_OBSERVE_SYSTEMD_H
#define EVC_OBSERVE_SYSTEMD_H

#include <sys/un.h>

#include "core/core.h"
#include "core/helper/job.h"

#include "base/text.h"

/* ---- systemd_socket.c ---- */

/* Where the manager listens.  Not connected: it may be another one tomorrow, at
   the same place. */
struct evc__manager {
	int fd;
	struct sockaddr_un to;
	socklen_t to_len;
};

/* A path, or "@name": into m->to.  false: it is neither, or too long. */
bool evc__manager_address(struct evc__manager *m, const char *name);
/* A datagram; signal-safe but for errno.  false: nobody has taken it. */
bool evc__manager_send(const struct evc__manager *m, const char *lines,
		       size_t n);

/* ---- systemd_stop.c ---- */

/* What shows that somebody gets on. */
struct evc__progress {
	uint64_t ended; /* so many have, in this round */
	uint64_t mark;  /* the newest progress */
	double granted; /* seconds, to those who asked for more time */
	unsigned left;
};

#define STATUS_ROOM 512

struct evc__systemd {
	/* set at creation */
	struct evc__listener listener;
	struct evc__helper_job job;
	evc_coord *c;
	struct evc__manager manager;
	uint64_t status_ns;
	double extend;        /* < 0: never */
	double watchdog;      /* 0: none */
	evc_reactor *reactor; /* NULL: the watchdog has a thread of its own */

	/* atomic: who tells of a stop -> others who tell, the job: numbers of
	   stops; 0: none yet */
	_Atomic uint32_t stopping; /* of which somebody tells */
	_Atomic uint32_t said;     /* of which all is said, or was tried */
	_Atomic uint32_t unheard;  /* and was not taken */
	uint32_t awaited; /* helper only: the stop that whoever asks for it is
			     given a moment to tell of */
	_Atomic uint32_t draining; /* the same, of the stop to come */

	evc_id looper; /* lock */

	/* helper thread only; afterwards, who has removed the job */
	uint32_t closed;     /* the last stop that is known to be over */
	bool no_looper;      /* there was no memory for it */
	uint32_t stop;       /* the one that the following are about */
	uint64_t status_due, watchdog_due; /* real monotonic nanoseconds */
	struct evc__progress before;
	char status[STATUS_ROOM];
};

/* Say at once that a stop or a drain has begun, unless that was said; any
   thread, signal-safe but for errno. */
void evc__systemd_tell(struct evc__listener *l);
/* The job. */
uint64_t evc__systemd_run(evc_coord *c, struct evc__helper_job *k);
/* Everybody has ended; the job is removed. */
void evc__systemd_last_word(struct evc__systemd *sd);

/* ---- systemd.c ---- */

/* No lock: begin to send WATCHDOG=1. */
evc_status evc__systemd_watch(struct evc__systemd *sd);

#endif
