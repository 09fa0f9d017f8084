/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text to a descriptor of the caller's, for evc_dump, evc_trace_write and the
 * log.
 */
#ifndef EVC_OBSERVE_WRITE_OUT_H
#define EVC_OBSERVE_WRITE_OUT_H

#include <evcoord.h>

/*
 * Write all bytes.  No signal interrupts, a reader that is gone causes no
 * SIGPIPE, and a full descriptor gets a second each time, blocking or not;
 * in_all: a second in all.  No cancellation point.  0, or -EVC_UNAVAILABLE,
 * noted for evc_last_error; then a part may have been written.
 */
evc_status evc__write_out(int fd, const char *buf, size_t n, bool in_all);

/* As evc__write_out, but by one write(2); bytes that this write does not take
   are lost. */
void evc__write_once(int fd, const char *buf, size_t n);

#endif
