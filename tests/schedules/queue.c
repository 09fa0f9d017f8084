/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue, stepped: who pushes and who pops against who is about to sleep,
 * the end of input and the stop against a push between its two steps, and what
 * is sent for a sleeper that has given up.
 */
#include "schedules.h"

#include "../support/queue_util.h"

static struct ev_loop *loop; /* of the coordinator, if a test makes one */
static evc_coord *coord;
static evc_queue *q;

static void
begin(size_t capacity, unsigned flags)
{
	coord = new_coord(loop);
	q = new_queue(coord, capacity, flags);
}

static void
end(void)
{
	drop_queue(coord, q);
	if (loop != NULL)
		ev_loop_destroy(loop);
	loop = NULL;
}

/* A call begins; its thread comes to a place and stands there.  Returns the
   hold. */
static int
qcall_held(struct qcall *w, int what, void *item, double timeout,
	   const char *op, const char *func)
{
	int h = seam_hold(op, func, 1);

	qcall_begin(w, q, what, item, timeout);
	held_at(h, op, func);
	return h;
}

/* Let it go on: what its call returned. */
static evc_status
qcall_go(struct qcall *w, int h)
{
	seam_release(h);
	return qcall_end(w);
}

static evc_status
do_push(evc_coord *c, void *arg)
{
	(void)c;
	return evc_queue_push(arg, ITEM(1), INFINITY);
}

static evc_status
do_pop(evc_coord *c, void *arg)
{
	void *item;

	(void)c;
	return evc_queue_pop(arg, &item, INFINITY);
}

/* ---- the sleep ---- */

/* Who waits has found nothing, and is about to count itself; what it waits for
   comes.  Fails without the second look. */
START_TEST(queue_who_is_about_to_sleep_looks_again)
{
	struct qcall w;
	int h;

	begin(1, 0);
	h = qcall_held(&w, BY_POP, NULL, INFINITY, "add", "look_at_side");
	push_now(q, 1, 1);
	OK(qcall_go(&w, h));
	push_now(q, 1, 1);
	h = qcall_held(&w, BY_PUSH, ITEM(2), INFINITY, "add", "look_at_side");
	pop_now(q, 1, 1);
	OK(qcall_go(&w, h));
	h = qcall_held(&w, BY_DRAIN, NULL, INFINITY, "add", "drain_queue");
	pop_now(q, 2, 2);
	OK(qcall_go(&w, h));
	end();
}
END_TEST

/* A push, and a pop, stands between its two steps; who needs the other comes,
   looks twice, and sleeps.  Fails when who is counted is looked for before the
   second step. */
START_TEST(queue_looks_for_sleepers_behind_its_last_step)
{
	struct actor a;
	struct qcall w;
	int h;

	begin(1, 0);
	h = actor_held(&a, do_push, coord, q, "store", "ring_push", 1);
	qcall_wait(&w, q, BY_POP, NULL);
	OK(actor_go(&a, h));
	OK(qcall_end(&w));
	push_now(q, 1, 1);
	h = actor_held(&a, do_pop, coord, q, "store", "ring_pop", 1);
	qcall_wait(&w, q, BY_PUSH, ITEM(2));
	OK(actor_go(&a, h));
	OK(qcall_end(&w));
	pop_now(q, 2, 2);
	end();
}
END_TEST

/* It stands behind its last step, before the look at the counts. */
START_TEST(queue_look_for_sleepers_may_come_late)
{
	struct actor a;
	struct qcall w;
	int h;

	begin(1, 0);
	h = actor_held(&a, do_push, coord, q, "load", "evc_queue_push", 1);
	qcall_begin(&w, q, BY_POP, NULL, INFINITY);
	OK(qcall_end(&w));
	qcall_wait(&w, q, BY_POP, NULL);
	/* It finds one who waits for another item, and sends for nothing. */
	OK(actor_go(&a, h));
	push_now(q, 2, 2);
	OK(qcall_end(&w));
	ck_assert_int_eq(NUMBER(w.item), 2);
	end();
}
END_TEST

/* ---- passing on ---- */

/* The first push stands between its steps; the second is done, and its sleeper
   finds nothing yet and sleeps again.  The first one sends for one.  Fails when
   that one does not send for the other. */
