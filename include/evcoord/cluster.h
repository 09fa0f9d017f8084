/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clusters: functions scheduled on workers that may die.
 *
 *	evc_cluster_open(c, "processes://4", &config, &cluster);
 *	for (i = 0; i < n; i++)
 *		evc_schedule_pack(cluster, "count", NULL, &remote[i], "[s]",
 *				  path[i]);
 *	st = evc_cluster_join(cluster, INFINITY);
 *
 * Each function that was accepted gets exactly one outcome.  It runs at least
 * once, unless it was cancelled; when its worker is lost it runs again, on
 * another one.
 *
 * The cluster keeps an error of a function and raises it once: the next call of
 * evc_schedule, evc_cluster_join or evc_cluster_done returns the error.  From
 * the error on no other function begins: queued functions end as EVC_CANCELLED
 * ("...: reschedule"); running functions are asked to stop, and the cluster
 * waits for them.  When the error is raised nothing runs any more, and the
 * cluster is as new.
 *
 * EVC_UNAVAILABLE is an error of the cluster itself: there was no worker for
 * worker_wait seconds.  Queued functions end as EVC_CANCELLED, of the kind
 * EVC_FAILED_CLUSTER, and the error is raised again and again until a worker is
 * up.
 *
 * A call returns a raised error as a value > 0; < 0 is a refusal of that very
 * call.  In a cluster no code is clean, and no function's error stops a
 * coordinator.  But an error that no call has raised or returned by the end of
 * the stop stands in the coordinator's verdict, and so reaches evc_finish.  A
 * function that does not return at the stop, and has to be given up, is such an
 * error, because its result is lost.
 *
 * A cluster is a scope of its coordinator, and ends with it.  The log hook of
 * the coordinator gets lines about workers that die, checkpoints that fail,
 * servers that lose data, and errors that no call can raise any more.  Calls
 * that wait are for threads; on the thread of the cluster's loop they are
 * refused with -EVC_FAILED_PRECONDITION.
 */
#ifndef EVCOORD_CLUSTER_H
#define EVCOORD_CLUSTER_H

#include <evcoord/types.h>
#include <evcoord/value.h>
#include <evcoord/worker.h>

EVC_BEGIN_DECLS_

typedef struct evc_cluster evc_cluster;
/* A transport; its members stand in evcoord/unstable/engine.h. */
typedef struct evc_engine_ops evc_engine_ops;

/* The state of a worker: evc_cluster_worker_info.state */
enum {
	EVC_WORKER_STARTING = 1, /* not seen yet, or seen and not ready */
	EVC_WORKER_UP = 2,       /* takes functions */
	EVC_WORKER_HUNG = 3,     /* in a function that was given up */
	EVC_WORKER_FENCED = 4,   /* completes nothing more; may still run */
	EVC_WORKER_GONE = 5,     /* proven not to run */
	EVC_WORKER_LEAVING = 6   /* by evc_cluster_resize: ends its functions,
				    takes those for this worker alone, then
				    goes */
};

typedef struct evc_cluster_worker_info {
	unsigned index;     /* 0 ... */
	unsigned state;     /* EVC_WORKER_... */
	unsigned lives;     /* how often the worker came up */
	unsigned n_running; /* functions taken and not completed */
	uint64_t n_done;    /* functions completed, in all lives */
	double since;       /* seconds in this state */
	double busy;        /* seconds in its oldest function, or in its build;
			       < 0: in none */
	char name[48];      /* "worker 0"; no two workers have the same */
	char where[96];     /* "pid 123", "tid 123"; "" */
	char function[48];  /* its oldest function; "" */
	char text[192];     /* why the worker ended last time, and its last
			       words; see evc_cluster_worker_text */
	uint64_t n_failures; /* lives that ended in another way than in good
				order: the worker died, was killed or fenced,
				or did not come up; a fenced life counts once,
				from its fence on */
	char builds[48];     /* the per-worker value that is being built; "":
				none.  Meanwhile `function` is "": the worker's
				functions wait behind the build */
	uint64_t reserved_[1];
} evc_cluster_worker_info;

/* Called on the cluster's loop when a worker came, was fenced, went, hangs, or
   is to leave.  GONE is told once for each life, also for one that was never
   UP: not again when the worker cannot be started, or leaves, while it is gone.
   States that a call itself causes are told in a later turn of the loop, in
   their order.  Of more than 8 states of a worker that wait, those between an
   UP and its GONE are left out first, and then a pair of both.  The fields but
   the state are of the time of the call: GONE may come with the pid of the next
   life. */
typedef void evc_cluster_worker_fn(evc_cluster *cluster,
			   const evc_cluster_worker_info *worker, void *arg);

typedef void evc_writable_fn(evc_cluster *cluster, void *arg);

/*
 * How a cluster is to be opened.
 */
