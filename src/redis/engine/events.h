/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stream of events: entries that nodes have written, and their frames.
 */
#ifndef EVC_REDIS_ENGINE_EVENTS_H
#define EVC_REDIS_ENGINE_EVENTS_H

#include "redis/engine/session.h"

/* An entry of the stream.  Loop thread only. */
struct event {
	struct list link;
	char node[NODE_NAME_ROOM];
	uint64_t inc, seq; /* number of the session; of the entry in it */
	bool fence;        /* the entry is the mark of a fence */
	bool rest;         /* the first frames of the entry are done with */
	const unsigned char *frames;
	size_t n;
	unsigned char bytes[]; /* the frames of a copy */
};

#define RESULTS 64

/* Results of one worker that were read and are not told yet.  The results point
   into the reply.  Loop thread only. */
struct results {
	struct remote_worker *of;
	evc_engine_result r[RESULTS];
	unsigned n;
};

/* A result whose value has to be read first.  Loop thread only. */
struct value_wait {
	struct redis_engine *e;
	struct node_session *session; /* NULL: the session is over */
	unsigned at;                  /* index of the worker in its node */
	uint32_t worker_start;
	uint64_t id;  /* of the value */
	bool sent;    /* an answer is on its way */
	bool dropped; /* the result is not wanted any more */
	size_t n;     /* bytes of the whole frame */
	unsigned char frame[];
};

/* Loop thread only. */
struct event_reader {
	bool reading;         /* an XREAD is on its way */
	uint64_t reading_g;   /* generation of that XREAD */
	char last[ID_ROOM];   /* id of the last entry that was read */
	unsigned n_untrimmed; /* entries read since the last XTRIM */
	struct list held;     /* entries that wait behind a value */
	struct value_wait *waits; /* NULL: no result waits for its value */
	struct results results;
	/* the entry that is heard */
	struct node_session *hearing; /* NULL: none is, or its session is
					 over */
	bool whole_node;       /* no FRAME_SLOT was in the entry yet */
	unsigned worker_at;    /* of the last FRAME_SLOT */
	uint32_t worker_start; /* of the last FRAME_SLOT */
	bool by_key;           /* the value of the next result has a key */
	uint64_t value_id;     /* id of that value */
};

/* ---- events.c ---- */

/* Wait for the next entries. */
void evc__redis_read(struct redis_engine *e);
/* Delete the entries that were read. */
void evc__redis_trim(struct redis_engine *e);
/* Ask for the value that a result waits for. */
void evc__redis_get_value(struct redis_engine *e);
void evc__events_free(struct redis_engine *e);

/* ---- hear.c ---- */

/* Hear the frames of an entry of this session, or the rest of an entry.
   Returns how many bytes are done with: n, or less when a value has to come
   first. */
size_t evc__redis_hear(struct node_session *s, const unsigned char *p, size_t n,
		       bool is_rest);
/* v is the value that the result waits for; NULL: there is none. */
void evc__redis_hear_value(struct value_wait *wait, const evc_value *v);

#endif
