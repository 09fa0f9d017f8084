/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes that run nothing, many of them in one process: each has two connections
 * and says to the server what a real node says, at the same times.  A function
 * has its result as soon as it is read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "redis/client/redis.h"
#include "redis_sim.h"
#include "redis_sim_frames.h"

#define INC "1"       /* of the only session of each */
#define START 1       /* of the only start of each worker */
#define COUNT "256"   /* entries in an answer, as a real node asks for */
#define TRIM_EACH 256
#define WORDS 40
#define EVENTS 256
#define DUE_MOST 64

struct node {
	redisContext *say, *listen;
	char name[24], lease[128], beats[128], to[128]; /* keys */
	char last[32]; /* entry of its stream */
	unsigned long long seq, beat;
	unsigned untrimmed;
	bool known, live, up, left;
	uint64_t due;      /* its registration, or its next renewal */
};

static struct {
	const char *ns;
	char g[24], stamp[48], coord[96], gen[96], ev[96], runs[96];
	char sha[SCRIPTS][48];
	long lease_ms;
	unsigned n_workers, n, n_left;
	struct node *nodes;
	int epoll;
	const char *function;
} sim;

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- commands ---- */

struct words {
	const char *at[WORDS];
	size_t len[WORDS];
	int n;
	char text[WORDS][32];
};

static void
add(struct words *w, const char *s)
{
	w->at[w->n] = s;
	w->len[w->n++] = strlen(s);
}

static void
add_number(struct words *w, long long number)
{
	snprintf(w->text[w->n], sizeof(w->text[0]), "%lld", number);
	add(w, w->text[w->n]);
}

static void
add_frames(struct words *w)
{
	w->at[w->n] = (const char *)sim_out.bytes;
	w->len[w->n++] = sim_out.n;
}

static void
send_words(redisContext *c, const struct words *w)
{
	struct pollfd p = { .fd = c->fd, .events = POLLOUT };
	int done = 0, n;
	char *command;

	n = redisFormatCommandArgv(&command, w->n, (const char **)w->at,
				   w->len);
	if (n < 0 || redisAppendFormattedCommand(c, command, (size_t)n) !=
			     REDIS_OK)
		fail("a command", "no memory");
	redisFreeCommand(command);
	while (!done) {
		if (redisBufferWrite(c, &done) != REDIS_OK)
			fail("a command", c->errstr);
		if (!done)
			(void)poll(&p, 1, -1);
	}
}

static void
script(struct words *w, enum redis_script which, const char *n_keys)
{
	*w = (struct words){ .n = 0 };
	add(w, "EVALSHA");
	add(w, sim.sha[which]);
	add(w, n_keys);
}

static void
add_event(struct node *d)
{
	struct words w = { .n = 0 };

	add(&w, "XADD");
	add(&w, sim.ev);
	add(&w, "*");
	add(&w, "w");
	add(&w, d->name);
	add(&w, "i");
	add(&w, INC);
	add(&w, "s");
	add_number(&w, (long long)++d->seq);
	add(&w, "d");
	add_frames(&w);
	send_words(d->say, &w);
	sim_out.n = 0;
}

static void
hear(struct node *d)
{
	struct words w = { .n = 0 };

	add(&w, "XREAD");
	add(&w, "COUNT");
	add(&w, COUNT);
	add(&w, "BLOCK");
	add_number(&w, BLOCK_MS(sim.lease_ms));
	add(&w, "STREAMS");
	add(&w, d->to);
	add(&w, d->last);
	send_words(d->listen, &w);
}

static void
trim(struct node *d)
{
	struct words w = { .n = 0 };

	if (d->untrimmed == 0)
		return;
	d->untrimmed = 0;
	add(&w, "XTRIM");
	add(&w, d->to);
	add(&w, "MINID");
	add(&w, d->last);
	send_words(d->say, &w);
}

static void
register_node(struct node *d)
{
	struct words w;

	sim_out.n = 0;
	put_note(FRAME_NODE, sim.n_workers, "simulated 0");
	put_head(FRAME_HELLO, 4 + 3 + strlen(sim.function));
	put_number(4, 1);
	put_text(sim.function);
	script(&w, SCRIPT_REGISTER, "4");
	add(&w, sim.coord);
	add(&w, sim.gen);
	add(&w, d->lease);
	add(&w, sim.ev);
	add(&w, sim.g);
	add(&w, sim.stamp);
	add_number(&w, sim.lease_ms);
	add(&w, d->name);
	add(&w, INC);
	add_frames(&w);
	send_words(d->say, &w);
}

static void
renew(struct node *d)
{
	struct words w;

	script(&w, SCRIPT_RENEW, "5");
	add(&w, sim.coord);
	add(&w, sim.gen);
	add(&w, d->lease);
	add(&w, d->beats);
	add(&w, sim.runs);
	add(&w, sim.g);
	add(&w, sim.stamp);
	add_number(&w, sim.lease_ms);
	add_number(&w, (long long)++d->beat);
	add_number(&w, KEYS_PX(sim.lease_ms));
	add(&w, d->name);
	add(&w, "");
	send_words(d->say, &w);
}