typedef struct evc_cluster_config {
	/* Two opens with one name, coordinator and address, at the same time,
	   give the same cluster.  NULL: a cluster of its own, called
	   "cluster".  < 48 bytes. */
	const char *name;
	/* The loop of libev that callbacks and the engine run on.  NULL = the
	   home of the coordinator; without a home, or with a hosted one, a
	   loop on a thread of the cluster's own. */
	evc_reactor *reactor;
	/* For workers that are threads of this process; the array must live as
	   long as the cluster. */
	const evc_function *functions;
	unsigned n_functions;
	unsigned max_queued; /* functions accepted and not begun; 0 = 262,144 */
	double worker_wait;  /* seconds that functions wait when there is no
				worker; then they are cancelled, and
				UNAVAILABLE is raised; 0 = 60, INFINITY
				possible */
	double grace;        /* seconds for a function that was asked to stop;
				0 = 10, EVC_NO_GRACE none, INFINITY for ever;
				at a stop at most 0.9 of its time, see
				evc_stop_left */
	double lease;        /* seconds after which a worker without a sign of
				life is lost, >= 0.1; 0 = 5 */
	unsigned deaths;     /* a function, or the build of a per-worker value,
				is ABORTED when so many workers have died with
				it; 0 = 3, 255 and more = any number */
	size_t max_frame;    /* bytes of one message from or to a worker, >=
				4096; 0 = 64 MiB; more than 4 GiB - 2 counts as
				4 GiB - 2 */
	/* Of functions scheduled without a retry: a function that fails is run
	   again, `times` (0 = 0) times at most.  Until then the function has
	   not failed, and no failure is reported.  Without codes: after all but
	   CANCELLED, INVALID_ARGUMENT, OUT_OF_RANGE and UNIMPLEMENTED.  within
	   is 0. */
	evc_backoff retry;
	/* The file for the variables.  They are loaded from it when the cluster
	   is opened, if the file exists, and saved to it every checkpoint_every
	   seconds (0 = 30, INFINITY never) and at the stop. */
	const char *checkpoint;
	double checkpoint_every;
	/* Engines beside "threads" and "processes"; the array must live as long
	   as the cluster. */
	const evc_engine_ops *const *engines;
	unsigned n_engines;
	unsigned flags;      /* 0 */
	/* Called when there is room again, after a schedule was refused on the
	   loop.  Until this call a plain ev_run does not return. */
	evc_writable_fn *writable;
	/* Called when a worker came, was fenced, went, hangs, or is to
	   leave. */
	evc_cluster_worker_fn *worker;
	void *arg;           /* for writable and worker */
	double watchdog;     /* seconds without an end of a function, while
				some run, or while a worker builds, after which
				the log hook gets a report (EVC_LOG_WARNING):
				evc_report of the coordinator with the stacks of
				its threads and of the busy workers.  Once; the
				next end of a function arms it again.  It calls
				evc_stack_signal(0).  0 = off, INFINITY too */
	/* The file that the watchdog's reports are appended to, beside the
	   log.  NULL or "": none. */
	const char *watchdog_file;
	uint64_t reserved_[6];
} evc_cluster_config;

