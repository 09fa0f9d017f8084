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
 * For workers that are threads the table is given to evc_cluster_open.  For
 * workers that are processes, of this machine or of others, their program gives
 * it to evc_worker_main.  One program may be both the coordinator and the
 * worker: then its main has to ask evc_worker_is before it opens a cluster.
 */
#ifndef EVCOORD_WORKER_H
#define EVCOORD_WORKER_H

#include <evcoord/types.h>
#include <evcoord/value.h>

EVC_BEGIN_DECLS_

typedef struct evc_exec evc_exec;

/*
 * A function that a worker runs.  One thread of each worker calls its
 * functions, one at a time.  The returned status is the outcome: 0 with the
 * value of evc_exec_return (nil without a call of that), or a code.  Every code
 * but 0 is an error, also one that is clean for the coordinator.  A negative
 * value counts as its positive code, a value outside 0..255 as EVC_UNKNOWN.
 * No C++ exception may leave the function: std::terminate ends the process.
 */
typedef evc_status evc_exec_fn(evc_exec *x, void *arg);

typedef struct evc_function {
	const char *name; /* < 48 bytes, unique in the table */
	evc_exec_fn *fn;
	void *arg;        /* for fn */
	unsigned flags;   /* 0 */
	uint64_t reserved_[4];
} evc_function;

/* ---- arguments and result ---- */

/*
 * Read the positional arguments by a format, as evc_unpack; "w" fills an
 * evc_local *: this worker's instance of a per-worker value.  In place of
 * remotes stand their results.
 *
 * Thread:    the function's.
 * Ownership: the filled values are valid until the function returns.
 * Returns:   as evc_unpack.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_unpack(evc_exec *x, const char *format, ...);

/*
 * Read the arguments by name, a map, as evc_exec_unpack; nil is an empty map.
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
 * last call counts.
 *
 * Thread:    the function's.
 * Ownership: everything is copied.
 * Returns:   0, or > 0: EVC_INVALID_ARGUMENT or EVC_RESOURCE_EXHAUSTED, with a
 *            text kept as by evc_exec_fail.  A function may return this value
 *            as its own.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_return(evc_exec *x, const char *format, ...);

/*
 * Say why the function fails.  The function fails only when it returns the
 * code.
 *
 * Thread:    the function's.
 * Ownership: the text is copied; 4,095 bytes are kept (evc_remote_text).
 * Returns:   code, 1..255; EVC_UNKNOWN for another value.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_fail(evc_exec *x, evc_status code, const char *fmt, ...)
	EVC_PRINTF_(3, 4);

/* ---- the stop ---- */

/*
 * Should the function end early?  It should when its remote was cancelled, when
 * another function of the cluster has failed, and at the stop of the cluster.
 * The outcome that the function then returns still counts.
 *
 * Thread:    any, while the function runs.
 * Ownership: nothing changes hands.
 * Returns:   true from the request on, and for NULL.
 * Since:     0.1
 */
EVC_API bool
evc_exec_should_stop(const evc_exec *x);

/*
 * Sleep for timeout seconds, or until evc_exec_should_stop becomes true.
 *
 * Thread:    the function's.
 * Ownership: nothing changes hands.
 * Returns:   true when the function should end, and for NULL; in a fork child
 *            at once, with the answer as of the fork.
 * Since:     0.1
 */
EVC_API bool
evc_exec_wait_for_stop(evc_exec *x, double timeout);

/*
 * The coordinator of the worker: for threads the cluster's scope, for a process
 * the worker's own coordinator.  Its stop is the end of a worker process; the
 * stop of the scope is the cluster's, and an error there is in the verdict of
 * the program's coordinator, too.  What a function makes on it, such as a pool
 * or a scope, has to be freed before the cluster is closed, or the cluster of
 * threads does not end.  A function must not join it: on threads the join is
 * refused, in a process it waits for the function itself.
 *
 * Thread:    the function's.
 * Ownership: the worker's.
 * Returns:   the coordinator; NULL for NULL.
 * Since:     0.1
 */
EVC_API evc_coord *
evc_exec_coord(const evc_exec *x);

/* ---- the worker and the attempt ---- */

