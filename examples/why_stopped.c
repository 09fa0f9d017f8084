/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * why_stopped - who asked for this stop, why, and where?
 *
 *	why_stopped [error] [queue] [block] [set-up]
 *
 * A program whose threads all poll one flag ends for reasons that nobody can
 * see afterwards.  Here are four of them, each with what evc_explain says:
 *
 *   error    a thread fails
 *   queue    what the threads use is closed.  By itself this stops nothing;
 *            the explanation shows who did
 *   block    a guarded block that started threads is left.  This stops
 *            nothing either, unless it is asked for (EVC_END_STOPS); and
 *            threads that nobody registered are nobody's to wait for
 *   set-up   main fails before it starts the thread that needs the file
 *
 * Without arguments it shows all four.  The exit status is 0 when each ended
 * as told here.
 */
#include <evcoord.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_THREADS 3
#define MISSING "/nonexistent/input.txt"

/* Wrong use of the library or no memory: this example gives up. */
static void
check(evc_status st, const char *what)
{
	if (st >= 0)
		return;
	fprintf(stderr, "why_stopped: %s: %s\n", what, evc_last_error());
	fflush(stdout);
	_exit(EXIT_FAILURE); /* threads may run */
}

/* A coordinator with a name, for there may be several in a program. */
static evc_coord *
begin(const char *name, const char *title)
{
	evc_config cfg = { .name = name };
	evc_coord *c;

	printf("== %s: %s\n", name, title);
	check(evc_new(NULL, &cfg, &c), "new");
	return c;
}

static void
explain(const evc_coord *c)
{
	char why[2048];

	evc_explain(c, why, sizeof(why));
	printf("stop requested: %s\n%s\n", evc_should_stop(c) ? "yes" : "no",
	       why);
}

/* Wait for the members, explain, and free: was the verdict the wanted one? */
static bool
end(evc_coord *c, evc_status want)
{
	evc_verdict v;
	evc_status st = evc_join(c, NULL, &v);

	check(st, "join");
	explain(c);
	printf("verdict %s, %u ended, %u late\n\n", evc_status_name(st),
	       v.n_ended, v.n_stragglers);
	evc_finish(c, st);
	if (v.n_stragglers) {
		fflush(stdout);
		_exit(EXIT_FAILURE);
	}
	return st == want;
}

/* A worker with nothing wrong about it. */
static evc_status
work(evc_coord *c, void *arg)
{
	(void)arg;
	evc_wait_for_stop(c, INFINITY);
	return 0;
}

/*
 * error: the reason holds the thread, the code, errno, the text and the line.
 */
static evc_status
read_input(evc_coord *c, void *arg)
{
	const char *path = arg;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return evc_fail(c, EVC_NOT_FOUND, errno, "cannot open %s",
				path);
	close(fd);
	return 0;
}

static bool
show_error(void)
{
	evc_coord *c = begin("error", "a thread fails");

	check(evc_thread_start(c, "worker-1", work, NULL, NULL, NULL),
	      "start");
	check(evc_thread_start(c, "worker-2", read_input, MISSING, NULL,
			       NULL), "start");
	evc_wait_for_stop(c, INFINITY); /* main works until it is told */
	return end(c, EVC_NOT_FOUND);
}

/*
 * queue: the worker finds it closed, and it is the worker who decides what
 * this means.  Had it returned 0 instead, nothing would have stopped.
 */
struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool closed;
};

static evc_status
take_from_queue(evc_coord *c, void *arg)
{
	struct queue *q = arg;

	pthread_mutex_lock(&q->lock);
	while (!q->closed)
		pthread_cond_wait(&q->changed, &q->lock);
	pthread_mutex_unlock(&q->lock);
	return evc_fail(c, EVC_UNAVAILABLE, 0, "the queue was closed");
}

static bool
show_queue(void)
{
	struct queue q = { PTHREAD_MUTEX_INITIALIZER,
			   PTHREAD_COND_INITIALIZER, false };
	evc_coord *c = begin("queue", "what the threads use is closed");

	check(evc_thread_start(c, "consumer", take_from_queue, &q, NULL,
			       NULL), "start");
	pthread_mutex_lock(&q.lock);
	q.closed = true;
	pthread_cond_broadcast(&q.changed);
	printf("the queue is closed; nobody could look at it yet\n");
	explain(c);
	pthread_mutex_unlock(&q.lock);
	return end(c, EVC_UNAVAILABLE);
}

