/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker that is a process, from the inside: the data of the thread of the
 * functions and of the thread of the control stream.
 */
#ifndef EVC_CLUSTER_WORKER_PROCESS_H
#define EVC_CLUSTER_WORKER_PROCESS_H

#include <evcoord.h>
#include <evcoord/unstable/engine.h>

#include "base/sync.h"
#include "wire/frames.h"
#include "cluster/worker/worker.h"
#include "engine/kept.h"

/* The environment of a worker: the version, the numbers of its two streams, the
   pid of its parent. */
#define WORKER_VARIABLE "EVCOORD_WORKER"
#define WORKER_PROTOCOL 1

#define HEARD_ALL UINT32_MAX

struct speed;

#define ADDITIONS_MOST 256

/* An addition of a plain function, which is noted; `name` is a place in
   additions.names. */
struct addition {
	size_t name;
	double by;
};

/* additions.c.  All fields without a word: lock. */
struct additions {
	pthread_mutex_t lock;
	struct addition at[ADDITIONS_MOST];
	unsigned n;
	char names[16384];
	size_t n_names;      /* bytes of `names` in use */
	uint64_t group;      /* grows when a note comes to none */
	unsigned unanswered; /* questions that nobody has waited for */
	bool settling;       /* the function is over: its own thread sends the
				notes */
	evc_status failed;   /* < 0: an addition was impossible */
	char why[192];
	/* atomic, a futex: the thread of the functions -> the thread that sends
	   what has waited */
	_Atomic uint32_t bell;
	/* ---- the thread of the functions alone ---- */
	bool has_thread;
	bool used; /* since the last evc__additions_settle */
	evc_engine_update updates[ADDITIONS_MOST]; /* of the last result */
};

struct worker_process {
	/* ---- set before the control thread ---- */
	evc_coord *coord;
	unsigned fork_generation; /* the process of the worker */
	int data, control;
	int tid;                  /* of the thread of the functions */
	size_t max_frame;

	/* ---- shared ---- */
	/* atomic: the thread of the functions -> control: the end of the
	   control stream is no surprise */
	_Atomic uint32_t leaving;
	/* atomic, a futex; control counts: odd while it has bytes of its stream
	   that are not obeyed, even when the stream was empty; HEARD_ALL:
	   nobody is to wait for it */
	_Atomic uint32_t heard;
	pthread_mutex_t lock;
	/* lock: for control, to cancel; the thread of the functions uses w
	   without the lock, and takes it away at the end */
	struct worker *w;
	uint64_t begun;     /* lock: the latest attempt that has begun */
	uint64_t back_upto; /* lock: attempts up to here do not begin any
			       more */

	/* ---- the control thread alone ---- */
	uint64_t until_ns;  /* end of this process; 0: none */
	uint64_t set_ns;    /* the timer's setting; 0: no timer */
	timer_t timer;

	/* ---- the thread of the functions alone ---- */
	const evc_function *functions;
	unsigned n_functions;
	struct bytes in;
	bool grown;           /* there may be memory of large values */
	unsigned n_small;     /* frames since the last large one */
	struct bytes retired; /* memory of a running task's frame */
	size_t current;       /* bytes of the frame in use, which stands first
				 in `in` or in `retired` */
	size_t scanned;       /* bytes of `in` without an answer */
	struct outgoing out;
	double unsent;        /* seconds that the functions with results in
				 `out` took */
	struct speed *speeds; /* by names of functions */
	bool gone;            /* the coordinator is gone */
	struct kept kept;

	struct additions additions;
};

/* ---- link.c ---- */

/* Send `out`. false: the coordinator is gone. */
bool evc__worker_flush(struct worker_process *p);
/* Send of `out` what can be sent without waiting. */
void evc__worker_flush_some(struct worker_process *p);
/* Wait for the next frame: 1; 0: the stream has ended; -EVC_... with a text. */
int evc__worker_next(struct worker_process *p, struct frame *ret);
/* The frame is done with. */
void evc__worker_used(struct worker_process *p);
/* Wait for the first frame of this type, behind frames of other types: for a
   function in the middle.  As evc__worker_next. */
int evc__worker_await(struct worker_process *p, unsigned type,
		      struct frame *ret);
/* Remove the frame that evc__worker_await has found. */
void evc__worker_erase(struct worker_process *p, const struct frame *f);

/* ---- control.c ---- */

/* Start and end the thread of the control stream. 0, or refused. */
evc_status evc__worker_control_start(struct worker_process *p);
void evc__worker_control_end(struct worker_process *p);
/* No function runs any more: the worker becomes the caller's.  NULL: there is
   none. */
struct worker *evc__worker_take(struct worker_process *p);
/* Begin this attempt. false: the attempt was taken back, and does not run
   here. */
bool evc__worker_begin(struct worker_process *p, uint64_t n);

/* ---- additions.c ---- */

/* As worker_env.note and .settle. */
evc_status evc__additions_note(void *arg, const evc_engine_update *u);
evc_status evc__additions_settle(void *arg, evc_engine_result *ret);
/* Send all notes, and wait for the answers.  false: the coordinator is gone. */
bool evc__additions_flush(struct worker_process *p);
/* End the thread. */
void evc__additions_end(struct worker_process *p);

/* ---- serve.c ---- */

/* Run functions until the end: 0, or > 0. */
evc_status evc__worker_serve(struct worker_process *p);
evc_status evc__worker_variable(void *arg, const evc_engine_update *u,
				double *ret_now, evc_value *ret_value);
bool evc__worker_kept(void *arg, uint64_t id, evc_value *ret_value);

/* ---- speed.c ---- */

/* Times of functions, by their names: a result is not held back while a long
   function may begin. false: no memory. */
bool evc__speeds_init(struct worker_process *p);
void evc__speeds_free(struct worker_process *p);
/* NULL: no function of this name. */
struct speed *evc__speed_of(struct worker_process *p, const char *function);
bool evc__speed_is_quick(const struct speed *s);
void evc__speed_add(struct speed *s, double took);

#endif
