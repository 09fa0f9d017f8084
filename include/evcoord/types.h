/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Status codes, flags, and the plain structs that carry options in and answers
 * out.  The library fills an answer by copy: no pointer in an answer points
 * into the library.
 */
#ifndef EVCOORD_TYPES_H
#define EVCOORD_TYPES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define EVC_BEGIN_DECLS_ extern "C" {
#define EVC_END_DECLS_ }
#else
#define EVC_BEGIN_DECLS_
#define EVC_END_DECLS_
#endif

#if defined(__GNUC__)
#define EVC_API __attribute__((visibility("default")))
#define EVC_PRINTF_(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#error "evcoord needs gcc, clang or a compiler that speaks their dialect"
#endif

/* The result is to be looked at; (void) before a call says that it is not.
   (gcc's warn_unused_result warns even then.)  Before EVC_API. */
#if defined(__cplusplus) && (__cplusplus >= 201703L || !defined(__clang__))
#define EVC_MUST_USE [[nodiscard]]
#elif defined(__clang__)
#define EVC_MUST_USE __attribute__((warn_unused_result))
#elif __GNUC__ >= 11
#define EVC_MUST_USE __extension__ [[__nodiscard__]]
#else
#define EVC_MUST_USE
#endif

/* A cast and a NULL that neither language warns of. */
#ifdef __cplusplus
#define EVC_CAST_(type, x) static_cast<type>(x)
#define EVC_NULL_ nullptr
#else
#define EVC_CAST_(type, x) ((type)(x))
#define EVC_NULL_ NULL
#endif

EVC_BEGIN_DECLS_

/* libev's loop, only named here: ev.h is never needed by these headers. */
struct ev_loop;

/* 0: fine; > 0: a code that was reported; < 0: this call was refused. */
typedef int evc_status;

/* A member's number in its coordinator: never used twice, 0 is none. */
typedef uint64_t evc_id;

typedef struct evc_coord evc_coord;
typedef struct evc_reactor evc_reactor;

/*
 * The canonical status codes that TensorFlow and gRPC share.  17..255 are the
 * application's own.
 */
enum {
	EVC_OK = 0,
	EVC_CANCELLED = 1,
	EVC_UNKNOWN = 2,
	EVC_INVALID_ARGUMENT = 3,
	EVC_DEADLINE_EXCEEDED = 4,
	EVC_NOT_FOUND = 5,
	EVC_ALREADY_EXISTS = 6,
	EVC_PERMISSION_DENIED = 7,
	EVC_RESOURCE_EXHAUSTED = 8,
	EVC_FAILED_PRECONDITION = 9,
	EVC_ABORTED = 10,
	EVC_OUT_OF_RANGE = 11, /* end of input: the default clean stop */
	EVC_UNIMPLEMENTED = 12,
	EVC_INTERNAL = 13,
	EVC_UNAVAILABLE = 14,
	EVC_DATA_LOSS = 15,
	EVC_UNAUTHENTICATED = 16
};

/* The answer of evc_join_step while the join goes on: the only negative status
   that is no refusal. */
#define EVC_PENDING (-1000)

/* A grace of no time at all, where 0 means "inherit" (seconds). */
#define EVC_NO_GRACE (-1.0)

/*
 * Flags.  No two flags in these headers are the same bit: a flag that is given
 * to the wrong call or struct is refused with -EVC_INVALID_ARGUMENT.
 */

/* evc_config.flags */
enum {
	/* A refused call that makes or starts something (members, hooks,
	   scopes, loops, queues, pools, groups, clusters, timelines, signals)
	   also reports its error to the coordinator, which stops.  The flag
	   holds for the life of the coordinator, not for the set-up alone; a
	   member that is started for one request has EVC_MAY_BE_REFUSED. */
	EVC_STRICT_SETUP = 1 << 12,
	/* No code is clean by default; the list must then be empty. */
	EVC_NO_CLEAN_CODES = 1 << 13,
	/* For scopes only.  The scope has no home, even when the parent has
	   one: its hooks and its `ended` run on the helper thread, so they need
	   no loop to turn. */
	EVC_NO_HOME = 1 << 15,
	/* When the program has set the kick signal to be ignored, or to its
	   default action, a kick of this coordinator sets the library's handler
	   again.  Without this flag such kicks are not sent; the log
	   (EVC_LOG_WARNING) and the report say so. */
	EVC_KICK_RESTORE = 1 << 30
};

