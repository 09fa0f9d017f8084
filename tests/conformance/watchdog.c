/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where workers stand: reports with stacks while nothing stops, and the
 * watchdog, which makes one when no function ends.  Workers that are stopped,
 * that die while they are asked, and a loop that hangs.
 */
#include "functions.h"

#include "../support/older.h"

#include <evcoord/observe.h>

#define STACKS (EVC_REPORT_TEXT | EVC_REPORT_STACKS)
#define SILENCE "no function has ended for "

/* ---- the log ---- */

static struct {
	pthread_mutex_t lock;
	char text[1 << 20];
	size_t n;
} logged = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
keep_line(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)level;
	(void)r;
	(void)arg;
	pthread_mutex_lock(&logged.lock);
	if (logged.n < sizeof(logged.text))
		logged.n += (size_t)snprintf(logged.text + logged.n,
					     sizeof(logged.text) - logged.n,
					     "%s\n", line);
	pthread_mutex_unlock(&logged.lock);
}

static int
n_logged(const char *what)
{
	const char *at;
	int n = 0;

	pthread_mutex_lock(&logged.lock);
	for (at = logged.text; (at = strstr(at, what)) != NULL; at++)
		n++;
	pthread_mutex_unlock(&logged.lock);
	return n;
}

static void
begin_logged(int i, unsigned n_workers, evc_cluster_config *k)
{
	const evc_config config = { .log = keep_line };

	choose(i, n_workers);
	logged.n = 0;
	logged.text[0] = '\0';
	OK(evc_new(on.loop, &config, &on.c));
	ck_assert_msg(open_another(address(), k, &on.cl) == 0, "%s",
		      evc_last_error());
}

/* ---- what a report has ---- */

static char text[1 << 20];

/* The lines of the worker in the cluster's part; NULL: it is not busy. */
static const char *
about(const char *worker)
{
	char busy[64];

	snprintf(busy, sizeof(busy), " on %s (", worker);
	return strstr(text, busy);
}

/* What the next lines say, which are deeper. */
static bool
says(const char *from, const char *what)
{
	const char *line, *found = from != NULL ? strstr(from, what) : NULL;

	if (found == NULL)
		return false;
	for (line = strchr(from, '\n'); line != NULL && line < found;
	     line = strchr(line + 1, '\n'))
		if (strncmp(line + 1, "       ", 7) != 0)
			return false;
	return true;
}

static evc_status
take(void *arg)
{
	(void)arg;
	ck_assert_uint_lt(evc_report(on.c, STACKS, text, sizeof(text)),
			  sizeof(text));
	return 0;
}

#define STACK (HAS_BACKTRACE ? "stack: " : "kernel: ")

START_TEST(a_report_has_the_stacks_of_busy_workers)
{
	evc_remote *r[2];
	int i;

	if (t_under_qemu())
		T_SKIP("a thread of qemu has no stack for its program");
	if (HAS_BACKTRACE)
		OK(evc_stack_signal(0));
	begin(_i, 3);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(take(NULL));
	ck_assert_ptr_null(about("worker 0"));
	for (i = 0; i < 2; i++)
		r[i] = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 2));
	for (i = 0; i < 2; i++)
		/* A worker may be slow to answer. */
		UNTIL((take(NULL), says(about(info_of(r[i]).worker), STACK)) &&
		      (!HAS_BACKTRACE || !says(about(info_of(r[i]).worker),
					       "not available")));
	/* A thread's stack stands there alone. */
	if (can(CALLS) && HAS_BACKTRACE)
		ck_assert_ptr_nonnull(strstr(text, "its stack stands in another "
						   "part"));
	/* Without a stop a plain report asks nobody. */
	evc_report(on.c, EVC_REPORT_TEXT, text, sizeof(text));
	ck_assert_ptr_nonnull(about(info_of(r[0]).worker));
	ck_assert(!says(about(info_of(r[0]).worker), "stack: "));
	/* Two at once share the answers. */
	{
		struct aside a = { .fn = take };
		pthread_t t;
		static char other[1 << 20];

		OK(pthread_create(&t, NULL, run_aside, &a));
		evc_report(on.c, STACKS, other, sizeof(other));
		OK(pthread_join(t, NULL));
	}
	let_go("g");
	for (i = 0; i < 2; i++)
		IS(take_number(r[i]), 1);
	OK(join());
}
END_TEST

