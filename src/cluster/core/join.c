/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins: waits until nothing is queued and nothing runs, and the raise of
 * errors.  And the answers of a turn, to joins and fetches on the loop.
 * Called by: the program (evc_cluster_join and its kin); cluster/calls/admit.c;
 * turn.c and scope_end.c.
 * Locks: the cluster's lock, taken; given up during waits.
 */
#include "cluster/core/cluster.h"

#include <math.h>

#include "base/unwind.h"
#include "cluster/worker/worker.h"

void
evc__say_raised(evc_cluster *cl)
{
	const evc_reason *r = &cl->q.raised[0];

	cl->life.n_told = 0;
	(void)evc_refuse(r->code, "%s%s%s", r->func,
			 r->func[0] != '\0' ? ": " : "", r->text);
	/* Other threads that wait for the raise may go on. */
	evc__tell(cl);
}

/* Lock held: the answer of a join now, by which an error is raised;
   EVC_PENDING: none yet. */
static evc_status
join_answer(evc_cluster *cl)
{
	evc_status st;

	/* The error is raised anew as long as no worker is up. */
	if (cl->workers.unavailable && !cl->stop.begun)
		evc__note_unavailable(cl);
	st = evc__closures_done(&cl->q);
	if (st > 0)
		evc__say_raised(cl);
	if (st == 0 && cl->stop.lost) {
		cl->stop.lost = false;
		st = evc_refuse(-EVC_CANCELLED,
				"the stop of %s has cancelled functions",
				cl->name);
	}
	return st;
}

/* ---- waiting ---- */

static evc_status
refuse_late(const evc_cluster *cl)
{
	char buf[DESCRIBE_SIZE];
	struct text t = evc__text_in(buf, sizeof buf);

	evc__cluster_describe(cl, sync_mono(), &t);
	return evc_refuse(-EVC_DEADLINE_EXCEEDED, "%s", buf);
}

/* Lock held, given up during waits.  The end of a stop ends the wait, too. */
static evc_status
await_answer(evc_cluster *cl, uint64_t until)
{
	uint64_t look;
	evc_status st;

	while ((st = join_answer(cl)) == EVC_PENDING) {
		look = evc__deadline_look(until, evc__cluster_left(cl));
		if (!evc__closures_await_quiet(&cl->q, look))
			return refuse_late(cl);
	}
	return st;
}

evc_status
evc_cluster_join(evc_cluster *cl, double timeout)
{
	evc_status st = evc__cluster_check(cl);

	if (st < 0)
		return st;
	if (isnan(timeout))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_cluster_join: timeout is no number");
	if (evc__cluster_on_loop(cl))
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_cluster_join: this is the thread of the"
				  " cluster's loop; evc_cluster_join_start is"
				  " for that");
	if (evc__exec_of == cl)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_cluster_join: in a function of the"
				  " cluster, which it would wait for");
	/* Another thread may close the cluster, which ends the wait. */
	evc__cluster_ref(cl);
	sync_lock(&cl->q.lock);
	st = await_answer(cl, evc__deadline_in(timeout));
	evc__cluster_unlock(cl);
	evc__cluster_unref(cl);
	return st;
}

evc_status
evc_cluster_done(evc_cluster *cl, bool *ret_done)
{
	evc_status st = evc__cluster_check(cl);

	if (st == 0 && ret_done == NULL)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"evc_cluster_done: ret_done is NULL");
	if (st < 0)
		return st;
	sync_lock(&cl->q.lock);
	st = join_answer(cl);
	evc__cluster_unlock(cl);
	*ret_done = st != EVC_PENDING;
	return st != EVC_PENDING ? st : 0;
}

/* ---- on the loop ---- */

evc_status
evc_cluster_join_start(evc_cluster *cl, evc_cluster_fn *fn, void *arg)
{
	evc_status st = evc__cluster_check(cl);
	struct cluster_join *j;

	if (st == 0 && fn == NULL)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"evc_cluster_join_start: fn is NULL");
	if (st < 0)
		return st;
	j = sync_alloc(1, sizeof *j);
	if (j == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
	j->fn = fn;
	j->arg = arg;
	sync_lock(&cl->q.lock);
	/* Under the lock: the turn comes behind the join. */
	if (evc__turn_ask(cl))
		list_append(&cl->turn.joins, &j->link);
	else
		st = evc_refuse(-EVC_FAILED_PRECONDITION,
				"evc_cluster_join_start: the loop is gone");
	sync_unlock(&cl->q.lock);
	if (st < 0)
		sync_free(j);
	return st;
}

/* The first join with its answer; NULL: none. */
static struct cluster_join *
next_answered(evc_cluster *cl, evc_status *ret)
{
	struct cluster_join *j = NULL;

	sync_lock(&cl->q.lock);
	if (!list_empty(&cl->turn.joins)) {
		*ret = join_answer(cl);
		if (*ret != EVC_PENDING) {
			j = LIST_OF(cl->turn.joins.next, struct cluster_join,
				    link);
			list_remove(&j->link);
		}
	}
	evc__cluster_unlock(cl);
	return j;
}

WALLED_VOID(call, (const struct cluster_join *j, evc_cluster *cl,
		   evc_status st),
	    j->fn(cl, st, j->arg))

static void
answer_joins(evc_cluster *cl)
{
	struct cluster_join *j, done;
	struct list *n, *tmp;
	unsigned left = 0;
	evc_status st;

	/* Joins that begin during these calls have the next turn; else a join
	   that begins itself anew would never end. */
	sync_lock(&cl->q.lock);
	LIST_EACH(n, tmp, &cl->turn.joins)
		left++;
	sync_unlock(&cl->q.lock);
	while (left-- > 0 && !cluster_inherited(cl) &&
	       (j = next_answered(cl, &st)) != NULL) {
		done = *j;
		sync_free(j);
		call(&done, cl, st);
	}
}

bool
evc__turn_answers(evc_cluster *cl)
{
	evc__fetch_turn(cl);
	if (!cluster_inherited(cl))
		answer_joins(cl);
	return !cluster_inherited(cl);
}

/* ---- what was raised ---- */

evc_status
evc_cluster_error_get(const evc_cluster *cluster, unsigned index,
		      evc_reason *ret_reason)
{
	evc_cluster *cl = (evc_cluster *)cluster;
	evc_status st = evc__cluster_check(cl);

	if (st < 0)
		return st;
	sync_lock(&cl->q.lock);
	if (index < cl->q.n_raised && ret_reason != NULL)
		*ret_reason = cl->q.raised[index];
	else if (index >= cl->q.n_raised)
		st = evc_refuse(-EVC_NOT_FOUND, "%u errors were raised",
				cl->q.n_raised);
	sync_unlock(&cl->q.lock);
	return st;
}
