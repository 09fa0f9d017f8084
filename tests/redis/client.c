/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client: two connections to a server that is there, not there yet, gone,
 * frozen, wrong, or another one; what was said is answered once and in order.
 */
#include "../support/proxy_util.h"
#include "../support/redis_client_util.h"
#include "../support/seam.h"
#include "redis/client/client.h"

static bool
say_take(struct world *w, const char *id)
{
	struct redis_args a = { .n = 0 };

	evc__args_key(&a, &w->at, "coord");
	evc__args_key(&a, &w->at, "gen");
	evc__args_key(&a, &w->at, "ver");
	evc__args_key(&a, &w->at, "count");
	evc__args_key(&a, &w->at, "var");
	evc__args_key(&a, &w->at, "pre");
	evc__args_key(&a, &w->at, "new");
	evc__args_text(&a, id);
	evc__args_text(&a, "10000");
	evc__args_text(&a, PROTOCOL_VERSION);
	evc__args_text(&a, "0");
	evc__args_text(&a, "0");
	return evc__redis_script(w->cl, SCRIPT_TAKE, 7, on_answer, w, &a);
}

/* ---- up ---- */

START_TEST(comes_up_and_says)
{
	struct world w = { .cl = NULL };
	char text[64];

	begin_up(&w);
	HAS(w.cl->server, "Redis 7.");
	HAS(w.cl->server, ", run ");
	ck_assert(say(&w, REDIS_SAY, on_answer, "SET", "a", "b", NULL));
	ck_assert(say(&w, REDIS_LISTEN, on_answer, "GET", "nothing", NULL));
	ck_assert(say(&w, REDIS_SAY, NULL, "SET", "c", "d", NULL));
	TURN(&w, w.answers == 2);
	rs_text(&w.s, text, sizeof(text), "GET c");
	ck_assert_str_eq(text, "d");
	rs_text(&w.s, text, sizeof(text), "CLIENT LIST");
	ck_assert_int_eq(w.downs, 0);
	end(&w);
}
END_TEST

START_TEST(comes_up_by_a_socket)
{
	struct world w = { .cl = NULL };
	char uri[128];

	rs_start(&w.s);
	world_open(&w);
	begin(&w, rs_unix_uri(&w.s, "ns", "?db=3", uri, sizeof(uri)));
	TURN(&w, w.ups == 1);
	ck_assert(say(&w, REDIS_SAY, on_answer, "SET", "a", "b", NULL));
	TURN(&w, w.answers == 1);
	ck_assert_int_eq(rs_number(&w.s, "EXISTS a"), 0);
	rs_do(&w.s, "SELECT 3");
	ck_assert_int_eq(rs_number(&w.s, "EXISTS a"), 1);
	end(&w);
}
END_TEST

START_TEST(a_name_is_looked_up)
{
	struct world w = { .cl = NULL };
	char uri[128];

	rs_start(&w.s);
	world_open(&w);
	snprintf(uri, sizeof(uri), "redis://localhost:%d/ns", w.s.port);
	begin(&w, uri);
	/* localhost may be two numbers, and the server has one of them. */
	TURN(&w, w.ups == 1);
	end(&w);
}
END_TEST

START_TEST(a_name_nobody_knows)
{
	struct world w = { .cl = NULL };

	world_open(&w);
	begin(&w, "redis://no-such-host.invalid:1/ns");
	TURN(&w, w.downs == 1);
	HAS(w.why, "no-such-host.invalid");
	end(&w);
}
END_TEST

/* It is freed while the thread looks up a name. */
START_TEST(freed_while_a_name_is_looked_up)
{
	struct world w = { .cl = NULL };
	int i;

	world_open(&w);
	for (i = 0; i < 20; i++) {
		begin(&w, i == 0 ? "redis://localhost:1/ns" : NULL);
		if (i % 2 == 0)
			ev_run(w.ev, EVRUN_ONCE);
		if (i % 4 == 0)
			t_sleep(0.002);
		evc__redis_client_free(w.cl);
	}
	w.cl = NULL;
	end(&w);
}
END_TEST

