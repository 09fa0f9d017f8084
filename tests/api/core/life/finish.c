/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_finish frees queues, pools and groups together with their coordinator,
 * all or none.  What keeps it from freeing is said, by name, and its status is
 * then not 0.
 */
#include "../../../support/api_util.h"

#include <ev.h>
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

static evc_status
run_out(evc_group *g, unsigned index, void *arg)
{
	(void)g;
	(void)index;
	(void)arg;
	return EVC_OUT_OF_RANGE;
}

static evc_status
until_open(evc_group *g, unsigned index, void *arg)
{
	(void)g;
	(void)index;
	return stay(NULL, arg);
}

static evc_group *
group_of(evc_coord *c, const char *name, evc_worker_fn *fn, void *arg)
{
	evc_group_opts o = { .coord = c, .n_threads = 2 };
	evc_group *g = NULL;

	OK(evc_group_init(NULL, name, fn, arg, &o, &g, NULL));
	return g;
}

static evc_status
work_on(evc_job *job)
{
	return stay(NULL, job->arg);
}

static bool
count_group(evc_group *g, void *arg)
{
	(void)g;
	++*(size_t *)arg;
	return true;
}

static void
worked(evc_job *job, evc_status result)
{
	ck_assert_int_eq(result, 0);
	job->arg = NULL;
}

static size_t
n_groups(void)
{
	size_t n = 0;

	evc_registry_each(evc_registry_default(), count_group, &n);
	return n;
}

/* An empty queue, a pool with idle threads, a group that has ended and one that
   was never started; a leak checker sees what was not freed. */
START_TEST(all_that_is_empty_is_freed)
{
	int threads = t_count_threads(), stops;

	for (stops = 0; stops < 2; stops++) {
		struct ev_loop *loop = ev_loop_new(0);
		struct lines l = { 0 };
		struct guest g = { .open = 1 };
		evc_config cfg = { .name = "c", .log = take_line, .arg = &l };
		evc_coord *c = new_coord_with(loop, &cfg);
		evc_job job = { .work = work_on, .done = worked, .arg = &g };
		evc_queue *q[2];
		evc_pool *p;
		evc_group *ends;

		OK(evc_queue_new(c, "first", 4, NULL, &q[0]));
		OK(evc_pool_new(c, "pool", NULL, &p));
		OK(evc_queue_new(c, "second", 4, NULL, &q[1]));
		ends = group_of(c, "ends", run_out, NULL);
		group_of(c, "new", run_out, NULL);
		OK(evc_group_start(ends));
		evc_group_wait_finish(ends, INFINITY);
		OK(evc_pool_submit(p, evc_home(c), &job));
		while (job.arg != NULL)
			ev_run(loop, EVRUN_ONCE);
		OK(evc_queue_push(q[0], &l, 0));
		OK(evc_queue_try_pop(q[0], (void *[]){ NULL }));
		if (stops) {
			OK(evc_request_stop(c, 0, NULL));
			OK(evc_run(c, NULL, NULL));
		}
		ck_assert_uint_eq(n_groups(), 2);
		ck_assert_msg(evc_finish(c, 0) == 0, "%s", l.last);
		ck_assert_int_eq(l.n, 0);
		ck_assert_uint_eq(n_groups(), 0);
		ev_loop_destroy(loop);
	}
	ck_assert_int_eq(t_settle_threads(threads), threads);
}
END_TEST

START_TEST(a_queue_that_was_left_with_an_item_is_no_success)
{
	struct lines l = { 0 };
	evc_coord *c = logging(&l);
	evc_queue *q = NULL, *empty = NULL;
	void *item = NULL;

	OK(evc_queue_new(c, "empty", 4, NULL, &empty));
	OK(evc_queue_new(c, "left", 4, NULL, &q));
	OK(evc_queue_push(q, &l, 0));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(evc_finish(c, 0), 1);
	ck_assert_int_eq(l.n, 1);
	ck_assert_str_eq(l.last, "c: not freed at the end: queue left: there "
				 "are items in it");
	/* Nothing was freed, and a later call frees. */
	OK(evc_queue_push(empty, &l, 0));
	OK(evc_queue_try_pop(empty, &item));
	OK(evc_queue_try_pop(q, &item));
	ck_assert_ptr_eq(item, &l);
	ck_assert_int_eq(evc_finish(c, 0), 0);
	ck_assert_int_eq(l.n, 1);
}
END_TEST

/* A scope of the program's own keeps all the rest. */
START_TEST(a_scope_is_named)
{
	struct lines l = { 0 };
	evc_coord *c = logging(&l), *s = NULL;
	evc_pool *p = NULL;

	OK(evc_pool_new(c, "hash", NULL, &p));
	OK(evc_scope_new(c, "parts", NULL, &s));
	OK(evc_scope_ready(s));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(evc_finish(c, 0), 1);
	ck_assert_str_eq(l.last,
			 "c: not freed at the end: it has scopes: parts");
	/* An error, or late members, have their own status. */
	ck_assert_int_eq(evc_finish(c, EVC_INTERNAL), 1);
	ck_assert_int_eq(evc_finish(c, EVC_DEADLINE_EXCEEDED), 124);
	ck_assert_int_eq(l.n, 3);
	OK(evc_pool_free(p));
	OK(evc_free(s));
	ck_assert_int_eq(evc_finish(c, 0), 0);
}
END_TEST

