/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel says of a thread: each state and wait channel that can be
 * made on purpose, and less and less of /proc.
 */
#include "../support/seam.h"
#include "../support/victim_util.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/proc.h"

/* Read until it is in the state, in one of two calls, and waits in a function
   of the kernel that is called so: a thread is said to sleep before it does. */
static struct evc__proc
await_call(const struct victim *v, char state, const char *call,
	   const char *or_call, const char *wchan)
{
	struct evc__proc p;

	UNTIL(evc__proc_read(v->tid, &p) && p.state == state &&
	      (strcmp(p.syscall, call) == 0 ||
	       strcmp(p.syscall, or_call) == 0) &&
	      strstr(p.wchan, wchan) != NULL);
	ck_assert(p.readable);
	return p;
}

START_TEST(a_read_of_a_pipe)
{
	struct victim v = { 0 };
	struct evc__proc p;

	victim_start(&v, victim_reads);
	p = await_call(&v, 'S', "read", "read", "pipe");
	ck_assert_str_eq(evc__proc_state(p.state), "sleeping");
	victim_end(&v);
}
END_TEST

START_TEST(a_poll)
{
	struct victim v = { 0 };

	victim_start(&v, victim_polls);
	await_call(&v, 'S', "poll", "ppoll", "poll");
	victim_end(&v);
}
END_TEST

static void
sleeps(struct victim *v)
{
	struct timespec ts = { 0, 200000000 };

	while (!atomic_load(&v->done))
		nanosleep(&ts, NULL);
}

START_TEST(a_nanosleep)
{
	struct victim v = { 0 };

	victim_start(&v, sleeps);
	await_call(&v, 'S', "clock_nanosleep", "nanosleep", "nanosleep");
	victim_end(&v);
}
END_TEST

static atomic_int word;

