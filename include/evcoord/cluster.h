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
 * An error of a function is kept, and raised once: by whichever of
 * evc_schedule, evc_cluster_join and evc_cluster_done comes first.  From the
 * error on nothing else begins: what is queued ends as EVC_CANCELLED
 * ("...: reschedule"), what runs is asked to stop and waited for.  When it is
 * raised nothing runs any more, and the cluster is as new.
 *
 * EVC_UNAVAILABLE is an error of the cluster itself: there was no worker for
 * worker_wait seconds.  What was queued ends as EVC_CANCELLED, of the kind
 * EVC_FAILED_CLUSTER, and it is raised anew until a worker is up.
 *
 * What was raised comes back > 0; < 0 is a refusal of that very call.  No code
 * is a clean one here, and no function's error is a stop of anything.
 *
 * A cluster is a scope of its coordinator, and ends with it; the log hook of that
 * hears of workers that die, checkpoints that fail, servers that lose something,
 * and errors that no call can raise any more.  Calls that wait are for threads; on
 * the thread of the cluster's loop they are refused with -EVC_FAILED_PRECONDITION.
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

/* What a worker is: evc_cluster_worker_info.state */
enum {
	EVC_WORKER_STARTING = 1, /* never seen yet, or seen and not ready */
	EVC_WORKER_UP = 2,       /* takes functions */
	EVC_WORKER_HUNG = 3,     /* in a function that was given up */
	EVC_WORKER_FENCED = 4,   /* completes nothing more; may run still */
	EVC_WORKER_GONE = 5      /* proven not to run */
};

typedef struct evc_cluster_worker_info {
	unsigned index;     /* 0 ... */
	unsigned state;     /* EVC_WORKER_... */
	unsigned lives;     /* how often it was up */
	unsigned n_running; /* functions it has taken and not completed */
	uint64_t n_done;    /* functions it has completed, in all its lives */
	double since;       /* seconds in this state */
	double busy;        /* seconds in its oldest function; < 0: in none */
	char name[48];      /* "worker 0"; of no two workers the same */
	char where[96];     /* "pid 123", "tid 123"; "" */
	char function[48];  /* the oldest it has taken; "" */
	char text[192];     /* why it went the last time, and its last words */
	uint64_t reserved_[8];
} evc_cluster_worker_info;

/* What became of a worker; on the cluster's loop. */
typedef void evc_cluster_worker_fn(evc_cluster *cluster,
			   const evc_cluster_worker_info *worker, void *arg);

typedef void evc_writable_fn(evc_cluster *cluster, void *arg);

/*
 * How a cluster is to be opened.
 */
