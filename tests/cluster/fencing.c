/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker processes that die, freeze, take too long or do not stop; and the death
 * of the coordinator itself.  All of it also as on kernels without pidfds, where
 * ends are asked for.
 */
#include "../support/old_kernel.h"
#include "../support/processes_util.h"

#include <limits.h>

static const evc_function functions[] = { P_FUNCTIONS };

#define N_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

/* ---- they die ---- */

START_TEST(after_kill_9_there_is_another_one)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://2", NULL);
	evc_remote *r;
	pid_t first, second;

	UNTIL(IS_UP(cl, 0) && IS_UP(cl, 1));
	first = pid_of(cl, 0);
	OK(kill(first, SIGKILL));
	TEXT_SAYS(cl, 0, "was killed by signal 9 (SIGKILL)");
	UNTIL(IS_UP(cl, 0));
	second = pid_of(cl, 0);
	ck_assert_int_ne(first, second);
	ck_assert_uint_eq(worker_info(cl, 0).lives, 2);
	ck_assert_uint_eq(worker_info(cl, 1).lives, 1);
	/* in a function: it runs again */
	OK(evc_schedule_pack(cl, "deaf", NULL, &r, "[i]", 300));
	UNTIL(worker_info(cl, 0).n_running + worker_info(cl, 1).n_running > 0);
	first = pid_of(cl, worker_info(cl, 0).n_running > 0 ? 0 : 1);
	OK(kill(first, SIGKILL));
	ck_assert_int_ne(number_of(r), first);
	ck_assert(no_process(first));
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

START_TEST(its_last_words_are_in_the_error)
{
	const evc_cluster_config config = { .deaths = 1 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", &config);
	evc_remote_info info;
	evc_remote *r;
	evc_value v;

	OK(evc_schedule_pack(cl, "die", NULL, &r, "[si]",
			     "this goes wrong\nout of shards", SIGSEGV));
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, &v), EVC_ABORTED);
	OK(evc_remote_get(r, &info));
	HAS(info.text, "killed by signal 11 (SIGSEGV)");
	HAS(worker_info(cl, 0).text,
	    "its last words: this goes wrong out of shards");
	/* a last line without its end, too */
	SAYS("worker 0", "out of shards", NULL);
	evc_remote_free(r);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_ABORTED);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* A sandbox that lets a program end children by kill and wait4 alone. */
static void
refuse(long call)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OLD_LOW(nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
		OLD_FAIL(EPERM), OLD_PASS
	};
	struct sock_fprog all = { sizeof(f) / sizeof(f[0]), f };

	OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all));
}

static void
ends_are_seen(void)
{
	const evc_schedule_opts late = { .deadline = 0.3 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", NULL);
	evc_remote *r;
	pid_t pid;
	int i;

	for (i = 0; i < 2; i++) {
		UNTIL(IS_UP(cl, 0));
		pid = pid_of(cl, 0);
		OK(kill(pid, SIGKILL));
		TEXT_SAYS(cl, 0, "was killed by signal 9 (SIGKILL)");
		UNTIL(no_process(pid));
	}
	/* Killed by the engine. */
	OK(evc_schedule_pack(cl, "deaf", &late, &r, "[i]", 1000000));
	UNTIL(worker_info(cl, 0).n_running > 0);
	pid = pid_of(cl, 0);
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL),
			 EVC_DEADLINE_EXCEEDED);
	UNTIL(no_process(pid));
	evc_remote_free(r);
	evc_cluster_close(cl);
	end_test(&b, c);
}

START_TEST(a_filter_refuses_signals_to_pidfds)
{
	if (!kernel_can_be_old())
		T_SKIP("no seccomp filters are allowed here");
	refuse(SYS_pidfd_send_signal);
	ends_are_seen();
}
END_TEST

START_TEST(a_filter_refuses_waits)
{
	if (!kernel_can_be_old())
		T_SKIP("no seccomp filters are allowed here");
	refuse(SYS_waitid);
	ends_are_seen();
}
END_TEST