/*
 * Open a cluster at an address:
 *
 *	threads://N      N threads of this process (N left out: as many as cpus)
 *	processes://N?program=PATH&arg=A&arg=B
 *	                 N processes of this machine, each of which runs PATH
 *	                 with these arguments and calls evc_worker_main; without
 *	                 a program, this program itself, whose main has to ask
 *	                 evc_worker_is first
 *	redis://HOST:PORT/NAMESPACE
 *	                 the workers of all nodes that know this address
 *	                 (evc_worker_opts.uri), on any machine; with
 *	                 libevcoord-redis, which need not be linked, and
 *	                 rediss:// and unix:// likewise: evcoord-redis(7)
 *
 * Workers start at once; the call does not wait for them.
 *
 * Thread:    any.  With an engine other than "threads", the cluster makes
 *            progress only while its loop (config->reactor, or the home) runs.
 * Ownership: *ret_cluster is the caller's, for evc_cluster_close; config and
 *            what its fields point to are copied, but for fields that say
 *            otherwise.
 * Returns:   0; -EVC_INVALID_ARGUMENT, for an address that no engine serves
 *            with a text that lists the known ones; -EVC_ALREADY_EXISTS for a
 *            name that is open with another address; -EVC_CANCELLED after the
 *            stop; -EVC_RESOURCE_EXHAUSTED, -EVC_DATA_LOSS when the checkpoint
 *            is damaged, or as evc_cluster_restore when it cannot be read;
 *            -EVC_NOT_FOUND, -EVC_PERMISSION_DENIED for a program that cannot
 *            be executed;
 *            -EVC_FAILED_PRECONDITION in a fork child, and
 *            for processes in a process that was started as a worker and has
 *            not called evc_worker_main; -EVC_UNIMPLEMENTED when
 *            libevcoord-redis is not there.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_cluster_open(evc_coord *c, const char *uri,
		 const evc_cluster_config *config, evc_cluster **ret_cluster);

/*
 * Close a cluster.  Each open needs one close, also after a stop.  The last
 * close stops the cluster's scope, as the coordinator's stop would: queued
 * functions are cancelled, running functions are asked to stop.  The call never
 * waits: the coordinator's joins wait for the cluster, and the cluster frees
 * itself when all of it has ended.
 *
 * The last save of the checkpoint comes after the close; a save that fails is
 * an error in the coordinator's verdict, and so is a function's error after the
 * close.
 *
 * Thread:    any.
 * Ownership: cluster is gone for the caller, whatever the call returns; remotes
 *            are still the caller's.  NULL is fine.
 * Returns:   0; > 0: the code of the latest save of the checkpoint, if that
 *            save has failed, else of an error that no call has raised, with a
 *            text (evc_last_error); -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_cluster_close(evc_cluster *cluster);

/*
 * Set the number of workers of a cluster on threads:// or processes://, at any
 * time.  New workers start, and build all per-worker values before they take
 * functions; so does a worker of threads:// whose thread a function has ended,
 * also for the same n.  Of a smaller number the workers with the greatest
 * indices leave: such a worker ends its functions and takes no more, but for
 * those scheduled for this worker alone, and goes when there are none.  So no
 * function is lost, begins again or fails because of the call.  A later worker
 * has the former index and name.
 *
 * The call does not wait: evc_cluster_info.n_workers counts the workers still
 * there, and evc_cluster_worker_get names them.  Of several calls the latest
 * counts.  No function is asked to stop, and each keeps its worker for as long
 * as it runs.  An idle worker process on its way is killed after config.grace.
 * The stop of the cluster ends leaving workers as all others.
 *
 * Thread:    any, also the cluster's loop, its callbacks and its functions.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_INVALID_ARGUMENT for 0 and more than 1024, which are the
 *            most that threads:// and processes:// have;
 *            -EVC_UNIMPLEMENTED for redis://, where workers come and go by
 *            themselves, and other engines without this operation;
 *            -EVC_CANCELLED after the stop; -EVC_UNAVAILABLE when the engine is
 *            down; -EVC_RESOURCE_EXHAUSTED, and the number is as before;
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.2
 */
EVC_MUST_USE EVC_API evc_status
evc_cluster_resize(evc_cluster *cluster, unsigned n_workers);

/*
 * The cluster's scope.  Its report (evc_report) says which function runs on
 * which worker, since when, and what is queued.
 *
 * Thread:    any.
 * Ownership: the cluster's.
 * Returns:   the scope; NULL for NULL.
 * Since:     0.1
 */
EVC_API evc_coord *
evc_cluster_scope(const evc_cluster *cluster);

/* ---- schedule ---- */

enum {
	/* evc_schedule_opts.flags */
	/* The function's updates of variables are made when the function has
	   succeeded, all at once and exactly once, and only if all that it has
	   read is still so; else it runs again. */
	EVC_TRANSACTIONAL = 1 << 25,

	/* evc_schedule_opts.priority */
	EVC_PRIORITY_LEAST = -8,
	EVC_PRIORITY_MOST = 7
};

typedef struct evc_schedule_opts {
	const char *worker; /* the name of the only worker that may run the
			       function; NULL = any.  The function fails with
			       EVC_UNAVAILABLE when that worker is missing for
			       worker_wait seconds */
	int priority;       /* -8..7; greater values begin first */
	double deadline;    /* seconds a run may take; then the worker process
			       is killed, and the function has failed with
			       EVC_DEADLINE_EXCEEDED; 0 = any time */
	unsigned deaths;    /* as config.deaths; 0 = config.deaths */
	evc_backoff retry;  /* times 0 = the config's */
	unsigned flags;     /* EVC_TRANSACTIONAL */
	double wait;        /* seconds a thread waits for room in a full queue,
			       or, before an error is raised, for the running
			       functions; 0 = for ever, < 0 = do not wait.  On
			       the loop, and in a function of the cluster, the
			       call never waits */
	uint64_t reserved_[8];
} evc_schedule_opts;

