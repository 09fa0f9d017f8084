/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling thread: its kernel id and name, the last error code that it has
 * reported, and the signals to block before it starts another thread.
 * Called by: all rooms; fork.c, in a child.
 * Locks: none; the data is thread-local, but for the atomic left_open.
 */
#include "base/self.h"

#include <sys/prctl.h>

#include "base/sync.h"

__thread int evc__self_tid;
__thread bool evc__self_has_loop;
__thread struct evc__reported evc__reported;
static __thread char self_name[16];
/* atomic: evc__leave_open -> evc__block_signals */
static _Atomic int left_open;

int
evc__tid_first(void)
{
	return evc__self_tid = (int)syscall(SYS_gettid);
}

const char *
evc__thread_name(void)
{
	if (self_name[0] == '\0')
		syscall(SYS_prctl, PR_GET_NAME, self_name, 0, 0, 0);
	return self_name;
}

void
evc__thread_rename(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof self_name - 1 && name[i] != '\0'; i++)
		self_name[i] = name[i];
	self_name[i] = '\0';
	syscall(SYS_prctl, PR_SET_NAME, self_name, 0, 0, 0);
}

void
evc__block_signals(sigset_t *ret_old)
{
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGSEGV);
	sigdelset(&set, SIGBUS);
	sigdelset(&set, SIGFPE);
	sigdelset(&set, SIGILL);
	if (sync_load(&left_open) != 0)
		sigdelset(&set, sync_load(&left_open));
	pthread_sigmask(SIG_SETMASK, &set, ret_old);
}

void
evc__leave_open(int signo)
{
	sync_store(&left_open, signo);
}

void
evc__self_reset(void)
{
	evc__self_tid = 0;
}
