/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * S4: the request of a stop works when nothing else does - without memory,
 * descriptors and threads, and with a cancellation pending.
 */
#include "faults.h"

#include "../support/far_util.h"

#include <sys/resource.h>

/* ---- everybody who may be told of a stop ---- */

struct listeners {
	evc_coord *c;
	struct waiter waiter[2];
	struct joiner joiner;
	struct far far;
	atomic_int on_loop, on_helper;
	int fd;
};

static evc_status
hook_on_loop(evc_reactor *r, void *arg)
{
	struct listeners *l = arg;
	evc_member_opts o = { .reactor = r };

	return evc_on_stop(l->far.c, "on loop", count_hook, &l->on_loop, &o,
			   NULL);
}

static void
listen_all(struct listeners *l)
{
	int i;

	memset(l, 0, sizeof *l);
	seam_reset();
	l->c = new_coord(NULL);
	l->far = (struct far){ .c = l->c, .begin = hook_on_loop, .arg = l };
	far_begin(&l->far);
	OK(evc_on_stop(l->c, "on helper", count_hook, &l->on_helper, NULL,
		       NULL));
	OK(evc_thread_start(l->c, "member", obey, NULL, NULL, NULL));
	l->fd = evc_stop_fd(l->c);
	ck_assert_int_ge(l->fd, 0);
	for (i = 0; i < 2; i++)
		waiter_begin(&l->waiter[i], l->c, INFINITY);
	for (i = 0; i < 2; i++) {
		UNTIL(atomic_load(&l->waiter[i].tid) != 0);
		until_asleep(atomic_load(&l->waiter[i].tid));
	}
	join_begin(&l->joiner, l->c, 0, 0);
}

/* All were told, and nothing was needed for it. */
static void
all_told(struct listeners *l)
{
	int i;

	ck_assert(evc_should_stop(l->c));
	ck_assert(readable(l->fd));
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(pthread_join(l->waiter[i].thread, NULL), 0);
		ck_assert(l->waiter[i].answer);
	}
	(void)join_end(&l->joiner);
	ck_assert_uint_eq(l->joiner.v.n_stragglers, 0);
	far_end(&l->far);
	ck_assert_int_eq(l->on_loop, 1);
	ck_assert_int_eq(l->on_helper, 1);
	OK(evc_free(l->c));
}

/* ---- exhaustion ---- */

static const char *const fallible[] = { "alloc", "eventfd", "epoll", "pidfd",
					"thread_create" };
#define N_FALLIBLE (sizeof fallible / sizeof fallible[0])

START_TEST(S4_a_request_needs_nothing_that_can_fail)
{
	struct rlimit usual, none;
	struct listeners l;
	int h[N_FALLIBLE], relief;
	evc_reason r;
	evc_id open; /* keeps the round open until both have asked */
	size_t i;

	listen_all(&l);
	OK(evc_hold_begin(l.c, "open", NULL, &open));
	for (i = 0; i < N_FALLIBLE; i++)
		h[i] = seam_fail_all(fallible[i], NULL, 1, ENOMEM);
	/* What the join may try, on a slow machine, for a helper that is at its
	   hook still. */
	relief = seam_fail_all("thread_create", "evc__helper_lead", 1, ENOMEM);
	getrlimit(RLIMIT_NOFILE, &usual);
	none = usual;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	(void)evc_fail(l.c, EVC_DATA_LOSS, EIO, "shard %d", 3);
	OK(evc_request_stop(l.c, EVC_INTERNAL, "another"));
	OK(evc_hold_end(l.c, open));
	(void)join_end(&l.joiner);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
	for (i = 0; i < N_FALLIBLE; i++)
		ck_assert_msg(seam_arrivals(h[i]) ==
				      (i == N_FALLIBLE - 1 ?
					       seam_arrivals(relief) :
					       0),
			      "%s was tried", fallible[i]);
	seam_reset();
	ck_assert_int_eq(evc_raise_requested(l.c, &r), EVC_DATA_LOSS);
	ck_assert_str_eq(r.text, "shard 3");
	ck_assert_int_eq(r.err, EIO);
	ck_assert_uint_eq(l.joiner.v.n_errors, 2);
	/* It has returned already. */
	join_begin(&l.joiner, l.c, 0, 0);
	all_told(&l);
}
END_TEST

/* ---- the log ---- */

struct log_lines {
	pthread_mutex_t lock;
	char text[32][128];
	unsigned n;
};

static void
keep_line(int level, const char *line, const evc_reason *r, void *arg)
{
	struct log_lines *l = arg;

	(void)level;
	(void)r;
	pthread_mutex_lock(&l->lock);
	ck_assert_uint_lt(l->n, 32);
	snprintf(l->text[l->n++], sizeof l->text[0], "%s", line);
	pthread_mutex_unlock(&l->lock);
}

