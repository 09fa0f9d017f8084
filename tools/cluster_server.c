/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection to the server of an address, with blocking calls.
 * Called by: evc-cluster.c, cluster_read.c and cluster_print.c.
 * Locks: none; one thread.
 */
#include "cluster_tool.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_HIREDIS_SSL
#include <hiredis/hiredis_ssl.h>
#endif

#include "wire/uri.h"

#define PATIENCE 5 /* seconds */

static char too_late[320]; /* the message when the time is over */

static void
on_alarm(int signal)
{
	ssize_t n = write(STDERR_FILENO, too_late, strlen(too_late));

	(void)signal;
	(void)n;
	_exit(1);
}

/* A server that sends a byte now and then lets no read time out: so each whole
   answer has a time, until no_deadline(). */
static void
set_deadline(const struct server *s)
{
	snprintf(too_late, sizeof too_late,
		 "evc-cluster: %s: did not answer for %d s\n", s->where,
		 PATIENCE);
	plain(too_late);
	signal(SIGALRM, on_alarm);
	alarm(PATIENCE);
}

static void
no_deadline(void)
{
	alarm(0);
}

static redisContext *
connect_to(const struct redis_place *at)
{
	const struct timeval patience = { PATIENCE, 0 };
	redisContext *c = at->port ?
		redisConnectWithTimeout(at->host, (int)at->port, patience) :
		redisConnectUnixWithTimeout(at->host, patience);

	if (c != NULL && !c->err)
		redisSetTimeout(c, patience);
	return c;
}

static const char *
why_not(const redisContext *c)
{
	return c == NULL ? "no memory" : c->errstr;
}

/* The library's words, plus words for errors of blocking calls. */
static _Noreturn void
die_of(const struct server *s, const char *why)
{
	int err = s->c != NULL ? s->c->err : 0;

	if (err == REDIS_ERR_IO && (strstr(why, strerror(EAGAIN)) != NULL ||
				    strstr(why, strerror(ETIMEDOUT)) != NULL))
		die(1, "%s: did not answer for %d s", s->where, PATIENCE);
	/* A TLS alert has a hint of its own. */
	if (err == REDIS_ERR_PROTOCOL && strstr(why, "\\x15") == NULL)
		die(1, "%s: this is no Redis server: %s", s->where, why);
	die(1, "%s: %s%s", s->where, why, evc__redis_hint(&s->address, why));
}

/* false: the context says why. */
static bool
start_tls(const struct server *s, redisContext *c)
{
#ifdef HAVE_HIREDIS_SSL
	const struct redis_address *a = &s->address;
	bool is_secure;
	redisSSLContextError err = 0;
	redisSSLContext *ssl;

	redisInitOpenSSL();
	ssl = redisCreateSSLContext(a->ca, NULL, a->cert, a->key, a->tls_name,
				    &err);
	if (ssl == NULL)
		die(1, "%s: TLS: %s", s->where,
		    redisSSLContextGetError(err));
	is_secure = redisInitiateSSLWithContext(c, ssl) == REDIS_OK;
	redisFreeSSLContext(ssl);
	return is_secure;
#else
	(void)c;
	die(1, "%s: this hiredis has no TLS", s->where);
#endif
}

/* The answer of one Sentinel; NULL: none. */
static redisReply *
ask_sentinel(const struct server *s, redisContext *to)
{
	redisReply *r = NULL;

	if (to == NULL || to->err)
		return NULL;
	set_deadline(s);
	if (!s->address.tls || start_tls(s, to))
		r = redisCommand(to, "SENTINEL get-master-addr-by-name %s",
				 s->address.master);
	no_deadline();
	if (r != NULL && r->type == REDIS_REPLY_ERROR &&
	    strncmp(r->str, "ERR unknown command", 19) == 0)
		die(1, "%s: this is no Sentinel, and the address has master=",
		    s->where);
	return r;
}

