/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chaos: workers and nodes are killed and frozen, networks hold what they carry or
 * drop it, the server is killed and started again with its data, each 150 to 200
 * ms something else; and all the while rounds of functions are scheduled and
 * joined.  Nothing may be lost, nothing may count twice, the sums of transactional
 * functions are exact, no join hangs, and of the namespace stays what the manual
 * says.
 *
 * The server writes each change to its disk before it answers, and the address
 * says that it can be trusted (trust-aof): only so can sums be exact.
 *
 * EVC_CHAOS_SECONDS: for how long (10); above 400, EVC_TEST_LIMIT has to be raised
 * as well.  EVC_SEED: what is random.  EVC_CHAOS_HARM: bits of what is done (all).
 */
#include "rows.h"

#include "../conformance/bank.h"

#define LEASE 2.0

enum { CHAOS_NODES = 3, CHAOS_WORKERS = 2, EACH_ROUND = 100 };

enum {
	KILL_WORKER,
	KILL_NODE,
	FREEZE_WORKER,
	FREEZE_NODE,
	CUT_NODE,
	CUT_COORDINATOR,
	HOLD_NODE,
	HOLD_COORDINATOR,
	RESTART_SERVER,
	FLUSH_SCRIPTS,
	HARMS
};

static const struct {
	const char *name;
	int weight;
} harms[HARMS] = {
	{ "workers killed", 40 },	{ "nodes killed", 15 },
	{ "workers frozen", 8 },	{ "nodes frozen", 4 },
	{ "networks of a node cut", 10 },
	{ "networks of the coordinator cut", 8 },
	{ "networks of a node held", 4 },
	{ "networks of the coordinator held", 3 },
	{ "server restarts", 3 },	{ "scripts flushed", 5 },
};

static struct {
	unsigned seed;
	double next;
	int done[HARMS];
	/* What is to be undone, and when. */
	pid_t frozen;
	double thaw, pass[2];
} ch;

/* ---- harm ---- */

static int
choose_harm(void)
{
	int allowed = from_environment("EVC_CHAOS_HARM", (1 << HARMS) - 1);
	int sum = 0, i, at;

	for (i = 0; i < HARMS; i++)
		sum += allowed >> i & 1 ? harms[i].weight : 0;
	at = rand_r(&ch.seed) % sum;
	for (i = 0; i < HARMS; i++) {
		at -= allowed >> i & 1 ? harms[i].weight : 0;
		if (at < 0)
			return i;
	}
	return 0;
}

static pid_t
any_worker(void)
{
	pid_t pids[8];
	unsigned n = workers_of(rand_r(&ch.seed) % CHAOS_NODES, pids, 8);

	return n > 0 ? pids[(unsigned)rand_r(&ch.seed) % n] : 0;
}

static void
freeze(pid_t pid, double seconds)
{
	if (pid == 0 || ch.frozen != 0)
		return;
	kill(pid, SIGSTOP);
	ch.frozen = pid;
	ch.thaw = t_now() + seconds;
}

static void
hold(int which, struct proxy *p, double seconds)
{
	if (ch.pass[which] != 0)
		return;
	proxy_set(p, rand_r(&ch.seed) % 2 == 0 ? PROXY_HOLD : PROXY_DEAF);
	ch.pass[which] = t_now() + seconds;
}

static void
undo(bool all)
{
	struct proxy *p[2] = { &rg.node, &rg.coord };
	double now = t_now();
	int i;

	if (ch.frozen != 0 && (all || ch.thaw <= now)) {
		/* Whoever it is by now, it is not stopped by us. */
		kill(ch.frozen, SIGCONT);
		ch.frozen = 0;
	}
	for (i = 0; i < 2; i++)
		if (ch.pass[i] != 0 && (all || ch.pass[i] <= now)) {
			proxy_set(p[i], PROXY_PASS);
			ch.pass[i] = 0;
		}
}

static double
some(double least, double most)
{
	return least + (most - least) * (rand_r(&ch.seed) % 1000) / 1000;
}

