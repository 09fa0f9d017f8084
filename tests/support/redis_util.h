/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Redis servers for tests: real ones, each on a free port of 127.0.0.1 and on a
 * socket, in a fresh folder of its own; and commands to them that block.
 *
 *     struct redis_server s = { .port = 0 };
 *
 *     rs_option(&s, "maxmemory 3mb");         lines of redis.conf, before
 *     rs_start(&s);                           it answers now
 *     rs_do(&s, "SET %s %d", "key", 1);       must not be an error
 *     rs_kill(&s); rs_start(&s);              the same port and folder
 *     rs_free(&s);                            it is stopped, no folder is left
 *
 * A server ends with the thread that has started it, and a guard (a process that
 * waits for the end of this one) removes the folder, so a test that fails or is
 * killed leaves nothing.
 *
 * The main of such a test is RS_MAIN(name, tests): without a server on this
 * machine it says so and ends with 77, which make check takes as skipped.  A
 * server is looked for in the environment, as REDIS_SERVER, and in PATH.
 */
#ifndef TESTS_SUPPORT_REDIS_UTIL_H
#define TESTS_SUPPORT_REDIS_UTIL_H

#include "api_util.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#define RS_OPTIONS_MOST 16

/* Zeroed, or with a port that it shall have. */
struct redis_server {
	int port;      /* chosen by the first rs_start */
	char dir[64];  /* its folder; "" before the first rs_start */
	char sock[80]; /* its socket */
	char options[RS_OPTIONS_MOST][200];
	unsigned n_options;
	bool append;        /* appendonly, each write: rs_start after rs_kill
				  finds what there was */
	bool sentinel;      /* it is a Sentinel */
	char password[64];  /* "": none; for rs_do, and rs_start sets it as
				  requirepass */
	pid_t pid;          /* 0: it does not run */
	redisContext *link; /* of rs_do; NULL: none */
	pid_t guard;
	int guard_fd;
};

/* ---- the program ---- */

/* Where is it?  NULL: there is none. */
static MAYBE_UNUSED const char *
rs_program(void)
{
	const char *dirs = getenv("PATH"), *given = getenv("REDIS_SERVER");
	const char *names[] = { given, "redis-server", "valkey-server" };
	static char path[512];
	size_t i, n;

	if (given != NULL && strchr(given, '/') != NULL)
		return access(given, X_OK) == 0 ? given : NULL;
	while (dirs != NULL && *dirs != '\0') {
		n = strcspn(dirs, ":");
		for (i = given == NULL || given[0] == '\0'; i < 3; i++) {
			snprintf(path, sizeof(path), "%.*s/%s", (int)n, dirs,
				 names[i]);
			if (n > 0 && access(path, X_OK) == 0)
				return path;
		}
		dirs += n + (dirs[n] == ':');
	}
	return NULL;
}

/* Is there none?  Then says so. */
static MAYBE_UNUSED bool
rs_is_missing(const char *test)
{
	if (rs_program() != NULL)
		return false;
	printf("SKIP: %s: no redis-server\n", test);
	return true;
}

#define RS_MAIN(name, ...) \
	int main(void) \
	{ \
		const TTest *const tests_[] = { __VA_ARGS__ }; \
		if (rs_is_missing(name)) \
			return 77; \
		return api_run((name), NULL, NULL, tests_, \
			       sizeof(tests_) / sizeof(tests_[0])); \
	}

/* ---- its folder ---- */

/* Waits for the end of this process, then removes the folder. */
static MAYBE_UNUSED void
rs_guard(struct redis_server *s)
{
	int ends[2];
	char c;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	s->guard = fork();
	ck_assert_int_ge(s->guard, 0);
	if (s->guard == 0) {
		/* Other servers' pipes as well, or none would ever end; and not
		   what make check reads until its end. */
		if (dup2(ends[0], 0) < 0 ||
		    syscall(SYS_close_range, 1U, ~0U, 0U) < 0)
			_exit(1);
		/* Not by a signal that is meant for the test. */
		setsid();
		while (read(0, &c, 1) < 0 && errno == EINTR)
			;
		execlp("rm", "rm", "-rf", s->dir, (char *)NULL);
		_exit(1);
	}
	close(ends[0]);
	s->guard_fd = ends[1];
}

