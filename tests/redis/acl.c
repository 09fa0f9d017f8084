/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Users of the server with rights for one namespace and no more: what each side
 * needs stands in tests/redis/acl.list, one line for each, as in the manual; with
 * that everything works and nothing is refused, and each word of it is needed.
 * Passwords come from a file or the environment, and are seen nowhere.
 */
#include "rows.h"

#include <sys/stat.h>

#define PASSWORD "s3cret-of-the-test"

/* The rights of "coordinator" or "node" in the list. */
static void
rights_of(const char *who, char *buf, size_t n)
{
	const char *top = getenv("EVC_TOP_SRCDIR");
	char path[300], line[1000];
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/redis/acl.list",
		 top != NULL ? top : ".");
	f = fopen(path, "r");
	ck_assert_msg(f != NULL, "%s", path);
	buf[0] = '\0';
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, who, strlen(who)) == 0 &&
		    line[strlen(who)] == ' ')
			snprintf(buf, n, "%.*s",
				 (int)strcspn(line + strlen(who) + 1, "\n"),
				 line + strlen(who) + 1);
	fclose(f);
	ck_assert_str_ne(buf, "");
}

/* A user with these rights, `without` (if not NULL) taken out of them. */
static void
make_user(const char *who, const char *rights, const char *without)
{
	char words[1200], *word, *save = NULL;
	const char *argv[100] = { "ACL", "SETUSER", who, "reset", "on",
				  ">" PASSWORD };
	char keys[80];
	redisReply *r;
	int n = 6;

	snprintf(keys, sizeof(keys), "~{%s}:*", rg.ns);
	argv[n++] = keys;
	snprintf(words, sizeof(words), "%s", rights);
	for (word = strtok_r(words, " ", &save); word != NULL && n < 100;
	     word = strtok_r(NULL, " ", &save))
		if (without == NULL || strcmp(word, without) != 0)
			argv[n++] = word;
	(void)rs_number(rg.server, "DBSIZE"); /* it is connected */
	r = redisCommandArgv(rg.server->link, n, argv, NULL);
	ck_assert_ptr_nonnull(r);
	ck_assert_msg(r->type != REDIS_REPLY_ERROR, "%s: %s", words, r->str);
	freeReplyObject(r);
}

/* How often the server has refused something, and what. */
static int
refused(char *buf, size_t n)
{
	redisReply *r = rs_ask(rg.server, "ACL LOG 20");
	int count = 0;
	size_t i, k;

	buf[0] = '\0';
	ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
	for (i = 0; i < r->elements; i++)
		for (k = 0; k + 1 < r->element[i]->elements; k += 2) {
			const char *name = r->element[i]->element[k]->str;
			const redisReply *v = r->element[i]->element[k + 1];

			if (v->type != REDIS_REPLY_STRING)
				continue;
			if (strcmp(name, "object") == 0 ||
			    strcmp(name, "username") == 0)
				snprintf(buf + strlen(buf), n - strlen(buf),
					 "%s ", v->str);
			count += strcmp(name, "object") == 0;
		}
	freeReplyObject(r);
	return count;
}

/* ---- everything that an engine does ---- */

static void
do_all(const char *checkpoint)
{
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	evc_value v = { NULL, 0 }, seven = PACKED("i", 7);
	evc_remote *big, *r;
	pid_t pid;

	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	big = SCHEDULE("big", "[ii]", 100000, 1);
	r = SCHEDULE("look", "[rr]", big, big);
	IS(take_number(r), (int64_t)200000 * 256 + 2);
	evc_remote_free(big);
	IS(take_number(SCHEDULE_WITH(&txn, "step", "[sd]", "n", 0.0)), 1);
	IS(take_number(SCHEDULE("count", "[sd]", "n", 1.0)), 2);
	OK(evc_variable_set(on.cl, "n", &seven));
	OK(evc_variable_get(on.cl, "n", &v));
	evc_value_free(&v);
	OK(evc_variable_compare_set(on.cl, "n", &seven, &seven));
	OK(evc_cluster_save(on.cl, checkpoint));
	OK(evc_cluster_restore(on.cl, checkpoint));
	ck_assert(variable("n") == 7);
	/* An error, a cancel, a death. */
	DO("fail", "[is]", EVC_DATA_LOSS, "no");
	IS(join(), EVC_DATA_LOSS);
	rs_do(rg.server, "SCRIPT FLUSH");
	pid = pid_when_up(0);
	OK(kill(pid, SIGKILL));
	UNTIL(pid_of(0) != 0 && pid_of(0) != pid);
	r = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	rig_node_again(1, 1);
	let_go("g");
	IS(take_number(r), 1);
	evc_value_free(&seven);
	OK(join());
	/* Long enough for whatever comes now and then. */
	t_sleep(1.6);
}

