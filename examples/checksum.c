/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checksum - the SHA-256 sums of all files in trees, on all processors.
 *
 *	checksum [-j THREADS] [-o FILE] [--resume LIST] [-v] DIR...
 *
 * A loop walks the trees, a pool of threads hashes the files, and the loop
 * writes the list, in the format of sha256sum(1), which can check it.  The
 * order is that of the bytes of the paths (LC_ALL=C sort), DIR by DIR; links
 * are not followed, and only regular files count.  A file that cannot be read
 * costs a line on standard error, and the exit status is 1 then.
 *
 *   -j       so many threads; one for each processor otherwise
 *   -o       write the list to FILE, which gets its name when it is finished;
 *            FILE.part until then, which is left by an error, or by kill -9
 *   --resume take over what stands in LIST, which may be FILE, and hash the
 *            rest: neither a file nor a line comes twice
 *   -v       say at the end what was done
 *
 * SIGINT and SIGTERM stop it at any moment.  Files that are being hashed are
 * finished, unless they are long, and the list has a line for each file that
 * was hashed.  So it can be resumed; the exit status is 130.
 *
 * On a terminal there is a progress bar.
 */
#include "checksum.h"

#include <errno.h>
#include <ev.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK 0.2 /* seconds: the bar, and lines to standard output */

struct options {
	unsigned n_threads;
	const char *out, *resume;
	bool is_verbose;
	char **paths;
	unsigned n_paths;
};

/* ---- the bar ---- */

static void
time_left(char *buf, size_t size, double seconds)
{
	unsigned long s = seconds < 1e6 ? (unsigned long)seconds : 999999;

	if (s >= 3600)
		snprintf(buf, size, ", %lu:%02lu:%02lu left", s / 3600,
			 s / 60 % 60, s % 60);
	else
		snprintf(buf, size, ", %lu:%02lu left", s / 60, s % 60);
}

/* While the walk goes on nobody knows how much there is, and it says "+". */
static void
draw(struct list *l)
{
	double read = list_bytes(l), found = fmax(l->bytes_found, read);
	double took = ev_now(evc_reactor_loop(evc_home(l->c))) - l->began;
	double rate = took > 0 ? read / took : 0;
	bool is_over = walk_where(l->walk) == NULL;
	char done[16], all[16], speed[16], left[32] = "";

	if (is_over && rate > 0)
		time_left(left, sizeof(left), (found - read) / rate);
	bar_draw(&l->bar, is_over && found > 0 ? read / found : NAN,
		 "%lu/%lu%s files, %s/%s, %s/s%s", l->n_over, l->n_found,
		 is_over ? "" : "+", bar_bytes(done, sizeof(done), read),
		 bar_bytes(all, sizeof(all), found),
		 bar_bytes(speed, sizeof(speed), rate), left);
}

/* A looper on the loop. */
static evc_status
tick(evc_coord *c, void *arg)
{
	struct list *l = arg;

	(void)c;
	out_flush(l->out); /* should it fail, the next line says so */
	if (l->bar.on)
		draw(l);
	return 0;
}

/* ---- options ---- */

static _Noreturn void
usage(bool is_asked)
{
	fputs("usage: checksum [-j THREADS] [-o FILE] [--resume LIST] [-v] "
	      "DIR...\n", is_asked ? stdout : stderr);
	exit(is_asked ? 0 : 2);
}

static unsigned
number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n < 1 || n > 1024)
		usage(false);
	return (unsigned)n;
}

static void
read_options(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "resume", required_argument, NULL, 'r' },
		{ 0 }
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "hj:o:v", longs, NULL)) != -1) {
		switch (opt) {
		case 'h':
			usage(true);
		case 'j':
			o->n_threads = number(optarg);
			break;
		case 'o':
			o->out = optarg;
			break;
		case 'r':
			o->resume = optarg;
			break;
		case 'v':
			o->is_verbose = true;
			break;
		default:
			usage(false);
		}
	}
	if (optind == argc)
		usage(false);
	o->paths = argv + optind;
	o->n_paths = (unsigned)(argc - optind);
}

