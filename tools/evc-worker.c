/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc-worker - a node of a cluster, with functions from shared objects:
 *   evc-worker [-n WORKERS] [-g GRACE] [--once] ADDRESS FILE.so...
 * Each object exports evc_worker_exports, see evcoord/worker.h.  The workers are
 * this program again, with the same arguments: so the node and each worker read
 * the arguments.  The node reports errors in them, the workers run the
 * functions.
 * Called by: the shell; the node, for each worker.
 * Locks: none of its own.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <dlfcn.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <evcoord.h>
#include <evcoord/redis.h>
#include <evcoord/worker.h>
#include <unistd.h>

#define EXPORTS "evc_worker_exports"
#define WORKERS_MOST 1024

struct objects {
	char **paths;
	const evc_worker_object **all;
	unsigned n;
	unsigned n_started;
	evc_function *functions; /* all functions of all objects */
	unsigned n_functions;
};

static _Noreturn void __attribute__((format(printf, 2, 3)))
die(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("evc-worker: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

static _Noreturn void
usage(int status)
{
	fputs("usage: evc-worker [-n WORKERS] [-g GRACE] [--once] ADDRESS "
	      "FILE.so...\n"
	      "ADDRESS is redis://HOST:PORT/NAMESPACE, see evc-worker(1)\n",
	      status == 0 ? stdout : stderr);
	exit(status);
}

/* ---- the objects ---- */

/* A name without a slash is a file here, as in other arguments of a command;
   dlopen would search the library paths. */
static void *
load_object(const char *path)
{
	char *here = NULL;
	void *object;

	if (strchr(path, '/') == NULL && asprintf(&here, "./%s", path) < 0)
		die(1, "no memory");
	object = dlopen(here != NULL ? here : path, RTLD_NOW | RTLD_LOCAL);
	free(here);
	if (object == NULL)
		die(1, "%s", dlerror());
	return object;
}

static const evc_worker_object *
exports_of(const char *path)
{
	const evc_worker_object *o = dlsym(load_object(path), EXPORTS);
	size_t i;

	if (o == NULL)
		die(1, "%s: it does not export " EXPORTS ", see "
		    "evc-worker(1)", path);
	if (o->abi != EVC_WORKER_ABI)
		die(1, "%s: it was built for version %u of <evcoord/worker.h>,"
		    " and this is %d", path, o->abi, EVC_WORKER_ABI);
	for (i = 0; i < sizeof(o->reserved_) / sizeof(o->reserved_[0]); i++)
		if (o->reserved_[i] != 0)
			die(1, "%s: reserved fields of " EXPORTS
			    " are not zero", path);
	if (o->n_functions == 0 || o->functions == NULL)
		die(1, "%s: it has no functions", path);
	return o;
}

/* The library would refuse a name in two objects, but cannot name the files. */
static void
check_names(const struct objects *all, unsigned upto, unsigned k)
{
	const evc_function *f = &all->all[upto]->functions[k];
	unsigned i, j;

	if (f->name == NULL)
		die(1, "%s: function %u has no name", all->paths[upto], k);
	for (i = 0; i < upto; i++) {
		for (j = 0; j < all->all[i]->n_functions; j++) {
			if (all->all[i] == all->all[upto])
				die(1, "%s is given twice", all->paths[upto]);
			if (strcmp(all->all[i]->functions[j].name,
				   f->name) == 0)
				die(1, "%s: function \"%s\" is in %s as well",
				    all->paths[upto], f->name, all->paths[i]);
		}
	}
}

static void
load_all(struct objects *all, char **paths, unsigned n)
{
	unsigned i, k;

	*all = (struct objects){ .paths = paths, .n = n };
	all->all = calloc(n, sizeof(*all->all));
	if (all->all == NULL)
		die(1, "no memory");
	for (i = 0; i < n; i++) {
		all->all[i] = exports_of(paths[i]);
		all->n_functions += all->all[i]->n_functions;
	}
	all->functions = calloc(all->n_functions, sizeof(*all->functions));
	if (all->functions == NULL)
		die(1, "no memory");
	all->n_functions = 0;
	for (i = 0; i < n; i++) {
		for (k = 0; k < all->all[i]->n_functions; k++) {
			check_names(all, i, k);
			all->functions[all->n_functions++] =
				all->all[i]->functions[k];
		}
	}
}

/* ---- in a worker ---- */

/* Objects are started in the order of the arguments, and stopped in reverse. */
static void
stop_objects(evc_coord *c, void *arg)
{
	struct objects *all = arg;
	const evc_worker_object *o;

	while (all->n_started > 0) {
		o = all->all[--all->n_started];
		if (o->stop != NULL)
			o->stop(c, o->arg);
	}
}

static evc_status
start_objects(evc_coord *c, void *arg)
{
	struct objects *all = arg;
	const evc_worker_object *o;
	evc_status st = 0;

	while (st == 0 && all->n_started < all->n) {
		o = all->all[all->n_started];
		if (o->start != NULL)
			st = o->start(c, o->arg);
		if (st == 0)
			all->n_started++;
	}
	if (st != 0)
		stop_objects(c, all);
	return st;
}

/* ---- the command line ---- */

static double
parse_number(const char *what, const char *text, double least, double most)
{
	char *end;
	double d = strtod(text, &end);

	if (end == text || *end || !(d >= least && d <= most))
		die(2, "%s: \"%s\" is no number from %g to %g", what, text,
		    least, most);
	return d;
}

/* The address, with the option that ends a node together with its cluster. */
static char *
node_address(const char *uri, bool once)
{
	const char *options = strchr(uri, '?');
	bool has = options != NULL && (strstr(options, "?once=1") != NULL ||
				       strstr(options, "&once=1") != NULL);
	char *with;

	if (asprintf(&with, "%s%s", uri, !once || has ? "" :
		     options == NULL ? "?once=1" : "&once=1") < 0)
		die(1, "no memory");
	return with;
}

/* A log in place of a closed stderr would go into a connection. */
static void
open_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "workers", required_argument, NULL, 'n' },
		{ "grace", required_argument, NULL, 'g' },
		{ "once", no_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 }
	};
	struct objects all;
	evc_worker_opts o = { .start = start_objects,
			      .stop = stop_objects,
			      .arg = &all };
	bool once = false;
	evc_status st;
	char *uri;
	int opt;

	open_standard();
	while ((opt = getopt_long(argc, argv, "n:g:", longs, NULL)) != -1) {
		switch (opt) {
		case 'n':
			o.n_workers = (unsigned)parse_number("-n", optarg, 1,
							     WORKERS_MOST);
			if (strspn(optarg, "0123456789") != strlen(optarg))
				die(2, "-n: \"%s\" is no whole number",
				    optarg);
			break;
		case 'g':
			o.grace = parse_number("-g", optarg, 0.001, INFINITY);
			break;
		case 'o':
			once = true;
			break;
		case 'V':
			printf("evc-worker %s\n", evc_version());
			return EXIT_SUCCESS;
		case 'h':
			usage(0);
		default:
			usage(2);
		}
	}
	if (argc - optind < 2)
		usage(2);
	/* A call by name, so every linker links the engine. */
	if (evc_redis_engine("redis") == NULL)
		die(1, "there is no engine \"redis\"");
	o.uri = uri = node_address(argv[optind], once);
	load_all(&all, argv + optind + 1, (unsigned)(argc - optind - 1));
	st = evc_worker_main(all.functions, all.n_functions, &o);
	if (st < 0)
		die(1, "%s", evc_last_error());
	free(all.functions);
	free(all.all);
	free(uri);
	return st == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