START_TEST(queue_pops_pass_on)
{
	struct qcall w[2];
	struct actor a;
	int h;

	begin(2, 0);
	h = actor_held(&a, do_push, coord, q, "store", "ring_push", 1);
	qcall_wait(&w[0], q, BY_POP, NULL);
	qcall_wait(&w[1], q, BY_POP, NULL);
	push_now(q, 2, 2);
	qcall_sleeps(&w[0]);
	qcall_sleeps(&w[1]);
	OK(actor_go(&a, h));
	OK(qcall_end(&w[0]));
	OK(qcall_end(&w[1]));
	ck_assert_int_eq(NUMBER(w[0].item) + NUMBER(w[1].item), 3);
	end();
}
END_TEST

START_TEST(queue_pushes_pass_on)
{
	struct qcall w[2];
	struct actor a;
	int h;

	begin(2, 0);
	push_now(q, 1, 2);
	h = actor_held(&a, do_pop, coord, q, "store", "ring_pop", 1);
	qcall_wait(&w[0], q, BY_PUSH, ITEM(3));
	qcall_wait(&w[1], q, BY_PUSH, ITEM(3));
	pop_now(q, 2, 2);
	qcall_sleeps(&w[0]);
	qcall_sleeps(&w[1]);
	OK(actor_go(&a, h));
	OK(qcall_end(&w[0]));
	OK(qcall_end(&w[1]));
	ck_assert_uint_eq(info_of(q).n, 2);
	end();
}
END_TEST

static void
count_items(evc_queue *from, void *item, evc_status why, void *arg)
{
	(void)from;
	(void)why;
	if (item != NULL)
		atomic_fetch_add((atomic_int *)arg, 1);
}

static void
some_turns(void)
{
	int i;

	for (i = 0; i < 10; i++)
		ev_run(loop, EVRUN_NOWAIT);
}

/* The same with a watch and a thread: it takes two, or each of them one.  Fails
   when the thread is left with an item there, or the watch. */
START_TEST(queue_watches_and_threads_pass_on)
{
	atomic_int n = 0;
	struct qcall w;
	struct actor a;
	int h;

	loop = ev_loop_new(0);
	begin(2, 0);
	h = actor_held(&a, do_push, coord, q, "store", "ring_push", 1);
	OK(evc_queue_watch(q, evc_home(coord), count_items, &n, 0, NULL));
	some_turns();
	qcall_wait(&w, q, BY_POP, NULL);
	push_now(q, 2, 2);
	some_turns();
	qcall_sleeps(&w);
	OK(actor_go(&a, h));
	UNTIL((ev_run(loop, EVRUN_NOWAIT),
	       atomic_load(&n) + atomic_load(&w.done) == 2));
	if (!atomic_load(&w.done))
		OK(evc_queue_close(q));
	ck_assert_int_eq(qcall_end(&w),
			 atomic_load(&n) == 2 ? -EVC_OUT_OF_RANGE : 0);
	OK(evc_queue_close(q));
	OK(evc_join(coord, NULL, NULL));
	end();
}
END_TEST

/* ---- watches ---- */

/* The loop's thread stands at the place. */
struct meanwhile {
	int hold;
	bool ends;
};

static evc_status
do_meanwhile(evc_coord *c, void *arg)
{
	struct meanwhile *m = arg;
	evc_status st;

	(void)c;
	if (!seam_await(m->hold))
		return -EVC_INTERNAL;
	if (!m->ends) {
		st = evc_queue_push(q, ITEM(1), 0);
		seam_release(m->hold);
		return st;
	}
	/* Closing takes the lock that is held there. */
	seam_release(m->hold);
	return evc_queue_close(q);
}

/* A watch has found nothing and is about to be armed; an item comes, or the end
   of input.  Fails without the second look. */
