/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions of nodes: a node registers, and its session lasts until the lease is
 * over or the node leaves or registers anew.
 */
#ifndef EVC_REDIS_ENGINE_SESSION_H
#define EVC_REDIS_ENGINE_SESSION_H

#include "base/list.h"
#include "base/table.h"
#include "engine/kept.h"
#include "redis/engine/worker.h"

#define NODE_BYTES_MOST ((size_t)16 << 20) /* of functions under way to a
					      node */
#define PLACES_MOST 100000 /* workers of all nodes together */
#define NODES_HELD 100     /* nodes that reports name as members */

/* Frames in one entry of a node's stream, until Redis has answered that the
   entry is there.  Loop thread only. */
struct chunk {
	struct list link;
	struct node_session *session; /* NULL: the session is over */
	uint64_t seq;
	struct bytes bytes;
	bool control;     /* the chunk is sent again until Redis takes it */
	uint64_t sent_ns; /* time of the last try */
	uint64_t kill_ns; /* time of the oldest kill in the chunk; 0: none */
	bool waits;       /* for a connection, or for the next try */
	bool again;       /* the chunk was sent before, and may be there */
	bool late;        /* chunks sent after this one may be there already */
	bool failed;      /* the next try takes a new number */
	bool builds;      /* a definition is among the frames */
	bool holds;       /* later data waits for the answer to this try */
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
	bool builds;     /* a definition is among the frames */
	uint64_t worker; /* number in the last FRAME_SLOT */
};

/* A session of a node.  The fields up to `serial` are set at creation, all
   others are for the loop thread only. */
struct node_session {
	struct table_name at; /* in sessions.by_name; the first field */
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
	struct feed_group *group; /* NULL: there are no workers yet */
	struct list dirty;        /* in sessions.dirty, with frames to be sent */
	struct list keeps;        /* in sessions.keepers, with values that the
				     node may have */
	struct list end;          /* in sessions.ending */
	struct node_session **look; /* place in a question for leases; NULL: no
				       answer is to come */
	/* the greatest number of an entry, and which of the 64 up to it came */
	uint64_t seen, seen_bits;
	uint64_t seq;                     /* number of the last chunk */
	struct frame_batch data, control; /* functions; orders */
	struct list chunks;               /* the oldest chunk first */
	bool has_stream;                  /* a chunk is in the node's stream */
	size_t bytes;       /* of the functions that the workers have */
	struct kept kept;   /* sizes of the values that the node may have */
	char beat[48];      /* the last renewal seen: its number, a blank, and
			       the number up to which the server has entries */
	uint64_t has;       /* this number, of a renewal before; 0: none */
	uint64_t had;       /* `has` when detection.end was asked for */
	uint64_t beat_ns;   /* time at which that renewal was seen first */
	bool left_told;     /* the node was asked to leave */
	uint64_t kill_ns;   /* time of the oldest kill in `control`; 0: none */
	bool untold;        /* Redis refused the last order */
	bool blames;        /* running functions may have killed the node */
	bool ending;        /* the session is to be fenced */
	char why[REDIS_WHY_SIZE]; /* reason of the end */
	struct fence_wait *fence; /* NULL: no answer to a fence is missing */
	bool fenced;        /* Redis has taken the lease away */
	uint64_t sent;      /* number of the last entry with updates by then;
			       UINT64_MAX: nobody knows */
	char mark[ID_SIZE]; /* id of the mark that the fence left */
	uint64_t mark_ns;   /* when Redis said that it has left the mark */
	bool fence_rests;   /* Redis refused a fence: until the next tick */
	uint64_t gone_ns;   /* nothing runs from then on; 0: not known yet */
	bool marked;        /* the mark was read: later entries do not count */
};

/* Nodes that have told the same names of functions: a function that one free
   worker of them cannot take now, no other one can, as a rule. */
struct feed_group {
	struct list link;   /* in feeding.groups */
	uint64_t names;     /* hash of the names; 0: of any */
	unsigned n;         /* sessions in it */
	struct list idle;   /* workers without a function, the one that waits
			       longest first */
	struct list some;   /* workers with functions, and room for more */
};

/* What groups.c knows, so that a function finds a free worker among many.  Loop
   thread only. */
struct feeding {
	struct list groups;
	unsigned n_groups;
	struct feed_group others; /* of the nodes behind GROUPS_MOST groups */
	struct list looks;        /* workers to look at in any case */
	unsigned next;            /* place that evc__feed_around begins at */
	uint64_t serial;          /* counts feeds */
};

