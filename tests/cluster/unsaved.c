/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A checkpoint that cannot be saved, because its folder is gone or its disk is
 * full: the numbers, the report, a join that is late, the close and the verdict
 * say so, and none of them when it is saved again.
 */
#include "../support/cluster_util.h"
#include "../support/folder_util.h"

#include <evcoord/observe.h>
#include <signal.h>
#include <sys/resource.h>

static char away[80];
static evc_coord *c;
static evc_cluster *cl;

static evc_status
f_too_many(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_fail(x, EVC_OUT_OF_RANGE, "one too many");
}

static evc_status
f_wait_for(evc_exec *x, void *arg)
{
	while (!atomic_load((atomic_int *)arg) && !evc_exec_should_stop(x))
		t_sleep(0.001);
	return 0;
}

/* Waits until it is asked to stop, and then fails. */
static evc_status
f_end_badly(evc_exec *x, void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
	while (!evc_exec_should_stop(x))
		t_sleep(0.001);
	return evc_exec_fail(x, EVC_DATA_LOSS, "it was half done");
}

static atomic_int go, n_bad;
static const evc_function table[] = {
	{ .name = "fail", .fn = f_too_many },
	{ .name = "wait", .fn = f_wait_for, .arg = &go },
	{ .name = "end badly", .fn = f_end_badly, .arg = &n_bad },
};

/* The errors that the log hook was given: how many, and the last of them.  Two
   threads may call the hook at once. */
static pthread_mutex_t logged_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int n_logged;
static char logged[512];

static void
keep_errors(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)r, (void)arg;
	if (level != EVC_LOG_ERROR)
		return;
	pthread_mutex_lock(&logged_lock);
	snprintf(logged, sizeof logged, "%s", line);
	pthread_mutex_unlock(&logged_lock);
	atomic_fetch_add(&n_logged, 1);
}

static void
begin(double every)
{
	evc_cluster_config config = { .functions = table,
				      .n_functions = 3,
				      .checkpoint = path,
				      .checkpoint_every = every };
	const evc_config above = { .log = keep_errors };

	folder_make();
	snprintf(away, sizeof away, "%s-away", folder);
	atomic_store(&go, 0);
	atomic_store(&n_bad, 0);
	atomic_store(&n_logged, 0);
	OK(evc_new(NULL, &above, &c));
	OK(evc_cluster_open(c, "threads://2", &config, &cl));
}

static evc_status
end(evc_verdict *v)
{
	evc_join_opts o = { .grace = T_LIMIT };
	char command[200];
	evc_status st = evc_join(c, &o, v);

	snprintf(command, sizeof command, "rm -rf %s %s", folder, away);
	ck_assert_int_eq(system(command), 0);
	OK(evc_free(c));
	return st;
}

static evc_cluster_info
numbers(void)
{
	evc_cluster_info i;

	OK(evc_cluster_get(cl, &i));
	return i;
}

/* "NEEDLE" is in the report, or is not. */
static bool
reports(const char *needle)
{
	char text[4000];

	ck_assert_uint_lt(own_report(evc_cluster_scope(cl), text, sizeof text),
			  sizeof text);
	return strstr(text, needle) != NULL;
}

START_TEST(it_is_said_as_long_as_it_lasts)
{
	evc_verdict v;

	begin(0.002);
	ck_assert_uint_eq(numbers().n_unsaved, 0);
	ck_assert(numbers().unsaved == 0 && !reports("checkpoint not saved"));
	ck_assert_int_eq(rename(folder, away), 0);
	OK(evc_variable_add(cl, "n", 1, NULL));
	UNTIL(numbers().n_unsaved > 2);
	ck_assert(numbers().unsaved > 0);
	ck_assert(reports("checkpoint not saved for ") && reports(folder));
	OK(evc_schedule(cl, "wait", NULL, NULL, NULL, NULL));
	ck_assert_int_eq(evc_cluster_join(cl, 0.01), -EVC_DEADLINE_EXCEEDED);
	HAS(evc_last_error(), "checkpoint not saved for ");
	/* It is over with the first one that is saved. */
	ck_assert_int_eq(rename(away, folder), 0);
	UNTIL(numbers().n_unsaved == 0);
	ck_assert(numbers().unsaved == 0 && !reports("checkpoint not saved"));
	atomic_store(&go, 1);
	OK(evc_cluster_join(cl, T_LIMIT));
	OK(evc_cluster_close(cl));
	OK(end(&v));
	ck_assert_uint_eq(v.n_errors, 0);
}
END_TEST

START_TEST(the_close_says_it)
{
	evc_verdict v;

	begin(0.002);
	ck_assert_int_eq(rename(folder, away), 0);
	OK(evc_variable_add(cl, "n", 1, NULL));
	UNTIL(numbers().n_unsaved > 0);
	ck_assert_int_eq(evc_cluster_close(cl), EVC_NOT_FOUND);
	HAS(evc_last_error(), "checkpoint not saved for ");
	HAS(evc_last_error(), folder);
	ck_assert_int_eq(end(&v), EVC_NOT_FOUND);
	HAS(v.error.text, "checkpoint not saved: ");
	HAS(v.error.text, folder);
}
END_TEST

