/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks by signal: of threads in each state, why there is none, and what its
 * frames are called.
 */
#include "../support/seam.h"
#include "../support/stack_util.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include "base/self.h"

/* ---- the signal ---- */

static void
nothing(int signo)
{
	(void)signo;
}

/* First of all: where all tests are one process it stays installed. */
START_TEST(it_takes_no_signal_of_others)
{
	struct sigaction sa = { .sa_handler = nothing }, before;
	int n;

	ck_assert_int_eq(evc__stack_signal(), 0);
	ck_assert_int_eq(evc__stack_install(-1), EINVAL);
	ck_assert_int_eq(evc__stack_install(SIGKILL), EINVAL);
	ck_assert_int_eq(evc__stack_install(SIGSEGV), EINVAL);
	ck_assert_int_eq(evc__stack_install(SIGRTMIN - 1), EINVAL);
	ck_assert_int_eq(evc__stack_install(SIGRTMAX + 1), EINVAL);
	sigaction(SIGUSR1, &sa, &before);
	NEEDS_BACKTRACE();
	ck_assert_int_eq(evc__stack_install(SIGUSR1), EEXIST);
	ck_assert_int_eq(evc__stack_signal(), 0);
	sigaction(SIGUSR1, &before, NULL);
	/* The highest free one: one has a handler, the last is valgrind's. */
	sigaction(SIGRTMAX - 1, &sa, NULL);
	OK(evc__stack_install(0));
	n = evc__stack_signal();
	ck_assert_int_eq(n, SIGRTMAX - 2);
	OK(evc__stack_install(0));
	OK(evc__stack_install(n));
	ck_assert_int_eq(evc__stack_install(n - 1), EEXIST);
	ck_assert_int_eq(evc__stack_signal(), n);
	sigaction(n, NULL, &before);
	ck_assert(before.sa_flags & SA_RESTART);
}
END_TEST

START_TEST(our_own_threads_do_not_block_it)
{
	sigset_t old, set;

	install();
	evc__block_signals(&old);
	pthread_sigmask(SIG_SETMASK, &old, &set);
	ck_assert_int_eq(sigismember(&set, SIGUSR2), 1);
	ck_assert_int_eq(sigismember(&set, evc__stack_signal()), 0);
}
END_TEST

/* ---- whose ---- */

PLACE_OF(evc_reads);
PLACED(evc_reads) static void
reads(struct victim *v)
{
	victim_reads(v);
	atomic_fetch_add(&v->turns, 1);
}

START_TEST(of_a_thread_that_sleeps)
{
	struct victim v = { 0 };
	struct taken t;
	char name[256];
	unsigned i;

	if (t_under_tsan())
		T_SKIP(BY_TSAN);
	install();
	victim_start(&v, reads);
	t_sleep(0.01);
	t = take(v.tid, LONG);
	ck_assert_str_eq(t.why, "");
	ck_assert_uint_gt(t.n, 2);
	/* The handler is none of its frames, nor is this file's start. */
	ck_assert(STANDS_IN(&t, evc_reads));
	for (i = 0; i < t.n; i++) {
		evc__stack_name(t.frame[i], name, sizeof(name));
		ck_assert_msg(strstr(name, "+0x") != NULL, "%s", name);
		ck_assert_msg(strstr(name, "restore_rt") == NULL, "%s", name);
		if (IN_PLACE(evc_reads, t.frame[i])) {
			HAS(name, "stack+0x");
			break;
		}
	}
	/* The call was begun again: reads() looks. */
	ck_assert_uint_eq(atomic_load(&v.turns), 0);
	victim_end(&v);
}
END_TEST

