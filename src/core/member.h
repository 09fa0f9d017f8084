/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members from the inside: the entries of the register, and what is known of
 * each kind.
 */
#ifndef EVC_CORE_MEMBER_H
#define EVC_CORE_MEMBER_H

#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"

struct evc__member;

/* What the register asks of a kind of thread; see pthread.c. */
struct evc__member_ops {
	/* Lock held, never blocks.  true: it has ended and is joined. */
	bool (*probe)(struct evc__member *m);
	/* Claimed by the caller, no lock; blocks for ns at most.  true: it is
	   joined. */
	bool (*reap)(struct evc__member *m, uint64_t ns);
	/* Lock held: its pidfd became readable. */
	void (*vanished)(struct evc__member *m);
	/* Lock held: it is about to be freed. */
	void (*release)(struct evc__member *m);
};

/*
 * An entry of the register.
 */
struct evc__member {
	/* set at creation */
	evc_coord *c;
	const struct evc__member_ops *ops; /* threads only */
	evc_id id;
	unsigned kind, flags, round;
	double grace;
	uint64_t since_ns;
	char name[48];
	pthread_t thread; /* threads only */
	int tid;          /* threads: kernel id, 0 when not known */

	/* lock */
	struct list node;           /* c->members or c->hooks */
	struct evc__member *by_id;  /* chain of the id table */
	unsigned n_joining;         /* joins of c that it waits in */
	bool queued;                /* stands in c->done, or was taken out of
				       it and not looked at yet */
	bool probed;                /* cannot ring: counted in c->n_probed */
	bool lingers;               /* has rung, but could not be joined yet:
				       counted in c->n_lingering */
	bool watched;               /* has a pidfd in the helper's set */
	int pidfd;                  /* -1: none */

	/* atomic: LIVE -> DONE by the member's own thread or by who saw it
	   end; DONE -> REAPING -> REAPED (or back) by who claimed it */
	_Atomic uint32_t state;
	/* atomic: chain of c->done; written by the thread that ends, read by
	   who takes the chain */
	struct evc__member *done_next;
};

/* ---- member.c: the register ---- */

/* Lock held: room in the table of ids for some more; false: no memory. */
bool evc__id_room(evc_coord *c, unsigned more);
/* Lock held: number it, count it alive, open a closed round again. */
evc_status evc__member_add(evc_coord *c, struct evc__member *m);
struct evc__member *evc__member_new(evc_coord *c, size_t size, unsigned kind,
				    const char *name,
				    const evc_member_opts *o);
/* Lock held: out of the lists; the memory stays. */
void evc__member_unlink(struct evc__member *m);
/* Lock held: it has ended and is accounted for. */
void evc__member_gone(struct evc__member *m);
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
/* Add to or take from what is alive; add opens a closed round again. */
void evc__alive_add(evc_coord *c);
/* Somebody came into a round that may be closed, or is being closed. */
void evc__reopen(evc_coord *c);
void evc__alive_sub(evc_coord *c);

/* ---- result.c ---- */

/* What a member's function returned; name and by say whose it is. */
evc_status evc__member_result(evc_coord *c, evc_id by, const char *name,
			      unsigned flags, evc_status result, bool guard);

/* ---- census.c ---- */

/* Who keeps a join waiting. */
struct evc__census {
	unsigned alive;      /* all kinds; each task counts one */
	unsigned foreground; /* those not EVC_BACKGROUND */
	double longest;      /* the longest own grace; INFINITY: one has none */
};
/* Lock held.  self and, if it is one, members that join are left out; hooks
   count only when hooks is set, and not those of thread hooks_not_of. */
struct evc__census evc__census(evc_coord *c, const struct evc__member *self,
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
};
extern const struct evc__member_ops evc__pthread_ops;
/* The kernel's id of a thread, 0 when it has ended: the only public way there
   goes through the number of its CPU clock. */
int evc__pthread_tid(pthread_t t);
/* Lock held: have the helper watch it; false: it cannot. */
bool evc__pthread_watch(struct evc__member *m);
/* Lock not held: check the list of a join whole, then register it. */
evc_status evc__adopt_list(evc_coord *c, const evc_join_opts *o);

/* ---- hook.c ---- */

struct evc__hook {
	struct evc__member m;
	evc_fn *fn;          /* set at creation */
	void *arg;
	evc_reactor *reactor; /* NULL: the helper thread */
	uint32_t told;       /* lock: the stop number it was called for */
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
/* Lock held: forget all hooks of r. */
void evc__hooks_drop(evc_coord *c, const evc_reactor *r);

#endif
