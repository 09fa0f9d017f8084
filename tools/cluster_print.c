/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Status, for people and for programs.
 * Called by: evc-cluster.c.
 * Locks: none; one thread.
 */
#include "cluster_tool.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"

#define NAMES 13 /* columns before the names */

/* Prints plain characters only, so other programs' bytes from the server stay
   within their line. */
__attribute__((format(printf, 1, 2))) static void
say(const char *fmt, ...)
{
	char line[1024];
	struct text t = evc__lines_in(line, sizeof line);
	va_list ap;

	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	fputs(line, stdout);
}

static void
begin_line(const char *name)
{
	say("%-*s", NAMES, name);
}

/* "4.9 s", "2 min", "3 h", "5 d" */
static const char *
print_age(double s, char *buf, size_t room)
{
	if (s < 0)
		s = 0;
	if (s < 100)
		snprintf(buf, room, "%.1f s", s);
	else if (s < 6000)
		snprintf(buf, room, "%.0f min", s / 60);
	else if (s < 360000)
		snprintf(buf, room, "%.0f h", s / 3600);
	else
		snprintf(buf, room, "%.0f d", s / 86400);
	return buf;
}

/* ---- text ---- */

static void
print_coordinator(const struct status *st)
{
	char *lease = line_of(st->state, "lease");
	double of = lease != NULL ? strtod(lease, NULL) : 0;

	free(lease);
	begin_line("coordinator");
	if (st->version != NULL && strcmp(st->version, PROTOCOL_VERSION) != 0) {
		puts("not known: this evc-cluster is for protocol "
		     PROTOCOL_VERSION);
		return;
	}
	if (st->coordinator == NULL && st->lease != -2) {
		puts("not known: its key is no string");
		return;
	}
	if (st->coordinator == NULL) {
		say("none%s\n", st->state != NULL
					? "; the last one has left what follows"
					: "");
		return;
	}
	say("%s, generation %s", st->coordinator,
	       st->generation ? st->generation : "-");
	if (st->lease >= 0)
		say(", lease %.1f s", (double)st->lease / 1e3);
	if (st->lease >= 0 && of > 0 && of < 1e9)
		say(" of %.1f s", of);
	putchar('\n');
}

static void
print_functions(const struct status *st)
{
	char *queued = line_of(st->state, "queued");
	char *running = line_of(st->state, "running");
	char *done = line_of(st->state, "done");
	unsigned long long n_queued, n_running, n_done;

	if (number_of(queued, &n_queued) && number_of(running, &n_running) &&
	    number_of(done, &n_done)) {
		begin_line("functions");
		say("%llu queued, %llu running, %llu done\n", n_queued,
		    n_running, n_done);
	} else if (st->coordinator != NULL && st->state == NULL) {
		begin_line("functions");
		puts("not known: the coordinator has written nothing of late");
	}
	free(queued);
	free(running);
	free(done);
}

static bool
is_building(const struct worker *w)
{
	return strcmp(w->state, "builds") == 0;
}

static void
print_worker(const struct worker *w)
{
	unsigned long long behind = is_building(w) || w->n == 0 ? w->n :
								  w->n - 1;
	char buf[32];

	say("  %-4u ", w->index);
	if (w->pid > 0)
		say("pid %-8ld", w->pid);
	else
		say("%12s", "");
	say("%-9s", w->state);
	if (w->function[0])
		say("%s for %s", w->function,
		    print_age(w->since, buf, sizeof buf));
	else
		say("for %s", print_age(w->since, buf, sizeof buf));
	if (behind > 0)
		say(", %llu behind it", behind);
	putchar('\n');
}

static void
print_node(const struct node *n)
{
	unsigned i;

	putchar('\n');
	say("%s", n->name);
	if (n->is_told)
		say(", pid %ld on %s, %s", n->pid, n->host, n->state);
	if (n->lease >= 0)
		say(", lease %.1f s", (double)n->lease / 1e3);
	else
		fputs(", no lease: its workers have ended, or end now",
		      stdout);
	putchar('\n');
	if (n->is_told)
		say("  %u workers are up, %u functions, %llu bytes\n", n->up,
		       n->given, n->bytes);
	for (i = 0; i < n->n_workers; i++)
		print_worker(&n->workers[i]);
}

/* The coordinator names some nodes and counts all. */
static unsigned
nodes_more(const struct status *st)
{
	char *all = line_of(st->state, "nodes");
	unsigned long long n;
	bool more = number_of(all, &n) && n > st->n_nodes && n < 1000000;

	free(all);
	return more ? (unsigned)n - st->n_nodes : 0;
}

void
status_print(const struct server *s, const struct status *st)
{
	unsigned i, workers = 0;

	for (i = 0; i < st->n_nodes; i++)
		workers += st->nodes[i].n_workers;
	begin_line("namespace");
	say("%s at %s, %s", s->address.ns, s->where, s->version);
	if (st->version != NULL)
		say(", protocol %s", st->version);
	putchar('\n');
	if (s->policy[0] != '\0' && strcmp(s->policy, "noeviction") != 0) {
		begin_line("server");
		say("its maxmemory-policy is %s: coordinator and nodes need"
		    " noeviction",
		    s->policy);
		putchar('\n');
	}
	if (strtoull(s->memory_limit, NULL, 10) > 0 &&
	    strtoull(s->memory_used, NULL, 10) >=
		    strtoull(s->memory_limit, NULL, 10)) {
		begin_line("server");
		say("it has no memory left: %s bytes are used, and its maxmemory"
		    " is %s\n",
		    s->memory_used, s->memory_limit);
	}
	if (strcmp(s->role, "slave") == 0) {
		begin_line("server");
		say("it is a replica, which no coordinator and no node can"
		    " use\n");
	} else if (s->refusal[0] != '\0') {
		begin_line("server");
		say("it refuses writes: %s\n", s->refusal);
	}
	print_coordinator(st);
	print_functions(st);
	begin_line("nodes");
	/* Without a coordinator nodes may wait unseen. */
	if (st->n_nodes > 0 || st->coordinator == NULL)
		say("%u with %u workers\n", st->n_nodes, workers);
	else
		puts("none: evc-worker(1) is one, and what calls"
		     " evc_worker_main(3) with this address");
	begin_line("variables");
	if (st->variables >= 0)
		say("%lld", st->variables);
	else
		say("not known: their key is no hash");
	if (st->changes != NULL)
		say(", %s changes", st->changes);
	if (st->finished != NULL)
		say(", %s transactional functions", st->finished);
	putchar('\n');
	for (i = 0; i < st->n_nodes; i++)
		print_node(&st->nodes[i]);
	if (nodes_more(st) > 0)
		printf("%u more nodes are not named\n", nodes_more(st));
}

