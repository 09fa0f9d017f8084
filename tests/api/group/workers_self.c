/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts, stops, resizes and frees by workers and loggers, of their own group
 * and of others.
 */
#include "../../support/workers_util.h"

/* ---- inside a worker ---- */

struct deed {
	evc_status (*what)(evc_group *group, void *arg);
	void *arg;
	atomic_int go, done, result, active, told;
	char why[256];
};

/* One worker of the group does it, once, when it may; others beat. */
static evc_status
crew_deed(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	struct deed *d = k->more;
	int one = 1;

	crew_enter(group, id, k);
	if (atomic_compare_exchange_strong(&d->go, &one, 2)) {
		atomic_store(&d->result, d->what(group, d->arg));
		snprintf(d->why, sizeof(d->why), "%s", evc_last_error());
		atomic_store(&d->active, evc_group_is_active(group));
		atomic_store(&d->told, evc_should_stop(evc_group_scope(group)));
		atomic_store(&d->done, 1);
	} else {
		evc_sleep(evc_group_scope(group), 0.001);
	}
	return crew_leave(k, 0);
}

static evc_status
stop_registry(evc_group *group, void *arg)
{
	(void)arg;
	return evc_registry_stop(evc_group_registry(group), NULL);
}

static evc_status
stop_own(evc_group *group, void *arg)
{
	(void)arg;
	return evc_group_stop(group, NULL);
}

static evc_status
stop_own_name(evc_group *group, void *arg)
{
	(void)arg;
	return evc_registry_stop_name(evc_group_registry(group), "train", NULL);
}

START_TEST(a_worker_that_stops_is_left_out_of_the_wait)
{
	static evc_status (*const ways[])(evc_group *,
					  void *) = { stop_registry, stop_own,
						      stop_own_name };
	int way;

	for (way = 0; way < 3; way++) {
		evc_registry *reg = new_registry(0);
		struct deed d = { .what = ways[way], .result = 77 };
		struct crew k = { .run = crew_deed, .more = &d },
			    other = { 0 };

		crew_add(reg, "train", &k, 4, NULL);
		crew_add(reg, "other", &other, 2, NULL);
		OK(evc_registry_start(reg));
		UNTIL(atomic_load(&k.runs) > 8);
		atomic_store(&d.go, 1);
		UNTIL(atomic_load(&d.done));
		ck_assert_int_eq(d.result, 0);
		ck_assert_int_eq(d.active, 0);
		ck_assert_int_eq(d.told, 1);
		/* It goes on to its end, and then nobody is left. */
		ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
		CALLED(&k, 1, 1, 1, 1, 1);
		ck_assert_int_eq(evc_group_is_active(other.group), way != 0);
		OK(evc_registry_stop(reg, NULL));
		CALLED(&k, 1, 1, 1, 1, 1);
		CALLED(&other, 1, 1, 1, 1, 1);
		ck_assert_uint_eq(info_of(k.group).n_errors, 0);
		OK(evc_registry_start(reg));
		end_registry(reg);
	}
}
END_TEST

static evc_status
stop_another(evc_group *group, void *arg)
{
	(void)group;
	return evc_group_stop(arg, NULL);
}

static evc_status
start_another(evc_group *group, void *arg)
{
	(void)group;
	return evc_group_start(arg);
}

START_TEST(a_worker_stops_and_starts_another_group)
{
	evc_registry *reg = new_registry(0);
	struct crew other = { 0 };
	struct deed d = { .what = stop_another, .result = 77 };
	struct crew k = { .run = crew_deed, .more = &d };

	crew_add(reg, "train", &k, 1, NULL);
	d.arg = crew_add(reg, "other", &other, 3, NULL);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&other.runs) > 3);
	atomic_store(&d.go, 1);
	UNTIL(atomic_load(&d.done));
	ck_assert_int_eq(d.result, 0);
	ck_assert_int_eq(d.active, 1);
	STATE(other.group, EVC_GROUP_STOPPED);
	CALLED(&other, 1, 1, 1, 1, 1);
	d.what = start_another;
	atomic_store(&d.done, 0);
	atomic_store(&d.go, 1);
	UNTIL(atomic_load(&d.done));
	ck_assert_int_eq(d.result, 0);
	STATE(other.group, EVC_GROUP_RUNNING);
	end_registry(reg);
	CALLED(&other, 2, 2, 2, 2, 2);
}
END_TEST

static evc_status
resize_to_5(evc_group *group, void *arg)
{
	(void)arg;
	return evc_group_resize(group, 5);
}

static evc_status
resize_to_1(evc_group *group, void *arg)
{
	(void)arg;
	return evc_group_resize(group, 1);
}

static evc_status
start_all(evc_group *group, void *arg)
{
	(void)arg;
	return evc_registry_start(evc_group_registry(group));
}

static evc_status
pause_and_resume(evc_group *group, void *arg)
{
	(void)arg;
	if (evc_group_pause(group) != 0)
		return 66;
	return evc_group_resume(group);
}

static evc_status
wait_finish(evc_group *group, void *arg)
{
	(void)arg;
	/* The others go on. */
	return evc_group_wait_finish(group, 0.02) ? 1 : 0;
}

