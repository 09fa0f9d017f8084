/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tasks from the inside; all on the loop's thread.
 */
#ifndef EVC_MEMBERS_TASK_H
#define EVC_MEMBERS_TASK_H

#include "core/loop/reactor.h"

/* ---- task_tell.c ---- */

/* See struct evc__task_ops. */
bool evc__tasks_tell(evc_reactor *r, const struct evc__frame *f);
bool evc__tasks_describe(evc_reactor *r, const struct evc__frame *f);
/* The memory of a task in flight was freed or used for something else: joins
   report this.  The lists are not walked any more. */
void evc__tasks_broken(evc_reactor *r);

/* Tasks that a turn calls; then other watchers have their turn. */
#define TASK_SLICE 4096

static inline void
evc__task_append(evc_task *head, evc_task *t)
{
	t->next_ = head;
	t->prev_ = head->prev_;
	head->prev_->next_ = t;
	head->prev_ = t;
}

/* ---- task_late.c ---- */

/* A stop: tell tasks whose class's grace is over.  false: r is gone. */
bool evc__tasks_late(evc_reactor *r, const struct evc__frame *f);
/* t has begun after the stop: its loop turns again when t is to be told. */
void evc__task_after_stop(evc_reactor *r, evc_task *t);
/* A class with on_late comes to this loop. */
void evc__tasks_want_late(evc_reactor *r);
/* No task is left, or the loop is going. */
void evc__tasks_disarm(evc_reactor *r, struct ev_loop *loop);

#endif
