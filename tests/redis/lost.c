/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that fails: it goes for good, is started again with its data or
 * without, has no memory left, becomes a replica, forbids a command, forgets its
 * scripts.  What was promised holds until then, and what is said is true.
 *
 * Rows F09, F12 and F17 to F19, whose parameter servers are the server here.
 */
#include "rows.h"

/* ---- it goes for good ---- */

static void
begin_with_server(int i, double lease, const char *options, bool append)
{
	evc_cluster_config config = { .lease = lease };

	rig(i, &(struct rig_opts){ .own = true,
				   .append = append,
				   .options = options });
	rig_node(2);
	rig_open(&config);
}

/* Nothing of these functions runs, and all say why they did not. */
static void
all_are_unavailable(evc_remote *const *r, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		IS(code_of(r[i]), EVC_CANCELLED);
		ck_assert_uint_eq(info_of(r[i]).kind, EVC_FAILED_CLUSTER);
	}
}

static void
it_stays_unavailable(void)
{
	evc_remote *r = NULL;
	bool done;
	int i;

	for (i = 0; i < 3; i++) {
		IS(evc_schedule(on.cl, "who", NULL, NULL, NULL, &r),
		   EVC_UNAVAILABLE);
		ck_assert_ptr_null(r);
		IS(evc_cluster_done(on.cl, &done), EVC_UNAVAILABLE);
		IS(join(), EVC_UNAVAILABLE);
	}
}

START_TEST(F17_testJoinRaisesUnavailableErrorAtPsFailure)
{
	struct marks m = marks_begin();
	evc_remote *fine, *r[20];
	pid_t pids[2];
	int i;

	begin_with_server(_i, short_lease(), NULL, false);
	fine = SCHEDULE("add", "[ii]", 20, 22);
	OK(code_of(fine));
	r[0] = SCHEDULE("alone", "[sdb]", m.path, 1000.0, 0);
	for (i = 1; i < 20; i++)
		r[i] = SCHEDULE("hang", "[]");
	UNTIL(marks_in(&m) == 1);
	ck_assert_uint_eq(workers_of(0, pids, 2), 2);
	rs_kill(rg.server);
	IS(join(), EVC_UNAVAILABLE);
	/* By then nothing runs any more. */
	ck_assert(all_over(pids, 2));
	all_are_unavailable(r, 20);
	/* Results that have arrived are there. */
	IS(number_of(fine), 42);
	it_stays_unavailable();
	IS(take_number(fine), 42);
	for (i = 0; i < 20; i++)
		evc_remote_free(r[i]);
	marks_end(&m);
}
END_TEST

/* When it has noticed. */
static void
becomes_unavailable(void)
{
	double until = t_now() + T_LIMIT;
	evc_status st;

	do {
		st = evc_schedule_pack(on.cl, "add", NULL, NULL, "[ii]", 1, 2);
		t_sleep(0.01);
	} while (st == 0 && t_now() < until);
	IS(st, EVC_UNAVAILABLE);
}

START_TEST(F18_testScheduleRaisesUnavailableErrorAtPsFailure)
{
	evc_reason e;

	begin_with_server(_i, short_lease(), NULL, false);
	OK(join());
	rs_kill(rg.server);
	becomes_unavailable();
	OK(evc_cluster_error_get(on.cl, 0, &e));
	HAS(e.text, "127.0.0.1");
	it_stays_unavailable();
	/* Also when the server is there again. */
	rs_start(rg.server);
	t_sleep(0.2);
	it_stays_unavailable();
}
END_TEST

/* A worker is being replaced when the server goes: it is the server that is
   said, and a join does not wait for the worker. */
START_TEST(F12_testPSFailureWhileRecoveryFromWokerFailure)
{
	evc_remote *r[10];
	pid_t pids[2];
	evc_reason e;
	int i;

	begin_with_server(_i, short_lease(), NULL, false);
	for (i = 0; i < 10; i++)
		r[i] = SCHEDULE("hang", "[]");
	UNTIL(numbers().n_running == 2);
	ck_assert_uint_eq(workers_of(0, pids, 2), 2);
	OK(kill(pids[0], SIGKILL));
	rs_kill(rg.server);
	IS(join(), EVC_UNAVAILABLE);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	HAS(e.text, "127.0.0.1");
	ck_assert(all_over(pids, 2));
	all_are_unavailable(r, 10);
	it_stays_unavailable();
	for (i = 0; i < 10; i++)
		evc_remote_free(r[i]);
}
END_TEST

