/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node of the engine "redis" that the test is the hand of: it registers,
 * renews its lease, reads what it is given and answers when the test says so, with
 * commands that block.
 */
#ifndef TESTS_SUPPORT_REDIS_HAND_NODE_H
#define TESTS_SUPPORT_REDIS_HAND_NODE_H

#include "wire/frames.h"
#include "redis/client/redis.h"

#include "redis_util.h"

#define HN_MOST ((size_t)64 << 20)
#define HN_TASKS 4096

struct hand_task {
	unsigned slot;
	uint32_t life;
	uint64_t n, id;
	unsigned attempt, flags;
	char function[48];
	int64_t a, b;         /* of its arguments, if they are [a, b] */
	bool by_key;          /* its first input stands under a key */
	uint64_t input;       /* the id of that */
	size_t input_size;
	bool cancelled;       /* after it came */
};

struct hand_node {
	redisContext *c;
	char ns[64], name[64], where[300];
	uint64_t inc, g, seq, beat;
	uint64_t n_workers_and; /* bits of a registration's number beside the
				   number of its workers */
	unsigned n_slots;
	char last[64];        /* of its stream */
	struct bytes out;     /* frames to be sent */
	struct hand_task tasks[HN_TASKS];
	unsigned first, n;    /* tasks[first .. n) are not answered yet */
	uint64_t forgotten, cancelled, cancelled_one, defs;
	unsigned ranks[16], n_ranks;
	unsigned n_kills, n_leaves, n_entries, n_again;
	bool had[HN_TASKS];   /* numbers of entries */
};

static MAYBE_UNUSED redisReply *
hn_do(struct hand_node *h, const char *fmt, ...)
{
	redisReply *r;
	va_list ap;

	va_start(ap, fmt);
	r = redisvCommand(h->c, fmt, ap);
	va_end(ap);
	ck_assert_msg(r != NULL, "%s: %s", fmt, h->c->errstr);
	return r;
}

/* A script of keys and arguments, "key:gen" a key of the namespace. */
static MAYBE_UNUSED redisReply *
hn_script(struct hand_node *h, enum redis_script script, int n_keys,
	  int n, const char *const *word, const size_t *len)
{
	const char *argv[24];
	size_t size[24];
	char text[16384], count[8], keys[8][200];
	redisReply *r;
	int i;

	snprintf(text, sizeof(text), "%s%s", redis_script_head(script),
		 evc__scripts[script].text);
	snprintf(count, sizeof(count), "%d", n_keys);
	argv[0] = "EVAL";
	argv[1] = text;
	argv[2] = count;
	for (i = 0; i < n; i++) {
		argv[3 + i] = word[i];
		if (i < n_keys) {
			snprintf(keys[i], sizeof(keys[i]), "{%s}:%s", h->ns,
				 word[i]);
			argv[3 + i] = keys[i];
		}
	}
	for (i = 0; i < n + 3; i++)
		size[i] = i >= 3 + n_keys && len != NULL && len[i - 3] > 0 ?
				  len[i - 3] :
				  strlen(argv[i]);
	r = redisCommandArgv(h->c, n + 3, argv, size);
	ck_assert_msg(r != NULL, "%s: %s", evc__scripts[script].name,
		      h->c->errstr);
	return r;
}

static MAYBE_UNUSED bool
hn_is_ok(redisReply *r)
{
	bool yes = r->type == REDIS_REPLY_ARRAY && r->elements > 0 &&
		   strcmp(r->element[0]->str, "ok") == 0;

	freeReplyObject(r);
	return yes;
}

static MAYBE_UNUSED struct hand_node *
hn_new(struct redis_server *s, const char *ns, const char *name, unsigned n)
{
	struct hand_node *h = calloc(1, sizeof(*h));

	h->c = rs_connect(s);
	ck_assert_ptr_nonnull(h->c);
	snprintf(h->ns, sizeof(h->ns), "%s", ns);
	snprintf(h->name, sizeof(h->name), "%s", name);
	snprintf(h->where, sizeof(h->where), "far 77 - - -");
	h->n_slots = n;
	return h;
}

