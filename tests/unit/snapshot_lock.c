/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One at a time writes a snapshot: also where locks come and go with the file
 * that is locked, where there are none, and where one is never given back.
 */
#include "../support/api_util.h"
#include "support/seam.h"

#include <sys/stat.h>

#include "cluster/snapshot/snapshot.h"

#define NOW UINT64_C(0)
#define SOON UINT64_C(20000000)

static char folder[64], path[96], lock[112];

static void
setup(void)
{
	snprintf(folder, sizeof folder, "/tmp/evc-lock-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/state", folder);
	snprintf(lock, sizeof lock, "%s.tmp-lock", path);
}

/* Nothing is left but what was saved. */
static void
teardown(void)
{
	char old[112];

	seam_reset();
	(void)remove(path);
	snprintf(old, sizeof old, "%s.old", path);
	(void)remove(old);
	ck_assert_int_eq(rmdir(folder), 0);
}

static evc_status
save(void)
{
	static const evc_value v = { "\x01", 1 };

	return evc__snapshot_write(path, &v);
}

static void *
save_there(void *arg)
{
	*(evc_status *)arg = save();
	return NULL;
}

static bool
is_there(const char *name)
{
	struct stat st;

	return stat(name, &st) == 0;
}

START_TEST(one_has_it)
{
	struct snapshot_lock a, b;
	int fds = t_count_fds();

	OK(evc__snapshot_lock(&a, path, NOW));
	ck_assert(is_there(lock));
	REFUSED(EVC_UNAVAILABLE, evc__snapshot_lock(&b, path, NOW));
	REFUSED(EVC_UNAVAILABLE, evc__snapshot_lock(&b, path, SOON));
	HAS(evc_last_error(), "another one");
	evc__snapshot_unlock(&a);
	ck_assert(!is_there(lock));
	OK(evc__snapshot_lock(&b, path, NOW));
	evc__snapshot_unlock(&b);
	ck_assert_int_eq(t_count_fds(), fds);
}
END_TEST

/* It has opened the file before the name went with the lock of another one:
   what it would lock is nothing that anybody else sees. */
START_TEST(a_lock_without_a_name_is_none)
{
	int opened = seam_hold("file_lock", "try_to_lock", 1), writes;
	struct snapshot_lock l;
	evc_status st = -1;
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, save_there, &st), 0);
	ck_assert(seam_await(opened));
	OK(save());
	ck_assert(!is_there(lock));
	writes = seam_hold("file_create", "write_new", 1);
	seam_release(opened);
	ck_assert(seam_await(writes));
	ck_assert(is_there(lock));
	REFUSED(EVC_UNAVAILABLE, evc__snapshot_lock(&l, path, NOW));
	seam_release(writes);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_int_eq(st, 0);
}
END_TEST

START_TEST(whoever_waits_gets_it)
{
	struct snapshot_lock l;
	evc_status st = -1;
	pthread_t t;
	int h;

	OK(evc__snapshot_lock(&l, path, NOW));
	h = seam_hold("file_lock", "try_to_lock", 2);
	ck_assert_int_eq(pthread_create(&t, NULL, save_there, &st), 0);
	ck_assert(seam_await(h));
	evc__snapshot_unlock(&l);
	seam_release(h);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_int_eq(st, 0);
}
END_TEST

/* Then names tell the files of one from those of the other. */
START_TEST(a_file_system_may_have_no_locks)
{
	static const int errs[] = { ENOSYS, EOPNOTSUPP, ENOLCK };
	char theirs[112];
	FILE *f;

	snprintf(theirs, sizeof theirs, "%s.tmp-0", path);
	f = fopen(theirs, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fclose(f), 0);
	seam_fail_all("file_lock", "try_to_lock", 1, errs[_i]);
	OK(save());
	OK(save());
	/* Nobody can say whether its owner is gone. */
	evc__snapshot_clean(path);
	ck_assert(is_there(theirs));
	ck_assert_int_eq(remove(theirs), 0);
}
END_TEST

/* A child that goes on with the descriptors of the one that was at work, as
   they are closed by an exec only. */
START_TEST(a_child_holds_up_nobody)
{
	struct snapshot_lock l;
	int status;
	pid_t child;

	OK(evc__snapshot_lock(&l, path, NOW));
	child = fork();
	if (child == 0)
		for (;;)
			pause();
	evc__snapshot_unlock(&l);
	OK(save());
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("snapshot_lock");
	TCase *tc = tcase_create("snapshot_lock");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, one_has_it);
	tcase_add_test(tc, a_lock_without_a_name_is_none);
	tcase_add_test(tc, whoever_waits_gets_it);
	tcase_add_loop_test(tc, a_file_system_may_have_no_locks, 0, 3);
	tcase_add_test(tc, a_child_holds_up_nobody);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
