/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a server has lost, and how the coordinator knows: by the server's run, by
 * its having been a replica, and by changes of variables that it does not count any
 * more.  A loss ends a cluster that uses variables, and no other one.
 */
#include "support/redis_coord_util.h"

static struct redis_server other;

static void
add(int n)
{
	while (n-- > 0)
		OK(evc_variable_add(on.cl, "x", 1, NULL));
}

/* It ends, with such a text. */
static void
ends_with(const char *a, const char *b)
{
	evc_reason e;

	UNTIL(evc_cluster_join(on.cl, 0) == EVC_UNAVAILABLE);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	HAS(e.text, a);
	HAS(e.text, b);
	rs_free(&other);
	evc_cluster_close(on.cl);
	end();
}

/* It has not ended, and works. */
static void
goes_on(void)
{
	struct hand_node *h = hn_begin(&on.s, "t", "n", 1, LONG_MS);
	evc_remote *r = schedule_add(on.cl, 1, 2);

	hn_await(h, 1);
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	end_with(h);
}

static void
start_again(void)
{
	rs_kill(&on.s);
	rs_start(&on.s);
}

static long long
generation(void)
{
	return rs_number(&on.s, "GET {t}:gen");
}

static void
goes_on_when_it_is_started_again(void)
{
	long long g = generation();

	ck_assert_int_gt(g, 0);
	start_again();
	UNTIL(generation() > g);
	goes_on();
}

static void
start_durable(const char *options)
{
	on.s.append = true;
	rs_start(&on.s);
	open_at(options);
}

static long long
changes(struct redis_server *s)
{
	return rs_number(s, "HGET {t}:count changes");
}

/* ---- failover ---- */

static void
follows(struct redis_server *s, struct redis_server *master)
{
	rs_do(master, "CONFIG SET repl-diskless-sync-delay 0");
	rs_do(s, "REPLICAOF 127.0.0.1 %d", master->port);
	UNTIL(changes(s) == changes(master) &&
	      rs_number(s, "EXISTS {t}:coord") == 1 &&
	      rs_info(s, "slave_repl_offset") > 0);
}

/* To another server, and back: what was changed on this one meanwhile is lost, and
   its run is the same. */
static void
failover_and_back(int more)
{
	struct proxy p = begin_with_proxy(0);

	add(5);
	rs_start(&other);
	follows(&other, &on.s);
	rs_do(&other, "REPLICAOF NO ONE");
	add(3);
	proxy_set(&p, PROXY_REFUSE);
	proxy_cut(&p);
	rs_do(&other, "HINCRBY {t}:count changes %d", more);
	follows(&on.s, &other);
	rs_do(&on.s, "REPLICAOF NO ONE");
	proxy_set(&p, PROXY_PASS);
	ends_with("was a replica", "variables");
	proxy_end(&p);
	on.lease = 0;
}

START_TEST(a_failover_and_back)
{
	failover_and_back(0);
}
END_TEST

/* As many as were lost were made there. */
START_TEST(a_failover_and_back_with_as_many_changes)
{
	failover_and_back(3);
}
END_TEST

static void
is_a_replica_for_a_moment(void)
{
	rs_do(&on.s, "REPLICAOF 127.0.0.1 1");
	rs_do(&on.s, "REPLICAOF NO ONE");
}

START_TEST(a_replica_for_a_moment)
{
	on.lease = 5;
	begin();
	add(1);
	is_a_replica_for_a_moment();
	ends_with("was a replica", "variables may be lost");
}
END_TEST

START_TEST(a_replica_for_a_moment_without_variables)
{
	long long g;

	begin();
	UNTIL((g = generation()) > 0);
	is_a_replica_for_a_moment();
	UNTIL(generation() > g);
	goes_on();
}
END_TEST

