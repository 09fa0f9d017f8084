/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups without memory and without threads: each allocation, and each
 * thread, of an init and of a start fails in turn.  The call is refused with a
 * text and nothing is half done; or it does without, and then all is there.
 * What leaks is found by the address sanitizer.
 */
#include "../support/workers_util.h"

#include "../support/seam.h"

#define MOST 400 /* of one kind in one call */

struct scene {
	evc_registry *reg;
	struct crew a, b;
};

static void
scene_make(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	s->reg = new_registry(0);
}

/* Whatever happened before: a group can be made, started and stopped, and all
   functions were called in pairs. */
static void
scene_end(struct scene *s)
{
	struct crew last = { 0 };

	crew_add(s->reg, "last", &last, 2, NULL);
	OK(evc_registry_start(s->reg));
	UNTIL(atomic_load(&last.runs) > 2);
	end_registry(s->reg);
	CALLED(&last, 1, 1, 1, 1, 1);
	ck_assert_int_eq(s->a.n_init, s->a.n_shutdown);
	ck_assert_int_eq(s->a.n_start, s->a.n_stop);
	ck_assert_int_eq(s->b.n_init, s->b.n_shutdown);
	ck_assert_int_eq(s->b.n_start, s->b.n_stop);
	ck_assert_int_eq(s->a.wrong + s->b.wrong, 0);
}

/* ---- init ---- */

START_TEST(each_allocation_of_an_init)
{
	evc_logger with[2] = { { .fn = no_log }, { .fn = no_log } };
	static const evc_status clean[] = { 200, 201 };
	evc_group_opts o = { .n_threads = 3,
			     .loggers = with,
			     .n_loggers = 2,
			     .clean = clean,
			     .n_clean = 2,
			     .member = { .flags = EVC_KICK } };
	int nth, h, failed = 0;
	bool all = false;

	for (nth = 1; !all; nth++) {
		struct scene s;
		evc_group *group = NULL;
		evc_registry *reg = NULL;
		evc_status st;

		scene_make(&s);
		h = seam_fail("alloc", NULL, nth, ENOMEM);
		st = evc_group_init(s.reg, "train", crew_beat, &s.a, &o, &group,
				    &reg);
		all = seam_arrivals(h) < nth;
		seam_reset();
		if (st != 0) {
			ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
			ck_assert_str_ne(evc_last_error(), "");
			ck_assert_ptr_null(group);
			ck_assert_ptr_null(reg);
			ck_assert_uint_eq(evc_registry_ids(s.reg, NULL, 0), 0);
			REFUSED(EVC_NOT_FOUND,
				evc_registry_stop_name(s.reg, "train", NULL));
			failed++;
		} else {
			s.a.group = group;
			ck_assert_uint_eq(evc_registry_ids(s.reg, NULL, 0), 3);
		}
		scene_end(&s);
		ck_assert_int_lt(nth, MOST);
	}
	ck_assert_int_gt(failed, 0);
}
END_TEST

START_TEST(each_allocation_of_a_registry)
{
	evc_registry_opts o = { .config = { .name = "mine" } };
	int nth, h, failed = 0;
	bool all = false;

	for (nth = 1; !all; nth++) {
		evc_registry *reg = NULL;
		evc_status st;

		h = seam_fail("alloc", NULL, nth, ENOMEM);
		st = evc_registry_new(&o, &reg);
		all = seam_arrivals(h) < nth;
		seam_reset();
		if (st != 0) {
			ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
			ck_assert_ptr_null(reg);
			failed++;
		}
		OK(evc_registry_free(reg));
		ck_assert_int_lt(nth, MOST);
	}
	ck_assert_int_gt(failed, 0);
}
END_TEST

/* ---- start ---- */

/* Two groups; whatever fails, afterwards both run or none does.  again: they
   have run before. */
