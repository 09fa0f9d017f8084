/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work of a worker process for its coordinator, frame by frame: functions,
 * builds, questions for variables.
 * Called by: cluster/open/main.c.
 * Locks: none here; control.c takes worker_process.lock.
 */
#include "cluster/worker/process.h"

#include "base/fork.h"

#define OUT_MOST ((size_t)64 << 10) /* bytes of results that wait */
#define WAIT_MOST 0.001             /* seconds that a result waits, roughly */

/* ---- what functions ask for ---- */

static evc_status
refuse_lost(struct worker_process *p)
{
	p->gone = true;
	return evc_refuse(-EVC_UNAVAILABLE,
			  "the worker has lost its coordinator");
}

evc_status
evc__worker_variable(void *arg, const evc_engine_update *u, double *ret_now,
		     evc_value *ret_value)
{
	struct worker_process *p = arg;
	struct frame_reply reply;
	struct frame f;
	evc_status st;
	int got;

	if (!evc__additions_flush(p))
		return refuse_lost(p);
	st = evc__frame_put_variable(&p->out.own, p->max_frame, u);
	if (st < 0)
		return st;
	got = evc__worker_await(p, FRAME_REPLY, &f);
	if (got == 0)
		return refuse_lost(p);
	if (got < 0 || evc__frame_get_reply(&f, &reply) < 0) {
		p->gone = true;
		return -EVC_UNAVAILABLE;
	}
	st = reply.status;
	if (st < 0)
		evc_refuse(st, "%s", reply.text);
	if (st == 0 && ret_now != NULL)
		*ret_now = reply.now;
	if (st == 0 && ret_value != NULL)
		st = evc_value_copy(ret_value, &reply.value);
	evc__worker_erase(p, &f);
	return st;
}

bool
evc__worker_kept(void *arg, uint64_t id, evc_value *ret_value)
{
	struct worker_process *p = arg;
	const evc_value *v = evc__kept_find(&p->kept, id);

	if (v != NULL)
		*ret_value = *v;
	return v != NULL;
}

/* ---- functions ---- */

/* A result that cannot be sent becomes an error with a text. */
static bool
put_result(struct worker_process *p, struct frame_result *f)
{
	struct frame_result no = { .r.n = f->r.n,
				   .r.code = EVC_RESOURCE_EXHAUSTED,
				   .r.kind = EVC_FAILED_FUNCTION,
				   .r.took = f->r.took };

	if (evc__frame_lend_result(&p->out, p->max_frame, f) == 0) {
		/* What is lent stays no longer than this call. */
		if (p->out.n_lent_bytes > 0)
			(void)evc__worker_flush(p);
		return true;
	}
	f->kept = false;
	no.r.text = evc_last_error();
	return evc__frame_put_result(&p->out.own, p->max_frame, &no) == 0;
}

/* A large result stays here, for it may come back as an input.  Without memory
   it does not stay. */
static bool
put_kept(struct worker_process *p, uint64_t id, struct frame_result *f)
{
	evc_value v = f->r.value;
	bool owned = evc__worker_give(p->w, &v);
	bool added = owned && evc__kept_add(&p->kept, id, v), put;

	f->kept = added;
	put = put_result(p, f);
	p->grown |= v.size > BYTES_KEPT;
	if (added && !f->kept)
		evc__kept_drop(&p->kept, id);
	else if (owned && !added)
		evc_value_free(&v);
	return put;
}

static bool
announce_task(struct worker_process *p, const evc_engine_task *t,
	      const struct speed *speed)
{
	if (t->deadline > 0)
		return evc__frame_put_number(&p->out.own, FRAME_BEGUN, t->n) ==
			       0 &&
		       evc__worker_flush(p);
	if (p->out.own.n > 0 &&
	    (p->out.own.n > OUT_MOST || p->unsent > WAIT_MOST ||
	     !evc__speed_is_quick(speed)))
		return evc__worker_flush(p);
	return true;
}

static bool
run_task(struct worker_process *p, const evc_engine_task *t)
{
	struct speed *speed = evc__speed_of(p, t->function);
	struct frame_result f = { .r.n = t->n };
	bool put;

	if (!announce_task(p, t, speed))
		return false;
	evc__worker_run(p->w, t, &f.r);
	f.r.n = t->n;
	evc__speed_add(speed, f.r.took);
	if (f.r.took > 0)
		p->unsent += f.r.took;
	/* After a refusal of reads or updates the next run's result counts. */
	if (f.r.code == 0 && f.r.n_updates == 0 &&
	    f.r.value.size >= KEEP_LEAST)
		put = put_kept(p, t->id, &f);
	else
		put = put_result(p, &f);
	evc__worker_done(p->w);
	return put && !p->gone;
}

static bool
serve_task(struct worker_process *p, const struct frame *f)
{
	evc_engine_task t;
	bool fine;

	if (evc__frame_get_task(f, &t) < 0)
		return false;
	fine = !evc__worker_begin(p, t.n) || run_task(p, &t);
	sync_free((void *)t.inputs);
	return fine;
}

/* ---- what is built, dropped and forgotten ---- */

static bool
serve_def(struct worker_process *p, const struct frame *f)
{
	struct frame_built said = { 0 };
	const char *text = NULL;
	evc_engine_def d;

	if (evc__frame_get_def(f, &d) < 0 || !evc__worker_flush(p))
		return false;
	said.id = d.id;
	said.code = evc__worker_define(p->w, &d, &text, &said.seconds);
	if (d.kind == EVC_DEF_DROP)
		return !p->gone;
	return evc__frame_put_built(&p->out.own, &said) == 0 && !p->gone;
}

static bool
serve_forget(struct worker_process *p, const struct frame *f)
{
	evc_value v;
	uint64_t id;

	if (evc__frame_get_number(f, &id) < 0)
		return false;
	if (evc__kept_take(&p->kept, id, &v)) {
		p->grown |= v.size > BYTES_KEPT;
		evc__worker_spare(p->w, &v);
	}
	return true;
}

/* ---- all of it ---- */

/* The status at the end of the stream.  The program may have asked for the
   end. */
static evc_status
end_status(struct worker_process *p)
{
	evc_status st = evc_raise_requested(p->coord, NULL);

	evc__worker_flush(p);
	if (st > 0)
		return st;
	return evc_should_stop(p->coord) ? 0 : EVC_UNAVAILABLE;
}

evc_status
evc__worker_serve(struct worker_process *p)
{
	struct frame f;
	bool fine = true;

	while (fine && !evc_should_stop(p->coord)) {
		int got = evc__worker_next(p, &f);

		if (got < 0)
			evc_log(p->coord, EVC_LOG_ERROR, NULL,
				"a message of the coordinator cannot be read: %s",
				evc_last_error());
		if (got <= 0)
			break;
		if (f.type == FRAME_LEAVE)
			return evc__worker_flush(p) ? 0 : EVC_UNAVAILABLE;
		if (f.type == FRAME_TASK)
			fine = serve_task(p, &f);
		else if (f.type == FRAME_DEF)
			fine = serve_def(p, &f);
		else if (f.type == FRAME_FORGET)
			fine = serve_forget(p, &f);
		if (evc__forked_since(p->fork_generation))
			return 0; /* the caller finds it, too */
		if (!fine && !p->gone)
			evc_log(p->coord, EVC_LOG_ERROR, NULL,
				"this worker cannot go on: %s",
				evc_last_error());
		evc__worker_used(p);
	}
	return end_status(p);
}