struct files {
	char password[64], checkpoint[64];
};

static struct files
make_files(void)
{
	struct files f = { "/tmp/evc-redis-password-XXXXXX",
			   "/tmp/evc-redis-save-XXXXXX" };
	int fd = mkstemp(f.password);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, PASSWORD "\n", sizeof(PASSWORD)),
			 sizeof(PASSWORD));
	close(fd);
	fd = mkstemp(f.checkpoint);
	ck_assert_int_ge(fd, 0);
	close(fd);
	OK(unlink(f.checkpoint));
	return f;
}

static void
remove_files(const struct files *f)
{
	unlink(f->password);
	unlink(f->checkpoint);
}

/* Two users, and nobody else may do anything. */
static void
begin_with_users(int i, const struct files *f, const char *without)
{
	char rights[1000], options[200];

	rig(i, &(struct rig_opts){ .own = true });
	rights_of("coordinator", rights, sizeof(rights));
	make_user("coordinator", rights, without);
	rights_of("node", rights, sizeof(rights));
	make_user("node", rights, without);
	snprintf(options, sizeof(options), "?user=coordinator&password-file=%s",
		 f->password);
	rig_uri(rg.uri, sizeof(rg.uri), (unsigned)rg.server->port, options);
	snprintf(options, sizeof(options), "?user=node&password-file=%s",
		 f->password);
	rig_uri(rg.node_uri, sizeof(rg.node_uri), (unsigned)rg.server->port,
		options);
	snprintf(rg.direct, sizeof(rg.direct), "%s", rg.node_uri);
	rs_do(rg.server, "ACL LOG RESET");
}

START_TEST(the_least_rights_are_enough)
{
	evc_cluster_config config = { .lease = 1 };
	struct files f = make_files();
	char said[2000];

	begin_with_users(_i, &f, NULL);
	rig_node(1);
	rig_node(1);
	rig_open(&config);
	do_all(f.checkpoint);
	evc_cluster_close(on.cl);
	on.cl = NULL;
	OK(evc_join(on.c, &(evc_join_opts){ .grace = T_LIMIT }, NULL));
	rig_node_ends(0, SIGTERM);
	rig_node_ends(1, SIGTERM);
	ck_assert_msg(refused(said, sizeof(said)) == 0, "refused: %s", said);
	remove_files(&f);
	rs_unlink(rg.server);
}
END_TEST

/* Some of all that it does, until the server has refused something; whatever
   comes of it. */
static void
work_until_refused(double seconds)
{
	double until = t_now() + seconds;
	evc_remote *big, *r;
	evc_status st;
	char said[2000];

	while (t_now() < until && refused(said, sizeof(said)) == 0) {
		big = r = NULL;
		st = evc_schedule_pack(on.cl, "big", NULL, &big, "[ii]", 70000,
				       1);
		if (st == 0)
			st = evc_schedule_pack(on.cl, "look", NULL, &r, "[rr]",
					       big, big);
		evc_remote_free(r);
		evc_remote_free(big);
		if (st == 0)
			st = evc_schedule_pack(on.cl, "count", NULL, NULL,
					       "[sd]", "n", 1.0);
		if (st == 0)
			st = evc_schedule_pack(
				on.cl, "step",
				(&(evc_schedule_opts){
					.flags = EVC_TRANSACTIONAL }),
				NULL, "[sd]", "n", 0.0);
		if (st == 0)
			(void)evc_cluster_join(on.cl, 0.2);
	}
}

/* Another one would like the namespace: it is told who has it. */
static void
want_it_too(const evc_cluster_config *config)
{
	double until = t_now() + T_LIMIT;
	char said[2000], text[4096] = "";
	evc_cluster *cl;

	OK(evc_cluster_open(on.c, rg.uri, config, &cl));
	while (strstr(text, "in use") == NULL &&
	       refused(said, sizeof(said)) == 0 && t_now() < until) {
		t_sleep(0.005);
		own_report(evc_cluster_scope(cl), text, sizeof(text));
	}
	evc_cluster_close(cl);
}

/* Is anything refused, by the server or by those who look first, when one side is
   not allowed this? */