/* For whichever worker a function is. */
START_TEST(F19_testWorkerExecutionAfterPsFailureRaisesExpectedError)
{
	char name[2][48];
	unsigned i;

	begin_with_server(_i, short_lease(), NULL, false);
	for (i = 0; i < 2; i++)
		snprintf(name[i], sizeof(name[i]), "%s", worker(i).name);
	rs_kill(rg.server);
	becomes_unavailable();
	for (i = 0; i < 2; i++) {
		evc_schedule_opts o = { .worker = name[i] };

		IS(evc_schedule_pack(on.cl, "add", &o, NULL, "[ii]", 1, 2),
		   EVC_UNAVAILABLE);
	}
}
END_TEST

static void
restart(void)
{
	rs_kill(rg.server);
	rs_start(rg.server);
}

/* It may have lost variables. */
static void
ends_when_it_is_restarted(void)
{
	evc_reason e;

	restart();
	becomes_unavailable();
	OK(evc_cluster_error_get(on.cl, 0, &e));
	HAS(e.text, "variables");
}

/* The server as it was, but for all it knew. */
START_TEST(F09_testPSPreemptionErrorType)
{
	begin_with_server(_i, 5, NULL, false);
	DO("count", "[sd]", "n", 1.0);
	OK(join());
	ck_assert(variable("n") == 1);
	ends_when_it_is_restarted();
	it_stays_unavailable();
	REFUSED(EVC_UNAVAILABLE, evc_variable_add(on.cl, "n", 1, NULL));
}
END_TEST

/* The coordinator has not asked for any variable, and it is only a moment ago that
   a function has. */
START_TEST(restarted_without_variables_of_functions)
{
	begin_with_server(_i, 5, NULL, false);
	DO("step", "[sd]", "n", 0.0);
	OK(join());
	ends_when_it_is_restarted();
}
END_TEST

/* Of a former run: it was not changed, but read. */
START_TEST(restarted_without_variables_that_functions_read)
{
	rig(_i, &(struct rig_opts){ .own = true });
	rs_do(rg.server, "HSET {%s}:var n 1", rg.ns);
	rs_do(rg.server, "HSET {%s}:count changes 1", rg.ns);
	rig_node(2);
	rig_open(NULL);
	DO("read", "[s]", "n");
	OK(join());
	ends_when_it_is_restarted();
}
END_TEST

/* The coordinator knows of the first change when it is told of the function, and
   not at the next renewal of its lock. */
START_TEST(variables_are_deleted_soon_after_the_first_change)
{
	const evc_cluster_config config = { .lease = 5 };
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	evc_value v = { NULL, 0 };
	evc_remote *r;

	rig(_i, &(struct rig_opts){ .own = true });
	rig_node(1);
	rig_open(&config);
	r = SCHEDULE_WITH(&txn, "step", "[sd]", "n", 0.0);
	OK(code_of(r));
	/* Behind the coordinator's question for the changes. */
	IS(evc_variable_get(on.cl, "nothing", &v), -EVC_NOT_FOUND);
	rs_do(rg.server, "DEL {%s}:var {%s}:count", rg.ns, rg.ns);
	/* Before the next renewal, too. */
	IS(evc_variable_get(on.cl, "n", &v), -EVC_UNAVAILABLE);
	UNTIL(join() == EVC_UNAVAILABLE);
	HAS(evc_last_error(), "has fewer changes than it had");
	evc_remote_free(r);
}
END_TEST

/* They are counted anew, and soon there are more than before. */
START_TEST(the_counts_of_changes_are_deleted)
{
	rig(_i, &(struct rig_opts){ .own = true });
	rig_node(1);
	rig_open(NULL);
	OK(evc_variable_add(on.cl, "n", 1, NULL));
	rs_do(rg.server, "DEL {%s}:count", rg.ns);
	rs_do(rg.server, "HINCRBY {%s}:count changes 1000", rg.ns);
	UNTIL(join() == EVC_UNAVAILABLE);
	HAS(evc_last_error(), "has fewer counts of changes than it had");
}
END_TEST

