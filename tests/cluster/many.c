/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many functions and many lives of workers: descriptors, threads and memory are
 * at the end what they were near the beginning.
 *
 * EVC_FUNCTIONS: how many (1,000,000); EVC_LIVES: how many (100).
 */
#include "../conformance/functions.h"

#include <malloc.h>

enum { BATCH = 10000, CROWD = 25 };

/* What may come and go: caches of the allocator for each thread. */
#define SLACK (2 << 20)

/* Bytes that the program has of the C library's allocator.  A sanitizer has one
   of its own, and looks for leaks itself. */
static size_t
memory(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static evc_status
fn_first_fails(evc_exec *x, void *arg)
{
	evc_exec_info i;

	(void)arg;
	if (evc_exec_get(x, &i) < 0)
		return EVC_INTERNAL;
	return i.attempt == 1 ? evc_exec_fail(x, EVC_ABORTED, "the first") : 0;
}

/* Of all kinds: with results, with inputs, dropped, failing, cancelled. */
static void
run_batch(int n)
{
	evc_schedule_opts again = { .retry = { .times = 1, .first = 1e-4 } };
	static evc_remote *r[BATCH];
	int i;

	ck_assert_int_le(n, BATCH);
	for (i = 0; i < n; i++)
		switch (i % 8) {
		case 0:
			r[i] = NULL;
			DO("count", "[sd]", "dropped", 1.0);
			break;
		case 1:
			r[i] = SCHEDULE("echo", "[s]", "some text that takes "
						       "a few bytes");
			break;
		case 2:
			r[i] = SCHEDULE("echo", "[[r]]", r[i - 1]);
			break;
		case 3:
			r[i] = i % 80 == 3 ?
				       SCHEDULE_WITH(&again, "first fails",
						     "[]") :
				       SCHEDULE("add", "[ii]", 0, i);
			break;
		default:
			r[i] = SCHEDULE("add", "[ii]", i, i);
			break;
		}
	for (i = 4; i < n; i += 400)
		(void)evc_remote_cancel(r[i]);
	OK(join());
	for (i = 0; i < n; i++) {
		if (i % 8 >= 4 && code_of(r[i]) == 0)
			IS(number_of(r[i]), 2 * i);
		evc_remote_free(r[i]);
	}
	r[0] = SCHEDULE("fail", "[is]", EVC_ABORTED, "now and then");
	IS(join(), EVC_ABORTED);
	IS(code_of(r[0]), EVC_ABORTED);
	evc_remote_free(r[0]);
}

START_TEST(a_million_functions_leave_nothing)
{
	int all = from_environment("EVC_FUNCTIONS", 1000000), done;
	int fds = 0, threads = 0;
	size_t bytes = 0;

	begin(_i, 4);
	for (done = 0; done < all; done += BATCH) {
		run_batch(all - done < BATCH ? all - done : BATCH);
		if (done > 0 && bytes != 0)
			continue;
		fds = t_count_fds();
		threads = t_count_threads();
		bytes = memory();
	}
	ck_assert_int_eq(t_count_fds(), fds);
	ck_assert_int_eq(t_count_threads(), threads);
	ck_assert_msg(memory() <= bytes + SLACK,
		      "%zu bytes, and %zu after %d functions", bytes, memory(),
		      all);
	ck_assert_uint_eq(numbers().n_queued + numbers().n_running, 0);
}
END_TEST

/* What they waited for still runs. */
START_TEST(cancelled_ones_leave_nothing_to_their_inputs)
{
	enum { ROUNDS = 50, EACH = 100 };
	evc_remote *held, *last, *r[EACH];
	static char args[5000];
	size_t bytes = 0;
	int i, k;

	memset(args, 'a', sizeof(args) - 1);
	begin(_i, 2);
	held = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	last = SCHEDULE("echo", "[[r]]", held);
	for (k = 0; k < ROUNDS; k++) {
		if (k == ROUNDS / 10)
			bytes = memory();
		for (i = 0; i < EACH; i++)
			r[i] = SCHEDULE("echo", "[[rrs]]", held, last, args);
		/* The oldest first, or the youngest. */
		for (i = 0; i < EACH; i++)
			OK(evc_remote_cancel(r[k % 2 ? i : EACH - 1 - i]));
		for (i = 0; i < EACH; i++) {
			IS(code_of(r[i]), EVC_CANCELLED);
			evc_remote_free(r[i]);
		}
	}
	ck_assert_msg(memory() <= bytes + SLACK,
		      "%zu bytes, and %zu after %d functions", bytes, memory(),
		      ROUNDS * EACH);
	/* One of those that stand among the others goes with its input. */
	r[0] = SCHEDULE("echo", "[[rr]]", held, last);
	r[1] = SCHEDULE("echo", "[[rr]]", held, last);
	r[2] = SCHEDULE("echo", "[[rr]]", held, last);
	OK(evc_remote_cancel(r[1]));
	let_go("g");
	OK(code_of(last));
	OK(code_of(r[0]));
	OK(code_of(r[2]));
	for (i = 0; i < 3; i++)
		evc_remote_free(r[i]);
	evc_remote_free(held);
	evc_remote_free(last);
	OK(join());
}
END_TEST

/* Kills all, once each has done something, and waits for those that come after
   them.  One that dies again and again is started later and later, which is why
   they are many. */
static void
next_generation(void)
{
	evc_cluster_worker_info w;
	evc_schedule_opts at = { .worker = w.name };
	pid_t pid[CROWD], now;
	unsigned i;

	for (i = 0; i < CROWD; i++) {
		pid[i] = pid_when_up(i);
		w = worker(i);
		IS(take_number(SCHEDULE_WITH(&at, "add", "[ii]", 2, 1)), 3);
	}
	OK(join());
	for (i = 0; i < CROWD; i++)
		OK(kill(pid[i], SIGKILL));
	for (i = 0; i < CROWD; i++)
		UNTIL((now = pid_of(i)) != 0 && now != pid[i]);
}

START_TEST(many_lives_leave_nothing)
{
	int lives = from_environment("EVC_LIVES", 100), done;
	int fds = 0, threads = 0;
	evc_per_worker *p = NULL;
	size_t bytes = 0;
	unsigned i;

	begin(_i, CROWD);
	OK(evc_per_worker_value(on.cl, "who", "who", NULL, &p));
	for (done = CROWD; done < lives || done == CROWD; done += CROWD) {
		next_generation();
		if (done == CROWD) {
			fds = t_count_fds();
			threads = t_count_threads();
			bytes = memory();
		}
	}
	for (i = 0; i < CROWD; i++)
		ck_assert_uint_eq(worker(i).lives, done / CROWD);
	ck_assert_int_eq(t_settle_fds(fds), fds);
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_msg(memory() <= bytes + SLACK / 4,
		      "%zu bytes, and %zu after %d lives", bytes, memory(),
		      done);
	evc_per_worker_free(p);
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "first fails", .fn = fn_first_fails },
};

__attribute__((constructor)) static void
limit(void)
{
	row_seconds = 180 + from_environment("EVC_FUNCTIONS", 1000000) / 5000 +
		      2 * from_environment("EVC_LIVES", 100);
}

CONFORMANCE_MAIN("many", functions,
		 ROW_ON(CALLS, a_million_functions_leave_nothing),
		 ROW(cancelled_ones_leave_nothing_to_their_inputs),
		 ROW_ON(DIES, many_lives_leave_nothing))