/* Nobody has tried before: the verdict is the one place left. */
START_TEST(the_last_save_is_in_the_verdict)
{
	evc_verdict v;

	begin(INFINITY);
	OK(evc_variable_add(cl, "n", 1, NULL));
	ck_assert_int_eq(rename(folder, away), 0);
	OK(evc_cluster_close(cl));
	ck_assert_int_eq(end(&v), EVC_NOT_FOUND);
	ck_assert_uint_eq(v.n_errors, 1);
	HAS(v.error.text, "checkpoint not saved: ");
}
END_TEST

/* The disk is full: nothing more than a byte fits into a file. */
START_TEST(a_full_disk)
{
	struct rlimit was, none;
	evc_status st;
	char why[200];

	begin(INFINITY);
	OK(evc_variable_add(cl, "n", 1, NULL));
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
	none = was;
	none.rlim_cur = 1;
	/* No signal comes of it, which would end the program. */
	signal(SIGXFSZ, SIG_DFL);
	/* No check in between: each of them writes to a file. */
	setrlimit(RLIMIT_FSIZE, &none);
	st = evc_cluster_save(cl, NULL);
	snprintf(why, sizeof why, "%s", evc_last_error());
	setrlimit(RLIMIT_FSIZE, &was);
	ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
	HAS(why, "cannot be written");
	ck_assert_uint_eq(numbers().n_unsaved, 1);
	ck_assert(reports("cannot be written"));
	ck_assert_int_eq(evc_cluster_close(cl), EVC_RESOURCE_EXHAUSTED);
	/* There is room again when the last save is made. */
	OK(end(NULL));
}
END_TEST

START_TEST(the_close_says_an_error_that_nobody_took)
{
	begin(INFINITY);
	OK(evc_schedule(cl, "fail", NULL, NULL, NULL, NULL));
	UNTIL(numbers().n_failed == 1);
	ck_assert_int_eq(evc_cluster_close(cl), EVC_OUT_OF_RANGE);
	HAS(evc_last_error(), "fail: one too many");
	/* An error of a function is none of the coordinator. */
	OK(end(NULL));

	begin(INFINITY);
	OK(evc_schedule(cl, "fail", NULL, NULL, NULL, NULL));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_OUT_OF_RANGE);
	OK(evc_cluster_close(cl));
	OK(evc_cluster_close(NULL));
	OK(end(NULL));
	/* What was raised, and what the close has said, is no line more. */
	ck_assert_int_eq(atomic_load(&n_logged), 0);
}
END_TEST

/* It comes when all have gone: the log of the coordinator hears of it. */
START_TEST(the_log_hears_of_an_error_that_comes_after_the_close)
{
	evc_verdict v;
	int i;

	begin(INFINITY);
	for (i = 0; i < 2; i++)
		OK(evc_schedule(cl, "end badly", NULL, NULL, NULL, NULL));
	UNTIL(atomic_load(&n_bad) == 2);
	OK(evc_cluster_close(cl));
	/* Nobody could take it. */
	ck_assert_int_eq(end(&v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_errors, 2);
	HAS(v.error.text, "after the close: end badly on worker ");
	ck_assert_int_eq(atomic_load(&n_logged), 2);
	HAS(logged, "DATA_LOSS");
	HAS(logged, "after the close: end badly on worker ");
	HAS(logged, ": it was half done");
}
END_TEST

/* The stop of the coordinator ends it, and the close comes behind: nobody had
   taken it when the join answered, so both say it. */
START_TEST(the_close_says_an_error_that_a_stop_has_left)
{
	evc_join_opts o = { .grace = T_LIMIT };
	evc_verdict v;

	begin(INFINITY);
	OK(evc_schedule(cl, "end badly", NULL, NULL, NULL, NULL));
	UNTIL(atomic_load(&n_bad) == 1);
	evc_request_stop(c, 0, NULL);
	ck_assert_int_eq(evc_join(c, &o, &v), EVC_DATA_LOSS);
	HAS(v.error.text, "end badly on worker ");
	ck_assert_int_eq(evc_cluster_close(cl), EVC_DATA_LOSS);
	HAS(evc_last_error(), "half done");
	ck_assert_int_eq(end(NULL), EVC_DATA_LOSS);
	ck_assert_int_eq(atomic_load(&n_logged), 1);
}
END_TEST

API_MAIN("unsaved", it_is_said_as_long_as_it_lasts, the_close_says_it,
	 the_last_save_is_in_the_verdict, a_full_disk,
	 the_close_says_an_error_that_nobody_took,
	 the_log_hears_of_an_error_that_comes_after_the_close,
	 the_close_says_an_error_that_a_stop_has_left)
