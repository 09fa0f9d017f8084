/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the kernel whether a child process runs and how it ended, reaps and
 * signals the child.
 * Called by: members, for child processes; the cluster engine "processes".
 * Locks: none; the caller lets one thread at a time reap a child.
 */
#include "base/reap.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/deadline.h"
#include "base/sync.h"

/* The first pause between two questions; each pause doubles the time. */
#define ASK_NS 50000
#define ASKS 12

void
evc__reap_status(int status, siginfo_t *ret)
{
	ret->si_code = CLD_KILLED;
	ret->si_status = WTERMSIG(status);
	if (WCOREDUMP(status))
		ret->si_code = CLD_DUMPED;
	if (WIFEXITED(status)) {
		ret->si_code = CLD_EXITED;
		ret->si_status = WEXITSTATUS(status);
	}
}

static enum reap
look_at_child(int pidfd, pid_t pid, siginfo_t *ret, int flags)
{
	int e = -1, status;

	memset(ret, 0, sizeof *ret);
	if (pidfd >= 0)
		e = sync_waitid(SYNC_P_PIDFD, pidfd, ret, flags);
	/* Linux before 5.4, or a filter refuses the call. */
	if (pidfd < 0 || (e < 0 && errno != ECHILD))
		e = sync_waitid(P_PID, pid, ret, flags);
	if (e == 0)
		return ret->si_pid == 0 ? REAP_RUNS : REAP_ENDED;
	if (errno == ECHILD)
		return REAP_LOST;
	/* A filter refuses this call, too.  wait4 only reaps, so a mere look
	   finds that the child runs on. */
	if (flags & WNOWAIT)
		return sync_pid_signal(pid, 0) == 0 ? REAP_RUNS : REAP_LOST;
	e = sync_wait4(pid, &status);
	if (e == pid)
		evc__reap_status(status, ret);
	return e == pid ? REAP_ENDED :
	       e < 0 && errno == ECHILD ? REAP_LOST : REAP_RUNS;
}

/* Another waiter has reaped the child, or the kernel does at once.  The kernel
   shows the status a moment after the end, when the dying child has run on; on a
   loaded machine the child waits for a processor.  So the call asks again for up
   to 0.2 s. */
static enum reap
ask_pidfd(int pidfd, siginfo_t *ret)
{
	struct sync_pidfd_info p;
	int i;

	for (i = 0; i < ASKS; i++) {
		p = (struct sync_pidfd_info){ .mask = SYNC_PIDFD_INFO_EXIT };
		if (sync_pidfd_info(pidfd, &p) < 0) {
			if (errno != ESRCH)
				return REAP_LOST;
		} else if (p.mask & SYNC_PIDFD_INFO_EXIT)
			break;
		evc__nap((uint64_t)ASK_NS << i);
	}
	if (i == ASKS)
		return REAP_LOST;
	evc__reap_status(p.exit_code, ret);
	return REAP_ENDED;
}

enum reap
evc__reap_look(int pidfd, pid_t pid, siginfo_t *ret)
{
	return look_at_child(pidfd, pid, ret, WNOWAIT);
}

enum reap
evc__reap(int pidfd, pid_t pid, siginfo_t *ret)
{
	enum reap is = look_at_child(pidfd, pid, ret, 0);

	return is == REAP_LOST && pidfd >= 0 ? ask_pidfd(pidfd, ret) : is;
}

int
evc__reap_signal(int pidfd, pid_t pid, int sig)
{
	siginfo_t info;

	/* A filter may refuse the pidfd's call. */
	if (pidfd >= 0 &&
	    (sync_pidfd_signal(pidfd, sig) == 0 || errno == ESRCH))
		return 0;
	if (evc__reap_look(pidfd, pid, &info) != REAP_RUNS ||
	    sync_pid_signal(pid, sig) == 0 || errno == ESRCH)
		return 0;
	return errno;
}
