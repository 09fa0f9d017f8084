/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bell: the one ev_async of an attached loop, and the reactors that share it.
 *
 * The reactor that attached the loop owns the bell; the homes of scopes stand on
 * it too, so that a scope costs no watcher.  Whoever rings lights the reactor on
 * the bell's board and sends the ev_async; the loop turns each that is lit.
 */
#ifndef EVC_CORE_LOOP_WAKER_H
#define EVC_CORE_LOOP_WAKER_H

#include <ev.h>
#include <evcoord.h>

#include "base/notify_set.h"
#include "base/list.h"

/* A stretch on the loop's thread in which the bell may be taken away. */
struct evc__loop_waker_frame {
	struct evc__loop_waker_frame *up;
	bool gone;
	evc_reactor *r; /* being turned, its light put out; NULL: none, or it is
			   gone */
};

/* What a reactor has left on the loop that another thread took away. */
struct evc__leftover {
	struct evc__leftover *next;
	void (*end)(struct evc__leftover *l); /* loop thread */
};

/* What else of ours is on the loop: a fork child takes it off. */
struct evc__stand {
	struct list node;    /* in b->stands; or in none */
	struct evc__loop_waker *b; /* set by evc__stand_begin */
	/* Stop its watchers, and give back what was taken for them. */
	void (*leave)(struct evc__stand *s, struct ev_loop *loop);
};

struct evc__loop_waker {
	/* set at creation */
	int tid;                 /* the loop's thread */
	unsigned fork_generation;
	evc_reactor *owner;      /* who attached the loop */
	/* loop thread only; sent to by any while a reactor is told */
	struct ev_loop *loop;
	ev_async async;
	ev_cleanup cleanup;
	ev_check beat;           /* each iteration, before all else */
	ev_prepare nested;       /* while we call others: they run the loop */
	ev_fork forked;          /* in a child that keeps the loop */
	struct list stands;
	int refs;                /* taken by evc__loop_waker_ref */
	struct evc__loop_waker_frame *frames;
	unsigned n_lost;         /* of ev_depth: left by exceptions; depth.c */
	/* atomic, relaxed: the loop's thread -> reports */
	_Atomic uint64_t turned; /* ev_now of the present iteration, in
				    nanoseconds; 0: the loop has not run yet */
	_Atomic uint32_t busy;   /* stretches of ours that its thread is in */
	/* atomic chain: who posts -> the loop's thread: inboxes with posts */
	_Atomic(evc_loop_ref *) marked;
	evc_loop_ref *inboxes, **inboxes_end; /* loop thread: those to be served */

	/* A leaf: nothing is locked under it. */
	pthread_mutex_t lock;
	/* lock */
	struct notify_set board;      /* the reactors on it */
	unsigned n;              /* how many; the last one to leave frees it */
	struct evc__leftover *leftovers;
	bool lost;               /* nobody comes any more: the loop is being, or
				    was, destroyed, or the owner leaves */
};

/* Loop thread: not watching yet; NULL: no memory. */
struct evc__loop_waker *evc__loop_waker_new(struct ev_loop *loop);
/* Loop thread: watch the loop; false: no descriptor. */
bool evc__loop_waker_start(struct evc__loop_waker *b);
/* Loop thread, outside ev_run: give the loop up, for all that live on it; the
   reactors stay. */
void evc__loop_waker_abandon(struct evc__loop_waker *b);
/* Loop thread: stop watching; b itself stays while a reactor is on it. */
void evc__loop_waker_stop(struct evc__loop_waker *b);
/* No reactor is on it. */
void evc__loop_waker_free(struct evc__loop_waker *b);
/* Put r on it; false: the loop is lost, or there is no memory. */
bool evc__loop_waker_join(struct evc__loop_waker *b, evc_reactor *r);
/* Take r off it; on another thread than the loop's, wait until it is not being
   turned. */
void evc__loop_waker_leave(evc_reactor *r);
/* Loop thread: turn r, which nobody takes away meanwhile from another thread. */
void evc__loop_waker_turn(evc_reactor *r);
/* Lock held: who takes r away on another thread waits until it is let go. */
void evc__loop_waker_pin(evc_reactor *r);
void evc__loop_waker_unpin(evc_reactor *r);
/* Are there others than the owner? */
bool evc__loop_waker_shared(struct evc__loop_waker *b);
/* Loop thread: does it hold for one of them? */
bool evc__loop_waker_any(struct evc__loop_waker *b, bool (*fn)(evc_reactor *r));
/* Loop thread: the owner leaves, the others have no loop any more. */
void evc__loop_waker_strand(evc_reactor *owner);
/* Any thread that keeps r told, or r's owner's lock held: turn r soon. */
void evc__loop_waker_ring(evc_reactor *r);
/* Any thread that keeps the loop watched: let it look. */
void evc__loop_waker_send(struct evc__loop_waker *b);
/* Lock of r's coordinator held, r has its loop: let the loop's thread end l. */
void evc__loop_waker_leave_behind(evc_reactor *r, struct evc__leftover *l);

/* ---- depth.c; loop thread ---- */

struct evc__driver;
/* Before a loop is attached. */
void evc__depth_watch(void);
/* How many ev_runs of the loop the thread is in; d, which is not NULL inside an
   ev_run of ours: that one and those inside it. */
unsigned evc__depth(struct evc__loop_waker *b, const struct evc__driver *d);
/* It is in none, whatever libev says. */
void evc__depth_is_none(struct evc__loop_waker *b);

/* ---- loop_waker_watch.c ---- */

/* Loop thread: start the watchers, ev_cleanup aside; stop them. */
void evc__loop_waker_watch(struct evc__loop_waker *b,
		     void (*on_async)(struct ev_loop *loop, ev_async *w,
				      int revents));
void evc__loop_waker_unwatch(struct evc__loop_waker *b);
/* Loop thread: while it is watched for, an iteration of the loop is one of a run
   that a callback of ours has begun. */
void evc__loop_waker_watch_nested(struct evc__loop_waker *b);
void evc__loop_waker_unwatch_nested(struct evc__loop_waker *b);
/* Loop thread: hold the loop's ev_run once more, or once less. */
void evc__loop_waker_ref(struct evc__loop_waker *b, bool yes);
/* Loop thread: s may have watchers on the loop from now on; or has none. */
void evc__stand_begin(struct evc__stand *s, struct evc__loop_waker *b);
void evc__stand_end(struct evc__stand *s);
/* Asked first by each callback of a watcher: is this a fork child, and the loop
   one that it has inherited?  Then nothing of ours is on it any more.  No lock:
   whoever had one is not there. */
bool evc__loop_waker_inherited(struct evc__loop_waker *b);

#endif
