/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A join in steps, for loops that are not libev's.  The join's descriptor is a
 * listener in the coordinator's table, and hears every ring while the join is
 * in progress.  A step first makes the descriptor unreadable and then looks: a
 * later change rings, which makes the descriptor readable again.
 *
 * Called by: evc_join_step, evc_join_fd; abandon and free.
 * Locks: the coordinator's; `busy` claims the step for a thread.
 */
#include "core/core.h"
#include "core/join/join.h"

#include <math.h>

struct evc__step {
	struct evc__listener listener; /* first: tell() casts it to a step */
	/* lock */
	struct evc__join j;
	bool active;  /* j is in progress */
	bool busy;    /* a thread is in a step */
	int fd;       /* -1: not made */
};

/* The longest wait in seconds without a descriptor, because no ring wakes the
   caller then. */
#define WAIT_WITHOUT_FD 0.025

static void
write_step_fd(struct evc__listener *l)
{
	sync_fd_write(((struct evc__step *)l)->fd);
}

/* Lock held. */
static struct evc__step *
step_of(evc_coord *c)
{
	struct evc__step *s = c->join.step;

	if (s != NULL)
		return s;
	s = sync_alloc(1, sizeof *s);
	if (s == NULL)
		return NULL;
	s->listener.tell = write_step_fd;
	s->listener.joins = true;
	s->fd = -1;
	list_init(&s->j.node);
	return c->join.step = s;
}

/* Lock held.  yes: the descriptor hears every ring from now on; no: only a
   stop. */
static void
hear_rings(evc_coord *c, struct evc__step *s, bool yes)
{
	uint32_t change = yes ? 1 : (uint32_t)-1;

	sync_add(&s->listener.n_joins, change);
	sync_add(&c->stop.n_loop_joins, change);
}

int
evc_join_fd(evc_coord *c)
{
	evc_status st = evc__check(c, __func__);
	struct evc__step *s;
	int fd;

	if (st < 0)
		return st;
	sync_lock(&c->lock);
	s = step_of(c);
	fd = s != NULL ? s->fd : -1;
	if (s != NULL && fd < 0) {
		fd = sync_eventfd();
		s->fd = fd;
		if (fd >= 0 && !evc__listen(c, &s->listener)) {
			sync_fd_close(fd);
			s->fd = fd = -1;
		}
		/* The first step must come at once. */
		if (fd >= 0)
			sync_fd_write(fd);
	}
	sync_unlock(&c->lock);
	return fd >= 0 ? fd :
			 evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				     "evc_join_fd: no descriptor, or no "
				     "memory");
}

/* Claim the step for this thread; *ret_begin: the join has to begin. */
static evc_status
claim_step(evc_coord *c, struct evc__step **ret, bool *ret_begin)
{
	evc_status st = 0;
	struct evc__step *s;

	sync_lock(&c->lock);
	s = step_of(c);
	if (s == NULL)
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "evc_join_step: no memory");
	else if (s->busy)
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_join_step: another thread is in it");
	else {
		s->busy = true;
		*ret_begin = !s->active;
	}
	sync_unlock(&c->lock);
	*ret = s;
	return st;
}

static void
begin_step(evc_coord *c, struct evc__step *s, const evc_join_opts *o)
{
	memset(&s->j, 0, sizeof s->j);
	s->j.stepped = true;
	sync_lock(&c->lock);
	hear_rings(c, s, true);
	s->active = true;
	sync_unlock(&c->lock);
	evc__join_begin(&s->j, c, o);
}

static evc_status
look_at_step(evc_coord *c, struct evc__step *s, double *ret_wait,
	     evc_verdict *ret_verdict)
{
	uint64_t wait_ns;
	bool answered;
	int fd;

	evc__log_errors(c);
	sync_lock(&c->lock);
	fd = s->fd;
	if (fd >= 0)
		sync_fd_drain(fd);
	answered = evc__join_look(&s->j, &wait_ns);
	if (answered) {
		evc__join_end(&s->j);
		hear_rings(c, s, false);
		s->active = false;
	}
	sync_unlock(&c->lock);
	if (answered)
		return evc__join_result(&s->j, ret_verdict);
	if (ret_wait != NULL) {
		*ret_wait = wait_ns == SYNC_FOREVER ? INFINITY :
						      (double)wait_ns / 1e9;
		if (fd < 0 && *ret_wait > WAIT_WITHOUT_FD)
			*ret_wait = WAIT_WITHOUT_FD;
	}
	return EVC_PENDING;
}

static evc_status
take_step(evc_coord *c, const evc_join_opts *o, double *ret_wait,
	  evc_verdict *ret_verdict)
{
	struct evc__step *s;
	bool fresh = false;
	evc_status st = claim_step(c, &s, &fresh);

	if (st < 0)
		return st;
	if (fresh) {
		st = evc__join_check(c, o, "evc_join_step");
		if (st == 0)
			st = evc__adopt_list(c, o);
		if (st == 0)
			begin_step(c, s, o);
	}
	if (st == 0)
		st = look_at_step(c, s, ret_wait, ret_verdict);
	sync_lock(&c->lock);
	s->busy = false;
	sync_unlock(&c->lock);
	return st;
}

evc_status
evc_join_step(evc_coord *c, const evc_join_opts *opts, double *ret_wait,
	      evc_verdict *ret_verdict)
{
	evc_status st = evc__check(c, __func__);
	int old;

	if (st == 0)
		st = evc__enter(c, -EVC_FAILED_PRECONDITION, __func__);
	if (st < 0)
		return st;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	st = take_step(c, opts, ret_wait, ret_verdict);
	evc__refgate_leave(&c->life.gate);
	pthread_setcancelstate(old, NULL);
	return st;
}

void
evc__step_drop(evc_coord *c)
{
	struct evc__step *s = c->join.step;

	if (s == NULL)
		return;
	sync_lock(&c->lock);
	evc__unlisten(c, &s->listener);
	c->join.step = NULL;
	sync_unlock(&c->lock);
	if (s->fd >= 0)
		sync_fd_close(s->fd);
	sync_free(s);
}
