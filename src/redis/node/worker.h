/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node's workers: what has come for each, and what its engine has taken.
 */
#ifndef EVC_REDIS_NODE_WORKER_H
#define EVC_REDIS_NODE_WORKER_H

#include "redis/client/redis.h"

struct session;

/* An entry of the node's stream; the jobs that came in the entry point into its
   bytes.  Loop thread only. */
struct entry {
	unsigned refs;
	size_t n;
	unsigned char bytes[];
};

/* A function, or a definition to build or to drop.  Loop thread only. */
struct job {
	struct job *next;
	struct entry *entry;
	bool is_def;
	union {
		evc_engine_task task; /* inputs: allocated */
		evc_engine_def def;
	};
	struct value **values; /* by input; NULL: no input has a key */
	uint64_t taken;        /* the engine has taken so many before */
};

/* Loop thread only. */
struct queue {
	struct job *first, *last;
	unsigned n;
};

enum worker_state {
	WORKER_STARTING, /* not up yet, or to be started again */
	WORKER_UP,
	WORKER_FENCED,
	WORKER_GONE
};

/* A worker, through all its starts.  session and index are set at creation, all
   other fields are for the loop thread only. */
struct local_worker {
	struct session *session;
	unsigned index;
	unsigned rank;       /* number of the worker in the cluster */
	bool ranked;         /* the rank is known */
	enum worker_state state;
	uint32_t number;     /* of the worker's last start */
	long pid;            /* 0: no process */
	struct queue waits;  /* jobs that the engine has not taken */
	struct queue has;    /* functions that the engine has taken */
	struct queue builds; /* definitions that the engine has taken */
	uint64_t n_taken;    /* jobs that the engine has taken */
	struct job *drop;    /* freed at the next call of defs; NULL: none */
	uint64_t newest;     /* greatest number of a function that came */
	double moved;        /* ev_now of the last end of a function, or of the
				first take */
	double since;        /* ev_now of the last change, for people */
	struct question *question; /* NULL: no question is without an answer */
	uint64_t n_asked;    /* questions so far */
	unsigned n_deals;    /* results with updates without an answer of the
				server; questions wait for these */
};

/* ---- worker.c ---- */

void evc__node_queue_add(struct queue *q, struct job *job);
struct job *evc__node_queue_first(struct queue *q);
/* Take the function with number n, or the definition with id n, out of the
   queue.  NULL: not found. */
struct job *evc__node_queue_take(struct queue *q, bool is_def, uint64_t n);
/* The present job of the worker, the oldest of `has` and `builds`.  NULL:
   none. */
const struct job *evc__node_worker_job(const struct local_worker *w);
/* The engine takes a job, which begins when those before have ended; q: `has` or
   `builds`. */
void evc__node_worker_take(struct local_worker *w, struct queue *q,
			   struct job *job);
/* A job has come for the worker. */
void evc__node_worker_add(struct local_worker *w, struct job *job);
void evc__node_job_free(struct job *job);
/* Free all jobs of the worker. */
void evc__node_worker_clear(struct local_worker *w);
/* Give back the functions that wait, up to a number; or one function. */
void evc__node_give_back(struct local_worker *w, uint64_t upto);
void evc__node_give_back_one(struct local_worker *w, uint64_t n);
/* Give back functions that wait too long behind another one, from now on. */
void evc__node_give_back_init(struct session *s);
void evc__node_give_back_watch(struct session *s);

/* ---- sink.c ---- */

extern const evc_engine_sink evc__node_sink;
/* The coordinator asks where the worker stands. */
void evc__node_look(struct local_worker *w);

/* ---- variables.c ---- */

/* As evc_engine_sink.variable. */
evc_status evc__node_ask(struct local_worker *w, const evc_engine_update *u);
/* Tell the coordinator once in a session that a variable is used, before the
   result of the function: a restart of the server may then be a loss. */
void evc__node_tell_used(struct local_worker *w, const char *name);
/* Drop the worker's question: no answer is wanted any more. */
void evc__node_ask_drop(struct local_worker *w);
/* Send the questions that are not under way and need not wait. */
void evc__node_ask_resume(struct session *s);

#endif
