/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large values to workers that are processes and back: of all sizes, to the last
 * byte; when a worker dies in the middle of one; when functions with them are
 * taken back; at the limit of a frame; and their memory is given back.
 */
#include "../support/processes_util.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define MIB (1u << 20)

/* ---- bytes that tell their places ---- */

static void
fill(unsigned char *p, size_t n, unsigned seed)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = (unsigned char)((i * 2654435761u >> 11) + seed);
}

static bool
is_filled(const unsigned char *p, size_t n, unsigned seed)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i] != (unsigned char)((i * 2654435761u >> 11) + seed))
			return false;
	return true;
}

/* ---- functions ---- */

/* [BYTES, SEED]: how many, if each is as it should be */
static evc_status
l_check(evc_exec *x, void *arg)
{
	const void *p;
	unsigned seed;
	size_t n;

	(void)arg;
	if (evc_exec_unpack(x, "[Bu]", &p, &n, &seed) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	if (!is_filled(p, n, seed))
		return evc_exec_fail(x, EVC_DATA_LOSS, "wrong bytes of %zu", n);
	return evc_exec_return(x, "U", (uint64_t)n);
}

/* [SIZE, SEED]: so many bytes */
static evc_status
l_make(evc_exec *x, void *arg)
{
	unsigned char *p;
	unsigned n, seed;
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[uu]", &n, &seed) < 0 ||
	    (p = malloc(n + 1)) == NULL)
		return EVC_INVALID_ARGUMENT;
	fill(p, n, seed);
	st = evc_exec_return(x, "B", p, (size_t)n);
	free(p);
	return st;
}

static const evc_function functions[] = {
	P_FUNCTIONS,
	{ .name = "check", .fn = l_check },
	{ .name = "make", .fn = l_make },
};

#define N_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

/* ---- calls ---- */

static evc_remote *
check(evc_cluster *cl, size_t n, unsigned seed)
{
	unsigned char *p = malloc(n + 1);
	evc_remote *r = NULL;

	ck_assert_ptr_nonnull(p);
	fill(p, n, seed);
	OK(evc_schedule_pack(cl, "check", NULL, &r, "[Bu]", p, n, seed));
	free(p);
	return r;
}

static evc_remote *
make(evc_cluster *cl, size_t n, unsigned seed)
{
	evc_remote *r = NULL;

	OK(evc_schedule_pack(cl, "make", NULL, &r, "[uu]", (unsigned)n, seed));
	return r;
}

static void
has_made(evc_remote *r, size_t n, unsigned seed)
{
	const unsigned char *p;
	evc_value v;
	size_t got;

	OK(evc_remote_fetch(r, 3 * T_LIMIT, &v));
	OK(evc_unpack(&v, "B", &p, &got));
	ck_assert_uint_eq(got, n);
	ck_assert(is_filled(p, n, seed));
	evc_remote_free(r);
}

/* ---- of all sizes ---- */

static const size_t sizes[] = {
	0, 1, 63, 64 << 10, MIB, 4 * MIB, 64 * MIB,
};

#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

