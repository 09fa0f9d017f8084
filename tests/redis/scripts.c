/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each script against a real server: every word that it can answer, who is
 * refused, that the same again has no second effect, and that it changes all or
 * nothing.  What it makes of a variable is what the coordinator's own memory
 * makes of it.
 */
#include "../support/redis_util.h"

#include "cluster/variables/variable.h"
#include "wire/walk.h"
#include "redis/client/redis.h"

#define COORD "{n}:coord"
#define GEN   "{n}:gen"
#define VER   "{n}:ver"
#define LEASE "{n}:lease:w"
#define EV    "{n}:1:ev"
#define VAR   "{n}:var"
#define COUNT "{n}:count"
#define SEQS  "{n}:1:seqs"
#define PRE   "{n}:pre"
#define NEW   "{n}:new"
#define BEAT  "{n}:1:beat:w.7"
#define RUNS  "{n}:1:runs"

static struct redis_server s;
static redisReply *last;

/* A word with bytes. */
struct word {
	const void *p;
	size_t n;
};

#define T(text) \
	{ \
		(text), strlen(text) \
	}

static void
run(enum redis_script script, unsigned n_keys, const struct word *words,
    size_t n)
{
	const char *argv[64 + 400];
	size_t len[64 + 400], i;
	char *text, count[16];

	ck_assert_uint_lt(n + 3, sizeof(argv) / sizeof(argv[0]));
	ck_assert_int_gt(asprintf(&text, "%s%s", redis_script_head(script),
				  evc__scripts[script].text),
			 0);
	snprintf(count, sizeof(count), "%u", n_keys);
	argv[0] = "EVAL";
	argv[1] = text;
	argv[2] = count;
	for (i = 0; i < 3; i++)
		len[i] = strlen(argv[i]);
	for (i = 0; i < n; i++) {
		argv[3 + i] = words[i].p;
		len[3 + i] = words[i].n;
	}
	if (last != NULL)
		freeReplyObject(last);
	if (s.link == NULL)
		s.link = rs_connect(&s);
	last = redisCommandArgv(s.link, (int)n + 3, argv, len);
	ck_assert_ptr_nonnull(last);
	free(text);
}

#define RUN(script, n_keys, ...) \
	do { \
		const char *run_texts_[] = { __VA_ARGS__ }; \
		struct word run_words_[sizeof(run_texts_) / \
				       sizeof(run_texts_[0])]; \
		size_t run_i_; \
		for (run_i_ = 0; \
		     run_i_ < sizeof(run_texts_) / sizeof(run_texts_[0]); \
		     run_i_++) \
			run_words_[run_i_] = \
				(struct word)T(run_texts_[run_i_]); \
		run((script), (n_keys), run_words_, run_i_); \
	} while (0)

/* An answer within an answer has a colon in front of each of its elements. */
static size_t
add_element(const redisReply *e, size_t i, char *buf, size_t room)
{
	size_t k, n = 0;

	if (e->type == REDIS_REPLY_ARRAY) {
		for (k = 0; k < e->elements; k++) {
			if (e->element[k]->type == REDIS_REPLY_INTEGER) {
				n += (size_t)snprintf(buf + n, room - n,
						      ":%lld",
						      e->element[k]->integer);
				continue;
			}
			ck_assert_int_eq(e->element[k]->type,
					 REDIS_REPLY_STRING);
			n += (size_t)snprintf(buf + n, room - n, ":%s",
					      e->element[k]->str);
		}
		return n;
	}
	ck_assert_int_eq(e->type, REDIS_REPLY_STRING);
	return (size_t)snprintf(buf, room, "%s%s", i > 0 ? "|" : "", e->str);
}

/* The answer's elements, with | between, or the error. */
static const char *
answer(void)
{
	static char text[4096];
	size_t i, n = 0;

	if (last->type == REDIS_REPLY_ERROR) {
		snprintf(text, sizeof(text), "error %s", last->str);
		return text;
	}
	ck_assert_int_eq(last->type, REDIS_REPLY_ARRAY);
	text[0] = '\0';
	for (i = 0; i < last->elements; i++) {
		n += add_element(last->element[i], i, text + n,
				 sizeof(text) - n);
		ck_assert_uint_lt(n, sizeof(text));
	}
	return text;
}

#define IS(text) ck_assert_str_eq(answer(), (text))
#define BEGINS(text) \
	ck_assert_msg(strncmp(answer(), (text), strlen(text)) == 0, \
		      "\"%s\", not \"%s\"", answer(), (text))

static void
begin(void)
{
	memset(&s, 0, sizeof(s));
	last = NULL;
	rs_option(&s, "enable-debug-command yes");
	rs_start(&s);
}

static void
end(void)
{
	if (last != NULL)
		freeReplyObject(last);
	last = NULL;
	rs_free(&s);
}

/* All that there is, as one number. */
static const char *
digest(char *buf, size_t n)
{
	rs_text(&s, buf, n, "DEBUG DIGEST");
	return buf;
}

static void
take(const char *id)
{
	RUN(SCRIPT_TAKE, 7, COORD, GEN, VER, COUNT, VAR, PRE, NEW, id, "60000", "1",
	    "0", "0");
}

static void
registered(const char *inc)
{
	char value[16];

	snprintf(value, sizeof(value), "1 %s", inc);
	RUN(SCRIPT_REGISTER, 4, COORD, GEN, LEASE, EV, "1", value, "60000", "w",
	    inc, "hello");
}

/* A coordinator x of the generation 1, and life 7 of node w. */
static void
begin_all(void)
{
	begin();
	take("x");
	IS("ok|1|0");
	registered("7");
	IS("ok");
}

/* ---- the coordinator's ---- */

START_TEST(taking)
{
	begin();
	take("x");
	IS("ok|1|0");
	ck_assert_int_gt(rs_number(&s, "PTTL " COORD), 50000);
	ck_assert_int_eq(rs_number(&s, "PTTL " GEN), -1);
	ck_assert_int_eq(rs_number(&s, "GET " VER), 1);
	take("y");
	BEGINS("taken|x|");
	ck_assert_int_gt(atoi(answer() + strlen("taken|x|")), 50000);
	/* Once more is no other generation, unless it has to be greater. */
	take("x");
	IS("ok|1|0");
	RUN(SCRIPT_TAKE, 7, COORD, GEN, VER, COUNT, VAR, PRE, NEW, "x", "60000", "1", "1",
	    "0");
	IS("ok|2|0");
	RUN(SCRIPT_TAKE, 7, COORD, GEN, VER, COUNT, VAR, PRE, NEW, "x", "60000", "1", "10",
	    "0");
	IS("ok|11|0");
	RUN(SCRIPT_TAKE, 7, COORD, GEN, VER, COUNT, VAR, PRE, NEW, "x", "60000", "2", "0",
	    "0");
	IS("version|1");
	rs_do(&s, "SET " GEN " 123456789012345");
	rs_do(&s, "DEL " COORD);
	take("x");
	IS("ok|123456789012346|0");
	rs_do(&s, "DEL " COORD);
	rs_do(&s, "SET " GEN " what");
	take("y");
	BEGINS("error GARBAGE {n}:gen: ");
	rs_do(&s, "SET " GEN " 9007199254740993");
	take("y");
	BEGINS("error GARBAGE {n}:gen: ");
	ck_assert_int_eq(rs_number(&s, "EXISTS " COORD), 0);
	end();
}
END_TEST

