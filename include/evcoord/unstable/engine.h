/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engines: what carries a cluster's functions to its workers.
 *
 * This interface may change with each release, until an engine outside this
 * tree has been written.  No header outside of evcoord/unstable includes this
 * one.
 *
 * The cluster owns the queue, the outcomes, the errors and the definitions of
 * per-worker values; an engine owns the workers, their lives and the way to
 * them.  The engine pulls: when a worker has room the engine asks for functions
 * (take), and the cluster says when there may be some (wake).
 *
 *     cluster --ops--> engine      open, wake, cancel, kill, leave, close
 *     cluster <--sink-- engine     up, defs, take, finished, gone, closed
 *
 * Ops are called under the cluster's lock, by any thread, but for open, close,
 * ask, answer, until, rank, serve and served.  An op takes note, wakes the
 * engine's own loop or threads, and returns; it does not call the sink.  Any
 * thread that holds no lock which an op takes may call the sink.  All calls
 * about one worker come one after the other.
 *
 * A worker's life: up; then, again and again, defs until there are none, take,
 * finished; then fenced (the worker completes nothing more) and gone (the
 * worker is proven not to run), or gone at once.  Functions that the worker had
 * taken by then are lost; the cluster needs no other call for them.
 */
#ifndef EVCOORD_UNSTABLE_ENGINE_H
#define EVCOORD_UNSTABLE_ENGINE_H

#include <evcoord/cluster.h>
#include <evcoord/post.h>

EVC_BEGIN_DECLS_

typedef struct evc_engine evc_engine;

enum {
	EVC_ENGINE_ABI = 2,

	/* evc_engine_ops.caps */
	EVC_ENGINE_CALLS = 1 << 26,     /* workers share the cluster's memory */
	EVC_ENGINE_DEADLINES = 1 << 27, /* the engine ends a function that takes
					   too long */
	EVC_ENGINE_KILLS = 1 << 28,     /* the engine can end a worker: no
					   function is given up while it runs */
	EVC_ENGINE_VARIABLES = 1 << 29, /* the engine keeps the variables, and
					   has ask; it makes the updates of a
					   function before it gives the result,
					   which has none */
	EVC_ENGINE_BEGINS = 1 << 30,    /* the engine calls
					   evc_engine_question.begin */

	/* The status of evc_engine_sink.variable when the answer comes later,
	   and of evc_engine_question.begin when the question is sent later. */
	EVC_ENGINE_LATER = 256,

	/* evc_engine_ops.wake */
	EVC_ENGINE_ANY = -1 /* any worker */
};

/* A remote among the arguments, with its result. */
typedef struct evc_engine_input {
	uint64_t id; /* as in the arguments; one result always has the same */
	evc_value value;
} evc_engine_input;

/* A function to run.  The struct is the engine's; the memory that it points to
   stays until the task is finished or overdue, or its worker gone. */
typedef struct evc_engine_task {
	uint64_t n;           /* number of this attempt; greater than all
				 before */
	uint64_t id;          /* id of the remote; the result has it when the
				 result is an input */
	const char *function;
	evc_exec_fn *call;    /* of evc_schedule_call, else NULL */
	void *call_arg;
	evc_value args, kwargs; /* with names of remotes and per-worker values,
				   see evcoord-engine(3) */
	const evc_engine_input *inputs;
	unsigned n_inputs;
	unsigned attempt;     /* 1 for the first */
	unsigned flags;       /* EVC_TRANSACTIONAL */
	double deadline;      /* seconds a run may take; 0: any time */
	uint64_t reserved_[4];
} evc_engine_task;

/* An operation on a variable. */
enum {
	EVC_VARIABLE_ADD = 1,
	EVC_VARIABLE_SET = 2,
	EVC_VARIABLE_GET = 3,
	EVC_VARIABLE_COMPARE_SET = 4,
	/* in an evc_engine_question alone */
	EVC_VARIABLE_ALL = 5,    /* read all variables at one moment */
	EVC_VARIABLE_REPLACE = 6, /* put the given variables in place of all */
	EVC_VARIABLE_COUNTS = 7,  /* read finished and changes alone */
	/* in a result alone: what a transactional function has read.
	   `expected` are the bytes (size 0: there was no such variable); with
	   _HASHED, of a longer value, the string of their SHA-1 in hexadecimal
	   digits */
	EVC_VARIABLE_READ = 8,
	EVC_VARIABLE_READ_HASHED = 9,
	EVC_ENGINE_READ_MOST = 64, /* bytes of a value that is not hashed */
	/* A vector in its places.  `value` says which places, as binary data
	   in the form of src/wire/vector.h: the places alone (of _GET, _READ),
	   or with the numbers to be added there */
	EVC_VARIABLE_VECTOR_ADD = 10,
	/* The answer is a vector of the elements at those places, or the
	   vector's size as an integer. */
	EVC_VARIABLE_VECTOR_GET = 11,
	/* in a result alone: what was read by _VECTOR_GET.  `expected` is the
	   SHA-1 of that answer, as of _READ_HASHED */
	EVC_VARIABLE_VECTOR_READ = 12
};

