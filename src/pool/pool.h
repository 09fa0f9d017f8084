/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool from the inside.
 *
 * A pool has a port for each loop that has jobs in it, and a seat for each
 * thread.  A job goes
 *
 *     submit --> ring of the port --> thread --> box of (port, thread) --> loop
 *
 * One ring is the loop's own, one for all other threads, under the pool's lock.
 *
 * Threads that find nothing sleep on one futex, and at most one is on its way to
 * being woken or started (CROWD_WAKING): that one looks for work after it has
 * taken the mark away, so whoever sees the mark may rely on it; and if it finds a
 * job and there are more, wherever they are, it calls the next.
 *
 * The loop is step, by one mail, when its boxes were empty: `step` is the right
 * to take jobs out of a port's boxes.  Who sets it posts the mail and thereby
 * hands it to the loop, which gives it back when it has found them empty; if the
 * loop is gone it empties them itself, with EVC_CANCELLED.
 *
 * While a port has jobs of its loop, a task on the loop keeps joins and
 * evc_reactor_run waiting.  A job of another thread that finds the port without
 * others posts a mail first, which is alive by itself and begins the task when
 * it arrives.
 *
 * Locks: the pool's, then a port's; under the pool's threads are started and
 * mails are posted.  Nothing of the user's runs under either.
 */
#ifndef EVC_POOL_POOL_H
#define EVC_POOL_POOL_H

#include <evcoord.h>

#include "base/fork.h"
#include "base/sync.h"
#include "pool/pool_ring.h"

#define POOL_THREADS_MOST 1024
/* Threads that end still sit while others come. */
#define POOL_SEATS (POOL_THREADS_MOST + 64)
/* Seats with boxes of their own; what other threads have done goes into the
   port's chain. */
#define POOL_BOXES 64
/* Jobs claimed at once, if there are as many: at least, which is a cache line of
   slots, and at most. */
#define POOL_BATCH_LEAST 8
#define POOL_BATCH 32
/* Jobs completed in one turn of a loop. */
#define POOL_SLICE 1024

/* evc_job.state_: 0 while it is in no pool. */
enum {
	JOB_QUEUED = 1,    /* accepted; begun when no slot holds it */
	JOB_OVER = 2,      /* on its way to done */
	JOB_FOREIGN = 4,   /* of the other ring */
	JOB_CANCELLED = 16 /* evc_job_cancel was called */
};
#define JOB_STATE(job) ((_Atomic uint32_t *)(void *)&(job)->state_)

/* Bits of evc_pool.crowd. */
#define CROWD_LIVE UINT64_C(1)          /* counts threads */
#define CROWD_IDLE (UINT64_C(1) << 16)  /* counts those that sleep, or are about
					   to, aside from the one called */
#define CROWD_WAKING (UINT64_C(1) << 32)   /* one is on its way */
#define CROWD_STARTING (UINT64_C(1) << 33) /* and it is a new one */
#define CROWD_CLOSED (UINT64_C(1) << 34)   /* nothing more is submitted */
#define N_LIVE(w) ((unsigned)((w) & 0xffff))
#define N_IDLE(w) ((unsigned)((w) >> 16 & 0xffff))

/* evc_pool_port.ending */
enum {
	PORT_STOPPED = 1, /* the loop's coordinator was asked to stop */
	PORT_GONE = 2     /* the loop is gone */
};

struct pool_port {
	/* set at creation */
	evc_pool *pool; /* may be gone when all is completed */
	bool finish;    /* EVC_POOL_FINISH */
	unsigned fork_generation;
	/* atomic: made -> threads; the list only grows */
	_Atomic(struct pool_port *) next;

	/* set when the port is bound to a loop: that needs the pool's lock, and
	   nothing may be under way */
	evc_reactor *r;
	evc_loop_ref *loop;
	evc_coord *c; /* r's */
	bool apart; /* no join of the pool's parent hears of tasks in c */
	/* atomic: r's thread, found out there -> submitters; 0: nobody knows */
	_Atomic int tid;

	/* atomic: loop or whoever finds that it is gone -> threads, submitters */
	_Atomic uint32_t ending;
	/* atomic: the pool, task, and each mail -> who frees the port */
	_Atomic uint32_t refs;
	/* atomic: seats with a box, at most */
	_Atomic uint32_t n_boxes;
	/* atomic: a seat's thread -> loop */
	_Atomic(struct pool_box *) box[POOL_BOXES];

	struct pool_ring own, foreign;

	/* ---- who has step ---- */
	_Alignas(POOL_LINE) _Atomic uint32_t step;
	/* atomic chain, the latest first: cancelled, swept, or their box was
	   full -> loop */
	_Atomic(evc_job *) chain;
	/* atomic: wake is posted and has not begun: submitters -> loop */
	_Atomic uint32_t waking;
	/* atomic: jobs of other threads that are not completed: submitters
	   -> loop */
	_Atomic uint64_t n_foreign;
	_Atomic uint64_t n_foreign_submitted, n_cancelled;

	/* ---- loop thread only, the atomics aside, which others read ---- */
	/* atomic: tid while the task is on, else 0: only that thread writes it,
	   and so may trust it */
	_Alignas(POOL_LINE) _Atomic int active;
	_Atomic uint64_t n_own, n_own_submitted;
	evc_job *todo; /* who has step: taken off the chain */
	evc_task task;
	evc_message mail; /* there are jobs to complete */
	evc_message wake; /* there are jobs of other threads */

	pthread_mutex_t lock;
	evc_id hold; /* under lock: in the pool's scope, when apart */
};

/* Asked when a function of the program has returned: is this a fork child that
   was made in there? */
static inline bool
evc__port_inherited(const struct pool_port *p)
{
	return evc__forked_since(p->fork_generation);
}

