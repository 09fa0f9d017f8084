/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of evc_call_detached that were left behind, for the line at a stop's
 * end.  The tree knows the calls; a call knows neither a tree nor a
 * coordinator, and may end after both.
 */
#ifndef EVC_CORE_LEFT_H
#define EVC_CORE_LEFT_H

#include "base/list.h"
#include "base/sync.h"
#include "base/text.h"

struct evc_coord;
struct evc__tree;

struct evc__left {
	struct list node; /* tree's lock: in the tree's list */
	uint32_t number;  /* tree's lock: of the coordinator of the call */
	/* atomic: the call's thread and its caller, then the tree -> the last
	   of the two, which frees the memory that begins with this struct */
	_Atomic uint32_t refs;
	char name[48];    /* set at creation */
};

/* One of the two holders does not need k any more. */
void evc__left_drop(struct evc__left *k);
/* Inside the refgate of c: the tree holds k instead of the caller. */
void evc__left_add(struct evc_coord *c, struct evc__left *k);
/* Any lock of a coordinator may be held: add the names of the calls of c that
   have not ended; of a root, of all calls in its tree.  false: there are
   none. */
bool evc__left_names(struct evc_coord *c, struct text *t);
/* The tree goes. */
void evc__left_forget(struct evc__tree *tree);

#endif
