/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tests that parallel_workers, and data_workers beside it, have to pass
 * themselves.  Each keeps the name it has there, and uses the process's
 * registry, as its users do.  Behind them what its users miss: a stop of blocked
 * workers in one budget, errors that can be read back, a second start.
 */
#include "../support/workers_util.h"

#include "seeds.h"

T_LIVES_ON;

/* As in the seed's tests: whoever comes first gets the items. */
static void
take(evc_queue *queue, int n, bool (*is_right)(uintptr_t item))
{
	void *item;
	int i;

	for (i = 0; i < n; i++) {
		item = NULL;
		ck_assert_int_eq(evc_queue_pop(queue, &item, T_LIMIT), 0);
		ck_assert(is_right((uintptr_t)item));
	}
}

static evc_queue *
new_queue(size_t capacity)
{
	evc_queue *queue = NULL;

	OK(evc_queue_new(test.c, "items", capacity, NULL, &queue));
	return queue;
}

static void
free_queue(evc_queue *queue)
{
	void *item;

	while (evc_queue_try_pop(queue, &item) == 0)
		;
	OK(evc_queue_free(queue));
}

/* The process's registry outlives the test, and so do its coordinator and that
   one's helper thread; its groups do not. */
static void
end_and_count_but_one(void)
{
	int threads;

	OK(evc_free(test.c));
	threads = t_settle_threads(test.threads + 1);
	ck_assert_int_le(threads, test.threads + 1);
	ck_assert_int_eq(t_settle_fds(test.fds), test.fds);
}

static bool
free_one(evc_group *group, void *arg)
{
	(void)arg;
	OK(evc_group_free(group));
	return true;
}

static void
free_groups(void)
{
	OK(evc_registry_each(NULL, free_one, NULL));
}

struct job {
	evc_queue *queue;
	atomic_uintptr_t value; /* what workers push, if it is not 0 */
	uintptr_t after_init;
	atomic_int mark, runs, in, open;
	evc_group *group;
};

/* The queue is nobody's who is stopped: it is closed by the shutdown, and a
   run that finds it so has had its turn. */
static evc_status
push_id(evc_group *group, unsigned id, void *arg)
{
	struct job *j = arg;
	uintptr_t v = atomic_load(&j->value);

	(void)group;
	atomic_fetch_add(&j->runs, 1);
	return -evc_queue_push(j->queue, (void *)(v != 0 ? v : id + 100),
			       INFINITY);
}

static void
close_queue(evc_group *group, void *arg)
{
	struct job *j = arg;

	(void)group;
	evc_queue_close(j->queue);
	atomic_fetch_add(&j->mark, 1);
}

static bool
is_id_0_or_1(uintptr_t item)
{
	return item == 100 || item == 101;
}

START_TEST(W01_testParallelWorkers)
{
	evc_group_opts o = { .shutdown = close_queue };
	evc_registry *reg = NULL;
	struct job j = { 0 };
	unsigned ids[3];

	begin(0, NULL);
	j.queue = new_queue(10);
	OK(evc_group_init(NULL, NULL, push_id, &j, &o, &j.group, &reg));
	ck_assert_ptr_eq(reg, evc_registry_default());
	ck_assert_uint_eq(evc_registry_ids(reg, ids, 3), 2);
	ck_assert_uint_eq(ids[0], 0);
	ck_assert_uint_eq(ids[1], 1);
	OK(evc_registry_start(reg));
	take(j.queue, 10, is_id_0_or_1);
	OK(evc_registry_stop(reg, NULL));
	ck_assert(!evc_group_is_active(j.group));
	free_groups();
	free_queue(j.queue);
}
END_TEST

static evc_status
set_value(evc_group *group, evc_registry *reg, void *arg)
{
	struct job *j = arg;

	/* my_init_fun(worker_coordinator, global_coordinator) */
	if (group == j->group && reg == evc_registry_default() &&
	    atomic_load(&j->runs) == 0)
		atomic_store(&j->value, j->after_init);
	return 0;
}

