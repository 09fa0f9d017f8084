/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engines: what carries a cluster's functions to its workers.
 *
 * This interface may change with each release, until an engine outside this tree
 * has been written.  No header outside of evcoord/unstable includes this one.
 *
 * The cluster owns the queue, the outcomes, the errors and what is to be built
 * on the workers; an engine owns workers, their lives and the way to them.  It
 * pulls: when a worker has room it asks for functions (take), and the cluster
 * says when it is worth asking (wake).
 *
 *     cluster --ops--> engine      open, wake, cancel, kill, leave, close
 *     cluster <--sink-- engine     up, defs, take, finished, gone, closed
 *
 * Ops but open and close are called under the cluster's lock, by any thread:
 * they take note, ring the engine's own loop or threads, and return; they call
 * no sink.  The sink may be called by any thread that holds no lock which an op
 * takes.  All calls about one worker come one after the other.
 *
 * A worker's life: up; then, again and again, defs until there are none, take,
 * finished; then fenced (it completes nothing more) and gone (it is proven not to
 * run), or gone at once.  What it had taken then is lost: the cluster knows and
 * needs no other word.
 */
#ifndef EVCOORD_UNSTABLE_ENGINE_H
#define EVCOORD_UNSTABLE_ENGINE_H

#include <evcoord/cluster.h>
#include <evcoord/post.h>

EVC_BEGIN_DECLS_

typedef struct evc_engine evc_engine;

enum {
	EVC_ENGINE_ABI = 1,

	/* evc_engine_ops.caps */
	EVC_ENGINE_CALLS = 1 << 26,     /* workers share the cluster's memory */
	EVC_ENGINE_DEADLINES = 1 << 27, /* ends a function that takes too long */
	EVC_ENGINE_KILLS = 1 << 28,     /* can end a worker: nothing is ever
					   given up while it runs */
	EVC_ENGINE_VARIABLES = 1 << 29, /* keeps the variables itself: makes
					   the updates of a transactional
					   function before its result, which
					   carries none, and has ask */

	/* What evc_engine_sink.variable returns when the answer comes later. */
	EVC_ENGINE_LATER = 256,

	/* evc_engine_ops.wake */
	EVC_ENGINE_ANY = -1 /* a worker that does not matter which */
};

/* A remote among the arguments, with its result. */
typedef struct evc_engine_input {
	uint64_t id; /* as in the arguments; of one result always the same */
	evc_value value;
} evc_engine_input;

/* A function to run.  The struct is the engine's; what it points to stays until
   the task is finished or overdue, or its worker gone. */
typedef struct evc_engine_task {
	uint64_t n;           /* of this attempt; greater than all before */
	uint64_t id;          /* of its remote: its result's, as an input */
	const char *function;
	evc_exec_fn *call;    /* of evc_schedule_call, else NULL */
	void *call_arg;
	evc_value args, kwargs; /* names stand in them as evcoord-engine(3)
				   says */
	const evc_engine_input *inputs;
	unsigned n_inputs;
	unsigned attempt;     /* 1 for the first */
	unsigned flags;       /* EVC_TRANSACTIONAL */
	double deadline;      /* seconds a run may take; 0: any time */
	uint64_t reserved_[4];
} evc_engine_task;

/* What was done to a variable. */
enum {
	EVC_VARIABLE_ADD = 1,
	EVC_VARIABLE_SET = 2,
	EVC_VARIABLE_GET = 3,
	EVC_VARIABLE_COMPARE_SET = 4,
	/* of evc_engine_question alone */
	EVC_VARIABLE_ALL = 5,    /* all of them at one moment */
	EVC_VARIABLE_REPLACE = 6, /* these in place of all */
	EVC_VARIABLE_COUNTS = 7   /* of _ALL, its finished and changes alone */
};

typedef struct evc_engine_update {
	unsigned op;         /* EVC_VARIABLE_... */
	const char *name;
	double by;           /* of an addition */
	evc_value value;     /* to be set */
	evc_value expected;  /* size 0: it must not be there */
} evc_engine_update;

/* A variable of an EVC_VARIABLE_ALL or _REPLACE. */
typedef struct evc_engine_entry {
	const char *name;
	evc_value value;
} evc_engine_entry;

