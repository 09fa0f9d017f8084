/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nested runs of one loop, at random: callbacks of each kind begin, end and free
 * what others stand on, and run the loop, up to four deep; counters say what must
 * have been called, and how often.  EVC_SEED=n repeats one world.
 */
#include "../../../support/api_util.h"

#include <ev.h>

enum { SCOPES = 6, MOST = 24, DEEP = 4, STEPS = 60, ROUNDS = 2 };

static unsigned seed;
#define MODEL(cond) ck_assert_msg((cond), "EVC_SEED=%u: %s", seed, #cond)

/* A coordinator: the root is number 0. */
struct place {
	evc_coord *c; /* NULL: none */
	int above;    /* its parent's number */
	bool stopped, has_end;
	int stops, ends; /* seen; `ended` called */
};

/* Something that is begun and has to be called. */
struct thing {
	int place; /* -1: it is not there */
	evc_id id;
	int serial;
	int owed, calls; /* hooks: what is due, what came */
	bool ran, told;
	void *memory;
};

static struct {
	struct ev_loop *loop;
	ev_idle idle;
	evc_pool *pool;
	evc_queue *q;
	struct place at[1 + SCOPES];
	struct thing post[MOST], task[MOST], hook[MOST], looper[MOST],
		join[MOST], job[MOST], watch;
	int pushed, popped, depth, steps, budget, serial;
	uint32_t r;
} w;

static unsigned
pick(unsigned n)
{
	w.r = w.r * 1664525 + 1013904223;
	return (w.r >> 8) % n;
}

static void act(void);

/* Was everything called that was there, and due? */
static bool
all_came(const struct thing *post, const struct thing *hook)
{
	int i;

	for (i = 0; i < MOST; i++) {
		if (post[i].place >= 0 && w.post[i].place >= 0 &&
		    w.post[i].serial == post[i].serial)
			return false;
		if (hook[i].place >= 0 && w.hook[i].place >= 0 &&
		    w.hook[i].serial == hook[i].serial &&
		    w.hook[i].calls < hook[i].owed)
			return false;
	}
	return true;
}

/* The loop has all that was due before, whatever the runs outside are in the
   middle of.  More than one turn only for a thread of the pool that stands in
   the middle of its wake-up of the loop. */
static void
run_inside(void)
{
	struct thing post[MOST], hook[MOST];
	double until = t_now() + T_LIMIT;

	memcpy(post, w.post, sizeof(post));
	memcpy(hook, w.hook, sizeof(hook));
	do {
		ev_run(w.loop, EVRUN_NOWAIT);
		MODEL(t_now() < until);
	} while (!all_came(post, hook));
}

/* In every callback. */
static void
callback(void)
{
	unsigned n = pick(3);

	if (w.depth == DEEP)
		return;
	w.depth++;
	while (n-- > 0)
		act();
	if (pick(2))
		run_inside();
	w.depth--;
}

/* A free place in a table, or one that is taken; NULL: there is none. */
static struct thing *
some(struct thing *t, bool taken)
{
	unsigned i, from = pick(MOST);

	for (i = 0; i < MOST; i++)
		if ((t[(from + i) % MOST].place >= 0) == taken)
			return &t[(from + i) % MOST];
	return NULL;
}

static int
some_place(void)
{
	int i = (int)pick(1 + SCOPES);

	return w.at[i].c != NULL ? i : 0;
}

/* Before anything is compared: a join that finds the threads of a pool alone asks
   for a stop, too. */
static void
see_stops(void)
{
	struct place *p;
	int i;

	for (p = w.at; p < w.at + 1 + SCOPES; p++) {
		if (p->c == NULL || p->stopped || !evc_should_stop(p->c))
			continue;
		p->stopped = true;
		p->stops++;
		for (i = 0; i < MOST; i++)
			if (w.hook[i].place == p - w.at)
				w.hook[i].owed++;
	}
}

/* ---- the callbacks ---- */

static void
on_post(evc_message *m, evc_status why)
{
	struct thing *t;

	for (t = w.post; t->memory != m; t++)
		MODEL(t < w.post + MOST - 1);
	MODEL(t->place >= 0 && why == 0);
	t->place = -1;
	t->memory = NULL;
	free(m);
	callback();
}

