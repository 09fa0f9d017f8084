/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A value in a file: every damaged byte is found; a write that fails, wherever
 * it fails, leaves the file as it was; writers that meet leave it whole, and
 * temporary files of killed writers do not stay.
 */
#include "../support/api_util.h"
#include "../support/folder_util.h"
#include "support/seam.h"

#include <dirent.h>
#include <sys/stat.h>

#include "cluster/snapshot/snapshot.h"

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

static struct snapshot_place place; /* without a question */

static evc_status
save(int number)
{
	evc_value v;
	evc_status st;

	OK(evc_pack(&v, "[is]", number, "and some text"));
	st = evc__snapshot_write(path, &v, 1, &place);
	evc_value_free(&v);
	return st;
}

/* What is read, or the refusal. */
static int
load(void)
{
	evc_value v;
	int number = -1;
	evc_status st = evc__snapshot_read(path, &v);

	if (st == 0)
		OK(evc_unpack(&v, "[i*]", &number));
	else
		ck_assert_ptr_null(v.data);
	evc_value_free(&v);
	return st == 0 ? number : st;
}

#define LOADS(number) ck_assert_int_eq(load(), (number))

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
	LOADS(1);
	OK(save(2));
	ck_assert_int_eq(n_files(), 1);
	LOADS(2);
	ck_assert_int_eq(remove(path), 0);
	LOADS(-EVC_NOT_FOUND);
	OK(save(3));
	ck_assert_int_eq(n_files(), 1);
	LOADS(3);
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
	ck_assert_int_eq(chmod(path, 0640), 0);
	OK(save(3));
	ck_assert_uint_eq(mode_of(path), 0640);
	LOADS(3);
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
	LOADS(7);
	OK(evc__snapshot_write(path, &is, 1, &place));
	ck_assert_uint_eq(read_file(path, now, sizeof(now)), sizeof(bytes) - 1);
	ck_assert_mem_eq(now, bytes, sizeof(bytes) - 1);
	ck_assert_uint_eq(evc__snapshot_crc(of_none, &none, 1), 0x6caed22c);
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
	OK(evc__snapshot_write(path, &v, 1, &place));
	OK(evc__snapshot_read(path, &w));
	ck_assert_uint_eq(w.size, v.size);
	ck_assert_mem_eq(w.data, v.data, v.size);
	evc_value_free(&v);
	evc_value_free(&w);
	OK(evc__snapshot_write(path, &v, 1, &place));
	OK(evc__snapshot_read(path, &w));
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
	LOADS(2);
	ck_assert_int_eq(n_files(), 1);
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
	ck_assert_int_eq(n_files(), 1);
	n = load();
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
			LOADS(-EVC_DATA_LOSS);
			bytes[i] ^= (char)(1 << bit);
		}
	write_file(path, bytes, n);
	LOADS(2);
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
		LOADS(-EVC_DATA_LOSS);
	}
	for (i = n + 1; i < n + 30; i++) {
		write_file(path, bytes, i);
		LOADS(-EVC_DATA_LOSS);
	}
	write_file(path, bytes, n);
	LOADS(2);
}
END_TEST

START_TEST(what_is_lost_is_said)
{
	LOADS(-EVC_NOT_FOUND);
	HAS(evc_last_error(), path);
	write_file(path, "rubbish", 7);
	LOADS(-EVC_DATA_LOSS);
	HAS(evc_last_error(), "state is damaged");
	/* A damaged one is replaced as any other. */
	OK(save(5));
	LOADS(5);
	ck_assert_int_eq(n_files(), 1);
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	ck_assert_int_eq(mkdir(path, 0700), 0);
	REFUSED(EVC_INVALID_ARGUMENT, save(1));
	REFUSED(EVC_INVALID_ARGUMENT, load());
	ck_assert_int_eq(rmdir(path), 0);
	/* Nobody reads or writes it: that holds up nobody. */
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	REFUSED(EVC_INVALID_ARGUMENT, save(1));
	REFUSED(EVC_INVALID_ARGUMENT, load());
	ck_assert_int_eq(n_files(), 1);
	snprintf(path, sizeof path, "%s/none/state", folder);
	REFUSED(EVC_NOT_FOUND, save(1));
	REFUSED(EVC_NOT_FOUND, load());
	path[0] = '\0';
	REFUSED(EVC_INVALID_ARGUMENT, save(1));
	REFUSED(EVC_INVALID_ARGUMENT, load());
}
END_TEST