/* A first replica is no loss, though the master's data has another id then. */
START_TEST(a_first_replica)
{
	struct proxy p = begin_with_proxy(0);
	long long g;

	add(2);
	g = generation();
	rs_start(&other);
	follows(&other, &on.s);
	proxy_cut(&p);
	add(1);
	ck_assert_int_eq(generation(), g);
	rs_free(&other);
	goes_on();
	proxy_end(&p);
	on.lease = 0;
}
END_TEST

/* ---- fewer changes ---- */

START_TEST(changes_go_back)
{
	begin();
	add(5);
	UNTIL(changes(&on.s) == 5);
	t_sleep(LEASE / 2);
	rs_do(&on.s, "HSET {t}:count changes 4");
	ends_with("variables are lost", "fewer changes");
}
END_TEST

/* Another coordinator has had the lock meanwhile, and has put its checkpoint in
   place; then the counts are not smaller.  But older loads, and own ones, do no
   harm. */
START_TEST(others_have_loaded_a_checkpoint)
{
	const char path[] = "/tmp/evc-redis-loaded";
	long long g;

	begin_durable();
	add(5);
	OK(evc_cluster_save(on.cl, path));
	OK(evc_cluster_restore(on.cl, path));
	OK(unlink(path));
	g = generation();
	ck_assert_int_eq(rs_number(&on.s, "HGET {t}:count loaded"), g);
	rs_do(&on.s, "DEL {t}:coord");
	UNTIL(generation() > g);
	add(1);
	rs_do(&on.s, "HSET {t}:count loaded %lld", generation() + 1000000);
	rs_do(&on.s, "DEL {t}:coord");
	ends_with("variables are lost", "fewer changes");
}
END_TEST

START_TEST(changes_of_others_go_back)
{
	rs_start(&on.s);
	rs_do(&on.s, "HSET {t}:count changes 9 finished 2");
	rs_unlink(&on.s);
	open_at("");
	UNTIL(rs_number(&on.s, "EXISTS {t}:coord") == 1);
	t_sleep(LEASE / 2);
	rs_do(&on.s, "HSET {t}:count changes 4");
	t_sleep(LEASE / 2);
	goes_on();
}
END_TEST

/* ---- fewer variables ---- */

START_TEST(variables_that_are_deleted)
{
	begin();
	add(5);
	rs_do(&on.s, "DEL {t}:var");
	ends_with("variables are lost", "fewer variables");
}
END_TEST

START_TEST(one_of_two_is_deleted)
{
	begin();
	add(1);
	OK(evc_variable_add(on.cl, "y", 1, NULL));
	rs_do(&on.s, "HDEL {t}:var x");
	ends_with("variables are lost", "fewer variables");
}
END_TEST

/* Whoever changes or reads them next hears of it, before the lock is renewed. */
static void
deleted_and_used(bool is_read)
{
	evc_value v = { 0 };

	on.lease = 60;
	begin();
	add(5);
	rs_do(&on.s, "DEL {t}:var");
	if (is_read)
		REFUSED(EVC_UNAVAILABLE, evc_variable_get(on.cl, "x", &v));
	else
		REFUSED(EVC_UNAVAILABLE,
			evc_variable_add(on.cl, "x", 1, NULL));
	ck_assert_int_eq(rs_number(&on.s, "EXISTS {t}:var"), 0);
	on.lease = 0;
	ends_with("variables are lost", "fewer variables");
}

START_TEST(variables_that_are_deleted_and_made_anew)
{
	deleted_and_used(false);
}
END_TEST

START_TEST(variables_that_are_deleted_and_read)
{
	deleted_and_used(true);
}
END_TEST

/* The lock has been renewed since, and the answer was heard: the next renewal comes
   behind it. */
static void
is_renewed(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		rs_do(&on.s, "PEXPIRE {t}:coord 1000000");
		UNTIL(rs_number(&on.s, "PTTL {t}:coord") < 500000);
	}
}