typedef struct evc_engine_update {
	unsigned op;         /* EVC_VARIABLE_... */
	const char *name;
	double by;           /* for EVC_VARIABLE_ADD; of _READ_HASHED: how many
				bytes were read */
	evc_value value;     /* to be set; places of a vector */
	evc_value expected;  /* size 0: the variable must not exist */
} evc_engine_update;

/* A variable, in EVC_VARIABLE_ALL and EVC_VARIABLE_REPLACE. */
typedef struct evc_engine_entry {
	const char *name;
	evc_value value;
} evc_engine_entry;

/* The result of an operation on variables. */
typedef struct evc_engine_answer {
	evc_status status;  /* <= 0, as the calls of cluster.h say */
	const char *text;   /* with < 0: why */
	double now;         /* for EVC_VARIABLE_ADD */
	evc_value value;    /* for EVC_VARIABLE_GET, EVC_VARIABLE_VECTOR_GET */
	/* entries, n_entries: for EVC_VARIABLE_ALL; finished, changes: for
	   EVC_VARIABLE_ALL and EVC_VARIABLE_COUNTS */
	const evc_engine_entry *entries;
	size_t n_entries;
	uint64_t finished;  /* functions with EVC_TRANSACTIONAL that have
			       succeeded, with updates or without, added to
			       the number of the last EVC_VARIABLE_REPLACE;
			       functions without that flag do not count */
	uint64_t changes;   /* grows with each change */
	bool anew;          /* of a part: parts before count for nothing */
	/* For EVC_VARIABLE_ALL and EVC_VARIABLE_COUNTS: another coordinator may
	   have had the variables between answers with different numbers. */
	uint64_t generation;
	uint64_t reserved_[3];
} evc_engine_answer;

/* An operation on an engine's variables.  The memory of the question, and of
   all that it points to, belongs to the caller of ask and stays until done was
   called. */
typedef struct evc_engine_question {
	evc_engine_update update; /* op: any of EVC_VARIABLE_...; names and
				     values are checked, and nil has no
				     bytes */
	/* entries, n_entries, finished: for EVC_VARIABLE_REPLACE */
	const evc_engine_entry *entries;
	size_t n_entries;
	uint64_t finished;
	/* For EVC_VARIABLE_ALL: may be called before done, any number of
	   times, each with some entries, and with finished and changes of the
	   one moment that all parts are of.  In later entries and parts a name
	   may come again, and a value of no bytes takes it out: the last entry
	   counts, also one in the answer of done.  On the cluster's loop, no
	   lock held, not after done; the memory is valid during the call.
	   false: no more parts are wanted, and done is called next. */
	bool (*part)(struct evc_engine_question *q, const evc_engine_answer *a);
	/* Not NULL: called on the cluster's loop, no lock held, when the engine
	   could send the question, before the first part is sent.  0: the
	   question may be sent, and may have other entries now.
	   EVC_ENGINE_LATER: not yet; the engine calls again after a wake of
	   EVC_ENGINE_ANY.  < 0: the question is answered with this refusal.  A
	   question with `begin` waits for its turn as long as the cluster goes
	   on; others may be refused after a while. */
	evc_status (*begin)(struct evc_engine_question *q);
	/* Called once, on the cluster's loop, no lock held, and before
	   sink->closed.  The memory that the answer points to is valid during
	   the call.  After the call the question is gone. */
	void (*done)(struct evc_engine_question *q,
		     const evc_engine_answer *a);
	void *arg;                /* for done */
	struct evc_engine_question *next; /* the engine's */
	uint64_t reserved_[3];
} evc_engine_question;