typedef struct evc_cluster_config {
	/* Opened with a name twice at the same time, with the same coordinator
	   and address, it is the same cluster.  NULL: one of its own, called
	   "cluster".  < 48 bytes. */
	const char *name;
	/* The loop that callbacks and the engine run on; NULL = the home of the
	   coordinator, else a loop on a thread of the cluster's own. */
	evc_reactor *reactor;
	/* For workers that are threads of this process; must live as long as
	   the cluster. */
	const evc_function *functions;
	unsigned n_functions;
	unsigned max_queued; /* functions accepted and not begun; 0 = 262,144 */
	double worker_wait;  /* seconds that functions wait for a worker when
				there is none, then they are cancelled and
				UNAVAILABLE is raised; 0 = 60, INFINITY
				possible */
	double grace;        /* seconds for a function that was asked to stop;
				0 = 10, EVC_NO_GRACE none, INFINITY for ever */
	double lease;        /* seconds after which a worker without a sign of
				life is lost; 0 = 5 */
	unsigned deaths;     /* workers that one function, or the build of one
				per-worker value, may take with it before it is
				ABORTED; 0 = 3, 255 and more = any
				number */
	size_t max_frame;    /* bytes of one message from or to a worker; 0 =
				64 MiB */
	/* Of functions scheduled without a retry: a function that fails is run
	   again, `times` (0 = 0) times at most.  Meanwhile the function has not
	   failed, and nobody hears of a failure.  Without codes: after all but
	   CANCELLED, INVALID_ARGUMENT, OUT_OF_RANGE and UNIMPLEMENTED.  within
	   is 0. */
	evc_backoff retry;
	/* Variables: loaded from this file when the cluster is opened, if it is
	   there, saved every checkpoint_every seconds (0 = 30, INFINITY never)
	   and at the stop. */
	const char *checkpoint;
	double checkpoint_every;
	/* Engines beside "threads" and "processes"; must live as long. */
	const evc_engine_ops *const *engines;
	unsigned n_engines;
	unsigned flags;      /* 0 */
	/* There is room again after a schedule was refused on the loop, where
	   a plain ev_run does not return before. */
	evc_writable_fn *writable;
	/* A worker came, was fenced, went, or hangs. */
	evc_cluster_worker_fn *worker;
	void *arg;           /* for both */
	uint64_t reserved_[8];
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
 * Workers start at once; this does not wait for them.
 *
 * Thread:    any; a loop given by config->reactor, or the home, has to turn for
 *            anything to happen beyond "threads".
 * Ownership: *ret_cluster is the caller's, for evc_cluster_close; config and
 *            what it points to are copied but where it says otherwise.
 * Returns:   0; -EVC_INVALID_ARGUMENT, for an address that nobody serves with
 *            a text that lists those that are known; -EVC_ALREADY_EXISTS for a
 *            name that is open with another address; -EVC_CANCELLED after the
 *            stop; -EVC_RESOURCE_EXHAUSTED, -EVC_DATA_LOSS when the checkpoint
 *            and the one before it are damaged, or as evc_cluster_restore when
 *            it cannot be read; -EVC_NOT_FOUND, -EVC_PERMISSION_DENIED for a
 *            program that cannot be executed;
 *            -EVC_FAILED_PRECONDITION in a fork child, and
 *            for processes in a process that was started as a worker and has
 *            not called evc_worker_main; -EVC_UNIMPLEMENTED when
 *            libevcoord-redis is not there.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_cluster_open(evc_coord *c, const char *uri,
		 const evc_cluster_config *config, evc_cluster **ret_cluster);

/*
 * Close a cluster: the last close of as many as it was opened stops its scope,
 * as the coordinator's stop would: what is queued is cancelled, what runs is
 * asked to stop.  Never waits; the coordinator's joins wait for it, and it frees
 * itself when all has ended.  One that a stop has ended is closed, too.
 *
 * The last save of the checkpoint comes after this; when that fails, it is an error
 * in the coordinator's verdict.  An error of a function that comes after this is
 * a line in the coordinator's log.
 *
 * Thread:    any.
 * Ownership: cluster is gone for the caller, whatever this returns; remotes are
 *            still the caller's.  NULL is fine.
 * Returns:   0; > 0: the code of the latest save of the checkpoint, if that has
 *            failed, else of an error that no call has raised, with a text
 *            (evc_last_error); -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_cluster_close(evc_cluster *cluster);

/*
 * The scope that a cluster is.
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
	/* What it does to variables is done when it has succeeded, all at once
	   and exactly once. */
	EVC_TRANSACTIONAL = 1 << 25,

	/* evc_schedule_opts.priority */
	EVC_PRIORITY_LEAST = -8,
	EVC_PRIORITY_MOST = 7
};

typedef struct evc_schedule_opts {
	const char *worker; /* on this one alone, by name; NULL = any.  When
			       that is not there for worker_wait seconds it
			       fails with EVC_UNAVAILABLE */
	int priority;       /* the greater the sooner, -8..7 */
	double deadline;    /* seconds a run may take, then its worker process
			       is killed, and it has failed with
			       EVC_DEADLINE_EXCEEDED; 0 = any time */
	unsigned deaths;    /* as in the config; 0 = that */
	evc_backoff retry;  /* times 0 = the config's */
	unsigned flags;     /* EVC_TRANSACTIONAL */
	double wait;        /* seconds a thread waits for room in a full queue,
			       or for what runs when an error is to be raised; 0
			       = for ever, < 0 not at all; on the loop, and in a
			       function of the cluster's, always not at all */
	uint64_t reserved_[8];
} evc_schedule_opts;

