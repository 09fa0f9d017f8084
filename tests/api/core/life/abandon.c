/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_abandon: the program leaves, stragglers of every kind come back late, use
 * what there is, and the last of them frees it.  What lives on loops and in
 * scopes stands in abandon_loops.c.
 */
#include "../../../support/abandon_util.h"
#include "../../../support/child_util.h"

START_TEST(with_nobody_alive_it_is_free)
{
	struct left left;

	left_begin(&left, NULL, NULL);
	OK(evc_thread_start(left.c, "obeys", obey, NULL, NULL, NULL));
	OK(evc_request_stop(left.c, 0, NULL));
	OK(evc_join(left.c, NULL, NULL));
	OK(evc_abandon(left.c));
	ck_assert(is_freed(&left));
	left_end(&left);
}
END_TEST

/* ---- a straggler of each kind ---- */

START_TEST(a_thread)
{
	static struct late l;
	struct left left;

	left_begin(&left, NULL, NULL);
	OK(evc_thread_start(left.c, "late", come_back_late, &l, NULL, NULL));
	UNTIL(atomic_load(&l.in));
	left_behind(&left, "late");
	t_sleep(0.05);
	ck_assert(!is_freed(&left));
	late_end(&l, &left, 1);
}
END_TEST

START_TEST(a_thread_that_ends_with_an_error)
{
	static struct late l = { .result = EVC_DATA_LOSS };
	struct left left;

	left_begin(&left, NULL, NULL);
	OK(evc_thread_start(left.c, "late", come_back_late, &l, NULL, NULL));
	UNTIL(atomic_load(&l.in));
	left_behind(&left, "late");
	late_end(&l, &left, 1);
}
END_TEST

struct own {
	evc_coord *c;
	struct late l;
	evc_status status;
};

static void *
registers_itself(void *arg)
{
	struct own *o = arg;

	o->status = evc_register_thread(o->c, "itself", pthread_self(), NULL,
					NULL);
	come_back_late(o->c, &o->l);
	return NULL;
}

START_TEST(a_registered_thread)
{
	static struct own o;
	struct left left;
	pthread_t t;

	left_begin(&left, NULL, NULL);
	o.c = left.c;
	OK(pthread_create(&t, NULL, registers_itself, &o));
	UNTIL(atomic_load(&o.l.in));
	left_behind(&left, "itself");
	late_end(&o.l, &left, 1);
	OK(o.status);
}
END_TEST

START_TEST(a_looper_on_its_own_thread)
{
	evc_member_opts own = { .flags = EVC_OWN_THREAD };
	static struct late l;
	struct left left;

	left_begin(&left, NULL, NULL);
	OK(evc_looper_start(left.c, "ticker", 0.001, come_back_late, &l, &own,
			    NULL));
	UNTIL(atomic_load(&l.in));
	left_behind(&left, "ticker");
	late_end(&l, &left, 1);
}
END_TEST

struct holder {
	evc_coord *c;
	evc_id id;
	atomic_int open;
	evc_status ended;
};

static void *
end_hold_late(void *arg)
{
	struct holder *h = arg;

	while (!atomic_load(&h->open))
		t_sleep(0.001);
	evc_request_stop(h->c, 0, "late");
	h->ended = evc_hold_end(h->c, h->id);
	return NULL;
}

START_TEST(a_hold)
{
	struct holder h = { .ended = 77 };
	struct left left;
	pthread_t t;

	left_begin(&left, NULL, NULL);
	h.c = left.c;
	OK(evc_hold_begin(h.c, "held", NULL, &h.id));
	left_behind(&left, "held");
	OK(pthread_create(&t, NULL, end_hold_late, &h));
	t_sleep(0.02);
	ck_assert(!is_freed(&left));
	atomic_store(&h.open, 1);
	OK(pthread_join(t, NULL));
	OK(h.ended);
	left_end(&left);
}
END_TEST

START_TEST(a_runner_that_has_to_be_asked)
{
	static struct machine m;
	struct left left;

	left_begin(&left, NULL, NULL);
	atomic_store(&m.runs, 1);
	machine_add(left.c, "machine", &m, NULL, 0);
	left_behind(&left, "machine");
	ck_assert_int_eq(atomic_load(&m.stops), 1);
	t_sleep(0.05);
	ck_assert_int_eq(atomic_load(&m.joins), 0);
	atomic_store(&m.runs, 0);
	left_end(&left);
	machine_was_joined(&m, 1);
}
END_TEST

