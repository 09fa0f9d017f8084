/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline as lanes: records of the ring and the register, in order.
 */
#ifndef EVC_OBSERVE_TRACE_LANES_H
#define EVC_OBSERVE_TRACE_LANES_H

#include "core/status/trace.h"

/* A stop of one coordinator. */
struct evc__stop {
	uint64_t from, to; /* the request; the clear, or now */
	/* a join gave up, or the coordinator was abandoned; SYNC_FOREVER:
	   never */
	uint64_t late;
	uint64_t over; /* a join found no live member; SYNC_FOREVER: never */
	const struct evc__record *asked;
};

/* One coordinator. */
struct evc__group {
	uint32_t number, above;      /* above: the number of its parent */
	struct evc__group *parent; /* NULL: the root */
	char name[TRACE_NAME];
	size_t first, n;             /* its records */
	size_t n_own;                /* the first records: of no member */
	size_t first_stop, n_stops;
	size_t first_lane, n_lanes;  /* by their ends, the latest first */
	unsigned lane; /* the coordinator's own number, in the JSON */
};

struct evc__lane {
	const struct evc__group *group;
	const struct evc__record *rec; /* by time */
	size_t n;
	unsigned kind; /* EVC_THREAD ..., TRACE_LOOP ... */
	uint64_t id;
	const char *name, *last; /* its last progress text, or "" */
	int tid;                 /* a thread's, or 0 */
	bool there; /* a loop: there is one when the timeline was written */
	/* alive when the timeline was written; a hook: in a call; a loop: with
	   its last stop not done */
	bool alive;
	bool loop;               /* the loop is its own, or has tasks */
	uint64_t begin, end, reaped; /* reaped: 0: not seen */
	/* loops and hooks: their last stop was done; others: end */
	uint64_t done;
};

struct evc__timeline {
	struct evc__record *rec; /* by coordinator, lane, time */
	size_t n, room;
	uint64_t lost;
	uint64_t since, now; /* real monotonic nanoseconds */
	struct evc__group *group; /* by number; the root first */
	size_t n_groups;
	struct evc__lane *lane;
	size_t n_lanes;
	struct evc__stop *stop;
	size_t n_stops;
};

/* The state of a lane's member.  Before a stop the member runs, and has no
   part. */
enum evc__part {
	PART_JOIN,  /* a join waits */
	PART_AFTER, /* the stop is told, or about to be */
	PART_LATE,  /* after a join gave up */
	PART_ENDED  /* ended, and not joined yet */
};
typedef void evc__part_fn(enum evc__part what, uint64_t from, uint64_t to,
			  void *arg);

/* ---- trace_lanes.c ---- */

/* 0, -EVC_NOT_FOUND, -EVC_RESOURCE_EXHAUSTED; to be freed in any case. */
evc_status evc__timeline_make(const evc_coord *c, struct evc__timeline *t);
void evc__timeline_free(struct evc__timeline *t);
/* Room for one more record; NULL: no memory. */
struct evc__record *evc__timeline_add(struct evc__timeline *t);
const char *evc__lane_kind(unsigned kind);
/* "ending" */
const char *evc__step_name(uint64_t step);
/* "host / db / pool" */
void evc__group_path(const struct evc__group *g, char *buf, size_t room);

/* ---- trace_alive.c ---- */

/* Add a record for each live member in the tree of c; false: no memory. */
bool evc__timeline_alive(struct evc__timeline *t, const evc_coord *c);

/* ---- trace_stops.c ---- */

/* Find the stops of all groups; false: no memory. */
bool evc__timeline_stops(struct evc__timeline *t);
/* Each part of a lane, in order. */
void evc__lane_parts(const struct evc__timeline *t, const struct evc__lane *l,
		     evc__part_fn *fn, void *arg);

/* ---- trace_json.c ---- */

struct out;
/* Writes t, and numbers its lanes. */
void evc__trace_json(struct out *o, struct evc__timeline *t);

#endif
