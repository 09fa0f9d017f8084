/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys in which somebody else has written: each of another type, and with bytes
 * that are none of ours, before a cluster is opened and while it runs.  Whoever
 * reads them refuses them by name, or does without; nothing crashes or hangs, and
 * when they are gone the namespace can be used again.
 *
 * EVC_FUZZ_SECONDS: how long bytes are made up (2).  EVC_SEED: what is random.
 */
#include "rows.h"

static void
key_of(char *buf, size_t n, const char *tail)
{
	snprintf(buf, n, "{%s}:%s", rg.ns, tail);
}

/* What there is in place of it. */
static const char *const kinds[] = { "string", "list", "set",
				     "zset",   "hash", "stream" };
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void
become(const char *key, int kind)
{
	rs_do(rg.server, "DEL %s", key);
	switch (kind) {
	case 0:
		rs_do(rg.server, "SET %s %s", key, "g a r b a g e");
		break;
	case 1:
		rs_do(rg.server, "RPUSH %s a b c", key);
		break;
	case 2:
		rs_do(rg.server, "SADD %s a b c", key);
		break;
	case 3:
		rs_do(rg.server, "ZADD %s 1 a 2 b", key);
		break;
	case 4:
		rs_do(rg.server, "HSET %s a b changes x finished y replace z",
		      key);
		break;
	default:
		rs_do(rg.server, "XADD %s * a b", key);
		break;
	}
}

/* Whatever it says, it says it, and soon. */
static evc_status
try_one(evc_reason *e)
{
	evc_status st;

	st = evc_schedule_pack(on.cl, "add", NULL, NULL, "[ii]", 1, 2);
	ck_assert_msg(st >= 0, "%d, %s", st, evc_last_error());
	if (st == 0)
		st = join();
	memset(e, 0, sizeof(*e));
	if (st > 0)
		OK(evc_cluster_error_get(on.cl, 0, e));
	return st;
}

/* After all, it works. */
static void
works_again(void)
{
	rs_do(rg.server, "FLUSHALL");
	on.n_workers = 1;
	redis.n = rg.n_nodes;
	rig_open(NULL);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
	ck_assert(variable("nothing") == 0);
}

/* ---- before it is opened ---- */

