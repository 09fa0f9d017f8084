/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The metrics of worker groups, and the loggers that get them.
 */
#include "../../support/workers_util.h"

static double
metric(const struct crew *k, const char *name)
{
	return evc_group_metric(k->group, name);
}

/* ---- put, sum, reset ---- */

static evc_status
put_some(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	int i;

	crew_enter(group, id, k);
	for (i = 0; i < 1000; i++) {
		if (evc_group_put(group, "bytes", 2, true) != 0 ||
		    evc_group_put(group, "plain", 0.5, false) != 0)
			atomic_fetch_add(&k->wrong, 1);
	}
	return crew_leave(k, EVC_OUT_OF_RANGE);
}

START_TEST(metrics_are_summed_over_workers_and_others)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = put_some }, other = { 0 };
	evc_metric m[16];
	size_t n, i;

	crew_add(reg, "train", &k, 4, NULL);
	crew_add(reg, "other", &other, 1, NULL);
	ck_assert(metric(&k, "bytes") == 0);
	OK(evc_group_start(k.group));
	for (i = 0; i < 1000; i++)
		OK(evc_group_put(k.group, "bytes", 2, true));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	ck_assert(metric(&k, "bytes") == 10000);
	ck_assert(metric(&k, "bytes_count") == 5000);
	ck_assert(metric(&k, "plain") == 2000);
	ck_assert(metric(&k, "plain_count") == 0);
	ck_assert(metric(&k, "worker_time") > 0);
	ck_assert(metric(&k, "worker_time_count") == 4);
	ck_assert(metric(&k, "byte") == 0);
	/* A name that nobody has used is no metric. */
	n = evc_group_metrics(k.group, NULL, 0);
	ck_assert_uint_eq(n, 5);
	ck_assert_uint_eq(evc_group_metrics(k.group, m, 16), n);
	for (i = 0; i < n; i++)
		ck_assert(metric(&k, m[i].name) == m[i].value);
	/* No more than there is room for. */
	memset(m, 0x55, sizeof(m));
	ck_assert_uint_eq(evc_group_metrics(k.group, m, 2), n);
	ck_assert_int_eq(m[2].name[0], 0x55);
	/* Each group has its own. */
	ck_assert(metric(&other, "bytes") == 0);
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
}
END_TEST

START_TEST(they_come_in_the_order_in_which_they_came_up)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };
	evc_metric m[8];

	crew_add(reg, "train", &k, 1, NULL);
	OK(evc_group_put(k.group, "zebra", -1, false));
	OK(evc_group_put(k.group, "ant", 2.5, true));
	OK(evc_group_put(k.group, "zebra", -1, false));
	OK(evc_group_put(k.group, "mouse", 0, false));
	ck_assert_uint_eq(evc_group_metrics(k.group, m, 8), 4);
	ck_assert_str_eq(m[0].name, "zebra");
	ck_assert(m[0].value == -2);
	ck_assert_str_eq(m[1].name, "ant");
	ck_assert(m[1].value == 2.5);
	ck_assert_str_eq(m[2].name, "ant_count");
	ck_assert(m[2].value == 1);
	ck_assert_str_eq(m[3].name, "mouse");
	end_registry(reg);
}
END_TEST

START_TEST(reset_sets_all_to_0_and_starts_keep_them)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = put_some };
	evc_metric m[16];
	size_t n, i;

	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	STATE_COMES(k.group, EVC_GROUP_STOPPED);
	ck_assert(metric(&k, "bytes") == 8000);
	OK(evc_group_metrics_reset(k.group));
	n = evc_group_metrics(k.group, m, 16);
	for (i = 0; i < n && i < 16; i++)
		ck_assert(m[i].value == 0);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	ck_assert(metric(&k, "bytes") == 4000);
	ck_assert(metric(&k, "bytes_count") == 2000);
	ck_assert(metric(&k, "worker_time_count") == 2);
	end_registry(reg);
}
END_TEST

static evc_status
put_for_ever(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	int i;

	crew_enter(group, id, k);
	for (i = 0; i < 100; i++)
		if (evc_group_put(group, "ones", 1, false) != 0)
			atomic_fetch_add(&k->wrong, 1);
	return crew_leave(k, 0);
}

/* What is put meanwhile counts before a reset or after it: so never less than
   nothing, and never more than was put. */
