/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server - an HTTP/1.1 file server that stops without cutting a request.
 *
 *	server [-p PORT] [-l LOOPS] [-g GRACE] FOLDER
 *
 *	GET /NAME       the file NAME of FOLDER, sent by sendfile()
 *	GET /hash/NAME  its CRC-32, Adler-32 and size
 *
 * Several event loops, one in each thread, share a listening socket
 * (server_listen.c) and keep connections alive from request to request
 * (server_conn.c); one blocking thread hashes (server_worker.c).  One
 * coordinator stops them all: SIGINT or SIGTERM ends it well, a second one
 * cuts the grace.  SIGUSR1 prints the counts and what is alive.  Before the
 * stop a client may be as slow as it likes; after it, as slow as the grace.
 *
 * All that the stop needs stands between "stop:" and ":stop" marks, here and
 * in the other files.  The rest would be the same in a server that is killed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server_loop.h"

struct options {
	int port;                 /* 0: a free one */
	unsigned loops;
	double grace;             /* 0: the library's, 8 s after a signal */
	const char *folder;
};

static _Noreturn void
usage(void)
{
	fputs("usage: server [-p PORT] [-l LOOPS] [-g GRACE] FOLDER\n",
	      stderr);
	exit(2);
}

static _Noreturn void __attribute__((format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list ap;

	fputs("server: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static double
number(const char *text, double least, double most)
{
	char *end;
	double d = strtod(text, &end);

	if (*text == 0 || *end != 0 || !(d >= least && d <= most))
		usage();
	return d;
}

static struct options
parse(int argc, char **argv)
{
	struct options o = { .loops = 2 };
	int opt;

	while ((opt = getopt(argc, argv, "p:l:g:")) != -1) {
		switch (opt) {
		case 'p':
			o.port = (int)number(optarg, 0, 65535);
			break;
		case 'l':
			o.loops = (unsigned)number(optarg, 1, 64);
			break;
		case 'g':
			o.grace = number(optarg, 1e-9, INFINITY);
			break;
		default:
			usage();
		}
	}
	if (optind != argc - 1)
		usage();
	o.folder = argv[optind];
	return o;
}

static unsigned long
total(const struct server *s, enum count which)
{
	unsigned long sum = 0;

	for (unsigned i = 0; i < s->n_loops; i++)
		sum += atomic_load_explicit(&s->loops[i].counts[which],
					    memory_order_acquire);
	return sum;
}

/* Prints where the server stands; answers how many requests are open. */
static unsigned long
report(const struct server *s, const char *open_ones)
{
	/* In this order: a request is counted as begun before it is counted
	   as anything else. */
	unsigned long answered = total(s, ANSWERED);
	unsigned long aborted = total(s, ABORTED);
	unsigned long begun = total(s, BEGUN);
	unsigned long open = begun - answered - aborted;
	char why[2048];

	printf("server: requests: %lu begun, %lu answered, "
	       "%lu aborted by the client, %lu %s\n",
	       begun, answered, aborted, open, open_ones);
	printf("server: connections: %lu accepted, %lu closed idle, "
	       "%lu bytes discarded\n", total(s, CONNECTIONS),
	       total(s, IDLE_CLOSED), total(s, DISCARDED));
	/* stop: */
	evc_explain(s->coord, why, sizeof(why));
	/* :stop */
	printf("server: why: %s\n", why);
	fflush(stdout);
	return open;
}

static void
on_status(UNUSED struct ev_loop *ev, ev_signal *w, UNUSED int events)
{
	report(w->data, "under way");
}

/* The thread of one loop: it serves until the stop, and until its last
   connection has ended. */
static evc_status
loop_thread(evc_coord *c, void *arg)
{
	struct loop *loop = arg;
	evc_status st;

	/* stop: */
	st = evc_reactor_attach(c, loop->name, loop->ev, &loop->reactor);
	/* :stop */
	hashed_start(loop);
	listener_start(loop); /* without a reactor it is refused */
	/* stop: */
	if (st == 0)
		st = evc_reactor_run(loop->reactor);
	worker_ask(&loop->server->worker, &loop->goodbye);
	/* :stop */
	return st;
}

/* All that a server needs before its first thread.  Its port. */
static int
server_init(struct server *s, const struct options *o)
{
	int port;

	s->folder = open(o->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->folder < 0)
		die("%s: %s", o->folder, strerror(errno));
	s->listening = listening_socket(o->port, &port);
	if (s->listening < 0)
		die("port %d: %s", o->port, strerror(errno));
	s->n_loops = o->loops;
	s->loops = calloc(s->n_loops, sizeof(*s->loops));
	if (s->loops == NULL)
		die("%s", strerror(errno));
	worker_init(&s->worker);
	for (unsigned i = 0; i < s->n_loops; i++) {
		s->loops[i].server = s;
		s->loops[i].ev = ev_loop_new(EVFLAG_AUTO);
		if (s->loops[i].ev == NULL)
			die("no event loop");
		snprintf(s->loops[i].name, sizeof(s->loops[i].name), "loop-%u",
			 i + 1);
		hashed_init(&s->loops[i].hashed);
	}
	return port;
}

static void
server_free(struct server *s)
{
	for (unsigned i = 0; i < s->n_loops; i++) {
		hashed_free(&s->loops[i].hashed);
		ev_loop_destroy(s->loops[i].ev);
	}
	worker_free(&s->worker);
	free(s->loops);
	close(s->listening);
	close(s->folder);
}

int
main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	struct ev_loop *home = ev_loop_new(EVFLAG_AUTO);
	struct server s = { .folder = -1 };
	unsigned long cut;
	ev_signal status;
	int port, st;

	if (home == NULL)
		die("no event loop");
	signal(SIGPIPE, SIG_IGN); /* sendfile() has no MSG_NOSIGNAL */
	ev_signal_init(&status, on_status, SIGUSR1);
	status.data = &s;
	ev_signal_start(home, &status);
	port = server_init(&s, &o);
	/* stop: */
	evc_verdict v;
	evc_config cfg = { .grace = o.grace, .flags = EVC_STRICT_SETUP };

	if (evc_new(home, &cfg, &s.coord) < 0)
		die("%s", evc_last_error());
	evc_signals_start(s.coord, NULL);
	evc_thread_start(s.coord, "worker", worker_thread, &s, NULL, NULL);
	/* :stop */
	for (unsigned i = 0; i < s.n_loops; i++)
		/* stop: */
		if (evc_thread_start(s.coord, s.loops[i].name, loop_thread,
				     &s.loops[i], NULL, NULL) < 0)
			worker_ask(&s.worker, &s.loops[i].goodbye);
	/* :stop */
	printf("server: listening on 127.0.0.1:%d\n", port);
	fflush(stdout);
	/* stop: */
	st = evc_run(s.coord, NULL, &v);
	printf("server: stop took %.3f s: %s\n", v.took, evc_status_name(st));
	/* :stop */
	cut = report(&s, "cut");
	/* stop: */
	st = evc_finish(s.coord, st);
	if (v.n_stragglers > 0)
		_exit(st);
	/* :stop */
	ev_loop_destroy(home);
	server_free(&s);
	return st != 0 ? st : cut != 0;
}
