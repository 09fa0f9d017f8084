/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The number of processors that the calling thread may use, as a default for
 * the number of threads to start.
 */
#ifndef EVC_BASE_CPUS_H
#define EVC_BASE_CPUS_H

/* 1..most */
unsigned evc__cpus(unsigned most);

#endif
