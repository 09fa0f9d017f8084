/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The escalation from the inside: how threads are woken, and the history of a
 * stop.
 *
 * A waker is a way to wake a thread or member: a function to be called, or a
 * kick.  The helper thread goes through a coordinator's wakers from its stop on
 * (wake_blocked.c); reports read the history under the lock.
 */
#ifndef EVC_CORE_ESCALATION_H
#define EVC_CORE_ESCALATION_H

#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"

struct evc__helper_job;
struct evc__mark;
struct evc__member;
struct evc__self;

/* Statistics since the coordinator was made; its lock. */
#define TOOK_BUCKETS 9
struct evc__stats {
	uint64_t stops;     /* stops that a join has ended, or a clear */
	uint64_t kicks, unblocks;
	uint64_t stragglers; /* late members that joins have named; each join
				counts its own */
	uint64_t missed;    /* missed runs of loopers that have ended */
	uint64_t took[TOOK_BUCKETS + 1]; /* stops by duration */
	double took_sum;
};
/* Seconds: took[i] counts stops up to evc__took_bounds[i], the last element all
   others. */
extern const double evc__took_bounds[TOOK_BUCKETS];

/* The steps of an escalation, in their order; each is an index of step_ns[]. */
enum evc__escalation_step {
	STEP_TOLD,
	STEP_HOOKS,
	STEP_KICKS,
	STEP_ENDING,
	STEP_ABANDONED,
	N_STEPS
};

/* An escalation as set by a call: never changed, kept until its coordinator
   goes. */
struct evc__escalation {
	evc_escalation_opts o;
	struct evc__escalation *before; /* the escalation set before */
};

struct evc__waker {
	/* set at creation */
	evc_coord *c;
	struct evc__member
		*m; /* the member to wake; NULL: a thread or a looper that is no
		       struct evc__member */
	void (*fn)(void *arg); /* NULL: kick */
	void *arg;
	bool repeat;
	pthread_t thread;      /* the thread to kick when m is NULL */
	int tid;               /* the thread that pushed the waker; 0: a
				  member's waker */
	/* only the thread that pushed the waker */
	evc_id id;             /* cancel hooks: number of the hook; waker of a
				  member that has left: its id */
	struct evc__waker *outer; /* the cancel hook pushed before */
	/* lock */
	struct list node;      /* in c->wakers */
	int running;           /* the thread that is inside fn, or 0 */
	bool removed;
	bool idle;             /* nothing to wake yet */
	bool left;             /* the member is gone: the waker is in
				  c->wake.echoes until fn has returned */
	struct evc__later *then; /* call when fn has returned; or NULL */
	uint32_t pass;         /* the latest pass that looked at the waker */
	uint32_t stop;         /* number of the stop that the waker works for */
	uint64_t due, step;    /* by c's clock */
	unsigned calls;        /* calls in that stop */
	/* atomic: the helper -> its thread: number of the stop of the last
	   call */
	_Atomic uint32_t woken;
};

/* This part of a coordinator. */
struct evc__coord_wake {
	/* lock */
	struct list wakers;  /* wakers of members and of pieces of code */
	struct list echoes;  /* wakers with a function that still runs for a
				member that is gone */
	unsigned n_echoes, n_pushed;
	struct evc__helper_job *wake_blocked;
	uint32_t wake_pass;
	struct evc__helper_job *ending; /* job for the step ENDING, or NULL */
	uint64_t step_ns[N_STEPS]; /* when the present stop reached each step;
				      0: not reached, or STEP_TOLD, which is the
				      stop itself */
	unsigned n_kicks, n_unblocks; /* in the present stop */
	const char *kicks_lost; /* why kicks wake no thread in the present stop;
				   or NULL */
	int kick_error;         /* of the last kick of the present stop that was
				   not sent; 0: none */
	struct list extensions; /* of the present stop */
	uint64_t last_mark;  /* the latest mark of members that have left; see
				escalation.c */
	/* atomic: evc_escalation_set -> all threads; NULL: the parent's
	   holds */
	_Atomic(struct evc__escalation *) escalation;
	/* atomic: signal handlers -> joins: a second signal; see cut_grace.c */
	_Atomic uint64_t grace_cut;
	_Atomic uint64_t cut_grace_ns;
	struct evc__stats stats; /* lock */
};

