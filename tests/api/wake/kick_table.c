/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a kick wakes: one test for each call that threads block in, and in each
 * of them a started thread, one that registers itself, a looper on a thread of
 * its own and a guard.  Those that kicks do not wake stand in kick_not.c.
 */
#include "../../support/rouse_util.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/*
 * Blocked there, and flagged: nothing wakes it before the stop, the stop ends
 * the call with EINTR, it ends, and the join is clean.
 */
static void
wakes(struct sleeper *s, int (*call)(struct sleeper *s), int kind)
{
	evc_member_opts opts = { .flags = EVC_KICK };
	evc_coord *c = new_coord(NULL);
	evc_verdict v;

	s->call = call;
	sleeper_begin(s, c, (enum kind)kind, &opts);
	NOT_YET(atomic_load(&s->interrupted) > 0);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, &generous, &v));
	sleeper_end(s);
	ck_assert_int_ge(atomic_load(&s->interrupted), 1);
	ck_assert_int_eq(s->err, EINTR);
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_uint_eq(v.n_stragglers, 0);
	OK(evc_free(c));
}

static void
close_all(struct sleeper *s)
{
	int i;

	for (i = 0; i < 3; i++)
		if (s->fd[i] > 0)
			close(s->fd[i]);
}

START_TEST(read_of_a_pipe)
{
	struct sleeper s = { 0 };

	OK(pipe(s.fd));
	wakes(&s, call_read, _i);
	close_all(&s);
}
END_TEST

static int
call_write(struct sleeper *s)
{
	static const char page[4096];

	return (int)write(s->fd[1], page, sizeof(page));
}

START_TEST(write_to_a_full_pipe)
{
	struct sleeper s = { 0 };
	int flags;

	OK(pipe(s.fd));
	flags = fcntl(s.fd[1], F_GETFL);
	OK(fcntl(s.fd[1], F_SETFL, flags | O_NONBLOCK));
	while (call_write(&s) > 0)
		;
	OK(fcntl(s.fd[1], F_SETFL, flags));
	wakes(&s, call_write, _i);
	close_all(&s);
}
END_TEST

static int
call_poll(struct sleeper *s)
{
	struct pollfd p = { .fd = s->fd[0], .events = POLLIN };

	return poll(&p, 1, -1);
}

START_TEST(poll_of_a_pipe)
{
	struct sleeper s = { 0 };

	OK(pipe(s.fd));
	wakes(&s, call_poll, _i);
	close_all(&s);
}
END_TEST

static int
call_epoll(struct sleeper *s)
{
	struct epoll_event e;

	return epoll_wait(s->fd[2], &e, 1, -1);
}

START_TEST(epoll_wait_of_a_pipe)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct sleeper s = { 0 };

	OK(pipe(s.fd));
	s.fd[2] = epoll_create1(0);
	OK(epoll_ctl(s.fd[2], EPOLL_CTL_ADD, s.fd[0], &e));
	wakes(&s, call_epoll, _i);
	close_all(&s);
}
END_TEST

/* A socket on 127.0.0.1, and its address. */
static int
loopback(int type, struct sockaddr_in *ret_at)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, type, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	OK(bind(fd, (struct sockaddr *)&at, n));
	OK(getsockname(fd, (struct sockaddr *)&at, &n));
	if (type == SOCK_STREAM)
		OK(listen(fd, 1));
	*ret_at = at;
	return fd;
}

static int
call_accept(struct sleeper *s)
{
	return accept(s->fd[0], NULL, NULL);
}

START_TEST(accept_of_tcp)
{
	struct sleeper s = { 0 };
	struct sockaddr_in at;

	s.fd[0] = loopback(SOCK_STREAM, &at);
	wakes(&s, call_accept, _i);
	close_all(&s);
}
END_TEST

static int
call_recv(struct sleeper *s)
{
	char byte;

	return (int)recv(s->fd[0], &byte, 1, 0);
}

START_TEST(recv_of_tcp)
{
	struct sleeper s = { 0 };
	struct sockaddr_in at;

	s.fd[2] = loopback(SOCK_STREAM, &at);
	s.fd[1] = socket(AF_INET, SOCK_STREAM, 0);
	OK(connect(s.fd[1], (struct sockaddr *)&at, sizeof(at)));
	s.fd[0] = accept(s.fd[2], NULL, NULL);
	ck_assert_int_ge(s.fd[0], 0);
	wakes(&s, call_recv, _i);
	close_all(&s);
}
END_TEST

