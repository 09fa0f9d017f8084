/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scopes: their begin and end, and the way to walk them without a lock.
 */
#ifndef EVC_CORE_SCOPE_H
#define EVC_CORE_SCOPE_H

#include "core/core.h"

/* No lock: the scopes directly below c; this thread is inside the refgate of
   each scope until evc__scopes_give_back.  NULL: none, or no memory (then
   *ret_n is not 0). */
evc_coord **evc__scopes_keep(evc_coord *c, unsigned *ret_n);
void evc__scopes_give_back(evc_coord **s, unsigned n);
/* No lock: take s out of its parent. */
void evc__scope_leave(evc_coord *s);

/* ---- abandon.c ---- */

/* Helper thread: free the scopes below c, then c. */
void evc__abandoned_end(evc_coord *c);

#endif
