/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking what is blocked.
 *
 * A thread that waits for something hears a stop in one of four ways; in the
 * order of preference:
 *   - it waits by a call of this header: evc_sleep, evc_wait_fd, evc_poll,
 *     evc_cond_wait.  Each of them returns -EVC_CANCELLED at the stop, and at
 *     once while a stop stands.
 *   - it says how to wake it for a stretch of code: evc_cancel_push and
 *     evc_cancel_pop around a call that knows a way out of its own (shutdown(2)
 *     of a socket, sem_post, a condition signalled under its lock).
 *   - it says so for its whole life: evc_member_opts.unblock.
 *   - it is flagged EVC_KICK: then its thread gets a signal that does nothing
 *     but end the system call it is in with EINTR.
 * What has none of them, or has no way out at all (getaddrinfo(3), a disk that
 * does not answer), runs in evc_call_detached, which leaves it behind.
 *
 * Cancel hooks, unblock and kicks are the work of the helper thread, which is
 * made when the first of them is registered.  Nothing here uses
 * pthread_cancel(3), and no descriptor is closed under the thread that uses it.
 */
#ifndef EVCOORD_WAKE_H
#define EVCOORD_WAKE_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

struct pollfd; /* <poll.h> */

/* What evc_wait_fd waits for: libev's EV_READ and EV_WRITE. */
enum {
	EVC_READ = 1,
	EVC_WRITE = 2
};

/* evc_cancel_push */
enum {
	/* Call it again and again, 1 ms doubling to 25 ms, until it is
	   popped. */
	EVC_CANCEL_REPEAT = 1 << 20
};

/* A condition that hears the stop, too. */
typedef struct evc_cond evc_cond;

/*
 * Sleep, but not through a stop.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0 when that many seconds are over (<= 0: at once);
 *            -EVC_CANCELLED at a stop; -EVC_INVALID_ARGUMENT (NaN, no
 *            coordinator), -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_sleep(evc_coord *c, double seconds);

/*
 * Wait until a descriptor can be read or written, seconds at most (<= 0: only
 * look; INFINITY: for ever).  An error or a hang-up on it counts as what was
 * waited for, as with libev: the next call on it says what it is.  A signal
 * ends no wait.  The first wait of a coordinator makes its stop descriptor;
 * where there is none to be had it looks every 25 ms.
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
 * Returns:   0 and *ret_n, how many have something to say; -EVC_CANCELLED at a
 *            stop; -EVC_DEADLINE_EXCEEDED when timeout seconds are over;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION,
 *            -EVC_RESOURCE_EXHAUSTED (no memory for more than 64 of them).
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
EVC_API EVC_MUST_USE evc_status
evc_cond_new(evc_coord *c, evc_cond **ret_cond);

/*
 * Free a condition on which nobody waits.
 *
 * Thread:    any.
 * Ownership: cond is gone; NULL is fine.
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
 * Returns:   nothing; NULL is nobody.
 * Since:     0.1
 */
EVC_API void
evc_cond_signal(evc_cond *cond);

/*
 * Wake all threads that wait on cond.
 *
 * Thread:    as evc_cond_signal.
 * Ownership: nothing changes hands.
 * Returns:   nothing; NULL is nobody.
 * Since:     0.1
 */
EVC_API void
evc_cond_broadcast(evc_cond *cond);

