/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of the seam for starting processes, and for the sockets and pipes to
 * them.  Only base/sync.h includes this file; the rules there hold.
 */
#ifndef EVC_BASE_SYNC_SPAWN_H
#define EVC_BASE_SYNC_SPAWN_H

#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

/* Two ends of a stream, or two of a pipe: 0, or -1 and errno. */
#define sync_socketpair(fds) \
	(SEAM_FAILS("socketpair") ? \
		 -1 : \
		 socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, (fds)))
#define sync_pipe(fds) \
	(SEAM_FAILS("pipe") ? -1 : pipe2((fds), O_CLOEXEC))
/* Another number for the same file, `least` or greater; or -1 and errno. */
#define sync_fd_above(fd, least) \
	(SEAM_FAILS("fd_above") ? \
		 -1 : \
		 fcntl((fd), F_DUPFD_CLOEXEC, (least)))
/* For an end of a pipe, or for an inherited descriptor. */
#define sync_fd_nonblock(fd) \
	((void)SEAM("fd_nonblock"), \
	 (void)fcntl((fd), F_SETFL, fcntl((fd), F_GETFL) | O_NONBLOCK))
/* 0, or -1 and errno when there is no such descriptor. */
#define sync_fd_cloexec(fd) \
	(SEAM_FAILS("fd_cloexec") ? -1 : fcntl((fd), F_SETFD, FD_CLOEXEC))
/* Whether an exec closes it; no when there is no such descriptor. */
#define sync_fd_is_cloexec(fd) \
	((void)SEAM("fd_is_cloexec"), fcntl((fd), F_GETFD) == FD_CLOEXEC)

/* Bare system calls: no cancellation points, and no signal if the other end is
   gone.  Number of bytes, 0 at the end, or -1 and errno; the first three never
   wait. */
#define sync_recv(fd, buf, n) \
	(SEAM_FAILS("recv") ? \
		 -1 : \
		 (ssize_t)syscall(SYS_recvfrom, (fd), (buf), (n), \
				  MSG_DONTWAIT, NULL, NULL))
/* The next bytes, which stay to be read. */
#define sync_recv_peek(fd, buf, n) \
	(SEAM_FAILS("recv_peek") ? \
		 -1 : \
		 (ssize_t)syscall(SYS_recvfrom, (fd), (buf), (n), \
				  MSG_DONTWAIT | MSG_PEEK, NULL, NULL))
/* The number of bytes to be read: 0, or -1 and errno. */
#define sync_fd_unread(fd, ret_n) \
	(SEAM_FAILS("fd_unread") ? -1 : ioctl((fd), FIONREAD, (ret_n)))
#define sync_send(fd, buf, n) \
	(SEAM_FAILS("send") ? \
		 -1 : \
		 (ssize_t)syscall(SYS_sendto, (fd), (buf), (n), \
				  MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0))
#define sync_recv_wait(fd, buf, n) \
	(SEAM_FAILS("recv_wait") ? \
		 -1 : \
		 (ssize_t)syscall(SYS_recvfrom, (fd), (buf), (n), 0, NULL, \
				  NULL))
#define sync_send_wait(fd, buf, n) \
	(SEAM_FAILS("send_wait") ? \
		 -1 : \
		 (ssize_t)syscall(SYS_sendto, (fd), (buf), (n), MSG_NOSIGNAL, \
				  NULL, 0))
/* The same of several pieces, by struct iovec. */
static inline ssize_t
sync_sendv_(int fd, struct iovec *pieces, size_t n, int flags)
{
	struct msghdr m = { .msg_iov = pieces, .msg_iovlen = n };

	return (ssize_t)syscall(SYS_sendmsg, fd, &m, MSG_NOSIGNAL | flags);
}

#define sync_sendv(fd, pieces, n) \
	(SEAM_FAILS("send") ? \
		 -1 : \
		 sync_sendv_((fd), (pieces), (n), MSG_DONTWAIT))
#define sync_sendv_wait(fd, pieces, n) \
	(SEAM_FAILS("send_wait") ? -1 : sync_sendv_((fd), (pieces), (n), 0))
/* how: SHUT_RD ... */
#define sync_shutdown(fd, how) \
	((void)SEAM("shutdown"), (void)shutdown((fd), (how)))

/* 0 or an errno value, as posix_spawn. */
#define sync_spawn(pid, path, actions, attr, argv, envp) \
	(SEAM_FAILS("spawn") ? \
		 errno : \
		 posix_spawn((pid), (path), (actions), (attr), (argv), \
			     (envp)))
/* Have sig sent to this process at the end of the thread that started it: 0, or
   -1 and errno. */
#define sync_parent_death(sig) \
	(SEAM_FAILS("parent_death") ? -1 : prctl(PR_SET_PDEATHSIG, (sig)))

/* ---- the end of this process by the clock ---- */

static inline int
sync_end_timer_(timer_t *ret)
{
	struct sigevent how = { .sigev_notify = SIGEV_SIGNAL,
				.sigev_signo = SIGKILL };

	return timer_create(CLOCK_BOOTTIME, &how, ret);
}

static inline int
sync_end_timer_set_(timer_t timer, uint64_t boot_ns)
{
	struct itimerspec at = { .it_value = {
			(time_t)(boot_ns / 1000000000u),
			(long)(boot_ns % 1000000000u) } };

	return timer_settime(timer, TIMER_ABSTIME, &at, NULL);
}

/* At its time the kernel sends this process SIGKILL, even if the process is
   stopped.  No child inherits the timer.  0, or -1 and errno. */
#define sync_end_timer(ret) \
	(SEAM_FAILS("end_timer") ? -1 : sync_end_timer_(ret))
/* boot_ns: of sync_boot(), never 0. */
#define sync_end_timer_set(timer, boot_ns) \
	(SEAM_FAILS("end_timer_set") ? \
		 -1 : \
		 sync_end_timer_set_((timer), (boot_ns)))
#define sync_end_timer_free(timer) \
	((void)SEAM("end_timer_free"), (void)timer_delete(timer))

#endif
