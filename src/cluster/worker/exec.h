/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker from the inside: the call that is in progress, the calls inside it,
 * what the worker keeps, and how it is asked to stop.
 */
#ifndef EVC_CLUSTER_EXEC_H
#define EVC_CLUSTER_EXEC_H

#include <evcoord.h>
#include <evcoord/unstable/engine.h>

#include "base/list.h"
#include "base/sync.h"
#include "cluster/worker/arena.h"
#include "cluster/worker/functions.h"
#include "cluster/variables/table.h"
#include "wire/walk.h"
#include "cluster/worker/worker.h"

#define NAME_SIZE 48
#define TEXT_SIZE 192
#define SMALL_SIZE 16 /* a number or a bool packed */
#define LOCAL_BUCKETS 64
/* The number of a call that no cancel of an attempt means: something is being
   built. */
#define N_BUILDS UINT64_MAX

/* One call of one function.  Those of datasets and map functions are inside
   another one. */
struct evc_exec {
	struct worker *w;
	const char *function;
	uint64_t n;          /* of the attempt, or N_BUILDS */
	unsigned attempt;
	bool transactional;
	evc_value args, kwargs;
	/* What it returns: in small, or of the heap. */
	evc_value value;
	bool owned;
	unsigned char small[SMALL_SIZE];
	/* What it has said of its failure; it counts with that code. */
	evc_status fail_code;
	char text[TEXT_SIZE];
	struct evc_local *builds; /* may be kept for; NULL: nothing may */
};

/* Something that was built here, or could not be. */
struct evc_local {
	struct list link;         /* worker.locals, the oldest first */
	struct evc_local *next;   /* of its bucket */
	struct worker *w;
	uint64_t id;
	unsigned kind;            /* EVC_DEF_... */
	unsigned refs;            /* its definition, iterators of it */
	char name[NAME_SIZE];
	evc_status code;          /* > 0: it could not be built, */
	char text[TEXT_SIZE];     /* because */

	/* what a function has kept, or returned */
	bool kept;
	evc_keep_ops ops;
	void *state;
	evc_value value;          /* of a dataset of elements: their array */

	/* a dataset */
	evc_value *elements;      /* of an array of elements: in value */
	size_t n_elements;
	const evc_function *map;
	uint64_t walks, seed;     /* UINT64_MAX: without an end */
	bool shuffle;

	/* an iterator */
	struct evc_local *dataset; /* a reference */
	bool walking, over, inside;
	void *iterator;           /* of ops->iterate */
	uint64_t walk, in_walk;   /* this one's number, elements it gave */
	size_t at;                /* in elements, or in order: */
	uint32_t *order;
	evc_value current;        /* what it gave last; in small, or its own */
	bool current_owned;
	unsigned char small[SMALL_SIZE];
	unsigned char *map_args;  /* [ELEMENT] */
	size_t map_room;
};

/* What a transactional function has done to a variable. */
struct pending {
	const char *name;  /* in the arena */
	uint32_t hash;
	bool set;          /* it was set; else added to: by */
	double by;
	struct content is; /* what it was set to */
};

/* All of it: one for each name, in the order of the first touch. */
struct transaction {
	struct pending *all;
	uint32_t *slots;   /* 1 + an index, by the name; twice as many */
	uint32_t room, n;
};

struct worker {
	struct worker_env env;
	unsigned fork_generation; /* whose process it is */
	char name[NAME_SIZE];
	struct functions functions;

	struct evc_exec exec;
	uint64_t ended;           /* when the last one has; 0: a while ago */
	/* What a function that ends its thread leaves behind. */
	bool spliced;             /* its arguments are of the heap */
	struct evc_local *building;
	struct arena arena;       /* results, until evc__worker_done */
	struct transaction tx;

	struct list locals;
	struct evc_local *buckets[LOCAL_BUCKETS];
	unsigned n_kept, n_failed;
	bool forgot;              /* no memory to remember one that failed */
	char text[TEXT_SIZE];     /* of the last definition */

