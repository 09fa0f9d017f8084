/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members from the inside: the entries of the register, and the operations of
 * each kind.
 */
#ifndef EVC_CORE_MEMBER_H
#define EVC_CORE_MEMBER_H

#include <evcoord.h>

#include "base/notify_set.h"
#include "base/list.h"
#include "base/sync.h"
#include "core/status/status.h"

struct evc__member;

/*
 * The first part of each record with an id: of every member but tasks and
 * scopes.
 */
struct evc__entry {
	union {
		evc_id id;              /* set at creation */
		struct table_node node; /* lock: in the table of ids */
	};
	/* set at creation */
	uint32_t round;
	uint16_t flags;
	uint8_t kind;
	bool on_loop; /* true: a struct evc__looper, on a loop; false: a struct
			 evc__member */
};

struct evc__looper_ops;
struct evc__runner_driver;

/* A call of a release function of the program's that becomes due under the
   lock, and is made without: by evc__later_run. */
struct evc__later {
	struct evc__later *next;
	void (*release)(void *arg);
	void *arg;
};

/* The result of a member, for evc_member_wait; see outcome.c. */
struct evc__outcome {
	union {
		evc_id id;              /* lock: set when the member has ended */
		struct table_node node; /* lock: in c->member.outcomes */
	};
	struct list order;  /* lock: in c->member.kept */
	const void *waiter; /* lock: the wait that came first; NULL: none */
	/* written by the member's thread before DONE, or under the lock */
	evc_status result;
	bool known;         /* else the member is removed without a result */
};

/* This part of a coordinator. */
struct evc__coord_member {
	/* lock */
	struct evc__ids ids;
	struct list all;     /* threads, holds, runners; by id */
	struct list dormant; /* paused loopers that are to get threads of their
				own; made by the first looper */
	struct list runners; /* used by members/; made by the first runner */
	unsigned n;          /* entries of `all` */
	unsigned n_threads, n_probed, n_own_grace, n_background; /* counts of
								    entries of
								    `all` */
	unsigned n_lingering, n_runners; /* counts of entries of `all` */
	unsigned n_ended;    /* members that have ended in this round; tasks do
				not count */
	const struct evc__runner_driver *driver; /* set by the first runner */
	const struct evc__looper_ops *looper_ops; /* set by the first looper */
	struct table outcomes; /* of members that have ended */
	struct list kept;      /* the same, in the order of the ends */
	unsigned n_outcomes;   /* entries of `kept` */
	struct evc__later *later, **later_end; /* lock: in the order of due */
	evc_coord *left; /* lock: scopes of ended threads, to be freed; by their
			    life.next_left */
	/* lock: calls that a join has left to the helper: those in `later`, and
	   all that have not returned, for which joins wait */
	unsigned n_left, n_awaited;
	/* atomic: written under the lock: is there a call to be made, or a
	   scope to be freed? */
	_Atomic bool has_later;
	/* atomic chain of threads that have ended; see member.c */
	_Atomic(struct evc__member *) done;
	/* atomic: counts of the scopes below, at any depth */
	_Atomic uint32_t n_probed_below, n_lingering_below, n_ended_below;
};

/* ---- ids.c: the table of ids; lock held ---- */

/* Make room for `more` entries; false: no memory. */
bool evc__id_reserve(evc_coord *c, unsigned more);
/* Number e, unless e has a number, and put e in; there is room. */
void evc__id_add(evc_coord *c, struct evc__entry *e);
void evc__id_remove(evc_coord *c, struct evc__entry *e);
struct evc__entry *evc__id_find(const evc_coord *c, evc_id id);

/* The operations of a kind of thread for the register; see pthread.c. */
struct evc__member_ops {
	/* Lock held, never blocks.  true: m has ended and is joined.  NULL: m
	   is no thread, and is not reaped either. */
	bool (*probe)(struct evc__member *m);
	/* No lock; the caller has claimed m.  Joins the thread of m, and blocks
	   for ns at most.  true: m is joined. */
	bool (*reap)(struct evc__member *m, uint64_t ns);
	/* Lock held: m's pidfd became readable; ends the watch, or is called
	   again after a moment. */
	void (*vanished)(struct evc__member *m);
	/* Lock held: m is about to be freed. */
	void (*release)(struct evc__member *m);
	/* Lock held, perhaps given up meanwhile: evc_member_remove.  0: done;
	   1: wait for a ring and ask again (a member that is gone by then is
	   done); < 0: refused.  NULL: members of this kind are not removed,
	   they end.  Hooks, loopers on threads of their own and runners have
	   the function; a thread that has ended is not asked. */
	int (*remove)(struct evc__member *m);
};

