/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of evc_abandon share: stragglers that come back late and use
 * whatever there is, and how the test knows that the last one has freed all.
 */
#ifndef TESTS_SUPPORT_ABANDON_UTIL_H
#define TESTS_SUPPORT_ABANDON_UTIL_H

#include "rouse_util.h"

#include <ev.h>

/*
 * The stop descriptor belongs to the coordinator and is closed with it: the
 * one thing of it that a test may look at when it has gone.
 */
struct left {
	evc_coord *c;
	int fd, threads, fds;
};

static MAYBE_UNUSED void
left_begin(struct left *l, struct ev_loop *home, const evc_config *cfg)
{
	memset(l, 0, sizeof(*l));
	l->threads = t_count_threads();
	l->fds = t_count_fds();
	l->c = new_coord_with(home, cfg);
	l->fd = evc_stop_fd(l->c);
	ck_assert_int_ge(l->fd, 0);
}

static MAYBE_UNUSED bool
is_freed(const struct left *l)
{
	return fcntl(l->fd, F_GETFD) < 0;
}

/* Ask for the stop, join in vain, and leave. */
static MAYBE_UNUSED void
left_behind(struct left *l, const char *name)
{
	evc_join_opts brief = { .grace = 0.05 };
	evc_verdict v;

	OK(evc_request_stop(l->c, 0, "the program leaves"));
	ck_assert_int_eq(evc_join(l->c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, name);
	ck_assert_msg(evc_abandon(l->c) == 0, "%s", evc_last_error());
	ck_assert(!is_freed(l));
}

/* The last straggler has ended: nothing of it is left. */
static MAYBE_UNUSED void
left_end(struct left *l)
{
	UNTIL(is_freed(l));
	ck_assert_int_eq(t_settle_threads(l->threads), l->threads);
	ck_assert_int_eq(t_settle_fds(l->fds), l->fds);
	/* Or a leak would be reachable. */
	l->c = NULL;
}

/* ---- whoever comes back late ---- */

struct late {
	atomic_int in, open, done;
	_Atomic(const char *) wrong; /* the first thing that was not so */
	evc_status result;
	bool homeless; /* its coordinator's home loop was destroyed */
	atomic_int hooked;
};

#define LATE_MUST(l, cond) \
	do { \
		const char *none_ = NULL; \
		if (!(cond)) \
			atomic_compare_exchange_strong(&(l)->wrong, &none_, \
						       #cond); \
	} while (0)

static MAYBE_UNUSED bool
any_member(const evc_member_info *m, void *arg)
{
	(void)m;
	++*(int *)arg;
	return true;
}

static MAYBE_UNUSED void
never_called(void *arg)
{
	struct late *l = arg;

	LATE_MUST(l, !"called after the stop");
}

/* Everything that a member may do with its coordinator. */
static MAYBE_UNUSED void
use_everything(evc_coord *c, struct late *l)
{
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	evc_join_opts now = { .grace = EVC_NO_GRACE };
	evc_coord *scope = NULL;
	char text[2000];
	evc_status st;
	evc_reason r;
	evc_id id = 0;
	int n = 0;

	LATE_MUST(l, evc_should_stop(c));
	LATE_MUST(l, evc_should_drain(c));
	LATE_MUST(l, evc_wait_for_stop(c, INFINITY));
	LATE_MUST(l, evc_sleep(c, 100) == -EVC_CANCELLED);
	LATE_MUST(l, evc_stop_fd(c) >= 0 && readable(evc_stop_fd(c)));
	LATE_MUST(l, evc_request_stop(c, 0, "late") >= 0);
	LATE_MUST(l, evc_fail(c, EVC_INTERNAL, EIO, "late %d", 1) ==
			     EVC_INTERNAL);
	LATE_MUST(l, evc_request_drain(c, 1, "late") == 0);
	evc_progress("late");
	(void)evc_extend_stop(c, 0, 1, "late", NULL);
	LATE_MUST(l, evc_escalation_set(c, NULL) < 0);
	LATE_MUST(l, evc_cancel_push(c, never_called, l, 0, &id) ==
			     -EVC_CANCELLED);
	LATE_MUST(l, evc_thread_start(c, "no", obey, NULL, NULL, NULL) ==
			     -EVC_CANCELLED);
	LATE_MUST(l, evc_thread_start(c, "yes", return_at_once, NULL, &late,
				      NULL) == 0);
	LATE_MUST(l, evc_hold_begin(c, "hold", &late, &id) == 0);
	LATE_MUST(l, evc_member_get(c, id, NULL) == 0);
	LATE_MUST(l, evc_clear_stop(c) == -EVC_FAILED_PRECONDITION);
	LATE_MUST(l, evc_hold_end(c, id) == 0);
	LATE_MUST(l, evc_hold_end(c, id) == -EVC_NOT_FOUND);
	LATE_MUST(l, evc_guard(c, "guard", return_at_once, NULL, NULL) >= 0);
	st = evc_on_stop(c, "hook", count_hook, &l->hooked, NULL, &id);
	LATE_MUST(l, st == (l->homeless ? -EVC_FAILED_PRECONDITION : 0));
	LATE_MUST(l, st != 0 || evc_member_remove(c, id) == 0);
	st = evc_scope_new(c, "scope", NULL, &scope);
	LATE_MUST(l, st == (l->homeless ? -EVC_FAILED_PRECONDITION : 0));
	LATE_MUST(l, st != 0 || evc_should_stop(scope));
	LATE_MUST(l, st != 0 || evc_free(scope) == 0);
	LATE_MUST(l, evc_explain(c, text, sizeof(text)) > 0);
	LATE_MUST(l, evc_report(c, EVC_REPORT_TEXT, text, sizeof(text)) > 0);
	LATE_MUST(l, evc_member_each(c, any_member, &n) == 0 && n > 0);
	LATE_MUST(l, evc_reason_get(c, 0, &r) == 0);
	LATE_MUST(l, evc_raise_requested(c, &r) >= 0);
	LATE_MUST(l, !evc_all_stopped(c));
	/* Inside a loop it would wait for itself. */
	st = evc_join(c, &now, NULL);
	LATE_MUST(l, st >= 0 || st == -EVC_FAILED_PRECONDITION);
	LATE_MUST(l, evc_free(c) < 0);
	LATE_MUST(l, evc_abandon(c) < 0);
	(void)evc_joined(c);
}

static MAYBE_UNUSED evc_status
come_back_late(evc_coord *c, void *arg)
{
	struct late *l = arg;

	atomic_store(&l->in, 1);
	while (!atomic_load(&l->open))
		t_sleep(0.001);
	use_everything(c, l);
	atomic_fetch_add(&l->done, 1);
	return l->result;
}

static MAYBE_UNUSED void
late_end(struct late *l, struct left *left, int n)
{
	atomic_store(&l->open, 1);
	left_end(left);
	ck_assert_int_eq(atomic_load(&l->done), n);
	ck_assert_msg(atomic_load(&l->wrong) == NULL, "not so: %s",
		      atomic_load(&l->wrong));
}

#endif
