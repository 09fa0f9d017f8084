/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A writer of the namespace can say anything.  The coordinator signals no process
 * for that, opens few descriptors, takes no bytes as a value unread, and prints no
 * name that would forge a line.
 */
#include "support/redis_coord_util.h"

/* ---- pids ---- */

static pid_t
daemon_begin(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

/* It was there until now: its end is this signal. */
static void
daemon_end(pid_t pid)
{
	int status;

	OK(kill(pid, SIGUSR1));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1,
		      "it was ended by signal %d before", WTERMSIG(status));
}

/* A node that says that its process is the daemon's parent, and the daemon its
   worker. */
static struct hand_node *
forged(const char *name, unsigned n, pid_t daemon)
{
	struct hand_node *h = hn_new(&on.s, "t", name, n);
	unsigned i;

	hn_is_process(h, getpid());
	hn_register(h, LONG_MS);
	for (i = 0; i < n; i++) {
		hn_slot(h, i, 1);
		hn_note(h, FRAME_UP, (uint64_t)daemon, "here");
	}
	hn_send(h);
	return h;
}

/* It has a function; then that life of it ends by this. */
static void
nobody_is_killed(void (*end_life)(struct hand_node *h))
{
	pid_t daemon = daemon_begin();
	struct hand_node *h, *b;
	evc_remote *r;

	begin();
	h = forged("a", 1, daemon);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(h);
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	UNTIL(n_up() == 2);
	end_life(h);
	(void)hn_task(b);
	daemon_end(daemon);
	b->first = 0;
	hn_answer(b);
	ck_assert_int_eq(sum_of(r), 3);
	hn_free(h);
	end_with(b);
}

static void
delete_lease(struct hand_node *h)
{
	(void)h;
	rs_do(&on.s, "DEL {t}:lease:a");
}

START_TEST(its_lease_is_over)
{
	nobody_is_killed(delete_lease);
}
END_TEST

static void
send_garbage(struct hand_node *h)
{
	hn_slot(h, 0, 1);
	hn_send_as(h, UINT64_MAX - 1);
}

START_TEST(it_sends_garbage)
{
	nobody_is_killed(send_garbage);
}
END_TEST

static unsigned
n_deaths(const evc_remote *r)
{
	evc_remote_info i;

	OK(evc_remote_get(r, &i));
	return i.deaths;
}

static void
register_anew(struct hand_node *h)
{
	hn_register(h, LONG_MS);
}

START_TEST(it_registers_anew)
{
	nobody_is_killed(register_anew);
}
END_TEST

static evc_remote *
runs_transactional(struct hand_node *h)
{
	const evc_schedule_opts o = { .flags = EVC_TRANSACTIONAL };
	evc_remote *r = NULL;

	OK(evc_schedule_pack(on.cl, "add", &o, &r, "[ii]", 1, 2));
	(void)hn_task(h);
	return r;
}

/* The entries of the life before are read first, so that its updates are not made
   twice: the node has to come once more. */
START_TEST(it_registers_anew_with_a_transaction)
{
	struct hand_node *h;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = runs_transactional(h);
	hn_register(h, LONG_MS);
	UNTIL(rs_number(&on.s, "EXISTS {t}:lease:a") == 0);
	hn_free(h);
	h = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	runs_again_on(h, r);
	end_with(h);
}
END_TEST

static void
register_with_functions_counted(struct hand_node *h)
{
	/* the number of a want of memory */
	h->n_workers_and = NODE_NO_MEMORY;
	hn_register(h, LONG_MS);
	h->n_workers_and = 0;
}

/* A death counts for running functions when there was no memory, also when entries
   are read first; any other reason counts for nothing. */
START_TEST(it_registers_anew_for_a_reason)
{
	struct hand_node *h;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = runs_transactional(h);
	register_anew(h);
	UNTIL(rs_number(&on.s, "EXISTS {t}:lease:a") == 0);
	register_anew(h);
	hn_up(h, 0, 1);
	(void)hn_task(h);
	ck_assert_uint_eq(n_deaths(r), 0);
	register_with_functions_counted(h);
	UNTIL(rs_number(&on.s, "EXISTS {t}:lease:a") == 0);
	register_anew(h);
	hn_up(h, 0, 1);
	(void)hn_task(h);
	ck_assert_uint_eq(n_deaths(r), 1);
	h->first--;
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	end_with(h);
}
END_TEST

