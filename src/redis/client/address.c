/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads addresses: redis://HOST:PORT/NAMESPACE, rediss:// likewise, and
 * unix:///PATH/TO/SOCKET/NAMESPACE, with options.  Logs and lists of processes
 * show addresses, so an address holds no password (address_password.c finds the
 * password), and no text made here shows a part that looks like a password.
 * Called by: engine.c, node.c, link.c, and the tool evc-cluster; any thread.
 * Locks: none.
 */
#include <sys/un.h>

#include "redis/client/redis.h"

#define PORT_OF_REDIS    6379
#define PORT_OF_SENTINEL 26379
#define NAMESPACE_MOST   100
#define HOST_MOST        255
#define DATABASE_MOST    65535

const char *const evc__redis_options[] = {
	"user", "password-file", "password-env", "db",   "ca",        "cert",
	"key",  "tls-name",      "master",       "also", "trust-aof", "once",
	"fresh", NULL
};

/* ---- options ---- */

/* The value of option `name`, of the index-th option with that name.  NULL:
   none. */
static const char *
find_option(const char *const *options, const char *name, unsigned index)
{
	size_t n = strlen(name);

	for (; options != NULL && *options != NULL; options++)
		if (strncmp(*options, name, n) == 0 && (*options)[n] == '=' &&
		    index-- == 0)
			return *options + n + 1;
	return NULL;
}

/* The value of an option in *ret; *ret is unchanged without the option. */
static evc_status
take_text(const char *const *options, const char *name, char **ret)
{
	const char *value = find_option(options, name, 0);

	if (value == NULL)
		return 0;
	if (value[0] == '\0')
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "option %s of the address is empty", name);
	if (find_option(options, name, 1) != NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "option %s stands twice in the address",
				  name);
	return evc__redis_copy(value, strlen(value), ret);
}

/* true: n digits, and a number up to `most`. */
static bool
read_digits(const char *s, size_t n, unsigned most, unsigned *ret)
{
	unsigned x = 0;
	size_t i;

	if (n == 0 || n > 9)
		return false;
	for (i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		x = x * 10 + (unsigned)(s[i] - '0');
	}
	*ret = x;
	return x <= most;
}

static evc_status
take_number(const char *const *options, const char *name, unsigned most,
	    unsigned *ret)
{
	char *value = NULL;
	evc_status st = take_text(options, name, &value);

	if (st == 0 && value != NULL &&
	    !read_digits(value, strlen(value), most, ret))
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"option %s of the address is a number from 0 to"
				" %u",
				name, most);
	sync_free(value);
	return st;
}

/* ---- the place ---- */

/* true: these characters may stand in a name or a number of a host.  The
   look-up of the name finds all other errors. */
static bool
is_host(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if ((unsigned char)s[i] <= ' ' || s[i] == 0x7f ||
		    strchr("/@?#\"'[]{}\\", s[i]) != NULL)
			return false;
	return n > 0 && n <= HOST_MOST;
}

/* Reads HOST, HOST:PORT, [NUMBER] or [NUMBER]:PORT. */
static evc_status
take_place(const char *s, size_t n, unsigned port, struct redis_place *ret)
{
	const char *host = s, *end = s + n, *colon;
	size_t n_host;

	if (n > 0 && s[0] == '[') {
		host = s + 1;
		colon = memchr(s, ']', n);
		n_host = colon != NULL ? (size_t)(colon - host) : 0;
		colon = colon != NULL ? colon + 1 : end;
	} else {
		colon = memchr(s, ':', n);
		if (colon == NULL)
			colon = end;
		n_host = (size_t)(colon - s);
	}
	if (!is_host(host, n_host) ||
	    (colon < end && (*colon != ':' ||
			     !read_digits(colon + 1, (size_t)(end - colon - 1),
					  65535, &port) ||
			     port == 0)))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "\"%.*s\" is not HOST:PORT",
				  (int)(n < 100 ? n : 100), s);
	ret->port = port;
	return evc__redis_copy(host, n_host, &ret->host);
}

static evc_status
take_namespace(const char *s, char **ret)
{
	size_t n = strlen(s);

	if (n == 0 || n > NAMESPACE_MOST ||
	    strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		      "0123456789._:-") != n)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "the namespace \"%.100s\" is not 1 to %d"
				  " letters, digits and . _ : - (the address"
				  " ends with /NAMESPACE)",
				  s, NAMESPACE_MOST);
	return evc__redis_copy(s, n, ret);
}

