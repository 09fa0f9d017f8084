/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions of nodes: a node registers, and its session lasts until the lease is
 * over or the node leaves or registers anew.
 */
#ifndef EVC_REDIS_ENGINE_SESSION_H
#define EVC_REDIS_ENGINE_SESSION_H

#include "base/list.h"
#include "engine/kept.h"
#include "redis/engine/worker.h"

#define NODE_BYTES_MOST ((size_t)16 << 20) /* of functions under way to a
					      node */
#define ID_SIZE 32                         /* of the id of a stream's entry */

/* Frames in one entry of a node's stream, until Redis has answered that the
   entry is there.  Loop thread only. */
struct chunk {
	struct list link;
	struct node_session *session; /* NULL: the session is over */
	uint64_t seq;
	struct bytes bytes;
	bool control;     /* the chunk is sent again until Redis takes it */
	uint64_t kill_ns; /* time of the oldest kill in the chunk; 0: none */
	bool waits;       /* for a connection, or for the next try */
	bool again;       /* the chunk was sent before, and may be there */
	bool late;        /* chunks sent after this one may be there already */
	bool failed;      /* the next try takes a new number */
	uint64_t first;   /* number of the first try; 0: this is the first */
};

/* The argument of a fence, until its answer. */
struct fence_wait {
	struct node_session *session; /* NULL: the session is over */
};

/* Frames that become a chunk.  Loop thread only. */
struct frame_batch {
	struct bytes bytes;
	bool has_worker; /* a FRAME_SLOT is among the frames */
	uint64_t worker; /* number in the last FRAME_SLOT */
};

/* A session of a node.  The fields up to `serial` are set at creation, all
   others are for the loop thread only. */
struct node_session {
	struct redis_engine *e;
	char name[NODE_NAME_SIZE];
	uint64_t inc, g; /* number of the session; its generation */
	uint64_t serial; /* place in the order of all sessions there were */
	struct list link;
	evc_id hold; /* a member of the scope, which names the node; 0: none */
	char host[64];
	struct watched process;
	bool here; /* the node runs on this machine: its pids mean something */
	unsigned n_workers;
	struct remote_worker **workers;
	/* the greatest number of an entry, and which of the 64 up to it came */
	uint64_t seen, seen_bits;
	uint64_t seq;                     /* number of the last chunk */
	struct frame_batch data, control; /* functions; orders */
	struct list chunks;               /* the oldest chunk first */
	bool has_stream;                  /* a chunk is in the node's stream */
	size_t bytes;       /* of the functions that the workers have */
	struct kept kept;   /* sizes of the values that the node may have */
	char beat[24];      /* number of the last renewal that was seen */
	uint64_t beat_ns;   /* time at which that renewal was seen first */
	bool left_told;     /* the node was asked to leave */
	uint64_t kill_ns;   /* time of the oldest kill in `control`; 0: none */
	bool untold;        /* Redis refused the last order */
	bool blames;        /* running functions may have killed the node */
	bool ending;        /* the session is to be fenced */
	char why[REDIS_WHY_SIZE]; /* reason of the end */
	struct fence_wait *fence; /* NULL: no answer to a fence is missing */
	bool fenced;        /* Redis has taken the lease away */
	char mark[ID_SIZE]; /* id of the mark that the fence left */
	uint64_t gone_ns;   /* nothing runs from then on; 0: not known yet */
	bool marked;        /* the mark was read: later entries do not count */
};

/* The sessions of an engine and the workers in them.  Loop thread only. */
struct sessions {
	struct list all;                /* the oldest session first */
	uint64_t n_begun;               /* sessions there ever were */
	unsigned n_workers;             /* places that the cluster knows */
	struct remote_worker **workers; /* by place; NULL: the place is free */
	unsigned next_fed;              /* place that is fed first next time */
	uint64_t cancelled_upto;        /* functions up to here are cancelled */
	struct {
		char name[NODE_NAME_SIZE];
		uint64_t inc;
	} former[64]; /* nodes and numbers of sessions that are over, a ring */
	unsigned n_former;
};

/* Each session; s may be freed meanwhile, no other. */
#define EACH_SESSION(s, tmp, e) \
	for ((s) = LIST_OF((e)->sessions.all.next, struct node_session, link); \
	     &(s)->link != &(e)->sessions.all && \
	     ((tmp) = LIST_OF((s)->link.next, struct node_session, link), 1); \
	     (s) = (tmp))

/* ---- session.c ---- */

struct node_session *evc__session_find(struct redis_engine *e,
				       const char *name);
/* true: the node had a session with this number or a greater one. */
bool evc__session_is_former(const struct redis_engine *e, const char *name,
			    uint64_t inc);
void evc__session_remember(const struct node_session *s);
/* The session is to complete nothing more; why: "its lease is over". */
void evc__session_fence(struct node_session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Have the loop look at all sessions then. */
void evc__redis_due(struct redis_engine *e, uint64_t mono_ns);
/* The time at which a lease that was renewed at since_ns is surely over. */
uint64_t evc__redis_over_ns(uint64_t since_ns, uint64_t lease_ns);

/* ---- nodes.c ---- */

/* A node registers. */
void evc__session_begin(struct redis_engine *e, const char *name, uint64_t inc,
			const unsigned char *frames, size_t n);
/* Ask the node to leave; without memory for that the session is fenced. */
void evc__session_tell_to_leave(struct node_session *s);
/* End the session and its workers: nothing of the node runs. */
void evc__session_over(struct node_session *s, const char *why, unsigned how);
/* Take all nodes out of the scope's members. */
void evc__sessions_let_go(struct redis_engine *e);
/* Free all sessions, and tell nobody. */
void evc__sessions_free(struct redis_engine *e);

/* ---- chunks.c ---- */

/* The frames that follow in the batch are about this worker. */
evc_status evc__frame_batch_about(struct frame_batch *batch,
				  const struct remote_worker *w);
/* Send the batches of a session, or of all. */
void evc__session_flush(struct node_session *s);
void evc__redis_flush(struct redis_engine *e);
/* Orders of the core: cancel functions up to a number, or pairs of worker and
   function; kill workers, a bit for each. */
void evc__redis_cancel(struct redis_engine *e, uint64_t upto);
void evc__redis_cancel_ones(struct redis_engine *e, const uint64_t *ones,
			    size_t n);
void evc__redis_kill(struct redis_engine *e, const uint64_t *kills);
/* Ask workers for their stacks, a bit for each. */
void evc__redis_ask_stacks(struct redis_engine *e, const uint64_t *stacks);
/* Send chunks again, after a lost connection or after a while. */
void evc__redis_chunks_again(struct redis_engine *e);
void evc__session_chunks_drop(struct node_session *s);

/* ---- feed.c ---- */

void evc__redis_feed(struct redis_engine *e);

/* ---- fence.c ---- */

/* The mark of the session was read, or will never be there. */
void evc__session_marked(struct node_session *s);
/* Ask Redis for the fences that were not asked for yet. */
void evc__redis_fence_all(struct redis_engine *e);
/* The generation is over, and its data perhaps lost. */
void evc__redis_restart(struct redis_engine *e, const char *why);
/* Count all leases from now on. */
void evc__redis_beats_anew(struct redis_engine *e);
/* End the session if nothing of the node runs any more. */
void evc__session_look(struct node_session *s);
/* Ids of entries of one stream: a is b, or before b. */
bool evc__id_is_upto(const char *a, const char *b);

#endif
