/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoints that are read in pieces: each is of one moment, whatever changes
 * meanwhile, whoever dies in the middle, and when the server is another one
 * afterwards.  And back from a file: in one step, or not at all.
 *
 * Functions move money between accounts, let a variable of each pair appear and
 * the other one disappear, and count themselves in "n": so a state of one moment
 * has the whole sum, one of each pair, and as many functions as have finished.
 * They move money between elements of the vector "bank", too, and set a vector
 * for each pair, which is short or long as the pair is.
 */
#include "rows.h"

#include <evcoord/value.h>
#include <sys/stat.h>

enum { ACCOUNTS = 20, MONEY = 1000, PAIRS = 10, OTHERS = 20000, HEAD = 24,
       BANK = 640, SHORT = 10, LONG = 300,
       /* of the server's hash: a vector has one for its size, and chunks */
       FIELDS = OTHERS + ACCOUNTS + 3 * PAIRS + 1 + BANK / 64 };

/* The vectors' part of a move. */
static evc_status
move_elements(evc_exec *x, int from, int to, int amount, int pair, bool is_long)
{
	double by[2] = { -amount, amount };
	uint32_t at[2] = { (uint32_t)from * 30, (uint32_t)to * 30 + 5 };
	evc_elements e = { .doubles = by, .n = 2, .at = at };
	float all[LONG];
	char name[32];
	evc_status st = evc_exec_vector_add(x, "bank", &e);
	int i;

	e = (evc_elements){ .floats = all, .n = is_long ? LONG : SHORT };
	for (i = 0; i < LONG; i++)
		all[i] = is_long ? 2 : 1;
	snprintf(name, sizeof(name), "s%d", pair);
	return st < 0 ? st : evc_exec_vector_set(x, name, &e);
}

/* [from, to, amount, pair] */
static evc_status
fn_move(evc_exec *x, void *arg)
{
	evc_value was = { NULL, 0 }, one = { "\x01", 1 };
	int from, to, amount, pair, b;
	char name[32];
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[iiii]", &from, &to, &amount, &pair) < 0)
		return EVC_INVALID_ARGUMENT;
	snprintf(name, sizeof(name), "a%d", from);
	st = evc_exec_variable_add(x, name, -amount, NULL);
	snprintf(name, sizeof(name), "a%d", to);
	if (st == 0)
		st = evc_exec_variable_add(x, name, amount, NULL);
	snprintf(name, sizeof(name), "p%d.0", pair);
	if (st == 0)
		st = evc_exec_variable_get(x, name, &was);
	evc_value_free(&was);
	if (st != 0 && st != -EVC_NOT_FOUND)
		return evc_exec_fail(x, EVC_UNAVAILABLE, "%s",
				     evc_last_error());
	if (move_elements(x, from, to, amount, pair, st == 0) < 0)
		return evc_exec_fail(x, EVC_UNAVAILABLE, "%s",
				     evc_last_error());
	for (b = 0, was = st == 0 ? (evc_value){ NULL, 0 } : one, st = 0;
	     st == 0 && b < 2; b++) {
		snprintf(name, sizeof(name), "p%d.%d", pair, b);
		st = evc_exec_variable_set(x, name, &was);
		was = was.size > 0 ? (evc_value){ NULL, 0 } : one;
	}
	if (st == 0)
		st = evc_exec_variable_add(x, "n", 1, NULL);
	return st == 0 ? 0
		       : evc_exec_fail(x, EVC_UNAVAILABLE, "%s",
				       evc_last_error());
}

/* [n]: so many variables */
static evc_status
fn_wide(evc_exec *x, void *arg)
{
	char name[32];
	int i, n;

	(void)arg;
	if (evc_exec_unpack(x, "[i]", &n) < 0)
		return EVC_INVALID_ARGUMENT;
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "w%d", i);
		if (evc_exec_variable_add(x, name, 1, NULL) < 0)
			return evc_exec_fail(x, EVC_UNAVAILABLE, "%s",
					     evc_last_error());
	}
	return 0;
}

static const evc_function functions[] = { ROW_FUNCTIONS,
				{ .name = "move", .fn = fn_move },
					  { .name = "wide", .fn = fn_wide } };

/* ---- the server's variables ---- */

