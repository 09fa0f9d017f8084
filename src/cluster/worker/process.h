/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker that is a process, from the inside: what the thread of the functions
 * and the thread of the control stream share.
 */
#ifndef EVC_CLUSTER_WORKER_PROCESS_H
#define EVC_CLUSTER_WORKER_PROCESS_H

#include <evcoord.h>
#include <evcoord/unstable/engine.h>

#include "base/sync.h"
#include "wire/frames.h"
#include "cluster/worker/worker.h"
#include "engine/kept.h"

/* The environment of a worker: the version of what stands there, the numbers of
   its two streams, the process that has started it. */
#define WORKER_VARIABLE "EVCOORD_WORKER"
#define WORKER_PROTOCOL 1

struct speed;

struct worker_process {
	/* ---- set before the control thread ---- */
	evc_coord *coord;
	unsigned fork_generation; /* whose process it is */
	int data, control;
	size_t max_frame;

	/* ---- shared ---- */
	/* atomic: the thread of the functions -> control: the end of that
	   stream is no surprise */
	_Atomic uint32_t leaving;
	pthread_mutex_t lock;
	/* lock: the thread of the functions has it, without the lock, and takes it
	   away at its end -> control */
	struct worker *w;
	uint64_t begun;     /* lock: the attempt that has begun last */
	uint64_t back_upto; /* lock: those up to here do not begin any more */

	/* ---- the control thread alone ---- */
	uint64_t until_ns;  /* this process ends then; 0: it does not */
	uint64_t set_ns;    /* and that is what the timer is set to; 0: there
			       is none */
	timer_t timer;

	/* ---- the thread of the functions alone ---- */
	const evc_function *functions;
	unsigned n_functions;
	struct bytes in;
	struct bytes retired; /* a task that runs points into it */
	size_t current;       /* bytes of the frame that is in use; it stands
				 first, in in or in retired */
	size_t scanned;       /* of in: there is no answer before that */
	struct bytes out;
	double unsent;        /* seconds that the functions took whose results
				 are in out */
	struct speed *speeds; /* of the functions, by their names */
	bool gone;            /* the coordinator is */
	struct kept kept;
};

/* ---- worker_link.c ---- */

/* Send what is in out.  false: the coordinator is gone. */
bool evc__worker_flush(struct worker_process *p);
/* The frame that comes next, waited for: 1; 0: there is none, the stream has
   ended; -EVC_... with a text. */
int evc__worker_next(struct worker_process *p, struct frame *ret);
/* It is done with. */
void evc__worker_used(struct worker_process *p);
/* The first frame of that type, which others may stand before; for in the middle
   of a function.  As evc__worker_next. */
int evc__worker_await(struct worker_process *p, unsigned type,
		      struct frame *ret);
/* The same was read, and will not be seen again. */
void evc__worker_erase(struct worker_process *p, const struct frame *f);

/* ---- worker_control.c ---- */

/* Start and end the thread of the control stream.  0, or refused. */
evc_status evc__worker_control_start(struct worker_process *p);
void evc__worker_control_end(struct worker_process *p);
/* There is nothing to run any more: it is the caller's.  NULL: there was none. */
struct worker *evc__worker_take(struct worker_process *p);
/* Begin this attempt.  false: it was taken back, and is nobody's here. */
bool evc__worker_begin(struct worker_process *p, uint64_t n);

/* ---- worker_serve.c ---- */

/* Run functions until the end: 0, or > 0. */
evc_status evc__worker_serve(struct worker_process *p);
evc_status evc__worker_variable(void *arg, const evc_engine_update *u,
				double *ret_now, evc_value *ret_value);
bool evc__worker_kept(void *arg, uint64_t id, evc_value *ret_value);

/* ---- worker_speed.c ---- */

/* How long functions take, by their names: a result is not held back while one
   that may take long begins.  false: no memory. */
bool evc__speeds_init(struct worker_process *p);
void evc__speeds_free(struct worker_process *p);
/* NULL: no function of that name. */
struct speed *evc__speed_of(struct worker_process *p, const char *function);
bool evc__speed_is_quick(const struct speed *s);
void evc__speed_add(struct speed *s, double took);

#endif
