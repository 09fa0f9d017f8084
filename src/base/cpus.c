/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The number of processors that the calling thread may use.
 * Called by: pools and cluster engines, for their number of threads.
 * Locks: none.
 */
#include "base/cpus.h"

#include <sched.h>
#include <unistd.h>

unsigned
evc__cpus(unsigned most)
{
	cpu_set_t set;
	int n = 0;

	if (sched_getaffinity(0, sizeof set, &set) == 0)
		n = CPU_COUNT(&set);
	/* The machine has more processors than fit into the set. */
	if (n <= 0)
		n = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (n <= 0)
		n = 1;
	return (unsigned)n < most ? (unsigned)n : most;
}
