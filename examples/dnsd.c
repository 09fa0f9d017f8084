/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dnsd - a small DNS server that stops in no time, or says who would not.
 *
 *	dnsd -z ZONE [-p PORT] [-u THREADS] [-t THREADS] [-c SOCKET]
 *	     [-b SECONDS] [--trace FILE]
 *	dnsd -c SOCKET -x COMMAND
 *
 *	-z  the zone, a master file; read again at SIGHUP
 *	-p  UDP and TCP port on 127.0.0.1 (0, as without it: a free one)
 *	-u  threads that answer over UDP (2), each blocked in recvmmsg(2)
 *	-t  threads that answer over TCP (2), each with an event loop
 *	-c  a UNIX socket for commands; with -x: send one to it
 *	-b  the budget of the stop (5): it takes no longer, whoever hangs; a TCP
 *	    client that needs half of it for one query is cut
 *	--trace  write the timeline of the stop; evc-trace(1) draws it
 *
 * It is made as gdnsd is, a server whose stop waits for ever when one thread
 * hangs; try it with the command "stick".  SIGTERM or SIGINT stop it, unless
 * the command "hold" forbids that, or the command "stop".  After a signal dnsd
 * leaves by that signal, else with the status 0; with 124 when somebody had to
 * be left behind: who, and where it is, stands in the report on standard error.
 *
 * evcoord-port(7) says how stop code becomes as short as this.  All that the
 * stop needs stands between "stop:" and ":stop" marks, here and in the other
 * files.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dnsd.h"

struct options {
	const char *zone, *control, *command, *trace;
	int port;
	unsigned n_udp, n_tcp;
	double budget;
};

static _Noreturn void
usage(int status)
{
	fputs("usage: dnsd -z ZONE [-p PORT] [-u THREADS] [-t THREADS] "
	      "[-c SOCKET]\n"
	      "            [-b SECONDS] [--trace FILE]\n"
	      "       dnsd -c SOCKET -x COMMAND\n",
	      status == 0 ? stdout : stderr);
	exit(status);
}

static _Noreturn void __attribute__((format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list ap;

	fputs("dnsd: ", stderr);
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
	struct options o = { .n_udp = 2, .n_tcp = 2, .budget = 5 };
	int opt;

	while ((opt = getopt_long(argc, argv, "z:p:u:t:c:b:x:", longer,
				  NULL)) != -1) {
		switch (opt) {
		case 'z': o.zone = optarg; break;
		case 'p': o.port = (int)number(optarg, 0, 65535); break;
		case 'u': o.n_udp = (unsigned)number(optarg, 1, 64); break;
		case 't': o.n_tcp = (unsigned)number(optarg, 1, 64); break;
		case 'c': o.control = optarg; break;
		case 'b': o.budget = number(optarg, 0.01, 86400); break;
		case 'x': o.command = optarg; break;
		case 'T': o.trace = optarg; break;
		case 'h': usage(0);
		default: usage(2);
		}
	}
	if (optind != argc || (o.command != NULL ? o.control : o.zone) == NULL)
		usage(2);
	return o;
}

static void
on_hup(UNUSED struct ev_loop *ev, ev_signal *w, UNUSED int events)
{
	reload_ask(w->data);
}

/* All that a server needs before its first thread. */
static void
server_init(struct server *s, const struct options *o)
{
	char why[256];

	s->zone_file = o->zone;
	tcp_patience(o->budget < 60 ? o->budget / 2 : 30);
	s->zone.zone = zone_load(s->zone_file, why, sizeof(why));
	if (s->zone.zone == NULL)
		die("%s", why);
	pthread_mutex_init(&s->zone.lock, NULL);
	s->n_udp = o->n_udp;
	s->n_tcp = o->n_tcp;
	s->udp = calloc(s->n_udp, sizeof(*s->udp));
	s->tcp = calloc(s->n_tcp, sizeof(*s->tcp));
	if (s->udp == NULL || s->tcp == NULL)
		die("out of memory");
	for (unsigned i = 0; i < s->n_udp; i++) {
		s->udp[i].server = s;
		s->udp[i].fd = -1;
		snprintf(s->udp[i].name, sizeof(s->udp[i].name), "udp-%u",
			 i + 1);
	}
	for (unsigned i = 0; i < s->n_tcp; i++) {
		s->tcp[i].server = s;
		s->tcp[i].fd = -1;
		s->tcp[i].out = ldns_buffer_new(LDNS_MAX_PACKETLEN);
		if (s->tcp[i].out == NULL)
			die("out of memory");
		snprintf(s->tcp[i].name, sizeof(s->tcp[i].name), "tcp-%u",
			 i + 1);
	}
	if (!sockets_open(s, o->port))
		die("port %d: %s", o->port, strerror(errno));
}

static void
say_ready(struct server *s)
{
	char *apex = ldns_rdf2str(s->zone.zone->apex);

	printf("dnsd: ready on 127.0.0.1:%d, zone %s serial %u, "
	       "%u UDP threads, %u TCP loops\n", s->port,
	       apex != NULL ? apex : "?", (unsigned)s->zone.zone->serial,
	       s->n_udp, s->n_tcp);
	fflush(stdout);
	free(apex);
}

static void
say_answered(const struct server *s)
{
	unsigned long udp = 0, tcp = 0, cut = 0;

	for (unsigned i = 0; i < s->n_udp; i++)
		udp += atomic_load_explicit(&s->udp[i].answered,
					    memory_order_relaxed);
	for (unsigned i = 0; i < s->n_tcp; i++) {
		tcp += atomic_load_explicit(&s->tcp[i].answered,
					    memory_order_relaxed);
		cut += atomic_load_explicit(&s->tcp[i].cut,
					    memory_order_relaxed);
	}
	printf("dnsd: answered: %lu by UDP, %lu by TCP", udp, tcp);
	if (cut > 0)
		printf("; cut: %lu TCP clients that were too slow", cut);
	printf("\n");
	fflush(stdout);
}

/* The timeline of it all. */
static void
write_trace(const evc_coord *c, const char *path)
{
	/* O_NONBLOCK: a FIFO that nobody reads must not hold up the end. */
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC,
		      0666);

	if (fd < 0)
		fprintf(stderr, "dnsd: %s: %s\n", path, strerror(errno));
	else if (evc_trace_write(c, fd, EVC_TRACE_JSON) < 0)
		fprintf(stderr, "dnsd: %s: the timeline is not written\n",
			path);
	else
		printf("dnsd: the timeline: %s\n", path);
	if (fd >= 0)
		close(fd);
}

