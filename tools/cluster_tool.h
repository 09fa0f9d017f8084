/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the parts of evc-cluster.
 *
 *   evc-cluster.c      the command line; clean
 *   cluster_server.c   one blocking connection to the server
 *   cluster_read.c     reads the namespace, for status
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
	char where[256];   /* the server's address */
	char version[64];  /* "Redis 7.0.15" */
	char policy[32];   /* maxmemory-policy; "": not known */
	/* bytes; "": not known; a limit of 0: none */
	char memory_used[24], memory_limit[24];
	char role[16];     /* "master" or "slave"; "": not known */
	char refusal[256]; /* the server's words when it refuses writes */
};

/* On failure ends the program with a message. */
void server_open(struct server *s, const char *uri);
void server_close(struct server *s);
/* A command in words, by a format of redisCommand; the caller adds "%s:%s" of a
   key.  An error ends the program. */
redisReply *server_ask(struct server *s, const char *fmt, ...);
redisReply *server_ask_words(struct server *s, int n, const char **words,
			     const size_t *sizes);
/* "{NS}:" and the rest; the next call but seven reuses the memory. */
const char *server_key(const struct server *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* As server_ask, but for a key of another type the error is the answer. */
redisReply *server_try(struct server *s, const char *fmt, ...);
/* A string, made plain; NULL: no string there.  For free(). */
char *server_get(struct server *s, const char *key);
/* Other writers of the server could send control bytes to our terminal: all but
   ends of lines become "?". */
char *plain(char *s);
/* ms until the key expires; -1: never; -2: no such key. */
long long server_pttl(struct server *s, const char *key);

/* ---- cluster_read.c ---- */

struct worker {
	unsigned index; /* in the whole cluster */
	long pid;
	char state[16];     /* "idle", "runs", "builds", "starting", "gone" */
	char function[192]; /* or the value that is built, with "\xNN" for
			       some bytes; "": none */
	unsigned long long n;
	double since;       /* seconds in this state; < 0: not known */
};

struct node {
	char *name;
	unsigned long long inc;
	long long lease;    /* ms left of the lease; < 0: no lease */
	/* entries on their way to the node; < 0: not known */
	long long entries;
	/* the coordinator's words about the node */
	bool is_told;
	char state[16];     /* "live", "leaving", "fenced" */
	char host[64];
	long pid;
	unsigned up;        /* workers that are up */
	unsigned given;     /* functions given to the node */
	unsigned long long bytes; /* bytes of these functions */
	struct worker *workers; /* the node's own words */
	unsigned n_workers;
};

struct status {
	char *version, *coordinator, *generation; /* NULL: no such key */
	long long lease; /* ms left of the coordinator's lease; -1: the key has
			    no end; -2: no key */
	long long events;    /* events not yet trimmed */
	long long variables;
	char *finished, *changes;
	char *state;         /* the coordinator's own lines, or NULL */
	struct node *nodes;
	unsigned n_nodes;
};

void status_read(struct server *s, struct status *ret);
void status_free(struct status *st);
/* The value behind a name in lines "name value"; NULL: no such name.  For
   free(). */
char *line_of(const char *lines, const char *name);
/* true: the text is a number, of digits alone.  NULL is none. */
bool number_of(const char *text, unsigned long long *ret);

/* ---- cluster_print.c ---- */

void status_print(const struct server *s, const struct status *st);
void status_print_json(const struct server *s, const struct status *st);

#endif
