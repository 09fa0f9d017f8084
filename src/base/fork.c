/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/fork.h"

#include <signal.h>

#include "base/self.h"

_Atomic unsigned evc__fork_generation;
_Atomic(void (*)(void)) evc__fork_reset;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool watching;

/* The mask of the thread that forks; each may fork at the same time. */
static __thread sigset_t mask;

static void
prepare(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
}

static void
parent(void)
{
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void
child(void)
{
	void (*reset)(void) = sync_load(&evc__fork_reset);

	sync_add(&evc__fork_generation, 1);
	evc__self_reset();
	if (reset != NULL)
		reset();
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void
install(void)
{
	watching = pthread_atfork(prepare, parent, child) == 0;
}

bool
evc__fork_watch(void)
{
	pthread_once(&once, install);
	return watching;
}
