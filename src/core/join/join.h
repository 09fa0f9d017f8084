/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins from the inside: the pure decision, and the record of a join in
 * progress.
 */
#ifndef EVC_CORE_JOIN_H
#define EVC_CORE_JOIN_H

#include "base/deadline.h"
#include "core/core.h"
#include "core/stop/scopes.h"

/* When a wait ends more than this time too late, the process, or its machine,
   stood still meanwhile. */
#define FROZEN_NS UINT64_C(100000000)

/* ---- join.c: no clock, no thread, no libev ---- */

/* When to look at members that cannot ring. */
struct evc__backoff {
	uint64_t step; /* 0: not begun */
	uint64_t due;
};

/* The input of evc__decide; times in nanoseconds. */
struct evc__view {
	uint64_t now;
	uint64_t start;       /* begin of the join */
	uint64_t stop;        /* time of the request; 0: no stop */
	uint64_t grace_cut;       /* when the grace was cut; 0: it was not */
	uint64_t cut_grace; /* the grace after the cut */
	double grace;         /* seconds, resolved: >= 0 or INFINITY */
	uint64_t cap;         /* the deadline from above; 0: none */
	uint64_t put_off;     /* the end is not before this time, because the
				 process stood still; 0: no such time */
	struct evc__more_time more; /* see escalation.h */
	uint64_t drain; /* when a drain becomes a stop; 0: no drain */
	double longest;       /* the longest own grace of members alive */
	unsigned alive;       /* members that keep this join waiting */
	unsigned foreground;  /* members of `alive` not in the background */
	bool until_stop;      /* evc_run: the join does not end before a stop */
	bool probes;          /* a member alive may end without a ring */
	bool rarely;          /* ... but hardly ever does */
};

enum evc__join_action {
	EVC__WAIT,  /* sleep wait_ns at most, or until a ring */
	EVC__PROBE, /* look at members that cannot ring, then decide again */
	EVC__ASK,   /* only background members are left: ask for the stop */
	EVC__EMPTY, /* nothing is alive */
	EVC__LATE   /* the grace is over */
};

struct evc__decision {
	enum evc__join_action next;
	uint64_t wait_ns; /* SYNC_FOREVER: until a ring */
};

struct evc__decision evc__decide(const struct evc__view *v,
				 struct evc__backoff *b);
/* When the grace is over. */
uint64_t evc__deadline(const struct evc__view *v);
/* ---- stay.c ---- */

/* A call in which the calling thread waits or runs a loop.  The thread cannot
   be cancelled meanwhile; when the thread is a member, phases do not wait for
   this member meanwhile. */
struct evc__stay {
	evc_coord *c; /* the calling thread is inside its refgate; or NULL */
	int cancel;   /* the thread's cancel state before the call */
	bool waiting; /* the call is not over */
};
evc_status evc__stay_begin(struct evc__stay *in, evc_coord *c,
			   const char *func);
/* evc__stay_begin without checks.  The caller has entered the refgate of c, if
   c is not NULL; evc__stay_end leaves the refgate. */
void evc__stay_wait(struct evc__stay *in, evc_coord *c);
/* The call is over.  After this function c may be gone.  A second call does
   nothing. */
void evc__stay_end(struct evc__stay *in);

/* Lock held: refuse a wait inside ev_run of a loop of c: the loop would stand
   still during the wait, and the wait would never end. */
evc_status evc__check_loop(const evc_coord *c, const char *func);
/* Refuse a join by a thread of a scope with no_join, when c is that scope or a
   coordinator above. */
evc_status evc__check_self(const evc_coord *c, const char *func);
/* Lock held: refuse a call that runs the loop of the calling thread: the library
   cannot run a host. */
evc_status evc__check_host(const evc_coord *c, const char *func);

/* ---- budget.c; lock held ---- */

/* No lock: how long a signal is kept until a join begins: half of the time of a
   stop. */
uint64_t evc__kept_time(const evc_coord *c);
/* No lock: the seconds of a stop when no join says how long it waits: the budget
   of c, else its grace. */
double evc__stop_grace(evc_coord *c, uint64_t w);
/* When the last join of c gives up; without a join, when the time of
   evc__stop_grace is over. */
uint64_t evc__own_end(evc_coord *c);
/* Until when a join of the stop with this number that is answered may take to
   return; 0: none is answered. */
uint64_t evc__returns_end(const evc_coord *c, uint32_t stop);
/* When the stop was requested; 0: no stop. */
uint64_t evc__stop_time(evc_coord *c, uint64_t w);
/* Until when the end of c's stop was put off, for a grace that was cut at
   `cut_ns`. */