/*
 * Schedule a function by name: the function is queued, and runs when a worker
 * is free.  args is an array, kwargs a map; either may be NULL.  Both may
 * contain per-worker values and remotes at any depth.  The function begins when
 * all these remotes have their results, and it gets the results in place of the
 * remotes.  If a remote fails, the function fails with the same error; if a
 * remote is cancelled, the function is cancelled.
 *
 * Thread:    any; not a signal handler.
 * Ownership: args and kwargs are copied.  *ret_remote (may be NULL) is the
 *            caller's, for evc_remote_free.
 * Returns:   0; > 0: an error was raised, and nothing was accepted;
 *            -EVC_RESOURCE_EXHAUSTED when there is no room (config.writable
 *            is called when there is) or no memory; -EVC_CANCELLED after the
 *            stop; -EVC_INVALID_ARGUMENT, also for a function that no worker
 *            has, a worker that does not exist, a per-worker value or remote
 *            that was freed or that belongs to another cluster;
 *            -EVC_UNIMPLEMENTED for a deadline on an engine that cannot keep
 *            it.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_schedule(evc_cluster *cluster, const char *function, const evc_value *args,
	     const evc_value *kwargs, const evc_schedule_opts *opts,
	     evc_remote **ret_remote);

/*
 * evc_schedule with positional arguments by a format of evc_pack, which must be
 * an array: "[i s]".
 *
 * Thread:    as evc_schedule.
 * Ownership: as evc_schedule; the remotes and per-worker values that the format
 *            takes are read, so they must not have been freed.
 * Returns:   as evc_schedule and evc_pack.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_schedule_pack(evc_cluster *cluster, const char *function,
		  const evc_schedule_opts *opts, evc_remote **ret_remote,
		  const char *format, ...);

/*
 * Schedule a C function of this program, for workers that are its threads.
 *
 * Thread:    as evc_schedule.
 * Ownership: arg must live until the function is over, and for as long as a
 *            worker may run it.
 * Returns:   as evc_schedule; -EVC_INVALID_ARGUMENT on an engine whose workers
 *            are not of this process.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_schedule_call(evc_cluster *cluster, evc_exec_fn *fn, void *arg,
		  const evc_value *args, const evc_value *kwargs,
		  const evc_schedule_opts *opts, evc_remote **ret_remote);

/*
 * Schedule a function once on every worker.
 *
 * Thread:    as evc_schedule.
 * Ownership: as evc_schedule; opts->worker must be NULL.  ret_remotes (may be
 *            NULL) has room for *n remotes; n (may be NULL with it) is set to
 *            the number of workers if all were accepted.
 * Returns:   as evc_schedule: all were accepted, or none;
 *            -EVC_OUT_OF_RANGE when *n is less than the number of workers.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_schedule_all(evc_cluster *cluster, const char *function,
		 const evc_value *args, const evc_value *kwargs,
		 const evc_schedule_opts *opts, evc_remote **ret_remotes,
		 unsigned *n);

/*
 * Wait until nothing is queued and nothing runs, timeout seconds at most, and
 * not beyond the end of a stop, see evc_stop_left.
 *
 * Thread:    any but the cluster's loop; not inside a function of the cluster.
 * Ownership: nothing changes hands.
 * Returns:   0; > 0: an error was raised; -EVC_DEADLINE_EXCEEDED, and
 *            evc_last_error says which function runs where; -EVC_CANCELLED,
 *            once, when the stop has cancelled functions;
 *            -EVC_FAILED_PRECONDITION,
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_cluster_join(evc_cluster *cluster, double timeout);

/* The answer of evc_cluster_join_start: what evc_cluster_join would return. */
typedef void evc_cluster_fn(evc_cluster *cluster, evc_status result, void *arg);

/*
 * evc_cluster_join without a wait: the loop calls fn with the answer.
 *
 * Thread:    any.
 * Ownership: arg must live until fn was called.  fn is called once, on the
 *            cluster's loop, and never inside this call.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_FAILED_PRECONDITION when the loop is gone.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_cluster_join_start(evc_cluster *cluster, evc_cluster_fn *fn, void *arg);

/*
 * Has everything been completed?  Never waits.
 *
 * Thread:    any.
 * Ownership: *ret_done is true when nothing is queued and nothing runs.  It is
 *            false while an error waits to be raised and a function still runs.
 * Returns:   0; > 0: an error was raised; -EVC_CANCELLED as evc_cluster_join;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_cluster_done(evc_cluster *cluster, bool *ret_done);

/*
 * The errors behind the error that was raised last.  index 0 is the raised one;
 * the others follow in the order they came; 32 are kept.
 *
 * Thread:    any.
 * Ownership: *ret_reason (may be NULL) is filled: its field who has the worker,
 *            func has the function.
 * Returns:   0; -EVC_NOT_FOUND past the end; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_cluster_error_get(const evc_cluster *cluster, unsigned index,
		      evc_reason *ret_reason);

/* ---- remotes ---- */

/* How far a remote is: evc_remote_info.state */
enum {
	EVC_REMOTE_WAITING = 1, /* for its inputs, or to be tried again */
	EVC_REMOTE_QUEUED = 2,
	EVC_REMOTE_RUNNING = 3, /* a worker has taken it */
	EVC_REMOTE_DONE = 4     /* has its outcome */
};

