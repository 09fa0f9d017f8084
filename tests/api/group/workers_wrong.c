/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups used wrongly: each case has a clear answer, and nothing is lost
 * or half done.
 */
#include "../../support/workers_util.h"

static evc_registry *reg;
static struct crew crew;

static void
make(void)
{
	memset(&crew, 0, sizeof(crew));
	reg = new_registry(0);
}

static evc_status
init_with(const char *name, evc_worker_fn *fn, const evc_group_opts *o)
{
	evc_group *group = (void *)&crew;
	evc_registry *got = (void *)&crew;
	evc_status st;

	st = evc_group_init(reg, name, fn, &crew, o, &group, &got);
	if (st != 0) /* untouched */
		ck_assert(group == (void *)&crew && got == (void *)&crew);
	else
		OK(evc_group_free(group));
	return st;
}

START_TEST(a_name_a_function_and_a_number_of_threads)
{
	evc_group_opts o = { .n_threads = 4097 };
	char name[40];

	make();
	REFUSED(EVC_INVALID_ARGUMENT, init_with("train", NULL, NULL));
	memset(name, 'n', sizeof(name));
	name[39] = '\0'; /* is cut */
	OK(init_with(name, crew_beat, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, init_with("train", crew_beat, &o));
	o.n_threads = 4096;
	OK(init_with("train", crew_beat, &o));
	/* What was refused has no id, and no group is left. */
	ck_assert_uint_eq(evc_registry_ids(reg, NULL, 0), 0);
	OK(evc_registry_start(reg));
	end_registry(reg);
}
END_TEST

START_TEST(options_that_mean_nothing)
{
	static const evc_logger good = { .fn = no_log };
	static const evc_logger no_fn = { .fn = NULL };
	static const evc_logger past = { .fn = no_log, .every = -1 };
	static const evc_logger nan_ = { .fn = no_log, .every = NAN };
	static const evc_logger many[17] = {
		{ .fn = no_log }, { .fn = no_log }, { .fn = no_log },
		{ .fn = no_log }, { .fn = no_log }, { .fn = no_log },
		{ .fn = no_log }, { .fn = no_log }, { .fn = no_log },
		{ .fn = no_log }, { .fn = no_log }, { .fn = no_log },
		{ .fn = no_log }, { .fn = no_log }, { .fn = no_log },
		{ .fn = no_log }, { .fn = no_log }
	};
	static const evc_status clean = 12;
	const evc_group_opts wrong[] = {
		{ .flags = 2 },
		{ .flags = 1u << 31 },
		{ .on_error = 3 },
		{ .restart = { .first = -1 } },
		{ .restart = { .first = NAN } },
		{ .restart = { .most = -1 } },
		{ .restart = { .most = NAN } },
		{ .restart = { .jitter = -0.1 } },
		{ .restart = { .jitter = 1.1 } },
		{ .restart = { .jitter = NAN } },
		{ .restart = { .within = -1 } },
		{ .restart = { .within = NAN } },
		{ .restart = { .codes = { EVC_UNAVAILABLE } } },
		{ .restart = { .reserved_ = { 1 } } },
		{ .n_loggers = 1 },
		{ .loggers = &no_fn, .n_loggers = 1 },
		{ .loggers = &past, .n_loggers = 1 },
		{ .loggers = &nan_, .n_loggers = 1 },
		{ .loggers = many, .n_loggers = 17 },
		{ .n_clean = 1 },
		{ .member = { .flags = EVC_OWN_THREAD } },
		{ .member = { .flags = EVC_PAUSED } },
		{ .member = { .flags = EVC_FLUSH } },
		{ .member = { .flags = EVC_ON_DRAIN } },
		{ .member = { .flags = 1u << 30 } },
		{ .member = { .grace = NAN } },
		{ .member = { .missed = EVC_MISSED_BURST } },
		{ .member = { .jitter = 0.5 } },
		{ .member = { .reserved_ = { 1 } } },
		{ .reserved_ = { 1 } },
		{ .reserved_ = { 0, 0, 0, 0, 0, 0, 0, 1 } }
	};
	evc_group_opts fine = {
		.loggers = many, .n_loggers = 16, .clean = &clean, .n_clean = 1
	};
	evc_status st;
	size_t i;

	make();
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		st = init_with("train", crew_beat, &wrong[i]);
		ck_assert_msg(st == -EVC_INVALID_ARGUMENT, "wrong[%zu]: %d", i,
			      st);
		ck_assert_str_ne(evc_last_error(), "");
	}
	OK(init_with("train", crew_beat, &fine));
	fine.loggers = &good;
	fine.n_loggers = 1;
	OK(init_with("train", crew_beat, &fine));
	ck_assert_uint_eq(evc_registry_ids(reg, NULL, 0), 0);
	end_registry(reg);
}
END_TEST