static inline uint64_t
evc__put_off(const evc_coord *c, uint64_t cut_ns)
{
	return cut_ns > c->join.put_off_at ? 0 : c->join.put_off_ns;
}
/* The grace of a join with the option `asked`, resolved. */
double evc__grace(evc_coord *c, double asked, uint64_t w);
/* Does the grace come from the kind of the stop alone, a signal's?  Then it
   counts from the stop also for a join that begins later. */
bool evc__grace_by_signal(evc_coord *c, double asked, uint64_t w);
/* From when the grace of j counts, if the stop came before; 0: from the
   stop. */
struct evc__join;
uint64_t evc__join_start_ns(const struct evc__join *j, uint64_t w);

/* ---- list.c ---- */

struct evc__join {
	/* set at creation */
	evc_coord *c;
	evc_join_opts opts;       /* `threads` is not read later */
	struct evc__member *self; /* the member that joins, or NULL; a member of
				     a scope below may be gone: never
				     dereferenced then */
	bool self_here;           /* self is a member of c itself */
	int tid;
	bool until_stop;          /* also by EVC_JOIN_UNTIL_STOP */
	bool internal;            /* the library's own: scope_join.c */
	bool stepped;             /* step.c: the grace counts from the stop
				     alone */
	evc_reactor *reactor;     /* NULL: a blocking join */
	evc_join_fn *fn;          /* evented: gets the verdict */
	void *arg;
	uint64_t start_ns;
	uint64_t reap_ns;         /* how long one reap may block */

	/* lock */
	struct list node;         /* in c->join.all until delivered */
	bool answered;
	uint32_t stop_number; /* of the stop that is answered, on the root; or
				 0 */
	evc_status result;
	evc_verdict verdict;
	struct evc__backoff backoff;
	bool stop_seen;
	uint64_t cap_ns;          /* the deadline from above */
	uint64_t looked_ns;       /* when the last wait began; 0: no wait yet */
	bool told_phases;             /* the join has told phases itself */
	bool asked_loops;         /* see evc__join_ask_loops */
	bool forced;              /* force was used */
	uint64_t end_ns;          /* until when force may take effect, in real
				     monotonic time; 0: no force */
	unsigned late_looks;      /* turns of its loop after the end of the
				     grace */

	bool looking;             /* loop thread only: evc__join_look is running
				     for this join */

	/* loop thread only; changes need the lock as well */
	struct list here;         /* in reactor->joins */
	struct evc__timer timer;
	struct evc__stand stand;
};

/* Check options. */
evc_status evc__join_check(evc_coord *c, const evc_join_opts *o,
			   const char *func);
/* No lock: begin, after all checks that can refuse. */
void evc__join_begin(struct evc__join *j, evc_coord *c,
		     const evc_join_opts *o);
/* Lock held, given up meanwhile: reap ended members, count the living, and
   decide.  true: j has its answer; false: *ret_wait_ns is how long to sleep. */
bool evc__join_look(struct evc__join *j, uint64_t *ret_wait_ns);
/* Lock held: take j off the list. */
void evc__join_end(struct evc__join *j);
/* Lock held: hooks_not_of of evc__count_alive for this join. */
int evc__hooks_not_of(const struct evc__join *j);

/* ---- count_alive.c, for names.c; lock held ---- */

/* The parameters of a count, and of a list of names. */
struct evc__look {
	const evc_coord *top; /* the joined coordinator */
	const struct evc__member *self;
	bool hooks;
	int not_of;
	bool live; /* names: without members that have ended and were not
		      joined yet */
};
/* Does m keep a join of c waiting?  self has begun this join, and does not
   count; nor do members that join c. */
bool evc__keeps_waiting(const evc_coord *c, const struct evc__member *m,
			const struct evc__member *self);
/* Does h keep a join of c waiting?  not_of: see evc__count_alive. */
bool evc__hook_keeps_waiting(const evc_coord *c, const struct evc__hook *h,
			     int not_of);
/* No lock: does s have neither hooks nor `ended` to be called? */
bool evc__nothing_to_call(evc_coord *s);

/* ---- end.c; lock held ---- */

/* Shortly before the end: let the other loops with tasks turn once, so that
   they say which tasks are left.  Else *wait_ns is lowered to the time until
   then. */
void evc__join_ask_loops(struct evc__join *j, const struct evc__view *v,
			 uint64_t *wait_ns);

/* Shortly before the end, with the time of one turn left: tell the phases that
   the stop has not reached.  true: there were some.  Else *wait_ns is lowered
   to the time until then. */
bool evc__join_tell_in_time(struct evc__join *j, const struct evc__view *v,
		     uint64_t *wait_ns);
