/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker, wherever it runs: the functions it knows, what it keeps, and the
 * call that is in progress.  Engines give it tasks and take results; it does no
 * input and output of its own.
 *
 * One thread runs its functions (run, define, free); any thread may cancel.
 */
#ifndef EVC_CLUSTER_WORKER_H
#define EVC_CLUSTER_WORKER_H

#include <evcoord.h>
#include <evcoord/unstable/engine.h>

#include "base/list.h"
#include "base/sync.h"
#include "wire/walk.h"

struct worker;

/* The sink's core of the function that this thread runs, for workers that share
   the cluster's memory; NULL: it runs none.  Engines set it. */
extern __thread const void *evc__exec_of
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

struct worker_env {
	evc_coord *coord;      /* of evc_exec_coord */
	const evc_function *functions; /* stays */
	unsigned n_functions;
	unsigned index;
	const char *name;      /* copied */
	uint64_t generation;   /* of the fencing token */
	/* A variable, at once; NULL in ret: not wanted.  Called by the thread
	   of the functions. */
	evc_status (*variable)(void *arg, const evc_engine_update *u,
			       double *ret_now, evc_value *ret_value);
	/* The result of a remote that this worker has kept; false: it has not.
	   May be NULL. */
	bool (*kept)(void *arg, uint64_t id, evc_value *ret_value);
	void *arg;
};

/* A table without mistakes?  0 or -EVC_INVALID_ARGUMENT with a text. */
evc_status evc__functions_check(const evc_function *functions, unsigned n);

/* 0, or refused; nothing is kept then. */
evc_status evc__worker_new(const struct worker_env *env, struct worker **ret);
/* Drops all it keeps, iterators first, the latest first. */
void evc__worker_free(struct worker *w);

/* Build, or drop.  What could not be built is remembered as failed, for those
   that use it.  Returns its code, 0 or > 0; *ret_text (of the worker, until the
   next call) says why; *ret_seconds how long it took. */
evc_status evc__worker_define(struct worker *w, const evc_engine_def *def,
			      const char **ret_text, double *ret_seconds);

/* Run one task.  *ret is filled: value, text and updates are the worker's until
   evc__worker_done, so several may be run before it.  One that was cancelled
   before it began has took < 0.  Numbers of tasks grow from run to run.  It is
   taken to begin where the one before it ended, unless there was one of the
   calls below in between. */
void evc__worker_run(struct worker *w, const evc_engine_task *task,
		     evc_engine_result *ret);
void evc__worker_done(struct worker *w);
/* Something else takes its time. */
void evc__worker_rests(struct worker *w);

/* Any thread: attempts up to n, or this one alone, are to stop. */
void evc__worker_cancel(struct worker *w, uint64_t upto);
void evc__worker_cancel_one(struct worker *w, uint64_t n);

/* How many it keeps: values, datasets, iterators. */
unsigned evc__worker_n_kept(const struct worker *w);

#endif
