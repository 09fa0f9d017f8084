/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups from the inside: registries, groups, workers.
 *
 * A group is a scope, and its workers are threads of this scope.  The group
 * adds a state, which gives one thread the turn to call the group's functions,
 * and a few counts.  A group that does not run is a stopped scope.
 *
 * Locks: a registry's, for its list and its starts; a group's, for its state
 * and its workers.  The registry's lock comes first.  No function of the user's
 * is called under either lock.
 */
#ifndef EVC_GROUP_GROUP_H
#define EVC_GROUP_GROUP_H

#include <evcoord.h>

#include "base/fork.h"
#include "base/list.h"
#include "base/sync.h"
#include "base/deadline.h"
#include "group/restart.h"

#define EVC__WORKERS_MOST 4096
#define EVC__LOGGERS_MOST 16
#define EVC__ERRORS_KEPT 256
#define EVC__CLEAN_MOST 256
#define EVC__HELD_FEW 32

struct text;         /* base/text.h */
struct evc__tally;   /* metrics.h */
struct evc__metrics; /* metrics.h */
struct evc__loggers; /* loggers.c */

/*
 * A worker: made once, the worker keeps its id and counts for ever, on changing
 * threads.
 */
struct evc__worker {
	/* set at creation */
	evc_group *group;
	unsigned id;
	char name[48];            /* GROUP/ID */
	struct evc__tally *tally; /* the worker's share of the metrics */

	/* the group's lock */
	evc_id member;    /* the worker's thread in the scope; 0: none */
	bool live;        /* the worker has a thread */
	bool done;        /* the worker has ended by itself in this start */
	/* the thread has made no run yet; the thread's own after the first
	   run */
	bool fresh;
	/* calls of this worker that wait for groups to end; meanwhile no other
	   worker waits for this worker */
	unsigned n_waits;
	struct evc__restart_own restart;

	/* atomic: resize (lock held) -> the worker, between two runs */
	_Atomic bool retire;
	/* atomic: the worker -> readers; each value by itself */
	_Atomic uint64_t run_began; /* monotonic ns; 0: between two runs */
	_Atomic uint64_t n_runs, n_errors, n_restarts;

	/* the worker's thread */
	evc_reason said; /* by evc_group_fail in this run; code 0: nothing */
	bool restarts;   /* the next run is a restart after an error */
};

/*
 * A group.
 */
struct evc_group {
	/* set at creation */
	evc_registry *reg;
	evc_coord *scope;
	char name[32];
	evc_worker_fn *fn;
	void *arg;
	evc_group_opts opts; /* without loggers */
	evc_status clean[EVC__CLEAN_MOST]; /* opts.clean points here */
	struct evc__metrics *metrics;
	struct evc__loggers *loggers; /* NULL: none */
	unsigned fork_generation;
	evc_part part; /* of the scope's parent; see evc_finish */

	/* the registry's lock */
	struct list node;
	/* walks, starts and stops that hold the group: a free waits for the
	   holders, or leaves the memory to the last */
	unsigned users;
	/* registry's and group's lock to write, either to read */
	bool doomed;    /* the last user frees the group */

	pthread_mutex_t lock;
	/* set by the first start, before its workers */
	/* lock: paused workers, and workers that wait for a restart */
	evc_cond *cond;

	/* ---- the state; lock ---- */
	/* EVC_GROUP_NEW ...; a paused group is RUNNING with `paused` set */
	unsigned state;
	unsigned n_starts;
	/* moves with each begun start, also a failed start: a stop belongs to
	   one life */
	unsigned life;
	evc_reason stop;    /* why the group stopped last */
	/* atomic: futex; moves, under the lock, with every change that a thread
	   may wait for */
	_Atomic uint32_t changed;
	/* atomic: pause, resume (lock held) -> the workers */
	_Atomic bool paused;

