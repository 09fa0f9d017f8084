/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool: a job that would hold up a loop runs on a thread of the pool,
 * and its completion runs on the loop that submitted the job.
 *
 * A pool is a scope of its coordinator, and its threads are the members.  They
 * are background members: a pool without jobs keeps no join waiting.  Each
 * accepted job gets exactly one completion, on the loop it was submitted for;
 * that loop's run and every join wait for the completion.  There is one
 * exception: when a loop is destroyed before its jobs are completed, they are
 * completed with EVC_CANCELLED on any thread, and must not use the loop.
 *
 * A job is memory of the caller, so a submit allocates nothing.  Embed the job
 * in the struct of its data:
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
 * A job is zeroed before its first use.  The caller sets work, done, arg
 * and name; the other fields are the library's.  From an accepted submit until
 * done is called the job must not move.  It has 64 bytes: programs with many
 * tiny jobs best align each to 64 bytes.
 */
struct evc_job {
	/* The work, called on a thread of the pool.  The returned status is
	   given to done, and stops nothing.  If work ends its thread, by
	   pthread_exit or by a cancellation, the job is completed with
	   EVC_ABORTED, and another thread takes over; the old thread is gone
	   only at the stop. */
	evc_status (*work)(evc_job *job);
	/* The completion, called on the loop that the job was submitted for:
	   with the status of work, or with EVC_CANCELLED when work was not
	   called.  done may free the job or submit it again; the last done may
	   free the pool.  done must not end its thread, because other
	   completions of that thread would be lost.  NULL: none. */
	void (*done)(evc_job *job, evc_status result);
	void *arg;        /* for work and done */
	/* The library's; fields that every job uses come first. */
	void *port_;
	uint64_t slot_;
	uint32_t state_;
	evc_status result_;
	evc_job *next_;
	const char *name; /* static, or NULL: while work runs, verdicts and
			     reports show the name beside that of the thread */
};

enum {
	/* evc_pool_opts.flags.  At a stop, queued jobs run to their end.
	   Without this flag they are completed with EVC_CANCELLED, and only
	   jobs that have begun go on. */
	EVC_POOL_FINISH = 1 << 22
};

typedef struct evc_pool_opts {
	unsigned n_threads; /* at most, <= 1024; 0 = one for each cpu that the
			       calling thread may use */
	unsigned capacity;  /* jobs that may be queued for a loop by its own
			       thread, and as many by all other threads; rounded
			       up to a power of two, <= 2^24; 0 = 65536 */
	double idle;        /* seconds without work after which a thread ends;
			       new work starts a thread again; 0 = never */
	unsigned flags;     /* EVC_POOL_FINISH */
	size_t stack;       /* bytes; 0 = the system's default, as for
			       pthread_create */
	unsigned thread_flags; /* EVC_KICK: a stop sends the kick signal to
				  threads that are blocked in a job */
	uint64_t reserved_[8];
} evc_pool_opts;

/* A pool in numbers.  Each number is read by itself. */
typedef struct evc_pool_info {
	unsigned n_threads;   /* most threads that the pool may have */
	unsigned n_live;      /* threads that the pool has now */
	unsigned n_idle;      /* threads that sleep without work */
	uint64_t n_submitted; /* jobs accepted since evc_pool_new */
	uint64_t n_queued;    /* jobs not begun */
	uint64_t n_running;   /* jobs begun, whose work has not returned */
	uint64_t n_done;      /* jobs whose work has returned, or has ended its
				 thread */
	uint64_t n_cancelled; /* jobs completed without having begun */
	uint64_t reserved_[8];
} evc_pool_info;

/*
 * Make a pool.  Threads are started when there is work, at most n_threads.
 *
 * Thread:    any.
 * Ownership: the caller owns *ret_pool and gives it back by evc_pool_free,
 *            before c is freed, or leaves it to evc_finish of c.  name (NULL:
 *            "pool") and opts are copied.
 * Returns:   0; -EVC_CANCELLED after the stop; -EVC_INVALID_ARGUMENT,
 *            -EVC_RESOURCE_EXHAUSTED, -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_pool_new(evc_coord *c, const char *name, const evc_pool_opts *opts,
	     evc_pool **ret_pool);

/*
 * End a pool's threads and free it.
 *
 * Thread:    any but the pool's own; not in a stop hook.  The call waits for
 *            the threads, which are idle.
 * Ownership: pool is gone after 0; NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION while a job is not completed (a job is
 *            completed as soon as its done is called), and on a thread of the
 *            pool; -EVC_DEADLINE_EXCEEDED when the stop of the pool's
 *            coordinator ends first, see evc_stop_left, and evc_last_error()
 *            names the members of the pool that still run.
 * Since:     0.1
 */