static void
fill(void)
{
	static const char script[] =
		"for i = 1, tonumber(ARGV[1]) do "
		"  redis.call('HSET', KEYS[1], 'v' .. i, '\\1') "
		"end "
		"for i = 0, tonumber(ARGV[2]) - 1 do "
		"  redis.call('HSET', KEYS[1], 'a' .. i, "
		"    cmsgpack.pack(tonumber(ARGV[3]))) "
		"end "
		"for i = 0, tonumber(ARGV[4]) - 1 do "
		"  redis.call('HSET', KEYS[1], 'p' .. i .. '.0', '\\1') "
		"  redis.call('HSET', KEYS[1], 's' .. i, "
		"    '\\199\\5\\87\\4\\0\\0\\0\\10') "
		"  redis.call('HSET', KEYS[1], '\\1' .. '0000000s' .. i, "
		"    string.rep(struct.pack('<f', 1), 10)) "
		"end "
		"redis.call('HSET', KEYS[1], 'bank', "
		"  '\\199\\5\\87\\8' .. struct.pack('>I4', 640)) "
		"for i = 0, 9 do "
		"  redis.call('HSET', KEYS[1], "
		"    '\\1' .. string.format('%07x', i) .. 'bank', "
		"    string.rep(struct.pack('<d', tonumber(ARGV[3])), 64)) "
		"end";
	char key[80];

	snprintf(key, sizeof(key), "{%s}:var", rg.ns);
	rs_do(rg.server, "EVAL %s 1 %s %d %d %d %d", script, key, OTHERS,
	      ACCOUNTS, MONEY, PAIRS);
}

static long long
exists(const char *key)
{
	return rig_key("EXISTS", key);
}

/* ---- what a file has ---- */

struct content {
	uint64_t finished;
	int64_t sum, n;
	unsigned accounts, others, pairs[PAIRS], twice;
	bool is_long[PAIRS];  /* what the pair says */
	size_t sizes[PAIRS];  /* of its vector */
	double bank;
};

static void
take_vector(struct content *c, const char *name, const evc_value *v)
{
	double all[BANK];
	evc_elements e = { .doubles = all, .n = evc_value_count(v) };
	double each;
	size_t i;
	int pair;

	ck_assert_uint_le(e.n, BANK);
	OK(evc_value_elements(v, &e));
	if (strcmp(name, "bank") == 0) {
		ck_assert_uint_eq(e.n, BANK);
		for (i = 0; i < BANK; i++)
			c->bank += all[i];
		return;
	}
	ck_assert_int_eq(sscanf(name, "s%d", &pair), 1);
	c->sizes[pair] = e.n;
	each = e.n == LONG ? 2 : 1;
	for (i = 0; i < e.n; i++)
		ck_assert(all[i] == each);
}

static void
take_variable(struct content *c, const char *name, int64_t is)
{
	int pair, b;

	if (name[0] == 'a') {
		c->sum += is;
		c->accounts++;
	} else if (name[0] == 'v')
		c->others++;
	else if (sscanf(name, "p%d.%d", &pair, &b) == 2) {
		c->pairs[pair]++;
		c->is_long[pair] = b == 1;
	} else if (strcmp(name, "n") == 0)
		c->n = is;
}

static struct content
content_of(const char *path)
{
	struct content c = { .sum = 0 };
	evc_value file, map, key, element, is;
	char *all, name[64];
	const void *bytes;
	size_t at = 0, n;
	struct stat st;
	int64_t x;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	OK(fstat(fd, &st));
	all = malloc((size_t)st.st_size);
	ck_assert_ptr_nonnull(all);
	ck_assert_int_eq(read(fd, all, (size_t)st.st_size), st.st_size);
	close(fd);
	file = (evc_value){ all + HEAD, (size_t)st.st_size - HEAD };
	OK(evc_unpack(&file, "[Uv]", &c.finished, &map));
	while (evc_value_next(&map, &at, &key, &element)) {
		OK(evc_unpack(&key, "s", name, sizeof(name)));
		OK(evc_unpack(&element, "B", &bytes, &n));
		is = (evc_value){ bytes, n };
		if (evc_value_type(&is) == EVC_VALUE_VECTOR) {
			take_vector(&c, name, &is);
			continue;
		}
		OK(evc_unpack(&is, "I", &x));
		take_variable(&c, name, x);
	}
	free(all);
	return c;
}

