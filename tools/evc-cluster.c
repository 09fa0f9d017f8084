/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc-cluster - look into the namespace of a cluster, or clean it:
 *	evc-cluster status [--json] ADDRESS
 *	evc-cluster clean [--force] ADDRESS
 * The tool reads the keys of the coordinator and its nodes in Redis, see
 * redis/client/protocol.h, and is no part of the cluster.
 * Called by: the shell.
 * Locks: none; one thread.
 */
#include "cluster_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 500 /* keys of one UNLINK */

void
die(int status, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "evc-cluster: %s\n", plain(text));
	exit(status);
}

/* A socket must not become standard output of a program started without
   standard output: a write there is to be an error. */
static void
keep_standard_places(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* All printed bytes have to arrive. */
static _Noreturn void
exit_flushed(int status)
{
	bool failed = ferror(stdout);

	if (fflush(stdout) != 0)
		die(1, "cannot write: %s", strerror(errno));
	if (failed)
		die(1, "cannot write");
	exit(status);
}

static _Noreturn void
usage(int status)
{
	fputs("usage: evc-cluster status [--json] ADDRESS\n"
	      "       evc-cluster clean [--force] ADDRESS\n"
	      "ADDRESS is redis://HOST:PORT/NAMESPACE, see evc-cluster(1)\n",
	      status == 0 ? stdout : stderr);
	exit_flushed(status);
}

/* ---- status ---- */

/* 0: there is a coordinator; 3: no coordinator. */
static int
run_status(struct server *s, bool json)
{
	struct status st;
	int code;

	status_read(s, &st);
	if (json)
		status_print_json(s, &st);
	else
		status_print(s, &st);
	code = st.coordinator != NULL ? EXIT_SUCCESS : 3;
	status_free(&st);
	return code;
}

/* ---- clean ---- */

/* "{NS}:*" for SCAN, with special characters escaped. */
static char *
scan_pattern(const struct server *s)
{
	const char *ns = s->address.ns;
	char *text = malloc(2 * strlen(ns) + 8), *to = text;

	if (text == NULL)
		die(1, "no memory");
	*to++ = '{';
	for (; *ns != '\0'; ns++) {
		if (strchr("*?[]\\^-", *ns) != NULL)
			*to++ = '\\';
		*to++ = *ns;
	}
	strcpy(to, "}:*");
	return text;
}

static unsigned long long
unlink_keys(struct server *s, const redisReply *keys)
{
	const char *words[1 + BATCH] = { "UNLINK" };
	size_t sizes[1 + BATCH] = { 6 };
	unsigned long long n = 0;
	redisReply *r;
	size_t i = 0;
	int k;

	while (i < keys->elements) {
		/* Keys may have any bytes. */
		for (k = 0; k < BATCH && i < keys->elements; k++) {
			sizes[1 + k] = keys->element[i]->len;
			words[1 + k] = keys->element[i++]->str;
		}
		r = server_ask_words(s, 1 + k, words, sizes);
		n += (unsigned long long)r->integer;
		freeReplyObject(r);
	}
	return n;
}

/* Two turns: SCAN may miss a key that comes during its round. */
static unsigned long long
unlink_all(struct server *s)
{
	char *match = scan_pattern(s), cursor[32] = "0";
	unsigned long long n = 0;
	redisReply *r;

	do {
		r = server_ask(s, "SCAN %s MATCH %s COUNT 1000", cursor,
			       match);
		if (r->type != REDIS_REPLY_ARRAY || r->elements != 2 ||
		    r->element[0]->str == NULL)
			die(1, "%s: an unexpected answer", s->where);
		snprintf(cursor, sizeof cursor, "%s", r->element[0]->str);
		n += unlink_keys(s, r->element[1]);
		freeReplyObject(r);
	} while (strcmp(cursor, "0") != 0);
	free(match);
	return n;
}

static int
run_clean(struct server *s, bool force)
{
	redisReply *r = server_ask(s, "EXISTS %s", server_key(s, "coord"));
	bool lives = r->integer != 0;
	unsigned long long n;
	char *who;

	freeReplyObject(r);
	if (lives && !force) {
		who = server_get(s, server_key(s, "coord"));
		die(1, "the namespace %s is in use by %s: close its cluster, "
		    "or see --force in evc-cluster(1)", s->address.ns,
		    who != NULL ? who : "something that is no coordinator");
	}
	n = unlink_all(s);
	n += unlink_all(s);
	printf("%llu keys of the namespace %s are deleted\n", n,
	       s->address.ns);
	return EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "force", no_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 }
	};
	bool json = false, force = false, is_status, is_clean;
	struct server s;
	int opt, code;

	keep_standard_places();
	/* A closed pipe or connection is an error, not a signal. */
	signal(SIGPIPE, SIG_IGN);
	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (opt) {
		case 'j':
			json = true;
			break;
		case 'f':
			force = true;
			break;
		case 'V':
			printf("evc-cluster %s\n", evc_version());
			exit_flushed(EXIT_SUCCESS);
		case 'h':
			usage(0);
		default:
			usage(2);
		}
	}
	if (argc - optind != 2)
		usage(2);
	is_status = strcmp(argv[optind], "status") == 0;
	is_clean = strcmp(argv[optind], "clean") == 0;
	if (!(is_status && !force) && !(is_clean && !json))
		usage(2);
	server_open(&s, argv[optind + 1]);
	code = is_status ? run_status(&s, json) : run_clean(&s, force);
	server_close(&s);
	exit_flushed(code);
}
