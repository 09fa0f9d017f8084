/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker from the inside: the running call, the calls inside it, the objects
 * that the worker keeps, and the requests to stop.  An object is a per-worker
 * value, a dataset or an iterator.
 *
 * In comments `thread` means the thread of the functions alone.
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
#include "wire/spare.h"
#include "wire/walk.h"
#include "cluster/worker/worker.h"

#define NAME_SIZE 48
#define TEXT_SIZE 192
#define ERROR_SIZE 4096 /* bytes of the text of a function's error */
#define SMALL_SIZE 16 /* bytes of a packed number or bool */
/* evc_exec.n of a build, which no cancel of an attempt means. */
#define N_BUILDS UINT64_MAX

/* One call of one function.  Calls of datasets and map functions are inside
   another call.  All fields: thread. */
struct evc_exec {
	struct worker *w;
	const char *function;
	uint64_t n;          /* number of the attempt, or N_BUILDS */
	unsigned attempt;
	bool transactional;
	evc_value args, kwargs;
	/* The result, in `small` or of the heap (owned). */
	evc_value value;
	bool owned;
	unsigned char small[SMALL_SIZE];
	/* The text of a failure, valid for this code: a long one stands in the
	   arena. */
	evc_status fail_code;
	char text[TEXT_SIZE];
	char *long_text;     /* ERROR_SIZE bytes; NULL: not needed so far */
	bool is_long;        /* long_text has the text, and text its ends */
	struct evc_local *builds; /* the object that is built; NULL: the call
				     may keep nothing */
};

/* An object, built or failed.  All fields: thread. */
struct evc_local {
	union {
		uint64_t id;
		struct table_node node;
	};
	struct list link;         /* worker.locals, the oldest first */
	struct worker *w;
	unsigned kind;            /* EVC_DEF_... */
	unsigned refs;            /* references: the definition, and iterators
				     of the object */
	char name[NAME_SIZE];
	evc_status code;          /* > 0: the build has failed with this code */
	char text[TEXT_SIZE];     /* text of the failure */

	/* the state that a function has kept, or the value that it has
	   returned */
	bool kept;
	evc_keep_ops ops;
	void *state;
	evc_value value;          /* also: the array of a dataset of elements */

	/* fields of a dataset */
	evc_value *elements;      /* elements of `value`, of an array */
	size_t n_elements;
	const evc_function *map;
	uint64_t walks, seed;     /* walks: UINT64_MAX means no end */
	bool shuffle;

	/* fields of an iterator */
	struct evc_local *dataset; /* a reference */
	bool walking, over, inside;
	void *iterator;           /* from ops->iterate */
	uint64_t walk, in_walk;   /* number of the walk; elements that the walk
				     gave */
	size_t at;                /* place in the elements, or in `order` */
	uint32_t *order;
	evc_value current;        /* the last element; in `small`, or owned */
	bool current_owned;
	unsigned char small[SMALL_SIZE];
	unsigned char *map_args;  /* [ELEMENT] */
	size_t map_room;
};

/* A read of a transactional function, in the arena. */
struct read_note {
	struct read_note *next;
	const char *name;
	unsigned op;       /* EVC_VARIABLE_READ, _READ_HASHED, _VECTOR_READ */
	evc_value places;  /* as evc_engine_update.value */
	evc_value is;      /* as evc_engine_update.expected */
	size_t n_bytes;    /* what was read has them */
};

/* An addition to a vector by a transactional function, in the arena. */
struct vector_note {
	struct vector_note *next;
	evc_value patch;
};

/* A variable read or changed by a transactional function, in the
   arena. */
struct pending {
	struct table_name at;
	struct pending *next;
	const struct read_note *read; /* the last read; NULL: none */
	bool added;        /* `by` was added, since the variable was not set */
	bool set;          /* the variable was set */
	double by;
	struct content is; /* the content that was set */
	/* additions to the vector since, in their order; none after a set,
	   which has them in its content */
	struct vector_note *adds, *last_add;
};

/* One entry for each variable, in the order of the first read or change.  All
   fields: thread. */
struct transaction {
	struct pending *first, *last;
	struct table by_name;
	struct read_note *first_read, *last_read;
	unsigned n_reads, n_adds;
	evc_status unread; /* < 0: the first read without an answer that could
			      be compared at the end */
	char why_unread[TEXT_SIZE];
};

struct worker {
	struct worker_env env;
	unsigned fork_generation; /* creation: the process of the worker */
	char name[NAME_SIZE];
	struct functions functions;

	struct evc_exec exec;
	uint64_t ended;           /* thread: end of the last function; 0: long
				     ago */
	/* thread: what a function leaves behind that ends its thread */
	bool spliced;             /* the arguments are of the heap */
	struct evc_local *building;
	struct spare spare;       /* thread: memory of large results, from
				     evc__worker_spare */
	struct arena arena;       /* thread: results, until evc__worker_done */
	evc_status not_added;     /* thread: < 0: an addition of the running
				     function was impossible */
	char why_not_added[TEXT_SIZE];
	struct transaction tx;

	struct list locals;
	struct table by_id;       /* thread: those that were not dropped */
	unsigned n_kept, n_failed;
	bool forgot;              /* thread: a failed build was forgotten, for
				     lack of memory */
	char text[TEXT_SIZE];     /* thread: text of the last definition */