/* evc_member_opts.flags, and evc_task_class.flags (EVC_AFTER_STOP, and
   EVC_TELL_AFTER_STOP) */
enum {
	/* The member keeps no join waiting: when only such members are left
	   before a stop, the join requests the stop. */
	EVC_BACKGROUND = 1 << 0,
	/* Any end of this member, a clean one too, requests the stop. */
	EVC_END_STOPS = 1 << 1,
	/* The member may begin after the stop. */
	EVC_AFTER_STOP = 1 << 2,
	/* A started thread, also that of a looper: a pidfd watches the thread,
	   so that even a raw SYS_exit is seen at once. */
	EVC_WATCHED = 1 << 3,
	/* A looper: it runs on a thread of its own instead of a loop. */
	EVC_OWN_THREAD = 1 << 4,
	/* A looper: it is created now, and started by evc_member_resume. */
	EVC_PAUSED = 1 << 5,
	/* A looper: it has one last run at the stop. */
	EVC_FLUSH = 1 << 6,
	/* A stop hook: it is called at a drain, or at a stop when no drain came
	   before. */
	EVC_ON_DRAIN = 1 << 7,
	/* A thread, started or registered, a looper on a thread of its own, a
	   guard: at a stop the member's thread gets the kick signal, again and
	   again, 1 ms doubling to 25 ms, until the member has ended.  No kick
	   comes for 25 ms after a progress text of that thread.  See
	   evcoord/wake.h. */
	EVC_KICK = 1 << 8,
	/* evc_task_class.flags alone: a task may begin after the stop, and is
	   told of the stop in the next turn of its loop. */
	EVC_TELL_AFTER_STOP = 1 << 9,
	/* A child process: an end that would be an error is logged
	   (EVC_LOG_WARNING), and is no error. */
	EVC_MAY_FAIL = 1 << 10,
	/* evc_thread_start: the thread's function gets a scope of its own as
	   its coordinator; evc_member_stop asks this scope. */
	EVC_OWN_SCOPE = 1 << 11,
	/* evc_register_thread, for the calling thread alone: somebody else
	   joins the thread, or detaches it. */
	EVC_NOT_JOINED = 1 << 14,
	/* With EVC_STRICT_SETUP: a refusal of this start is no error of the
	   coordinator, for the caller looks at the result. */
	EVC_MAY_BE_REFUSED = 1 << 29
};

/*
 * evc_member_opts.missed: what a looper does about boundaries that passed while
 * the looper could not run.
 */
enum {
	/* One run for all of them; the other boundaries count as missed.  0
	   means the same. */
	EVC_MISSED_SKIP = 1,
	/* One run for each boundary, one after the other. */
	EVC_MISSED_BURST = 2,
	/* One run; the next boundary is one interval after this run began, so
	   the later boundaries move. */
	EVC_MISSED_DELAY = 3
};
/* A run for each of the n latest boundaries at most, 1 <= n <= 65535; earlier
   ones count as missed.  (A plain number above 3 means the same.) */
#define EVC_MISSED_AT_MOST(n) (0x10000u + EVC_CAST_(unsigned, n))

/* evc_scope_opts.on_error: what a scope's error means for its parent. */
enum {
	EVC_ON_ERROR_STOP = 0,   /* the error is the parent's too, and stops the
				    parent */
	EVC_ON_ERROR_REPORT = 1, /* the error stands in the parent's verdict,
				    and stops nothing there */
	EVC_ON_ERROR_IGNORE = 2  /* the parent does not hear of the error */
};

/* evc_join_opts.flags */
enum {
	/* The join begins, then requests the stop. */
	EVC_JOIN_STOP_FIRST = 1 << 16,
	/* Members alive when the grace is over do not make the result
	   EVC_DEADLINE_EXCEEDED. */
	EVC_JOIN_IGNORE_LIVE = 1 << 17,
	/* Before a stop the join is refused with -EVC_FAILED_PRECONDITION. */
	EVC_JOIN_STRICT = 1 << 18,
	/* The join waits for a stop first, as evc_run does, even when no member
	   is alive. */
	EVC_JOIN_UNTIL_STOP = 1 << 28
};