START_TEST(registries_with_wrong_options)
{
	const evc_registry_opts wrong[] = {
		{ .grace = NAN },
		{ .grace = -2 },
		{ .reserved_ = { 1 } },
		{ .reserved_ = { 0, 0, 0, 0, 0, 0, 0, 1 } },
		{ .config = { .grace = NAN } },
		{ .config = { .flags = 1u << 31 } },
		{ .config = { .max_reasons = 255 } },
		{ .config = { .reserved_ = { 1 } } }
	};
	evc_registry *none = NULL;
	evc_status st;
	size_t i;

	REFUSED(EVC_INVALID_ARGUMENT, evc_registry_new(NULL, NULL));
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		st = evc_registry_new(&wrong[i], &none);
		ck_assert_msg(st == -EVC_INVALID_ARGUMENT, "wrong[%zu]: %d", i,
			      st);
		ck_assert_ptr_null(none);
		st = evc_registry_configure(&wrong[i]);
		ck_assert_msg(st == -EVC_INVALID_ARGUMENT, "wrong[%zu]: %d", i,
			      st);
	}
}
END_TEST

START_TEST(NULL_in_every_place)
{
	evc_worker_error error;
	evc_worker_info worker;
	evc_group_info info;
	struct crew k = { 0 };
	evc_metric m;
	unsigned id;

	make();
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_start(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_stop(NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_resize(NULL, 1));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_pause(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_resume(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_get(NULL, &info));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_worker_get(NULL, 0, &worker));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_error_get(NULL, 0, &error));
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_metrics_reset(NULL));
	ck_assert(!evc_group_is_active(NULL));
	ck_assert_uint_eq(evc_group_ids(NULL, &id, 1), 0);
	ck_assert_uint_eq(evc_group_metrics(NULL, &m, 1), 0);
	ck_assert(evc_group_metric(NULL, "x") == 0);
	ck_assert_ptr_null(evc_group_scope(NULL));
	ck_assert_ptr_null(evc_group_registry(NULL));
	OK(evc_group_free(NULL));
	OK(evc_registry_free(NULL));
	crew_add(reg, "train", &k, 2, NULL);
	REFUSED(EVC_INVALID_ARGUMENT, evc_group_get(k.group, NULL));
	/* A question whether there is one. */
	OK(evc_group_worker_get(k.group, 0, NULL));
	REFUSED(EVC_NOT_FOUND, evc_group_worker_get(k.group, 100, NULL));
	REFUSED(EVC_NOT_FOUND, evc_group_error_get(k.group, 0, NULL));
	ck_assert(evc_group_metric(k.group, NULL) == 0);
	/* Past the end. */
	OK(evc_group_worker_get(k.group, 1, &worker));
	ck_assert_uint_eq(worker.id, 1);
	memset(&worker, 0x55, sizeof(worker));
	REFUSED(EVC_NOT_FOUND, evc_group_worker_get(k.group, 2, &worker));
	ck_assert_uint_eq(worker.id, 0x55555555);
	REFUSED(EVC_NOT_FOUND, evc_group_error_get(k.group, 0, &error));
	end_registry(reg);
}
END_TEST

START_TEST(a_stop_of_what_was_never_started)
{
	struct crew k = { 0 };

	make();
	crew_add(reg, "train", &k, 2, NULL);
	OK(evc_group_stop(k.group, NULL));
	OK(evc_registry_stop_name(reg, "train", NULL));
	OK(evc_registry_stop(reg, NULL));
	CALLED(&k, 0, 0, 0, 0, 0);
	STATE(k.group, EVC_GROUP_NEW);
	/* And it can be started all the same. */
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.runs) > 0);
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
}
END_TEST

START_TEST(a_group_below_a_stopped_coordinator)
{
	evc_coord *c = new_coord(NULL);
	evc_group_opts o = { .coord = c };
	struct crew k = { 0 }, other = { 0 };

	make();
	OK(evc_request_stop(c, 0, NULL));
	crew_add(reg, "other", &other, 1, NULL);
	crew_add(reg, "train", &k, 2, &o);
	REFUSED(EVC_CANCELLED, evc_group_start(k.group));
	CALLED(&k, 0, 0, 0, 0, 0);
	/* All or nothing: the other one does not run either. */
	REFUSED(EVC_CANCELLED, evc_registry_start(reg));
	ck_assert(!evc_group_is_active(other.group));
	ck_assert(!evc_group_is_active(k.group));
	ck_assert_int_eq(other.n_init, other.n_shutdown);
	ck_assert_int_ge(evc_join(c, NULL, NULL), 0);
	OK(evc_clear_stop(c));
	OK(evc_registry_start(reg));
	ck_assert(evc_group_is_active(k.group));
	end_registry(reg);
	OK(evc_free(c));
}
END_TEST

/* What a scope's owner may do, and others must not: the group holds it. */
START_TEST(the_scope_of_a_group_is_the_groups)
{
	struct crew k = { 0 };
	evc_coord *scope;

	make();
	crew_add(reg, "train", &k, 2, NULL);
	scope = evc_group_scope(k.group);
	OK(evc_registry_start(reg));
	ck_assert_ptr_eq(evc_group_scope(k.group), scope);
	/* Members of one's own may live in it, and are stopped with it. */
	OK(evc_thread_start(scope, "guest", obey, NULL, NULL, NULL));
	OK(evc_registry_stop(reg, NULL));
	end_registry(reg);
	CALLED(&k, 1, 1, 1, 1, 1);
}
END_TEST

API_MAIN("workers_wrong", a_name_a_function_and_a_number_of_threads,
	 options_that_mean_nothing, registries_with_wrong_options,
	 NULL_in_every_place, a_stop_of_what_was_never_started,
	 a_group_below_a_stopped_coordinator,
	 the_scope_of_a_group_is_the_groups)
