/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tables of fork children share: a thread of the parent that forks,
 * what the child does then, and what it has of the parent.  The program defines
 * what the child does with loops, and with objects that it makes.
 */
#ifndef TESTS_SUPPORT_FORK_CHILD_H
#define TESTS_SUPPORT_FORK_CHILD_H

#include "fork_util.h"

#include <ev.h>
#include <signal.h>
#include <sys/wait.h>

enum from { PLAIN, MEMBER, CALLBACK };
enum then { OWN, LOOP, DESTROY, EXIT, EXEC };

static const char *const then_name[] = { "own", "loop", "destroy", "exit",
					 "exec" };

static bool in_child;
static unsigned strayed; /* functions of the parent's that the child called */
static enum then next_child; /* what the next child does */
static int child_status;     /* how the last child has ended */
static bool old_fd[1024];

/* What the program does in the child: all calls that are refused there, and one
   function for each of the first three of enum then. */
static void
check_calls(void);
static void
make_own(void);
static void
keep_loop(void);
static void
destroy_loops(void);

/* Each function of the parent's that may be called calls this one. */
static void
called(void)
{
	if (in_child)
		strayed++;
}

/* Note the descriptors that are open: later ones are the library's. */
static void
note_old_fds(void)
{
	int i;

	for (i = 0; i < 1024; i++)
		old_fd[i] = fcntl(i, F_GETFD) >= 0;
}

/* What the library has opened is closed by an exec. */
static void
no_fd_is_left(void)
{
	int i, flags;

	for (i = 3; i < 1024; i++) {
		flags = fcntl(i, F_GETFD);
		if (flags >= 0 && !old_fd[i] && !(flags & FD_CLOEXEC)) {
			fprintf(stderr, "descriptor %d is inherited\n", i);
			_exit(1);
		}
	}
}

static void
count_timer(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)loop;
	(void)revents;
	++*(int *)t->data;
}

/* Nothing of the parent's keeps the loop running, or is called. */
static void
turn_loop(struct ev_loop *loop)
{
	ev_timer t;
	int n = 0;

	CHILD(ev_run(loop, 0) == 0);
	ev_timer_init(&t, count_timer, 0.01, 0);
	t.data = &n;
	ev_timer_start(loop, &t);
	CHILD(ev_run(loop, 0) == 0);
	CHILD(n == 1);
	CHILD(strayed == 0);
}

static void
begin_child(void)
{
	sigset_t none;

	in_child = true;
	/* A member's thread has its signals blocked. */
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	signal(SIGALRM, SIG_DFL);
	alarm((unsigned)T_LIMIT * 2);
}

static void
do_then(void)
{
	switch (next_child) {
	case OWN:
		make_own();
		break;
	case LOOP:
		keep_loop();
		break;
	case DESTROY:
		destroy_loops();
		break;
	case EXIT:
		exit(0);
	case EXEC:
		no_fd_is_left();
		execl("/bin/true", "true", (char *)NULL);
		_exit(9);
	}
	CHILD(strayed == 0);
	_exit(0);
}

static void
do_fork(enum from from)
{
	pid_t pid = fork();

	if (pid == 0) {
		begin_child();
		check_calls();
		/* What is to become of a loop comes outside its callbacks. */
		if (from != CALLBACK ||
		    (next_child != LOOP && next_child != DESTROY))
			do_then();
		return;
	}
	child_status = -1;
	if (pid > 0)
		(void)waitpid(pid, &child_status, 0);
}

#define ENDED_WELL \
	ck_assert_msg(child_status == 0, "%s: the child ended with %#x", \
		      then_name[next_child], (unsigned)child_status)

#endif
