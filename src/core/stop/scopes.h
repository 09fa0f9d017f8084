/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scopes, coordinators that are members of another: what goes down to them and
 * up from them.
 *
 * Locks: the parent's, then the scope's; what goes up - requests, rings, counts
 * - takes none.
 */
#ifndef EVC_CORE_SCOPES_H
#define EVC_CORE_SCOPES_H

#include "core/core.h"

#define EVC__DEPTH_MOST 32
#define SCOPE_OF(n) LIST_OF(n, evc_coord, sibling)

/* Signal-safe, in a walk of the parent's stop: hand it down, unless its phase
   has to wait.  true: go on with the scope's own listeners. */
bool evc__scope_ask(evc_coord *s, uint32_t stop);
/* Hand it down and tell everybody in it. */
void evc__scope_tell(evc_coord *s);
/* An error of c goes up as its policies say; signal-safe. */
void evc__scope_error(evc_coord *c, const struct evc__request *q);
/* Lock of c held: after a clear that failed halfway, or of a scope: ask anew
   those who were told. */
void evc__scopes_follow(evc_coord *c);
/* The parent is stopped and has told s: ask it again. */
void evc__scope_follow(evc_coord *s);
/* Is a join in progress on c or above it? */
bool evc__driven(const evc_coord *c);

#endif