START_TEST(freed_at_any_step)
{
	struct world w = { .cl = NULL };
	char uri[128];
	int i, k;

	rs_start(&w.s);
	world_open(&w);
	rs_uri(&w.s, "ns", "", uri, sizeof(uri));
	for (i = 0; i < 24; i++) {
		begin(&w, i == 0 ? uri : NULL);
		for (k = 0; k < i && w.ups == 0; k++)
			ev_run(w.ev, EVRUN_ONCE);
		w.answers = 0;
		if (w.ups > 0)
			ck_assert(say(&w, REDIS_SAY, on_answer, "PING", NULL));
		evc__redis_client_free(w.cl);
		ck_assert_int_eq(w.answers, w.ups);
	}
	w.cl = NULL;
	end(&w);
}
END_TEST

/* ---- down ---- */

START_TEST(waits_for_a_server)
{
	struct world w = { .cl = NULL };
	char uri[128];

	w.s.port = rs_free_port();
	world_open(&w);
	begin(&w, rs_uri(&w.s, "ns", "", uri, sizeof(uri)));
	TURN(&w, w.downs == 1);
	HAS(w.why, "refused");
	turn_for(&w, 0.5);
	/* As often as why changes. */
	ck_assert_int_eq(w.downs, 1);
	rs_start(&w.s);
	TURN(&w, w.ups == 1);
	ck_assert(!w.same);
	end(&w);
}
END_TEST

static void
note_a(const redisReply *r, void *arg)
{
	struct world *w = arg;
	struct redis_args a = { .n = 0 };

	ck_assert_ptr_null(r);
	strcat(w->order, "a");
	evc__args_text(&a, "PING");
	ck_assert(!evc__redis_send(w->cl, REDIS_SAY, NULL, NULL, &a));
	evc__redis_client_reset(w->cl, "again");
}

static void
note_b(const redisReply *r, void *arg)
{
	struct world *w = arg;

	ck_assert_ptr_null(r);
	ck_assert_int_eq(w->downs, 0);
	strcat(w->order, "b");
}

START_TEST(the_server_is_killed)
{
	struct world w = { .cl = NULL };

	begin_up(&w);
	rs_freeze(&w.s);
	ck_assert(say(&w, REDIS_LISTEN, note_b, "XREAD", "BLOCK", "0",
		      "STREAMS", "s", "$", NULL));
	ck_assert(say(&w, REDIS_SAY, note_a, "GET", "a", NULL));
	ck_assert(say(&w, REDIS_SAY, note_a, "GET", "b", NULL));
	turn_for(&w, 0.02);
	rs_kill(&w.s);
	TURN(&w, w.downs == 1);
	ck_assert_str_eq(w.order, "aab");
	rs_start(&w.s);
	TURN(&w, w.ups == 2);
	/* It has another run. */
	ck_assert(!w.same);
	end(&w);
}
END_TEST

START_TEST(the_server_drops_one_connection)
{
	struct world w = { .cl = NULL };

	begin_up(&w);
	ck_assert(say(&w, REDIS_LISTEN, on_answer, "XREAD", "BLOCK", "0",
		      "STREAMS", "s", "$", NULL));
	turn_for(&w, 0.02);
	rs_do(&w.s, "CLIENT KILL TYPE normal SKIPME yes");
	TURN(&w, w.ups == 2);
	ck_assert_int_eq(w.nones, 1);
	ck_assert_int_eq(w.downs, 1);
	ck_assert(w.same);
	end(&w);
}
END_TEST

/* A server on a loaded machine answers within that. */
#define PATIENCE 1.0

