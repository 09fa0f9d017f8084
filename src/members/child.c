/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Child processes as members.  A pidfd reports the end of a child, so SIGCHLD
 * and its handlers stay the program's.  The thread that requests a stop sends
 * SIGTERM itself: the signal never blocks, and no loop has to turn.
 * Called by: the program, to add a child; the joins, which reap; any requester
 * of a stop, by the table of listeners.
 * Locks: the coordinator's lock; term_ns is atomic.
 */
#include "members/runner.h"

#include <string.h>

#include "base/libc.h"
#include "base/reap.h"
#include "base/text.h"
#include "core/join/join.h"
#include "core/loop/reaped.h"

#define NOT_IN UINT64_MAX

/* For so long an end waits for the stop of the same signal, and a lost status for
   the default loop that has reaped the child. */
#define STOP_NS UINT64_C(50000000)
#define TOLD_NS UINT64_C(400000000)

struct child {
	struct evc__runner r; /* first */
	/* set at creation */
	struct evc__listener listener;
	pid_t pid; /* r.m.pidfd is closed after the listener has left */
	struct evc__reaped reaped;
	/* atomic: requesters -> joins; the time of the SIGTERM, 0: not sent,
	   NOT_IN: the child is no member yet */
	_Atomic uint64_t term_ns;
	/* lock */
	bool killed; /* by the library, at the end of the grace */
	enum reap end; /* REAP_RUNS: it was not reaped */
	siginfo_t info; /* of REAP_ENDED */
	uint64_t reaped_ns;
	uint64_t looked_ns;  /* last check of the child's grace; 0: none yet */
	uint64_t put_off_ns; /* later end of the child's grace; 0: unchanged */
};

static struct child *
child_of(struct evc__runner *r)
{
	return LIST_OF(r, struct child, r);
}

/* Signal-safe. */
static void
send_signal(const struct child *ch, int sig)
{
	evc__reap_signal(ch->r.m.pidfd, ch->pid, sig);
}

/* ---- the stop ---- */

/* Any thread, signal-safe. */
static void
terminate_child(struct child *ch)
{
	uint64_t not_yet = 0;

	if (!sync_cas(&ch->term_ns, &not_yet, evc__now(ch->r.m.c) | 1))
		return;
	send_signal(ch, SIGTERM);
	send_signal(ch, SIGCONT); /* for a child that is stopped */
}

static void
terminate_at_stop(struct evc__listener *l)
{
	struct child *ch = LIST_OF(l, struct child, listener);

	/* Not at a drain. */
	if (evc_should_stop(ch->r.m.c))
		terminate_child(ch);
}

/* ---- the end of a child: lock held ---- */

/* "was killed by SIGSEGV" */
static void
add_status(struct text *t, const struct child *ch)
{
	const siginfo_t *i = &ch->info;
	const char *name = evc__signal_name(i->si_status);

	if (i->si_code == CLD_EXITED) {
		evc__text_add(t, "ended with exit status ");
		evc__text_int(t, i->si_status);
	} else if (ch->killed && i->si_status == SIGKILL) {
		evc__text_add(
			t,
			"ignored SIGTERM and was killed (SIGKILL) at the end "
			"of the grace");
	} else {
		evc__text_add(t, "was killed by ");
		evc__text_add(t, name != NULL ? "SIG" : "signal ");
		if (name != NULL)
			evc__text_add(t, name);
		else
			evc__text_int(t, i->si_status);
		if (i->si_code == CLD_DUMPED)
			evc__text_add(t, " (core dumped)");
	}
}

/* A stop here, or of a coordinator above, which a later phase has still to hear
   of. */
static bool
stop_has_begun(const struct child *ch)
{
	const evc_coord *c = ch->r.m.c;

	if (sync_load(&ch->term_ns) != 0)
		return true;
	while (c != NULL && !evc_should_stop(c))
		c = c->parent;
	return c != NULL;
}

/* The child, or the shell around it, has obeyed.  SIGINT: a terminal sends this
   signal to the children, too. */
static bool
is_obedient(const struct child *ch)
{
	const siginfo_t *i = &ch->info;
	int signo = i->si_code == CLD_EXITED ? i->si_status - 128 :
					       i->si_status;

	return signo == SIGTERM || signo == SIGINT;
}

/* The child was reaped: what its end means is known a moment later.  The default
   loop may have to tell the status.  A signal to the whole group, as of a
   terminal, ends the child perhaps before this process has made a stop of it. */
static bool
is_in_doubt(const struct child *ch)
{
	uint64_t age = sync_mono() - ch->reaped_ns;

	if (ch->end == REAP_LOST)
		return age < TOLD_NS && evc__reaped_may_be_told();
	return age < STOP_NS && is_obedient(ch) &&
	       !(ch->r.m.e.flags & EVC_MAY_FAIL) && !stop_has_begun(ch);
}

