/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts, stepped: a post against the detach of its loop, against the stop and
 * the join after it, and against another post and the loop that serves them.
 */
#include "schedules.h"

struct note {
	evc_message message; /* first */
	evc_loop_ref *loop;
	int n, n_cancelled;
};

static void
noted(evc_message *m, evc_status why)
{
	struct note *n = (struct note *)m;

	n->n += why == 0;
	n->n_cancelled += why == EVC_CANCELLED;
}

static evc_status
do_post(evc_coord *c, void *arg)
{
	struct note *n = arg;

	(void)c;
	n->message.fn = noted;
	return evc_post_message(n->loop, &n->message);
}

static evc_status
do_detach(evc_coord *c, void *arg)
{
	(void)c;
	return evc_reactor_detach(arg);
}

/* ---- the detach ---- */

struct own_loop {
	struct ev_loop *loop;
	evc_reactor *r;
	evc_loop_ref *handle;
	atomic_int go;
	evc_status detached;
};

/* A loop of a thread that only detaches it. */
static evc_status
attach_and_detach(evc_coord *c, void *arg)
{
	struct own_loop *o = arg;

	o->loop = ev_loop_new(0);
	if (evc_reactor_attach(c, "loop", o->loop, &o->r) < 0)
		return -1;
	o->handle = evc_loop_of(o->r);
	atomic_store(&o->go, 1);
	UNTIL(atomic_load(&o->go) == 2);
	o->detached = do_detach(c, o->r);
	ev_loop_destroy(o->loop);
	return 0;
}

/* Fails when a detach does not wait for who is in the middle of a post: it would
   stand before memory that is gone, and its post would be lost. */
START_TEST(a_detach_waits_for_a_post_in_the_middle)
{
	static const struct place places[] = {
		{ "xchg", "accept_post", 1 }, { "load", "count_in", 1 },
		{ "cas", "push_message", 1 }, { "add", "push_message", 1 },
		{ "cas", "push_message", 2 },
	};
	size_t i;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);
		struct own_loop o = {.go = 0};
		struct note n = {.n = 0};
		struct actor loop, poster;
		int h;

		actor_begin(&loop, attach_and_detach, c, &o);
		UNTIL(atomic_load(&o.go) == 1);
		n.loop = o.handle;
		h = hold_at(&places[i]);
		actor_begin(&poster, do_post, c, &n);
		HELD(h);
		atomic_store(&o.go, 2);
		actor_sleeps(&loop);
		seam_release(h);
		OK(actor_end(&poster));
		OK(actor_end(&loop));
		OK(o.detached);
		ck_assert_int_eq(n.n, 0);
		ck_assert_int_eq(n.n_cancelled, 1);
		evc_loop_release(o.handle);
		OK(evc_free(c));
		seam_reset();
	}
}
END_TEST

/* ---- the stop ---- */

/* Fails when a post is not counted before it looks for the stop: the join would
   be over, and the post run after it. */
START_TEST(a_post_that_the_join_has_not_seen_sees_the_stop)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	evc_reactor *r;
	struct note n = {.n = 0};
	struct actor poster;
	int h;

	OK(evc_reactor_attach(c, "loop", loop, &r));
	n.loop = evc_loop_of(r);
	/* Past its first look, and not counted. */
	h = seam_hold("load", "evc__alive_add", 1);
	actor_begin(&poster, do_post, c, &n);
	HELD(h);
	OK(evc_request_stop(c, 0, NULL));
	seam_release(h);
	ck_assert_int_eq(actor_end(&poster), -EVC_CANCELLED);
	OK(evc_join(c, NULL, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n.n + n.n_cancelled, 0);
	OK(evc_clear_stop(c));
	/* Refused, it may be posted again. */
	OK(do_post(c, &n));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n.n, 1);
	evc_loop_release(n.loop);
	OK(evc_reactor_detach(r));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* Fails when a post counts only from where it stands in the chain. */
START_TEST(a_join_waits_for_a_post_that_is_counted)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	evc_reactor *r;
	struct note n = {.n = 0};
	struct actor poster;
	struct joiner j;
	int h;

	OK(evc_reactor_attach(c, "loop", loop, &r));
	n.loop = evc_loop_of(r);
	h = seam_hold("cas", "push_message", 1);
	actor_begin(&poster, do_post, c, &n);
	HELD(h);
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, 0, 0);
	ck_assert(still_waits(&j));
	seam_release(h);
	OK(actor_end(&poster));
	ck_assert(still_waits(&j));
	ev_run(loop, EVRUN_NOWAIT);
	OK(join_end(&j));
	ck_assert_int_eq(n.n, 1);
	evc_loop_release(n.loop);
	OK(evc_reactor_detach(r));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- two posts, and the loop ---- */

