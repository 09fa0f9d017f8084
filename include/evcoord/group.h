/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups: threads that call one function again and again, started
 * together, stopped together, by name, with metrics.
 *
 * A group is a scope; its workers are the threads in it, named GROUP/ID.  A
 * registry is the list of groups that one call starts or stops; there is one for
 * the process (NULL stands for it), and as many of one's own as one likes.
 *
 *     evc_group_init(NULL, "train", work, &job, NULL, &group, NULL);
 *     evc_registry_start(NULL);
 *     ...
 *     evc_registry_stop(NULL, NULL);
 *
 * What the group's functions are called for, in this order:
 *   start   init of each group of the registry in turn; then for each group
 *           state.start, then its threads.
 *   stop    all groups are inactive, their workers told; then of each group in
 *           turn shutdown and state.stop, once, if it was started.  Then all are
 *           awaited, in one budget; cleanup follows when all of a group have
 *           ended, of the groups in their order.
 * A start that fails is taken back in that way, the last group first: shutdown
 * where init had succeeded, state.stop and cleanup where state.start had.
 * Those run on the thread that called start or stop; when a worker's end or
 * error, or a coordinator above, stops the group, on the helper thread: never on
 * a worker that failed, never under a lock.
 *
 * Whoever may call what: any thread may call any of these at any time, a worker
 * and a logger too.  A worker or logger that stops its own group is left out of
 * the wait, and so are, for workers that stop or await groups, other workers
 * that do.  Inside init, shutdown and the functions of state, starting,
 * stopping, resizing and freeing is refused with -EVC_FAILED_PRECONDITION.
 * While one thread starts groups, others that start or stop wait for it.
 */
#ifndef EVCOORD_GROUP_H
#define EVCOORD_GROUP_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

typedef struct evc_registry evc_registry;
typedef struct evc_group evc_group;

/*
 * One run of a worker.  id is its own for ever in its registry.
 * Returns: 0: call me again; a clean code (EVC_OUT_OF_RANGE by default): this
 * worker has ended, and its group when it was the last; EVC_CANCELLED after a
 * stop: it has obeyed, also when a queue (evcoord/queue.h) has told it in this
 * run of the stop of another coordinator, that of the queue; any other: an
 * error, see evc_group_opts.on_error.
 */
typedef evc_status evc_worker_fn(evc_group *group, unsigned id, void *arg);

/* Before the threads of any group start; not 0: nothing is started, and the
   groups whose init was called before are shut down again in reverse. */
typedef evc_status evc_group_init_fn(evc_group *group, evc_registry *reg,
				       void *arg);
typedef void evc_group_shutdown_fn(evc_group *group, void *arg);

/* A sum that workers add to. */
typedef struct evc_metric {
	char name[56];
	double value;
} evc_metric;

/* An external logger: gets every metric of the group, on the thread of the
   worker that has just run.  not 0: it has failed, which the log hook is told,
   and which harms nothing. */
typedef evc_status evc_logger_fn(evc_group *group, const evc_metric *metrics,
				 unsigned n_metrics, void *arg);
typedef struct evc_logger {
	evc_logger_fn *fn;
	void *arg;
	double every; /* seconds from the end of a call to the next one at
			 least; 0 = after each run, of several workers perhaps
			 at once */
} evc_logger;

/* What a group has beside its workers; each may be NULL. */
typedef struct evc_group_state {
	evc_status (*start)(void *arg); /* not 0: the group is not started, as
					   when an init fails */
	void (*stop)(void *arg);
	void (*cleanup)(void *arg);
	void *arg;
} evc_group_state;

/* evc_group_opts.on_error: what a worker's error does. */
enum {
	EVC_GROUP_STOP_GROUP = 0,
	EVC_GROUP_STOP_ALL = 1, /* its group, and all others of its registry */
	EVC_GROUP_RESTART = 2   /* that worker begins again, after a pause; as
				     often as .restart allows, then its group
				     stops */
};

/* evc_group_opts.flags */
enum {
	/* shutdown, state.stop and state.cleanup run on a thread of their own:
	   for functions that may hang with no way out.  Without this one that
	   hangs gets the kick signal when the budget of the stop is over, and
	   the stop goes on when it returns. */
	EVC_GROUP_ASIDE = 1 << 23
};

