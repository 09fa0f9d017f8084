/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Status codes, flags, and the plain structs that carry options in and
 * answers out.  Everything here is filled by copy: no pointer in an answer
 * points into the library.
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
#define EVC_MUST_USE __attribute__((warn_unused_result))
#define EVC_PRINTF_(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#error "evcoord needs gcc, clang or a compiler that speaks their dialect"
#endif

EVC_BEGIN_DECLS_

/* libev's loop, only named here: ev.h is never needed by these headers. */
struct ev_loop;

/* 0 fine; > 0 a code that somebody reported; < 0 this call was refused. */
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

/* What evc_join_step answers while the join goes on: the one negative status
   that is no refusal. */
#define EVC_PENDING (-1000)

/* A grace of no time at all, where 0 means "inherit" (seconds). */
#define EVC_NO_GRACE (-1.0)

/*
 * Flags.  No two of them are the same bit, whatever they are for: one that was
 * given to the wrong call or struct is refused with -EVC_INVALID_ARGUMENT.
 */

/* evc_config.flags */
enum {
	/* A call that makes or starts something also reports its error when it
	   is refused: of members, hooks, scopes, loops, queues, pools, groups,
	   clusters, timelines, signals. */
	EVC_STRICT_SETUP = 1 << 12,
	/* No code is clean by default; the list must then be empty. */
	EVC_NO_CLEAN_CODES = 1 << 13,
	/* The log hook also hears that a stop was asked for and that it is
	   over. */
	EVC_LOG_STOPS = 1 << 14,
	/* A scope alone: it has no home, whatever the parent has: its hooks and
	   its `ended` run on the helper thread, so they need no loop to turn. */
	EVC_NO_HOME = 1 << 15,
	/* When the program has set the kick signal to be ignored, or to its
	   default action, a kick of this coordinator sets its handler again.
	   Without this such kicks are not sent; the log (EVC_LOG_WARNING) and
	   the report say so. */
	EVC_KICK_RESTORE = 1 << 30
};

/* evc_member_opts.flags, and evc_task_class.flags (EVC_AFTER_STOP only) */
enum {
	/* Keeps no join waiting: when only such members are left before a
	   stop, the join asks for the stop. */
	EVC_BACKGROUND = 1 << 0,
	/* Any end of this member stops all, a clean one too. */
	EVC_END_STOPS = 1 << 1,
	/* May begin after the stop. */
	EVC_AFTER_STOP = 1 << 2,
	/* A started thread, also that of a looper: watched by a pidfd, so that
	   even a raw SYS_exit is seen at once. */
	EVC_WATCHED = 1 << 3,
	/* A looper: on a thread of its own instead of a loop. */
	EVC_OWN_THREAD = 1 << 4,
	/* A looper: created now, started by evc_member_resume. */
	EVC_PAUSED = 1 << 5,
	/* A looper: one last run at the stop. */
	EVC_FLUSH = 1 << 6,
	/* A stop hook: called at a drain already, or at a stop that no drain
	   came before. */
	EVC_ON_DRAIN = 1 << 7,
	/* A thread, started or registered, a looper on a thread of its own, a
	   guard: at a stop its thread gets the kick signal, again and again,
	   1 ms doubling to 25 ms, until it has ended; not for 25 ms after a
	   progress text of its.  See evcoord/wake.h. */
	EVC_KICK = 1 << 8
};

/*
 * What a looper does about boundaries that passed while it could not run:
 * evc_member_opts.missed.
 */
enum {
	/* One run for all of them, the others are counted as missed: also what
	   0 means. */
	EVC_MISSED_SKIP = 1,
	/* A run for each, one after the other. */
	EVC_MISSED_BURST = 2,
	/* One run, and the next an interval after it began: the grid moves. */
	EVC_MISSED_DELAY = 3
};
/* A run for each of the n latest at most, 1 <= n <= 65535; the ones before are
   missed.  (A plain number above 3 means the same.) */
#define EVC_MISSED_AT_MOST(n) (0x10000u + (unsigned)(n))

/* evc_scope_opts.on_error: what a scope's error means for its parent. */
enum {
	EVC_ON_ERROR_STOP = 0,   /* it is the parent's error too, and stops it */
	EVC_ON_ERROR_REPORT = 1, /* it stands in the parent's verdict, and stops
				    nothing there */
	EVC_ON_ERROR_IGNORE = 2  /* the parent does not hear of it */
};

