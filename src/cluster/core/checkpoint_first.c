/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checkpoint, if the engine keeps the variables: the first question to the
 * engine gives the variables of the file.  No function is handed out before the
 * answer.
 * The engine may have waited for long: perhaps another coordinator had its place
 * until now, and has saved its variables in the same file.  So the file is read
 * again when a save has replaced the file.
 * Called by: checkpoint.c and cluster/open/open.c; the engine (first_begins, the
 * answer).
 * Locks: the cluster's lock, taken.
 */
#include "cluster/core/cluster.h"

#include <inttypes.h>

struct first_question {
	evc_engine_question q;
	evc_cluster *cl;
	bool absent; /* creation, loop: there is no file */
	struct variable_list l; /* creation; while `reads`: the thread */
	/* ---- lock ---- */
	bool reads;    /* a thread reads the file again */
	bool answered; /* meanwhile: the thread frees the question */
	evc_status status; /* of that read */
	char why[TEXT_SIZE];
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
	if (!is_news)
		return;
	evc_log(cl->scope, EVC_LOG_ERROR, NULL, "%s: no function runs", why);
	evc__sink_down(cl, why);
}

static void
on_first_answer(evc_engine_question *q, const evc_engine_answer *a)
{
	struct first_question *f = q->arg;
	evc_cluster *cl = f->cl;
	bool reads;

	if (a->status == 0) {
		evc__kept_replaced(cl, q->finished);
		evc_log(cl->scope, EVC_LOG_INFO, NULL,
			"checkpoint %s restored: %zu variables, finished "
			"%" PRIu64, cl->config.checkpoint, q->n_entries,
			q->finished);
	}
	if (a->status == 0 || (f->absent && a->status == -EVC_NOT_FOUND)) {
		sync_lock(&cl->q.lock);
		first_went_well(cl);
		evc__cluster_unlock(cl);
	} else {
		first_failed(cl, a);
	}
	sync_lock(&cl->q.lock);
	reads = f->reads;
	f->answered = true;
	sync_unlock(&cl->q.lock);
	if (!reads)
		first_free(f);
}

/* ---- the file is another one ---- */

static void
put_list(struct first_question *f, struct variable_list *l)
{
	f->l = *l;
	*l = (struct variable_list){ .n = 0 };
	f->q.entries = f->l.entries;
	f->q.n_entries = f->l.n;
	f->q.finished = f->l.finished;
}

evc_status
evc__checkpoint_garbage(const char *path)
{
	char why[TEXT_SIZE];

	evc__copy(why, sizeof why, evc_last_error());
	return evc_refuse(-EVC_DATA_LOSS, "%s holds no variables: %s", path,
			  why);
}

static evc_status
read_list(evc_cluster *cl, struct variable_list *ret)
{
	/* Before the read: a later save is another file in any case. */
	struct snapshot_file file = evc__snapshot_file(cl->config.checkpoint);
	evc_value packed;
	evc_status st;

	*ret = (struct variable_list){ .n = 0 };
	sync_lock(&cl->q.lock);
	cl->checkpoint.seen = file;
	sync_unlock(&cl->q.lock);
	st = evc__snapshot_read(cl->config.checkpoint, &packed);
	if (st == 0 && (st = evc__variables_read(&packed, ret)) ==
			       -EVC_INVALID_ARGUMENT)
		st = evc__checkpoint_garbage(cl->config.checkpoint);
	evc_value_free(&packed);
	return st;
}

static evc_status
read_again(evc_coord *c, void *arg)
{
	struct first_question *f = arg;
	evc_cluster *cl = f->cl;
	struct variable_list l;
	evc_status st = read_list(cl, &l);
	bool answered;

	(void)c;
	if (st == 0) {
		evc__variables_list_free(&f->l);
		put_list(f, &l);
	}
	evc__variables_list_free(&l);
	sync_lock(&cl->q.lock);
	/* The next look finds out that the file has gone. */
	f->status = st == -EVC_NOT_FOUND ? 0 : st;
	if (st < 0)
		evc__copy(f->why, sizeof f->why, evc_last_error());
	f->reads = false;
	answered = f->answered;
	if (!answered)
		evc__wake(cl, EVC_ENGINE_ANY);
	evc__cluster_unlock(cl);
	if (answered)
		first_free(f);
	return 0;
}

/* The engine has its place, and is about to send. */
static evc_status
first_begins(evc_engine_question *q)
{
	const evc_member_opts o = { .flags = EVC_AFTER_STOP | EVC_BACKGROUND };
	struct first_question *f = q->arg;
	evc_cluster *cl = f->cl;
	struct snapshot_file now, seen;
	evc_status st;
	bool reads;

	sync_lock(&cl->q.lock);
	reads = f->reads;
	st = f->status;
	seen = cl->checkpoint.seen;
	sync_unlock(&cl->q.lock);
	if (reads)
		return EVC_ENGINE_LATER;
	if (st < 0)
		return evc_refuse(st, "%s", f->why);
	now = evc__snapshot_file(cl->config.checkpoint);
	if (!now.is && !f->absent)
		evc_log(cl->scope, EVC_LOG_WARNING, NULL,
			"the checkpoint %s is gone: the variables are those of "
			"the server", cl->config.checkpoint);
	f->absent = !now.is;
	if (f->absent)
		return evc_refuse(-EVC_NOT_FOUND, "there is no checkpoint");
	if (snapshot_file_is(&now, &seen))
		return 0;
	sync_lock(&cl->q.lock);
	f->reads = true;
	sync_unlock(&cl->q.lock);
	st = evc_thread_start(cl->scope, "checkpoint", read_again, f, &o, NULL);
	if (st == 0)
		return EVC_ENGINE_LATER;
	sync_lock(&cl->q.lock);
	f->reads = false;
	sync_unlock(&cl->q.lock);
	return st;
}

/* The question takes the list; NULL: there is no file yet. */
static evc_status
make_question(evc_cluster *cl, struct variable_list *l)
{
	struct first_question *f = sync_alloc(1, sizeof *f);

	if (f == NULL)
		return evc__variable_no_memory();
	f->cl = cl;
	f->absent = l == NULL;
	if (l != NULL)
		put_list(f, l);
	f->q.update.op = EVC_VARIABLE_REPLACE;
	f->q.begin = first_begins;
	f->q.done = on_first_answer;
	f->q.arg = f;
	cl->checkpoint.question = f;
	cl->checkpoint.first = FIRST_OPEN;
	return 0;
}

evc_status
evc__first_open(evc_cluster *cl)
{
	struct variable_list l;
	evc_status st = read_list(cl, &l);

	if (st == 0)
		st = make_question(cl, &l);
	else if (st == -EVC_NOT_FOUND &&
		 (cl->engine.ops->caps & EVC_ENGINE_BEGINS))
		st = make_question(cl, NULL);
	evc__variables_list_free(&l);
	return st;
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
