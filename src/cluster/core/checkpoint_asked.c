/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checkpoint of a cluster whose engine keeps the variables: the first thing
 * that the engine is told, and the last that it is asked.
 *
 * What was loaded when the cluster was opened goes to the engine before anything
 * else, and no function is handed out until it is there.  The last save is made
 * when nothing runs any more and before the engine leaves; it waits for the
 * engine and for the disk, so it has a thread of its own.
 */
#include "cluster/core/variable_ask.h"

/* evc_cluster.kept.first */
enum {
	FIRST_NONE,  /* there is none, or it was answered */
	FIRST_OPEN,
	FIRST_FAILED /* for good */
};

/* evc_cluster.kept.last */
enum {
	LAST_NONE,
	LAST_WANTED, /* by the loop's next turn */
	LAST_BEGUN,
	LAST_OVER
};

struct first_question {
	evc_engine_question q;
	evc_cluster *cl;
	struct variable_list l;
};

/* ---- the first ---- */

static void
first_free(struct first_question *f)
{
	if (f == NULL)
		return;
	evc__variables_list_free(&f->l);
	sync_free(f);
}

/* Lock held: functions may go. */
static void
first_went_well(evc_cluster *cl)
{
	unsigned i;

	cl->kept.first = FIRST_NONE;
	for (i = 0; i < cl->n_workers; i++)
		evc__wake(cl, (int)i);
	evc__wake(cl, EVC_ENGINE_ANY);
}

/* Without it nothing may run: it would count, and change variables that are not
   the program's. */
static void
first_failed(evc_cluster *cl, const evc_engine_answer *a)
{
	char why[TEXT_ROOM];
	struct text t = evc__text_in(why, sizeof why);
	bool is_news;

	evc__text_fmt(&t, "its checkpoint was not restored: %s",
		      a->text != NULL ? a->text : "the engine says no more");
	sync_lock(&cl->q.lock);
	cl->kept.first = FIRST_FAILED;
	/* An engine that is down has said why. */
	is_news = cl->down_text[0] == '\0' && !cl->stopping;
	sync_unlock(&cl->q.lock);
	if (is_news)
		evc__sink_down(cl, why);
}

static void
done(evc_engine_question *q, const evc_engine_answer *a)
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
evc__first_question(evc_cluster *cl)
{
	struct first_question *f = sync_alloc(1, sizeof *f);
	struct variables none;
	evc_status st;

	if (f == NULL || !evc__variables_init(&none)) {
		sync_free(f);
		return evc__variable_no_memory();
	}
	f->cl = cl;
	st = evc__variables_list(&cl->vars, &f->l);
	if (st == 0) {
		f->q.update.op = EVC_VARIABLE_REPLACE;
		f->q.entries = f->l.entries;
		f->q.n_entries = f->l.n;
		f->q.finished = f->l.finished;
		f->q.done = done;
		f->q.arg = f;
		cl->first = f;
		cl->kept.first = FIRST_OPEN;
		/* They are the engine's from here on. */
		evc__variables_replace(&cl->vars, &none);
	} else {
		sync_free(f);
	}
	evc__variables_destroy(&none);
	return st;
}

void
evc__first_ask(evc_cluster *cl)
{
	struct first_question *f = cl->first;

	/* A stop may have come before; then it stays as it is. */
	cl->first = NULL;
	if (f != NULL && !evc__kept_ask(cl, &f->q))
		first_free(f);
}

void
evc__first_forget(evc_cluster *cl)
{
	first_free(cl->first);
}

bool
evc__first_is_over(const evc_cluster *cl)
{
	return cl->kept.first == FIRST_NONE;
}

/* ---- the last ---- */

bool
evc__last_save_is_over(evc_cluster *cl)
{
	if (cl->config.checkpoint == NULL || !cluster_asks(cl) ||
	    !evc__first_is_over(cl))
		return true;
	if (cl->kept.last == LAST_NONE) {
		cl->kept.last = LAST_WANTED;
		/* Without a loop there is no answer. */
		if (!evc__turn_ask(cl))
			cl->kept.last = LAST_OVER;
	}
	return cl->kept.last == LAST_OVER;
}

static void
last_is_over(evc_cluster *cl)
{
	sync_lock(&cl->q.lock);
	cl->kept.last = LAST_OVER;
	evc__leave_if_idle(cl);
	evc__cluster_unlock(cl);
}

static evc_status
save(evc_coord *c, void *arg)
{
	(void)c;
	evc__checkpoint_last(arg);
	last_is_over(arg);
	return 0;
}

void
evc__last_save_turn(evc_cluster *cl)
{
	const evc_member_opts o = { .flags = EVC_LATE | EVC_BACKGROUND };
	evc_status st;
	bool begin;

	sync_lock(&cl->q.lock);
	begin = cl->kept.last == LAST_WANTED;
	if (begin)
		cl->kept.last = LAST_BEGUN;
	sync_unlock(&cl->q.lock);
	if (!begin)
		return;
	st = evc_thread_start(cl->scope, "last checkpoint", save, cl, &o, NULL);
	if (st == 0)
		return;
	evc__checkpoint_lost(cl, st);
	last_is_over(cl);
}
