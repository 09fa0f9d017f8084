/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups on a loop: the runs of their workers are slices of its idle time.
 *
 * A worker of such a group is a hold of the group's scope, named GROUP/ID, which
 * is to joins and reports what a thread is to the others; and a turn in the list
 * here.  The list has a lock of its own, and any thread may take a turn out of
 * it whose worker is in no run: so a stop needs no loop, and waits for none but
 * the worker that runs.
 *
 * On the loop's side stand an idle watcher of the lowest priority, while there
 * is something to run; a timer, while all that is to come are restarts; a task,
 * which keeps joins and evc_reactor_run there, and a watcher of the loop's
 * destruction.  They are touched on the loop's thread alone and gone when there
 * are no turns.  Other threads send a mail; the loop's own does not, because a
 * mail lives until the loop turns, and it may never turn again.
 *
 * The group is there as long as a worker of its lives, so it is touched for a
 * turn's sake alone, and what stands here has a count of who needs it.
 */
#ifndef EVC_WORKERS_EVENTED_H
#define EVC_WORKERS_EVENTED_H

#include <ev.h>

#include "group/group.h"

/* Of a worker that lives. */
struct evc__turn {
	struct list node;
	struct evc__worker *w;
	evc_id member; /* its hold */
	uint64_t due;  /* monotonic ns: not before; 0: at once */
};

struct evc__evented {
	/* set at creation */
	evc_loop *loop;
	evc_reactor *reactor; /* for the loop's thread, while it is there */
	uint64_t slice;       /* ns */
	unsigned fork_generation;

	/* atomic: the group, the mail, the watchers, a slice: the last frees */
	_Atomic unsigned refs;

	pthread_mutex_t lock; /* after the group's */
	/* lock */
	struct list turns;    /* those that are in no run */
	int tid;              /* the loop's thread; 0: not known yet */
	bool watching;        /* the watchers are there */
	bool looks;           /* in a slice, or about to: it will look by
				 itself */
	bool rung;            /* the mail is on its way */

	evc_mail mail;
	/* the loop's thread */
	bool in_slice;
	struct ev_loop *ev;
	struct ev_idle idle;
	struct ev_timer timer;
	struct ev_cleanup cleanup;
	struct ev_fork forked;
	evc_task task;
};

/* ---- evented.c ---- */

/* One who needs it less. */
void evc__evented_unref(struct evc__evented *e);
/* Take out the first turn that fits; NULL: there is none.  The group stays until
   it is ended. */
typedef bool evc__turn_fn(const struct evc__turn *t, uint64_t arg);
struct evc__turn *evc__turn_take(struct evc__evented *e, evc__turn_fn *fits,
				 uint64_t arg);
/* Back into the list, behind all others. */
void evc__turn_give_back(struct evc__evented *e, struct evc__turn *t);
/* The worker of a turn that was taken out has ended, as evc__worker_ended is
   told; when that says no, it goes back. */
void evc__turn_end(struct evc__evented *e, struct evc__turn *t, bool clean);
/* Is it to end: at a stop, or because it is retired? */
bool evc__turn_is_over(const struct evc__turn *t, uint64_t unused);
/* End all of these. */
void evc__turns_end(struct evc__evented *e);

/* ---- evented_loop.c; on the loop's thread ---- */

extern const evc_task_class evc__evented_class;
/* Is the calling thread the loop's, with the reactor there? */
bool evc__evented_is_here(struct evc__evented *e);
/* The turns have changed: begin, go on or end to watch.  Also under the group's
   lock.  false: the loop is gone. */
bool evc__evented_attend(struct evc__evented *e);
/* End those that are to end, and attend to the others. */
void evc__evented_settle(struct evc__evented *e);
/* The mail's. */
void evc__evented_on_mail(evc_mail *m, evc_status why);

#endif
