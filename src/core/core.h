/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a coordinator, and what the rooms above may call.
 *
 * One word is the truth about the stop; every wake-up is only a hint to look
 * at it.  A coordinator has one lock; nothing of the user's is ever called under
 * it.  Requests and rings take no lock.
 */
#ifndef EVC_CORE_CORE_H
#define EVC_CORE_CORE_H

#include <evcoord.h>

#include "base/fork.h"
#include "base/refgate.h"
#include "base/list.h"
#include "base/sync.h"
#include "core/helper/helper.h"
#include "core/join/joins.h"
#include "core/life/life.h"
#include "core/log/log.h"
#include "core/loop/reactor.h"
#include "core/member/member.h"
#include "core/status/status.h"
#include "core/stop/stop.h"
#include "core/wake/escalation.h"

/*
 * The word.  Low half: flags, and the number of stops that were cleared; high
 * half: code and slot of the winning request and of the first error.  The low
 * half is also what threads that wait for the stop sleep on.
 */
#define WORD_FLAG UINT64_C(1)    /* a stop was asked for: the header reads it */
#define WORD_DRAIN UINT64_C(2)   /* a drain was: likewise */
#define WORD_CLOSING UINT64_C(4) /* somebody tries to close the round */
#define WORD_JOINED UINT64_C(8)  /* the round is closed */
#define WORD_STOPS(w) ((uint32_t)(w) >> 4)
#define WORD_STOPS_MASK UINT32_C(0x0fffffff)
#define WORD_WIN_SLOT(w) ((unsigned)((w) >> 40 & 255))
#define WORD_ERR_CODE(w) ((evc_status)((w) >> 48 & 255))
#define WORD_ERR_SLOT(w) ((unsigned)((w) >> 56 & 255))
#define WORD_WIN(code, slot) \
	((uint64_t)(unsigned)(code) << 32 | (uint64_t)(slot) << 40)
#define WORD_ERR(code, slot) \
	((uint64_t)(unsigned)(code) << 48 | (uint64_t)(slot) << 56)
#define NO_SLOT 255u

/* The number of the round a word stands in, as people see it. */
#define WORD_ROUND(w) (WORD_STOPS(w) + 1)

/* How many stops there have been, the present one included. */
#define WORD_STOP_NUMBER(w) \
	((WORD_STOPS(w) + (uint32_t)((w) & WORD_FLAG)) & WORD_STOPS_MASK)

struct evc__helper_job;
struct evc__helper;
struct evc__trace;

/*
 * What lower parts of core have done by the parts above them; one table, in
 * life/coord.c.
 */
struct evc__upper {
	/* loop/hook.c, helper thread: run the stop hooks without a loop. */
	void (*run_hooks)(evc_coord *c, evc_reactor *r);
	/* join/scope_join.c, helper thread: keep the join of a coordinator without
	   a home. */
	bool (*serve)(evc_coord *c, const bool *gone, uint64_t *ret_wait_ns);
	/* life/abandon.c, helper thread: nobody is left in an abandoned root. */
	void (*end_abandoned)(evc_coord *c);
	/* join/wake_blocked.c, helper thread: wake members that cannot hear. */
	uint64_t (*wake_blocked)(evc_coord *c, struct evc__helper_job *k);
	/* join/turn.c, loop thread: do what is due.  false: r is gone. */
	bool (*turn)(evc_reactor *r);
	/* join/loop.c, loop thread: the loop is gone, answer its joins. */
	void (*cancel_joins)(evc_reactor *r, struct ev_loop *loop,
			     const struct evc__frame *f);
};

/* What all coordinators of a tree share; in its root. */
struct evc__tree {
	const struct evc__upper *upper; /* set at creation */
	/* A leaf: nothing but bells and gates are under it. */
	pthread_mutex_t lock;
	struct evc__helper *helper; /* lock; one for all */
	_Atomic bool has_helper;    /* atomic: who made it -> joins */
	/* atomic: the helper -> joins: since when it is at one client, in real
	   monotonic time; 0: it is not */
	_Atomic uint64_t serving_ns;
	/* atomic: threads of the helper that were relieved and end -> joins:
	   how many are to be joined */
	_Atomic uint32_t n_ended;
	/* atomic: somebody in the tree has a grace of its own -> joins */
	_Atomic bool own_grace;
	/* atomic: some scope has a phase -> joins */
	_Atomic bool phased;
	/* atomic: the timeline, while it is on; see trace.h */
	_Atomic(struct evc__trace *) trace;
	_Atomic(struct evc__trace *) recorded; /* the last one that was on */
	struct evc__trace *rings; /* root's lock: all there are */
	_Atomic uint32_t n_coords; /* numbers them */
};

/*
 * A coordinator: what all parts need, and what each part has of its own, as that
 * part's header declares.
 */
struct evc_coord {
	/* The word: see above; evcoord/coord.h reads it at offset 0.  Alone on
	   its cache line, so that asking costs nothing while nothing happens. */
	_Alignas(64) _Atomic uint64_t word;

	/* set at creation */
	_Alignas(64) char name[48];
	unsigned flags;
	uint32_t number;         /* in the tree; the root is 1 */
	/* set at creation: where it stands in the tree; see life/scope.c */
	evc_coord *parent;       /* NULL: a root */
	struct evc__tree *tree;
	unsigned depth;
	struct list sibling;     /* parent's lock: in its scopes */
	struct evc__coord_life life;
	struct evc__coord_status status;
	struct evc__coord_stop stop;

	_Alignas(64) pthread_mutex_t lock;
	struct list scopes;      /* lock: by their sibling */
	struct evc__coord_helper helper;
	struct evc__coord_wake wake;
	struct evc__coord_member member;
	struct evc__coord_log log;
	struct evc__coord_loop loop;
	struct evc__coord_join join;
};

/* Is this process the one that made c? */
static inline bool
evc__same_process(const evc_coord *c)
{
	return sync_load_relaxed(&evc__fork_generation) ==
	       c->life.fork_generation;
}

/* ---- progress: set by what runs on a thread ---- */

/* Coarse nanoseconds as marks count them: c's own clock, if it has one. */
static inline uint64_t
evc__mark_now(const evc_coord *c)
{
	return c->status.clock != NULL ? c->status.clock(c->status.clock_arg)
				       : sync_mono_coarse();
}

#endif
