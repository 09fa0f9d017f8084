/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoints through the public calls: what is saved comes back in the next
 * process, also when the one before was killed; how often it is saved; what
 * happens when it cannot be.
 */
#include "../support/cluster_util.h"
#include "../support/folder_util.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static evc_coord *c;
static evc_cluster *cl;
static atomic_int n_warnings, n_saved_again;
static char warning[1024], requested[1024];
static pthread_mutex_t warning_lock = PTHREAD_MUTEX_INITIALIZER;

static void
log_line(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)r;
	(void)arg;
	if (strstr(line, "stop of cluster requested") != NULL) {
		pthread_mutex_lock(&warning_lock);
		snprintf(requested, sizeof requested, "%s", line);
		pthread_mutex_unlock(&warning_lock);
	}
	if (strstr(line, "checkpoint saved again") != NULL)
		atomic_fetch_add(&n_saved_again, 1);
	if (level != EVC_LOG_WARNING)
		return;
	pthread_mutex_lock(&warning_lock);
	snprintf(warning, sizeof warning, "%s", line);
	pthread_mutex_unlock(&warning_lock);
	atomic_fetch_add(&n_warnings, 1);
}

/* Add 1 to "sum", exactly once for each that is finished. */
static evc_status
f_step(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_variable_add(x, "sum", 1, NULL) < 0 ? EVC_INTERNAL : 0;
}

static atomic_int hangs, go_on;

static evc_status
f_hang(evc_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	atomic_store(&hangs, 1);
	UNTIL(atomic_load(&go_on));
	return 0;
}

static const evc_function table[] = {
	{ .name = "step", .fn = f_step },
	{ .name = "hang", .fn = f_hang },
};

static evc_status
try_to_open(double every, evc_cluster **ret)
{
	evc_cluster_config config = { .functions = table,
				      .n_functions = 1,
				      .checkpoint = path,
				      .checkpoint_every = every };

	return evc_cluster_open(c, "threads://2", &config, ret);
}

static void
make_coord(void)
{
	evc_config config = { .log = log_line };

	OK(evc_new(NULL, &config, &c));
}

static void
begin(double every)
{
	make_coord();
	ck_assert_msg(try_to_open(every, &cl) == 0, "%s", evc_last_error());
}

static void
setup(void)
{
	folder_make();
	atomic_store(&n_warnings, 0);
	atomic_store(&n_saved_again, 0);
}

static void
run_steps(int n)
{
	evc_schedule_opts once = { .flags = EVC_TRANSACTIONAL };

	for (; n > 0; n--)
		OK(evc_schedule(cl, "step", NULL, NULL, &once, NULL));
	OK(evc_cluster_join(cl, T_LIMIT));
}

static int64_t
number(const char *name)
{
	int64_t n = -1;
	evc_value v;

	if (evc_variable_get(cl, name, &v) == 0) {
		OK(evc_unpack(&v, "I", &n));
		evc_value_free(&v);
	}
	return n;
}

static void
spoil(const char *file)
{
	FILE *f = fopen(file, "r+");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, 25, SEEK_SET), 0);
	ck_assert_int_ne(fputc(0x55, f), EOF);
	ck_assert_int_eq(fclose(f), 0);
}

