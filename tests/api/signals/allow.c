/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program says which signal may stop it; a refused signal does nothing but
 * a line in the log.  A signal that is ignored stays ignored.
 */
#include "../../support/api_util.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define REFUSAL "was refused"

/* The lines of the log. */
struct lines {
	pthread_mutex_t lock;
	char text[16 * 1024];
	int n;              /* lines about refused signals */
	atomic_int in;      /* such lines begun */
	atomic_int hold;    /* the next one waits for its end */
	evc_coord *give_up; /* the hook takes the signals from it */
	evc_status given_up;
};

static void
take_line(int level, const char *line, const evc_reason *r, void *arg)
{
	struct lines *l = arg;

	(void)r;
	if (strstr(line, REFUSAL) == NULL &&
	    strstr(line, "were refused") == NULL)
		return;
	ck_assert_int_eq(level, EVC_LOG_WARNING);
	atomic_fetch_add(&l->in, 1);
	while (atomic_load(&l->hold))
		t_sleep(0.001);
	if (l->give_up != NULL) {
		l->given_up = evc_signals_stop(l->give_up);
		l->give_up = NULL;
	}
	pthread_mutex_lock(&l->lock);
	ck_assert_uint_lt(strlen(l->text) + strlen(line) + 2, sizeof(l->text));
	strcat(l->text, line);
	strcat(l->text, "\n");
	l->n++;
	pthread_mutex_unlock(&l->lock);
}

static int
n_lines(struct lines *l)
{
	int n;

	pthread_mutex_lock(&l->lock);
	n = l->n;
	pthread_mutex_unlock(&l->lock);
	return n;
}

static bool
has_line(struct lines *l, const char *part)
{
	bool has;

	pthread_mutex_lock(&l->lock);
	has = strstr(l->text, part) != NULL;
	pthread_mutex_unlock(&l->lock);
	return has;
}

static evc_coord *
logging(struct lines *l)
{
	evc_config cfg = { .name = "c", .log = take_line, .arg = l };

	pthread_mutex_init(&l->lock, NULL);
	return new_coord_with(NULL, &cfg);
}

/* How often the program was asked, and what it says. */
struct gate {
	atomic_int asked, open;
	int last;
};

static bool
ask(int signo, void *arg)
{
	struct gate *g = arg;

	atomic_fetch_add(&g->asked, 1);
	g->last = signo;
	return atomic_load(&g->open);
}

START_TEST(a_refused_signal_does_nothing_but_a_line)
{
	struct gate g = { 0 };
	evc_signals_opts o = { .allow = ask, .arg = &g };
	struct lines l = { 0 };
	evc_coord *c = logging(&l);
	char line[128];
	evc_verdict v;

	OK(evc_signals_start(c, &o));
	raise(SIGINT);
	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(g.last, SIGINT);
	snprintf(line, sizeof(line),
		 "c: SIGINT from pid %d, uid %d was refused; refused so far: 1",
		 (int)getpid(), (int)getuid());
	UNTIL(has_line(&l, line));
	raise(SIGTERM);
	UNTIL(has_line(&l, "c: SIGTERM from pid"));
	ck_assert(!evc_should_stop(c));
	REFUSED(EVC_NOT_FOUND, evc_reason_get(c, 0, NULL));

	atomic_store(&g.open, 1);
	raise(SIGTERM);
	ck_assert(evc_should_stop(c));
	OK(evc_join(c, NULL, &v));
	ck_assert_int_eq(v.stop.signo, SIGTERM);
	ck_assert_uint_eq(v.stop.kind, EVC_BY_SIGNAL);
	OK(evc_free(c));
	ck_assert_int_eq(n_lines(&l), 2);
	ck_assert_int_eq(atomic_load(&g.asked), 3);
}
END_TEST