START_TEST(before_it_is_opened)
{
	static const char *const keys[] = { "ver", "coord", "gen", "var",
					    "count" };
	evc_cluster_config config = { .lease = short_lease() };
	char key[80], what[120], says[40];
	const char *why;
	evc_reason e;
	evc_status st;
	double now;
	size_t k;
	int kind;

	rig(_i, &(struct rig_opts){ .own = true });
	rig_node(1);
	on.n_workers = 0;
	for (k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
		for (kind = 0; kind < KINDS; kind++) {
			rs_do(rg.server, "FLUSHALL");
			key_of(key, sizeof(key), keys[k]);
			become(key, kind);
			redis.n = rg.n_nodes;
			/* No worker comes but with these variables. */
			config.worker_wait = k == 3 ? T_LIMIT : 0.4;
			rig_open(&config);
			snprintf(what, sizeof(what), "%s as a %s", keys[k],
				 kinds[kind]);
			snprintf(says, sizeof(says), ":%s: it ", keys[k]);
			why = k == 0 && kind == 0 ? "is of version" :
			      k == 1 && kind == 0 ? "is in use by g a r" :
						    says;
			if (k != 3)
				UNTIL(is_reported(why));
			if (k == 3)
				UNTIL(numbers().n_up == 1);
			st = try_one(&e);
			ck_assert_msg(st == (k == 3 ? 0 : EVC_UNAVAILABLE),
				      "%s: %d, %s", what, st, e.text);
			if (k != 3)
				HAS(e.text, why);
			/* A hash is what it has to be. */
			if (k == 3 && kind != 4) {
				st = evc_variable_add(on.cl, "n", 1, &now);
				ck_assert_msg(st < 0, "%s: added to", what);
				HAS(evc_last_error(), "var");
			}
			rs_do(rg.server, "DEL %s", key);
			rig_close();
		}
	works_again();
}
END_TEST

/* ---- while it runs ---- */

/* The name of a key there is by its beginning and its end; false: none. */
static bool
find_key(const char *head, const char *tail, char *buf, size_t n)
{
	redisReply *r = rs_ask(rg.server, "KEYS {%s}:%s*%s", rg.ns, head, tail);
	bool found = r->type == REDIS_REPLY_ARRAY && r->elements > 0;

	if (found)
		snprintf(buf, n, "%s", r->element[0]->str);
	freeReplyObject(r);
	return found;
}

static const struct {
	const char *head, *tail;
} living[] = {
	{ "ver", "" },	{ "coord", "" }, { "gen", "" },	   { "lease:", "" },
	{ "var", "" },	{ "count", "" }, { "[0-9]", ":opts" }, { "[0-9]", ":ev" },
	{ "[0-9]", "to:*" }, { "[0-9]", "v:*" }, { "[0-9]", ":seqs" },
	{ "[0-9]", ":state" }, { "[0-9]", ":runs" },
};

static void
while_it_runs(size_t which, int kind)
{
	evc_cluster_config config = { .lease = 1, .worker_wait = 5 };
	evc_remote *big, *r;
	double until;
	char key[160];
	evc_reason e;
	int i;

	rs_do(rg.server, "FLUSHALL");
	on.n_workers = 1;
	redis.n = rg.n_nodes;
	rig_open(&config);
	DO("step", "[sd]", "n", 0.0);
	big = SCHEDULE("big", "[ii]", 100000, 1);
	OK(join());
	if (!find_key(living[which].head, living[which].tail, key,
		      sizeof(key))) {
		/* Not all of them are there already, or still. */
		evc_remote_free(big);
		rig_close();
		return;
	}
	become(key, kind);
	until = t_now() + 0.3;
	for (i = 0; t_now() < until; i++) {
		r = NULL;
		if ((i % 2 == 0 ? evc_schedule_pack(on.cl, "add", NULL, &r,
						    "[ii]", 1, 2)
				: evc_schedule_pack(on.cl, "step", NULL, &r,
						    "[sd]", "n", 1.0)) < 0)
			break;
		evc_remote_free(r);
		r = NULL;
		if (evc_schedule_pack(on.cl, "look", NULL, &r, "[rr]", big,
				      big) < 0)
			break;
		evc_remote_free(r);
		(void)evc_cluster_join(on.cl, 0.1);
	}
	(void)evc_variable_add(on.cl, "n", 1, NULL);
	(void)try_one(&e);
	evc_remote_free(big);
	rig_close();
}

START_TEST(each_key_while_it_runs)
{
	size_t which;

	rig(_i, &(struct rig_opts){ .own = true });
	rig_node(1);
	for (which = 0; which < sizeof(living) / sizeof(living[0]); which++) {
		/* One that it is not, and bytes. */
		while_it_runs(which, 1 + (int)(which % 3));
		while_it_runs(which, 0);
		if (which % 2 == 0)
			while_it_runs(which, 4 + (int)(which / 2 % 2));
	}
	/* The node has outlived all of it. */
	ck_assert(!process_is_over(node_of(0)));
	works_again();
}
END_TEST

/* ---- a stream that takes no entry any more ---- */

#define LAST_ID "18446744073709551615-18446744073709551615"

/* Each entry gets an id by the server, and somebody has used the last one: as an
   entry, or without one.  The functions run to their end, by another stream. */
START_TEST(no_id_is_left)
{
	static const char *const harms[] = { "XADD %s " LAST_ID " a b",
					     "XSETID %s " LAST_ID };
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL, .deaths = 255 };
	evc_cluster_config config = { .lease = short_lease() };
	char key[160];
	size_t h;
	int i;

	rig(_i, &(struct rig_opts){ .own = true });
	rig_node(1);
	rig_open(&config);
	for (h = 0; h < sizeof(harms) / sizeof(harms[0]); h++) {
		for (i = 0; i < 200; i++)
			OK(evc_schedule_pack(on.cl, "step", &txn, NULL, "[sd]",
					     "n", 0.01));
		UNTIL(variable("n") > 200.0 * (double)h + 20);
		ck_assert(find_key("[0-9]", ":ev", key, sizeof(key)));
		rs_do(rg.server, harms[h], key);
		UNTIL(is_reported("no id left"));
		OK(join());
		ck_assert_msg(variable("n") == 200.0 * (double)(h + 1), "%g",
			      variable("n"));
	}
}
END_TEST

/* ---- a key of its generation ---- */

/* It is not the user's to delete: another generation has keys of its own. */
START_TEST(the_numbers_of_updates_are_replaced)
{
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	evc_cluster_config config = { .lease = short_lease() };
	char key[160];
	evc_reason e;

	rig(_i, &(struct rig_opts){ .own = true });
	rig_node(1);
	rig_open(&config);
	OK(evc_schedule_pack(on.cl, "step", &txn, NULL, "[sd]", "n", 0.0));
	OK(join());
	ck_assert(find_key("[0-9]", ":seqs", key, sizeof(key)));
	become(key, 0);
	UNTIL(is_reported("were replaced by another key"));
	UNTIL(try_one(&e) == 0);
	OK(evc_schedule_pack(on.cl, "step", &txn, NULL, "[sd]", "n", 0.0));
	OK(join());
	ck_assert(variable("n") == 2);
}
END_TEST

