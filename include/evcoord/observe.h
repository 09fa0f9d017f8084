/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts for people: why a program stopped, which members are late, why a call
 * was refused.
 */
#ifndef EVCOORD_OBSERVE_H
#define EVCOORD_OBSERVE_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Explain why the coordinator stopped, or why it has not: one paragraph that
 * says who requested the stop (name and thread id), why, where in the source,
 * when, and what followed.
 *
 * Thread:    any; not a signal handler.
 * Ownership: buf is the caller's; ended by a 0 byte when n > 0; may be NULL
 *            when n is 0.
 * Returns:   as snprintf: the length of the whole text without the 0 byte.
 * Since:     0.1
 */
EVC_API size_t
evc_explain(const evc_coord *c, char *buf, size_t n);

/* The formats of a report. */
enum {
	EVC_REPORT_TEXT = 1,    /* for a person */
	EVC_REPORT_JSON = 2,    /* one object */
	EVC_REPORT_METRICS = 3, /* counters, for Prometheus */
	/* Added to text or JSON: the stack of every thread, also before a
	   stop. */
	EVC_REPORT_STACKS = 1 << 24
};

/*
 * All kept reasons, the steps that the stop has reached, and all members alive,
 * here and in the scopes below.  Of each member: name, id, kind, state, its
 * last progress text and the age of that (of what runs on a loop: the loop's,
 * while it is in the callback), the time that it was granted by
 * evc_extend_stop, how often it was unblocked and kicked.  Of a thread, while a
 * stop stands, also what the kernel says it does (state, wait channel, system
 * call: /proc, as far as that may be read) and, when evc_stack_signal was
 * called, its stack.  Of a loop that has not turned since the stop: which
 * callback of ours it is in, or that it is one of the application's, since
 * when, and its thread's stack.
 *
 * The metrics: members by kind and state, stops and how long they took (a
 * histogram), kicks, calls of unblock, stragglers, errors, the loopers' missed
 * runs; of each loop its turns, its longest turn and the posts that have not
 * returned; the version of the library.
 *
 * A worker group, a pool and a cluster are scopes, and have a part of their own
 * in each format.  For one of them alone: the report of evc_group_scope,
 * evc_pool_scope or evc_cluster_scope; for a registry: the report of
 * evc_registry_coord.  A queue has a part at its coordinator.
 *
 * Thread:    any; not a signal handler.
 * Ownership: as evc_explain.
 * Returns:   as evc_explain.  A refusal is in the text, in the form of the
 *            format: in JSON an object with "error" alone.  The text changes
 *            from call to call, and to take a stack ends some sleeps of the
 *            thread (nanosleep, poll): so call it once, with room for all
 *            (64 KiB), or use evc_dump.
 * Since:     0.2
 */
EVC_API size_t
evc_report(const evc_coord *c, unsigned format, char *buf, size_t n);

/*
 * Write a report at any time, before a stop as well.
 *
 * Thread:    any; not a signal handler.
 * Ownership: fd is the caller's and stays open.
 * Returns:   0; -EVC_UNAVAILABLE when fd cannot be written;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION,
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_dump(const evc_coord *c, int fd, unsigned format);

/*
 * Do that whenever the process gets the signal signo: on the helper thread,
 * which is made now.  A second call with another signal, descriptor or format
 * replaces the first; signo 0 ends it and restores the former handler, as
 * evc_free does.
 *
 * Thread:    any; one coordinator in a process.
 * Ownership: fd is the caller's and stays open.
 * Returns:   0; -EVC_ALREADY_EXISTS when another coordinator has it, or signo
 *            is one of evc_signals_start; -EVC_NOT_FOUND for 0 when it is not
 *            set; -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION for a scope,
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_dump_signal(evc_coord *c, int signo, int fd, unsigned format);

/*
 * Let reports show stacks: each thread in a report gets this signal, and the
 * handler (with SA_RESTART) notes the thread's stack.  0: the highest free
 * real-time signal.  The stack of a thread that blocks the signal is not
 * available; threads that a coordinator has started before this call block it.
 * The handler stays until the process ends.
 *
 * Thread:    any; best first of all.
 * Ownership: the signal is the library's.
 * Returns:   0, also when signo was chosen already; -EVC_ALREADY_EXISTS when
 *            signo has a handler or another signal was chosen;
 *            -EVC_INVALID_ARGUMENT; -EVC_RESOURCE_EXHAUSTED; -EVC_UNIMPLEMENTED
 *            without a backtrace(3) that a handler may call (glibc before
 *            2.35).
 * Since:     0.1
 */
