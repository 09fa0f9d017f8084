/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes: what any thread asks of an engine, under the cluster's lock, until the
 * engine's loop reads it.  One mail is on its way at a time.  The ops are those of
 * an engine that begins with its struct notes.
 */
#ifndef EVC_CLUSTER_NOTES_H
#define EVC_CLUSTER_NOTES_H

#include <evcoord/unstable/engine.h>
#include <evcoord/post.h>

#include "base/sync.h"

#define WORKERS_MOST 1024

/* What ops have asked for. */
struct asked {
	bool leave;
	uint64_t cancel_upto;
	uint64_t *ones;         /* pairs: worker, n */
	size_t n_ones, ones_room;
	uint64_t *forgets;
	size_t n_forgets, forgets_room;
	uint64_t kills[WORKERS_MOST / 64];
};

/* Between any thread and the loop.  Zeroed before evc__notes_init. */
struct notes {
	pthread_mutex_t lock;
	evc_loop *loop;         /* the mail goes there */
	bool posted;            /* lock: the mail is on its way */
	bool shut;              /* lock: no mail any more, this is the end */
	struct asked asked;     /* lock */
	/* atomic: who wakes -> the mail, which takes it back before it looks
	   for what there is to take */
	_Atomic uint32_t wake;
	/* atomic: loop -> who forgets: results that are kept anywhere; raised
	   before the result is told, so that whoever may forget it sees it */
	_Atomic uint32_t n_kept;
	evc_mail mail;          /* LIST_OF(m, struct ..., notes.mail) */
};

/* fn: of the mail, on the loop; it calls evc__notes_asked. */
void evc__notes_init(struct notes *n, evc_loop *loop,
		     void (*fn)(evc_mail *m, evc_status why));
void evc__notes_destroy(struct notes *n);

/* ---- any thread ---- */

void evc__notes_wake(evc_engine *engine, int worker);
void evc__notes_cancel(evc_engine *engine, uint64_t upto);
void evc__notes_cancel_one(evc_engine *engine, unsigned worker, uint64_t n);
void evc__notes_kill(evc_engine *engine, unsigned worker);
void evc__notes_forget(evc_engine *engine, uint64_t id);
void evc__notes_leave(evc_engine *engine);
/* Have the mail come.  0, or refused as evc_post_mail. */
evc_status evc__notes_ring(struct notes *n);

/* ---- the loop ---- */

/* All that was asked for, and is not any more (but leave and cancel_upto); its
   memory is the caller's: evc__asked_free. */
struct asked evc__notes_asked(struct notes *n);
void evc__asked_free(struct asked *a);
/* Taken back before it is looked for what there is: whoever wakes from now on
   posts anew. */
static inline void
notes_look(struct notes *n)
{
	sync_xchg(&n->wake, 0);
}
/* No mail will come from now on.  false: one is on its way. */
bool evc__notes_shut(struct notes *n);

#endif