START_TEST(a_runner_that_says_so)
{
	static struct machine m;
	struct left left;

	left_begin(&left, NULL, NULL);
	atomic_store(&m.runs, 1);
	machine_add(left.c, "machine", &m, NULL, 0);
	left_behind(&left, "machine");
	atomic_store(&m.done, 1);
	atomic_store(&m.runs, 0);
	(void)evc_runner_done(left.c, m.id, 0);
	left_end(&left);
	machine_was_joined(&m, 1);
}
END_TEST

static void
no_way_to_stop(void *arg)
{
	(void)arg;
}

static evc_status
wait_long(void *arg)
{
	struct guest *g = arg;

	return stay(NULL, g);
}

START_TEST(another_librarys_loop)
{
	static struct guest g;
	struct left left;

	left_begin(&left, NULL, NULL);
	OK(evc_foreign_add(left.c, "foreign", no_way_to_stop, wait_long, &g,
			   NULL, NULL));
	left_behind(&left, "foreign");
	t_sleep(0.02);
	atomic_store(&g.open, 1);
	left_end(&left);
}
END_TEST

/* ---- several ---- */

START_TEST(the_last_of_many_frees)
{
	static struct late l[8];
	struct left left;
	int i, k;

	left_begin(&left, NULL, NULL);
	for (i = 0; i < 8; i++)
		OK(evc_thread_start(left.c, "late", come_back_late, &l[i],
				    NULL, NULL));
	for (i = 0; i < 8; i++)
		UNTIL(atomic_load(&l[i].in));
	left_behind(&left, "late");
	for (i = 0; i < 7; i++) { /* one by one, then two at once */
		atomic_store(&l[i].open, 1);
		if (i < 6)
			UNTIL(atomic_load(&l[i].done));
		ck_assert(!is_freed(&left));
	}
	late_end(&l[7], &left, 1);
	for (k = 0; k < 8; k++)
		ck_assert_msg(atomic_load(&l[k].wrong) == NULL, "not so: %s",
			      atomic_load(&l[k].wrong));
}
END_TEST

START_TEST(abandoned_and_ended_at_the_same_time)
{
	static struct guest g[4];
	struct left left;
	int i, k;

	for (i = 0; i < 60; i++) {
		left_begin(&left, NULL, NULL);
		for (k = 0; k < 4; k++) {
			atomic_store(&g[k].in, 0);
			atomic_store(&g[k].open, 0);
			OK(evc_thread_start(left.c, "late", stay, &g[k], NULL,
					    NULL));
			UNTIL(atomic_load(&g[k].in));
		}
		OK(evc_request_stop(left.c, 0, NULL));
		for (k = 0; k < 4; k++)
			atomic_store(&g[k].open, 1);
		t_sleep((i % 12) * 0.0002);
		OK(evc_abandon(left.c));
		left_end(&left);
	}
}
END_TEST

static atomic_int unblocks;

static void
count_unblock(void *arg)
{
	(void)arg;
	atomic_fetch_add(&unblocks, 1);
}

/* Woken on, for as long as it lives. */
START_TEST(a_straggler_is_still_unblocked_and_kicked)
{
	evc_member_opts o = { .flags = EVC_KICK, .unblock = count_unblock };
	static struct sleeper s = { .call = call_nanosleep, .stubborn = true };
	struct left left;
	int kicks, calls;

	left_begin(&left, NULL, NULL);
	OK(evc_thread_start(left.c, "kicked", sleeper_live, &s, &o, NULL));
	UNTIL(atomic_load(&s.tid) != 0);
	left_behind(&left, "kicked");
	kicks = atomic_load(&s.interrupted);
	calls = atomic_load(&unblocks);
	UNTIL(atomic_load(&s.interrupted) > kicks + 3 &&
	      atomic_load(&unblocks) > calls + 3);
	atomic_store(&s.open, 1);
	left_end(&left);
}
END_TEST

/* ---- what is refused ---- */

static evc_status refused_there;

static evc_status
abandon_inside(evc_coord *c, void *arg)
{
	atomic_int *done = arg;

	refused_there = evc_abandon(c);
	atomic_store(done, 1);
	return 0;
}

START_TEST(inside_a_callback_it_is_refused)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	atomic_int done = 0;

	OK(evc_thread_start(c, "late", stay, &g, NULL, NULL));
	OK(evc_on_stop(c, "hook", abandon_inside, &done, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&done));
	ck_assert_int_eq(refused_there, -EVC_FAILED_PRECONDITION);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(without_a_stop_for_a_scope_and_beside_a_join_it_is_refused)
{
	evc_coord *c = new_coord(NULL), *low = NULL;
	struct guest g = { 0 };
	struct joiner j;

	REFUSED(EVC_FAILED_PRECONDITION, evc_abandon(c));
	OK(evc_scope_new(c, "scope", NULL, &low));
	OK(evc_scope_ready(low));
	OK(evc_thread_start(low, "late", stay, &g, NULL, NULL));
	OK(evc_request_stop(low, 0, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_abandon(low));
	REFUSED(EVC_FAILED_PRECONDITION, evc_abandon(c));
	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_abandon(low));
	join_begin(&j, c, T_LIMIT, 0);
	REFUSED(EVC_FAILED_PRECONDITION, evc_abandon(c));
	/* As usable as before. */
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	FREE_ALL(low, c);
}
END_TEST

