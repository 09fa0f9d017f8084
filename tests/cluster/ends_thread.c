/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function that ends the thread it runs on: a worker process whose main thread
 * is gone must not look alive.
 */
#include "../support/api_util.h"

#include <evcoord/cluster.h>
#include <math.h>
#include <pthread.h>

/* [how many attempts do that] */
static evc_status
leave(evc_exec *x, void *arg)
{
	evc_exec_info info;
	unsigned n;

	(void)arg;
	if (evc_exec_unpack(x, "[u]", &n) < 0 || evc_exec_get(x, &info) < 0)
		return EVC_INVALID_ARGUMENT;
	if (info.attempt <= n)
		pthread_exit(NULL);
	return evc_exec_return(x, "u", info.attempt);
}

static const evc_function functions[] = {
	{ .name = "leave", .fn = leave },
};

static void
begin(evc_coord **c, evc_cluster **cl)
{
	/* The process is not waited for: it ends by itself. */
	const evc_cluster_config config = { .lease = INFINITY };

	OK(evc_new(NULL, NULL, c));
	OK(evc_cluster_open(*c, "processes://1", &config, cl));
}

static void
end(evc_coord *c, evc_cluster *cl)
{
	evc_cluster_close(cl);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}

START_TEST(it_runs_again_in_another_life)
{
	evc_remote_info info;
	evc_cluster *cl;
	unsigned attempt;
	evc_remote *r;
	evc_value v;
	evc_coord *c;

	begin(&c, &cl);
	OK(evc_schedule_pack(cl, "leave", NULL, &r, "[u]", 1u));
	OK(evc_remote_fetch(r, 60, &v));
	OK(evc_unpack(&v, "u", &attempt));
	ck_assert_uint_eq(attempt, 2);
	OK(evc_remote_get(r, &info));
	ck_assert_uint_eq(info.deaths, 1);
	evc_remote_free(r);
	OK(evc_cluster_join(cl, 60));
	end(c, cl);
}
END_TEST

START_TEST(one_that_always_does_is_given_up)
{
	evc_schedule_opts two = { .deaths = 2 };
	evc_remote_info info;
	evc_cluster *cl;
	evc_remote *r;
	evc_coord *c;

	begin(&c, &cl);
	OK(evc_schedule_pack(cl, "leave", &two, &r, "[u]", 9u));
	ck_assert_int_eq(evc_remote_fetch(r, 60, NULL), EVC_ABORTED);
	OK(evc_remote_get(r, &info));
	ck_assert_uint_eq(info.deaths, 2);
	HAS(info.text, "2 deaths; the last: worker 0 (pid ");
	HAS(info.text, "ended with exit status 1");
	evc_remote_free(r);
	ck_assert_int_eq(evc_cluster_join(cl, 60), EVC_ABORTED);
	end(c, cl);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("ends_thread");
	TCase *tcase = tcase_create("ends_thread");

	if (evc_worker_is())
		return evc_worker_main(functions, 1, NULL) != 0;
	tcase_set_timeout(tcase, 200);
	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, it_runs_again_in_another_life);
	tcase_add_test(tcase, one_that_always_does_is_given_up);
	return run_suite(suite);
}