static MAYBE_UNUSED void
rs_folder(struct redis_server *s)
{
	const char *tmp = getenv("TMPDIR");

	/* The path of a socket has 107 bytes at most. */
	if (tmp == NULL || tmp[0] != '/' || strlen(tmp) > 40)
		tmp = "/tmp";
	snprintf(s->dir, sizeof(s->dir), "%s/evcoord-rs-XXXXXX", tmp);
	ck_assert_ptr_nonnull(mkdtemp(s->dir));
	snprintf(s->sock, sizeof(s->sock), "%s/s", s->dir);
	rs_guard(s);
}

/* A port that nobody has, and that is given to no connection either, so that it
   is still there when the server is started again. */
static MAYBE_UNUSED int
rs_free_port(void)
{
	static unsigned seed;
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd, port, on = 1, tries;

	if (seed == 0)
		seed = (unsigned)getpid() * 2654435761u +
		       (unsigned)(t_now() * 1e6);
	for (tries = 0; tries < 1000; tries++) {
		port = 12000 + rand_r(&seed) % 20000;
		a.sin_port = htons((uint16_t)port);
		a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ck_assert_int_ge(fd, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0) {
			close(fd);
			return port;
		}
		close(fd);
	}
	ck_abort_msg("no free port");
	return 0;
}

/* ---- its life ---- */

