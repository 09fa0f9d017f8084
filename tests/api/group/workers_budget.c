/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One budget for the waits of worker groups: each ends with the stop of the
 * coordinator above, however long its own time is, and names who still runs.
 * And the way of a worker's error to the exit status.
 */
#include "../../support/workers_util.h"

#include <signal.h>
#include <sys/wait.h>

T_LIVES_ON;

static const evc_escalation_opts short_one = { .budget = 0.2 };

/* A group below c whose two workers stay. */
static void
add_stuck(evc_coord *c, evc_registry *reg, struct crew *k)
{
	evc_group_opts o = { .coord = c };

	k->run = crew_stay;
	crew_add(reg, "stuck", k, 2, &o);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k->in) == 2);
}

static void
end_stuck(evc_coord *c, evc_registry *reg, struct crew *k)
{
	atomic_store(&k->open, 1);
	UNTIL(evc_all_stopped(c));
	OK(evc_clear_stop(c));
	end_registry(reg);
	OK(evc_free(c));
}

static void *
stop_soon(void *c)
{
	t_sleep(MOMENT);
	OK(evc_request_stop(c, 0, "enough"));
	return NULL;
}

START_TEST(a_wait_for_the_end_ends_with_the_stop)
{
	evc_coord *c = new_coord(NULL);
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };
	pthread_t t;

	OK(evc_escalation_set(c, &short_one));
	add_stuck(c, reg, &k);
	OK(pthread_create(&t, NULL, stop_soon, c));
	ck_assert(!evc_group_wait_finish(k.group, INFINITY));
	HAS(evc_last_error(), "still running: stuck/");
	ck_assert(evc_should_stop(c));
	OK(pthread_join(t, NULL));
	end_stuck(c, reg, &k);
}
END_TEST

START_TEST(a_stop_of_groups_ends_with_the_stop_above)
{
	evc_join_opts ages = { .grace = 1e6 };
	evc_coord *c = new_coord(NULL);
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };

	OK(evc_escalation_set(c, &short_one));
	add_stuck(c, reg, &k);
	OK(evc_request_stop(c, 0, "enough"));
	ck_assert_int_eq(evc_registry_stop(reg, &ages), EVC_DEADLINE_EXCEEDED);
	HAS(evc_last_error(), "stuck/");
	ck_assert_int_eq(evc_group_stop(k.group, &ages),
			 EVC_DEADLINE_EXCEEDED);
	HAS(evc_last_error(), "stuck/");
	end_stuck(c, reg, &k);
}
END_TEST

/* ---- starts ---- */

static evc_status
init_stays(evc_group *group, evc_registry *reg, void *arg)
{
	struct crew *k = arg;

	(void)group;
	(void)reg;
	atomic_fetch_add(&k->n_init, 1);
	while (!atomic_load(&k->open))
		t_sleep(0.001);
	return 0;
}

static void *
start_registry(void *reg)
{
	/* The stop came in the middle of the start. */
	ck_assert_int_eq(evc_registry_start(reg), -EVC_CANCELLED);
	return NULL;
}

START_TEST(a_start_that_hangs_holds_up_no_other_call)
{
	evc_join_opts ages = { .grace = 1e6 };
	evc_coord *c = new_coord(NULL);
	evc_group_opts o = { .coord = c, .init = init_stays };
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };
	pthread_t t;

	OK(evc_escalation_set(c, &short_one));
	crew_add(reg, "slow", &k, 1, &o);
	OK(pthread_create(&t, NULL, start_registry, reg));
	UNTIL(atomic_load(&k.n_init) == 1);
	OK(evc_request_stop(c, 0, "enough"));
	ck_assert_int_eq(evc_registry_stop(reg, &ages), EVC_DEADLINE_EXCEEDED);
	HAS(evc_last_error(), "starting groups");
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_group_start(k.group));
	HAS(evc_last_error(), "another thread starts groups");
	atomic_store(&k.open, 1);
	OK(pthread_join(t, NULL));
	OK(evc_clear_stop(c));
	end_registry(reg);
	OK(evc_free(c));
}
END_TEST