/* With a new generation, and not when that is asked for again. */
START_TEST(taking_it_fresh)
{
	int again;

	begin();
	rs_do(&s, "HSET " COUNT " changes 12 finished 3");
	rs_do(&s, "HSET " VAR " a 1");
	take("x");
	IS("ok|1|12");
	ck_assert_int_eq(rs_number(&s, "EXISTS " VAR), 1);
	rs_do(&s, "DEL " COORD);
	for (again = 0; again < 2; again++) {
		RUN(SCRIPT_TAKE, 7, COORD, GEN, VER, COUNT, VAR, PRE, NEW, "y", "60000",
		    "1", "1", "1");
		IS(again ? "ok|2|1" : "ok|2|0");
		ck_assert_int_eq(rs_number(&s, "EXISTS " VAR), again);
		ck_assert_int_eq(rs_number(&s, "HEXISTS " COUNT " changes"),
				 again);
		rs_do(&s, "HSET " COUNT " changes 1");
		rs_do(&s, "HSET " VAR " a 1");
	}
	RUN(SCRIPT_TAKE, 7, COORD, GEN, VER, COUNT, VAR, PRE, NEW, "z", "60000", "1", "1",
	    "1");
	BEGINS("taken|y|");
	ck_assert_int_eq(rs_number(&s, "EXISTS " VAR), 1);
	end();
}
END_TEST

/* The coordinator x of a generation takes the namespace again. */
static void
retake(const char *generation)
{
	rs_do(&s, "DEL " COORD);
	RUN(SCRIPT_TAKE, 7, COORD, GEN, VER, COUNT, VAR, PRE, NEW, "x", "60000",
	    "1", generation, generation);
}

/* Another one was there, which began without the variables, or after all was
   deleted, and has counted more changes than x. */
START_TEST(taking_it_again_after_a_fresh_one)
{
	int way;

	for (way = 0; way < 3; way++) {
		begin();
		rs_do(&s, "SET " GEN " 10");
		take("x");
		IS("ok|11|0");
		rs_do(&s, "HSET " COUNT " changes 12");
		rs_do(&s, "HSET " VAR " a 1");
		rs_do(&s, "DEL " COORD);
		if (way == 1)
			rs_do(&s, "DEL " COUNT " " VAR);
		RUN(SCRIPT_TAKE, 7, COORD, GEN, VER, COUNT, VAR, PRE, NEW, "y",
		    "60000", "1", "11", way == 0 ? "1" : "0");
		IS(way == 2 ? "ok|12|12" : "ok|12|0");
		rs_do(&s, "HSET " COUNT " changes 20");
		retake("11");
		IS(way == 2 ? "ok|13|20" : "ok|13|0");
		/* What it has got now is its own. */
		retake("13");
		IS("ok|14|20");
		end();
	}
}
END_TEST

/* What a killed coordinator has left uses up the memory. */
START_TEST(taking_it_without_memory)
{
	int left;

	for (left = 0; left < 3; left++) {
		begin();
		if (left == 1)
			rs_do(&s, "HSET " NEW " a 1");
		if (left == 2)
			rs_do(&s, "HSET " PRE " a 1");
		rs_do(&s, "CONFIG SET maxmemory 1");
		take("x");
		if (left == 0)
			BEGINS("error OOM");
		else
			IS("ok|1|0");
		ck_assert_int_eq(rs_number(&s, "EXISTS " NEW " " PRE), 0);
		rs_do(&s, "CONFIG SET maxmemory 0");
		end();
	}
}
END_TEST

START_TEST(staying)
{
	begin();
	take("x");
	RUN(SCRIPT_LOCK, 4, COORD, GEN, COUNT, VAR, "x", "1", "90000", "");
	IS("ok|0|");
	ck_assert_int_gt(rs_number(&s, "PTTL " COORD), 70000);
	rs_do(&s, "HSET " COUNT " changes 12");
	RUN(SCRIPT_LOCK, 4, COORD, GEN, COUNT, VAR, "x", "1", "90000", "");
	IS("ok|12|");
	RUN(SCRIPT_LOCK, 4, COORD, GEN, COUNT, VAR, "x", "2", "90000", "");
	IS("lost|x");
	RUN(SCRIPT_LOCK, 4, COORD, GEN, COUNT, VAR, "y", "2", "90000", "");
	IS("lost|x");
	ck_assert_int_eq(rs_number(&s, "GET " GEN), 1);
	/* Its generation is over with it. */
	RUN(SCRIPT_LOCK, 4, COORD, GEN, COUNT, VAR, "y", "1", "90000", "");
	IS("lost|x");
	ck_assert_int_eq(rs_number(&s, "GET " GEN), 2);
	rs_do(&s, "DEL " COORD);
	RUN(SCRIPT_LOCK, 4, COORD, GEN, COUNT, VAR, "x", "2", "90000", "");
	IS("lost|");
	ck_assert_int_eq(rs_number(&s, "EXISTS " COORD), 0);
	ck_assert_int_eq(rs_number(&s, "GET " GEN), 2);
	end();
}
END_TEST

START_TEST(releasing)
{
	begin();
	take("x");
	rs_do(&s, "SET {n}:1:a 1");
	rs_do(&s, "XADD " EV " * a b");
	RUN(SCRIPT_RELEASE, 3, COORD, "{n}:1:a", EV, "y");
	IS("lost");
	/* ver, gen, count and coord stay. */
	ck_assert_int_eq(rs_number(&s, "DBSIZE"), 4);
	rs_do(&s, "SET {n}:1:a 1");
	rs_do(&s, "XADD " EV " * a b");
	RUN(SCRIPT_RELEASE, 4, COORD, "{n}:1:a", EV, "{n}:1:none", "x");
	IS("ok");
	/* ver, gen and count stay. */
	ck_assert_int_eq(rs_number(&s, "DBSIZE"), 3);
	RUN(SCRIPT_RELEASE, 1, COORD, "x");
	IS("lost");
	end();
}
END_TEST

/* ---- a node's life ---- */

#define RENEW(g, value, beat) \
	RUN(SCRIPT_RENEW, 5, COORD, GEN, LEASE, BEAT, RUNS, (g), (value), \
	    "90000", (beat), "300000", "w", "0 1 idle - 0 0\n")

START_TEST(a_life)
{
	begin();
	registered("7");
	IS("no");
	take("x");
	RUN(SCRIPT_REGISTER, 4, COORD, GEN, LEASE, EV, "2", "2 7", "60000", "w",
	    "7", "hello");
	IS("no");
	ck_assert_int_eq(rs_number(&s, "XLEN " EV), 0);
	registered("7");
	IS("ok");
	ck_assert_int_eq(rs_number(&s, "XLEN " EV), 1);
	ck_assert_int_gt(rs_number(&s, "PTTL " LEASE), 50000);
	RENEW("1", "1 7", "5");
	IS("ok");
	ck_assert_int_gt(rs_number(&s, "PTTL " LEASE), 70000);
	ck_assert_int_eq(rs_number(&s, "GET " BEAT), 5);
	ck_assert_int_gt(rs_number(&s, "PTTL " BEAT), 200000);
	ck_assert_int_eq(rs_number(&s, "HLEN " RUNS), 1);
	ck_assert_int_gt(rs_number(&s, "PTTL " RUNS), 200000);
	rs_do(&s, "DEL " RUNS);
	RENEW("1", "1 8", "6");
	BEGINS("fenced|");
	ck_assert_int_eq(rs_number(&s, "EXISTS " RUNS), 0);
	/* Garbage in what is for people. */
	rs_do(&s, "SET " RUNS " a");
	RENEW("1", "1 7", "5");
	IS("ok");
	RENEW("2", "2 7", "6");
	BEGINS("fenced|");
	rs_do(&s, "PEXPIRE " LEASE " 30000");
	rs_do(&s, "DEL " COORD);
	RENEW("1", "1 7", "6");
	IS("alone");
	ck_assert_int_le(rs_number(&s, "PTTL " LEASE), 30000);
	ck_assert_int_eq(rs_number(&s, "GET " BEAT), 5);
	RUN(SCRIPT_LEAVE, 2, LEASE, EV, "1 8", "w", "8", "5", "bye");
	IS("fenced");
	RUN(SCRIPT_LEAVE, 2, LEASE, EV, "1 7", "w", "7", "5", "bye");
	IS("ok");
	ck_assert_int_eq(rs_number(&s, "XLEN " EV), 2);
	ck_assert_int_eq(rs_number(&s, "EXISTS " LEASE), 0);
	RUN(SCRIPT_LEAVE, 2, LEASE, EV, "1 7", "w", "7", "5", "bye");
	IS("fenced");
	RENEW("1", "1 7", "6");
	BEGINS("fenced|");
	end();
}
END_TEST

