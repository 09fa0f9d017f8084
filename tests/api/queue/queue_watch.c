/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watches: pops on a loop, beside others and threads; what ends them.
 */
#include "../../support/queue_util.h"

/* What a watch has seen, on the loop's thread alone; n and the end also by
   others. */
struct seen {
	atomic_int n, ends, why;
	int last, most_in_turn, in_turn;
	unsigned turns; /* of the loop, at the last call */
	struct ev_loop *loop;
	atomic_int tid;
	bool order; /* each is one more than the one before */
	/* what to do in a call: of the item with that number, or the last */
	int at;
	void (*act)(struct seen *s, evc_queue *q);
	evc_id id;
	evc_coord *c;
};

static void
see(evc_queue *q, void *item, evc_status why, void *arg)
{
	struct seen *s = arg;
	unsigned turn = s->loop != NULL ? ev_iteration(s->loop) : 0;

	if (turn != s->turns)
		s->in_turn = 0;
	s->turns = turn;
	atomic_store(&s->tid, own_tid());
	if (item == NULL) {
		atomic_store(&s->why, why);
		atomic_fetch_add(&s->ends, 1);
	} else {
		if (NUMBER(item) != s->last + 1)
			s->order = false;
		s->last = (int)NUMBER(item);
		if (++s->in_turn > s->most_in_turn)
			s->most_in_turn = s->in_turn;
		atomic_fetch_add(&s->n, 1);
	}
	if (s->act != NULL && s->at == NUMBER(item))
		s->act(s, q);
}

static struct seen
seen_on(struct ev_loop *loop)
{
	return (struct seen){ .loop = loop, .order = true, .at = -1 };
}

/* A loop of this thread, with a queue. */
struct place {
	struct ev_loop *loop;
	evc_coord *c;
	evc_queue *q;
};

static struct place
new_place(size_t capacity, unsigned flags)
{
	struct place p;

	p.loop = ev_loop_new(0);
	p.c = new_coord(p.loop);
	p.q = new_queue(p.c, capacity, flags);
	return p;
}

static void
drop_place(struct place *p)
{
	drop_queue(p->c, p->q);
	ev_loop_destroy(p->loop);
}

/* Turns of the loop until something is so. */
#define TURN_UNTIL(p, cond) \
	do { \
		double until_ = t_now() + T_LIMIT; \
		while (!(cond)) { \
			ck_assert_msg(t_now() < until_, "never: %s", #cond); \
			ev_run((p)->loop, EVRUN_NOWAIT); \
		} \
	} while (0)

static void
some_turns(struct place *p)
{
	int i;

	for (i = 0; i < 20; i++)
		ev_run(p->loop, EVRUN_NOWAIT);
}

static evc_id
watch(struct place *p, struct seen *s, unsigned flags)
{
	evc_id id = 0;

	*s = seen_on(p->loop);
	OK(evc_queue_watch(p->q, evc_home(p->c), see, s, flags, &id));
	ck_assert_uint_ne(id, 0);
	s->id = id;
	s->c = p->c;
	return id;
}

/* ---- items ---- */

START_TEST(watch_is_called_with_each_item)
{
	struct place p = new_place(8, 0);
	struct seen s;

	push_now(p.q, 1, 3);
	watch(&p, &s, 0);
	ck_assert_int_eq(atomic_load(&s.n), 0); /* on the loop alone */
	TURN_UNTIL(&p, atomic_load(&s.n) == 3);
	push_now(p.q, 4, 8);
	TURN_UNTIL(&p, atomic_load(&s.n) == 8);
	ck_assert(s.order);
	some_turns(&p);
	ck_assert_int_eq(atomic_load(&s.ends), 0);
	OK(evc_queue_close(p.q));
	TURN_UNTIL(&p, atomic_load(&s.ends) == 1);
	ck_assert_int_eq(atomic_load(&s.why), EVC_OUT_OF_RANGE);
	ck_assert_int_eq(atomic_load(&s.n), 8);
	drop_place(&p);
}
END_TEST

/* "at most 64 in a turn" */
START_TEST(watch_takes_64_in_a_turn_at_most)
{
	struct place p = new_place(1000, 0);
	struct seen s;

	push_now(p.q, 1, 1000);
	watch(&p, &s, 0);
	TURN_UNTIL(&p, atomic_load(&s.n) == 1000);
	ck_assert(s.order);
	ck_assert_int_eq(s.most_in_turn, 64);
	OK(evc_queue_close(p.q));
	TURN_UNTIL(&p, atomic_load(&s.ends) == 1);
	drop_place(&p);
}
END_TEST

static void *
push_100(void *arg)
{
	int i;

	for (i = 1; i <= 100; i++)
		if (evc_queue_push(arg, ITEM(i), INFINITY) != 0)
			return arg;
	return evc_queue_close(arg) == 0 ? NULL : arg;
}

/* The loop sleeps in its poll, and a push on another thread wakes it; room that
   it makes wakes that. */
START_TEST(watch_wakes_a_loop_that_sleeps)
{
	struct place p = new_place(3, 0);
	pthread_t t;
	struct seen s;
	void *bad;

	watch(&p, &s, 0);
	OK(pthread_create(&t, NULL, push_100, p.q));
	/* "keeps the loop's run and joins waiting" */
	OK(evc_join(p.c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&s.n), 100);
	ck_assert(s.order);
	ck_assert_int_eq(atomic_load(&s.ends), 1);
	ck_assert_int_eq(atomic_load(&s.tid), own_tid());
	OK(pthread_join(t, &bad));
	ck_assert_ptr_null(bad);
	drop_place(&p);
}
END_TEST

/* From a thread, on the loop of another one. */
START_TEST(watch_may_be_made_by_any_thread)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 4, 0);
	struct seen s = seen_on(NULL);
	evc_reactor *r = NULL;
	evc_id id;
	int i;

	OK(evc_reactor_start(c, "loop", NULL, NULL, NULL, &r));
	OK(evc_queue_watch(q, r, see, &s, 0, &id));
	for (i = 1; i <= 500; i++)
		OK(evc_queue_push(q, ITEM(i), INFINITY));
	UNTIL(atomic_load(&s.n) == 500);
	ck_assert_int_ne(atomic_load(&s.tid), own_tid());
	/* "Thread: the loop's." */
	REFUSED(EVC_FAILED_PRECONDITION, evc_queue_unwatch(q, id));
	OK(evc_request_stop(c, 0, "stop"));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&s.ends), 1);
	ck_assert_int_eq(atomic_load(&s.why), EVC_CANCELLED);
	ck_assert(s.order);
	drop_queue(c, q);
}
END_TEST