/* Where an error came from: evc_remote_info.kind */
enum {
	EVC_FAILED_FUNCTION = 1, /* the function returned the error, or was not
				    sent, or its result not taken: the text */
	EVC_FAILED_INPUT = 2,    /* a per-worker value could not be built */
	EVC_FAILED_REMOTE = 3,   /* a remote among the arguments failed */
	EVC_FAILED_WORKER = 4,   /* too many workers died with the function, or
				    the function was given up, or its deadline
				    has passed, or the worker it was scheduled
				    for was missing */
	EVC_FAILED_CANCEL = 5,   /* the function was cancelled: by
				    evc_remote_cancel, after the error of
				    another function, by the stop, or with
				    a remote among the arguments */
	EVC_FAILED_CLUSTER = 6,  /* cancelled, because there was no worker */
	EVC_FAILED_LOST = 7      /* the cluster was lost while the transactional
				    function ran: its updates may have been
				    made, all or none */
};

typedef struct evc_remote_info {
	uint64_t id;
	unsigned state;     /* EVC_REMOTE_... */
	unsigned kind;      /* EVC_FAILED_...; 0: no failure */
	evc_status code;    /* the outcome */
	unsigned attempts;  /* how often a worker has taken the function */
	unsigned deaths;    /* workers that died while they ran the function;
				without those that were ended for it, at its
				deadline or at the end of a grace */
	double took;        /* seconds from the schedule to the outcome */
	char function[48];
	char worker[48];    /* the worker that runs it, or ran it last; "" */
	char text[192];     /* text of the error; see evc_remote_text */
	uint64_t reserved_[8];
} evc_remote_info;

/*
 * Take one more reference to a remote.
 *
 * Thread:    any.
 * Ownership: each reference is given back by an evc_remote_free of its own.
 * Returns:   remote.
 * Since:     0.1
 */
EVC_API evc_remote *
evc_remote_ref(evc_remote *remote);

/*
 * Drop a remote, at any time: its function goes on.
 *
 * Thread:    any; also when the cluster is closed.
 * Ownership: remote is gone for the caller; NULL is fine.
 * Returns:   nothing.
 * Since:     0.1
 */
EVC_API void
evc_remote_free(evc_remote *remote);

/*
 * How far a remote is, and how it ended.
 *
 * Thread:    any; also when the cluster is closed.
 * Ownership: *ret_info is filled.
 * Returns:   0; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_remote_get(const evc_remote *remote, evc_remote_info *ret_info);

/*
 * The text of the error of a remote: all of the text that evc_remote_info.text
 * has the beginning and the end of, up to some 4,000 bytes.  A remote that has
 * failed by the error of another one has the short text alone.
 *
 * Thread:    any; also when the cluster is closed.
 * Ownership: as evc_cluster_worker_text.
 * Returns:   as evc_cluster_worker_text; 0 before the outcome, too.
 * Since:     0.2
 */
EVC_API size_t
evc_remote_text(const evc_remote *remote, char *buf, size_t n);

/*
 * Wait for one remote and read its result.  This call returns an error of the
 * remote but does not raise it: the cluster's calls still raise the error.  The
 * wait ends with a stop, too, see evc_stop_left.
 *
 * Thread:    any but the cluster's loop, where the call is refused unless the
 *            remote has its outcome; also when the cluster is closed.
 * Ownership: *ret_value (may be NULL) is the remote's, valid as long as the
 *            remote; nil with an error of the remote.
 * Returns:   0; > 0: the remote's error; -EVC_DEADLINE_EXCEEDED when timeout
 *            seconds or the stop are over, and evc_last_error says what runs;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API evc_status
evc_remote_fetch(evc_remote *remote, double timeout, evc_value *ret_value);

/*
 * Cancel a function.  A queued function ends as EVC_CANCELLED at once; a
 * running function is asked to stop, and its own outcome counts.  Functions
 * that have the remote among their arguments are cancelled with it.  A cancel
 * raises no error, unless the function does not return and has to be given up,
 * which happens with threads alone.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND when the remote has its outcome;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_remote_cancel(evc_remote *remote);

/*
 * Fetch: a copy of value in which each remote, at any depth, is replaced by its
 * result.  The call waits timeout seconds at most, and not beyond the end of a
 * stop, see evc_stop_left.
 *
 * Thread:    any; on the cluster's loop the call is refused when it would have
 *            to wait.
 * Ownership: *ret_value is the caller's, for evc_value_free.
 * Returns:   0; > 0: the error of the first remote that failed, in the order of
 *            the value; -EVC_UNIMPLEMENTED for a per-worker value, which only
 *            evc_schedule takes; -EVC_DEADLINE_EXCEEDED;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION,
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_fetch(evc_cluster *cluster, const evc_value *value, double timeout,
	  evc_value *ret_value);

/* The answer of evc_fetch_start: what evc_fetch would return; value is nil
   unless result is 0, and valid during the call. */
typedef void evc_fetch_fn(evc_cluster *cluster, evc_status result,
			  const evc_value *value, void *arg);

