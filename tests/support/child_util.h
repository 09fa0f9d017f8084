/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of child processes share: children that are ready before the
 * test goes on, that end when they are let go, and that do with SIGTERM what
 * the test says.  None outlives its test.
 */
#ifndef TESTS_SUPPORT_CHILD_UTIL_H
#define TESTS_SUPPORT_CHILD_UTIL_H

#include "old_kernel.h"
#include "runner_util.h"

#include <ctype.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

/* What a child does at SIGTERM, beside leaving with an exit status. */
#define TERM_DEFAULT (-1)
#define TERM_IGNORED (-2)

struct kid {
	pid_t pid;
	int go; /* a byte here lets it go */
	evc_id id;
};

/*
 * In the child.  SIGTERM is read from a descriptor: a handler might never run
 * there, because the thread sanitizer puts it off in a process that was forked
 * off a program with threads.
 */
static MAYBE_UNUSED void
kid_live(int go, int ready, int term, int status, int sig)
{
	struct pollfd p[2] = { { .fd = go, .events = POLLIN },
			       { .fd = -1, .events = POLLIN } };
	sigset_t blocked;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGTERM, term == TERM_IGNORED ? SIG_IGN : SIG_DFL);
	sigemptyset(&blocked);
	if (term >= 0)
		sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	if (term >= 0)
		p[1].fd = signalfd(-1, &blocked, SFD_CLOEXEC);
	if (write(ready, "r", 1) != 1)
		_exit(99);
	close(ready);
	while (poll(p, 2, -1) < 0)
		;
	if (p[1].revents != 0)
		_exit(term);
	if (sig != 0) {
		signal(sig, SIG_DFL);
		kill(getpid(), sig);
	}
	_exit(status);
}

/*
 * Make a child; when it is let go it dies of sig, or, if that is 0, leaves
 * with status.
 */
static MAYBE_UNUSED struct kid
kid_born(int term, int status, int sig)
{
	struct kid k = { 0 };
	int go[2], ready[2];
	char byte;

	OK(pipe2(go, O_CLOEXEC));
	OK(pipe2(ready, O_CLOEXEC));
	k.pid = fork();
	ck_assert_int_ge(k.pid, 0);
	if (k.pid == 0) {
		close(go[1]);
		close(ready[0]);
		kid_live(go[0], ready[1], term, status, sig);
	}
	close(go[0]);
	close(ready[1]);
	k.go = go[1];
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return k;
}

static MAYBE_UNUSED void
kid_let_go(struct kid *k)
{
	ck_assert_int_eq(write(k->go, "g", 1), 1);
}

/* Has it ended?  Does not reap it. */
static MAYBE_UNUSED bool
kid_has_ended(const struct kid *k)
{
	siginfo_t si;

	si.si_pid = 0;
	if (waitid(P_PID, (id_t)k->pid, &si, WEXITED | WNOWAIT | WNOHANG) < 0)
		return true; /* somebody reaped it */
	return si.si_pid == k->pid;
}

/* Has somebody else reaped it? */
static MAYBE_UNUSED bool
kid_is_reaped(const struct kid *k)
{
	siginfo_t si;

	return waitid(P_PID, (id_t)k->pid, &si, WEXITED | WNOWAIT | WNOHANG) <
		       0 &&
	       errno == ECHILD;
}

/* Are there pidfds?  valgrind 3.19 lets nobody have one. */
static MAYBE_UNUSED bool
has_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* And can one be waited for (Linux 5.4)?  Else a number is all there is. */
static MAYBE_UNUSED bool
can_wait_by_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	siginfo_t si;
	bool yes;

	if (fd < 0)
		return false;
	/* ECHILD: it was understood. */
	yes = waitid((idtype_t)T_P_PIDFD, (id_t)fd, &si, WEXITED | WNOHANG) ==
		      0 ||
	      errno == ECHILD;
	close(fd);
	return yes;
}

/*
 * Does this kernel (Linux 6.15) keep the status of a child that somebody else
 * has reaped, for who has its pidfd?  Tried out.
 */
static MAYBE_UNUSED bool
kernel_keeps_status(void)
{
	uint64_t info[8] = { 8 }; /* PIDFD_INFO_EXIT, and room for it */
	pid_t pid = fork();
	int fd;

	if (pid == 0)
		for (;;)
			pause();
	ck_assert_int_gt(pid, 0);
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (fd < 0)
		return false;
	if (ioctl(fd, _IOWR(0xff, 11, uint64_t[8]), info) != 0)
		info[0] = 0;
	close(fd);
	return (info[0] & 8) != 0;
}

/* Stop it with SIGSTOP, and wait until it is. */
static MAYBE_UNUSED void
kid_freeze(const struct kid *k)
{
	siginfo_t si;

	OK(kill(k->pid, SIGSTOP));
	si.si_pid = 0;
	while (waitid(P_PID, (id_t)k->pid, &si, WSTOPPED | WNOWAIT) < 0)
		ck_assert_int_eq(errno, EINTR);
	ck_assert_int_eq(si.si_pid, k->pid);
}

/* Does a text hold that number, not as a part of another one? */
static MAYBE_UNUSED bool
has_number(const char *text, int n)
{
	char want[16];
	const char *p = text;
	size_t len;

	snprintf(want, sizeof(want), "%d", n);
	len = strlen(want);
	for (; (p = strstr(p, want)) != NULL; p++)
		if ((p == text || !isdigit((unsigned char)p[-1])) &&
		    !isdigit((unsigned char)p[len]))
			return true;
	return false;
}

#define HAS_NUMBER(text, n) \
	do { \
		const char *number_text_ = (text); \
		ck_assert_msg(has_number(number_text_, (n)), \
			      "no number %d in \"%s\"", (n), number_text_); \
	} while (0)

#ifdef HAVE_SIGABBREV_NP
#define signal_abbrev sigabbrev_np
#else
static inline const char *
signal_abbrev(int sig)
{
	return sig == SIGKILL ? "KILL" :
	       sig == SIGTERM ? "TERM" :
	       sig == SIGSEGV ? "SEGV" :
	       sig == SIGABRT ? "ABRT" :
	       sig == SIGINT  ? "INT" :
	       sig == SIGUSR1 ? "USR1" : "?";
}
#endif

/* A signal is named by its number or by its name. */
#define HAS_SIGNAL(text, sig) \
	do { \
		const char *signal_text_ = (text); \
		ck_assert_msg(has_number(signal_text_, (sig)) || \
				      strstr(signal_text_, \
					     signal_abbrev((sig))) != NULL, \
			      "no signal %d in \"%s\"", (sig), signal_text_); \
	} while (0)

/* The library must have reaped it. */
static MAYBE_UNUSED void
kid_was_reaped(struct kid *k)
{
	ck_assert(kid_is_reaped(k));
	close(k->go);
	k->go = -1;
}

/* End and reap one that is the test's own still. */
static MAYBE_UNUSED void
kid_put_down(struct kid *k)
{
	kill(k->pid, SIGKILL);
	ck_assert_int_eq(waitpid(k->pid, NULL, 0), k->pid);
	close(k->go);
	k->go = -1;
}

static MAYBE_UNUSED void
kid_add(struct setting *s, const char *name, struct kid *k, double grace,
	unsigned flags)
{
	evc_member_opts opts = { .reactor = s->far,
				 .grace = grace,
				 .flags = flags };

	OK(evc_child_add(s->c, name, k->pid, &opts, &k->id));
	ck_assert_uint_ne(k->id, 0);
}

#endif
