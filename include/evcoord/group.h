/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups: threads that call one function again and again, started
 * together, stopped together, by name, with metrics.
 *
 * A group is a scope; its workers are the threads in it, named GROUP/ID.  A
 * registry is the list of groups that one call starts or stops.  The process
 * has one registry (NULL stands for it); a program may make more of its own.
 *
 *     evc_group_init(NULL, "train", work, &job, NULL, &group, NULL);
 *     evc_registry_start(NULL);
 *     ...
 *     evc_registry_stop(NULL, NULL);
 *
 * The functions of the groups are called in this order:
 *   start   init of each group of the registry in turn; then for each group
 *           state.start, and its threads begin.
 *   stop    all groups become inactive, and the stop reaches their workers.
 *           Then, for each group in turn that was started, shutdown and
 *           state.stop are called, once.  Then the call waits for all groups,
 *           in one budget.  cleanup of a group follows when all its workers
 *           have ended; the groups keep their order.
 * A start that fails is undone in the same way, the last group first: shutdown
 * where init had succeeded, state.stop and cleanup where state.start had.
 * These functions run on the thread that called start or stop.  When a worker's
 * end, a worker's error or a coordinator above stops the group, they run on the
 * helper thread.  They never run on a worker that failed, and never under a
 * lock.
 *
 * Any thread may call any of these functions at any time, a worker and a logger
 * too.  A worker or logger that stops its own group is left out of the wait.
 * When a worker stops groups or waits for them, other workers that do the same
 * are left out of its wait, too.  Inside init, shutdown and the functions of
 * state, starting, stopping, resizing and freeing is refused with
 * -EVC_FAILED_PRECONDITION.  While one thread starts groups, other threads that
 * start or stop groups wait for that thread.
 */
#ifndef EVCOORD_GROUP_H
#define EVCOORD_GROUP_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

typedef struct evc_registry evc_registry;
typedef struct evc_group evc_group;

/*
 * One run of a worker.  id belongs to this worker for ever in its registry.
 * Returns: 0: call me again; a clean code (EVC_OUT_OF_RANGE by default): this
 * worker has ended, and the group too when this worker was its last one;
 * EVC_CANCELLED after a stop: the worker has obeyed.  The stop may also be that
 * of a queue's coordinator (evcoord/queue.h), if a call for that queue has
 * returned it in this run.  Any other code: an error, see
 * evc_group_opts.on_error.
 */
typedef evc_status evc_worker_fn(evc_group *group, unsigned id, void *arg);

/* init: called before the threads of any group start.  Not 0: nothing is
   started, and the groups whose init had succeeded are shut down in reverse. */
typedef evc_status evc_group_init_fn(evc_group *group, evc_registry *reg,
				       void *arg);
typedef void evc_group_shutdown_fn(evc_group *group, void *arg);

/* A sum that workers add to. */
typedef struct evc_metric {
	char name[56];
	double value;
} evc_metric;

/* An external logger: gets every metric of the group, on the thread of the
   worker that has just run.  Not 0: the logger has failed; the log hook gets a
   line, and nothing else happens. */
typedef evc_status evc_logger_fn(evc_group *group, const evc_metric *metrics,
				 unsigned n_metrics, void *arg);
typedef struct evc_logger {
	evc_logger_fn *fn;
	void *arg;
	double every; /* seconds, at least, from the end of a call to the next
			 call; 0 = after each run, and then several workers
			 may call fn at once */
} evc_logger;

/* Functions of a group beside its workers; each may be NULL. */
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
	EVC_GROUP_STOP_ALL = 1, /* stops all groups of the registry */
	EVC_GROUP_RESTART = 2   /* the worker begins again, after a pause; as
				     often as .restart allows, then the group
				     stops */
};

/* evc_group_opts.flags */
enum {
	/* shutdown, state.stop and state.cleanup run on a thread of their own:
	   for functions that may hang with no way out.  Without this flag, a
	   function that hangs gets the kick signal when the budget of the stop
	   is over, and the stop goes on when the function returns. */
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
	evc_group_init_fn *init;         /* with the group's arg; NULL: none */
	evc_group_shutdown_fn *shutdown; /* with the group's arg; NULL: none */
	evc_group_state state;
	const evc_logger *loggers; /* copied */
	unsigned n_loggers;        /* at most 16 */
	/* For the threads: stack, grace, flags (EVC_KICK, EVC_WATCHED), unblock
	   (called with the arg of the group); nothing else. */
	evc_member_opts member;
	/* Clean codes of the workers, as in evc_config; none: EVC_OUT_OF_RANGE,
	   whatever is clean for the coordinator above. */
	const evc_status *clean;
	unsigned n_clean;
	uint64_t reserved_[8];
} evc_group_opts;

