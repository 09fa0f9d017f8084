/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Saves and loads of the variables: by a call, by time, and at the end.  Saves
 * come one after the other, from the look at the variables to the place of the
 * file, so no older state replaces a newer one.
 * Called by: cluster/open at the open; scope.c and turn.c at the end; the
 * program (evc_cluster_save, _restore); info.c and report.c.
 * Locks: variables.saving, during a wait for the disk or for an engine that
 * keeps the variables; the cluster's lock for the outcome.
 */
#include "cluster/core/cluster.h"

#include <math.h>

#include "base/deadline.h"
#include "base/proc.h"

#define REMIND_NS UINT64_C(60000000000)

/* Note the outcome of a save for reports. */
static void
note_save(evc_cluster *cl, evc_status st)
{
	sync_lock(&cl->q.lock);
	if (st < 0) {
		cl->checkpoint.n_failed++;
		cl->checkpoint.code = -st;
		evc__copy(cl->checkpoint.text, sizeof cl->checkpoint.text,
			  evc_last_error());
	} else {
		cl->checkpoint.n_failed = 0;
		cl->checkpoint.code = 0;
		cl->checkpoint.saved_ns = sync_mono();
	}
	sync_unlock(&cl->q.lock);
}

double
evc__checkpoint_unsaved(const evc_cluster *cl, uint64_t now)
{
	uint64_t since = cl->checkpoint.saved_ns;

	if (since == 0)
		since = cl->born_ns;
	return cl->checkpoint.n_failed == 0 || now <= since ?
		       0 : (double)(now - since) / 1e9;
}

void
evc__checkpoint_describe(const evc_cluster *cl, uint64_t now, struct text *t)
{
	if (cl->checkpoint.n_failed > 0)
		evc__text_fmt(t, "checkpoint not saved for %.1f s: %s",
			      evc__checkpoint_unsaved(cl, now),
			      cl->checkpoint.text);
	else if (evc__checkpoint_waits(cl))
		evc__text_add(t, "the last checkpoint is not saved yet");
	else if (cl->checkpoint.first == FIRST_OPEN)
		evc__text_add(t, "the checkpoint is not restored yet");
}

bool
evc__checkpoint_is_due(const evc_cluster *cl)
{
	return cl->checkpoint.n_failed > 0 || evc__checkpoint_waits(cl) ||
	       cl->checkpoint.first == FIRST_OPEN;
}

bool
evc__checkpoint_waits(const evc_cluster *cl)
{
	return cl->stop.begun && cl->config.checkpoint != NULL &&
	       cl->checkpoint.first == FIRST_NONE &&
	       cl->checkpoint.last < LAST_SKIPPED;
}

static evc_status
save_file(evc_cluster *cl, const char *path, bool if_changed)
{
	struct variables *v = &cl->vars;
	struct snapshot_file file;
	uint64_t changes;
	evc_status st;

	sync_lock(&v->saving);
	changes = v->saved;
	sync_lock(&cl->q.lock);
	file = cl->checkpoint.seen;
	sync_unlock(&cl->q.lock);
	st = evc__checkpoint_write(cl, path, if_changed, &changes, &file);
	if (checkpoint_is(cl, path)) {
		if (st == 0) {
			v->saved = changes;
			sync_lock(&cl->q.lock);
			cl->checkpoint.seen = file;
			sync_unlock(&cl->q.lock);
		}
		note_save(cl, st);
	}
	sync_unlock(&v->saving);
	return st;
}

static evc_status
unpack_kept(evc_cluster *cl, evc_value *packed)
{
	struct variable_list l;
	evc_status st = evc__variables_read(packed, &l);

	if (st == 0)
		st = evc__kept_replace(cl, &l);
	evc__variables_list_free(&l);
	return st;
}

static evc_status
load_file(evc_cluster *cl, const char *path)
{
	evc_value packed;
	evc_status st = evc__snapshot_read(path, &packed);

	if (st < 0)
		return st;
	st = cluster_asks(cl) ? unpack_kept(cl, &packed) :
				evc__variables_unpack(&cl->vars, &packed);
	evc_value_free(&packed);
	return st == -EVC_INVALID_ARGUMENT ? evc__checkpoint_garbage(path) : st;
}

/* ---- every so often ---- */

/* A lasting failure is in the log once a minute. */
static void
log_failure(evc_cluster *cl, const char *why)
{
	struct checkpoint *cp = &cl->checkpoint;

	if (strncmp(cp->told, why, sizeof cp->told - 1) == 0 &&
	    evc__deadline_left_ns(evc__after(cp->told_ns, REMIND_NS)) > 0)
		return;
	evc__copy(cp->told, sizeof cp->told, why);
	cp->told_ns = sync_mono();
	evc_log(cl->scope, EVC_LOG_WARNING, NULL, "checkpoint not saved: %s",
		why);
}

static void
log_success(evc_cluster *cl)
{
	struct checkpoint *cp = &cl->checkpoint;
	bool failed;

	sync_lock(&cl->q.lock);
	failed = cp->n_failed > 0;
	sync_unlock(&cl->q.lock);
	if (cp->told[0] == '\0' || failed)
		return;
	cp->told[0] = '\0';
	evc_log(cl->scope, EVC_LOG_INFO, NULL, "checkpoint saved again");
}

/* false: for example, while the cluster waits for a namespace. */
static bool
may_have_changed(evc_cluster *cl)
{
	bool yes;

	sync_lock(&cl->q.lock);
	yes = !cluster_asks(cl) || cl->asking.any;
	sync_unlock(&cl->q.lock);
	return yes;
}

