/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fork children: a counter that each child raises, and functions that give each
 * part of the library a fresh start in the child.
 * Called by: every part with state of the process, when its use begins; the C
 * library, around each fork().
 * Locks: none; `part` is filled by CAS, and the child has one thread.
 */
#include "base/fork.h"

#include <signal.h>

#include "base/self.h"

_Atomic unsigned evc__fork_generation;

/* Parts of the library that have a reset function, at most. */
#define PARTS 16
/* atomic: evc__fork_also -> a child, which has one thread */
static _Atomic(void (*)(void)) part[PARTS];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool watching;

/* The signal mask of the thread that forks. */
static __thread sigset_t mask;

static void
before_fork(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
}

static void
after_fork_parent(void)
{
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void
after_fork_child(void)
{
	void (*reset)(void);
	unsigned i;

	sync_add(&evc__fork_generation, 1);
	evc__self_reset();
	for (i = 0; i < PARTS; i++) {
		reset = sync_load(&part[i]);
		if (reset != NULL)
			reset();
	}
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void
install_fork_handlers(void)
{
	watching = pthread_atfork(before_fork, after_fork_parent,
				  after_fork_child) == 0;
}

void
evc__fork_also(void (*reset)(void))
{
	void (*there)(void);
	unsigned i;

	/* One CAS adds a function, so no child finds half of an entry. */
	for (i = 0; i < PARTS; i++) {
		there = NULL;
		if (sync_cas(&part[i], &there, reset) || there == reset)
			return;
	}
}

bool
evc__fork_watch(void)
{
	pthread_once(&once, install_fork_handlers);
	return watching;
}
