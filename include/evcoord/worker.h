/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker: the functions that a cluster's workers can run, and what such a
 * function is given while it runs.
 *
 *	static evc_status
 *	add(evc_exec *x, void *arg)
 *	{
 *		int a, b;
 *
 *		if (evc_exec_unpack(x, "[ii]", &a, &b) < 0)
 *			return evc_exec_fail(x, EVC_INVALID_ARGUMENT,
 *					     "two numbers are needed");
 *		return evc_exec_return(x, "i", a + b);
 *	}
 *
 *	static const evc_function functions[] = {
 *		{ .name = "add", .fn = add },
 *	};
 *
 * A table goes to evc_cluster_open, for workers that are threads, and to
 * evc_worker_main in the program of workers that are processes, of this machine
 * or of others.  One program may be both: then its main has to ask evc_worker_is
 * first, before it opens a cluster.
 */
#ifndef EVCOORD_WORKER_H
#define EVCOORD_WORKER_H

#include <evcoord/types.h>
#include <evcoord/value.h>

EVC_BEGIN_DECLS_

typedef struct evc_exec evc_exec;

/*
 * A function that a worker runs; called by one thread of the worker, one call
 * at a time in each worker.  What it returns is its outcome: 0 with the value of
 * evc_exec_return (nil without one), or a code, and every code but 0 is an
 * error, whatever the coordinator takes as clean.  A negative value is taken as
 * its positive code, one outside 0..255 as EVC_UNKNOWN.
 */
typedef evc_status evc_exec_fn(evc_exec *x, void *arg);

typedef struct evc_function {
	const char *name; /* < 48 bytes, of its own in the table */
	evc_exec_fn *fn;
	void *arg;        /* for fn */
	unsigned flags;   /* 0 */
	uint64_t reserved_[4];
} evc_function;

/* ---- what it was called with ---- */

/*
 * Read the positional arguments by a format, as evc_unpack; "w" fills an
 * evc_local *: what this worker has of a per-worker value.  The results of
 * remotes stand in their places.
 *
 * Thread:    the function's.
 * Ownership: what is filled in is valid until the function returns.
 * Returns:   as evc_unpack.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_unpack(evc_exec *x, const char *format, ...);

/*
 * The same of the arguments by name, which are a map or nil (an empty one).
 *
 * Thread:    the function's.
 * Ownership: as evc_exec_unpack.
 * Returns:   as evc_unpack.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_unpack_named(evc_exec *x, const char *format, ...);

/*
 * The positional arguments as they are.
 *
 * Thread:    the function's.
 * Ownership: valid until the function returns.
 * Returns:   the value, never NULL.
 * Since:     0.1
 */
EVC_API const evc_value *
evc_exec_args(const evc_exec *x);

/*
 * Set the function's result by a format of evc_pack, without "r" and "w".  The
 * last one counts.
 *
 * Thread:    the function's.
 * Ownership: everything is copied.
 * Returns:   0, or > 0, EVC_INVALID_ARGUMENT or EVC_RESOURCE_EXHAUSTED, with
 *            its text kept as by evc_exec_fail: so that a function may return
 *            what this returns.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_return(evc_exec *x, const char *format, ...);

/*
 * Say why the function fails.  It does when it returns the code.
 *
 * Thread:    the function's.
 * Ownership: the text is copied, cut to 191 bytes.
 * Returns:   code, 1..255; EVC_UNKNOWN for another one.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_fail(evc_exec *x, evc_status code, const char *fmt, ...)
	EVC_PRINTF_(3, 4);

/* ---- the stop ---- */

/*
 * Should the function end early?  It should when its remote was cancelled, when
 * another function of the cluster has failed, and at the stop of the cluster.
 * What it returns then still counts.
 *
 * Thread:    any, while the function runs.
 * Ownership: nothing changes hands.
 * Returns:   true from the request on.
 * Since:     0.1
 */
EVC_API bool
evc_exec_should_stop(const evc_exec *x);

/*
 * Wait for that, timeout seconds at most: a sleep that ends early.
 *
 * Thread:    the function's.
 * Ownership: nothing changes hands.
 * Returns:   true when the function should end; in a fork child at once.
 * Since:     0.1
 */
EVC_API bool
evc_exec_wait_for_stop(evc_exec *x, double timeout);

/*
 * The coordinator of the worker: of threads the cluster's scope, in a process
 * the worker's own.  Its stop is the end of the worker.
 *
 * Thread:    the function's.
 * Ownership: the worker's.
 * Returns:   the coordinator, never NULL.
 * Since:     0.1
 */
