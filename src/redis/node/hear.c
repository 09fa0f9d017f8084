/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the coordinator says: entries of the node's stream, whose frames go to
 * the queues of the workers that they name, or to their engine.
 *
 * Nothing of it is believed.  A coordinator that sends what it cannot have to
 * send loses this life of the node, and is told why by its end.
 */
#include "redis/node/node.h"

#define BLOCK_MOST 1000  /* ms */
#define COUNT_MOST "256" /* entries in one answer */
#define TRIM_ENTRIES 256
#define TRIM_BYTES ((size_t)1 << 20)

static void
garbage(struct life *l, const char *what)
{
	evc__node_life_end(l, "was sent garbage by the coordinator (%s)", what);
}

/* What the frames of one entry have in common. */
struct hearing {
	struct life *l;
	struct entry *entry;
	struct slot *slot; /* NULL: none was named */
	bool lives;        /* and this is its life */
};

/* ---- functions ---- */

static struct work *
make(struct hearing *h)
{
	struct work *w = sync_alloc(1, sizeof *w);

	if (w == NULL) {
		evc__node_life_no_memory(h->l);
		return NULL;
	}
	w->entry = h->entry;
	w->entry->refs++;
	return w;
}

/* Inputs that came by key.  false: no memory. */
static bool
get_values(struct life *l, struct work *w)
{
	evc_engine_task *t = &w->task;
	unsigned i;

	for (i = 0; i < t->n_inputs; i++) {
		if (t->inputs[i].value.size > 0)
			continue;
		if (w->values == NULL)
			w->values = sync_alloc(t->n_inputs, sizeof *w->values);
		if (w->values == NULL)
			return false;
		w->values[i] = evc__node_value_get(l, t->inputs[i].id);
		if (w->values[i] == NULL)
			return false;
	}
	return true;
}

static void
hear_task(struct hearing *h, const struct frame *f)
{
	struct life *l = h->l;
	struct work *w = make(h);
	bool late;

	if (w == NULL)
		return;
	if (evc__frame_get_task(f, &w->task) < 0) {
		w->task.inputs = NULL;
		w->task.n_inputs = 0;
		evc__node_work_free(l, w);
		garbage(l, evc_last_error());
		return;
	}
	if (!get_values(l, w)) {
		evc__node_work_free(l, w);
		evc__node_life_no_memory(l);
		return;
	}
	/* One that the server had refused at first may come behind later ones,
	   which a worker has perhaps begun or given back, and all before them;
	   or behind the order that cancels it.  It comes anew, as a new one. */
	late = w->task.n <= h->slot->newest || w->task.n <= l->cancelled;
	if (!late)
		h->slot->newest = w->task.n;
	evc__node_slot_add(h->slot, w);
	if (late || l->state == LIFE_LEAVING)
		evc__node_slot_back_one(h->slot, w->task.n);
}

static void
hear_def(struct hearing *h, const struct frame *f)
{
	struct work *w = make(h);

	if (w == NULL)
		return;
	w->is_def = true;
	if (evc__frame_get_def(f, &w->def) < 0) {
		evc__node_work_free(h->l, w);
		garbage(h->l, evc_last_error());
		return;
	}
	evc__node_slot_add(h->slot, w);
}

/* ---- orders ---- */

static void
cancel(struct life *l, uint64_t upto)
{
	unsigned i;

	if (upto > l->cancelled)
		l->cancelled = upto;
	for (i = 0; i < l->node->n_workers; i++)
		evc__node_slot_back(&l->slots[i], upto);
	l->node->ops->cancel(l->engine, upto);
}

static void
cancel_one(struct slot *s, uint64_t n)
{
	struct life *l = s->l;

	evc__node_slot_back_one(s, n);
	l->node->ops->cancel_one(l->engine, s->index, n);
}

static void
forget(struct life *l, uint64_t id)
{
	evc__node_value_forget(l, id);
	if (l->node->ops->forget != NULL)
		l->node->ops->forget(l->engine, id);
}

static void
leave(struct life *l)
{
	struct node *n = l->node;

	/* Not again to this one. */
	evc__copy(n->left, sizeof n->left, l->gen);
	evc__node_life_leave(l);
	if (n->address.once)
		evc__node_over(n, 0);
}

/* ---- frames ---- */