START_TEST(watches_and_threads_share_a_queue)
{
	struct place p = new_place(16, 0);
	struct seen s[3];
	struct qcall w[40];
	int i, by_threads = 0, by_loop = 0;

	for (i = 0; i < 3; i++) {
		watch(&p, &s[i], 0);
		some_turns(&p);
	}
	for (i = 0; i < 40; i++)
		qcall_begin(&w[i], p.q, BY_POP, NULL, INFINITY);
	UNTIL(info_of(p.q).n_popping == 40);
	/* While the loop does not turn these are for the threads. */
	push_now(p.q, 1, 10);
	UNTIL(info_of(p.q).n_popping < 40);
	for (i = 11; i <= 400; i++) {
		if (evc_queue_push(p.q, ITEM(i), 0) == 0)
			continue;
		i--;
		ev_run(p.loop, EVRUN_NOWAIT);
	}
	OK(evc_queue_close(p.q));
	TURN_UNTIL(&p, atomic_load(&s[0].ends) && atomic_load(&s[1].ends) &&
			       atomic_load(&s[2].ends));
	for (i = 0; i < 3; i++) {
		by_loop += atomic_load(&s[i].n);
		ck_assert_int_eq(atomic_load(&s[i].ends), 1);
		ck_assert_int_eq(atomic_load(&s[i].why), EVC_OUT_OF_RANGE);
	}
	for (i = 0; i < 40; i++) {
		evc_status st = qcall_end(&w[i]);

		ck_assert(st == 0 || st == -EVC_OUT_OF_RANGE);
		by_threads += st == 0;
	}
	ck_assert_int_eq(by_threads + by_loop, 400);
	ck_assert_int_gt(by_threads, 0);
	ck_assert_int_gt(by_loop, 0);
	drop_place(&p);
}
END_TEST

/* ---- what it keeps ---- */

START_TEST(watch_in_the_background_keeps_nobody)
{
	struct place p = new_place(4, 0);
	struct seen s;

	watch(&p, &s, EVC_BACKGROUND);
	push_now(p.q, 1, 2);
	/* Nothing but it is left, so this asks for the stop. */
	OK(evc_join(p.c, NULL, NULL));
	ck_assert(evc_should_stop(p.c));
	ck_assert_int_eq(atomic_load(&s.ends), 1);
	ck_assert_int_eq(atomic_load(&s.why), EVC_CANCELLED);
	drop_place(&p);
}
END_TEST

