/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the examples loop_glib, loop_uv, loop_event, loop_sdevent, loop_asio and
 * loop_qt have in common.  Each is a TCP server in the manner of its library: a
 * connection gets LINES lines, one each PAUSE_MS, and is closed.  A connection
 * is a task; a looper ticks on the loop beside it; a thread works.
 */
#ifndef LOOPS_H
#define LOOPS_H

#include <evcoord.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES    20
#define PAUSE_MS 10

struct server {
	const char *name;
	bool stuck; /* --stuck: the thread does not hear the stop */
	unsigned answers, ticks;
	evc_task_class connections; /* their name alone */
};

static inline evc_status
server_work(evc_coord *c, void *arg)
{
	const struct server *s = (const struct server *)arg;

	evc_wait_for_stop(c, INFINITY);
	while (s->stuck)
		pause();
	return EVC_OK;
}

static inline evc_status
server_tick(evc_coord *c, void *arg)
{
	(void)c;
	((struct server *)arg)->ticks++;
	return EVC_OK;
}

/* The members that are there from the begin. */
static inline bool
server_members(struct server *s, evc_coord *c)
{
	return evc_thread_start(c, "worker", server_work, s, NULL, NULL) >= 0 &&
	       evc_looper_start(c, "ticker", 0.01, server_tick, s, NULL,
				NULL) >= 0;
}

/* Line number n of an answer into buf; the result is its length. */
static inline size_t
server_line(char buf[32], unsigned n)
{
	return (size_t)snprintf(buf, 32, "line %u of %d\n", n, LINES);
}

static inline __attribute__((noreturn)) void
server_die(const struct server *s, const char *why)
{
	fprintf(stderr, "%s: %s\n", s->name, why);
	fflush(stdout);
	_exit(1); /* the thread may run */
}

static inline void
server_listens(int port)
{
	printf("port %d\n", port);
	fflush(stdout);
}

static inline void
server_end(const struct server *s, const evc_verdict *v)
{
	printf("%s\n%u answers, %s\n%s\n", v->stop.text, s->answers,
	       s->ticks > 0 ? "the looper ran" : "no run of the looper",
	       v->code == 0 ? "all have ended" : v->error.text);
	fflush(stdout);
}

/* The options of all these programs, and what each of them configures: lines
   to standard error, a grace, and, first of all, stacks in reports. */
static inline void
server_options(struct server *s, evc_config *cfg, const char *name, int argc,
	       char **argv)
{
	bool help = argc == 2 && strcmp(argv[1], "--help") == 0;

	memset(s, 0, sizeof(*s));
	s->name = name;
	s->connections.name = "connection";
	s->stuck = argc == 2 && strcmp(argv[1], "--stuck") == 0;
	if (argc > 1 && !s->stuck) {
		fprintf(help ? stdout : stderr, "usage: %s [--stuck]\n", name);
		exit(help ? 0 : 2);
	}
	cfg->name = name;
	cfg->log = evc_log_stderr;
	cfg->grace = s->stuck ? 0.3 : 10;
	if (evc_stack_signal(0) < 0)
		fprintf(stderr, "%s: %s\n", name, evc_last_error());
}

#endif
