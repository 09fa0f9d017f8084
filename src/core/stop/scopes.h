/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scope is a coordinator that is a member of another, its parent: the way of
 * stops, drains and errors between the two.
 * Locks: the parent's, then the scope's; requests, rings and counts, which go
 * up, take none.
 */
#ifndef EVC_CORE_SCOPES_H
#define EVC_CORE_SCOPES_H

#include "core/core.h"

#define EVC__DEPTH_MOST 32
#define SCOPE_OF(n) LIST_OF(n, evc_coord, sibling)

/* Signal-safe, in the walk of the parent's stop: hand the stop down, unless the
   phase of the scope has to wait.  true: the walk goes on with the listeners of
   the scope. */
bool evc__scope_ask(evc_coord *s, uint32_t stop);
/* Hand the stop down and tell all listeners of the scope. */
void evc__scope_tell(evc_coord *s);
/* Signal-safe: make an error of c an error of the coordinators above, as
   on_error of each scope says. */
void evc__scope_error(evc_coord *c, const struct evc__request *q);
/* Lock of c held: ask again each scope that was told of the present stop.  For
   the end of a clear of a scope, or of a clear that failed halfway. */
void evc__scopes_follow(evc_coord *c);
/* The parent is stopped and has told s: ask s again. */
void evc__scope_follow(evc_coord *s);
/* Is a join in progress on c or above it? */
bool evc__driven(const evc_coord *c);
/* Take the lock of c.  false: on a thread that never hangs, another thread has
   kept the lock for a while. */
bool evc__lock_tree(evc_coord *c);
/* The calling thread never hangs on a lock of evc__lock_tree from now on. */
void evc__lock_never_hangs(void);

#endif
