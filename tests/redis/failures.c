/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers, nodes and networks that fail; each line of the failure table that is
 * about them.  Nothing is lost, nothing of one function runs twice at a time, and
 * what was lost runs again.
 */
#include "rows.h"

/* So long that nothing below waits for it. */
#define LONG_LEASE 60.0

/* The function alone is begun for the second time; or its end says why not. */
static void
begins_again(const struct marks *m, const evc_remote *r)
{
	UNTIL(marks_in(m) == 2 || info_of(r).state == EVC_REMOTE_DONE);
	ck_assert_msg(marks_in(m) == 2, "it is over: %s", info_of(r).text);
}

START_TEST(worker_kill_9)
{
	evc_cluster_config config = { .lease = LONG_LEASE };
	struct marks m = marks_begin();
	evc_remote *r;
	pid_t pid;

	rig(_i, NULL);
	rig_node(2);
	rig_node(2);
	rig_open(&config);
	r = SCHEDULE("alone", "[sdb]", m.path, 0.5, 0);
	UNTIL(marks_in(&m) == 1);
	pid = runs_in(r);
	OK(kill(pid, SIGKILL));
	IS(number_of(r), 2);
	ck_assert_uint_eq(info_of(r).deaths, 1);
	ck_assert(process_is_over(pid));
	IS(marks_end(&m), 2);
	OK(join());
	/* It is replaced on its node. */
	UNTIL(numbers().n_up == 4);
	evc_remote_free(r);
}
END_TEST

/* All its workers end with it; on this machine nobody waits for its lease. */
START_TEST(node_kill_9)
{
	evc_cluster_config config = { .lease = lease_of_deaths() };
	struct marks m = marks_begin();
	evc_remote *r;
	pid_t pids[2];

	rig(_i, NULL);
	rig_node(2);
	rig_open(&config);
	r = SCHEDULE("alone", "[sdb]", m.path, 0.3, 0);
	UNTIL(marks_in(&m) == 1);
	ck_assert_uint_eq(workers_of(0, pids, 2), 2);
	rig_node_ends(0, SIGKILL);
	UNTIL(all_over(pids, 2));
	UNTIL(numbers().n_up == 0);
	rig_node(1);
	IS(number_of(r), 2);
	ck_assert_uint_eq(info_of(r).deaths, 1);
	IS(marks_end(&m), 2);
	OK(join());
	evc_remote_free(r);
}
END_TEST

/* What three nodes have died of is given up. */
START_TEST(node_kill_9_three_times)
{
	evc_cluster_config config = { .lease = lease_of_deaths() };
	evc_remote *r;
	int i;

	rig(_i, NULL);
	rig_open(&config);
	r = SCHEDULE("hold", "[s]", "g");
	for (i = 0; i < 3; i++) {
		rig_node(1);
		UNTIL(are_in("g", i + 1));
		rig_node_ends(i, SIGKILL);
	}
	IS(code_of(r), EVC_ABORTED);
	ck_assert_uint_eq(info_of(r).deaths, 3);
	IS(join(), EVC_ABORTED);
	evc_remote_free(r);
}
END_TEST

/* A node that is stopped cannot end its workers: they do, when its lease is over.
   Then, and not before, the function begins elsewhere. */
START_TEST(node_frozen)
{
	evc_cluster_config config = { .lease = short_lease() };
	struct marks m = marks_begin();
	pid_t pids[2], frozen;
	evc_remote *r;

	rig(_i, NULL);
	rig_node(1);
	rig_open(&config);
	r = SCHEDULE("alone", "[sdb]", m.path, 3 * short_lease(), 0);
	UNTIL(marks_in(&m) == 1);
	ck_assert_uint_eq(workers_of(0, pids, 2), 1);
	frozen = node_of(0);
	OK(kill(frozen, SIGSTOP));
	rig_node(1);
	begins_again(&m, r);
	/* Its worker does not run, though its node is only asleep. */
	ck_assert(process_is_killed(pids[0]));
	IS(process_state(frozen), 'T');
	IS(number_of(r), 2);
	OK(kill(frozen, SIGCONT));
	/* It comes back, as another life. */
	UNTIL(numbers().n_up == 2);
	IS(marks_end(&m), 2);
	OK(join());
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	ck_assert_uint_eq(numbers().n_done, 2);
	evc_remote_free(r);
}
END_TEST

