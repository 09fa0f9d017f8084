/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wordcount_options.c - the command line.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "wordcount.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void
usage(bool is_asked)
{
	fputs("usage: wordcount [-n N] [--checkpoint FILE] [--every SECONDS] "
	      "[--bar]\n"
	      "                 [--top K | --all] [--kill N] [--nap SECONDS]\n"
	      "                 [--wait SECONDS] [-v]\n"
	      "                 [ADDRESS] DIR...\n"
	      "       wordcount --worker [-n N] ADDRESS\n",
	      is_asked ? stdout : stderr);
	exit(is_asked ? 0 : 2);
}

static double
number(const char *text, double least, double most)
{
	char *end;
	double d = strtod(text, &end);

	if (end == text || *end || !(d >= least && d <= most))
		usage(false);
	return d;
}

static unsigned
whole(const char *text, double least, double most)
{
	double d = number(text, least, most);

	if (d != (unsigned)d)
		usage(false);
	return (unsigned)d;
}

void
options_read(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "checkpoint", required_argument, NULL, 'c' },
		{ "every", required_argument, NULL, 'e' },
		{ "bar", no_argument, NULL, 'b' },
		{ "top", required_argument, NULL, 't' },
		{ "all", no_argument, NULL, 'a' },
		{ "kill", required_argument, NULL, 'k' },
		{ "nap", required_argument, NULL, 's' },
		{ "wait", required_argument, NULL, 'W' },
		{ "worker", no_argument, NULL, 'w' },
		{ 0 }
	};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	bool is_n = false;
	int opt;

	*o = (struct options){
		.n_workers = cpus > 0 && cpus <= WORKERS_MOST ?
			     (unsigned)cpus : 2,
		.every = 5,
		.top = 10,
	};
	while ((opt = getopt_long(argc, argv, "hn:v", longs, NULL)) != -1) {
		switch (opt) {
		case 'h':
			usage(true);
		case 'n':
			o->n_workers = whole(optarg, 1, WORKERS_MOST);
			is_n = true;
			break;
		case 'c':
			o->checkpoint = optarg;
			break;
		case 'e':
			o->every = number(optarg, 0.01, 1e6);
			break;
		case 'b':
			o->bar = true;
			break;
		case 't':
			o->top = whole(optarg, 1, 1e9);
			break;
		case 'a':
			o->top = 0;
			break;
		case 'k':
			o->n_kill = whole(optarg, 0, 1000);
			break;
		case 's':
			o->nap = number(optarg, 0, 3600);
			break;
		case 'W':
			o->wait = number(optarg, 0.01, 1e6);
			break;
		case 'v':
			o->is_verbose = true;
			break;
		case 'w':
			o->is_worker = true;
			break;
		default:
			usage(false);
		}
	}
	if (optind < argc && strstr(argv[optind], "://") != NULL)
		o->address = argv[optind++];
	o->paths = argv + optind;
	o->n_paths = (unsigned)(argc - optind);
	/* Workers come with an address; who joins it has no say in how many. */
	if (o->is_worker ? !o->address || o->n_paths > 0 :
			   o->n_paths == 0 || (o->address && is_n))
		usage(false);
}