static int
each_of_a_start(const char *op, const char *func, int err, bool again,
		bool one)
{
	int nth, h, failed = 0;
	bool all = false;

	for (nth = 1; !all; nth++) {
		struct scene s;
		evc_status st;

		scene_make(&s);
		crew_add(s.reg, "a", &s.a, 3, NULL);
		crew_add(s.reg, "b", &s.b, 2, NULL);
		if (again) {
			OK(evc_registry_start(s.reg));
			OK(evc_registry_stop(s.reg, NULL));
		}
		h = seam_fail(op, func, nth, err);
		st = one ? evc_group_start(s.a.group)
			 : evc_registry_start(s.reg);
		all = seam_arrivals(h) < nth;
		seam_reset();
		if (st != 0) {
			ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
			ck_assert_str_ne(evc_last_error(), "");
			ck_assert(!evc_group_is_active(s.a.group));
			ck_assert(!evc_group_is_active(s.b.group));
			ck_assert_uint_eq(info_of(s.a.group).n_live, 0);
			ck_assert_uint_eq(info_of(s.b.group).n_live, 0);
			ck_assert_int_eq(s.a.n_init, s.a.n_shutdown);
			ck_assert_int_eq(s.a.n_start, s.a.n_stop);
			ck_assert_int_eq(s.b.n_init, s.b.n_shutdown);
			ck_assert_int_eq(s.b.n_start, s.b.n_stop);
			/* All threads or none. */
			if (one && !again)
				ck_assert_int_eq(s.a.runs, 0);
			failed++;
			/* The next one works. */
			OK(evc_registry_start(s.reg));
		}
		ck_assert(evc_group_is_active(s.a.group));
		ck_assert_uint_eq(info_of(s.a.group).n_live, 3);
		if (!one || st != 0)
			ck_assert_uint_eq(info_of(s.b.group).n_live, 2);
		UNTIL(atomic_load(&s.a.by_id[0]) > 0 &&
		      atomic_load(&s.a.by_id[1]) > 0 &&
		      atomic_load(&s.a.by_id[2]) > 0);
		ids_are(s.a.group, 0, 3);
		ids_are(s.b.group, 3, 2);
		OK(evc_registry_stop(s.reg, NULL));
		scene_end(&s);
		ck_assert_int_lt(nth, MOST);
	}
	return failed;
}

START_TEST(each_allocation_of_a_start)
{
	ck_assert_int_gt(each_of_a_start("alloc", NULL, ENOMEM, _i & 1, _i & 2),
			 0);
}
END_TEST

/* Five, or three, are needed.  A helper of the core's, which comes when it likes,
   may be done without, or not. */
START_TEST(each_thread_of_a_start)
{
	int needed = _i & 2 ? 3 : 5;

	ck_assert_int_gt(each_of_a_start("thread_create", NULL, EAGAIN, _i & 1,
					 _i & 2),
			 0);
	ck_assert_int_eq(each_of_a_start("thread_create", "create_thread",
					 EAGAIN, _i & 1, _i & 2),
			 needed);
}
END_TEST

/* ---- what happens later ---- */

static int
each_of_a_resize(const char *op, const char *by, int err)
{
	int nth, h, failed = 0;
	bool all = false;

	for (nth = 1; !all; nth++) {
		struct scene s;
		evc_status st;

		scene_make(&s);
		crew_add(s.reg, "a", &s.a, 2, NULL);
		OK(evc_registry_start(s.reg));
		h = seam_fail(op, by, nth, err);
		st = evc_group_resize(s.a.group, 5);
		all = seam_arrivals(h) < nth;
		seam_reset();
		if (st != 0) {
			ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
			ck_assert_str_ne(evc_last_error(), "");
			ck_assert_uint_eq(info_of(s.a.group).n_threads, 2);
			UNTIL(info_of(s.a.group).n_live == 2);
			ids_are(s.a.group, 0, 2);
			ck_assert(evc_group_is_active(s.a.group));
			failed++;
			OK(evc_group_resize(s.a.group, 5));
		}
		UNTIL(info_of(s.a.group).n_live == 5);
		ck_assert_uint_eq(evc_group_ids(s.a.group, NULL, 0), 5);
		OK(evc_registry_stop(s.reg, NULL));
		ck_assert_uint_eq(info_of(s.a.group).n_errors, 0);
		scene_end(&s);
		ck_assert_int_lt(nth, MOST);
	}
	return failed;
}

