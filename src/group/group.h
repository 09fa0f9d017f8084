/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups from the inside: registries, groups, workers.
 *
 * A group is a scope, and its workers are threads of that scope; on top of them
 * stand a state, which says whose turn it is to call the group's functions, and
 * a few counts.  A group that does not run is a stopped scope.
 *
 * Locks: a registry's is for its list and for who starts; a group's for its
 * state and its workers.  The registry's is taken first.  No function of the
 * user's is called under either.
 */
#ifndef EVC_WORKERS_GROUP_H
#define EVC_WORKERS_GROUP_H

#include <evcoord.h>

#include "base/fork.h"
#include "base/list.h"
#include "base/sync.h"
#include "base/until.h"
#include "group/restart.h"

#define EVC__WORKERS_MOST 4096
#define EVC__LOGGERS_MOST 16
#define EVC__ERRORS_KEPT 256
#define EVC__CLEAN_MOST 256
#define EVC__HELD_FEW 32

struct text;         /* base/text.h */
struct evc__tally;   /* metrics.h */
struct evc__metrics; /* metrics.h */
struct evc__loggers; /* loggers.h */
struct evc__error;

/*
 * A worker: made once, it keeps its id and its counts for ever, whatever threads
 * run it.
 */
struct evc__worker {
	/* set at creation */
	evc_workers *group;
	unsigned id;
	char name[48];            /* GROUP/ID */
	struct evc__tally *tally; /* its share of the metrics */

	/* the group's lock */
	bool live;      /* it has a thread */
	bool fresh;     /* it has had no run since; its own once it runs */
	bool done;      /* it has ended by itself in this start of the group */
	unsigned n_waits; /* calls of its that wait for groups to end: meanwhile
			     no other worker waits for it */
	evc_id member;    /* its thread in the scope; 0: none */

	/* atomic: resize (lock held) -> the worker, between two runs */
	_Atomic bool retire;
	/* atomic: the worker -> whoever looks, each by itself */
	_Atomic uint64_t run_began; /* monotonic ns; 0: it is in no run */
	_Atomic uint64_t n_runs, n_errors, n_restarts;


	/* the group's lock */
	struct evc__restart_own restart; /* what it remembers of its own */

	/* its own */
	evc_reason said; /* by evc_workers_fail in this run; code 0: nothing */
	bool restarts;   /* the next run is one after an error */
};

/*
 * A group.
 */
struct evc_workers {
	/* set at creation */
	evc_registry *reg;
	evc_coord *scope;
	char name[32];
	evc_worker_fn *fn;
	void *arg;
	evc_workers_opts opts; /* loggers is NULL: see below */
	unsigned fork_generation;
	evc_status clean[EVC__CLEAN_MOST]; /* n_clean of them */
	unsigned n_clean;
	struct evc__metrics *metrics;
	struct evc__loggers *loggers;   /* NULL: none */

	/* registry's lock */
	struct list node;
	unsigned users; /* walks and stops that hold it; who frees it waits, or
			   leaves it to the last of them */
	/* both locks to write, one to read */
	bool doomed;    /* freed when the last of them leaves */

	pthread_mutex_t lock;
	/* made by the first start, before its workers */
	evc_cond *cond;      /* workers between two runs: paused, or before a
				restart; with lock */
	/* lock */
	unsigned state;      /* EVC_WORKERS_NEW ...; PAUSED is RUNNING with
				paused set */
	bool init_done;      /* init has succeeded: shutdown is due */
	bool state_begun;    /* state.start has: state.stop is due ... */
	bool cleanup_due;    /* ... and cleanup */
	unsigned n_awaiting; /* calls that wait for its stop, and clean up ... */
	unsigned n_joining;  /* ... of these, that are in a join of its scope,
				which keeps that from being cleared */
	bool shutting;       /* somebody is to call shutdown and state.stop */
	bool cleaning;       /* somebody is to call cleanup */
	int inside_tid;      /* the thread that is in a function of the
				group's, or about to call one; 0: none */
	unsigned n_threads;  /* it is to have */
	unsigned n_workers;  /* it has made: that or more */
	unsigned room;       /* of worker */
	struct evc__worker **worker; /* in the order of their ids */
	unsigned n_live;     /* of these, that live */
	unsigned n_starts;
	unsigned life;       /* moves when a start begins, also one that fails:
				a stop is of one life */
	evc_reason stop;     /* why it stopped last */
	struct evc__error *error; /* ring of EVC__ERRORS_KEPT; NULL: none */
	uint64_t n_errors;   /* that ever were */
	struct evc__restart_state restarts; /* of all its workers */

	/* atomic: pause, resume (lock held) -> its workers */
	_Atomic bool paused;
	/* atomic: futex; moves with everything under lock that somebody may
	   wait for */
	_Atomic uint32_t changed;
	/* atomic: stops -> the nudge of who is in shutdown: monotonic ns when
	   their budget is over */
	_Atomic uint64_t budget_ends;
};

#define GROUP_OF(n) LIST_OF(n, evc_workers, node)