/* How far a group is: evc_group_info.state.  The values differ from those of a
   cluster's worker, EVC_WORKER_STARTING ... */
enum {
	EVC_GROUP_NEW = 11,     /* never started */
	EVC_GROUP_STARTING = 12,
	EVC_GROUP_RUNNING = 13,
	EVC_GROUP_PAUSED = 14,
	EVC_GROUP_STOPPING = 15, /* stop requested; workers may still run */
	EVC_GROUP_STOPPED = 16  /* all workers have ended; the group can be
				     started again */
};

/* A worker's error, as it is kept. */
typedef struct evc_worker_error {
	unsigned id;       /* the worker */
	unsigned start;    /* in which start of the group; the first is 1 */
	uint64_t run;      /* the worker's run, counted from 1 since
			      evc_group_init */
	evc_reason reason; /* code, errno, text, place, when */
	uint64_t reserved_[8];
} evc_worker_error;

/* A worker in numbers.  Each number is read by itself. */
typedef struct evc_worker_info {
	unsigned id;
	bool live;           /* the worker's thread exists */
	bool running;        /* the worker is in a run */
	bool retired;        /* a resize to fewer workers has ended it */
	double run_time;     /* seconds since the present run began */
	uint64_t n_runs, n_errors, n_restarts; /* since the worker was made */
	uint64_t reserved_[8];
} evc_worker_info;

/* A group in numbers.  Each number is read by itself. */
typedef struct evc_group_info {
	char name[32];
	unsigned state;      /* EVC_GROUP_NEW ... */
	unsigned n_threads;  /* workers that the group is to have */
	unsigned n_live;     /* workers that the group has now */
	unsigned n_starts;   /* starts of the group */
	uint64_t n_runs;     /* runs of all workers, since evc_group_init */
	uint64_t n_errors;   /* runs that failed */
	uint64_t n_restarts; /* restarts of workers after an error */
	evc_reason stop;     /* why the group stopped last; kind 0: never */
	uint64_t reserved_[8];
} evc_group_info;

/* How a registry is to be made. */
typedef struct evc_registry_opts {
	evc_config config; /* of the registry's own coordinator, which is made
			      for the first group without a coord; its name
			      is "workers" unless it is set here */
	double grace;      /* seconds a stop waits, for all groups together;
			      0 = 5 */
	uint64_t reserved_[8];
} evc_registry_opts;

/* Called with each group of a walk; false ends the walk. */
typedef bool evc_group_each_fn(evc_group *group, void *arg);

/* ---- groups ---- */

/*
 * Add a group to a registry (NULL: that of the process).  Nothing is called and
 * nothing started before evc_registry_start or evc_group_start; until then the
 * group's scope is stopped, with the text "not started".  Several groups may
 * have the same name.  The first group of the process's registry also registers
 * the exit handler that evc_registry_atexit switches.
 *
 * Thread:    any.
 * Ownership: *ret_group is the registry's until evc_group_free,
 *            evc_registry_free or evc_finish of opts.coord; *ret_registry is
 *            reg, or the process's.  Both may be NULL.  name (NULL: "train")
 *            and opts are copied; arg must live as long as the group.
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
 * Start one group, unless it runs: its init, its state.start, then its threads.
 * A group that has stopped is started again: its workers keep their ids, and
 * the group keeps its errors and metrics.
 *
 * Thread:    any; init and state.start run on the calling thread.
 * Ownership: nothing changes hands.
 * Returns:   0, also when the group runs already; > 0 what init or state.start
 *            returned; -EVC_CANCELLED while its parent is stopped, and for a
 *            stop that comes before all its threads run;
 *            -EVC_RESOURCE_EXHAUSTED when not all threads can be started: then
 *            none runs, and the group was shut down again;
 *            -EVC_FAILED_PRECONDITION while workers of its last start still
 *            run, inside its own functions, or in a fork child;
 *            -EVC_DEADLINE_EXCEEDED when the coordinator's stop ends while
 *            another thread starts groups;
 *            -EVC_INVALID_ARGUMENT.  When another call is stopping the group,
 *            this call waits for that one, as long as a stop waits; the group's
 *            own workers do not wait.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
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
 * Wait until all workers of a group have ended, timeout seconds at most,
 * without a request to stop.  The wait ends with a stop of the group's
 * coordinator, too: evc_stop_left says when.  When all have ended and the group
 * was stopped, call its cleanup, unless cleanup was called before.
 *
 * Thread:    any; a worker of the group is left out of the wait.  Inside ev_run
 *            of a loop of the group's coordinator a timeout above 0 is refused.
 * Ownership: nothing changes hands.
 * Returns:   true only when all workers have ended.  A group that was never
 *            started has no workers.  false when some have not, and
 *            evc_last_error() names those still running; also for a refusal,
 *            and evc_last_error() says why.
 * Since:     0.1
 */
