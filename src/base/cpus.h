/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The number of processors that the calling thread may use, as a default for
 * the number of threads to start; and a rest on the thread's own processor.
 */
#ifndef EVC_BASE_CPUS_H
#define EVC_BASE_CPUS_H

/* 1..most */
unsigned evc__cpus(unsigned most);

/* Let other threads come for a moment: 32 breaths are about a microsecond. */
static inline void
evc__breathe(unsigned n)
{
	while (n-- > 0) {
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("yield");
#endif
	}
}

#endif