/* Fails when somebody else's post is taken for a sign that the loop knows. */
START_TEST(a_post_behind_one_in_the_middle_is_not_lost)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct note a = {.n = 0}, b = {.n = 0};
	struct actor first;
	int h;

	a.loop = b.loop = evc_loop_of(evc_home(c));
	/* It stands in the chain; the loop has not been told. */
	h = seam_hold("cas", "push_message", 2);
	actor_begin(&first, do_post, c, &a);
	HELD(h);
	OK(do_post(c, &b));
	ev_run(loop, EVRUN_NOWAIT);
	seam_release(h);
	OK(actor_end(&first));
	while (a.n + b.n < 2)
		ev_run(loop, EVRUN_ONCE);
	ck_assert_int_eq(a.n, 1);
	ck_assert_int_eq(b.n, 1);
	evc_loop_release(a.loop);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

struct meanwhile {
	struct note *n;
	int h;
};

/* Posts once the loop stands there, and lets it go on. */
static evc_status
post_meanwhile(evc_coord *c, void *arg)
{
	struct meanwhile *m = arg;
	bool held = seam_await(m->h);
	evc_status st = do_post(c, m->n);

	seam_release(m->h);
	return held ? st : -1;
}

struct nester {
	evc_coord *c;
	struct ev_loop *loop;
	struct note middle, behind, later;
	bool held;
	evc_status st, other_st;
};

/* Another post stops in the middle; a run of the loop has what stands behind
   this one; a third post comes, and the one in the middle gets on. */
static void
nest(evc_reactor *r, evc_status why, void *arg)
{
	struct nester *x = arg;
	struct actor other;
	int h = seam_hold("cas", "push_message", 2);

	(void)r;
	(void)why;
	actor_begin(&other, do_post, x->c, &x->middle);
	x->held = seam_await(h);
	while (x->behind.n == 0)
		ev_run(x->loop, EVRUN_ONCE);
	x->st = do_post(x->c, &x->later);
	seam_release(h);
	x->other_st = actor_end(&other);
}

/* Fails when a chain is taken whose box is not in the list yet: then it is put
   there twice. */
START_TEST(a_run_inside_a_post_takes_no_chain_of_a_box_that_is_not_lit)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct nester x = {.c = c, .loop = loop};

	x.behind.loop = x.middle.loop = x.later.loop =
		evc_loop_of(evc_home(c));
	OK(evc_post(x.behind.loop, nest, &x));
	OK(do_post(c, &x.behind));
	ev_run(loop, EVRUN_ONCE);
	ck_assert(x.held);
	OK(x.st);
	OK(x.other_st);
	while (x.middle.n + x.later.n < 2)
		ev_run(loop, EVRUN_ONCE);
	ck_assert_int_eq(x.behind.n, 1);
	ck_assert_int_eq(x.middle.n, 1);
	ck_assert_int_eq(x.later.n, 1);
	evc_loop_release(x.behind.loop);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* Fails when the loop takes a chain before it takes the box out of the list. */
START_TEST(a_post_while_its_loop_serves_is_served)
{
	static const struct place places[] = {
		{ "xchg", "collect_inboxes", 1 },
		{ "lock", "evc__inboxes_serve", 1 },
		{ "xchg", "take_chain", 1 },
		{ "store", "deliver_message", 1 },
		{ "sub", "count_out", 1 },
	};
	size_t i;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);
		struct note a = {.n = 0}, b = {.n = 0};
		struct meanwhile m = {.n = &b};
		struct ev_loop *loop = ev_loop_new(0);
		evc_reactor *r;
		struct actor poster;

		OK(evc_reactor_attach(c, "loop", loop, &r));
		a.loop = b.loop = evc_loop_of(r);
		OK(do_post(c, &a));
		m.h = seam_hold_mine(places[i].op, places[i].func,
				     places[i].nth);
		actor_begin(&poster, post_meanwhile, c, &m);
		while (a.n + b.n < 2)
			ev_run(loop, EVRUN_ONCE);
		OK(actor_end(&poster));
		ck_assert_int_eq(a.n, 1);
		ck_assert_int_eq(b.n, 1);
		evc_loop_release(a.loop);
		OK(evc_reactor_detach(r));
		OK(evc_free(c));
		ev_loop_destroy(loop);
		seam_reset();
	}
}
END_TEST

SCHEDULES_MAIN("posts", a_detach_waits_for_a_post_in_the_middle,
	       a_post_that_the_join_has_not_seen_sees_the_stop,
	       a_join_waits_for_a_post_that_is_counted,
	       a_post_behind_one_in_the_middle_is_not_lost,
	       a_run_inside_a_post_takes_no_chain_of_a_box_that_is_not_lit,
	       a_post_while_its_loop_serves_is_served)