static void
do_harm(int which)
{
	int node = rand_r(&ch.seed) % CHAOS_NODES;
	pid_t pid;

	ch.done[which]++;
	switch (which) {
	case KILL_WORKER:
		pid = any_worker();
		if (pid != 0)
			kill(pid, SIGKILL);
		break;
	case KILL_NODE:
		if (ch.frozen == node_of(node))
			ch.frozen = 0;
		rig_node_again(node, CHAOS_WORKERS);
		break;
	case FREEZE_WORKER:
		freeze(any_worker(), some(0.1, 2 * LEASE));
		break;
	case FREEZE_NODE:
		freeze(node_of(node), some(0.1, 2 * LEASE));
		break;
	case CUT_NODE:
		proxy_cut(&rg.node);
		break;
	case CUT_COORDINATOR:
		proxy_cut(&rg.coord);
		break;
	case HOLD_NODE:
		hold(0, &rg.node, some(0.1, 2 * LEASE));
		break;
	case HOLD_COORDINATOR: /* in time: else it is unavailable, rightly */
		hold(1, &rg.coord, some(0.1, LEASE / 4));
		break;
	case RESTART_SERVER:
		rs_kill(rg.server);
		rs_start(rg.server);
		break;
	default:
		rs_do(rg.server, "SCRIPT FLUSH");
		break;
	}
}

static void
harm_when_due(void)
{
	undo(false);
	if (t_now() < ch.next)
		return;
	do_harm(choose_harm());
	ch.next = t_now() + some(0.15, 0.2);
}

/* ---- rounds ---- */

struct tally {
	uint64_t scheduled, transactions, plain;
	struct bank bank;
	int rounds;
};

static evc_remote *
one_of_round(struct tally *t, int i, evc_remote *before)
{
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL, .deaths = 255 };
	evc_schedule_opts any = { .deaths = 255 };
	double nap = some(0, 0.01);

	t->scheduled++;
	if (i % 25 == 3)
		return SCHEDULE_WITH(&any, "big", "[ii]", 70000 + i, i);
	if (i % 25 == 4)
		return SCHEDULE_WITH(&any, "look", "[rr]", before, before);
	if (i % 4 == 2)
		return bank_one(&t->bank, &ch.seed);
	if (i % 4 == 1) {
		t->plain++;
		return SCHEDULE_WITH(&any, "step", "[sd]", "plain", nap);
	}
	t->transactions++;
	return SCHEDULE_WITH(&txn, "step", "[sd]", "exact", nap);
}

static void
one_round(struct tally *t)
{
	double until = t_now() + 90;
	evc_remote *r[EACH_ROUND];
	char text[4096];
	evc_status st;
	int i;

	for (i = 0; i < EACH_ROUND; i++) {
		r[i] = one_of_round(t, i, i > 0 ? r[i - 1] : NULL);
		harm_when_due();
	}
	while ((st = evc_cluster_join(on.cl, 0.02)) ==
	       -EVC_DEADLINE_EXCEEDED) {
		harm_when_due();
		if (t_now() > until) {
			own_report(evc_cluster_scope(on.cl), text,
				   sizeof(text));
			ck_abort_msg("a join hangs: %s", text);
		}
	}
	ck_assert_msg(st == 0, "join: %d, %s", st, evc_last_error());
	for (i = 0; i < EACH_ROUND; i++) {
		evc_remote_info info = info_of(r[i]);

		ck_assert_msg(info.code == 0, "%s: %d, %s", info.function,
			      info.code, info.text);
		if (i % 25 == 4)
			IS(number_of(r[i]),
			   (int64_t)(2 * (70000 + i - 1)) * 256 + 2 * (i - 1));
	}
	for (i = 0; i < EACH_ROUND; i++)
		evc_remote_free(r[i]);
	t->rounds++;
}

static bool
ends_within(const char *key, long long most_ms)
{
	long long ms = rs_number(rg.server, "PTTL %s", key);

	/* -2: it has, by now. */
	return (ms > 0 && ms <= most_ms) || ms == -2;
}

