/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the service manager is told: each message, when, and that nothing is lost
 * but detail when nobody listens.
 */
#include "../../support/systemd_util.h"

#include <ev.h>
#include <signal.h>
#include <sys/wait.h>

#define STOPPING "STOPPING=1\nSTATUS=stopping\n"

static evc_id
hold(evc_coord *c, const char *name)
{
	evc_id id = 0;

	OK(evc_hold_begin(c, name, NULL, &id));
	return id;
}

START_TEST(a_service_from_its_start_to_its_end)
{
	struct manager m;
	evc_coord *c;
	evc_id udp, tcp;
	int threads = t_count_threads(), fds;

	manager_begin(&m, _i);
	fds = t_count_fds();
	c = manager_told(&m, NULL, NULL, NULL);
	udp = hold(c, "udp-0");
	tcp = hold(c, "tcp-1");
	ck_assert_int_eq(manager_hear(&m), 0);
	OK(evc_systemd_ready(c, "two of two are up"));
	OK(evc_systemd_ready(c, NULL));
	OK(evc_systemd_notify(c, "RELOADING=1\nMAINPID=123"));
	ck_assert_int_eq(manager_hear(&m), 3);
	ck_assert_str_eq(m.said[0], "READY=1\nSTATUS=two of two are up\n");
	ck_assert_str_eq(m.said[1], "READY=1\n");
	ck_assert_str_eq(m.said[2], "RELOADING=1\nMAINPID=123");

	OK(evc_request_stop(c, 0, "enough"));
	/* It was there before the request returned. */
	ck_assert_int_ge(manager_hear(&m), 4);
	ck_assert_str_eq(m.said[3], STOPPING);
	UNTIL(manager_heard(&m, "STATUS=stopping: 2 members left: udp-0, "
				"tcp-1; requested by "));
	HAS(m.all, ": enough\n");
	OK(evc_hold_end(c, udp));
	UNTIL(manager_heard(&m, "STATUS=stopping: 1 member left: tcp-1; "));
	OK(evc_hold_end(c, tcp));
	UNTIL(manager_heard(&m, "STATUS=stopped\n"));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(manager_count(&m, "STOPPING=1"), 1);
	ck_assert_int_eq(manager_count(&m, "STATUS=stopped"), 1);
	ck_assert_int_eq(manager_count(&m, "STATUS=stopping: 2"), 1);
	ck_assert_int_eq(t_settle_fds(fds), fds);
	ck_assert_int_eq(t_settle_threads(threads), threads);
	manager_end(&m);
}
END_TEST