	/* ---- the calls of the group's functions; lock ---- */
	bool init_done;     /* shutdown is due, because init has succeeded */
	bool state_begun;   /* state.stop is due, because state.start has */
	bool cleanup_due;   /* state.cleanup is due, because state.start has */
	bool shutting;      /* a thread calls shutdown and state.stop, or is
			       about to */
	bool cleaning;      /* a thread calls cleanup, or is about to */
	int inside_tid;     /* the thread that calls a function of the group, or
			       is about to; 0: none */
	unsigned n_awaiting; /* calls that wait for the stop, and clean up */
	unsigned n_joining; /* calls of n_awaiting that join the scope, which
			       cannot be cleared meanwhile */
	/* atomic: stops -> kick_after_budget() in call.c: monotonic ns of the
	   end of the stop's budget, or of the stop above */
	_Atomic uint64_t budget_ends;

	/* ---- the workers; lock ---- */
	struct evc__worker **worker; /* in the order of their ids */
	size_t room;        /* places in worker */
	unsigned n_workers; /* workers made so far */
	unsigned n_threads; /* workers wanted: the first of `worker` */
	unsigned n_live;    /* workers that live */
	struct evc__restart_state restarts; /* for all workers of the group */

	/* ---- the errors; lock ---- */
	evc_worker_error *error; /* ring of EVC__ERRORS_KEPT; NULL: none */
	uint64_t n_errors;  /* all errors so far */
};

#define GROUP_OF(n) LIST_OF(n, evc_group, node)

struct evc_registry {
	/* set at creation, or before the first group */
	/* points to coord_name and to what the user gave */
	evc_registry_opts opts;
	char coord_name[48];
	evc_status *clean;

	pthread_mutex_t lock;
	/* lock */
	struct list groups;
	/* made for the first group without a coordinator of its own */
	evc_coord *coord;
	unsigned n_held;  /* holds of groups, also of freed groups */
	bool starting;    /* the thread `starter` starts groups */
	int starter;
	/* atomic: futex; moves, under the lock, when a start is over or a group
	   is let go of */
	_Atomic uint32_t changed;

	_Atomic unsigned next_id; /* atomic: next id of a worker */
	/* atomic: how many errors of groups have stopped all groups */
	_Atomic uint32_t stops_of_all;
	/* atomic: fork generation + 1 of the process that uses the registry; 0:
	   unused */
	_Atomic unsigned fork_generation;
};

/*
 * The functions of the room by file.  A file calls only files above it in this
 * list, and metrics and restart, which have headers of their own.
 */

/* ---- call.c: the calling thread's part in groups ---- */

/* The calling thread is this worker, in a run; NULL: no worker. */
void evc__worker_set_self(struct evc__worker *w);
/* The worker that the calling thread is, of any group or of g; NULL: no
   worker. */
struct evc__worker *evc__worker_self(void);
struct evc__worker *evc__worker_here(const evc_group *group);

/* Around each call of init, shutdown and the functions of state; was: the group
   that had the thread before. */
evc_group *evc__inside_begin(evc_group *g);
void evc__inside_end(evc_group *g, evc_group *was);
/* The group that has the calling thread in one of its functions; NULL: none. */
evc_group *evc__inside_of(void);
/* Refused in a function of a group. */
evc_status evc__not_inside(const char *func);
/* At the exit of the process and in a fork child: the calling thread is in no
   function of a group any more. */
void evc__inside_forget(void);
/* Run fn(scope, g), as GROUP/what: either here, with the kick signal from
   g->budget_ends on, or on a thread of its own, without a wait for this
   thread. */
void evc__group_call(evc_group *g, const char *what, evc_fn *fn);

/* ---- state.c ---- */

/* Refuses NULL, and a fork child of the group's process. */
evc_status evc__group_check(const evc_group *g, const char *func);
/* Lock held: other threads may wait for the change just made. */
void evc__group_changed(evc_group *g);
/* Seconds that the stop of the coordinator above has left; INFINITY: no stop. */
double evc__group_left(const evc_group *g);
/* Lock held, given up meanwhile: wait for the next change, or for a while;
   false: the time is over, or that of the stop above. */
bool evc__group_wait(evc_group *g, uint64_t until_ns);
/* Lock held: the group does not run, and no call works on the group. */
bool evc__group_rests(const evc_group *g);

/* ---- registry.c ---- */

