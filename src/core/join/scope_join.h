/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The join that the library keeps for itself; see scope_join.c.
 */
#ifndef EVC_CORE_SCOPE_JOIN_H
#define EVC_CORE_SCOPE_JOIN_H

#include "core/join/join.h"

struct evc__scope_join {
	/* set at creation, or by evc_scope_new before anybody knows c */
	void (*ended)(evc_coord *c, const evc_verdict *v, void *arg);
	void *arg;
	/* lock */
	struct evc__join j;
	bool active;         /* j is in progress */
	bool quiet;          /* j was given up: nobody is told */
	bool pending;        /* cleared is to be delivered */
	int calling;         /* the thread that is in ended, or 0 */
	uint32_t done;       /* stop number whose end was told, or will be */
	evc_verdict cleared; /* of the stop that is being cleared */
};

/* Lock held: have one, and somebody to drive it; false: no memory, no helper. */
bool evc__scope_join_need(evc_coord *c);
evc_status evc__scope_join_for(evc_coord *c,
			   void (*ended)(evc_coord *c, const evc_verdict *v,
					 void *arg),
			   void *arg);
/* Home loop's thread, no lock, in each turn.  false: c is gone. */
bool evc__scope_join_turn(evc_coord *c, const struct evc__frame *f);
/* Helper thread, no lock: the same without a home, and how long to sleep;
   *gone is set when c is freed meanwhile.  false: it was. */
bool evc__scope_join_serve(evc_coord *c, const bool *gone, uint64_t *ret_wait_ns);
/* Lock held: there is something to keep. */
void evc__scope_join_wake(evc_coord *c);
/* Lock held: a drain was taken back. */
void evc__scope_join_cancel(evc_coord *c);
/* Lock held: the stop of w is about to be cleared; it was, and had this
   number. */
void evc__scope_join_clearing(evc_coord *c, uint64_t w);
void evc__scope_join_cleared(evc_coord *c, uint32_t stop);
/* Lock held: is its end to be told, or being told, not by thread not_of?  Then
   joins above wait. */
bool evc__scope_join_due(const evc_coord *c, int not_of);
/* No lock: ended has returned, and c is there still. */
void evc__scope_join_called(evc_coord *c);
/* Lock held: does its end have to be told? */
bool evc__scope_join_tells(const evc_coord *c);
/* Lock held: why c may not be freed here. */
const char *evc__scope_join_why_not(const evc_coord *c);
/* c is being freed: it keeps nothing from now on; its memory goes with c's,
   because the loop may just be looking at it. */
void evc__scope_join_drop(evc_coord *c);

#endif
