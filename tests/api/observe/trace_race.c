/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline under many writers, in signal handlers, in a fork child: what is
 * in it is whole, and nobody waits for anybody.
 */
#include "../../support/trace_util.h"

#include <signal.h>
#include <sys/wait.h>

#define THREADS 8

static evc_coord *shared;
static atomic_int stop_writing;

static double until;

static void
begin(void)
{
	shared = new_coord(NULL);
	atomic_store(&stop_writing, 0);
	until = t_now() + 3;
}

/* So many rounds, or as many as there is time for where all is slower by
   much. */
static bool
goes_on(unsigned round, unsigned rounds)
{
	return round < rounds && (round < 1 || t_now() < until);
}

/* Each request says the same twice: by its text and by its code. */
static void *
write_much(void *arg)
{
	int code = (int)(size_t)arg, i;
	char text[40];

	for (i = 0; !atomic_load(&stop_writing); i++) {
		snprintf(text, sizeof(text), "%d-%d:%d-%d", code, i, code, i);
		evc_request_stop(shared, code, text);
	}
	return NULL;
}

/* Every request in the text is one that was made.  How many there are. */
static unsigned
all_whole(const char *text)
{
	const char *at = text;
	char said[64];
	int a, b, c, d;
	unsigned n = 0;

	while ((at = strstr(at, "\"cat\":\"request\"")) != NULL) {
		/* sscanf would look for the end of all of it. */
		snprintf(said, sizeof(said), "%.48s", value_of(at, "text"));
		ck_assert_int_eq(sscanf(said, "\"%d-%d:%d-%d\"", &a, &b, &c,
					&d), 4);
		ck_assert_int_eq(a, c);
		ck_assert_int_eq(b, d);
		ck_assert_uint_eq(number_of(at, "code"), (uint64_t)a);
		at++;
		n++;
	}
	return n;
}

START_TEST(many_write_while_one_reads)
{
	/* Small, so that they overtake each other all the time. */
	static const size_t size[] = { 16, 100 };
	pthread_t t[THREADS];
	unsigned i, k, n;
	char *text;

	begin();
	OK(evc_trace_start(shared, size[_i]));
	for (i = 0; i < THREADS; i++)
		OK(pthread_create(&t[i], NULL, write_much,
				  (void *)(size_t)(100 + i)));
	for (k = 0; goes_on(k, 200); k++) {
		text = traced(shared, EVC_TRACE_JSON);
		all_whole(text);
		free(text);
	}
	atomic_store(&stop_writing, 1);
	for (i = 0; i < THREADS; i++)
		OK(pthread_join(t[i], NULL));
	text = traced(shared, EVC_TRACE_JSON);
	n = all_whole(text);
	/* Nobody is in the middle of it any more: what was given up is rare. */
	ck_assert_uint_le(n, (unsigned)size[_i]);
	ck_assert_uint_ge(n, (unsigned)size[_i] / 2);
	free(text);
	OK(evc_free(shared));
}
END_TEST

/* Each other time as a picture, where the tool that draws was built. */
static char *
traced_or_drawn(unsigned k)
{
	return k % 2 == 0 && trace_tool() != NULL ?
		       drawn(shared, __func__) :
		       traced(shared, EVC_TRACE_JSON);
}

static void *
switch_it(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop_writing)) {
		evc_trace_start(shared, 32);
		evc_trace_stop(shared);
		evc_trace_start(shared, 64);
		evc_trace_stop(shared);
	}
	return NULL;
}

START_TEST(it_is_switched_on_and_off_among_writers)
{
	pthread_t t[4], s;
	unsigned i, k;
	char *text;

	begin();
	OK(evc_trace_start(shared, 32));
	OK(evc_trace_stop(shared));
	for (i = 0; i < 4; i++)
		OK(pthread_create(&t[i], NULL, write_much,
				  (void *)(size_t)(100 + i)));
	OK(pthread_create(&s, NULL, switch_it, NULL));
	for (k = 0; goes_on(k, 200); k++) {
		text = traced(shared, EVC_TRACE_JSON);
		all_whole(text);
		free(text);
		text = traced_or_drawn(k);
		free(text);
	}
	atomic_store(&stop_writing, 1);
	OK(pthread_join(s, NULL));
	for (i = 0; i < 4; i++)
		OK(pthread_join(t[i], NULL));
	OK(evc_free(shared));
}
END_TEST

