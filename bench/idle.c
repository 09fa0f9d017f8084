/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Idle costs nothing: how often the threads of a program are woken while
 * nothing happens.  Counted by the kernel, as the voluntary switches of all
 * threads but the one that counts; each wake-up that goes back to sleep is
 * one.  No time is taken, so a loaded machine changes nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define WATCHED_SECONDS 2.0
#define STACK (64 * 1024)
#define MEMBERS 4
#define LOOPERS 1000

/* Wake-ups so far of all threads but the caller. */
static uint64_t
wakeups(void)
{
	DIR *d = opendir("/proc/self/task");
	uint64_t sum = 0;
	char path[300], line[200];
	struct dirent *e;
	FILE *f;

	if (!d)
		bench_must_sys(errno, "/proc/self/task");
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.' || atoi(e->d_name) == bench_tid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status",
			 e->d_name);
		f = fopen(path, "r");
		if (!f)
			bench_must_sys(errno, path);
		while (fgets(line, sizeof(line), f)) {
			if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
				sum += strtoull(line + 24, NULL, 10);
		}
		fclose(f);
	}
	closedir(d);
	return sum;
}

/* Count for a while, once all have gone to sleep. */
double
bench_watch_wakeups(void)
{
	uint64_t before;

	bench_sleep(0.3);
	before = wakeups();
	bench_sleep(WATCHED_SECONDS);
	return (double)(wakeups() - before);
}

static void
show(const char *metric, double woken)
{
	bench_count(metric, BENCH_OURS, woken, "wake-ups");
	bench_goal(metric, "count", woken, "wake-ups", 0);
}

static evc_status
member(evc_coord *c, void *arg)
{
	(void)arg;
	(void)evc_wait_for_stop(c, INFINITY);
	return 0;
}

static void *
stranger(void *arg)
{
	(void)evc_wait_for_stop(arg, INFINITY);
	return NULL;
}

static void *
joiner(void *arg)
{
	bench_must(evc_join(arg, NULL, NULL), "evc_join");
	return NULL;
}

static void *
runner(void *arg)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord **ret = arg, *c;

	bench_must(evc_new(loop, NULL, &c), "evc_new");
	bench_must(evc_thread_start(c, "bench", member, NULL, NULL, NULL),
		   "evc_thread_start");
	__atomic_store_n(ret, c, __ATOMIC_RELEASE);
	bench_must(evc_run(c, NULL, NULL), "evc_run");
	bench_must(evc_free(c), "evc_free");
	ev_loop_destroy(loop);
	return NULL;
}

static evc_status
looper(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	return 0;
}

/* Runs a loop with loopers of which none is due: the interval is long, has no
   end, or they are paused; on the loop and on threads of their own. */
static void *
looping(void *arg)
{
	static const unsigned flags[] = { 0, EVC_PAUSED, EVC_OWN_THREAD,
					  EVC_OWN_THREAD | EVC_PAUSED };
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord **ret = arg, *c;
	unsigned i, k;

	bench_must(evc_new(loop, NULL, &c), "evc_new");
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		evc_member_opts o = { .flags = flags[i] };
		unsigned n = flags[i] & EVC_OWN_THREAD ? MEMBERS : LOOPERS;

		for (k = 0; k < n; k++)
			bench_must(evc_looper_start(c, "bench",
						    k % 2 ? 3600 : INFINITY,
						    looper, NULL, &o, NULL),
				   "evc_looper_start");
	}
	__atomic_store_n(ret, c, __ATOMIC_RELEASE);
	bench_must(evc_run(c, NULL, NULL), "evc_run");
	bench_must(evc_free(c), "evc_free");
	ev_loop_destroy(loop);
	return NULL;
}

static void *
bare_member(void *arg)
{
	bench_wait_until(arg, 1);
	return NULL;
}

static void *
bare_joiner(void *arg)
{
	pthread_t t = bench_thread(bare_member, arg, STACK);

	bench_must_sys(pthread_join(t, NULL), "pthread_join");
	return NULL;
}

static void
watch_bare(void)
{
	uint32_t over = 0;
	pthread_t t = bench_thread(bare_joiner, &over, STACK);

	bench_count("idle-join", "raw/bare-pthread_join", bench_watch_wakeups(),
		    "wake-ups");
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&over, 1);
	bench_must_sys(pthread_join(t, NULL), "pthread_join");
}

static void
watch_started(void)
{
	evc_coord *c;
	pthread_t t;
	int i;

	bench_must(evc_new(NULL, NULL, &c), "evc_new");
	for (i = 0; i < MEMBERS; i++)
		bench_must(evc_thread_start(c, "bench", member, NULL, NULL,
					    NULL), "evc_thread_start");
	t = bench_thread(joiner, c, STACK);
	show("idle-join-started", bench_watch_wakeups());
	(void)evc_request_stop(c, 0, "over");
	bench_must_sys(pthread_join(t, NULL), "pthread_join");
	bench_must(evc_free(c), "evc_free");
}

static void
watch_registered(void)
{
	int i, fd = bench_pidfd(bench_tid());
	evc_coord *c;
	pthread_t t;

	if (fd < 0) {
		/* Then their ends are looked for, again and again. */
		bench_skip("idle-join-registered", "no pidfd of a thread");
		return;
	}
	close(fd);
	bench_must(evc_new(NULL, NULL, &c), "evc_new");
	for (i = 0; i < MEMBERS; i++)
		bench_must(evc_register_thread(c, "bench",
					       bench_thread(stranger, c,
							    STACK),
					       NULL, NULL),
			   "evc_register_thread");
	t = bench_thread(joiner, c, STACK);
	show("idle-join-registered", bench_watch_wakeups());
	(void)evc_request_stop(c, 0, "over");
	bench_must_sys(pthread_join(t, NULL), "pthread_join");
	bench_must(evc_free(c), "evc_free");
}

static void
watch_run(const char *metric, void *(*fn)(void *arg))
{
	evc_coord *c = NULL;
	pthread_t t = bench_thread(fn, &c, 0);

	show(metric, bench_watch_wakeups());
	(void)evc_request_stop(__atomic_load_n(&c, __ATOMIC_ACQUIRE), 0,
			       "over");
	bench_must_sys(pthread_join(t, NULL), "pthread_join");
}

void
bench_idle(void)
{
	watch_bare();
	watch_started();
	watch_registered();
	watch_run("idle-run", runner);
	watch_run("idle-loopers", looping);
}