START_TEST(queue_watch_that_is_about_to_wait_looks_again)
{
	struct meanwhile m;
	atomic_int n = 0;
	struct actor a;
	int way;

	loop = ev_loop_new(0);
	begin(2, 0);
	for (way = 0; way < 2; way++) {
		OK(evc_queue_watch(q, evc_home(coord), count_items, &n, 0,
				   NULL));
		m.hold = seam_hold("add", "arm_watch", 1);
		m.ends = way == 1;
		actor_begin(&a, do_meanwhile, coord, &m);
		some_turns();
		OK(actor_end(&a));
		some_turns();
		ck_assert_int_eq(atomic_load(&n), 1);
		OK(evc_queue_close(q));
		OK(evc_join(coord, NULL, NULL));
		OK(evc_clear_stop(coord));
		OK(evc_queue_reopen(q));
	}
	end();
}
END_TEST

static void
count_ends(evc_queue *from, void *item, evc_status why, void *arg)
{
	(void)from;
	(void)why;
	if (item == NULL)
		atomic_fetch_add((atomic_int *)arg, 1);
}

struct to_watch {
	evc_reactor *r;
	atomic_int *ends;
};

static evc_status
do_watch(evc_coord *c, void *arg)
{
	const struct to_watch *w = arg;

	(void)c;
	return evc_queue_watch(q, w->r, count_ends, w->ends, 0, NULL);
}

static bool
no_looper(const evc_member_info *m, void *arg)
{
	*(int *)arg += m->kind == EVC_LOOPER;
	return true;
}

/* Its first turn comes before whoever makes it has the looper that stands for
   it.  Fails when the turn does not wait: the looper would stay. */
START_TEST(queue_watch_has_its_first_turn_when_it_is_made)
{
	evc_reactor *r = NULL;
	atomic_int ends = 0;
	struct actor a;
	int h, n = 0;

	begin(2, 0);
	OK(evc_reactor_start(coord, "loop", NULL, NULL, NULL, &r));
	OK(evc_queue_close(q));
	h = actor_held(&a, do_watch, coord, &(struct to_watch){ r, &ends },
		       "lock", "evc__loop_looper_start", 1);
	t_sleep(0.02);
	ck_assert_int_eq(atomic_load(&ends), 0);
	OK(actor_go(&a, h));
	UNTIL(atomic_load(&ends) == 1);
	OK(evc_member_each(coord, no_looper, &n));
	ck_assert_int_eq(n, 0);
	OK(evc_request_stop(coord, 0, "stop"));
	OK(evc_join(coord, NULL, NULL));
	end();
}
END_TEST

/* ---- the end of its time ---- */

/* The time of a sleeper is over; before it gets up it is sent for.  Fails when
   it leaves the item, which nobody else is sent for. */
START_TEST(queue_who_was_sent_for_does_not_leave_for_its_time)
{
	struct qcall w;
	int h;

	begin(1, 0);
	h = qcall_held(&w, BY_POP, NULL, 0.02, "lock", "wait_true");
	push_now(q, 1, 1);
	OK(qcall_go(&w, h));
	push_now(q, 1, 1);
	h = qcall_held(&w, BY_PUSH, ITEM(2), 0.02, "lock", "wait_true");
	pop_now(q, 1, 1);
	OK(qcall_go(&w, h));
	end();
}
END_TEST

/* It was sent for and gives up, because somebody else was faster; there are
   others asleep.  Fails when they are not counted any more. */
START_TEST(queue_who_gives_up_takes_nobodys_place)
{
	struct qcall w, v;
	int h;

	begin(1, 0);
	qcall_wait(&v, q, BY_POP, NULL);
	h = qcall_held(&w, BY_POP, NULL, 0.02, "lock", "wait_true");
	/* Whichever of the two it sends for, this is faster - or not. */
	push_now(q, 1, 1);
	if (evc_queue_pop(q, &w.item, 0) != 0) {
		OK(qcall_end(&v));
		qcall_wait(&v, q, BY_POP, NULL);
	}
	ck_assert_int_eq(qcall_go(&w, h), -EVC_DEADLINE_EXCEEDED);
	push_now(q, 2, 2);
	OK(qcall_end(&v));
	ck_assert_int_eq(NUMBER(v.item), 2);
	end();
}
END_TEST

/* A stop was taken back before one that it woke had got up; meanwhile another
   one has come, and an item.  The first leaves, and takes its place in the
   numbers with it, which may be that of the one sent for.  Fails when the other
   does not look unless the numbers say so. */
