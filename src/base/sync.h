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
#include <sys/syscall.h>
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
#define sync_unlock(m) ((void)pthread_mutex_unlock(SEAM_AT("unlock", m)))
#define sync_lock_init(m) ((void)pthread_mutex_init((m), NULL))
#define sync_lock_destroy(m) ((void)pthread_mutex_destroy(m))

/* ---- futex: bare system calls, so no cancellation points ---- */

#define SYNC_FOREVER UINT64_MAX

/* On 32-bit machines the C library's time_t may have 64 bits, and then the old
   call reads half of it as nanoseconds. */
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
#define sync_futex_wake(word) \
	((void)syscall(SYS_futex, SEAM_AT("futex_wake", word), \
		       FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0))

/* ---- descriptors: no cancellation points either ---- */

static inline void
sync_fd_write_(int fd)
{
	uint64_t one = 1;

	(void)!syscall(SYS_write, fd, &one, sizeof one);
}

static inline void
sync_fd_drain_(int fd)
{
	uint64_t n;

	(void)!syscall(SYS_read, fd, &n, sizeof n);
}

/* Not the bare call: the thread sanitizer must see which numbers are free. */
static inline void
sync_fd_close_(int fd)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	(void)close(fd);
	pthread_setcancelstate(old, NULL);
}

/* A non-blocking eventfd, or -1 and errno. */
#define sync_eventfd() \
	(SEAM_FAILS("eventfd") ? \
		 -1 : \
		 eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
#define sync_fd_write(fd) ((void)SEAM("fd_write"), sync_fd_write_(fd))
#define sync_fd_drain(fd) ((void)SEAM("fd_drain"), sync_fd_drain_(fd))
#define sync_fd_close(fd) ((void)SEAM("fd_close"), sync_fd_close_(fd))
#define sync_epoll() \
	(SEAM_FAILS("epoll") ? -1 : epoll_create1(EPOLL_CLOEXEC))

/* Of what is watched for reading. */
#define sync_epoll_add(epoll, fd, ev) \
	(SEAM_FAILS("epoll_add") ? \
		 -1 : \
		 epoll_ctl((epoll), EPOLL_CTL_ADD, (fd), (ev)))
#define sync_epoll_del(epoll, fd) \
	((void)SEAM("epoll_del"), \
	 (void)epoll_ctl((epoll), EPOLL_CTL_DEL, (fd), NULL))
static inline int
sync_epoll_wait_(int epoll, struct epoll_event *ev, int n, uint64_t ns)
{
	return epoll_wait(epoll, ev, n,
			  ns > INT_MAX * UINT64_C(1000000) ?
				  -1 :
				  (int)((ns + 999999) / 1000000));
}

/* ns: at most so long, rounded up to milliseconds. */
#define sync_epoll_wait(epoll, ev, n, ns) \
	((void)SEAM("epoll_wait"), \
	 sync_epoll_wait_((epoll), (ev), (n), (ns)))

static inline bool
sync_fd_readable_(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

#define sync_fd_readable(fd) \
	((void)SEAM("fd_readable"), sync_fd_readable_(fd))

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#define SYNC_PIDFD_THREAD O_EXCL

/* A pidfd for one thread (Linux 6.9), or -1 and errno. */
#define sync_pidfd(tid) \
	(SEAM_FAILS("pidfd") ? \
		 -1 : \
		 (int)syscall(SYS_pidfd_open, (tid), SYNC_PIDFD_THREAD))

/* ---- child processes: bare system calls, signal-safe ---- */

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
/* What the kernel tells of a process by its pidfd (Linux 6.13); one that knows
   more fills in this much of it. */
struct sync_pidfd_info {
	uint64_t mask; /* asked for; then: what was filled in */
	uint64_t cgroup;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code; /* as wait(2) tells it (Linux 6.15) */
};
#define SYNC_PIDFD_INFO_EXIT UINT64_C(8)
#define SYNC_PIDFD_GET_INFO _IOWR(0xff, 11, struct sync_pidfd_info)

/* A pidfd for a process (Linux 5.3), or -1 and errno. */
#define sync_pidfd_process(pid) \
	(SEAM_FAILS("pidfd") ? -1 : \
				     (int)syscall(SYS_pidfd_open, (pid), 0))
#define SYNC_P_PIDFD 3
/* Without blocking: 0 and info, whose si_pid is 0 when it runs still; or -1 and
   errno.  type: P_PID or SYNC_P_PIDFD; flags: WNOWAIT, or 0. */
#define sync_waitid(type, id, info, flags) \
	(SEAM_FAILS("waitid") ? \
		 -1 : \
		 (int)syscall(SYS_waitid, (type), (id), (info), \
			      WEXITED | WNOHANG | (flags), NULL))
/* 0, or -1 and errno. */
#define sync_pidfd_info(fd, info) \
	(SEAM_FAILS("pidfd_info") ? \
		 -1 : \
		 (int)syscall(SYS_ioctl, (fd), SYNC_PIDFD_GET_INFO, (info)))
#define sync_pidfd_signal(fd, sig) \
	((void)SEAM("pidfd_signal"), \
	 (void)syscall(SYS_pidfd_send_signal, (fd), (sig), NULL, 0))
#define sync_pid_signal(pid, sig) \
	((void)SEAM("pid_signal"), (void)syscall(SYS_kill, (pid), (sig)))

/* ---- threads ---- */

static inline int
sync_timedjoin_(pthread_t t, void **ret, uint64_t ns)
{
	struct timespec ts;
	uint64_t until;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	until = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + ns;
#ifdef __SANITIZE_THREAD__
	/* gcc 12's thread sanitizer does not know pthread_clockjoin_np. */
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
/* Moves every few milliseconds only, and costs next to nothing. */
#define sync_mono_coarse() \
	((void)SEAM("clock"), sync_clock_(CLOCK_MONOTONIC_COARSE))

/* ---- memory: zeroed ---- */

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
#define sync_free(p) free(p)

#endif
