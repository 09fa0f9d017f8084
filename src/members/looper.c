/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loopers: functions that the library calls at an interval.  Here are the calls
 * of the program for both kinds, on a loop and on a thread of its own.
 * Called by: the program, on any thread; core and observe, by evc__looper_ops.
 * Locks: the coordinator's lock.
 */
#include "base/text.h"
#include "core/core.h"
#include "members/looper.h"

/* ---- the start ---- */

bool
evc__looper_needs_more(const evc_member_opts *o)
{
	return o != NULL && (o->start != NULL || o->stop != NULL ||
			     o->missed > EVC_MISSED_SKIP || o->jitter != 0 ||
			     o->grace != 0 || o->unblock != NULL ||
			     o->release != NULL);
}

void
evc__looper_body(struct evc__body *b, double interval, evc_fn *fn, void *arg,
		 const evc_member_opts *o, struct evc__looper_more *more)
{
	b->fn = fn;
	b->arg = arg;
	b->schedule.interval = interval;
	if (o != NULL && (o->flags & EVC_PAUSED))
		b->bits = LOOPER_DORMANT;
	b->more = more;
	if (more == NULL)
		return;
	more->start = o->start;
	more->stop = o->stop;
	more->policy.missed = o->missed;
	more->policy.jitter = o->jitter;
	more->grace = o->grace;
}

void
evc__looper_begin(struct evc__body *b, evc_id id, uint64_t now)
{
	if (b->more != NULL)
		b->more->policy.seed = id;
	evc__schedule_begin(&b->schedule, now);
}

static evc_status
check_looper(evc_coord *c, double interval, evc_fn *fn,
	     const evc_member_opts *o)
{
	evc_status st = 0;

	if (fn == NULL)
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_looper_start: no function");
	if (st == 0 && !(interval >= 0))
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_looper_start: the interval is not a "
				 "time");
	if (st == 0)
		st = evc__check_opts(o, EVC_LOOPER, "evc_looper_start");
	if (st < 0 || o == NULL)
		return st;
	if (!evc__policy_valid(o->missed))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_looper_start: missed is none of "
				   "EVC_MISSED_...: %#x",
				   o->missed);
	if (o->reactor != NULL && o->reactor->c != c)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_looper_start: another coordinator's "
				   "reactor");
	return 0;
}

static evc_status
looper_start(evc_coord *c, const char *name, double interval, evc_fn *fn,
	     void *arg, const evc_member_opts *o, evc_id *ret_id)
{
	evc_reactor *r =
		o != NULL && o->reactor != NULL ? o->reactor : evc__home(c);
	evc_status st = check_looper(c, interval, fn, o);
	char short_name[48];

	if (st < 0)
		return st;
	if (name == NULL || name[0] == '\0')
		name = "looper";
	evc__copy_dots(short_name, sizeof short_name, name);
	sync_lock(&c->lock);
	if (c->member.looper_ops == NULL)
		list_init(&c->member.dormant);
	c->member.looper_ops = &evc__looper_ops;
	sync_unlock(&c->lock);
	if (o != NULL && (o->flags & EVC_OWN_THREAD))
		return evc__own_looper_start(c, short_name, interval, fn, arg, o,
					     ret_id);
	if (r == NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_looper_start: no reactor, and no home");
	return evc__loop_looper_start(r, short_name, interval, fn, arg, o,
				      ret_id);
}

evc_status
evc_looper_start(evc_coord *c, const char *name, double interval, evc_fn *fn,
		 void *arg, const evc_member_opts *opts, evc_id *ret_id)
{
	evc_status st = evc__check(c, __func__);

	evc__fork_also(evc__loopers_inherited);
	if (st == 0)
		st = looper_start(c, name, interval, fn, arg, opts, ret_id);
	return evc__refuse_member(c, __func__, opts, st);
}

/* ---- the calls by id ---- */

static void
looper_changed(struct evc__entry *e)
{
	if (e->on_loop)
		evc__loop_looper_changed(e);
	else
		evc__own_looper_changed(e);
}

/* Lock held: find a looper by id.  NULL, and *st: no looper has the id, or a
   stop was requested.  other: the status for a member of another kind. */
static struct evc__body *
find_looper(evc_coord *c, evc_id id, evc_status other, const char *func,
	    struct evc__entry **ret_e, evc_status *st)
{
	struct evc__entry *e = evc__id_find(c, id);
	struct evc__body *b = NULL;

	if (e != NULL && e->kind != EVC_LOOPER) {
		*st = evc__refuse(other, "%s: member %llu is no looper", func,
				  (unsigned long long)id);
		return NULL;
	}
	if (e != NULL)
		b = e->on_loop ? evc__loop_looper_body(e) :
			       evc__own_looper_body(e);
	if (b == NULL || (b->bits & LOOPER_REMOVED)) {
		*st = evc__refuse(-EVC_NOT_FOUND, "%s: no looper %llu", func,
				  (unsigned long long)id);
		return NULL;
	}
	if (evc_should_stop(c)) {
		*st = evc__refuse(-EVC_CANCELLED, "%s: a stop was requested",
				  func);
		return NULL;
	}
	*ret_e = e;
	return b;
}

evc_status
evc_looper_trigger(evc_coord *c, evc_id id)
{
	evc_status st = evc__check(c, __func__);
	struct evc__entry *e;
	struct evc__body *b;

	if (st < 0)
		return st;
	sync_lock(&c->lock);
	b = find_looper(c, id, -EVC_NOT_FOUND, __func__, &e, &st);
	if (b != NULL && (b->bits & (LOOPER_DORMANT | LOOPER_PAUSED)))
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_looper_trigger: it is paused");
	else if (b != NULL) {
		b->bits |= LOOPER_TRIGGERED;
		looper_changed(e);
	}
	sync_unlock(&c->lock);
	return st;
}

evc_status
evc_looper_set_interval(evc_coord *c, evc_id id, double interval)
{
	evc_status st = evc__check(c, __func__);
	struct evc__entry *e;
	struct evc__body *b;

	if (st == 0 && !(interval >= 0))
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_looper_set_interval: the interval is not "
				 "a time");
	if (st < 0)
		return st;
	sync_lock(&c->lock);
	b = find_looper(c, id, -EVC_NOT_FOUND, __func__, &e, &st);
	if (b != NULL) {
		evc__schedule_change(&b->schedule, interval, evc__now(c));
		looper_changed(e);
	}
	sync_unlock(&c->lock);
	return st;
}