START_TEST(of_a_thread_that_runs)
{
	struct victim v = { 0 };
	struct taken t;

	if (t_under_tsan())
		T_SKIP(BY_TSAN);
	if (t_under_valgrind())
		T_SKIP(BY_VALGRIND);
	install();
	victim_start(&v, spins);
	UNTIL(atomic_load(&v.turns) > 0);
	t = take(v.tid, LONG);
	ck_assert_str_eq(t.why, "");
	/* It stands there itself. */
	ck_assert(IN_PLACE(evc_spins, t.frame[0]));
	victim_end(&v);
}
END_TEST

START_TEST(no_more_frames_than_asked_for)
{
	struct victim v = { 0 };
	void *frame[2] = { NULL, NULL };
	const char *why;

	install();
	victim_start(&v, victim_naps);
	ck_assert_msg(evc__stack_take(v.tid, frame, 1, LONG, &why) == 1, "%s",
		      why);
	ck_assert(frame[0] != NULL);
	ck_assert(frame[1] == NULL);
	victim_end(&v);
}
END_TEST

PLACE_OF(evc_mine);
PLACED(evc_mine) static struct taken
mine(void)
{
	struct taken t;

	t.n = evc__stack_take(own_tid(), t.frame, EVC__STACK_MOST, LONG,
			      &t.why);
	return t;
}

START_TEST(of_the_calling_thread)
{
	struct taken t;

	NEEDS_BACKTRACE();
	t = mine();
	ck_assert_str_eq(t.why, "");
	ck_assert_uint_gt(t.n, 1);
	ck_assert(IN_PLACE(evc_mine, t.frame[0]));
	ck_assert(!IN_PLACE(evc_mine, t.frame[1]));
}
END_TEST

__attribute__((noinline)) static void
deep(struct victim *v, int n)
{
	if (n > 0)
		deep(v, n - 1);
	else
		victim_naps(v);
	atomic_fetch_add(&v->turns, 1);
}

static void
goes_deep(struct victim *v)
{
	deep(v, 200);
}

START_TEST(of_a_deep_one_the_innermost_frames)
{
	struct victim v = { 0 };
	struct taken t;

	install();
	victim_start(&v, goes_deep);
	UNTIL(atomic_load(&v.turns) > 0);
	t = take(v.tid, LONG);
	ck_assert_msg(t.n > 0, "%s", t.why);
	ck_assert_uint_le(t.n, EVC__STACK_MOST);
	victim_end(&v);
}
END_TEST

/* ---- why there is none ---- */

START_TEST(not_of_one_that_blocks_the_signal)
{
	struct victim v = { 0 };
	struct taken t;
	sigset_t pending;

	install();
	sigfillset(&v.mask);
	victim_start(&v, victim_reads);
	t = take(v.tid, LONG);
	ck_assert_uint_eq(t.n, 0);
	ck_assert_str_eq(t.why, "it blocks the signal");
	/* And it was not sent. */
	sigpending(&pending);
	ck_assert_int_eq(sigismember(&pending, evc__stack_signal()), 0);
	victim_end(&v);
}
END_TEST

START_TEST(not_of_one_in_disk_sleep)
{
	struct victim v = { 0 };
	struct taken t;
	char state[128];

	if (t_under_valgrind())
		T_SKIP("to it, vfork is a fork");
	install();
	victim_start_vfork(&v);
	UNTIL((task_line(v.tid, "State:", state, sizeof(state)),
	       strchr(state, 'D') != NULL));
	t = take(v.tid, LONG);
	ck_assert_uint_eq(t.n, 0);
	ck_assert_str_eq(t.why,
			 "it is in disk sleep, where no signal reaches it");
	victim_end(&v);
}
END_TEST

START_TEST(not_of_one_that_has_ended)
{
	struct victim v = { 0 };
	struct taken t;

	install();
	victim_start(&v, victim_reads);
	victim_end(&v);
	ck_assert(t_settle_gone(v.tid));
	t = take(v.tid, LONG);
	ck_assert_uint_eq(t.n, 0);
	ck_assert_str_eq(t.why, "it has ended");
}
END_TEST

static void
ends(struct victim *v)
{
	(void)v;
}