/* A line of its configuration, before it is started. */
static MAYBE_UNUSED void rs_option(struct redis_server *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static MAYBE_UNUSED void
rs_option(struct redis_server *s, const char *fmt, ...)
{
	va_list ap;

	ck_assert_uint_lt(s->n_options, RS_OPTIONS_MOST);
	va_start(ap, fmt);
	vsnprintf(s->options[s->n_options++], sizeof(s->options[0]), fmt, ap);
	va_end(ap);
}

static MAYBE_UNUSED void
rs_configure(const struct redis_server *s)
{
	char path[96];
	unsigned i;
	FILE *f;

	snprintf(path, sizeof(path), "%s/conf", s->dir);
	/* A Sentinel has written into its own. */
	if (s->sentinel && access(path, F_OK) == 0)
		return;
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fprintf(f,
		"bind 127.0.0.1\nport %d\ndir %s\nlogfile %s/log\n"
		"daemonize no\n",
		s->port, s->dir, s->dir);
	if (!s->sentinel)
		fprintf(f,
			"unixsocket %s\nsave \"\"\nappendonly %s\n"
			"appendfsync always\n",
			s->sock, s->append ? "yes" : "no");
	if (s->password[0] != '\0')
		fprintf(f, "requirepass %s\n", s->password);
	for (i = 0; i < s->n_options; i++)
		fprintf(f, "%s\n", s->options[i]);
	ck_assert_int_eq(fclose(f), 0);
}

static MAYBE_UNUSED void
rs_spawn(struct redis_server *s)
{
	const char *program = rs_program();
	pid_t parent = getpid();
	char conf[96];
	int fd;

	ck_assert_ptr_nonnull(program);
	rs_configure(s);
	snprintf(conf, sizeof(conf), "%s/conf", s->dir);
	s->pid = fork();
	ck_assert_int_ge(s->pid, 0);
	if (s->pid != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have ended before. */
	if (getppid() != parent)
		_exit(1);
	/* What it says about a configuration that is wrong. */
	snprintf(conf, sizeof(conf), "%s/said", s->dir);
	fd = open(conf, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	dup2(fd, 1);
	dup2(fd, 2);
	snprintf(conf, sizeof(conf), "%s/conf", s->dir);
	execl(program, program, conf, s->sentinel ? "--sentinel" : (char *)NULL,
	      (char *)NULL);
	_exit(1);
}

/* Has it ended by itself? */
static MAYBE_UNUSED bool
rs_has_ended(struct redis_server *s)
{
	if (waitpid(s->pid, NULL, WNOHANG) != s->pid)
		return false;
	s->pid = 0;
	return true;
}

/* A connection of its own, for redisCommand; NULL: it does not answer.  For
   redisFree. */
static MAYBE_UNUSED redisContext *
rs_connect(const struct redis_server *s)
{
	const struct timeval limit = { (time_t)T_LIMIT, 0 };
	redisContext *c = redisConnectWithTimeout("127.0.0.1", s->port, limit);

	if (c != NULL && c->err == 0 && redisSetTimeout(c, limit) == REDIS_OK) {
		if (s->password[0] != '\0')
			freeReplyObject(
				redisCommand(c, "AUTH %s", s->password));
		return c;
	}
	if (c != NULL)
		redisFree(c);
	return NULL;
}

/* Does it answer, with its data there? */
static MAYBE_UNUSED bool
rs_answers(const struct redis_server *s)
{
	redisContext *c = rs_connect(s);
	redisReply *r = c != NULL ? redisCommand(c, "PING") : NULL;
	bool yes = r != NULL && (r->type == REDIS_REPLY_STATUS ||
				 strncmp(r->str, "LOADING", 7) != 0);

	if (r != NULL)
		freeReplyObject(r);
	if (c != NULL)
		redisFree(c);
	return yes;
}

/* Why it has not begun. */
static MAYBE_UNUSED void
rs_fail(const struct redis_server *s)
{
	char path[96], text[1000] = "";
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/said", s->dir);
	f = fopen(path, "r");
	n = f != NULL ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = '\0';
	ck_abort_msg("the server does not start: %s", text);
}

/* Start it, at first or again (then at the same port, with what `append` has
   kept), and wait until it answers. */
static MAYBE_UNUSED void
rs_start(struct redis_server *s)
{
	bool chosen = s->port != 0;
	double until = t_now() + T_LIMIT;
	int tries = 0;

	ck_assert_int_eq(s->pid, 0);
	if (s->dir[0] == '\0')
		rs_folder(s);
	if (!chosen)
		s->port = rs_free_port();
	rs_spawn(s);
	while (!rs_answers(s)) {
		ck_assert_msg(t_now() < until, "the server does not answer");
		if (rs_has_ended(s)) {
			if (++tries == 20)
				rs_fail(s);
			/* Somebody was faster. */
			if (!chosen)
				s->port = rs_free_port();
			t_sleep(0.05);
			rs_spawn(s);
		}
		t_sleep(0.002);
	}
}

static MAYBE_UNUSED void
rs_unlink(struct redis_server *s)
{
	if (s->link != NULL)
		redisFree(s->link);
	s->link = NULL;
}

static MAYBE_UNUSED void
rs_end(struct redis_server *s, int sig)
{
	rs_unlink(s);
	if (s->pid == 0)
		return;
	kill(s->pid, sig);
	/* It may be frozen. */
	kill(s->pid, SIGCONT);
	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
}

/* As a power failure does. */
static MAYBE_UNUSED void
rs_kill(struct redis_server *s)
{
	rs_end(s, SIGKILL);
}

/* Frozen, and not any more. */
static MAYBE_UNUSED void
rs_freeze(struct redis_server *s)
{
	int status;

	kill(s->pid, SIGSTOP);
	ck_assert_int_eq(waitpid(s->pid, &status, WUNTRACED), s->pid);
	ck_assert(WIFSTOPPED(status));
}

static MAYBE_UNUSED void
rs_thaw(struct redis_server *s)
{
	kill(s->pid, SIGCONT);
}

static MAYBE_UNUSED void
rs_free(struct redis_server *s)
{
	rs_kill(s);
	if (s->dir[0] == '\0')
		return;
	close(s->guard_fd);
	while (waitpid(s->guard, NULL, 0) < 0 && errno == EINTR)
		;
	s->dir[0] = '\0';
}

/* ---- commands ---- */

/* A command of words, as redisCommand has them.  The answer, also an error, is
   for freeReplyObject. */
static MAYBE_UNUSED redisReply *
rs_ask_v(struct redis_server *s, const char *fmt, va_list ap)
{
	redisReply *r;
	va_list again;

	va_copy(again, ap);
	if (s->link == NULL)
		s->link = rs_connect(s);
	ck_assert_msg(s->link != NULL, "no connection for \"%s\"", fmt);
	r = redisvCommand(s->link, fmt, ap);
	if (r == NULL) {
		/* The server has dropped it, maybe long ago. */
		rs_unlink(s);
		s->link = rs_connect(s);
		ck_assert_msg(s->link != NULL, "no connection for \"%s\"", fmt);
		r = redisvCommand(s->link, fmt, again);
	}
	va_end(again);
	ck_assert_msg(r != NULL, "no answer to \"%s\"", fmt);
	return r;
}

static MAYBE_UNUSED redisReply *
rs_ask(struct redis_server *s, const char *fmt, ...)
{
	redisReply *r;
	va_list ap;

	va_start(ap, fmt);
	r = rs_ask_v(s, fmt, ap);
	va_end(ap);
	return r;
}

/* The same; the test fails when it is an error. */
static MAYBE_UNUSED void
rs_do(struct redis_server *s, const char *fmt, ...)
{
	redisReply *r;
	va_list ap;

	va_start(ap, fmt);
	r = rs_ask_v(s, fmt, ap);
	va_end(ap);
	ck_assert_msg(r->type != REDIS_REPLY_ERROR, "%s: %s", fmt, r->str);
	freeReplyObject(r);
}

/* A number: an integer or its text; -1: there is none. */
static MAYBE_UNUSED long long
rs_number(struct redis_server *s, const char *fmt, ...)
{
	redisReply *r;
	long long n;
	va_list ap;

	va_start(ap, fmt);
	r = rs_ask_v(s, fmt, ap);
	va_end(ap);
	ck_assert_msg(r->type != REDIS_REPLY_ERROR, "%s: %s", fmt, r->str);
	n = r->type == REDIS_REPLY_INTEGER  ? r->integer
	    : r->type == REDIS_REPLY_STRING ? atoll(r->str)
					    : -1;
	freeReplyObject(r);
	return n;
}

/* A text, cut to fit; "" when there is none.  Returns its whole length. */
static MAYBE_UNUSED size_t
rs_text(struct redis_server *s, char *buf, size_t room, const char *fmt, ...)
{
	redisReply *r;
	size_t n = 0;
	va_list ap;

	va_start(ap, fmt);
	r = rs_ask_v(s, fmt, ap);
	va_end(ap);
	ck_assert_msg(r->type != REDIS_REPLY_ERROR, "%s: %s", fmt, r->str);
	memset(buf, 0, room);
	if (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS) {
		n = r->len;
		memcpy(buf, r->str, n < room ? n : room - 1);
	}
	freeReplyObject(r);
	return n;
}

/* A line of INFO as a number; -1: there is none. */
static MAYBE_UNUSED long long
rs_info(struct redis_server *s, const char *name)
{
	redisReply *r = rs_ask(s, "INFO everything");
	char line[80];
	const char *at;
	long long n;

	ck_assert_int_eq(r->type, REDIS_REPLY_STRING);
	snprintf(line, sizeof(line), "\n%s:", name);
	at = strstr(r->str, line);
	n = at != NULL ? atoll(at + strlen(line)) : -1;
	freeReplyObject(r);
	return n;
}

/* How often it has answered with that error: "OOM". */
static MAYBE_UNUSED int
rs_errors(struct redis_server *s, const char *what)
{
	char text[4096], name[64];
	const char *at;

	snprintf(name, sizeof(name), "errorstat_%s:count=", what);
	rs_text(s, text, sizeof(text), "INFO errorstats");
	at = strstr(text, name);
	return at != NULL ? atoi(at + strlen(name)) : 0;
}

/* How many XADD it has refused: entries for nodes, where renewals and beats,
   which are scripts, do not count. */
static MAYBE_UNUSED int
rs_refused(struct redis_server *s)
{
	char text[16384];
	const char *at;

	rs_text(s, text, sizeof(text), "INFO commandstats");
	at = strstr(text, "cmdstat_xadd:");
	at = at != NULL ? strstr(at, "rejected_calls=") : NULL;
	return at != NULL ? atoi(at + strlen("rejected_calls=")) : 0;
}

/* How many keys match; their names go to stderr when `say`. */
static MAYBE_UNUSED size_t
rs_keys(struct redis_server *s, const char *pattern, bool say)
{
	redisReply *r = rs_ask(s, "KEYS %s", pattern);
	size_t i, n;

	ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
	n = r->elements;
	for (i = 0; say && i < n; i++)
		fprintf(stderr, "key %s\n", r->element[i]->str);
	freeReplyObject(r);
	return n;
}

/* ---- addresses ---- */

/* "redis://127.0.0.1:PORT/NS", and behind it what is given ("?user=x" or ""). */
static MAYBE_UNUSED const char *
rs_uri(const struct redis_server *s, const char *ns, const char *options,
       char *buf, size_t room)
{
	snprintf(buf, room, "redis://127.0.0.1:%d/%s%s", s->port, ns, options);
	return buf;
}

/* The same by its socket. */
static MAYBE_UNUSED const char *
rs_unix_uri(const struct redis_server *s, const char *ns, const char *options,
	    char *buf, size_t room)
{
	snprintf(buf, room, "unix://%s/%s%s", s->sock, ns, options);
	return buf;
}

#endif
