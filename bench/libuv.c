/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer of the pool: the same jobs by uv_queue_work, in a process of its
 * own (see peer.c).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"

#ifdef HAVE_LIBUV
#include <uv.h>

struct job {
	uv_work_t req; /* first: libuv hands it back */
	unsigned long ran;
	int pin_to;    /* the job that pins its thread */
};

static struct run {
	uv_loop_t *loop;
	struct bench_load load;
	struct job *jobs;
	unsigned begun, ended, out;
	uint64_t t0;
	double *each;
} run;

static void
after(uv_work_t *req, int status);

static void
work(uv_work_t *req)
{
	struct job *j = (struct job *)req;

	j->ran++;
}

static void
submit(struct job *j)
{
	if (run.each)
		run.t0 = bench_now();
	run.begun++;
	run.out++;
	if (uv_queue_work(run.loop, &j->req, work, after) != 0)
		bench_must_sys(EINVAL, "uv_queue_work");
}

static void
submit_many(void)
{
	unsigned i;

	for (i = 0; i < run.load.width && run.begun < run.load.jobs; i++)
		submit(&run.jobs[i]);
}

static void
after(uv_work_t *req, int status)
{
	if (status != 0)
		bench_must_sys(-status, "work");
	if (run.each)
		run.each[run.ended] = (double)(bench_now() - run.t0);
	run.ended++;
	run.out--;
	if (!run.load.burst) {
		if (run.begun < run.load.jobs)
			submit((struct job *)req);
	} else if (run.out == 0) {
		submit_many();
	}
}

static void
begin(uv_timer_t *timer)
{
	uv_close((uv_handle_t *)timer, NULL);
	submit_many();
}

static double
work_load(void)
{
	uv_timer_t timer;
	uint64_t t0;

	run.begun = run.ended = run.out = 0;
	if (uv_timer_init(run.loop, &timer) != 0 ||
	    uv_timer_start(&timer, begin, 0, 0) != 0)
		bench_must_sys(EINVAL, "uv_timer_start");
	t0 = bench_now();
	uv_run(run.loop, UV_RUN_DEFAULT);
	t0 = bench_now() - t0;
	if (run.ended != run.load.jobs)
		bench_must_sys(EIO, "a job was lost");
	return (double)t0 / 1e9;
}

static void
pin(uv_work_t *req)
{
	struct job *j = (struct job *)req;

	bench_pin(j->pin_to, j->pin_to);
}

static void
pin_threads(int loop_cpu, int work_cpu)
{
	struct job j = { .pin_to = work_cpu };

	if (loop_cpu >= 0)
		bench_pin(loop_cpu, loop_cpu);
	if (work_cpu < 0)
		return;
	if (uv_queue_work(run.loop, &j.req, pin, NULL) != 0)
		bench_must_sys(EINVAL, "uv_queue_work");
	uv_run(run.loop, UV_RUN_DEFAULT);
}

static bool
read_load(void)
{
	ssize_t got = read(0, &run.load, sizeof(run.load));

	if (got != 0 && got != (ssize_t)sizeof(run.load))
		bench_must_sys(EIO, "read of the load");
	return got != 0;
}

static void
write_all(const void *data, size_t n)
{
	const char *at = data;
	ssize_t put;

	while (n > 0) {
		put = write(1, at, n);
		if (put <= 0)
			bench_must_sys(EIO, "write of the figures");
		at += put;
		n -= (size_t)put;
	}
}

int
bench_libuv_main(int argc, char **argv)
{
	struct bench_went went;
	bool counted;

	if (argc != 4)
		return 2;
	if (setenv("UV_THREADPOOL_SIZE", argv[0], 1) != 0)
		bench_must_sys(errno, "setenv");
	counted = atoi(argv[3]) && bench_syscalls_open();
	run.loop = uv_default_loop();
	pin_threads(atoi(argv[1]), atoi(argv[2]));
	while (read_load()) {
		run.jobs = bench_array(run.load.width, sizeof(*run.jobs));
		run.each = NULL;
		if (run.load.each)
			run.each = bench_array(run.load.jobs,
					       sizeof(*run.each));
		went.syscalls = counted ? -(double)bench_syscalls() : -1;
		went.seconds = work_load();
		if (counted)
			went.syscalls += (double)bench_syscalls();
		write_all(&went, sizeof(went));
		if (run.each)
			write_all(run.each, run.load.jobs * sizeof(double));
		free(run.each);
		free(run.jobs);
	}
	return 0;
}
#else
int
bench_libuv_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fprintf(stderr, "bench: built without libuv\n");
	return 2;
}
#endif
