/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions of the program about variables, which stand in Redis.  One question
 * is on its way at a time, with a number of its own, and a snapshot beside it.
 * After a lost connection the same number is asked again, and gets the same
 * answer.
 * Called by: evc__redis_ask by any thread; all else by turn.c, lock.c,
 * restart.c.
 * Locks: questions.lock for the questions of other threads.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>
#include <math.h>

/* Leases for which a question waits.  Before the first generation: one lease is
   that of a coordinator that has died, and taking needs some time.  Later: three
   leases without a connection end the engine, and two and a half more are those
   of nodes that cannot be fenced. */
#define WAIT_FIRST 2
#define WAIT_AGAIN 6

static struct redis_engine *
engine_of(evc_engine *engine)
{
	return (struct redis_engine *)(void *)engine;
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

/* An operation on one variable. */
static bool
is_operation(unsigned op)
{
	return (op >= EVC_VARIABLE_ADD && op <= EVC_VARIABLE_COMPARE_SET) ||
	       op == EVC_VARIABLE_VECTOR_ADD || op == EVC_VARIABLE_VECTOR_GET;
}

/* ---- the answer ---- */

static void
look_at_lock(struct redis_engine *e)
{
	/* The lock is lost, or variables are: a look at the lock finds out, and
	   then the question is sent again. */
	e->questions.doubt = false;
	redis_doubt_lock(e);
}

static evc_status
read_counts(const struct redis_engine *e, const redisReply *r,
	    evc_engine_answer *a)
{
	int64_t finished, changes;

	if (!evc__reply_number(r, 1, &finished) ||
	    !evc__reply_number(r, 2, &changes))
		return evc_refuse(-EVC_DATA_LOSS,
				  "redis: the counts of the variables are no "
				  "numbers");
	a->finished = (uint64_t)finished;
	a->changes = (uint64_t)changes;
	a->generation = e->lock.g;
	return 0;
}

/* The question is over: the reply is its answer. */
static void
answer_question(struct redis_engine *e, const redisReply *r)
{
	evc_engine_question *q = e->questions.current;
	evc_engine_answer a = { .status = 0 };
	void *memory = NULL;

	e->questions.current = NULL;
	e->questions.doubt = false;
	if (evc__reply_word(r) == NULL ||
	    (is_operation(q->update.op) &&
	     evc__operation_answer(r, 0) == NULL)) {
		evc__question_error(q, r);
		return;
	}
	if (q->update.op == EVC_VARIABLE_REPLACE) {
		if (evc__reply_is(r, "ok"))
			evc__question_answer(q, 0, NULL);
		else
			evc__question_answer(q, -EVC_UNAVAILABLE,
					     "redis: what was loaded was "
					     "removed, again and again");
		return;
	}
	if (q->update.op == EVC_VARIABLE_COUNTS)
		a.status = read_counts(e, r, &a);
	else
		a.status = evc__operation_read(&q->update,
					       evc__operation_answer(r, 0), &a,
					       &memory);
	a.text = a.status < 0 ? evc_last_error() : NULL;
	q->done(q, &a);
	sync_free(memory);
}

static void
on_answer(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;

	if (!e->questions.sent)
		return; /* The question was answered without this reply. */
	e->questions.sent = false;
	if (r == NULL)
		return; /* The question is sent again after a new `up`. */
	if (evc__reply_is_doubt(r)) {
		look_at_lock(e);
		return;
	}
	answer_question(e, r);
	evc__redis_questions(e);
}

/* Of a piece of EVC_VARIABLE_REPLACE. */
static void
on_loaded(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;
	enum piece is;

	if (!e->questions.sent)
		return;
	e->questions.sent = false;
	if (r == NULL)
		return;
	is = evc__load_answered(e, r);
	if (is == PIECE_DOUBT) {
		look_at_lock(e);
		return;
	}
	if (is == PIECE_OVER) {
		if (!evc__reply_is(r, "ok"))
			evc__load_drop(e);
		/* A snapshot of the variables before can never be whole. */
		evc__snapshot_anew(e);
		answer_question(e, r);
	}
	evc__redis_questions(e);
}

/* ---- sending ---- */

static bool
send_question(struct redis_engine *e, const evc_engine_question *q)
{
	struct redis_args a = { 0 };

	if (q->update.op == EVC_VARIABLE_REPLACE)
		return evc__load_send(e, on_loaded);
	if (q->update.op == EVC_VARIABLE_COUNTS)
		return evc__snapshot_script(e, "counts", on_answer);
	evc__args_key(&a, &e->address, "gen");
	evc__args_key(&a, &e->address, "coord");
	evc__args_key(&a, &e->address, "var");
	evc__args_key(&a, &e->address, "count");
	evc__redis_own_key(e, &a, "seqs");
	evc__args_key(&a, &e->address, "pre");
	evc__args_text(&a, e->lock.g_text);
	evc__args_text(&a, e->id);
	evc__args_text(&a, "coord");
	evc__operation_add(&a, e->questions.seq, &q->update, e->lease_ns);
	return evc__redis_script(e->client, SCRIPT_VARIABLE, 6, on_answer, e,
				 &a);
}

static evc_status
check_question(const struct redis_engine *e, const evc_engine_question *q)
{
	struct operation_cost cost;
	unsigned op = q->update.op;

	if (is_operation(op))
		return evc__operation_check(&q->update, e->lease_ns, &cost);
	if (op < EVC_VARIABLE_ALL || op > EVC_VARIABLE_COUNTS)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "there is no operation %u of variables", op);
	if (op == EVC_VARIABLE_ALL && q->part == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "nobody takes the parts of all variables");
	return 0;
}