START_TEST(a_frozen_server_is_noticed)
{
	struct world w = { .patience = PATIENCE };
	double begun;

	begin_up(&w);
	/* One that waits in XREAD is no sign of anything. */
	ck_assert(say(&w, REDIS_LISTEN, on_answer, "XREAD", "BLOCK", "0",
		      "STREAMS", "s", "$", NULL));
	turn_for(&w, 2 * PATIENCE);
	ck_assert_int_eq(w.downs, 0);
	rs_freeze(&w.s);
	begun = t_now();
	TURN(&w, w.downs > 0);
	ck_assert(t_now() - begun > PATIENCE / 2);
	HAS(w.why, "no answer");
	ck_assert_int_eq(w.nones, 1);
	rs_thaw(&w.s);
	TURN(&w, w.ups == 2);
	ck_assert(w.same);
	end(&w);
}
END_TEST

/* A connection that waits too long for what should not take long. */
START_TEST(a_silent_connection_is_noticed)
{
	struct world w = { .patience = PATIENCE };

	begin_up(&w);
	ck_assert(say(&w, REDIS_LISTEN, on_answer, "BLPOP", "l", "0", NULL));
	TURN(&w, w.downs > 0);
	HAS(w.why, "no answer");
	TURN(&w, w.ups == 2);
	end(&w);
}
END_TEST

START_TEST(a_client_that_slept_loses_nothing)
{
	struct world w = { .patience = PATIENCE };

	begin_up(&w);
	ck_assert(say(&w, REDIS_SAY, on_answer, "GET", "a", NULL));
	t_sleep(3 * PATIENCE);
	TURN(&w, w.answers == 1);
	turn_for(&w, 2 * PATIENCE);
	ck_assert_int_eq(w.downs, 0);
	end(&w);
}
END_TEST

/* Bytes alone are no answer. */
START_TEST(an_answer_that_does_not_get_whole)
{
	struct world w = { .patience = PATIENCE };
	struct redis_server via;
	char uri[128], text[4000];
	struct proxy proxy;

	rs_start(&w.s);
	proxy = proxy_start((unsigned)w.s.port);
	via = w.s;
	via.port = (int)proxy.port;
	world_open(&w);
	begin(&w, rs_uri(&via, "ns", "", uri, sizeof(uri)));
	TURN(&w, w.ups == 1);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	proxy_set(&proxy, PROXY_DRIP);
	ck_assert(say(&w, REDIS_SAY, on_answer, "ECHO", text, NULL));
	TURN(&w, w.downs == 1);
	HAS(w.why, "no answer");
	proxy_set(&proxy, PROXY_PASS);
	TURN(&w, w.ups == 2);
	proxy_end(&proxy);
	end(&w);
}
END_TEST

/* This command and the next one have no answer: each later answer would be taken
   for one of an earlier question. */
START_TEST(answers_to_other_questions)
{
	struct world w = { .patience = PATIENCE };

	begin_up(&w);
	ck_assert(say(&w, REDIS_SAY, on_answer, "CLIENT", "REPLY", "SKIP",
		      NULL));
	ck_assert(say(&w, REDIS_SAY, on_answer, "GET", "a", NULL));
	TURN(&w, w.downs == 1);
	HAS(w.why, "do not fit");
	ck_assert_int_eq(w.nones, 2);
	TURN(&w, w.ups == 2);
	end(&w);
}
END_TEST

static void
reset_it(const redisReply *r, void *arg)
{
	struct world *w = arg;

	ck_assert_ptr_nonnull(r);
	w->answers++;
	evc__redis_client_reset(w->cl, "it shall");
	ck_assert(!evc__redis_client_is_up(w->cl));
}

START_TEST(reset_within_a_reply)
{
	struct world w = { .cl = NULL };
	int i;

	begin_up(&w);
	ck_assert(say(&w, REDIS_SAY, reset_it, "GET", "a", NULL));
	for (i = 0; i < 100; i++)
		ck_assert(say(&w, REDIS_SAY, on_answer, "GET", "a", NULL));
	TURN(&w, w.downs == 1);
	HAS(w.why, "it shall");
	ck_assert_int_eq(w.answers, 101);
	TURN(&w, w.ups == 2);
	ck_assert(w.same);
	end(&w);
}
END_TEST

