/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker's error: the group keeps the error; the error stops the group, or
 * all groups of the registry, or starts the worker again.  An error that stops
 * becomes the scope's own reason, so the core explains the stop: the worker's
 * name, the run, and the text of evc_group_fail.  The text of evc_fail with the
 * scope is a reason already, and gets a request beside it with the number of
 * the run.
 * Called by: run.c; the program (evc_group_fail).
 * Locks: the group's, taken for the kept errors and the restarts; stops_of_all
 * is atomic.
 */
#include "group/group.h"

#include "base/backoff.h"
#include "base/self.h"
#include "base/text.h"

evc_status
evc__code_of(evc_status returned)
{
	/* The least number has no positive. */
	if (returned < 0 && returned >= -255)
		returned = -returned;
	return returned >= 0 && returned <= 255 ? returned : EVC_UNKNOWN;
}

bool
evc__group_is_clean(const evc_group *g, evc_status code)
{
	unsigned i;

	for (i = 0; i < g->opts.n_clean; i++)
		if (g->clean[i] == code)
			return true;
	return code == 0;
}

/* ---- what the scope knows of it ---- */

/* The calling thread's latest reason with this code. */
static bool
find_reason(const evc_group *g, evc_status code, evc_reason *ret)
{
	bool found = false;
	evc_reason r;
	unsigned i;

	/* The search takes the latest: this thread may have given other reasons
	   before. */
	for (i = 0; evc_reason_get(g->scope, i, &r) == 0; i++)
		if (r.tid == evc__tid() && r.code == code) {
			*ret = r;
			found = true;
		}
	return found;
}

/* An error on its way through this file. */
struct failure {
	struct evc__worker *w;
	evc_status code;
	uint64_t run;
	bool lost;
	char text[sizeof((evc_reason *)0)->text];
	evc_reason reason; /* as the group keeps the reason */
};

/* "run 7: text of the worker" */
static void
describe_failure(struct failure *f, evc_status returned, const char *more)
{
	const evc_reason *r = &f->w->said;
	struct text t = evc__text_in(f->text, sizeof f->text);

	evc__text_fmt(&t, "run %llu: ", (unsigned long long)f->run);
	if (f->lost)
		evc__text_add(&t, "its thread was ended in it");
	else if (r->code == f->code && r->text[0] != '\0')
		evc__text_add(&t, r->text);
	else if (returned != f->code && returned != -f->code)
		evc__text_fmt(&t, "ended with %d, which is no code", returned);
	else
		evc__text_fmt(&t, "ended with %s", evc_status_name(f->code));
	if (f->code > EVC_UNAUTHENTICATED && r->code != f->code)
		evc__text_fmt(&t, " %d", f->code);
	evc__text_add(&t, more);
}

/* The reason, when no scope has one. */
static void
make_reason(struct failure *f)
{
	evc_reason *r = &f->reason;

	memset(r, 0, sizeof *r);
	/* place and errno, if the worker gave them */
	if (f->w->said.code == f->code)
		*r = f->w->said;
	r->code = f->code;
	r->kind = EVC_BY_ERROR;
	r->tid = evc__tid();
	r->mono_ns = sync_mono();
	r->real_ns = sync_real();
	evc__copy(r->who, sizeof r->who, f->w->name);
	evc__copy_ends(r->text, sizeof r->text, f->text);
}

/* The code of a call that was woken for a stop. */
static bool
is_wake_up(int err)
{
	return err == EINTR || err == ECANCELED || err == ESHUTDOWN;
}

/* ---- what the group keeps ---- */

static void
keep_error(const struct failure *f)
{
	evc_group *g = f->w->group;
	evc_worker_error *e;

	sync_add(&f->w->n_errors, 1);
	sync_lock(&g->lock);
	if (g->error == NULL)
		g->error = sync_alloc(EVC__ERRORS_KEPT, sizeof *g->error);
	if (g->error != NULL) {
		e = &g->error[g->n_errors % EVC__ERRORS_KEPT];
		e->id = f->w->id;
		e->start = g->n_starts;
		e->run = f->run;
		e->reason = f->reason;
		evc__copy(e->reason.who, sizeof e->reason.who, f->w->name);
	}
	g->n_errors++;
	sync_unlock(&g->lock);
}

/* ---- what comes of it ---- */

static void
stop_others(const struct failure *f)
{
	evc_group *g = f->w->group;
	struct evc__held h;
	char text[96];
	struct text t = evc__text_in(text, sizeof text);
	unsigned i, state;

	evc__text_fmt(&t, "worker %s has failed in run %llu", f->w->name,
		      (unsigned long long)f->run);
	/* Before the look: a group that is being started now sees the count. */
	sync_add(&g->reg->stops_of_all, 1);
	if (evc__groups_hold(g->reg, NULL, &h, "a worker's error") < 0) {
		evc_log(g->scope, EVC_LOG_ERROR, NULL,
			"no memory to stop the other groups");
		return;
	}
	for (i = 0; i < h.n; i++) {
		evc_group *other = h.group[i].g;

		sync_lock(&other->lock);
		state = other->state;
		sync_unlock(&other->lock);
		if (other != g &&
		    (state == EVC_GROUP_RUNNING || state == EVC_GROUP_STARTING))
			(void)evc_request_stop_at(other->scope, 0, text, NULL,
						  0, NULL);
	}
	evc__groups_release(&h);
}

