/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways between a scope, a coordinator that is a member of another, and its
 * parent.
 * Locks: the parent's, then the scope's; requests, rings and counts, which go
 * up, take none.
 */
#ifndef EVC_CORE_SCOPES_H
#define EVC_CORE_SCOPES_H

#include "core/core.h"

#define EVC__DEPTH_MOST 32
#define SCOPE_OF(n) LIST_OF(n, evc_coord, sibling)

/* Signal-safe, in a walk of the parent's stop: hand the stop down, unless the
   scope's phase has to wait.  true: go on with the scope's own listeners. */
bool evc__scope_ask(evc_coord *s, uint32_t stop);
/* Hand the stop down and tell all listeners of the scope. */
void evc__scope_tell(evc_coord *s);
/* An error of c goes up as the policies of c say; signal-safe. */
void evc__scope_error(evc_coord *c, const struct evc__request *q);
/* Lock of c held: ask the scopes that were told anew, after a clear of a scope,
   or a clear that failed halfway. */
void evc__scopes_follow(evc_coord *c);
/* The parent is stopped and has told s: ask s again. */
void evc__scope_follow(evc_coord *s);
/* Is a join in progress on c or above it? */
bool evc__driven(const evc_coord *c);

#endif
