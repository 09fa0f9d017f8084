/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool beside libuv's: jobs that are next to nothing, so that what is
 * left is the way to the thread and back.  Three loads:
 *
 *	pool-jobs-T    ten thousand submitted from one callback, the next ten
 *	               thousand when all are done, as a walk of a tree does
 *	pool-window-T  256 in flight, each completion submits the next one
 *	pool-trip      one in flight: how long it takes, on one cpu, and with
 *	               the loop and the thread each on a cpu of its own
 *
 * T threads at most and the loop share two cpus.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#define ROUNDS 11
#define TRIP_ROUNDS 21
#define TRIPS 500
#define GUARD 30. /* seconds after which a job must be lost */

static const struct bench_load burst = {
	.jobs = 200000, .width = 10000, .burst = 1,
};
static const struct bench_load window = { .jobs = 200000, .width = 256 };
static const struct bench_load trip = { .jobs = TRIPS, .width = 1, .each = 1 };

struct job {
	evc_job job; /* first: the pool hands it back */
	unsigned long ran;
	int pin_to;  /* the job that pins its thread */
};

struct ours {
	struct ev_loop *loop;
	ev_timer begin, guard;
	evc_coord *c;
	evc_reactor *r;
	evc_pool *pool;
	struct bench_load load;
	struct job *jobs;
	unsigned begun, ended, out;
	uint64_t t0;
	double *each;
};

static evc_status
work(evc_job *job)
{
	struct job *j = (struct job *)job;

	j->ran++;
	return 0;
}

static void
submit(struct ours *o, struct job *j)
{
	if (o->each)
		o->t0 = bench_now();
	o->begun++;
	o->out++;
	bench_must(evc_pool_submit(o->pool, o->r, &j->job),
		   "evc_pool_submit");
}

static void
submit_many(struct ours *o)
{
	unsigned i;

	for (i = 0; i < o->load.width && o->begun < o->load.jobs; i++)
		submit(o, &o->jobs[i]);
}

static void
done(evc_job *job, evc_status result)
{
	struct job *j = (struct job *)job;
	struct ours *o = job->arg;

	bench_must(-result, "work");
	if (o->each)
		o->each[o->ended] = (double)(bench_now() - o->t0);
	o->ended++;
	o->out--;
	if (o->ended == o->load.jobs)
		ev_break(o->loop, EVBREAK_ALL);
	else if (!o->load.burst && o->begun < o->load.jobs)
		submit(o, j);
	else if (o->load.burst && o->out == 0)
		submit_many(o);
}

static void
begin(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	submit_many(w->data);
}

static void
guard(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
	bench_must(-EVC_INTERNAL, "a job was lost");
}

/* Run the loop until the load is done, or until the job that was submitted
   already is; seconds. */
static double
turn(struct ours *o, bool from_here)
{
	uint64_t t0;

	ev_now_update(o->loop);
	ev_timer_init(&o->guard, guard, GUARD, 0);
	ev_timer_start(o->loop, &o->guard);
	ev_timer_init(&o->begin, begin, 0, 0);
	o->begin.data = o;
	if (from_here)
		ev_timer_start(o->loop, &o->begin);
	t0 = bench_now();
	ev_run(o->loop, 0);
	t0 = bench_now() - t0;
	ev_timer_stop(o->loop, &o->guard);
	return (double)t0 / 1e9;
}

static struct bench_went
work_load(struct ours *o, const struct bench_load *load, bool counted,
	  double *each)
{
	struct bench_went went = { .syscalls = -1 };
	unsigned long ran = 0;
	unsigned i;

	o->load = *load;
	o->each = each;
	o->begun = o->ended = o->out = 0;
	o->jobs = bench_array(load->width, sizeof(*o->jobs));
	for (i = 0; i < load->width; i++) {
		o->jobs[i].job.work = work;
		o->jobs[i].job.done = done;
		o->jobs[i].job.arg = o;
	}
	if (counted)
		went.syscalls = -(double)bench_syscalls();
	went.seconds = turn(o, true);
	if (counted)
		went.syscalls += (double)bench_syscalls();
	for (i = 0; i < load->width; i++)
		ran += o->jobs[i].ran;
	if (ran != load->jobs)
		bench_must(-EVC_INTERNAL, "jobs that did not run once each");
	free(o->jobs);
	return went;
}