/* The last progress of a member: evc_progress. */
struct evc__mark {
	const evc_coord *c; /* set at creation */
	/* atomic, relaxed: the member's thread -> joins, reports */
	_Atomic(const char *) text; /* static; NULL: no progress yet */
	_Atomic uint64_t ns;        /* time of the text: evc__mark_now() */
};

struct evc__waker;

/*
 * An entry of the register.
 */
struct evc__member {
	struct evc__entry e; /* first: the id table leads here */
	/* set at creation */
	evc_coord *c;
	const struct evc__member_ops *ops; /* for threads and watched members;
					      or NULL */
	double grace;
	uint64_t since_ns;
	char name[48];
	pthread_t thread; /* threads only */
	int tid;          /* threads: kernel id, 0 when unknown */

	struct evc__mark mark;
	/* atomic: the helper -> the member's thread: number of the last stop
	   with a kick or an unblock of the member */
	_Atomic uint32_t woken;
	/* lock */
	struct evc__waker *unblock, *kick; /* see escalation.h; NULL: none */
	struct evc__later *release; /* NULL: none */
	/* EVC_OWN_SCOPE: what the member's function gets, and whose stop wakes
	   the member; NULL: c.  Set at creation; NULL when the thread ends */
	evc_coord *scope;
	/* set at creation, and moved to c->member.kept; NULL: the member has no
	   result for evc_member_wait */
	struct evc__outcome *outcome;
	struct list node;           /* in c->member.all or c->loop.hooks */
	unsigned n_joining;         /* joins of c in which the member waits */
	unsigned n_waits;           /* calls of its thread that wait for others:
				       joins of any coordinator, runs of a
				       loop */
	bool queued;                /* in the chain c->member.done, or in a
				       chain that a thread has taken and
				       reaps */
	bool probed;                /* the member cannot ring, so joins probe
				       the member: counted in n_probed */
	bool lingers;               /* the thread has rung, but could not be
				       joined yet: counted in n_lingering */
	bool watched;               /* its pidfd is in the helper's set */
	struct notify_place watch;   /* tree's lock: its place in the helper's
					notify_set */
	int pidfd;                  /* -1: none */

	/* atomic: LIVE -> DONE by the member's own thread or the thread that
	   saw its end; DONE -> REAPING -> REAPED (or back) by the thread that
	   claimed the record */
	_Atomic uint32_t state;
	/* atomic: chain of c->member.done; written by the thread that ends,
	   read by the thread that takes the chain */
	struct evc__member *done_next;
};

/* Is m a thread that is joined? */
static inline bool
evc__is_thread(const struct evc__member *m)
{
	return m->ops != NULL && m->ops->probe != NULL;
}

/* The coordinator with the stop for m: its own scope, or c. */
static inline evc_coord *
evc__heard_by(const struct evc__member *m)
{
	return m->scope != NULL ? m->scope : m->c;
}

/* ---- member.c: the register ---- */

/* Lock held: the thread of m has ended, or is about to.  Returns its own scope,
   which m does not have any more, or NULL. */
evc_coord *evc__member_leaves_scope(struct evc__member *m);
/* Lock held: the thread of m has ended without a call of the library.  Its own
   scope is freed by evc__later_run. */
void evc__member_leaves_scope_behind(struct evc__member *m);

/* Lock held: number m, count m alive, open a closed round again. */
evc_status evc__member_add(evc_coord *c, struct evc__member *m);
/* Lock held: evc__member_add for a member that has a number. */
void evc__member_enter(evc_coord *c, struct evc__member *m);
struct evc__member *evc__member_new(evc_coord *c, size_t size, unsigned kind,
				    const char *name,
				    const evc_member_opts *o);
/* Lock held: take m out of the id table, the list and the counts of the
   register; the memory stays. */
void evc__member_unlink(struct evc__member *m);
/* Lock held: m has ended, and was joined: m leaves the register.  The memory is
   freed, or, while m is queued, later. */
void evc__member_gone(struct evc__member *m);
/* Lock held: find a member; not for loopers on a loop. */
struct evc__member *evc__member_find(const evc_coord *c, evc_id id);
/* By m's own thread, or the thread that saw m's end: LIVE -> DONE, and ring. */
void evc__member_done(struct evc__member *m);
/* Lock held.  yes: joins probe m, because m cannot ring; no: joins do not probe
   m any more. */
void evc__member_probed(struct evc__member *m, bool yes);
/* Lock held, given up meanwhile: join threads that have ended, blocking for ns
   at most on threads that do not get to their end.  true: the lock was given
   up. */
bool evc__members_reap(evc_coord *c, uint64_t ns);
/* Lock held: join started threads of the chain `done` that have come to their
   end; never waits.  evc__later_run follows. */