EVC_API bool
evc_group_wait_finish(evc_group *group, double timeout);

/*
 * Does the group run?  One atomic load.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   true from its start to its stop; false before the first start, and
 *            for NULL.
 * Since:     0.1
 */
EVC_API bool
evc_group_is_active(const evc_group *group);

/*
 * The ids, in ascending order, of the workers that a group has, or had when the
 * group was stopped.
 *
 * Thread:    any.
 * Ownership: the array is the caller's; NULL with n 0 to count.
 * Returns:   how many there are; n of them at most were stored.
 * Since:     0.1
 */
EVC_API size_t
evc_group_ids(const evc_group *group, unsigned *ids, size_t n);

/*
 * Set the number of workers, whether the group runs or not.  New workers start
 * at once.  Workers above the number end when their run is over; they come back
 * with their ids when the group grows again.  The call does not wait.  A worker
 * that has ended by itself in this start stays ended.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_RESOURCE_EXHAUSTED, and the number is as before;
 *            -EVC_INVALID_ARGUMENT for 0 and more than 4096;
 *            -EVC_FAILED_PRECONDITION while the group is stopping, or inside
 *            its own functions.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_group_resize(evc_group *group, unsigned n_threads);

/*
 * Pause a group: no new run begins, and present runs go on to their end.  The
 * call does not wait.  A stop ends a paused group as usual.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0, also the second time; -EVC_FAILED_PRECONDITION when the group
 *            does not run; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_pause(evc_group *group);

/*
 * Let a paused group go on.
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
 * Thread:    any but its own workers; the call waits for a shutdown or cleanup
 *            that is under way, as long as a stop waits.
 * Ownership: group is gone after 0.  A walk of the registry keeps the memory of
 *            its groups until the walk ends; the call waits for walks of other
 *            threads, a second at most, unless the caller is in a walk.
 *            NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION while the group runs, while one of its
 *            workers or another member of its scope lives, inside a function
 *            of a group, or in a fork child.
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
 * One worker of a group in numbers; index counts in the order of the ids.
 *
 * Thread:    any.
 * Ownership: *ret_info (may be NULL) is the caller's.
 * Returns:   0; -EVC_NOT_FOUND past the end; -EVC_INVALID_ARGUMENT, else as
 *            evc_group_get.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_worker_get(const evc_group *group, unsigned index,
		       evc_worker_info *ret_info);

/*
 * One error of a group; index 0 is the oldest.  The latest 256 errors of all
 * starts are kept.
 *
 * Thread:    any.
 * Ownership: *ret_error (may be NULL) is the caller's, filled by copy.
 * Returns:   0; -EVC_NOT_FOUND past the end; -EVC_INVALID_ARGUMENT, else as
 *            evc_group_get.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_error_get(const evc_group *group, unsigned index,
		      evc_worker_error *ret_error);

/*
 * The group's scope.  Programs may request its stop, test it, wait on it
 * (evc_sleep and similar calls) and pass it to evc_fail.  Do not join, clear or
 * free it.
 *
 * Thread:    any.
 * Ownership: the group owns it.
 * Returns:   the scope; NULL for NULL.
 * Since:     0.1
 */
EVC_API evc_coord *
evc_group_scope(const evc_group *group);

/*
 * Describe the error that a worker is about to return: code, errno value and a
 * formatted text.  The last call of a run counts, if the run returns that code.
 *
 *     return evc_group_fail(group, EVC_DATA_LOSS, errno, "shard %d", i);
 *
 * The call itself stops nothing: when the run returns the code, on_error
 * decides what follows.  (evc_fail with the scope stops the group at once, also
 * with EVC_GROUP_RESTART.)  Called outside of a run, it is evc_fail with the
 * scope.
 *
 * Thread:    any; a worker, in its run.
 * Ownership: the text is copied, cut to fit.
 * Returns:   the code to return, always positive: EVC_UNKNOWN for 0 and for a
 *            value that is no code; -EVC_INVALID_ARGUMENT without a group;
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
 * The registry of a group.
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
 * Add a value to a metric of the group; with count, add 1 to NAME_count as
 * well.  On a worker of the group the call costs a few nanoseconds and contends
 * with no other thread.  Each run, a failed one too, adds to worker_time and
 * worker_time_count.
 *
 * Thread:    any.
 * Ownership: name is copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT (no name, or one of 48 bytes or more);
 *            -EVC_RESOURCE_EXHAUSTED (no memory, or more than 256 names,
 *            worker_time and worker_time_count among them),
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_group_put(evc_group *group, const char *name, double value, bool count);

/*
 * The metrics of a group, summed over its workers, in the order in which their
 * names were first used.
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
 * Returns:   the value; 0 when there is no such metric.
 * Since:     0.1
 */
