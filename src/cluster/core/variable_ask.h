/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables that the engine keeps: what the calls of the program, and
 * checkpoints, ask of it.  The lock is not held in any of these; calls that wait
 * are refused on the cluster's loop, with -EVC_FAILED_PRECONDITION, and after
 * its end, with -EVC_CANCELLED.  Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_VARIABLE_ASK_H
#define EVC_CLUSTER_VARIABLE_ASK_H

/* Functions that have finished: those without updates are counted in cl->vars,
   transactional ones by the engine. */
struct asking {
	unsigned n;         /* lock: calls of ops->ask that have not returned */
	bool over;          /* lock: nothing is asked any more */
	uint64_t seen;      /* lock: transactional functions whose results came */
	uint64_t base;      /* lock: functions that the engine has counted beside
			       these */
	uint64_t least;     /* lock: the engine's largest answer */
	bool known;         /* lock: the engine has answered once */
};

/* One operation, as evc__variable_do. */
evc_status evc__kept_do(evc_cluster *cl, const evc_engine_update *u,
			double *ret_now, evc_value *ret_value);
/* All of them at one moment, into a table that nobody else sees and that is
   empty; its `finished` is that of all functions. */
evc_status evc__kept_all(evc_cluster *cl, struct variables *to,
			 uint64_t *ret_changes);
/* Those of a table that nobody else sees, in place of all. */
evc_status evc__kept_replace(evc_cluster *cl, struct variables *by);
/* How many functions have finished; waits where that is possible. */
uint64_t evc__kept_n_finished(evc_cluster *cl);

/* Would it wait on the loop?  0, or refused. */
evc_status evc__kept_refuse_here(const evc_cluster *cl);
/* Ask without waiting.  false: there is no engine any more, or not yet, and done
   is not called. */
bool evc__kept_ask(evc_cluster *cl, evc_engine_question *q);
/* A question of the kind EVC_VARIABLE_REPLACE was answered well. */
void evc__kept_replaced(evc_cluster *cl, uint64_t finished);

#endif
