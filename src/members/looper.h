/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loopers: the common part of loopers on a loop and loopers on a thread of
 * their own, and the functions of each kind.
 *
 * The coordinator's lock guards all state of a looper, and is released around
 * the looper's functions.  The serving thread, the loop's or the looper's own,
 * calls these functions alone; another thread notes a pause or a removal in the
 * bits, and wakes the serving thread.
 */
#ifndef EVC_MEMBERS_LOOPER_H
#define EVC_MEMBERS_LOOPER_H

#include "core/core.h"
#include "members/schedule.h"

/* The state of a looper: evc__body.bits. */
enum {
	/* Created paused and never resumed: not counted as alive. */
	LOOPER_DORMANT = 1 << 0,
	LOOPER_PAUSED = 1 << 1,
	/* An extra run, at no boundary, was requested. */
	LOOPER_TRIGGERED = 1 << 2,
	/* One of the looper's functions is running. */
	LOOPER_RUNNING = 1 << 3,
	/* opts.start has succeeded, or without opts.start a run has begun:
	   opts.stop must be called. */
	LOOPER_STARTED = 1 << 4,
	/* The call of opts.stop has begun. */
	LOOPER_STOPPED = 1 << 5,
	/* Removed: no run begins any more. */
	LOOPER_REMOVED = 1 << 6,
	/* Removed by itself, or ended: no function is called any more. */
	LOOPER_SILENT = 1 << 7,
	/* On a loop: the place in the heap is out of date. */
	LOOPER_ADRIFT = 1 << 8,
	/* On a loop: due again in the loop's next iteration. */
	LOOPER_AGAIN = 1 << 9
};

/* Options that most loopers do not use. */
struct evc__looper_more {
	evc_fn *start, *stop;
	struct evc__policy policy;
	double grace; /* the looper's own; on a loop only */
	struct evc__waker *unblock; /* on a loop; or NULL */
	struct evc__later *release; /* on a loop; or NULL */
};

struct evc__body {
	/* set at creation */
	evc_fn *fn;
	void *arg;
	struct evc__looper_more *more; /* or NULL */
	/* lock */
	struct evc__schedule schedule;
	uint32_t bits;
	uint32_t number; /* on a loop: number in the heap; set at creation */
};

/* Lock held: for reports. */
static inline const char *
evc__looper_state(const struct evc__body *b)
{
	return b->bits & (LOOPER_DORMANT | LOOPER_PAUSED) ? "paused" : "";
}

/* The identity of a looper, for reports of its functions. */
struct evc__looper_who {
	evc_coord *c;
	evc_id id;
	const char *name;
	unsigned flags;
	evc_reactor *reactor; /* NULL: a looper on a thread of its own; else the
				 functions are called as BUSY_LOOPER of this
				 reactor */
	/* Called under the lock before each run, when the run has used up its
	   boundary; or NULL. */
	void (*before_run)(struct evc__body *b);
};

/* ---- looper.c ---- */

extern const struct evc__looper_ops evc__looper_ops;

/* Do the options need a struct evc__looper_more? */
bool evc__looper_needs_more(const evc_member_opts *o);
void evc__looper_body(struct evc__body *b, double interval, evc_fn *fn,
		      void *arg, const evc_member_opts *o,
		      struct evc__looper_more *more);

/* ---- looper_run.c ---- */

/* Lock held: begin the schedule now; the id is known. */
void evc__looper_begin(struct evc__body *b, evc_id id, uint64_t now);
/* Lock held: the time of the next service, with pauses and triggers. */
uint64_t evc__looper_due(const struct evc__body *b);
/* Serving thread; lock held, released around the functions; the looper is due:
   call opts.start if that is still to be done, and run.  false: the looper
   ends; *reported: a function has reported the reason. */
bool evc__looper_serve(const struct evc__looper_who *w, struct evc__body *b,
		       uint64_t now, bool *reported);
/* Serving thread; lock held, released around the functions: the last run at the
   stop, with EVC_FLUSH.  false: the looper ends; *reported: a function has
   reported the reason. */
bool evc__looper_flush(const struct evc__looper_who *w, struct evc__body *b,
		       bool *reported);
/* Serving thread; lock held, released around opts.stop: the looper ends: call
   opts.stop if due, and report the result. */
void evc__looper_finish(const struct evc__looper_who *w, struct evc__body *b,
			bool reported);
/* In a fork child: the calling thread is in no run. */
void evc__loopers_inherited(void);
/* No lock: the looper's own thread ends inside one of the functions. */
void evc__looper_left(const struct evc__looper_who *w, struct evc__body *b);
/* Must opts.stop be called at the end? */
bool evc__looper_owes_stop(const struct evc__body *b);
/* Lock held: the looper removes itself inside one of its functions. */
void evc__looper_remove_self(const struct evc__looper_who *w,
			     struct evc__body *b);

/* ---- looper_loop.c: on a loop ---- */

evc_status evc__loop_looper_start(evc_reactor *r, const char *name,
				  double interval, evc_fn *fn, void *arg,
				  const evc_member_opts *o, evc_id *ret_id);
/* Lock held. */
struct evc__body *evc__loop_looper_body(struct evc__entry *e);
/* Lock held: the bits or the schedule have changed. */
void evc__loop_looper_changed(struct evc__entry *e);
/* Lock held: the first resume of a dormant looper. */
evc_status evc__loop_looper_wake(struct evc__entry *e);
/* Lock held. */
void evc__loop_looper_view(const struct evc__entry *e,
			   struct evc__looper_view *v);
int evc__loop_looper_remove(struct evc__entry *e);
/* The operations of struct evc__looper_ops. */
bool evc__loopers_stop(evc_reactor *r, const struct evc__frame *f);
void evc__loopers_drop(evc_reactor *r);
void evc__loopers_turn(evc_reactor *r);
void evc__loopers_forget(evc_reactor *r);
void evc__loopers_each(const evc_reactor *r,
		       void (*fn)(const struct evc__looper_view *v, void *arg),
		       void *arg);

/* ---- looper_thread.c: loopers on a thread of their own; lock held but for the
   start ---- */

evc_status evc__own_looper_start(evc_coord *c, const char *name,
				 double interval, evc_fn *fn, void *arg,
				 const evc_member_opts *o, evc_id *ret_id);
/* NULL: the looper has ended, and is still to be joined. */
struct evc__body *evc__own_looper_body(struct evc__entry *e);
void evc__own_looper_changed(struct evc__entry *e);
evc_status evc__own_looper_wake(struct evc__entry *e);
void evc__own_looper_view(const struct evc__entry *e,
			  struct evc__looper_view *v);

#endif