#define SEND(seq, ...) \
	RUN(SCRIPT_SEND, 7, GEN, LEASE, EV, VAR, COUNT, SEQS, PRE, "1", "1 7", "w", \
	    "7", seq, __VA_ARGS__)

static void
fence(const char *inc)
{
	char value[16];

	snprintf(value, sizeof(value), "1 %s", inc);
	RUN(SCRIPT_FENCE, 5, GEN, LEASE, EV, BEAT, SEQS, "1", value, "w", inc);
}

/* The last entry of ev: its id, and what it says. */
static void
last_event(char *id, size_t n, const char *w, const char *i, const char *q,
	   const char *d)
{
	redisReply *r = rs_ask(&s, "XREVRANGE " EV " + - COUNT 1"), *e;
	const char *names[] = { "w", "i", "s", "d" },
		   *values[] = { w, i, q, d }, *is;
	size_t k, len;

	ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
	ck_assert_uint_eq(r->elements, 1);
	e = r->element[0];
	snprintf(id, n, "%s", e->element[0]->str);
	for (k = 0; k < 4; k++) {
		is = evc__reply_field(e, names[k], &len);
		ck_assert_ptr_nonnull(is);
		ck_assert_str_eq(is, values[k]);
	}
	ck_assert_ptr_null(evc__reply_field(e, "x", &len));
	freeReplyObject(r);
}

START_TEST(fencing)
{
	char id[64], want[128];

	begin_all();
	RENEW("1", "1 7", "5");
	SEND("4", "f", "0");
	IS("ok");
	fence("7");
	last_event(id, sizeof(id), "w", "7", "fence", "");
	/* Without its mark the key may have been lost. */
	snprintf(want, sizeof(want), "ok|5|%s|?", id);
	IS(want);
	rs_do(&s, "HSET " SEQS " %b x", "", (size_t)0);
	fence("7");
	last_event(id, sizeof(id), "w", "7", "fence", "");
	snprintf(want, sizeof(want), "ok|5|%s|4", id);
	IS(want);
	ck_assert_int_eq(rs_number(&s, "EXISTS " LEASE), 0);
	/* Its lease is over already, and its last renewal is known still. */
	fence("7");
	BEGINS("ok|5|");
	ck_assert_int_eq(rs_number(&s, "XLEN " EV), 5);
	/* Another life has begun meanwhile: that one keeps its lease. */
	registered("8");
	rs_do(&s, "DEL " BEAT);
	rs_do(&s, "RPUSH " BEAT " x");
	fence("7");
	BEGINS("ok||");
	/* One of the former life that comes late changes nothing. */
	registered("7");
	IS("no");
	ck_assert_int_eq(rs_number(&s, "XLEN " EV), 7);
	ck_assert_int_eq(rs_number(&s, "EXISTS " LEASE), 1);
	/* In another generation there is a mark, too, and its leases stay. */
	rs_do(&s, "SET " GEN " 2");
	rs_do(&s, "SET " LEASE " %b", "2 9", (size_t)3);
	fence("7");
	last_event(id, sizeof(id), "w", "7", "fence", "");
	snprintf(want, sizeof(want), "gen|4|%s", id);
	IS(want);
	rs_do(&s, "DEL " EV);
	fence("8");
	IS("gen||");
	rs_do(&s, "DEL " SEQS);
	fence("8");
	IS("gen|?|");
	rs_do(&s, "DEL " GEN);
	fence("8");
	IS("gen||");
	rs_do(&s, "SET " GEN " 2");
	ck_assert_int_eq(rs_number(&s, "EXISTS " LEASE " " EV), 1);
	end();
}
END_TEST

/* ---- results with updates ---- */

static void
var_is(const char *name, const char *bytes)
{
	char text[64];
	size_t n = rs_text(&s, text, sizeof(text), "HGET " VAR " %s", name);

	ck_assert_msg(n == strlen(bytes) && memcmp(text, bytes, n) == 0,
		      "%s is %zu bytes, first %02x", name, n,
		      (unsigned char)text[0]);
}

START_TEST(sending)
{
	char id[64], before[64], after[64];

	begin_all();
	SEND("1", "plain", "2", "one", "1", "2", "1", "a", "5", "2", "b",
	     "\xa1x", "two", "1", "1", "1", "a", "0.5");
	IS("ok");
	last_event(id, sizeof(id), "w", "7", "1", "plainonetwo");
	var_is("b", "\xa1x");
	ck_assert_int_eq(rs_number(&s, "HSTRLEN " VAR " a"), 9);
	ck_assert_int_eq(rs_number(&s, "HGET " COUNT " finished"), 2);
	ck_assert_int_eq(rs_number(&s, "HGET " COUNT " changes"), 2);
	/* The same again. */
	digest(before, sizeof(before));
	SEND("1", "plain", "2", "one", "1", "2", "1", "a", "5", "2", "b",
	     "\xa1x", "two", "1", "1", "1", "a", "0.5");
	IS("ok");
	ck_assert_str_eq(digest(after, sizeof(after)), before);
	/* One that cannot be made; what it would have changed is not. */
	SEND("2", "", "3", "one", "1", "2", "2", "c", "\x05", "1", "b", "1",
	     "two", "1", "3", "2", "b", "\x07", "1", "b", "1", "1", "b", "-2",
	     "three", "1", "0");
	IS("ok|0|variable b is no number");
	last_event(id, sizeof(id), "w", "7", "2", "twothree");
	var_is("b", "\x06");
	var_is("c", "");
	ck_assert_int_eq(rs_number(&s, "HGET " COUNT " finished"), 4);
	ck_assert_int_eq(rs_number(&s, "HGET " COUNT " changes"), 3);
	SEND("2", "anything", "0");
	IS("ok|0|variable b is no number");
	ck_assert_int_eq(rs_number(&s, "XLEN " EV), 3);
	/* Removed, in both spellings, and added to afterwards. */
	SEND("3", "", "1", "x", "1", "4", "2", "a", "", "2", "b", "\xc0", "1",
	     "b", "3", "2", "c", "\xc0");
	IS("ok");
	var_is("a", "");
	var_is("b", "\x03");
	ck_assert_int_eq(rs_number(&s, "HEXISTS " VAR " a"), 0);
	ck_assert_int_eq(rs_number(&s, "HEXISTS " VAR " c"), 0);
	/* Numbers that are none. */
	SEND("4", "", "2", "x", "1", "1", "1", "b", "inf", "y", "1", "1", "1",
	     "b", "what");
	IS("ok|0|variable b: inf is nothing to add|1|variable b: what is "
	   "nothing"
	   " to add");
	var_is("b", "\x03");
	/* Nothing is left to be said, and the number is not used. */
	ck_assert_int_eq(rs_number(&s, "XLEN " EV), 4);
	SEND("4", "", "1", "y", "1", "1", "1", "b", "inf");
	IS("ok|0|variable b: inf is nothing to add");
	digest(before, sizeof(before));
	/* One that was said before, on a connection that was given up. */
	SEND("2", "late", "1", "x", "1", "1", "1", "b", "1");
	BEGINS("error GARBAGE");
	ck_assert_str_eq(digest(after, sizeof(after)), before);
	SEND("5", "", "1", "x", "1", "2", "2", "b", "\x01", "7", "b", "1");
	BEGINS("error GARBAGE");
	ck_assert_str_eq(digest(after, sizeof(after)), before);
	end();
}
END_TEST