EVC_API evc_status
evc_stack_signal(int signo);

/*
 * Write what a report with stacks says of one thread of this process: a line
 * with what the kernel says it does, and its stack, a line for each call, the
 * innermost first; or why the stack cannot be had.  The stack of another thread
 * needs evc_stack_signal; the call waits a tenth of a second for it at most.
 * Inside a describe (evc_scope_opts) of a report with stacks: what the report
 * has seen at its begin, and then does not say again.
 *
 * Thread:    any; not a signal handler.  tid is the number of gettid(2) of a
 *            thread that has not been joined.
 * Ownership: as evc_explain.
 * Returns:   as evc_explain; the text may differ from call to call, so call it
 *            once, with room for all (8 KiB).
 * Since:     0.2
 */
EVC_API size_t
evc_stack_of(int tid, char *buf, size_t n);

/*
 * A function for evc_config.log: writes a line to standard error, with the
 * time, the level and the reason's fields; to systemd's journal, when
 * JOURNAL_STREAM names standard error, with "<3>" for the level and no time.
 *
 * Thread:    any.
 * Ownership: nothing changes hands; arg is not used.
 * Returns:   nothing.
 * Since:     0.1
 */
EVC_API void
evc_log_stderr(int level, const char *line, const evc_reason *r, void *arg);

/*
 * A function for evc_config.log: writes a line to syslog(3), with its level.
 *
 * Thread:    any.
 * Ownership: nothing changes hands; arg is not used.
 * Returns:   nothing.
 * Since:     0.1
 */
EVC_API void
evc_log_syslog(int level, const char *line, const evc_reason *r, void *arg);

/*
 * Get the text that says why this thread's last refused call was refused.
 *
 * Thread:    any; the text is the calling thread's own.
 * Ownership: the text is the library's; valid until this thread's next call is
 *            refused.
 * Returns:   the text, "" before the first refusal.  A call that succeeds
 *            leaves it as it is.
 * Since:     0.1
 */
EVC_API const char *
evc_last_error(void);

/*
 * For libraries built on evcoord: refuse a call as evcoord does.
 *
 * Thread:    any; not a signal handler.
 * Ownership: the text is copied, for this thread's evc_last_error.
 * Returns:   status, so that a function may return the result of this call.
 * Since:     0.1
 */
EVC_API evc_status
evc_refuse(evc_status status, const char *fmt, ...) EVC_PRINTF_(2, 3);

/*
 * For libraries built on evcoord: report that a call which makes or starts
 * something for c was refused, for the reason in evc_last_error.  With
 * EVC_STRICT_SETUP the refusal is an error of c, unless a stop is the reason
 * (EVC_CANCELLED) or an inner call has reported the same text to c.  Do not
 * call it when the caller's evc_member_opts have EVC_MAY_BE_REFUSED.
 *
 * Thread:    any; not a signal handler.
 * Ownership: func, the name of the call, is static text.
 * Returns:   status; when status is 0 nothing is reported.
 * Since:     0.1
 */
EVC_API evc_status
evc_refuse_setup(evc_coord *c, const char *func, evc_status status);

/*
 * For libraries built on evcoord: may the calling thread block until something
 * of c happens?  Inside ev_run of a loop that c has attached it may not,
 * because the loop would be blocked, too.  Ask before a wait; a look without a
 * wait needs no question.
 *
 * Thread:    any; not a signal handler.
 * Ownership: nothing changes hands; func is the name of the call that wants to
 *            wait, and the first word of a refusal's text.
 * Returns:   0; -EVC_FAILED_PRECONDITION inside such an ev_run, and in a fork
 *            child; -EVC_INVALID_ARGUMENT without a coordinator.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_may_wait(evc_coord *c, const char *func);

/*
 * For libraries built on evcoord: a part of a coordinator, an object that
 * evc_finish frees together with the coordinator, as it frees queues, pools and
 * worker groups, and that may have lines of its own in reports.  The struct
 * stands in the object and is zeroed before its fields are set.
 */