/* What it refuses for that is no answer. */
START_TEST(a_server_that_becomes_a_replica)
{
	struct world w = { .cl = NULL };

	begin_up(&w);
	rs_do(&w.s, "REPLICAOF 127.0.0.1 1");
	ck_assert(say(&w, REDIS_SAY, on_answer, "SET", "a", "b", NULL));
	TURN(&w, w.downs > 0);
	HAS(w.why, "is a replica");
	ck_assert_int_eq(w.nones, 1);
	ck_assert_int_eq(w.errors, 0);
	turn_for(&w, 0.3);
	ck_assert_int_eq(w.ups, 1);
	rs_do(&w.s, "REPLICAOF NO ONE");
	TURN(&w, w.ups == 2);
	/* The same run of the same server, and it may have lost something. */
	ck_assert(!w.same);
	HAS(evc__redis_client_anew(w.cl), "was a replica");
	rs_do(&w.s, "CLIENT KILL TYPE normal SKIPME yes");
	TURN(&w, w.ups == 3);
	ck_assert(w.same);
	end(&w);
}
END_TEST

/* What was written to a socket whose other end is gone raises a signal. */
START_TEST(no_sigpipe)
{
	struct world w = { .cl = NULL };
	char uri[128];
	int i;

	signal(SIGPIPE, SIG_DFL);
	rs_start(&w.s);
	world_open(&w);
	begin(&w, rs_unix_uri(&w.s, "ns", "", uri, sizeof(uri)));
	for (i = 1; i <= 3; i++) {
		TURN(&w, w.ups == i);
		rs_kill(&w.s);
		ck_assert(say(&w, REDIS_SAY, on_answer, "GET", "a", NULL));
		ck_assert(say(&w, REDIS_LISTEN, on_answer, "GET", "a", NULL));
		TURN(&w, w.downs == i);
		rs_start(&w.s);
	}
	end(&w);
}
END_TEST

static void
send_large(struct world *w)
{
	static char large[1 << 20];
	struct redis_args a = { .n = 0 };
	int i;

	memset(large, 'x', sizeof(large));
	for (i = 0; i < 32; i++) {
		evc__args_text(&a, "SET");
		evc__args_fmt(&a, "large%d", i);
		evc__args_add(&a, large, sizeof(large));
		ck_assert(evc__redis_send(w->cl, REDIS_SAY, on_answer, w, &a));
	}
}

START_TEST(much_at_once)
{
	struct world w = { .cl = NULL };

	begin_up(&w);
	send_large(&w);
	ck_assert_uint_gt(evc__redis_client_backlog(w.cl, REDIS_SAY), 32 << 20);
	TURN(&w, w.answers == 32);
	ck_assert_int_eq(w.errors + w.nones, 0);
	ck_assert_uint_eq(evc__redis_client_backlog(w.cl, REDIS_SAY), 0);
	ck_assert(say(&w, REDIS_SAY, on_answer, "GET", "large3", NULL));
	TURN(&w, w.answers == 33);
	/* And it goes in the middle. */
	send_large(&w);
	turn_for(&w, 0.003);
	rs_kill(&w.s);
	TURN(&w, w.downs == 1);
	ck_assert_int_eq(w.answers, 65);
	end(&w);
}
END_TEST

/* ---- scripts ---- */

START_TEST(scripts_that_were_forgotten)
{
	struct world w = { .cl = NULL };
	int i;

	begin_up(&w);
	ck_assert(say_take(&w, "x"));
	TURN(&w, w.answers == 1);
	ck_assert_str_eq(w.last, "ok");
	rs_do(&w.s, "SCRIPT FLUSH");
	for (i = 0; i < 3; i++)
		ck_assert(say_take(&w, "y"));
	ck_assert(say(&w, REDIS_SAY, NULL, "PING", NULL));
	TURN(&w, w.answers == 4);
	ck_assert_str_eq(w.last, "taken");
	ck_assert_int_eq(rs_number(&w.s, "GET {ns}:gen"), 1);
	rs_do(&w.s, "SCRIPT FLUSH");
	ck_assert(say_take(&w, "x"));
	evc__redis_client_reset(w.cl, "now");
	TURN(&w, w.ups == 2);
	ck_assert_int_eq(w.answers, 5);
	ck_assert_int_eq(w.nones, 1);
	end(&w);
}
END_TEST