START_TEST(a_filter_refuses_waits_and_pidfds)
{
	if (!kernel_can_be_old())
		T_SKIP("no seccomp filters are allowed here");
	refuse(SYS_waitid);
	refuse(SYS_pidfd_open);
	ends_are_seen();
}
END_TEST

static void
stop_it(evc_cluster *cl, evc_status st, void *arg)
{
	*(evc_status *)arg = st;
	OK(evc_request_stop(evc_scope_parent(evc_cluster_scope(cl)), 0,
			    "a test"));
}

/* libev's default loop reaps all children that end, and may be the first. */
START_TEST(on_the_default_loop_no_end_is_lost)
{
	enum { DEATHS = 4 }; /* the log has no more in a second */
	const evc_cluster_config config = { .deaths = DEATHS };
	struct before b = begin_test();
	evc_coord *c = coord_of(ev_default_loop(0));
	evc_cluster *cl = open_with(c, "processes://3", &config);
	evc_cluster_info info;
	evc_status st = 0;
	evc_verdict v;

	OK(evc_schedule_pack(cl, "die", NULL, NULL, "[si]", "", SIGSEGV));
	OK(evc_cluster_join_start(cl, stop_it, &st));
	OK(evc_run(c, NULL, &v));
	ck_assert_int_eq(st, EVC_ABORTED);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_int_eq(n_said("was killed by signal 11 (SIGSEGV)", NULL,
				NULL), DEATHS);
	ck_assert_int_eq(n_said("has reaped it", NULL, NULL), 0);
	/* Those that were told to leave are no failures. */
	OK(evc_cluster_get(cl, &info));
	ck_assert_uint_eq(info.n_worker_failures, DEATHS);
	evc_cluster_close(cl);
	ck_assert_msg(evc_free(c) == 0, "%s", evc_last_error());
	ev_loop_destroy(ev_default_loop(0));
	census_end(&b.n);
}
END_TEST

/* Results that were sent before the death count; who had none runs again, and
   nothing is lost or doubled. */
