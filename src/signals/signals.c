/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals that request the stop.  A handler of the library, not ev_signal: so a
 * stuck or missing loop does not matter, and the former handlers can be
 * restored.  At most one coordinator of the process owns the signals.
 * Called by: the program; the kernel (on_signal); core, when the owner is
 * freed.
 * Locks: `lock`; `owner` and `seen` are atomic.  `inside` counts the running
 * handlers: a release waits for a moment without any, then c may be freed.
 */
#include <signal.h>

#include "core/core.h"
#include "base/kick.h"
#include "base/reserved.h"
#include "core/helper/job.h"
#include "core/join/join.h"
#include "signals/signals.h"

#define SHORT_GRACE 1.0
#define N_STOP 8
#define ALL_FLAGS \
	(EVC_SIGNALS_THIRD_EXITS | EVC_SIGNALS_IGNORED_TOO | \
	 EVC_SIGNALS_AT_JOIN)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(evc_coord *) owner;
static struct readers inside;

/* lock; read by handlers while there is an owner */
static int signo[N_STOP];
static unsigned n_signo;
static struct sigaction former[N_STOP];
static bool third_exits, at_join;
static int exit_fd;
static pid_t owner_pid;
static bool (*allow)(int signo, void *arg);
static void *allow_arg;

_Atomic(void (*)(int)) evc__dump_handler;

/* atomic: handlers among themselves; (stops cleared before the round << 32 |
   signals seen in that round) */
static _Atomic uint64_t seen;

/* Signal handler: count the stop signals of the round, this signal included.
   *ret_stop: the number of the stop that the first of them requests. */
static unsigned
count_signal(const evc_coord *c, uint32_t *ret_stop)
{
	uint64_t old, next;
	uint32_t round;

	do {
		old = sync_load(&seen);
		/* Read after `seen`, so a round in `seen` is not newer. */
		round = WORD_STOPS(sync_load_sc(&c->word));
		if ((uint32_t)(old >> 32) == round)
			next = old + 1;
		else
			next = (uint64_t)round << 32 | 1;
	} while (!sync_cas(&seen, &old, next));
	*ret_stop = (round + 1) & WORD_STOPS_MASK;
	return (unsigned)(uint32_t)next;
}

static void
third_signal(int n)
{
	char buf[96];
	struct text t = evc__text_in(buf, sizeof buf);
	struct pollfd line = { .fd = exit_fd, .events = POLLOUT };

	evc__text_add(&t, "evcoord: a third ");
	evc__text_signal(&t, n);
	evc__text_add(&t, " while stopping: leaving at once\n");
	/* A full pipe or a stopped terminal must not delay the exit. */
	if (sync_ppoll(&line, 1, 0) == 1)
		(void)!write(exit_fd, buf, t.len);
	_exit(128 + n);
}

/* A fork child inherits the handler, but not the coordinator: do as without the
   library. */
static void
as_before(int n)
{
	unsigned i;

	for (i = 0; i < n_signo; i++)
		if (signo[i] == n) {
			sigaction(n, &former[i], NULL);
			raise(n);
		}
}

/* Signal handler: may the signal stop c?  The first signal of a round may, if
   the program allows the signal; the later ones may. */
static bool
may_stop(const evc_coord *c, int n)
{
	uint64_t s;

	if (allow == NULL)
		return true;
	s = sync_load(&seen);
	return ((uint32_t)s > 0 &&
		(uint32_t)(s >> 32) == WORD_STOPS(sync_load_sc(&c->word))) ||
	       allow(n, allow_arg);
}

static void
take_signal(evc_coord *c, int n, uint64_t sender)
{
	unsigned many;
	uint32_t stop;

	if (!may_stop(c, n)) {
		evc__signal_refused(c, sender);
		return;
	}
	many = count_signal(c, &stop);
	if (many >= 3 && third_exits)
		third_signal(n);
	/* A second signal is for the first's stop. */
	if (!at_join || !evc__signal_keep(c, sender))
		evc__signal_request(c, sender, many == 2, many > 1 ? stop : 0);
	if (many == 2)
		evc__cut_grace(c, stop);
}

static void
on_signal(int n, siginfo_t *info, void *context)
{
	int e = errno;
	evc_coord *c;

	(void)context;
	evc__readers_enter(&inside);
	c = sync_load_sc(&owner);
	/* The pid tells of a child that was made without fork handlers. */
	if (c != NULL && (!evc__same_process(c) || getpid() != owner_pid))
		as_before(n);
	else if (c != NULL)
		take_signal(c, n, evc__sender(n, info));
	evc__readers_leave(&inside);
	errno = e;
}

