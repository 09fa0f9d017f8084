/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each worker is told to build and to drop: by hand, and by 20,000 random
 * histories of workers that come, see, hang and go, beside a model that knows
 * what each of them has.
 *
 * EVC_SEED=n runs other histories; a failure prints the seed.
 */
#include "../support/api_util.h"

#include "cluster/core/cluster.h"
#include "wire/walk.h"

#define HISTORIES 20000
#define STEPS     120
#define WORKERS   4
#define MOST      24 /* definitions of one history */

/* Of this history; where its dice stand. */
static uint64_t seed_now, dice_at;

#define MUST(cond) \
	do { \
		if (!(cond)) \
			ck_abort_msg("%s; EVC_SEED=%llu", #cond, \
				     (unsigned long long)seed_now); \
	} while (0)

/* ---- a cluster of nothing but workers ---- */

static evc_cluster cl;
static struct cluster_worker worker[WORKERS], *pointer[WORKERS];
static unsigned n_wakes[WORKERS];

static void
wake(evc_engine *engine, int w)
{
	MUST(engine == (evc_engine *)&cl && w >= 0 && w < WORKERS);
	n_wakes[w]++;
}

static const evc_engine_ops ops = { .abi = EVC_ENGINE_ABI, .wake = wake };

static void
setup(void)
{
	unsigned i;

	memset(&cl, 0, sizeof cl);
	memset(worker, 0, sizeof worker);
	memset(n_wakes, 0, sizeof n_wakes);
	list_init(&cl.workers.defs);
	for (i = 0; i < WORKERS; i++) {
		worker[i].index = i;
		worker[i].state = EVC_WORKER_STARTING;
		pointer[i] = &worker[i];
	}
	cl.workers.all = pointer;
	cl.workers.n = WORKERS;
	cl.engine.ops = &ops;
	cl.engine.at = (evc_engine *)&cl;
	cl.serial = 99;
}

static void
up(unsigned w)
{
	worker[w].state = EVC_WORKER_UP;
	evc__per_worker_life(&cl, &worker[w], true);
}

static void
gone(unsigned w)
{
	evc__per_worker_life(&cl, &worker[w], false);
	worker[w].state = EVC_WORKER_GONE;
}

/* A definition of one piece of memory, as the calls make it. */
static evc_per_worker *
define(evc_per_worker *dataset)
{
	evc_per_worker *p = calloc(1, sizeof *p + 8);

	ck_assert_ptr_nonnull(p);
	p->def.kind = dataset != NULL ? EVC_DEF_ITERATOR : EVC_DEF_DATASET;
	memcpy(p->tail, "name", 5);
	p->def.name = p->tail;
	if (dataset != NULL) {
		evc__per_worker_ref(dataset);
		p->dataset = dataset;
		p->def.of = dataset->def.id;
	}
	evc__per_worker_add(&cl, p);
	return p;
}

static unsigned
n_entries(void)
{
	unsigned n = 0;
	struct list *at;

	for (at = cl.workers.defs.next; at != &cl.workers.defs; at = at->next)
		n++;
	return n;
}

/* The next thing for w: its id, negative for a drop, 0 for nothing. */
static int64_t
next(unsigned w)
{
	evc_engine_def d;

	if (!evc__per_worker_next_def(&cl, &worker[w], &d)) {
		MUST(evc__per_worker_is_ready(&cl, &worker[w]));
		return 0;
	}
	MUST(strcmp(d.name, "name") == 0);
	return d.kind == EVC_DEF_DROP ? -(int64_t)d.id : (int64_t)d.id;
}

#define NEXT(w, is) ck_assert_int_eq(next(w), (int64_t)(is))

/* ---- by hand ---- */