START_TEST(queue_who_leaves_for_a_stop_leaves_the_item)
{
	struct qcall w, v;
	int h;

	begin(1, 0);
	h = seam_hold("lock", "wait_true", 1);
	qcall_wait(&w, q, BY_POP, NULL);
	OK(evc_request_stop(coord, 0, "stop"));
	HELD(h);
	OK(evc_clear_stop(coord));
	qcall_wait(&v, q, BY_POP, NULL);
	push_now(q, 1, 1);
	ck_assert_int_eq(qcall_go(&w, h), -EVC_CANCELLED);
	OK(qcall_end(&v));
	end();
}
END_TEST

/* ---- the end of input ---- */

/* A push has taken its position and not handed its item over; the queue is
   closed.  Fails when a pop takes what it cannot have yet for the end. */
START_TEST(queue_close_waits_for_a_push_between_its_steps)
{
	struct qcall w;
	struct actor a;
	void *item;
	int h;

	begin(2, 0);
	h = actor_held(&a, do_push, coord, q, "store", "ring_push", 1);
	OK(evc_queue_close(q));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_pop(q, &item, 0));
	qcall_wait(&w, q, BY_POP, NULL);
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_drain(q, 0));
	REFUSED(EVC_FAILED_PRECONDITION, evc_queue_free(q));
	OK(actor_go(&a, h));
	OK(qcall_end(&w));
	REFUSED(EVC_OUT_OF_RANGE, evc_queue_pop(q, &item, 0));
	end();
}
END_TEST

/* A push stands at a swap; input ends, by a close or a stop, and a pop says so.
   The push is refused for the same reason, and nothing has got in. */
static void
push_is_too_late(const char *func, evc_status why)
{
	struct actor a;
	void *item;
	int h;

	h = actor_held(&a, do_push, coord, q, "cas", func, 1);
	if (why == EVC_CANCELLED)
		OK(evc_request_stop(coord, 0, "stop"));
	else
		OK(evc_queue_close(q));
	REFUSED(why, evc_queue_pop(q, &item, INFINITY));
	ck_assert_int_eq(actor_go(&a, h), -why);
	REFUSED(EVC_NOT_FOUND, evc_queue_try_pop(q, &item));
}

/* It has not taken its position, but has found the queue open.  Fails when it
   gets in behind a pop that has said that nothing comes. */
START_TEST(queue_push_that_comes_too_late_is_refused)
{
	begin(2, 0);
	push_is_too_late("ring_push", EVC_OUT_OF_RANGE);
	end();
}
END_TEST

/* A pop stands before its swap, and the queue is cancelled: the item stays. */
START_TEST(queue_pop_that_comes_too_late_is_cancelled)
{
	struct actor a;
	int h;

	begin(2, 0);
	push_now(q, 1, 1);
	h = actor_held(&a, do_pop, coord, q, "cas", "ring_pop", 1);
	OK(evc_queue_cancel(q));
	ck_assert_int_eq(actor_go(&a, h), -EVC_CANCELLED);
	take_now(q, 1, 1);
	end();
}
END_TEST

/* ---- the stop ---- */

/* The same for a stop of a queue that is emptied first: a push has asked for
   the stop, and stands before its swap.  Fails when it gets in behind a pop
   that has said that nothing is left. */
START_TEST(queue_push_that_comes_behind_the_stop_is_refused)
{
	begin(2, EVC_QUEUE_DRAIN);
	push_is_too_late("ring_push", EVC_CANCELLED);
	end();
}
END_TEST

/* And a push that is between its steps is waited for. */
START_TEST(queue_stop_waits_for_a_push_between_its_steps)
{
	struct qcall w;
	struct actor a;
	void *item;
	int h;

	begin(2, EVC_QUEUE_DRAIN);
	h = actor_held(&a, do_push, coord, q, "store", "ring_push", 1);
	OK(evc_request_stop(coord, 0, "stop"));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_pop(q, &item, 0));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_pop(q, &item, 0.01));
	qcall_begin(&w, q, BY_POP, NULL, INFINITY);
	t_sleep(0.05);
	ck_assert(!atomic_load(&w.done));
	OK(actor_go(&a, h));
	OK(qcall_end(&w));
	REFUSED(EVC_CANCELLED, evc_queue_pop(q, &item, INFINITY));
	end();
}
END_TEST

