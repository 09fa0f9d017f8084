/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node as the core of the workers' engine: what its workers ask for, and
 * what they tell, which becomes frames.
 */
#include "redis/node/node.h"

static struct slot *
slot_of(void *core, unsigned worker)
{
	struct life *l = core;

	return &l->slots[worker];
}

static bool
on_workers(void *core, unsigned n)
{
	struct life *l = core;

	return n <= l->node->n_workers;
}

/* The node has told its own, and they are the same program. */
static void
on_names(void *core, const char *const *functions, unsigned n)
{
	(void)core;
	(void)functions;
	(void)n;
}

/* ---- a worker's life ---- */

static void
say_note(struct slot *s, enum frame_type type, uint64_t number,
	 const char *text)
{
	const struct frame_note note = { .number = number, .text = text };
	struct life *l = s->l;
	struct bytes *b = life_says(l) ? evc__node_tell(l, s) : NULL;

	if (b != NULL && evc__frame_put_note(b, type, &note) < 0)
		evc__node_life_no_memory(l);
}

/* name: as all workers' of the engine; the coordinator finds a better one.
   where: "pid 17". */
static void
on_up(void *core, unsigned worker, const char *name, const char *where)
{
	struct slot *s = slot_of(core, worker);
	struct node *n = s->l->node;
	char text[128];
	struct text t = evc__text_in(text, sizeof text);
	static const char pid[] = "pid ";

	(void)name;
	s->pid = strncmp(where, pid, sizeof pid - 1) == 0
			 ? strtol(where + sizeof pid - 1, NULL, 10)
			 : 0;
	s->state = SLOT_UP;
	s->number++;
	s->since = s->moved = ev_now(n->ev);
	evc__text_fmt(&t, "%s %s", n->host, where);
	say_note(s, FRAME_UP, (uint64_t)s->pid, text);
}

static void
on_fenced(void *core, unsigned worker, const char *why)
{
	struct slot *s = slot_of(core, worker);

	if (s->state != SLOT_UP)
		return;
	evc__node_slot_back(s, UINT64_MAX);
	s->state = SLOT_FENCED;
	say_note(s, FRAME_FENCED, 0, why);
}

static void
on_gone(void *core, unsigned worker, const char *why, unsigned how)
{
	struct slot *s = slot_of(core, worker);
	struct life *l = s->l;

	if (l->state <= LIFE_LIVE)
		evc_log(l->node->scope, EVC_LOG_WARNING, NULL,
			"redis: node %s: %s", l->node->name, why);
	/* What never was up does not end for the coordinator. */
	if (s->state == SLOT_UP)
		evc__node_slot_back(s, UINT64_MAX);
	if (s->state == SLOT_UP || s->state == SLOT_FENCED)
		say_note(s, FRAME_GONE,
			 (how == EVC_ENGINE_LEFT ? GONE_LEFT : 0) |
				 (s->has.n == 0 ? GONE_IDLE :
				  how == EVC_ENGINE_DIED_RUNNING ?
						  GONE_RAN :
						  0),
			 why);
	evc__node_ask_drop(s);
	evc__node_slot_clear(s);
	s->state = l->state == LIFE_LIVE || l->state == LIFE_JOINING
			   ? SLOT_STARTING
			   : SLOT_GONE;
	s->pid = 0;
	s->since = ev_now(l->node->ev);
}

/* ---- to build ---- */

static bool
on_defs(void *core, unsigned worker, evc_engine_def *ret_def)
{
	struct slot *s = slot_of(core, worker);
	struct work *w = s->waits.first;

	evc__node_work_free(s->l, s->drop);
	s->drop = NULL;
	if (w == NULL || !w->is_def)
		return false;
	evc__node_slot_first(&s->waits);
	if (w->def.kind == EVC_DEF_DROP)
		s->drop = w;
	else
		evc__node_queue_add(&s->builds, w);
	*ret_def = w->def;
	return true;
}

static void
on_built(void *core, unsigned worker, uint64_t id, evc_status code,
	 double seconds)
{
	struct slot *s = slot_of(core, worker);
	struct life *l = s->l;
	const struct frame_built f = { id, code, seconds };
	struct bytes *b;

	evc__node_work_free(l, evc__node_slot_take(&s->builds, true, id));
	b = life_says(l) ? evc__node_tell(l, s) : NULL;
	if (b != NULL && evc__frame_put_built(b, &f) < 0)
		evc__node_life_no_memory(l);
}

/* ---- to run ---- */

static void
say_result(struct slot *s, const evc_engine_result *r, bool by_key, uint64_t id)
{
	struct life *l = s->l;
	struct frame_result f = { .r = *r };
	struct bytes *b = evc__node_tell(l, s);

	f.r.updates = NULL;
	f.r.n_updates = 0;
	if (by_key)
		f.r.value = (evc_value){ NULL, 0 };
	if (b != NULL &&
	    ((by_key && evc__frame_put_number(b, FRAME_VALUE, id) < 0) ||
	     evc__frame_put_result(b, UINT32_MAX, &f) < 0))
		evc__node_life_no_memory(l);
}

/* An input is not to be had.  If it is not there the coordinator, which has it,
   is told so and gets the function back; else that is its outcome. */
