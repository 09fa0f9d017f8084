/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checkpoint, if the engine keeps the variables: the first question to the
 * engine gives the variables of the file.  No function is handed out before the
 * answer.
 * Called by: checkpoint.c and cluster/open/open.c.
 * Locks: the cluster's lock, taken when the answer comes.
 */
#include "cluster/core/cluster.h"

struct first_question {
	evc_engine_question q;
	evc_cluster *cl;
	struct variable_list l;
};

static void
first_free(struct first_question *f)
{
	if (f == NULL)
		return;
	evc__variables_list_free(&f->l);
	sync_free(f);
}

/* Lock held: functions may go out. */
static void
first_went_well(evc_cluster *cl)
{
	unsigned i;

	cl->checkpoint.first = FIRST_NONE;
	for (i = 0; i < cl->workers.n; i++)
		evc__wake(cl, (int)i);
	evc__wake(cl, EVC_ENGINE_ANY);
}

/* Without the variables no function may run: its changes would be lost, or
   change foreign variables. */
static void
first_failed(evc_cluster *cl, const evc_engine_answer *a)
{
	char why[TEXT_SIZE];
	struct text t = evc__text_in(why, sizeof why);
	bool is_news;

	evc__text_fmt(&t, "its checkpoint was not restored: %s",
		      a->text != NULL ? a->text : "the engine gave no reason");
	sync_lock(&cl->q.lock);
	cl->checkpoint.first = FIRST_FAILED;
	/* An engine that is down has given a reason. */
	is_news = cl->engine.down[0] == '\0' && !cl->stop.begun;
	sync_unlock(&cl->q.lock);
	if (is_news)
		evc__sink_down(cl, why);
}

static void
on_first_answer(evc_engine_question *q, const evc_engine_answer *a)
{
	struct first_question *f = q->arg;
	evc_cluster *cl = f->cl;

	if (a->status == 0) {
		evc__kept_replaced(cl, q->finished);
		sync_lock(&cl->q.lock);
		first_went_well(cl);
		evc__cluster_unlock(cl);
	} else {
		first_failed(cl, a);
	}
	first_free(f);
}

evc_status
evc__first_question(evc_cluster *cl, struct variable_list *l)
{
	struct first_question *f = sync_alloc(1, sizeof *f);

	if (f == NULL)
		return evc__variable_no_memory();
	f->cl = cl;
	f->l = *l;
	*l = (struct variable_list){ .n = 0 };
	f->q.update.op = EVC_VARIABLE_REPLACE;
	f->q.entries = f->l.entries;
	f->q.n_entries = f->l.n;
	f->q.finished = f->l.finished;
	f->q.done = on_first_answer;
	f->q.arg = f;
	cl->checkpoint.question = f;
	cl->checkpoint.first = FIRST_OPEN;
	return 0;
}

void
evc__first_ask(evc_cluster *cl)
{
	struct first_question *f = cl->checkpoint.question;

	/* After an early stop the file stays as it is. */
	cl->checkpoint.question = NULL;
	if (f != NULL && !evc__kept_ask(cl, &f->q))
		first_free(f);
}

void
evc__first_forget(evc_cluster *cl)
{
	first_free(cl->checkpoint.question);
}
