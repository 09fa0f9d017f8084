/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a process by the signal that has stopped it.
 * Called by: the program, as its last call.
 * Locks: none.
 */
#include <evcoord.h>
#include <signal.h>
#include <unistd.h>

void
evc_signals_raise(int signo)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t mask;

	if (signo <= 0 || signo > SIGRTMAX)
		return;
	sigaction(signo, &usual, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, signo);
	pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
	raise(signo);
	/* The kernel drops a signal of process 1, and some signals end no
	   process. */
	_exit(128 + signo);
}
