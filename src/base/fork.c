/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/fork.h"

#include <signal.h>

#include "base/self.h"

_Atomic unsigned evc__fork_generation;

/* How many parts of the library have something to begin anew. */
#define PARTS 16
/* atomic: evc__fork_also -> a child, which has one thread */
static _Atomic(void (*)(void)) part[PARTS];

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
install(void)
{
	watching = pthread_atfork(prepare, parent, child) == 0;
}

void
evc__fork_also(void (*reset)(void))
{
	void (*there)(void);
	unsigned i;

	/* One step each, so that no child finds a part half added. */
	for (i = 0; i < PARTS; i++) {
		there = NULL;
		if (sync_cas(&part[i], &there, reset) || there == reset)
			return;
	}
}

bool
evc__fork_watch(void)
{
	pthread_once(&once, install);
	return watching;
}