typedef struct evc_group_opts {
	evc_coord *coord;      /* the parent of the group's scope; NULL = the
				  registry's own coordinator */
	unsigned n_threads;    /* 0 = 2, at most 4096 */
	unsigned flags;        /* EVC_GROUP_ASIDE */
	unsigned on_error;     /* EVC_GROUP_STOP_GROUP ... */
	/* With EVC_GROUP_RESTART.  A worker that ran for `most` seconds since
	   begins with `first` again.  The group, all workers together, gets
	   `times` (0 = 5) restarts in `within` seconds (0 = 60), then the group
	   stops.  No codes: each code restarts. */
	evc_backoff restart;
	evc_group_init_fn *init;         /* these two with the arg of the */
	evc_group_shutdown_fn *shutdown; /* group; NULL: none */
	evc_group_state state;
	const evc_logger *loggers; /* copied */
	unsigned n_loggers;        /* at most 16 */
	/* Of the threads: stack, grace, flags (EVC_KICK, EVC_WATCHED), unblock
	   (called with the arg of the group); nothing else. */
	evc_member_opts member;
	/* Clean codes of the workers, as in evc_config; none: EVC_OUT_OF_RANGE,
	   whatever is clean for the coordinator above. */
	const evc_status *clean;
	unsigned n_clean;
	uint64_t reserved_[8];
} evc_group_opts;

/* How far a group is: evc_group_info.state.  No value is one of
   EVC_WORKER_STARTING ..., which say how far a cluster's worker is. */
enum {
	EVC_GROUP_NEW = 11,     /* never started */
	EVC_GROUP_STARTING = 12,
	EVC_GROUP_RUNNING = 13,
	EVC_GROUP_PAUSED = 14,
	EVC_GROUP_STOPPING = 15, /* told; somebody may still run */
	EVC_GROUP_STOPPED = 16  /* all have ended; it can be started again */
};

/* A worker's error, as it is kept. */
typedef struct evc_worker_error {
	unsigned id;       /* the worker */
	unsigned start;    /* in which start of the group, the first is 1 */
	uint64_t run;      /* its run, counted from 1 since evc_group_init */
	evc_reason reason; /* code, errno, text, place, when */
	uint64_t reserved_[8];
} evc_worker_error;

/* A worker in numbers; of one moment, each by itself. */
typedef struct evc_worker_info {
	unsigned id;
	bool live;           /* its thread is there */
	bool running;        /* it is in a run: for run_time seconds already */
	bool retired;        /* the group was resized to fewer */
	double run_time;
	uint64_t n_runs, n_errors, n_restarts; /* since it was made */
	uint64_t reserved_[8];
} evc_worker_info;

/* A group in numbers; of one moment, each by itself. */
typedef struct evc_group_info {
	char name[32];
	unsigned state;      /* EVC_GROUP_NEW ... */
	unsigned n_threads;  /* it is to have */
	unsigned n_live;     /* it has */
	unsigned n_starts;   /* of the group */
	uint64_t n_runs;     /* of all workers, since evc_group_init */
	uint64_t n_errors;   /* of these, that failed */
	uint64_t n_restarts; /* of workers after an error */
	evc_reason stop;     /* why it stopped last; kind 0: it never has */
	uint64_t reserved_[8];
} evc_group_info;

/* How a registry is to be made. */
typedef struct evc_registry_opts {
	evc_config config; /* of its own coordinator, which is made when the
			      first group wants it; its name is "workers"
			      unless it is set here */
	double grace;      /* seconds a stop waits, for all groups together;
			      0 = 5 */
	uint64_t reserved_[8];
} evc_registry_opts;

/* One group of a walk; false ends it. */
typedef bool evc_group_each_fn(evc_group *group, void *arg);

/* ---- groups ---- */