START_TEST(of_threads_that_end_meanwhile)
{
	unsigned i, n = 0, none = 0;

	install();
	for (i = 0; i < 300; i++) {
		struct victim v = { 0 };
		struct taken t;

		victim_start(&v, ends);
		/* One that ends with the question in its hand does not answer. */
		t = take(v.tid, SHORT);
		n += t.n > 0;
		none += t.n == 0;
		if (t.n == 0)
			ck_assert_str_ne(t.why, "");
		victim_join(&v);
	}
	ck_assert_uint_eq(n + none, 300);
}
END_TEST

START_TEST(without_proc_it_is_asked_all_the_same)
{
	struct victim v = { 0 }, b = { 0 };
	struct taken t;

	install();
	victim_start(&v, victim_naps);
	sigfillset(&b.mask);
	victim_start(&b, victim_reads);
	seam_fail_all("open_read", "evc__proc_file", 1, EMFILE);
	t = take(v.tid, LONG);
	ck_assert_str_eq(t.why, "");
	ck_assert_msg(t.n > 0, "%s", t.why);
	t = take(b.tid, SHORT);
	ck_assert_uint_eq(t.n, 0);
	ck_assert_str_eq(t.why, "it did not answer in time");
	seam_reset();
	victim_end(&b);
	victim_end(&v);
}
END_TEST

START_TEST(a_signal_that_cannot_be_sent)
{
	struct victim v = { 0 };
	struct taken t;

	install();
	victim_start(&v, victim_naps);
	seam_fail("tid_signal", "ask_thread", 1, EAGAIN);
	t = take(v.tid, LONG);
	ck_assert_uint_eq(t.n, 0);
	ck_assert_str_eq(t.why, "the signal could not be sent");
	t = take(v.tid, LONG);
	ck_assert_msg(t.n > 0, "%s", t.why);
	victim_end(&v);
}
END_TEST

/* ---- a thousand times, whatever it is in ---- */

static void
thousand(void (*fn)(struct victim *v))
{
	struct victim v = { 0 };
	struct taken t;
	unsigned i;

	install();
	victim_start(&v, fn);
	UNTIL(atomic_load(&v.turns) > 0);
	for (i = 0; i < 1000; i++) {
		/* In a page fault beside much other load it may be out of reach
		   for a while. */
		UNTIL((t = take(v.tid, LONG)).n > 0 ||
		      strstr(t.why, "disk sleep") == NULL);
		ck_assert_msg(t.n > 0, "%u: %s", i, t.why);
	}
	victim_end(&v);
}

static void
keeps_errno(struct victim *v)
{
	errno = 4711;
	while (!atomic_load(&v->done)) {
		v->bad |= errno != 4711;
		atomic_fetch_add(&v->turns, 1);
	}
}

START_TEST(a_thousand_and_errno_is_kept)
{
	if (t_under_tsan())
		T_SKIP(BY_TSAN);
	if (t_under_valgrind())
		T_SKIP(BY_VALGRIND);
	thousand(keeps_errno);
}
END_TEST

static void
allocates(struct victim *v)
{
	void *volatile p[16];
	unsigned i;

	while (!atomic_load(&v->done)) {
		for (i = 0; i < 16; i++)
			p[i] = malloc(24 << i);
		for (i = 0; i < 16; i++)
			free(p[i]);
		atomic_fetch_add(&v->turns, 1);
	}
}

START_TEST(a_thousand_inside_malloc)
{
	if (t_under_tsan())
		T_SKIP(BY_TSAN);
	if (t_under_valgrind())
		T_SKIP(BY_VALGRIND);
	thousand(allocates);
}
END_TEST

static void
opens(struct victim *v)
{
	void *lib;

	while (!atomic_load(&v->done)) {
		lib = dlopen("libresolv.so.2", RTLD_NOW);
		if (lib == NULL || dlclose(lib) != 0)
			v->bad = true;
		atomic_fetch_add(&v->turns, 1);
	}
}

