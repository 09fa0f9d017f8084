/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seam: every atomic, lock, futex, descriptor, thread, clock and memory
 * call of src/ goes through this file.
 *
 * A plain build compiles each macro to the bare operation.  A test build
 * (-DEVC_SEAM) calls evc__seam() before it, with the name of the operation,
 * the function it stands in and its object; the test may hold the thread there,
 * and for operations that can fail it may answer with an errno value that the
 * operation then fails with.
 *
 * Orders: sync_load is acquire and sync_store is release; everything with
 * _sc, and every read-modify-write, is sequentially consistent.  There are no
 * bare fences: where two sides must not miss each other, both use _sc
 * operations, which the thread sanitizer understands.
 */
#ifndef EVC_BASE_SYNC_H
#define EVC_BASE_SYNC_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef EVC_SEAM
int evc__seam(const char *op, const char *func, const volatile void *obj);
#define SEAM(op) evc__seam((op), __func__, NULL)
#define SEAM_FAILS(op) ((errno = SEAM(op)) != 0)
/* The object of an operation: it may have side effects, so it is evaluated once,
   as in a plain build. */
#define SEAM_AT(op, obj) \
	__extension__({ \
		__auto_type at_ = (obj); \
		evc__seam((op), __func__, at_); \
		at_; \
	})
#else
#define SEAM(op) 0
#define SEAM_FAILS(op) false
#define SEAM_AT(op, obj) (obj)
#endif

/* ---- atomics ---- */

#define sync_load(p) \
	atomic_load_explicit(SEAM_AT("load", p), memory_order_acquire)
#define sync_load_sc(p) \
	atomic_load_explicit(SEAM_AT("load", p), memory_order_seq_cst)
#define sync_load_relaxed(p) \
	atomic_load_explicit(SEAM_AT("load", p), memory_order_relaxed)
#define sync_store(p, v) \
	atomic_store_explicit(SEAM_AT("store", p), v, memory_order_release)
#define sync_store_sc(p, v) \
	atomic_store_explicit(SEAM_AT("store", p), v, memory_order_seq_cst)
#define sync_store_relaxed(p, v) \
	atomic_store_explicit(SEAM_AT("store", p), v, memory_order_relaxed)
#define sync_add(p, v) \
	atomic_fetch_add_explicit(SEAM_AT("add", p), v, memory_order_seq_cst)
#define sync_sub(p, v) \
	atomic_fetch_sub_explicit(SEAM_AT("sub", p), v, memory_order_seq_cst)
#define sync_or(p, v) \
	atomic_fetch_or_explicit(SEAM_AT("or", p), v, memory_order_seq_cst)
#define sync_and(p, v) \
	atomic_fetch_and_explicit(SEAM_AT("and", p), v, memory_order_seq_cst)
#define sync_xchg(p, v) \
	atomic_exchange_explicit(SEAM_AT("xchg", p), v, memory_order_seq_cst)
/* On failure *old is what stood there. */
#define sync_cas(p, old, v) \
	atomic_compare_exchange_strong_explicit(SEAM_AT("cas", p), old, v, \
						memory_order_seq_cst, \
						memory_order_seq_cst)

/* ---- locks ---- */

#define sync_lock(m) ((void)pthread_mutex_lock(SEAM_AT("lock", m)))
/* false: another thread has the lock. */
#define sync_trylock(m) (pthread_mutex_trylock(SEAM_AT("trylock", m)) == 0)
#define sync_unlock(m) ((void)pthread_mutex_unlock(SEAM_AT("unlock", m)))
#define sync_lock_init(m) ((void)pthread_mutex_init((m), NULL))
#define sync_lock_destroy(m) ((void)pthread_mutex_destroy(m))

/* ---- futex: bare system calls, so no cancellation points ---- */

#define SYNC_FOREVER UINT64_MAX

/* On 32-bit machines the C library's time_t may have 64 bits, and then the old
   calls read half of it as nanoseconds. */
#ifdef SYS_futex_time64
#define SYNC_FUTEX_WAIT_CALL \
	(sizeof(time_t) > sizeof(long) ? SYS_futex_time64 : SYS_futex)
#else
#define SYNC_FUTEX_WAIT_CALL SYS_futex
#endif

static inline void
sync_futex_wait_(const volatile void *word, uint32_t seen, uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000u),
			       (long)(ns % 1000000000u) };

	syscall(SYNC_FUTEX_WAIT_CALL, word, FUTEX_WAIT_PRIVATE, seen,
		ns == SYNC_FOREVER ? NULL : &ts, NULL, 0);
}

/* Sleep while *word is seen, ns nanoseconds at most. */
#define sync_futex_wait(word, seen, ns) \
	sync_futex_wait_(SEAM_AT("futex_wait", word), (seen), (ns))
#define sync_futex_wake(word) sync_futex_wake_n(word, INT_MAX)
/* n of the threads that sleep there, the first ones first. */
#define sync_futex_wake_n(word, n) \
	((void)syscall(SYS_futex, SEAM_AT("futex_wake", word), \
		       FUTEX_WAKE_PRIVATE, (n), NULL, NULL, 0))