START_TEST(a_stopped_worker_is_not_waited_for)
{
	evc_cluster_config k = { .lease = 60 };
	evc_remote *r;
	const char *worker;
	pid_t pid;

	begin_with(_i, 1, &k);
	r = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	worker = "worker 0";
	pid = pid_with(r);
	OK(kill(pid, SIGSTOP));
	OK(take(NULL));
	ck_assert(says(about(worker), "not available: it has not answered"));
	if (!can(FINDS))
		ck_assert(says(about(worker), "kernel: T, stopped"));
	/* And again, with the first question still open. */
	OK(take(NULL));
	ck_assert(says(about(worker), "not available: it has not answered"));
	OK(kill(pid, SIGCONT));
	UNTIL((take(NULL), says(about(worker), "kernel: ")) &&
	      !says(about(worker), "has not answered"));
	let_go("g");
	IS(take_number(r), 1);
	OK(join());
}
END_TEST

/* ---- before a worker is killed ---- */

static evc_remote *
begin_insisting(int i)
{
	evc_cluster_config k = { .grace = 4, .lease = 60 };
	evc_remote *r;

	begin_logged(i, 1, &k);
	r = SCHEDULE("insist", "[si]", "g", 0);
	UNTIL(are_in("g", 1));
	return r;
}

static void
end_insisting(evc_remote *r)
{
	OK(evc_remote_cancel(r));
	IS(code_of(r), EVC_CANCELLED);
	UNTIL(n_logged("insist was asked to stop, and has not returned:") == 1);
	evc_remote_free(r);
	OK(join());
}

START_TEST(a_function_that_does_not_stop_says_where_it_stands)
{
	end_insisting(begin_insisting(_i));
	UNTIL(n_logged(HAS_BACKTRACE ? "worker 0: stack: " :
				       "worker 0: kernel: ") == 1);
}
END_TEST

START_TEST(a_stopped_worker_does_not_say_where_it_stands)
{
	evc_remote *r = begin_insisting(_i);

	OK(kill(pid_with(r), SIGSTOP));
	end_insisting(r);
	UNTIL(n_logged("worker 0: it has not answered within ") == 1);
	IS(n_logged(" s; kernel: T, stopped"), !can(FINDS));
}
END_TEST

START_TEST(a_function_that_stops_late_says_nothing)
{
	evc_remote *r = begin_insisting(_i);

	OK(evc_remote_cancel(r));
	t_sleep(0.1);
	let_go("g");
	IS(take_number(r), 2);
	OK(join());
	IS(n_logged("has not returned"), 0);
}
END_TEST

static evc_status
fn_sticks(evc_exec *x, void *arg)
{
	const evc_keep_ops ops = { .free = hang_for_ever };

	return evc_exec_keep(x, &ops, arg);
}

/* It has nothing to do, is told to leave, and is killed in the end. */
START_TEST(a_dismissed_worker_that_hangs_says_where_it_stands)
{
	evc_cluster_config k = { .grace = 4 };
	evc_per_worker *v;

	begin_logged(_i, 2, &k);
	OK(evc_per_worker_value(on.cl, "sticks", "sticks", NULL, &v));
	UNTIL(numbers().n_builds == 2);
	OK(evc_cluster_resize(on.cl, 1));
	UNTIL(numbers().n_workers == 1);
	IS(n_logged("told to leave, and has not ended:"), 1);
	IS(n_logged(HAS_BACKTRACE ? "worker 1: stack: " :
				    "worker 1: kernel: "), 1);
	evc_per_worker_free(v);
	/* The last one does not leave, either. */
	OK(join());
}
END_TEST

