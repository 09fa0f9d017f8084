/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers that are processes: functions run there, values large and small go to
 * and fro, what they print comes into the log, and nothing of them is left.
 */
#include "../support/processes_util.h"

#include <sys/socket.h>

/* ---- functions of this program alone ---- */

/* What a worker is: its process group, blocked signals, SIGPIPE's disposition,
   its sockets, whether it knows that it is a worker, its environment. */
static evc_status
p_self(evc_exec *x, void *arg)
{
	int i, sockets = 0, blocked = 0, own, in_own;
	char path[64], to[64];
	struct sigaction sa;
	sigset_t set;
	ssize_t n;

	(void)arg;
	sigprocmask(SIG_BLOCK, NULL, &set);
	for (i = 1; i < 32; i++)
		blocked += sigismember(&set, i) == 1;
	sigaction(SIGPIPE, NULL, &sa);
	for (i = 0; i < 256; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
		n = readlink(path, to, sizeof(to) - 1);
		sockets += n > 6 && strncmp(to, "socket", 6) == 0;
	}
	own = getpgrp() == getpid();
	in_own = getenv("EVCOORD_WORKER") == NULL && evc_worker_is();
	return evc_exec_return(x, "[iiiii]", own, blocked,
			       sa.sa_handler == SIG_DFL, sockets, in_own);
}

/* The name by which this program was started. */
static const char *
own_name(void)
{
	static char name[4096];
	FILE *f = fopen("/proc/self/cmdline", "r");

	if (f == NULL || fread(name, 1, sizeof(name) - 1, f) == 0)
		return "unknown";
	fclose(f);
	return name;
}

static evc_status
p_name(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "s", own_name());
}

/* Its own end, which is nobody's error. */
static evc_status
p_retire(evc_exec *x, void *arg)
{
	(void)arg;
	(void)evc_request_stop(evc_exec_coord(x), 0, "enough");
	return evc_exec_return(x, "i", (int)getpid());
}

static evc_status
start(evc_coord *c, void *arg)
{
	const char *lock = getenv("TEST_LOCK");

	(void)arg;
	if (lock == NULL || access(lock, F_OK) < 0)
		return 0;
	return evc_fail(c, EVC_NOT_FOUND, 0, "no key for %s", lock);
}

static void
stop(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	if (getenv("TEST_STOP") != NULL)
		printf("stopped well\n");
	fflush(stdout);
}

static const evc_function functions[] = {
	P_FUNCTIONS,
	{ .name = "self", .fn = p_self },
	{ .name = "retire", .fn = p_retire },
	{ .name = "name", .fn = p_name },
};

#define N_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

static const evc_worker_opts opts = { .start = start, .stop = stop };

/* ---- they run ---- */

START_TEST(functions_run_in_processes_of_their_own)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://2", NULL);
	evc_cluster_worker_info w;
	evc_remote *r = schedule_add(cl, 20, 22);
	char where[32], name[4096];
	evc_value v;
	int64_t pid;

	ck_assert_int_eq(number_of(r), 42);
	pid = number_of(schedule(cl, "pid"));
	ck_assert_int_ne(pid, getpid());
	UNTIL(IS_UP(cl, 0) && IS_UP(cl, 1));
	ck_assert(pid == pid_of(cl, 0) || pid == pid_of(cl, 1));
	ck_assert_int_ne(pid_of(cl, 0), pid_of(cl, 1));
	w = worker_info(cl, 1);
	ck_assert_str_eq(w.name, "worker 1");
	snprintf(where, sizeof(where), "pid %d", (int)pid_of(cl, 1));
	ck_assert_str_eq(w.where, where);
	ck_assert_uint_eq(w.lives, 1);
	ck_assert_int_eq(evc_cluster_worker_get(cl, 2, &w), -EVC_NOT_FOUND);
	/* By the name that this program has. */
	r = schedule(cl, "name");
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	OK(evc_unpack(&v, "s", name, sizeof(name)));
	ck_assert_str_eq(name, own_name());
	evc_remote_free(r);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