START_TEST(watch_keeps_its_loop_running)
{
	struct place p = new_place(4, 0);
	struct seen s;
	evc_id id;

	id = watch(&p, &s, 0);
	some_turns(&p);
	/* libev's own answer: a turn that may not sleep still has something. */
	ck_assert(ev_run(p.loop, EVRUN_NOWAIT) != 0);
	OK(evc_queue_unwatch(p.q, id));
	some_turns(&p);
	ck_assert(ev_run(p.loop, EVRUN_NOWAIT) == 0);
	watch(&p, &s, EVC_BACKGROUND);
	some_turns(&p);
	ck_assert(ev_run(p.loop, EVRUN_NOWAIT) == 0);
	OK(evc_queue_close(p.q));
	TURN_UNTIL(&p, atomic_load(&s.ends) == 1);
	drop_place(&p);
}
END_TEST

START_TEST(watch_holds_up_free_and_detach)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 4, 0);
	struct seen s = seen_on(loop);
	evc_reactor *r;
	evc_id id;

	OK(evc_reactor_attach(c, "loop", loop, &r));
	OK(evc_queue_watch(q, r, see, &s, EVC_BACKGROUND, &id));
	REFUSED(EVC_FAILED_PRECONDITION, evc_queue_free(q));
	HAS(evc_last_error(), "watches");
	REFUSED(EVC_FAILED_PRECONDITION, evc_reactor_detach(r));
	ev_run(loop, EVRUN_NOWAIT);
	REFUSED(EVC_FAILED_PRECONDITION, evc_queue_free(q));
	REFUSED(EVC_FAILED_PRECONDITION, evc_reactor_detach(r));
	OK(evc_queue_unwatch(q, id));
	OK(evc_reactor_detach(r));
	ck_assert_int_eq(atomic_load(&s.ends), 0);
	OK(evc_queue_free(q));
	ev_loop_destroy(loop);
	OK(evc_free(c));
}
END_TEST

/* ---- how it ends ---- */

START_TEST(watch_ends_at_a_stop)
{
	struct place p = new_place(4, 0);
	struct seen s, t;
	evc_id id;

	watch(&p, &s, 0);
	some_turns(&p);
	/* This one has not had a turn when the stop comes. */
	id = watch(&p, &t, 0);
	push_now(p.q, 1, 2);
	OK(evc_request_stop(p.c, 0, "stop"));
	OK(evc_join(p.c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&s.ends), 1);
	ck_assert_int_eq(atomic_load(&t.ends), 1);
	ck_assert_int_eq(atomic_load(&s.why), EVC_CANCELLED);
	ck_assert_int_eq(atomic_load(&t.why), EVC_CANCELLED);
	/* "items stay" */
	ck_assert_int_eq(atomic_load(&s.n) + atomic_load(&t.n), 0);
	take_now(p.q, 1, 2);
	REFUSED(EVC_NOT_FOUND, evc_queue_unwatch(p.q, id));
	REFUSED(EVC_CANCELLED, evc_queue_watch(p.q, evc_home(p.c), see, &s, 0,
					       &id));
	drop_place(&p);
}
END_TEST

START_TEST(watch_of_a_draining_queue_empties_it_after_a_stop)
{
	struct place p = new_place(300, EVC_QUEUE_DRAIN);
	struct seen s;

	watch(&p, &s, 0);
	push_now(p.q, 1, 300);
	OK(evc_request_stop(p.c, 0, "stop"));
	OK(evc_join(p.c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&s.n), 300);
	ck_assert(s.order);
	ck_assert_int_eq(s.most_in_turn, 64);
	ck_assert_int_eq(atomic_load(&s.ends), 1);
	ck_assert_int_eq(atomic_load(&s.why), EVC_CANCELLED);
	drop_place(&p);
}
END_TEST

START_TEST(watch_ends_at_a_cancel)
{
	struct place p = new_place(4, EVC_QUEUE_DRAIN);
	struct seen s;

	watch(&p, &s, 0);
	some_turns(&p);
	OK(evc_queue_cancel(p.q));
	OK(evc_join(p.c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&s.ends), 1);
	ck_assert_int_eq(atomic_load(&s.why), EVC_CANCELLED);
	drop_place(&p);
}
END_TEST