void evc__members_bury(evc_coord *c);
/* Lock held: try each thread that may have ended unnoticed. */
void evc__members_probe(evc_coord *c);
/* Lock held, given up meanwhile: reap, and then probe.  Afterwards members that
   have ended do not count. */
void evc__members_refresh(evc_coord *c);
/* Lock held: the member that is the calling thread, or NULL. */
struct evc__member *evc__member_self(const evc_coord *c);
/* Lock held: the member of c, or of a scope below c, that is the calling
   thread; or NULL. */
struct evc__member *evc__member_self_below(evc_coord *c);
/* No lock.  yes: the calling thread waits for others; when the thread is a
   member, phases do not wait for this member meanwhile.  no: the wait is
   over. */
void evc__member_waits(bool yes);
/* Lock held: count a member that has ended in this round. */
void evc__ended_add(evc_coord *c);
/* Lock held: count a member that began and ended at once; a closed round counts
   this member too. */
void evc__ended_at_once(evc_coord *c);
/* Raise the count of the living, or lower the count; to raise the count opens a
   closed round again. */
void evc__alive_add(evc_coord *c);
/* A member was added to a round that may be closed, or is being closed. */
void evc__reopen(evc_coord *c);
void evc__alive_sub(evc_coord *c);

/* Lock held: l, allocated, is to be called soon. */
void evc__later_add(evc_coord *c, struct evc__later *l);
/* No lock: make the calls of evc__later_add; see later.c. */
void evc__later_run(evc_coord *c);
/* The same in a join: the helper, if there is one, makes the calls, which may
   hang. */
void evc__later_leave(evc_coord *c);
/* Prepare the call of opts.release; *ret is NULL without one.  false: no
   memory. */
bool evc__release_new(const evc_member_opts *o, void *arg,
		      struct evc__later **ret);
/* Lock held: the member with this id is not called any more; an unblock that
   still runs comes first.  l: NULL, or of evc__release_new. */
void evc__release_due(evc_coord *c, evc_id id, struct evc__later *l);
/* A call that makes a member is refused. */
void evc__member_discard(struct evc__member *m);

/* ---- outcome.c: results for evc_member_wait; lock held ---- */

/* m is new. */
evc_status evc__outcome_new(struct evc__member *m, const char *func);
/* The result of m; by m's thread without the lock, before DONE. */
void evc__outcome_is(struct evc__member *m, evc_status result);
/* m has ended. */
void evc__outcome_keep(struct evc__member *m);
/* The outcome of a member that lives, or of one that has ended; NULL: none. */
struct evc__outcome *evc__outcome_find(const evc_coord *c, evc_id id);
/* Free the outcome of a member that has ended; returns the result. */
evc_status evc__outcome_take(evc_coord *c, struct evc__outcome *o);
/* Drop all results that no thread waits for. */
void evc__outcomes_forget(evc_coord *c);
void evc__outcomes_free(evc_coord *c);

/* ---- result.c ---- */

/* The result of a member's function; `name` and `by` are the member's. */
evc_status evc__member_result(evc_coord *c, evc_id by, const char *name,
			      unsigned flags, evc_status result, bool guard);

/* ---- count_alive.c ---- */

/* Members that keep a join waiting. */
struct evc__alive_count {
	unsigned alive;      /* all kinds; each task counts one, a scope one or
				more */
	unsigned foreground; /* members that are not EVC_BACKGROUND */
	double longest;      /* the longest own grace; INFINITY: a member has
				none */
};
/* Lock held.  self and, if self is a member, members that join are left out.
   Hooks count only when `hooks` is set, without the hooks of thread
   hooks_not_of, which waits; of a thread that goes on, -hooks_not_of, only the
   hook that runs now is left out. */
struct evc__alive_count evc__count_alive(evc_coord *c,
					 const struct evc__member *self,
					 bool hooks, int hooks_not_of);

/* ---- names.c ---- */

/* Lock held: "a, b, c and 12 more" into buf; returns the number of members,
   named or not. */
unsigned evc__names(evc_coord *c, const struct evc__member *self, bool hooks,
		    int hooks_not_of, char *buf, size_t room);
/* The same without hooks; below: with the scopes below c. */
unsigned evc__names_of(evc_coord *c, bool below, char *buf, size_t room);
/* The same, without members that have ended and were not joined yet; all: with
   the hooks, and with the scopes below c. */
unsigned evc__names_live(evc_coord *c, bool all, char *buf, size_t room);

/* ---- pthread.c, adopt.c: threads as members ---- */