static void
on_load_rest(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct redis_engine *e = timer->data;

	(void)ev;
	(void)events;
	if (!on_loop_inherited(&e->turn.on))
		evc__redis_questions(e);
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
evc__redis_questions_init(struct redis_engine *e)
{
	evc__pace_init(&e->snapshots.pace, evc__snapshot_on_rest, e);
	evc__pace_init(&e->load.pace, on_load_rest, e);
}

void
evc__redis_questions_off(struct redis_engine *e)
{
	ev_timer_stop(e->ev, &e->snapshots.pace.rest);
	ev_timer_stop(e->ev, &e->load.pace.rest);
}

/* false: the current question is not sent now. */
static bool
begin_current(struct redis_engine *e)
{
	evc_engine_question *q = e->questions.current;
	evc_status st = q->begin(q);

	e->questions.begun = st == 0;
	e->lock.variables_used |= st == 0;
	if (st < 0) {
		e->questions.current = NULL;
		evc__question_answer(q, st, evc_last_error());
		evc__redis_questions(e);
	}
	return st == 0;
}

void
evc__redis_questions(struct redis_engine *e)
{
	fetch_asked(e);
	if (e->questions.deaf)
		evc__redis_questions_end(e, e->questions.deaf_why);
	while (e->questions.current == NULL && e->questions.queue != NULL) {
		evc_engine_question *q = next_question(e);
		evc_status st = check_question(e, q);

		if (st < 0) {
			evc__question_answer(q, st, evc_last_error());
			continue;
		}
		if (q->update.op == EVC_VARIABLE_ALL) {
			evc__snapshot_ask(e, q);
			continue;
		}
		e->questions.current = q;
		e->questions.begun = q->begin == NULL;
		e->questions.seq++;
		e->lock.variables_used |= e->questions.begun &&
					  q->update.op != EVC_VARIABLE_COUNTS;
		if (q->update.op == EVC_VARIABLE_REPLACE)
			evc__load_begin(e);
	}
	evc__snapshot_go_on(e);
	if (e->questions.current == NULL || e->questions.sent ||
	    pace_rests(&e->load.pace) ||
	    e->lock.phase != PHASE_LIVE || !e->up)
		return;
	if (!e->questions.begun && !begin_current(e))
		return;
	e->questions.sent = send_question(e, e->questions.current);
	/* A load changes nothing until SCRIPT_REPLACE. */
	e->questions.doubt |= e->questions.sent &&
			      (e->questions.current->update.op !=
				       EVC_VARIABLE_REPLACE ||
			       e->load.placing);
}

static bool
may_have_changed(const struct redis_engine *e, const evc_engine_question *q)
{
	return e->questions.doubt && q->update.op != EVC_VARIABLE_GET &&
	       q->update.op != EVC_VARIABLE_VECTOR_GET &&
	       q->update.op != EVC_VARIABLE_COUNTS;
}

/* The current question gets no answer of the server. */
static void
give_up_current(struct redis_engine *e, const char *why)
{
	evc_engine_question *q = e->questions.current;
	char text[REDIS_WHY_SIZE + 64];
	struct text t = evc__text_in(text, sizeof text);

	e->questions.current = NULL;
	e->questions.sent = false;
	if (q == NULL)
		return;
	if (q->update.op == EVC_VARIABLE_REPLACE)
		evc__load_drop(e);
	evc__text_fmt(&t, "%s%s", why,
		      may_have_changed(e, q)
			      ? ": it is not known whether the change was made"
			      : "");
	evc__question_answer(q, -EVC_UNAVAILABLE, text);
}

void
evc__redis_questions_again(struct redis_engine *e, bool anew)
{
	e->questions.sent = e->snapshots.sent = false;
	if (!anew)
		return;
	/* The answers of the old generation are lost. */
	evc__snapshot_anew(e);
	if (e->questions.current != NULL &&
	    may_have_changed(e, e->questions.current))
		give_up_current(e, e->lock.why_restart);
	else
		evc__load_anew(e);
	/* Another coordinator may have had the namespace meanwhile. */
	if (e->questions.current != NULL)
		e->questions.begun = e->questions.current->begin == NULL;
}

static void
answer_waiting(struct redis_engine *e, const char *why)
{
	evc_engine_question *q;

	evc__snapshot_end(e, why);
	while ((q = next_question(e)) != NULL)
		evc__question_answer(q, -EVC_UNAVAILABLE, why);
}

static void
answer_all_waiting(struct redis_engine *e, const char *why)
{
	give_up_current(e, why);
	answer_waiting(e, why);
}

/* true: questions have waited for too long, or the stop leaves no time. */
static bool
wait_is_over(struct redis_engine *e, uint64_t now)
{
	struct questions *q = &e->questions;
	unsigned most = e->lock.g == 0 ? WAIT_FIRST : WAIT_AGAIN;
	double left = evc_should_stop(e->scope) ? evc_stop_left(e->scope) :
						  INFINITY;

	if (left < INFINITY && q->stop_ns == 0)
		q->stop_ns = evc__after(now,
					evc__grace_within(e->grace_ns, left));
	return left <= 0 || (q->stop_ns != 0 && now >= q->stop_ns) ||
	       now - q->waits_ns > most * e->lease_ns;
}

void
evc__redis_questions_tick(struct redis_engine *e, uint64_t now)
{
	struct questions *q = &e->questions;

	fetch_asked(e);
	if ((e->lock.phase == PHASE_LIVE && e->up) ||
	    (q->current == NULL && q->queue == NULL &&
	     e->snapshots.first == NULL))
		q->waits_ns = q->stop_ns = 0;
	else if (q->waits_ns == 0)
		q->waits_ns = now;
	else if (wait_is_over(e, now) && q->stop_ns == 0 &&
		 q->current != NULL && q->current->begin != NULL) {
		answer_waiting(e, e->trouble.now);
		q->waits_ns = now;
	} else if (wait_is_over(e, now))
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

void
evc__redis_questions_close(struct redis_engine *e)
{
	char why[REDIS_WHY_SIZE];
	struct text t = evc__text_in(why, sizeof why);
	bool waits = e->lock.phase < PHASE_LOST &&
		     e->lock.phase != PHASE_LIVE && e->trouble.now[0] != '\0';

	evc__text_fmt(&t, "the cluster ends%s%s", waits ? "; " : "",
		      waits ? e->trouble.now : "");
	evc__redis_questions_end(e, why);
}