struct evc_registry {
	pthread_mutex_t lock;
	struct list groups; /* lock */
	/* set at creation, or before the first group */
	evc_registry_opts opts; /* what it points to is our own: */
	char coord_name[48];
	evc_status *clean;
	/* lock */
	evc_coord *coord;  /* made for the first group that wants it */
	unsigned n_held;   /* groups, as often as somebody holds one; those that
			      were freed meanwhile, too */
	bool starting;     /* somebody starts groups: */
	int starter;       /* that thread */
	/* atomic: futex; moves, under the lock, when a start is over or a group
	   is let go of */
	_Atomic uint32_t changed;
	_Atomic unsigned next_id; /* atomic: of workers */
	/* atomic: how often an error of a group has stopped all */
	_Atomic uint32_t stops_of_all;
	/* atomic: generation + 1 of the process that uses it; 0: nobody has */
	_Atomic unsigned fork_generation;
};

/* ---- registry.c ---- */

/* NULL stands for the process's.  Refused in a fork child of who uses it. */
evc_status evc__registry_check(evc_registry **reg, const char *func);
/* The same, and from now on the calling process is who uses it. */
evc_status evc__registry_use(evc_registry **reg, const char *func);
/* Does any?  If not, it is empty, and its lock was never taken. */
bool evc__registry_used(const evc_registry *reg);
/* Its coordinator, made now if there is none. */
evc_status evc__registry_coord(evc_registry *reg, evc_coord **ret_c);
/* Free the registry's own memory; it has no groups, and no coordinator. */
void evc__registry_drop(evc_registry *reg);
/* How long a stop waits when it is not told. */
double evc__registry_grace(const evc_registry *reg);
/* May a grace be that: seconds, or EVC_NO_GRACE? */
static inline bool
evc__is_grace(double grace)
{
	return grace >= 0 || grace == EVC_NO_GRACE; /* NaN is neither */
}

/* 0, or refused with the number. */
evc_status evc__grace_check(double grace, const char *func);

/* ---- hold.c ---- */

/* Groups that are held, in the order of the registry: none of them is freed
   meanwhile. */
struct evc__held_group {
	evc_workers *g;
	bool ours;   /* to start, or to shut down */
	bool unborn; /* to shut down, with no worker yet */
	bool awaits; /* to be waited for: counted in n_awaiting ... */
	unsigned life; /* ... in this life of it */
};
struct evc__held {
	evc_registry *reg;
	struct evc__held_group *group;
	unsigned n;
	/* Room for so many; a stop of these needs no memory. */
	struct evc__held_group few[EVC__HELD_FEW];
};
/* All groups of a name (NULL: all). */
evc_status evc__groups_hold(evc_registry *reg, const char *name,
			    struct evc__held *ret, const char *func);
void evc__group_hold(evc_workers *g, struct evc__held *ret);
void evc__groups_release(struct evc__held *h);
/* In a fork child: the calling thread walks through no registry. */
void evc__walks_forget(void);

/* ---- state.c ---- */

/* Refused: no group, or this is a fork child of the group's process. */
evc_status evc__group_check(const evc_workers *g, const char *func);
/* Lock held: something has changed that others wait for. */
void evc__group_changed(evc_workers *g);
/* Lock held, given up meanwhile: wait for such a change; false: time is over. */
bool evc__group_wait(evc_workers *g, uint64_t until_ns);
/* Lock held: the group does not run, and no call has anything to do with it. */
bool evc__group_rests(const evc_workers *g);

/* ---- group.c ---- */

/* Asked when a function of the program has returned: is this a fork child that
   was made in there? */
static inline bool
evc__group_inherited(const evc_workers *g)
{
	return g->fork_generation !=
	       sync_load_relaxed(&evc__fork_generation);
}
/* Lock held: workers up to n, with ids of their own; false: no memory, and
   nothing was made. */
bool evc__workers_make(evc_workers *g, unsigned n);
/* Free what evc_workers_init has made, the scope aside; parts of it may not be
   there. */
void evc__group_drop(evc_workers *g);
/* Nobody holds it, and it does not run: free it.  Refused when its scope cannot
   be freed. */
evc_status evc__group_destroy(evc_workers *g);
/* It is stopped and nobody lives: wait, a second at most, until its threads are
   gone from the scope. */
evc_status evc__group_tails(evc_workers *g);

/* ---- call.c: who the calling thread is ---- */

/* The calling thread is that worker, in a run; NULL: it is none. */
void evc__worker_set_self(struct evc__worker *w);
/* The worker that the calling thread is, of any group or of that one; NULL: it
   is none. */
struct evc__worker *evc__worker_self(void);
struct evc__worker *evc__worker_here(const evc_workers *group);

/* Around each call of init, shutdown and the functions of state. */
struct evc__inside {
	evc_workers *was;
};
void evc__inside_begin(evc_workers *g, struct evc__inside *in);
void evc__inside_end(evc_workers *g, const struct evc__inside *in);
/* The group in one of whose functions this thread is; NULL: none. */
evc_workers *evc__inside_of(void);
/* What a start, a stop, a resize and a free are refused in. */
evc_status evc__not_inside(const char *func);
/* The thread is about to exit the process, or in a fork child: it is inside
   nothing any more. */
