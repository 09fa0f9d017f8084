/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses: what they are taken apart to, what is refused and with which words,
 * and that no password is in any of those.
 */
#include "../support/api_util.h"

#include <sys/stat.h>

#include "redis/engine/engine.h"

#define SECRET "open-sesame"

static struct redis_address a;

/* As a cluster would take a uri apart. */
static evc_status
parse(const char *uri)
{
	static char buf[1024], place[1024];
	const char *options[24] = { NULL };
	char *at, *save = NULL;
	unsigned n = 0;

	snprintf(buf, sizeof(buf), "%s", uri);
	at = strchr(buf, '?');
	if (at != NULL) {
		*at++ = '\0';
		for (at = strtok_r(at, "&", &save); at != NULL;
		     at = strtok_r(NULL, "&", &save))
			options[n++] = at;
	}
	snprintf(place, sizeof(place), "%s", strstr(buf, "://") + 3);
	return evc__redis_address(uri, place, options, &a);
}

static void
good(const char *uri, const char *host, unsigned port, const char *ns,
     const char *name)
{
	char text[512];
	struct text t = evc__text_in(text, sizeof(text));
	evc_status st = parse(uri);

	ck_assert_msg(st == 0, "%s: %s", uri, evc_last_error());
	ck_assert_str_eq(a.at.host, host);
	ck_assert_uint_eq(a.at.port, port);
	ck_assert_str_eq(a.ns, ns);
	evc__redis_address_name(&a, &t);
	ck_assert_str_eq(text, name);
	evc__redis_address_free(&a);
	ck_assert_ptr_null(a.ns);
}

static void
bad(evc_status code, const char *uri, const char *why)
{
	evc_status st = parse(uri);

	ck_assert_msg(st == -code, "%s: %d", uri, st);
	ck_assert_msg(strstr(evc_last_error(), why) != NULL,
		      "%s: \"%s\" has no \"%s\"", uri, evc_last_error(), why);
	ck_assert_ptr_null(strstr(evc_last_error(), SECRET));
}

START_TEST(places)
{
	char uri[400];

	good("redis://10.0.0.1:7000/ns", "10.0.0.1", 7000, "ns",
	     "10.0.0.1:7000");
	good("redis://host/a.B_c:d-9", "host", 6379, "a.B_c:d-9", "host:6379");
	good("redis://[::1]/ns", "::1", 6379, "ns", "[::1]:6379");
	good("redis://[fe80::1%eth0]:1/ns", "fe80::1%eth0", 1, "ns",
	     "[fe80::1%eth0]:1");
	good("unix:///run/redis.sock/ns", "/run/redis.sock", 0, "ns",
	     "/run/redis.sock");
	good("unix:///a/b@c/ns", "/a/b@c", 0, "ns", "/a/b@c");
	bad(EVC_INVALID_ARGUMENT, "redis://host", "/NAMESPACE");
	bad(EVC_INVALID_ARGUMENT, "redis://host/", "namespace");
	bad(EVC_INVALID_ARGUMENT, "redis://host/a/b", "namespace");
	bad(EVC_INVALID_ARGUMENT, "redis://host/a{b", "namespace");
	bad(EVC_INVALID_ARGUMENT, "redis://host/a b", "namespace");
	bad(EVC_INVALID_ARGUMENT, "redis://host/\xc3\xa4", "namespace");
	bad(EVC_INVALID_ARGUMENT, "redis:///ns", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "redis://:1/ns", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "redis://host:/ns", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "redis://host:0/ns", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "redis://host:65536/ns", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "redis://host:99999999999/ns", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "redis://host:1x/ns", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "redis://::1/ns", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "redis://[::1/ns", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "redis://[::1]1/ns", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "redis://[]:1/ns", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "redis://a b/ns", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "unix://run/redis/ns", "unix:///PATH");
	bad(EVC_INVALID_ARGUMENT, "unix:///ns", "unix:///PATH");
	bad(EVC_INVALID_ARGUMENT, "unix:///run/redis/", "namespace");
	memset(uri, 'n', sizeof(uri));
	memcpy(uri, "redis://h/", 10);
	uri[10 + 100] = '\0';
	OK(parse(uri));
	evc__redis_address_free(&a);
	uri[10 + 100] = 'n';
	uri[10 + 101] = '\0';
	bad(EVC_INVALID_ARGUMENT, uri, "1 to 100");
	memcpy(uri, "unix:///aa", 10);
	strcpy(uri + 120, "/ns");
	bad(EVC_INVALID_ARGUMENT, uri, "107 bytes");
}
END_TEST