/* Nobody is there, from the beginning on: no call waits for ever. */
START_TEST(never_there)
{
	evc_cluster_config config = { .lease = 0.5, .worker_wait = 0.5 };
	evc_value v = { NULL, 0 };
	char path[] = "/tmp/evc-redis-nothing";

	rig(_i, &(struct rig_opts){ .own = true });
	rs_kill(rg.server);
	rig_open(&config);
	/* From the opening on. */
	ck_assert(numbers().server_away > 0);
	REFUSED(EVC_UNAVAILABLE, evc_variable_get(on.cl, "n", &v));
	HAS(evc_last_error(), "127.0.0.1");
	REFUSED(EVC_UNAVAILABLE, evc_cluster_save(on.cl, path));
	DO("add", "[ii]", 1, 2);
	IS(join(), EVC_UNAVAILABLE);
}
END_TEST

START_TEST(away_for_longer_than_the_grace)
{
	struct marks m = marks_begin();
	pid_t pids[2];
	evc_remote *r;
	evc_reason e;

	rig(_i, &(struct rig_opts){ .own = true, .coord_proxy = true });
	rig_node(2);
	rig_open(&(evc_cluster_config){ .lease = short_lease() });
	r = SCHEDULE("alone", "[sdb]", m.path, 1000.0, 0);
	UNTIL(marks_in(&m) == 1);
	ck_assert_uint_eq(workers_of(0, pids, 2), 2);
	/* For the coordinator alone. */
	proxy_set(&rg.coord, PROXY_HOLD);
	IS(join(), EVC_UNAVAILABLE);
	ck_assert(all_over(pids, 2));
	OK(evc_cluster_error_get(on.cl, 0, &e));
	ck_assert_str_ne(e.text, "");
	proxy_set(&rg.coord, PROXY_PASS);
	t_sleep(0.2);
	it_stays_unavailable();
	IS(code_of(r), EVC_CANCELLED);
	evc_remote_free(r);
	marks_end(&m);
}
END_TEST

/* ---- it comes back ---- */

/* The number says since when it is away, however often it is tried, and then
   that it is there. */
START_TEST(away_is_a_number)
{
	evc_cluster_info n;
	double first;

	begin_with_server(_i, 20, NULL, false);
	UNTIL(numbers().server_away == 0);
	rs_kill(rg.server);
	UNTIL(numbers().server_away > 0);
	first = t_now() - numbers().server_away;
	UNTIL(numbers().server_away > 0.3);
	n = numbers();
	/* Of the same moment. */
	ck_assert(t_now() - n.server_away >= first - 0.001);
	ck_assert(n.server_away <= n.age);
	rs_start(rg.server);
	UNTIL(numbers().server_away == 0);
}
END_TEST

START_TEST(frozen_for_a_moment)
{
	struct marks m = marks_begin();
	evc_remote *r;

	begin_with_server(_i, 10, NULL, false);
	r = SCHEDULE("alone", "[sdb]", m.path, 0.2, 0);
	UNTIL(marks_in(&m) == 1);
	rs_freeze(rg.server);
	t_sleep(0.7);
	rs_thaw(rg.server);
	IS(take_number(r), 1);
	OK(join());
	ck_assert_uint_eq(numbers().n_lost, 0);
	IS(marks_end(&m), 1);
}
END_TEST

enum { MANY = 300 };

/* Schedules many, harms the server in the middle; all succeed. */
static void
many_meanwhile(void (*harm)(void), const struct marks *m)
{
	evc_schedule_opts o = { .deaths = 255 };
	evc_remote *r[MANY];
	int i;

	for (i = 0; i < MANY; i++) {
		r[i] = SCHEDULE_WITH(&o, "mark", "[s]", m->path);
		t_sleep(0.001);
		if (i == MANY / 2)
			harm();
	}
	OK(join());
	for (i = 0; i < MANY; i++) {
		IS(number_of(r[i]), 1);
		evc_remote_free(r[i]);
	}
}

START_TEST(restarted_without_its_data)
{
	struct marks m = marks_begin();

	begin_with_server(_i, 3, NULL, false);
	many_meanwhile(restart, &m);
	ck_assert_int_ge(marks_end(&m), MANY);
	ck_assert_uint_eq(numbers().n_done, MANY);
}
END_TEST

START_TEST(restarted_without_its_data_while_nothing_runs)
{
	begin_with_server(_i, 3, NULL, false);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
	restart();
	IS(take_number(SCHEDULE("add", "[ii]", 3, 4)), 7);
	restart();
	UNTIL(numbers().n_up == 2);
	IS(take_number(SCHEDULE("add", "[ii]", 5, 4)), 9);
	OK(join());
}
END_TEST

