/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers as the cluster knows them.  Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_WORKERS_H
#define EVC_CLUSTER_WORKERS_H

#define WORKER_EVENTS 8
#define BUILDS_KEPT 8

/* All fields: lock. */
struct cluster_worker {
	unsigned index;          /* the engine's number of the worker */
	unsigned state;          /* EVC_WORKER_... */
	unsigned lives;          /* starts of the worker */
	struct list running;     /* evc_remote.closure.link of the functions
				    that the worker has taken, in their order */
	struct list given_up;    /* functions that are settled and still run */
	unsigned n_running, n_given_up;
	uint64_t n_done;         /* functions that came to their end */
	uint64_t n_failures;     /* lives that did not end in good order */
	uint64_t since_ns;       /* begin of the present state */
	uint64_t down_ns;        /* end of the last state UP */
	uint64_t moved_ns;       /* begin of the oldest function or build: its
				    take, or the end of the job before */
	uint64_t defs_seen;      /* position among the definitions
				    (per_worker.h) */
	uint64_t defs_born;      /* definitions up to here are older than the
				    worker's life */
	unsigned n_building;     /* definitions that the worker was given and
				    not answered for (building.c) */
	uint64_t building;       /* id of the oldest of these definitions; 0:
				    not known */
	uint64_t building_behind[BUILDS_KEPT]; /* functions up to these
				     attempts were given before each of these
				     definitions, the last one for all more */
	bool stack_asked;        /* the worker was asked for its stack, and has
				    not answered (stacks.h) */
	char *stack;             /* the answer; NULL: none */
	bool stuck_asked;        /* likewise, and the log is to have the answer
				    (stuck.h) */
	uint64_t stuck_run;      /* the attempt for which the worker was asked
				    last; 0: none */
	uint64_t stuck_ns;       /* the time of this question */
	char *stuck;             /* lines for the log; NULL: none */
	bool told_kill;          /* the engine was asked to kill the worker */
	bool leaves;             /* the number of workers is to be smaller: the
				    worker takes functions for it alone */
	bool dismissed;          /* `leaves`, and the engine ends the worker */
	bool left;               /* `leaves`, and the worker is gone */
	unsigned n_own;          /* functions for this worker alone without an
				    outcome */
	bool tells;              /* the worker is given functions of its own
				    table alone (names.c) */
	char name[NAME_SIZE];
	char where[96];          /* the engine's words for the worker's place */
	char *text;              /* reason of the last end, or of a fence;
				    NULL: none */
	/* States for config.worker that the loop's turn has not told yet. */
	unsigned n_events;
	struct list news;        /* workers.news, while n_events > 0 */
	unsigned n_due;          /* the first of these, to be told in this
				    turn */
	unsigned events[WORKER_EVENTS];
};

#define DEATHS_KEPT 4

/* Deaths of workers that the log has not heard of.  All fields: lock. */
struct deaths {
	unsigned n;        /* texts in use */
	unsigned n_more;   /* deaths without a text, for lack of room */
	uint64_t told_ns;  /* time of the first line in the log of the present
			      second; 0: none */
	unsigned n_told;   /* lines of the second */
	char text[DEATHS_KEPT][DEATH_LINE];
	char last[DEATH_LINE]; /* the latest text of all */
};

/* Fields without a comment of their own: lock. */
struct workers {
	_Atomic uint32_t any_given_up; /* atomic: a worker has had n_given_up > 0:
					  loop -> threads with functions */
	struct cluster_worker **all;
	size_t room;          /* places in `all` */
	unsigned n_made;      /* workers in `all` */
	unsigned n;           /* the first of these: the others have left */
	unsigned n_wanted;    /* workers to be there; those behind leave */
	unsigned n_up;        /* workers in the state UP, without leaving ones */
	uint64_t alone_ns;    /* begin of a time in which functions wait and no
				 worker is up; 0: none */
	bool unavailable;     /* the wait for a worker was too long, or the
				 engine is down: an error is raised until a
				 worker is up */
	struct list news;     /* cluster_worker.news of the workers with events
				 to be told, the oldest first */
	unsigned n_swept;     /* sweeps that were put off (per_worker.c) */
	struct list defs;     /* per-worker values, the oldest first
				 (per_worker.h) */
	struct deaths deaths;
};

