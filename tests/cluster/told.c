/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who waits is told, whatever it is that ends the wait; and nobody waits for
 * himself.
 */
#include "../support/hand_engine.h"

static evc_coord *c;
static evc_cluster *cl;
static atomic_int n_called, answer;

static void
on_fetched(evc_cluster *of, evc_status st, const evc_value *v, void *arg)
{
	(void)of;
	(void)v;
	(void)arg;
	OK(st);
	atomic_fetch_add(&n_called, 1);
}

static void
on_joined(evc_cluster *of, evc_status st, void *arg)
{
	(void)of;
	(void)arg;
	atomic_store(&answer, st == 0 ? 1000 : st);
}

/* The loop has done all that it was asked for. */
static void
let_it_turn(void)
{
	int i, before;

	for (i = 0; i < 2; i++) {
		before = atomic_load(&n_called);
		OK(evc_fetch_start(cl, NULL, on_fetched, NULL));
		UNTIL(atomic_load(&n_called) > before);
	}
}

/* Nothing runs, and something is queued for a worker that is not there yet. */
START_TEST(a_schedule_that_fails_at_once_ends_a_join)
{
	evc_cluster_config k = { HAND_CONFIG };
	evc_schedule_opts o = { .worker = "worker 1" };
	evc_remote *bad, *waits = NULL, *r = NULL;
	evc_engine_task t;

	atomic_store(&answer, 0);
	c = new_coord(NULL);
	cl = open_with(c, "hand://2", &k);
	hand_up(0);
	bad = schedule(cl, "f");
	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	hand_finish(0, &t, EVC_DATA_LOSS, NULL);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_DATA_LOSS);
	OK(evc_schedule(cl, "f", NULL, NULL, &o, &waits));
	OK(evc_cluster_join_start(cl, on_joined, NULL));
	let_it_turn();
	ck_assert_int_eq(atomic_load(&answer), 0);
	OK(evc_schedule_pack(cl, "f", NULL, &r, "[r]", bad));
	UNTIL(atomic_load(&answer) == EVC_DATA_LOSS);
	ck_assert_int_eq(evc_remote_fetch(waits, 0, NULL), EVC_CANCELLED);
	ck_assert_int_eq(evc_remote_fetch(r, 0, NULL), EVC_DATA_LOSS);
	evc_remote_free(bad);
	evc_remote_free(waits);
	evc_remote_free(r);
	evc_cluster_close(cl);
	hand_end_coord(c);
}
END_TEST

/* It is not there for one that has waited and was cancelled, and then for
   another one: that one has the whole time. */
START_TEST(worker_wait_begins_anew)
{
	evc_cluster_config k = { HAND_CONFIG, .worker_wait = 3 };
	evc_remote *r;
	evc_remote_info i;

	c = new_coord(NULL);
	cl = open_with(c, "hand://1", &k);
	r = schedule(cl, "f");
	let_it_turn();
	t_sleep(0.7);
	OK(evc_remote_cancel(r));
	evc_remote_free(r);
	r = schedule(cl, "f");
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	OK(evc_remote_get(r, &i));
	ck_assert_uint_eq(i.kind, EVC_FAILED_CLUSTER);
	ck_assert_double_ge(i.took, 2.85);
	evc_remote_free(r);
	evc_cluster_close(cl);
	hand_end_coord(c);
}
END_TEST

/* There are others, but it is for this one. */
START_TEST(for_a_worker_that_does_not_come)
{
	evc_cluster_config k = { HAND_CONFIG, .worker_wait = 0.05 };
	const evc_schedule_opts at = { .worker = "worker 1" };
	evc_remote *r, *behind;
	evc_remote_info i;
	evc_engine_task t;

	c = new_coord(NULL);
	cl = open_with(c, "hand://2", &k);
	hand_up(0);
	OK(evc_schedule(cl, "f", NULL, NULL, &at, &r));
	OK(evc_schedule_pack(cl, "g", NULL, &behind, "[r]", r));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	HAS(evc_last_error(), "worker 1 was not up for 0.05 s");
	OK(evc_remote_get(r, &i));
	ck_assert_uint_eq(i.kind, EVC_FAILED_WORKER);
	ck_assert_double_ge(i.took, 0.05);
	OK(evc_remote_get(behind, &i));
	ck_assert_uint_eq(i.kind, EVC_FAILED_REMOTE);
	ck_assert_int_eq(i.code, EVC_UNAVAILABLE);
	evc_remote_free(behind);
	evc_remote_free(r);
	/* As any other error: once. */
	OK(evc_cluster_join(cl, T_LIMIT));
	/* It comes, and goes when something waits for it. */
	hand_up(1);
	OK(evc_schedule(cl, "f", NULL, NULL, &at, &r));
	hand.sink->gone(hand.core, 1, "it is ill", EVC_ENGINE_DIED);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	HAS(evc_last_error(), "it is ill");
	evc_remote_free(r);
	hand_up(1);
	OK(evc_schedule(cl, "f", NULL, NULL, &at, &r));
	ck_assert_uint_eq(hand_take(1, &t, 1), 1);
	hand_finish(1, &t, 0, NULL);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_remote_free(r);
	evc_cluster_close(cl);
	hand_end_coord(c);
}
END_TEST