/* Somebody has deleted its lease: it notices, and ends what it runs before that
   begins elsewhere. */
static void
delete_leases(void)
{
	redisReply *keys = rs_ask(rg.server, "KEYS *");
	size_t i;

	for (i = 0; i < keys->elements; i++)
		if (strstr(keys->element[i]->str, rg.ns) != NULL &&
		    strstr(keys->element[i]->str, "}:lease:") != NULL)
			rs_do(rg.server, "DEL %s", keys->element[i]->str);
	freeReplyObject(keys);
}

START_TEST(lease_is_deleted)
{
	evc_cluster_config config = { .lease = 2 * short_lease() };
	struct marks m = marks_begin();
	evc_remote *r;
	pid_t pid;

	rig(_i, NULL);
	rig_node(1);
	rig_node(1);
	rig_open(&config);
	r = SCHEDULE("alone", "[sdb]", m.path, 2 * short_lease(), 0);
	UNTIL(marks_in(&m) == 1);
	pid = runs_in(r);
	delete_leases();
	IS(number_of(r), 2);
	ck_assert(process_is_over(pid));
	IS(marks_end(&m), 2);
	OK(join());
	/* Both come back, as other lives. */
	UNTIL(numbers().n_up == 2);
	evc_remote_free(r);
}
END_TEST

/* [name]: reads for 0.3 seconds; a read that is refused is its error */
static evc_status
fn_reads(evc_exec *x, void *arg)
{
	double until = t_now() + 0.3, is;
	char name[64];
	evc_status st = 0;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0)
		return EVC_INVALID_ARGUMENT;
	while (t_now() < until && st == 0)
		st = evc_exec_variable_number(x, name, &is);
	return st == 0 ? 0 : evc_exec_fail(x, -st, "%s", evc_last_error());
}

/* And the reads of those that run are no failures of theirs. */
START_TEST(lease_is_deleted_while_functions_read)
{
	evc_cluster_config config = { .lease = short_lease() };
	evc_schedule_opts often = { .deaths = 255 };
	evc_cluster_info i;
	int round;

	rig(_i, NULL);
	rig_node(2);
	rig_open(&config);
	for (round = 0; round < 40; round++)
		OK(evc_schedule_pack(on.cl, "reads", &often, NULL, "[s]",
				     "n"));
	for (round = 0; round < 3; round++) {
		UNTIL((i = numbers()).n_running >= 2);
		delete_leases();
		UNTIL(numbers().n_up < 2 && numbers().n_lost > i.n_lost);
		rig_all_up();
	}
	OK(join());
}
END_TEST

START_TEST(worker_frozen)
{
	evc_cluster_config config = { .lease = short_lease() };
	struct marks m = marks_begin();
	evc_remote *r;
	pid_t pid;

	rig(_i, NULL);
	rig_node(2);
	rig_open(&config);
	r = SCHEDULE("alone", "[sdb]", m.path, 1.5 * short_lease(), 0);
	UNTIL(marks_in(&m) == 1);
	pid = runs_in(r);
	OK(kill(pid, SIGSTOP));
	IS(number_of(r), 2);
	ck_assert(process_is_over(pid));
	IS(marks_end(&m), 2);
	OK(join());
	UNTIL(numbers().n_up == 2);
	evc_remote_free(r);
}
END_TEST

