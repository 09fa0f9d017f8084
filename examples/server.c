/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server - an HTTP/1.1 file server that stops without cutting a request.
 *
 *	server [-p PORT] [-l LOOPS] [-g GRACE] [-a LOG] [--trace FILE] FOLDER
 *
 *	GET /NAME       the file NAME of FOLDER, sent by sendfile()
 *	GET /hash/NAME  its CRC-32, Adler-32 and size
 *
 * A NAME may have escapes like %20; with them, too, it names nothing hidden and
 * nothing of another folder.  A request with an "Expect" and a body is answered
 * at once, and its body is not waited for.
 *
 * Several event loops, one in each thread, share a listening socket
 * (server_listen.c) and keep connections alive from request to request
 * (server_conn.c); one blocking thread hashes, another one writes a line for
 * each answer to the file LOG (server_worker.c).  One coordinator stops them
 * all, in phases: first nobody is accepted any more, then the connections end,
 * then the hasher, then the log.  SIGINT or SIGTERM begins that, a second one
 * cuts the grace.  SIGUSR1 prints the counts and what is alive.  A client
 * has half of the grace, and 300 s at most, to send a request and to take the
 * next part of an answer; after the stop that is all it has.  One that is slower
 * is cut, and counted apart.  A hash that takes longer then is answered by 503; it
 * ends when its client leaves, too.
 * --trace writes the timeline of who stopped when; evc-trace(1) draws it.
 *
 * A service manager that has started it is told when it is ready, that all its
 * loops turn, and who is left during the stop; see evcoord-systemd(7).
 *
 * All that the stop needs stands between "stop:" and ":stop" marks, here and
 * in the other files.  The rest would be the same in a server that is killed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
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
	const char *log, *trace, *folder;
};

static _Noreturn void
usage(int status)
{
	fputs("usage: server [-p PORT] [-l LOOPS] [-g GRACE] [-a LOG] "
	      "[--trace FILE] FOLDER\n", status == 0 ? stdout : stderr);
	exit(status);
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

static void
must(int status)
{
	if (status < 0)
		/* stop: */
		die("%s", evc_last_error());
	/* :stop */
}

static double
number(const char *text, double least, double most)
{
	char *end;
	double d = strtod(text, &end);

	if (*text == 0 || *end != 0 || !(d >= least && d <= most))
		usage(2);
	return d;
}

static struct options
parse(int argc, char **argv)
{
	static const struct option longer[] = {
		{ "trace", required_argument, NULL, 'T' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options o = { .loops = 2, .log = "/dev/null" };
	int opt;

	while ((opt = getopt_long(argc, argv, "p:l:g:a:", longer, NULL)) !=
	       -1) {
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
		case 'a':
			o.log = optarg;
			break;
		case 'T':
			o.trace = optarg;
			break;
		case 'h':
			usage(0);
		default:
			usage(2);
		}
	}
	if (optind != argc - 1)
		usage(2);
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
	unsigned long slow = total(s, TOO_SLOW);
	unsigned long shrunk = total(s, SHRUNK);
	unsigned long begun = total(s, BEGUN);
	unsigned long open = begun - answered - aborted - slow - shrunk;
	char why[2048];

	printf("server: requests: %lu begun, %lu answered, "
	       "%lu aborted by the client, %lu too slow, "
	       "%lu with a file that shrank, %lu %s\n",
	       begun, answered, aborted, slow, shrunk, open, open_ones);
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

/* The timeline of it all. */
static void
write_trace(const evc_coord *c, const char *path)
{
	/* O_NONBLOCK: a FIFO that nobody reads must not hold up the end. */
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC,
		      0666);

	if (fd < 0 || evc_trace_write(c, fd, EVC_TRACE_JSON) < 0)
		fprintf(stderr, "server: %s: the timeline is not written\n",
			path);
	if (fd >= 0)
		close(fd);
}

/* A loop is there: serve on it until the stop, and until the last of its
   connections has ended. */
static bool
loop_start(struct loop *loop, evc_reactor *conns, evc_reactor *listener)
{
	/* stop: */
	loop->reactor = conns;
	loop->ev = evc_reactor_loop(conns);
	/* :stop */
	hash_listen(loop);
	return listener_start(loop, listener);
}

/* The same on a thread of its own. */
static evc_status
setup(evc_reactor *r, void *loop)
{
	return loop_start(loop, r, r) ? 0 : EVC_INTERNAL;
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
	s->log = open(o->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (s->log < 0)
		die("%s: %s", o->log, strerror(errno));
	s->n_loops = o->loops;
	s->loops = calloc(s->n_loops, sizeof(*s->loops));
	if (s->loops == NULL || !pipes_open(s))
		die("%s", strerror(errno));
	for (unsigned i = 0; i < s->n_loops; i++) {
		s->loops[i].server = s;
		snprintf(s->loops[i].name, sizeof(s->loops[i].name), "loop-%u",
			 i + 1);
	}
	return port;
}

static void
server_free(struct server *s)
{
	pipes_close(s);
	free(s->loops);
	close(s->log);
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
	/* stop: */
	static const char *const names[] = { "connections", "hasher", "log" };
	evc_config cfg = { .grace = o.grace, .flags = EVC_STRICT_SETUP };
	evc_signals_opts sig = { .flags = EVC_SIGNALS_AT_JOIN };
	evc_verdict v = { 0 };

	must(evc_new(home, &cfg, &s.coord));
	evc_signals_start(s.coord, &sig);
	evc_systemd_start(s.coord, NULL);
	/* :stop */
	if (o.trace != NULL)
		must(evc_trace_start(s.coord, 0));
	signal(SIGPIPE, SIG_IGN); /* sendfile() has no MSG_NOSIGNAL */
	ev_signal_init(&status, on_status, SIGUSR1);
	status.data = &s;
	ev_signal_start(home, &status);
	s.patience = fmin((o.grace > 0 ? o.grace : 8) / 2, 300);
	port = server_init(&s, &o);
	/* stop: */
	for (int i = 0; i < N_PARTS; i++) {
		evc_scope_opts part = { .config = cfg, .phase = i + 1 };

		must(evc_scope_new(s.coord, names[i], &part, &s.part[i]));
		evc_scope_ready(s.part[i]);
	}
	evc_thread_start(s.part[HASHER], "hasher", hash_thread, &s, NULL, NULL);
	evc_thread_start(s.part[LOG], "log", log_thread, &s, NULL, NULL);
	loop_start(s.loops, evc_home(s.part[CONNS]), evc_home(s.coord));
	/* :stop */
	for (struct loop *l = s.loops + 1; l < s.loops + s.n_loops; l++)
		/* stop: */
		evc_reactor_start(s.part[CONNS], l->name, setup, l, NULL, NULL);
	/* :stop */
	printf("server: listening on 127.0.0.1:%d\n", port);
	fflush(stdout);
	/* stop: */
	evc_systemd_ready(s.coord, "serving");
	st = evc_run(s.coord, NULL, &v);
	/* :stop */
	printf("server: stop took %.3f s: %s\n", v.took,
	       st == 0 ? "OK" : v.error.text);
	cut = report(&s, "cut");
	if (o.trace != NULL)
		write_trace(s.coord, o.trace);
	/* stop: */
	for (int i = 0; i < N_PARTS; i++)
		evc_free(s.part[i]);
	st = evc_finish(s.coord, st);
	if (v.n_stragglers > 0)
		_exit(st);
	/* :stop */
	ev_loop_destroy(home);
	server_free(&s);
	return st != 0 ? st : cut != 0;
}
