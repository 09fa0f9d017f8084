/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chaos: workers are killed and frozen at random, some functions hang, some make
 * their worker talk nonsense, and all the while rounds of functions are
 * scheduled and joined.  Nothing may be lost, nothing may count twice, the sums
 * of transactional functions are exact, no join hangs, and nothing is left over.
 *
 * EVC_CHAOS_SECONDS: for how long (10; the bank, on each engine, 2); above 80,
 * EVC_TEST_LIMIT has to be raised as well.  EVC_SEED: what is random.
 */
#include "bank.h"

#include <sys/socket.h>
#include <sys/stat.h>

enum { WORKERS = 4, EACH_ROUND = 120 };

/* ---- functions ---- */

/* [name, seconds]: adds 1 before and 1 after that time */
static evc_status
fn_twice(evc_exec *x, void *arg)
{
	double seconds;
	char name[32];

	(void)arg;
	if (evc_exec_unpack(x, "[sd]", name, sizeof(name), &seconds) < 0)
		return EVC_INVALID_ARGUMENT;
	if (evc_exec_variable_add(x, name, 1, NULL) < 0)
		return EVC_INTERNAL;
	t_sleep(seconds);
	if (evc_exec_variable_add(x, name, 1, NULL) < 0)
		return EVC_INTERNAL;
	return evc_exec_return(x, "d", seconds);
}

/* [] -> attempt; the first one writes nonsense to all sockets it finds, one of
   which leads to the coordinator */
static evc_status
fn_nonsense(evc_exec *x, void *arg)
{
	unsigned char noise[300];
	evc_exec_info i;
	struct stat st;
	int fd;

	(void)arg;
	if (evc_exec_get(x, &i) < 0)
		return EVC_INTERNAL;
	memset(noise, 0xa7, sizeof(noise));
	for (fd = 3; i.attempt == 1 && fd < 64; fd++)
		if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
			(void)!send(fd, noise, sizeof(noise),
				    MSG_DONTWAIT | MSG_NOSIGNAL);
	return evc_exec_return(x, "u", i.attempt);
}

/* ---- who does the harm ---- */

struct villain {
	pthread_t thread;
	unsigned seed;
	atomic_int over;
	int killed, frozen;
};

/* Is it a worker of ours still?  Its number may be somebody else's by now. */
static bool
is_ours(pid_t pid)
{
	char path[32], text[512] = "";
	const char *p;
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	p = fgets(text, sizeof(text), f) != NULL ? strrchr(text, ')') : NULL;
	fclose(f);
	return p != NULL && sscanf(p + 2, "%*c %d", &parent) == 1 &&
	       is_parent_of_workers(parent);
}

static void *
do_harm(void *arg)
{
	struct villain *v = arg;
	evc_cluster_worker_info w;
	pid_t pid, thaw = 0;

	while (!atomic_load(&v->over)) {
		t_sleep(0.15 + 0.05 * (rand_r(&v->seed) % 1000) / 1000);
		if (thaw != 0 && is_ours(thaw))
			kill(thaw, SIGCONT);
		thaw = 0;
		if (evc_cluster_worker_get(on.cl,
					   (unsigned)rand_r(&v->seed) % WORKERS,
					   &w) != 0)
			continue;
		pid = pid_where(&w);
		if (pid == 0 || !is_ours(pid))
			continue;
		switch (rand_r(&v->seed) % 6) {
		case 0: /* for good: its lease ends it */
			kill(pid, SIGSTOP);
			v->frozen++;
			break;
		case 1: /* for a while */
			kill(pid, SIGSTOP);
			v->frozen++;
			thaw = pid;
			break;
		default:
			kill(pid, SIGKILL);
			v->killed++;
			break;
		}
	}
	if (thaw != 0 && is_ours(thaw))
		kill(thaw, SIGCONT);
	return NULL;
}

/* ---- rounds ---- */

struct tally {
	uint64_t scheduled, fine, failed, cancelled, transactions, plain;
	int rounds, hangs;
};

