/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes for bpftrace, perf, gdb and SystemTap: each is one nop in the
 * code, and a note in the library that says where its arguments are.  An
 * argument is a number or a pointer that is at hand anyway.  evcoord-why(7) has
 * the table of the probes.
 */
#ifndef EVC_BASE_PROBE_H
#define EVC_BASE_PROBE_H

#ifdef HAVE_PROBES
#include <sys/sdt.h>
#define PROBE3(name, a, b, c) DTRACE_PROBE3(evcoord, name, a, b, c)
#define PROBE4(name, a, b, c, d) DTRACE_PROBE4(evcoord, name, a, b, c, d)
#define PROBE5(name, a, b, c, d, e) DTRACE_PROBE5(evcoord, name, a, b, c, d, e)
#else
#define PROBE3(name, a, b, c) ((void)0)
#define PROBE4(name, a, b, c, d) ((void)0)
#define PROBE5(name, a, b, c, d, e) ((void)0)
#endif

#endif
