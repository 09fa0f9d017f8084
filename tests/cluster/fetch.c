/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fetches: of one remote and of values that have remotes in them, on threads
 * and on the loop; what is refused, and whose error decides.
 */
#include "../support/cluster_util.h"

/* ---- one remote ---- */

START_TEST(one_remote)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	evc_remote *r = schedule_add(cl, 20, 22), *held;
	evc_value v;
	int n = 0;

	OK(evc_remote_fetch(r, T_LIMIT, &v));
	OK(evc_unpack(&v, "i", &n));
	ck_assert_int_eq(n, 42);
	OK(evc_remote_fetch(r, 0, NULL));
	evc_remote_free(r);
	r = schedule(cl, "fail");
	v = (evc_value){ "x", 1 };
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, &v), EVC_DATA_LOSS);
	HAS(evc_last_error(), "fail: it was asked to fail");
	ck_assert_ptr_null(v.data);
	/* that did not raise it */
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_DATA_LOSS);
	ck_assert_int_eq(evc_remote_fetch(r, 0, NULL), EVC_DATA_LOSS);
	evc_remote_free(r);
	held = schedule(cl, "hold");
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_remote_fetch(held, 0, &v));
	HAS(evc_last_error(), "hold");
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_remote_fetch(held, 0.01, &v));
	REFUSED(EVC_INVALID_ARGUMENT, evc_remote_fetch(held, NAN, &v));
	REFUSED(EVC_INVALID_ARGUMENT, evc_remote_fetch(NULL, 0, &v));
	atomic_store(&f_open, 1);
	OK(evc_remote_fetch(held, INFINITY, &v));
	IS_VALUE(&v, "\"held\"");
	evc_cluster_close(cl);
	end_coord(c);
	/* also when the cluster is gone */
	OK(evc_remote_fetch(held, 0, &v));
	IS_VALUE(&v, "\"held\"");
	evc_remote_free(held);
}
END_TEST

struct fetching {
	pthread_t thread;
	evc_remote *r;
	evc_status st;
	atomic_int tid;
};

static void *
fetching_main(void *arg)
{
	struct fetching *f = arg;

	atomic_store(&f->tid, own_tid());
	f->st = evc_remote_fetch(f->r, INFINITY, NULL);
	evc_remote_free(f->r);
	return NULL;
}

static void
fetching_begin(struct fetching *f, evc_remote *r)
{
	f->r = evc_remote_ref(r);
	atomic_store(&f->tid, 0);
	OK(pthread_create(&f->thread, NULL, fetching_main, f));
	UNTIL(atomic_load(&f->tid) != 0);
	until_asleep(atomic_load(&f->tid));
}

START_TEST(many_wait_for_one)
{
	enum { N = 5 };
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://1");
	evc_remote *runs = schedule(cl, "hold"), *queued = schedule(cl, "hold");
	struct fetching f[N], g;
	int i;

	for (i = 0; i < N; i++)
		fetching_begin(&f[i], runs);
	fetching_begin(&g, queued);
	evc_remote_free(runs);
	/* the stop gives all of them their outcomes */
	evc_cluster_close(cl);
	for (i = 0; i < N; i++) {
		OK(pthread_join(f[i].thread, NULL));
		ck_assert_int_eq(f[i].st, EVC_CANCELLED);
	}
	OK(pthread_join(g.thread, NULL));
	ck_assert_int_eq(g.st, EVC_CANCELLED);
	evc_remote_free(queued);
	end_coord(c);
}
END_TEST

START_TEST(dropped_before_its_outcome)
{
	struct census n = census_begin();
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	evc_remote *r = schedule(cl, "hold");
	evc_cluster_info info;
	int i;

	evc_remote_free(r);
	for (i = 0; i < 100; i++)
		evc_remote_free(schedule_add(cl, i, i));
	atomic_store(&f_open, 1);
	OK(evc_cluster_join(cl, T_LIMIT));
	OK(evc_cluster_get(cl, &info));
	ck_assert_uint_eq(info.n_done, 101);
	ck_assert_uint_eq(info.n_fetches, 0);
	evc_remote_free(NULL);
	ck_assert_ptr_null(evc_remote_ref(NULL));
	evc_cluster_close(cl);
	end_coord(c);
	census_end(&n);
}
END_TEST

