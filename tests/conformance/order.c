/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which function runs next, and where: priorities, functions for one worker, for
 * all of them, and names that nobody knows; and room in the queue.
 */
#include "functions.h"

/* More than an engine may hand to a busy worker ahead of time. */
enum { MANY = 3000 };

START_TEST(greater_priorities_run_first)
{
	static const int of[] = { -8, 0, 7, 3, -1, 7 };
	enum { N = sizeof(of) / sizeof(of[0]) };
	evc_remote *gate, *r[N];
	int64_t at[N];
	int i, j, many = t_many(MANY);

	begin(_i, 1);
	gate = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	/* Those of the least priority stand before them, and fill what the
	   worker may have taken already. */
	for (i = 0; i < many; i++)
		OK(evc_schedule_pack(on.cl, "count",
				     &(evc_schedule_opts){ .priority = -8 },
				     NULL, "[sd]", "order", 1.0));
	for (i = 0; i < N; i++)
		r[i] = SCHEDULE_WITH((&(evc_schedule_opts){
					     .priority = of[i] }),
				     "count", "[sd]", "order", 1.0);
	let_go("g");
	OK(join());
	for (i = 0; i < N; i++)
		at[i] = take_number(r[i]);
	evc_remote_free(gate);
	/* The one of the least came last of all, in its turn. */
	IS(at[0], many + N);
	for (i = 1; i < N; i++) {
		ck_assert_int_lt(at[i], many);
		for (j = 1; j < i; j++)
			ck_assert(of[j] >= of[i] ? at[j] < at[i] :
						   at[j] > at[i]);
	}
}
END_TEST

START_TEST(for_one_worker_alone)
{
	evc_schedule_opts at = { 0 };
	evc_remote *busy, *r[30];
	char name[48];
	unsigned i, w;

	begin(_i, 3);
	for (w = 0; w < 3; w++) {
		snprintf(name, sizeof(name), "%s", worker(w).name);
		at.worker = name;
		for (i = 0; i < 10; i++)
			r[w * 10 + i] = SCHEDULE_WITH(&at, "who", "[]");
	}
	for (i = 0; i < 30; i++) {
		evc_value v;
		unsigned index, attempt;
		char who[48];

		OK(evc_remote_fetch(r[i], T_LIMIT, &v));
		OK(evc_unpack(&v, "[suu]", who, sizeof(who), &index,
			      &attempt));
		ck_assert_uint_eq(index, i / 10);
		ck_assert_str_eq(who, worker(i / 10).name);
		ck_assert_str_eq(info_of(r[i]).worker, who);
		ck_assert_uint_eq(attempt, 1);
		evc_remote_free(r[i]);
	}
	/* It waits for its worker, though others are free. */
	at.worker = "worker 0";
	busy = SCHEDULE_WITH(&at, "hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	r[0] = SCHEDULE_WITH(&at, "add", "[ii]", 1, 2);
	IS(take_number(SCHEDULE("add", "[ii]", 3, 4)), 7);
	ck_assert_int_ne(info_of(r[0]).state, EVC_REMOTE_DONE);
	/* join waits for it as for any other. */
	ck_assert(!all_done());
	IS(evc_cluster_join(on.cl, 0), -EVC_DEADLINE_EXCEEDED);
	let_go("g");
	IS(take_number(r[0]), 3);
	evc_remote_free(busy);
	OK(join());
}
END_TEST

/* Others go on while one worker is busy for long, whatever it may have taken
   ahead. */
START_TEST(a_busy_worker_holds_up_nobody)
{
	evc_remote *busy, *r[100];
	int i;

	begin(_i, 2);
	UNTIL(numbers().n_up == 2);
	/* Quick ones first, so that workers are trusted with many. */
	for (i = 0; i < 400; i++)
		DO("add", "[ii]", i, 1);
	busy = SCHEDULE("hold", "[s]", "g");
	for (i = 0; i < 100; i++)
		r[i] = SCHEDULE("add", "[ii]", i, 1);
	for (i = 0; i < 100; i++)
		IS(take_number(r[i]), i + 1);
	IS(info_of(busy).state, EVC_REMOTE_RUNNING);
	let_go("g");
	IS(take_number(busy), 1);
	OK(join());
}
END_TEST

START_TEST(once_on_every_worker)
{
	evc_schedule_opts at = { .worker = "worker 0" };
	evc_remote *r[4] = { NULL };
	unsigned n = 4, i, index, attempt, seen = 0;
	evc_value v;
	char who[48];

	begin(_i, 3);
	OK(evc_schedule_all(on.cl, "who", NULL, NULL, NULL, r, &n));
	ck_assert_uint_eq(n, 3);
	ck_assert_ptr_null(r[3]);
	for (i = 0; i < 3; i++) {
		OK(evc_remote_fetch(r[i], T_LIMIT, &v));
		OK(evc_unpack(&v, "[suu]", who, sizeof(who), &index,
			      &attempt));
		seen |= 1u << index;
		evc_remote_free(r[i]);
	}
	ck_assert_uint_eq(seen, 7);
	OK(evc_schedule_all(on.cl, "who", NULL, NULL, NULL, NULL, NULL));
	n = 2;
	REFUSED(EVC_OUT_OF_RANGE,
		evc_schedule_all(on.cl, "who", NULL, NULL, NULL, r, &n));
	ck_assert_uint_eq(n, 2);
	n = 4;
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule_all(on.cl, "who", NULL, NULL, &at, r, &n));
	OK(join());
	ck_assert_uint_eq(numbers().n_scheduled, 6);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(worker(i).n_done, 2);
}
END_TEST