/*
 * Schedule a function by name: it is queued, and runs when a worker is free.
 * args is an array, kwargs a map, or NULL.  Per-worker values and remotes may
 * stand anywhere in them.  The function begins when all remotes have their
 * results, which stand in their places; if one fails this fails with the same
 * error, and if one is cancelled this is.
 *
 * Thread:    any; not a signal handler.
 * Ownership: args and kwargs are copied.  *ret_remote (may be NULL) is the
 *            caller's, for evc_remote_free.
 * Returns:   0; > 0: an error was raised, and nothing was accepted;
 *            -EVC_RESOURCE_EXHAUSTED when there is no room (config.writable
 *            says when there is) or no memory; -EVC_CANCELLED after the stop;
 *            -EVC_INVALID_ARGUMENT, also for a function that no worker has, a
 *            worker that there is none of, a per-worker value or remote that
 *            is not there any more or of another cluster;
 *            -EVC_UNIMPLEMENTED for a deadline on an engine that cannot keep
 *            it.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_schedule(evc_cluster *cluster, const char *function, const evc_value *args,
	     const evc_value *kwargs, const evc_schedule_opts *opts,
	     evc_remote **ret_remote);

/*
 * The same with positional arguments by a format of evc_pack that is an array,
 * "[i s]".
 *
 * Thread:    as evc_schedule.
 * Ownership: as evc_schedule.
 * Returns:   as evc_schedule and evc_pack.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
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
EVC_API EVC_MUST_USE evc_status
evc_schedule_call(evc_cluster *cluster, evc_exec_fn *fn, void *arg,
		  const evc_value *args, const evc_value *kwargs,
		  const evc_schedule_opts *opts, evc_remote **ret_remote);

/*
 * Schedule a function once on every worker.
 *
 * Thread:    as evc_schedule.
 * Ownership: as evc_schedule; opts->worker must be NULL.  ret_remotes (may be
 *            NULL) has room for *n remotes; n (may be NULL with it) is set to
 *            the number of workers.
 * Returns:   as evc_schedule: all were accepted, or none;
 *            -EVC_OUT_OF_RANGE when there is not room for all.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_schedule_all(evc_cluster *cluster, const char *function,
		 const evc_value *args, const evc_value *kwargs,
		 const evc_schedule_opts *opts, evc_remote **ret_remotes,
		 unsigned *n);

/*
 * Wait until nothing is queued and nothing runs, timeout seconds at most.
 *
 * Thread:    any but the cluster's loop; not inside a function of its.
 * Ownership: nothing changes hands.
 * Returns:   0; > 0: an error was raised; -EVC_DEADLINE_EXCEEDED, and
 *            evc_last_error says what runs where; -EVC_CANCELLED, once, when
 *            the stop has cancelled something; -EVC_FAILED_PRECONDITION,
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_cluster_join(evc_cluster *cluster, double timeout);

/* The answer of evc_cluster_join_start: what evc_cluster_join would return. */
typedef void evc_cluster_fn(evc_cluster *cluster, evc_status result, void *arg);

/*
 * The same on the loop, by a call of fn.
 *
 * Thread:    any.
 * Ownership: arg must live until fn was called, which is once, on the cluster's
 *            loop, and never inside this.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_FAILED_PRECONDITION when the loop is gone.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_cluster_join_start(evc_cluster *cluster, evc_cluster_fn *fn, void *arg);

/*
 * Has everything been completed?  Never waits.
 *
 * Thread:    any.
 * Ownership: *ret_done: nothing is queued and nothing runs.  While an error is
 *            to be raised and something still runs it is false.
 * Returns:   0; > 0: an error was raised; -EVC_CANCELLED as evc_cluster_join;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_cluster_done(evc_cluster *cluster, bool *ret_done);

/*
 * The errors of what was raised last: 0 is the one that was, the others follow
 * in the order they came; 32 are kept.
 *
 * Thread:    any.
 * Ownership: *ret_reason is filled; who is the worker, func the function.
 * Returns:   0; -EVC_NOT_FOUND past the end; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_cluster_error_get(const evc_cluster *cluster, unsigned index,
		      evc_reason *ret_reason);

/* ---- remotes ---- */