static void
waits(struct victim *v)
{
	while (!atomic_load(&v->done))
		syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

START_TEST(a_futex)
{
	struct victim v = { 0 };

	atomic_store(&word, 0);
	victim_start(&v, waits);
	await_call(&v, 'S', "futex", "futex", "futex");
	atomic_store(&v.done, true);
	atomic_store(&word, 1);
	syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
	victim_end(&v);
}
END_TEST

START_TEST(a_thread_that_runs)
{
	struct victim v = { 0 };
	struct evc__proc p;

	if (t_under_valgrind())
		T_SKIP("one thread at a time: it sleeps while we look");
	victim_start(&v, victim_spins);
	UNTIL(evc__proc_read(v.tid, &p) && p.state == 'R');
	ck_assert_str_eq(p.syscall, "");
	ck_assert_str_eq(p.wchan, "");
	ck_assert_str_eq(evc__proc_state('R'), "running");
	victim_end(&v);
}
END_TEST

START_TEST(disk_sleep)
{
	struct victim v = { 0 };
	struct evc__proc p;

	if (t_under_valgrind())
		T_SKIP("to it, vfork is a fork");
	victim_start_vfork(&v);
	p = await_call(&v, 'D', "clone", "vfork", "");
	ck_assert_str_eq(evc__proc_state(p.state), "disk sleep");
	victim_end(&v);
}
END_TEST

static void
tees(struct victim *v)
{
	int other[2];

	if (pipe(other) != 0 || tee(v->fd[0], other[1], 1, 0) != 1)
		v->bad = true;
	close(other[0]);
	close(other[1]);
}

START_TEST(a_call_without_a_name)
{
	struct victim v = { 0 };
	char name[32];

	snprintf(name, sizeof(name), "syscall %d", SYS_tee);
	victim_start(&v, tees);
	await_call(&v, 'S', name, name, "");
	victim_end(&v);
}
END_TEST

START_TEST(blocked_and_pending_signals)
{
	const uint64_t one = UINT64_C(1) << (SIGUSR1 - 1),
		       two = UINT64_C(1) << (SIGUSR2 - 1);
	struct victim v = { 0 };
	struct timespec none = { 0, 0 };
	struct evc__proc p;
	sigset_t set;

	sigemptyset(&v.mask);
	sigaddset(&v.mask, SIGUSR1);
	victim_start(&v, victim_reads);
	p = await_call(&v, 'S', "read", "read", "pipe");
	ck_assert(p.blocked & one);
	ck_assert(!(p.blocked & two));
	ck_assert(!(p.pending & one));
	ck_assert_int_eq(pthread_kill(v.thread, SIGUSR1), 0);
	UNTIL(evc__proc_read(v.tid, &p) && (p.pending & one));
	victim_end(&v);
	/* It went with its thread. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	ck_assert_int_eq(sigtimedwait(&set, NULL, &none), -1);
}
END_TEST

static bool
is_empty(const struct evc__proc *p)
{
	return !p->readable && p->state == 0 && p->blocked == 0 &&
	       p->pending == 0 && p->wchan[0] == '\0' && p->syscall[0] == '\0';
}

START_TEST(a_thread_that_is_gone)
{
	struct victim v = { 0 };
	struct evc__proc p;

	victim_start(&v, victim_reads);
	victim_end(&v);
	ck_assert(t_settle_gone(v.tid));
	memset(&p, 'x', sizeof(p));
	ck_assert(!evc__proc_read(v.tid, &p));
	ck_assert(is_empty(&p));
}
END_TEST

START_TEST(without_proc_nothing_is_known)
{
	struct evc__proc p;
	int fds = t_count_fds();

	seam_fail_all("open_read", "evc__proc_file", 1, ENOENT);
	memset(&p, 'x', sizeof(p));
	ck_assert(!evc__proc_read(own_tid(), &p));
	ck_assert(is_empty(&p));
	seam_reset();
	seam_fail_all("fd_read", "evc__proc_file", 1, EACCES);
	memset(&p, 'x', sizeof(p));
	ck_assert(!evc__proc_read(own_tid(), &p));
	ck_assert(is_empty(&p));
	seam_reset();
	ck_assert(evc__proc_read(own_tid(), &p));
	ck_assert_int_eq(t_count_fds(), fds);
}
END_TEST

/* It may be that a thread's files are there and must not be read. */
START_TEST(what_must_not_be_read_stays_empty)
{
	struct victim v = { 0 };
	struct evc__proc p;

	victim_start(&v, victim_reads);
	await_call(&v, 'S', "read", "read", "pipe");
	seam_fail("open_read", "evc__proc_file", 3, EPERM);
	ck_assert(evc__proc_read(v.tid, &p));
	ck_assert_int_eq(p.state, 'S');
	HAS(p.wchan, "pipe");
	ck_assert_str_eq(p.syscall, "");
	seam_reset();
	seam_fail("open_read", "evc__proc_file", 2, EPERM);
	ck_assert(evc__proc_read(v.tid, &p));
	ck_assert_int_eq(p.state, 'S');
	ck_assert_str_eq(p.wchan, "");
	ck_assert_str_eq(p.syscall, "read");
	seam_reset();
	victim_end(&v);
}
END_TEST

START_TEST(states_have_names)
{
	ck_assert_str_eq(evc__proc_state('\0'), "");
	ck_assert_str_eq(evc__proc_state('T'), "stopped");
	ck_assert_str_eq(evc__proc_state('Z'), "dead");
	ck_assert_str_eq(evc__proc_state('\1'), "?");
}
END_TEST

/* ---- files ---- */

static const char *
name_of(pid_t pid)
{
	static char path[64];

	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	return path;
}

START_TEST(this_program_and_its_process)
{
	char path[PATH_MAX], want[PATH_MAX];
	uint64_t start = 0, again = 0;
	pid_t parent = 0, child;
	ssize_t n = readlink("/proc/self/exe", want, sizeof(want) - 1);

	ck_assert_int_gt(n, 0);
	want[n] = '\0';
	ck_assert(evc__proc_program(path, sizeof path));
	ck_assert_str_eq(path, want);
	ck_assert(evc__proc_program(path, 5));
	ck_assert_uint_eq(strlen(path), 4);
	ck_assert(evc__proc_process(0, &parent, &start));
	ck_assert_int_eq(parent, getppid());
	ck_assert_uint_ne(start, 0);
	ck_assert(evc__proc_process(getpid(), &parent, &again));
	ck_assert_uint_eq(again, start);
	child = fork();
	if (child == 0) {
		/* Such a name must not be taken for numbers. */
		prctl(PR_SET_NAME, "a) S 1 2 (3)");
		for (;;)
			pause();
	}
	ck_assert_int_gt(child, 0);
	UNTIL(evc__proc_file(name_of(child), path, sizeof path) > 0 &&
	      strcmp(path, "a) S 1 2 (3)\n") == 0);
	ck_assert(evc__proc_process(child, &parent, &again));
	ck_assert_int_eq(parent, getpid());
	ck_assert_uint_ge(again, start);
	OK(kill(child, SIGKILL));
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert(!evc__proc_process(child, &parent, &again));
}
END_TEST

START_TEST(this_start_of_the_machine)
{
	char boot[64];

	evc__proc_boot_id(boot, sizeof boot);
	ck_assert_uint_eq(strlen(boot), 36);
	ck_assert_uint_ne(evc__proc_pid_namespace(), 0);
	seam_fail_all("open_read", "evc__proc_file", 1, ENOENT);
	evc__proc_boot_id(boot, sizeof boot);
	ck_assert_str_eq(boot, "");
	seam_reset();
}
END_TEST

START_TEST(a_file_is_cut_at_the_end_of_the_room)
{
	static const char path[] = "/proc/self/status";
	char whole[512], part[8];
	size_t n = evc__proc_file(path, whole, sizeof whole);

	ck_assert_uint_eq(n, sizeof(whole) - 1);
	ck_assert_uint_eq(strlen(whole), n);
	ck_assert_uint_eq(evc__proc_file(path, part, sizeof part), 7);
	ck_assert_uint_eq(strlen(part), 7);
	ck_assert_int_eq(memcmp(part, whole, 7), 0);
	ck_assert_uint_eq(evc__proc_file("/proc/no", part, sizeof part), 0);
	ck_assert_str_eq(part, "");
	seam_fail("fd_read", "evc__proc_file", 1, EINTR);
	ck_assert_uint_eq(evc__proc_file(path, part, sizeof part), 7);
	seam_reset();
}
END_TEST

API_MAIN("proc", a_read_of_a_pipe, a_poll, a_nanosleep, a_futex,
	 a_thread_that_runs, disk_sleep, a_call_without_a_name,
	 blocked_and_pending_signals, a_thread_that_is_gone,
	 without_proc_nothing_is_known, what_must_not_be_read_stays_empty,
	 states_have_names,
	 this_program_and_its_process, this_start_of_the_machine,
	 a_file_is_cut_at_the_end_of_the_room)