/* ---- values ---- */

START_TEST(a_structure_comes_back_as_it_was)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://3");
	evc_remote *r[5], *whole;
	evc_value v, got, args;
	evc_cluster_info info;
	int i;

	OK(evc_pack(&args, "[{k:[i s]} n]", 7, "seven"));
	OK(evc_schedule(cl, "echo", &args, NULL, NULL, &whole));
	evc_value_free(&args);
	for (i = 0; i < 5; i++)
		r[i] = schedule_add(cl, i, 10 * i);
	OK(evc_pack(&v, "[r i {a:r b:[[r]] c:s} [r r] r n]", r[0], 99, r[1],
		    r[2], "text", r[3], r[3], whole));
	OK(evc_fetch(cl, &v, T_LIMIT, &got));
	IS_VALUE(&got, "[0,99,{\"a\":11,\"b\":[[22]],\"c\":\"text\"},[33,33],"
		       "[{\"k\":[7,\"seven\"]},null],null]");
	evc_value_free(&got);
	evc_value_free(&v);
	/* each counts once, however often it stands there */
	OK(evc_cluster_get(cl, &info));
	ck_assert_uint_eq(info.n_fetches, 5);
	/* a remote alone; no remote at all; nothing at all */
	OK(evc_pack(&v, "r", r[4]));
	OK(evc_fetch(cl, &v, T_LIMIT, &got));
	IS_VALUE(&got, "44");
	evc_value_free(&got);
	evc_value_free(&v);
	OK(evc_pack(&v, "[i {x:d}]", 1, 0.5));
	OK(evc_fetch(cl, &v, 0, &got));
	IS_VALUE(&got, "[1,{\"x\":0.5}]");
	evc_value_free(&got);
	evc_value_free(&v);
	OK(evc_fetch(cl, NULL, 0, &got));
	IS_VALUE(&got, "null");
	evc_value_free(&got);
	for (i = 0; i < 5; i++)
		evc_remote_free(r[i]);
	evc_remote_free(whole);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

START_TEST(five_that_are_pending)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://5");
	evc_remote *r[5], *waits;
	evc_remote_info info;
	evc_value v, got;
	char text[120];
	int i;

	for (i = 0; i < 5; i++)
		r[i] = schedule(cl, "hold");
	OK(evc_pack(&v, "[rrrrr]", r[0], r[1], r[2], r[3], r[4]));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_fetch(cl, &v, 0.01, &got));
	/* what runs where: that is what it waits for */
	UNTIL(atomic_load(&f_in) == 5);
	OK(evc_remote_get(r[3], &info));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_remote_fetch(r[3], 0, &got));
	snprintf(text, sizeof(text), "hold has no outcome yet; hold on %s (tid",
		 info.worker);
	HAS(evc_last_error(), text);
	waits = schedule(cl, "echo");
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_remote_fetch(waits, 0, &got));
	HAS(evc_last_error(), "echo has no outcome yet; hold on worker");
	HAS(evc_last_error(), "1 queued");
	evc_remote_free(waits);
	atomic_store(&f_open, 1);
	OK(evc_fetch(cl, &v, T_LIMIT, &got));
	IS_VALUE(&got, "[\"held\",\"held\",\"held\",\"held\",\"held\"]");
	evc_value_free(&got);
	evc_value_free(&v);
	for (i = 0; i < 5; i++)
		evc_remote_free(r[i]);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

/* The first in the order of the value decides, and what stands behind it is not
   waited for. */