static evc_status
pin(evc_job *job)
{
	struct job *j = (struct job *)job;

	bench_pin(j->pin_to, j->pin_to);
	return 0;
}

static void
pinned(evc_job *job, evc_status result)
{
	struct ours *o = job->arg;

	bench_must(-result, "pin");
	ev_break(o->loop, EVBREAK_ALL);
}

static void
make_ours(struct ours *o, const struct bench_make *make)
{
	evc_pool_opts opts = { .n_threads = make->n_threads };
	struct job j = {
		.job = { .work = pin, .done = pinned, .arg = o },
		.pin_to = make->work_cpu,
	};

	o->loop = ev_loop_new(EVFLAG_AUTO);
	if (!o->loop)
		bench_must(-EVC_RESOURCE_EXHAUSTED, "ev_loop_new");
	if (make->loop_cpu >= 0)
		bench_pin(make->loop_cpu, make->loop_cpu);
	bench_must(evc_new(o->loop, NULL, &o->c), "evc_new");
	o->r = evc_home(o->c);
	bench_must(evc_pool_new(o->c, "bench", &opts, &o->pool),
		   "evc_pool_new");
	if (make->work_cpu < 0)
		return;
	bench_must(evc_pool_submit(o->pool, o->r, &j.job), "evc_pool_submit");
	(void)turn(o, false);
}

static void
end_ours(struct ours *o)
{
	bench_must(evc_pool_free(o->pool), "evc_pool_free");
	bench_must(evc_free(o->c), "evc_free");
	ev_loop_destroy(o->loop);
}

/* Million jobs a second. */
static double
rate(const struct bench_load *load, struct bench_went went)
{
	return (double)load->jobs / went.seconds / 1e6;
}

struct sides {
	struct ours ours;
	struct bench_peer peer;
	const struct bench_load *load;
};

static double
sample_ours(void *arg)
{
	struct sides *s = arg;

	return rate(s->load, work_load(&s->ours, s->load, false, NULL));
}

static double
sample_peer(void *arg)
{
	struct sides *s = arg;

	return rate(s->load, bench_peer_work(&s->peer, s->load, NULL));
}

static void
rates(struct sides *s, const char *what, const struct bench_load *load,
      unsigned n_threads, double goal, bool with_peer)
{
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, s, 0 },
		{ "libuv", sample_peer, s, goal },
	};
	char metric[64];

	s->load = load;
	snprintf(metric, sizeof(metric), "pool-%s-%u", what, n_threads);
	bench_compare_rates(metric, "M/s", sides, with_peer ? 2 : 1, ROUNDS);
	if (!with_peer)
		bench_skip(metric, "no libuv to compare with");
}

/* System calls a job, of pools of their own: nothing is timed here. */
static void
syscalls(const char *metric, const struct bench_load *load,
	 struct bench_make make)
{
	double *each = bench_array(load->jobs, sizeof(*each));
	struct bench_peer peer;
	struct bench_went went;
	struct ours ours;

	make.counted = true;
	if (!bench_syscalls_open()) {
		bench_skip(metric, "the kernel does not let us count them");
		free(each);
		return;
	}
	make_ours(&ours, &make);
	(void)work_load(&ours, load, true, load->each ? each : NULL);
	went = work_load(&ours, load, true, load->each ? each : NULL);
	bench_count(metric, BENCH_OURS, went.syscalls / load->jobs, "a-job");
	end_ours(&ours);
	bench_syscalls_close();
	if (bench_peer_start(&peer, &make)) {
		(void)bench_peer_work(&peer, load, each);
		went = bench_peer_work(&peer, load, each);
		bench_count(metric, "libuv", went.syscalls / load->jobs,
			    "a-job");
		bench_peer_end(&peer);
	}
	free(each);
}