/* How an attempt ended. */
typedef struct evc_engine_result {
	uint64_t n;
	evc_status code;
	unsigned kind;       /* EVC_FAILED_FUNCTION or EVC_FAILED_INPUT; 0 with
				code 0 */
	const char *text;    /* NULL: none */
	evc_value value;
	/* What a transactional function has read, and then its updates, with
	   code 0; of another function additions alone.  In one step the cluster
	   compares the reads and, when all hold and this result counts, makes
	   the updates; when a read does not hold the function runs again.  With
	   EVC_ENGINE_VARIABLES the cluster ignores them: the engine does so. */
	const evc_engine_update *updates;
	unsigned n_updates;
	double took;         /* seconds that the function ran; < 0: it has not
				begun, and the attempt is given back: after a
				cancel, or at any time, because another worker
				may begin it sooner; with the code EVC_ABORTED
				it has ended, and what it has read has changed
				since */
	void *memory;        /* NULL, or the block of malloc(3) that the value
				stands in: `finished` takes the block over, and
				may keep the value without a copy */
	uint64_t reserved_[3];
} evc_engine_result;

/* A per-worker value to be built on a worker, or to be dropped there. */
typedef struct evc_engine_def {
	uint64_t id;
	unsigned kind;        /* EVC_DEF_... */
	const char *name;
	const char *function; /* NULL for an iterator and a dataset of elements;
				 for a drop, function is NULL and of is 0 */
	evc_value args;       /* arguments of the function; of a dataset of
				 elements, the elements; of an iterator, nil */
	uint64_t of;          /* of an iterator, the id of its dataset */
	const char *map;      /* as in evc_dataset_opts; NULL: none */
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
	EVC_DEF_GIVEN_UP = 6 /* its build has ended too many workers: the build
				counts as failed with EVC_ABORTED, and is not
				tried */
};

/* How a worker has ended: evc_engine_sink.gone. */
enum {
	EVC_ENGINE_LEFT = 1,        /* the worker was asked to end, or its
				       program has returned in good order */
	EVC_ENGINE_DIED = 2,        /* any other end: the log gets a warning */
	EVC_ENGINE_DIED_RUNNING = 3, /* as EVC_ENGINE_DIED, and the oldest
				       function that the worker had taken may
				       be the cause: a death is counted for that
				       function */
	EVC_ENGINE_LOST = 4         /* as EVC_ENGINE_DIED; but functions may
				       have ended unheard, and transactional
				       ones do not begin again */
};

/* Calls from the engine to the cluster.  core is evc_engine_env.core; worker is
   an index below the number of workers that the engine has announced. */