static evc_status
take_socket(const char *place, struct redis_address *a)
{
	const char *slash = strrchr(place, '/');
	size_t n = slash != NULL ? (size_t)(slash - place) : 0;

	if (place[0] != '/' || n < 2 ||
	    n >= sizeof((struct sockaddr_un *)NULL)->sun_path)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "the address is not"
				  " unix:///PATH/TO/SOCKET/NAMESPACE, with %zu"
				  " bytes at most of path",
				  sizeof((struct sockaddr_un *)NULL)->sun_path -
					  1);
	a->at.port = 0;
	if (take_namespace(slash + 1, &a->ns) < 0)
		return -EVC_INVALID_ARGUMENT;
	return evc__redis_copy(place, n, &a->at.host);
}

static evc_status
take_server(const char *place, struct redis_address *a)
{
	const char *slash = strchr(place, '/');
	evc_status st;

	if (slash == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "the address has no /NAMESPACE at its end");
	st = take_place(place, (size_t)(slash - place),
			a->master != NULL ? PORT_OF_SENTINEL : PORT_OF_REDIS,
			&a->at);
	return st < 0 ? st : take_namespace(slash + 1, &a->ns);
}

static evc_status
take_sentinels(const char *const *options, struct redis_address *a)
{
	const char *also;
	unsigned i;
	evc_status st;

	if (a->master == NULL)
		return find_option(options, "also", 0) == NULL
			       ? 0
			       : evc_refuse(-EVC_INVALID_ARGUMENT,
					    "option also names more Sentinels,"
					    " and without master= there are"
					    " none");
	st = evc__redis_copy(a->at.host, strlen(a->at.host),
			     &a->sentinels[0].host);
	if (st < 0)
		return st;
	a->sentinels[0].port = a->at.port;
	a->n_sentinels = 1;
	for (i = 0; (also = find_option(options, "also", i)) != NULL; i++) {
		if (a->n_sentinels == REDIS_SENTINELS)
			return evc_refuse(-EVC_INVALID_ARGUMENT,
					  "the address has more than %d"
					  " Sentinels",
					  REDIS_SENTINELS);
		st = take_place(also, strlen(also), PORT_OF_SENTINEL,
				&a->sentinels[a->n_sentinels]);
		if (st < 0)
			return st;
		a->n_sentinels++;
	}
	return 0;
}

/* ---- the whole ---- */

static evc_status
take_password(const char *const *options, struct redis_address *a)
{
	char *name = NULL;
	evc_status st = take_text(options, "password-file", &a->password_file);

	if (st == 0)
		st = take_text(options, "password-env", &name);
	if (st == 0)
		st = evc__redis_password(a->password_file, name, &a->password);
	sync_free(name);
	return st;
}

static evc_status
take_tls(const char *const *options, struct redis_address *a)
{
	static const char *const names[] = { "ca", "cert", "key", "tls-name" };
	char **to[] = { &a->ca, &a->cert, &a->key, &a->tls_name };
	evc_status st = 0;
	unsigned i;

	for (i = 0; st == 0 && i < 4; i++) {
		st = take_text(options, names[i], to[i]);
		if (st == 0 && *to[i] != NULL && !a->tls)
			st = evc_refuse(-EVC_INVALID_ARGUMENT,
					"option %s is one of rediss://",
					names[i]);
	}
	if (st == 0 && (a->cert == NULL) != (a->key == NULL))
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"the address has one of cert and key, and both"
				" or none are needed");
	return st;
}

static evc_status
take_options(const char *const *options, struct redis_address *a)
{
	unsigned trust = 0, once = 0, fresh = 0;
	evc_status st = take_tls(options, a);

	if (st == 0)
		st = take_text(options, "user", &a->user);
	if (st == 0)
		st = take_text(options, "master", &a->master);
	if (st == 0)
		st = take_number(options, "db", DATABASE_MOST, &a->database);
	if (st == 0)
		st = take_number(options, "trust-aof", 1, &trust);
	if (st == 0)
		st = take_number(options, "once", 1, &once);
	if (st == 0)
		st = take_number(options, "fresh", 1, &fresh);
	a->fresh = fresh != 0;
	a->trust_aof = trust != 0;
	a->once = once != 0;
	return st;
}

