/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the benchmarks share.
 *
 * Only ratios taken in one run mean anything, so every figure of the library
 * stands beside the bare thing that it cannot beat, measured in turns with
 * it.  The output is one line for each subject
 *
 *	metric subject n p50 p99 max unit
 *
 * and one for each goal
 *
 *	ratio METRIC OURS/LIMIT value goal G met|missed
 *	ratio METRIC OURS/PEER value goal >=G met|missed
 *	value METRIC FIGURE value unit goal G met|missed
 *
 * Of rates, where more is better, p99 is what 99 of 100 figures reach, and max
 * the worst of them.
 *
 * Nothing here fails because something is slow; a refused call, a hang or a
 * lost wake-up ends the group with a status that is not 0.
 */
#ifndef BENCH_H
#define BENCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <ev.h>
#include <evcoord.h>

#define BENCH_OURS "evcoord"

/* No group takes half of this; a group without an end by then hangs. */
#define BENCH_SECONDS 60

/* Loops of a nanosecond are measured in functions that begin a cache line:
   where the code happens to lie can make a third of the figure. */
#define BENCH_ALIGNED __attribute__((noinline, aligned(64)))

/* One side of a comparison. */
struct bench_side {
	const char *subject;          /* "evcoord" or "raw/bare-..." */
	double (*sample)(void *arg);  /* one figure, in the metric's unit */
	void *arg;
	double goal;                  /* ours over this one at most, of rates
					 at least; 0 = no goal */
};

/* The same when the figures are there already: sides that were measured at the
   same time, or several figures of one measurement. */
struct bench_taken {
	const char *subject;
	const double *figures; /* round by round */
	double goal;
};

/* What a figure is, and how the ratio of a round comes from its figures. */
enum bench_kind {
	BENCH_COST = 0,  /* less is better: the medians */
	BENCH_TAIL = 1,  /* less is better: the p99s */
	BENCH_RATE = 2   /* more is better: the medians */
};

/* What was measured of one side. */
struct bench_stats {
	unsigned n;
	double p50, p99, max;
};

/* bench.c: statistics and print-out */

/*
 * Sample all sides in turns: in each round per_round figures of every side,
 * the order turned round by round.  sides[0] is ours.  The ratio is the
 * median of the rounds' ratios of medians, so that a load which comes and
 * goes in the run meets both sides.  ret may be NULL: the figures of ours.
 */
void
bench_compare(const char *metric, const char *unit,
	      const struct bench_side *sides, unsigned n_sides,
	      unsigned rounds, unsigned per_round, struct bench_stats *ret);

/* The same for rates: so many a second. */
void
bench_compare_rates(const char *metric, const char *unit,
		    const struct bench_side *sides, unsigned n_sides,
		    unsigned rounds);

/* For figures already taken. */
void
bench_compare_taken(const char *metric, const char *unit,
		    const struct bench_taken *sides, unsigned n_sides,
		    unsigned rounds, unsigned per_round, enum bench_kind kind);

/* One figure that needs no statistics: a count. */
void
bench_count(const char *metric, const char *subject, double value,
	    const char *unit);

/* A goal for a figure by itself: at most goal. */
void
bench_goal(const char *metric, const char *figure, double value,
	   const char *unit, double goal);

/* A goal that must be undercut: less than goal. */
void
bench_goal_below(const char *metric, const char *figure, double value,
		 const char *unit, double goal);

/* Say that something is not measured, and why. */
void
bench_skip(const char *metric, const char *why);

/* End the program when a call of the library was refused. */
void
bench_must(evc_status status, const char *what);

/* End the program when a call of the system failed: err is its errno. */
void
bench_must_sys(int err, const char *what);

/* machine.c: clock, cpus, sleeping threads */

/* Monotonic nanoseconds. */
uint64_t
bench_now(void);

/* The cpus that the benchmarks use: [0] and [1], the same when the process
   may use one only.  Returns how many there are: 1 or 2. */
int
bench_cpus(int cpu[2]);

/* Keep the calling thread on one cpu, or on either of two. */
void
bench_pin(int cpu, int or_cpu);

/* The calling thread's kernel id. */
int
bench_tid(void);

/* Wait until a thread of this process sleeps in the kernel. */
void
bench_until_asleep(int tid);

/* A pidfd of a thread of this process, or -1 and errno. */
int
bench_pidfd(int tid);

/* Sleep while *word == value; may return early. */
void
bench_futex_wait(uint32_t *word, uint32_t value);

/* Wake up to n sleepers. */
void
bench_futex_wake(uint32_t *word, int n);

/* Sleep until *word is value, whoever changes it wakes. */
void
bench_wait_until(uint32_t *word, uint32_t value);

/* Start a thread with a stack of that many bytes (0 = the system's). */
pthread_t
bench_thread(void *(*fn)(void *), void *arg, size_t stack);

/* A large array, zeroed and in memory page by page; free() takes it. */
void *
bench_array(size_t n, size_t size);

