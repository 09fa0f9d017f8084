/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking blocked threads.
 *
 * A blocked thread hears a stop in one of four ways; in the order of
 * preference:
 *   - The thread waits by a call of this header: evc_sleep, evc_wait_fd,
 *     evc_poll, evc_cond_wait.  Each of them returns -EVC_CANCELLED at the
 *     stop, and at once while a stop stands.
 *   - The thread registers a function that wakes it from a stretch of code:
 *     evc_cancel_push and evc_cancel_pop stand around a call that another
 *     thread can end (by shutdown(2) of the socket, sem_post, a condition
 *     signalled under its lock).
 *   - The member has such a function for its whole life:
 *     evc_member_opts.unblock.
 *   - The member is flagged EVC_KICK: its thread gets a signal that does
 *     nothing but end the thread's system call with EINTR.
 * A call that nothing can end (getaddrinfo(3), a disk that does not answer)
 * runs in evc_call_detached, which leaves the call behind.
 *
 * The helper thread calls the cancel hooks and unblock functions, and sends the
 * kicks; it is made when the first of them is registered.  The library does not
 * use pthread_cancel(3), and closes no descriptor that another thread uses.
 */
#ifndef EVCOORD_WAKE_H
#define EVCOORD_WAKE_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

struct pollfd; /* <poll.h> */

/* Events of evc_wait_fd, with the values of libev's EV_READ and EV_WRITE. */
enum {
	EVC_READ = 1,
	EVC_WRITE = 2
};

/* Flags of evc_cancel_push. */
enum {
	/* Call the hook again and again, 1 ms doubling to 25 ms, until it is
	   popped. */
	EVC_CANCEL_REPEAT = 1 << 20
};

/* A condition on which a wait also ends at a stop. */
typedef struct evc_cond evc_cond;

/*
 * Sleep until the time is over or a stop comes.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0 when seconds are over (<= 0: at once); -EVC_CANCELLED at a stop;
 *            -EVC_INVALID_ARGUMENT (NaN, no coordinator),
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_sleep(evc_coord *c, double seconds);

/*
 * Wait until a descriptor can be read or written, for timeout seconds at most
 * (<= 0: only look; INFINITY: for ever).  An error or a hang-up on the
 * descriptor counts as each event waited for, as with libev: the next call on
 * the descriptor reports it.  A signal ends no wait.  The first wait makes the
 * coordinator's stop descriptor; when none can be made, the wait looks for a
 * stop every 25 ms.
 *
 * Thread:    any.
 * Ownership: fd is the caller's; *ret_events is set with 0 only.
 * Returns:   0 and *ret_events, EVC_READ, EVC_WRITE or both;
 *            -EVC_CANCELLED at a stop, also when fd is ready;
 *            -EVC_DEADLINE_EXCEEDED; -EVC_INVALID_ARGUMENT (NaN, events, a
 *            closed descriptor), -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API evc_status
evc_wait_fd(evc_coord *c, int fd, unsigned events, double timeout,
	    unsigned *ret_events);

/*
 * poll(2) that ends at a stop.
 *
 * Thread:    any.
 * Ownership: fds is the caller's; revents are set with 0 only.
 * Returns:   0 and *ret_n, the number of descriptors with revents;
 *            -EVC_CANCELLED at a stop; -EVC_DEADLINE_EXCEEDED when timeout
 *            seconds are over; -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION,
 *            -EVC_RESOURCE_EXHAUSTED (no memory for more than 64 descriptors).
 * Since:     0.1
 */
EVC_API evc_status
evc_poll(evc_coord *c, struct pollfd *fds, size_t n_fds, double timeout,
	 unsigned *ret_n);

/*
 * Make a condition on which threads of c wait.
 *
 * Thread:    any.
 * Ownership: the caller owns *ret_cond and gives it back by evc_cond_free,
 *            before c is freed: evc_free is refused until then.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION,
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_cond_new(evc_coord *c, evc_cond **ret_cond);

/*
 * Free a condition on which no thread waits.
 *
 * Thread:    any.
 * Ownership: cond is gone after 0; NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION while threads wait.
 * Since:     0.1
 */
