/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the lives of a node end, and that nothing runs then: told to leave,
 * stopped, fenced, frozen, killed, cut off, sent garbage; with a coordinator
 * that is played by hand.
 */
#include "support/redis_hand_coord.h"

#include "support/proxy_util.h"
#include "support/redis_node_functions.h"

#define LONG_MS 60000

/* A function runs for so long: by whom. */
static pid_t
busy_for(struct hand *h, unsigned slot, uint64_t n, int ms)
{
	pid_t pid = (pid_t)h->pids[slot];
	char key[300];

	/* Its begin is not told; what is counted is. */
	hand_run(h, slot, n, "begins", ms);
	snprintf(key, sizeof(key), "HEXISTS {" HAND_NS "}:var begun%d",
		 (int)pid);
	while (rs_number(&h->s, key) != 1)
		;
	ck_assert(!process_is_over(pid));
	return pid;
}

static pid_t
busy(struct hand *h, unsigned slot, uint64_t n)
{
	return busy_for(h, slot, n, LONG_MS);
}

/* ---- asked to ---- */

START_TEST(leaves)
{
	struct hand h;
	char key[300];
	unsigned i;

	hand_start(&h, 1000, 2);
	hand_await_node(&h, 2);
	hand_put(&h, 0, 1, "naps", 0, 200);
	for (i = 2; i < 6; i++)
		hand_put(&h, 0, i, "twice", 0, 1);
	OK(evc__frame_put_bare(&h.out, FRAME_LEAVE));
	hand_feed(&h);
	/* What has not begun comes back, or has ended: all is told. */
	for (i = 1; i < 6; i++)
		hand_result(&h, i);
	hand_await(&h, FRAME_GONE);
	hand_await(&h, FRAME_GONE);
	hand_await(&h, FRAME_LEFT);
	snprintf(key, sizeof(key), "EXISTS {" HAND_NS "}:lease:%s", h.node);
	ck_assert_int_eq(rs_number(&h.s, key), 0);
	snprintf(key, sizeof(key), "HEXISTS {" HAND_NS "}:1:runs %s", h.node);
	ck_assert_int_eq(rs_number(&h.s, key), 0);
	/* Not again to the same one. */
	t_sleep(0.3);
	hand_read(&h);
	ck_assert_uint_eq(h.inc, 1);
	hand_find(&h, FRAME_NODE);
	hand_take(&h, 1000);
	hand_await_node(&h, 2);
	ck_assert_uint_eq(h.inc, 2);
	hand_run(&h, 0, 10, "twice", 4);
	ck_assert_int_eq(hand_number(&h, 10), 8);
	hand_end(&h);
}
END_TEST

START_TEST(ends_with_its_cluster)
{
	struct hand h = { .gen = 0 };
	int status;

	rs_start(&h.s);
	hand_take(&h, 1000);
	hand_node(&h, "?once=1", 1);
	hand_await_node(&h, 1);
	hand_say(&h, FRAME_LEAVE);
	hand_await(&h, FRAME_LEFT);
	status = node_wait(h.pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	hand_free(&h);
}
END_TEST

/* The coordinator was killed, and has told nobody. */
START_TEST(ends_with_its_cluster_that_died)
{
	struct hand h = { .gen = 0 };
	int status, another;

	for (another = 0; another < 2; another++) {
		rs_start(&h.s);
		hand_take(&h, 300);
		hand_node(&h, "?once=1", 1);
		hand_await_node(&h, 1);
		rs_do(&h.s, "DEL {" HAND_NS "}:coord");
		if (another) {
			rs_do(&h.s, "SET {" HAND_NS "}:gen 7");
			rs_do(&h.s, "SET {" HAND_NS "}:coord somebody-else");
		}
		status = node_wait(h.pid);
		ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 0);
		hand_free(&h);
		h = (struct hand){ .gen = 0 };
	}
}
END_TEST