START_TEST(after_the_first_accepted_one_the_program_is_not_asked)
{
	struct gate g = { .open = 1 };
	evc_signals_opts o = { .allow = ask, .arg = &g,
			       .short_grace = EVC_NO_GRACE };
	evc_coord *c = new_coord(NULL);
	evc_reason r;
	evc_id hold = 0;

	OK(evc_signals_start(c, &o));
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	raise(SIGTERM);
	atomic_store(&g.open, 0);
	raise(SIGINT);
	ck_assert_int_eq(atomic_load(&g.asked), 1);
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DEADLINE_EXCEEDED);
	OK(evc_reason_get(c, 1, &r));
	ck_assert_int_eq(r.signo, SIGINT);
	OK(evc_hold_end(c, hold));
	OK(evc_clear_stop(c));

	/* In the next round it is asked again. */
	raise(SIGTERM);
	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(atomic_load(&g.asked), 2);
	/* So it is when the stop has another reason. */
	OK(evc_request_stop(c, 0, NULL));
	raise(SIGTERM);
	ck_assert_int_eq(atomic_load(&g.asked), 3);
	OK(evc_join(c, NULL, NULL));
	OK(evc_reason_get(c, 0, &r));
	ck_assert_int_eq(r.signo, 0);
	REFUSED(EVC_NOT_FOUND, evc_reason_get(c, 1, &r));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_hundred_refused_while_the_log_hangs_are_all_counted)
{
	struct gate g = { 0 };
	evc_signals_opts o = { .allow = ask, .arg = &g };
	struct lines l = { .hold = 1 };
	evc_coord *c = logging(&l);
	const char *at;
	char line[64];
	int i;

	OK(evc_signals_start(c, &o));
	raise(SIGTERM);
	UNTIL(atomic_load(&l.in) == 1);
	for (i = 0; i < 100; i++)
		raise(SIGTERM);
	atomic_store(&l.hold, 0);
	UNTIL(has_line(&l, "c: 84 more signals were refused; refused so far: "
			   "101"));
	ck_assert_int_eq(n_lines(&l), 1 + 16 + 1);
	/* Each has its own number, in order. */
	for (i = 1, at = l.text; i <= 17; i++) {
		snprintf(line, sizeof(line), "refused so far: %d\n", i);
		at = strstr(at, line);
		ck_assert_ptr_nonnull(at);
	}
	ck_assert(!evc_should_stop(c));
	OK(evc_free(c));
}
END_TEST

START_TEST(refused_for_ever_it_stops_and_ends_all_the_same)
{
	struct gate g = { 0 };
	evc_signals_opts o = { .allow = ask, .arg = &g,
			       .flags = EVC_SIGNALS_THIRD_EXITS };
	struct lines l = { 0 };
	evc_coord *c = logging(&l);
	struct sigaction now;
	evc_verdict v;
	int i;

	/* libcheck has handlers of its own. */
	signal(SIGTERM, SIG_DFL);
	OK(evc_signals_start(c, &o));
	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	for (i = 0; i < 5; i++)
		raise(SIGTERM);
	OK(evc_request_stop(c, 0, "the program's own"));
	raise(SIGTERM);
	OK(evc_join(c, NULL, &v));
	ck_assert_int_eq(v.stop.signo, 0);
	ck_assert_str_eq(v.stop.text, "the program's own");
	ck_assert_int_eq(evc_finish(c, 0), 0);
	ck_assert_int_eq(n_lines(&l), 6);
	sigaction(SIGTERM, NULL, &now);
	ck_assert(now.sa_handler == SIG_DFL);
}
END_TEST

START_TEST(without_a_log_the_program_is_asked_too)
{
	struct gate g = { 0 };
	evc_signals_opts o = { .allow = ask, .arg = &g };
	evc_coord *c = new_coord(NULL);
	int threads = t_count_threads(), i;

	OK(evc_signals_start(c, &o));
	ck_assert_int_eq(t_count_threads(), threads);
	for (i = 0; i < 20; i++)
		raise(SIGTERM);
	ck_assert(!evc_should_stop(c));
	OK(evc_signals_stop(c));
	OK(evc_free(c));
}
END_TEST

START_TEST(the_log_hook_may_give_the_signals_back)
{
	struct gate g = { 0 };
	evc_signals_opts o = { .allow = ask, .arg = &g };
	struct lines l = { 0 };
	evc_coord *c = logging(&l);

	l.give_up = c;
	l.given_up = -1;
	OK(evc_signals_start(c, &o));
	raise(SIGTERM);
	UNTIL(n_lines(&l) == 1);
	OK(l.given_up);
	/* And again, with the job that c has already. */
	OK(evc_signals_start(c, &o));
	raise(SIGTERM);
	UNTIL(n_lines(&l) == 2);
	OK(evc_free(c));
}
END_TEST