/* The time is over.  But when the process, or its machine, stood still for a
   while, the members did not have the whole time.  The sign is a wait that
   ended more than FROZEN_NS too late; a loaded machine delays a wait less.
   true: the end is put off by the lateness of the wait, but at most by the time
   of the whole join; only once for each stop. */
bool evc__join_put_off(struct evc__join *j, const struct evc__view *v);
/* The time is over: use force where possible, and give the force a moment to
   take effect, once.  true: *ret_wait_ns is how long. */
bool evc__join_force(struct evc__join *j, uint64_t *ret_wait_ns);

/* ---- verdict.c ---- */

/* Lock held: the answer of j with so many alive. */
void evc__verdict_fill(struct evc__join *j, uint64_t w, evc_verdict *v,
		       unsigned alive);
/* Lock held, nothing is alive: the answer that a join would give. */
void evc__verdict_now(evc_coord *c, uint64_t w, evc_verdict *v);
/* No lock: evc__log_errors, also for a round that no join has closed: the stop
   of such a round is over when no member is alive. */
void evc__log_end(evc_coord *c);
/* No lock: tell the log, hand out the verdict. */
evc_status evc__join_result(const struct evc__join *j,
			    evc_verdict *ret_verdict);

/* ---- loop.c ---- */

/* Loop thread: the reactor of j drives j from now on. */
void evc__join_enter(struct evc__join *j);
/* Loop thread, lock held: the reactor of j does not drive j any more. */
void evc__join_leave(struct evc__join *j);
/* Loop thread: look at all joins of r, deliver the answered.  false: the
   reactor is gone. */
bool evc__joins_turn(evc_reactor *r, const struct evc__frame *f);
/* Loop thread, the loop is gone: answer r's joins with EVC_CANCELLED. */
void evc__joins_cancel(evc_reactor *r, struct ev_loop *loop,
		       const struct evc__frame *f);
/* Loop thread, outside ev_run: join by running the loop. */
bool evc__join_drive(struct evc__join *j);

/* ---- step.c ---- */

/* No other thread can reach c: close the descriptor. */
void evc__step_drop(evc_coord *c);

/* ---- turn.c ---- */

/* Loop thread: do the work that is due on r; false: r is gone. */
bool evc__turn(evc_reactor *r);

/* ---- run.c ---- */

/* Loop thread, outside ev_run; the reactor hears (evc__reactor_hear).  false:
   this is a fork child by now, and the library has nothing on the loop. */
bool evc__drive(struct evc__driver *d);
/* Loop thread: end the ev_run of the library if the run is over. */
void evc__driver_turn(evc_reactor *r);

/* ---- phases.c ---- */

/* Lock held: tell the phases that have their turn now.  Returns when to look
   again, in nanoseconds of c's clock; SYNC_FOREVER: at a ring. */
uint64_t evc__phases_drive(evc_coord *c);
/* Lock held: has a scope, at any depth, yet to be told of the stop of its
   parent? */
bool evc__phases_wait(evc_coord *c);
/* Lock held: the time of the last join is nearly over: tell all scopes not told
   yet.  false: there were none. */
bool evc__phases_tell_in_time(evc_coord *c);
/* Lock held: the last join leaves: tell all scopes not told yet. */
void evc__phases_tell_all(evc_coord *c);

/* ---- children.c: work of joins and loops for the scopes below ---- */

/* Lock held, given up meanwhile: reap, and drive phases, in the scopes that
   have rung, and serve runners.  true: the lock was given up. */
bool evc__children_attend(evc_coord *c, uint64_t reap_ns);
/* Lock held, given up meanwhile: look at all members that cannot ring, in c and
   below.  true: the lock was given up. */
bool evc__probe_all(evc_coord *c);
/* Lock held, given up meanwhile: threads that have ended leave the register, in
   c and below, without a join.  Runners wait for a join. */
void evc__bury_threads(evc_coord *c, uint64_t reap_ns);
/* Lock held, given up meanwhile: the grace is over: use force where possible.
   true: a member may end within a moment. */
bool evc__force_all(evc_coord *c);
/* Loop thread, no lock: serve the runners of r's loop. */
void evc__runners_turn(evc_coord *c, evc_reactor *r);

/* ---- budget.c ---- */

/* No lock: the deadline that coordinators above set for c; SYNC_FOREVER: none,
   or c was not stopped. */
uint64_t evc__budget_end(evc_coord *c);

/* ---- drain.c; lock held ---- */

/* Ask for the stop that the drain becomes. */
void evc__drain_ask(evc_coord *c);
/* The drain is over, or taken back. */
void evc__drain_forget(evc_coord *c);

#endif
