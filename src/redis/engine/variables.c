/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions of the program about variables, which stand in Redis.  One question
 * is on its way at a time, with a number of its own.  After a lost connection
 * the same number is asked again, and gets the same answer.
 * Called by: evc__redis_ask by any thread; all else by turn.c, lock.c,
 * restart.c.
 * Locks: questions.lock for the questions of other threads.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>
#include <math.h>

static struct redis_engine *
engine_of(evc_engine *engine)
{
	return (struct redis_engine *)(void *)engine;
}

static void
answer_status(evc_engine_question *q, evc_status status, const char *text)
{
	evc_engine_answer a = { .status = status, .text = text };

	q->done(q, &a);
}

/* ---- any thread ---- */

void
evc__redis_ask(evc_engine *engine, evc_engine_question *q)
{
	struct redis_engine *e = engine_of(engine);

	q->next = NULL;
	sync_lock(&e->questions.lock);
	*e->questions.asked_end = q;
	e->questions.asked_end = &q->next;
	sync_unlock(&e->questions.lock);
	/* Without a loop the end of the engine answers. */
	(void)evc__notes_ring(&e->notes);
}

/* ---- the question ---- */

static bool
is_all(unsigned op)
{
	return op == EVC_VARIABLE_ALL || op == EVC_VARIABLE_COUNTS;
}

static void
add_entries(struct redis_engine *e, struct redis_args *a,
	    const evc_engine_question *q)
{
	size_t i;

	evc__args_fmt(a, "%" PRIu64, e->questions.seq);
	evc__args_fmt(a, "%" PRIu64, q->finished);
	for (i = 0; i < q->n_entries; i++) {
		if (evc_value_type(&q->entries[i].value) == EVC_VALUE_NIL)
			continue;
		evc__args_text(a, q->entries[i].name);
		evc__args_add(a, q->entries[i].value.data,
			      q->entries[i].value.size);
	}
}

/* ---- the answer ---- */

static evc_engine_entry *
read_entries(const redisReply *r, evc_engine_answer *a)
{
	evc_engine_entry *entries;
	int64_t finished, changes;
	size_t i, n, n_value;
	const char *bytes;

	if (r->elements < 3 || r->elements % 2 == 0 ||
	    !evc__reply_number(r, 1, &finished) ||
	    !evc__reply_number(r, 2, &changes)) {
		a->status = evc_refuse(-EVC_DATA_LOSS,
				       "redis: the counts of the variables "
				       "are no numbers");
		return NULL;
	}
	a->finished = (uint64_t)finished;
	a->changes = (uint64_t)changes;
	a->n_entries = (r->elements - 3) / 2;
	entries = sync_alloc(a->n_entries + 1, sizeof *entries);
	if (entries == NULL)
		a->status = evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				       "no memory for the variables");
	for (i = 0; i < a->n_entries && a->status == 0; i++) {
		entries[i].name = evc__reply_bytes(r, 3 + i * 2, &n);
		bytes = evc__reply_bytes(r, 4 + i * 2, &n_value);
		if (entries[i].name == NULL || bytes == NULL ||
		    n == 0 || n > 255 || strlen(entries[i].name) != n) {
			a->status = evc_refuse(-EVC_DATA_LOSS,
					       "redis: a variable with a "
					       "wrong name");
			break;
		}
		entries[i].value = (evc_value){ bytes, n_value };
		a->status = evc__operation_check_value(entries[i].name,
						       &entries[i].value);
	}
	a->entries = entries;
	return entries;
}

static void
answer_all(struct redis_engine *e, evc_engine_question *q, const redisReply *r)
{
	evc_engine_answer a = { .status = 0 };
	evc_engine_entry *entries = read_entries(r, &a);

	e->lock.variables_used |= a.n_entries > 0;
	if (a.status < 0) {
		a.n_entries = 0;
		a.entries = NULL;
		a.text = evc_last_error();
	}
	q->done(q, &a);
	sync_free(entries);
}

static void
answer_error(evc_engine_question *q, const redisReply *r)
{
	char why[REDIS_WHY_SIZE];
	struct text t = evc__text_in(why, sizeof why);
	evc_status st = -EVC_INTERNAL;

	evc__text_add(&t, "redis: ");
	evc__text_add(&t, evc__reply_why(r));
	if (evc__reply_is_error(r, "GARBAGE"))
		st = -EVC_DATA_LOSS;
	else if (evc__reply_is_error(r, "OOM") ||
		 evc__reply_is_error(r, "READONLY") ||
		 evc__reply_is_error(r, "NOPERM") ||
		 evc__reply_is_error(r, "MISCONF"))
		st = -EVC_RESOURCE_EXHAUSTED;
	answer_status(q, st, why);
}

static void
on_answer(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;
	evc_engine_question *q = e->questions.current;
	evc_engine_answer a = { .status = 0 };

	if (!e->questions.sent)
		return; /* The question was answered without this reply. */
	e->questions.sent = false;
	if (r == NULL)
		return; /* The question is sent again after a new `up`. */
	if (evc__reply_is(r, "fenced") || evc__reply_is(r, "gone")) {
		/* The lock is lost, or variables are: a look at the lock finds
		   out, and then the question is sent again. */
		e->questions.doubt = false;
		redis_doubt_lock(e);
		return;
	}
	e->questions.current = NULL;
	e->questions.doubt = false;
	if (evc__reply_word(r) == NULL) {
		answer_error(q, r);
	} else if (is_all(q->update.op)) {
		answer_all(e, q, r);
	} else if (q->update.op == EVC_VARIABLE_REPLACE) {
		answer_status(q, 0, NULL);
	} else {
		a.status = evc__operation_read(&q->update, r, &a);
		a.text = a.status < 0 ? evc_last_error() : NULL;
		q->done(q, &a);
	}
	evc__redis_questions(e);
}