/* A function that ran when the server went begins again only when the first run
   of it is over. */
START_TEST(restarted_while_a_function_runs)
{
	struct marks m = marks_begin();
	evc_remote *r;

	begin_with_server(_i, 2, NULL, false);
	r = SCHEDULE("alone", "[sdb]", m.path, 3.0, 0);
	UNTIL(marks_in(&m) == 1);
	restart();
	/* INTERNAL would be two at a time. */
	ck_assert_int_ge(number_of(r), 1);
	OK(join());
	ck_assert_int_le(marks_end(&m), 2);
	evc_remote_free(r);
}
END_TEST

START_TEST(restarted_with_its_data_which_is_trusted)
{
	struct marks m = marks_begin();
	int i;

	begin_with_server(_i, 3, "?trust-aof=1", true);
	for (i = 0; i < 50; i++)
		DO("step", "[sd]", "n", 0.0);
	OK(join());
	many_meanwhile(restart, &m);
	ck_assert(variable("n") == 50);
	ck_assert_int_ge(marks_end(&m), MANY);
}
END_TEST

START_TEST(restarted_with_its_data_which_is_not_trusted)
{
	begin_with_server(_i, 3, NULL, true);
	DO("step", "[sd]", "n", 0.0);
	OK(join());
	ends_when_it_is_restarted();
	it_stays_unavailable();
}
END_TEST

/* Transactional functions are exact over a restart with all data. */
START_TEST(restarted_while_transactional_functions_run)
{
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL, .deaths = 255 };
	int i;

	begin_with_server(_i, 2, "?trust-aof=1", true);
	for (i = 0; i < MANY; i++) {
		OK(evc_schedule_pack(on.cl, "step", &txn, NULL, "[sd]", "n",
				     0.002));
		t_sleep(0.001);
		if (i == 100 || i == 200)
			restart();
	}
	OK(join());
	ck_assert_msg(variable("n") == MANY, "%g", variable("n"));
}
END_TEST

/* ---- it answers with errors ---- */

/* Functions fail while the server is so, by name, and succeed when it is not. */
static void
fails_and_recovers(const char *text, void (*harm)(void), void (*heal)(void))
{
	double until = t_now() + T_LIMIT;
	evc_remote *r;
	evc_status st;

	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
	harm();
	do {
		r = SCHEDULE("add", "[ii]", 3, 4);
		st = code_of(r);
		if (st != 0) {
			IS(st, EVC_RESOURCE_EXHAUSTED);
			HAS(info_of(r).text, text);
		}
		evc_remote_free(r);
		IS(join(), st);
	} while (st == 0 && t_now() < until);
	IS(st, EVC_RESOURCE_EXHAUSTED);
	heal();
	do {
		r = SCHEDULE("add", "[ii]", 3, 4);
		st = code_of(r);
		evc_remote_free(r);
		IS(join(), st);
	} while (st != 0 && t_now() < until);
	OK(st);
	IS(take_number(SCHEDULE("add", "[ii]", 5, 6)), 11);
	ck_assert_uint_eq(numbers().n_up, 2);
}

static void
no_memory(void)
{
	rs_do(rg.server, "CONFIG SET maxmemory 1");
}

static void
memory(void)
{
	rs_do(rg.server, "CONFIG SET maxmemory 0");
}

START_TEST(out_of_memory)
{
	begin_with_server(_i, 5, NULL, false);
	fails_and_recovers("OOM", no_memory, memory);
}
END_TEST

/* And a result that cannot be sent waits, and is not lost. */
START_TEST(out_of_memory_when_a_result_is_due)
{
	struct marks m = marks_begin();
	evc_remote *r;

	begin_with_server(_i, 10, NULL, false);
	r = SCHEDULE("alone", "[sdb]", m.path, 0.3, 0);
	UNTIL(marks_in(&m) == 1);
	no_memory();
	t_sleep(0.6);
	IS(info_of(r).state, EVC_REMOTE_RUNNING);
	memory();
	IS(take_number(r), 1);
	OK(join());
	IS(marks_end(&m), 1);
}
END_TEST

/* ---- its lock is lost, and cannot be taken again ---- */

static void
lose_lock(evc_cluster_config *config, int i)
{
	double is;

	rig(i, &(struct rig_opts){ .own = true });
	rig_node(2);
	rig_open(config);
	OK(evc_variable_add(on.cl, "n", 1, &is));
	no_memory();
	ck_assert_int_eq(rig_key("DEL", "coord"), 1);
	UNTIL(is_reported("cannot be taken"));
}