typedef struct evc_exec_info {
	const char *function;   /* name; of evc_schedule_call "call" */
	const char *worker;     /* the name of the worker */
	unsigned worker_index;  /* 0 ..., as in evc_cluster_worker_get */
	unsigned attempt;       /* 1 for the first */
	uint64_t generation, n; /* the fencing token, compared in this order: an
				   attempt that was given up has a smaller token
				   than the attempts after it */
	uint64_t reserved_[8];
} evc_exec_info;

/*
 * The worker that runs the function, and which attempt this is.
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
 * Add to a variable that is a number (a missing variable counts as 0).
 *
 * A function that was scheduled as EVC_TRANSACTIONAL is serializable: its
 * updates are made when it has succeeded, all at once and exactly once, and
 * only when all that it has read is still so; else it runs again.  The function
 * sees its own updates.  *ret_now, too, is something that it has read; an
 * addition without ret_now reads nothing.  See ISOLATION in evcoord-cluster(7).
 *
 * In any other function an addition with ret_now is made when the call returns.
 * One without ret_now is made in its place among all that the function does to
 * variables, but nobody waits for it: it is made within some milliseconds, and
 * before the outcome of the function is known, also when the function fails.
 * If it is impossible, because the variable is no number, the function fails at
 * its end with EVC_INVALID_ARGUMENT and the reason, unless it fails by itself;
 * other additions since its last call that waited may be missing then.  A
 * worker that dies may take additions of its last milliseconds with it.  (In a
 * function that builds something the call waits.)
 *
 * Thread:    the function's.
 * Ownership: name is copied; *ret_now is the new value.  ret_now may be NULL:
 *            then nobody waits for an answer.
 * Returns:   0; -EVC_INVALID_ARGUMENT, with ret_now also for a variable that is
 *            no number;
 *            -EVC_UNAVAILABLE when the worker has lost its coordinator;
 *            -EVC_FAILED_PRECONDITION in a fork child of the function.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_variable_add(evc_exec *x, const char *name, double by,
		      double *ret_now);

/*
 * Set a variable; nil removes it.  As evc_exec_variable_add for transactional
 * functions.
 *
 * Thread:    the function's.
 * Ownership: name and value are copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT; -EVC_UNAVAILABLE;
 *            -EVC_RESOURCE_EXHAUSTED without memory, or for a value larger than
 *            a message.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_variable_set(evc_exec *x, const char *name, const evc_value *value);

/*
 * Read a variable, with the updates of all functions that were told to have
 * succeeded, and of all functions that this worker has run before; a
 * transactional function sees its own updates, too.  Each call reads anew.
 * Functions on other workers may change the variable meanwhile; then a
 * transactional function, which may have seen a state that never was, runs
 * again.
 *
 * Thread:    the function's.
 * Ownership: *ret_value is the caller's, for evc_value_free.
 * Returns:   0; -EVC_NOT_FOUND, and *ret_value is nil; -EVC_INVALID_ARGUMENT;
 *            -EVC_UNAVAILABLE; -EVC_DATA_LOSS when the bytes that an engine
 *            keeps are no value; -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_variable_get(evc_exec *x, const char *name, evc_value *ret_value);

/*
 * Read a variable that is a number, as evc_exec_variable_get; a missing
 * variable counts as 0.
 *
 * Thread:    the function's.
 * Ownership: *ret_number is the value, or 0.
 * Returns:   0; -EVC_INVALID_ARGUMENT, also for a variable that is no number;
 *            else as evc_exec_variable_get, without -EVC_NOT_FOUND.
 * Since:     0.2
 */
EVC_API evc_status
evc_exec_variable_number(evc_exec *x, const char *name, double *ret_number);

/*
 * Read a variable as evc_exec_variable_get, but unchecked: a transactional
 * function succeeds although the variable was changed after this read.  This is
 * for values that may be a little old, as the parameters of a model are.
 *
 * Thread:    the function's.
 * Ownership: *ret_value is the caller's, for evc_value_free.
 * Returns:   as evc_exec_variable_get.
 * Since:     0.2
 */
EVC_API evc_status
evc_exec_variable_get_loose(evc_exec *x, const char *name,
			    evc_value *ret_value);

/*
 * Set a variable if its present value equals expected (NULL or nil: the
 * variable does not exist; numbers compare as numbers).  A value of nil
 * removes the variable, NULL for the value is refused.  In a transactional
 * function the present value counts as read, also when it differs.
 *
 * Thread:    the function's.
 * Ownership: everything is copied.
 * Returns:   0; -EVC_ABORTED when the present value differs; else as
 *            evc_exec_variable_set and evc_exec_variable_get.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_variable_compare_set(evc_exec *x, const char *name,
			      const evc_value *expected,
			      const evc_value *value);

/* ---- vectors among the variables ---- */

