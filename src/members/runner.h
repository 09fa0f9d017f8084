/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runners from the inside: those that the program describes, and those that the
 * library brings.
 */
#ifndef EVC_MEMBERS_RUNNER_H
#define EVC_MEMBERS_RUNNER_H

#include "core/core.h"
#include "core/status/trace.h"

struct evc__runner;

/* What a runner of the library's own does.  Lock held; never blocks, calls
   nothing of the program's, and so is called by whoever comes by. */
struct evc__runner_own {
	/* Do what is due, with probe also look whether it runs.  true:
	   something has changed. */
	bool (*attend)(struct evc__runner *r, bool probe);
	/* The grace of a join is over.  true: it may end within a moment. */
	bool (*force)(struct evc__runner *r);
	/* Look, and change nothing. */
	bool (*is_running)(struct evc__runner *r);
	void (*describe)(const struct evc__runner *r, char *buf, size_t n);
};

/* Which of its operations is being called. */
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
	const evc_runner_ops *ops; /* NULL: own is set instead */
	evc_runner_ops copy;       /* what ops points to */
	bool bound;                /* to a reactor that the caller named */
	void *arg;
	const struct evc__runner_own *own;

	/* lock */
	struct list all;      /* c->runner_list */
	evc_reactor *reactor; /* NULL: whoever joins calls it */
	/* One call at a time; the record stays until it has returned. */
	enum evc__runner_call call;
	int caller;  /* thread id; 0: a thread that is about to begin */
	bool wanted; /* somebody waits for that call to return */
	bool told;   /* of the stop */
	bool said;   /* evc_runner_done was called */
	bool ended;  /* it runs no more */
	bool over;   /* joined, or given up: gone once nobody is in a call */
};
#define RUNNER_OF(n) LIST_OF(n, struct evc__runner, all)

/* A call of it, but not of questions: joins ask many. */
static inline void
evc__runner_trace(enum evc__trace_what what, const struct evc__runner *r,
		  enum evc__runner_call call)
{
	if (call != RUNNER_ASKED)
		evc__trace(r->m.c, what, r->m.e.id, EVC_RUNNER, r->m.name,
			   call == RUNNER_STOPPED ? TRACE_STOP : TRACE_REAP);
}

/* ---- runner.c; lock held ---- */

/* Call one of its operations, with the lock given up: not its describe. */
void evc__runner_call(struct evc__runner *r, enum evc__runner_call what);
/* It runs no more. */
void evc__runner_ended(struct evc__runner *r);
/* Let somebody look who can call it. */
void evc__runner_wake(struct evc__runner *r);
/* Another thread is in a call of it: wait until that has returned, ns at most,
   with the lock given up.  r may be gone then; something else may have rung. */
void evc__runner_await(struct evc__runner *r, uint64_t ns);
/* Let it go if it is over and nobody is in a call of it. */
void evc__runner_settle(struct evc__runner *r);
/* Give it up.  0: done; 1: wait for a ring and try again; < 0: refused. */
int evc__runner_remove(struct evc__member *m);
/* Put it in; < 0: it could not be, and is still the caller's. */
evc_status evc__runner_enter(evc_coord *c, struct evc__runner *r,
			     const evc_member_opts *o, const char *func);
/* No lock: the checks that all kinds of runners share. */
evc_status evc__runner_check(evc_coord *c, const char *name,
			     const evc_member_opts *o, const char *func);

#endif