START_TEST(is_stopped)
{
	struct hand h;
	unsigned i, back = 0;

	hand_start(&h, 1000, 2);
	hand_await_node(&h, 2);
	busy_for(&h, 0, 1, 1500);
	for (i = 2; i < 10; i++)
		hand_put(&h, 0, i, "twice", 0, 1);
	hand_feed(&h);
	/* Longer than the lease: it is renewed until the end. */
	OK(kill(h.pid, SIGTERM));
	for (i = 2; i < 10; i++)
		back += hand_result(&h, i).r.took < 0;
	ck_assert_uint_gt(back, 0);
	/* What comes now comes back at once. */
	hand_run(&h, 0, 20, "twice", 1);
	ck_assert(hand_result(&h, 20).r.took < 0);
	ck_assert_int_eq(hand_result(&h, 1).r.code, 0);
	hand_await(&h, FRAME_LEFT);
	node_ended(h.pid);
	hand_free(&h);
}
END_TEST

START_TEST(waits_without_a_coordinator)
{
	struct hand h = { .gen = 0 };

	rs_start(&h.s);
	hand_node(&h, "", 1);
	t_sleep(0.2);
	rs_do(&h.s, "SET {" HAND_NS "}:ver 0");
	t_sleep(0.2);
	rs_do(&h.s, "SET {" HAND_NS "}:gen what");
	t_sleep(0.2);
	hand_take(&h, 1000);
	hand_await_node(&h, 1);
	hand_end(&h);
}
END_TEST

/* ---- fenced ---- */

/* Its next life, after so long at most. */
static void
lives_again(struct hand *h, pid_t was, uint64_t inc)
{
	UNTIL(process_is_over(was));
	hand_await_node(h, 1);
	ck_assert_uint_eq(h->inc, inc);
	hand_run(h, 0, 100 + inc, "twice", 4);
	ck_assert_int_eq(hand_number(h, 100 + inc), 8);
}

/* Nobody will read what it has told, nor what it tells. */
START_TEST(its_events_are_deleted)
{
	struct hand h;
	pid_t was;

	hand_start(&h, 5000, 1);
	hand_await_node(&h, 1);
	was = busy(&h, 0, 1);
	rs_do(&h.s, "DEL {" HAND_NS "}:1:ev");
	/* It waits behind that one, and is given back. */
	hand_put(&h, 0, 2, "twice", 2, 0);
	hand_feed(&h);
	lives_again(&h, was, 2);
	ck_assert_int_gt(rs_number(&h.s, "PTTL {" HAND_NS "}:1:ev"), 0);
	hand_end(&h);
}
END_TEST

START_TEST(is_fenced)
{
	struct hand h;
	char command[300];
	pid_t was;

	hand_start(&h, 1000, 1);
	hand_await_node(&h, 1);
	was = busy(&h, 0, 1);
	snprintf(command, sizeof(command), "DEL {" HAND_NS "}:lease:%s",
		 h.node);
	rs_do(&h.s, command);
	lives_again(&h, was, 2);
	/* Another generation. */
	was = busy(&h, 0, 200);
	hand_take(&h, 1000);
	lives_again(&h, was, 3);
	hand_end(&h);
}
END_TEST

START_TEST(loses_its_coordinator)
{
	struct hand h;
	double since;
	pid_t was;

	hand_start(&h, 600, 1);
	hand_await_node(&h, 1);
	was = busy(&h, 0, 1);
	rs_do(&h.s, "DEL {" HAND_NS "}:coord");
	since = t_now();
	UNTIL(process_is_over(was));
	/* Not before its lease was over. */
	ck_assert(t_now() - since > 0.3);
	rs_do(&h.s, "SET {" HAND_NS "}:coord hand");
	lives_again(&h, was, 2);
	hand_end(&h);
}
END_TEST

/* ---- frozen, killed ---- */