START_TEST(the_socket_of_the_environment_is_taken)
{
	struct manager m;
	evc_coord *c = new_coord(NULL);

	manager_begin(&m, _i);
	unsetenv("WATCHDOG_USEC");
	OK(setenv("NOTIFY_SOCKET", m.name, 1));
	OK(evc_systemd_start(c, NULL));
	OK(evc_systemd_ready(c, NULL));
	ck_assert(manager_heard(&m, "READY=1\n"));
	OK(evc_systemd_stop(c));
	unsetenv("NOTIFY_SOCKET");
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

START_TEST(without_a_manager_nothing_is_told_and_nothing_is_wrong)
{
	evc_config strict = { .flags = EVC_STRICT_SETUP };
	evc_coord *c = new_coord_with(NULL, &strict);
	int i;

	for (i = 0; i < 2; i++) {
		if (i == 0)
			unsetenv("NOTIFY_SOCKET");
		else
			OK(setenv("NOTIFY_SOCKET", "", 1));
		REFUSED(EVC_NOT_FOUND, evc_systemd_start(c, NULL));
		REFUSED(EVC_NOT_FOUND, evc_systemd_ready(c, "up"));
		REFUSED(EVC_NOT_FOUND, evc_systemd_notify(c, "X=1"));
		REFUSED(EVC_NOT_FOUND, evc_systemd_stop(c));
		ck_assert(!evc_should_stop(c));
	}
	unsetenv("NOTIFY_SOCKET");
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(what_is_wrong_is_refused)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct manager m;
	evc_coord *c = new_coord(NULL), *other = new_coord(loop), *s = NULL;
	evc_systemd_opts o, wrong[] = {
		{ .status_every = -1 },	  { .status_every = NAN },
		{ .status_every = INFINITY }, { .extend = NAN },
		{ .extend = INFINITY },	  { .watchdog = NAN },
		{ .watchdog = INFINITY }, { .reactor = evc_home(other) },
		{ .reserved_ = { 1 } },
	};
	char name[128], text[5000];
	size_t i, n;
	static const char *const names[] = { "", "@", "/", "relative/path",
					     "vsock:2:1234" };

	manager_begin(&m, true);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		o = wrong[i];
		o.socket = m.name;
		REFUSED(EVC_INVALID_ARGUMENT, evc_systemd_start(c, &o));
	}
	o = (evc_systemd_opts){ .watchdog = -1 };
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		o.socket = names[i];
		REFUSED(EVC_INVALID_ARGUMENT, evc_systemd_start(c, &o));
	}
	/* There is room for 108 bytes, and not for one more. */
	for (i = 0; i < 4; i++) {
		n = i < 2 ? 109 : 108;
		memset(name, 'n', n);
		name[n] = '\0';
		name[0] = i % 2 ? '@' : '/';
		o.socket = name;
		if (i < 2) {
			REFUSED(EVC_INVALID_ARGUMENT,
				evc_systemd_start(c, &o));
			continue;
		}
		OK(evc_systemd_start(c, &o));
		REFUSED(EVC_UNAVAILABLE, evc_systemd_ready(c, NULL));
		OK(evc_systemd_stop(c));
	}
	REFUSED(EVC_INVALID_ARGUMENT, evc_systemd_start(NULL, NULL));
	o.socket = m.name;
	OK(evc_scope_new(c, "scope", NULL, &s));
	REFUSED(EVC_FAILED_PRECONDITION, evc_systemd_start(s, &o));
	OK(evc_free(s));

	OK(evc_systemd_start(c, &o));
	REFUSED(EVC_ALREADY_EXISTS, evc_systemd_start(c, &o));
	REFUSED(EVC_ALREADY_EXISTS, evc_systemd_start(c, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_systemd_ready(c, "a\nSTOPPING=1"));
	REFUSED(EVC_INVALID_ARGUMENT, evc_systemd_notify(c, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_systemd_notify(c, ""));
	memset(text, 't', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	REFUSED(EVC_INVALID_ARGUMENT, evc_systemd_ready(c, text));
	REFUSED(EVC_INVALID_ARGUMENT, evc_systemd_notify(c, text));
	ck_assert_int_eq(manager_hear(&m), 0);
	OK(evc_systemd_stop(c));
	REFUSED(EVC_NOT_FOUND, evc_systemd_stop(c));
	/* And once more. */
	OK(evc_systemd_start(c, &o));
	OK(evc_systemd_ready(c, NULL));
	ck_assert_int_eq(manager_hear(&m), 1);
	OK(evc_free(c));
	OK(evc_free(other));
	ev_loop_destroy(loop);
	manager_end(&m);
}
END_TEST

START_TEST(after_evc_systemd_stop_nothing_is_told)
{
	struct manager m;
	evc_coord *c;
	evc_id id;

	manager_begin(&m, _i);
	c = manager_told(&m, NULL, NULL, NULL);
	id = hold(c, "hold");
	OK(evc_systemd_stop(c));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(manager_hear(&m), 0);
	manager_end(&m);
}
END_TEST

START_TEST(it_may_be_stopped_in_the_middle_of_a_stop)
{
	struct manager m;
	evc_coord *c;
	evc_id id;
	int n;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, NULL);
	id = hold(c, "hold");
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(manager_heard(&m, "STATUS=stopping: 1 member left: hold; "));
	OK(evc_systemd_stop(c));
	n = manager_hear(&m);
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(manager_hear(&m), n);
	manager_end(&m);
}
END_TEST

START_TEST(a_signal_handler_tells_it_too)
{
	struct manager m;
	evc_coord *c;
	evc_id id;

	manager_begin(&m, _i);
	c = manager_told(&m, NULL, NULL, NULL);
	id = hold(c, "hold");
	OK(evc_signals_start(c, NULL));
	raise(SIGTERM);
	ck_assert_int_ge(manager_hear(&m), 1);
	ck_assert_str_eq(m.said[0], STOPPING);
	UNTIL(manager_heard(&m, "STATUS=stopping: 1 member left: hold; "));
	HAS(m.all, "SIGTERM from pid ");
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

/* Many at the same time. */
struct asker {
	pthread_t thread;
	evc_coord *c;
	struct t_gate *go;
};

static void *
ask(void *arg)
{
	struct asker *a = arg;

	gate_await(a->go, 1);
	evc_request_stop(a->c, 0, "one of many");
	return NULL;
}

START_TEST(of_many_who_ask_one_tells)
{
	struct t_gate go = GATE_INIT;
	struct asker a[8];
	struct manager m;
	evc_coord *c;
	evc_id id;
	int i;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, NULL);
	id = hold(c, "hold");
	for (i = 0; i < 8; i++) {
		a[i].c = c;
		a[i].go = &go;
		OK(pthread_create(&a[i].thread, NULL, ask, &a[i]));
	}
	gate_step(&go);
	for (i = 0; i < 8; i++)
		OK(pthread_join(a[i].thread, NULL));
	UNTIL(manager_heard(&m, "STATUS=stopping: 1 member left: hold; "));
	ck_assert_str_eq(m.said[0], STOPPING);
	ck_assert_int_eq(manager_count(&m, "STOPPING=1"), 1);
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(manager_count(&m, "STOPPING=1"), 1);
	manager_end(&m);
}
END_TEST

START_TEST(a_stop_before_the_start_is_told_at_the_start)
{
	struct manager m;
	evc_coord *c = new_coord(NULL);
	evc_systemd_opts o = { .watchdog = -1 };
	evc_id id = hold(c, "hold");

	manager_begin(&m, _i);
	o.socket = m.name;
	OK(evc_request_stop(c, EVC_INTERNAL, NULL));
	OK(evc_systemd_start(c, &o));
	ck_assert_int_ge(manager_hear(&m), 1);
	ck_assert_str_eq(m.said[0], STOPPING);
	/* Without a text it is the code that says why. */
	UNTIL(manager_heard(&m, "STATUS=stopping: 1 member left: hold; "));
	HAS(m.all, ": INTERNAL\n");
	OK(evc_hold_end(c, id));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_INTERNAL);
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

/* Fails when the time is not the manager's own clock. */
START_TEST(a_reload_has_the_time_that_the_manager_expects)
{
	evc_config cfg = { .clock = scripted_clock };
	unsigned long long us, before;
	struct timespec now;
	struct manager m;
	char value[64];
	evc_coord *c;

	manager_begin(&m, _i);
	c = manager_told(&m, NULL, &cfg, NULL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	before = (unsigned long long)now.tv_sec * 1000000u +
		 (unsigned long long)now.tv_nsec / 1000u;
	OK(evc_systemd_reloading(c, "reading the zones"));
	clock_gettime(CLOCK_MONOTONIC, &now);
	ck_assert_int_eq(manager_hear(&m), 1);
	ck_assert_int_eq(strncmp(m.said[0], "RELOADING=1\nMONOTONIC_USEC=",
				 strlen("RELOADING=1\nMONOTONIC_USEC=")),
			 0);
	HAS(m.said[0], "\nSTATUS=reading the zones\n");
	us = strtoull(manager_last(&m, "MONOTONIC_USEC=", value,
				   sizeof(value)),
		      NULL, 10);
	ck_assert_uint_ge(us, before);
	ck_assert_uint_le(us, (unsigned long long)now.tv_sec * 1000000u +
				      (unsigned long long)now.tv_nsec / 1000u);
	OK(evc_systemd_reloading(c, NULL));
	ck_assert_int_eq(manager_count(&m, "STATUS="), 1);
	ck_assert_int_eq(manager_count(&m, "RELOADING=1"), 2);
	OK(evc_systemd_ready(c, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_systemd_reloading(c, "a\nb"));
	HAS(evc_last_error(), "evc_systemd_reloading");
	OK(evc_systemd_stop(c));
	REFUSED(EVC_NOT_FOUND, evc_systemd_reloading(c, NULL));
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

START_TEST(a_cleared_stop_is_taken_back_and_the_next_one_told)
{
	struct manager m;
	evc_coord *c;
	evc_id id;
	int i;

	manager_begin(&m, _i);
	c = manager_told(&m, NULL, NULL, NULL);
	for (i = 1; i <= 3; i++) {
		id = hold(c, "hold");
		OK(evc_request_stop(c, 0, NULL));
		ck_assert_int_eq(manager_count(&m, "STOPPING=1"), i);
		/* The last time it is over before anybody could look. */
		if (i < 3)
			UNTIL(manager_count(&m, "STATUS=stopping: 1") == i);
		OK(evc_hold_end(c, id));
		OK(evc_join(c, NULL, NULL));
		OK(evc_clear_stop(c));
		UNTIL(manager_count(&m, "READY=1\nSTATUS=running\n") == i);
	}
	ck_assert_int_eq(manager_count(&m, "STOPPING=1"), 3);
	OK(evc_free(c));
	ck_assert_int_eq(manager_count(&m, "READY=1"), 3);
	manager_end(&m);
}
END_TEST

/* The loop does not turn: nobody turns the drain into a stop. */
START_TEST(a_drain_is_told_and_taken_back)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct manager m;
	evc_coord *c;
	evc_id id;
	int i;

	manager_begin(&m, _i);
	c = manager_told(&m, loop, NULL, NULL);
	for (i = 1; i <= 2; i++) {
		id = hold(c, "hold");
		OK(evc_request_drain(c, 1000, "slowly"));
		ck_assert_int_eq(manager_count(&m, "STATUS=draining\n"), i);
		OK(evc_hold_end(c, id));
		OK(evc_clear_stop(c));
		UNTIL(manager_count(&m, "STATUS=running\n") == i);
	}
	ck_assert_int_eq(manager_hear(&m), 4);
	id = hold(c, "hold");
	OK(evc_request_drain(c, 0, NULL));
	ck_assert(manager_heard(&m, STOPPING));
	OK(evc_hold_end(c, id));
	OK(evc_run(c, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(manager_count(&m, "READY=1"), 0);
	ev_loop_destroy(loop);
	manager_end(&m);
}
END_TEST

START_TEST(two_coordinators_have_one_each)
{
	struct manager m[2];
	evc_coord *c[2];
	int i;

	for (i = 0; i < 2; i++) {
		manager_begin(&m[i], i);
		c[i] = manager_told(&m[i], NULL, NULL, NULL);
		OK(evc_systemd_ready(c[i], i ? "second" : "first"));
	}
	OK(evc_request_stop(c[1], 0, NULL));
	ck_assert_int_eq(manager_hear(&m[0]), 1);
	ck_assert_str_eq(m[0].said[0], "READY=1\nSTATUS=first\n");
	ck_assert(manager_heard(&m[1], "READY=1\nSTATUS=second\n"));
	ck_assert(manager_heard(&m[1], STOPPING));
	for (i = 0; i < 2; i++) {
		OK(evc_request_stop(c[i], 0, NULL));
		OK(evc_join(c[i], NULL, NULL));
		OK(evc_free(c[i]));
		ck_assert_int_eq(manager_count(&m[i], "STOPPING=1"), 1);
		manager_end(&m[i]);
	}
}
END_TEST

START_TEST(a_fork_child_is_refused_and_tells_nothing)
{
	struct manager m;
	evc_coord *volatile c;
	int status = 0;
	pid_t pid;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, NULL);
	pid = fork();
	if (pid == 0) {
		CHILD_REFUSED(evc_systemd_start(c, NULL));
		CHILD_REFUSED(evc_systemd_ready(c, NULL));
		CHILD_REFUSED(evc_systemd_notify(c, "READY=1"));
		CHILD_REFUSED(evc_systemd_stop(c));
		CHILD_REFUSED(evc_request_stop(c, 0, NULL));
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(manager_hear(&m), 0);
	OK(evc_systemd_ready(c, NULL));
	ck_assert_int_eq(manager_hear(&m), 1);
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

START_TEST(a_status_is_one_clean_line_and_not_too_long)
{
	static const char *const names[] = { "line\none", "\x01\xff\xc3",
					     "\xc3\xa4-\xe2\x82\xac" };
	char name[48], text[600];
	struct manager m;
	evc_coord *c;
	evc_id id[40];
	int i;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, NULL);
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "a-rather-long-name-%d", i);
		id[i] = hold(c, i < 3 ? names[i] : name);
	}
	memset(text, 'w', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	text[3] = '\n';
	OK(evc_request_stop(c, 0, text));
	UNTIL(manager_heard(&m, "STATUS=stopping: 40 members left: line\\none, "
				"\\x01\\xff\\xc3, \xc3\xa4-\xe2\x82\xac, "
				"a-rather-long"));
	ck_assert_uint_lt(strlen(manager_last(&m, "STATUS=", text,
					      sizeof(text))),
			  512);
	HAS(text, " more");
	HAS(text, "www\\nwww");
	for (i = 0; i < 40; i++)
		OK(evc_hold_end(c, id[i]));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

START_TEST(evc_free_says_the_last_word)
{
	evc_systemd_opts o = { .status_every = 1000 };
	struct manager m;
	evc_coord *c;
	evc_id id;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, &o);
	id = hold(c, "hold");
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(manager_heard(&m, "STATUS=stopping: 1 member left: hold; "));
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	ck_assert(!manager_heard(&m, "STATUS=stopped"));
	OK(evc_free(c));
	ck_assert_int_eq(manager_hear(&m), 3);
	ck_assert_str_eq(m.said[2], "STATUS=stopped\n");
	manager_end(&m);
}
END_TEST

#define TWICE(test) tcase_add_loop_test(tcase, test, 0, 2)
#define ONCE(test)  tcase_add_test(tcase, test)

int
main(void)
{
	Suite *suite = suite_create("systemd");
	TCase *tcase = tcase_create("systemd");

	/* By a path, and by an abstract name. */
	TWICE(a_service_from_its_start_to_its_end);
	TWICE(the_socket_of_the_environment_is_taken);
	TWICE(after_evc_systemd_stop_nothing_is_told);
	TWICE(a_signal_handler_tells_it_too);
	TWICE(a_stop_before_the_start_is_told_at_the_start);
	TWICE(a_reload_has_the_time_that_the_manager_expects);
	TWICE(a_cleared_stop_is_taken_back_and_the_next_one_told);
	TWICE(a_drain_is_told_and_taken_back);
	ONCE(without_a_manager_nothing_is_told_and_nothing_is_wrong);
	ONCE(what_is_wrong_is_refused);
	ONCE(it_may_be_stopped_in_the_middle_of_a_stop);
	ONCE(of_many_who_ask_one_tells);
	ONCE(two_coordinators_have_one_each);
	ONCE(a_fork_child_is_refused_and_tells_nothing);
	ONCE(a_status_is_one_clean_line_and_not_too_long);
	ONCE(evc_free_says_the_last_word);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
