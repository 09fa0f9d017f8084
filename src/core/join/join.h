/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins from the inside: the pure decision, and the record that each join in
 * progress keeps.
 */
#ifndef EVC_CORE_JOIN_H
#define EVC_CORE_JOIN_H

#include "base/deadline.h"
#include "core/core.h"
#include "core/stop/scopes.h"
#include "core/wake/escalation.h"

/* A wait that ends later by more than that: nothing ran meanwhile. */
#define FROZEN_NS UINT64_C(100000000)

/* ---- join.c: no clock, no thread, no libev ---- */

/* When to look at those who cannot ring. */
struct evc__backoff {
	uint64_t step; /* 0: not begun */
	uint64_t due;
};

/* All that the decision depends on; times in nanoseconds. */
struct evc__view {
	uint64_t now;
	uint64_t start;       /* when the join began */
	uint64_t stop;        /* when the stop was asked for; 0: it was not */
	uint64_t grace_cut;       /* when the grace was cut; 0: it was not */
	uint64_t cut_grace; /* to how much */
	double grace;         /* seconds, resolved: >= 0 or INFINITY */
	uint64_t cap;         /* the deadline from above; 0: there is none */
	uint64_t put_off;     /* not before, because nobody ran; 0: no matter */
	struct evc__more_time more; /* see escalation.h */
	uint64_t drain; /* when a drain becomes a stop; 0: there is none */
	double longest;       /* the longest own grace of who is alive */
	unsigned alive;       /* who keeps this join waiting */
	unsigned foreground;  /* those of them that are not in the background */
	bool until_stop;      /* evc_run: decides nothing before a stop */
	bool probes;          /* somebody alive cannot ring */
};

enum evc__join_action {
	EVC__WAIT,  /* sleep wait_ns at most, or until step */
	EVC__PROBE, /* look at those who cannot ring, then decide again */
	EVC__ASK,   /* only background members are left: ask for the stop */
	EVC__EMPTY, /* nothing is alive */
	EVC__LATE   /* the grace is over */
};

struct evc__decision {
	enum evc__join_action next;
	uint64_t wait_ns; /* SYNC_FOREVER: until step */
};

struct evc__decision evc__decide(const struct evc__view *v,
				 struct evc__backoff *b);
/* When the grace is over. */
uint64_t evc__deadline(const struct evc__view *v);
/* ---- join_block.c ---- */

/* A call in which the calling thread waits or runs a loop: no cancellation
   point, and where it is a member, others do not count on it. */
struct evc__stay {
	evc_coord *c; /* kept by its gate, or NULL */
	int cancel;   /* the state before; waiting: it stands */
	bool waiting;
};
evc_status evc__stay_begin(struct evc__stay *in, evc_coord *c,
			   const char *func);
/* The same for c, if there is one, inside whose gate we are. */
void evc__stay_wait(struct evc__stay *in, evc_coord *c);
/* Nothing is done twice.  The last touch of c. */
void evc__stay_end(struct evc__stay *in);

/* Lock held: why the calling thread may not wait here: it is inside ev_run of a
   loop of c's, which would wait with it. */
evc_status evc__check_loop(const evc_coord *c, const char *func);

/* ---- budget.c; lock held ---- */

/* When the last of c's joins gives up; without any, when its grace is over. */
uint64_t evc__own_end(evc_coord *c);
/* When the stop was asked for; 0 when it was not. */
uint64_t evc__stop_time(evc_coord *c, uint64_t w);
/* To when the end of c's stop was put off, with a grace that was cut then. */
static inline uint64_t
evc__put_off(const evc_coord *c, uint64_t hurry)
{
	return hurry > c->join.put_off_at ? 0 : c->join.put_off_ns;
}
/* The grace of a join that asked for so much, resolved. */
double evc__grace(evc_coord *c, double asked, uint64_t w);

/* ---- join_list.c ---- */

struct evc__join {
	/* set at creation */
	evc_coord *c;
	evc_join_opts opts;       /* threads is not read later */
	struct evc__member *self; /* the member that joins, or NULL; of a scope
				     below it may be gone: not looked into */
	bool self_here;           /* it is a member of c itself */
	int tid;
	bool until_stop;
	bool internal;            /* the library's own: scope_join.c */
	bool stepped;             /* join_step.c: its grace counts from the
				     stop alone */
	evc_reactor *reactor;     /* NULL: it blocks */
	evc_join_fn *fn;          /* evented: who gets the verdict */
	void *arg;
	uint64_t start_ns;
	uint64_t reap_ns;         /* how long one reap may block */

	/* lock */
	struct list node;         /* c->joins until delivered */
	bool answered;
	evc_status result;
	evc_verdict verdict;
	struct evc__backoff backoff;
	bool stop_seen;
	uint64_t cap_ns;          /* the deadline from above */
	uint64_t looked_ns;       /* when it began its last wait; 0: none yet */
	bool told_phases;             /* it has told phases itself */
	bool forced;              /* force was used, if there was some: */
	uint64_t end_ns;          /* until when that may take effect, in real
				     monotonic time, */
	unsigned late_looks;      /* and as long as its loop's turn lasts */

	bool looking;             /* loop thread only: it is being looked at */

	/* loop thread only; lock as well for changes */
	struct list here;         /* reactor->joins */
	ev_timer timer;
	struct evc__stand stand;
};

/* Check options. */
evc_status evc__join_check(evc_coord *c, const evc_join_opts *o,
			   const char *func);
