/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers that come and go: rows F01, F02, F13, F15, F21, what is said of them,
 * and clusters that have none.  The rows about the death of what keeps the
 * variables, F09, F17 and F18, are in tests/redis/lost.c.
 */
#include "functions.h"

#include <dirent.h>

START_TEST(F01_testClusterCoordinatorDestroyed)
{
	evc_join_opts budget = { .grace = T_LIMIT };
	int pids[3] = { 0 }, i;

	begin(_i, 3);
	for (i = 0; i < 3; i++)
		if (can(DIES))
			pids[i] = (int)pid_when_up((unsigned)i);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	evc_cluster_close(on.cl);
	on.cl = NULL;
	OK(evc_join(on.c, &budget, NULL));
	OK(evc_free(on.c));
	on.c = NULL;
	for (i = 0; i < 3; i++)
		if (pids[i] != 0)
			IS(kill(pids[i], 0) == 0, 0);
	ck_assert_int_eq(t_settle_threads(on.threads), on.threads);
}
END_TEST

static void
two_jobs(double are)
{
	DO("count", "[sd]", "jobs", 1.0);
	DO("count", "[sd]", "jobs", 1.0);
	OK(join());
	ck_assert(variable("jobs") == are);
}

START_TEST(F02_testWorkerPreemptionBetweenFunctions)
{
	begin(_i, 2);
	two_jobs(2);
	replace_worker(0);
	two_jobs(4);
	replace_worker(1);
	two_jobs(6);
	ck_assert_uint_eq(worker(0).lives, 2);
	ck_assert_uint_eq(worker(1).lives, 2);
	ck_assert_str_ne(worker(0).text, "");
	/* Nothing was lost with them. */
	ck_assert_uint_eq(numbers().n_lost, 0);
}
END_TEST

START_TEST(F13_testNumpyFetchedAfterWorkerFailure)
{
	evc_schedule_opts at = { .worker = "worker 0" };
	evc_remote *r;

	begin(_i, 2);
	r = SCHEDULE_WITH(&at, "add", "[ii]", 20, 22);
	IS(number_of(r), 42);
	replace_worker(0);
	/* Results live at the coordinator. */
	IS(number_of(r), 42);
	IS(take_number(SCHEDULE("add", "[ri]", r, 1)), 43);
	evc_remote_free(r);
	OK(join());
}
END_TEST

/* The variables are looked at all the time; no look fails, and they grow. */
START_TEST(F15_testFetchFromPSAfterWorkerFailure)
{
	double is, was = 0;
	int round;
	pid_t pid;

	begin(_i, 2);
	for (round = 0; round < 3; round++) {
		for (is = was; is < was + 5;) {
			DO("count", "[sd]", "steps", 1.0);
			is = variable("steps");
			t_sleep(0.002);
		}
		was = is;
		pid = pid_when_up((unsigned)round % 2);
		OK(kill(pid, SIGKILL));
		while (pid_of((unsigned)round % 2) == pid ||
		       pid_of((unsigned)round % 2) == 0) {
			is = variable("steps");
			ck_assert(is >= was);
			was = is;
			t_sleep(0.01);
		}
	}
	OK(join());
	ck_assert(variable("steps") >= 15);
}
END_TEST

/* ---- F21: workers of a program that is held at its start ---- */

#define FOLDER_VARIABLE "EVC_CONFORMANCE_START"

/* A file for each start of a worker, with its pid as the name; then it waits for
   the file "go". */
static evc_status
start(evc_coord *c, void *arg)
{
	const char *folder = getenv(FOLDER_VARIABLE);
	double until = t_now() + T_LIMIT;
	char path[256];
	FILE *f;

	(void)c;
	(void)arg;
	if (folder == NULL)
		return 0;
	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	f = fopen(path, "w");
	if (f == NULL || fclose(f) != 0)
		return EVC_INTERNAL;
	snprintf(path, sizeof(path), "%s/go", folder);
	while (access(path, F_OK) != 0 && t_now() < until)
		t_sleep(0.002);
	return 0;
}

/* The pids of those that have started, up to 8. */
static unsigned
started(const char *folder, pid_t *pids)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	unsigned n = 0;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL && n < 8)
		if (atoi(e->d_name) > 0)
			pids[n++] = (pid_t)atoi(e->d_name);
	closedir(d);
	return n;
}

static void
remove_folder(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			OK(unlinkat(dirfd(d), e->d_name, 0));
	closedir(d);
	OK(rmdir(folder));
}

