/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A verdict names who is late, not who waits for them: tasks with what they
 * say of themselves and their age, not the loop that waits for them; a job of a
 * pool; a thread's progress; and as many of them as the text has room for.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <sys/wait.h>

#define STILL "still running: "

/* A client of a server, on a loop of its own or on the home. */
struct client {
	evc_task task; /* first */
	const char *peer;
	void (*then)(struct client *); /* in describe */
	int n_described, on;
	int stays; /* until let_go is greater */
};

static void
describe(const evc_task *t, char *buf, size_t n, void *arg)
{
	struct client *k = (struct client *)t;

	(void)arg;
	k->n_described++;
	k->on = own_tid();
	snprintf(buf, n, "%s", k->peer);
	if (k->then != NULL)
		k->then(k);
}

static atomic_int let_go;

static void
end_if_let_go(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct client *k = w->data;

	(void)revents;
	if (atomic_load(&let_go) <= k->stays)
		return;
	evc_task_end(&k->task);
	ev_timer_stop(loop, w);
}

static const evc_task_class conn = { .name = "conn", .describe = describe };
static const evc_task_class upload = { .name = "upload" };

/* ---- a loop on a thread of its own ---- */

static struct client far[6];
static ev_timer watch[6];

static void
far_task(evc_reactor *r, int i, const evc_task_class *cls)
{
	OK(evc_task_begin(r, &far[i].task, cls));
	ev_timer_init(&watch[i], end_if_let_go, 0.001, 0.001);
	watch[i].data = &far[i];
	ev_timer_start(evc_reactor_loop(r), &watch[i]);
}

static evc_status
setup(evc_reactor *r, void *arg)
{
	int i, n = *(int *)arg;

	for (i = 0; i < n; i++)
		far_task(r, i, &conn);
	return 0;
}

static void
far_begin(void)
{
	static const char *const peer[] = { "192.0.2.1:4711", "192.0.2.2:80",
					    "192.0.2.3:81",   "192.0.2.4:82",
					    "192.0.2.5:83",   "192.0.2.6:84" };
	unsigned i;

	atomic_store(&let_go, 0);
	memset(far, 0, sizeof(far));
	for (i = 0; i < sizeof(peer) / sizeof(peer[0]); i++)
		far[i].peer = peer[i];
}

static void
end_all(evc_coord *c)
{
	atomic_store(&let_go, 2);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}

START_TEST(a_task_is_named_and_its_loop_is_not)
{
	evc_join_opts opts = { .grace = 0.3, .flags = EVC_JOIN_STOP_FIRST };
	evc_coord *c = new_coord(NULL);
	char what[64], rest[64];
	evc_verdict v;
	double age;
	int n = 1;

	far_begin();
	OK(evc_reactor_start(c, "conns", setup, &n, NULL, NULL));
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(sscanf(v.error.text,
				STILL "1 task conn on conns (%63[^,], %lf s%63s",
				what, &age, rest),
			 3);
	ck_assert_str_eq(what, "192.0.2.1:4711");
	ck_assert_double_ge(age, 0.2);
	ck_assert_double_le(age, T_LIMIT);
	ck_assert_str_eq(rest, ")");
	/* The loop is alive, and is counted. */
	ck_assert_uint_eq(v.n_stragglers, 2);
	/* Only its own loop has looked at the task. */
	ck_assert_int_ne(far[0].on, own_tid());
	end_all(c);
}
END_TEST

START_TEST(the_oldest_tasks_are_described_in_their_order)
{
	evc_join_opts opts = { .grace = 0.3, .flags = EVC_JOIN_STOP_FIRST };
	evc_coord *c = new_coord(NULL);
	const char *first, *second;
	evc_verdict v;
	int n = 6;

	far_begin();
	OK(evc_reactor_start(c, "conns", setup, &n, NULL, NULL));
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, STILL "6 tasks conn on conns (192.0.2.1:4711, ");
	first = strstr(v.error.text, "192.0.2.1:4711, ");
	second = strstr(v.error.text, " s; 192.0.2.2:80, ");
	ck_assert_ptr_nonnull(second);
	ck_assert(first < second);
	HAS(v.error.text, " s; 192.0.2.4:82, ");
	ck_assert_ptr_null(strstr(v.error.text, "192.0.2.5"));
	ck_assert_int_eq(far[5].n_described, 0);
	end_all(c);
}
END_TEST

/* Its first turn after the stop ends the loop's thread in a callback. */
static atomic_int hangs;

static void
hang(evc_task *t, void *arg)
{
	(void)t;
	(void)arg;
	atomic_store(&hangs, 1);
	while (!atomic_load(&let_go))
		t_sleep(0.001);
}

static const evc_task_class stuck = { .name = "stuck",
				      .on_stop = hang,
				      .describe = describe };

