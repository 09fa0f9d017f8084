/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wrong use of scopes, phases and drains: each a clear refusal that changes
 * nothing.
 */
#include "../../../support/scope_util.h"

#include <signal.h>
#include <sys/wait.h>

/* It is refused, and nothing came of it: the parent can be freed. */
static void
refused_with(evc_coord *c, const char *name, const evc_scope_opts *opts)
{
	evc_coord *s = NULL;

	REFUSED(EVC_INVALID_ARGUMENT, evc_scope_new(c, name, opts, &s));
	ck_assert_ptr_null(s);
}

START_TEST(NULL_and_names_that_are_too_long)
{
	evc_coord *c = new_coord(NULL), *s = NULL;
	char name[49];

	memset(name, 'n', sizeof(name));
	name[48] = '\0';
	refused_with(NULL, "s", NULL);
	REFUSED(EVC_INVALID_ARGUMENT, evc_scope_new(c, "s", NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_scope_ready(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_request_drain(NULL, 1, NULL));
	ck_assert_ptr_null(evc_scope_parent(NULL));
	s = ready_scope(c, name, NULL); /* the name is cut */
	FREE_ALL(s, c);
}
END_TEST

START_TEST(options_out_of_range)
{
	static const evc_status codes[] = { 1 };
	evc_coord *c = new_coord(NULL), *s;
	evc_scope_opts good = { 0 }, opts;
	size_t i;

#define REFUSED_WITH(change) \
	do { \
		opts = good; \
		change; \
		refused_with(c, "s", &opts); \
	} while (0)

	for (i = 0; i < sizeof opts.reserved_ / sizeof opts.reserved_[0]; i++)
		REFUSED_WITH(opts.reserved_[i] = 1);
	for (i = 0; i < sizeof opts.config.reserved_ /
				sizeof opts.config.reserved_[0];
	     i++)
		REFUSED_WITH(opts.config.reserved_[i] = 1);
	REFUSED_WITH(opts.phase = -1);
	REFUSED_WITH(opts.phase = -2147483647 - 1);
	REFUSED_WITH(opts.on_error = EVC_ON_ERROR_IGNORE + 1);
	REFUSED_WITH(opts.on_error = ~0u);
	REFUSED_WITH(opts.config.grace = NAN);
	REFUSED_WITH(opts.config.grace = -2);
	REFUSED_WITH(opts.config.grace = -INFINITY);
	REFUSED_WITH(opts.config.max_reasons = 255);
	REFUSED_WITH(opts.config.flags = 1u << 31);
	REFUSED_WITH(opts.config.clock = scripted_clock);
	REFUSED_WITH(opts.config.n_clean = 1);
	REFUSED_WITH(opts.config.clean = codes; opts.config.n_clean = 1;
		     opts.config.flags = EVC_NO_CLEAN_CODES);
	s = ready_scope(c, "s", &good);
	FREE_ALL(s, c);
}
END_TEST

START_TEST(the_home_of_another_tree_or_of_a_scope_beside)
{
	struct ev_loop *a = ev_loop_new(0), *b = ev_loop_new(0);
	evc_coord *c = new_coord(a), *other = new_coord(b), *beside, *below;
	evc_scope_opts opts = { 0 };

	beside = ready_scope(c, "beside", NULL);
	below = ready_scope(beside, "below", NULL);
	opts.home = evc_home(other);
	refused_with(c, "s", &opts);
	refused_with(below, "s", &opts);
	opts.home = evc_home(beside);
	refused_with(c, "s", &opts); /* not of c, nor of one above it */
	opts.home = evc_home(below);
	refused_with(beside, "s", &opts);
	FREE_ALL(below, beside, c, other);
	ev_loop_destroy(a);
	ev_loop_destroy(b);
}
END_TEST

START_TEST(ready_twice_and_ready_on_a_root)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "s", NULL);
	struct joiner j;
	evc_id id;

	REFUSED(EVC_FAILED_PRECONDITION, evc_scope_ready(s));
	REFUSED(EVC_FAILED_PRECONDITION, evc_scope_ready(c));
	/* in a later round as well; and neither count has moved */
	OK(evc_request_stop(s, 0, NULL));
	OK(evc_clear_stop(s));
	REFUSED(EVC_FAILED_PRECONDITION, evc_scope_ready(s));
	id = hold(s, "alive");
	join_begin(&j, c, 0, 0);
	NOT_YET(atomic_load(&j.returned));
	OK(evc_hold_end(s, id));
	OK(join_end(&j));
	FREE_ALL(s, c);
}
END_TEST