/* The hash of LONG_VALUE: printf '\331\120%080d' 0 | tr 0 l | sha1sum */
#define LONG_VALUE \
	"\xd9\x50" \
	"llllllllllllllllllllllllllllllllllllllll" \
	"llllllllllllllllllllllllllllllllllllllll"
#define LONG_HASH "423c99fe5ce4dcfb77625861bc89f9c191d0f193"

START_TEST(sending_what_was_read)
{
	char id[64];

	begin_all();
	SEND("1", "", "1", "set", "1", "2", "2", "a", "\x01", "2", "long",
	     LONG_VALUE);
	IS("ok");
	/* All hold; in the second one what the first one has left. */
	SEND("2", "", "2", "one", "1", "4", "8", "a", "\x01", "8", "none", "",
	     "9", "long", LONG_HASH, "2", "a", "\x02", "two", "1", "2", "8", "a",
	     "\x02", "2", "a", "\x03");
	IS("ok");
	last_event(id, sizeof(id), "w", "7", "2", "onetwo");
	var_is("a", "\x03");
	/* None does, and then one that holds. */
	SEND("3", "", "5", "old", "1", "2", "8", "a", "\x02", "2", "a", "\x07",
	     "there", "1", "2", "8", "a", "", "1", "a", "1", "gone", "1", "2",
	     "8", "none", "\x01", "1", "a", "1", "hash", "1", "2", "9", "long",
	     "0" LONG_HASH, "1", "a", "1", "fine", "1", "2", "8", "a", "\x03",
	     "1", "a", "1");
	IS("ok|0||1||2||3|");
	last_event(id, sizeof(id), "w", "7", "3", "fine");
	var_is("a", "\x04");
	ck_assert_int_eq(rs_number(&s, "HGET " COUNT " finished"), 4);
	/* A short value in the place of a long one, which has that hash. */
	SEND("4", "", "1", "set", "1", "1", "2", "long", "\x05");
	IS("ok");
	SEND("5", "", "1", "x", "1", "1", "9", "long", LONG_HASH);
	IS("ok|0|");
	/* Failures: told when their reads hold, and not counted. */
	SEND("6", "", "2", "fails", "0", "1", "8", "a", "\x04", "never", "0",
	     "1", "8", "a", "\x05");
	IS("ok|1|");
	last_event(id, sizeof(id), "w", "7", "6", "fails");
	ck_assert_int_eq(rs_number(&s, "HGET " COUNT " finished"), 5);
	end();
}
END_TEST

START_TEST(sending_is_refused)
{
	char before[64], after[64];

	begin_all();
	digest(before, sizeof(before));
	RUN(SCRIPT_SEND, 7, GEN, LEASE, EV, VAR, COUNT, SEQS, PRE, "2", "2 7", "w",
	    "7", "1", "x", "0");
	IS("fenced");
	RUN(SCRIPT_SEND, 7, GEN, LEASE, EV, VAR, COUNT, SEQS, PRE, "1", "1 6", "w",
	    "6", "1", "x", "0");
	IS("fenced");
	ck_assert_str_eq(digest(after, sizeof(after)), before);
	fence("7");
	digest(before, sizeof(before));
	SEND("1", "x", "1", "y", "1", "1", "1", "a", "1");
	IS("fenced");
	ck_assert_str_eq(digest(after, sizeof(after)), before);
	end();
}
END_TEST

/* ---- single operations ---- */

static void
variable(const char *seq, const char *op, const char *name, const evc_value *a,
	 const evc_value *b)
{
	const struct word words[] = { T(GEN),
				      T(LEASE),
				      T(VAR),
				      T(COUNT),
				      T(SEQS),
				      T(PRE),
				      T("1"),
				      T("1 7"),
				      T("w.7.0"),
				      T(seq),
				      T(op),
				      T(name),
				      { a->data, a->size },
				      { b->data, b->size } };

	run(SCRIPT_VARIABLE, 6, words, sizeof(words) / sizeof(words[0]));
}

#define VARIABLE(seq, op, a, b) \
	RUN(SCRIPT_VARIABLE, 6, GEN, LEASE, VAR, COUNT, SEQS, PRE, "1", "1 7", \
	    "w.7.0", seq, op, "a", a, b)

START_TEST(single_operations)
{
	char before[64], after[64];

	begin_all();
	VARIABLE("1", "3", "9", "");
	IS("ok:none");
	VARIABLE("1", "1", "5", "");
	IS("ok:ok:\x05");
	VARIABLE("1", "1", "5", "");
	IS("ok:ok:\x05");
	VARIABLE("2", "1", "5", "");
	IS("ok:ok:\x0a");
	VARIABLE("3", "4", "\x0a", "\xa1x");
	IS("ok:ok");
	VARIABLE("3", "4", "\x0a", "\xa1x");
	IS("ok:ok");
	VARIABLE("4", "4", "\x0a", "\xa1y");
	IS("ok:other");
	VARIABLE("4", "4", "\x0a", "\xa1y");
	IS("ok:other");
	VARIABLE("5", "3", "9", "");
	IS("ok:ok:\xa1x");
	VARIABLE("6", "1", "1", "");
	IS("ok:number");
	ck_assert_int_eq(rs_number(&s, "HGET " COUNT " changes"), 3);
	ck_assert_int_eq(rs_number(&s, "HEXISTS " COUNT " finished"), 0);
	VARIABLE("7", "2", "\xc0", "");
	IS("ok:ok");
	VARIABLE("8", "3", "9", "");
	IS("ok:none");
	VARIABLE("9", "4", "\xc0", "\x01");
	IS("ok:ok");
	VARIABLE("10", "4", "\x01", "");
	IS("ok:ok");
	ck_assert_int_eq(rs_number(&s, "EXISTS " VAR), 0);
	digest(before, sizeof(before));
	VARIABLE("11", "1", "nan", "");
	BEGINS("error GARBAGE");
	VARIABLE("11", "7", "", "");
	BEGINS("error GARBAGE");
	VARIABLE("11", "3", "", "");
	BEGINS("error GARBAGE");
	/* One that was said before, on a connection that was given up. */
	VARIABLE("9", "2", "\x07", "");
	BEGINS("error GARBAGE");
	/* Another life, generation, or coordinator. */
	RUN(SCRIPT_VARIABLE, 6, GEN, LEASE, VAR, COUNT, SEQS, PRE, "1", "1 6",
	    "w.6.0", "1", "2", "a", "\x01", "");
	IS("fenced");
	RUN(SCRIPT_VARIABLE, 6, GEN, LEASE, VAR, COUNT, SEQS, PRE, "2", "1 7",
	    "w.7.0", "1", "3", "a", "", "");
	IS("fenced");
	RUN(SCRIPT_VARIABLE, 6, GEN, COORD, VAR, COUNT, SEQS, PRE, "1", "y", "coord",
	    "1", "2", "a", "\x01", "");
	IS("fenced");
	ck_assert_str_eq(digest(after, sizeof(after)), before);
	RUN(SCRIPT_VARIABLE, 6, GEN, COORD, VAR, COUNT, SEQS, PRE, "1", "x", "coord",
	    "1", "2", "a", "\x01", "");
	IS("ok:ok");
	end();
}
END_TEST