/*
 * evc_fetch without a wait: the loop calls fn with the answer.
 *
 * Thread:    any.
 * Ownership: value is copied, and its remotes are kept until fn was called; arg
 *            must live until then.  fn is called once, on the cluster's loop,
 *            and never inside this call.
 * Returns:   0; as evc_fetch for a value that is refused;
 *            -EVC_FAILED_PRECONDITION when the loop is gone.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_fetch_start(evc_cluster *cluster, const evc_value *value, evc_fetch_fn *fn,
		void *arg);

/* ---- per-worker values ---- */

/*
 * Make a per-worker value: each worker calls function(args), and has its own
 * instance, which that function keeps or returns.  A worker builds the instance
 * before it takes functions, again in each of its lives.  When the build fails,
 * the functions that use the value fail with that error (EVC_FAILED_INPUT), and
 * no others.  A value whose build has ended config.deaths workers is
 * EVC_ABORTED, and is not tried again.
 *
 * Thread:    any.
 * Ownership: *ret_value is the caller's, for evc_per_worker_free.  name is for
 *            reports and texts, < 48 bytes.
 * Returns:   0; -EVC_INVALID_ARGUMENT as evc_schedule, also for remotes in
 *            args; -EVC_RESOURCE_EXHAUSTED, -EVC_CANCELLED.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_per_worker_value(evc_cluster *cluster, const char *name,
		     const char *function, const evc_value *args,
		     evc_per_worker **ret_value);

typedef struct evc_dataset_opts {
	/* A function that is called with each element, [ELEMENT]; its result
	   takes the place of the element. */
	const char *map;
	/* How often the dataset is walked through; 0 = once, UINT64_MAX =
	   without an end. */
	uint64_t repeat;
	/* Elements come in a random order, a different one on each worker and
	   in each walk; for evc_per_worker_dataset_of only. */
	bool shuffle;
	uint64_t seed; /* shuffle: not 0: the same order on all workers */
	uint64_t reserved_[8];
} evc_dataset_opts;

/*
 * Make a dataset on each worker: function(args) keeps it there, by
 * evc_exec_keep with iterate and next.
 *
 * Thread:    any.
 * Ownership: as evc_per_worker_value.
 * Returns:   as evc_per_worker_value.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_per_worker_dataset(evc_cluster *cluster, const char *name,
		       const char *function, const evc_value *args,
		       const evc_dataset_opts *opts,
		       evc_per_worker **ret_dataset);

/*
 * Make a dataset on each worker, from the elements of an array.
 *
 * Thread:    any.
 * Ownership: as evc_per_worker_value; elements is copied.
 * Returns:   as evc_per_worker_value.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_per_worker_dataset_of(evc_cluster *cluster, const char *name,
			  const evc_value *elements,
			  const evc_dataset_opts *opts,
			  evc_per_worker **ret_dataset);

/*
 * Make an iterator on each worker, at the beginning of its dataset; functions
 * call evc_exec_next with it.
 *
 * Thread:    any.
 * Ownership: *ret_iterator is the caller's, for evc_per_worker_free; the
 *            iterator keeps the dataset.
 * Returns:   0; -EVC_INVALID_ARGUMENT when dataset is no dataset;
 *            -EVC_RESOURCE_EXHAUSTED, -EVC_CANCELLED.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_per_worker_iterator(evc_per_worker *dataset,
			evc_per_worker **ret_iterator);

/*
 * Always a refusal: the elements of a per-worker iterator are on the workers,
 * and the coordinator has none.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   -EVC_UNIMPLEMENTED, with a text that says to pass the iterator to
 *            evc_schedule.
 * Since:     0.1
 */
EVC_API evc_status
evc_per_worker_next(evc_per_worker *iterator, evc_value *ret_value);

/*
 * Drop a per-worker value, dataset or iterator.  All workers free it when the
 * functions that were scheduled with it are over.
 *
 * Thread:    any; before the cluster's last close, or after it.
 * Ownership: value is gone for the caller; NULL is fine.
 * Returns:   nothing.
 * Since:     0.1
 */
EVC_API void
evc_per_worker_free(evc_per_worker *value);

/* ---- variables ---- */

/*
 * With an engine that keeps the variables itself (redis://) each of these
 * calls, and evc_cluster_save and evc_cluster_restore, waits for an answer that
 * comes on the cluster's loop.  Such an engine adds these results:
 * -EVC_FAILED_PRECONDITION for a call on that loop; -EVC_CANCELLED once the
 * cluster has ended, which other engines return for changes after the last save
 * of config.checkpoint; -EVC_UNAVAILABLE when the engine is down, or cannot ask
 * a server for too long; -EVC_DATA_LOSS when the kept bytes are no value;
 * -EVC_RESOURCE_EXHAUSTED when the server refuses, and -EVC_INTERNAL for any
 * other error of the server, with the words of the server.
 */

