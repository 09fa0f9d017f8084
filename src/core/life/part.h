/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts: objects that evc_finish frees together with their coordinator.
 */
#ifndef EVC_CORE_PART_H
#define EVC_CORE_PART_H

#include <evcoord.h>

/* How long a free waits for a log hook. */
#define FREE_FLUSH_NS UINT64_C(1000000000)

/* What will have gone before a coordinator is freed. */
struct evc__gone {
	bool parts;       /* the scopes of its parts */
	bool members;     /* all that is alive */
	unsigned n_conds; /* so many of its conditions */
};

/* ---- coord.c ---- */

/* Lock held: the reason against freeing c once that has gone, in buf perhaps;
   NULL: none. */
const char *evc__free_why_not(evc_coord *c, const struct evc__gone *gone,
			      char *buf, size_t room);

/* ---- finish.c ---- */

/* Lock of its coordinator held: p is a part no more.  NULL is fine. */
void evc__part_drop(evc_part *p);

#endif