START_TEST(options)
{
	OK(parse("redis://h/ns?user=joe&db=15&trust-aof=1&once=1"));
	ck_assert_str_eq(a.user, "joe");
	ck_assert_uint_eq(a.database, 15);
	ck_assert(a.trust_aof && a.once && !a.fresh && !a.tls);
	ck_assert_ptr_null(a.password);
	evc__redis_address_free(&a);
	OK(parse("redis://h/ns?trust-aof=0&once=0&db=0"));
	ck_assert(!a.trust_aof && !a.once);
	evc__redis_address_free(&a);
	OK(parse("redis://h/ns?fresh=1"));
	ck_assert(a.fresh);
	evc__redis_address_free(&a);
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns?fresh=yes", "fresh");
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns?db=x", "db");
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns?db=-1", "db");
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns?db=65536", "db");
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns?once=2", "once");
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns?trust-aof=yes", "trust-aof");
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns?user=", "user");
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns?user=a&user=b", "twice");
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns?ca=/x", "rediss://");
#ifndef HAVE_HIREDIS_SSL
	bad(EVC_UNIMPLEMENTED, "rediss://h/ns", "no TLS");
#else
	OK(parse("rediss://h/ns?ca=/a&cert=/b&key=/c&tls-name=d"));
	ck_assert(a.tls);
	ck_assert_str_eq(a.ca, "/a");
	ck_assert_str_eq(a.tls_name, "d");
	evc__redis_address_free(&a);
	bad(EVC_INVALID_ARGUMENT, "rediss://h/ns?cert=/b", "cert and key");
#endif
}
END_TEST

START_TEST(sentinels)
{
	OK(parse("redis://h/ns?master=mine&also=h2&also=[::1]:99"));
	ck_assert_str_eq(a.master, "mine");
	ck_assert_uint_eq(a.n_sentinels, 3);
	ck_assert_str_eq(a.sentinels[0].host, "h");
	ck_assert_uint_eq(a.sentinels[0].port, 26379);
	ck_assert_str_eq(a.sentinels[1].host, "h2");
	ck_assert_uint_eq(a.sentinels[1].port, 26379);
	ck_assert_str_eq(a.sentinels[2].host, "::1");
	ck_assert_uint_eq(a.sentinels[2].port, 99);
	evc__redis_address_free(&a);
	good("redis://h:1/ns?master=mine", "h", 1, "ns",
	     "master mine of Sentinel h:1");
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns?also=h2", "master");
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns?master=m&also=:1", "HOST:PORT");
	bad(EVC_INVALID_ARGUMENT, "unix:///a/b/ns?master=m", "Sentinel");
	bad(EVC_INVALID_ARGUMENT,
	    "redis://h/ns?master=m&also=1&also=2&also=3&also=4&also=5&also=6"
	    "&also=7&also=8",
	    "more than 8");
}
END_TEST

START_TEST(no_password_in_an_address)
{
	bad(EVC_INVALID_ARGUMENT, "redis://joe:" SECRET "@h/ns",
	    "password-file");
	bad(EVC_INVALID_ARGUMENT, "redis://:" SECRET "@h/ns", "password-file");
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns@" SECRET, "password-file");
}
END_TEST

/* What is said behind the text of a login that has failed. */
START_TEST(hints)
{
	static const struct {
		const char *uri, *why, *has;
	} all[] = {
		{ "redis://h/ns", "NOAUTH Authentication required.", "user=" },
		{ "redis://h/ns", "WRONGPASS invalid", "password-file=" },
		{ "redis://h/ns", "NOPERM this user", "Rights" },
		{ "redis://h/ns", "Connection reset by peer", "Redis server?" },
		{ "redis://h/ns", "Server closed the connection",
		  "for TLS: rediss://" },
		{ "unix:///s/ns", "Permission denied", "unixsocketperm" },
		{ "redis://h/ns", "Permission denied", NULL },
		{ "redis://h/ns", "Connection refused", NULL },
		{ "redis://h/ns", "no answer", NULL },
		{ "redis://h/ns", "LOADING Redis is loading", NULL },
#ifdef HAVE_HIREDIS_SSL
		{ "rediss://h/ns", "no answer", "for TLS?" },
		{ "rediss://h/ns", "TLS failed", "for TLS?" },
		{ "rediss://h/ns", "SSL_connect failed: (null)", "for TLS?" },
		{ "rediss://h/ns", "certificate verify failed", "see TLS in" },
#endif
	};
	const char *hint;
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		OK(parse(all[i].uri));
		hint = evc__redis_hint(&a, all[i].why);
		ck_assert_msg(all[i].has != NULL ?
				      strstr(hint, all[i].has) != NULL :
				      hint[0] == '\0',
			      "%s: \"%s\"", all[i].why, hint);
		evc__redis_address_free(&a);
	}
}
END_TEST