/* ---- who may ---- */

#define LEAST "~{ns}:* +get +set +info +ping +client|setname +evalsha +eval"

START_TEST(a_user_without_script_load)
{
	struct world w = { .cl = NULL };
	char uri[256], path[120];
	FILE *f;

	rs_option(&w.s, "user default off");
	rs_option(&w.s, "user joe on >secret " LEAST
			" +pttl +pexpire +del +exists +mget +xadd +hget +hset"
			" +hsetnx +hdel +hlen +hincrby +type +unlink");
	snprintf(w.s.password, sizeof(w.s.password), "x");
	world_open(&w);
	w.s.port = rs_free_port();
	/* Its own connections cannot log in: it is started by hand. */
	w.s.password[0] = '\0';
	rs_start(&w.s);
	snprintf(path, sizeof(path), "%s/password", w.s.dir);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fprintf(f, "secret\n");
	OK(fchmod(fileno(f), 0600));
	fclose(f);
	snprintf(uri, sizeof(uri),
		 "redis://127.0.0.1:%d/ns?user=joe&password-file=%s", w.s.port,
		 path);
	begin(&w, uri);
	TURN(&w, w.ups == 1);
	ck_assert(say_take(&w, "x"));
	TURN(&w, w.answers == 1);
	ck_assert_str_eq(w.last, "ok");
	ck_assert(say_take(&w, "y"));
	TURN(&w, w.answers == 2);
	ck_assert_str_eq(w.last, "taken");
	end(&w);
}
END_TEST

static void
refused(const char *option, const char *more, const char *why)
{
	struct world w = { .cl = NULL };
	char uri[160];

	if (option != NULL)
		rs_option(&w.s, "%s", option);
	rs_start(&w.s);
	world_open(&w);
	begin(&w, rs_uri(&w.s, "ns", more, uri, sizeof(uri)));
	TURN(&w, w.downs == 1);
	ck_assert_msg(strstr(w.why, why) != NULL, "\"%s\" has no \"%s\"", w.why,
		      why);
	ck_assert_ptr_null(strstr(w.why, "sesame"));
	turn_for(&w, 0.3);
	ck_assert_int_eq(w.downs, 1);
	ck_assert_int_eq(w.ups, 0);
	end(&w);
}

START_TEST(servers_that_cannot_be_used)
{
	setenv("EVC_TEST_PASSWORD", "sesame", 1);
	refused("maxmemory-policy allkeys-lru", "",
		"the server needs maxmemory-policy noeviction, not "
		"allkeys-lru");
	refused("replicaof 127.0.0.1 1", "", "the server is a replica");
	refused("user joe on >other ~* +@all",
		"?user=joe&password-env=EVC_TEST_PASSWORD", "WRONGPASS");
	refused("user joe on >other ~* +@all",
		"?user=joe&password-env=EVC_TEST_PASSWORD",
		"(see user=, password-file= and password-env= in"
		" evcoord-redis(7))");
	refused("user default on nopass ~* +@all -info", "", "NOPERM");
	refused("user default on nopass ~* +@all -info", "",
		"(see Rights in evcoord-redis(7))");
	refused("user default on nopass ~other* +@all", "", "NOPERM");
	refused("user default off", "", "NOAUTH");
	refused("user default on nopass ~* +@all -hincrby", "",
		"NOPERM the user needs +hincrby ~{ns}:var");
	refused("user default on nopass %R~{ns}:* +@all", "", "NOPERM");
	refused("user default on nopass ~* +@all -eval", "", "NOPERM");
	refused(NULL, "?password-env=EVC_TEST_PASSWORD",
		"without any password configured");
	refused(NULL, "?db=99", "DB index is out of range");
}
END_TEST