EVC_API evc_status
evc_cond_free(evc_cond *cond);

/*
 * Wake one thread that waits on cond.
 *
 * Thread:    any, with or without the mutex; also a signal handler.
 * Ownership: nothing changes hands.
 * Returns:   nothing; with NULL nothing happens.
 * Since:     0.1
 */
EVC_API void
evc_cond_signal(evc_cond *cond);

/*
 * Wake all threads that wait on cond.
 *
 * Thread:    as evc_cond_signal.
 * Ownership: nothing changes hands.
 * Returns:   nothing; with NULL nothing happens.
 * Since:     0.1
 */
EVC_API void
evc_cond_broadcast(evc_cond *cond);

/*
 * Wait on cond until is_true(arg) holds, as pthread_cond_timedwait(3) in a
 * loop: the mutex is free while the thread sleeps, and held again when the call
 * returns.  is_true is called with the mutex held.  With NULL for is_true the
 * call returns after any wake-up, and the caller looks again.  The call is no
 * cancellation point.
 *
 * Thread:    any that holds mutex.
 * Ownership: mutex and arg are the caller's.
 * Returns:   0; -EVC_CANCELLED at a stop, also when is_true would hold (a stop
 *            that comes while is_true returns true ends the next wait);
 *            -EVC_DEADLINE_EXCEEDED when timeout seconds are over and is_true
 *            does not hold; -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API evc_status
evc_cond_wait(evc_cond *cond, pthread_mutex_t *mutex,
	       bool (*is_true)(void *arg), void *arg, double timeout);

/*
 * Push a cancel hook: at a stop before evc_cancel_pop, the helper thread calls
 * fn(arg), and fn wakes this thread.  fn is called once for each stop, with
 * EVC_CANCEL_REPEAT again and again.  While a stop stands nothing is pushed: do
 * not begin the call that blocks.
 *
 *     if (evc_cancel_push(c, wake, &fd, 0, &id) == 0) {
 *             n = recv(fd, buf, sizeof buf, 0);
 *             evc_cancel_pop(c, id);
 *     }
 *
 * Thread:    any but the helper thread; fn runs on the helper thread, and may
 *            overlap with another hook that takes long.  A thread that is no
 *            member must pop before it ends.  At the end of a started thread
 *            the library pops its hooks; at the end of a registered one, its
 *            hooks on the thread's own coordinator.
 * Ownership: arg must live until the pop.
 * Returns:   0 and *ret_id; -EVC_CANCELLED while a stop stands;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION,
 *            -EVC_RESOURCE_EXHAUSTED (no memory, no helper thread).
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_cancel_push(evc_coord *c, void (*fn)(void *arg), void *arg,
		unsigned flags, evc_id *ret_id);

/*
 * Pop a cancel hook, and every hook that this thread has pushed after it.  The
 * call waits while fn runs; after the return fn is not called.  So do not call
 * it while you hold a lock that fn takes.
 *
 * Thread:    the thread that pushed; in fn itself, on the helper thread, the
 *            call is refused.
 * Ownership: arg is the caller's again.
 * Returns:   0; -EVC_NOT_FOUND for a hook that this thread has not pushed, or
 *            has popped; -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API evc_status
evc_cancel_pop(evc_coord *c, evc_id id);

/*
 * Choose the kick signal; its handler does nothing and has no SA_RESTART.
 * Without this call the first member with EVC_KICK takes SIGURG if it is free
 * (debuggers let SIGURG pass, and its default action is none), else the highest
 * free real-time signal.  A signal is free when its disposition is the default
 * one.  There is one kick signal in a process, and its handler stays until the
 * process ends.  A program that gives the signal another disposition loses its
 * kicks, see EVC_KICK_RESTORE.  (Real-time signals queue up while a thread
 * blocks them; others do not.)
 *
 * Thread:    any.
 * Ownership: the signal is the library's.
 * Returns:   0, also when signo is the kick signal already; -EVC_ALREADY_EXISTS
 *            when signo has a handler or another kick signal was chosen;
 *            -EVC_INVALID_ARGUMENT for a signal that cannot be caught or that
 *            every thread needs (SIGSEGV, SIGBUS, SIGFPE, SIGILL).
 * Since:     0.1
 */
