/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pace of pieces, and the answers to failed questions.
 * Called by: snapshot.c, load.c, variables.c.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

/* Of the server's time the pieces take this part. */
#define DUTY 0.3
/* Seconds; a server stuck for once costs no more. */
#define REST_MOST 0.5
#define REST_REFUSED 0.05

void
evc__pace_init(struct pace *p,
	       void (*on_rest)(struct ev_loop *, struct ev_timer *, int),
	       struct redis_engine *e)
{
	ev_init(&p->rest, on_rest);
	p->rest.data = e;
}

void
evc__pace_asked(struct pace *p)
{
	p->asked_ns = sync_mono();
}

/* The answer also waits behind commands of others, and behind this loop's own
   work.  The quick answers show what a piece costs, so the cost falls at once
   and grows slowly. */
static void
note_cost(struct pace *p, uint64_t took)
{
	if (p->cost_ns == 0 || took < p->cost_ns)
		p->cost_ns = took;
	else
		p->cost_ns += (took - p->cost_ns) / 16;
}

void
evc__pace_rest(struct redis_engine *e, struct pace *p)
{
	double rest;

	note_cost(p, sync_mono() - p->asked_ns);
	rest = (double)p->cost_ns / 1e9 * (1 - DUTY) / DUTY;
	redis_timer_in(e->ev, &p->rest, rest < REST_MOST ? rest : REST_MOST);
}

bool
evc__pace_refused(struct redis_engine *e, struct pace *p, const redisReply *r)
{
	if (!reply_is_refused_for_now(r))
		return false;
	redis_timer_in(e->ev, &p->rest, REST_REFUSED);
	return true;
}

/* ---- failed questions ---- */

void
evc__question_answer(evc_engine_question *q, evc_status status,
		     const char *text)
{
	evc_engine_answer a = { .status = status, .text = text };

	q->done(q, &a);
}

void
evc__question_error(evc_engine_question *q, const redisReply *r)
{
	char why[REDIS_WHY_SIZE];
	struct text t = evc__text_in(why, sizeof why);

	evc__text_add(&t, "redis: ");
	evc__text_add(&t, evc__reply_why(r));
	evc__question_answer(q, evc__reply_status(r), why);
}

bool
evc__reply_is_doubt(const redisReply *r)
{
	return evc__reply_is(r, "fenced") || evc__reply_is(r, "gone");
}