static void
end_task(struct thing *t)
{
	evc_task *k = t->memory;

	t->place = -1;
	t->memory = NULL;
	evc_task_end(k);
	free(k);
}

static void
on_task_stop(evc_task *k, void *arg)
{
	struct thing *t;

	(void)arg;
	see_stops();
	for (t = w.task; t->memory != k; t++)
		MODEL(t < w.task + MOST - 1);
	MODEL(!t->told && w.at[t->place].stopped);
	t->told = true;
	if (pick(2))
		end_task(t);
	callback();
	if (t->memory == k && t->told)
		end_task(t);
}

static const evc_task_class task_class = { .name = "t",
					   .on_stop = on_task_stop };

static evc_status
on_hook(evc_coord *c, void *arg)
{
	struct thing *t = arg;

	see_stops();
	MODEL(t->place >= 0 && w.at[t->place].c == c);
	MODEL(++t->calls <= t->owed);
	callback();
	return 0;
}

static evc_status
on_tick(evc_coord *c, void *arg)
{
	struct thing *t = arg;

	MODEL(t->place >= 0 && w.at[t->place].c == c);
	t->ran = true;
	callback();
	return pick(4) == 0 ? EVC_OUT_OF_RANGE : 0;
}

static evc_status
on_looper_stop(evc_coord *c, void *arg)
{
	struct thing *t = arg;

	(void)c;
	MODEL(t->ran && !t->told);
	t->told = true;
	callback();
	return 0;
}

static void
on_answer(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct thing *t = arg;

	(void)v;
	MODEL(t->place >= 0 && w.at[t->place].c == c);
	t->place = -1;
	callback();
}

static void
on_ended(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct place *p = arg;

	(void)v;
	see_stops();
	MODEL(p->c == c && ++p->ends <= p->stops);
	callback();
}

static evc_status
on_work(evc_job *job)
{
	(void)job;
	return 0;
}

static void
on_done(evc_job *job, evc_status result)
{
	struct thing *t = job->arg;

	(void)result;
	MODEL(t->place >= 0);
	t->place = -1;
	t->memory = NULL;
	free(job);
	callback();
}

static void
on_item(evc_queue *q, void *item, evc_status why, void *arg)
{
	(void)q;
	(void)arg;
	MODEL(w.watch.place >= 0);
	if (item != NULL)
		MODEL(why == 0 && ++w.popped <= w.pushed);
	else
		w.watch.place = -1;
	callback();
}

/* ---- what they do ---- */

static void
begin_post(int at)
{
	struct thing *t = some(w.post, false);
	evc_message *m = calloc(1, sizeof(*m));
	evc_loop_ref *l = evc_loop_of(evc_home(w.at[at].c));

	m->fn = on_post;
	if (t != NULL && evc_post_message(l, m) == 0) {
		*t = (struct thing){ .place = at, .serial = ++w.serial,
				     .memory = m };
	} else
		free(m);
	evc_loop_release(l);
}

static void
begin_task(int at)
{
	struct thing *t = some(w.task, false);
	evc_task *k = calloc(1, sizeof(*k));

	if (t != NULL &&
	    evc_task_begin(evc_home(w.at[at].c), k, &task_class) == 0)
		*t = (struct thing){ .place = at, .memory = k };
	else
		free(k);
}

static void
begin_hook(int at)
{
	struct thing *t = some(w.hook, false);

	if (t == NULL)
		return;
	*t = (struct thing){ .place = at, .serial = ++w.serial,
			     .owed = w.at[at].stopped };
	OK(evc_on_stop(w.at[at].c, NULL, on_hook, t, NULL, &t->id));
}

static void
begin_looper(int at)
{
	static const double every[] = { 0, 0.0005, INFINITY };
	evc_member_opts o = { .stop = on_looper_stop };
	struct thing *t = some(w.looper, false);

	if (t == NULL)
		return;
	*t = (struct thing){ .place = at };
	if (evc_looper_start(w.at[at].c, "l", every[pick(3)], on_tick, t, &o,
			     &t->id) < 0)
		t->place = -1;
}