/* It is a state of one moment. */
static void
check_content(const char *path)
{
	struct content c = content_of(path);
	int i;

	ck_assert_int_eq(c.sum, ACCOUNTS * MONEY);
	ck_assert_uint_eq(c.accounts, ACCOUNTS);
	ck_assert_uint_eq(c.others, OTHERS);
	ck_assert(c.bank == (double)BANK * MONEY);
	for (i = 0; i < PAIRS; i++) {
		ck_assert_msg(c.pairs[i] == 1, "%u of pair %d", c.pairs[i], i);
		ck_assert_uint_eq(c.sizes[i], c.is_long[i] ? LONG : SHORT);
	}
	ck_assert_int_eq((int64_t)c.finished, c.n);
}

static void
make_path(char path[64])
{
	int fd;

	snprintf(path, 64, "/tmp/evc-redis-snapshot-XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	OK(unlink(path));
}

/* ---- changes all the time ---- */

static struct {
	pthread_t thread;
	atomic_int on, made;
} changes;

static void *
change(void *arg)
{
	const evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL,
					.deaths = 255 };
	int i = 0, k;

	while (atomic_load(&changes.on)) {
		for (k = 0; k < 32; k++, i++)
			if (evc_schedule_pack(on.cl, "move", &txn, NULL,
					      "[iiii]", i % ACCOUNTS,
					      i * 7 % ACCOUNTS, i % 90,
					      i % PAIRS) != 0)
				return arg;
		if (evc_cluster_join(on.cl, T_LIMIT) != 0)
			return arg;
		atomic_fetch_add(&changes.made, 32);
	}
	return arg;
}

static void
changes_begin(void)
{
	int made;

	atomic_store(&changes.on, 1);
	OK(pthread_create(&changes.thread, NULL, change, NULL));
	made = atomic_load(&changes.made);
	UNTIL(atomic_load(&changes.made) > made);
}

static void
changes_end(void)
{
	atomic_store(&changes.on, 0);
	OK(pthread_join(changes.thread, NULL));
}

/* ---- calls beside the test ---- */

struct call {
	pthread_t thread;
	const char *path; /* NULL: evc_variable_each */
	evc_status (*fn)(evc_cluster *, const char *);
	evc_status st;
	char why[200];
	struct content seen;
	atomic_int over;
};

static bool
see(const char *name, const evc_value *value, void *arg)
{
	int64_t x = 0;

	(void)evc_unpack(value, "I", &x);
	take_variable(arg, name, x);
	return true;
}

static void *
call_main(void *arg)
{
	struct call *k = arg;

	k->st = k->path != NULL ? k->fn(on.cl, k->path)
				: evc_variable_each(on.cl, see, &k->seen);
	snprintf(k->why, sizeof(k->why), "%s",
		 k->st < 0 ? evc_last_error() : "");
	atomic_store(&k->over, 1);
	return arg;
}

static void
call_begin(struct call *k)
{
	OK(pthread_create(&k->thread, NULL, call_main, k));
}

static evc_status
call_end(struct call *k)
{
	OK(pthread_join(k->thread, NULL));
	return k->st;
}

/* ---- tests ---- */

static void
begin_full(int i, const struct rig_opts *o, unsigned workers)
{
	evc_cluster_config config = { .lease = 1.5 };

	rig(i, o);
	redis.may_expire = true;
	fill();
	rig_node(workers);
	rig_open(&config);
}

START_TEST(one_moment_while_all_changes)
{
	char path[64];
	double now;
	int i;

	begin_full(_i, &(struct rig_opts){ .own = true }, 2);
	make_path(path);
	changes_begin();
	for (i = 0; i < 5; i++) {
		OK(evc_cluster_save(on.cl, path));
		check_content(path);
	}
	ck_assert_int_eq(exists("pre"), 0);
	changes_end();
	/* The program's own calls do not wait for the end of a snapshot. */
	for (i = 0; i < 3; i++) {
		struct call save = { .path = path, .fn = evc_cluster_save };
		int before = 0;

		call_begin(&save);
		while (!atomic_load(&save.over)) {
			OK(evc_variable_add(on.cl, "mine", 1, &now));
			before++;
		}
		OK(call_end(&save));
		ck_assert_int_gt(before, 1);
		check_content(path);
	}
	unlink(path);
}
END_TEST

