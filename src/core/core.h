/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a coordinator, and the calls for the rooms above.
 *
 * One word is the truth about the stop; every wake-up is only a hint to look at
 * the word.  A coordinator has one lock; no function of the user's is ever
 * called under the lock.  Requests and rings take no lock.
 *
 * Short names of variables in all of core: c a coordinator, w a copy of its
 * word, s a scope, r a reactor, m a member, j a join, q a request, l a
 * listener, v a view or a verdict.
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
 * half: code and slot of the winning request and of the first error.  Threads
 * that wait for the stop sleep on the low half.
 */
#define WORD_FLAG UINT64_C(1)    /* a stop was requested; the header reads
				    this */
#define WORD_DRAIN UINT64_C(2)   /* a drain was asked for; the header reads
				    this */
#define WORD_CLOSING UINT64_C(4) /* a thread tries to close the round */
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

/* The number of the round of a word, as shown to users; the first is 1. */
#define WORD_ROUND(w) (WORD_STOPS(w) + 1)

/* The number of stops, with the present one. */
#define WORD_STOP_NUMBER(w) \
	((WORD_STOPS(w) + (uint32_t)((w) & WORD_FLAG)) & WORD_STOPS_MASK)

struct evc__helper_job;
struct evc__helper;
struct evc__trace;
struct evc__watch_thread;

/*
 * Functions of upper parts of core that lower parts call; one table, in
 * life/coord.c.
 */
struct evc__upper {
	/* loop/hook.c, helper thread: run the stop hooks without a loop. */
	void (*run_hooks)(evc_coord *c, evc_reactor *r);
	/* join/scope_join.c, helper thread: drive the scope join of a
	   coordinator without a home. */
	bool (*serve)(evc_coord *c, const bool *gone, uint64_t *ret_wait_ns);
	/* member/later.c, no lock: make the calls of evc__later_add. */
	void (*run_later)(evc_coord *c);
	/* life/own_scope.c, no lock: the scope of a thread that ends; scopes
	   in the list c->member.left, taken out of the list. */
	void (*own_scope_end)(evc_coord *s);
	void (*own_scopes_free)(evc_coord *s);
	/* life/abandon.c, helper thread: all have left an abandoned root. */
	void (*end_abandoned)(evc_coord *c);
	/* log/log.c and log/queue.c, helper thread, no lock: write lines for the
	   news of c; call the log hooks. */
	void (*log_news)(evc_coord *c);
	void (*drain_log)(struct evc__tree *tree);
	/* join/wake_blocked.c, helper thread: wake blocked members. */
	uint64_t (*wake_blocked)(evc_coord *c, struct evc__helper_job *k);
	/* join/turn.c, loop thread: do all that is due.  false: r is gone. */
	bool (*turn)(evc_reactor *r);
	/* join/loop.c, loop thread: the loop is gone, answer its joins. */
	void (*cancel_joins)(evc_reactor *r, struct ev_loop *loop,
			     const struct evc__frame *f);
};

/* The data that all coordinators of a tree share; in the root. */
struct evc__tree {
	const struct evc__upper *upper; /* set at creation */
	/* A leaf: only locks of loop_wakers and refgates are taken under this
	   lock. */
	pthread_mutex_t lock;
	struct evc__helper *helper; /* lock; one for all */
	struct list left;           /* lock; calls left behind: wake/left.h */
	_Atomic bool has_helper;    /* atomic: the thread that makes the helper
				       -> joins */
	/* atomic: the helper -> joins: when the leading thread of the helper
	   began to serve its present client, in real monotonic time; it lies
	   ahead while the thread may take so long (evc__helper_takes); 0: no
	   client is being served */
	_Atomic uint64_t serving_ns;
	/* atomic: threads of the helper: so many of them are in a function that
	   describes something for a report */
	_Atomic uint32_t n_describing;
	/* atomic: any thread -> the watch thread, which sleeps on this word; see
	   join/watch.c */
	_Atomic uint32_t watch_seq;
	/* atomic: joins and hosts of the root -> the watch thread: number of the
	   last stop with an answer that has returned to the program */
	_Atomic uint32_t answered;
	/* atomic: the helper -> the watch thread, and joins: number of the last
	   stop with a report of its late members in the log, or with a join
	   that ignores late members and wants none */
	_Atomic uint32_t reported;
	struct evc__watch_thread *watch;  /* root's lock; NULL: none yet */
	struct evc__log_queue log;
	/* atomic: relieved threads of the helper, at their end -> joins: how
	   many ended threads are to be joined */
	_Atomic uint32_t n_ended;
	/* atomic: a member of the tree with a grace of its own -> joins */
	_Atomic bool own_grace;
	/* atomic: a scope with a phase -> joins */
	_Atomic bool phased;
	/* atomic: the timeline, while on; see trace.h */
	_Atomic(struct evc__trace *) trace;
	_Atomic(struct evc__trace *) recorded; /* the last timeline that was
						  on */
	struct evc__trace *rings; /* root's lock: all rings */
	_Atomic uint32_t n_coords; /* the last number of a coordinator */
};

/*
 * A coordinator: the shared fields, and a part for each room, which the header
 * of the room declares.
 */
struct evc_coord {
	/* The word: see WORD_FLAG; evcoord/coord.h reads the word at offset 0.
	   Alone on its cache line, so that a look costs nothing while the word
	   does not change. */
	_Alignas(64) _Atomic uint64_t word;

	/* set at creation */
	_Alignas(64) char name[48];
	unsigned flags;
	uint32_t number;         /* its number in the tree; the root is 1 */
	/* set at creation: the place in the tree; see life/scope.c */
	evc_coord *parent;       /* NULL: a root */
	struct evc__tree *tree;
	unsigned depth;
	struct list sibling;     /* parent's lock: in the parent's scopes */
	struct evc__coord_life life;
	struct evc__coord_status status;
	struct evc__coord_stop stop;

	_Alignas(64) pthread_mutex_t lock;
	struct list scopes;      /* lock: the scopes, by their sibling */
	struct evc__coord_helper helper;
	struct evc__coord_wake wake;
	struct evc__coord_member member;
	struct evc__coord_log log;
	struct evc__coord_loop loop;
	struct evc__coord_join join;
};

/* The home of c, or NULL. */
static inline evc_reactor *
evc__home(const evc_coord *c)
{
	return sync_load(&c->loop.home);
}

/* Is this process the one that made c? */
static inline bool
evc__same_process(const evc_coord *c)
{
	return sync_load_relaxed(&evc__fork_generation) ==
	       c->life.fork_generation;
}

/* ---- progress: set by callbacks and members on a thread ---- */

/* Coarse nanoseconds for marks: by c's own clock, if c has one. */
static inline uint64_t
evc__mark_now(const evc_coord *c)
{
	return c->status.clock != NULL ? c->status.clock(c->status.clock_arg)
				       : sync_mono_coarse();
}

#endif