static evc_status
no_work(evc_group *group, unsigned id, void *arg)
{
	(void)group;
	(void)id;
	(void)arg;
	return 0;
}

enum handle { POOL, GROUP, STARTED_GROUP, QUEUE, CONDITION, SCOPE };

/* What has a handle of the program's still is used after the last straggler has
   ended, and goes when it is freed; then all goes. */
static void
waits_until_freed(enum handle h)
{
	evc_group_opts o = { .n_threads = 1 };
	evc_scope_opts homeless = { .config.flags = EVC_NO_HOME };
	evc_group *group = NULL;
	evc_queue *queue = NULL;
	evc_pool *pool = NULL;
	evc_cond *cond = NULL;
	evc_coord *scope = NULL;
	evc_pool_info info;
	struct late l = { 0 };
	struct left left;

	left_begin(&left, NULL, NULL);
	o.coord = left.c;
	if (h == POOL)
		OK(evc_pool_new(left.c, NULL, NULL, &pool));
	if (h == GROUP || h == STARTED_GROUP)
		OK(evc_group_init(NULL, "group", no_work, NULL, &o, &group,
				  NULL));
	if (h == STARTED_GROUP)
		OK(evc_group_start(group));
	if (h == QUEUE)
		OK(evc_queue_new(left.c, NULL, 4, NULL, &queue));
	if (h == CONDITION)
		OK(evc_cond_new(left.c, &cond));
	if (h == SCOPE) {
		OK(evc_scope_new(left.c, "scope", &homeless, &scope));
		OK(evc_scope_ready(scope));
	}
	OK(evc_thread_start(left.c, "late", come_back_late, &l, NULL, NULL));
	UNTIL(atomic_load(&l.in));
	left_behind(&left, "late");
	atomic_store(&l.open, 1);
	UNTIL(atomic_load(&l.done));
	t_until_quiet();
	ck_assert(!is_freed(&left));
	if (pool != NULL)
		OK(evc_pool_get(pool, &info));
	OK(evc_pool_free(pool));
	OK(evc_group_free(group));
	OK(evc_queue_free(queue));
	OK(evc_cond_free(cond));
	OK(evc_free(scope));
	late_end(&l, &left, 1);
}

START_TEST(a_pool_waits_until_it_is_freed)
{
	waits_until_freed(POOL);
}
END_TEST

START_TEST(a_group_waits_until_it_is_freed)
{
	waits_until_freed(GROUP);
	waits_until_freed(STARTED_GROUP);
}
END_TEST

START_TEST(a_queue_and_a_condition_wait_until_they_are_freed)
{
	waits_until_freed(QUEUE);
	waits_until_freed(CONDITION);
}
END_TEST

START_TEST(a_scope_without_a_home_waits_until_it_is_freed)
{
	waits_until_freed(SCOPE);
}
END_TEST

START_TEST(a_child_process)
{
	struct kid k = kid_born(TERM_IGNORED, 0, 0);
	struct left left;

	left_begin(&left, NULL, NULL);
	OK(evc_child_add(left.c, "kid", k.pid, NULL, NULL));
	OK(evc_request_stop(left.c, 0, NULL));
	OK(evc_abandon(left.c)); /* no join has put it down */
	t_sleep(0.02);
	ck_assert(!is_freed(&left));
	kid_let_go(&k);
	UNTIL(is_freed(&left));
	kid_was_reaped(&k);
	ck_assert_int_eq(t_settle_threads(left.threads), left.threads);
}
END_TEST

API_MAIN("abandon", with_nobody_alive_it_is_free, a_thread,
	 a_thread_that_ends_with_an_error, a_registered_thread,
	 a_looper_on_its_own_thread, a_hold, a_runner_that_has_to_be_asked,
	 a_runner_that_says_so, another_librarys_loop, the_last_of_many_frees,
	 abandoned_and_ended_at_the_same_time,
	 a_straggler_is_still_unblocked_and_kicked,
	 inside_a_callback_it_is_refused,
	 without_a_stop_for_a_scope_and_beside_a_join_it_is_refused,
	 a_child_process, a_pool_waits_until_it_is_freed,
	 a_group_waits_until_it_is_freed,
	 a_queue_and_a_condition_wait_until_they_are_freed,
	 a_scope_without_a_home_waits_until_it_is_freed)