static evc_status
round_of(struct tally *t, unsigned *seed, bool with_hang)
{
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL, .deaths = 255 };
	evc_schedule_opts any = { .deaths = 255 };
	evc_schedule_opts brief = { .deaths = 255, .deadline = 0.3 };
	evc_remote *r[EACH_ROUND];
	int kind[EACH_ROUND], i;
	double nap;
	evc_status st;

	for (i = 0; i < EACH_ROUND; i++) {
		kind[i] = i == 7 && with_hang ? 'h' :
			  i % 40 == 13	      ? 'n' :
			  i % 4 == 0	      ? 'p' :
			  i % 4 == 1 && i > 1 ? 'r' :
						't';
		nap = (rand_r(seed) % 10) / 1000.0;
		switch (kind[i]) {
		case 'h':
			st = evc_schedule(on.cl, "hang", NULL, NULL, &brief,
					  &r[i]);
			break;
		case 'n':
			st = evc_schedule(on.cl, "nonsense", NULL, NULL, &any,
					  &r[i]);
			break;
		case 'p':
			st = evc_schedule_pack(on.cl, "twice", &any, &r[i],
					       "[sd]", "plain", nap);
			break;
		case 'r': /* the one of the round before its own last */
			st = evc_schedule_pack(on.cl, "echo", &any, &r[i],
					       "[[ri]]", r[i - 1], i);
			break;
		default:
			st = evc_schedule_pack(on.cl, "twice", &txn, &r[i],
					       "[sd]", "exact", nap);
			break;
		}
		if (st > 0)
			break; /* raised already: nothing runs any more */
		OK(st);
		t->scheduled++;
	}
	st = i < EACH_ROUND ? st : 0;
	if (st == 0) {
		st = evc_cluster_join(on.cl, 60);
		ck_assert_msg(st >= 0, "join: %d: %s", st, evc_last_error());
	} else {
		OK(evc_cluster_join(on.cl, 60));
	}
	IS(st, with_hang ? EVC_DEADLINE_EXCEEDED : 0);
	while (--i >= 0) {
		evc_remote_info info = info_of(r[i]);

		/* None is lost: each has its outcome. */
		ck_assert_uint_eq(info.state, EVC_REMOTE_DONE);
		if (info.code == 0) {
			t->fine++;
			t->transactions += kind[i] == 't';
			t->plain += kind[i] == 'p';
			ck_assert_int_ne(kind[i], 'h');
		} else if (kind[i] == 'h') {
			t->failed++;
			IS(info.code, EVC_DEADLINE_EXCEEDED);
		} else {
			ck_assert_msg(with_hang &&
					      info.code == EVC_CANCELLED &&
					      info.kind == EVC_FAILED_CANCEL,
				      "%s: code %d, kind %u: %s", info.function,
				      info.code, info.kind, info.text);
			t->cancelled++;
		}
		if (info.code == 0 && kind[i] == 'n')
			ck_assert_uint_ge(info.attempts, 2);
		if (info.code == 0 && kind[i] == 'r') {
			evc_value v;
			int64_t n;

			OK(evc_remote_fetch(r[i], 0, &v));
			OK(evc_unpack(&v, "[*I]", &n));
			IS(n, i);
		}
		evc_remote_free(r[i]);
	}
	t->rounds++;
	t->hangs += with_hang;
	return st;
}

START_TEST(workers_are_killed_and_frozen_and_talk_nonsense)
{
	evc_cluster_config config = { .lease = 0.8, .worker_wait = INFINITY };
	double until = t_now() + from_environment("EVC_CHAOS_SECONDS", 10);
	unsigned seed = (unsigned)from_environment("EVC_SEED",
						   (int)(t_now() * 1000));
	struct villain v = { .seed = seed + 1 };
	struct tally t = { 0 };
	evc_cluster_info n;

	printf("chaos: EVC_SEED=%u\n", seed);
	fflush(stdout);
	begin_with(_i, WORKERS, &config);
	OK(pthread_create(&v.thread, NULL, do_harm, &v));
	do {
		round_of(&t, &seed, rand_r(&seed) % 4 == 0);
	} while (t_now() < until || t.hangs == 0 || t.hangs == t.rounds);
	atomic_store(&v.over, 1);
	OK(pthread_join(v.thread, NULL));
	n = numbers();
	printf("chaos: %d rounds, %d killed, %d frozen, %llu functions, "
	       "%llu fine, %llu lost with their workers, %llu late\n",
	       t.rounds, v.killed, v.frozen, (unsigned long long)t.scheduled,
	       (unsigned long long)t.fine, (unsigned long long)n.n_lost,
	       (unsigned long long)n.n_late);
	/* No outcome came twice. */
	ck_assert_uint_eq(n.n_scheduled, t.scheduled);
	ck_assert_uint_eq(n.n_done, t.fine);
	ck_assert_uint_eq(n.n_failed, t.failed);
	ck_assert_uint_eq(n.n_cancelled, t.cancelled);
	ck_assert_uint_eq(n.n_queued + n.n_running, 0);
	ck_assert_uint_eq(evc_cluster_finished(on.cl), t.fine);
	ck_assert(variable("exact") == 2.0 * (double)t.transactions);
	ck_assert(variable("plain") >= 2.0 * (double)t.plain);
	ck_assert_int_gt(v.killed, 0);
}
END_TEST