/* evc_signals_opts.flags */
enum {
	/* The third signal writes a line and leaves with _exit(128 + n). */
	EVC_SIGNALS_THIRD_EXITS = 1 << 19,
	/* A signal that is ignored at the start requests the stop, too. */
	EVC_SIGNALS_IGNORED_TOO = 1 << 26,
	/* A first signal without a join in progress is kept for the next
	   join, but for half of the time of a stop at most; see
	   evc_signals_start. */
	EVC_SIGNALS_AT_JOIN = 1 << 27
};

/* The source of a reason: evc_reason.kind */
enum {
	EVC_BY_REQUEST = 1,     /* a request with a clean code */
	EVC_BY_ERROR = 2,       /* a reported error */
	EVC_BY_MEMBER_END = 3,  /* the end or the result of a member */
	EVC_BY_SIGNAL = 4,      /* a signal of evc_signals_start */
	EVC_BY_EMPTY = 5,       /* only background members were left */
	EVC_BY_LOOP_BROKEN = 6, /* ev_break inside evc_run */
	EVC_BY_PARENT = 7       /* the stop of the coordinator above */
};

/* The kind of a member: evc_member_info.kind */
enum {
	EVC_THREAD = 1,     /* started by the coordinator */
	EVC_REGISTERED = 2, /* a thread of the program, joined by the library
			       unless flagged EVC_NOT_JOINED */
	EVC_LOOPER = 3,     /* a function that runs at intervals */
	EVC_TASK = 4,       /* a piece of work in flight on a loop */
	EVC_RUNNER = 5,     /* a member that evc_runner_ops describe */
	EVC_HOLD = 6,       /* a counted member of any thread */
	EVC_HOOK = 7,       /* a stop hook */
	EVC_SCOPE = 8       /* a coordinator below this one */
};

/* The state of a member: evc_member_info.state */
enum {
	EVC_LIVE = 1,    /* the member runs */
	EVC_DONE = 2,    /* it has ended, and is not joined yet */
	EVC_REAPING = 3, /* it is being joined */
	EVC_REAPED = 4   /* it is accounted for */
};

/* Levels of the log hook: syslog's numbers. */
enum {
	EVC_LOG_ERROR = 3,
	EVC_LOG_WARNING = 4,
	EVC_LOG_INFO = 6
};

/*
 * A reason: why a stop was requested, which thread requested it, where and
 * when.
 */
typedef struct evc_reason {
	evc_status code;   /* 0..255; 0 = a plain request */
	int err;           /* errno value that came with it, or 0 */
	int line;          /* source line, or 0 */
	int tid;           /* kernel thread id of the requester */
	unsigned kind;     /* EVC_BY_... */
	unsigned round;    /* the first round is 1 */
	uint64_t mono_ns;  /* monotonic clock, nanoseconds */
	uint64_t real_ns;  /* wall clock, nanoseconds since the epoch */
	evc_id by;         /* the member that asked, or 0 */
	char who[48];      /* the member's name, or the kernel's name of the
			      requesting thread, as it was at that thread's
			      first request */
	char file[64];     /* source file (its end, when longer), or "" */
	char func[48];     /* function, or "" */
	char text[192];    /* the requester's text, cut to fit */
	int signo;         /* EVC_BY_SIGNAL: the signal; else 0 */
	uint64_t reserved_[7];
} evc_reason;

/*
 * The answer of a join.
 */
typedef struct evc_verdict {
	evc_status code;       /* the code that the join returned */
	unsigned round;        /* the round of this verdict */
	unsigned n_ended;      /* members that ended in the round, tasks
				  aside */
	unsigned n_errors;     /* all errors of the round, kept or not */
	unsigned n_stragglers; /* members still alive */
	double took;           /* seconds from the stop, or, without one, from
				  the start of the join */
	evc_reason error;      /* the error that made code; its text names the
				  late members */
	evc_reason stop;       /* the first request; its kind is 0 when there is
				  none */
	uint64_t reserved_[8];
} evc_verdict;

/*
 * A member, as evc_member_get and evc_member_each describe it.
 */
typedef struct evc_member_info {
	evc_id id;       /* 0 for tasks and scopes */
	unsigned kind;   /* EVC_THREAD ... */
	unsigned state;  /* EVC_LIVE ... */
	unsigned round;  /* the round in which the member began */
	unsigned flags;  /* EVC_BACKGROUND ... */
	double age;      /* seconds since the member began */
	uint64_t ticks;  /* a looper: its runs; a line of tasks: their number; a
			    scope: members alive in it */
	uint64_t missed; /* a looper: boundaries without a run */
	char name[48];   /* the member's name; a task: its class's name */
	char where[96];  /* "tid 123", "on REACTOR", a runner's describe text,
			    "on REACTOR (TEXT)" with a task's describe text,
			    "phase 1", or "" */
	uint64_t reserved_[8];
} evc_member_info;

