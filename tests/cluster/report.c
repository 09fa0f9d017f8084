/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a cluster says how it goes: its numbers, its workers, the report, and
 * what config.worker hears.
 */
#include "../support/cluster_util.h"
#include "../support/metrics_util.h"

#ifdef HAVE_JANSSON
#include <jansson.h>
#endif

/* ---- the report ---- */

static const char *
report(const evc_cluster *cl)
{
	static char text[4000];

	ck_assert_uint_eq(own_report(evc_cluster_scope(cl), text, sizeof(text)),
			  strlen(text));
	return text;
}

/* Its line number n; "" past the end. */
static const char *
line(const evc_cluster *cl, int n)
{
	static char one[400];
	const char *s = report(cl);

	for (; n > 0 && s != NULL; n--) {
		s = strchr(s, '\n');
		s = s != NULL ? s + 1 : NULL;
	}
	if (s == NULL)
		return "";
	snprintf(one, sizeof(one), "%.*s", (int)strcspn(s, "\n"), s);
	return one;
}

static bool
all_up(const evc_cluster *cl)
{
	evc_cluster_info i;

	return evc_cluster_get(cl, &i) == 0 && i.n_up == i.n_workers;
}

START_TEST(what_runs_where_and_what_is_queued)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	char small[10];
	size_t n;
	int i;

	UNTIL(all_up(cl));
	ck_assert_str_eq(report(cl), "nothing runs, nothing is queued\n");
	evc_remote_free(schedule(cl, "hold"));
	UNTIL(atomic_load(&f_in) == 1);
	/* so that one is the longest, as it is told: to a tenth of a second */
	t_sleep(0.15);
	evc_remote_free(schedule(cl, "deaf"));
	UNTIL(atomic_load(&f_in) == 2);
	for (i = 0; i < 9; i++)
		evc_remote_free(schedule_add(cl, i, i));
	HAS(line(cl, 0), "hold on worker ");
	HAS(line(cl, 0), " (tid ");
	HAS(line(cl, 0), " for 0.");
	HAS(line(cl, 1), "deaf on worker ");
	ck_assert_str_eq(line(cl, 2), "9 queued");
	ck_assert_str_eq(line(cl, 3), "");
	/* as snprintf */
	n = report_text(evc_cluster_scope(cl), NULL, 0);
	ck_assert_uint_eq(report_text(evc_cluster_scope(cl), small,
				      sizeof(small)),
			  n);
	ck_assert_uint_eq(strlen(small), sizeof(small) - 1);
	ck_assert_uint_eq(own_report(evc_cluster_scope(NULL), small,
				     sizeof(small)),
			  0);
	/* the coordinator's report says it, too */
	{
		char text[4000];

		evc_report(c, EVC_REPORT_TEXT, text, sizeof(text));
		HAS(text, "hold on worker ");
		HAS(text, "1 more worker runs something");
		HAS(text, "9 queued");
	}
	atomic_store(&f_open, 1);
	OK(evc_cluster_join(cl, T_LIMIT));
	ck_assert_str_eq(report(cl), "nothing runs, nothing is queued\n");
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

START_TEST(what_waits_for_its_inputs)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://1");
	evc_remote *r = schedule(cl, "hold"), *sum;

	UNTIL(atomic_load(&f_in) == 1);
	OK(evc_schedule_pack(cl, "echo", NULL, &sum, "[r]", r));
	HAS(line(cl, 1), "1 waiting for inputs or a retry");
	atomic_store(&f_open, 1);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_remote_free(sum);
	evc_remote_free(r);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

/* ---- in the report of the root ---- */

#define LABELS "coordinator=\"coord\",scope=\"cluster\""

/* One function that is held, three behind it, and a variable. */
static evc_cluster *
busy_cluster(evc_coord *c)
{
	evc_cluster *cl = open_threads(c, "threads://1");
	int i;

	UNTIL(all_up(cl));
	evc_remote_free(schedule(cl, "hold"));
	UNTIL(atomic_load(&f_in) == 1);
	for (i = 0; i < 3; i++)
		evc_remote_free(schedule_add(cl, i, i));
	OK(evc_variable_add(cl, "steps", 1, NULL));
	return cl;
}

