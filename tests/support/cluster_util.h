/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the cluster's calls share: functions for workers that are
 * threads, a cluster of them, and a loop on a thread of the test's own.
 */
#ifndef TESTS_SUPPORT_CLUSTER_UTIL_H
#define TESTS_SUPPORT_CLUSTER_UTIL_H

#include "api_util.h"

#include <ev.h>
#include <evcoord/cluster.h>

/* ---- functions ---- */

/* Those that are held: how many are in, and whether they may go. */
static atomic_int f_in, f_open;

static evc_status
f_add(evc_exec *x, void *arg)
{
	int a, b;

	(void)arg;
	if (evc_exec_unpack(x, "[ii]", &a, &b) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT,
				     "two numbers are needed");
	return evc_exec_return(x, "i", a + b);
}

/* The whole of what it was given. */
static evc_status
f_echo(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "v", evc_exec_args(x));
}

static evc_status
f_fail(evc_exec *x, void *arg)
{
	int code = EVC_DATA_LOSS;

	(void)arg;
	(void)evc_exec_unpack(x, "[i]", &code);
	return evc_exec_fail(x, code, "it was asked to fail");
}

/* Until it may go, or is asked to stop, whatever comes first. */
static evc_status
f_hold(evc_exec *x, void *arg)
{
	(void)arg;
	atomic_fetch_add(&f_in, 1);
	while (!atomic_load(&f_open))
		if (evc_exec_wait_for_stop(x, 0.001))
			return EVC_CANCELLED;
	return evc_exec_return(x, "s", "held");
}

/* Until it may go, whoever asks. */
static evc_status
f_deaf(evc_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	atomic_fetch_add(&f_in, 1);
	while (!atomic_load(&f_open))
		t_sleep(0.001);
	return 0;
}

static const evc_function f_table[] = {
	{ .name = "add", .fn = f_add },	  { .name = "echo", .fn = f_echo },
	{ .name = "fail", .fn = f_fail }, { .name = "hold", .fn = f_hold },
	{ .name = "deaf", .fn = f_deaf },
};

#define F_CONFIG \
	.functions = f_table, \
	.n_functions = sizeof(f_table) / sizeof(f_table[0])

/* ---- clusters ---- */

static MAYBE_UNUSED evc_cluster *
open_with(evc_coord *c, const char *uri, const evc_cluster_config *config)
{
	evc_cluster *cl = NULL;
	evc_status st = evc_cluster_open(c, uri, config, &cl);

	ck_assert_msg(st == 0, "%s: %d, %s", uri, st, evc_last_error());
	ck_assert_ptr_nonnull(cl);
	return cl;
}

/* Threads that know the functions above. */
static MAYBE_UNUSED evc_cluster *
open_threads(evc_coord *c, const char *uri)
{
	evc_cluster_config config = { F_CONFIG };

	atomic_store(&f_in, 0);
	atomic_store(&f_open, 0);
	return open_with(c, uri, &config);
}

static MAYBE_UNUSED evc_remote *
schedule(evc_cluster *cl, const char *function)
{
	evc_remote *r = NULL;

	OK(evc_schedule(cl, function, NULL, NULL, NULL, &r));
	ck_assert_ptr_nonnull(r);
	return r;
}

static MAYBE_UNUSED evc_remote *
schedule_add(evc_cluster *cl, int a, int b)
{
	evc_remote *r = NULL;

	OK(evc_schedule_pack(cl, "add", NULL, &r, "[ii]", a, b));
	return r;
}

/* What a value says. */
#define IS_VALUE(value, text) \
	do { \
		char is_value_[500]; \
		evc_value_print((value), is_value_, sizeof(is_value_)); \
		ck_assert_str_eq(is_value_, (text)); \
	} while (0)

/* The coordinator's end: joined with this verdict and freed, nothing is left in
   it. */
static MAYBE_UNUSED void
end_coord_says(evc_coord *c, evc_status st)
{
	evc_verdict v;

	OK(evc_request_stop(c, 0, "the test is over"));
	ck_assert_int_eq(evc_join(c, NULL, &v), st);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_msg(evc_free(c) == 0, "%s", evc_last_error());
}

static MAYBE_UNUSED void
end_coord(evc_coord *c)
{
	end_coord_says(c, 0);
}

/* Close a cluster, then free its coordinator, as a program does at its end. */
static MAYBE_UNUSED void
end_coord_with(evc_coord *c, evc_cluster *cl)
{
	evc_cluster_close(cl);
	end_coord(c);
}

/* ---- threads and descriptors of the process, before and after ---- */

struct census {
	int threads, fds;
};

static MAYBE_UNUSED struct census
census_begin(void)
{
	struct census n = { t_count_threads(), t_count_fds() };

	return n;
}

static MAYBE_UNUSED void
census_end(const struct census *n)
{
	ck_assert_int_eq(t_settle_threads(n->threads), n->threads);
	ck_assert_int_eq(t_settle_fds(n->fds), n->fds);
}

#endif
