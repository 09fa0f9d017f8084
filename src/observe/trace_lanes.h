/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline as lanes: what the ring and the register say, put in order.
 */
#ifndef EVC_OBSERVE_TRACE_LANES_H
#define EVC_OBSERVE_TRACE_LANES_H

#include "core/status/trace.h"

/* A stop of one coordinator. */
struct evc__stop {
	uint64_t from, to; /* its request; when it was cleared, or now */
	uint64_t late;     /* when a join gave up, or it was abandoned;
			      SYNC_FOREVER: never */
	uint64_t over;     /* when a join found nobody alive; likewise */
	const struct evc__record *asked;
};

/* One coordinator. */
struct evc__group {
	uint32_t number, above;      /* above: the number of its parent */
	struct evc__group *parent; /* NULL: the root */
	char name[TRACE_NAME];
	size_t first, n;             /* its records */
	size_t n_own;                /* of them, the first: what concerns no
					member */
	size_t first_stop, n_stops;
	size_t first_lane, n_lanes;  /* by their ends, the latest first */
	unsigned lane;               /* the number of its own, in the JSON */
};

struct evc__lane {
	const struct evc__group *group;
	const struct evc__record *rec; /* by time */
	size_t n;
	unsigned kind; /* EVC_THREAD ..., TRACE_LOOP ... */
	uint64_t id;
	const char *name, *last; /* its last progress text, or "" */
	int tid;                 /* a thread's, or 0 */
	bool alive;              /* when it was written; a hook: in its call */
	bool loop;               /* a loop of its own, or with tasks */
	uint64_t begin, end, reaped; /* reaped: 0, it was not seen */
	uint64_t done;           /* loops and hooks: when the last stop was
				    done with; others: end */
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

/* The state of a lane's member.  Before a stop the member runs: that is none. */
enum evc__part {
	PART_JOIN,  /* a join waits */
	PART_AFTER, /* told, or about to be */
	PART_LATE,  /* after a join gave up */
	PART_ENDED  /* it has ended, and is not joined yet */
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

/* Add a record for everybody alive in the tree of c; false: no memory. */
bool evc__timeline_alive(struct evc__timeline *t, const evc_coord *c);

/* ---- trace_stops.c ---- */

/* Find the stops of all groups; false: no memory. */
bool evc__timeline_stops(struct evc__timeline *t);
/* Each part of a lane, in order. */
void evc__lane_parts(const struct evc__timeline *t, const struct evc__lane *l,
		     evc__part_fn *fn, void *arg);

/* ---- trace_json.c ---- */

struct out;
/* It numbers the lanes of t. */
void evc__trace_json(struct out *o, struct evc__timeline *t);

#endif
