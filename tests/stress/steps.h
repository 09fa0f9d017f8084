/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What else a worker of the stress test may do with a coordinator: ask, drain,
 * clear, wait, join in one go or in steps, look, add hooks, take signals.
 */
#ifndef TESTS_STRESS_STEPS_H
#define TESTS_STRESS_STEPS_H

#include "slots.h"

static inline void
ask(const struct spot *p, uint64_t *dice)
{
	evc_status st = (evc_status)roll(dice, 4) * 5;
	evc_coord *c = p->c;

	/* Those that are counted stay stopped until then. */
	if (p->slot->counted && !chance(dice, 20))
		return;
	if (chance(dice, 20)) {
		drain(c, chance(dice, 20) ? INFINITY :
					    (double)roll(dice, 5) / 1e3,
		      "a worker");
		MUST(evc_should_drain(c) || !p->slot->counted);
		return;
	}
	st = evc_request_stop(c, st, "a worker");
	MUST(st >= 0);
	count(REQUESTS);
}

static inline void
clear(const struct spot *p)
{
	evc_status st;

	if (p->slot->counted)
		return;
	st = evc_clear_stop(p->c);
	MUST(st == 0 || st == -EVC_FAILED_PRECONDITION);
	count(st == 0 ? CLEARS : REFUSED_CLEARS);
}

static inline void
wait_or_poll(evc_coord *c, uint64_t *dice)
{
	double most = (double)roll(dice, 5) / 1e3;
	struct pollfd p = { .events = POLLIN };

	if (chance(dice, 50))
		(void)evc_wait_for_stop(c, most);
	else {
		p.fd = evc_stop_fd(c);
		MUST(p.fd >= 0);
		(void)poll(&p, 1, (int)(most * 1e3));
	}
	count(WAITS);
}

static inline void
join(evc_coord *c, uint64_t *dice)
{
	static const double grace[] = { EVC_NO_GRACE, 1e-10, 1e-3, 0.03 };
	evc_join_opts o = { .grace = grace[roll(dice, 4)],
			    .flags = EVC_JOIN_STOP_FIRST |
				     (chance(dice, 50) ?
					      EVC_JOIN_IGNORE_LIVE : 0) };
	evc_verdict v;
	evc_status st = evc_join(c, &o, &v);

	MUST(st >= 0 && st == v.code);
	MUST(st != 0 || v.n_stragglers == 0 ||
	     (o.flags & EVC_JOIN_IGNORE_LIVE));
	count(JOINS);
	if (v.n_stragglers > 0)
		count(LATE);
}

/* In steps, as a poll loop does it; whoever has begun goes on to the end,
   perhaps beside others. */
static inline void
join_in_steps(evc_coord *c, uint64_t *dice)
{
	evc_join_opts o = { .grace = (double)roll(dice, 20) / 1e3 + 1e-9,
			    .flags = EVC_JOIN_STOP_FIRST };
	struct pollfd p = { .fd = -1, .events = POLLIN };
	double wait = 0;
	evc_verdict v;
	evc_status st = evc_join_step(c, &o, &wait, &v);

	if (chance(dice, 70)) {
		p.fd = evc_join_fd(c);
		MUST(p.fd >= 0);
	}
	if (st == -EVC_FAILED_PRECONDITION)
		return;
	while (st < 0) {
		MUST(st == EVC_PENDING || st == -EVC_FAILED_PRECONDITION);
		MUST(wait >= 0);
		/* Another may take the descriptor's word for it. */
		(void)poll(&p, 1, wait < 5e-3 ? (int)(wait * 1e3) : 5);
		st = evc_join_step(c, &o, &wait, &v);
	}
	count(STEPPED);
}

static inline bool
each(const evc_member_info *m, void *arg)
{
	(void)arg;
	MUST(m->kind != 0 && m->state != 0 && memchr(m->name, 0, 48) != NULL);
	return true;
}

static inline void
look(evc_coord *c, uint64_t *dice)
{
	char buf[2000];
	evc_reason r;
	unsigned i;

	switch (roll(dice, 6)) {
	case 5:
		(void)evc_all_stopped(c);
		break;
	case 0:
		MUST(evc_explain(c, buf, sizeof buf) > 0);
		break;
	case 1:
		MUST(evc_report(c, EVC_REPORT_TEXT, buf, sizeof buf) > 0);
		break;
	case 2:
		MUST(evc_member_each(c, each, NULL) == 0);
		break;
	case 3:
		for (i = 0; evc_reason_get(c, i, &r) == 0; i++)
			MUST(r.round > 0 && r.kind > 0 &&
			     r.kind <= EVC_BY_PARENT);
		break;
	default:
		MUST(evc_raise_requested(c, &r) >= 0);
		(void)evc_joined(c);
		break;
	}
	count(LOOKS);
}

static inline void
hook_on_helper(evc_coord *c, uint64_t *dice)
{
	evc_member_opts o = { .flags = chance(dice, 30) ? EVC_ON_DRAIN : 0 };
	evc_id id = 0;

	MUST(evc_on_stop(c, "helper's", hook, NULL, &o, &id) == 0);
	count(HOOKS);
	nap(dice, 1000);
	if (chance(dice, 95))
		MUST(evc_member_remove(c, id) == 0);
}

/* SIGUSR2 is the library's now and then. */
static inline void
own_signals(evc_coord *c, uint64_t *dice)
{
	evc_signals_opts o = { .stop = { SIGUSR2 }, .short_grace = 1e-3 };
	evc_status st = evc_signals_start(c, &o);

	if (st < 0) {
		MUST(st == -EVC_ALREADY_EXISTS);
		return;
	}
	if (chance(dice, 50))
		MUST(raise(SIGUSR2) == 0);
	nap(dice, 3000);
	MUST(evc_signals_stop(c) == 0);
}

#endif