#define VARIABLES(...) \
	RUN(SCRIPT_VARIABLE, 6, GEN, LEASE, VAR, COUNT, SEQS, PRE, "1", "1 7", \
	    __VA_ARGS__)

START_TEST(several_operations)
{
	char before[64], after[64];

	begin_all();
	/* In their order; what is impossible changes nothing else. */
	VARIABLES("w.7.0", "1", "1", "a", "5", "", "w.7.1", "1", "1", "a", "2",
		  "", "w.7.2", "1", "3", "a", "9", "", "w.7.3", "1", "2", "b",
		  "\xa1x", "", "w.7.4", "1", "1", "b", "1", "", "w.7.5", "1",
		  "4", "b", "\x01", "\x02", "w.7.6", "1", "3", "c", "9", "");
	IS("ok:ok:\x05:ok:\x07:ok:\x07:ok:number:other:none");
	ck_assert_int_eq(rs_number(&s, "HGET " COUNT " changes"), 3);
	/* Some of them again, after a lost answer. */
	VARIABLES("w.7.1", "1", "1", "a", "2", "", "w.7.0", "2", "1", "a", "1",
		  "", "w.7.5", "1", "4", "b", "\x01", "\x02");
	IS("ok:ok:\x07:ok:\x08:other");
	ck_assert_int_eq(rs_number(&s, "HGET " COUNT " changes"), 4);
	/* One that is garbage, or late: none is made. */
	digest(before, sizeof(before));
	VARIABLES("w.7.0", "3", "1", "a", "1", "", "w.7.1", "2", "5", "a", "2",
		  "");
	BEGINS("error GARBAGE");
	VARIABLES("w.7.0", "3", "1", "a", "1", "", "w.7.1", "2", "1", "a",
		  "inf", "");
	BEGINS("error GARBAGE");
	VARIABLES("w.7.1", "2", "1", "a", "1", "", "w.7.0", "1", "1", "a", "1",
		  "");
	BEGINS("error GARBAGE");
	ck_assert_str_eq(digest(after, sizeof(after)), before);
	end();
}
END_TEST

#define THREE "\xc7\x18Gaaaaaaaabbbbbbbbcccccccc"

/* A vector of more bytes than the limit is not read, and what one script reads
   together has the same limit. */
START_TEST(reads_have_a_limit)
{
	begin_all();
	VARIABLE("1", "2", THREE, "");
	IS("ok:ok");
	VARIABLE("2", "3", "23", "");
	IS("ok:large:24");
	VARIABLE("2", "3", "24", "");
	IS("ok:ok:\xc7\x18G:aaaaaaaabbbbbbbbcccccccc");
	VARIABLES("w.7.0", "3", "3", "none", "24", "", "w.7.1", "1", "3", "a",
		  "24", "", "w.7.2", "1", "3", "a", "24", "", "w.7.3", "1",
		  "3", "none", "24", "");
	IS("ok:none:ok:\xc7\x18G:aaaaaaaabbbbbbbbcccccccc:later:later");
	VARIABLES("w.7.0", "4", "3", "a", "47", "", "w.7.1", "2", "3", "a",
		  "47", "", "w.7.2", "2", "3", "none", "47", "");
	IS("ok:ok:\xc7\x18G:aaaaaaaabbbbbbbbcccccccc:later:none");
	/* A comparison reads no more than what is expected. */
	VARIABLE("5", "4", "\xa1x", "\x01");
	IS("ok:other");
	VARIABLE("6", "4", THREE, "\x01");
	IS("ok:ok");
	end();
}
END_TEST

/* Somebody has deleted variables: nothing is changed until the coordinator knows
   of it, who says that they are in use. */
START_TEST(variables_that_are_gone)
{
	char before[64], after[64];

	begin_all();
	SEND("1", "two", "1", "x", "1", "2", "2", "a", "\x05", "2", "b", "\x06");
	rs_do(&s, "HDEL " VAR " b");
	digest(before, sizeof(before));
	SEND("2", "one", "1", "x", "1", "1", "1", "a", "1");
	IS("gone");
	VARIABLE("1", "1", "1", "");
	IS("gone");
	VARIABLE("1", "3", "9", "");
	IS("gone");
	RUN(SCRIPT_ALL, 6, GEN, COORD, VAR, COUNT, PRE, SEQS, "1", "x",
	    "counts", "");
	IS("gone");
	RUN(SCRIPT_LOCK, 4, COORD, GEN, COUNT, VAR, "x", "1", "90000", "");
	IS("ok|1|variables");
	ck_assert_str_eq(digest(after, sizeof(after)), before);
	/* Somebody has used one, of which the coordinator does not know yet. */
	RUN(SCRIPT_LOCK, 4, COORD, GEN, COUNT, VAR, "x", "1", "90000", "0");
	IS("ok|1|variables");
	ck_assert_str_eq(digest(after, sizeof(after)), before);
	RUN(SCRIPT_LOCK, 4, COORD, GEN, COUNT, VAR, "x", "1", "90000", "1");
	IS("ok|1|");
	SEND("2", "one", "1", "x", "1", "1", "1", "a", "1");
	IS("ok");
	/* Another version's, which does not say how many there are. */
	rs_do(&s, "DEL " VAR);
	rs_do(&s, "HINCRBY " COUNT " changes 1");
	SEND("3", "one", "1", "x", "1", "1", "1", "a", "1");
	IS("ok");
	RUN(SCRIPT_LOCK, 4, COORD, GEN, COUNT, VAR, "x", "1", "90000", "");
	IS("ok|4|");
	end();
}
END_TEST

/* A snapshot, as a coordinator reads it. */
#define ALL_AS(g, id, what, n) \
	RUN(SCRIPT_ALL, 6, GEN, COORD, VAR, COUNT, PRE, SEQS, (g), (id), \
	    (what), (n), "16")
#define ALL(what, n) ALL_AS("1", "x", what, n)
#define FILL(seq, ...) \
	RUN(SCRIPT_FILL, 4, GEN, COORD, NEW, SEQS, "1", "x", seq, __VA_ARGS__)
#define REPLACE_AS(id, seq, finished, n) \
	RUN(SCRIPT_REPLACE, 7, GEN, COORD, VAR, COUNT, SEQS, PRE, NEW, "1", \
	    (id), (seq), (finished), (n))
#define REPLACE(seq, finished, n) REPLACE_AS("x", seq, finished, n)