START_TEST(each_of_many_has_its_own_result)
{
	enum { N = 3000 };
	static evc_remote *r[N];
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://3", NULL);
	int i;

	for (i = 0; i < N; i++)
		r[i] = schedule_add(cl, i, 7);
	OK(evc_cluster_join(cl, T_LIMIT));
	for (i = 0; i < N; i++)
		ck_assert_int_eq(number_of(r[i]), i + 7);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

static int64_t home_sum;

static void
home_joined(evc_cluster *cl, evc_status result, void *arg)
{
	evc_remote **r = arg;

	home_sum = result == 0 ? number_of(*r) : -1;
	OK(evc_request_stop(evc_scope_parent(evc_cluster_scope(cl)), 0,
			    "joined"));
}

/* A worker that is quick takes more than one; what is behind one that takes its
   time is not held up by that. */
START_TEST(nobody_waits_behind_a_long_one)
{
	enum { N = 40 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://2", NULL);
	evc_remote *wait, *r[N];
	evc_remote_info info;
	evc_value v;
	int i, round;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < 400; i++)
			evc_remote_free(schedule_add(cl, i, i));
		OK(evc_cluster_join(cl, T_LIMIT));
		wait = schedule(cl, "wait");
		for (i = 0; i < N; i++)
			r[i] = schedule_add(cl, i, round);
		for (i = 0; i < N; i++)
			ck_assert_int_eq(number_of(r[i]), i + round);
		OK(evc_remote_get(wait, &info));
		ck_assert_uint_eq(info.state, EVC_REMOTE_RUNNING);
		OK(evc_remote_cancel(wait));
		ck_assert_int_eq(evc_remote_fetch(wait, T_LIMIT, &v),
				 EVC_CANCELLED);
		evc_remote_free(wait);
		OK(evc_cluster_join(cl, T_LIMIT));
	}
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* libev's default loop takes all children that end: the worker that retires may
   have been reaped by it, and that is no error. */
START_TEST(on_the_default_loop)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(ev_default_loop(0));
	evc_cluster *cl = open_with(c, "processes://2", NULL);
	evc_remote *r;
	evc_verdict v;
	int i;

	for (i = 0; i < 3; i++)
		evc_remote_free(schedule(cl, "retire"));
	r = schedule_add(cl, 30, 4);
	OK(evc_cluster_join_start(cl, home_joined, &r));
	OK(evc_run(c, NULL, &v));
	ck_assert_int_eq(home_sum, 34);
	ck_assert_uint_eq(v.n_stragglers, 0);
	evc_cluster_close(cl);
	ck_assert_msg(evc_free(c) == 0, "%s", evc_last_error());
	ev_loop_destroy(ev_default_loop(0));
	census_end(&b.n);
}
END_TEST

/* ---- what goes to and fro ---- */