/* NULL stands for the process's registry.  Refused in a fork child of the
   process that uses the registry. */
evc_status evc__registry_check(evc_registry **reg, const char *func);
/* As evc__registry_check; from now on the calling process uses the registry. */
evc_status evc__registry_use(evc_registry **reg, const char *func);
/* Does a process use the registry?  An unused registry is empty, and its lock
   was never taken. */
bool evc__registry_used(const evc_registry *reg);
/* The registry's coordinator, made now if there is none. */
evc_status evc__registry_coord(evc_registry *reg, evc_coord **ret_c);
/* Free the registry's own memory; it has no groups, and no coordinator. */
void evc__registry_drop(evc_registry *reg);
/* The end of a stop that begins now, when its caller names no time. */
uint64_t evc__registry_until(const evc_registry *reg);
/* Is the number a grace: seconds, or EVC_NO_GRACE? */
static inline bool
evc__is_grace(double grace)
{
	return grace >= 0 || grace == EVC_NO_GRACE; /* NaN is neither */
}

/* 0, or refused, with the number in the text. */
evc_status evc__grace_check(double grace, const char *func);

/* ---- loggers.c ---- */

/* 0 and *ret (NULL for n 0); -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED,
   noted for evc_last_error. */
evc_status evc__loggers_new(const evc_logger *from, unsigned n,
			    struct evc__loggers **ret);
/* ls may be NULL. */
void evc__loggers_free(struct evc__loggers *ls);
/* Call the due loggers of w's group, on w's thread, after a run and its
   metrics; no lock held.  now: sync_mono(). */
void evc__loggers_run(struct evc__worker *w, uint64_t now);

/* ---- group.c ---- */

/* Asked after each function of the program: is this process a fork child that
   the function made? */
static inline bool
evc__group_inherited(const evc_group *g)
{
	return evc__forked_since(g->fork_generation);
}
/* Lock held: make workers up to n, with ids; false: no memory, no worker was
   made. */
bool evc__group_make(evc_group *g, unsigned n);
/* Free all that evc_group_init has made but the scope; parts may be missing. */
void evc__group_drop(evc_group *g);
/* Free a group that does not run and has no holder.  Refused when the scope
   cannot be freed. */
evc_status evc__group_destroy(evc_group *g);
/* The group is stopped and no worker lives: wait, a second at most, until their
   threads have left the scope. */
evc_status evc__group_tails(evc_group *g);

/* ---- stop.c: the turn of shutdown, state.stop and cleanup ---- */

/* Held groups, in the order of the registry: no held group is freed. */
struct evc__held_group {
	evc_group *g;
	bool ours;     /* the caller starts or shuts down the group */
	bool unborn;   /* the group is shut down before its first worker */
	bool awaits; /* the caller waits for the group, counted in n_awaiting */
	unsigned life; /* the life of the group that the caller waits for */
};
struct evc__held {
	evc_registry *reg;
	struct evc__held_group *group;
	unsigned n;
	/* room for so many groups; a stop of these needs no memory */
	struct evc__held_group few[EVC__HELD_FEW];
};

/* If the group runs, the caller gets its stop, `ours`, and its workers hear of
   the stop; text says why.  If the group does not rest, the caller waits for
   the group: `awaits`.  starting: the caller takes back its start. */
void evc__group_claim(struct evc__held_group *h, bool starting,
		      const char *text);
/* After the claim, if the stop is the caller's: say why. */
void evc__group_tell(struct evc__held_group *h, const char *text);
/* Call shutdown and state.stop, as far as they are due.  From until_ns on a
   function that still runs gets the kick signal. */
void evc__group_shut_down(evc_group *g, uint64_t until_ns);
/* If the group is stopping and no worker lives: clean up, then the group is
   STOPPED.  Waits until then for other threads that clean up.  true: the group
   does not run any more. */
bool evc__group_settle(evc_group *g, uint64_t until_ns);
/* Count out threads that have ended without a word to the group: only the scope
   knows of their end. */
void evc__group_bury(evc_group *g);
/* The stop hook and the `ended` of a group's scope; helper thread. */
evc_status evc__group_on_stop(evc_coord *scope, void *group);
void evc__group_on_ended(evc_coord *scope, const evc_verdict *v, void *group);

