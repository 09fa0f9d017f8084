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

#endif
