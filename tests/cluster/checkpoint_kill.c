/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that are killed while they save: what they leave beside the file does
 * not stay, and the file is of one moment.
 */
#include "../support/cluster_util.h"
#include "../support/folder_util.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NOISE ((size_t)1 << 20)

static evc_coord *c;
static evc_cluster *cl;

/* Add 1 to two variables, exactly once for each that is finished. */
static evc_status
f_step(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_variable_add(x, "a", 1, NULL) < 0 ||
			       evc_exec_variable_add(x, "b", 1, NULL) < 0 ?
		       EVC_INTERNAL :
		       0;
}

static const evc_function table[] = {
	{ .name = "step", .fn = f_step },
};

static evc_status
try_to_open(void)
{
	evc_cluster_config config = { .functions = table,
				      .n_functions = 1,
				      .checkpoint = path,
				      .checkpoint_every = INFINITY };
	evc_status st = evc_new(NULL, NULL, &c);

	return st < 0 ? st : evc_cluster_open(c, "threads://2", &config, &cl);
}

/* Call fn (may be NULL) with each temporary file; how many there are. */
static int
each_left(void (*fn)(const char *name))
{
	DIR *d = opendir(folder);
	char name[400];
	struct dirent *e;
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.' || strcmp(e->d_name, "state") == 0)
			continue;
		ck_assert_int_eq(strncmp(e->d_name, "state.tmp-", 10), 0);
		snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
		if (fn != NULL)
			fn(name);
		n++;
	}
	closedir(d);
	return n;
}

/* As if nobody had written to it for two minutes. */
static void
make_old(const char *name)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
				     { .tv_sec = time(NULL) - 120 } };

	ck_assert_int_eq(utimensat(AT_FDCWD, name, times, 0), 0);
}

/* Saves, of so much that it takes a while, beside functions that end. */
static void
program(void)
{
	evc_schedule_opts once = { .flags = EVC_TRANSACTIONAL };
	char *noise = calloc(1, NOISE);
	evc_value v;
	int i;

	CHILD(noise != NULL && try_to_open() == 0);
	CHILD(evc_pack(&v, "B", noise, NOISE) == 0);
	CHILD(evc_variable_set(cl, "noise", &v) == 0);
	for (;;) {
		for (i = 0; i < 20; i++)
			CHILD(evc_schedule(cl, "step", NULL, NULL, &once,
					   NULL) == 0);
		CHILD(evc_cluster_save(cl, NULL) == 0);
	}
}

static int64_t
number(const char *name)
{
	int64_t n = 0; /* before the first step */
	evc_value v;

	if (evc_variable_get(cl, name, &v) == 0) {
		OK(evc_unpack(&v, "I", &n));
		evc_value_free(&v);
	}
	return n;
}

/* The variables and the number of functions are of one moment. */
static void
is_of_one_moment(void)
{
	ck_assert_int_eq(number("a"), number("b"));
	ck_assert_int_eq(number("a"), (int64_t)evc_cluster_finished(cl));
}

static ino_t
inode(void)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_ino;
}

static void
kill_one(unsigned after_us)
{
	ino_t before = inode();
	pid_t child = fork();
	int status;

	if (child == 0)
		program();
	/* It has begun when there is another file. */
	UNTIL(inode() != before || waitpid(child, &status, WNOHANG) != 0);
	t_sleep(after_us / 1e6);
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFSIGNALED(status), "%d", status);
}

/* The file is there before the first one is killed. */
static void
save_once(void)
{
	OK(try_to_open());
	OK(evc_cluster_save(cl, NULL));
	evc_cluster_close(cl);
	end_coord(c);
}

START_TEST(what_killed_ones_leave_does_not_stay)
{
	double limit = t_now() + T_LIMIT;
	unsigned i;

	save_once();
	/* Some are hit where they have something beside the file. */
	for (i = 0; (i < 20 || each_left(NULL) < 3) && t_now() < limit; i++)
		kill_one(1000 + 700 * (i % 17));
	if (each_left(NULL) == 0) {
		fprintf(stderr, "SKIP: none of %u was hit while it saved\n", i);
		return;
	}
	/* What stands there is whole. */
	OK(try_to_open());
	is_of_one_moment();
	/* New temporary files may have writers: a save leaves them alone. */
	i = (unsigned)each_left(NULL);
	OK(evc_cluster_save(cl, NULL));
	ck_assert_int_eq(each_left(NULL), (int)i);
	/* A save removes old ones, and so does the last save of a cluster. */
	each_left(make_old);
	OK(evc_variable_add(cl, "n", 1, NULL));
	evc_cluster_close(cl);
	end_coord(c);
	ck_assert_int_eq(each_left(NULL), 0);
	OK(try_to_open());
	is_of_one_moment();
	ck_assert_int_eq(number("n"), 1);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

API_MAIN_WITH("checkpoint_kill", folder_make, folder_remove,
	      what_killed_ones_leave_does_not_stay)
