/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool: what would hold up a loop runs on threads, and its completion on
 * the loop that asked for it.
 *
 * A pool is a scope of its coordinator, and its threads are the members.  They
 * are background members: a pool without jobs keeps no join waiting.  Each job
 * that was accepted gets exactly one completion, on the loop it was submitted
 * for; that loop's run and every join wait for it.  Only a loop that is destroyed
 * under its jobs gets none: they are completed with EVC_CANCELLED on whichever
 * thread finds out, and must not use it.
 *
 * A job is memory of the caller, so that a submit allocates nothing: embed it in
 * what it works on.
 *
 *     struct lookup { evc_job job; char name[256]; struct addrinfo *found; };
 *
 *     l->job.work = find;       on a thread of the pool
 *     l->job.done = found;      on the loop
 *     st = evc_pool_submit(pool, reactor, &l->job);
 */
#ifndef EVCOORD_POOL_H
#define EVCOORD_POOL_H

#include <evcoord/post.h>
#include <evcoord/types.h>

EVC_BEGIN_DECLS_

typedef struct evc_pool evc_pool;
typedef struct evc_job evc_job;

/*
 * Zeroed before its first use; work, done and arg are set by the caller, the
 * rest is the library's.  From an accepted submit until done is called it stays
 * where it is.  64 bytes: where jobs are tiny and many, a boundary of 64 bytes is
 * the best place for one.
 */
struct evc_job {
	/* On a thread of the pool: the work.  What it returns is for done, it
	   stops nobody.  If it ends its thread, by pthread_exit or by a
	   cancellation, the job is completed with EVC_ABORTED, and another
	   thread takes over; what is left of that one goes at the stop. */
	evc_status (*work)(evc_job *job);
	/* On the loop it was submitted for: with what work returned, or with
	   EVC_CANCELLED when it has not begun.  In it the job may be freed, or
	   submitted again; the pool may be freed in the last one.  It does not
	   end its thread: what that has in hand would be lost.  NULL: nothing
	   is called. */
	void (*done)(evc_job *job, evc_status result);
	void *arg;        /* for the two */
	/* the library's; what a job needs on its usual way comes first */
	void *port_;
	uint64_t slot_;
	uint32_t state_;
	evc_status result_;
	evc_job *next_;
	uint64_t reserved_[1];
};

enum {
	/* evc_pool_opts.flags.  At a stop what is queued runs to its end;
	   without this it is completed with EVC_CANCELLED, and only what has
	   begun goes on. */
	EVC_POOL_FINISH = 1 << 22
};

typedef struct evc_pool_opts {
	unsigned n_threads; /* at most, <= 1024; 0 = one for each cpu that the
			       calling thread may use */
	unsigned capacity;  /* jobs that may be queued for a loop by its own
			       thread, and as many by all others; rounded up to
			       a power of two, <= 2^24; 0 = 65536 */
	double idle;        /* seconds without work after which a thread ends,
			       to be started again when there is work; 0 =
			       never */
	unsigned flags;     /* EVC_POOL_FINISH */
	size_t stack;       /* bytes; 0 = the system's default, as for
			       pthread_create */
	unsigned thread_flags; /* EVC_KICK: wake what a job is blocked in */
	uint64_t reserved_[8];
} evc_pool_opts;

/* Numbers of a moment, each by itself. */
typedef struct evc_pool_info {
	unsigned n_threads;   /* at most */
	unsigned n_live;      /* there are */
	unsigned n_idle;      /* of these, asleep without work */
	uint64_t n_submitted; /* accepted since evc_pool_new */
	uint64_t n_queued;    /* not begun */
	uint64_t n_running;   /* begun, and work has not returned */
	uint64_t n_done;      /* work has returned, or ended its thread */
	uint64_t n_cancelled; /* completed without having begun */
	uint64_t reserved_[8];
} evc_pool_info;

/*
 * Make a pool.  Threads are started when there is work, at most n_threads.
 *
 * Thread:    any.
 * Ownership: the caller owns *ret_pool and gives it back by evc_pool_free,
 *            before c is freed.  name (NULL: "pool"; < 48 bytes) and opts are
 *            copied.
 * Returns:   0; -EVC_CANCELLED after the stop; -EVC_INVALID_ARGUMENT,
 *            -EVC_RESOURCE_EXHAUSTED, -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_pool_new(evc_coord *c, const char *name, const evc_pool_opts *opts,
	     evc_pool **ret_pool);

/*
 * End a pool's threads and free it.
 *
 * Thread:    any but the pool's own; not in a stop hook.  Waits for the threads,
 *            which have nothing to do.
 * Ownership: pool is gone after 0; NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION while it has jobs that are not
 *            completed (one whose done is being called is), and on a thread of
 *            the pool.
 * Since:     0.1
 */