START_TEST(each_allocation_and_each_thread_of_a_resize)
{
	ck_assert_int_eq(each_of_a_resize("thread_create", "create_thread",
					  EAGAIN),
			 3);
	(void)each_of_a_resize("thread_create", NULL, EAGAIN);
	(void)each_of_a_resize("alloc", NULL, ENOMEM);
}
END_TEST

/* A stop needs nothing that it has not. */
START_TEST(a_stop_without_memory_and_threads)
{
	struct scene s;

	scene_make(&s);
	crew_add(s.reg, "a", &s.a, 3, NULL);
	crew_add(s.reg, "b", &s.b, 3, NULL);
	OK(evc_registry_start(s.reg));
	UNTIL(atomic_load(&s.a.runs) > 3 && atomic_load(&s.b.runs) > 3);
	seam_fail_all("alloc", NULL, 1, ENOMEM);
	seam_fail_all("thread_create", NULL, 1, EAGAIN);
	OK(evc_group_stop(s.a.group, NULL));
	OK(evc_registry_stop(s.reg, NULL));
	seam_reset();
	CALLED(&s.a, 1, 1, 1, 1, 1);
	CALLED(&s.b, 1, 1, 1, 1, 1);
	scene_end(&s);
}
END_TEST

/* A worker that fails while there is no memory: its group stops, and the error
   is not lost. */
START_TEST(an_error_without_memory)
{
	struct scene s;

	scene_make(&s);
	s.a.run = crew_fail;
	crew_add(s.reg, "a", &s.a, 2, NULL);
	OK(evc_registry_start(s.reg));
	UNTIL(atomic_load(&s.a.by_id[1]) > 3);
	seam_fail_all("alloc", NULL, 1, ENOMEM);
	atomic_store(&s.a.open, 1);
	STATE_COMES(s.a.group, EVC_GROUP_STOPPED);
	UNTIL(atomic_load(&s.a.n_cleanup) == 1);
	seam_reset();
	ck_assert_uint_eq(info_of(s.a.group).n_errors, 1);
	ck_assert_int_eq(evc_raise_requested(evc_group_scope(s.a.group), NULL),
			 EVC_DATA_LOSS);
	atomic_store(&s.a.open, 0);
	scene_end(&s);
}
END_TEST

static evc_status
put_twice(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	if (atomic_load(&k->runs) > 1)
		return crew_leave(k, EVC_OUT_OF_RANGE);
	while (!atomic_load(&k->open))
		t_sleep(0.001);
	k->init_says = evc_group_put(group, "bytes", 3, true);
	atomic_store(&k->open, 2);
	while (atomic_load(&k->open) == 2)
		t_sleep(0.001);
	(void)evc_group_put(group, "bytes", 4, true);
	return crew_leave(k, EVC_OUT_OF_RANGE);
}

/* Refused; never the half of it, without its count. */
START_TEST(a_metric_without_memory)
{
	struct scene s;

	scene_make(&s);
	s.a.run = put_twice;
	crew_add(s.reg, "a", &s.a, 1, NULL);
	OK(evc_registry_start(s.reg));
	UNTIL(atomic_load(&s.a.in) == 1);
	seam_fail_all("alloc", NULL, 1, ENOMEM);
	atomic_store(&s.a.open, 1);
	UNTIL(atomic_load(&s.a.open) == 2);
	seam_reset();
	ck_assert_int_eq(s.a.init_says, -EVC_RESOURCE_EXHAUSTED);
	s.a.init_says = 0;
	atomic_store(&s.a.open, 3);
	ck_assert(evc_group_wait_finish(s.a.group, T_LIMIT));
	ck_assert(evc_group_metric(s.a.group, "bytes") == 4);
	ck_assert(evc_group_metric(s.a.group, "bytes_count") == 1);
	scene_end(&s);
}
END_TEST

T_MAIN("faults: workers", NULL, NULL,
       T_ONCE(each_allocation_of_an_init),
       T_ONCE(each_allocation_of_a_registry),
       T_TIMES(each_allocation_of_a_start, 4),
       T_TIMES(each_thread_of_a_start, 4),
       T_ONCE(each_allocation_and_each_thread_of_a_resize),
       T_ONCE(a_stop_without_memory_and_threads),
       T_ONCE(an_error_without_memory),
       T_ONCE(a_metric_without_memory))