START_TEST(is_frozen)
{
	struct hand h;
	double since;
	pid_t was;

	hand_start(&h, 600, 1);
	hand_await_node(&h, 1);
	was = busy(&h, 0, 1);
	OK(kill(h.pid, SIGSTOP));
	since = t_now();
	/* A zombie: its parent cannot wait for it. */
	UNTIL(process_is_over(was));
	ck_assert(t_now() - since < 10);
	ck_assert_int_eq(process_state(h.pid), 'T');
	/* Its lease is over by then, too, or a moment later. */
	t_sleep(0.3);
	OK(kill(h.pid, SIGCONT));
	lives_again(&h, was, 2);
	hand_end(&h);
}
END_TEST

START_TEST(is_killed)
{
	struct hand h;
	pid_t pids[2];

	hand_start(&h, 5000, 2);
	hand_await_node(&h, 2);
	pids[0] = busy(&h, 0, 1);
	pids[1] = (pid_t)h.pids[1];
	node_kill(h.pid);
	UNTIL(process_is_over(pids[0]) && process_is_over(pids[1]));
	hand_free(&h);
}
END_TEST

START_TEST(loses_a_worker)
{
	struct frame_note note;
	struct heard *x;
	struct hand h;
	pid_t was;

	hand_start(&h, 5000, 2);
	hand_await_node(&h, 2);
	was = busy(&h, 1, 1);
	OK(kill(was, SIGKILL));
	x = hand_await(&h, FRAME_GONE);
	ck_assert_uint_eq(x->slot, 1);
	ck_assert_uint_eq(x->life, 1);
	OK(evc__frame_get_note(&x->f, &note));
	ck_assert_uint_eq(note.number, GONE_RAN);
	HAS(note.text, "SIGKILL");
	/* As the coordinator calls it. */
	HAS(note.text, "worker 21 (pid ");
	x = hand_await(&h, FRAME_UP);
	ck_assert_uint_eq(x->slot, 1);
	ck_assert_uint_eq(x->life, 2);
	OK(evc__frame_get_note(&x->f, &note));
	ck_assert_int_ne((pid_t)note.number, was);
	hand_run(&h, 1, 2, "twice", 4);
	ck_assert_int_eq(hand_number(&h, 2), 8);
	hand_end(&h);
}
END_TEST

/* ---- cut off ---- */

/* Each result once, whatever has happened to the connection; and no other
   life.  What had to wait for too long comes back and has added nothing. */
START_TEST(reconnects)
{
	enum { ROUNDS = 10, EACH = 40 };
	unsigned i, n = 0, adds = 0, counts = 0;
	struct hand h;

	hand_start(&h, 5000, 2);
	hand_await_node(&h, 2);
	while (n < ROUNDS * EACH) {
		for (i = 0; i < EACH; i++, n++)
			hand_put(&h, n % 2, n + 1,
				 n % 8 == 0             ? "adds"
				 : n % EACH == EACH - 1 ? "count"
							: "twice",
				 n % 8 == 0 ? EVC_TRANSACTIONAL : 0, 1);
		hand_feed(&h);
		rs_do(&h.s, "CLIENT KILL TYPE normal SKIPME yes");
	}
	for (i = 0; i < n; i++) {
		bool ran = hand_result(&h, i + 1).r.took >= 0;

		adds += ran && i % 8 == 0;
		counts += ran && i % EACH == EACH - 1;
	}
	ck_assert_int_eq(rs_number(&h.s, "HGET {" HAND_NS "}:count finished"),
			 adds);
	ck_assert_uint_eq(h.inc, 1);
	hand_run(&h, 0, 2000, "count", 0);
	ck_assert_int_eq(hand_number(&h, 2000), adds + counts);
	hand_end(&h);
}
END_TEST

