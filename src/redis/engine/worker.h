/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers of nodes, as the coordinator sees them.
 */
#ifndef EVC_REDIS_ENGINE_WORKER_H
#define EVC_REDIS_ENGINE_WORKER_H

#include "wire/frames.h"
#include "engine/flow.h"
#include "redis/engine/detect.h"

/* The greatest window with a server nearby, and with one far away. */
#define NEAR_MOST WINDOW_MOST
#define FAR_MOST  (4 * WINDOW_MOST)

/* A function that a worker was given and has not ended.  Loop thread only. */
struct sent_call {
	uint64_t n, id; /* number of the function, id of its result */
	size_t size;    /* bytes of its frame */
	bool asked;     /* a cancel of this function alone was sent */
	bool changes;   /* the function may change variables as a whole */
};

/* A worker of a node, from the node's registration on.  The first three fields
   are set at creation, all others are for the loop thread only. */
struct remote_worker {
	struct node_session *session;
	unsigned at;    /* index among the workers of the node */
	unsigned index; /* index among the workers of the cluster */
	bool up;        /* functions may be sent to the worker */
	bool fenced;    /* the cluster knows that the worker is fenced */
	bool stack_asked; /* the answer with its stack is to come */
	int64_t start;  /* number of the worker's last start; -1: none yet */
	struct watched process;
	struct sent_call *calls; /* a ring of `room` places; `few`, or memory of
				    its own */
	unsigned room;
	unsigned first, n; /* place of the oldest call, and number of calls */
	struct sent_call few[2]; /* enough for a worker whose functions are not
				    quick: there may be many workers */
	/* ---- groups.c ---- */
	struct list spare; /* in feed_group.idle or .some; empty: in none */
	struct list look; /* in feeding.looks; empty: not there */
	uint64_t tried;   /* feeding.serial when the worker was last given
			     nothing */
	struct flow flow;
	unsigned n_building; /* definitions without an answer */
	bool in_build;     /* the worker has given calls back behind a build:
			      no call is sent before the build's end */
	uint64_t rest_ns;  /* no call is sent before that time; 0: no rest */
};

/* ---- worker.c ---- */

/* The i-th call of a worker, the oldest first. */
static inline struct sent_call *
worker_call(struct remote_worker *w, unsigned i)
{
	return &w->calls[(w->first + i) % w->room];
}
/* Make room for as many of `most` more calls as there is memory for, and return
   how many. */
unsigned evc__remote_worker_room(struct remote_worker *w, unsigned most);
/* NULL: the worker does not have function n. */
struct sent_call *evc__remote_worker_find(struct remote_worker *w, uint64_t n,
					  unsigned *ret_i);
/* Call i has ended, after `took` seconds (< 0: the call came back). */
void evc__remote_worker_ended_one(struct remote_worker *w, unsigned i,
				  double took);
/* The worker has answered for a definition, or was not sent it. */
void evc__remote_worker_built(struct remote_worker *w);
/* Tell the cluster the results that were read and not told. */
void evc__redis_tell(struct redis_engine *e);
void evc__remote_worker_up(struct remote_worker *w, uint32_t start,
			   const struct frame_note *note);
void evc__remote_worker_fenced(struct remote_worker *w, const char *why);
void evc__remote_worker_gone(struct remote_worker *w, const char *why,
			     unsigned how);

#endif