void evc__inside_forget(void);
/* Run fn(scope, g), as GROUP/what: here, with the kick signal from
   g->budget_ends on, or on a thread of its own, without waiting for it. */
void evc__group_call(evc_workers *g, const char *what, evc_fn *fn);

/* ---- start.c ---- */

/* Lock held: give a worker its thread.  It is live from then on; when it fails
   it is as before. */
evc_status evc__worker_spawn(evc_workers *g, struct evc__worker *w);
/* Registry's lock held, given up meanwhile: wait until nobody starts groups there,
   the calling thread aside; false: the time is over. */
bool evc__start_awaited(evc_registry *reg, uint64_t until_ns);
/* Does the calling thread start groups there?  (Then this is a log hook.) */
bool evc__starts(evc_registry *reg);

/* ---- stop.c: the turn of shutdown, state.stop and cleanup ---- */

/* If it runs, its stop is the caller's, `ours`, and its workers hear of it: text
   says why.  If it does not rest, the caller waits for it: `awaits`.  starting:
   a start, of the caller's, is taken back. */
void evc__group_claim(struct evc__held_group *h, bool starting,
		      const char *text);
/* Then, if it is ours: say why. */
void evc__group_tell(struct evc__held_group *h, const char *text);
/* Call what is due; sends the kick signal to a function that is not over by
   then. */
void evc__group_shut_down(evc_workers *g, uint64_t until_ns);
/* If it is stopping and nobody lives: clean up, and it is stopped.  Waits until
   then for others who are at it.  true: it does not run any more. */
bool evc__group_settle(evc_workers *g, uint64_t until_ns);
/* Count out threads that have ended without a word, which nothing but the scope
   knows. */
void evc__group_bury(evc_workers *g);
/* The hook and the `ended` of a group's scope; helper thread. */
evc_status evc__group_on_stop(evc_coord *scope, void *group);
void evc__group_on_ended(evc_coord *scope, const evc_verdict *v, void *group);

/* ---- await.c: waiting for groups ---- */

enum evc__who {
	EVC__NOBODY = 0,
	EVC__AWAITED = 1,  /* but the calling worker, and those who wait for
			      groups themselves */
	EVC__EVERYBODY = 2 /* who lives */
};
/* Whom does the calling thread wait for?  One of the program for everybody. */
enum evc__who evc__whom(void);
/* Wait until these workers of that life (g->life) have ended, and no
   function of the group's runs on another thread; false: the time is over. */
bool evc__group_wait_for(evc_workers *g, unsigned life, enum evc__who who,
			 uint64_t until_ns);
/* Wait until no function of the group's runs in that life on another thread;
   inside one nobody can wait for that.  false: the time is over. */
bool evc__group_calls_over(evc_workers *g, unsigned life, uint64_t until_ns);
/* Where somebody stops one of these and waits for its workers, wait with him. */
bool evc__stops_awaited(const struct evc__held *h, uint64_t until_ns);
/* Lock held: add the names of these workers, and of functions of the group's
   that run on other threads.  How many they are. */
unsigned evc__group_names(const evc_workers *g, struct text *t,
			  enum evc__who who);
/* The calling thread, if it is a worker, waits for groups to end, or does so no
   more. */
void evc__worker_waits(bool yes);
/* Wait for groups that were told to stop; 0, or EVC_DEADLINE_EXCEEDED with the
   names of who lives. */
evc_status evc__groups_await(struct evc__held *h, uint64_t until_ns,
			     bool exiting, const char *func);

/* ---- stop_api.c ---- */

/* Wait for starts, tell the groups, shut them down, wait for them: text says
   why. */
evc_status evc__groups_stop(struct evc__held *h, const char *text,
			    uint64_t until_ns, bool exiting, const char *func);

/* ---- run.c ---- */

/* What comes after a run of a worker. */
enum evc__next {
	EVC__AGAIN = 0, /* the next run */
	EVC__LATER = 1, /* the next run, after a pause */
	EVC__CLEAN = 2, /* none: by its own wish */
	EVC__OVER = 3   /* none: it heard the stop, or its error has asked for
			   one */
};
/* The thread of a worker. */
evc_status evc__worker_main(evc_coord *scope, void *worker);

/* ---- error.c ---- */

struct evc__error {
	unsigned id, start;
	uint64_t run;
	evc_reason reason;
};
/* A run has ended with an error: keep it, tell the scope and the log, do what
   on_error says.  lost: its thread is ending with it. */
enum evc__next evc__worker_failed(struct evc__worker *w, evc_status returned,
				  uint64_t run, bool lost,
				  uint64_t *ret_pause_ns);
/* What a function returned, as a code: 0..255. */
evc_status evc__code_of(evc_status returned);
/* Is it 0 or one of the group's clean codes? */
bool evc__group_is_clean(const evc_workers *g, evc_status code);

/* ---- atexit.c ---- */

/* The first group of the process's registry is there. */
void evc__atexit_register(void);

#endif