START_TEST(several_at_a_time)
{
	char path[2][64];
	struct call k[3] = { { .path = path[0], .fn = evc_cluster_save },
			     { .path = NULL },
			     { .path = path[1], .fn = evc_cluster_save } };
	int i;

	begin_full(_i, &(struct rig_opts){ .own = true }, 2);
	make_path(path[0]);
	make_path(path[1]);
	changes_begin();
	for (i = 0; i < 3; i++)
		call_begin(&k[i]);
	for (i = 0; i < 3; i++)
		OK(call_end(&k[i]));
	changes_end();
	check_content(path[0]);
	check_content(path[1]);
	ck_assert_int_eq(k[1].seen.sum, ACCOUNTS * MONEY);
	ck_assert_uint_eq(k[1].seen.others, OTHERS);
	unlink(path[0]);
	unlink(path[1]);
}
END_TEST

/* Its mark goes once, and then all the time. */
START_TEST(its_mark_is_removed)
{
	char path[64];
	struct call save = { .path = path, .fn = evc_cluster_save };
	char key[80];

	begin_full(_i, &(struct rig_opts){ .own = true }, 2);
	make_path(path);
	snprintf(key, sizeof(key), "{%s}:pre", rg.ns);
	changes_begin();
	call_begin(&save);
	UNTIL(exists("pre") == 1);
	rs_do(rg.server, "DEL %s", key);
	OK(call_end(&save));
	check_content(path);
	unlink(path);
	atomic_store(&save.over, 0);
	call_begin(&save);
	while (!atomic_load(&save.over))
		rs_do(rg.server, "DEL %s", key);
	IS(call_end(&save), -EVC_UNAVAILABLE);
	HAS(save.why, "removed");
	ck_assert_int_ne(access(path, F_OK), 0);
	OK(evc_cluster_save(on.cl, path));
	check_content(path);
	changes_end();
	unlink(path);
}
END_TEST

/* Somebody has put something else there. */
START_TEST(something_else_is_there)
{
	char path[64], key[80];

	begin_full(_i, &(struct rig_opts){ .own = true }, 1);
	make_path(path);
	snprintf(key, sizeof(key), "{%s}:pre", rg.ns);
	rs_do(rg.server, "SET %s x", key);
	IS(evc_cluster_save(on.cl, path), -EVC_DATA_LOSS);
	HAS(evc_last_error(), ":pre");
	rs_do(rg.server, "DEL %s", key);
	snprintf(key, sizeof(key), "{%s}:var", rg.ns);
	rs_do(rg.server, "HSET %s bad %b", key, "\xc1", (size_t)1);
	IS(evc_cluster_save(on.cl, path), -EVC_DATA_LOSS);
	HAS(evc_last_error(), "bad");
	UNTIL(exists("pre") == 0);
	rs_do(rg.server, "HDEL %s bad", key);
	OK(evc_cluster_save(on.cl, path));
	check_content(path);
	unlink(path);
}
END_TEST

/* The name of a variable among the first that a snapshot reads. */
static void
read_first_name(const char *key, char *ret, size_t size)
{
	redisReply *r = rs_ask(rg.server, "HSCAN %s 0 COUNT 32", key), *list;
	size_t i;

	ck_assert_uint_eq(r->elements, 2);
	list = r->element[1];
	for (i = 0; i < list->elements && list->element[i]->str[0] != 'v';
	     i += 2)
		;
	ck_assert_uint_lt(i, list->elements);
	snprintf(ret, size, "%s", list->element[i]->str);
	freeReplyObject(r);
}

/* A checkpoint is given up, and the connection is lost before the server hears
   of that: nothing that writes is done meanwhile. */