START_TEST(a_reset_beside_puts)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = put_for_ever };
	double v;
	int i;

	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_registry_start(reg));
	for (i = 0; i < 200; i++) {
		OK(evc_group_metrics_reset(k.group));
		v = metric(&k, "ones");
		ck_assert_msg(v >= 0 && v <= 100.0 * atomic_load(&k.runs),
			      "%g", v);
		if (i % 20 == 0)
			t_sleep(0.001);
	}
	OK(evc_registry_stop(reg, NULL));
	OK(evc_group_metrics_reset(k.group));
	ck_assert(metric(&k, "ones") == 0);
	end_registry(reg);
	ck_assert_int_eq(k.wrong, 0);
}
END_TEST

START_TEST(names_have_a_length_and_a_number)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };
	char name[64];
	evc_metric m[300];
	evc_status st = 0;
	size_t n;
	int i;

	crew_add(reg, "train", &k, 1, NULL);
	OK(evc_registry_start(reg));
	UNTIL(metric(&k, "worker_time_count") > 0);
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_put(NULL, "x", 1, true));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_put(k.group, NULL, 1, true));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_put(k.group, "", 1, true));
	memset(name, 'n', 48);
	name[48] = '\0';
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_put(k.group, name, 1, true));
	name[47] = '\0';
	OK(evc_group_put(k.group, name, 1, true));
	ck_assert_uint_eq(evc_group_metrics(k.group, m, 300), 4);
	ck_assert_str_eq(m[2].name, name);
	ck_assert_str_eq(m[3].name + 47, "_count");
	/* It was copied. */
	for (i = 0; i < 300 && st == 0; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		st = evc_group_put(k.group, name, 1, false);
	}
	ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
	n = evc_group_metrics(k.group, m, 300);
	ck_assert_uint_ge(n, 250);
	ck_assert_uint_le(n, 256);
	/* Those that are there go on. */
	OK(evc_group_put(k.group, "m7", 1, false));
	ck_assert(metric(&k, "m7") == 2);
	i = atomic_load(&k.runs);
	UNTIL(metric(&k, "worker_time_count") > i + 3);
	end_registry(reg);
}
END_TEST

static evc_status
fail_third(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	return crew_leave(k, atomic_load(&k->runs) == 3 ? EVC_ABORTED : 0);
}

/* As worker_fun's time there, which was put in a "finally". */
START_TEST(worker_time_counts_each_run_also_one_that_failed)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = fail_third };
	evc_metric m[8];
	size_t i, n;
	int found = 0;

	crew_add(reg, "train", &k, 1, NULL);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	ck_assert(metric(&k, "worker_time_count") == 3);
	n = evc_group_metrics(k.group, m, 8);
	for (i = 0; i < n; i++)
		found += strcmp(m[i].name, "worker_time") == 0 ||
			 strcmp(m[i].name, "worker_time_count") == 0;
	ck_assert_int_eq(found, 2);
	end_registry(reg);
}
END_TEST

static evc_status
work_20_ms(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	t_sleep(0.02);
	return crew_leave(k, atomic_load(&k->runs) < 3 ? 0 : EVC_OUT_OF_RANGE);
}

START_TEST(worker_time_is_in_seconds)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = work_20_ms };
	double start = t_now();

	crew_add(reg, "train", &k, 1, NULL);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	ck_assert(metric(&k, "worker_time") >= 0.0599);
	ck_assert(metric(&k, "worker_time") <= t_now() - start);
	end_registry(reg);
}
END_TEST

/* ---- loggers ---- */

struct book {
	struct crew *k;
	evc_status says;
	atomic_int calls, wrong;
	double last, least; /* of one worker: between two calls */
	pthread_mutex_t lock;
};

static evc_status
keep_book(evc_group *group, const evc_metric *metrics, unsigned n, void *arg)
{
	struct book *b = arg;
	double now = t_now();
	bool time = false;
	unsigned i;
	int own = 0;

	for (i = 0; i < n; i++)
		time |= strcmp(metrics[i].name, "worker_time_count") == 0 &&
			metrics[i].value >= 1;
	/* On the thread of a worker that has just run. */
	for (i = 0; i < N_IDS; i++)
		own += atomic_load(&b->k->tid[i]) == own_tid();
	if (group != b->k->group || !time || own != 1 ||
	    n != evc_group_metrics(group, NULL, 0))
		atomic_fetch_add(&b->wrong, 1);
	pthread_mutex_lock(&b->lock);
	if (b->last != 0 && (b->least == 0 || now - b->last < b->least))
		b->least = now - b->last;
	b->last = now;
	pthread_mutex_unlock(&b->lock);
	atomic_fetch_add(&b->calls, 1);
	return b->says;
}

