/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attributes and the signal mask of a new thread of the library, and the
 * bytes that thread-local data takes from the stack of a new thread.
 * Called by: core, members and wake, around each creation of a thread.
 * Locks: none of ours; dl_iterate_phdr takes the dynamic linker's.
 */
#include "base/spawn.h"

#include <link.h>

#include "base/self.h"

/* ---- the stack ---- */

static int
add_tls_size(struct dl_phdr_info *info, size_t size, void *arg)
{
	size_t *sum = arg;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			*sum += info->dlpi_phdr[i].p_memsz +
				info->dlpi_phdr[i].p_align;
	return 0;
}

size_t
evc__stack_with_tls(size_t stack)
{
	size_t sum = 0;

	dl_iterate_phdr(add_tls_size, &sum);
	sum = (sum + 4095) & ~(size_t)4095;
	/* On overflow the size stays, which no system can provide either. */
	return stack + sum > stack ? stack + sum : stack;
}

/* ---- the creation ---- */

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