static bool
is_new_value(uintptr_t item)
{
	return item == 4711;
}

START_TEST(W02_testParallelWorkersInitFun)
{
	evc_group_opts o = { .init = set_value, .shutdown = close_queue };
	evc_registry *reg = NULL;
	struct job j = { .value = 17, .after_init = 4711 };

	begin(0, NULL);
	j.queue = new_queue(10);
	OK(evc_group_init(NULL, "train", push_id, &j, &o, &j.group, &reg));
	OK(evc_registry_start(reg));
	take(j.queue, 10, is_new_value);
	OK(evc_registry_stop(reg, NULL));
	free_groups();
	free_queue(j.queue);
}
END_TEST

START_TEST(W03_testParallelWorkersShutdownFun)
{
	evc_group_opts o = { .shutdown = close_queue };
	evc_registry *reg = NULL;
	struct job j = { 0 };

	begin(0, NULL);
	j.queue = new_queue(10);
	OK(evc_group_init(NULL, "train", push_id, &j, &o, &j.group, &reg));
	OK(evc_registry_start(reg));
	ck_assert_int_eq(j.mark, 0);
	OK(evc_registry_stop(reg, NULL));
	ck_assert_int_eq(j.mark, 1);
	free_groups();
	free_queue(j.queue);
}
END_TEST

/* A number and what belongs to it, always together. */
static evc_status
push_pair(evc_group *group, unsigned id, void *arg)
{
	struct job *j = arg;
	uintptr_t n = (uintptr_t)atomic_fetch_add(&j->runs, 1) % 1000 + 1;

	(void)group;
	(void)id;
	return -evc_queue_push(j->queue, (void *)(n << 16 | 3 * n), INFINITY);
}

static bool
is_a_pair(uintptr_t item)
{
	return (item & 0xffff) == 3 * (item >> 16) && item != 0;
}

START_TEST(W04_testNonParallelModel)
{
	evc_group_opts o = { .n_threads = 2, .shutdown = close_queue };
	struct job j = { 0 };

	begin(0, NULL);
	j.queue = new_queue(32);
	OK(evc_group_init(NULL, "unittest", push_pair, &j, &o, &j.group, NULL));
	OK(evc_registry_start(NULL));
	UNTIL(atomic_load(&j.runs) >= 33);
	take(j.queue, 500, is_a_pair);
	OK(evc_registry_stop(NULL, NULL));
	free_groups();
	free_queue(j.queue);
}
END_TEST

static evc_queue *of_scope;

static evc_status
push_to_own(evc_group *group, unsigned id, void *arg)
{
	struct job *j = arg;

	(void)group;
	atomic_fetch_add(&j->runs, 1);
	return -evc_queue_push(of_scope, (void *)(uintptr_t)(id + 1), INFINITY);
}

/* _i == 0: the shutdown function closes the queue, as the seed's users do;
   _i == 1: it is a queue of the group's scope, which knows the stop. */
START_TEST(W05_testRNNInput)
{
	evc_group_opts o = { .n_threads = 1 };
	evc_registry *reg = NULL;
	struct job j = { 0 };
	evc_queue_info info;

	begin(0, NULL);
	if (_i == 0)
		o.shutdown = close_queue;
	OK(evc_group_init(NULL, "train", _i == 0 ? push_id : push_to_own, &j,
			  &o, &j.group, &reg));
	if (_i == 0)
		j.queue = new_queue(3);
	else
		OK(evc_queue_new(evc_group_scope(j.group), "items", 3, NULL,
				 &of_scope));
	OK(evc_registry_start(reg));
	/* Nobody takes anything out: the one that fills it blocks. */
	do {
		t_sleep(0.001);
		OK(evc_queue_get(_i == 0 ? j.queue : of_scope, &info));
	} while (info.n_pushing == 0);
	ck_assert_uint_eq(info.n, 3);
	OK(evc_registry_stop(reg, NULL));
	ck_assert_uint_eq(info_of(j.group).n_errors, 0);
	free_queue(_i == 0 ? j.queue : of_scope);
	free_groups();
}
END_TEST