/*
 * block: these threads are plain ones.  They poll the flag like everybody, but
 * they were never registered, so no join knows them.
 */
struct scope {
	evc_coord *c;
	pthread_t threads[N_THREADS];
	unsigned n_threads;
	pthread_mutex_t door; /* locked until they may leave */
};

static void *
work_unknown(void *arg)
{
	struct scope *s = arg;

	evc_wait_for_stop(s->c, INFINITY);
	pthread_mutex_lock(&s->door);
	pthread_mutex_unlock(&s->door);
	return NULL;
}

static evc_status
limited_scope(evc_coord *c, void *arg)
{
	struct scope *s = arg;

	while (s->n_threads < N_THREADS) {
		int err = pthread_create(&s->threads[s->n_threads], NULL,
					 work_unknown, s);

		if (err)
			return evc_fail(c, EVC_RESOURCE_EXHAUSTED, err,
					"thread %u", s->n_threads);
		s->n_threads++;
	}
	return 0;
}

static bool
show_block(void)
{
	static const evc_member_opts end_stops = { .flags = EVC_END_STOPS };
	evc_coord *c = begin("block", "a guarded block is left normally");
	struct scope s = { .c = c, .door = PTHREAD_MUTEX_INITIALIZER };
	evc_verdict v;
	unsigned i;

	pthread_mutex_lock(&s.door);
	check(evc_guard(c, "limited scope", limited_scope, &s, NULL), "guard");
	printf("the block was left\n");
	explain(c);

	check(evc_guard(c, "limited scope", limited_scope, &s, &end_stops),
	      "guard");
	printf("the block was left, with EVC_END_STOPS\n");
	explain(c);

	check(evc_join(c, NULL, &v), "join");
	printf("joined: %u ended, %u late; yet %u threads run, "
	       "which nobody registered\n", v.n_ended, v.n_stragglers,
	       s.n_threads);

	/* They use c, so they have to go before it does.  Better: have the
	   coordinator start them, register them, or name them in the join. */
	pthread_mutex_unlock(&s.door);
	for (i = 0; i < s.n_threads; i++)
		pthread_join(s.threads[i], NULL);
	return end(c, 0) && v.n_ended == 0;
}

/*
 * set-up: main itself fails, between two starts.  It reports that like anybody
 * else, and what runs already is stopped.
 */
static bool
show_set_up(void)
{
	evc_coord *c = begin("set-up",
			     "main fails before a thread is started");
	int fd;

	check(evc_thread_start(c, "worker-1", work, NULL, NULL, NULL),
	      "start");
	fd = open(MISSING, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		evc_fail(c, EVC_NOT_FOUND, errno, "cannot open %s", MISSING);
	} else {
		/* Here its thread would be started. */
		close(fd);
	}
	return end(c, EVC_NOT_FOUND);
}

static const struct {
	const char *name;
	bool (*show)(void);
} cases[] = {
	{ "error", show_error },
	{ "queue", show_queue },
	{ "block", show_block },
	{ "set-up", show_set_up }
};

#define N_CASES (sizeof(cases) / sizeof(cases[0]))

static bool
is_case(const char *name)
{
	size_t i;

	for (i = 0; i < N_CASES; i++)
		if (strcmp(cases[i].name, name) == 0)
			return true;
	return false;
}

static bool
is_wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc <= 1;
}

int
main(int argc, char **argv)
{
	bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
	bool as_told = true;
	size_t i;
	int arg;

	for (arg = 1; arg < argc; arg++) {
		if (is_case(argv[arg]))
			continue;
		fputs("usage: why_stopped [error] [queue] [block] [set-up]\n",
		      help ? stdout : stderr);
		return help ? 0 : 2;
	}
	for (i = 0; i < N_CASES; i++)
		if (is_wanted(cases[i].name, argc, argv) && !cases[i].show())
			as_told = false;
	return as_told ? EXIT_SUCCESS : EXIT_FAILURE;
}