/* ---- descriptors and processes ---- */

#include "base/sync_fd.h"
#include "base/sync_file.h"
#include "base/sync_spawn.h"

/* ---- threads ---- */

static inline int
sync_timedjoin_(pthread_t t, void **ret, uint64_t ns)
{
	struct timespec ts;
	uint64_t until;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	until = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + ns;
#if defined __SANITIZE_THREAD__ || !defined HAVE_PTHREAD_CLOCKJOIN_NP
	/* gcc 12's thread sanitizer does not know pthread_clockjoin_np, musl
	   and old glibc have none. */
	for (;;) {
		struct timespec nap = { 0, 200000 };
		int e = pthread_tryjoin_np(t, ret);

		if (e != EBUSY)
			return e;
		clock_gettime(CLOCK_MONOTONIC, &ts);
		if ((uint64_t)ts.tv_sec * 1000000000u +
			    (uint64_t)ts.tv_nsec > until)
			return ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
#else
	ts.tv_sec = (time_t)(until / 1000000000u);
	ts.tv_nsec = (long)(until % 1000000000u);
	return pthread_clockjoin_np(t, ret, CLOCK_MONOTONIC, &ts);
#endif
}

/* The C library's joins are cancellation points: a thread cancelled in one
   would keep what it has claimed. */
static inline int
sync_join_(pthread_t t, void **ret, uint64_t ns)
{
	int old, e;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	if (ns == 0)
		e = pthread_tryjoin_np(t, ret);
	else if (ns == SYNC_FOREVER)
		e = pthread_join(t, ret);
	else
		e = sync_timedjoin_(t, ret, ns);
	pthread_setcancelstate(old, NULL);
	return e;
}

/* 0 or an errno value, as pthread_create. */
#define sync_thread_create(t, attr, fn, arg) \
	(SEAM_FAILS("thread_create") ? \
		 errno : \
		 pthread_create((t), (attr), (fn), (arg)))
/* Join, waiting ns at most (0: only try): 0 or an errno value. */
#define sync_thread_join(t, ret, ns) \
	((void)SEAM("thread_join"), sync_join_((t), (ret), (ns)))

/* By its kernel id: 0, or -1 and errno. */
#define sync_tid_signal(tid, sig) \
	(SEAM_FAILS("tid_signal") ? \
		 -1 : \
		 (int)syscall(SYS_tgkill, getpid(), (tid), (sig)))
/* Only of one that was not joined.  0 or an errno value. */
#define sync_thread_signal(t, sig) \
	((void)SEAM("thread_signal"), pthread_kill((t), (sig)))

/* A cleanup handler runs where the frames of functions stood that did not
   return: to the address sanitizer those are there still. */
#ifdef __SANITIZE_ADDRESS__
void __asan_unpoison_memory_region(const volatile void *p, size_t n);
#define SYNC_UNWOUND (16u << 10)
#define sync_unwound() \
	__asan_unpoison_memory_region( \
		(char *)__builtin_frame_address(0) - SYNC_UNWOUND, \
		SYNC_UNWOUND)
#else
#define sync_unwound() ((void)0)
#endif

/* ---- clocks: nanoseconds ---- */

static inline uint64_t
sync_clock_(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#define sync_mono() ((void)SEAM("clock"), sync_clock_(CLOCK_MONOTONIC))
#define sync_real() ((void)SEAM("clock"), sync_clock_(CLOCK_REALTIME))
/* The same, and goes on while the machine sleeps. */
#define sync_boot() ((void)SEAM("clock"), sync_clock_(CLOCK_BOOTTIME))
/* Moves every few milliseconds only, and costs next to nothing. */
#define sync_mono_coarse() \
	((void)SEAM("clock"), sync_clock_(CLOCK_MONOTONIC_COARSE))

/* ---- memory that may just be going away ---- */

/* Copy what can be read of n bytes at an address: how much that was, or -1. */
#define sync_peek(to, address, n) \
	(SEAM_FAILS("peek") ? \
		 -1 : \
		 (ssize_t)syscall(SYS_process_vm_readv, getpid(), \
				  &(struct iovec){ (to), (n) }, 1L, \
				  &(struct iovec){ (void *)(address), (n) }, \
				  1L, 0L))

/* ---- memory: zeroed, but for that of sync_alloc_bytes ---- */

static inline void *
sync_aligned_(size_t align, size_t size)
{
	void *p;

	return posix_memalign(&p, align, size) == 0 ? memset(p, 0, size) :
						      NULL;
}

#define sync_alloc(n, size) \
	(SEAM_FAILS("alloc") ? NULL : calloc((n), (size)))
/* The same on a boundary of align bytes. */
#define sync_alloc_aligned(align, size) \
	(SEAM_FAILS("alloc") ? NULL : sync_aligned_((align), (size)))
/* n > 0 bytes, to be written before they are read. */
#define sync_alloc_bytes(n) (SEAM_FAILS("alloc") ? NULL : malloc(n))
#define sync_free(p) free(p)

#endif