/* Calls about variables wait for six leases.  With memory all goes on. */
START_TEST(lock_without_memory)
{
	evc_cluster_config config = { .lease = short_lease() };
	double is;

	lose_lock(&config, _i);
	REFUSED(EVC_UNAVAILABLE, evc_variable_number(on.cl, "n", &is));
	HAS(evc_last_error(), "cannot be taken");
	ck_assert_uint_eq(evc_cluster_finished(on.cl), 0);
	memory();
	UNTIL(evc_variable_number(on.cl, "n", &is) == 0);
	ck_assert_msg(is == 1, "%g", is);
	rig_all_up();
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
}
END_TEST

static void *
change_once(void *cl)
{
	REFUSED(EVC_UNAVAILABLE, evc_variable_add(cl, "n", 1, NULL));
	return NULL;
}

/* After a stop they wait for the cluster's grace, and not for 30 seconds. */
START_TEST(stopped_without_its_lock)
{
	evc_cluster_config config = { .lease = 5, .grace = 0.5 };
	double begun = t_now();
	pthread_t t;

	lose_lock(&config, _i);
	OK(pthread_create(&t, NULL, change_once, on.cl));
	t_sleep(0.2);
	OK(evc_request_stop(on.c, 0, "enough"));
	OK(pthread_join(t, NULL));
	ck_assert_double_lt(t_now() - begun, T_LIMIT);
	rig_close();
}
END_TEST

static void
few_replicas(void)
{
	rs_do(rg.server, "CONFIG SET min-replicas-to-write 1");
}

static void
writable_again(void)
{
	rs_do(rg.server, "CONFIG SET min-replicas-to-write 0");
}

/* It has lost its replicas, and so takes no writes: NOREPLICAS. */
START_TEST(without_replicas)
{
	begin_with_server(_i, 10, NULL, false);
	fails_and_recovers("NOREPLICAS", few_replicas, writable_again);
}
END_TEST

/* It has become a replica of nobody who answers: nothing is given to it, and when
   it is a master again it is a new one, where all begins again. */
START_TEST(read_only_server)
{
	struct marks m = marks_begin();
	evc_remote *r[2];

	begin_with_server(_i, 10, NULL, false);
	r[0] = SCHEDULE("alone", "[sdb]", m.path, 0.3, 0);
	UNTIL(marks_in(&m) == 1);
	rs_do(rg.server, "REPLICAOF 127.0.0.1 1");
	r[1] = SCHEDULE("add", "[ii]", 3, 4);
	t_sleep(1);
	ck_assert_uint_ne(info_of(r[1]).state, EVC_REMOTE_DONE);
	rs_do(rg.server, "REPLICAOF NO ONE");
	IS(take_number(r[1]), 7);
	ck_assert_int_ge(number_of(r[0]), 1);
	IS(take_number(SCHEDULE("add", "[ii]", 5, 6)), 11);
	OK(join());
	rig_all_up();
	evc_remote_free(r[0]);
	ck_assert_int_le(marks_end(&m), 2);
}
END_TEST

/* For longer than all leases: what runs then ends, and begins again. */
START_TEST(read_only_server_for_long)
{
	struct marks m = marks_begin();
	evc_remote *r;
	pid_t pids[2];

	begin_with_server(_i, 2, NULL, false);
	r = SCHEDULE("alone", "[sdb]", m.path, 4., 0);
	UNTIL(marks_in(&m) == 1);
	ck_assert_uint_eq(workers_of(0, pids, 2), 2);
	rs_do(rg.server, "REPLICAOF 127.0.0.1 1");
	UNTIL(all_over(pids, 2));
	rs_do(rg.server, "REPLICAOF NO ONE");
	rig_all_up();
	IS(number_of(r), 2);
	IS(take_number(SCHEDULE("add", "[ii]", 5, 6)), 11);
	OK(join());
	evc_remote_free(r);
	IS(marks_end(&m), 2);
}
END_TEST

static void
forbid(void)
{
	rs_do(rg.server, "ACL SETUSER default -xadd");
}

static void
permit(void)
{
	rs_do(rg.server, "ACL SETUSER default +xadd");
}

START_TEST(a_command_is_forbidden)
{
	begin_with_server(_i, 10, NULL, false);
	fails_and_recovers("NOPERM", forbid, permit);
}
END_TEST

