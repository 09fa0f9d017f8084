/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stream of events: entries that nodes have written, and their frames.
 */
#ifndef EVC_REDIS_ENGINE_EVENTS_H
#define EVC_REDIS_ENGINE_EVENTS_H

#include "redis/engine/session.h"

/* An entry of the stream.  Loop thread only. */
struct event {
	char node[NODE_NAME_SIZE];
	uint64_t inc, seq; /* number of the session; of the entry in it */
	bool fence;        /* the entry is the mark of a fence */
	const unsigned char *frames;
	size_t n;
};

#define RESULTS 64

/* Results of one worker that were read and are not told yet.  The results point
   into the reply.  Loop thread only. */
struct results {
	struct remote_worker *of;
	evc_engine_result r[RESULTS];
	unsigned n;
};

/* Loop thread only. */
struct event_reader {
	bool reading;         /* an XREAD is on its way */
	uint64_t reading_g;   /* generation of that XREAD */
	bool rests;           /* the last answer was wrong: until the next
				 tick */
	char last[ID_SIZE];   /* id of the last entry that was read */
	unsigned count;       /* entries that the next XREAD asks for */
	unsigned n_untrimmed; /* entries read since the last XTRIM */
	size_t n_untrimmed_bytes;
	struct results results;
	/* the entry that is heard */
	struct node_session *hearing; /* NULL: none is, or its session is
					 over */
	bool whole_node;       /* no FRAME_SLOT was in the entry yet */
	unsigned worker_at;    /* of the last FRAME_SLOT */
	uint32_t worker_start; /* of the last FRAME_SLOT */
};

/* ---- events.c ---- */

/* Why a generation is over: no node can write anything any more. */
#define NO_ID_LEFT "the stream of events has no id left for another entry"

/* Wait for the next entries. */
void evc__redis_read(struct redis_engine *e);
/* Delete the entries that were read. */
void evc__redis_trim(struct redis_engine *e);

/* ---- missing.c ---- */

/* Note the number of an entry.  false: the entry has come before. */
bool evc__session_sees(struct node_session *s, uint64_t seq);
/* Is there a transactional function, with updates that are perhaps made by
   now? */
bool evc__session_may_have_changed(const struct node_session *s);
/* Is an entry missing, perhaps with updates of functions that would run again? */
bool evc__session_lost_changes(const struct node_session *s);
/* A worker or the session says that it has ended.  true: an entry before may have
   had results with updates, and the session is fenced instead. */
bool evc__session_end_is_doubted(struct node_session *s);
/* Look whether entries before are missing. */
void evc__session_gaps(struct node_session *s);
/* A renewal of the session's lease was seen, and has left `beat`. */
void evc__session_has(struct node_session *s, const char *beat);
/* Entries were read: fence the sessions of which some are missing. */
void evc__redis_look_at_end(struct redis_engine *e);

/* ---- hear.c ---- */

/* Hear the frames of an entry of this session. */
void evc__redis_hear(struct node_session *s, const unsigned char *p, size_t n);

#endif
