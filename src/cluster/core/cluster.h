/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster from the inside.
 *
 * A function that was accepted is an evc_remote, and goes
 *
 *     schedule --> [held: inputs, retry] --> queue --> worker --> settled
 *                         ^                    ^          |
 *                         +---- fails, retry --+-- lost --+
 *
 * until it has its outcome; whoever holds the remote then has it for good.  One
 * lock guards all of it, and is held for a few list operations at a time:
 * workers take and finish many at once.
 *
 * The first error closes the queue: what stands in it is cancelled, workers are
 * told, and when nothing runs any more the error may be raised, which opens it
 * again.
 *
 * The loop has the timers (turn.c) and makes the callbacks; no call into the
 * program is made under the lock, and ops of the engine are made under it.
 *
 * Who keeps what: the program's handles count in `handles`; the memory stays as
 * long as there are remotes and per-worker values of the program's, which count
 * in `refs`.
 */
#ifndef EVC_CLUSTER_CLUSTER_H
#define EVC_CLUSTER_CLUSTER_H

#include <ev.h>
#include <evcoord.h>
#include <evcoord/cluster.h>
#include <evcoord/unstable/engine.h>
#include <evcoord/post.h>

#include "base/gate.h"
#include "base/list.h"
#include "base/room.h"
#include "base/sync.h"
#include "base/text.h"
#include "base/until.h"
#include "cluster/core/closures.h"
#include "engine/on_loop.h"
#include "cluster/variables/variable.h"
#include "wire/uri.h"

#define NAME_ROOM 48
#define TEXT_ROOM 192

/* ---- workers, as the cluster knows them: workers.c ---- */

struct cluster_worker {
	/* all under the lock */
	unsigned index, state; /* EVC_WORKER_... */
	unsigned lives;
	struct list running;     /* evc_remote.closure.link, in the order they
				    were taken */
	struct list given_up;    /* settled already, but it runs them still */
	unsigned n_running, n_given_up;
	uint64_t n_done;
	uint64_t since_ns;       /* in this state */
	uint64_t down_ns;        /* not up */
	uint64_t moved_ns;       /* it finished something, or began to run */
	uint64_t defs_seen;      /* per_worker.c: how far it is, and which drops
				    are of before its life */
	uint64_t defs_born;
	/* What it was given to build and has not answered for: building.c. */
	unsigned n_building;
	uint64_t building;       /* the oldest of these, 0: not known */
	uint64_t building_behind; /* attempts up to here were given before */
	uint64_t building_ns;    /* it began then, at the earliest */
	bool told_kill;
	bool tells;              /* it runs those alone that have its bit */
	char name[NAME_ROOM], where[96], text[TEXT_ROOM];
	/* Something for config.worker: the loop's turn tells it. */
	unsigned n_events;
	struct { unsigned state; } events[4];
};

#include "cluster/core/checkpoint.h"

/* ---- deaths, for the log ---- */

#define DEATHS_KEPT 4

struct deaths {
	unsigned n;        /* in text */
	unsigned n_more;   /* for which there was no room */
	uint64_t told_ns;  /* when the log was told last; 0: never */
	char text[DEATHS_KEPT][TEXT_ROOM];
};

/* Lock held: tell the log of it, at a turn of the loop.  ran: in a function. */
void evc__death_note(evc_cluster *cl, const char *text);
/* At a turn: the log hears of what was noted.  Returns when to look again. */
uint64_t evc__deaths_tell(evc_cluster *cl);

/* ---- what waits on the loop ---- */

struct cluster_join {
	struct list link;
	evc_cluster_fn *fn;
	void *arg;
};

/* A remote tells whoever waits for it: a function that has it among its
   arguments, or a fetch. */
struct cluster_edge {
	struct cluster_edge *next;
	struct evc_remote *waits;      /* or */
	struct cluster_fetch *fetches;
};

#define NAME_WORKERS 1024 /* those behind these are given all names */