/* How far it is: evc_remote_info.state */
enum {
	EVC_REMOTE_WAITING = 1, /* for its inputs, or to be tried again */
	EVC_REMOTE_QUEUED = 2,
	EVC_REMOTE_RUNNING = 3, /* a worker has taken it */
	EVC_REMOTE_DONE = 4     /* it has its outcome */
};

/* What an error came from: evc_remote_info.kind */
enum {
	EVC_FAILED_FUNCTION = 1, /* the function returned it */
	EVC_FAILED_INPUT = 2,    /* a per-worker value that could not be
				    built */
	EVC_FAILED_REMOTE = 3,   /* a remote among its arguments failed */
	EVC_FAILED_WORKER = 4,   /* it has taken too many workers with it, was
				    given up, or its own worker was not there */
	EVC_FAILED_CANCEL = 5,   /* it was cancelled: by name, after another
				    one's error, by the stop */
	EVC_FAILED_CLUSTER = 6   /* cancelled, because there was no worker */
};

typedef struct evc_remote_info {
	uint64_t id;
	unsigned state;     /* EVC_REMOTE_... */
	unsigned kind;      /* EVC_FAILED_...; 0: it did not */
	evc_status code;    /* its outcome */
	unsigned attempts;  /* how often a worker has taken it */
	unsigned deaths;    /* how many workers were lost with it */
	double took;        /* seconds from its schedule to its outcome */
	char function[48];
	char worker[48];    /* that has it, or had it last; "" */
	char text[192];     /* of an error */
	uint64_t reserved_[8];
} evc_remote_info;

/*
 * One reference more.
 *
 * Thread:    any.
 * Ownership: each is given back by an evc_remote_free of its own.
 * Returns:   remote.
 * Since:     0.1
 */
EVC_API evc_remote *
evc_remote_ref(evc_remote *remote);

/*
 * Drop a remote, at any time: what it stands for goes on.
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
 * Wait for one remote and look at its result.  An error of it is not raised by
 * this: the cluster's calls still raise it.
 *
 * Thread:    any but the cluster's loop, where it is refused unless the remote
 *            has its outcome; also when the cluster is closed.
 * Ownership: *ret_value (may be NULL) is the remote's, valid as long as that.
 * Returns:   0; > 0: its error; -EVC_DEADLINE_EXCEEDED when timeout seconds
 *            are over; -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION.
 * Since:     0.1
 */
EVC_API evc_status
evc_remote_fetch(evc_remote *remote, double timeout, evc_value *ret_value);

/*
 * Cancel a function: one that is queued ends as EVC_CANCELLED at once; one that
 * runs is asked to stop, and its own outcome counts.  What waits for it among
 * its arguments is cancelled with it.  No error is raised for it, unless it does
 * not return and has to be given up: threads alone.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND when it has its outcome;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_remote_cancel(evc_remote *remote);

/*
 * Fetch: the same value with the results of the remotes in their places, at any
 * depth; what is no remote stays as it is.  Waits timeout seconds at most.
 *
 * Thread:    any; on the cluster's loop it is refused when it would have to wait.
 * Ownership: *ret_value is the caller's, for evc_value_free.
 * Returns:   0; > 0: the error of the first remote that failed, in the order of
 *            the value; -EVC_UNIMPLEMENTED for a per-worker value, which is to
 *            be passed to evc_schedule; -EVC_DEADLINE_EXCEEDED;
 *            -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION,
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_fetch(evc_cluster *cluster, const evc_value *value, double timeout,
	  evc_value *ret_value);

/* The answer of evc_fetch_start: what evc_fetch would return; value is nil
   unless result is 0, and valid during the call. */
typedef void evc_fetch_fn(evc_cluster *cluster, evc_status result,
			  const evc_value *value, void *arg);