START_TEST(what_was_given_up_leaves_no_mark)
{
	evc_cluster_config config = { .lease = 60 };
	char path[64], key[80], name[32];
	struct call save = { .path = path, .fn = evc_cluster_save };

	rig(_i, &(struct rig_opts){ .own = true, .coord_proxy = true });
	fill();
	rig_node(1);
	rig_open(&config);
	make_path(path);
	snprintf(key, sizeof(key), "{%s}:var", rg.ns);
	read_first_name(key, name, sizeof(name));
	rs_do(rg.server, "HSET %s %s %b", key, name, "\xc1", (size_t)1);
	/* The first answer says that the mark is there, and has that name. */
	proxy_set(&rg.coord, PROXY_DEAF);
	call_begin(&save);
	UNTIL(exists("pre") == 1);
	rs_do(rg.server, "CLIENT PAUSE 600000 WRITE");
	proxy_set(&rg.coord, PROXY_PASS);
	IS(call_end(&save), -EVC_DATA_LOSS);
	IS(exists("pre"), 1);
	proxy_cut(&rg.coord);
	rs_do(rg.server, "CLIENT UNPAUSE");
	UNTIL(exists("pre") == 0);
	rs_do(rg.server, "HSET %s %s \1", key, name);
	OK(evc_cluster_save(on.cl, path));
	check_content(path);
	unlink(path);
}
END_TEST

static void
restart_in_the_middle(int i, bool trusted)
{
	struct rig_opts o = { .own = true, .append = true,
			      .options = trusted ? "?trust-aof=1" : NULL };
	char path[64];
	struct call save = { .path = path, .fn = evc_cluster_save };

	begin_full(i, &o, 2);
	make_path(path);
	changes_begin();
	call_begin(&save);
	UNTIL(exists("pre") == 1);
	rs_kill(rg.server);
	rs_start(rg.server);
	if (trusted) {
		OK(call_end(&save));
		check_content(path);
		UNTIL(exists("pre") == 0);
	} else {
		IS(call_end(&save), -EVC_UNAVAILABLE);
		HAS(save.why, "may be lost");
		ck_assert_int_ne(access(path, F_OK), 0);
	}
	changes_end();
	unlink(path);
}

START_TEST(the_server_is_restarted)
{
	restart_in_the_middle(_i, true);
}
END_TEST

START_TEST(the_server_is_restarted_and_not_trusted)
{
	restart_in_the_middle(_i, false);
}
END_TEST

/* ---- a coordinator that dies ---- */

/* In the child: nothing of check here.  It saves, or restores what was saved, for
   ever. */
static void
coordinate(const char *path, bool restores)
{
	evc_cluster_config config = { .lease = 1.5,
				      .functions = table,
				      .n_functions = n_table };
	evc_cluster *cl;
	evc_coord *c;

	CHILD(evc_new(NULL, NULL, &c) == 0);
	CHILD(evc_cluster_open(c, rg.uri, &config, &cl) == 0);
	for (;;) {
		CHILD(evc_cluster_save(cl, path) == 0);
		while (restores)
			CHILD(evc_cluster_restore(cl, path) == 0);
	}
}

static void
is_killed(int i, bool restores)
{
	const char *key = restores ? "new" : "pre";
	evc_cluster_config config = { .lease = 1.5 };
	char path[64];
	pid_t pid;

	rig(i, &(struct rig_opts){ .own = true });
	redis.may_expire = true;
	fill();
	make_path(path);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		coordinate(path, restores);
		_exit(0);
	}
	UNTIL(exists(key) == 1);
	OK(kill(pid, SIGKILL));
	(void)node_wait(pid);
	ck_assert_int_eq(rig_key("HLEN", "var"), FIELDS);
	rig_node(2);
	rig_open(&config);
	ck_assert_int_eq(exists("pre"), 0);
	ck_assert_int_eq(exists("new"), 0);
	changes_begin();
	OK(evc_cluster_save(on.cl, path));
	check_content(path);
	OK(evc_cluster_restore(on.cl, path));
	changes_end();
	ck_assert_int_eq(exists("new"), 0);
	unlink(path);
}

START_TEST(the_coordinator_dies_in_a_save)
{
	is_killed(_i, false);
}
END_TEST

START_TEST(the_coordinator_dies_in_a_restore)
{
	is_killed(_i, true);
}
END_TEST

/* ---- back from a file ---- */