START_TEST(F21_testWorkerPreemptionDuringInit)
{
	char folder[] = "/tmp/evc-conformance-XXXXXX", go[64];
	pid_t first[8], now[8];
	FILE *f;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	OK(setenv(FOLDER_VARIABLE, folder, 1));
	begin(_i, 2);
	DO("count", "[sd]", "jobs", 1.0);
	UNTIL(started(folder, first) == 2);
	OK(kill(first[0], SIGKILL));
	/* It is tried again; and when it is back, the other one dies. */
	UNTIL(started(folder, now) == 3);
	OK(kill(first[1], SIGKILL));
	UNTIL(started(folder, now) == 4);
	ck_assert_uint_eq(numbers().n_up, 0);
	snprintf(go, sizeof(go), "%s/go", folder);
	f = fopen(go, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
	DO("count", "[sd]", "jobs", 1.0);
	OK(join());
	ck_assert(variable("jobs") == 2);
	UNTIL(numbers().n_up == 2);
	ck_assert_uint_eq(worker(0).lives + worker(1).lives, 2);
	OK(unsetenv(FOLDER_VARIABLE));
	remove_folder(folder);
}
END_TEST

/* ---- what is said of them ---- */

struct heard {
	atomic_int up, gone, wrong;
};

static void
hear(evc_cluster *cl, const evc_cluster_worker_info *w, void *arg)
{
	struct heard *h = arg;

	(void)cl;
	if (w->state == EVC_WORKER_UP)
		atomic_fetch_add(&h->up, 1);
	else if (w->state == EVC_WORKER_GONE)
		atomic_fetch_add(&h->gone, 1);
	if (w->index >= 2 || w->name[0] == '\0')
		atomic_fetch_add(&h->wrong, 1);
}

START_TEST(their_names_and_states)
{
	static struct heard h;
	evc_cluster_config config = { .worker = hear, .arg = &h };
	evc_cluster_worker_info w;
	char text[4096];
	evc_remote *r;
	unsigned i;

	begin_with(_i, 2, &config);
	UNTIL(numbers().n_up == 2 && atomic_load(&h.up) == 2);
	ck_assert_uint_eq(numbers().n_workers, 2);
	for (i = 0; i < 2; i++) {
		w = worker(i);
		ck_assert_uint_eq(w.state, EVC_WORKER_UP);
		ck_assert_uint_eq(w.lives, 1);
		ck_assert_uint_eq(w.n_running, 0);
		ck_assert(w.busy < 0);
		ck_assert(w.since >= 0);
		HAS(w.name, i == 0 ? "worker 0" : "worker 1");
		HAS(w.where, can(DIES) ? "pid " : "tid ");
		ck_assert_str_eq(w.function, "");
	}
	IS(evc_cluster_worker_get(on.cl, 2, &w), -EVC_NOT_FOUND);
	r = SCHEDULE_WITH((&(evc_schedule_opts){ .worker = "worker 1" }),
			  "hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	w = worker(1);
	ck_assert_uint_eq(w.n_running, 1);
	ck_assert(w.busy >= 0);
	ck_assert_str_eq(w.function, "hold");
	own_report(evc_cluster_scope(on.cl), text, sizeof(text));
	HAS(text, "hold");
	HAS(text, "worker 1");
	let_go("g");
	IS(take_number(r), 1);
	OK(join());
	ck_assert_uint_eq(worker(1).n_done, 1);
	ck_assert_uint_eq(worker(0).n_done, 0);
	if (can(DIES)) {
		replace_worker(1);
		UNTIL(atomic_load(&h.up) == 3);
		IS(atomic_load(&h.gone), 1);
		ck_assert_uint_eq(worker(1).lives, 2);
		/* In all its lives. */
		ck_assert_uint_eq(worker(1).n_done, 1);
		SAYS_KILLED(worker(1).text);
	}
	IS(atomic_load(&h.wrong), 0);
}
END_TEST

/* A worker's own number and name are those that the cluster has for it, in each
   of its lives, and whoever says something of it says so by that name: so what is
   shared out by numbers is shared out. */
START_TEST(they_know_who_they_are)
{
	evc_schedule_opts at = { .deaths = 1 };
	evc_cluster_worker_info w;
	char name[32], own[64];
	unsigned i, index;
	evc_remote *r;
	evc_value v;

	begin(_i, 4);
	for (i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "worker %u", i % 4);
		at.worker = name;
		if (i == 4 && !can(DIES))
			break;
		if (i >= 4) {
			replace_worker(i % 4);
			w = worker(i % 4);
			HAS(w.text, name);
			SAYS_KILLED(w.text);
		}
		r = SCHEDULE_WITH(&at, "who", "[]");
		OK(evc_remote_fetch(r, T_LIMIT, &v));
		OK(evc_unpack(&v, "[su...]", own, sizeof(own), &index));
		ck_assert_str_eq(own, name);
		ck_assert_uint_eq(index, i % 4);
		evc_remote_free(r);
	}
	/* What was its death is told with the same name. */
	at.worker = "worker 3";
	if (can(DIES)) {
		r = SCHEDULE_WITH(&at, "hold", "[s]", "g");
		UNTIL(are_in("g", 1));
		OK(kill(pid_when_up(3), SIGKILL));
		IS(code_of(r), EVC_ABORTED);
		HAS(info_of(r).text, "worker 3 (pid ");
		evc_remote_free(r);
		IS(join(), EVC_ABORTED);
	}
	OK(join());
}
END_TEST

/* ---- no worker at all ---- */

static void
begin_without_workers(int i, double worker_wait)
{
	evc_cluster_config config = { .worker_wait = worker_wait };

	choose(i, 2);
	OK(evc_new(NULL, NULL, &on.c));
	OK(open_another(address_of_none(), &config, &on.cl));
}

START_TEST(without_a_worker_all_calls_raise)
{
	evc_remote *r[3];
	evc_status st;
	bool done;
	int i;

	begin_without_workers(_i, 0.3);
	for (i = 0; i < 3; i++)
		r[i] = SCHEDULE("add", "[ii]", 1, 2);
	IS(info_of(r[0]).state, EVC_REMOTE_QUEUED);
	IS(join(), EVC_UNAVAILABLE);
	for (i = 0; i < 3; i++) {
		IS(code_of(r[i]), EVC_CANCELLED);
		ck_assert_uint_eq(info_of(r[i]).kind, EVC_FAILED_CLUSTER);
		evc_remote_free(r[i]);
	}
	/* And again, for it is so still. */
	st = evc_schedule(on.cl, "who", NULL, NULL, NULL, NULL);
	IS(st, EVC_UNAVAILABLE);
	IS(evc_cluster_done(on.cl, &done), EVC_UNAVAILABLE);
	IS(join(), EVC_UNAVAILABLE);
}
END_TEST

START_TEST(functions_wait_for_a_worker_and_the_report_says_so)
{
	char text[4096];
	evc_remote *r;

	begin_without_workers(_i, INFINITY);
	r = SCHEDULE("add", "[ii]", 1, 2);
	IS(evc_cluster_join(on.cl, 0.3), -EVC_DEADLINE_EXCEEDED);
	HAS(evc_last_error(), "no worker");
	IS(info_of(r).state, EVC_REMOTE_QUEUED);
	own_report(evc_cluster_scope(on.cl), text, sizeof(text));
	HAS(text, "1 queued");
	/* Those that there should be. */
	if (!can(FINDS))
		HAS(text, "worker 1");
	ck_assert(!all_done());
	evc_cluster_close(on.cl);
	on.cl = NULL;
	IS(code_of(r), EVC_CANCELLED);
	evc_remote_free(r);
}
END_TEST

/* Unavailable until one is up. */
START_TEST(a_worker_that_comes_late_ends_it)
{
	char folder[] = "/tmp/evc-conformance-XXXXXX", go[64];
	evc_cluster_config config = { .worker_wait = 0.2 };
	FILE *f;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	OK(setenv(FOLDER_VARIABLE, folder, 1));
	begin_with(_i, 2, &config);
	DO("add", "[ii]", 1, 2);
	IS(join(), EVC_UNAVAILABLE);
	snprintf(go, sizeof(go), "%s/go", folder);
	f = fopen(go, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
	UNTIL(numbers().n_up == 2);
	OK(join());
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
	OK(unsetenv(FOLDER_VARIABLE));
	remove_folder(folder);
}
END_TEST

static const evc_function functions[] = { COMMON_FUNCTIONS };

static const evc_worker_opts opts = { .start = start };

CONFORMANCE_MAIN_WITH("workers", functions, &opts,
		      ROW(F01_testClusterCoordinatorDestroyed),
		      ROW_ON(DIES, F02_testWorkerPreemptionBetweenFunctions),
		      ROW_ON(DIES, F13_testNumpyFetchedAfterWorkerFailure),
		      ROW_ON(DIES, F15_testFetchFromPSAfterWorkerFailure),
		      ROW_ON(DIES, F21_testWorkerPreemptionDuringInit),
		      ROW(their_names_and_states),
		      ROW(they_know_who_they_are),
		      ROW_ON(DIES, without_a_worker_all_calls_raise),
		      ROW_ON(DIES,
			     functions_wait_for_a_worker_and_the_report_says_so),
		      ROW_ON(DIES, a_worker_that_comes_late_ends_it))
