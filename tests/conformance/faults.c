/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers that are killed in the middle of something: rows F03 to F07, F10, F11,
 * F14, F16 and F20.  The rows about what keeps the variables, F12 and F19, are in
 * tests/redis/lost.c.
 */
#include "kept.h"

/* ---- training that goes on until it is let go ---- */

/* Functions of 10 steps, as many of them at work as there are workers. */
static void
train(int n, evc_remote **r)
{
	int i;

	for (i = 0; i < n; i++)
		r[i] = SCHEDULE("step", "[s]", "train");
	UNTIL(are_in("train", (int)on.n_workers));
	ck_assert(!all_done());
}

/* Each has been made at least once, and has one outcome. */
static void
trained(int n, evc_remote **r, double before)
{
	int i;

	let_go("train");
	OK(join());
	ck_assert(variable("iterations") >= before + n);
	for (i = 0; i < n; i++) {
		OK(code_of(r[i]));
		evc_remote_free(r[i]);
	}
}

/* [name]: until it is let go; then one iteration more */
static evc_status
fn_step(evc_exec *x, void *arg)
{
	evc_status st = fn_hold(x, arg);

	if (st != 0)
		return st;
	return evc_exec_variable_add(x, "iterations", 1, NULL) < 0 ?
		       EVC_INTERNAL :
		       0;
}

static void
preempted_midst_function(double before)
{
	evc_remote *r[4];

	train(4, r);
	replace_worker(0);
	trained(4, r, before);
	ck_assert_uint_ge(numbers().n_lost, 1);
}

START_TEST(F03_testWorkerPreemptionMidstFunction)
{
	begin(_i, 2);
	preempted_midst_function(0);
}
END_TEST

START_TEST(F04_testOneWorkerPreemptionWithCancellation)
{
	evc_remote *r;
	int i;

	begin(_i, 2);
	for (i = 0; i < 3; i++)
		DO("add", "[ii]", i, 1);
	r = SCHEDULE("hold", "[s]", "long");
	UNTIL(are_in("long", 1));
	OK(kill(pid_with(r), SIGKILL));
	UNTIL(are_in("long", 2)); /* elsewhere, or on the next one */
	DO("fail", "[is]", EVC_DATA_LOSS, "an error");
	IS(join(), EVC_DATA_LOSS);
	IS(code_of(r), EVC_CANCELLED);
	evc_remote_free(r);
	for (i = 0; i < 3; i++)
		DO("add", "[ii]", i, 1);
	OK(join());
}
END_TEST

/* ---- datasets that are made while their worker is away ---- */

static evc_per_worker *
endless(bool by_function)
{
	evc_dataset_opts o = { .repeat = UINT64_MAX };
	evc_per_worker *d = NULL, *it = NULL;
	evc_value v;

	if (by_function) {
		v = PACKED("[iib]", 1, 5, true);
		OK(evc_per_worker_dataset(on.cl, "range", "range", &v, NULL,
					  &d));
	} else {
		v = PACKED("[iii]", 1, 2, 3);
		OK(evc_per_worker_dataset_of(on.cl, "three", &v, &o, &d));
	}
	evc_value_free(&v);
	OK(evc_per_worker_iterator(d, &it));
	evc_per_worker_free(d);
	return it;
}

static void
made_while_a_worker_restarts(bool by_function)
{
	evc_per_worker *it;
	evc_remote *r[9];
	int round, i;
	pid_t pid = pid_when_up(0);

	OK(kill(pid, SIGKILL));
	for (round = 0; round < 3; round++) {
		it = endless(by_function);
		for (i = 0; i < 3; i++)
			r[3 * round + i] = SCHEDULE("next", "[w]", it);
		evc_per_worker_free(it);
	}
	OK(join());
	for (i = 0; i < 9; i++)
		ck_assert_int_ge(take_number(r[i]), 1);
	UNTIL(pid_of(0) != 0 && pid_of(0) != pid);
	ck_assert_uint_eq(numbers().n_failed, 0);
}

START_TEST(F05_testHandleDatasetCreationFailureWithDatasetFn)
{
	begin(_i, 2);
	made_while_a_worker_restarts(true);
}
END_TEST

START_TEST(F06_testHandleDatasetCreationFailureWithDataset)
{
	begin(_i, 2);
	made_while_a_worker_restarts(false);
}
END_TEST

/* ---- what is said of it ---- */

/* There a function fails at the first death; here it does if it is told to.  It
   is the worker that is named, and no server.  nth: counted from 1 in a test. */
