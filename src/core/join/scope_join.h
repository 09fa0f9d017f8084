/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scope join: the join of a scope that the library itself keeps in
 * progress; see scope_join_run.c.  In these files sj is a scope join.
 */
#ifndef EVC_CORE_SCOPE_JOIN_H
#define EVC_CORE_SCOPE_JOIN_H

#include "core/join/join.h"

struct evc__scope_join {
	/* set at creation, or by evc_scope_new before other threads know c */
	void (*ended)(evc_coord *c, const evc_verdict *v, void *arg);
	void *arg;
	/* lock */
	struct evc__join j;
	bool active;         /* j is in progress */
	bool quiet;          /* j was given up: its answer calls no `ended` */
	bool pending;        /* the verdict `cleared` is to be delivered */
	int calling;         /* id of the thread inside ended(), or 0 */
	uint32_t told;       /* number of the last stop that `ended` was called
				for, or will be called for */
	evc_verdict cleared; /* verdict of a stop that is being cleared, or was
				cleared */
};

/* Lock held: the reactor that drives the scope join, or will drive the next:
   the home.  NULL: the helper does.  A coordinator may get a home, or lose it,
   while a scope join is in progress. */
evc_reactor *evc__scope_join_reactor(const evc_coord *c);
/* Lock held: make the scope join, and the helper thread if c has no home.
   false: no memory, no helper. */
bool evc__scope_join_need(evc_coord *c);
/* No lock: make the scope join, for calls of `ended`. */
evc_status evc__scope_join_for(evc_coord *c,
			   void (*ended)(evc_coord *c, const evc_verdict *v,
					 void *arg),
			   void *arg);
/* Home loop's thread, no lock, in each turn: begin a scope join if c needs one.
   false: c is gone. */
bool evc__scope_join_turn(evc_coord *c, const struct evc__frame *f);
/* Helper thread, no lock: drive the scope join that c has begun without a
   home, and begin one while c has none.
   *ret_wait_ns: how long to sleep; *gone is set when c is freed meanwhile.
   false: c was freed. */
bool evc__scope_join_serve(evc_coord *c, const bool *gone,
			   uint64_t *ret_wait_ns);
/* Lock held: make the driving thread look at the scope join. */
void evc__scope_join_wake(evc_coord *c);
/* Lock held: a drain was taken back. */
void evc__scope_join_cancel(evc_coord *c);
/* Lock held: the stop of w is about to be cleared: keep its verdict. */
void evc__scope_join_clearing(evc_coord *c, uint64_t w);
/* Lock held: the stop with this number was cleared: deliver its verdict. */
void evc__scope_join_cleared(evc_coord *c, uint32_t stop);
/* Lock held: must `ended` still be called for a stop, or is a thread other than
   not_of inside `ended`?  Then joins above wait. */
bool evc__scope_join_due(const evc_coord *c, int not_of);
/* No lock: `ended` has returned, and c still exists. */
void evc__scope_join_called(evc_coord *c);
/* Lock held: is there an `ended` to tell? */
bool evc__scope_join_tells(const evc_coord *c);
/* Lock held: the reason against freeing c here, or NULL. */
const char *evc__scope_join_why_not(const evc_coord *c);
/* c is being freed: the scope join does nothing from now on.  Its memory is
   freed with c, because the loop may be inside a look at j. */
void evc__scope_join_drop(evc_coord *c);

#endif
