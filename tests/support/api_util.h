/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of tests/api share: waits on conditions, members that
 * stay until they are let go, joins that run on a thread of their own, and a
 * clock that only the test moves.
 *
 * All of it stands on the public headers alone; a test of the public surface
 * that could look inside would prove less.
 */
#ifndef TESTS_SUPPORT_API_UTIL_H
#define TESTS_SUPPORT_API_UTIL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <evcoord.h>

#include "older.h"

#ifndef EVC_SEAM
#include "loops.h"
#endif
#include "support.h"

#define MAYBE_UNUSED __attribute__((unused))

/* Wait on a condition; only a broken program reaches the limit. */
#define UNTIL(cond) \
	do { \
		double until_ = t_now() + T_LIMIT; \
		while (!(cond)) { \
			ck_assert_msg(t_now() < until_, "never came true: %s", \
				      #cond); \
			t_sleep(0.001); \
		} \
	} while (0)

/* The three formats of a report, each in the form of evc_explain. */
static MAYBE_UNUSED size_t
report_text(const evc_coord *c, char *buf, size_t n)
{
	return evc_report(c, EVC_REPORT_TEXT, buf, n);
}

static MAYBE_UNUSED size_t
report_json(const evc_coord *c, char *buf, size_t n)
{
	return evc_report(c, EVC_REPORT_JSON, buf, n);
}

static MAYBE_UNUSED size_t
report_metrics(const evc_coord *c, char *buf, size_t n)
{
	return evc_report(c, EVC_REPORT_METRICS, buf, n);
}

/* What the scope c says of itself in its report: the indented lines below the
   head, without the indent.  Written and returned as evc_report does. */
static MAYBE_UNUSED size_t
own_report(const evc_coord *c, char *buf, size_t n)
{
	const size_t most = 1 << 18;
	char *text = malloc(most), *line, *next;
	size_t len = 0;

	ck_assert_uint_lt(report_text(c, text, most), most);
	if (n > 0)
		buf[0] = '\0';
	for (line = strchr(text, '\n');
	     line != NULL && strncmp(line, "\n  ", 3) == 0; line = next) {
		next = strchr(line + 1, '\n');
		ck_assert_ptr_nonnull(next);
		len += (size_t)snprintf(len < n ? buf + len : NULL,
					len < n ? n - len : 0, "%.*s",
					(int)(next - line - 2), line + 3);
	}
	free(text);
	return len;
}

/* Long enough for what a timer would bring about by mistake. */
#define MOMENT 0.05

/* Everybody who is on the way has come. */
static inline void
let_come(void)
{
	t_sleep(MOMENT);
	t_until_quiet();
}

/* It is not so, and nobody is on the way to bring it about. */
#define NOT_YET(cond) \
	do { \
		let_come(); \
		ck_assert_msg(!(cond), "came true too early: %s", #cond); \
	} while (0)

/* The status of the last call that was to be 0. */
static MAYBE_UNUSED _Thread_local evc_status ok_status;

static inline bool
is_ok(evc_status st)
{
	ok_status = st;
	return st == 0;
}

#define OK(call) \
	ck_assert_msg(is_ok(call), "%s: %d, %s", #call, ok_status, \
		      evc_last_error())

/* Refused with that code, and with a text that says why. */
#define REFUSED(code, call) \
	do { \
		int refused_ = (call); \
		ck_assert_msg(refused_ == -(code), "%s: %d, not -%s", #call, \
			      refused_, #code); \
		ck_assert_str_ne(evc_last_error(), ""); \
	} while (0)

/* text holds part; says both when it does not. */
#define HAS(text, part) \
	do { \
		const char *has_text_ = (text), *has_part_ = (part); \
		ck_assert_msg(strstr(has_text_, has_part_) != NULL, \
			      "no \"%s\" in \"%.2000s\"", has_part_, \
			      has_text_); \
	} while (0)

/* In a child of fork: say on stderr what is not so, and leave. */
#define CHILD(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "line %d: %s\n", __LINE__, #cond); \
			_exit(1); \
		} \
	} while (0)

#define STACKS_BY(signo) \
	do { \
		NEEDS_BACKTRACE(); \
		OK(evc_stack_signal(signo)); \
	} while (0)

#define CHILD_REFUSED(call) CHILD((call) == -EVC_FAILED_PRECONDITION)

static inline int
own_tid(void)
{
	return (int)syscall(SYS_gettid);
}

/* A line of /proc/self/task/TID/status; "" when the thread is gone. */
static inline void
task_line(int tid, const char *key, char *buf, size_t n)
{
	char path[64], line[128];
	FILE *f;

	buf[0] = '\0';
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	f = fopen(path, "r");
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, key, strlen(key)) == 0)
			snprintf(buf, n, "%s", line + strlen(key));
	fclose(f);
}