/*
 * Wait on cond until is_true(arg) holds, as pthread_cond_timedwait(3) in a
 * loop: mutex is given up while it sleeps and held again when it returns.
 * is_true is called with the mutex held; NULL: return after any wake-up, and
 * look yourself.  No cancellation point.
 *
 * Thread:    any that holds mutex.
 * Ownership: mutex and arg are the caller's.
 * Returns:   0; -EVC_CANCELLED at a stop, also when is_true holds by then; a
 *            stop that comes while is_true says so is the next wait's;
 *            -EVC_DEADLINE_EXCEEDED when timeout seconds are over and it does
 *            not; -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API evc_status
evc_cond_wait(evc_cond *cond, pthread_mutex_t *mutex,
	       bool (*is_true)(void *arg), void *arg, double timeout);

/*
 * For the stretch until evc_cancel_pop: at a stop call fn(arg), which wakes
 * this thread.  Once for each stop, with EVC_CANCEL_REPEAT again and again.
 * When a stop stands already nothing is pushed: do not begin what blocks.
 *
 *     if (evc_cancel_push(c, wake, &fd, 0, &id) == 0) {
 *             n = recv(fd, buf, sizeof buf, 0);
 *             evc_cancel_pop(c, id);
 *     }
 *
 * Thread:    any but the helper thread; fn runs on that, and may overlap with
 *            another one's that takes long.  A thread that is no member must
 *            pop before it ends; what a started thread has left pushed is
 *            popped at its end, and what a registered one has on its own
 *            coordinator.
 * Ownership: arg must live until the pop.
 * Returns:   0 and *ret_id; -EVC_CANCELLED while a stop stands;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION,
 *            -EVC_RESOURCE_EXHAUSTED (no memory, no helper thread).
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_cancel_push(evc_coord *c, void (*fn)(void *arg), void *arg,
		unsigned flags, evc_id *ret_id);

/*
 * End that stretch, and every one that this thread began inside it.  Waits
 * while fn runs; after it returned fn is not called.  So: hold no lock here
 * that fn takes.
 *
 * Thread:    the one that pushed; in fn itself, on the helper thread, it is
 *            refused.
 * Ownership: arg is the caller's again.
 * Returns:   0; -EVC_NOT_FOUND for an id that this thread has not pushed, or
 *            has popped; -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API evc_status
evc_cancel_pop(evc_coord *c, evc_id id);

/*
 * Choose the signal that kicks: its handler does nothing and has no SA_RESTART.
 * Without this the first member with EVC_KICK takes SIGURG if it is free, which
 * debuggers let pass and which does no harm where it is not expected, else the
 * highest real-time signal that is.  Free is a signal whose disposition is the
 * default one.  There is one kick signal in a process; it keeps its handler
 * until the process ends.  A program that gives it another disposition itself
 * has lost its kicks, see EVC_KICK_RESTORE.  (Real-time signals queue up while a
 * thread blocks them; others do not.)
 *
 * Thread:    any.
 * Ownership: the signal is the library's.
 * Returns:   0, also for the one it is already; -EVC_ALREADY_EXISTS when signo
 *            has a handler or another kick signal was chosen;
 *            -EVC_INVALID_ARGUMENT for one that cannot be caught or that
 *            every thread needs (SIGSEGV, SIGBUS, SIGFPE, SIGILL).
 * Since:     0.1
 */
EVC_API evc_status
evc_kick_signal(int signo);

/*
 * Run fn(arg), which may hang without a way out, on a thread of its own and
 * wait for it, timeout seconds at most.  When the wait ends first fn is left
 * behind: it goes on, and when it returns at last release(arg) is called there
 * (NULL: nothing is), perhaps after c was freed.  The thread that is left behind
 * is no member and holds up no join.
 *
 * Thread:    any; not inside ev_run of a loop of c.
 * Ownership: arg is the caller's again after 0 and after a refusal, and
 *            release's after -EVC_CANCELLED and -EVC_DEADLINE_EXCEEDED.  name
 *            (NULL: "call") is copied: the thread's name.
 * Returns:   0 and *ret_result, what fn returned, also at a stop when fn was
 *            first; -EVC_CANCELLED at a stop, and, without calling fn, while
 *            one stands: then *ret_result is untouched and release(arg) was
 *            called before this returned; -EVC_DEADLINE_EXCEEDED;
 *            -EVC_FAILED_PRECONDITION, also when fn ended its thread;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_call_detached(evc_coord *c, const char *name, int (*fn)(void *arg), void *arg,
	 void (*release)(void *arg), double timeout, int *ret_result);

/* How evc_call_detached_with is to run its function. */
typedef struct evc_call_opts {
	const char *name;           /* copied: the thread's; NULL = "call" */
	void (*release)(void *arg); /* as for evc_call_detached; NULL: nothing */
	size_t stack;               /* bytes; 0 = the system's default, as for
				       pthread_create */
	uint64_t reserved_[8];
} evc_call_opts;

/*
 * evc_call_detached with options.
 *
 * Thread:    as evc_call_detached.
 * Ownership: as evc_call_detached; opts (NULL: the defaults) is copied.
 * Returns:   as evc_call_detached; -EVC_INVALID_ARGUMENT also for a stack that is too
 *            small.
 * Since:     0.1
 */
EVC_API evc_status
evc_call_detached_with(evc_coord *c, int (*fn)(void *arg), void *arg, double timeout,
	      const evc_call_opts *opts, int *ret_result);

EVC_END_DECLS_

#endif
