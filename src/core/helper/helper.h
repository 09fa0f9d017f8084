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
struct evc__tree;

/* This part of a coordinator; the lock guards all of it. */
struct evc__coord_helper {
	struct evc__client *client; /* NULL: the helper does not serve the
				       coordinator */
	struct list jobs;         /* jobs of c; see job.h */
	uint32_t job_pass;        /* passes over the jobs so far */
	/* atomic: the helper -> evc_free: threads of the helper that serve c */
	_Atomic uint32_t n_inside;
};

/* Lock held: make the tree's helper thread unless there is one, and let the
   thread serve c; with fds also make the descriptors.  false: no helper to be
   had. */
bool evc__helper_need(evc_coord *c, bool fds);
/* Lock held: the helper watches m's pidfd. */
bool evc__helper_watch(evc_coord *c, struct evc__member *m);
void evc__helper_unwatch(evc_coord *c, struct evc__member *m);
/* Any thread: make the helper serve c, if c is a client. */
void evc__helper_ring(evc_coord *c);
/* The helper does not serve c any more; the helper of a root ends. */
void evc__helper_end(evc_coord *c);
/* Is the calling thread a thread of the helper? */
bool evc__helper_is_self(const evc_coord *c);
/* The calling thread, if it is the helper's, begins or ends a call of a function
   that describes something. */
void evc__helper_describes(const evc_coord *c, bool begin);
/* The helper, when the calling thread belongs to it, may take so long before
   another thread relieves this one. */
void evc__helper_takes(const evc_coord *c, uint64_t ns);
/* Is this time not over yet? */
bool evc__helper_may_take(const evc_coord *c);
/* Lock held: does a thread of the helper serve c, not counting the calling
   thread? */
bool evc__helper_inside(const evc_coord *c);
/* Any thread but the helper, in a stop: make another thread if the helper hangs
   in a function of the user's.  c's lock may be held. */
void evc__helper_relieve(evc_coord *c);
/* The same, for the watch thread and for the leader, also without a stop; joins
   threads that were relieved and have ended.  Returns how long until another
   look; SYNC_FOREVER: the helper does not hang, and all such threads are
   joined. */
uint64_t evc__helper_watch_over(struct evc__tree *tree);
/* Lock held.  yes: from now on each ring of c wakes the helper; no: only a stop
   does. */
void evc__helper_hear(evc_coord *c, bool yes);
/* Helper thread: c is an abandoned root, and the last member is gone; the
   helper ends with c. */
void evc__helper_farewell(evc_coord *c);
/* Is the calling thread the helper, in a call of `ended` of c, which may free
   c?  If so, the helper will not touch c again. */
bool evc__helper_let_go(evc_coord *c);

#endif