/* evc_join_opts.flags */
enum {
	/* The join begins, then asks for the stop. */
	EVC_JOIN_STOP_FIRST = 1 << 16,
	/* Members alive when the grace is over make no DEADLINE_EXCEEDED. */
	EVC_JOIN_IGNORE_LIVE = 1 << 17,
	/* Refused with -EVC_FAILED_PRECONDITION before a stop. */
	EVC_JOIN_STRICT = 1 << 18
};

/* evc_signals_opts.flags */
enum {
	/* The third signal writes a line and leaves with _exit(128 + n). */
	EVC_SIGNALS_THIRD_EXITS = 1 << 19
};

/* What a reason came from: evc_reason.kind */
enum {
	EVC_BY_REQUEST = 1,     /* somebody asked, with a clean code */
	EVC_BY_ERROR = 2,       /* somebody reported an error */
	EVC_BY_MEMBER_END = 3,  /* the end or the result of a member */
	EVC_BY_SIGNAL = 4,      /* a signal of evc_signals_start */
	EVC_BY_EMPTY = 5,       /* only background members were left */
	EVC_BY_LOOP_BROKEN = 6, /* ev_break inside evc_run */
	EVC_BY_PARENT = 7       /* the stop of the coordinator above */
};

/* What a member is: evc_member_info.kind */
enum {
	EVC_THREAD = 1,     /* started by the coordinator */
	EVC_REGISTERED = 2, /* a thread of the program, joined by us alone */
	EVC_LOOPER = 3,     /* a periodic task */
	EVC_TASK = 4,       /* a piece of work in flight on a loop */
	EVC_RUNNER = 5,     /* what a table of operations describes */
	EVC_HOLD = 6,       /* a counted member of any thread */
	EVC_HOOK = 7,       /* a stop hook */
	EVC_SCOPE = 8       /* a coordinator below this one */
};

