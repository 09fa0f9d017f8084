/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool from the inside.
 *
 * A pool has a port for each loop that has jobs in the pool, and a seat for
 * each thread.  A job goes
 *
 *     submit --> ring of the port --> thread --> box of (port, thread) --> loop
 *
 * A port has two rings: one is the loop's own, one is for all other threads,
 * under the pool's lock.
 *
 * Threads that find nothing sleep on one futex.  At most one thread at a time
 * is about to be woken or started (CROWD_WAKING).  This thread takes the mark
 * away, then looks for work, so a submitter that sees the mark may rely on the
 * thread.  If the thread finds a job, and any ring or claim has more, it calls
 * the next thread.
 *
 * The loop is called, by one message, when its boxes were empty.  `called` is the
 * right to take jobs out of a port's boxes.  The thread that sets `called` posts
 * the message and so hands the right to the loop; the loop gives the right back
 * when it has found the boxes empty.  If the loop is gone, the thread empties
 * the boxes itself, with EVC_CANCELLED.
 *
 * While a port has jobs of its loop, a task on the loop keeps joins and
 * evc_reactor_run waiting.  If another thread submits while no job of another
 * thread is under way, the thread posts a message first; the message keeps
 * joins and the run waiting by itself, and begins the task when it arrives.
 *
 * Locks: the pool's, then a port's.  Threads are started and messages posted
 * under the pool's lock.  No function of the user's runs under either lock.
 */
#ifndef EVC_POOL_POOL_H
#define EVC_POOL_POOL_H

#include <evcoord.h>

#include "base/fork.h"
#include "base/sync.h"
#include "pool/pool_ring.h"

#define POOL_THREADS_MOST 1024
/* More seats than threads: a thread that ends keeps its seat while another
   comes. */
#define POOL_SEATS (POOL_THREADS_MOST + 64)
/* Seats with boxes of their own; finished jobs of other threads go into the
   port's chain. */
#define POOL_BOXES 64
/* Jobs in one claim, if there are enough: the least, a cache line of slots, and
   the most. */
#define POOL_BATCH_LEAST 8
#define POOL_BATCH 32
/* Jobs completed in one turn of a loop. */
#define POOL_SLICE 1024

/* evc_job.state_: 0 while the job is in no pool. */
enum {
	JOB_QUEUED = 1,    /* accepted; begun when no slot holds it */
	JOB_OVER = 2,      /* has its result; done is still to come */
	JOB_FOREIGN = 4,   /* in the ring for other threads */
	JOB_CANCELLED = 16 /* evc_job_cancel was called */
};
#define JOB_STATE(job) ((_Atomic uint32_t *)(void *)&(job)->state_)

/* Bits of evc_pool.crowd. */
#define CROWD_LIVE UINT64_C(1)          /* counts live threads */
/* counts threads that sleep or are about to, without the called thread */
#define CROWD_IDLE (UINT64_C(1) << 16)
#define CROWD_WAKING (UINT64_C(1) << 32)   /* a thread is on its way */
#define CROWD_STARTING (UINT64_C(1) << 33) /* this thread is a new one */
#define CROWD_CLOSED (UINT64_C(1) << 34)   /* the pool takes no more jobs */
#define N_LIVE(w) ((unsigned)((w) & 0xffff))
#define N_IDLE(w) ((unsigned)((w) >> 16 & 0xffff))

/* pool_port.ending */
enum {
	PORT_STOPPED = 1, /* the loop's coordinator was asked to stop */
	PORT_GONE = 2     /* the loop is gone */
};

struct pool_port {
	/* set at creation */
	evc_pool *pool; /* may be gone when all jobs are completed */
	bool finish;    /* EVC_POOL_FINISH */
	unsigned fork_generation;
	/* atomic: made -> threads; the list only grows */
	_Atomic(struct pool_port *) next;

	/* set when the port is bound to a loop, which needs the pool's lock and
	   no job under way */
	evc_reactor *r;
	evc_loop_ref *loop;
	evc_coord *c; /* the coordinator of r */
	bool apart; /* joins of the pool's parent do not wait for tasks in c */
	/* atomic: r's thread, found out on that thread -> submitters; 0: not
	   known */
	_Atomic int tid;

	/* atomic: the loop, or a thread that finds the loop gone -> threads,
	   submitters */
	_Atomic uint32_t ending;
	/* atomic: the pool, the task, each posted message -> the last frees the
	   port */
	_Atomic uint32_t refs;
	/* atomic: upper bound of the seats with a box */
	_Atomic uint32_t n_boxes;
	/* atomic: a seat's thread -> loop */
	_Atomic(struct pool_box *) box[POOL_BOXES];

	struct pool_ring own, foreign;

	/* ---- for the holder of `called` ---- */
	_Alignas(POOL_LINE) _Atomic uint32_t called;
	/* atomic chain, the latest first: jobs cancelled, swept, or without
	   room in a box -> loop */
	_Atomic(evc_job *) chain;
	/* atomic: submitters -> loop: `wake` is posted and has not begun */
	_Atomic uint32_t waking;
	/* atomic: submitters -> loop: jobs of other threads that are not
	   completed */
	_Atomic uint64_t n_foreign;
	_Atomic uint64_t n_foreign_submitted, n_cancelled;

	/* ---- loop thread only, the atomics aside, which others read ---- */
	/* atomic: the loop's tid while the task is on, else 0.  Only the loop
	   thread writes the value, and so may trust a match */
	_Alignas(POOL_LINE) _Atomic int active;
	_Atomic uint64_t n_own, n_own_submitted;
	evc_job *todo; /* holder of `called`: jobs taken off the chain */
	evc_task task;
	evc_message message; /* jobs are to be completed */
	evc_message wake; /* other threads have jobs for this port */