/* One allocation fails, each in its turn: it comes up all the same, and what was
   said is answered or refused. */
START_TEST(no_memory_now_and_then)
{
	struct world w = { .patience = 1 };
	int k, failed = 0, h, said;
	char uri[128];

	rs_start(&w.s);
	world_open(&w);
	snprintf(uri, sizeof(uri), "redis://localhost:%d/ns", w.s.port);
	address_of(uri, &w.at);
	for (k = 1; k < 160; k++) {
		rs_do(&w.s, "SCRIPT FLUSH");
		h = seam_fail("alloc", NULL, k, ENOMEM);
		w.answers = said = 0;
		if (!begin_or_not(&w)) {
			seam_reset();
			failed++;
			continue;
		}
		TURN(&w, w.ups > 0);
		rs_do(&w.s, "SCRIPT FLUSH");
		said += say_take(&w, "x");
		said += say_take(&w, "x");
		said += say(&w, REDIS_SAY, on_answer, "PING", NULL);
		TURN(&w, w.answers == said);
		evc__redis_client_free(w.cl);
		failed += seam_arrivals(h) >= k;
		seam_reset();
	}
	w.cl = NULL;
	/* All that there are, and more. */
	ck_assert_int_gt(failed, 50);
	ck_assert_int_lt(failed, 159);
	end(&w);
}
END_TEST

/* Somebody else listens there. */
START_TEST(no_redis_at_all)
{
	struct world w = { .patience = 0.4 };
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), other;
	char uri[128];

	w.s.port = rs_free_port();
	a.sin_port = htons((uint16_t)w.s.port);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	OK(bind(fd, (struct sockaddr *)&a, sizeof(a)));
	OK(listen(fd, 10));
	world_open(&w);
	begin(&w, rs_uri(&w.s, "ns", "", uri, sizeof(uri)));
	TURN(&w, w.downs == 1);
	HAS(w.why, "no answer");
	while ((other = accept4(fd, NULL, NULL, SOCK_NONBLOCK)) >= 0 &&
	       w.downs < 2) {
		if (write(other, "HTTP/1.1 400 Bad Request\r\n\r\n", 28) < 0)
			break;
		turn_for(&w, 0.5);
	}
	TURN(&w, w.downs >= 2);
	HAS(w.why, "rotocol");
	HAS(w.why, "(is this a Redis server?)");
	end(&w);
	close(fd);
}
END_TEST

/* A server that says this to whoever comes, and that a while later (NULL:
   nothing), and hangs up. */
static pid_t
pretend(int port, const char *text, const char *later)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, other;
	char from[4096];
	pid_t pid;

	a.sin_port = htons((uint16_t)port);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	OK(bind(fd, (struct sockaddr *)&a, sizeof(a)));
	OK(listen(fd, 10));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	while (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		other = accept(fd, NULL, NULL);
		if (read(other, from, sizeof(from)) <= 0 ||
		    write(other, text, strlen(text)) < 0)
			_exit(1);
		if (later != NULL) {
			usleep(300000);
			if (write(other, later, strlen(later)) < 0)
				_exit(1);
		}
		shutdown(other, SHUT_WR);
		/* What comes and is not read would reset it. */
		while (read(other, from, sizeof(from)) > 0)
			;
		close(other);
	}
	close(fd);
	return pid;
}