/*
 * A function of a member: threads, loopers, stop hooks and guards alike.
 * Returns:   0 or a code; each call that takes such a function says what the
 *            code means.  A negative value counts as its positive code, a value
 *            outside 0..255 as EVC_UNKNOWN with the number in the text.
 */
typedef evc_status evc_fn(evc_coord *c, void *arg);

/* The set-up of a loop on a thread of its own; called on that thread. */
typedef evc_status evc_reactor_fn(evc_reactor *r, void *arg);

/* The result of a join that runs in a loop; called once, on that loop. */
typedef void evc_join_fn(evc_coord *c, const evc_verdict *v, void *arg);

/* Called for one member of a walk; m is valid during the call; the result false
   ends the walk. */
typedef bool evc_each_fn(const evc_member_info *m, void *arg);

/* A part of a report, written and returned as evc_report does: see
   evc_part and evc_scope_opts. */
typedef size_t evc_describe_fn(unsigned format, char *buf, size_t n,
			       void *arg);

/*
 * Options of a new coordinator.
 */
typedef struct evc_config {
	double grace;            /* seconds members get after the stop; 0 = 120,
				    EVC_NO_GRACE none, INFINITY for ever */
	const char *name;        /* copied; NULL = "coord"; of 48 bytes or
				    more: cut, and ends with "..." */
	const evc_status *clean; /* clean codes; replaces the default, which
				    is EVC_OUT_OF_RANGE alone */
	unsigned n_clean;        /* number of clean codes; 0 = the default */
	unsigned max_reasons;    /* reasons kept in a round; 0 = 32, <= 254;
				    2 at least are kept */
	unsigned flags;          /* EVC_STRICT_SETUP, EVC_NO_CLEAN_CODES,
				    EVC_KICK_RESTORE */
	/* A code is clean if the list or this function says so.  evc_new calls
	   the function once for each of 1..255; no later call follows. */
	bool (*is_clean)(evc_status code, void *arg);
	/* The log hook gets one line for each event.  EVC_LOG_ERROR: each error
	   recorded, each join that ends with members alive, and, when the time
	   of a stop is over, a report of the members and loops that still run
	   or hang.  EVC_LOG_WARNING: the members alive shortly before the end
	   of a stop, each call of evc_extend_stop, kicks that wake no thread.
	   EVC_LOG_INFO: each stop and its end.  The library's helper thread
	   calls the hook, one line after the other, with no lock held; evc_new
	   makes the thread.  A join, evc_clear_stop and evc_free return when
	   their lines are out, a join after 0.1 s at most: a hook that hangs
	   holds up no stop.  r is NULL when no reason belongs to the line. */
	void (*log)(int level, const char *line, const evc_reason *r,
		    void *arg);
	/* A clock for tests: monotonic nanoseconds.  The function must be safe
	   in signal handlers and callable by any thread. */
	uint64_t (*clock)(void *arg);
	void *arg;               /* passed to is_clean, log and clock */
	uint64_t reserved_[8];
} evc_config;

/*
 * Options of a new member.  An option for loopers or hooks alone is refused
 * with -EVC_INVALID_ARGUMENT for any other kind of member; an option that this
 * version does not know is refused with -EVC_UNIMPLEMENTED.
 */
