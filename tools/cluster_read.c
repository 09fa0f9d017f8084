/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a namespace for status.  No byte of the namespace is trusted: a key
 * with an unexpected value shows as a missing key.
 * Called by: evc-cluster.c and cluster_print.c.
 * Locks: none; one thread.
 */
#include "cluster_tool.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *
must(void *p)
{
	if (p == NULL)
		die(1, "no memory");
	return p;
}

static char *
copy_text(const char *s)
{
	return must(strdup(s));
}

/* < 0: no length, or no access. */
static long long
read_length(struct server *s, const char *command, const char *key)
{
	redisReply *r = server_try(s, "%s %s", command, key);
	long long n = r->type == REDIS_REPLY_INTEGER ? r->integer : -1;

	freeReplyObject(r);
	return n;
}

/* NULL: no such field. */
static char *
read_field(struct server *s, const char *key, const char *name)
{
	redisReply *r = server_try(s, "HGET %s %s", key, name);
	char *text =
		r->type == REDIS_REPLY_STRING ? plain(copy_text(r->str)) : NULL;

	freeReplyObject(r);
	return text;
}

/* ---- lines ---- */

char *
line_of(const char *lines, const char *name)
{
	size_t n = strlen(name);
	const char *at = lines;

	while (at != NULL && *at != '\0') {
		if (strncmp(at, name, n) == 0 && at[n] == ' ')
			return must(strndup(at + n + 1,
					    strcspn(at + n + 1, "\n")));
		at = strchr(at, '\n');
		at = at != NULL ? at + 1 : NULL;
	}
	return NULL;
}

/* *at is behind the number then, and behind a blank. */
static bool
take_number(const char **at, unsigned long long most, unsigned long long *ret)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret = strtoull(*at, &end, 10);
	if (errno != 0 || *ret > most || strchr(" \n", *end) == NULL)
		return false;
	*at = *end == ' ' ? end + 1 : end;
	return true;
}

/* The same with a word that is no number. */
static bool
take_word(const char **at, char *buf, size_t room)
{
	size_t n = strcspn(*at, " \n");

	if (n == 0 || n >= room)
		return false;
	memcpy(buf, *at, n);
	buf[n] = '\0';
	*at += n + ((*at)[n] == ' ');
	return true;
}

bool
number_of(const char *text, unsigned long long *ret)
{
	return text != NULL && take_number(&text, ULLONG_MAX, ret) &&
	       *text == '\0';
}

/* ---- nodes ---- */

static struct node *
node_named(struct status *st, const char *name, size_t n)
{
	struct node *node;
	unsigned i;

	for (i = 0; i < st->n_nodes; i++)
		if (strlen(st->nodes[i].name) == n &&
		    memcmp(st->nodes[i].name, name, n) == 0)
			return &st->nodes[i];
	st->nodes = must(realloc(st->nodes, (st->n_nodes + 1) *
				 sizeof *st->nodes));
	node = &st->nodes[st->n_nodes++];
	*node = (struct node){ .name = must(strndup(name, n)),
			       .lease = -1, .entries = -1 };
	return node;
}

/* "WORKER PID STATE FUNCTION N SINCE", one line for each worker. */
static void
read_workers(struct node *node, const char *lines)
{
	unsigned long long index, pid, since, n;
	struct timespec now;
	struct worker *w;
	char state[sizeof w->state], function[sizeof w->function];
	const char *at = lines;

	clock_gettime(CLOCK_REALTIME, &now);
	while (at != NULL && *at != '\0') {
		if (take_number(&at, UINT_MAX, &index) &&
		    take_number(&at, INT_MAX, &pid) &&
		    take_word(&at, state, sizeof state) &&
		    take_word(&at, function, sizeof function) &&
		    take_number(&at, ULLONG_MAX, &n) &&
		    take_number(&at, ULLONG_MAX, &since)) {
			node->workers = must(realloc(node->workers,
						     (node->n_workers + 1) *
						     sizeof *w));
			w = &node->workers[node->n_workers++];
			*w = (struct worker){
				.index = (unsigned)index, .pid = (long)pid,
				.n = n,
				.since = (double)now.tv_sec +
					 (double)now.tv_nsec / 1e9 -
					 (double)since / 1e3,
			};
			strcpy(w->state, state);
			if (strcmp(function, "-") != 0)
				strcpy(w->function, function);
		}
		at = strchr(at, '\n');
		at = at != NULL ? at + 1 : NULL;
	}
}

