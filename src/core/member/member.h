/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members from the inside: the entries of the register, and what is known of
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
 * What has an id: the head of every member but tasks and scopes.
 */
struct evc__entry {
	/* set at creation */
	evc_id id;
	uint32_t round;
	uint16_t flags;
	uint8_t kind;
	bool light; /* a looper on a loop: a struct evc__looper; everything
		       else is a struct evc__member */
	/* lock */
	struct evc__entry *by_id; /* chain of the id table */
};

struct evc__looper_ops;
struct evc__runner_driver;

/* The part of a coordinator. */
struct evc__coord_member {
	/* lock */
	struct evc__ids ids;
	struct list all;     /* threads, holds, runners; by id */
	struct list dormant; /* loopers with a thread of their own to come, that
				were created paused; made by the first looper */
	struct list runners; /* by members/; made by the first one */
	unsigned n;          /* entries of all */
	unsigned n_threads, n_probed, n_own_grace, n_background; /* of them */
	unsigned n_lingering, n_runners; /* likewise */
	unsigned n_ended;    /* in this round, tasks aside */
	const struct evc__runner_driver *driver; /* set by the first runner */
	const struct evc__looper_ops *looper_ops; /* set by the first looper */
	/* atomic chain of threads that have ended; see member.c */
	_Atomic(struct evc__member *) done;
	/* atomic: in the scopes below, at any depth */
	_Atomic uint32_t n_probed_below, n_lingering_below, n_ended_below;
};

/* ---- ids.c: the table of ids; lock held ---- */

/* Room for some more; false: no memory. */
bool evc__id_room(evc_coord *c, unsigned more);
/* Number it, unless who starts it has done so, and put it in; there is room. */
void evc__id_add(evc_coord *c, struct evc__entry *e);
void evc__id_remove(evc_coord *c, struct evc__entry *e);
struct evc__entry *evc__id_find(const evc_coord *c, evc_id id);

/* What the register asks of a kind of thread; see pthread.c. */
struct evc__member_ops {
	/* Lock held, never blocks.  true: it has ended and is joined.  NULL:
	   it is no thread, and is not reaped either. */
	bool (*probe)(struct evc__member *m);
	/* Claimed by the caller, no lock; blocks for ns at most.  true: it is
	   joined. */
	bool (*reap)(struct evc__member *m, uint64_t ns);
	/* Lock held: its pidfd became readable; ends the watch. */
	void (*vanished)(struct evc__member *m);
	/* Lock held: it is about to be freed. */
	void (*release)(struct evc__member *m);
	/* Lock held, perhaps given up meanwhile: evc_member_remove.  0: done;
	   1: wait for a ring and ask again (or find it gone: that is done);
	   < 0: refused.  NULL: it is not removed, it ends.  Hooks, loopers on
	   threads of their own and runners have one; it is not asked of a
	   thread that has ended. */
	int (*remove)(struct evc__member *m);
};

/* Where a member says it is: evc_progress. */
struct evc__mark {
	const evc_coord *c; /* set at creation */
	/* atomic, relaxed: the member's thread -> joins, reports */
	_Atomic(const char *) text; /* static; NULL: it has said nothing */
	_Atomic uint64_t ns;        /* then: evc__mark_now() */
};

struct evc__waker;

/*
 * An entry of the register.
 */
struct evc__member {
	struct evc__entry e; /* first: the id table leads to it */
	/* set at creation */
	evc_coord *c;
	const struct evc__member_ops *ops; /* threads, and what the helper
					      watches; or NULL */
	double grace;
	uint64_t since_ns;
	char name[48];
	pthread_t thread; /* threads only */
	int tid;          /* threads: kernel id, 0 when not known */

	struct evc__mark mark;
	/* atomic: the helper -> its thread: the number of the stop in which it
	   was kicked or unblocked last */
	_Atomic uint32_t woken;
	/* lock */
	struct evc__waker *unblock, *kick; /* see escalation.h; NULL: none */
	struct list node;           /* c->members or c->hooks */
	unsigned n_joining;         /* joins of c that it waits in */
	unsigned n_waits;           /* calls of its thread that wait for others:
				       joins of any coordinator, runs of a loop */
	bool queued;                /* stands in c->done, or was taken out of
				       it and not looked at yet */
	bool probed;                /* cannot ring: counted in c->n_probed */
	bool lingers;               /* has step, but could not be joined yet:
				       counted in c->n_lingering */
	bool watched;               /* has a pidfd in the helper's set */
	struct notify_place watch;   /* tree's lock: on the helper's board */
	int pidfd;                  /* -1: none */