/* Is it of a node that had just registered when the server was restarted?  Nobody
   knew of it, and it ends by itself. */
static bool
was_unheard(const char *key, const char *tail)
{
	return ch.done[RESTART_SERVER] > 0 &&
	       ((strncmp(tail, ":lease:", 7) == 0 &&
		 ends_within(key, (long long)(LEASE * 1000))) ||
		(strstr(tail, ":beat:") != NULL && ends_within(key, 60000)));
}

static void
only_what_stays(void)
{
	static const char *const stay[] = { ":ver", ":gen", ":var", ":count" };
	redisReply *r = rs_ask(rg.server, "KEYS *");
	size_t i, k;

	for (i = 0; i < r->elements; i++) {
		const char *key = r->element[i]->str;
		const char *tail = strchr(key, '}');

		ck_assert_msg(tail != NULL, "%s is left", key);
		tail++;
		for (k = 0; k < 4; k++)
			if (strcmp(tail, stay[k]) == 0)
				break;
		ck_assert_msg(k < 4 || was_unheard(key, tail), "%s is left",
			      key);
	}
	freeReplyObject(r);
}

static void
say(const struct tally *t)
{
	evc_cluster_info n = numbers();
	int i;

	printf("chaos: %d rounds, %llu functions, %llu lost with their "
	       "workers, %llu late;",
	       t->rounds, (unsigned long long)t->scheduled,
	       (unsigned long long)n.n_lost, (unsigned long long)n.n_late);
	for (i = 0; i < HARMS; i++)
		printf(" %s %d%s", harms[i].name, ch.done[i],
		       i < HARMS - 1 ? "," : "\n");
	fflush(stdout);
}

START_TEST(everything_fails_now_and_then)
{
	double until = t_now() + from_environment("EVC_CHAOS_SECONDS", 10);
	evc_cluster_config config = { .lease = LEASE,
				      .worker_wait = INFINITY };
	evc_join_opts budget = { .grace = T_LIMIT };
	struct tally t = { 0 };
	int i;

	ch.seed = (unsigned)from_environment("EVC_SEED", (int)(t_now() * 1000));
	printf("chaos: EVC_SEED=%u\n", ch.seed);
	fflush(stdout);
	rig(_i, &(struct rig_opts){ .own = true,
				    .append = true,
				    .coord_proxy = true,
				    .node_proxy = true,
				    .options = "?trust-aof=1" });
	for (i = 0; i < CHAOS_NODES; i++)
		rig_node(CHAOS_WORKERS);
	rig_open(&config);
	do {
		one_round(&t);
	} while (t_now() < until);
	undo(true);
	say(&t);
	ck_assert_uint_eq(numbers().n_scheduled, t.scheduled);
	ck_assert_uint_eq(numbers().n_done, t.scheduled);
	ck_assert_uint_eq(numbers().n_queued + numbers().n_running, 0);
	ck_assert_uint_eq(evc_cluster_finished(on.cl), t.scheduled);
	ck_assert_msg(variable("exact") == (double)t.transactions,
		      "%.0f, not %llu", variable("exact"),
		      (unsigned long long)t.transactions);
	ck_assert(variable("plain") >= (double)t.plain);
	bank_check(&t.bank);
	/* All come back. */
	UNTIL(numbers().n_up == CHAOS_NODES * CHAOS_WORKERS);
	evc_cluster_close(on.cl);
	on.cl = NULL;
	OK(evc_join(on.c, &budget, NULL));
	for (i = 0; i < CHAOS_NODES; i++)
		rig_node_ends(i, SIGTERM);
	only_what_stays();
	rs_unlink(rg.server);
}
END_TEST

static const evc_function functions[] = { ROW_FUNCTIONS, BANK_FUNCTIONS };

__attribute__((constructor)) static void
limit(void)
{
	row_seconds = from_environment("EVC_CHAOS_SECONDS", 10) + 180;
}

REDIS_ROWS("redis: chaos", functions, ROW(everything_fails_now_and_then))
