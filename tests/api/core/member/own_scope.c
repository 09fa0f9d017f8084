/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads with a scope of their own: each is stopped alone, its errors reach
 * the coordinator above, and its scope goes with it.
 */
#include "../../../support/api_util.h"

#include <sys/wait.h>

static const evc_member_opts own = { .flags = EVC_OWN_SCOPE };

/* Does a report of c name it? */
static bool
reported(const evc_coord *c, const char *name)
{
	static char text[1 << 16];

	ck_assert_uint_lt(report_json(c, text, sizeof(text)), sizeof(text));
	return strstr(text, name) != NULL;
}

struct work {
	evc_coord *c;
	evc_status result;
	atomic_int in, out;
	_Atomic(evc_coord *) scope;
	evc_id id;
};

static evc_status
work(evc_coord *s, void *arg)
{
	struct work *w = arg;

	atomic_store(&w->scope, s);
	atomic_store(&w->in, 1);
	evc_wait_for_stop(s, INFINITY);
	atomic_store(&w->out, 1);
	return w->result;
}

static void
work_begin(struct work *w, evc_coord *c, const evc_member_opts *o)
{
	memset(w, 0, sizeof(*w));
	w->c = c;
	OK(evc_thread_start(c, "worker", work, w, o, &w->id));
	UNTIL(atomic_load(&w->in));
}

static void
end_coord(evc_coord *c)
{
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}

START_TEST(one_thread_is_stopped_alone)
{
	evc_coord *c = new_coord(NULL);
	struct work one, other;
	evc_status result;

	work_begin(&one, c, &own);
	work_begin(&other, c, &own);
	ck_assert_ptr_ne(one.scope, c);
	ck_assert_ptr_ne(one.scope, other.scope);
	ck_assert_ptr_eq(evc_scope_parent(one.scope), c);
	OK(evc_member_stop(c, one.id, EVC_OUT_OF_RANGE, "enough"));
	OK(evc_member_wait(c, one.id, INFINITY, &result));
	ck_assert_int_eq(result, 0);
	ck_assert(!evc_should_stop(c));
	ck_assert(!atomic_load(&other.out));
	REFUSED(EVC_NOT_FOUND, evc_member_stop(c, one.id, 0, NULL));
	end_coord(c); /* no scope is left that would keep c */
	ck_assert(atomic_load(&other.out));
}
END_TEST

START_TEST(the_stop_above_reaches_the_thread)
{
	evc_coord *c = new_coord(NULL);
	evc_verdict v;
	struct work w;

	work_begin(&w, c, &own);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

static evc_status
fails(evc_coord *s, void *arg)
{
	return evc_fail(s, EVC_DATA_LOSS, 0, "%s", (const char *)arg);
}

static evc_status
returns_code(evc_coord *s, void *arg)
{
	(void)s;
	return *(int *)arg;
}

static evc_status
exits(evc_coord *s, void *arg)
{
	(void)s;
	(void)arg;
	pthread_exit(NULL);
}

static evc_status
raw_exits(evc_coord *s, void *arg)
{
	(void)s;
	(void)arg;
	syscall(SYS_exit, 0);
	return 0;
}

START_TEST(errors_reach_the_coordinator_above)
{
	evc_fn *const fn[] = { fails, returns_code, exits };
	int code = EVC_DATA_LOSS;
	evc_coord *c;
	evc_verdict v;
	unsigned i;

	for (i = 0; i < 3; i++) {
		c = new_coord(NULL);
		OK(evc_thread_start(c, "worker", fn[i],
				    i == 0 ? (void *)"lost" : (void *)&code,
				    &own, NULL));
		UNTIL(evc_should_stop(c));
		ck_assert_int_eq(evc_join(c, NULL, &v),
				 i < 2 ? EVC_DATA_LOSS : EVC_ABORTED);
		ck_assert_uint_eq(v.n_errors, 1);
		ck_assert_str_eq(v.error.who, "worker");
		if (i == 0)
			ck_assert_str_eq(v.error.text, "lost");
		OK(evc_free(c));
	}
}
END_TEST

START_TEST(after_its_own_stop_it_may_say_that_it_obeyed)
{
	evc_coord *c = new_coord(NULL);
	evc_status result;
	struct work w;

	work_begin(&w, c, &own);
	w.result = EVC_CANCELLED;
	OK(evc_member_stop(c, w.id, 0, NULL));
	OK(evc_member_wait(c, w.id, INFINITY, &result));
	ck_assert_int_eq(result, EVC_CANCELLED);
	ck_assert(!evc_should_stop(c));
	end_coord(c);
}
END_TEST

START_TEST(with_END_STOPS_its_end_stops_the_coordinator_above)
{
	const evc_member_opts ends = { .flags = EVC_OWN_SCOPE |
						EVC_END_STOPS };
	const evc_status results[] = { 0, EVC_CANCELLED, EVC_OUT_OF_RANGE };
	evc_coord *c;
	struct work w;
	unsigned i;

	for (i = 0; i < 3; i++) {
		c = new_coord(NULL);
		work_begin(&w, c, &ends);
		w.result = results[i];
		OK(evc_member_stop(c, w.id, 0, NULL));
		UNTIL(evc_should_stop(c));
		OK(evc_join(c, NULL, NULL));
		OK(evc_free(c));
	}
}
END_TEST

START_TEST(a_failed_stop_of_one_is_an_error_above)
{
	evc_coord *c = new_coord(NULL);
	evc_verdict v;
	struct work w;

	work_begin(&w, c, &own);
	OK(evc_member_stop(c, w.id, EVC_INTERNAL, "broken"));
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_INTERNAL);
	ck_assert_str_eq(v.error.text, "broken");
	OK(evc_free(c));
}
END_TEST

