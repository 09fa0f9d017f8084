/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A signal on which a report is written.  The handler sets a flag and wakes the
 * helper thread, which writes the report as a job: no part of a report is safe
 * in a handler.  Signals that come before the job runs share a report.  At most
 * one coordinator of the process owns the signal.
 * Called by: the program (evc_dump_signal); the kernel (on_signal); the helper
 * thread (run_dump); core, when the owner is freed.
 * Locks: `lock`; the coordinator's lock for struct dump.off.  `owner` and
 * `asked` are atomic; `inside` counts the running handlers.
 */
#include <signal.h>

#include "base/kick.h"
#include "base/stack.h"
#include "core/core.h"
#include "core/helper/job.h"
#include "signals/signals.h"

/* A job that writes reports.  A job that was replaced on the helper thread
   stays, with `off` set, until its coordinator is freed: the helper may be
   inside. */
struct dump {
	struct evc__helper_job job; /* first: the argument of run_dump() */
	evc_coord *c;            /* set at creation */
	int fd;
	unsigned format;
	bool off;                /* lock of c */
	struct dump *next;       /* `lock` */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(evc_coord *) owner;
static struct readers inside;
/* atomic: handlers -> the helper */
static _Atomic bool asked;

/* lock */
static struct dump *standing, *retired;
/* lock; read by handlers while there is an owner */
static int signo;
static struct sigaction former;

/* ---- the handler ---- */

static void
on_signal(int n)
{
	int e = errno;
	evc_coord *c;

	evc__readers_enter(&inside);
	c = sync_load_sc(&owner);
	if (c != NULL && !evc__same_process(c)) {
		/* A fork child inherits the handler only: do as without the
		   library. */
		sigaction(n, &former, NULL);
		raise(n);
	} else if (c != NULL) {
		sync_store_sc(&asked, true);
		evc__helper_ring(c);
	}
	evc__readers_leave(&inside);
	errno = e;
}

static bool
is_ours(int n)
{
	struct sigaction now;

	return sigaction(n, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
	       now.sa_handler == on_signal;
}

/* Helper thread. */
static uint64_t
run_dump(evc_coord *c, struct evc__helper_job *k)
{
	struct dump *d = (struct dump *)k;
	bool off;

	if (!sync_load_sc(&asked) || sync_load_sc(&owner) != c)
		return SYNC_FOREVER;
	sync_lock(&c->lock);
	off = d->off;
	sync_unlock(&c->lock);
	/* Cleared before the report: a signal during the report gets another
	   report. */
	if (!off && sync_xchg(&asked, false))
		(void)evc_dump(c, d->fd, d->format);
	return SYNC_FOREVER;
}

/* ---- the handler's begin and end ---- */

/* Lock held: set the former handler again. */
static void
restore_handler(void)
{
	/* A later handler of the program stays. */
	if (is_ours(signo))
		sigaction(signo, &former, NULL);
}

/* Lock held: on_signal does nothing from now on. */
static void
disarm_signal(void)
{
	restore_handler();
	sync_store_sc(&owner, NULL);
	evc__readers_quiet(&inside);
	signo = 0;
}

/* No lock: d writes no further report.  On the helper thread, which may be
   inside d, d is kept for later. */
static void
retire_dump(struct dump *d)
{
	evc_coord *c = d->c;
	bool helper = evc__helper_is_self(c);

	sync_lock(&c->lock);
	d->off = true;
	if (!helper)
		evc__helper_job_remove(c, &d->job);
	sync_unlock(&c->lock);
	if (!helper) {
		sync_free(d);
		return;
	}
	sync_lock(&lock);
	d->next = retired;
	retired = d;
	sync_unlock(&lock);
}

/* Lock held: take the kept jobs of c from the list. */
static struct dump *
take_retired(const evc_coord *c)
{
	struct dump **at = &retired, *d, *all = NULL;

	while ((d = *at) != NULL) {
		if (d->c != c) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		d->next = all;
		all = d;
	}
	return all;
}

/* c is freed; on the helper thread only outside of these jobs. */
static void
release_for_free(evc_coord *c)
{
	struct dump *d, *next;

	sync_lock(&lock);
	d = take_retired(c);
	if (sync_load(&owner) == c) {
		disarm_signal();
		standing->next = d;
		d = standing;
		standing = NULL;
	}
	sync_unlock(&lock);
	for (; d != NULL; d = next) {
		next = d->next;
		sync_lock(&c->lock);
		if (evc__helper_is_self(c))
			list_remove(&d->job.node);
		else
			evc__helper_job_remove(c, &d->job);
		sync_unlock(&c->lock);
		sync_free(d);
	}
}

/* In a fork child: handlers and lock holders were the parent's threads. */
static void
fork_reset(void)
{
	sync_store(&inside.n, 0);
	sync_store(&asked, false);
	sync_lock_init(&lock);
}

/* Lock held, in a fork child: free the parent's jobs. */
static void
forget_parents(void)
{
	struct dump *d, *next;

	disarm_signal();
	standing->next = retired;
	for (d = standing; d != NULL; d = next) {
		next = d->next;
		sync_free(d);
	}
	standing = retired = NULL;
}

static evc_status
check_dump(int n, int fd, unsigned format)
{
	unsigned form = format & ~(unsigned)EVC_REPORT_STACKS;
	const char *why = NULL;
	struct sigaction now;

	if (!evc__signal_usable(n) || sigaction(n, NULL, &now) < 0)
		why = "this signal cannot be caught";
	else if (form < EVC_REPORT_TEXT || form > EVC_REPORT_METRICS)
		why = "no such format";
	else if (format == (EVC_REPORT_METRICS | EVC_REPORT_STACKS))
		why = "counters have no stacks";
	else if (fd < 0)
		why = "no descriptor";
	if (why != NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_dump_signal: %s", why);
	if (evc__signals_has(n))
		return evc__refuse(-EVC_ALREADY_EXISTS,
				   "evc_dump_signal: signal %d asks for the "
				   "stop",
				   n);
	if (n == evc__kick_signo() || n == evc__stack_signal())
		return evc__refuse(
			-EVC_ALREADY_EXISTS,
			"evc_dump_signal: signal %d is the library's "
			"own",
			n);
	return 0;
}

static struct dump *
dump_new(evc_coord *c, int fd, unsigned format)
{
	struct dump *d = sync_alloc(1, sizeof *d);
	bool added;

	if (d == NULL)
		return NULL;
	d->job.run = run_dump;
	list_init(&d->job.node);
	d->c = c;
	d->fd = fd;
	d->format = format;
	sync_lock(&c->lock);
	added = evc__helper_job_add(c, &d->job);
	sync_unlock(&c->lock);
	if (added)
		return d;
	sync_free(d);
	return NULL;
}

/* Lock held: set the handler for n, and restore that of the signal used
   before. */
static void
move_to(evc_coord *c, int n)
{
	struct sigaction sa = { .sa_handler = on_signal,
				.sa_flags = SA_RESTART };

	if (sync_load(&owner) != NULL) {
		if (n == signo)
			return;
		disarm_signal();
	}
	sync_store(&evc__dump_handler, on_signal);
	/* The owner is set first, for the handler. */
	sigaction(n, NULL, &former);
	signo = n;
	sync_store(&asked, false);
	sync_store_sc(&owner, c);
	sigfillset(&sa.sa_mask);
	sigaction(n, &sa, NULL);
}

/* Lock held; *ret_old: the replaced job. */
static evc_status
begin_dump(evc_coord *c, int n, int fd, unsigned format, struct dump **ret_old)
{
	evc_coord *now = sync_load(&owner);
	struct dump *d;

	if (now != NULL && !evc__same_process(now)) {
		forget_parents();
		now = NULL;
	}
	if (now != NULL && now != c)
		return evc__refuse(-EVC_ALREADY_EXISTS,
				   "evc_dump_signal: %s has it", now->name);
	d = dump_new(c, fd, format);
	if (d == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_dump_signal: no memory, or no helper "
				   "thread");
	*ret_old = standing;
	standing = d;
	c->life.release_dump = release_for_free;
	move_to(c, n);
	return 0;
}

/* Lock held. */
static evc_status
end_dump(evc_coord *c, struct dump **ret_old)
{
	if (sync_load(&owner) != c)
		return evc__refuse(-EVC_NOT_FOUND,
				   "evc_dump_signal: %s has no signal",
				   c->name);
	disarm_signal();
	*ret_old = standing;
	standing = NULL;
	return 0;
}

evc_status
evc_dump_signal(evc_coord *c, int n, int fd, unsigned format)
{
	evc_status st = evc__check(c, __func__);
	struct dump *old = NULL;

	if (st == 0 && c->parent != NULL)
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_dump_signal: %s is a scope", c->name);
	if (st == 0 && n != 0)
		st = check_dump(n, fd, format);
	if (st == 0) {
		evc__fork_also(fork_reset);
		sync_lock(&lock);
		st = n != 0 ? begin_dump(c, n, fd, format, &old)
			    : end_dump(c, &old);
		sync_unlock(&lock);
	}
	/* From here on the old descriptor is the caller's. */
	if (old != NULL)
		retire_dump(old);
	return n != 0 ? evc__refuse_setup(c, __func__, st) : st;
}
