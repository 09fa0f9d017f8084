/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The waker of a loop: the one ev_async of an attached loop, and the reactors
 * that share the ev_async.
 *
 * The reactor that attached the loop owns the loop_waker; the homes of scopes
 * are on the same loop_waker, so that a scope costs no watcher.  A ring marks
 * the reactor in the loop_waker's notify_set and sends the ev_async; the loop
 * turns each marked reactor.
 */
#ifndef EVC_CORE_LOOP_WAKER_H
#define EVC_CORE_LOOP_WAKER_H

#include <ev.h>
#include <evcoord.h>

#include "base/notify_set.h"
#include "base/list.h"

/* A stretch on the loop's thread in which the loop_waker may be freed. */
struct evc__loop_waker_frame {
	struct evc__loop_waker_frame *up;
	bool gone;
	evc_reactor *r; /* the reactor being turned, its mark taken; NULL: none,
			   or gone */
};

/* The rest of a reactor, on the loop, that another thread took away. */
struct evc__leftover {
	struct evc__leftover *next;
	void (*end)(struct evc__leftover *l); /* loop thread */
};

/* Other watchers of the library on the loop: a fork child takes them off. */
struct evc__stand {
	struct list node;    /* in b->stands; or in no list */
	struct evc__loop_waker *b; /* set by evc__stand_begin */
	/* Stop the watchers, and give back all that was taken for them. */
	void (*leave)(struct evc__stand *s, struct ev_loop *loop);
};

struct evc__loop_waker {
	/* set at creation */
	int tid;                 /* the loop's thread */
	unsigned fork_generation;
	evc_reactor *owner;      /* the reactor that attached the loop */
	/* loop thread only; other threads may send while a reactor is told */
	struct ev_loop *loop;
	ev_async async;
	ev_cleanup cleanup;
	ev_check beat;           /* each iteration, before all other events */
	ev_prepare nested;       /* during calls of the user's functions, which
				    may run the loop */
	ev_fork forked;          /* in a child that keeps the loop */
	struct list stands;
	int refs;                /* references taken by evc__loop_waker_ref */
	struct evc__loop_waker_frame *frames;
	unsigned n_lost;         /* levels of ev_depth left by exceptions;
				    depth.c */
	/* atomic, relaxed: the loop's thread -> reports */
	_Atomic uint64_t turned; /* ev_now of the present iteration, in
				    nanoseconds; 0: the loop has not run yet */
	_Atomic uint32_t busy;   /* stretches of the library that the thread is
				    in */
	/* atomic chain: posting threads -> the loop's thread: inboxes with
	   posts */
	_Atomic(evc_loop_ref *) marked;
	evc_loop_ref *inboxes, **inboxes_end; /* loop thread: inboxes to be
						 served */

	/* A leaf: no other lock is taken under this lock. */
	pthread_mutex_t lock;
	/* lock */
	struct notify_set reactors;   /* the reactors of the loop */
	unsigned n;              /* how many reactors; the last to leave frees
				    b */
	struct evc__leftover *leftovers;
	bool lost;               /* no reactor can join any more: the loop is
				    being, or was, destroyed, or the owner
				    leaves */
};

/* Loop thread: make a loop_waker, not watching yet; NULL: no memory. */
struct evc__loop_waker *evc__loop_waker_new(struct ev_loop *loop);
/* Loop thread: watch the loop; false: no descriptor. */
bool evc__loop_waker_start(struct evc__loop_waker *b);
/* Loop thread, outside ev_run: give the loop up, for all that live on the loop;
   the reactors stay. */
void evc__loop_waker_abandon(struct evc__loop_waker *b);
/* Loop thread: stop watching; b itself stays while b has a reactor. */
void evc__loop_waker_stop(struct evc__loop_waker *b);
/* b has no reactor. */
void evc__loop_waker_free(struct evc__loop_waker *b);
/* Put r on b; false: the loop is lost, or there is no memory. */
bool evc__loop_waker_join(struct evc__loop_waker *b, evc_reactor *r);
/* Take r off its loop_waker; on a thread other than the loop's, wait until r is
   not being turned. */
void evc__loop_waker_leave(evc_reactor *r);
/* Loop thread: turn r, which no other thread takes away meanwhile. */
void evc__loop_waker_turn(evc_reactor *r);
/* Lock held: a thread that takes r away waits until r is unpinned. */
void evc__loop_waker_pin(evc_reactor *r);
void evc__loop_waker_unpin(evc_reactor *r);
/* Has b other reactors than the owner? */
bool evc__loop_waker_shared(struct evc__loop_waker *b);
/* Loop thread: is fn true for a reactor of b? */
bool evc__loop_waker_any(struct evc__loop_waker *b, bool (*fn)(evc_reactor *r));
/* Loop thread: the owner leaves, the other reactors have no loop any more. */
void evc__loop_waker_strand(evc_reactor *owner);
/* Any thread that keeps r told, or r's owner's lock held: turn r soon. */
void evc__loop_waker_ring(evc_reactor *r);
/* Any thread that keeps the loop watched: make the loop look. */
void evc__loop_waker_send(struct evc__loop_waker *b);
/* Lock of r's coordinator held, r has its loop: the loop's thread will end
   l. */
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
/* How many ev_runs of the loop the thread is in; inside an ev_run of the
   library, d is not NULL: count that ev_run and all inside. */
unsigned evc__depth(struct evc__loop_waker *b, const struct evc__driver *d);
/* The thread is in no ev_run, whatever libev says. */
void evc__depth_is_none(struct evc__loop_waker *b);

/* ---- loop_waker_watch.c ---- */

/* Loop thread: start or stop the watchers, without ev_cleanup. */
void evc__loop_waker_watch(struct evc__loop_waker *b,
		     void (*on_async)(struct ev_loop *loop, ev_async *w,
				      int revents));
void evc__loop_waker_unwatch(struct evc__loop_waker *b);
/* Loop thread: until unwatch_nested, each iteration of the loop belongs to a
   run that a callback of the library has begun. */
void evc__loop_waker_watch_nested(struct evc__loop_waker *b);
void evc__loop_waker_unwatch_nested(struct evc__loop_waker *b);
/* Loop thread: add a reference that keeps the loop's ev_run, or take a
   reference back. */
void evc__loop_waker_ref(struct evc__loop_waker *b, bool yes);
/* Loop thread: s may have watchers on the loop from now on; or has none. */
void evc__stand_begin(struct evc__stand *s, struct evc__loop_waker *b);
void evc__stand_end(struct evc__stand *s);
/* Called first by each callback of a watcher: is this a fork child, with an
   inherited loop?  If so, no watcher of the library is on the loop any more.
   No lock: the thread that held a lock is not in the child. */
bool evc__loop_waker_inherited(struct evc__loop_waker *b);

#endif