typedef struct evc_member_opts {
	/* Each kind of member reads the fields that concern it. */
	evc_reactor *reactor;     /* hooks, loopers, runners: where to run;
				     NULL = home */
	size_t stack;             /* threads: bytes; 0 = the system's
				     default, as for pthread_create */
	double grace;             /* seconds after which this member is late, at
				     most the join's grace; 0 = the join's */
	unsigned flags;           /* EVC_BACKGROUND ... */
	unsigned missed;          /* loopers: EVC_MISSED_..., or at most n */
	/* Called at a stop to wake this member, whatever call the member is
	   blocked in.  arg is the member's arg and must live as long as the
	   member; for evc_reactor_start it is the setup's arg; registered
	   threads, holds and children have none, and get NULL.  The helper
	   thread calls the function again and again, 1 ms doubling to 25 ms,
	   until the member has ended; for a guard, until the guard returns. */
	void (*unblock)(void *arg);
	evc_fn *start;            /* loopers: called once before the first run,
				     on the looper's loop or thread; a result
				     other than 0 is the looper's result, and no
				     run comes */
	evc_fn *stop;             /* loopers: called once at the end, if start
				     had succeeded; evc_reactor_start: the
				     teardown, see there */
	double jitter;            /* loopers: a random delay of each run, at
				     most this fraction, 0..1, of the
				     interval */
	/* Loopers, hooks and runners: called exactly once with the member's arg
	   when the library will never call the member's functions again, also
	   when it never did.  Any thread calls release, without a lock; before
	   evc_free returns at the latest.  release must not free the
	   coordinator.  A call that is refused leaves arg to its caller, and
	   calls nothing; in a fork child nothing is called either. */
	void (*release)(void *arg);
	uint64_t reserved_[8];
} evc_member_opts;

/*
 * How to try again after a failure, later and later: restarts of a group's
 * workers, retries of a cluster's functions.  What 0 means in `times`, `within`
 * and `codes` stands at each field of this type.  A field without a meaning
 * there must be 0, or the call is refused with -EVC_INVALID_ARGUMENT.
 */
typedef struct evc_backoff {
	double first;   /* seconds before the first new attempt; 0 = 0.1 */
	double most;    /* the wait doubles up to this; 0 = 30, or `first` where
			   that is longer */
	double jitter;  /* 0..1: up to this part of a wait, at random, is added
			   to the wait */
	double within;  /* seconds: only attempts of so long count for `times`;
			   INFINITY: all attempts */
	unsigned times; /* new attempts, at most */
	unsigned char codes[8]; /* try again after these codes alone; ends
				   with 0 */
	uint64_t reserved_[2];
} evc_backoff;

/*
 * Options of a join.
 */
typedef struct evc_join_opts {
	double grace;             /* seconds; 0 = the config's */
	evc_reactor *reactor;     /* the loop to run in; NULL = the calling
				     thread's loop, if there is one */
	const pthread_t *threads; /* threads to join as well */
	unsigned n_threads;
	unsigned flags;           /* EVC_JOIN_... */
	uint64_t reserved_[8];
} evc_join_opts;

/*
 * Options of evc_signals_start.
 */
typedef struct evc_signals_opts {
	int stop[8];        /* signals that request the stop, ended by 0; none =
			       SIGINT and SIGTERM */
	double short_grace; /* seconds after the second signal; 0 = 1,
			       EVC_NO_GRACE none */
	unsigned flags;     /* EVC_SIGNALS_... */
	int exit_fd;        /* the descriptor for the third signal's line; 0 =
			       standard error */
	/* May this signal stop the program now?  The handler asks until a first
	   signal of the round is allowed; false: the signal does nothing, and
	   the log has a line about the signal.  The function must be safe in
	   signal handlers; no fork child calls it.  NULL: each signal may. */
	bool (*allow)(int signo, void *arg);
	void *arg;          /* passed to allow */
	uint64_t reserved_[6];
} evc_signals_opts;

/*
 * The functions of a runner, a member that the program describes.  is_running
 * and stop are called on the loop of the runner's reactor (opts.reactor, or the
 * home); without a reactor, by the threads that join.  join is called on the
 * loop of opts.reactor if there is one, else on a thread of its own, so that a
 * blocking join holds up no loop.  No function is called under a lock.
 */
typedef struct evc_runner_ops {
	/* Does the runner still run?  The function must not block.
	   evc_all_stopped calls it, too, and joins call it again and again, on
	   a back-off of 1 ms doubling to 25 ms. */
	bool (*is_running)(void *arg);
	/* Called once, when the stop was requested.  NULL: the runner sees the
	   stop by itself. */
	void (*stop)(void *arg);
	/* Called exactly once, after is_running returned false or
	   evc_runner_done was called.  The function's result is the runner's
	   result.  NULL: nothing is left to do. */
	evc_status (*join)(void *arg);
	/* For reports: write into buf, n bytes, ended by a 0 byte, in a few
	   words where the runner is.  NULL: reports say nothing more.  The
	   thread that makes the report calls the function. */
	void (*describe)(char *buf, size_t n, void *arg);
} evc_runner_ops;

/*
 * Options of a new scope.
 */