/* It says that its process is this one, of this very machine. */
static MAYBE_UNUSED void
hn_is_process(struct hand_node *h, pid_t pid)
{
	char boot[64] = "", space[64] = "", stat[512] = "", path[64];
	unsigned long long start = 0;
	FILE *f;

	f = fopen("/proc/sys/kernel/random/boot_id", "r");
	ck_assert_int_eq(fscanf(f, "%63s", boot), 1);
	fclose(f);
	ck_assert_int_gt(readlink("/proc/self/ns/pid", space, 60), 0);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(fgets(stat, sizeof(stat), f));
	fclose(f);
	ck_assert_int_eq(sscanf(strrchr(stat, ')') + 1,
				" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
				"%*u %*u %*d %*d %*d %*d %*d %*d %llu",
				&start),
			 1);
	snprintf(h->where, sizeof(h->where), "here %d %s %llu %llu", (int)pid,
		 boot, strtoull(strchr(space, '[') + 1, NULL, 10), start);
}

static MAYBE_UNUSED void
hn_free(struct hand_node *h)
{
	redisFree(h->c);
	bytes_free(&h->out);
	free(h);
}

/* The generation; 0: there is no coordinator. */
static MAYBE_UNUSED uint64_t
hn_look(struct hand_node *h)
{
	redisReply *r = hn_do(h, "MGET {%s}:gen {%s}:coord", h->ns, h->ns);
	uint64_t g = 0;

	ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
	if (r->element[0]->type == REDIS_REPLY_STRING &&
	    r->element[1]->type == REDIS_REPLY_STRING)
		g = strtoull(r->element[0]->str, NULL, 10);
	freeReplyObject(r);
	return g;
}

static MAYBE_UNUSED evc_function *
hn_functions(unsigned *n)
{
	static evc_function f[] = { { .name = "add" }, { .name = "look" } };

	*n = 2;
	return f;
}

/* Its next life; false: refused. */
static MAYBE_UNUSED bool
hn_try_register(struct hand_node *h, unsigned lease_ms)
{
	char g[32], lease[64], px[16], inc[32], ev[48], key[100];
	struct frame_note note = { h->n_slots | h->n_workers_and, h->where };
	struct bytes b = { 0 };
	const char *word[10];
	size_t len[10] = { 0 };
	unsigned n;
	evc_function *f = hn_functions(&n);
	bool fine;

	h->g = hn_look(h);
	if (h->g == 0)
		return false;
	h->inc++;
	h->seq = 0;
	h->first = h->n = 0;
	strcpy(h->last, "0-0");
	memset(h->had, 0, sizeof(h->had));
	OK(evc__frame_put_note(&b, FRAME_NODE, &note));
	OK(evc__frame_put_hello(&b, HN_MOST, f, n));
	snprintf(g, sizeof(g), "%llu", (unsigned long long)h->g);
	snprintf(inc, sizeof(inc), "%llu", (unsigned long long)h->inc);
	snprintf(lease, sizeof(lease), "%s %s", g, inc);
	snprintf(px, sizeof(px), "%u", lease_ms);
	snprintf(ev, sizeof(ev), "%s:ev", g);
	snprintf(key, sizeof(key), "lease:%s", h->name);
	word[0] = "coord";
	word[1] = "gen";
	word[2] = key;
	word[3] = ev;
	word[4] = g;
	word[5] = lease;
	word[6] = px;
	word[7] = h->name;
	word[8] = inc;
	word[9] = (const char *)bytes_at(&b);
	len[9] = b.n;
	fine = hn_is_ok(hn_script(h, SCRIPT_REGISTER, 4, 10, word, len));
	bytes_free(&b);
	return fine;
}

static MAYBE_UNUSED void
hn_register(struct hand_node *h, unsigned lease_ms)
{
	UNTIL(hn_try_register(h, lease_ms));
}

/* Its lease is so long from now; false: refused. */
static MAYBE_UNUSED bool
hn_renew(struct hand_node *h, unsigned ms)
{
	char g[32], lease[64], px[16], beat[32], of[200], key[100];
	char runs[40];
	const char *word[] = { "coord", "gen", key,  of,      runs,    g,
			       lease,   px,    beat, "60000", h->name, "" };

	snprintf(key, sizeof(key), "lease:%s", h->name);
	snprintf(of, sizeof(of), "%llu:beat:%s.%llu", (unsigned long long)h->g,
		 h->name, (unsigned long long)h->inc);
	snprintf(runs, sizeof(runs), "%llu:runs", (unsigned long long)h->g);
	snprintf(g, sizeof(g), "%llu", (unsigned long long)h->g);
	snprintf(lease, sizeof(lease), "%s %llu", g,
		 (unsigned long long)h->inc);
	snprintf(px, sizeof(px), "%u", ms);
	snprintf(beat, sizeof(beat), "%llu", (unsigned long long)++h->beat);
	return hn_is_ok(hn_script(h, SCRIPT_RENEW, 5, 12, word, NULL));
}

/* ---- what it says ---- */