/* ---- each system call fails ---- */

static const struct {
	const char *op, *func;
	int nth, err;
	evc_status status;
} calls[] = {
	{ "folder_open", "open_folder", 1, EMFILE, EVC_RESOURCE_EXHAUSTED },
	{ "entry_stat", "write_there", 1, EACCES, EVC_PERMISSION_DENIED },
	{ "file_create", "replace_file", 1, EROFS, EVC_PERMISSION_DENIED },
	{ "file_create", "replace_file", 1, EACCES, EVC_PERMISSION_DENIED },
	{ "file_create", "replace_file", 1, EDQUOT, EVC_RESOURCE_EXHAUSTED },
	{ "fd_put", "put_all", 1, ENOSPC, EVC_RESOURCE_EXHAUSTED },
	{ "fd_put", "put_all", 2, EFBIG, EVC_RESOURCE_EXHAUSTED },
	{ "fsync", "fill_file", 1, EIO, EVC_UNAVAILABLE },
	{ "rename", "replace_file", 1, EACCES, EVC_PERMISSION_DENIED },
};

#define N_CALLS ((int)(sizeof calls / sizeof calls[0]))

START_TEST(a_write_that_fails_has_not_been)
{
	int fds;

	OK(save(1));
	OK(save(2));
	fds = t_count_fds();
	seam_fail(calls[_i].op, calls[_i].func, calls[_i].nth, calls[_i].err);
	ck_assert_int_eq(save(3), -calls[_i].status);
	HAS(evc_last_error(), path);
	seam_reset();
	ck_assert_int_eq(t_count_fds(), fds);
	ck_assert_int_eq(n_files(), 1);
	LOADS(2);
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
	LOADS(4);
}
END_TEST

/* The new file stands there; perhaps the disk has not got its name. */
START_TEST(a_folder_that_cannot_be_synced_is_said)
{
	OK(save(1));
	seam_fail("fsync", "folder_to_disk", 1, EIO);
	ck_assert_int_eq(save(2), -EVC_UNAVAILABLE);
	HAS(evc_last_error(), "state: its folder cannot be written");
	seam_reset();
	ck_assert_int_eq(n_files(), 1);
	LOADS(2);
}
END_TEST

/* ---- one that is killed, and several at once ---- */

static void *
save_three(void *arg)
{
	*(evc_status *)arg = save(3);
	return NULL;
}

/* Save on a thread that is held at one step, say so, and wait to be killed. */
static void
save_and_stand(const char *op, const char *func, int nth, int ready)
{
	int h = seam_hold(op, func, nth);
	evc_status st;
	pthread_t t;

	CHILD(pthread_create(&t, NULL, save_three, &st) == 0);
	CHILD(seam_await(h));
	CHILD(write(ready, "", 1) == 1);
	for (;;)
		pause();
}

/* As if nobody had written to it for two minutes. */
static bool
make_old(const char *name, void *arg)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
				     { .tv_sec = time(NULL) - 120 } };

	(void)arg;
	if (strstr(name, ".tmp-") != NULL)
		ck_assert_int_eq(utimensat(AT_FDCWD, name, times, 0), 0);
	return true;
}

/* Killed before each of its steps: path is whole, and it is the new one or the
   one before. */
