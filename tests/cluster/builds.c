/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds of per-worker values that go wrong in the worst ways: one that ends
 * each worker is given up, and is felt by those alone who use it; one that does
 * not end is named.
 */
#include "../support/api_util.h"

#include <evcoord/cluster.h>
#include <signal.h>

static evc_status
die(evc_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	raise(SIGKILL);
	return 0;
}

static evc_status
build_for_ever(evc_exec *x, void *arg)
{
	(void)arg;
	while (!evc_exec_wait_for_stop(x, INFINITY))
		;
	return evc_exec_return(x, "n");
}

static evc_status
leave(evc_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	_exit(0);
}

static atomic_bool enough;

/* Hears nothing of a stop. */
static evc_status
build_deaf(evc_exec *x, void *arg)
{
	(void)arg;
	while (!atomic_load(&enough))
		t_sleep(0.01);
	return evc_exec_return(x, "n");
}

static evc_status
build(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "i", 5);
}

/* [value of each worker, ...] or [] */
static evc_status
use(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "i", 7);
}

static const evc_function functions[] = {
	{ .name = "die", .fn = die },
	{ .name = "leave", .fn = leave },
	{ .name = "build for ever", .fn = build_for_ever },
	{ .name = "build deaf", .fn = build_deaf },
	{ .name = "build", .fn = build },
	{ .name = "use", .fn = use },
};
#define N_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

static evc_coord *c;
static evc_cluster *cl;

static void
begin(const char *uri, unsigned deaths)
{
	evc_cluster_config k = { .functions = functions,
				 .n_functions = N_FUNCTIONS,
				 .deaths = deaths };

	OK(evc_new(NULL, NULL, &c));
	OK(evc_cluster_open(c, uri, &k, &cl));
}

static void
end(void)
{
	evc_cluster_close(cl);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}

START_TEST(one_that_ends_workers_is_given_up)
{
	evc_per_worker *good, *poison;
	evc_remote *with, *without;
	evc_remote_info info;

	begin("processes://2", 2);
	OK(evc_per_worker_value(cl, "good", "build", NULL, &good));
	OK(evc_per_worker_value(cl, "poison", "die", NULL, &poison));
	/* Of all functions this one least deserves to be blamed. */
	OK(evc_schedule_pack(cl, "use", NULL, &without, "[w]", good));
	OK(evc_remote_fetch(without, 60, NULL));
	OK(evc_remote_get(without, &info));
	ck_assert_uint_eq(info.deaths, 0);
	OK(evc_schedule_pack(cl, "use", NULL, &with, "[w]", poison));
	ck_assert_int_eq(evc_remote_fetch(with, 60, NULL), EVC_ABORTED);
	OK(evc_remote_get(with, &info));
	ck_assert_uint_eq(info.kind, EVC_FAILED_INPUT);
	ck_assert_uint_eq(info.deaths, 0);
	HAS(info.text, "input poison on worker");
	ck_assert_int_eq(evc_cluster_join(cl, 60), EVC_ABORTED);
	evc_remote_free(with);
	evc_remote_free(without);
	evc_per_worker_free(poison);
	evc_per_worker_free(good);
	/* Nothing is left of it. */
	OK(evc_schedule_pack(cl, "use", NULL, &without, "[]"));
	OK(evc_remote_fetch(without, 60, NULL));
	evc_remote_free(without);
	end();
}
END_TEST

/* Also when it does so in good order. */
START_TEST(one_that_exits_is_a_failure)
{
	evc_per_worker *p;
	evc_cluster_info info;

	begin("processes://1", 2);
	OK(evc_per_worker_value(cl, "leaver", "leave", NULL, &p));
	do
		OK(evc_cluster_get(cl, &info));
	while (info.n_worker_failures < 2);
	evc_per_worker_free(p);
	end();
}
END_TEST

static bool
is_named(void)
{
	return evc_cluster_join(cl, 0.05) == -EVC_DEADLINE_EXCEEDED &&
	       strstr(evc_last_error(), "builds endless for") != NULL;
}

static void
endless(const char *uri)
{
	evc_per_worker *p;

	begin(uri, 0);
	OK(evc_per_worker_value(cl, "endless", "build for ever", NULL, &p));
	OK(evc_schedule_pack(cl, "use", NULL, NULL, "[]"));
	UNTIL(is_named());
	evc_per_worker_free(p);
	end();
}

START_TEST(one_that_does_not_end_is_named_on_threads)
{
	endless("threads://1");
}
END_TEST

START_TEST(one_that_does_not_end_is_named_on_processes)
{
	endless("processes://1");
}
END_TEST

/* ---- a stop ---- */

static atomic_int n_told;

static void
listen_log(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)level;
	(void)r;
	(void)arg;
	if (strstr(line, "was told to leave, and has not ended") != NULL)
		atomic_fetch_add(&n_told, 1);
	ck_assert_msg(strstr(line, "use was asked") == NULL, "%s", line);
}

/* The function behind the build has not begun. */
static void
stop_behind(const char *uri)
{
	const evc_config config = { .log = listen_log };
	evc_cluster_config k = { .functions = functions,
				 .n_functions = N_FUNCTIONS,
				 .grace = 0.5 };
	evc_cluster_worker_info w;
	evc_remote_info info;
	evc_per_worker *p;
	evc_remote *r;

	OK(evc_new(NULL, &config, &c));
	OK(evc_cluster_open(c, uri, &k, &cl));
	OK(evc_per_worker_value(cl, "deaf", "build deaf", NULL, &p));
	OK(evc_schedule_pack(cl, "use", NULL, &r, "[]"));
	do
		OK(evc_cluster_worker_get(cl, 0, &w));
	while (w.builds[0] == '\0');
	evc_request_stop(c, 0, "enough");
	UNTIL(evc_remote_get(r, &info) == 0 && info.state == EVC_REMOTE_DONE);
	ck_assert_int_eq(info.code, EVC_CANCELLED);
	ck_assert_uint_eq(info.kind, EVC_FAILED_CANCEL);
	atomic_store(&enough, true);
	evc_remote_free(r);
	evc_per_worker_free(p);
	end();
}

START_TEST(one_that_hears_no_stop_on_threads)
{
	stop_behind("threads://1");
	ck_assert_int_eq(atomic_load(&n_told), 0);
}
END_TEST

START_TEST(one_that_hears_no_stop_on_processes)
{
	stop_behind("processes://1");
	ck_assert_int_eq(atomic_load(&n_told), 1);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("builds");
	TCase *tcase = tcase_create("builds");

	if (evc_worker_is())
		return evc_worker_main(functions, N_FUNCTIONS, NULL) != 0;
	tcase_set_timeout(tcase, 200);
	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, one_that_ends_workers_is_given_up);
	tcase_add_test(tcase, one_that_exits_is_a_failure);
	tcase_add_test(tcase, one_that_hears_no_stop_on_threads);
	tcase_add_test(tcase, one_that_hears_no_stop_on_processes);
	tcase_add_test(tcase, one_that_does_not_end_is_named_on_threads);
	tcase_add_test(tcase, one_that_does_not_end_is_named_on_processes);
	return run_suite(suite);
}