/* The node's updates were made, and the entry about them, the second, was deleted;
   then the node says, or does, this. */
static void
updates_are_lost(void (*end_it)(struct hand_node *h))
{
	struct hand_node *h;
	evc_remote_info i;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = runs_transactional(h);
	h->seq = 2;
	rs_do(&on.s, "HSET {t}:%llu:seqs a.%llu %b", (unsigned long long)h->g,
	      (unsigned long long)h->inc, "\x92\xa1" "2\x91\xa2ok", (size_t)7);
	end_it(h);
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_UNAVAILABLE);
	OK(evc_remote_get(r, &i));
	ck_assert_uint_eq(i.kind, EVC_FAILED_LOST);
	HAS(i.text, "its updates may have been made: node a: an entry of node a "
		    "was lost");
	ck_assert_int_eq(evc_cluster_join(on.cl, T_LIMIT), EVC_UNAVAILABLE);
	HAS(evc_last_error(), "an entry of node a was lost");
	evc_remote_free(r);
	hn_free(h);
	end_lost();
}

START_TEST(it_registers_anew_after_lost_updates)
{
	updates_are_lost(register_anew);
}
END_TEST

static void
its_worker_ends(struct hand_node *h)
{
	hn_slot(h, 0, 1);
	hn_note(h, FRAME_GONE, 1, "it was killed");
	hn_send(h);
}

START_TEST(its_worker_ends_after_lost_updates)
{
	updates_are_lost(its_worker_ends);
}
END_TEST

static void
leave(struct hand_node *h)
{
	ck_assert(hn_leave(h));
}

START_TEST(it_leaves_after_lost_updates)
{
	updates_are_lost(leave);
}
END_TEST

/* It does not leave: it is fenced. */
START_TEST(the_cluster_is_closed)
{
	pid_t daemon = daemon_begin();
	struct hand_node *h;

	begin();
	h = forged("a", 1, daemon);
	UNTIL(n_up() == 1);
	evc_cluster_close(on.cl);
	SAYS("of node a has ended", "did not leave", NULL);
	daemon_end(daemon);
	hn_free(h);
	end();
}
END_TEST

/* Init, the coordinator itself, who has started it, groups of processes, and
   numbers that no process has: as a node, and as its worker. */
START_TEST(whatever_pid_it_says)
{
	const int pids[] = { 1, getpid(), getppid(), 0, -getpid(),
			     INT_MIN, INT_MAX };
	struct hand_node *h, *b;
	char where[200], name[32];
	unsigned i, k;

	begin();
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	UNTIL(n_up() == 1);
	for (i = 0; i < sizeof(pids) / sizeof(pids[0]); i++)
		for (k = 0; k < 2; k++) {
			snprintf(name, sizeof(name), "a%u-%u", i, k);
			h = hn_new(&on.s, "t", name, 1);
			hn_is_process(h, getpid());
			snprintf(where, sizeof(where), "here %d%s",
				 k == 0 ? getpid() : pids[i],
				 strchr(strchr(h->where, ' ') + 1, ' '));
			snprintf(h->where, sizeof(h->where), "%s", where);
			hn_register(h, 300);
			hn_slot(h, 0, 1);
			hn_note(h, FRAME_UP, (uint64_t)(int64_t)pids[i], "x");
			hn_send(h);
			SAYS(name, "is fenced", NULL);
			UNTIL(n_up() == 1);
			hn_free(h);
		}
	end_with(b);
}
END_TEST

static void
turn(struct ev_loop *loop)
{
	ev_run(loop, EVRUN_NOWAIT);
	t_sleep(0.001);
}

/* The program destroys the loop under the cluster. */
START_TEST(the_loop_is_destroyed)
{
	static const evc_engine_ops *engines[1];
	const evc_cluster_config k = { .lease = LEASE,
				       .engines = engines,
				       .n_engines = 1 };
	const evc_config config = { .log = keep_said };
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_cluster_info info = { .n_up = 0 };
	pid_t daemon = daemon_begin();
	struct hand_node *h;

	engines[0] = evc_redis_engine("redis");
	rs_start(&on.s);
	OK(evc_new(loop, &config, &on.c));
	OK(evc_cluster_open(on.c, rs_uri(&on.s, "t", "", on.uri,
					 sizeof(on.uri)),
			    &k, &on.cl));
	while (rs_number(&on.s, "EXISTS {t}:coord") == 0)
		turn(loop);
	h = forged("a", 1, daemon);
	while (info.n_up == 0) {
		turn(loop);
		OK(evc_cluster_get(on.cl, &info));
	}
	ev_loop_destroy(loop);
	daemon_end(daemon);
	evc_cluster_close(on.cl);
	end_coord(on.c);
	hn_free(h);
	rs_free(&on.s);
}
END_TEST