bool
evc__signals_has(int n)
{
	struct sigaction now;

	return sigaction(n, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
	       now.sa_sigaction == on_signal;
}

static bool
requests_report(int n)
{
	void (*handler)(int) = sync_load(&evc__dump_handler);
	struct sigaction now;

	return handler != NULL && sigaction(n, NULL, &now) == 0 &&
	       !(now.sa_flags & SA_SIGINFO) && now.sa_handler == handler;
}

/* Helper thread: the job of a coordinator that refuses or keeps signals. */
static uint64_t
log_signals(evc_coord *c, struct evc__helper_job *k)
{
	(void)k;
	if (sync_load_sc(&owner) == c) {
		evc__signals_refused_log(c);
		evc__signals_kept_log(c);
		return evc__signals_kept_due(c);
	}
	return SYNC_FOREVER;
}

/* Lock held: let the helper write lines about signals of c.  The job
   stays until c is freed, because evc_signals_stop may be called inside the
   job, by the log hook.  false: no memory, or no helper. */
static bool
add_job(evc_coord *c)
{
	struct evc__helper_job *job = c->life.signals_job;
	bool added;

	if (job == NULL) {
		job = sync_alloc(1, sizeof *job);
		if (job == NULL)
			return false;
		job->run = log_signals;
		list_init(&job->node);
		c->life.signals_job = job;
	}
	sync_lock(&c->lock);
	added = evc__helper_job_add(c, job);
	sync_unlock(&c->lock);
	return added;
}

/* Lock held: restore the former handlers of the first n signals. */
static void
restore_handlers(unsigned n)
{
	while (n-- > 0) {
		/* A later handler of the program stays. */
		if (evc__signals_has(signo[n]))
			sigaction(signo[n], &former[n], NULL);
	}
}

/* Lock held. */
static void
disarm_signals(evc_coord *c)
{
	restore_handlers(n_signo);
	sync_store_sc(&owner, NULL);
	evc__readers_quiet(&inside);
	c->life.release_signals = NULL;
}

static void
release_for_free(evc_coord *c)
{
	sync_lock(&lock);
	disarm_signals(c);
	sync_unlock(&lock);
	/* The helper may not have come to this. */
	evc__signals_refused_log(c);
}

static evc_status
check_signals(const evc_signals_opts *o)
{
	unsigned i, k;

	if (!RESERVED_IS_ZERO(o->reserved_))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_signals_start: reserved room is not "
				   "zero");
	if (evc__check_grace(o->short_grace, "evc_signals_start") < 0)
		return -EVC_INVALID_ARGUMENT;
	if (o->flags & ~(unsigned)ALL_FLAGS)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_signals_start: unknown flags %#x",
				   o->flags);
	if (o->exit_fd < 0)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_signals_start: exit_fd is no "
				   "descriptor");
	for (i = 0; i < N_STOP && o->stop[i] != 0; i++) {
		/* After a handler's return a fault comes again, for ever. */
		if (!evc__signal_usable(o->stop[i]))
			return evc__refuse(-EVC_INVALID_ARGUMENT,
					   "evc_signals_start: signal %d "
					   "cannot be caught",
					   o->stop[i]);
		for (k = 0; k < i; k++)
			if (o->stop[k] == o->stop[i])
				return evc__refuse(-EVC_INVALID_ARGUMENT,
						   "evc_signals_start: signal "
						   "%d stands twice",
						   o->stop[i]);
	}
	return 0;
}

/* A join of c has begun. */
static void
join_begins(evc_coord *c)
{
	evc__readers_enter(&inside);
	if (sync_load_sc(&owner) == c) {
		evc__signals_kept_log(c);
		evc__signals_kept_request(c);
	}
	evc__readers_leave(&inside);
}