/* What came of something done to a variable. */
typedef struct evc_engine_answer {
	evc_status status;  /* <= 0, as the calls of cluster.h say */
	const char *text;   /* with < 0: why */
	double now;         /* of EVC_VARIABLE_ADD */
	evc_value value;    /* of EVC_VARIABLE_GET */
	/* of EVC_VARIABLE_ALL; the last two of _COUNTS, too */
	const evc_engine_entry *entries;
	size_t n_entries;
	uint64_t finished;  /* functions with EVC_TRANSACTIONAL that have
			       succeeded, whether they had updates or not,
			       on top of what the last _REPLACE said; none
			       without that flag */
	uint64_t changes;   /* grows with each change */
	uint64_t reserved_[4];
} evc_engine_answer;

/* Something to be done to an engine's variables.  It is the asker's, and stays,
   with all it points to, until done was called. */
typedef struct evc_engine_question {
	evc_engine_update update; /* op: any of EVC_VARIABLE_...; names and
				     values are checked, and nil has no
				     bytes */
	/* of EVC_VARIABLE_REPLACE */
	const evc_engine_entry *entries;
	size_t n_entries;
	uint64_t finished;
	/* Called once, on the cluster's loop, no lock held, and before
	   sink->closed; what the answer points to is valid during the call.
	   The question is gone then. */
	void (*done)(struct evc_engine_question *q,
		     const evc_engine_answer *a);
	void *arg;                /* for done */
	struct evc_engine_question *next; /* the engine's */
	uint64_t reserved_[4];
} evc_engine_question;

/* How an attempt ended. */
typedef struct evc_engine_result {
	uint64_t n;
	evc_status code;
	unsigned kind;       /* EVC_FAILED_FUNCTION or EVC_FAILED_INPUT; 0 with
				code 0 */
	const char *text;    /* NULL: none */
	evc_value value;
	/* Of a transactional function: made if this result counts, and then all
	   at once; not looked at with EVC_ENGINE_VARIABLES. */
	const evc_engine_update *updates;
	unsigned n_updates;
	double took;         /* seconds it ran; < 0: it has not begun, and is
				given back: after a cancel, or at any time,
				because another worker may be sooner */
	uint64_t reserved_[4];
} evc_engine_result;

/* What is to be built on a worker, or, function NULL and of 0, dropped there. */
typedef struct evc_engine_def {
	uint64_t id;
	unsigned kind;        /* EVC_DEF_... */
	const char *name;
	const char *function; /* NULL for an iterator and a dataset of elements */
	evc_value args;       /* of the function; of a dataset of elements, them;
				 of an iterator nil */
	uint64_t of;          /* an iterator: its dataset */
	const char *map;      /* of evc_dataset_opts; NULL: none */
	uint64_t repeat, seed;
	bool shuffle;
	uint64_t reserved_[4];
} evc_engine_def;

enum {
	EVC_DEF_VALUE = 1,
	EVC_DEF_DATASET = 2,
	EVC_DEF_ELEMENTS = 3,
	EVC_DEF_ITERATOR = 4,
	EVC_DEF_DROP = 5,
	EVC_DEF_GIVEN_UP = 6 /* to build it has ended too many workers: it has
				failed with EVC_ABORTED, untried */
};

/* How a worker has ended: evc_engine_sink.gone. */
enum {
	EVC_ENGINE_LEFT = 1,        /* it was told to, or its program returned
				       in good order */
	EVC_ENGINE_DIED = 2,        /* anything else: the log is warned */
	EVC_ENGINE_DIED_RUNNING = 3 /* likewise, and the oldest function that it
				       had taken may have been its death,
				       which is counted */
};

/* Engine to cluster.  core is the one of evc_engine_env; worker is an index
   below the number of workers that the engine has announced. */