EVC_API evc_status
evc_pool_free(evc_pool *pool);

/*
 * Submit a job, whose completion comes on the loop of r: a reactor of any
 * coordinator of the process.  r must stay until this returns: on the loop's
 * thread it does; any other thread has to know that neither the loop is detached
 * nor its coordinator freed meanwhile, or calls evc_pool_submit_to.
 *
 * Thread:    any, one at a time for a job; fastest on the loop of r, where it
 *            takes no lock while jobs of that loop are under way.
 * Ownership: job is the pool's until its done is called.  After a refusal it is
 *            the caller's, and nothing is called.
 * Returns:   0; -EVC_RESOURCE_EXHAUSTED when as many are queued as may be, or
 *            not a single thread can be had; -EVC_CANCELLED after the stop of
 *            the pool or of the loop's coordinator; -EVC_ALREADY_EXISTS when
 *            it is not completed yet; -EVC_NOT_FOUND when the loop is gone;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_pool_submit(evc_pool *pool, evc_reactor *r, evc_job *job);

/*
 * The same, but wait for room, timeout seconds at most.
 *
 * Thread:    any but the pool's and r's own; not inside ev_run of a loop of the
 *            pool's coordinator.  With a timeout <= 0, which is a look, any.
 * Ownership: as evc_pool_submit.
 * Returns:   as evc_pool_submit, but -EVC_DEADLINE_EXCEEDED when there was no
 *            room in time; -EVC_CANCELLED at a stop, at once;
 *            -EVC_FAILED_PRECONDITION where it would wait but must not.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_pool_submit_wait(evc_pool *pool, evc_reactor *r, evc_job *job,
		     double timeout);

/*
 * The same by a handle, which outlives the loop: for threads that do not know
 * how long that is there.  timeout <= 0: do not wait for room.
 *
 * Thread:    as evc_pool_submit_wait.
 * Ownership: as evc_pool_submit; loop stays the caller's.
 * Returns:   as evc_pool_submit, with a timeout > 0 as evc_pool_submit_wait;
 *            -EVC_NOT_FOUND when the loop was detached or destroyed, whatever
 *            became of its coordinator.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_pool_submit_to(evc_pool *pool, evc_loop_ref *loop, evc_job *job,
		   double timeout);

/*
 * Cancel a job.  One that has not begun does not begin, and is completed with
 * EVC_CANCELLED, in the loop's next turn.  One that has begun is told: its
 * evc_job_should_stop is true from now on.
 *
 * Thread:    any, from when its submit has returned until it is completed; so
 *            best its loop's.
 * Ownership: nothing changes hands: its done is still called.
 * Returns:   0 when it will not begin, or was told; -EVC_NOT_FOUND when it is
 *            not in a pool, or its work has returned; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_job_cancel(evc_job *job);

/*
 * Is this job to end?  When it was cancelled, or, without EVC_POOL_FINISH, at a
 * stop: of the pool, or of the loop's coordinator as soon as that loop was told.
 *
 * Thread:    its work's; any other as for evc_job_cancel.
 * Ownership: nothing changes hands.
 * Returns:   true from then on.
 * Since:     0.1
 */
EVC_API bool
evc_job_should_stop(const evc_job *job);

/*
 * How many threads it may have from now on.  Threads that are too many end when
 * their job has ended; more are started when there is work for them.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_INVALID_ARGUMENT for 0 or more than 1024;
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_pool_resize(evc_pool *pool, unsigned n_threads);

/*
 * What it is doing.
 *
 * Thread:    any.
 * Ownership: *ret_info is the caller's.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION in a fork
 *            child.
 * Since:     0.1
 */
EVC_API evc_status
evc_pool_get(const evc_pool *pool, evc_pool_info *ret_info);

/*
 * The pool's scope: its members are the threads.  Its stop is the pool's; when
 * all jobs of that round are completed and it was cleared, the pool can be used
 * again.
 *
 * Thread:    any.
 * Ownership: the pool owns it; ask for its stop, join it, do not free it.
 * Returns:   the scope; NULL for NULL.
 * Since:     0.1
 */
EVC_API evc_coord *
evc_pool_scope(const evc_pool *pool);

EVC_END_DECLS_

#endif