/* How often a thread has gone to sleep; -1 when it is gone. */
static inline long
task_sleeps(int tid)
{
	char text[128];

	task_line(tid, "voluntary_ctxt_switches:", text, sizeof(text));
	return text[0] == '\0' ? -1 : atol(text);
}

/* What stands in a mutex for which somebody waits. */
#ifdef __GLIBC__
#define HAS_WAITERS(value) ((value) == 2)
#else
#define HAS_WAITERS(value) (((value) >> 31 & 1) != 0)
#endif

/* Does it wait for what a mutex waits for, or something that looks like it? */
static inline bool
waits_for_mutex(int tid)
{
	unsigned long word, op, value;
	char path[64];
	bool yes;
	long call;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	yes = fscanf(f, "%ld %lx %lx %lx", &call, &word, &op, &value) == 4 &&
	      call == SYS_futex && (op & 0x7f) == 0 &&
	      HAS_WAITERS(value);
	fclose(f);
	return yes;
}

/* Does a thread sleep, and stay asleep for so long, or is it gone? */
static inline bool
sleeps_on(int tid, double seconds)
{
	long before = task_sleeps(tid);
	char state[128];

	t_sleep(seconds);
	task_line(tid, "State:", state, sizeof(state));
	return before < 0 ||
	       (before == task_sleeps(tid) && strchr(state, 'S') != NULL);
}

/*
 * Wait until the call that a thread made as its last one has begun to wait.  On
 * its way there it may meet a mutex whose holder is not running at the moment:
 * half a second is enough for that.  And a join that looks for ends sleeps a
 * millisecond at a time for as long as a scripted clock stands still: after as
 * long, a short sleep counts as well.
 */
static inline void
until_asleep(int tid)
{
	double start = t_now(), lasts;

	while (t_now() < start + T_LIMIT) {
		lasts = t_now() > start + 0.5 ? 0 : 0.01;
		if (sleeps_on(tid, lasts) &&
		    (!waits_for_mutex(tid) || lasts == 0))
			return;
	}
}

/* Is there a pidfd for threads (Linux 6.9)? */
static inline bool
has_thread_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, own_tid(), O_EXCL);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static inline bool
readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

/* Free coordinators, in that order. */
#define FREE_ALL(...) \
	do { \
		evc_coord *const free_[] = { __VA_ARGS__ }; \
		size_t i_, n_ = sizeof(free_) / sizeof(free_[0]); \
		for (i_ = 0; i_ < n_; i_++) \
			ck_assert_msg(evc_free(free_[i_]) == 0, \
				      "%zu of %s: %s", i_, #__VA_ARGS__, \
				      evc_last_error()); \
	} while (0)

static inline evc_coord *
new_coord(struct ev_loop *loop)
{
	evc_coord *c = NULL;

	OK(evc_new(loop, NULL, &c));
	ck_assert_ptr_nonnull(c);
	return c;
}

static inline evc_coord *
new_coord_with(struct ev_loop *loop, const evc_config *cfg)
{
	evc_coord *c = NULL;

	OK(evc_new(loop, cfg, &c));
	ck_assert_ptr_nonnull(c);
	return c;
}

/* A task that says which descriptor it serves. */
struct connection {
	evc_task task; /* first: the task is the connection */
	int fd;
};

static MAYBE_UNUSED void
say_descriptor(const evc_task *t, char *buf, size_t n, void *arg)
{
	(void)arg;
	snprintf(buf, n, "fd %d", ((const struct connection *)t)->fd);
}

/* A member that is there (in), until it is let go (open). */
struct guest {
	atomic_int in, open;
};

