/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables that the engine keeps: a call is a question to the engine, and
 * waits for the answer.  The answer comes on the cluster's loop, so nobody may
 * wait there.
 * `leave` is not called while a thread is asking, and the engine answers all
 * questions before its last word: so no thread is left waiting, and no question
 * reaches a closed engine.
 * Called by: checkpoint.c, checkpoint_first.c; cluster/calls.
 * Locks: the cluster's lock, taken; asker.answered is atomic.
 */
#include "cluster/core/cluster.h"

#include <evcoord/value.h>

struct asker {
	evc_engine_question q;
	evc_cluster *cl;
	/* the answer: written by `on_engine_answer`, read after `answered` */
	evc_status status;
	char why[TEXT_SIZE];
	double now;
	evc_value value;
	struct pile *all;       /* place for EVC_VARIABLE_ALL */
	bool noted;             /* `finished` was noted with a part */
	uint64_t finished, changes, generation;
	/* atomic: done -> the asker */
	_Atomic uint32_t answered;
};

/* ---- what the engine has said of functions that have finished ---- */

/* Lock held. */
static void
note_finished(evc_cluster *cl, uint64_t n)
{
	uint64_t base = n - cl->asking.seen;

	/* Results of counted functions may still be on their way, so the least
	   number is the best. */
	if (!cl->asking.known || (int64_t)(base - cl->asking.base) < 0)
		cl->asking.base = base;
	if (n > cl->asking.least)
		cl->asking.least = n;
	cl->asking.known = true;
}

void
evc__kept_replaced(evc_cluster *cl, uint64_t finished)
{
	sync_lock(&cl->q.lock);
	cl->asking.known = false;
	cl->asking.least = 0;
	note_finished(cl, finished);
	sync_unlock(&cl->q.lock);
}

/* The engine's number at this moment, as far as known. */
static uint64_t
guess_finished(evc_cluster *cl)
{
	uint64_t n;

	sync_lock(&cl->q.lock);
	n = cl->asking.base + cl->asking.seen;
	if (n < cl->asking.least)
		n = cl->asking.least;
	sync_unlock(&cl->q.lock);
	return n;
}

/* ---- answers ---- */

static void
note_finished_of(struct asker *k, const evc_engine_answer *a)
{
	sync_lock(&k->cl->q.lock);
	note_finished(k->cl, a->finished);
	sync_unlock(&k->cl->q.lock);
	k->noted = true;
}

static void
note_any(evc_cluster *cl)
{
	sync_lock(&cl->q.lock);
	cl->asking.any = true;
	sync_unlock(&cl->q.lock);
}

static bool
gives_value(const evc_engine_update *u)
{
	return u->op == EVC_VARIABLE_GET || u->op == EVC_VARIABLE_VECTOR_GET;
}

static bool
changes_variables(const evc_engine_update *u)
{
	return !gives_value(u) && u->op != EVC_VARIABLE_ALL &&
	       u->op != EVC_VARIABLE_COUNTS;
}

static evc_status
take_answer(struct asker *k, const evc_engine_answer *a)
{
	evc_status st = 0;

	k->now = a->now;
	k->finished = a->finished;
	k->changes = a->changes;
	k->generation = a->generation;
	if (gives_value(&k->q.update))
		st = evc_value_copy(&k->value, &a->value);
	else if (k->q.update.op == EVC_VARIABLE_ALL)
		st = evc__pile_add(k->all, a->entries, a->n_entries);
	if (st == 0 || st == -EVC_RESOURCE_EXHAUSTED)
		return st;
	evc__copy(k->why, sizeof k->why, evc_last_error());
	return evc_refuse(-EVC_DATA_LOSS, "what the engine keeps is damaged: %s",
			  k->why);
}

/* The number of functions belongs to the moment, and is noted at once. */
static bool
on_engine_part(evc_engine_question *q, const evc_engine_answer *a)
{
	struct asker *k = q->arg;

	if (k->status < 0)
		return false;
	if (a->anew)
		evc__pile_free(k->all);
	if (a->anew || !k->noted)
		note_finished_of(k, a);
	k->status = take_answer(k, a);
	if (k->status < 0)
		evc__copy(k->why, sizeof k->why, evc_last_error());
	return k->status == 0;
}

static void
on_engine_answer(evc_engine_question *q, const evc_engine_answer *a)
{
	struct asker *k = q->arg;

	if (k->status < 0) {
		; /* A part was impossible, and `why` says so. */
	} else if (a->status != 0) {
		k->status = a->status < 0 ? a->status : -a->status;
		evc__copy(k->why, sizeof k->why, a->text);
	} else {
		note_any(k->cl);
		k->status = take_answer(k, a);
		if (k->status < 0)
			evc__copy(k->why, sizeof k->why, evc_last_error());
		else if (q->update.op == EVC_VARIABLE_ALL ||
			 q->update.op == EVC_VARIABLE_COUNTS) {
			if (!k->noted)
				note_finished_of(k, a);
		}
	}
	/* From here on the asker may be gone. */
	sync_store_sc(&k->answered, 1);
	sync_futex_wake(&k->answered);
}

/* ---- questions ---- */

