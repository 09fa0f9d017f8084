/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes on beside a start, a stop or a walk of worker groups: log hooks
 * that ask for something themselves, another thread's start, a free, a fork.
 */
#include "../../support/workers_util.h"

#include <sys/wait.h>

/* ---- log hooks ---- */

struct meddler {
	const char *line; /* at this one ... */
	evc_group *group;
	evc_status resized, paused;
	bool ended;
	atomic_int n;
	atomic_bool asked, returned;
};

static void
meddle(int level, const char *line, const evc_reason *r, void *arg)
{
	struct meddler *m = arg;

	(void)level;
	(void)r;
	if (strstr(line, m->line) == NULL || atomic_fetch_add(&m->n, 1) > 0)
		return;
	m->resized = evc_group_resize(m->group, 3);
	m->paused = evc_group_pause(m->group);
	atomic_store(&m->asked, true);
	m->ended = evc_group_wait_finish(m->group, INFINITY);
	atomic_store(&m->returned, true);
}

static evc_registry *
meddled_registry(struct meddler *m)
{
	evc_registry_opts o = { .grace = T_LIMIT,
				.config.log = meddle,
				.config.arg = m };
	evc_registry *reg;

	OK(evc_registry_new(&o, &reg));
	return reg;
}

START_TEST(the_log_hook_of_a_start_does_not_wait_for_it)
{
	struct meddler m = { .line = "not started" };
	struct crew k = { .init_says = EVC_INTERNAL };
	evc_registry *reg = meddled_registry(&m);

	m.group = crew_add(reg, "train", &k, 2, NULL);
	ck_assert_int_eq(evc_group_start(k.group), EVC_INTERNAL);
	UNTIL(atomic_load(&m.returned));
	ck_assert_int_eq(m.paused, -EVC_FAILED_PRECONDITION);
	end_registry(reg);
}
END_TEST

/* The stop does not end before the hook has asked for a resize. */
static void
cleanup_after_resize(void *arg)
{
	struct crew *k = arg;
	struct meddler *m = k->more;

	while (!atomic_load(&m->asked))
		t_sleep(0.001);
	crew_cleanup(arg);
}

START_TEST(the_log_hook_of_a_stop_does_not_wait_for_it)
{
	static const char *const lines[] = { "stops: ", "all workers have" };
	struct meddler m = { .line = lines[_i] };
	struct crew k = { .more = &m };
	evc_group_opts o = { .state.cleanup = cleanup_after_resize };
	evc_registry *reg = meddled_registry(&m);

	m.group = crew_add(reg, "train", &k, 2, &o);
	OK(evc_group_start(k.group));
	UNTIL(atomic_load(&k.runs) > 2);
	OK(evc_group_stop(k.group, NULL));
	UNTIL(atomic_load(&m.returned));
	ck_assert_int_eq(m.resized, -EVC_FAILED_PRECONDITION);
	ck_assert(m.ended);
	CALLED(&k, 1, 1, 1, 1, 1);
	end_registry(reg);
}
END_TEST

/* ---- a start beside a stop ---- */

struct stop {
	evc_group *group;
	evc_status result;
};

static void *
stop_main(void *arg)
{
	struct stop *s = arg;

	s->result = evc_group_stop(s->group, NULL);
	return NULL;
}

static void *
open_later(void *arg)
{
	struct crew *k = arg;

	t_sleep(MOMENT);
	atomic_store(&k->open, 1);
	return NULL;
}