static void
busy_end(evc_coord *c, evc_cluster *cl)
{
	atomic_store(&f_open, 1);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_coord(c);
}

START_TEST(the_metrics_of_a_cluster)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = busy_cluster(c);
	static char text[1 << 16];

	ck_assert_uint_lt(report_metrics(c, text, sizeof(text)), sizeof(text));
	read_metrics(text);
	ask_promtool(text);
	ck_assert(value("evcoord_cluster_queued", LABELS) == 3);
	ck_assert(value("evcoord_cluster_running", LABELS) == 1);
	ck_assert(value("evcoord_cluster_scheduled_total", LABELS) == 4);
	ck_assert(value("evcoord_cluster_done_total", LABELS) == 0);
	ck_assert(value("evcoord_cluster_variables", LABELS) == 1);
	ck_assert(value("evcoord_cluster_unsaved_saves", LABELS) == 0);
	ck_assert(value("evcoord_cluster_workers", LABELS ",state=\"up\"") ==
		  1);
	ck_assert(value("evcoord_cluster_workers", LABELS ",state=\"gone\"") ==
		  0);
	ck_assert(value("evcoord_cluster_age_seconds", LABELS) > 0);
	busy_end(c, cl);
}
END_TEST

#ifdef HAVE_JANSSON

START_TEST(the_JSON_of_a_cluster)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = busy_cluster(c);
	static char text[1 << 16];
	json_t *o, *k, *w;
	const char *s;

	ck_assert_uint_lt(report_json(c, text, sizeof(text)), sizeof(text));
	o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_msg(o != NULL, "%s", text);
	k = json_object_get(json_object_get(o, "coordinator"), "scopes");
	k = json_object_get(json_array_get(k, 0), "described");
	k = json_object_get(k, "cluster");
	ck_assert(json_is_object(k));
	s = json_string_value(json_object_get(k, "engine"));
	ck_assert_str_eq(s, "threads");
	ck_assert_int_eq(json_integer_value(json_object_get(k, "queued")), 3);
	ck_assert_int_eq(json_integer_value(json_object_get(k, "variables")),
			 1);
	ck_assert(json_is_null(json_object_get(k, "trouble")));
	ck_assert(json_is_null(json_object_get(k, "unsaved_why")));
	ck_assert(json_is_number(json_object_get(k, "run_time")));
	ck_assert_uint_eq(json_array_size(json_object_get(k, "workers")), 1);
	w = json_array_get(json_object_get(k, "workers"), 0);
	s = json_string_value(json_object_get(w, "function"));
	ck_assert_str_eq(s, "hold");
	s = json_string_value(json_object_get(w, "state"));
	ck_assert_str_eq(s, "up");
	ck_assert(json_is_null(json_object_get(w, "text")));
	json_decref(o);
	busy_end(c, cl);
}
END_TEST

#define JSON_TESTS the_JSON_of_a_cluster,
#else
#define JSON_TESTS
#endif

static void *
report_again_and_again(void *arg)
{
	static __thread char buf[1 << 14];
	evc_coord *c = arg;
	unsigned format;

	while (!evc_should_stop(c))
		for (format = EVC_REPORT_TEXT; format <= EVC_REPORT_METRICS;
		     format++)
			evc_report(c, format, buf, sizeof(buf));
	return NULL;
}

START_TEST(clusters_come_and_go_while_another_thread_reports)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl;
	pthread_t t;
	int i;

	OK(pthread_create(&t, NULL, report_again_and_again, c));
	for (i = 0; i < 10; i++) {
		cl = open_threads(c, "threads://2");
		evc_remote_free(schedule_add(cl, i, i));
		OK(evc_cluster_join(cl, T_LIMIT));
		evc_cluster_close(cl);
	}
	OK(evc_request_stop(c, 0, NULL));
	OK(pthread_join(t, NULL));
	end_coord(c);
}
END_TEST

/* ---- workers that hang ---- */

/* Given up, and run by its worker still: the error is raised, and the worker
   takes nothing until it is back. */
