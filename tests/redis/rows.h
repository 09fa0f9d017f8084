/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the engine "redis" share: a cluster whose server, nodes and
 * networks are the test's to harm, and functions that show what ran where.
 *
 *     rig(_i, &(struct rig_opts){ .own = true });
 *     rig_node(2);                 as many as there shall be
 *     rig_open(&config);
 */
#ifndef TESTS_REDIS_ROWS_H
#define TESTS_REDIS_ROWS_H

#include "../conformance/functions.h"
#include "../support/proxy_util.h"

#include <fcntl.h>

enum { NODES = 12 };

struct rig_opts {
	bool own;            /* a server of the test's own, */
	bool append;         /* that keeps what it has */
	bool coord_proxy;    /* between the coordinator and the server */
	bool node_proxy;     /* between node 0 and the server */
	const char *options; /* of the coordinator's address: "?trust-aof=1" */
};

/* Of the test that runs. */
static struct {
	struct redis_server *server;
	struct proxy coord, node;
	char ns[48], uri[200], node_uri[200], direct[200];
	int n_nodes, at[NODES]; /* in redis.at[] */
} rg;

static inline void
rig_ends(void)
{
	proxy_end(&rg.coord);
	proxy_end(&rg.node);
	rs_unlink(&shared_server);
	memset(&rg, 0, sizeof(rg));
}

static inline void
rig_uri(char *buf, size_t n, unsigned port, const char *options)
{
	int len = snprintf(buf, n, "redis://127.0.0.1:%u/%s%s", port, rg.ns,
			   options != NULL ? options : "");

	ck_assert_int_lt(len, (int)n);
}

/* Nobody waits for the lease of who dies on this machine, however long it is.  To
   valgrind, pidfd_open is no system call: there it is waited for. */
static MAYBE_UNUSED double
lease_of_deaths(void)
{
	return t_under_valgrind() ? 2.0 : 60.0;
}

/* A lease whose end a test waits for, in seconds.  On a loaded machine a node is
   late, and much later with the thread sanitizer: yet no node loses its lease. */
static MAYBE_UNUSED double
short_lease(void)
{
	return t_under_tsan() ? 3.0 : 1.0;
}

/* Before all the others. */
static MAYBE_UNUSED void
rig(int i, const struct rig_opts *o)
{
	static const struct rig_opts none;
	unsigned port;

	choose(i, 0);
	if (o == NULL)
		o = &none;
	also_at_end = rig_ends;
	if (o->own) {
		redis_own_server()->append = o->append;
		redis.own.n_options = 0;
	}
	redis_another("", rg.direct, sizeof(rg.direct));
	snprintf(rg.ns, sizeof(rg.ns), "%s", strrchr(rg.direct, '/') + 1);
	rg.server = redis.server;
	port = (unsigned)rg.server->port;
	if (o->coord_proxy)
		rg.coord = proxy_start(port);
	if (o->node_proxy)
		rg.node = proxy_start(port);
	rig_uri(rg.uri, sizeof(rg.uri), o->coord_proxy ? rg.coord.port : port,
		o->options);
	rig_uri(rg.node_uri, sizeof(rg.node_uri),
		o->node_proxy ? rg.node.port : port, NULL);
}

/* Another node, number 0 ...; the first one goes by the proxy. */
static MAYBE_UNUSED int
rig_node(unsigned n_workers)
{
	const char *uri = rg.n_nodes == 0 ? rg.node_uri : rg.direct;

	ck_assert_int_lt(rg.n_nodes, NODES);
	rg.at[rg.n_nodes] = redis.n;
	redis_note(uri, node_start(uri, n_workers));
	on.n_workers += n_workers;
	return rg.n_nodes++;
}

static MAYBE_UNUSED pid_t
node_of(int i)
{
	return redis.at[rg.at[i]].node;
}

/* It is gone, and the fixture need not end it. */
static MAYBE_UNUSED void
rig_node_ends(int i, int sig)
{
	pid_t pid = node_of(i);

	redis.at[rg.at[i]].node = 0;
	if (sig == SIGKILL)
		node_kill(pid);
	else
		node_end(pid);
}

/* kill -9 of a node, and another one in its place. */
static MAYBE_UNUSED void
rig_node_again(int i, unsigned n_workers)
{
	rig_node_ends(i, SIGKILL);
	redis.at[rg.at[i]].node =
		node_start(i == 0 ? rg.node_uri : rg.direct, n_workers);
}

static MAYBE_UNUSED void
rig_all_up(void)
{
	double until = t_now() + T_LIMIT;
	char text[4096];

	while (numbers().n_up < on.n_workers) {
		if (t_now() > until) {
			own_report(evc_cluster_scope(on.cl), text,
				   sizeof(text));
			ck_abort_msg("%u of %u workers: %s", numbers().n_up,
				     on.n_workers, text);
		}
		t_sleep(0.001);
	}
}

