/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The waker of a loop: the ev_async of an attached loop, and the reactors that
 * share this ev_async.  In all of core/loop, lw is a loop_waker.
 *
 * The reactor that attached the loop is the owner of the loop_waker.  The homes
 * of scopes are on the same loop_waker, so that a scope costs no watcher.  A
 * ring marks a reactor in the loop_waker's notify_set and sends the ev_async;
 * then the loop's thread turns each marked reactor.  To turn a reactor means to
 * do all work that is due on the reactor: see core/join/turn.c.
 */
#ifndef EVC_CORE_LOOP_WAKER_H
#define EVC_CORE_LOOP_WAKER_H

#include <ev.h>
#include <evcoord.h>

#include "base/notify_set.h"
#include "base/list.h"

struct evc__host;

/* A running callback of the library on the loop's thread, during which the
   loop_waker may be freed; a local variable of the callback. */
struct evc__loop_waker_frame {
	struct evc__loop_waker_frame *up; /* the callback around this
					     callback */
	bool gone;      /* the loop_waker was freed meanwhile */
	evc_reactor *r; /* the reactor that is being turned, with its mark
			   cleared; NULL: none, or the reactor is gone */
};

/* What remains on the loop of a reactor that another thread has detached; only
   the loop's thread may end these remains. */
struct evc__leftover {
	struct evc__leftover *next;
	void (*end)(struct evc__leftover *l); /* loop thread */
};

/* Watchers of another part of the library on the loop; a fork child stops all
   of them. */
struct evc__stand {
	struct list node;    /* in lw->stands while there are watchers */
	struct evc__loop_waker *waker; /* set by evc__stand_begin */
	/* Stop the watchers, and give back all that was taken for them. */
	void (*leave)(struct evc__stand *s, struct ev_loop *loop);
};

struct evc__loop_waker {
	/* set at creation */
	int tid;                 /* the loop's thread */
	unsigned fork_generation;
	struct evc__host *host;  /* of a hosted loop; NULL: a loop of libev's */
	evc_reactor *owner;      /* the reactor that attached the loop */
	/* loop thread only; but any thread that keeps a reactor in the table of
	   listeners may send the ev_async */
	struct ev_loop *loop;
	ev_async async;
	ev_cleanup cleanup;
	ev_check check;          /* called in each iteration, before all other
				    events */
	ev_prepare rest;         /* called at the end of each turn, after all
				    other ev_prepare */
	ev_prepare nested;       /* active while functions of the user's are
				    called, which may run the loop */
	ev_fork forked;          /* in a child that keeps the loop */
	ev_child reaped;         /* of a default loop; see reaped.h */
	struct list stands;
	int refs;                /* references taken by evc__loop_waker_ref */
	struct evc__loop_waker_frame *frames;
	unsigned n_lost;         /* levels of ev_depth that exceptions have left
				    behind; see depth.c */
	/* atomic, relaxed: the loop's thread -> reports */
	_Atomic uint64_t turned; /* ev_now of the present iteration, in
				    nanoseconds; 0: the loop has not run yet */
	_Atomic uint64_t n_turns; /* iterations that have begun */
	_Atomic uint64_t longest; /* the longest turn, in nanoseconds */
	_Atomic bool rests;      /* a loop of libev's waits for events */
	_Atomic uint32_t busy;   /* calls between evc__busy_begin and
				    evc__busy_end that the thread is in */
	uint64_t began;          /* loop thread: begin of the present turn, by
				    the coarse clock */
	/* atomic: evc__loop_waker_ask -> the loop's thread, which answers */
	_Atomic bool asked;
	/* atomic chain: posting threads -> the loop's thread: inboxes with
	   posts */
	_Atomic(evc_loop_ref *) marked;
	evc_loop_ref *inboxes, **inboxes_end; /* loop thread: inboxes to be
						 served */

	/* A leaf: no other lock is taken under this lock. */
	pthread_mutex_t lock;
	/* lock */
	struct notify_set reactors;   /* the reactors of the loop */
	unsigned n;              /* how many reactors; the last reactor that
				    leaves frees the loop_waker */
	struct evc__leftover *leftovers;
	bool lost;               /* no reactor can join any more: the loop was
				    destroyed or is being destroyed, or the
				    owner leaves */
};

/* Loop thread: make a loop_waker, not watching yet; NULL: no memory.  host:
   NULL, or the host of the loop, which goes with the watchers. */
struct evc__loop_waker *evc__loop_waker_new(struct ev_loop *loop,
					    struct evc__host *host);