/* How far a member is: evc_member_info.state */
enum {
	EVC_LIVE = 1,    /* it runs */
	EVC_DONE = 2,    /* it has ended, nobody has joined it yet */
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
 * Why a stop was asked for, by whom, where and when.
 */
typedef struct evc_reason {
	evc_status code;   /* 0..255; 0 = a plain request */
	int err;           /* errno value that came with it, or 0 */
	int line;          /* source line, or 0 */
	int tid;           /* kernel thread id of who asked */
	unsigned kind;     /* EVC_BY_... */
	unsigned round;    /* the first round is 1 */
	uint64_t mono_ns;  /* monotonic clock, nanoseconds */
	uint64_t real_ns;  /* wall clock, nanoseconds since the epoch */
	evc_id by;         /* the member that asked, or 0 */
	char who[48];      /* its name, or the kernel's name of the thread, as
			      it was when that thread first asked */
	char file[64];     /* source file (its end, when longer), or "" */
	char func[48];     /* function, or "" */
	char text[192];    /* what was said, cut to fit */
	uint64_t reserved_[8];
} evc_reason;

/*
 * What a join answers.
 */
typedef struct evc_verdict {
	evc_status code;       /* what the join returned */
	unsigned round;        /* the round it speaks of */
	unsigned n_ended;      /* members that ended in it, tasks aside */
	unsigned n_errors;     /* all errors of the round, kept or not */
	unsigned n_stragglers; /* members still alive */
	double took;           /* seconds from the stop, or, without one, from
				  the start of the join */
	evc_reason error;      /* what made code; its text names who was late */
	evc_reason stop;       /* the first request; kind 0 when there is none */
	uint64_t reserved_[8];
} evc_verdict;

/*
 * A member as evc_member_get and evc_member_each show it.
 */
typedef struct evc_member_info {
	evc_id id;       /* 0 for tasks and scopes */
	unsigned kind;   /* EVC_THREAD ... */
	unsigned state;  /* EVC_LIVE ... */
	unsigned round;  /* the round it began in */
	unsigned flags;  /* EVC_BACKGROUND ... */
	double age;      /* seconds since it began */
	uint64_t ticks;  /* a looper: its runs; a line of tasks: how many it
			    stands for; a scope: what is alive in it */
	uint64_t missed; /* a looper: boundaries without a run */
	char name[48];   /* its name; a task: the name of its class */
	char where[96];  /* "tid 123", "on REACTOR", what a runner says of
			    itself, "phase 1", or "" */
	uint64_t reserved_[8];
} evc_member_info;

/*
 * A function of a member: threads, loopers, stop hooks and guards alike.
 * Returns: 0 or a code; what it means stands at each call that takes one.  A
 * negative value is taken as its positive code, one outside 0..255 as
 * EVC_UNKNOWN with the number in the text.
 */
typedef evc_status evc_fn(evc_coord *c, void *arg);

/* The set-up of a loop on a thread of its own; called there. */
typedef evc_status evc_reactor_fn(evc_reactor *r, void *arg);

/* The result of a join that runs in a loop; called once, on that loop. */
typedef void evc_join_fn(evc_coord *c, const evc_verdict *v, void *arg);

/* One member of a walk; m is valid during the call; false ends the walk. */
typedef bool evc_each_fn(const evc_member_info *m, void *arg);

/*
 * How a coordinator is to be made.
 */
typedef struct evc_config {
	double grace;            /* seconds members get after the stop; 0 = 120,
				    EVC_NO_GRACE none, INFINITY for ever */
	const char *name;        /* copied; NULL = "coord"; < 48 bytes */
	const evc_status *clean; /* clean codes; replaces the default, which
				    is EVC_OUT_OF_RANGE alone */
	unsigned n_clean;        /* how many; 0 = the default */
	unsigned max_reasons;    /* reasons kept in a round; 0 = 32, <= 254;
				    2 at least are kept */
	unsigned flags;          /* EVC_STRICT_SETUP, EVC_NO_CLEAN_CODES,
				    EVC_LOG_STOPS, EVC_KICK_RESTORE */
	/* A code is clean if the list or this says so.  Asked by evc_new
	   once for each of 1..255, never later. */
	bool (*is_clean)(evc_status code, void *arg);
	/* Gets one line for each error recorded and for each join that ends
	   with members alive (EVC_LOG_ERROR), for the members alive shortly
	   before the end of a stop, each call of evc_extend_stop and kicks
	   that wake nobody (EVC_LOG_WARNING), with EVC_LOG_STOPS for each stop
	   and its end (EVC_LOG_INFO).  Called by joins, by loops, by
	   evc_clear_stop and evc_free, by the helper thread, perhaps by
	   several threads at once; never inside a request, never under a lock;
	   r is NULL where no reason belongs to the line. */
	void (*log)(int level, const char *line, const evc_reason *r,
		    void *arg);
	/* A clock for tests: monotonic nanoseconds.  Must be safe in signal
	   handlers and callable by any thread. */
	uint64_t (*clock)(void *arg);
	void *arg;               /* for the three above */
	uint64_t reserved_[8];
} evc_config;

/*
 * How a member is to be taken in.  What stands for a looper or a hook alone is
 * refused with -EVC_INVALID_ARGUMENT elsewhere; what is not built yet with
 * -EVC_UNIMPLEMENTED.
 */
typedef struct evc_member_opts {
	/* Each kind of member looks at what concerns it. */
	evc_reactor *reactor;     /* hooks, loopers, runners: where to run;
				     NULL = home */
	size_t stack;             /* threads: bytes; 0 = the system's
				     default, as for pthread_create */
	double grace;             /* seconds after which this member is late,
				     never later than the join's; 0 = the
				     join's */
	unsigned flags;           /* EVC_BACKGROUND ... */
	unsigned missed;          /* loopers: EVC_MISSED_..., or at most n */
	/* At a stop: wake this member, whatever it is blocked in; arg is the
	   member's (of evc_reactor_start the setup's; NULL where there is none:
	   registered threads, holds, children) and must live as long.  Called
	   on the helper thread, again and again, 1 ms doubling to 25 ms, until
	   it has ended; of a guard, until it returns. */
	void (*unblock)(void *arg);
	evc_fn *start;            /* loopers: called once before the first
				     run, there where it runs; not 0: no run
				     comes, and the looper has ended with it */
	evc_fn *stop;             /* loopers: called once at the end, when
				     start had succeeded */
	double jitter;            /* loopers: each run comes later by a random
				     part, 0..1, of the interval at most */
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
 * How a join is to wait.
 */
typedef struct evc_join_opts {
	double grace;             /* seconds; 0 = the config's */
	evc_reactor *reactor;     /* the loop to run in; NULL = the loop of
				     the calling thread, if it has one */
	const pthread_t *threads; /* threads to join as well */
	unsigned n_threads;
	unsigned flags;           /* EVC_JOIN_... */
	uint64_t reserved_[8];
} evc_join_opts;

/*
 * Which signals ask for the stop.
 */
typedef struct evc_signals_opts {
	int stop[8];        /* signal numbers, ended by 0; none = SIGINT and
			       SIGTERM */
	double short_grace; /* seconds after the second signal; 0 = 1,
			       EVC_NO_GRACE none */
	unsigned flags;     /* EVC_SIGNALS_THIRD_EXITS */
	int exit_fd;        /* where the third signal writes its line; 0 =
			       standard error */
	uint64_t reserved_[8];
} evc_signals_opts;

/*
 * A member that the program describes.  is_running and stop are called on the
 * loop of its reactor (opts.reactor, or the home), without one by whoever
 * joins; join on that loop if opts.reactor names it, else on a thread of its
 * own, so that one that blocks holds up nobody.  Never called under a lock.
 */
typedef struct evc_runner_ops {
	/* Does it run still?  Must not block; also asked by evc_all_stopped and
	   again and again by joins, on a back-off of 1 ms doubling to 25 ms. */
	bool (*is_running)(void *arg);
	/* The stop was asked for: called once.  NULL: it sees the stop by
	   itself. */
	void (*stop)(void *arg);
	/* It runs no more: called exactly once, after is_running said no or
	   evc_runner_done was called.  What it returns is the runner's result.
	   NULL: nothing is left to do. */
	evc_status (*join)(void *arg);
	/* Say in a few words where it is, for reports: into buf, n bytes, ended
	   by a 0 byte.  NULL: nothing to say.  Called by who reports. */
	void (*describe)(char *buf, size_t n, void *arg);
} evc_runner_ops;

/*
 * How a scope is to be made.
 */
typedef struct evc_scope_opts {
	/* As for evc_new, but: grace, for its own joins and for `ended`, 0 =
	   what is left of the parent's, which no other value outlasts either,
	   and the limit after which the phases behind it are told; no clean
	   codes and no is_clean = the parent's; max_reasons 0 = 8; log NULL =
	   the parent's; clock must be NULL, the parent's counts. */
	evc_config config;
	evc_reactor *home; /* a reactor of the parent, or of one above it;
			      NULL = the parent's home, if it has one */
	int phase;         /* told after the phases before it; 0 = first */
	unsigned on_error; /* EVC_ON_ERROR_... */
	/* Called once a round: after the scope's stop, when its members are
	   gone or its grace is over, whoever stopped it; on its home loop, else
	   on the helper thread.  It may free the scope.  Rounds that come and
	   go before its loop turns are told as one. */
	void (*ended)(evc_coord *scope, const evc_verdict *v, void *arg);
	void *arg;         /* for ended */
	uint64_t reserved_[8];
} evc_scope_opts;

typedef struct evc_task evc_task;
typedef struct evc_task_class evc_task_class;

/*
 * A piece of work in flight on a loop, such as a connection.  Memory of the
 * caller, zeroed before its first use, 64 bytes; the fields are the library's.
 * It may be freed once evc_task_end has returned.
 */
struct evc_task {
	evc_task *next_, *prev_;
	evc_reactor *reactor_;
	void *count_;
	const evc_task_class *class_;
	double since_;
	uint64_t reserved_[2];
};

/*
 * What tasks of one kind have in common; static memory of the caller.
 */
struct evc_task_class {
	const char *name; /* shown in reports */
	/* The stop was asked for: called once for each task, on its loop, in
	   the order of their begin, after the stop hooks.  It may end this
	   task or any other of this loop and free their memory.  NULL: the
	   owner asks evc_should_stop. */
	void (*on_stop)(evc_task *t, void *arg);
	void *arg;
	unsigned flags;   /* EVC_AFTER_STOP: may begin after the stop, and is then
			     never told of it */
};

EVC_END_DECLS_

#endif
