/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests share.  See support.h.
 */
#define _GNU_SOURCE 1
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

double
t_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static struct timespec
to_timespec(double seconds)
{
	struct timespec ts;

	ts.tv_sec = (time_t)floor(seconds);
	ts.tv_nsec = (long)((seconds - floor(seconds)) * 1e9);
	return ts;
}

void
t_sleep(double seconds)
{
	struct timespec ts = to_timespec(t_now() + seconds);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts,
			       NULL) == EINTR)
		;
}

bool
t_until(bool (*cond)(void *arg), void *arg, double limit)
{
	double end = t_now() + limit;

	for (;;) {
		if (cond(arg))
			return true;
		if (t_now() >= end)
			return false;
		t_sleep(0.001);
	}
}

/* Entries of a folder of /proc, without "." and "..". */
static int
count_entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int n = 0;

	if (!d) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		abort();
	}
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

int
t_count_fds(void)
{
	return count_entries("/proc/self/fd") - 1; /* our own DIR */
}

#ifdef __SANITIZE_THREAD__
/*
 * A socket that was closed while a child that is about to exec has it, too, stays
 * in the set of epoll.  When it says something, libev takes it out by its number,
 * which another thread may have got anew by then; that is refused, and libev makes
 * its set anew.  To the thread sanitizer it is a use of the new one.
 */
const char *
__tsan_default_suppressions(void);
const char *
__tsan_default_suppressions(void)
{
	return "race_top:epoll_ctl\n";
}

static void *
tell_tid(void *arg)
{
	*(int *)arg = (int)gettid();
	return NULL;
}

/*
 * The thread sanitizer starts a thread of its own together with the first
 * thread of a process.  Let that be over before anybody counts.
 */
static void
wake_sanitizer(void)
{
	static pid_t done_in;
	pthread_t t;
	int tid;

	if (done_in == getpid())
		return;
	done_in = getpid();
	if (pthread_create(&t, NULL, tell_tid, &tid))
		abort();
	pthread_join(t, NULL);
	t_settle_gone(tid);
}
#else
static void
wake_sanitizer(void)
{
}
#endif

int
t_count_threads(void)
{
	wake_sanitizer();
	return count_entries("/proc/self/task");
}

struct settling {
	int (*count)(void);
	int want, got;
};

static bool
has_settled(void *arg)
{
	struct settling *s = arg;

	s->got = s->count();
	return s->got == s->want;
}

static int
settle(int (*count)(void), int n)
{
	struct settling s = { count, n, 0 };

	t_until(has_settled, &s, T_LIMIT);
	return s.got;
}

int
t_settle_threads(int n)
{
	return settle(t_count_threads, n);
}

int
t_settle_fds(int n)
{
	return settle(t_count_fds, n);
}

/* ---- do other threads rest? ---- */

#define RESTS_IN_TEST (-2)

/* A line of a file of that thread; "" when there is none. */
static void
task_file(int tid, const char *name, const char *key, char *buf, size_t n)
{
	char path[64], line[256];
	FILE *f;

	buf[0] = '\0';
	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	f = fopen(path, "r");
	if (f == NULL)
		return;
	while (buf[0] == '\0' && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, key, strlen(key)) == 0)
			snprintf(buf, n, "%s", line + strlen(key));
	fclose(f);
}

/* A minute and more is no nap.  The thread may be gone, and its stack. */
static bool
is_long(unsigned long at)
{
	struct timespec ts = { 0 };
	struct iovec here = { &ts, sizeof(ts) },
		     there = { (void *)at, sizeof(ts) };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) ==
		       sizeof(ts) &&
	       ts.tv_sec >= 60;
}

/* How often it has gone to sleep, if it rests now; else -1. */
static long
rests(int tid)
{
	unsigned long arg[3] = { 0 };
	char line[256];
	long call = -1;

	task_file(tid, "syscall", "", line, sizeof(line));
	if (sscanf(line, "%ld %lx %lx %lx", &call, &arg[0], &arg[1], &arg[2]) <
	    4)
		return -1;
	if (call == SYS_clock_nanosleep) {
		if (arg[1] == TIMER_ABSTIME)
			return RESTS_IN_TEST;
		/* The thread sanitizer has a thread that naps. */
		if (!is_long(arg[2]) && !t_under_tsan())
			return -1;
	}
	task_file(tid, "status", "State:", line, sizeof(line));
	if (line[0] == '\0' || strchr(line, 'R') != NULL)
		return -1;
	task_file(tid, "status", "voluntary_ctxt_switches:", line,
		  sizeof(line));
	return atol(line);
}

#define MAX_TASKS 512

struct quiet {
	int n, tid[MAX_TASKS];
	long sleeps[MAX_TASKS];
	bool all;
};

static void
quiet_look(struct quiet *q)
{
	DIR *d = opendir("/proc/self/task");
	int own = (int)syscall(SYS_gettid);
	struct dirent *e;

	q->n = 0;
	q->all = true;
	while (d != NULL && q->all && q->n < MAX_TASKS && (e = readdir(d))) {
		q->tid[q->n] = atoi(e->d_name);
		if (e->d_name[0] == '.' || q->tid[q->n] == own)
			continue;
		q->sleeps[q->n] = rests(q->tid[q->n]);
		q->all = q->sleeps[q->n++] != -1;
	}
	if (d != NULL)
		closedir(d);
}