START_TEST(all_are_accepted_or_none)
{
	evc_cluster_config config = { .max_queued = 2 };
	evc_remote *r[3];
	unsigned n = 3;

	begin_with(_i, 3, &config);
	/* It never could, so it does not wait. */
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_schedule_all(on.cl, "who", NULL, NULL, NULL, r, &n));
	OK(join());
	ck_assert_uint_eq(numbers().n_scheduled, 0);
}
END_TEST

/* Before a worker has said what it knows, a name may be one; then it is not. */
START_TEST(a_name_that_nobody_knows)
{
	evc_cluster_config config = { .worker_wait = 1 };
	evc_remote *r = NULL;
	evc_status st, code;

	choose(_i, 2);
	/* A worker that knows it may come: so long it waits. */
	code = can(FINDS) ? EVC_UNAVAILABLE : EVC_INVALID_ARGUMENT;
	begin_with(_i, 2, can(FINDS) ? &config : NULL);
	st = evc_schedule(on.cl, "nonesuch", NULL, NULL, NULL, &r);
	if (st == 0) {
		IS(code_of(r), code);
		ck_assert_str_eq(info_of(r).function, "nonesuch");
		evc_remote_free(r);
		IS(join(), code);
	} else {
		IS(st, -EVC_INVALID_ARGUMENT);
		ck_assert_ptr_null(r);
	}
	r = NULL;
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	if (can(FINDS)) {
		r = SCHEDULE("nonesuch", "[]");
		IS(code_of(r), code);
		HAS(info_of(r).text, "nonesuch");
		evc_remote_free(r);
		IS(join(), code);
		return;
	}
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, "nonesuch", NULL, NULL, NULL, &r));
	HAS(evc_last_error(), "nonesuch");
	ck_assert_ptr_null(r);
	OK(join());
}
END_TEST

/* ---- room ---- */

START_TEST(a_full_queue_is_waited_for_on_a_thread)
{
	evc_cluster_config config = { .max_queued = 3 };
	evc_schedule_opts no = { .wait = -1 }, brief = { .wait = 0.05 };
	evc_remote *gate;
	evc_status st = 0;
	int n = 0;
	double t;

	begin_with(_i, 1, &config);
	gate = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	/* A worker may take some ahead of time. */
	for (; st == 0 && n < MANY; n++)
		st = evc_schedule_pack(on.cl, "count", &brief, NULL, "[sd]",
				       "n", 1.0);
	n--;
	IS(st, -EVC_RESOURCE_EXHAUSTED);
	ck_assert_int_ge(n, 3);
	ck_assert_uint_eq(numbers().n_queued, 3);
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_schedule_pack(on.cl, "count", &no, NULL, "[sd]", "n",
				  1.0));
	t = t_now();
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_schedule_pack(on.cl, "count", &brief, NULL, "[sd]", "n",
				  1.0));
	ck_assert(t_now() - t >= 0.049);
	let_go("g");
	for (; n < MANY; n++)
		DO("count", "[sd]", "n", 1.0);
	OK(join());
	ck_assert(variable("n") == MANY);
	IS(take_number(gate), 1);
}
END_TEST

START_TEST(a_full_queue_is_refused_on_the_loop)
{
	int told = 0, before, n = 0, refused = 0;
	evc_cluster_config config = { .max_queued = 3,
				      .writable = count_writable,
				      .arg = &told };
	evc_remote *gate;
	evc_status st = 0;

	begin_on_loop(_i, 1, &config);
	gate = SCHEDULE("hold", "[s]", "g");
	TURN_UNTIL(are_in("g", 1));
	/* Until nothing moves any more: the worker takes ahead what it may. */
	while (n < MANY && refused < 50) {
		st = evc_schedule_pack(on.cl, "count", NULL, NULL, "[sd]", "n",
				       1.0);
		n += st == 0;
		refused = st == 0 ? 0 : refused + 1;
		if (st != 0)
			IS(st, -EVC_RESOURCE_EXHAUSTED);
		ev_run(on.loop, EVRUN_NOWAIT);
		t_sleep(0.001);
	}
	ck_assert_int_ge(n, 3);
	ck_assert_int_ge(refused, 50);
	before = told;
	let_go("g");
	TURN_UNTIL(told > before);
	/* As one does it: schedule until it is refused, go on when told. */
	while (n < 200) {
		st = evc_schedule_pack(on.cl, "count", NULL, NULL, "[sd]", "n",
				       1.0);
		if (st == 0) {
			n++;
			continue;
		}
		IS(st, -EVC_RESOURCE_EXHAUSTED);
		before = told;
		TURN_UNTIL(told > before);
	}
	TURN_UNTIL(all_done());
	ck_assert(variable("n") == n);
	evc_remote_free(gate);
}
END_TEST

static const evc_function functions[] = { COMMON_FUNCTIONS };

CONFORMANCE_MAIN("order", functions, ROW(greater_priorities_run_first),
		 ROW(for_one_worker_alone), ROW(a_busy_worker_holds_up_nobody),
		 ROW(once_on_every_worker), ROW(all_are_accepted_or_none),
		 ROW(a_name_that_nobody_knows),
		 ROW(a_full_queue_is_waited_for_on_a_thread),
		 ROW(a_full_queue_is_refused_on_the_loop))