/* Names of functions, each once for the cluster's life. */
struct cluster_name {
	struct cluster_name *next;
	bool known; /* some worker has it */
	uint64_t has[NAME_WORKERS / 64]; /* workers that have told it */
	uint64_t lost_ns; /* one of them was replaced by another; 0 */
	char name[NAME_ROOM];
};

#define NAME_BUCKETS 1024
#define MISSING_LOOKS 1024

struct evc_cluster {
	/* ---- set at open ---- */
	char name[NAME_ROOM];
	char *uri;
	uint32_t serial;            /* of no two clusters of a process the
				       same: stands in values */
	evc_coord *parent, *scope;
	evc_loop *loop;             /* where turns are posted; owned */
	evc_reactor *reactor;       /* the same, on the loop's thread alone */
	evc_cluster_config config;  /* its defaults filled in; strings copied */
	const evc_engine_ops *ops;
	evc_engine *engine;
	uint64_t born_ns;
	void (*destroy)(evc_cluster *cl); /* open.c's: frees the memory */
	evc_id runner;              /* the member that stands for it all */
	evc_id hold;                /* of the parent's: from the last close until
				       the scope is freed */
	bool own_loop;              /* on a thread of its own, in the scope */

	/* ---- under the lock of open/names_open.c ---- */
	struct list by_name;
	bool is_opening;            /* others that want it have to wait */

	/* ---- atomic ---- */
	_Atomic uint32_t handles;   /* the program's */
	_Atomic uint32_t refs;      /* of the memory: handles together are one,
				       the engine, remotes, per-worker values */
	_Atomic int loop_tid;       /* the loop's thread, found out there; 0 */
	struct gate loop_gate;      /* keeps `reactor` for who asks whether
				       this is its thread */
	_Atomic uint32_t turn_asked; /* turn is posted: whoever asks -> loop */
	_Atomic uint64_t n_fetches;

	/* ---- under the lock, which is q.lock ---- */
	struct closures q;          /* what has no outcome yet, and the error */
	struct cluster_worker **workers;
	unsigned n_workers, n_up;
	bool names_known;           /* a worker has told what it can run */
	struct cluster_name *names[NAME_BUCKETS];
	uint64_t last_id;           /* remotes and per-worker values */
	struct remote_table *named; /* remotes that stand in values: by id */
	struct list defs;           /* per-worker values, the oldest first:
				       per_worker.c */
	struct list joins;          /* cluster_join */
	struct list fetches;        /* cluster_fetch that are due */
	struct evc_remote *garbage; /* to be freed without the lock */
	struct deaths deaths;       /* that the log has not heard of */
	bool want_writable;         /* a schedule was refused on the loop */
	bool stopping;              /* the scope's stop was seen */
	bool lost_by_stop;          /* and has cancelled something that nobody
				       was told of yet */
	bool left;                  /* ops->leave was called */
	bool closed;                /* the engine's last word was heard */
	bool unavailable;           /* no worker for too long, or engine down:
				       raised until one is up */
	bool stop_came;             /* before the engine was open */
	bool over;                  /* its members have ended, the engine is
				       closed */
	bool late;                  /* they had not when `ended` was called */
	bool looks_again;           /* and somebody waits for them now */
	struct ev_loop *watched;    /* `cleanup` is started there; NULL */
	bool loop_gone;             /* destroyed by the program */
	bool let_go;                /* the last handle is gone */
	bool undone;                /* it could not be opened */
	unsigned n_waiting;         /* fetches on the loop that are not due */
	unsigned n_said;            /* errors that the last close knew of */
	uint64_t alone_ns;          /* since when functions wait and there is
				       no worker; 0: that is not so */
	uint64_t asked_ns;          /* since when what runs is asked to stop, */
	uint64_t asked_upto;        /* and up to which attempt */
	char down_text[TEXT_ROOM];  /* why there is no engine any more: for
				       good */
	char trouble[TEXT_ROOM];    /* why functions wait at the moment, as the
				       engine says */
	struct checkpoint checkpoint;
	/* Of an engine that keeps the variables: variable_ask.c. */
	struct {
		unsigned n_asking;  /* calls of ops->ask that have not
				       returned */
		bool over;          /* nothing is asked any more */
		/* transactional functions that succeeded: came in here; how
		   many more the engine knows of; what it has said itself */
		uint64_t seen, base, least;
		bool known;         /* it has said something */
	} kept;
	struct {
		uint64_t scheduled, done, failed, cancelled, executions, late,
			lost, retries, builds;
		double build_time, run_time;
		/* the rate: finished by the second, a ring */
		uint64_t per_second[8], second;
	} count;