static evc_status
save_if_changed(evc_coord *c, void *arg)
{
	evc_cluster *cl = arg;
	evc_status st = 0;
	bool begun;

	(void)c;
	sync_lock(&cl->q.lock);
	begun = cl->engine.at != NULL && cl->checkpoint.first == FIRST_NONE;
	sync_unlock(&cl->q.lock);
	/* Before that nothing is new. */
	if (begun && may_have_changed(cl))
		st = save_file(cl, cl->config.checkpoint, true);
	if (st < 0)
		log_failure(cl, evc_last_error());
	else
		log_success(cl);
	return 0;
}

evc_status
evc__checkpoint_open(evc_cluster *cl)
{
	/* A member keeps the memory during a wait for the disk. */
	const evc_member_opts opts = {
		.flags = EVC_OWN_THREAD | EVC_BACKGROUND,
	};
	evc_status st;
	evc_id id;

	if (cl->config.checkpoint == NULL)
		return 0;
	if (cluster_asks(cl)) {
		st = evc__first_open(cl);
	} else {
		cl->checkpoint.seen = evc__snapshot_file(cl->config.checkpoint);
		st = load_file(cl, cl->config.checkpoint);
	}
	if (st < 0 && st != -EVC_NOT_FOUND)
		return st;
	cl->vars.saved = cluster_asks(cl) ?
				 UINT64_MAX :
				 evc__variables_n_changes(&cl->vars);
	if (isinf(cl->config.checkpoint_every))
		return 0;
	return evc_looper_start(cl->scope, "checkpoint",
				cl->config.checkpoint_every, save_if_changed,
				cl, &opts, &id);
}

/* ---- the last ---- */

/* No later save can help: the parent's verdict has the error. */
static void
fail_scope(evc_cluster *cl, evc_status st)
{
	char why[TEXT_SIZE];

	evc__copy(why, sizeof why, evc_last_error());
	(void)(evc_fail)(cl->scope, -st, 0, "checkpoint not saved: %s", why);
}

static void
make_last(evc_cluster *cl)
{
	evc_status st;

	if (!cluster_asks(cl))
		evc__variables_seal(&cl->vars);
	st = save_file(cl, cl->config.checkpoint, true);
	if (st < 0 && !may_have_changed(cl))
		log_failure(cl, evc_last_error());
	else if (st < 0)
		fail_scope(cl, st);
}

void
evc__checkpoint_last(evc_cluster *cl)
{
	bool made;

	sync_lock(&cl->q.lock);
	made = cl->checkpoint.last == LAST_OVER;
	sync_unlock(&cl->q.lock);
	if (!made)
		make_last(cl);
}

/* The wait for the engine and the disk has a thread. */
static void
last_is_over(evc_cluster *cl, unsigned last)
{
	sync_lock(&cl->q.lock);
	cl->checkpoint.last = last;
	evc__leave_if_idle(cl);
	evc__cluster_unlock(cl);
}

void
evc__checkpoint_skip(evc_cluster *cl)
{
	sync_lock(&cl->q.lock);
	if (cl->checkpoint.last == LAST_WANTED) {
		cl->checkpoint.last = LAST_SKIPPED;
		evc__leave_if_idle(cl);
	}
	evc__cluster_unlock(cl);
}

static evc_status
save_last(evc_coord *c, void *arg)
{
	(void)c;
	make_last(arg);
	last_is_over(arg, LAST_OVER);
	return 0;
}

void
evc__checkpoint_turn(evc_cluster *cl)
{
	const evc_member_opts o = { .flags = EVC_AFTER_STOP | EVC_BACKGROUND };
	evc_status st;
	bool begin;

	sync_lock(&cl->q.lock);
	begin = cl->checkpoint.last == LAST_WANTED;
	if (begin)
		cl->checkpoint.last = LAST_BEGUN;
	sync_unlock(&cl->q.lock);
	if (!begin)
		return;
	st = evc_thread_start(cl->scope, "last checkpoint", save_last, cl, &o,
			      NULL);
	if (st == 0)
		return;
	if (cluster_asks(cl))
		fail_scope(cl, st);
	last_is_over(cl, LAST_SKIPPED);
}

/* ---- by a call ---- */

/* *path becomes config.checkpoint, if that file is meant. */
static evc_status
find_checkpoint(const evc_cluster *cl, const char **path)
{
	char *whole;

	if (*path == NULL)
		*path = cl->config.checkpoint;
	if (cl->config.checkpoint == NULL || *path == cl->config.checkpoint)
		return 0;
	whole = evc__proc_path(*path);
	if (whole == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory for %s",
				  *path);
	if (strcmp(whole, cl->config.checkpoint) == 0)
		*path = cl->config.checkpoint;
	sync_free(whole);
	return 0;
}

static evc_status
check_path(const evc_cluster *cl, const char **path)
{
	evc_status st = evc__cluster_check(cl);

	if (st == 0)
		st = find_checkpoint(cl, path);
	if (st < 0)
		return st;
	if (*path == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no path, and the cluster has no "
				  "checkpoint");
	/* Before a wait for other saves. */
	return cluster_asks(cl) ? evc__kept_refuse_here(cl) : 0;
}

evc_status
evc_cluster_save(evc_cluster *cluster, const char *path)
{
	evc_status st = check_path(cluster, &path);

	return st < 0 ? st : save_file(cluster, path, false);
}

evc_status
evc_cluster_restore(evc_cluster *cluster, const char *path)
{
	evc_status st = check_path(cluster, &path);

	return st < 0 ? st : load_file(cluster, path);
}