EVC_API double
evc_group_metric(const evc_group *group, const char *name);

/*
 * Set all metrics of the group to 0.  A value that a worker adds meanwhile
 * counts either before or after the reset.
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
 * Make a registry of the program's own.
 *
 * Thread:    any.
 * Ownership: the caller owns *ret_registry and gives it back by
 *            evc_registry_free.  opts are copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_registry_new(const evc_registry_opts *opts, evc_registry **ret_registry);

/*
 * Set the options of the process's registry, before its first group is added.
 *
 * Thread:    any.
 * Ownership: opts are copied.
 * Returns:   0; -EVC_FAILED_PRECONDITION when the registry has groups;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_registry_configure(const evc_registry_opts *opts);

/*
 * Free a registry with all its groups.
 *
 * Thread:    any but a worker of one of its groups.
 * Ownership: registry and groups are gone after 0; NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION while a group runs or a worker of a
 *            group lives, for the process's registry, inside a function of a
 *            group, in a fork child.  Also -EVC_FAILED_PRECONDITION while
 *            another member lives in its coordinator, or while a walk goes
 *            through the registry: then the groups are gone, but the registry
 *            still exists.
 * Since:     0.1
 */
EVC_API evc_status
evc_registry_free(evc_registry *reg);

/*
 * The registry of the process.
 *
 * Thread:    any.
 * Ownership: the registry is never freed.
 * Returns:   the registry, never NULL.
 * Since:     0.1
 */
EVC_API evc_registry *
evc_registry_default(void);

/*
 * Start all groups that do not run: first the init of each group, then for each
 * group state.start and its threads.  When an init, a state.start or a thread
 * fails, all these groups are shut down again in reverse, and none runs.
 *
 * Thread:    any; init and state.start run on the calling thread.
 * Ownership: nothing changes hands.
 * Returns:   0, also when there is nothing to start; > 0 what an init or a
 *            state.start returned; else as evc_group_start.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_registry_start(evc_registry *reg);

/*
 * Stop all groups: request the stop of all, then wait for all.  One budget of
 * opts.grace seconds (0: the registry's own, 5 by default; EVC_NO_GRACE: do not
 * wait) is for everything together.  The wait for a group ends with a stop of
 * the coordinator above, too: evc_stop_left says when.  Other fields of opts
 * must be 0.  The
 * groups stay in the registry, and can be started again.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0 when all workers have ended (the caller left out), also when
 *            none ran; > 0 EVC_DEADLINE_EXCEEDED when some have not, and
 *            evc_last_error() names those still running; > 0 the code of the
 *            first error that has stopped one of these groups since its last
 *            start, and evc_last_error() has its text;
 *            -EVC_FAILED_PRECONDITION inside
 *            a group's own functions or in a fork child;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_registry_stop(evc_registry *reg, const evc_join_opts *opts);

/*
 * Stop all groups that have this name, as evc_registry_stop does.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   as evc_registry_stop, and -EVC_NOT_FOUND when no group has it.
 * Since:     0.1
 */
EVC_API evc_status
evc_registry_stop_name(evc_registry *reg, const char *name,
		       const evc_join_opts *opts);

/*
 * The ids of the workers of all groups, group by group.
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
 * Thread:    any; fn runs on the same thread, with no lock held, so fn may
 *            stop, start and free groups.  A group that is freed keeps its
 *            memory until the walk ends.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_registry_each(evc_registry *reg, evc_group_each_fn *fn, void *arg);

/*
 * The registry's own coordinator: the parent of the groups without a coord,
 * which stand in its report (evc_report).
 *
 * Thread:    any.
 * Ownership: the registry owns the coordinator.  The caller may request its
 *            stop and read its state, but must not free it.
 * Returns:   the coordinator; NULL while no group needs it, or when memory
 *            was short.
 * Since:     0.1
 */
EVC_API evc_coord *
evc_registry_coord(evc_registry *reg);

/*
 * Switch the exit handler of the process's registry.  At exit(3) the thread
 * that exits stops the groups, once, within the registry's budget; the wait
 * leaves that thread out.  A stop that another call has given up is not waited
 * for again.  The handler is on from the first group on.  Nothing
 * happens in a fork child, or after _exit(2).
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0.
 * Since:     0.1
 */
EVC_API evc_status
evc_registry_atexit(bool on);

EVC_END_DECLS_

#endif
