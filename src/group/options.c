/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is what evc_workers_init was given possible?
 */
#include "group/group.h"

#include "base/room.h"

static evc_status
bad(const char *func, const char *what)
{
	return evc_refuse(-EVC_INVALID_ARGUMENT, "%s: %s", func, what);
}

static evc_status
check_clean(const evc_workers_opts *o, const char *func)
{
	unsigned i;

	if (o->n_clean > EVC__CLEAN_MOST)
		return bad(func, "more clean codes than there are codes");
	if (o->n_clean > 0 && o->clean == NULL)
		return bad(func, "n_clean without clean");
	for (i = 0; i < o->n_clean; i++)
		if (o->clean[i] < 0 || o->clean[i] > 255)
			return bad(func, "a clean code outside 0..255");
	return 0;
}

/* What stands for other kinds of members says nothing of a worker. */
static evc_status
check_member(const evc_member_opts *m, const char *func)
{
	if (!ROOM_IS_ZERO(m->reserved_))
		return bad(func, "reserved room of member is not 0");
	if (m->flags & ~(unsigned)(EVC_KICK | EVC_WATCHED))
		return bad(func, "member.flags: only EVC_KICK and "
				 "EVC_WATCHED");
	if (m->reactor != NULL || m->missed != 0 || m->start != NULL ||
	    m->stop != NULL || m->jitter != 0)
		return bad(func, "member: what stands for loopers and hooks");
	if (!evc__is_grace(m->grace))
		return bad(func, "member.grace is no time");
	return 0;
}

evc_status
evc__workers_check_opts(const evc_workers_opts *o, const char *func)
{
	evc_status st;

	if (!ROOM_IS_ZERO(o->reserved_))
		return bad(func, "reserved room is not 0");
	if (o->n_threads > EVC__WORKERS_MOST)
		return bad(func, "more than 4096 threads");
	if (o->flags & ~(unsigned)EVC_WORKERS_ASIDE)
		return bad(func, "unknown flags");
	if (o->on_error > EVC_WORKERS_RESTART)
		return bad(func, "unknown on_error");
	st = evc__restart_check(&o->restart);
	if (st == 0)
		st = check_clean(o, func);
	if (st == 0)
		st = check_member(&o->member, func);
	return st;
}