START_TEST(all_of_them)
{
	begin_all();
	ALL("begin", "1");
	IS("ok|0|0|0");
	REPLACE("1", "42", "2");
	IS("none");
	FILL("1", "more", "a", "\x01");
	IS("none");
	FILL("1", "first", "a", "\x01");
	IS("ok");
	REPLACE("1", "42", "2");
	BEGINS("error GARBAGE {n}:new");
	/* A first piece that comes late, or again. */
	FILL("1", "more", "b", "\x02");
	IS("ok");
	FILL("1", "first", "a", "\x01");
	IS("ok");
	REPLACE("1", "42", "2");
	IS("ok");
	ck_assert_int_eq(rs_number(&s, "EXISTS " NEW), 0);
	ALL("begin", "2");
	IS("ok|42|1|0|a|\x01|b|\x02");
	ck_assert_int_eq(rs_number(&s, "EXISTS " PRE), 0);
	/* The same again. */
	FILL("1", "first", "a", "\x07");
	IS("ok");
	REPLACE("1", "42", "1");
	IS("ok");
	ALL("begin", "3");
	IS("ok|42|1|0|a|\x01|b|\x02");
	/* Another one begins, and what comes of the former one is late. */
	FILL("2", "first", "a", "\x07");
	IS("ok");
	FILL("3", "first");
	IS("ok");
	FILL("2", "first", "a", "\x07");
	BEGINS("error GARBAGE");
	FILL("2", "drop");
	IS("ok");
	REPLACE("3", "0", "0");
	IS("ok");
	ALL("begin", "4");
	IS("ok|0|2|0");
	/* One is given up. */
	FILL("4", "first", "a", "\x01");
	IS("ok");
	FILL("4", "drop");
	IS("ok");
	ck_assert_int_eq(rs_number(&s, "EXISTS " NEW), 0);
	FILL("5", "first", "a", "\x01");
	REPLACE("5", "7", "1");
	IS("ok");
	ALL("counts", "");
	IS("ok|7|3");
	/* One that was said before, on a connection that was given up. */
	REPLACE("2", "7", "1");
	BEGINS("error GARBAGE");
	FILL("2", "first", "a", "\x01");
	BEGINS("error GARBAGE");
	ALL_AS("1", "y", "begin", "5");
	IS("fenced");
	ALL_AS("2", "x", "begin", "5");
	IS("fenced");
	REPLACE_AS("y", "6", "9", "1");
	IS("fenced");
	RUN(SCRIPT_FILL, 4, GEN, COORD, NEW, SEQS, "1", "y", "6", "first");
	IS("fenced");
	ALL("begin", "5");
	IS("ok|7|3|0|a|\x01");
	end();
}
END_TEST

/* So many variables that one piece is not all of them. */
static void
fill_var(void)
{
	unsigned i;

	for (i = 0; i < 1000; i++)
		rs_do(&s, "HSET " VAR " v%u %b", i, "\x01", (size_t)1);
	rs_do(&s, "HSET " VAR " a %b b %b", "\x05", (size_t)1, "\x06",
	      (size_t)1);
}

static void
pre_is(const char *name, const char *bytes)
{
	char text[64];
	size_t n = rs_text(&s, text, sizeof(text), "HGET " PRE " %s", name);

	ck_assert_int_eq(rs_number(&s, "HEXISTS " PRE " %s", name), 1);
	ck_assert_uint_eq(n, strlen(bytes));
	ck_assert_mem_eq(text, bytes, n);
}

START_TEST(a_snapshot)
{
	char mark[32];

	begin_all();
	fill_var();
	SEND("1", "", "1", "x", "1", "1", "1", "a", "1");
	IS("ok");
	ck_assert_int_eq(rs_number(&s, "EXISTS " PRE), 0);
	ALL("begin", "1");
	BEGINS("ok|1|1|");
	ck_assert(strncmp(answer(), "ok|1|1|0|", 9) != 0);
	rs_text(&s, mark, sizeof(mark), "HGET " PRE " %s", "");
	ck_assert_str_eq(mark, "1 1");
	ck_assert_int_eq(rs_number(&s, "TTL " PRE), -1);
	/* What a variable was, once; a new one was not there. */
	SEND("2", "", "1", "x", "1", "3", "1", "a", "1", "2", "new", "\x01",
	     "2", "b", "");
	IS("ok");
	VARIABLE("1", "1", "1", "");
	IS("ok:ok:\x08");
	pre_is("a", "\x06");
	pre_is("b", "\x06");
	pre_is("new", "");
	ck_assert_int_eq(rs_number(&s, "HLEN " PRE), 4);
	/* A comparison that does not hold, and a read, change nothing. */
	VARIABLE("2", "4", "\x07", "\x01");
	IS("ok:other");
	VARIABLE("3", "3", "9", "");
	IS("ok:ok:\x08");
	ck_assert_int_eq(rs_number(&s, "HLEN " PRE), 4);
	ALL("end", "7");
	IS("none");
	ALL("drop", "7");
	IS("ok");
	ALL("end", "1");
	BEGINS("ok|2|3");
	ck_assert_int_eq(rs_number(&s, "EXISTS " PRE), 0);
	ALL("end", "1");
	IS("none");
	/* One that comes late sets no mark. */
	ALL("begin", "2");
	BEGINS("ok|2|3|");
	ALL("begin", "1");
	BEGINS("error GARBAGE");
	ALL("drop", "2");
	IS("ok");
	ck_assert_int_eq(rs_number(&s, "EXISTS " PRE), 0);
	/* It ends with other variables, and with another coordinator. */
	ALL("begin", "3");
	FILL("1", "first", "a", "\x01");
	REPLACE("1", "0", "1");
	IS("ok");
	ALL("end", "3");
	IS("none");
	fill_var();
	ALL("begin", "4");
	FILL("2", "first", "a", "\x01");
	rs_do(&s, "DEL " COORD);
	take("y");
	IS("ok|2|4");
	ck_assert_int_eq(rs_number(&s, "EXISTS " PRE " " NEW), 0);
	end();
}
END_TEST

START_TEST(a_snapshot_of_variables_that_are_gone)
{
	begin_all();
	fill_var();
	VARIABLE("1", "1", "1", "");
	IS("ok:ok:\x06");
	ALL("begin", "1");
	BEGINS("ok|");
	rs_do(&s, "HDEL " VAR " b");
	ALL("end", "1");
	IS("gone");
	ALL("begin", "2");
	IS("gone");
	end();
}
END_TEST

/* ---- as the coordinator's own memory ---- */

#define V(bytes) \
	{ \
		bytes, sizeof(bytes) - 1 \
	}