START_TEST(is_partitioned)
{
	struct hand h = { .gen = 0 };
	struct proxy p;
	char uri[100];
	pid_t was;

	rs_start(&h.s);
	p = proxy_start((unsigned)h.s.port);
	hand_take(&h, 600);
	snprintf(uri, sizeof(uri), "redis://127.0.0.1:%u/" HAND_NS, p.port);
	h.pid = node_start(uri, 1);
	hand_await_node(&h, 1);
	was = busy(&h, 0, 1);
	proxy_set(&p, PROXY_HOLD);
	UNTIL(process_is_over(was));
	proxy_set(&p, PROXY_PASS);
	lives_again(&h, was, 2);
	/* Closed and not to be had for less than the lease: nothing happens. */
	was = (pid_t)h.pids[0];
	proxy_set(&p, PROXY_REFUSE);
	t_sleep(0.1);
	proxy_set(&p, PROXY_PASS);
	hand_run(&h, 0, 200, "twice", 5);
	ck_assert_int_eq(hand_number(&h, 200), 10);
	ck_assert_uint_eq(h.inc, 2);
	node_end(h.pid);
	proxy_end(&p);
	hand_free(&h);
}
END_TEST

/* A result is refused, and the connection lost before the answer to the one
   behind it: both are told again. */
START_TEST(is_refused_and_cut_off)
{
	struct hand h = { .gen = 0 };
	struct proxy p;
	char uri[100];

	rs_start(&h.s);
	p = proxy_start((unsigned)h.s.port);
	hand_take(&h, 20000);
	snprintf(uri, sizeof(uri), "redis://127.0.0.1:%u/" HAND_NS, p.port);
	h.pid = node_start(uri, 2);
	hand_await_node(&h, 2);
	busy_for(&h, 0, 1, 700);
	busy_for(&h, 1, 2, 1500);
	proxy_set(&p, PROXY_DEAF);
	rs_do(&h.s, "CONFIG SET maxmemory 1");
	UNTIL(rs_errors(&h.s, "OOM") > 0);
	rs_do(&h.s, "CONFIG SET maxmemory 0");
	/* The second one waits there, without an answer. */
	rs_do(&h.s, "CLIENT PAUSE 60000 WRITE");
	t_sleep(1.5);
	proxy_set(&p, PROXY_PASS);
	t_sleep(0.2);
	proxy_cut(&p);
	rs_do(&h.s, "CLIENT UNPAUSE");
	ck_assert_int_eq(hand_result(&h, 1).r.code, 0);
	ck_assert_int_eq(hand_result(&h, 2).r.code, 0);
	ck_assert_uint_eq(h.inc, 1);
	node_end(h.pid);
	proxy_end(&p);
	hand_free(&h);
}
END_TEST

/* Told to end, when the server has no memory for what there is to say. */
START_TEST(is_stopped_and_refused)
{
	struct hand h;

	hand_start(&h, 1000, 1);
	hand_await_node(&h, 1);
	busy_for(&h, 0, 1, 500);
	rs_do(&h.s, "CONFIG SET maxmemory 1");
	node_end(h.pid);
	rs_do(&h.s, "CONFIG SET maxmemory 0");
	hand_free(&h);
}
END_TEST

START_TEST(server_restarts_without_data)
{
	struct hand h;
	pid_t was;

	hand_start(&h, 2000, 1);
	hand_await_node(&h, 1);
	was = busy(&h, 0, 1);
	rs_kill(&h.s);
	rs_start(&h.s);
	UNTIL(process_is_over(was));
	hand_take(&h, 2000);
	lives_again(&h, was, 2);
	hand_end(&h);
}
END_TEST

START_TEST(server_restarts_with_data)
{
	struct hand h = { .s.append = true };

	rs_start(&h.s);
	hand_take(&h, 10000);
	hand_node(&h, "", 1);
	hand_await_node(&h, 1);
	hand_run(&h, 0, 1, "naps", 500);
	rs_kill(&h.s);
	rs_start(&h.s);
	ck_assert_int_eq(hand_result(&h, 1).r.code, 0);
	ck_assert_uint_eq(h.inc, 1);
	hand_end(&h);
}
END_TEST

/* ---- garbage ---- */

