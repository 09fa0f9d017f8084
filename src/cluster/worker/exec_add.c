/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Additions of plain functions of which nobody wants the sum.  Nobody waits for
 * them: where the variables are far away they are noted (additions.c).  So an
 * impossible addition is not told by its call, but fails the function at its
 * end, wherever the function runs.  A build, which is no function, is told at
 * once.
 * Called by: exec_variable.c, worker.c.
 * Locks: none; the thread of the functions.
 */
#include "cluster/worker/exec.h"

#include "base/text.h"

evc_status
evc__exec_add_loosely(const evc_exec *x, const evc_engine_update *u)
{
	struct worker *w = x->w;
	const struct worker_env *env = &w->env;
	evc_status st;

	if (env->note != NULL && x->n != N_BUILDS)
		return env->note(env->arg, u);
	if (env->variable == NULL)
		return evc_refuse(-EVC_UNAVAILABLE, "%s knows no variables",
				  w->name);
	st = env->variable(env->arg, u, NULL, NULL);
	if (st == 0 || x->n == N_BUILDS)
		return st;
	if (w->not_added == 0) {
		w->not_added = st;
		evc__copy(w->why_not_added, sizeof w->why_not_added,
			  evc_last_error());
	}
	return 0;
}

const char *
evc__exec_settle_additions(struct worker *w, evc_engine_result *ret)
{
	const struct worker_env *env = &w->env;
	evc_status st = w->not_added;

	w->not_added = 0;
	if (env->settle != NULL)
		st = env->settle(env->arg, ret);
	else if (st < 0)
		(void)evc_refuse(st, "%s", w->why_not_added);
	if (st == 0 || ret->code != 0)
		return NULL;
	ret->code = -st;
	return evc_last_error();
}
