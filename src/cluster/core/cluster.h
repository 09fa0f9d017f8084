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
 * until it has its outcome, which stays.  One lock, q.lock, guards all of the
 * cluster's data; its holders make a few list operations, because workers take
 * and finish many functions at once.
 *
 * The first error closes the queue: queued functions are cancelled, running
 * ones are asked to stop.  When nothing runs any more the error may be raised,
 * which opens the queue again.
 *
 * The loop has the timers (turn.c) and makes the callbacks.  Functions of the
 * program are never called under the lock; operations of the engine are.
 *
 * `handles` counts the program's handles.  `refs` keeps the memory as long as
 * the program has remotes and per-worker values.
 *
 * The comment of a field begins with its guard:
 *     creation  set before other threads see the cluster
 *     lock      q.lock
 *     loop      the thread of the cluster's loop alone
 *     atomic    the field itself; writer -> reader
 *     names     the lock of open/names_open.c
 */
#ifndef EVC_CLUSTER_CLUSTER_H
#define EVC_CLUSTER_CLUSTER_H

#include <ev.h>
#include <evcoord.h>
#include <evcoord/cluster.h>
#include <evcoord/unstable/engine.h>
#include <evcoord/post.h>

#include "base/refgate.h"
#include "base/list.h"
#include "base/reserved.h"
#include "base/sync.h"
#include "base/text.h"
#include "base/deadline.h"
#include "cluster/variables/variable.h"
#include "engine/death.h"
#include "engine/on_loop.h"
#include "wire/uri.h"

#define NAME_SIZE 48
#define TEXT_SIZE 192

#include "cluster/core/checkpoint.h"
#include "cluster/core/closures.h"
#include "cluster/core/names.h"
#include "cluster/core/workers.h"
#include "cluster/core/per_worker.h"
#include "cluster/core/remote.h"
#include "cluster/core/report.h"
#include "cluster/core/scope.h"
#include "cluster/core/sink.h"
#include "cluster/core/stacks.h"
#include "cluster/core/stuck.h"
#include "cluster/core/stop.h"
#include "cluster/core/turn.h"
#include "cluster/core/variable_ask.h"
#include "cluster/core/watchdog.h"

struct evc_cluster {
	char name[NAME_SIZE];       /* creation */
	char *uri;                  /* creation */
	uint32_t serial;            /* creation: stands in values; no two
				       clusters of a process have the same */
	evc_cluster_config config;  /* creation: with defaults and copied
				       strings */
	evc_coord *scope;           /* creation */
	uint64_t born_ns;           /* creation */
	void (*destroy)(evc_cluster *cl); /* creation: frees the memory */
	_Atomic uint32_t handles;   /* atomic: of the program */
	_Atomic uint32_t refs;      /* atomic: of the memory: for all handles,
				       the scope, each remote and per-worker
				       value */
	struct closures q;          /* closures: functions without an outcome,
				       the error to be raised, the lock */
	struct engine_side engine;
	struct workers workers;
	struct function_names names;
	struct remotes remotes;
	struct cluster_stop stop;
	struct cluster_life life;
	struct cluster_loop loop;
	struct turn turn;
	struct checkpoint checkpoint;
	struct asking asking;
	struct counts count;
	struct stacks stacks;
	struct watchdog watchdog;
	struct variables vars;      /* its own lock, below q.lock; for an engine
				       that keeps the variables only the number
				       of functions without updates */
};

/* ---- cluster.c ---- */

void evc__cluster_ref(evc_cluster *cl);
void evc__cluster_unref(evc_cluster *cl); /* the last one frees the memory */
/* The check of a call by the program: 0, or refused: NULL, or a fork child. */
evc_status evc__cluster_check(const evc_cluster *cl);
/* Seconds that the stop of the cluster's scope has left; INFINITY: no stop; 0
   also when the scope is gone. */
double evc__cluster_left(evc_cluster *cl);
/* Lock held: this worker, or EVC_ENGINE_ANY, may find something to do. */
void evc__wake(evc_cluster *cl, int worker);

/* Is this a fork child, with a copy of the cluster?  Locks of the copy may be
   held for ever.  The question follows each call of the program's functions,
   which may have forked. */
static inline bool
cluster_inherited(const evc_cluster *cl)
{
	return on_loop_is_foreign(&cl->loop.on);
}

/* Does the engine keep the variables? */
static inline bool
cluster_asks(const evc_cluster *cl)
{
	return (cl->engine.ops->caps & EVC_ENGINE_VARIABLES) != 0;
}

/* check_path() of checkpoint.c has found the name out. */
static inline bool
checkpoint_is(const evc_cluster *cl, const char *path)
{
	return path == cl->config.checkpoint;
}

/* Functions may see the scope's stop before the cluster does. */
static inline bool
cluster_is_stopped(const evc_cluster *cl)
{
	return cl->stop.begun || evc_should_stop(cl->scope);
}

/* Lock held: why functions wait at the moment, behind what is said of one. */
static inline void
cluster_add_trouble(const evc_cluster *cl, struct text *t)
{
	if (cl->engine.trouble[0] != '\0')
		evc__text_fmt(t, ": %s", cl->engine.trouble);
}

#endif