static uint64_t
inode(const char *file)
{
	struct stat st;

	return stat(file, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static int
n_files(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static bool
is_saver(const evc_member_info *m, void *arg)
{
	if (strcmp(m->name, "checkpoint") != 0)
		return true;
	*(uint64_t *)arg = m->ticks;
	return false;
}

static uint64_t
saver_runs(void)
{
	uint64_t n = 0;

	OK(evc_member_each(evc_cluster_scope(cl), is_saver, &n));
	return n;
}

/* ---- it goes on ---- */

START_TEST(a_restart_goes_on)
{
	evc_value v;

	begin(INFINITY);
	ck_assert_uint_eq(evc_cluster_finished(cl), 0);
	run_steps(40);
	OK(evc_pack(&v, "[s]", "anything"));
	OK(evc_variable_set(cl, "v", &v));
	evc_value_free(&v);
	end_coord_with(c, cl);
	begin(INFINITY);
	ck_assert_uint_eq(evc_cluster_finished(cl), 40);
	ck_assert_int_eq(number("sum"), 40);
	OK(evc_variable_get(cl, "v", &v));
	IS_VALUE(&v, "[\"anything\"]");
	evc_value_free(&v);
	run_steps(2);
	end_coord_with(c, cl);
	begin(INFINITY);
	ck_assert_uint_eq(evc_cluster_finished(cl), 42);
	ck_assert_int_eq(number("sum"), 42);
	end_coord_with(c, cl);
	/* Each stop has saved what had changed, the last one nothing. */
	ck_assert_int_eq(atomic_load(&n_warnings), 0);
	ck_assert_int_eq(n_files(), 1);
	ck_assert_int_eq(remove(path), 0);
	begin(INFINITY);
	ck_assert_uint_eq(evc_cluster_finished(cl), 0);
	ck_assert_int_eq(number("sum"), -1);
	end_coord_with(c, cl);
	ck_assert_int_eq(atomic_load(&n_warnings), 0);
}
END_TEST

enum { STEPS = 1500 };

/* The program: as many steps as are left.  It exits with 0 when none is.  stay:
   it does not end before it is killed. */
static void
program(bool stay)
{
	evc_schedule_opts once = { .flags = EVC_TRANSACTIONAL };
	uint64_t i;

	CHILD(evc_new(NULL, NULL, &c) == 0);
	CHILD(try_to_open(0.001, &cl) == 0);
	for (i = evc_cluster_finished(cl); i < STEPS; i++) {
		CHILD(evc_schedule(cl, "step", NULL, NULL, &once, NULL) == 0);
		/* So that it is killed somewhere on its way. */
		if (i % 10 == 0)
			t_sleep(0.001);
	}
	while (stay)
		pause();
	CHILD(evc_cluster_join(cl, T_LIMIT) == 0);
	evc_cluster_close(cl);
	CHILD(evc_request_stop(c, 0, "done") == 0);
	CHILD(evc_join(c, NULL, NULL) == 0);
	CHILD(evc_free(c) == 0);
	_exit(0);
}

START_TEST(a_kill_loses_no_step_and_counts_none_twice)
{
	uint64_t at = 0, seen = 0;
	int kills = 0, status = -1;
	pid_t child;

	do {
		child = fork();
		if (child == 0)
			program(kills == 0);
		/* Killed when it has saved something, some times. */
		while (kills < 5 && waitpid(child, &status, WNOHANG) == 0) {
			seen = inode(path);
			if (seen != 0 && seen != at) {
				at = seen;
				ck_assert_int_eq(kill(child, SIGKILL), 0);
				kills++;
				break;
			}
			t_sleep(0.0005);
		}
		if (waitpid(child, &status, 0) < 0)
			ck_assert_int_eq(errno, ECHILD);
		ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	} while (WIFSIGNALED(status));
	ck_assert_int_ge(kills, 1);
	begin(INFINITY);
	ck_assert_uint_eq(evc_cluster_finished(cl), STEPS);
	ck_assert_int_eq(number("sum"), STEPS);
	end_coord_with(c, cl);
}
END_TEST

/* ---- how often ---- */

START_TEST(it_is_saved_every_so_often_when_something_has_changed)
{
	uint64_t runs, was;

	begin(0.002);
	runs = saver_runs();
	UNTIL(saver_runs() >= runs + 3);
	ck_assert_uint_eq(inode(path), 0);
	OK(evc_variable_add(cl, "n", 1, NULL));
	UNTIL(inode(path) != 0);
	/* Now it is what stands there: nothing is written. */
	was = inode(path);
	runs = saver_runs();
	UNTIL(saver_runs() >= runs + 5);
	ck_assert_uint_eq(inode(path), was);
	OK(evc_variable_add(cl, "n", 1, NULL));
	UNTIL(inode(path) != was);
	/* A save to somewhere else is none of the checkpoint's. */
	OK(evc_cluster_save(cl, other));
	ck_assert_uint_ne(inode(other), 0);
	/* What somebody has deleted is written again, without a change. */
	OK(unlink(path));
	UNTIL(inode(path) != 0);
	end_coord_with(c, cl);
	ck_assert_int_eq(atomic_load(&n_warnings), 0);
}
END_TEST

START_TEST(what_cannot_be_saved_is_logged_and_tried_again)
{
	char away[112];
	uint64_t runs;

	snprintf(away, sizeof away, "%s-away", folder);
	begin(0.002);
	ck_assert_int_eq(rename(folder, away), 0);
	OK(evc_variable_add(cl, "n", 1, NULL));
	UNTIL(atomic_load(&n_warnings) > 0);
	pthread_mutex_lock(&warning_lock);
	HAS(warning, "checkpoint not saved");
	HAS(warning, folder);
	pthread_mutex_unlock(&warning_lock);
	REFUSED(EVC_NOT_FOUND, evc_cluster_save(cl, NULL));
	/* The same failure is there once, and its end, too. */
	runs = saver_runs();
	UNTIL(saver_runs() >= runs + 5);
	ck_assert_int_eq(atomic_load(&n_warnings), 1);
	ck_assert_int_eq(rename(away, folder), 0);
	UNTIL(inode(path) != 0);
	UNTIL(atomic_load(&n_saved_again) == 1);
	OK(evc_variable_add(cl, "n", 1, NULL));
	runs = saver_runs();
	UNTIL(saver_runs() >= runs + 5);
	ck_assert_int_eq(atomic_load(&n_saved_again), 1);
	/* And it has stopped nothing. */
	run_steps(3);
	end_coord_with(c, cl);
}
END_TEST

/* ---- by calls ---- */

START_TEST(a_save_comes_back)
{
	begin(INFINITY);
	run_steps(5);
	OK(evc_cluster_save(cl, other));
	run_steps(5);
	OK(evc_variable_add(cl, "more", 1, NULL));
	OK(evc_cluster_save(cl, NULL));
	ck_assert_uint_ne(inode(path), 0);
	OK(evc_cluster_restore(cl, other));
	ck_assert_int_eq(number("sum"), 5);
	ck_assert_int_eq(number("more"), -1);
	ck_assert_uint_eq(evc_cluster_finished(cl), 5);
	OK(evc_cluster_restore(cl, NULL));
	ck_assert_int_eq(number("sum"), 10);
	ck_assert_int_eq(number("more"), 1);
	ck_assert_uint_eq(evc_cluster_finished(cl), 10);
	end_coord_with(c, cl);
}
END_TEST

START_TEST(a_damaged_file_changes_nothing)
{
	evc_cluster *none = NULL;

	begin(INFINITY);
	run_steps(1);
	OK(evc_cluster_save(cl, NULL));
	run_steps(1);
	spoil(path);
	REFUSED(EVC_DATA_LOSS, evc_cluster_restore(cl, NULL));
	ck_assert_int_eq(number("sum"), 2);
	ck_assert_uint_eq(evc_cluster_finished(cl), 2);
	/* Nor is a cluster opened that would begin anew without a word. */
	REFUSED(EVC_DATA_LOSS, try_to_open(INFINITY, &none));
	HAS(evc_last_error(), path);
	ck_assert_ptr_null(none);
	/* The next save puts a whole one there. */
	OK(evc_cluster_save(cl, NULL));
	OK(evc_cluster_restore(cl, NULL));
	ck_assert_int_eq(number("sum"), 2);
	end_coord_with(c, cl);
}
END_TEST

START_TEST(mistakes_are_refused)
{
	char far[112];
	int i;

	make_coord();
	cl = open_threads(c, "threads://1");
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_save(cl, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_restore(cl, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_save(cl, ""));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_save(NULL, path));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_restore(NULL, path));
	REFUSED(EVC_NOT_FOUND, evc_cluster_restore(cl, path));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_save(cl, folder));
	snprintf(far, sizeof far, "%s/none/state", folder);
	REFUSED(EVC_NOT_FOUND, evc_cluster_save(cl, far));
	end_coord_with(c, cl);
	/* A folder that is not there is no reason not to begin, and the failure
	   of the save no reason of the stop. */
	snprintf(path, sizeof path, "%s/none/state", folder);
	for (i = 0; i < 100; i++) {
		begin(INFINITY);
		run_steps(1);
		evc_cluster_close(cl);
		ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_NOT_FOUND);
		OK(evc_free(c));
		HAS(requested, "requested: OK (0): evc_cluster_close");
	}
	/* An error has its own lines in the log. */
	ck_assert_int_eq(atomic_load(&n_warnings), 0);
}
END_TEST