/* ---- JSON ---- */

static void
json_count(struct evc__json *j, const char *key, long long n)
{
	evc__json_number_if(j, key, n >= 0, (uint64_t)n);
}

static void
json_digits(struct evc__json *j, const char *key, const char *digits)
{
	unsigned long long n;
	bool is = number_of(digits, &n);

	evc__json_number_if(j, key, is, is ? n : 0);
}

static void
json_line(struct evc__json *j, const struct status *st, const char *name)
{
	char *value = line_of(st->state, name);

	json_digits(j, name, value);
	free(value);
}

static void
json_lease(struct evc__json *j, long long ms)
{
	evc__json_seconds_if(j, "lease", ms < 0 ? -1 : (double)ms / 1e3);
}

/* The name of the function or per-worker value, with each "\xNN" as its byte. */
static void
json_name(struct evc__json *j, const struct worker *w)
{
	char name[sizeof w->function], *to = name;
	const char *at = w->function;
	unsigned byte;
	int n;

	while (*at != '\0') {
		n = 0;
		if (sscanf(at, "\\x%2x%n", &byte, &n) == 1 && n == 4) {
			*to++ = (char)byte;
			at += n;
		} else
			*to++ = *at++;
	}
	*to = '\0';
	evc__json_string_if(j, "function", is_building(w) ? "" : name);
	evc__json_string_if(j, "builds", is_building(w) ? name : "");
}

static void
json_node(struct evc__json *j, const struct node *n)
{
	const struct worker *w;

	evc__json_begin(j, NULL, "{");
	evc__json_string(j, "name", n->name);
	evc__json_number_if(j, "life", n->is_told || n->lease >= 0, n->inc);
	evc__json_string_if(j, "state", n->state);
	evc__json_string_if(j, "host", n->host);
	evc__json_number_if(j, "pid", n->is_told, (uint64_t)n->pid);
	json_lease(j, n->lease);
	evc__json_number_if(j, "up", n->is_told, n->up);
	evc__json_number_if(j, "functions", n->is_told, n->given);
	evc__json_number_if(j, "bytes", n->is_told, n->bytes);
	json_count(j, "entries", n->entries);
	evc__json_begin(j, "workers", "[");
	for (w = n->workers; w < n->workers + n->n_workers; w++) {
		evc__json_begin(j, NULL, "{");
		evc__json_number(j, "worker", w->index);
		evc__json_number_if(j, "pid", w->pid > 0, (uint64_t)w->pid);
		evc__json_string(j, "state", w->state);
		json_name(j, w);
		evc__json_number(j, "functions", w->n);
		evc__json_seconds_if(j, "since", w->since);
		evc__json_end(j, "}");
	}
	evc__json_end(j, "]");
	evc__json_end(j, "}");
}

static void
json_all(struct evc__json *j, const struct server *s, const struct status *st)
{
	unsigned i;

	evc__json_begin(j, NULL, "{");
	evc__json_string(j, "namespace", s->address.ns);
	evc__json_string(j, "server", s->where);
	evc__json_string(j, "server_version", s->version);
	evc__json_string(j, "maxmemory_policy",
			 s->policy[0] != '\0' ? s->policy : NULL);
	evc__json_string(j, "server_role", s->role[0] != '\0' ? s->role : NULL);
	evc__json_string(j, "refusal",
			 s->refusal[0] != '\0' ? s->refusal : NULL);
	json_digits(j, "memory_used", s->memory_used);
	json_digits(j, "memory_limit", s->memory_limit);
	json_digits(j, "protocol", st->version);
	evc__json_string(j, "coordinator", st->coordinator);
	json_digits(j, "generation", st->generation);
	json_lease(j, st->lease);
	json_line(j, st, "queued");
	json_line(j, st, "running");
	json_line(j, st, "done");
	json_count(j, "events", st->events);
	json_count(j, "variables", st->variables);
	json_digits(j, "changes", st->changes);
	json_digits(j, "finished", st->finished);
	evc__json_begin(j, "nodes", "[");
	for (i = 0; i < st->n_nodes; i++)
		json_node(j, &st->nodes[i]);
	evc__json_end(j, "]");
	json_count(j, "nodes_more", nodes_more(st));
	evc__json_end(j, "}");
}

void
status_print_json(const struct server *s, const struct status *st)
{
	struct evc__json j = { 0 };
	struct text t = evc__text_in(NULL, 0);
	size_t n;
	char *buf;

	/* A first pass for the length. */
	j.t = &t;
	json_all(&j, s, st);
	n = t.len + 1;
	buf = malloc(n);
	if (buf == NULL)
		die(1, "no memory");
	t = evc__text_in(buf, n);
	j = (struct evc__json){ .t = &t };
	json_all(&j, s, st);
	puts(buf);
	free(buf);
}