/* One worker has the function, another one what builds its value: neither is given
   it, and each is given what it can run. */
START_TEST(no_worker_has_both)
{
	static const char *const f = "f", *const g = "g";
	evc_engine_ops ops = hand_ops;
	const evc_engine_ops *const engines[] = { &ops };
	evc_cluster_config k = { .worker_wait = 0.1,
				 .engines = engines,
				 .n_engines = 1 };
	evc_per_worker *p;
	evc_engine_task t;
	evc_remote *r;

	ops.open = hand_open_silent;
	c = new_coord(NULL);
	cl = open_with(c, "hand://2", &k);
	hand.sink->worker_names(hand.core, 0, &f, 1);
	hand.sink->worker_names(hand.core, 1, &g, 1);
	OK(evc_per_worker_value(cl, "p", "g", NULL, &p));
	hand_up(0);
	hand_up(1);
	OK(evc_schedule_pack(cl, "f", NULL, &r, "[w]", p));
	ck_assert_uint_eq(hand_take(0, &t, 1), 0);
	ck_assert_uint_eq(hand_take(1, &t, 1), 0);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	HAS(evc_last_error(), "no worker has had both a function and what "
			      "builds its values for 0.1 s");
	evc_remote_free(r);
	OK(evc_schedule_pack(cl, "g", NULL, &r, "[w]", p));
	ck_assert_uint_eq(hand_take(0, &t, 1), 0);
	ck_assert_uint_eq(hand_take(1, &t, 1), 1);
	hand_finish(1, &t, 0, NULL);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_remote_free(r);
	evc_per_worker_free(p);
	evc_cluster_close(cl);
	hand_end_coord(c);
}
END_TEST

/* What worker 0 does: "builds a", "runs f", or "". */
static const char *
does(void)
{
	static char text[120];
	evc_cluster_worker_info i;

	OK(evc_cluster_worker_get(cl, 0, &i));
	snprintf(text, sizeof(text), "%s%s%s%s",
		 i.builds[0] != '\0' ? "builds " : "", i.builds,
		 i.function[0] != '\0' ? "runs " : "", i.function);
	return text;
}

/* A worker does one after the other, in the order in which it was given them. */
START_TEST(builds_and_functions_are_told_in_their_order)
{
	evc_cluster_config k = { HAND_CONFIG };
	const char *const names[] = { "a", "b", "c" };
	evc_per_worker *p[3];
	evc_engine_def d[3];
	evc_remote *r = NULL;
	evc_engine_task t;
	int i;

	c = new_coord(NULL);
	cl = open_with(c, "hand://1", &k);
	hand_up(0);
	for (i = 0; i < 3; i++) {
		OK(evc_per_worker_value(cl, names[i], "f", NULL, &p[i]));
		ck_assert(hand.sink->defs(hand.core, 0, &d[i]));
		if (i > 0)
			continue;
		r = schedule(cl, "f");
		ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	}
	ck_assert_str_eq(does(), "builds a");
	hand.sink->built(hand.core, 0, d[0].id, 0, 0);
	ck_assert_str_eq(does(), "runs f");
	hand_finish(0, &t, 0, NULL);
	ck_assert_str_eq(does(), "builds b");
	hand.sink->built(hand.core, 0, d[1].id, 0, 0);
	ck_assert_str_eq(does(), "builds c");
	hand.sink->built(hand.core, 0, d[2].id, 0, 0);
	ck_assert_str_eq(does(), "");
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_remote_free(r);
	for (i = 0; i < 3; i++)
		evc_per_worker_free(p[i]);
	evc_cluster_close(cl);
	hand_end_coord(c);
}
END_TEST

static atomic_int n_lacks;

static void
count_lacks(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)level;
	(void)r;
	(void)arg;
	if (strstr(line, "no worker has had a function called \"g\" for ") &&
	    strstr(line, " s; functions that wait for one fail after 1000 s"))
		atomic_fetch_add(&n_lacks, 1);
}