static bool
is_needed(int side, const char *word, char rights[2][1000],
	  const struct files *f)
{
	evc_cluster_config config = { .lease = 1, .worker_wait = 0.5 };
	evc_value empty = PACKED("n");
	char said[2000];
	unsigned up;

	rs_do(rg.server, "FLUSHALL");
	make_user("coordinator", rights[0], side == 0 ? word : NULL);
	make_user("node", rights[1], side == 1 ? word : NULL);
	rs_do(rg.server, "ACL LOG RESET");
	rg.n_nodes = redis.n = 0;
	rig_node(1);
	on.n_workers = 0;
	rig_open(&config);
	work_until_refused(0.5);
	/* What is done more seldom, or at the end. */
	if (refused(said, sizeof(said)) == 0 && numbers().n_up > 0) {
		(void)evc_variable_set(on.cl, "n", &empty);
		if (evc_cluster_save(on.cl, f->checkpoint) == 0)
			(void)!evc_cluster_restore(on.cl, f->checkpoint);
		rs_do(rg.server, "SCRIPT FLUSH");
		want_it_too(&config);
		work_until_refused(1.5);
	}
	/* Who looks first, and does not even begin, asks the server for
	   nothing that it would refuse. */
	up = numbers().n_up;
	if (refused(said, sizeof(said)) == 0 && up > 0) {
		rig_node_again(0, 1);
		work_until_refused(0.5);
		rig_node_ends(0, SIGTERM);
		rig_close();
		evc_value_free(&empty);
		return refused(said, sizeof(said)) > 0;
	}
	/* So that all end soon. */
	make_user("coordinator", rights[0], NULL);
	make_user("node", rights[1], NULL);
	rig_close();
	rig_node_ends(0, SIGTERM);
	evc_value_free(&empty);
	return true;
}

/* One word less, and the server has refused something. */
START_TEST(each_right_is_needed)
{
	char rights[2][1000], words[1000], *word, *save = NULL;
	struct files f = make_files();
	int side, needless = 0;

	begin_with_users(_i, &f, NULL);
	rights_of("coordinator", rights[0], sizeof(rights[0]));
	rights_of("node", rights[1], sizeof(rights[1]));
	for (side = 0; side < 2; side++) {
		memcpy(words, rights[side], sizeof(words));
		for (word = strtok_r(words, " ", &save); word != NULL;
		     word = strtok_r(NULL, " ", &save)) {
			/* When nothing else is heard for long. */
			if (strcmp(word, "+ping") == 0 ||
			    is_needed(side, word, rights, &f))
				continue;
			printf("acl: %s does not need %s\n",
			       side == 0 ? "coordinator" : "node", word);
			fflush(stdout);
			needless++;
		}
	}
	ck_assert_int_eq(needless, 0);
	remove_files(&f);
	rs_unlink(rg.server);
}
END_TEST

/* ---- passwords ---- */

static bool
file_has(const char *path, const char *text)
{
	static char all[1 << 20];
	FILE *f = fopen(path, "r");
	size_t n, k = strlen(text);
	bool has = false;

	if (f == NULL)
		return false;
	n = fread(all, 1, sizeof(all), f);
	fclose(f);
	for (size_t i = 0; i + k <= n && !has; i++)
		has = memcmp(all + i, text, k) == 0;
	return has;
}

static char told[1 << 16];

/* By any thread. */
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;

static void
keep_log(int level, const char *line, const evc_reason *r, void *arg)
{
	size_t n;

	(void)level;
	(void)r;
	(void)arg;
	pthread_mutex_lock(&told_lock);
	n = strlen(told);
	snprintf(told + n, sizeof(told) - n, "%s\n", line);
	pthread_mutex_unlock(&told_lock);
}

static void
no_password_in(const char *text)
{
	ck_assert_msg(strstr(text, PASSWORD) == NULL, "%s", text);
}

/* Of this process, its node and the node's workers. */
static void
no_password_is_seen(bool by_environment, unsigned n_workers)
{
	char path[64], text[8192];
	pid_t pids[10] = { getpid(), node_of(0) };
	unsigned n = 2 + workers_of(0, pids + 2, 8), i;
	evc_reason e;

	ck_assert_uint_ge(n, 2 + n_workers);
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pids[i]);
		ck_assert_msg(!file_has(path, PASSWORD), "%s", path);
		snprintf(path, sizeof(path), "/proc/%d/environ", (int)pids[i]);
		/* The workers have it not, whatever their node has. */
		ck_assert_msg((by_environment && i < 2) ||
				      !file_has(path, PASSWORD),
			      "%s", path);
	}
	own_report(evc_cluster_scope(on.cl), text, sizeof(text));
	no_password_in(text);
	evc_report(on.c, EVC_REPORT_TEXT, text, sizeof(text));
	no_password_in(text);
	pthread_mutex_lock(&told_lock);
	no_password_in(told);
	pthread_mutex_unlock(&told_lock);
	for (i = 0; evc_cluster_error_get(on.cl, i, &e) == 0; i++)
		no_password_in(e.text);
	no_password_in(evc_last_error());
}

/* A server with the password, and a node. */
static void
begin_with_password(int i, const char *options)
{
	rig(i, &(struct rig_opts){ .own = true, .options = options });
	rs_do(rg.server, "CONFIG SET requirepass %s", PASSWORD);
	snprintf(rg.server->password, sizeof(rg.server->password), "%s",
		 PASSWORD);
	rs_unlink(rg.server);
	snprintf(rg.node_uri, sizeof(rg.node_uri), "%s", rg.uri);
	rig_node(1);
}

