/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc-shake - does a program stop well, at any moment?
 *	evc-shake [options] [--] PROGRAM [ARGUMENT...]
 * The program runs again and again, and each time its signal comes at another
 * moment.  A first run counts the calls of each thread; the plan takes moments
 * from them; the worst ones are repeated and printed.  shake_trace.c says why
 * the tool does not stand on strace.
 * Called by: the shell.
 * Locks: none; one thread.
 */
#include "shake_tool.h"

#include <errno.h>
#include <evcoord/version.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REPEATED 3 /* failed moments that are repeated after a plan */

static int interrupted;

void
die(const char *fmt, ...)
{
	va_list ap;

	fputs("evc-shake: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(3);
}

void *
room_for(size_t n, size_t size)
{
	void *room = calloc(n, size);

	if (room == NULL)
		die("no memory");
	return room;
}

void
append(char *buf, size_t size, const char *fmt, ...)
{
	size_t n = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + n, size - n, fmt, ap);
	va_end(ap);
}

double
seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

bool
is_interrupted(void)
{
	return interrupted != 0;
}

void
interrupted_by(int signo)
{
	interrupted = signo;
}

void
signals_of_tool(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

static _Noreturn void
usage(FILE *f)
{
	fputs("usage: evc-shake [options] [--] PROGRAM [ARGUMENT...]\n"
	      "  -n, --moments N       runs (100)\n"
	      "  -s, --signal SIGNAL   what is sent (TERM)\n"
	      "  -g, --grace SECONDS   from the signal to the end (5)\n"
	      "  -t, --time SECONDS    of normal life to look at (1)\n"
	      "  -l, --load COMMAND    runs beside the program\n"
	      "  -e, --status LIST     good exit statuses (0); signal: a death"
	      " by it, too\n"
	      "  -c, --calls LIST      only before these system calls\n"
	      "  -i, --ignore-early    nothing before there is a handler\n"
	      "  -S, --seed N          other moments (1)\n"
	      "  -w, --worst N         moments in the report (5)\n"
	      "  -r, --repeat MOMENT   this one alone, such as accept4#17@3 or"
	      " 12.5ms\n"
	      "  -k, --times N         repeats of a moment (3; --repeat: 10)\n"
	      "  -j, --json FILE       a line for each run\n"
	      "{port} and {tmp} in an argument are a free port and the private"
	      " TMPDIR;\n"
	      "the load has EVC_SHAKE_PORT; see evc-shake(1)\n", f);
	exit(f == stderr ? 2 : 0);
}

static double
number(const char *text, double least, double most)
{
	char *end;
	double d = strtod(text, &end);

	if (end == text || *end != '\0' || !(d >= least && d <= most)) {
		fprintf(stderr, "evc-shake: %s: no number from %g to %g\n",
			text, least, most);
		exit(2);
	}
	return d;
}

static int
signal_of(const char *text)
{
	static const struct {
		const char *name;
		int signo;
	} names[] = {
		{ "ALRM", SIGALRM }, { "HUP", SIGHUP }, { "INT", SIGINT },
		{ "PIPE", SIGPIPE }, { "QUIT", SIGQUIT }, { "TERM", SIGTERM },
		{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
	};
	const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i].name) == 0)
			return names[i].signo;
	return (int)number(text, 1, SIGRTMAX);
}

static void
read_statuses(struct options *o, char *list)
{
	memset(o->status, 0, sizeof o->status);
	for (char *s = strtok(list, ","); s != NULL; s = strtok(NULL, ","))
		if (strcmp(s, "signal") == 0)
			o->signal_allowed = true;
		else
			o->status[(int)number(s, 0, 255)] = true;
}

static void
read_calls(struct options *o, char *list)
{
	o->some_calls = true;
	for (char *s = strtok(list, ","); s != NULL; s = strtok(NULL, ",")) {
		int nr = call_number(s);

		if (nr < 0) {
			fprintf(stderr, "evc-shake: %s: no system call\n", s);
			exit(2);
		}
		o->call[nr] = true;
	}
}

static const struct option longs[] = {
	{ "moments", required_argument, NULL, 'n' },
	{ "signal", required_argument, NULL, 's' },
	{ "grace", required_argument, NULL, 'g' },
	{ "time", required_argument, NULL, 't' },
	{ "load", required_argument, NULL, 'l' },
	{ "status", required_argument, NULL, 'e' },
	{ "calls", required_argument, NULL, 'c' },
	{ "ignore-early", no_argument, NULL, 'i' },
	{ "seed", required_argument, NULL, 'S' },
	{ "worst", required_argument, NULL, 'w' },
	{ "repeat", required_argument, NULL, 'r' },
	{ "times", required_argument, NULL, 'k' },
	{ "json", required_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 }
};