/* The loop is destroyed: before its first turn, armed, and with a turn due. */
START_TEST(watch_ends_when_its_loop_is_destroyed)
{
	struct ev_loop *loop;
	evc_coord *c;
	evc_queue *q;
	struct seen s;
	evc_reactor *r;
	evc_id id;
	int way;

	for (way = 0; way < 3; way++) {
		loop = ev_loop_new(0);
		c = new_coord(NULL);
		q = new_queue(c, 4, 0);
		s = seen_on(NULL);
		OK(evc_reactor_attach(c, "loop", loop, &r));
		OK(evc_queue_watch(q, r, see, &s, 0, &id));
		if (way > 0) {
			ev_run(loop, EVRUN_NOWAIT);
			ev_run(loop, EVRUN_NOWAIT);
		}
		if (way > 1)
			push_now(q, 1, 1);
		ev_loop_destroy(loop);
		ck_assert_int_eq(atomic_load(&s.ends), 1);
		ck_assert_int_eq(atomic_load(&s.why), EVC_CANCELLED);
		ck_assert_int_eq(atomic_load(&s.n), 0);
		REFUSED(EVC_NOT_FOUND,
			evc_queue_watch(q, r, see, &s, 0, &id));
		/* A push finds nobody to wake, and is fine. */
		push_now(q, 2, 2);
		drop_queue(c, q);
	}
}
END_TEST

struct maker {
	evc_queue *q;
	evc_reactor *r;
	struct seen *s;
	evc_status st;
};

static void *
make_watch(void *arg)
{
	struct maker *m = arg;

	m->st = evc_queue_watch(m->q, m->r, see, m->s, 0, NULL);
	return NULL;
}

/* Made by another thread it takes the loop two turns until it is in its place:
   a stop, or the end of the loop, at any moment of that is heard. */
START_TEST(watch_hears_of_an_end_in_its_first_turns)
{
	int way, turns, i;

	for (way = 0; way < 6; way++) {
		for (turns = 0; turns < 4; turns++) {
			struct ev_loop *loop = ev_loop_new(0);
			evc_coord *c = new_coord(NULL);
			evc_queue *q = new_queue(
				c, 4, way % 2 > 0 ? EVC_QUEUE_DRAIN : 0);
			struct seen s = seen_on(NULL);
			struct maker m = { .q = q, .s = &s, .st = -1 };
			pthread_t t;

			OK(evc_reactor_attach(c, "loop", loop, &m.r));
			OK(pthread_create(&t, NULL, make_watch, &m));
			OK(pthread_join(t, NULL));
			OK(m.st);
			for (i = 0; i < turns; i++)
				ev_run(loop, EVRUN_NOWAIT);
			if (way < 4)
				OK(evc_request_stop(c, 0, "stop"));
			if (way < 2)
				OK(evc_join(c, NULL, NULL));
			ev_loop_destroy(loop);
			ck_assert_int_eq(atomic_load(&s.ends), 1);
			ck_assert_int_eq(atomic_load(&s.why), EVC_CANCELLED);
			drop_queue(c, q);
		}
	}
}
END_TEST

/* "Whoever waited when it was ended hears of that all the same." */
START_TEST(watch_hears_of_an_end_that_was_opened_again)
{
	static const evc_status whys[] = { EVC_OUT_OF_RANGE, EVC_CANCELLED };
	int way;

	for (way = 0; way < 2; way++) {
		struct place p = new_place(4, 0);
		struct seen s, again;

		watch(&p, &s, 0);
		some_turns(&p);
		if (way == 0)
			OK(evc_queue_close(p.q));
		else
			OK(evc_queue_cancel(p.q));
		OK(evc_queue_reopen(p.q));
		push_now(p.q, 1, 1);
		some_turns(&p);
		ck_assert_int_eq(atomic_load(&s.n), 0);
		ck_assert_int_eq(atomic_load(&s.ends), 1);
		ck_assert_int_eq(atomic_load(&s.why), whys[way]);
		watch(&p, &again, 0); /* of the new round */
		some_turns(&p);
		ck_assert_int_eq(atomic_load(&again.ends), 0);
		TURN_UNTIL(&p, atomic_load(&again.n) == 1);
		OK(evc_queue_close(p.q));
		TURN_UNTIL(&p, atomic_load(&again.ends) == 1);
		drop_place(&p);
	}
}
END_TEST