static void *
save_again_and_again(void *arg)
{
	int i;

	for (i = 0; i < 20; i++)
		if (evc_variable_add(cl, "n", 1, NULL) < 0 ||
		    evc_cluster_save(cl, NULL) < 0)
			return arg;
	return NULL;
}

START_TEST(saves_come_one_after_the_other)
{
	struct t_crowd k;

	begin(0.001);
	crowd_begin(&k, 4, save_again_and_again, folder, 0);
	ck_assert_uint_eq(crowd_end(&k), 0);
	/* The last save is of the last state. */
	OK(evc_cluster_restore(cl, NULL));
	ck_assert_int_eq(number("n"), 80);
	end_coord_with(c, cl);
	ck_assert_int_eq(atomic_load(&n_warnings), 0);
}
END_TEST

START_TEST(a_relative_path_stays_where_it_was)
{
	char whole[sizeof(path)];

	snprintf(whole, sizeof(whole), "%s", path);
	snprintf(path, sizeof(path), "%s", strrchr(whole, '/') + 1);
	OK(chdir(folder));
	begin(INFINITY);
	run_steps(2);
	OK(chdir("/"));
	/* Not the checkpoint, in spite of the name. */
	ck_assert_int_ne(evc_cluster_save(cl, "none/state"), 0);
	OK(evc_cluster_save(cl, NULL));
	run_steps(1);
	end_coord_with(c, cl);
	OK(access(whole, R_OK));
	OK(chdir(folder));
	begin(INFINITY);
	ck_assert_int_eq(number("sum"), 3);
	end_coord_with(c, cl);
	ck_assert_int_eq(atomic_load(&n_warnings), 0);
}
END_TEST