/* No lock: begin, with all that can be refused done. */
void evc__join_begin(struct evc__join *j, evc_coord *c,
		     const evc_join_opts *o);
/* Lock held, given up meanwhile: true when it is answered, else how long to
   sleep. */
bool evc__join_look(struct evc__join *j, uint64_t *ret_wait_ns);
/* Lock held: off the list. */
void evc__join_end(struct evc__join *j);
/* Lock held: whose hooks the join leaves out, as for evc__count_alive. */
int evc__hooks_not_of(const struct evc__join *j);

/* ---- join_end.c; lock held ---- */

/* Before the time is over, with as much left as one turn takes: the stop for
   phases that it has not reached.  true: there were some.  Else *wait_ns is no
   more than how long it is until then. */
bool evc__join_tell_in_time(struct evc__join *j, const struct evc__view *v,
		     uint64_t *wait_ns);
/* The time is over, but the process, or its machine, stood still for a while:
   nobody in it had the time that this join was to give.  Seen by a wait that ends
   later than a loaded machine makes it.  true: the end is put off by as much as
   it is late, and at most by the whole time there was; once for each stop. */
bool evc__join_put_off(struct evc__join *j, const struct evc__view *v);
/* The time is over: force where there is some, and a moment for that to take
   effect, once.  true: *ret_wait_ns is how long. */
bool evc__join_force(struct evc__join *j, uint64_t *ret_wait_ns);

/* ---- verdict.c ---- */

/* Lock held: what j answers with so many alive. */
void evc__verdict_fill(struct evc__join *j, uint64_t w, evc_verdict *v,
		       unsigned alive);
/* Lock held, nothing is alive: what a join would answer. */
void evc__verdict_now(evc_coord *c, uint64_t w, evc_verdict *v);
/* No lock: evc__log_errors, also for a round that no join has closed: the stop of
   such a round is over when nobody is alive. */
void evc__log_end(evc_coord *c);
/* No lock: tell the log, hand out the verdict. */
evc_status evc__join_result(const struct evc__join *j,
			    evc_verdict *ret_verdict);

/* ---- join_loop.c ---- */

/* Loop thread: j is in progress on its reactor; lock held as well: no more. */
void evc__join_enter(struct evc__join *j);
void evc__join_leave(struct evc__join *j);
/* Loop thread: look at all joins here, deliver what is answered.  false: the
   reactor is gone. */
bool evc__joins_turn(evc_reactor *r, const struct evc__frame *f);
/* Loop thread, the loop is gone: answer them with EVC_CANCELLED. */
void evc__joins_cancel(evc_reactor *r, struct ev_loop *loop,
		       const struct evc__frame *f);
/* Loop thread, outside ev_run: join by running the loop. */
bool evc__join_drive(struct evc__join *j);

/* ---- join_step.c ---- */

/* Nobody else can reach c: the descriptor goes. */
void evc__step_drop(evc_coord *c);

/* ---- turn.c ---- */

/* Loop thread: do what is due on r; false: r is gone. */
bool evc__turn(evc_reactor *r);

/* ---- run.c ---- */

/* An ev_run of ours: over says when it may be broken. */
struct evc__driver {
	evc_reactor *r;
	bool (*over)(struct evc__driver *d); /* loop thread, no lock */
	void *arg;
	bool stops_on_break; /* an ev_break by the application is a request */
	struct evc__stand stand;
	bool ended;
	const void *frame;   /* the ev_run is inside it */
};
/* Loop thread, outside ev_run; the reactor hears (evc__reactor_hear).  false:
   this is a fork child by now, and nothing of ours is on the loop. */
bool evc__drive(struct evc__driver *d);
/* Loop thread: if the ev_run of ours is over, end it. */
void evc__driver_turn(evc_reactor *r);

/* ---- phases.c ---- */

/* Lock held: tell the phases whose turn it is.  Returns when to look again, in
   nanoseconds of c's clock; SYNC_FOREVER: when something rings. */
uint64_t evc__phases_drive(evc_coord *c);
/* Lock held: the time of the last join is nearly over: tell what was not told.
   false: there was nothing. */
bool evc__phases_tell_in_time(evc_coord *c);
/* Lock held: the last join leaves: likewise. */
void evc__phases_tell_all(evc_coord *c);

/* ---- children.c: what joins and loops do for what lives below ---- */

/* Lock held, given up meanwhile: reap, and drive phases, in the scopes that
   have step, and do what is due for runners.  true: the lock was given up. */
bool evc__children_attend(evc_coord *c, uint64_t reap_ns);
/* Lock held, given up meanwhile: look at all that cannot ring, here and below.
   true: the lock was given up. */
bool evc__probe_all(evc_coord *c);
/* Lock held, given up meanwhile: threads that have ended are members no more,
   here and below, though nobody joins.  Runners wait for who does. */
void evc__bury_threads(evc_coord *c, uint64_t reap_ns);
/* Lock held, given up meanwhile: the grace is over: use force where there is
   some.  true: somebody may end within a moment. */
bool evc__force_all(evc_coord *c);
/* Loop thread, no lock: the runners of its loop. */
void evc__runners_turn(evc_coord *c, evc_reactor *r);

/* ---- budget.c ---- */

/* No lock: when what is above c ends its patience with c; SYNC_FOREVER: never,
   or it was not stopped. */
uint64_t evc__budget_end(evc_coord *c);

/* ---- drain.c; lock held ---- */

/* Ask for the stop that the drain becomes. */
void evc__drain_ask(evc_coord *c);
/* It is over, or taken back. */
void evc__drain_forget(evc_coord *c);

#endif
