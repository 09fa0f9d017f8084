/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More than one coordinator: one after the other, also when the first was killed
 * or frozen, and two at a time, of which one waits and says for whom.
 */
#include "rows.h"

#include "../support/old_kernel.h"

#include <sys/stat.h>

/* [file]: a byte more in it, and 1 more in the variable "sum", after a while */
static evc_status
fn_sum(evc_exec *x, void *arg)
{
	evc_status st = fn_mark(x, arg);

	if (st == 0)
		st = evc_exec_variable_add(x, "sum", 1, NULL);
	t_sleep(0.3);
	return st;
}

/* ---- another coordinator, as a process ---- */

struct other {
	pid_t pid;
	int say, hear; /* a byte each way */
};

struct plan {
	double lease;
	const char *checkpoint; /* save there, then it is ready */
	const char *marks;      /* a function that stays in this file */
	const char *sum;        /* a transactional one, which marks this one;
				   and large values */
	bool joins;             /* when it is told to go on it joins, and tells
				   the code; else it closes */
	bool saves_again;       /* before, another state */
};

/* In the child: nothing of check here. */
static void
coordinate(const struct plan *p, int in, int out)
{
	evc_cluster_config config = { .lease = p->lease,
				      .functions = table,
				      .n_functions = n_table };
	evc_join_opts budget = { .grace = T_LIMIT };
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	evc_cluster_info info;
	evc_cluster *cl;
	evc_remote *big;
	evc_coord *c;
	char byte = 'r';

	CHILD(evc_new(NULL, NULL, &c) == 0);
	CHILD(evc_cluster_open(c, rg.uri, &config, &cl) == 0);
	do {
		t_sleep(0.002);
		CHILD(evc_cluster_get(cl, &info) == 0);
	} while (info.n_up < on.n_workers);
	CHILD(evc_variable_add(cl, "theirs", 41, NULL) == 0);
	CHILD(evc_schedule_pack(cl, "count", NULL, NULL, "[sd]", "theirs",
				1.0) == 0);
	CHILD(evc_cluster_join(cl, T_LIMIT) == 0);
	if (p->checkpoint != NULL)
		CHILD(evc_cluster_save(cl, p->checkpoint) == 0);
	if (p->marks != NULL)
		CHILD(evc_schedule_pack(cl, "alone", NULL, NULL, "[sdb]",
					p->marks, 1000.0, 1) == 0);
	if (p->sum != NULL)
		CHILD(evc_schedule_pack(cl, "sum", &txn, NULL, "[s]", p->sum) ==
			      0 &&
		      evc_schedule_pack(cl, "big", NULL, &big, "[ii]", 70000,
					1) == 0 &&
		      evc_schedule_pack(cl, "look", NULL, NULL, "[rr]", big,
					big) == 0);
	CHILD(write(out, &byte, 1) == 1);
	CHILD(read(in, &byte, 1) == 1);
	if (p->saves_again)
		CHILD(evc_variable_add(cl, "theirs", 100, NULL) == 0 &&
		      evc_cluster_save(cl, p->checkpoint) == 0);
	if (p->joins) {
		byte = (char)evc_cluster_join(cl, T_LIMIT);
		CHILD(write(out, &byte, 1) == 1);
	}
	evc_cluster_close(cl);
	CHILD(evc_join(c, &budget, NULL) == 0);
	CHILD(evc_free(c) == 0);
}

