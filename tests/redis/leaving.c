/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes that are told to end, as an operator does it: at any moment, with
 * functions that run and that wait, without a server, frozen.  Nothing is lost or
 * run twice by it, the exit status is 0, no process is left behind, and nobody
 * warns of what is in good order.
 */
#include "rows.h"

/* ---- what is said ---- */

/* By the coordinator's side. */
static struct {
	pthread_mutex_t lock;
	char text[1 << 16];
	size_t n;
} heard = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* By any thread. */
static void
keep_log(int level, const char *line, const evc_reason *r, void *arg)
{
	int n;

	(void)r;
	(void)arg;
	pthread_mutex_lock(&heard.lock);
	n = snprintf(heard.text + heard.n, sizeof(heard.text) - heard.n,
		     "%s%s\n", level < EVC_LOG_INFO ? "! " : "", line);
	if (n > 0 && heard.n + (size_t)n < sizeof(heard.text))
		heard.n += (size_t)n;
	pthread_mutex_unlock(&heard.lock);
}

/* How often that stands there. */
static int
times(const char *all, const char *text)
{
	int n = 0;

	for (all = strstr(all, text); all != NULL; n++)
		all = strstr(all + 1, text);
	return n;
}

static int
coord_said(const char *text)
{
	int n;

	pthread_mutex_lock(&heard.lock);
	n = times(heard.text, text);
	pthread_mutex_unlock(&heard.lock);
	return n;
}

/* But that there is no node, which it may be. */
static void
coord_warned_of_nothing(void)
{
	pthread_mutex_lock(&heard.lock);
	ck_assert_msg(times(heard.text, "! ") ==
			      times(heard.text, "no node is registered"),
		      "%s", heard.text);
	pthread_mutex_unlock(&heard.lock);
}

/* What nodes write to their stderr. */
static char node_log[64];