typedef struct evc_engine_sink {
	unsigned abi; /* EVC_ENGINE_ABI */

	/* Announce n workers, present or to come: before any other call, and
	   again when there are more.  New workers are STARTING.  false: no
	   memory. */
	bool (*workers)(void *core, unsigned n);
	/* The functions that workers can run.  From now on other names are
	   refused, unless a later call adds them.  At the latest before `up` of
	   the worker that has these functions. */
	void (*names)(void *core, const char *const *functions, unsigned n);
	/* A worker is up.  name: NULL = "worker INDEX".  where: "pid 123". */
	void (*up)(void *core, unsigned worker, const char *name,
		   const char *where);
	/* Get the next definition to build or to drop on this worker.  false:
	   there is none.  The memory that *ret_def points to stays until
	   `built` for it was called (for a drop: until the next call of
	   defs). */
	bool (*defs)(void *core, unsigned worker, evc_engine_def *ret_def);
	/* The value with this id was built, or its build has failed (code > 0):
	   then the worker itself fails functions that use the value, with
	   EVC_FAILED_INPUT. */
	void (*built)(void *core, unsigned worker, uint64_t id, evc_status code,
		      double seconds);
	/* Take functions for this worker, `most` at most, into tasks.  Returns
	   their number; 0 also while there is a value to build: call defs
	   first. */
	unsigned (*take)(void *core, unsigned worker, evc_engine_task *tasks,
			 unsigned most);
	/* Attempts of this worker that have ended.  Results of attempts that
	   were given up are counted and dropped.  Everything is copied, but for
	   values with a block of their own (evc_engine_result.memory). */
	void (*finished)(void *core, unsigned worker,
			 const evc_engine_result *results, unsigned n);
	/* Attempt n took longer than its deadline, so the engine ends the
	   worker: the function has failed with EVC_DEADLINE_EXCEEDED.  fenced
	   and gone follow. */
	void (*overdue)(void *core, unsigned worker, uint64_t n);
	/* The worker completes nothing more, but may still run: no join returns
	   until the worker is gone. */
	void (*fenced)(void *core, unsigned worker, const char *why);
	/* The worker does not run: the functions it has taken begin again on
	   other workers.  why says what happened, with the worker's last words.
	   how: EVC_ENGINE_LEFT, _DIED, _DIED_RUNNING, _LOST. */
	void (*gone)(void *core, unsigned worker, const char *why,
		     unsigned how);
	/* Read or change a variable at once, for a function of this worker;
	   call it after `finished` for earlier functions of this worker that
	   had updates.  For EVC_VARIABLE_ADD *ret_now (may be NULL) is the new
	   value; for EVC_VARIABLE_GET *ret_value, which is the caller's.
	   EVC_ENGINE_LATER: the answer comes by ops->answer; an engine without
	   that op never gets this status. */
	evc_status (*variable)(void *core, unsigned worker,
			       const evc_engine_update *u, double *ret_now,
			       evc_value *ret_value);
	/* Why functions wait at the moment, for texts ("": they do not wait any
	   more).  NULL: no text is wanted. */
	void (*trouble)(void *core, const char *why);
	/* How many functions wait and run, and how many have ended.  NULL: not
	   known. */
	void (*counts)(void *core, uint64_t *ret_queued, uint64_t *ret_running,
		       uint64_t *ret_done);
	/* The engine is down for good.  why is the text of the error
	   (EVC_UNAVAILABLE). */
	void (*down)(void *core, const char *why);
	/* The last call: all workers are gone, `close` may come. */
	void (*closed)(void *core);
	/* In place of `names`, where workers differ: the functions that this
	   worker can run from its next `up` on.  The worker gets no other
	   functions, and none that use per-worker values built by other
	   functions.  Other names are not refused: they wait for a worker that
	   has them, for config.worker_wait. */
	void (*worker_names)(void *core, unsigned worker,
			     const char *const *functions, unsigned n);
	/* After ops->resize: this worker is beyond the number, and has no
	   function.  May the worker go?  true: no function follows; the engine
	   ends the worker, `gone` (EVC_ENGINE_LEFT) follows, also when the
	   worker was gone already or has left before, and the worker comes up
	   again only when a resize gives it back.  false: there are functions
	   for this worker alone, or the worker is to stay after all; a wake for
	   this worker follows when there is another answer. */
	bool (*leave)(void *core, unsigned worker);
	/* The engine has no connection to its server since this time
	   (CLOCK_MONOTONIC, ns); 0: there is one now.  Before the first call,
	   and of an engine without a server: 0.  NULL: not wanted. */
	void (*away)(void *core, uint64_t since_ns);
	/* The answer to ops->stack: lines of text, of which some 4,000 bytes
	   count; NULL: the worker cannot be asked.  An answer of an earlier
	   life of the worker must not come after `up`.  NULL: not wanted. */
	void (*stack)(void *core, unsigned worker, const char *lines);
} evc_engine_sink;

/* The arguments of an engine's open; valid during open, but for scope, reactor,
   sink and core, which stay until close, and functions. */
typedef struct evc_engine_env {
	evc_coord *scope;
	evc_reactor *reactor;   /* of the cluster's loop */
	evc_loop_ref *loop;         /* the cluster's loop, to post to */
	const char *uri, *place; /* the whole; the part between :// and ? */
	const char *const *options; /* NAME=VALUE, decoded, in their order; NULL
				       at the end */
	const evc_function *functions;
	unsigned n_functions;
	double lease, grace;    /* seconds; defaults in place of 0 */
	size_t max_frame;
	const evc_engine_sink *sink;
	void *core;
	uint64_t generation;    /* of the fencing token; 0: the engine makes one
				   from the clock.  A node gives the generation
				   of its cluster, because the clocks of
				   machines differ */
	bool ranks;             /* set by a node: no worker begins before
				   ops->rank was called for it */
	uint64_t reserved_[6];
} evc_engine_env;

/*
 * A node: the workers' side of an engine that goes beyond this machine.  One
 * process of each machine is the node.  A second engine, of this machine, runs
 * the node's workers as it would for a cluster; the node is the core of that
 * engine, and passes functions and results on.
 */
typedef struct evc_engine_node_env {
	evc_coord *scope;        /* its stop is the end of the node */
	evc_reactor *reactor;    /* of the loop that the caller runs */
	evc_loop_ref *loop;          /* the caller's loop, to post to */
	const char *uri, *place; /* as in evc_engine_env */
	const char *const *options;
	const evc_function *functions;
	unsigned n_functions;
	unsigned n_workers;      /* the default in place of 0 */
	double grace;            /* for functions that run at the stop */
	const evc_engine_ops *workers; /* the engine for this node's workers */
	uint64_t reserved_[8];
} evc_engine_node_env;

typedef struct evc_engine_node evc_engine_node;