static bool
is_ignored(int n)
{
	struct sigaction now;

	return sigaction(n, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* Lock held: a signal stays ignored that nohup(1), or a shell for a job in the
   background, has set to be ignored. */
static void
choose_signals(const evc_signals_opts *o)
{
	static const int usual[N_STOP] = { SIGINT, SIGTERM };
	const int *from = o->stop[0] != 0 ? o->stop : usual;
	unsigned i;

	n_signo = 0;
	for (i = 0; i < N_STOP && from[i] != 0; i++)
		if ((o->flags & EVC_SIGNALS_IGNORED_TOO) ||
		    !is_ignored(from[i]))
			signo[n_signo++] = from[i];
}

/* Lock held. */
static evc_status
install_handlers(evc_coord *c, const evc_signals_opts *o)
{
	struct sigaction sa = { .sa_sigaction = on_signal,
				.sa_flags = SA_SIGINFO | SA_RESTART };
	unsigned i;

	choose_signals(o);
	for (i = 0; i < n_signo; i++)
		if (requests_report(signo[i]))
			return evc__refuse(-EVC_ALREADY_EXISTS,
					   "evc_signals_start: signal %d asks "
					   "for a dump",
					   signo[i]);
	evc__signals_refused_forget();
	if (((o->allow != NULL && c->log.fn != NULL) ||
	     (o->flags & EVC_SIGNALS_AT_JOIN)) &&
	    !add_job(c))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_signals_start: no memory, or no helper "
				   "thread");
	sync_store(&c->wake.cut_grace_ns,
		   evc__ns(o->short_grace == 0 ? SHORT_GRACE : o->short_grace));
	third_exits = o->flags & EVC_SIGNALS_THIRD_EXITS;
	at_join = o->flags & EVC_SIGNALS_AT_JOIN;
	evc__signals_kept_forget();
	if (at_join)
		sync_store_sc(&c->life.join_begins, join_begins);
	exit_fd = o->exit_fd != 0 ? o->exit_fd : STDERR_FILENO;
	owner_pid = getpid();
	allow = o->allow;
	allow_arg = o->arg;
	sync_store(&seen, 0);
	sigfillset(&sa.sa_mask);
	/* The owner is set first, for the handlers. */
	sync_store_sc(&owner, c);
	for (i = 0; i < n_signo; i++)
		if (sigaction(signo[i], &sa, &former[i]) < 0) {
			evc_status st = evc__refuse(
				-EVC_INVALID_ARGUMENT,
				"evc_signals_start: signal %d: %s", signo[i],
				strerror(errno));

			restore_handlers(i);
			sync_store_sc(&owner, NULL);
			evc__readers_quiet(&inside);
			return st;
		}
	c->life.release_signals = release_for_free;
	return 0;
}

/* In a fork child: handlers and lock holders were the parent's threads. */
static void
fork_reset(void)
{
	sync_store(&inside.n, 0);
	sync_lock_init(&lock);
	evc__signals_kept_inherited();
}

static evc_status
start_signals(evc_coord *c, const evc_signals_opts *o)
{
	static const evc_signals_opts none;
	evc_coord *now;
	evc_status st;

	if (o == NULL)
		o = &none;
	st = check_signals(o);
	if (st < 0)
		return st;
	evc__fork_also(fork_reset);
	sync_lock(&lock);
	now = sync_load(&owner);
	/* A coordinator of a fork child takes the signals over. */
	if (now != NULL && !evc__same_process(now)) {
		restore_handlers(n_signo);
		now = NULL;
	}
	if (now != NULL)
		st = evc__refuse(-EVC_ALREADY_EXISTS,
				 "evc_signals_start: %s has the signals",
				 now->name);
	else
		st = install_handlers(c, o);
	sync_unlock(&lock);
	return st;
}

evc_status
evc_signals_start(evc_coord *c, const evc_signals_opts *opts)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0 && c->parent != NULL)
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_signals_start: %s is a scope", c->name);
	if (st == 0)
		st = start_signals(c, opts);
	return evc__refuse_setup(c, __func__, st);
}

evc_status
evc_signals_stop(evc_coord *c)
{
	evc_status st = evc__check(c, __func__);

	if (st < 0)
		return st;
	sync_lock(&lock);
	if (sync_load(&owner) != c)
		st = evc__refuse(-EVC_NOT_FOUND,
				 "evc_signals_stop: %s has no signals",
				 c->name);
	else {
		disarm_signals(c);
		evc__signals_kept_log(c);
		evc__signals_kept_request(c);
	}
	sync_unlock(&lock);
	if (st == 0)
		evc__signals_refused_log(c);
	return st;
}

int
evc_signals_pending(const evc_coord *c)
{
	int n = 0;

	evc__readers_enter(&inside);
	if (c != NULL && sync_load_sc(&owner) == c && evc__same_process(c))
		n = evc__signals_kept();
	evc__readers_leave(&inside);
	return n;
}