START_TEST(a_thousand_inside_dlopen)
{
	if (t_under_tsan())
		T_SKIP(BY_TSAN);
	if (t_under_valgrind())
		T_SKIP(BY_VALGRIND);
	thousand(opens);
}
END_TEST

/* It waits in dlopen, whose lock it has: neither its stack nor the names of the
   frames may need that. */
static char fifo[64];

static void
hangs_in_dlopen(struct victim *v)
{
	atomic_store(&v->turns, 1);
	v->bad = dlopen(fifo, RTLD_NOW) != NULL;
}

START_TEST(of_one_that_hangs_in_dlopen)
{
	struct victim v = { 0 };
	struct taken t;
	char name[256];
	unsigned i;
	int fd;

	if (t_under_tsan())
		T_SKIP(BY_TSAN);
	install();
	snprintf(fifo, sizeof(fifo), "./stack-%d.fifo", (int)getpid());
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	victim_start(&v, hangs_in_dlopen);
	UNTIL(atomic_load(&v.turns) > 0);
	t_sleep(0.05);
	t = take(v.tid, LONG);
	for (i = 0; i < t.n; i++)
		evc__stack_name(t.frame[i], name, sizeof(name));
	/* It still hangs: until now nobody has written. */
	fd = open(fifo, O_WRONLY);
	ck_assert_int_ge(fd, 0);
	close(fd);
	victim_end(&v);
	unlink(fifo);
	ck_assert_str_eq(t.why, "");
	ck_assert_msg(t.n > 0, "%s", t.why);
}
END_TEST

/* ---- names ---- */

START_TEST(names_of_frames)
{
	char name[256], small[8];

	NEEDS_BACKTRACE();
	evc__stack_name((char *)(uintptr_t)&getpid + 1, name, sizeof(name));
	HAS(name, "getpid+0x1 (");
	HAS(name, "libc.so");
	evc__stack_name((void *)(uintptr_t)16, name, sizeof(name));
	ck_assert_str_eq(name, "0x10");
	evc__stack_name((char *)(uintptr_t)__start_evc_spins, name,
			sizeof(name));
	HAS(name, "stack+0x");
	memset(small, 'x', sizeof(small));
	evc__stack_name((char *)(uintptr_t)__start_evc_spins, small, 4);
	ck_assert_uint_eq(strlen(small), 3);
	ck_assert_int_eq(small[4], 'x');
}
END_TEST

START_TEST(a_module_that_goes_is_no_fault)
{
	char name[256];

	NEEDS_BACKTRACE();
	seam_fail_all("peek", NULL, 1, EFAULT);
	evc__stack_name((char *)(uintptr_t)&getpid + 1, name, sizeof(name));
	ck_assert_int_eq(strncmp(name, "0x", 2), 0);
	seam_reset();
	/* Half of it is there: the symbols are not. */
	seam_fail_all("peek", "peek_text", 1, EFAULT);
	evc__stack_name((char *)(uintptr_t)&getpid + 1, name, sizeof(name));
	HAS(name, "+0x");
	seam_reset();
}
END_TEST

API_MAIN("stack", it_takes_no_signal_of_others, our_own_threads_do_not_block_it,
	 of_a_thread_that_sleeps, of_a_thread_that_runs,
	 no_more_frames_than_asked_for, of_the_calling_thread,
	 of_a_deep_one_the_innermost_frames, not_of_one_that_blocks_the_signal,
	 not_of_one_in_disk_sleep, not_of_one_that_has_ended,
	 of_threads_that_end_meanwhile, without_proc_it_is_asked_all_the_same,
	 a_signal_that_cannot_be_sent, a_thousand_and_errno_is_kept,
	 a_thousand_inside_malloc, a_thousand_inside_dlopen,
	 of_one_that_hangs_in_dlopen, names_of_frames,
	 a_module_that_goes_is_no_fault)
