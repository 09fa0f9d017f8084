/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another library's loop or pool with a stop call of its own: when, where and
 * how often it is called, what it answers means, and that nobody waits longer
 * for it than the grace.
 */
#include "../../support/api_util.h"

#include <ev.h>
#include <signal.h>

/* The other library: threads that work until they are told to stop. */
struct pool {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stopped;
	struct t_crowd threads;
	atomic_int left;
	/* what was seen */
	atomic_int stops, waits, wrong, stop_tid, wait_tid;
	sigset_t mask;
	/* the test says */
	evc_status result;
	struct guest *inside; /* its wait stays there until it is let go */
};

static void *
pool_work(void *arg)
{
	struct pool *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stopped)
		pthread_cond_wait(&p->changed, &p->lock);
	pthread_mutex_unlock(&p->lock);
	atomic_fetch_add(&p->left, 1);
	return NULL;
}

static void
pool_init(struct pool *p)
{
	memset(p, 0, sizeof(*p));
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	crowd_begin(&p->threads, 3, pool_work, p, 0);
}

static void
pool_stop(void *arg)
{
	struct pool *p = arg;

	if (atomic_load(&p->waits) != 0)
		atomic_fetch_add(&p->wrong, 1);
	atomic_store(&p->stop_tid, own_tid());
	atomic_fetch_add(&p->stops, 1);
	pthread_mutex_lock(&p->lock);
	p->stopped = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

static evc_status
pool_wait(void *arg)
{
	struct pool *p = arg;

	if (atomic_load(&p->stops) != 1)
		atomic_fetch_add(&p->wrong, 1);
	atomic_store(&p->wait_tid, own_tid());
	pthread_sigmask(SIG_SETMASK, NULL, &p->mask);
	atomic_fetch_add(&p->waits, 1);
	if (p->inside != NULL)
		stay(NULL, p->inside);
	crowd_end(&p->threads);
	return p->result;
}

static evc_id
add(evc_coord *c, const char *name, struct pool *p, const evc_member_opts *opts)
{
	evc_id id = 0;

	OK(evc_foreign_add(c, name, pool_stop, pool_wait, p, opts, &id));
	ck_assert_uint_ne(id, 0);
	return id;
}

static void
was_stopped(struct pool *p)
{
	ck_assert_int_eq(p->stops, 1);
	ck_assert_int_eq(p->waits, 1);
	ck_assert_int_eq(p->wrong, 0);
	ck_assert_int_eq(p->left, 3);
}

START_TEST(at_the_stop_it_is_stopped_and_then_waited_for)
{
	int threads = t_count_threads(), fds = t_count_fds(), way;
	struct ev_loop *loop = ev_loop_new(0);
	struct pool p;
	evc_coord *c;
	evc_verdict v;
	evc_id hold;

	for (way = 0; way < 2; way++) {
		c = new_coord(way ? loop : NULL);
		hold = 0;
		pool_init(&p);
		OK(evc_hold_begin(c, "hold", NULL, &hold));
		add(c, "pool", &p, NULL);
		t_sleep(0.05);
		ck_assert_int_eq(p.stops + p.waits, 0);
		OK(evc_request_stop(c, 0, NULL));
		UNTIL(atomic_load(&p.waits)); /* no join is needed */
		OK(evc_hold_end(c, hold));
		OK(evc_join(c, NULL, &v));
		was_stopped(&p);
		ck_assert_int_ne(p.stop_tid, own_tid());
		ck_assert_int_eq(p.wait_tid, p.stop_tid);
		/* it takes no signal of the program's */
		ck_assert(sigismember(&p.mask, SIGTERM));
		ck_assert(sigismember(&p.mask, SIGUSR1));
		ck_assert(!sigismember(&p.mask, SIGSEGV));
		ck_assert_uint_eq(v.n_ended, 2);
		ck_assert_uint_eq(v.n_errors, 0);
		OK(evc_free(c));
	}
	ev_loop_destroy(loop);
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

START_TEST(it_keeps_no_join_waiting_before_the_stop)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	struct joiner j;
	struct pool p;

	pool_init(&p);
	add(c, "pool", &p, NULL);
	OK(evc_thread_start(c, "front", stay, &g, NULL, NULL));
	join_begin(&j, c, 0, 0);
	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(p.stops, 0);
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.stop.kind, EVC_BY_EMPTY);
	ck_assert_uint_eq(j.v.n_ended, 2);
	was_stopped(&p);
	OK(evc_free(c));
}
END_TEST

