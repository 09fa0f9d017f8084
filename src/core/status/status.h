/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codes and refusals, the clock, ids, and the state of the calling thread.
 */
#ifndef EVC_CORE_STATUS_H
#define EVC_CORE_STATUS_H

#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"
#include "base/table.h"

struct evc__entry;
struct evc__mark;
struct evc__member;
struct evc__waker;

/* This part of a coordinator. */
struct evc__coord_status {
	/* set at creation */
	uint64_t clean[4]; /* bit = the code is clean */
	uint64_t (*clock)(void *);
	void *clock_arg;
};

/* The table of ids, a field of the register; the lock guards it. */
struct evc__ids {
	struct table table;
	evc_id last;
};

/* ---- status.c ---- */

/* Monotonic nanoseconds by c's clock. */
uint64_t evc__now(const evc_coord *c);
/* How long a thread has to sleep in real time for ns by c's clock.  A clock of
   the user's may jump at any moment; then the sleep is short, so that the
   thread reads the clock again. */
uint64_t evc__real_ns(const evc_coord *c, uint64_t ns);
/* Is the code clean in the round of word w? */
bool evc__is_clean(const evc_coord *c, uint64_t w, evc_status code);
/* 0, or the reason why a call cannot go on: c is NULL or inherited by a fork
   child. */
evc_status evc__check(const evc_coord *c, const char *func);
/* 0: the caller is inside c's refgate and has to leave; `refused`: c is being
   freed.  The caller has called evc__check before. */
evc_status evc__enter(evc_coord *c, evc_status refused, const char *func);
/* Has c not yet recorded the text of evc_last_error as an error?  The call
   marks the text as recorded. */
bool evc__refusal_is_new(const evc_coord *c);
/* Note the reason of a refusal for the calling thread; returns the status. */
#define evc__refuse evc_refuse
/* For calls with success although an inner call was refused. */
struct evc__last_error {
	char text[160];
	const evc_coord *of;
};
struct evc__last_error evc__last_error_keep(void);
void evc__last_error_restore(const struct evc__last_error *kept);
/* evc__refuse without a format, safe in signal handlers: "func: why". */
evc_status evc__refuse_plain(evc_status s, const char *func, const char *why);
#define evc__refuse_setup evc_refuse_setup
/* kind: the kind of member that the options are for; EVC_GUARD is no member. */
#define EVC_GUARD 0
/* A runner that is a child process, for evc__check_opts. */
#define EVC_CHILD 16
evc_status evc__check_opts(const evc_member_opts *o, unsigned kind,
			   const char *func);
/* Reserved fields are zero; a grace is a time or EVC_NO_GRACE. */
evc_status evc__check_reserved(const uint64_t room[8], const char *func);
evc_status evc__check_grace(double grace, const char *func);
/* The code as coordinators record codes, 0..255: a negative code without its
   sign, and EVC_UNKNOWN for a code outside this range (*ret_unknown). */
evc_status evc__normal(evc_status code, bool *ret_unknown);

/* ---- self: the state of the calling thread; self.c ---- */

/* A looper on a loop, while the thread runs one of its functions. */
struct evc__acting {
	const evc_coord *c;
	evc_id id;
	const char *name;
};

struct evc__self {
	struct evc__member *member; /* the member that is this thread */
	struct evc__mark *mark;     /* the mark that evc_progress writes to, or
				       NULL */
	struct evc__waker *pushed;  /* its innermost cancel hook */
	const evc_coord *woken_in; /* coordinator of the last hook that was
				      called and then popped */
	uint32_t woken_stop;       /* number of the stop in which this hook was
				      called */
	const struct evc__acting *acting; /* the looper that the thread runs a
					     function of, or NULL */
};
struct evc__self *evc__self(void);
/* In a fork child: the thread is no member any more; a lock that the thread
   needs in the child is free. */
void evc__self_inherited(void);
/* The calling thread is the thread of member m. */
void evc__self_is(struct evc__member *m);

/* In the stop of c with this number, was the calling thread kicked or
   unblocked, or was a cancel hook of the thread called? */
bool evc__woken(const evc_coord *c, uint32_t stop);

#endif
