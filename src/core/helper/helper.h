/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread, one for a tree of coordinators.
 */
#ifndef EVC_CORE_HELPER_H
#define EVC_CORE_HELPER_H

#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"

struct evc__client;
struct evc__member;

/* The part of a coordinator; the lock guards all of it. */
struct evc__coord_helper {
	struct evc__client *client; /* NULL: the helper does not serve it */
	struct list jobs;         /* see job.h */
	uint32_t job_pass;
};

/* Lock held: make the tree's helper thread unless it is there, and let it serve
   c; with fds also its descriptors.  false: it cannot be had. */
bool evc__helper_need(evc_coord *c, bool fds);
/* Lock held: let it watch m's pidfd. */
bool evc__helper_watch(evc_coord *c, struct evc__member *m);
void evc__helper_unwatch(evc_coord *c, struct evc__member *m);
/* Any thread: let it look at c, if it serves c. */
void evc__helper_ring(evc_coord *c);
/* It serves c no more; of a root, it ends. */
void evc__helper_end(evc_coord *c);
bool evc__helper_is_self(const evc_coord *c);
/* Any thread but it, in a stop: if it hangs in a function of the user's, have
   another one.  c's lock may be held. */
void evc__helper_relieve(evc_coord *c);
/* Lock held: it hears every ring of c; or does so no more. */
void evc__helper_hear(evc_coord *c, bool yes);
/* Helper thread: c is a root that was abandoned by all; it ends with it. */
void evc__helper_farewell(evc_coord *c);
/* The helper thread is in a call for c, from which c may be freed: it will not
   touch c again. */
bool evc__helper_let_go(evc_coord *c);

#endif
