/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large values, one copy of each for all workers of the node.  Inputs are read
 * from their keys before a worker gets their function, and stay for a while; so
 * do results that were made here, which have no keys.
 * Called by: hear.c, sink.c, worker.c, lease.c, end.c.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

#include "engine/kept.h"
#include "wire/walk.h"

/* ---- the table ---- */

static struct value *
find_value(struct session *s, uint64_t id)
{
	struct list *at, *tmp;

	LIST_EACH(at, tmp, &s->values.ages) {
		struct value *v = LIST_OF(at, struct value, age);

		if (v->known && v->id == id)
			return v;
	}
	return NULL;
}

static struct value *
add_value(struct session *s, uint64_t id)
{
	struct value *v = sync_alloc(1, sizeof *v);

	if (v == NULL)
		return NULL;
	v->session = s;
	v->id = id;
	v->refs = 1;
	v->known = true;
	list_append(&s->values.ages, &v->age);
	return v;
}

static void
drop_ref(struct value *v)
{
	if (--v->refs > 0)
		return;
	v->session->values.bytes -= v->value.size;
	list_remove(&v->age);
	sync_free(v->memory);
	sync_free(v);
}

/* Take a value out of the table; the next look-up asks the server. */
static void
take_out_of_table(struct value *v)
{
	if (!v->known)
		return;
	v->known = false;
	drop_ref(v);
}

/* Free the oldest values that the table alone refers to, until the others
   fit. */
static void
drop_old_values(struct session *s)
{
	struct list *at, *tmp;

	LIST_EACH(at, tmp, &s->values.ages) {
		struct value *v = LIST_OF(at, struct value, age);

		if (s->values.bytes <= KEEP_MOST)
			return;
		if (v->refs == 1)
			take_out_of_table(v);
	}
}

void
evc__node_values_clear(struct session *s)
{
	struct list *at, *tmp;

	LIST_EACH(at, tmp, &s->values.ages)
		take_out_of_table(LIST_OF(at, struct value, age));
}

/* ---- read ---- */

/* Note why a value cannot be had, and take it out of the table. */
static void
mark_bad(struct value *v, bool missing, const char *why)
{
	struct text t = evc__text_in(v->why, sizeof v->why);

	evc__text_fmt(&t, "an input, which is kept in %s:v:%llu, %s",
		      v->session->gen, (unsigned long long)v->id, why);
	v->state = VALUE_BAD;
	v->missing = missing;
	take_out_of_table(v);
}

/* false: no memory, or no value. */
static bool
copy_value(struct value *v, const evc_value *from)
{
	if (evc_value_copy(&v->value, from) < 0)
		return false;
	v->memory = (void *)v->value.data;
	return true;
}

static void
fill_value(struct value *v, const redisReply *r)
{
	const evc_value is = { r->str, r->len };

	if (r->len == 0 || evc__value_walk(r->str, r->len, NULL, NULL) < 0) {
		mark_bad(v, true, "is garbage");
		return;
	}
	if (!copy_value(v, &is)) {
		mark_bad(v, false, "has no memory here");
		return;
	}
	v->session->values.bytes += v->value.size;
	v->state = VALUE_THERE;
}

static void
on_value(const redisReply *r, void *arg)
{
	struct value *v = arg;
	struct session *s = v->session;

	s->pending--;
	v->sent = false;
	if (r == NULL || !session_says(s)) {
		drop_ref(v);
		return;
	}
	if (r->type == REDIS_REPLY_STRING)
		fill_value(v, r);
	else if (r->type == REDIS_REPLY_NIL)
		mark_bad(v, true, "is not there any more");
	else if (reply_is_refused_for_now(r))
		node_again(s);
	else
		mark_bad(v, evc__reply_is_error(r, "WRONGTYPE"),
			 evc__reply_why(r));
	drop_ref(v);
	drop_old_values(s);
	if (s->engine != NULL)
		s->node->ops->wake(s->engine, EVC_ENGINE_ANY);
}

static void
ask_for_value(struct value *v)
{
	struct session *s = v->session;
	struct redis_args a = { 0 };

	evc__args_text(&a, "GET");
	evc__args_key(&a, &s->node->address, "%s:v:%llu", s->gen,
		      (unsigned long long)v->id);
	v->sent = evc__node_command(s, REDIS_SAY, on_value, v, &a);
	v->refs += v->sent;
	/* Without memory no later event would ask again. */
	if (!v->sent && evc__redis_client_is_up(s->node->client))
		evc__node_no_memory(s);
}

struct value *
evc__node_value_get(struct session *s, uint64_t id)
{
	struct value *v = find_value(s, id);

	if (v == NULL) {
		v = add_value(s, id);
		if (v == NULL)
			return NULL;
		ask_for_value(v);
	}
	v->refs++;
	return v;
}

void
evc__node_value_drop(struct value *v)
{
	struct session *s;

	if (v == NULL)
		return;
	s = v->session;
	drop_ref(v);
	drop_old_values(s);
}

struct value *
evc__node_value_keep(struct session *s, uint64_t id, evc_engine_result *r)
{
	struct value *v;

	/* An earlier attempt may have left its value, which was not taken. */
	evc__node_value_forget(s, id);
	v = add_value(s, id);
	if (v == NULL)
		return NULL;
	if (r->memory != NULL) {
		v->value = r->value;
		v->memory = r->memory;
		r->memory = NULL;
	} else if (!copy_value(v, &r->value)) {
		take_out_of_table(v);
		return NULL;
	}
	v->state = VALUE_THERE;
	v->refs++;
	s->values.bytes += v->value.size;
	drop_old_values(s);
	return v;
}

void
evc__node_value_forget(struct session *s, uint64_t id)
{
	struct value *v = find_value(s, id);

	if (v != NULL)
		take_out_of_table(v);
}

void
evc__node_values_resume(struct session *s)
{
	struct list *at, *tmp;

	LIST_EACH(at, tmp, &s->values.ages) {
		struct value *v = LIST_OF(at, struct value, age);

		if (v->state == VALUE_ASKED && !v->sent)
			ask_for_value(v);
	}
}
