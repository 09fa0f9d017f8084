/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The escalation from the inside: who is woken how, and what a stop has done.
 *
 * A waker is one way to wake one thread or member: a function to be called, or
 * a kick.  The helper thread goes through a coordinator's wakers from its stop
 * on (wake_blocked.c); what it has done so far reports read under the lock.
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

/* What has happened since a coordinator was made; its lock. */
#define TOOK_BUCKETS 9
struct evc__stats {
	uint64_t stops;     /* that a join has ended, or that were cleared */
	uint64_t kicks, unblocks;
	uint64_t stragglers; /* named by joins, each join's once */
	uint64_t missed;    /* runs of loopers that have ended */
	uint64_t took[TOOK_BUCKETS + 1]; /* stops by how long they took */
	double took_sum;
};
/* Seconds: took[i] counts those up to it, the last one all others. */
extern const double evc__took_bounds[TOOK_BUCKETS];

/* Steps, in their order: c->step_ns[]. */
enum evc__escalation_step {
	STEP_TOLD,
	STEP_HOOKS,
	STEP_KICKS,
	STEP_ENDING,
	STEP_ABANDONED,
	N_STEPS
};

/* An escalation as it was set: never changed, kept until its coordinator goes. */
struct evc__escalation {
	evc_escalation_opts o;
	struct evc__escalation *before; /* the one that it replaced */
};

struct evc__waker {
	/* set at creation */
	evc_coord *c;
	struct evc__member
		*m; /* whose; NULL: of a thread or a looper that is no
				  struct evc__member */
	void (*fn)(void *arg); /* NULL: kick */
	void *arg;
	bool repeat;
	pthread_t thread;      /* who is kicked when m is NULL */
	int tid;               /* who pushed it; 0: it is a member's */
	/* the thread that pushed it only */
	evc_id id;             /* cancel hooks: its number; of a member that has
				  left: its id */
	struct evc__waker *outer; /* what that thread pushed before */
	/* lock */
	struct list node;      /* in c->wakers */
	int running;           /* the thread that is in fn, or 0 */
	bool removed;
	bool idle;             /* there is nothing to wake yet */
	bool left;             /* its member is gone: in c->echoes */
	uint32_t pass;         /* the latest in which it was looked at */
	uint32_t stop;         /* the number of the stop it works for */
	uint64_t due, step;    /* by c's clock */
	unsigned calls;        /* in that stop */
	/* atomic: the helper -> its thread: the number of the stop in which it
	   was called last */
	_Atomic uint32_t woken;
};

/* The part of a coordinator. */
struct evc__coord_wake {
	/* lock */
	struct list wakers;  /* of members and of stretches of code */
	struct list echoes;  /* wakers that run, whose members are gone */
	unsigned n_echoes, n_pushed;
	struct evc__helper_job *wake_blocked;
	uint32_t wake_pass;
	struct evc__helper_job *ending; /* or NULL */
	uint64_t step_ns[N_STEPS]; /* when the present stop reached each; 0:
				      not, or the first, which is the stop */
	unsigned n_kicks, n_unblocks; /* in the present stop */
	const char *kicks_lost; /* in it: why kicks wake nobody; or NULL */
	struct list extensions; /* of the present stop */
	uint64_t last_mark;  /* the latest of those that have left; see
				escalation.c */
	struct evc__stats stats;
	/* atomic: evc_escalation_set -> anybody; NULL: that of the parent */
	_Atomic(struct evc__escalation *) escalation;
	/* atomic: signal handlers -> joins: a second signal; see cut_grace.c */
	_Atomic uint64_t grace_cut;
	_Atomic uint64_t cut_grace_ns;
};

/* More time that evc_extend_stop has granted; in c->wake.extensions. */
struct evc__extension {
	struct list node;
	evc_id id;
	double granted; /* from the end as it stood, or from when it was asked
			   for */
	uint64_t ns;    /* so much it moves that end */
	char name[48], reason[96];
};

