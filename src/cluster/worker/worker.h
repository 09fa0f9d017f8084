/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker of any engine: its functions, the objects it keeps, and the running
 * call.  Engines give tasks and take results; a worker does no input and
 * output.
 *
 * One thread runs the functions (run, define, free); any thread may cancel.
 */
#ifndef EVC_CLUSTER_WORKER_H
#define EVC_CLUSTER_WORKER_H

#include <evcoord.h>
#include <evcoord/unstable/engine.h>

#include "base/list.h"
#include "base/sync.h"
#include "wire/walk.h"

struct worker;

/* The sink's core of the function that this thread runs, on workers that share
   the cluster's memory; NULL: none.  Engines set it. */
extern __thread const void *evc__exec_of
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

struct worker_env {
	evc_coord *coord;      /* for evc_exec_coord */
	const evc_function *functions; /* must stay */
	unsigned n_functions;
	unsigned index;
	const char *name;      /* copied */
	uint64_t generation;   /* of the fencing token */
	/* An operation on a variable, at once; NULL in ret: not wanted.  Called
	   by the thread of the functions. */
	evc_status (*variable)(void *arg, const evc_engine_update *u,
			       double *ret_now, evc_value *ret_value);
	/* Note an addition of a plain function, of which nobody wants the sum:
	   0, or refused, when the worker has no coordinator.  NULL: it is made
	   at once. */
	evc_status (*note)(void *arg, const evc_engine_update *u);
	/* A plain function has ended, with the result *ret.  What is noted is
	   made, or becomes the result's updates, which stay until the next
	   note.  < 0: an addition was impossible, with a text.  NULL with
	   note. */
	evc_status (*settle)(void *arg, evc_engine_result *ret);
	/* The result of a remote that this worker has kept; false: not kept.
	   May be NULL. */
	bool (*kept)(void *arg, uint64_t id, evc_value *ret_value);
	void *arg;
};

/* 0, or -EVC_INVALID_ARGUMENT with a text: a mistake in the table. */
evc_status evc__functions_check(const evc_function *functions, unsigned n);

/* 0, or refused, and nothing is kept. */
evc_status evc__worker_new(const struct worker_env *env, struct worker **ret);
/* Drop all objects, iterators first, the youngest first. */
void evc__worker_free(struct worker *w);

/* Build an object, or drop it.  A failed build is remembered, for functions
   that use the object.  Returns the code, 0 or > 0; *ret_text (of the worker,
   until the next call) is the reason, *ret_seconds the time. */
evc_status evc__worker_define(struct worker *w, const evc_engine_def *def,
			      const char **ret_text, double *ret_seconds);

/* Run one task and fill *ret.  Value, text and updates are the worker's until
   evc__worker_done, so several tasks may run before.  A task that was cancelled
   before it began has took < 0.  Numbers of tasks grow from run to run.  A task
   is taken to begin at the end of the task before, unless a call of
   evc__worker_done or _rests was in between. */
void evc__worker_run(struct worker *w, const evc_engine_task *task,
		     evc_engine_result *ret);
void evc__worker_done(struct worker *w);
/* The memory of a result's large value becomes the caller's.  false: there is
   no such value. */
bool evc__worker_give(struct worker *w, const evc_value *value);
/* A value that evc__worker_give has given is no longer of use: its memory is
   for later results.  Drop that memory, when no large result has come for a
   while. */
void evc__worker_spare(struct worker *w, evc_value *value);
void evc__worker_spare_drop(struct worker *w);
/* Other work takes its time. */
void evc__worker_rests(struct worker *w);

/* Any thread: attempts up to n, or a single attempt, are to stop. */
void evc__worker_cancel(struct worker *w, uint64_t upto);
void evc__worker_cancel_one(struct worker *w, uint64_t n);

/* Number of objects kept. */
unsigned evc__worker_n_kept(const struct worker *w);

#endif
