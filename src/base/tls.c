/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes that thread-local data takes from the stack of a new thread.
 * Called by: spawn.c and core, for each new thread with a stack size of its
 * own.
 * Locks: none of ours; dl_iterate_phdr takes the dynamic linker's.
 */
#include "base/tls.h"

#include <link.h>

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