static void
fail(struct slot *s, const struct work *w, const struct value *v)
{
	struct life *l = s->l;
	evc_engine_result r = { .n = w->task.n,
				.code = EVC_UNAVAILABLE,
				.kind = EVC_FAILED_INPUT,
				.text = v->why };
	struct bytes *b;

	if (v->missing) {
		b = evc__node_tell(l, s);
		if (b == NULL)
			return;
		if (evc__frame_put_number(b, FRAME_FORGET, v->id) < 0) {
			evc__node_life_no_memory(l);
			return;
		}
		r.took = -1;
		r.code = EVC_CANCELLED;
	}
	say_result(s, &r, false, 0);
}

/* Have all of its inputs come?  -1: *ret_bad never will. */
static int
is_ready(const struct work *w, const struct value **ret_bad)
{
	evc_engine_input *in = (evc_engine_input *)w->task.inputs;
	unsigned i;

	for (i = 0; w->values != NULL && i < w->task.n_inputs; i++) {
		const struct value *v = w->values[i];

		if (v == NULL)
			continue;
		*ret_bad = v;
		if (v->state != VALUE_THERE)
			return v->state == VALUE_BAD ? -1 : 0;
		in[i].value = v->value;
	}
	return 1;
}

static unsigned
on_take(void *core, unsigned worker, evc_engine_task *tasks, unsigned most)
{
	struct slot *s = slot_of(core, worker);
	struct life *l = s->l;
	double now = ev_now(l->node->ev);
	struct work *w;
	unsigned n = 0;

	if (l->state != LIFE_LIVE)
		return 0;
	while (n < most && (w = s->waits.first) != NULL && !w->is_def) {
		const struct value *bad;
		int ready = is_ready(w, &bad);

		if (ready == 0)
			break;
		evc__node_slot_first(&s->waits);
		if (ready < 0) {
			fail(s, w, bad);
			evc__node_work_free(l, w);
			continue;
		}
		if (s->has.n == 0)
			s->moved = s->since = now;
		evc__node_queue_add(&s->has, w);
		tasks[n++] = w->task;
	}
	/* That first, and then what stands behind it. */
	if (s->waits.first != NULL && s->waits.first->is_def)
		l->node->ops->wake(l->engine, (int)worker);
	if (s->waits.n > 0)
		evc__node_slots_back_watch(l);
	return n;
}

static void
finished(struct slot *s, const evc_engine_result *r)
{
	struct life *l = s->l;
	struct work *w = evc__node_slot_take(&s->has, false, r->n);
	bool by_key;

	s->moved = s->since = ev_now(l->node->ev);
	if (w == NULL || !life_says(l)) {
		evc__node_work_free(l, w);
		return;
	}
	by_key = r->code == 0 && r->took >= 0 && r->value.size >= VALUE_LEAST;
	if (by_key)
		evc__node_tell_value(l, w->task.id, &r->value);
	if (!life_says(l))
		;
	else if (r->code == 0 && r->took >= 0 &&
		 (w->task.flags & EVC_TRANSACTIONAL))
		evc__node_tell_deal(s, w, r, by_key);
	else
		say_result(s, r, by_key, w->task.id);
	evc__node_work_free(l, w);
}

static void
on_finished(void *core, unsigned worker, const evc_engine_result *results,
	    unsigned n)
{
	struct slot *s = slot_of(core, worker);
	unsigned i;

	for (i = 0; i < n; i++)
		finished(s, &results[i]);
}

static void
on_overdue(void *core, unsigned worker, uint64_t n)
{
	struct slot *s = slot_of(core, worker);
	struct life *l = s->l;
	struct bytes *b = life_says(l) ? evc__node_tell(l, s) : NULL;

	if (b != NULL && evc__frame_put_number(b, FRAME_OVERDUE, n) < 0)
		evc__node_life_no_memory(l);
}

/* ---- the rest ---- */

static evc_status
on_variable(void *core, unsigned worker, const evc_engine_update *u,
	    double *ret_now, evc_value *ret_value)
{
	(void)ret_now;
	(void)ret_value;
	return evc__node_ask(slot_of(core, worker), u);
}

static void
on_trouble(void *core, const char *why)
{
	(void)core;
	(void)why;
}

static void
on_counts(void *core, uint64_t *ret_queued, uint64_t *ret_running,
	  uint64_t *ret_done)
{
	(void)core;
	*ret_queued = *ret_running = *ret_done = 0;
}

static void
on_down(void *core, const char *why)
{
	evc__node_life_end(core, "has lost its workers: %s", why);
}

static void
on_closed(void *core)
{
	evc__node_life_closed(core);
}

const evc_engine_sink evc__node_sink = {
	.abi = EVC_ENGINE_ABI,
	.workers = on_workers,
	.names = on_names,
	.up = on_up,
	.defs = on_defs,
	.built = on_built,
	.take = on_take,
	.finished = on_finished,
	.overdue = on_overdue,
	.fenced = on_fenced,
	.gone = on_gone,
	.variable = on_variable,
	.trouble = on_trouble,
	.counts = on_counts,
	.down = on_down,
	.closed = on_closed,
};