static const evc_value values[] = {
	V(""),
	V("\xc0"),
	V("\xc2"),
	V("\xc3"),
	V("\xa1x"),
	V("\x90"),
	/* 0, in many ways */
	V("\x00"),
	V("\xcc\x00"),
	V("\xd3\x00\x00\x00\x00\x00\x00\x00\x00"),
	V("\xcb\x00\x00\x00\x00\x00\x00\x00\x00"),
	V("\xcb\x80\x00\x00\x00\x00\x00\x00\x00"),
	V("\xca\x00\x00\x00\x00"),
	V("\xca\x80\x00\x00\x00"),
	/* small ones of all formats */
	V("\x7f"),
	V("\xff"),
	V("\xe0"),
	V("\xcc\xff"),
	V("\xcd\x12\x34"),
	V("\xce\x80\x00\x00\x01"),
	V("\xd0\x80"),
	V("\xd0\xff"),
	V("\xd1\xff\xff"),
	V("\xd1\x80\x00"),
	V("\xd2\xff\xff\xff\xff"),
	V("\xd2\x7f\xff\xff\xff"),
	V("\xcf\x00\x00\x00\x00\x00\x00\x00\x7f"),
	V("\xd3\xff\xff\xff\xff\xff\xff\xff\xff"),
	V("\xcb\xbf\xf0\x00\x00\x00\x00\x00\x00"),
	V("\xca\xbf\x80\x00\x00"),
	V("\xca\x3f\xc0\x00\x00"),
	V("\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"),
	V("\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a"),
	V("\xca\x3d\xcc\xcc\xcd"),
	/* 2^53 - 1, 2^53, 2^53 + 1, and as doubles, and negative */
	V("\xcf\x00\x1f\xff\xff\xff\xff\xff\xff"),
	V("\xcf\x00\x20\x00\x00\x00\x00\x00\x00"),
	V("\xcf\x00\x20\x00\x00\x00\x00\x00\x01"),
	V("\xd3\x00\x20\x00\x00\x00\x00\x00\x01"),
	V("\xcb\x43\x40\x00\x00\x00\x00\x00\x00"),
	V("\xcb\x43\x3f\xff\xff\xff\xff\xff\xff"),
	V("\xd3\xff\xe0\x00\x00\x00\x00\x00\x00"),
	V("\xd3\xff\xe0\x00\x00\x00\x00\x00\x01"),
	V("\xd3\xff\xdf\xff\xff\xff\xff\xff\xff"),
	V("\xcb\xc3\x40\x00\x00\x00\x00\x00\x00"),
	/* 2^63 - 1, 2^63, -2^63, 2^64 - 1, and as doubles */
	V("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"),
	V("\xd3\x7f\xff\xff\xff\xff\xff\xff\xff"),
	V("\xcf\x80\x00\x00\x00\x00\x00\x00\x00"),
	V("\xcb\x43\xe0\x00\x00\x00\x00\x00\x00"),
	V("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"),
	V("\xcb\xc3\xe0\x00\x00\x00\x00\x00\x00"),
	V("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"),
	V("\xcb\x43\xf0\x00\x00\x00\x00\x00\x00"),
	V("\xcb\xc3\xf0\x00\x00\x00\x00\x00\x00"),
	/* vast, infinite, none */
	V("\xcb\x7f\xef\xff\xff\xff\xff\xff\xff"),
	V("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"),
	V("\xca\x7f\x80\x00\x00"),
	V("\xcb\xff\xf0\x00\x00\x00\x00\x00\x00"),
	V("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"),
	V("\xca\x7f\xc0\x00\x00"),
	V("\xcb\x00\x00\x00\x00\x00\x00\x00\x01"),
};
#define N_VALUES (sizeof(values) / sizeof(values[0]))

static const double addends[] = { 0,
				  -0.0,
				  1,
				  -1,
				  0.1,
				  -0.3,
				  127,
				  1e15,
				  9007199254740991.0,
				  9007199254740992.0,
				  -9007199254740992.0,
				  1e300,
				  -1e300,
				  1.7976931348623157e308,
				  5e-324,
				  123456.789 };
#define N_ADDENDS (sizeof(addends) / sizeof(addends[0]))

/* What a script has answered, as a status of evc__variable_do. */
static evc_status
status_of(void)
{
	const char *word = evc__reply_word(evc__operation_answer(last, 0));

	ck_assert_msg(word != NULL, "%s", answer());
	if (strcmp(word, "ok") == 0)
		return 0;
	if (strcmp(word, "number") == 0 || strcmp(word, "sum") == 0)
		return -EVC_INVALID_ARGUMENT;
	if (strcmp(word, "other") == 0)
		return -EVC_ABORTED;
	ck_assert_str_eq(word, "none");
	return -EVC_NOT_FOUND;
}

/* Is the variable v the same on both sides? */
static void
check_same(struct variables *v, const char *what, size_t i, size_t k)
{
	evc_engine_update get = { .op = EVC_VARIABLE_GET, .name = "v" };
	evc_value mine = { NULL, 0 };
	evc_status st = evc__variable_do(v, &get, NULL, &mine);
	const char *theirs;
	size_t n = 0;

	variable("0", "3", "v", &(evc_value){ "999", 3 }, &(evc_value){ "", 0 });
	ck_assert_msg(st == status_of(), "%s %zu %zu: %d, %s", what, i, k, st,
		      answer());
	if (st < 0)
		return;
	theirs = evc__reply_bytes(evc__operation_answer(last, 0), 1, &n);
	ck_assert_ptr_nonnull(theirs);
	ck_assert_msg(n == mine.size && memcmp(theirs, mine.data, n) == 0,
		      "%s %zu %zu: %zu bytes %02x%02x%02x.., not %zu bytes"
		      " %02x%02x%02x..",
		      what, i, k, n, (unsigned char)theirs[0],
		      n > 1 ? (unsigned char)theirs[1] : 0,
		      n > 2 ? (unsigned char)theirs[2] : 0, mine.size,
		      ((const unsigned char *)mine.data)[0],
		      mine.size > 1 ? ((const unsigned char *)mine.data)[1] : 0,
		      mine.size > 2 ? ((const unsigned char *)mine.data)[2]
				    : 0);
	free((void *)mine.data);
}

static void
do_both(struct variables *v, unsigned seq, const evc_engine_update *u,
	const char *what, size_t i, size_t k)
{
	char number[32], op[2] = { (char)('0' + u->op), '\0' }, text[64];
	evc_value a, b = { "", 0 };
	evc_status st = evc__variable_do(v, u, NULL, NULL);

	snprintf(number, sizeof(number), "%u", seq);
	snprintf(text, sizeof(text), "%.17g", u->by);
	a = u->op == EVC_VARIABLE_ADD   ? (evc_value){ text, strlen(text) }
	    : u->op == EVC_VARIABLE_SET ? u->value
					: u->expected;
	if (u->op == EVC_VARIABLE_COMPARE_SET)
		b = u->value;
	variable(number, op, "v", &a, &b);
	ck_assert_msg(st == status_of(), "%s %zu %zu: %d, %s", what, i, k, st,
		      answer());
	check_same(v, what, i, k);
}

START_TEST(sums_are_the_same)
{
	struct variables v = { .saved = 0 };
	unsigned seq = 1;
	size_t i, k;

	begin_all();
	/* Thousands of calls: a busy machine takes longer than a lease. */
	rs_do(&s, "PERSIST " LEASE);
	ck_assert(evc__variables_init(&v));
	for (i = 0; i < N_VALUES; i++)
		for (k = 0; k < N_ADDENDS; k++) {
			evc_engine_update set = { .op = EVC_VARIABLE_SET,
						  .name = "v",
						  .value = values[i] },
					  add = { .op = EVC_VARIABLE_ADD,
						  .name = "v",
						  .by = addends[k] };

			do_both(&v, seq++, &set, "set", i, k);
			do_both(&v, seq++, &add, "add", i, k);
			do_both(&v, seq++, &add, "add again", i, k);
		}
	evc__variables_destroy(&v);
	end();
}
END_TEST

START_TEST(comparisons_are_the_same)
{
	struct variables v = { .saved = 0 };
	unsigned seq = 1;
	size_t i, k;

	begin_all();
	/* Thousands of calls: a busy machine takes longer than a lease. */
	rs_do(&s, "PERSIST " LEASE);
	ck_assert(evc__variables_init(&v));
	for (i = 0; i < N_VALUES; i++)
		for (k = 0; k < N_VALUES; k++) {
			evc_engine_update
				set = { .op = EVC_VARIABLE_SET,
					.name = "v",
					.value = values[i] },
				cas = { .op = EVC_VARIABLE_COMPARE_SET,
					.name = "v",
					.expected = values[k],
					.value = V("\xa3new") };

			do_both(&v, seq++, &set, "set", i, k);
			do_both(&v, seq++, &cas, "compare", i, k);
		}
	evc__variables_destroy(&v);
	end();
}
END_TEST