/* All connections have to log in again. */
static void
change_password(const char *to)
{
	rs_do(rg.server, "CONFIG SET requirepass %s", to);
	snprintf(rg.server->password, sizeof(rg.server->password), "%s", to);
	rs_do(rg.server, "CLIENT KILL TYPE normal SKIPME yes");
}

static void
with_password(int i, const char *options, bool by_environment)
{
	const evc_config log = { .log = keep_log };
	evc_cluster_config config = { .lease = 1,
				      .functions = table,
				      .n_functions = n_table };

	told[0] = '\0';
	begin_with_password(i, options);
	OK(evc_new(NULL, &log, &on.c));
	OK(evc_cluster_open(on.c, rg.uri, &config, &on.cl));
	UNTIL(numbers().n_up == 1);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	no_password_is_seen(by_environment, 1);
	/* It is wrong from now on: said, but not with it. */
	change_password("another");
	DO("add", "[ii]", 1, 2);
	IS(join(), EVC_UNAVAILABLE);
	no_password_is_seen(by_environment, 0);
	rs_unlink(rg.server);
}

START_TEST(a_password_from_a_file)
{
	struct files f = make_files();
	char options[100];

	snprintf(options, sizeof(options), "?password-file=%s", f.password);
	with_password(_i, options, false);
	remove_files(&f);
}
END_TEST

static void
write_password(const struct files *f, const char *password)
{
	FILE *to = fopen(f->password, "w");

	ck_assert_ptr_nonnull(to);
	ck_assert_int_gt(fprintf(to, "%s\n", password), 0);
	OK(fclose(to));
}

/* A cluster with its password in a file, which has run a function. */
static struct files
begin_with_password_file(int i, evc_cluster_config *config)
{
	struct files f = make_files();
	char options[100];

	snprintf(options, sizeof(options), "?password-file=%s", f.password);
	begin_with_password(i, options);
	rig_open(config);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	return f;
}

/* All logins of this program and of its node come after the change.  A file that
   is gone changes nothing. */
START_TEST(a_password_is_changed)
{
	evc_cluster_config config = { .lease = 5 };
	struct files f = begin_with_password_file(_i, &config);

	change_password("another");
	write_password(&f, "another");
	IS(take_number(SCHEDULE("add", "[ii]", 3, 4)), 7);
	ck_assert_uint_eq(numbers().n_lost, 0);
	remove_files(&f);
	change_password(PASSWORD);
	IS(take_number(SCHEDULE("add", "[ii]", 5, 6)), 11);
	OK(join());
	rs_unlink(rg.server);
}
END_TEST

/* The file is no good any more: the reason is said, not the refusal alone. */
START_TEST(a_password_file_that_others_may_read)
{
	evc_cluster_config config = { .lease = 1 };
	struct files f = begin_with_password_file(_i, &config);
	evc_reason why;

	OK(chmod(f.password, 0644));
	change_password("another");
	DO("add", "[ii]", 1, 2);
	IS(join(), EVC_UNAVAILABLE);
	OK(evc_cluster_error_get(on.cl, 0, &why));
	HAS(why.text, "password-file has the mode 644");
	remove_files(&f);
	rs_unlink(rg.server);
}
END_TEST

START_TEST(a_password_from_the_environment)
{
	OK(setenv("EVC_TEST_SECRET", PASSWORD, 1));
	with_password(_i, "?password-env=EVC_TEST_SECRET", true);
	OK(unsetenv("EVC_TEST_SECRET"));
}
END_TEST

START_TEST(a_wrong_password)
{
	evc_cluster_config config = { .lease = 1, .worker_wait = 0.5 };
	evc_reason e;

	OK(setenv("EVC_TEST_SECRET", "guessed-by-somebody", 1));
	rig(_i, &(struct rig_opts){
			.own = true,
			.options = "?password-env=EVC_TEST_SECRET" });
	rs_do(rg.server, "CONFIG SET requirepass %s", PASSWORD);
	rs_unlink(rg.server);
	e = rig_open_in_vain(&config, "WRONGPASS");
	ck_assert_ptr_null(strstr(e.text, "guessed"));
	OK(unsetenv("EVC_TEST_SECRET"));
}
END_TEST

static const evc_function functions[] = { ROW_FUNCTIONS };

__attribute__((constructor)) static void
limit(void)
{
	row_seconds = 400;
}

REDIS_ROWS("redis: rights", functions, ROW(the_least_rights_are_enough),
	   ROW(each_right_is_needed), ROW(a_password_from_a_file),
	   ROW(a_password_is_changed), ROW(a_password_file_that_others_may_read),
	   ROW(a_password_from_the_environment),
	   ROW(a_wrong_password))
