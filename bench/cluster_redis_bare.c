/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limit of workers beyond one machine: the six commands that a task takes
 * when the queue stands in streams of Redis, and nothing else.  Replies are
 * looked into no further than is needed to count them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster_redis.h"

#define QUEUE "{bare}:q"
#define EVENTS "{bare}:ev"
#define MOST 1000    /* events of one XREAD */
#define TRIM 10000   /* tasks between two XTRIM */

static void
add(redisContext *c, const char **words, int n)
{
	if (redisAppendCommandArgv(c, n, words, NULL) != REDIS_OK)
		bench_must_sys(EIO, c->errstr);
}

static redisReply *
reply(redisContext *c)
{
	void *r;

	if (redisGetReply(c, &r) != REDIS_OK)
		bench_must_sys(EIO, c->errstr);
	return r;
}

static void
check(redisReply *r)
{
	if (r->type == REDIS_REPLY_ERROR)
		bench_must_sys(EPROTO, r->str);
	freeReplyObject(r);
}

/* The entries of the only stream of an XREAD. */
static redisReply *
entries_of(const redisReply *r)
{
	if (r->type == REDIS_REPLY_ERROR)
		bench_must_sys(EPROTO, r->str);
	if (r->type != REDIS_REPLY_ARRAY || r->elements != 1)
		bench_must_sys(EPROTO, "XREAD");
	return r->element[0]->element[1];
}

/* ---- a worker ---- */

static _Noreturn void
work(redisContext *c, unsigned index, const char *prefetch)
{
	char me[16], n[24];
	const char *take[] = { "XREADGROUP", "GROUP", "g", me, "COUNT",
			       prefetch, "BLOCK", "0", "STREAMS", QUEUE, ">" };
	const char *tell[] = { "XADD", EVENTS, "*", "n", n, "c", "0",
			       "v", "\xc0" };
	redisReply *r, *tasks;
	size_t i;

	snprintf(me, sizeof(me), "w%u", index);
	add(c, take, 11);
	for (;;) {
		r = reply(c);
		tasks = entries_of(r);
		for (i = 0; i < tasks->elements; i++) {
			snprintf(n, sizeof(n), "%s",
				 tasks->element[i]->element[0]->str);
			add(c, tell, 9);
		}
		add(c, take, 11);
		/* Their answers come in front of the next tasks. */
		for (i = tasks->elements; i > 0; i--)
			check(reply(c));
		freeReplyObject(r);
	}
}

void
bench_bare_start(struct bench_bare *b, const struct bench_server *s,
		 unsigned n, unsigned prefetch)
{
	const char *group[] = { "XGROUP", "CREATE", QUEUE, "g", "0",
				"MKSTREAM" };
	const char *wipe[] = { "DEL", QUEUE, EVENTS };
	pid_t parent = getpid();
	char most[16];
	unsigned i;

	*b = (struct bench_bare){ .n = n, .last = "0-0" };
	snprintf(most, sizeof(most), "%u", prefetch);
	b->say = bench_server_connect(s);
	b->listen = bench_server_connect(s);
	add(b->say, wipe, 3);
	add(b->say, group, 6);
	check(reply(b->say));
	check(reply(b->say));
	for (i = 0; i < n; i++) {
		b->pid[i] = fork();
		if (b->pid[i] < 0)
			bench_must_sys(errno, "fork");
		if (b->pid[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(1);
			work(bench_server_connect(s), i, most);
		}
	}
}

/* ---- the coordinator ---- */

static void
listen_on(struct bench_bare *b)
{
	char most[16];
	const char *read[] = { "XREAD", "COUNT", most, "BLOCK", "0",
			       "STREAMS", EVENTS, b->last };

	snprintf(most, sizeof(most), "%d", MOST);
	add(b->listen, read, 8);
}

static void
flush(redisContext *c)
{
	int done = 0;

	while (!done)
		if (redisBufferWrite(c, &done) != REDIS_OK)
			bench_must_sys(EIO, c->errstr);
}

static void
submit(struct bench_bare *b, unsigned n)
{
	char id[24];
	const char *task[] = { "XADD", QUEUE, id, "f", NOTHING, "a", "\xc0",
			       "x", "0" };
	unsigned i;

	for (i = 0; i < n; i++) {
		snprintf(id, sizeof(id), "%llu-0", ++b->next);
		add(b->say, task, 9);
	}
}

/* Acknowledge what these events are about: so many commands. */
static unsigned
settle(struct bench_bare *b, const redisReply *events)
{
	static const char *ack[3 + MOST] = { "XACK", QUEUE, "g" };
	static const char *del[2 + MOST] = { "XDEL", QUEUE };
	const char *trim[] = { "XTRIM", EVENTS, "MINID", b->last };
	unsigned long long before = b->settled;
	unsigned i, n = (unsigned)events->elements;
	const redisReply *e;

	for (i = 0; i < n; i++) {
		e = events->element[i];
		ack[3 + i] = del[2 + i] = e->element[1]->element[1]->str;
	}
	add(b->say, ack, 3 + (int)n);
	add(b->say, del, 2 + (int)n);
	snprintf(b->last, sizeof(b->last), "%s",
		 events->element[n - 1]->element[0]->str);
	b->settled += n;
	if (before / TRIM == b->settled / TRIM)
		return 2;
	add(b->say, trim, 4);
	return 3;
}

double
bench_bare_work(struct bench_bare *b, unsigned tasks, unsigned window)
{
	unsigned sent = window < tasks ? window : tasks, done = 0, n, said;
	redisReply *r, *events;
	uint64_t t0 = bench_now();

	submit(b, sent);
	said = sent;
	while (done < tasks) {
		listen_on(b);
		flush(b->say);
		flush(b->listen);
		while (said-- > 0)
			check(reply(b->say));
		r = reply(b->listen);
		events = entries_of(r);
		done += (unsigned)events->elements;
		said = settle(b, events);
		n = done + window - sent;
		n = n < tasks - sent ? n : tasks - sent;
		submit(b, n);
		sent += n;
		said += n;
		freeReplyObject(r);
	}
	while (said-- > 0)
		check(reply(b->say));
	return (double)(bench_now() - t0) / 1e9;
}

double
bench_bare_ping(struct bench_bare *b)
{
	uint64_t t0 = bench_now();
	redisReply *r, *events;
	unsigned said;

	submit(b, 1);
	flush(b->say);
	listen_on(b);
	r = reply(b->listen);
	events = entries_of(r);
	t0 = bench_now() - t0;
	said = 1 + settle(b, events);
	while (said-- > 0)
		check(reply(b->say));
	freeReplyObject(r);
	return (double)t0 / 1e9;
}

void
bench_bare_end(struct bench_bare *b)
{
	unsigned i;

	for (i = 0; i < b->n; i++) {
		kill(b->pid[i], SIGKILL);
		while (waitpid(b->pid[i], NULL, 0) < 0)
			if (errno != EINTR)
				bench_must_sys(errno, "waitpid");
	}
	redisFree(b->say);
	redisFree(b->listen);
}