/* ---- what is no good ---- */

static const char *const all_keys[] = { COORD, GEN,   VER,  LEASE, EV,
					VAR,   COUNT, SEQS, PRE, NEW };
#define N_KEYS (sizeof(all_keys) / sizeof(all_keys[0]))

static void
run_each(enum redis_script i)
{
	switch (i) {
	case SCRIPT_TAKE:
		take("x");
		break;
	case SCRIPT_LOCK:
		RUN(i, 4, COORD, GEN, COUNT, VAR, "x", "1", "60000", "");
		break;
	case SCRIPT_RELEASE:
		RUN(i, 3, COORD, EV, SEQS, "x");
		break;
	case SCRIPT_FENCE:
		fence("7");
		break;
	case SCRIPT_REGISTER:
		registered("8");
		break;
	case SCRIPT_RENEW:
		RENEW("1", "1 7", "5");
		break;
	case SCRIPT_LEAVE:
		RUN(i, 2, LEASE, EV, "1 7", "w", "7", "9", "bye");
		break;
	case SCRIPT_SEND:
		SEND("9", "", "1", "x", "1", "2", "1", "a", "1", "2", "b", "\x05");
		break;
	case SCRIPT_VARIABLE:
		VARIABLE("9", "1", "1", "");
		break;
	case SCRIPT_ALL:
		ALL("begin", "9");
		break;
	case SCRIPT_FILL:
		FILL("9", "first", "a", "\x01");
		break;
	case SCRIPT_REPLACE:
		REPLACE("1", "0", "1");
		break;
	default:
		ck_abort_msg("a script without a test");
	}
}

/* As begin_all, on the same server. */
static void
anew(void)
{
	rs_do(&s, "FLUSHALL");
	take("x");
	registered("7");
	SEND("1", "", "1", "x", "1", "1", "1", "a", "1");
	VARIABLE("1", "1", "1", "");
	FILL("1", "first", "a", "\x01");
	IS("ok");
}

START_TEST(other_types)
{
	static const char *const made[] = { "SET %s x",      "LPUSH %s x",
					    "SADD %s x",     "HSET %s x y",
					    "XADD %s * a b", "ZADD %s 1 a" };
	char before[64], after[64], want[64];
	unsigned script, refused = 0;
	size_t key, m;

	begin();
	for (script = 0; script < SCRIPTS; script++)
		for (key = 0; key < N_KEYS; key++)
			for (m = 0; m < 6; m++) {
				anew();
				rs_do(&s, "DEL %s", all_keys[key]);
				rs_do(&s, made[m], all_keys[key]);
				digest(before, sizeof(before));
				run_each((enum redis_script)script);
				if (last->type != REDIS_REPLY_ERROR)
					continue;
				snprintf(want, sizeof(want),
					 "error GARBAGE %s: ", all_keys[key]);
				BEGINS(want);
				ck_assert_str_eq(digest(after, sizeof(after)),
						 before);
				refused++;
			}
	ck_assert_uint_gt(refused, 100);
	end();
}
END_TEST

/* Of the right type, with something in it that nobody could have put there. */
START_TEST(other_contents)
{
	static const char *const spoilt[] = {
		"HSET " COUNT " changes x",
		"HSET " COUNT " finished -1",
		"HSET " COUNT " changes 9223372036854775807",
		"HSET " COUNT " finished \"\"",
		"HSET " SEQS " w.7 \xc1",
		"HSET " SEQS " w.7.0 garbage",
		"HSET " SEQS " w.7 \x93",
		"SET " GEN " -1",
		"SET " COORD " y PX 60000",
		"SET " LEASE " what",
		"HSET " VAR " a \xc1",
		"HSET " VAR " a \xcb",
		"HSET " VAR " a \xcf\x01\x02",
	};
	char before[64], after[64];
	unsigned script;
	size_t i;

	begin();
	for (script = 0; script < SCRIPTS; script++)
		for (i = 0; i < sizeof(spoilt) / sizeof(spoilt[0]); i++) {
			anew();
			rs_do(&s, spoilt[i]);
			digest(before, sizeof(before));
			run_each((enum redis_script)script);
			/* It is refused by a word, made, or garbage. */
			if (last->type != REDIS_REPLY_ERROR) {
				ck_assert_ptr_nonnull(evc__reply_word(last));
				continue;
			}
			BEGINS("error GARBAGE {n}:");
			ck_assert_str_eq(digest(after, sizeof(after)), before);
		}
	end();
}
END_TEST

/* ---- a server that has no memory, or takes no writes ---- */

START_TEST(without_memory)
{
	/* What has to work even then. */
	static const bool works[SCRIPTS] = {
		[SCRIPT_LOCK] = true,    [SCRIPT_RELEASE] = true,
		[SCRIPT_FENCE] = true,   [SCRIPT_RENEW] = true,
		[SCRIPT_LEAVE] = true,   [SCRIPT_ALL] = true,
		[SCRIPT_REPLACE] = true,
	};
	char before[64], after[64];
	unsigned script;

	begin();
	for (script = 0; script < SCRIPTS; script++) {
		rs_do(&s, "CONFIG SET maxmemory 0");
		anew();
		rs_do(&s, "CONFIG SET maxmemory 1");
		digest(before, sizeof(before));
		run_each((enum redis_script)script);
		if (works[script]) {
			ck_assert_msg(strncmp(answer(), "ok", 2) == 0, "%s: %s",
				      evc__scripts[script].name, answer());
			continue;
		}
		BEGINS("error OOM");
		ck_assert_str_eq(digest(after, sizeof(after)), before);
	}
	/* A lease that has run out is fenced, too. */
	rs_do(&s, "CONFIG SET maxmemory 0");
	anew();
	rs_do(&s, "DEL " LEASE);
	rs_do(&s, "CONFIG SET maxmemory 1");
	fence("7");
	BEGINS("ok||");
	/* And what is kept can be read. */
	rs_do(&s, "CONFIG SET maxmemory 0");
	anew();
	rs_do(&s, "CONFIG SET maxmemory 1");
	VARIABLE("2", "3", "9", "");
	BEGINS("ok");
	end();
}
END_TEST

START_TEST(a_replica)
{
	char before[64], after[64];
	unsigned script;

	begin();
	anew();
	/* It keeps its data until it has found the master, which is not there. */
	rs_do(&s, "REPLICAOF 127.0.0.1 1");
	digest(before, sizeof(before));
	for (script = 0; script < SCRIPTS; script++) {
		run_each((enum redis_script)script);
		if (script == SCRIPT_ALL)
			BEGINS("ok");
		else
			BEGINS("error READONLY");
		ck_assert_str_eq(digest(after, sizeof(after)), before);
	}
	end();
}
END_TEST

RS_MAIN("redis/scripts", taking, taking_it_fresh,
	taking_it_again_after_a_fresh_one, taking_it_without_memory, staying, releasing, a_life,
	fencing, sending, sending_what_was_read, sending_is_refused,
	single_operations, several_operations, reads_have_a_limit,
	variables_that_are_gone, all_of_them, a_snapshot,
	a_snapshot_of_variables_that_are_gone, sums_are_the_same,
	comparisons_are_the_same, other_types, other_contents,
	without_memory, a_replica)