/* ---- await.c ---- */

enum evc__who {
	EVC__NOBODY = 0,
	/* live workers but the caller and workers that wait for groups */
	EVC__AWAITED = 1,
	EVC__EVERYBODY = 2 /* all live workers */
};
/* The workers that the calling thread waits for.  A thread that is no worker
   waits for all. */
enum evc__who evc__whom(void);
/* Wait until these workers of that life have ended, and no function of the
   group runs on another thread; false: the time is over. */
bool evc__group_wait_for(evc_group *g, unsigned life, enum evc__who who,
			 uint64_t until_ns);
/* Wait until in that life no function of the group runs on another thread; a
   thread in such a function does not wait.  false: the time is over. */
bool evc__group_calls_over(evc_group *g, unsigned life, uint64_t until_ns);
/* Where another thread stops one of these groups and waits for its workers,
   wait with that thread. */
bool evc__stops_awaited(const struct evc__held *h, uint64_t until_ns);
/* Lock held: add the names of these workers, and of functions of the group that
   run on other threads.  Returns how many names. */
unsigned evc__group_names(const evc_group *g, struct text *t,
			  enum evc__who who);
/* The calling thread, if it is a worker, begins or ends to wait for groups. */
void evc__worker_waits(bool yes);
/* Wait for groups that were told to stop; 0, or EVC_DEADLINE_EXCEEDED with the
   names of all live workers. */
evc_status evc__groups_await(struct evc__held *h, uint64_t until_ns,
			     bool exiting, const char *func);

/* ---- describe.c ---- */

/* The describe of a group's scope. */
size_t evc__group_describe(unsigned format, char *buf, size_t n, void *group);

/* ---- hold.c ---- */

/* Hold all groups of a name (NULL: all groups), or one group. */
evc_status evc__groups_hold(evc_registry *reg, const char *name,
			    struct evc__held *ret, const char *func);
void evc__group_hold(evc_group *g, struct evc__held *ret);
void evc__groups_release(struct evc__held *h);
/* The longest evc__group_left of the held groups. */
double evc__held_left(const struct evc__held *h);
/* In a fork child: the calling thread walks through no registry. */
void evc__walks_forget(void);
/* A new group: evc_finish of the coordinator above may free g. */
void evc__group_part(evc_group *g);

/* ---- error.c ---- */

/* What follows a run of a worker. */
enum evc__next {
	EVC__AGAIN = 0, /* the next run */
	EVC__LATER = 1, /* the next run, after a pause */
	EVC__CLEAN = 2, /* no run: the worker has ended itself */
	EVC__OVER = 3   /* no run: the worker has heard the stop, or its error
			   has asked for one */
};
/* A run has ended with an error: keep the error, tell the scope and the log, do
   what on_error says.  lost: the worker's thread ends, too. */
enum evc__next evc__worker_failed(struct evc__worker *w, evc_status returned,
				  uint64_t run, bool lost,
				  uint64_t *ret_pause_ns);
/* The result of a function as a code: 0..255. */
evc_status evc__code_of(evc_status returned);
/* Is the code 0, or a clean code of the group? */
bool evc__group_is_clean(const evc_group *g, evc_status code);

/* ---- run.c ---- */

/* The function of a worker's thread. */
evc_status evc__worker_main(evc_coord *scope, void *worker);

/* ---- start.c ---- */

/* Lock held: give a worker its thread, and the worker is live; on failure
   nothing changes. */
evc_status evc__worker_spawn(evc_group *g, struct evc__worker *w);
/* Registry's lock held, given up meanwhile: wait until no other thread starts
   groups of the registry; false: the time is over, or that of all stops above
   the held groups. */
bool evc__start_awaited(const struct evc__held *h, uint64_t until_ns);
/* Does the calling thread start groups of the registry?  (Then this is a log
   hook.) */
bool evc__starts(evc_registry *reg);

/* ---- stop_api.c ---- */

/* The process's registry has its first group. */
void evc__atexit_register(void);

#endif
