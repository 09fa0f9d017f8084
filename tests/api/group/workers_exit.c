/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups at exit(3) and after fork(2), in processes of their own: what
 * was called stands in a pipe.
 */
#include "../../support/workers_util.h"

#include <signal.h>
#include <sys/wait.h>

T_LIVES_ON;

static int marks[2];

/* Safe anywhere; what is in the pipe outlives the process. */
static void
mark(char c)
{
	if (write(marks[1], &c, 1) != 1)
		_exit(98);
}

static evc_status
mark_init(evc_group *group, evc_registry *r, void *arg)
{
	(void)group;
	(void)r;
	(void)arg;
	mark('i');
	return 0;
}

static void
mark_shutdown(evc_group *group, void *arg)
{
	(void)group;
	(void)arg;
	mark('s');
}

static void
mark_stop(void *arg)
{
	(void)arg;
	mark('t');
}

static void
mark_cleanup(void *arg)
{
	(void)arg;
	mark('c');
}

static const evc_group_opts marked = { .n_threads = 2,
				       .init = mark_init,
				       .shutdown = mark_shutdown,
				       .state = { .stop = mark_stop,
						  .cleanup = mark_cleanup } };

/* In the child, which has no thread but this: a group of the process's
   registry that runs. */
static evc_group *
run_group(evc_worker_fn *fn, struct crew *k)
{
	evc_group *group = NULL;

	CHILD(evc_group_init(NULL, "train", fn, k, &marked, &group, NULL) == 0);
	k->group = group;
	CHILD(evc_registry_start(NULL) == 0);
	while (atomic_load(&k->runs) < 2)
		t_sleep(0.001);
	return group;
}

/* What a process did in body: its exit status, and what it has marked. */
static char text[64];

static int
process(void (*body)(void))
{
	int status = 0;
	ssize_t n;
	pid_t pid;

	OK(pipe2(marks, O_CLOEXEC));
	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		close(marks[0]);
		alarm((unsigned)T_TEST_LIMIT / 2); /* a hang ends here */
		body();
		_exit(97);
	}
	close(marks[1]);
	while (waitpid(pid, &status, 0) < 0)
		ck_assert_int_eq(errno, EINTR);
	n = read(marks[0], text, sizeof(text) - 1);
	ck_assert_int_ge(n, 0);
	text[n] = '\0';
	close(marks[0]);
	ck_assert_msg(WIFEXITED(status), "it ended with %#x",
		      (unsigned)status);
	return WEXITSTATUS(status);
}

/* ---- exit ---- */

static void
exit_while_it_runs(void)
{
	static struct crew k;

	run_group(crew_beat, &k);
	exit(7);
}

START_TEST(at_exit_groups_are_stopped)
{
	ck_assert_int_eq(process(exit_while_it_runs), 7);
	ck_assert_str_eq(text, "istc");
}
END_TEST

static void
exit_when_stopped(void)
{
	static struct crew k;

	run_group(crew_beat, &k);
	CHILD(evc_registry_stop(NULL, NULL) == 0);
	exit(7);
}

static void
exit_never_started(void)
{
	CHILD(evc_group_init(NULL, "train", crew_beat, NULL, &marked, NULL,
			     NULL) == 0);
	exit(7);
}

static void
exit_without_groups(void)
{
	CHILD(evc_registry_default() != NULL);
	exit(7);
}

START_TEST(what_does_not_run_is_not_stopped_again)
{
	ck_assert_int_eq(process(exit_when_stopped), 7);
	ck_assert_str_eq(text, "istc");
	ck_assert_int_eq(process(exit_never_started), 7);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(process(exit_without_groups), 7);
	ck_assert_str_eq(text, "");
}
END_TEST

static void
exit_with_one_that_blocks(void)
{
	evc_registry_opts o = { .grace = 0.2 };
	static struct crew k;

	CHILD(evc_registry_configure(&o) == 0);
	run_group(crew_stay, &k);
	exit(7);
}

/* With the five seconds of the library it would be the same, later. */
START_TEST(it_is_bounded)
{
	ck_assert_int_eq(process(exit_with_one_that_blocks), 7);
	/* No cleanup under those that live. */
	ck_assert_str_eq(text, "ist");
}
END_TEST

static evc_status
exit_here(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	(void)id;
	if (atomic_fetch_add(&k->runs, 1) == 4)
		exit(7);
	evc_sleep(evc_group_scope(group), 0.001);
	return 0;
}

static void
exit_in_a_worker(void)
{
	evc_registry_opts o = { .grace = 30 };
	static struct crew k;

	CHILD(evc_registry_configure(&o) == 0);
	run_group(exit_here, &k);
	for (;;)
		pause();
}

/* It does not wait for itself. */
START_TEST(a_worker_may_call_exit)
{
	double start = t_now();

	ck_assert_int_eq(process(exit_in_a_worker), 7);
	ck_assert(strncmp(text, "ist", 3) == 0);
	ck_assert(t_now() - start < 25);
}
END_TEST

static void
exit_switched_on_twice(void)
{
	static struct crew k;

	CHILD(evc_registry_atexit(true) == 0);
	run_group(crew_beat, &k);
	CHILD(evc_registry_atexit(true) == 0);
	exit(7);
}

/* Registered once, however often it is switched on. */
START_TEST(it_runs_once)
{
	ck_assert_int_eq(process(exit_switched_on_twice), 7);
	ck_assert_str_eq(text, "istc");
}
END_TEST