/* Another cluster reads the file: has it that number? */
static bool
is_saved_with(int64_t late)
{
	const evc_cluster_config config = { .functions = table,
					    .n_functions = 1 };
	evc_cluster *mine = cl;
	evc_coord *d = NULL;
	bool yes;

	OK(evc_new(NULL, NULL, &d));
	OK(evc_cluster_open(d, "threads://1", &config, &cl));
	OK(evc_cluster_restore(cl, path));
	yes = number("late") == late;
	end_coord_with(d, cl);
	cl = mine;
	return yes;
}

/* The last save is made when that function is given up, and later changes, which
   no save would have, are refused. */
START_TEST(a_function_that_hangs_does_not_keep_the_last_save)
{
	evc_cluster_config config = { .functions = table,
				      .n_functions = sizeof(table) /
						     sizeof(table[0]),
				      .checkpoint = path,
				      .checkpoint_every = INFINITY,
				      .grace = 0.1 };
	evc_value five;
	double x = 1;
	evc_elements e = { .doubles = &x, .n = 1 };

	OK(evc_pack(&five, "i", 5));
	make_coord();
	OK(evc_cluster_open(c, "threads://2", &config, &cl));
	run_steps(3);
	OK(evc_vector_set(cl, "v", &e));
	OK(evc_schedule(cl, "hang", NULL, NULL, NULL, NULL));
	UNTIL(atomic_load(&hangs));
	OK(evc_cluster_save(cl, NULL));
	OK(evc_variable_add(cl, "late", 1, NULL));
	evc_request_stop(c, 0, "enough");
	UNTIL(evc_variable_add(cl, "sum", 0, NULL) == -EVC_CANCELLED);
	HAS(evc_last_error(), "saved for the last time");
	REFUSED(EVC_CANCELLED, evc_variable_set(cl, "sum", &five));
	REFUSED(EVC_CANCELLED, evc_variable_compare_set(cl, "a", NULL, &five));
	REFUSED(EVC_CANCELLED, evc_vector_set(cl, "v", &e));
	REFUSED(EVC_CANCELLED, evc_vector_add(cl, "v", &e));
	REFUSED(EVC_CANCELLED, evc_cluster_restore(cl, NULL));
	OK(evc_vector_get(cl, "v", &e));
	ck_assert_int_eq(number("sum"), 3);
	/* By the looks of the file, while the function is still there. */
	UNTIL(is_saved_with(1));
	atomic_store(&go_on, 1);
	ck_assert_int_eq(evc_cluster_close(cl), EVC_UNAVAILABLE);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	evc_value_free(&five);
	make_coord();
	OK(evc_cluster_open(c, "threads://2", &config, &cl));
	ck_assert_int_eq(number("late"), 1);
	ck_assert_int_eq(number("sum"), 3);
	end_coord_with(c, cl);
}
END_TEST

API_MAIN_WITH("checkpoint", setup, folder_remove, a_restart_goes_on,
	      a_kill_loses_no_step_and_counts_none_twice,
	      it_is_saved_every_so_often_when_something_has_changed,
	      what_cannot_be_saved_is_logged_and_tried_again, a_save_comes_back,
	      a_damaged_file_changes_nothing, mistakes_are_refused,
	      saves_come_one_after_the_other,
	      a_relative_path_stays_where_it_was,
	      a_function_that_hangs_does_not_keep_the_last_save)