static evc_status
status_of_end(const struct child *ch)
{
	const siginfo_t *i = &ch->info;

	if (ch->end == REAP_LOST && ch->killed)
		return EVC_DEADLINE_EXCEEDED;
	if (ch->end == REAP_LOST)
		return stop_has_begun(ch) ? 0 : EVC_UNKNOWN;
	if (i->si_code == CLD_EXITED && i->si_status == 0)
		return 0;
	if (stop_has_begun(ch) && is_obedient(ch))
		return 0;
	if (ch->killed && i->si_code != CLD_EXITED && i->si_status == SIGKILL)
		return EVC_DEADLINE_EXCEEDED;
	return EVC_ABORTED;
}

static void
conclude_child(struct child *ch)
{
	struct evc__member *m = &ch->r.m;
	evc_coord *c = m->c;
	char text[96];
	struct text t = evc__text_in(text, sizeof text);
	struct evc__request q = { .kind = EVC_BY_MEMBER_END,
				  .tid = ch->pid,
				  .by = m->e.id,
				  .who = m->name,
				  .text = text };

	q.code = status_of_end(ch);
	evc__outcome_is(m, q.code);
	if (ch->end == REAP_ENDED)
		add_status(&t, ch);
	else if (ch->killed)
		evc__text_add(&t, "was killed at the end of the grace");
	else
		evc__text_add(&t, "its exit status is lost: somebody else "
				  "has reaped it");
	if ((m->e.flags & EVC_MAY_FAIL) &&
	    !evc__is_clean(c, sync_load(&c->word), q.code)) {
		evc__log_held(c, EVC_LOG_WARNING, "child %s (pid %d) %s",
			      m->name, (int)ch->pid, text);
		q.code = 0;
	}
	/* The request comes first, because the round may close when no member
	   is alive. */
	if (!evc__is_clean(c, sync_load(&c->word), q.code) ||
	    (m->e.flags & EVC_END_STOPS))
		evc__request(c, &q);
	ch->r.ended = ch->r.over = true;
}

/* Reap the child if it has ended.  true: reaped, and so joined. */
static bool
reap_child(struct child *ch)
{
	if (ch->end == REAP_RUNS) {
		ch->end = evc__reap(ch->r.m.pidfd, ch->pid, &ch->info);
		ch->reaped_ns = sync_mono();
	}
	if (ch->end == REAP_LOST && evc__reaped_told(&ch->reaped, &ch->info))
		ch->end = REAP_ENDED;
	if (ch->end == REAP_RUNS || is_in_doubt(ch))
		return false;
	conclude_child(ch);
	return true;
}

static void
child_vanished(struct evc__member *m)
{
	struct child *ch = LIST_OF(m, struct child, r.m);

	if (reap_child(ch))
		evc__runner_settle(&ch->r);
	else if (ch->end == REAP_RUNS) {
		/* A debugger still holds the child. */
		evc__unlisten(m->c, &ch->listener);
		evc__helper_unwatch(m->c, m);
		evc__member_probed(m, true);
	}
}

static void
release_child(struct evc__member *m)
{
	struct child *ch = LIST_OF(m, struct child, r.m);

	list_remove(&ch->r.all);
	evc__reaped_forget(&ch->reaped);
	/* Without the listener no thread uses the pidfd any more. */
	evc__unlisten(m->c, &ch->listener);
	evc__helper_unwatch(m->c, m);
}

static const struct evc__member_ops member_ops = {
	.vanished = child_vanished,
	.release = release_child,
	.remove = evc__runner_remove,
};

/* ---- the operations of a runner: lock held ---- */

/* true: the child was killed, and each join gives its end a moment. */
static bool
kill_child(struct evc__runner *r)
{
	struct child *ch = child_of(r);

	if (!ch->killed && !r->over)
		send_signal(ch, SIGKILL);
	ch->killed = true;
	return !r->over;
}

/* Is the child's own grace over?  A long gap between two checks means that this
   process was frozen, and so was the child: then the end is put off once, as
   for a join. */
static bool
own_grace_over(struct child *ch)
{
	const evc_coord *c = ch->r.m.c;
	uint64_t term = sync_load(&ch->term_ns);
	uint64_t looked = ch->looked_ns != 0 ? ch->looked_ns : term;
	uint64_t grace = evc__ns(ch->r.m.grace), now, end;

	if (term == 0 || ch->r.m.grace == 0)
		return false;
	now = ch->looked_ns = evc__now(c);
	end = ch->put_off_ns != 0 ? ch->put_off_ns : evc__after(term, grace);
	if (now < end)
		return false;
	if (c->status.clock != NULL || now - end <= FROZEN_NS ||
	    ch->put_off_ns != 0 || looked >= end)
		return true;
	ch->put_off_ns = now + (now - end < grace ? now - end : grace);
	return false;
}

