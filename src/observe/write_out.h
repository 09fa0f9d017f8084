/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text to a descriptor of the caller's: what evc_dump and evc_trace_write
 * share.
 */
#ifndef EVC_OBSERVE_WRITE_OUT_H
#define EVC_OBSERVE_WRITE_OUT_H

#include <evcoord.h>

/*
 * Write all of it.  Signals interrupt nothing, a reader that is gone sends no
 * SIGPIPE, and a descriptor gets a second's time whenever it is full, whether it
 * blocks or not; in_all: a second for all of it.  No cancellation point.  0, or
 * -EVC_UNAVAILABLE, noted for evc_last_error; part of it may have been written
 * then.
 */
evc_status evc__write_out(int fd, const char *buf, size_t n, bool in_all);

/* One write(2), and what that does not take is lost; otherwise the same. */
void evc__write_once(int fd, const char *buf, size_t n);

#endif