static evc_status
setup_stuck(evc_reactor *r, void *arg)
{
	far[5].stays = 1;
	far_task(r, 5, &stuck);
	return setup(r, arg);
}

START_TEST(a_loop_that_hangs_is_named_and_says_nothing_of_its_tasks)
{
	evc_join_opts opts = { .grace = 0.3, .flags = EVC_JOIN_STOP_FIRST };
	evc_coord *c = new_coord(NULL);
	evc_verdict v;
	int n = 1;

	far_begin();
	OK(evc_reactor_start(c, "conns", setup_stuck, &n, NULL, NULL));
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, STILL "conns, ");
	HAS(v.error.text, "1 task conn on conns");
	ck_assert_ptr_null(strstr(v.error.text, "192.0.2.1"));
	ck_assert_int_eq(far[0].n_described, 0);
	ck_assert_int_eq(atomic_load(&hangs), 1);
	atomic_store(&let_go, 1);
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	/* Now the loop turns. */
	HAS(v.error.text, STILL "1 task stuck on conns");
	end_all(c);
}
END_TEST

/* ---- on the home ---- */

static struct ev_loop *home;

static void
begin(evc_coord *c, struct client *k, const char *peer,
      const evc_task_class *cls)
{
	memset(k, 0, sizeof(*k));
	k->peer = peer;
	OK(evc_task_begin(evc_home(c), &k->task, cls));
}

