/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of a namespace, and the generation that begins with it.
 */
#ifndef EVC_REDIS_ENGINE_LOCK_H
#define EVC_REDIS_ENGINE_LOCK_H

#include "redis/client/redis.h"

struct redis_engine;

enum engine_phase {
	PHASE_AWAY,     /* no connection */
	PHASE_TAKING,   /* not the coordinator yet */
	PHASE_LIVE,     /* the coordinator */
	PHASE_RESTART,  /* an old generation is brought to its end */
	PHASE_LOST,     /* for good; leases are waited for */
	PHASE_DOWN,     /* the cluster knows that the engine is lost */
	PHASE_RELEASING /* the last command was sent */
};

/* Loop thread only. */
struct coordinator_lock {
	enum engine_phase phase;
	uint64_t g;           /* the generation; 0: none was taken yet */
	char g_text[24];      /* the generation, as a text */
	bool taking;          /* an answer to TAKE is on its way */
	bool refused;         /* TAKE was refused, and rests until a tick */
	bool asking;          /* an answer to LOCK is on its way */
	uint64_t asked_ns;    /* time of the last TAKE or LOCK */
	uint64_t ticked_ns;   /* time of the last tick */
	uint64_t unserved_ns; /* time from which the lack of a connection counts:
				 away_ns, or later after a pause */
	uint64_t least;       /* TAKE asks for a generation greater than this */
	bool server_anew;     /* the server's data may be older than it was */
	char why_restart[REDIS_WHY_SIZE]; /* why the generation is over */
	char why_down[REDIS_WHY_SIZE];    /* why the engine is lost */
	unsigned refresh_soon; /* ticks in which new keys get their end */
	uint64_t marked_g;    /* the generation with a mark beside the numbers of
				 updates; 0: none */
	bool no_memory;       /* the log knows: the server's memory is used
				 up */
	bool variables_used;  /* some program of this cluster uses variables */
	uint64_t changes;     /* of variables, as the server counted last */
	const char *fewer;    /* what the server has lost; NULL: nothing */
	bool counting;        /* an answer with the count is on its way */
	bool counted;         /* the count is known, after a restart */
};

static inline unsigned long long
redis_ms(uint64_t ns)
{
	return ns < UINT64_C(1000000) ? 1 : ns / 1000000;
}

/* ---- lock.c ---- */

/* Renew the lock, at each tick. */
void evc__redis_lock_tick(struct redis_engine *e, uint64_t now);
void evc__redis_lock_again(struct redis_engine *e);
/* Take the namespace, with a generation greater than `least`. */
void evc__redis_take(struct redis_engine *e, uint64_t least);
enum variables_gone {
	GONE_NOTHING,
	GONE_VARIABLES, /* there are fewer than after the last change */
	GONE_COUNTS     /* the key with the counts was deleted */
};
/* The server has counted n changes of variables.  false: variables in use are
   lost, and the generation is over. */
bool evc__redis_changes(struct redis_engine *e, int64_t n,
			enum variables_gone gone);
/* The namespace is lost for good. leases_are_over: no worker runs any more, and
   no lease has to be waited for. */
void evc__redis_lose(struct redis_engine *e, bool leases_are_over,
		     const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- generation.c ---- */

/* Write the options of the generation again, in case they were lost, and have
   all keys of the generation end later. */
void evc__redis_keys_refresh(struct redis_engine *e);
/* The same for the streams to nodes, of which there may be many: for some of them
   each time.  Their keys live much longer than such a round. */
void evc__redis_streams_refresh(struct redis_engine *e);

/* ---- restart.c ---- */

/* Take the next generation, if all that sessions have said was read. */
void evc__redis_restart_go_on(struct redis_engine *e);

#endif