static bool
hear_slot(struct hearing *h, const struct frame *f)
{
	uint64_t at;

	if (evc__frame_get_number(f, &at) < 0 ||
	    at >> 32 >= h->l->node->n_workers)
		return false;
	h->slot = &h->l->slots[at >> 32];
	h->lives = h->slot->state == SLOT_UP && h->slot->number == (uint32_t)at;
	return true;
}

/* Once for each of them. */
static bool
hear_rank(struct life *l, const struct frame *f)
{
	struct slot *s;
	uint64_t at;

	if (evc__frame_get_number(f, &at) < 0 ||
	    at >> 32 >= l->node->n_workers)
		return false;
	s = &l->slots[at >> 32];
	if (s->ranked)
		return false;
	s->ranked = true;
	s->rank = (uint32_t)at;
	if (l->node->ops->rank != NULL)
		l->node->ops->rank(l->engine, s->index, s->rank);
	return true;
}

/* Of the whole node.  false: no such frame, or garbage. */
static bool
hear_node(struct hearing *h, const struct frame *f)
{
	uint64_t number;

	switch (f->type) {
	case FRAME_SLOT:
		return hear_slot(h, f);
	case FRAME_RANK:
		return hear_rank(h->l, f);
	case FRAME_CANCEL:
		if (evc__frame_get_number(f, &number) < 0)
			return false;
		cancel(h->l, number);
		return true;
	case FRAME_FORGET:
		if (evc__frame_get_number(f, &number) < 0)
			return false;
		forget(h->l, number);
		return true;
	case FRAME_LEAVE:
		if (evc__frame_get_bare(f) < 0)
			return false;
		leave(h->l);
		return true;
	default:
		return false;
	}
}

/* Of a worker. */
static void
hear_worker(struct hearing *h, const struct frame *f)
{
	struct life *l = h->l;
	uint64_t number;

	if (f->type == FRAME_TASK)
		hear_task(h, f);
	else if (f->type == FRAME_DEF)
		hear_def(h, f);
	else if (f->type == FRAME_KILL && evc__frame_get_bare(f) == 0)
		l->node->ops->kill(l->engine, h->slot->index);
	else if (f->type == FRAME_CANCEL_ONE &&
		 evc__frame_get_number(f, &number) == 0)
		cancel_one(h->slot, number);
	else
		garbage(l, "no frame for a worker");
}

static void
hear_frame(struct hearing *h, const struct frame *f)
{
	bool of_worker = f->type == FRAME_TASK || f->type == FRAME_DEF ||
			 f->type == FRAME_KILL || f->type == FRAME_CANCEL_ONE;

	if (!of_worker) {
		if (!hear_node(h, f))
			garbage(h->l, "no frame for a node");
	} else if (h->slot == NULL)
		garbage(h->l, "something for no worker");
	else if (h->lives)
		hear_worker(h, f);
	/* Else it has died meanwhile, and the coordinator will hear of it. */
}

static bool
is_open(const struct life *l)
{
	return l->state == LIFE_LIVE || l->state == LIFE_LEAVING;
}

static void
hear_frames(struct life *l, struct entry *e)
{
	struct hearing h = { .l = l, .entry = e };
	struct frame f;
	size_t at = 0;

	while (at < e->n && is_open(l)) {
		int got = evc__frame_next(e->bytes + at, e->n - at,
					  l->max_frame, &f);

		if (got <= 0) {
			garbage(l, got < 0 ? evc_last_error() : "a cut frame");
			return;
		}
		hear_frame(&h, &f);
		at += f.whole;
	}
}

/* ---- entries ---- */

/* "SEQ-1" */
static bool
read_id(const redisReply *r, uint64_t *ret)
{
	char *end;

	if (r->type != REDIS_REPLY_STRING || r->len > 24 || r->str[0] < '0' ||
	    r->str[0] > '9')
		return false;
	errno = 0;
	*ret = strtoull(r->str, &end, 10);
	return errno == 0 && strcmp(end, "-1") == 0;
}

/* Has it come before, with another number?  Then it counts no more. */
static bool
is_new(struct life *l, const redisReply *r)
{
	char text[24];
	size_t n;
	const char *o = evc__reply_field(r, "o", &n);
	int is;

	if (o == NULL)
		return true;
	memcpy(text, o, n < sizeof text ? n : sizeof text - 1);
	text[n < sizeof text ? n : sizeof text - 1] = '\0';
	is = evc__node_gaps_fill(&l->gaps, strtoull(text, NULL, 10));
	if (is < 0)
		evc__node_life_end(l, "does not know any more whether it was "
				      "told that before");
	return is > 0;
}