static MAYBE_UNUSED void
hn_slot(struct hand_node *h, unsigned slot, uint32_t life)
{
	OK(evc__frame_put_number(&h->out, FRAME_SLOT,
				 (uint64_t)slot << 32 | life));
}

static MAYBE_UNUSED void
hn_note(struct hand_node *h, enum frame_type type, uint64_t number,
	const char *text)
{
	struct frame_note note = { number, text };

	OK(evc__frame_put_note(&h->out, type, &note));
}

/* What has gathered, as entry number seq. */
static MAYBE_UNUSED void
hn_send_as(struct hand_node *h, uint64_t seq)
{
	freeReplyObject(hn_do(h, "XADD {%s}:%llu:ev * w %s i %llu s %llu d %b",
			      h->ns, (unsigned long long)h->g, h->name,
			      (unsigned long long)h->inc,
			      (unsigned long long)seq, bytes_at(&h->out),
			      h->out.n));
}

static MAYBE_UNUSED void
hn_send(struct hand_node *h)
{
	if (h->out.n > 0)
		hn_send_as(h, ++h->seq);
	bytes_take(&h->out, h->out.n);
}

static MAYBE_UNUSED void
hn_up(struct hand_node *h, unsigned slot, uint32_t life)
{
	hn_slot(h, slot, life);
	hn_note(h, FRAME_UP, 1234, "far pid 1234");
	hn_send(h);
}

/* Registered, with all workers up. */
static MAYBE_UNUSED struct hand_node *
hn_begin(struct redis_server *s, const char *ns, const char *name, unsigned n,
	 unsigned lease_ms)
{
	struct hand_node *h = hn_new(s, ns, name, n);
	unsigned i;

	hn_register(h, lease_ms);
	for (i = 0; i < n; i++)
		hn_up(h, i, 1);
	return h;
}

static MAYBE_UNUSED void
hn_result(struct hand_node *h, const struct hand_task *t, int64_t value)
{
	struct frame_result r = { .r = { .n = t->n, .took = 1e-6 } };
	evc_value v = { 0 };

	OK(evc_pack(&v, "I", value));
	r.r.value = v;
	hn_slot(h, t->slot, t->life);
	OK(evc__frame_put_result(&h->out, HN_MOST, &r));
	evc_value_free(&v);
}

static MAYBE_UNUSED void
hn_give_back(struct hand_node *h, const struct hand_task *t)
{
	struct frame_result r = { .r = { .n = t->n, .took = -1,
					 .code = EVC_CANCELLED,
					 .kind = EVC_FAILED_FUNCTION } };

	hn_slot(h, t->slot, t->life);
	OK(evc__frame_put_result(&h->out, HN_MOST, &r));
}

/* ---- what it is told ---- */

static MAYBE_UNUSED void
hn_hear_task(struct hand_node *h, const struct frame *f, uint64_t slot)
{
	struct hand_task *k = &h->tasks[h->n % HN_TASKS];
	evc_engine_task t;

	ck_assert_uint_lt(h->n - h->first, HN_TASKS);
	OK(evc__frame_get_task(f, &t));
	memset(k, 0, sizeof(*k));
	k->slot = (unsigned)(slot >> 32);
	k->life = (uint32_t)slot;
	k->n = t.n;
	k->id = t.id;
	k->attempt = t.attempt;
	k->flags = t.flags;
	snprintf(k->function, sizeof(k->function), "%s", t.function);
	if (evc_unpack(&t.args, "[II]", &k->a, &k->b) < 0)
		k->a = k->b = -1;
	if (t.n_inputs > 0) {
		k->input = t.inputs[0].id;
		k->input_size = t.inputs[0].value.size;
		k->by_key = k->input_size == 0;
	}
	sync_free((void *)t.inputs);
	h->n++;
}

static MAYBE_UNUSED void
hn_cancel_one(struct hand_node *h, uint64_t n)
{
	unsigned i;

	h->cancelled_one = n;
	for (i = 0; i < h->n && i < HN_TASKS; i++)
		if (h->tasks[i].n == n)
			h->tasks[i].cancelled = true;
}