/* Nobody has to wait for the failure to learn what is missing. */
START_TEST(what_no_worker_has_is_named_at_once)
{
	static const char *const f = "f", *const g = "g";
	const evc_config config = { .log = count_lacks };
	evc_engine_ops ops = hand_ops;
	const evc_engine_ops *const engines[] = { &ops };
	evc_cluster_config k = { .worker_wait = 1000,
				 .engines = engines,
				 .n_engines = 1 };
	evc_engine_task t;
	evc_remote *r[2];
	int i;

	ops.open = hand_open_silent;
	OK(evc_new(NULL, &config, &c));
	cl = open_with(c, "hand://2", &k);
	hand.sink->worker_names(hand.core, 0, &f, 1);
	hand.sink->worker_names(hand.core, 1, &g, 1);
	hand_up(0);
	for (i = 0; i < 2; i++)
		r[i] = schedule(cl, "g");
	ck_assert_int_eq(evc_cluster_join(cl, 0), -EVC_DEADLINE_EXCEEDED);
	HAS(evc_last_error(), "2 queued, but no worker has had a function "
			      "called \"g\"");
	UNTIL(atomic_load(&n_lacks) == 1);
	hand_up(1);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(hand_take(1, &t, 1), 1);
		hand_finish(1, &t, 0, NULL);
		evc_remote_free(r[i]);
	}
	OK(evc_cluster_join(cl, T_LIMIT));
	ck_assert_int_eq(atomic_load(&n_lacks), 1);
	evc_cluster_close(cl);
	hand_end_coord(c);
}
END_TEST

/* There is no room, and would be none for ever. */
START_TEST(what_is_wrong_waits_for_nothing)
{
	evc_cluster_config k = { HAND_CONFIG, .max_queued = 1 };
	const evc_schedule_opts at = { .worker = "worker 7" };
	evc_remote *r;

	c = new_coord(NULL);
	cl = open_with(c, "hand://1", &k);
	hand_up(0);
	r = schedule(cl, "f");
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(cl, "nobody", NULL, NULL, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(cl, "f", NULL, NULL, &at, NULL));
	OK(evc_remote_cancel(r));
	evc_remote_free(r);
	evc_cluster_close(cl);
	hand_end_coord(c);
}
END_TEST

/* What it says is looked at: no code of a function comes back as a refusal. */
START_TEST(an_engine_that_talks_nonsense)
{
	static const int codes[] = { -7, 256, 100000 };
	evc_cluster_info info;
	evc_remote_info i;
	evc_engine_task t;
	evc_remote *r;
	unsigned k;

	c = new_coord(NULL);
	cl = open_with(c, "hand://1", &(evc_cluster_config){ HAND_CONFIG });
	hand_up(0);
	for (k = 0; k < 3; k++) {
		evc_engine_result said = { .code = codes[k], .kind = 99,
					   .took = NAN };

		r = schedule(cl, "f");
		ck_assert_uint_eq(hand_take(0, &t, 1), 1);
		said.n = t.n;
		hand.sink->finished(hand.core, 0, &said, 1);
		ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNKNOWN);
		OK(evc_remote_get(r, &i));
		ck_assert_int_eq(i.code, EVC_UNKNOWN);
		ck_assert_uint_eq(i.kind, EVC_FAILED_FUNCTION);
		evc_remote_free(r);
	}
	hand.sink->built(hand.core, 0, 1, 0, INFINITY);
	OK(evc_cluster_get(cl, &info));
	ck_assert(info.run_time == 0 && info.build_time == 0);
	evc_cluster_close(cl);
	hand_end_coord(c);
}
END_TEST

static evc_status
fills_the_queue(evc_exec *x, void *arg)
{
	atomic_int *st = arg;
	evc_status is;

	(void)x;
	while ((is = evc_schedule(cl, "hold", NULL, NULL, NULL, NULL)) == 0)
		;
	atomic_store(st, is);
	return 0;
}

