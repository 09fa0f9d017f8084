/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the adapters evcoord/glib.h, uv.h, event.h, sdevent.h, asio.hpp and
 * qt.hpp have in common, and what an adapter for one more loop needs: the
 * program includes the adapter, which includes this header.
 *
 * Each adapter has three calls.  Its attach makes a hosted reactor
 * (evc_reactor_foreign), and the host, the program's own loop, watches the
 * descriptor of the reactor.  Its run takes the place of the call by which the
 * program ran its host: the host runs until the members have ended after a
 * stop, and the run returns as evc_run does.  When the program ends its host
 * during the run, that requests the stop, and the run goes on.  Its detach
 * takes the descriptor off the host, and detaches the reactor; it belongs
 * before evc_free, evc_finish and the end of the host.
 *
 * All three are for one thread, that of the host.  The adapters are C99 and
 * C++11, and stand in headers alone: the library is not linked with any loop.
 */
#ifndef EVCOORD_ADAPTER_H
#define EVCOORD_ADAPTER_H

#include <evcoord/coord.h>
#include <evcoord/join.h>
#include <evcoord/observe.h>
#include <evcoord/reactor.h>

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/*
 * The part of an adapter that knows no host.  `reactor` is for the program,
 * the rest for the adapter.
 */
struct evc_adapter {
	evc_reactor *reactor; /* what the attach has made */
	evc_coord *c;
	int fd;               /* the host watches it for reading */
	pthread_t thread;     /* that of the attach */
	pid_t pid;            /* that of the attach */
	bool watched;         /* false: a turn was refused, so the host must not
				 watch fd any more, which would stay readable */
	bool running;         /* a run is in progress */
	bool answered;        /* the join of the run has its verdict */
	unsigned turns;       /* evc_reactor_turn on the stack */
	evc_verdict verdict;
};

/* Make the reactor; the adapter then lets the host watch a->fd. */
static inline evc_status
evc_adapter_open(struct evc_adapter *a, evc_coord *c, const char *name)
{
	memset(a, 0, sizeof(*a));
	a->c = c;
	a->thread = pthread_self();
	a->pid = getpid();
	a->watched = true;
	return evc_reactor_foreign(c, name, &a->fd, &a->reactor);
}

/* An attach is refused; the text `why` is for evc_last_error. */
static inline evc_status
evc_adapter_refuse(evc_coord *c, const char *func, evc_status st,
		   const char *why)
{
	return evc_refuse_setup(c, func, evc_refuse(st, "%s: %s", func, why));
}

/* Undo evc_adapter_open when the host could not watch. */
static inline evc_status
evc_adapter_fail(struct evc_adapter *a, const char *func, const char *why)
{
	evc_reactor_detach(a->reactor);
	return evc_adapter_refuse(a->c, func, -EVC_RESOURCE_EXHAUSTED, why);
}

/* Has a fork made a copy of the adapter, in a child?  The kernel's part of the
   host may then be shared with the parent. */
static inline bool
evc_adapter_is_copy(const struct evc_adapter *a)
{
	return a->pid != getpid();
}

/* The begin of a detach, func by name: 0, or refused.  After 0 the adapter
   takes fd off its host, and calls evc_adapter_detach.  The watch of a closed
   descriptor cannot be taken out of an epoll set, and so not out of the
   parent's. */
static inline evc_status
evc_adapter_leaving(struct evc_adapter *a, const char *func)
{
	const char *why = EVC_NULL_;

	if (!pthread_equal(a->thread, pthread_self()))
		why = "another thread's loop";
	else if (a->turns > 0)
		why = "inside one of its own callbacks";
	else if (a->running)
		why = "inside its run";
	if (why != EVC_NULL_)
		return evc_refuse(-EVC_FAILED_PRECONDITION, "%s: %s", func,
				  why);
	if (evc_adapter_is_copy(a))
		close(a->fd);
	return 0;
}

/* Detach the reactor.  A reactor that is gone already, because its coordinator
   was freed first, is detached; and so it is in a fork child. */