void
bench_pool(void)
{
	static const unsigned sizes[] = { 1, 2, 4, 8 };
	struct bench_make make = { .loop_cpu = -1, .work_cpu = -1 };
	int cpu[2], n = bench_cpus(cpu);
	struct sides s;
	bool with_peer;
	size_t i;

	if (n < 2) {
		bench_skip("pool-jobs", "one cpu only");
		return;
	}
	bench_pin(cpu[0], cpu[1]);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		make.n_threads = sizes[i];
		with_peer = bench_peer_start(&s.peer, &make);
		make_ours(&s.ours, &make);
		rates(&s, "jobs", &burst, sizes[i], sizes[i] == 1 ? 1 : 3,
		      with_peer);
		/* For comparison: how often the loop sleeps is chance. */
		rates(&s, "window", &window, sizes[i], 0, with_peer);
		end_ours(&s.ours);
		if (with_peer)
			bench_peer_end(&s.peer);
	}
	make.n_threads = 2;
	syscalls("pool-jobs-2-syscalls", &burst, make);
	syscalls("pool-window-2-syscalls", &window, make);
}

static void
trips(const char *where, struct bench_make make, double goal)
{
	const unsigned n = TRIP_ROUNDS * TRIPS;
	double *ours = bench_array(n, sizeof(*ours));
	double *theirs = bench_array(n, sizeof(*theirs));
	struct bench_taken sides[] = {
		{ BENCH_OURS, ours, 0 },
		{ "libuv", theirs, goal },
	};
	struct sides s;
	unsigned r, k, n_sides;
	char metric[64];

	n_sides = bench_peer_start(&s.peer, &make) ? 2 : 1;
	make_ours(&s.ours, &make);
	/* The first ones pay for threads and pages. */
	(void)work_load(&s.ours, &trip, false, ours);
	if (n_sides == 2)
		(void)bench_peer_work(&s.peer, &trip, theirs);
	for (r = 0; r < TRIP_ROUNDS; r++) {
		if (n_sides == 2 && r % 2)
			(void)bench_peer_work(&s.peer, &trip,
					      theirs + r * TRIPS);
		(void)work_load(&s.ours, &trip, false, ours + r * TRIPS);
		if (n_sides == 2 && r % 2 == 0)
			(void)bench_peer_work(&s.peer, &trip,
					      theirs + r * TRIPS);
	}
	for (k = 0; k < n; k++) {
		ours[k] /= 1e3;
		theirs[k] /= 1e3;
	}
	snprintf(metric, sizeof(metric), "pool-trip-%s", where);
	bench_compare_taken(metric, "us", sides, n_sides, TRIP_ROUNDS, TRIPS,
			    BENCH_COST);
	if (n_sides < 2)
		bench_skip(metric, "no libuv to compare with");
	snprintf(metric, sizeof(metric), "pool-trip-%s-p99", where);
	sides[1].goal = 0;
	bench_compare_taken(metric, "us", sides, n_sides, TRIP_ROUNDS, TRIPS,
			    BENCH_TAIL);
	end_ours(&s.ours);
	if (n_sides == 2)
		bench_peer_end(&s.peer);
	snprintf(metric, sizeof(metric), "pool-trip-%s-syscalls", where);
	syscalls(metric, &trip, make);
	free(ours);
	free(theirs);
}

void
bench_pool_trip(void)
{
	int cpu[2], n = bench_cpus(cpu);
	struct bench_make make = {
		.n_threads = 1, .loop_cpu = cpu[0], .work_cpu = cpu[0],
	};

	trips("one-cpu", make, 0.6);
	if (n < 2) {
		bench_skip("pool-trip-two-cpus", "one cpu only");
		return;
	}
	make.work_cpu = cpu[1];
	trips("two-cpus", make, 0);
}