static void
begin_join(int at)
{
	struct thing *t = some(w.join, false);

	if (t == NULL)
		return;
	*t = (struct thing){ .place = at };
	OK(evc_join_start(w.at[at].c, on_answer, t, NULL));
}

static void
begin_job(int at)
{
	struct thing *t = some(w.job, false);
	evc_job *j = calloc(1, sizeof(*j));

	j->work = on_work;
	j->done = on_done;
	j->arg = t;
	if (t != NULL &&
	    evc_pool_submit(w.pool, evc_home(w.at[at].c), j) == 0)
		*t = (struct thing){ .place = at, .memory = j };
	else
		free(j);
}

static void
begin_scope(int at)
{
	struct place *p = &w.at[1 + pick(SCOPES)];
	evc_scope_opts o = { .arg = p };

	if (p->c != NULL)
		return;
	memset(p, 0, sizeof(*p));
	p->above = at;
	p->has_end = pick(2);
	o.ended = p->has_end ? on_ended : NULL;
	OK(evc_scope_new(w.at[at].c, "s", &o, &p->c));
	OK(evc_scope_ready(p->c));
	see_stops();
}

/* It goes if nothing keeps it; hooks do not, nor loopers that have ended. */
static void
end_scope(struct place *p)
{
	struct thing *t;

	if (p == w.at || p->c == NULL || evc_free(p->c) < 0)
		return;
	p->c = NULL;
	for (t = w.post; t < w.post + MOST; t++)
		MODEL(t->place != p - w.at);
	for (t = w.task; t < w.task + MOST; t++)
		MODEL(t->place != p - w.at);
	for (t = w.join; t < w.join + MOST; t++)
		MODEL(t->place != p - w.at);
	for (t = w.job; t < w.job + MOST; t++)
		MODEL(t->place != p - w.at);
	for (t = w.hook; t < w.hook + MOST; t++)
		t->place = t->place == p - w.at ? -1 : t->place;
	for (t = w.looper; t < w.looper + MOST; t++)
		if (t->place == p - w.at) {
			MODEL(!t->ran || t->told);
			t->place = -1;
		}
}

static void
watch_or_not(void)
{
	if (w.watch.place < 0) {
		w.watch.place = 0;
		if (evc_queue_watch(w.q, evc_home(w.at[0].c), on_item, NULL, 0,
				    &w.watch.id) < 0)
			w.watch.place = -1;
	} else if (pick(4) == 0) {
		w.watch.place = -1;
		OK(evc_queue_unwatch(w.q, w.watch.id));
	}
}

static void
remove_one(struct thing *table)
{
	struct thing *t = some(table, true);

	if (t == NULL || w.at[t->place].c == NULL)
		return;
	/* A looper may have ended already. */
	if (evc_member_remove(w.at[t->place].c, t->id) == 0 &&
	    table == w.hook)
		t->place = -1;
}

static void
act(void)
{
	int at = some_place();
	struct thing *t;

	see_stops();
	if (--w.budget < 0)
		return;
	switch (pick(14)) {
	case 0:
	case 1:
		begin_post(at);
		break;
	case 2:
		begin_task(at);
		break;
	case 3:
		t = some(w.task, true);
		if (t != NULL)
			end_task(t);
		break;
	case 4:
		begin_hook(at);
		break;
	case 5:
		remove_one(pick(2) ? w.hook : w.looper);
		break;
	case 6:
		begin_looper(at);
		break;
	case 7:
		begin_join(at);
		break;
	case 8:
		begin_job(at);
		break;
	case 9:
		w.pushed += evc_queue_push(w.q, &w, 0) == 0;
		break;
	case 10:
		watch_or_not();
		break;
	case 11:
		begin_scope(at);
		break;
	case 12:
		if (at > 0)
			OK(evc_request_stop(w.at[at].c, 0, NULL));
		see_stops();
		break;
	default:
		end_scope(&w.at[at]);
		break;
	}
}

/* ---- worlds ---- */

static void
on_idle(struct ev_loop *loop, ev_idle *idle, int revents)
{
	(void)revents;
	act();
	if (--w.steps > 0)
		return;
	ev_idle_stop(loop, idle);
	OK(evc_request_stop(w.at[0].c, 0, NULL));
	see_stops();
}