START_TEST(nothing_is_lost_by_deaths)
{
	enum { N = 4000, KILLS = 12 };
	static evc_remote *r[N];
	struct before b = begin_test();
	const evc_cluster_config config = { .deaths = 100 };
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://3", &config);
	int i, k = 0;
	pid_t pid;

	for (i = 0; i < N; i++) {
		r[i] = schedule_add(cl, i, 1);
		if (i % (N / KILLS) == 0 && (pid = pid_of(cl, k++ % 3)) > 0)
			kill(pid, SIGKILL);
	}
	for (i = 0; i < N; i++)
		ck_assert_int_eq(number_of(r[i]), i + 1);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* ---- they freeze ---- */

START_TEST(one_that_is_stopped_loses_its_lease)
{
	const evc_cluster_config config = { .lease = 0.5 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://2", &config);
	evc_remote *r;
	pid_t frozen;
	unsigned i;

	UNTIL(IS_UP(cl, 0) && IS_UP(cl, 1));
	OK(evc_schedule_pack(cl, "deaf", NULL, &r, "[i]", 200));
	UNTIL(worker_info(cl, 0).n_running + worker_info(cl, 1).n_running > 0);
	i = worker_info(cl, 0).n_running > 0 ? 0 : 1;
	frozen = pid_of(cl, i);
	OK(kill(frozen, SIGSTOP));
	/* The other one, or the next life. */
	ck_assert_int_ne(number_of(r), frozen);
	ck_assert(no_process(frozen));
	HAS(worker_info(cl, i).text, "no sign of life");
	UNTIL(IS_UP(cl, 0) && IS_UP(cl, 1));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

START_TEST(a_long_function_keeps_its_lease)
{
	const evc_cluster_config config = { .lease = 0.5 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", &config);
	evc_remote *r;
	int64_t pid = number_of(schedule(cl, "pid"));

	OK(evc_schedule_pack(cl, "deaf", NULL, &r, "[i]", 2000));
	ck_assert_int_eq(number_of(r), pid);
	ck_assert_uint_eq(worker_info(cl, 0).lives, 1);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

static void
block(evc_reactor *r, evc_status why, void *arg)
{
	(void)r;
	(void)why;
	(void)arg;
	t_sleep(1.5);
}

/* Workers have answered, but nobody has read it. */
START_TEST(a_loop_that_is_held_up_blames_nobody)
{
	evc_cluster_config config = { .lease = 0.4 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_reactor *reactor;
	evc_cluster *cl;
	evc_loop_ref *loop;
	int i;

	OK(evc_reactor_start(c, "loop", NULL, NULL, NULL, &reactor));
	loop = evc_loop_of(reactor);
	config.reactor = reactor;
	cl = open_with(c, "processes://2", &config);
	UNTIL(IS_UP(cl, 0) && IS_UP(cl, 1));
	for (i = 0; i < 2; i++) {
		OK(evc_post(loop, block, NULL));
		t_sleep(0.3);
		ck_assert_int_gt(number_of(schedule(cl, "pid")), 0);
	}
	ck_assert_uint_eq(worker_info(cl, 0).lives, 1);
	ck_assert_uint_eq(worker_info(cl, 1).lives, 1);
	evc_cluster_close(cl);
	evc_loop_release(loop);
	end_test(&b, c);
}
END_TEST

/* ---- they take too long ---- */

START_TEST(a_deadline_ends_the_worker)
{
	const evc_schedule_opts in_time = { .deadline = 0.3 };
	const evc_schedule_opts plenty = { .deadline = T_LIMIT * 10 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", NULL);
	evc_remote *late, *fine, *other[20];
	evc_remote_info info;
	evc_value v;
	int64_t pid;
	int i;

	/* Quick ones, so that it takes more than one at a time. */
	for (i = 0; i < 200; i++)
		evc_remote_free(schedule_add(cl, i, i));
	OK(evc_cluster_join(cl, T_LIMIT));
	pid = number_of(schedule(cl, "pid"));
	OK(evc_schedule_pack(cl, "deaf", &plenty, &fine, "[i]", 1));
	OK(evc_schedule_pack(cl, "deaf", &in_time, &late, "[i]", 60000));
	ck_assert_int_eq(evc_remote_fetch(late, T_LIMIT, &v),
			 EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(number_of(fine), pid);
	OK(evc_remote_get(late, &info));
	HAS(info.text, "deadline");
	TEXT_SAYS(cl, 0, "deadline");
	evc_remote_free(late);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_DEADLINE_EXCEEDED);
	ck_assert(no_process((pid_t)pid));
	/* Those that were in the worker with one like it run elsewhere, and
	   nobody holds it against them. */
	for (i = 0; i < 20; i++)
		OK(evc_schedule_pack(cl, "deaf", &plenty, &other[i], "[i]", 1));
	for (i = 0; i < 20; i++)
		ck_assert_int_ne(number_of(other[i]), pid);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* ---- they do not stop ---- */

START_TEST(a_cancel_is_heard_at_once)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://1", NULL);
	int64_t pid = number_of(schedule(cl, "pid"));
	evc_remote *first = schedule(cl, "wait"), *second;
	evc_remote_info info;
	evc_value v;

	second = schedule(cl, "wait");
	UNTIL(worker_info(cl, 0).n_running > 0);
	OK(evc_remote_cancel(second));
	OK(evc_remote_cancel(first));
	ck_assert_int_eq(evc_remote_fetch(first, T_LIMIT, &v), EVC_CANCELLED);
	/* taken already, or not */
	ck_assert_int_eq(evc_remote_fetch(second, T_LIMIT, &v), EVC_CANCELLED);
	OK(evc_remote_get(second, &info));
	ck_assert_uint_eq(info.kind, EVC_FAILED_CANCEL);
	evc_remote_free(first);
	evc_remote_free(second);
	OK(evc_cluster_join(cl, T_LIMIT));
	ck_assert_int_eq(number_of(schedule(cl, "pid")), pid);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* How many times it has begun. */
static double
n_deaf(evc_cluster *cl)
{
	double n;

	OK(evc_variable_add(cl, "deaf", 0, &n));
	return n;
}

START_TEST(one_that_is_deaf_is_killed_after_the_grace)
{
	const evc_cluster_config config = { .grace = 0.3 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://2", &config);
	evc_remote *deaf;
	evc_value v;
	pid_t pid;

	UNTIL(IS_UP(cl, 0) && IS_UP(cl, 1));
	OK(evc_schedule_pack(cl, "deaf", NULL, &deaf, "[i]", 60000));
	/* One that was taken and has not begun would just be cancelled. */
	UNTIL(n_deaf(cl) == 1);
	pid = pid_of(cl, worker_info(cl, 0).n_running > 0 ? 0 : 1);
	/* another one's error: all are to stop */
	OK(evc_schedule_pack(cl, "fail", NULL, NULL, "[i]", EVC_NOT_FOUND));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_NOT_FOUND);
	/* so nothing runs any more, provably */
	ck_assert(no_process(pid));
	ck_assert_int_gt(evc_remote_fetch(deaf, 0, &v), 0);
	evc_remote_free(deaf);
	UNTIL(IS_UP(cl, 0) && IS_UP(cl, 1));
	ck_assert_int_gt(number_of(schedule(cl, "pid")), 0);
	/* and at the stop */
	OK(evc_schedule_pack(cl, "deaf", NULL, NULL, "[i]", 60000));
	UNTIL(n_deaf(cl) == 2);
	evc_cluster_close(cl);
	/* Its result is lost. */
	end_test_says(&b, c, EVC_UNAVAILABLE);
}
END_TEST

/* The worker beside it leaves as it is told, which is no death. */
START_TEST(the_log_hears_of_one_that_is_killed_at_the_close)
{
	/* enough for the other worker, on a machine that is busy */
	const evc_cluster_config config = { .grace = 3 };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://2", &config);

	UNTIL(IS_UP(cl, 0) && IS_UP(cl, 1));
	OK(evc_schedule_pack(cl, "deaf", NULL, NULL, "[i]", 60000));
	UNTIL(n_deaf(cl) == 1);
	evc_cluster_close(cl);
	/* Its result is lost. */
	end_test_says(&b, c, EVC_UNAVAILABLE);
	ck_assert_int_eq(n_said("was killed", NULL, NULL), 1);
	ck_assert_int_eq(n_said("(pid ", NULL, NULL), 1);
}
END_TEST

START_TEST(one_that_is_frozen_at_the_stop)
{
	const evc_cluster_config config = { .grace = 0.3, .lease = T_LIMIT };
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	evc_cluster *cl = open_with(c, "processes://2", &config);

	UNTIL(IS_UP(cl, 0) && IS_UP(cl, 1));
	OK(kill(pid_of(cl, 1), SIGSTOP));
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

START_TEST(closed_before_anybody_is_up)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	int i;

	for (i = 0; i < 10; i++)
		evc_cluster_close(open_with(c, "processes://4", NULL));
	end_test(&b, c);
}
END_TEST

/* A program of a relative path is the one that it was at the open. */
START_TEST(another_life_after_a_chdir)
{
	struct before b = begin_test();
	evc_coord *c = coord_of(NULL);
	char path[PATH_MAX], uri[PATH_MAX + 64], *name;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	evc_cluster *cl;

	ck_assert_int_gt(n, 0);
	path[n] = '\0';
	name = strrchr(path, '/');
	*name++ = '\0';
	OK(chdir(path));
	snprintf(uri, sizeof(uri), "processes://1?program=./%s", name);
	cl = open_with(c, uri, NULL);
	OK(chdir("/"));
	UNTIL(IS_UP(cl, 0));
	OK(kill(pid_of(cl, 0), SIGKILL));
	UNTIL(worker_info(cl, 0).lives == 2);
	evc_cluster_close(cl);
	end_test(&b, c);
}
END_TEST

/* ---- the coordinator's own death ---- */

/* As a program of its own, and so without check's asserts: two workers, one in a
   function, and their ids. */
static int
be_coordinator(void)
{
	evc_cluster_worker_info w[2];
	evc_cluster *cl;
	evc_coord *c;

	if (evc_new(NULL, NULL, &c) < 0 ||
	    evc_cluster_open(c, "processes://2", NULL, &cl) < 0 ||
	    evc_schedule_pack(cl, "deaf", NULL, NULL, "[i]", 60000) < 0)
		return 1;
	do {
		t_sleep(0.001);
		if (evc_cluster_worker_get(cl, 0, &w[0]) < 0 ||
		    evc_cluster_worker_get(cl, 1, &w[1]) < 0)
			return 2;
	} while (w[0].state != EVC_WORKER_UP || w[1].state != EVC_WORKER_UP ||
		 w[0].n_running + w[1].n_running == 0);
	printf("%s %s\n", w[0].where + 4, w[1].where + 4);
	fflush(stdout);
	for (;;)
		pause();
}

START_TEST(the_death_of_the_coordinator_ends_its_workers)
{
	struct before b = begin_test();
	char path[4096] = "";
	int out[2], one = 0, two = 0, n_ours = 0;
	pid_t pid, got;
	FILE *f;

	/* Its workers become ours then: so their end can be waited for. */
	OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
	/* The name: the link itself is valgrind, under that. */
	ck_assert_int_gt(readlink("/proc/self/exe", path, sizeof(path) - 1), 0);
	OK(pipe(out));
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		execl(path, path, "coordinator", NULL);
		_exit(127);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	ck_assert_int_eq(fscanf(f, "%d %d", &one, &two), 2);
	fclose(f);
	ck_assert_int_gt(one, 0);
	ck_assert_int_gt(two, 0);
	OK(kill(pid, SIGKILL));
	/* Until nobody is left.  A process that ends may have one more, of a
	   sanitizer that looks for leaks. */
	UNTIL((got = waitpid(-1, NULL, WNOHANG)) < 0 ||
	      ((n_ours += got == pid || got == one || got == two) && false));
	ck_assert_int_eq(n_ours, 3);
	ck_assert(no_process(one));
	ck_assert(no_process(two));
	census_end(&b.n);
}
END_TEST

int
main(int argc, char **argv)
{
	const TTest *const tests[] = {
		after_kill_9_there_is_another_one,
		its_last_words_are_in_the_error,
		on_the_default_loop_no_end_is_lost,
		a_filter_refuses_signals_to_pidfds,
		a_filter_refuses_waits,
		a_filter_refuses_waits_and_pidfds,
		nothing_is_lost_by_deaths,
		one_that_is_stopped_loses_its_lease,
		a_long_function_keeps_its_lease,
		a_loop_that_is_held_up_blames_nobody,
		a_deadline_ends_the_worker,
		a_cancel_is_heard_at_once,
		one_that_is_deaf_is_killed_after_the_grace,
		the_log_hears_of_one_that_is_killed_at_the_close,
		one_that_is_frozen_at_the_stop,
		closed_before_anybody_is_up,
		another_life_after_a_chdir,
		the_death_of_the_coordinator_ends_its_workers,
	};

	if (evc_worker_is())
		return evc_worker_main(functions, N_FUNCTIONS, NULL) != 0;
	if (argc > 1 && strcmp(argv[1], "coordinator") == 0)
		return be_coordinator();
	return kernels_run("fencing", tests, sizeof(tests) / sizeof(tests[0]));
}