START_TEST(one_that_hangs_is_named)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster_config k = { F_CONFIG, .grace = 0.01 };
	evc_cluster_worker_info w;
	evc_cluster *cl;

	atomic_store(&f_in, 0);
	atomic_store(&f_open, 0);
	cl = open_with(c, "threads://2", &k);
	evc_remote_free(schedule(cl, "deaf"));
	UNTIL(atomic_load(&f_in) == 1);
	evc_remote_free(schedule(cl, "fail"));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_DATA_LOSS);
	HAS(line(cl, 0), "deaf on worker ");
	HAS(line(cl, 0), "; it hangs");
	OK(evc_cluster_worker_get(cl, 0, &w));
	if (w.state == EVC_WORKER_UP)
		OK(evc_cluster_worker_get(cl, 1, &w));
	ck_assert_uint_eq(w.state, EVC_WORKER_HUNG);
	ck_assert_str_eq(w.function, "deaf");
	ck_assert_uint_eq(w.n_running, 1);
	/* it is back when it has returned */
	atomic_store(&f_open, 1);
	UNTIL(all_up(cl));
	ck_assert_str_eq(report(cl), "nothing runs, nothing is queued\n");
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

/* There is a worker, though it takes nothing: that is why there is none. */
START_TEST(when_all_hang_that_is_the_reason)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster_config k = { F_CONFIG, .grace = 0.01, .worker_wait = 0.01 };
	const char *why = "deaf on worker 0 has not returned";
	evc_cluster_worker_info w;
	evc_cluster *cl;
	evc_remote *r;

	atomic_store(&f_in, 0);
	atomic_store(&f_open, 0);
	cl = open_with(c, "threads://1", &k);
	r = schedule(cl, "deaf");
	UNTIL(atomic_load(&f_in) == 1);
	OK(evc_remote_cancel(r));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	HAS(evc_last_error(), "deaf: it did not return in 0.01 s");
	HAS(evc_last_error(), "on worker 0");
	OK(evc_cluster_worker_get(cl, 0, &w));
	HAS(w.text, why);
	evc_remote_free(schedule_add(cl, 1, 1));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	HAS(evc_last_error(), "no worker for 0.01 s");
	HAS(evc_last_error(), why);
	atomic_store(&f_open, 1);
	UNTIL(all_up(cl));
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_remote_free(r);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

/* ---- workers ---- */