/* The network of a node passes nothing for longer than its lease. */
START_TEST(node_partitioned)
{
	evc_cluster_config config = { .lease = short_lease() };
	struct marks m = marks_begin();
	evc_remote *r;
	pid_t pids[2];

	rig(_i, &(struct rig_opts){ .node_proxy = true });
	rig_node(1);
	rig_open(&config);
	r = SCHEDULE("alone", "[sdb]", m.path, 3 * short_lease(), 0);
	UNTIL(marks_in(&m) == 1);
	ck_assert_uint_eq(workers_of(0, pids, 2), 1);
	proxy_set(&rg.node, PROXY_HOLD);
	rig_node(1);
	begins_again(&m, r);
	ck_assert(process_is_killed(pids[0]));
	proxy_set(&rg.node, PROXY_PASS);
	IS(number_of(r), 2);
	UNTIL(numbers().n_up == 2);
	IS(marks_end(&m), 2);
	OK(join());
	evc_remote_free(r);
}
END_TEST

/* Results that a partitioned node has made, and that come after all, do not
   count: the function has run elsewhere. */
START_TEST(late_results_of_a_partitioned_node)
{
	evc_cluster_config config = { .lease = short_lease() };
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	evc_remote *r;

	rig(_i, &(struct rig_opts){ .node_proxy = true });
	rig_node(1);
	rig_open(&config);
	r = SCHEDULE_WITH(&txn, "step", "[sd]", "exact", 0.3);
	UNTIL(info_of(r).state == EVC_REMOTE_RUNNING);
	proxy_set(&rg.node, PROXY_HOLD);
	rig_node(1);
	IS(number_of(r), 1);
	proxy_set(&rg.node, PROXY_PASS);
	UNTIL(numbers().n_up == 2);
	OK(join());
	ck_assert(variable("exact") == 1);
	evc_remote_free(r);
}
END_TEST