/* Sleep. */
void
bench_sleep(double seconds);

/* How many entries a folder of /proc/self has: "fd", "task". */
unsigned
bench_proc_entries(const char *folder);

/* idle.c: how often all threads but the caller are woken, in two seconds that
   begin when they have gone to sleep */
double
bench_watch_wakeups(void);

/* loopthread.c: a thread that runs a loop */

struct bench_loop {
	struct ev_loop *loop;
	int cpu;
	int tid;
	pthread_t thread;
	ev_async job;
	void (*fn)(struct bench_loop *l, void *arg);
	void *arg;
	uint32_t ready; /* loop thread -> starter: it runs */
	uint32_t done;  /* loop thread -> bench_loop_do: fn has returned */
};

/* Start a thread on that cpu which runs a loop of its own. */
void
bench_loop_start(struct bench_loop *l, int cpu);

/* Run fn on the loop's thread, inside ev_run, and wait for its return. */
void
bench_loop_do(struct bench_loop *l,
	      void (*fn)(struct bench_loop *l, void *arg), void *arg);

/* End the loop and its thread. */
void
bench_loop_stop(struct bench_loop *l);

/* alloc.c: counted allocations */

/* Can allocations be counted in this build? */
bool
bench_alloc_counted(void);

/* How many there were in the process since the first call. */
uint64_t
bench_allocs(void);

/* Bytes the process has taken: from malloc, and by mapping memory. */
uint64_t
bench_heap_bytes(void);
uint64_t
bench_mapped_bytes(void);

/* syscalls.c: counted system calls */

/* Count those of this thread, and of the threads that it and they start from
   now on.  Until the close every system call of the machine takes a little
   longer, so nothing is timed meanwhile.  Returns: false when the kernel does
   not let us. */
bool
bench_syscalls_open(void);

/* How many there were since then. */
uint64_t
bench_syscalls(void);

/* Count no more. */
void
bench_syscalls_close(void);

/* peer.c: a peer that needs a process of its own */

struct bench_peer {
	pid_t pid;
	int ask, answer; /* pipes to and from it */
};

/* What a pool is to do: jobs of work that is next to nothing, through a loop
   that submits them and gets the completions. */
struct bench_load {
	uint32_t jobs;
	uint32_t width; /* so many at a time */
	uint32_t burst; /* 1: the next so many when all of these are done;
			   0: the next one whenever one is done */
	uint32_t each;  /* 1: say how long each took; then width is 1 */
};

/* How it went; after it, with each, jobs figures of nanoseconds. */
struct bench_went {
	double seconds;
	double syscalls; /* < 0: not counted */
};

/* What a pool is made of. */
struct bench_make {
	unsigned n_threads;
	int loop_cpu, work_cpu; /* the loop's and the only thread's; < 0:
				   wherever the caller may run */
	bool counted;           /* its system calls */
};

/* Start a pool of libuv.  Returns: false when this program was built without
   it. */
bool
bench_peer_start(struct bench_peer *p, const struct bench_make *make);

/* Let it work; each: room for load->jobs figures, or NULL. */
struct bench_went
bench_peer_work(struct bench_peer *p, const struct bench_load *load,
		double *each);

/* End it. */
void
bench_peer_end(struct bench_peer *p);

/* libuv.c: the other side of it: main of that process */
int
bench_libuv_main(int argc, char **argv);

/* The groups, each in its file; main.c runs each in a process of its own. */
void
bench_stop(void);
void
bench_request(void);
void
bench_wake(void);
void
bench_loop_told(void);
void
bench_tasks_told(void);
void
bench_task_cost(void);
void
bench_task_memory(void);
void
bench_join(void);
void
bench_stacks(void);
void
bench_notice(void);
void
bench_notice_polled(void);
void
bench_idle(void);
void
bench_looper(void);
void
bench_loopers(void);
void
bench_loopers_many(void);
void
bench_looper_drift(void);
void
bench_scope(void);
void
bench_scopes(void);
void
bench_trace(void);
void
bench_recv(void);
void
bench_checkpoint(void);
void
bench_queue(void);
void
bench_pool(void);
void
bench_pool_trip(void);
void
bench_post(void);
void
bench_hosted(void);
void
bench_workers(void);
void
bench_cluster_threads(void);
void
bench_cluster_processes(void);
void
bench_cluster_trip(void);
void
bench_cluster_queue(void);
void
bench_cluster_idle(void);
void
bench_cluster_large(void);
void
bench_redis_tasks(void);
void
bench_redis_trip(void);
void
bench_redis_curve(void);
void
bench_redis_naps(void);
void
bench_redis_death(void);
void
bench_redis_adds(void);
void
bench_redis_far(void);
void
bench_cluster_one_by_one(void);
void
bench_redis_one_by_one(void);
void
bench_redis_idle(void);
void
bench_redis_large(void);
void
bench_redis_nodes(void);
void
bench_redis_checkpoint(void);

#endif