static void
refused_by(const char *text, const char *more, const char *why)
{
	struct world w = { .patience = 2 };
	char uri[128];
	pid_t pid;

	w.s.port = rs_free_port();
	pid = pretend(w.s.port, text, NULL);
	world_open(&w);
	begin(&w, rs_uri(&w.s, "ns", more, uri, sizeof(uri)));
	TURN(&w, w.downs == 1);
	ck_assert_msg(strstr(w.why, why) != NULL, "\"%s\" has no \"%s\"", w.why,
		      why);
	end(&w);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* As if to all that one of the connections is asked; then more, together with
   that or while nothing is asked, which hiredis takes for its own mistake. */
START_TEST(says_more_than_it_was_asked)
{
	static const char fit[] = "redis_version:7.0.15\r\nrole:master\r\n"
				  "maxmemory_policy:noeviction\r\n"
				  "run_id:one\r\n";
	struct world w;
	char uri[128], text[2048];
	pid_t pid;
	int n, i, more;

	for (more = 0; more < 2; more++) {
		w = (struct world){ .patience = 30 };
		w.s.port = rs_free_port();
		n = snprintf(text, sizeof(text), "+OK\r\n$%zu\r\n%s\r\n",
			     sizeof(fit) - 1, fit);
		for (i = 0; i < 1 + SCRIPTS + more; i++)
			n += snprintf(text + n, sizeof(text) - (size_t)n,
				      "+OK\r\n");
		pid = pretend(w.s.port, text, more ? NULL : "+OK\r\n");
		world_open(&w);
		begin(&w, rs_uri(&w.s, "ns", "", uri, sizeof(uri)));
		TURN(&w, w.downs == 1);
		HAS(w.why, "the server has sent unexpected data");
		end(&w);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}
END_TEST

#define OK_4  "+OK\r\n+OK\r\n+OK\r\n+OK\r\n"
#define OK_32 OK_4 OK_4 OK_4 OK_4 OK_4 OK_4 OK_4 OK_4

START_TEST(what_is_no_server_of_ours)
{
	refused_by("HTTP/1.1 400 Bad Request\r\n\r\n", "",
		   "(is this a Redis server?)");
	refused_by("HTTP/1.1 400 Bad Request\r\n\r\n", "?master=m",
		   "(is this a Redis server?)");
	refused_by("", "",
		   "(is this a Redis server? if it is a port for TLS:"
		   " rediss://)");
	/* An alert of TLS. */
	refused_by("\x15\x03\x01\x02\x02\x46", "",
		   "(this seems to be a port for TLS: rediss://)");
	/* Others would wait for all these answers. */
	refused_by("*1999999999\r\n+OK\r\n+OK\r\n", "", "memory");
	refused_by("+OK\r\n$19\r\nredis_version:6.2.7\r\n", "",
		   "Redis 7 or later is needed, not 6.2.7");
	refused_by("+OK\r\n$40\r\nredis_version:7.0.15\nredis_mode:sentinel"
		   "\r\n",
		   "", "this is a Sentinel: the address needs master=");
	refused_by("-DENIED Redis is running in protected mode\r\n", "",
		   "DENIED Redis is running in protected mode");
	refused_by("-ERR max number of clients reached\r\n", "",
		   "ERR max number of clients reached");
	/* More than anybody has asked for, which hiredis takes for its own
	   mistake. */
	refused_by(OK_32, "", "this is no Redis: INFO is no text");
	refused(NULL, "?master=m",
		"this is no Sentinel, and the address has master=");
}
END_TEST

RS_MAIN("redis/client", comes_up_and_says, comes_up_by_a_socket,
	a_name_is_looked_up, a_name_nobody_knows,
	freed_while_a_name_is_looked_up, freed_at_any_step, waits_for_a_server,
	the_server_is_killed, the_server_drops_one_connection,
	a_frozen_server_is_noticed, a_silent_connection_is_noticed,
	a_client_that_slept_loses_nothing, an_answer_that_does_not_get_whole,
	answers_to_other_questions, reset_within_a_reply,
	a_server_that_becomes_a_replica, no_sigpipe, much_at_once, scripts_that_were_forgotten, a_user_without_script_load,
	servers_that_cannot_be_used, no_memory_now_and_then, no_redis_at_all,
	says_more_than_it_was_asked, what_is_no_server_of_ours)