START_TEST(a_function_does_not_wait_for_room)
{
	evc_cluster_config k = { F_CONFIG, .max_queued = 2 };
	atomic_int st = 0;
	evc_remote *r = NULL;

	atomic_store(&f_open, 1);
	c = new_coord(NULL);
	cl = open_with(c, "threads://1", &k);
	OK(evc_schedule_call(cl, fills_the_queue, &st, NULL, NULL, NULL, &r));
	OK(evc_remote_fetch(r, T_LIMIT, NULL));
	ck_assert_int_eq(atomic_load(&st), -EVC_RESOURCE_EXHAUSTED);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_remote_free(r);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

static evc_status
fails_when_it_may(evc_exec *x, void *arg)
{
	(void)arg;
	while (!atomic_load(&f_in))
		t_sleep(0.001);
	return evc_exec_fail(x, EVC_DATA_LOSS, "now");
}

/* After another one's error, while it runs itself. */
static evc_status
schedules_after_an_error(evc_exec *x, void *arg)
{
	atomic_int *st = arg;

	atomic_store(&f_in, 1);
	if (evc_exec_wait_for_stop(x, T_LIMIT))
		atomic_store(st, evc_schedule(cl, "hold", NULL, NULL, NULL,
					      NULL));
	return 0;
}

START_TEST(a_function_does_not_wait_for_an_error)
{
	evc_cluster_config k = { F_CONFIG, .grace = INFINITY };
	atomic_int st = 0;

	atomic_store(&f_in, 0);
	c = new_coord(NULL);
	cl = open_with(c, "threads://2", &k);
	OK(evc_schedule_call(cl, schedules_after_an_error, &st, NULL, NULL,
			     NULL, NULL));
	OK(evc_schedule_call(cl, fails_when_it_may, NULL, NULL, NULL, NULL,
			     NULL));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_DATA_LOSS);
	ck_assert_int_eq(atomic_load(&st), -EVC_RESOURCE_EXHAUSTED);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

/* ---- a queue that is full, on the loop ---- */

struct writable {
	int calls;
	bool accepted;
};

static void
on_writable(evc_cluster *of, void *arg)
{
	struct writable *w = arg;

	w->calls++;
	w->accepted = evc_schedule(of, "hold", NULL, NULL, NULL, NULL) == 0;
}

/* One function runs, and there is no room for more, until f_open. */
static void
begin_full(struct ev_loop *loop, struct writable *w)
{
	evc_cluster_config k = { F_CONFIG, .max_queued = 2,
				 .writable = on_writable, .arg = w };

	*w = (struct writable){ 0, false };
	atomic_store(&f_in, 0);
	atomic_store(&f_open, 0);
	c = new_coord(loop);
	cl = open_with(c, "threads://1", &k);
	evc_remote_free(schedule(cl, "hold"));
	UNTIL(atomic_load(&f_in) == 1);
	while (evc_schedule(cl, "hold", NULL, NULL, NULL, NULL) == 0)
		;
}

static void
end_full(struct ev_loop *loop, const struct writable *w)
{
	ck_assert_int_eq(w->calls, 1);
	ck_assert(w->accepted);
	evc_cluster_close(cl);
	end_coord(c);
	ev_loop_destroy(loop);
}

START_TEST(writable_when_there_is_room)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct writable w;
	int i;

	begin_full(loop, &w);
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_schedule(cl, "hold", NULL, NULL, NULL, NULL));
	/* nothing is called for, and nothing spins, while it is full */
	for (i = 0; i < 5; i++)
		ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(w.calls, 0);
	atomic_store(&answer, 0);
	atomic_store(&f_open, 1);
	OK(evc_cluster_join_start(cl, on_joined, NULL));
	ev_run(loop, 0);
	ck_assert_int_eq(answer, 1000);
	end_full(loop, &w);
}
END_TEST

static void *
open_when_asleep(void *arg)
{
	until_asleep(*(const int *)arg);
	atomic_store(&f_open, 1);
	return NULL;
}

/* As long as somebody is to be called, a plain ev_run goes on. */
START_TEST(refused_it_keeps_the_loop_until_there_is_room)
{
	struct ev_loop *loop = ev_loop_new(0);
	int tid = own_tid();
	struct writable w;
	pthread_t thread;

	begin_full(loop, &w);
	OK(pthread_create(&thread, NULL, open_when_asleep, &tid));
	ev_run(loop, 0);
	OK(pthread_join(thread, NULL));
	end_full(loop, &w);
}
END_TEST

API_MAIN("told", a_schedule_that_fails_at_once_ends_a_join,
	 worker_wait_begins_anew, for_a_worker_that_does_not_come,
	 no_worker_has_both, what_no_worker_has_is_named_at_once,
	 builds_and_functions_are_told_in_their_order,
	 what_is_wrong_waits_for_nothing, an_engine_that_talks_nonsense,
	 a_function_does_not_wait_for_room,
	 a_function_does_not_wait_for_an_error,
	 writable_when_there_is_room,
	 refused_it_keeps_the_loop_until_there_is_room)