/* And wait for all workers of all nodes. */
static MAYBE_UNUSED evc_cluster *
rig_open(const evc_cluster_config *config)
{
	OK(evc_new(on.loop, NULL, &on.c));
	redis_note(rg.uri, 0);
	ck_assert_msg(open_another(rg.uri, config, &on.cl) == 0,
		      "evc_cluster_open: %s", evc_last_error());
	rig_all_up();
	return on.cl;
}

/* Another may be opened then. */
static MAYBE_UNUSED void
rig_close(void)
{
	evc_join_opts budget = { .grace = T_LIMIT };

	evc_cluster_close(on.cl);
	on.cl = NULL;
	OK(evc_join(on.c, &budget, NULL));
	OK(evc_free(on.c));
	on.c = NULL;
}

static MAYBE_UNUSED long long
rig_key(const char *command, const char *key)
{
	char words[160];

	snprintf(words, sizeof(words), "%s {%s}:%s", command, rg.ns, key);
	return rs_number(rg.server, words);
}

/* Of the workers of that node. */
static MAYBE_UNUSED unsigned
workers_of(int i, pid_t *ret, unsigned most)
{
	return children_of(node_of(i), ret, most);
}

static MAYBE_UNUSED bool
all_over(const pid_t *pids, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (!process_is_over(pids[i]))
			return false;
	return true;
}

/* Who has it; its number in the cluster. */
static MAYBE_UNUSED pid_t
runs_in(const evc_remote *r)
{
	return pid_with(r);
}

/* ---- functions ---- */

/* Lock the whole file.  A process that was killed has its lock until its files are
   closed, which takes long on a loaded machine: that is awaited. */
static inline bool
lock_alone(int fd)
{
	struct flock own = { .l_type = F_WRLCK }, other;
	double until = t_now() + 0.1;

	do {
		if (fcntl(fd, F_SETLK, &own) == 0)
			return true;
		other = own;
		if (fcntl(fd, F_GETLK, &other) == 0 &&
		    other.l_type != F_UNLCK && process_is_killed(other.l_pid))
			return fcntl(fd, F_SETLKW, &own) == 0;
		t_sleep(0.001);
	} while (t_now() < until);
	return false;
}

/* [file, seconds, heeds] -> attempt.  Nobody else may be in it with this file:
   else it fails as INTERNAL.  A death lets go. */
static MAYBE_UNUSED evc_status
fn_alone(evc_exec *x, void *arg)
{
	double seconds, until;
	evc_exec_info i;
	char path[128];
	int fd, heeds;

	(void)arg;
	if (evc_exec_get(x, &i) < 0 ||
	    evc_exec_unpack(x, "[sdb]", path, sizeof(path), &seconds,
			    &heeds) < 0)
		return EVC_INVALID_ARGUMENT;
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return EVC_NOT_FOUND;
	if (!lock_alone(fd)) {
		close(fd);
		return evc_exec_fail(x, EVC_INTERNAL, "two at a time");
	}
	/* A byte for each run. */
	if (write(fd, "x", 1) != 1)
		return EVC_INTERNAL;
	until = t_now() + seconds;
	while (t_now() < until && !(heeds && evc_exec_should_stop(x)))
		t_sleep(0.002);
	close(fd);
	return evc_exec_return(x, "u", i.attempt);
}

/* [file]: a byte more in it; nobody waits for anything */
static MAYBE_UNUSED evc_status
fn_mark(evc_exec *x, void *arg)
{
	char path[128];
	int fd;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", path, sizeof(path)) < 0)
		return EVC_INVALID_ARGUMENT;
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "x", 1) != 1)
		return EVC_INTERNAL;
	close(fd);
	return evc_exec_return(x, "i", 1);
}

/* [bytes...] -> of each how many, times 256, and what stands last, summed up */
static MAYBE_UNUSED evc_status
fn_look(evc_exec *x, void *arg)
{
	const unsigned char *a, *b;
	size_t n, m;

	(void)arg;
	if (evc_exec_unpack(x, "[BB]", &a, &n, &b, &m) < 0 || n == 0 || m == 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "look: %s",
				     evc_last_error());
	return evc_exec_return(x, "I", (int64_t)(n + m) * 256 + a[n - 1] +
					       b[m - 1]);
}