START_TEST(workers)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://3");
	evc_cluster_worker_info w;
	unsigned i;

	UNTIL(all_up(cl));
	for (i = 0; i < 3; i++) {
		char name[20];

		OK(evc_cluster_worker_get(cl, i, &w));
		snprintf(name, sizeof(name), "worker %u", i);
		ck_assert_str_eq(w.name, name);
		ck_assert_uint_eq(w.index, i);
		ck_assert_uint_eq(w.state, EVC_WORKER_UP);
		ck_assert_uint_eq(w.lives, 1);
		ck_assert_uint_eq(w.n_running, 0);
		ck_assert_uint_eq(w.n_done, 0);
		ck_assert(w.busy < 0);
		ck_assert(w.since >= 0 && w.since < 100);
		ck_assert_str_eq(w.function, "");
		ck_assert_str_eq(w.text, "");
		ck_assert_int_eq(strncmp(w.where, "tid ", 4), 0);
	}
	REFUSED(EVC_NOT_FOUND, evc_cluster_worker_get(cl, 3, &w));
	OK(evc_cluster_worker_get(cl, 0, NULL));
	REFUSED(EVC_NOT_FOUND, evc_cluster_worker_get(cl, 100, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_worker_get(NULL, 0, &w));
	OK(evc_schedule(cl, "hold", NULL, NULL,
			&(evc_schedule_opts){ .worker = "worker 1" }, NULL));
	UNTIL(atomic_load(&f_in) == 1);
	OK(evc_cluster_worker_get(cl, 1, &w));
	ck_assert_str_eq(w.function, "hold");
	ck_assert_uint_eq(w.n_running, 1);
	ck_assert(w.busy >= 0 && w.busy < 100);
	atomic_store(&f_open, 1);
	OK(evc_cluster_join(cl, T_LIMIT));
	OK(evc_cluster_worker_get(cl, 1, &w));
	ck_assert_uint_eq(w.n_done, 1);
	ck_assert(w.busy < 0);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

struct heard {
	int n;
	unsigned states[16];
	char names[16][48];
};

static void
on_worker(evc_cluster *cl, const evc_cluster_worker_info *w, void *arg)
{
	struct heard *h = arg;

	(void)cl;
	if (h->n < 16) {
		h->states[h->n] = w->state;
		snprintf(h->names[h->n], sizeof(h->names[0]), "%s", w->name);
	}
	h->n++;
}

static int
n_heard(const struct heard *h, unsigned state)
{
	int i, n = 0;

	for (i = 0; i < h->n && i < 16; i++)
		n += h->states[i] == state;
	return n;
}

START_TEST(what_becomes_of_workers_is_told)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct heard h = { 0 };
	evc_cluster_config k = { F_CONFIG, .worker = on_worker, .arg = &h };
	evc_cluster *cl = open_with(c, "threads://2", &k);

	UNTIL((ev_run(loop, EVRUN_NOWAIT), n_heard(&h, EVC_WORKER_UP) == 2));
	ck_assert_int_eq(h.n, 2);
	ck_assert_str_ne(h.names[0], h.names[1]);
	evc_cluster_close(cl);
	OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
	ck_assert_int_eq(n_heard(&h, EVC_WORKER_GONE), 2);
	ck_assert_int_eq(h.n, 4);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- numbers ---- */

START_TEST(numbers)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	evc_remote *r[10], *cancelled;
	evc_cluster_info i;
	int k;

	UNTIL(all_up(cl));
	OK(evc_cluster_get(cl, &i));
	ck_assert_str_eq(i.engine, "threads");
	ck_assert_uint_eq(i.n_workers, 2);
	ck_assert_uint_eq(i.n_scheduled + i.n_done + i.n_executions, 0);
	ck_assert(i.rate == 0);
	ck_assert(i.age >= 0 && i.age < 100);
	for (k = 0; k < 10; k++)
		r[k] = schedule_add(cl, k, k);
	OK(evc_cluster_join(cl, T_LIMIT));
	OK(evc_cluster_get(cl, &i));
	ck_assert_uint_eq(i.n_scheduled, 10);
	ck_assert_uint_eq(i.n_done, 10);
	ck_assert_uint_eq(i.n_executions, 10);
	ck_assert_uint_eq(i.n_queued + i.n_running, 0);
	ck_assert_uint_eq(i.n_fetches, 0);
	ck_assert(i.rate > 0);
	ck_assert(i.run_time >= 0);
	for (k = 0; k < 10; k++) {
		OK(evc_remote_fetch(r[k], 0, NULL));
		OK(evc_remote_fetch(r[k], 0, NULL));
		evc_remote_free(r[k]);
	}
	for (k = 0; k < 3; k++)
		evc_remote_free(schedule(cl, "hold"));
	UNTIL(atomic_load(&f_in) == 2);
	cancelled = schedule_add(cl, 1, 1);
	OK(evc_remote_cancel(cancelled));
	evc_remote_free(cancelled);
	/* a worker may have taken two for a moment */
	UNTIL((evc_cluster_get(cl, &i), i.n_running == 2));
	ck_assert_uint_eq(i.n_fetches, 10);
	ck_assert_uint_eq(i.n_queued, 1);
	ck_assert_uint_eq(i.n_cancelled, 1);
	atomic_store(&f_open, 1);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_remote_free(schedule(cl, "fail"));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_DATA_LOSS);
	OK(evc_cluster_get(cl, &i));
	ck_assert_uint_eq(i.n_failed, 1);
	ck_assert_uint_eq(i.n_done, 13);
	ck_assert_uint_eq(i.n_scheduled, 15);
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_get(cl, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_get(NULL, &i));
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

API_MAIN("report", JSON_TESTS what_runs_where_and_what_is_queued,
	 the_metrics_of_a_cluster,
	 clusters_come_and_go_while_another_thread_reports,
	 what_waits_for_its_inputs, one_that_hangs_is_named,
	 when_all_hang_that_is_the_reason, workers,
	 what_becomes_of_workers_is_told, numbers)
