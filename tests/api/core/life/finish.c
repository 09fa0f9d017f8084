/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_finish: what keeps it from freeing is said, by name, and its status is
 * then not 0.
 */
#include "../../../support/api_util.h"

#include <signal.h>
#include <sys/wait.h>

struct lines {
	char last[512];
	int n;
};

static void
take_line(int level, const char *line, const evc_reason *r, void *arg)
{
	struct lines *l = arg;

	(void)level;
	(void)r;
	if (strstr(line, "not freed") == NULL)
		return;
	snprintf(l->last, sizeof(l->last), "%s", line);
	l->n++;
}

static evc_coord *
logging(struct lines *l)
{
	evc_config cfg = { .name = "c", .log = take_line, .arg = l };

	return new_coord_with(NULL, &cfg);
}

START_TEST(a_queue_that_was_left_is_no_success)
{
	struct lines l = { 0 };
	evc_coord *c = logging(&l);
	evc_queue *q = NULL;
	void *item = NULL;

	OK(evc_queue_new(c, "left", 4, NULL, &q));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(evc_finish(c, 0), 1);
	ck_assert_int_eq(l.n, 1);
	HAS(l.last, "c: not freed at the end: ");
	HAS(l.last, "queues or conditions");
	/* Nothing was freed, and a later call frees. */
	OK(evc_queue_push(q, &l, 0));
	OK(evc_queue_try_pop(q, &item));
	ck_assert_ptr_eq(item, &l);
	OK(evc_queue_free(q));
	ck_assert_int_eq(evc_finish(c, 0), 0);
	ck_assert_int_eq(l.n, 1);
}
END_TEST

START_TEST(a_pool_or_a_scope_is_named)
{
	struct lines l = { 0 };
	evc_coord *c = logging(&l), *s = NULL;
	evc_pool *p = NULL;

	OK(evc_pool_new(c, "hash", NULL, &p));
	OK(evc_scope_new(c, "parts", NULL, &s));
	OK(evc_scope_ready(s));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(evc_finish(c, 0), 1);
	HAS(l.last, "hash");
	HAS(l.last, "parts");
	/* An error, or late members, have their own status. */
	ck_assert_int_eq(evc_finish(c, EVC_INTERNAL), 1);
	ck_assert_int_eq(evc_finish(c, EVC_DEADLINE_EXCEEDED), 124);
	ck_assert_int_eq(l.n, 3);
	OK(evc_pool_free(p));
	OK(evc_free(s));
	ck_assert_int_eq(evc_finish(c, 0), 0);
}
END_TEST

START_TEST(a_member_that_is_ignored_is_named_too)
{
	evc_join_opts o = { .grace = EVC_NO_GRACE,
			    .flags = EVC_JOIN_IGNORE_LIVE |
				     EVC_JOIN_STOP_FIRST };
	struct lines l = { 0 };
	evc_coord *c = logging(&l);
	evc_id hold = 0;

	OK(evc_hold_begin(c, "stays", NULL, &hold));
	OK(evc_join(c, &o, NULL));
	ck_assert_int_eq(evc_finish(c, 0), 1);
	HAS(l.last, "still running: stays");
	OK(evc_hold_end(c, hold));
	ck_assert_int_eq(evc_finish(c, 0), 0);
}
END_TEST

START_TEST(a_child_frees_nothing_and_is_no_failure)
{
	struct lines l = { 0 };
	evc_coord *c = logging(&l);
	int status = 0;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		CHILD(evc_finish(c, 0) == 0);
		CHILD(l.n == 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(evc_finish(c, 0), 0);
}
END_TEST

API_MAIN("finish", a_queue_that_was_left_is_no_success,
	 a_pool_or_a_scope_is_named, a_member_that_is_ignored_is_named_too,
	 a_child_frees_nothing_and_is_no_failure)