/* The job has its result; it is on its way to done. */
static inline void
evc__job_over(evc_job *job, evc_status result)
{
	uint32_t s = sync_load_relaxed(JOB_STATE(job));

	job->result_ = result;
	sync_store(JOB_STATE(job), JOB_OVER | (s & JOB_FOREIGN));
}

struct pool_seat {
	/* set at creation */
	evc_pool *pool;
	unsigned index;
	bool taken; /* under the pool's lock */
	/* the thread's */
	struct pool_port *hint; /* where work was found */
	evc_job *job;           /* its work is running */
	uint64_t looked_ns;     /* when it last looked at the others */
	uint64_t watched_at;    /* at of the seat it watches, as it was then */
	uint32_t watched;
	bool called;     /* and has not looked whether there is more */
	unsigned claims; /* so many, ever */
	unsigned streak; /* claims since it slept */
	bool ahead;      /* the last one was small, and all there was */
	/* atomic: what the thread has claimed -> those who have nothing to do.
	   Stays when the thread ends, for the next one in this seat. */
	_Alignas(POOL_LINE) _Atomic(struct pool_ring *) ring;
	_Atomic uint64_t at, end;
	/* atomic: thread -> evc_pool_get */
	_Atomic uint64_t n_begun, n_done, n_cancelled;
};

struct evc_pool {
	/* set at creation */
	evc_coord *scope;
	uint64_t number; /* never used twice in a process */
	unsigned fork_generation;
	uint64_t capacity, idle_ns;
	size_t stack;
	unsigned thread_flags;
	bool finish;
	evc_fn *body; /* of each thread, called with its seat */
	char name[48];
	/* atomic: resize -> threads, submitters */
	_Atomic uint32_t limit;
	_Atomic uint32_t shrink; /* perhaps there are more than limit */
	/* atomic: when a thread could not be had, coarse clock; 0: never */
	_Atomic uint64_t failed_at;
	/* atomic: made -> threads */
	_Atomic(struct pool_port *) ports;
	_Atomic uint32_t n_seats;
	_Atomic(struct pool_seat *) seat[POOL_SEATS];

	/* atomic: submitters, threads, the stop hook */
	_Alignas(POOL_LINE) _Atomic uint64_t crowd;
	/* atomic: counts calls; the futex word of those who sleep */
	_Alignas(POOL_LINE) _Atomic uint32_t bell;

	_Alignas(POOL_LINE) pthread_mutex_t lock;
};

/* ---- pool_crowd.c ---- */

/* There is work: let somebody look, and do not wait for it. */
void evc__crowd_call(evc_pool *pool, bool locked);
/* Lock held: see to it that there is a thread. */
evc_status evc__crowd_first(evc_pool *pool);
/* Everybody looks again. */
void evc__crowd_wake_all(evc_pool *pool);
/* A new thread is there. */
void evc__crowd_enter(evc_pool *pool);
/* One that does not sleep ends. */
void evc__crowd_leave(evc_pool *pool);
/* Are there too many?  Then the caller, which does not sleep, has left. */
bool evc__crowd_shrink(evc_pool *pool);
/* Sleep until there may be work.  false: end, the caller has left. */
bool evc__crowd_sleep(evc_pool *pool);
/* Is there work for anybody? */
bool evc__pool_has_work(evc_pool *pool);

/* ---- pool_thread.c ---- */

evc_status evc__pool_thread(evc_coord *c, void *seat);
/* The pool that the calling thread is one of, or NULL. */
evc_pool *evc__pool_self(void);
/* In a fork child: the calling thread is one of no pool. */
void evc__pool_forget_seat(void);

/* ---- pool_job.c ---- */

/* Refused: no pool, or this is a fork child of the pool's process. */
evc_status evc__pool_check(const evc_pool *pool, const char *func);
/* In a fork child: the calling thread has submitted to no port. */
void evc__pool_forget_port(void);

/* ---- pool_port.c ---- */

/* Lock held: the port of r; or NULL and why. */
struct pool_port *evc__port_of(evc_pool *pool, evc_reactor *r,
			       evc_status *ret_st);
/* One reference less. */
void evc__port_drop(struct pool_port *p);
/* Into the chain: jobs that are over, first to last. */
void evc__port_push(struct pool_port *p, evc_job *first, evc_job *last);
/* Take out what has not begun: over with EVC_CANCELLED.  Then ring. */
void evc__port_sweep(struct pool_port *p);
/* The loop is gone, or going. */
void evc__port_lost(struct pool_port *p);
/* A port that is apart: hold the pool's scope; let go of that, if all is
   completed. */
evc_status evc__port_take_hold(struct pool_port *p);
void evc__port_release_hold(struct pool_port *p);
/* Loop thread: it may be that all is completed. */
void evc__port_settle(struct pool_port *p);
/* The pool is about to go, all is completed and no thread is left. */
void evc__port_orphan(struct pool_port *p);

/* ---- pool_turn.c ---- */

/* Let the loop see what is over; if it is gone, complete it here. */
void evc__port_ring(struct pool_port *p);
/* Ring for all ports whose chain has jobs. */
void evc__ports_ring(evc_pool *pool);

/* ---- pool_done.c ---- */

/* The pool's lock held: begin the task, if need be; refused on any other thread
   than the loop's. */
evc_status evc__port_activate(struct pool_port *p);
/* The pool's lock held, another thread: a job will come.  The loop is to begin
   the task, if need be. */
evc_status evc__port_expect(struct pool_port *p);
/* It did not come. */
void evc__port_unexpect(struct pool_port *p);
/* A job is over: seat is that of the calling thread, or NULL. */
void evc__port_finish(struct pool_port *p, struct pool_seat *seat,
		      evc_job *job, evc_status result);

#endif