static void
hear_entry(struct life *l, const redisReply *r)
{
	struct entry *e;
	const char *d;
	uint64_t id;
	size_t n;

	if (r->type != REDIS_REPLY_ARRAY || r->elements != 2 ||
	    !read_id(r->element[0], &id) || id <= l->heard) {
		garbage(l, "an entry without a number");
		return;
	}
	evc__node_gaps_add(&l->gaps, l->heard + 1, id - 1);
	l->heard = id;
	if (!is_new(l, r))
		return;
	d = evc__reply_field(r, "d", &n);
	if (d == NULL) {
		garbage(l, "an entry without frames");
		return;
	}
	e = sync_alloc(1, sizeof *e + n);
	if (e == NULL) {
		evc__node_life_no_memory(l);
		return;
	}
	memcpy(e->bytes, d, n);
	e->n = n;
	e->refs = 1;
	l->heard_bytes += n;
	hear_frames(l, e);
	if (--e->refs == 0)
		sync_free(e);
}

/* An answer of XREAD: an array of the one stream and its entries. */
static void
hear_answer(struct life *l, const redisReply *r)
{
	const redisReply *entries;
	size_t i;

	if (r->elements != 1 || r->element[0]->type != REDIS_REPLY_ARRAY ||
	    r->element[0]->elements != 2 ||
	    r->element[0]->element[1]->type != REDIS_REPLY_ARRAY) {
		garbage(l, "an answer that nobody expects");
		return;
	}
	entries = r->element[0]->element[1];
	for (i = 0; i < entries->elements && is_open(l); i++)
		hear_entry(l, entries->element[i]);
	if (!is_open(l))
		return;
	l->node->ops->wake(l->engine, EVC_ENGINE_ANY);
	if (l->heard - l->trimmed >= TRIM_ENTRIES ||
	    l->heard_bytes >= TRIM_BYTES)
		evc__node_hear_trim(l);
}

static void
on_entries(struct redis_client *cl, const redisReply *r, void *arg)
{
	struct life *l = arg;
	char why[REDIS_WHY_ROOM];
	struct text t = evc__text_in(why, sizeof why);

	(void)cl;
	l->pending--;
	l->reading = false;
	if (r == NULL || !is_open(l))
		return;
	if (r->type == REDIS_REPLY_ARRAY)
		hear_answer(l, r);
	else if (r->type == REDIS_REPLY_ERROR) {
		/* It is tried again with the next renewal. */
		evc__reply_why(r, &t);
		evc__node_say(l->node, EVC_LOG_WARNING,
			      "cannot read its stream: %s", why);
		return;
	} else if (r->type != REDIS_REPLY_NIL)
		garbage(l, "an answer that nobody expects");
	evc__node_hear(l);
}

void
evc__node_hear(struct life *l)
{
	struct redis_args a = { 0 };
	long block = l->lease_ms / 4;

	if (l->reading || !l->linked || !is_open(l))
		return;
	if (block > BLOCK_MOST)
		block = BLOCK_MOST;
	evc__args_text(&a, "XREAD");
	evc__args_text(&a, "COUNT");
	evc__args_text(&a, COUNT_MOST);
	evc__args_text(&a, "BLOCK");
	evc__args_fmt(&a, "%ld", block > 0 ? block : 1);
	evc__args_text(&a, "STREAMS");
	evc__args_key(&a, &l->node->address, "%s:to:%s.%llu", l->gen,
		      l->node->name, (unsigned long long)l->inc);
	evc__args_fmt(&a, "%llu-1", (unsigned long long)l->heard);
	l->reading = evc__node_life_send(l, REDIS_LISTEN, on_entries, l, &a);
}

void
evc__node_hear_trim(struct life *l)
{
	struct redis_args a = { 0 };

	if (l->heard == l->trimmed || !l->linked)
		return;
	evc__args_text(&a, "XTRIM");
	evc__args_key(&a, &l->node->address, "%s:to:%s.%llu", l->gen,
		      l->node->name, (unsigned long long)l->inc);
	evc__args_text(&a, "MINID");
	evc__args_fmt(&a, "%llu-2", (unsigned long long)l->heard);
	if (evc__redis_send(l->node->client, REDIS_SAY, NULL, NULL, &a)) {
		l->trimmed = l->heard;
		l->heard_bytes = 0;
	}
}