START_TEST(large_values)
{
	enum { SIZE = 9 << 20 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", NULL);
	evc_remote *big, *look;
	evc_value v;
	const unsigned char *p;
	size_t n;

	OK(evc_schedule_pack(cl, "big", NULL, &big, "[ii]", SIZE, 0x5a));
	OK(evc_remote_fetch(big, T_LIMIT, &v));
	OK(evc_unpack(&v, "B", &p, &n));
	ck_assert_uint_eq(n, SIZE);
	ck_assert_uint_eq(p[SIZE - 1], 0x5a);
	/* as an argument of its own, which the worker cannot know */
	OK(evc_schedule_pack(cl, "look", NULL, &look, "[B]", p, n));
	ck_assert_int_eq(number_of(look), (int64_t)SIZE * 256 + 0x5a);
	/* and as an input, which it has kept */
	OK(evc_schedule_pack(cl, "look", NULL, &look, "[r]", big));
	ck_assert_int_eq(number_of(look), (int64_t)SIZE * 256 + 0x5a);
	evc_remote_free(big);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* More than a worker keeps: what it had to forget is sent. */
START_TEST(results_as_inputs)
{
	enum { N = 24, SIZE = 4 << 20 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://2", NULL);
	evc_remote *big[N], *look[N], *small, *nothing, *echo;
	evc_value v;
	int i, k;

	for (i = 0; i < N; i++)
		OK(evc_schedule_pack(cl, "big", NULL, &big[i], "[ii]", SIZE + i,
				     i));
	for (k = 0; k < 2; k++) {
		for (i = 0; i < N; i++)
			OK(evc_schedule_pack(cl, "look", NULL, &look[i], "[r]",
					     big[i]));
		for (i = 0; i < N; i++)
			ck_assert_int_eq(number_of(look[i]),
					 (int64_t)(SIZE + i) * 256 + i);
	}
	for (i = 0; i < N; i++)
		evc_remote_free(big[i]);
	/* nil, too, is a result */
	small = schedule_add(cl, 1, 2);
	OK(evc_schedule_pack(cl, "say", NULL, &nothing, "[s]", "x"));
	OK(evc_schedule_pack(cl, "echo", NULL, &echo, "[rr]", small, nothing));
	OK(evc_remote_fetch(echo, T_LIMIT, &v));
	IS_VALUE(&v, "[3,null]");
	evc_remote_free(small);
	evc_remote_free(nothing);
	evc_remote_free(echo);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

START_TEST(what_does_not_fit_a_frame_is_an_error)
{
	const evc_cluster_config config = { .max_frame = 64 << 10 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", &config);
	pid_t pid = (pid_t)number_of(schedule(cl, "pid"));
	evc_remote *big, *small[3], *look;
	evc_remote_info info;
	evc_value v;
	int i;

	OK(evc_schedule_pack(cl, "big", NULL, &big, "[ii]", 1 << 20, 1));
	ck_assert_int_eq(evc_remote_fetch(big, T_LIMIT, &v),
			 EVC_RESOURCE_EXHAUSTED);
	OK(evc_remote_get(big, &info));
	HAS(info.text, "max_frame");
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT),
			 EVC_RESOURCE_EXHAUSTED);
	evc_remote_free(big);
	/* each fits, all of them do not */
	for (i = 0; i < 3; i++)
		OK(evc_schedule_pack(cl, "big", NULL, &small[i], "[ii]",
				     3000 + 30000 * (i > 0), i));
	OK(evc_schedule_pack(cl, "look", NULL, &look, "[r]", small[1]));
	ck_assert_int_eq(number_of(look), 33000 * 256 + 1);
	for (i = 0; i < 3; i++)
		evc_remote_free(small[i]);
	/* the worker has not been blamed */
	ck_assert_int_eq(number_of(schedule(cl, "pid")), pid);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

START_TEST(variables_of_the_coordinator)
{
	enum { N = 400 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://3", NULL);
	double now = 0, last = 0;
	evc_remote *r[N];
	evc_value v;
	int i;

	for (i = 0; i < N; i++)
		OK(evc_schedule_pack(cl, "count", NULL, &r[i], "[i]", i % 2));
	OK(evc_cluster_join(cl, T_LIMIT));
	OK(evc_variable_add(cl, "n", 0, &now));
	ck_assert(now == N);
	for (i = 0; i < N; i++) {
		OK(evc_remote_fetch(r[i], 0, &v));
		OK(evc_unpack(&v, "d", &now));
		ck_assert((i % 2 == 0) == (now == 0));
		last = now > last ? now : last;
		evc_remote_free(r[i]);
	}
	ck_assert(last <= N && last >= N / 2);
	/* no number: the worker is told, and why */
	OK(evc_pack(&v, "s", "text"));
	OK(evc_variable_set(cl, "n", &v));
	evc_value_free(&v);
	OK(evc_schedule_pack(cl, "count", NULL, NULL, "[i]", 1));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_INTERNAL);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* ---- what a worker is ---- */

START_TEST(a_worker_inherits_nothing_it_should_not)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	int own, blocked, plain, sockets, in_own;
	evc_cluster *cl;
	evc_remote *r[8];
	sigset_t set;
	evc_value v;
	int i, fd[2];

	/* Descriptors that nobody has said are to be closed at an exec. */
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	cl = open_with(c, "processes://4", NULL);
	UNTIL(IS_UP(cl, 0) && IS_UP(cl, 1) && IS_UP(cl, 2) && IS_UP(cl, 3));
	for (i = 0; i < 8; i++)
		r[i] = schedule(cl, "self");
	for (i = 0; i < 8; i++) {
		OK(evc_remote_fetch(r[i], T_LIMIT, &v));
		OK(evc_unpack(&v, "[iiiii]", &own, &blocked, &plain, &sockets,
			      &in_own));
		ck_assert_int_eq(own, 1);
		ck_assert_int_eq(blocked, 0);
		ck_assert_int_eq(plain, 1);
		ck_assert_int_eq(sockets, 2);
		ck_assert_int_eq(in_own, 1);
		evc_remote_free(r[i]);
	}
	/* So that its other end hears at once when ours is closed. */
	OK(close(fd[0]));
	ck_assert_int_eq(recv(fd[1], &i, 1, 0), 0);
	OK(close(fd[1]));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

START_TEST(what_workers_print_comes_into_the_log)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl;

	setenv("TEST_STOP", "1", 1);
	cl = open_with(c, "processes://1", NULL);
	OK(evc_schedule_pack(cl, "say", NULL, NULL, "[s]", "hello"));
	OK(evc_cluster_join(cl, T_LIMIT));
	SAYS("worker 0", "out hello", NULL);
	SAYS("worker 0", "err hello", NULL);
	ck_assert_int_eq(level_said("worker 0", "out hello"), EVC_LOG_INFO);
	evc_cluster_close(cl);
	end_test(&b, c);
	/* its opts.stop was called, and heard to the end */
	ck_assert_int_eq(n_said("worker 0", "stopped well", NULL), 1);
}
END_TEST

START_TEST(a_worker_may_end_itself)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", NULL);
	int64_t pid = number_of(schedule(cl, "retire"));

	TEXT_SAYS(cl, 0, "exit status 0");
	ck_assert_int_ne(number_of(schedule(cl, "pid")), pid);
	ck_assert_uint_eq(worker_info(cl, 0).lives, 2);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

START_TEST(a_start_that_fails_is_said)
{
	const evc_cluster_config config = { .worker_wait = 0.3 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	char lock[] = "/tmp/evcoord-test-XXXXXX";
	evc_cluster *cl;

	close(mkstemp(lock));
	setenv("TEST_LOCK", lock, 1);
	cl = open_with(c, "processes://1", &config);
	TEXT_SAYS(cl, 0, "no key for /tmp/evcoord-test-");
	HAS(worker_info(cl, 0).text, "NOT_FOUND");
	OK(evc_schedule(cl, "pid", NULL, NULL, NULL, NULL));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	/* when it is well again the worker comes */
	OK(unlink(lock));
	UNTIL(IS_UP(cl, 0));
	ck_assert_int_gt(number_of(schedule(cl, "pid")), 0);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		functions_run_in_processes_of_their_own,
		each_of_many_has_its_own_result,
		nobody_waits_behind_a_long_one,
		on_the_default_loop,
		large_values,
		results_as_inputs,
		what_does_not_fit_a_frame_is_an_error,
		variables_of_the_coordinator,
		a_worker_inherits_nothing_it_should_not,
		what_workers_print_comes_into_the_log,
		a_worker_may_end_itself,
		a_start_that_fails_is_said,
	};

	if (evc_worker_is())
		return evc_worker_main(functions, N_FUNCTIONS, &opts) != 0;
	return api_run("processes", NULL, NULL, tests,
		       sizeof(tests) / sizeof(tests[0]));
}