static void
log_begin(void)
{
	int fd;

	snprintf(node_log, sizeof(node_log), "/tmp/evc-redis-log-XXXXXX");
	fd = mkstemp(node_log);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static int
node_said(const char *text)
{
	static char all[1 << 16];
	FILE *f = fopen(node_log, "r");

	ck_assert_ptr_nonnull(f);
	all[fread(all, 1, sizeof(all) - 1, f)] = '\0';
	fclose(f);
	return times(all, text);
}

static void
log_end(void)
{
	OK(unlink(node_log));
}

/* Another node, whose log is kept. */
static int
logged_node(unsigned n_workers)
{
	int fd = open(node_log, O_WRONLY | O_APPEND | O_CLOEXEC), old, i;

	ck_assert_int_ge(fd, 0);
	old = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	ck_assert_int_ge(old, 0);
	ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
	i = rig_node(n_workers);
	ck_assert_int_ge(dup2(old, STDERR_FILENO), 0);
	close(old);
	close(fd);
	return i;
}

/* ---- the cluster ---- */

/* As rig_open, with its log kept. */
static void
open_and_keep(double lease)
{
	const evc_config log = { .log = keep_log };
	evc_cluster_config config = { .lease = lease,
				      .worker_wait = 60,
				      .functions = table,
				      .n_functions = n_table };

	pthread_mutex_lock(&heard.lock);
	heard.text[heard.n = 0] = '\0';
	pthread_mutex_unlock(&heard.lock);
	OK(evc_new(NULL, &log, &on.c));
	OK(evc_cluster_open(on.c, rg.uri, &config, &on.cl));
	rig_all_up();
}

/* Told to end, with status 0 within so many seconds, and all workers with it. */
static void
ends_well(int i, double seconds)
{
	pid_t workers[16], pid = node_of(i);
	unsigned n = workers_of(i, workers, 16);
	double since = t_now();

	rig_node_ends(i, SIGTERM);
	ck_assert_msg(t_now() - since < seconds, "node %d took %.1f s",
		      (int)pid, t_now() - since);
	UNTIL(all_over(workers, n));
}

/* One that was told before. */
static void
has_ended(int i)
{
	pid_t pid = node_of(i);

	redis.at[rg.at[i]].node = 0;
	node_ended(pid);
}

static evc_remote *
alone(const struct marks *m, double seconds)
{
	return SCHEDULE("alone", "[sdb]", m->path, seconds, 0);
}

/* ---- at any moment ---- */

/* Before it has begun, while it looks, while it registers, while its workers
   start. */
static void
end_early(int rounds)
{
	double at;
	pid_t pid;
	int i;

	for (i = 0; i < rounds; i++) {
		pid = node_start(rg.direct, 1);
		while (!node_heeds(pid))
			continue;
		at = t_now() + (i % 4 == 0 ? 0 : 0.0004 * i);
		while (t_now() < at)
			continue;
		node_end(pid);
	}
}

START_TEST(at_any_moment)
{
	rig(_i, NULL);
	end_early(40);
	open_and_keep(2);
	end_early(60);
	rig_node(1);
	rig_all_up();
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
	ck_assert_uint_eq(numbers().n_lost, 0);
	coord_warned_of_nothing();
}
END_TEST

/* ---- in good order ---- */

/* The kernel tells at once that the process has ended, and its lease is not
   there: but its last word is under way. */
START_TEST(nobody_warns_of_what_is_in_good_order)
{
	struct marks m = marks_begin();
	evc_remote *r;

	rig(_i, &(struct rig_opts){ .coord_proxy = true });
	log_begin();
	logged_node(2);
	logged_node(1);
	open_and_keep(20);
	r = alone(&m, 0.3);
	UNTIL(marks_in(&m) == 1);
	proxy_set(&rg.coord, PROXY_DEAF);
	ends_well(0, 5);
	ends_well(1, 5);
	t_sleep(0.3);
	proxy_set(&rg.coord, PROXY_PASS);
	IS(take_number(r), 1);
	UNTIL(coord_said("it has left") == 2);
	OK(join());
	ck_assert_uint_eq(numbers().n_lost, 0);
	coord_warned_of_nothing();
	ck_assert_int_eq(node_said("has left"), 2);
	ck_assert_int_eq(node_said("killed"), 0);
	ck_assert_int_eq(marks_end(&m), 1);
	log_end();
}
END_TEST

/* And what is not is said: once, not once for each worker. */
START_TEST(a_death_is_warned_of)
{
	rig(_i, NULL);
	rig_node(3);
	open_and_keep(2);
	UNTIL(numbers().n_up == 3);
	rig_node_ends(0, SIGKILL);
	UNTIL(coord_said("redis: session ") == 1);
	/* By its process; where the kernel does not tell, by its lease. */
	ck_assert_int_eq(coord_said("is fenced: its "), 1);
	UNTIL(coord_said("more workers have died") == 1);
	/* What its workers ran, for people, is not kept. */
	UNTIL(rs_number(rg.server, "EVAL return(redis.call('HLEN',redis.call("
				   "'KEYS','*:runs')[1]or'none')) 0") == 0);
	/* The session, the node, and one line for its workers. */
	ck_assert_int_eq(coord_said(": its "), 3);
}
END_TEST

/* ---- the server is away ---- */

static void
works(void)
{
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
}

/* Each of them says so once, and once that it is back, however often it has
   tried. */
START_TEST(away_is_said_once)
{
	int i, coord, node;

	rig(_i, &(struct rig_opts){ .own = true, .append = true });
	log_begin();
	logged_node(1);
	open_and_keep(10);
	works();
	for (i = 1; i <= 2; i++) {
		/* A server that still loads its data is a reason of its own,
		   at the start before. */
		coord = coord_said("no connection") + 1;
		node = node_said("no connection") + 1;
		rs_kill(rg.server);
		UNTIL(coord_said("no connection") >= coord);
		UNTIL(node_said("no connection") >= node);
		/* So many retries. */
		t_sleep(1.5);
		ck_assert_int_eq(coord_said("no connection"), coord);
		ck_assert_int_eq(node_said("no connection"), node);
		rs_start(rg.server);
		UNTIL(coord_said("connected to") == i + 1);
		UNTIL(node_said("connected to") == i + 1);
		works();
	}
	/* Nor is it said in other words. */
	ck_assert_int_eq(coord_said("refused"), 0);
	ck_assert_int_eq(node_said("refused"), 0);
	ck_assert_int_eq(node_said(" again"), 0);
	/* A server that is there, and does not want them, is. */
	rs_do(rg.server, "CONFIG SET maxmemory-policy allkeys-lru");
	rs_do(rg.server, "CLIENT KILL TYPE normal SKIPME yes");
	UNTIL(coord_said("allkeys-lru") == 1);
	UNTIL(node_said("allkeys-lru") == 1);
	t_sleep(1);
	ck_assert_int_eq(coord_said("allkeys-lru"), 1);
	ck_assert_int_eq(node_said("allkeys-lru"), 1);
	rs_do(rg.server, "CONFIG SET maxmemory-policy noeviction");
	UNTIL(coord_said("connected to") == 4);
	UNTIL(node_said("connected to") == 4);
	works();
	OK(join());
	ends_well(0, 5);
	log_end();
	rs_unlink(rg.server);
}
END_TEST

/* What the server refuses is tried again and again, in turns, and each of it is
   said once: until it was well in between. */
START_TEST(what_is_refused_is_said_once)
{
	char text[2000];
	int i;

	rig(_i, &(struct rig_opts){ .own = true });
	log_begin();
	logged_node(1);
	open_and_keep(8);
	works();
	for (i = 1; i <= 2; i++) {
		rs_do(rg.server, "ACL SETUSER default -xread -evalsha");
		UNTIL(coord_said("cannot be read: NOPERM") == i);
		UNTIL(coord_said("the lock of the namespace") == i);
		/* It reads again at each tick, and renews its lock every two
		   seconds. */
		t_sleep(2.5);
		ck_assert_int_eq(coord_said("cannot be read: NOPERM"), i);
		ck_assert_int_eq(coord_said("the lock of the namespace"), i);
		rs_do(rg.server, "ACL SETUSER default +xread +evalsha");
		works();
		UNTIL((own_report(evc_cluster_scope(on.cl), text, sizeof(text)),
		       strstr(text, "NOPERM") == NULL));
	}
	OK(join());
	ends_well(0, 5);
	log_end();
	rs_unlink(rg.server);
}
END_TEST

/* What it has done is told when the server is back in time. */
START_TEST(stopped_while_the_server_is_away)
{
	struct marks m = marks_begin();
	pid_t workers[2], node;
	evc_remote *r;

	/* The very same server: after a restart it would be fenced. */
	rig(_i, &(struct rig_opts){ .coord_proxy = true, .node_proxy = true });
	rig_node(2);
	open_and_keep(10);
	r = alone(&m, 0.5);
	UNTIL(marks_in(&m) == 1);
	node = node_of(0);
	ck_assert_uint_eq(workers_of(0, workers, 2), 2);
	proxy_set(&rg.coord, PROXY_REFUSE);
	proxy_set(&rg.node, PROXY_REFUSE);
	OK(kill(node, SIGTERM));
	UNTIL(all_over(workers, 2));
	ck_assert(!process_is_over(node));
	proxy_set(&rg.coord, PROXY_PASS);
	proxy_set(&rg.node, PROXY_PASS);
	IS(take_number(r), 1);
	OK(join());
	has_ended(0);
	ck_assert_int_eq(marks_end(&m), 1);
	ck_assert_uint_eq(numbers().n_lost, 0);
}
END_TEST

/* And when it is not, the node ends with its lease, and others do it again. */
START_TEST(stopped_and_the_server_does_not_come)
{
	struct marks m = marks_begin();
	evc_remote *r;
	int64_t attempt;

	rig(_i, &(struct rig_opts){ .own = true, .append = true });
	rig_node(1);
	open_and_keep(2);
	r = alone(&m, 0.2);
	UNTIL(marks_in(&m) == 1);
	rs_kill(rg.server);
	ends_well(0, 4);
	rs_start(rg.server);
	rig_node(1);
	attempt = take_number(r);
	OK(join());
	/* Unless its result has gone before the server. */
	ck_assert_int_eq(marks_end(&m), (int)attempt);
	rs_unlink(rg.server);
}
END_TEST

/* Nothing passes, and nobody is told. */
START_TEST(stopped_behind_a_partition)
{
	struct marks m = marks_begin();
	evc_remote *r;

	rig(_i, &(struct rig_opts){ .node_proxy = true });
	rig_node(1);
	rig_node(1);
	open_and_keep(1);
	r = alone(&m, 0.2);
	UNTIL(marks_in(&m) == 1);
	/* Perhaps it is the other one that has it. */
	proxy_set(&rg.node, PROXY_HOLD);
	ends_well(0, 5);
	IS(take_number(r), marks_in(&m));
	OK(join());
	(void)marks_end(&m);
}
END_TEST

/* ---- with functions ---- */

/* Those that wait at the node go to another one; each runs once. */
START_TEST(stopped_with_functions)
{
	struct marks m = marks_begin(), own;
	evc_remote *r;
	int i, k, n = 0;

	rig(_i, NULL);
	rig_node(2);
	rig_node(1);
	open_and_keep(2);
	for (k = 0; k < 6; k++) {
		for (i = 0; i < 400; i++, n++)
			DO("mark", "[s]", m.path);
		own = marks_begin();
		r = alone(&own, 0.3);
		UNTIL(marks_in(&own) == 1);
		for (i = 0; i < 400; i++, n++)
			DO("mark", "[s]", m.path);
		ends_well(k, 8);
		rig_node(1);
		IS(take_number(r), 1);
		ck_assert_int_eq(marks_end(&own), 1);
	}
	OK(join());
	/* One that registers while a cluster is closed leaves its lease to the
	   server. */
	UNTIL(numbers().n_up == 2);
	ck_assert_int_eq(marks_end(&m), n);
	ck_assert_uint_eq(numbers().n_lost, 0);
	coord_warned_of_nothing();
}
END_TEST

/* A transactional function counts once, whoever ends. */
START_TEST(stopped_with_updates)
{
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	int i, k, n = 0;

	rig(_i, NULL);
	rig_node(2);
	rig_node(1);
	open_and_keep(2);
	for (k = 0; k < 4; k++) {
		for (i = 0; i < 200; i++, n++)
			OK(evc_schedule_pack(on.cl, "step", &txn, NULL, "[sd]",
					     "n", 0.0));
		ends_well(k, 8);
		rig_node(1);
	}
	OK(join());
	UNTIL(numbers().n_up == 2);
	ck_assert(variable("n") == n);
	ck_assert_uint_eq(numbers().n_lost, 0);
	coord_warned_of_nothing();
}
END_TEST

/* Stopped for longer than its lease, and told to end meanwhile. */
START_TEST(stopped_while_frozen)
{
	struct marks m = marks_begin();
	pid_t workers[2], node;
	evc_remote *r;

	rig(_i, NULL);
	rig_node(1);
	open_and_keep(0.5);
	r = alone(&m, 0.3);
	UNTIL(marks_in(&m) == 1);
	node = node_of(0);
	ck_assert_uint_eq(workers_of(0, workers, 2), 1);
	OK(kill(node, SIGSTOP));
	OK(kill(node, SIGTERM));
	rig_node(1);
	/* "alone" fails if the first one still runs. */
	IS(take_number(r), 2);
	ck_assert(all_over(workers, 1));
	OK(kill(node, SIGCONT));
	has_ended(0);
	OK(join());
	ck_assert_int_eq(marks_end(&m), 2);
}
END_TEST

/* One that does not end within the grace is killed. */
START_TEST(stopped_with_one_that_hangs)
{
	struct marks m = marks_begin();
	evc_remote *r;

	rig(_i, NULL);
	log_begin();
	logged_node(1);
	open_and_keep(20);
	r = alone(&m, 60);
	UNTIL(marks_in(&m) == 1);
	OK(kill(node_of(0), SIGTERM));
	ends_well(0, 18);
	/* The node's log says where it hung. */
	ck_assert_int_eq(node_said("told to leave, and has not ended:"), 1);
	ck_assert_int_eq(node_said(HAS_BACKTRACE ? "worker 0: stack: " :
						   "worker 0: kernel: "), 1);
	UNTIL(coord_said("it has left") == 1);
	evc_remote_free(r);
	log_end();
	ck_assert_int_eq(marks_end(&m), 1);
}
END_TEST

/* A second signal cuts the grace for the workers, too. */
START_TEST(stopped_twice_with_one_that_hangs)
{
	struct marks m = marks_begin();
	evc_remote *r;

	rig(_i, NULL);
	log_begin();
	logged_node(1);
	open_and_keep(20);
	r = alone(&m, 60);
	UNTIL(marks_in(&m) == 1);
	OK(kill(node_of(0), SIGTERM));
	UNTIL(node_said("stop of node requested") == 1);
	ends_well(0, 18);
	ck_assert_int_eq(node_said("second SIGTERM"), 1);
	ck_assert_int_eq(node_said("was killed: it did not end within"), 1);
	ck_assert_int_eq(node_said("did not end within 10"), 0);
	UNTIL(coord_said("it has left") == 1);
	evc_remote_free(r);
	ck_assert_int_eq(marks_end(&m), 1);
	log_end();
}
END_TEST

static const evc_function functions[] = { ROW_FUNCTIONS };

__attribute__((constructor)) static void
limit(void)
{
	row_seconds = 120;
}

REDIS_ROWS("redis: leaving", functions, ROW(at_any_moment),
	   ROW(nobody_warns_of_what_is_in_good_order),
	   ROW(a_death_is_warned_of), ROW(away_is_said_once),
	   ROW(what_is_refused_is_said_once),
	   ROW(stopped_while_the_server_is_away),
	   ROW(stopped_and_the_server_does_not_come),
	   ROW(stopped_behind_a_partition),
	   ROW(stopped_with_functions), ROW(stopped_with_updates),
	   ROW(stopped_while_frozen), ROW(stopped_with_one_that_hangs),
	   ROW(stopped_twice_with_one_that_hangs))