/* Nothing is under way, and each has been called as often as it was due. */
static void
compare(void)
{
	int i;

	for (i = 0; i < MOST; i++) {
		const struct thing *h = &w.hook[i], *l = &w.looper[i];

		MODEL(w.post[i].place < 0);
		MODEL(w.task[i].place < 0);
		MODEL(w.join[i].place < 0);
		MODEL(w.job[i].place < 0);
		MODEL(h->place < 0 || h->calls == h->owed);
		MODEL(l->place < 0 || l->told == l->ran);
		w.looper[i].place = -1;
	}
	MODEL(w.watch.place < 0);
	for (i = 1; i <= SCOPES; i++)
		MODEL(w.at[i].c == NULL || !w.at[i].has_end ||
		      w.at[i].ends == w.at[i].stops);
}

static void
a_round(void)
{
	evc_join_opts o = { .grace = T_LIMIT };
	struct place *p;
	evc_verdict v;
	evc_status st;
	int i;

	w.steps = STEPS;
	w.budget = 8 * STEPS;
	ev_idle_start(w.loop, &w.idle);
	st = evc_run(w.at[0].c, &o, &v);
	ck_assert_msg(st == 0, "EVC_SEED=%u: %s", seed, v.error.text);
	ev_idle_stop(w.loop, &w.idle);
	see_stops();
	w.budget = 0;
	/* Answers of joins that were given in the last turn. */
	for (i = 0; i < 3; i++)
		ev_run(w.loop, EVRUN_NOWAIT);
	compare();
	/* From above: one whose parent is stopped is so again at once. */
	for (i = 0; i <= SCOPES * SCOPES; i++) {
		p = &w.at[i % (1 + SCOPES)];
		if (p->c == NULL || (p != w.at && w.at[p->above].stopped))
			continue;
		MODEL(evc_clear_stop(p->c) == 0);
		p->stopped = false;
	}
}

static void
clear_table(struct thing *t)
{
	int i;

	for (i = 0; i < MOST; i++)
		t[i].place = -1;
}

static void
a_world(void)
{
	evc_pool_opts few = { .n_threads = 2 };
	bool again = true;
	void *item;
	int i;

	memset(&w, 0, sizeof(w));
	w.r = seed * 2654435761u;
	clear_table(w.post);
	clear_table(w.task);
	clear_table(w.hook);
	clear_table(w.looper);
	clear_table(w.join);
	clear_table(w.job);
	w.watch.place = -1;
	w.loop = ev_loop_new(0);
	ev_idle_init(&w.idle, on_idle);
	w.at[0].c = new_coord(w.loop);
	OK(evc_pool_new(w.at[0].c, NULL, &few, &w.pool));
	OK(evc_queue_new(w.at[0].c, NULL, 16, NULL, &w.q));
	for (i = 0; i < ROUNDS; i++)
		a_round();
	while (evc_queue_try_pop(w.q, &item) == 0)
		w.popped++;
	MODEL(w.popped == w.pushed);
	OK(evc_queue_free(w.q));
	OK(evc_pool_free(w.pool));
	/* Those below go first. */
	while (again)
		for (again = false, i = 1; i <= SCOPES; i++)
			if (w.at[i].c != NULL && evc_free(w.at[i].c) == 0) {
				w.at[i].c = NULL;
				again = true;
			}
	MODEL(evc_free(w.at[0].c) == 0);
	ev_loop_destroy(w.loop);
}

START_TEST(random_nested_runs_agree_with_a_model)
{
	const char *one = getenv("EVC_SEED");
	double until = t_now() + 3;
	int n = 0;

	seed = one != NULL ? (unsigned)atoi(one) : (unsigned)(t_now() * 1000);
	printf("EVC_SEED=%u and those after it\n", seed);
	fflush(stdout);
	do {
		a_world();
		seed++;
		n++;
	} while (one == NULL && t_now() < until);
	printf("%d worlds\n", n);
}
END_TEST

API_MAIN("nested model", random_nested_runs_agree_with_a_model)