/* ---- bytes ---- */

static size_t
make_up(unsigned *seed, unsigned char *bytes, size_t most)
{
	static const char *const words[] = { "0", "1", "-1", "18446744073709551615",
					     "fence", "", "1e999", "nan",
					     "9007199254740993" };
	size_t n = (size_t)rand_r(seed) % most, i;

	if (rand_r(seed) % 3 == 0) {
		const char *w = words[(size_t)rand_r(seed) % 9];

		memcpy(bytes, w, strlen(w));
		return strlen(w);
	}
	for (i = 0; i < n; i++)
		bytes[i] = (unsigned char)rand_r(seed);
	/* One that begins as a frame does is looked at longer. */
	if (n > 8 && rand_r(seed) % 2 == 0) {
		bytes[0] = 0xe5;
		bytes[1] = 0xc1;
		bytes[2] = 1;
		bytes[3] = (unsigned char)(rand_r(seed) % 30);
		memset(bytes + 4, 0, 3);
		bytes[7] = (unsigned char)(n - 8);
	}
	return n;
}

/* Entries of nobody whom the coordinator knows: dropped, and nothing is lost. */
START_TEST(made_up_events)
{
	double until = t_now() + from_environment("EVC_FUZZ_SECONDS", 2);
	unsigned seed = (unsigned)from_environment("EVC_SEED", 7);
	unsigned char b[4][64];
	char key[160];
	size_t n[4];
	int i, k;

	rig(_i, NULL);
	rig_node(2);
	rig_open(NULL);
	DO("step", "[sd]", "n", 0.0);
	OK(join());
	ck_assert(find_key("[0-9]", ":ev", key, sizeof(key)));
	for (i = 0; t_now() < until; i++) {
		for (k = 0; k < 4; k++)
			n[k] = make_up(&seed, b[k], sizeof(b[k]));
		if (i % 5 == 0)
			rs_do(rg.server, "XADD %s * %b %b", key, b[0], n[0],
			      b[1], n[1]);
		else
			rs_do(rg.server, "XADD %s * w %b i %b s %b d %b", key,
			      b[0], n[0], b[1], n[1], b[2], n[2], b[3], n[3]);
		DO("step", "[sd]", "n", 0.0);
		/* Or more would wait than a join has time for. */
		if (i % 100 == 99)
			OK(join());
	}
	OK(join());
	ck_assert(variable("n") == 1 + i);
	ck_assert_uint_eq(numbers().n_lost, 0);
	rs_unlink(rg.server);
}
END_TEST

/* In the name of a node that there is: that life of it is given up at worst, and
   all functions succeed. */
START_TEST(made_up_events_of_a_node)
{
	double until = t_now() + from_environment("EVC_FUZZ_SECONDS", 2);
	unsigned seed = (unsigned)from_environment("EVC_SEED", 11);
	evc_cluster_config config = { .lease = 1 };
	evc_schedule_opts any = { .deaths = 255 };
	unsigned char bytes[64];
	char ev[160], lease[160], inc[64];
	size_t n;
	int i = 0;

	rig(_i, NULL);
	rig_node(2);
	rig_open(&config);
	ck_assert(find_key("[0-9]", ":ev", ev, sizeof(ev)));
	for (; t_now() < until; i++, t_sleep(0.05)) {
		OK(evc_schedule_pack(on.cl, "step", &any, NULL, "[sd]", "n",
				     0.0));
		if (!find_key("lease:", "", lease, sizeof(lease)))
			continue;
		rs_text(rg.server, inc, sizeof(inc), "GET %s", lease);
		/* No frame: an event that one could believe would be the
		   node's own. */
		n = make_up(&seed, bytes + 1, sizeof(bytes) - 1) + 1;
		bytes[0] = '#';
		if (strchr(inc, ' ') != NULL)
			rs_do(rg.server, "XADD %s * w %s i %s s %d d %b", ev,
			      strstr(lease, "lease:") + 6, strchr(inc, ' ') + 1,
			      1 + rand_r(&seed) % 100, bytes, n);
	}
	OK(join());
	ck_assert(variable("n") >= i);
	UNTIL(numbers().n_up == 2);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	rs_unlink(rg.server);
}
END_TEST