struct evc__pthread {
	struct evc__member m;
	evc_fn *fn; /* started threads: set at creation */
	void *arg;
	/* started: written by the thread before DONE; registered: by the thread
	   that saw the end, under the lock; read by the joining thread */
	bool has_result; /* the stop for this end was asked for already */
	bool after_stop; /* the thread is known to have ended after the stop */
	bool reports;    /* set at creation: fn has reported its results */
	struct evc__pthread *beside; /* EVC_NOT_JOINED, its thread only: the
					next member that is this thread */
};
extern const struct evc__member_ops evc__pthread_ops;
/* EVC_NOT_JOINED: m->thread is not set. */
extern const struct evc__member_ops evc__not_joined_ops;
/* The kernel's id of a thread, 0 after its end: the only public way to the id
   goes through the number of the thread's CPU clock. */
int evc__pthread_tid(pthread_t t);
/* Lock held: the helper watches m; false: no watch to be had. */
bool evc__pthread_watch(struct evc__member *m);
/* Lock not held: check the whole list of a join, then register the list. */
evc_status evc__adopt_list(evc_coord *c, const evc_join_opts *o);

/* ---- not_joined.c ---- */

/* Lock not held: register the calling thread with EVC_NOT_JOINED; t is to be
   this thread. */
evc_status evc__not_joined_add(evc_coord *c, const char *name, pthread_t t,
			       const evc_member_opts *o, evc_id *ret_id,
			       const char *func);
/* < 0: the calling thread is such a member of c. */
evc_status evc__not_joined_check(const evc_coord *c, const char *func);

/* ---- remove.c ---- */

/* Set the error of evc_member_remove for an id without a member: for the
   `remove` of a kind. */
int evc__refuse_removal(evc_id id);
/* Lock held: members that were created paused and never started vanish; such
   members were not alive. */
void evc__dormant_drop(evc_coord *c);

/* ---- launch.c: threads of the library's own ---- */

/* May a thread have a stack of this size?  0: the system's default. */
evc_status evc__launch_check(size_t stack, const char *func);
/* Lock held, also over pthread_create: a thread that finds the record finds the
   pthread_t in the record.  A closed round is opened again only when there is a
   thread; the new thread waits for the lock before any other step.  p is new,
   or was only numbered and put into the id table. */
evc_status evc__launch(evc_coord *c, struct evc__pthread *p, size_t stack,
		       const char *func);

/* ---- hook.c ---- */

struct evc__hook {
	struct evc__member m;
	evc_fn *fn;          /* set at creation */
	void *arg;
	evc_reactor *reactor; /* NULL: the helper thread */
	uint32_t told;       /* lock: number of the stop of the last call; for
				EVC_ON_DRAIN, of the stop that the drain came
				before */
	int running;         /* lock: id of the thread inside the hook, or 0 */
	bool removed;        /* lock: free the hook when it has returned */
};
#define HOOK_OF(n) \
	LIST_OF(LIST_OF(n, struct evc__member, node), struct evc__hook, m)
/* Run the hooks due on r (NULL: on the helper).  No lock. */
void evc__hooks_run(evc_coord *c, evc_reactor *r);
/* Lock held: is a hook of r due or running? */
bool evc__hooks_due(evc_coord *c, const evc_reactor *r);
bool evc__hook_pending(const struct evc__hook *h, uint64_t w);
/* Lock held: has h returned from its call for the present stop? */
bool evc__hook_called(const struct evc__hook *h, uint64_t w);
/* `change` more calls (or fewer) at a stop of c; joins above may have to wait
   for these calls. */
void evc__hooks_count_above(evc_coord *c, uint32_t change);
/* Lock held: a drain was taken back; the stop that the drain would have become
   has the number stops + 1. */
void evc__drained_hooks_forget(evc_coord *c, uint32_t stops);
/* Lock held: forget all hooks of r. */
void evc__hooks_drop(evc_coord *c, const evc_reactor *r);

/* ---- runners: the operations of members/ for joins and loops ---- */

struct evc__runner_driver {
	/*
	 * Lock held, given up around calls.  Serve the runners of r's loop (by
	 * the loop's thread), or, r == NULL, the runners without a loop: tell
	 * runners of the stop, join runners that have ended.  probe: also ask
	 * the other runners whether they run.  true: the lock was given up, the
	 * state may have changed.
	 */
	bool (*attend)(evc_coord *c, evc_reactor *r, bool probe);
	/* Lock held: the grace of a join is over; end the runners by force.
	   true: a runner may now end within a moment. */
	bool (*force)(evc_coord *c);
	/* Lock held: r's loop is gone: its runners are called without a
	   loop. */
	void (*orphan)(evc_coord *c, evc_reactor *r);
	/* No lock: the runner's own description, in n bytes. */
	void (*describe)(evc_coord *c, evc_id id, char *buf, size_t n);
};

#endif
