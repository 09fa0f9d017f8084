/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables that the engine keeps: questions of the program's calls and of
 * checkpoints.  The lock is not held in these functions.  Calls that wait are
 * refused on the cluster's loop, with -EVC_FAILED_PRECONDITION, and after the
 * cluster's end, with -EVC_CANCELLED.  Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_VARIABLE_ASK_H
#define EVC_CLUSTER_VARIABLE_ASK_H

/* The number of functions that have finished.  Functions without updates are
   counted in cl->vars, transactional ones by the engine.  Where the engine
   cannot be asked, its last answer counts, and results since. */
struct asking {
	unsigned n;         /* lock: calls of ops->ask that have not returned */
	bool over;          /* lock: nothing is asked any more */
	uint64_t seen;      /* lock: transactional functions with a result */
	uint64_t base;      /* lock: functions in the engine's count beyond
			       `seen` */
	uint64_t least;     /* lock: the engine's largest answer */
	bool known;         /* lock: the engine has answered once */
	bool any;           /* lock: the program has changed variables, or an
			       answer was no refusal, or a worker was up */
};

/* One operation, as evc__variable_do. */
evc_status evc__kept_do(evc_cluster *cl, const evc_engine_update *u,
			double *ret_now, evc_value *ret_value);
/* One operation of a program, here or by the engine (calls/variable.c). */
evc_status evc__variable_perform(evc_cluster *cl, const evc_engine_update *u,
				 double *ret_now, evc_value *ret_value);
/* The variables at one moment. */
struct kept_state {
	uint64_t finished;   /* all functions */
	uint64_t changes;    /* grows with each change */
	uint64_t generation; /* see evc_engine_answer */
};

/* All variables, into an empty pile, which is settled then. */
evc_status evc__kept_all(evc_cluster *cl, struct pile *to,
			 struct kept_state *ret);
/* The numbers alone. */
evc_status evc__kept_counts(evc_cluster *cl, struct kept_state *ret);
/* The variables of a list, in place of all. */
evc_status evc__kept_replace(evc_cluster *cl, const struct variable_list *by);
/* Functions that have finished; waits where a wait is possible. */
uint64_t evc__kept_n_finished(evc_cluster *cl);

/* 0, or refused: this is the loop, where the call would wait. */
evc_status evc__kept_refuse_here(const evc_cluster *cl);
/* Ask without waiting. false: the engine is not open, and `done` is not
   called. */
bool evc__kept_ask(evc_cluster *cl, evc_engine_question *q);
/* A question EVC_VARIABLE_REPLACE has succeeded. */
void evc__kept_replaced(evc_cluster *cl, uint64_t finished);

#endif
