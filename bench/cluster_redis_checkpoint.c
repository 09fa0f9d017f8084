/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoints of many variables over Redis: how long they take, what another
 * client of the server waits for an answer meanwhile, and the coordinator's
 * memory; at rest, while functions change variables, and back from the file.
 *
 *	EVC_BENCH_VARIABLES   how many (100000)
 *	EVC_BENCH_UPDATES     changes a second meanwhile (10000)
 *
 * The functions move money between accounts, one transaction each.  The sum of
 * all accounts in each file has to be exact.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <evcoord/value.h>

#include "cluster_redis.h"

#define METRIC "redis-checkpoint"
#define ACCOUNTS 1000u
#define MONEY 1000000
#define PIPELINE 1000u
#define WORKERS 2
#define PINGS_MOST 4000000
#define FILE_HEAD 24 /* bytes before the value in a checkpoint */

static unsigned
number_from(const char *name, unsigned otherwise)
{
	const char *is = getenv(name);

	return is && *is ? (unsigned)strtoul(is, NULL, 10) : otherwise;
}

/* ---- variables ---- */

static void
get_replies(redisContext *c, unsigned n)
{
	void *r;

	for (; n > 0; n--) {
		if (redisGetReply(c, &r) != REDIS_OK)
			bench_must_sys(EIO, "the server");
		freeReplyObject(r);
	}
}

/* Small integers, and the accounts. */
static void
fill(const struct bench_server *s, unsigned n)
{
	redisContext *c = bench_server_connect(s);
	unsigned i, open = 0;
	evc_value v;

	for (i = 0; i < n; i++) {
		bench_must(evc_pack(&v, "i", i < ACCOUNTS ? MONEY
							  : (int)(i % 60000)),
			   "evc_pack");
		redisAppendCommand(c, "HSET {checkpoint}:var %s%u %b",
				   i < ACCOUNTS ? "a" : "v:", i, v.data,
				   v.size);
		evc_value_free(&v);
		if (++open == PIPELINE) {
			get_replies(c, open);
			open = 0;
		}
	}
	get_replies(c, open);
	redisFree(c);
}

/* The sum of the accounts in a file, and how many variables it has. */
static double
sum_in(const char *path, size_t *ret_n)
{
	FILE *f = fopen(path, "rb");
	evc_value file, map, key, element, is;
	const char *name;
	const void *bytes;
	double sum = 0;
	uint64_t finished;
	size_t at = 0, n, size;
	char *all;
	int64_t x;

	*ret_n = 0;
	if (!f)
		bench_must_sys(errno, path);
	fseek(f, 0, SEEK_END);
	size = (size_t)ftell(f);
	rewind(f);
	all = malloc(size);
	if (!all || fread(all, 1, size, f) != size)
		bench_must_sys(EIO, path);
	fclose(f);
	file = (evc_value){ all + FILE_HEAD, size - FILE_HEAD };
	bench_must(evc_unpack(&file, "[Uv]", &finished, &map), "evc_unpack");
	while (evc_value_next(&map, &at, &key, &element)) {
		(*ret_n)++;
		bench_must(evc_unpack(&key, "S", &name, &n), "a name");
		if (name[0] != 'a')
			continue;
		bench_must(evc_unpack(&element, "B", &bytes, &n), "bytes");
		is = (evc_value){ bytes, n };
		bench_must(evc_unpack(&is, "I", &x), "a number");
		sum += (double)x;
	}
	free(all);
	return sum;
}

/* ---- another client ---- */

struct pinger {
	const struct bench_server *server;
	pthread_t thread;
	uint32_t stop; /* atomic */
	double *us;
	size_t n;
};

static void *
ping_main(void *arg)
{
	struct pinger *p = arg;
	redisContext *c = bench_server_connect(p->server);
	redisReply *r;
	uint64_t t0;

	while (!__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE) &&
	       p->n < PINGS_MOST) {
		t0 = bench_now();
		r = redisCommand(c, "PING");
		if (!r)
			bench_must_sys(EIO, "PING");
		p->us[p->n++] = (double)(bench_now() - t0) / 1e3;
		freeReplyObject(r);
		bench_sleep(0.001);
	}
	redisFree(c);
	return NULL;
}

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void
ping_begin(struct pinger *p, const struct bench_server *s)
{
	*p = (struct pinger){ .server = s };
	p->us = calloc(PINGS_MOST, sizeof(*p->us));
	if (!p->us)
		bench_must_sys(ENOMEM, "pings");
	p->thread = bench_thread(ping_main, p, 0);
}

static void
ping_end(struct pinger *p, const char *what)
{
	char subject[64];

	__atomic_store_n(&p->stop, 1, __ATOMIC_RELEASE);
	pthread_join(p->thread, NULL);
	qsort(p->us, p->n, sizeof(*p->us), by_size);
	if (p->n > 0) {
		snprintf(subject, sizeof(subject), "%s/ping-p50", what);
		bench_count(METRIC, subject, p->us[p->n / 2] / 1e3, "ms");
		snprintf(subject, sizeof(subject), "%s/ping-p99", what);
		bench_count(METRIC, subject, p->us[p->n * 99 / 100] / 1e3, "ms");
		snprintf(subject, sizeof(subject), "%s/ping-max", what);
		bench_count(METRIC, subject, p->us[p->n - 1] / 1e3, "ms");
		bench_goal(METRIC, what, p->us[p->n * 99 / 100] / 1e3, "ms",
			   10);
	}
	free(p->us);
}