START_TEST(values_of_all_sizes)
{
	const evc_cluster_config config = { .max_frame = 65 * MIB };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", &config);
	size_t n = sizes[_i];
	evc_remote *r;
	unsigned k;

	if (n > 4 * MIB)
		n = (size_t)t_many((int)n);
	for (k = 0; k < 2; k++) {
		ck_assert_uint_eq((size_t)number_of(check(cl, n, k)), n);
		has_made(make(cl, n, k), n, k);
		/* one that the worker has kept */
		r = make(cl, n, 7);
		OK(evc_remote_fetch(r, T_LIMIT, NULL));
		has_made(r, n, 7);
	}
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* Around the sizes where values begin to go in another way. */
START_TEST(large_and_small_ones_in_turns)
{
	enum { N = 96 };
	static const size_t edges[] = {
		0, 4095, 4096, (32 << 10) - 1, 32 << 10, (64 << 10) - 9,
		64 << 10, 200 << 10, 212992, 300 << 10, 3, MIB,
	};
	const size_t n_edges = sizeof(edges) / sizeof(edges[0]);
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://2", NULL);
	static evc_remote *to[N], *from[N];
	unsigned i;

	for (i = 0; i < N; i++) {
		to[i] = check(cl, edges[i * 5 % n_edges] + i % 3, i);
		from[i] = make(cl, edges[i * 7 % n_edges] + i % 3, i);
	}
	for (i = 0; i < N; i++) {
		ck_assert_uint_eq((size_t)number_of(to[i]),
				  edges[i * 5 % n_edges] + i % 3);
		has_made(from[i], edges[i * 7 % n_edges] + i % 3, i);
	}
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* What nobody waits for is dropped at its end, not before it was sent. */
START_TEST(nobody_wants_them)
{
	enum { N = 40 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://2", NULL);
	evc_cluster_info info;
	unsigned i;

	for (i = 0; i < N; i++) {
		evc_remote_free(check(cl, MIB + i, i));
		evc_remote_free(make(cl, MIB + i, i));
	}
	OK(evc_cluster_join(cl, 3 * T_LIMIT));
	OK(evc_cluster_get(cl, &info));
	ck_assert_uint_eq(info.n_done, 2 * N);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* ---- inputs ---- */

/* The result of one worker goes to another one, which does not have it. */
START_TEST(a_large_result_is_an_input)
{
	enum { N = 8 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://2", NULL);
	evc_schedule_opts on[2] = { { .worker = "worker 0" },
				    { .worker = "worker 1" } };
	evc_remote *made = NULL, *r[N];
	unsigned i;

	UNTIL(IS_UP(cl, 0) && IS_UP(cl, 1));
	OK(evc_schedule_pack(cl, "make", &on[0], &made, "[uu]", 2 * MIB, 5u));
	for (i = 0; i < N; i++)
		OK(evc_schedule_pack(cl, "check", &on[i % 2], &r[i], "[ru]",
				     made, 5u));
	for (i = 0; i < N; i++)
		ck_assert_int_eq(number_of(r[i]), 2 * MIB);
	has_made(made, 2 * MIB, 5);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* ---- a worker dies in the middle ---- */

/* Does a socket of this process hold many bytes, that came in (FIONREAD), or
   that the other end has not read (SIOCOUTQ)? */
static bool
some_are_under_way(unsigned long request)
{
	int fd, n;

	for (fd = 3; fd < 256; fd++)
		if (ioctl(fd, request, &n) == 0 && n >= 64 << 10)
			return true;
	return false;
}

START_TEST(a_worker_dies_in_the_middle_of_an_argument)
{
	const evc_cluster_config config = { .lease = 60 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", &config);
	evc_remote *r;
	pid_t pid;

	UNTIL(IS_UP(cl, 0));
	pid = pid_of(cl, 0);
	OK(kill(pid, SIGSTOP));
	r = check(cl, 4 * MIB, 3);
	UNTIL(some_are_under_way(SIOCOUTQ));
	OK(kill(pid, SIGKILL));
	ck_assert_int_eq(number_of(r), 4 * MIB);
	ck_assert_uint_eq(worker_info(cl, 0).lives, 2);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* The loop is ours: while it does not run nobody reads. */
START_TEST(a_worker_dies_in_the_middle_of_a_result)
{
	struct before b = begin_test();
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = coord_of(loop);
	evc_cluster *cl = open_with(c, "processes://1", NULL);
	evc_remote_info info;
	evc_remote *r;

	while (!IS_UP(cl, 0))
		ev_run(loop, EVRUN_ONCE);
	r = make(cl, 4 * MIB, 9);
	do {
		ev_run(loop, EVRUN_ONCE);
		OK(evc_remote_get(r, &info));
	} while (info.state != EVC_REMOTE_RUNNING);
	UNTIL(some_are_under_way(FIONREAD));
	OK(kill(pid_of(cl, 0), SIGKILL));
	do {
		ev_run(loop, EVRUN_ONCE);
		OK(evc_remote_get(r, &info));
	} while (info.state != EVC_REMOTE_DONE);
	ck_assert_uint_eq(info.attempts, 2);
	has_made(r, 4 * MIB, 9);
	evc_cluster_close(cl);
	OK(evc_request_stop(c, 0, "done"));
	OK(evc_run(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
	census_end(&b.n);
}
END_TEST

/* ---- taken back ---- */

/* Functions behind a long one run elsewhere, though the long one's worker has
   not read them to the end: it could not. */
START_TEST(they_are_taken_back)
{
	enum { N = 12 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://2", NULL);
	evc_remote *wait, *r[N];
	evc_value v;
	unsigned i;

	for (i = 0; i < 400; i++)
		evc_remote_free(schedule_add(cl, (int)i, (int)i));
	OK(evc_cluster_join(cl, T_LIMIT));
	wait = schedule(cl, "wait");
	for (i = 0; i < N; i++)
		r[i] = check(cl, 300000 + i, i);
	for (i = 0; i < N; i++)
		ck_assert_int_eq(number_of(r[i]), 300000 + i);
	OK(evc_remote_cancel(wait));
	ck_assert_int_eq(evc_remote_fetch(wait, T_LIMIT, &v), EVC_CANCELLED);
	evc_remote_free(wait);
	/* what it had not read then is of no use, and does no harm */
	for (i = 0; i < N; i++)
		r[i] = check(cl, 200000 + i, i);
	for (i = 0; i < N; i++)
		ck_assert_int_eq(number_of(r[i]), 200000 + i);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* ---- the limit ---- */

/* Of values from `most` - 200 bytes to `most`, all up to one size pass. */
static size_t
largest(evc_cluster *cl, size_t most, evc_remote *(*call)(evc_cluster *cl,
							   size_t n, unsigned s))
{
	size_t n, fits = 0;
	evc_remote *r;
	evc_status st;

	for (n = most - 200; n < most; n++) {
		r = call(cl, n, 1);
		st = evc_remote_fetch(r, T_LIMIT, NULL);
		evc_remote_free(r);
		ck_assert_msg(st == 0 || st == EVC_RESOURCE_EXHAUSTED, "%d",
			      st);
		ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), st);
		if (st == 0) {
			ck_assert(fits == 0 || fits == n - 1);
			fits = n;
		} else
			HAS(evc_last_error(), "max_frame");
	}
	return fits;
}

START_TEST(up_to_the_limit_of_a_frame)
{
	enum { MOST = 128 << 10 };
	const evc_cluster_config config = { .max_frame = MOST };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", &config);
	pid_t pid;
	size_t n;

	UNTIL(IS_UP(cl, 0));
	pid = pid_of(cl, 0);
	/* Arguments alone may not be larger either. */
	n = largest(cl, MOST - 8, check);
	ck_assert_uint_ge(n, MOST - 200);
	ck_assert_uint_lt(n, MOST - 9);
	n = largest(cl, MOST, make);
	ck_assert_uint_ge(n, MOST - 200);
	ck_assert_uint_lt(n, MOST - 1);
	/* the worker has not been blamed */
	ck_assert_int_eq(pid_of(cl, 0), pid);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* ---- memory ---- */

/* Bytes of a process that are in memory. */
static size_t
resident(pid_t pid)
{
	char path[64];
	long all, in = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%ld %ld", &all, &in), 2);
	fclose(f);
	return (size_t)in * (size_t)sysconf(_SC_PAGESIZE);
}

START_TEST(memory_is_given_back)
{
	enum { SIZE = 40 * MIB };
	struct before b = begin_test();
	evc_coord *c;
	evc_cluster *cl;
	pid_t pid;
	size_t at_first;
	evc_remote *r;
	unsigned i;

	if (t_under_asan())
		T_SKIP("it keeps what is freed");
	if (t_under_tsan() || t_under_valgrind())
		T_SKIP("memory of its own stands beside the program's");
	c = coord_of(NULL);
	cl = open_with(c, "processes://1", NULL);
	UNTIL(IS_UP(cl, 0));
	pid = pid_of(cl, 0);
	ck_assert_int_eq(number_of(schedule(cl, "pid")), pid);
	at_first = resident(pid);
	/* when nothing comes */
	ck_assert_int_eq(number_of(check(cl, SIZE, 1)), SIZE);
	has_made(make(cl, SIZE, 1), SIZE, 1);
	UNTIL(resident(pid) < at_first + SIZE / 2);
	/* when small ones come without a pause */
	ck_assert_int_eq(number_of(check(cl, SIZE, 1)), SIZE);
	has_made(make(cl, SIZE, 1), SIZE, 1);
	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(number_of(schedule_add(cl, (int)i, 1)),
				 i + 1);
	ck_assert_uint_lt(resident(pid), at_first + SIZE / 2);
	/* when what was kept is forgotten late */
	r = make(cl, SIZE, 2);
	OK(evc_remote_fetch(r, T_LIMIT, NULL));
	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(number_of(schedule_add(cl, (int)i, 1)),
				 i + 1);
	ck_assert_uint_ge(resident(pid), at_first + SIZE / 2);
	evc_remote_free(r);
	UNTIL(resident(pid) < at_first + SIZE / 2);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

int
main(void)
{
	const struct t_test tests[] = {
		T_TIMES(values_of_all_sizes, N_SIZES),
		T_ONCE(large_and_small_ones_in_turns),
		T_ONCE(nobody_wants_them),
		T_ONCE(a_large_result_is_an_input),
		T_ONCE(a_worker_dies_in_the_middle_of_an_argument),
		T_ONCE(a_worker_dies_in_the_middle_of_a_result),
		T_ONCE(they_are_taken_back),
		T_ONCE(up_to_the_limit_of_a_frame),
		T_ONCE(memory_is_given_back),
	};

	if (evc_worker_is())
		return evc_worker_main(functions, N_FUNCTIONS, NULL) != 0;
	return t_run("large", NULL, NULL, tests, sizeof(tests) / sizeof(tests[0]));
}