static inline evc_status
evc_adapter_detach(struct evc_adapter *a)
{
	return evc_reactor_host_runs(a->reactor, false) < 0 ?
		       0 :
		       evc_reactor_detach(a->reactor);
}

/* Has the run to turn its host, still? */
static inline bool
evc_adapter_goes_on(const struct evc_adapter *a)
{
	return a->watched && !a->answered;
}

/* The host calls it when fd is readable.  The result: the host's run that is in
   progress is to return now.  The adapter then looks at a->watched, too. */
static inline bool
evc_adapter_turn(struct evc_adapter *a)
{
	if (!pthread_equal(a->thread, pthread_self())) {
		evc_fail_at(a->c, EVC_FAILED_PRECONDITION, 0, EVC_NULL_, 0,
			    EVC_NULL_,
			    "the loop of another thread was attached, and runs "
			    "here");
		a->watched = false;
		return true;
	}
	a->turns++;
	/* Refused in a fork child. */
	if (evc_reactor_turn(a->reactor) < 0)
		a->watched = false;
	a->turns--;
	return a->running && !evc_adapter_goes_on(a);
}

static inline void
evc_adapter_answer(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct evc_adapter *a = EVC_CAST_(struct evc_adapter *, arg);

	(void)c;
	a->answered = true;
	a->verdict = *v;
}

/* The begin of a run, func by name; a may be NULL.  `nested`: the host says
   that this thread is inside its run, and cannot run once more. */
static inline evc_status
evc_adapter_begin(struct evc_adapter *a, const char *func, bool nested,
		  const evc_join_opts *opts)
{
	evc_join_opts o;
	evc_status st;

	memset(&o, 0, sizeof(o));
	if (a == EVC_NULL_)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "%s: no loop", func);
	if (!pthread_equal(a->thread, pthread_self()))
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "%s: another thread's loop", func);
	if (a->running || a->turns > 0 || nested)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "%s: inside a callback of the loop it would "
				  "deadlock",
				  func);
	if (opts != EVC_NULL_)
		o = *opts;
	if (o.reactor != EVC_NULL_ && o.reactor != a->reactor)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: runs its own loop only", func);
	o.reactor = a->reactor;
	o.flags |= EVC_JOIN_UNTIL_STOP;
	a->answered = false;
	st = evc_join_start(a->c, evc_adapter_answer, a, &o);
	if (st == 0) {
		a->running = true;
		evc_reactor_host_runs(a->reactor, true);
	}
	return st;
}

/* The host's run has returned for good, or was left by an exception. */
static inline void
evc_adapter_leave(struct evc_adapter *a)
{
	a->running = false;
	evc_reactor_host_runs(a->reactor, false);
}

/* The host's run has returned: when the program has ended it, that requests the
   stop.  A status other than 0 makes it an error. */
static inline void
evc_adapter_ended(struct evc_adapter *a, evc_status code, int err,
		  const char *text)
{
	if (a->answered)
		return;
	if (code != 0)
		evc_fail_at(a->c, code, err, EVC_NULL_, 0, EVC_NULL_, "%s",
			    text);
	else if (!evc_should_stop(a->c))
		evc_request_stop_at(a->c, 0, text, EVC_NULL_, 0, EVC_NULL_);
}

/* The end of a run.  A host that cannot run any more leaves the join to this
   call, which waits for the reactor alone. */
static inline evc_status
evc_adapter_end(struct evc_adapter *a, evc_verdict *ret_verdict)
{
	struct pollfd p;
	evc_status st = 0;

	evc_adapter_ended(a, 0, 0, "the loop cannot run any more");
	memset(&p, 0, sizeof(p));
	p.fd = a->fd;
	p.events = POLLIN;
	while (!a->answered && st == 0) {
		(void)poll(&p, 1, -1);
		st = evc_reactor_turn(a->reactor);
	}
	evc_adapter_leave(a);
	if (!a->answered)
		return st;
	if (ret_verdict != EVC_NULL_)
		*ret_verdict = a->verdict;
	return a->verdict.code;
}

#endif
