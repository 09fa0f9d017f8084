/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kick signal, whose handler does nothing, so that a system call ends with
 * EINTR; and the choice of a signal that is not in use.
 * Called by: core and wake, to interrupt blocked threads; stack.c and signals,
 * for a signal of their own; observe, to report a lost handler.
 * Locks: `lock` for the installation; `number` is atomic.
 */
#include "base/kick.h"

#include "base/fork.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* atomic: evc__kick_install, under lock -> every thread that kicks */
static _Atomic int number;

bool
evc__signal_usable(int signo)
{
	switch (signo) {
	case SIGKILL:
	case SIGSTOP:
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
		return false;
	}
	/* The C library uses the signals from 32 to SIGRTMIN - 1 itself. */
	return signo >= 1 && signo <= SIGRTMAX &&
	       (signo < 32 || signo >= SIGRTMIN);
}

static bool
is_default(const struct sigaction *sa)
{
	return !(sa->sa_flags & SA_SIGINFO) && sa->sa_handler == SIG_DFL;
}

static bool
is_free(int signo)
{
	struct sigaction now;

	return evc__signal_usable(signo) && sigaction(signo, NULL, &now) == 0 &&
	       is_default(&now);
}

bool
evc__signal_take(int signo, const struct sigaction *sa)
{
	struct sigaction before;

	if (sigaction(signo, sa, &before) != 0)
		return false;
	if (is_default(&before))
		return true;
	/* Another handler was set between the check and the call. */
	sigaction(signo, &before, NULL);
	return false;
}

int
evc__signal_free(int wanted)
{
	int n;

	if (wanted != 0)
		return is_free(wanted) ? wanted : -1;
	for (n = SIGRTMAX - 1; n >= SIGRTMIN; n--)
		if (is_free(n))
			return n;
	return -1;
}

/* The interruption is the whole effect. */
static void
on_kick(int n)
{
	(void)n;
}

/* Without SA_RESTART, so that the interrupted call ends. */
static const struct sigaction kick_action = { .sa_handler = on_kick,
					      .sa_flags = SA_ONSTACK };

/* In a fork child no thread holds the lock. */
static void
fork_reset(void)
{
	sync_lock_init(&lock);
}

int
evc__kick_install(int signo)
{
	int n, st = -1;

	if (!evc__fork_watch())
		return -1;
	evc__fork_also(fork_reset);
	sync_lock(&lock);
	n = sync_load(&number);
	if (n != 0)
		st = signo == 0 || signo == n ? 0 : -1;
	else {
		n = signo == 0 && is_free(SIGURG) ? SIGURG :
						    evc__signal_free(signo);
		if (n > 0 && evc__signal_take(n, &kick_action)) {
			sync_store(&number, n);
			st = 0;
		}
	}
	sync_unlock(&lock);
	return st;
}

int
evc__kick_signo(void)
{
	return sync_load(&number);
}

const char *
evc__kick_lost(bool restore)
{
	const char *why = NULL;
	struct sigaction now;
	int n = sync_load(&number);

	if (sigaction(n, NULL, &now) != 0)
		return NULL;
	if (is_default(&now))
		why = "has its default action";
	else if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_IGN)
		why = "is ignored";
	else /* a handler of the program stays */
		return now.sa_flags & SA_RESTART ?
			       "has a handler with SA_RESTART" :
			       NULL;
	return restore && sigaction(n, &kick_action, NULL) == 0 ? NULL : why;
}

void
evc__kick_unblock(sigset_t *ret_old)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, evc__kick_signo());
	pthread_sigmask(SIG_UNBLOCK, &set, ret_old);
}