START_TEST(a_pool_with_a_job_and_a_group_with_workers_are_named)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct lines l = { 0 };
	struct guest g = { 0 };
	evc_config cfg = { .name = "c", .log = take_line, .arg = &l };
	evc_coord *c = new_coord_with(loop, &cfg);
	evc_job job = { .work = work_on, .arg = &g };
	evc_group *group = group_of(c, "train", until_open, &g);
	evc_queue *q;
	evc_pool *p;
	void *item;

	OK(evc_queue_new(c, "empty", 4, NULL, &q));
	OK(evc_pool_new(c, "hash", NULL, &p));
	OK(evc_pool_submit(p, evc_home(c), &job));
	OK(evc_group_start(group));
	UNTIL(atomic_load(&g.in) == 3);
	ck_assert_int_eq(evc_finish(c, 0), 1);
	HAS(l.last, "pool hash: 1 jobs are not completed");
	HAS(l.last, "workers of train live: ");
	OK(evc_queue_push(q, &l, 0));
	OK(evc_queue_try_pop(q, &item));
	atomic_store(&g.open, 1);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_run(c, NULL, NULL));
	ck_assert_int_eq(evc_finish(c, 0), 0);
	ev_loop_destroy(loop);
}
END_TEST

/* What stands in the scope of a pool or a group is no part of c. */
START_TEST(what_stands_in_the_scope_of_a_part_is_named)
{
	struct lines l = { 0 };
	evc_coord *c = logging(&l), *below = NULL;
	evc_group *g = group_of(c, "train", run_out, NULL);
	evc_pool *p;
	evc_queue *q;

	OK(evc_pool_new(c, "hash", NULL, &p));
	OK(evc_queue_new(evc_pool_scope(p), "inner", 4, NULL, &q));
	OK(evc_scope_new(evc_group_scope(g), "below", NULL, &below));
	OK(evc_scope_ready(below));
	ck_assert_int_eq(evc_finish(c, 0), 1);
	HAS(l.last, "hash: it has queues or conditions");
	HAS(l.last, "train: it has scopes: below");
	OK(evc_queue_free(q));
	OK(evc_free(below));
	ck_assert_int_eq(evc_finish(c, 0), 0);
}
END_TEST

/* ---- parts of the program's own ---- */

struct mine {
	evc_part part; /* first */
	evc_status may, st;
	bool stays;
	int asked, freed, *order;
};

static evc_status
may_free(evc_part *p)
{
	struct mine *m = (struct mine *)p;

	m->asked++;
	return m->may < 0 ? evc_refuse(m->may, "mine is busy") : 0;
}

static evc_status
free_mine(evc_part *p)
{
	struct mine *m = (struct mine *)p;

	if (m->st < 0)
		return evc_refuse(m->st, "mine does not go");
	m->freed = ++*m->order;
	if (!m->stays)
		evc_part_remove(p);
	return 0;
}

START_TEST(a_part_is_asked_and_then_freed)
{
	struct lines l = { 0 };
	evc_coord *c = logging(&l), *other = new_coord(NULL), *s;
	int order = 0, i;
	struct mine m[2];

	memset(m, 0, sizeof(m));
	for (i = 0; i < 2; i++) {
		REFUSED(EVC_INVALID_ARGUMENT, evc_part_add(c, &m[i].part));
		m[i].part.may_free = may_free;
		m[i].part.free_object = free_mine;
		m[i].order = &order;
		OK(evc_part_add(c, &m[i].part));
		REFUSED(EVC_INVALID_ARGUMENT, evc_part_add(c, &m[i].part));
	}
	REFUSED(EVC_INVALID_ARGUMENT, evc_part_add(c, NULL));
	OK(evc_scope_new(other, "s", NULL, &s));
	evc_part_remove(&m[0].part);
	m[0].part.scope = s;
	REFUSED(EVC_INVALID_ARGUMENT, evc_part_add(c, &m[0].part));
	m[0].part.scope = NULL;
	OK(evc_part_add(c, &m[0].part));
	FREE_ALL(s, other);
	evc_part_remove(NULL);

	m[1].may = -EVC_FAILED_PRECONDITION;
	ck_assert_int_eq(evc_finish(c, 0), 1);
	ck_assert_str_eq(l.last, "c: not freed at the end: mine is busy");
	ck_assert_int_eq(m[0].asked, 1);
	ck_assert_int_eq(m[1].asked, 1);
	ck_assert_int_eq(order, 0);
	/* One that fails, or does not go, after all were asked. */
	m[1].may = 0;
	m[0].st = -EVC_INTERNAL;
	ck_assert_int_eq(evc_finish(c, 0), 1);
	ck_assert_str_eq(l.last, "c: not freed at the end: mine does not go");
	m[0].st = 0;
	m[0].stays = true;
	ck_assert_int_eq(evc_finish(c, 0), 1);
	HAS(l.last, "has not gone");
	evc_part_remove(&m[0].part);
	/* The newest has gone first. */
	ck_assert_int_eq(m[0].freed, 1);
	ck_assert_int_eq(m[1].freed, 0);
	ck_assert_int_eq(evc_finish(c, 0), 0);
	ck_assert_int_eq(m[1].freed, 2);
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

API_MAIN("finish", all_that_is_empty_is_freed,
	 a_queue_that_was_left_with_an_item_is_no_success, a_scope_is_named,
	 a_pool_with_a_job_and_a_group_with_workers_are_named,
	 what_stands_in_the_scope_of_a_part_is_named,
	 a_part_is_asked_and_then_freed, a_member_that_is_ignored_is_named_too,
	 a_child_frees_nothing_and_is_no_failure)
