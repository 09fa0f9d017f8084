/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A value in a file: every damaged byte is found, and the file before it is
 * used; a write that fails, wherever it fails, leaves everything as it was.
 */
#include "../support/api_util.h"
#include "support/seam.h"

#include <dirent.h>
#include <sys/stat.h>

#include "cluster/snapshot/snapshot.h"

static char folder[64], path[96], old[96];

static void
setup(void)
{
	snprintf(folder, sizeof folder, "/tmp/evc-snapshot-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/state", folder);
	snprintf(old, sizeof old, "%s/state.old", folder);
}

static void
each_name(bool (*fn)(const char *name, void *arg), void *arg)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	char name[400];

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
		if (!fn(name, arg))
			break;
	}
	closedir(d);
}

static bool
remove_it(const char *name, void *arg)
{
	(void)arg;
	(void)remove(name);
	return true;
}

static bool
count_it(const char *name, void *arg)
{
	(void)name;
	++*(int *)arg;
	return true;
}

static void
teardown(void)
{
	seam_reset();
	each_name(remove_it, NULL);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* ---- files ---- */

/* So many files are in the folder: none is left over. */
static int
n_files(void)
{
	int n = 0;

	each_name(count_it, &n);
	return n;
}

static evc_status
save(int number)
{
	evc_value v;
	evc_status st;

	OK(evc_pack(&v, "[is]", number, "and some text"));
	st = evc__snapshot_write(path, &v);
	evc_value_free(&v);
	return st;
}

/* What is read, or the refusal; from: NULL, or which file it was. */
static int
load(bool *from_old)
{
	evc_value v;
	int number = -1;
	evc_status st = evc__snapshot_read(path, &v, from_old);

	if (st == 0)
		OK(evc_unpack(&v, "[i*]", &number));
	else
		ck_assert_ptr_null(v.data);
	evc_value_free(&v);
	return st == 0 ? number : st;
}

#define LOADS(number, is_old) \
	do { \
		bool old_ = !(is_old); \
		ck_assert_int_eq(load(&old_), (number)); \
		ck_assert_int_eq(old_, (is_old)); \
	} while (0)

static size_t
read_file(const char *name, char *buf, size_t n)
{
	FILE *f = fopen(name, "r");

	ck_assert_ptr_nonnull(f);
	n = fread(buf, 1, n, f);
	fclose(f);
	return n;
}

static void
write_file(const char *name, const char *buf, size_t n)
{
	FILE *f = fopen(name, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(buf, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
}

/* ---- it comes back ---- */

START_TEST(what_was_written_is_read)
{
	OK(save(1));
	ck_assert_int_eq(n_files(), 1);
	LOADS(1, false);
	OK(save(2));
	ck_assert_int_eq(n_files(), 2);
	LOADS(2, false);
	OK(save(3));
	ck_assert_int_eq(n_files(), 2);
	LOADS(3, false);
	ck_assert_int_eq(remove(path), 0);
	LOADS(2, true);
	/* Without a file the old one stays where it is. */
	OK(save(4));
	LOADS(4, false);
	ck_assert_int_eq(remove(path), 0);
	LOADS(2, true);
}
END_TEST

static unsigned
mode_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(stat(name, &st), 0);
	return st.st_mode & 0777;
}

/* The first one is its owner's alone; then it is as its owner has made it. */
START_TEST(it_is_as_private_as_it_was)
{
	mode_t mask = umask(0);

	OK(save(1));
	ck_assert_uint_eq(mode_of(path), 0600);
	OK(save(2));
	ck_assert_uint_eq(mode_of(path), 0600);
	ck_assert_uint_eq(mode_of(old), 0600);
	ck_assert_int_eq(chmod(path, 0640), 0);
	OK(save(3));
	ck_assert_uint_eq(mode_of(path), 0640);
	LOADS(3, false);
	umask(mask);
}
END_TEST

/* One that was written long ago: whoever writes or reads it has another CRC-32 one
   day, and this one is still read. */
START_TEST(one_of_another_day_is_read)
{
	static const unsigned char bytes[] =
		"evcsnap\n\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x08"
		"\x22\x4a\xae\x12\x92\x07\xa5hello";
	static const unsigned char of_none[CRC_AT] = "evcsnap\n\x00\x00\x00\x01";
	const evc_value none = { NULL, 0 }, is = { "\x92\x07\xa5hello", 8 };
	char now[sizeof(bytes)];

	write_file(path, (const char *)bytes, sizeof(bytes) - 1);
	LOADS(7, false);
	OK(evc__snapshot_write(path, &is));
	ck_assert_uint_eq(read_file(path, now, sizeof(now)), sizeof(bytes) - 1);
	ck_assert_mem_eq(now, bytes, sizeof(bytes) - 1);
	ck_assert_uint_eq(evc__snapshot_crc(of_none, &none), 0x6caed22c);
}
END_TEST

START_TEST(large_and_empty_ones_are_whole)
{
	size_t n = 3 << 20;
	char *bytes = malloc(n);
	evc_value v, w;

	ck_assert_ptr_nonnull(bytes);
	memset(bytes, 'z', n);
	OK(evc_pack(&v, "B", bytes, n));
	OK(evc__snapshot_write(path, &v));
	OK(evc__snapshot_read(path, &w, NULL));
	ck_assert_uint_eq(w.size, v.size);
	ck_assert_mem_eq(w.data, v.data, v.size);
	evc_value_free(&v);
	evc_value_free(&w);
	OK(evc__snapshot_write(path, &v));
	OK(evc__snapshot_read(path, &w, NULL));
	ck_assert_uint_eq(w.size, 0);
	evc_value_free(&w);
	free(bytes);
}
END_TEST

START_TEST(a_path_without_a_folder_is_here)
{
	ck_assert_int_eq(chdir(folder), 0);
	snprintf(path, sizeof path, "state");
	OK(save(1));
	OK(save(2));
	LOADS(2, false);
	ck_assert_int_eq(n_files(), 2);
}
END_TEST

START_TEST(several_may_write_one_file)
{
	pid_t child[3];
	int i, n, status;

	for (i = 0; i < 3; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			for (n = 0; n < 20; n++)
				if (save(i) != 0) {
					fprintf(stderr, "%s\n",
						evc_last_error());
					_exit(1);
				}
			_exit(0);
		}
	}
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_int_eq(n_files(), 2);
	n = load(NULL);
	ck_assert(n >= 0 && n < 3);
}
END_TEST

/* ---- damage ---- */

START_TEST(every_wrong_byte_is_found)
{
	char bytes[256];
	size_t i, n;
	int bit;

	OK(save(1));
	OK(save(2));
	n = read_file(path, bytes, sizeof bytes);
	ck_assert_uint_gt(n, 24);
	ck_assert_uint_lt(n, sizeof bytes);
	for (i = 0; i < n; i++)
		for (bit = 0; bit < 8; bit++) {
			bytes[i] ^= (char)(1 << bit);
			write_file(path, bytes, n);
			LOADS(1, true);
			bytes[i] ^= (char)(1 << bit);
		}
	write_file(path, bytes, n);
	LOADS(2, false);
}
END_TEST

START_TEST(every_cut_and_every_addition_is_found)
{
	char bytes[256] = { 0 };
	size_t i, n;

	OK(save(1));
	OK(save(2));
	n = read_file(path, bytes, sizeof bytes);
	for (i = 0; i < n; i++) {
		write_file(path, bytes, i);
		LOADS(1, true);
	}
	for (i = n + 1; i < n + 30; i++) {
		write_file(path, bytes, i);
		LOADS(1, true);
	}
	write_file(path, bytes, n);
	LOADS(2, false);
}
END_TEST

START_TEST(what_is_lost_is_said)
{
	bool from_old;

	ck_assert_int_eq(load(&from_old), -EVC_NOT_FOUND);
	HAS(evc_last_error(), path);
	write_file(path, "rubbish", 7);
	ck_assert_int_eq(load(&from_old), -EVC_DATA_LOSS);
	HAS(evc_last_error(), "state is damaged");
	HAS(evc_last_error(), "state.old is not there");
	write_file(old, "rubbish", 7);
	ck_assert_int_eq(load(&from_old), -EVC_DATA_LOSS);
	HAS(evc_last_error(), "state.old is damaged");
	ck_assert_int_eq(remove(path), 0);
	ck_assert_int_eq(load(&from_old), -EVC_DATA_LOSS);
	HAS(evc_last_error(), "state is not there");
	/* A damaged one is replaced as any other. */
	OK(save(5));
	LOADS(5, false);
	ck_assert_int_eq(n_files(), 2);
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	ck_assert_int_eq(mkdir(path, 0700), 0);
	REFUSED(EVC_INVALID_ARGUMENT, save(1));
	REFUSED(EVC_INVALID_ARGUMENT, load(NULL));
	ck_assert_int_eq(rmdir(path), 0);
	/* Nobody reads or writes it: that holds up nobody. */
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	REFUSED(EVC_INVALID_ARGUMENT, save(1));
	REFUSED(EVC_INVALID_ARGUMENT, load(NULL));
	ck_assert_int_eq(n_files(), 1);
	snprintf(path, sizeof path, "%s/none/state", folder);
	REFUSED(EVC_NOT_FOUND, save(1));
	REFUSED(EVC_NOT_FOUND, load(NULL));
	path[0] = '\0';
	REFUSED(EVC_INVALID_ARGUMENT, save(1));
	REFUSED(EVC_INVALID_ARGUMENT, load(NULL));
}
END_TEST

/* ---- each system call fails ---- */

static const struct {
	const char *op, *func;
	int nth, err;
	evc_status status;
} calls[] = {
	{ "lock_open", "try_to_lock", 1, EROFS, EVC_PERMISSION_DENIED },
	{ "lock_open", "try_to_lock", 1, EIO, EVC_UNAVAILABLE },
	{ "path_stat", "write_named", 1, EACCES, EVC_PERMISSION_DENIED },
	{ "folder_open", "write_named", 1, EMFILE, EVC_RESOURCE_EXHAUSTED },
	{ "file_create", "write_new", 1, EROFS, EVC_PERMISSION_DENIED },
	{ "file_create", "write_new", 1, EDQUOT, EVC_RESOURCE_EXHAUSTED },
	{ "fd_put", "put_all", 1, ENOSPC, EVC_RESOURCE_EXHAUSTED },
	{ "fd_put", "put_all", 2, EFBIG, EVC_RESOURCE_EXHAUSTED },
	{ "fsync", "write_new", 1, EIO, EVC_UNAVAILABLE },
	{ "rename", "take_place", 1, EACCES, EVC_PERMISSION_DENIED },
	{ "fsync", "folder_to_disk", 1, EIO, EVC_UNAVAILABLE },
	{ "alloc", "evc__snapshot_joined", 1, ENOMEM, EVC_RESOURCE_EXHAUSTED },
	{ "alloc", "evc__snapshot_joined", 2, ENOMEM, EVC_RESOURCE_EXHAUSTED },
	{ "alloc", "evc__snapshot_joined", 3, ENOMEM, EVC_RESOURCE_EXHAUSTED },
	{ "alloc", "evc__snapshot_joined", 4, ENOMEM, EVC_RESOURCE_EXHAUSTED },
	{ "alloc", "evc__snapshot_joined", 5, ENOMEM, EVC_RESOURCE_EXHAUSTED },
	/* only where there was a file before: */
	{ "link", "link_old", 1, EIO, EVC_UNAVAILABLE },
	{ "rename", "take_place", 2, EIO, EVC_UNAVAILABLE },
};

#define N_CALLS ((int)(sizeof calls / sizeof calls[0]))
#define N_FIRST (N_CALLS - 2)

START_TEST(a_write_that_fails_has_not_been)
{
	int fds;

	OK(save(1));
	OK(save(2));
	fds = t_count_fds();
	seam_fail(calls[_i].op, calls[_i].func, calls[_i].nth, calls[_i].err);
	ck_assert_int_eq(save(3), -calls[_i].status);
	ck_assert_str_ne(evc_last_error(), "");
	seam_reset();
	ck_assert_int_eq(t_count_fds(), fds);
	ck_assert_int_eq(n_files(), 2);
	LOADS(2, false);
	ck_assert_int_eq(remove(path), 0);
	LOADS(1, true);
}
END_TEST

/* The same where there was no file. */
START_TEST(a_first_write_that_fails_has_not_been)
{
	seam_fail(calls[_i].op, calls[_i].func, calls[_i].nth, calls[_i].err);
	ck_assert_int_eq(save(3), -calls[_i].status);
	seam_reset();
	ck_assert_int_eq(n_files(), 0);
	OK(save(4));
	LOADS(4, false);
}
END_TEST

/* Where a file can have one name only. */
START_TEST(without_links_the_old_one_is_moved)
{
	static const int errs[] = { EPERM, EOPNOTSUPP, EMLINK };
	const char *fails = _i < 3 ? NULL : _i < 5 ? "rename" : "fsync";

	OK(save(1));
	OK(save(2));
	seam_fail_all("link", "link_old", 1, errs[_i % 3]);
	if (fails == NULL) {
		OK(save(3));
		LOADS(3, false);
		ck_assert_int_eq(remove(path), 0);
		LOADS(2, true);
		return;
	}
	/* The first or the second rename, or the folder. */
	seam_fail(fails,
		  strcmp(fails, "fsync") == 0 ? "folder_to_disk" : "take_place",
		  _i == 4 ? 2 : 1, EIO);
	ck_assert_int_eq(save(3), -EVC_UNAVAILABLE);
	LOADS(2, false);
	/* The one before it is lost where it was moved. */
	ck_assert_int_eq(n_files(), _i == 3 ? 2 : 1);
}
END_TEST

static void *
save_three(void *arg)
{
	(void)save(3);
	return arg;
}

/* Save on a thread that is held at one step, say so, and wait to be killed. */
static void
save_and_stand(const char *op, const char *func, int nth, int ready)
{
	int h = seam_hold(op, func, nth);
	pthread_t t;

	CHILD(pthread_create(&t, NULL, save_three, NULL) == 0);
	CHILD(seam_await(h));
	CHILD(write(ready, "", 1) == 1);
	for (;;)
		pause();
}

/* Killed before each of its steps: path is whole, and it is the new one or the
   one before. */
START_TEST(a_crash_at_any_step_loses_nothing)
{
	static const struct {
		const char *op, *func;
		int nth, is;
	} steps[] = {
		{ "file_lock", "try_to_lock", 1, 2 },
		{ "file_create", "write_new", 1, 2 },
		{ "fd_put", "put_all", 2, 2 },
		{ "fsync", "write_new", 1, 2 },
		{ "link", "link_old", 1, 2 },
		{ "rename", "take_place", 1, 2 },
		{ "fsync", "folder_to_disk", 1, 3 },
		{ "rename", "take_place", 2, 3 },
	};
	const int step = _i / 2, is = steps[step].is;
	int ready[2], status, n;
	pid_t child;
	char byte;

	OK(save(1));
	OK(save(2));
	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	if (child == 0)
		save_and_stand(steps[step].op, steps[step].func,
			       steps[step].nth, ready[1]);
	ck_assert_int_eq(close(ready[1]), 0);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	LOADS(is, false);
	/* While it lives nobody takes its files away; before its first step it
	   has none. */
	n = n_files();
	ck_assert_int_gt(n, 2);
	evc__snapshot_clean(path);
	ck_assert_int_eq(n_files(), step == 0 ? 2 : n);
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	ck_assert_int_eq(close(ready[0]), 0);
	LOADS(is, false);
	/* What it has left is in nobody's way, and does not stay. */
	if (_i % 2 == 0) {
		evc__snapshot_clean(path);
		ck_assert_int_eq(n_files(), 2);
		LOADS(is, false);
		return;
	}
	OK(save(4));
	ck_assert_int_eq(n_files(), 2);
	LOADS(4, false);
	ck_assert_int_eq(remove(path), 0);
	LOADS(is, true);
}
END_TEST

/* ---- each call of a read fails ---- */

START_TEST(a_read_that_fails_says_so)
{
	static const struct {
		const char *op, *func;
		int nth, err;
		evc_status status; /* 0: the old one is read */
	} reads[] = {
		{ "file_open", "read_one", 1, EACCES, EVC_PERMISSION_DENIED },
		{ "file_open", "read_one", 1, EMFILE, EVC_RESOURCE_EXHAUSTED },
		{ "file_open", "read_one", 1, EIO, 0 },
		{ "fd_stat", "read_open", 1, ENOMEM, EVC_RESOURCE_EXHAUSTED },
		{ "fd_read", "get_all", 1, EIO, 0 },
		{ "fd_read", "get_all", 2, EIO, 0 },
		{ "fd_read", "get_all", 1, ESTALE, EVC_UNAVAILABLE },
		{ "alloc", "read_body", 1, ENOMEM, EVC_RESOURCE_EXHAUSTED },
	};
	bool from_old = false;
	int fds, is;

	OK(save(1));
	OK(save(2));
	fds = t_count_fds();
	seam_fail(reads[_i].op, reads[_i].func, reads[_i].nth, reads[_i].err);
	is = load(&from_old);
	seam_reset();
	ck_assert_int_eq(is, reads[_i].status == 0 ? 1 : -reads[_i].status);
	ck_assert_int_eq(from_old, reads[_i].status == 0);
	ck_assert_int_eq(t_count_fds(), fds);
	LOADS(2, false);
}
END_TEST

static void *
load_there(void *arg)
{
	bool from_old = false;

	*(int *)arg = load(&from_old);
	return from_old ? arg : NULL;
}

/* It grows, or shrinks, when its length was looked at: then somebody else is
   writing there. */
START_TEST(a_file_that_moves_is_damaged)
{
	char bytes[256] = { 0 };
	int h, number = -1;
	void *from_old;
	pthread_t t;
	size_t n;

	OK(save(1));
	OK(save(2));
	n = read_file(path, bytes, sizeof bytes);
	h = seam_hold("fd_read", "get_all", 2);
	ck_assert_int_eq(pthread_create(&t, NULL, load_there, &number), 0);
	ck_assert(seam_await(h));
	write_file(path, bytes, _i == 0 ? n + 1 : n - 1);
	seam_release(h);
	ck_assert_int_eq(pthread_join(t, &from_old), 0);
	ck_assert_int_eq(number, 1);
	ck_assert_ptr_nonnull(from_old);
}
END_TEST

START_TEST(a_signal_is_no_error)
{
	seam_fail("fd_put", "put_all", 2, EINTR);
	OK(save(1));
	seam_reset();
	seam_fail("fd_read", "get_all", 2, EINTR);
	LOADS(1, false);
}
END_TEST

/* A folder that cannot be synced need not be. */
START_TEST(a_folder_may_say_EINVAL)
{
	OK(save(1));
	seam_fail("fsync", "folder_to_disk", 1, EINVAL);
	OK(save(2));
	LOADS(2, false);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("snapshot");
	TCase *tc = tcase_create("snapshot");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_was_written_is_read);
	tcase_add_test(tc, it_is_as_private_as_it_was);
	tcase_add_test(tc, one_of_another_day_is_read);
	tcase_add_test(tc, large_and_empty_ones_are_whole);
	tcase_add_test(tc, a_path_without_a_folder_is_here);
	tcase_add_test(tc, several_may_write_one_file);
	tcase_add_test(tc, every_wrong_byte_is_found);
	tcase_add_test(tc, every_cut_and_every_addition_is_found);
	tcase_add_test(tc, what_is_lost_is_said);
	tcase_add_test(tc, what_is_no_file_is_refused);
	tcase_add_loop_test(tc, a_write_that_fails_has_not_been, 0, N_CALLS);
	tcase_add_loop_test(tc, a_first_write_that_fails_has_not_been, 0,
			    N_FIRST);
	tcase_add_loop_test(tc, without_links_the_old_one_is_moved, 0, 6);
	tcase_add_loop_test(tc, a_crash_at_any_step_loses_nothing, 0, 16);
	tcase_add_loop_test(tc, a_read_that_fails_says_so, 0, 8);
	tcase_add_loop_test(tc, a_file_that_moves_is_damaged, 0, 2);
	tcase_add_test(tc, a_signal_is_no_error);
	tcase_add_test(tc, a_folder_may_say_EINVAL);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