static void
read_runs(struct server *s, struct status *st)
{
	redisReply *r = server_try(s, "HGETALL %s",
				   server_key(s, "%s:runs", st->generation));
	redisReply *name, *lines;
	struct node *node;
	size_t i;

	for (i = 0; r->type == REDIS_REPLY_ARRAY && i + 1 < r->elements;
	     i += 2) {
		name = r->element[i];
		lines = r->element[i + 1];
		if (name->str == NULL || lines->str == NULL)
			continue;
		node = node_named(st, plain(name->str), strlen(name->str));
		read_workers(node, plain(lines->str));
	}
	freeReplyObject(r);
}

/* "NAME INC HOST PID WORKERS UP GIVEN BYTES STATE" */
static void
read_told_line(struct status *st, const char *line)
{
	size_t n = strcspn(line, " \n");
	const char *at = line + n + (line[n] == ' ');
	unsigned long long pid, workers, up, given;
	struct node *node, told;

	if (n == 0 || !take_number(&at, ULLONG_MAX, &told.inc) ||
	    !take_word(&at, told.host, sizeof told.host) ||
	    !take_number(&at, INT_MAX, &pid) ||
	    !take_number(&at, UINT_MAX, &workers) ||
	    !take_number(&at, UINT_MAX, &up) ||
	    !take_number(&at, UINT_MAX, &given) ||
	    !take_number(&at, ULLONG_MAX, &told.bytes) ||
	    !take_word(&at, told.state, sizeof told.state))
		return;
	node = node_named(st, line, n);
	/* Of two lives the later counts; the former has no lease any more. */
	if (node->is_told && node->inc > told.inc)
		return;
	node->is_told = true;
	node->inc = told.inc;
	node->pid = (long)pid;
	node->up = (unsigned)up;
	node->given = (unsigned)given;
	node->bytes = told.bytes;
	strcpy(node->host, told.host);
	strcpy(node->state, told.state);
}

/* The coordinator's words about its nodes. */
static void
read_told(struct status *st)
{
	const char *at = st->state;

	while (at != NULL && *at != '\0') {
		if (strncmp(at, "node ", 5) == 0)
			read_told_line(st, at + 5);
		at = strchr(at, '\n');
		at = at != NULL ? at + 1 : NULL;
	}
}

/* The node's lease, and entries on their way to the node. */
static void
read_node(struct server *s, const struct status *st, struct node *node)
{
	const char *key = server_key(s, "lease:%s", node->name);
	char *lease = server_get(s, key);
	unsigned long long g, inc;

	if (lease == NULL)
		return;
	if (sscanf(lease, "%llu %llu", &g, &inc) == 2 &&
	    g == strtoull(st->generation, NULL, 10)) {
		node->inc = inc;
		node->lease = server_pttl(s, key);
		node->entries = read_length(s, "XLEN",
					    server_key(s, "%s:to:%s.%llu",
						       st->generation,
						       node->name, inc));
	}
	free(lease);
}

/* A node without a lease that the coordinator does not know is over: its last
   workers are no news. */
static void
drop_former(struct status *st)
{
	unsigned i, kept = 0;

	for (i = 0; i < st->n_nodes; i++) {
		if (st->nodes[i].is_told || st->nodes[i].lease >= 0) {
			st->nodes[kept++] = st->nodes[i];
			continue;
		}
		free(st->nodes[i].name);
		free(st->nodes[i].workers);
	}
	st->n_nodes = kept;
}

/* ---- all of it ---- */

void
status_read(struct server *s, struct status *st)
{
	const char *coord = server_key(s, "coord");
	unsigned i;

	*st = (struct status){ .events = -1 };
	st->version = server_get(s, server_key(s, "ver"));
	st->coordinator = server_get(s, coord);
	st->lease = server_pttl(s, coord);
	st->generation = server_get(s, server_key(s, "gen"));
	st->variables = read_length(s, "HLEN", server_key(s, "var"));
	st->finished = read_field(s, server_key(s, "count"), "finished");
	st->changes = read_field(s, server_key(s, "count"), "changes");
	if (st->generation == NULL)
		return;
	st->events =
		read_length(s, "XLEN", server_key(s, "%s:ev", st->generation));
	st->state = server_get(s, server_key(s, "%s:state", st->generation));
	read_runs(s, st);
	read_told(st);
	for (i = 0; i < st->n_nodes; i++)
		read_node(s, st, &st->nodes[i]);
	drop_former(st);
}

void
status_free(struct status *st)
{
	unsigned i;

	for (i = 0; i < st->n_nodes; i++) {
		free(st->nodes[i].name);
		free(st->nodes[i].workers);
	}
	free(st->nodes);
	free(st->version);
	free(st->coordinator);
	free(st->generation);
	free(st->finished);
	free(st->changes);
	free(st->state);
}
