/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No memory for a cluster and for its calls: each allocation of a call fails
 * once.  Then the call is refused, and nothing of it is left; or it does without
 * it.  Afterwards the same call, and the cluster, are as good as new.  What
 * leaks is found by the address sanitizer.
 */
#include "../support/hand_engine.h"
#include "../support/seam.h"

static evc_coord *c;
static evc_cluster *cl;
static evc_remote *done, *queued; /* for arguments */
static atomic_int n_called;

static void
on_fetched(evc_cluster *of, evc_status st, const evc_value *v, void *arg)
{
	(void)of;
	(void)st;
	(void)v;
	(void)arg;
	atomic_fetch_add(&n_called, 1);
}

static void
on_joined(evc_cluster *of, evc_status st, void *arg)
{
	(void)of;
	(void)st;
	(void)arg;
	atomic_fetch_add(&n_called, 1);
}

static uint64_t
n_scheduled(void)
{
	evc_cluster_info i;

	OK(evc_cluster_get(cl, &i));
	ck_assert_uint_eq(i.n_scheduled, i.n_done + i.n_failed +
						 i.n_cancelled + i.n_queued +
						 i.n_running);
	return i.n_scheduled;
}

/* Run all that is queued for this worker. */
static void
run_all_of(unsigned worker)
{
	evc_engine_task t;

	while (hand_take(worker, &t, 1) == 1)
		hand_finish(worker, &t, 0, NULL);
}

static void
run_all(void)
{
	run_all_of(0);
}

static void
begin(void)
{
	seam_reset();
	atomic_store(&n_called, 0);
	c = new_coord(NULL);
	cl = open_with(c, "hand://2", &(evc_cluster_config){ HAND_CONFIG });
	hand_up(0);
	done = schedule(cl, "f");
	run_all();
	queued = schedule(cl, "f");
}

static void
end(void)
{
	seam_reset();
	evc_remote_free(done);
	evc_remote_free(queued);
	evc_cluster_close(cl);
	hand_end_coord(c);
}

/* Returns what the call does; *ret_made: so many functions, if it did it. */
typedef evc_status call_fn(unsigned *ret_made);

static void
each_allocation_fails(call_fn *call)
{
	uint64_t before;
	unsigned made;
	evc_status st;
	int nth, h;

	begin();
	for (nth = 1;; nth++) {
		before = n_scheduled();
		made = 0;
		h = seam_fail("alloc", NULL, nth, ENOMEM);
		st = call(&made);
		if (seam_arrivals(h) < nth)
			break;
		seam_reset();
		if (st != 0) {
			ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
			ck_assert_str_ne(evc_last_error(), "");
			made = 0;
		}
		ck_assert_uint_eq(n_scheduled(), before + made);
	}
	ck_assert_int_gt(nth, 1);
	seam_reset();
	OK(st);
	run_all();
	hand_up(1);
	run_all_of(1);
	OK(evc_cluster_join(cl, T_LIMIT));
	end();
}

static evc_status
schedule_plain(unsigned *ret_made)
{
	evc_remote *r = NULL;
	evc_status st = evc_schedule_pack(cl, "f", NULL, &r, "[is]", 1, "text");

	ck_assert((r != NULL) == (st == 0));
	evc_remote_free(r);
	*ret_made = 1;
	return st;
}

static evc_status
schedule_with_inputs(unsigned *ret_made)
{
	evc_schedule_opts o = { .retry = { .times = 1 } };
	evc_remote *r = NULL;
	evc_status st = evc_schedule_pack(cl, "f", &o, &r, "[r[rr]]", done,
					  queued, done);

	ck_assert((r != NULL) == (st == 0));
	evc_remote_free(r);
	*ret_made = 1;
	return st;
}

