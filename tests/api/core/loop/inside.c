/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that wait, inside ev_run: a table of each of them against the loop in
 * whose callback it is made.  On a loop of its own coordinator a wait would
 * hold up what it waits for, so it is refused there; a look is not.
 */
#include "../../../support/pool_util.h"


/* A wait that is to be refused would last for ever; one that is not, so long. */
#define SHORT 0.02

enum place {
	IN_LOOP,       /* a callback of a loop of the coordinator */
	IN_SCOPED,     /* the same, and what is waited for is a scope's that has
			  its home on that loop */
	IN_SCOPE_LOOP, /* of a loop that only a scope has attached */
	IN_OTHER_LOOP, /* of another coordinator's loop */
	OUTSIDE,       /* on the loop's thread, while the loop does not run */
	N_PLACES
};

static const char *const place_name[] = { "in its loop", "in a scope's home",
					  "in a scope's own loop",
					  "in another's loop", "outside" };

static bool
is_inside(enum place at)
{
	return at == IN_LOOP || at == IN_SCOPED;
}

static struct {
	struct ev_loop *loop, *other_loop;
	evc_coord *c, *scope, *other, *of; /* of: whose things they are */
	evc_reactor *far;
	evc_loop_ref *far_handle;
	evc_queue *full, *empty, *roomy;
	evc_pool *pool;
	struct thing running, queued, fresh;
	evc_registry *reg;
	evc_group *group;
	evc_id hold;
	atomic_int open;
} w;

/* Worlds that have ended: a call of one may look at this in the next. */
static atomic_intptr_t n_ended;

/* ---- the calls ---- */

static evc_status
by_join(double timeout)
{
	evc_join_opts o = { .grace = timeout > 0 ? timeout : EVC_NO_GRACE,
			    .flags = EVC_JOIN_STOP_FIRST };
	evc_status st = evc_join(w.of, &o, NULL);

	return st > 0 ? -st : st;
}

static int
nothing_to_do(void *arg)
{
	while (atomic_load(&n_ended) == (intptr_t)arg)
		t_sleep(0.001);
	return 0;
}

static evc_status
by_call(double timeout)
{
	return evc_call_detached(w.of, "x", nothing_to_do,
				 (void *)atomic_load(&n_ended), NULL, timeout,
				 NULL);
}

static evc_status
by_push(double timeout)
{
	return evc_queue_push(w.full, &w, timeout);
}

static evc_status
by_pop(double timeout)
{
	void *item;

	return evc_queue_pop(w.empty, &item, timeout);
}

static evc_status
by_push_with_room(double timeout)
{
	return evc_queue_push(w.roomy, &w, timeout);
}

static evc_status
by_pop_of_something(double timeout)
{
	void *item;

	return evc_queue_pop(w.full, &item, timeout);
}

static evc_status
by_drain(double timeout)
{
	return evc_queue_drain(w.full, timeout);
}

static evc_status
by_drain_of_nothing(double timeout)
{
	return evc_queue_drain(w.empty, timeout);
}

static evc_status
by_submit_wait(double timeout)
{
	return evc_pool_submit_wait(w.pool, w.far, &w.fresh.job, timeout);
}

static evc_status
by_submit_to(double timeout)
{
	return evc_pool_submit_to(w.pool, w.far_handle, &w.fresh.job, timeout);
}

static evc_status
by_wait_finish(double timeout)
{
	double start = t_now();

	if (evc_group_wait_finish(w.group, timeout))
		return 0;
	/* It says no more than false: the time tells the two apart. */
	return timeout > 0 && t_now() - start < SHORT ?
		       -EVC_FAILED_PRECONDITION :
		       -EVC_DEADLINE_EXCEEDED;
}

static evc_status
by_wait_for_stop(double timeout)
{
	double start = t_now();

	if (evc_wait_for_stop(w.of, timeout))
		return 0;
	return timeout > 0 && t_now() - start < SHORT ?
		       -EVC_FAILED_PRECONDITION :
		       -EVC_DEADLINE_EXCEEDED;
}

/* These hear the stop and have their own time: they hold the loop up for it. */
static evc_status
by_sleep(double timeout)
{
	double start = t_now();

	OK(evc_sleep(w.of, timeout));
	return t_now() - start >= timeout ? -EVC_DEADLINE_EXCEEDED : 0;
}

static evc_status
by_wait_fd(double timeout)
{
	int fd[2];
	evc_status st;

	OK(pipe(fd));
	st = evc_wait_fd(w.of, fd[0], EVC_READ, timeout, NULL);
	close(fd[0]);
	close(fd[1]);
	return st;
}

static evc_status
by_poll(double timeout)
{
	return evc_poll(w.of, NULL, 0, timeout, NULL);
}

static evc_status
by_wait_until(double timeout)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	evc_cond *cond;
	evc_status st;

	OK(evc_cond_new(w.of, &cond));
	pthread_mutex_lock(&m);
	st = evc_cond_wait(cond, &m, never_true, NULL, timeout);
	pthread_mutex_unlock(&m);
	OK(evc_cond_free(cond));
	return st;
}