typedef struct evc_part evc_part;
struct evc_part {
	/* May the object be freed now?  0, or a refusal by evc_refuse, whose
	   text names the object. */
	evc_status (*may_free)(evc_part *p);
	/* Free the object, and p with it; as the public call that frees it.  A
	   part without a scope calls evc_part_remove. */
	evc_status (*free_object)(evc_part *p);
	evc_coord *scope;  /* the object's scope, which free_object frees; or
			      NULL */
	unsigned n_conds;  /* conditions (evc_cond_new) of the scope, else of
			      the coordinator, that free_object frees */
	bool ends_members; /* free_object ends the members in the scope that
			      live */
	/* What reports say of an object without a scope, as a scope's own part
	   by evc_scope_opts.describe; NULL: nothing.  Called by the thread that
	   reports, by several at once perhaps, never under a lock. */
	evc_describe_fn *describe;
	void *arg;         /* passed to describe */
	/* With describe: a word of at most 15 letters a-z and _ that says what
	   the object is, such as "queue", and its name (NULL: the kind).  Both
	   are copied.  In metrics the kind is a label with the name as its
	   value, and "#2" behind the second name of a kind; in JSON they stand
	   beside what describe has written. */
	const char *kind, *name;
	/* the library's */
	evc_coord *coord_;
	evc_part *next_, **at_;
	void *describer_;
	uint64_t reserved_[4];
};

/*
 * Add a part of c.  evc_finish asks all parts first, and c: when one of them
 * may not be freed, nothing is freed.  A part leaves with its scope.
 *
 * Thread:    any; not a signal handler.
 * Ownership: p is the caller's and stays where it is until its scope was freed,
 *            or evc_part_remove has returned.
 * Returns:   0; -EVC_INVALID_ARGUMENT, also for a part that was added, a scope
 *            that is none of c's own or has a part, and a scope with describe;
 *            -EVC_RESOURCE_EXHAUSTED; -EVC_FAILED_PRECONDITION in a fork child,
 *            and while c is being freed.
 * Since:     0.2
 */
EVC_API evc_status
evc_part_add(evc_coord *c, evc_part *p);

/*
 * Take a part out of its coordinator, which must still exist: wait until its
 * describe has returned wherever it runs, and call it no more.
 *
 * Thread:    any; not a signal handler.  Hold no lock that describe takes.
 * Ownership: p is the caller's again.
 * Returns:   0, also for NULL, a part that was not added, and a part that has
 *            left with its scope; -EVC_FAILED_PRECONDITION inside its describe,
 *            and in a fork child.
 * Since:     0.2
 */
EVC_API evc_status
evc_part_remove(evc_part *p);

/*
 * For libraries built on evcoord: give c's log hook one line, which begins with
 * c's name.  The helper thread calls the hook, after this call or meanwhile.
 *
 * Thread:    any; not a signal handler, and not while c is being freed.
 * Ownership: *r (NULL: no reason belongs to the line) is copied.
 * Returns:   nothing; without a hook nothing happens.
 * Since:     0.1
 */
EVC_API void
evc_log(evc_coord *c, int level, const evc_reason *r, const char *fmt, ...)
	EVC_PRINTF_(4, 5);

/*
 * Wait until the log hook has had all lines of c's tree that were written
 * before this call, for instance before an _exit.
 *
 * Thread:    any; not a signal handler.  Inside a log hook the call does not
 *            wait.
 * Ownership: nothing changes hands.
 * Returns:   true; false when timeout (seconds, INFINITY waits for ever) is
 *            over first.
 * Since:     0.2
 */
EVC_API bool
evc_log_flush(evc_coord *c, double timeout);

/*
 * Get the name of a code, such as "DEADLINE_EXCEEDED"; of a negative status,
 * the name of its code.
 *
 * Thread:    any, and any signal handler.
 * Ownership: static text.
 * Returns:   never NULL; "APPLICATION" for 17..255, "?" beyond.
 * Since:     0.1
 */
EVC_API const char *
evc_status_name(evc_status s);

/*
 * Get the version of the library at run time.
 *
 * Thread:    any, and any signal handler.
 * Ownership: static text.
 * Returns:   EVC_VERSION_STRING of the headers it was built with.
 * Since:     0.1
 */
EVC_API const char *
evc_version(void);

EVC_END_DECLS_

#endif