static struct other
other_start(const struct plan *p)
{
	int in[2], out[2];
	struct other o;

	OK(pipe2(in, O_CLOEXEC));
	OK(pipe2(out, O_CLOEXEC));
	o.pid = fork();
	ck_assert_int_ge(o.pid, 0);
	if (o.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		coordinate(p, in[0], out[1]);
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	o.say = in[1];
	o.hear = out[0];
	return o;
}

static int
other_says(const struct other *o)
{
	struct pollfd p = { .fd = o->hear, .events = POLLIN };
	char byte = 0;

	ck_assert_int_eq(poll(&p, 1, (int)(2 * T_LIMIT) * 1000), 1);
	ck_assert_msg(read(o->hear, &byte, 1) == 1, "it has ended");
	return byte;
}

static void
other_goes_on(const struct other *o)
{
	ck_assert_int_eq(write(o->say, "g", 1), 1);
}

/* sig 0: by itself, and well. */
static void
other_ends(struct other *o, int sig)
{
	int status;

	if (sig != 0)
		OK(kill(o->pid, sig));
	status = node_wait(o->pid);
	ck_assert(sig != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
	close(o->say);
	close(o->hear);
}

/* ---- one after the other ---- */

START_TEST(a_coordinator_is_killed_and_has_a_successor)
{
	struct marks m = marks_begin();
	struct plan p = { .lease = 1.5 * short_lease(), .marks = m.path };
	evc_cluster_config config = { .lease = 1.5 * short_lease() };
	struct other o;
	long long gen;
	evc_remote *r;
	pid_t pids[2];

	rig(_i, NULL);
	redis.may_expire = true;
	rig_node(1);
	o = other_start(&p);
	IS(other_says(&o), 'r');
	UNTIL(marks_in(&m) == 1);
	gen = rig_key("GET", "gen");
	ck_assert_uint_eq(workers_of(0, pids, 2), 1);
	other_ends(&o, SIGKILL);
	rig_open(&config);
	/* The node is the same, and what it ran for the other one is over. */
	ck_assert(process_is_over(pids[0]));
	ck_assert_int_gt(rig_key("GET", "gen"), gen);
	r = SCHEDULE("alone", "[sdb]", m.path, 0.0, 0);
	IS(take_number(r), 1);
	/* The variables are the server's. */
	ck_assert(variable("theirs") == 42);
	OK(join());
	IS(marks_end(&m), 2);
}
END_TEST

/* What the server had is gone as well, but there is a checkpoint; or it has something
   newer: then it is the checkpoint that counts. */
static void
restores_a_checkpoint(int i, bool is_gone)
{
	char path[] = "/tmp/evc-redis-checkpoint-XXXXXX";
	evc_cluster_config config = { .lease = 1.5, .checkpoint = path };
	struct plan p = { .lease = 1.5, .checkpoint = path };
	struct other o;
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	close(fd);
	OK(unlink(path));
	rig(i, &(struct rig_opts){ .own = true });
	rig_node(1);
	o = other_start(&p);
	IS(other_says(&o), 'r');
	other_ends(&o, SIGKILL);
	if (is_gone) {
		rs_kill(rg.server);
		rs_start(rg.server);
	} else
		rs_do(rg.server, "HSET {%s}:var theirs %b", rg.ns, "\x64",
		      (size_t)1);
	rig_open(&config);
	ck_assert(variable("theirs") == 42);
	ck_assert_uint_eq(evc_cluster_finished(on.cl), 1);
	DO("count", "[sd]", "theirs", 1.0);
	OK(join());
	ck_assert(variable("theirs") == 43);
	ck_assert_uint_eq(evc_cluster_finished(on.cl), 2);
	end_and_count();
	count_before();
	unlink(path);
}

START_TEST(a_successor_restores_a_checkpoint)
{
	restores_a_checkpoint(_i, true);
}
END_TEST

START_TEST(a_checkpoint_is_put_in_the_place_of_what_is_newer)
{
	restores_a_checkpoint(_i, false);
}
END_TEST

/* Its update was made, and nobody has heard of that: the coordinator sleeps, and
   then it is killed. */
START_TEST(killed_between_an_update_and_its_event)
{
	struct marks m = marks_begin();
	struct plan p = { .lease = 5, .sum = m.path };
	evc_cluster_config config = { .lease = 5 };
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	struct other o;
	char key[80];

	rig(_i, NULL);
	redis.may_expire = true;
	rig_node(2);
	o = other_start(&p);
	IS(other_says(&o), 'r');
	UNTIL(marks_in(&m) == 1);
	OK(kill(o.pid, SIGSTOP));
	snprintf(key, sizeof(key), "{%s}:var", rg.ns);
	UNTIL(rs_number(rg.server, "HEXISTS %s sum", key) == 1);
	other_ends(&o, SIGKILL);
	rig_open(&config);
	ck_assert(variable("sum") == 1);
	ck_assert_uint_eq(evc_cluster_finished(on.cl), 1);
	evc_remote_free(SCHEDULE_WITH(&txn, "sum", "[s]", m.path));
	OK(join());
	ck_assert(variable("sum") == 2);
	ck_assert_uint_eq(evc_cluster_finished(on.cl), 2);
	IS(marks_end(&m), 2);
}
END_TEST

/* Whenever it is killed: whatever it and its node have left in the server ends by
   itself, but what the manual says to stay. */
START_TEST(killed_at_any_moment)
{
	enum { TIMES = 12 };
	struct marks m = marks_begin();
	struct plan p = { .lease = 1, .sum = m.path };
	evc_cluster_config config = { .lease = 1 };
	struct other o;
	char key[80];
	int i;

	rig(_i, &(struct rig_opts){ .own = true });
	redis.may_expire = true;
	rig_node(2);
	snprintf(key, sizeof(key), "{%s}:coord", rg.ns);
	for (i = 0; i < TIMES; i++) {
		o = other_start(&p);
		UNTIL(rs_number(rg.server, "EXISTS %s", key) == 1);
		t_sleep(0.02 * i);
		other_ends(&o, SIGKILL);
		/* Nobody waits for its end. */
		rs_do(rg.server, "DEL %s", key);
	}
	rig_open(&config);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
	marks_end(&m);
	/* end_and_count() looks at what is left. */
}
END_TEST

START_TEST(one_closes_and_another_opens)
{
	struct plan p = { .lease = 60 };
	struct other o;
	long long gen;

	rig(_i, NULL);
	rig_node(2);
	o = other_start(&p);
	IS(other_says(&o), 'r');
	gen = rig_key("GET", "gen");
	other_goes_on(&o);
	other_ends(&o, 0);
	/* At once: a lease of 60 s has not to run out. */
	rig_open(NULL);
	ck_assert_int_gt(rig_key("GET", "gen"), gen);
	ck_assert(variable("theirs") == 42);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
}
END_TEST

/* ---- two at a time ---- */

START_TEST(the_second_waits_and_says_for_whom)
{
	evc_cluster_config config = { .worker_wait = 0.5 };
	struct plan p = { .lease = 60 };
	char holder[128], part[64];
	struct other o;
	unsigned workers;
	evc_reason e;

	rig(_i, NULL);
	rig_node(2);
	o = other_start(&p);
	IS(other_says(&o), 'r');
	workers = on.n_workers;
	on.n_workers = 0;
	e = rig_open_in_vain(&config, "in use by");
	HAS(e.text, rg.ns);
	/* Who holds it is named as the server has it. */
	{
		char key[80];

		snprintf(key, sizeof(key), "{%s}:coord", rg.ns);
		rs_text(rg.server, holder, sizeof(holder), "GET %s", key);
	}
	snprintf(part, sizeof(part), "%.40s", holder);
	HAS(e.text, part);
	/* The first one has noticed nothing, and goes in its own time. */
	other_goes_on(&o);
	other_ends(&o, 0);
	on.n_workers = workers;
	UNTIL(numbers().n_up == workers);
	/* It was raised; from here on all is well. */
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
}
END_TEST

/* There is nothing of its own to save. */
START_TEST(one_that_has_only_waited_ends_without_an_error)
{
	const char path[] = "/tmp/evc-redis-waited";
	evc_cluster_config config = { .checkpoint = path };
	struct plan p = { .lease = 60 };
	struct other o;

	rig(_i, NULL);
	rig_node(1);
	o = other_start(&p);
	IS(other_says(&o), 'r');
	on.n_workers = 0;
	rig_open(&config);
	UNTIL(is_reported("in use by"));
	evc_cluster_close(on.cl);
	on.cl = NULL;
	OK(evc_join(on.c, &(evc_join_opts){ .grace = T_LIMIT }, NULL));
	ck_assert_int_ne(access(path, F_OK), 0);
	other_goes_on(&o);
	other_ends(&o, 0);
}
END_TEST

/* However long it has waited; what it has read at its own open is old by then. */
/* The first one has its namespace, and perhaps its checkpoint. */
static struct other
first_is_there(int i, const struct plan *p)
{
	struct other o;

	unlink(p->checkpoint);
	rig(i, NULL);
	rig_node(2);
	o = other_start(p);
	IS(other_says(&o), 'r');
	return o;
}

/* The second one waits.  Returns the number of workers it is to have. */
static unsigned
second_waits(const evc_cluster_config *config)
{
	unsigned workers = on.n_workers;

	on.n_workers = 0;
	rig_open(config);
	UNTIL(is_reported("in use by"));
	return workers;
}

static void
the_second_goes_on(int i, bool had_file)
{
	const char path[] = "/tmp/evc-redis-second";
	evc_cluster_config config = { .lease = 1,
				      .worker_wait = 1000,
				      .checkpoint = path };
	struct plan p = { .lease = 60,
			  .checkpoint = path,
			  .saves_again = true };
	unsigned workers;
	struct other o;
	evc_remote *r;

	o = first_is_there(i, &p);
	if (!had_file)
		OK(unlink(path));
	workers = second_waits(&config);
	r = SCHEDULE("add", "[ii]", 1, 2);
	/* Calls about variables are refused after two leases, and that is long
	   ago. */
	UNTIL(numbers().age > 4);
	other_goes_on(&o);
	other_ends(&o, 0);
	IS(take_number(r), 3);
	on.n_workers = workers;
	ck_assert(variable("theirs") == 142);
	OK(join());
	end_and_count();
	count_before();
	unlink(path);
}

START_TEST(the_second_goes_on_from_the_last_save_of_the_first)
{
	the_second_goes_on(_i, true);
}
END_TEST

START_TEST(the_second_goes_on_from_the_only_save_of_the_first)
{
	the_second_goes_on(_i, false);
}
END_TEST

/* Then the server's variables stay, which are newer. */
START_TEST(the_second_finds_no_checkpoint_any_more)
{
	const char path[] = "/tmp/evc-redis-no-more";
	evc_cluster_config config = { .lease = 1,
				      .worker_wait = 1000,
				      .checkpoint = path };
	struct plan p = { .lease = 60, .checkpoint = path };
	unsigned workers;
	struct other o;

	o = first_is_there(_i, &p);
	workers = second_waits(&config);
	rs_do(rg.server, "HSET {%s}:var theirs %b", rg.ns, "\x64", (size_t)1);
	OK(unlink(path));
	other_goes_on(&o);
	other_ends(&o, 0);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	on.n_workers = workers;
	ck_assert(variable("theirs") == 100);
	OK(join());
	end_and_count();
	count_before();
	unlink(path);
}
END_TEST

struct call {
	const char *name;
	double is;
	evc_status status;
};

static void *
ask_number(void *arg)
{
	struct call *a = arg;

	a->status = evc_variable_number(on.cl, a->name, &a->is);
	return NULL;
}

/* The checkpoint is damaged, or cannot be opened, when its turn has come: nothing
   replaces what the server has, and each question has its own answer. */
START_TEST(the_second_finds_a_damaged_checkpoint)
{
	const char path[] = "/tmp/evc-redis-damaged";
	evc_cluster_config config = { .lease = 10,
				      .worker_wait = 1000,
				      .checkpoint = path };
	struct plan p = { .lease = 60, .checkpoint = path };
	struct call a[4] = { { .name = "theirs" }, { .name = "no. 1" },
			      { .name = "theirs" }, { .name = "no. 3" } };
	pthread_t thread[4];
	struct other o;
	int i;

	o = first_is_there(_i, &p);
	rs_do(rg.server, "HSET {%s}:var %b %b", rg.ns, "no. 1", (size_t)5,
	      "\x05", (size_t)1);
	rs_do(rg.server, "HSET {%s}:var %b %b", rg.ns, "no. 3", (size_t)5,
	      "\x07", (size_t)1);
	(void)second_waits(&config);
	for (i = 0; i < 4; i++)
		OK(pthread_create(&thread[i], NULL, ask_number, &a[i]));
	OK(truncate(path, 9));
	other_goes_on(&o);
	other_ends(&o, 0);
	for (i = 0; i < 4; i++) {
		OK(pthread_join(thread[i], NULL));
		if (a[i].status == 0)
			ck_assert(a[i].is == (i == 1 ? 5 : i == 3 ? 7 : 42));
	}
	UNTIL(join() == EVC_UNAVAILABLE);
	HAS(evc_last_error(), "its checkpoint was not restored: ");
	HAS(evc_last_error(), path);
	IS(rs_number(rg.server, "HEXISTS {%s}:var theirs", rg.ns), 1);
	evc_cluster_close(on.cl);
	on.cl = NULL;
	(void)evc_join(on.c, &(evc_join_opts){ .grace = T_LIMIT }, NULL);
	unlink(path);
}
END_TEST

/* Frozen for longer than its lease, it has lost its workers to the second one; and
   says so when it is thawed. */
START_TEST(the_first_was_frozen)
{
	struct marks m = marks_begin();
	struct plan p = { .lease = short_lease(),
			  .marks = m.path,
			  .joins = true };
	evc_cluster_config config = { .lease = short_lease() };
	struct other o;
	evc_remote *r;

	rig(_i, NULL);
	redis.may_expire = true;
	rig_node(1);
	o = other_start(&p);
	IS(other_says(&o), 'r');
	UNTIL(marks_in(&m) == 1);
	OK(kill(o.pid, SIGSTOP));
	rig_open(&config);
	r = SCHEDULE("alone", "[sdb]", m.path, 1.0, 0);
	UNTIL(marks_in(&m) == 2);
	other_goes_on(&o);
	OK(kill(o.pid, SIGCONT));
	IS(other_says(&o), EVC_UNAVAILABLE);
	other_ends(&o, 0);
	/* It has harmed nobody. */
	IS(take_number(r), 1);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	ck_assert(variable("theirs") == 42);
	OK(join());
	IS(marks_end(&m), 2);
}
END_TEST

/* Somebody has taken the lock by force. */
static void
the_lock_is_taken(int i, bool is_far)
{
	evc_cluster_config config = { .lease = 1 };
	struct marks m = marks_begin();
	evc_remote *r;
	evc_reason e;
	pid_t pid;
	char key[80];

	rig(i, NULL);
	rig_node(1);
	/* Else the kernel tells the coordinator who has ended, and it kills. */
	ck_assert(!is_far || kernel_be(KERNEL_5_2));
	rig_open(&config);
	r = SCHEDULE("alone", "[sdb]", m.path, 1000.0, 0);
	UNTIL(marks_in(&m) == 1);
	pid = runs_in(r);
	snprintf(key, sizeof(key), "{%s}:coord", rg.ns);
	rs_do(rg.server, "SET %s somebody-else", key);
	IS(join(), EVC_UNAVAILABLE);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	HAS(e.text, "another coordinator");
	ck_assert(process_is_killed(pid));
	IS(code_of(r), EVC_CANCELLED);
	IS(join(), EVC_UNAVAILABLE);
	rs_do(rg.server, "DEL %s", key);
	evc_remote_free(r);
	marks_end(&m);
	/* It may not delete what is another one's by now. */
	evc_cluster_close(on.cl);
	on.cl = NULL;
	OK(evc_join(on.c, &(evc_join_opts){ .grace = T_LIMIT }, NULL));
	rs_do(rg.server, "FLUSHALL");
}

START_TEST(the_lock_is_taken_away)
{
	the_lock_is_taken(_i, false);
}
END_TEST

/* All that makes them end is that they are not in its generation any more. */
START_TEST(the_lock_is_taken_away_from_nodes_far_away)
{
	if (!kernel_can_be_old())
		T_SKIP("no seccomp filters are allowed here");
	the_lock_is_taken(_i, true);
}
END_TEST

/* ---- another protocol ---- */

START_TEST(a_namespace_of_another_version)
{
	evc_cluster_config config = { .worker_wait = T_LIMIT };
	evc_reason e;
	char key[80];

	rig(_i, NULL);
	snprintf(key, sizeof(key), "{%s}:ver", rg.ns);
	rs_do(rg.server, "SET %s 999", key);
	rig_open(&config);
	DO("add", "[ii]", 1, 2);
	IS(join(), EVC_UNAVAILABLE);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	HAS(e.text, "999");
	HAS(e.text, "version");
	IS(join(), EVC_UNAVAILABLE);
	/* It was not touched. */
	IS(rs_number(rg.server, "GET %s", key), 999);
	IS(rig_key("EXISTS", "gen"), 0);
	IS(rig_key("EXISTS", "coord"), 0);
}
END_TEST

static const evc_function functions[] = { ROW_FUNCTIONS,
					  { .name = "sum", .fn = fn_sum } };

REDIS_ROWS("redis: coordinators", functions,
	   ROW(a_coordinator_is_killed_and_has_a_successor),
	   ROW(a_successor_restores_a_checkpoint),
	   ROW(a_checkpoint_is_put_in_the_place_of_what_is_newer),
	   ROW(killed_between_an_update_and_its_event),
	   ROW(killed_at_any_moment),
	   ROW(one_closes_and_another_opens),
	   ROW(the_second_waits_and_says_for_whom),
	   ROW(one_that_has_only_waited_ends_without_an_error),
	   ROW(the_second_goes_on_from_the_last_save_of_the_first),
	   ROW(the_second_goes_on_from_the_only_save_of_the_first),
	   ROW(the_second_finds_no_checkpoint_any_more),
	   ROW(the_second_finds_a_damaged_checkpoint),
	   ROW(the_first_was_frozen),
	   ROW(the_lock_is_taken_away),
	   ROW(the_lock_is_taken_away_from_nodes_far_away),
	   ROW(a_namespace_of_another_version))
