/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The coordinator itself: its life, the request of a stop, and questions about
 * it.
 */
#ifndef EVCOORD_COORD_H
#define EVCOORD_COORD_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Make a coordinator.  A loop given as home is attached as the home reactor,
 * and must not be destroyed before evc_free.  Without a home (NULL) everything
 * but tasks works all the same, and the first hosted reactor becomes the home
 * (evc_reactor_foreign).
 *
 * Thread:    any; with a loop, the thread that runs that loop.
 * Ownership: the caller owns *ret_c and gives it back by evc_free.  cfg and
 *            all it points to are copied; its callbacks and arg must live as
 *            long as the coordinator.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED (no memory, or
 *            no descriptor for the loop's wake-up).
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_new(struct ev_loop *home, const evc_config *cfg, evc_coord **ret_c);

/*
 * Free a coordinator.  The call is refused, and nothing changes, while members
 * live, a join waits, a thread waits for a stop that was not requested, a
 * cancel hook is pushed, c has scopes or conditions, a loop of another thread
 * is attached, or evc_run or evc_reactor_run runs a loop of c; evc_last_error()
 * names the obstacle.  The call waits for ends, joins and waits of members that
 * are still returning on other threads, and, a second at most, for a thread
 * whose function has returned, and for a function of the program's that runs on
 * the helper thread, such as a stop hook or a wake-up of members: a function
 * that hangs there is an obstacle, too.  Hooks that are due and did not
 * begin are dropped.  Registered threads that have ended are reaped first.  The
 * callback of evc_join_start may free c as its last touch.  A request by a
 * thread that is no member must not run beside evc_free.
 *
 * Thread:    any; with a home, that loop's thread.  Not in a stop hook.
 * Ownership: c is gone after 0, and with it every reactor.  NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API evc_status
evc_free(evc_coord *c);

/*
 * End of a program: free c when evc_free would, together with its queues, pools
 * and worker groups when all of them are empty, and turn the result of a join
 * into an exit status.  All are freed or none.  The result has the errors of
 * the groups and clusters below c that nobody took; a registry with a
 * coordinator of its own answers by evc_registry_stop.  The signal handlers of
 * evc_signals_start and evc_dump_signal are given back in any case.  When c
 * cannot be freed all stays usable (a later call frees c), the log names what
 * is in the way, and the status is not 0.  While members are alive main must
 * leave by _exit(), because a return from main would destroy memory that the
 * members still use; likewise while a function runs that evc_call_detached has
 * left behind.
 *
 * Thread:    as evc_free.
 * Ownership: c is gone, and so are its queues, pools and groups, unless one of
 *            them cannot be freed.  NULL is fine.
 * Returns:   0; 1 for an error, a refused call or a c that is not freed; 124
 *            for EVC_DEADLINE_EXCEEDED (late members and no error).
 * Since:     0.1
 */
EVC_API int
evc_finish(evc_coord *c, evc_status result);

/*
 * Request the stop.  The first request of a round is its reason; later requests
 * are kept (bounded) and counted.  A code that is not clean is an error, and
 * the first error of the round is the verdict of its join.  When the call has
 * returned, all members were told.  No code and no text makes the call fail: a
 * negative code counts as its positive, an unknown code as EVC_UNKNOWN, a NULL
 * text is empty, a long text is cut.
 *
 * Thread:    any, and any signal handler; takes no lock, allocates nothing,
 *            keeps errno, is no cancellation point.
 * Ownership: text is copied.
 * Returns:   0; > 0: the code, handed back because a join had closed the round
 *            before this error came; -EVC_INVALID_ARGUMENT for NULL;
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
 * Report an error (code, errno value and a formatted text) and request the
 * stop.  A member ends on an error by
 *     return evc_fail(c, code, errno, "shard %d", i);
 * and the returned code then adds no second error.  A clean code requests the
 * stop without being an error; 0 is recorded as EVC_UNKNOWN.
 *
 * Thread:    any; not a signal handler, because the call formats text.
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
 * Was a stop requested?  One atomic load.  Once true, the answer stays true
 * until evc_clear_stop, and the caller sees all that the requester wrote before
 * its request.
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
	return __atomic_load_n(EVC_CAST_(const uint64_t *,
					 EVC_CAST_(const void *, c)),
			       __ATOMIC_ACQUIRE) & 1;
}
#endif

/*
 * Is a code clean, so that a member may return the code without a stop?  The
 * list, the function or the default given to evc_new or evc_scope_new decides;
 * after the stop EVC_CANCELLED is clean, too.
 *
 * Thread:    any, and any signal handler.  c must not be NULL.
 * Ownership: nothing changes hands.
 * Returns:   true for EVC_OK and each other clean code; a negative code counts
 *            as its positive.
 * Since:     0.1
 */
EVC_API bool
evc_is_clean(const evc_coord *c, evc_status code);

/*
 * Wait until a stop is requested.
 *
 * Thread:    any; sleeps on a futex, is no cancellation point.  Inside ev_run
 *            of a loop of c the call does not wait: it answers at once, and
 *            evc_last_error says why.
 * Ownership: nothing changes hands.
 * Returns:   true if the stop was requested; false when timeout (seconds; <= 0
 *            does not wait, INFINITY waits for ever, NaN answers at once) is
 *            over first.  In a fork child the call answers at once.
 * Since:     0.1
 */
EVC_API bool
evc_wait_for_stop(evc_coord *c, double timeout);

/*
 * A descriptor for programs with a poll loop of their own: readable from the
 * stop to evc_clear_stop.  The first call makes the descriptor, also after the
 * stop.  Never read the descriptor, never close it; drop it from the poll set
 * once it was readable.
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
 * the round was joined is taken away.  Errors and reasons of the old round are
 * forgotten.  While a stop stands, the call is refused if a join waits, or a
 * member other than the caller and stop hooks lives: so no member of an old
 * round can meddle with a new one.  A thread whose function has returned does
 * not live; the call waits for such a thread, a second at most.  Scopes below
 * go back to running too, except a scope for which a stop of its own was
 * requested.  A scope that is cleared while a coordinator above it is stopped
 * gets that stop again at once.
 *
 * Thread:    any; not a signal handler.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_FAILED_PRECONDITION, and evc_last_error() names the
 *            members that live; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_clear_stop(evc_coord *c);

/*
 * Get the first error of the round.  Each call until evc_clear_stop gives the
 * same error, before and after the join.
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
 * Get one of the reasons kept in this round: index 0 is the first request, the
 * others follow in the order of arrival.
 *
 * Thread:    any; not a signal handler.
 * Ownership: *ret_reason (may be NULL) is the caller's, filled by copy.
 * Returns:   0; -EVC_NOT_FOUND past the end; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_reason_get(const evc_coord *c, unsigned index, evc_reason *ret_reason);

/*
 * Add a stop hook: fn is called once for each stop, before any task is told,
 * also for a stop that came before the hook was added.  The hook runs on
 * opts.reactor, else on the home reactor, else (no home) on the coordinator's
 * helper thread, which is the library's own.  A join that has seen the stop
 * waits until the hook has returned.  The hook stays for later rounds until
 * evc_member_remove.  A hook flagged EVC_ON_DRAIN is called once a round: at
 * the drain, or at the stop when no drain came before.  Its result: 0 or a
 * clean code is fine; any other code is reported as an error.
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
