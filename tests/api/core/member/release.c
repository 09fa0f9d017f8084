/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * release of loopers, hooks and runners: called exactly once with the member's
 * arg, when nothing of the member is called any more, also when nothing ever
 * was; never when the call was refused.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <sys/wait.h>

struct thing {
	atomic_int calls, released, inside, late_calls;
	atomic_int open; /* for unblock and calls that stay */
	bool stays;
	void (*then)(struct thing *);
};

static struct ev_loop *loop;
static evc_coord *coord;

static evc_status
call(evc_coord *c, void *arg)
{
	struct thing *t = arg;

	(void)c;
	atomic_fetch_add(&t->calls, 1);
	atomic_fetch_add(&t->late_calls, atomic_load(&t->released));
	atomic_fetch_add(&t->inside, 1);
	while (t->stays && !atomic_load(&t->open))
		t_sleep(0.001);
	atomic_fetch_sub(&t->inside, 1);
	return 0;
}

static void
release(void *arg)
{
	struct thing *t = arg;

	ck_assert_int_eq(atomic_load(&t->inside), 0);
	atomic_fetch_add(&t->released, 1);
	if (t->then != NULL)
		t->then(t);
}

static atomic_int runs = 1;

static bool
is_running(void *arg)
{
	(void)call(NULL, arg);
	return atomic_load(&runs);
}

static void
no_more(void *arg)
{
	(void)call(NULL, arg);
	atomic_store(&runs, 0);
}

static const evc_runner_ops ops = { .is_running = is_running, .stop = no_more };

/* ---- the kinds ---- */

enum kind { HOOK, HELPER_HOOK, LOOPER, PAUSED, OWN, OWN_PAUSED, RUNNER, N_KINDS };

static evc_status
add(enum kind kind, struct thing *t, unsigned flags, evc_id *id)
{
	evc_member_opts o = { .release = release, .flags = flags };

	switch (kind) {
	case HOOK:
	case HELPER_HOOK:
		return evc_on_stop(coord, "m", call, t, &o, id);
	case PAUSED:
		o.flags |= EVC_PAUSED;
		break;
	case OWN_PAUSED:
		o.flags |= EVC_PAUSED | EVC_OWN_THREAD;
		break;
	case OWN:
		o.flags |= EVC_OWN_THREAD;
		break;
	case RUNNER:
		return evc_runner_add(coord, "m", &ops, t, &o, id);
	default:
		break;
	}
	return evc_looper_start(coord, "m", 0.001, call, t, &o, id);
}

static void
setup(enum kind kind)
{
	atomic_store(&runs, 1);
	loop = kind == HELPER_HOOK ? NULL : ev_loop_new(EVFLAG_AUTO);
	coord = new_coord(loop);
}

static void
teardown(void)
{
	OK(evc_free(coord));
	if (loop != NULL)
		ev_loop_destroy(loop);
}

START_TEST(removed_ones_are_released)
{
	struct thing t = { .calls = 0 };
	evc_id id = 0;

	setup(_i);
	OK(add(_i, &t, 0, &id));
	if (loop != NULL)
		ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(atomic_load(&t.released), 0);
	OK(evc_member_remove(coord, id));
	ck_assert_int_eq(atomic_load(&t.released), 1);
	REFUSED(EVC_NOT_FOUND, evc_member_remove(coord, id));
	OK(evc_request_stop(coord, 0, NULL));
	OK(evc_join(coord, NULL, NULL));
	teardown();
	ck_assert_int_eq(atomic_load(&t.released), 1);
	ck_assert_int_eq(atomic_load(&t.late_calls), 0);
}
END_TEST

START_TEST(ended_ones_are_released)
{
	struct thing t = { .calls = 0 };
	bool hook = _i <= HELPER_HOOK;

	setup(_i);
	OK(add(_i, &t, 0, NULL));
	OK(evc_request_stop(coord, 0, NULL));
	OK(evc_join(coord, NULL, NULL));
	/* A hook stays for the next round. */
	ck_assert_int_eq(atomic_load(&t.released), !hook);
	teardown();
	ck_assert_int_eq(atomic_load(&t.released), 1);
	ck_assert_int_eq(atomic_load(&t.late_calls), 0);
}
END_TEST