/* ---- blocked threads ---- */

struct blocked {
	int fds[2];
	atomic_int in;
};

static evc_status
reads(evc_coord *s, void *arg)
{
	struct blocked *b = arg;
	char byte;

	atomic_store(&b->in, 1);
	while (!evc_should_stop(s))
		if (read(b->fds[0], &byte, 1) == 1)
			return 0;
	/* Woken for its stop: no error. */
	return evc_fail(s, EVC_UNAVAILABLE, EINTR, "read");
}

static void
write_byte(void *arg)
{
	struct blocked *b = arg;

	(void)!write(b->fds[1], "b", 1);
}

START_TEST(its_own_stop_kicks_or_unblocks_it)
{
	const evc_member_opts opts[] = {
		{ .flags = EVC_OWN_SCOPE | EVC_KICK },
		{ .flags = EVC_OWN_SCOPE, .unblock = write_byte },
	};
	evc_coord *c = new_coord(NULL);
	struct blocked b = { 0 };
	evc_id id;
	unsigned i;

	for (i = 0; i < 4; i++) {
		OK(pipe(b.fds));
		atomic_store(&b.in, 0);
		OK(evc_thread_start(c, "reader", reads, &b, &opts[i % 2], &id));
		UNTIL(atomic_load(&b.in));
		if (i < 2) {
			OK(evc_member_stop(c, id, 0, NULL));
			OK(evc_member_wait(c, id, INFINITY, NULL));
			ck_assert(!evc_should_stop(c));
		} else {
			OK(evc_request_stop(c, 0, NULL));
			OK(evc_join(c, NULL, NULL));
			OK(evc_clear_stop(c));
		}
		close(b.fds[0]);
		close(b.fds[1]);
	}
	OK(evc_free(c));
}
END_TEST

/* ---- the end of the scope ---- */

struct keeps {
	evc_coord *c;
	struct guest g;
	evc_queue *queue;
	evc_coord *below;
	evc_status freed, ready;
	int what;
};

enum { A_THREAD, A_QUEUE, A_SCOPE, N_KEPT };

static evc_status
leaves_behind(evc_coord *s, void *arg)
{
	struct keeps *k = arg;

	k->freed = evc_free(s);
	k->ready = evc_scope_ready(s);
	switch (k->what) {
	case A_THREAD:
		OK(evc_thread_start(s, "below", stay, &k->g, NULL, NULL));
		break;
	case A_QUEUE:
		OK(evc_queue_new(s, "queue", 4, NULL, &k->queue));
		break;
	default:
		OK(evc_scope_new(s, "below", NULL, &k->below));
		OK(evc_scope_ready(k->below));
	}
	return 0;
}