/* A watch waits for it, too, and the join for the watch. */
START_TEST(queue_watch_waits_for_a_push_between_its_steps)
{
	atomic_int n = 0;
	struct actor a;
	int h;

	loop = ev_loop_new(0);
	begin(2, EVC_QUEUE_DRAIN);
	OK(evc_queue_watch(q, evc_home(coord), count_items, &n, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	h = actor_held(&a, do_push, coord, q, "store", "ring_push", 1);
	OK(evc_request_stop(coord, 0, "stop"));
	some_turns();
	ck_assert(!evc_all_stopped(coord));
	OK(actor_go(&a, h));
	OK(evc_join(coord, NULL, NULL));
	ck_assert_int_eq(atomic_load(&n), 1);
	end();
}
END_TEST

/* The stop is taken back; a push is about to take away what the pop has left in
   the word, and the next stop comes, and its pop.  Fails when it goes on
   without another look at the stop. */
START_TEST(queue_push_asks_again_when_a_stop_was_taken_back)
{
	void *item;

	begin(2, EVC_QUEUE_DRAIN);
	OK(evc_request_stop(coord, 0, "stop"));
	REFUSED(EVC_CANCELLED, evc_queue_pop(q, &item, INFINITY));
	OK(evc_clear_stop(coord));
	push_is_too_late("evc__queue_barred", EVC_CANCELLED);
	end();
}
END_TEST

/* ---- what fails ---- */

START_TEST(queue_new_without_memory_leaves_nothing)
{
	evc_status st;
	int h, n;

	coord = new_coord(NULL);
	q = NULL;
	for (n = 1, st = -1; st != 0; n++) {
		ck_assert_int_lt(n, 20);
		h = seam_fail("alloc", NULL, n, ENOMEM);
		st = evc_queue_new(coord, "q", 4, NULL, &q);
		if (st != 0) {
			ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
			ck_assert_str_ne(evc_last_error(), "");
			ck_assert_ptr_null(q);
			ck_assert_int_ge(seam_arrivals(h), n);
		}
		seam_reset();
	}
	ck_assert_int_gt(n, 5); /* the queue, its places, three conditions */
	end();
}
END_TEST

START_TEST(queue_watch_without_memory_leaves_nothing)
{
	evc_status st;
	atomic_int n_items = 0;
	evc_id id = 77;
	int n;

	loop = ev_loop_new(0);
	begin(2, 0);
	for (n = 1, st = -1; st != 0; n++) {
		ck_assert_int_lt(n, 20);
		seam_fail("alloc", NULL, n, ENOMEM);
		st = evc_queue_watch(q, evc_home(coord), count_items, &n_items,
				     0, &id);
		seam_reset();
		if (st != 0) {
			ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
			ck_assert_uint_eq(id, 77);
		}
		ev_run(loop, EVRUN_NOWAIT);
	}
	ck_assert_int_gt(n, 3);
	push_now(q, 1, 1);
	UNTIL((ev_run(loop, EVRUN_NOWAIT), atomic_load(&n_items) == 1));
	OK(evc_queue_unwatch(q, id));
	OK(evc_join(coord, NULL, NULL));
	end();
}
END_TEST

static evc_status
feed_nothing(evc_queue *into, unsigned number, void **ret_item, void *arg)
{
	(void)into;
	(void)number;
	(void)ret_item;
	atomic_fetch_add((atomic_int *)arg, 1);
	return EVC_OUT_OF_RANGE;
}

/* "none was started" */
START_TEST(queue_feed_starts_all_or_none)
{
	atomic_int calls = 0;
	int i;

	begin(2, 0);
	for (i = 1; i <= 4; i++) {
		seam_fail("thread_create", NULL, i, EAGAIN);
		REFUSED(EVC_RESOURCE_EXHAUSTED,
			evc_queue_feed(q, "feeder", 4, feed_nothing, &calls,
				       NULL));
		seam_reset();
		OK(evc_join(coord, NULL, NULL));
		ck_assert_int_eq(atomic_load(&calls), 0);
		ck_assert(!info_of(q).closed);
		OK(evc_clear_stop(coord));
		OK(evc_queue_reopen(q));
	}
	seam_fail("alloc", "begin_feed", 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_queue_feed(q, "feeder", 4, feed_nothing, &calls, NULL));
	OK(evc_queue_feed(q, "feeder", 4, feed_nothing, &calls, NULL));
	OK(evc_join(coord, NULL, NULL));
	ck_assert_int_eq(atomic_load(&calls), 4);
	ck_assert(info_of(q).closed);
	end();
}
END_TEST

static evc_status
feed_error(evc_queue *into, unsigned number, void **ret_item, void *arg)
{
	(void)into;
	(void)number;
	(void)ret_item;
	return *(evc_status *)arg;
}

/* The last feeder is about to leave with an error.  Fails when a pop gets the
   end of input, or waits. */
START_TEST(queue_feed_cancels_before_it_leaves)
{
	evc_status st = EVC_DATA_LOSS;
	void *item;
	int h;

	begin(2, 0);
	h = seam_hold("lock", "remove_feeders", 1);
	OK(evc_queue_feed(q, "feeder", 1, feed_error, &st, NULL));
	HELD(h);
	ck_assert(info_of(q).cancelled);
	ck_assert(!info_of(q).closed);
	REFUSED(EVC_CANCELLED, evc_queue_pop(q, &item, INFINITY));
	REFUSED(EVC_FAILED_PRECONDITION, evc_queue_reopen(q));
	seam_release(h);
	ck_assert_int_eq(evc_join(coord, NULL, NULL), EVC_DATA_LOSS);
	end();
}
END_TEST

static evc_status
feed_exit(evc_queue *into, unsigned number, void **ret_item, void *arg)
{
	(void)into;
	(void)number;
	(void)ret_item;
	(void)arg;
	pthread_exit(NULL);
}

/* A thread returns what its pop said of a queue that a feeder's error has
   cancelled, and the feeder stands still right behind the cancel.  Fails when
   that is the first error, and not the feeder's. */
START_TEST(queue_feed_fails_before_it_cancels)
{
	evc_status code = EVC_DATA_LOSS;
	int exits, h;

	for (exits = 0; exits < 2; exits++) {
		evc_verdict v;
		evc_reason r;

		begin(2, 0);
		OK(evc_thread_start(coord, "popper", do_pop, q, NULL, NULL));
		h = seam_hold("lock", "remove_feeders", 1);
		OK(evc_queue_feed(q, "feeder", 1,
				  exits ? feed_exit : feed_error, &code, NULL));
		HELD(h);
		UNTIL(evc_should_stop(coord));
		OK(evc_reason_get(coord, 0, &r));
		ck_assert_int_eq(r.code, exits ? EVC_ABORTED : EVC_DATA_LOSS);
		ck_assert_str_eq(r.who, "feeder/0");
		seam_release(h);
		ck_assert_int_eq(evc_join(coord, NULL, &v), r.code);
		ck_assert_uint_eq(v.n_errors, 1);
		end();
		seam_reset();
	}
}
END_TEST

SCHEDULES_MAIN("queue", queue_who_is_about_to_sleep_looks_again,
	       queue_looks_for_sleepers_behind_its_last_step,
	       queue_look_for_sleepers_may_come_late, queue_pops_pass_on,
	       queue_pushes_pass_on, queue_watches_and_threads_pass_on,
	       queue_watch_that_is_about_to_wait_looks_again,
	       queue_watch_has_its_first_turn_when_it_is_made,
	       queue_who_was_sent_for_does_not_leave_for_its_time,
	       queue_who_gives_up_takes_nobodys_place,
	       queue_who_leaves_for_a_stop_leaves_the_item,
	       queue_close_waits_for_a_push_between_its_steps,
	       queue_push_that_comes_too_late_is_refused,
	       queue_pop_that_comes_too_late_is_cancelled,
	       queue_push_that_comes_behind_the_stop_is_refused,
	       queue_stop_waits_for_a_push_between_its_steps,
	       queue_watch_waits_for_a_push_between_its_steps,
	       queue_push_asks_again_when_a_stop_was_taken_back,
	       queue_new_without_memory_leaves_nothing,
	       queue_watch_without_memory_leaves_nothing,
	       queue_feed_starts_all_or_none,
	       queue_feed_cancels_before_it_leaves,
	       queue_feed_fails_before_it_cancels)