static MAYBE_UNUSED evc_status
stay(evc_coord *c, void *arg)
{
	struct guest *g = arg;

	(void)c;
	atomic_fetch_add(&g->in, 1);
	while (!atomic_load(&g->open))
		t_sleep(0.001);
	return 0;
}

/* ThreadSanitizer follows no lock any more of a thread that was cancelled in
   pause, sleep, poll or read. */
static MAYBE_UNUSED void
stay_until_cancelled(void)
{
	int old;

	for (;;) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
		t_sleep(0.001);
		pthread_setcancelstate(old, NULL);
		pthread_testcancel();
	}
}

static MAYBE_UNUSED void *
stay_thread(void *arg)
{
	stay(NULL, arg);
	return NULL;
}

/* A member that does what it should: it ends at the stop. */
static MAYBE_UNUSED evc_status
obey(evc_coord *c, void *arg)
{
	(void)arg;
	evc_wait_for_stop(c, INFINITY);
	return 0;
}

static MAYBE_UNUSED void *
obey_thread(void *arg)
{
	evc_wait_for_stop(arg, INFINITY);
	return NULL;
}

/* A member that ends at the stop with a result that the test says. */
static MAYBE_UNUSED evc_status
obey_with(evc_coord *c, void *arg)
{
	evc_wait_for_stop(c, INFINITY);
	return *(evc_status *)arg;
}

/* A thread that ends as no thread should. */
static MAYBE_UNUSED evc_status
exit_by_syscall(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	syscall(SYS_exit, 0);
	return 0;
}

static MAYBE_UNUSED evc_status
return_at_once(evc_coord *c, void *arg)
{
	(void)c;
	return arg != NULL ? *(evc_status *)arg : 0;
}

static MAYBE_UNUSED void *
end_at_once(void *arg)
{
	return arg;
}

static MAYBE_UNUSED evc_status
count_hook(evc_coord *c, void *arg)
{
	(void)c;
	atomic_fetch_add((atomic_int *)arg, 1);
	return 0;
}

static MAYBE_UNUSED evc_status
note_tid(evc_coord *c, void *arg)
{
	(void)c;
	atomic_store((atomic_int *)arg, own_tid());
	return 0;
}

/* The on_stop of a task that ends then. */
static MAYBE_UNUSED void
end_told_task(evc_task *t, void *arg)
{
	(void)arg;
	evc_task_end(t);
}

static MAYBE_UNUSED bool
never_true(void *arg)
{
	(void)arg;
	return false;
}

/* Has a member ended, and was it accounted for? */
static MAYBE_UNUSED bool
is_gone(const evc_coord *c, evc_id id)
{
	evc_member_info info;

	return evc_member_get(c, id, &info) == -EVC_NOT_FOUND;
}

/* For joins whose answer says nothing. */
static MAYBE_UNUSED void
ignore_verdict(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	(void)arg;
}

/* For joins of which the code alone counts. */
static MAYBE_UNUSED void
take_code(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	*(evc_status *)arg = v->code;
}

/* Two threads that ask for the stop of c, again and again. */
struct requests {
	evc_coord *c;
	struct t_crowd crowd;
	atomic_int over;
	atomic_ulong n;
};

static MAYBE_UNUSED void *
request_again_and_again(void *arg)
{
	struct requests *r = arg;

	while (!atomic_load(&r->over)) {
		evc_request_stop(r->c, 0, "racing");
		atomic_fetch_add(&r->n, 1);
	}
	return NULL;
}

static inline void
requests_begin(struct requests *r, evc_coord *c)
{
	memset(r, 0, sizeof(*r));
	r->c = c;
	crowd_begin(&r->crowd, 2, request_again_and_again, r, 0);
}

static inline void
requests_end(struct requests *r)
{
	atomic_store(&r->over, 1);
	crowd_end(&r->crowd);
}

/* A wait for the stop on a thread of its own. */
struct waiter {
	pthread_t thread;
	evc_coord *c;
	double timeout;
	bool answer;
	atomic_int tid, released;
};

static MAYBE_UNUSED void *
waiter_main(void *arg)
{
	struct waiter *w = arg;

	atomic_store(&w->tid, own_tid());
	w->answer = evc_wait_for_stop(w->c, w->timeout);
	atomic_fetch_add(&w->released, 1);
	return NULL;
}