struct evc_engine_ops {
	unsigned abi;       /* EVC_ENGINE_ABI */
	unsigned caps;      /* EVC_ENGINE_CALLS ... */
	const char *scheme; /* "threads" */
	const char *usage;  /* "threads://N", for texts */
	/* The options that the engine knows, NULL at the end; NULL: none.
	   Others are refused. */
	const char *const *options;
	/* Start workers; returns before they are up.  A refusal leaves nothing
	   behind.  Any thread. */
	evc_status (*open)(const evc_engine_env *env, evc_engine **ret_engine);
	/* There may be a function to take, or a value to build or to drop, for
	   this worker; with EVC_ENGINE_ANY, a function for any worker. */
	void (*wake)(evc_engine *engine, int worker);
	/* Stop all attempts up to this number: give back those that have not
	   begun (a result with took < 0), and ask the running ones to stop. */
	void (*cancel)(evc_engine *engine, uint64_t upto);
	/* Stop one attempt, as cancel does. */
	void (*cancel_one)(evc_engine *engine, unsigned worker, uint64_t n);
	/* End this worker, because a function in it does not stop: fenced and
	   gone follow.  NULL without EVC_ENGINE_KILLS. */
	void (*kill)(evc_engine *engine, unsigned worker);
	/* A result of 1 KiB or more that was an input, or could have been one,
	   is not needed any more.  May be NULL. */
	void (*forget)(evc_engine *engine, uint64_t id);
	/* Nothing is queued and nothing will be: end all workers, a busy worker
	   when its function has returned; then call sink->closed. */
	void (*leave)(evc_engine *engine);
	/* After sink->closed.  Any thread. */
	void (*close)(evc_engine *engine);
	/* An operation on the variables that the engine keeps: called by any
	   thread, no lock held, never after leave; questions are done in their
	   order.  q->done is not called before ask has returned.  The very
	   first question may be the program's checkpoint, and no function is
	   handed out before that one was answered.  NULL without
	   EVC_ENGINE_VARIABLES. */
	void (*ask)(evc_engine *engine, evc_engine_question *q);
	/* The answer to a sink->variable that returned EVC_ENGINE_LATER, on the
	   engine's loop; dropped when this life of the worker has asked no
	   question.  NULL: sink->variable has to answer at once. */
	void (*answer)(evc_engine *engine, unsigned worker,
		       const evc_engine_answer *a);
	/* A lease: workers end by themselves at this time (CLOCK_MONOTONIC,
	   ns), even when this process is stopped, unless a later call gives a
	   later time.  On the engine's loop.  May be NULL. */
	void (*until)(evc_engine *engine, uint64_t mono_ns);
	/* Be a node, until the stop of env->scope, or the end of a cluster if
	   the options say so.  Called on the thread of env's loop, before the
	   loop runs; tasks of the reactor keep the loop running until the node
	   has ended.  Returns 0 or a refusal; -EVC_CANCELLED if the stop was
	   already requested, which is no error.  NULL: this engine has no
	   nodes. */
	evc_status (*serve)(const evc_engine_node_env *env,
			    evc_engine_node **ret_node);
	/* Called when the loop has ended.  Returns the outcome of the node, 0
	   or > 0, for evc_worker_main to return; the node is gone. */
	evc_status (*served)(evc_engine_node *node);
	/* Worker number `worker` of a node is number `index` of the whole
	   cluster.  The worker itself, and texts about it, use only `index` and
	   the name made of it; the sink goes on with `worker`.  Called once for
	   each worker, on the engine's loop, if env->ranks was set.  NULL: no
	   node uses this engine for its workers. */
	void (*rank)(evc_engine *engine, unsigned worker, unsigned index);
	/* There should be n workers from now on, 1 to 1,024 (engines that
	   cannot be resized may have more); the cluster has announced them to
	   itself.  Start those that are missing.  Those from
	   number n on still take, but get functions for them alone; each asks
	   sink->leave when a take has given nothing and nothing runs, or when
	   the worker is down or was never started.  The latest call counts.
	   Returns 0, or refuses for lack of memory, and nothing changes.  NULL:
	   the number of workers is not for the cluster to say. */
	evc_status (*resize)(evc_engine *engine, unsigned n);
	/* For a report: where does this worker stand?  > 0: the worker is the
	   thread of this process with this kernel id; the cluster looks at the
	   thread itself.  0: the worker is asked, and sink->stack has the
	   answer, if any comes.  < 0: the worker cannot be asked now.  The
	   cluster asks again only after an answer, or in the worker's next
	   life.  NULL: no stacks. */
	int (*stack)(evc_engine *engine, unsigned worker);
	uint64_t reserved_[5];
};

EVC_END_DECLS_

#endif