START_TEST(a_worker_that_dies_meanwhile)
{
	evc_cluster_config k = { .lease = 60 };
	struct aside a = { .fn = take };
	evc_remote *r;
	pthread_t t;
	pid_t pid;

	begin_with(_i, 2, &k);
	r = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	pid = pid_with(r);
	OK(kill(pid, SIGSTOP));
	OK(pthread_create(&t, NULL, run_aside, &a));
	t_sleep(0.05);
	OK(kill(pid, SIGKILL));
	OK(pthread_join(t, NULL));
	/* Before or after the death. */
	ck_assert_ptr_nonnull(strstr(text, "cluster"));
	UNTIL(are_in("g", 2));
	let_go("g");
	IS(take_number(r), 1);
	OK(join());
}
END_TEST

START_TEST(on_the_loop_nobody_is_waited_for)
{
	evc_remote *r;

	begin_on_loop(_i, 1, NULL);
	r = SCHEDULE("hold", "[s]", "g");
	TURN_UNTIL(numbers().n_running == 1);
	OK(take(NULL));
	ck_assert_ptr_nonnull(about("worker 0"));
	if (!can(CALLS))
		ck_assert(says(about("worker 0"), "made on the loop"));
	evc_remote_free(r);
}
END_TEST

/* ---- the watchdog ---- */

#define WATCH 0.2

START_TEST(a_silence_is_told_once)
{
	evc_cluster_config k = { .watchdog = WATCH };
	evc_remote *r;

	begin_logged(_i, 2, &k);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	/* Nothing runs: there is nothing to say. */
	t_sleep(3 * WATCH);
	IS(n_logged(SILENCE), 0);
	r = SCHEDULE("hold", "[s]", "g");
	UNTIL(n_logged(SILENCE) == 1);
	UNTIL(n_logged("hold on worker ") >= 2);
	UNTIL(n_logged(STACK) > 0);
	/* The coordinator's threads. */
	UNTIL(n_logged("\"watchdog\"") > 0);
	t_sleep(3 * WATCH);
	IS(n_logged(SILENCE), 1);
	/* An end arms it again. */
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	UNTIL(n_logged(SILENCE) == 2);
	let_go("g");
	IS(take_number(r), 1);
	OK(join());
	t_sleep(3 * WATCH);
	IS(n_logged(SILENCE), 2);
}
END_TEST

/* Functions end all the time, though one runs on. */
START_TEST(other_ends_are_no_silence)
{
	evc_cluster_config k = { .watchdog = 5 };
	evc_remote *r;
	int i;

	begin_logged(_i, 2, &k);
	r = SCHEDULE("hold", "[s]", "g");
	for (i = 0; i < 20; i++)
		IS(take_number(SCHEDULE("add", "[ii]", i, 2)), i + 2);
	IS(n_logged(SILENCE), 0);
	let_go("g");
	IS(take_number(r), 1);
	OK(join());
}
END_TEST

/* The worker cannot be heard: the report says what it knows. */
START_TEST(a_loop_that_hangs)
{
	evc_cluster_config k = { .watchdog = WATCH, .lease = 60 };

	on.loop = ev_loop_new(EVFLAG_AUTO);
	begin_logged(_i, 1, &k);
	DO("hold", "[s]", "g");
	TURN_UNTIL(numbers().n_running == 1);
	/* It does not turn meanwhile. */
	UNTIL(n_logged(SILENCE) == 1);
	IS(n_logged(": the cluster's loop has not turned for "), 1);
	UNTIL(n_logged("hold on worker 0") >= 2);
	if (!can(CALLS))
		UNTIL(n_logged("it has not answered within") > 0);
}
END_TEST

/* Nothing runs: a function waits for its retry, which the loop is to begin. */
START_TEST(a_loop_that_hangs_while_nothing_runs)
{
	evc_cluster_config k = { .watchdog = WATCH, .lease = 60 };
	evc_schedule_opts again = { .retry = { .times = 1, .first = 60 } };

	on.loop = ev_loop_new(EVFLAG_AUTO);
	begin_logged(_i, 1, &k);
	OK(evc_schedule_pack(on.cl, "fail", &again, NULL, "[is]", 14, ""));
	TURN_UNTIL(numbers().n_retries == 1);
	UNTIL(n_logged(": the cluster's loop has not turned for ") == 1);
	IS(n_logged(SILENCE), 1);
}
END_TEST