EVC_API evc_status
evc_kick_signal(int signo);

/*
 * Run fn(arg), a function that may hang and cannot be woken, on a thread of its
 * own, and wait for fn, timeout seconds at most.  When the wait ends first, fn
 * is left behind: fn goes on, and when it returns its thread calls release(arg)
 * (NULL: no call), perhaps after c was freed.  The thread is no member and
 * holds up no join.
 *
 * Thread:    any; not inside ev_run of a loop of c.
 * Ownership: arg is the caller's again after 0 and after a refusal, and
 *            release's after -EVC_CANCELLED and -EVC_DEADLINE_EXCEEDED.  name
 *            (NULL: "call") is copied: the thread's name.
 * Returns:   0 and *ret_result, the result of fn, also at a stop when fn
 *            returned first; -EVC_CANCELLED at a stop, with *ret_result
 *            untouched (while a stop stands fn is not called, and release(arg)
 *            is called before the return); -EVC_DEADLINE_EXCEEDED;
 *            -EVC_FAILED_PRECONDITION, also when fn ended its thread;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_call_detached(evc_coord *c, const char *name, int (*fn)(void *arg),
		  void *arg, void (*release)(void *arg), double timeout,
		  int *ret_result);

/* Options of evc_call_detached_with. */
typedef struct evc_call_opts {
	const char *name;           /* the thread's name, copied; NULL =
				       "call" */
	void (*release)(void *arg); /* as for evc_call_detached; NULL: no
				       call */
	size_t stack;               /* bytes; 0 = the system's default, as for
				       pthread_create */
	/* Since 0.2: leave fn behind at once.  The call returns when fn was
	   begun; timeout is not used, and ret_result is NULL. */
	bool no_wait;
	/* Since 0.2, with no_wait: after fn, done(r, why, result, arg) is
	   called on the loop of this reactor of any coordinator of the
	   process; also after a stop, as long as the loop turns.  why is 0,
	   or EVC_FAILED_PRECONDITION when fn ended its thread.  done is not
	   called when the loop was detached or destroyed before.  Both NULL:
	   no completion. */
	evc_reactor *reactor;
	void (*done)(evc_reactor *r, evc_status why, int result, void *arg);
	uint64_t reserved_[8];
} evc_call_opts;

/*
 * evc_call_detached with options.  With no_wait nobody waits for fn: a look-up,
 * a reload that may be left behind.  fn is no error when it outlives the stop,
 * and no join, evc_clear_stop, evc_free or evc_finish waits for it or is
 * refused because of it; at the end of a stop the log names it (EVC_LOG_INFO).
 *
 * Thread:    as evc_call_detached; with no_wait any, also inside ev_run of a
 *            loop of c, and one that may use reactor.
 * Ownership: as evc_call_detached; opts (NULL: the defaults) is copied.  With
 *            no_wait arg is the call's after 0: release(arg) is called exactly
 *            once, after done on its loop's thread; when done is not called, on
 *            the thread of fn or the thread that detaches the loop.
 * Returns:   as evc_call_detached; -EVC_INVALID_ARGUMENT also for a stack that
 *            is too small, and for options that do not fit.
 * Since:     0.1
 */
EVC_API evc_status
evc_call_detached_with(evc_coord *c, int (*fn)(void *arg), void *arg,
		       double timeout, const evc_call_opts *opts,
		       int *ret_result);

EVC_END_DECLS_

#endif
