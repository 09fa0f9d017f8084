/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many cpus the calling thread may use: for who makes as many threads.
 */
#ifndef EVC_BASE_CPUS_H
#define EVC_BASE_CPUS_H

/* 1..most */
unsigned evc__cpus(unsigned most);

#endif