/*
 * Add a group to a registry (NULL: that of the process).  Nothing is called and
 * nothing started before evc_registry_start or evc_group_start; until then
 * its scope stands stopped, with the text "not started".  The same name may be
 * given again.  The first group of the process's registry also registers what
 * evc_registry_atexit switches.
 *
 * Thread:    any.
 * Ownership: *ret_group is the registry's until evc_group_free or
 *            evc_registry_free; *ret_registry is reg, or the process's.  Both
 *            may be NULL.  name (NULL: "train") and opts are copied; arg must
 *            live as long as the group.
 * Returns:   0; -EVC_INVALID_ARGUMENT (no function, a name of 32 bytes or more,
 *            more than 4096 threads ...), -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_init(evc_registry *reg, const char *name, evc_worker_fn *fn,
		 void *arg, const evc_group_opts *opts,
		 evc_group **ret_group, evc_registry **ret_registry);

/*
 * Start one group, unless it runs: its init, state.start, then its threads.  A
 * group that has stopped is started again, its workers with their ids; what it
 * kept of errors and metrics stays.
 *
 * Thread:    any; those functions run on it.
 * Ownership: nothing changes hands.
 * Returns:   0, also when it runs already; > 0 what init or state.start
 *            returned; -EVC_CANCELLED while its parent is stopped, and for a
 *            stop that comes before all its threads are there;
 *            -EVC_RESOURCE_EXHAUSTED when not all threads can be had: then none
 *            runs and it was shut down again; -EVC_FAILED_PRECONDITION while
 *            workers of its last start still run, inside its own functions,
 *            or in a fork child; -EVC_INVALID_ARGUMENT.  A call that stops it
 *            is waited for, as long as a stop waits (not by its own workers).
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_group_start(evc_group *group);

/*
 * Stop one group and wait for it, as evc_registry_stop does for all.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   as evc_registry_stop.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_stop(evc_group *group, const evc_join_opts *opts);

/*
 * Wait until all workers of a group have ended, timeout seconds at most, without
 * asking them to; and, when they have and it was stopped, call its cleanup
 * unless that was done.
 *
 * Thread:    any; a worker of the group is left out of the wait.  Inside ev_run
 *            of a loop of the group's coordinator a timeout above 0 is refused.
 * Ownership: nothing changes hands.
 * Returns:   true only when all have ended.  A group that was never started has
 *            none.  false also for a refusal; evc_last_error says why.
 * Since:     0.1
 */
EVC_API bool
evc_group_wait_finish(evc_group *group, double timeout);

/*
 * Does it run?  One atomic load.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   true from its start to its stop; false before the first one and
 *            for NULL.
 * Since:     0.1
 */
EVC_API bool
evc_group_is_active(const evc_group *group);

/*
 * The ids of its workers, in their order: those it has, or had when it was
 * stopped.
 *
 * Thread:    any.
 * Ownership: the array is the caller's; NULL with n 0 to count.
 * Returns:   how many there are; n of them at most were stored.
 * Since:     0.1
 */
EVC_API size_t
evc_group_ids(const evc_group *group, unsigned *ids, size_t n);

/*
 * So many workers from now on; running or not.  New ones start at once; those
 * that are too many end when their run is over, and keep their ids for when it
 * grows again.  Does not wait.  A worker that has ended by itself in this start
 * stays ended.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_RESOURCE_EXHAUSTED, and it has as many as before;
 *            -EVC_INVALID_ARGUMENT for 0 and more than 4096;
 *            -EVC_FAILED_PRECONDITION while it is stopping, or inside its
 *            own functions.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_group_resize(evc_group *group, unsigned n_threads);

/*
 * From now on no run begins; those that run go on to their end.  Does not wait.
 * A stop is heard all the same.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0, also the second time; -EVC_FAILED_PRECONDITION when it does not
 *            run; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_pause(evc_group *group);

/*
 * Go on after evc_group_pause.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   as evc_group_pause.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_resume(evc_group *group);

/*
 * Take a group out of its registry and free it.
 *
 * Thread:    any but its own workers; it waits for a shutdown or cleanup that is
 *            under way, as long as a stop waits.
 * Ownership: group is gone after 0; for walks of the registry that hold it
 *            still, when they leave it (another thread's are waited for, a
 *            second at most, unless the caller is in one).  NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION while it runs, while workers of it or
 *            something else in its scope live, inside a function of a group's,
 *            or in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_free(evc_group *group);

/*
 * A group in numbers.
 *
 * Thread:    any.
 * Ownership: *ret_info is the caller's.
 * Returns:   0; -EVC_INVALID_ARGUMENT; -EVC_FAILED_PRECONDITION in a fork
 *            child.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_get(const evc_group *group, evc_group_info *ret_info);

/*
 * One of its workers, in the order of their ids.
 *
 * Thread:    any.
 * Ownership: *ret_info is the caller's.
 * Returns:   0; -EVC_NOT_FOUND past the end; else as evc_group_get.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_worker_get(const evc_group *group, unsigned index,
		       evc_worker_info *ret_info);

/*
 * One of its errors, the oldest first, of all its starts; the latest 256 are
 * kept.
 *
 * Thread:    any.
 * Ownership: *ret_error is the caller's, filled by copy.
 * Returns:   0; -EVC_NOT_FOUND past the end; else as evc_group_get.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_error_get(const evc_group *group, unsigned index,
		      evc_worker_error *ret_error);

/*
 * Its scope: ask it for the stop, test it, wait on it (evc_sleep and its like),
 * say evc_fail with it.  Do not join, clear or free it.
 *
 * Thread:    any.
 * Ownership: the group owns it.
 * Returns:   the scope; NULL for NULL.
 * Since:     0.1
 */
