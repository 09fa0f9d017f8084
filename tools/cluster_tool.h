/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of evc-cluster know of each other.
 *
 *   evc-cluster.c      the command line; clean
 *   cluster_server.c   one blocking connection to the server
 *   cluster_read.c     what stands in the namespace, for status
 *   cluster_print.c    status as text and as JSON
 */
#ifndef TOOLS_CLUSTER_TOOL_H
#define TOOLS_CLUSTER_TOOL_H

#include <stdio.h>

#include "redis/client/redis.h"

_Noreturn void die(int status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- cluster_server.c ---- */

struct server {
	struct redis_address address;
	redisContext *c;
	char where[256];   /* its address */
	char version[64];  /* "Redis 7.0.15" */
	char policy[32];   /* maxmemory-policy; "": not known */
};

/* Ends the program, with what was wrong, when it cannot be had. */
void server_open(struct server *s, const char *uri);
void server_close(struct server *s);
/* A command whose words come by a format of redisCommand; "%s:%s" of a key is
   the caller's.  An error ends the program. */
redisReply *server_ask(struct server *s, const char *fmt, ...);
redisReply *server_ask_words(struct server *s, int n, const char **words,
			     const size_t *sizes);
/* "{NS}:" and the rest; the next call but seven uses its room. */
const char *server_key(const struct server *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same, but for a key of another type the error is the answer. */
redisReply *server_try(struct server *s, const char *fmt, ...);
/* A string, made plain; NULL: it is none.  For free(). */
char *server_get(struct server *s, const char *key);
/* Whoever may write there could else talk to our terminal: control bytes but the
   ends of lines become "?". */
char *plain(char *s);
/* ms until it ends by itself; -1: never; -2: it is not there. */
long long server_pttl(struct server *s, const char *key);

/* ---- cluster_read.c ---- */

struct worker {
	unsigned index; /* in the cluster */
	long pid;
	char state[16];     /* "idle", "runs", "starting", "gone" */
	char function[192]; /* with "\xNN" for some bytes; "": none */
	unsigned long long n;
	double since;       /* seconds in it; < 0: not known */
};

struct node {
	char *name;
	unsigned long long inc;
	long long lease;    /* ms that are left of it; < 0: it has none */
	long long entries;  /* on their way to it; < 0: not known */
	/* what the coordinator says of it: */
	bool is_told;
	char state[16];     /* "live", "leaving", "fenced" */
	char host[64];
	long pid;
	unsigned up;        /* of its workers */
	unsigned given;     /* functions it has */
	unsigned long long bytes; /* of those */
	struct worker *workers; /* what it says itself */
	unsigned n_workers;
};

struct status {
	char *version, *coordinator, *generation; /* NULL: there is none */
	long long lease;     /* ms left of the coordinator's; < 0 */
	long long events;    /* not yet trimmed */
	long long variables;
	char *finished, *changes;
	char *state;         /* of the coordinator, as it stands there; NULL */
	struct node *nodes;
	unsigned n_nodes;
};

void status_read(struct server *s, struct status *ret);
void status_free(struct status *st);
/* The value behind a name in lines "name value"; NULL: there is none.  For
   free(). */
char *line_of(const char *lines, const char *name);

/* ---- cluster_print.c ---- */

void status_print(const struct server *s, const struct status *st);
void status_print_json(const struct server *s, const struct status *st);

#endif
