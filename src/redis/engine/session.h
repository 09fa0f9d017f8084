/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the coordinator knows of a life of a node: its workers and what each was
 * given, what is on its way to it, and how it ends.
 */
#ifndef EVC_REDIS_ENGINE_SESSION_H
#define EVC_REDIS_ENGINE_SESSION_H

#include "base/list.h"
#include "wire/frames.h"
#include "engine/kept.h"
#include "redis/client/redis.h"

#define WINDOW_MOST 256
#define NODE_BYTES_MOST ((size_t)16 << 20) /* of functions under way to one */
#define ID_ROOM 32 /* of an entry */

struct redis_engine; /* is the evc_engine */
struct node_session;

#define WATCHED_MOST 256 /* processes: each of them takes a descriptor */

/* A process of this machine that may be watched. */
struct watched {
	struct redis_engine *e;
	struct node_session *session;
	pid_t pid;
	int pidfd;        /* -1: it is not watched */
	struct ev_io io;
	bool dead;        /* proven */
};

/* What a worker was given, and has not said to have ended. */
struct sent_call {
	uint64_t n, id;
	size_t size;      /* of its frame */
	bool asked;       /* it alone was cancelled */
};

/* A worker of a node. */
struct remote_worker {
	struct node_session *session;
	unsigned at;      /* among those of its node */
	unsigned index;   /* among those of the cluster */
	bool up;          /* functions may be given to it */
	bool fenced;      /* the cluster was told so */
	int64_t start;    /* the number of its life; -1: none yet */
	struct watched process;
	struct sent_call calls[WINDOW_MOST]; /* a ring, the oldest first */
	unsigned first, n;
	unsigned window;
	double average;   /* seconds that a function takes, lately */
	uint64_t rest_ns; /* it is given nothing before that */
};

/* Frames in one entry of a node's stream, until Redis has said that it is
   there. */
struct chunk {
	struct list link;
	struct node_session
		*session; /* NULL: it is over, the answer counts no more */
	uint64_t seq;
	struct bytes bytes;
	bool control;       /* it is tried until it is there */
	uint64_t kill_ns;   /* since when a kill in it waits; 0: none does */
	bool waits;         /* for a connection, or for the next try */
	bool again;         /* it was sent before, and may be there */
	bool late;          /* it was, and what came behind it may be there */
	bool failed;        /* it gets a new number: it is not there, or may be */
	uint64_t first;     /* with this one; 0: it is not */
};

/* Who waits for the answer of a fence. */
struct fence_wait {
	struct node_session *session; /* NULL: it is over */
};

/* Frames that become a chunk, and what the last FRAME_SLOT in it said. */
struct frame_batch {
	struct bytes bytes;
	bool has_worker;
	uint64_t worker;
};

struct node_session {
	struct redis_engine *e;
	struct list link;
	char name[NODE_NAME_ROOM];
	uint64_t inc, g;
	uint64_t serial;    /* of all lives there were */
	evc_id hold;        /* a member, so that it is named when it stays */
	char host[64];
	struct watched process;
	bool here;          /* on this machine, so its pids mean something */
	unsigned n_workers;
	struct remote_worker **workers;
	/* what comes: the greatest number seen, and which of the 64 up to it */
	uint64_t seen, seen_bits;
	/* what goes */
	uint64_t seq;
	struct frame_batch data, control;
	struct list chunks; /* the oldest first */
	bool has_stream;    /* one of them is there */
	size_t bytes;       /* of functions that it was given */
	struct kept kept;   /* values that it may have: sizes alone */
	char beat[24];      /* the last renewal of its lease that was seen, */
	uint64_t beat_ns;   /* and since when */
	/* its end */
	bool left_told;     /* it was asked to leave */
	uint64_t kill_ns;   /* of a kill in control, when that was asked for */
	bool untold;        /* an order was refused, and none taken since */
	bool blames;        /* what its workers ran may have been its death */
	bool ending;        /* it is to be fenced, for this reason: */
	char why[REDIS_WHY_ROOM];
	struct fence_wait *fence; /* for an answer; NULL: nothing does */
	bool fenced;        /* Redis says so; its mark is this entry: */
	char mark[ID_ROOM];
	uint64_t gone_ns;   /* then nothing of it runs any more; 0: not known */
	bool marked;        /* what comes behind this counts no more */
};

#endif