/* ---- the exit ---- */

/* The exit status of a process that runs body, which has no other thread. */
static int
process(int (*body)(void))
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		alarm((unsigned)T_TEST_LIMIT / 2); /* a hang ends here */
		exit(body());
	}
	while (waitpid(pid, &status, 0) < 0)
		ck_assert_int_eq(errno, EINTR);
	ck_assert_msg(WIFEXITED(status), "it ended with %#x",
		      (unsigned)status);
	return WEXITSTATUS(status);
}

/* A coordinator with a group of the process's registry, which would wait for
   ages at a stop and at exit. */
static evc_coord *
run_group(evc_worker_fn *fn, struct crew *k)
{
	evc_registry_opts ages = { .grace = 1e6 };
	evc_coord *c = NULL;
	evc_group_opts o = { .n_threads = 1 };

	CHILD(evc_registry_configure(&ages) == 0);
	CHILD(evc_new(NULL, NULL, &c) == 0);
	CHILD(evc_escalation_set(c, &short_one) == 0);
	o.coord = c;
	CHILD(evc_group_init(NULL, "train", fn, k, &o, &k->group, NULL) == 0);
	CHILD(evc_registry_start(NULL) == 0);
	while (atomic_load(&k->runs) < 1)
		t_sleep(0.001);
	return c;
}

static int
exit_after_a_late_join(void)
{
	static struct crew k;
	evc_coord *c = run_group(crew_stay, &k);
	evc_status st;

	CHILD(evc_request_stop(c, 0, "enough") == 0);
	st = evc_join(c, NULL, NULL);
	CHILD(st == EVC_DEADLINE_EXCEEDED);
	return evc_finish(c, st);
}

static int
exit_after_a_late_stop(void)
{
	static struct crew k;
	evc_join_opts soon = { .grace = 0.01 };

	(void)run_group(crew_stay, &k);
	CHILD(evc_registry_stop(NULL, &soon) == EVC_DEADLINE_EXCEEDED);
	return 7;
}

START_TEST(exit_does_not_wait_again)
{
	ck_assert_int_eq(process(exit_after_a_late_join), 124);
	ck_assert_int_eq(process(exit_after_a_late_stop), 7);
}
END_TEST

static evc_status
fail_at_once(evc_group *group, unsigned id, void *arg)
{
	(void)id;
	atomic_fetch_add(&((struct crew *)arg)->runs, 1);
	return evc_group_fail(group, EVC_DATA_LOSS, 0, "a shard is gone");
}

static int
finish_after_an_error(void)
{
	static struct crew k;
	evc_coord *c = run_group(fail_at_once, &k);
	evc_status st;

	CHILD(evc_group_wait_finish(k.group, INFINITY));
	CHILD(evc_request_stop(c, 0, "enough") == 0);
	st = evc_join(c, NULL, NULL);
	return evc_finish(c, st);
}

/* The process's registry has a coordinator of its own, and answers itself. */
static int
stop_after_an_error(void)
{
	static struct crew k;
	evc_group_opts o = { .n_threads = 1 };

	CHILD(evc_group_init(NULL, "train", fail_at_once, &k, &o, &k.group,
			     NULL) == 0);
	CHILD(evc_registry_start(NULL) == 0);
	CHILD(evc_group_wait_finish(k.group, INFINITY));
	return evc_registry_stop(NULL, NULL) == EVC_DATA_LOSS ? 7 : 0;
}

START_TEST(a_workers_error_reaches_the_exit_status)
{
	ck_assert_int_eq(process(finish_after_an_error), 1);
	ck_assert_int_eq(process(stop_after_an_error), 7);
}
END_TEST

API_MAIN("workers_budget", a_wait_for_the_end_ends_with_the_stop,
	 a_stop_of_groups_ends_with_the_stop_above,
	 a_start_that_hangs_holds_up_no_other_call, exit_does_not_wait_again,
	 a_workers_error_reaches_the_exit_status)