/* The coordinator stands still, and then goes on. */
START_TEST(a_pause_of_the_process_is_no_silence)
{
	evc_cluster_config k = { .watchdog = 8, .lease = 60 };
	pid_t child, own = getpid();

	begin_logged(_i, 1, &k);
	DO("hold", "[s]", "g");
	UNTIL(numbers().n_running == 1);
	child = fork();
	if (child == 0) {
		kill(own, SIGSTOP);
		t_sleep(10);
		kill(own, SIGCONT);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	let_go("g");
	OK(join());
	IS(n_logged(SILENCE), 0);
}
END_TEST

START_TEST(a_build_that_hangs_is_a_silence)
{
	evc_cluster_config k = { .watchdog = WATCH };
	evc_per_worker *p = NULL;
	evc_value args = PACKED("[s]", "g");
	int i;

	begin_logged(_i, 2, &k);
	OK(evc_per_worker_value(on.cl, "stuck", "hold", &args, &p));
	for (i = 0; i < 9; i++)
		OK(evc_schedule_pack(on.cl, "add", NULL, NULL, "[ii]", 1, i));
	UNTIL(n_logged(SILENCE) == 1);
	UNTIL(n_logged("builds stuck for ") >= 2);
	IS(n_logged(": ;"), 0);
	/* Functions behind a build have not begun. */
	ck_assert_int_ge(n_logged("; 1 more worker builds something"), 1);
	IS(n_logged("add on worker "), 0);
	let_go("g");
	let_go("g");
	OK(join());
	evc_value_free(&args);
	evc_per_worker_free(p);
}
END_TEST

static evc_cluster_worker_info
worker_0(void)
{
	evc_cluster_worker_info i;

	OK(evc_cluster_worker_get(on.cl, 0, &i));
	return i;
}

/* Everybody who names the worker's work names the build, and not the functions
   behind it. */
START_TEST(a_build_is_named_and_not_what_waits_behind_it)
{
	evc_cluster_config k = { .lease = 60 };
	evc_per_worker *p = NULL;
	evc_value args = PACKED("[s]", "g");
	evc_cluster_worker_info i;
	evc_remote *r;

	begin_logged(_i, 1, &k);
	OK(evc_per_worker_value(on.cl, "stuck", "hold", &args, &p));
	OK(evc_schedule_pack(on.cl, "add", NULL, &r, "[ii]", 1, 2));
	OK(evc_schedule_pack(on.cl, "add", NULL, NULL, "[ii]", 1, 2));
	UNTIL(worker_0().builds[0] != '\0' && numbers().n_running == 0);
	i = worker_0();
	ck_assert_str_eq(i.builds, "stuck");
	ck_assert_str_eq(i.function, "");
	ck_assert(i.busy >= 0);
	ck_assert_int_eq(evc_remote_fetch(r, 0.01, NULL),
			 -EVC_DEADLINE_EXCEEDED);
	HAS(evc_last_error(), "add has no outcome yet; ");
	HAS(evc_last_error(), ") builds stuck for ");
	(void)evc_report(on.c, EVC_REPORT_TEXT, text, sizeof(text));
	HAS(text, ") builds stuck for ");
	ck_assert_ptr_null(strstr(text, "add on "));
	(void)evc_report(on.c, EVC_REPORT_JSON, text, sizeof(text));
	HAS(text, "\"function\":null,\"builds\":\"stuck\",\"busy\":");
	let_go("g");
	OK(join());
	i = worker_0();
	ck_assert_str_eq(i.builds, "");
	ck_assert(i.busy < 0);
	evc_remote_free(r);
	evc_value_free(&args);
	evc_per_worker_free(p);
}
END_TEST

static size_t
size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (size_t)st.st_size : 0;
}