EVC_API evc_status
evc_pool_free(evc_pool *pool);

/*
 * Submit a job.  Its completion runs on the loop of r, a reactor of any
 * coordinator of the process.  r must exist until the call returns.  On the
 * loop's own thread this is always so.  Another thread has to be sure that
 * meanwhile the loop is not detached and its coordinator not freed; else it
 * calls evc_pool_submit_to.
 *
 * Thread:    any, one at a time for a job; fastest on the loop of r, where the
 *            call takes no lock while jobs of that loop are under way.
 * Ownership: job is the pool's until its done is called.  After a refusal it is
 *            the caller's, and nothing is called.
 * Returns:   0; -EVC_RESOURCE_EXHAUSTED when the queue is full, or not a single
 *            thread can be started; -EVC_CANCELLED after the stop of the pool
 *            or of the loop's coordinator; -EVC_ALREADY_EXISTS when the job is
 *            not completed yet; -EVC_NOT_FOUND when the loop is gone;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_pool_submit(evc_pool *pool, evc_reactor *r, evc_job *job);

/*
 * evc_pool_submit with a wait for room, timeout seconds at most.
 *
 * Thread:    any but the pool's and r's own; not inside ev_run of a loop of the
 *            pool's coordinator.  With a timeout <= 0, which never waits, any.
 * Ownership: as evc_pool_submit.
 * Returns:   as evc_pool_submit, but -EVC_DEADLINE_EXCEEDED when there was no
 *            room in time; -EVC_CANCELLED at a stop, at once;
 *            -EVC_FAILED_PRECONDITION on a thread that must not wait.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_pool_submit_wait(evc_pool *pool, evc_reactor *r, evc_job *job,
		     double timeout);

/*
 * evc_pool_submit for a loop named by a handle, which outlives the loop: for
 * threads that do not know how long the loop exists.  timeout <= 0: do not wait
 * for room.
 *
 * Thread:    as evc_pool_submit_wait.
 * Ownership: as evc_pool_submit; loop stays the caller's.
 * Returns:   as evc_pool_submit, with a timeout > 0 as evc_pool_submit_wait;
 *            -EVC_NOT_FOUND when the loop was detached or destroyed, also when
 *            its coordinator was freed.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_pool_submit_to(evc_pool *pool, evc_loop_ref *loop, evc_job *job,
		   double timeout);

/*
 * Cancel a job.  A job that has not begun does not begin, and is completed with
 * EVC_CANCELLED, in the loop's next turn.  For a job that has begun,
 * evc_job_should_stop is true from now on.
 *
 * Thread:    any, but only between the return of the submit and the completion;
 *            the loop's thread can be sure of that.
 * Ownership: nothing changes hands: the job's done is still called.
 * Returns:   0 when the job will not begin, or was asked to end;
 *            -EVC_NOT_FOUND when the job is not in a pool, or its work has
 *            returned; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_job_cancel(evc_job *job);

/*
 * Should this job end?  It should when it was cancelled, and, without
 * EVC_POOL_FINISH, at a stop of the pool, or of the loop's coordinator as soon
 * as the loop has seen that stop.
 *
 * Thread:    that of its work; any other as for evc_job_cancel.
 * Ownership: nothing changes hands.
 * Returns:   true from then on.
 * Since:     0.1
 */
EVC_API bool
evc_job_should_stop(const evc_job *job);

/*
 * Set how many threads the pool may have.  Threads above the number end when
 * their job has ended; new ones are started when there is work for them.
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
 * The numbers of a pool.
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
 * The pool's scope: its members are the threads, and its stop is the pool's.
 * When all jobs of a round are completed and the scope was cleared, the pool
 * can be used again.
 *
 * Thread:    any.
 * Ownership: the pool owns the scope.  The caller may request its stop and join
 *            it, but must not free it.
 * Returns:   the scope; NULL for NULL.
 * Since:     0.1
 */
EVC_API evc_coord *
evc_pool_scope(const evc_pool *pool);

EVC_END_DECLS_

#endif