static char path[64];

static const char *
uri_of_file(const char *what, size_t n, mode_t mode)
{
	static char uri[128];
	int fd;

	if (path[0] != '\0')
		unlink(path);
	snprintf(path, sizeof(path), "/tmp/evcoord-address-%d", getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, what, n), (int)n);
	OK(fchmod(fd, mode));
	close(fd);
	snprintf(uri, sizeof(uri), "redis://h/ns?password-file=%s", path);
	return uri;
}

START_TEST(passwords)
{
	static char large[5000];
	char uri[128];

	OK(parse(uri_of_file(SECRET "\nmore\n", strlen(SECRET) + 6, 0600)));
	ck_assert_str_eq(a.password, SECRET);
	evc__redis_address_free(&a);
	OK(parse(uri_of_file(SECRET "\r\n", strlen(SECRET) + 2, 0400)));
	ck_assert_str_eq(a.password, SECRET);
	evc__redis_address_free(&a);
	OK(parse(uri_of_file(SECRET, strlen(SECRET), 0600)));
	ck_assert_str_eq(a.password, SECRET);
	evc__redis_address_free(&a);
	bad(EVC_PERMISSION_DENIED, uri_of_file(SECRET, 5, 0640), "mode");
	bad(EVC_PERMISSION_DENIED, uri_of_file(SECRET, 5, 0604), "mode");
	bad(EVC_INVALID_ARGUMENT, uri_of_file("\n" SECRET, 9, 0600),
	    "no password");
	bad(EVC_INVALID_ARGUMENT, uri_of_file("", 0, 0600), "no password");
	memset(large, 'x', sizeof(large));
	bad(EVC_INVALID_ARGUMENT, uri_of_file(large, sizeof(large), 0600),
	    "4096");
	unlink(path);
	snprintf(uri, sizeof(uri), "redis://h/ns?password-file=%s", path);
	bad(EVC_NOT_FOUND, uri, "No such file");
	bad(EVC_INVALID_ARGUMENT, "redis://h/ns?password-file=/tmp", "no file");
	setenv("EVC_TEST_PASSWORD", SECRET, 1);
	OK(parse("redis://h/ns?password-env=EVC_TEST_PASSWORD"));
	ck_assert_str_eq(a.password, SECRET);
	evc__redis_address_free(&a);
	bad(EVC_NOT_FOUND, "redis://h/ns?password-env=EVC_TEST_NONE",
	    "EVC_TEST_NONE");
	bad(EVC_INVALID_ARGUMENT,
	    "redis://h/ns?password-env=EVC_TEST_PASSWORD&password-file=/x",
	    "password-file");
}
END_TEST

/* ---- words of a command ---- */

START_TEST(args)
{
	struct redis_args w = { .n = 0 };
	char want[32];
	int i;

	OK(parse("redis://h/ns"));
	evc__args_text(&w, "XADD");
	evc__args_add(&w, NULL, 0);
	evc__args_key(&w, &a, "%d:to:%s", 5, "node.1");
	evc__args_fmt(&w, "%s", "");
	for (i = 0; i < 1000; i++)
		evc__args_fmt(&w, "%d", i);
	evc__args_add(&w, "a\0b", 3);
	evc__args_seal(&w);
	evc__args_seal(&w);
	ck_assert(!w.failed);
	ck_assert_int_eq(w.n, 1005);
	ck_assert_uint_eq(w.len[1], 0);
	ck_assert_uint_eq(w.len[2], strlen("{ns}:5:to:node.1"));
	ck_assert_int_eq(strncmp(w.argv[2], "{ns}:5:to:node.1", w.len[2]), 0);
	ck_assert_uint_eq(w.len[3], 0);
	for (i = 0; i < 1000; i++) {
		snprintf(want, sizeof(want), "%d", i);
		ck_assert_uint_eq(w.len[4 + i], strlen(want));
		ck_assert_int_eq(strncmp(w.argv[4 + i], want, strlen(want)), 0);
	}
	ck_assert_uint_eq(w.len[1004], 3);
	evc__args_free(&w);
	ck_assert_int_eq(w.n, 0);
	evc__redis_address_free(&a);
}
END_TEST

