/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codes and refusals, the clock, ids, and what the calling thread is.
 */
#ifndef EVC_CORE_STATUS_H
#define EVC_CORE_STATUS_H

#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"

struct evc__entry;
struct evc__mark;
struct evc__member;
struct evc__waker;

/* The part of a coordinator. */
struct evc__coord_status {
	/* All of it is set at creation. */
	uint64_t clean[4]; /* bit = the code is clean */
	uint64_t (*clock)(void *);
	void *clock_arg;
};

/* The table of ids; in the part of the register. */
struct evc__ids {
	/* The lock guards all of it. */
	struct evc__entry **table;
	unsigned n_buckets, n_entries;
	evc_id last;
};

/* ---- status.c ---- */

/* Monotonic nanoseconds by c's clock. */
uint64_t evc__now(const evc_coord *c);
/* How long to sleep in real time for that long by c's clock: nobody tells us
   when a clock of the user's jumps, so look at it now and then. */
uint64_t evc__real_ns(const evc_coord *c, uint64_t ns);
/* Is the code clean in a round whose word is w? */
bool evc__is_clean(const evc_coord *c, uint64_t w, evc_status code);
/* 0, or why a call may not go on: c is NULL or inherited by a fork child. */
evc_status evc__check(const evc_coord *c, const char *func);
/* 0: inside c's own gate, to be left again; else `refused`: c is being freed.
   Callers check first. */
evc_status evc__enter(evc_coord *c, evc_status refused, const char *func);
/* Has c not had the text of evc_last_error as an error of its own?  From now on,
   it has. */
bool evc__refusal_is_new(const evc_coord *c);
/* Note why the calling thread's call is refused; returns the status. */
#define evc__refuse evc_refuse
/* The same without a format, and safe in signal handlers: "func: why". */
evc_status evc__refuse_plain(evc_status s, const char *func, const char *why);
#define evc__refuse_setup evc_refuse_setup
/* A name of the user's: not longer than there is room for. */
evc_status evc__check_name(const char *name, const char *func);
/* kind: whose options; EVC_GUARD is no member. */
#define EVC_GUARD 0
evc_status evc__check_opts(const evc_member_opts *o, unsigned kind,
			   const char *func);
/* Reserved room is zero; a grace is a time or EVC_NO_GRACE. */
evc_status evc__check_reserved(const uint64_t room[8], const char *func);
evc_status evc__check_grace(double grace, const char *func);
/* A code as it is recorded: 0..255; what it was, when it was not one. */
evc_status evc__normal(evc_status code, bool *ret_unknown);

/* ---- self: what the calling thread last did; self.c ---- */

/* Whose function this thread is in: a looper on a loop. */
struct evc__acting {
	const evc_coord *c;
	evc_id id;
	const char *name;
};

struct evc__self {
	struct evc__member *member; /* the member this thread is */
	struct evc__mark *mark;     /* where its progress goes, or NULL */
	struct evc__waker *pushed;  /* the innermost cancel hook of its */
	const evc_coord *woken_in; /* whose cancel hook was called before it */
	uint32_t woken_stop;       /* was popped, in the stop with this number */
	const struct evc__acting *acting; /* for the time of a call, or NULL */
};
struct evc__self *evc__self(void);
/* In a fork child: it is nobody; where it was, it can take the lock. */
void evc__self_inherited(void);
/* The calling thread is this member. */
void evc__self_is(struct evc__member *m);

/* The calling thread was kicked, unblocked or its cancel hook was called in the
   stop of c with this number. */
bool evc__woken(const evc_coord *c, uint32_t stop);

#endif