START_TEST(a_crash_at_any_step_loses_nothing)
{
	static const struct {
		const char *op, *func;
		int nth, is, n_files;
	} steps[] = {
		{ "file_create", "replace_file", 1, 2, 1 },
		{ "fd_put", "put_all", 1, 2, 2 },
		{ "fd_put", "put_all", 2, 2, 2 },
		{ "fsync", "fill_file", 1, 2, 2 },
		{ "rename", "replace_file", 1, 2, 2 },
		{ "fsync", "folder_to_disk", 1, 3, 1 },
	};
	const int step = _i / 2, is = steps[step].is, n = steps[step].n_files;
	int ready[2], status;
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
	LOADS(is);
	ck_assert_int_eq(n_files(), n);
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	ck_assert_int_eq(close(ready[0]), 0);
	LOADS(is);
	/* Its temporary file is in nobody's way, and stays: it is new. */
	OK(save(4));
	LOADS(4);
	ck_assert_int_eq(n_files(), n);
	/* When it is old, a save removes it, also one that has no room. */
	each_name(make_old, NULL);
	if (_i % 2 == 0)
		OK(save(5));
	else {
		seam_fail("fd_put", "put_all", 1, ENOSPC);
		REFUSED(EVC_RESOURCE_EXHAUSTED, save(5));
	}
	ck_assert_int_eq(n_files(), 1);
	LOADS(_i % 2 == 0 ? 5 : 4);
}
END_TEST

/* Files with other names, however old, and folders. */
START_TEST(no_other_file_is_removed)
{
	static const char *const names[] = {
		"state.tmp", "state.tmp-mine", "state2.tmp-1-1", "state.tmp-1~",
	};
	char name[128];
	size_t i;

	for (i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(name, sizeof name, "%s/%s", folder, names[i]);
		write_file(name, "", 0);
	}
	snprintf(name, sizeof name, "%s.tmp-2-2", path);
	ck_assert_int_eq(mkdir(name, 0700), 0);
	each_name(make_old, NULL);
	OK(save(1));
	ck_assert_int_eq(n_files(), 6);
	LOADS(1);
}
END_TEST

/* Two writers at once: the file that is renamed last stays. */
START_TEST(the_last_rename_wins)
{
	static const struct {
		const char *op, *func;
		int nth, is;
	} steps[] = {
		{ "file_create", "replace_file", 1, 3 },
		{ "fd_put", "put_all", 2, 3 },
		{ "rename", "replace_file", 1, 3 },
		{ "fsync", "folder_to_disk", 1, 4 },
	};
	int h = seam_hold(steps[_i].op, steps[_i].func, steps[_i].nth);
	evc_status st = -1;
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, save_three, &st), 0);
	ck_assert(seam_await(h));
	OK(save(4));
	LOADS(4);
	seam_release(h);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	OK(st);
	LOADS(steps[_i].is);
	ck_assert_int_eq(n_files(), 1);
}
END_TEST

/* A writer whose temporary file another one has removed says so; the file of
   the other one stays. */
START_TEST(one_that_stood_still_for_long_is_refused)
{
	int h = seam_hold("rename", "replace_file", 1);
	evc_status st = 0;
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, save_three, &st), 0);
	ck_assert(seam_await(h));
	each_name(make_old, NULL);
	OK(save(4));
	seam_release(h);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_int_eq(st, -EVC_NOT_FOUND);
	LOADS(4);
	ck_assert_int_eq(n_files(), 1);
}
END_TEST

/* A link is followed by a read; a write replaces it, and not the file there. */
START_TEST(a_symbolic_link_is_replaced)
{
	char there[112];
	struct stat st;

	OK(save(1));
	snprintf(there, sizeof there, "%s/there", folder);
	ck_assert_int_eq(rename(path, there), 0);
	ck_assert_int_eq(chmod(there, 0644), 0);
	ck_assert_int_eq(symlink("there", path), 0);
	LOADS(1);
	OK(save(2));
	LOADS(2);
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	ck_assert_int_eq(rename(there, path), 0);
	LOADS(1);
}
END_TEST

/* ---- each call of a read fails ---- */