/*
 * The same on the loop, by a call of fn.
 *
 * Thread:    any.
 * Ownership: value is copied, and its remotes are kept until fn was called; arg
 *            must live until then.  fn is called once, on the cluster's loop,
 *            and never inside this.
 * Returns:   0; as evc_fetch for a value that is refused;
 *            -EVC_FAILED_PRECONDITION when the loop is gone.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_fetch_start(evc_cluster *cluster, const evc_value *value, evc_fetch_fn *fn,
		void *arg);

/* ---- what each worker has its own of ---- */

/*
 * A value that each worker has its own of: what function(args), called on each
 * worker, keeps or returns there.  It is made before a worker takes functions,
 * anew in each of its lives.  Where it could not be made, functions that use it
 * fail with that error (EVC_FAILED_INPUT), and no others.  One that has ended
 * config.deaths workers while they made it is EVC_ABORTED, and not tried again.
 *
 * Thread:    any.
 * Ownership: *ret_value is the caller's, for evc_per_worker_free.  name is for
 *            reports and texts, < 48 bytes.
 * Returns:   0; -EVC_INVALID_ARGUMENT as evc_schedule, also for remotes in
 *            args; -EVC_RESOURCE_EXHAUSTED, -EVC_CANCELLED.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_per_worker_value(evc_cluster *cluster, const char *name,
		     const char *function, const evc_value *args,
		     evc_per_worker **ret_value);

typedef struct evc_dataset_opts {
	/* A function that is called with each element, [ELEMENT], and gives the
	   element instead of it. */
	const char *map;
	/* How often the dataset is walked through; 0 = once, UINT64_MAX = without
	   an end. */
	uint64_t repeat;
	/* Elements come in a random order (of evc_per_worker_dataset_of only);
	   another one on each worker and in each walk. */
	bool shuffle;
	uint64_t seed; /* shuffle: not 0: the same order on all workers */
	uint64_t reserved_[8];
} evc_dataset_opts;

/*
 * A dataset on each worker: what function(args) keeps there, by evc_exec_keep
 * with iterate and next.
 *
 * Thread:    any.
 * Ownership: as evc_per_worker_value.
 * Returns:   as evc_per_worker_value.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_per_worker_dataset(evc_cluster *cluster, const char *name,
		       const char *function, const evc_value *args,
		       const evc_dataset_opts *opts,
		       evc_per_worker **ret_dataset);

/*
 * A dataset on each worker: the elements of an array.
 *
 * Thread:    any.
 * Ownership: as evc_per_worker_value; elements is copied.
 * Returns:   as evc_per_worker_value.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_per_worker_dataset_of(evc_cluster *cluster, const char *name,
			  const evc_value *elements,
			  const evc_dataset_opts *opts,
			  evc_per_worker **ret_dataset);

/*
 * An iterator on each worker, at the beginning of its dataset: for functions,
 * which call evc_exec_next.
 *
 * Thread:    any.
 * Ownership: *ret_iterator is the caller's, for evc_per_worker_free; it keeps
 *            the dataset.
 * Returns:   0; -EVC_INVALID_ARGUMENT for what is no dataset;
 *            -EVC_RESOURCE_EXHAUSTED, -EVC_CANCELLED.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_per_worker_iterator(evc_per_worker *dataset,
			evc_per_worker **ret_iterator);

/*
 * The next element of a per-worker iterator: there is none at the coordinator.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   -EVC_UNIMPLEMENTED, with a text that says to pass it to
 *            evc_schedule.
 * Since:     0.1
 */
EVC_API evc_status
evc_per_worker_next(evc_per_worker *iterator, evc_value *ret_value);

/*
 * Drop a per-worker value, dataset or iterator: it is freed on all workers when
 * the functions that were scheduled with it are over.
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
 * With an engine that keeps the variables itself (redis://) each of these calls,
 * and evc_cluster_save and _restore, waits for an answer that comes on the
 * cluster's loop.  There they are refused with -EVC_FAILED_PRECONDITION; once the
 * cluster has ended, with -EVC_CANCELLED; -EVC_UNAVAILABLE when the engine is
 * down, -EVC_DATA_LOSS when what it keeps is no value.
 */