	/* Requests to stop: any thread -> thread.  On cache lines of their own,
	   because functions look at them again and again. */
	_Alignas(64) _Atomic uint64_t cancel_upto; /* atomic: grows */
	_Atomic uint32_t n_ones;  /* atomic: numbers in `ones` */
	_Atomic uint32_t bell;    /* atomic: moved by each cancel, slept on */
	_Atomic uint32_t sleepers;
	pthread_mutex_t lock;     /* of ones */
	uint64_t *ones;           /* lock: single attempts that are to stop */
	size_t ones_room;
};

/* NULL: no object with this id. */
static inline struct evc_local *
local_find(const struct worker *w, uint64_t id)
{
	return evc__table_find(&w->by_id, id);
}

/* ---- exec.c ---- */

/* Begin a call on this worker; outer: the call around it, or NULL. */
void evc__exec_begin(struct evc_exec *x, struct worker *w,
		     const struct evc_exec *outer, const char *function);
/* End a call; a result that nobody took is freed. */
void evc__exec_end(struct evc_exec *x);
/* Run the function: 0, or its code, 1..255. */
evc_status evc__exec_call(struct evc_exec *x, evc_exec_fn *fn, void *arg);
/* The code, 0..255, for a status that the program's function has returned. */
evc_status evc__exec_code(evc_status returned);
/* Give the failure of a call inside x to x. */
void evc__exec_inherit(struct evc_exec *x, const struct evc_exec *inner,
		       evc_status code);
/* The text for this code; "": none. */
const char *evc__exec_text(const struct evc_exec *x, evc_status code);
/* Move the result to *to; a small result is copied to `small`, without memory.
   true: the result is of the heap, for evc_value_free. */
bool evc__exec_take(struct evc_exec *x, evc_value *to, unsigned char *small);

/* ---- cancel.c ---- */

/* Is this a fork child, made by a function, with a copy of the worker? */
bool evc__worker_inherited(const struct worker *w);
/* 0, or refused in a fork child. */
evc_status evc__worker_check(const struct worker *w);
/* Is this attempt to stop?  Any thread. */
bool evc__worker_is_cancelled(struct worker *w, uint64_t n);
/* Among the single cancels: is this attempt to stop? forget: drop cancels of
   earlier attempts. */
bool evc__worker_is_one(struct worker *w, uint64_t n, bool forget);
/* Wake sleepers on the bell.  Any thread. */
void evc__worker_ring(void *w);

/* ---- exec_variable.c, exec_vector.c ---- */

/* How a function reads. */
typedef evc_status read_fn(const evc_exec *x, const char *name, evc_value *ret);

/* 0, or refused: no operation of a function on a variable. */
evc_status evc__exec_check_update(const evc_exec *x,
				  const evc_engine_update *u);
/* An operation at once, without a note. */
evc_status evc__exec_ask(const evc_exec *x, const evc_engine_update *u,
			 double *ret_now, evc_value *ret_value);
/* Read a variable elsewhere, and note the value. */
evc_status evc__exec_read(const evc_exec *x, const char *name, evc_value *ret);

/* ---- transaction.c ---- */

evc_status evc__transaction_no_memory(void);
/* NULL: the function has neither read nor changed this variable. */
struct pending *evc__transaction_find(const struct transaction *tx,
				      const char *name);
/* The note for this name, made if need be; NULL: no memory. */
struct pending *evc__transaction_note(struct worker *w, const char *name);
/* Note what was read, which others may change before the function ends; places:
   of a vector, else NULL.  Two reads with different contents are two notes, one
   of which cannot hold in the end.  false: no memory. */
bool evc__transaction_read(struct worker *w, struct pending *p,
			   const evc_value *places, const evc_value *v);
/* Note an addition to a vector; false: no memory. */
bool evc__transaction_add(struct worker *w, struct pending *p,
			  const evc_value *patch);
/* A read has failed with st < 0 and the text of evc_last_error, for another
   reason than its variable's content: the function cannot succeed any more.
   Returns st. */
evc_status evc__transaction_unread(struct worker *w, evc_status st);
/* What the function has read, for its result, and with code 0 its changes; in
   the arena.  false: no memory. */
bool evc__transaction_take(struct worker *w, evc_engine_result *ret);
/* Drop all of it. */
void evc__transaction_drop(struct worker *w);
void evc__transaction_destroy(struct worker *w);

/* ---- exec_add.c ---- */

/* An addition of a plain function without a sum: 0, or refused. */
evc_status evc__exec_add_loosely(const evc_exec *x,
				 const evc_engine_update *u);
/* The plain function has ended: its additions are made, or in *ret.  The text,
   of this thread's last error, and ret->code: one was impossible, so the
   function has failed; else NULL. */
const char *evc__exec_settle_additions(struct worker *w,
				       evc_engine_result *ret);

/* ---- local.c ---- */

void evc__locals_destroy(struct worker *w);
/* The build of this object has ended the thread. */
void evc__local_abandon(struct evc_local *l);
/* An object among the arguments that could not be built: its code, > 0, and its
   text in *ret_text (in the arena; NULL: no memory). 0: none. */
evc_status evc__local_failed_input(struct worker *w, const evc_value *args,
				   const evc_value *kwargs,
				   const char **ret_text);

/* ---- dataset.c ---- */

/* The build of a dataset and of an iterator, after the common part: 0, or a
   code and a text in l->text. */
evc_status evc__dataset_build(struct evc_local *l, const evc_engine_def *def);
evc_status evc__iterator_build(struct evc_local *l, struct evc_exec *x,
			       struct evc_local *dataset);
void evc__iterator_destroy(struct evc_local *l);

#endif