START_TEST(ones_that_never_ran_are_released)
{
	struct thing t = { .calls = 0 };

	setup(_i);
	OK(add(_i, &t, 0, NULL));
	if (_i <= HELPER_HOOK || _i == PAUSED || _i == OWN_PAUSED) {
		teardown();
		ck_assert_int_eq(atomic_load(&t.calls), 0);
	} else {
		/* evc_free is refused while they live. */
		OK(evc_request_stop(coord, 0, NULL));
		OK(evc_join(coord, NULL, NULL));
		teardown();
	}
	ck_assert_int_eq(atomic_load(&t.released), 1);
}
END_TEST

START_TEST(ones_begun_after_the_stop_are_released)
{
	struct thing t = { .calls = 0 };

	setup(_i);
	OK(evc_request_stop(coord, 0, NULL));
	OK(add(_i, &t, EVC_AFTER_STOP, NULL));
	OK(evc_join(coord, NULL, NULL));
	teardown();
	ck_assert_int_eq(atomic_load(&t.released), 1);
}
END_TEST

START_TEST(a_refused_call_leaves_it_to_the_caller)
{
	struct thing t = { .calls = 0 };
	evc_member_opts o = { .release = release };

	setup(_i);
	ck_assert_int_lt(add(_i, &t, EVC_JOIN_STRICT, NULL), 0);
	OK(evc_request_stop(coord, 0, NULL));
	if (_i >= LOOPER && _i <= OWN_PAUSED)
		REFUSED(EVC_CANCELLED, add(_i, &t, 0, NULL));
	/* Other kinds of members have none. */
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_thread_start(coord, "t", call, &t, &o, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_hold_begin(coord, "h", &o, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_guard(coord, "g", call, &t, &o));
	OK(evc_join(coord, NULL, NULL));
	teardown();
	ck_assert_int_eq(atomic_load(&t.released), 0);
	ck_assert_int_eq(atomic_load(&t.calls), 0);
}
END_TEST

/* ---- the moment ---- */

static void *
remove_it(void *arg)
{
	OK(evc_member_remove(coord, *(evc_id *)arg));
	return NULL;
}

START_TEST(a_call_in_progress_comes_first)
{
	struct thing t = { .stays = true };
	pthread_t remover;
	evc_id id = 0;

	setup(HELPER_HOOK);
	OK(add(_i == 0 ? HELPER_HOOK : OWN, &t, 0, &id));
	if (_i == 0)
		OK(evc_request_stop(coord, 0, NULL));
	UNTIL(atomic_load(&t.inside) == 1);
	ck_assert_int_eq(pthread_create(&remover, NULL, remove_it, &id), 0);
	NOT_YET(atomic_load(&t.released) > 0);
	atomic_store(&t.open, 1);
	pthread_join(remover, NULL);
	ck_assert_int_eq(atomic_load(&t.released), 1);
	OK(evc_request_stop(coord, 0, NULL));
	OK(evc_join(coord, NULL, NULL));
	teardown();
	ck_assert_int_eq(atomic_load(&t.released), 1);
}
END_TEST

static void
unblock(void *arg)
{
	(void)call(NULL, arg);
}

static bool
runs_quietly(void *arg)
{
	(void)arg;
	return atomic_load(&runs);
}

/* The unblock of a member that has gone may still run: its arg lives on. */
START_TEST(an_unblock_in_progress_comes_first)
{
	static const evc_runner_ops quiet = { .is_running = runs_quietly };
	struct thing t = { .stays = true };
	evc_member_opts o = { .release = release, .unblock = unblock };
	evc_verdict v;
	double wait;
	int i;

	setup(HELPER_HOOK);
	OK(evc_runner_add(coord, "m", &quiet, &t, &o, NULL));
	OK(evc_request_stop(coord, 0, NULL));
	UNTIL(atomic_load(&t.inside) == 1);
	atomic_store(&runs, 0);
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(evc_join_step(coord, NULL, &wait, &v),
				 EVC_PENDING);
		t_sleep(0.002);
	}
	ck_assert_int_eq(atomic_load(&t.released), 0);
	atomic_store(&t.open, 1);
	OK(evc_join(coord, NULL, NULL));
	teardown();
	ck_assert_int_eq(atomic_load(&t.released), 1);
	ck_assert_int_eq(atomic_load(&t.late_calls), 0);
}
END_TEST

static void
stay_here(struct thing *t)
{
	atomic_fetch_add(&t->inside, 1);
	while (!atomic_load(&t->open))
		t_sleep(0.001);
	atomic_fetch_sub(&t->inside, 1);
}

static evc_status
run_once(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	return EVC_OUT_OF_RANGE;
}

static void
no_line(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)level;
	(void)line;
	(void)r;
	(void)arg;
}

/* A release that hangs, of a member that ends before the stop, does not hang the
   join that is under way. */
