/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reactors from the inside: what an attached loop knows.
 */
#ifndef EVC_CORE_REACTOR_H
#define EVC_CORE_REACTOR_H

#include <ev.h>
#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"
#include "core/listener.h"

#define TASK_CLASSES 15
struct evc__task_count {
	/* atomic: the loop's thread -> reports */
	_Atomic(const evc_task_class *) cls; /* NULL in the last: all others */
	_Atomic uint32_t n;
};

/* A stretch of callbacks on a loop's thread; says whether evc_free or detach
   took the reactor away meanwhile. */
struct evc__frame {
	struct evc__frame *up;
	bool gone;
};

/* What a reactor asks of its tasks; loop thread.  See members/task.c. */
struct evc__task_ops {
	/* The stop is there: tell some of them.  false: the reactor is gone. */
	bool (*tell)(evc_reactor *r, const struct evc__frame *f);
	/* The loop is gone: they have ended. */
	void (*drop)(evc_reactor *r);
};

struct evc_reactor {
	struct evc__listener listener; /* first: tell() gets it */
	/* set at creation */
	evc_coord *c;
	int tid;                    /* the loop's thread */
	char name[48];
	struct list node;           /* lock: c->reactors */
	ev_async async;             /* loop thread; sent to by any */

	/* written by the loop's thread; others read under the lock */
	struct ev_loop *loop;       /* NULL: it was destroyed */
	bool leaving;               /* it is being destroyed */

	/* loop thread only */
	evc_task tasks, late;       /* heads of circular lists */
	evc_task *cursor;           /* the next task to tell, or &tasks */
	uint32_t told;              /* stop number whose telling began */
	unsigned n_live;            /* tasks in both lists */
	const evc_task_class *last_class;
	struct evc__task_count *last_count;
	struct evc__frame *frames;
	struct evc__driver *driver; /* an ev_run of ours; see run.c */
	ev_cleanup cleanup;
	ev_prepare prepare;         /* ends that ev_run from its depth 1 */
	const struct evc__task_ops *task_ops; /* set by the first task */
	struct list joins;          /* evented joins here; also under lock */

	/* atomic, relaxed: the loop's thread -> reports */
	_Atomic uint32_t n_tasks;
	struct evc__task_count count[TASK_CLASSES + 1];
};

evc_status evc__reactor_attach(evc_coord *c, const char *name,
			       struct ev_loop *loop, evc_reactor **ret);
/* Loop thread: take it off its loop and free it. */
void evc__reactor_release(evc_reactor *r);
/* Loop thread, or lock held: turn the loop once more and look. */
void evc__reactor_poke(evc_reactor *r);
/* Loop thread: for a join or a run, hear every ring and keep the loop running,
   and begin with a look; or do so no more. */
void evc__reactor_hear(evc_reactor *r, bool yes);
/* Loop thread: hooks, tasks, joins - whatever the state asks for. */
void evc__reactor_turn(evc_reactor *r);
/* Lock held: a reactor whose loop the calling thread runs, or NULL. */
evc_reactor *evc__reactor_here(const evc_coord *c, evc_reactor *preferred);
evc_status evc__reactor_usable(const evc_reactor *r, const char *func);

#endif