static evc_status
schedule_with_a_per_worker_value(unsigned *ret_made)
{
	evc_per_worker *p = NULL;
	evc_status st = evc_per_worker_value(cl, "value", "g", NULL, &p);
	evc_engine_def d;

	ck_assert((p != NULL) == (st == 0));
	if (st == 0)
		st = evc_schedule_pack(cl, "f", NULL, NULL, "[wr]", p, queued);
	evc_per_worker_free(p);
	while (hand.sink->defs(hand.core, 0, &d))
		;
	*ret_made = 1;
	return st;
}

static evc_status
schedule_on_all(unsigned *ret_made)
{
	evc_remote *r[2] = { NULL, NULL };
	unsigned n = 2;
	evc_value args = { NULL, 0 };
	evc_status st = evc_pack(&args, "[rr]", queued, done);

	if (st == 0)
		st = evc_schedule_all(cl, "f", &args, NULL, NULL, r, &n);
	evc_value_free(&args);
	evc_remote_free(r[0]);
	evc_remote_free(r[1]);
	*ret_made = 2;
	return st;
}

/* A new name each time, so that it is one for the table as well. */
static evc_status
fetch(unsigned *ret_made)
{
	evc_value v = { NULL, 0 }, got = { NULL, 0 };
	evc_status st = evc_pack(&v, "[r{k:r}r]", done, done, done);

	(void)ret_made;
	if (st == 0)
		st = evc_fetch(cl, &v, T_LIMIT, &got);
	if (st == 0)
		IS_VALUE(&got, "[null,{\"k\":null},null]");
	evc_value_free(&got);
	evc_value_free(&v);
	return st;
}

static evc_status
fetch_start(unsigned *ret_made)
{
	evc_value v = { NULL, 0 };
	evc_status st = evc_pack(&v, "[rr]", queued, done);

	(void)ret_made;
	if (st == 0)
		st = evc_fetch_start(cl, &v, on_fetched, NULL);
	evc_value_free(&v);
	return st;
}

static evc_status
join_start(unsigned *ret_made)
{
	(void)ret_made;
	return evc_cluster_join_start(cl, on_joined, NULL);
}

#define EACH(name) \
	START_TEST(name##_without_memory) \
	{ \
		each_allocation_fails(name); \
	} \
	END_TEST

EACH(schedule_plain)
EACH(schedule_with_inputs)
EACH(schedule_with_a_per_worker_value)
EACH(schedule_on_all)
EACH(fetch)
EACH(fetch_start)
EACH(join_start)

/* Wrong names take no memory that stays. */
START_TEST(a_wrong_name_is_not_kept)
{
	int h;

	begin();
	h = seam_fail_all("alloc", "evc__name", 1, ENOMEM);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(cl, "nobody's", NULL, NULL, NULL, NULL));
	ck_assert_int_eq(seam_arrivals(h), 0);
	end();
}
END_TEST

/* ---- what the engine tells, for which there is no refusal ---- */

/* A result that cannot be kept is an error of that function; everything else
   goes on. */
START_TEST(a_result_without_memory)
{
	int nth, h, n, failed = 0;
	evc_engine_task t;
	evc_remote *r, *d;
	evc_value v;

	begin();
	run_all();
	OK(evc_pack(&v, "[s]", "a result"));
	for (nth = 1;; nth++) {
		r = schedule(cl, "f");
		d = NULL;
		OK(evc_schedule_pack(cl, "f", NULL, &d, "[r]", r));
		ck_assert_uint_eq(hand_take(0, &t, 1), 1);
		h = seam_fail("alloc", NULL, nth, ENOMEM);
		hand_finish(0, &t, 0, &v);
		n = seam_arrivals(h);
		seam_reset();
		if (evc_remote_fetch(r, T_LIMIT, NULL) != 0) {
			failed++;
			ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT),
					 EVC_RESOURCE_EXHAUSTED);
			ck_assert_int_eq(evc_remote_fetch(d, 0, NULL),
					 EVC_RESOURCE_EXHAUSTED);
		}
		run_all();
		ck_assert_int_eq(evc_remote_fetch(d, T_LIMIT, NULL),
				 evc_remote_fetch(r, T_LIMIT, NULL));
		evc_remote_free(r);
		evc_remote_free(d);
		if (n < nth)
			break;
	}
	ck_assert_int_gt(failed, 0);
	evc_value_free(&v);
	OK(evc_cluster_join(cl, T_LIMIT));
	end();
}
END_TEST