/* ---- resize.c: lock held ---- */

/* How many workers there are, leaving ones included. */
unsigned evc__workers_count(const struct workers *w);

/* ---- workers.c: lock held ---- */

/* The worker with the engine's number i; NULL: the engine has not announced
   it. */
static inline struct cluster_worker *
cluster_worker_at(const struct workers *w, unsigned i)
{
	return i < w->n ? w->all[i] : NULL;
}

/* The state for the program. */
static inline unsigned
worker_told_state(const struct cluster_worker *w)
{
	return w->leaves && (w->state == EVC_WORKER_STARTING ||
			     w->state == EVC_WORKER_UP) ?
		       EVC_WORKER_LEAVING :
		       w->state;
}

/* The oldest function that the worker has, given-up ones included; NULL: none.
   Given-up functions were taken first. */
static inline const struct closure *
worker_oldest(const struct cluster_worker *w)
{
	const struct list *of = !list_empty(&w->given_up) ? &w->given_up :
							    &w->running;

	return list_empty(of) ? NULL :
				LIST_OF(of->next, struct closure, link);
}

/* The worker completes nothing more and runs perhaps: no error is raised until
   the worker is gone. */
void evc__worker_fence(evc_cluster *cl, struct cluster_worker *w,
		       const char *why);
/* No look at the last ones when they have left. */
static inline void
workers_forget_left(struct workers *w)
{
	while (w->n > w->n_wanted && w->all[w->n - 1]->left)
		w->n--;
}

/* config.worker is to hear of this state. */
void evc__worker_event(evc_cluster *cl, struct cluster_worker *w,
		       unsigned state);
/* A function of the worker was given up; the function has returned after
   all. */
void evc__worker_hangs(evc_cluster *cl, struct cluster_worker *w);
void evc__worker_back(evc_cluster *cl, struct cluster_worker *w);

/* ---- deaths.c ---- */

/* Lock held: the reason of the worker's end, or of its fence.  NULL: none. */
void evc__worker_says(struct cluster_worker *w, const char *why);
/* Lock held: the log is to hear of a death.  ran: the running function, or
   NULL. */
void evc__death_note(evc_cluster *cl, const char *text, const char *ran);
/* At a turn, lock not held: the log hears of the deaths noted.  Returns the
   time of the next look. */
uint64_t evc__deaths_tell(evc_cluster *cl);
/* Lock held: the text of an error or of a death, allocated, of DEATH_SIZE bytes
   at most; NULL: no text, or no memory. */
char *evc__text_kept(const char *text, size_t most);

/* ---- building.c: lock held ---- */

void evc__building_begins(evc_cluster *cl, struct cluster_worker *w,
			  const evc_engine_def *def);
void evc__building_ends(evc_cluster *cl, struct cluster_worker *w, uint64_t id);
void evc__building_forget(struct cluster_worker *w);
/* Is the worker in a build, and not in a function? */
bool evc__building_is_it(const struct cluster_worker *w);
/* The name of the value in its build. */
const char *evc__building_name(const evc_cluster *cl,
			       const struct cluster_worker *w);
/* A build has ended the worker: the build counts one more death. */
void evc__building_blame(evc_cluster *cl, struct cluster_worker *w);

/* ---- timeouts.c: lock held; returns the time of the next look ---- */

/* Functions that were asked to stop longer ago than the grace are given up, or
   their worker is killed. */
uint64_t evc__give_up(evc_cluster *cl, uint64_t now);
/* Functions that wait for a worker longer than worker_wait fail:
   UNAVAILABLE. */
uint64_t evc__mind_workers(evc_cluster *cl, uint64_t now);

#endif