START_TEST(reports_go_to_a_file)
{
	char path[] = "/tmp/evc-watchdog-XXXXXX";
	evc_cluster_config k = { .watchdog = WATCH, .watchdog_file = path };
	int fd = mkstemp(path);
	evc_remote *r;
	size_t first;
	FILE *f;

	ck_assert_int_ge(fd, 0);
	begin_logged(_i, 2, &k);
	r = SCHEDULE("hold", "[s]", "g");
	/* The log comes after the file, with the worker's line last. */
	UNTIL(n_logged("hold on worker ") >= 3);
	first = size_of(path);
	ck_assert_uint_gt(first, 0);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	UNTIL(size_of(path) > first);
	let_go("g");
	IS(take_number(r), 1);
	OK(join());
	f = fdopen(fd, "r");
	ck_assert_ptr_nonnull(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	OK(unlink(path));
	HAS(text, SILENCE);
	HAS(text + first, SILENCE);
	HAS(text, "hold on worker ");
	ck_assert_ptr_nonnull(strstr(text, STACK));
}
END_TEST

START_TEST(a_file_that_cannot_be_written)
{
	evc_cluster_config k = { .watchdog = WATCH,
				 .watchdog_file = "/nowhere/at/all" };

	begin_logged(_i, 1, &k);
	UNTIL(n_logged("cannot be written to /nowhere/at/all: ") == 1);
	DO("hold", "[s]", "g");
	UNTIL(n_logged("cannot be written to /nowhere/at/all: ") == 2);
	/* The log has it all the same. */
	UNTIL(n_logged("hold on worker 0") >= 2);
	let_go("g");
	OK(join());
}
END_TEST

START_TEST(configs_that_make_no_sense)
{
	static const double wrong[] = { -1, -INFINITY, NAN };
	static const double far[] = { 1e9, 1e300, INFINITY };
	evc_cluster *cl = NULL;
	size_t i;

	begin(_i, 1);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		evc_cluster_config k = { .watchdog = wrong[i] };

		REFUSED(EVC_INVALID_ARGUMENT,
			open_another(address(), &k, &cl));
		HAS(evc_last_error(), "watchdog");
	}
	REFUSED(EVC_INVALID_ARGUMENT,
		open_another(address(),
			     &(evc_cluster_config){ .watchdog_file = "x" },
			     &cl));
	HAS(evc_last_error(), "watchdog_file");
	REFUSED(EVC_INVALID_ARGUMENT,
		open_another(address(),
			     &(evc_cluster_config){ .watchdog = INFINITY,
						    .watchdog_file = "x" },
			     &cl));
	/* So far away that it never comes. */
	for (i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		evc_cluster_config k = { .watchdog = far[i] };

		OK(open_another(address_elsewhere(), &k, &cl));
		OK(evc_cluster_close(cl));
	}
	/* No file. */
	OK(open_another(address_elsewhere(),
			&(evc_cluster_config){ .watchdog_file = "" }, &cl));
	OK(evc_cluster_close(cl));
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS, { .name = "sticks", .fn = fn_sticks }
};

CONFORMANCE_MAIN("watchdog", functions,
		 ROW(a_report_has_the_stacks_of_busy_workers),
		 ROW_ON(DIES, a_stopped_worker_is_not_waited_for),
		 ROW_ON(DIES, a_worker_that_dies_meanwhile),
		 ROW_ON(DIES, a_function_that_does_not_stop_says_where_it_stands),
		 ROW_ON(DIES, a_stopped_worker_does_not_say_where_it_stands),
		 ROW_ON(DIES, a_function_that_stops_late_says_nothing),
		 ROW_ON(RESIZES | DIES,
			a_dismissed_worker_that_hangs_says_where_it_stands),
		 ROW(on_the_loop_nobody_is_waited_for),
		 ROW(a_silence_is_told_once), ROW(other_ends_are_no_silence),
		 ROW(a_loop_that_hangs),
		 ROW(a_loop_that_hangs_while_nothing_runs),
		 ROW_ON(CALLS, a_pause_of_the_process_is_no_silence),
		 ROW(a_build_that_hangs_is_a_silence),
		 ROW(a_build_is_named_and_not_what_waits_behind_it),
		 ROW(reports_go_to_a_file), ROW(a_file_that_cannot_be_written),
		 ROW(configs_that_make_no_sense))