/* [name, seconds]: adds 1, and takes its time */
static MAYBE_UNUSED evc_status
fn_step(evc_exec *x, void *arg)
{
	double seconds;
	char name[64];

	(void)arg;
	if (evc_exec_unpack(x, "[sd]", name, sizeof(name), &seconds) < 0)
		return EVC_INVALID_ARGUMENT;
	if (evc_exec_variable_add(x, name, 1, NULL) < 0)
		return evc_exec_fail(x, EVC_UNAVAILABLE, "%s",
				     evc_last_error());
	t_sleep(seconds);
	return evc_exec_return(x, "i", 1);
}

/* [name] -> 1: its value is looked at */
static MAYBE_UNUSED evc_status
fn_read(evc_exec *x, void *arg)
{
	evc_value v = { NULL, 0 };
	char name[64];
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0)
		return EVC_INVALID_ARGUMENT;
	st = evc_exec_variable_get(x, name, &v);
	if (st < 0)
		return evc_exec_fail(x, -st, "%s", evc_last_error());
	evc_value_free(&v);
	return evc_exec_return(x, "i", 1);
}

#define ROW_FUNCTIONS \
	COMMON_FUNCTIONS, { .name = "pid", .fn = fn_pid }, \
	{ .name = "alone", .fn = fn_alone }, \
	{ .name = "mark", .fn = fn_mark }, { .name = "big", .fn = fn_big }, \
	{ .name = "look", .fn = fn_look }, \
	{ .name = "hang", .fn = fn_hang }, { .name = "read", .fn = fn_read }, \
	 { .name = "step", .fn = fn_step }

/* ---- a file that functions mark ---- */

struct marks {
	char path[64];
};

static MAYBE_UNUSED struct marks
marks_begin(void)
{
	struct marks m = { "/tmp/evc-redis-XXXXXX" };
	int fd = mkstemp(m.path);

	ck_assert_int_ge(fd, 0);
	close(fd);
	return m;
}

static MAYBE_UNUSED int
marks_in(const struct marks *m)
{
	int fd = open(m->path, O_RDONLY | O_CLOEXEC);
	off_t n = lseek(fd, 0, SEEK_END);

	ck_assert_int_ge(fd, 0);
	close(fd);
	return (int)n;
}

static MAYBE_UNUSED int
marks_end(const struct marks *m)
{
	int n = marks_in(m);

	OK(unlink(m->path));
	return n;
}

/* Does the cluster's report say so? */
static MAYBE_UNUSED bool
is_reported(const char *why)
{
	char text[2048];

	own_report(evc_cluster_scope(on.cl), text, sizeof(text));
	return strstr(text, why) != NULL;
}

/* A cluster that gets no worker, and says why: the error of a function. */
static MAYBE_UNUSED evc_reason
rig_open_in_vain(const evc_cluster_config *config, const char *why)
{
	evc_reason e;

	rig_open(config);
	/* The server may be slower than the wait for workers. */
	UNTIL(is_reported(why));
	DO("add", "[ii]", 1, 2);
	IS(join(), EVC_UNAVAILABLE);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	HAS(e.text, why);
	return e;
}

/* ---- main ---- */

/* ---- a busy server ---- */

/* A script of somebody's that does not end: the server answers BUSY. */
static MAYBE_UNUSED redisContext *
makes_busy(void)
{
	redisContext *c;
	redisReply *r;
	bool busy = false;
	int done = 0;

	rs_do(rg.server, "CONFIG SET busy-reply-threshold 10");
	c = rs_connect(rg.server);
	ck_assert_ptr_nonnull(c);
	IS(redisAppendCommand(c, "EVAL %s 0", "while true do end"), REDIS_OK);
	IS(redisBufferWrite(c, &done), REDIS_OK);
	ck_assert(done);
	while (!busy) {
		r = rs_ask(rg.server, "GET nothing");
		busy = r->type == REDIS_REPLY_ERROR;
		freeReplyObject(r);
	}
	return c;
}

static MAYBE_UNUSED void
is_busy_no_more(redisContext *c)
{
	redisReply *r = NULL;

	rs_do(rg.server, "SCRIPT KILL");
	/* That only asks for the end; then the script has its answer. */
	IS(redisGetReply(c, (void **)&r), REDIS_OK);
	ck_assert_int_eq(r->type, REDIS_REPLY_ERROR);
	freeReplyObject(r);
	/* Scripts of later rows may take longer. */
	rs_do(rg.server, "CONFIG SET busy-reply-threshold 5000");
	redisFree(c);
}

/* The report says so. */
static MAYBE_UNUSED void
says(const char *part)
{
	char text[1000];

	UNTIL((own_report(evc_cluster_scope(on.cl), text, sizeof(text)),
	       strstr(text, part) != NULL));
}

#define REDIS_ROWS(area, functions, ...) \
	__attribute__((constructor)) static void only_redis_(void) \
	{ \
		only_engine = "redis"; \
	} \
	CONFORMANCE_MAIN(area, functions, __VA_ARGS__)

#endif