/* Loop thread: watch the loop; false: no descriptor. */
bool evc__loop_waker_start(struct evc__loop_waker *lw);
/* Loop thread, outside ev_run: all that lives on the loop loses the loop; the
   reactors stay. */
void evc__loop_waker_abandon(struct evc__loop_waker *lw);
/* Loop thread: stop watching; lw itself stays while lw has a reactor. */
void evc__loop_waker_stop(struct evc__loop_waker *lw);
/* lw has no reactor. */
void evc__loop_waker_free(struct evc__loop_waker *lw);
/* Put r on lw; false: the loop is lost, or there is no memory. */
bool evc__loop_waker_join(struct evc__loop_waker *lw, evc_reactor *r);
/* Take r off its loop_waker; on a thread other than the loop's, wait until r is
   not being turned. */
void evc__loop_waker_leave(evc_reactor *r);
/* Loop thread: turn r.  No other thread can take r away meanwhile. */
void evc__loop_waker_turn(evc_reactor *r);
/* Lock held: a thread that takes r away waits until r is unpinned. */
void evc__loop_waker_pin(evc_reactor *r);
void evc__loop_waker_unpin(evc_reactor *r);
/* Has lw other reactors than the owner? */
bool evc__loop_waker_shared(struct evc__loop_waker *lw);
/* Loop thread: is fn true for a reactor of lw? */
bool evc__loop_waker_any(struct evc__loop_waker *lw,
			 bool (*fn)(evc_reactor *r));
/* Loop thread: the owner leaves: the other reactors lose the loop. */
void evc__loop_waker_strand(evc_reactor *owner);
/* Turn r soon.  For a thread inside tell() of r, or with the lock of r's
   coordinator. */
void evc__loop_waker_ring(evc_reactor *r);
/* Any thread, while the ev_async is active: send the ev_async, or ring the
   host. */
void evc__loop_waker_send(struct evc__loop_waker *lw);
/* As evc__loop_waker_send, and the loop's thread then clears `asked` and rings
   the helper of the tree. */
void evc__loop_waker_ask(struct evc__loop_waker *lw);
/* Lock of r's coordinator held, r still has its loop: the loop's thread will
   call l->end. */
void evc__loop_waker_leave_behind(evc_reactor *r, struct evc__leftover *l);

/* An ev_run of the library: over() tells when to break the run. */
struct evc__driver {
	evc_reactor *r;
	bool (*over)(struct evc__driver *d); /* loop thread, no lock */
	void *arg;
	bool stops_on_break; /* an ev_break by the application is a request */
	struct evc__stand stand;
	bool ended;
	const void *frame;   /* a frame around the ev_run */
};

/* ---- depth.c; loop thread ---- */

/* Before a loop is attached. */
void evc__depth_watch(void);
/* How many ev_runs of the loop the thread is in.  d is not NULL inside an
   ev_run of the library: then this ev_run and all ev_runs inside are
   counted. */
unsigned evc__depth(struct evc__loop_waker *lw, const struct evc__driver *d);
/* The thread is in no ev_run: count the levels of ev_depth as left behind by
   exceptions. */
void evc__depth_is_none(struct evc__loop_waker *lw);

/* ---- loop_waker_watch.c ---- */

/* Loop thread: the turn is over: measure the turn. */
void evc__loop_waker_measure(struct evc__loop_waker *lw);
/* Loop thread: start or stop the watchers, without ev_cleanup. */
void evc__loop_waker_watch(struct evc__loop_waker *lw,
		     void (*on_async)(struct ev_loop *loop, ev_async *w,
				      int revents));
void evc__loop_waker_unwatch(struct evc__loop_waker *lw);
/* Loop thread: until evc__loop_waker_unwatch_nested, a function of the user's
   may run the loop; on_nested notices such a run. */
void evc__loop_waker_watch_nested(struct evc__loop_waker *lw);
void evc__loop_waker_unwatch_nested(struct evc__loop_waker *lw);
/* Loop thread.  yes: add a reference that keeps ev_run going; no: remove a
   reference. */
void evc__loop_waker_ref(struct evc__loop_waker *lw, bool yes);
/* Loop thread: s may have watchers on the loop from now on. */
void evc__stand_begin(struct evc__stand *s, struct evc__loop_waker *lw);
/* Loop thread: s has no watchers on the loop any more. */
void evc__stand_end(struct evc__stand *s);
/* To be called first by each callback of a watcher: is this a fork child with
   an inherited loop?  Then all watchers of the library are off the loop after
   this call.  No lock is taken, because the thread with the lock is not in the
   child. */
bool evc__loop_waker_inherited(struct evc__loop_waker *lw);

#endif