bool
evc__kept_ask(evc_cluster *cl, evc_engine_question *q)
{
	evc_engine *engine;

	sync_lock(&cl->q.lock);
	engine = cl->engine.left || cl->engine.closed || cl->asking.over ?
			 NULL : cl->engine.at;
	if (engine != NULL) {
		cl->asking.n++;
		/* A refused change may have been made.  The variables of the
		   checkpoint are no change of it. */
		cl->asking.any |= q->begin == NULL &&
				  changes_variables(&q->update);
	}
	sync_unlock(&cl->q.lock);
	if (engine == NULL)
		return false;
	cl->engine.ops->ask(engine, q);
	sync_lock(&cl->q.lock);
	cl->asking.n--;
	evc__leave_if_idle(cl);
	evc__cluster_unlock(cl);
	return true;
}

evc_status
evc__kept_refuse_here(const evc_cluster *cl)
{
	if (!evc__cluster_on_loop(cl))
		return 0;
	return evc_refuse(-EVC_FAILED_PRECONDITION,
			  "the variables of %s are kept elsewhere: on the "
			  "cluster's loop nobody can wait for them",
			  cl->name);
}

static evc_status
ask_engine(evc_cluster *cl, struct asker *k)
{
	evc_status st = evc__kept_refuse_here(cl);

	if (st < 0)
		return st;
	k->cl = cl;
	k->q.part = on_engine_part;
	k->q.done = on_engine_answer;
	k->q.arg = k;
	if (!evc__kept_ask(cl, &k->q))
		return evc_refuse(-EVC_CANCELLED,
				  "cluster %s has ended: its variables are "
				  "kept elsewhere",
				  cl->name);
	while (sync_load_sc(&k->answered) == 0)
		sync_futex_wait(&k->answered, 0, SYNC_FOREVER);
	if (k->status < 0)
		return evc_refuse(k->status, "%s",
				  k->why[0] != '\0' ? k->why :
						      "the engine gave no reason");
	return 0;
}

/* nil has two spellings; one goes out. */
static void
spell_nil(evc_value *v)
{
	if (evc_value_type(v) == EVC_VALUE_NIL)
		*v = (evc_value){ NULL, 0 };
}

evc_status
evc__kept_do(evc_cluster *cl, const evc_engine_update *u, double *ret_now,
	     evc_value *ret_value)
{
	struct asker k = { .q.update = *u };
	evc_status st = evc__variable_check(u);

	if (st == 0 && gives_value(u) && ret_value == NULL)
		st = evc__variable_no_place();
	if (st < 0)
		return st;
	if (ret_value != NULL)
		*ret_value = (evc_value){ NULL, 0 };
	spell_nil(&k.q.update.value);
	spell_nil(&k.q.update.expected);
	st = ask_engine(cl, &k);
	if (st < 0)
		return st;
	if (ret_now != NULL)
		*ret_now = k.now;
	if (ret_value != NULL)
		*ret_value = k.value;
	return 0;
}

static evc_status
ask_state(evc_cluster *cl, unsigned op, struct pile *to, struct kept_state *ret)
{
	struct asker k = { .q.update.op = op, .all = to };
	/* Before the question: the answer has the updates of these
	   functions. */
	uint64_t plain = evc__variables_n_finished(&cl->vars);
	evc_status st = ask_engine(cl, &k);

	if (st < 0)
		return st;
	ret->finished = plain + k.finished;
	/* Both numbers grow. */
	ret->changes = k.changes + ret->finished;
	ret->generation = k.generation;
	return 0;
}

evc_status
evc__kept_all(evc_cluster *cl, struct pile *to, struct kept_state *ret)
{
	evc_status st = ask_state(cl, EVC_VARIABLE_ALL, to, ret);

	return st < 0 ? st : evc__pile_settle(to);
}

evc_status
evc__kept_counts(evc_cluster *cl, struct kept_state *ret)
{
	return ask_state(cl, EVC_VARIABLE_COUNTS, NULL, ret);
}

evc_status
evc__kept_replace(evc_cluster *cl, const struct variable_list *by)
{
	struct asker k = { .q.update.op = EVC_VARIABLE_REPLACE };
	uint64_t plain = evc__variables_n_finished(&cl->vars);
	evc_status st;

	k.q.entries = by->entries;
	k.q.n_entries = by->n;
	k.q.finished = by->finished;
	st = ask_engine(cl, &k);
	if (st == 0) {
		/* The engine's number includes these functions, or they count
		   no more. */
		evc__variables_finished(&cl->vars, -plain);
		evc__kept_replaced(cl, by->finished);
	}
	return st;
}

uint64_t
evc__kept_n_finished(evc_cluster *cl)
{
	struct asker k = { .q.update.op = EVC_VARIABLE_COUNTS };
	uint64_t plain;
	char why[TEXT_SIZE];

	/* A refusal does not concern the caller. */
	evc__copy(why, sizeof why, evc_last_error());
	if (ask_engine(cl, &k) < 0)
		k.finished = guess_finished(cl);
	(void)evc_refuse(0, "%s", why);
	plain = evc__variables_n_finished(&cl->vars);
	return plain + k.finished;
}