static void
act_unwatch(struct seen *s, evc_queue *q)
{
	if (evc_queue_unwatch(q, s->id) != 0)
		s->order = false;
}

/* "after it returned fn is not called" */
START_TEST(unwatch_ends_it_at_once)
{
	struct place p = new_place(8, 0);
	struct seen s;
	evc_id id;

	/* Before its first turn; armed; with a turn due; in its call. */
	id = watch(&p, &s, 0);
	push_now(p.q, 1, 1);
	OK(evc_queue_unwatch(p.q, id));
	some_turns(&p);
	id = watch(&p, &s, 0);
	TURN_UNTIL(&p, atomic_load(&s.n) == 1);
	some_turns(&p);
	OK(evc_queue_unwatch(p.q, id));
	some_turns(&p);
	ck_assert_int_eq(atomic_load(&s.ends), 0);
	id = watch(&p, &s, 0);
	some_turns(&p);
	push_now(p.q, 1, 1);
	OK(evc_queue_unwatch(p.q, id));
	some_turns(&p);
	ck_assert_int_eq(atomic_load(&s.n) + atomic_load(&s.ends), 0);
	REFUSED(EVC_NOT_FOUND, evc_queue_unwatch(p.q, id));
	watch(&p, &s, 0);
	s.at = 2;
	s.act = act_unwatch;
	push_now(p.q, 2, 4);
	TURN_UNTIL(&p, atomic_load(&s.n) == 2);
	some_turns(&p);
	ck_assert(s.order);
	ck_assert_int_eq(atomic_load(&s.n), 2);
	ck_assert_int_eq(atomic_load(&s.ends), 0);
	pop_now(p.q, 3, 4);
	OK(evc_join(p.c, NULL, NULL));
	drop_place(&p);
}
END_TEST

/* An item was sent to it, and it is ended before its turn: the item is the
   thread's that waits, too. */
START_TEST(unwatch_leaves_its_item_to_others)
{
	struct place p = new_place(8, 0);
	struct qcall w;
	struct seen s;
	evc_id id;
	int i;

	/* Threads and loops are sent for in turn. */
	for (i = 1; i <= 6; i++) {
		id = watch(&p, &s, 0);
		some_turns(&p);
		qcall_wait(&w, p.q, BY_POP, NULL);
		push_now(p.q, i, i);
		OK(evc_queue_unwatch(p.q, id));
		OK(qcall_end(&w));
		ck_assert_int_eq(NUMBER(w.item), i);
		some_turns(&p);
		ck_assert_int_eq(atomic_load(&s.n), 0);
	}
	drop_place(&p);
}
END_TEST

static void
act_free(struct seen *s, evc_queue *q)
{
	void *item;

	while (evc_queue_try_pop(q, &item) == 0)
		;
	if (evc_queue_free(q) != 0)
		s->order = false;
}

static void
act_unwatch_free(struct seen *s, evc_queue *q)
{
	act_unwatch(s, q);
	act_free(s, q);
}

/* In the last call the watch is over; so is it behind an unwatch. */
START_TEST(watch_may_free_the_queue_when_it_is_over)
{
	struct place p = new_place(8, 0);
	struct seen s;

	watch(&p, &s, 0);
	s.at = 0;
	s.act = act_free;
	push_now(p.q, 1, 3);
	OK(evc_queue_close(p.q));
	TURN_UNTIL(&p, atomic_load(&s.ends) == 1);
	ck_assert(s.order);
	p.q = new_queue(p.c, 8, 0);
	watch(&p, &s, 0);
	s.at = 2;
	s.act = act_unwatch_free;
	push_now(p.q, 1, 3);
	TURN_UNTIL(&p, atomic_load(&s.n) == 2);
	ck_assert(s.order);
	some_turns(&p);
	OK(evc_join(p.c, NULL, NULL));
	OK(evc_free(p.c));
	ev_loop_destroy(p.loop);
}
END_TEST

static void
act_again(struct seen *s, evc_queue *q)
{
	if (evc_queue_reopen(q) != 0 ||
	    evc_queue_watch(q, evc_home(s->c), see, s, 0, &s->id) != 0)
		s->order = false;
	s->act = NULL;
	s->last = 0;
}