/* More time for a stop, granted by evc_extend_stop; in c->wake.extensions. */
struct evc__extension {
	struct list node;
	evc_id id;
	double granted; /* counted from the end as it stood, or from the time of
			   the call */
	uint64_t ns;    /* how far the extension moves that end */
	char name[48], reason[96];
};

/* ---- wake_blocked.c ---- */

/* Helper thread: call the wakers of c that are due.  Returns how long the
   helper may sleep until the next pass. */
uint64_t evc__wake_blocked(evc_coord *c, struct evc__helper_job *job);

/* ---- waker.c; lock held ---- */

/* m is new: m is to be woken as o says.  < 0: no memory, no helper, no signal
   for kicks. */
evc_status evc__wakers_add(struct evc__member *m, const evc_member_opts *o,
			   void *arg, const char *func);
/* m leaves, still counted as alive, or never began: m is not woken any more.  A
   function that runs at this moment keeps joins waiting in the place of m. */
void evc__wakers_drop(struct evc__member *m);
/* A waker without a struct evc__member; fn NULL: kick the calling thread.
   NULL: no waker to be had. */
struct evc__waker *evc__waker_add(evc_coord *c, void (*fn)(void *arg),
				  void *arg, bool repeat);
void evc__waker_leave(struct evc__waker *k, evc_id id);
/* Push a waker for a piece of code, as the innermost waker of the calling
   thread; evc__waker_pop takes out a waker at any depth. */
struct evc__waker *evc__waker_push(evc_coord *c, void (*fn)(void *arg),
				   void *arg, bool repeat);
void evc__waker_pop(struct evc__waker *k);
/* To be called before *to is copied back into evc__self(): take over the cancel
   hooks and the last wake-up that have changed meanwhile. */
void evc__self_keep(struct evc__self *to);
/* m has ended and was joined: free the cancel hooks in c that its thread has
   not popped. */
void evc__wakers_left(evc_coord *c, const struct evc__member *m);
/* No lock: free the cancel hooks of the calling thread, which is about to
   end. */
void evc__wakers_end(void);
/* Does a waker of the former member with this id still run, on another
   thread? */
bool evc__echoes(const evc_coord *c, evc_id id);
/* How often was m unblocked and kicked in the present stop? */
void evc__wakers_count(const struct evc__member *m, unsigned *ret_unblocks,
		       unsigned *ret_kicks);

/* ---- escalation.c ---- */

/* The escalation that holds for c; never NULL.  No lock needed. */
const evc_escalation_opts *evc__escalation(const evc_coord *c);
/* The reasons for a stop to end later than its grace says; lock held. */
struct evc__more_time {
	uint64_t budget;   /* the end of the budget; 0: no budget */
	uint64_t asked;    /* nanoseconds that evc_extend_stop has added */
	uint64_t progress; /* the end that progress gives; 0: no progress */
	uint64_t hard;     /* the end of all extensions; 0: no extension at
			      all */
};
struct evc__more_time evc__more_time(evc_coord *c, uint64_t stop);
/* Lock held: when the step is due, for a stop that ends at `end`. */
uint64_t evc__step_due(const evc_coord *c, enum evc__escalation_step r,
		       uint64_t stop, uint64_t end);
/* Lock held: note that the step is reached.  true: reached now for the first
   time. */
bool evc__step_reached(evc_coord *c, enum evc__escalation_step r);
/* Lock held: the owner of progress mark m leaves. */
void evc__mark_leaves(evc_coord *c, const struct evc__mark *m);
/* Lock held: forget the state of a stop that is over. */
void evc__escalation_forget(evc_coord *c);
/* No other thread can reach c any more. */
void evc__escalation_free(evc_coord *c);
/* Lock held: count a stop that is over and took so many seconds. */
void evc__took(evc_coord *c, double seconds);

/* ---- cut_grace.c ---- */

/* The end of the text of the reason that has cut the grace. */
#define CUTS_GRACE ", which cuts the grace"

/* Signal-safe: cut the grace of the joins of the stop with this number. */
void evc__cut_grace(evc_coord *c, uint32_t stop);
/* The stop with this number was cleared. */
void evc__cut_grace_forget(evc_coord *c, uint32_t stop);
/* When the grace of the stop was cut, or 0. */
uint64_t evc__grace_cut_at(const evc_coord *c, uint32_t stop);

#endif