static evc_status
take_address(const char *uri, const char *place, const char *const *options,
	     struct redis_address *a)
{
	bool is_socket = strncmp(uri, "unix://", 7) == 0;
	evc_status st;

	a->tls = strncmp(uri, "rediss://", 9) == 0;
#ifndef HAVE_HIREDIS_SSL
	if (a->tls)
		return evc_refuse(-EVC_UNIMPLEMENTED,
				  "this hiredis has no TLS, and rediss:// needs"
				  " it");
#endif
	if (strchr(place, '@') != NULL && !is_socket)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "neither a user nor a password stands before"
				  " the host of an address: use the options"
				  " user= and password-file= or password-env=");
	st = take_options(options, a);
	if (st == 0 && is_socket && a->master != NULL)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"option master needs the HOST:PORT of a"
				" Sentinel");
	if (st == 0)
		st = is_socket ? take_socket(place, a) : take_server(place, a);
	if (st == 0)
		st = take_sentinels(options, a);
	return st < 0 ? st : take_password(options, a);
}

evc_status
evc__redis_address(const char *uri, const char *place,
		   const char *const *options, struct redis_address *ret)
{
	struct redis_address a = { .ns = NULL };
	evc_status st = take_address(uri, place, options, &a);

	if (st < 0)
		evc__redis_address_free(&a);
	else
		*ret = a;
	return st;
}

void
evc__redis_address_free(struct redis_address *a)
{
	char *all[] = { a->at.host, a->ns,  a->user,     a->password_file,
			a->ca,      a->cert, a->key,     a->tls_name,
			a->master };
	unsigned i;

	evc__redis_password_free(a->password);
	for (i = 0; i < sizeof all / sizeof all[0]; i++)
		sync_free(all[i]);
	for (i = 0; i < REDIS_SENTINELS; i++)
		sync_free(a->sentinels[i].host);
	*a = (struct redis_address){ .ns = NULL };
}

/* ---- advice for a failed login ---- */

static bool
has_any_of(const char *s, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strstr(s, *words) != NULL)
			return true;
	return false;
}

const char *
evc__redis_hint(const struct redis_address *a, const char *why)
{
	static const char *const users[] = { "NOAUTH", "WRONGPASS", NULL };
	/* Errors of a port that serves another protocol. */
	static const char *const strange[] = { "Protocol error", "closed",
					       "reset by peer", "no answer",
					       "TLS failed",
					       "SSL_connect failed", NULL };

	if (has_any_of(why, users))
		return " (see user=, password-file= and password-env= in"
		       " evcoord-redis(7))";
	if (strstr(why, "NOPERM") != NULL)
		return " (see Rights in evcoord-redis(7))";
	if (a->at.port == 0 && strstr(why, strerror(EACCES)) != NULL)
		return " (see unixsocketperm in the server's configuration)";
	if (strstr(why, "certificate") != NULL)
		return " (see TLS in evcoord-redis(7))";
	if (a->tls)
		return has_any_of(why, strange)
			       ? " (is this a port for TLS? if not: redis://)"
			       : "";
	/* An alert of TLS begins with this byte. */
	if (strstr(why, "\\x15") != NULL)
		return " (this seems to be a port for TLS: rediss://)";
	if (strstr(why, "no answer") != NULL)
		return "";
	/* Most servers that are no Redis close the connection, too. */
	if (strstr(why, "Protocol error") == NULL && has_any_of(why, strange))
		return " (is this a Redis server? if it is a port for TLS:"
		       " rediss://)";
	return has_any_of(why, strange) ? " (is this a Redis server?)" : "";
}

void
evc__redis_address_name(const struct redis_address *a, struct text *t)
{
	bool is_number = strchr(a->at.host, ':') != NULL && a->at.port != 0;

	if (a->master != NULL)
		evc__text_fmt(t, "master %s of Sentinel ", a->master);
	evc__text_fmt(t, is_number ? "[%s]" : "%s", a->at.host);
	if (a->at.port != 0)
		evc__text_fmt(t, ":%u", a->at.port);
}