	pthread_mutex_t lock;
	evc_id hold; /* lock: in the pool's scope, when apart */
};

/* Asked after each function of the program: is this process a fork child that
   the function made?  The pool of a port may be gone. */
static inline bool
evc__port_inherited(const struct pool_port *p)
{
	return evc__forked_since(p->fork_generation);
}

/* The job has its result; done is still to come. */
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
	/* the seat's thread */
	struct pool_port *hint; /* the port with the last job found */
	evc_job *job;           /* the job at work */
	uint64_t looked_ns;     /* time of the last look at another seat */
	uint64_t watched_at;    /* `at` of the watched seat, at that look */
	uint32_t watched;
	bool called; /* was called, and has not looked for more work since */
	unsigned claims; /* all claims of the seat's threads */
	unsigned streak; /* claims since the last sleep */
	bool ahead;      /* the last claim was small, and took all */
	/* atomic: the claim of the thread -> threads without work.  The claim
	   stays when the thread ends, for the next thread in this seat. */
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
	evc_fn *body; /* the function of each thread; its arg is the seat */
	char name[48];
	evc_part part; /* of the scope's parent; see evc_finish */
	/* atomic: resize -> threads, submitters */
	_Atomic uint32_t limit;
	_Atomic uint32_t shrink; /* the pool may have more threads than limit */
	/* atomic: when the last start of a thread failed, coarse clock; 0:
	   never */
	_Atomic uint64_t failed_at;
	/* atomic: made -> threads */
	_Atomic(struct pool_port *) ports;
	_Atomic uint32_t n_seats;
	_Atomic(struct pool_seat *) seat[POOL_SEATS];

	/* atomic: submitters, threads, the stop hook */
	_Alignas(POOL_LINE) _Atomic uint64_t crowd;
	/* atomic: counts calls; futex word of the sleepers */
	_Alignas(POOL_LINE) _Atomic uint32_t bell;

	_Alignas(POOL_LINE) pthread_mutex_t lock;
};

static inline bool
evc__pool_inherited(const evc_pool *pool)
{
	return evc__forked_since(pool->fork_generation);
}

/* ---- pool_crowd.c ---- */

/* There is work: call a thread, and do not wait for the thread. */
void evc__crowd_call(evc_pool *pool, bool locked);
/* Lock held: start a thread if the pool has none. */
evc_status evc__crowd_first(evc_pool *pool);
/* All sleepers look again. */
void evc__crowd_wake_all(evc_pool *pool);
/* A new thread has begun. */
void evc__crowd_enter(evc_pool *pool);
/* Are there too many threads?  true: the caller, which does not sleep, is
   counted out. */
bool evc__crowd_shrink(evc_pool *pool);
/* Sleep until there may be work.  false: the caller is counted out, and
   ends. */
bool evc__crowd_sleep(evc_pool *pool);
/* Is there work for any thread? */
bool evc__pool_has_work(evc_pool *pool);

/* ---- pool_thread.c ---- */

evc_status evc__pool_thread(evc_coord *c, void *seat);
/* The pool of the calling thread, or NULL.  In a fork child the pool may be the
   parent's. */
evc_pool *evc__pool_self(void);

/* ---- pool_job.c ---- */

/* Refuses NULL, and a fork child of the pool's process. */
evc_status evc__pool_check(const evc_pool *pool, const char *func);

/* ---- describe.c ---- */

/* The describe of a pool's scope. */
size_t evc__pool_report(unsigned format, char *buf, size_t n, void *pool);

/* ---- pool_port.c ---- */

/* Lock held, for a call of func: the port of r; or NULL, and *ret_st says why. */
struct pool_port *evc__port_of(evc_pool *pool, evc_reactor *r,
			       const char *func, evc_status *ret_st);
/* One reference less. */
void evc__port_drop(struct pool_port *p);
/* Put finished jobs into the chain, first to last. */
void evc__port_push(struct pool_port *p, evc_job *first, evc_job *last);
/* Finish all jobs that have not begun, with EVC_CANCELLED.  The caller rings
   afterwards. */
void evc__port_sweep(struct pool_port *p);
/* The loop is gone, or about to go. */
void evc__port_lost(struct pool_port *p);
/* A port that is apart: hold the pool's scope; end the hold if all jobs are
   completed. */
evc_status evc__port_take_hold(struct pool_port *p);
void evc__port_release_hold(struct pool_port *p);
/* Loop thread: all jobs may be completed; if so, end the task. */
void evc__port_settle(struct pool_port *p);
/* The pool is about to go: all jobs are completed, and no thread is left. */
void evc__port_orphan(struct pool_port *p);

/* ---- pool_turn.c ---- */

/* Show the loop its finished jobs; if the loop is gone, complete the jobs
   here. */
void evc__port_ring(struct pool_port *p);
/* Ring for all ports with jobs in the chain. */
void evc__ports_ring(evc_pool *pool);

/* ---- pool_done.c ---- */

/* The pool's lock held: begin the task, if need be; refused on any thread but
   the loop's. */
evc_status evc__port_activate(struct pool_port *p);
/* The pool's lock held, on another thread: a job will come.  The loop is to
   begin the task, if need be. */
evc_status evc__port_expect(struct pool_port *p);
/* The job of evc__port_expect did not come. */
void evc__port_unexpect(struct pool_port *p);
/* The job is finished; seat: the calling thread's, or NULL. */
void evc__port_finish(struct pool_port *p, struct pool_seat *seat,
		      evc_job *job, evc_status result);

#endif
