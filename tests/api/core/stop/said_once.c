/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "A code just reported adds nothing": a function of whatever member that says
 * by evc_fail why it fails, and returns that code, is one error, with its text
 * and its place.
 */
#include "../../../support/queue_util.h"

#define WHY "the disk is full"

/* Where it is said. */
static evc_status
say(evc_coord *c)
{
	return evc_fail(c, EVC_DATA_LOSS, ENOSPC, WHY);
}

static evc_status
say_fn(evc_coord *c, void *arg)
{
	(void)arg;
	return say(c);
}

static evc_coord *coord;

static evc_status
say_feed(evc_queue *q, unsigned number, void **ret_item, void *arg)
{
	(void)q;
	(void)number;
	(void)ret_item;
	(void)arg;
	return say(coord);
}

static evc_status
say_work(evc_group *g, unsigned id, void *arg)
{
	(void)id;
	(void)arg;
	return say(evc_group_scope(g));
}

static evc_status
say_join(void *arg)
{
	(void)arg;
	return say(coord);
}

static evc_status
setup(evc_reactor *r, void *arg)
{
	(void)arg;
	return say(evc_reactor_coord(r));
}

enum {
	BY_THREAD,
	BY_LOOPER,
	BY_THREAD_LOOPER,
	BY_HOOK,
	BY_GUARD,
	BY_RUNNER,
	BY_SETUP,
	BY_FEEDER,
	BY_WORKER,
	N_WAYS
};

static const char *const ways[] = { "a thread", "a looper",
				    "a looper on a thread", "a stop hook",
				    "a guard", "a runner", "a set-up",
				    "a feeder", "a worker" };

static evc_queue *q;
static evc_registry *reg;
static evc_group *group;

static void
begin(int way)
{
	static const evc_runner_ops ops = { .is_running = never_true,
					    .join = say_join };
	evc_member_opts own = { .flags = EVC_OWN_THREAD };
	evc_group_opts w = { .coord = coord, .n_threads = 1 };
	evc_reactor *r;

	switch (way) {
	case BY_THREAD:
		OK(evc_thread_start(coord, "it", say_fn, NULL, NULL, NULL));
		break;
	case BY_LOOPER:
	case BY_THREAD_LOOPER:
		OK(evc_looper_start(coord, "it", 0.001, say_fn, NULL,
				    way == BY_LOOPER ? NULL : &own, NULL));
		break;
	case BY_HOOK:
		OK(evc_on_stop(coord, "it", say_fn, NULL, NULL, NULL));
		OK(evc_request_stop(coord, 0, "go"));
		break;
	case BY_GUARD:
		ck_assert_int_eq(evc_guard(coord, "it", say_fn, NULL, NULL),
				 0);
		break;
	case BY_RUNNER:
		OK(evc_runner_add(coord, "it", &ops, NULL, NULL, NULL));
		break;
	case BY_SETUP:
		ck_assert_int_eq(evc_reactor_start(coord, "it", setup, NULL,
						   NULL, &r),
				 -EVC_DATA_LOSS);
		break;
	case BY_FEEDER:
		OK(evc_queue_feed(q, "it", 1, say_feed, NULL, NULL));
		break;
	default:
		OK(evc_registry_new(NULL, &reg));
		OK(evc_group_init(reg, "it", say_work, NULL, &w, &group, NULL));
		OK(evc_group_start(group));
		break;
	}
}

/* It stands where it was said, with what was said; other reasons are no
   errors. */
static void
look(evc_coord *c, const char *way)
{
	unsigned i, n = 0;
	evc_reason r;

	for (i = 0; evc_reason_get(c, i, &r) == 0; i++) {
		if (r.code == 0)
			continue;
		n++;
		ck_assert_msg(strcmp(r.text, WHY) == 0, "%s: \"%s\"", way,
			      r.text);
		ck_assert_msg(strcmp(r.func, "say") == 0, "%s: \"%s\"", way,
			      r.func);
		ck_assert_int_eq(r.err, ENOSPC);
	}
	ck_assert_msg(n == 1, "%s: %u errors are kept", way, n);
}

START_TEST(said_once_is_one_error)
{
	struct ev_loop *loop;
	evc_coord *of;
	evc_verdict v;
	int way;

	for (way = 0; way < N_WAYS; way++) {
		loop = ev_loop_new(0);
		coord = new_coord(loop);
		q = new_queue(coord, 1, 0);
		begin(way);
		of = way == BY_WORKER ? evc_group_scope(group) : coord;
		if (way == BY_WORKER)
			UNTIL(evc_should_stop(of) &&
			      evc_group_wait_finish(group, 0));
		else
			ck_assert_int_eq(evc_join(coord, NULL, &v),
					 EVC_DATA_LOSS);
		look(of, ways[way]);
		if (way != BY_WORKER)
			ck_assert_msg(v.n_errors == 1, "%s: %u errors",
				      ways[way], v.n_errors);
		if (way == BY_WORKER)
			OK(evc_registry_free(reg));
		drop_queue(coord, q);
		ev_loop_destroy(loop);
	}
}
END_TEST

API_MAIN("said_once", said_once_is_one_error)