START_TEST(function_hangs_with_a_deadline)
{
	evc_schedule_opts o = { .deadline = 0.4 };
	evc_cluster_config config = { .lease = LONG_LEASE };
	evc_remote *r, *other;
	pid_t pid;

	rig(_i, NULL);
	rig_node(1);
	rig_node(1);
	rig_open(&config);
	other = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	r = SCHEDULE_WITH(&o, "insist", "[si]", "for ever", 0);
	UNTIL(are_in("for ever", 1));
	pid = runs_in(r);
	IS(code_of(r), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(info_of(r).attempts, 1);
	IS(join(), EVC_DEADLINE_EXCEEDED);
	ck_assert(process_is_over(pid));
	/* The other node's heard of the stop. */
	IS(code_of(other), EVC_CANCELLED);
	UNTIL(numbers().n_up == 2);
	evc_remote_free(r);
	evc_remote_free(other);
}
END_TEST

enum { MARKS = 400 };

/* Schedules MARKS functions that mark, does something now and then, and each has
   run exactly once. */
static void
marks_meanwhile(void (*harm)(int round))
{
	struct marks m = marks_begin();
	evc_remote *r[MARKS];
	int i;

	for (i = 0; i < MARKS; i++) {
		r[i] = SCHEDULE("mark", "[s]", m.path);
		t_sleep(0.001);
		if (i % 50 == 25)
			harm(i / 50);
	}
	OK(join());
	for (i = 0; i < MARKS; i++) {
		IS(number_of(r[i]), 1);
		ck_assert_uint_eq(info_of(r[i]).attempts, 1);
		evc_remote_free(r[i]);
	}
	IS(marks_end(&m), MARKS);
	ck_assert_uint_eq(numbers().n_lost, 0);
	ck_assert_uint_eq(numbers().n_late, 0);
}

static void
cut_node(int round)
{
	(void)round;
	proxy_cut(&rg.node);
}

static void
cut_coord(int round)
{
	(void)round;
	proxy_cut(&rg.coord);
}

/* The answers of one direction are lost first: what was sent has arrived, and
   nobody knows. */
static void
deafen_node(int round)
{
	proxy_set(&rg.node, round % 2 == 0 ? PROXY_DEAF : PROXY_HOLD);
	t_sleep(0.02);
	proxy_cut(&rg.node);
	proxy_set(&rg.node, PROXY_PASS);
}

static void
deafen_coord(int round)
{
	proxy_set(&rg.coord, round % 2 == 0 ? PROXY_DEAF : PROXY_HOLD);
	t_sleep(0.02);
	proxy_cut(&rg.coord);
	proxy_set(&rg.coord, PROXY_PASS);
}

START_TEST(node_reconnects_in_time)
{
	evc_cluster_config config = { .lease = LONG_LEASE };
	struct marks m = marks_begin();
	evc_remote *r;

	rig(_i, &(struct rig_opts){ .node_proxy = true });
	rig_node(2);
	rig_open(&config);
	/* One that ends while nobody can hear of it. */
	r = SCHEDULE("alone", "[sdb]", m.path, 0.3, 0);
	UNTIL(marks_in(&m) == 1);
	proxy_set(&rg.node, PROXY_REFUSE);
	t_sleep(0.5);
	proxy_set(&rg.node, PROXY_PASS);
	IS(number_of(r), 1);
	IS(marks_end(&m), 1);
	evc_remote_free(r);
	marks_meanwhile(cut_node);
	ck_assert_uint_eq(worker(0).lives + worker(1).lives, 2);
}
END_TEST

START_TEST(coordinator_reconnects_in_time)
{
	evc_cluster_config config = { .lease = LONG_LEASE };
	struct marks m = marks_begin();
	evc_remote *r;

	rig(_i, &(struct rig_opts){ .coord_proxy = true });
	rig_node(2);
	rig_open(&config);
	r = SCHEDULE("alone", "[sdb]", m.path, 0.3, 0);
	UNTIL(marks_in(&m) == 1);
	proxy_set(&rg.coord, PROXY_REFUSE);
	t_sleep(0.5);
	proxy_set(&rg.coord, PROXY_PASS);
	IS(number_of(r), 1);
	IS(marks_end(&m), 1);
	evc_remote_free(r);
	marks_meanwhile(cut_coord);
	ck_assert_uint_eq(worker(0).lives + worker(1).lives, 2);
}
END_TEST

START_TEST(answers_to_a_node_are_lost)
{
	evc_cluster_config config = { .lease = LONG_LEASE };

	rig(_i, &(struct rig_opts){ .node_proxy = true });
	rig_node(2);
	rig_open(&config);
	marks_meanwhile(deafen_node);
}
END_TEST

START_TEST(answers_to_the_coordinator_are_lost)
{
	evc_cluster_config config = { .lease = LONG_LEASE };

	rig(_i, &(struct rig_opts){ .coord_proxy = true });
	rig_node(2);
	rig_open(&config);
	marks_meanwhile(deafen_coord);
}
END_TEST

/* Of variables as well: of what the coordinator does, and of functions. */
START_TEST(no_update_is_made_twice)
{
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	evc_cluster_config config = { .lease = LONG_LEASE };
	int i;

	rig(_i, &(struct rig_opts){ .node_proxy = true, .coord_proxy = true });
	rig_node(2);
	rig_open(&config);
	for (i = 0; i < 200; i++) {
		OK(evc_schedule_pack(on.cl, "step", &txn, NULL, "[sd]",
				     "transactional", 0.0));
		DO("step", "[sd]", "plain", 0.0);
		if (i % 40 == 20)
			deafen_node(i / 40);
		if (i % 40 == 35)
			deafen_coord(i / 40);
		if (i % 10 == 5)
			OK(evc_variable_add(on.cl, "own", 1, NULL));
	}
	OK(join());
	ck_assert_uint_eq(numbers().n_lost, 0);
	ck_assert(variable("transactional") == 200);
	ck_assert(variable("plain") == 200);
	ck_assert(variable("own") == 20);
}
END_TEST

/* A slow network is no failed one. */
START_TEST(the_network_is_slow)
{
	evc_cluster_config config = { .lease = 2 * short_lease() };
	int i;

	rig(_i, &(struct rig_opts){ .node_proxy = true, .coord_proxy = true });
	rig_node(2);
	atomic_store(&rg.node.shared->delay, 15);
	atomic_store(&rg.coord.shared->delay, 15);
	rig_open(&config);
	for (i = 0; i < 100; i++)
		DO("step", "[sd]", "n", 0.0);
	OK(join());
	ck_assert(variable("n") == 100);
	ck_assert_uint_eq(numbers().n_lost, 0);
}
END_TEST

/* What takes longer to be sent than nothing may be heard goes on, as long as it goes
   on. */
START_TEST(a_large_argument_on_a_slow_network)
{
	/* It takes 6.7 s, at 3 MiB a second: longer than half of the lease,
	   which is how long nothing may be heard, and by far less than all of
	   it, in which the node has to hear. */
	evc_cluster_config config = { .lease = 12 };
	size_t n = 21 << 20;
	char *bytes = calloc(1, n);
	int seen;

	ck_assert_ptr_nonnull(bytes);
	rig(_i, &(struct rig_opts){ .coord_proxy = true });
	rig_node(1);
	rig_open(&config);
	seen = atomic_load(&rg.coord.shared->seen);
	atomic_store(&rg.coord.shared->delay, 20);
	IS(take_number(SCHEDULE("look", "[BB]", bytes, n, bytes, (size_t)1)),
	   (int64_t)(n + 1) * 256);
	OK(join());
	ck_assert_int_eq(atomic_load(&rg.coord.shared->seen), seen);
	free(bytes);
}
END_TEST

/* ---- exactly once ---- */

enum { COUNTED = 600 };

static void
count_under_fire(unsigned flags)
{
	evc_schedule_opts o = { .flags = flags, .deaths = 255 };
	unsigned seed = 1;
	pid_t pids[2];
	int i;

	for (i = 0; i < COUNTED; i++)
		OK(evc_schedule_pack(on.cl, "step", &o, NULL, "[sd]", "n",
				     0.003));
	for (i = 0; !all_done(); i++) {
		if (i % 6 == 5)
			rig_node_again(i / 6 % 2, 2);
		else if (workers_of(i % 2, pids, 2) == 2)
			kill(pids[rand_r(&seed) % 2], SIGKILL);
		t_sleep(0.1);
	}
	OK(join());
	ck_assert_uint_gt(numbers().n_lost, 0);
	ck_assert_uint_eq(numbers().n_done, COUNTED);
	ck_assert_uint_eq(evc_cluster_finished(on.cl), COUNTED);
}

START_TEST(six_hundred_transactional_increments)
{
	rig(_i, NULL);
	rig_node(2);
	rig_node(2);
	rig_open(NULL);
	count_under_fire(EVC_TRANSACTIONAL);
	ck_assert_msg(variable("n") == COUNTED, "%g, not %d", variable("n"),
		      COUNTED);
}
END_TEST

START_TEST(six_hundred_plain_increments)
{
	double n;

	rig(_i, NULL);
	rig_node(2);
	rig_node(2);
	rig_open(NULL);
	count_under_fire(0);
	n = variable("n");
	ck_assert(n >= COUNTED);
	ck_assert(n <= COUNTED + (double)numbers().n_lost);
}
END_TEST

static const evc_function functions[] = {
	ROW_FUNCTIONS, { .name = "reads", .fn = fn_reads }
};

REDIS_ROWS("redis: failures", functions, ROW(worker_kill_9), ROW(node_kill_9),
	   ROW(node_kill_9_three_times), ROW(node_frozen),
	   ROW(lease_is_deleted),
	   ROW(lease_is_deleted_while_functions_read), ROW(worker_frozen),
	   ROW(node_partitioned), ROW(late_results_of_a_partitioned_node),
	   ROW(function_hangs_with_a_deadline), ROW(node_reconnects_in_time),
	   ROW(coordinator_reconnects_in_time), ROW(answers_to_a_node_are_lost),
	   ROW(answers_to_the_coordinator_are_lost),
	   ROW(no_update_is_made_twice), ROW(the_network_is_slow),
	   ROW(a_large_argument_on_a_slow_network),
	   ROW(six_hundred_transactional_increments),
	   ROW(six_hundred_plain_increments))
