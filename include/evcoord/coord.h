/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The coordinator itself: its life, the request of a stop, the questions.
 */
#ifndef EVCOORD_COORD_H
#define EVCOORD_COORD_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Make a coordinator.  With a loop, that loop is attached as the home reactor
 * and must not be destroyed before evc_free; without one (NULL) everything
 * but tasks works all the same.
 *
 * Thread:    any; with a loop, the thread that runs that loop.
 * Ownership: the caller owns *ret_c and gives it back by evc_free.  cfg and
 *            all it points to are copied; its callbacks and arg must live as
 *            long as the coordinator.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED (no memory, or
 *            no descriptor for the loop's wake-up).
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_new(struct ev_loop *home, const evc_config *cfg, evc_coord **ret_c);

/*
 * Free a coordinator.  Refused, and nothing changes, while members live, a
 * join waits, a thread waits for a stop that was not asked for, a cancel hook is
 * pushed, c has scopes or conditions, a loop of another thread is attached, or
 * one of c is run by evc_run or evc_reactor_run; evc_last_error() names them.
 * A stop hook that runs on the helper thread is waited for, and so is what wakes
 * members; hooks that are due and did not begin are dropped.  Registered threads
 * that have ended are reaped first, and a thread whose function has returned is
 * waited for, a second at most.  Allowed as the last touch in the callback
 * of evc_join_start.  Ends, joins and waits of members may still be returning on
 * other threads: they are waited for.  A request by a thread that is no member
 * must not run beside it.
 *
 * Thread:    any; with a home, that loop's thread.  Not in a stop hook.
 * Ownership: c is gone after 0, and with it every reactor.  NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API evc_status
evc_free(evc_coord *c);

/*
 * End of a program: free c when it may be freed, and turn the result of a
 * join into an exit status.  With members still alive c stays usable (a later
 * call frees it) and main must leave by _exit(), for a return from main would
 * take the memory away under them.
 *
 * Thread:    as evc_free.
 * Ownership: c is gone unless members live.  NULL is fine.
 * Returns:   0; 1 for an error or a refused call; 124 for
 *            EVC_DEADLINE_EXCEEDED (late members and no error).
 * Since:     0.1
 */
EVC_API int
evc_finish(evc_coord *c, evc_status result);

/*
 * Ask for the stop.  The first request of a round is its reason; later ones
 * are kept (bounded) and counted.  A code that is not clean is an error, and
 * the first error of the round is the verdict of its join.  When this has
 * returned, everybody was told.  Never refused for what it carries: a
 * negative code counts as its positive, an unknown one as EVC_UNKNOWN, NULL
 * text is empty, a long one is cut.
 *
 * Thread:    any, and any signal handler; takes no lock, allocates nothing,
 *            keeps errno, is no cancellation point.
 * Ownership: text is copied.
 * Returns:   0; > 0: the code, handed back because the round was closed by a
 *            join before this error came; -EVC_INVALID_ARGUMENT for NULL;
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_request_stop_at(evc_coord *c, evc_status code, const char *text,
		    const char *file, int line, const char *func);

/*
 * evc_request_stop_at without a place.  In C and C++ sources the macro of the
 * same name adds the place of the call.
 *
 * Thread:    as evc_request_stop_at.
 * Ownership: text is copied.
 * Returns:   as evc_request_stop_at.
 * Since:     0.1
 */
EVC_API evc_status
evc_request_stop(evc_coord *c, evc_status code, const char *text);
#define evc_request_stop(...) \
	evc_request_stop_at(__VA_ARGS__, __FILE__, __LINE__, __func__)

/*
 * Report an error and ask for the stop: code, errno value and a formatted
 * text.  `return evc_fail(c, code, errno, "shard %d", i);` is how a member
 * ends on an error; the returned code then adds nothing.  A clean code asks
 * for the stop without being an error; 0 is recorded as EVC_UNKNOWN.
 *
 * Thread:    any; not a signal handler, because it formats.
 * Ownership: the text is copied.
 * Returns:   the code as recorded, always, also when the round was closed;
 *            -EVC_INVALID_ARGUMENT for a NULL coordinator;
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_fail_at(evc_coord *c, evc_status code, int err, const char *file,
	    int line, const char *func, const char *fmt, ...)
	EVC_PRINTF_(7, 8);

/*
 * evc_fail_at without a place.  In C and C++ sources the macro of the same
 * name adds the place of the call.
 *
 * Thread:    as evc_fail_at.
 * Ownership: the text is copied.
 * Returns:   as evc_fail_at.
 * Since:     0.1
 */
EVC_API evc_status
evc_fail(evc_coord *c, evc_status code, int err, const char *fmt, ...)
	EVC_PRINTF_(4, 5);
#define evc_fail(c, code, err, ...) \
	evc_fail_at((c), (code), (err), __FILE__, __LINE__, __func__, \
		    __VA_ARGS__)

/*
 * Was a stop asked for?  One atomic load; once true it stays true until
 * evc_clear_stop, and what the requester wrote before its request is seen.
 *
 * Thread:    any, and any signal handler.  c must not be NULL.
 * Ownership: nothing changes hands.
 * Returns:   true from the request on.
 * Since:     0.1
 */
EVC_API bool
evc_should_stop(const evc_coord *c);

#ifndef EVC_NO_INLINE
extern inline __attribute__((gnu_inline)) bool
evc_should_stop(const evc_coord *c)
{
	return __atomic_load_n((const uint64_t *)(const void *)c,
			       __ATOMIC_ACQUIRE) & 1;
}
#endif

/*
 * Is a code clean, so that a member that returns it stops nobody?  By the list,
 * the function or the default given to evc_new or evc_scope_new; after the stop
 * EVC_CANCELLED is, too.
 *
 * Thread:    any, and any signal handler.  c must not be NULL.
 * Ownership: nothing changes hands.
 * Returns:   true for EVC_OK and the others; a negative code counts as its
 *            positive.
 * Since:     0.1
 */
EVC_API bool
evc_is_clean(const evc_coord *c, evc_status code);

/*
 * Wait until a stop is asked for.
 *
 * Thread:    any; sleeps on a futex, is no cancellation point.  Inside ev_run of
 *            a loop of c it does not wait: it answers at once, and
 *            evc_last_error says why.
 * Ownership: nothing changes hands.
 * Returns:   true if the stop was asked for; false when timeout (seconds; <= 0
 *            does not wait, INFINITY for ever, NaN answers at once) is over
 *            first.  In a fork child it answers at once.
 * Since:     0.1
 */
EVC_API bool
evc_wait_for_stop(evc_coord *c, double timeout);

/*
 * A descriptor for programs with a poll loop of their own: readable from the
 * stop to evc_clear_stop.  Made on first use; right also when made after the
 * stop.  Never read it, never close it; drop it from the poll set once seen.
 *
 * Thread:    any.
 * Ownership: c owns it, until evc_free.
 * Returns:   the descriptor; -EVC_RESOURCE_EXHAUSTED, -EVC_INVALID_ARGUMENT,
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API int
evc_stop_fd(evc_coord *c);

/*
 * Take the stop back and open a new round; without a stop, only the mark that
 * the round was joined is taken away.  Errors and reasons of the old round
 * are forgotten.  Refused while members live (the caller and stop hooks left
 * out) or a join waits: no member of an old round can meddle with a new one.
 * A thread whose function has returned does not live; it is waited for, a second
 * at most.  Scopes below go back to running too, unless somebody asked for a
 * stop of their own; a scope that is cleared while what is above it is stopped
 * is asked to stop again at once.
 *
 * Thread:    any; not a signal handler.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_FAILED_PRECONDITION, and evc_last_error() names who
 *            lives; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_clear_stop(evc_coord *c);

/*
 * The first error of the round, as often as asked, before and after the join,
 * until evc_clear_stop.
 *
 * Thread:    any; not a signal handler.
 * Ownership: *ret_reason is the caller's and filled by copy when the result
 *            is > 0.
 * Returns:   0 before any error and after clean stops; > 0 the first error's
 *            code; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_raise_requested(const evc_coord *c, evc_reason *ret_reason);

/*
 * One of the reasons kept in this round: 0 is the first request, then in the
 * order of arrival.
 *
 * Thread:    any; not a signal handler.
 * Ownership: *ret_reason is the caller's, filled by copy.
 * Returns:   0; -EVC_NOT_FOUND past the end; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_reason_get(const evc_coord *c, unsigned index, evc_reason *ret_reason);

/*
 * Add a stop hook: fn is called once for each stop, before any task is told -
 * also for a stop that came before the hook was added.  It runs on
 * opts.reactor, else on the home reactor, else (no home) on the coordinator's
 * helper thread, which is the library's own.  A
 * join that has seen the stop waits until it has returned.  The hook stays for
 * later rounds until evc_member_remove.  Flagged EVC_ON_DRAIN it is called
 * once a round at the drain, or at the stop when no drain came before.  Its
 * result: 0 or a clean code is fine; any other code is reported.
 *
 * Thread:    any; opts.reactor may be a loop of another thread.
 * Ownership: name is copied; arg must live until the hook is removed or c is
 *            freed.
 * Returns:   0 and *ret_id; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_UNIMPLEMENTED; -EVC_FAILED_PRECONDITION when the reactor's
 *            loop was destroyed.
 * Since:     0.1
 */
EVC_API evc_status
evc_on_stop(evc_coord *c, const char *name, evc_fn *fn, void *arg,
	    const evc_member_opts *opts, evc_id *ret_id);

EVC_END_DECLS_

#endif
