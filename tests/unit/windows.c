/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Narrow places between the parts: somebody ends, begins or is cleared just
 * while another one stands between its look and what it does about it.
 */

#include "../support/api_util.h"

#include <ev.h>

#include "../support/seam.h"

static pthread_t
spawn(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, fn, arg), 0);
	return t;
}

/* ---- what is pending in the turn in which the stop came ---- */

struct turn {
	evc_reactor *r;
	evc_task task;
	ev_async other;
	ev_timer later;
	evc_status began;
	int ended;
};

static const evc_task_class accepted = {
	.name = "accepted",
	.flags = EVC_AFTER_STOP,
};

static void
end_task(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct turn *t = w->data;

	(void)loop;
	(void)revents;
	t->ended++;
	evc_task_end(&t->task);
}

/* As a listener that still accepts what is in its backlog. */
static void
begin_task(struct ev_loop *loop, ev_async *w, int revents)
{
	struct turn *t = w->data;

	(void)revents;
	t->began = evc_task_begin(t->r, &t->task, &accepted);
	ev_timer_init(&t->later, end_task, 0.02, 0);
	t->later.data = t;
	ev_timer_start(loop, &t->later);
}

/* The reactor's own watcher is called first and finds nothing alive; another
   one, of the same turn, then begins a task. */
START_TEST(J1_a_reactor_runs_on_for_a_task_begun_in_its_last_turn)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(NULL);
	struct turn t = { .began = -1 };

	OK(evc_reactor_attach(c, "loop", loop, &t.r));
	ev_async_init(&t.other, begin_task);
	t.other.data = &t;
	ev_async_start(loop, &t.other);
	ev_unref(loop);
	ev_async_send(loop, &t.other);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_reactor_run(t.r));
	OK(t.began);
	ck_assert_int_eq(t.ended, 1);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- a late task across a clear ---- */

struct loop_thread {
	evc_coord *c;
	atomic_int step, told;
	evc_status began;
};

static void
count_told(evc_task *t, void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
	evc_task_end(t);
}

static void *
begin_across_a_clear(void *arg)
{
	static evc_task_class k = {
		.name = "late",
		.on_stop = count_told,
		.flags = EVC_AFTER_STOP,
	};
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct loop_thread *l = arg;
	evc_task task = { 0 };
	evc_reactor *r;

	k.arg = &l->told;
	l->began = evc_reactor_attach(l->c, "loop", loop, &r);
	atomic_store(&l->step, 1);
	while (atomic_load(&l->step) < 2)
		t_sleep(0.001);
	if (l->began == 0)
		l->began = evc_task_begin(r, &task, &k);
	atomic_store(&l->step, 3);
	while (atomic_load(&l->step) < 4)
		t_sleep(0.001);
	ev_run(loop, EVRUN_NOWAIT);
	evc_task_end(&task);
	if (l->began == 0)
		l->began = evc_reactor_detach(r);
	ev_loop_destroy(loop);
	return NULL;
}

/* It was let in as a late one of a stop that is cleared before it stands in its
   list; in the new round it is a task like any other, and told of the stop. */
START_TEST(S1_a_task_begun_across_a_clear_is_told_of_the_next_stop)
{
	struct loop_thread l = { .began = -1 };
	pthread_t t;
	int held;

	seam_reset();
	l.c = new_coord(NULL);
	t = spawn(begin_across_a_clear, &l);
	UNTIL(atomic_load(&l.step) == 1);
	OK(evc_request_stop(l.c, 0, NULL));
	/* The first thing that a begin writes is its class's counter. */
	held = seam_hold_others("store", NULL, 1);
	atomic_store(&l.step, 2);
	ck_assert(seam_await(held));
	OK(evc_clear_stop(l.c));
	seam_release(held);
	UNTIL(atomic_load(&l.step) == 3);
	OK(evc_request_stop(l.c, 0, NULL));
	atomic_store(&l.step, 4);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	OK(l.began);
	ck_assert_int_eq(l.told, 1);
	OK(evc_free(l.c));
}
END_TEST

/* ---- an end between the two looks of evc_free ---- */

struct freer {
	evc_coord *c;
	evc_status st;
};

static void *
free_main(void *arg)
{
	struct freer *f = arg;

	f->st = evc_free(f->c);
	return NULL;
}

/* The thread rings after evc_free has joined those that rang, and is joined by
   its probe: then its record is in no list any more, and still has to be given
   back.  The address sanitizer sees whether it was. */
START_TEST(L3_a_thread_ends_while_evc_free_looks)
{
	struct guest g = { 0 };
	struct freer f = { NULL, -1 };
	evc_member_info info;
	pthread_t t;
	int held, tid;
	evc_id id;

	seam_reset();
	f.c = new_coord(NULL);
	OK(evc_thread_start(f.c, "guest", stay, &g, NULL, &id));
	UNTIL(atomic_load(&g.in));
	OK(evc_member_get(f.c, id, &info));
	ck_assert_int_eq(sscanf(info.where, "tid %d", &tid), 1);
	held = seam_hold_others("thread_join", NULL, 1);
	t = spawn(free_main, &f);
	ck_assert(seam_await(held));
	atomic_store(&g.open, 1);
	ck_assert(t_settle_gone(tid));
	seam_release(held);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	OK(f.st);
}
END_TEST

/* ---- the last of the background has ended, and nobody knows yet ---- */

START_TEST(J1_a_join_asks_for_no_stop_when_the_background_has_ended_too)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_member_opts o = { .flags = EVC_BACKGROUND };
	struct joiner j = { .opts = { .grace = INFINITY } };
	struct guest g = { 0 };
	evc_member_info info;
	evc_id back, front;
	int tid, probes;
	evc_coord *c;

	seam_reset();
	c = new_coord_with(NULL, &cfg);
	/* It cannot ring, and the clock stands still: no probe is due. */
	seam_fail_all("pidfd", NULL, 1, EMFILE);
	OK(evc_hold_begin(c, "front", NULL, &front));
	OK(evc_register_thread(c, "back", spawn(stay_thread, &g), &o, &back));
	OK(evc_member_get(c, back, &info));
	ck_assert_int_eq(sscanf(info.where, "tid %d", &tid), 1);
	/* This fault never comes, and counts. */
	probes = seam_fail("thread_join", "try_join", 1 << 30, 0);
	j.c = c;
	j.thread = spawn(joiner_main, &j);
	UNTIL(seam_arrivals(probes) > 0);
	atomic_store(&g.open, 1);
	ck_assert(t_settle_gone(tid));
	OK(evc_hold_end(c, front));
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 2);
	ck_assert(!evc_should_stop(c));
	ck_assert_uint_eq(j.v.stop.kind, 0);
	seam_reset();
	OK(evc_free(c));
}
END_TEST

API_MAIN("windows", J1_a_reactor_runs_on_for_a_task_begun_in_its_last_turn,
	 S1_a_task_begun_across_a_clear_is_told_of_the_next_stop,
	 L3_a_thread_ends_while_evc_free_looks,
	 J1_a_join_asks_for_no_stop_when_the_background_has_ended_too)