static void
leave(struct node *d)
{
	struct words w;

	sim_out.n = 0;
	put_head(FRAME_LEFT, 0);
	script(&w, SCRIPT_LEAVE, "2");
	add(&w, d->lease);
	add(&w, sim.ev);
	add(&w, sim.stamp);
	add(&w, d->name);
	add(&w, INC);
	add_number(&w, (long long)++d->seq);
	add_frames(&w);
	send_words(d->say, &w);
	d->left = true;
	sim.n_left++;
}

/* ---- what it hears ---- */

static void
hear_frames(struct node *d, const unsigned char *p, size_t n)
{
	uint64_t slot = 0, put = UINT64_MAX;
	size_t at, size;

	for (at = 0; at + FRAME_HEAD <= n; at += FRAME_HEAD + size) {
		size = (size_t)number_at(p + at + 4, 4);
		if (at + FRAME_HEAD + size > n)
			fail(d->name, "an incomplete frame");
		if (p[at + 3] == FRAME_SLOT)
			slot = number_at(p + at + FRAME_HEAD, 8);
		else if (p[at + 3] == FRAME_LEAVE)
			leave(d);
		if (p[at + 3] != FRAME_TASK)
			continue;
		if (slot != put)
			put_slot(slot);
		put = slot;
		put_result(number_at(p + at + FRAME_HEAD, 8));
	}
}

/* The workers come up when the coordinator has told their ranks. */
static void
come_up(struct node *d)
{
	unsigned i;

	for (i = 0; i < sim.n_workers; i++) {
		put_slot((uint64_t)i << 32 | START);
		put_note(FRAME_UP, 0, "simulated");
	}
	d->up = true;
}

static void
hear_entries(struct node *d, const redisReply *entries)
{
	const redisReply *entry;
	size_t i;

	sim_out.n = 0;
	for (i = 0; i < entries->elements && !d->left; i++) {
		entry = entries->element[i];
		snprintf(d->last, sizeof(d->last), "%s", entry->element[0]->str);
		if (!d->up)
			come_up(d);
		hear_frames(d,
			    (const unsigned char *)
				    entry->element[1]->element[1]->str,
			    entry->element[1]->element[1]->len);
		d->untrimmed++;
	}
	if (d->left)
		return;
	if (sim_out.n > 0)
		add_event(d);
	if (d->untrimmed >= TRIM_EACH)
		trim(d);
}

static void
hear_reply(struct node *d, bool listens, const redisReply *r)
{
	if (r->type == REDIS_REPLY_ERROR)
		fail(d->name, r->str);
	if (listens) {
		if (r->type == REDIS_REPLY_ARRAY)
			hear_entries(d, r->element[0]->element[1]);
		if (!d->left)
			hear(d);
	} else if (r->type == REDIS_REPLY_ARRAY) {
		/* Of a script. */
		if (strcmp(r->element[0]->str, "alone") == 0)
			return;
		if (strcmp(r->element[0]->str, "ok") != 0)
			fail(d->name, r->elements > 1 ? r->element[1]->str :
							r->element[0]->str);
		if (!d->live)
			hear(d);
		else if (!d->left)
			trim(d);
		d->live = true;
	}
}

static void
read_replies(struct node *d, bool listens)
{
	redisContext *c = listens ? d->listen : d->say;
	void *r = NULL;

	if (redisBufferRead(c) != REDIS_OK)
		fail(d->name, c->errstr);
	while (redisGetReplyFromReader(c, &r) == REDIS_OK && r) {
		hear_reply(d, listens, r);
		freeReplyObject(r);
		r = NULL;
	}
}

/* ---- the process ---- */

/* The server accepts connections one after the other: EAGAIN says that too many
   wait. */
static redisContext *
connect_blocking(const char *path)
{
	redisContext *c;

	while ((c = redisConnectUnix(path)) != NULL && c->err != 0 &&
	       errno == EAGAIN) {
		redisFree(c);
		(void)poll(NULL, 0, 1);
	}
	if (!c || c->err)
		fail(path, c ? c->errstr : "no memory");
	return c;
}

static redisContext *
connect_to(const char *path, struct node *d, bool listens)
{
	redisContext *c = connect_blocking(path);
	struct epoll_event e = { .events = EPOLLIN };

	/* Pointers are even, so the lowest bit says which connection it is. */
	e.data.u64 = (uint64_t)(uintptr_t)d | listens;
	c->flags &= ~REDIS_BLOCK;
	if (epoll_ctl(sim.epoll, EPOLL_CTL_ADD, c->fd, &e) != 0)
		fail("epoll_ctl", strerror(errno));
	return c;
}

