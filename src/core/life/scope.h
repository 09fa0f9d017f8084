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
/* evc_scope_new as a part of a call that has checked the parent; a refusal is
   not reported. */
evc_status evc__scope_make(evc_coord *parent, const char *name,
			   const evc_scope_opts *o, evc_coord **ret_scope);
/* No lock: take s out of its parent. */
void evc__scope_leave(evc_coord *s);

/* ---- own_scope.c; no lock ---- */

/* Make the scope of a thread that is about to start. */
evc_status evc__own_scope_new(evc_coord *parent, const char *name,
			      const char *func, evc_coord **ret_scope);
/* The thread of s ends, or has not started; s has left its member, or is
   NULL. */
void evc__own_scope_end(evc_coord *s);
/* Free these scopes, linked by next_left, which are in no list; scopes in use
   go back into the list of their parent. */
void evc__own_scopes_free(evc_coord *s);

/* ---- abandon.c ---- */

/* Helper thread: free the scopes below c, then c. */
void evc__abandoned_end(evc_coord *c);

#endif