START_TEST(a_join_ends_though_a_release_hangs)
{
	evc_config cfg = { .log = no_line };
	evc_escalation_opts e = { .budget = 0.1 };
	struct thing t = { .then = stay_here };
	evc_member_opts o = { .release = release, .flags = EVC_OWN_THREAD };
	struct joiner j;
	evc_id id;

	loop = NULL;
	coord = new_coord_with(NULL, &cfg);
	OK(evc_escalation_set(coord, &e));
	/* The join has one more member to wait for. */
	OK(evc_hold_begin(coord, "hold", NULL, &id));
	OK(evc_looper_start(coord, "m", 0.001, run_once, &t, &o, NULL));
	join_begin(&j, coord, INFINITY, 0);
	UNTIL(atomic_load(&t.inside) == 1);
	OK(evc_request_stop(coord, 0, NULL));
	OK(evc_hold_end(coord, id));
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	HAS(j.v.error.text, "still running: release of a member that has "
			    "ended");
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(coord));
	HAS(evc_last_error(), "the release of a member has not returned");
	atomic_store(&t.open, 1);
	UNTIL(evc_join(coord, NULL, NULL) == 0);
	teardown();
	ck_assert_int_eq(atomic_load(&t.released), 1);
}
END_TEST

/* ---- what a release may do ---- */

static void
add_another(struct thing *t)
{
	static struct thing other;

	(void)t;
	OK(evc_on_stop(coord, "other", call, &other, NULL, NULL));
}

static void
run_the_loop(struct thing *t)
{
	(void)t;
	ev_run(loop, EVRUN_NOWAIT);
}

static pid_t child;

static void
fork_a_child(struct thing *t)
{
	(void)t;
	child = fork();
	if (child == 0)
		_exit(0);
}

static void (*const ways[])(struct thing *) = {
	add_another, run_the_loop, fork_a_child,
};

START_TEST(whatever_a_release_does)
{
	struct thing t = { .then = ways[_i] };
	evc_id id = 0;
	int status = 1;

	child = 0;
	setup(LOOPER);
	OK(add(LOOPER, &t, 0, &id));
	OK(evc_member_remove(coord, id));
	ck_assert_int_eq(atomic_load(&t.released), 1);
	if (child != 0) {
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
	}
	teardown();
}
END_TEST

#define MANY 10000

START_TEST(ten_thousand_are_each_released_once)
{
	struct thing *t = calloc(MANY, sizeof(*t));
	int i;

	setup(LOOPER);
	for (i = 0; i < MANY; i++)
		OK(add(i % 2 == 0 ? LOOPER : HOOK, &t[i], 0, NULL));
	OK(evc_request_stop(coord, 0, NULL));
	OK(evc_join(coord, NULL, NULL));
	teardown();
	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(atomic_load(&t[i].released), 1);
	free(t);
}
END_TEST

/* The loop goes first. */
START_TEST(those_of_a_destroyed_loop_are_released)
{
	struct thing t[2] = { { .calls = 0 }, { .calls = 0 } };

	setup(LOOPER);
	OK(add(LOOPER, &t[0], 0, NULL));
	OK(add(HOOK, &t[1], 0, NULL));
	ev_loop_destroy(loop);
	loop = NULL;
	teardown();
	ck_assert_int_eq(atomic_load(&t[0].released), 1);
	ck_assert_int_eq(atomic_load(&t[1].released), 1);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("release");
	TCase *t = tcase_create("release");

	tcase_add_loop_test(t, removed_ones_are_released, 0, N_KINDS);
	tcase_add_loop_test(t, ended_ones_are_released, 0, N_KINDS);
	tcase_add_loop_test(t, ones_that_never_ran_are_released, 0, N_KINDS);
	tcase_add_loop_test(t, ones_begun_after_the_stop_are_released, 0,
			    N_KINDS);
	tcase_add_loop_test(t, a_refused_call_leaves_it_to_the_caller, 0,
			    N_KINDS);
	tcase_add_loop_test(t, a_call_in_progress_comes_first, 0, 2);
	tcase_add_test(t, an_unblock_in_progress_comes_first);
	tcase_add_test(t, a_join_ends_though_a_release_hangs);
	tcase_add_loop_test(t, whatever_a_release_does, 0,
			    sizeof(ways) / sizeof(ways[0]));
	tcase_add_test(t, ten_thousand_are_each_released_once);
	tcase_add_test(t, those_of_a_destroyed_loop_are_released);
	suite_add_tcase(suite, t);
	return run_suite(suite);
}
