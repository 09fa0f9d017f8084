/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster's loop, and its turns: what has come due is done, and callbacks
 * are made.  Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_TURN_H
#define EVC_CLUSTER_TURN_H

struct cluster_loop {
	evc_loop_ref *ref;           /* creation: the target of posts; owned */
	evc_reactor *reactor;    /* creation: used by the loop's thread alone */
	bool own;                /* creation: the loop has a thread in the
				    scope */
	_Atomic int tid;         /* atomic: the loop's thread, found out there;
				    0: not yet */
	struct refgate gate;        /* atomic: keeps `reactor` for a thread that
				    compares itself with the loop's */
	struct on_loop on;       /* loop; its fork_generation is creation, and
				    says the cluster's process */
	struct ev_cleanup cleanup; /* loop: hears of the loop's destruction */
	struct ev_loop *watched; /* lock: the loop with `cleanup` started; NULL:
				    none */
	bool gone;               /* lock: the program has destroyed the loop */
};

/* A join on the loop.  Fields: lock. */
struct cluster_join {
	struct list link;        /* turn.joins */
	evc_cluster_fn *fn;
	void *arg;
};

struct turn {
	evc_message message;           /* loop */
	_Atomic uint32_t asked;  /* atomic: the message is posted: any thread ->
				    loop */
	_Atomic uint32_t n_turns; /* atomic: messages that the loop has heard:
				    loop -> the watchdog */
	struct list joins;       /* lock: cluster_join without an answer */
	struct list fetches;     /* lock: cluster_fetch with an answer */
	unsigned n_waiting;      /* lock: fetches on the loop without an
				    answer */
	bool want_writable;      /* lock: a schedule was refused on the loop */
	struct ev_timer timer;   /* loop */
	bool timer_on;           /* loop */
	bool looking;            /* loop: a turn is looking for what is due */
	bool holds_loop;         /* loop: a callback is to come, so the loop
				    runs on */
	bool closed_told;        /* loop: the scope's joins know of the engine's
				    last word */
	uint64_t retry_due_ns;   /* loop: time of the first retry */
	uint64_t retries_seen;   /* loop: count.retries at that look */
	uint64_t alone_due_ns;   /* lock: the first function that is to run
				    alone waits no longer for others; or the
				    end of the rest */
	uint64_t alone_rest_ns;  /* lock: until then no function waits for
				    another to run alone */
	bool alone_expired;      /* lock: the first of them has had its time */
};

/* ---- cluster.c ---- */

/* Have the loop look at all that is due.  Any thread, lock held or not.  false:
   the loop is gone. */
bool evc__turn_ask(evc_cluster *cl);
/* On the loop: a plain ev_run does not return, or does again. */
void evc__turn_hold(evc_cluster *cl, struct ev_loop *loop, bool hold);
/* Is this the thread of the cluster's loop? */
bool evc__cluster_on_loop(const evc_cluster *cl);

/* ---- turn.c ---- */

void evc__turn_init(evc_cluster *cl);

/* ---- join.c ---- */

/* Lock held: this call raises an error: the text for evc_last_error. */
void evc__say_raised(evc_cluster *cl);
/* On the loop, lock not held: fetches and joins with an answer are called back.
   false: a callback has come back in a fork child. */
bool evc__turn_answers(evc_cluster *cl);

/* ---- fetch_start.c ---- */

struct cluster_fetch;
/* Lock held: a remote that the fetch waits for has its outcome. */
void evc__fetch_tell(struct cluster_fetch *f);
/* On the loop, lock not held: all fetches with an answer. */
void evc__fetch_turn(evc_cluster *cl);

/* ---- alone.c: lock held ---- */

/* closures.alone_news was set. */
void evc__alone_news(evc_cluster *cl);
/* End too long a wait; the time of the next look. */
uint64_t evc__alone_look(evc_cluster *cl, uint64_t now);

#endif