/* Nothing is lost that the program itself takes away. */
START_TEST(variables_that_are_removed)
{
	evc_value none = { 0 };

	begin();
	add(1);
	OK(evc_variable_set(on.cl, "x", &none));
	ck_assert_int_eq(rs_number(&on.s, "EXISTS {t}:var"), 0);
	is_renewed();
	add(1);
	goes_on();
}
END_TEST

/* It has left a variable. */
static void
former_run(void)
{
	begin();
	add(1);
	evc_cluster_close(on.cl);
	end_cluster();
}

/* Nor what a former run has left and nobody has used since. */
START_TEST(variables_of_a_former_run_are_deleted)
{
	former_run();
	open_at("");
	UNTIL(rs_number(&on.s, "EXISTS {t}:coord") == 1);
	rs_do(&on.s, "DEL {t}:var");
	UNTIL(rs_number(&on.s, "HEXISTS {t}:count names") == 0);
	add(1);
	evc_cluster_close(on.cl);
	end_cluster();
	rs_do(&on.s, "DEL {t}:var");
	rs_unlink(&on.s);
	open_at("");
	add(1);
	goes_on();
}
END_TEST

/* What the server says of that may come when one is used already: it was said
   before that. */
START_TEST(variables_of_a_former_run_are_deleted_before_a_use)
{
	struct proxy p;

	former_run();
	on.lease = 2;
	p = open_by_proxy(100);
	UNTIL(rs_number(&on.s, "EXISTS {t}:coord") == 1);
	rs_do(&on.s, "DEL {t}:var");
	UNTIL(rs_number(&on.s, "HEXISTS {t}:count names") == 0);
	add(1);
	ck_assert_int_eq(n_said("lost", NULL, NULL), 0);
	goes_on();
	proxy_end(&p);
	on.lease = 0;
}
END_TEST

/* Whoever says that nothing can be lost is believed, until it is. */
START_TEST(an_older_file_that_is_trusted)
{
	char command[200];

	start_durable("?trust-aof=1");
	add(5);
	/* The renewal has told the coordinator how many there are. */
	is_renewed();
	rs_kill(&on.s);
	snprintf(command, sizeof(command), "rm -r %s/appendonlydir", on.s.dir);
	OK(system(command));
	rs_start(&on.s);
	ends_with("variables are lost", "fewer changes");
}
END_TEST

START_TEST(trusted_without_a_file)
{
	rs_start(&on.s);
	open_at("?trust-aof=1");
	SAYS("trust-aof=1", "appendonly no", NULL);
	ck_assert_int_eq(rs_number(&on.s, "EXISTS {t}:coord"), 0);
	rs_do(&on.s, "CONFIG SET appendonly yes");
	UNTIL(rs_number(&on.s, "EXISTS {t}:coord") == 1);
	goes_on();
}
END_TEST

/* ---- in use ---- */

static void
open_after_a_former_run(void)
{
	on.s.append = true;
	rs_start(&on.s);
	rs_do(&on.s, "HSET {t}:count changes 9 finished 2");
	rs_do(&on.s, "HSET {t}:var x 7");
	rs_unlink(&on.s);
	open_at("");
	UNTIL(rs_number(&on.s, "EXISTS {t}:coord") == 1);
	is_renewed();
}

START_TEST(variables_of_a_former_run)
{
	open_after_a_former_run();
	goes_on_when_it_is_started_again();
}
END_TEST

START_TEST(a_variable_that_was_read)
{
	evc_value v = { 0 };

	open_after_a_former_run();
	OK(evc_variable_get(on.cl, "x", &v));
	evc_value_free(&v);
	start_again();
	ends_with("restarted", "variables may be lost");
}
END_TEST

static void
save(void)
{
	char path[] = "/tmp/evc-redis-XXXXXX";

	OK(close(mkstemp(path)));
	OK(evc_cluster_save(on.cl, path));
	OK(unlink(path));
}