static void
says_that_a_worker_died(int nth)
{
	evc_schedule_opts o = { .deaths = 1 };
	evc_remote_info i;
	evc_remote *r;
	char name[48];

	r = SCHEDULE_WITH(&o, "hold", "[s]", "told");
	UNTIL(info_of(r).state == EVC_REMOTE_RUNNING);
	/* A worker that has not begun it yet is not killed by it. */
	UNTIL(are_in("told", nth));
	snprintf(name, sizeof(name), "%s", info_of(r).worker);
	OK(kill(pid_with(r), SIGKILL));
	IS(code_of(r), EVC_ABORTED);
	i = info_of(r);
	ck_assert_uint_eq(i.kind, EVC_FAILED_WORKER);
	HAS(i.text, name);
	SAYS_KILLED(i.text);
	ck_assert_ptr_null(strstr(i.text, "server"));
	IS(join(), EVC_ABORTED);
	evc_remote_free(r);
}

START_TEST(F07_testWorkerPreemptionErrorType)
{
	begin(_i, 2);
	says_that_a_worker_died(1);
	OK(join());
}
END_TEST

/* ---- more than one death ---- */

START_TEST(F10_testTwoWorkersPreempted)
{
	evc_remote *r[10];
	pid_t pid[2];
	unsigned i;

	begin(_i, 2);
	train(10, r);
	for (i = 0; i < 2; i++)
		pid[i] = pid_when_up(i);
	for (i = 0; i < 2; i++)
		OK(kill(pid[i], SIGKILL));
	for (i = 0; i < 2; i++)
		UNTIL(pid_of(i) != 0 && pid_of(i) != pid[i]);
	trained(10, r, 0);
}
END_TEST

START_TEST(F11_testWorkerContinuousFailure)
{
	evc_remote *r[10];

	begin(_i, 2);
	train(10, r);
	replace_worker(0);
	replace_worker(0);
	trained(10, r, 0);
	ck_assert_uint_eq(worker(0).lives, 3);
}
END_TEST

/* All workers are gone, and have not come back: the result is here. */
START_TEST(F14_testTensorGotAfterWorkerFailure)
{
	evc_value v = { NULL, 0 };
	evc_remote *r;
	int a, b, round;

	begin(_i, 2);
	r = SCHEDULE("two", "[]");
	for (round = 0; round < 2; round++) {
		OK(evc_remote_fetch(r, T_LIMIT, &v));
		OK(evc_unpack(&v, "[ii]", &a, &b));
		IS(a, 1);
		IS(b, -1);
		if (round == 0) {
			OK(kill(pid_when_up(0), SIGKILL));
			OK(kill(pid_when_up(1), SIGKILL));
		}
	}
	evc_remote_free(r);
	OK(join());
}
END_TEST

/* [] -> [1, -1] */
static evc_status
fn_two(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "[ii]", 1, -1);
}

/* One after the other, with the same workers. */
START_TEST(F16_testClusterStateNotDisrupted)
{
	int round;

	begin(_i, 2);
	preempted_midst_function(0);
	for (round = 0; round < 2; round++) {
		says_that_a_worker_died(round + 1);
		IS(take_number(SCHEDULE("add", "[ii]", round, 1)), round + 1);
	}
	OK(join());
}
END_TEST

/* A look at all of them raises nothing, though a worker is down. */
START_TEST(F20_testAsyncWaitIsNoOp)
{
	evc_remote *r[10];
	pid_t pid;
	int i;

	begin(_i, 2);
	train(10, r);
	pid = pid_when_up(0);
	OK(kill(pid, SIGKILL));
	UNTIL(pid_of(0) != pid);
	for (i = 0; i < 10; i++)
		ck_assert(!all_done());
	trained(10, r, 0);
	ck_assert(all_done());
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "step", .fn = fn_step },
	{ .name = "two", .fn = fn_two },
	{ .name = "range", .fn = fn_range },
	{ .name = "next", .fn = fn_next },
};

CONFORMANCE_MAIN("faults", functions,
		 ROW_ON(DIES, F03_testWorkerPreemptionMidstFunction),
		 ROW_ON(DIES, F04_testOneWorkerPreemptionWithCancellation),
		 ROW_ON(DIES,
			F05_testHandleDatasetCreationFailureWithDatasetFn),
		 ROW_ON(DIES, F06_testHandleDatasetCreationFailureWithDataset),
		 ROW_ON(DIES, F07_testWorkerPreemptionErrorType),
		 ROW_ON(DIES, F10_testTwoWorkersPreempted),
		 ROW_ON(DIES, F11_testWorkerContinuousFailure),
		 ROW_ON(DIES, F14_testTensorGotAfterWorkerFailure),
		 ROW_ON(DIES, F16_testClusterStateNotDisrupted),
		 ROW_ON(DIES, F20_testAsyncWaitIsNoOp))