START_TEST(each_worker_sees_all_in_their_order)
{
	evc_per_worker *a = define(NULL), *b;
	uint64_t ids[2] = { a->def.id, 0 };
	uint32_t serial;
	uint64_t id;

	up(0);
	ck_assert(!evc__per_worker_is_ready(&cl, &worker[0]));
	NEXT(0, ids[0]);
	NEXT(0, 0);
	up(1);
	b = define(a);
	ids[1] = b->def.id;
	ck_assert_uint_eq(b->def.of, ids[0]);
	ck_assert_uint_gt(ids[1], ids[0]);
	ck_assert_uint_eq(n_wakes[0], 1);
	ck_assert_uint_eq(n_wakes[1], 1);
	ck_assert_uint_eq(n_wakes[2], 0);
	NEXT(1, ids[0]);
	NEXT(1, ids[1]);
	NEXT(0, ids[1]);
	NEXT(0, 0);
	NEXT(1, 0);
	ck_assert_ptr_eq(evc__per_worker_find(&cl, ids[0]), a);
	ck_assert_ptr_eq(evc__per_worker_find(&cl, ids[1]), b);
	ck_assert_ptr_null(evc__per_worker_find(&cl, ids[1] + 1));
	ck_assert_ptr_null(evc__per_worker_find(&cl, 0));
	evc__per_worker_ref_of(b, &serial, &id);
	ck_assert_uint_eq(serial, 99);
	ck_assert_uint_eq(id, ids[1]);
	evc__per_workers_destroy(&cl);
	ck_assert_uint_eq(n_entries(), 0);
}
END_TEST

START_TEST(a_drop_is_seen_by_all_that_live_and_then_goes)
{
	evc_per_worker *a = define(NULL);
	uint64_t id = a->def.id;

	up(0);
	up(1);
	up(2);
	NEXT(0, id);
	NEXT(1, id);
	worker[1].state = EVC_WORKER_HUNG;
	evc__per_worker_unref(a);
	ck_assert_ptr_null(evc__per_worker_find(&cl, id));
	ck_assert_uint_eq(n_wakes[0], 1);
	NEXT(0, -(int64_t)id);
	ck_assert_uint_eq(n_entries(), 1);
	NEXT(0, 0);
	NEXT(2, -(int64_t)id);
	NEXT(2, 0);
	/* One that hangs is waited for. */
	ck_assert_uint_eq(n_entries(), 1);
	worker[1].state = EVC_WORKER_UP;
	NEXT(1, -(int64_t)id);
	/* It is read until it asks again. */
	ck_assert_uint_eq(n_entries(), 1);
	NEXT(1, 0);
	ck_assert_uint_eq(n_entries(), 0);
	NEXT(0, 0);
}
END_TEST

START_TEST(what_nobody_has_seen_just_goes)
{
	evc_per_worker *a = define(NULL), *b = define(a);

	up(0);
	evc__per_worker_unref(a);
	/* The iterator keeps it, but no value may name it any more. */
	a->named = false;
	ck_assert_uint_eq(n_entries(), 2);
	ck_assert_ptr_null(evc__per_worker_find(&cl, a->def.id));
	evc__per_worker_unref(b);
	ck_assert_uint_eq(n_entries(), 0);
	NEXT(0, 0);
}
END_TEST

START_TEST(an_iterator_is_dropped_before_its_dataset)
{
	evc_per_worker *a = define(NULL), *b = define(a);
	int64_t ids[2] = { (int64_t)a->def.id, (int64_t)b->def.id };

	up(0);
	NEXT(0, ids[0]);
	NEXT(0, ids[1]);
	evc__per_worker_unref(a);
	NEXT(0, 0);
	evc__per_worker_unref(b);
	NEXT(0, -ids[1]);
	NEXT(0, -ids[0]);
	NEXT(0, 0);
	ck_assert_uint_eq(n_entries(), 0);
}
END_TEST

START_TEST(a_worker_that_is_gone_holds_nothing_up)
{
	evc_per_worker *a = define(NULL);
	int64_t id = (int64_t)a->def.id;

	up(0);
	up(1);
	NEXT(0, id);
	NEXT(1, id);
	evc__per_worker_unref(a);
	NEXT(0, -id);
	NEXT(0, 0);
	ck_assert_uint_eq(n_entries(), 1);
	gone(1);
	ck_assert_uint_eq(n_entries(), 0);
	NEXT(1, 0);
	/* Another one begins: it has nothing to do with what was before. */
	a = define(NULL);
	id = (int64_t)a->def.id;
	NEXT(0, id);
	evc__per_worker_unref(a);
	up(1);
	NEXT(1, 0);
	NEXT(0, -id);
	NEXT(0, 0);
	ck_assert_uint_eq(n_entries(), 0);
}
END_TEST