void
t_until_quiet(void)
{
	static struct quiet a, b;
	double start = t_now();

	for (;;) {
		quiet_look(&a);
		if (a.all && t_now() > start + 0.5)
			return;
		quiet_look(&b);
		if (a.all && b.all && a.n == b.n &&
		    memcmp(a.tid, b.tid, sizeof(a.tid[0]) * (size_t)a.n) == 0 &&
		    memcmp(a.sleeps, b.sleeps,
			   sizeof(a.sleeps[0]) * (size_t)a.n) == 0)
			return;
		if (t_now() > start + T_LIMIT)
			ck_abort_msg("the other threads never rest");
		t_sleep(0.0002);
	}
}

static bool
is_gone(void *arg)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/self/task/%d", *(int *)arg);
	return access(path, F_OK) != 0;
}

bool
t_settle_gone(int tid)
{
	return t_until(is_gone, &tid, T_LIMIT);
}

void
gate_init(struct t_gate *g)
{
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->moved, NULL);
	g->steps = 0;
}

void
gate_step(struct t_gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->steps++;
	pthread_cond_broadcast(&g->moved);
	pthread_mutex_unlock(&g->lock);
}

bool
gate_await(struct t_gate *g, unsigned n)
{
	struct timespec ts;
	bool there;
	int cancel;

	/* A cancelled waiter would keep the lock and hang everybody. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	/* On the wall clock: the sanitizers of older compilers do not know
	   pthread_cond_clockwait, and it is a limit only. */
	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += (time_t)T_LIMIT;
	pthread_mutex_lock(&g->lock);
	while (g->steps < n)
		if (pthread_cond_timedwait(&g->moved, &g->lock, &ts))
			break;
	there = g->steps >= n;
	pthread_mutex_unlock(&g->lock);
	pthread_setcancelstate(cancel, NULL);
	return there;
}

unsigned
gate_steps(struct t_gate *g)
{
	unsigned n;

	pthread_mutex_lock(&g->lock);
	n = g->steps;
	pthread_mutex_unlock(&g->lock);
	return n;
}

void
crowd_begin(struct t_crowd *k, size_t n, void *(*fn)(void *arg), void *args,
	    size_t size)
{
	ck_assert_uint_le(n, T_CROWD);
	for (k->n = 0; k->n < n; k->n++)
		ck_assert_int_eq(pthread_create(&k->thread[k->n], NULL, fn,
						size == 0 ? args :
						(char *)args + k->n * size),
				 0);
}

size_t
crowd_end(struct t_crowd *k)
{
	size_t i, failed = 0;
	void *result;

	for (i = 0; i < k->n; i++) {
		ck_assert_int_eq(pthread_join(k->thread[i], &result), 0);
		failed += result != NULL;
	}
	k->n = 0;
	return failed;
}

void
t_own_name(char name[16])
{
	ck_assert_int_eq(pthread_getname_np(pthread_self(), name, 16), 0);
}

bool
t_under_valgrind(void)
{
	/* valgrind preloads itself into what it runs. */
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

bool
t_under_qemu(void)
{
	const char *tool = getenv("EVC_TOOL");

	return tool != NULL && strcmp(tool, "qemu") == 0;
}

bool
t_under_tsan(void)
{
#ifdef __SANITIZE_THREAD__
	return true;
#else
	return false;
#endif
}

bool
t_under_asan(void)
{
#ifdef __SANITIZE_ADDRESS__
	return true;
#else
	return false;
#endif
}

int
t_many(int n)
{
	bool slow = t_under_asan() || t_under_tsan();

	return slow && getenv("EVC_WHOLE") == NULL ? n / 4 : n;
}

void
t_say_skip(const char *test, const char *reason)
{
	printf("SKIP %s: %s\n", test, reason);
	fflush(stdout);
}

/*
 * check takes the limit of a test from the environment when its TCase is
 * made, which is before run_suite is called: so it is set before main.  Its
 * own default of 4 s is too short for a loaded machine.
 */
__attribute__((constructor)) static void
set_limit(void)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", T_TEST_LIMIT);
	setenv("CK_DEFAULT_TIMEOUT", text, 0);
}

/* Not for check, to which it would be the name of a case. */
static const char *only_test;

__attribute__((constructor)) static void
take_only_test(void)
{
	const char *name = getenv("CK_RUN_CASE");

	only_test = name != NULL ? strdup(name) : NULL;
	unsetenv("CK_RUN_CASE");
}

bool
t_is_wanted(const TTest *test)
{
	const char *list = getenv("EVC_TEST_NOT"), *at = list;
	size_t n = strlen(test->name);

	/* A list of names with spaces between them. */
	for (; at != NULL && (at = strstr(at, test->name)) != NULL; at += n)
		if ((at == list || at[-1] == ' ') && at[n] == ' ')
			return false;
	return only_test == NULL || strcmp(only_test, test->name) == 0;
}

int
run_suite(Suite *s)
{
	SRunner *sr = srunner_create(s);
	int failed;

	/* Without processes check keeps no limits: a hang must end here. */
	if (srunner_fork_status(sr) == CK_NOFORK)
		alarm(T_SUITE_LIMIT);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	if (only_test != NULL && srunner_ntests_run(sr) == 0) {
		printf("no test %s was run\n", only_test);
		failed = 1;
	}
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int
t_run(const char *name, void (*set_up)(void), void (*tear_down)(void),
      const struct t_test *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	size_t i;

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (i = 0; i < n; i++)
		tcase_add_loop_test(tcase, tests[i].test, tests[i].from,
				    tests[i].to);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}

int
api_run(const char *name, void (*set_up)(void), void (*tear_down)(void),
	const TTest *const *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tcase;
	size_t i;

	for (i = 0; i < n; i++) {
		tcase = tcase_create(tests[i]->name);
		tcase_add_checked_fixture(tcase, set_up, tear_down);
		tcase_add_test(tcase, tests[i]);
		suite_add_tcase(suite, tcase);
	}
	return run_suite(suite);
}
