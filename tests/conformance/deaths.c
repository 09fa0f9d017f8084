/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions whose workers die: they run again, at least once each, their updates
 * are made exactly once, and what kills too many workers is given up.
 */
#include "functions.h"

/* [n]: ends its worker as long as fewer than n have died of it; -> attempt */
static evc_status
fn_die(evc_exec *x, void *arg)
{
	evc_exec_info i;
	unsigned n;

	(void)arg;
	if (evc_exec_get(x, &i) < 0 || evc_exec_unpack(x, "[u]", &n) < 0)
		return EVC_INVALID_ARGUMENT;
	if (i.attempt <= n) {
		kill(getpid(), SIGKILL);
		for (;;)
			pause();
	}
	return evc_exec_return(x, "u", i.attempt);
}

START_TEST(what_was_lost_runs_again)
{
	evc_remote_info i;
	evc_remote *r;

	begin(_i, 2);
	r = SCHEDULE("die", "[u]", 2u);
	IS(number_of(r), 3);
	i = info_of(r);
	ck_assert_uint_eq(i.attempts, 3);
	ck_assert_uint_eq(i.deaths, 2);
	OK(join());
	ck_assert_uint_eq(numbers().n_lost, 2);
	ck_assert_uint_eq(numbers().n_done, 1);
	evc_remote_free(r);
}
END_TEST

START_TEST(what_kills_three_workers_is_given_up)
{
	evc_remote_info i;
	evc_remote *r;
	evc_reason e;

	begin(_i, 2);
	r = SCHEDULE("die", "[u]", 1000u);
	IS(code_of(r), EVC_ABORTED);
	i = info_of(r);
	ck_assert_uint_eq(i.deaths, 3);
	ck_assert_uint_eq(i.attempts, 3);
	ck_assert_uint_eq(i.kind, EVC_FAILED_WORKER);
	HAS(i.text, "3 deaths; the last: ");
	ck_assert_str_eq(i.function, "die");
	SAYS_KILLED(i.text);
	IS(join(), EVC_ABORTED);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	ck_assert_str_eq(e.func, "die");
	OK(join());
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	evc_remote_free(r);
}
END_TEST

START_TEST(how_many_is_said_for_each)
{
	evc_cluster_config config = { .deaths = 2 };
	evc_schedule_opts o = { .deaths = 1 };
	evc_remote *r;

	begin_with(_i, 2, &config);
	r = SCHEDULE("die", "[u]", 1000u);
	IS(code_of(r), EVC_ABORTED);
	ck_assert_uint_eq(info_of(r).deaths, 2);
	IS(join(), EVC_ABORTED);
	evc_remote_free(r);
	r = SCHEDULE_WITH(&o, "die", "[u]", 1000u);
	IS(code_of(r), EVC_ABORTED);
	ck_assert_uint_eq(info_of(r).deaths, 1);
	IS(join(), EVC_ABORTED);
	evc_remote_free(r);
}
END_TEST

/* Who stood behind it on the same worker had no part in the death. */
START_TEST(the_innocent_are_not_counted)
{
	evc_schedule_opts at = { .worker = "worker 0" };
	evc_remote *r, *behind[20];
	int i;

	begin(_i, 2);
	r = SCHEDULE_WITH(&at, "die", "[u]", 2u);
	for (i = 0; i < 20; i++)
		behind[i] = SCHEDULE_WITH(&at, "add", "[ii]", i, 1);
	IS(take_number(r), 3);
	for (i = 0; i < 20; i++) {
		IS(number_of(behind[i]), i + 1);
		ck_assert_uint_eq(info_of(behind[i]).deaths, 0);
		evc_remote_free(behind[i]);
	}
	OK(join());
	ck_assert_uint_eq(worker(0).lives, 3);
}
END_TEST

/* [name, seconds]: adds 1 to NAME, then takes its time */
static evc_status
fn_slow_count(evc_exec *x, void *arg)
{
	double seconds;
	char name[64];

	(void)arg;
	if (evc_exec_unpack(x, "[sd]", name, sizeof(name), &seconds) < 0 ||
	    evc_exec_variable_add(x, name, 1, NULL) < 0)
		return EVC_INVALID_ARGUMENT;
	t_sleep(seconds);
	return evc_exec_variable_add(x, name, 1, NULL) < 0 ? EVC_INTERNAL : 0;
}

enum { COUNTED = 300, KILLS = 12 };

/* Schedules COUNTED functions that count, kills workers meanwhile; all succeed. */
static void
count_under_fire(unsigned flags)
{
	evc_schedule_opts o = { .flags = flags, .deaths = 250 };
	evc_remote *r[COUNTED];
	int i, killed = 0;
	pid_t pid;

	for (i = 0; i < COUNTED; i++)
		r[i] = SCHEDULE_WITH(&o, "slow count", "[sd]", "n", 0.004);
	for (i = 0; killed < KILLS && !all_done(); i++) {
		/* None of them: it is over, and that is not known yet. */
		pid = pid_of((unsigned)i % 4);
		if (pid != 0 && kill(pid, SIGKILL) == 0)
			killed++;
		t_sleep(0.03);
	}
	OK(join());
	ck_assert_int_gt(killed, 0);
	for (i = 0; i < COUNTED; i++) {
		OK(code_of(r[i]));
		ck_assert_uint_ge(info_of(r[i]).attempts, 1);
		evc_remote_free(r[i]);
	}
	ck_assert_uint_eq(numbers().n_done, COUNTED);
	ck_assert_uint_eq(evc_cluster_finished(on.cl), COUNTED);
}