START_TEST(the_first_that_failed_decides)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	evc_remote *fine = schedule_add(cl, 1, 1), *bad, *behind;
	evc_value v, got;

	OK(evc_cluster_join(cl, T_LIMIT));
	behind = schedule(cl, "deaf");
	UNTIL(atomic_load(&f_in) == 1);
	OK(evc_schedule_pack(cl, "fail", NULL, &bad, "[i]", EVC_NOT_FOUND));
	OK(evc_pack(&v, "[r{a:r}r]", fine, bad, behind));
	ck_assert_int_eq(evc_fetch(cl, &v, T_LIMIT, &got), EVC_NOT_FOUND);
	HAS(evc_last_error(), "fail: it was asked to fail");
	evc_value_free(&v);
	/* the other way round it has to wait for the first */
	OK(evc_pack(&v, "[rr]", behind, bad));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_fetch(cl, &v, 0.01, &got));
	atomic_store(&f_open, 1);
	ck_assert_int_eq(evc_fetch(cl, &v, T_LIMIT, &got), EVC_NOT_FOUND);
	evc_value_free(&v);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_NOT_FOUND);
	evc_remote_free(fine);
	evc_remote_free(bad);
	evc_remote_free(behind);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

START_TEST(what_is_refused)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://1");
	evc_cluster *other = open_threads(c, "threads://1");
	evc_remote *r = schedule_add(cl, 1, 2);
	evc_per_worker *w = NULL;
	evc_value v, got;

	OK(evc_pack(&v, "[r]", r));
	REFUSED(EVC_INVALID_ARGUMENT, evc_fetch(NULL, &v, 0, &got));
	REFUSED(EVC_INVALID_ARGUMENT, evc_fetch(cl, &v, 0, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_fetch(cl, &v, NAN, &got));
	REFUSED(EVC_INVALID_ARGUMENT, evc_fetch(other, &v, T_LIMIT, &got));
	HAS(evc_last_error(), "another cluster");
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_fetch_start(other, &v, (evc_fetch_fn *)abort, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_fetch_start(cl, &v, NULL, NULL));
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_remote_free(r);
	REFUSED(EVC_INVALID_ARGUMENT, evc_fetch(cl, &v, T_LIMIT, &got));
	HAS(evc_last_error(), "not there any more");
	evc_value_free(&v);
	/* no value */
	v = (evc_value){ "\xc1", 1 };
	REFUSED(EVC_INVALID_ARGUMENT, evc_fetch(cl, &v, 0, &got));
	OK(evc_per_worker_value(cl, "mine", "echo", NULL, &w));
	OK(evc_pack(&v, "[i {x:w}]", 1, w));
	REFUSED(EVC_UNIMPLEMENTED, evc_fetch(cl, &v, T_LIMIT, &got));
	HAS(evc_last_error(), "evc_schedule");
	REFUSED(EVC_UNIMPLEMENTED,
		evc_fetch_start(cl, &v, (evc_fetch_fn *)abort, NULL));
	evc_value_free(&v);
	evc_per_worker_free(w);
	evc_cluster_close(other);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

/* ---- on the loop ---- */

struct got {
	int n, tid;
	evc_status st[8];
	char text[8][100];
	evc_cluster *cl;
	evc_remote *next; /* to be fetched in the first answer */
	bool closes;
};

static void
on_fetch(evc_cluster *cl, evc_status st, const evc_value *value, void *arg)
{
	struct got *g = arg;
	evc_value v;

	ck_assert_ptr_eq(cl, g->cl);
	g->st[g->n] = st;
	evc_value_print(value, g->text[g->n++], sizeof(g->text[0]));
	g->tid = own_tid();
	if (g->next != NULL) {
		OK(evc_pack(&v, "[r]", g->next));
		g->next = NULL;
		OK(evc_fetch_start(cl, &v, on_fetch, g));
		evc_value_free(&v);
	}
	if (g->closes)
		evc_cluster_close(cl);
}

START_TEST(on_the_loop)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_cluster *cl = open_threads(c, "threads://3");
	struct got g = { .cl = cl };
	evc_remote *r[3], *bad;
	evc_value v, got;

	r[0] = schedule(cl, "hold");
	r[1] = schedule_add(cl, 1, 1);
	r[2] = schedule(cl, "hold");
	OK(evc_pack(&v, "{a:r b:[r r] c:r}", r[0], r[1], r[2], r[0]));
	/* to wait there is refused */
	REFUSED(EVC_FAILED_PRECONDITION, evc_fetch(cl, &v, 0, &got));
	HAS(evc_last_error(), "evc_fetch_start");
	REFUSED(EVC_FAILED_PRECONDITION, evc_remote_fetch(r[0], 0, &got));
	OK(evc_fetch_start(cl, &v, on_fetch, &g));
	evc_value_free(&v);
	/* they are kept */
	evc_remote_free(r[1]);
	evc_remote_free(r[2]);
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(g.n, 0);
	/* without a remote it is due at once, and never inside the call */
	OK(evc_fetch_start(cl, NULL, on_fetch, &g));
	ck_assert_int_eq(g.n, 0);
	while (g.n == 0)
		ev_run(loop, EVRUN_ONCE);
	ck_assert_str_eq(g.text[0], "null");
	g.next = r[0];
	atomic_store(&f_open, 1);
	ev_run(loop, 0);
	ck_assert_int_eq(g.n, 3);
	OK(g.st[1]);
	ck_assert_str_eq(g.text[1], "{\"a\":\"held\",\"b\":[2,\"held\"],"
				    "\"c\":\"held\"}");
	ck_assert_str_eq(g.text[2], "[\"held\"]");
	ck_assert_int_eq(g.tid, own_tid());
	/* what has its outcome may be fetched on the loop, too */
	OK(evc_remote_fetch(r[0], 0, &got));
	OK(evc_pack(&v, "[r]", r[0]));
	OK(evc_fetch(cl, &v, 0, &got));
	evc_value_free(&got);
	evc_value_free(&v);
	evc_remote_free(r[0]);
	/* one that fails while another one hangs */
	atomic_store(&f_open, 0);
	atomic_store(&f_in, 0);
	r[0] = schedule(cl, "deaf");
	UNTIL(atomic_load(&f_in) == 1);
	bad = schedule(cl, "fail");
	OK(evc_pack(&v, "[rr]", bad, r[0]));
	OK(evc_fetch_start(cl, &v, on_fetch, &g));
	evc_value_free(&v);
	ev_run(loop, 0);
	ck_assert_int_eq(g.n, 4);
	ck_assert_int_eq(g.st[3], EVC_DATA_LOSS);
	ck_assert_str_eq(g.text[3], "null");
	atomic_store(&f_open, 1);
	evc_remote_free(bad);
	evc_remote_free(r[0]);
	evc_cluster_close(cl);
	end_coord(c);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(answered_by_the_stop)
{
	struct census n = census_begin();
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_cluster *cl = open_threads(c, "threads://1");
	struct got g = { .cl = cl, .closes = true };
	evc_remote *r = schedule(cl, "hold");
	evc_value v;

	OK(evc_pack(&v, "r", r));
	OK(evc_fetch_start(cl, &v, on_fetch, &g));
	evc_value_free(&v);
	evc_remote_free(r);
	OK(evc_request_stop(c, 0, "all"));
	OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
	ck_assert_int_eq(g.n, 1);
	ck_assert_int_eq(g.st[0], EVC_CANCELLED);
	OK(evc_free(c));
	ev_loop_destroy(loop);
	census_end(&n);
}
END_TEST

static void
on_join(evc_cluster *cl, evc_status st, void *arg)
{
	struct got *g = arg;

	ck_assert_ptr_eq(cl, g->cl);
	OK(st);
	g->n++;
}

/* The loop goes first, while the function runs.  A join of the coordinator that
   has returned has heard all answers: their memory may be freed. */
START_TEST(answered_by_the_stop_when_the_loop_is_gone)
{
	int i;

	for (i = 0; i < 3; i++) {
		struct census n = census_begin();
		struct ev_loop *loop = ev_loop_new(0);
		evc_coord *c = new_coord(loop);
		evc_cluster *cl = open_threads(c, "threads://1");
		struct got g = { .cl = cl, .closes = i == 1 };
		struct got late = { .cl = cl };
		evc_remote *r = schedule(cl, "deaf");
		evc_value v;

		OK(evc_pack(&v, "r", r));
		OK(evc_fetch_start(cl, &v, on_fetch, &g));
		OK(evc_cluster_join_start(cl, on_join, &late));
		evc_value_free(&v);
		evc_remote_free(r);
		UNTIL(atomic_load(&f_in) == 1);
		ev_loop_destroy(loop);
		if (i == 2)
			evc_cluster_close(cl);
		atomic_store(&f_open, 1);
		OK(evc_request_stop(c, 0, "all"));
		OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
		ck_assert_int_eq(g.n, 1);
		ck_assert_int_eq(late.n, 1);
		if (i == 0)
			evc_cluster_close(cl);
		ck_assert_int_eq(g.n + late.n, 2);
		OK(evc_free(c));
		census_end(&n);
	}
}
END_TEST

/* Many fetches of the same remotes, begun by threads while those are done. */
struct beginner {
	evc_cluster *cl;
	evc_value *v;
	atomic_int *answers;
	evc_status st;
};

static void
count_answer(evc_cluster *cl, evc_status st, const evc_value *value, void *arg)
{
	(void)cl;
	if (st == 0 && evc_value_count(value) == 3)
		atomic_fetch_add((atomic_int *)arg, 1);
	else
		atomic_fetch_add((atomic_int *)arg, 1000000);
}

enum { BEGUN_EACH = 50, BEGINNERS = 3 };

static void *
beginner_main(void *arg)
{
	struct beginner *b = arg;
	int i;

	for (i = 0; b->st == 0 && i < BEGUN_EACH; i++)
		b->st = evc_fetch_start(b->cl, b->v, count_answer, b->answers);
	return NULL;
}

START_TEST(begun_by_many_while_they_are_done)
{
	enum { ROUNDS = 20 };
	struct census n = census_begin();
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	atomic_int answers = 0;
	int round, i;

	for (round = 1; round <= ROUNDS; round++) {
		evc_remote *r[3];
		struct beginner b[BEGINNERS];
		struct t_crowd k;
		evc_value v;

		for (i = 0; i < 3; i++)
			r[i] = schedule_add(cl, i, i);
		OK(evc_pack(&v, "[rrr]", r[2], r[0], r[1]));
		memset(b, 0, sizeof(b));
		for (i = 0; i < BEGINNERS; i++) {
			b[i].cl = cl;
			b[i].v = &v;
			b[i].answers = &answers;
		}
		crowd_begin(&k, BEGINNERS, beginner_main, b, sizeof(b[0]));
		crowd_end(&k);
		for (i = 0; i < BEGINNERS; i++)
			OK(b[i].st);
		for (i = 0; i < 3; i++)
			evc_remote_free(r[i]);
		evc_value_free(&v);
		UNTIL(atomic_load(&answers) ==
		      round * BEGINNERS * BEGUN_EACH);
	}
	evc_cluster_close(cl);
	end_coord(c);
	census_end(&n);
}
END_TEST

API_MAIN("fetch", one_remote, many_wait_for_one, dropped_before_its_outcome,
	 a_structure_comes_back_as_it_was, five_that_are_pending,
	 the_first_that_failed_decides, what_is_refused, on_the_loop,
	 answered_by_the_stop, answered_by_the_stop_when_the_loop_is_gone,
	 begun_by_many_while_they_are_done)