#define LATE (-EVC_DEADLINE_EXCEEDED)
#define WRONG (-EVC_FAILED_PRECONDITION)

/* What each answers when it waits, when it only looks, and inside. */
static const struct row {
	const char *name;
	evc_status (*call)(double timeout);
	evc_status waits, looks, looks_inside;
	bool allowed; /* inside, too */
} rows[] = {
	{ "evc_join", by_join, LATE, LATE, WRONG, false },
	{ "evc_call_detached", by_call, LATE, LATE, WRONG, false },
	{ "evc_queue_push", by_push, LATE, LATE, LATE, false },
	{ "evc_queue_push", by_push_with_room, 0, 0, 0, false },
	{ "evc_queue_pop", by_pop, LATE, LATE, LATE, false },
	{ "evc_queue_pop", by_pop_of_something, 0, 0, 0, false },
	{ "evc_queue_drain", by_drain, LATE, LATE, LATE, false },
	{ "evc_queue_drain", by_drain_of_nothing, 0, 0, 0, false },
	{ "evc_pool_submit_wait", by_submit_wait, LATE, LATE, LATE, false },
	{ "evc_pool_submit_to", by_submit_to, LATE, -EVC_RESOURCE_EXHAUSTED,
	  -EVC_RESOURCE_EXHAUSTED, false },
	{ "evc_group_wait_finish", by_wait_finish, LATE, LATE, LATE, false },
	{ "evc_wait_for_stop", by_wait_for_stop, LATE, LATE, LATE, false },
	{ "evc_sleep", by_sleep, LATE, LATE, LATE, true },
	{ "evc_wait_fd", by_wait_fd, LATE, LATE, LATE, true },
	{ "evc_poll", by_poll, LATE, LATE, LATE, true },
	{ "evc_cond_wait", by_wait_until, LATE, LATE, LATE, true },
};

#define N_ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

/* ---- what there is to wait for ---- */

static evc_status
group_stays(evc_group *group, unsigned id, void *arg)
{
	(void)group;
	(void)id;
	(void)arg;
	while (!atomic_load(&w.open))
		t_sleep(0.001);
	return EVC_CANCELLED;
}

static evc_queue *
queue_of(unsigned items)
{
	evc_queue *q;

	OK(evc_queue_new(w.of, "things", 1, NULL, &q));
	while (items-- > 0)
		OK(evc_queue_push(q, &w, 0));
	return q;
}

static void
drop_queue(evc_queue *q)
{
	void *item;

	while (evc_queue_try_pop(q, &item) == 0)
		;
	OK(evc_queue_free(q));
}

/* A pool with one thread, which is busy, and no room for a loop elsewhere. */
static void
fill_pool(void)
{
	evc_pool_opts o = { .n_threads = 1, .capacity = 1 };

	OK(evc_pool_new(w.of, NULL, &o, &w.pool));
	OK(evc_reactor_start(w.c, "far", NULL, NULL, NULL, &w.far));
	w.far_handle = evc_loop_of(w.far);
	ck_assert_ptr_nonnull(w.far_handle);
	thing_init(&w.running, work_stay);
	thing_init(&w.queued, work_now);
	thing_init(&w.fresh, work_now);
	OK(evc_pool_submit(w.pool, w.far, &w.running.job));
	UNTIL(atomic_load(&w.running.begun) == 1);
	OK(evc_pool_submit(w.pool, w.far, &w.queued.job));
}

static void
world_begin(enum place at)
{
	evc_scope_opts alone = { .config.flags = EVC_NO_HOME };
	evc_group_opts o = { .n_threads = 1 };
	evc_reactor *r;

	memset(&w, 0, sizeof(w));
	w.loop = ev_loop_new(0);
	w.c = new_coord(w.loop);
	w.other_loop = ev_loop_new(0);
	w.other = new_coord(at == IN_OTHER_LOOP ? w.other_loop : NULL);
	OK(evc_scope_new(w.c, "scope", at == IN_SCOPE_LOOP ? &alone : NULL,
			 &w.scope));
	OK(evc_scope_ready(w.scope));
	if (at == IN_SCOPE_LOOP)
		OK(evc_reactor_attach(w.scope, "own", w.other_loop, &r));
	w.of = at == IN_SCOPED ? w.scope : w.c;
	OK(evc_hold_begin(w.of, "hold", NULL, &w.hold));
	w.full = queue_of(1);
	w.empty = queue_of(0);
	w.roomy = queue_of(0);
	fill_pool();
	OK(evc_registry_new(NULL, &w.reg));
	o.coord = w.of;
	OK(evc_group_init(w.reg, "stay", group_stays, NULL, &o, &w.group,
			  NULL));
	OK(evc_group_start(w.group));
}