/* ---- descriptors ---- */

enum { MANY = 1000 };

/* A thousand workers, all of which are one process. */
START_TEST(few_descriptors)
{
	pid_t daemon = daemon_begin();
	struct hand_node *h;
	int before;

	/* A machine that stands still for a moment does not end it. */
	on.lease = 20;
	begin();
	UNTIL(rs_number(&on.s, "EXISTS {t}:coord") == 1);
	before = t_count_fds();
	h = forged("a", MANY, daemon);
	UNTIL(n_up() == MANY);
	ck_assert_int_le(t_count_fds(), before + 300);
	daemon_end(daemon);
	end_with(h);
}
END_TEST

/* ---- bytes ---- */

/* The value of a result is none. */
START_TEST(a_result_that_is_no_value)
{
	/* An array of so many, and none of them. */
	struct frame_result res = {
		.r = { .took = 1e-6,
		       .value = { "\xdd\xff\xff\xff\xff", 5 } },
	};
	struct hand_node *h, *b;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	res.r.n = hn_task(h)->n;
	hn_slot(h, 0, 1);
	OK(evc__frame_put_result(&h->out, HN_MOST, &res));
	hn_send(h);
	SAYS("node a is fenced", "garbage", NULL);
	rs_do(&on.s, "DEL {t}:lease:a");
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	runs_again_on(b, r);
	hn_free(h);
	end_with(b);
}
END_TEST

/* ---- names ---- */

/* A line of the log, of the state that evc-cluster reads, of a report: none of
   them is written by a node's name or a worker's place. */
START_TEST(a_name_is_one_word)
{
	static const char *const names[] = { "a\nb", "a b", "a\033[2Jb", "\x7f" };
	char state[2000];
	struct hand_node *h;
	unsigned i;

	begin();
	UNTIL(rs_number(&on.s, "EXISTS {t}:coord") == 1);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		h = hn_new(&on.s, "t", names[i], 1);
		hn_register(h, 100);
		hn_free(h);
	}
	h = hn_new(&on.s, "t", "bad", 1);
	snprintf(h->where, sizeof(h->where), "far\033\x7f 1 - - -");
	hn_register(h, LONG_MS);
	SAYS("node bad is fenced", "printed", NULL);
	hn_free(h);
	h = hn_begin(&on.s, "t", "good", 1, LONG_MS);
	UNTIL(n_up() == 1);
	hn_slot(h, 0, 1);
	hn_note(h, FRAME_GONE, 0, "it has gone");
	hn_slot(h, 0, 2);
	hn_note(h, FRAME_UP, 5, "a\nb");
	hn_send(h);
	SAYS("node good is fenced", "printed", NULL);
	hn_register(h, LONG_MS);
	hn_up(h, 0, 1);
	SAYS("an entry of somebody is dropped", "no node", NULL);
	ck_assert_int_eq(n_said("\n", NULL, NULL), 0);
	ck_assert_int_eq(n_said("\033", NULL, NULL), 0);
	ck_assert_int_eq(n_said("\x7f", NULL, NULL), 0);
	UNTIL((rs_text(&on.s, state, sizeof(state), "GET {t}:%llu:state",
		       (unsigned long long)h->g),
	       strstr(state, "node good 2 far 77 1 1 ") != NULL));
	ck_assert_ptr_null(strstr(strstr(state, "node ") + 1, "node "));
	end_with(h);
}
END_TEST

RS_MAIN("redis/forged", its_lease_is_over, it_sends_garbage, it_registers_anew,
	it_registers_anew_with_a_transaction,
	it_registers_anew_for_a_reason, it_registers_anew_after_lost_updates,
	its_worker_ends_after_lost_updates, it_leaves_after_lost_updates, the_cluster_is_closed,
	whatever_pid_it_says, the_loop_is_destroyed, few_descriptors,
	a_result_that_is_no_value, a_name_is_one_word)