START_TEST(who_is_busy_keeps_nothing_that_it_was_never_given)
{
	evc_per_worker *a = define(NULL), *b;
	int64_t ids[2] = { (int64_t)a->def.id, 0 };

	up(0);
	up(1);
	NEXT(0, ids[0]);
	NEXT(1, ids[0]);
	/* From here on 1 is busy, with the first one before its eyes. */
	b = define(a);
	ids[1] = (int64_t)b->def.id;
	NEXT(0, ids[1]);
	evc__per_worker_unref(b);
	NEXT(0, -ids[1]);
	ck_assert_uint_eq(n_entries(), 2);
	NEXT(0, 0);
	ck_assert_uint_eq(n_entries(), 1);
	/* What it has it has to see the end of. */
	evc__per_worker_unref(a);
	NEXT(0, -ids[0]);
	NEXT(0, 0);
	ck_assert_uint_eq(n_entries(), 1);
	NEXT(1, -ids[0]);
	NEXT(1, 0);
	ck_assert_uint_eq(n_entries(), 0);
}
END_TEST

START_TEST(after_the_engine_has_left_nobody_is_woken)
{
	evc_per_worker *a = define(NULL), *b = define(NULL);

	up(0);
	NEXT(0, a->def.id);
	memset(n_wakes, 0, sizeof n_wakes);
	cl.engine.left = true;
	evc__per_worker_unref(a);
	ck_assert_uint_eq(n_wakes[0], 0);
	gone(0);
	cl.engine.at = NULL;
	evc__per_worker_unref(b);
	ck_assert_uint_eq(n_entries(), 0);
}
END_TEST

/* ---- beside a model ---- */

struct thing {
	evc_per_worker *p; /* NULL: it is dropped */
	uint64_t id;
	unsigned refs; /* of all kinds */
	unsigned ours; /* of the handle and of functions, in refs */
	int dataset;   /* its index; -1: none */
};

static struct thing thing[MOST];
static int n_things;

static struct has {
	bool lives, built[MOST];
	/* What was handed out last, and may be read until it asks again. */
	evc_engine_def reads;
	bool is_reading;
	/* What was dropped before its life, or has been here. */
	bool none_of_its[MOST];
} has[WORKERS];

static uint64_t
dice(uint64_t n)
{
	uint64_t z = dice_at += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % n;
}

static void
model_unref(int i)
{
	if (--thing[i].refs > 0)
		return;
	thing[i].p = NULL;
	if (thing[i].dataset >= 0)
		model_unref(thing[i].dataset);
}

static void
unref(int i)
{
	evc_per_worker *p = thing[i].p;

	thing[i].ours--;
	model_unref(i);
	evc__per_worker_unref(p);
}

static void
define_some(void)
{
	struct thing *t = &thing[n_things];
	int of = n_things > 0 ? (int)dice((uint64_t)n_things) : 0;

	if (n_things == MOST)
		return;
	t->dataset = -1;
	if (n_things > 0 && dice(2) && thing[of].p != NULL &&
	    thing[of].dataset < 0) {
		t->dataset = of;
		thing[of].refs++;
	}
	t->p = define(t->dataset >= 0 ? thing[t->dataset].p : NULL);
	t->id = t->p->def.id;
	t->refs = t->ours = 1;
	n_things++;
}

static int
index_of(uint64_t id)
{
	int i = 0;

	while (i < n_things && thing[i].id != id)
		i++;
	MUST(i < n_things);
	return i;
}

static void
begin_life(unsigned w)
{
	int i;

	memset(&has[w], 0, sizeof has[w]);
	has[w].lives = true;
	for (i = 0; i < n_things; i++)
		has[w].none_of_its[i] = thing[i].p == NULL;
	up(w);
}

static void
end_life(unsigned w)
{
	gone(w);
	has[w].lives = has[w].is_reading = false;
}