/*
 * Set a variable to a vector: all its elements, in their order.  The vector has
 * doubles if the elements are doubles, else floats.  As evc_exec_variable_set
 * with a value of evc_pack "E".
 *
 * Thread:    the function's.
 * Ownership: name and elements are copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT, also for elements with `at` or `from`;
 *            else as evc_exec_variable_set.
 * Since:     0.2
 */
EVC_API evc_status
evc_exec_vector_set(evc_exec *x, const char *name,
		    const evc_elements *elements);

/*
 * Add to elements of a vector, all of them or none.  A place coming twice in
 * elements->at is added to twice.  As evc_exec_variable_add without ret_now:
 * in a transactional function the addition reads nothing, and is made when the
 * function has succeeded; if the addition is impossible then, the function has
 * failed with EVC_INVALID_ARGUMENT.
 *
 * Thread:    the function's.
 * Ownership: name and elements are copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT, also for a number or a sum that is not
 *            finite, for a variable that is missing or no vector, and for a
 *            place where the vector has no element; -EVC_OUT_OF_RANGE for some
 *            places beyond every vector; else as evc_exec_variable_set.
 * Since:     0.2
 */
EVC_API evc_status
evc_exec_vector_add(evc_exec *x, const char *name,
		    const evc_elements *elements);

/*
 * Read elements of a vector, as evc_exec_variable_get: a transactional function
 * sees its own additions, and runs again if one of these elements has changed
 * when it ends.
 *
 * Thread:    the function's.
 * Ownership: the numbers are copied to where *ret_elements says.
 * Returns:   0; -EVC_NOT_FOUND; -EVC_INVALID_ARGUMENT, also for a variable of
 *            another type; -EVC_OUT_OF_RANGE when the vector has no element at
 *            some of the places, and nothing is copied; else as
 *            evc_exec_variable_get.
 * Since:     0.2
 */
EVC_API evc_status
evc_exec_vector_get(evc_exec *x, const char *name,
		    const evc_elements *ret_elements);

/*
 * Read elements of a vector, unchecked, as evc_exec_variable_get_loose: for the
 * parameters of a model, which other functions change all the time.
 *
 * Thread:    the function's.
 * Ownership: the numbers are copied to where *ret_elements says.
 * Returns:   as evc_exec_vector_get.
 * Since:     0.2
 */
EVC_API evc_status
evc_exec_vector_get_loose(evc_exec *x, const char *name,
			  const evc_elements *ret_elements);

/*
 * Read the number of elements of a vector, as evc_exec_variable_get.
 *
 * Thread:    the function's.
 * Ownership: nothing changes hands.
 * Returns:   as evc_exec_vector_get.
 * Since:     0.2
 */
EVC_API evc_status
evc_exec_vector_size(evc_exec *x, const char *name, size_t *ret_n);

/* ---- datasets and per-worker values ---- */

/*
 * The operations of a state that a function keeps on its worker, for as long as
 * the cluster's per-worker value or dataset exists.  They are called by the
 * thread that runs the worker's functions.  None of them may end that thread:
 * after a pthread_exit in `free` the worker does not end.
 */
typedef struct evc_keep_ops {
	/* Begin another walk through the dataset.  Returns 0 and *ret_iterator,
	   or a code.  NULL: the state is no dataset. */
	evc_status (*iterate)(evc_exec *x, void *state, void **ret_iterator);
	/* Give the next element, by evc_exec_return.  Returns 0,
	   EVC_OUT_OF_RANGE at the end, or another code. */
	evc_status (*next)(evc_exec *x, void *iterator);
	/* Called when a walk is over or abandoned.  NULL: nothing to free. */
	void (*free_iterator)(void *iterator);
	/* Called when the value or dataset was dropped, or its worker ends.
	   NULL: nothing to free. */
	void (*free)(void *state);
	uint64_t reserved_[4];
} evc_keep_ops;