/* ---- all of it ---- */

/* false: it was said why. */
static bool
start(struct list *l, const struct options *o, struct ev_loop *loop)
{
	/* A stack for the buffer of hash_file. */
	const evc_pool_opts pool = { .n_threads = o->n_threads,
				     .capacity = MOST_AHEAD,
				     .stack = 512 * 1024 };
	const evc_member_opts beside = { .flags = EVC_BACKGROUND };
	const evc_config cfg = { .name = "checksum" };

	if (o->resume && (l->old = old_read(o->resume)) == NULL)
		return false;
	l->end = &l->first;
	l->began = ev_now(loop);
	bar_init(&l->bar);
	/* Nothing of this begins before the loop runs.  Signals last: up to
	   there they end the program as they always do. */
	if (evc_new(loop, &cfg, &l->c) < 0 ||
	    evc_pool_new(l->c, "hash", &pool, &l->pool) < 0 ||
	    (l->walk = walk_start(l, o->paths, o->n_paths)) == NULL ||
	    evc_looper_start(l->c, "tick", TICK, tick, l, &beside, NULL) < 0 ||
	    evc_signals_start(l->c, NULL) < 0) {
		fprintf(stderr, "checksum: %s\n", evc_last_error());
		return false;
	}
	return (l->out = out_open(o->out, &l->bar)) != NULL;
}

static void
say_what(const struct list *l, double took)
{
	char bytes[16];

	fprintf(stderr, "checksum: %lu hashed, %lu taken over, %lu failed; "
		"%s in %.1f s\n", l->n_hashed, l->n_old, l->n_failed,
		bar_bytes(bytes, sizeof(bytes), list_bytes(l)), took);
}

/* What is missing after a stop, and how to go on. */
static void
say_where(const struct list *l, const char *why, const char *out)
{
	fprintf(stderr, "checksum: %s: the list is not complete, the first "
		"that is missing is %s\n"
		"checksum: to go on: --resume %s, and the same directories\n",
		why, l->missing ? l->missing : walk_where(l->walk),
		out ? out : "LIST");
}

int
main(int argc, char **argv)
{
	static struct list l; /* a thread that is late may use it for ever */
	struct options o = { 0 };
	struct ev_loop *loop;
	bool is_part;
	evc_verdict v;
	evc_status st;
	int err, status;

	read_options(&o, argc, argv);
	loop = ev_loop_new(EVFLAG_AUTO);
	if (loop == NULL) {
		fputs("checksum: no event loop\n", stderr);
		return EXIT_FAILURE;
	}
	if (!start(&l, &o, loop))
		return EXIT_FAILURE; /* before anything ran */
	/* Runs the loop until all has ended: the walk, and each job.  At a stop
	   that is soon. */
	st = evc_join(l.c, NULL, &v);

	list_finish(&l);
	is_part = l.missing || walk_where(l.walk);
	if (is_part && l.old)
		old_write_rest(l.old, l.out);
	bar_clear(&l.bar);
	err = out_close(l.out);
	if (o.is_verbose || l.bar.on)
		say_what(&l, ev_time() - l.began);
	if (is_part && err == 0)
		say_where(&l, st < 0 ? evc_last_error() :
			  st > 0 ? v.error.text : v.stop.text, o.out);

	if (st < 0 || v.n_stragglers)
		_exit(EXIT_FAILURE); /* no return from main under a thread */
	walk_free(l.walk);
	old_free(l.old);
	free(l.missing);
	status = evc_finish(l.c, st); /* frees the pool, too */
	ev_loop_destroy(loop);
	if (status == 0 && (err || l.n_failed > 0))
		return EXIT_FAILURE;
	return status == 0 && is_part ? 130 : status;
}