START_TEST(a_task_that_has_ended_is_not_described)
{
	evc_join_opts opts = { .grace = 0.05, .flags = EVC_JOIN_STOP_FIRST };
	evc_coord *c = new_coord(home = ev_loop_new(0));
	struct client k[3];
	evc_verdict v;

	begin(c, &k[0], "first", &conn);
	begin(c, &k[1], "second", &conn);
	begin(c, &k[2], NULL, &upload);
	ck_assert_int_eq(evc_run(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, "2 tasks conn on home (first, 0.");
	HAS(v.error.text, " s; second, 0.");
	HAS(v.error.text, "1 task upload on home (0."); /* the age alone */
	/* After the loop's last look. */
	evc_task_end(&k[0].task);
	opts.grace = EVC_NO_GRACE;
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	HAS(evc_last_error(), "1 task conn on home, ");
	ck_assert_ptr_null(strstr(evc_last_error(), "first"));
	/* The next look. */
	ck_assert_int_eq(evc_run(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, "1 task conn on home (second, ");
	evc_task_end(&k[1].task);
	evc_task_end(&k[2].task);
	OK(evc_free(c));
	ev_loop_destroy(home);
}
END_TEST

/* ---- what describe may do ---- */

static struct client wild[4];

static void
end_all_of_them(struct client *k)
{
	int i;

	(void)k;
	for (i = 0; i < 4; i++)
		evc_task_end(&wild[i].task);
}

static void
run_the_loop(struct client *k)
{
	(void)k;
	ev_run(home, EVRUN_NOWAIT);
}

static pid_t child;

static void
fork_a_child(struct client *k)
{
	if (child != 0)
		return;
	(void)k;
	child = fork();
}

static void
no_end(struct client *k)
{
	k->peer = "a\nb\x01 and many, many, many, many more bytes than fit in";
}

static void (*const wild_ways[])(struct client *) = {
	end_all_of_them, run_the_loop, fork_a_child, no_end,
};

START_TEST(whatever_describe_does)
{
	evc_join_opts opts = { .grace = 0.05, .flags = EVC_JOIN_STOP_FIRST };
	evc_coord *c = new_coord(home = ev_loop_new(0));
	pid_t self = getpid();
	int i, status = 0;
	evc_status st;
	evc_verdict v;

	child = 0;
	for (i = 0; i < 4; i++)
		begin(c, &wild[i], "wild", &conn);
	wild[1].then = wild_ways[_i];
	st = evc_run(c, &opts, &v);
	if (getpid() != self)
		_exit(st == -EVC_FAILED_PRECONDITION ? 0 : 1);
	if (child != 0) {
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_int_gt(wild[1].n_described, 0);
	ck_assert_int_eq(st, wild_ways[_i] == end_all_of_them ?
				     0 :
				     EVC_DEADLINE_EXCEEDED);
	if (st == EVC_DEADLINE_EXCEEDED)
		HAS(v.error.text, "4 tasks conn on home (wild, 0.");
	for (i = 0; i < 4; i++)
		evc_task_end(&wild[i].task);
	OK(evc_free(c));
	ev_loop_destroy(home);
}
END_TEST

/* ---- threads and jobs ---- */

static evc_status
say_and_stay(evc_coord *c, void *arg)
{
	evc_progress("reads shard 3");
	return stay(c, arg);
}

START_TEST(a_thread_is_named_with_its_progress)
{
	evc_join_opts opts = { .grace = EVC_NO_GRACE,
			       .flags = EVC_JOIN_STOP_FIRST };
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0, 0 };
	evc_verdict v;

	OK(evc_thread_start(c, "reader", say_and_stay, &g, NULL, NULL));
	UNTIL(atomic_load(&g.in) == 1);
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_str_eq(v.error.text, STILL "reader (reads shard 3)");
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

static struct guest job_guest;

static evc_status
job_stays(evc_job *job)
{
	(void)job;
	return stay(NULL, &job_guest);
}

START_TEST(a_thread_of_a_pool_is_named_with_its_job)
{
	evc_join_opts opts = { .grace = 0.05, .flags = EVC_JOIN_STOP_FIRST };
	evc_pool_opts one = { .n_threads = 1 };
	evc_coord *c = new_coord(home = ev_loop_new(0));
	evc_job job = { .work = job_stays, .name = "resize" };
	evc_job next = { .work = job_stays };
	evc_pool *pool;
	evc_verdict v;

	job_guest = (struct guest){ 0, 0 };
	OK(evc_pool_new(c, "images", &one, &pool));
	OK(evc_pool_submit(pool, evc_home(c), &job));
	UNTIL(atomic_load(&job_guest.in) == 1);
	ck_assert_int_eq(evc_run(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, "1 task jobs of a pool on home (");
	HAS(v.error.text, " (resize)");
	atomic_store(&job_guest.open, 1);
	OK(evc_run(c, NULL, &v));
	OK(evc_clear_stop(c));
	/* The next job has no name, and must not get this one. */
	atomic_store(&job_guest.open, 0);
	OK(evc_pool_submit(pool, evc_home(c), &next));
	UNTIL(atomic_load(&job_guest.in) == 2);
	ck_assert_int_eq(evc_run(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_ptr_null(strstr(v.error.text, "resize"));
	atomic_store(&job_guest.open, 1);
	OK(evc_run(c, NULL, &v));
	OK(evc_pool_free(pool));
	OK(evc_free(c));
	ev_loop_destroy(home);
}
END_TEST

/* ---- the room of the text ---- */

#define N_HOLDS 20
#define LONG "a-scope-whose-name-has-as-many-bytes-as-may-be"

START_TEST(names_without_room_are_counted)
{
	evc_join_opts opts = { .grace = EVC_NO_GRACE,
			       .flags = EVC_JOIN_STOP_FIRST };
	evc_coord *c = new_coord(NULL), *s = c;
	unsigned i, more = 0, named = 0, depth = (unsigned)_i;
	evc_coord *scope[4];
	evc_id id[N_HOLDS];
	evc_verdict v;
	const char *at;
	char name[48];

	for (i = 0; i < depth; i++) {
		OK(evc_scope_new(s, LONG, NULL, &scope[i]));
		evc_scope_ready(scope[i]);
		s = scope[i];
	}
	for (i = 0; i < N_HOLDS; i++) {
		snprintf(name, sizeof(name), "hold-%02u", i);
		OK(evc_hold_begin(s, name, NULL, &id[i]));
	}
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, N_HOLDS);
	for (at = v.error.text; (at = strstr(at, "hold-")) != NULL; at++)
		named++;
	ck_assert_uint_gt(named, 0);
	at = strstr(v.error.text, " and ");
	ck_assert_ptr_nonnull(at);
	ck_assert_int_eq(sscanf(at, " and %u more", &more), 1);
	ck_assert_str_eq(strstr(at, " more"), " more");
	ck_assert_uint_eq(named + more, N_HOLDS);
	for (i = 0; i < N_HOLDS; i++)
		OK(evc_hold_end(s, id[i]));
	OK(evc_join(c, NULL, NULL));
	while (depth-- > 0)
		OK(evc_free(scope[depth]));
	OK(evc_free(c));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("who_is_late");
	TCase *t = tcase_create("who_is_late");

	tcase_add_test(t, a_task_is_named_and_its_loop_is_not);
	tcase_add_test(t, the_oldest_tasks_are_described_in_their_order);
	tcase_add_test(t,
		       a_loop_that_hangs_is_named_and_says_nothing_of_its_tasks);
	tcase_add_test(t, a_task_that_has_ended_is_not_described);
	tcase_add_loop_test(t, whatever_describe_does, 0,
			    sizeof(wild_ways) / sizeof(wild_ways[0]));
	tcase_add_test(t, a_thread_is_named_with_its_progress);
	tcase_add_test(t, a_thread_of_a_pool_is_named_with_its_job);
	tcase_add_loop_test(t, names_without_room_are_counted, 0, 5);
	suite_add_tcase(suite, t);
	return run_suite(suite);
}