static void *
come_and_go(void *arg)
{
	char name[32];
	evc_id id;

	snprintf(name, sizeof(name), "hold-%d", (int)(size_t)arg);
	while (!atomic_load(&stop_writing)) {
		evc_coord *s = NULL;

		OK(evc_scope_new(shared, name, NULL, &s));
		OK(evc_hold_begin(s, name, NULL, &id));
		OK(evc_scope_ready(s));
		OK(evc_hold_end(s, id));
		OK(evc_free(s));
	}
	return NULL;
}

START_TEST(it_is_written_while_members_and_scopes_come_and_go)
{
	pthread_t t[4];
	unsigned i, k;
	char *text;

	begin();
	OK(evc_trace_start(shared, 512));
	for (i = 0; i < 4; i++)
		OK(pthread_create(&t[i], NULL, come_and_go,
				  (void *)(size_t)i));
	for (k = 0; goes_on(k, 100); k++) {
		text = traced_or_drawn(k);
		/* Each scope that has a member has a name. */
		ck_assert_ptr_null(strstr(text, "/ scope "));
		free(text);
	}
	atomic_store(&stop_writing, 1);
	for (i = 0; i < 4; i++)
		OK(pthread_join(t[i], NULL));
	OK(evc_free(shared));
}
END_TEST

static atomic_int handled;

static void
ask_in_handler(int signo)
{
	(void)signo;
	evc_request_stop(shared, 42, "42-0:42-0");
	atomic_fetch_add(&handled, 1);
}

START_TEST(a_handler_writes_into_the_middle_of_its_thread)
{
	struct sigaction sa = { .sa_handler = ask_in_handler };
	pthread_t t[2];
	int i, k;
	char *text;

	begin();
	OK(sigaction(SIGUSR1, &sa, NULL));
	OK(evc_trace_start(shared, 8));
	for (i = 0; i < 2; i++)
		OK(pthread_create(&t[i], NULL, write_much,
				  (void *)(size_t)(100 + i)));
	for (k = 0; goes_on((unsigned)k, 2000); k++) {
		OK(pthread_kill(t[k % 2], SIGUSR1));
		if (k % 50 == 0) {
			text = traced(shared, EVC_TRACE_JSON);
			all_whole(text);
			free(text);
		}
	}
	UNTIL(atomic_load(&handled) > 0);
	atomic_store(&stop_writing, 1);
	for (i = 0; i < 2; i++)
		OK(pthread_join(t[i], NULL));
	/* It is the thread that it came to. */
	OK(raise(SIGUSR1));
	text = traced(shared, EVC_TRACE_JSON);
	ck_assert_uint_gt(all_whole(text), 0);
	HAS(text, "42-0:42-0");
	free(text);
	OK(evc_free(shared));
}
END_TEST

START_TEST(a_fork_child_has_none)
{
	int status;
	char *text;
	evc_id id;
	pid_t pid;

	begin();
	OK(evc_trace_start(shared, 0));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		CHILD_REFUSED(evc_trace_start(shared, 0));
		CHILD_REFUSED(evc_trace_stop(shared));
		CHILD_REFUSED(evc_trace_write(shared, 1, EVC_TRACE_JSON));
		CHILD_REFUSED(evc_hold_begin(shared, "child", NULL, &id));
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	text = traced(shared, EVC_TRACE_JSON);
	ck_assert(lane_of(text, "child (hold, coord)") == 0);
	free(text);
	OK(evc_free(shared));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("trace_race");
	TCase *tc = tcase_create("trace_race");

	tcase_add_loop_test(tc, many_write_while_one_reads, 0, 2);
	tcase_add_test(tc, it_is_switched_on_and_off_among_writers);
	tcase_add_test(tc,
		       it_is_written_while_members_and_scopes_come_and_go);
	tcase_add_test(tc, a_handler_writes_into_the_middle_of_its_thread);
	tcase_add_test(tc, a_fork_child_has_none);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