/* First the stop, then the start, though its workers live when it is called. */
START_TEST(a_start_waits_for_a_stop_that_waits)
{
	evc_registry *reg = new_registry(T_LIMIT);
	struct crew k = { .run = crew_stay };
	struct stop s = { .result = -1 };
	pthread_t stops, opens;

	s.group = crew_add(reg, "train", &k, 2, NULL);
	OK(evc_group_start(k.group));
	UNTIL(atomic_load(&k.in) == 2);
	OK(pthread_create(&stops, NULL, stop_main, &s));
	SAYS("train", "waiting for", NULL);
	OK(pthread_create(&opens, NULL, open_later, &k));
	OK(evc_group_start(k.group));
	OK(pthread_join(stops, NULL));
	OK(pthread_join(opens, NULL));
	OK(s.result);
	ck_assert(evc_group_is_active(k.group));
	ck_assert_uint_eq(info_of(k.group).n_starts, 2);
	end_registry(reg);
	CALLED(&k, 2, 2, 2, 2, 2);
}
END_TEST

/* The helper thread, which is to see to it, is in another group's function. */
START_TEST(what_was_asked_to_stop_does_not_run)
{
	evc_group_opts o = { .shutdown = shut_slowly };
	evc_registry *reg = new_registry(T_LIMIT);
	struct crew a = { 0 }, b = { 0 };

	crew_add(reg, "a", &a, 1, &o);
	crew_add(reg, "b", &b, 1, NULL);
	OK(evc_registry_start(reg));
	OK(evc_request_stop(evc_group_scope(a.group), 0, "now"));
	UNTIL(atomic_load(&a.n_shutdown) == 1);
	OK(evc_request_stop(evc_group_scope(b.group), 0, "now"));
	ck_assert(!evc_group_is_active(b.group));
	ck_assert_uint_eq(info_of(b.group).state, EVC_GROUP_STOPPING);
	atomic_store(&a.open, 1);
	end_registry(reg);
}
END_TEST

/* ---- walks ---- */

struct freeing {
	evc_registry *reg;
	evc_status result;
	int n;
};

static bool
free_registry(evc_group *group, void *arg)
{
	struct freeing *f = arg;

	(void)group;
	f->n++;
	f->result = evc_registry_free(f->reg);
	return true;
}

/* Its groups have another coordinator: that of its own keeps nothing there. */
START_TEST(a_registry_is_not_freed_in_its_own_walk)
{
	struct freeing f = { .reg = new_registry(0) };
	struct crew a = { 0 }, b = { 0 };
	evc_group_opts o = { 0 };
	evc_coord *c;

	OK(evc_new(NULL, NULL, &c));
	o.coord = c;
	crew_add(f.reg, "a", &a, 1, &o);
	crew_add(f.reg, "b", &b, 1, &o);
	OK(evc_registry_each(f.reg, free_registry, &f));
	ck_assert_int_eq(f.n, 1);
	ck_assert_int_eq(f.result, -EVC_FAILED_PRECONDITION);
	ck_assert_uint_eq(evc_registry_ids(f.reg, NULL, 0), 0);
	OK(evc_registry_free(f.reg));
	OK(evc_free(c));
}
END_TEST

/* ---- a worker that forks ---- */

static evc_status
fork_once(evc_group *group, unsigned id, void *arg)
{
	int *status = arg;
	char text[512];
	pid_t pid;

	(void)id;
	evc_group_put(group, "x", 1, false);
	pid = fork();
	if (pid == 0) {
		alarm(10);
		CHILD_REFUSED(evc_group_put(group, "x", 1, false));
		report_metrics(evc_registry_coord(evc_group_registry(group)),
			       text, sizeof(text));
		CHILD(text[0] == '#' && text[strlen(text) - 1] == '\n');
		_exit(0);
	}
	waitpid(pid, status, 0);
	return EVC_OUT_OF_RANGE;
}

START_TEST(in_the_fork_child_of_a_worker_puts_are_refused)
{
	evc_group_opts o = { .n_threads = 1 };
	evc_registry *reg = new_registry(0);
	evc_group *g;
	int status = -1;

	OK(evc_group_init(reg, "f", fork_once, &status, &o, &g, NULL));
	OK(evc_group_start(g));
	ck_assert(evc_group_wait_finish(g, T_LIMIT));
	ck_assert_int_eq(status, 0);
	ck_assert_double_eq(evc_group_metric(g, "x"), 1);
	end_registry(reg);
}
END_TEST