START_TEST(a_worker_resizes_starts_and_pauses_its_own)
{
	static evc_status (*const deeds[])(evc_group *, void *) = {
		resize_to_5, start_all,   pause_and_resume,
		wait_finish, resize_to_1, start_all
	};
	evc_registry *reg = new_registry(0);
	struct deed d = { 0 };
	struct crew k = { .run = crew_deed, .more = &d };
	size_t i;

	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_registry_start(reg));
	for (i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
		d.what = deeds[i];
		d.result = 77;
		atomic_store(&d.done, 0);
		atomic_store(&d.go, 1);
		UNTIL(atomic_load(&d.done));
		ck_assert_int_eq(d.result, 0);
		ck_assert_int_eq(d.active, 1);
		if (i == 0)
			UNTIL(atomic_load(&k.by_id[4]) > 0);
	}
	UNTIL(info_of(k.group).n_live == 1);
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
}
END_TEST

static evc_status
free_own(evc_group *group, void *arg)
{
	(void)arg;
	return evc_group_free(group);
}

static evc_status
free_registry(evc_group *group, void *arg)
{
	(void)arg;
	return evc_registry_free(evc_group_registry(group));
}

/* It is stopped, and this one lives still. */
static evc_status
stop_and_start(evc_group *group, void *arg)
{
	(void)arg;
	return evc_group_stop(group, NULL) == 0 ? evc_group_start(group) : 66;
}

static evc_status
stop_and_free(evc_group *group, void *arg)
{
	(void)arg;
	return evc_group_stop(group, NULL) == 0 ? evc_group_free(group) : 66;
}

START_TEST(a_worker_cannot_free_itself_nor_start_itself_again)
{
	static evc_status (*const deeds[])(evc_group *, void *) = {
		free_own, free_registry, stop_and_start, stop_and_free
	};
	size_t i;

	for (i = 0; i < 4; i++) {
		evc_registry *reg = new_registry(0);
		struct deed d = { .what = deeds[i], .go = 1, .result = 77 };
		struct crew k = { .run = crew_deed, .more = &d };

		crew_add(reg, "train", &k, 1, NULL);
		OK(evc_registry_start(reg));
		UNTIL(atomic_load(&d.done));
		ck_assert_int_eq(d.result, -EVC_FAILED_PRECONDITION);
		ck_assert_str_ne(d.why, "");
		ck_assert_int_eq(d.active, i < 2);
		end_registry(reg);
		CALLED(&k, 1, 1, 1, 1, 1);
	}
}
END_TEST

struct meeting {
	evc_group *other[4];
	atomic_int in, result[4];
	bool all;
};

static evc_status
stop_each_other(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;
	struct meeting *m = k->more;

	crew_enter(group, id, k);
	if (!atomic_load(&k->open)) {
		atomic_store(&k->open, 1);
		atomic_fetch_add(&m->in, 1);
		while (atomic_load(&m->in) < 4)
			t_sleep(0.0001);
		atomic_store(
			&m->result[id],
			m->all ? evc_registry_stop(evc_group_registry(group),
						   NULL)
			       : evc_group_stop(m->other[(id + 1) % 4], NULL));
		atomic_fetch_add(&m->in, 1);
	}
	evc_sleep(evc_group_scope(group), 0.001);
	return crew_leave(k, 0);
}

/* In a ring, and all for all: a worker that waits is not waited for. */
START_TEST(workers_that_stop_each_other)
{
	int all, i;

	for (all = 0; all < 2; all++) {
		evc_registry *reg = new_registry(T_LIMIT);
		struct meeting m = { .all = all };
		struct crew k[4] = { { 0 } };

		for (i = 0; i < 4; i++) {
			m.result[i] = 77;
			k[i].run = stop_each_other;
			k[i].more = &m;
			m.other[i] = crew_add(reg, "train", &k[i], 1, NULL);
		}
		OK(evc_registry_start(reg));
		UNTIL(atomic_load(&m.in) == 8);
		for (i = 0; i < 4; i++)
			OK(m.result[i]);
		end_registry(reg);
		for (i = 0; i < 4; i++)
			CALLED(&k[i], 1, 1, 1, 1, 1);
	}
}
END_TEST

/* ---- inside a logger ---- */

static evc_status
logger_stops(evc_group *group, const evc_metric *metrics, unsigned n, void *arg)
{
	struct deed *d = arg;
	int one = 1;

	(void)metrics;
	(void)n;
	if (atomic_compare_exchange_strong(&d->go, &one, 2)) {
		atomic_store(&d->result, d->what(group, NULL));
		atomic_store(&d->done, 1);
	}
	return 0;
}

START_TEST(a_logger_that_stops_is_left_out_of_the_wait)
{
	static evc_status (*const ways[])(evc_group *,
					  void *) = { stop_registry, stop_own,
						      stop_own_name };
	int way;

	for (way = 0; way < 3; way++) {
		evc_registry *reg = new_registry(0);
		struct deed d = { .what = ways[way], .result = 77 };
		evc_logger logger = { .fn = logger_stops, .arg = &d };
		evc_group_opts o = { .loggers = &logger, .n_loggers = 1 };
		struct crew k = { 0 };

		crew_add(reg, "train", &k, 3, &o);
		OK(evc_registry_start(reg));
		UNTIL(atomic_load(&k.runs) > 6);
		atomic_store(&d.go, 1);
		UNTIL(atomic_load(&d.done));
		ck_assert_int_eq(d.result, 0);
		ck_assert(evc_group_wait_finish(k.group, T_LIMIT));
		end_registry(reg);
		CALLED(&k, 1, 1, 1, 1, 1);
	}
}
END_TEST

API_MAIN("workers_self", a_worker_that_stops_is_left_out_of_the_wait,
	 a_worker_stops_and_starts_another_group,
	 a_worker_resizes_starts_and_pauses_its_own,
	 a_worker_cannot_free_itself_nor_start_itself_again,
	 workers_that_stop_each_other,
	 a_logger_that_stops_is_left_out_of_the_wait)