EVC_API evc_coord *
evc_exec_coord(const evc_exec *x);

/* ---- who runs it ---- */

typedef struct evc_exec_info {
	const char *function;   /* its name; of evc_schedule_call "call" */
	const char *worker;     /* the name of the worker */
	unsigned worker_index;  /* 0 ..., as evc_cluster_worker_get has it */
	unsigned attempt;       /* 1 for the first */
	uint64_t generation, n; /* the fencing token, compared in this order: an
				   attempt that was given up has a smaller one
				   than those that came later */
	uint64_t reserved_[8];
} evc_exec_info;

/*
 * Who runs it, and which attempt this is.
 *
 * Thread:    the function's.
 * Ownership: the names are valid until the function returns.
 * Returns:   0; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_get(const evc_exec *x, evc_exec_info *ret_info);

/* ---- the cluster's variables ---- */

/*
 * Add to a variable that is a number (one that is not there is 0).  With a
 * function scheduled as EVC_TRANSACTIONAL the updates are made when it has
 * succeeded, all at once and exactly once, however often it had to be run; what
 * is returned is then what they would make of the variable as it is.
 *
 * Thread:    the function's.
 * Ownership: name is copied; *ret_now is the new value; NULL: then a
 *            transactional function asks nobody.
 * Returns:   0; -EVC_INVALID_ARGUMENT, also for a variable that is no number;
 *            -EVC_UNAVAILABLE when the worker has lost its coordinator;
 *            -EVC_FAILED_PRECONDITION in a fork child of the function.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_variable_add(evc_exec *x, const char *name, double by,
		      double *ret_now);

/*
 * Set a variable; as evc_exec_variable_add.
 *
 * Thread:    the function's.
 * Ownership: name and value are copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT; -EVC_UNAVAILABLE; -EVC_RESOURCE_EXHAUSTED
 *            without memory, or for more than a message can carry.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_variable_set(evc_exec *x, const char *name, const evc_value *value);

/*
 * Read a variable, with the updates of all functions that this worker has run
 * before; a transactional function sees its own updates, too.  Functions on other
 * workers may change it meanwhile.
 *
 * Thread:    the function's.
 * Ownership: *ret_value is the caller's, for evc_value_free.
 * Returns:   0; -EVC_NOT_FOUND; -EVC_INVALID_ARGUMENT; -EVC_UNAVAILABLE;
 *            -EVC_DATA_LOSS when what an engine keeps is no value;
 *            -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_variable_get(evc_exec *x, const char *name, evc_value *ret_value);

/*
 * Set a variable if it is what is expected (NULL: not there; numbers compare as
 * numbers).  Not in a transactional function.
 *
 * Thread:    the function's.
 * Ownership: everything is copied.
 * Returns:   0; -EVC_ABORTED when it is something else;
 *            -EVC_FAILED_PRECONDITION in a transactional function; else as
 *            evc_exec_variable_set.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_variable_compare_set(evc_exec *x, const char *name,
			      const evc_value *expected,
			      const evc_value *value);

/* ---- what a worker keeps: datasets and per-worker values ---- */

/*
 * What a function keeps on its worker, for as long as the cluster's per-worker
 * value or dataset is there.  Called by the thread that runs the worker's
 * functions.
 */
typedef struct evc_keep_ops {
	/* A dataset: begin another walk through it.  0 and *ret_iterator, or a
	   code.  NULL: it is no dataset. */
	evc_status (*iterate)(evc_exec *x, void *state, void **ret_iterator);
	/* The next element, by evc_exec_return; EVC_OUT_OF_RANGE at the end, or
	   another code. */
	evc_status (*next)(evc_exec *x, void *iterator);
	/* A walk is over, or not wanted any more.  NULL: nothing to free. */
	void (*free_iterator)(void *iterator);
	/* The value or dataset was dropped, or its worker ends.  NULL: nothing
	   to free. */
	void (*free)(void *state);
	uint64_t reserved_[4];
} evc_keep_ops;

/*
 * Keep state on this worker: for functions that build a per-worker value or a
 * dataset (evc_per_worker_value, evc_per_worker_dataset).
 *
 * Thread:    the function's.
 * Ownership: *ops is copied; state is the worker's when the function returns
 *            0, and given to ops->free once; else the function's.
 * Returns:   0; -EVC_FAILED_PRECONDITION when the function was not called to
 *            build something; -EVC_INVALID_ARGUMENT, also for NULL ops.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_keep(evc_exec *x, const evc_keep_ops *ops, void *state);

/*
 * What the function that built a per-worker value has kept.
 *
 * Thread:    the function's.
 * Ownership: the worker's.
 * Returns:   the state of evc_exec_keep; of an iterator, the iterator; NULL
 *            for a value that was returned instead.
 * Since:     0.1
 */