/* The time until the worker is started again; EVC__RESTART_GIVE_UP: never. */
static uint64_t
pause_of(const struct failure *f)
{
	struct evc__worker *w = f->w;
	evc_group *g = w->group;
	uint64_t now = sync_mono(), ns;

	if (g->opts.on_error != EVC_GROUP_RESTART || f->lost ||
	    evc_should_stop(g->scope))
		return EVC__RESTART_GIVE_UP;
	sync_lock(&g->lock);
	ns = evc__restart_next(&g->opts.restart, &g->restarts, &w->restart,
			       now, evc__backoff_random(now ^ w->id));
	sync_unlock(&g->lock);
	return ns;
}

static enum evc__next
plan_restart(struct failure *f, uint64_t ns, uint64_t *ret_pause_ns)
{
	make_reason(f);
	keep_error(f);
	/* Counted when the restart comes: a stop may come first. */
	f->w->restarts = true;
	evc_log(f->w->group->scope, EVC_LOG_WARNING, &f->reason,
		"worker %s, %s (%s); it begins again in %.3f s", f->w->name,
		f->text, evc_status_name(f->code), (double)ns / 1e9);
	*ret_pause_ns = ns;
	return EVC__LATER;
}

/* evc_fail gave the reason already; this request adds the run. */
static void
add_run(struct failure *f)
{
	evc_coord *scope = f->w->group->scope;
	struct text t = evc__text_in(f->text, sizeof f->text);

	evc__text_fmt(&t, "that was run %llu of %s",
		      (unsigned long long)f->run, f->w->name);
	(void)evc_request_stop_at(scope, 0, f->text, NULL, 0, NULL);
	evc_log(scope, EVC_LOG_ERROR, &f->reason, "worker %s, run %llu: %s: %s",
		f->w->name, (unsigned long long)f->run,
		evc_status_name(f->code), f->reason.text);
}

static void
tell_scope(struct failure *f)
{
	const evc_reason *r = &f->w->said;
	bool placed = r->code == f->code && r->file[0] != '\0';

	(void)evc_fail_at(f->w->group->scope, f->code,
			  r->code == f->code ? r->err : 0,
			  placed ? r->file : NULL, placed ? r->line : 0,
			  placed ? r->func : NULL, "%s", f->text);
	/* The scope may have had no room for the reason. */
	if (!find_reason(f->w->group, f->code, &f->reason))
		make_reason(f);
}

enum evc__next
evc__worker_failed(struct evc__worker *w, evc_status returned, uint64_t run,
		   bool lost, uint64_t *ret_pause_ns)
{
	evc_group *g = w->group;
	struct failure f = { .w = w,
			     .code = evc__code_of(returned),
			     .run = run,
			     .lost = lost };
	uint64_t ns = pause_of(&f);
	const char *more = "";

	if (ns != EVC__RESTART_GIVE_UP) {
		describe_failure(&f, returned, more);
		return plan_restart(&f, ns, ret_pause_ns);
	}
	if (evc__just_reported(g->scope, f.code)) {
		/* The scope may have had no room for the reason. */
		if (!find_reason(g, f.code, &f.reason))
			make_reason(&f);
		/* The worker heard the stop by this code, and the scope takes
		   the code so, too. */
		if (is_wake_up(f.reason.err) && f.reason.kind != EVC_BY_ERROR)
			return EVC__OVER;
		add_run(&f);
	} else {
		if (w->said.code == f.code && is_wake_up(w->said.err) &&
		    evc_should_stop(g->scope))
			return EVC__OVER;
		if (g->opts.on_error == EVC_GROUP_RESTART && !lost &&
		    !evc_should_stop(g->scope))
			more = "; it fails too often to begin again";
		describe_failure(&f, returned, more);
		tell_scope(&f);
	}
	keep_error(&f);
	if (g->opts.on_error == EVC_GROUP_STOP_ALL)
		stop_others(&f);
	return EVC__OVER;
}

/* ---- what a worker says ---- */

evc_status
evc_group_fail_at(evc_group *group, evc_status code, int err, const char *file,
		  int line, const char *func, const char *fmt, ...)
{
	evc_status st = evc__group_check(group, "evc_group_fail");
	struct evc__worker *w;
	char buf[TEXT_ROOM];
	struct text t = evc__text_in(buf, sizeof buf);
	int e = errno;
	va_list ap;

	if (st < 0)
		return st;
	if (fmt != NULL) {
		va_start(ap, fmt);
		evc__text_vfmt(&t, fmt, ap);
		va_end(ap);
	}
	w = evc__worker_here(group);
	if (w == NULL || !sync_load_relaxed(&w->run_began))
		st = evc_fail_at(group->scope, code, err, file, line, func,
				 "%s", buf);
	else {
		st = code == 0 ? EVC_UNKNOWN : evc__code_of(code);
		w->said.code = st;
		w->said.err = err;
		w->said.line = line;
		evc__copy_end(w->said.file, sizeof w->said.file, file);
		evc__copy(w->said.func, sizeof w->said.func, func);
		evc__copy_ends(w->said.text, sizeof w->said.text, buf);
	}
	errno = e;
	return st;
}

/* The macro of this name adds a place; the symbol serves other languages. */
#undef evc_group_fail
evc_status
evc_group_fail(evc_group *group, evc_status code, int err, const char *fmt, ...)
{
	char buf[TEXT_ROOM];
	struct text t = evc__text_in(buf, sizeof buf);
	va_list ap;

	va_start(ap, fmt);
	if (fmt != NULL)
		evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	return evc_group_fail_at(group, code, err, NULL, 0, NULL, "%s", buf);
}