START_TEST(recv_of_udp)
{
	struct sleeper s = { 0 };
	struct sockaddr_in at;

	s.fd[0] = loopback(SOCK_DGRAM, &at);
	wakes(&s, call_recv, _i);
	close_all(&s);
}
END_TEST

static int
call_recvmmsg(struct sleeper *s)
{
	char bytes[2];
	struct iovec iov[2] = { { &bytes[0], 1 }, { &bytes[1], 1 } };
	struct mmsghdr m[2];
	int i;

	memset(m, 0, sizeof(m));
	for (i = 0; i < 2; i++) {
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	return recvmmsg(s->fd[0], m, 2, 0, NULL);
}

START_TEST(recvmmsg_of_udp)
{
	struct sleeper s = { 0 };
	struct sockaddr_in at;

	s.fd[0] = loopback(SOCK_DGRAM, &at);
	wakes(&s, call_recvmmsg, _i);
	close_all(&s);
}
END_TEST

START_TEST(recv_of_unix)
{
	struct sleeper s = { 0 };

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s.fd));
	wakes(&s, call_recv, _i);
	close_all(&s);
}
END_TEST

static int
call_sem_wait(struct sleeper *s)
{
	return sem_wait(s->more);
}

START_TEST(sem_wait_of_nobody)
{
	struct sleeper s = { 0 };
	sem_t sem;

	OK(sem_init(&sem, 0, 0));
	s.more = &sem;
	wakes(&s, call_sem_wait, _i);
	OK(sem_destroy(&sem));
}
END_TEST

START_TEST(nanosleep_for_long)
{
	struct sleeper s = { 0 };

	wakes(&s, call_nanosleep, _i);
}
END_TEST

/* ---- files ---- */

static int
call_flock(struct sleeper *s)
{
	return flock(s->fd[0], LOCK_EX);
}

START_TEST(flock_of_a_locked_file)
{
	char path[] = "/tmp/evcoord-flock-XXXXXX";
	struct sleeper s = { 0 };

	s.fd[1] = mkstemp(path);
	ck_assert_int_ge(s.fd[1], 0);
	s.fd[0] = open(path, O_RDWR);
	unlink(path);
	ck_assert_int_ge(s.fd[0], 0);
	OK(flock(s.fd[1], LOCK_EX));
	wakes(&s, call_flock, _i);
	close_all(&s);
}
END_TEST

static int
call_open(struct sleeper *s)
{
	return open(s->more, O_RDONLY);
}

START_TEST(open_of_a_fifo)
{
	char dir[] = "/tmp/evcoord-fifo-XXXXXX", path[64];
	struct sleeper s = { 0 };

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	OK(mkfifo(path, 0600));
	s.more = path;
	wakes(&s, call_open, _i);
	unlink(path);
	rmdir(dir);
}
END_TEST

static int
call_waitpid(struct sleeper *s)
{
	return waitpid(*(pid_t *)s->more, NULL, 0);
}

START_TEST(waitpid_of_a_child)
{
	struct sleeper s = { 0 };
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	s.more = &pid;
	wakes(&s, call_waitpid, _i);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

T_MAIN("kick_table", NULL, NULL,
       T_TIMES(read_of_a_pipe, N_KINDS),
       T_TIMES(write_to_a_full_pipe, N_KINDS),
       T_TIMES(poll_of_a_pipe, N_KINDS),
       T_TIMES(epoll_wait_of_a_pipe, N_KINDS),
       T_TIMES(accept_of_tcp, N_KINDS),
       T_TIMES(recv_of_tcp, N_KINDS),
       T_TIMES(recv_of_udp, N_KINDS),
       T_TIMES(recvmmsg_of_udp, N_KINDS),
       T_TIMES(recv_of_unix, N_KINDS),
       T_TIMES(sem_wait_of_nobody, N_KINDS),
       T_TIMES(nanosleep_for_long, N_KINDS),
       T_TIMES(flock_of_a_locked_file, N_KINDS),
       T_TIMES(open_of_a_fifo, N_KINDS),
       T_TIMES(waitpid_of_a_child, N_KINDS))