/* true: there was something. */
static bool
look(unsigned w)
{
	struct has *h = &has[w];
	evc_engine_def *d = &h->reads;
	int i;

	/* A tool says so if this is not there any more. */
	if (h->is_reading)
		MUST(strcmp(d->name, "name") == 0);
	h->is_reading = evc__per_worker_next_def(&cl, &worker[w], d);
	if (!h->is_reading) {
		MUST(evc__per_worker_is_ready(&cl, &worker[w]));
		/* It has what there is. */
		for (i = 0; i < n_things; i++)
			MUST(h->built[i] == (thing[i].p != NULL));
		return false;
	}
	i = index_of(d->id);
	MUST(!h->none_of_its[i]);
	if (d->kind == EVC_DEF_DROP) {
		MUST(thing[i].p == NULL);
		h->built[i] = false;
		h->none_of_its[i] = true;
		/* No iterator of it is left. */
		for (i = 0; i < n_things; i++)
			MUST(!h->built[i] || thing[i].dataset < 0 ||
			     thing[thing[i].dataset].id != d->id);
		return true;
	}
	MUST(thing[i].p != NULL && !h->built[i]);
	if (thing[i].dataset >= 0)
		MUST(d->of == thing[thing[i].dataset].id &&
		     h->built[thing[i].dataset]);
	h->built[i] = true;
	return true;
}

static void
step(void)
{
	unsigned w = (unsigned)dice(WORKERS);
	int i = n_things > 0 ? (int)dice((uint64_t)n_things) : 0;

	switch (dice(12)) {
	case 0:
	case 1:
		define_some();
		break;
	case 2:
	case 3:
		if (n_things > 0 && thing[i].ours > 0)
			unref(i);
		break;
	case 4:
		/* A function that uses it. */
		if (n_things > 0 && thing[i].ours > 0) {
			evc__per_worker_ref(thing[i].p);
			thing[i].refs++;
			thing[i].ours++;
		}
		break;
	case 5:
		if (has[w].lives)
			worker[w].state = worker[w].state == EVC_WORKER_UP
						  ? EVC_WORKER_HUNG
						  : EVC_WORKER_UP;
		break;
	case 6:
		if (has[w].lives && dice(2))
			end_life(w);
		else if (!has[w].lives)
			begin_life(w);
		break;
	default:
		if (has[w].lives)
			(void)look(w);
	}
	if (n_things > 0) {
		i = (int)dice((uint64_t)n_things);
		MUST(evc__per_worker_find(&cl, thing[i].id) == thing[i].p);
	}
}

static void
run_history(void)
{
	unsigned i, live = 0, w;

	setup();
	memset(has, 0, sizeof has);
	n_things = 0;
	for (i = 0; i < STEPS; i++)
		step();
	for (w = 0; w < WORKERS; w++)
		while (has[w].lives && look(w))
			;
	/* All have seen all: nothing that was dropped is kept. */
	for (i = 0; i < (unsigned)n_things; i++)
		live += thing[i].p != NULL;
	MUST(n_entries() == live);
	for (i = (unsigned)n_things; i-- > 0;)
		while (thing[i].ours > 0)
			unref((int)i);
	for (w = 0; w < WORKERS; w++)
		if (has[w].lives)
			end_life(w);
	MUST(n_entries() == 0);
}

START_TEST(random_histories_beside_a_model)
{
	const char *s = getenv("EVC_SEED");
	uint64_t seed = s != NULL ? strtoull(s, NULL, 0) : 20260101;
	int i;

	for (i = 0; i < HISTORIES; i++) {
		seed_now = dice_at = seed + (uint64_t)i;
		run_history();
	}
}
END_TEST

API_MAIN_WITH("per_worker", setup, NULL, each_worker_sees_all_in_their_order,
	      a_drop_is_seen_by_all_that_live_and_then_goes,
	      what_nobody_has_seen_just_goes,
	      an_iterator_is_dropped_before_its_dataset,
	      a_worker_that_is_gone_holds_nothing_up,
	      who_is_busy_keeps_nothing_that_it_was_never_given,
	      after_the_engine_has_left_nobody_is_woken,
	      random_histories_beside_a_model)