/* ---- wake_blocked.c ---- */

/* Helper thread: go through c's wakers; when to do so again. */
uint64_t evc__wake_blocked(evc_coord *c, struct evc__helper_job *job);

/* ---- waker.c; lock held ---- */

/* m is new: it is to be woken as o says.  < 0: no memory, no helper, no signal
   to kick with. */
evc_status evc__wakers_add(struct evc__member *m, const evc_member_opts *o,
			   void *arg, const char *func);
/* m leaves and counts as alive still, or never began: it is not woken any more.
   What runs at this moment keeps joins waiting in its place. */
void evc__wakers_drop(struct evc__member *m);
/* The same for what is no struct evc__member; fn NULL: kick the calling
   thread.  NULL: none to be had. */
struct evc__waker *evc__waker_add(evc_coord *c, void (*fn)(void *arg),
				  void *arg, bool repeat);
void evc__waker_leave(struct evc__waker *k, evc_id id);
/* Given up while it runs; afterwards it does not run, and its memory is gone.
   Not by the helper thread. */
void evc__waker_remove(struct evc__waker *k);
/* The same, for a stretch of the calling thread: the innermost that it has
   pushed; waker_pop takes one out, wherever it stands. */
struct evc__waker *evc__waker_push(evc_coord *c, void (*fn)(void *arg),
				   void *arg, bool repeat);
void evc__waker_pop(struct evc__waker *k);
/* The calling thread is about to be what *to says it was: what it has pushed, and
   what has woken it, stays. */
void evc__self_keep(struct evc__self *to);
/* m has ended and was joined: what its thread has not popped goes. */
void evc__wakers_left(const struct evc__member *m);
/* No lock: the same for the calling thread, which is about to end. */
void evc__wakers_end(void);
/* Does something of the former member with this id run still, on another
   thread? */
bool evc__echoes(const evc_coord *c, evc_id id);
/* How often was m unblocked and kicked in the present stop? */
void evc__wakers_count(const struct evc__member *m, unsigned *ret_unblocks,
		       unsigned *ret_kicks);

/* ---- escalation.c ---- */

/* The escalation that holds for c; never NULL.  No lock needed. */
const evc_escalation_opts *evc__escalation(const evc_coord *c);
/* How a stop may end later than its grace says; lock held. */
struct evc__more_time {
	uint64_t budget;   /* when the budget is over; 0: there is none */
	uint64_t asked;    /* so many nanoseconds more, by evc_extend_stop */
	uint64_t progress; /* until then, because somebody gets on; 0: nobody */
	uint64_t hard;     /* nothing is extended beyond; 0: nothing at all */
};
struct evc__more_time evc__more_time(evc_coord *c, uint64_t stop);
/* Lock held: when the step is due, of a stop that ends then. */
uint64_t evc__step_due(const evc_coord *c, enum evc__escalation_step r, uint64_t stop,
		       uint64_t end);
/* Lock held: the step was reached now, unless it had been before.  true: now. */
bool evc__step_reached(evc_coord *c, enum evc__escalation_step r);
/* Lock held: who says where it is by m goes. */
void evc__mark_leaves(evc_coord *c, const struct evc__mark *m);
/* Lock held: what the stop that is over has left is forgotten. */
void evc__escalation_forget(evc_coord *c);
/* Nobody can reach c any more. */
void evc__escalation_free(evc_coord *c);
/* Lock held: a stop is over that took so many seconds. */
void evc__took(evc_coord *c, double seconds);

/* ---- cut_grace.c ---- */

/* Signal-safe: cut the grace of the joins of the stop with this number. */
void evc__cut_grace(evc_coord *c, uint32_t stop);
/* That stop was cleared. */
void evc__cut_grace_forget(evc_coord *c, uint32_t stop);
/* When that was, or 0. */
uint64_t evc__grace_cut_at(const evc_coord *c, uint32_t stop);

#endif
