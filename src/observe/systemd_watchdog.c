/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watchdog: a looper asks all loops of the program at its interval, by
 * their ev_asyncs; WATCHDOG=1 is sent when the last of the loops has answered.
 * The loop that the looper is on need not be asked.
 * Called by: systemd.c, and systemd_stop.c after a clear; the looper; the
 * helper's job.
 * Locks: the coordinator's and those below, taken; sd->asking needs the lock.
 */
#include "observe/systemd.h"

#include "base/self.h"
#include "core/join/join.h"

/* Lock held.  ask: ask all loops of c and below that have run.  Returns whether
   a loop has not answered yet. */
static bool
loops_owe(evc_coord *c, bool ask)
{
	struct list *n, *tmp;
	bool owe = false;

	LIST_EACH(n, tmp, &c->loop.reactors) {
		evc_reactor *r = LIST_OF(n, evc_reactor, node);
		struct evc__loop_waker *lw = r->waker;

		/* A loop that is not run yet, in the set-up, is not asked. */
		if (!r->owner || r->loop == NULL || lw->tid == evc__tid() ||
		    sync_load_relaxed(&lw->turned) == 0)
			continue;
		if (ask)
			evc__loop_waker_ask(lw);
		owe |= sync_load_sc(&lw->asked);
	}
	LIST_EACH(n, tmp, &c->scopes) {
		evc_coord *s = SCOPE_OF(n);

		sync_lock(&s->lock);
		owe |= loops_owe(s, ask);
		sync_unlock(&s->lock);
	}
	return owe;
}

static void
send_ping(const struct evc__systemd *sd)
{
	static const char lines[] = "WATCHDOG=1\n";

	evc__manager_send(&sd->manager, lines, sizeof lines - 1);
}

/* The looper.  When a loop still owes an answer after the interval no loop is
   asked again, so that two slow loops do not hold up each other's answers. */
static evc_status
ask_loops(evc_coord *c, void *arg)
{
	struct evc__systemd *sd = arg;
	bool owe;

	sync_lock(&c->lock);
	owe = sd->asking = loops_owe(c, !sd->asking);
	sync_unlock(&c->lock);
	if (!owe)
		send_ping(sd);
	return 0;
}

uint64_t
evc__systemd_answers(struct evc__systemd *sd)
{
	uint64_t soon = evc__ns(sd->watchdog / 4);
	bool asked, owe;

	sync_lock(&sd->c->lock);
	asked = sd->asking;
	owe = sd->asking = asked && loops_owe(sd->c, false);
	sync_unlock(&sd->c->lock);
	if (asked && !owe)
		send_ping(sd);
	/* A loop that goes away gives no answer; so look again soon. */
	if (!owe)
		return SYNC_FOREVER;
	return soon > BACKOFF_FIRST_NS ? soon : BACKOFF_FIRST_NS;
}

evc_status
evc__systemd_watch(struct evc__systemd *sd)
{
	evc_member_opts o = { .reactor = sd->reactor,
			      .flags = EVC_BACKGROUND };
	evc_status st;

	/* While a stop stands the helper's job does this. */
	if (evc_should_stop(sd->c))
		return 0;
	if (sd->reactor == NULL)
		o.flags |= EVC_OWN_THREAD;
	st = evc_looper_start(sd->c, "watchdog", sd->watchdog, ask_loops, sd,
			      &o, &sd->looper);
	return st == -EVC_CANCELLED ? 0 : st;
}