START_TEST(what_its_wait_returns_is_its_result)
{
	static const evc_status results[] = { 0,
					      EVC_OUT_OF_RANGE,
					      EVC_CANCELLED,
					      EVC_DATA_LOSS,
					      -EVC_DATA_LOSS,
					      1000 };
	static const evc_status verdicts[] = {
		0, 0, 0, EVC_DATA_LOSS, EVC_DATA_LOSS, EVC_UNKNOWN
	};
	evc_coord *c = new_coord(NULL);
	struct pool p;
	evc_verdict v;
	evc_id id;
	int i;

	for (i = 0; i < 6; i++) {
		pool_init(&p);
		p.result = results[i];
		id = add(c, "pool", &p, NULL);
		OK(evc_request_stop(c, 0, NULL));
		ck_assert_int_eq(evc_join(c, NULL, &v), verdicts[i]);
		ck_assert_uint_eq(v.n_errors, verdicts[i] != 0);
		if (verdicts[i] != 0) {
			ck_assert_str_eq(v.error.who, "pool");
			ck_assert_uint_eq(v.error.by, id);
		}
		was_stopped(&p);
		OK(evc_clear_stop(c)); /* and again in the next round */
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(after_the_stop_it_is_refused_unless_LATE)
{
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	evc_coord *c = new_coord(NULL);
	struct pool p;
	evc_verdict v;
	evc_id id = 77;

	pool_init(&p);
	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_CANCELLED,
		evc_foreign_add(c, "no", pool_stop, pool_wait, &p, NULL, &id));
	ck_assert_uint_eq(id, 77);
	ck_assert_int_eq(p.stops + p.waits, 0);
	add(c, "yes", &p, &late);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	was_stopped(&p);
	OK(evc_free(c));
}
END_TEST

START_TEST(one_whose_wait_blocks_is_named_and_holds_up_nobody)
{
	evc_join_opts brief = { .grace = 0.3 };
	evc_coord *c = new_coord(NULL);
	struct pool p, q;
	struct guest g = { 0 };
	char text[4096];
	evc_verdict v;
	double took;

	pool_init(&p);
	pool_init(&q);
	p.inside = &g;
	add(c, "stuck-pool", &p, NULL);
	add(c, "good-pool", &q, NULL);
	OK(evc_request_stop(c, 0, NULL));
	took = -t_now();
	ck_assert_int_eq(evc_join(c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	took += t_now();
	ck_assert_double_ge(took, 0.299);
	ck_assert_double_lt(took, T_LIMIT / 2);
	ck_assert_uint_eq(v.n_stragglers, 1);
	HAS(v.error.text, "stuck-pool");
	ck_assert_ptr_null(strstr(v.error.text, "good-pool"));
	was_stopped(&q);
	evc_report(c, EVC_REPORT_TEXT, text, sizeof(text));
	HAS(text, "stuck-pool");
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	HAS(evc_last_error(), "stuck-pool");
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, &v));
	was_stopped(&p);
	OK(evc_free(c));
}
END_TEST

START_TEST(one_is_late_after_its_own_grace)
{
	evc_member_opts opts = { .grace = 0.1 };
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	struct pool p;
	evc_verdict v;

	pool_init(&p);
	p.inside = &g;
	add(c, "brief-pool", &p, &opts);
	OK(evc_request_stop(c, 0, NULL));
	/* the join's own grace would be two minutes */
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(v.took, 0.0999);
	ck_assert_double_lt(v.took, 60);
	HAS(v.error.text, "brief-pool");
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	was_stopped(&p);
	OK(evc_free(c));
}
END_TEST

START_TEST(several_are_waited_for_side_by_side)
{
	enum { N = 4 };
	int threads = t_count_threads();
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	struct pool p[N];
	struct joiner j;
	int i;

	for (i = 0; i < N; i++) {
		pool_init(&p[i]);
		p[i].inside = &g;
		add(c, "pool", &p[i], NULL);
	}
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, 0, 0);
	UNTIL(atomic_load(&g.in) == N); /* all inside at the same time */
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, N);
	for (i = 0; i < N; i++)
		was_stopped(&p[i]);
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(threads), threads);
}
END_TEST

struct turning {
	struct guest *g;
	int turns;
};

static void
on_tick(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct turning *t = w->data;

	(void)loop;
	(void)revents;
	if (atomic_load(&t->g->in) && ++t->turns == 10)
		atomic_store(&t->g->open, 1);
}

START_TEST(while_it_waits_the_loops_go_on)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct guest g = { 0 };
	struct turning turning = { &g, 0 };
	struct pool p;
	evc_verdict v;
	ev_timer t;

	pool_init(&p);
	p.inside = &g;
	add(c, "pool", &p, NULL);
	ev_timer_init(&t, on_tick, 0.001, 0.001);
	t.data = &turning;
	ev_timer_start(loop, &t);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_run(c, NULL, &v)); /* only the loop's turns let it go */
	ck_assert_int_ge(turning.turns, 10);
	was_stopped(&p);
	ev_timer_stop(loop, &t);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

struct shown {
	const char *name;
	int n;
};

static bool
find_name(const evc_member_info *m, void *arg)
{
	struct shown *s = arg;

	s->n += strcmp(m->name, s->name) == 0 &&
		(m->flags & EVC_BACKGROUND) != 0;
	return true;
}

START_TEST(it_is_shown_by_its_name_and_in_the_background)
{
	evc_coord *c = new_coord(NULL);
	struct shown shown = { "pool", 0 };
	evc_member_info info;
	struct pool p;
	evc_id id;

	pool_init(&p);
	id = add(c, "pool", &p, NULL);
	OK(evc_member_get(c, id, &info));
	ck_assert_uint_eq(info.state, EVC_LIVE);
	ck_assert_str_eq(info.name, "pool");
	OK(evc_member_each(c, find_name, &shown));
	ck_assert_int_eq(shown.n, 1); /* one member, whatever it is made of */
	ck_assert(!evc_all_stopped(c));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	HAS(evc_last_error(), "pool");
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(evc_member_get(c, id, &info), -EVC_NOT_FOUND);
	ck_assert(evc_all_stopped(c));
	was_stopped(&p);
	OK(evc_free(c));
}
END_TEST

API_MAIN("foreign", at_the_stop_it_is_stopped_and_then_waited_for,
	 it_keeps_no_join_waiting_before_the_stop,
	 what_its_wait_returns_is_its_result,
	 after_the_stop_it_is_refused_unless_LATE,
	 one_whose_wait_blocks_is_named_and_holds_up_nobody,
	 one_is_late_after_its_own_grace, several_are_waited_for_side_by_side,
	 while_it_waits_the_loops_go_on,
	 it_is_shown_by_its_name_and_in_the_background)
