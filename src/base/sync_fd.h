/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of the seam for descriptors, sockets and child processes.  Only
 * base/sync.h includes this file; the rules there hold.
 */
#ifndef EVC_BASE_SYNC_FD_H
#define EVC_BASE_SYNC_FD_H

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
/* A non-blocking timerfd of the monotonic clock, or -1 and errno. */
#define sync_timerfd() \
	(SEAM_FAILS("timerfd") ? \
		 -1 : \
		 timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))

static inline void
sync_timerfd_set_(int fd, uint64_t ns)
{
	struct itimerspec at = { { 0, 0 }, { 0, 0 } };

	if (ns != SYNC_FOREVER) {
		at.it_value.tv_sec = (time_t)(ns / 1000000000u);
		at.it_value.tv_nsec = (long)(ns % 1000000000u);
	}
	(void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Readable from this time on, by sync_mono; SYNC_FOREVER: not at all. */
#define sync_timerfd_set(fd, ns) \
	((void)SEAM("timerfd_set"), sync_timerfd_set_((fd), (ns)))
#define sync_fd_write(fd) ((void)SEAM("fd_write"), sync_fd_write_(fd))
#define sync_fd_drain(fd) ((void)SEAM("fd_drain"), sync_fd_drain_(fd))
#define sync_fd_close(fd) ((void)SEAM("fd_close"), sync_fd_close_(fd))
#define sync_epoll() \
	(SEAM_FAILS("epoll") ? -1 : epoll_create1(EPOLL_CLOEXEC))

/* Descriptors watched for reading. */
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

/* Wait ns at most, rounded up to milliseconds. */
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

/* A file, or -1 and errno. */
#define sync_open_read(path) \
	(SEAM_FAILS("open_read") ? \
		 -1 : \
		 (int)syscall(SYS_openat, AT_FDCWD, (path), \
			      O_RDONLY | O_CLOEXEC))
/* Number of bytes, 0 at the end, or -1 and errno. */
#define sync_fd_read(fd, buf, n) \
	(SEAM_FAILS("fd_read") ? \
		 -1 : \
		 (ssize_t)syscall(SYS_read, (fd), (buf), (n)))

/* For text: number of bytes written, or -1 and errno. */
#define sync_fd_put(fd, buf, n) \
	(SEAM_FAILS("fd_put") ? \
		 -1 : \
		 (ssize_t)syscall(SYS_write, (fd), (buf), (n)))

static inline bool
sync_fd_writable_(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int old, n;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	n = poll(&p, 1, ms);
	pthread_setcancelstate(old, NULL);
	return n == 1 && (p.revents & POLLOUT);
}

/* Wait until fd is writable, ms milliseconds at most, or until a signal. */
#define sync_fd_writable(fd, ms) \
	((void)SEAM("fd_writable"), sync_fd_writable_((fd), (ms)))

/* ---- datagrams to a socket in the file system: signal-safe but for the
   first ---- */

/* A socket to send from, or -1 and errno. */
#define sync_dgram() \
	(SEAM_FAILS("dgram") ? \
		 -1 : \
		 socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0))
/* Never blocks, raises no signal: bytes sent, or -1 and errno. */
#define sync_dgram_send(fd, buf, n, to, to_len) \
	(SEAM_FAILS("dgram_send") ? \
		 -1 : \
		 (ssize_t)syscall(SYS_sendto, (fd), (buf), (n), \
				  MSG_DONTWAIT | MSG_NOSIGNAL, (to), \
				  (to_len)))

#ifdef SYS_ppoll_time64
#define SYNC_PPOLL_CALL \
	(sizeof(time_t) > sizeof(long) ? SYS_ppoll_time64 : SYS_ppoll)
#else
#define SYNC_PPOLL_CALL SYS_ppoll
#endif

static inline int
sync_ppoll_(struct pollfd *fds, size_t n, uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000u),
			       (long)(ns % 1000000000u) };

	return (int)syscall(SYNC_PPOLL_CALL, fds, n,
			    ns == SYNC_FOREVER ? NULL : &ts, NULL, 0);
}

/* As poll(2), ns nanoseconds at most; a signal ends it with EINTR. */
#define sync_ppoll(fds, n, ns) \
	(SEAM_FAILS("ppoll") ? -1 : sync_ppoll_((fds), (n), (ns)))

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
/* The kernel's answer about a process by pidfd (Linux 6.13); later kernels,
   which know more fields, fill in these alone. */
struct sync_pidfd_info {
	uint64_t mask; /* the wanted fields; then: those filled in */
	uint64_t cgroup;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code; /* as by wait(2) (Linux 6.15) */
};
#define SYNC_PIDFD_INFO_EXIT UINT64_C(8)
#define SYNC_PIDFD_GET_INFO _IOWR(0xff, 11, struct sync_pidfd_info)

/* A pidfd for a process (Linux 5.3), or -1 and errno. */
#define sync_pidfd_process(pid) \
	(SEAM_FAILS("pidfd") ? -1 : \
				     (int)syscall(SYS_pidfd_open, (pid), 0))
#define SYNC_P_PIDFD 3
/* Without blocking: 0 and info, with si_pid 0 for a child that runs; or -1 and
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
/* The pid of a child that has ended, and is reaped; 0: the child runs; or -1 and
   errno. */
#define sync_wait4(pid, status) \
	((int)syscall(SYS_wait4, (pid), (status), WNOHANG, NULL))
/* 0, or -1 and errno. */
#define sync_pidfd_signal(fd, sig) \
	((void)SEAM("pidfd_signal"), \
	 (int)syscall(SYS_pidfd_send_signal, (fd), (sig), NULL, 0))
#define sync_pid_signal(pid, sig) \
	((void)SEAM("pid_signal"), (int)syscall(SYS_kill, (pid), (sig)))

#endif