EVC_API evc_coord *
evc_group_scope(const evc_group *group);

/*
 * What a worker says of the error that it returns: code, errno value and a
 * formatted text; the last one of a run counts, if that code is returned.
 *
 *     return evc_group_fail(group, EVC_DATA_LOSS, errno, "shard %d", i);
 *
 * It asks for nothing: what comes of the error on_error says, when it is
 * returned.  (evc_fail with the scope stops the group at once, also with
 * EVC_GROUP_RESTART.)  Called by anybody else it is that evc_fail.
 *
 * Thread:    any; a worker, in its run.
 * Ownership: the text is copied, cut to fit.
 * Returns:   the code as it counts: a positive one, EVC_UNKNOWN for 0 and for
 *            what is no code; -EVC_INVALID_ARGUMENT without a group;
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_fail_at(evc_group *group, evc_status code, int err,
		    const char *file, int line, const char *func,
		    const char *fmt, ...) EVC_PRINTF_(7, 8);

/*
 * evc_group_fail_at without a place.  In C and C++ sources the macro of the
 * same name adds the place of the call.
 *
 * Thread:    as evc_group_fail_at.
 * Ownership: the text is copied.
 * Returns:   as evc_group_fail_at.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_fail(evc_group *group, evc_status code, int err,
		 const char *fmt, ...) EVC_PRINTF_(4, 5);
#define evc_group_fail(group, code, err, ...) \
	evc_group_fail_at((group), (code), (err), __FILE__, __LINE__, \
			    __func__, __VA_ARGS__)

/*
 * The registry it stands in.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   the registry; NULL for NULL.
 * Since:     0.1
 */
EVC_API evc_registry *
evc_group_registry(const evc_group *group);

/* ---- metrics ---- */

/*
 * Add to a metric of the group, and with count one to NAME_count as well.  On a
 * worker of the group it costs a few nanoseconds and contends with nobody.
 * worker_time and worker_time_count are added to by each run, failed ones too.
 *
 * Thread:    any.
 * Ownership: name is copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT (no name, or one of 48 bytes or more);
 *            -EVC_RESOURCE_EXHAUSTED (no memory, or more than 256 names, those
 *            two of the runs among them), -EVC_FAILED_PRECONDITION in a fork
 *            child.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_put(evc_group *group, const char *name, double value, bool count);

/*
 * The metrics of a group, summed over its workers, in the order in which they
 * came up.
 *
 * Thread:    any.
 * Ownership: the array is the caller's; NULL with n 0 to count.
 * Returns:   how many there are; n of them at most were stored.
 * Since:     0.1
 */
EVC_API size_t
evc_group_metrics(const evc_group *group, evc_metric *metrics, size_t n);

/*
 * One metric by its name.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   its value; 0 when there is none.
 * Since:     0.1
 */
EVC_API double
evc_group_metric(const evc_group *group, const char *name);

/*
 * All metrics of the group back to 0.  What a worker adds meanwhile counts
 * before or after it.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_metrics_reset(evc_group *group);

/* ---- registries ---- */

/*
 * Make a registry.
 *
 * Thread:    any.
 * Ownership: the caller owns *ret_registry and gives it back by
 *            evc_registry_free.  opts are copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_registry_new(const evc_registry_opts *opts, evc_registry **ret_registry);

/*
 * Say how the registry of the process is, before its first group is added.
 *
 * Thread:    any.
 * Ownership: opts are copied.
 * Returns:   0; -EVC_FAILED_PRECONDITION when it has groups;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_registry_configure(const evc_registry_opts *opts);

/*
 * Free a registry with all its groups.
 *
 * Thread:    any but a worker of its.
 * Ownership: registry and groups are gone after 0; NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION while a group runs or workers of one
 *            live, for that of the process, inside a function of a group's, in
 *            a fork child; and while something else lives in its coordinator,
 *            or a walk goes through it: then its groups are gone, and it is
 *            there.
 * Since:     0.1
 */