START_TEST(each_runs_at_least_once)
{
	begin(_i, 4);
	count_under_fire(0);
	ck_assert(variable("n") >= 2 * COUNTED);
	ck_assert(variable("n") <= 2 * COUNTED + 2 * numbers().n_lost);
}
END_TEST

START_TEST(transactional_updates_are_made_exactly_once)
{
	begin(_i, 4);
	count_under_fire(EVC_TRANSACTIONAL);
	ck_assert(variable("n") == 2 * COUNTED);
}
END_TEST

/* And none of one that fails. */
static evc_status
fn_count_and_fail(evc_exec *x, void *arg)
{
	double now = 0;

	(void)arg;
	if (evc_exec_variable_add(x, "n", 5, &now) < 0 || now != 5 ||
	    evc_exec_variable_add(x, "n", 5, &now) < 0 || now != 10)
		return EVC_INTERNAL;
	return EVC_DATA_LOSS;
}

START_TEST(a_failed_transaction_has_done_nothing)
{
	evc_schedule_opts o = { .flags = EVC_TRANSACTIONAL };

	begin(_i, 2);
	OK(evc_schedule(on.cl, "count and fail", NULL, NULL, &o, NULL));
	IS(join(), EVC_DATA_LOSS);
	ck_assert(variable("n") == 0);
	OK(evc_schedule(on.cl, "count and fail", NULL, NULL, NULL, NULL));
	IS(join(), EVC_DATA_LOSS);
	ck_assert(variable("n") == 10);
}
END_TEST

/* Does the kernel say that it is stopped? */
static bool
is_stopped(pid_t pid)
{
	char path[32], text[256] = "";
	const char *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), f));
	fclose(f);
	state = strrchr(text, ')');
	return state != NULL && state[2] == 'T';
}

/* One that does nothing for its lease is lost: it is fenced, and killed, before
   anybody else has its functions. */
START_TEST(a_frozen_worker_is_killed)
{
	evc_cluster_config config = { .lease = 0.4 };
	evc_schedule_opts at = { .flags = EVC_TRANSACTIONAL };
	evc_remote *r;
	pid_t pid;
	unsigned who;

	begin_with(_i, 2, &config);
	r = SCHEDULE_WITH(&at, "hold", "[s]", "g");
	UNTIL(info_of(r).state == EVC_REMOTE_RUNNING);
	who = strcmp(info_of(r).worker, worker(1).name) == 0;
	pid = pid_with(r);
	OK(kill(pid, SIGSTOP));
	UNTIL(is_stopped(pid));
	OK(evc_variable_add(on.cl, "g.open", 1, NULL));
	IS(number_of(r), 1);
	ck_assert_uint_eq(info_of(r).attempts, 2);
	/* Before another one began. */
	ck_assert(is_dead(pid));
	OK(join());
	UNTIL(pid_of(who) != 0);
	ck_assert_uint_eq(worker(who).lives, 2);
	/* With redis the worker's own timer is the first to end it. */
	if (_i == 1)
		HAS(worker(who).text, "; kernel: T, stopped");
	evc_remote_free(r);
}
END_TEST

/* What each worker has its own of is there again before it takes anything. */
static evc_status
fn_base(evc_exec *x, void *arg)
{
	(void)arg;
	evc_exec_variable_add(x, "built", 1, NULL);
	return evc_exec_return(x, "i", 30);
}

static evc_status
fn_on_base(evc_exec *x, void *arg)
{
	evc_local *l;
	int n, by;

	(void)arg;
	if (evc_exec_unpack(x, "[wi]", &l, &by) < 0 ||
	    evc_unpack(evc_local_value(l), "i", &n) < 0)
		return evc_exec_fail(x, EVC_INTERNAL, "%s", evc_last_error());
	return evc_exec_return(x, "i", n + by);
}

START_TEST(per_worker_values_are_built_again)
{
	evc_schedule_opts at = { .worker = "worker 0" };
	evc_per_worker *p = NULL;
	int round;

	begin(_i, 2);
	OK(evc_per_worker_value(on.cl, "base", "base", NULL, &p));
	for (round = 0; round < 3; round++) {
		IS(take_number(SCHEDULE_WITH(&at, "on base", "[wi]", p,
					     round)), 30 + round);
		replace_worker(0);
	}
	IS(take_number(SCHEDULE_WITH(&at, "on base", "[wi]", p, 3)), 33);
	OK(join());
	ck_assert(variable("built") >= 4 && variable("built") <= 5);
	evc_per_worker_free(p);
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "die", .fn = fn_die },
	{ .name = "slow count", .fn = fn_slow_count },
	{ .name = "count and fail", .fn = fn_count_and_fail },
	{ .name = "base", .fn = fn_base },
	{ .name = "on base", .fn = fn_on_base },
};

CONFORMANCE_MAIN("deaths", functions, ROW_ON(DIES, what_was_lost_runs_again),
		 ROW_ON(DIES, what_kills_three_workers_is_given_up),
		 ROW_ON(DIES, how_many_is_said_for_each),
		 ROW_ON(DIES, the_innocent_are_not_counted),
		 ROW_ON(DIES, each_runs_at_least_once),
		 ROW_ON(DIES, transactional_updates_are_made_exactly_once),
		 ROW(a_failed_transaction_has_done_nothing),
		 ROW_ON(DIES, a_frozen_worker_is_killed),
		 ROW_ON(DIES, per_worker_values_are_built_again))