typedef struct evc_engine_sink {
	unsigned abi; /* EVC_ENGINE_ABI */

	/* There are, or will be, so many workers: before any other call, and
	   again when there are more.  They are STARTING.  false: no memory. */
	bool (*workers)(void *core, unsigned n);
	/* What workers can run; other names are refused from now on, unless
	   another call tells them.  Before `up` of the worker that has told
	   them, or sooner. */
	void (*names)(void *core, const char *const *functions, unsigned n);
	/* A worker is up.  name: NULL = "worker INDEX".  where: "pid 123". */
	void (*up)(void *core, unsigned worker, const char *name,
		   const char *where);
	/* The next thing to build or to drop on this worker.  false: there is
	   none.  What *ret_def points to stays until `built` for it was called
	   (for a drop: until the next call of defs). */
	bool (*defs)(void *core, unsigned worker, evc_engine_def *ret_def);
	/* It was built, or could not be (code > 0): then the worker itself
	   fails functions that use it with EVC_FAILED_INPUT. */
	void (*built)(void *core, unsigned worker, uint64_t id, evc_status code,
		      double seconds);
	/* Functions for this worker, `most` at most: how many there are, filled
	   into tasks.  0 also while something is to be built: look at defs
	   first. */
	unsigned (*take)(void *core, unsigned worker, evc_engine_task *tasks,
			 unsigned most);
	/* Attempts of this worker that have ended.  Results of ones that were
	   given up are counted and dropped.  Everything is copied. */
	void (*finished)(void *core, unsigned worker,
			 const evc_engine_result *results, unsigned n);
	/* A function of this worker ends its worker because it took longer than
	   its deadline: it has failed with EVC_DEADLINE_EXCEEDED.  fenced and
	   gone follow. */
	void (*overdue)(void *core, unsigned worker, uint64_t n);
	/* It completes nothing more, but may still run: nobody's join returns
	   until it is gone. */
	void (*fenced)(void *core, unsigned worker, const char *why);
	/* It does not run: what it has taken begins again elsewhere.  why says
	   what happened, and its last words.  how: EVC_ENGINE_LEFT, _DIED,
	   _DIED_RUNNING. */
	void (*gone)(void *core, unsigned worker, const char *why,
		     unsigned how);
	/* A variable, for a function of this worker, at once, after
	   `finished` for those with updates that it has run before.  For
	   EVC_VARIABLE_ADD *ret_now (may be NULL) is the new value; for _GET
	   *ret_value, which is the caller's.  EVC_ENGINE_LATER: the answer
	   comes by ops->answer, which an engine without one never sees. */
	evc_status (*variable)(void *core, unsigned worker,
			       const evc_engine_update *u, double *ret_now,
			       evc_value *ret_value);
	/* Why functions wait at the moment, for texts ("" : they do not any
	   more). */
	void (*trouble)(void *core, const char *why);
	/* How many functions wait and run, and how many have ended. */
	void (*counts)(void *core, uint64_t *ret_queued, uint64_t *ret_running,
		       uint64_t *ret_done);
	/* Nothing will come from this engine any more, whatever happens: why,
	   for an error (EVC_UNAVAILABLE). */
	void (*down)(void *core, const char *why);
	/* The last call: all workers are gone, `close` may come. */
	void (*closed)(void *core);
	/* In place of `names`, where workers do not all have the same: what
	   this one can run from its next `up` on; nothing else is handed to
	   it, nor what uses per-worker values that something else builds.
	   Other names are not refused: they wait for a worker that has
	   them, for config.worker_wait. */
	void (*worker_names)(void *core, unsigned worker,
			     const char *const *functions, unsigned n);
} evc_engine_sink;

/* What an engine is opened with; valid during open but for scope, reactor, sink
   and core, which stay until close, and functions. */
typedef struct evc_engine_env {
	evc_coord *scope;
	evc_reactor *reactor;   /* of the cluster's loop */
	evc_loop_ref *loop;         /* the same, to post to */
	const char *uri, *place; /* the whole; what stands between :// and ? */
	const char *const *options; /* NAME=VALUE, decoded, as they came; NULL
				       at the end */
	const evc_function *functions;
	unsigned n_functions;
	double lease, grace;    /* seconds, no 0 any more */
	size_t max_frame;
	const evc_engine_sink *sink;
	void *core;
	uint64_t generation;    /* of the fencing token; 0: one of its own, from
				   the clock.  A node says that of its cluster:
				   the clocks of machines differ */
	bool ranks;             /* a node's: no worker begins before ops->rank
				   was called for it */
	uint64_t reserved_[6];
} evc_engine_env;

/*
 * A node: the workers' side of an engine that goes beyond this machine.  One
 * process of each machine is the node; its workers are processes that an engine
 * of this machine carries, as it would for a cluster: the node is the core of
 * that engine, and hands on what it is given.
 */
