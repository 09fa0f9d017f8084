/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that are in a known state, for tests that look at them from outside:
 * blocked in one system call or another, running, in disk sleep, ended.
 */
#ifndef TESTS_SUPPORT_VICTIM_UTIL_H
#define TESTS_SUPPORT_VICTIM_UTIL_H

#include "api_util.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

struct victim {
	void (*fn)(struct victim *v);
	pthread_t thread;
	atomic_int tid;   /* 0: it has not begun */
	atomic_bool done; /* it is to end */
	atomic_ulong turns;
	int fd[2];        /* a pipe: written to, it ends as well */
	sigset_t mask;    /* what it blocks */
	bool bad;         /* it saw something that must not be */
	void *stack;      /* of a child of its own */
};

/* A function of which a test knows all addresses: the linker names the ends of
   its section. */
#define PLACED(name) __attribute__((noinline, section(#name), used))
#define PLACE_OF(name) \
	extern const char __start_##name[], __stop_##name[]
#define IN_PLACE(name, frame) \
	((const char *)(frame) >= __start_##name && \
	 (const char *)(frame) < __stop_##name)

static void *
victim_main(void *arg)
{
	struct timespec none = { 0, 0 };
	struct victim *v = arg;

	pthread_sigmask(SIG_SETMASK, &v->mask, NULL);
	/* gcc 12's thread sanitizer loses a signal that meets a thread in its
	   first blocking call. */
	nanosleep(&none, NULL);
	atomic_store(&v->tid, own_tid());
	v->fn(v);
	return NULL;
}

/* Like this one: v->mask may be set before. */
static inline void
victim_start(struct victim *v, void (*fn)(struct victim *v))
{
	v->fn = fn;
	ck_assert_int_eq(pipe(v->fd), 0);
	ck_assert_int_eq(pthread_create(&v->thread, NULL, victim_main, v), 0);
	UNTIL(atomic_load(&v->tid) != 0);
}

static inline void
victim_tell(struct victim *v)
{
	atomic_store(&v->done, true);
	ck_assert_int_eq(write(v->fd[1], "xx", 2), 2);
}

static inline void
victim_join(struct victim *v)
{
	ck_assert_int_eq(pthread_join(v->thread, NULL), 0);
	close(v->fd[0]);
	close(v->fd[1]);
	ck_assert(!v->bad);
}

static inline void
victim_end(struct victim *v)
{
	victim_tell(v);
	victim_join(v);
}

/* ---- what they do until they are told ---- */

static void MAYBE_UNUSED
victim_reads(struct victim *v)
{
	char c;

	if (read(v->fd[0], &c, 1) != 1)
		v->bad = true;
}

static void MAYBE_UNUSED
victim_polls(struct victim *v)
{
	struct pollfd p = { .fd = v->fd[0], .events = POLLIN };

	while (poll(&p, 1, -1) != 1)
		;
}

/* A little work, and a nap. */
static void MAYBE_UNUSED
victim_naps(struct victim *v)
{
	struct timespec ts = { 0, 1000000 };

	while (!atomic_load(&v->done)) {
		nanosleep(&ts, NULL);
		atomic_fetch_add(&v->turns, 1);
	}
}

static void MAYBE_UNUSED
victim_spins(struct victim *v)
{
	while (!atomic_load(&v->done))
		atomic_fetch_add(&v->turns, 1);
}

/* In the child, which shares our memory: bare calls only. */
static int MAYBE_UNUSED
victim_child(void *arg)
{
	struct victim *v = arg;
	char c;

	syscall(SYS_read, v->fd[0], &c, 1);
	syscall(SYS_exit, 0);
	return 0;
}

/* As vfork(2) does it: the thread is in disk sleep while its child lives.  Not
   vfork itself, which the thread sanitizer takes for fork. */
static void MAYBE_UNUSED
victim_vforks(struct victim *v)
{
	char *stack = v->stack;
	int pid = clone(victim_child, stack + (64 << 10),
			CLONE_VM | CLONE_VFORK | SIGCHLD, v);

	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		v->bad = true;
}

static inline void
victim_start_vfork(struct victim *v)
{
	v->stack = mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(v->stack != MAP_FAILED);
	victim_start(v, victim_vforks);
}

#endif