/*
 * Add to a variable that is a number (a missing variable counts as 0).  The sum
 * is a double: whole numbers are exact up to 2^53.
 *
 * Thread:    any.
 * Ownership: name is copied, < 256 bytes; *ret_now (may be NULL) is the new
 *            value.
 * Returns:   0; -EVC_INVALID_ARGUMENT, also for a variable that is no number;
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_variable_add(evc_cluster *cluster, const char *name, double by,
		 double *ret_now);

/*
 * Set a variable; nil removes it.
 *
 * Thread:    any.
 * Ownership: name and value are copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_variable_set(evc_cluster *cluster, const char *name,
		 const evc_value *value);

/*
 * Read a variable.
 *
 * Thread:    any.
 * Ownership: *ret_value is the caller's, for evc_value_free.
 * Returns:   0; -EVC_NOT_FOUND, and *ret_value is nil;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_variable_get(evc_cluster *cluster, const char *name, evc_value *ret_value);

/*
 * Read a variable that is a number; a missing variable counts as 0.
 *
 * Thread:    any.
 * Ownership: *ret_number is the value, or 0.
 * Returns:   0; -EVC_INVALID_ARGUMENT, also for a variable that is no number;
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.2
 */
EVC_API evc_status
evc_variable_number(evc_cluster *cluster, const char *name,
		    double *ret_number);

/*
 * Set a variable if its present value equals expected (NULL or nil: the
 * variable does not exist; numbers compare as numbers).  A value of nil
 * removes the variable; after NULL for a missing one nothing changes, and the
 * result says whether it is missing.  NULL for the value is refused.
 *
 * Thread:    any.
 * Ownership: everything is copied.
 * Returns:   0; -EVC_ABORTED when the present value differs;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_variable_compare_set(evc_cluster *cluster, const char *name,
			 const evc_value *expected, const evc_value *value);

/*
 * Set a variable to a vector: all its elements, in their order.  The vector has
 * doubles if the elements are doubles, else floats.  As evc_variable_set with a
 * value of evc_pack "E"; evc_variable_get reads the whole vector, for
 * evc_value_elements.
 *
 * Thread:    any.
 * Ownership: name and elements are copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT, also for elements with `at` or `from`;
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.2
 */
EVC_API evc_status
evc_vector_set(evc_cluster *cluster, const char *name,
	       const evc_elements *elements);

/*
 * Add to elements of a vector, all of them or none.  A place coming twice in
 * elements->at is added to twice.
 *
 * Thread:    any.
 * Ownership: name and elements are copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT, also for a number or a sum that is not
 *            finite, for a variable that is missing or no vector, and for a
 *            place where the vector has no element; -EVC_OUT_OF_RANGE for some
 *            places that no vector can have; -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.2
 */
EVC_API evc_status
evc_vector_add(evc_cluster *cluster, const char *name,
	       const evc_elements *elements);

/*
 * Read elements of a vector, all at one moment: a range, or those at
 * ret_elements->at, where a place may come twice.
 *
 * Thread:    any.
 * Ownership: the numbers are copied to where *ret_elements says.
 * Returns:   0; -EVC_NOT_FOUND; -EVC_INVALID_ARGUMENT, also for a variable of
 *            another type; -EVC_OUT_OF_RANGE when the vector has no element at
 *            some place, and nothing is copied; -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.2
 */
EVC_API evc_status
evc_vector_get(evc_cluster *cluster, const char *name,
	       const evc_elements *ret_elements);

/*
 * Read the number of elements of a vector.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   as evc_vector_get.
 * Since:     0.2
 */
EVC_API evc_status
evc_vector_size(evc_cluster *cluster, const char *name, size_t *ret_n);

/* Called with each variable of a walk; name and value are valid during the
   call.  false ends the walk. */
typedef bool evc_variable_fn(const char *name, const evc_value *value,
			     void *arg);