	struct variables vars;      /* has a lock of its own, below this one;
				       empty when the engine keeps them, but for
				       the number of functions without
				       updates */
	struct on_loop on;          /* also whose process it is */

	/* ---- loop thread only ---- */
	evc_mail turn;
	struct ev_cleanup cleanup;
	struct ev_timer timer;
	bool timer_on;
	bool looking;               /* turn.c: what is due is being done */
	bool holds_loop;            /* somebody is to be called on it */
	bool closed_told;           /* joins of the scope know it */
	uint64_t retry_due_ns;      /* the first that is held for that */
	uint64_t retries_seen;      /* count.retries at that look */
};

/* ---- cluster.c: open, close, the scope ---- */

void evc__cluster_ref(evc_cluster *cl);
void evc__cluster_unref(evc_cluster *cl); /* the last one frees the memory */
/* A call by the program: is this a cluster, and of this process (no fork
   child)?  0 or a refusal. */
evc_status evc__cluster_check(const evc_cluster *cl);
/* Is this a fork child, which has a copy of it?  Locks of that may be held for
   ever: after each call of a function of the program's, which may have forked. */
static inline bool
cluster_inherited(const evc_cluster *cl)
{
	return on_loop_is_foreign(&cl->on);
}
/* Is this the thread of the cluster's loop? */
bool evc__cluster_on_loop(const evc_cluster *cl);

/* ---- turn.c: the loop ---- */

void evc__turn_init(evc_cluster *cl);
/* Have the loop look at everything that is due.  Any thread, lock held or not.
   false: the loop is gone. */
bool evc__turn_ask(evc_cluster *cl);

/* ---- sink.c, workers.c: the engine's side; patience.c ---- */

extern const evc_engine_sink evc__sink;
bool evc__sink_workers(void *core, unsigned n);
void evc__sink_names(void *core, const char *const *functions, unsigned n);
void evc__sink_worker_names(void *core, unsigned worker,
			    const char *const *functions, unsigned n);
void evc__sink_up(void *core, unsigned worker, const char *name,
		  const char *where);
void evc__sink_fenced(void *core, unsigned worker, const char *why);
void evc__sink_gone(void *core, unsigned worker, const char *why, unsigned how);
void evc__sink_trouble(void *core, const char *why);
void evc__sink_counts(void *core, uint64_t *ret_queued, uint64_t *ret_running,
		      uint64_t *ret_done);
void evc__sink_down(void *core, const char *why);
void evc__sink_closed(void *core);

/* Lock held, all of these. */
/* What an engine calls this worker; NULL: it has said of no such one. */
static inline struct cluster_worker *
cluster_worker_at(evc_cluster *cl, unsigned i)
{
	return i < cl->n_workers ? cl->workers[i] : NULL;
}

/* What has just changed may be what the loop waits for: joins, callbacks. */
void evc__tell(evc_cluster *cl);
/* There may be something for this worker, or EVC_ENGINE_ANY. */
void evc__wake(evc_cluster *cl, int worker);
/* No worker for too long, or no engine: raised while that lasts. */
void evc__note_unavailable(evc_cluster *cl);
/* It completes nothing more, and runs perhaps: nothing is raised until it is
   gone. */