/* To a node: it ends that life, and comes back. */
START_TEST(made_up_orders)
{
	double until = t_now() + from_environment("EVC_FUZZ_SECONDS", 2);
	unsigned seed = (unsigned)from_environment("EVC_SEED", 13);
	evc_cluster_config config = { .lease = 1 };
	evc_schedule_opts any = { .deaths = 255 };
	unsigned char bytes[64];
	char to[160];
	redisReply *r;
	size_t n;
	int i = 0;

	rig(_i, NULL);
	redis.may_expire = true;
	rig_node(2);
	rig_open(&config);
	for (; t_now() < until; i++, t_sleep(0.05)) {
		OK(evc_schedule_pack(on.cl, "step", &any, NULL, "[sd]", "n",
				     0.0));
		/* On a slow machine no worker would come up before the next
		   one. */
		if (numbers().n_up == 0 ||
		    !find_key("[0-9]", "to:*", to, sizeof(to)))
			continue;
		n = make_up(&seed, bytes, sizeof(bytes));
		/* Between two of the coordinator's; not where that life is over
		   meanwhile: nobody would delete it a second time. */
		r = rs_ask(rg.server, "XADD %s NOMKSTREAM * %s %b", to,
			   i % 4 == 0 ? "x" : "d", bytes, n);
		freeReplyObject(r);
	}
	(void)evc_cluster_join(on.cl, T_LIMIT);
	rs_unlink(rg.server);
}
END_TEST

/* Variables that are no MessagePack. */
START_TEST(made_up_variables)
{
	unsigned seed = (unsigned)from_environment("EVC_SEED", 17);
	unsigned char bytes[64];
	char key[80];
	evc_value v;
	size_t n;
	int i;

	rig(_i, NULL);
	rig_node(1);
	rig_open(NULL);
	key_of(key, sizeof(key), "var");
	for (i = 0; i < 300; i++) {
		n = make_up(&seed, bytes, sizeof(bytes));
		rs_do(rg.server, "HSET %s n %b", key, bytes, n);
		v = (evc_value){ NULL, 0 };
		if (evc_variable_get(on.cl, "n", &v) == 0)
			OK(evc_value_check(&v));
		else
			ck_assert_str_ne(evc_last_error(), "");
		evc_value_free(&v);
		(void)evc_variable_add(on.cl, "n", 1, NULL);
		if (i % 10 == 0) {
			evc_remote *r = SCHEDULE("step", "[sd]", "n", 0.0);

			(void)code_of(r);
			(void)join();
			evc_remote_free(r);
		}
	}
	rs_do(rg.server, "DEL %s", key);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
	rs_unlink(rg.server);
}
END_TEST

/* Deeper than a value may be: arrays, and maps whose keys are. */
static void
put_nested(const char *key, unsigned deep, bool maps)
{
	unsigned char bytes[2 * 1100 + 1];
	size_t n = 0;
	unsigned i;

	ck_assert_uint_le(deep, 1100);
	for (i = 0; i < deep; i++) {
		bytes[n++] = maps ? 0x81 : 0x91;
		if (maps)
			bytes[n++] = 0x01;
	}
	bytes[n++] = 0x05;
	rs_do(rg.server, "HSET %s x %b", key, bytes, n);
}

START_TEST(variables_that_are_too_deep)
{
	static const unsigned deep[] = { 31, 32, 33, 40, 63, 64, 65, 1024 };
	char path[64] = "/tmp/evc-deep-XXXXXX", key[80];
	evc_cluster_config config = { .checkpoint = path,
				      .checkpoint_every = 0.01 };
	evc_status st, want;
	evc_remote *r;
	evc_value v;
	size_t i;
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	close(fd);
	OK(unlink(path));
	rig(_i, NULL);
	rig_node(1);
	rig_open(&config);
	DO("step", "[sd]", "n", 0.0);
	OK(join());
	key_of(key, sizeof(key), "var");
	for (i = 0; i < 2 * sizeof(deep) / sizeof(deep[0]); i++) {
		put_nested(key, deep[i / 2], i % 2 == 1);
		want = deep[i / 2] <= EVC_VALUE_DEPTH ? 0 : -EVC_DATA_LOSS;
		v = (evc_value){ NULL, 0 };
		st = evc_variable_get(on.cl, "x", &v);
		ck_assert_msg(st == want, "%u deep: %d, %s", deep[i / 2], st,
			      evc_last_error());
		if (st < 0)
			HAS(evc_last_error(), "variable x holds");
		evc_value_free(&v);
		/* A worker reads the same. */
		r = SCHEDULE("read", "[s]", "x");
		IS(code_of(r), -want);
		if (want < 0)
			HAS(info_of(r).text, "variable x holds");
		evc_remote_free(r);
		IS(join(), -want);
		/* As the one does that comes by itself, when something was
		   changed. */
		OK(evc_variable_add(on.cl, "n", 1, NULL));
		if (want < 0)
			UNTIL(numbers().n_unsaved > 0);
		ck_assert_int_eq(evc_cluster_save(on.cl, NULL), want);
		if (want < 0)
			HAS(evc_last_error(), "variable x holds");
	}
	rs_do(rg.server, "HSET %s x %b", key, "\x05", (size_t)1);
	OK(evc_cluster_save(on.cl, NULL));
	rs_unlink(rg.server);
	rig_close();
	OK(unlink(path));
}
END_TEST

