/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_join: runs the loop of the calling thread, or sleeps on the futex; the
 * sleep never touches libev.
 *
 * Called by: programs, the rooms above, run.c.
 * Locks: the coordinator's, taken for each look.  Atomics: join_seq,
 * n_sleepers.
 */
#include "core/core.h"
#include "core/join/join.h"

#include "base/self.h"
#include "base/unwind.h"

/* No lock: look once.  true: j is answered, and off the list. */
static bool
look_at_join(struct evc__join *j, uint64_t *ret_wait_ns)
{
	evc_coord *c = j->c;
	bool answered;

	evc__later_leave(c);
	evc__log_news(c);
	sync_lock(&c->lock);
	answered = evc__join_look(j, ret_wait_ns);
	if (answered)
		evc__join_end(j);
	sync_unlock(&c->lock);
	return answered;
}

static void
sleep_through(struct evc__join *j)
{
	evc_coord *c = j->c;
	uint64_t wait_ns;
	uint32_t seq;
	bool answered;

	/* The first look is without a count in n_sleepers, so that a change by
	   the look itself wakes no thread. */
	while (!look_at_join(j, &wait_ns)) {
		/* n_sleepers is raised, and join_seq read, before the look that
		   decides to sleep: a later change moves join_seq, and the
		   sleep returns at once. */
		sync_add(&c->stop.n_sleepers, 1);
		seq = sync_load_sc(&c->stop.join_seq);
		answered = look_at_join(j, &wait_ns);
		if (!answered)
			sync_futex_wait(&c->stop.join_seq, seq, wait_ns);
		sync_sub(&c->stop.n_sleepers, 1);
		if (answered)
			break;
	}
}

static evc_status
run_join(evc_coord *c, const evc_join_opts *o, evc_verdict *ret_verdict)
{
	struct evc__join j = { .reap_ns = BACKOFF_MOST_NS };
	evc_reactor *want = o != NULL ? o->reactor : NULL;
	evc_status st = evc__join_check(c, o, "evc_join");

	if (st == 0)
		st = evc__check_self(c, "evc_join");
	if (st < 0)
		return st;
	sync_lock(&c->lock);
	st = evc__check_loop(c, "evc_join");
	if (st == 0)
		st = evc__check_host(c, "evc_join");
	j.reactor = evc__reactor_here(c, want);
	if (st == 0 && want != NULL && j.reactor != want)
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_join: another thread's loop");
	sync_unlock(&c->lock);
	if (st == 0)
		st = evc__adopt_list(c, o);
	if (st < 0)
		return st;
	evc__join_begin(&j, c, o);
	if (j.reactor == NULL)
		sleep_through(&j);
	else if (!evc__join_drive(&j))
		return evc__check(c, "evc_join");
	return evc__join_result(&j, ret_verdict);
}

evc_status
evc_join(evc_coord *c, const evc_join_opts *opts, evc_verdict *ret_verdict)
{
	struct evc__stay in LEAVING(evc__stay_end) = { .c = NULL };
	evc_status st = evc__stay_begin(&in, c, __func__);

	return st < 0 ? st : run_join(c, opts, ret_verdict);
}