/* ---- the rest of what it promises ---- */

static evc_status
beat(evc_group *group, unsigned id, void *arg)
{
	struct job *j = arg;

	(void)id;
	atomic_fetch_add(&j->runs, 1);
	evc_sleep(evc_group_scope(group), 0.001);
	return 0;
}

/* "init_workers will be called for each GPU.  Note that the 'coordinator'
   returned by the function is same each time." */
static evc_status
push_next(evc_group *group, unsigned id, void *arg)
{
	struct job *j = arg;

	(void)group;
	(void)id;
	return -evc_queue_push(j->queue,
			       (void *)(uintptr_t)(atomic_fetch_add(&j->runs,
								    1) + 1),
			       INFINITY);
}

/* Two groups, for training and for validation, whose queues have one name: each
   gets its own, and in order. */
START_TEST(W06_testInputOrder)
{
	evc_group_opts o = { .n_threads = 1, .shutdown = close_queue };
	struct job j[2] = { { .queue = NULL }, { .queue = NULL } };
	void *item = NULL;
	int i, k;

	begin(0, NULL);
	for (i = 0; i < 2; i++) {
		j[i].queue = new_queue(4);
		atomic_store(&j[i].runs, 1000 * i);
		OK(evc_group_init(NULL, i == 0 ? "train" : "test", push_next,
				  &j[i], &o, &j[i].group, NULL));
	}
	OK(evc_registry_start(NULL));
	for (k = 1; k <= 20; k++)
		for (i = 0; i < 2; i++) {
			OK(evc_queue_pop(j[i].queue, &item, T_LIMIT));
			ck_assert_int_eq((int)(uintptr_t)item, 1000 * i + k);
		}
	OK(evc_registry_stop(NULL, NULL));
	free_groups();
	for (i = 0; i < 2; i++)
		free_queue(j[i].queue);
}
END_TEST

START_TEST(each_init_adds_a_group_and_returns_the_same_registry)
{
	evc_registry *reg[3] = { NULL, NULL, NULL };
	struct job j[3] = { { 0 } };
	unsigned ids[8], i;

	begin(0, NULL);
	for (i = 0; i < 3; i++)
		OK(evc_group_init(NULL, "train", beat, &j[i], NULL, &j[i].group,
				  &reg[i]));
	for (i = 0; i < 3; i++) {
		ck_assert_ptr_eq(reg[i], evc_registry_default());
		ck_assert_uint_eq(evc_group_ids(j[i].group, ids, 8), 2);
		ck_assert_uint_eq(ids[0], 2 * i);
		ck_assert_uint_eq(ids[1], 2 * i + 1);
	}
	ck_assert_ptr_ne(j[0].group, j[1].group);
	ck_assert_uint_eq(evc_registry_ids(NULL, ids, 8), 6);
	for (i = 0; i < 6; i++)
		ck_assert_uint_eq(ids[i], i);
	OK(evc_registry_start(NULL));
	OK(evc_registry_start(NULL)); /* again: nothing to do */
	for (i = 0; i < 3; i++)
		UNTIL(atomic_load(&j[i].runs) > 3);
	OK(evc_registry_stop_name(NULL, "train", NULL));
	for (i = 0; i < 3; i++)
		ck_assert(!evc_group_is_active(j[i].group));
	free_groups();
}
END_TEST

/* ---- the cures ---- */

static evc_status
block(evc_group *group, unsigned id, void *arg)
{
	struct job *j = arg;

	(void)group;
	(void)id;
	atomic_fetch_add(&j->in, 1);
	while (!atomic_load(&j->open))
		t_sleep(0.001);
	return EVC_CANCELLED;
}