void evc__worker_fence(evc_cluster *cl, struct cluster_worker *w,
		       const char *why);
/* A function in it was given up; and it has returned after all. */
void evc__worker_hangs(evc_cluster *cl, struct cluster_worker *w);
void evc__worker_back(evc_cluster *cl, struct cluster_worker *w);
/* This one was queued. */
void evc__names_note(evc_cluster *cl, const evc_remote *r);
/* The first that no worker can run who is up; NULL: none was found among the
   first MISSING_LOOKS of each line. */
evc_remote *evc__missing_find(const evc_cluster *cl);
/* Since when that is so. */
uint64_t evc__missing_since(const evc_cluster *cl, const evc_remote *r);
/* In words: "no worker has had a function called ...". */
void evc__missing_describe(const evc_cluster *cl, const evc_remote *r,
			   struct text *t);
/* What runs is to be stopped, as far as it was taken up to now: remember since
   when, tell the engine, have the loop look when the grace is over. */
void evc__stop_running(evc_cluster *cl);
/* An error of what was not taken: the same, and all that is queued is
   cancelled. */
void evc__end_all(evc_cluster *cl);
/* What was asked to stop and is asked for longer than the grace: give it up, or
   kill its worker.  Returns when to look again, SYNC_FOREVER: never. */
uint64_t evc__give_up(evc_cluster *cl, uint64_t now);
/* The stop of the scope: cancel all, and tell the engine to leave when nothing
   runs. */
void evc__stop_all(evc_cluster *cl);
/* Nothing runs, nothing will: tell the engine to leave, once. */
void evc__leave_if_idle(evc_cluster *cl);
/* There is work and no worker: UNAVAILABLE when worker_wait is over.  Returns
   when to look again. */
uint64_t evc__mind_workers(evc_cluster *cl, uint64_t now);
/* In words: "count on worker 2 (pid 7) for 3.1 s", of the oldest it has. */
void evc__worker_describe(const struct cluster_worker *w, uint64_t now,
			  struct text *t);

/* ---- join.c ---- */

/* Lock held: an error was raised by this call: the text for evc_last_error. */
void evc__say_raised(evc_cluster *cl);
/* On the loop, lock not held: fetches and joins that have their answers get them.
   false: a fork child has come back from one of them. */
bool evc__turn_answers(evc_cluster *cl);

/* ---- remote.c, settle.c, schedule.c ---- */

#include "cluster/core/remote.h"

/* ---- fetch.c ---- */

struct cluster_fetch;
/* Lock held: one of its remotes has its outcome. */
void evc__fetch_tell(struct cluster_fetch *f);
/* On the loop, lock not held: all that are due. */
void evc__fetch_turn(evc_cluster *cl);

/* ---- info.c, report.c: how it goes ---- */

/* Lock held, both. */
void evc__worker_info(const struct cluster_worker *w, uint64_t now,
		      evc_cluster_worker_info *ret);
/* In words, for one line: what runs the longest, how many run beside it, what
   is queued. */
void evc__cluster_describe(const evc_cluster *cl, uint64_t now,
			   struct text *t);

/* ---- per_worker.c ---- */

#include "cluster/core/per_worker.h"

/* ---- building.c: lock held ---- */

void evc__building_begins(evc_cluster *cl, struct cluster_worker *w,
			  const evc_engine_def *def);
void evc__building_ends(evc_cluster *cl, struct cluster_worker *w, uint64_t id);
void evc__building_forget(struct cluster_worker *w);
/* Is it in a build, not in a function? */
bool evc__building_is_it(const struct cluster_worker *w);
/* That has ended it. */
void evc__building_blame(evc_cluster *cl, struct cluster_worker *w);

/* ---- engines ---- */

extern const evc_engine_ops evc__engine_threads, evc__engine_processes;

#endif