typedef struct evc_scope_opts {
	/* As for evc_new, with these differences.  grace counts for the scope's
	   own joins and for `ended`, and is the limit after which the next
	   phases are told; 0 = the rest of the parent's grace, which no other
	   value outlasts.  No clean codes and no is_clean = the parent's;
	   max_reasons 0 = 8; log NULL = the parent's; clock must be NULL,
	   because the parent's clock counts. */
	evc_config config;
	evc_reactor *home; /* a reactor of the parent, or of a coordinator
			      above; NULL = the parent's home, if there is
			      one */
	int phase;         /* the scope's place in the order of a stop; 0 =
			      first */
	unsigned on_error; /* EVC_ON_ERROR_... */
	/* Called once a round: after the scope's stop, whatever caused the
	   stop, when its members are gone or its grace is over; on the scope's
	   home loop, else on the helper thread.  The function may free the
	   scope.  Several rounds that end before the loop turns get one
	   call. */
	void (*ended)(evc_coord *scope, const evc_verdict *v, void *arg);
	/* For what is built on evcoord: what reports say of the scope beside
	   its members, written and returned as evc_report does.
	   EVC_REPORT_TEXT: lines.  EVC_REPORT_JSON: one value.
	   EVC_REPORT_METRICS: families of samples, each family with its HELP
	   line first; the report adds the labels coordinator and scope, and
	   joins families of one name.  NULL: nothing to say.  Called by the
	   thread that reports, by several at once perhaps, from evc_scope_new
	   to evc_free, never under a lock. */
	evc_describe_fn *describe;
	void *arg;         /* passed to ended and describe */
	/* EVC_REPORT_STACKS is added to the format of describe, text or JSON,
	   when the report takes the stacks of the scope's threads.  Then
	   describe may take longer, and should not wait for ever. */
	bool describe_stacks;
	/* The scope writes no lines, not to the log of the parent either.  Its
	   errors still stand in the parent's verdict, as on_error says, and
	   then in the log of the parent. */
	bool no_log;
	/* A thread of the scope, or of a scope below, may not join the scope
	   nor a coordinator above, because something there ends after the work
	   of the thread. */
	bool no_join;
	uint64_t reserved_[7];
} evc_scope_opts;

typedef struct evc_task evc_task;
typedef struct evc_task_class evc_task_class;

/*
 * A task: a piece of work in flight on a loop, such as a connection.  The
 * struct is memory of the caller, 64 bytes, zeroed before its first use; the
 * fields with a _ at the end are the library's.  The memory may be freed once
 * evc_task_end has returned.
 */
struct evc_task {
	evc_task *next_, *prev_;
	evc_reactor *reactor_;
	void *count_;
	const evc_task_class *class_;
	double since_;
	void *arg; /* the program's own; the library does not look at it */
	uint64_t reserved_[1];
};

/*
 * The common part of all tasks of one kind; static memory of the caller.
 */
struct evc_task_class {
	const char *name; /* shown in reports */
	/* Called once for each task when the stop was requested: on the task's
	   loop, in the order in which tasks began, after the stop hooks.  The
	   function may end this task or any other of this loop and free their
	   memory.  NULL: the owner asks evc_should_stop. */
	void (*on_stop)(evc_task *t, void *arg);
	void *arg;
	unsigned flags;   /* EVC_AFTER_STOP: a task may begin after the stop,
			     and is then not told of the stop;
			     EVC_TELL_AFTER_STOP: it may, and is told in the
			     next turn of the loop */
	double grace;     /* seconds after the stop until on_late; 0, and more
			     than the coordinator's grace = that grace;
			     EVC_NO_GRACE = right after on_stop */
	/* Called once for each task that is left when the class's grace is
	   over, or when a second signal cuts the grace: on the task's loop, in
	   the order in which tasks began, after all on_stop.  The function may
	   do what on_stop may do.  No join waits longer for this call.  NULL:
	   none. */
	void (*on_late)(evc_task *t, void *arg);
	/* For verdicts and reports: write into buf, n bytes, ended by a 0 byte,
	   in a few words which task this is: a peer, an URL.  Called on the
	   task's loop, for the oldest tasks that are left after the stop; the
	   function must not wait, and needs no task to end.  NULL: reports give
	   the class and the age. */
	void (*describe)(const evc_task *t, char *buf, size_t n, void *arg);
	uint64_t reserved_[8];
};

EVC_END_DECLS_

#endif
