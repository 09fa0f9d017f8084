/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Suites that run on this kernel as it is, and again as on older ones: calls
 * that those did not have are made to fail for the process of the test, by a
 * filter.  Where filters are not allowed, that is said.
 */
#ifndef TESTS_SUPPORT_OLD_KERNEL_H
#define TESTS_SUPPORT_OLD_KERNEL_H

#include "api_util.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum kernel {
	KERNEL_THIS,
	KERNEL_6_14, /* a pidfd does not keep the status of who was reaped */
	KERNEL_5_3,  /* waitid takes no pidfd */
	KERNEL_5_2,  /* there are no pidfds */
	N_KERNELS
};

/* It only gets older: without a process for each test, filters stay. */
static enum kernel kernel_now MAYBE_UNUSED = KERNEL_THIS;

/* PIDFD_GET_INFO is 11 of type 0xff, whatever the size of its struct. */
#define OLD_IOCTL 0xff0bu

#define OLD_LOW(field) ((unsigned)offsetof(struct seccomp_data, field))
#define OLD_FAIL(e) \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((e)&SECCOMP_RET_DATA))
#define OLD_PASS BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* false: filters are not allowed here. */
static MAYBE_UNUSED bool
kernel_be(enum kernel k)
{
	struct sock_filter no_info[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OLD_LOW(nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OLD_LOW(args[1])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OLD_IOCTL, 0, 1),
		OLD_FAIL(ENOTTY),
		OLD_PASS
	};
	struct sock_filter no_wait[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OLD_LOW(nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_waitid, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OLD_LOW(args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, T_P_PIDFD, 0, 1),
		OLD_FAIL(EINVAL),
		OLD_PASS
	};
	struct sock_filter no_pidfd[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OLD_LOW(nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_send_signal, 0,
			 1),
		OLD_FAIL(ENOSYS), OLD_PASS
	};
	struct sock_fprog prog[] = {
		{ sizeof(no_info) / sizeof(no_info[0]), no_info },
		{ sizeof(no_wait) / sizeof(no_wait[0]), no_wait },
		{ sizeof(no_pidfd) / sizeof(no_pidfd[0]), no_pidfd }
	};

	for (; kernel_now < k; kernel_now++)
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
			  &prog[kernel_now]) != 0)
			return false;
	return true;
}

static MAYBE_UNUSED void
on_6_14(void)
{
	ck_assert(kernel_be(KERNEL_6_14));
}

static MAYBE_UNUSED void
on_5_3(void)
{
	ck_assert(kernel_be(KERNEL_5_3));
}

static MAYBE_UNUSED void
on_5_2(void)
{
	ck_assert(kernel_be(KERNEL_5_2));
}

/* Can this kernel be made to look older?  Tried in a process of its own. */
static MAYBE_UNUSED bool
kernel_can_be_old(void)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(!kernel_be(KERNEL_5_2));
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* The main of a test program whose tests run on each of those kernels. */
#define KERNELS_MAIN(name, ...) \
	int main(void) \
	{ \
		const TTest *const tests_[] = { __VA_ARGS__ }; \
		return kernels_run((name), tests_, \
				   sizeof(tests_) / sizeof(tests_[0])); \
	}

static MAYBE_UNUSED int
kernels_run(const char *name, const TTest *const *tests, size_t n)
{
	static const char *const as[] = { "this kernel", "as Linux 6.14",
					  "as Linux 5.3", "as Linux 5.2" };
	void (*const set_up[])(void) = { NULL, on_6_14, on_5_3, on_5_2 };
	/* First: what a process has by now, a leak checker sees again in its
	   child. */
	int k, kernels = kernel_can_be_old() ? N_KERNELS : 1;
	Suite *suite = suite_create(name);
	TCase *tcase;
	size_t i;

	if (kernels == 1)
		t_say_skip("as Linux 6.14, 5.3, 5.2",
			   "no seccomp filters are allowed here");
	for (k = 0; k < kernels; k++) {
		tcase = tcase_create(as[k]);
		if (set_up[k] != NULL)
			tcase_add_checked_fixture(tcase, set_up[k], NULL);
		for (i = 0; i < n; i++)
			tcase_add_test(tcase, tests[i]);
		suite_add_tcase(suite, tcase);
	}
	return run_suite(suite);
}

#endif
