/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runners: the program's, described by evc_runner_ops, and the library's own.
 */
#ifndef EVC_MEMBERS_RUNNER_H
#define EVC_MEMBERS_RUNNER_H

#include "core/core.h"
#include "core/status/trace.h"

struct evc__runner;

/* The operations of the library's own runners.  Lock held; they never block and
   call no function of the program's, so any thread may call them. */
struct evc__runner_own {
	/* Do all that is due, and with probe check for the end.  true: the
	   runner has changed. */
	bool (*attend)(struct evc__runner *r, bool probe);
	/* The grace of a join is over.  true: the end may come in a moment. */
	bool (*force)(struct evc__runner *r);
	/* Ask only: nothing changes. */
	bool (*is_running)(struct evc__runner *r);
	void (*describe)(const struct evc__runner *r, char *buf, size_t n);
};

/* The operation that is being called. */
enum evc__runner_call {
	RUNNER_IDLE,
	RUNNER_ASKED,
	RUNNER_STOPPED,
	RUNNER_JOINED,
	RUNNER_DESCRIBED
};

struct evc__runner {
	struct evc__member m; /* first */
	/* set at creation */
	const evc_runner_ops *ops; /* the program's; or NULL, with own set */
	evc_runner_ops copy;       /* ops points here */
	bool bound;                /* the program named the reactor */
	void *arg;
	const struct evc__runner_own *own;

	/* lock */
	struct list all;      /* in c->member.runners */
	evc_reactor *reactor; /* NULL: any join calls the operations */
	/* One call at a time; the record stays until the call returns. */
	enum evc__runner_call call;
	int caller;       /* thread id; 0: a thread that is about to begin */
	bool wanted;      /* a thread waits for the call to return */
	bool stop_called; /* the stop operation was called */
	bool done_called; /* evc_runner_done was called */
	bool ended;       /* not running any more */
	bool over;        /* joined or removed: freed when no call is left */
};
#define RUNNER_OF(n) LIST_OF(n, struct evc__runner, all)

/* Trace a call, but not is_running, which joins call often. */
static inline void
evc__runner_trace(enum evc__trace_what what, const struct evc__runner *r,
		  enum evc__runner_call call)
{
	if (call != RUNNER_ASKED)
		evc__trace(r->m.c, what, r->m.e.id, EVC_RUNNER, r->m.name,
			   call == RUNNER_STOPPED ? TRACE_STOP : TRACE_REAP);
}

/* ---- runner.c; lock held ---- */

/* Call an operation, not describe, with the lock released. */
void evc__runner_call(struct evc__runner *r, enum evc__runner_call what);
/* Call all due operations of a runner of the loop `on`; NULL: of no loop.  true:
   the lock was given up, or the runner has changed. */
bool evc__runner_serve(struct evc__runner *r, const evc_reactor *on,
		       bool probe);
/* is_running was false, or evc_runner_done was called: the runner is to be
   joined. */
void evc__runner_ended(struct evc__runner *r);
/* Wake a thread that can call the operations. */
void evc__runner_wake(struct evc__runner *r);
/* Another thread is in a call: wait for its return, ns at most, with the lock
   released.  Afterwards r may be freed, or the call may still be running. */
void evc__runner_await(struct evc__runner *r, uint64_t ns);
/* Free r if r is over and no call is left. */
void evc__runner_settle(struct evc__runner *r);
/* Remove r.  0: done; 1: wait for a wake and try again; < 0: refused. */
int evc__runner_remove(struct evc__member *m);
/* Register r.  < 0: refused, and r is still the caller's. */
evc_status evc__runner_enter(evc_coord *c, struct evc__runner *r,
			     const evc_member_opts *o, const char *func);
/* No lock: the checks for all kinds of runners; kind: EVC_RUNNER, EVC_CHILD. */
evc_status evc__runner_check(evc_coord *c, unsigned kind,
			     const evc_member_opts *o, const char *func);

#endif