/* ---- sending ---- */

static bool
send_question(struct redis_engine *e, const evc_engine_question *q)
{
	struct redis_args a = { 0 };
	unsigned op = q->update.op;

	evc__args_key(&a, &e->address, "gen");
	evc__args_key(&a, &e->address, "coord");
	evc__args_key(&a, &e->address, "var");
	evc__args_key(&a, &e->address, "count");
	if (!is_all(op))
		evc__redis_own_key(e, &a, "seqs");
	evc__args_text(&a, e->lock.g_text);
	evc__args_text(&a, e->id);
	if (is_all(op)) {
		evc__args_text(&a, op == EVC_VARIABLE_ALL ? "all" : "counts");
		return evc__redis_script(e->client, SCRIPT_ALL, 4, on_answer,
					 e, &a);
	}
	if (op == EVC_VARIABLE_REPLACE) {
		add_entries(e, &a, q);
		return evc__redis_script(e->client, SCRIPT_REPLACE, 5,
					 on_answer, e, &a);
	}
	evc__args_text(&a, "coord");
	evc__operation_add(&a, e->questions.seq, &q->update);
	return evc__redis_script(e->client, SCRIPT_VARIABLE, 5, on_answer, e,
				 &a);
}

static evc_status
check_question(const evc_engine_question *q)
{
	unsigned op = q->update.op;

	if (op < EVC_VARIABLE_ADD || op > EVC_VARIABLE_COUNTS)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no operation %u of variables", op);
	if (op == EVC_VARIABLE_ADD && !isfinite(q->update.by))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "variable %s: %g is nothing to add",
				  q->update.name, q->update.by);
	return 0;
}

/* Take the questions of other threads. */
static void
fetch_asked(struct redis_engine *e)
{
	sync_lock(&e->questions.lock);
	*e->questions.queue_end = e->questions.asked;
	if (e->questions.asked != NULL)
		e->questions.queue_end = e->questions.asked_end;
	e->questions.asked = NULL;
	e->questions.asked_end = &e->questions.asked;
	sync_unlock(&e->questions.lock);
}

static evc_engine_question *
next_question(struct redis_engine *e)
{
	evc_engine_question *q = e->questions.queue;

	if (q == NULL)
		return NULL;
	e->questions.queue = q->next;
	if (e->questions.queue == NULL)
		e->questions.queue_end = &e->questions.queue;
	return q;
}

void
evc__redis_questions(struct redis_engine *e)
{
	fetch_asked(e);
	if (e->questions.deaf)
		evc__redis_questions_end(e, e->questions.deaf_why);
	while (e->questions.current == NULL && e->questions.queue != NULL) {
		evc_engine_question *q = next_question(e);

		if (check_question(q) < 0) {
			answer_status(q, -EVC_INVALID_ARGUMENT,
				      evc_last_error());
			continue;
		}
		e->questions.current = q;
		e->questions.seq++;
		e->lock.variables_used |= !is_all(q->update.op);
	}
	if (e->questions.current == NULL || e->questions.sent ||
	    e->lock.phase != PHASE_LIVE || !e->up)
		return;
	e->questions.sent = send_question(e, e->questions.current);
	e->questions.doubt |= e->questions.sent;
}

void
evc__redis_questions_again(struct redis_engine *e, bool anew)
{
	evc_engine_question *q = e->questions.current;
	char why[REDIS_WHY_SIZE + 64];
	struct text t = evc__text_in(why, sizeof why);

	e->questions.sent = false;
	/* The answers of the old generation are lost. */
	if (!anew || q == NULL || !e->questions.doubt ||
	    q->update.op == EVC_VARIABLE_GET || is_all(q->update.op))
		return;
	e->questions.current = NULL;
	evc__text_fmt(&t, "%s: it is not known whether the change was made",
		      e->lock.why_restart);
	answer_status(q, -EVC_UNAVAILABLE, why);
}

static void
answer_all_waiting(struct redis_engine *e, const char *why)
{
	evc_engine_question *q = e->questions.current;

	e->questions.current = NULL;
	e->questions.sent = false;
	if (q != NULL)
		answer_status(q, -EVC_UNAVAILABLE, why);
	while ((q = next_question(e)) != NULL)
		answer_status(q, -EVC_UNAVAILABLE, why);
}

void
evc__redis_questions_tick(struct redis_engine *e, uint64_t now)
{
	if (e->lock.g != 0 ||
	    (e->questions.current == NULL && e->questions.queue == NULL))
		e->questions.waits_ns = 0;
	else if (e->questions.waits_ns == 0)
		e->questions.waits_ns = now;
	else if (now - e->questions.waits_ns > 2 * e->lease_ns)
		answer_all_waiting(e, e->trouble.now);
}

void
evc__redis_questions_end(struct redis_engine *e, const char *why)
{
	e->questions.deaf = true;
	if (why != e->questions.deaf_why)
		evc__copy(e->questions.deaf_why, sizeof e->questions.deaf_why,
			  why);
	fetch_asked(e);
	answer_all_waiting(e, e->questions.deaf_why);
}