/* The sessions of an engine and the workers in them.  Loop thread only. */
struct sessions {
	struct list all;                /* the oldest session first */
	struct table by_name;           /* the same */
	struct list ending;             /* those that are to be fenced, or are */
	struct list dirty, keepers;     /* node_session.dirty, .keeps */
	struct list *looked, *refreshed; /* the last session of a round through
					    all: `link`, or `all` itself */
	bool any_waits, any_untold;     /* a chunk waits, a session is untold:
					   perhaps, for the next look */
	unsigned n_held;                /* sessions with a hold */
	uint64_t n_begun;               /* sessions there ever were */
	unsigned n_workers;             /* places that the cluster knows */
	struct remote_worker **workers; /* by place; NULL: the place is free */
	size_t room;                    /* of `workers` */
	unsigned n_used, n_up;          /* places that are not free; workers
					   that are up */
	unsigned first_free;            /* no place before this one is free */
	struct feeding feeding;
	double trip;                    /* seconds from a command to its
					   answer; recent ones count most */
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

/* Each session that ends. */
#define EACH_ENDING(s, tmp, e) \
	for ((s) = LIST_OF((e)->sessions.ending.next, struct node_session, end); \
	     &(s)->end != &(e)->sessions.ending && \
	     ((tmp) = LIST_OF((s)->end.next, struct node_session, end), 1); \
	     (s) = (tmp))

/* ---- session.c ---- */

void evc__sessions_init(struct redis_engine *e);
/* The session behind *at, of all in their order, around and around; NULL: there
   is none. */
struct node_session *evc__session_next(struct redis_engine *e,
				       struct list **at);
/* The session is taken out of all lists and tables but its own places. */
void evc__session_forget(struct node_session *s);
/* The session is to be fenced, or is over for the coordinator. */
void evc__session_ends(struct node_session *s);
/* Frames in its batches are to be sent before the loop sleeps. */
void evc__session_dirty(struct node_session *s);

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

/* ---- registration.c ---- */

/* Read the frames, and nothing else, and make the workers. */
evc_status evc__registration_read(struct node_session *s, const unsigned char *p,
				  size_t n);
/* The node's session before ended for want of memory. */
bool evc__registration_had_no_memory(const unsigned char *p, size_t n);

/* ---- nodes.c ---- */

/* A node registers. */
void evc__session_begin(struct redis_engine *e, const char *name, uint64_t inc,
			const unsigned char *frames, size_t n);
/* Ask the node to leave; without memory for that the session is fenced. */
void evc__session_tell_to_leave(struct node_session *s);
/* The cluster is lost, and the namespace is still its own: no session goes on. */
void evc__redis_end_leases(struct redis_engine *e);
/* End the session and its workers: nothing of the node runs. */
void evc__session_over(struct node_session *s, const char *why, unsigned how);
/* Take all nodes out of the scope's members. */
void evc__sessions_let_go(struct redis_engine *e);
/* Free all sessions, and tell nobody. */
void evc__sessions_free(struct redis_engine *e);

/* ---- chunks.c ---- */

/* Send the batches of a session, or of all. */
void evc__session_flush(struct node_session *s);
void evc__redis_flush(struct redis_engine *e);
/* Send chunks again, after a lost connection or after a while. */
void evc__redis_chunks_again(struct redis_engine *e);
void evc__session_chunks_drop(struct node_session *s);

/* ---- orders.c ---- */

/* The frames that follow in the batch are about this worker. */
evc_status evc__frame_batch_about(struct frame_batch *batch,
				  const struct remote_worker *w);
/* Orders of the core: cancel functions up to a number, or pairs of worker and
   function; kill workers. */
void evc__redis_cancel(struct redis_engine *e, uint64_t upto);
void evc__redis_cancel_ones(struct redis_engine *e, const uint64_t *ones,
			    size_t n);
void evc__redis_kill(struct redis_engine *e, const struct noted_workers *kills);
/* Ask workers for their stacks. */
void evc__redis_ask_stacks(struct redis_engine *e,
			   const struct noted_workers *stacks);
/* A late chunk has come, and the order for its functions perhaps before: send the
   cancels of single functions again. */
void evc__session_cancel_again(struct node_session *s);

/* ---- feed.c ---- */

void evc__redis_feed(struct redis_engine *e);

/* ---- groups.c ---- */

/* Functions and definitions may be sent to the worker. */
static inline bool
remote_worker_is_fed(const struct remote_worker *w)
{
	return w->up && !w->fenced && !w->session->ending &&
	       !w->session->left_told;
}
/* The session's workers join those with the same names, and leave them. */
void evc__feed_join(struct node_session *s, uint64_t names);
void evc__feed_part(struct node_session *s);
void evc__feed_init(struct redis_engine *e);
/* The worker's calls have changed: it is free for more, or it is not. */
void evc__feed_note(struct remote_worker *w);
/* Look at this worker with the next feed in any case: there may be a definition
   or a function for this worker alone. */
void evc__feed_look(struct remote_worker *w);
/* The core has woken these workers; all: any of them. */
void evc__feed_woken(struct redis_engine *e, const struct noted_workers *wakes,
		     bool all);
/* Look at the next workers in turn, in case that nothing else does. */
void evc__feed_around(struct redis_engine *e);

/* ---- fence.c ---- */

/* The mark of the session was read, or will never be there. */
void evc__session_marked(struct node_session *s);
/* Ask Redis for the fences that were not asked for yet. */
void evc__redis_fence_all(struct redis_engine *e);
/* Fences that were refused may be asked for again. */
void evc__redis_fence_again(struct redis_engine *e);
/* The generation is over, and its data perhaps lost. */
void evc__redis_restart(struct redis_engine *e, const char *why);
/* Count all leases from now on. */
void evc__redis_beats_anew(struct redis_engine *e);
/* End the session if nothing of the node runs any more. */
void evc__session_look(struct node_session *s);
/* The text is the id of an entry, "MS-N". */
bool evc__id_is(const char *text);
/* Ids of entries of one stream: a is b, or before b. */
bool evc__id_is_upto(const char *a, const char *b);

#endif