/* ---- answers ---- */

/* What a server with a damaged network says: any answer that is read anywhere,
   those of a checkpoint and of transactions, too. */
static void
ask_for_all(const char *path)
{
	evc_schedule_opts any = { .deaths = 255 };
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL, .deaths = 255 };
	evc_value v = { NULL, 0 };
	evc_remote *r = NULL;
	int i;

	for (i = 0; i < 10; i++)
		(void)!evc_schedule_pack(on.cl, "step", i % 2 ? &txn : &any, NULL,
				       "[sd]", "n", 0.0);
	if (evc_schedule_pack(on.cl, "big", &any, &r, "[ii]", 100000, 1) == 0)
		(void)!evc_schedule_pack(on.cl, "look", &any, NULL, "[rr]", r, r);
	evc_remote_free(r);
	(void)!evc_variable_add(on.cl, "n", 1, NULL);
	(void)!evc_variable_get(on.cl, "n", &v);
	evc_value_free(&v);
	(void)!evc_cluster_save(on.cl, path);
	(void)!evc_cluster_join(on.cl, 0.5);
}

/* What has failed stands in its answer, but all ends. */
static void
close_any(void)
{
	evc_join_opts budget = { .grace = T_LIMIT };
	evc_status st;

	evc_cluster_close(on.cl);
	on.cl = NULL;
	st = evc_join(on.c, &budget, NULL);
	ck_assert_msg(st >= 0, "join: %d, %s", st, evc_last_error());
	OK(evc_free(on.c));
	on.c = NULL;
}

static void
bend(int one_in)
{
	atomic_store(&rg.coord.shared->bend, one_in);
	atomic_store(&rg.node.shared->bend, one_in);
}

START_TEST(bent_answers)
{
	double until = t_now() + from_environment("EVC_FUZZ_SECONDS", 2);
	evc_cluster_config config = { .lease = 1,
				      .worker_wait = 2,
				      .grace = 1 };
	unsigned seed = (unsigned)from_environment("EVC_SEED", 19);
	char path[64] = "/tmp/evc-bent-XXXXXX";
	int i, fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	close(fd);
	rig(_i, &(struct rig_opts){ .own = true, .coord_proxy = true,
				    .node_proxy = true });
	redis.may_expire = true;
	rg.coord.shared->seed = seed;
	rg.node.shared->seed = seed + 1;
	rig_node(1);
	on.n_workers = 0;
	for (i = 0; t_now() < until; i++) {
		redis.n = rg.n_nodes;
		/* Seldom, so that it goes far; often. */
		bend(i % 3 == 0 ? 200 : i % 3 == 1 ? 50 : 10);
		rig_open(&config);
		ask_for_all(path);
		bend(0);
		/* Both have outlived it.  A result that was bent into another
		   answer is waited for until its node ends. */
		ck_assert(!process_is_over(node_of(0)));
		rig_node_again(0, 1);
		close_any();
	}
	printf("garbage: %d clusters with bent answers\n", i);
	works_again();
	unlink(path);
}
END_TEST

static const evc_function functions[] = { ROW_FUNCTIONS };

__attribute__((constructor)) static void
limit(void)
{
	row_seconds = 400 + from_environment("EVC_FUZZ_SECONDS", 2);
}

REDIS_ROWS("redis: garbage", functions, ROW(before_it_is_opened),
	   ROW(no_id_is_left), ROW(the_numbers_of_updates_are_replaced),
	   ROW(each_key_while_it_runs), ROW(made_up_events),
	   ROW(made_up_events_of_a_node), ROW(made_up_orders),
	   ROW(made_up_variables), ROW(bent_answers),
	   ROW(variables_that_are_too_deep))
