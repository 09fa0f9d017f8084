/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "redis" at its coordinator: functions go out as frames, in one
 * stream for each node, and events of all nodes come in by another stream.
 * Everything happens on the loop's thread, but for notes and questions.
 *
 *     notes, variables   any thread asks
 *         |
 *     turn         turns of the loop: message, ticks, feeding, the end
 *     restart      an old generation is brought to its end
 *     lock         the lock of the namespace, and the generation
 *     events       entries of nodes; hear: the frames in an entry; missing:
 *                  entries that were deleted
 *     fence        how sessions end
 *     nodes        sessions begin and are over
 *     feed         functions for workers; chunks: frames on their way
 *     worker, detect, session   what is known of each; groups: which workers
 *                  are free
 *     variables    questions; snapshot, load: those about all variables, in
 *                  pieces
 *     values, keys, state
 *
 * Each file calls files below itself alone.
 */
#ifndef EVC_REDIS_ENGINE_H
#define EVC_REDIS_ENGINE_H

#include "base/deadline.h"
#include "engine/notes.h"
#include "engine/on_loop.h"
#include "redis/engine/detect.h"
#include "redis/engine/events.h"
#include "redis/engine/lock.h"
#include "redis/engine/state.h"
#include "redis/engine/values.h"
#include "redis/engine/variables.h"

#define WHERE_SIZE 128

/* Turns of the loop: turn.c.  Loop thread only. */
struct engine_turn {
	struct on_loop on;
	bool running;      /* the watchers are there */
	bool lost;         /* the loop is being destroyed */
	bool left;         /* the core has called leave */
	bool ended;        /* the engine ends with the next message */
	uint64_t leave_ns; /* time of leave */
	bool want_feed;    /* see redis_feed_soon */
	bool want_look;    /* see redis_look_soon */
	bool want_lock;    /* see redis_doubt_lock */
	evc_task task;
	struct ev_cleanup cleanup;
	struct ev_timer tick, due;
	struct ev_prepare prepare;
};

struct redis_engine {
	struct notes notes; /* the first field; any thread */

	/* ---- set at creation ---- */
	evc_coord *scope;
	evc_reactor *reactor;
	evc_loop_ref *loop;
	const evc_engine_sink *sink;
	void *core;
	uint64_t lease_ns, grace_ns;
	size_t max_frame;
	struct redis_address address;
	char where[WHERE_SIZE];  /* the server, for texts */
	char id[NODE_NAME_SIZE]; /* of this coordinator */
	char host[64];

	/* ---- loop thread only, but for the questions' lock ---- */
	evc_id hold; /* a member of the scope; 0: none */
	struct ev_loop *ev;
	struct redis_client *client;
	bool up;          /* both connections are there */
	uint64_t away_ns; /* time since which they are not; 0: they are */
	struct engine_turn turn;
	struct coordinator_lock lock;
	struct sessions sessions;
	struct event_reader reader;
	struct value_keys values;
	struct questions questions;
	struct snapshots snapshots;
	struct load load;
	struct detection detect;
	struct trouble trouble;
};

/* ---- turn.c ---- */

void evc__redis_message(evc_message *m, evc_status why);
/* Stop all watchers: a fork child keeps the loop, or destroys it. */
void evc__redis_off(struct on_loop *on, struct ev_loop *loop);
/* Have workers fed before the loop sleeps. */
static inline void
redis_feed_soon(struct redis_engine *e)
{
	e->turn.want_feed = true;
}
/* Have all sessions, the end of a generation and the end of the engine looked
   at before the loop sleeps. */
static inline void
redis_look_soon(struct redis_engine *e)
{
	e->turn.want_look = true;
}
/* The cluster learns that the engine is lost. */
static inline void
redis_go_down(struct redis_engine *e)
{
	e->lock.phase = PHASE_DOWN;
	e->sink->down(e->core, e->lock.why_down);
}
/* Have the lock asked for, too: another coordinator may have it. */
static inline void
redis_doubt_lock(struct redis_engine *e)
{
	e->turn.want_lock = true;
	redis_look_soon(e);
}

/* ---- engine.c, variables.c: operations of the engine ---- */

evc_status evc__redis_open(const evc_engine_env *env, evc_engine **ret_engine);
void evc__redis_close(evc_engine *engine);
void evc__redis_ask(evc_engine *engine, evc_engine_question *q);

#endif
