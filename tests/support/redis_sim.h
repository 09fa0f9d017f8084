/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes that run nothing, many of them in one process: each registers, renews its
 * lease, and answers each function at once with nil.
 */
#ifndef TESTS_SUPPORT_REDIS_SIM_H
#define TESTS_SUPPORT_REDIS_SIM_H

/* main of that process: SOCKET NAMESPACE FIRST N WORKERS FUNCTION.  N nodes, sim
   FIRST and on, of so many WORKERS, which all have that FUNCTION.  It waits for
   a coordinator, and ends when all nodes were asked to leave, or one was fenced
   (1, and says why). */
int
redis_sim_main(int argc, char **argv);

#endif