START_TEST(what_the_thread_leaves_behind_keeps_its_scope_and_is_stopped)
{
	struct keeps k;
	evc_coord *c;
	evc_id id;
	int what;

	for (what = 0; what < N_KEPT; what++) {
		c = new_coord(NULL);
		memset(&k, 0, sizeof(k));
		k.what = what;
		OK(evc_thread_start(c, "worker", leaves_behind, &k, &own,
				    &id));
		OK(evc_member_wait(c, id, INFINITY, NULL));
		ck_assert_int_eq(k.freed, -EVC_FAILED_PRECONDITION);
		ck_assert_int_eq(k.ready, -EVC_FAILED_PRECONDITION);
		ck_assert(reported(c, "\"worker\""));
		REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
		HAS(evc_last_error(), "worker");
		ck_assert(!evc_should_stop(c));
		if (what == A_SCOPE)
			ck_assert(evc_should_stop(k.below));
		atomic_store(&k.g.open, 1);
		OK(evc_queue_free(k.queue));
		OK(evc_free(k.below));
		/* Nothing but the rest in the scope has kept c. */
		OK(evc_join(c, NULL, NULL));
		OK(evc_free(c));
	}
}
END_TEST

/* Called by a report, which keeps all scopes meanwhile. */
static size_t
removes(unsigned format, char *buf, size_t n, void *arg)
{
	(void)format;
	if (n > 0)
		buf[0] = '\0';
	ck_assert_int_eq(evc_member_remove(arg, 4711), -EVC_NOT_FOUND);
	return 0;
}

START_TEST(a_report_may_free_no_scope_that_it_keeps)
{
	evc_coord *c = new_coord(NULL), *says;
	const evc_scope_opts opts = { .describe = removes, .arg = c };
	struct keeps k = { .what = A_QUEUE };
	char text[8192];
	evc_id id;

	/* The report calls it while it keeps the later one. */
	OK(evc_scope_new(c, "says", &opts, &says));
	OK(evc_thread_start(c, "worker", leaves_behind, &k, &own, &id));
	OK(evc_member_wait(c, id, INFINITY, NULL));
	OK(evc_queue_free(k.queue));
	(void)report_text(c, text, sizeof(text));
	OK(evc_free(says));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_thread_that_ends_at_once_leaves_no_scope)
{
	evc_coord *c = new_coord(NULL);
	evc_id id;
	int i;

	for (i = 0; i < 10000; i++) {
		OK(evc_thread_start(c, "brief", return_at_once, NULL, &own, &id));
		if (i % 2)
			OK(evc_member_wait(c, id, INFINITY, NULL));
	}
	OK(evc_join(c, NULL, NULL));
	ck_assert(!reported(c, "\"brief\""));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_thousand_stop_one_after_the_other)
{
	const evc_member_opts small = { .flags = EVC_OWN_SCOPE,
					.stack = T_SMALL_STACK };
	static struct work w[1000];
	evc_coord *c = new_coord(NULL);
	int i, began;

	for (began = 0; began < 1000; began++)
		if (evc_thread_start(c, "worker", work, &w[began], &small,
				     &w[began].id) < 0)
			break; /* the machine has no more threads */
	ck_assert_int_gt(began, 100);
	for (i = 0; i < began; i += 2)
		OK(evc_member_stop(c, w[i].id, 0, NULL));
	for (i = 0; i < began; i += 2)
		OK(evc_member_wait(c, w[i].id, INFINITY, NULL));
	ck_assert(!evc_should_stop(c));
	end_coord(c);
}
END_TEST

START_TEST(a_start_that_fails_leaves_nothing_behind)
{
	evc_member_opts opts = own;
	evc_coord *c = new_coord(NULL);
	evc_id id = 77;

	opts.stack = T_HUGE_STACK;
	ck_assert_int_lt(evc_thread_start(c, "big", return_at_once, NULL, &opts, &id),
			 0);
	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_CANCELLED,
		evc_thread_start(c, "late", return_at_once, NULL, &own, &id));
	ck_assert_uint_eq(id, 77);
	opts = own;
	opts.flags |= EVC_AFTER_STOP;
	OK(evc_thread_start(c, "later", work, &(struct work){ 0 }, &opts,
			    NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_raw_exit_leaves_no_scope)
{
	const evc_member_opts watched = { .flags = EVC_OWN_SCOPE |
						   EVC_WATCHED };
	evc_status result;
	evc_verdict v;
	evc_coord *c;
	evc_id id;

	if (t_under_asan() || t_under_tsan())
		T_SKIP("the sanitizer cannot follow SYS_exit");
	c = new_coord(NULL);
	OK(evc_thread_start(c, "raw", raw_exits, NULL, &own, &id));
	OK(evc_member_wait(c, id, INFINITY, &result));
	ck_assert_int_eq(result, EVC_ABORTED);
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_ABORTED);
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert_str_eq(v.error.who, "raw");
	OK(evc_clear_stop(c));
	OK(evc_thread_start(c, "raw", raw_exits, NULL, &watched, NULL));
	if (has_thread_pidfd())
		UNTIL(evc_should_stop(c));
	else
		OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_ABORTED);
	OK(evc_free(c));
}
END_TEST

