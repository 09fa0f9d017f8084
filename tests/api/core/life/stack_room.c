/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report with stacks does no harm to threads that have little left of theirs.
 */
#include "../../../support/api_util.h"

#include <alloca.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>

struct deep {
	size_t left; /* bytes of its stack that it leaves free */
	atomic_int tid;
	atomic_int go_on;
};

/* Sleep with so much left that a call of a system call has room. */
static __attribute__((noinline)) void
sleep_at(struct deep *d, const char *low)
{
	char here;
	volatile char *p;

	p = alloca((size_t)(&here - low) - d->left);
	p[0] = 0;
	atomic_store(&d->tid, own_tid());
	while (atomic_load(&d->go_on) == 0)
		syscall(SYS_futex, &d->go_on, FUTEX_WAIT, 0, NULL);
}

static evc_status
go_deep(evc_coord *c, void *arg)
{
	pthread_attr_t a;
	void *low;
	size_t n;

	(void)c;
	ck_assert_int_eq(pthread_getattr_np(pthread_self(), &a), 0);
	pthread_attr_getstack(&a, &low, &n);
	pthread_attr_destroy(&a);
	/* Their first calls look for the functions, and take more. */
	(void)own_tid();
	syscall(SYS_gettid);
	sleep_at(arg, low);
	return 0;
}

static bool
sleeps(int tid)
{
	char path[64], line[256] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	if (fgets(line, sizeof line, f) == NULL)
		line[0] = '\0';
	fclose(f);
	return strstr(line, ") S ") != NULL;
}

static const size_t lefts[] = { 600,  1024, 2048,  3072,  4096,
				6144, 8192, 10240, 12288, 40960 };
#define N_LEFTS ((int)(sizeof lefts / sizeof *lefts))

START_TEST(a_report_does_no_harm)
{
	static char buf[65536];
	evc_member_opts o = { .stack = T_SMALL_STACK };
	struct deep d = { .left = lefts[_i] };
	evc_coord *c;
	evc_verdict v;

	STACKS_BY(0);
	OK(evc_new(NULL, NULL, &c));
	OK(evc_thread_start(c, "deep", go_deep, &d, &o, NULL));
	UNTIL(atomic_load(&d.tid) != 0);
	UNTIL(sleeps(atomic_load(&d.tid)));
	evc_request_stop(c, EVC_OK, "enough");
	evc_report(c, EVC_REPORT_TEXT, buf, sizeof buf);
	if (d.left <= 4096)
		HAS(buf, "it has too little stack left");
	if (d.left >= 40960)
		ck_assert_ptr_null(strstr(buf, "too little stack"));
	atomic_store(&d.go_on, 1);
	syscall(SYS_futex, &d.go_on, FUTEX_WAKE, 1);
	OK(evc_join(c, NULL, &v));
	OK(evc_free(c));
}
END_TEST

T_MAIN("stack_room", NULL, NULL,
       T_TIMES(a_report_does_no_harm, N_LEFTS))
