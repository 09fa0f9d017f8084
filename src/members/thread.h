/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Started threads, for what is made of them.
 */
#ifndef EVC_MEMBERS_THREAD_H
#define EVC_MEMBERS_THREAD_H

#include "core/core.h"

/* evc_thread_start as a part of func, which is named where it is refused, and
   without a report of that; user: what opts.unblock gets. */
evc_status evc__thread_start(evc_coord *c, const char *name, evc_fn *fn,
			     void *arg, void *user, const evc_member_opts *o,
			     evc_id *ret_id, const char *func);

#endif