static evc_status
run_10(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	int n;

	crew_enter(group, id, k);
	n = atomic_load(&k->by_id[id]);
	return crew_leave(k, n < 10 ? 0 : k->end_says);
}

#define BOOK(crew) { .k = (crew), .lock = PTHREAD_MUTEX_INITIALIZER }

START_TEST(each_logger_gets_all_after_each_run)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = run_10, .end_says = EVC_ABORTED };
	struct book a = BOOK(&k), b = BOOK(&k);
	evc_logger loggers[2] = { { .fn = keep_book, .arg = &a },
				  { .fn = keep_book, .arg = &b } };
	evc_group_opts o = { .loggers = loggers, .n_loggers = 2 };

	crew_add(reg, "train", &k, 1, &o);
	memset(loggers, 0, sizeof(loggers)); /* copied */
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	/* The last run failed, and counts. */
	ck_assert_int_eq(k.runs, 10);
	ck_assert_int_eq(a.calls, 10);
	ck_assert_int_eq(b.calls, 10);
	ck_assert_int_eq(a.wrong + b.wrong, 0);
	end_registry(reg);
}
END_TEST

START_TEST(loggers_of_several_workers)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = run_10, .end_says = EVC_OUT_OF_RANGE };
	struct book a = BOOK(&k);
	evc_logger logger = { .fn = keep_book, .arg = &a };
	evc_group_opts o = { .loggers = &logger, .n_loggers = 1 };

	crew_add(reg, "train", &k, 4, &o);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	ck_assert_int_eq(a.calls, 40);
	end_registry(reg);
}
END_TEST

START_TEST(a_logger_may_come_at_most_every_so_often)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };
	struct book often = BOOK(&k), seldom = BOOK(&k), all = BOOK(&k);
	evc_logger loggers[3] = {
		{ .fn = keep_book, .arg = &often, .every = 0.05 },
		{ .fn = keep_book, .arg = &seldom, .every = 1000 },
		{ .fn = keep_book, .arg = &all }
	};
	evc_group_opts o = { .loggers = loggers, .n_loggers = 3 };

	crew_add(reg, "train", &k, 3, &o);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&often.calls) > 4);
	OK(evc_registry_stop(reg, NULL));
	ck_assert_msg(often.least > 0.045, "%g", often.least);
	ck_assert_int_le(seldom.calls, 1);
	ck_assert_int_eq(all.calls, k.runs);
	end_registry(reg);
}
END_TEST

START_TEST(a_logger_that_fails_is_reported_and_harms_nothing)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = run_10, .end_says = EVC_OUT_OF_RANGE };
	struct book bad = BOOK(&k), good = BOOK(&k);
	evc_logger loggers[2] = { { .fn = keep_book, .arg = &bad },
				  { .fn = keep_book, .arg = &good } };
	evc_group_opts o = { .loggers = loggers, .n_loggers = 2 };

	bad.says = EVC_UNAVAILABLE;
	forget_said();
	crew_add(reg, "train", &k, 1, &o);
	OK(evc_registry_start(reg));
	ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
	ck_assert_int_eq(bad.calls, 10);
	ck_assert_int_eq(good.calls, 10);
	SAYS("logger", "UNAVAILABLE", "train");
	ck_assert_uint_eq(info_of(k.group).n_errors, 0);
	OK(evc_raise_requested(evc_group_scope(k.group), NULL));
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
}
END_TEST

API_MAIN("workers_metrics", metrics_are_summed_over_workers_and_others,
	 they_come_in_the_order_in_which_they_came_up,
	 reset_sets_all_to_0_and_starts_keep_them, a_reset_beside_puts,
	 names_have_a_length_and_a_number,
	 worker_time_counts_each_run_also_one_that_failed,
	 worker_time_is_in_seconds, each_logger_gets_all_after_each_run,
	 loggers_of_several_workers, a_logger_may_come_at_most_every_so_often,
	 a_logger_that_fails_is_reported_and_harms_nothing)