static void
world_end(void)
{
	evc_join_opts o = { .grace = INFINITY };

	atomic_store(&w.open, 1);
	atomic_fetch_add(&n_ended, 1);
	atomic_store(&w.running.open, 1);
	evc_request_stop(w.c, 0, NULL);
	OK(evc_hold_end(w.of, w.hold));
	ck_assert_int_ge(evc_join(w.c, &o, NULL), 0);
	evc_loop_release(w.far_handle);
	(void)evc_registry_stop(w.reg, NULL);
	OK(evc_registry_free(w.reg));
	OK(evc_pool_free(w.pool));
	drop_queue(w.full);
	drop_queue(w.empty);
	drop_queue(w.roomy);
	FREE_ALL(w.scope, w.c, w.other);
	ev_loop_destroy(w.loop);
	ev_loop_destroy(w.other_loop);
}

/* ---- the cells ---- */

struct cell {
	const struct row *row;
	double timeout;
	evc_status answer;
	char why[256];
};

static void
cell_call(struct cell *k)
{
	evc_refuse(0, "%s", "");
	k->answer = k->row->call(k->timeout);
	snprintf(k->why, sizeof(k->why), "%s", evc_last_error());
}

static void
cell_in_loop(struct ev_loop *l, ev_timer *t, int revents)
{
	(void)revents;
	cell_call(t->data);
	ev_break(l, EVBREAK_ONE);
}

static struct cell
cell(enum place at, const struct row *row, double timeout)
{
	struct cell k = { .row = row, .timeout = timeout, .answer = 77 };
	struct ev_loop *l;
	ev_timer t;

	world_begin(at);
	l = is_inside(at) ? w.loop : w.other_loop;
	if (at != OUTSIDE) {
		ev_timer_init(&t, cell_in_loop, 0., 0.);
		t.data = &k;
		ev_timer_start(l, &t);
		ev_run(l, 0);
	} else
		cell_call(&k);
	world_end();
	return k;
}

/* The text names the call and the loop. */
static void
says(const struct cell *k)
{
	char begin[64];

	snprintf(begin, sizeof(begin), "%s: inside ev_run of loop ",
		 k->row->name);
	ck_assert_msg(strncmp(k->why, begin, strlen(begin)) == 0,
		      "%s says \"%s\"", k->row->name, k->why);
}

/* _i: a cell's place and row. */
START_TEST(each_wait_in_each_place)
{
	enum place at = (enum place)(_i / N_ROWS);
	const struct row *row = &rows[_i % N_ROWS];
	bool refused = is_inside(at) && !row->allowed;
	evc_status want = is_inside(at) ? row->looks_inside : row->looks;
	struct cell k = cell(at, row, 0);

	ck_assert_msg(k.answer == want, "%s, a look, %s: %d, not %d; %s",
		      row->name, place_name[at], k.answer, want, k.why);
	want = refused ? WRONG : row->waits;
	k = cell(at, row, refused ? INFINITY : SHORT);
	ck_assert_msg(k.answer == want, "%s %s: %d, not %d; %s", row->name,
		      place_name[at], k.answer, want, k.why);
	if (refused)
		says(&k);
}
END_TEST

/* What it says inside the loop is what evc_should_stop says. */
static void
stop_and_wait(struct ev_loop *l, ev_timer *t, int revents)
{
	evc_coord *c = t->data;

	(void)revents;
	ck_assert(!evc_wait_for_stop(c, INFINITY));
	OK(evc_request_stop(c, 0, NULL));
	evc_refuse(0, "%s", "");
	ck_assert(evc_wait_for_stop(c, INFINITY));
	ck_assert_str_eq(evc_last_error(), "");
	ev_break(l, EVBREAK_ONE);
}

START_TEST(a_wait_for_the_stop_answers_at_once)
{
	struct ev_loop *l = ev_loop_new(0);
	evc_coord *c = new_coord(l);
	ev_timer t;

	ev_timer_init(&t, stop_and_wait, 0., 0.);
	t.data = c;
	ev_timer_start(l, &t);
	ev_run(l, 0);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(l);
}
END_TEST

/* The same question, for layers on top. */
static void
ask(struct ev_loop *l, ev_timer *t, int revents)
{
	(void)revents;
	REFUSED(EVC_FAILED_PRECONDITION, evc_may_wait(t->data, "mine"));
	HAS(evc_last_error(), "mine: inside ev_run of loop home");
	ev_break(l, EVBREAK_ONE);
}

START_TEST(a_layer_can_ask)
{
	struct ev_loop *l = ev_loop_new(0);
	evc_coord *c = new_coord(l);
	ev_timer t;

	REFUSED(EVC_INVALID_ARGUMENT, evc_may_wait(NULL, "mine"));
	OK(evc_may_wait(c, "mine"));
	ev_timer_init(&t, ask, 0., 0.);
	t.data = c;
	ev_timer_start(l, &t);
	ev_run(l, 0);
	OK(evc_may_wait(c, "mine"));
	OK(evc_free(c));
	ev_loop_destroy(l);
}
END_TEST

T_MAIN("inside", NULL, NULL,
       T_TIMES(each_wait_in_each_place, N_ROWS * N_PLACES),
       T_ONCE(a_wait_for_the_stop_answers_at_once),
       T_ONCE(a_layer_can_ask))
