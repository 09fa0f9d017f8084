/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hand on the seam: a test linked with the library's seam build names an
 * operation of src/base/sync.h and the function it stands in, and holds the
 * thread that arrives there, or lets the operation fail.
 *
 *	int h = seam_hold("cas", "request", 1);   the next CAS in request()
 *	... start a thread that calls evc_request_stop ...
 *	seam_await(h);       now it stands before that CAS
 *	... do what must not go wrong meanwhile ...
 *	seam_release(h);     it goes on
 *
 * The names of operations stand in src/base/sync.h: load, store, add, sub, or,
 * and, xchg, cas, lock, unlock, futex_wait, futex_wake, eventfd, fd_write,
 * fd_drain, fd_close, fd_put, fd_writable, epoll, epoll_add, epoll_del,
 * epoll_wait, pidfd, thread_create, thread_join, clock, alloc, dgram,
 * dgram_send, open_read, fd_read, tid_signal, peek.  Those that can fail:
 * eventfd, fd_put, epoll, epoll_add, pidfd, thread_create, alloc, dgram,
 * dgram_send, open_read, fd_read, tid_signal, peek.
 */
#ifndef TEST_SEAM_H
#define TEST_SEAM_H

#include <stdbool.h>

/* Hold the nth arrival (1: the next) at op in func; func or op NULL: any.
   Returns a handle. */
int seam_hold(const char *op, const char *func, int nth);

/* The same, counting and holding every thread but the calling one. */
int seam_hold_others(const char *op, const char *func, int nth);

/* The same, counting and holding the calling thread alone. */
int seam_hold_mine(const char *op, const char *func, int nth);

/* Wait until somebody is held there; false after 20 s. */
bool seam_await(int handle);

/* Is somebody held there now? */
bool seam_is_held(int handle);

/* Let go whoever is held there, and hold nobody any more. */
void seam_release(int handle);

/* Let the nth arrival at op in func fail with the errno value err. */
int seam_fail(const char *op, const char *func, int nth, int err);

/* The same for the nth and every later one. */
int seam_fail_all(const char *op, const char *func, int nth, int err);

/* How many have arrived at a handle's place since it was made. */
int seam_arrivals(int handle);

/* Release everybody and forget all handles. */
void seam_reset(void);

#endif
