/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loopers from the inside: what those on a loop and those on a thread of their
 * own have in common, and what each kind does for the calls.
 *
 * All state of a looper is guarded by its coordinator's lock, which is given up
 * around its functions.  Only the loop's thread, or its own, calls them; what
 * others want - a pause, a removal - they write down, and wake that thread.
 */
#ifndef EVC_MEMBERS_LOOPER_H
#define EVC_MEMBERS_LOOPER_H

#include "core/core.h"
#include "members/schedule.h"

/* What is going on with it: evc__body.bits. */
enum {
	/* Created paused and not resumed yet: not alive. */
	LOOPER_DORMANT = 1 << 0,
	LOOPER_PAUSED = 1 << 1,
	/* A run that uses up no boundary is wanted. */
	LOOPER_TRIGGERED = 1 << 2,
	/* One of its functions is running. */
	LOOPER_RUNNING = 1 << 3,
	/* opts.start has succeeded, or there was none and it has run: opts.stop
	   is owed. */
	LOOPER_STARTED = 1 << 4,
	/* opts.stop was called, or is being called. */
	LOOPER_STOPPED = 1 << 5,
	/* No run begins any more: it was removed. */
	LOOPER_REMOVED = 1 << 6,
	/* By itself, so nothing of it is called any more. */
	LOOPER_SILENT = 1 << 7,
	/* On a loop: its place in the heap does not say when it is due. */
	LOOPER_ADRIFT = 1 << 8,
	/* On a loop: due again in the next iteration. */
	LOOPER_AGAIN = 1 << 9
};

/* What most loopers do without. */
struct evc__looper_more {
	evc_fn *start, *stop;
	struct evc__policy policy;
	double grace; /* on a loop: its own */
	struct evc__waker *unblock; /* on a loop; or NULL */
};

struct evc__body {
	/* set at creation */
	evc_fn *fn;
	void *arg;
	struct evc__looper_more *more; /* or NULL */
	/* lock */
	struct evc__schedule schedule;
	uint32_t bits;
	uint32_t number; /* on a loop: in its heap; set at creation */
};

/* Lock held: for reports. */
static inline const char *
evc__looper_state(const struct evc__body *b)
{
	return b->bits & (LOOPER_DORMANT | LOOPER_PAUSED) ? "paused" : "";
}

/* Who it is, for what its functions report. */
struct evc__looper_who {
	evc_coord *c;
	evc_id id;
	const char *name;
	unsigned flags;
	evc_reactor *reactor; /* NULL: it has a thread of its own; who calls its
				 functions stands in a BUSY_LOOPER on it */
	/* Lock held: it was taken for a run; or NULL. */
	void (*taken)(struct evc__body *b);
};

/* ---- looper.c ---- */

extern const struct evc__looper_ops evc__looper_ops;

/* Does it need a struct evc__looper_more? */
bool evc__looper_needs_more(const evc_member_opts *o);
void evc__looper_body(struct evc__body *b, double interval, evc_fn *fn,
		      void *arg, const evc_member_opts *o,
		      struct evc__looper_more *more);

/* ---- looper_run.c ---- */

/* Lock held: the id is known, it begins now. */
void evc__looper_begin(struct evc__body *b, evc_id id, uint64_t now);
/* Lock held: when it is to be served, pauses and triggers included. */
uint64_t evc__looper_due(const struct evc__body *b);
/* Its own thread or its loop's; lock held, given up around its functions, it is
   due: start it if that was not done, and run it.  false: that was its end;
   *reported: it has said why. */
bool evc__looper_serve(const struct evc__looper_who *w, struct evc__body *b,
		       uint64_t now, bool *reported);
/* The same for the last run at the stop. */
bool evc__looper_flush(const struct evc__looper_who *w, struct evc__body *b,
		       bool *reported);
/* The same for its end: opts.stop if it is owed, and what its end means. */
void evc__looper_finish(const struct evc__looper_who *w, struct evc__body *b,
			bool reported);
/* No lock, on its own thread, which leaves in the middle of a function. */
/* In a fork child: the calling thread is in no run. */
void evc__loopers_inherited(void);
void evc__looper_left(const struct evc__looper_who *w, struct evc__body *b);
/* Does its end call something? */
bool evc__looper_owes_stop(const struct evc__body *b);
/* Lock held, by itself, inside one of its functions. */
void evc__looper_remove_self(const struct evc__looper_who *w,
			     struct evc__body *b);

/* ---- looper_loop.c: on a loop ---- */

evc_status evc__loop_looper_start(evc_reactor *r, const char *name,
				  double interval, evc_fn *fn, void *arg,
				  const evc_member_opts *o, evc_id *ret_id);
/* Lock held. */
struct evc__body *evc__loop_looper_body(struct evc__entry *e);
/* Lock held: its bits or its schedule have changed. */
void evc__loop_looper_changed(struct evc__entry *e);
/* Lock held: it was dormant. */
evc_status evc__loop_looper_wake(struct evc__entry *e);
/* Lock held. */
void evc__loop_looper_view(const struct evc__entry *e,
			   struct evc__looper_view *v);
int evc__loop_looper_remove(struct evc__entry *e);
/* struct evc__looper_ops. */
bool evc__loopers_stop(evc_reactor *r, const struct evc__frame *f);
void evc__loopers_drop(evc_reactor *r);
void evc__loopers_turn(evc_reactor *r);
void evc__loopers_forget(evc_reactor *r);
void evc__loopers_each(const evc_reactor *r,
		       void (*fn)(const struct evc__looper_view *v, void *arg),
		       void *arg);

/* ---- looper_thread.c: on a thread of its own; likewise ---- */

evc_status evc__own_looper_start(evc_coord *c, const char *name,
				 double interval, evc_fn *fn, void *arg,
				 const evc_member_opts *o, evc_id *ret_id);
/* NULL: it has ended, and was not joined yet. */
struct evc__body *evc__own_looper_body(struct evc__entry *e);
void evc__own_looper_changed(struct evc__entry *e);
evc_status evc__own_looper_wake(struct evc__entry *e);
void evc__own_looper_view(const struct evc__entry *e,
			  struct evc__looper_view *v);

#endif