/* There: five seconds for each, one after the other.  Here with a budget of a
   second and nine in three groups: one after the other it would be nine. */
START_TEST(blocked_workers_share_one_budget)
{
	evc_group_opts o = { .n_threads = 3 };
	evc_join_opts budget = { .grace = 1 };
	struct job j = { 0 };
	double took;
	int i;

	begin(0, NULL);
	for (i = 0; i < 3; i++)
		OK(evc_group_init(NULL, "blocked", block, &j, &o, NULL, NULL));
	OK(evc_registry_start(NULL));
	UNTIL(atomic_load(&j.in) == 9);
	took = t_now();
	ck_assert_int_eq(evc_registry_stop(NULL, &budget),
			 EVC_DEADLINE_EXCEEDED);
	took = t_now() - took;
	HAS(evc_last_error(), "blocked/");
	ck_assert_msg(took >= 0.99 && took < 8.9, "it took %g s", took);
	atomic_store(&j.open, 1);
	budget.grace = T_LIMIT;
	OK(evc_registry_stop(NULL, &budget));
	free_groups();
}
END_TEST

static evc_status
read_shard(evc_group *group, unsigned id, void *arg)
{
	(void)arg;
	return evc_fail(evc_group_scope(group), EVC_DATA_LOSS, EIO,
			"cannot read shard %u", id);
}

START_TEST(an_error_of_a_worker_can_be_read_back)
{
	evc_group_opts o = { .n_threads = 1 };
	evc_group *group = NULL;
	evc_worker_error e;

	begin(0, NULL);
	OK(evc_group_init(NULL, "reader", read_shard, NULL, &o, &group, NULL));
	OK(evc_registry_start(NULL));
	ck_assert(evc_group_wait_finish(group, T_LIMIT));
	OK(evc_group_error_get(group, 0, &e));
	ck_assert_uint_eq(e.id, 0);
	ck_assert_uint_eq(e.start, 1);
	ck_assert_uint_eq(e.run, 1);
	ck_assert_int_eq(e.reason.code, EVC_DATA_LOSS);
	ck_assert_int_eq(e.reason.err, EIO);
	ck_assert_str_eq(e.reason.text, "cannot read shard 0");
	ck_assert_int_eq(evc_group_error_get(group, 1, &e), -EVC_NOT_FOUND);
	ck_assert_int_eq(evc_registry_stop(NULL, NULL), EVC_DATA_LOSS);
	free_groups();
}
END_TEST

START_TEST(a_stopped_group_is_started_again)
{
	struct job j = { 0 };
	int round, runs;

	begin(0, NULL);
	OK(evc_group_init(NULL, "train", beat, &j, NULL, &j.group, NULL));
	for (round = 1; round <= 3; round++) {
		runs = atomic_load(&j.runs);
		OK(evc_registry_start(NULL));
		ck_assert(evc_group_is_active(j.group));
		UNTIL(atomic_load(&j.runs) > runs + 3);
		OK(evc_registry_stop(NULL, NULL));
		ck_assert_uint_eq(info_of(j.group).n_starts, round);
		ids_are(j.group, 0, 2);
	}
	free_groups();
}
END_TEST

T_MAIN("parallel_workers", count_before, end_and_count_but_one,
       T_ONCE(W01_testParallelWorkers),
       T_ONCE(W02_testParallelWorkersInitFun),
       T_ONCE(W03_testParallelWorkersShutdownFun),
       T_ONCE(W04_testNonParallelModel),
       T_TIMES(W05_testRNNInput, 2),
       T_ONCE(W06_testInputOrder),
       T_ONCE(each_init_adds_a_group_and_returns_the_same_registry),
       T_ONCE(blocked_workers_share_one_budget),
       T_ONCE(an_error_of_a_worker_can_be_read_back),
       T_ONCE(a_stopped_group_is_started_again))
