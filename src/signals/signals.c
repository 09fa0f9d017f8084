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
#include "base/self.h"
#include "base/text.h"
#include "core/join/join.h"
#include "signals/signals.h"

#define SHORT_GRACE 1.0
#define N_STOP 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(evc_coord *) owner;
static struct readers inside;

/* lock; read by handlers while there is an owner */
static int signo[N_STOP];
static unsigned n_signo;
static struct sigaction former[N_STOP];
static bool third_exits;
static int exit_fd;

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

static const char *
signal_name(int n)
{
	const char *s = sigabbrev_np(n);

	return s != NULL ? s : "";
}

static void
name_signal(struct text *t, int n)
{
	const char *s = signal_name(n);

	if (s[0] != '\0') {
		evc__text_add(t, "SIG");
		evc__text_add(t, s);
	} else {
		evc__text_add(t, "signal ");
		evc__text_int(t, n);
	}
}

/* Request the stop; the reason of a second signal names the cut grace. */
static void
request_stop(evc_coord *c, int n, const siginfo_t *info, unsigned many,
	     uint32_t stop)
{
	char buf[96];
	struct text t = evc__text_in(buf, sizeof buf);
	struct evc__request q = { .kind = EVC_BY_SIGNAL,
				  .text = buf,
				  /* A second signal is for the first's stop. */
				  .stop = many > 1 ? stop : 0 };

	name_signal(&t, n);
	/* <= 0: the signal comes from a process, which the kernel names. */
	if (info->si_code <= 0) {
		evc__text_add(&t, " from pid ");
		evc__text_int(&t, info->si_pid);
		evc__text_add(&t, ", uid ");
		evc__text_int(&t, (int64_t)info->si_uid);
	} else
		evc__text_add(&t, " from the kernel");
	if (many == 2)
		evc__text_add(&t, ", which cuts the grace");
	evc__request(c, &q);
}

static void
third_signal(int n)
{
	char buf[96];
	struct text t = evc__text_in(buf, sizeof buf);
	struct pollfd line = { .fd = exit_fd, .events = POLLOUT };

	evc__text_add(&t, "evcoord: a third ");
	name_signal(&t, n);
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

static void
on_signal(int n, siginfo_t *info, void *context)
{
	int e = errno;
	evc_coord *c;
	unsigned many;
	uint32_t stop;

	(void)context;
	evc__readers_enter(&inside);
	c = sync_load_sc(&owner);
	if (c != NULL && !evc__same_process(c))
		as_before(n);
	else if (c != NULL) {
		many = count_signal(c, &stop);
		if (many >= 3 && third_exits)
			third_signal(n);
		request_stop(c, n, info, many, stop);
		if (many == 2)
			evc__cut_grace(c, stop);
	}
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
}

static evc_status
check_signals(const evc_signals_opts *o)
{
	unsigned i, k;

	if (evc__check_reserved(o->reserved_, "evc_signals_start") < 0 ||
	    evc__check_grace(o->short_grace, "evc_signals_start") < 0)
		return -EVC_INVALID_ARGUMENT;
	if (o->flags & ~(unsigned)EVC_SIGNALS_THIRD_EXITS)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_signals_start: unknown flags %#x",
				   o->flags);
	if (o->exit_fd < 0)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_signals_start: exit_fd is no "
				   "descriptor");
	for (i = 0; i < N_STOP && o->stop[i] != 0; i++) {
		if (o->stop[i] < 1 || o->stop[i] > SIGRTMAX ||
		    o->stop[i] == SIGKILL || o->stop[i] == SIGSTOP)
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

/* Lock held. */
static evc_status
install_handlers(evc_coord *c, const evc_signals_opts *o)
{
	struct sigaction sa = { .sa_sigaction = on_signal,
				.sa_flags = SA_SIGINFO | SA_RESTART };
	unsigned i;

	for (n_signo = 0; n_signo < N_STOP && o->stop[n_signo] != 0; n_signo++)
		signo[n_signo] = o->stop[n_signo];
	if (n_signo == 0) {
		signo[n_signo++] = SIGINT;
		signo[n_signo++] = SIGTERM;
	}
	for (i = 0; i < n_signo; i++)
		if (requests_report(signo[i]))
			return evc__refuse(-EVC_ALREADY_EXISTS,
					   "evc_signals_start: signal %d asks "
					   "for a dump",
					   signo[i]);
	sync_store(&c->wake.cut_grace_ns,
		   evc__ns(o->short_grace == 0 ? SHORT_GRACE : o->short_grace));
	third_exits = o->flags & EVC_SIGNALS_THIRD_EXITS;
	exit_fd = o->exit_fd != 0 ? o->exit_fd : STDERR_FILENO;
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
	else
		disarm_signals(c);
	sync_unlock(&lock);
	return st;
}