typedef struct evc_engine_node_env {
	evc_coord *scope;        /* its stop is the end of the node */
	evc_reactor *reactor;    /* of the loop that the caller runs */
	evc_loop_ref *loop;          /* the same, to post to */
	const char *uri, *place; /* as in evc_engine_env */
	const char *const *options;
	const evc_function *functions;
	unsigned n_functions;
	unsigned n_workers;      /* no 0 any more */
	double grace;            /* for functions that run at the stop */
	const evc_engine_ops *workers; /* what carries the workers here */
	uint64_t reserved_[8];
} evc_engine_node_env;

typedef struct evc_engine_node evc_engine_node;

struct evc_engine_ops {
	unsigned abi;       /* EVC_ENGINE_ABI */
	unsigned caps;      /* EVC_ENGINE_CALLS ... */
	const char *scheme; /* "threads" */
	const char *usage;  /* "threads://N", for texts */
	/* The options it knows, NULL at the end; NULL: none.  Others are
	   refused. */
	const char *const *options;
	/* Start workers; returns before they are up.  On refusal nothing is
	   left.  Any thread. */
	evc_status (*open)(const evc_engine_env *env, evc_engine **ret_engine);
	/* There may be something to take, to build or to drop for this worker;
	   or something to take for any one of them (EVC_ENGINE_ANY). */
	void (*wake)(evc_engine *engine, int worker);
	/* All attempts up to this number are to be stopped: those that have not
	   begun are given back (a result with took < 0), those that run are
	   told. */
	void (*cancel)(evc_engine *engine, uint64_t upto);
	/* The same of one attempt. */
	void (*cancel_one)(evc_engine *engine, unsigned worker, uint64_t n);
	/* End this worker, for a function in it that does not stop: fenced and
	   gone follow.  NULL without EVC_ENGINE_KILLS. */
	void (*kill)(evc_engine *engine, unsigned worker);
	/* A result of 1 KiB or more that was an input, or could have been one,
	   is not needed any more.  May be NULL. */
	void (*forget)(evc_engine *engine, uint64_t id);
	/* Nothing is queued and nothing will be: end all workers, those that run
	   something when it has returned; then sink->closed. */
	void (*leave)(evc_engine *engine);
	/* After sink->closed.  Any thread. */
	void (*close)(evc_engine *engine);
	/* Something for the variables that the engine keeps: any thread, no
	   lock held, never after leave was called; what is asked first is done
	   first.  q->done is not called before this has returned.  The first
	   one of all may be the program's checkpoint, and no function is handed
	   out before it was answered.  NULL without EVC_ENGINE_VARIABLES. */
	void (*ask)(evc_engine *engine, evc_engine_question *q);
	/* The answer to what sink->variable has left open, on the engine's loop;
	   without a question of this life of the worker it is dropped.  NULL:
	   sink->variable has to answer at once. */
	void (*answer)(evc_engine *engine, unsigned worker,
		       const evc_engine_answer *a);
	/* Workers end by themselves at this time (CLOCK_MONOTONIC, ns) unless a
	   later one was told before, even when this process is stopped: a
	   lease, on the engine's loop.  May be NULL. */
	void (*until)(evc_engine *engine, uint64_t mono_ns);
	/* Be a node, until the stop of env->scope, or the end of a cluster if
	   the options say so.  On the thread of env's loop, before it runs;
	   tasks of the reactor keep it running until the node has ended.
	   Returns 0, or refused; -EVC_CANCELLED if the stop was asked for
	   already, which is no error.  NULL: this engine has no nodes. */
	evc_status (*serve)(const evc_engine_node_env *env,
			    evc_engine_node **ret_node);
	/* The loop has ended: how the node did, 0 or > 0 as evc_worker_main
	   returns it; the node is gone. */
	evc_status (*served)(evc_engine_node *node);
	/* A worker of a node, which it has as number `worker`, is number `index`
	   of the whole cluster: the worker itself knows no other number and name
	   than that one, nor do texts about it.  The sink goes on with `worker`.
	   Once for each, on the engine's loop, if env->ranks was set.  NULL: an
	   engine that no node uses for its workers. */
	void (*rank)(evc_engine *engine, unsigned worker, unsigned index);
	uint64_t reserved_[7];
};

EVC_END_DECLS_

#endif