	/* How it is told to stop: by any thread -> the function's.  On lines
	   of their own, as functions look at them again and again. */
	_Alignas(64) _Atomic uint64_t cancel_upto; /* grows */
	_Atomic uint32_t n_ones;  /* how many stand in ones */
	_Atomic uint32_t bell;    /* moved by each cancel, slept on */
	_Atomic uint32_t sleepers;
	pthread_mutex_t lock;     /* of ones */
	uint64_t *ones;           /* single attempts that are to stop */
	uint32_t ones_room;
};

static inline struct evc_local **
local_bucket(const struct worker *w, uint64_t id)
{
	return (struct evc_local **)&w->buckets[id % LOCAL_BUCKETS];
}

/* NULL: nothing with this id was defined. */
static inline struct evc_local *
local_find(const struct worker *w, uint64_t id)
{
	struct evc_local *l = *local_bucket(w, id);

	while (l != NULL && l->id != id)
		l = l->next;
	return l;
}

/* ---- exec.c ---- */

/* A call on this worker, inside another one (outer NULL: in none). */
void evc__exec_begin(struct evc_exec *x, struct worker *w,
		     const struct evc_exec *outer, const char *function);
/* What it has returned and nobody took over goes. */
void evc__exec_end(struct evc_exec *x);
/* Call it: 0, or its code, 1..255. */
evc_status evc__exec_call(struct evc_exec *x, evc_exec_fn *fn, void *arg);
/* 0..255 of what a function of the program's has returned. */
evc_status evc__exec_code(evc_status returned);
/* Why a call inside this one failed: as if this one had said so. */
void evc__exec_inherit(struct evc_exec *x, const struct evc_exec *inner,
		       evc_status code);
/* What it has said of that code; "": nothing. */
const char *evc__exec_text(const struct evc_exec *x, evc_status code);
/* Its value goes to *to; one that is small is copied into small, so no memory
   is needed.  true: it is of the heap, for evc_value_free. */
bool evc__exec_take(struct evc_exec *x, evc_value *to, unsigned char *small);

/* ---- cancel.c ---- */

/* Is this a fork child of a function's?  It has a copy of all this. */
bool evc__worker_inherited(const struct worker *w);
/* What a function asks others for: refused there. */
evc_status evc__worker_check(const struct worker *w);
/* Is this attempt to stop?  Any thread. */
bool evc__worker_is_cancelled(struct worker *w, uint64_t n);
/* There are single cancels: is this one meant?  forget: those before it are
   over. */
bool evc__worker_is_one(struct worker *w, uint64_t n, bool forget);
/* Whoever sleeps on the bell looks again.  Any thread. */
void evc__worker_ring(void *w);

/* ---- exec_variable.c ---- */

/* What the function has done to variables, for its result; in the arena.
   false: no memory. */
bool evc__transaction_take(struct worker *w, evc_engine_result *ret);
/* Nothing of it counts. */
void evc__transaction_drop(struct worker *w);
void evc__transaction_destroy(struct worker *w);

/* ---- local.c ---- */

void evc__locals_destroy(struct worker *w);
/* Its build has ended the thread. */
void evc__local_abandon(struct evc_local *l);
/* Is there an input among these that could not be built?  > 0: its code, and
   *ret_text (in the arena; NULL: no memory) is the whole text. */
evc_status evc__local_failed_input(struct worker *w, const evc_value *args,
				   const evc_value *kwargs,
				   const char **ret_text);

/* ---- dataset.c ---- */

/* What is special about these, once they were built otherwise: 0, or a code and
   a text in l->text. */
evc_status evc__dataset_build(struct evc_local *l, const evc_engine_def *def);
evc_status evc__iterator_build(struct evc_local *l, struct evc_exec *x,
			       struct evc_local *dataset);
void evc__iterator_destroy(struct evc_local *l);

#endif