EVC_API evc_status
evc_registry_free(evc_registry *reg);

/*
 * The registry of the process.
 *
 * Thread:    any.
 * Ownership: nobody frees it.
 * Returns:   the registry, never NULL.
 * Since:     0.1
 */
EVC_API evc_registry *
evc_registry_default(void);

/*
 * Start all groups that do not run: first init of each, then of each state.start
 * and its threads.  A failure (of an init, a state.start, a thread) leaves none
 * of these running: they are shut down again in reverse.
 *
 * Thread:    any; those functions run on it.
 * Ownership: nothing changes hands.
 * Returns:   0, also when there is nothing to start; > 0 what an init or a
 *            state.start returned; else as evc_group_start.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_registry_start(evc_registry *reg);

/*
 * Stop all groups: all are told, then all are awaited, in one budget, opts.grace
 * seconds (0: the registry's own, 5 by default; EVC_NO_GRACE: do not wait) for
 * everything together.  Other fields of opts must be 0.  Groups stay, and can be
 * started again.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0 when all workers have ended (the caller left out), also when
 *            none ran; > 0 EVC_DEADLINE_EXCEEDED when not, and
 *            evc_last_error() names who lives; > 0 the code of the first error
 *            that has stopped one of these groups since its last start, and
 *            evc_last_error() has its text; -EVC_FAILED_PRECONDITION inside
 *            a group's own functions or in a fork child;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_registry_stop(evc_registry *reg, const evc_join_opts *opts);

/*
 * The same for all groups of a name.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   as evc_registry_stop, and -EVC_NOT_FOUND when there is none.
 * Since:     0.1
 */
EVC_API evc_status
evc_registry_stop_name(evc_registry *reg, const char *name,
		       const evc_join_opts *opts);

/*
 * The ids of all workers of all groups, in their order.
 *
 * Thread:    any.
 * Ownership: the array is the caller's; NULL with n 0 to count.
 * Returns:   how many there are; n of them at most were stored.
 * Since:     0.1
 */
EVC_API size_t
evc_registry_ids(const evc_registry *reg, unsigned *ids, size_t n);

/*
 * Walk the groups in the order in which they were added.
 *
 * Thread:    any; fn on the same one, with no lock held, so it may stop and
 *            start groups; freed they are not before the walk has left them.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_registry_each(evc_registry *reg, evc_group_each_fn *fn, void *arg);

/*
 * The registry's own coordinator: the parent of the groups without one.
 *
 * Thread:    any.
 * Ownership: the registry owns it: ask for its stop, look at it; do not free
 *            it.
 * Returns:   the coordinator; NULL when no group has wanted it yet, or memory
 *            was short.
 * Since:     0.1
 */
EVC_API evc_coord *
evc_registry_coord(evc_registry *reg);

/*
 * What happens to the registry of the process at exit(3): its groups are
 * stopped, within its budget, by the thread that exits, which is left out of
 * the wait; once.  On from the first group on; nothing happens in a fork
 * child, or after _exit(2).
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0.
 * Since:     0.1
 */
EVC_API evc_status
evc_registry_atexit(bool on);

/*
 * Groups, workers, runs, errors, restarts, metrics as text, as snprintf(3)
 * writes.
 *
 * Thread:    any.
 * Ownership: buf is the caller's.
 * Returns:   the length of the whole text without its 0 byte.
 * Since:     0.1
 */
EVC_API size_t
evc_registry_report(evc_registry *reg, char *buf, size_t n);

/*
 * The same as one JSON object.
 *
 * Thread:    any.
 * Ownership: as evc_registry_report.
 * Returns:   as evc_registry_report.
 * Since:     0.1
 */
EVC_API size_t
evc_registry_report_json(evc_registry *reg, char *buf, size_t n);

/*
 * The same in the text format of Prometheus: evcoord_workers_...
 *
 * Thread:    any.
 * Ownership: as evc_registry_report.
 * Returns:   as evc_registry_report.
 * Since:     0.1
 */
EVC_API size_t
evc_registry_metrics(evc_registry *reg, char *buf, size_t n);

EVC_END_DECLS_

#endif