/* Ask the Sentinels in turn. */
static redisContext *
connect_by_sentinel(const struct server *s)
{
	const struct redis_address *a = &s->address;
	struct redis_place master;
	redisContext *c = NULL, *to;
	redisReply *r;
	unsigned i;

	for (i = 0; i < a->n_sentinels; i++) {
		to = connect_to(&a->sentinels[i]);
		r = ask_sentinel(s, to);
		if (r != NULL && r->type == REDIS_REPLY_ARRAY &&
		    r->elements == 2 && r->element[0]->str != NULL &&
		    r->element[1]->str != NULL) {
			master.host = r->element[0]->str;
			master.port = (unsigned)atoi(r->element[1]->str);
			c = connect_to(&master);
		}
		if (r != NULL)
			freeReplyObject(r);
		if (to != NULL)
			redisFree(to);
		if (c != NULL && !c->err)
			return c;
		if (c != NULL)
			redisFree(c);
		c = NULL;
	}
	die(1, "no Sentinel knows a master \"%s\" that answers", a->master);
}

/* The end of a deadline; without an answer the program ends. */
static redisReply *
check_received(struct server *s, redisReply *r)
{
	no_deadline();
	if (r == NULL)
		die_of(s, s->c->errstr);
	return r;
}

static void
log_in(struct server *s)
{
	const struct redis_address *a = &s->address;

	/* Some users have no password. */
	if (a->user != NULL)
		freeReplyObject(server_ask(s, "AUTH %s %s", a->user,
					   a->password != NULL ? a->password :
								 ""));
	else if (a->password != NULL)
		freeReplyObject(server_ask(s, "AUTH %s", a->password));
	if (a->database != 0)
		freeReplyObject(server_ask(s, "SELECT %u", a->database));
}

static void
read_version(struct server *s)
{
	redisReply *r = server_ask(s, "INFO server");
	const char *name = "Redis", *at;
	size_t n;

	at = r->str == NULL ? NULL : strstr(r->str, "valkey_version:");
	if (at != NULL)
		name = "Valkey";
	else if (r->str != NULL)
		at = strstr(r->str, "redis_version:");
	if (at == NULL)
		die(1, "%s: this is no Redis server: INFO has no redis_version",
		    s->where);
	at = strchr(at, ':') + 1;
	n = strcspn(at, "\r\n");
	snprintf(s->version, sizeof s->version, "%s %.*s", name,
		 n < 32 ? (int)n : 32, at);
	freeReplyObject(r);
}

/* The value of `name`, which ends with a colon; without one ret stays "". */
static void
read_info(struct server *s, const char *section, const char *name, char *ret,
	  size_t size)
{
	redisReply *r = server_ask(s, "INFO %s", section);
	const char *at = r->str != NULL ? strstr(r->str, name) : NULL;

	if (at != NULL) {
		at += strlen(name);
		snprintf(ret, size, "%.*s", (int)strcspn(at, "\r\n"), at);
	}
	freeReplyObject(r);
}

/* A write that changes nothing: a server that refuses all writes says why.  A user
   who may not write is told nothing. */
static void
read_refusal(struct server *s)
{
	redisReply *r;

	set_deadline(s);
	r = check_received(s, redisCommand(s->c, "DEL %s",
					   server_key(s, "none")));
	if (r->type == REDIS_REPLY_ERROR && strncmp(r->str, "NOPERM", 6) != 0)
		snprintf(s->refusal, sizeof s->refusal, "%s", plain(r->str));
	freeReplyObject(r);
}

/* As evc_cluster_open does it. */
static void
check_options(char *const *options)
{
	const char *const *known;
	size_t n;

	for (; *options != NULL; options++) {
		n = strcspn(*options, "=");
		for (known = evc__redis_options; *known != NULL; known++)
			if (strncmp(*known, *options, n) == 0 &&
			    (*known)[n] == '\0')
				break;
		if (*known == NULL)
			die(2, "the address has an option \"%.*s\" that is not"
			    " known", (int)(n < 60 ? n : 60), *options);
	}
}