START_TEST(a_read_that_fails_says_so)
{
	static const struct {
		const char *op, *func;
		int nth, err;
		evc_status status;
	} reads[] = {
		{ "file_open", "evc__snapshot_read", 1, EACCES,
		  EVC_PERMISSION_DENIED },
		{ "file_open", "evc__snapshot_read", 1, EMFILE,
		  EVC_RESOURCE_EXHAUSTED },
		{ "file_open", "evc__snapshot_read", 1, EIO, EVC_DATA_LOSS },
		{ "fd_stat", "read_open", 1, ENOMEM, EVC_RESOURCE_EXHAUSTED },
		{ "fd_read", "get_all", 1, EIO, EVC_DATA_LOSS },
		{ "fd_read", "get_all", 2, EIO, EVC_DATA_LOSS },
		{ "fd_read", "get_all", 1, ESTALE, EVC_UNAVAILABLE },
		{ "alloc", "read_body", 1, ENOMEM, EVC_RESOURCE_EXHAUSTED },
	};
	int fds, is;

	OK(save(1));
	OK(save(2));
	fds = t_count_fds();
	seam_fail(reads[_i].op, reads[_i].func, reads[_i].nth, reads[_i].err);
	is = load();
	seam_reset();
	ck_assert_int_eq(is, -reads[_i].status);
	ck_assert_int_eq(t_count_fds(), fds);
	LOADS(2);
}
END_TEST

static void *
load_there(void *arg)
{
	*(int *)arg = load();
	return NULL;
}

/* It grows, or shrinks, when its length was looked at: then somebody else is
   writing there. */
START_TEST(a_file_that_moves_is_damaged)
{
	char bytes[256] = { 0 };
	int h, number = -1;
	pthread_t t;
	size_t n;

	OK(save(1));
	n = read_file(path, bytes, sizeof bytes);
	h = seam_hold("fd_read", "get_all", 2);
	ck_assert_int_eq(pthread_create(&t, NULL, load_there, &number), 0);
	ck_assert(seam_await(h));
	write_file(path, bytes, _i == 0 ? n + 1 : n - 1);
	seam_release(h);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_int_eq(number, -EVC_DATA_LOSS);
}
END_TEST

START_TEST(a_signal_is_no_error)
{
	seam_fail("fd_put", "put_all", 2, EINTR);
	OK(save(1));
	seam_reset();
	seam_fail("fd_read", "get_all", 2, EINTR);
	LOADS(1);
}
END_TEST

/* A folder that cannot be synced need not be. */
START_TEST(a_folder_may_say_EINVAL)
{
	OK(save(1));
	seam_fail("fsync", "folder_to_disk", 1, EINVAL);
	OK(save(2));
	LOADS(2);
}
END_TEST

T_MAIN("snapshot", folder_make, teardown,
       T_ONCE(what_was_written_is_read),
       T_ONCE(it_is_as_private_as_it_was),
       T_ONCE(one_of_another_day_is_read),
       T_ONCE(large_and_empty_ones_are_whole),
       T_ONCE(a_path_without_a_folder_is_here),
       T_ONCE(several_may_write_one_file),
       T_ONCE(every_wrong_byte_is_found),
       T_ONCE(every_cut_and_every_addition_is_found),
       T_ONCE(what_is_lost_is_said),
       T_ONCE(what_is_no_file_is_refused),
       T_TIMES(a_write_that_fails_has_not_been, N_CALLS),
       T_TIMES(a_first_write_that_fails_has_not_been, N_CALLS),
       T_ONCE(a_folder_that_cannot_be_synced_is_said),
       T_TIMES(a_crash_at_any_step_loses_nothing, 12),
       T_ONCE(no_other_file_is_removed),
       T_TIMES(the_last_rename_wins, 4),
       T_ONCE(one_that_stood_still_for_long_is_refused),
       T_ONCE(a_symbolic_link_is_replaced),
       T_TIMES(a_read_that_fails_says_so, 8),
       T_TIMES(a_file_that_moves_is_damaged, 2),
       T_ONCE(a_signal_is_no_error),
       T_ONCE(a_folder_may_say_EINVAL))