/* ---- answers ---- */

static redisReply
text_of(const char *s)
{
	redisReply r = { .type = REDIS_REPLY_STRING };

	r.str = (char *)(uintptr_t)s;
	r.len = strlen(s);
	return r;
}

START_TEST(numbers_of_answers)
{
	static const struct {
		const char *text;
		bool is;
		int64_t n;
	} all[] = {
		{ "0", true, 0 },
		{ "-1", true, -1 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "-9223372036854775808", true, INT64_MIN },
		{ "9223372036854775808", false, 0 },
		{ "", false, 0 },
		{ "-", false, 0 },
		{ " 1", false, 0 },
		{ "+1", false, 0 },
		{ "1 ", false, 0 },
		{ "1x", false, 0 },
		{ "0x1", false, 0 },
		{ "111111111111111111111111", false, 0 },
	};
	redisReply e, *one = &e, r = { .type = REDIS_REPLY_ARRAY };
	size_t i, n;
	int64_t is;

	r.elements = 1;
	r.element = &one;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		e = text_of(all[i].text);
		is = 0;
		ck_assert_msg(evc__reply_number(&r, 0, &is) == all[i].is, "%s",
			      all[i].text);
		ck_assert(is == all[i].n);
	}
	e = (redisReply){ .type = REDIS_REPLY_INTEGER, .integer = -5 };
	ck_assert(evc__reply_number(&r, 0, &is) && is == -5);
	ck_assert_ptr_null(evc__reply_word(&r));
	ck_assert_ptr_null(evc__reply_bytes(&r, 0, &n));
	ck_assert(!evc__reply_number(&r, 1, &is));
	ck_assert(!evc__reply_number(NULL, 0, &is));
	e = (redisReply){ .type = REDIS_REPLY_NIL };
	ck_assert(!evc__reply_number(&r, 0, &is));
	ck_assert_ptr_null(evc__reply_word(&r));
	ck_assert_ptr_null(evc__reply_field(&r, "a", &n));
}
END_TEST

START_TEST(words_of_answers)
{
	redisReply id = text_of("1-1"), a1 = text_of("w"), a2 = text_of("x"),
		   a3 = text_of("d"), error = text_of("OOM too much");
	redisReply *fields[] = { &a1, &a2, &a3 }, *entry[2];
	redisReply f = { .type = REDIS_REPLY_ARRAY }, e = f;
	size_t n;

	f.elements = 3;
	f.element = fields;
	entry[0] = &id;
	entry[1] = &f;
	e.elements = 2;
	e.element = entry;
	ck_assert_str_eq(evc__reply_field(&e, "w", &n), "x");
	ck_assert_uint_eq(n, 1);
	ck_assert_ptr_null(evc__reply_field(&e, "x", &n));
	/* A name without a value. */
	ck_assert_ptr_null(evc__reply_field(&e, "d", &n));
	ck_assert_str_eq(evc__reply_word(&e), "1-1");
	id.len = 5;
	ck_assert_ptr_null(evc__reply_word(&e));
	error.type = REDIS_REPLY_ERROR;
	ck_assert(evc__reply_is_error(&error, "OOM"));
	ck_assert(!evc__reply_is_error(&error, "OOMx"));
	ck_assert(!evc__reply_is_error(&a1, "w"));
	ck_assert(!evc__reply_is_error(NULL, ""));
	ck_assert_str_eq(evc__reply_why(&error), "OOM too much");
	ck_assert_str_eq(evc__reply_why(NULL), "the connection was lost");
	ck_assert_str_ne(evc__reply_why(&e), "");
}
END_TEST

/* Leases with which nothing would ever run. */
START_TEST(leases)
{
	static const double bad[] = { 0.001, 0.05, 86401, 1e18, INFINITY };
	evc_engine_env env = { .uri = "redis://h/n", .place = "h/n" };
	evc_engine *engine = NULL;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		env.lease = bad[i];
		ck_assert_int_eq(evc__redis_open(&env, &engine),
				 -EVC_INVALID_ARGUMENT);
		HAS(evc_last_error(), "a lease is 0.1 to 86400 seconds");
		ck_assert_ptr_null(engine);
	}
}
END_TEST

API_MAIN("redis/address", places, options, sentinels, no_password_in_an_address,
	 hints, passwords, args, numbers_of_answers, words_of_answers, leases)