	/* atomic: LIVE -> DONE by the member's own thread or by who saw it
	   end; DONE -> REAPING -> REAPED (or back) by who claimed it */
	_Atomic uint32_t state;
	/* atomic: chain of c->done; written by the thread that ends, read by
	   who takes the chain */
	struct evc__member *done_next;
};

/* Is it a thread that is joined? */
static inline bool
evc__is_thread(const struct evc__member *m)
{
	return m->ops != NULL && m->ops->probe != NULL;
}

/* ---- member.c: the register ---- */

/* Lock held: number it, count it alive, open a closed round again. */
evc_status evc__member_add(evc_coord *c, struct evc__member *m);
/* Lock held: the same for one that has its number already. */
void evc__member_enter(evc_coord *c, struct evc__member *m);
struct evc__member *evc__member_new(evc_coord *c, size_t size, unsigned kind,
				    const char *name,
				    const evc_member_opts *o);
/* Lock held: out of the lists; the memory stays. */
void evc__member_unlink(struct evc__member *m);
/* Lock held: it has ended and is accounted for. */
void evc__member_gone(struct evc__member *m);
/* Lock held: not for loopers on a loop. */
struct evc__member *evc__member_find(const evc_coord *c, evc_id id);
/* Its own thread, or who saw it end: LIVE -> DONE, and ring. */
void evc__member_done(struct evc__member *m);
/* Lock held: can it not ring? */
void evc__member_probed(struct evc__member *m, bool yes);
/* Lock held, given up meanwhile: join those that have ended, blocking for ns
   at most on those that do not get to their end.  true: the lock was given up. */
bool evc__members_reap(evc_coord *c, uint64_t ns);
/* Lock held: try each thread that may have ended unnoticed. */
void evc__members_probe(evc_coord *c);
/* Lock held, given up meanwhile: both, so that who has ended does not count. */
void evc__members_refresh(evc_coord *c);
/* Lock held: the member that the calling thread is, or NULL. */
struct evc__member *evc__member_self(const evc_coord *c);
/* The same, of c or of a scope below it. */
struct evc__member *evc__member_self_below(evc_coord *c);
/* No lock: the calling thread, if it is a member, waits for others, and holds
   up no phase meanwhile; or does so no more. */
void evc__member_waits(bool yes);
/* Lock held: one more has ended in this round. */
void evc__ended_add(evc_coord *c);
/* Lock held: a member that has ended the moment it began; a round that was
   closed before counts it too. */
void evc__ended_at_once(evc_coord *c);
/* Add to or take from what is alive; add opens a closed round again. */
void evc__alive_add(evc_coord *c);
/* Somebody came into a round that may be closed, or is being closed. */
void evc__reopen(evc_coord *c);
void evc__alive_sub(evc_coord *c);

/* ---- result.c ---- */

/* What a member's function returned; name and by say whose it is. */
evc_status evc__member_result(evc_coord *c, evc_id by, const char *name,
			      unsigned flags, evc_status result, bool guard);

/* ---- count_alive.c ---- */

/* Who keeps a join waiting. */
struct evc__alive_count {
	unsigned alive;      /* all kinds; each task counts one; a scope one
				or more */
	unsigned foreground; /* those not EVC_BACKGROUND */
	double longest;      /* the longest own grace; INFINITY: one has none */
};
/* Lock held.  self and, if it is one, members that join are left out; hooks
   count only when hooks is set, and not those of thread hooks_not_of, which
   waits; of a thread that goes on, -hooks_not_of, only the one that it is in is
   left out. */
struct evc__alive_count evc__count_alive(evc_coord *c, const struct evc__member *self,
			       bool hooks, int hooks_not_of);