START_TEST(back_in_one_step)
{
	char path[64];
	struct call restore = { .path = path, .fn = evc_cluster_restore };
	int i;

	begin_full(_i, &(struct rig_opts){ .own = true }, 2);
	make_path(path);
	OK(evc_cluster_save(on.cl, path));
	changes_begin();
	for (i = 0; i < 3; i++) {
		call_begin(&restore);
		OK(call_end(&restore));
		OK(evc_cluster_save(on.cl, path));
		check_content(path);
	}
	changes_end();
	/* A snapshot under way is of the variables before, or behind. */
	for (i = 0; i < 3; i++) {
		struct call save = { .path = path, .fn = evc_cluster_save };

		call_begin(&save);
		OK(evc_cluster_restore(on.cl, path));
		OK(call_end(&save));
		check_content(path);
	}
	unlink(path);
}
END_TEST

START_TEST(a_vector_without_all_its_parts)
{
	double some[2] = { 1, 1 };
	evc_elements e = { .doubles = some, .n = 2, .from = 64 };
	char path[64];
	evc_value v;
	size_t n;

	begin_full(_i, NULL, 1);
	make_path(path);
	OK(evc_vector_add(on.cl, "bank", &e));
	rs_do(rg.server, "HSET {%s}:var \x01" "0000001bank short", rg.ns);
	REFUSED(EVC_DATA_LOSS, evc_vector_get(on.cl, "bank", &e));
	REFUSED(EVC_DATA_LOSS, evc_vector_add(on.cl, "bank", &e));
	REFUSED(EVC_DATA_LOSS, evc_variable_get(on.cl, "bank", &v));
	REFUSED(EVC_DATA_LOSS, evc_cluster_save(on.cl, path));
	OK(evc_vector_size(on.cl, "bank", &n));
	/* Other parts are whole, and a new vector is. */
	e.from = 0;
	OK(evc_vector_add(on.cl, "bank", &e));
	OK(evc_vector_set(on.cl, "bank", &e));
	OK(evc_cluster_save(on.cl, path));
	/* A size of 2^32 - 1 is believed by nobody: the server would look for
	   chunks for minutes. */
	rs_do(rg.server, "HSET {%s}:var bank %b", rg.ns,
	      "\xc7\x05\x57\x08\xff\xff\xff\xff", (size_t)8);
	REFUSED(EVC_DATA_LOSS, evc_variable_get(on.cl, "bank", &v));
	REFUSED(EVC_DATA_LOSS, evc_vector_size(on.cl, "bank", &n));
	REFUSED(EVC_DATA_LOSS, evc_cluster_save(on.cl, path));
	OK(evc_vector_set(on.cl, "bank", &e));
	OK(evc_vector_size(on.cl, "bank", &n));
	ck_assert_uint_eq(n, 2);
	unlink(path);
}
END_TEST

/* ---- what is too much at once ---- */

START_TEST(a_transaction_that_is_too_large)
{
	const evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	evc_reason e;

	rig(_i, NULL);
	rig_node(1);
	rig_open(NULL);
	evc_remote_free(SCHEDULE_WITH(&txn, "wide", "[i]", 4096));
	OK(join());
	ck_assert(variable("w4095") == 1);
	evc_remote_free(SCHEDULE_WITH(&txn, "wide", "[i]", 4097));
	IS(join(), EVC_RESOURCE_EXHAUSTED);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	HAS(e.text, "at most 4096 reads and updates of variables, not 4097");
	ck_assert(variable("w0") == 1);
	ck_assert_int_eq(rig_key("HLEN", "var"), 4096);
	/* And it goes on. */
	evc_remote_free(SCHEDULE_WITH(&txn, "wide", "[i]", 1));
	OK(join());
	ck_assert(variable("w0") == 2);
}
END_TEST

REDIS_ROWS("redis: snapshots", functions, ROW(one_moment_while_all_changes),
	   ROW(several_at_a_time), ROW(its_mark_is_removed),
	   ROW(something_else_is_there),
	   ROW(what_was_given_up_leaves_no_mark), ROW(the_server_is_restarted),
	   ROW(the_server_is_restarted_and_not_trusted),
	   ROW(the_coordinator_dies_in_a_save),
	   ROW(the_coordinator_dies_in_a_restore), ROW(back_in_one_step),
	   ROW(a_vector_without_all_its_parts),
	   ROW(a_transaction_that_is_too_large))