/*
 * Walk all variables as they are at one moment, in the order of their names.
 *
 * Thread:    any; fn may call anything.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_variable_each(evc_cluster *cluster, evc_variable_fn *fn, void *arg);

/*
 * Save all variables, and the number of functions finished, to a file: whole or
 * not at all, and on the disk when the call returns.  The new file is written
 * as path.tmp-..., then takes the place of the old file; its permissions are no
 * wider than the old file's.  A symbolic link is replaced, not followed.  When
 * two writers save to one file, the file stays whole: the last rename wins.
 *
 * Thread:    any that may wait for a disk.
 * Ownership: path is copied; NULL = config.checkpoint.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED (no room on the
 *            disk, too), -EVC_PERMISSION_DENIED, -EVC_NOT_FOUND (no such
 *            folder), -EVC_UNAVAILABLE for another error of the file system;
 *            -EVC_DATA_LOSS for a variable over Redis that holds no value,
 *            because somebody else has written it.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_cluster_save(evc_cluster *cluster, const char *path);

/*
 * Load a saved file; its variables replace all present ones, and its number of
 * functions becomes that of evc_cluster_finished.
 *
 * Thread:    any that may wait for a disk.
 * Ownership: as evc_cluster_save.
 * Returns:   0; -EVC_NOT_FOUND when there is no such file; -EVC_DATA_LOSS when
 *            the file is damaged: nothing was changed; else as
 *            evc_cluster_save.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_cluster_restore(evc_cluster *cluster, const char *path);

/*
 * How many functions have succeeded, those that the checkpoint counts included.
 * A program can see how many of its steps are done, but not which ones, because
 * functions do not end in the order of their schedule.  The number is for all
 * function names together.
 *
 * An engine that keeps the variables also counts the transactional functions,
 * those from before this cluster, too.  On the loop, and when the cluster ends,
 * the engine cannot be asked: then the number has what the cluster knows.
 *
 * Thread:    any; waits for such an engine, but not on the loop.
 * Ownership: nothing changes hands.
 * Returns:   the number; 0 for NULL.
 * Since:     0.1
 */
EVC_API uint64_t
evc_cluster_finished(const evc_cluster *cluster);

/* ---- how it goes ---- */

typedef struct evc_cluster_info {
	unsigned n_workers;      /* workers there, or to come; leaving ones
				    count until they are gone */
	unsigned n_up;           /* workers that take functions */
	uint64_t n_queued;       /* not begun, those that wait included */
	uint64_t n_running;      /* given to a worker: some wait there behind
				    others */
	/* n_scheduled ... n_builds count since the cluster was opened. */
	uint64_t n_scheduled;    /* accepted */
	uint64_t n_done;         /* succeeded */
	uint64_t n_failed;
	uint64_t n_cancelled;
	uint64_t n_executions;   /* results that workers sent, those in n_late
				    included; a run that was overtaken
				    (n_conflicts) has no result */
	uint64_t n_late;         /* results of attempts that were given up */
	uint64_t n_lost;         /* attempts that ended with their worker; those
				    whose deadline had passed had failed
				    before */
	uint64_t n_retries;
	uint64_t n_fetches;      /* remotes whose outcome was handed out */
	uint64_t n_builds;       /* per-worker values built, on all workers */
	double build_time;       /* seconds spent to build per-worker values */
	double run_time;         /* seconds that functions ran, on all
				    workers, in runs with a result */
	double rate;             /* functions that succeed a second, lately */
	double age;              /* seconds since the cluster was opened */
	char engine[16];         /* "threads" ... */
	uint64_t n_unsaved;      /* failed saves of the checkpoint since the
				    last good one */
	double unsaved;          /* seconds since the last good save, or since
				    the opening; 0: the last save succeeded */
	uint64_t n_conflicts;    /* runs of transactional functions that began
				    again, because a variable that they had
				    read was changed */
	uint64_t n_wanted;       /* workers to be there: n_workers, unless
				    some have to leave */
	double server_away;      /* seconds since the engine has no connection
				    to its server; 0: the server is there,
				    or the engine needs none */
	uint64_t n_worker_failures; /* n_failures of all workers, also of those
				       that are gone */
	uint64_t reserved_[2];
} evc_cluster_info;

/*
 * The numbers of a cluster.
 *
 * Thread:    any.
 * Ownership: *ret_info is filled.
 * Returns:   0; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_cluster_get(const evc_cluster *cluster, evc_cluster_info *ret_info);

/*
 * One worker of a cluster.  An engine that finds its workers adds them one by
 * one.  A worker is EVC_WORKER_GONE after evc_cluster_resize has made it leave,
 * and not found as soon as all with greater indices have left.
 *
 * Thread:    any.
 * Ownership: *ret_info (may be NULL) is filled.
 * Returns:   0; -EVC_NOT_FOUND past the last one; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_cluster_worker_get(const evc_cluster *cluster, unsigned index,
		       evc_cluster_worker_info *ret_info);

/*
 * Why the worker ended last time, with its last words: all of the text that
 * evc_cluster_worker_info.text has the beginning and the end of, up to some
 * 4,000 bytes.
 *
 * Thread:    any.
 * Ownership: buf is the caller's; ended by a 0 byte when n > 0; may be NULL
 *            when n is 0.
 * Returns:   the length of the whole text without the 0 byte.  When that is not
 *            less than n, buf has the beginning of the text: n - 1 bytes, or up
 *            to 3 fewer, so that no character of UTF-8 is cut.  0 when there is
 *            none, also past the last worker, for NULL and in a fork child.
 * Since:     0.2
 */
EVC_API size_t
evc_cluster_worker_text(const evc_cluster *cluster, unsigned index, char *buf,
			size_t n);

EVC_END_DECLS_

#endif