/* Lock held: "a, b, c (+n more)" into buf; returns how many they are. */
unsigned evc__names(evc_coord *c, const struct evc__member *self, bool hooks,
		    int hooks_not_of, char *buf, size_t room);

/* ---- pthread.c, adopt.c: threads as members ---- */

struct evc__pthread {
	struct evc__member m;
	evc_fn *fn; /* started threads: set at creation */
	void *arg;
	/* started: written by the thread before it is DONE; registered: by who
	   saw it end, under the lock; read by who joined it */
	bool has_result; /* what its end means was asked for already */
	bool after_stop; /* it is known to have ended after the stop */
	bool reports;    /* set at creation: fn has reported its results */
};
extern const struct evc__member_ops evc__pthread_ops;
/* The kernel's id of a thread, 0 when it has ended: the only public way there
   goes through the number of its CPU clock. */
int evc__pthread_tid(pthread_t t);
/* Lock held: have the helper watch it; false: it cannot. */
bool evc__pthread_watch(struct evc__member *m);
/* Lock not held: check the list of a join whole, then register it. */
evc_status evc__adopt_list(evc_coord *c, const evc_join_opts *o);

/* ---- remove.c ---- */

/* Note that there is no such member: for the remove of a kind. */
int evc__refuse_removal(evc_id id);
/* Lock held: members that were created paused and never started vanish; they
   were not alive. */
void evc__dormant_drop(evc_coord *c);

/* ---- launch.c: threads of our own ---- */

/* May a thread have such a stack?  0: the system's default. */
evc_status evc__launch_check(size_t stack, const char *func);
/* Lock held, also over pthread_create: whoever finds the record finds its
   pthread_t in it.  The round is opened again, if it was closed, only when there
   is a thread; that waits for the lock before it does anything.  p is new, or
   was only numbered and put into the id table. */
evc_status evc__launch(evc_coord *c, struct evc__pthread *p, size_t stack,
		       const char *func);

/* ---- hook.c ---- */

struct evc__hook {
	struct evc__member m;
	evc_fn *fn;          /* set at creation */
	void *arg;
	evc_reactor *reactor; /* NULL: the helper thread */
	uint32_t told;       /* lock: the stop number it was called for; of one
				with EVC_ON_DRAIN, or the drain before it */
	int running;         /* lock: the thread id that is in it, or 0 */
	bool removed;        /* lock: free it when it has returned */
};
#define HOOK_OF(n) \
	LIST_OF(LIST_OF(n, struct evc__member, node), struct evc__hook, m)
/* Run what is due on r (NULL: the helper's).  No lock. */
void evc__hooks_run(evc_coord *c, evc_reactor *r);
/* Lock held: is one of r's due or running? */
bool evc__hooks_due(evc_coord *c, const evc_reactor *r);
bool evc__hook_pending(const struct evc__hook *h, uint64_t w);
/* d more calls at a stop of c that joins above may have to wait for. */
void evc__hooks_count_above(evc_coord *c, uint32_t d);
/* Lock held: a drain was taken back before the stop with this number's
   follower. */
void evc__drained_hooks_forget(evc_coord *c, uint32_t stops);
/* Lock held: forget all hooks of r. */
void evc__hooks_drop(evc_coord *c, const evc_reactor *r);

/* ---- runners: what members/ does for joins and loops ---- */

struct evc__runner_driver {
	/*
	 * Lock held, given up around calls.  Do what is due with the runners
	 * of r's loop (by its thread), or, r == NULL, with those that have no
	 * loop: the stop to be told, the join of one that has ended.  probe:
	 * also ask the others whether they run.  true: the lock was given up,
	 * things may have changed.
	 */
	bool (*attend)(evc_coord *c, evc_reactor *r, bool probe);
	/* Lock held: the grace of a join is over; by force now.  true: there
	   was somebody who may now end within a moment. */
	bool (*force)(evc_coord *c);
	/* Lock held: r's loop is gone: its runners are called without one. */
	void (*orphan)(evc_coord *c, evc_reactor *r);
	/* No lock: what m says of itself, in n bytes. */
	void (*describe)(evc_coord *c, evc_id id, char *buf, size_t n);
};

#endif