/* Wait for a coordinator, and load the scripts. */
static void
find_coordinator(const char *path)
{
	redisContext *c = connect_blocking(path);
	redisReply *r = NULL, *opts = NULL;
	unsigned i;

	for (;;) {
		r = redisCommand(c, "GET {%s}:gen", sim.ns);
		if (r && r->type == REDIS_REPLY_STRING)
			opts = redisCommand(c, "GET {%s}:%s:opts", sim.ns,
					    r->str);
		if (opts && opts->type == REDIS_REPLY_STRING)
			break;
		(void)poll(NULL, 0, 10);
	}
	snprintf(sim.g, sizeof(sim.g), "%s", r->str);
	sim.lease_ms = atol(opts->str);
	for (i = 0; i < SCRIPTS; i++) {
		r = redisCommand(c, "SCRIPT LOAD %s%s", redis_script_head(i),
				 evc__scripts[i].text);
		if (!r || r->type != REDIS_REPLY_STRING)
			fail("SCRIPT LOAD", r ? r->str : c->errstr);
		snprintf(sim.sha[i], sizeof(sim.sha[i]), "%s", r->str);
	}
	redisFree(c);
	snprintf(sim.stamp, sizeof(sim.stamp), "%s " INC, sim.g);
	snprintf(sim.coord, sizeof(sim.coord), "{%s}:coord", sim.ns);
	snprintf(sim.gen, sizeof(sim.gen), "{%s}:gen", sim.ns);
	snprintf(sim.ev, sizeof(sim.ev), "{%s}:%s:ev", sim.ns, sim.g);
	snprintf(sim.runs, sizeof(sim.runs), "{%s}:%s:runs", sim.ns, sim.g);
}

/* Nodes register one after the other, in the time between two renewals; so
   they renew in that order, too. */
static void
name_nodes(unsigned first, uint64_t interval)
{
	uint64_t now;
	struct node *d;
	unsigned i;

	for (i = 0; i < sim.n; i++) {
		d = &sim.nodes[i];
		snprintf(d->name, sizeof(d->name), "sim%u", first + i);
		snprintf(d->lease, sizeof(d->lease), "{%s}:lease:%s", sim.ns,
			 d->name);
		snprintf(d->beats, sizeof(d->beats), "{%s}:%s:beat:%s." INC,
			 sim.ns, sim.g, d->name);
		snprintf(d->to, sizeof(d->to), "{%s}:%s:to:%s." INC, sim.ns,
			 sim.g, d->name);
		snprintf(d->last, sizeof(d->last), "0-1");
	}
	now = now_ns();
	for (i = 0; i < sim.n; i++)
		sim.nodes[i].due = now + interval * i / sim.n;
}

/* Register or renew the nodes whose time has come, some of them.  Returns the
   time until the next one, in ms. */
static int
say_due(uint64_t interval, unsigned *next)
{
	uint64_t now = now_ns();
	struct node *d;
	unsigned i;

	for (i = 0; i < DUE_MOST; i++) {
		d = &sim.nodes[*next];
		if (now < d->due)
			return (int)((d->due - now) / 1000000) + 1;
		if (!d->known)
			register_node(d);
		else if (d->live && !d->left)
			renew(d);
		d->known = true;
		/* A process that stood still goes on from here. */
		d->due = (now > d->due + interval ? now : d->due) + interval;
		*next = (*next + 1) % sim.n;
	}
	return 0;
}

static void
serve(uint64_t interval)
{
	struct epoll_event events[EVENTS];
	unsigned next = 0;
	int i, n;

	while (sim.n_left < sim.n) {
		n = epoll_wait(sim.epoll, events, EVENTS,
			       say_due(interval, &next));
		for (i = 0; i < n; i++) {
			uintptr_t at = (uintptr_t)events[i].data.u64;

			read_replies((struct node *)(at & ~(uintptr_t)1),
				     at & 1);
		}
	}
}

int
redis_sim_main(int argc, char **argv)
{
	uint64_t interval;
	unsigned i;

	if (argc != 6)
		return 2;
	sim.ns = argv[1];
	sim.n = (unsigned)atoi(argv[3]);
	sim.n_workers = (unsigned)atoi(argv[4]);
	sim.function = argv[5];
	sim.nodes = calloc(sim.n, sizeof(*sim.nodes));
	sim.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!sim.nodes || sim.epoll < 0)
		fail("the nodes", strerror(errno));
	/* Before there is a coordinator: the server has to accept many. */
	for (i = 0; i < sim.n; i++) {
		sim.nodes[i].say = connect_to(argv[0], &sim.nodes[i], false);
		sim.nodes[i].listen = connect_to(argv[0], &sim.nodes[i], true);
	}
	find_coordinator(argv[0]);
	interval = (uint64_t)RENEW_AFTER(sim.lease_ms) * 1000000;
	name_nodes((unsigned)atoi(argv[2]), interval);
	serve(interval);
	return 0;
}
