/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * phases - a log that outlives the requests that write to it.
 *
 *	phases [--stuck]
 *
 * Four parts of a program stop one after the other.  Each is a scope with a
 * phase, and is told to stop when what stands before it has ended:
 *
 *   0 listener    hands requests over until it is told
 *   1 requests    three threads, each in the middle of its work
 *   2 database    what requests need until they have ended
 *   3 log         what everybody needs
 *
 * No part looks whether the others are done: a request that is told still has
 * its database, and its last line is still written.
 *
 * All phases have one budget, the grace of the join; one of them may have a
 * limit of its own inside it.  With --stuck a request never ends.  It holds up
 * the others for the limit of its phase, and then is late; the exit status is
 * 124.
 *
 * main has no loop here; with one, and evc_run, it would be the same.
 */
#include <evcoord.h>

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_REQUESTS 3
#define LIMIT 1.0 /* seconds, for the requests, with --stuck */
#define GRACE 3.0 /* seconds, for all, with --stuck */

enum part { LISTENER, REQUESTS, DATABASE, LOG, N_PARTS };

static const char *const names[] = { "listener", "requests", "database",
				     "log" };
static evc_coord *part[N_PARTS];
static bool stuck;

/* ---- the log: lines are collected, and written ten times a second ---- */

static struct {
	pthread_mutex_t lock;
	char text[4096];
	size_t len;
	unsigned lines;
	bool closed;
} journal = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void __attribute__((format(printf, 1, 2)))
say(const char *fmt, ...)
{
	size_t room;
	va_list ap;
	int n;

	pthread_mutex_lock(&journal.lock);
	room = sizeof(journal.text) - journal.len;
	va_start(ap, fmt);
	n = vsnprintf(journal.text + journal.len, room, fmt, ap);
	va_end(ap);
	/* What comes too late, or finds no room, is lost. */
	if (n > 0 && (size_t)n < room && !journal.closed) {
		journal.len += (size_t)n;
		journal.lines++;
	}
	pthread_mutex_unlock(&journal.lock);
}

/* A looper's run; EVC_FLUSH gives it a last one at its stop. */
static evc_status
write_out(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	pthread_mutex_lock(&journal.lock);
	fwrite(journal.text, 1, journal.len, stdout);
	fflush(stdout);
	journal.len = 0;
	pthread_mutex_unlock(&journal.lock);
	return 0;
}

static evc_status
close_log(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	pthread_mutex_lock(&journal.lock);
	journal.closed = true;
	printf("log: closed after %u lines\n", journal.lines);
	fflush(stdout);
	pthread_mutex_unlock(&journal.lock);
	return 0;
}

/* ---- the others ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int requests_left = N_REQUESTS; /* guarded by lock */

static evc_status
request(evc_coord *c, void *arg)
{
	const char *name = arg;
	int left;

	/* The work: for this example it lasts until the stop has come to it. */
	evc_wait_for_stop(c, INFINITY);
	while (stuck && strcmp(name, "request-3") == 0)
		pause();
	pthread_mutex_lock(&lock);
	left = --requests_left;
	say("requests: one is answered, %d left\n", left);
	pthread_mutex_unlock(&lock);
	return 0;
}

static evc_status
listen_for_requests(evc_coord *c, void *arg)
{
	static char name[N_REQUESTS][24];
	int i;

	(void)arg;
	/* Even if the stop has come to us: it has not come to them. */
	for (i = 0; i < N_REQUESTS; i++) {
		snprintf(name[i], sizeof(name[i]), "request-%d", i + 1);
		evc_thread_start(part[REQUESTS], name[i], request, name[i],
				 NULL, NULL);
	}
	say("listener: %d requests are under way\n", i);
	evc_wait_for_stop(c, INFINITY);
	say("listener: closed\n");
	return 0;
}

static evc_status
serve_database(evc_coord *c, void *arg)
{
	(void)arg;
	evc_wait_for_stop(c, INFINITY);
	pthread_mutex_lock(&lock);
	say("database: closed, %d requests need it still\n", requests_left);
	pthread_mutex_unlock(&lock);
	return 0;
}

/* ---- all of it ---- */

static bool
make_parts(evc_coord *c)
{
	int i;

	for (i = 0; i < N_PARTS; i++) {
		evc_scope_opts opts = { .config.flags = EVC_STRICT_SETUP,
					.phase = i };

		if (stuck && i == REQUESTS)
			opts.config.grace = LIMIT;
		if (evc_scope_new(c, names[i], &opts, &part[i]) < 0)
			return false;
	}
	return true;
}

static void
start(void)
{
	static const evc_member_opts log_opts = {
		.flags = EVC_OWN_THREAD | EVC_FLUSH,
		.stop = close_log,
	};
	int i;

	/* Strict scopes: a refused start stops all, and is the verdict. */
	evc_looper_start(part[LOG], "log", 0.1, write_out, NULL, &log_opts,
			 NULL);
	evc_thread_start(part[DATABASE], "database", serve_database, NULL,
			 NULL, NULL);
	evc_thread_start(part[LISTENER], "listener", listen_for_requests, NULL,
			 NULL, NULL);
	for (i = 0; i < N_PARTS; i++)
		evc_scope_ready(part[i]);
}

/* How the stop went: each part is a coordinator, with a verdict of its own. */
static void
tell(const evc_verdict *whole)
{
	evc_verdict v;
	int i;

	for (i = 0; i < N_PARTS; i++) {
		if (evc_join(part[i], NULL, &v) < 0)
			continue;
		printf("phase %d, %s: told after %.3f s, %u ended, %u late\n",
		       i, names[i],
		       (double)(v.stop.mono_ns - whole->stop.mono_ns) / 1e9,
		       v.n_ended, v.n_stragglers);
	}
	printf("verdict %s, %u late", evc_status_name(whole->code),
	       whole->n_stragglers);
	printf("%s%s\n", whole->code ? ": " : "", whole->error.text);
}

int
main(int argc, char **argv)
{
	/* The join is there first, then asks for the stop: a stop that meets
	   no join would tell all phases at once. */
	evc_join_opts how = { .flags = EVC_JOIN_STOP_FIRST };
	evc_config cfg = { .name = "phases" };
	evc_verdict v;
	evc_coord *c;
	evc_status st;
	bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
	int i, status;

	stuck = argc == 2 && strcmp(argv[1], "--stuck") == 0;
	if (argc > 1 && !stuck) {
		fputs("usage: phases [--stuck]\n", help ? stdout : stderr);
		return help ? 0 : 2;
	}
	if (stuck)
		cfg.grace = GRACE;
	if (evc_new(NULL, &cfg, &c) < 0 || !make_parts(c)) {
		fprintf(stderr, "phases: %s\n", evc_last_error());
		return EXIT_FAILURE;
	}
	start();
	st = evc_join(c, &how, &v);
	if (st < 0) {
		/* Refused: nobody was waited for, so they still run. */
		fprintf(stderr, "phases: %s\n", evc_last_error());
		_exit(EXIT_FAILURE);
	}

	tell(&v);
	for (i = 0; i < N_PARTS; i++)
		evc_free(part[i]);
	status = evc_finish(c, st);
	if (v.n_stragglers) {
		/* Somebody still runs: no return from main under it. */
		fflush(stdout);
		_exit(status);
	}
	return status;
}