/* ---- the bank ---- */

/* Workers come and go on top of it. */
static void *
resizes(void *arg)
{
	struct villain *v = arg;

	while (!atomic_load(&v->over)) {
		t_sleep(0.2 + 0.2 * (rand_r(&v->seed) % 1000) / 1000);
		if (evc_cluster_resize(on.cl, WORKERS - 1 +
					      (unsigned)rand_r(&v->seed) % 4) != 0)
			return arg;
	}
	return NULL;
}

static void
bank_round(struct bank *bank, unsigned *seed)
{
	evc_remote *r[EACH_ROUND];
	int i;

	for (i = 0; i < EACH_ROUND; i++)
		r[i] = bank_one(bank, seed);
	OK(evc_cluster_join(on.cl, 60));
	for (i = 0; i < EACH_ROUND; i++) {
		evc_remote_info info = info_of(r[i]);

		ck_assert_msg(info.code == 0, "%s: %d, %s", info.function,
			      info.code, info.text);
		evc_remote_free(r[i]);
	}
}

/* While workers are killed and frozen, come and go, and the watchdog looks at who
   is slow: whatever of this the engine has. */
START_TEST(the_bank_is_exact)
{
	char path[64] = "/tmp/evc-chaos-XXXXXX";
	evc_cluster_config config = { .lease = 0.8, .worker_wait = INFINITY,
				      .watchdog = 0.5, .watchdog_file = path };
	double until = t_now() + from_environment("EVC_CHAOS_SECONDS", 2);
	unsigned seed = (unsigned)from_environment("EVC_SEED",
						   (int)(t_now() * 1000));
	struct villain v = { .seed = seed + 1 }, more = { .seed = seed + 2 };
	int fd = mkstemp(path), rounds = 0;
	struct bank bank = { { 0 } };
	void *failed = NULL;

	ck_assert_int_ge(fd, 0);
	printf("chaos: the bank, EVC_SEED=%u\n", seed);
	fflush(stdout);
	begin_with(_i, WORKERS, &config);
	if (can(DIES))
		OK(pthread_create(&v.thread, NULL, do_harm, &v));
	if (can(RESIZES))
		OK(pthread_create(&more.thread, NULL, resizes, &more));
	do {
		bank_round(&bank, &seed);
		rounds++;
	} while (t_now() < until);
	atomic_store(&v.over, 1);
	atomic_store(&more.over, 1);
	if (can(DIES))
		OK(pthread_join(v.thread, NULL));
	if (can(RESIZES))
		OK(pthread_join(more.thread, &failed));
	ck_assert_ptr_null(failed);
	printf("chaos: %d rounds, %d killed, %d frozen, %llu overtaken, "
	       "the watchdog wrote %lld bytes\n",
	       rounds, v.killed, v.frozen,
	       (unsigned long long)numbers().n_conflicts,
	       (long long)lseek(fd, 0, SEEK_END));
	close(fd);
	unlink(path);
	bank_check(&bank);
	ck_assert_uint_eq(numbers().n_done, (unsigned)rounds * EACH_ROUND);
	ck_assert_uint_eq(evc_cluster_finished(on.cl),
			  (unsigned)rounds * EACH_ROUND);
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	BANK_FUNCTIONS,
	{ .name = "twice", .fn = fn_twice },
	{ .name = "hang", .fn = fn_hang },
	{ .name = "nonsense", .fn = fn_nonsense },
};

__attribute__((constructor)) static void
limit(void)
{
	row_seconds = from_environment("EVC_CHAOS_SECONDS", 10) + 180;
}

CONFORMANCE_MAIN("chaos", functions,
		 ROW_ON(DIES | DEADLINES,
			workers_are_killed_and_frozen_and_talk_nonsense),
		 ROW(the_bank_is_exact))
