/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/tls.h"

#include <link.h>

static int
add(struct dl_phdr_info *info, size_t size, void *arg)
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

	dl_iterate_phdr(add, &sum);
	sum = (sum + 4095) & ~(size_t)4095;
	/* What is too much to add to is too much to be had. */
	return stack + sum > stack ? stack + sum : stack;
}