/*
 * Add to a variable that is a number (one that is not there is 0).  The sum is a
 * double: whole numbers are exact up to 2^53.
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
 * Set a variable; nil takes it away.
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
 * Returns:   0; -EVC_NOT_FOUND; -EVC_INVALID_ARGUMENT,
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_variable_get(evc_cluster *cluster, const char *name, evc_value *ret_value);

/*
 * Set a variable if it is what is expected (NULL: not there; numbers compare as
 * numbers).
 *
 * Thread:    any.
 * Ownership: everything is copied.
 * Returns:   0; -EVC_ABORTED when it is something else;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_variable_compare_set(evc_cluster *cluster, const char *name,
			 const evc_value *expected, const evc_value *value);

/* One variable of a walk, valid during the call; false ends the walk. */
typedef bool evc_variable_fn(const char *name, const evc_value *value,
			     void *arg);

/*
 * All variables as they are at one moment, in the order of their names.
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
 * not at all, on the disk when this returns.  The new file is written beside the
 * old one, as path.tmp-..., and takes its place; it is no more open to others
 * than the old one was.  A symbolic link is replaced, not followed.  Two writers
 * of one file leave it whole: the last rename wins.
 *
 * Thread:    any that may wait for a disk.
 * Ownership: path is copied; NULL = config.checkpoint.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED (no room on the
 *            disk, too), -EVC_PERMISSION_DENIED, -EVC_NOT_FOUND (no such
 *            folder), -EVC_UNAVAILABLE for another error of the file system.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_cluster_save(evc_cluster *cluster, const char *path);

/*
 * Load what was saved, in place of all variables.
 *
 * Thread:    any that may wait for a disk.
 * Ownership: as evc_cluster_save.
 * Returns:   0; -EVC_NOT_FOUND when there is no such file; -EVC_DATA_LOSS when
 *            it is damaged: nothing was changed; else as evc_cluster_save.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_cluster_restore(evc_cluster *cluster, const char *path);

/*
 * How many functions have succeeded, those of the checkpoint included: of so
 * many steps that a program wants to make, how many are done - not which, for
 * they do not end in the order of their schedule; and of all names together.
 * An engine that keeps the variables counts transactional functions beside
 * them, from before this cluster, too: where it cannot be asked, on the loop or
 * at the end, this is what is known of them.
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
	unsigned n_workers;      /* that there should be */
	unsigned n_up;           /* that take functions */
	uint64_t n_queued;       /* not begun, those that wait included */
	uint64_t n_running;
	uint64_t n_scheduled;    /* accepted, from here on since it was opened */
	uint64_t n_done;         /* succeeded */
	uint64_t n_failed;
	uint64_t n_cancelled;
	uint64_t n_executions;   /* results that workers sent, late ones
				    included */
	uint64_t n_late;         /* results of attempts that were given up */
	uint64_t n_lost;         /* attempts that ended with their worker */
	uint64_t n_retries;
	uint64_t n_fetches;      /* remotes whose outcome was handed out */
	uint64_t n_builds;       /* per-worker values built, on all workers */
	double build_time;       /* seconds spent for that */
	double run_time;         /* seconds that functions ran, on all
				    workers */
	double rate;             /* functions that succeed a second, lately */
	double age;              /* seconds since it was opened */
	char engine[16];         /* "threads" ... */
	uint64_t n_unsaved;      /* saves of the checkpoint that have failed
				    since one succeeded, */
	double unsaved;          /* and how many seconds ago that was, or the
				    opening; 0: the last one succeeded */
	uint64_t reserved_[6];
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
 * One worker; those of an engine that finds its workers come one by one.
 *
 * Thread:    any.
 * Ownership: *ret_info is filled.
 * Returns:   0; -EVC_NOT_FOUND past the last one; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_cluster_worker_get(const evc_cluster *cluster, unsigned index,
		       evc_cluster_worker_info *ret_info);

/*
 * Which function runs on which worker, since when, the longest first, what is
 * queued, and why it waits, if the engine says so; one line for each.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   as snprintf: the length of the whole text, whatever fitted.
 * Since:     0.1
 */
EVC_API size_t
evc_cluster_report(const evc_cluster *cluster, char *buf, size_t n);

EVC_END_DECLS_

#endif
