/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stop can be asked for from anywhere (S4): from signal handlers, with no
 * descriptor and no memory left, with a cancellation pending - and all are
 * told all the same.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <signal.h>
#include <sys/resource.h>

static evc_coord *shared; /* for signal handlers */

static void
handler_requests(int sig)
{
	(void)sig;
	evc_request_stop(shared, 0, "from a handler");
}

START_TEST(S4_from_a_signal_handler_keeping_errno)
{
	evc_coord *c = shared = new_coord(NULL);
	evc_reason r;

	signal(SIGUSR1, handler_requests);
	errno = ENOTEMPTY;
	raise(SIGUSR1);
	ck_assert_int_eq(errno, ENOTEMPTY);
	ck_assert(evc_should_stop(c));
	OK(evc_reason_get(c, 0, &r));
	ck_assert_str_eq(r.text, "from a handler");
	ck_assert_int_eq(r.tid, own_tid());
	OK(evc_free(c));
	signal(SIGUSR1, SIG_DFL);
}
END_TEST

/* Signals the thread of the test a moment later. */
static void *
signal_soon(void *arg)
{
	t_sleep(0.05);
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

START_TEST(S4_from_a_handler_inside_a_join_and_a_wait)
{
	evc_coord *c = shared = new_coord(NULL);
	pthread_t self = pthread_self(), t;
	evc_id hold = 0;

	signal(SIGUSR1, handler_requests);
	OK(pthread_create(&t, NULL, signal_soon, &self));
	ck_assert(evc_wait_for_stop(c, INFINITY));
	pthread_join(t, NULL);
	OK(evc_clear_stop(c));

	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	OK(pthread_create(&t, NULL, signal_soon, &self));
	OK(evc_join(c, NULL, NULL));
	pthread_join(t, NULL);
	ck_assert(evc_should_stop(c));
	OK(evc_clear_stop(c));

	/* nothing was left locked by the interrupted calls */
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
	signal(SIGUSR1, SIG_DFL);
}
END_TEST

/* Told of the stop: a waiter, a loop's hook, and the descriptor. */
static void
all_are_told(void (*exhaust)(void), void (*restore)(void))
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	atomic_int hooked = 0;
	struct waiter w;
	int fd = evc_stop_fd(c);
	evc_status st;

	OK(evc_on_stop(c, "hook", count_hook, &hooked, NULL, NULL));
	waiter_begin(&w, c, INFINITY);
	UNTIL(atomic_load(&w.tid) != 0);
	until_asleep(w.tid);
	exhaust();
	st = evc_request_stop(c, 0, "with nothing left");
	ev_run(loop, EVRUN_NOWAIT);
	restore();
	ck_assert_int_eq(st, 0);
	ck_assert_int_eq(hooked, 1);
	ck_assert(readable(fd));
	OK(pthread_join(w.thread, NULL));
	ck_assert(w.answer);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}

static struct rlimit saved;

static void
no_descriptors(void)
{
	struct rlimit none;

	getrlimit(RLIMIT_NOFILE, &saved);
	none = saved;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
}

static void
descriptors_again(void)
{
	setrlimit(RLIMIT_NOFILE, &saved);
}

START_TEST(S4_without_a_descriptor_left)
{
	all_are_told(no_descriptors, descriptors_again);
}
END_TEST

static void *eaten; /* a list of all that malloc still gave */

static void
no_memory(void)
{
	struct rlimit none;
	size_t size;
	void **p;

	getrlimit(RLIMIT_AS, &saved);
	none = saved;
	none.rlim_cur = 1;
	setrlimit(RLIMIT_AS, &none);
	for (size = 1 << 16; size >= sizeof(void *); size /= 2)
		while ((p = malloc(size)) != NULL) {
			*p = eaten;
			eaten = p;
		}
}

static void
memory_again(void)
{
	void *next;

	setrlimit(RLIMIT_AS, &saved);
	for (; eaten != NULL; eaten = next) {
		next = *(void **)eaten;
		free(eaten);
	}
}

START_TEST(S4_without_memory_left)
{
	if (t_under_asan() || t_under_tsan() || t_under_valgrind())
		T_SKIP("the tool needs memory of its own");
	if (t_under_qemu())
		T_SKIP("no limit of memory holds");
	all_are_told(no_memory, memory_again);
}
END_TEST

struct doomed {
	evc_coord *c;
	int loop_tid;
	atomic_int returned;
};

static void *
request_with_cancel_pending(void *arg)
{
	struct doomed *d = arg;
	int old;

	/* the loop must sleep: else nobody has to write to wake it */
	until_asleep(d->loop_tid);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
	evc_wait_for_stop(d->c, 0.001);
	if (evc_request_stop(d->c, 0, NULL) == 0)
		atomic_fetch_add(&d->returned, 1);
	evc_wait_for_stop(d->c, INFINITY);
	atomic_fetch_add(&d->returned, 1);
	pthread_testcancel();
	return "not cancelled";
}

/* ... and the loop's doorbell still works for everybody else. */
START_TEST(S4_with_a_cancellation_pending)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct doomed d = { .c = new_coord(loop), .loop_tid = own_tid() };
	atomic_int hooked = 0;
	pthread_t t;
	void *result;
	int i;

	OK(evc_on_stop(d.c, "hook", count_hook, &hooked, NULL, NULL));
	for (i = 1; i <= 10; i++) {
		d.returned = 0;
		OK(pthread_create(&t, NULL, request_with_cancel_pending, &d));
		OK(evc_run(d.c, NULL, NULL));
		ck_assert_int_eq(hooked, 2 * i - 1);
		OK(pthread_join(t, &result));
		ck_assert_ptr_eq(result, PTHREAD_CANCELED);
		ck_assert_int_eq(d.returned, 2);
		OK(evc_clear_stop(d.c));

		OK(evc_request_stop(d.c, 0, NULL));
		OK(evc_run(d.c, NULL, NULL));
		ck_assert_int_eq(hooked, 2 * i);
		OK(evc_clear_stop(d.c));
	}
	OK(evc_free(d.c));
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("anywhere", S4_from_a_signal_handler_keeping_errno,
	 S4_from_a_handler_inside_a_join_and_a_wait,
	 S4_without_a_descriptor_left, S4_without_memory_left,
	 S4_with_a_cancellation_pending)
