/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large values: functions with arguments or a result of 4 MiB on one worker
 * that is a process, one after the other.
 *
 *	cluster-large-args    a value that is ready goes to the function
 *	cluster-large-result  a value comes back from it
 *
 * Beside both a forked process that reads as many bytes from a socketpair, by
 * plain calls and into memory that stays, and answers with one byte.  Each
 * reader looks at a byte of every page.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"

#define EACH 8 /* values in a sample */
#define ROUNDS 15
#define PAGE 4096

unsigned
bench_large_look(const void *bytes, size_t n)
{
	const volatile unsigned char *p = bytes;
	unsigned sum = 0;
	size_t i;

	for (i = 0; i < n; i += PAGE)
		sum += p[i];
	return sum;
}

/* ---- the bare pair ---- */

struct bare {
	pid_t pid;
	int fd;
	char *bytes;
};

static void
read_whole(int fd, char *to, size_t n)
{
	ssize_t got;

	for (; n > 0; to += got, n -= (size_t)got) {
		got = read(fd, to, n);
		if (got <= 0)
			_exit(got < 0);
	}
}

static void
write_whole(int fd, const char *from, size_t n)
{
	ssize_t put;

	for (; n > 0; from += put, n -= (size_t)put) {
		put = write(fd, from, n);
		if (put < 0)
			bench_must_sys(errno, "write of a large value");
	}
}

static _Noreturn void
swallow(int fd, char *room)
{
	for (;;) {
		read_whole(fd, room, BENCH_LARGE);
		room[0] = (char)bench_large_look(room, BENCH_LARGE);
		write_whole(fd, room, 1);
	}
}

static void
bare_start(struct bare *b)
{
	int fd[2];

	b->bytes = bench_array(1, BENCH_LARGE);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
		bench_must_sys(errno, "socketpair");
	b->pid = fork();
	if (b->pid < 0)
		bench_must_sys(errno, "fork");
	if (b->pid == 0) {
		close(fd[0]);
		swallow(fd[1], b->bytes);
	}
	close(fd[1]);
	b->fd = fd[0];
}

static void
bare_end(struct bare *b)
{
	close(b->fd);
	while (waitpid(b->pid, NULL, 0) < 0)
		if (errno != EINTR)
			bench_must_sys(errno, "waitpid");
	free(b->bytes);
}

static double
mb_a_second(uint64_t t0, unsigned n)
{
	return BENCH_LARGE / 1e6 * n / ((double)(bench_now() - t0) / 1e9);
}

static double
sample_bare(void *arg)
{
	struct bare *b = arg;
	uint64_t t0 = bench_now();
	unsigned i;
	char one;

	for (i = 0; i < EACH; i++) {
		write_whole(b->fd, b->bytes, BENCH_LARGE);
		read_whole(b->fd, &one, 1);
	}
	return mb_a_second(t0, EACH);
}

/* ---- ours ---- */

static void
fetch_one(const struct bench_large *l, const char *function,
	  const evc_value *args)
{
	evc_remote *remote;
	evc_value v;
	evc_status st;

	st = evc_schedule(l->cluster.cluster, function, args, NULL, NULL,
			  &remote);
	bench_must(st > 0 ? -st : st, "evc_schedule");
	st = evc_remote_fetch(remote, INFINITY, &v);
	bench_must(st > 0 ? -st : st, "evc_remote_fetch");
	(void)bench_large_look(v.data, v.size);
	evc_remote_free(remote);
}

static double
sample_args(void *arg)
{
	const struct bench_large *l = arg;
	uint64_t t0 = bench_now();
	unsigned i;

	for (i = 0; i < EACH; i++)
		fetch_one(l, SINK, &l->args);
	return mb_a_second(t0, EACH);
}

static double
sample_result(void *arg)
{
	const struct bench_large *l = arg;
	uint64_t t0 = bench_now();
	unsigned i;

	for (i = 0; i < EACH; i++)
		fetch_one(l, SOURCE, NULL);
	return mb_a_second(t0, EACH);
}

void
bench_large_compare(struct bench_large *l, const char *args_metric,
		    const char *result_metric, const struct bench_side *bare,
		    unsigned rounds)
{
	struct bench_side sides[] = { { BENCH_OURS, sample_args, l, 0 },
				      *bare };
	char *bytes = bench_array(1, BENCH_LARGE);

	bench_cluster_until_up(&l->cluster, 1);

	bench_must(evc_pack(&l->args, "[B]", bytes, (size_t)BENCH_LARGE),
		   "evc_pack");
	free(bytes);
	/* The first ones pay for memory. */
	(void)sample_args(l);
	(void)sample_result(l);
	bench_compare_rates(args_metric, "MB/s", sides, 2, rounds);
	sides[0].sample = sample_result;
	bench_compare_rates(result_metric, "MB/s", sides, 2, rounds);
	evc_value_free(&l->args);
	bench_cluster_close(&l->cluster);
}

void
bench_cluster_large(void)
{
	struct bench_large ours;
	struct bare bare;
	const struct bench_side other = { "raw/socketpair", sample_bare, &bare,
					  0.5 };
	int cpu[2];

	if (bench_cpus(cpu) < 2) {
		bench_skip("cluster-large", "one cpu only");
		return;
	}
	bench_pin(cpu[0], cpu[1]);
	bare_start(&bare);
	bench_cluster_open(&ours.cluster, "processes://1", NULL, NULL);
	bench_large_compare(&ours, "cluster-large-args", "cluster-large-result",
			    &other, ROUNDS);
	bare_end(&bare);
}
