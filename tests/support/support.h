/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests share: waiting on conditions with a limit, stepping threads,
 * counting descriptors and threads of this process, and a main() for a check
 * suite.  Knows nothing of evcoord, so that a bug there cannot hide here.
 *
 * A test waits for something to be true, never for time to pass: the limit is
 * only there to turn a hang into a failure, so it is far above what a loaded
 * machine needs.
 *
 * ck_assert_* belongs on the thread of the test alone.  Other threads store
 * what they saw, and the test looks at it after it has waited for them.
 */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <check.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Seconds that something may take before a test calls it a hang. */
#define T_LIMIT 20.0

/* A stack for which no machine has room; musl asks for nothing above a quarter
   of the numbers. */
#define T_HUGE_STACK \
	((SIZE_MAX >> (sizeof(size_t) > 4 ? 4 : 0)) & ~(size_t)0xffffff)

/* A small stack: the least that a thread may have on arm64. */
#define T_SMALL_STACK ((size_t)128 << 10)

/* Seconds, on the monotonic clock. */
double
t_now(void);

/* Sleep the whole time, also when a signal comes between. */
void
t_sleep(double seconds);

/*
 * Wait until cond(arg) is true, looking every millisecond.  Returns what cond
 * said last: false when limit seconds were not enough.
 */
bool
t_until(bool (*cond)(void *arg), void *arg, double limit);

/*
 * How many descriptors this process has open, how many threads it has.  The
 * descriptor used for counting is not counted.
 */
int
t_count_fds(void);
int
t_count_threads(void);

/*
 * Wait until this process has n threads (descriptors).  A joined thread is
 * seen in /proc for a moment longer, so what was joined is counted with these
 * and not at once.  Returns how many there are: n, or something else when
 * T_LIMIT was not enough.
 */
int
t_settle_threads(int n);
int
t_settle_fds(int n);

/*
 * Wait until no other thread of this process is on its way: each one sleeps in
 * a system call, and none has run between two looks at it.  So what the caller
 * has set going has been done, however slow the machine is.
 *
 * A thread inside t_sleep rests, for the test wrote its loop; one inside a
 * short nap of another kind does not.  A thread whose waits all last a
 * millisecond is never seen to rest twice: after half a second, one look is
 * enough.
 */
void
t_until_quiet(void);

/* Wait until that thread of this process is gone; false after T_LIMIT. */
bool
t_settle_gone(int tid);

/*
 * A gate: a number of steps that only grows, and threads that wait for it.
 * One gate can order several threads: "step" where something has happened,
 * "await n" where somebody needs n things to have happened.
 */
struct t_gate {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	unsigned steps;
};

#define GATE_INIT { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 }

/* For gates that do not live in static memory. */
void
gate_init(struct t_gate *g);

/* One more thing has happened. */
void
gate_step(struct t_gate *g);

/*
 * Wait until n things have happened.  Returns false when T_LIMIT was not
 * enough.  No cancellation point.
 */
bool
gate_await(struct t_gate *g, unsigned n);

/* How many things have happened so far. */
unsigned
gate_steps(struct t_gate *g);

/*
 * A crowd: at most T_CROWD threads that do the same.  Each thread calls fn with
 * an element of the array args, whose elements have that size; with size 0 all
 * threads call fn with args.  crowd_end joins the threads, and returns how many
 * of them have returned anything but NULL.
 */
enum { T_CROWD = 32 };

struct t_crowd {
	pthread_t thread[T_CROWD];
	size_t n;
};

void
crowd_begin(struct t_crowd *k, size_t n, void *(*fn)(void *arg), void *args,
	    size_t size);
size_t
crowd_end(struct t_crowd *k);

/* The name of the calling thread, as ps shows it. */
void
t_own_name(char name[16]);

/*
 * Are we running under valgrind, qemu, the thread sanitizer, the address
 * sanitizer?
 * For the few tests that do what such a tool cannot follow; they print why
 * they are skipped, by T_SKIP, and return.
 */
bool
t_under_valgrind(void);
bool
t_under_qemu(void);
bool
t_under_tsan(void);
bool
t_under_asan(void);

/*
 * How many, where what counts is that there are many: n, and a quarter of it under
 * those two sanitizers, where each is slower by much; all of it in make soak
 * (EVC_WHOLE).
 */
int
t_many(int n);

#define T_SKIP(reason) \
	do { \
		t_say_skip(__func__, (reason)); \
		return; \
	} while (0)
void
t_say_skip(const char *test, const char *reason);

/*
 * Run a suite and free it; the result is main's exit status.  Each test is a
 * process of its own unless CK_FORK=no says otherwise (valgrind and
 * debuggers want that).  A test may take T_TEST_LIMIT seconds unless its
 * TCase says otherwise; without processes the whole suite gets T_SUITE_LIMIT.
 */
#define T_TEST_LIMIT 120
#define T_SUITE_LIMIT 1800
int
run_suite(Suite *s);

/* CK_RUN_CASE=TEST: only that one is added, whatever its case is called.  Then a
   suite without it fails.  EVC_TEST_NOT="TEST TEST ": those are not. */
bool
t_is_wanted(const TTest *test);

#undef tcase_add_test
#define tcase_add_test(tc, test) tcase_add_loop_test((tc), (test), 0, 1)
#undef tcase_add_loop_test
#define tcase_add_loop_test(tc, test, from, to) \
	do { \
		if (t_is_wanted(test)) \
			_tcase_add_test((tc), (test), 0, 0, (from), (to)); \
	} while (0)

/* A test of a program, which runs once for each number from "from" to "to" - 1:
   the test finds the number in _i. */
struct t_test {
	const TTest *test;
	int from, to;
};

#define T_ONCE(test) \
	{ \
		(test), 0, 1 \
	}
#define T_TIMES(test, n) \
	{ \
		(test), 0, (int)(n) \
	}

/* Run those tests, each after set_up and before tear_down (NULL: none); the
   result is main's exit status. */
int
t_run(const char *name, void (*set_up)(void), void (*tear_down)(void),
      const struct t_test *tests, size_t n);

/* The main of a program of one suite; tests: T_ONCE(test), T_TIMES(test, n). */
#define T_MAIN(name, set_up, tear_down, ...) \
	int main(void) \
	{ \
		const struct t_test tests_[] = { __VA_ARGS__ }; \
		return t_run((name), (set_up), (tear_down), tests_, \
			     sizeof(tests_) / sizeof(tests_[0])); \
	}

/* The main of a program whose tests run once each, and stand there by name. */
int
api_run(const char *name, void (*set_up)(void), void (*tear_down)(void),
	const TTest *const *tests, size_t n);

#define API_MAIN_WITH(name, set_up, tear_down, ...) \
	int main(void) \
	{ \
		const TTest *const tests_[] = { __VA_ARGS__ }; \
		return api_run((name), (set_up), (tear_down), tests_, \
			       sizeof(tests_) / sizeof(tests_[0])); \
	}
#define API_MAIN(name, ...) API_MAIN_WITH(name, NULL, NULL, __VA_ARGS__)

/* For a program at whose end a coordinator lives on, as the one of the process's
   registry does.  Its helper may be a second one: a thread that has taken over
   from one that a loaded machine has held up.  The first one has ended, nobody
   has joined it yet, and the thread sanitizer would call that a leak. */
#define T_LIVES_ON \
	const char *__tsan_default_options(void); \
	const char *__tsan_default_options(void) \
	{ \
		return "report_thread_leaks=0"; \
	} \
	struct t_lives_on

#endif