/* In its last call another one may begin, for another round. */
START_TEST(watch_may_begin_anew_in_its_last_call)
{
	struct place p = new_place(8, 0);
	struct seen s;

	watch(&p, &s, 0);
	s.at = 0;
	s.act = act_again;
	push_now(p.q, 1, 3);
	OK(evc_queue_close(p.q));
	TURN_UNTIL(&p, atomic_load(&s.ends) == 1);
	push_now(p.q, 1, 3);
	TURN_UNTIL(&p, atomic_load(&s.n) == 6);
	ck_assert(s.order);
	OK(evc_queue_close(p.q));
	TURN_UNTIL(&p, atomic_load(&s.ends) == 2);
	drop_place(&p);
}
END_TEST

static void
act_push(struct seen *s, evc_queue *q)
{
	if (s->at < 150 && evc_queue_push(q, ITEM(s->at + 1), 0) == 0)
		s->at++;
}

/* A call that pushes has its item come in its turn. */
START_TEST(watch_may_push_in_its_call)
{
	struct place p = new_place(2, 0);
	struct seen s;

	watch(&p, &s, 0);
	s.at = 1;
	s.act = act_push;
	push_now(p.q, 1, 1);
	TURN_UNTIL(&p, atomic_load(&s.n) == 150);
	ck_assert(s.order);
	ck_assert_int_le(s.most_in_turn, 64);
	OK(evc_request_stop(p.c, 0, "stop"));
	OK(evc_join(p.c, NULL, NULL));
	drop_place(&p);
}
END_TEST

/* The coordinator goes on after a stop, and so does the queue. */
START_TEST(watch_works_in_the_next_round)
{
	struct place p = new_place(4, EVC_QUEUE_DRAIN);
	struct seen s;
	int round;

	for (round = 0; round < 3; round++) {
		watch(&p, &s, 0);
		push_now(p.q, 1, 4);
		TURN_UNTIL(&p, atomic_load(&s.n) > 0);
		OK(evc_request_stop(p.c, 0, "stop"));
		OK(evc_join(p.c, NULL, NULL));
		ck_assert_int_eq(atomic_load(&s.n), 4);
		ck_assert_int_eq(atomic_load(&s.ends), 1);
		REFUSED(EVC_CANCELLED, evc_queue_push(p.q, ITEM(1), 0));
		OK(evc_clear_stop(p.c));
	}
	drop_place(&p);
}
END_TEST

/* ---- wrong use ---- */

START_TEST(watch_refuses_what_is_wrong)
{
	struct place p = new_place(1, 0), other = new_place(1, 0);
	evc_reactor *r = evc_home(p.c);
	struct seen s = seen_on(NULL);
	evc_id id = 77;

	REFUSED(EVC_INVALID_ARGUMENT,
		evc_queue_watch(NULL, r, see, &s, 0, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_queue_watch(p.q, NULL, see, &s, 0, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_queue_watch(p.q, r, NULL, &s, 0, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_queue_watch(p.q, r, see, &s, EVC_AFTER_STOP, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_queue_watch(p.q, evc_home(other.c), see, &s, 0, &id));
	REFUSED(EVC_NOT_FOUND, evc_queue_unwatch(p.q, 1));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_unwatch(NULL, 1));
	OK(evc_request_stop(p.c, 0, "stop"));
	REFUSED(EVC_CANCELLED, evc_queue_watch(p.q, r, see, &s, 0, &id));
	HAS(evc_last_error(), "evc_queue_watch: queue ");
	ck_assert_uint_eq(id, 77);
	OK(evc_join(p.c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&s.ends), 0);
	drop_place(&p);
	drop_place(&other);
}
END_TEST

API_MAIN("queue_watch", watch_is_called_with_each_item,
	 watch_takes_64_in_a_turn_at_most, watch_wakes_a_loop_that_sleeps,
	 watch_may_be_made_by_any_thread, watches_and_threads_share_a_queue,
	 watch_in_the_background_keeps_nobody, watch_keeps_its_loop_running,
	 watch_holds_up_free_and_detach, watch_ends_at_a_stop,
	 watch_of_a_draining_queue_empties_it_after_a_stop,
	 watch_ends_at_a_cancel, watch_ends_when_its_loop_is_destroyed,
	 watch_hears_of_an_end_in_its_first_turns,
	 watch_hears_of_an_end_that_was_opened_again,
	 unwatch_ends_it_at_once, unwatch_leaves_its_item_to_others,
	 watch_may_free_the_queue_when_it_is_over,
	 watch_may_begin_anew_in_its_last_call, watch_may_push_in_its_call,
	 watch_works_in_the_next_round, watch_refuses_what_is_wrong)
