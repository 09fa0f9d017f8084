/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of waking share: threads that block in a call of the test's
 * choice, as one of the four kinds of member that can be kicked, and note how
 * the call ended; tests that need a process in which nobody has chosen a kick
 * signal yet; threads that wait where nothing but the end of a child wakes
 * them.
 */
#ifndef TESTS_SUPPORT_ROUSE_UTIL_H
#define TESTS_SUPPORT_ROUSE_UTIL_H

#include "api_util.h"

#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* ---- a thread that blocks ---- */

enum kind { A_THREAD, A_REGISTERED, A_LOOPER, A_GUARD, N_KINDS };

struct sleeper {
	/* the test says */
	int (*call)(struct sleeper *s); /* blocks; < 0 and errno, as calls do */
	int fd[3];
	void *more;
	bool stubborn; /* calls again until it is let go, stop or no stop */
	atomic_int open;
	evc_status result;
	int result_err; /* and evc_fail with that errno value; -1: the call's */
	/* what was seen */
	evc_coord *c;
	enum kind kind;
	evc_member_opts opts;
	pthread_t thread; /* A_REGISTERED, A_GUARD */
	evc_status status;
	evc_id id;
	atomic_int tid, interrupted, early, ended;
	int err;
};

static MAYBE_UNUSED evc_status
sleeper_live(evc_coord *c, void *arg)
{
	struct sleeper *s = arg;

	atomic_store(&s->tid, own_tid());
	do {
		errno = 0;
		if (s->call(s) >= 0)
			break;
		s->err = errno;
		if (errno != EINTR)
			break;
		if (!evc_should_stop(c))
			atomic_fetch_add(&s->early, 1);
		atomic_fetch_add(&s->interrupted, 1);
	} while (s->stubborn ? !atomic_load(&s->open) : !evc_should_stop(c));
	if (s->result != 0 && s->result_err != 0)
		return evc_fail(c, s->result,
				s->result_err < 0 ? s->err : s->result_err,
				"what the call said");
	return s->result;
}

static MAYBE_UNUSED void *
sleeper_main(void *arg)
{
	struct sleeper *s = arg;

	if (s->kind == A_GUARD)
		s->status = evc_guard(s->c, "guarded", sleeper_live, s,
				      &s->opts);
	else {
		s->status = evc_register_thread(s->c, "sleeper",
						pthread_self(), &s->opts,
						&s->id);
		sleeper_live(s->c, s);
	}
	atomic_store(&s->ended, 1);
	return NULL;
}

/* It has begun, and blocks. */
static MAYBE_UNUSED void
sleeper_begin(struct sleeper *s, evc_coord *c, enum kind kind,
	      const evc_member_opts *opts)
{
	s->c = c;
	s->kind = kind;
	if (opts != NULL)
		s->opts = *opts;
	switch (kind) {
	case A_THREAD:
		OK(evc_thread_start(c, "sleeper", sleeper_live, s, &s->opts,
				    &s->id));
		break;
	case A_LOOPER:
		s->opts.flags |= EVC_OWN_THREAD;
		OK(evc_looper_start(c, "sleeper", INFINITY, sleeper_live, s,
				    &s->opts, &s->id));
		break;
	default:
		OK(pthread_create(&s->thread, NULL, sleeper_main, s));
		break;
	}
	UNTIL(atomic_load(&s->tid) != 0);
	until_asleep(atomic_load(&s->tid));
	ck_assert_int_eq(atomic_load(&s->interrupted), 0);
}

/* A guard's thread is the test's own: the others were joined by evc_join. */
static MAYBE_UNUSED void
sleeper_end(struct sleeper *s)
{
	if (s->kind == A_GUARD) {
		UNTIL(atomic_load(&s->ended));
		OK(pthread_join(s->thread, NULL));
	}
	OK(s->status);
	ck_assert_int_eq(atomic_load(&s->early), 0);
}

/* A join that hangs is a failure long before the test's own limit. */
static const evc_join_opts generous MAYBE_UNUSED = { .grace = T_LIMIT };

/* A budget that is over gives later joins no time: once all have ended one of
   them says so. */
static MAYBE_UNUSED void
ends_at_last(evc_coord *c)
{
	UNTIL(evc_join(c, &generous, NULL) == 0);
}

/* ---- calls that several tests block in ---- */

static MAYBE_UNUSED int
call_read(struct sleeper *s)
{
	char byte;

	return (int)read(s->fd[0], &byte, 1);
}

