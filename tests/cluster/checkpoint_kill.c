/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that are killed while they save: what they leave beside the file does
 * not stay, and the file is of one moment.
 */
#include "../support/cluster_util.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NOISE ((size_t)1 << 20)

static char folder[64], path[96], old[112];
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

static void
setup(void)
{
	snprintf(folder, sizeof folder, "/tmp/evc-kill-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/state", folder);
	snprintf(old, sizeof old, "%s.old", path);
}

static void
teardown(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

/* How many files are there that are neither of the two. */
static int
n_others(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.' && strcmp(e->d_name, "state") != 0 &&
		     strcmp(e->d_name, "state.old") != 0;
	closedir(d);
	return n;
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

/* Both files are there before the first one is killed. */
static void
save_twice(void)
{
	OK(try_to_open());
	OK(evc_cluster_save(cl, NULL));
	OK(evc_cluster_save(cl, NULL));
	evc_cluster_close(cl);
	end_coord(c);
}

START_TEST(what_killed_ones_leave_does_not_stay)
{
	double limit = t_now() + T_LIMIT;
	unsigned i, left = 0;

	save_twice();
	/* Some are hit where they have something beside the file. */
	for (i = 0; (i < 20 || left < 3) && t_now() < limit; i++) {
		kill_one(1000 + 700 * (i % 17));
		left += n_others() > 0;
	}
	if (left == 0) {
		fprintf(stderr, "SKIP: none of %u was hit while it saved\n", i);
		return;
	}
	/* The next one to be opened clears it away, also of one that comes to
	   no save; what stands there is whole. */
	if (n_others() == 0) {
		snprintf(old, sizeof old, "%s.tmp-0", path);
		ck_assert_int_eq(link(path, old), 0);
		snprintf(old, sizeof old, "%s.old", path);
	}
	OK(try_to_open());
	ck_assert_int_eq(n_others(), 0);
	is_of_one_moment();
	OK(evc_cluster_restore(cl, old));
	is_of_one_moment();
	evc_cluster_close(cl);
	end_coord(c);
	ck_assert_int_eq(n_others(), 0);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_int_eq(access(old, F_OK), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("checkpoint_kill");
	TCase *tc = tcase_create("checkpoint_kill");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_killed_ones_leave_does_not_stay);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
