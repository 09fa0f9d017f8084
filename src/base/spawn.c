/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attributes and the signal mask of a new thread of the library.
 * Called by: core, members and wake, around each creation of a thread.
 * Locks: none.
 */
#include "base/spawn.h"

#include "base/self.h"
#include "base/tls.h"

void
evc__spawn_begin(struct evc__spawn *s, size_t stack, bool detached)
{
	pthread_attr_init(&s->attr);
	if (stack != 0)
		pthread_attr_setstacksize(&s->attr, evc__stack_with_tls(stack));
	if (detached)
		pthread_attr_setdetachstate(&s->attr, PTHREAD_CREATE_DETACHED);
	evc__block_signals(&s->before);
}

void
evc__spawn_end(struct evc__spawn *s)
{
	pthread_sigmask(SIG_SETMASK, &s->before, NULL);
	pthread_attr_destroy(&s->attr);
}
