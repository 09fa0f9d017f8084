/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How soon the end of a registered thread is noticed, from its last look at
 * the clock until the join returned: by a pidfd, and without one.
 *
 * Goals here are times, not ratios, and a delay may come from the machine: the
 * threads run on any cpu, as a program's do, and the bare lines show how long
 * this machine takes to wake anybody at all.
 *
 * "Without" is an older kernel as seen from here: a seccomp filter lets
 * pidfd_open answer ENOSYS, for the whole of this process and for good.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

/* libc's headers may be too old for it. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define STACK (64 * 1024)

struct mortal {
	evc_coord *c;
	double least, spread; /* how long a thread lives, in seconds */
	uint32_t seed;
	double life;
	int tid;
	uint32_t here;        /* thread -> joiner: tid is there */
	uint32_t watched;     /* joiner -> thread: live, then end */
	uint64_t ended;       /* thread -> joiner, by its join */
};

static void *
live_and_end(void *arg)
{
	struct mortal *m = arg;

	m->tid = bench_tid();
	__atomic_store_n(&m->here, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&m->here, 1);
	bench_wait_until(&m->watched, 1);
	bench_sleep(m->life);
	m->ended = bench_now();
	return NULL;
}

/* Lives differ, or all ends would meet the back-off at the same place. */
static pthread_t
give_life(struct mortal *m)
{
	pthread_t t;

	m->seed = m->seed * 1664525u + 1013904223u;
	m->life = m->least + m->spread * (m->seed >> 8) / (1u << 24);
	m->here = m->watched = 0;
	t = bench_thread(live_and_end, m, STACK);
	bench_wait_until(&m->here, 1);
	return t;
}

/* Its end is looked out for: now it may come. */
static void
let_go(struct mortal *m)
{
	__atomic_store_n(&m->watched, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&m->watched, 1);
}

static double
sample_ours(void *arg)
{
	struct mortal *m = arg;
	pthread_t t = give_life(m);
	evc_status st;
	double took;

	bench_must(evc_register_thread(m->c, "bench", t, NULL, NULL),
		   "evc_register_thread");
	let_go(m);
	st = evc_join(m->c, NULL, NULL);
	took = (double)(bench_now() - m->ended) / 1e6;
	bench_must(st, "evc_join");
	bench_must(evc_clear_stop(m->c), "evc_clear_stop");
	return took;
}

static double
sample_pidfd(void *arg)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct mortal *m = arg;
	pthread_t t = give_life(m);
	int fd = bench_pidfd(m->tid), set = epoll_create1(EPOLL_CLOEXEC);
	double took;

	if (fd < 0 || set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev) != 0)
		bench_must_sys(errno, "a pidfd in an epoll set");
	let_go(m);
	while (epoll_wait(set, &ev, 1, -1) < 0 && errno == EINTR)
		;
	bench_must_sys(pthread_join(t, NULL), "pthread_join");
	took = (double)(bench_now() - m->ended) / 1e6;
	close(fd);
	close(set);
	return took;
}

static double
sample_join(void *arg)
{
	struct mortal *m = arg;
	pthread_t t = give_life(m);

	let_go(m);
	bench_must_sys(pthread_join(t, NULL), "pthread_join");
	return (double)(bench_now() - m->ended) / 1e6;
}

void
bench_notice(void)
{
	struct mortal m = { .least = 0.001, .spread = 0.002, .seed = 1 };
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &m, 0 },
		{ "raw/bare-pidfd-and-epoll", sample_pidfd, &m, 0 },
		{ "raw/bare-pthread_join", sample_join, &m, 0 },
	};
	struct bench_stats st;
	int fd = bench_pidfd(bench_tid());

	if (fd < 0) {
		bench_skip("notice-pidfd",
			   "no pidfd of a thread here (Linux before 6.9)");
		return;
	}
	close(fd);
	bench_must(evc_new(NULL, NULL, &m.c), "evc_new");
	bench_compare("notice-pidfd", "ms", sides, 3, 20, 30, &st);
	bench_goal_below("notice-pidfd", "p99", st.p99, "ms", 1);
	bench_must(evc_free(m.c), "evc_free");
}

/* From here on the kernel has no pidfds: false if that cannot be had. */
static bool
forbid_pidfds(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {
		.len = sizeof(code) / sizeof(code[0]), .filter = code
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		return false;
	return bench_pidfd(bench_tid()) < 0 && errno == ENOSYS;
}

void
bench_notice_polled(void)
{
	/* Long enough for the back-off to have reached its 25 ms: 1 + 2 + 4
	   + 8 + 16 are 31 ms. */
	struct mortal m = { .least = 0.060, .spread = 0.050, .seed = 1 };
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &m, 0 },
	};
	struct mortal brief = { .least = 0.001, .spread = 0.002, .seed = 1 };
	const struct bench_side limit[] = {
		{ "raw/bare-pthread_join", sample_join, &brief, 0 },
	};
	struct bench_stats st;

	if (!forbid_pidfds()) {
		bench_skip("notice-polled",
			   "no seccomp filter to be had, pidfds cannot be "
			   "forbidden");
		return;
	}
	bench_must(evc_new(NULL, NULL, &m.c), "evc_new");
	bench_compare("notice-polled", "ms", sides, 1, 10, 10, &st);
	/* Waits for nothing but the end: its length of life matters not. */
	bench_compare("notice-polled", "ms", limit, 1, 10, 10, NULL);
	bench_goal("notice-polled", "p50", st.p50, "ms", 15);
	bench_goal("notice-polled", "max", st.max, "ms", 35);
	bench_must(evc_free(m.c), "evc_free");
}
