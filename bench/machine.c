/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine under the benchmarks: clock, cpus, futexes, sleeping threads.
 *
 * A latency of a wake-up only means something when the thread to be woken
 * does sleep, and when it is known on which cpu; both are seen to here.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

/* Numbers that libc's headers may be too old for. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#define OF_A_THREAD 00000200 /* PIDFD_THREAD, which is O_EXCL */

uint64_t
bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int
bench_cpus(int cpu[2])
{
	static int found[2], n;
	cpu_set_t set;
	int i;

	/* Looked for once, because bench_pin narrows what may be used. */
	if (n == 0) {
		if (sched_getaffinity(0, sizeof(set), &set) != 0)
			bench_must_sys(errno, "sched_getaffinity");
		for (i = 0; i < CPU_SETSIZE && n < 2; i++) {
			if (CPU_ISSET(i, &set))
				found[n++] = i;
		}
		if (n == 1)
			found[1] = found[0];
	}
	cpu[0] = found[0];
	cpu[1] = found[1];
	return n;
}

void
bench_pin(int cpu, int or_cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CPU_SET(or_cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		bench_must_sys(errno, "sched_setaffinity");
}

int
bench_tid(void)
{
	return (int)syscall(SYS_gettid);
}

void
bench_until_asleep(int tid)
{
	char path[64], text[512];
	const char *at;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	for (;;) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			bench_must_sys(errno, path);
		got = read(fd, text, sizeof(text) - 1);
		close(fd);
		if (got <= 0)
			bench_must_sys(EIO, path);
		text[got] = '\0';
		/* The name before it may hold anything, brackets too. */
		at = strrchr(text, ')');
		if (at && at[1] == ' ' && at[2] == 'S')
			return;
		sched_yield();
	}
}

int
bench_pidfd(int tid)
{
	return (int)syscall(SYS_pidfd_open, tid, OF_A_THREAD);
}

void
bench_futex_wait(uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void
bench_futex_wake(uint32_t *word, int n)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

void
bench_wait_until(uint32_t *word, uint32_t value)
{
	uint32_t seen;

	while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != value)
		bench_futex_wait(word, seen);
}

pthread_t
bench_thread(void *(*fn)(void *), void *arg, size_t stack)
{
	pthread_attr_t attr;
	pthread_t t;

	bench_must_sys(pthread_attr_init(&attr), "pthread_attr_init");
	if (stack)
		bench_must_sys(pthread_attr_setstacksize(&attr, stack),
			       "pthread_attr_setstacksize");
	bench_must_sys(pthread_create(&t, &attr, fn, arg), "pthread_create");
	pthread_attr_destroy(&attr);
	return t;
}

void *
bench_array(size_t n, size_t size)
{
	/* Huge pages or none: both sides of a comparison must have the
	   same, and what begins at one has it. */
	const size_t huge = 2u << 20;
	void *p = NULL;

	bench_must_sys(posix_memalign(&p, huge, n * size), "posix_memalign");
	memset(p, 0, n * size);
	return p;
}

void
bench_sleep(double seconds)
{
	struct timespec ts;

	ts.tv_sec = (time_t)seconds;
	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
		;
}

unsigned
bench_proc_entries(const char *folder)
{
	char path[64];
	unsigned n = 0;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/self/%s", folder);
	d = opendir(path);
	if (!d)
		bench_must_sys(errno, path);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}