/*
 * Keep state on this worker: for functions that build a per-worker value or a
 * dataset (evc_per_worker_value, evc_per_worker_dataset).
 *
 * Thread:    the function's.
 * Ownership: *ops is copied.  When the function returns 0, state belongs to the
 *            worker, which gives it to ops->free once; else state stays the
 *            function's.
 * Returns:   0; -EVC_FAILED_PRECONDITION when the function was not called to
 *            build a value or dataset; -EVC_INVALID_ARGUMENT, also for NULL
 *            ops.
 * Since:     0.1
 */
EVC_API evc_status
evc_exec_keep(evc_exec *x, const evc_keep_ops *ops, void *state);

/*
 * The state of a per-worker value, kept by the function that built the value.
 *
 * Thread:    the function's.
 * Ownership: the worker's.
 * Returns:   the state of evc_exec_keep; for an iterator, the iterator; NULL
 *            when the function has returned a value instead.
 * Since:     0.1
 */
EVC_API void *
evc_local_state(const evc_local *local);

/*
 * The value of a per-worker value, returned by the function that built it.
 *
 * Thread:    the function's.
 * Ownership: the worker's; valid as long as the per-worker value.
 * Returns:   the value; nil if the function has kept a state; never NULL.
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
 * Returns:   0; > 0 a code of the dataset: EVC_OUT_OF_RANGE at its end, which
 *            the function may return as its own; -EVC_INVALID_ARGUMENT when
 *            iterator is no iterator.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_exec_next(evc_exec *x, evc_local *iterator, evc_value *ret_value);

/* ---- the program of workers that are processes ---- */

typedef struct evc_worker_opts {
	/* Called once, before the first function, in a worker and never in a
	   node.  Not 0: the worker ends with this code as its error; the text
	   is that of an evc_request_stop of c with the same code. */
	evc_status (*start)(evc_coord *c, void *arg);
	/* Called once at the end, after the last function. */
	void (*stop)(evc_coord *c, void *arg);
	void *arg; /* for start and stop */
	/* The address that workers serve, "redis://HOST:PORT/NAMESPACE": a
	   process that no cluster has started is then a node of that address,
	   and starts the workers itself.  NULL: the process has to be started
	   by a cluster. */
	const char *uri;
	unsigned n_workers; /* of a node, 1024 at most, and of all nodes of a
			       cluster 100,000; 0: as many as there are
			       processors */
	double grace;       /* of a node: seconds for functions that run at its
			       stop; 0: 10, EVC_NO_GRACE: none */
	uint64_t reserved_[5];
} evc_worker_opts;

/*
 * Was this process started as a worker, by a cluster or by a node?  A node is
 * not a worker.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   true in a worker; false in a fork child of a worker that has
 *            called evc_worker_main: before that a child looks like it.
 * Since:     0.1
 */
EVC_API bool
evc_worker_is(void);

/*
 * Be a worker, until the coordinator asks for the end or is gone.  To be called
 * in main, before other threads are made: the call starts a thread.
 *
 * With opts->uri, in a process that no cluster has started: be a node of that
 * address.  A node runs no function itself: it starts opts->n_workers processes
 * of this same program with the same arguments, which call evc_worker_main as
 * workers.  They serve whichever cluster is open at that address, one cluster
 * after the other, until the node gets SIGTERM or SIGINT.  A node logs to
 * standard error.
 *
 * Thread:    the main thread; functions run on it.
 * Ownership: functions and opts must live until the call returns.
 * Returns:   0 after a requested end, of a node by SIGTERM and SIGINT too;
 *            > 0: opts->start failed, or EVC_UNAVAILABLE when the coordinator
 *            is gone (a SIGKILL comes soon after), or the error that has ended
 *            the node;
 *            -EVC_FAILED_PRECONDITION when evc_worker_is is false and there is
 *            no uri, when the coordinator is of another version, and in a fork
 *            child that has returned from a function;
 *            -EVC_INVALID_ARGUMENT for mistakes in the table (the coordinator
 *            gets them, too), in the options or in the address, or for an
 *            address whose engine has no nodes; -EVC_UNIMPLEMENTED when
 *            libevcoord-redis is not installed; -EVC_RESOURCE_EXHAUSTED; for a
 *            node any other refusal of its engine.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_worker_main(const evc_function *functions, unsigned n,
		const evc_worker_opts *opts);

/* ---- functions in a shared object ---- */

enum {
	EVC_WORKER_ABI = 1
};

/*
 * A shared object for evc-worker(1) defines a constant of this type under the
 * name evc_worker_exports, declared below.  No library defines that name.
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