evc_status
evc_member_pause(evc_coord *c, evc_id id)
{
	evc_status st = evc__check(c, __func__);
	struct evc__entry *e;
	struct evc__body *b;

	if (st < 0)
		return st;
	sync_lock(&c->lock);
	b = find_looper(c, id, -EVC_FAILED_PRECONDITION, __func__, &e, &st);
	if (b != NULL && !(b->bits & (LOOPER_DORMANT | LOOPER_PAUSED))) {
		b->bits |= LOOPER_PAUSED;
		/* A resume begins with a run anyway. */
		b->bits &= ~(uint32_t)LOOPER_TRIGGERED;
		looper_changed(e);
	}
	sync_unlock(&c->lock);
	return st;
}

/* Lock held. */
static evc_status
resume_looper(evc_coord *c, struct evc__entry *e, struct evc__body *b)
{
	evc_status st = 0;

	if (!(b->bits & (LOOPER_DORMANT | LOOPER_PAUSED)))
		return 0;
	evc__schedule_begin(&b->schedule, evc__now(c));
	if (b->bits & LOOPER_DORMANT)
		st = e->on_loop ? evc__loop_looper_wake(e) :
				evc__own_looper_wake(e);
	if (st < 0)
		return st;
	b->bits &= ~(uint32_t)(LOOPER_DORMANT | LOOPER_PAUSED);
	looper_changed(e);
	return 0;
}

evc_status
evc_member_resume(evc_coord *c, evc_id id)
{
	evc_status st = evc__check(c, __func__);
	struct evc__entry *e;
	struct evc__body *b;

	if (st < 0)
		return st;
	sync_lock(&c->lock);
	b = find_looper(c, id, -EVC_FAILED_PRECONDITION, __func__, &e, &st);
	if (b != NULL)
		st = resume_looper(c, e, b);
	sync_unlock(&c->lock);
	return st;
}

/* ---- for the core and the reports ---- */

static void
view_looper(const struct evc__entry *e, struct evc__looper_view *v)
{
	if (e->on_loop)
		evc__loop_looper_view(e, v);
	else
		evc__own_looper_view(e, v);
}

const struct evc__looper_ops evc__looper_ops = {
	.stop = evc__loopers_stop,
	.drop = evc__loopers_drop,
	.turn = evc__loopers_turn,
	.forget = evc__loopers_forget,
	.remove = evc__loop_looper_remove,
	.each = evc__loopers_each,
	.view = view_looper,
};