static MAYBE_UNUSED void
hn_hear(struct hand_node *h, const char *p, size_t n)
{
	uint64_t slot = 0, number = 0;
	struct frame f;
	size_t at;

	h->n_entries++;
	for (at = 0; at < n; at += f.whole) {
		ck_assert_int_eq(evc__frame_next(p + at, n - at, HN_MOST, &f),
				 1);
		if (f.type != FRAME_TASK && f.type != FRAME_DEF && f.size == 8)
			OK(evc__frame_get_number(&f, &number));
		if (f.type == FRAME_SLOT)
			slot = number;
		else if (f.type == FRAME_TASK)
			hn_hear_task(h, &f, slot);
		else if (f.type == FRAME_RANK)
			h->ranks[h->n_ranks++ % 16] = (uint32_t)number;
		else if (f.type == FRAME_FORGET)
			h->forgotten = number;
		else if (f.type == FRAME_CANCEL)
			h->cancelled = number;
		else if (f.type == FRAME_CANCEL_ONE)
			hn_cancel_one(h, number);
		else if (f.type == FRAME_DEF)
			h->defs++;
		else if (f.type == FRAME_KILL)
			h->n_kills++;
		else if (f.type == FRAME_LEAVE)
			h->n_leaves++;
		else if (f.type != FRAME_LOOK) /* is left without an answer */
			ck_abort_msg("a frame of type %u", f.type);
	}
}

/* "d" FRAMES and perhaps "o" and the number that it had before. */
static MAYBE_UNUSED bool
hn_is_new(struct hand_node *h, const char *id, const redisReply *fields)
{
	unsigned long long n = strtoull(id, NULL, 10);

	if (fields->elements == 4) {
		ck_assert_str_eq(fields->element[2]->str, "o");
		h->had[n % HN_TASKS] = true;
		n = strtoull(fields->element[3]->str, NULL, 10);
		h->n_again++;
	}
	if (h->had[n % HN_TASKS])
		return false;
	return h->had[n % HN_TASKS] = true;
}

/* What is there, or comes within so many milliseconds. */
static MAYBE_UNUSED void
hn_read(struct hand_node *h, unsigned ms)
{
	redisReply *r = hn_do(h,
			      "XREAD COUNT 1000 BLOCK %u STREAMS "
			      "{%s}:%llu:to:%s.%llu %s",
			      ms, h->ns, (unsigned long long)h->g, h->name,
			      (unsigned long long)h->inc, h->last);
	const redisReply *entries;
	size_t i;

	if (r->type == REDIS_REPLY_ARRAY) {
		entries = r->element[0]->element[1];
		for (i = 0; i < entries->elements; i++) {
			const redisReply *one = entries->element[i];

			snprintf(h->last, sizeof(h->last), "%s",
				 one->element[0]->str);
			if (hn_is_new(h, one->element[0]->str,
				      one->element[1]))
				hn_hear(h, one->element[1]->element[1]->str,
					one->element[1]->element[1]->len);
		}
	}
	freeReplyObject(r);
}

/* So many that are not answered yet. */
static MAYBE_UNUSED void
hn_await(struct hand_node *h, unsigned n)
{
	double until = t_now() + T_LIMIT;

	while (h->n - h->first < n) {
		ck_assert_msg(t_now() < until, "%u functions, not %u",
			      h->n - h->first, n);
		hn_read(h, 20);
	}
}

static MAYBE_UNUSED struct hand_task *
hn_task(struct hand_node *h)
{
	hn_await(h, 1);
	return &h->tasks[h->first++ % HN_TASKS];
}

/* The sums of all that it has. */
static MAYBE_UNUSED void
hn_answer(struct hand_node *h)
{
	while (h->first < h->n) {
		const struct hand_task *t = &h->tasks[h->first++ % HN_TASKS];

		hn_result(h, t, t->a + t->b);
	}
	hn_send(h);
}

/* Runs nothing, and is no more. */
static MAYBE_UNUSED bool
hn_leave(struct hand_node *h)
{
	char lease[64], inc[32], ev[48], key[100], seq[32];
	const char *word[7] = { key, ev, lease, h->name, inc, seq };
	size_t len[7] = { 0 };
	struct bytes b = { 0 };
	bool fine;

	OK(evc__frame_put_bare(&b, FRAME_LEFT));
	snprintf(inc, sizeof(inc), "%llu", (unsigned long long)h->inc);
	snprintf(seq, sizeof(seq), "%llu", (unsigned long long)++h->seq);
	snprintf(lease, sizeof(lease), "%llu %s", (unsigned long long)h->g,
		 inc);
	snprintf(ev, sizeof(ev), "%llu:ev", (unsigned long long)h->g);
	snprintf(key, sizeof(key), "lease:%s", h->name);
	word[6] = (const char *)bytes_at(&b);
	len[6] = b.n;
	fine = hn_is_ok(hn_script(h, SCRIPT_LEAVE, 2, 7, word, len));
	bytes_free(&b);
	return fine;
}

#endif
