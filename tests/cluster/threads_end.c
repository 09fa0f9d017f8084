/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that end the thread of their worker leave nothing behind: not what
 * they were called with, not what they have returned, nor what they built.
 */
#include "../support/cluster_util.h"

#include <malloc.h>

#define LARGE ((size_t)1 << 20)
#define ROUNDS 24
/* What may be more than it was, of ROUNDS * LARGE at least. */
#define SLACK (4 * LARGE)

static evc_status
large(evc_exec *x)
{
	char *bytes = calloc(1, LARGE);
	evc_status st;

	if (bytes == NULL)
		return EVC_RESOURCE_EXHAUSTED;
	st = evc_exec_return(x, "B", bytes, LARGE);
	free(bytes);
	return st;
}

static evc_status
f_large(evc_exec *x, void *arg)
{
	(void)arg;
	return large(x);
}

static evc_status
f_ends(evc_exec *x, void *arg)
{
	(void)arg;
	(void)large(x);
	pthread_exit(NULL);
}

/* The kept is the function's, when it does not come to its end. */
static evc_status
f_keeps_and_ends(evc_exec *x, void *arg)
{
	static const evc_keep_ops ops = { .free = free };
	static int none;

	(void)arg;
	OK(evc_exec_keep(x, &ops, &none));
	(void)large(x);
	pthread_exit(NULL);
}

static const evc_function table[] = {
	{ .name = "large", .fn = f_large },
	{ .name = "ends", .fn = f_ends },
	{ .name = "keeps_and_ends", .fn = f_keeps_and_ends },
};

static evc_coord *c;
static evc_cluster *cl;

static void
begin(unsigned deaths)
{
	const evc_cluster_config config = {
		.functions = table,
		.n_functions = sizeof table / sizeof table[0],
		.worker_wait = 0.05,
		.deaths = deaths,
	};

	OK(evc_new(NULL, NULL, &c));
	cl = open_with(c, "threads://2", &config);
}

/* One that is called with what another one has returned. */
static void
a_function(void)
{
	evc_remote *r;

	begin(1);
	OK(evc_schedule(cl, "large", NULL, NULL, NULL, &r));
	OK(evc_schedule_pack(cl, "ends", NULL, NULL, "[rr]", r, r));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_ABORTED);
	evc_remote_free(r);
	end_coord_with(c, cl);
}

static void
build(const char *function)
{
	evc_per_worker *p;

	/* Never given up: it ends both. */
	begin(255);
	OK(evc_per_worker_value(cl, "it", function, NULL, &p));
	OK(evc_schedule(cl, "large", NULL, NULL, NULL, NULL));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	evc_per_worker_free(p);
	end_coord_with(c, cl);
}

static void
a_build(void)
{
	build("ends");
}

static void
a_build_that_keeps(void)
{
	build("keeps_and_ends");
}

static size_t
memory(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

START_TEST(nothing_is_left_of_one_that_ends_its_thread)
{
	static void (*const rounds[])(void) = { a_function, a_build,
						a_build_that_keeps };
	struct census n = census_begin();
	size_t before;
	int i;

	rounds[_i]();
	census_end(&n);
	before = memory();
	for (i = 0; i < ROUNDS; i++)
		rounds[_i]();
	/* Where a tool has its own memory, that tool looks for it. */
	ck_assert_uint_lt(memory(), before + SLACK);
	census_end(&n);
}
END_TEST

T_MAIN("threads_end", NULL, NULL,
       T_TIMES(nothing_is_left_of_one_that_ends_its_thread, 3))