static void
flush_scripts(void)
{
	rs_do(rg.server, "SCRIPT FLUSH");
}

START_TEST(scripts_are_flushed)
{
	struct marks m = marks_begin();
	int i;

	begin_with_server(_i, 1.5, NULL, false);
	for (i = 0; i < 5; i++) {
		many_meanwhile(flush_scripts, &m);
		DO("step", "[sd]", "n", 0.0);
		OK(evc_schedule_pack(on.cl, "step",
				     (&(evc_schedule_opts){
					     .flags = EVC_TRANSACTIONAL }),
				     NULL, "[sd]", "n", 0.0));
	}
	OK(join());
	ck_assert(variable("n") == 10);
	IS(marks_end(&m), 5 * MANY);
	ck_assert_uint_eq(numbers().n_lost, 0);
}
END_TEST

/* All connections, by the server: nothing is lost and nothing runs twice. */
static void
kill_clients(void)
{
	rs_do(rg.server, "CLIENT KILL TYPE normal SKIPME yes");
}

START_TEST(the_server_drops_all_connections)
{
	struct marks m = marks_begin();

	begin_with_server(_i, 10, NULL, false);
	many_meanwhile(kill_clients, &m);
	IS(marks_end(&m), MANY);
	ck_assert_uint_eq(numbers().n_lost, 0);
}
END_TEST

/* ---- one that cannot be used, from the beginning ---- */

static void
refuses_with(int i, const char *option, const char *text)
{
	evc_cluster_config config = { .lease = short_lease(),
				      .worker_wait = 0.5 };

	rig(i, &(struct rig_opts){ .own = true });
	rs_kill(rg.server);
	rs_option(rg.server, "%s", option);
	rs_start(rg.server);
	rig_open_in_vain(&config, text);
}

START_TEST(a_policy_that_evicts)
{
	refuses_with(_i, "maxmemory-policy allkeys-lru", "noeviction");
}
END_TEST

/* A message above it would be sent again and again. */
START_TEST(a_limit_below_the_largest_message)
{
	evc_cluster_config config = { .max_frame = 1 << 20,
				      .worker_wait = 0.5 };
	static const struct {
		const char *name, *less, *says, *enough;
	} all[] = {
		{ "client-query-buffer-limit", "3145727",
		  " 3145727, and config.max_frame needs 3145728 there", "3mb" },
		{ "client-output-buffer-limit", "normal 18mb 0 0",
		  " normal 18874368", "normal 19mb 0 0" },
	};
	char says[200];
	size_t i;

	/* Against the default of config.max_frame. */
	refuses_with(_i, "client-query-buffer-limit 60mb",
		     "client-query-buffer-limit 62914560");
	for (i = 0; i < 2; i++) {
		rig_close();
		rs_do(rg.server, "CONFIG SET %s %s", all[i].name, all[i].less);
		snprintf(says, sizeof(says), "%s%s", all[i].name, all[i].says);
		rig_open_in_vain(&config, says);
		rs_do(rg.server, "CONFIG SET %s %s", all[i].name,
		      all[i].enough);
	}
	rig_close();
}
END_TEST

#define N_LARGE 25

static evc_status
fn_late_and_large(evc_exec *x, void *arg)
{
	static char bytes[900000];

	(void)arg;
	if (evc_exec_variable_add(x, "begun", 1, NULL) < 0)
		return EVC_INTERNAL;
	evc_exec_wait_for_stop(x, 0.5);
	return evc_exec_return(x, "B", bytes, sizeof(bytes));
}

/* Results that have come while the coordinator was away are more than the server
   may answer at once. */
START_TEST(an_answer_above_the_limit)
{
	evc_cluster_config config = { .max_frame = 1 << 20,
				      .lease = 5 * short_lease() };
	char size[160];
	int i;

	redis.may_expire = true;
	rig(_i, &(struct rig_opts){ .own = true, .coord_proxy = true });
	rs_do(rg.server, "CONFIG SET client-output-buffer-limit %s",
	      "normal 19mb 0 0");
	rig_node(N_LARGE);
	rig_open(&config);
	UNTIL(numbers().n_up == N_LARGE);
	for (i = 0; i < N_LARGE; i++)
		DO("late and large", "n");
	UNTIL(variable("begun") == N_LARGE);
	proxy_set(&rg.coord, PROXY_REFUSE);
	snprintf(size, sizeof(size), "MEMORY USAGE {%s}:%lld:ev SAMPLES 0",
		 rg.ns, (long long)rig_key("GET", "gen"));
	UNTIL(rs_number(rg.server, size) >= N_LARGE * 900000);
	proxy_set(&rg.coord, PROXY_PASS);
	OK(join());
	ck_assert_uint_eq(numbers().n_lost, 0);
}
END_TEST