START_TEST(each_coordinator_logs_what_it_has_refused)
{
	struct gate g = { 0 };
	evc_signals_opts o = { .allow = ask, .arg = &g };
	struct lines a = { 0 }, b = { 0 };
	evc_coord *c = logging(&a), *d = logging(&b);

	OK(evc_signals_start(c, &o));
	raise(SIGINT);
	OK(evc_signals_stop(c));
	/* The line has come, whoever wrote it. */
	UNTIL(n_lines(&a) == 1);
	OK(evc_signals_start(d, &o));
	raise(SIGTERM);
	OK(evc_request_stop(c, 0, NULL)); /* wakes the helper of c */
	OK(evc_join(c, NULL, NULL));
	UNTIL(n_lines(&b) == 1);
	ck_assert(has_line(&b, "SIGTERM"));
	HAS(b.text, "refused so far: 1");
	FREE_ALL(d, c);
	ck_assert_int_eq(n_lines(&a), 1);
}
END_TEST

/* ---- children ---- */

static pid_t
raw_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

START_TEST(no_child_asks)
{
	struct gate *g = mmap(NULL, sizeof(*g), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	evc_signals_opts o = { .allow = ask, .arg = g };
	evc_coord *c;
	int status = 0;
	pid_t pid;

	if (t_under_tsan())
		T_SKIP("it delivers no signals in a fork child of threads");
	c = new_coord(NULL);
	ck_assert_ptr_ne(g, MAP_FAILED);
	signal(SIGTERM, SIG_DFL);
	OK(evc_signals_start(c, &o));
	/* With the fork handlers of the library, and without. */
	pid = _i ? raw_fork() : fork();
	if (pid == 0) {
		syscall(SYS_tgkill, syscall(SYS_getpid), own_tid(), SIGTERM);
		_exit(7);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGTERM);
	ck_assert_int_eq(atomic_load(&g->asked), 0);
	ck_assert(!evc_should_stop(c));
	raise(SIGTERM);
	ck_assert_int_eq(atomic_load(&g->asked), 1);
	OK(evc_free(c));
	munmap(g, sizeof(*g));
}
END_TEST

/* ---- ignored signals ---- */

START_TEST(an_ignored_signal_stays_ignored_unless_asked_for)
{
	evc_signals_opts o = { .stop = { SIGHUP, SIGTERM } };
	struct sigaction now;
	evc_coord *c = new_coord(NULL);

	/* As nohup(1) does. */
	signal(SIGHUP, SIG_IGN);
	OK(evc_signals_start(c, &o));
	raise(SIGHUP);
	ck_assert(!evc_should_stop(c));
	sigaction(SIGHUP, NULL, &now);
	ck_assert(now.sa_handler == SIG_IGN);
	raise(SIGTERM);
	ck_assert(evc_should_stop(c));
	OK(evc_signals_stop(c));
	OK(evc_clear_stop(c));

	o.flags = EVC_SIGNALS_IGNORED_TOO;
	OK(evc_signals_start(c, &o));
	raise(SIGHUP);
	ck_assert(evc_should_stop(c));
	OK(evc_free(c));
	sigaction(SIGHUP, NULL, &now);
	ck_assert(now.sa_handler == SIG_IGN);
	signal(SIGHUP, SIG_DFL);
}
END_TEST

START_TEST(with_all_of_them_ignored_there_is_nothing_to_do)
{
	evc_coord *c = new_coord(NULL), *d = new_coord(NULL);

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	OK(evc_signals_start(c, NULL));
	raise(SIGTERM);
	raise(SIGINT);
	ck_assert(!evc_should_stop(c));
	REFUSED(EVC_ALREADY_EXISTS, evc_signals_start(d, NULL));
	OK(evc_signals_stop(c));
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	OK(evc_signals_start(d, NULL));
	raise(SIGINT);
	ck_assert(evc_should_stop(d));
	FREE_ALL(d, c);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("allow");
	TCase *tcase = tcase_create("allow");

	tcase_add_test(tcase, a_refused_signal_does_nothing_but_a_line);
	tcase_add_test(tcase,
		       after_the_first_accepted_one_the_program_is_not_asked);
	tcase_add_test(tcase,
		       a_hundred_refused_while_the_log_hangs_are_all_counted);
	tcase_add_test(tcase, refused_for_ever_it_stops_and_ends_all_the_same);
	tcase_add_test(tcase, without_a_log_the_program_is_asked_too);
	tcase_add_test(tcase, the_log_hook_may_give_the_signals_back);
	tcase_add_test(tcase, each_coordinator_logs_what_it_has_refused);
	tcase_add_loop_test(tcase, no_child_asks, 0, 2);
	tcase_add_test(tcase, an_ignored_signal_stays_ignored_unless_asked_for);
	tcase_add_test(tcase, with_all_of_them_ignored_there_is_nothing_to_do);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
