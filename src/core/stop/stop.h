/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request of a stop, its reasons, and the wait for the stop.
 */
#ifndef EVC_CORE_STOP_H
#define EVC_CORE_STOP_H

#include <evcoord.h>

#include "base/refgate.h"
#include "base/sync.h"
#include "core/stop/listener.h"

/* A kept reason: all but its slot word, which is its lock. */
struct evc__slot {
	evc_reason r;
	uint32_t seq; /* the order of arrival, for equal times */
	bool error;  /* the code was not clean on arrival */
	bool named;  /* the author's name is not the thread's own */
	bool logged; /* lock */
	/* atomic: a scope's report, once the word has the report -> clear */
	_Atomic bool reported;
};


/* This part of a coordinator. */
struct evc__coord_stop {
	/* set at creation */
	unsigned n_slots;
	_Atomic uint32_t *slot_word; /* guards slot[]; see reason.c */
	struct evc__slot *slot;
	unsigned on_error;       /* of a scope: EVC_ON_ERROR_..., for its
				    errors */
	struct evc__listener up; /* of a scope: in the parent's table */

	/* atomic: requesters -> joins */
	_Atomic uint32_t arrivals; /* numbers the reasons */
	_Atomic uint64_t errors; /* (stops << 32 | n): errors not in the word */
	_Atomic uint32_t walked; /* number of the last stop with a complete
				    walk */
	_Atomic uint32_t own_stop;    /* number of the last stop that has a
					 request besides the request of the
					 parent */
	_Atomic uint32_t parent_stop;   /* number of the parent's last stop that
					   the scope was told of */
	_Atomic uint32_t cleared_by_parent;  /* number of the stop that a clear
						of the parent has ended or is
						about to end; 0: the scope
						itself was cleared */

	/* atomic: a sleeping thread -> a waking thread; see wait.c */
	_Atomic uint32_t n_waiters;  /* sleep on the word, in wake/ */
	_Atomic uint32_t join_seq;   /* moves before each wake of joins */
	_Atomic uint32_t n_sleepers; /* sleep on join_seq */
	_Atomic int fd;              /* -1: not made yet */
	struct refgate fd_gate;         /* around uses of fd */
	struct readers pollers;      /* waits by fd; see wake/wait_fd.c */

	/* listeners; see notify.c */
	struct readers readers;
	_Atomic uint32_t n_listeners;
	_Atomic uint32_t n_loop_joins; /* n_joins of all listeners, added up */
	struct notify_set listeners[LISTENER_KINDS];
	/* atomic: joins in progress, without the library's own -> requests */
	_Atomic uint32_t n_driving;
	/* atomic: threads of hosted loops -> joins: runs of hosts that have not
	   returned; see evc_reactor_host_runs */
	_Atomic uint32_t n_host_runs;

	/* atomic: the count of the living.  A thread, a hold and a looper count
	   1 each; a reactor with tasks counts 1; a scope that is held or not
	   empty counts 1 */
	_Atomic uint32_t alive;
	_Atomic uint32_t n_live_scopes; /* scopes in alive */
};

struct evc__request {
	evc_status code; /* 0..255 */
	int err;
	unsigned kind;   /* 0: EVC_BY_REQUEST or EVC_BY_ERROR */
	int signo;       /* EVC_BY_SIGNAL: the signal */
	int tid;         /* 0: the calling thread's */
	bool report;     /* true: an error that asks for no stop */
	evc_id by;       /* 0: the calling thread's member, if any */
	const char *who; /* NULL: the calling thread's name */
	const char *text, *file, *func;
	int line;
	uint32_t stop; /* not 0: the request is for the stop with this number
			  alone */
};

/* No lock: a join, or the run of a host, returns to the program.  When it is the
   last one, the stop with this number is answered: at_end is disarmed.  0: no
   stop of a root. */
void evc__stop_returned(evc_coord *c, uint32_t stop);

/* Ask for the stop; signal-safe.  0, or the code handed back. */
evc_status evc__request(evc_coord *c, const struct evc__request *q);
/* evc_refuse_setup, for a call that starts a member with the options o. */
evc_status evc__refuse_member(evc_coord *c, const char *func,
			      const evc_member_opts *o, evc_status st);
/* Ask for the stop as evc__request does, but tell no listener.  *ret_error: the
   request counts as an error of the round. */
evc_status evc__request_record(evc_coord *c, const struct evc__request *q,
			       bool *ret_error);

/* Lock held: the reason in a slot, if the slot is of the round of w, else
   NULL. */
const evc_reason *evc__reason_peek(const evc_coord *c, unsigned slot,
				   uint64_t w);
/* Lock held: copy the reason in a slot into *ret.  false: the slot has no
   reason of the round of w. */
bool evc__reason_copy(const evc_coord *c, unsigned slot, uint64_t w,
		      evc_reason *ret);
/* Lock not held: copy the reason as evc_reason_get counts them.  false: there is
   no such reason. */
bool evc__reason_nth(const evc_coord *c, unsigned index, evc_reason *ret);
/* Lock held: m is about to leave the register: reasons from the thread of m get
   the id and the name of m. */
void evc__reasons_sign(evc_coord *c, const struct evc__member *m);
/* Lock held: is the reason an error of its round? */
bool evc__reason_is_error(const evc_coord *c, unsigned slot, uint64_t w);
/* Lock held: did the reason in slot a come before the reason in slot b? */
bool evc__reason_before(const evc_coord *c, unsigned a, unsigned b);
/* Lock held: did the reason come after the round was closed? */
bool evc__reason_late(const evc_coord *c, unsigned slot);
/* The number of errors in the round of w. */
unsigned evc__n_errors(const evc_coord *c, uint64_t w);
/* ---- slots, for stop.c: a request claims, fills and publishes a slot ---- */
/* Claim a slot for a request in the round of w, and return its index; NO_SLOT:
   no slot is free.  late: the request is an error, and the round is closed. */
unsigned evc__slot_claim(evc_coord *c, uint64_t w, bool error, bool late);
void evc__slot_fill(evc_coord *c, unsigned slot, uint64_t w, bool error,
		    const struct evc__request *q);
void evc__slot_publish(evc_coord *c, unsigned slot, uint64_t w, bool late);
/* The round was closed after the slot was published as READY: make the slot
   LATE. */
void evc__slot_late(evc_coord *c, unsigned slot, uint64_t w);
/* Lock held: free the LATE slots of the present round. */
void evc__slots_forget_late(evc_coord *c);
/* Lock held: a round without a stop is over: forget the reports of scopes. */
void evc__reports_forget(evc_coord *c, uint64_t w);
/* Count an error of the round of w besides the first error, which the word
   has. */
void evc__error_count(evc_coord *c, uint64_t w);

/* ---- wait.c ---- */

/* evc_wait_for_stop, also inside ev_run. */
bool evc__wait_for_stop(evc_coord *c, double timeout);
/* Wake all threads that wait for the stop. */
void evc__wake_waiters(evc_coord *c);
/* Make the stop descriptor readable or not, as the flag is set or not. */
void evc__settle(evc_coord *c);
/* c is being freed: close the stop descriptor. */
void evc__stop_fd_close(evc_coord *c);

#endif
