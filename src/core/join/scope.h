/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scopes from the inside: coordinators that are members of another.
 *
 * Locks: the parent's, then the scope's; what goes up - requests, rings, counts
 * - takes none.
 */
#ifndef EVC_CORE_SCOPE_H
#define EVC_CORE_SCOPE_H

#include "core/core.h"

#define EVC__DEPTH_MOST 32
#define SCOPE_OF(n) LIST_OF(n, evc_coord, sibling)

/* ---- scope.c ---- */

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
/* No lock: the scopes below c, each kept by its gate until it is given back;
   NULL: there are none, or no memory (then *ret_n is not 0). */
evc_coord **evc__scopes_keep(evc_coord *c, unsigned *ret_n);
void evc__scopes_give_back(evc_coord **s, unsigned n);
/* No lock: take it out of its parent. */
void evc__scope_leave(evc_coord *s);

/* ---- phases.c ---- */

/* Lock held: tell the phases whose turn it is.  Returns when to look again, in
   nanoseconds of c's clock; SYNC_FOREVER: when something rings. */
uint64_t evc__phases_drive(evc_coord *c);
/* Lock held: the time of the last join is nearly over: tell what was not told.
   false: there was nothing. */
bool evc__phases_hurry(evc_coord *c);
/* Lock held: the last join leaves: likewise. */
void evc__phases_tell_all(evc_coord *c);

/* ---- attend.c: what joins and loops do for what lives below ---- */

/* Lock held, given up meanwhile: reap, and drive phases, in the scopes that
   have rung, and do what is due for runners.  true: the lock was given up. */
bool evc__attend(evc_coord *c, uint64_t reap_ns);
/* Lock held, given up meanwhile: look at all that cannot ring, here and below.
   true: the lock was given up. */
bool evc__probe_all(evc_coord *c);
/* Lock held, given up meanwhile: threads that have ended are members no more,
   here and below, though nobody joins.  Runners wait for who does. */
void evc__bury_threads(evc_coord *c, uint64_t reap_ns);
/* Lock held, given up meanwhile: the grace is over: use force where there is
   some.  true: somebody may end within a moment. */
bool evc__force_all(evc_coord *c);
/* Loop thread, no lock: the runners of its loop. */
void evc__runners_turn(evc_coord *c, evc_reactor *r);

/* ---- budget.c ---- */

/* No lock: when what is above c ends its patience with c; SYNC_FOREVER: never,
   or it was not stopped. */
uint64_t evc__budget_end(evc_coord *c);

/* ---- drain.c; lock held ---- */

/* Ask for the stop that the drain becomes. */
void evc__drain_ask(evc_coord *c);
/* It is over, or taken back. */
void evc__drain_forget(evc_coord *c);

#endif