/* ---- loggers ---- */

static atomic_int n_inside, n_calls, n_most;

static evc_status
slow_logger(evc_group *group, const evc_metric *m, unsigned n, void *arg)
{
	int in = atomic_fetch_add(&n_inside, 1) + 1;

	(void)group;
	(void)m;
	(void)n;
	(void)arg;
	if (in > atomic_load(&n_most))
		atomic_store(&n_most, in);
	t_sleep(0.02);
	atomic_fetch_sub(&n_inside, 1);
	atomic_fetch_add(&n_calls, 1);
	return 0;
}

/* However long it takes. */
START_TEST(a_logger_with_an_interval_is_not_called_twice_at_once)
{
	evc_logger l = { .fn = slow_logger, .every = 0.001 };
	evc_group_opts o = { .loggers = &l, .n_loggers = 1 };
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };

	crew_add(reg, "train", &k, 4, &o);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&n_calls) > 5);
	end_registry(reg);
	ck_assert_int_eq(atomic_load(&n_most), 1);
}
END_TEST

/* ---- reports ---- */

static evc_status
fail_at_once(evc_group *group, unsigned id, void *arg)
{
	(void)arg;
	return evc_group_fail(group, EVC_DATA_LOSS, 0, "shard %u", id);
}

START_TEST(what_an_error_is_about_is_said_once)
{
	evc_group_opts o = { .n_threads = 1 };
	evc_registry *reg = new_registry(0);
	evc_group *g;
	char text[4096];
	const char *line;

	OK(evc_group_init(reg, "f", fail_at_once, NULL, &o, &g, NULL));
	OK(evc_group_start(g));
	ck_assert(evc_group_wait_finish(g, T_LIMIT));
	report_text(evc_registry_coord(reg), text, sizeof(text));
	line = strstr(text, "worker 0, start 1, run 1: error DATA_LOSS (15)");
	ck_assert_msg(line != NULL, "%s", text);
	HAS(line, " ago: shard 0");
	end_registry(reg);
}
END_TEST

START_TEST(groups_with_names_like_numbers_are_told_apart)
{
	evc_registry *reg = new_registry(0);
	struct crew k[3] = { { 0 } };
	static char text[1 << 15];

	crew_add(reg, "train", &k[0], 1, NULL);
	crew_add(reg, "train", &k[1], 1, NULL);
	crew_add(reg, "train#2", &k[2], 1, NULL);
	report_metrics(evc_registry_coord(reg), text, sizeof(text));
	HAS(text, "scope=\"train\",group=\"train\"} 1");
	HAS(text, "scope=\"train#2\",group=\"train\"} 1");
	HAS(text, "scope=\"train#2#1\",group=\"train#2\"} 1");
	OK(evc_registry_free(reg));
}
END_TEST

static Suite *
beside_suite(void)
{
	Suite *s = suite_create("workers_beside");
	TCase *tc = tcase_create("workers_beside");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, the_log_hook_of_a_start_does_not_wait_for_it);
	tcase_add_loop_test(tc, the_log_hook_of_a_stop_does_not_wait_for_it, 0,
			    2);
	tcase_add_test(tc, a_start_waits_for_a_stop_that_waits);
	tcase_add_test(tc, what_was_asked_to_stop_does_not_run);
	tcase_add_test(tc, a_registry_is_not_freed_in_its_own_walk);
	tcase_add_test(tc, in_the_fork_child_of_a_worker_puts_are_refused);
	tcase_add_test(
		tc, a_logger_with_an_interval_is_not_called_twice_at_once);
	tcase_add_test(tc, what_an_error_is_about_is_said_once);
	tcase_add_test(tc, groups_with_names_like_numbers_are_told_apart);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return run_suite(beside_suite());
}