static void
exit_switched_off(void)
{
	static struct crew k;

	CHILD(evc_registry_atexit(false) == 0);
	run_group(crew_stay, &k);
	exit(7);
}

static void
exit_switched_off_and_on(void)
{
	static struct crew k;

	CHILD(evc_registry_atexit(false) == 0);
	run_group(crew_beat, &k);
	CHILD(evc_registry_atexit(false) == 0);
	CHILD(evc_registry_atexit(true) == 0);
	exit(7);
}

static void
exit_raw(void)
{
	static struct crew k;

	run_group(crew_stay, &k);
	_exit(7);
}

START_TEST(it_can_be_switched_off)
{
	ck_assert_int_eq(process(exit_switched_off), 7);
	ck_assert_str_eq(text, "i");
	ck_assert_int_eq(process(exit_switched_off_and_on), 7);
	ck_assert_str_eq(text, "istc");
	ck_assert_int_eq(process(exit_raw), 7);
	ck_assert_str_eq(text, "i");
}
END_TEST

static void
exit_with_one_of_ones_own(void)
{
	static struct crew k;
	evc_registry *reg = NULL;

	CHILD(evc_registry_new(NULL, &reg) == 0);
	CHILD(evc_group_init(reg, "train", crew_beat, &k, &marked, &k.group,
			     NULL) == 0);
	CHILD(evc_registry_start(reg) == 0);
	while (atomic_load(&k.runs) < 2)
		t_sleep(0.001);
	exit(7);
}

/* Their owners stop them. */
START_TEST(registries_of_ones_own_are_left_alone)
{
	ck_assert_int_eq(process(exit_with_one_of_ones_own), 7);
	ck_assert_str_eq(text, "i");
}
END_TEST

/* ---- fork ---- */

/* The grandchild leaves by exit(3), as a program's child may. */
static void
exit_in_a_fork_child(void)
{
	static struct crew k;
	int status = 0;
	pid_t pid;

	run_group(crew_beat, &k);
	pid = fork();
	if (pid == 0) {
		alarm(10);
		CHILD_REFUSED(evc_group_init(NULL, "x", crew_beat, &k, NULL,
					     NULL, NULL));
		CHILD_REFUSED(evc_registry_stop(NULL, NULL));
		exit(5);
	}
	CHILD(waitpid(pid, &status, 0) == pid);
	CHILD(WIFEXITED(status) && WEXITSTATUS(status) == 5);
	mark('|');
	/* Here everything is as it was. */
	CHILD(evc_group_is_active(k.group));
	exit(7);
}

START_TEST(in_a_fork_child_exit_stops_nothing)
{
	if (t_under_asan())
		T_SKIP("its search for leaks may hang in a child of threads");
	ck_assert_int_eq(process(exit_in_a_fork_child), 7);
	ck_assert_str_eq(text, "i|stc");
}
END_TEST

START_TEST(in_a_fork_child_calls_are_refused)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 }, other = { 0 };
	evc_group_info info;
	evc_group *none = NULL;
	char buf[4096];
	unsigned ids[4];
	int status = 0, runs;
	pid_t pid;

	crew_add(reg, "train", &k, 2, NULL);
	crew_add(reg, "never", &other, 1, NULL);
	OK(evc_group_start(k.group));
	UNTIL(atomic_load(&k.runs) > 3);
	pid = fork();
	if (pid == 0) {
		alarm(10);
		CHILD_REFUSED(evc_group_init(reg, "x", crew_beat, NULL, NULL,
					     &none, NULL));
		CHILD(none == NULL);
		CHILD_REFUSED(evc_registry_start(reg));
		CHILD_REFUSED(evc_group_start(other.group));
		CHILD_REFUSED(evc_registry_stop(reg, NULL));
		CHILD_REFUSED(evc_registry_stop_name(reg, "train", NULL));
		CHILD_REFUSED(evc_group_stop(k.group, NULL));
		CHILD_REFUSED(evc_group_resize(k.group, 3));
		CHILD_REFUSED(evc_group_pause(k.group));
		CHILD_REFUSED(evc_group_free(k.group));
		CHILD_REFUSED(evc_registry_free(reg));
		/* Questions and waits come back, whatever they say: locks may
		   be held for ever here. */
		(void)evc_group_is_active(k.group);
		(void)evc_group_get(k.group, &info);
		(void)evc_group_ids(k.group, ids, 4);
		(void)evc_group_metric(k.group, "worker_time");
		(void)evc_group_wait_finish(k.group, INFINITY);
		(void)report_text(evc_registry_coord(reg), buf, sizeof(buf));
		CHILD(atomic_load(&k.n_shutdown) == 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	runs = atomic_load(&k.runs);
	UNTIL(atomic_load(&k.runs) > runs + 3);
	ck_assert(evc_group_is_active(k.group));
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
	CALLED(&other, 0, 0, 0, 0, 0);
}
END_TEST

API_MAIN("workers_exit", at_exit_groups_are_stopped,
	 what_does_not_run_is_not_stopped_again, it_is_bounded,
	 a_worker_may_call_exit, it_runs_once, it_can_be_switched_off,
	 registries_of_ones_own_are_left_alone,
	 in_a_fork_child_exit_stops_nothing, in_a_fork_child_calls_are_refused)
