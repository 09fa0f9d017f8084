/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our own bodies of functions that not every C library has: they say what this
 * one says, where it has them.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../support/api_util.h"
#include "support/seam.h"

#include "base/libc.h"
#include "base/sync.h"

START_TEST(the_usual_errno_values_have_their_texts)
{
	static const int usual[] = { EPERM, ENOENT, EINTR, EAGAIN, ENOMEM,
				     EACCES, EINVAL, EMFILE, ENOSPC, EPIPE,
				     ERANGE, EPROTO, ETIMEDOUT, ECONNREFUSED };
	size_t i;
	int e;

	for (i = 0; i < sizeof usual / sizeof usual[0]; i++)
		ck_assert_ptr_nonnull(evc__own_errno_text(usual[i]));
	for (e = -1; e < 300; e++) {
		const char *own = evc__own_errno_text(e);

#ifdef HAVE_STRERRORDESC_NP
		if (own != NULL)
			ck_assert_str_eq(own, strerrordesc_np(e));
#endif
		ck_assert(e > 0 || own == NULL);
		ck_assert(own == NULL || evc__errno_text(e) != NULL);
	}
	ck_assert_ptr_null(evc__own_errno_text(INT_MAX));
	ck_assert_ptr_null(evc__own_errno_text(INT_MIN));
}
END_TEST

START_TEST(all_signals_have_their_names)
{
	int s;

	for (s = -1; s < 80; s++) {
		const char *own = evc__own_signal_name(s);

#ifdef HAVE_SIGABBREV_NP
		const char *want = sigabbrev_np(s);

		ck_assert((own == NULL) == (want == NULL));
		if (own != NULL)
			ck_assert_str_eq(own, want);
#endif
		ck_assert((own == NULL) == (s < 1 || s > SIGSYS));
	}
}
END_TEST

/* true: a new process has the descriptor n. */
static bool
child_has(int least, int n)
{
	char ask[64], sh[] = "sh", c[] = "-c";
	char *argv[] = { sh, c, ask, NULL };
	posix_spawn_file_actions_t a;
	int status;
	pid_t pid;

	snprintf(ask, sizeof ask, "[ -e /proc/self/fd/%d ]", n);
	ck_assert_int_eq(posix_spawn_file_actions_init(&a), 0);
	ck_assert_int_eq(evc__own_close_from(&a, least), 0);
	ck_assert_int_eq(posix_spawn(&pid, "/bin/sh", &a, NULL, argv, environ),
			 0);
	posix_spawn_file_actions_destroy(&a);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status) == 0;
}

START_TEST(a_new_process_has_the_descriptors_below_alone)
{
	int i, first = 200, many = 300;

	/* More than one reading of the list returns. */
	for (i = 0; i < many; i++)
		ck_assert_int_eq(dup2(1, first + i), first + i);
	ck_assert(child_has(first + 1, first));
	ck_assert(!child_has(first + 1, first + 1));
	ck_assert(!child_has(first, first));
	ck_assert(!child_has(first, first + many - 1));
	for (i = 0; i < many; i++)
		close(first + i);
}
END_TEST

/* A limit that was lowered since then is no reason to start no process. */
START_TEST(what_an_exec_closes_may_be_above_the_limit)
{
	struct rlimit limit;

	ck_assert_int_eq(dup3(1, 500, O_CLOEXEC), 500);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 400;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert(child_has(3, 2));
	ck_assert(!child_has(3, 500));
}
END_TEST

START_TEST(a_list_that_cannot_be_read_is_an_error)
{
	posix_spawn_file_actions_t a;

	ck_assert_int_eq(posix_spawn_file_actions_init(&a), 0);
	seam_fail("folder_open", NULL, 1, EMFILE);
	ck_assert_int_eq(evc__own_close_from(&a, 3), EMFILE);
	seam_fail("folder_read", NULL, 1, EMFILE);
	ck_assert_int_eq(evc__own_close_from(&a, 3), EMFILE);
	seam_reset();
	posix_spawn_file_actions_destroy(&a);
}
END_TEST

API_MAIN("libc", the_usual_errno_values_have_their_texts,
	 all_signals_have_their_names,
	 a_new_process_has_the_descriptors_below_alone,
	 what_an_exec_closes_may_be_above_the_limit,
	 a_list_that_cannot_be_read_is_an_error)
