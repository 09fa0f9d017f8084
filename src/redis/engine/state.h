/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trouble and state, for people.
 */
#ifndef EVC_REDIS_ENGINE_STATE_H
#define EVC_REDIS_ENGINE_STATE_H

#include "redis/client/redis.h"

struct redis_engine;

/* Loop thread only. */
struct trouble {
	char now[REDIS_WHY_SIZE]; /* why functions wait; "": they do not */
	struct told told;
	uint64_t alone_ns; /* time since which there is no node; 0: there is */
	bool alone_told;   /* `now` says that there is no node */
	char garbage_of[16][NODE_NAME_SIZE]; /* nodes with a line in the log */
	unsigned n_garbage;
	char *state; /* the last value of {NS}:G:state; NULL: none */
};

/* Set why functions wait; "": they do not.  _is: the log has the text
   already. */
/* There is no connection since that time; 0: there is. */
void evc__redis_away(struct redis_engine *e, uint64_t since_ns);
void evc__redis_trouble_is(struct redis_engine *e, const char *why);
void evc__redis_trouble(struct redis_engine *e, enum trouble_of of,
			const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Log that an entry of a node is dropped, once for each node. */
void evc__redis_garbage(struct redis_engine *e, const char *node,
			const char *what);
void evc__redis_state_write(struct redis_engine *e);
/* All is well, unless there is no node. */
void evc__redis_well(struct redis_engine *e);
/* Look whether there is a node, at each tick and when a node has come. */
void evc__redis_look_alone(struct redis_engine *e);

#endif