START_TEST(a_scope_takes_no_signals)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "s", NULL);
	struct sigaction before, after;

	OK(sigaction(SIGTERM, NULL, &before));
	REFUSED(EVC_FAILED_PRECONDITION, evc_signals_start(s, NULL));
	OK(sigaction(SIGTERM, NULL, &after));
	ck_assert(before.sa_handler == after.sa_handler);
	OK(evc_signals_start(c, NULL)); /* nobody has them */
	OK(raise(SIGTERM));
	BY_PARENT(s);
	FREE_ALL(s, c);
}
END_TEST

START_TEST(free_of_a_scope_under_its_parents_stop)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *s, *empty, *half, *later;
		evc_id id;

		s = ready_scope(c, "s", NULL);
		empty = ready_scope(c, "empty", NULL);
		half = new_scope(c, "half", NULL);
		later = phase_scope(c, "later", 3, 0);
		id = hold(s, "last-one");
		driver_go(&d);
		driver_stop(&d);
		/* with something in it, it is refused and nothing is lost */
		REFUSED(EVC_FAILED_PRECONDITION, evc_free(s));
		HAS(evc_last_error(), "last-one");
		/* without, it may go: also one whose turn has not come */
		FREE_ALL(empty, later);
		OK(evc_scope_ready(half));
		OK(evc_free(half));
		NOT_YET(driver_returned(&d));
		OK(evc_hold_end(s, id));
		OK(evc_free(s));
		OK(driver_wait(&d));
		driver_end(&d);
	}
}
END_TEST

START_TEST(what_is_for_hooks_alone_is_refused_elsewhere)
{
	evc_member_opts opts = { .flags = EVC_ON_DRAIN };
	evc_coord *c = new_coord(NULL);
	pthread_t th;

	REFUSED(EVC_INVALID_ARGUMENT,
		evc_thread_start(c, "t", obey, NULL, &opts, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_hold_begin(c, "h", &opts, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_guard(c, "g", return_at_once, NULL, &opts));
	OK(pthread_create(&th, NULL, end_at_once, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_register_thread(c, "r", th, &opts, NULL));
	OK(pthread_join(th, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_drain_with_a_limit_that_is_no_time)
{
	evc_coord *c = new_coord(NULL);

	REFUSED(EVC_INVALID_ARGUMENT, evc_request_drain(c, NAN, "no"));
	ck_assert(!evc_should_drain(c));
	ck_assert(!evc_should_stop(c));
	OK(evc_free(c));
}
END_TEST

START_TEST(in_a_fork_child_they_are_refused)
{
	evc_coord *c = new_coord(NULL), *s = new_scope(c, "s", NULL), *t = NULL;
	int status = 0;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		CHILD_REFUSED(evc_scope_new(c, "t", NULL, &t));
		CHILD_REFUSED(evc_scope_ready(s));
		CHILD_REFUSED(evc_request_drain(c, 0, NULL));
		CHILD(evc_scope_parent(s) == c);
		CHILD(!evc_should_drain(c));
		CHILD(!evc_should_stop(s));
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	OK(evc_scope_ready(s));
	FREE_ALL(s, c);
}
END_TEST

static evc_status
free_inside(evc_coord *c, void *arg)
{
	*(evc_status *)arg = evc_free(c);
	return 0;
}

START_TEST(not_freed_in_a_hook_of_its_own)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "s", NULL);
	evc_status st = 77;

	OK(evc_on_stop(s, "frees", free_inside, &st, NULL, NULL));
	OK(evc_request_stop(s, 0, NULL));
	OK(evc_join(s, NULL, NULL));
	ck_assert_int_eq(st, -EVC_FAILED_PRECONDITION);
	FREE_ALL(s, c);
}
END_TEST

API_MAIN("scope_wrong", NULL_and_names_that_are_too_long, options_out_of_range,
	 the_home_of_another_tree_or_of_a_scope_beside,
	 ready_twice_and_ready_on_a_root, a_scope_takes_no_signals,
	 free_of_a_scope_under_its_parents_stop,
	 what_is_for_hooks_alone_is_refused_elsewhere,
	 a_drain_with_a_limit_that_is_no_time, in_a_fork_child_they_are_refused,
	 not_freed_in_a_hook_of_its_own)