EVC_API void *
evc_local_state(const evc_local *local);

/*
 * What the function that built a per-worker value has returned.
 *
 * Thread:    the function's.
 * Ownership: the worker's; it stays as long as the per-worker value.
 * Returns:   the value; nil if it has kept a state, never NULL.
 * Since:     0.1
 */
EVC_API const evc_value *
evc_local_value(const evc_local *local);

/*
 * The next element of a dataset, by this worker's iterator.
 *
 * Thread:    the function's.
 * Ownership: *ret_value is valid until the next call for the same iterator, or
 *            until the function returns.
 * Returns:   0; > 0 as the dataset says: EVC_OUT_OF_RANGE at its end, with
 *            which the function may return; -EVC_INVALID_ARGUMENT for what is
 *            no iterator.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_exec_next(evc_exec *x, evc_local *iterator, evc_value *ret_value);

/* ---- the program of workers that are processes ---- */

typedef struct evc_worker_opts {
	/* Called once, before the first function, in a worker and never in a
	   node; not 0: the worker ends, and that is its error, with the text of
	   an evc_request_stop of c with the same code. */
	evc_status (*start)(evc_coord *c, void *arg);
	/* Called once at the end, after the last function. */
	void (*stop)(evc_coord *c, void *arg);
	void *arg; /* for both */
	/* Where workers are wanted, "redis://HOST:PORT/NAMESPACE": then a process
	   that no cluster has started is a node of that address, and starts the
	   workers itself.  NULL: it has to be started by a cluster. */
	const char *uri;
	unsigned n_workers; /* of a node, 1024 at most; 0: as many as there are
			       processors */
	double grace;       /* of a node: seconds for functions that run at its
			       stop; 0: 10, EVC_NO_GRACE: none */
	uint64_t reserved_[5];
} evc_worker_opts;

/*
 * Was this process started as a worker, by a cluster or by a node?  A node itself
 * is none.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   true in a worker; false in a fork child of one.
 * Since:     0.1
 */
EVC_API bool
evc_worker_is(void);

/*
 * Be a worker, until the coordinator asks for the end or is gone.  To be called
 * in main, before other threads are made: it starts one.
 *
 * With opts->uri, in a process that no cluster has started: be a node of that
 * address.  It runs no function itself: it starts opts->n_workers processes of
 * this same program with the same arguments, which come here as workers.  They
 * serve whichever cluster is open at that address, one after the other, until
 * SIGTERM or SIGINT.  It logs to standard error.
 *
 * Thread:    the main thread; functions run on it.
 * Ownership: functions and opts must live until it returns.
 * Returns:   0 after an end that was asked for, a signal among them; > 0:
 *            opts->start failed, or EVC_UNAVAILABLE when the coordinator is
 *            gone (a SIGKILL comes soon after), or what has ended the node;
 *            -EVC_FAILED_PRECONDITION when evc_worker_is says no and there is
 *            no uri, or the coordinator is of another version, and in a fork
 *            child that has come back from a function;
 *            -EVC_INVALID_ARGUMENT for a table with mistakes, which the
 *            coordinator is told, too, for options or an address with some, or
 *            one whose engine has no nodes; -EVC_UNIMPLEMENTED when
 *            libevcoord-redis is not there; -EVC_RESOURCE_EXHAUSTED; of a node
 *            whatever else its engine refuses.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_worker_main(const evc_function *functions, unsigned n,
		const evc_worker_opts *opts);

/* ---- functions in a shared object ---- */

enum {
	EVC_WORKER_ABI = 1
};

/*
 * What a shared object for evc-worker(1) exports, by the name that is declared
 * here: no library defines it.
 *
 *	const evc_worker_object evc_worker_exports = {
 *		.abi = EVC_WORKER_ABI,
 *		.functions = functions,
 *		.n_functions = 1,
 *	};
 */
typedef struct evc_worker_object {
	unsigned abi;         /* EVC_WORKER_ABI */
	unsigned n_functions;
	const evc_function *functions;
	/* As in evc_worker_opts; called in each worker. */
	evc_status (*start)(evc_coord *c, void *arg);
	void (*stop)(evc_coord *c, void *arg);
	void *arg;
	uint64_t reserved_[8];
} evc_worker_object;

extern __attribute__((visibility("default")))
const evc_worker_object evc_worker_exports;

EVC_END_DECLS_

#endif