static bool
attend_child(struct evc__runner *r, bool probe)
{
	struct child *ch = child_of(r);

	if (r->over)
		return false;
	if (evc_should_stop(r->m.c)) {
		terminate_child(ch);
		/* The end of the grace wakes no join, so joins have to ask. */
		if (r->m.grace != 0 && !r->m.probed)
			evc__member_probed(&r->m, true);
	}
	if (own_grace_over(ch))
		kill_child(r);
	return (probe || r->ended) && reap_child(ch);
}

static bool
is_running(struct evc__runner *r)
{
	const struct child *ch = child_of(r);
	siginfo_t info;

	return !r->over &&
	       evc__reap_look(ch->r.m.pidfd, ch->pid, &info) == REAP_RUNS;
}

static void
describe_child(const struct evc__runner *r, char *buf, size_t n)
{
	struct text t = evc__text_in(buf, n);

	evc__text_add(&t, "pid ");
	evc__text_int(&t, LIST_OF(r, const struct child, r)->pid);
}

static const struct evc__runner_own own = {
	.attend = attend_child,
	.force = kill_child,
	.is_running = is_running,
	.describe = describe_child,
};

/* ---- adding a child ---- */

static evc_status
enter_child(evc_coord *c, struct child *ch, const evc_member_opts *o)
{
	static const char func[] = "evc_child_add";
	struct evc__member *m = &ch->r.m;
	siginfo_t info;
	evc_status st;

	evc__reaped_expect(&ch->reaped, ch->pid);
	m->pidfd = sync_pidfd_process(ch->pid);
	/* The question goes by the pidfd, for a pid may be used again. */
	if (evc__reap_look(m->pidfd, ch->pid, &info) == REAP_LOST &&
	    !evc__reaped_told(&ch->reaped, &info))
		return evc__refuse(-EVC_NOT_FOUND,
				   "%s: %d is no child of this process", func,
				   (int)ch->pid);
	sync_store(&ch->term_ns, NOT_IN);
	if (!evc__listen(c, &ch->listener))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   func);
	st = evc__runner_enter(c, &ch->r, o, func);
	if (st < 0) {
		evc__unlisten(c, &ch->listener);
		return st;
	}
	if (m->pidfd < 0 || !evc__helper_watch(c, m))
		evc__member_probed(m, true);
	/* The listener was added before this check, so no stop is missed. */
	sync_store_sc(&ch->term_ns, 0);
	if (sync_load_sc(&c->word) & WORD_FLAG)
		terminate_child(ch);
	return 0;
}

static evc_status
child_add(evc_coord *c, const char *name, pid_t pid, const evc_member_opts *o,
	  evc_id *ret_id)
{
	static const char func[] = "evc_child_add";
	char number[32];
	struct text t = evc__text_in(number, sizeof number);
	struct child *ch;
	evc_status st;

	if (pid <= 0)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: %d is the id of no process", func,
				   (int)pid);
	st = evc__runner_check(c, EVC_CHILD, o, func);
	if (st < 0)
		return st;
	evc__text_add(&t, "child ");
	evc__text_int(&t, pid);
	ch = (struct child *)evc__member_new(
		c, sizeof *ch, EVC_RUNNER,
		name != NULL && name[0] != '\0' ? name : number, o);
	if (ch == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   func);
	ch->r.m.ops = &member_ops;
	ch->r.own = &own;
	ch->pid = pid;
	ch->listener.tell = terminate_at_stop;
	sync_lock(&c->lock);
	st = evc__outcome_new(&ch->r.m, func);
	if (st == 0)
		st = enter_child(c, ch, o);
	if (st == 0) {
		if (ret_id != NULL)
			*ret_id = ch->r.m.e.id;
		evc__ring(c);
	} else {
		evc__reaped_forget(&ch->reaped);
		if (ch->r.m.pidfd >= 0)
			sync_fd_close(ch->r.m.pidfd);
	}
	sync_unlock(&c->lock);
	if (st < 0)
		evc__member_discard(&ch->r.m);
	return st;
}

evc_status
evc_child_add(evc_coord *c, const char *name, pid_t pid,
	      const evc_member_opts *opts, evc_id *ret_id)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = child_add(c, name, pid, opts, ret_id);
	return evc__refuse_member(c, __func__, opts, st);
}