/* A name that cannot be kept is not taken for one that no worker has. */
START_TEST(names_without_memory)
{
	evc_engine_task t;
	evc_remote *r;

	seam_reset();
	c = new_coord(NULL);
	(void)seam_fail("alloc", "evc__name", 1, ENOMEM);
	cl = open_with(c, "hand://2", &(evc_cluster_config){ HAND_CONFIG });
	seam_reset();
	hand_up(0);
	r = schedule(cl, "f");
	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	ck_assert_str_eq(t.function, "f");
	hand_finish(0, &t, 0, NULL);
	OK(evc_remote_fetch(r, T_LIMIT, NULL));
	evc_remote_free(r);
	evc_cluster_close(cl);
	hand_end_coord(c);
}
END_TEST

START_TEST(a_report_without_memory)
{
	evc_engine_task t;
	char text[400];

	begin();
	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	(void)seam_fail("alloc", "copy_workers", 1, ENOMEM);
	ck_assert_uint_gt(report_text(evc_cluster_scope(cl), text,
				      sizeof(text)),
			  0);
	HAS(text, "f on worker 0 (by hand) for");
	seam_reset();
	hand_finish(0, &t, 0, NULL);
	end();
}
END_TEST

/* ---- open ---- */

static void
open_fails_at_each(const char *uri, const evc_cluster_config *k, bool with_loop)
{
	struct ev_loop *loop = with_loop ? ev_loop_new(EVFLAG_AUTO) : NULL;
	struct census n;
	evc_status st;
	int nth, h, came;

	/* The loop has its own descriptors from the first watcher on. */
	OK(evc_free(new_coord(loop)));
	n = census_begin();
	for (nth = 1;; nth++) {
		c = new_coord(loop);
		cl = NULL;
		h = seam_fail("alloc", NULL, nth, ENOMEM);
		st = evc_cluster_open(c, uri, k, &cl);
		came = seam_arrivals(h);
		seam_reset();
		if (st != 0) {
			ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
			ck_assert_str_ne(evc_last_error(), "");
			ck_assert_ptr_null(cl);
		}
		evc_cluster_close(cl);
		OK(evc_request_stop(c, 0, "the test"));
		if (loop != NULL)
			OK(evc_run(c, NULL, &(evc_verdict){ 0 }));
		else
			OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
		ck_assert_msg(evc_free(c) == 0, "%d: %s", nth,
			      evc_last_error());
		census_end(&n);
		if (came < nth)
			break;
	}
	ck_assert_int_gt(nth, 10);
	OK(st);
	if (loop != NULL)
		ev_loop_destroy(loop);
}

START_TEST(open_without_memory)
{
	evc_cluster_config k = { F_CONFIG, .name = "named" };

	seam_reset();
	open_fails_at_each("threads://2", &k, false);
}
END_TEST

START_TEST(open_on_a_loop_without_memory)
{
	evc_cluster_config k = { F_CONFIG };

	seam_reset();
	open_fails_at_each("threads://2", &k, true);
}
END_TEST

API_MAIN("cluster", schedule_plain_without_memory,
	 schedule_with_inputs_without_memory,
	 schedule_with_a_per_worker_value_without_memory,
	 schedule_on_all_without_memory, fetch_without_memory,
	 fetch_start_without_memory, join_start_without_memory,
	 a_wrong_name_is_not_kept, a_result_without_memory,
	 names_without_memory, a_report_without_memory,
	 open_without_memory, open_on_a_loop_without_memory)