int
main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	struct ev_loop *home;
	struct server s = { .port = 0 };
	const char *why;
	ev_signal hup;
	int st;

	if (o.command != NULL)
		return control_send(o.control, o.command);
	home = ev_loop_new(EVFLAG_AUTO);
	if (home == NULL)
		die("no event loop");
	/* stop: */
	evc_config cfg = { .name = "dnsd", .flags = EVC_STRICT_SETUP,
			   .log = evc_log_stderr };
	evc_escalation_opts end = { o.budget, .at_end = EVC_AT_END_EXIT };
	evc_signals_opts sig = { .allow = unheld, .flags = EVC_SIGNALS_AT_JOIN };
	evc_member_opts kick = { .flags = EVC_KICK };
	evc_verdict v = { 0 };

	evc_stack_signal(0); /* before the first thread: it would block it */
	must(evc_new(home, &cfg, &s.coord));
	must(evc_escalation_set(s.coord, &end));
	evc_signals_start(s.coord, &sig);
	evc_systemd_start(s.coord, NULL);
	/* :stop */
	if (o.trace != NULL)
		must(evc_trace_start(s.coord, 0));
	server_init(&s, &o);
	ev_signal_init(&hup, on_hup, SIGHUP);
	hup.data = &s;
	ev_signal_start(home, &hup);
	if (o.control != NULL &&
	    (why = control_start(&s, home, o.control)) != NULL)
		die("%s: %s", o.control, why);
	for (struct udp *u = s.udp; u < s.udp + s.n_udp; u++)
		/* stop: */
		evc_thread_start(s.coord, u->name, udp_thread, u, &kick, NULL);
	/* :stop */
	for (struct tcp *t = s.tcp; t < s.tcp + s.n_tcp; t++)
		/* stop: */
		evc_reactor_start(s.coord, t->name, tcp_setup, t, NULL, NULL);
	/* :stop */
	say_ready(&s);
	serving(&s);
	/* stop: */
	st = evc_run(s.coord, NULL, &v);
	/* :stop */
	printf("dnsd: stop took %.3f s: %s\n", v.took,
	       st == 0 ? "OK" : v.error.text);
	say_answered(&s);
	if (o.trace != NULL)
		write_trace(s.coord, o.trace);
	if (o.control != NULL)
		control_stop(home, o.control);
	ev_signal_stop(home, &hup);
	fflush(stdout);
	/* stop: */
	st = evc_finish(s.coord, st);
	evc_signals_raise(st == 0 ? v.stop.signo : 0);
	_exit(st); /* a thread, or the reload, may still use what is here */
	/* :stop */
}
