/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Started threads, as a part of other members.
 */
#ifndef EVC_MEMBERS_THREAD_H
#define EVC_MEMBERS_THREAD_H

#include "core/core.h"

/* evc_thread_start as a part of the call `func`: a refusal names func and is
   not reported.  user: the argument of opts.unblock. */
evc_status evc__thread_start(evc_coord *c, const char *name, evc_fn *fn,
			     void *arg, void *user, const evc_member_opts *o,
			     evc_id *ret_id, const char *func);

#endif