START_TEST(S4_the_log_has_its_lines_without_memory)
{
	static struct log_lines l = { .lock = PTHREAD_MUTEX_INITIALIZER };
	evc_config cfg = { .name = "web", .log = keep_line, .arg = &l };
	evc_escalation_opts escalation = { .budget = 0.5 };
	evc_verdict v;
	evc_coord *c;
	evc_id id;
	int i, h;

	seam_reset();
	c = new_coord_with(NULL, &cfg);
	OK(evc_escalation_set(c, &escalation));
	OK(evc_hold_begin(c, "stays", NULL, &id));
	h = seam_fail_all("alloc", NULL, 1, ENOMEM);
	/* A program that says much takes no place of the library's lines. */
	for (i = 0; i < 20; i++)
		evc_log(c, EVC_LOG_INFO, NULL, "without memory");
	(void)evc_fail(c, EVC_DATA_LOSS, 0, "bad disk");
	(void)!evc_join(c, NULL, &v);
	ck_assert_uint_eq(v.n_stragglers, 1);
	seam_release(h);
	OK(evc_hold_end(c, id));
	(void)!evc_join(c, NULL, NULL);
	(void)evc_log_flush(c, INFINITY);
	ck_assert_uint_ge(l.n, 6);
	HAS(l.text[0], "stop of web requested: DATA_LOSS (15): bad disk");
	for (i = 1; strstr(l.text[i], "are lost") != NULL; i++)
		;
	HAS(l.text[i], "web: error DATA_LOSS (15): bad disk");
	for (i++; strstr(l.text[i], "are lost") != NULL; i++)
		;
	HAS(l.text[i], "stop of web is about to end; still running: stays");
	for (i = 0; i < 32 &&
		    strstr(l.text[i], "web: the time of the stop is over") == NULL;
	     i++)
		;
	ck_assert_int_lt(i, 32);
	for (i = 0; i < 32 && strstr(l.text[i], "stop of web ended after") == NULL;
	     i++)
		;
	ck_assert_int_lt(i, 32);
	OK(evc_free(c));
}
END_TEST

/* ---- a cancellation ---- */

enum { ASKERS = 1000 };

static atomic_int went_on;

static void *
ask_with_a_cancellation_pending(void *arg)
{
	pthread_cancel(pthread_self());
	(void)evc_request_stop(arg, 0, "cancelled meanwhile");
	(void)evc_should_stop(arg);
	atomic_fetch_add(&went_on, 1);
	pthread_testcancel();
	return NULL;
}

START_TEST(S4_a_request_is_no_cancellation_point)
{
	struct listeners l;
	void *result;
	pthread_t t;

	listen_all(&l);
	t = spawn(ask_with_a_cancellation_pending, l.c);
	ck_assert_int_eq(pthread_join(t, &result), 0);
	ck_assert_int_eq(went_on, 1);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	all_told(&l);
}
END_TEST

struct wakes {
	evc_coord *c;
	struct ev_loop *loop;
	atomic_int ready, woken, quit;
};

static evc_status
note_wake(evc_coord *c, void *arg)
{
	(void)c;
	atomic_fetch_add(&((struct wakes *)arg)->woken, 1);
	return 0;
}

static void *
woken_main(void *arg)
{
	struct wakes *w = arg;
	evc_member_opts o = { 0 };
	ev_timer keep;

	if (evc_reactor_attach(w->c, "loop", w->loop, &o.reactor) < 0 ||
	    evc_on_stop(w->c, "woken", note_wake, w, &o, NULL) < 0)
		return arg;
	/* Far away: it wakes nobody, it only keeps the loop running. */
	ev_init(&keep, NULL);
	ev_timer_set(&keep, 3600, 3600);
	ev_timer_start(w->loop, &keep);
	atomic_store(&w->ready, 1);
	while (!atomic_load(&w->quit))
		ev_run(w->loop, EVRUN_ONCE);
	ev_timer_stop(w->loop, &keep);
	return evc_reactor_detach(o.reactor) < 0 ? arg : NULL;
}

/* A thread that is cancelled inside libev's wake-up would leave it dead for
   all: after each such thread the loop is woken, again and again. */
START_TEST(S4_a_cancelled_requester_leaves_the_wake_up_alive)
{
	struct wakes w = { 0 };
	int i;
	void *failed;
	pthread_t t;

	seam_reset();
	w.c = new_coord(NULL);
	w.loop = ev_loop_new(EVFLAG_AUTO);
	t = spawn(woken_main, &w);
	UNTIL(atomic_load(&w.ready));
	for (i = 1; i <= ASKERS; i++) {
		if (i % 10 == 1) {
			pthread_t asker = spawn(
				ask_with_a_cancellation_pending, w.c);

			ck_assert_int_eq(pthread_join(asker, NULL), 0);
		} else
			OK(evc_request_stop(w.c, 0, NULL));
		UNTIL(atomic_load(&w.woken) == i);
		OK(evc_clear_stop(w.c));
	}
	ck_assert_int_eq(went_on, ASKERS / 10);
	/* It may wait in ev_run or not: one more turn in any case. */
	atomic_store(&w.quit, 1);
	OK(evc_request_stop(w.c, 0, NULL));
	ck_assert_int_eq(pthread_join(t, &failed), 0);
	ck_assert_ptr_null(failed);
	OK(evc_free(w.c));
	ev_loop_destroy(w.loop);
}
END_TEST

/* Cancelled while it stands before the wake-up: cancellation is off there. */
START_TEST(S4_a_requester_cancelled_in_the_middle_of_the_walk)
{
	struct listeners l;
	void *result;
	pthread_t t;
	int held;

	listen_all(&l);
	atomic_store(&went_on, 0);
	held = seam_hold("load", "next_of_kind", 1);
	t = spawn(ask_with_a_cancellation_pending, l.c);
	ck_assert(seam_await(held));
	ck_assert_int_eq(pthread_cancel(t), 0);
	seam_release(held);
	ck_assert_int_eq(pthread_join(t, &result), 0);
	ck_assert_int_eq(went_on, 1);
	all_told(&l);
}
END_TEST

API_MAIN("stop", S4_a_request_needs_nothing_that_can_fail,
	 S4_the_log_has_its_lines_without_memory,
	 S4_a_request_is_no_cancellation_point,
	 S4_a_cancelled_requester_leaves_the_wake_up_alive,
	 S4_a_requester_cancelled_in_the_middle_of_the_walk)
