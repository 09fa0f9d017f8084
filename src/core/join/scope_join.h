/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scope's own join, which the library keeps in progress; see scope_join.c.
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
	bool quiet;          /* j was given up: no `ended` for its answer */
	bool pending;        /* the verdict `cleared` is to be delivered */
	int calling;         /* id of the thread inside ended(), or 0 */
	uint32_t done;       /* number of the stop with its end told, or to be
				told */
	evc_verdict cleared; /* verdict of the stop that is being cleared */
};

/* Lock held: make the scope join, and the thread that drives the join; false:
   no memory, no helper. */
bool evc__scope_join_need(evc_coord *c);
evc_status evc__scope_join_for(evc_coord *c,
			   void (*ended)(evc_coord *c, const evc_verdict *v,
					 void *arg),
			   void *arg);
/* Home loop's thread, no lock, in each turn.  false: c is gone. */
bool evc__scope_join_turn(evc_coord *c, const struct evc__frame *f);
/* Helper thread, no lock: evc__scope_join_turn without a home; *ret_wait_ns:
   how long to sleep; *gone is set when c is freed meanwhile.  false: c was
   freed. */
bool evc__scope_join_serve(evc_coord *c, const bool *gone,
			   uint64_t *ret_wait_ns);
/* Lock held: the scope join has work. */
void evc__scope_join_wake(evc_coord *c);
/* Lock held: a drain was taken back. */
void evc__scope_join_cancel(evc_coord *c);
/* Lock held: the stop of w is about to be cleared; cleared: the stop with this
   number was cleared. */
void evc__scope_join_clearing(evc_coord *c, uint64_t w);
void evc__scope_join_cleared(evc_coord *c, uint32_t stop);
/* Lock held: is the stop's end to be told to `ended`, or being told by a thread
   other than not_of?  Then joins above wait. */
bool evc__scope_join_due(const evc_coord *c, int not_of);
/* No lock: ended has returned, and c was not freed. */
void evc__scope_join_called(evc_coord *c);
/* Lock held: is there an `ended` to tell? */
bool evc__scope_join_tells(const evc_coord *c);
/* Lock held: the reason against freeing c here, or NULL. */
const char *evc__scope_join_why_not(const evc_coord *c);
/* c is being freed: the scope join does nothing from now on; its memory goes
   with c's, because the loop may be looking at the record. */
void evc__scope_join_drop(evc_coord *c);

#endif
