/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes: requests of any thread to an engine, made under the cluster's lock,
 * until the engine's loop reads them.  At most one message is on its way.  The
 * operations below serve each engine that begins with a struct notes.
 */
#ifndef EVC_CLUSTER_NOTES_H
#define EVC_CLUSTER_NOTES_H

#include <evcoord/unstable/engine.h>
#include <evcoord/post.h>

#include "base/sync.h"

#define WORKERS_MOST 1024 /* of one node, of threads and of processes */

/* Numbers of workers, in the order in which they were noted.  Few of many
   workers are noted at one time. */
struct noted_workers {
	uint32_t *at;
	size_t n, room;
};

/* Requests that the loop has not read.  A worker may be noted twice. */
struct asked {
	bool leave;
	unsigned n_wanted;      /* workers to be there; 0: no request */
	unsigned n_most;        /* the greatest number asked for */
	uint64_t cancel_upto;
	uint64_t *ones;         /* pairs: worker, attempt */
	size_t n_ones, ones_room;
	uint64_t *forgets;
	size_t n_forgets, forgets_room;
	struct noted_workers kills, stacks;
	struct noted_workers wakes; /* see notes.by_worker */
	bool wake_all;          /* a wake was lost for lack of memory */
};

/* Between any thread and the loop.  Zeroed before evc__notes_init. */
struct notes {
	pthread_mutex_t lock;
	evc_loop_ref *loop;         /* creation: goal of the message */
	bool posted;            /* lock: the message is on its way */
	bool shut;              /* lock: the engine ends, and no message is sent */
	struct asked asked;     /* lock */
	bool by_worker;         /* creation: the engine wants to know which
				   worker a wake is for; else it looks at
				   all */
	/* atomic: a wake -> the message, which clears it before its look */
	_Atomic uint32_t wake;
	/* atomic: loop -> forget: results that workers keep; raised before the
	   result is told, so that a later forget sees it */
	_Atomic uint32_t n_kept;
	evc_message message;          /* loop; LIST_OF(m, struct ..., notes.message) */
};

/* fn: the message's function, on the loop; it calls evc__notes_asked. */
void evc__notes_init(struct notes *n, evc_loop_ref *loop,
		     void (*fn)(evc_message *m, evc_status why));
void evc__notes_destroy(struct notes *n);

/* ---- any thread ---- */

void evc__notes_wake(evc_engine *engine, int worker);
void evc__notes_cancel(evc_engine *engine, uint64_t upto);
void evc__notes_cancel_one(evc_engine *engine, unsigned worker, uint64_t n);
void evc__notes_kill(evc_engine *engine, unsigned worker);
int evc__notes_stack(evc_engine *engine, unsigned worker);
void evc__notes_forget(evc_engine *engine, uint64_t id);
void evc__notes_leave(evc_engine *engine);
void evc__notes_resize(evc_engine *engine, unsigned n);
/* Send the message. 0, or refused as evc_post_message. */
evc_status evc__notes_ring(struct notes *n);

/* ---- the loop ---- */

/* Take all requests; leave and cancel_upto stay set.  The memory goes to the
   caller, for evc__asked_free. */
struct asked evc__notes_asked(struct notes *n);
void evc__asked_free(struct asked *a);
/* Called before a look at the queue: a later wake sends a new message. */
static inline void
notes_look(struct notes *n)
{
	sync_xchg(&n->wake, 0);
}
/* No message comes from now on. false: a message is on its way. */
bool evc__notes_shut(struct notes *n);

#endif