/* ---- changes ---- */

struct changer {
	struct bench_cluster *b;
	pthread_t thread;
	unsigned rate;
	uint32_t stop; /* atomic */
	unsigned long made;
};

static void *
change_main(void *arg)
{
	const evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	struct changer *ch = arg;
	uint64_t t0 = bench_now();
	evc_cluster_info info;
	double due;

	/* A transfer is two changes. */
	while (!__atomic_load_n(&ch->stop, __ATOMIC_ACQUIRE)) {
		due = (double)(bench_now() - t0) / 1e9 * ch->rate / 2;
		bench_must(evc_cluster_get(ch->b->cluster, &info),
			   "evc_cluster_get");
		while ((double)ch->made < due && info.n_queued < 1000) {
			unsigned a = (unsigned)rand() % ACCOUNTS,
				 z = (unsigned)rand() % ACCOUNTS;

			bench_must(evc_schedule_pack(ch->b->cluster, MOVE, &txn,
						     NULL, "[iii]", (int)a,
						     (int)z, rand() % 100),
				   "evc_schedule_pack");
			ch->made++;
			info.n_queued++;
		}
		bench_sleep(0.002);
	}
	bench_must(evc_cluster_join(ch->b->cluster, 60), "evc_cluster_join");
	return NULL;
}

/* ---- memory ---- */

/* MiB; with the peak set back to what there is now. */
static double
peak_memory(bool set_back)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	double kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kib = strtod(line + 6, NULL);
	if (f)
		fclose(f);
	f = set_back ? fopen("/proc/self/clear_refs", "w") : NULL;
	if (f) {
		fputs("5", f);
		fclose(f);
	}
	return kib / 1024;
}

/* ---- one of each ---- */

static void
count(const char *what, const char *figure, double value, const char *unit)
{
	char subject[64];

	snprintf(subject, sizeof(subject), "%s/%s", what, figure);
	bench_count(METRIC, subject, value, unit);
}

static void
measure(const struct bench_server *s, struct bench_cluster *b, const char *what,
	evc_status (*fn)(evc_cluster *, const char *), const char *path)
{
	struct pinger p;
	double before;
	uint64_t t0;

	(void)peak_memory(true);
	before = peak_memory(false);
	ping_begin(&p, s);
	t0 = bench_now();
	bench_must(fn(b->cluster, path), what);
	count(what, "seconds", (double)(bench_now() - t0) / 1e9, "s");
	ping_end(&p, what);
	count(what, "memory", peak_memory(false) - before, "MiB");
}

static void
check_file(const char *what, const char *path, unsigned n)
{
	size_t is;
	double sum = sum_in(path, &is);

	count(what, "file-variables", (double)is, "");
	if (is != n || sum != (double)MONEY * ACCOUNTS) {
		fprintf(stderr, "%s: a sum of %.0f in %zu variables\n", what,
			sum, is);
		exit(1);
	}
}

static void
measure_all(const struct bench_server *s, struct bench_cluster *b, unsigned n)
{
	struct changer ch = {
		.b = b, .rate = number_from("EVC_BENCH_UPDATES", 10000)
	};
	char path[96];
	uint64_t t0;

	snprintf(path, sizeof(path), "%s/checkpoint", s->folder);
	measure(s, b, "at-rest", evc_cluster_save, path);
	check_file("at-rest", path, n);
	t0 = bench_now();
	ch.thread = bench_thread(change_main, &ch, 0);
	bench_sleep(0.5);
	measure(s, b, "with-changes", evc_cluster_save, path);
	__atomic_store_n(&ch.stop, 1, __ATOMIC_RELEASE);
	pthread_join(ch.thread, NULL);
	count("with-changes", "changes",
	      2 * (double)ch.made / ((double)(bench_now() - t0) / 1e9), "1/s");
	check_file("with-changes", path, n);
	measure(s, b, "restore", evc_cluster_restore, path);
	unlink(path);
}

void
bench_redis_checkpoint(void)
{
	unsigned n = number_from("EVC_BENCH_VARIABLES", 100000);
	struct bench_server server;
	struct bench_cluster b;
	pid_t node;
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[1]);
	if (!bench_server_start(&server, METRIC))
		return;
	/* Many take longer than a group may. */
	if (n > 500000)
		alarm(0);
	n = n < 2 * ACCOUNTS ? 2 * ACCOUNTS : n;
	fill(&server, n);
	node = bench_node_start(&server, "checkpoint", WORKERS);
	bench_server_open(&server, "checkpoint", &b, NULL);
	bench_cluster_until_up(&b, WORKERS);
	measure_all(&server, &b, n);
	bench_cluster_close(&b);
	bench_node_end(node);
	bench_server_end(&server);
}