START_TEST(an_abandoned_coordinator_ends_with_its_threads)
{
	int threads = t_count_threads();
	evc_coord *c = new_coord(NULL);
	struct keeps k = { .what = A_THREAD };

	OK(evc_thread_start(c, "worker", leaves_behind, &k, &own, NULL));
	UNTIL(atomic_load(&k.g.in));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_abandon(c));
	atomic_store(&k.g.open, 1);
	ck_assert_int_eq(t_settle_threads(threads), threads);
}
END_TEST

/* The child looks for no leaks. */
static void
leave_at_once(void)
{
	_exit(0);
}

static evc_status
forks(evc_coord *s, void *arg)
{
	int status;
	pid_t pid = fork();

	(void)arg;
	if (pid == 0) {
		CHILD_REFUSED(evc_free(s));
		CHILD(atexit(leave_at_once) == 0);
		return 0; /* as exit(0) */
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status == 0 ? 0 : EVC_INTERNAL;
}

START_TEST(a_fork_in_such_a_thread_leaves_the_parent_alone)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_thread_start(c, "forks", forks, NULL, &own, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(other_members_are_stopped_or_refused)
{
	const evc_member_opts thread = { .flags = EVC_OWN_THREAD };
	evc_coord *c = new_coord(NULL);
	evc_id looper, hold, hook, plain;
	evc_reactor *r = NULL;

	OK(evc_looper_start(c, "looper", 60, return_at_once, NULL, &thread,
			    &looper));
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_on_stop(c, "hook", return_at_once, NULL, NULL, &hook));
	OK(evc_thread_start(c, "plain", obey, NULL, NULL, &plain));
	OK(evc_member_stop(c, looper, 0, NULL));
	ck_assert(is_gone(c, looper));
	REFUSED(EVC_NOT_FOUND, evc_member_stop(c, looper, 0, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_member_stop(c, hold, 0, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_member_stop(c, hook, 0, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_member_stop(c, plain, 0, NULL));
	HAS(evc_last_error(), "plain");
	REFUSED(EVC_NOT_FOUND, evc_member_stop(c, 0, 0, NULL));
	REFUSED(EVC_NOT_FOUND, evc_member_stop(c, 4711, 0, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_member_stop(NULL, 1, 0, NULL));
	/* The flag is for evc_thread_start alone. */
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_reactor_start(c, "loop", NULL, NULL, &own, &r));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_register_thread(c, "self", pthread_self(), &own, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_looper_start(c, "looper", 1, return_at_once, NULL, &own,
				 NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_hold_begin(c, "hold", &own, NULL));
	OK(evc_hold_end(c, hold));
	end_coord(c);
}
END_TEST

API_MAIN("own_scope", one_thread_is_stopped_alone,
	 the_stop_above_reaches_the_thread, errors_reach_the_coordinator_above,
	 after_its_own_stop_it_may_say_that_it_obeyed,
	 with_END_STOPS_its_end_stops_the_coordinator_above,
	 a_failed_stop_of_one_is_an_error_above,
	 its_own_stop_kicks_or_unblocks_it,
	 what_the_thread_leaves_behind_keeps_its_scope_and_is_stopped,
	 a_report_may_free_no_scope_that_it_keeps,
	 a_thread_that_ends_at_once_leaves_no_scope,
	 a_thousand_stop_one_after_the_other,
	 a_start_that_fails_leaves_nothing_behind, a_raw_exit_leaves_no_scope,
	 an_abandoned_coordinator_ends_with_its_threads,
	 a_fork_in_such_a_thread_leaves_the_parent_alone,
	 other_members_are_stopped_or_refused)