START_TEST(a_replica)
{
	refuses_with(_i, "replicaof 127.0.0.1 1", "replica");
}
END_TEST

/* [name]: one more, when the variable "go" is there */
static evc_status
fn_step_when_told(evc_exec *x, void *arg)
{
	evc_value v = { NULL, 0 };
	char name[64];

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0)
		return EVC_INVALID_ARGUMENT;
	while (evc_exec_variable_get_loose(x, "go", &v) == -EVC_NOT_FOUND)
		if (evc_exec_wait_for_stop(x, 0.002))
			return EVC_CANCELLED;
	evc_value_free(&v);
	return evc_exec_variable_add(x, name, 1, NULL) < 0 ? EVC_UNAVAILABLE
							   : 0;
}

/* The number of the last renewal of the only node. */
static int64_t
last_beat(void)
{
	redisReply *keys = rs_ask(rg.server, "KEYS {%s}:*:beat:*", rg.ns);
	int64_t n = -1;

	if (keys->elements == 1) {
		redisReply *r = rs_ask(rg.server, "GET %s",
				       keys->element[0]->str);

		n = r->str != NULL ? strtoll(r->str, NULL, 10) : -1;
		freeReplyObject(r);
	}
	freeReplyObject(keys);
	return n;
}

enum harm {
	DELETED,   /* the last entry */
	NODE_DIES, /* and its entry is deleted */
	ENDED,     /* the keys of the generation, after a minute */
	TAKEN,     /* another coordinator came and went meanwhile */
	AWAY       /* the server is not reached any more */
};

static void
do_harm(enum harm harm, const char *ev)
{
	char seqs[160];

	switch (harm) {
	case ENDED:
		snprintf(seqs, sizeof(seqs), "%.*sseqs", (int)strlen(ev) - 2,
			 ev);
		rs_do(rg.server, "DEL %s %s {%s}:coord", ev, seqs, rg.ns);
		break;
	case TAKEN:
		rs_do(rg.server, "INCRBY {%s}:gen 5", rg.ns);
		rs_do(rg.server, "DEL %s {%s}:coord", ev, rg.ns);
		break;
	default:
		rs_do(rg.server, "XTRIM %s MAXLEN 0", ev);
		if (harm == NODE_DIES)
			rig_node_ends(0, SIGKILL);
	}
}

/* Somebody deletes the last entry of the node, with a result, while the coordinator
   is away: no later entry shows that it is missing. */
static void
the_last_entry_is_deleted(int i, unsigned flags, enum harm harm)
{
	/* The cluster is given up after three leases. */
	evc_cluster_config config = { .lease = (harm == AWAY ? 2 : 3) *
					       short_lease() };
	evc_schedule_opts o = { .flags = flags };
	evc_reason e;
	evc_remote *r;
	char ev[160];
	int64_t beat;

	redis.may_expire = true;
	rig(i, &(struct rig_opts){ .coord_proxy = true,
				   .own = harm == TAKEN,
				   .append = harm == TAKEN,
				   .options = harm == TAKEN ? "?trust-aof=1"
							    : NULL });
	rig_node(1);
	rig_open(&config);
	snprintf(ev, sizeof(ev), "{%s}:%lld:ev", rg.ns,
		 (long long)rig_key("GET", "gen"));
	r = SCHEDULE_WITH(&o, "step when told", "[s]", "n");
	UNTIL(info_of(r).state == EVC_REMOTE_RUNNING);
	proxy_set(&rg.coord, PROXY_REFUSE);
	UNTIL(numbers().server_away > 0);
	rs_do(rg.server, "HSET {%s}:var go 1", rg.ns);
	UNTIL(rig_key("HEXISTS", "var n") == 1);
	if (harm != AWAY) {
		/* The result of a plain function comes after its update. */
		beat = last_beat();
		UNTIL(last_beat() > beat + 1);
		do_harm(harm, ev);
		proxy_set(&rg.coord, PROXY_PASS);
	}
	if (flags == 0) {
		OK(code_of(r));
		ck_assert_uint_gt(info_of(r).attempts, 1);
		OK(join());
	} else {
		IS(join(), EVC_UNAVAILABLE);
		IS(join(), EVC_UNAVAILABLE);
		IS(evc_schedule(on.cl, "who", NULL, NULL, NULL, NULL),
		   EVC_UNAVAILABLE);
		OK(evc_cluster_error_get(on.cl, 0, &e));
		HAS(e.text, harm == AWAY ? "there was no connection"
					 : "an entry of node");
		IS(code_of(r), EVC_UNAVAILABLE);
		ck_assert_uint_eq(info_of(r).kind, EVC_FAILED_LOST);
		HAS(info_of(r).text, "its updates may have been made: node ");
		ck_assert_int_eq(rig_key("HGET", "count finished"), 1);
	}
	evc_remote_free(r);
}

