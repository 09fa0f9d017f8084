/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool at random, against a model: several loops and other threads
 * submit, cancel, resize and stop, and jobs stay, submit again and end their
 * threads.  The model is each job's own count: between a submit that was
 * accepted and the next one there is exactly one completion, on the loop it was
 * submitted for, and no work without a submit.
 *
 * EVC_STRESS_SECONDS / 10 seconds, 3 by default.
 */
#include "../../support/pool_util.h"

enum { LOOPS = 3, JOBS = 200, FAR = 2, FAR_JOBS = 40 };

static struct world *world;

struct model {
	struct thing t; /* first */
	struct lane *lane;
	atomic_int open_;    /* accepted and not completed: 0 or 1 */
	atomic_int in_work;
	int n_accepted, n_completed, n_begun;
	unsigned seed;
};

struct lane {
	evc_reactor *_Atomic r;
	atomic_int tid;
	struct model m[JOBS];
	struct model far[FAR][FAR_JOBS];
	atomic_int n_gone; /* of its loop */
};

struct world {
	struct lane lane[LOOPS];
	atomic_int stop;
	_Atomic(const char *) wrong;
	atomic_long n_accepted, n_completed, n_cancelled, n_refused;
};

#define MUST(cond) \
	do { \
		const char *none_ = NULL; \
		if (!(cond)) \
			atomic_compare_exchange_strong(&world->wrong, &none_, \
						       #cond); \
	} while (0)

static unsigned
draw(unsigned *seed, unsigned n)
{
	*seed = *seed * 1103515245u + 12345u;
	return (*seed >> 8) % n;
}

static evc_status
model_work(evc_job *job)
{
	struct model *m = (struct model *)job;
	unsigned what = draw(&m->seed, 200);
	double until;

	MUST(atomic_load(&m->open_) == 1);
	MUST(atomic_fetch_add(&m->in_work, 1) == 0);
	m->n_begun++;
	if (what < 3)
		t_sleep(0.001);
	else if (what < 5)
		for (until = t_now() + 0.02;
		     t_now() < until && !evc_job_should_stop(job);)
			t_sleep(0.0005);
	atomic_fetch_sub(&m->in_work, 1);
	if (what == 199 && draw(&m->seed, 60) == 0)
		pthread_exit(NULL);
	return (evc_status)(m->n_begun % 100 + 20);
}

static void
model_submit(struct model *m, bool waits)
{
	evc_reactor *r = atomic_load(&m->lane->r);
	evc_status st;

	MUST(atomic_exchange(&m->open_, 1) == 0);
	st = waits ? evc_pool_submit_wait(pool, r, &m->t.job, 0.01) :
		     evc_pool_submit(pool, r, &m->t.job);
	if (st == 0) {
		atomic_fetch_add(&world->n_accepted, 1);
		return;
	}
	MUST(st == -EVC_CANCELLED || st == -EVC_RESOURCE_EXHAUSTED ||
	     st == -EVC_DEADLINE_EXCEEDED);
	atomic_store(&m->open_, 0);
	atomic_fetch_add(&world->n_refused, 1);
}

static void
model_done(evc_job *job, evc_status result)
{
	struct model *m = (struct model *)job;
	int begun = m->n_begun;

	MUST(own_tid() == atomic_load(&m->lane->tid));
	MUST(atomic_load(&m->in_work) == 0);
	MUST(result == EVC_CANCELLED || result == EVC_ABORTED ||
	     result == begun % 100 + 20);
	m->n_completed++;
	atomic_fetch_add(&world->n_completed, 1);
	if (result == EVC_CANCELLED)
		atomic_fetch_add(&world->n_cancelled, 1);
	MUST(atomic_exchange(&m->open_, 0) == 1);
	if (m->t.arg == NULL && draw(&m->seed, 2) == 0 &&
	    !atomic_load(&world->stop))
		model_submit(m, false);
}

static void
on_tick(struct ev_loop *l, ev_timer *w, int revents)
{
	struct lane *lane = w->data;
	static __thread unsigned seed = 1;
	struct model *m;
	int i;

	(void)revents;
	if (atomic_load(&world->stop)) {
		ev_timer_stop(l, w);
		return;
	}
	for (i = 0; i < 60; i++) {
		m = &lane->m[draw(&seed, JOBS)];
		if (!atomic_load(&m->open_))
			model_submit(m, false);
		else if (draw(&seed, 3) == 0)
			(void)evc_job_cancel(&m->t.job);
	}
}

static ev_timer ticks[LOOPS];

static evc_status
lane_setup(evc_reactor *r, void *arg)
{
	struct lane *lane = arg;
	ev_timer *w = &ticks[lane - world->lane];

	atomic_store(&lane->tid, own_tid());
	ev_timer_init(w, on_tick, 0.0002, 0.0002);
	w->data = lane;
	ev_timer_start(evc_reactor_loop(r), w);
	atomic_store(&lane->r, r);
	return 0;
}

static void *
far_main(void *arg)
{
	int k = *(int *)arg;
	unsigned seed = (unsigned)k + 7;
	struct model *m;

	while (!atomic_load(&world->stop)) {
		m = &world->lane[draw(&seed, LOOPS)]
			     .far[k][draw(&seed, FAR_JOBS)];
		if (!atomic_load(&m->open_))
			model_submit(m, draw(&seed, 2));
		if (draw(&seed, 10) == 0)
			t_sleep(0.0003);
	}
	return NULL;
}

static void
model_init(struct model *m, struct lane *lane, unsigned seed, bool far)
{
	thing_init(&m->t, model_work);
	m->t.job.done = model_done;
	m->t.arg = far ? m : NULL;
	m->lane = lane;
	m->seed = seed;
}

static void
world_init(void)
{
	unsigned seed = 1;
	struct lane *lane;
	int i, k, n;

	world = calloc(1, sizeof(*world));
	ck_assert_ptr_nonnull(world);
	for (i = 0; i < LOOPS; i++) {
		lane = &world->lane[i];
		for (n = 0; n < JOBS; n++)
			model_init(&lane->m[n], lane, seed++, false);
		for (k = 0; k < FAR; k++)
			for (n = 0; n < FAR_JOBS; n++)
				model_init(&lane->far[k][n], lane, seed++,
					   true);
		OK(evc_reactor_start(coord, "lane", lane_setup, lane, NULL,
				     NULL));
	}
}

static void
check_all(void)
{
	struct lane *lane;
	int i, k, n;

	ck_assert_msg(atomic_load(&world->wrong) == NULL, "not so: %s",
		      atomic_load(&world->wrong));
	ck_assert_int_eq(atomic_load(&world->n_accepted),
			 atomic_load(&world->n_completed));
	for (i = 0; i < LOOPS; i++) {
		lane = &world->lane[i];
		for (n = 0; n < JOBS; n++)
			ck_assert_int_eq(atomic_load(&lane->m[n].open_), 0);
		for (k = 0; k < FAR; k++)
			for (n = 0; n < FAR_JOBS; n++)
				ck_assert_int_eq(
					atomic_load(&lane->far[k][n].open_),
					0);
	}
}

static void
run_world(const evc_pool_opts *o, double seconds, bool stops)
{
	int number[FAR], i;
	struct t_crowd far;
	evc_pool_info info;
	unsigned seed = 99;
	double until;

	pool_begin(o);
	world_init();
	for (i = 0; i < FAR; i++)
		number[i] = i;
	crowd_begin(&far, FAR, far_main, number, sizeof(number[0]));
	/* On a loaded machine longer, until there is something to look at. */
	for (until = t_now() + seconds;
	     t_now() < until || (t_now() < until + T_LIMIT &&
				 atomic_load(&world->n_accepted) <= 100);) {
		t_sleep(0.003);
		OK(evc_pool_resize(pool, 1 + draw(&seed, 6)));
		info = pool_info();
		ck_assert_uint_le(info.n_idle, info.n_live);
		if (stops && draw(&seed, 20) == 0) {
			/* A round of the pool alone; clear is refused while a
			   thread of it lives. */
			OK(evc_request_stop(evc_pool_scope(pool), 0, "round"));
			ck_assert_int_ge(evc_join(evc_pool_scope(pool), NULL,
						  NULL),
					 0);
			UNTIL(evc_clear_stop(evc_pool_scope(pool)) == 0);
		}
	}
	atomic_store(&world->stop, 1);
	crowd_end(&far);
	OK(evc_request_stop(coord, 0, "enough"));
	OK(evc_join(coord, NULL, NULL));
	check_all();
	info = pool_info();
	ck_assert_uint_eq(info.n_live, 0);
	ck_assert_uint_eq(info.n_queued + info.n_running, 0);
	ck_assert_int_gt(atomic_load(&world->n_accepted), 100);
	pool_end();
	free(world);
}

static double
seconds(void)
{
	const char *s = getenv("EVC_STRESS_SECONDS");

	return (s != NULL ? atof(s) : 30) / 10;
}

START_TEST(each_job_has_one_completion_whatever_happens)
{
	evc_pool_opts o = { .n_threads = 3, .capacity = 128 };

	run_world(&o, seconds() / 3, true);
}
END_TEST

START_TEST(also_with_FINISH_and_threads_that_end)
{
	evc_pool_opts o = { .n_threads = 4,
			    .capacity = 64,
			    .idle = 0.0005,
			    .flags = EVC_POOL_FINISH };

	run_world(&o, seconds() / 3, true);
}
END_TEST

START_TEST(also_with_kicks_and_until_the_end_of_all)
{
	evc_pool_opts o = { .n_threads = 2, .thread_flags = EVC_KICK };

	run_world(&o, seconds() / 3, false);
}
END_TEST

API_MAIN("pool_many", each_job_has_one_completion_whatever_happens,
	 also_with_FINISH_and_threads_that_end,
	 also_with_kicks_and_until_the_end_of_all)