static void
feed_bytes(struct hand *h, const char *id, const void *bytes, size_t n)
{
	rs_do(&h->s, "XADD {" HAND_NS "}:%u:to:%s.%llu %s d %b", h->gen,
	      h->node, (unsigned long long)h->inc, id, bytes, n);
}

START_TEST(hears_garbage)
{
	struct hand h;
	uint64_t inc = 1;
	unsigned i;

	hand_start(&h, 1000, 1);
	hand_await_node(&h, 1);
	for (i = 0; i < 10; i++) {
		switch (i) {
		case 0:
			feed_bytes(&h, "2-1", "garbage", 7);
			break;
		case 1: /* cut */
			feed_bytes(&h, "2-1", "\xe5\xc1\x01", 3);
			break;
		case 2:
			feed_bytes(&h, "2-2", "", 0);
			break;
		case 3: /* no such worker */
			hand_say_number(&h, FRAME_SLOT, (uint64_t)9 << 32 | 1);
			break;
		case 4: /* nobody's */
			hand_say(&h, FRAME_KILL);
			break;
		case 5: /* not to a node */
			hand_say(&h, FRAME_LEFT);
			break;
		case 6: /* no function */
			hand_slot(&h, 0);
			OK(evc__frame_put_number(&h.out, FRAME_TASK, 1));
			hand_feed(&h);
			break;
		case 7: /* it has one */
			hand_say_number(&h, FRAME_RANK, 5);
			break;
		case 8: /* of no such worker */
			hand_say_number(&h, FRAME_RANK, (uint64_t)1 << 32 | 5);
			break;
		default:
			rs_do(&h.s, "XADD {" HAND_NS "}:%u:to:%s.%llu 2-1 x y",
			      h.gen, h.node, (unsigned long long)h.inc);
		}
		hand_await_node(&h, 1);
		ck_assert_uint_eq(h.inc, ++inc);
	}
	hand_run(&h, 0, 1, "twice", 1);
	ck_assert_int_eq(hand_number(&h, 1), 2);
	hand_end(&h);
}
END_TEST

/* ---- what workers are not told ---- */

START_TEST(hides_the_password)
{
	struct hand h = { .s.password = "dont-tell" };
	char path[64], text[65536];
	size_t n, i;
	FILE *f;

	rs_start(&h.s);
	hand_take(&h, 1000);
	setenv("EVC_TEST_SECRET", h.s.password, 1);
	hand_node(&h, "?password-env=EVC_TEST_SECRET", 1);
	unsetenv("EVC_TEST_SECRET");
	hand_await_node(&h, 1);
	snprintf(path, sizeof(path), "/proc/%ld/environ", h.pids[0]);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	for (i = 0; i < n; i++)
		text[i] = text[i] == '\0' ? ' ' : text[i];
	text[n] = '\0';
	HAS(text, "EVCOORD_WORKER=");
	ck_assert_ptr_null(strstr(text, h.s.password));
	hand_end(&h);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { leaves,
				       ends_with_its_cluster,
				       ends_with_its_cluster_that_died,
				       is_stopped,
				       waits_without_a_coordinator,
				       its_events_are_deleted,
				       is_fenced,
				       loses_its_coordinator,
				       is_frozen,
				       is_killed,
				       loses_a_worker,
				       reconnects,
				       is_partitioned,
				       is_refused_and_cut_off,
				       is_stopped_and_refused,
				       server_restarts_without_data,
				       server_restarts_with_data,
				       hears_garbage,
				       hides_the_password };

	if (evc_worker_is())
		return evc_worker_main(node_functions, N_NODE_FUNCTIONS,
				       NULL) != 0;
	if (node_is())
		return node_main(node_functions, N_NODE_FUNCTIONS, NULL);
	if (rs_is_missing("node_end"))
		return 77;
	return api_run("node_end", NULL, NULL, tests,
		       sizeof(tests) / sizeof(tests[0]));
}