void
server_open(struct server *s, const char *uri)
{
	struct cluster_uri u;
	struct text where;
	evc_status st;

	memset(s, 0, sizeof *s);
	if (evc__uri_parse(uri, &u) < 0)
		die(2, "%s", evc_last_error());
	if (strcmp(u.scheme, "redis") != 0 && strcmp(u.scheme, "rediss") != 0 &&
	    strcmp(u.scheme, "unix") != 0)
		die(2, "\"%.60s\" is no address of a Redis server: "
		    "redis://HOST:PORT/NAMESPACE", uri);
	check_options(u.options);
	st = evc__redis_address(uri, u.place, (const char *const *)u.options,
				&s->address);
	if (st < 0)
		die(2, "%s", evc_last_error());
	if (s->address.fresh)
		die(2, "option fresh removes the variables when a program opens"
		       " the address; this opens none (see clean)");
	evc__uri_free(&u);
	where = evc__text_in(s->where, sizeof s->where);
	evc__redis_address_name(&s->address, &where);
	s->c = s->address.master != NULL ? connect_by_sentinel(s) :
					   connect_to(&s->address.at);
	if (s->c == NULL || s->c->err)
		die_of(s, why_not(s->c));
	set_deadline(s);
	if (s->address.tls && !start_tls(s, s->c))
		die_of(s, s->c->errstr);
	no_deadline();
	log_in(s);
	read_version(s);
	read_info(s, "memory", "maxmemory_policy:", s->policy,
		  sizeof s->policy);
	read_info(s, "memory", "used_memory:", s->memory_used,
		  sizeof s->memory_used);
	read_info(s, "memory", "maxmemory:", s->memory_limit,
		  sizeof s->memory_limit);
	read_info(s, "replication", "role:", s->role, sizeof s->role);
	read_refusal(s);
}

void
server_close(struct server *s)
{
	redisFree(s->c);
	evc__redis_address_free(&s->address);
}

static redisReply *
check_reply(struct server *s, redisReply *r)
{
	if (check_received(s, r)->type == REDIS_REPLY_ERROR)
		die_of(s, r->str);
	return r;
}

redisReply *
server_ask(struct server *s, const char *fmt, ...)
{
	redisReply *r;
	va_list ap;

	set_deadline(s);
	va_start(ap, fmt);
	r = redisvCommand(s->c, fmt, ap);
	va_end(ap);
	return check_reply(s, r);
}

redisReply *
server_ask_words(struct server *s, int n, const char **words,
		 const size_t *sizes)
{
	set_deadline(s);
	return check_reply(s, redisCommandArgv(s->c, n, words, sizes));
}

const char *
server_key(const struct server *s, const char *fmt, ...)
{
	static char room[8][512];
	static unsigned next;
	char *key = room[next++ % 8];
	va_list ap;
	int n;

	n = snprintf(key, sizeof room[0], "{%s}:", s->address.ns);
	va_start(ap, fmt);
	vsnprintf(key + n, sizeof room[0] - (size_t)n, fmt, ap);
	va_end(ap);
	return key;
}

redisReply *
server_try(struct server *s, const char *fmt, ...)
{
	redisReply *r;
	va_list ap;

	set_deadline(s);
	va_start(ap, fmt);
	r = redisvCommand(s->c, fmt, ap);
	va_end(ap);
	check_received(s, r);
	/* A key of another type counts as missing; a forbidden command counts
	   as not known. */
	if (r->type == REDIS_REPLY_ERROR && strncmp(r->str, "WRONGTYPE", 9) != 0)
		die_of(s, r->str);
	return r;
}

char *
plain(char *s)
{
	unsigned char *p = (unsigned char *)s;

	for (; *p != '\0'; p++) {
		/* UTF-8 has control characters of two bytes. */
		if ((*p < ' ' && *p != '\n') || *p == 0x7f ||
		    (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0))
			*p = '?';
	}
	return s;
}

char *
server_get(struct server *s, const char *key)
{
	redisReply *r = server_try(s, "GET %s", key);
	char *text = NULL;

	if (r->type == REDIS_REPLY_STRING) {
		text = strdup(r->str);
		if (text == NULL)
			die(1, "no memory");
		plain(text);
	}
	freeReplyObject(r);
	return text;
}

long long
server_pttl(struct server *s, const char *key)
{
	redisReply *r = server_ask(s, "PTTL %s", key);
	long long ms = r->type == REDIS_REPLY_INTEGER ? r->integer : -2;

	freeReplyObject(r);
	return ms;
}