START_TEST(the_last_result_is_deleted)
{
	the_last_entry_is_deleted(_i, 0, DELETED);
}
END_TEST

/* Its updates are made, so it may not run again. */
START_TEST(the_last_transactional_result_is_deleted)
{
	the_last_entry_is_deleted(_i, EVC_TRANSACTIONAL, DELETED);
}
END_TEST

/* Nor when the node is there no more. */
START_TEST(the_last_result_of_a_node_is_deleted)
{
	the_last_entry_is_deleted(_i, EVC_TRANSACTIONAL, NODE_DIES);
}
END_TEST

/* Nor when the coordinator has stood still for so long that the result is gone, and
   the number of the last updates, too. */
START_TEST(a_generation_ends_while_its_coordinator_stands_still)
{
	the_last_entry_is_deleted(_i, EVC_TRANSACTIONAL, ENDED);
}
END_TEST

START_TEST(a_result_is_not_reached_any_more)
{
	the_last_entry_is_deleted(_i, EVC_TRANSACTIONAL, AWAY);
}
END_TEST

START_TEST(another_coordinator_takes_a_result_away)
{
	the_last_entry_is_deleted(_i, EVC_TRANSACTIONAL, TAKEN);
}
END_TEST

static const evc_function functions[] = {
	ROW_FUNCTIONS, { .name = "late and large", .fn = fn_late_and_large },
	{ .name = "step when told", .fn = fn_step_when_told }
};

REDIS_ROWS("redis: the server is lost", functions,
	   ROW(F09_testPSPreemptionErrorType),
	   ROW(F12_testPSFailureWhileRecoveryFromWokerFailure),
	   ROW(F17_testJoinRaisesUnavailableErrorAtPsFailure),
	   ROW(F18_testScheduleRaisesUnavailableErrorAtPsFailure),
	   ROW(F19_testWorkerExecutionAfterPsFailureRaisesExpectedError),
	   ROW(restarted_without_variables_of_functions),
	   ROW(restarted_without_variables_that_functions_read),
	   ROW(variables_are_deleted_soon_after_the_first_change),
	   ROW(the_counts_of_changes_are_deleted),
	   ROW(never_there),
	   ROW(away_for_longer_than_the_grace), ROW(away_is_a_number),
	   ROW(frozen_for_a_moment),
	   ROW(restarted_without_its_data),
	   ROW(restarted_without_its_data_while_nothing_runs),
	   ROW(restarted_while_a_function_runs),
	   ROW(restarted_with_its_data_which_is_trusted),
	   ROW(restarted_with_its_data_which_is_not_trusted),
	   ROW(restarted_while_transactional_functions_run),
	   ROW(out_of_memory), ROW(out_of_memory_when_a_result_is_due),
	   ROW(lock_without_memory), ROW(stopped_without_its_lock),
	   ROW(the_last_result_is_deleted),
	   ROW(the_last_transactional_result_is_deleted),
	   ROW(the_last_result_of_a_node_is_deleted),
	   ROW(a_generation_ends_while_its_coordinator_stands_still),
	   ROW(another_coordinator_takes_a_result_away),
	   ROW(a_result_is_not_reached_any_more),
	   ROW(without_replicas), ROW(read_only_server),
	   ROW(read_only_server_for_long),
	   ROW(a_command_is_forbidden), ROW(scripts_are_flushed),
	   ROW(the_server_drops_all_connections), ROW(a_policy_that_evicts),
	   ROW(a_limit_below_the_largest_message),
	   ROW(an_answer_above_the_limit), ROW(a_replica))