static void
read_option(struct options *o, int opt, char *value)
{
	switch (opt) {
	case 'n': o->moments = (unsigned)number(value, 1, 1e6); break;
	case 's': o->signo = signal_of(value); break;
	case 'g': o->grace = number(value, 0.001, 86400); break;
	case 't': o->time = number(value, 0.001, 86400); break;
	case 'l': o->load = value; break;
	case 'e': read_statuses(o, value); break;
	case 'c': read_calls(o, value); break;
	case 'S': o->seed = (uint64_t)number(value, 0, 1e15); break;
	case 'w': o->worst = (unsigned)number(value, 0, WORST_MOST); break;
	case 'i': o->only_handled = true; break;
	case 'k': o->times = (unsigned)number(value, 1, 10000); break;
	case 'j': o->json = value; break;
	case 'h': usage(stdout);
	case 'V': puts("evc-shake " EVC_VERSION_STRING); exit(0);
	default: usage(stderr);
	}
}

static void
run_told(const struct options *o, const struct moment *m, struct result *r,
	 struct counts *c, FILE *json)
{
	run_once(o, m, r, c);
	if (json != NULL && !is_interrupted())
		print_json(json, o, r);
}

/* Run the moment of r again: does it come at the same place, and does it fail
   again? */
static void
repeat(const struct options *o, struct result *r, unsigned times, FILE *json)
{
	struct result again;

	for (unsigned i = 0; i < times && !is_interrupted(); i++) {
		run_told(o, &r->moment, &again, NULL, json);
		if (is_interrupted())
			return;
		r->times++;
		r->same += again.reached && (r->moment.kind == INSTANT ||
			    strcmp(again.place, r->place) == 0);
		r->bad += again.faults != 0;
	}
}

/* The failed moments that are worst, each once. */
static void
repeat_worst(const struct options *o, struct summary *s, FILE *json)
{
	for (unsigned k = 0; k < REPEATED && k < o->worst; k++) {
		struct result *worst = NULL;

		for (size_t i = 0; i < s->n; i++) {
			struct result *r = &s->result[i];

			if (r->faults != 0 && r->times == 0 && r->reached &&
			    (worst == NULL || badness(r) > badness(worst)))
				worst = r;
		}
		if (worst == NULL)
			return;
		repeat(o, worst, o->times > 0 ? o->times : 3, json);
	}
}

static int
shake(const struct options *o, FILE *json)
{
	struct moment *m = room_for(o->moments, sizeof *m);
	const struct moment survey = { .kind = SURVEY };
	struct summary s = { .n = 0 };
	struct counts c = { 0 };
	size_t n, failed = 0;

	s.result = room_for(o->moments + 1, sizeof *s.result);
	run_told(o, &survey, &s.result[0], &c, json);
	n = plan_moments(m, o, &c);
	/* The first run counts, too, in place of the last moment. */
	s.result[0].moment = (struct moment){
		.kind = INSTANT, .after = s.result[0].at
	};
	for (s.n = 0; s.n < n && !is_interrupted();) {
		if (s.n > 0)
			run_told(o, &m[s.n - 1], &s.result[s.n], NULL, json);
		if (is_interrupted())
			break;
		failed += s.result[s.n++].faults != 0;
		print_bar(s.n, n, failed);
	}
	repeat_worst(o, &s, json);
	print_summary(o, &s);
	free(s.result);
	free(c.of);
	free(m);
	return failed > 0;
}

static int
shake_one(const struct options *o, const struct moment *m, FILE *json)
{
	struct result r;

	run_told(o, m, &r, NULL, json);
	if (is_interrupted())
		return 1;
	repeat(o, &r, (o->times > 0 ? o->times : 10) - 1, json);
	r.times++;
	r.same += r.reached;
	r.bad += r.faults != 0;
	print_repeats(&r);
	return r.bad > 0;
}

int
main(int argc, char **argv)
{
	struct options o = {
		.signo = SIGTERM, .grace = 5, .time = 1, .seed = 1,
		.moments = 100, .worst = 5, .status = { [0] = true },
	};
	struct moment m;
	bool one = false;
	FILE *json = NULL;
	sigset_t set;
	int opt, status;

	while ((opt = getopt_long(argc, argv, "+n:s:g:t:l:e:c:iS:w:r:k:j:",
				  longs, NULL)) != -1) {
		if (opt != 'r') {
			read_option(&o, opt, optarg);
			continue;
		}
		one = true;
		if (!moment_parse(&m, optarg)) {
			fprintf(stderr, "evc-shake: %s: no moment\n", optarg);
			return 2;
		}
	}
	if (optind == argc)
		usage(stderr);
	o.program = argv + optind;
	if (o.json != NULL && (json = fopen(o.json, "we")) == NULL)
		die("%s: %s", o.json, strerror(errno));
	signals_of_tool(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		die("no subreaper: %s", strerror(errno));
	status = one ? shake_one(&o, &m, json) : shake(&o, json);
	if (json != NULL && (ferror(json) || fclose(json) != 0))
		die("%s: %s", o.json, strerror(errno));
	if (fflush(stdout) != 0)
		die("standard output: %s", strerror(errno));
	return is_interrupted() ? 128 + interrupted : status;
}