static MAYBE_UNUSED int
call_nanosleep(struct sleeper *s)
{
	struct timespec ts = { .tv_sec = 1000 };

	(void)s;
	return nanosleep(&ts, NULL);
}

/* As one that has no way out: it begins anew whatever wakes it. */
static MAYBE_UNUSED int
call_without_end(struct sleeper *s)
{
	while (!atomic_load(&s->open))
		t_sleep(0.001);
	return 0;
}

/* ---- a process of its own ---- */

/* The kick signal is chosen once in a process. */
static MAYBE_UNUSED void
in_fresh_process(void (*body)(void))
{
	int status = 0;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		alarm(T_TEST_LIMIT / 2);
		body();
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0)
		ck_assert_int_eq(errno, EINTR);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		      "the process ended with %#x", (unsigned)status);
}

/* ---- uninterruptible sleep ---- */

/*
 * A thread that makes a child by vfork sleeps in D state until the child has
 * another program.  posix_spawn(3) is that, and this child has to open a fifo
 * first, which somebody must open for writing.
 */
struct deep {
	char dir[32], fifo[48];
	atomic_int tid;
};

static MAYBE_UNUSED void
deep_make(struct deep *d)
{
	memset(d, 0, sizeof(*d));
	snprintf(d->dir, sizeof(d->dir), "/tmp/evcoord-deep-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(d->dir));
	snprintf(d->fifo, sizeof(d->fifo), "%s/fifo", d->dir);
	OK(mkfifo(d->fifo, 0600));
}

static MAYBE_UNUSED evc_status
deep_sleep(evc_coord *c, void *arg)
{
	static char name[] = "true", *argv[] = { name, NULL };
	posix_spawn_file_actions_t first;
	struct deep *d = arg;
	pid_t pid = 0;

	(void)c;
	posix_spawn_file_actions_init(&first);
	posix_spawn_file_actions_addopen(&first, 0, d->fifo, O_RDONLY, 0);
	atomic_store(&d->tid, own_tid());
	if (posix_spawnp(&pid, name, &first, NULL, argv, environ) == 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	posix_spawn_file_actions_destroy(&first);
	return 0;
}

static MAYBE_UNUSED bool
is_in_D(struct deep *d)
{
	char state[128];

	if (atomic_load(&d->tid) == 0)
		return false;
	task_line(atomic_load(&d->tid), "State:", state, sizeof(state));
	return strchr(state, 'D') != NULL;
}

static MAYBE_UNUSED void
deep_let_go(struct deep *d)
{
	int fd = open(d->fifo, O_WRONLY);

	ck_assert_int_ge(fd, 0);
	close(fd);
	unlink(d->fifo);
	rmdir(d->dir);
}

/* ---- what was said ---- */

/* The report, in memory that the next call uses again. */
static MAYBE_UNUSED const char *
report_of(const evc_coord *c)
{
	static char text[32768];

	ck_assert_uint_gt(report_text(c, text, sizeof(text)), 0);
	return text;
}

#define LACKS(text, part) \
	do { \
		const char *lacks_text_ = (text), *lacks_part_ = (part); \
		ck_assert_msg(strstr(lacks_text_, lacks_part_) == NULL, \
			      "\"%s\" in \"%s\"", lacks_part_, lacks_text_); \
	} while (0)

/* Wait until the report says so; what it said last when it does not. */
#define UNTIL_REPORT_HAS(c, part) \
	do { \
		double report_until_ = t_now() + T_LIMIT; \
		const char *report_; \
		while (strstr(report_ = report_of(c), (part)) == NULL) { \
			ck_assert_msg(t_now() < report_until_, \
				      "never in a report: \"%s\"\n%s", \
				      (part), report_); \
			t_sleep(0.005); \
		} \
	} while (0)

/* A join that gave up has named that one, and nobody else. */
static MAYBE_UNUSED void
names_one(const evc_verdict *v, const char *name)
{
	ck_assert_int_eq(v->code, EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v->n_stragglers, 1);
	HAS(v->error.text, name);
}

/* ---- a join while somebody misbehaves ---- */

/* What is on time: far below what a hang would take. */
#define ON_TIME 10.0

static MAYBE_UNUSED evc_verdict
late_join(evc_coord *c)
{
	evc_join_opts brief = { .grace = 0.3 };
	double start = t_now();
	evc_verdict v;

	OK(evc_request_stop(c, 0, "the stop"));
	ck_assert_int_eq(evc_join(c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_lt(t_now() - start, ON_TIME);
	ck_assert_double_lt(v.took, ON_TIME);
	return v;
}

#endif