START_TEST(variables_that_were_saved)
{
	open_after_a_former_run();
	save();
	start_again();
	ends_with("restarted", "variables may be lost");
}
END_TEST

START_TEST(none_were_saved)
{
	start_durable("");
	save();
	goes_on_when_it_is_started_again();
}
END_TEST

/* ---- in true words ---- */

/* A process of its own stops this one, and, with a server, makes of the node's
   keys what a node does that sees no coordinator. */
static void
stand_still(double seconds, bool served)
{
	pid_t us = getpid(), pid = fork();
	int status;

	if (pid == 0) {
		on.s.link = NULL;
		kill(us, SIGSTOP);
		t_sleep(seconds);
		if (served)
			rs_do(&on.s, "DEL {t}:lease:a");
		kill(us, SIGCONT);
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(a_coordinator_that_stood_still)
{
	struct hand_node *a;

	on.lease = 1;
	begin();
	a = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	UNTIL(n_up() == 1);
	stand_still(2, true);
	SAYS("node a is fenced", "the coordinator stood still", NULL);
	ck_assert_int_eq(n_said("was deleted or replaced", NULL, NULL), 0);
	ck_assert_int_eq(n_said("no renewal was seen", NULL, NULL), 0);
	hn_free(a);
	on.lease = 0;
	evc_cluster_close(on.cl);
	end();
}
END_TEST

/* In that time it could not find out that the server was there again. */
START_TEST(a_coordinator_that_stood_still_without_a_server)
{
	evc_cluster_info info = { .server_away = 0 };
	double lease = 2;
	long long g;

	on.lease = lease;
	start_durable("?trust-aof=1");
	add(5);
	is_renewed();
	g = generation();
	rs_kill(&on.s);
	do {
		OK(evc_cluster_get(on.cl, &info));
	} while (!(info.server_away > 0));
	stand_still(3 * lease + 0.5, false);
	rs_start(&on.s);
	UNTIL(generation() > g);
	goes_on();
	on.lease = 0;
}
END_TEST

START_TEST(a_lease_that_is_deleted)
{
	struct hand_node *a;

	on.lease = 5;
	begin();
	a = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	UNTIL(n_up() == 1);
	rs_do(&on.s, "DEL {t}:lease:a");
	SAYS("node a is fenced", "its lease is gone, 0.", "after a renewal");
	ck_assert_int_eq(n_said("no renewal was seen", NULL, NULL), 0);
	hn_free(a);
	on.lease = 0;
	evc_cluster_close(on.cl);
	end();
}
END_TEST

/* As after a script of somebody's that took longer than the lease.  What the
   program has asked for is done in the next generation. */
START_TEST(a_lock_that_is_lost)
{
	struct hand_node *a;
	struct proxy p;

	on.lease = 2;
	p = begin_with_proxy(0);
	a = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	UNTIL(n_up() == 1);
	rs_do(&on.s, "DEL {t}:coord");
	SAYS("the coordinator has lost its lock", NULL, NULL);
	/* While all leases are waited for. */
	proxy_cut(&p);
	add(1);
	hn_register(a, LONG_MS);
	rs_do(&on.s, "DEL {t}:coord");
	add(1);
	ck_assert_int_eq(n_said("restarted", NULL, NULL), 0);
	ck_assert_int_eq(changes(&on.s), 2);
	hn_free(a);
	/* It never left, and what it registered last may not have been heard of:
	   then its lease ends by itself, long after this test. */
	rs_do(&on.s, "DEL {t}:lease:a");
	goes_on();
	proxy_end(&p);
	on.lease = 0;
}
END_TEST

/* Nothing is lost, and the text says so. */
START_TEST(another_coordinator_came_and_went)
{
	on.lease = 2;
	begin();
	UNTIL(rs_number(&on.s, "EXISTS {t}:coord") == 1);
	rs_do(&on.s, "INCRBY {t}:gen 5");
	rs_do(&on.s, "DEL {t}:coord");
	SAYS("another coordinator has had the namespace meanwhile", NULL, NULL);
	ck_assert_int_eq(n_said("data is gone", NULL, NULL), 0);
	goes_on();
	on.lease = 0;
}
END_TEST

START_TEST(a_policy_that_is_changed_later)
{
	begin();
	UNTIL(rs_number(&on.s, "EXISTS {t}:coord") == 1);
	rs_do(&on.s, "CONFIG SET maxmemory-policy allkeys-lru");
	SAYS("needs maxmemory-policy noeviction, not allkeys-lru", NULL, NULL);
	rs_do(&on.s, "CONFIG SET maxmemory-policy noeviction");
	goes_on();
}
END_TEST

static bool
is_reported(const char *what)
{
	char text[10000];

	(void)evc_report(on.c, EVC_REPORT_TEXT, text, sizeof(text));
	return strstr(text, what) != NULL;
}

/* Nothing is to be said to the server, but the lock's renewals. */
START_TEST(memory_that_is_used_up)
{
	int n;

	begin();
	UNTIL(rs_number(&on.s, "EXISTS {t}:coord") == 1);
	rs_do(&on.s, "CONFIG SET maxmemory 1");
	SAYS("no memory left: OOM", NULL, NULL);
	UNTIL(is_reported(" has no memory left"));
	n = rs_errors(&on.s, "OOM");
	UNTIL(rs_errors(&on.s, "OOM") >= n + 2);
	ck_assert_int_eq(n_said("no memory left", NULL, NULL), 1);
	ck_assert_int_eq(n_said("has memory again", NULL, NULL), 0);
	rs_do(&on.s, "CONFIG SET maxmemory 0");
	SAYS("has memory again", NULL, NULL);
	UNTIL(!is_reported(" has no memory left"));
	goes_on();
}
END_TEST

/* ---- fresh ---- */

START_TEST(fresh)
{
	evc_value v = { 0 };
	long long g;
	int64_t x;

	rs_start(&on.s);
	rs_do(&on.s, "HSET {t}:count changes 9 finished 2");
	rs_do(&on.s, "HSET {t}:var x 7 y 7");
	rs_unlink(&on.s);
	open_at("?fresh=1");
	REFUSED(EVC_NOT_FOUND, evc_variable_get(on.cl, "y", &v));
	ck_assert_uint_eq(evc_cluster_finished(on.cl), 0);
	add(1);
	/* And not when the namespace is taken once more. */
	g = generation();
	rs_do(&on.s, "DEL {t}:coord");
	UNTIL(generation() > g);
	OK(evc_variable_get(on.cl, "x", &v));
	OK(evc_unpack(&v, "I", &x));
	ck_assert_int_eq(x, 1);
	evc_value_free(&v);
	goes_on();
}
END_TEST

RS_MAIN("redis/history", a_failover_and_back,
	a_failover_and_back_with_as_many_changes, a_replica_for_a_moment,
	a_replica_for_a_moment_without_variables, a_first_replica,
	changes_go_back, others_have_loaded_a_checkpoint,
	changes_of_others_go_back, variables_that_are_deleted,
	one_of_two_is_deleted, variables_that_are_deleted_and_made_anew,
	variables_that_are_deleted_and_read, variables_that_are_removed,
	variables_of_a_former_run_are_deleted,
	variables_of_a_former_run_are_deleted_before_a_use,
	an_older_file_that_is_trusted, trusted_without_a_file,
	variables_of_a_former_run, a_variable_that_was_read,
	variables_that_were_saved, none_were_saved,
	a_coordinator_that_stood_still,
	a_coordinator_that_stood_still_without_a_server, a_lease_that_is_deleted,
	a_lock_that_is_lost, another_coordinator_came_and_went,
	a_policy_that_is_changed_later,
	memory_that_is_used_up, fresh)
