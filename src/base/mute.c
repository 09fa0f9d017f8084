/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes without a signal; see mute.h.
 * Called by: writers to descriptors and files of the program's.
 * Locks: none.
 */
#include "base/mute.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

void
evc__mute(struct mute *m, int sig)
{
	sigset_t pending;

	/* sigtimedwait is a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &m->cancel);
	sigemptyset(&m->set);
	sigaddset(&m->set, sig);
	pthread_sigmask(SIG_BLOCK, &m->set, &m->old);
	sigemptyset(&pending);
	sigpending(&pending);
	m->had_one = sigismember(&pending, sig) == 1;
}

void
evc__mute_end(const struct mute *m, bool raised)
{
	static const struct timespec at_once;

	while (raised && !m->had_one &&
	       sigtimedwait(&m->set, NULL, &at_once) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &m->old, NULL);
	pthread_setcancelstate(m->cancel, NULL);
}