static inline void
waiter_begin(struct waiter *w, evc_coord *c, double timeout)
{
	memset(w, 0, sizeof(*w));
	w->c = c;
	w->timeout = timeout;
	OK(pthread_create(&w->thread, NULL, waiter_main, w));
}

/* A join on a thread of its own; that thread is no member. */
struct joiner {
	pthread_t thread;
	evc_coord *c;
	evc_join_opts opts;
	evc_verdict v;
	evc_status status;
	double seconds; /* how long it took, on the real clock */
	atomic_int tid, returned;
};

static MAYBE_UNUSED void *
joiner_main(void *arg)
{
	struct joiner *j = arg;
	double start = t_now();

	atomic_store(&j->tid, own_tid());
	j->status = evc_join(j->c, &j->opts, &j->v);
	j->seconds = t_now() - start;
	atomic_store(&j->returned, 1);
	return NULL;
}

static inline void
join_begin(struct joiner *j, evc_coord *c, double grace, unsigned flags)
{
	memset(j, 0, sizeof(*j));
	j->c = c;
	j->opts.grace = grace;
	j->opts.flags = flags;
	OK(pthread_create(&j->thread, NULL, joiner_main, j));
	UNTIL(atomic_load(&j->tid) != 0);
	until_asleep(atomic_load(&j->tid));
}

static inline evc_status
join_end(struct joiner *j)
{
	OK(pthread_join(j->thread, NULL));
	return j->status;
}

/* Hand options in, in one of several ways. */
typedef evc_status hand_in_fn(int way, const char *name,
			      const evc_member_opts *o, evc_id *ret_id);

static MAYBE_UNUSED void
every_way_refuses(hand_in_fn *hand_in, int n_ways, evc_status code,
		  const char *what, const char *name, const evc_member_opts *o)
{
	evc_id id = 77;
	evc_status st;
	int way;

	for (way = 0; way < n_ways; way++) {
		st = hand_in(way, name, o, &id);
		ck_assert_msg(st == -code, "%s, way %d: %d, not -%d", what, way,
			      st, code);
		ck_assert_str_ne(evc_last_error(), "");
		ck_assert_uint_eq(id, 77);
	}
}

static MAYBE_UNUSED void
wrong_options_are_refused(hand_in_fn *hand_in, int n_ways,
			  const evc_member_opts *wrong, size_t n)
{
	char what[32];
	size_t i;

	for (i = 0; i < n; i++) {
		snprintf(what, sizeof(what), "wrong[%zu]", i);
		every_way_refuses(hand_in, n_ways, EVC_INVALID_ARGUMENT, what,
				  "name", &wrong[i]);
	}
}

/* A clock for evc_config.clock that only the test moves. */
static _Atomic uint64_t scripted_ns MAYBE_UNUSED = 1000000000000u;

static MAYBE_UNUSED uint64_t
scripted_clock(void *arg)
{
	(void)arg;
	return atomic_load(&scripted_ns);
}

/* To the nearest, as the library reads its times. */
static MAYBE_UNUSED uint64_t
nanoseconds(double seconds)
{
	return (uint64_t)(seconds * 1e9 + 0.5);
}

static MAYBE_UNUSED void
scripted_advance(double seconds)
{
	atomic_fetch_add(&scripted_ns, nanoseconds(seconds));
}

/*
 * Make waiting joins look again at once: they look at a scripted clock now and
 * then, but every beginning and end of a member makes them look.
 */
static MAYBE_UNUSED void
make_joins_look(evc_coord *c)
{
	evc_member_opts late = { .flags = EVC_AFTER_STOP | EVC_BACKGROUND };
	evc_id id = 0;

	OK(evc_hold_begin(c, "look", &late, &id));
	OK(evc_hold_end(c, id));
}

/* Does a join that may not return yet wait still, though it is made to look? */
static MAYBE_UNUSED bool
still_waits(struct joiner *j)
{
	make_joins_look(j->c);
	t_until_quiet();
	return !atomic_load(&j->returned);
}

/* One that may return does. */
#define RETURNS(j) \
	UNTIL(atomic_load(&(j)->returned) || (make_joins_look((j)->c), false))

#endif
